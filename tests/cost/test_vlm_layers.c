#include "failing.h"

#include <math.h>

#include "data/model/vlm.h"
#include "data/pipeline/layers.h"
#include "keep.h"
#include "nodes.h"

/* 4 GPUs of 1 TFLOP/s, of which matrix products reach half and attention a quarter; 1 byte a ns of HBM, 0.5
 * of NVLink, 100 ns a collective. */
static hbp_machine *small_machine(hbp_context *context)
{
    hbp_machine_fields f = {.struct_size = sizeof f};
    f.nodes = 1;
    f.gpus_per_node = f.domain_gpus = 4;
    f.hbm_bytes = 1 << 30;
    f.hbm_bytes_per_s = 1e9;
    f.flops_per_s = 1e12;
    f.gemm_efficiency = 0.5;
    f.attention_efficiency = 0.25;
    f.nvlink_bytes_per_s = 0.5e9;
    f.nvlink_latency_ns = 100;
    hbp_machine *machine = NULL;
    OK(context, hbp_machine_create(context, &f, &machine));
    return machine;
}

static hbp_vlm *small_vlm(hbp_context *context)
{
    hbp_model_fields l = {.struct_size = sizeof l};
    l.layers = 3;
    l.hidden = 24;
    l.ffn = 50;
    l.heads = 6;
    l.kv_heads = 2;
    l.vocab = 100;
    hbp_model *language = NULL;
    OK(context, hbp_model_create(context, &l, &language));
    hbp_vlm_fields f = {.struct_size = sizeof f};
    f.vision_mlp = HBP_MLP_PLAIN;
    f.vision_layers = 2;
    f.vision_hidden = 8;
    f.vision_ffn = 20;
    f.vision_heads = 2;
    f.patch_values = 12;
    f.tokens_per_unit = 5;
    f.projected_per_unit = 3;
    f.projector_input = 16;
    hbp_vlm *vlm = NULL;
    OK(context, hbp_vlm_create(context, &f, language, &vlm));
    hbp_model_free(language);
    return vlm;
}

static hbp_vlm_layers_options sizes(double vision, double tokens, int32_t tensor_parallel)
{
    hbp_vlm_layers_options o = {.struct_size = sizeof o};
    o.vision = vision;
    o.tokens = tokens;
    o.tensor_parallel = tensor_parallel;
    return o;
}

static hbp_layers *derive(hbp_context *context, const hbp_vlm *vlm, const hbp_machine *machine,
                          const hbp_vlm_layers_options *options)
{
    hbp_layers *layers = NULL;
    OK(context, hbp_vlm_create_layers(context, vlm, machine, options, &layers));
    return layers;
}

#define ROW(i, column, value)                                                                                \
    ck_assert_msg(layers->column[i] == (int64_t)(value), "%s of %s is %lld instead of %lld", #column,        \
                  layers->name[i], (long long)layers->column[i], (long long)(value))

/* 2000 units, 400 tokens of which squares sum to 40000, on one GPU: a flop of matrix products takes 0.002 ns,
 * of attention 0.004. */
