/* hbp__flow_between and what operators take (lib/data/tasks/flow.c). */
#include "base/rng.h"
#include "data/tasks/flow.h"
#include "test.h"

enum { MOST = 8, UNITS = 64 };

static int64_t lcm(int64_t a, int64_t b)
{
    int64_t x = a, y = b;
    while (y) {
        int64_t t = x % y;
        x = y;
        y = t;
    }
    return a / x * b;
}

/* Whether unit i of `from` may stay where unit j of `to` is needed. */
static int may_stay(const int32_t *from, int64_t each_from, const int32_t *to, int64_t each_to, int64_t i,
                    int64_t j, int32_t domain)
{
    return from[i / each_from] / domain == to[j / each_to] / domain;
}

/* Grows a matching of units by one from unit i, as Kuhn does. */
static int grow(const int32_t *from, int64_t each_from, const int32_t *to, int64_t each_to, int64_t units,
                int32_t domain, int64_t i, char *seen, int64_t *matched)
{
    for (int64_t j = 0; j < units; j++)
        if (!seen[j] && may_stay(from, each_from, to, each_to, i, j, domain)) {
            seen[j] = 1;
            if (matched[j] < 0 ||
                grow(from, each_from, to, each_to, units, domain, matched[j], seen, matched)) {
                matched[j] = i;
                return 1;
            }
        }
    return 0;
}

/* The most units, of as many as both sides divide, that need not leave their domain: ranks hold and need
 * equal numbers of them, and any layout will do. */
static int64_t most_staying(const int32_t *from, int32_t froms, const int32_t *to, int32_t tos,
                            int32_t domain)
{
    int64_t units = lcm(froms, tos), matched[UNITS], staying = 0;
    ck_assert_int_le(units, UNITS);
    for (int64_t j = 0; j < units; j++)
        matched[j] = -1;
    for (int64_t i = 0; i < units; i++) {
        char seen[UNITS] = {0};
        staying += grow(from, units / froms, to, units / tos, units, domain, i, seen, matched);
    }
    return staying;
}

static int32_t draw_ranks(hbp__rng *rng, int32_t *ranks)
{
    int32_t count = 0;
    while (!count)
        for (int32_t r = 0; r < MOST; r++)
            if (hbp__rng_below(rng, 2))
                ranks[count++] = r;
    return count;
}

START_TEST(flows_match_units)
{
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    for (int i = 0; i < 2000; i++) {
        int32_t from[MOST], to[MOST], domain = 1 + (int32_t)hbp__rng_below(&rng, MOST);
        int32_t froms = draw_ranks(&rng, from), tos = draw_ranks(&rng, to);
        int64_t units = lcm(froms, tos), each = 1 + hbp__rng_below(&rng, 1000);
        hbp__flow flow = hbp__flow_between(from, froms, to, tos, domain, units * each);
        ck_assert_int_eq(flow.moved, each * (units - most_staying(from, froms, to, tos, 1)));
        ck_assert_int_eq(flow.crossing, each * (units - most_staying(from, froms, to, tos, domain)));
    }
}
END_TEST

/* One layout reaches both: what stays on its GPU stays in its domain as well. */
static void best_layout(const int32_t *from, int64_t each_from, const int32_t *to, int64_t each_to,
                        int64_t units, int32_t domain, int64_t i, int used, int64_t local, int64_t near,
                        int64_t *best_local, int64_t *best_near)
{
    if (i == units) {
        if (local > *best_local || (local == *best_local && near > *best_near)) {
            *best_local = local;
            *best_near = near;
        }
        return;
    }
    for (int64_t j = 0; j < units; j++)
        if (!(used >> j & 1))
            best_layout(from, each_from, to, each_to, units, domain, i + 1, used | 1 << j,
                        local + (from[i / each_from] == to[j / each_to]),
                        near + may_stay(from, each_from, to, each_to, i, j, domain), best_local, best_near);
}

START_TEST(one_layout_suits_both)
{
    hbp__rng rng = hbp__rng_make(2, 0, 0);
    for (int i = 0; i < 300; i++) {
        int32_t from[MOST], to[MOST], domain = 1 + (int32_t)hbp__rng_below(&rng, 4);
        int32_t froms = draw_ranks(&rng, from), tos = draw_ranks(&rng, to);
        int64_t units = lcm(froms, tos), local = -1, near = -1;
        if (units > 6)
            continue;
        best_layout(from, units / froms, to, units / tos, units, domain, 0, 0, 0, 0, &local, &near);
        hbp__flow flow = hbp__flow_between(from, froms, to, tos, domain, units);
        ck_assert_int_eq(flow.moved, units - local);
        ck_assert_int_eq(flow.crossing, units - near);
    }
}
END_TEST

/* part / whole of `bytes`, rounded up, where whole^2 fits: bytes = q whole + r. */
static int64_t share_up(int64_t bytes, int64_t part, int64_t whole)
{
    int64_t q = bytes / whole, r = bytes % whole;
    return q * part + (r * part + whole - 1) / whole;
}

