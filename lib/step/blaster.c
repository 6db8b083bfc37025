#include "step/blaster.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "step/arrange.h"

/* Numbers of micro-batches tried. */
#define TRIES 5

#define EMPTY (-1)

/* need[i]: runs of at most `limit` tokens that i..count - 1 take, each as long as it can be. */
static hbp_status count_runs(hbp_context *context, const int64_t *length, int64_t count, int64_t limit,
                             int64_t *need)
{
    int64_t end = count, sum = 0;
    need[count] = 0;
    for (int64_t i = count - 1; i >= 0; i--) {
        HBP__TRY(hbp__tick_row(context, "micro-batches", i, count));
        sum += length[i];
        while (sum > limit)
            sum -= length[--end];
        need[i] = 1 + need[end];
    }
    return HBP_OK;
}

hbp_status hbp__step_blaster_cut(hbp_context *context, const int64_t *length, int64_t count, int64_t runs,
                                 int64_t *first)
{
    int64_t mark = hbp__scratch_mark(context);
    int64_t *need = hbp__take(context, (uint64_t)count + 1, sizeof *need);
    HBP__TRY(hbp__scratch_check(context, "a cut of the batch"));
    int64_t total = 0, longest = 0;
    for (int64_t i = 0; i < count; i++) {
        total += length[i];
        longest = hbp__max_i64(longest, length[i]);
    }
    int64_t low = hbp__max_i64(longest, hbp__ceil_div(total, runs)), limit = total;
    while (low < limit) {
        int64_t middle = low + (limit - low) / 2;
        HBP__TRY(count_runs(context, length, count, middle, need));
        if (need[0] <= runs)
            limit = middle;
        else
            low = middle + 1;
    }
    HBP__TRY(count_runs(context, length, count, limit, need));
    first[0] = 0;
    for (int64_t r = 0, at = 0; r < runs; r++) {
        /* Far enough that the others suffice for the rest, then on to the mean. */
        int64_t others = runs - r - 1, sum = length[at++], left = total;
        for (; at < count - others; at++) {
            if (need[at] <= others &&
                ((double)sum * (double)(others + 1) >= (double)left || sum + length[at] > limit))
                break;
            sum += length[at];
        }
        total -= sum;
        first[r + 1] = at;
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

typedef struct blast {
    const hbp__step *step;
    hbp__step_inner *inner;
    int64_t *member; /* [count] every sequence */
    int64_t *first;  /* [count + 1] into it */
    int64_t *number; /* [ranks] scratch: the new number of a group */
} blast;

/* Adds the groups of one micro-batch that hold something. */
static void append(const blast *b, const hbp__step_solution *part, int64_t first, int64_t members,
                   hbp__step_solution *solution)
{
    for (int64_t g = 0; g < part->groups; g++)
        b->number[g] = EMPTY;
    int64_t groups = solution->first[solution->micro_batches];
    for (int64_t i = 0; i < members; i++) {
        int64_t g = part->group[i];
        if (b->number[g] == EMPTY) {
            solution->degree[groups] = part->degree[g];
            b->number[g] = groups++;
        }
        solution->group[first + i] = b->number[g];
    }
    solution->first[++solution->micro_batches] = groups;
}

/* The step in `runs` micro-batches, which `first` begins. */
static hbp_status solve_runs(const blast *b, int64_t runs, hbp__step_solution *solution)
{
    const hbp__step *step = b->step;
    hbp_status worst = HBP_OK;
    HBP__TRY(hbp__step_arrange_open(step, solution));
    for (int64_t r = 0; r < runs; r++) {
        int64_t first = b->first[r], members = b->first[r + 1] - first;
        hbp__step_solution part = {.ns = 0};
        HBP__TRY(hbp__tick(step->context, "micro-batches", r, runs));
        hbp_status status = b->inner(step, b->member + first, members, NULL, NULL, &part);
        if (status > 0 && !part.group)
            status = HBP_E_INFEASIBLE; /* stopped with nothing in hand: try smaller ones */
        if (status >= 0) {
            append(b, &part, first, members, solution);
            solution->complete &= part.complete;
        }
        hbp__step_solution_close(&part);
        HBP__TRY(status);
        if (status > 0)
            worst = status;
    }
    hbp_status status = hbp__step_arrange_close(step, solution);
    return status < 0 ? status : worst;
}

/* The most tokens that one micro-batch holds. */
static int64_t cluster_capacity(const hbp__step *step)
{
    int64_t most = 0;
    for (int32_t j = 0; j < step->degrees; j++)
        most = hbp__max_i64(most, step->ranks / step->degree[j].degree * step->degree[j].capacity);
    return most;
}

static int64_t largest_run(const blast *b, int64_t runs)
{
    int64_t most = 0;
    for (int64_t r = 0; r < runs; r++) {
        int64_t sum = 0;
        for (int64_t i = b->first[r]; i < b->first[r + 1]; i++)
            sum += b->step->tokens[i];
        most = hbp__max_i64(most, sum);
    }
    return most;
}

/* Raises *runs until each holds strictly fewer tokens than the cluster, and cuts. */
static hbp_status cut_least(const blast *b, int64_t most, int64_t *runs)
{
    const hbp__step *step = b->step;
    int64_t capacity = cluster_capacity(step);
    *runs = hbp__max_i64(*runs, hbp__ceil_div(step->total_tokens, capacity));
    *runs = hbp__max_i64(*runs, hbp__step_fewest_for_caps(step));
    for (; *runs <= most; ++*runs) {
        HBP__TRY(hbp__step_blaster_cut(step->context, step->tokens, step->count, *runs, b->first));
        if (*runs == step->count || largest_run(b, *runs) < capacity)
            break;
    }
    return HBP_OK;
}

static hbp_status try_numbers(const blast *b, hbp__step_solution *best)
{
    const hbp__step *step = b->step;
    int64_t most = hbp__step_most_micro_batches(step), tries = 0;
    int64_t runs = hbp__min_i64(hbp__max_i64(step->options.min_micro_batches, 1), step->count);
    hbp_status kept = HBP_E_INFEASIBLE;
    HBP__TRY(cut_least(b, most, &runs));
    for (; runs <= most && tries < TRIES; runs++) {
        hbp__step_solution trial = {.ns = 0};
        hbp_status status = hbp__step_blaster_cut(step->context, step->tokens, step->count, runs, b->first);
        if (status >= 0)
            status = solve_runs(b, runs, &trial);
        if (status >= 0) {
            if (kept < 0 || trial.ns < best->ns)
                kept = status;
            hbp__step_keep_faster(best, &trial);
        }
        hbp__step_solution_close(&trial);
        if (status < 0 && status != HBP_E_INFEASIBLE)
            return status;
        tries += kept >= 0;
        if (kept >= 0 && hbp__step_is_late(step)) {
            best->complete &= tries == TRIES || runs == most;
            break;
        }
    }
    if (kept < 0)
        return hbp__fail(step->context, HBP_E_INFEASIBLE,
                         "no cut of the batch into at most %lld micro-batches holds every sequence",
                         (long long)most);
    return kept;
}

hbp_status hbp__step_blast(const hbp__step *step, hbp__step_inner *inner, hbp__step_solution *solution)
{
    hbp_context *context = step->context;
    int64_t mark = hbp__scratch_mark(context);
    blast b = {step, inner, NULL, NULL, NULL};
    b.member = hbp__take(context, (uint64_t)step->count, sizeof *b.member);
    b.first = hbp__take(context, (uint64_t)step->count + 1, sizeof *b.first);
    b.number = hbp__take(context, (uint64_t)step->ranks, sizeof *b.number);
    HBP__TRY(hbp__scratch_check(context, "a cut of the batch"));
    for (int64_t i = 0; i < step->count; i++)
        b.member[i] = i;
    return hbp__leave(context, mark, try_numbers(&b, solution));
}
