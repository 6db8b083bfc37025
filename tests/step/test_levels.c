/* Steps of many micro-batches built level by level. */
#include "base/methods.h"
#include "boards.h"
#include "exact_step.h"
#include "keep.h"
#include "stepped.h"

#define GROUNDS 220

/* Every sequence once, no more micro-batches than allowed, and the same again from the same. */
START_TEST(levels_have_every_sequence)
{
    int64_t built = 0, refused = 0;
    for (uint64_t i = 0; i < GROUNDS; i++) {
        ground g;
        hbp__step_board board, again;
        ground_open(&g, i, (int)(i % GROUND_KINDS), 24);
        int64_t room = 2 * g.step.count + 4;
        g.builder.quick = (int)(i / GROUND_KINDS % 2);
        OK(g.small.context, hbp__step_board_open(&g.step, room, &board));
        OK(g.small.context, hbp__step_board_open(&g.step, room, &again));
        for (int32_t round = 0; round < 4; round++) {
            double share = small_between(&g.rng, 0, 3);
            ck_assert(hbp__step_build_levels(&g.builder, &board, room, share, round));
            board_check(&g.step, &board, NULL, 0);
            ck_assert(hbp__step_build_levels(&g.builder, &again, room, share, round));
            board_same(&board, &again);
            int64_t most = (int64_t)hbp__rng_below(&g.rng, (uint64_t)board.micro_batches + 1);
            if (hbp__step_build_levels(&g.builder, &again, most, share, round)) {
                board_check(&g.step, &again, NULL, 0);
                ck_assert_int_le(again.micro_batches, most);
                built++;
            } else
                refused++;
        }
        ground_close(&g);
    }
    ck_assert_int_gt(built, GROUNDS / 4);
    ck_assert_int_gt(refused, GROUNDS / 4);
}
END_TEST

/* Small steps, for which levels are not meant: never below the optimum, and not far above. */
START_TEST(levels_are_not_far_from_the_optimum)
{
    double excess = 0;
    int64_t compared = 0;
    for (uint64_t i = 0; i < 120; i++) {
        ground g;
        hbp__step_board board;
        ground_open(&g, i, (int)(i % SMALL_KINDS), 8);
        exact_step e = small_exact(&g.small);
        int64_t best = exact_step_ns(&e);
        OK(g.small.context, hbp__step_board_open(&g.step, g.step.count, &board));
        if (best != EXACT_NEVER && hbp__step_build_levels(&g.builder, &board, g.step.count, 1, 0)) {
            double time = hbp__step_board_time(&board);
            ck_assert_double_ge(time, (double)(best - board.micro_batches));
            excess += time / (double)best - 1;
            compared++;
        }
        ground_close(&g);
    }
    ck_assert_int_gt(compared, 60);
    ck_assert_msg(excess / (double)compared < .1, "%.3f above the optimum", excess / (double)compared);
}
END_TEST

/* A step of a thousand sequences and more: near its bound, and no longer than the same number of
 * micro-batches built one by one. */
START_TEST(many_micro_batches_are_near_the_bound)
{
    double excess = 0;
    for (uint64_t i = 0; i < 8; i++) {
        hbp_context *context = test_context();
        hbp_cost *cost = test_cost_ranks(context, i % 2 ? 8 : 32);
        hbp_lengths *lengths = test_long_tail(context, i, i % 4 < 2 ? 1500 : 4000, i < 4 ? 60000 : 20000);
        hbp__step step;
        hbp__step_builder builder;
        hbp__step_board board, other;
        OK(context, hbp__step_open(context, lengths, cost, NULL, &step));
        OK(context, hbp__step_builder_open(&step, &builder));
        builder.work_limit = INT64_MAX / 2;
        OK(context, hbp__step_board_open(&step, step.count, &board));
        ck_assert(hbp__step_build_levels(&builder, &board, step.count, 1, 0));
        board_check(&step, &board, NULL, 0);
        double time = hbp__step_board_time(&board);
        int64_t bound_ns;
        OK(context, hbp__step_bound(&step, (int64_t)time, &bound_ns));
        excess += time / (double)bound_ns - 1;
        OK(context, hbp__step_board_open(&step, board.micro_batches, &other));
        if (hbp__step_build(&builder, &other, board.micro_batches, .95))
            ck_assert_double_le(time, hbp__step_board_time(&other) * 1.005);
        hbp__step_close(&step);
        hbp_lengths_free(lengths);
        hbp_cost_free(cost);
        hbp_context_free(context);
    }
    ck_assert_msg(excess / 8 < .03, "%.4f above the bound", excess / 8);
}
END_TEST

