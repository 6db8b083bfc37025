/* The part of bench_executor that is about layers and packs. */
#ifndef BENCH_WHOLE_PACK_H
#define BENCH_WHOLE_PACK_H

#include "model/shape.h"
#include "rates.h"

/* A layer, and a pack of `tokens` tokens, each beside the sum of its operations measured alone, in turn; then
 * all layers recomputed against none. */
void bench_whole_pack(const bench_rates *rates, const ex_shape *shape, int64_t tokens);

#endif
