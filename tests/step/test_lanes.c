/* Steps of ranks that wait for nobody but their own pack, against every assignment of tiny steps. */
#include "failing.h"
#include "keep.h"
#include "lockstep_steps.h"
#include "step/lanes.h"
#include "views.h"

#define MOST_RANKS 4
#define MOST       5

/* The best of all assignments: packs of any degree on any aligned block. Larger degrees first, a rank takes
 * the sum of its packs, which no order makes shorter. */
typedef struct oracle {
    const hbp_cost *cost;
    const uint32_t *length;
    int64_t count;
    int32_t ranks, degrees;
    int32_t degree[TEST_DEGREES];
    int64_t dummy_ns;
    int64_t packs;
    int32_t sp[MOST], rank[MOST];
    int64_t tokens[MOST];
    double squares[MOST];
    int64_t best;
} oracle;

static void measure(oracle *o)
{
    int64_t load[MOST_RANKS] = {0}, rows[MOST_RANKS] = {0}, most = 0, ns = 0;
    for (int64_t p = 0; p < o->packs; p++) {
        int32_t recompute = hbp_cost_predict_recompute(o->cost, o->sp[p], o->tokens[p]);
        if (recompute < 0)
            return;
        int64_t time = hbp_cost_predict_pack_ns(o->cost, o->sp[p], recompute, o->tokens[p], o->squares[p], 0);
        for (int32_t r = o->rank[p]; r < o->rank[p] + o->sp[p]; r++) {
            load[r] += time;
            rows[r]++;
            most = rows[r] > most ? rows[r] : most;
        }
    }
    for (int32_t r = 0; r < o->ranks; r++) {
        int64_t here = load[r] + (most - rows[r]) * o->dummy_ns;
        ns = here > ns ? here : ns;
    }
    o->best = ns < o->best ? ns : o->best;
}

static void assign(oracle *o, int64_t k)
{
    if (k == o->count) {
        measure(o);
        return;
    }
    double square = (double)o->length[k] * o->length[k];
    for (int64_t p = 0; p < o->packs; p++) {
        o->tokens[p] += o->length[k];
        o->squares[p] += square;
        assign(o, k + 1);
        o->tokens[p] -= o->length[k];
        o->squares[p] -= square;
    }
    int64_t p = o->packs++;
    for (int32_t j = 0; j < o->degrees; j++)
        for (int32_t r = 0; r < o->ranks; r += o->degree[j]) {
            o->sp[p] = o->degree[j];
            o->rank[p] = r;
            o->tokens[p] = o->length[k];
            o->squares[p] = square;
            assign(o, k + 1);
        }
    o->packs--;
}

static int64_t best_of_all(hbp_context *context, const hbp_cost *cost, const uint32_t *length, int64_t count)
{
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    OK(context, hbp_cost_get_terms(context, cost, &terms));
    oracle o = {.cost = cost, .length = length, .count = count, .ranks = terms.ranks};
    o.best = INT64_MAX;
    o.dummy_ns = hbp_cost_predict_pack_ns(cost, 1, 0, 0, 0, 0);
    while (o.degrees < terms.degrees) {
        o.degree[o.degrees] = terms.degree[o.degrees];
        o.degrees++;
    }
    assign(&o, 0);
    return o.best;
}

START_TEST_IN_CONTEXT(tiny_steps_against_every_assignment)
{
    double under = 0, worst = 1;
    int64_t steps = 0, equal = 0;
    for (uint64_t seed = 0; seed < TEST_FEW(TEST_SANITIZED ? 60 : 240, 18); seed++) {
        hbp__rng rng = hbp__rng_make(seed, 7, 0);
        static const double pack_ns[] = {0, 4e7, 3e8};
        int32_t ranks = seed % 3 ? 4 : 2, uneven = seed % 2 != 0;
        hbp_cost *cost = lockstep_cost(context, ranks, 1, uneven, pack_ns[seed / 2 % 3], 0);
        int64_t most = hbp_cost_predict_capacity(cost, ranks, 8), bound_ns, count = 1 + seed % MOST;
        uint32_t length[MOST];
        for (int64_t i = 0; i < count; i++)
            length[i] = 1 + (uint32_t)hbp__rng_below(&rng, (uint64_t)(most >> hbp__rng_below(&rng, 6)));
        hbp_lengths *lengths = NULL;
        OK(context, hbp_lengths_create_u32(context, length, count, NULL, &lengths));
        int64_t ns = lockstep_plan_ns(context, cost, lengths, NULL, &bound_ns);
        int64_t best = best_of_all(context, cost, length, count);
        ck_assert_int_ge(ns, best);
        ck_assert_int_le(bound_ns, best);
        under += (double)bound_ns / (double)best;
        worst = (double)ns / (double)best > worst ? (double)ns / (double)best : worst;
        equal += ns == best;
        steps++;
        hbp_lengths_free(lengths);
        hbp_cost_free(cost);
    }
    /* All of 240 are optimal; the bound is .978 of the optimum in the mean. */
    ck_assert_int_ge(equal * 100, steps * 99);
    ck_assert(worst < 1.02);
    ck_assert(under > 0.95 * (double)steps);
}
END_TEST

