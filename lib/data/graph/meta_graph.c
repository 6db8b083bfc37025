#include "data/graph/meta_graph.h"

#include <string.h>

#include "data/graph/graph_check.h"

/* Whether two operators may be one MetaOp, edges aside. */
static int may_be_one(const hbp__operator *a, const hbp__operator *b)
{
    return a->type == b->type && a->task == b->task && a->batch == b->batch && a->sequence == b->sequence &&
           a->width == b->width && a->profile == b->profile && a->degrees == b->degrees &&
           a->least_gpus == b->least_gpus && a->split == b->split;
}

/* What contraction starts from and its scratch: one block of operators' columns. */
typedef struct work {
    const hbp_graph *graph;
    hbp__graph_order order;
    int32_t *next;  /* [operators] the next of its chain; -1: none */
    int32_t *head;  /* [operators] the first of its chain */
    int32_t *level; /* [operators] of the chain, kept at its head */
    int32_t *count; /* [operators] of levels' MetaOps */
    int32_t *heads; /* [operators] heads of chains by their least operator */
    int32_t chains;
    int32_t levels;
} work;

/* Section 3.1. Whether an edge merges depends on its two ends alone, and merging changes no end's edges, so
 * the order of merging does not matter: a chain is a longest path of merging edges. Operators come in the
 * order in which they can run, so that of a chain the first comes first. */
static void link_chains(work *w)
{
    const hbp_graph *graph = w->graph;
    const hbp__graph_order *order = &w->order;
    for (int32_t i = 0; i < graph->operator_count; i++) {
        w->next[i] = -1;
        w->head[i] = i;
        w->level[i] = 0;
    }
    for (int32_t k = 0; k < graph->operator_count; k++) {
        int32_t i = order->order[k];
        int64_t out = order->out_first[i];
        if (order->out_first[i + 1] != out + 1)
            continue;
        int32_t to = graph->edge_to[order->out_edge[out]];
        if (order->needs[to] == 1 && may_be_one(&graph->operators[i], &graph->operators[to])) {
            w->next[i] = to;
            w->head[to] = w->head[i];
        }
    }
}

/* Longest paths: when an operator's turn comes, its chain's level is final, for edges enter a chain at its
 * head alone. */
static void find_levels(work *w)
{
    const hbp_graph *graph = w->graph;
    const hbp__graph_order *order = &w->order;
    for (int32_t k = 0; k < graph->operator_count; k++) {
        int32_t i = order->order[k], level = w->level[w->head[i]];
        for (int64_t e = order->out_first[i]; e < order->out_first[i + 1]; e++) {
            int32_t to = w->head[graph->edge_to[order->out_edge[e]]];
            if (to != w->head[i] && w->level[to] <= level)
                w->level[to] = level + 1;
        }
        w->levels = level >= w->levels ? level + 1 : w->levels;
    }
}

/* Lists the heads of chains as their least operators come. */
static void list_heads(work *w, int32_t *meta_of)
{
    for (int32_t i = 0; i < w->graph->operator_count; i++)
        meta_of[i] = -1;
    for (int32_t i = 0; i < w->graph->operator_count; i++) {
        int32_t head = w->head[i];
        if (meta_of[head] >= 0)
            continue;
        meta_of[head] = 0;
        w->heads[w->chains++] = head;
    }
}

/* Numbers chains by level, stable, and writes out their operators. */
static void number_chains(work *w, hbp__meta_graph *meta)
{
    memset(meta->level_first, 0, ((size_t)w->levels + 1) * sizeof *meta->level_first);
    for (int32_t c = 0; c < w->chains; c++)
        meta->level_first[w->level[w->heads[c]] + 1]++;
    for (int32_t l = 0; l < w->levels; l++) {
        meta->level_first[l + 1] += meta->level_first[l];
        w->count[l] = meta->level_first[l];
    }
    for (int32_t c = 0; c < w->chains; c++) {
        int32_t head = w->heads[c];
        int32_t m = w->count[w->level[head]]++;
        meta->meta_op[m] =
            (hbp__meta_op){.first = head, .level = w->level[head], .task = w->graph->operators[head].task};
    }
    int64_t at = 0;
    for (int32_t m = 0; m < w->chains; m++) {
        hbp__meta_op *op = &meta->meta_op[m];
        int32_t i = (int32_t)op->first;
        for (op->first = at; i >= 0; i = w->next[i]) {
            meta->meta_of[i] = m;
            meta->place_of[i] = op->count++;
            meta->operators[at++] = i;
        }
    }
}

/* Edges between chains by (from, to). A chain's edges leave its last operator and enter its first, and two
 * operators have one edge at most, so no two are between the same chains. Going through MetaOps `to` first
 * and then dealing out by `from` sorts in O(E). */
