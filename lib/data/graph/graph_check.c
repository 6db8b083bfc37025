#include "data/graph/graph_check.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"

#define NAMED 6 /* operators of a cycle that a message names */

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static int is_profiled(const hbp__profile *profile, int32_t n)
{
    int64_t low = 0, high = profile->points;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (profile->gpus[middle] < n)
            low = middle + 1;
        else
            high = middle;
    }
    return low < profile->points && profile->gpus[low] == n;
}

int hbp__operator_suits(const hbp__operator *o, const hbp__profile *profile, int32_t n)
{
    if (n < profile->gpus[0] || n > profile->gpus[profile->points - 1] || n % o->least_gpus)
        return 0;
    if (o->degrees == HBP_DEGREES_PROFILED)
        return is_profiled(profile, n);
    /* If n = p q for some p, then also for the largest that divides both n and batch: its q divides the
     * other's. */
    return o->split % (n / greatest_divisor(o->batch, n)) == 0;
}

/* Whether some number of GPUs suits. O(profiled numbers of GPUs from least to largest). */
static int any_suits(const hbp__operator *o, const hbp__profile *profile)
{
    int64_t first = hbp__round_up(profile->gpus[0], o->least_gpus);
    int64_t last = hbp__min_i64(profile->gpus[profile->points - 1], hbp__mul_saturating(o->batch, o->split));
    for (int64_t i = 0; o->degrees == HBP_DEGREES_PROFILED && i < profile->points; i++)
        if (profile->gpus[i] % o->least_gpus == 0)
            return 1;
    for (int64_t n = first; o->degrees == HBP_DEGREES_DIVISORS && n <= last; n += o->least_gpus)
        if (hbp__operator_suits(o, profile, (int32_t)n))
            return 1;
    return 0;
}

static hbp_status check_operator(hbp_context *context, const hbp_graph *graph, const hbp__operator *o)
{
    if (o->profile < 0)
        return hbp__fail(context, HBP_E_INVALID, "operator '%.80s' has no profile", o->name);
    const hbp__profile profile = hbp__graph_profile(graph, o->profile);
    if (any_suits(o, &profile))
        return HBP_OK;
    int least = profile.gpus[0], largest = profile.gpus[profile.points - 1];
    if (o->degrees == HBP_DEGREES_PROFILED)
        return hbp__fail(context, HBP_E_INVALID,
                         "operator '%.80s' is profiled on %d..%d GPUs; none of these is a multiple of its "
                         "least_gpus, %d",
                         o->name, least, largest, (int)o->least_gpus);
    return hbp__fail(context, HBP_E_INVALID,
                     "operator '%.80s' is profiled on %d..%d GPUs; none of these is a multiple of its "
                     "least_gpus, %d, and a divisor of its batch, %lld, times one of its split, %lld",
                     o->name, least, largest, (int)o->least_gpus, (long long)o->batch, (long long)o->split);
}

static int same_degrees(const hbp__operator *a, const hbp__operator *b)
{
    return a->profile == b->profile && a->degrees == b->degrees && a->least_gpus == b->least_gpus &&
           a->batch == b->batch && a->split == b->split;
}

/* Names `length` operators, each needed by the next, the last by the first. */
static hbp_status fail_cycle(hbp_context *context, const hbp_graph *graph, const int32_t *cycle,
                             int32_t length)
{
    char text[HBP__MESSAGE_BYTES];
    int used = 0;
    for (int32_t i = 0; i < length && i < NAMED; i++)
        used +=
            snprintf(text + used, sizeof text - (size_t)used, "'%.40s' -> ", graph->operators[cycle[i]].name);
    if (length > NAMED)
        used += snprintf(text + used, sizeof text - (size_t)used, "%d more -> ", (int)(length - NAMED));
    return hbp__fail(context, HBP_E_INVALID, "the graph has a cycle: %s'%.40s'", text,
                     graph->operators[cycle[0]].name);
}

/* Finds a cycle among the operators that still wait for others (`waits` > 0): from each to one that it waits
 * for, until one comes again. `next` [2 x operators] is scratch. */
static hbp_status find_cycle(hbp_context *context, const hbp_graph *graph, const int32_t *waits,
                             int32_t *next)
{
    int32_t *seen = next + graph->operator_count;
    int32_t at = 0, length = 0;
    memset(seen, 0, (size_t)graph->operator_count * sizeof *seen);
    for (int64_t e = 0; e < graph->edge_count; e++)
        if (waits[graph->edge_from[e]])
            next[graph->edge_to[e]] = graph->edge_from[e];
    while (!waits[at])
        at++;
    for (; !seen[at]; at = next[at])
        seen[at] = 1;
    int32_t least = at;
    for (int32_t i = next[at]; i != at; i = next[i])
        least = i < least ? i : least;
    /* The walk went against the edges, so the cycle is filled in from its end. */
    at = least;
    do {
        at = next[at];
        seen[graph->operator_count - ++length] = at;
    } while (at != least);
    return fail_cycle(context, graph, seen + graph->operator_count - length, length);
}

