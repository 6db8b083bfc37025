/* docs/explanation/step-bound.md states the bound and proves it; the names here are the ones used there. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "step/bound_class.h"
#include "step/bound_region.h"
#include "step/tuning.h"

typedef hbp__ask ask;

typedef struct bounding {
    const hbp__step *step;
    double fixed; /* B' */
    double loss;  /* that rounding takes off all micro-batches where B is below 1/2 */
    double margin;
    double ranks;
    ask *ask;      /* [count x degrees] */
    int has_rooms; /* hbp__bound_has_rooms */
    hbp__bound_class class;
    hbp__bound_region region; /* opened where it is looked at */
    double *scratch;          /* [hbp__bound_one_room] */
    double roughly;           /* what a rough look allows: counts are hardly to rule out more */
} bounding;

static int may_recompute(const bounding *b)
{
    for (int32_t j = 0; j < b->step->degrees; j++)
        if (b->step->degree[j].ways > 1)
            return 1;
    return 0;
}

/* For `micro_batches` or more of them: where layers may be recomputed to save some, memory is worth up to
 * what these cost by themselves. */
static void set_prices(bounding *b, double micro_batches)
{
    const double price[] = {0, b->fixed, b->fixed / 2};
    hbp__bound_class_set_prices(&b->class, micro_batches, price, may_recompute(b) ? 3 : 1);
}

/* Micro-batches that memory asks for, and pairs that exclude each other. */
static double least_micro_batches(const bounding *b, double *longest)
{
    const hbp__step *step = b->step;
    double share = 0;
    int64_t large = 0, widest = hbp__step_capacity(step);
    *longest = 0;
    for (int64_t k = 0; k < step->count; k++) {
        double least = (double)INFINITY, alone = (double)INFINITY;
        int32_t narrow = INT32_MAX;
        for (int32_t j = 0; j < step->degrees; j++) {
            const ask *a = &b->ask[k * step->degrees + j];
            if (a->needs && narrow == INT32_MAX)
                narrow = step->degree[j].degree;
            alone = a->alone < alone ? a->alone : alone;
            for (int32_t n = 0; n < a->needs; n++)
                least = a->need[n].share < least ? a->need[n].share : least;
        }
        large += step->tokens[k] > widest / 2 && narrow > step->ranks / 2;
        *longest = alone > *longest ? alone : *longest;
        share += least;
    }
    double needed = ceil(share / b->ranks * (1 - b->margin));
    double counted = (double)hbp__step_fewest_for_caps(step);
    needed = needed > (double)large ? needed : (double)large;
    needed = needed > counted ? needed : counted;
    needed =
        needed > (double)step->options.min_micro_batches ? needed : (double)step->options.min_micro_batches;
    double multiple = step->options.micro_batch_multiple;
    return ceil(needed / multiple) * multiple;
}

/* Whether nothing that the longest sequences, counted, take of the ranks rules out one micro-batch of all:
 * those of which a group of some degree does not hold one more in time. */
static hbp_status allows_counts(bounding *b, double time, int *allowed)
{
    static const double weight[] = {HBP__BOUND_COUNT_WEIGHTS};
    const hbp__step *step = b->step;
    double here[HBP__STEP_DEGREES];
    int64_t seen[HBP__STEP_DEGREES * HBP__BOUND_MOST_FIT];
    int32_t sights = 0;
    for (int32_t i = 0; i < step->degrees * HBP__BOUND_MOST_FIT && *allowed; i++) {
        int64_t longs =
            hbp__bound_one_longs(step, time, i / HBP__BOUND_MOST_FIT, 1 + i % HBP__BOUND_MOST_FIT);
        int is_new = longs > 0;
        for (int32_t k = 0; k < sights; k++)
            is_new = is_new && seen[k] != longs;
        if (!is_new)
            continue;
        seen[sights++] = longs;
        hbp__bound_count count = {.share = 0.5};
        for (int64_t quarter = 0; quarter < 4 && *allowed; quarter++) {
            double needed = hbp__bound_one_count(step, time, longs, quarter * (longs - 1) / 4, &count);
            *allowed = needed <= b->ranks * (1 + b->margin);
            HBP__TRY(hbp__tick(step->context, "bound", i, step->degrees * HBP__BOUND_MOST_FIT));
            for (size_t w = 0;
                 w < sizeof weight / sizeof *weight && *allowed && needed > b->ranks * HBP__BOUND_NEARLY_FULL;
                 w++)
                *allowed =
                    hbp__bound_one_allows(step, b->ask, time, weight[w], NULL, &count, b->scratch, here);
        }
    }
    return HBP_OK;
}

