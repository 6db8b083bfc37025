/* The known software stacks and attention kernels (docs: stacks, with the source of every number). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/stack/stack.h"

/* Dense bf16 peaks. */
#define A100 312e12
#define H100 989e12

/* FlashAttention's charts give TFLOP/s of causal attention by length: the curve through each, least largest
 * error over all lengths but the shortest. Triton's rows are what the runs of llm-foundry say, with
 * FlashAttention 1's tokens. */
static const hbp__stack_attention attention[] = {
    {"triton", A100, 64, 95 / 312.0, 378, 95 / 312.0, 378},
    {"triton", H100, 128, 166 / 989.0, 288, 166 / 989.0, 288},
    {"fa1", A100, 128, 83 / 312.0, 378, 83 / 312.0, 378},
    {"fa1", H100, 128, 131 / 989.0, 288, 131 / 989.0, 288},
    {"fa2", A100, 64, 175 / 312.0, 492, 175 / 312.0, 492},
    {"fa2", A100, 128, 193 / 312.0, 474, 193 / 312.0, 474},
    {"fa2", H100, 64, 292 / 989.0, 540, 292 / 989.0, 540},
    {"fa2", H100, 128, 334 / 989.0, 546, 344 / 989.0, 322},
    {"fa3", H100, 128, .60, 514, 643 / 989.0, 514},
    {"cudnn", H100, 128, .60, 514, 558 / 989.0, 350},
};

static const hbp__stack_products fsdp_2023[] = {{A100, .839}, {H100, .719}};
static const hbp__stack_products fsdp[] = {{A100, .77}, {H100, .60}};
static const hbp__stack_products fsdp_compiled[] = {{A100, .85}, {H100, .56}};
static const hbp__stack_products megatron[] = {{A100, .66}, {H100, .63}};
static const hbp__stack_products deepspeed[] = {{A100, .80}, {H100, .52}};
static const hbp__stack_products hbp[] = {{H100, .52}};
static const hbp__stack_products executor[] = {{A100, .85}, {H100, .60}};

/* Recomputation repeats the whole forward pass, what is kept is what the model says. */
#define USUAL                                                                                                \
    .recompute_products = 1, .recompute_attention = 1, .activations = 1,                                     \
    .logits_kept_bytes = HBP__LOGITS_BYTES
#define ROWS(products) products, sizeof(products) / sizeof *(products)

static const hbp__stack_preset presets[] = {
    {"fsdp",
     "fa2",
     ROWS(fsdp),
     {.elementwise_bytes = 925,
      .logits_traffic_bytes = 40,
      .exchange_passes = 5,
      USUAL,
      .compute_overlap = 1}},
    {"fsdp-compiled",
     "fa2",
     ROWS(fsdp_compiled),
     {.elementwise_bytes = 520,
      .logits_traffic_bytes = 40,
      .exchange_passes = 5,
      USUAL,
      .compute_overlap = 1}},
    {"fsdp-2023",
     "triton",
     ROWS(fsdp_2023),
     {.elementwise_bytes = 306,
      .logits_traffic_bytes = 40,
      .exchange_passes = 5,
      .recompute_products = 1,
      .recompute_attention = .5,
      .activations = 1,
      .logits_kept_bytes = 6,
      .dp_overlap = .04}},
    {"megatron",
     "cudnn",
     ROWS(megatron),
     {.elementwise_bytes = 100,
      .logits_traffic_bytes = 12,
      .exchange_passes = 2,
      USUAL,
      .compute_overlap = 1}},
    {"deepspeed",
     "fa2",
     ROWS(deepspeed),
     {.elementwise_bytes = 100, .logits_traffic_bytes = 40, .exchange_passes = 5, USUAL}},
    {"hbp",
     "fa2",
     ROWS(hbp),
     {.elementwise_bytes = 925,
      .logits_traffic_bytes = 40,
      .exchange_passes = 7,
      .recompute_products = 1,
      .recompute_attention = 1,
      .activations = 4.2,
      .logits_kept_bytes = 22,
      .compute_overlap = .1}},
    {"executor",
     "fa1",
     ROWS(executor),
     {.elementwise_bytes = 150, .logits_traffic_bytes = 18, .exchange_passes = 2, USUAL}},
    {"pytorch",
     "fa2",
     ROWS(fsdp),
     {.elementwise_bytes = 925, .logits_traffic_bytes = 40, .exchange_passes = 5, USUAL}},
};

#define PRESETS   ((int64_t)(sizeof presets / sizeof *presets))
#define ATTENTION ((int64_t)(sizeof attention / sizeof *attention))

const char *hbp__stack_preset_name(int64_t index)
{
    return index >= 0 && index < PRESETS ? presets[index].name : NULL;
}

const char *hbp__stack_kernel_name(int64_t index)
{
    int64_t seen = 0;
    for (int64_t i = 0; i < ATTENTION; i++) {
        const int is_first = i == 0 || strcmp(attention[i].kernel, attention[i - 1].kernel) != 0;
        if (is_first && seen++ == index)
            return attention[i].kernel;
    }
    return NULL;
}

const hbp__stack_preset *hbp__stack_find(const char *name)
{
    for (int64_t i = 0; i < PRESETS; i++)
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    return NULL;
}

const hbp__stack_attention *hbp__stack_find_attention(const char *kernel, double peak, int32_t head_dim)
{
    const hbp__stack_attention *best = NULL;
    double least = INFINITY;
    int32_t closest = 0;
    for (int64_t i = 0; i < ATTENTION; i++) {
        const hbp__stack_attention *row = &attention[i];
        if (strcmp(row->kernel, kernel) != 0)
            continue;
        const double off = fabs(log(row->peak / peak));
        const int32_t apart = abs(row->head_dim - head_dim);
        if (!best || off < least || (off == least && apart < closest)) {
            best = row;
            least = off;
            closest = apart;
        }
    }
    return best;
}