START_TEST_IN_CONTEXT(a_small_model_by_hand)
{
    hbp_machine *machine = keep(small_machine(context));
    hbp_vlm *vlm = keep(small_vlm(context));
    hbp_vlm_layers_options o = sizes(2000, 400, 0);
    hbp_layers *layers = keep(derive(context, vlm, machine, &o));
    ck_assert_int_eq(layers->count, 10);
    static const char *const names[] = {"patch embedding", "vision 0",   "vision 1",   "projector",
                                        "token embedding", "language 0", "language 1", "language 2",
                                        "final norm",      "output head"};
    for (int32_t i = 0; i < 10; i++) {
        ck_assert_str_eq(layers->name[i], names[i]);
        ck_assert_int_eq(layers->type[i], i < 4 ? HBP_LAYER_VISION : HBP_LAYER_LANGUAGE);
        ck_assert_int_eq(layers->cut_type[i], layers->type[i]);
        ROW(i, state_bytes, 18 * layers->parameters[i]);
        ROW(i, working_bytes, layers->activation_bytes[i] - layers->recomputed_bytes[i]);
    }
    /* 10000 patches of 12 numbers to 8. */
    ROW(0, forward_ns, 2 * 96 * 10000 * .002);
    ROW(0, backward_ns, 2 * 96 * 10000 * .002);
    ROW(0, recompute_ns, 0);
    ROW(0, activation_bytes, 2 * 12 * 10000);
    ROW(0, recomputed_bytes, 2 * 12 * 10000);
    ROW(0, parameters, 12 * 8 + 8 + 5 * 8);
    ROW(0, cut_bytes, 2 * 8 * 10000);
    /* Attention has 4 x 64 + 24 + 8 parameters and keeps 4 h + 8 a d_h + 4 a = 104 bytes a token, the MLP 320
     * + 8 and 4 h + 4 f = 112; 16 are input. Scores: 4 x 8 flops for each of 5 x 10000 pairs. */
    for (int32_t i = 1; i < 3; i++) {
        ROW(i, attention_ns, 2 * 296 * 10000 * .002 + 32 * 50000 * .004);
        ROW(i, mlp_ns, 2 * 320 * 10000 * .002);
        ROW(i, forward_ns, layers->attention_ns[i] + layers->mlp_ns[i]);
        ROW(i, recompute_ns, layers->forward_ns[i]);
        ROW(i, backward_ns, 2 * 2 * 616 * 10000 * .002 + 2.5 * 32 * 50000 * .004);
        ROW(i, activation_bytes, 216 * 10000);
        ROW(i, recomputed_bytes, 16 * 10000);
        ROW(i, attention_bytes, 88 * 10000);
        ROW(i, mlp_bytes, 96 * 10000);
        ROW(i, parameters, 616);
        ROW(i, cut_bytes, 160000);
    }
    /* 6000 tokens, 16 to 24 to 24. */
    ROW(3, forward_ns, 2 * 24 * 40 * 6000 * .002);
    ROW(3, backward_ns, 4 * 24 * 40 * 6000 * .002);
    ROW(3, recompute_ns, layers->forward_ns[3]);
    ROW(3, activation_bytes, 4 * 40 * 6000);
    ROW(3, recomputed_bytes, 2 * 16 * 6000);
    ROW(3, attention_bytes, 0);
    ROW(3, parameters, 32 + 16 * 24 + 24 + 24 * 24 + 24);
    ROW(3, cut_bytes, 2 * 24 * 6000);
    ROW(4, forward_ns, 4 * 24 * 400);
    ROW(4, backward_ns, 4 * 24 * 400);
    ROW(4, recompute_ns, 0);
    ROW(4, activation_bytes, 0);
    ROW(4, parameters, 2400);
    ROW(4, cut_bytes, 2 * 24 * 400);
    /* Attention 2 x 576 + 2 x 192 + 48, 4 h + 4 d_h (a + k) + 4 a = 248 bytes; the MLP 3600 and 4 h + 6
     * f = 396. Causal: 2 x 24 flops for every squared token. */
    for (int32_t i = 5; i < 8; i++) {
        ROW(i, attention_ns, 2 * 1584 * 400 * .002 + 48 * 40000 * .004);
        ROW(i, mlp_ns, 2 * 3600 * 400 * .002 + .5);
        ROW(i, backward_ns, 2 * 2 * 5184 * 400 * .002 + 2.5 * 48 * 40000 * .004 + .5);
        ROW(i, activation_bytes, 644 * 400);
        ROW(i, recomputed_bytes, 48 * 400);
        ROW(i, attention_bytes, 200 * 400);
        ROW(i, mlp_bytes, 348 * 400);
        ROW(i, parameters, 5184);
        ROW(i, cut_bytes, 2 * 24 * 400);
    }
    ROW(8, forward_ns, 4 * 24 * 400);
    ROW(8, backward_ns, 6 * 24 * 400);
    ROW(8, recompute_ns, 0);
    ROW(8, activation_bytes, 48 * 400);
    ROW(8, recomputed_bytes, 48 * 400);
    ROW(8, parameters, 24);
    ROW(9, forward_ns, 2 * 2400 * 400 * .002);
    ROW(9, backward_ns, 4 * 2400 * 400 * .002);
    ROW(9, recompute_ns, 0);
    ROW(9, activation_bytes, (48 + 1000) * 400);
    ROW(9, recomputed_bytes, (48 + 1000) * 400);
    ROW(9, cut_bytes, 0);

    o.fused_cross_entropy = 1;
    o.squares = 160000;
    layers = keep(derive(context, vlm, machine, &o));
    ROW(9, activation_bytes, 48 * 400);
    ROW(5, attention_ns, 2 * 1584 * 400 * .002 + 48 * 160000 * .004);
}
END_TEST

