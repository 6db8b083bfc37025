/* The direct search (docs/explanation/step.md): steps are built with several numbers of micro-batches, pairs
 * of micro-batches divided anew, and each micro-batch shortened; more effort is more rounds of it. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "step/bound_class.h"
#include "step/builder.h"
#include "step/tuning.h"

enum { STREAM = 0x73746570 };

typedef struct search {
    const hbp__step *step;
    hbp__step_builder builder;
    hbp__step_board board; /* under construction */
    hbp__step_board best;
    hbp__rng rng;
    double best_time; /* of `best`, time_of_others counted */
    double bound;     /* what no number of micro-batches can beat by its rank-time; 0: not known yet */
    double longest;   /* nor by its longest sequence */
    int64_t least;    /* micro-batches that memory asks for */
    int64_t most;
    int64_t worked; /* of the rounds done */
} search;

/* What so many micro-batches ask for beside themselves: others, which the shortest sequences fill. */
static double time_of_others(const search *s, int64_t micro_batches)
{
    const hbp__step *step = s->step;
    int64_t others = hbp__step_whole(step, micro_batches) - micro_batches, k = step->count - 1;
    if (step->count / step->ranks >= micro_batches + others)
        k = step->count - step->ranks;
    double least = (double)INFINITY;
    for (int32_t j = 0; j < step->degrees; j++) {
        double alone = s->builder.filler.alone[k * step->degrees + j];
        least = alone < least ? alone : least;
    }
    return (double)others * least;
}

static double time_of(const search *s, const hbp__step_board *b)
{
    return hbp__step_board_time(b) + time_of_others(s, b->micro_batches);
}

static void keep_better(search *s)
{
    double time = time_of(s, &s->board);
    if (!(time < s->best_time))
        return;
    s->best_time = time;
    hbp__step_board_copy(s->step, &s->board, &s->best);
}

/* Whether a group of the step built holds as many samples as it may. */
static int is_capped(const search *s)
{
    const hbp__step_board *b = &s->board;
    for (int64_t m = 0; m < b->micro_batches; m++)
        for (int64_t g = m * b->ranks; g < m * b->ranks + b->groups[m]; g++)
            if (b->group[g].load.samples == s->step->most_samples)
                return 1;
    return 0;
}

/* Where samples are scarce, a step as it is built is further from the best of its number of micro-batches
 * than numbers are from one another: it is improved a little before it is compared. */
static void improve_capped(search *s)
{
    hbp__step_builder *b = &s->builder;
    hbp__step_board *board = &s->board;
    int64_t start = b->work + b->squeezer.work, all = b->work_limit, work = (all - start) / HBP__STEP_CAPPED;
    b->work_limit = start + work / 2;
    for (int64_t m = 0; m + 1 < board->micro_batches && hbp__step_go_on(b); m++)
        hbp__step_recut(b, board, m, m + 1, 0);
    for (int64_t m = 0; m < board->micro_batches; m++) {
        int64_t done = b->work + b->squeezer.work;
        b->work_limit = done + (start + work - done) / (board->micro_batches - m);
        if (hbp__step_go_on(b))
            hbp__step_shorten(b, board, m, 0);
    }
    b->work_limit = all;
    hbp__step_board_trim(board);
}

/* Builds steps of m micro-batches; zero when the search is over. */
static int build_some(search *s, int64_t m, int32_t round)
{
    static const double part[] = {HBP__BUILD_DENSITY};
    hbp__step_builder *b = &s->builder;
    const int32_t parts = sizeof part / sizeof *part;
    double fill = (double)s->step->total_tokens / (b->room * (double)m);
    int32_t densities = m == 1 || fill < HBP__BUILD_LOOSE ? 1 : HBP__BUILD_ORDERS;
    for (int32_t i = 0; i < densities; i++) {
        double density = densities == 1 ? HBP__BUILD_FREE
                                        : fill + (1 - fill) * part[(i + HBP__BUILD_ORDERS * round) % parts];
        if (hbp__step_build(b, &s->board, m, density < 1 ? density : 1)) {
            keep_better(s);
            if (is_capped(s)) {
                improve_capped(s);
                keep_better(s);
            }
        }
        if (!hbp__step_go_on(b))
            return 0;
    }
    return 1;
}

