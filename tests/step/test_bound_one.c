/* The bound of one micro-batch against exact optima: no time at which there is one may be ruled out. */
#include "base/methods.h"
#include "boards.h"
#include "exact_micro_batch.h"
#include "step/bound_region.h"

enum { MOST_STEPS = 2700 };

#define STEPS   TEST_FEW(MOST_STEPS, 180)
#define WEIGHTS 7

static const double weights[WEIGHTS] = {1, 0, 0.5, 0.75, 0.25, 0.9, 0.1};

static hbp__ask *asks_of(const hbp__step *step)
{
    hbp__ask *ask = malloc((size_t)(step->count * step->degrees) * sizeof *ask);
    ck_assert_ptr_nonnull(ask);
    hbp__bound_ask(step, ask);
    return ask;
}

/* The same of the longest sequences, any number of them counted. */
static int allows_counts(const hbp__step *step, const hbp__ask *ask, double time, double *scratch)
{
    double least[HBP__STEP_DEGREES], margin = hbp__bound_margin(step->count);
    for (int64_t longs = 1; longs <= step->count; longs++)
        for (int64_t full = 0; full < longs; full += 1 + longs / 4) {
            hbp__bound_count count = {.share = 1};
            if (hbp__bound_one_count(step, time, longs, full, &count) > step->ranks * (1 + margin))
                return 0;
            for (int w = 0; w < 6; w++) {
                count.share = w % 2 ? .5 : .9;
                if (!hbp__bound_one_allows(step, ask, time, weights[w / 2], NULL, &count, scratch, least))
                    return 0;
            }
        }
    return 1;
}

/* Whether nothing rules out a micro-batch of all of at most `limit_ns`, as plans round it. */
static int allows(const hbp__step *step, const hbp__ask *ask, int64_t limit_ns, double *most)
{
    double time = (double)limit_ns + .5 - step->cost->terms.pack_ns, least[HBP__STEP_DEGREES] = {0};
    double *scratch = malloc(hbp__bound_one_room(step) * sizeof *scratch);
    int allowed = 1;
    for (int32_t j = 0; j < step->degrees; j++)
        most[j] = 0;
    for (int w = 0; w < WEIGHTS && allowed; w++) {
        allowed = hbp__bound_one_allows(step, ask, time, weights[w], NULL, NULL, scratch, least);
        for (int32_t j = 0; j < step->degrees && allowed; j++)
            most[j] = least[j] > most[j] ? least[j] : most[j];
    }
    double room[HBP__STEP_DEGREES];
    hbp__bound_one_rooms(step, time, room);
    for (int w = 0; w < WEIGHTS && allowed; w++) {
        allowed = hbp__bound_one_allows(step, ask, time, weights[w], room, NULL, scratch, least);
        for (int32_t j = 0; j < step->degrees && allowed; j++)
            most[j] = least[j] > most[j] ? least[j] : most[j];
    }
    if (allowed)
        OK(step->context, hbp__bound_one_allows_both(step, ask, time, most, scratch, &allowed));
    allowed = allowed && allows_counts(step, ask, time, scratch);
    if (allowed) {
        hbp__bound_region region;
        OK(step->context, hbp__bound_region_open(step, ask, &region));
        OK(step->context, hbp__bound_region_allows(&region, time, &allowed));
    }
    free(scratch);
    return allowed;
}

/* Nothing at the optimum or above it is ruled out. */
static void check_times(const hbp__step *step, int64_t i, int64_t best)
{
    static const double factor[] = {1, 1.0001, 1.01, 1.3, 4};
    double least[HBP__STEP_DEGREES];
    hbp__ask *ask = asks_of(step);
    for (int k = 0; k < 5; k++)
        ck_assert_msg(allows(step, ask, (int64_t)((double)best * factor[k]) + 1, least),
                      "step %d: %g times the optimum, %lld ns, is ruled out", (int)i, factor[k],
                      (long long)best);
    free(ask);
}

