/* hbp_simulate_tasks (lib/simulate/tasks/tasks.c). */
#include "traps.h"

#include <math.h>

#include "base/checked.h"
#include "data/tasks/flow.h"
#include "data/tasks/task_run.h"
#include "failing.h"
#include "task_schedules.h"

static hbp_task_run *run_with(const drawn *d, int32_t barriers, int32_t free_transfers,
                              int32_t free_gradients, hbp_task_run_summary *summary)
{
    hbp_task_run_options options = {.struct_size = sizeof options};
    options.barriers = barriers;
    options.free_transfers = free_transfers;
    options.free_gradients = free_gradients;
    hbp_task_run *run = NULL;
    OK(d->context, hbp_simulate_tasks(d->context, d->graph, d->machine, d->schedule, &options, &run));
    memset(summary, 0, sizeof *summary);
    summary->struct_size = sizeof *summary;
    OK(d->context, hbp_task_run_get_summary(d->context, run, summary));
    return run;
}

/* --- one slice hands on to another -------------------------------------------------------------------------
 */

/* a, then b, 1,000 ns on one GPU, 500 on 2, 250 on 4; 1,000,000 bytes go from one to the other. Both have
 * `gradient` bytes of gradients, of the same weights if `shared`. 8 GPUs, `domain` of them on fast links. */
static void pair(drawn *d, int32_t domain, int64_t gradient, int shared, int32_t a_rank, int32_t a_gpus,
                 int32_t b_rank, int32_t b_gpus)
{
    hbp_context *context = test_context();
    hbp_graph *graph = new_graph(context);
    hbp_operator o = {.struct_size = sizeof o};
    o.profile = add_falling_profile(context, graph, 1000, 0, 4);
    o.degrees = HBP_DEGREES_PROFILED;
    o.output_bytes = 1000000;
    o.gradient_bytes = gradient;
    o.activation_bytes = 64;
    o.parameters = shared ? "both" : NULL;
    int32_t a = add_chain(context, graph, &o, "a", "a", "task", 1);
    int32_t b = add_chain(context, graph, &o, "b", "b", "task", 1);
    OK(context, hbp_graph_add_edge(context, graph, a, b, -1));
    drawn_open(d, context, graph, 2, 4, domain);
    drawn_add(d, 0, 0, 1, a_rank, a_gpus, 0, 0);
    drawn_add(d, 1, 0, 1, b_rank, b_gpus, 1, 1000 / a_gpus);
    drawn_build(d);
}

