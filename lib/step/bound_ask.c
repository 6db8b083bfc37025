/* What each sequence of a step asks of a degree in time and memory: what its bounds are sums of
 * (docs/explanation/step-bound.md). */
#include <math.h>

#include "base/checked.h"
#include "step/bound.h"

const hbp__point *hbp__bound_least_way(const hbp__step *step, int32_t j, int64_t tokens, hbp__point *scratch)
{
    const hbp__step_degree *d = &step->degree[j];
    const hbp__point *way = hbp__step_find_way(d, tokens);
    if (d->ways == 1 || step->cost->terms.layers <= HBP__STEP_WAYS - 2)
        return way;
    tokens = hbp__round_up(tokens, d->pack_multiple);
    int32_t layers = hbp__cost_fewest_layers(step->cost, d->row, tokens, 0);
    const hbp__point *first = &d->way[0], *last = &d->way[d->ways - 1];
    double part = (double)(layers - first->recompute) / (double)(last->recompute - first->recompute);
    *scratch = *way;
    scratch->recompute = layers;
    scratch->constant = first->constant + (last->constant - first->constant) * part;
    scratch->linear = first->linear + (last->linear - first->linear) * part;
    scratch->square = first->square + (last->square - first->square) * part;
    return scratch;
}

/* The same, and, where that is the first way, a second one that recomputes no more than a group which holds
 * more. Returns how many; `scratch` [2]. */
static int32_t least_ways(const hbp__step *step, int32_t j, int64_t tokens, const hbp__point **ways,
                          hbp__point *scratch)
{
    const hbp__step_degree *d = &step->degree[j];
    ways[0] = hbp__bound_least_way(step, j, tokens, &scratch[0]);
    if (tokens > d->way[0].capacity || d->ways == 1)
        return 1;
    ways[1] = hbp__bound_least_way(step, j, d->way[0].capacity + 1, &scratch[1]);
    return 2;
}

/* The same where vision units count. */
static int32_t least_vision_ways(const hbp__step *step, int32_t j, hbp__load load, const hbp__point **ways,
                                 hbp__point *scratch)
{
    const hbp__step_degree *d = &step->degree[j];
    int is_each = step->cost->terms.layers <= HBP__STEP_WAYS - 2;
    load.tokens = hbp__round_up(load.tokens, d->pack_multiple);
    const hbp__point *way = hbp__step_find_vision_way(step, j, load);
    ways[0] = way;
    if (!is_each && way > d->way) {
        int32_t least = hbp__cost_fewest_layers(step->cost, d->row, load.tokens, load.vision);
        scratch[0] = hbp__point_make(step->cost, d->row, least);
        ways[0] = &scratch[0];
    }
    if (way > d->way || d->ways == 1)
        return 1;
    ways[1] = &d->way[1];
    if (!is_each) {
        scratch[1] = hbp__point_make(step->cost, d->row, d->way[0].recompute + 1);
        ways[1] = &scratch[1];
    }
    return 2;
}

static void set_ask(const hbp__step *step, int32_t j, hbp__load load, hbp__ask *a)
{
    const hbp__step_degree *d = &step->degree[j];
    const hbp_cost_terms *t = &step->cost->terms;
    int64_t tokens = load.tokens;
    a->alone = (double)INFINITY;
    a->needs = 0;
    if (!hbp__step_holds(step, j, load))
        return;
    hbp__point scratch[2];
    const hbp__point *ways[3];
    double size = (double)tokens, limit = (double)t->limit_bytes;
    double room = limit + 0.5 - t->static_bytes + limit / 1125899906842624.0;
    double units = (double)load.vision, bytes = step->vision ? t->vision_bytes : 0;
    int32_t count = step->vision ? least_vision_ways(step, j, load, ways, scratch)
                                 : least_ways(step, j, tokens, ways, scratch);
    if (ways[count - 1]->recompute < d->way[d->ways - 1].recompute)
        ways[count++] = &d->way[d->ways - 1];
    double squares = load.squares;
    double padded = (double)hbp__round_up(tokens, d->pack_multiple);
    a->alone = ways[0]->constant - t->pack_ns + ways[0]->linear * padded + ways[0]->square * squares;
    a->alone += step->vision ? ways[0]->vision * units : 0;
    for (int32_t i = 0; i < count; i++) {
        hbp__need *n = &a->need[a->needs++];
        n->work = d->degree * (ways[i]->linear * size + ways[i]->square * squares);
        n->work += step->vision ? d->degree * (ways[i]->vision * units) : 0;
        n->share = d->ways == 1 && !(bytes > 0)
                       ? d->degree * size / (double)d->capacity
                       : hbp__cost_bytes_per_token(step->cost, d->row, ways[i]->recompute) * size / room;
        n->share += bytes > 0 ? bytes * units / room : 0;
    }
}

hbp_status hbp__bound_ask(const hbp__step *step, hbp__ask *asks)
{
    for (int64_t k = 0; k < step->count; k++) {
        if ((k + 1) % HBP__BOUND_TICK == 0)
            HBP__TRY(hbp__tick(step->context, "bound", k, step->count));
        for (int32_t j = 0; j < step->degrees; j++)
            set_ask(step, j, hbp__step_load_of(step, j, k), &asks[k * step->degrees + j]);
    }
    return HBP_OK;
}
