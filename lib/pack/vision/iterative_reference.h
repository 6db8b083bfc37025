/* Iterative sampling and filtering as published (OmniBal, section 3.2), sample for sample. */
#ifndef HBP_PACK_ITERATIVE_REFERENCE_H
#define HBP_PACK_ITERATIVE_REFERENCE_H

#include "base/context.h"
#include "data/lengths/lengths.h"
#include "data/packs/packs.h"
#include "hbp/pack.h"

/* Packs of untied `lengths` under the checked `options`, which have no zeros left. They are
 * measured; there are none when every sample is over a budget. O(rounds x samples) at worst: a round takes
 * what the ones before it left in packs that are not full. 8 bytes a sample besides the packs. */
hbp_status hbp__fill_reference(hbp_context *context, const hbp_lengths *lengths,
                               const hbp_iterative_fill_options *options, hbp_packs **out);

/* The last seed that numpy takes. Round r > 0 is seeded with seed + r - 1, so a seed must leave room. */
#define HBP__NUMPY_MAX_SEED UINT32_MAX

/* HBP_E_INVALID when the links of `lengths`, or the last seed of `rounds` rounds, rule this fill out; `what`
 * opens the message. */
hbp_status hbp__reference_check(hbp_context *context, const hbp_lengths *lengths, int32_t rounds,
                                uint64_t seed, const char *what);

#endif
