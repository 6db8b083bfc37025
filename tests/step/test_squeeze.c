/* Squeezing: what it promises, and how often it finds what every assignment shows to be there. */
#include "assigned.h"
#include "boards.h"

#define GROUNDS 330

/* A board with a micro-batch of at least two groups, and its number. */
static int64_t open_board(ground *g, uint64_t seed, int64_t most, hbp__step_board *board)
{
    ground_open(g, seed, (int)(seed % GROUND_KINDS), most);
    ground_board(g, board);
    int64_t best = 0;
    for (int64_t m = 0; m < board->micro_batches; m++)
        best = board->groups[m] > board->groups[best] ? m : best;
    return best;
}

/* Takes every `every`-th sequence of micro-batch m off the board; the rest stays as it was. */
static int64_t take_some(const ground *g, hbp__step_board *board, int64_t m, int64_t every, int64_t *taken)
{
    const hbp__step *step = &g->step;
    int64_t count = 0, seen = 0;
    double slowest = g->builder.fixed;
    for (int64_t i = m * board->ranks; i < m * board->ranks + board->groups[m]; i++) {
        hbp__step_group *group = &board->group[i];
        for (int64_t *link = &group->head; *link != HBP__NONE;) {
            int64_t k = *link;
            if (++seen % every) {
                link = &board->next[k];
                continue;
            }
            taken[count++] = k;
            group->load.tokens -= step->tokens[k];
            group->load.squares -= step->squares[k];
            *link = board->next[k];
        }
        group->time =
            group->load.tokens ? hbp__step_group_time(step, group->degree, group->load) : g->builder.fixed;
        slowest = group->time > slowest ? group->time : slowest;
    }
    board->makespan[m] = slowest;
    return count;
}

/* Any success keeps the goal and every sequence, any failure leaves the board as it was. */
START_TEST(the_goal_is_kept_or_nothing_happens)
{
    int64_t met = 0, failed = 0;
    for (uint64_t i = 0; i < GROUNDS; i++) {
        ground g;
        hbp__step_board board, before;
        int64_t m = open_board(&g, i, 24, &board);
        int64_t *extra = malloc((size_t)g.step.count * sizeof *extra), extras = 0;
        double whole = board.makespan[m];
        if (i % 2)
            extras = take_some(&g, &board, m, 2 + i % 5, extra);
        board_check(&g.step, &board, extra, extras);
        for (int draw = 0; draw < 8; draw++) {
            double goal = whole * small_between(&g.rng, .6, 1.1);
            board_remember(&g.step, &board, &before);
            if (hbp__step_squeeze(&g.builder.squeezer, &board, m, extra, extras, goal,
                                  hbp__rng_below(&g.rng, 200))) {
                board_check(&g.step, &board, NULL, 0);
                ck_assert_double_le(board.makespan[m], goal > g.builder.fixed ? goal : g.builder.fixed);
                ck_assert_int_eq(board.groups[m], before.groups[m]);
                for (int64_t a = 0; a < board.groups[m]; a++)
                    ck_assert_int_eq(board.group[m * board.ranks + a].degree,
                                     before.group[m * board.ranks + a].degree);
                for (int64_t a = 0; a < board.micro_batches; a++)
                    if (a != m)
                        board_same_one(&board, a, &before, a);
                extras = 0;
                met++;
            } else {
                board_same(&board, &before);
                board_check(&g.step, &board, extra, extras);
                failed++;
            }
        }
        free(extra);
        ground_close(&g);
    }
    ck_assert_int_gt(met, GROUNDS);
    ck_assert_int_gt(failed, GROUNDS);
}
END_TEST

START_TEST(what_is_short_enough_takes_no_move)
{
    for (uint64_t i = 0; i < GROUNDS; i++) {
        ground g;
        hbp__step_board board;
        int64_t m = open_board(&g, i, 24, &board);
        double makespan = board.makespan[m];
        ck_assert(hbp__step_squeeze(&g.builder.squeezer, &board, m, NULL, 0, makespan, 0));
        ck_assert_double_eq(board.makespan[m], makespan);
        board_check(&g.step, &board, NULL, 0);
        if (makespan > g.builder.fixed)
            ck_assert(!hbp__step_squeeze(&g.builder.squeezer, &board, m, NULL, 0, makespan * .999999, 0));
        ck_assert(!hbp__step_squeeze(&g.builder.squeezer, &board, m, NULL, 0, g.builder.fixed * .5 - 1, 99));
        ground_close(&g);
    }
}
END_TEST

