/* Checks the fields of a transformer and counts its parameters, bytes and operations (docs: cost model). */
#include "data/model/model.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/options.h"

/* A sum of products that remembers whether it overflowed. */
typedef struct tally {
    int64_t sum;
    int overflow;
} tally;

static void tally_add(tally *t, int64_t a, int64_t b)
{
    int64_t product;
    if (!hbp__mul_i64(a, b, &product) || !hbp__add_i64(t->sum, product, &t->sum))
        t->overflow = 1;
}

/* times x (part), for sums of layers. */
static void add_part(tally *t, int64_t times, const tally *part)
{
    tally_add(t, times, part->sum);
    t->overflow |= part->overflow;
}

/* Fills in kv_heads and head_dim. */
static hbp_status complete_attention(hbp_context *context, hbp_model_fields *f)
{
    if (f->mla_kv_lora > 0) {
        if (f->mla_nope_dim + f->mla_rope_dim == 0)
            return hbp__fail(context, HBP_E_INVALID,
                             "mla_nope_dim and mla_rope_dim are 0 with mla_kv_lora %d", (int)f->mla_kv_lora);
        if (f->mla_v_dim == 0)
            return hbp__fail(context, HBP_E_INVALID, "mla_v_dim is 0 with mla_kv_lora %d",
                             (int)f->mla_kv_lora);
        if (f->kv_heads && f->kv_heads != f->heads)
            return hbp__fail(context, HBP_E_INVALID,
                             "kv_heads is %d; with mla_kv_lora it must be 0 or equal heads, %d",
                             (int)f->kv_heads, (int)f->heads);
        f->kv_heads = f->heads;
        if (!f->head_dim)
            f->head_dim = (f->mla_nope_dim + f->mla_rope_dim + f->mla_v_dim + 1) / 2;
        return HBP_OK;
    }
    if (f->mla_q_lora || f->mla_nope_dim || f->mla_rope_dim || f->mla_v_dim)
        return hbp__fail(context, HBP_E_INVALID, "mla_kv_lora is 0 while another mla_ field is set");
    if (!f->kv_heads)
        f->kv_heads = f->heads;
    if (f->heads % f->kv_heads)
        return hbp__fail(context, HBP_E_INVALID, "kv_heads is %d, which does not divide heads, %d",
                         (int)f->kv_heads, (int)f->heads);
    if (!f->head_dim) {
        if (f->hidden % f->heads)
            return hbp__fail(context, HBP_E_INVALID,
                             "head_dim is 0 and hidden, %d, is no multiple of heads, %d; set head_dim",
                             (int)f->hidden, (int)f->heads);
        f->head_dim = f->hidden / f->heads;
    }
    return HBP_OK;
}

static hbp_status check_mlp(hbp_context *context, const hbp_model_fields *f)
{
    if (!f->experts) {
        if (f->dense_layers || f->experts_active || f->experts_shared || f->moe_ffn)
            return hbp__fail(
                context, HBP_E_INVALID,
                "experts is 0 while dense_layers, experts_active, experts_shared or moe_ffn is set");
    } else {
        if (f->experts_active < 1 || f->experts_active > f->experts)
            return hbp__fail(context, HBP_E_INVALID, "experts_active is %d; it must be in 1..%d",
                             (int)f->experts_active, (int)f->experts);
        if (!f->moe_ffn)
            return hbp__fail(context, HBP_E_INVALID, "moe_ffn is 0 with %d experts", (int)f->experts);
        if (f->dense_layers > f->layers)
            return hbp__fail(context, HBP_E_INVALID, "dense_layers is %d; there are %d layers",
                             (int)f->dense_layers, (int)f->layers);
    }
    if (!f->ffn && (!f->experts || f->dense_layers))
        return hbp__fail(context, HBP_E_INVALID, "ffn is 0 and there are dense layers");
    return HBP_OK;
}

