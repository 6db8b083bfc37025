/* The greedy fill of a hierarchy (HBP, Algorithm 2) under two budgets (OmniBal, section 3.2): from the
 * longest packs down, each level's own items by vector packing, its gaps by what is shorter. */
#include "pack/vision/level_fill.h"

#include "base/checked.h"
#include "base/scratch.h"

typedef struct filling {
    hbp_context *context;
    const hbp__vectors *items;
    const hbp__vector_levels *levels;
    int32_t effort;
    hbp__rng *rng;
    hbp__level_packing *packing;
    int64_t packs;            /* of the levels done */
    uint32_t *item;           /* [items] those at hand */
    uint32_t *a, *b, *weight; /* [items] their sizes; weight NULL as the items' */
    uint32_t *pack_of;        /* [items] their packs */
} filling;

static int64_t level_of(const filling *f, int64_t i)
{
    const hbp__vector_levels *levels = f->levels;
    int64_t g = 0;
    while (g + 1 < levels->count &&
           (f->items->b[i] > levels->level[g].largest || f->items->a[i] > levels->level[g].vision))
        g++;
    return g;
}

/* Lists the unplaced items of level g, or those of the levels below it that its packs hold, as *vectors. */
static hbp_status list_items(filling *f, int64_t g, int below, hbp__vectors *vectors)
{
    const hbp__vectors *items = f->items;
    const hbp__vector_level *level = &f->levels->level[g];
    int64_t count = 0;
    for (int64_t i = 0; i < items->count; i++) {
        HBP__TRY(hbp__tick_row(f->context, "pack", i, items->count));
        if (f->packing->pack_of[i] != HBP__NO_PACK)
            continue;
        int64_t own = level_of(f, i);
        if (below ? own >= g || items->b[i] > level->tokens || items->a[i] > level->vision : own != g)
            continue;
        f->item[count] = (uint32_t)i;
        f->a[count] = items->a[i];
        f->b[count] = items->b[i];
        if (items->weight)
            f->weight[count] = items->weight[i];
        count++;
    }
    *vectors = (hbp__vectors){count,
                              f->a,
                              f->b,
                              items->weight ? f->weight : NULL,
                              hbp__max_i64(1, level->vision),
                              level->tokens,
                              items->max_weight};
    return HBP_OK;
}

/* Gives the items at hand the packs from f->packs on. */
static void place_items(filling *f, int64_t count)
{
    for (int64_t k = 0; k < count; k++)
        if (f->pack_of[k] != HBP__NO_PACK)
            f->packing->pack_of[f->item[k]] = (uint32_t)f->packs + f->pack_of[k];
}

/* Fills the gaps of the *packs packs of level g, whose own items are at hand, and the places of their last
 * micro-batch; *packs counts those that hold something then. */
static hbp_status fill_gaps(filling *f, int64_t g, const hbp__vectors *own, int64_t *packs)
{
    int64_t mark = hbp__scratch_mark(f->context), places = hbp__round_up(*packs, f->levels->level[g].width);
    hbp__vectors below;
    hbp__vector_load *load = hbp__take_zero(f->context, (uint64_t)places, sizeof *load);
    uint32_t *number = hbp__take_zero(f->context, (uint64_t)places, sizeof *number);
    HBP__TRY(hbp__scratch_check(f->context, "the gaps of packs"));
    for (int64_t k = 0; k < own->count; k++) {
        HBP__TRY(hbp__tick_row(f->context, "pack", k, own->count));
        hbp__vector_load *l = &load[f->pack_of[k]];
        l->a += own->a[k];
        l->b += own->b[k];
        l->weight += hbp__vector_weight(own, k);
    }
    HBP__TRY(list_items(f, g, 1, &below));
    HBP__TRY(hbp__vector_fill_gaps(f->context, &below, load, places, f->pack_of));
    for (int64_t k = 0; k < below.count; k++)
        if (f->pack_of[k] != HBP__NO_PACK && f->pack_of[k] >= *packs)
            number[f->pack_of[k]] = 1;
    for (int64_t p = *packs; p < places; p++)
        if (number[p])
            number[p] = (uint32_t)(*packs)++;
    for (int64_t k = 0; k < below.count; k++)
        if (f->pack_of[k] != HBP__NO_PACK && number[f->pack_of[k]])
            f->pack_of[k] = number[f->pack_of[k]];
    place_items(f, below.count);
    hbp__scratch_release(f->context, mark);
    return HBP_OK;
}

static hbp_status fill_level(filling *f, int64_t g)
{
    hbp__vectors own;
    hbp__vector_packing packing = {0, f->pack_of};
    HBP__TRY(list_items(f, g, 0, &own));
    f->packing->packs[g] = f->packing->bound[g] = 0;
    if (!own.count)
        return HBP_OK;
    HBP__TRY(hbp__vector_pack(f->context, &own, f->effort, f->rng, &packing, &f->packing->bound[g]));
    place_items(f, own.count);
    if (g)
        HBP__TRY(fill_gaps(f, g, &own, &packing.packs));
    f->packing->packs[g] = packing.packs;
    f->packs += packing.packs;
    return HBP_OK;
}

static hbp_status fill_all(filling *f)
{
    uint64_t rows = (uint64_t)f->items->count;
    f->item = hbp__take(f->context, rows, sizeof *f->item);
    f->a = hbp__take(f->context, rows, sizeof *f->a);
    f->b = hbp__take(f->context, rows, sizeof *f->b);
    f->weight = f->items->weight ? hbp__take(f->context, rows, sizeof *f->weight) : NULL;
    f->pack_of = hbp__take(f->context, rows, sizeof *f->pack_of);
    HBP__TRY(hbp__scratch_check(f->context, "packs under two budgets"));
    for (int64_t i = 0; i < f->items->count; i++) {
        HBP__TRY(hbp__tick_row(f->context, "pack", i, f->items->count));
        f->packing->pack_of[i] = HBP__NO_PACK;
    }
    for (int64_t g = f->levels->count - 1; g >= 0; g--)
        HBP__TRY(fill_level(f, g));
    return HBP_OK;
}

/* One level: its items are all there are, and nothing fills its gaps. */
static hbp_status fill_one(const filling *f)
{
    const hbp__vector_level *level = &f->levels->level[0];
    hbp__vectors vectors = *f->items;
    hbp__vector_packing packing = {0, f->packing->pack_of};
    vectors.capacity_a = hbp__max_i64(1, level->vision);
    vectors.capacity_b = level->tokens;
    HBP__TRY(hbp__vector_pack(f->context, &vectors, f->effort, f->rng, &packing, &f->packing->bound[0]));
    f->packing->packs[0] = packing.packs;
    return HBP_OK;
}

hbp_status hbp__level_fill(hbp_context *context, const hbp__vectors *items, const hbp__vector_levels *levels,
                           int32_t effort, hbp__rng *rng, hbp__level_packing *packing)
{
    filling f = {.context = context,
                 .items = items,
                 .levels = levels,
                 .effort = effort,
                 .rng = rng,
                 .packing = packing};
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, levels->count == 1 ? fill_one(&f) : fill_all(&f));
}
