#include "step/sets.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "step/tuning.h"

/* A set's sequences and its plan. */
typedef struct part {
    hbp__step step;  /* what the set sees: a view of the whole step */
    int64_t *member; /* [step.count] sequences of the whole step, ascending */
    hbp__step_solution solution;
} part;

typedef struct sets {
    const hbp__step *step;
    hbp_cost cost; /* of one set */
    int64_t count;
    double *work; /* [sequences] least rank-time in a well filled pack */
    int64_t *set; /* [sequences] the set of each */
    double *load; /* [count] scratch: sums of work */
    part **part;  /* [count] and two spare ones */
    part *room;   /* [count + 2] */
} sets;

static void close_part(const hbp__memory *memory, part *p)
{
    hbp__step_solution_close(&p->solution);
    hbp__delete(memory, p->member);
    hbp__delete(memory, p->step.tokens);
    hbp__delete(memory, p->step.squares);
    hbp__delete(memory, p->step.padded);
    hbp__delete(memory, p->step.samples);
    hbp__delete(memory, p->step.vision);
    if (p->step.weight != p->step.tokens)
        hbp__delete(memory, p->step.weight);
    memset(p, 0, sizeof *p);
}

/* The step of the sequences in p->member, `count` of them, on one set. */
static hbp_status open_view(const sets *s, part *p, int64_t count)
{
    const hbp__step *from = s->step;
    const hbp__memory *memory = &from->context->memory;
    hbp__step *view = &p->step;
    *view = *from;
    view->cost = &s->cost;
    view->ranks = s->cost.terms.ranks;
    view->domain = s->cost.terms.domain_ranks;
    view->count = count;
    view->total_tokens = 0;
    view->parts = s->count / 2; /* of which most are searched several times */
    uint64_t rows = (uint64_t)count;
    view->tokens = hbp__new(memory, rows, sizeof *view->tokens);
    view->squares = hbp__new(memory, rows, sizeof *view->squares);
    view->padded =
        from->padded ? hbp__new(memory, rows * (uint64_t)from->degrees, sizeof *view->padded) : NULL;
    view->samples = from->samples ? hbp__new(memory, rows, sizeof *view->samples) : NULL;
    view->vision = from->vision ? hbp__new(memory, rows, sizeof *view->vision) : NULL;
    view->weight = from->vision ? hbp__new(memory, rows, sizeof *view->weight) : view->tokens;
    view->order = NULL; /* of the whole step */
    if (!view->tokens || !view->squares || (from->padded && !view->padded) ||
        (from->samples && !view->samples) || (from->vision && !view->vision) || !view->weight)
        return hbp__fail_memory(from->context, "the sequences of a lockstep set");
    for (int64_t i = 0; i < count; i++) {
        int64_t k = p->member[i];
        view->tokens[i] = from->tokens[k];
        view->squares[i] = from->squares[k];
        view->total_tokens += hbp__step_room(from, k);
        for (int32_t j = 0; view->padded && j < from->degrees; j++)
            view->padded[j * count + i] = from->padded[j * from->count + k];
        if (view->samples)
            view->samples[i] = from->samples[k];
        if (view->vision) {
            view->vision[i] = from->vision[k];
            view->weight[i] = from->weight[k];
        }
    }
    hbp__step_set_columns(view);
    return HBP_OK;
}

/* Plans set `index` with the sequences that s->set gives it. */
static hbp_status plan_part(const sets *s, int64_t index, part *p)
{
    const hbp__step *step = s->step;
    int64_t count = 0;
    memset(p, 0, sizeof *p);
    for (int64_t k = 0; k < step->count; k++)
        count += s->set[k] == index;
    p->member = hbp__new(&step->context->memory, (uint64_t)count, sizeof *p->member);
    if (!p->member)
        return hbp__fail_memory(step->context, "the sequences of a lockstep set");
    for (int64_t k = 0, at = 0; k < step->count; k++)
        if (s->set[k] == index)
            p->member[at++] = k;
    HBP__TRY(open_view(s, p, count));
    return count ? hbp__step_search(&p->step, &p->solution) : HBP_OK;
}

/* What each sequence asks for on the degree that suits it best. */
static void set_work(sets *s)
{
    const hbp__step *step = s->step;
    for (int64_t k = 0; k < step->count; k++) {
        int found = 0;
        for (int32_t j = 0; j < step->degrees; j++) {
            if (!hbp__step_holds_alone(step, j, k))
                continue;
            double work = hbp__step_rank_time(step, j, k);
            if (!found || work < s->work[k])
                s->work[k] = work;
            found = 1;
        }
    }
}

