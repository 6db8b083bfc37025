#include "step/rounds.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "step/arrange.h"

/* Sequences between two looks at a request to cancel: each may look at all groups. */
#define TICK_SEQUENCES 8192

/* The group of a sequence that was taken out of one. */
#define REMOVED (-2)

int hbp__step_round_holds(const hbp__step_round *round, int64_t sequence, int32_t j)
{
    const hbp__step *step = round->step;
    return step->degree[j].tokens[sequence] <= round->limit[j] &&
           (!step->vision || hbp__step_holds_alone(step, j, sequence));
}

int hbp__step_round_takes(const hbp__step_round *round, int64_t sequence, int64_t group)
{
    const hbp__step *step = round->step;
    int32_t j = round->degree[group];
    const hbp__load *load = &round->load[group];
    return load->tokens + step->degree[j].tokens[sequence] <= round->limit[j] &&
           hbp__step_takes(step, j, load, sequence);
}

int32_t hbp__step_round_least(const hbp__step_round *round, int64_t sequence)
{
    int32_t j = 0;
    while (!hbp__step_round_holds(round, sequence, j))
        j++;
    return j;
}

double hbp__step_round_work(const hbp__step_round *round, int64_t sequence, int32_t j)
{
    double tokens = (double)round->step->degree[j].tokens[sequence];
    return tokens * tokens / (double)round->step->degree[j].degree;
}

int hbp__step_round_has_ranks(hbp__step_round *round, int32_t j)
{
    const hbp__step *step = round->step;
    if (round->used + step->degree[j].degree > step->ranks)
        return 0;
    if (step->chain)
        return 1;
    round->degree[round->groups] = j;
    return hbp__step_place(step, round->degree, round->groups + 1, NULL);
}

hbp_status hbp__step_round_listen(const hbp__step_round *round, int64_t i)
{
    const hbp__step *step = round->step;
    if ((i + 1) % TICK_SEQUENCES)
        return HBP_OK;
    return hbp__tick(step->context, "micro-batches", step->count - round->lefts, step->count);
}

int64_t hbp__step_round_open(hbp__step_round *round, int32_t j)
{
    int64_t group = round->groups++;
    round->degree[group] = j;
    round->load[group] = (hbp__load){0, 0, 0, 0};
    round->work[group] = 0;
    round->used += round->step->degree[j].degree;
    return group;
}

void hbp__step_round_add(hbp__step_round *round, int64_t sequence, int64_t group)
{
    int32_t j = round->degree[group];
    round->group[sequence] = group;
    round->load[group] = hbp__step_load_with(round->step, j, round->load[group], sequence);
    round->work[group] += hbp__step_round_work(round, sequence, j);
}

void hbp__step_round_remove(hbp__step_round *round, int64_t sequence)
{
    int64_t group = round->group[sequence];
    round->group[sequence] = REMOVED;
    round->removed[round->removals++] = sequence;
    int32_t j = round->degree[group];
    round->load[group] = hbp__step_load_without(round->step, j, round->load[group], sequence);
    round->work[group] -= hbp__step_round_work(round, sequence, j);
}

/* Tokens of a group were it of step->degree[j]. */
static int64_t tokens_at(const hbp__step_round *round, int64_t group, int32_t j)
{
    int64_t tokens = 0;
    if (!round->step->padded)
        return round->load[group].tokens;
    for (int64_t i = 0; i < round->lefts; i++)
        if (round->group[round->left[i]] == group)
            tokens += round->step->degree[j].tokens[round->left[i]];
    return tokens;
}

/* Whether step->degree[j] holds a group: its tokens at once, or where it is cut each of its sequences. */
static int holds_group(const hbp__step_round *round, int64_t group, int32_t j, int64_t tokens)
{
    hbp__load load = round->load[group];
    load.tokens = tokens;
    if (!round->cuts)
        return tokens <= round->limit[j] && hbp__step_holds(round->step, j, load);
    for (int64_t i = 0; i < round->lefts; i++)
        if (round->group[round->left[i]] == group && !hbp__step_round_holds(round, round->left[i], j))
            return 0;
    return 1;
}

/* The index of the degree twice that of a group, if it is used and holds it, with `*tokens` then; or -1. */
static int32_t find_double(const hbp__step_round *round, int64_t group, int64_t *tokens)
{
    const hbp__step_degree *degree = round->step->degree;
    int32_t j = round->degree[group];
    for (int32_t k = j + 1; k < round->step->degrees; k++)
        if (degree[k].degree == 2 * degree[j].degree) {
            *tokens = tokens_at(round, group, k);
            return holds_group(round, group, k, *tokens) ? k : -1;
        }
    return -1;
}

