/* Costs scaled to runs whose speed is known. */
#include <math.h>

#include "base/rng.h"
#include "data/cost/cost.h"
#include "keep.h"

/* The speed at which `cost` says that the anchor runs. */
static double speed(const hbp_cost *cost, const hbp_anchor *a)
{
    const int64_t tokens = a->sequence_tokens * a->sequences_per_micro_batch;
    const double squares = (double)tokens * (double)a->sequence_tokens;
    const double ns = (double)hbp_cost_predict_pack_ns(cost, a->sp, a->recompute, tokens, squares, 0) *
                          (double)a->micro_batches_per_step +
                      cost->terms.step_ns;
    return (double)(tokens * a->micro_batches_per_step) / a->sp / ns * 1e9;
}

static hbp_cost *cost_of(hbp_context *context, const char *stack)
{
    hbp_model *model = NULL;
    hbp_machine *machine = NULL;
    hbp_cost *cost = NULL;
    const hbp_cost_options o = {.struct_size = sizeof o, .stack = stack};
    OK(context, hbp_model_create_preset(context, "llama-3.1-8b", &model));
    OK(context, hbp_machine_create_preset(context, "h100:4", &machine));
    OK(context, hbp_cost_create(context, model, machine, &o, &cost));
    hbp_model_free(model);
    hbp_machine_free(machine);
    return cost;
}

START_TEST_IN_CONTEXT(one_run_is_met)
{
    static const char *const stacks[] = {NULL, "fsdp", "hbp", "fsdp-2023,layer_ns=5ms"};
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    for (int trial = 0; trial < 80; trial++) {
        hbp_cost *prior = cost_of(context, stacks[trial % 4]), *cost = NULL;
        const hbp_anchor a = {.struct_size = sizeof a,
                              .sp = 1 << hbp__rng_below(&rng, 4),
                              .recompute = (int32_t)hbp__rng_below(&rng, 33),
                              .sequence_tokens = 512 << hbp__rng_below(&rng, 5),
                              .sequences_per_micro_batch = 1 + (int64_t)hbp__rng_below(&rng, 8),
                              .micro_batches_per_step = 1 + (int64_t)hbp__rng_below(&rng, 4),
                              .tokens_per_s_per_gpu = 100 + hbp__rng_below(&rng, 8000)};
        OK(context, hbp_cost_anchor(context, prior, &a, &cost));
        ck_assert_double_eq_tol(speed(cost, &a), a.tokens_per_s_per_gpu, 1e-6 * a.tokens_per_s_per_gpu);
        ck_assert_double_eq_tol(cost->terms.pack_ns / prior->terms.pack_ns,
                                speed(prior, &a) / a.tokens_per_s_per_gpu, 1e-6);
        ck_assert_double_eq(cost->terms.activation_bytes, prior->terms.activation_bytes);
        ck_assert_double_eq(cost->terms.recompute_linear, prior->terms.recompute_linear);
        ck_assert_double_eq(cost->terms.compute_overlap, prior->terms.compute_overlap);
        ck_assert_ptr_nonnull(strstr(hbp_cost_get_source(cost, "ns_per_token"), " tokens/s per GPU"));
        ck_assert_str_eq(hbp_cost_get_source(cost, "static_bytes"),
                         hbp_cost_get_source(prior, "static_bytes"));
        ck_assert_str_eq(hbp_cost_get_model_name(cost), "llama-3.1-8b");
        hbp_cost_free(cost);
        hbp_cost_free(prior);
    }
}
END_TEST

START_TEST_IN_CONTEXT(bad_anchors_are_named)
{
    hbp_cost *prior = keep(cost_of(context, NULL)), *cost = NULL;
    hbp_anchor a = {.struct_size = sizeof a, .sequence_tokens = 8192, .tokens_per_s_per_gpu = 5000}, kept = a;
#define REFUSED(field, value, says)                                                                          \
    a = kept;                                                                                                \
    a.field = value;                                                                                         \
    FAILS(context, HBP_E_INVALID, says, hbp_cost_anchor(context, prior, &a, &cost));                         \
    ck_assert_ptr_null(cost)
    REFUSED(sp, 3, "sp is 3, which is not a degree of the prior");
    REFUSED(recompute, 33, "`recompute` is 33; it must be in 0..32");
    REFUSED(sequence_tokens, 0, "`sequence_tokens` is 0; it must be in 1..");
    REFUSED(sequences_per_micro_batch, 300000,
            "`sequences_per_micro_batch` is 300000; it must be in 1..262143");
    REFUSED(micro_batches_per_step, -1, "`micro_batches_per_step` is -1");
    REFUSED(tokens_per_s_per_gpu, 0, "tokens_per_s_per_gpu is 0; it must be finite and above 0");
    REFUSED(tokens_per_s_per_gpu, (double)NAN, "tokens_per_s_per_gpu is nan");
    REFUSED(tokens_per_s_per_gpu, (double)INFINITY, "tokens_per_s_per_gpu is inf");
    REFUSED(tokens_per_s_per_gpu, 30000,
            "tokens_per_s_per_gpu is 30000; at the peak of the GPU's products it would be 18");
    FAILS(context, HBP_E_INVALID, "anchor is NULL", hbp_cost_anchor(context, prior, NULL, &cost));
    FAILS(context, HBP_E_INVALID, "prior is NULL", hbp_cost_anchor(context, NULL, &kept, &cost));
}
END_TEST

START_TEST_IN_CONTEXT(texts_are_read)
{
    hbp_anchor a = {.struct_size = sizeof a};
    OK(context, hbp_anchor_read(context,
                                "tokens_per_s_per_gpu=5762.5,sequence_tokens=8K,sp=2,recompute=4,"
                                "sequences_per_micro_batch=3,micro_batches_per_step=5",
                                &a));
    ck_assert_double_eq(a.tokens_per_s_per_gpu, 5762.5);
    ck_assert_int_eq(a.sequence_tokens, 8192);
    ck_assert_int_eq(a.sp * 1000 + a.recompute * 100, 2400);
    ck_assert_int_eq(a.sequences_per_micro_batch * 10 + a.micro_batches_per_step, 35);
    FAILS(context, HBP_E_INVALID, "anchor 'sp=1.5': sp is 1.5; it must be a whole number in 0..2147483647",
          hbp_anchor_read(context, "sp=1.5", &a));
    FAILS(context, HBP_E_INVALID, "anchor 'sp=1e30': sp is 1e+30; it must be a whole number",
          hbp_anchor_read(context, "sp=1e30", &a));
    FAILS(context, HBP_E_INVALID,
          "there is no field 'micro_batch_size'; the nearest is 'sequences_per_micro_batch'",
          hbp_anchor_read(context, "micro_batch_size=2", &a));
    FAILS(context, HBP_E_INVALID, "'' is not FIELD=VALUE", hbp_anchor_read(context, "", &a));
    FAILS(context, HBP_E_INVALID, "text is NULL", hbp_anchor_read(context, NULL, &a));
}
END_TEST

TEST_MAIN("anchor", one_run_is_met, bad_anchors_are_named, texts_are_read)