/* Extras have no group to go to. */
START_TEST(no_group_takes_nothing)
{
    ground g;
    hbp__step_board board;
    ground_open(&g, 1, GROUND_LONG, 24);
    OK(g.small.context, hbp__step_board_open(&g.step, 1, &board));
    board.micro_batches = 1;
    board.groups[0] = 0;
    board.makespan[0] = g.builder.fixed;
    ck_assert(!hbp__step_squeeze(&g.builder.squeezer, &board, 0, (int64_t[]){0}, 1, 1e18, 99));
    ck_assert(hbp__step_squeeze(&g.builder.squeezer, &board, 0, NULL, 0, 1e18, 99));
    ck_assert_double_eq(board.makespan[0], g.builder.fixed);
    ground_close(&g);
}
END_TEST

/* Up to eight sequences in the groups that they are in: never below the best assignment, and mostly at it. */
START_TEST(most_best_assignments_are_found)
{
    int64_t tried = 0, found = 0;
    for (uint64_t i = 0; i < 1200; i++) {
        ground g;
        hbp__step_board board;
        int32_t degree[64];
        int64_t m = open_board(&g, i, 8, &board);
        hbp__step_pool_take(&g.builder, &board, &m, 1);
        int64_t groups = board.groups[m];
        for (int64_t a = 0; a < groups; a++)
            degree[a] = board.group[m * board.ranks + a].degree;
        if (g.builder.pool.count <= 8 && groups > 1 && groups <= 5) {
            double best = assigned_best(&g.step, degree, groups, g.builder.pool.member, g.builder.pool.count);
            ck_assert_double_le(best, board.makespan[m]);
            if (best < board.makespan[m]) {
                tried++;
                found += hbp__step_squeeze(&g.builder.squeezer, &board, m, NULL, 0, best * (1 + 1e-9), 300);
            }
            if (best > g.builder.fixed)
                ck_assert(
                    !hbp__step_squeeze(&g.builder.squeezer, &board, m, NULL, 0, best * (1 - 1e-9), 300));
            board_check(&g.step, &board, NULL, 0);
        }
        ground_close(&g);
    }
    ck_assert_int_gt(tried, 60);
    ck_assert_msg(found >= tried * 9 / 10, "%d of %d", (int)found, (int)tried);
}
END_TEST

/* Two groups share an odd number of equal sequences and may take half of one more than their average: no
 * number of moves helps, and nothing says so beforehand. */
START_TEST(the_work_is_about_linear)
{
    enum { COUNT = 20001 };
    static uint32_t length[COUNT];
    for (int64_t i = 0; i < COUNT; i++)
        length[i] = 10;
    ground g = {.small = {.context = test_context(), .options = {.struct_size = sizeof(hbp_step_options)}}};
    small_step *s = &g.small;
    hbp__step_board board;
    s->cost = test_cost_ranks(s->context, 2);
    OK(s->context, hbp_lengths_create_u32(s->context, length, COUNT, NULL, &s->lengths));
    OK(s->context, hbp__step_open(s->context, s->lengths, s->cost, &s->options, &g.step));
    OK(s->context, hbp__step_builder_open(&g.step, &g.builder));
    OK(s->context, hbp__step_board_open(&g.step, 1, &board));
    board.micro_batches = 1;
    board.groups[0] = 2;
    for (int64_t i = 0; i < 2; i++)
        board.group[i] = (hbp__step_group){.head = HBP__NONE};
    for (int64_t k = 0; k < COUNT; k++) {
        hbp__step_group *group = &board.group[k % 2];
        hbp__step_group_add(&g.step, group, k, 1);
        board.next[k] = group->head;
        group->head = k;
        board.home[k] = k % 2;
    }
    double time[2];
    for (int64_t i = 0; i < 2; i++)
        time[i] = hbp__step_group_time(&g.step, 0, board.group[i].load);
    board.makespan[0] = time[0];
    ck_assert_double_lt(time[1], time[0]);
    int64_t before = g.builder.squeezer.work;
    ck_assert(
        !hbp__step_squeeze(&g.builder.squeezer, &board, 0, NULL, 0, (time[0] + time[1]) / 2, INT64_MAX));
    int64_t work = g.builder.squeezer.work - before;
    ck_assert_int_gt(work, 1000 * COUNT / 10);
    ck_assert_int_lt(work, 1000 * COUNT);
    /* Less than the work is out of the question at once. */
    before = g.builder.squeezer.work;
    ck_assert(!hbp__step_squeeze(&g.builder.squeezer, &board, 0, NULL, 0, time[1] * .6, INT64_MAX));
    ck_assert_int_eq(g.builder.squeezer.work, before);
    ground_close(&g);
}
END_TEST