/* Doubles one group; zero when it cannot be. */
static int widen(hbp__step_round *round, int64_t group)
{
    const hbp__step *step = round->step;
    int64_t tokens = 0;
    int32_t j = round->degree[group], k = find_double(round, group, &tokens);
    int32_t more = step->degree[j].degree;
    if (k < 0 || round->used + more > step->ranks)
        return 0;
    round->degree[group] = k;
    if (!hbp__step_place(step, round->degree, round->groups, NULL)) {
        round->degree[group] = j;
        return 0;
    }
    round->used += more;
    round->load[group].tokens = tokens;
    return 1;
}

void hbp__step_round_widen(hbp__step_round *round)
{
    while (round->used < round->step->ranks) {
        int32_t least = round->step->degrees;
        for (int64_t g = 0; g < round->groups; g++)
            least = round->degree[g] < least ? round->degree[g] : least;
        int64_t g = 0;
        while (g < round->groups && !(round->degree[g] == least && widen(round, g)))
            g++;
        if (g == round->groups)
            return;
    }
}

static int is_power_of_two(int32_t x)
{
    return (x & (x - 1)) == 0;
}

/* Whether every sequence has a degree. */
static int hold_all(const hbp__step_round *round)
{
    const hbp__step *step = round->step;
    for (int64_t i = 0; i < step->count; i++) {
        int32_t j = 0;
        while (j < step->degrees && !hbp__step_round_holds(round, i, j))
            j++;
        if (j == step->degrees)
            return 0;
    }
    return 1;
}

/* Sets the limits of the degrees used: powers of two, or all where a sequence fits no power of two. */
static void set_limits(hbp__step_round *round)
{
    const hbp__step *step = round->step;
    for (int all = 0; all < 2 && (!all || !hold_all(round)); all++)
        for (int32_t j = 0; j < step->degrees; j++)
            round->limit[j] =
                all || is_power_of_two(step->degree[j].degree) ? hbp__step_sequence_most(step, j) : 0;
}

/* Whether a pack of at most `most` tokens has room for sequence k as well. */
static int pack_takes(const hbp__step *step, int32_t j, const hbp__load *pack, int64_t k, int64_t most)
{
    return pack->tokens + step->degree[j].tokens[k] <= most && hbp__step_takes(step, j, pack, k);
}

/* First fit of a group's sequences into packs of at most `most` tokens, or of one sequence; raises each of
 * `slowest` to the time of the group's pack. */
static hbp_status fill_packs(hbp__step_round *round, int64_t group, int64_t most, const int64_t *added,
                             int64_t count, int64_t *filled)
{
    const hbp__step *step = round->step;
    hbp__step_packs *packs = &round->packs;
    int32_t j = round->degree[group];
    int64_t used = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t k = added[i], p = 0;
        HBP__TRY(hbp__step_round_listen(round, i));
        if (round->group[k] != group)
            continue;
        while (p < used && !pack_takes(step, j, &packs->load[p], k, most))
            p++;
        if (p == used)
            packs->load[used++] = (hbp__load){0, 0, 0, 0};
        packs->load[p] = hbp__step_load_with(step, j, packs->load[p], k);
        round->pack[k] = p;
    }
    for (int64_t p = 0; p < used; p++) {
        int64_t ns = hbp__step_group_ns(step, j, packs->load[p]);
        packs->slowest[p] = hbp__max_i64(packs->slowest[p], ns);
    }
    *filled = used;
    return HBP_OK;
}

/* Cuts every group into packs as large as can be, or `plain` ones, of which nothing is recomputed that need
 * not be; *ns gets the time of the round. */
static hbp_status cut(hbp__step_round *round, int plain, const int64_t *added, int64_t count, int64_t *ns)
{
    for (int64_t p = 0; p < count; p++)
        round->packs.slowest[p] = 0;
    round->packs.count = 0;
    for (int64_t g = 0; g < round->groups; g++) {
        const hbp__step_degree *degree = &round->step->degree[round->degree[g]];
        int64_t most = plain ? degree->way[0].capacity : degree->capacity;
        int64_t packs;
        HBP__TRY(fill_packs(round, g, most, added, count, &packs));
        round->packs.count = hbp__max_i64(round->packs.count, packs);
    }
    *ns = 0;
    for (int64_t p = 0; p < round->packs.count; p++)
        *ns = hbp__add_saturating(*ns, round->packs.slowest[p]);
    return HBP_OK;
}

hbp_status hbp__step_round_cut(hbp__step_round *round, const int64_t *added, int64_t count)
{
    int64_t plain, full;
    HBP__TRY(cut(round, 1, added, count, &plain));
    HBP__TRY(cut(round, 0, added, count, &full));
    return full > plain ? cut(round, 1, added, count, &plain) : HBP_OK;
}

