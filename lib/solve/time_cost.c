/* The least C by its dual. For a flow x from source to sink of the network whose arcs are the activities, F
 * its value, let g_a(x_a) = min over durations d of cost_a(d) + x_a d. Durations with paths <= C have sum x_a
 * d_a <= F C, as x is a sum of flows on paths; so costs within rate C give
 *
 *     rate C >= sum cost_a >= sum g_a - F C,    C >= sum g_a(x_a) / (rate + F)    for every such x,
 *
 * and the best x attains the least C. Flows on longest augmenting paths find it: they trace the trade-off
 * from its cheap end (Fulkerson 1961; Kelley 1961), F being the slope of cost and the path's length the C
 * where it holds; the quotient rises while that C is above it. Flows and lengths are integers, so the last x
 * keeps its balance exactly, and the quotient is a lower bound whatever led to x. */
#include "solve/time_cost.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "solve/union_find.h"

#define WHAT "a trade-off of time and cost"

/* Value of the flow at which a run ends. */
#define FLOW_MOST (INT64_C(1) << 61)

/* An activity, or a precedence that no shared node expresses: of length 0. Flow in [upto[at - 1], upto[at])
 * takes length[at], the duration that costs least at that price of time. */
typedef struct arc {
    int32_t tail;
    int32_t head;
    int64_t first; /* step; upto of the last one is INT64_MAX */
    int64_t at;
    int64_t flow;
} arc;

/* Indices by key, the least on top, ties by index. */
typedef struct heap {
    const int64_t *key;
    int32_t *slot;
    int32_t *place; /* of an index among slots; -1: not there */
    int32_t count;
} heap;

typedef struct network {
    const hbp__project *project;
    double rate;
    double unit;  /* of flows */
    double scale; /* lengths in one unit of duration: a power of two */
    int32_t nodes;
    int32_t components;
    int64_t arcs; /* activities first */
    arc *arc;
    int64_t *length;        /* [steps] */
    int64_t *upto;          /* [steps] rising within an arc */
    int32_t *source, *sink; /* [components] */
    int64_t *first_link;    /* [nodes + 1] */
    int64_t *link;          /* [2 arcs] by node that it leaves: 2 arc, +1: against the arc */
    int64_t *potential;     /* [nodes] when a node is reached, up to a constant for each component */
    int64_t *distance;      /* [nodes] of a search; -1: not met */
    int64_t *parent;        /* [nodes] link that led there */
    int32_t *met;           /* [nodes] what a search has met */
    int32_t *hand;          /* [nodes] of these, what is as near as the last that it left */
    heap search;
    heap longest;     /* components */
    int64_t *shorter; /* [components] minus the length of the longest augmenting path */
    int32_t *twin;    /* [2 activities] scratch: union-find over starts and ends */
    int clipped;      /* nonzero: some step lies above FLOW_MOST */
} network;

static int heap_before(const heap *h, int32_t a, int32_t b)
{
    return h->key[a] != h->key[b] ? h->key[a] < h->key[b] : a < b;
}

static void heap_put(heap *h, int32_t slot, int32_t index)
{
    h->slot[slot] = index;
    h->place[index] = slot;
}

static void heap_rise(heap *h, int32_t slot, int32_t index)
{
    for (int32_t up; slot > 0 && heap_before(h, index, h->slot[up = (slot - 1) / 2]); slot = up)
        heap_put(h, slot, h->slot[up]);
    heap_put(h, slot, index);
}

static void heap_sink(heap *h, int32_t slot, int32_t index)
{
    for (int32_t down; (down = 2 * slot + 1) < h->count; slot = down) {
        down += down + 1 < h->count && heap_before(h, h->slot[down + 1], h->slot[down]);
        if (!heap_before(h, h->slot[down], index))
            break;
        heap_put(h, slot, h->slot[down]);
    }
    heap_put(h, slot, index);
}

/* Puts an index in, or up after its key fell. */
static void heap_lift(heap *h, int32_t index)
{
    heap_rise(h, h->place[index] < 0 ? h->count++ : h->place[index], index);
}