/* Whether no mix of time with memory, or with `room`, rules out one micro-batch of all; least[j] [degrees] is
 * kept up. */
static hbp_status allows_mixes(bounding *b, double time, const double *weights, int count, const double *room,
                               double *least, int *allowed)
{
    double here[HBP__STEP_DEGREES];
    for (int i = 0; i < count && *allowed; i++) {
        HBP__TRY(hbp__tick(b->step->context, "bound", i, count));
        *allowed = hbp__bound_one_allows(b->step, b->ask, time, weights[i], room, NULL, b->scratch, here);
        for (int32_t j = 0; j < b->step->degrees && *allowed; j++)
            least[j] = here[j] > least[j] ? here[j] : least[j];
    }
    return HBP_OK;
}

/* Ways of looking at one micro-batch, each slower than the one before. */
enum { ROUGHLY, CLOSELY, BY_REGIONS, LOOKS };

/* Whether nothing rules out one micro-batch of all within `time`. */
static hbp_status allows(bounding *b, double time, int look, int *allowed)
{
    static const double weights[] = {HBP__BOUND_WEIGHTS}, room_weights[] = {HBP__BOUND_ROOM_WEIGHTS};
    double least[HBP__STEP_DEGREES] = {0}, room[HBP__STEP_DEGREES];
    *allowed = hbp__bound_class_allows(&b->class, time);
    HBP__TRY(b->class.status);
    HBP__TRY(allows_mixes(b, time, weights, sizeof weights / sizeof *weights, NULL, least, allowed));
    if (b->has_rooms && *allowed) {
        hbp__bound_one_rooms(b->step, time, room);
        HBP__TRY(allows_mixes(b, time, room_weights, sizeof room_weights / sizeof *room_weights, room, least,
                              allowed));
    }
    if (*allowed && !(look == CLOSELY && time >= b->roughly))
        HBP__TRY(allows_counts(b, time, allowed));
    if (!*allowed || look == ROUGHLY)
        return HBP_OK;
    if (look == BY_REGIONS)
        return hbp__bound_region_allows(&b->region, time, allowed);
    return hbp__bound_one_allows_both(b->step, b->ask, time, least, b->scratch, allowed);
}

static hbp_status open(const hbp__step *step, bounding *b)
{
    hbp_context *context = step->context;
    memset(b, 0, sizeof *b);
    b->step = step;
    b->ranks = step->ranks;
    b->has_rooms = hbp__bound_has_rooms(step);
    b->margin = hbp__bound_margin(step->count);
    double least_ns = step->cost->terms.pack_ns - 0.5;
    b->fixed = least_ns > 0 ? least_ns : 0;
    int64_t most = step->options.max_micro_batches;
    most = most ? hbp__min_i64(most, step->count) : step->count;
    b->loss = (double)most * (b->fixed - least_ns);
    b->ask = hbp__take(context, (uint64_t)step->count * (uint64_t)step->degrees, sizeof *b->ask);
    b->scratch = hbp__take(context, hbp__bound_one_room(step), sizeof *b->scratch);
    HBP__TRY(hbp__scratch_check(context, "the bound of the step"));
    HBP__TRY(hbp__tick(context, "bound", 0, HBP__BOUND_CLASSES));
    HBP__TRY(hbp__bound_ask(step, b->ask));
    return hbp__bound_class_open(step, b->ask, &b->class);
}

