/* Lanes made shorter: sequences move or swap places, off the rank with the largest load. */
#include "base/checked.h"
#include "step/lanes.h"
#include "step/tuning.h"

/* A change, by what the larger of the loads that it changes becomes. */
typedef struct change {
    int64_t load;
    int64_t sequence; /* that leaves its pack; -1: no change */
    int64_t pack;     /* that takes it; -1: a new one ... */
    int32_t degree;   /* ... of this degree index ... */
    int32_t rank;     /* ... from this rank on */
    int64_t back;     /* sequence that goes the other way; -1: none */
} change;

/* The blocks of a degree with the smallest loads, ascending, without those that overlap [rank, rank + ranks).
 */
static int32_t list_blocks(const hbp__lanes *l, int32_t j, int32_t rank, int32_t ranks, int32_t *block)
{
    int32_t width = l->step->degree[j].degree, count = 0;
    int64_t load[HBP__LANES_BLOCKS + 1];
    for (int32_t r = 0; r < l->step->ranks; r += width) {
        if (r < rank + ranks && rank < r + width)
            continue;
        int64_t here = hbp__lanes_load(l, r, width);
        int32_t at = count;
        while (at > 0 && load[at - 1] > here) {
            if (at < HBP__LANES_BLOCKS) {
                load[at] = load[at - 1];
                block[at] = block[at - 1];
            }
            at--;
        }
        if (at < HBP__LANES_BLOCKS) {
            load[at] = here;
            block[at] = r;
            count += count < HBP__LANES_BLOCKS;
        }
    }
    return count;
}

static void keep_better(change *best, change other)
{
    if (other.load < best->load)
        *best = other;
}

/* Sequence k, which leaves `rest` on its ranks, into the pack of a block that it lengthens the least. */
static void try_move(hbp__lanes *l, int64_t k, int64_t rest, int32_t j, int32_t block, change *best)
{
    int32_t width = l->step->degree[j].degree;
    int64_t here = hbp__lanes_load(l, block, width), seen = 0;
    if (here >= best->load)
        return;
    for (int64_t p = l->begins[block]; p >= 0 && seen < HBP__LANES_PACKS; p = l->pack[p].next) {
        if (l->pack[p].degree != j)
            continue;
        seen++;
        int64_t ns = hbp__lanes_price(l, p, k, -1);
        if (ns < INT64_MAX)
            keep_better(best, (change){hbp__max_i64(rest, here + ns - l->pack[p].ns), k, p, j, block, -1});
    }
    int may_grow = l->step->cost->terms.uneven_micro_batches || hbp__lanes_row(l, block, width) < l->rows;
    if (l->keeps || !may_grow)
        return;
    keep_better(best,
                (change){hbp__max_i64(rest, here + hbp__lanes_price_alone(l, j, k)), k, -1, j, block, -1});
}

/* Sequence k of pack p for one of pack q, on a block with load `here`. `load` is that of p's ranks. */
static void try_swaps(hbp__lanes *l, int64_t k, int64_t p, int64_t load, int64_t q, int64_t here,
                      change *best)
{
    int64_t seen = 0;
    for (int64_t other = l->pack[q].first; other >= 0 && seen < HBP__LANES_SEQUENCES;
         other = l->next[other]) {
        seen++;
        int64_t mine = hbp__lanes_price(l, p, other, k);
        if (mine >= l->pack[p].ns)
            continue;
        int64_t theirs = hbp__lanes_price(l, q, k, other);
        if (theirs == INT64_MAX)
            continue;
        int64_t after = hbp__max_i64(load + mine - l->pack[p].ns, here + theirs - l->pack[q].ns);
        keep_better(best, (change){after, k, q, -1, -1, other});
    }
}

/* Every change of a pack on the rank with load `load`. */
static void try_pack(hbp__lanes *l, int64_t p, int64_t load, change *best)
{
    const hbp__lanes_pack *pack = &l->pack[p];
    int32_t ranks = l->step->degree[pack->degree].degree, block[HBP__LANES_BLOCKS];
    for (int32_t i = 0; i < l->chains; i++) {
        int32_t j = l->chain[i], count = list_blocks(l, j, pack->rank, ranks, block);
        int64_t seen = 0;
        for (int64_t k = pack->first; k >= 0 && seen < HBP__LANES_SEQUENCES && count; k = l->next[k]) {
            seen++;
            if (!hbp__lanes_may_hold(l, j, k))
                continue;
            int64_t rest = load - pack->ns + hbp__lanes_price(l, p, -1, k);
            if (!l->keeps || pack->sequences > 1)
                try_move(l, k, rest, j, block[0], best);
            if (j != pack->degree)
                continue;
            for (int32_t b = 0; b < count; b++) {
                int64_t here = hbp__lanes_load(l, block[b], ranks), packs = 0;
                for (int64_t q = l->begins[block[b]]; q >= 0 && packs < HBP__LANES_PACKS; q = l->pack[q].next)
                    if (l->pack[q].degree == j) {
                        packs++;
                        try_swaps(l, k, p, load, q, here, best);
                    }
            }
        }
    }
}

static void apply(hbp__lanes *l, const change *c)
{
    if (c->back >= 0) {
        hbp__lanes_swap(l, c->sequence, c->back);
        return;
    }
    hbp__lanes_remove(l, c->sequence);
    if (c->pack >= 0)
        hbp__lanes_add(l, c->pack, c->sequence);
    else
        hbp__lanes_add_pack(l, c->degree, c->rank, c->sequence);
}

hbp_status hbp__lanes_improve(hbp__lanes *l, int64_t most)
{
    int64_t end = hbp__add_saturating(l->work, most);
    while (l->work < end) {
        int32_t worst = 0;
        for (int32_t r = 1; r < l->step->ranks; r++)
            if (l->load[r] > l->load[worst])
                worst = r;
        change best = {.load = l->load[worst], .sequence = -1};
        for (int32_t i = 0; i < l->chains; i++) {
            int32_t width = l->step->degree[l->chain[i]].degree;
            for (int64_t p = l->begins[worst / width * width]; p >= 0; p = l->pack[p].next)
                if (l->pack[p].degree == l->chain[i] && l->work < end)
                    try_pack(l, p, l->load[worst], &best);
        }
        if (best.sequence < 0)
            return HBP_OK;
        apply(l, &best);
        HBP__TRY(hbp__tick(l->step->context, "step", 0, 0));
    }
    return HBP_OK;
}
