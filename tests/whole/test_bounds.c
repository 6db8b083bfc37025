/* No plan is faster than the bound of another whose conditions it keeps to: other modes, compositions, seeds,
 * ways and further limits, under one contract; and under any contract where the bound leaves steps free. The
 * rounds are few by default; HBP_LONG=1 has thousands. */
#include <math.h>

#include "costs.h"
#include "methods.h"

/* The library's own ways and the baselines make so many plans of one data set. */
#define MOST 40

typedef struct instance {
    hbp_context *context;
    hbp_cost *cost;
    hbp_lengths *lengths;
    hbp__rng rng;
    uint64_t seed;
    hbp_epoch_options base; /* what all plans of the instance have in common */
    hbp_plan_summary of[MOST];
    char way[MOST][64];
    int plans;
    int64_t pairs;
    double tightest; /* a plan's time by another's bound */
} instance;

static int64_t below(instance *x, int64_t n)
{
    return (int64_t)hbp__rng_below(&x->rng, (uint64_t)n);
}

static double between(instance *x, double low, double high)
{
    return low + (high - low) * (double)below(x, 1001) / 1000;
}

/* A machine and a model of the size that real ones have; who waits for whom differs. */
static void draw_cost(instance *x)
{
    static const int32_t degree[] = {1, 2, 4, 8};
    hbp_cost *usual = test_cost_ranks(x->context, 1 << below(x, 5));
    hbp_cost_terms t = {.struct_size = sizeof t};
    OK(x->context, hbp_cost_get_terms(x->context, usual, &t));
    const double latency[] = {0, 1e6 * (double)below(x, 5), 1e6 * (double)below(x, 5),
                              1e6 * (double)below(x, 5)};
    const double per_token[] = {0, between(x, 0, 2000), between(x, 0, 2000), between(x, 0, 2000)};
    t.pack_ns = below(x, 3) ? between(x, 0, 1e8) : 0;
    t.step_ns = below(x, 3) ? between(x, 0, 1e8) : 0;
    t.ns_per_token_squared = between(x, 0, 2);
    t.degree = degree;
    t.sp_latency_ns = latency;
    t.sp_ns_per_token = per_token;
    int32_t set = 1 << below(x, 5);
    t.lockstep_ranks = set < t.ranks ? set : 0;
    while (t.lockstep_ranks > 1 && degree[t.degrees - 1] > t.lockstep_ranks)
        t.degrees--;
    t.uneven_micro_batches = t.lockstep_ranks && below(x, 2);
    OK(x->context, hbp_cost_create_terms(x->context, &t, &x->cost));
    hbp_cost_free(usual);
}

static void draw_lengths(instance *x)
{
    static const int64_t longest[] = {60, 3000, 12000, 60000};
    int64_t count = 1 + below(x, below(x, 8) ? 30 : 400);
    if (below(x, 4)) {
        x->lengths = test_long_tail(x->context, x->seed, count, longest[below(x, 4)]);
        return;
    }
    uint32_t length[400], same = 1 + (uint32_t)below(x, 20000);
    for (int64_t i = 0; i < count; i++)
        length[i] = same;
    OK(x->context, hbp_lengths_create_u32(x->context, length, count, NULL, &x->lengths));
}

static void draw_base(instance *x)
{
    x->base = (hbp_epoch_options){.struct_size = sizeof x->base};
    hbp_lengths_summary s = {.struct_size = sizeof s};
    OK(x->context, hbp_lengths_get_summary(x->context, x->lengths, &s));
    if (below(x, 4) == 0)
        x->base.max_pack_length = s.max_length + below(x, 3 * s.max_length);
    if (below(x, 4) == 0)
        x->base.max_samples = 1 + (int32_t)below(x, 9);
    if (below(x, 6) == 0)
        x->base.pack_multiple = x->base.sequence_multiple = 1 + below(x, 200);
}

