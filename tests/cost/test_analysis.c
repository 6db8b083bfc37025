#include "traps.h"

#include "failing.h"

#include <math.h>

#include "cost/cost.h"
#include "keep.h"
#include "nodes.h"

static hbp_model *preset_model(hbp_context *context, const char *name)
{
    hbp_model *model = NULL;
    OK(context, hbp_model_create_preset(context, name, &model));
    return model;
}

static hbp_machine *preset_machine(hbp_context *context, const char *name, int32_t nodes)
{
    hbp_machine *machine = NULL;
    OK(context, make_nodes(context, name, nodes, &machine));
    return machine;
}

static hbp_cost_options some_options(void)
{
    hbp_cost_options options = {.struct_size = sizeof options};
    return options;
}

static hbp_cost_terms terms_of(hbp_context *context, const hbp_cost *cost)
{
    hbp_cost_terms t = {.struct_size = sizeof t};
    OK(context, hbp_cost_get_terms(context, cost, &t));
    return t;
}

/* Terms of a cost that lives until the caller frees it. */
static hbp_cost *make(hbp_context *context, const hbp_model *model, const hbp_machine *machine,
                      const hbp_cost_options *options, hbp_cost_terms *terms)
{
    hbp_cost *cost = NULL;
    OK(context, hbp_cost_create(context, model, machine, options, &cost));
    *terms = terms_of(context, cost);
    return cost;
}

#define NEAR(a, b) ck_assert_double_eq_tol(a, b, 1e-9 * fabs(b))

/* Llama-3.1-8B on 32 H100, every term by its own arithmetic. */
START_TEST_IN_CONTEXT(llama_on_four_nodes_by_hand)
{
    hbp_model *model = keep(preset_model(context, "llama-3.1-8b"));
    hbp_machine *machine = keep(preset_machine(context, "h100", 4));
    hbp_machine_fields f = {.struct_size = sizeof f};
    OK(context, hbp_machine_get_fields(context, machine, &f));
    hbp_cost_terms t;
    hbp_cost *cost = keep(make(context, model, machine, NULL, &t));
    /* q and out, k and v, gated MLP, two norms. */
    double layer = 2. * 4096 * 4096 + 2. * 4096 * 1024 + 3. * 4096 * 14336 + 2. * 4096;
    double head = 128256. * 4096;
    double parameters = 32 * layer + 2 * head + 4096;
    double speed = f.flops_per_s * f.gemm_efficiency;
    ck_assert_int_eq(t.ranks, 32);
    ck_assert_int_eq(t.domain_ranks, 8);
    ck_assert_int_eq(t.layers, 32);
    /* Whether norms count as matrix products is below a part in ten thousand. */
    ck_assert_double_eq_tol(t.ns_per_token, 6e9 * (parameters - head) / speed, 1e-4 * t.ns_per_token);
    NEAR(t.ns_per_token_squared, 7e9 * 32 * 4096 / (f.flops_per_s * f.attention_efficiency));
    ck_assert_double_eq_tol(t.recompute_linear, 32 * layer / (32 * layer + head) / 3, 1e-4);
    NEAR(t.recompute_attention, 2. / 7);
    NEAR(t.recompute_communication, .5);
    ck_assert_double_eq_tol(t.static_bytes, 18 * parameters / 32 + 2 * 2 * layer, 1e-4 * t.static_bytes);
    NEAR(t.activation_bytes, 8. * 4096 + 4. * 128 * 40 + 4. * 32 + 6. * 14336);
    NEAR(t.recomputed_bytes, 2. * 4096);
    NEAR(t.working_bytes, t.activation_bytes);
    NEAR(t.logits_bytes, 10. * 128256);
    NEAR(t.sp_buffer_bytes, 2. * 2 * 128 * 40);
    ck_assert_int_eq(t.limit_bytes, f.hbm_bytes - (INT64_C(4) << 30));
    double ring = fmin(f.nvlink_bytes_per_s, 8 * f.network_bytes_per_s);
    NEAR(t.pack_ns, 8 * parameters * 31 / 32 / ring * 1e9 + 3 * 32 * f.network_latency_ns);
    NEAR(t.step_ns, 30 * parameters / 32 / f.hbm_bytes_per_s * 1e9);
    ck_assert_int_eq(t.degrees, 6);
    /* SP 16: 2 bytes x (32 + 16 heads) x 2 x 128 a token and 16; 7/16 near, 8/16 far; 64 passes. */
    double held = 2. * 48 * 256 / 16;
    ck_assert_int_eq(t.degree[4], 16);
    NEAR(t.sp_ns_per_token[4],
         64e9 * held * (7. / 16 / f.nvlink_bytes_per_s + 8. / 16 / f.network_bytes_per_s));
    NEAR(t.sp_latency_ns[4], 256 * f.network_latency_ns);
    NEAR(t.sp_latency_ns[3], 256 * f.nvlink_latency_ns);
    ck_assert_str_eq(hbp_cost_get_source(cost, "ns_per_token"), "analysis");
    ck_assert_str_eq(hbp_cost_get_source(cost, "pack_ns"), "analysis");
    ck_assert_str_eq(hbp_cost_get_source(cost, "sp_ns_per_token"), "analysis");
}
END_TEST