/* Builds steps of more and more micro-batches until there is one. */
static void build_any(search *s, int64_t first, int32_t round)
{
    for (int64_t m = first; m <= s->most && !(s->best_time < (double)INFINITY);) {
        if (!build_some(s, m, round))
            return;
        m += m < first + 3 ? 1 : 1 + m / 4;
    }
}

/* What no step of just m micro-batches can beat, for m from `first` on into least[], until more cannot pay.
 * Returns how many. */
static int32_t bound_numbers(search *s, int64_t first, double *least)
{
    hbp__step_builder *b = &s->builder;
    hbp__bound_class class;
    int32_t numbers = 0;
    double before = (double)INFINITY;
    if (b->status < 0)
        return 0;
    int64_t mark = hbp__scratch_mark(s->step->context);
    b->status = hbp__bound_class_open(s->step, b->ask, &class);
    for (int64_t m = b->status < 0 ? s->most + 1 : first; m <= s->most && numbers < HBP__STEP_NUMBERS; m++) {
        double by_itself = (double)hbp__step_whole(s->step, m) * b->fixed;
        double here = by_itself + hbp__bound_class_set_best_price(&class, (double)m, s->best_time);
        if (class.status < 0) {
            b->status = class.status;
            break;
        }
        b->work += HBP__STEP_NUMBER_WORK * s->step->count;
        least[numbers++] = here;
        if (here >= s->best_time && here >= before)
            break;
        before = here;
    }
    hbp__scratch_release(s->step->context, mark);
    return numbers;
}

/* Builds steps of the numbers of micro-batches that may beat the best, the most promising first. */
static void build_all(search *s, int32_t round)
{
    double least[HBP__STEP_NUMBERS];
    int64_t first = hbp__max_i64(s->least, hbp__min_i64(s->step->options.min_micro_batches, s->most));
    build_any(s, first, round);
    if (!(s->best_time < (double)INFINITY))
        return;
    int32_t numbers = bound_numbers(s, first, least);
    for (int32_t i = 0; i < numbers; i++) {
        int32_t best = 0;
        for (int32_t n = 1; n < numbers; n++)
            best = least[n] < least[best] ? n : best;
        s->bound = i ? s->bound : least[best];
        if (least[best] >= s->best_time || !build_some(s, first + best, round))
            return;
        least[best] = (double)INFINITY;
    }
}

/* Shuffles a copy of the best board, letting it grow a little longer in between, ever less as the work is
 * done. */
static void wander(search *s, int64_t start)
{
    hbp__step_builder *b = &s->builder;
    int64_t idle = 0;
    hbp__step_board_copy(s->step, &s->best, &s->board);
    while (hbp__step_go_on(b)) {
        double left = 1 - (double)(b->work + b->squeezer.work - start) / (double)(b->work_limit - start);
        double slack = hbp__rng_below(&s->rng, 3)
                           ? 0
                           : HBP__SHUFFLE_SLACK * left * s->best_time / (double)s->best.micro_batches;
        if (!hbp__step_shuffle(b, &s->board, s->most, slack, &s->rng) && ++idle < HBP__SHUFFLE_IDLE)
            continue;
        hbp__step_board_trim(&s->board);
        if (time_of(s, &s->board) < s->best_time * (1 - 1e-9)) {
            keep_better(s);
            idle = 0;
        } else if (idle >= HBP__SHUFFLE_IDLE) {
            hbp__step_board_copy(s->step, &s->best, &s->board);
            idle = 0;
        }
    }
}

/* Builds a step level by level; whatever else comes of the round has the rest of its work, at least a half.
 */
static void build_levels(search *s, int32_t round)
{
    static const double price[] = {HBP__STEP_LEVEL_PRICES};
    const int32_t prices = sizeof price / sizeof *price;
    hbp__step_builder *b = &s->builder;
    int64_t start = b->work + b->squeezer.work, all = b->work_limit;
    b->work_limit = hbp__add_saturating(start, hbp__mul_saturating(all - start, HBP__STEP_LEVELS_WORK));
    if (hbp__step_build_levels(b, &s->board, s->most, price[round % prices], round))
        keep_better(s);
    int64_t used = b->work + b->squeezer.work - start, work = all - start;
    b->work_limit = start + hbp__max_i64(work, used + work / 2);
}