/* Two GPUs: half of everything, and collectives of n bytes in 100 + n / 2 / 0.5 ns. */
START_TEST_IN_CONTEXT(tensor_parallelism_by_hand)
{
    hbp_machine *machine = keep(small_machine(context));
    hbp_vlm *vlm = keep(small_vlm(context));
    hbp_vlm_layers_options o = sizes(2000, 400, 2);
    o.data_parallel = 3;
    hbp_layers *layers = derive(context, vlm, machine, &o);
    double vision = 2 * (100 + 16 * 10000.), language = 2 * (100 + 48 * 400.);
    ROW(1, attention_ns, 296 * 10000 * .002 + 16 * 50000 * .004 + vision);
    ROW(1, mlp_ns, 320 * 10000 * .002 + vision);
    ROW(1, backward_ns, 2 * 616 * 10000 * .002 + 2.5 * 16 * 50000 * .004 + 2 * vision);
    ROW(1, activation_bytes, 108 * 10000);
    ROW(1, recomputed_bytes, 8 * 10000);
    ROW(1, attention_bytes, 44 * 10000);
    ROW(1, parameters, 308);
    ROW(1, state_bytes, 308 * (6 + 12 / 3));
    ROW(1, cut_bytes, 160000);
    ROW(3, forward_ns, 24 * 40 * 6000 * .002 + 200 + 2 * (16 + 24) * 6000.);
    ROW(3, backward_ns, 2 * 24 * 40 * 6000 * .002 + 200 + 2 * (16 + 24) * 6000.);
    ROW(4, forward_ns, 2 * 24 * 400 + language / 2);
    ROW(5, attention_ns, 1584 * 400 * .002 + 24 * 40000 * .004 + language);
    ROW(9, forward_ns, 2400 * 400 * .002 + language / 2);
    ROW(9, backward_ns, 2 * 2400 * 400 * .002 + language / 2);
    hbp_layers_free(layers);

    /* A measured reduce-scatter takes the place of the links' speed. */
    OK(context, set_collective(context, machine, HBP_COLLECTIVE_REDUCE_SCATTER, 2, 7, 2e9, "test"));
    layers = derive(context, vlm, machine, &o);
    ROW(1, mlp_ns, 320 * 10000 * .002 + vision / 2 + 7 + 160000 / 2 / 2);
    hbp_layers_free(layers);

    static const double per_parameter[] = {6 + 4, 6 + 4, 2 + 16 / 3., 18 / 3., 18};
    for (int32_t stage = 0; stage < 5; stage++) {
        o.zero_stage = stage;
        layers = derive(context, vlm, machine, &o);
        ck_assert_int_eq(layers->state_bytes[4], (int64_t)(1200 * per_parameter[stage] + .5));
        hbp_layers_free(layers);
    }
}
END_TEST