START_TEST_IN_CONTEXT(zero_stages_move_bytes_and_traffic)
{
    hbp_model *model = keep(preset_model(context, "llama-3.1-8b"));
    hbp_machine *machine = keep(preset_machine(context, "h200", 4));
    hbp_model_summary s = {.struct_size = sizeof s};
    OK(context, hbp_model_get_summary(context, model, &s));
    double p = (double)s.parameters;
    OK(context, hbp_machine_set_field(context, machine, "network_latency_ns", 0, "test"));
    /* A byte a nanosecond over all 32 ranks, whatever the collective. */
    for (int32_t c = HBP_COLLECTIVE_ALL_GATHER; c < HBP_COLLECTIVE_COUNT; c++)
        OK(context, set_collective(context, machine, c, 32, 0, 1e9, "nccl-tests 2.19"));
    double moved = p * 31 / 32;
    const struct {
        int32_t stage;
        double pack;
        double step;
        double states;
    } rows[] = {
        {HBP_ZERO_3, 8, 0, 18. / 32}, {HBP_ZERO_2, 4, 2, 2 + 16. / 32}, {HBP_ZERO_1, 0, 6, 6 + 12. / 32}};
    for (int i = 0; i < 3; i++) {
        hbp_cost_options options = some_options();
        options.zero_stage = rows[i].stage;
        options.pack_overhead_ns = 1000;
        hbp_cost_terms t;
        hbp_cost *cost = make(context, model, machine, &options, &t);
        double update = 30 * p / 32 / 4.8e12 * 1e9;
        ck_assert_double_eq_tol(t.pack_ns, 1000 + rows[i].pack * moved, 1e-6 * moved);
        ck_assert_double_eq_tol(t.step_ns, rows[i].step * moved + update, 1e-6 * moved);
        double gathered = t.static_bytes - rows[i].states * p;
        if (i == 0)
            ck_assert_double_eq_tol(gathered, 4 * 218e6, 4e6);
        else
            ck_assert_double_eq_tol(gathered, 0, 1);
        static const char *const pack_sources[] = {"all-gather: nccl-tests 2.19; reduction: nccl-tests 2.19",
                                                   "reduction: nccl-tests 2.19", "analysis"};
        static const char *const step_sources[] = {"analysis", "all-gather: nccl-tests 2.19",
                                                   "all-gather: nccl-tests 2.19; reduction: nccl-tests 2.19"};
        ck_assert_str_eq(hbp_cost_get_source(cost, "pack_ns"), pack_sources[i]);
        ck_assert_str_eq(hbp_cost_get_source(cost, "step_ns"), step_sources[i]);
        hbp_cost_free(cost);
        options.dp_overlap = .75;
        options.pack_overhead_ns = 0;
        cost = make(context, model, machine, &options, &t);
        ck_assert_double_eq_tol(t.pack_ns, .25 * rows[i].pack * moved, 1e-6 * moved);
        hbp_cost_free(cost);
    }
    /* Without ZeRO 8B parameters do not fit: 18 bytes each is 144 GB. */
    hbp_cost_options options = some_options();
    options.zero_stage = HBP_ZERO_NONE;
    hbp_cost *cost = NULL;
    OK(context, hbp_machine_set_field(context, machine, "hbm_bytes", 141e9, "test"));
    FAILS(context, HBP_E_INFEASIBLE, "llama-3.1-8b needs 134.6 GiB on each of 32 GPUs",
          hbp_cost_create(context, model, machine, &options, &cost));
    ck_assert_ptr_null(cost);
    OK(context, hbp_machine_set_field(context, machine, "hbm_bytes", 2e11, "test"));
    hbp_cost_terms t;
    cost = make(context, model, machine, &options, &t);
    ck_assert_double_eq_tol(t.static_bytes, 18 * p, 1);
    ck_assert_double_eq_tol(t.step_ns, 8 * moved + 30 * p / 4.8e12 * 1e9, 1e-6 * moved);
    ck_assert(t.pack_ns == 0);
    hbp_cost_free(cost);
}
END_TEST

