/* Operating points against the cost that they are made of, and the lists of them. */
#include "traps.h"

#include "keep.h"

#include "base/rng.h"
#include "cost/point.h"
#include "hbp/lengths.h"

enum { ROWS = 3, LAYERS = 12 };

/* A cost of which no term is 0; `saving` < 1 where recomputed layers take less memory. */
static hbp_cost *draw_cost(hbp_context *context, hbp__rng *rng)
{
    static const int32_t degree[ROWS] = {1, 3, 6};
    double latency[ROWS], slope[ROWS];
    for (int i = 0; i < ROWS; i++) {
        latency[i] = (double)hbp__rng_below(rng, 5000);
        slope[i] = (double)hbp__rng_below(rng, 100) / 8;
    }
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    terms.ranks = 12;
    terms.layers = 1 + (int32_t)hbp__rng_below(rng, LAYERS);
    terms.limit_bytes = 1000000;
    terms.ns_per_token = 1 + (double)hbp__rng_below(rng, 1000) / 8;
    terms.ns_per_token_squared = (double)hbp__rng_below(rng, 64) / 1024;
    terms.recompute_linear = .75;
    terms.recompute_attention = .5;
    terms.recompute_communication = .25;
    terms.pack_ns = (double)hbp__rng_below(rng, 9000);
    terms.static_bytes = 100000;
    terms.activation_bytes = (double)(1 + hbp__rng_below(rng, 900));
    terms.recomputed_bytes = (double)hbp__rng_below(rng, 500);
    terms.working_bytes = (double)hbp__rng_below(rng, 900);
    terms.logits_bytes = (double)hbp__rng_below(rng, 50);
    terms.sp_buffer_bytes = (double)hbp__rng_below(rng, 50);
    terms.ns_per_vision = (double)hbp__rng_below(rng, 4000);
    terms.recompute_vision = .5;
    terms.vision_bytes = (double)hbp__rng_below(rng, 4000);
    terms.degrees = ROWS;
    terms.degree = degree;
    terms.sp_latency_ns = latency;
    terms.sp_ns_per_token = slope;
    hbp_cost *cost = NULL;
    OK(context, hbp_cost_create_terms(context, &terms, &cost));
    return cost;
}

static int fits(const hbp_cost *cost, int32_t row, int32_t layers, int64_t tokens, int64_t vision)
{
    hbp__load load = {.tokens = tokens, .vision = vision};
    return hbp__cost_pack_bytes(cost, row, layers, load) <= cost->terms.limit_bytes;
}

START_TEST_IN_CONTEXT(a_point_takes_what_the_cost_says)
{
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    for (int i = 0; i < 200; i++) {
        hbp_cost *cost = draw_cost(context, &rng);
        int32_t row = (int32_t)hbp__rng_below(&rng, ROWS);
        int32_t layers = (int32_t)hbp__rng_below(&rng, (uint64_t)cost->terms.layers + 1);
        hbp__point p = hbp__point_make(cost, row, layers);
        double tokens = (double)(1 + hbp__rng_below(&rng, 10000)), squares = tokens * 300;
        double vision = (double)hbp__rng_below(&rng, 500);
        double ns = hbp__cost_ns(cost, row, layers, tokens, squares, vision);
        ck_assert_int_eq(p.row, row);
        ck_assert_int_eq(p.recompute, layers);
        ck_assert_double_eq_tol(p.constant + p.linear * tokens + p.square * squares + p.vision * vision, ns,
                                ns * 1e-12);
        ck_assert_double_eq_tol(p.constant - p.latency, cost->terms.pack_ns, 1e-9);
        ck_assert_int_eq(p.capacity, hbp_cost_predict_capacity(cost, cost->degree[row], layers));
        hbp_cost_free(cost);
    }
}
END_TEST