/* Four GPUs for two key-value heads: each head stands on two of them. */
START_TEST_IN_CONTEXT(heads_are_repeated_and_padded)
{
    hbp_machine *machine = NULL;
    hbp_vlm *vlm = NULL;
    MAKES(context, machine, hbp_machine_create_preset(context, "a100-80", &machine));
    MAKES(context, vlm, hbp_vlm_create_preset(context, "internvl-1.5-26b", &vlm));
    hbp_vlm_layers_options o = sizes(9, 4096, 4);
    hbp_layers *layers = keep(derive(context, vlm, machine, &o));
    /* 28 heads of 128 instead of 25. */
    int64_t h = 3200, width = 28 * 128;
    ROW(1, parameters, (4 * h * width + 3 * width + 4 * 12800 * h / 2 + 2 * h) / 4);

    MAKES(context, vlm, hbp_vlm_create_preset(context, "qwen2-vl-7b", &vlm));
    o.tensor_parallel = 4; /* as many as there are key-value heads */
    layers = keep(derive(context, vlm, machine, &o));
    int32_t first = 1 + 32 + 2;
    ROW(first, parameters,
        (2 * 3584 * 3584 + 2 * 3584 * 512 + (3584 + 1024) + 3 * 3584LL * 18944 + 2 * 3584) / 4);

    hbp_model_fields l = {.struct_size = sizeof l};
    l.layers = 1;
    l.hidden = 64;
    l.ffn = 50;
    l.heads = 8;
    l.kv_heads = 2;
    l.vocab = 100;
    hbp_model *language = NULL;
    MAKES(context, language, hbp_model_create(context, &l, &language));
    hbp_vlm *small = keep(small_vlm(context));
    hbp_vlm_fields f = {.struct_size = sizeof f};
    OK(context, hbp_vlm_get_fields(context, small, &f));
    f.vision_heads = 4;
    f.vision_head_dim = 2;
    MAKES(context, vlm, hbp_vlm_create(context, &f, language, &vlm));
    machine = keep(small_machine(context));
    o = sizes(2000, 400, 4);
    layers = keep(derive(context, vlm, machine, &o));
    ROW(5, parameters, (2 * 64 * 64 + 2 * 64 * 32 + 2 * 64 + 3 * 64 * 50) / 4);
}
END_TEST

static int64_t total(const int64_t *column, int32_t begin, int32_t end)
{
    int64_t sum = 0;
    for (int32_t i = begin; i < end; i++)
        sum += column[i];
    return sum;
}

static void check_sum(const char *name, const char *what, double got, double expected, double tolerance)
{
    ck_assert_msg(fabs(got / expected - 1) < tolerance, "%s: %s is %.9g instead of %.9g", name, what, got,
                  expected);
}

/* The rows sum to what the model's summary and the cost of packs say of the whole. */
START_TEST_IN_CONTEXT(rows_sum_to_the_model)
{
    hbp_machine *machine = NULL;
    MAKES(context, machine, hbp_machine_create_preset(context, "h200:64", &machine));
    double per_flop = 1e9 / (989e12 * .45);
    int mark = keep_mark();
    for (int64_t i = 0; hbp_preset_get_name("vlm", i); keep_release(mark), i++) {
        const char *name = hbp_preset_get_name("vlm", i);
        hbp_vlm *vlm = NULL;
        MAKES(context, vlm, hbp_vlm_create_preset(context, name, &vlm));
        double units = 2304. / vlm->fields.projected_per_unit;
        hbp_vlm_layers_options o = sizes(units, 4096, 1);
        o.squares = 5e6;
        hbp_layers *layers = keep(derive(context, vlm, machine, &o));
        hbp_vlm_summary s = {.struct_size = sizeof s};
        OK(context, hbp_vlm_get_summary(context, vlm, &s));
        ck_assert_int_eq(layers->count, s.layers);
        int32_t projector = vlm->fields.vision_layers + 1, end = layers->count;
        ck_assert_int_eq(total(layers->parameters, 0, projector), s.vision_parameters);
        ck_assert_int_eq(layers->parameters[projector], s.projector_parameters);
        ck_assert_int_eq(total(layers->parameters, projector + 1, end), s.language_parameters);
        check_sum(name, "vision", (double)total(layers->forward_ns, 0, projector + 1),
                  units * s.vision_flops_per_unit * per_flop, 1e-5);
        /* Embedding and norm take the time of their memory traffic. */
        int64_t language = total(layers->forward_ns, projector + 2, end) - layers->forward_ns[end - 2];
        check_sum(name, "language", (double)language,
                  (4096 * s.language_flops_per_token + 5e6 * s.language_flops_per_token_squared) * per_flop,
                  1e-5);

        hbp_cost *cost = NULL;
        MAKES(context, cost, hbp_cost_create(context, hbp_vlm_get_language(vlm), machine, NULL, &cost));
        hbp_cost_terms terms = {.struct_size = sizeof terms};
        OK(context, hbp_cost_get_terms(context, cost, &terms));
        language += total(layers->backward_ns, projector + 2, end) - layers->backward_ns[end - 2];
        check_sum(name, "the cost of a pack", (double)language,
                  4096 * terms.ns_per_token + 5e6 * terms.ns_per_token_squared, 1e-5);
        check_sum(name, "activation",
                  (double)total(layers->activation_bytes, projector + 2, end - 2) / terms.layers,
                  4096 * terms.activation_bytes, 1e-5);
    }
}
END_TEST

