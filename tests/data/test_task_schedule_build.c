/* hbp__task_schedule_build (lib/data/tasks/task_schedule_build.c). */
#include "base/methods.h"
#include "data/tasks/flow.h"
#include "data/tasks/rank_states.h"
#include "data/tasks/task_flows.h"
#include "failing.h"
#include "task_schedules.h"

/* Columns that are what the slices say. */
static void check_slices(const drawn *d)
{
    const hbp_task_schedule *s = d->schedule;
    const int32_t *ranks = d->ranks;
    ck_assert_int_eq(s->slices, d->slices.count);
    ck_assert_int_eq(s->waves, d->slices.waves);
    ck_assert_int_eq(s->wave_offsets[0], 0);
    ck_assert_int_eq(s->wave_offsets[s->waves], s->slices);
    for (int64_t i = 0; i < s->slices; i++) {
        const hbp__task_slice *slice = &d->slices.slice[i];
        ck_assert_int_le(s->wave_offsets[slice->wave], i);
        ck_assert_int_gt(s->wave_offsets[slice->wave + 1], i);
        ck_assert_int_eq(s->slice_meta_ops[i], slice->meta_op);
        ck_assert_int_eq(s->slice_firsts[i], slice->first);
        ck_assert_int_eq(s->slice_operators[i], slice->count);
        ck_assert_int_eq(s->slice_gpus[i], slice->gpus);
        ck_assert_int_eq(s->slice_starts[i], slice->start_ns);
        ck_assert_int_eq(s->slice_ends[i], slice->end_ns);
        int32_t group = s->slice_groups[i];
        ck_assert_int_eq(s->group_offsets[group + 1] - s->group_offsets[group], slice->gpus);
        ck_assert_mem_eq(drawn_ranks(s, i), ranks, (size_t)slice->gpus * sizeof *ranks);
        ranks += slice->gpus;
    }
}

static void check_meta_ops(const drawn *d)
{
    const hbp_task_schedule *s = d->schedule;
    ck_assert_int_eq(s->meta_op_offsets[s->meta_ops], d->graph->operator_count);
    for (int32_t m = 0; m < d->meta.count; m++) {
        int64_t first = d->meta.meta_op[m].first;
        ck_assert_int_eq(s->meta_op_offsets[m], first);
        ck_assert_int_eq(s->meta_op_levels[m], d->meta.meta_op[m].level);
        ck_assert_int_eq(s->meta_op_tasks[m], d->meta.meta_op[m].task);
        ck_assert_mem_eq(&s->operators[first], &d->meta.operators[first],
                         (size_t)d->meta.meta_op[m].count * sizeof *s->operators);
        ck_assert_str_eq(task_schedule_view(s).meta_op_names[m],
                         d->graph->operators[d->meta.operators[first]].name);
    }
    for (int32_t t = 0; t < d->graph->tasks.count; t++)
        ck_assert_str_eq(task_schedule_view(s).task_names[t], graph_view(d->graph).task_names[t]);
    for (int32_t p = 0; p < d->graph->parameters.count; p++)
        ck_assert_str_eq(task_schedule_view(s).parameter_names[p], graph_view(d->graph).parameter_names[p]);
}

/* Groups are distinct, come in order of their first use, and those of weights are the ranks that run them. */
static void check_groups(const drawn *d)
{
    const hbp_task_schedule *s = d->schedule;
    for (int64_t a = 0; a < s->groups; a++)
        for (int64_t b = 0; b < a; b++) {
            int64_t size = s->group_offsets[a + 1] - s->group_offsets[a];
            ck_assert(size != s->group_offsets[b + 1] - s->group_offsets[b] ||
                      memcmp(&s->group_ranks[s->group_offsets[a]], &s->group_ranks[s->group_offsets[b]],
                             (size_t)size * sizeof *s->group_ranks) != 0);
        }
    int32_t known = 0;
    for (int64_t i = 0; i < s->slices + s->parameters; i++) {
        int32_t group = i < s->slices ? s->slice_groups[i] : s->parameter_groups[i - s->slices];
        ck_assert_int_le(group, known);
        known += group == known;
    }
    ck_assert_int_eq(known, s->groups);
    for (int32_t p = 0; p < s->parameters; p++) {
        char runs[64] = {0}, has[64] = {0};
        for (int64_t i = 0; i < s->slices; i++)
            for (int32_t k = 0; k < s->slice_operators[i]; k++) {
                int64_t place = s->meta_op_offsets[s->slice_meta_ops[i]] + s->slice_firsts[i] + k;
                if (d->graph->operators[s->operators[place]].parameters == p)
                    for (int32_t j = 0; j < s->slice_gpus[i]; j++)
                        runs[drawn_ranks(s, i)[j]] = 1;
            }
        int32_t group = s->parameter_groups[p];
        for (int64_t j = s->group_offsets[group]; j < s->group_offsets[group + 1]; j++) {
            has[s->group_ranks[j]] = 1;
            ck_assert(j == s->group_offsets[group] || s->group_ranks[j] > s->group_ranks[j - 1]);
        }
        ck_assert_mem_eq(runs, has, sizeof runs);
    }
}