static int32_t heap_pop(heap *h)
{
    int32_t top = h->slot[0];
    h->place[top] = -1;
    if (--h->count > 0)
        heap_sink(h, 0, h->slot[h->count]);
    return top;
}

static void open_heap(hbp_context *context, heap *h, const int64_t *key, int32_t count)
{
    h->key = key;
    h->slot = hbp__take(context, (uint64_t)count, sizeof *h->slot);
    h->place = hbp__take(context, (uint64_t)count, sizeof *h->place);
}

static void clear_heap(heap *h, int32_t count)
{
    memset(h->place, -1, (size_t)count * sizeof *h->place);
}

static int32_t start_of(int32_t activity)
{
    return 2 * activity;
}

static int32_t end_of(int32_t activity)
{
    return 2 * activity + 1;
}

/* Whether the precedence is the only one out of its `from` or into its `to`: then an end and a start may as
 * well be one node, since the one that has only this arc can wait for the other. */
static int is_only(const hbp__project *p, const int32_t *degree, int64_t i)
{
    return degree[end_of(p->from[i])] == 1 || degree[start_of(p->to[i])] == 1;
}

/* Nodes and components; `degree` [2 activities] counts precedences at starts and ends, `part` [activities]
 * and `lead` [2 activities] are scratch. */
static void number_nodes(network *n, int32_t *degree, int32_t *part, int32_t *lead)
{
    const hbp__project *p = n->project;
    int32_t count = p->activities;
    for (int32_t a = 0; a < count; a++) {
        n->twin[start_of(a)] = start_of(a);
        n->twin[end_of(a)] = end_of(a);
        part[a] = a;
        lead[start_of(a)] = lead[end_of(a)] = -1;
    }
    for (int64_t i = 0; i < p->arcs; i++) {
        degree[end_of(p->from[i])]++;
        degree[start_of(p->to[i])]++;
        hbp__join_sets(part, p->from[i], p->to[i]);
    }
    for (int64_t i = 0; i < p->arcs; i++)
        if (is_only(p, degree, i))
            hbp__join_sets(n->twin, end_of(p->from[i]), start_of(p->to[i]));
    for (int32_t i = 0; i < 2 * count; i++) { /* one source and one sink for each component */
        int32_t *first = &lead[2 * hbp__set_of(part, i / 2) + i % 2];
        if (degree[i])
            continue;
        if (*first < 0)
            *first = i;
        hbp__join_sets(n->twin, *first, i);
    }
    /* A root is the least of its set, so its number is there before the others ask. */
    for (int32_t i = 0; i < 2 * count; i++)
        degree[i] = hbp__set_of(n->twin, i) == i ? n->nodes++ : degree[hbp__set_of(n->twin, i)];
    for (int32_t i = 0; i < 2 * count; i++)
        n->twin[i] = degree[i];
    for (int32_t a = 0; a < count; a++) {
        if (part[a] != a)
            continue;
        n->source[n->components] = n->twin[lead[start_of(a)]];
        n->sink[n->components++] = n->twin[lead[end_of(a)]];
    }
}

/* Precedences between nodes that stayed apart, and what is at each node. */
static hbp_status link_nodes(hbp_context *context, network *n)
{
    const hbp__project *p = n->project;
    for (int32_t a = 0; a < p->activities; a++)
        n->arc[n->arcs++] = (arc){.tail = n->twin[start_of(a)], .head = n->twin[end_of(a)]};
    for (int64_t i = 0; i < p->arcs; i++) {
        int32_t tail = n->twin[end_of(p->from[i])], head = n->twin[start_of(p->to[i])];
        if (tail != head)
            n->arc[n->arcs++] = (arc){.tail = tail, .head = head};
    }
    n->first_link = hbp__take_zero(context, (uint64_t)n->nodes + 1, sizeof *n->first_link);
    n->link = hbp__take(context, 2 * (uint64_t)n->arcs, sizeof *n->link);
    HBP__TRY(hbp__scratch_check(context, WHAT));
    for (int64_t i = 0; i < n->arcs; i++) {
        n->first_link[n->arc[i].tail]++;
        n->first_link[n->arc[i].head]++;
    }
    for (int32_t v = 0; v < n->nodes; v++)
        n->first_link[v + 1] += n->first_link[v];
    for (int64_t i = n->arcs - 1; i >= 0; i--) {
        n->link[--n->first_link[n->arc[i].head]] = 2 * i + 1;
        n->link[--n->first_link[n->arc[i].tail]] = 2 * i;
    }
    return HBP_OK;
}