static void sort_edges(const work *w, hbp__meta_graph *meta, int64_t *in_at)
{
    const hbp_graph *graph = w->graph;
    const hbp__graph_order *order = &w->order;
    int64_t *out_first = meta->out_first, *in_first = meta->in_first;
    for (int32_t m = 0; m < meta->count; m++) {
        int32_t head = meta->operators[meta->meta_op[m].first];
        in_first[m + 1] = in_first[m] + order->needs[head];
        in_at[m] = in_first[m];
    }
    meta->edge_count = in_first[meta->count];
    for (int32_t m = 0; m < meta->count; m++) {
        const hbp__meta_op *op = &meta->meta_op[m];
        int32_t last = meta->operators[op->first + op->count - 1];
        out_first[m + 1] = out_first[m] + order->out_first[last + 1] - order->out_first[last];
        for (int64_t k = order->out_first[last]; k < order->out_first[last + 1]; k++) {
            int64_t e = order->out_edge[k];
            int32_t to = meta->meta_of[graph->edge_to[e]];
            meta->in_edges[in_at[to]++] = e; /* of the graph, for now; by (to, from) */
        }
    }
    /* in_at is where the edges of a `from` go now. */
    for (int32_t m = 0; m < meta->count; m++)
        in_at[m] = out_first[m];
    for (int64_t k = 0; k < meta->edge_count; k++) {
        int64_t e = meta->in_edges[k];
        int32_t from = meta->meta_of[graph->edge_from[e]], to = meta->meta_of[graph->edge_to[e]];
        meta->in_edges[k] = in_at[from];
        meta->edges[in_at[from]++] = (hbp__edge){from, to, graph->edge_bytes[e]};
    }
}

static hbp_status contract_chains(hbp_context *context, work *w, hbp__meta_graph *meta)
{
    const hbp__memory *memory = &meta->memory;
    link_chains(w);
    find_levels(w);
    list_heads(w, meta->meta_of);
    meta->count = w->chains;
    meta->levels = w->levels;
    uint64_t rows = (uint64_t)meta->count, edges = (uint64_t)w->graph->edge_count;
    meta->meta_op = hbp__new(memory, rows, sizeof *meta->meta_op);
    meta->level_first = hbp__new(memory, (uint64_t)w->levels + 1, sizeof *meta->level_first);
    meta->edges = hbp__new(memory, edges, sizeof *meta->edges);
    meta->in_edges = hbp__new(memory, edges, sizeof *meta->in_edges);
    meta->out_first = hbp__new_zero(memory, rows + 1, sizeof *meta->out_first);
    meta->in_first = hbp__new_zero(memory, rows + 1, sizeof *meta->in_first);
    int64_t *in_at = hbp__new(memory, rows, sizeof *in_at);
    hbp_status status = HBP_OK;
    if (meta->meta_op && meta->level_first && meta->edges && meta->in_edges && meta->out_first &&
        meta->in_first && in_at) {
        number_chains(w, meta);
        sort_edges(w, meta, in_at);
    } else {
        status = hbp__fail_memory(context, "MetaOps");
    }
    hbp__delete(memory, in_at);
    return status;
}

hbp_status hbp__meta_graph_open(hbp_context *context, const hbp_graph *graph, hbp__meta_graph *meta)
{
    work w = {.graph = graph};
    uint64_t rows = (uint64_t)graph->operator_count;
    *meta = (hbp__meta_graph){.memory = context->memory, .operator_count = graph->operator_count};
    HBP__TRY(hbp__graph_order_open(context, graph, &w.order));
    meta->operators = hbp__new(&meta->memory, rows, sizeof *meta->operators);
    meta->meta_of = hbp__new(&meta->memory, rows, sizeof *meta->meta_of);
    meta->place_of = hbp__new(&meta->memory, rows, sizeof *meta->place_of);
    w.next = hbp__new(&meta->memory, rows, 5 * sizeof *w.next);
    hbp_status status = HBP_OK;
    if (meta->operators && meta->meta_of && meta->place_of && w.next) {
        w.head = w.next + rows;
        w.level = w.head + rows;
        w.count = w.level + rows;
        w.heads = w.count + rows;
        status = contract_chains(context, &w, meta);
    } else {
        status = hbp__fail_memory(context, "MetaOps");
    }
    hbp__delete(&meta->memory, w.next);
    hbp__graph_order_close(&w.order);
    if (status < 0)
        hbp__meta_graph_close(meta);
    return status;
}

void hbp__meta_graph_close(hbp__meta_graph *meta)
{
    hbp__delete(&meta->memory, meta->meta_op);
    hbp__delete(&meta->memory, meta->operators);
    hbp__delete(&meta->memory, meta->meta_of);
    hbp__delete(&meta->memory, meta->place_of);
    hbp__delete(&meta->memory, meta->level_first);
    hbp__delete(&meta->memory, meta->edges);
    hbp__delete(&meta->memory, meta->out_first);
    hbp__delete(&meta->memory, meta->in_first);
    hbp__delete(&meta->memory, meta->in_edges);
    *meta = (hbp__meta_graph){.memory = meta->memory};
}