/* The same machine by a clock that counts 1024 ns as one: all times are a power of two shorter, to the last
 * bit. */
static hbp_cost *slower_clock(hbp_context *context, const hbp_cost *cost)
{
    double latency[HBP__STEP_DEGREES], per_token[HBP__STEP_DEGREES];
    hbp_cost_terms t = {.struct_size = sizeof t};
    OK(context, hbp_cost_get_terms(context, cost, &t));
    for (int32_t j = 0; j < t.degrees; j++) {
        latency[j] = t.sp_latency_ns[j] / 1024;
        per_token[j] = t.sp_ns_per_token[j] / 1024;
    }
    t.sp_latency_ns = latency;
    t.sp_ns_per_token = per_token;
    t.ns_per_token /= 1024;
    t.ns_per_token_squared /= 1024;
    t.pack_ns /= 1024;
    t.step_ns /= 1024;
    hbp_cost *slower = NULL;
    OK(context, hbp_cost_create_terms(context, &t, &slower));
    return slower;
}

/* Where each of the sequences goes; returns the micro-batches. */
static int64_t list_homes(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                          double share, int64_t *home)
{
    hbp__step step;
    hbp__step_builder builder;
    hbp__step_board board;
    OK(context, hbp__step_open(context, lengths, cost, NULL, &step));
    OK(context, hbp__step_builder_open(&step, &builder));
    builder.work_limit = INT64_MAX / 2;
    OK(context, hbp__step_board_open(&step, step.count, &board));
    ck_assert(hbp__step_build_levels(&builder, &board, step.count, share, 0));
    memcpy(home, board.home, (size_t)step.count * sizeof *home);
    int64_t micro_batches = board.micro_batches;
    hbp__step_close(&step);
    return micro_batches;
}

/* All that is weighed against one another is time; but that goals are raised by at least 1 ns moves a few of
 * the last sequences. */
START_TEST(the_unit_of_time_makes_no_difference)
{
    static const int kinds[] = {SMALL_MEMORY, SMALL_SLOPE, SMALL_RECOMPUTE};
    for (uint64_t i = 0; i < 24; i++) {
        hbp_context *context = test_context();
        hbp__rng rng = hbp__rng_make(i, 5, 0);
        hbp_cost *cost = small_cost(context, &rng, kinds[i % 3], 16), *slower = slower_clock(context, cost);
        hbp_lengths *lengths = test_long_tail(context, i, 400, i % 2 ? 60000 : 20000);
        int64_t home[400], same[400];
        double share = 1 + (double)(i % 4);
        int64_t micro_batches = list_homes(context, lengths, cost, share, home);
        ck_assert_int_eq(list_homes(context, lengths, slower, share, same), micro_batches);
        int32_t moved = 0;
        for (int k = 0; k < 400; k++)
            moved += same[k] != home[k];
        ck_assert_int_le(moved, 8);
        hbp_lengths_free(lengths);
        hbp_cost_free(slower);
        hbp_cost_free(cost);
        hbp_context_free(context);
    }
}
END_TEST