static hbp_status open_network(hbp_context *context, network *n)
{
    uint64_t count = (uint64_t)n->project->activities, arcs = count + (uint64_t)n->project->arcs;
    uint64_t steps = (uint64_t)n->project->first[count] + (uint64_t)n->project->arcs;
    n->twin = hbp__take(context, 2 * count, sizeof *n->twin);
    n->source = hbp__take(context, count, sizeof *n->source);
    n->sink = hbp__take(context, count, sizeof *n->sink);
    n->arc = hbp__take(context, arcs, sizeof *n->arc);
    n->length = hbp__take(context, steps, sizeof *n->length);
    n->upto = hbp__take(context, steps, sizeof *n->upto);
    int64_t mark = hbp__scratch_mark(context);
    int32_t *degree = hbp__take_zero(context, 2 * count, sizeof *degree);
    int32_t *part = hbp__take(context, count, sizeof *part);
    int32_t *lead = hbp__take(context, 2 * count, sizeof *lead);
    HBP__TRY(hbp__scratch_check(context, WHAT));
    number_nodes(n, degree, part, lead);
    hbp__scratch_release(context, mark);
    HBP__TRY(link_nodes(context, n));
    uint64_t nodes = (uint64_t)n->nodes;
    n->potential = hbp__take(context, nodes, sizeof *n->potential);
    n->distance = hbp__take(context, nodes, sizeof *n->distance);
    n->parent = hbp__take(context, nodes, sizeof *n->parent);
    n->met = hbp__take(context, nodes, sizeof *n->met);
    n->hand = hbp__take(context, nodes, sizeof *n->hand);
    n->shorter = hbp__take(context, (uint64_t)n->components, sizeof *n->shorter);
    open_heap(context, &n->search, n->distance, n->nodes);
    open_heap(context, &n->longest, n->shorter, n->components);
    HBP__TRY(hbp__scratch_check(context, WHAT));
    clear_heap(&n->search, n->nodes);
    clear_heap(&n->longest, n->components);
    return HBP_OK;
}

/* Lengths so fine that all the longest durations still come to less than 2^60: integers are kept exactly
 * there, and what is cut off others only lowers the bound. */
static double scale_of(const hbp__project *p)
{
    double sum = 0, scale = 1;
    for (int32_t a = 0; a < p->activities; a++)
        sum += p->duration[p->first[a + 1] - 1];
    for (; sum * scale < 0x1p58; scale *= 2)
        ;
    for (; sum * scale >= 0x1p59; scale /= 2)
        ;
    return scale;
}

/* Steps of every arc in units of flow: activity a runs point i while flow is below the slope of its cost
 * between points i - 1 and i. */
static void fill_steps(network *n)
{
    const hbp__project *p = n->project;
    int64_t step = 0;
    n->clipped = 0;
    for (int64_t i = 0; i < n->arcs; i++) {
        arc *a = &n->arc[i];
        a->first = a->at = step;
        a->flow = 0;
        if (i >= p->activities) {
            n->length[step] = 0;
            n->upto[step++] = INT64_MAX;
            continue;
        }
        int64_t under = 0;
        for (int64_t k = p->first[i + 1] - 1; under < INT64_MAX; k--) {
            int64_t upto = INT64_MAX;
            if (k > p->first[i]) {
                double slope = (p->cost[k - 1] - p->cost[k]) / (p->duration[k] - p->duration[k - 1]);
                upto = hbp__round_i64(slope / n->unit);
                if (upto >= FLOW_MOST) {
                    upto = INT64_MAX;
                    n->clipped = 1;
                }
            }
            if (upto <= under)
                continue;
            n->length[step] = (int64_t)(p->duration[k] * n->scale);
            n->upto[step++] = under = upto;
        }
    }
}

