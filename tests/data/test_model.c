#include "failing.h"

#include "data/model/model.h"
#include "keep.h"

static hbp_model_fields small(void)
{
    hbp_model_fields f = {.struct_size = sizeof f};
    f.layers = 3;
    f.hidden = 24;
    f.ffn = 50;
    f.heads = 6;
    f.kv_heads = 2;
    f.vocab = 100;
    return f;
}

static hbp_model *make(hbp_context *context, const hbp_model_fields *fields)
{
    hbp_model *model = NULL;
    OK(context, hbp_model_create(context, fields, &model));
    ck_assert_str_eq(hbp_model_get_name(model), "custom");
    return model;
}

static hbp_model_summary summary_of(hbp_context *context, const hbp_model_fields *fields)
{
    hbp_model_summary s = {.struct_size = sizeof s};
    hbp_model *model = make(context, fields);
    OK(context, hbp_model_get_summary(context, model, &s));
    hbp_model_free(model);
    return s;
}

START_TEST_IN_CONTEXT(a_dense_model_by_hand)
{
    hbp_model_fields f = small();
    /* q and out 24 x 24, k and v 24 x 8, three matrices of 24 x 50, two norms of 24. */
    int64_t layer = 2 * 576 + 2 * 192 + 3 * 1200 + 48;
    hbp_model_summary s = summary_of(context, &f);
    ck_assert_int_eq(s.parameters, 3 * layer + 24 + 2 * 2400);
    ck_assert_int_eq(s.active_parameters, s.parameters);
    ck_assert_int_eq(s.matmul_parameters, s.parameters - 2400);
    ck_assert_int_eq(s.activation_bytes, 8 * 24 + 4 * 4 * 8 + 4 * 6 + 6 * 50);
    ck_assert_int_eq(s.recomputed_bytes, 48);
    ck_assert_int_eq(s.logits_bytes, 1000);
    ck_assert_double_eq(s.forward_flops_per_token, 2. * (double)s.matmul_parameters);
    ck_assert_double_eq(s.forward_flops_per_token_squared, 2. * 3 * 24);
    ck_assert_int_eq(s.max_sp, 6);
    f.tied_embeddings = 1;
    ck_assert_int_eq(summary_of(context, &f).parameters, s.parameters - 2400);
    ck_assert_int_eq(summary_of(context, &f).matmul_parameters, s.matmul_parameters);
    f.learned_positions = 10;
    ck_assert_int_eq(summary_of(context, &f).parameters, s.parameters - 2400 + 240);
    ck_assert_int_eq(summary_of(context, &f).matmul_parameters, s.matmul_parameters);
    f.qkv_bias = 1;
    ck_assert_int_eq(summary_of(context, &f).parameters, s.parameters - 2400 + 240 + 3 * (24 + 16));
    f = small();
    f.mlp = HBP_MLP_PLAIN;
    ck_assert_int_eq(summary_of(context, &f).parameters, s.parameters - 3 * 1200);
    ck_assert_int_eq(summary_of(context, &f).activation_bytes, s.activation_bytes - 100);
}
END_TEST

START_TEST_IN_CONTEXT(experts_by_hand)
{
    hbp_model_fields f = small();
    f.experts = 8;
    f.experts_active = 2;
    f.experts_shared = 1;
    f.moe_ffn = 10;
    f.dense_layers = 1;
    hbp_model_summary s = summary_of(context, &f);
    int64_t attention = 2 * 576 + 2 * 192 + 48, dense = 3600, expert = 720, router = 192;
    ck_assert_int_eq(s.parameters, 3 * attention + dense + 2 * (9 * expert + router) + 24 + 4800);
    ck_assert_int_eq(s.active_parameters, 3 * attention + dense + 2 * (3 * expert + router) + 24 + 4800);
    ck_assert_int_eq(s.matmul_parameters, s.active_parameters - 2400);
    int64_t kept = 8 * 24 + 4 * 4 * 8 + 4 * 6;
    int64_t sparse = kept + 2 * (4 * 24 + 60) + 60;
    ck_assert_int_eq(s.activation_bytes, (2 * sparse + kept + 300 + 1) / 3);
}
END_TEST