/* Against the definition: all 1 <= d <= ranks. */
/* HSDP: shards inside 8 ranks, and their sum over 4 replicas once a step; who waits for whom. */
START_TEST_IN_CONTEXT(shards_and_sets_move_bytes_and_traffic)
{
    hbp_model *model = keep(preset_model(context, "llama-3.1-8b"));
    hbp_machine *machine = keep(preset_machine(context, "h200", 4));
    hbp_model_summary s = {.struct_size = sizeof s};
    OK(context, hbp_model_get_summary(context, model, &s));
    double p = (double)s.parameters, moved = p * 7 / 8;
    OK(context, hbp_machine_set_field(context, machine, "network_latency_ns", 0, "test"));
    for (int32_t c = HBP_COLLECTIVE_ALL_GATHER; c < HBP_COLLECTIVE_COUNT; c++) {
        OK(context, set_collective(context, machine, c, 8, 0, 1e9, "test"));
        OK(context, set_collective(context, machine, c, 4, 0, 1e9, "test"));
    }
    hbp_cost_options options = some_options();
    hbp_cost_terms t, other;
    options.shard_ranks = 8;
    keep(make(context, model, machine, &options, &t));
    ck_assert_int_eq(t.lockstep_ranks, 8);
    ck_assert_int_eq(t.degree[t.degrees - 1], 8);
    ck_assert_double_eq_tol(t.pack_ns, 8 * moved, 1e-6 * moved);
    ck_assert_double_eq_tol(t.step_ns, 2 * 4 * p / 8 * 3 / 4 + 30 * p / 8 / 4.8e12 * 1e9, 1e-6 * moved);
    ck_assert_double_eq_tol(t.static_bytes - 18 * p / 8, 4 * 218e6, 4e6);
    /* ZeRO-2 that accumulates is ZeRO-1; a pack's own ranks alone keep every degree. */
    options = some_options();
    options.zero_stage = HBP_ZERO_2;
    options.lockstep_ranks = 1;
    options.uneven_micro_batches = 1;
    keep(make(context, model, machine, &options, &t));
    ck_assert_int_eq(t.lockstep_ranks, 1);
    ck_assert_int_eq(t.uneven_micro_batches, 1);
    ck_assert_int_eq(t.degree[t.degrees - 1], 32);
    options = some_options();
    options.zero_stage = HBP_ZERO_1;
    keep(make(context, model, machine, &options, &other));
    ck_assert_double_eq(t.pack_ns, other.pack_ns);
    ck_assert_double_eq(t.step_ns, other.step_ns);
    ck_assert_double_eq(t.static_bytes, other.static_bytes);
    ck_assert_int_eq(other.lockstep_ranks, 0);
}
END_TEST

START_TEST_IN_CONTEXT(degrees_are_exactly_the_legal_ones)
{
    static const char *const models[] = {"qwen2.5-7b", "qwen3-8b", "mixtral-8x22b", "deepseek-v2"};
    static const struct {
        int32_t nodes;
        int32_t gpus;
        int32_t domain;
        int32_t max_sp;
    } machines[] = {{7, 8, 8, 0},   {12, 8, 8, 0}, {16, 8, 4, 16},
                    {6, 12, 12, 0}, {64, 1, 1, 0}, {2, 48, 48, 24}};
    for (int i = 0; i < 4; i++) {
        hbp_model *model = preset_model(context, models[i]);
        for (int k = 0, mark = keep_mark(); k < 6; keep_release(mark), k++) {
            hbp_machine *machine = keep(preset_machine(context, "b200", machines[k].nodes));
            OK(context, hbp_machine_set_field(context, machine, "gpus_per_node", machines[k].gpus, "test"));
            OK(context, hbp_machine_set_field(context, machine, "domain_gpus", machines[k].domain, "test"));
            OK(context, hbp_machine_set_field(context, machine, "hbm_bytes", 1e15, "test"));
            hbp_cost_options options = some_options();
            options.max_sp = machines[k].max_sp;
            hbp_cost_terms t;
            keep(make(context, model, machine, &options, &t));
            int32_t ranks = machines[k].nodes * machines[k].gpus;
            int32_t domain = machines[k].domain;
            int32_t row = 0;
            for (int32_t d = 1; d <= ranks; d++) {
                int legal = ranks % d == 0 && hbp_model_is_sp_legal(model, d) &&
                            (d % domain == 0 || domain % d == 0) && (!options.max_sp || d <= options.max_sp);
                if (legal) {
                    ck_assert_int_lt(row, t.degrees);
                    ck_assert_int_eq(t.degree[row++], d);
                }
            }
            ck_assert_int_eq(row, t.degrees);
        }
        hbp_model_free(model);
    }
}
END_TEST

