#include "base/methods.h"
#include "tasks/place/place.h"

#include "failing.h"
#include "keep.h"
#include "place.h"

/* Tries every set of ranks for every slice. */
typedef struct brute {
    place_case *c;
    hbp__board board;
    int64_t limit_bytes; /* of the placements whose costs count */
    int64_t least_peak;
    int64_t least_flow; /* INT64_MAX: none fits */
    int64_t least_cost;
} brute;

static void try_all(brute *b, int32_t s)
{
    place_case *c = b->c;
    if (s == (int32_t)c->slices.count) {
        int64_t peak = peak_of(c, c->ranks, NULL);
        b->least_peak = peak < b->least_peak ? peak : b->least_peak;
        if (peak > b->limit_bytes)
            return;
        int64_t flow = weigh(flows_of(c, c->ranks));
        b->least_flow = flow < b->least_flow ? flow : b->least_flow;
        for (int32_t t = 0; t < s; t++)
            hbp__board_put(&b->board, t, c->ranks + c->first[t]);
        hbp__board_measure(&b->board);
        ck_assert_int_ge(b->board.cost, b->board.least_cost);
        b->least_cost = b->board.cost < b->least_cost ? b->board.cost : b->least_cost;
        return;
    }
    const hbp__task_slice *slice = &c->slices.slice[s];
    uint32_t used = 0;
    for (int32_t t = 0; t < s; t++) {
        const hbp__task_slice *other = &c->slices.slice[t];
        if (other->end_ns > slice->start_ns && slice->end_ns > other->start_ns)
            for (int64_t i = c->first[t]; i < c->first[t + 1]; i++)
                used |= UINT32_C(1) << c->ranks[i];
    }
    for (uint32_t set = 0; set < UINT32_C(1) << c->problem.gpus; set++) {
        if ((set & used) || hbp__count_bits(set) != slice->gpus)
            continue;
        int64_t at = c->first[s];
        for (int32_t r = 0; r < c->problem.gpus; r++)
            if (set >> r & 1)
                c->ranks[at++] = r;
        try_all(b, s + 1);
    }
}

static brute try_every_placement(place_case *c, int64_t limit_bytes)
{
    brute b = {.c = c,
               .limit_bytes = limit_bytes,
               .least_peak = INT64_MAX,
               .least_flow = INT64_MAX,
               .least_cost = INT64_MAX};
    OK(c->context, hbp__board_open(c->context, &c->problem, &c->slices, NULL, &b.board));
    try_all(&b, 0);
    return b;
}

static void open_tiny(hbp_context *context, hbp__rng *rng, place_case *c)
{
    graph_sizes sizes = {.tasks = 2, .encoders = 2, .heads = 1, .chain = 3, .most_gpus = 4};
    for (;;) {
        int32_t gpus = (int32_t)random_between(rng, 2, 4);
        sizes.most_gpus = gpus;
        open_random_case(context, rng, &sizes, gpus, (int32_t)random_between(rng, 1, 4), INT64_MAX, c);
        if (c->slices.count <= 4)
            return;
        close_case(c);
    }
}

static int64_t cost_of(place_case *c, const int32_t *ranks)
{
    hbp__board board;
    OK(c->context, hbp__board_open(c->context, &c->problem, &c->slices, NULL, &board));
    for (int32_t s = 0; s < board.count; s++)
        hbp__board_put(&board, s, ranks + c->first[s]);
    hbp__board_measure(&board);
    int64_t cost = board.cost;
    return cost;
}

/* Where memory is just enough, a placement is found; and it costs what the cheapest costs. */
START_TEST_IN_CONTEXT(tiny_against_all_placements)
{
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    int32_t found[2] = {0, 0}, best[2] = {0, 0}, cases = TEST_FEW(600, 100);
    for (int32_t i = 0; i < cases; i++) {
        place_case c;
        open_tiny(context, &rng, &c);
        int64_t peak = try_every_placement(&c, INT64_MAX).least_peak;
        for (int32_t tight = 0; tight < 2; tight++) {
            int64_t limit = tight ? peak : INT64_MAX;
            brute b = try_every_placement(&c, limit);
            c.problem.limit_bytes = limit;
            if (place_slices(context, &c.problem, &c.slices, HBP__PLACEMENT_FLOWS, NULL, c.ranks) < 0)
                continue;
            found[tight]++;
            check_ranks(&c, c.ranks);
            ck_assert_int_le(peak_of(&c, c.ranks, NULL), limit);
            int64_t cost = cost_of(&c, c.ranks);
            ck_assert_int_ge(cost, b.least_cost);
            best[tight] += cost == b.least_cost;
        }
        c.problem.limit_bytes = peak - 1;
        if (peak > 0)
            FAILS(context, HBP_E_INFEASIBLE, " GPUs",
                  place_slices(context, &c.problem, &c.slices, (int32_t)(i % 3), NULL, c.ranks));
        close_case(&c);
    }
    printf("tiny: feasible %d and %d of %d, of least cost %d and %d\n", found[0], found[1], cases, best[0],
           best[1]);
    ck_assert_int_eq(found[0], cases);
    ck_assert_int_eq(found[1], cases);
    ck_assert_int_ge(best[0], cases * 98 / 100);
    ck_assert_int_ge(best[1], cases * 95 / 100);
}
END_TEST

