/* The bound against the optimum of tiny instances, found by looking at every plan of them; against its own
 * definition, evaluated naively; and on instances whose optimum is known. */
#include "simulate/plan/bound.h"

#include <math.h>

#include "data/lengths/lengths.h"

#include "keep.h"
#include "simulate/small.h"

#define SAMPLES 6
#define SETS    (1 << SAMPLES)
#define FAR     (INT64_MAX / 4)

static double uniform(hbp__rng *rng, double low, double high)
{
    return low + (high - low) * (double)hbp__rng_below(rng, 1 << 20) / (1 << 20);
}

/* Zero one time in four. */
static double maybe(hbp__rng *rng, double high)
{
    return hbp__rng_below(rng, 4) ? uniform(rng, 0, high) : 0;
}

/* `scale` is about the ns of a token: near 1, rounding is most of the story. Every sample of `longest` tokens
 * fits on the largest degree. */
static void draw_terms(hbp__rng *rng, small_terms *t, double scale, int64_t longest)
{
    static const int32_t ranks[] = {1, 2, 3, 4};
    small_terms_init(t, ranks[hbp__rng_below(rng, 4)], 1 + (int32_t)hbp__rng_below(rng, 3), 0);
    t->all.ns_per_token = maybe(rng, scale);
    t->all.ns_per_token_squared = maybe(rng, scale / 10);
    t->all.recompute_linear = maybe(rng, 0.5);
    t->all.recompute_attention = maybe(rng, 0.5);
    t->all.recompute_communication = maybe(rng, 0.5);
    t->all.pack_ns = maybe(rng, hbp__rng_below(rng, 2) ? 20 * scale : 1.5);
    t->all.step_ns = maybe(rng, 5 * scale);
    t->all.static_bytes = maybe(rng, 50);
    t->all.activation_bytes = uniform(rng, 1, 4);
    t->all.recomputed_bytes = maybe(rng, 1);
    t->all.working_bytes = maybe(rng, 2);
    t->all.logits_bytes = maybe(rng, 2);
    t->all.sp_buffer_bytes = maybe(rng, 1);
    int32_t d = t->degree[t->all.degrees - 1];
    double all_layers = t->all.recomputed_bytes * t->all.layers + t->all.working_bytes + t->all.logits_bytes +
                        t->all.sp_buffer_bytes;
    t->all.limit_bytes = (int64_t)(t->all.static_bytes + (double)longest / d * all_layers) + 2 +
                         (int64_t)hbp__rng_below(rng, 1 + (uint64_t)(2 * longest));
    for (int32_t i = 0; i < t->all.degrees; i++) {
        t->latency[i] = maybe(rng, 5 * scale);
        t->per_token[i] = maybe(rng, scale / 10);
    }
}

/* The same with vision units charged; their memory may leave samples without a place. */
static void draw_vision_terms(hbp__rng *rng, small_terms *t, double scale)
{
    t->all.ns_per_vision = maybe(rng, 20 * scale);
    t->all.recompute_vision = maybe(rng, 1);
    t->all.vision_bytes = hbp__rng_below(rng, 4) ? 0 : uniform(rng, 0, 3);
}

/* Everything about one tiny instance: samples, padding, and the least times over all plans. */
typedef struct oracle {
    const hbp_cost *cost;
    int64_t length[SAMPLES];
    int64_t vision[SAMPLES];
    int64_t multiple;               /* of every sample's padding */
    int64_t pack[SETS][8];          /* least ns of one pack of the set, by row of degree */
    int64_t micro_batch[SETS];      /* least ns of one micro-batch with exactly the set */
    int64_t all[SETS][SAMPLES + 1]; /* least ns of so many micro-batches that hold the set between them */
} oracle;

static void solve_packs(oracle *o, int samples)
{
    for (int set = 1; set < 1 << samples; set++) {
        int64_t tokens = 0, squares = 0, vision = 0;
        for (int i = 0; i < samples; i++)
            if (set >> i & 1) {
                vision += o->vision[i];
                tokens += hbp__round_up(o->length[i], o->multiple);
                squares += o->length[i] * o->length[i];
            }
        hbp__load load = {.tokens = tokens, .squares = (double)squares, .vision = vision};
        for (int32_t row = 0; row < o->cost->terms.degrees; row++) {
            o->pack[set][row] = FAR;
            for (int32_t c = 0; c <= o->cost->terms.layers; c++)
                if (hbp__cost_pack_bytes(o->cost, row, c, load) <= o->cost->terms.limit_bytes)
                    o->pack[set][row] =
                        hbp__min_i64(o->pack[set][row], hbp__cost_pack_ns(o->cost, row, c, load));
        }
    }
}

