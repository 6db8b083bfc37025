#include "failing.h"

#include "base/checked.h"
#include "base/rng.h"
#include "solve/multiple_choice.h"

#define MOST_ITEMS 400

typedef struct instance {
    hbp__multiple_choice p;
    int32_t group[MOST_ITEMS];
    int32_t first[MOST_ITEMS + 1];
    int64_t cost[MOST_ITEMS * 4];
    int64_t size[MOST_ITEMS * 4];
    double weight[3];
} instance;

/* Items of 1 to 4 options in up to 3 groups; `kinds` > 0: drawn from so many kinds; `budget` in thousandths
 * of the largest size. */
static void draw(instance *t, hbp__rng *rng, int32_t items, int32_t groups, int32_t kinds, int64_t most,
                 int64_t budget)
{
    int64_t all[3] = {0};
    t->first[0] = 0;
    for (int32_t g = 0; g < groups; g++)
        t->weight[g] = hbp__rng_below(rng, 3) ? (double)hbp__rng_below(rng, 4000) / 1000
                                              : (double)(1 + hbp__rng_below(rng, 3));
    uint64_t seed = hbp__rng_next(rng);
    for (int32_t i = 0; i < items; i++) {
        hbp__rng own =
            hbp__rng_make(seed, (uint64_t)(kinds ? (int32_t)hbp__rng_below(rng, (uint64_t)kinds) : i), 0);
        int32_t options = 1 + (int32_t)hbp__rng_below(&own, 4);
        int64_t largest = 0;
        t->group[i] = (int32_t)((int64_t)i * groups / items);
        t->first[i + 1] = t->first[i] + options;
        for (int32_t o = t->first[i]; o < t->first[i + 1]; o++) {
            t->cost[o] = hbp__rng_below(&own, (uint64_t)most);
            t->size[o] = hbp__rng_below(&own, (uint64_t)most);
            largest = t->size[o] > largest ? t->size[o] : largest;
        }
        all[t->group[i]] += largest;
    }
    double size = 0;
    for (int32_t g = 0; g < groups; g++)
        size += (double)all[g] * t->weight[g];
    t->p = (hbp__multiple_choice){items,    groups,  t->group, t->weight,
                                  t->first, t->cost, t->size,  (int64_t)(size * (double)budget / 1000),
                                  INT64_MAX};
}

static int64_t size_of(const instance *t, const int32_t *chosen, int64_t *cost)
{
    int64_t sums[3] = {0}, size = 0;
    *cost = 0;
    for (int32_t i = 0; i < t->p.items; i++) {
        sums[t->group[i]] += t->size[t->first[i] + chosen[i]];
        *cost += t->cost[t->first[i] + chosen[i]];
    }
    for (int32_t g = 0; g < t->p.groups; g++)
        size += hbp__round_i64((double)sums[g] * t->weight[g]);
    return size;
}

/* All combinations; -1: none fits. */
static int64_t oracle(const instance *t)
{
    int32_t chosen[16] = {0};
    int64_t best = -1;
    for (;;) {
        int64_t cost;
        if (size_of(t, chosen, &cost) <= t->p.budget && (best < 0 || cost < best))
            best = cost;
        int32_t i = 0;
        while (i < t->p.items && ++chosen[i] == t->first[i + 1] - t->first[i])
            chosen[i++] = 0;
        if (i == t->p.items)
            return best;
    }
}

static hbp__multiple_choice_answer solve(hbp_context *context, const instance *t, int64_t work,
                                         int32_t *chosen)
{
    hbp__multiple_choice_answer answer;
    OK(context, hbp__multiple_choice_solve(context, &t->p, &work, chosen, &answer));
    if (answer.found) {
        int64_t cost;
        ck_assert_int_le(size_of(t, chosen, &cost), t->p.budget);
        ck_assert_int_eq(cost, answer.cost);
        ck_assert(cost < t->p.below || t->p.below == INT64_MAX);
    }
    return answer;
}

START_TEST(equals_all_combinations)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(17, 0, 0);
    static instance t;
    int64_t found = 0, beaten = 0;
    const int32_t runs = TEST_FEW(20000, 5000);
    for (int32_t run = 0; run < runs; run++) {
        int32_t items = 1 + (int32_t)hbp__rng_below(&rng, 7);
        int32_t groups = 1 + (int32_t)hbp__rng_below(&rng, 3);
        draw(&t, &rng, items, groups < items ? groups : items, (int32_t)hbp__rng_below(&rng, 4),
             run % 3 ? 1000000 : 12, (int64_t)hbp__rng_below(&rng, 1000));
        int64_t best = oracle(&t);
        int32_t chosen[16], greedy[16];
        hbp__multiple_choice_answer answer = solve(context, &t, 1 << 20, chosen);
        ck_assert_int_eq(answer.proven, 1);
        ck_assert_int_eq(answer.found, best >= 0);
        if (best < 0)
            continue;
        ck_assert_int_eq(answer.cost, best);
        found++;
        /* Without work to spend there is a choice, only no proof. */
        answer = solve(context, &t, 0, greedy);
        ck_assert_int_eq(answer.found, 1);
        ck_assert_int_ge(answer.cost, best);
        ck_assert(answer.cost == best || !answer.proven);
        beaten += answer.cost > best;
        /* Nothing below the best; the best below one more. */
        t.p.below = best;
        answer = solve(context, &t, 1 << 20, chosen);
        ck_assert(!answer.found && answer.proven);
        t.p.below = best + 1;
        answer = solve(context, &t, 1 << 20, chosen);
        ck_assert(answer.found && answer.proven && answer.cost == best);
    }
    ck_assert_int_gt(found, runs / 2);
    ck_assert_int_gt(beaten, runs / 200); /* the search earns its place */
    hbp_context_free(context);
}
END_TEST

