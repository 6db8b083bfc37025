#include "hbp/io.h"
#include "test.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "probe/probing.h"

/* A machine on paper: calls move a clock by what they would take, so that what the probe finds is known. */
static double paper_now;
static struct paper {
    double flops_per_s, attention_per_s, copy_bytes_per_s, gemm_start_s;
    double latency_s, bytes_per_s; /* of collectives inside a node of `node` ranks: what crosses the bus */
    double far_latency_s, far_bytes_per_s;
    int32_t node;
    int64_t total, free;
    int64_t most_gemm, live;
    int fail_at; /* fails the so-manieth product; 0: none */
    int products;
    int64_t throttled; /* products of this size and more run at half the rate; 0: none */
    int wobble;        /* the products take once, twice, three times as long by turns */
} paper;

static double paper_clock(void)
{
    return paper_now;
}

static void *paper_allocate(ex_device *device, int64_t bytes)
{
    void *block = calloc(1, (size_t)bytes); /* pages that nobody touches are not there */
    (void)device;
    paper.live += block != NULL;
    return block;
}

static void paper_release(ex_device *device, void *block)
{
    (void)device;
    paper.live -= block != NULL;
    free(block);
}

static void paper_memory(ex_device *device, int64_t *free_bytes, int64_t *total_bytes)
{
    (void)device;
    *free_bytes = paper.free;
    *total_bytes = paper.total;
}

static void paper_move(ex_device *device, void *to, const void *from, int64_t bytes)
{
    (void)device, (void)to, (void)from;
    paper_now += 2 * (double)bytes / paper.copy_bytes_per_s;
}

static void paper_copy_in(ex_device *device, void *to, const void *from, int64_t bytes)
{
    (void)device;
    memcpy(to, from, (size_t)(bytes < 64 ? bytes : 64));
}

static void paper_zero(ex_device *device, void *to, int64_t bytes)
{
    (void)device, (void)to, (void)bytes;
}

static void paper_sync(ex_device *device)
{
    (void)device;
}

static void paper_gemm(ex_device *device, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
                       const void *a, const void *b, float beta, void *c, int c_f32)
{
    (void)trans_a, (void)trans_b, (void)a, (void)b, (void)beta, (void)c, (void)c_f32;
    paper.most_gemm = m > paper.most_gemm ? m : paper.most_gemm;
    if (++paper.products == paper.fail_at)
        ex_fail(&device->fault, "the device is out of order");
    double seconds = paper.gemm_start_s + 2. * (double)m * (double)n * (double)k / paper.flops_per_s;
    seconds *= paper.throttled && m >= paper.throttled ? 2 : 1;
    paper_now += seconds * (paper.wobble ? 1 + paper.products % 3 : 1);
}

static void paper_attention(ex_device *device, const void *qkv, const ex_documents *documents, int64_t S,
                            ex_heads heads, void *out, float *log_sums)
{
    (void)device, (void)qkv, (void)out, (void)log_sums;
    ck_assert(documents->count == 1 && documents->longest == S);
    ck_assert(documents->host_borders[0] == 0 && documents->host_borders[1] == S);
    ck_assert_mem_eq(documents->borders, documents->host_borders, 8);
    paper_now += 2. * (double)S * (double)S * heads.heads * heads.dim / paper.attention_per_s;
}

static void paper_attention_back(ex_device *device, const void *qkv, const void *out, const void *d_out,
                                 const float *log_sums, const ex_documents *documents, int64_t S,
                                 ex_heads heads, void *d_qkv, void *scratch)
{
    (void)device, (void)qkv, (void)out, (void)d_out, (void)log_sums, (void)documents, (void)d_qkv;
    ck_assert_ptr_nonnull(scratch);
    paper_now += 5. * (double)S * (double)S * heads.heads * heads.dim / paper.attention_per_s;
}

static int64_t paper_scratch(ex_device *device, int64_t S, ex_heads heads)
{
    (void)device, (void)S, (void)heads;
    return 0;
}

static const ex_device_ops paper_ops = {.allocate = paper_allocate,
                                        .release = paper_release,
                                        .memory = paper_memory,
                                        .copy_in = paper_copy_in,
                                        .copy = paper_move,
                                        .zero = paper_zero,
                                        .sync = paper_sync,
                                        .gemm = paper_gemm,
                                        .attention = paper_attention,
                                        .attention_back = paper_attention_back,
                                        .attention_scratch = paper_scratch};