/* Least ns of a micro-batch that runs the set on `ranks` ranks, dummies on those left over. Degrees are
 * powers of two, or there are two of them, so packs that fit by number fit aligned. */
static int64_t solve_micro_batch(const oracle *o, int set, int ranks)
{
    if (!set)
        return ranks ? hbp__cost_padding_ns(o->cost) : 0;
    int64_t best = FAR;
    int first = set & -set, rest = set ^ first;
    for (int more = rest;; more = (more - 1) & rest) {
        for (int32_t row = 0; row < o->cost->terms.degrees && o->cost->degree[row] <= ranks; row++) {
            int64_t own = o->pack[first | more][row];
            if (own >= best)
                continue;
            int64_t others = solve_micro_batch(o, rest ^ more, ranks - o->cost->degree[row]);
            best = hbp__min_i64(best, hbp__max_i64(own, others));
        }
        if (!more)
            return best;
    }
}

/* The optimum over every plan of the instance in at least `steps` steps; FAR when there is none. */
static int64_t solve_epoch(oracle *o, int samples, int64_t steps)
{
    int full = (1 << samples) - 1;
    solve_packs(o, samples);
    for (int set = 0; set <= full; set++)
        o->micro_batch[set] = solve_micro_batch(o, set, o->cost->terms.ranks);
    for (int set = 0; set <= full; set++)
        for (int count = 0; count <= samples; count++) {
            int64_t best = !set && !count ? 0 : FAR;
            if (count && set) {
                int first = set & -set, rest = set ^ first;
                for (int more = rest;; more = (more - 1) & rest) {
                    best = hbp__min_i64(best, o->micro_batch[first | more] + o->all[rest ^ more][count - 1]);
                    if (!more)
                        break;
                }
            }
            o->all[set][count] = best;
        }
    /* A step without samples is a micro-batch of dummies. */
    int64_t best = FAR, dummy_ns = hbp__round_i64(o->cost->terms.pack_ns);
    for (int count = 1; count <= samples; count++)
        best = hbp__min_i64(best, o->all[full][count] + hbp__max_i64(0, steps - count) * dummy_ns);
    return best >= FAR ? FAR : best + steps * hbp__round_i64(o->cost->terms.step_ns);
}

static hbp_lengths *make_lengths(hbp_context *context, const int64_t *length, int64_t count)
{
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_i64(context, length, count, NULL, &lengths));
    return lengths;
}

static hbp_lengths *make_vision_lengths(hbp_context *context, const int64_t *length, const int64_t *vision,
                                        int64_t count)
{
    hbp_lengths *lengths = NULL;
    uint32_t units[300];
    for (int64_t i = 0; i < count; i++)
        units[i] = (uint32_t)vision[i];
    hbp_lengths_options options = {.struct_size = sizeof options, .vision = units};
    OK(context, hbp_lengths_create_i64(context, length, count, &options, &lengths));
    return lengths;
}

/* `count` random instances at one scale of times, with up to `most_vision` units a sample; the mean of bound
 * / optimum. */
