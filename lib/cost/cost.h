/* The functions that everything above evaluates a cost with; what one is says data/cost/cost.h. */
#ifndef HBP_COST_COST_H
#define HBP_COST_COST_H

#include <stdint.h>

#include "base/checked.h"
#include "base/context.h"
#include "data/cost/cost.h"
#include "hbp/cost.h"

/* What a pack carries. */
typedef struct hbp__load {
    int64_t tokens;  /* S: with padding */
    double squares;  /* Q: of the samples' lengths without it */
    int64_t vision;  /* V: vision units */
    int64_t samples; /* which cost nothing, but may be capped; 0: not counted */
} hbp__load;

/* The bytes of an option reserve_bytes: 0 the default, negative none. */
static inline int64_t hbp__reserve(int64_t option)
{
    return option < 0 ? 0 : option ? option : HBP_RESERVE_BYTES;
}

/* A shallow copy of `cost`, never to be freed, under which no pack holds more than `tokens_per_rank` padded
 * tokens times its degree; 0: as the cost itself. hbp__cost_capacity and hbp__cost_fewest_layers keep to it
 * (cost/point.h), and so do all planners that are given the copy. */
static inline hbp_cost hbp__cost_capped(const hbp_cost *cost, int64_t tokens_per_rank)
{
    hbp_cost capped = *cost;
    if (tokens_per_rank && (!cost->tokens_per_rank || tokens_per_rank < cost->tokens_per_rank))
        capped.tokens_per_rank = tokens_per_rank;
    return capped;
}

/* The most tokens that the cap of a cost allows in a pack of degree `sp`. */
static inline int64_t hbp__cost_most_tokens(const hbp_cost *cost, int32_t sp)
{
    return cost->tokens_per_rank ? hbp__mul_saturating(cost->tokens_per_rank, sp) : INT64_MAX;
}

/* hbp_cost_create, within a call. *out is set on success alone. */
hbp_status hbp__cost_create(hbp_context *context, const hbp_model *model, const hbp_machine *machine,
                            const hbp_cost_options *options, hbp_cost **out);

/* HBP_E_INVALID names a number or a row of a table that is negative, not finite or out of order. */
hbp_status hbp__cost_check_terms(hbp_context *context, const hbp_cost_terms *terms);

/* Checks and copies `terms`; every source becomes `source`. */
hbp_status hbp__cost_make(hbp_context *context, const hbp_cost_terms *terms, const char *source,
                          hbp_cost **out);

/* A copy of a cost, names and sources included. *out is set on success alone. */
hbp_status hbp__cost_copy(hbp_context *context, const hbp_cost *cost, hbp_cost **out);

/* Gives `cost`, a copy of `prior`, the prior's times, each times `scale`; their sources too, or `source`. */
void hbp__cost_scale_times(const hbp_cost *prior, double scale, const char *source, hbp_cost *cost);

/* Sets the source of term HBP__COST_<name> = `index`; longer texts are cut. */
void hbp__cost_set_source(hbp_cost *cost, int32_t index, const char *source);

/* Copies a name of the model or the machine into the cost's; longer ones are cut. */
void hbp__cost_set_name(char name[HBP__COST_NAME_BYTES], const char *text);

/* Row of degree `sp` in the tables, or -1. O(degrees). */
static inline int32_t hbp__cost_row(const hbp_cost *cost, int32_t sp)
{
    for (int32_t i = 0; i < cost->terms.degrees; i++)
        if (cost->degree[i] == sp)
            return i;
    return -1;
}

/* The terms of T that are not compute, unrounded: the all-to-alls of S `tokens`, the encoder of V `vision`.
 */
static inline double hbp__cost_all_to_all_ns(const hbp_cost *cost, int32_t row, int32_t recompute,
                                             double tokens)
{
    const double share = (double)recompute / (double)cost->terms.layers;
    return (cost->sp_latency_ns[row] + cost->sp_ns_per_token[row] * tokens) *
           (1 + cost->terms.recompute_communication * share);
}