/* Earliest times of all nodes when every activity takes its longest duration, or its shortest. */
static void reach_nodes(network *n, int fast)
{
    const hbp__project *p = n->project;
    memset(n->potential, 0, (size_t)n->nodes * sizeof *n->potential);
    for (int32_t a = 0; a < p->activities; a++) {
        const arc *own = &n->arc[a];
        int64_t length = fast ? (int64_t)(p->duration[p->first[a]] * n->scale) : n->length[own->first];
        int64_t *end = &n->potential[own->head];
        *end = hbp__max_i64(*end, n->potential[own->tail] + length);
        for (int64_t k = n->first_link[own->head]; k < n->first_link[own->head + 1]; k++) {
            int64_t i = n->link[k] / 2;
            if (i >= p->activities && n->arc[i].tail == own->head)
                n->potential[n->arc[i].head] = hbp__max_i64(n->potential[n->arc[i].head], *end);
        }
    }
}

/* How much more flow a link takes, and at what length; 0 for none. */
static int64_t room_of(const network *n, int64_t link, int64_t *length)
{
    const arc *a = &n->arc[link / 2];
    if (link % 2 == 0) {
        *length = n->length[a->at];
        return n->upto[a->at] - a->flow;
    }
    int64_t at = a->at;
    if (at > a->first && a->flow == n->upto[at - 1])
        at--;
    *length = -n->length[at];
    return a->flow - (at > a->first ? n->upto[at - 1] : 0);
}

static int32_t node_behind(const network *n, int64_t link)
{
    return link % 2 ? n->arc[link / 2].head : n->arc[link / 2].tail;
}

static int32_t node_ahead(const network *n, int64_t link)
{
    return link % 2 ? n->arc[link / 2].tail : n->arc[link / 2].head;
}

/* The longest augmenting path of a component, by Dijkstra on what links fall short of their potentials; nodes
 * farther than the sink keep theirs, up to the constant. Most links fall short by nothing: what they lead to
 * is on hand and need not go through the heap. Returns how many nodes it left. */
static int64_t search_path(network *n, int32_t component)
{
    int32_t source = n->source[component], sink = n->sink[component], mets = 0, hands = 0, left = 0;
    n->distance[source] = 0;
    n->met[mets++] = source;
    n->hand[hands++] = source;
    for (; hands || n->search.slot[0] != sink; left++) {
        int32_t v = hands ? n->hand[--hands] : heap_pop(&n->search);
        for (int64_t k = n->first_link[v]; k < n->first_link[v + 1]; k++) {
            int64_t length;
            if (!room_of(n, n->link[k], &length))
                continue;
            int32_t w = node_ahead(n, n->link[k]);
            int64_t distance = n->distance[v] + n->potential[w] - n->potential[v] - length;
            int is_new = n->distance[w] < 0;
            if (!is_new && n->distance[w] <= distance)
                continue;
            n->distance[w] = distance;
            n->parent[w] = n->link[k];
            if (is_new)
                n->met[mets++] = w;
            if (is_new && distance == n->distance[v] && w != sink)
                n->hand[hands++] = w;
            else
                heap_lift(&n->search, w);
        }
    }
    int64_t most = n->distance[sink];
    for (int32_t i = 0; i < mets; i++) {
        int32_t v = n->met[i];
        n->potential[v] += hbp__max_i64(most - n->distance[v], 0);
        n->distance[v] = -1;
        n->search.place[v] = -1;
    }
    n->search.count = 0;
    n->shorter[component] = n->potential[source] - n->potential[sink];
    return left;
}

/* Sends along the component's path what fits, `most` at most; returns it. */
static int64_t augment_path(network *n, int32_t component, int64_t most)
{
    int32_t source = n->source[component], sink = n->sink[component];
    int64_t length;
    for (int32_t v = sink; v != source; v = node_behind(n, n->parent[v]))
        most = hbp__min_i64(most, room_of(n, n->parent[v], &length));
    for (int32_t v = sink; v != source; v = node_behind(n, n->parent[v])) {
        arc *a = &n->arc[n->parent[v] / 2];
        a->flow += n->parent[v] % 2 ? -most : most;
        while (a->flow >= n->upto[a->at])
            a->at++;
        while (a->at > a->first && a->flow < n->upto[a->at - 1])
            a->at--;
    }
    return most;
}

