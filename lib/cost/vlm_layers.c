/* From a vision-language model and a machine to the columns of its layers (docs: cost model, "Vision
 * layers").
 */
#include "cost/vlm_layers.h"

#include <math.h>
#include <stdio.h>

#include "base/options.h"
#include "base/scratch.h"
#include "cost/communication.h"
#include "cost/cost.h"
#include "cost/states.h"
#include "data/model/vlm.h"
#include "data/pipeline/layers.h"
#include "data/stack/stack.h"

/* Activations travel and are kept in bf16. */
#define ACTIVATION_BYTES 2.0

/* Room for "language 16777215". */
#define LAYER_NAME_BYTES 24

/* What the derivation reads. */
typedef struct analysis {
    const hbp_vlm *vlm;
    hbp_vlm_layers_options options; /* defaults filled in */
    hbp__fabric fabric;             /* the GPUs that share a layer */
    hbp_model_fields encoder;       /* heads as tensor parallelism pads or repeats them */
    hbp_model_fields language;
    double state_bytes; /* per parameter of a GPU's share */
    hbp_stack_fields stack;
    double ns_per_flop;      /* of matrix products, on all GPUs that share a layer */
    double ns_per_peak_flop; /* at the peak: what attention divides by its share */
    double ns_per_byte;      /* of memory traffic, likewise */
    double vision_tokens;
} analysis;

/* The columns while they are filled. */
typedef struct table {
    hbp_layer_columns columns;
    int64_t *column; /* the block of all int64 columns */
    int32_t *type;
    char *text;
    const char **name;
} table;

/* One layer. Times of the whole row are those of its two parts, so that recomputing both is recomputing the
 * layer. */
typedef struct row {
    int64_t forward_ns;
    int64_t backward_ns;
    int64_t recompute_ns;
    int64_t attention_ns;
    int64_t mlp_ns;
    int64_t activation_bytes;
    int64_t recomputed_bytes;
    int64_t attention_bytes;
    int64_t mlp_bytes;
    double parameters; /* of all GPUs that share it */
    double cut_bytes;
    int32_t type;
} row;

static hbp_status check_size(hbp_context *context, const char *name, double value, int needed)
{
    if (!isfinite(value) || value < 0 || (needed && value == 0))
        return hbp__fail(context, HBP_E_INVALID, "%s is %g; it must be finite and %s 0", name, value,
                         needed ? "above" : "at least");
    return HBP_OK;
}

static hbp_status read_options(hbp_context *context, const hbp_vlm_layers_options *given,
                               hbp_vlm_layers_options *o)
{
    HBP__TRY(hbp__options_read(context, o, sizeof *o, given, "hbp_vlm_layers_options"));
    HBP__TRY(check_size(context, "vision", o->vision, 1));
    HBP__TRY(check_size(context, "tokens", o->tokens, 1));
    HBP__TRY(check_size(context, "squares", o->squares, 0));
    if (o->tensor_parallel == 0)
        o->tensor_parallel = 1;
    if (o->data_parallel == 0)
        o->data_parallel = 1;
    if (o->zero_stage == HBP_ZERO_DEFAULT)
        o->zero_stage = HBP_ZERO_1;
    if (o->squares == 0)
        o->squares = o->tokens * o->tokens / 4;
    return HBP_OK;
}

/* Tensor parallelism shares heads out: query heads of the language model evenly, key-value heads evenly or
 * each to several GPUs; the encoder's heads are padded, but every GPU has one of its own. */
static int is_legal(const hbp_vlm *vlm, int32_t degree)
{
    return hbp_model_is_sp_legal(&vlm->language, degree) && degree <= vlm->fields.vision_heads;
}

hbp__degrees_text hbp__vlm_say_degrees(const hbp_vlm *vlm, int64_t gpus, int64_t stages)
{
    enum { MOST_DEGREE = 1024 };
    hbp__degrees_text said = {""};
    int32_t last = 0;
    int at = 0;
    for (int32_t degree = 1; degree <= MOST_DEGREE && degree * stages <= gpus; degree++) {
        if (gpus % (degree * stages) || (vlm && !is_legal(vlm, degree)))
            continue;
        if (last && at < (int)sizeof said.text - 24)
            at += snprintf(said.text + at, sizeof said.text - (size_t)at, at ? ", %d" : "%d", (int)last);
        last = degree;
    }
    if (last)
        snprintf(said.text + at, sizeof said.text - (size_t)at, at ? " or %d" : "%d", (int)last);
    return said;
}