static void improve(search *s, int32_t round)
{
    hbp__step_board *best = &s->best;
    hbp__step_builder *b = &s->builder;
    int64_t start = b->work + b->squeezer.work, all = b->work_limit;
    b->work_limit = start + (all - start) / 4;
    for (int64_t apart = 1, changed = 1; apart < best->micro_batches && changed; apart++)
        for (int64_t m = 0; m + apart < best->micro_batches && hbp__step_go_on(b); m++)
            changed += hbp__step_recut(b, best, m, m + apart, round);
    start = b->work + b->squeezer.work;
    b->work_limit = start + (all - start) / 2;
    hbp__step_board_trim(best);
    s->best_time = time_of(s, best);
    if (s->most > 1)
        wander(s, start);
    for (int64_t m = 0; m < best->micro_batches; m++) {
        start = b->work + b->squeezer.work;
        b->work_limit = start + (all - start) / (best->micro_batches - m);
        if (hbp__step_go_on(b))
            hbp__step_shorten(b, best, m, round);
    }
    b->work_limit = all;
    hbp__step_board_trim(best);
    s->best_time = time_of(s, best);
}

/* Whether a plan of solution a takes less than one of b. A micro-batch of padding packs is worth nothing. */
static int is_shorter(const search *s, const hbp__step_solution *a, const hbp__step_solution *b)
{
    const hbp__step *step = s->step;
    int64_t mine = hbp__step_whole(step, a->micro_batches) - a->micro_batches;
    int64_t theirs = hbp__step_whole(step, b->micro_batches) - b->micro_batches;
    if (mine == theirs)
        return a->ns < b->ns;
    double more = time_of_others(s, a->micro_batches) - time_of_others(s, b->micro_batches);
    return (double)a->ns + more - (double)(mine - theirs) * s->builder.fixed < (double)b->ns;
}

/* The best board in the place of a longer solution, judged by what plans record. */
static hbp_status keep_if_shorter(const search *s, hbp__step_solution *solution)
{
    hbp__step_solution own = {.ns = 0};
    hbp_status status = hbp__step_board_write(s->step, &s->best, &own);
    if (status >= 0 && (!solution->first || is_shorter(s, &own, solution))) {
        hbp__step_solution_close(solution);
        *solution = own;
        return HBP_OK;
    }
    hbp__step_solution_close(&own);
    return status;
}

/* Steps of one degree, dealt evenly, beside the best, and improved where they are shorter; `work` is a
 * round's. */
static hbp_status deal_evenly(search *s, int64_t work, hbp__step_solution *solution)
{
    hbp__step_solution own = {.ns = 0};
    hbp__step_builder *b = &s->builder;
    double before = s->best_time;
    hbp_status status = hbp__step_even(b, s->most, before < 9e18 ? (int64_t)ceil(before) : INT64_MAX, &own);
    if (status >= 0 && own.first)
        status = hbp__step_board_read(s->step, &own, &s->board);
    if (status >= 0 && own.first) {
        keep_better(s);
        if (!solution->first || is_shorter(s, &own, solution)) {
            hbp__step_solution longer = *solution;
            *solution = own;
            own = longer;
        }
    }
    hbp__step_solution_close(&own);
    HBP__TRY(status);
    if (!(s->best_time < before))
        return HBP_OK;
    b->work_limit = b->work + b->squeezer.work + work / HBP__EVEN_IMPROVED;
    improve(s, 0);
    return keep_if_shorter(s, solution);
}

/* The best of the simple ways of planning, which take next to no time: the search begins no worse than any.
 * `sure` gets the micro-batches of first fit, which always finds a plan. */