/* OmniBal's published figures (section 4 and table 6): moving cuts 47, 72 and 23 of 101 layers to 49, 66 and
 * 82 saves 16.6 MiB of activations on their way, and a cut right behind the projector 21.0 MiB. */
START_TEST_IN_CONTEXT(cuts_send_what_was_published)
{
    hbp_machine *machine = NULL;
    hbp_vlm *vlm = NULL;
    MAKES(context, machine, hbp_machine_create_preset(context, "a100-80", &machine));
    MAKES(context, vlm, hbp_vlm_create_preset(context, "internvl-1.5-26b", &vlm));
    for (int32_t degree = 1; degree <= 4; degree *= 4) {
        hbp_vlm_layers_options o = sizes(9, 4096, degree);
        hbp_layers *layers = derive(context, vlm, machine, &o);
        const int64_t *cut = layers->cut_bytes;
        int32_t projector = 46;
        ck_assert_str_eq(layers->name[projector], "projector");
        ck_assert_int_eq(cut[22], INT64_C(9) * 1025 * 3200 * 2);
        ck_assert_int_eq(cut[projector], INT64_C(9) * 256 * 6144 * 2);
        ck_assert_int_eq(cut[70], INT64_C(4096) * 6144 * 2);
        double mib = 1 << 20;
        ck_assert_double_eq_tol((double)(2 * cut[22] + cut[70] - 3 * cut[70]) / mib, 16.610, 5e-4);
        ck_assert_double_eq((double)(cut[projector] - cut[70]) / mib, -21);
        hbp_layers_free(layers);
    }
}
END_TEST

