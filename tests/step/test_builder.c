/* The builder's small parts: when it stops, its pool, and what it hands over. */
#include "boards.h"

#define GROUNDS 220

START_TEST(it_goes_on_until_the_work_is_done)
{
    ground g;
    ground_open(&g, 1, GROUND_LONG, 24);
    hbp__step_builder *b = &g.builder;
    b->work_limit = 100;
    ck_assert(hbp__step_go_on(b));
    b->work = 60;
    b->squeezer.work = 39;
    ck_assert(hbp__step_go_on(b));
    b->squeezer.work = 40;
    ck_assert(!hbp__step_go_on(b));
    ck_assert(!b->late && b->status >= 0);
    b->work_limit = 1000000;
    ck_assert(hbp__step_go_on(b));
    g.step.deadline_ns = 1;
    ck_assert(hbp__step_go_on(b)); /* it does not look each time */
    b->work = 500000;
    ck_assert(!hbp__step_go_on(b));
    ck_assert(b->late);
    g.step.deadline_ns = 0;
    ck_assert(!hbp__step_go_on(b)); /* once late, for good */
    ground_close(&g);
}
END_TEST

static hbp_status open_once(hbp_context *context, void *user)
{
    hbp__step step = *(const hbp__step *)user;
    hbp__step_builder builder;
    step.context = context;
    hbp_status status = hbp__step_builder_open(&step, &builder);
    if (status >= 0) {
        builder.work_limit = 1000000;
        for (int i = 0; i < 6 && hbp__step_go_on(&builder); i++)
            builder.work += 50000; /* two to a report */
        status = builder.status < 0 ? builder.status : HBP_OK;
    }
    return status;
}

START_TEST(it_stops_when_cancelled_and_leaves_nothing)
{
    ground g;
    ground_open(&g, 3, GROUND_UNEVEN, 24);
    ck_assert_int_eq(cancel_sweep(open_once, &g.step), 3);
    failing_sweep(open_once, &g.step);
    ground_close(&g);
}
END_TEST

START_TEST(micro_batches_may_be_dropped_down_to_the_least)
{
    ground g;
    hbp__step_board board = {.micro_batches = 1};
    ground_open(&g, 1, GROUND_LONG, 24);
    hbp_step_options *o = &g.step.options;
    ck_assert(!hbp__step_may_drop(&g.builder, &board));
    board.micro_batches = 4;
    ck_assert(hbp__step_may_drop(&g.builder, &board));
    o->min_micro_batches = 1;
    ck_assert(hbp__step_may_drop(&g.builder, &board));
    o->min_micro_batches = 2; /* how many are empty is not looked at */
    ck_assert(!hbp__step_may_drop(&g.builder, &board));
    o->min_micro_batches = 0;
    o->micro_batch_multiple = 2;
    ck_assert(!hbp__step_may_drop(&g.builder, &board));
    ground_close(&g);
}
END_TEST

START_TEST(sums_before_each_are_right)
{
    ground g;
    ground_open(&g, 4, GROUND_LONG, 24);
    ground_pool_all(&g);
    const hbp__step_pool *pool = &g.builder.pool;
    for (int64_t i = 0; i <= pool->count; i++) {
        double tokens = 0, squares = 0;
        for (int64_t k = 0; k < i; k++) {
            tokens += (double)g.step.tokens[k];
            squares += g.step.squares[k];
        }
        ck_assert_double_eq(pool->tokens_before[i], tokens);
        ck_assert_double_eq(pool->squares_before[i], squares);
    }
    ground_close(&g);
}
END_TEST

START_TEST(the_pool_takes_what_micro_batches_have)
{
    for (uint64_t i = 0; i < GROUNDS; i++) {
        ground g;
        hbp__step_board board;
        ground_open(&g, i, (int)(i % GROUND_KINDS), 24);
        ground_board(&g, &board);
        hbp__step_builder *b = &g.builder;
        int64_t x = hbp__rng_below(&g.rng, (uint64_t)board.micro_batches);
        int64_t y = hbp__rng_below(&g.rng, (uint64_t)board.micro_batches), at = 0;
        double tokens = 0;
        hbp__step_pool_take(b, &board, (int64_t[]){x, y}, x == y ? 1 : 2);
        for (int64_t k = 0; k < g.step.count; k++) {
            int64_t m = board.home[k] / board.ranks;
            if (m != x && m != y)
                continue;
            ck_assert_int_lt(at, b->pool.count);
            ck_assert_int_eq(b->pool.member[at++], k);
            tokens += (double)g.step.tokens[k];
        }
        ck_assert_int_eq(at, b->pool.count);
        ck_assert_double_eq(b->pool.tokens_before[at], tokens);
        hbp__step_save(b);
        ground_pool_all(&g);
        hbp__step_restore(b);
        ck_assert_int_eq(b->pool.count, at);
        ck_assert_double_eq(b->pool.tokens_before[at], tokens);
        for (int64_t p = 0; p < at; p++)
            ck_assert(board.home[b->pool.member[p]] / board.ranks == x ||
                      board.home[b->pool.member[p]] / board.ranks == y);
        ground_close(&g);
    }
}
END_TEST

