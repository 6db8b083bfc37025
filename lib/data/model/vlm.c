/* Checks the fields of an encoder and a projector and counts their parameters and operations (docs: cost
 * model, "Vision layers"). */
#include "data/model/vlm.h"

#include <stdio.h>

#include "base/checked.h"
#include "base/options.h"

static hbp_status complete_fields(hbp_context *context, hbp_vlm_fields *f, const hbp_model *language)
{
    if (!f->vision_head_dim) {
        if (f->vision_hidden % f->vision_heads)
            return hbp__fail(context, HBP_E_INVALID,
                             "vision_head_dim is 0 and vision_hidden, %d, is no multiple of vision_heads, "
                             "%d; set vision_head_dim",
                             (int)f->vision_hidden, (int)f->vision_heads);
        f->vision_head_dim = f->vision_hidden / f->vision_heads;
    }
    if (!f->attention_tokens)
        f->attention_tokens = f->tokens_per_unit;
    if (!f->projector_hidden)
        f->projector_hidden = language->fields.hidden;
    return HBP_OK;
}

hbp_model_fields hbp__vlm_encoder(const hbp_vlm_fields *f, int32_t tensor_parallel)
{
    int32_t heads = (int32_t)hbp__round_up(f->vision_heads, tensor_parallel);
    return (hbp_model_fields){
        .struct_size = sizeof(hbp_model_fields),
        .mlp = f->vision_mlp,
        .layers = f->vision_layers,
        .hidden = f->vision_hidden,
        .ffn = f->vision_ffn,
        .heads = heads,
        .kv_heads = heads,
        .head_dim = f->vision_head_dim,
        .qkv_bias = 1,
    };
}

int64_t hbp__vlm_patch_parameters(const hbp_vlm_fields *f)
{
    return ((int64_t)f->patch_values + 1 + f->tokens_per_unit) * f->vision_hidden;
}

int64_t hbp__vlm_projector_parameters(const hbp_vlm_fields *f, int32_t language_hidden)
{
    return 2 * (int64_t)f->projector_input + ((int64_t)f->projector_input + 1) * f->projector_hidden +
           ((int64_t)f->projector_hidden + 1) * language_hidden;
}

static hbp_status summarise_vlm(hbp_context *context, hbp_vlm *vlm)
{
    const hbp_vlm_fields *f = &vlm->fields;
    const hbp_model *language = &vlm->language;
    hbp_vlm_summary *s = &vlm->summary;
    s->struct_size = sizeof *s;
    s->layers = f->vision_layers + language->fields.layers + HBP__VLM_ROWS;
    s->projector_parameters = hbp__vlm_projector_parameters(f, language->fields.hidden);
    s->language_parameters = language->summary.parameters;

    hbp_model_fields encoder = hbp__vlm_encoder(f, 1);
    hbp__layer_shape shape;
    int64_t layer;
    int64_t all;
    int64_t states;
    if (!hbp__model_layer(&encoder, 0, &shape) ||
        !hbp__add_i64(shape.attention_parameters, shape.mlp_parameters, &layer) ||
        !hbp__mul_i64(layer, f->vision_layers, &s->vision_parameters) ||
        !hbp__add_i64(s->vision_parameters, hbp__vlm_patch_parameters(f), &s->vision_parameters) ||
        !hbp__add_i64(s->vision_parameters, s->projector_parameters, &all) ||
        !hbp__add_i64(all, s->language_parameters, &all) || !hbp__mul_i64(all, 18, &states))
        return hbp__fail(context, HBP_E_OVERFLOW,
                         "model %s has too many parameters to count their bytes in 64 bits", vlm->name);

    double tokens = f->tokens_per_unit;
    double projector =
        (double)f->projector_hidden * ((double)f->projector_input + (double)language->fields.hidden);
    /* No mask: every token attends every other, twice what a causal document does. */
    double attention = 2 * shape.attention_flops * f->attention_tokens;
    s->vision_flops_per_unit = tokens * (2 * (double)f->patch_values * f->vision_hidden +
                                         f->vision_layers * (2 * (double)layer + attention)) +
                               2 * projector * f->projected_per_unit;
    s->language_flops_per_token = language->summary.forward_flops_per_token;
    s->language_flops_per_token_squared = language->summary.forward_flops_per_token_squared;
    return HBP_OK;
}

hbp_status hbp__vlm_make(hbp_context *context, const char *name, const hbp_vlm_fields *fields,
                         const hbp_model *language, hbp_vlm **out)
{
    *out = NULL;
    hbp_vlm made = {.memory = context->memory, .language = *language};
    snprintf(made.name, sizeof made.name, "%s", name);
    HBP__TRY(hbp__options_read(context, &made.fields, sizeof made.fields, fields, "hbp_vlm_fields"));
    HBP__TRY(complete_fields(context, &made.fields, language));
    HBP__TRY(summarise_vlm(context, &made));
    hbp_vlm *vlm = hbp__new(&context->memory, 1, sizeof *vlm);
    if (!vlm)
        return hbp__fail_memory(context, "a vision-language model");
    *vlm = made;
    *out = vlm;
    return HBP_OK;
}

hbp_status hbp_vlm_create(hbp_context *context, const hbp_vlm_fields *fields, const hbp_model *language,
                          hbp_vlm **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, fields, "fields"));
    HBP__TRY(hbp__require(context, language, "language"));
    return hbp__vlm_make(context, "custom", fields, language, out);
}

void hbp_vlm_free(hbp_vlm *vlm)
{
    if (!vlm)
        return;
    hbp__memory memory = vlm->memory;
    hbp__delete(&memory, vlm);
}

const char *hbp_vlm_get_name(const hbp_vlm *vlm)
{
    return vlm ? vlm->name : NULL;
}

const hbp_model *hbp_vlm_get_language(const hbp_vlm *vlm)
{
    return vlm ? &vlm->language : NULL;
}

hbp_status hbp_vlm_get_fields(hbp_context *context, const hbp_vlm *vlm, hbp_vlm_fields *fields)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, vlm, "vlm"));
    return hbp__struct_write(context, fields, &vlm->fields, sizeof vlm->fields, "fields");
}

hbp_status hbp_vlm_get_summary(hbp_context *context, const hbp_vlm *vlm, hbp_vlm_summary *summary)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, vlm, "vlm"));
    return hbp__struct_write(context, summary, &vlm->summary, sizeof vlm->summary, "summary");
}