/* The small model with the times of a stack (docs: stacks): a byte of traffic takes 1 ns. */
START_TEST_IN_CONTEXT(a_stack_by_hand)
{
    hbp_machine *machine = keep(small_machine(context));
    hbp_vlm *vlm = keep(small_vlm(context));
    hbp_vlm_layers_options o = sizes(2000, 400, 0);
    o.stack = "gemm_tokens=3,attention_tokens=7,elementwise_bytes=12,logits_traffic_bytes=6,activations=2,"
              "logits_kept_bytes=4,recompute_products=0.5,recompute_attention=0.25";
    const hbp_layers *layers = keep(derive(context, vlm, machine, &o));
    const double parts = 12. * 24 * 400 / 6;
    const double projections = 2 * 1584 * 403 * .002, products = 2 * 3600 * 403 * .002;
    const double attention = 48 * (40000 + 400 * 7) * .004;
    for (int32_t i = 5; i < 8; i++) {
        ROW(i, attention_ns, projections / 2 + attention / 4 + parts + .5);
        ROW(i, mlp_ns, products / 2 + parts + .5);
        ROW(i, recompute_ns, layers->attention_ns[i] + layers->mlp_ns[i]);
        ROW(i, forward_ns,
            (int64_t)(projections + attention + parts + .5) + (int64_t)(products + parts + .5));
        ROW(i, backward_ns, 2 * (projections + products) + 2.5 * attention + 4 * parts + .5);
        ROW(i, activation_bytes, 2 * 644 * 400);
        ROW(i, recomputed_bytes, 48 * 400);
        ROW(i, attention_bytes, (2 * 248 - 48) * 400);
        ROW(i, mlp_bytes, (2 * 396 - 48) * 400);
    }
    /* Five tokens attend five; the encoder's passes move as much per token and hidden unit. */
    ROW(1, attention_ns, 296 * 10003 * .002 + 8 * (50000 + 10000 * 7) * .004 + 12. * 8 * 10000 / 6 + .5);
    ROW(9, forward_ns, 2 * 2400 * 403 * .002 + 6 * 100 * 400 / 3. + .5);
    ROW(9, backward_ns, 4 * 2400 * 403 * .002 + 2 * 6 * 100 * 400 / 3. + .5);
    ROW(9, activation_bytes, (48 + 400) * 400);
    /* No layer takes less than layer_ns. */
    o.stack = "layer_ns=3s,fused_cross_entropy=1";
    layers = keep(derive(context, vlm, machine, &o));
    ROW(5, forward_ns, 1000000000);
    ROW(5, backward_ns, 2000000000);
    ROW(5, attention_ns, 500000000);
    ROW(5, recompute_ns, 1000000000);
    ROW(9, activation_bytes, 48 * 400);
    /* A kernel that is faster forward than in both passes. */
    o.stack = "attention_efficiency=0.25,forward_attention_efficiency=0.5";
    layers = keep(derive(context, vlm, machine, &o));
    ROW(5, attention_ns, 2 * 1584 * 400 * .002 + 48 * 40000 * .002 + .5);
    ROW(5, backward_ns, 4 * 5184 * 400 * .002 + 48 * 40000 * (3.5 * .004 - .002) + .5);
}
END_TEST

/* Mixtures: only the sparse layers' MLPs differ from the dense ones'. */
START_TEST_IN_CONTEXT(mixtures_of_experts_have_two_kinds_of_layers)
{
    hbp_machine *machine = NULL;
    hbp_model *language = NULL;
    hbp_vlm *vlm = NULL, *internvl = NULL;
    MAKES(context, machine, hbp_machine_create_preset(context, "h100:2", &machine));
    MAKES(context, language, hbp_model_create_preset(context, "deepseek-v2", &language));
    MAKES(context, internvl, hbp_vlm_create_preset(context, "internvl-1.5-26b", &internvl));
    MAKES(context, vlm, hbp_vlm_create(context, &internvl->fields, language, &vlm));
    hbp_vlm_layers_options o = sizes(9, 4096, 1);
    hbp_layers *layers = keep(derive(context, vlm, machine, &o));
    int32_t dense = 48;
    ck_assert_str_eq(layers->name[dense], "language 0");
    ck_assert_int_eq(layers->attention_ns[dense], layers->attention_ns[dense + 1]);
    ck_assert_int_lt(layers->parameters[dense], layers->parameters[dense + 1] / 10);
    for (int32_t i = dense + 2; i < layers->count - 2; i++)
        ck_assert_int_eq(layers->mlp_ns[i], layers->mlp_ns[dense + 1]);
    ck_assert_int_eq(total(layers->parameters, dense - 1, layers->count), language->summary.parameters);
}
END_TEST

#define WRONG(text, field, value)                                                                            \
    do {                                                                                                     \
        hbp_vlm_layers_options wrong = sizes(9, 4096, 1);                                                    \
        wrong.field = value;                                                                                 \
        FAILS(context, HBP_E_INVALID, text, hbp_vlm_create_layers(context, vlm, machine, &wrong, &layers));  \
        ck_assert_ptr_null(layers);                                                                          \
    } while (0)