/* Whatever is asked for: ranks are valid and memory is kept; more flows than on consecutive ranks there never
 * are. */
START_TEST_IN_CONTEXT(random_slices_are_placed)
{
    hbp__rng rng = hbp__rng_make(2, 0, 0);
    double sum = 0;
    int32_t compared = 0, tight = 0, fitted = 0, trials = TEST_FEW(600, 80);
    for (int32_t i = 0; i < trials; i++) {
        static const int32_t counts[] = {1, 2, 3, 5, 8, 8, 12, 16, 24};
        place_case c;
        int32_t gpus = counts[hbp__rng_below(&rng, 9)];
        int32_t domain = (int32_t)random_between(&rng, 1, gpus);
        graph_sizes sizes = {.tasks = 4, .most_gpus = gpus};
        open_random_case(context, &rng, &sizes, gpus, domain, INT64_MAX, &c);
        int32_t *in_row = malloc((size_t)c.first[c.slices.count] * sizeof *in_row);
        OK(context, place_slices(context, &c.problem, &c.slices, HBP__PLACEMENT_SEQUENTIAL, NULL, in_row));
        check_ranks(&c, in_row);
        OK(context, place_slices(context, &c.problem, &c.slices, HBP__PLACEMENT_SPINDLE, NULL, c.ranks));
        check_ranks(&c, c.ranks);
        OK(context, place_slices(context, &c.problem, &c.slices, HBP__PLACEMENT_FLOWS, NULL, c.ranks));
        check_ranks(&c, c.ranks);
        int64_t before = weigh(flows_of(&c, in_row)), after = weigh(flows_of(&c, c.ranks));
        ck_assert_int_le(after, before);
        if (before) {
            sum += (double)after / (double)before;
            compared++;
        }
        /* A limit that one of them needs, or a little less. */
        int64_t peak = peak_of(&c, in_row, NULL), ours = peak_of(&c, c.ranks, NULL);
        peak = ours < peak ? ours : peak;
        c.problem.limit_bytes = peak * random_between(&rng, 90, 100) / 100;
        for (int32_t how = 0; how < 3; how++) {
            hbp_status status = place_slices(context, &c.problem, &c.slices, how, NULL, c.ranks);
            tight++;
            fitted += status == HBP_OK;
            if (status < 0) {
                ck_assert_int_eq(status, HBP_E_INFEASIBLE);
                ck_assert_int_lt(c.problem.limit_bytes, peak);
                continue;
            }
            check_ranks(&c, c.ranks);
            ck_assert_int_le(peak_of(&c, c.ranks, NULL), c.problem.limit_bytes);
            if (peak_of(&c, in_row, NULL) <= c.problem.limit_bytes && how == HBP__PLACEMENT_FLOWS)
                ck_assert_int_le(weigh(flows_of(&c, c.ranks)), before);
        }
        free(in_row);
        close_case(&c);
    }
    printf("random: flows %.3f of consecutive ranks'; %d of %d fit a tight limit\n", sum / compared, fitted,
           tight);
    ck_assert_int_gt(compared, trials / 2);
    ck_assert(sum / compared < .8);
}
END_TEST

START_TEST_IN_CONTEXT(placing_is_deterministic)
{
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    for (int32_t i = 0; i < 20; i++) {
        place_case c;
        open_random_case(context, &rng, NULL, 16, 4, INT64_MAX, &c);
        size_t bytes = (size_t)c.first[c.slices.count] * sizeof *c.ranks;
        int32_t *again = malloc(bytes);
        OK(context, place_slices(context, &c.problem, &c.slices, 0, NULL, c.ranks));
        OK(context, place_slices(context, &c.problem, &c.slices, 0, NULL, again));
        ck_assert_mem_eq(c.ranks, again, bytes);
        free(again);
        close_case(&c);
    }
}
END_TEST

/* Two operators one after another, in a slice each, on `gpus` GPUs of a machine of 4, with a weight each. */
static void open_pair(hbp_context *context, int64_t state_bytes, int64_t limit_bytes, place_case *c)
{
    hbp_graph *graph = new_graph(context);
    hbp_operator o = {.struct_size = sizeof o};
    o.profile = add_falling_profile(context, graph, 1000, 0, 2);
    o.batch = 2;
    o.state_bytes = state_bytes;
    o.output_bytes = 100;
    add_chain(context, graph, &o, "layer", "lm", "task", 2);
    open_case(context, graph, 4, 2, limit_bytes, c);
    OK(context, hbp__task_slices_add(context, &c->slices, &(hbp__task_slice){0, 0, 1, 2, 0, 0, 500}));
    OK(context, hbp__task_slices_add(context, &c->slices, &(hbp__task_slice){0, 1, 1, 2, 1, 500, 1000}));
    c->slices.waves = 2;
    ready_case(c);
}

