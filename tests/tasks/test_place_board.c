#include "tasks/place/place_board.h"

#include "failing.h"
#include "keep.h"
#include "place.h"
#include "tasks/place/place_methods.h"

/* Costs and bytes of random placements, by their definitions. */
static int64_t slow_cost(place_case *c, const hbp__board *board)
{
    int32_t gpus = c->problem.gpus, domain_gpus = board->domain_gpus;
    int64_t cost = weigh(flows_of(c, c->ranks));
    uint8_t *holds = malloc((size_t)gpus);
    /* Each set of weights by itself; on a board they are in bundles, so it may round up to once a set less.
     */
    for (int32_t p = 0; p < c->graph->parameters.count; p++) {
        int64_t gradient = 0, ranks = 0, least = INT64_MAX;
        memset(holds, 0, (size_t)gpus);
        for (int64_t s = 0; s < c->slices.count; s++) {
            const hbp__task_slice *slice = &c->slices.slice[s];
            for (int32_t i = 0; i < slice->count; i++) {
                int64_t at = c->meta.meta_op[slice->meta_op].first + slice->first + i;
                const hbp__operator *o = &c->graph->operators[c->meta.operators[at]];
                if (o->parameters != p)
                    continue;
                gradient = o->gradient_bytes > gradient ? o->gradient_bytes : gradient;
                for (int64_t r = c->first[s]; r < c->first[s + 1]; r++)
                    holds[c->ranks[r]] = 1;
            }
        }
        for (int32_t r = 0; r < gpus; r++)
            ranks += holds[r];
        for (int32_t d = 0; d * domain_gpus < gpus; d++) {
            int64_t held = 0;
            for (int32_t r = d * domain_gpus; r < gpus && r < (d + 1) * domain_gpus; r++)
                held += holds[r];
            least = held && held < least ? held : least;
        }
        int64_t part = gradient / HBP__GRADIENT_PART;
        cost += least < ranks ? (HBP__CROSSING - 1) * (part * (ranks - 1) / least) : 0;
        cost += part * (ranks > 0 ? ranks - 1 : 0);
    }
    for (int64_t s = 0; s < c->slices.count; s++) {
        const hbp__task_slice *slice = &c->slices.slice[s];
        int64_t span = 0, domains = 0, last = -1;
        for (int32_t i = 0; i < slice->count; i++) {
            int64_t at = c->meta.meta_op[slice->meta_op].first + slice->first + i;
            int64_t bytes = c->graph->operators[c->meta.operators[at]].output_bytes;
            span = bytes > span ? bytes : span;
        }
        for (int64_t r = c->first[s]; r < c->first[s + 1]; r++) {
            domains += c->ranks[r] / domain_gpus != last;
            last = c->ranks[r] / domain_gpus;
        }
        cost += domains > 1 ? (HBP__CROSSING - 1) * domains * (span / HBP__GRADIENT_PART) : 0;
    }
    free(holds);
    return cost;
}

/* A ring's links but one that each slice's own weights always have: the board leaves them out. */
static int64_t own_links(const hbp__board *board)
{
    int64_t cost = 0;
    for (int32_t s = 0; s < board->count; s++)
        cost += board->own_gradient[s] * (board->slice[s].gpus - 1);
    return cost;
}

START_TEST_IN_CONTEXT(costs_and_bytes_are_true)
{
    hbp__rng rng = hbp__rng_make(11, 0, 0);
    for (int32_t i = 0; i < 1000; i++) {
        place_case c;
        hbp__board board;
        int32_t gpus = (int32_t)random_between(&rng, 1, 80);
        graph_sizes sizes = {.tasks = 4, .most_gpus = gpus < 16 ? gpus : 16};
        open_random_case(context, &rng, &sizes, gpus, (int32_t)random_between(&rng, 1, gpus),
                         random_between(&rng, 0, 1) ? INT64_MAX : 1 << 29, &c);
        OK(context, hbp__board_open(context, &c.problem, &c.slices, NULL, &board));
        OK(context, hbp__board_greedy(&board, (int32_t)hbp__rng_below(&rng, 5)));
        hbp__board_write(&board, c.ranks);
        check_ranks(&c, c.ranks);
        int64_t peak = peak_of(&c, c.ranks, NULL), most = 0;
        for (int32_t r = 0; r < gpus; r++)
            most = board.rank_bytes[r] > most ? board.rank_bytes[r] : most;
        ck_assert_int_eq(most, peak);
        ck_assert_int_eq(board.over_bytes > 0, peak > c.problem.limit_bytes);
        ck_assert_int_eq(hbp__board_flow_cost(&board, c.ranks), weigh(flows_of(&c, c.ranks)));
        /* Sums are divided, where the definition sums quotients. */
        int64_t slow = slow_cost(&c, &board), fast = board.cost + own_links(&board);
        int64_t slack =
            (int64_t)c.graph->parameters.count * gpus * HBP__CROSSING + c.slices.count * gpus * HBP__CROSSING;
        ck_assert_int_le(slow, fast + slack);
        ck_assert_int_le(fast, slow + slack);
        check_board(&c, &board);
        int64_t added[80];
        int32_t every[80], one = (int32_t)hbp__rng_below(&rng, (uint64_t)board.count);
        for (int32_t r = 0; r < gpus; r++) {
            every[r] = r;
            added[r] = board.own_bytes[one];
        }
        for (int64_t k = board.share_first[one]; k < board.share_first[one + 1]; k++)
            hbp__board_add_bundle(&board, &board.share[k], every, gpus, added);
        for (int32_t r = 0; r < gpus; r++)
            ck_assert_int_eq(added[r], hbp__board_added(&board, one, r));
        hbp__board_clear(&board);
        ck_assert_int_eq(hbp__board_alone(&board, one), hbp__board_added(&board, one, 0));
        close_case(&c);
    }
}
END_TEST