START_TEST_IN_CONTEXT(latent_attention_by_hand)
{
    hbp_model_fields f = small();
    f.kv_heads = 0;
    f.mla_q_lora = 12;
    f.mla_kv_lora = 7;
    f.mla_nope_dim = 5;
    f.mla_rope_dim = 3;
    f.mla_v_dim = 5;
    hbp_model_summary s = summary_of(context, &f);
    int64_t query = 24 * 12 + 12 + 12 * 6 * 8;
    int64_t kv = 24 * (7 + 3) + 7 + 7 * 6 * (5 + 5);
    ck_assert_int_eq(s.parameters, 3 * (query + kv + 6 * 5 * 24 + 3600 + 48) + 24 + 4800);
    ck_assert_int_eq(s.activation_bytes,
                     8 * 24 + 2 * (2 * 12 + 2 * 7 + 3 + 6 * (2 * 8 + 5) + 6 * 5) + 4 * 6 + 300);
    ck_assert_double_eq(s.forward_flops_per_token_squared, 2. * 3 * 6 * 6.5);
    f.mla_q_lora = 0;
    ck_assert_int_eq(summary_of(context, &f).parameters, s.parameters - 3 * (query - 24 * 6 * 8));
    hbp_model *model = keep(make(context, &f));
    for (int32_t sp = 1; sp <= 12; sp++)
        ck_assert_int_eq(hbp_model_is_sp_legal(model, sp), 6 % sp == 0);
}
END_TEST

START_TEST_IN_CONTEXT(defaults_are_filled_in)
{
    hbp_model_fields f = small();
    f.kv_heads = 0;
    hbp_model *model = keep(make(context, &f));
    hbp_model_fields got = {.struct_size = sizeof got};
    OK(context, hbp_model_get_fields(context, model, &got));
    ck_assert_int_eq(got.kv_heads, 6);
    ck_assert_int_eq(got.head_dim, 4);
    ck_assert_uint_eq(got.struct_size, sizeof got);
    f = small();
    f.kv_heads = f.head_dim = 0;
    f.mla_kv_lora = f.mla_nope_dim = f.mla_v_dim = 8;
    f.mla_rope_dim = 4;
    model = keep(make(context, &f));
    OK(context, hbp_model_get_fields(context, model, &got));
    ck_assert_int_eq(got.kv_heads, 6);
    ck_assert_int_eq(got.head_dim, 10);
}
END_TEST

START_TEST_IN_CONTEXT(legal_degrees_by_definition)
{
    for (int32_t heads = 1; heads <= 48; heads++)
        for (int32_t kv = 1; kv <= heads; kv++) {
            if (heads % kv)
                continue;
            hbp_model_fields f = small();
            f.heads = heads;
            f.kv_heads = kv;
            f.head_dim = 8;
            hbp_model *model = make(context, &f);
            int32_t largest = 0;
            for (int32_t sp = -1; sp <= 50; sp++) {
                int legal = sp > 0 && heads % sp == 0 && (kv % sp == 0 || sp % kv == 0);
                ck_assert_int_eq(hbp_model_is_sp_legal(model, sp), legal);
                if (legal)
                    largest = sp;
            }
            ck_assert_int_eq(model->summary.max_sp, largest);
            hbp_model_free(model);
        }
    ck_assert_int_eq(hbp_model_is_sp_legal(NULL, 1), 0);
}
END_TEST

#define WRONG(change, status, text)                                                                          \
    do {                                                                                                     \
        hbp_model_fields f = small();                                                                        \
        change;                                                                                              \
        hbp_model *model = (hbp_model *)&f;                                                                  \
        FAILS(context, status, text, hbp_model_create(context, &f, &model));                                 \
        ck_assert_ptr_null(model);                                                                           \
    } while (0)

