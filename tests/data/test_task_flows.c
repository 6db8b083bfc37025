/* hbp__task_flows_* (lib/data/tasks/task_flows.c). */
#include "data/tasks/task_flows.h"

#include "failing.h"
#include "task_schedules.h"

/* The slice that runs operator o of the graph. */
static int32_t slice_of(const drawn *d, int32_t o)
{
    for (int64_t s = 0; s < d->slices.count; s++) {
        const hbp__task_slice *slice = &d->slices.slice[s];
        if (slice->meta_op == d->meta.meta_of[o] && d->meta.place_of[o] >= slice->first &&
            d->meta.place_of[o] < slice->first + slice->count)
            return (int32_t)s;
    }
    ck_abort_msg("operator %d is in no slice", (int)o);
    return -1;
}

START_TEST(edges_between_slices)
{
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    for (int i = 0; i < 300; i++) {
        drawn d;
        hbp__task_flows flows;
        drawn_random(&d, &rng);
        OK(d.context, hbp__task_flows_open(d.context, d.graph, &d.meta, &d.slices, &flows));
        int64_t at = 0;
        for (int32_t s = 0; s < d.slices.count; s++) {
            ck_assert_int_eq(flows.in_first[s], at);
            for (int64_t e = 0; e < d.graph->edge_count; e++) {
                int32_t from = slice_of(&d, d.graph->edge_from[e]), to = slice_of(&d, d.graph->edge_to[e]);
                if (to != s || from == to)
                    continue;
                ck_assert_int_lt(at, flows.count);
                ck_assert_int_eq(flows.flow[at].from, from);
                ck_assert_int_eq(flows.flow[at].to, to);
                ck_assert_int_eq(flows.flow[at].bytes, d.graph->edge_bytes[e]);
                at++;
            }
        }
        ck_assert_int_eq(flows.count, at);
        ck_assert_int_eq(flows.in_first[d.slices.count], at);
        hbp__task_flows_close(&flows);
        drawn_close(&d);
    }
}
END_TEST

/* Between slices of a MetaOp goes the output of the last operator of the former; from its last slice what
 * its successor asks for. */
START_TEST(slices_of_a_chain)
{
    hbp_context *context = test_context();
    hbp_graph *graph = new_graph(context);
    hbp_operator o = {.struct_size = sizeof o};
    o.profile = add_falling_profile(context, graph, 1000, 0, 4);
    o.degrees = HBP_DEGREES_PROFILED;
    o.output_bytes = 40;
    int32_t a = add_chain(context, graph, &o, "a", "encoder", "task", 5);
    int32_t b = add_chain(context, graph, &o, "b", "head", "task", 1);
    OK(context, hbp_graph_add_edge(context, graph, a + 4, b, 7));
    drawn d;
    drawn_open(&d, context, graph, 1, 4, 4);
    drawn_add(&d, 0, 0, 2, 0, 4, 0, 0);
    drawn_add(&d, 0, 2, 3, 0, 2, 1, 500);
    drawn_add(&d, 1, 0, 1, 0, 4, 2, 2000);
    hbp__task_flows flows;
    OK(context, hbp__task_flows_open(context, graph, &d.meta, &d.slices, &flows));
    ck_assert_int_eq(flows.count, 2);
    ck_assert_int_eq(flows.flow[0].from, 0);
    ck_assert_int_eq(flows.flow[0].to, 1);
    ck_assert_int_eq(flows.flow[0].bytes, 40);
    ck_assert_int_eq(flows.flow[1].from, 1);
    ck_assert_int_eq(flows.flow[1].to, 2);
    ck_assert_int_eq(flows.flow[1].bytes, 7);
    hbp__task_flows_close(&flows);
    drawn_close(&d);
}
END_TEST

static hbp_status open_flows(hbp_context *context, void *user)
{
    const drawn *d = user;
    hbp__task_flows flows;
    HBP__TRY(hbp__task_flows_open(context, d->graph, &d->meta, &d->slices, &flows));
    hbp__task_flows_close(&flows);
    return HBP_OK;
}

START_TEST(allocations_fail)
{
    hbp__rng rng = hbp__rng_make(8, 0, 0);
    drawn d;
    drawn_random(&d, &rng);
    failing_sweep(open_flows, &d);
    drawn_close(&d);
}
END_TEST

TEST_MAIN("task_flows", edges_between_slices, slices_of_a_chain, allocations_fail)