START_TEST_IN_CONTEXT(measured_all_to_alls_replace_links)
{
    hbp_model *model = keep(preset_model(context, "llama-3.1-8b"));
    hbp_machine *machine = keep(preset_machine(context, "h100", 1));
    hbp_cost_options options = some_options();
    hbp_cost_terms before;
    keep(make(context, model, machine, &options, &before));
    OK(context, set_collective(context, machine, HBP_COLLECTIVE_ALL_TO_ALL, 4, 500, 1e10, "probe"));
    hbp_cost_terms after;
    hbp_cost *cost = keep(make(context, model, machine, &options, &after));
    ck_assert(after.sp_ns_per_token[1] == before.sp_ns_per_token[1]);
    NEAR(after.sp_ns_per_token[2], 64e9 * 2 * 40 * 256 / 4 * .75 / 1e10);
    NEAR(after.sp_latency_ns[2], 256. * 500);
    ck_assert_str_eq(hbp_cost_get_source(cost, "sp_ns_per_token"), "SP 4: probe; analysis");
    for (int32_t d = 2; d <= 8; d *= 2)
        OK(context, set_collective(context, machine, HBP_COLLECTIVE_ALL_TO_ALL, d, 500, 1e10, "probe"));
    options.sp_overlap = .5;
    options.fused_cross_entropy = 1;
    options.reserve_bytes = -1;
    cost = keep(make(context, model, machine, &options, &after));
    ck_assert_str_eq(hbp_cost_get_source(cost, "sp_latency_ns"), "SP 2: probe; SP 4: probe; SP 8: probe");
    NEAR(after.sp_ns_per_token[2], 32e9 * 2 * 40 * 256 / 4 * .75 / 1e10);
    NEAR(after.sp_latency_ns[2], 256. * 500);
    ck_assert(after.logits_bytes == 0);
    ck_assert_int_eq(after.limit_bytes, before.limit_bytes + (INT64_C(4) << 30));
    /* More measurements than the text has room for. */
    OK(context, set_collective(context, machine, HBP_COLLECTIVE_ALL_TO_ALL, 2, 500, 1e10,
                               "a source with a name of nearly all the sixty-three characters"));
    cost = keep(make(context, model, machine, &options, &after));
    ck_assert_uint_le(strlen(hbp_cost_get_source(cost, "sp_latency_ns")), 63);
}
END_TEST

/* A machine of one GPU needs no links, and a GPU with no neighbours pays for no collective. */
START_TEST_IN_CONTEXT(one_gpu_needs_no_links)
{
    hbp_model_fields small = {
        .struct_size = sizeof small, .layers = 2, .hidden = 64, .ffn = 128, .heads = 4, .vocab = 100};
    hbp_model *model = NULL;
    MAKES(context, model, hbp_model_create(context, &small, &model));
    hbp_machine_fields f = {.struct_size = sizeof f,
                            .nodes = 1,
                            .gpus_per_node = 1,
                            .domain_gpus = 1,
                            .hbm_bytes = INT64_C(1) << 33,
                            .hbm_bytes_per_s = 1e12,
                            .flops_per_s = 1e14,
                            .gemm_efficiency = .5,
                            .attention_efficiency = .4};
    hbp_machine *machine = NULL;
    MAKES(context, machine, hbp_machine_create(context, &f, &machine));
    hbp_cost_terms t;
    keep(make(context, model, machine, NULL, &t));
    ck_assert(t.pack_ns == 0);
    ck_assert_int_eq(t.degrees, 1);
    NEAR(t.ns_per_token_squared, 7e9 * 2 * 64 / 4e13);
}
END_TEST

/* Of logits and the layer in recomputation the larger counts, small products cost a constant, and the sources
 * name the stack. */