START_TEST_IN_CONTEXT(wrong_fields_are_named)
{
    WRONG(f.mlp = 2, HBP_E_INVALID, "`mlp` is 2; it must be in 0..1");
    WRONG(f.layers = 0, HBP_E_INVALID, "`layers` is 0; it must be in 1..16777216");
    WRONG(f.hidden = -5, HBP_E_INVALID, "`hidden` is -5; it must be in 1..16777216");
    WRONG(f.vocab = 0, HBP_E_INVALID, "`vocab` is 0; it must be in 1..16777216");
    WRONG(f.heads = INT32_MAX, HBP_E_INVALID, "`heads` is 2147483647; it must be in 1..16777216");
    WRONG(f.ffn = 0, HBP_E_INVALID, "ffn is 0 and there are dense layers");
    WRONG(f.kv_heads = 4, HBP_E_INVALID, "kv_heads is 4, which does not divide heads, 6");
    WRONG(f.hidden = 25, HBP_E_INVALID, "hidden, 25, is no multiple of heads, 6; set head_dim");
    WRONG(f.moe_ffn = 4, HBP_E_INVALID, "experts is 0 while");
    WRONG(f.experts = 4, HBP_E_INVALID, "experts_active is 0; it must be in 1..4");
    WRONG((f.experts = 4, f.experts_active = 5), HBP_E_INVALID, "experts_active is 5; it must be in 1..4");
    WRONG((f.experts = 4, f.experts_active = 2), HBP_E_INVALID, "moe_ffn is 0 with 4 experts");
    WRONG((f.experts = 4, f.experts_active = 2, f.moe_ffn = 1, f.dense_layers = 4), HBP_E_INVALID,
          "dense_layers is 4; there are 3 layers");
    WRONG((f.experts = 4, f.experts_active = 2, f.moe_ffn = 1, f.dense_layers = 1, f.ffn = 0), HBP_E_INVALID,
          "ffn is 0 and there are dense layers");
    WRONG(f.mla_v_dim = 4, HBP_E_INVALID, "mla_kv_lora is 0 while");
    WRONG(f.mla_kv_lora = 4, HBP_E_INVALID, "mla_nope_dim and mla_rope_dim are 0");
    WRONG((f.mla_kv_lora = 4, f.mla_rope_dim = 4), HBP_E_INVALID, "mla_v_dim is 0");
    WRONG((f.mla_kv_lora = 4, f.mla_rope_dim = 4, f.mla_v_dim = 4), HBP_E_INVALID,
          "kv_heads is 2; with mla_kv_lora it must be 0 or equal heads, 6");
    WRONG(f.struct_size = 3, HBP_E_INVALID, "struct_size is 3");
}
END_TEST

START_TEST_IN_CONTEXT(sums_past_64_bits_are_refused)
{
    int32_t most = 1 << 24;
    WRONG((f.layers = f.hidden = f.ffn = most, f.head_dim = 1), HBP_E_OVERFLOW, "too many parameters");
    WRONG((f.layers = f.hidden = f.heads = f.head_dim = f.kv_heads = most), HBP_E_OVERFLOW,
          "too many parameters");
    WRONG((f.head_dim = 1, f.layers = f.hidden = f.experts = f.experts_active = f.moe_ffn = most),
          HBP_E_OVERFLOW, "too many parameters");
}
END_TEST

START_TEST(missing_arguments_are_named)
{
    hbp_context *context = test_context();
    hbp_model_fields f = small();
    hbp_model *model = make(context, &f);
    hbp_model_summary s = {.struct_size = sizeof s};
    hbp_model *none = model;
    ck_assert_int_eq(hbp_model_create(NULL, &f, &none), HBP_E_INVALID);
    ck_assert_ptr_null(none);
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_model_create(context, &f, NULL));
    FAILS(context, HBP_E_INVALID, "model is NULL", hbp_model_get_fields(context, NULL, &f));
    FAILS(context, HBP_E_INVALID, "fields is NULL", hbp_model_get_fields(context, model, NULL));
    FAILS(context, HBP_E_INVALID, "model is NULL", hbp_model_get_summary(context, NULL, &s));
    FAILS(context, HBP_E_INVALID, "summary is NULL", hbp_model_get_summary(context, model, NULL));
    none = model;
    FAILS(context, HBP_E_INVALID, "fields is NULL", hbp_model_create(context, NULL, &none));
    ck_assert_ptr_null(none);
    ck_assert_ptr_null(hbp_model_get_name(NULL));
    hbp_model_free(NULL);
    hbp_context_free(context);
    ck_assert_str_eq(hbp_model_get_name(model), "custom"); /* outlives its context */
    hbp_model_free(model);
}
END_TEST

