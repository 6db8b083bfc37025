/* Stacks as texts, presets and measurements say them. */
#include <math.h>

#include "data/stack/stack.h"
#include "keep.h"

typedef struct pair {
    hbp_model *model;
    hbp_machine *machine;
} pair;

static pair make(hbp_context *context, const char *model, const char *machine)
{
    pair p = {NULL, NULL};
    OK(context, hbp_model_create_preset(context, model, &p.model));
    OK(context, hbp_machine_create_preset(context, machine, &p.machine));
    return p;
}

static hbp_stack_fields read(hbp_context *context, const pair *p, const char *text)
{
    hbp_stack_fields f = {.struct_size = sizeof f};
    OK(context, hbp_stack_read(context, text, p->model, p->machine, &f));
    return f;
}

START_TEST_IN_CONTEXT(no_stack_is_the_machine)
{
    const pair p = make(context, "llama-3.1-8b", "h100,gemm_efficiency=0.6,attention_efficiency=0.3");
    keep(p.model);
    keep(p.machine);
    const hbp_stack_fields f = read(context, &p, NULL);
    ck_assert_double_eq(f.gemm_efficiency, .6);
    ck_assert_double_eq(f.attention_efficiency, .3);
    ck_assert_double_eq(f.forward_attention_efficiency, .3);
    ck_assert_double_eq(f.attention_tokens, 0);
    ck_assert_double_eq(f.elementwise_bytes + f.logits_traffic_bytes + f.exchange_passes + f.layer_ns, 0);
    ck_assert_double_eq(f.recompute_products + f.recompute_attention + f.activations, 3);
    ck_assert_double_eq(f.logits_kept_bytes, 10);
    ck_assert_double_eq(f.dp_overlap + f.sp_overlap + f.compute_overlap, 0);
    ck_assert_int_eq(f.fused_cross_entropy, 0);
}
END_TEST

START_TEST_IN_CONTEXT(every_preset_with_every_kernel)
{
    static const char *const machines[] = {"a100-40", "h100", "b200", "gb200-nvl72"};
    const char *stack;
    const char *kernel;
    int64_t stacks = 0;
    int64_t kernels = 0;
    for (int m = 0; m < 4; m++) {
        const pair p = make(context, m % 2 ? "deepseek-v3" : "qwen2.5-7b", machines[m]);
        keep(p.model);
        keep(p.machine);
        for (stacks = 0; (stack = hbp_preset_get_name("stack", stacks)) != NULL; stacks++)
            for (kernels = 0; (kernel = hbp_preset_get_name("attention", kernels)) != NULL; kernels++) {
                char text[128];
                snprintf(text, sizeof text, "%s:%s,layer_ns=0", stack, kernel); /* fields are checked */
                const hbp_stack_fields f = read(context, &p, text);
                ck_assert_double_gt(f.gemm_efficiency, .3);
                ck_assert_double_lt(f.gemm_efficiency, .95);
                ck_assert_double_gt(f.attention_efficiency, .1);
                ck_assert_double_ge(f.attention_tokens, 200);
                ck_assert_double_gt(f.elementwise_bytes, 0);
                ck_assert_double_ge(f.activations, 1);
            }
    }
    ck_assert_int_eq(stacks, 8);
    ck_assert_int_eq(kernels, 5);
}
END_TEST

START_TEST_IN_CONTEXT(the_nearest_gpu_and_head)
{
    const pair h = make(context, "llama-3.1-8b", "h100");
    const pair wide = make(context, "llama-3.1-8b,head_dim=64", "h200");
    const pair a = make(context, "llama-3.1-8b", "a800-80");
    keep(h.model), keep(h.machine), keep(wide.model), keep(wide.machine), keep(a.model), keep(a.machine);
    ck_assert_double_eq(read(context, &h, "fsdp").attention_tokens, 546);
    ck_assert_double_eq(read(context, &wide, "fsdp").attention_tokens, 540);
    ck_assert_double_eq(read(context, &a, "fsdp").attention_tokens, 474);
    ck_assert_double_eq(read(context, &a, "fsdp").gemm_efficiency, .77);
    ck_assert_double_eq(read(context, &h, "fsdp").gemm_efficiency, .6);
    ck_assert_double_eq(read(context, &h, "fsdp:fa3").attention_efficiency, .6);
    /* A kernel that no A100 has run: the H100's share. */
    ck_assert_double_eq(read(context, &a, "fsdp:fa3").attention_efficiency, .6);
}
END_TEST