/* The least makespan of one micro-batch of all, less B', that nothing here rules out, from *least on. */
static hbp_status least_one(bounding *b, double most, double *least)
{
    static const double precision[LOOKS] = {HBP__BOUND_LOOKS};
    for (int look = 0; look < LOOKS; look++) {
        double high = most;
        if (look == BY_REGIONS) {
            if ((most + b->fixed) * (1 - HBP__BOUND_WORTH_REGIONS) < *least + b->fixed)
                break;
            HBP__TRY(hbp__bound_region_open(b->step, b->ask, &b->region));
            if (b->region.kinds > HBP__BOUND_MOST_KINDS)
                break;
        }
        for (int i = 0; i < 40 && high - *least > precision[look] * high; i++) {
            double middle = *least + (high - *least) / 2;
            int allowed = 0;
            HBP__TRY(allows(b, middle, look, &allowed));
            if (allowed)
                high = middle;
            else
                *least = middle;
        }
        if (look == ROUGHLY)
            b->roughly = high;
    }
    return HBP_OK;
}

/* Ways of looking at the number of micro-batches. */
enum { AT_LEAST, JUST };

/* A bound on the sum over micro-batches, B' of each counted, for `micro_batches` or more of them, or just as
 * many; `upper` at most. */
static hbp_status bound_case(bounding *b, int number, double micro_batches, double longest, double upper,
                             double *bound)
{
    double most = upper - micro_batches * b->fixed, least = 0;
    *bound = upper;
    if (!(most > longest))
        return HBP_OK;
    if (number == JUST)
        hbp__bound_class_set_best_price(&b->class, micro_batches, most);
    else
        set_prices(b, micro_batches);
    HBP__TRY(b->class.status);
    HBP__TRY(hbp__bound_class_least(&b->class, longest, most, &least));
    if (number == JUST && micro_batches < 2)
        HBP__TRY(least_one(b, most, &least));
    *bound = least + micro_batches * b->fixed;
    return HBP_OK;
}

/* The least over the numbers of micro-batches there may be: some one by one, the rest together. A number is
 * looked at by itself where the bound of all from it on leaves something to be won. */
static hbp_status bound_cases(bounding *b, double upper, double *bound)
{
    double longest, first = least_micro_batches(b, &longest),
                    multiple = b->step->options.micro_batch_multiple;
    double most = b->step->options.max_micro_batches, rest, just, done = upper;
    int allowed = b->step->options.max_micro_batches > 0;
    HBP__TRY(bound_case(b, AT_LEAST, first, longest, upper, &rest));
    int cases = first <= HBP__BOUND_FEW_BATCHES ? HBP__BOUND_CASES : 0;
    for (int i = 0; i < cases && rest < done && rest < upper * (1 - HBP__BOUND_PRECISE);
         i++, first += multiple) {
        HBP__TRY(bound_case(b, JUST, first, longest, upper, &just));
        just = just > rest ? just : rest; /* both hold for this number */
        done = just < done ? just : done;
        if (allowed && first + multiple > most) {
            rest = upper; /* there are no more */
            break;
        }
        double before = rest;
        HBP__TRY(bound_case(b, AT_LEAST, first + multiple, longest, upper, &rest));
        rest = rest > before ? rest : before;
    }
    *bound = rest < done ? rest : done;
    return HBP_OK;
}

hbp_status hbp__step_bound(const hbp__step *step, int64_t upper_ns, int64_t *bound_ns)
{
    bounding b;
    double least = 0;
    if (step->cost->terms.lockstep_ranks)
        return hbp__bound_lanes(step, upper_ns, bound_ns);
    int64_t mark = hbp__scratch_mark(step->context);
    HBP__TRY(open(step, &b));
    HBP__TRY(bound_cases(&b, (double)upper_ns + b.loss, &least));
    double bound = least * (1 - b.margin) - b.loss - 1;
    *bound_ns = bound > 0 ? (int64_t)bound : 0;
    hbp__scratch_release(step->context, mark);
    return HBP_OK;
}