/* Two micro-batches go through the trial board into each other's place. */
START_TEST(micro_batches_are_adopted)
{
    for (uint64_t i = 0; i < GROUNDS; i++) {
        ground g;
        hbp__step_board board, before;
        ground_open(&g, i, (int)(i % GROUND_KINDS), 24);
        ground_board(&g, &board);
        board_remember(&g.step, &board, &before);
        hbp__step_board *trial = &g.builder.trial;
        int64_t x = 0, y = board.micro_batches - 1;
        const int64_t take[2] = {x, y}, from[2] = {2, 3};
        for (int t = 0; t < 2; t++) {
            trial->groups[from[t]] = board.groups[take[t]];
            trial->makespan[from[t]] = board.makespan[take[t]];
            for (int64_t a = 0; a < board.groups[take[t]]; a++) {
                int64_t to = from[t] * trial->ranks + a;
                trial->group[to] = board.group[take[t] * board.ranks + a];
                for (int64_t k = trial->group[to].head; k != HBP__NONE; k = board.next[k]) {
                    trial->next[k] = board.next[k];
                    trial->home[k] = to;
                }
            }
        }
        for (int64_t k = 0; k < g.step.count; k++)
            if (board.home[k] / board.ranks == x || board.home[k] / board.ranks == y)
                board.home[k] = board.next[k] = -7; /* told anew */
        hbp__step_adopt(&g.builder, 2, &board, y);
        hbp__step_adopt(&g.builder, 3, &board, x);
        board_check(&g.step, &board, NULL, 0);
        board_same_one(&board, x, &before, y);
        board_same_one(&board, y, &before, x);
        for (int64_t m = 1; m < y; m++)
            board_same_one(&board, m, &before, m);
        ground_close(&g);
    }
}
END_TEST

static int has(const double *goal, int32_t goals, double time)
{
    for (int32_t i = 0; i < goals; i++)
        if (goal[i] == time)
            return 1;
    return 0;
}

START_TEST(goals_are_multiples_and_what_the_longest_takes)
{
    static const double multiple[] = {0.5, 0.9, 1, 1.5};
    for (uint64_t i = 0; i < GROUNDS; i++) {
        ground g;
        double goal[4 + HBP__STEP_DEGREES];
        ground_open(&g, i, (int)(i % GROUND_KINDS), 24);
        ground_pool_all(&g);
        double alone = ground_alone(&g.step, 0), guess = alone * small_between(&g.rng, .5, 3);
        int32_t goals = hbp__step_list_goals(&g.builder, guess, .6, 1.7, multiple, 4, goal), expected = 0;
        ck_assert(has(goal, goals, alone));
        for (int m = 0; m < 4; m++) {
            ck_assert_int_eq(has(goal, goals, guess * multiple[m]), guess * multiple[m] > alone);
            expected += guess * multiple[m] > alone;
        }
        for (int32_t j = 0; j < g.step.degrees; j++) {
            if (g.step.tokens[0] > g.step.degree[j].capacity)
                continue;
            double time = hbp__step_group_time(
                &g.step, j, (hbp__load){.tokens = g.step.tokens[0], .squares = g.step.squares[0]});
            int wanted = time == alone || (time > guess * .6 && time < guess * 1.7);
            ck_assert_int_eq(has(goal, goals, time), wanted);
            expected += wanted;
        }
        ck_assert_int_eq(goals, expected);
        for (int32_t n = 0; n < goals; n++)
            ck_assert_double_ge(goal[n], alone);
        ground_close(&g);
    }
}
END_TEST

/* Tokens of all ranks, the fixed time, and what the bound asks for each sequence. */
START_TEST(it_knows_what_the_machine_holds)
{
    for (uint64_t i = 0; i < GROUNDS; i++) {
        ground g;
        ground_open(&g, i, (int)(i % GROUND_KINDS), 24);
        double most = 0;
        for (int32_t j = 0; j < g.step.degrees; j++) {
            double room = (double)g.step.degree[j].capacity * g.step.ranks / (double)g.step.degree[j].degree;
            most = room > most ? room : most;
        }
        ck_assert_double_eq_tol(g.builder.room, most, 1e-9 * most);
        ck_assert_double_eq(g.builder.fixed, g.step.cost->terms.pack_ns);
        for (int64_t k = 0; k < g.step.count; k++)
            for (int32_t j = 0; j < g.step.degrees; j++) {
                const hbp__ask *ask = &g.builder.ask[k * g.step.degrees + j];
                ck_assert_int_eq(ask->needs > 0, g.step.tokens[k] <= g.step.degree[j].capacity);
            }
        ground_close(&g);
    }
}
END_TEST

TEST_MAIN("builder", it_goes_on_until_the_work_is_done, it_stops_when_cancelled_and_leaves_nothing,
          micro_batches_may_be_dropped_down_to_the_least, sums_before_each_are_right,
          the_pool_takes_what_micro_batches_have, micro_batches_are_adopted,
          goals_are_multiples_and_what_the_longest_takes, it_knows_what_the_machine_holds)