START_TEST_IN_CONTEXT(older_callers_see_their_part)
{
    hbp_model_fields f = small();
    hbp_model *model = keep(make(context, &f));
    hbp_model_summary s;
    memset(&s, 0x55, sizeof s);
    s.struct_size = 16;
    OK(context, hbp_model_get_summary(context, model, &s));
    ck_assert_uint_eq(s.struct_size, 16);
    ck_assert_int_eq(s.parameters, model->summary.parameters);
    ck_assert_int_eq(s.active_parameters, 0x5555555555555555);
}
END_TEST

static hbp_status create_once(hbp_context *context, void *user)
{
    hbp_model *model;
    hbp_status status = hbp_model_create(context, user, &model);
    ck_assert((status == HBP_OK) == (model != NULL));
    hbp_model_free(model);
    return status;
}

START_TEST(failed_allocations_leave_nothing)
{
    hbp_model_fields f = small();
    failing_sweep(create_once, &f);
}
END_TEST

/* Layers, last norm and head make up what a token meets; the two parts make up what a layer keeps. */
START_TEST_IN_CONTEXT(parts_of_a_layer_sum_to_the_model)
{
    for (int64_t i = 0; hbp_preset_get_name("model", i); i++) {
        hbp_model *model = NULL;
        OK(context, hbp_model_create_preset(context, hbp_preset_get_name("model", i), &model));
        const hbp_model_fields *f = &model->fields;
        hbp__layer_shape dense = {0}, sparse = {0};
        int64_t dense_layers = f->experts ? f->dense_layers : f->layers;
        int64_t sparse_layers = f->layers - dense_layers;
        if (dense_layers)
            ck_assert_int_eq(hbp__model_layer(f, 0, &dense), 1);
        if (sparse_layers)
            ck_assert_int_eq(hbp__model_layer(f, 1, &sparse), 1);
        int64_t active = dense_layers * (dense.attention_parameters + dense.mlp_active_parameters) +
                         sparse_layers * (sparse.attention_parameters + sparse.mlp_active_parameters);
        int64_t all = dense_layers * (dense.attention_parameters + dense.mlp_parameters) +
                      sparse_layers * (sparse.attention_parameters + sparse.mlp_parameters);
        int64_t bytes = dense_layers * (dense.attention_bytes + dense.mlp_bytes) +
                        sparse_layers * (sparse.attention_bytes + sparse.mlp_bytes);
        int64_t head = (int64_t)f->vocab * f->hidden;
        ck_assert_int_eq(active + f->hidden + head, model->summary.matmul_parameters);
        ck_assert_int_eq(all + f->hidden + (f->tied_embeddings ? 1 : 2) * head +
                             (int64_t)f->learned_positions * f->hidden,
                         model->summary.parameters);
        ck_assert_int_eq((bytes + f->layers / 2) / f->layers, model->summary.activation_bytes);
        ck_assert_double_eq(f->layers * (dense_layers ? dense : sparse).attention_flops,
                            model->summary.forward_flops_per_token_squared);
        hbp_model_free(model);
    }
    hbp_model_fields f = small();
    hbp__layer_shape shape;
    f.experts = f.experts_active = f.moe_ffn = f.hidden = 1 << 24;
    ck_assert_int_eq(hbp__model_layer(&f, 1, &shape), 0);
}
END_TEST

TEST_MAIN("model", a_dense_model_by_hand, parts_of_a_layer_sum_to_the_model, experts_by_hand,
          latent_attention_by_hand, defaults_are_filled_in, legal_degrees_by_definition,
          wrong_fields_are_named, sums_past_64_bits_are_refused, missing_arguments_are_named,
          older_callers_see_their_part, failed_allocations_leave_nothing)