hbp_status hbp__vlm_check_degree(hbp_context *context, const hbp_vlm *vlm, const hbp_machine *machine,
                                 int32_t degree)
{
    const hbp_model *language = &vlm->language;
    const int64_t gpus = (int64_t)machine->fields.nodes * machine->fields.gpus_per_node;
    if (degree > gpus)
        return hbp__fail(context, HBP_E_INVALID, "tensor_parallel is %d; machine %s has %lld GPUs",
                         (int)degree, machine->name, (long long)gpus);
    if (is_legal(vlm, degree))
        return HBP_OK;
    const hbp__degrees_text would = hbp__vlm_say_degrees(vlm, gpus, 1);
    if (!hbp_model_is_sp_legal(language, degree))
        return hbp__fail(
            context, HBP_E_INVALID,
            "tensor_parallel is %d, which does not share out the %d heads and %d key-value heads "
            "of %s evenly; %s would do",
            (int)degree, (int)language->fields.heads, (int)language->fields.kv_heads, language->name,
            would.text);
    return hbp__fail(context, HBP_E_INVALID,
                     "tensor_parallel is %d; the encoder of %s has %d heads; %s would do", (int)degree,
                     vlm->name, (int)vlm->fields.vision_heads, would.text);
}

static void read_shapes(analysis *a)
{
    int32_t degree = a->options.tensor_parallel;
    const hbp_machine_fields *machine = &a->fabric.machine->fields;
    a->fabric.ranks = degree;
    if (a->fabric.domain > degree)
        a->fabric.domain = degree;
    a->encoder = hbp__vlm_encoder(&a->vlm->fields, degree);
    a->language = a->vlm->language.fields;
    if (a->language.kv_heads < degree)
        a->language.kv_heads = degree;
    a->state_bytes = hbp__cost_state_bytes(a->options.zero_stage, a->options.data_parallel);
    a->ns_per_peak_flop = 1e9 / (machine->flops_per_s * degree);
    a->ns_per_flop = a->ns_per_peak_flop / a->stack.gemm_efficiency;
    a->ns_per_byte = 1e9 / (machine->hbm_bytes_per_s * degree);
    a->vision_tokens = a->options.vision * a->vlm->fields.tokens_per_unit;
}

/* A GPU's share of bytes that tensor and sequence parallelism divide. */
static int64_t share(const analysis *a, double bytes)
{
    return hbp__round_i64(bytes / a->options.tensor_parallel);
}

/* One collective of the GPUs that share a layer over `tokens` vectors of `width`. */
static double collective_ns(const analysis *a, int32_t collective, double tokens, double width)
{
    const char *source;
    return hbp__cost_ring_ns(&a->fabric, collective, 1, ACTIVATION_BYTES * tokens * width, &source);
}

/* Sequence parallelism (Korthikanti et al., 2022): a part gathers its input and scatters its output, on the
 * way back the other way round. Nothing hides it. */
static double exchange_ns(const analysis *a, double tokens, double input, double output)
{
    return collective_ns(a, HBP_COLLECTIVE_ALL_GATHER, tokens, input) +
           collective_ns(a, HBP_COLLECTIVE_REDUCE_SCATTER, tokens, output);
}

/* What a layer's attention does forward, in flops, and what it would do more were every document a token
 * longer. */
typedef struct attention {
    double flops;
    double per_token;
} attention;

/* Attention that takes as long as at `efficiency` with documents of so many tokens more (docs: stacks). */
static double attention_ns(const analysis *a, const attention *of, double efficiency, double tokens)
{
    return (of->flops + of->per_token * tokens) * a->ns_per_peak_flop / efficiency;
}

/* Forward ns of the products with so many parameters, `all` of them and those that a token meets. */
static double products_ns(const analysis *a, double tokens, int64_t active, int64_t all)
{
    return 2 * (tokens * (double)active + a->stack.gemm_tokens * (double)all) * a->ns_per_flop;
}

/* A transformer layer over `tokens` tokens. Element-wise passes are a third forward, and half of each part.
 */