/* Limits that only take plans away. */
static void draw_further(instance *x, hbp_epoch_options *o)
{
    if (below(x, 3) == 0)
        o->max_samples = 1 + (int32_t)below(x, o->max_samples ? o->max_samples : 9);
    if (below(x, 5) == 0)
        o->equal_samples = 1;
    if (below(x, 5) == 0)
        o->micro_batches_per_step = 1 + (int32_t)below(x, 4);
    if (below(x, 5) == 0)
        o->micro_batch_multiple = 2;
    o->effort = below(x, 8) ? 0 : 3;
    o->seed = (uint64_t)below(x, 5);
}

/* Notes what a plan takes, and its bounds where they hold for the plans that are added beside it. */
static void add(instance *x, hbp_status status, hbp_plan *plan, const char *way, int holds)
{
    hbp_plan_summary *s = &x->of[x->plans];
    if (status == HBP_E_INFEASIBLE || status == HBP_E_INVALID)
        return;
    OK(x->context, status);
    s->struct_size = sizeof *s;
    OK(x->context, hbp_plan_validate(x->context, plan, x->lengths, x->cost));
    OK(x->context, hbp_plan_get_summary(x->context, plan, s));
    ck_assert_int_le(s->bound_ns, s->predicted_ns);
    ck_assert_int_le(s->free_bound_ns, s->predicted_ns);
    if (!holds)
        s->bound_ns = s->free_bound_ns = 0;
    if (!s->dropped)
        snprintf(x->way[x->plans++], sizeof x->way[0], "%s", way);
}

/* Every plan beside the bounds of all: those of its own contract, from `first` on, and those that leave steps
 * free. */
static void compare(instance *x, int first)
{
    for (int i = first; i < x->plans; i++)
        for (int j = 0; j < x->plans; j++) {
            int64_t bound = j < first ? x->of[j].free_bound_ns : x->of[j].bound_ns;
            int64_t back = j < first ? x->of[i].free_bound_ns : 0;
            ck_assert_msg(x->of[i].predicted_ns >= bound,
                          "seed %llu: %s takes %lld ns, the bound of %s is %lld ns",
                          (unsigned long long)x->seed, x->way[i], (long long)x->of[i].predicted_ns, x->way[j],
                          (long long)bound);
            ck_assert_msg(x->of[j].predicted_ns >= back,
                          "seed %llu: %s takes %lld ns, the free bound of %s is %lld ns",
                          (unsigned long long)x->seed, x->way[j], (long long)x->of[j].predicted_ns, x->way[i],
                          (long long)back);
            if (bound > 0) {
                x->pairs++;
                x->tightest = fmin(x->tightest, (double)x->of[i].predicted_ns / (double)bound);
            }
        }
}

/* Steps of at most `tokens` tokens, chosen in every way; 0: as the planner chooses. Returns the tokens. */
static int64_t plan_tokens(instance *x, int64_t tokens)
{
    int first = x->plans;
    for (int k = 0; k < 6; k++) {
        hbp_epoch_options o = x->base;
        hbp_plan *plan = NULL;
        o.tokens_per_step = tokens;
        o.composition = k < 4 ? k : 0; /* auto, random, stratified, hierarchy */
        if (k)
            draw_further(x, &o);
        if (k == 5)
            o.window_samples = 1 + below(x, 100);
        if (o.composition == HBP_COMPOSITION_HIERARCHY || o.window_samples)
            o.equal_samples = o.micro_batches_per_step = 0;
        hbp_status status = hbp_plan_epoch(x->context, x->lengths, x->cost, &o, &plan);
        add(x, status, plan, hbp_composition_name(k % 4), k == 0);
        if (!k && plan)
            tokens = tokens ? tokens : x->of[first].tokens_per_step;
        hbp_plan_free(plan);
    }
    compare(x, first);
    return tokens;
}