static hbp_status try_simple_ways(const hbp__step *step, hbp__step_solution *best, int64_t *sure)
{
    hbp_status (*const way[])(const hbp__step *, hbp__step_solution *) = {
        hbp__step_first_fit, hbp__step_static_sp, hbp__step_homogeneous_sp, hbp__step_hybrid_cp,
        hbp__step_dynamic_cp};
    int64_t allowed = step->options.max_micro_batches;
    int32_t ways = allowed == 1 ? 1 : 5;
    for (int32_t i = 0; i < ways; i++) {
        if (i == 3 && step->count > HBP__STEP_SIMPLE &&
            hbp__mul_saturating(hbp__mul_saturating(step->count, *sure), step->ranks) > HBP__STEP_SIMPLE_WORK)
            break;
        hbp__step_solution own = {.ns = 0};
        hbp_status status = way[i](step, &own);
        if (!i)
            *sure = own.micro_batches;
        int fits = status >= 0 && (!allowed || hbp__step_whole(step, own.micro_batches) <= allowed);
        if (fits && (!best->first || own.ns < best->ns)) {
            hbp__step_solution_close(best);
            *best = own;
            continue;
        }
        hbp__step_solution_close(&own);
        if (status == HBP_E_INFEASIBLE)
            status = hbp__forgive(step->context);
        HBP__TRY(status);
    }
    return HBP_OK;
}

/* Work of the first round for so many sequences. */
static int64_t first_work(int64_t count, int by_value)
{
    int64_t work = by_value ? HBP__STEP_WORK : HBP__STEP_WORK_ONCE;
    work += HBP__STEP_WORK_SEQUENCE * count + HBP__STEP_WORK_SHARED / (count + 16);
    return work * hbp__min_i64(count, HBP__STEP_ARRANGED) / HBP__STEP_ARRANGED;
}

/* Work that a step of so many ns is worth at effort 1. */
static double work_worth(double step_ns)
{
    return step_ns / 1e9 * HBP__STEP_WORTH * HBP__STEP_WORK_PER_SECOND;
}

int hbp__step_may_go_on(int64_t count, double step_ns)
{
    return (double)first_work(count, 1) * (1 + HBP__STEP_WORK_FACTOR) <= work_worth(step_ns);
}

/* Whether one more round of so much work than effort asks for is worth its time: it is no large part of the
 * step's, and the plan is not near the bound. */
static hbp_status is_worth(search *s, int32_t rounds, int64_t work, hbp__step_solution *solution, int *worth)
{
    const hbp__step *step = s->step;
    double budget = work_worth((double)solution->ns);
    for (int32_t i = 1; i < step->options.effort && budget < 1e18; i++)
        budget *= HBP__STEP_WORK_FACTOR;
    *worth = step->by_value && rounds == step->options.effort && solution->first && !s->builder.late &&
             (double)s->worked + (double)work <= budget;
    if (*worth)
        HBP__TRY(hbp__step_bound(step, solution->ns, &solution->bound_ns));
    *worth = *worth &&
             (double)(solution->ns - solution->bound_ns) > (double)solution->bound_ns * HBP__STEP_NEAR_ENOUGH;
    return HBP_OK;
}

hbp_status hbp__step_longest_ns(const hbp__step *step, double *ns)
{
    double longest = 0, shortest = (double)INFINITY;
    for (int64_t k = 0; k < step->count; k++) {
        double alone = (double)INFINITY;
        HBP__TRY(hbp__tick_row(step->context, "step", k, step->count));
        for (int32_t j = 0; j < step->degrees; j++)
            if (hbp__step_holds_alone(step, j, k))
                alone = hbp__min_f64(alone, hbp__step_group_time(step, j, hbp__step_load_of(step, j, k)));
        longest = hbp__max_f64(longest, alone);
        shortest = hbp__min_f64(shortest, alone);
    }
    const int64_t whole = hbp__step_whole(step, 1), used = hbp__min_i64(whole, step->count);
    *ns = longest + (double)(used - 1) * shortest + (double)(whole - used) * step->cost->terms.pack_ns;
    return HBP_OK;
}

int hbp__step_is_least(const hbp__step *step, double ns, double least)
{
    const double left = step->options.effort > 1 ? 1e-9 : HBP__STEP_DONE;
    return ns <= least * (1 + left);
}

static int is_done(const search *s)
{
    return hbp__step_is_least(s->step, s->best_time, hbp__max_f64(s->bound, s->longest));
}