/* More micro-batches than are made of one part. */
START_TEST_IN_CONTEXT(parts_make_up_the_whole)
{
    hbp_cost *cost = keep(test_cost_ranks(context, 2));
    hbp_lengths *lengths = keep(test_long_tail(context, 3, 6000, 12000));
    hbp_step_options options = {.struct_size = sizeof options};
    hbp__step step;
    OK(context, hbp__step_open(context, lengths, cost, NULL, &step));
    ck_assert_int_gt(hbp__step_plain_least(&step), 250);
    hbp__step_close(&step);
    stepped plan = stepped_plan(context, lengths, cost, &options);
    ck_assert_int_eq(plan.status, HBP_OK);
    ck_assert_msg((double)plan.ns < 1.03 * (double)plan.bound_ns, "%lld ns, bound %lld", (long long)plan.ns,
                  (long long)plan.bound_ns);
}
END_TEST

/* Whole plans of large steps: near the bound, no slower than any other way, and more effort no slower. */
START_TEST(large_plans_are_near_the_bound)
{
    for (uint64_t i = 0; i < 3; i++) {
        hbp_context *context = test_context();
        hbp_cost *cost = test_cost_ranks(context, i % 2 ? 8 : 32);
        hbp_lengths *lengths = test_long_tail(context, i, 2500, i % 2 ? 20000 : 60000);
        hbp_step_options options = {.struct_size = sizeof options, .effort = 1};
        stepped plain = stepped_plan(context, lengths, cost, &options);
        ck_assert_int_eq(plain.status, HBP_OK);
        ck_assert_int_gt(plain.micro_batches, 12);
        ck_assert_msg((double)plain.ns <= 1.02 * (double)plain.bound_ns, "step %d: %lld ns, bound %lld",
                      (int)i, (long long)plain.ns, (long long)plain.bound_ns);
        for (int32_t method = HBP__STEP_STATIC_SP; method < HBP__STEP_METHOD_COUNT; method++) {
            options.method = hbp__step_name(method);
            stepped other = stepped_plan(context, lengths, cost, &options);
            ck_assert(other.status < 0 || plain.ns <= other.ns);
        }
        options.method = hbp__step_name(HBP__STEP_SEARCH);
        ck_assert_int_eq(stepped_plan(context, lengths, cost, &options).digest, plain.digest);
        options.effort = 2;
        ck_assert_int_le(stepped_plan(context, lengths, cost, &options).ns, plain.ns);
        hbp_lengths_free(lengths);
        hbp_cost_free(cost);
        hbp_context_free(context);
    }
}
END_TEST

/* By definition: the tokens over what the ranks hold with the fewest layers of the degree that holds most. */
START_TEST(plain_micro_batches_are_counted)
{
    for (uint64_t i = 0; i < 60; i++) {
        ground g;
        ground_open(&g, i, (int)(i % GROUND_KINDS), 24);
        int64_t least = hbp__step_plain_least(&g.step);
        ck_assert(least >= 1 && least <= g.step.count);
        int enough = 0, fewer = 0;
        for (int32_t j = 0; j < g.step.degrees; j++) {
            double one = (double)g.step.degree[j].way[0].capacity * g.step.ranks / g.step.degree[j].degree;
            enough |= one * (double)least >= (double)g.step.total_tokens;
            fewer |= one * (double)(least - 1) >= (double)g.step.total_tokens;
        }
        ck_assert(enough || least == g.step.count);
        ck_assert(!fewer);
        ground_close(&g);
    }
}
END_TEST

static int build_levels(hbp__step_builder *builder, hbp__step_board *board)
{
    return hbp__step_build_levels(builder, board, builder->step->count, 1, 0);
}

START_TEST(building_can_be_cancelled)
{
    board_fails_cleanly(build_levels, 900);
}
END_TEST

TEST_MAIN("levels", levels_have_every_sequence, levels_are_not_far_from_the_optimum,
          many_micro_batches_are_near_the_bound, the_unit_of_time_makes_no_difference,
          parts_make_up_the_whole, large_plans_are_near_the_bound, plain_micro_batches_are_counted,
          building_can_be_cancelled)