static inline double hbp__cost_vision_ns(const hbp_cost *cost, int32_t row, int32_t recompute, double vision)
{
    const double share = (double)recompute / (double)cost->terms.layers;
    return cost->terms.ns_per_vision * vision * (1 + cost->terms.recompute_vision * share) /
           (double)cost->degree[row];
}

/* Of pack_ns, what compute of so many ns hides. */
static inline double hbp__cost_hidden_ns(const hbp_cost *cost, double compute)
{
    const double room = cost->terms.compute_overlap * compute;
    return room < cost->terms.traffic_ns ? room : cost->terms.traffic_ns;
}

/* C of cost.h for the degree in table row `row`, vision units included: S `tokens`, Q `squares`, V `vision`;
 * ns, unrounded. */
static inline double hbp__cost_compute_ns(const hbp_cost *cost, int32_t row, int32_t recompute, double tokens,
                                          double squares, double vision)
{
    const hbp_cost_terms *t = &cost->terms;
    double share = (double)recompute / (double)t->layers;
    double compute = t->ns_per_token * tokens * (1 + t->recompute_linear * share) +
                     t->ns_per_token_squared * squares * (1 + t->recompute_attention * share);
    compute /= (double)cost->degree[row];
    if (vision > 0)
        compute += hbp__cost_vision_ns(cost, row, recompute, vision);
    return compute < t->least_compute_ns ? t->least_compute_ns : compute;
}

/* T of cost.h, of what hbp__cost_compute_ns takes. */
static inline double hbp__cost_ns(const hbp_cost *cost, int32_t row, int32_t recompute, double tokens,
                                  double squares, double vision)
{
    double compute = hbp__cost_compute_ns(cost, row, recompute, tokens, squares, vision);
    double exchange = hbp__cost_all_to_all_ns(cost, row, recompute, tokens);
    return compute + exchange + (cost->terms.pack_ns - hbp__cost_hidden_ns(cost, compute));
}

/* What a padding pack takes; a rank that may skip the micro-batch takes nothing. */
static inline int64_t hbp__cost_padding_ns(const hbp_cost *cost)
{
    return cost->terms.uneven_micro_batches ? 0 : hbp__round_i64(cost->terms.pack_ns);
}

/* T of a pack in integer ns, as plans record it; an empty one is a padding pack. */
static inline int64_t hbp__cost_pack_ns(const hbp_cost *cost, int32_t row, int32_t recompute, hbp__load load)
{
    if (!load.tokens && !load.vision)
        return hbp__cost_padding_ns(cost);
    return hbp__round_i64(
        hbp__cost_ns(cost, row, recompute, (double)load.tokens, load.squares, (double)load.vision));
}

/* Whether vision units take time or memory. */
static inline int hbp__cost_charges_vision(const hbp_cost *cost)
{
    return cost->terms.ns_per_vision > 0 || cost->terms.vision_bytes > 0;
}

/* Bytes of activations per token of the pack and rank, times the degree (M of cost.h without static). */
static inline double hbp__cost_bytes_per_token(const hbp_cost *cost, int32_t row, int32_t recompute)
{
    const hbp_cost_terms *t = &cost->terms;
    return t->activation_bytes * (double)(t->layers - recompute) + t->recomputed_bytes * (double)recompute +
           (recompute > 0 ? t->working_bytes : 0) + t->logits_bytes +
           (cost->degree[row] > 1 ? t->sp_buffer_bytes : 0);
}

/* Peak bytes per rank of a pack, rounded. */
static inline int64_t hbp__cost_pack_bytes(const hbp_cost *cost, int32_t row, int32_t recompute,
                                           hbp__load load)
{
    const double degree = (double)cost->degree[row];
    double bytes = cost->terms.static_bytes +
                   hbp__cost_bytes_per_token(cost, row, recompute) * (double)load.tokens / degree;
    if (load.vision)
        bytes += cost->terms.vision_bytes * (double)load.vision / degree;
    return hbp__round_i64(bytes);
}

/* Whether groups of a degree nest with NVLink domains, so that aligned ones never straddle one needlessly. */
static inline int hbp__cost_nests(int32_t degree, int32_t domain)
{
    return degree <= domain ? domain % degree == 0 : degree % domain == 0;
}

#endif