START_TEST(bytes_round_up)
{
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    for (int i = 0; i < 20000; i++) {
        int32_t from[MOST], to[MOST], domain = 1 + (int32_t)hbp__rng_below(&rng, MOST);
        int32_t froms = draw_ranks(&rng, from), tos = draw_ranks(&rng, to), common = 0, stays = 0;
        uint64_t bits = hbp__rng_next(&rng);
        int64_t bytes = (int64_t)(bits >> (2 + hbp__rng_below(&rng, 62)));
        for (int32_t a = 0; a < froms; a++)
            for (int32_t b = 0; b < tos; b++)
                common += from[a] == to[b];
        for (int32_t d = 0; d < MOST; d++) {
            int32_t mine = 0, theirs = 0;
            for (int32_t a = 0; a < froms; a++)
                mine += from[a] / domain == d;
            for (int32_t b = 0; b < tos; b++)
                theirs += to[b] / domain == d;
            stays += mine * tos < theirs * froms ? mine * tos : theirs * froms;
        }
        hbp__flow flow = hbp__flow_between(from, froms, to, tos, domain, bytes);
        int32_t larger = froms > tos ? froms : tos;
        ck_assert_int_eq(flow.moved, share_up(bytes, larger - common, larger));
        ck_assert_int_eq(flow.crossing, share_up(bytes, froms * tos - stays, froms * tos));
        ck_assert_int_le(flow.crossing, flow.moved);
        hbp__flow back = hbp__flow_between(to, tos, from, froms, domain, bytes);
        ck_assert_int_eq(back.moved, flow.moved);
        ck_assert_int_eq(back.crossing, flow.crossing);
    }
}
END_TEST

START_TEST(known_flows)
{
    static const int32_t all[] = {0, 1, 2, 3, 4, 5, 6, 7}, odd[] = {1, 3};
    const struct {
        int32_t from, froms, to, tos, domain;
        int64_t bytes, moved, crossing;
    } cases[] = {
        {0, 4, 0, 4, 4, 1000, 0, 0},       /* the same ranks */
        {0, 4, 4, 4, 4, 1000, 1000, 1000}, /* another domain */
        {0, 2, 2, 2, 4, 1000, 1000, 0},    /* the same domain */
        {0, 4, 0, 8, 8, 1000, 500, 0},     /* half of each shard goes on */
        {0, 4, 0, 8, 4, 1000, 500, 500},
        {0, 8, 0, 4, 4, 1000, 500, 500},
        {0, 8, 0, 1, 2, 1000, 875, 750},
        {0, 8, 0, 1, 2, 1, 1, 1}, /* rounded up */
        {0, 8, 0, 1, 2, 0, 0, 0},
        {0, 8, 0, 1, 2, INT64_MAX, INT64_MAX - INT64_MAX / 8, INT64_MAX - INT64_MAX / 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hbp__flow flow = hbp__flow_between(&all[cases[i].from], cases[i].froms, &all[cases[i].to],
                                           cases[i].tos, cases[i].domain, cases[i].bytes);
        ck_assert_msg(flow.moved == cases[i].moved && flow.crossing == cases[i].crossing,
                      "case %d: %lld moved, %lld crossing", (int)i, (long long)flow.moved,
                      (long long)flow.crossing);
    }
    hbp__flow flow = hbp__flow_between(odd, 2, &all[2], 2, 2, 100);
    ck_assert_int_eq(flow.moved, 50);
    ck_assert_int_eq(flow.crossing, 50);
}
END_TEST

/* Products past 63 bits go bit by bit. */
START_TEST(many_ranks_and_bytes)
{
    enum { RANKS = 40000 };
    static int32_t from[RANKS], to[RANKS];
    for (int32_t i = 0; i < RANKS; i++) {
        from[i] = i;
        to[i] = i + 1;
    }
    hbp__flow flow = hbp__flow_between(from, RANKS, to, RANKS, 8, INT64_C(1) << 62);
    ck_assert_int_eq(flow.moved, (INT64_C(1) << 62) / RANKS + 1);
    ck_assert_int_eq(flow.crossing, (INT64_C(1) << 62) / RANKS + 1);
    flow = hbp__flow_between(from, RANKS, to, RANKS - 1, RANKS, INT64_C(1) << 62);
    ck_assert_int_eq(flow.crossing, 0);
    flow = hbp__flow_between(from, RANKS, from, RANKS / 2, RANKS / 2, (INT64_C(1) << 62) + 1);
    ck_assert_int_eq(flow.crossing, (INT64_C(1) << 61) + 1);
}
END_TEST

START_TEST(operators_take)
{
    hbp__operator o = {.state_bytes = 1000, .sharded_bytes = 10, .activation_bytes = 7};
    ck_assert_int_eq(hbp__operator_activation(&o, 1), 7);
    ck_assert_int_eq(hbp__operator_activation(&o, 2), 4);
    ck_assert_int_eq(hbp__operator_activation(&o, 100), 1);
    ck_assert_int_eq(hbp__operator_states(&o, 1), 1010);
    ck_assert_int_eq(hbp__operator_states(&o, 3), 1004);
    hbp__operator empty = {0};
    ck_assert_int_eq(hbp__operator_activation(&empty, 3), 0);
    ck_assert_int_eq(hbp__operator_states(&empty, 3), 0);
}
END_TEST

TEST_MAIN("flow", flows_match_units, one_layout_suits_both, bytes_round_up, known_flows, many_ranks_and_bytes,
          operators_take)
