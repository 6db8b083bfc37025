/* hbp__task_schedule_compare (lib/data/tasks/task_compare.c). */
#include "data/tasks/rank_states.h"
#include "failing.h"
#include "task_schedules.h"

/* Whether a rank ran the weights of this name in a schedule, and whether any did. */
static int ran(const hbp_task_schedule *s, const char *name, int32_t rank, int *any)
{
    for (int64_t p = 0; p < s->parameters; p++) {
        if (strcmp(s->parameters_names[p], name) != 0)
            continue;
        int32_t group = s->parameter_groups[p];
        *any = 1;
        for (int64_t i = s->group_offsets[group]; i < s->group_offsets[group + 1]; i++)
            if (s->group_ranks[i] == rank)
                return 1;
    }
    return 0;
}

static void check_compared(const drawn *d, const hbp_task_schedule *previous)
{
    hbp__rank_states states;
    int64_t kept = 0, fetched = 0;
    OK(d->context,
       hbp__rank_states_open(d->context, d->graph, &d->meta, &d->slices, d->ranks, d->summary.gpus, &states));
    for (int32_t r = 0; r < d->summary.gpus; r++) {
        hbp__rank_states_read(&states, r);
        for (int32_t p = 0; p < d->graph->parameters.count; p++) {
            int any = 0, mine = ran(previous, d->graph->parameters.name[p], r, &any);
            if (states.bytes[p] >= 0 && mine)
                kept += states.bytes[p];
            else if (states.bytes[p] >= 0 && any)
                fetched += states.bytes[p];
        }
    }
    hbp__rank_states_close(&states);
    ck_assert_int_eq(d->schedule->summary.kept_bytes, kept);
    ck_assert_int_eq(d->schedule->summary.fetched_bytes, fetched);
}

START_TEST(random_pairs)
{
    hbp__rng rng = hbp__rng_make(21, 0, 0);
    int64_t kept = 0, fetched = 0;
    for (int i = 0; i < 200; i++) {
        drawn now, before;
        drawn_random(&now, &rng);
        drawn_random(&before, &rng);
        uint64_t digest = now.schedule->digest;
        OK(now.context, hbp__task_schedule_compare(now.context, now.schedule, now.graph, before.schedule));
        check_compared(&now, before.schedule);
        kept += now.schedule->summary.kept_bytes;
        fetched += now.schedule->summary.fetched_bytes;
        ck_assert_uint_eq(hbp__task_schedule_digest(now.schedule), digest);
        drawn_close(&now);
        drawn_close(&before);
    }
    ck_assert_int_gt(kept, 0);
    ck_assert_int_gt(fetched, 0);
}
END_TEST

/* A schedule keeps all that it held itself; without one before, nothing is kept or fetched. */
START_TEST(with_itself)
{
    hbp__rng rng = hbp__rng_make(22, 0, 0);
    for (int i = 0; i < 50; i++) {
        drawn d;
        drawn_random(&d, &rng);
        OK(d.context, hbp__task_schedule_compare(d.context, d.schedule, d.graph, d.schedule));
        ck_assert_int_eq(d.schedule->summary.fetched_bytes, 0);
        check_compared(&d, d.schedule);
        OK(d.context, hbp__task_schedule_compare(d.context, d.schedule, d.graph, NULL));
        ck_assert_int_eq(d.schedule->summary.kept_bytes, 0);
        drawn_close(&d);
    }
}
END_TEST

/* Weights w and v of 100 bytes each on two of four GPUs; w was on GPUs 0 and 1 before, and is on 1 and 2 now.
 * v is new. */
static void chain_of(drawn *d, const char *first, const char *second, int32_t rank)
{
    hbp_context *context = test_context();
    hbp_graph *graph = new_graph(context);
    hbp_operator o = {.struct_size = sizeof o};
    o.profile = add_falling_profile(context, graph, 1000, 0, 2);
    o.degrees = HBP_DEGREES_PROFILED;
    o.state_bytes = 100;
    o.parameters = first;
    add_chain(context, graph, &o, "a", "a", "task", 1);
    o.parameters = second;
    add_chain(context, graph, &o, "b", "b", "task", 1);
    drawn_open(d, context, graph, 1, 4, 4);
    drawn_add(d, 0, 0, 1, rank, 2, 0, 0);
    drawn_add(d, 1, 0, 1, rank, 2, 1, 500);
    drawn_build(d);
}

START_TEST(known_figures)
{
    drawn now, before;
    chain_of(&before, "u", "w", 0);
    chain_of(&now, "w", "v", 1);
    OK(now.context, hbp__task_schedule_compare(now.context, now.schedule, now.graph, before.schedule));
    ck_assert_int_eq(now.schedule->summary.kept_bytes, 100);
    ck_assert_int_eq(now.schedule->summary.fetched_bytes, 100);
    drawn_close(&now);
    drawn_close(&before);
}
END_TEST

static hbp_status compare(hbp_context *context, void *user)
{
    drawn *d = user;
    return hbp__task_schedule_compare(context, d[0].schedule, d[0].graph, d[1].schedule);
}

START_TEST(allocations_fail)
{
    drawn both[2];
    chain_of(&both[0], "u", "w", 0);
    chain_of(&both[1], "w", "v", 1);
    failing_sweep(compare, both);
    drawn_close(&both[0]);
    drawn_close(&both[1]);
}
END_TEST

TEST_MAIN("task_compare", random_pairs, with_itself, known_figures, allocations_fail)
