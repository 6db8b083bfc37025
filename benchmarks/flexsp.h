/* The constants of FlexSP's own cost models (arXiv 2412.01523): GPT on A100-40GB, nodes of 8. */
#ifndef BENCH_FLEXSP_H
#define BENCH_FLEXSP_H

#include <hbp/hbp.h>

enum { FLEXSP_MODELS = 3 };

/* "7b", "13b", "30b"; NULL past the last. */
const char *flexsp_model_name(int index);

/* The model's cost on `ranks` GPUs of nodes of 8 with ZeRO-3, as profiled for contexts of `limit_k` thousand
 * tokens (192 or 384). Nothing is recomputed; degrees are the powers of two up to 64. Ends the program when
 * there is no such model. */
hbp_cost *flexsp_cost(hbp_context *context, const char *model, int limit_k, int32_t ranks);

#endif