/* Lists those that found a group by their pack, in order: round->listed[round->first[p]..] are of pack p. */
static hbp_status list_by_pack(hbp__step_round *round)
{
    int64_t packs = hbp__max_i64(round->packs.count, 1), *next = round->first + 1; /* shifted by one */
    memset(round->first, 0, (size_t)(packs + 2) * sizeof *round->first);
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < round->lefts; i++) {
            HBP__TRY(hbp__tick_row(round->step->context, "micro-batches", i, round->lefts));
            int64_t k = round->left[i];
            if (round->group[k] < 0 || round->pack[k] >= packs)
                continue;
            if (pass)
                round->listed[next[round->pack[k]]++] = k;
            else
                next[round->pack[k] + 1]++;
        }
        for (int64_t p = 0; !pass && p < packs; p++)
            next[p + 1] += next[p];
    }
    return HBP_OK;
}

/* Appends the p-th packs of the round's groups as a micro-batch. */
static void append(hbp__step_round *round, int64_t p, hbp__step_solution *solution)
{
    int64_t base = solution->first[solution->micro_batches], groups = 0;
    for (int64_t g = 0; g < round->groups; g++)
        round->row[g] = -1;
    for (int64_t i = round->first[p]; i < round->first[p + 1]; i++) {
        int64_t k = round->listed[i], g = round->group[k];
        if (round->row[g] < 0) {
            solution->degree[base + groups] = round->degree[g];
            round->row[g] = base + groups++;
        }
        solution->group[k] = round->row[g];
    }
    solution->first[++solution->micro_batches] = base + groups;
}

/* Appends the round to the solution, and keeps in `left` what waits. */
static hbp_status close_round(hbp__step_round *round, int64_t *left, hbp__step_solution *solution)
{
    int64_t waits = 0;
    HBP__TRY(list_by_pack(round));
    for (int64_t p = 0; p == 0 || p < round->packs.count; p++) {
        append(round, p, solution);
        HBP__TRY(hbp__tick_row(round->step->context, "micro-batches", p, round->packs.count));
    }
    for (int64_t i = 0; i < round->lefts; i++)
        if (round->group[left[i]] == HBP__STEP_WAITS)
            left[waits++] = left[i];
    for (int64_t i = 0; i < round->removals; i++) {
        left[waits++] = round->removed[i];
        round->group[round->removed[i]] = HBP__STEP_WAITS;
    }
    round->lefts = waits;
    return HBP_OK;
}

static hbp_status run_round(hbp__step_round *round, int64_t *left, int64_t *scratch, hbp__step_form *form,
                            hbp__step_solution *solution)
{
    const hbp__step *step = round->step;
    set_limits(round);
    HBP__TRY(hbp__step_arrange_open(step, solution));
    for (int64_t i = 0; i < step->count; i++) {
        left[i] = i;
        round->group[i] = HBP__STEP_WAITS;
        round->pack[i] = 0;
    }
    round->left = left;
    round->lefts = step->count;
    while (round->lefts > 0) {
        HBP__TRY(hbp__tick(step->context, "micro-batches", step->count - round->lefts, step->count));
        round->groups = round->used = 0;
        round->packs.count = round->removals = 0;
        HBP__TRY(form(round, scratch));
        HBP__TRY(close_round(round, left, solution));
    }
    return hbp__step_arrange_close(step, solution);
}

hbp_status hbp__step_rounds(const hbp__step *step, hbp__step_form *form, int cuts,
                            hbp__step_solution *solution)
{
    hbp_context *context = step->context;
    int64_t mark = hbp__scratch_mark(context);
    uint64_t ranks = (uint64_t)step->ranks;
    hbp__step_round round = {.step = step, .cuts = cuts};
    round.degree = hbp__take(context, ranks, sizeof *round.degree);
    round.load = hbp__take(context, ranks, sizeof *round.load);
    round.work = hbp__take(context, ranks, sizeof *round.work);
    round.row = hbp__take(context, ranks, sizeof *round.row);
    round.group = hbp__take(context, (uint64_t)step->count, 8 * sizeof *round.group);
    round.first = hbp__take(context, (uint64_t)step->count + 3, sizeof *round.first);
    round.listed = hbp__take(context, (uint64_t)step->count, sizeof *round.listed);
    round.packs.load = hbp__take(context, (uint64_t)step->count, sizeof *round.packs.load);
    HBP__TRY(hbp__scratch_check(context, "the groups of the step"));
    round.pack = round.group + step->count;
    round.removed = round.pack + step->count;
    round.packs.slowest = round.removed + step->count;
    int64_t *left = round.packs.slowest + step->count;
    return hbp__leave(context, mark, run_round(&round, left, left + step->count, form, solution));
}