/* A squeeze may be long: it looks for a request to cancel, leaves the board alone then, and so ends the
 * search. */
START_TEST(a_request_to_cancel_ends_it)
{
    int64_t moved = 0;
    for (uint64_t i = 0; i < GROUNDS; i++) {
        ground g;
        hbp__step_board board, before;
        int64_t m = open_board(&g, i, 24, &board);
        hbp__step_squeezer *q = &g.builder.squeezer;
        board_remember(&g.step, &board, &before);
        hbp_context_cancel(g.step.context);
        double goal = (board.makespan[m] + g.builder.fixed) / 2;
        if (!hbp__step_squeeze(q, &board, m, NULL, 0, goal, 200) && q->status < 0) {
            ck_assert_int_eq(q->status, HBP_E_CANCELLED);
            board_same(&board, &before);
            ck_assert(!hbp__step_listen(&g.builder));
            ck_assert_int_eq(g.builder.status, HBP_E_CANCELLED);
            moved++;
        }
        ground_close(&g);
    }
    ck_assert_int_gt(moved, GROUNDS / 2);
}
END_TEST

/* Rank-time over the goal of the groups of micro-batch m, as a part of what all ranks do in it. */
static double part_over(const ground *g, const hbp__step_board *board, int64_t m, double goal)
{
    double sum = 0;
    for (int64_t i = m * board->ranks; i < m * board->ranks + board->groups[m]; i++)
        if (board->group[i].time > goal)
            sum += (board->group[i].time - goal) * g->step.degree[board->group[i].degree].degree;
    return sum / (goal * g->step.ranks);
}

/* A quick one does the same, but leaves alone what is far from the goal. */
START_TEST(a_quick_one_leaves_what_is_far)
{
    int64_t far = 0, met = 0;
    for (uint64_t i = 0; i < GROUNDS; i++) {
        ground g;
        hbp__step_board board, before, own;
        int64_t m = open_board(&g, i, 24, &board);
        const double whole = board.makespan[m];
        hbp__step_squeezer *q = &g.builder.squeezer;
        board_remember(&g.step, &board, &before);
        board_remember(&g.step, &board, &own);
        for (int draw = 0; draw < 8; draw++) {
            const double goal = whole * small_between(&g.rng, draw % 2 ? .8 : .995, 1);
            const double over = part_over(&g, &before, m, goal);
            q->quick = 0;
            const int plainly = hbp__step_squeeze(q, &own, m, NULL, 0, goal, 200);
            q->quick = 1;
            const int quickly = hbp__step_squeeze(q, &board, m, NULL, 0, goal, 200);
            if (over > HBP__SQUEEZE_FAR * (1 + 1e-9)) {
                ck_assert(!quickly);
                board_same(&board, &before);
                far += plainly;
            } else if (over < HBP__SQUEEZE_FAR * (1 - 1e-9)) {
                ck_assert_int_eq(quickly, plainly);
                board_same(&board, &own);
                met += quickly;
            }
            hbp__step_board_copy(&g.step, &before, &board);
            hbp__step_board_copy(&g.step, &before, &own);
        }
        ground_close(&g);
    }
    ck_assert_int_gt(far, 0);
    ck_assert_int_gt(met, GROUNDS / 2);
}
END_TEST

static hbp_status open_once(hbp_context *context, void *user)
{
    hbp__step step = *(const hbp__step *)user;
    hbp__step_squeezer squeezer;
    step.context = context;
    hbp_status status = hbp__step_squeezer_open(&step, &squeezer);
    return status;
}

START_TEST(nothing_is_left_behind)
{
    ground g;
    ground_open(&g, 3, GROUND_LONG, 24);
    failing_sweep(open_once, &g.step);
    ground_close(&g);
}
END_TEST

TEST_MAIN("squeeze", the_goal_is_kept_or_nothing_happens, what_is_short_enough_takes_no_move,
          no_group_takes_nothing, most_best_assignments_are_found, the_work_is_about_linear,
          a_quick_one_leaves_what_is_far, a_request_to_cancel_ends_it, nothing_is_left_behind)