/* Longest first, each to the set with the least work. */
static void deal(sets *s)
{
    for (int64_t i = 0; i < s->count; i++)
        s->load[i] = 0;
    for (int64_t k = 0; k < s->step->count; k++) {
        int64_t least = 0;
        for (int64_t i = 1; i < s->count; i++)
            least = s->load[i] < s->load[least] ? i : least;
        s->set[k] = least;
        s->load[least] += s->work[k];
    }
}

/* The move of a sequence from set a to set b, or the swap of two, *back being -1 for none, that comes the
 * nearest to work `wanted` less on a, among those that take some and less than twice as much. */
static int find_exchange(const sets *s, int64_t a, int64_t b, double wanted, int64_t *sequence, int64_t *back)
{
    const part *from = s->part[a], *to = s->part[b];
    double nearest = wanted;
    int found = 0;
    for (int64_t i = 0; i < from->step.count; i++)
        for (int64_t j = -1; j < to->step.count; j++) {
            int64_t k = from->member[i], other = j < 0 ? -1 : to->member[j];
            double off = s->work[k] - (other < 0 ? 0 : s->work[other]) - wanted;
            off = off < 0 ? -off : off;
            if (!(off < nearest))
                continue;
            nearest = off;
            *sequence = k;
            *back = other;
            found = 1;
        }
    return found;
}

static int64_t ns_of(const sets *s, int64_t i)
{
    return s->part[i]->solution.first ? s->part[i]->solution.ns : 0;
}

static void swap(part **a, part **b)
{
    part *old = *a;
    *a = *b;
    *b = old;
}

/* Plans sets a and b anew after an exchange, and keeps that where the longer of both is shorter. */
static hbp_status try_exchange(sets *s, int64_t a, int64_t b, int64_t sequence, int64_t back, int *helps)
{
    const hbp__memory *memory = &s->step->context->memory;
    part **spare = &s->part[s->count];
    int64_t before = hbp__max_i64(ns_of(s, a), ns_of(s, b));
    s->set[sequence] = b;
    if (back >= 0)
        s->set[back] = a;
    hbp_status status = plan_part(s, a, spare[0]);
    if (status >= 0)
        status = plan_part(s, b, spare[1]);
    *helps = status >= 0 && spare[0]->solution.ns < before && spare[1]->solution.ns < before;
    if (*helps) {
        swap(&s->part[a], &spare[0]);
        swap(&s->part[b], &spare[1]);
    } else {
        s->set[sequence] = a;
        if (back >= 0)
            s->set[back] = b;
    }
    close_part(memory, spare[0]);
    close_part(memory, spare[1]);
    if (status == HBP_E_INFEASIBLE) /* of the options, in these sets */
        return hbp__forgive(s->step->context);
    return status;
}

/* Takes work off the slowest set until a turn through all others does not help. */
static hbp_status improve(sets *s)
{
    int64_t tries = HBP__SETS_TRIES * s->count, failed = 0;
    for (int32_t round = 1; round < s->step->options.effort; round++)
        tries = hbp__mul_saturating(tries, 3);
    while (tries > 0 && failed < s->count - 1) {
        int64_t worst = 0, other = -1;
        for (int64_t i = 1; i < s->count; i++)
            worst = ns_of(s, i) > ns_of(s, worst) ? i : worst;
        /* The set that is the failed-th fastest. */
        for (int64_t i = 0; i < s->count && other < 0; i++) {
            int64_t faster = 0;
            for (int64_t o = 0; o < s->count; o++)
                faster += ns_of(s, o) < ns_of(s, i) || (ns_of(s, o) == ns_of(s, i) && o < i);
            other = faster == failed && i != worst ? i : other;
        }
        double gap = other < 0 ? 0 : (double)(ns_of(s, worst) - ns_of(s, other)), ranks = s->cost.terms.ranks;
        int64_t sequence = -1, back = -1;
        int helps = 0;
        if (gap > 0 && find_exchange(s, worst, other, gap * ranks / 2, &sequence, &back)) {
            HBP__TRY(try_exchange(s, worst, other, sequence, back, &helps));
            tries--;
        }
        failed = helps ? 0 : failed + 1;
        HBP__TRY(hbp__tick(s->step->context, "step", 0, 0));
    }
    return HBP_OK;
}