static double compare_with_optimum(uint64_t seed, double scale, int count, uint64_t most_vision)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    oracle *o = malloc(sizeof *o);
    double sum = 0;
    int solved = 0;
    for (int trial = 0; trial < count; trial++) {
        int samples = 1 + (int)hbp__rng_below(&rng, SAMPLES);
        int64_t longest = 0, steps = hbp__rng_below(&rng, 4);
        for (int i = 0; i < samples; i++) {
            o->length[i] = 1 + hbp__rng_below(&rng, hbp__rng_below(&rng, 3) ? 10 : 60);
            longest = hbp__max_i64(longest, o->length[i]);
        }
        o->multiple = hbp__rng_below(&rng, 3) ? 1 : 1 + hbp__rng_below(&rng, 16);
        small_terms terms;
        draw_terms(&rng, &terms, scale, longest);
        if (most_vision)
            draw_vision_terms(&rng, &terms, scale);
        hbp_cost *cost = small_cost(context, &terms);
        o->cost = cost;
        for (int i = 0; i < SAMPLES; i++)
            o->vision[i] = most_vision ? hbp__rng_below(&rng, most_vision + 1) : 0;
        hbp_lengths *lengths = most_vision ? make_vision_lengths(context, o->length, o->vision, samples)
                                           : make_lengths(context, o->length, samples);
        int64_t bound = -1, optimum = solve_epoch(o, samples, steps);
        OK(context, hbp_bound_epoch(context, lengths, cost, steps, &bound));
        ck_assert_msg(bound >= 0 && bound <= optimum, "trial %d: bound %lld, optimum %lld", trial,
                      (long long)bound, (long long)optimum);
        int64_t padded = 0;
        const hbp_status status =
            hbp__bound(context, cost, lengths->bins, lengths->bin_length, lengths->bin_count, o->multiple,
                       lengths->vision_sum, steps, &padded);
        ck_assert(status == HBP_OK || (status == HBP_E_INFEASIBLE && optimum == FAR));
        ck_assert_msg(status < 0 || (padded >= bound && padded <= optimum),
                      "trial %d, padded to %lld: bound %lld, %lld without, optimum %lld", trial,
                      (long long)o->multiple, (long long)padded, (long long)bound, (long long)optimum);
        if (optimum > 0 && optimum < FAR) {
            sum += (double)bound / (double)optimum;
            solved++;
        }
        hbp_lengths_free(lengths);
        hbp_cost_free(cost);
    }
    ck_assert_int_gt(solved, count / 2);
    free(o);
    hbp_context_free(context);
    return sum / solved;
}

START_TEST(no_plan_of_a_tiny_instance_beats_the_bound)
{
    double mean = compare_with_optimum(1, 1000, TEST_FEW(20000, 2500), 0);
    ck_assert_msg(mean > 0.7 && mean <= 1, "mean of bound / optimum %.4f", mean);
    mean = compare_with_optimum(5, 1000, TEST_FEW(10000, 2500), 8);
    ck_assert_msg(mean > 0.7 && mean <= 1, "with vision units: mean of bound / optimum %.4f", mean);
}
END_TEST

START_TEST(rounding_never_lifts_the_bound_over_the_optimum)
{
    compare_with_optimum(2, 0.3, TEST_FEW(20000, 2500), 0);
    compare_with_optimum(3, 3, TEST_FEW(20000, 2500), 0);
    compare_with_optimum(6, 0.3, TEST_FEW(10000, 2500), 5);
}
END_TEST

/* F(theta) of docs/explanation/bound.md, straight from its definition. */
static double naive_area(const hbp_cost *cost, const hbp_lengths *lengths, int64_t multiple, int64_t steps,
                         double theta)
{
    const hbp_cost_terms *t = &cost->terms;
    double sum = 0, pack_ns = t->pack_ns - 0.5;
    for (int64_t b = 0; b < lengths->bins; b++) {
        const double s = (double)lengths->bin_length[b],
                     p = (double)hbp__round_up(lengths->bin_length[b], multiple);
        double least = INFINITY;
        for (int32_t row = 0; row < t->degrees; row++)
            for (int32_t c = 0; c <= t->layers; c++) {
                double d = cost->degree[row], x = (double)c / t->layers;
                double per_token = hbp__cost_bytes_per_token(cost, row, c) / d;
                double capacity = floor(((double)t->limit_bytes + 0.499 - t->static_bytes) / per_token);
                if (capacity < p)
                    continue;
                double ns =
                    t->ns_per_token * p * (1 + t->recompute_linear * x) +
                    t->ns_per_token_squared * s * s * (1 + t->recompute_attention * x) +
                    d * cost->sp_ns_per_token[row] * p * (1 + t->recompute_communication * x) +
                    p / capacity * d *
                        (cost->sp_latency_ns[row] * (1 + t->recompute_communication * x) + theta * pack_ns);
                least = fmin(least, ns);
            }
        sum += least * (double)lengths->bin_count[b];
    }
    sum += t->ns_per_vision * (double)lengths->vision_sum;
    return sum / t->ranks + (1 - theta) * pack_ns * (double)steps;
}

