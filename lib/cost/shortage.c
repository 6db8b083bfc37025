#include "cost/shortage.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/quantity.h"
#include "cost/point.h"
#include "cost/states.h"
#include "data/model/model.h"

/* So many nodes are tried for a pack, one after the other: some numbers of ranks have no degree that suits.
 */
#define MOST_NODES 4096

/* What would make room, "a, or b, or c" of a message. */
typedef struct remedies {
    char text[256];
    size_t at;
} remedies;

static void add_remedy(remedies *r, const char *format, ...) HBP__PRINTF(2, 3);

static void add_remedy(remedies *r, const char *format, ...)
{
    va_list arguments;
    if (r->at)
        r->at += (size_t)snprintf(r->text + r->at, sizeof r->text - r->at, ", or ");
    va_start(arguments, format);
    int put = vsnprintf(r->text + r->at, sizeof r->text - r->at, format, arguments);
    va_end(arguments);
    r->at += put > 0 ? (size_t)put : 0;
    if (r->at >= sizeof r->text)
        r->at = sizeof r->text - 1;
}

static int64_t states_of(const hbp__cost_origin *o, int32_t stage, double ranks)
{
    return hbp__round_i64(hbp__cost_static_bytes(stage, ranks, o->parameters, o->layer_parameters));
}

/* Whether domains cut so many ranks evenly. */
static int is_even(const hbp__cost_origin *o, int64_t ranks)
{
    return o->domain_gpus < 1 || o->domain_gpus >= ranks || ranks % o->domain_gpus == 0;
}

/* The fewest nodes over all of whose GPUs ZeRO shards so that the states fit; 0: none. States only shrink. */
static int32_t find_nodes(const hbp__cost_origin *o, int32_t stage, int64_t limit_bytes)
{
    int32_t least = 1, all = HBP_MAX_RANKS / o->gpus_per_node, most = all;
    if (all < 1)
        return 0;
    if (states_of(o, stage, (double)most * o->gpus_per_node) > limit_bytes)
        return 0;
    while (least < most) {
        int32_t middle = least + (most - least) / 2;
        if (states_of(o, stage, (double)middle * o->gpus_per_node) <= limit_bytes)
            most = middle;
        else
            least = middle + 1;
    }
    while (least < all &&
           !is_even(o, (int64_t)least * o->gpus_per_node)) /* fewer turns than a domain has GPUs */
        least++;
    return is_even(o, (int64_t)least * o->gpus_per_node) ? least : 0;
}

/* Whether ZeRO-3 may gather over so many ranks: what runs in lockstep is what was asked for, or as many. */
static int is_in_lockstep(const hbp__cost_origin *o, int32_t stage, int32_t shard)
{
    return stage != HBP_ZERO_3 || !o->given_lockstep_ranks || o->given_lockstep_ranks % shard == 0;
}

/* The smallest set of this machine's ranks, larger than it is, over which the states fit; 0: none. */
static int32_t find_shard(const hbp__cost_origin *o, int32_t stage, int32_t ranks, int64_t limit_bytes)
{
    for (int32_t n = o->shard_ranks + 1; n <= ranks; n++)
        if (ranks % n == 0 && is_in_lockstep(o, stage, n) && states_of(o, stage, n) <= limit_bytes)
            return n;
    return 0;
}

/* ZeRO-3 where it is not that already, over all GPUs of so many nodes. */
static void add_nodes(remedies *r, const hbp__cost_origin *o, int32_t stage, int32_t needed, int32_t nodes)
{
    const char *to = stage == needed        ? ""
                     : o->given_shard_ranks ? "zero_stage 3 with "
                                            : "zero_stage 3 on ",
               *without =
                   is_in_lockstep(o, needed, nodes * o->gpus_per_node) ? "" : " without lockstep_ranks";
    if (o->given_shard_ranks) /* shards stay as large on more nodes */
        add_remedy(r, "%sshard_ranks %d on %d nodes of %d GPUs%s", to, (int)(nodes * o->gpus_per_node),
                   (int)nodes, (int)o->gpus_per_node, without);
    else
        add_remedy(r, "%sat least %d nodes of %d GPUs%s", to, (int)nodes, (int)o->gpus_per_node, without);
}