START_TEST_IN_CONTEXT(fields_replace)
{
    const pair p = make(context, "llama-3.1-8b", "h100");
    keep(p.model);
    keep(p.machine);
    hbp_stack_fields f =
        read(context, &p, "fsdp,elementwise_bytes=200,attention_efficiency=50%,layer_ns=1ms");
    ck_assert_double_eq(f.elementwise_bytes, 200);
    ck_assert_double_eq(f.attention_efficiency, .5);
    ck_assert_double_eq(f.forward_attention_efficiency, .5);
    ck_assert_double_eq(f.forward_attention_tokens, 322); /* which was not given */
    ck_assert_double_eq(f.layer_ns, 1e6);
    f = read(context, &p, "compute_overlap=1,fused_cross_entropy=1");
    ck_assert_double_eq(f.gemm_efficiency, .45);
    ck_assert_double_eq(f.compute_overlap, 1);
    ck_assert_int_eq(f.fused_cross_entropy, 1);
}
END_TEST

/* What is known of the machine goes before what is known of others, what is asked for before both. */
START_TEST_IN_CONTEXT(measurements_go_first)
{
    const pair p = make(context, "llama-3.1-8b", "h100");
    keep(p.model);
    keep(p.machine);
    OK(context, hbp_machine_set_field(context, p.machine, "gemm_efficiency", .7, "GPU 2026-11-01"));
    OK(context, hbp_machine_set_field(context, p.machine, "attention_efficiency", .2, "GPU 2026-11-01"));
    hbp_stack_fields f = read(context, &p, "fsdp");
    ck_assert_double_eq(f.gemm_efficiency, .7);
    ck_assert_double_eq(f.attention_efficiency, .2);
    ck_assert_double_eq(f.attention_tokens, 546);
    ck_assert_double_eq(read(context, &p, "fsdp,gemm_efficiency=0.5").gemm_efficiency, .5);
    /* Rates along a curve are that curve. */
    for (int64_t size = 512; size <= 16384; size *= 2) {
        const hbp_machine_rate rate = {.struct_size = sizeof rate,
                                       .rate = HBP_RATE_ATTENTION,
                                       .size = size,
                                       .per_s = .4 * 989e12 / (1 + 600. / (double)size),
                                       .source = "GPU 2026-11-01"};
        OK(context, hbp_machine_set_rate(context, p.machine, &rate));
        if (size == 512) /* one size says nothing of a curve */
            ck_assert_double_eq(read(context, &p, NULL).attention_efficiency, .2);
    }
    f = read(context, &p, NULL);
    ck_assert_double_eq_tol(f.attention_efficiency, .4, 1e-12);
    ck_assert_double_eq_tol(f.attention_tokens, 600, 1e-6);
    ck_assert_double_eq_tol(f.forward_attention_tokens, 600, 1e-6);
    ck_assert_double_eq_tol(read(context, &p, "fsdp:fa3").attention_efficiency, .4, 1e-12);
    /* Rates of another measurement than the field's are not mixed with it. */
    OK(context, hbp_machine_set_field(context, p.machine, "attention_efficiency", .25, "given"));
    ck_assert_double_eq(read(context, &p, NULL).attention_efficiency, .25);
}
END_TEST

/* Rates of squares along E / (1 + half / n): what a product of t tokens with a K x N matrix takes is that of
 * the square of 3 / n = 1 / t + 1 / K + 1 / N, summed over the model's matrices by hand. */