/* Hundreds of items: proven with little work where they are of few kinds, and also where all differ. */
START_TEST(hundreds_of_items_are_proven)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(23, 0, 0);
    static instance t;
    static int32_t chosen[MOST_ITEMS];
    int32_t searched = 0;
    for (int32_t run = 0; run < 60; run++) {
        draw(&t, &rng, MOST_ITEMS, 1 + run % 2, run % 3 ? 5 : 0, 1000000000, 200 + 10 * run);
        hbp__multiple_choice_answer answer = solve(context, &t, 1 << 24, chosen);
        ck_assert_msg(answer.proven, "run %d", (int)run);
        searched += answer.found && answer.cost > 0;
    }
    ck_assert_int_gt(searched, 20);
    hbp_context_free(context);
}
END_TEST

START_TEST(work_is_counted)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(29, 0, 0);
    static instance t;
    static int32_t chosen[MOST_ITEMS];
    int32_t stopped = 0;
    for (int32_t run = 0; run < 20; run++) {
        draw(&t, &rng, 200, 2, 0, 1000000000, 700);
        hbp__multiple_choice_answer all = solve(context, &t, 1 << 24, chosen);
        hbp__multiple_choice_answer some = solve(context, &t, 400, chosen);
        ck_assert(all.found && some.found);
        ck_assert_int_ge(some.cost, all.cost);
        stopped += !some.proven;
        int64_t work = 1 << 20;
        hbp__multiple_choice_answer answer;
        OK(context, hbp__multiple_choice_solve(context, &t.p, &work, chosen, &answer));
        ck_assert_int_le(work, (1 << 20) - 200);
    }
    ck_assert_int_gt(stopped, 10);
    hbp_context_free(context);
}
END_TEST

static void three(instance *t, int64_t budget)
{
    static const int64_t cost[] = {0, 5, 0, 7, 9, 0, 3}, size[] = {10, 2, 20, 6, 1, 8, 8};
    static const int32_t first[] = {0, 2, 5, 7};
    *t = (instance){.weight = {1}};
    memcpy(t->cost, cost, sizeof cost);
    memcpy(t->size, size, sizeof size);
    memcpy(t->first, first, sizeof first);
    t->p = (hbp__multiple_choice){3, 1, t->group, t->weight, t->first, t->cost, t->size, budget, INT64_MAX};
}

START_TEST(a_small_one_by_hand)
{
    hbp_context *context = test_context();
    static instance t;
    static const struct {
        int64_t budget, cost;
        int32_t chosen[3];
    } rows[] = {{38, 0, {0, 0, 0}}, {37, 5, {1, 0, 0}},  {29, 7, {0, 1, 0}},
                {23, 9, {0, 2, 0}}, {16, 12, {1, 1, 0}}, {11, 14, {1, 2, 0}}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        int32_t chosen[3];
        three(&t, rows[r].budget);
        hbp__multiple_choice_answer answer = solve(context, &t, 1000, chosen);
        ck_assert(answer.found && answer.proven);
        ck_assert_int_eq(answer.cost, rows[r].cost);
        for (int i = 0; i < 3; i++)
            ck_assert_int_eq(chosen[i], rows[r].chosen[i]);
    }
    int32_t chosen[3];
    three(&t, 10);
    hbp__multiple_choice_answer answer = solve(context, &t, 1000, chosen);
    ck_assert(!answer.found && answer.proven);
    hbp_context_free(context);
}
END_TEST

static hbp_status solve_once(hbp_context *context, void *user)
{
    const instance *t = user;
    int32_t chosen[MOST_ITEMS];
    int64_t work = 1 << 24;
    hbp__multiple_choice_answer answer;
    return hbp__multiple_choice_solve(context, &t->p, &work, chosen, &answer);
}

START_TEST(failed_allocations_leave_nothing)
{
    hbp__rng rng = hbp__rng_make(31, 0, 0);
    static instance t;
    draw(&t, &rng, 60, 3, 0, 1000000, 700);
    failing_sweep(solve_once, &t);
    ck_assert_int_gt(cancel_sweep(solve_once, &t), 0);
}
END_TEST

TEST_MAIN("multiple_choice", equals_all_combinations, hundreds_of_items_are_proven, work_is_counted,
          a_small_one_by_hand, failed_allocations_leave_nothing)