static void find_remedies(remedies *r, int32_t stage, const hbp__cost_origin *o, const hbp_cost_terms *t)
{
    const int64_t limit = t->limit_bytes;
    const int is_sharded = stage != HBP_ZERO_NONE, is_zero_3 = stage == HBP_ZERO_3,
              fits_zero_3 = states_of(o, HBP_ZERO_3, o->shard_ranks) <= limit &&
                            is_in_lockstep(o, HBP_ZERO_3, o->shard_ranks);
    int32_t shard = is_sharded ? find_shard(o, stage, t->ranks, limit) : 0,
            nodes = is_sharded && o->shard_ranks == t->ranks ? find_nodes(o, stage, limit) : 0;
    if (shard)
        add_remedy(r, "shard_ranks %d", (int)shard);
    if (!is_zero_3 && fits_zero_3)
        add_remedy(r, "zero_stage 3");
    if (nodes) {
        add_nodes(r, o, stage, stage, nodes);
        return;
    }
    if (!shard && !fits_zero_3)
        nodes = find_nodes(o, HBP_ZERO_3, limit);
    if (nodes > 0 && nodes <= o->nodes)
        add_remedy(r, "zero_stage 3 without %s%s%s", o->given_shard_ranks ? "shard_ranks" : "",
                   o->given_shard_ranks && o->given_lockstep_ranks ? " and " : "",
                   o->given_lockstep_ranks ? "lockstep_ranks" : "");
    else if (nodes > 0)
        add_nodes(r, o, stage, HBP_ZERO_3, nodes);
}

hbp_status hbp__cost_refuse_states(hbp_context *context, const char *model, int32_t stage,
                                   const hbp__cost_origin *origin, const hbp_cost_terms *terms)
{
    const int64_t states = hbp__round_i64(terms->static_bytes);
    if (origin->reserve_bytes >= origin->hbm_bytes)
        return hbp__fail(context, HBP_E_INFEASIBLE,
                         "reserve_bytes keeps %s free on each GPU, which has %s: nothing is left for %.64s",
                         hbp__say_bytes(origin->reserve_bytes).text, hbp__say_bytes(origin->hbm_bytes).text,
                         model);
    remedies r = {"", 0};
    find_remedies(&r, stage, origin, terms);
    return hbp__fail(
        context, HBP_E_INFEASIBLE,
        "%.64s needs %s on each of %d GPU%s for weights, gradients and optimiser; a GPU has %s, of which "
        "reserve_bytes keeps %s: it is %s short; %s%s",
        model, hbp__say_bytes(states).text, (int)terms->ranks, hbp__ending(terms->ranks),
        hbp__say_bytes(origin->hbm_bytes).text, hbp__say_bytes(origin->reserve_bytes).text,
        hbp__say_bytes(states - terms->limit_bytes).text,
        r.at ? "what would do: " : "no number of nodes would do, GPUs with more memory may", r.text);
}

/* Whether a pack fits on so many ranks, `static_bytes` of which each holds, on some degree up to `most`; the
 * least of them, or 0. */
static int32_t find_degree(const hbp_cost *cost, double static_bytes, int32_t ranks, int32_t most,
                           int64_t tokens)
{
    const hbp__cost_origin *o = &cost->origin;
    const hbp_cost_terms *t = &cost->terms;
    const int32_t domain = o->domain_gpus < ranks ? o->domain_gpus : ranks, last = cost->terms.degrees - 1;
    /* Bytes a token on one rank, with the buffers of all-to-alls. */
    const double per_token =
        hbp__cost_bytes_per_token(cost, last, t->layers) + (cost->degree[last] > 1 ? 0 : t->sp_buffer_bytes);
    for (int32_t d = 2; d <= ranks && d <= cost->heads && (!most || d <= most); d++) {
        if (ranks % d == 0 && hbp__heads_allow(cost->heads, cost->kv_heads, d) &&
            hbp__cost_nests(d, domain) &&
            static_bytes + per_token * (double)tokens / d <= (double)t->limit_bytes)
            return d;
    }
    return 0;
}