START_TEST_IN_CONTEXT(wrong_options_are_named)
{
    hbp_machine *machine = NULL;
    hbp_vlm *vlm = NULL;
    hbp_layers *layers = (hbp_layers *)context;
    MAKES(context, machine, hbp_machine_create_preset(context, "a100-80:8", &machine));
    MAKES(context, vlm, hbp_vlm_create_preset(context, "internvl-1.5-26b", &vlm));
    WRONG("`tensor_parallel` is -1; it must be in 0..2147483647", tensor_parallel, -1);
    WRONG("`data_parallel` is -2; it must be in 0..2147483647", data_parallel, -2);
    WRONG("`zero_stage` is 5; it must be in 0..4", zero_stage, 5);
    WRONG("vision is 0; it must be finite and above 0", vision, 0);
    WRONG("tokens is -1; it must be finite and above 0", tokens, -1);
    WRONG("tokens is nan; it must be finite and above 0", tokens, NAN);
    WRONG("squares is inf; it must be finite and at least 0", squares, INFINITY);
    WRONG("tensor_parallel is 128; machine a100-80 has 64 GPUs", tensor_parallel, 128);
    WRONG(
        "tensor_parallel is 3, which does not share out the 48 heads and 8 key-value heads of internlm2-20b "
        "evenly; 1, 2, 4, 8 or 16 would do",
        tensor_parallel, 3);
    WRONG("tensor_parallel is 48; the encoder of internvl-1.5-26b has 25 heads; 1, 2, 4, 8 or 16 would do",
          tensor_parallel, 48);
    WRONG("hbp_vlm_layers_options.struct_size is 2", struct_size, 2);
    hbp_vlm_layers_options o = sizes(1e300, 4096, 1);
    FAILS(context, HBP_E_OVERFLOW, "forward_ns", hbp_vlm_create_layers(context, vlm, machine, &o, &layers));
    ck_assert_ptr_null(layers);
    o = sizes(9, 4096, 1);
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_vlm_create_layers(context, vlm, machine, &o, NULL));
    FAILS(context, HBP_E_INVALID, "vlm is NULL", hbp_vlm_create_layers(context, NULL, machine, &o, &layers));
    FAILS(context, HBP_E_INVALID, "machine is NULL", hbp_vlm_create_layers(context, vlm, NULL, &o, &layers));
    FAILS(context, HBP_E_INVALID, "options is NULL",
          hbp_vlm_create_layers(context, vlm, machine, NULL, &layers));
    OK(context, hbp_machine_set_field(context, machine, "flops_per_s", 0, "test"));
    FAILS(context, HBP_E_INVALID, "flops_per_s of machine a100-80 is 0 or unknown; set it",
          hbp_vlm_create_layers(context, vlm, machine, &o, &layers));
    ck_assert_uint_eq(sizeof(hbp_vlm_layers_options), 56);
}
END_TEST

typedef struct given {
    const hbp_vlm *vlm;
    const hbp_machine *machine;
} given;

static hbp_status create_once(hbp_context *context, void *user)
{
    const given *g = user;
    hbp_vlm_layers_options o = sizes(9, 4096, 2);
    hbp_layers *layers = NULL;
    hbp_status status = hbp_vlm_create_layers(context, g->vlm, g->machine, &o, &layers);
    ck_assert_int_eq(status == HBP_OK, layers != NULL);
    hbp_layers_free(layers);
    return status;
}

START_TEST_IN_CONTEXT(failed_allocations_leave_nothing)
{
    hbp_vlm *vlm = keep(small_vlm(context));
    hbp_machine *machine = keep(small_machine(context));
    given g = {vlm, machine};
    failing_sweep(create_once, &g);
}
END_TEST

TEST_MAIN("vlm_layers", a_small_model_by_hand, tensor_parallelism_by_hand, heads_are_repeated_and_padded,
          rows_sum_to_the_model, cuts_send_what_was_published, mixtures_of_experts_have_two_kinds_of_layers,
          a_stack_by_hand, wrong_options_are_named, failed_allocations_leave_nothing)