/* Kahn's algorithm, first in, first out. `waits` [operators] counts the edges from operators not in the order
 * yet. */
static int32_t sort_operators(const hbp_graph *graph, hbp__graph_order *order, int32_t *waits)
{
    int32_t count = 0;
    for (int32_t i = 0; i < graph->operator_count; i++)
        if (!waits[i])
            order->order[count++] = i;
    for (int32_t done = 0; done < count; done++) {
        int32_t i = order->order[done];
        for (int64_t k = order->out_first[i]; k < order->out_first[i + 1]; k++) {
            int32_t to = graph->edge_to[order->out_edge[k]];
            if (!--waits[to])
                order->order[count++] = to;
        }
    }
    return count;
}

static void link_edges(const hbp_graph *graph, hbp__graph_order *order)
{
    int64_t *first = order->out_first;
    for (int64_t e = 0; e < graph->edge_count; e++) {
        first[graph->edge_from[e] + 1]++;
        order->needs[graph->edge_to[e]]++;
    }
    for (int32_t i = 0; i < graph->operator_count; i++)
        first[i + 1] += first[i];
    for (int64_t e = graph->edge_count - 1; e >= 0; e--)
        order->out_edge[--first[graph->edge_from[e] + 1]] = e;
    /* Every first[i + 1] has come down to where the edges of i begin. */
    memmove(first, first + 1, (size_t)graph->operator_count * sizeof *first);
    first[graph->operator_count] = graph->edge_count;
}

hbp_status hbp__graph_order_open(hbp_context *context, const hbp_graph *graph, hbp__graph_order *order)
{
    uint64_t rows = (uint64_t)graph->operator_count;
    const hbp__memory *memory = &context->memory;
    *order = (hbp__graph_order){.memory = context->memory};
    order->out_first = hbp__new_zero(memory, rows + 1, sizeof *order->out_first);
    order->out_edge = hbp__new(memory, (uint64_t)graph->edge_count, sizeof *order->out_edge);
    order->needs = hbp__new_zero(memory, rows, sizeof *order->needs);
    order->order = hbp__new(memory, rows, sizeof *order->order);
    int32_t *waits = hbp__new(memory, rows, 3 * sizeof *waits);
    hbp_status status = HBP_OK;
    if (!order->out_first || !order->out_edge || !order->needs || !order->order || !waits)
        status = hbp__fail_memory(context, "the order of operators");
    if (status == HBP_OK) {
        link_edges(graph, order);
        memcpy(waits, order->needs, (size_t)rows * sizeof *waits);
        if (sort_operators(graph, order, waits) < graph->operator_count)
            status = find_cycle(context, graph, waits, waits + rows);
    }
    hbp__delete(memory, waits);
    if (status < 0)
        hbp__graph_order_close(order);
    return status;
}

void hbp__graph_order_close(hbp__graph_order *order)
{
    hbp__delete(&order->memory, order->out_first);
    hbp__delete(&order->memory, order->out_edge);
    hbp__delete(&order->memory, order->needs);
    hbp__delete(&order->memory, order->order);
    *order = (hbp__graph_order){.memory = order->memory};
}

static hbp_status check_graph(hbp_context *context, const hbp_graph *graph)
{
    HBP__TRY(hbp__require(context, graph, "graph"));
    if (!graph->operator_count)
        return hbp__fail(context, HBP_E_INVALID, "the graph has no operators");
    for (int32_t i = 0; i < graph->operator_count; i++)
        if (!i || !same_degrees(&graph->operators[i - 1], &graph->operators[i]))
            HBP__TRY(check_operator(context, graph, &graph->operators[i]));
    hbp__graph_order order;
    HBP__TRY(hbp__graph_order_open(context, graph, &order));
    hbp__graph_order_close(&order);
    return HBP_OK;
}

hbp_status hbp__graph_check(hbp_context *context, const hbp_graph *graph)
{
    int64_t mark = hbp__scratch_mark(context);
    HBP__TRY(check_graph(context, graph));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

hbp_status hbp_graph_validate(hbp_context *context, const hbp_graph *graph)
{
    HBP__TRY(hbp__enter(context));
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, hbp__graph_check(context, graph));
}