/* 32 ranks or so, batches with a long tail: valid under every option, no longer than the plan of all ranks in
 * lockstep, hardly ever waiting, and 1.0042 of the bound in the mean. */
START_TEST_IN_CONTEXT(random_steps_are_no_longer_than_in_lockstep)
{
    double idle = 0, over = 0;
    int64_t free_steps = 0;
    int mark = keep_mark();
    for (uint64_t seed = 0; seed < TEST_FEW(TEST_SANITIZED ? 8 : 32, 4); keep_release(mark), seed++) {
        hbp__rng rng = hbp__rng_make(seed, 9, 0);
        int32_t ranks = 8 << seed % 3, uneven = seed % 2 != 0;
        hbp_cost *all = keep(lockstep_cost(context, ranks, 0, 0, 4e6, 0));
        hbp_cost *none = keep(lockstep_cost(context, ranks, 1, uneven, 4e6, 0));
        hbp_lengths *lengths = keep(test_long_tail(context, seed, 16 * ranks, 120000));
        hbp_step_options o = {.struct_size = sizeof o};
        int64_t bound_ns, unused;
        if (seed % 4 == 1)
            o.max_samples = 3;
        if (seed % 4 == 2) {
            o.sequence_multiple = 64;
            o.sequence_multiple_per_sp = 16;
            o.pack_multiple = 128;
        }
        if (seed % 4 == 3)
            o.micro_batch_multiple = 1 + (int32_t)hbp__rng_below(&rng, 4);
        int64_t before = lockstep_plan_ns(context, all, lengths, &o, &unused);
        int64_t ns = lockstep_plan_ns(context, none, lengths, &o, &bound_ns);
        ck_assert_int_le(ns, before);
        over += (double)ns / (double)bound_ns;
        ck_assert_int_le(bound_ns, ns);
        hbp_plan *plan = NULL, *again = NULL;
        hbp_report report = {.struct_size = sizeof report};
        MAKES(context, plan, hbp_plan_step(context, lengths, none, &o, &plan));
        MAKES(context, again, hbp_plan_step(context, lengths, none, &o, &again));
        ck_assert_uint_eq(plan_digest(plan), plan_digest(again));
        OK(context, hbp_simulate(context, plan, none, NULL, &report));
        idle += report.idle;
        free_steps++;
    }
    ck_assert(idle < 0.005 * (double)free_steps);
    ck_assert(TEST_SANITIZED || over < 32.134);
}
END_TEST

/* Every rank runs as many micro-batches, and none of them is empty: samples are split among them. */
START_TEST_IN_CONTEXT(equal_numbers_are_reached_without_padding)
{
    hbp_cost *cost = keep(lockstep_cost(context, 8, 1, 0, 4e6, 0));
    for (uint64_t seed = 0; seed < 10; seed++) {
        hbp_lengths *lengths = test_long_tail(context, seed, 200, 30000);
        hbp_step_options o = {.struct_size = sizeof o, .micro_batch_multiple = 1 + (int32_t)(seed % 3)};
        hbp_plan *plan = NULL;
        hbp_plan_summary s = {.struct_size = sizeof s};
        OK(context, hbp_plan_step(context, lengths, cost, &o, &plan));
        OK(context, hbp_plan_get_summary(context, plan, &s));
        ck_assert_int_eq(s.padding_packs, 0);
        ck_assert_int_eq(s.micro_batches % o.micro_batch_multiple, 0);
        hbp_plan_free(plan);
        hbp_lengths_free(lengths);
    }
}
END_TEST

START_TEST_IN_CONTEXT(what_cannot_be_is_refused)
{
    hbp_cost *cost = keep(lockstep_cost(context, 8, 1, 0, 4e6, 0)), *other = NULL;
    hbp_lengths *lengths = keep(test_long_tail(context, 1, 20, 3000));
    hbp_plan *plan = NULL;
    hbp_step_options o = {.struct_size = sizeof o, .max_micro_batches = 1, .max_samples = 1};
    FAILS(context, HBP_E_INFEASIBLE, "no plan of at most 1 micro-batches",
          hbp_plan_step(context, lengths, cost, &o, &plan));
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    OK(context, hbp_cost_get_terms(context, cost, &terms));
    terms.lockstep_ranks = 3;
    FAILS(context, HBP_E_INVALID, "lockstep_ranks is 3; it must divide the 8 ranks",
          hbp_cost_create_terms(context, &terms, &other));
    terms.lockstep_ranks = -1;
    FAILS(context, HBP_E_INVALID, "lockstep_ranks is -1", hbp_cost_create_terms(context, &terms, &other));
    terms.lockstep_ranks = 4;
    FAILS(context, HBP_E_INVALID, "lockstep_ranks is 4, which cuts groups of degree[3], 8 ranks",
          hbp_cost_create_terms(context, &terms, &other));
    terms.lockstep_ranks = 0;
    terms.uneven_micro_batches = 1;
    FAILS(context, HBP_E_INVALID, "with lockstep_ranks 8 of 8 ranks all of them meet",
          hbp_cost_create_terms(context, &terms, &other));
}
END_TEST