START_TEST_IN_CONTEXT(the_bound_is_what_its_definition_says)
{
    hbp__rng rng = hbp__rng_make(4, 0, 0);
    for (int trial = 0, mark = keep_mark(); trial < 200; keep_release(mark), trial++) {
        int64_t length[300], vision[300], steps = hbp__rng_below(&rng, 60);
        const int64_t multiple = trial % 2 ? 1 : 1 + hbp__rng_below(&rng, 100);
        for (int i = 0; i < 300; i++) {
            length[i] = 1 + hbp__rng_below(&rng, i % 10 ? 300 : 4900);
            vision[i] = trial % 3 ? hbp__rng_below(&rng, 40) : 0;
        }
        small_terms terms;
        small_terms_init(&terms, 8, 1 + (int32_t)hbp__rng_below(&rng, 40), 0);
        terms.all.ns_per_token = uniform(&rng, 100, 1000);
        terms.all.ns_per_token_squared = maybe(&rng, 1);
        terms.all.recompute_linear = maybe(&rng, 0.5);
        terms.all.recompute_attention = maybe(&rng, 0.5);
        terms.all.recompute_communication = maybe(&rng, 0.5);
        terms.all.pack_ns = uniform(&rng, 1, trial % 2 ? 1e6 : 1e4);
        terms.all.recomputed_bytes = 0.25;
        terms.all.working_bytes = maybe(&rng, 2);
        terms.all.limit_bytes =
            (int64_t)(5000.0 / 8 * (terms.all.layers * 0.25 + 2)) + 5 + (int64_t)hbp__rng_below(&rng, 10000);
        for (int32_t i = 1; i < terms.all.degrees; i++) {
            terms.latency[i] = maybe(&rng, 1e5);
            terms.per_token[i] = maybe(&rng, 50);
        }
        terms.all.ns_per_vision = maybe(&rng, 1e4);
        terms.all.recompute_vision = maybe(&rng, 1);
        hbp_cost *cost = keep(small_cost(context, &terms));
        hbp_lengths *lengths = keep(make_vision_lengths(context, length, vision, 300));
        double expected = 0;
        for (int eighths = 0; eighths <= 8; eighths++)
            expected = fmax(expected, naive_area(cost, lengths, multiple, steps, eighths / 8.0));
        int64_t bound = 0;
        OK(context, hbp__bound(context, cost, lengths->bins, lengths->bin_length, lengths->bin_count,
                               multiple, lengths->vision_sum, steps, &bound));
        ck_assert_msg(fabs((double)bound - expected) <= 1 + 1e-9 * expected,
                      "trial %d: bound %lld, definition %.1f", trial, (long long)bound, expected);
    }
}
END_TEST

/* 24 samples of 50 tokens on 4 ranks whose memory holds 100: 12 packs, 3 micro-batches, each 100 x 1000 +
 * 5000 x 1 + 700. No plan is faster, and the bound is below it only by half a ns a micro-batch. */
START_TEST_IN_CONTEXT(the_bound_meets_a_perfect_plan)
{
    small_terms terms;
    small_terms_init(&terms, 4, 1, 100);
    terms.all.ns_per_token = 1000;
    terms.all.ns_per_token_squared = 1;
    terms.all.pack_ns = 700;
    terms.all.step_ns = 11;
    terms.all.recomputed_bytes = 1;
    terms.latency[1] = terms.latency[2] = 1e6;
    hbp_cost *cost = keep(small_cost(context, &terms));
    int64_t length[24], bound = 0;
    for (int i = 0; i < 24; i++)
        length[i] = 50;
    hbp_lengths *lengths = keep(make_lengths(context, length, 24));
    OK(context, hbp_bound_epoch(context, lengths, cost, 3, &bound));
    int64_t optimum = 3 * (100 * 1000 + 2 * 2500 + 700) + 3 * 11;
    ck_assert_int_le(bound, optimum);
    ck_assert_int_ge(bound, optimum - 2);
    /* Two more steps bring at least two micro-batches and two steps' own time. */
    int64_t more = 0;
    OK(context, hbp_bound_epoch(context, lengths, cost, 5, &more));
    ck_assert_int_le(more, optimum + 2 * (700 + 11));
    ck_assert_int_ge(more, optimum + 2 * (700 + 11) - 3);
}
END_TEST

