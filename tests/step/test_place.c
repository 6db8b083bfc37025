/* Placement against every placement. */
#include "base/rng.h"
#include "step/step.h"
#include "test.h"

typedef struct ground {
    hbp__step step;
    uint8_t taken[32];
} ground;

static void open_ground(ground *g, int32_t ranks, int32_t domain, const int32_t *degree, int32_t degrees)
{
    memset(g, 0, sizeof *g);
    g->step.ranks = ranks;
    g->step.domain = domain;
    g->step.chain = 1;
    for (int32_t j = 0; j < degrees && degree[j] <= ranks; j++) {
        g->step.degree[j].degree = degree[j];
        g->step.chain = g->step.chain && (!j || degree[j] % degree[j - 1] == 0);
        g->step.degrees++;
    }
    g->step.taken = g->step.chain ? NULL : g->taken;
}

static uint32_t ranks_of(const ground *g, int32_t degree, int32_t first)
{
    if (first % degree || first + degree > g->step.ranks ||
        (degree <= g->step.domain && first / g->step.domain != (first + degree - 1) / g->step.domain))
        return 0;
    return (degree == 32 ? UINT32_MAX : (UINT32_C(1) << degree) - 1) << first;
}

/* Whether groups g, g + 1, ... of `group` [count], equal ones side by side, have a place beside `taken`. */
static int has_place(const ground *on, const int32_t *group, int64_t count, int64_t g, int32_t from,
                     uint32_t taken)
{
    if (g == count)
        return 1;
    int32_t degree = on->step.degree[group[g]].degree;
    for (int32_t at = from; at + degree <= on->step.ranks; at += degree) {
        uint32_t mine = ranks_of(on, degree, at);
        if (!mine || taken & mine)
            continue;
        int equal = g + 1 < count && group[g + 1] == group[g];
        if (has_place(on, group, count, g + 1, equal ? at + degree : 0, taken | mine))
            return 1;
    }
    return 0;
}

static void check_places(const ground *g, const int32_t *group, int64_t count)
{
    int32_t first[32];
    uint32_t taken = 0;
    ck_assert_int_ne(hbp__step_place(&g->step, group, count, first), 0);
    for (int64_t i = 0; i < count; i++) {
        uint32_t mine = ranks_of(g, g->step.degree[group[i]].degree, first[i]);
        ck_assert_msg(mine && !(taken & mine), "group %d of degree %d at rank %d", (int)i,
                      (int)g->step.degree[group[i]].degree, (int)first[i]);
        taken |= mine;
    }
}

typedef struct tally {
    int64_t tried, placed, missed;
    char example[128]; /* the first set of groups that has a place and did not get it */
} tally;

static void note_missed(const ground *g, const int32_t *group, int64_t count, tally *t)
{
    char *at = t->example;
    for (int64_t i = 0; i < count && !t->missed; i++)
        at += snprintf(at, (size_t)(t->example + sizeof t->example - at), " %d",
                       (int)g->step.degree[group[i]].degree);
    t->missed++;
}

/* Every multiset of degrees >= 2 that the ranks can hold; single ranks go wherever one is free. */
static void walk(ground *g, int32_t *group, int64_t count, int32_t most, int32_t left, tally *t)
{
    int has = has_place(g, group, count, 0, 0, 0), found = hbp__step_place(&g->step, group, count, NULL);
    t->tried++;
    t->placed += has;
    if (found) {
        ck_assert_int_ne(has, 0);
        check_places(g, group, count);
    } else if (has)
        note_missed(g, group, count, t);
    for (int32_t j = most; j >= 1; j--)
        if (g->step.degree[j].degree <= left) {
            group[count] = j;
            walk(g, group, count + 1, j, left - g->step.degree[j].degree, t);
        }
}

static tally walk_all(int32_t ranks, int32_t domain, const int32_t *degree, int32_t degrees)
{
    ground g;
    tally t = {0};
    int32_t group[32] = {0};
    open_ground(&g, ranks, domain, degree, degrees);
    walk(&g, group, 0, g.step.degrees - 1, ranks, &t);
    return t;
}

/* Where degrees nest, groups fit when their ranks do. */
START_TEST(a_chain_always_has_a_place)
{
    static const struct {
        int32_t ranks, domain, degree[5], degrees;
    } row[] = {{16, 8, {1, 2, 4, 8, 16}, 5},
               {16, 2, {1, 2, 4, 8, 16}, 5},
               {24, 12, {1, 3, 6, 12, 24}, 5},
               {24, 8, {1, 2, 8, 24}, 4},
               {12, 4, {1, 2, 6, 12}, 4}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        tally t = walk_all(row[i].ranks, row[i].domain, row[i].degree, row[i].degrees);
        ck_assert_int_eq(t.tried, t.placed);
        ck_assert_int_eq(t.missed, 0);
        ck_assert_int_gt(t.tried, 10);
    }
}
END_TEST

START_TEST(too_many_ranks_have_no_place)
{
    ground g;
    open_ground(&g, 8, 8, (int32_t[]){1, 2, 4, 8}, 4);
    ck_assert_int_eq(hbp__step_place(&g.step, (int32_t[]){2, 2, 0}, 3, NULL), 0);
    ck_assert_int_eq(hbp__step_place(&g.step, (int32_t[]){3, 0}, 2, NULL), 0);
    ck_assert_int_ne(hbp__step_place(&g.step, NULL, 0, NULL), 0);
    check_places(&g, (int32_t[]){0, 2, 0, 1}, 4);
    open_ground(&g, 12, 12, (int32_t[]){1, 2, 3, 4, 6, 12}, 6);
    ck_assert_int_eq(hbp__step_place(&g.step, (int32_t[]){3, 4, 2}, 3, NULL), 0);
    ck_assert_int_eq(hbp__step_place(&g.step, (int32_t[]){3, 3, 3, 0}, 4, NULL), 0);
}
END_TEST

/* Degrees that do not nest: the first place for the largest group is nearly always right. */
START_TEST(other_degrees_find_their_place)
{
    static const struct {
        int32_t ranks, domain, degree[8], degrees;
        int64_t most_missed;
    } row[] = {{12, 12, {1, 2, 3, 4, 6, 12}, 6, 0},
               {12, 6, {1, 2, 3, 6, 12}, 5, 0},
               {6, 6, {1, 2, 3, 6}, 4, 0},
               {24, 12, {1, 2, 3, 4, 6, 12, 24}, 7, 4},    /* of 343, such as 6 4 4 4 3 3 */
               {24, 24, {1, 2, 3, 4, 6, 8, 12, 24}, 8, 7}, /* of 458, such as 8 6 3 3 2 2 */
               {24, 4, {1, 2, 4, 6, 12}, 5, 0},
               {18, 6, {1, 2, 3, 6, 9, 18}, 6, 0}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        tally t = walk_all(row[i].ranks, row[i].domain, row[i].degree, row[i].degrees);
        ck_assert_msg(t.missed <= row[i].most_missed, "row %d: %d of %d sets of groups missed, first%s",
                      (int)i, (int)t.missed, (int)t.placed, t.example);
        ck_assert_int_gt(t.placed, 5);
    }
}
END_TEST

TEST_MAIN("place", a_chain_always_has_a_place, too_many_ranks_have_no_place, other_degrees_find_their_place)