START_TEST_IN_CONTEXT(capacity_and_layers_count_vision_units)
{
    hbp__rng rng = hbp__rng_make(2, 0, 0);
    for (int i = 0; i < 100; i++) {
        hbp_cost *cost = draw_cost(context, &rng);
        int32_t row = (int32_t)hbp__rng_below(&rng, ROWS);
        int64_t vision = (int64_t)hbp__rng_below(&rng, 600);
        for (int32_t c = 0; c <= cost->terms.layers; c++) {
            int64_t capacity = hbp__cost_capacity(cost, row, c, vision);
            ck_assert(capacity == 0 || fits(cost, row, c, capacity, vision));
            ck_assert(!fits(cost, row, c, capacity + 1, vision));
        }
        for (int64_t tokens = 1; tokens < 8000; tokens *= 2) {
            int32_t fewest = hbp__cost_fewest_layers(cost, row, tokens, vision), c = 0;
            while (c <= cost->terms.layers && !fits(cost, row, c, tokens, vision))
                c++;
            ck_assert_int_eq(fewest, c > cost->terms.layers ? -1 : c);
        }
        hbp_cost_free(cost);
    }
}
END_TEST

/* Every listed point holds more than those with fewer layers, and what is left out holds no more than one
 * that is listed. */
START_TEST_IN_CONTEXT(lists_are_of_useful_points)
{
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    int64_t listed = 0;
    for (int i = 0; i < 200; i++) {
        hbp_cost *cost = draw_cost(context, &rng);
        int32_t row = (int32_t)hbp__rng_below(&rng, ROWS), at = 0;
        hbp__point point[LAYERS + 1];
        hbp__point_range range = {.last = cost->terms.layers,
                                  .stride = 1 + (int32_t)hbp__rng_below(&rng, 3),
                                  .most = i % 2 ? INT64_MAX : 700,
                                  .multiple = 1 + (int64_t)hbp__rng_below(&rng, 100),
                                  .keeps_equal = i / 2 % 2};
        int32_t count = hbp__points_list(cost, row, &range, point);
        for (int32_t c = 0; c <= range.last; c++) {
            int64_t holds = hbp__min_i64(hbp__cost_capacity(cost, row, c, 0), range.most);
            holds -= holds % range.multiple;
            if (c % range.stride && c < range.last)
                continue;
            int64_t before = !at ? 0 : point[at - 1].capacity - range.keeps_equal;
            if (at < count && point[at].recompute == c) {
                ck_assert_int_eq(point[at].capacity, holds);
                ck_assert_int_gt(holds, before);
                at++;
            } else {
                ck_assert_int_le(holds, before);
            }
        }
        ck_assert_int_eq(at, count);
        listed += count;
        hbp_cost_free(cost);
    }
    ck_assert_int_gt(listed, 400);
}
END_TEST

START_TEST_IN_CONTEXT(the_least_tokens_of_a_rank_know_no_cap)
{
    hbp__rng rng = hbp__rng_make(4, 0, 0);
    int64_t none = 0, capped_out = 0;
    for (int i = 0; i < 300; i++) {
        hbp_cost *cost = draw_cost(context, &rng);
        hbp_cost capped = hbp__cost_capped(cost, 10);
        int64_t tokens = 1 + (int64_t)hbp__rng_below(&rng, 20000), least = INT64_MAX;
        for (int32_t row = 0; row < ROWS; row++)
            if (hbp__cost_fewest_layers(cost, row, tokens, 0) >= 0)
                least = hbp__min_i64(least, hbp__ceil_div(tokens, cost->degree[row]));
        ck_assert_int_eq(hbp__cost_least_per_rank(cost, tokens), least);
        ck_assert_int_eq(hbp__cost_least_per_rank(&capped, tokens), least);
        none += least == INT64_MAX;
        capped_out += least < INT64_MAX && hbp__cost_fewest_layers(&capped, ROWS - 1, tokens, 0) < 0;
        hbp_cost_free(cost);
    }
    ck_assert_int_gt(none, 0);
    ck_assert_int_gt(capped_out, 0);
}
END_TEST

TEST_MAIN_WITH("point", traps_on, NULL, a_point_takes_what_the_cost_says,
               capacity_and_layers_count_vision_units, lists_are_of_useful_points,
               the_least_tokens_of_a_rank_know_no_cap)