START_TEST_IN_CONTEXT(a_stack_in_terms)
{
    hbp_model *model = keep(preset_model(context, "llama-3.1-8b"));
    hbp_machine *machine = keep(preset_machine(context, "h100", 4));
    hbp_cost_options o = some_options();
    hbp_cost_terms plain, t;
    keep(make(context, model, machine, &o, &plain));
    o.stack = "gemm_tokens=64,logits_kept_bytes=1";
    hbp_cost *cost = keep(make(context, model, machine, &o, &t));
    ck_assert_double_eq(t.logits_bytes, 128256);
    ck_assert_double_eq(t.working_bytes, t.activation_bytes - 128256);
    NEAR(t.pack_ns - plain.pack_ns, 64 * plain.ns_per_token);
    ck_assert_str_eq(hbp_cost_get_source(cost, "ns_per_token"),
                     "analysis, stack gemm_tokens=64,logits_kept_bytes=1");
    o.stack = "hbp"; /* logits are more than a layer */
    keep(make(context, model, machine, &o, &t));
    ck_assert_double_eq(t.working_bytes, 0);
    o.stack = "hbp,fused_cross_entropy=1,elementwise_bytes=800,logits_traffic_bytes=40,exchange_passes=5";
    cost = keep(make(context, model, machine, &o, &t));
    ck_assert_double_eq(t.working_bytes, t.activation_bytes);
    ck_assert_int_eq((int)strlen(hbp_cost_get_source(cost, "static_bytes")), HBP__COST_SOURCE_BYTES - 1);
    /* Of a mixture all experts' products are small ones. */
    hbp_model *mixture = keep(preset_model(context, "mixtral-8x7b"));
    o.stack = NULL;
    keep(make(context, mixture, machine, &o, &plain));
    o.stack = "gemm_tokens=64";
    keep(make(context, mixture, machine, &o, &t));
    ck_assert_double_gt(t.pack_ns - plain.pack_ns, 64 * plain.ns_per_token * 3);
    ck_assert_double_lt(t.pack_ns - plain.pack_ns, 64 * plain.ns_per_token * 4);
}
END_TEST