static void check_ranks(const drawn *d)
{
    const hbp_task_schedule *s = d->schedule;
    hbp__rank_states states;
    int64_t peak = 0, all = 0;
    OK(d->context,
       hbp__rank_states_open(d->context, d->graph, &d->meta, &d->slices, d->ranks, d->summary.gpus, &states));
    for (int32_t r = 0; r < d->summary.gpus; r++) {
        int64_t busy = 0;
        for (int64_t i = 0; i < s->slices; i++)
            for (int32_t j = 0; j < s->slice_gpus[i]; j++)
                busy += drawn_ranks(s, i)[j] == r ? s->slice_ends[i] - s->slice_starts[i] : 0;
        ck_assert_int_eq(s->rank_busy_ns[r], busy);
        hbp__rank_states_read(&states, r);
        int64_t bytes = states.activation_bytes;
        for (int32_t i = 0; i < states.held_count; i++)
            bytes += states.bytes[states.held[i]];
        ck_assert_int_eq(s->rank_bytes[r], bytes);
        peak = bytes > peak ? bytes : peak;
        all += busy;
    }
    hbp__rank_states_close(&states);
    ck_assert_int_eq(s->summary.peak_bytes, peak);
    ck_assert_double_eq_tol(
        s->summary.idle, 1 - (double)all / ((double)d->summary.gpus * (double)s->summary.makespan_ns), 1e-12);
}

static void check_flows(const drawn *d)
{
    hbp__task_flows flows;
    int64_t bytes = 0, moved = 0, crossing = 0;
    OK(d->context, hbp__task_flows_open(d->context, d->graph, &d->meta, &d->slices, &flows));
    for (int64_t i = 0; i < flows.count; i++) {
        int32_t from = flows.flow[i].from, to = flows.flow[i].to;
        hbp__flow flow = hbp__flow_between(drawn_ranks(d->schedule, from), d->slices.slice[from].gpus,
                                           drawn_ranks(d->schedule, to), d->slices.slice[to].gpus,
                                           d->summary.domain_gpus, flows.flow[i].bytes);
        bytes += flows.flow[i].bytes;
        moved += flow.moved;
        crossing += flow.crossing;
    }
    hbp__task_flows_close(&flows);
    ck_assert_int_eq(d->schedule->summary.flow_bytes, bytes);
    ck_assert_int_eq(d->schedule->summary.moved_bytes, moved);
    ck_assert_int_eq(d->schedule->summary.crossing_bytes, crossing);
}

START_TEST(columns_say_what_slices_say)
{
    hbp__rng rng = hbp__rng_make(11, 0, 0);
    for (int i = 0; i < 300; i++) {
        drawn d;
        drawn_random(&d, &rng);
        check_slices(&d);
        check_meta_ops(&d);
        check_groups(&d);
        check_ranks(&d);
        check_flows(&d);
        hbp_task_summary summary = {.struct_size = sizeof summary};
        OK(d.context, hbp_task_schedule_get_summary(d.context, d.schedule, &summary));
        ck_assert_int_eq(summary.makespan_ns, d.slices.makespan_ns);
        ck_assert_int_eq(summary.operators, d.graph->operator_count);
        ck_assert_int_eq(summary.meta_ops, d.meta.count);
        ck_assert_int_eq(summary.levels, d.meta.levels);
        ck_assert_int_eq(summary.waves, d.slices.waves);
        ck_assert_int_eq(summary.slices, d.slices.count);
        ck_assert_int_eq(summary.groups, d.schedule->groups);
        ck_assert_int_eq(summary.tasks, d.graph->tasks.count);
        ck_assert_int_eq(summary.parameters, d.graph->parameters.count);
        ck_assert_int_eq(summary.gpus, d.summary.gpus);
        ck_assert_int_eq(summary.domain_gpus, d.summary.domain_gpus);
        ck_assert_uint_eq(d.schedule->graph_digest, hbp__graph_digest(d.graph));
        ck_assert_uint_eq(d.schedule->digest, hbp__task_schedule_digest(d.schedule));
        drawn_close(&d);
    }
}
END_TEST

/* One chain of three, its weights 100 bytes each, activations 50, outputs 8, 2,000 ns on one GPU, 1,000 on
 * two; the first operator on rank 0, the others on 2 and 3 of another domain. */