/* Parameters of one layer's attention with the layer's two norms. */
static tally attention_parameters(const hbp_model_fields *f)
{
    int64_t h = f->hidden, a = f->heads, d = f->head_dim;
    tally t = {0, 0};
    if (f->mla_kv_lora > 0) {
        int64_t query = (int64_t)f->mla_nope_dim + f->mla_rope_dim;
        if (f->mla_q_lora > 0) {
            tally_add(&t, h, f->mla_q_lora);
            tally_add(&t, f->mla_q_lora, a * query + 1);
        } else {
            tally_add(&t, h, a * query);
        }
        tally_add(&t, h, (int64_t)f->mla_kv_lora + f->mla_rope_dim);
        tally_add(&t, f->mla_kv_lora, a * ((int64_t)f->mla_nope_dim + f->mla_v_dim) + 1);
        tally_add(&t, a * f->mla_v_dim, h);
    } else {
        tally_add(&t, 2 * h, a * d);
        tally_add(&t, 2 * h, f->kv_heads * d);
        if (f->qkv_bias)
            tally_add(&t, a + 2 * (int64_t)f->kv_heads, d);
    }
    tally_add(&t, 2, h);
    return t;
}

/* Parameters of one gated or plain MLP of width `width`. */
static tally mlp_parameters(const hbp_model_fields *f, int64_t width)
{
    tally t = {0, 0};
    tally_add(&t, (f->mlp == HBP_MLP_GATED ? 3 : 2) * (int64_t)f->hidden, width);
    return t;
}

/* Parameters of a layer's mixture when a token meets `experts` routed experts. */
static tally sparse_parameters(const hbp_model_fields *f, int64_t experts)
{
    tally sparse = {0, 0};
    tally expert = mlp_parameters(f, f->moe_ffn);
    add_part(&sparse, experts + f->experts_shared, &expert);
    tally_add(&sparse, f->hidden, f->experts); /* the router */
    return sparse;
}

/* Parameters of all layers when a token meets `experts` routed experts. */
static tally layer_parameters(const hbp_model_fields *f, int64_t experts)
{
    tally all = {0, 0};
    tally attention = attention_parameters(f);
    tally dense = mlp_parameters(f, f->ffn);
    add_part(&all, f->layers, &attention);
    add_part(&all, f->experts ? f->dense_layers : f->layers, &dense);
    if (f->experts) {
        tally sparse = sparse_parameters(f, experts);
        add_part(&all, f->layers - f->dense_layers, &sparse);
    }
    tally_add(&all, f->hidden, 1); /* the last norm */
    return all;
}

/* Bytes kept per token of one layer, bf16 with flash attention and no dropout: the equation of docs: cost
 * model, which is Korthikanti et al. (2022), section 4.1, less the dropout masks and the attention scores.
 * Attention keeps its input and the normed input, 4h, and so does the MLP. */
static tally attention_activation(const hbp_model_fields *f)
{
    int64_t a = f->heads;
    tally t = {0, 0};
    tally_add(&t, 4, f->hidden);
    if (f->mla_kv_lora > 0) {
        int64_t query = (int64_t)f->mla_nope_dim + f->mla_rope_dim;
        tally_add(&t, 4, (int64_t)f->mla_q_lora + f->mla_kv_lora);
        tally_add(&t, 2, f->mla_rope_dim);
        tally_add(&t, 4 * a, query + f->mla_v_dim);
    } else {
        tally_add(&t, 4 * (int64_t)f->head_dim, a + f->kv_heads);
    }
    tally_add(&t, 4, a);
    return t;
}

static tally mlp_activation(const hbp_model_fields *f, int sparse)
{
    int64_t h = f->hidden, per_width = f->mlp == HBP_MLP_GATED ? 6 : 4;
    tally t = {0, 0};
    tally_add(&t, 4, h);
    if (sparse) {
        tally_add(&t, f->experts_active, 4 * h + per_width * f->moe_ffn);
        tally_add(&t, (int64_t)f->experts_shared * f->moe_ffn, per_width);
    } else {
        tally_add(&t, per_width, f->ffn);
    }
    return t;
}

static tally layer_activation(const hbp_model_fields *f, int sparse)
{
    tally t = attention_activation(f);
    tally mlp = mlp_activation(f, sparse);
    add_part(&t, 1, &mlp);
    return t;
}