static hbp_status run_round(search *s, int32_t round, int64_t work, hbp__step_solution *solution)
{
    hbp__step_builder *b = &s->builder;
    b->work_limit = b->work + b->squeezer.work + work;
    build_levels(s, round);
    int64_t limit = b->work_limit, done = b->work + b->squeezer.work;
    if (s->best_time < (double)INFINITY)
        b->work_limit = done + (int64_t)((double)(limit - done) * HBP__STEP_BUILD);
    if (s->best.micro_batches <= HBP__STEP_FEW_BATCHES || !(s->best_time < (double)INFINITY))
        build_all(s, round);
    b->work_limit = limit;
    if (s->best_time < (double)INFINITY) {
        if (!is_done(s))
            improve(s, round);
        hbp__step_listen(b);
        HBP__TRY(hbp__step_status(b));
        HBP__TRY(keep_if_shorter(s, solution));
    }
    if (!round && !is_done(s))
        HBP__TRY(deal_evenly(s, work, solution));
    return hbp__step_status(b);
}

/* Rounds of ever more work: as many as effort, and one more where it is worth it. The rounds of less effort
 * are the first of those of more. */
static hbp_status run_rounds(search *s, hbp__step_solution *solution)
{
    const hbp__step *step = s->step;
    int64_t work = first_work(step->count, step->by_value) / hbp__max_i64(step->parts, 1);
    int worth = 1;
    for (int32_t round = 0; worth; round++) {
        HBP__TRY(run_round(s, round, work, solution));
        s->worked = hbp__add_saturating(s->worked, work);
        work = hbp__mul_saturating(work, HBP__STEP_WORK_FACTOR);
        if (round + 1 >= step->options.effort)
            HBP__TRY(is_worth(s, round + 1, work, solution, &worth));
    }
    return HBP_OK;
}

static hbp_status run_search(search *s, hbp__step_solution *solution)
{
    const hbp__step *step = s->step;
    hbp__step_builder *b = &s->builder;
    int64_t sure = 0, allowed = step->options.max_micro_batches;
    HBP__TRY(try_simple_ways(step, solution, &sure));
    HBP__TRY(hbp__step_builder_open(step, b));
    s->least = (int64_t)ceil((double)step->total_tokens / b->room);
    s->least = hbp__max_i64(s->least, hbp__step_fewest_for_caps(step));
    s->most = hbp__max_i64(hbp__max_i64(sure, s->least), hbp__step_plain_least(step));
    s->most = hbp__min_i64(2 * s->most + 4, step->count);
    s->most = hbp__max_i64(s->most, hbp__min_i64(step->options.min_micro_batches, step->count));
    if (allowed)
        s->most = hbp__min_i64(s->most, allowed / step->options.micro_batch_multiple *
                                            step->options.micro_batch_multiple);
    s->most = hbp__max_i64(s->most, solution->micro_batches);
    HBP__TRY(hbp__step_board_open(step, s->most, &s->board));
    HBP__TRY(hbp__step_board_open(step, s->most, &s->best));
    s->best_time = (double)INFINITY;
    HBP__TRY(hbp__step_longest_ns(step, &s->longest));
    s->rng = hbp__rng_make(0, 0, STREAM);
    if (solution->first) {
        HBP__TRY(hbp__step_board_read(step, solution, &s->board));
        hbp__step_board_trim(&s->board);
        keep_better(s);
    }
    HBP__TRY(run_rounds(s, solution));
    if (!(s->best_time < (double)INFINITY))
        return hbp__fail(
            step->context, HBP_E_INFEASIBLE,
            "no plan of at most %d micro-batches was found; memory alone asks for %lld, and %lld are sure "
            "to do",
            (int)allowed, (long long)s->least, (long long)sure);
    solution->complete = !b->late;
    return HBP_OK;
}

hbp_status hbp__step_search(const hbp__step *step, hbp__step_solution *solution)
{
    if (hbp__step_is_tiny(step)) {
        HBP__TRY(hbp__step_solve_tiny(step, solution));
        if (solution->first)
            return HBP_OK;
    }
    search s;
    memset(&s, 0, sizeof s);
    s.step = step;
    int64_t mark = hbp__scratch_mark(step->context);
    return hbp__leave(step->context, mark, run_search(&s, solution));
}