START_TEST(no_rank_is_idle)
{
    lockstep_check_busy(1);
}
END_TEST

/* Nor where micro-batches are more than samples of a rank. */
START_TEST_IN_CONTEXT(no_rank_is_idle_for_a_multiple)
{
    static const uint32_t length[] = {6, 22, 11, 49};
    hbp_cost *cost = keep(lockstep_cost(context, 4, 1, 0, 4e7, 0));
    hbp_step_options o = {.struct_size = sizeof o, .micro_batch_multiple = 3};
    hbp_lengths *lengths = NULL;
    hbp_plan *plan = NULL;
    MAKES(context, lengths, hbp_lengths_create_u32(context, length, 4, NULL, &lengths));
    MAKES(context, plan, hbp_plan_step(context, lengths, cost, &o, &plan));
    ck_assert_int_eq(plan->packs, 12);
    uint32_t busy = 0;
    for (int64_t p = 0; p < plan->packs; p++)
        busy |= plan->pack_tokens[p] ? UINT32_C(1) << plan->pack_ranks[p] : 0;
    ck_assert_int_eq(busy, 15);
}
END_TEST

/* Whether the shortest of three samples, which share a pack of four ranks, goes to a rank without any; *over
 * gets how much longer than that pack it takes alone, as a share of it. */
static int goes_to_an_idle_rank(hbp_context *context, const hbp_cost *cost, uint32_t shortest, double *over)
{
    const uint32_t length[] = {20000, 20000, shortest};
    hbp_lengths *lengths = NULL;
    hbp__step step;
    hbp__lanes lanes;
    int64_t mark = hbp__scratch_mark(context);
    OK(context, hbp_lengths_create_u32(context, length, 3, NULL, &lengths));
    OK(context, hbp__step_open(context, lengths, cost, NULL, &step));
    OK(context, hbp__lanes_open(&step, &lanes));
    int32_t four = 0;
    while (step.degree[four].degree != 4)
        four++;
    int64_t p = hbp__lanes_add_pack(&lanes, four, 0, 0);
    hbp__lanes_add(&lanes, p, 1);
    hbp__lanes_add(&lanes, p, 2);
    int64_t load = hbp__lanes_load(&lanes, 0, 8);
    *over = (double)hbp__lanes_price_alone(&lanes, lanes.chain[0], 2) / (double)load - 1;
    hbp__lanes_fill_idle(&lanes);
    int64_t gone = lanes.row[4];
    ck_assert_int_eq(lanes.pack[p].sequences + gone, 3);
    hbp__step_close(&step);
    hbp__scratch_release(context, mark);
    hbp_lengths_free(lengths);
    return gone != 0;
}

/* A rank gets work where that makes the step longer by no more than half a hundredth. */
START_TEST_IN_CONTEXT(an_idle_rank_may_cost_a_little)
{
    hbp_cost *cost = keep(lockstep_cost(context, 8, 1, 0, 0, 0));
    int64_t free = 0, little = 0, dear = 0;
    for (uint32_t shortest = 4000; shortest < 20000; shortest += 16) {
        double over;
        int goes = goes_to_an_idle_rank(context, cost, shortest, &over);
        ck_assert_int_eq(goes, over <= 0.005);
        free += over <= 0;
        little += over > 0 && over <= 0.005;
        dear += over > 0.005;
    }
    ck_assert(free > 0 && little > 0 && dear > 0);
}
END_TEST

typedef struct once {
    const hbp_lengths *lengths;
    const hbp_cost *cost;
} once;

static hbp_status plan_once(hbp_context *context, void *user)
{
    const once *o = user;
    hbp_plan *plan = NULL;
    hbp_status status = hbp_plan_step(context, o->lengths, o->cost, NULL, &plan);
    hbp_plan_free(plan);
    return status;
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    hbp_cost *cost = keep(lockstep_cost(context, 4, 1, 0, 4e6, 0));
    hbp_lengths *lengths = keep(test_long_tail(context, 1, 20, 20000));
    once o = {lengths, cost};
    failing_sweep(plan_once, &o);
}
END_TEST

TEST_MAIN("lanes", tiny_steps_against_every_assignment, random_steps_are_no_longer_than_in_lockstep,
          no_rank_is_idle, no_rank_is_idle_for_a_multiple, equal_numbers_are_reached_without_padding,
          an_idle_rank_may_cost_a_little, what_cannot_be_is_refused, nothing_is_left_behind)