/* low and high bracket every slice that overlaps. */
START_TEST_IN_CONTEXT(overlaps_are_bracketed)
{
    hbp__rng rng = hbp__rng_make(12, 0, 0);
    for (int32_t i = 0; i < 300; i++) {
        place_case c;
        hbp__board board;
        uint64_t used;
        open_random_case(context, &rng, NULL, 16, 4, INT64_MAX, &c);
        OK(context, hbp__board_open(context, &c.problem, &c.slices, NULL, &board));
        OK(context, hbp__board_greedy(&board, HBP__GREEDY_FIRST));
        for (int32_t s = 0; s < board.count; s++) {
            uint64_t slow = 0;
            ck_assert_int_eq(board.order[board.at[s]], s);
            for (int32_t t = 0; t < board.count; t++) {
                const hbp__task_slice *a = &board.slice[s], *b = &board.slice[t];
                int32_t overlap = a->start_ns < b->end_ns && b->start_ns < a->end_ns;
                ck_assert(!overlap || (board.at[t] >= board.low[s] && board.at[t] < board.high[s]));
                slow |= overlap && t != s ? *hbp__board_set(&board, t) : 0;
            }
            hbp__board_used(&board, s, &used);
            ck_assert(used == slow);
        }
        close_case(&c);
    }
}
END_TEST

/* Bytes near 2^62 are scaled down; costs stay sums without overflow. */
START_TEST_IN_CONTEXT(huge_bytes_do_not_overflow)
{
    hbp_graph *graph = new_graph(context);
    hbp_operator o = {.struct_size = sizeof o};
    o.profile = add_falling_profile(context, graph, 1000, 0, 4);
    o.batch = 4;
    o.gradient_bytes = INT64_C(1) << 60;
    o.state_bytes = INT64_C(1) << 60;
    o.output_bytes = INT64_C(1) << 59;
    add_chain(context, graph, &o, "layer", "lm", "task", 1);
    o.state_bytes = o.gradient_bytes = 0;
    add_chain(context, graph, &o, "next", "head", "task", 1);
    OK(context, hbp_graph_add_edge(context, graph, 0, 1, -1));
    place_case c;
    open_case(context, graph, 64, 4, INT64_MAX, &c);
    OK(context, hbp__task_slices_add(context, &c.slices, &(hbp__task_slice){0, 0, 1, 4, 0, 0, 250}));
    OK(context, hbp__task_slices_add(context, &c.slices, &(hbp__task_slice){1, 0, 1, 4, 1, 250, 500}));
    ready_case(&c);
    hbp__board board;
    OK(context, hbp__board_open(context, &c.problem, &c.slices, NULL, &board));
    ck_assert_int_gt(board.shift, 0);
    static const int32_t apart[] = {0, 4, 8, 12}, together[] = {1, 5, 9, 13}, same[] = {0, 1, 2, 3};
    hbp__board_put(&board, 0, apart);
    hbp__board_put(&board, 1, together);
    hbp__board_measure(&board);
    int64_t far = board.cost;
    ck_assert_int_gt(far, 0);
    ck_assert_int_lt(far, INT64_C(1) << 61);
    hbp__board_put(&board, 0, same);
    hbp__board_put(&board, 1, same);
    hbp__board_measure(&board);
    ck_assert_int_eq(board.cost, 0);
    close_case(&c);
}
END_TEST

TEST_MAIN("place_board", costs_and_bytes_are_true, overlaps_are_bracketed, huge_bytes_do_not_overflow)