/* One sample on 4 ranks that memory spares degree 1: the fastest way to run it alone is the bound. */
START_TEST_IN_CONTEXT(one_long_sample_is_its_own_bound)
{
    small_terms terms;
    small_terms_init(&terms, 4, 1, 60);
    terms.all.ns_per_token = 1000;
    terms.all.pack_ns = 10;
    terms.all.recomputed_bytes = 1;
    terms.latency[1] = 7;
    terms.latency[2] = 30000;
    hbp_cost *cost = keep(small_cost(context, &terms));
    int64_t length = 100, bound = 0;
    hbp_lengths *lengths = keep(make_lengths(context, &length, 1));
    OK(context, hbp_bound_epoch(context, lengths, cost, 1, &bound));
    ck_assert_int_eq(bound, 50 * 1000 + 7 + 10);
}
END_TEST

START_TEST_IN_CONTEXT(bad_arguments_are_named)
{
    small_terms terms;
    small_terms_init(&terms, 4, 2, 100);
    terms.all.recomputed_bytes = 0.5;
    hbp_cost *cost = keep(small_cost(context, &terms));
    int64_t length[] = {3, 700}, bound = -7;
    hbp_lengths *lengths = keep(make_lengths(context, length, 2));
    FAILS(context, HBP_E_INVALID, "lengths is NULL", hbp_bound_epoch(context, NULL, cost, 1, &bound));
    FAILS(context, HBP_E_INVALID, "cost is NULL", hbp_bound_epoch(context, lengths, NULL, 1, &bound));
    FAILS(context, HBP_E_INVALID, "bound_ns is NULL", hbp_bound_epoch(context, lengths, cost, 1, NULL));
    FAILS(context, HBP_E_INVALID, "steps is -1", hbp_bound_epoch(context, lengths, cost, -1, &bound));
    ck_assert_int_eq(hbp_bound_epoch(NULL, lengths, cost, 1, &bound), HBP_E_INVALID);
    /* 100 bytes / (2 layers x 0.5 bytes) x 4 ranks, and half a byte that rounds down. */
    FAILS(context, HBP_E_INFEASIBLE, "a sample has 700 tokens; the longest pack holds 401",
          hbp_bound_epoch(context, lengths, cost, 1, &bound));
    small_terms_init(&terms, 4, 2, 10000);
    terms.all.step_ns = 1e15;
    cost = keep(small_cost(context, &terms));
    FAILS(context, HBP_E_OVERFLOW, "2^63", hbp_bound_epoch(context, lengths, cost, INT64_MAX / 2, &bound));
    ck_assert_int_eq(bound, -7);
}
END_TEST

static hbp_status bound_one(hbp_context *context, void *user)
{
    const oracle *o = user;
    int64_t count[] = {1, 2, 3}, bound = 0;
    hbp_status status = hbp__bound(context, o->cost, 3, o->length, count, 1, 0, 4, &bound);
    ck_assert_int_eq(status == HBP_OK, bound > 0);
    return status;
}

START_TEST_IN_CONTEXT(failures_leave_nothing_behind)
{
    small_terms terms;
    small_terms_init(&terms, 8, 10, 1000);
    terms.all.ns_per_token = terms.all.pack_ns = 10;
    terms.all.recomputed_bytes = 0.1;
    hbp_cost *cost = keep(small_cost(context, &terms));
    oracle o = {.cost = cost, .length = {3, 70, 400}};
    failing_sweep(bound_one, &o);
    ck_assert_int_ge(cancel_sweep(bound_one, &o), 5);
}
END_TEST

TEST_MAIN("bound", no_plan_of_a_tiny_instance_beats_the_bound,
          rounding_never_lifts_the_bound_over_the_optimum, the_bound_is_what_its_definition_says,
          the_bound_meets_a_perfect_plan, one_long_sample_is_its_own_bound, bad_arguments_are_named,
          failures_leave_nothing_behind)