static row transformer_layer(const analysis *a, const hbp_model_fields *f, int sparse, double tokens,
                             const attention *of)
{
    const hbp_stack_fields *s = &a->stack;
    hbp__layer_shape shape;
    row r = {0};
    hbp__model_layer(f, sparse, &shape); /* cannot overflow: the model's summary did not, but for padding */
    double width = f->hidden;
    double exchange = exchange_ns(a, tokens, width, width);
    double projections = products_ns(a, tokens, shape.attention_parameters, shape.attention_parameters);
    double products = products_ns(a, tokens, shape.mlp_active_parameters, shape.mlp_parameters);
    double forward = attention_ns(a, of, s->forward_attention_efficiency, s->forward_attention_tokens);
    double both =
        (1 + HBP__ATTENTION_BACKWARD) * attention_ns(a, of, s->attention_efficiency, s->attention_tokens);
    double elementwise = s->elementwise_bytes * width * tokens * a->ns_per_byte;
    double rest = exchange + elementwise / 6;
    r.attention_ns =
        hbp__round_i64(projections * s->recompute_products + forward * s->recompute_attention + rest);
    r.mlp_ns = hbp__round_i64(products * s->recompute_products + rest);
    const int64_t least = hbp__round_i64(s->layer_ns / 6); /* of a part, forward */
    r.attention_ns = hbp__max_i64(r.attention_ns, least);
    r.mlp_ns = hbp__max_i64(r.mlp_ns, least);
    r.recompute_ns = hbp__add_saturating(r.attention_ns, r.mlp_ns);
    r.forward_ns =
        hbp__add_saturating(hbp__round_i64(projections + forward + rest), hbp__round_i64(products + rest));
    r.forward_ns = hbp__max_i64(r.forward_ns, hbp__round_i64(s->layer_ns / 3));
    r.backward_ns = hbp__round_i64(2 * (projections + products) + (both > forward ? both - forward : 0) +
                                   2 * exchange + elementwise * 2 / 3);
    r.backward_ns = hbp__max_i64(r.backward_ns, hbp__round_i64(s->layer_ns * 2 / 3));
    /* The layer's input, and the MLP's, which is as wide, stay. */
    r.recomputed_bytes = share(a, ACTIVATION_BYTES * width * tokens);
    int64_t of_attention =
        hbp__max_i64(share(a, (double)shape.attention_bytes * s->activations * tokens), r.recomputed_bytes);
    int64_t of_mlp =
        hbp__max_i64(share(a, (double)shape.mlp_bytes * s->activations * tokens), r.recomputed_bytes);
    r.activation_bytes = hbp__add_saturating(of_attention, of_mlp);
    r.attention_bytes = of_attention - r.recomputed_bytes;
    r.mlp_bytes = of_mlp - r.recomputed_bytes;
    r.parameters = (double)shape.attention_parameters + (double)shape.mlp_parameters;
    r.cut_bytes = ACTIVATION_BYTES * width * tokens;
    return r;
}

static row encoder_layer(const analysis *a)
{
    const hbp_vlm_fields *f = &a->vlm->fields;
    /* Scores and their product with the values, unmasked: 4 a d_h for every pair of tokens. */
    double per_token = 4 * (double)a->encoder.heads * a->encoder.head_dim * a->vision_tokens;
    const attention of = {per_token * f->attention_tokens, per_token};
    row r = transformer_layer(a, &a->encoder, 0, a->vision_tokens, &of);
    r.type = HBP_LAYER_VISION;
    return r;
}

static row language_layer(const analysis *a, int32_t layer)
{
    const hbp_model_fields *f = &a->language;
    double per_square = a->vlm->summary.language_flops_per_token_squared / f->layers;
    const attention of = {per_square * a->options.squares, per_square * a->options.tokens};
    row r = transformer_layer(a, f, f->experts && layer >= f->dense_layers, a->options.tokens, &of);
    r.type = HBP_LAYER_LANGUAGE;
    return r;
}

/* Nothing to recompute: the rest of the row. */
static void keep(row *r, int64_t bytes)
{
    r->activation_bytes = r->recomputed_bytes = bytes;
}

/* No gradient flows to the pixels: a backward pass of weights alone. */
static row patch_embedding(const analysis *a)
{
    const hbp_vlm_fields *f = &a->vlm->fields;
    row r = {.type = HBP_LAYER_VISION};
    double ns = 2 * a->vision_tokens * f->patch_values * f->vision_hidden * a->ns_per_flop;
    r.forward_ns = r.backward_ns = hbp__round_i64(ns);
    keep(&r, share(a, ACTIVATION_BYTES * f->patch_values * a->vision_tokens));
    r.parameters = (double)hbp__vlm_patch_parameters(f);
    r.cut_bytes = ACTIVATION_BYTES * f->vision_hidden * a->vision_tokens;
    return r;
}