/* The very steps of a plan of B random samples, run in other ways. */
static void plan_batches(instance *x, int64_t samples)
{
    int first = x->plans;
    hbp_epoch_options o = x->base;
    hbp_plan *drawn = NULL, *plan = NULL;
    o.samples_per_step = samples;
    o.seed = x->seed;
    hbp_status status = hbp_plan_epoch(x->context, x->lengths, x->cost, &o, &drawn);
    add(x, status, drawn, "samples", 1);
    if (!drawn)
        return;
    hbp_plan_view view = plan_view(drawn);
    int64_t steps = view.steps + 1;
    int64_t *offset = malloc((size_t)steps * sizeof *offset);
    for (int64_t s = 0; s < steps; s++)
        offset[s] = view.pack_offsets[view.micro_batch_offsets[view.step_offsets[s]]];
    for (int k = 0; k < 4; k++) {
        o = x->base;
        o.batches = steps - 1;
        o.batch_offsets = offset;
        o.batch_samples = view.sample_ids;
        if (k)
            draw_further(x, &o);
        status = hbp_plan_epoch(x->context, x->lengths, x->cost, &o, &plan);
        add(x, status, plan, "given", k == 0);
        hbp_plan_free(plan);
    }
    compare(x, first);
    free(offset);
    hbp_plan_free(drawn);
}

/* All samples as one step, in every mode of the step planner. */
static void plan_one_step(instance *x)
{
    int first = x->plans;
    for (int32_t mode = 0; mode < HBP__STEP_METHOD_COUNT; mode++) {
        hbp_step_options o = {.struct_size = sizeof o};
        hbp_plan *plan = NULL;
        o.method = hbp__step_name(mode);
        o.max_pack_length = x->base.max_pack_length;
        o.max_samples = x->base.max_samples;
        o.sequence_multiple = x->base.sequence_multiple;
        o.pack_multiple = x->base.pack_multiple;
        if (mode == HBP__STEP_FLEXSP)
            continue; /* a MILP a micro-batch */
        hbp_status status = hbp_plan_step(x->context, x->lengths, x->cost, &o, &plan);
        add(x, status, plan, hbp__step_name(mode), 1);
        hbp_plan_free(plan);
    }
    compare(x, first);
}

/* The ways of others keep to no contract that could be compared, but to the samples. */
static void plan_others(instance *x, int64_t tokens)
{
    for (int32_t way = HBP__EPOCH_HBP; way < HBP__EPOCH_METHOD_COUNT; way++) {
        hbp_epoch_options o = x->base;
        hbp_plan *plan = NULL;
        o.tokens_per_step = tokens;
        if (way == HBP__EPOCH_FLEXSP)
            continue;
        hbp_status status = test_plan_by(x->context, x->lengths, x->cost, way, &o, &plan);
        int first = x->plans;
        add(x, status, plan, hbp__epoch_name(way), 0);
        compare(x, first);
        hbp_plan_free(plan);
    }
}

static void check(uint64_t seed, int64_t *pairs, double *tightest)
{
    instance x = {.context = test_context(), .seed = seed, .tightest = INFINITY};
    x.rng = hbp__rng_make(seed, 7, 0);
    draw_cost(&x);
    draw_lengths(&x);
    draw_base(&x);
    hbp_lengths_summary s = {.struct_size = sizeof s};
    OK(x.context, hbp_lengths_get_summary(x.context, x.lengths, &s));
    int64_t tokens = plan_tokens(&x, 0);
    plan_tokens(&x, s.max_length + below(&x, 2 * s.tokens));
    plan_batches(&x, 1 + below(&x, s.samples));
    plan_one_step(&x);
    plan_others(&x, tokens);
    *pairs += x.pairs;
    *tightest = fmin(*tightest, x.tightest);
    hbp_lengths_free(x.lengths);
    hbp_cost_free(x.cost);
    hbp_context_free(x.context);
}

START_TEST(no_option_contradicts_a_bound)
{
    int64_t pairs = 0;
    double tightest = INFINITY;
    int is_long = getenv("HBP_LONG") != NULL;
    uint64_t from = is_long && getenv("HBP_SEED") ? strtoull(getenv("HBP_SEED"), NULL, 10) : 0;
    uint64_t rounds = is_long ? 1500 : TEST_ROUNDS(60);
    for (uint64_t seed = from; seed < from + rounds; seed++)
        check(seed, &pairs, &tightest);
    ck_assert_int_gt(pairs, 20 * (int64_t)rounds);
    ck_assert(tightest >= 1 && tightest < 1.0001); /* it is met, too */
    if (is_long)
        printf("%lld pairs\n", (long long)pairs);
}
END_TEST

TEST_MAIN("bounds", no_option_contradicts_a_bound)