/* The plans of the sets side by side. */
static hbp_status join(const sets *s, hbp__step_solution *out)
{
    const hbp__step *step = s->step;
    int64_t rows = 0, groups = 0, at = 0;
    for (int64_t i = 0; i < s->count; i++) {
        rows = hbp__max_i64(rows, s->part[i]->solution.micro_batches);
        groups += s->part[i]->solution.groups;
    }
    HBP__TRY(hbp__step_solution_open(step, rows, groups, out));
    out->rank = hbp__new(&out->memory, (uint64_t)groups, sizeof *out->rank);
    if (!out->rank)
        return hbp__fail_memory(step->context, "the lockstep sets of a step");
    for (int64_t m = 0; m < rows; m++) {
        for (int64_t i = 0; i < s->count; i++) {
            const part *p = s->part[i];
            const hbp__step_solution *own = &p->solution;
            if (m >= own->micro_batches)
                continue;
            int64_t first = own->first[m], count = own->first[m + 1] - first;
            if (!hbp__step_place(&p->step, own->degree + first, count, out->rank + at))
                return hbp__fail(step->context, HBP_E_INTERNAL, "the groups of a lockstep set have no place");
            for (int64_t g = 0; g < count; g++) {
                out->degree[at + g] = own->degree[first + g];
                out->rank[at + g] += (int32_t)(i * p->step.ranks);
            }
            for (int64_t k = 0; k < p->step.count; k++)
                if (own->group[k] >= first && own->group[k] < first + count)
                    out->group[p->member[k]] = at + own->group[k] - first;
            at += count;
        }
        out->first[m + 1] = at;
    }
    return hbp__step_solution_price(step, out);
}

/* Sets with fewer micro-batches than others get as many, by samples of their own where they have enough. */
static hbp_status even_rows(sets *s)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < s->count; i++)
        rows = hbp__max_i64(rows, s->part[i]->solution.micro_batches);
    for (int64_t i = 0; i < s->count; i++) {
        part *p = s->part[i];
        if (!s->step->cost->terms.uneven_micro_batches)
            p->step.options.min_micro_batches =
                (int32_t)hbp__max_i64(rows, p->step.options.min_micro_batches);
        if (p->solution.first)
            HBP__TRY(hbp__step_spread(&p->step, &p->solution));
    }
    return HBP_OK;
}

static hbp_status plan_sets(sets *s, hbp__step_solution *solution)
{
    hbp__step_solution own = {.ns = 0};
    set_work(s);
    deal(s);
    for (int64_t i = 0; i < s->count; i++)
        HBP__TRY(plan_part(s, i, s->part[i]));
    HBP__TRY(improve(s));
    HBP__TRY(even_rows(s));
    hbp_status status = join(s, &own);
    if (status >= 0 && own.ns < solution->ns) {
        own.complete = solution->complete;
        hbp__step_solution_close(solution);
        *solution = own;
        return HBP_OK;
    }
    hbp__step_solution_close(&own);
    return status;
}

hbp_status hbp__step_sets(const hbp__step *step, hbp__step_solution *solution)
{
    hbp_context *context = step->context;
    int64_t mark = hbp__scratch_mark(context);
    int32_t ranks = step->cost->terms.lockstep_ranks, domain = step->domain;
    if (domain % ranks && ranks % domain) /* a set's groups would lie otherwise in each set */
        return HBP_OK;
    sets s = {.step = step, .cost = *step->cost, .count = step->ranks / ranks};
    s.cost.terms.ranks = ranks;
    s.cost.terms.domain_ranks = domain < ranks ? domain : ranks;
    s.cost.terms.lockstep_ranks = s.cost.terms.uneven_micro_batches = 0;
    s.work = hbp__take_zero(context, (uint64_t)step->count, sizeof *s.work);
    s.set = hbp__take(context, (uint64_t)step->count, sizeof *s.set);
    s.load = hbp__take(context, (uint64_t)s.count, sizeof *s.load);
    s.room = hbp__take_zero(context, (uint64_t)s.count + 2, sizeof *s.room);
    s.part = hbp__take(context, (uint64_t)s.count + 2, sizeof *s.part);
    HBP__TRY(hbp__scratch_check(context, "the lockstep sets of a step"));
    for (int64_t i = 0; i < s.count + 2; i++)
        s.part[i] = &s.room[i];
    hbp_status status = plan_sets(&s, solution);
    if (status == HBP_E_INFEASIBLE) /* of the options, in sets: the step as one plan is there */
        status = hbp__forgive(context);
    for (int64_t i = 0; i < s.count + 2; i++)
        close_part(&context->memory, &s.room[i]);
    return hbp__leave(context, mark, status);
}