START_TEST_IN_CONTEXT(bad_input_is_named)
{
    hbp_model *model = keep(preset_model(context, "llama-3.1-8b"));
    hbp_machine *machine = NULL;
    hbp_cost *cost = NULL;
    static const struct {
        const char *field;
        double value;
        const char *message;
    } rows[] = {{"nodes", 0, "nodes of machine h100 is 0 or unknown"},
                {"gpus_per_node", 0, "gpus_per_node of machine h100 is 0 or unknown"},
                {"domain_gpus", 0, "domain_gpus of machine h100 is 0 or unknown"},
                {"domain_gpus", 7, "domain_gpus of machine h100 is 7, which does not divide its 16 GPUs"},
                {"hbm_bytes", 0, "hbm_bytes of machine h100 is 0"},
                {"hbm_bytes_per_s", 0, "hbm_bytes_per_s of machine h100 is 0"},
                {"flops_per_s", 0, "flops_per_s of machine h100 is 0"},
                {"gemm_efficiency", 0, "gemm_efficiency of machine h100 is 0"},
                {"attention_efficiency", 0, "attention_efficiency of machine h100 is 0"},
                {"nvlink_bytes_per_s", 0, "nvlink_bytes_per_s of machine h100 is 0"},
                {"network_bytes_per_s", 0, "network_bytes_per_s of machine h100 is 0"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        machine = preset_machine(context, "h100", 2);
        OK(context, hbp_machine_set_field(context, machine, rows[i].field, rows[i].value, "test"));
        FAILS(context, HBP_E_INVALID, rows[i].message, hbp_cost_create(context, model, machine, NULL, &cost));
        ck_assert_ptr_null(cost);
        hbp_machine_free(machine);
    }
    hbp_machine_fields none = {.struct_size = sizeof none};
    OK(context, hbp_machine_create(context, &none, &machine));
    FAILS(context, HBP_E_INVALID,
          "10 fields of machine given are 0 or unknown; set them, for example "
          "nodes=4,gpus_per_node=8,domain_gpus=8,"
          "hbm_bytes=80GiB,hbm_bytes_per_s=3.35TB/s,flops_per_s=989TFLOPS,gemm_efficiency=0.45,"
          "attention_efficiency=0.45,nvlink_bytes_per_s=371GB/s,network_bytes_per_s=400Gb/s",
          hbp_cost_create(context, model, machine, NULL, &cost));
    OK(context, hbp_machine_set_fields(context, machine, strstr(hbp_context_message(context), "nodes=4")));
    OK(context, hbp_cost_create(context, model, machine, NULL, &cost));
    hbp_cost_free(cost);
    cost = NULL;
    hbp_machine_free(machine);
    machine = preset_machine(context, "h100", 2);
#define REFUSES(text, change)                                                                                \
    do {                                                                                                     \
        hbp_cost_options o = some_options();                                                                 \
        change;                                                                                              \
        FAILS(context, HBP_E_INVALID, text, hbp_cost_create(context, model, machine, &o, &cost));            \
        ck_assert_ptr_null(cost);                                                                            \
    } while (0)
    REFUSES("`zero_stage` is 5; it must be in 0..4", o.zero_stage = 5);
    REFUSES("`zero_stage` is -1; it must be in 0..4", o.zero_stage = -1);
    REFUSES("`max_sp` is -2; it must be in 0..2147483647", o.max_sp = -2);
    REFUSES("`dp_overlap` is 1.5; it must be in 0..1", o.dp_overlap = 1.5);
    REFUSES("`sp_overlap` is nan; it must be in 0..1", o.sp_overlap = NAN);
    REFUSES("`reserve_bytes` is -2; it must be in -1..9223372036854775807", o.reserve_bytes = -2);
    REFUSES("`pack_overhead_ns` is -1; it must be in 0..9223372036854775807", o.pack_overhead_ns = -1);
    REFUSES("shard_ranks is 3; it must divide the 16 ranks", o.shard_ranks = 3);
    REFUSES("`shard_ranks` is -1; it must be in 0..262144", o.shard_ranks = -1);
    REFUSES("shard_ranks is 8; without ZeRO nothing is sharded",
            (o.shard_ranks = 8, o.zero_stage = HBP_ZERO_NONE));
    REFUSES("lockstep_ranks is 1; ZeRO-3 gathers weights over 16 ranks", o.lockstep_ranks = 1);
    REFUSES("lockstep_ranks is 4; ZeRO-3 gathers weights over 8 ranks",
            (o.shard_ranks = 8, o.lockstep_ranks = 4));
    REFUSES("lockstep_ranks is 5; it must divide the 16 ranks",
            (o.lockstep_ranks = 5, o.zero_stage = HBP_ZERO_1));
    REFUSES("uneven_micro_batches is set; with lockstep_ranks 16 of 16", o.uneven_micro_batches = 1);
    FAILS(context, HBP_E_INVALID, "model is NULL", hbp_cost_create(context, NULL, machine, NULL, &cost));
    FAILS(context, HBP_E_INVALID, "machine is NULL", hbp_cost_create(context, model, NULL, NULL, &cost));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_cost_create(context, model, machine, NULL, NULL));
    hbp_machine_free(machine);
    model = keep(preset_model(context, "llama-3.1-405b"));
    machine = preset_machine(context, "h100", 4);
    FAILS(context, HBP_E_INFEASIBLE, "llama-3.1-405b needs 2",
          hbp_cost_create(context, model, machine, NULL, &cost));
    ck_assert_ptr_nonnull(strstr(hbp_context_message(context), "on each of 32 GPUs"));
    /* A reserve above the memory leaves none. */
    hbp_cost_options options = some_options();
    options.reserve_bytes = INT64_C(1) << 50;
    FAILS(context, HBP_E_INFEASIBLE,
          "reserve_bytes keeps 1024.0 TiB free on each GPU, which has 80.0 GiB: nothing is left for",
          hbp_cost_create(context, model, machine, &options, &cost));
    hbp_machine_free(machine);
}
END_TEST

typedef struct pair {
    hbp_model *model;
    hbp_machine *machine;
} pair;

static hbp_status create_and_free(hbp_context *context, void *user)
{
    const pair *p = user;
    hbp_cost *cost = NULL;
    hbp_status status = hbp_cost_create(context, p->model, p->machine, NULL, &cost);
    ck_assert((status == HBP_OK) == (cost != NULL));
    hbp_cost_free(cost);
    return status;
}

START_TEST_IN_CONTEXT(every_allocation_may_fail)
{
    pair p = {keep(preset_model(context, "qwen2.5-7b")), keep(preset_machine(context, "h100", 7))};
    failing_sweep(create_and_free, &p);
}
END_TEST

TEST_MAIN_WITH("analysis", traps_on, NULL, llama_on_four_nodes_by_hand, zero_stages_move_bytes_and_traffic,
               shards_and_sets_move_bytes_and_traffic, degrees_are_exactly_the_legal_ones,
               measured_all_to_alls_replace_links, one_gpu_needs_no_links, a_stack_in_terms,
               bad_input_is_named, every_allocation_may_fail)