/* Norm, matrix, GELU, matrix: keeps input and normed input, the hidden width before and after GELU. */
static row projector(const analysis *a)
{
    const hbp_vlm_fields *f = &a->vlm->fields;
    row r = {.type = HBP_LAYER_VISION};
    double tokens = a->options.vision * f->projected_per_unit;
    double input = f->projector_input, width = f->projector_hidden, output = a->language.hidden;
    double products = 2 * tokens * width * (input + output) * a->ns_per_flop;
    double exchange = exchange_ns(a, tokens, input, output);
    r.forward_ns = r.recompute_ns = hbp__round_i64(products + exchange);
    r.backward_ns = hbp__round_i64(2 * products + exchange_ns(a, tokens, output, input));
    r.activation_bytes = share(a, 2 * ACTIVATION_BYTES * (input + width) * tokens);
    r.recomputed_bytes = share(a, ACTIVATION_BYTES * input * tokens);
    r.parameters = (double)hbp__vlm_projector_parameters(f, a->language.hidden);
    r.cut_bytes = ACTIVATION_BYTES * output * tokens;
    return r;
}

/* Rows of a table are read and written; the backward pass does the same to their gradients. */
static row token_embedding(const analysis *a)
{
    double width = a->language.hidden, tokens = a->options.tokens;
    row r = {.type = HBP_LAYER_LANGUAGE};
    double traffic = 2 * ACTIVATION_BYTES * width * tokens * a->ns_per_byte;
    r.forward_ns = hbp__round_i64(traffic + collective_ns(a, HBP_COLLECTIVE_REDUCE_SCATTER, tokens, width));
    r.backward_ns = hbp__round_i64(traffic + collective_ns(a, HBP_COLLECTIVE_ALL_GATHER, tokens, width));
    r.parameters = ((double)a->language.vocab + a->language.learned_positions) * width;
    r.cut_bytes = ACTIVATION_BYTES * width * tokens;
    return r;
}

/* Reads and writes every token's vector; backward also the gradient. */
static row final_norm(const analysis *a)
{
    double bytes = ACTIVATION_BYTES * a->language.hidden * a->options.tokens;
    row r = {.type = HBP_LAYER_LANGUAGE};
    r.forward_ns = hbp__round_i64(2 * bytes * a->ns_per_byte);
    r.backward_ns = hbp__round_i64(3 * bytes * a->ns_per_byte);
    keep(&r, share(a, bytes));
    r.parameters = a->language.hidden;
    r.cut_bytes = bytes;
    return r;
}

/* Keeps its input and, unless the trainer fuses cross-entropy, the logits. Tied weights have a copy here. */
static row output_head(const analysis *a)
{
    double width = a->language.hidden, tokens = a->options.tokens;
    const int64_t head = (int64_t)a->language.vocab * a->language.hidden;
    const int is_fused = a->options.fused_cross_entropy || a->stack.fused_cross_entropy;
    double logits = is_fused ? 0 : a->stack.logits_kept_bytes * a->language.vocab;
    double product = products_ns(a, tokens, head, head);
    double traffic = a->stack.logits_traffic_bytes * a->language.vocab * tokens * a->ns_per_byte;
    row r = {.type = HBP_LAYER_LANGUAGE};
    r.forward_ns =
        hbp__round_i64(product + traffic / 3 + collective_ns(a, HBP_COLLECTIVE_ALL_GATHER, tokens, width));
    r.backward_ns = hbp__round_i64(2 * product + traffic * 2 / 3 +
                                   collective_ns(a, HBP_COLLECTIVE_REDUCE_SCATTER, tokens, width));
    keep(&r, share(a, (ACTIVATION_BYTES * width + logits) * tokens));
    r.parameters = a->language.vocab * width;
    return r;
}