/* The degree that max_sp keeps out; 0: none would do. */
static int32_t find_larger_degree(const hbp_cost *cost, int64_t tokens)
{
    const hbp__cost_origin *o = &cost->origin;
    if (!o->max_sp || !o->gpus_per_node || cost->terms.lockstep_ranks)
        return 0;
    return find_degree(cost, cost->terms.static_bytes, cost->terms.ranks, 0, tokens);
}

/* Nodes, more than there are, whose ranks share states and pack; 0: none of those tried would do. */
static int32_t find_nodes_of_pack(const hbp_cost *cost, int64_t tokens)
{
    const hbp__cost_origin *o = &cost->origin;
    const int64_t ranks = cost->terms.ranks;
    if (!o->gpus_per_node || o->shard_ranks != ranks || o->given_shard_ranks || o->given_lockstep_ranks ||
        cost->terms.lockstep_ranks)
        return 0;
    for (int32_t n = o->nodes + 1; n <= MOST_NODES && n <= HBP_MAX_RANKS / o->gpus_per_node; n++) {
        const double bytes = hbp__cost_static_bytes(cost->zero_stage, (double)n * o->gpus_per_node,
                                                    o->parameters, o->layer_parameters);
        if (is_even(o, (int64_t)n * o->gpus_per_node) &&
            find_degree(cost, bytes, n * o->gpus_per_node, o->max_sp, tokens))
            return n;
    }
    return 0;
}

static int fits_fused(const hbp_cost *cost, int64_t tokens)
{
    hbp_cost fused = *cost;
    fused.terms.logits_bytes = 0;
    return cost->terms.logits_bytes > 0 && hbp__cost_least_per_rank(&fused, tokens) < INT64_MAX;
}

hbp_status hbp__cost_refuse_pack(hbp_context *context, const hbp_cost *cost, int64_t tokens, const char *why)
{
    const hbp_cost_terms *t = &cost->terms;
    remedies r = {"", 0};
    int32_t best = 0, larger = find_larger_degree(cost, tokens), nodes;
    int64_t holds = -1;
    for (int32_t row = 0; row < t->degrees; row++) {
        const int64_t most = hbp__cost_capacity(cost, row, t->layers, 0);
        best = most > holds ? row : best;
        holds = hbp__max_i64(holds, most);
    }
    const int64_t bytes = hbp__cost_pack_bytes(cost, best, t->layers, (hbp__load){.tokens = tokens});
    if (fits_fused(cost, tokens))
        add_remedy(&r, "fused_cross_entropy");
    if (larger)
        add_remedy(&r, "max_sp %d", (int)larger);
    else if (!fits_fused(cost, tokens) && (nodes = find_nodes_of_pack(cost, tokens)) > 0)
        add_remedy(&r, "%d nodes of %d GPUs", (int)nodes, (int)cost->origin.gpus_per_node);
    if (holds > 0)
        add_remedy(&r, "a max_length of at most %lld with over_long truncate, split or drop",
                   (long long)holds);
    return hbp__fail(
        context, HBP_E_INFEASIBLE,
        "no SP degree holds a pack of %lld tokens (%s) on %d rank%s, even with every layer recomputed: "
        "SP %d needs %s on each GPU, %s more than the %s there are; %s%s",
        (long long)tokens, why, (int)t->ranks, hbp__ending(t->ranks), (int)cost->degree[best],
        hbp__say_bytes(bytes).text, hbp__say_bytes(bytes - t->limit_bytes).text,
        hbp__say_bytes(t->limit_bytes).text,
        r.at ? "what would do: " : "not one token fits: GPUs with more memory may do", r.text);
}