START_TEST_IN_CONTEXT(products_by_size)
{
    static const struct {
        const char *model;
        int count;
        double rows[4], columns[4], times[4]; /* matrices of one layer */
        double layers;
    } of[] = {
        {"layers=2,hidden=512,heads=8,kv_heads=2,head_dim=64,ffn=1536,vocab=1000",
         3,
         {512, 512, 512},
         {512, 128, 1536},
         {2, 2, 3},
         2},
        {"layers=3,hidden=512,heads=8,kv_heads=8,head_dim=64,mlp=1,ffn=2048,vocab=1000",
         2,
         {512, 512},
         {512, 2048},
         {4, 2},
         3},
        /* Two of eight experts and their router. */
        {"layers=2,hidden=512,heads=8,kv_heads=8,head_dim=64,ffn=1024,experts=8,experts_active=2,moe_ffn=256,"
         "vocab=1000",
         3,
         {512, 512, 512},
         {512, 256, 8},
         {4, 6, 1},
         2},
    };
    const double half = 900, best = .8;
    for (size_t m = 0; m < sizeof of / sizeof *of; m++) {
        pair p = {NULL, NULL};
        OK(context, hbp_model_create_preset(context, of[m].model, &p.model));
        OK(context, hbp_machine_create_preset(context, "h100", &p.machine));
        keep(p.model);
        keep(p.machine);
        OK(context, hbp_machine_set_field(context, p.machine, "gemm_efficiency", .7, "GPU 2026-11-01"));
        for (int64_t size = 1024; size <= 16384; size *= 2) {
            const hbp_machine_rate rate = {.struct_size = sizeof rate,
                                           .rate = HBP_RATE_GEMM,
                                           .size = size,
                                           .per_s = best * 989e12 / (1 + half / (double)size),
                                           .source = "GPU 2026-11-01"};
            OK(context, hbp_machine_set_rate(context, p.machine, &rate));
            if (size == 1024) /* one size says nothing of a curve */
                ck_assert_double_eq(read(context, &p, NULL).gemm_efficiency, .7);
        }
        const hbp_stack_fields f = read(context, &p, "fsdp");
        for (double t = 64; t < 1e5; t *= 4) {
            double ns = 0, flops = 0;
            for (int i = 0; i <= of[m].count; i++) {
                const int is_head = i == of[m].count;
                const double k = is_head ? 1000 : of[m].rows[i], n = is_head ? 512 : of[m].columns[i];
                const double times = is_head ? 1 : of[m].times[i] * of[m].layers;
                const double size = 3 / (1 / t + 1 / k + 1 / n);
                flops += times * 2 * t * k * n;
                ns += times * 2 * t * k * n / (best / (1 + half / size));
            }
            ck_assert_double_eq_tol(flops / f.gemm_efficiency * (1 + f.gemm_tokens / t), ns, 1e-3 * ns);
        }
        /* A field in the text goes first, and one that is given; rates that no field goes with are taken. */
        ck_assert_double_eq(read(context, &p, "fsdp,gemm_tokens=5").gemm_tokens, 5);
        OK(context, hbp_machine_set_field(context, p.machine, "gemm_efficiency", .6, "given"));
        ck_assert_double_eq(read(context, &p, "fsdp").gemm_efficiency, .6);
        ck_assert_double_eq(read(context, &p, "fsdp").gemm_tokens, 0);
        OK(context, hbp_machine_set_field(context, p.machine, "gemm_efficiency", .6, "another GPU"));
        ck_assert_double_eq(read(context, &p, "fsdp").gemm_efficiency, .6);
        OK(context, hbp_machine_set_field(context, p.machine, "gemm_efficiency", .45, "preset h100"));
        ck_assert_double_eq(read(context, &p, "fsdp").gemm_tokens, f.gemm_tokens);
    }
}
END_TEST

START_TEST_IN_CONTEXT(bad_texts_are_named)
{
    const pair p = make(context, "llama-3.1-8b", "h100");
    keep(p.model);
    keep(p.machine);
    hbp_stack_fields f = {.struct_size = sizeof f};
#define REFUSED(text, says)                                                                                  \
    FAILS(context, HBP_E_INVALID, says, hbp_stack_read(context, text, p.model, p.machine, &f))
    REFUSED("fdsp", "no stack preset 'fdsp'; the nearest is 'fsdp'; there are fsdp, fsdp-compiled, ");
    REFUSED("fsdp:fa9", "no attention preset 'fa9'; the nearest is 'fa1'");
    REFUSED("fsdp:", "no attention preset ''; there are triton, fa1, fa2, fa3, cudnn");
    REFUSED("", "no stack preset ''; there are ");
    REFUSED("fsdp,", "stack 'fsdp,': '' is not FIELD=VALUE");
    REFUSED("fsdp,elementwise=3", "there is no field 'elementwise'; the nearest is 'elementwise_bytes'");
    REFUSED("fsdp,overlap=3", "the nearest is 'compute_overlap'");
    REFUSED("fsdp,compute_overlap=1.5", "compute_overlap is 1.5; it must be at least 0 and at most 1");
    REFUSED("fsdp,gemm_efficiency=0", "gemm_efficiency is 0; it must be at least 9.53674e-07 and at most 1");
    REFUSED("fsdp,gemm_efficiency=nan", "gemm_efficiency");
    REFUSED("fsdp,fused_cross_entropy=0.5", "fused_cross_entropy is 0.5; it must be 0 or 1");
    REFUSED("fsdp,recompute_products=2", "recompute_products is 2; it must be at least 0 and at most 1");
    REFUSED("fsdp,activations=-1", "activations is -1; it must be finite and at least 0");
    REFUSED("gemm_efficiency=1,gemm_efficiency=1", "gemm_efficiency is given twice");
    FAILS(context, HBP_E_INVALID, "model is NULL", hbp_stack_read(context, "fsdp", NULL, p.machine, &f));
    FAILS(context, HBP_E_INVALID, "machine is NULL", hbp_stack_read(context, "fsdp", p.model, NULL, &f));
    hbp_machine_fields none = {.struct_size = sizeof none, .nodes = 1, .gpus_per_node = 8};
    hbp_machine *bare = NULL;
    OK(context, hbp_machine_create(context, &none, &bare));
    keep(bare);
    FAILS(context, HBP_E_INVALID, "flops_per_s", hbp_stack_read(context, "fsdp", p.model, bare, &f));
}
END_TEST

TEST_MAIN("stack", no_stack_is_the_machine, every_preset_with_every_kernel, the_nearest_gpu_and_head,
          fields_replace, measurements_go_first, products_by_size, bad_texts_are_named)