static void small(drawn *d)
{
    hbp_context *context = test_context();
    hbp_graph *graph = new_graph(context);
    hbp_operator o = {.struct_size = sizeof o};
    o.profile = add_falling_profile(context, graph, 2000, 0, 2);
    o.degrees = HBP_DEGREES_PROFILED;
    o.state_bytes = 60;
    o.sharded_bytes = 40;
    o.activation_bytes = 50;
    o.output_bytes = 8;
    add_chain(context, graph, &o, "layer", "encoder", "task", 3);
    drawn_open(d, context, graph, 2, 2, 2);
    drawn_add(d, 0, 0, 1, 0, 1, 0, 0);
    drawn_add(d, 0, 1, 2, 2, 2, 1, 2000);
}

START_TEST(known_figures)
{
    drawn d;
    small(&d);
    d.summary.method = hbp__tasks_name(HBP__TASKS_SPINDLE);
    d.summary.placement_method = hbp__placement_name(HBP__PLACEMENT_SEQUENTIAL);
    d.summary.bound_ns = 3200;
    d.summary.relaxed_ns = 3300;
    d.summary.limit_bytes = 1000;
    d.summary.slices = 77; /* computed */
    const int64_t level_ns = 3300;
    OK(d.context, hbp__task_schedule_build(d.context, d.graph, &d.meta, &d.slices, d.ranks, &level_ns,
                                           &d.summary, &d.schedule));
    const hbp_task_summary *summary = &d.schedule->summary;
    ck_assert_int_eq(d.schedule->method, HBP__TASKS_SPINDLE);
    ck_assert_int_eq(d.schedule->placement, HBP__PLACEMENT_SEQUENTIAL);
    ck_assert_int_eq(summary->slices, 2);
    ck_assert_int_eq(summary->makespan_ns, 4000);
    ck_assert_int_eq(summary->bound_ns, 3200);
    ck_assert_double_eq_tol(summary->gap, .25, 1e-12);
    ck_assert_int_eq(summary->proven, 0);
    ck_assert_double_eq_tol(summary->idle, 1 - 6000 / 16000., 1e-12);
    ck_assert_int_eq(summary->flow_bytes, 8);
    ck_assert_int_eq(summary->moved_bytes, 8);
    ck_assert_int_eq(summary->crossing_bytes, 8);
    ck_assert_int_eq(summary->peak_bytes, 2 * (60 + 20 + 25));
    ck_assert_int_eq(summary->limit_bytes, 1000);
    static const int64_t bytes[] = {150, 0, 210, 210}, busy[] = {2000, 0, 2000, 2000};
    ck_assert_mem_eq(d.schedule->rank_bytes, bytes, sizeof bytes);
    ck_assert_mem_eq(d.schedule->rank_busy_ns, busy, sizeof busy);
    static const int32_t groups[] = {0, 1, 1};
    ck_assert_mem_eq(d.schedule->parameter_groups, groups, sizeof groups);
    ck_assert_int_eq(d.schedule->level_ns[0], 3300);
    drawn_close(&d);
}
END_TEST

START_TEST(proven_at_the_bound)
{
    drawn d;
    small(&d);
    d.summary.bound_ns = 4000;
    drawn_build(&d);
    ck_assert_int_eq(d.schedule->summary.proven, 1);
    ck_assert_double_eq(d.schedule->summary.gap, 0);
    drawn_close(&d);
}
END_TEST

START_TEST(waves_out_of_order)
{
    drawn d;
    small(&d);
    d.slices.slice[0].wave = 2;
    FAILS(d.context, HBP_E_INTERNAL, "not in order of waves",
          hbp__task_schedule_build(d.context, d.graph, &d.meta, &d.slices, d.ranks, NULL, &d.summary,
                                   &d.schedule));
    ck_assert_ptr_null(d.schedule);
    drawn_close(&d);
}
END_TEST

static hbp_status build(hbp_context *context, void *user)
{
    const drawn *d = user;
    hbp_task_schedule *schedule = NULL;
    hbp_status status = hbp__task_schedule_build(context, d->graph, &d->meta, &d->slices, d->ranks, NULL,
                                                 &d->summary, &schedule);
    ck_assert((status < 0) == (schedule == NULL));
    hbp_task_schedule_free(schedule);
    return status;
}

START_TEST(allocations_fail)
{
    hbp__rng rng = hbp__rng_make(8, 0, 0);
    drawn d;
    drawn_random(&d, &rng);
    failing_sweep(build, &d);
    drawn_close(&d);
}
END_TEST

TEST_MAIN("task_schedule_build", columns_say_what_slices_say, known_figures, proven_at_the_bound,
          waves_out_of_order, allocations_fail)