START_TEST(known_transfers)
{
    /* NVLink: 100 bytes a ns and 1,000 ns; network: 10 bytes a ns and 10,000 ns. */
    const struct {
        int32_t domain, a, as, b, bs;
        int64_t ns;
    } cases[] = {
        {4, 0, 2, 0, 2, 0},                          /* nothing moves */
        {4, 0, 2, 2, 2, 2 * (5000 + 1000)},          /* all of it, two GPUs at once */
        {4, 0, 1, 1, 1, 2 * (10000 + 1000)},         /* one */
        {4, 0, 1, 0, 4, 2 * (7500 + 1000)},          /* a quarter stays */
        {4, 0, 2, 0, 4, 2 * (2500 + 1000)},          /* half of it */
        {4, 0, 2, 4, 2, 2 * (50000 + 10000)},        /* to the other domain */
        {4, 0, 4, 4, 2, 2 * (50000 + 10000)},        /* as many GPUs as both have */
        {4, 2, 2, 2, 4, 2 * (25000 + 10000)},        /* half of it crosses, none moves inside */
        {4, 1, 4, 2, 2, 2 * (12500 + 1250 + 10000)}, /* ranks 1-4 to 2-3: a quarter moves inside, 4 crosses */
        {1, 0, 2, 2, 2, 2 * (50000 + 10000)},        /* no fast links */
        {8, 0, 4, 4, 4, 2 * (2500 + 1000)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        drawn d;
        hbp_task_run_summary summary;
        pair(&d, cases[i].domain, 0, 0, cases[i].a, cases[i].as, cases[i].b, cases[i].bs);
        hbp_task_run *run = run_with(&d, 0, 0, 0, &summary);
        int64_t first = 1000 / cases[i].as, second = 1000 / cases[i].bs;
        ck_assert_msg(summary.total_ns == first + cases[i].ns + second, "case %d: %lld ns", (int)i,
                      (long long)summary.total_ns);
        ck_assert_int_eq(summary.slices_ns, summary.total_ns);
        ck_assert_int_eq(summary.gradient_ns, 0);
        ck_assert_int_eq(summary.transfer_ns, (cases[i].ns * cases[i].bs + 7) / 8);
        ck_assert_int_eq(summary.gpus, 8);
        ck_assert_int_eq(summary.flow_bytes, 1000000);
        ck_assert_int_eq(summary.moved_bytes, d.schedule->summary.moved_bytes);
        ck_assert_int_eq(summary.crossing_bytes, d.schedule->summary.crossing_bytes);
        ck_assert_int_eq(summary.peak_bytes, d.schedule->summary.peak_bytes);
        ck_assert_double_eq_tol(summary.idle, 1 - 2000 / (8. * (double)summary.slices_ns), 1e-12);
        hbp_task_run_view view = task_run_view(run);
        ck_assert_int_eq(view.slice_starts[1], first + cases[i].ns);
        ck_assert_int_eq(view.slices, 2);
        ck_assert_int_eq(view.slice_ends[1], summary.slices_ns);
        ck_assert_int_eq(view.slices, 2);
        hbp_task_run_free(run);
        run = run_with(&d, 0, 1, 0, &summary);
        ck_assert_int_eq(summary.total_ns, first + second);
        ck_assert_int_eq(summary.transfer_ns, 0);
        ck_assert_int_eq(summary.moved_bytes, d.schedule->summary.moved_bytes);
        hbp_task_run_free(run);
        drawn_close(&d);
    }
}
END_TEST

START_TEST(known_gradients)
{
    const struct {
        int32_t domain, a, as, b, bs;
        int shared;
        int64_t ns; /* after the slices */
    } cases[] = {
        {4, 0, 1, 0, 1, 1, 0},              /* one rank sums nothing */
        {4, 0, 2, 0, 2, 1, 10000 + 1000},   /* 2 x 1/2 x 1,000,000 bytes */
        {4, 0, 4, 0, 4, 1, 15000 + 1000},   /* 2 x 3/4 */
        {4, 0, 2, 0, 4, 1, 15000 + 1000},   /* all that hold the weights */
        {4, 0, 4, 4, 4, 1, 43750 + 10000},  /* 2 x 7/8 over four cards of each domain */
        {4, 2, 4, 2, 4, 1, 75000 + 10000},  /* 2 x 3/4 over two */
        {4, 3, 4, 3, 4, 1, 150000 + 10000}, /* one rank in the first domain: one card */
        {1, 0, 2, 0, 2, 1, 100000 + 10000},
        {4, 0, 2, 0, 2, 0, 2 * (10000 + 1000)}, /* two sets on the same ranks take turns */
        {4, 0, 2, 2, 2, 0, 10000 + 1000},       /* the first one's is done before the end */
        {4, 0, 2, 1, 2, 0, 2 * (10000 + 1000)}, /* the first waits for rank 1 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        drawn d;
        hbp_task_run_summary summary;
        pair(&d, cases[i].domain, 1000000, cases[i].shared, cases[i].a, cases[i].as, cases[i].b, cases[i].bs);
        hbp_task_run *run = run_with(&d, 0, 1, 0, &summary);
        ck_assert_msg(summary.gradient_ns == cases[i].ns, "case %d: %lld ns", (int)i,
                      (long long)summary.gradient_ns);
        ck_assert_int_eq(summary.total_ns, summary.slices_ns + cases[i].ns);
        ck_assert_int_eq(summary.slices_ns, d.schedule->summary.makespan_ns);
        hbp_task_run_free(run);
        run = run_with(&d, 0, 1, 1, &summary);
        ck_assert_int_eq(summary.gradient_ns, 0);
        ck_assert_int_eq(summary.total_ns, summary.slices_ns);
        hbp_task_run_free(run);
        drawn_close(&d);
    }
}
END_TEST

/* Four cards of 50 GB/s are faster than the 100 GB/s that a GPU sends inside its domain. */
START_TEST(fast_network)
{
    drawn d;
    hbp_task_run_summary summary;
    pair(&d, 4, 1000000, 1, 0, 4, 4, 4);
    OK(d.context, hbp_machine_set_field(d.context, d.machine, "network_bytes_per_s", 5e10, "test"));
    hbp_task_run_free(run_with(&d, 0, 1, 0, &summary));
    ck_assert_int_eq(summary.gradient_ns, 17500 + 10000);
    drawn_close(&d);
}
END_TEST

/* --- against a run that looks at everything again until nothing changes -----------------------------------
 */

typedef struct reference {
    int64_t start[256], end[256], sent[256]; /* of slices; sent: with all that goes out of it */
    int64_t wait;                            /* ns x GPUs */
    int64_t total;
} reference;

static int32_t slice_of(const drawn *d, int32_t o)
{
    const hbp_task_schedule *s = d->schedule;
    for (int32_t i = 0; i < s->slices; i++)
        for (int32_t k = 0; k < s->slice_operators[i]; k++)
            if (s->operators[s->meta_op_offsets[s->slice_meta_ops[i]] + s->slice_firsts[i] + k] == o)
                return i;
    return -1;
}

static int64_t transfer(const drawn *d, int32_t from, int32_t to, int64_t bytes)
{
    const hbp_task_schedule *s = d->schedule;
    const hbp_machine_fields *m = &d->machine->fields;
    int32_t froms = s->slice_gpus[from], tos = s->slice_gpus[to], least = froms < tos ? froms : tos;
    hbp__flow flow = hbp__flow_between(drawn_ranks(s, from), froms, drawn_ranks(s, to), tos,
                                       s->summary.domain_gpus, bytes);
    double ns = 0;
    if (flow.moved > flow.crossing)
        ns += (double)(flow.moved - flow.crossing) / m->nvlink_bytes_per_s / least * 1e9;
    if (flow.crossing)
        ns += (double)flow.crossing / m->network_bytes_per_s / least * 1e9;
    if (flow.moved)
        ns += flow.crossing ? m->network_latency_ns : m->nvlink_latency_ns;
    return (int64_t)floor(2 * ns + .5);
}

static int share_a_rank(const hbp_task_schedule *s, int64_t a, int64_t b)
{
    for (int32_t i = 0; i < s->slice_gpus[a]; i++)
        for (int32_t j = 0; j < s->slice_gpus[b]; j++)
            if (drawn_ranks(s, a)[i] == drawn_ranks(s, b)[j])
                return 1;
    return 0;
}

static int64_t wave_of(const hbp_task_schedule *s, int64_t slice)
{
    int64_t wave = 0;
    while (s->wave_offsets[wave + 1] <= slice)
        wave++;
    return wave;
}

static void raise_to(int64_t *value, int64_t to)
{
    *value = to > *value ? to : *value;
}

/* Starts of slices rise until each is after all that it waits for. */
static void refer(const drawn *d, int barriers, int free_transfers, reference *r)
{
    const hbp_task_schedule *s = d->schedule;
    const hbp_graph *graph = d->graph;
    int32_t from[512], to[512];
    int64_t flow[512];
    ck_assert(s->slices <= 256 && graph->edge_count <= 512);
    memset(r, 0, sizeof *r);
    for (int64_t e = 0; e < graph->edge_count; e++) {
        from[e] = slice_of(d, graph->edge_from[e]);
        to[e] = slice_of(d, graph->edge_to[e]);
        flow[e] = from[e] == to[e] || free_transfers ? 0 : transfer(d, from[e], to[e], graph->edge_bytes[e]);
    }
    for (int changed = 1; changed;) {
        changed = 0;
        r->wait = 0;
        for (int64_t i = 0; i < s->slices; i++) {
            int64_t start = 0, ready = 0;
            for (int64_t j = 0; j < s->slices; j++) {
                int earlier = wave_of(s, j) < wave_of(s, i);
                if (earlier && (barriers || share_a_rank(s, i, j)))
                    raise_to(&ready, r->end[j]);
                if (earlier && barriers)
                    raise_to(&start, r->sent[j]);
            }
            for (int64_t e = 0; e < graph->edge_count; e++)
                if (to[e] == i && from[e] != i) {
                    raise_to(&ready, r->end[from[e]]);
                    raise_to(&start, r->end[from[e]] + flow[e]);
                }
            raise_to(&start, ready);
            changed |= start != r->start[i] || r->end[i] == 0;
            r->start[i] = start;
            r->end[i] = r->sent[i] = start + s->slice_ends[i] - s->slice_starts[i];
            for (int64_t e = 0; e < graph->edge_count; e++)
                if (from[e] == i && to[e] != i)
                    raise_to(&r->sent[i], r->end[i] + flow[e]);
            r->wait += (start - ready) * s->slice_gpus[i];
        }
    }
}

/* Ring all-reduces behind the slices. */
static void refer_gradients(const drawn *d, reference *r)
{
    const hbp_task_schedule *s = d->schedule;
    const hbp_machine_fields *m = &d->machine->fields;
    int32_t domain = s->summary.domain_gpus;
    int64_t free_ns[64] = {0};
    r->total = 0;
    for (int64_t i = 0; i < s->slices; i++)
        for (int32_t j = 0; j < s->slice_gpus[i]; j++)
            raise_to(&free_ns[drawn_ranks(s, i)[j]], r->end[i]);
    for (int32_t p = 0; p < s->parameters; p++) {
        int32_t group = s->parameter_groups[p], in_domain[64] = {0}, cards = 64, domains = 0;
        int64_t n = s->group_offsets[group + 1] - s->group_offsets[group], bytes = 0, begin = 0;
        const int32_t *ranks = &s->group_ranks[s->group_offsets[group]];
        for (int32_t o = 0; o < d->graph->operator_count; o++)
            if (d->graph->operators[o].parameters == p)
                raise_to(&bytes, d->graph->operators[o].gradient_bytes);
        for (int64_t j = 0; j < n; j++) {
            in_domain[ranks[j] / domain]++;
            raise_to(&begin, free_ns[ranks[j]]);
        }
        for (int32_t k = 0; k < 64; k++) {
            domains += in_domain[k] > 0;
            cards = in_domain[k] && in_domain[k] < cards ? in_domain[k] : cards;
        }
        double speed = m->nvlink_bytes_per_s, latency = m->nvlink_latency_ns;
        if (domains > 1) {
            latency = m->network_latency_ns;
            speed =
                domain > 1 && speed < m->network_bytes_per_s * cards ? speed : m->network_bytes_per_s * cards;
        }
        double ns =
            bytes && n > 1 ? 2. * (double)(n - 1) / (double)n * (double)bytes / speed * 1e9 + latency : 0;
        for (int64_t j = 0; j < n && ns > 0; j++)
            free_ns[ranks[j]] = begin + (int64_t)floor(ns + .5);
    }
    for (int32_t k = 0; k < s->ranks; k++)
        raise_to(&r->total, free_ns[k]);
}

/* Sums in another order may round a nanosecond apart, slice by slice. */
static void check_near(int64_t value, int64_t right, int64_t slices)
{
    ck_assert_msg(llabs(value - right) <= 2 + slices, "%lld ns, not %lld", (long long)value,
                  (long long)right);
}

START_TEST(matches_the_reference)
{
    hbp__rng rng = hbp__rng_make(41, 0, 0);
    for (int i = 0; i < 400; i++) {
        drawn d;
        drawn_random(&d, &rng);
        const hbp_task_schedule *s = d.schedule;
        int32_t barriers = (int32_t)random_between(&rng, 0, 1),
                transfers = (int32_t)random_between(&rng, 0, 1);
        hbp_task_run_summary summary;
        hbp_task_run *run = run_with(&d, barriers, transfers, 0, &summary);
        reference r;
        refer(&d, barriers, transfers, &r);
        int64_t last = 0;
        for (int64_t k = 0; k < s->slices; k++) {
            check_near(task_run_view(run).slice_starts[k], r.start[k], s->slices);
            check_near(task_run_view(run).slice_ends[k], r.end[k], s->slices);
            raise_to(&last, r.end[k]);
        }
        check_near(summary.slices_ns, last, s->slices);
        check_near(summary.transfer_ns, r.wait / s->ranks, s->slices * s->slices);
        refer_gradients(&d, &r);
        check_near(summary.total_ns, r.total, s->slices + s->parameters);
        ck_assert_int_eq(summary.flow_bytes, s->summary.flow_bytes);
        ck_assert_int_eq(summary.moved_bytes, s->summary.moved_bytes);
        ck_assert_int_eq(summary.crossing_bytes, s->summary.crossing_bytes);
        hbp_task_run_free(run);
        drawn_close(&d);
    }
}
END_TEST

/* Without transfers no slice starts later than planned; with them, no slice starts earlier than without; nor
 * with barriers earlier than without. Times of slices stay. */
START_TEST(order_of_runs)
{
    hbp__rng rng = hbp__rng_make(42, 0, 0);
    for (int i = 0; i < 300; i++) {
        drawn d;
        drawn_random(&d, &rng);
        const hbp_task_schedule *s = d.schedule;
        hbp_task_run_summary plain, moving, full, stopping;
        hbp_task_run *runs[] = {run_with(&d, 0, 1, 1, &plain), run_with(&d, 0, 0, 1, &moving),
                                run_with(&d, 0, 0, 0, &full), run_with(&d, 1, 0, 0, &stopping)};
        ck_assert_int_le(plain.total_ns, s->summary.makespan_ns);
        ck_assert_int_eq(plain.transfer_ns, 0);
        ck_assert_int_le(plain.total_ns, moving.total_ns);
        ck_assert_int_le(moving.total_ns, full.total_ns);
        ck_assert_int_eq(moving.slices_ns, full.slices_ns);
        ck_assert_int_le(full.total_ns, stopping.total_ns);
        ck_assert_double_ge(plain.idle, 0);
        for (int64_t k = 0; k < s->slices; k++) {
            ck_assert_int_le(task_run_view(runs[0]).slice_starts[k], s->slice_starts[k]);
            for (int j = 0; j < 4; j++) {
                int64_t start = task_run_view(runs[j]).slice_starts[k];
                ck_assert_int_eq(task_run_view(runs[j]).slice_ends[k] - start,
                                 s->slice_ends[k] - s->slice_starts[k]);
                if (j)
                    ck_assert_int_ge(start, task_run_view(runs[j - 1]).slice_starts[k]);
            }
        }
        for (int j = 0; j < 4; j++)
            hbp_task_run_free(runs[j]);
        drawn_close(&d);
    }
}
END_TEST

/* --- arguments ---------------------------------------------------------------------------------------------
 */

START_TEST(bad_arguments)
{
    drawn d;
    pair(&d, 4, 100, 0, 0, 2, 4, 2);
    hbp_task_run *run = NULL;
    hbp_task_run_options options = {.struct_size = sizeof options};
#define RUN hbp_simulate_tasks(d.context, d.graph, d.machine, d.schedule, &options, &run)
    options.struct_size = 2;
    FAILS(d.context, HBP_E_INVALID, "hbp_task_run_options", RUN);
    options = (hbp_task_run_options){.struct_size = sizeof options};
    d.schedule->rank_bytes[0]++;
    FAILS(d.context, HBP_E_INVALID, "bytes in the schedule; its slices need", RUN);
    ck_assert_ptr_null(run);
    d.schedule->rank_bytes[0]--;
    FAILS(d.context, HBP_E_INVALID, "graph is NULL",
          hbp_simulate_tasks(d.context, NULL, d.machine, d.schedule, NULL, &run));
    FAILS(d.context, HBP_E_INVALID, "machine is NULL",
          hbp_simulate_tasks(d.context, d.graph, NULL, d.schedule, NULL, &run));
    FAILS(d.context, HBP_E_INVALID, "schedule is NULL",
          hbp_simulate_tasks(d.context, d.graph, d.machine, NULL, NULL, &run));
    FAILS(d.context, HBP_E_INVALID, "out is NULL",
          hbp_simulate_tasks(d.context, d.graph, d.machine, d.schedule, NULL, NULL));
    ck_assert_int_eq(hbp_simulate_tasks(NULL, d.graph, d.machine, d.schedule, NULL, &run), HBP_E_INVALID);
    OK(d.context, hbp_simulate_tasks(d.context, d.graph, d.machine, d.schedule, NULL, &run));
    hbp_task_run_summary summary = {.struct_size = 2};
    FAILS(d.context, HBP_E_INVALID, "run is NULL", hbp_task_run_get_summary(d.context, NULL, &summary));
    FAILS(d.context, HBP_E_INVALID, "hbp_task_run_summary",
          hbp_task_run_get_summary(d.context, run, &summary));
    ck_assert_uint_eq(sizeof(hbp_task_run_options), 16);
    ck_assert_uint_eq(sizeof(hbp_task_run_summary), 96);
    hbp_task_run_view none = {.struct_size = sizeof none};
    ck_assert_int_eq(hbp_task_run_get_view(NULL, &none), HBP_E_INVALID);
    ck_assert_ptr_null(none.slice_starts);
    ck_assert_int_eq(none.slices, 0);
    hbp_task_run_free(run);
    hbp_task_run_free(NULL);
    drawn_close(&d);
}
END_TEST

/* Speeds of links are needed where time on them is asked for. */
START_TEST(unknown_links)
{
    drawn d;
    hbp_task_run_summary summary;
    hbp_task_run *run = NULL;
    hbp_task_run_options options = {.struct_size = sizeof options};
    pair(&d, 4, 100, 0, 0, 2, 4, 2);
    OK(d.context, hbp_machine_set_field(d.context, d.machine, "nvlink_bytes_per_s", 0, "test"));
    FAILS(d.context, HBP_E_INVALID, "nvlink_bytes_per_s of machine given is 0 or unknown", RUN);
    options.free_transfers = 1;
    FAILS(d.context, HBP_E_INVALID, "nvlink_bytes_per_s of machine given is 0 or unknown", RUN);
    OK(d.context, hbp_machine_set_field(d.context, d.machine, "nvlink_bytes_per_s", 1e9, "test"));
    OK(d.context, hbp_machine_set_field(d.context, d.machine, "network_bytes_per_s", 0, "test"));
    FAILS(d.context, HBP_E_INVALID, "network_bytes_per_s of machine given is 0 or unknown", RUN);
    run = run_with(&d, 0, 1, 1, &summary);
    ck_assert_int_eq(summary.total_ns, 1000);
    hbp_task_run_free(run);
    drawn_close(&d);
    /* One GPU a domain has no fast links, and one domain no network: nothing goes over them,
     * and no time is nothing over nothing, which would trap here. */
    traps_on();
    pair(&d, 1, 100, 0, 0, 2, 4, 2);
    OK(d.context, hbp_machine_set_field(d.context, d.machine, "nvlink_bytes_per_s", 0, "test"));
    hbp_task_run_free(run_with(&d, 0, 0, 0, &summary));
    drawn_close(&d);
    pair(&d, 8, 100, 0, 0, 2, 4, 2);
    OK(d.context, hbp_machine_set_field(d.context, d.machine, "network_bytes_per_s", 0, "test"));
    hbp_task_run_free(run_with(&d, 0, 0, 0, &summary));
    drawn_close(&d);
}
END_TEST

static hbp_status simulate(hbp_context *context, void *user)
{
    const drawn *d = user;
    hbp_task_run *run = NULL;
    hbp_status status = hbp_simulate_tasks(context, d->graph, d->machine, d->schedule, NULL, &run);
    ck_assert((status < 0) == (run == NULL));
    hbp_task_run_free(run);
    return status;
}

START_TEST(allocations_fail)
{
    drawn d;
    pair(&d, 4, 100, 0, 0, 2, 4, 2);
    failing_sweep(simulate, &d);
    drawn_close(&d);
}
END_TEST

START_TEST(cancelled)
{
    enum { OPERATORS = 5000, GPUS = 64 };
    hbp_context *context = test_context();
    hbp_graph *graph = new_graph(context);
    static const int32_t gpus[] = {GPUS};
    static const int64_t ns[] = {10};
    hbp_operator o = {.struct_size = sizeof o};
    o.degrees = HBP_DEGREES_PROFILED;
    o.gradient_bytes = 1;
    OK(context, hbp_graph_add_profile(context, graph, gpus, ns, 1, &o.profile));
    add_chain(context, graph, &o, "a", "a", "one", OPERATORS);
    drawn d;
    drawn_open(&d, context, graph, 1, GPUS, GPUS);
    for (int32_t i = 0; i < OPERATORS; i++)
        drawn_add(&d, 0, i, 1, 0, GPUS, i, 10 * i);
    drawn_build(&d);
    ck_assert_int_ge(cancel_sweep(simulate, &d), 4); /* of slices and gradients, checked and run */
    drawn_close(&d);
}
END_TEST

static hbp_status validate_with(const drawn *d, const hbp_task_run *run, int32_t barriers, int32_t transfers,
                                int32_t gradients)
{
    const hbp_task_run_options options = {sizeof options, barriers, transfers, gradients};
    return hbp_task_run_validate(d->context, run, d->graph, d->machine, d->schedule, &options);
}

/* A run passes with the options it was made with; a number that is not what it was does not. */
START_TEST(a_run_is_held_to_its_schedule)
{
    hbp__rng rng = hbp__rng_make(43, 0, 0);
    int differ = 0;
    for (int i = 0; i < 100; i++) {
        drawn d;
        drawn_random(&d, &rng);
        hbp_task_run_summary summary;
        hbp_task_run *run = run_with(&d, i % 2, i / 2 % 2, i / 4 % 2, &summary);
        OK(d.context, validate_with(&d, run, i % 2, i / 2 % 2, i / 4 % 2));
        hbp_status status = validate_with(&d, run, i % 2, -1 - (i / 2 % 2 - 1), i / 4 % 2 - 1);
        ck_assert(status == HBP_OK || status == HBP_E_INVALID);
        differ += status == HBP_E_INVALID;
        const int what = i % 4;
        if (what == 0)
            run->summary.transfer_ns++;
        else if (what == 1)
            run->slice_starts[0] = run->slice_ends[0] = run->summary.slices_ns;
        else if (what == 2)
            run->summary.total_ns++, run->summary.gradient_ns++;
        else
            run->summary.peak_bytes++;
        FAILS(d.context, HBP_E_INVALID, "the digest is not that of the slices",
              hbp_task_run_validate(d.context, run, NULL, NULL, NULL, NULL));
        run->summary.digest = hbp__task_run_digest(run);
        OK(d.context, hbp_task_run_validate(d.context, run, NULL, NULL, NULL, NULL));
        FAILS(d.context, HBP_E_INVALID,
              what == 1   ? "slice_"
              : what == 3 ? "peak_bytes is"
                          : "_ns is",
              validate_with(&d, run, i % 2, i / 2 % 2, i / 4 % 2));
        hbp_task_run_free(run);
        drawn_close(&d);
    }
    ck_assert_int_gt(differ, 10);
}
END_TEST

START_TEST(other_schedules_are_named)
{
    hbp__rng rng = hbp__rng_make(44, 0, 0);
    drawn d;
    drawn_random(&d, &rng);
    hbp_task_run_summary summary;
    hbp_task_run *run = run_with(&d, 0, 0, 0, &summary);
    run->summary.schedule_digest++;
    run->summary.digest = hbp__task_run_digest(run);
    FAILS(d.context, HBP_E_INVALID, "the run is of a schedule with digest", validate_with(&d, run, 0, 0, 0));
    run->summary.schedule_digest--;
    run->summary.digest = hbp__task_run_digest(run);
    OK(d.context, validate_with(&d, run, 0, 0, 0));
    FAILS(d.context, HBP_E_INVALID, "graph is NULL",
          hbp_task_run_validate(d.context, run, NULL, d.machine, d.schedule, NULL));
    FAILS(d.context, HBP_E_INVALID, "machine is NULL",
          hbp_task_run_validate(d.context, run, d.graph, NULL, d.schedule, NULL));
    FAILS(d.context, HBP_E_INVALID, "run is NULL",
          hbp_task_run_validate(d.context, NULL, d.graph, d.machine, d.schedule, NULL));
    hbp_task_run_free(run);
    drawn_close(&d);
}
END_TEST

TEST_MAIN("tasks", a_run_is_held_to_its_schedule, other_schedules_are_named, known_transfers, known_gradients,
          fast_network, matches_the_reference, order_of_runs, bad_arguments, unknown_links, allocations_fail,
          cancelled)