/* This rank is rank 0 of many that all do the same. */
static void paper_gather(ex_comm *comm, const void *send, void *recv, int64_t bytes)
{
    for (int32_t r = 0; r < comm->ranks; r++)
        memcpy((char *)recv + r * bytes, send, (size_t)bytes);
}

static void paper_make_group(ex_comm *comm, ex_group *group)
{
    ck_assert(group->size > 1 && group->size < comm->ranks);
    group->first = group->rank = 0;
    paper.live++;
}

static void paper_free_group(ex_comm *comm, ex_group *group)
{
    (void)comm, (void)group;
    paper.live--;
}

/* `bytes` leave a rank, evenly for all others of the group. */
static void paper_send(const ex_group *group, double bytes)
{
    int32_t inside = group->size < paper.node ? group->size : paper.node, outside = group->size - inside;
    double share = bytes / (group->size - 1);
    paper_now += (outside ? paper.far_latency_s : paper.latency_s) +
                 share * (inside - 1) / paper.bytes_per_s +
                 (outside ? share * outside / paper.far_bytes_per_s : 0);
}

static void paper_all_to_all(ex_comm *comm, const ex_group *group, const void *send, void *recv,
                             int64_t bytes)
{
    (void)comm, (void)send, (void)recv;
    paper_send(group, (double)bytes * (group->size - 1));
}

static void paper_all_reduce(ex_comm *comm, const ex_group *group, float *data, int64_t count)
{
    (void)comm, (void)data;
    paper_send(group, 8. * (double)count * (group->size - 1) / group->size);
}

static void paper_reduce_scatter(ex_comm *comm, const ex_group *group, const float *send, float *recv,
                                 int64_t count)
{
    (void)comm, (void)send, (void)recv;
    paper_send(group, 4. * (double)count * (group->size - 1));
}

static const ex_comm_ops paper_comm_ops = {.make_group = paper_make_group,
                                           .free_group = paper_free_group,
                                           .all_to_all = paper_all_to_all,
                                           .all_gather = paper_all_to_all,
                                           .all_reduce = paper_all_reduce,
                                           .reduce_scatter = paper_reduce_scatter,
                                           .gather_host = paper_gather};

static ex_device paper_device(const char *name, ex_type type, int host)
{
    ex_device device = {.ops = &paper_ops, .type = type, .host_memory = host};
    snprintf(device.name, sizeof device.name, "%s", name);
    paper_now = 100;
    paper = (struct paper){.flops_per_s = 8e11,
                           .attention_per_s = 2e11,
                           .copy_bytes_per_s = 1e10,
                           .latency_s = 2e-5,
                           .bytes_per_s = 4e9,
                           .far_latency_s = 5e-5,
                           .far_bytes_per_s = 1e9,
                           .node = 4,
                           .total = INT64_C(64) << 30,
                           .free = INT64_C(32) << 30};
    return device;
}

static ex_comm paper_comm(int32_t ranks, int32_t node_ranks)
{
    ex_comm comm = {.ops = &paper_comm_ops, .ranks = ranks, .node_ranks = node_ranks, .limit_s = 10};
    comm.world.size = ranks;
    paper.node = node_ranks;
    return comm;
}

static const ex_probe_options paper_options = {.budget_s = 4, .date = "2026-11-22", .now = paper_clock};

static void check_near(double value, double want, const char *what)
{
    ck_assert_msg(fabs(value / want - 1) < 1e-6, "%s is %.9g instead of %.9g", what, value, want);
}

#define NEAR(value, want) check_near(value, want, #value)