static void put_row(table *t, const analysis *a, int32_t index, const row *r)
{
    double parameters = r->parameters / a->options.tensor_parallel;
    int64_t *const at = t->column + index;
    int32_t column = 0;
#define PUT(name, value)                                                                                     \
    t->columns.name = t->column + (int64_t)column * t->columns.count;                                        \
    at[(int64_t)column++ * t->columns.count] = (value)
    PUT(forward_ns, r->forward_ns);
    PUT(backward_ns, r->backward_ns);
    PUT(recompute_ns, r->recompute_ns);
    PUT(attention_ns, r->attention_ns);
    PUT(mlp_ns, r->mlp_ns);
    PUT(activation_bytes, r->activation_bytes);
    PUT(recomputed_bytes, r->recomputed_bytes);
    PUT(attention_bytes, r->attention_bytes);
    PUT(mlp_bytes, r->mlp_bytes);
    PUT(parameters, hbp__round_i64(parameters));
    PUT(state_bytes, hbp__round_i64(parameters * a->state_bytes));
    PUT(cut_bytes, hbp__round_i64(r->cut_bytes));
#undef PUT
    t->type[index] = r->type;
}

/* Columns that `put` fills. */
#define PUT_COLUMNS 12

static int32_t put_named(table *t, const analysis *a, int32_t index, const char *name, row r)
{
    t->name[index] = name;
    put_row(t, a, index, &r);
    return index + 1;
}

static int32_t put_numbered(table *t, const analysis *a, int32_t index, const char *type, int32_t number,
                            row r)
{
    char *text = t->text + (int64_t)index * LAYER_NAME_BYTES;
    snprintf(text, LAYER_NAME_BYTES, "%s %d", type, (int)number);
    return put_named(t, a, index, text, r);
}

static void fill_table(table *t, const analysis *a)
{
    int32_t at = put_named(t, a, 0, "patch embedding", patch_embedding(a));
    row encoder = encoder_layer(a);
    for (int32_t i = 0; i < a->encoder.layers; i++)
        at = put_numbered(t, a, at, "vision", i, encoder);
    at = put_named(t, a, at, "projector", projector(a));
    at = put_named(t, a, at, "token embedding", token_embedding(a));
    for (int32_t i = 0; i < a->language.layers; i++)
        at = put_numbered(t, a, at, "language", i, language_layer(a, i));
    at = put_named(t, a, at, "final norm", final_norm(a));
    put_named(t, a, at, "output head", output_head(a));
}

static hbp_status make_layers(hbp_context *context, const hbp_vlm *vlm, const hbp_machine *machine,
                              const hbp_vlm_layers_options *options, hbp_layers **out)
{
    HBP__TRY(hbp__require(context, vlm, "vlm"));
    HBP__TRY(hbp__require(context, machine, "machine"));
    HBP__TRY(hbp__require(context, options, "options"));
    analysis a = {.vlm = vlm};
    HBP__TRY(read_options(context, options, &a.options));
    HBP__TRY(hbp__cost_read_fabric(context, machine, &a.fabric));
    HBP__TRY(hbp__vlm_check_degree(context, vlm, machine, a.options.tensor_parallel));
    HBP__TRY(hbp__stack_read(context, a.options.stack, &vlm->language, machine, &a.stack));
    read_shapes(&a);

    const hbp__memory *memory = &context->memory;
    uint64_t count = (uint64_t)vlm->summary.layers;
    table t = {.columns = {.struct_size = sizeof t.columns, .count = vlm->summary.layers}};
    t.column = hbp__new(memory, count, PUT_COLUMNS * sizeof *t.column);
    t.type = hbp__new(memory, count, sizeof *t.type);
    t.text = hbp__new(memory, count, LAYER_NAME_BYTES);
    t.name = hbp__new(memory, count, sizeof *t.name);
    hbp_status status;
    if (t.column && t.type && t.text && t.name) {
        fill_table(&t, &a);
        t.columns.type = t.type;
        t.columns.names = t.name;
        status = hbp__layers_create(context, &t.columns, out);
    } else {
        status = hbp__fail_memory(context, "the layers of a model");
    }
    hbp__delete(memory, t.name);
    hbp__delete(memory, t.text);
    hbp__delete(memory, t.type);
    hbp__delete(memory, t.column);
    return status;
}

hbp_status hbp__vlm_create_layers(hbp_context *context, const hbp_vlm *vlm, const hbp_machine *machine,
                                  const hbp_vlm_layers_options *options, hbp_layers **out)
{
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, make_layers(context, vlm, machine, options, out));
}

hbp_status hbp_vlm_create_layers(hbp_context *context, const hbp_vlm *vlm, const hbp_machine *machine,
                                 const hbp_vlm_layers_options *options, hbp_layers **out)
{
    HBP__ENTER_OUT(context, out);
    return hbp__vlm_create_layers(context, vlm, machine, options, out);
}