/* Traces the trade-off until the quotient no longer rises; *value is that of the flow, *steps goes down,
 * below 1 when they did not suffice. */
static hbp_status trace_trade_off(hbp_context *context, network *n, int64_t *steps, int64_t *value)
{
    double cost = 0, total = n->rate;
    int64_t ticks = 0;
    for (int32_t a = 0; a < n->project->activities; a++)
        cost += n->project->cost[n->project->first[a + 1] - 1];
    fill_steps(n);
    reach_nodes(n, 0);
    n->longest.count = 0;
    for (int32_t c = 0; c < n->components; c++) {
        n->longest.place[c] = -1;
        search_path(n, c);
        heap_lift(&n->longest, c);
    }
    for (*value = 0; *value < FLOW_MOST; ticks++) {
        int32_t c = n->longest.slot[0];
        double length = (double)-n->shorter[c] / n->scale;
        if (length * total < cost || *steps <= 0)
            break;
        if (ticks % 256 == 0)
            HBP__TRY(hbp__tick(context, "time and cost", 0, 0));
        int64_t more = augment_path(n, c, FLOW_MOST - *value);
        *value += more;
        total += (double)more * n->unit;
        cost += (double)more * n->unit * length;
        *steps -= search_path(n, c);
        heap_sink(&n->longest, 0, c);
    }
    return HBP_OK;
}

/* The quotient of the flow, less what its roundings may have added: each term of its sums is exact to 2^-51,
 * and there are as many as activities. */
static double quotient_of(const network *n, int64_t value)
{
    const hbp__project *p = n->project;
    double sum = 0;
    for (int32_t a = 0; a < p->activities; a++) {
        double flow = (double)n->arc[a].flow * n->unit, least = 0;
        for (int64_t k = p->first[a]; k < p->first[a + 1]; k++) {
            double here = p->cost[k] + flow * p->duration[k];
            least = k == p->first[a] || here < least ? here : least;
        }
        sum += least;
    }
    return sum / (n->rate + (double)value * n->unit) * (1 - (p->activities + 16.) * 0x1p-52);
}

/* Flows in units of 2^-50 of the rate reach 2^11 of it. Where more is worth sending, a coarser unit is as
 * good, since what its rounding loses is shared by rate + F: of the least C at most 2^-41 of all the longest
 * durations over C. */
static hbp_status bound_least(hbp_context *context, network *n, int64_t limit, double *least, int32_t *exact)
{
    int64_t steps = limit > 0 ? limit : INT64_MAX, fast = 0;
    n->scale = scale_of(n->project);
    memset(n->distance, -1, (size_t)n->nodes * sizeof *n->distance);
    reach_nodes(n, 1);
    for (int32_t c = 0; c < n->components; c++)
        fast = hbp__max_i64(fast, n->potential[n->sink[c]]);
    double best = (double)fast;
    if ((int64_t)best > fast) /* rounded up */
        best = (double)(fast - (fast >> 52));
    best /= n->scale;
    double unit = n->rate * 0x1p-50;
    for (int run = 0; run < 3; run++, unit *= 0x1p20) {
        int64_t value;
        n->unit = unit;
        HBP__TRY(trace_trade_off(context, n, &steps, &value));
        double here = quotient_of(n, value);
        best = here > best ? here : best;
        if (value < FLOW_MOST || !n->clipped)
            break;
    }
    *least = best;
    *exact = steps > 0;
    return HBP_OK;
}

hbp_status hbp__time_cost(hbp_context *context, const hbp__project *project, double rate, int64_t limit,
                          double *least, int32_t *exact)
{
    network n = {.project = project, .rate = rate};
    if (project->activities == 0) {
        *least = 0;
        *exact = 1;
        return HBP_OK;
    }
    int64_t mark = hbp__scratch_mark(context);
    HBP__TRY(open_network(context, &n));
    HBP__TRY(bound_least(context, &n, limit, least, exact));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