/* The least time that is not ruled out, over `best`. */
static double tightness(const hbp__step *step, int64_t best)
{
    double least[HBP__STEP_DEGREES];
    hbp__ask *ask = asks_of(step);
    int64_t low = 0, high = best;
    while (high - low > 1 + best / 10000) {
        int64_t middle = low + (high - low) / 2;
        if (allows(step, ask, middle, least))
            high = middle;
        else
            low = middle;
    }
    free(ask);
    return (double)high / (double)best;
}

static void vary(small_step *s, uint64_t i)
{
    s->options.max_micro_batches = 1;
    s->options.recompute = i % 5 == 1 ? HBP_STEP_RECOMPUTE_ALL : HBP_STEP_RECOMPUTE_AUTO;
    s->options.min_sp = i % 7 == 3 ? 2 : 0;
    s->options.max_sp = i % 11 == 4 ? 4 : 0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

START_TEST(no_time_of_a_micro_batch_is_ruled_out)
{
    static double ratio[MOST_STEPS];
    int64_t count = 0;
    for (uint64_t i = 0; i < STEPS; i++) {
        static const int32_t ranks[] = {2, 4, 8, 16};
        small_step s = small_open(5000 + i, (int)(i % SMALL_KINDS), ranks[i / SMALL_KINDS % 4], 9, 2e4);
        vary(&s, i);
        exact_step e = small_exact(&s);
        int64_t best = exact_step_ns(&e);
        if (best != EXACT_NEVER) {
            hbp__step step;
            OK(s.context, hbp__step_open(s.context, s.lengths, s.cost, &s.options, &step));
            check_times(&step, (int64_t)i, best);
            ratio[count++] = tightness(&step, best);
            hbp__step_close(&step);
        }
        small_close(&s);
    }
    ck_assert_int_gt(count, STEPS / 3);
    qsort(ratio, (size_t)count, sizeof *ratio, compare);
    ck_assert_msg(ratio[count / 2] > .97, "the median bound is %.4f of the optimum", ratio[count / 2]);
    ck_assert_msg(ratio[count / 10] > .6, "a bound in ten is below %.4f of the optimum", ratio[count / 10]);
}
END_TEST

START_TEST(no_time_of_a_larger_micro_batch_is_ruled_out)
{
    int64_t count = 0;
    for (uint64_t i = 0; i < 36; i++) {
        static const int kinds[] = {SMALL_TIME, SMALL_LATENCY, SMALL_LONG};
        small_step s = small_open(900 + i, kinds[i % 3], i % 2 ? 16 : 8, 17, 1e300);
        vary(&s, i);
        exact_step e = small_exact(&s);
        int64_t best = exact_micro_batch_ns(&e);
        if (best != EXACT_NEVER) {
            hbp__step step;
            OK(s.context, hbp__step_open(s.context, s.lengths, s.cost, &s.options, &step));
            check_times(&step, (int64_t)i, best);
            hbp__step_close(&step);
            count++;
        }
        small_close(&s);
    }
    ck_assert_int_gt(count, 12);
}
END_TEST

/* Every micro-batch, by brute force. Ranks need only be enough, which groups that do not nest may not get
 * by. */
typedef struct walk {
    const hbp__step *step;
    int64_t limit_ns;
    int64_t best_ns;
    int32_t groups;
    int32_t ranks;
    int32_t degree[8];
    int64_t tokens[8];
    double squares[8];
    int32_t fewest[HBP__STEP_DEGREES]; /* ranks of groups of a degree and above, within the limit */
} walk;

static void end(walk *w)
{
    int64_t slowest = hbp__step_group_ns(w->step, 0, (hbp__load){.tokens = 0});
    for (int32_t g = 0; g < w->groups; g++)
        slowest = hbp__max_i64(
            slowest, hbp__step_group_ns(w->step, w->degree[g],
                                        (hbp__load){.tokens = w->tokens[g], .squares = w->squares[g]}));
    w->best_ns = hbp__min_i64(w->best_ns, slowest);
    for (int32_t j = w->step->degrees - 1; j >= 0 && slowest <= w->limit_ns; j--) {
        int32_t ranks = 0;
        for (int32_t g = 0; g < w->groups; g++)
            ranks += w->degree[g] >= j ? w->step->degree[w->degree[g]].degree : 0;
        w->fewest[j] = ranks < w->fewest[j] ? ranks : w->fewest[j];
    }
}

static void go(walk *w, int64_t k)
{
    const hbp__step *step = w->step;
    if (k == step->count) {
        end(w);
        return;
    }
    for (int32_t g = 0; g < w->groups; g++) {
        double squares = w->squares[g];
        w->tokens[g] += step->tokens[k];
        w->squares[g] += step->squares[k];
        if (hbp__step_group_ns(step, w->degree[g],
                               (hbp__load){.tokens = w->tokens[g], .squares = w->squares[g]}) <= w->limit_ns)
            go(w, k + 1);
        w->tokens[g] -= step->tokens[k];
        w->squares[g] = squares;
    }
    int32_t g = w->groups++;
    for (int32_t j = 0; j < step->degrees; j++) {
        int32_t d = step->degree[j].degree;
        if (w->ranks + d > step->ranks ||
            hbp__step_group_ns(step, j, (hbp__load){.tokens = step->tokens[k], .squares = step->squares[k]}) >
                w->limit_ns)
            continue;
        w->ranks += d;
        w->degree[g] = j;
        w->tokens[g] = step->tokens[k];
        w->squares[g] = step->squares[k];
        go(w, k + 1);
        w->ranks -= d;
    }
    w->groups--;
}

/* Of all micro-batches within `limit_ns`. */
static walk walk_all(const hbp__step *step, int64_t limit_ns)
{
    walk w = {.step = step, .limit_ns = limit_ns, .best_ns = INT64_MAX};
    for (int32_t j = 0; j < step->degrees; j++)
        w.fewest[j] = INT32_MAX;
    go(&w, 0);
    return w;
}

/* A machine of some ranks whose degrees nest or not, and two to six sequences of such lengths that memory or
 * time makes wide groups of them. */
static void open_tiny(small_step *s, uint64_t seed)
{
    static const int32_t sets[][6] = {{1, 2, 3, 6},    {1, 2, 3}, {1, 3, 4},
                                      {1, 2, 3, 4, 6}, {1, 4, 6}, {1, 2, 4, 8, 24}};
    hbp__rng rng = hbp__rng_make(seed, 17, 0);
    const int32_t *set = sets[seed % 6];
    double latency[6] = {0}, per_token[6] = {0};
    hbp_cost_terms t = {.struct_size = sizeof t};
    *s = (small_step){.context = test_context(), .options = {.struct_size = sizeof s->options}};
    t.ranks = t.domain_ranks = seed % 6 == 5 ? 48 : 12;
    t.layers = 1 + (int32_t)hbp__rng_below(&rng, 3);
    t.ns_per_token = small_between(&rng, 0, 10000);
    t.ns_per_token_squared = small_between(&rng, .1, 2);
    t.recompute_linear = t.recompute_attention = small_between(&rng, 0, .4);
    t.pack_ns = small_between(&rng, 0, 1e7);
    t.activation_bytes = small_between(&rng, 1, 3);
    t.recomputed_bytes = small_between(&rng, .2, 1);
    t.working_bytes = small_between(&rng, 0, 1);
    t.sp_buffer_bytes = hbp__rng_below(&rng, 2);
    t.limit_bytes = 5000 + (int64_t)hbp__rng_below(&rng, 100000);
    for (; t.degrees < 6 && set[t.degrees]; t.degrees++)
        if (set[t.degrees] > 1) {
            latency[t.degrees] = small_between(&rng, 0, hbp__rng_below(&rng, 2) ? 1e7 : 1e5);
            per_token[t.degrees] = small_between(&rng, 0, 3000);
        }
    t.degree = set;
    t.sp_latency_ns = latency;
    t.sp_ns_per_token = per_token;
    OK(s->context, hbp_cost_create_terms(s->context, &t, &s->cost));
    s->options.any_degree = 1;
    s->options.max_micro_batches = 1;
    s->options.min_sp = seed % 3 == 1 ? 2 : 0;
    s->count = 2 + hbp__rng_below(&rng, 5);
    double longest = (double)hbp_cost_predict_capacity(s->cost, set[t.degrees - 1], t.layers);
    for (int64_t k = 0; k < s->count; k++) {
        double tokens = longest * small_between(&rng, .02, k ? .7 : 1);
        s->length[k] = tokens < 1 ? 1 : (uint32_t)tokens;
    }
    OK(s->context, hbp_lengths_create_u32(s->context, s->length, s->count, NULL, &s->lengths));
}

/* Where degrees do not nest as well; and the ranks that wide groups are said to have, every micro-batch gives
 * them. */
START_TEST(wide_groups_have_the_ranks_they_need)
{
    int64_t count = 0, positive = 0;
    for (uint64_t i = 0; i < STEPS * 5 / 9; i++) {
        small_step s;
        hbp__step step;
        open_tiny(&s, i);
        if (hbp__step_open(s.context, s.lengths, s.cost, &s.options, &step) < 0)
            step.count = 0; /* some sequence fits no group */
        int64_t best = step.count ? walk_all(&step, INT64_MAX - 1).best_ns : INT64_MAX;
        if (best < INT64_MAX) {
            static const double factor[] = {1, 1.001, 1.02, 1.2};
            hbp__ask *ask = asks_of(&step);
            for (int f = 0; f < 4; f++) {
                double least[HBP__STEP_DEGREES];
                int64_t limit_ns = (int64_t)((double)best * factor[f]) + (f > 0);
                walk w = walk_all(&step, limit_ns);
                ck_assert_int_le(w.best_ns, limit_ns);
                ck_assert_msg(allows(&step, ask, limit_ns, least),
                              "step %d: %lld ns is ruled out, %lld is found", (int)i, (long long)limit_ns,
                              (long long)best);
                for (int32_t j = 0; j < step.degrees; j++) {
                    ck_assert_msg(least[j] <= w.fewest[j] + 1e-5,
                                  "step %d: %g ranks of degree %d and above, but %d will do", (int)i,
                                  least[j], (int)step.degree[j].degree, (int)w.fewest[j]);
                    positive += j > 0 && least[j] > 0;
                }
            }
            free(ask);
            count++;
        }
        hbp__step_close(&step);
        small_close(&s);
    }
    ck_assert_int_gt(count, STEPS * 7 / 27);
    ck_assert_int_gt(positive, STEPS * 10 / 27);
}
END_TEST

/* Sequences too long for a number of them in a group, where only its capacity says so. */
START_TEST(long_ones_are_those_of_which_too_few_fit)
{
    int64_t some = 0;
    for (uint64_t i = 0; i < 60; i++) {
        small_step s = small_open(i, 0, i % 2 ? 16 : 8, 9, 1e9);
        hbp__step step;
        OK(s.context, hbp__step_open(s.context, s.lengths, s.cost, &s.options, &step));
        for (int32_t j = 0; j < step.degrees; j++)
            for (int64_t k = 0; k < step.count; k++) {
                int64_t longs = 0, fit = step.degree[j].capacity / step.degree[j].tokens[k];
                while (longs < step.count &&
                       (fit + 1) * step.degree[j].tokens[longs] > step.degree[j].capacity)
                    longs++;
                ck_assert_int_eq(hbp__bound_one_longs(&step, 1e30, j, fit), longs);
                some += longs > 0 && longs < step.count;
            }
        hbp__step_close(&step);
        small_close(&s);
    }
    ck_assert_int_gt(some, 30);
}
END_TEST

/* Of equal sequences, where only capacity counts, each takes its share of a group that is full of them. */
START_TEST(equal_ones_take_their_share_of_a_full_group)
{
    int64_t shared = 0;
    for (uint64_t i = 0; i < 120; i++) {
        small_step s = small_open(i, (int)(i % SMALL_TIED), i % 2 ? 16 : 8, 9, 1e9);
        hbp__step step;
        for (int64_t k = 1; k < s.count; k++)
            s.length[k] = s.length[0];
        hbp_lengths_free(s.lengths);
        OK(s.context, hbp_lengths_create_u32(s.context, s.length, s.count, NULL, &s.lengths));
        OK(s.context, hbp__step_open(s.context, s.lengths, s.cost, &s.options, &step));
        double each = (double)INFINITY;
        for (int32_t j = 0; j < step.degrees; j++) {
            int64_t fit = step.degree[j].capacity / step.degree[j].tokens[0];
            if (fit)
                each = hbp__min_f64(each, (double)step.degree[j].degree / (double)fit);
            shared += fit > 1;
        }
        for (int64_t longs = 1; longs <= step.count; longs++) {
            hbp__bound_count count = {.share = 1};
            double needed = hbp__bound_one_count(&step, 1e30, longs, longs / 2, &count);
            ck_assert_msg(fabs(needed - each * (double)longs) < 1e-9 * needed,
                          "step %d: %d sequences take %g ranks, each %g", (int)i, (int)longs, needed, each);
        }
        hbp__step_close(&step);
        small_close(&s);
    }
    ck_assert_int_gt(shared, 100);
}
END_TEST

/* Ranks that sequence k loads, the least over the degrees [from, to). */
static double load_of(const hbp__step *step, const hbp__ask *ask, double time, double weight, int64_t k,
                      int32_t from, int32_t to)
{
    double least = (double)INFINITY;
    for (int32_t j = from; j < to; j++) {
        const hbp__ask *a = &ask[k * step->degrees + j];
        for (int32_t n = 0; a->alone <= time && n < a->needs; n++)
            least = hbp__min_f64(least, weight * a->need[n].work / time + (1 - weight) * a->need[n].share);
    }
    return least;
}

/* The most of the loads below that `room` above takes: the dearest by weight first, the last in part. */
static double taken_by(double room, int64_t count, const double *below, const double *above)
{
    char gone[EXACT_SEQUENCES] = {0};
    double taken = 0;
    for (;;) {
        int64_t best = -1;
        for (int64_t k = 0; k < count; k++)
            if (!gone[k] && below[k] < (double)INFINITY && above[k] < (double)INFINITY &&
                (best < 0 || below[k] * above[best] > below[best] * above[k]))
                best = k;
        if (best < 0 || room <= 0)
            return taken;
        gone[best] = 1;
        taken += above[best] > room ? below[best] * room / above[best] : below[best];
        room -= above[best];
    }
}

/* Whether some number of ranks for groups of degree j and above leaves enough for the others. *first gets
 * whether the least of them does. */
static int some_number_will_do(const hbp__step *step, const hbp__ask *ask, double time, int32_t j,
                               const double *weight, int *first)
{
    double below[EXACT_SEQUENCES], above[EXACT_SEQUENCES], must = 0, rest = 0;
    for (int64_t k = 0; k < step->count; k++) {
        below[k] = load_of(step, ask, time, weight[1], k, 0, j);
        above[k] = load_of(step, ask, time, weight[0], k, j, step->degrees);
        if (below[k] < (double)INFINITY)
            rest += below[k];
        else
            must += above[k];
    }
    *first = 1;
    for (int32_t used = 0; used <= step->ranks; used += (int32_t)hbp__bound_unit(step, j))
        if (used >= must) {
            if (rest - taken_by(used - must, step->count, below, above) <= step->ranks - used)
                return 1;
            *first = 0;
        }
    return 0;
}

/* The same of every degree and share of time. */
static int some_numbers_will_do(const hbp__step *step, const hbp__ask *ask, double time, int *first)
{
    static const double weight[][2] = {{1, 0}, {0, 1}, {1, 0.5}, {0.5, 0}};
    int will_do = 1, here;
    *first = 1;
    for (int32_t j = 1; j < step->degrees; j++)
        for (int w = 0; w < 4 && will_do; w++) {
            will_do = some_number_will_do(step, ask, time, j, weight[w], &here);
            *first = *first && here;
        }
    return will_do;
}

/* Needs of any kind: to move up what takes much below and little above saves many ranks for each. */
static void draw_asks(const hbp__step *step, uint64_t seed, hbp__ask *ask)
{
    hbp__rng rng = hbp__rng_make(seed, 23, 0);
    double size = 2.0 * step->ranks / (double)step->count;
    for (int64_t i = 0; i < step->count * step->degrees; i++) {
        ask[i] = (hbp__ask){.alone = hbp__rng_below(&rng, 8) ? 0 : 1e6,
                            .needs = 1 + (int32_t)hbp__rng_below(&rng, 3)};
        for (int32_t n = 0; n < ask[i].needs; n++) {
            ask[i].need[n].work = size * small_between(&rng, 0, 1e6);
            ask[i].need[n].share = size * small_between(&rng, 0, 1) * small_between(&rng, 0, 1);
        }
    }
}

/* The numbers of ranks that are passed over unseen are none that would do, even at the shortest time, where
 * hardly one does. */
START_TEST(no_number_of_ranks_that_will_do_is_passed_over)
{
    int64_t later = 0;
    for (uint64_t i = 0; i < STEPS; i++) {
        small_step s = small_open(i, (int)(i % SMALL_TIED), i % 2 ? 16 : 8, 9, 1e300);
        hbp__step step;
        OK(s.context, hbp__step_open(s.context, s.lengths, s.cost, &s.options, &step));
        hbp__ask *ask = asks_of(&step);
        draw_asks(&step, i, ask);
        const double least[HBP__STEP_DEGREES] = {0};
        double *scratch = malloc(hbp__bound_one_room(&step) * sizeof *scratch), low = 0, high = 1e8;
        ck_assert_ptr_nonnull(scratch);
        int first, allowed;
        while (high - low > 1e-9 * high) {
            double middle = low + (high - low) / 2;
            if (some_numbers_will_do(&step, ask, middle, &first))
                high = middle;
            else
                low = middle;
        }
        if (some_numbers_will_do(&step, ask, high, &first)) {
            OK(s.context, hbp__bound_one_allows_both(&step, ask, high, least, scratch, &allowed));
            ck_assert_msg(allowed, "step %d: %g ns is ruled out", (int)i, high);
            later += !first;
        }
        free(scratch);
        free(ask);
        hbp__step_close(&step);
        small_close(&s);
    }
    ck_assert_int_gt(later, STEPS / 2);
}
END_TEST

/* Times that one sequence rules out, where packs are not padded. */
START_TEST(what_is_impossible_is_ruled_out)
{
    for (uint64_t i = 0; i < 180; i++) {
        small_step s = small_open(i, (int)(i % SMALL_TIED), i % 2 ? 16 : 8, 1, 1e9);
        hbp__step step;
        double least[HBP__STEP_DEGREES];
        exact_step e = small_exact(&s);
        int64_t best = exact_step_ns(&e);
        OK(s.context, hbp__step_open(s.context, s.lengths, s.cost, &s.options, &step));
        hbp__ask *ask = asks_of(&step);
        ck_assert(allows(&step, ask, best, least));
        ck_assert(!allows(&step, ask, best - 2 - best / 100000, least));
        free(ask);
        hbp__step_close(&step);
        small_close(&s);
    }
}
END_TEST

TEST_MAIN("bound_one", no_time_of_a_micro_batch_is_ruled_out, no_time_of_a_larger_micro_batch_is_ruled_out,
          wide_groups_have_the_ranks_they_need, long_ones_are_those_of_which_too_few_fit,
          equal_ones_take_their_share_of_a_full_group, no_number_of_ranks_that_will_do_is_passed_over,
          what_is_impossible_is_ruled_out)
