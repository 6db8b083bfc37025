/* The groups of one round (lib/step/rounds.c): what is taken out leaves nothing, and widening keeps groups
 * within their domains. */
#include "base/methods.h"
#include "failing.h"
#include "modes.h"
#include "step/rounds.h"

enum { RANKS = 36, SEQUENCES = 12 };

typedef struct opened {
    hbp_context *context;
    hbp_cost *cost;
    hbp_lengths *lengths;
    hbp__step step;
    hbp__step_round round;
    int32_t degree[RANKS];
    hbp__load load[RANKS];
    double work[RANKS];
    int64_t group[SEQUENCES];
    int64_t removed[SEQUENCES];
} opened;

/* 3 domains of 12 ranks, in which groups of 1, 2, 3, 4, 6 and 12 may lie. */
static void open_round(opened *o)
{
    static const int32_t degree[] = {1, 2, 3, 4, 6, 12};
    static const double zero[6] = {0};
    uint32_t length[SEQUENCES];
    *o = (opened){.context = test_context()};
    for (uint32_t i = 0; i < SEQUENCES; i++)
        length[i] = 100 + 37 * i;
    hbp_cost_terms t = {.struct_size = sizeof t,
                        .ranks = RANKS,
                        .domain_ranks = 12,
                        .layers = 1,
                        .ns_per_token_squared = 1,
                        .activation_bytes = 1,
                        .recomputed_bytes = 1,
                        .limit_bytes = 1000000,
                        .degrees = 6,
                        .degree = degree,
                        .sp_latency_ns = zero,
                        .sp_ns_per_token = zero};
    hbp_step_options options = {.struct_size = sizeof options, .any_degree = 1};
    OK(o->context, hbp_cost_create_terms(o->context, &t, &o->cost));
    OK(o->context, hbp_lengths_create_u32(o->context, length, SEQUENCES, NULL, &o->lengths));
    OK(o->context, hbp__step_open(o->context, o->lengths, o->cost, &options, &o->step));
    o->round = (hbp__step_round){.step = &o->step,
                                 .degree = o->degree,
                                 .load = o->load,
                                 .work = o->work,
                                 .group = o->group,
                                 .removed = o->removed};
    for (int32_t j = 0; j < o->step.degrees; j++)
        o->round.limit[j] = 1000000;
    for (int i = 0; i < SEQUENCES; i++)
        o->group[i] = HBP__STEP_WAITS;
}

static void close_round(opened *o)
{
    hbp__step_close(&o->step);
    hbp_lengths_free(o->lengths);
    hbp_cost_free(o->cost);
    hbp_context_free(o->context);
}

START_TEST(what_is_taken_out_leaves_nothing)
{
    opened o;
    open_round(&o);
    for (int32_t j = 0; j < o.step.degrees; j++) {
        o.round.groups = o.round.removals = o.round.used = 0;
        int64_t g = hbp__step_round_open(&o.round, j);
        hbp__step_round_add(&o.round, 3, g);
        hbp__load load = o.load[g];
        double work = o.work[g];
        ck_assert(work > 0);
        hbp__step_round_add(&o.round, 7, g);
        ck_assert(o.work[g] > work && o.load[g].tokens > load.tokens && o.load[g].samples > load.samples);
        hbp__step_round_remove(&o.round, 7);
        ck_assert_double_eq_tol(o.work[g], work, work * 1e-9);
        ck_assert_int_eq(o.load[g].tokens, load.tokens);
        ck_assert_int_eq(o.load[g].samples, load.samples);
        ck_assert_int_lt(o.group[7], 0);
        ck_assert_int_eq(o.round.removals, 1);
        ck_assert_int_eq(o.removed[0], 7);
        hbp__step_round_remove(&o.round, 3);
        ck_assert_double_eq_tol(o.work[g], 0, work * 1e-9);
        ck_assert_int_eq(o.load[g].tokens, 0);
    }
    close_round(&o);
}
END_TEST

START_TEST(widened_groups_have_a_place)
{
    opened o;
    open_round(&o);
    ck_assert(!o.step.chain);
    hbp__rng rng = hbp__rng_make(17, 0, 0);
    int64_t widened = 0;
    for (int turn = 0; turn < TEST_ROUNDS(4000); turn++) {
        int32_t before = 0, least = (int32_t)hbp__rng_below(&rng, (uint64_t)o.step.degrees);
        o.round.groups = o.round.used = 0;
        for (int k = 0; k < RANKS; k++) {
            int32_t j = least + (int32_t)hbp__rng_below(&rng, (uint64_t)(o.step.degrees - least));
            if (hbp__step_round_has_ranks(&o.round, j))
                hbp__step_round_open(&o.round, j);
        }
        while (o.round.groups > 1 && hbp__rng_below(&rng, 3))
            o.round.used -= o.step.degree[o.degree[--o.round.groups]].degree;
        before = o.round.used;
        hbp__step_round_widen(&o.round);
        int32_t used = 0;
        for (int64_t g = 0; g < o.round.groups; g++)
            used += o.step.degree[o.degree[g]].degree;
        ck_assert_int_eq(used, o.round.used);
        ck_assert_int_le(used, RANKS);
        ck_assert(hbp__step_place(&o.step, o.degree, o.round.groups, NULL));
        widened += used > before;
    }
    ck_assert_int_gt(widened, 0);
    close_round(&o);
}
END_TEST

TEST_MAIN("round groups", what_is_taken_out_leaves_nothing, widened_groups_have_a_place)