START_TEST(a_machine_on_paper_is_found)
{
    hbp_context *context = test_context();
    hbp_machine *machine = NULL;
    ex_fault fault = {0};
    ex_device device = paper_device("Paper(R) Processor", EX_F32, 1);
    ex_comm comm = paper_comm(8, 4);
    ck_assert_msg(!ex_probe(&device, &comm, &paper_options, context, &machine, &fault), "%s", fault.text);
    ck_assert(comm.device == &device);
    ck_assert_int_eq(paper.live, 0);
    ck_assert_str_eq(hbp_machine_get_name(machine), "Paper(R) Processor x 8");
    hbp_machine_fields f = {.struct_size = sizeof f};
    OK(context, hbp_machine_get_fields(context, machine, &f));
    ck_assert(f.nodes == 2 && f.gpus_per_node == 4 && f.domain_gpus == 4);
    ck_assert_int_gt(f.cores, 0); /* what hwloc says of this machine is there as well */
    ck_assert_int_eq(f.hbm_bytes, INT64_C(16) << 30);
    NEAR(f.hbm_bytes_per_s, 1e10);
    NEAR(f.flops_per_s, 8e11);
    NEAR(f.gemm_efficiency, 1);
    NEAR(f.attention_efficiency, .25);
    NEAR(f.nvlink_bytes_per_s, 4e9);
    NEAR(f.nvlink_latency_ns, 2e4);
    NEAR(f.network_bytes_per_s, 1e9);
    NEAR(f.network_latency_ns, 5e4);
    ck_assert_str_eq(hbp_machine_get_source(machine, "hbm_bytes_per_s"), "Paper(R) Processor, 2026-11-22");
    static const int32_t sizes[] = {2, 4, 8};
    for (int32_t c = 0; c < HBP_COLLECTIVE_COUNT; c++)
        for (int i = 0; i < 3; i++) {
            hbp_machine_collective found = {.struct_size = sizeof found};
            double outside = sizes[i] > 4 ? (sizes[i] - 4) / (sizes[i] - 1.) : 0;
            ck_assert(hbp_machine_get_collective(machine, c, sizes[i], &found));
            NEAR(found.latency_ns, sizes[i] > 4 ? 5e4 : 2e4);
            NEAR(found.bytes_per_s, 1 / ((1 - outside) / 4e9 + outside / 1e9));
            ck_assert_str_eq(found.source, "Paper(R) Processor, 2026-11-22");
            ck_assert_double_eq_tol(found.spread, 0, 1e-9);
        }
    int64_t counts[HBP_RATE_COUNT] = {0}, last = 0;
    static const double rates[HBP_RATE_COUNT] = {8e11, 2e11, 1e10};
    hbp_machine_rate r = {.struct_size = sizeof r};
    for (int64_t i = 0; hbp_machine_get_rate(machine, i, &r); i++) {
        NEAR(r.per_s, rates[r.rate]);
        ck_assert_double_eq_tol(r.spread, 0, 1e-9);
        ck_assert_str_eq(r.source, "Paper(R) Processor, 2026-11-22");
        if (counts[r.rate]++)
            ck_assert_int_eq(r.size, last * (r.rate == HBP_RATE_COPY ? 4 : 2));
        last = r.size;
    }
    ck_assert(counts[0] >= 4 && counts[1] >= 4 && counts[2] == 6); /* copies of 64 KiB to 64 MiB */
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

/* Sizes grow until the next would take too long. */
START_TEST(the_budget_is_kept)
{
    hbp_context *context = test_context();
    for (double budget = .1; budget < 20; budget *= 5) {
        hbp_machine *machine = NULL;
        ex_fault fault = {0};
        ex_device device = paper_device("Paper", EX_F32, 1);
        ex_comm comm = paper_comm(4, 4);
        ex_probe_options options = paper_options;
        options.budget_s = budget;
        ck_assert_msg(!ex_probe(&device, &comm, &options, context, &machine, &fault), "%s", fault.text);
        ck_assert_double_le(paper_now - 100, 1.1 * budget);
        ck_assert_double_ge(paper_now - 100, .2 * budget);
        hbp_machine_free(machine);
    }
    hbp_context_free(context);
}
END_TEST

/* Room for three matrices of 512 x 512 floats and not of 1024 x 1024: only smaller products are tried. */
START_TEST(memory_that_is_not_there_is_not_asked_for)
{
    hbp_context *context = test_context();
    hbp_machine *machine = NULL;
    ex_fault fault = {0};
    ex_device device = paper_device("Paper", EX_F32, 1);
    ex_comm comm = paper_comm(2, 2);
    paper.free = 4 * INT64_C(12) * 512 * 512; /* halved twice: two ranks, and half of it stays free */
    ck_assert_msg(!ex_probe(&device, &comm, &paper_options, context, &machine, &fault), "%s", fault.text);
    ck_assert_int_eq(paper.most_gemm, 512);
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

/* Calls of 1, 2 and 3 times a length: the median is 2 of them, the quartiles 1 and 3 or between. */
START_TEST(repeats_give_median_and_spread)
{
    double samples[] = {9, 1, 3, 7, 5};
    ex_probe_time time = ex_probe_summarise(samples, 5);
    ck_assert_double_eq(time.seconds, 5);
    ck_assert_double_eq(time.spread, 4 / 5.);
    double two[] = {4, 2};
    time = ex_probe_summarise(two, 2);
    ck_assert_double_eq(time.seconds, 3);
    ck_assert_double_eq(time.spread, 1 / 3.);
    time = ex_probe_summarise(two, 1);
    ck_assert_double_eq(time.seconds, 2);
    ck_assert_double_eq(time.spread, 0);

    hbp_context *context = test_context();
    hbp_machine *machine = NULL;
    ex_fault fault = {0};
    ex_device device = paper_device("Paper", EX_F32, 1);
    ex_comm comm = paper_comm(1, 1);
    paper.wobble = 1;
    ck_assert_msg(!ex_probe(&device, &comm, &paper_options, context, &machine, &fault), "%s", fault.text);
    hbp_machine_rate r = {.struct_size = sizeof r};
    int64_t i = 0;
    while (hbp_machine_get_rate(machine, i, &r))
        i++;
    ck_assert_int_eq(hbp_machine_get_rate(machine, i - 1, &r), 1);
    ck_assert_double_eq_tol(r.spread, 0, 1e-9); /* a copy */
    i = 0;
    do
        ck_assert_int_eq(hbp_machine_get_rate(machine, i++, &r), 1);
    while (r.size < 2048);
    ck_assert_int_eq(r.rate, HBP_RATE_GEMM);
    ck_assert(r.per_s > 8e11 / 2.6 && r.per_s < 8e11 / 1.4); /* by how the repeats fall */
    ck_assert(r.spread > .3 && r.spread < 1.01);
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

START_TEST(a_gpu_has_its_published_peak)
{
    static const struct {
        const char *name;
        ex_type type;
        double peak;
    } gpus[] = {{"NVIDIA H100 80GB HBM3", EX_BF16, 989e12},
                {"NVIDIA H100 PCIe", EX_BF16, 0},
                {"NVIDIA H100 80GB HBM3", EX_F32, 0},
                {"NVIDIA H200", EX_BF16, 989e12},
                {"NVIDIA H200 NVL", EX_BF16, 0},
                {"NVIDIA B200", EX_BF16, 2250e12},
                {"NVIDIA GB200", EX_BF16, 2500e12},
                {"NVIDIA A100-SXM4-40GB", EX_BF16, 312e12},
                {"NVIDIA RTX A4000", EX_BF16, 0}};
    hbp_context *context = test_context();
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
        hbp_machine *machine = NULL;
        ex_fault fault = {0};
        ex_device device = paper_device(gpus[i].name, gpus[i].type, 0);
        ex_comm comm = paper_comm(1, 1);
        hbp_machine_fields f = {.struct_size = sizeof f};
        ck_assert_msg(!ex_probe(&device, &comm, &paper_options, context, &machine, &fault), "%s", fault.text);
        OK(context, hbp_machine_get_fields(context, machine, &f));
        double peak = gpus[i].peak > 0 ? gpus[i].peak : 8e11;
        NEAR(f.flops_per_s, peak);
        NEAR(f.gemm_efficiency, 8e11 / peak);
        NEAR(f.attention_efficiency, 2e11 / peak);
        ck_assert_int_eq(f.hbm_bytes, INT64_C(64) << 30);
        hbp_machine_free(machine);
    }
    hbp_context_free(context);
}
END_TEST

/* The peak is the best that was met, the efficiency that of the largest size. */
START_TEST(large_products_make_the_efficiency)
{
    hbp_context *context = test_context();
    hbp_machine *machine = NULL;
    ex_fault fault = {0};
    ex_device device = paper_device("Paper", EX_F32, 1);
    ex_comm comm = paper_comm(1, 1);
    hbp_machine_fields f = {.struct_size = sizeof f};
    paper.throttled = 1024;
    ck_assert_msg(!ex_probe(&device, &comm, &paper_options, context, &machine, &fault), "%s", fault.text);
    OK(context, hbp_machine_get_fields(context, machine, &f));
    NEAR(f.flops_per_s, 8e11);
    NEAR(f.gemm_efficiency, .5);
    NEAR(f.attention_efficiency, .25);
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

/* A name that is too long for a profile, with a line end in it, is cut; the number of ranks stays. */
START_TEST(long_names_are_cut)
{
    hbp_context *context = test_context();
    hbp_machine *machine = NULL;
    ex_fault fault = {0};
    ex_device device = paper_device("", EX_F32, 1);
    memset(device.name, 'p', sizeof device.name - 1);
    device.name[3] = '\n';
    ex_comm comm = paper_comm(2, 2);
    ck_assert_msg(!ex_probe(&device, &comm, &paper_options, context, &machine, &fault), "%s", fault.text);
    const char *name = hbp_machine_get_name(machine);
    ck_assert_int_eq(strlen(name), 63);
    ck_assert_str_eq(name + 58, "p x 2");
    ck_assert_mem_eq(name, "ppp pp", 6);
    ck_assert_str_eq(hbp_machine_get_source(machine, "nodes") + 50, "p, 2026-11-22");
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

/* Latency that hides the size: all of the time is put down to bandwidth. */
START_TEST(times_that_do_not_grow_are_survived)
{
    hbp_context *context = test_context();
    hbp_machine *machine = NULL;
    ex_fault fault = {0};
    ex_device device = paper_device("Paper", EX_F32, 1);
    ex_comm comm = paper_comm(2, 2);
    paper.bytes_per_s = INFINITY;
    ck_assert_msg(!ex_probe(&device, &comm, &paper_options, context, &machine, &fault), "%s", fault.text);
    hbp_machine_collective found = {.struct_size = sizeof found};
    ck_assert(hbp_machine_get_collective(machine, HBP_COLLECTIVE_ALL_TO_ALL, 2, &found));
    ck_assert_double_eq(found.latency_ns, 0);
    NEAR(found.bytes_per_s, (16 << 20) / 2 / 2e-5); /* the largest of 4 KiB x 8^k up to 64 MiB */
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

static void uneven_gather(ex_comm *comm, const void *send, void *recv, int64_t bytes)
{
    paper_gather(comm, send, recv, bytes);
    if (fabs(((double *)recv)[0]) == 2)
        ((double *)recv)[1] *= 2;
}

START_TEST(failures_are_told)
{
    hbp_context *context = test_context();
    hbp_machine *machine = NULL;
    ex_fault fault = {0};
    ex_device device = paper_device("Paper", EX_F32, 1);
    ex_comm comm = paper_comm(2, 2);
    paper.fail_at = 7;
    ck_assert_int_eq(ex_probe(&device, &comm, &paper_options, context, &machine, &fault), -1);
    ck_assert_str_eq(fault.text, "the device is out of order");
    ck_assert_ptr_null(machine);
    ck_assert_int_eq(paper.live, 0);

    device = paper_device("Paper", EX_F32, 1);
    ex_fail(&comm.fault, "a rank is gone");
    fault.failed = 0;
    ck_assert_int_eq(ex_probe(&device, &comm, &paper_options, context, &machine, &fault), -1);
    ck_assert_str_eq(fault.text, "a rank is gone");

    ex_comm_ops ops = paper_comm_ops;
    ops.gather_host = uneven_gather;
    comm = paper_comm(6, 2);
    comm.ops = &ops;
    fault.failed = 0;
    ck_assert_int_eq(ex_probe(&device, &comm, &paper_options, context, &machine, &fault), -1);
    ck_assert_str_eq(fault.text,
                     "a node has 2 ranks and another 4; a machine has the same number on every node");
    ck_assert_ptr_null(machine);
    hbp_context_free(context);
}
END_TEST

typedef struct probing_rank {
    ex_comm *comm;
    int fail;
    int status;
    ex_fault fault;
    hbp_machine *machine;
    pthread_t thread;
} probing_rank;

static void *probe_rank(void *argument)
{
    probing_rank *r = argument;
    hbp_context *context = NULL;
    ex_device *device = ex_cpu_open(EX_F32, 1, &r->fault);
    ex_probe_options options = {.budget_s = .1, .largest = 1 << 20};
    if (!device || hbp_context_create(NULL, &context) < 0)
        abort();
    if (r->fail)
        ex_fail(&device->fault, "smoke");
    r->status = ex_probe(device, r->comm, &options, context, &r->machine, &r->fault);
    if (r->status)
        r->comm->ops->abandon(r->comm, r->fault.text);
    ex_device_free(device);
    ex_comm_free(r->comm);
    hbp_context_free(context);
    return NULL;
}

static void run_ranks(probing_rank *ranks, int32_t count)
{
    ex_comm *comms[4];
    ex_fault fault = {0};
    ck_assert_msg(!ex_local_open(count, 60, comms, &fault), "%s", fault.text);
    for (int32_t r = 0; r < count; r++) {
        ranks[r].comm = comms[r];
        ck_assert_int_eq(pthread_create(&ranks[r].thread, NULL, probe_rank, &ranks[r]), 0);
    }
    for (int32_t r = 0; r < count; r++)
        pthread_join(ranks[r].thread, NULL);
}

/* This machine, four virtual ranks of it: the profile is saved, loaded and planned with. */
START_TEST(this_machine_can_be_planned_with)
{
    hbp_context *context = test_context();
    probing_rank ranks[4] = {{0}};
    run_ranks(ranks, 4);
    for (int r = 0; r < 4; r++) {
        ck_assert_msg(!ranks[r].status, "%s", ranks[r].fault.text);
        ck_assert((ranks[r].machine != NULL) == (r == 0));
    }
    char path[] = "/tmp/hbp-probe-XXXXXX";
    close(mkstemp(path));
    hbp_machine *machine = NULL;
    OK(context, hbp_machine_save(context, ranks[0].machine, path));
    OK(context, hbp_machine_load(context, path, &machine));
    unlink(path);
    for (int32_t c = 0; c < HBP_COLLECTIVE_COUNT; c++)
        for (int32_t size = 2; size <= 4; size *= 2)
            ck_assert(
                hbp_machine_get_collective(machine, c, size, &(hbp_machine_collective){.struct_size = 4}));
    hbp_model *model = NULL;
    hbp_cost *cost = NULL;
    hbp_cost_options options = {.struct_size = sizeof options};
    options.reserve_bytes = 1 << 20;
    options.zero_stage = HBP_ZERO_NONE;
    hbp_model_fields fields = {.struct_size = sizeof fields};
    fields.layers = 2;
    fields.hidden = 64;
    fields.ffn = 128;
    fields.heads = fields.kv_heads = 4;
    fields.head_dim = 16;
    fields.vocab = 100;
    OK(context, hbp_model_create(context, &fields, &model));
    OK(context, hbp_cost_create(context, model, machine, &options, &cost));
    ck_assert_int_gt(hbp_cost_predict_pack_ns(cost, 2, 0, 1000, 1000000, 0), 0);
    hbp_cost_free(cost);
    hbp_model_free(model);
    hbp_machine_free(machine);
    hbp_machine_free(ranks[0].machine);
    hbp_context_free(context);
}
END_TEST

START_TEST(a_rank_that_fails_ends_the_others)
{
    probing_rank ranks[4] = {[2] = {.fail = 1}};
    run_ranks(ranks, 4);
    ck_assert_str_eq(ranks[2].fault.text, "smoke");
    for (int r = 0; r < 4; r++) {
        ck_assert_int_eq(ranks[r].status, -1);
        ck_assert_ptr_null(ranks[r].machine);
        ck_assert_msg(strstr(ranks[r].fault.text, "smoke") != NULL, "%s", ranks[r].fault.text);
    }
}
END_TEST

TEST_MAIN("probe", a_machine_on_paper_is_found, the_budget_is_kept, memory_that_is_not_there_is_not_asked_for,
          repeats_give_median_and_spread, a_gpu_has_its_published_peak, large_products_make_the_efficiency,
          long_names_are_cut, times_that_do_not_grow_are_survived, failures_are_told,
          this_machine_can_be_planned_with, a_rank_that_fails_ends_the_others)