START_TEST_IN_CONTEXT(memory_beats_flows)
{
    place_case c;
    for (int32_t how = 0; how < 3; how++) {
        open_pair(context, 60, 120, &c);
        OK(context, place_slices(context, &c.problem, &c.slices, how, NULL, c.ranks));
        ck_assert_int_eq(flows_of(&c, c.ranks).moved, 0);
        c.problem.limit_bytes = 119; /* not both on one rank */
        OK(context, place_slices(context, &c.problem, &c.slices, how, NULL, c.ranks));
        ck_assert_int_eq(flows_of(&c, c.ranks).moved, 100);
        ck_assert_int_eq(peak_of(&c, c.ranks, NULL), 60);
        close_case(&c);
    }
}
END_TEST

START_TEST_IN_CONTEXT(messages)
{
    place_case c;
    open_pair(context, 60, 59, &c);
    FAILS(context, HBP_E_INFEASIBLE,
          "slice 0 (1 operators from layer[0]) needs 60 bytes on each of 2 GPUs; of those free at its time 0 "
          "have it, and the freest has 59 bytes of 59 bytes left, 1 byte short",
          place_slices(context, &c.problem, &c.slices, HBP__PLACEMENT_FLOWS, NULL, c.ranks));
    ck_assert_int_eq(c.ranks[0], -1); /* untouched */
    FAILS(context, HBP_E_INVALID, "placement 3; it is 0 to 2",
          place_slices(context, &c.problem, &c.slices, 3, NULL, c.ranks));
    FAILS(context, HBP_E_INVALID, "placement -1; it is 0 to 2",
          place_slices(context, &c.problem, &c.slices, -1, NULL, c.ranks));
    c.problem.limit_bytes = 100;
    c.problem.gpus = 2;
    FAILS(context, HBP_E_INFEASIBLE,
          "no placement found: slices take 240 bytes at least on 2 GPUs of 100 bytes",
          place_slices(context, &c.problem, &c.slices, HBP__PLACEMENT_SEQUENTIAL, NULL, c.ranks));
    c.slices.slice[1].start_ns = 100;
    FAILS(context, HBP_E_INVALID, "slice 1 runs on 2 GPUs when 2 of 2 are taken",
          place_slices(context, &c.problem, &c.slices, HBP__PLACEMENT_FLOWS, NULL, c.ranks));
    close_case(&c);
}
END_TEST

START_TEST_IN_CONTEXT(no_slices_need_nothing)
{
    place_case c;
    open_pair(context, 60, 100, &c);
    c.slices.count = 0;
    for (int32_t how = 0; how < 3; how++)
        OK(context, place_slices(context, &c.problem, &c.slices, how, NULL, c.ranks));
    close_case(&c);
}
END_TEST

typedef struct failing_place {
    place_case *c;
    int32_t placement;
    int64_t limit_bytes;
} failing_place;

static hbp_status place_again(hbp_context *context, void *user)
{
    failing_place *f = user;
    f->c->problem.limit_bytes = f->limit_bytes;
    return place_slices(context, &f->c->problem, &f->c->slices, f->placement, NULL, f->c->ranks);
}

START_TEST_IN_CONTEXT(failing_allocations_and_cancel)
{
    hbp__rng rng = hbp__rng_make(4, 0, 0);
    place_case c;
    open_random_case(context, &rng, &(graph_sizes){.tasks = 3, .all_tasks = 1}, 8, 4, INT64_MAX, &c);
    OK(context, place_slices(context, &c.problem, &c.slices, HBP__PLACEMENT_FLOWS, NULL, c.ranks));
    int64_t peak = peak_of(&c, c.ranks, NULL);
    for (int32_t how = 0; how < 3; how++)
        for (int32_t limited = 0; limited < 2; limited++) {
            failing_place f = {&c, how, limited ? peak : INT64_MAX};
            failing_sweep(place_again, &f);
            ck_assert_int_gt(cancel_sweep(place_again, &f), 0);
        }
    close_case(&c);
}
END_TEST

static hbp_status place_nowhere(hbp_context *context, void *user)
{
    hbp_status status = place_again(context, user);
    ck_assert_int_lt(status, 0);
    return status == HBP_E_INFEASIBLE ? HBP_OK : status;
}

/* A slice that no rank holds is not what is told where an allocation failed before. */
START_TEST_IN_CONTEXT(too_little_of_either_memory)
{
    place_case c;
    open_pair(context, 60, 59, &c);
    for (int32_t how = 0; how < 3; how++)
        failing_sweep(place_nowhere, &(failing_place){&c, how, 59});
    close_case(&c);
}
END_TEST

TEST_MAIN("place", tiny_against_all_placements, random_slices_are_placed, placing_is_deterministic,
          memory_beats_flows, messages, no_slices_need_nothing, failing_allocations_and_cancel,
          too_little_of_either_memory)
