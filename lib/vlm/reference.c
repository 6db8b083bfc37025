/* Layers for the mean micro-batch, and linear times for all others. */
#include "base/checked.h"
#include "cost/vlm_layers.h"
#include "vlm/vlm.h"

static int64_t time_of(const hbp_layers *layers, int32_t type)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < layers->count; i++)
        if (layers->type[i] == type)
            sum += layers->forward_ns[i] + layers->backward_ns[i];
    return sum;
}

static hbp_status derive_layers(const hbp__vlm_run *run, const hbp__vlm_size *size, hbp_layers **out)
{
    hbp_vlm_layers_options options = {.struct_size = sizeof options};
    options.tensor_parallel = run->options.tensor_parallel;
    options.data_parallel = run->options.data_parallel;
    options.zero_stage = run->options.zero_stage;
    options.fused_cross_entropy = run->options.fused_cross_entropy;
    options.stack = run->options.stack;
    options.vision = size->vision;
    options.tokens = size->tokens;
    options.squares = size->squares;
    return hbp__vlm_create_layers(run->context, run->vlm, run->machine, &options, out);
}

/* What a square costs: layers at the mean and at nearly no squares differ in nothing else. */
static hbp_status split_squares(const hbp__vlm_run *run, hbp__vlm_reference *r)
{
    hbp__vlm_size flat = r->mean;
    hbp_layers *layers = NULL;
    flat.squares = r->mean.squares / 1024;
    HBP__TRY(derive_layers(run, &flat, &layers));
    double less = (double)time_of(layers, HBP_LAYER_LANGUAGE);
    hbp_layers_free(layers);
    double all = (double)time_of(r->layers, HBP_LAYER_LANGUAGE);
    r->square_ns = less < all ? (all - less) / (r->mean.squares - flat.squares) : 0;
    return HBP_OK;
}

void hbp__vlm_reference_fill(hbp__vlm_reference *r)
{
    r->vision_ns = (double)time_of(r->layers, HBP_LAYER_VISION) / r->mean.vision;
    r->token_ns =
        ((double)time_of(r->layers, HBP_LAYER_LANGUAGE) - r->square_ns * r->mean.squares) / r->mean.tokens;
    r->fixed_ns = (double)time_of(r->layers, HBP_LAYER_FIXED);
}

hbp_status hbp__vlm_reference_open(const hbp__vlm_run *run, const hbp__vlm_size *mean,
                                   hbp__vlm_reference *reference)
{
    *reference = (hbp__vlm_reference){.mean = *mean};
    hbp__vlm_reference *r = reference;
    if (run->options.layers) {
        r->layers = hbp__layers_retain(run->options.layers);
        r->mean.vision = run->options.layers_vision;
        r->mean.tokens = run->options.layers_tokens;
        r->mean.squares = 0;
    } else {
        HBP__TRY(derive_layers(run, &r->mean, &r->layers));
        hbp_status status = split_squares(run, r);
        if (status < 0) {
            hbp__vlm_reference_close(r);
            return status;
        }
    }
    hbp__vlm_reference_fill(r);
    return HBP_OK;
}

void hbp__vlm_reference_close(hbp__vlm_reference *reference)
{
    hbp_layers_free(reference->layers);
    reference->layers = NULL;
}

double hbp__vlm_vision_scale(const hbp__vlm_reference *r, const hbp__vlm_size *size)
{
    return size->vision / r->mean.vision;
}

double hbp__vlm_token_scale(const hbp__vlm_reference *r, const hbp__vlm_size *size)
{
    return size->tokens / r->mean.tokens;
}

double hbp__vlm_token_time_scale(const hbp__vlm_reference *r, const hbp__vlm_size *size)
{
    double whole = r->token_ns * r->mean.tokens + r->square_ns * r->mean.squares;
    return whole > 0 ? (r->token_ns * size->tokens + r->square_ns * size->squares) / whole
                     : hbp__vlm_token_scale(r, size);
}