static double attention_head_dim(const hbp_model_fields *f)
{
    return f->mla_kv_lora > 0 ? ((double)f->mla_nope_dim + f->mla_rope_dim + f->mla_v_dim) / 2 : f->head_dim;
}

int hbp__model_layer(const hbp_model_fields *f, int sparse, hbp__layer_shape *shape)
{
    tally attention = attention_parameters(f);
    tally mlp = sparse ? sparse_parameters(f, f->experts) : mlp_parameters(f, f->ffn);
    tally active = sparse ? sparse_parameters(f, f->experts_active) : mlp;
    tally attention_kept = attention_activation(f);
    tally mlp_kept = mlp_activation(f, sparse);
    *shape = (hbp__layer_shape){
        .attention_parameters = attention.sum,
        .mlp_parameters = mlp.sum,
        .mlp_active_parameters = active.sum,
        .attention_bytes = attention_kept.sum,
        .mlp_bytes = mlp_kept.sum,
        .attention_flops = 2 * (double)f->heads * attention_head_dim(f),
    };
    return !(attention.overflow || mlp.overflow || active.overflow || attention_kept.overflow ||
             mlp_kept.overflow);
}

/* Of so many matrices of K x N. */
static double sides(double count, double rows, double columns)
{
    return count * (rows + columns);
}

static double attention_sides(const hbp_model_fields *f)
{
    const double h = f->hidden, a = f->heads, query = (double)f->mla_nope_dim + f->mla_rope_dim;
    if (f->mla_kv_lora <= 0)
        return sides(2, h, a * f->head_dim) + sides(2, h, (double)f->kv_heads * f->head_dim);
    return (f->mla_q_lora > 0 ? sides(1, h, f->mla_q_lora) + sides(1, f->mla_q_lora, a * query)
                              : sides(1, h, a * query)) +
           sides(1, h, (double)f->mla_kv_lora + f->mla_rope_dim) +
           sides(1, f->mla_kv_lora, a * ((double)f->mla_nope_dim + f->mla_v_dim)) +
           sides(1, a * f->mla_v_dim, h);
}

double hbp__model_product_sides(const hbp_model_fields *f)
{
    const int32_t matrices = f->mlp == HBP_MLP_GATED ? 3 : 2;
    const int32_t dense_layers = f->experts ? f->dense_layers : f->layers;
    const double experts = (double)f->experts_active + f->experts_shared;
    return f->layers * attention_sides(f) + dense_layers * sides(matrices, f->hidden, f->ffn) +
           (f->layers - dense_layers) *
               (sides(matrices * experts, f->hidden, f->moe_ffn) + sides(1, f->hidden, f->experts)) +
           sides(1, f->vocab, f->hidden);
}

static int64_t largest_sp(const hbp_model *model)
{
    int32_t sp = model->fields.heads;
    while (!hbp_model_is_sp_legal(model, sp))
        sp--;
    return sp;
}

static hbp_status summarise_model(hbp_context *context, hbp_model *model)
{
    const hbp_model_fields *f = &model->fields;
    hbp_model_summary *s = &model->summary;
    s->struct_size = sizeof *s;
    tally head = {0, 0};
    tally_add(&head, f->vocab, f->hidden);
    tally embeddings = head;
    tally_add(&embeddings, f->learned_positions, f->hidden);
    if (!f->tied_embeddings)
        add_part(&embeddings, 1, &head);
    tally all = layer_parameters(f, f->experts);
    tally active = layer_parameters(f, f->experts_active);
    tally matmul = active;
    add_part(&all, 1, &embeddings);
    add_part(&active, 1, &embeddings);
    add_part(&matmul, 1, &head);

    tally activation = {0, 0};
    tally dense = layer_activation(f, 0);
    tally sparse = layer_activation(f, 1);
    int32_t dense_layers = f->experts ? f->dense_layers : f->layers;
    add_part(&activation, dense_layers, &dense);
    add_part(&activation, f->layers - dense_layers, &sparse);
    /* `all` is the largest count; times 18 bytes it must still be a number of bytes. */
    tally states = {0, 0};
    add_part(&states, 18, &all);
    if (states.overflow || activation.overflow)
        return hbp__fail(context, HBP_E_OVERFLOW,
                         "model %s has too many parameters to count their bytes in 64 bits", model->name);
    s->parameters = all.sum;
    s->active_parameters = active.sum;
    s->matmul_parameters = matmul.sum;
    s->activation_bytes = (activation.sum + f->layers / 2) / f->layers;
    s->recomputed_bytes = 2 * (int64_t)f->hidden;
    /* bf16 logits, their fp32 copy, and its gradient. */
    s->logits_bytes = HBP__LOGITS_BYTES * (int64_t)f->vocab;
    s->forward_flops_per_token = 2 * (double)matmul.sum;
    s->forward_flops_per_token_squared = 2 * (double)f->layers * f->heads * attention_head_dim(f);
    s->max_sp = (int32_t)largest_sp(model);
    return HBP_OK;
}

/* Says all that lacks at once, where it is more than one field. */
static hbp_status name_missing(hbp_context *context, const hbp_model_fields *f, hbp_status status)
{
    const struct {
        int missing;
        const char *example; /* of Llama 3.1 8B */
    } fields[] = {{!f->layers, "layers=32"},
                  {!f->hidden, "hidden=4096"},
                  {!f->ffn && !f->experts, "ffn=14336"},
                  {!f->heads, "heads=32"},
                  {!f->vocab, "vocab=128256"}};
    char text[128];
    size_t at = 0;
    int count = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].missing)
            at +=
                (size_t)snprintf(text + at, sizeof text - at, "%s%s", count++ ? "," : "", fields[i].example);
    if (count < 2)
        return status;
    return hbp__fail(context, HBP_E_INVALID, "%d fields are 0 or not given; set them, for example %s", count,
                     text);
}

hbp_status hbp__model_make(hbp_context *context, const char *name, const hbp_model_fields *fields,
                           hbp_model **out)
{
    *out = NULL;
    hbp_model made = {.memory = context->memory};
    snprintf(made.name, sizeof made.name, "%s", name);
    hbp_status status =
        hbp__options_read(context, &made.fields, sizeof made.fields, fields, "hbp_model_fields");
    if (status == HBP_E_INVALID && made.fields.struct_size)
        status = name_missing(context, &made.fields, status);
    HBP__TRY(status);
    HBP__TRY(complete_attention(context, &made.fields));
    HBP__TRY(check_mlp(context, &made.fields));
    HBP__TRY(summarise_model(context, &made));
    hbp_model *model = hbp__new(&context->memory, 1, sizeof *model);
    if (!model)
        return hbp__fail_memory(context, "a model");
    *model = made;
    *out = model;
    return HBP_OK;
}

hbp_status hbp_model_create(hbp_context *context, const hbp_model_fields *fields, hbp_model **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, fields, "fields"));
    return hbp__model_make(context, "custom", fields, out);
}

void hbp_model_free(hbp_model *model)
{
    if (!model)
        return;
    hbp__memory memory = model->memory;
    hbp__delete(&memory, model);
}

const char *hbp__model_said(const hbp_model *model)
{
    return model->text[0] ? model->text : model->name;
}

const char *hbp_model_get_name(const hbp_model *model)
{
    return model ? model->name : NULL;
}

hbp_status hbp_model_get_fields(hbp_context *context, const hbp_model *model, hbp_model_fields *fields)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, model, "model"));
    return hbp__struct_write(context, fields, &model->fields, sizeof model->fields, "fields");
}

hbp_status hbp_model_get_summary(hbp_context *context, const hbp_model *model, hbp_model_summary *summary)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, model, "model"));
    return hbp__struct_write(context, summary, &model->summary, sizeof model->summary, "summary");
}

int32_t hbp_model_is_sp_legal(const hbp_model *model, int32_t sp)
{
    return model && sp >= 1 && hbp__heads_allow(model->fields.heads, model->fields.kv_heads, sp);
}
