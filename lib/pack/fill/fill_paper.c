/* The published fill (HBP, Algorithms 2, 5 and 6): each group by iterative fill, then its gaps with samples
 * of shorter groups. */
#include <string.h>

#include "base/rng.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "data/packs/items.h"
#include "pack/fill/fill.h"
#include "pack/fill/item_fill.h"
#include "solve/fit_tree.h"
#include "solve/packing/sequence_pack.h"

/* Streams of random numbers. */
enum { SHUFFLE_STREAM = 0x70617065, FIT_STREAM = 0x69736600 };

/* Everything the published fill holds while it works. Items stand in a row: those of the longest group first,
 * then the next, shuffled within a group, so that "D_{i-1}, then D_{i-2}, ..." is a walk to the right. */
typedef struct paper {
    hbp_context *context;
    const hbp_groups *groups;
    const hbp_fill_options *options;
    hbp__items items;
    int64_t max_samples;
    int64_t capacity[HBP_MAX_GROUPS], largest[HBP_MAX_GROUPS];
    int64_t end[HBP_MAX_GROUPS + 1]; /* group g is row [end[g + 1], end[g]) */
    uint32_t *weight;                /* [items] samples; NULL: 1 */
    uint32_t *row;                   /* [items] item at each place */
    uint32_t *own;                   /* [items] what is left of a group when its turn comes */
    uint32_t *pack_of;               /* [items] */
    hbp__fit_tree sizes;             /* by place in the row; absent once packed */
    int64_t packs;
    int64_t *load, *samples; /* [room] tokens and samples of a pack */
    int32_t *group;          /* [room] */
    int64_t room;
} paper;

/* What grows is no scratch. */
static void paper_close(paper *p)
{
    const hbp__memory *memory = &p->context->memory;
    hbp__items_close(&p->items);
    hbp__fit_tree_close(&p->sizes);
    hbp__delete(memory, p->load);
    hbp__delete(memory, p->samples);
    hbp__delete(memory, p->group);
}

static int64_t weight_of(const paper *p, uint32_t item)
{
    return p->weight ? p->weight[item] : 1;
}

/* Sets out the row and the tree over it. */
static hbp_status line_up(paper *p)
{
    hbp_context *context = p->context;
    int64_t count = p->items.count, last = p->groups->count - 1;
    p->row = hbp__take(context, (uint64_t)count, sizeof *p->row);
    p->own = hbp__take(context, (uint64_t)count, sizeof *p->own);
    p->pack_of = hbp__take(context, (uint64_t)count, sizeof *p->pack_of);
    HBP__TRY(hbp__scratch_check(context, "samples to pack"));
    for (int64_t i = 0; i < count; i++) {
        HBP__TRY(hbp__tick_row(context, "fill", i, count));
        p->row[i] = (uint32_t)(count - 1 - i);
    }
    int64_t at = 0;
    p->end[last + 1] = 0;
    for (int64_t g = last; g >= 0; g--) {
        int64_t above = g ? p->largest[g - 1] : 0;
        while (at < count && p->items.size[p->row[at]] > above)
            at++;
        p->end[g] = at;
        hbp__rng rng = hbp__rng_make(p->options->seed, p->options->epoch, SHUFFLE_STREAM + (uint64_t)g);
        HBP__TRY(hbp__shuffle(context, &rng, p->row + p->end[g + 1], at - p->end[g + 1]));
    }
    return hbp__fit_tree_make(context, p->items.size, p->row, count, &p->sizes);
}

static hbp_status grow_packs(paper *p, int64_t packs)
{
    if (packs <= p->room)
        return HBP_OK;
    uint64_t room = (uint64_t)packs * 2;
    int64_t *load = hbp__renew(&p->context->memory, p->load, room, sizeof *load);
    if (load)
        p->load = load;
    int64_t *samples = hbp__renew(&p->context->memory, p->samples, room, sizeof *samples);
    if (samples)
        p->samples = samples;
    int32_t *group = hbp__renew(&p->context->memory, p->group, room, sizeof *group);
    if (group)
        p->group = group;
    if (!load || !samples || !group)
        return hbp__fail_memory(p->context, "packs");
    p->room = (int64_t)room;
    return HBP_OK;
}

/* Packs what is left of group g by iterative fill (Algorithm 2, line 4). */
static hbp_status pack_own(paper *p, int64_t g)
{
    hbp__sequence own = {0, p->own, p->items.size, p->weight};
    for (int64_t i = p->end[g + 1]; i < p->end[g]; i++) {
        HBP__TRY(hbp__tick_row(p->context, "fill", i, p->items.count));
        if (hbp__fit_tree_get(&p->sizes, i) == HBP__ABSENT)
            continue;
        p->own[own.count++] = p->row[i];
        hbp__fit_tree_set(&p->sizes, i, HBP__ABSENT);
    }
    int64_t first = p->packs;
    hbp__room room = {p->capacity[g], p->max_samples};
    hbp__rng rng = hbp__rng_make(p->options->seed, p->options->epoch, FIT_STREAM + (uint64_t)g);
    HBP__TRY(hbp__iterative_fit(p->context, &own, room, HBP__ISF_ROUNDS, &rng, p->pack_of, &p->packs));
    HBP__TRY(grow_packs(p, p->packs));
    for (int64_t k = first; k < p->packs; k++) {
        p->load[k] = p->samples[k] = 0;
        p->group[k] = (int32_t)g;
    }
    for (int64_t i = 0; i < own.count; i++) {
        HBP__TRY(hbp__tick_row(p->context, "fill", i, own.count));
        uint32_t item = p->own[i];
        p->load[p->pack_of[item]] += p->items.size[item];
        p->samples[p->pack_of[item]] += weight_of(p, item);
    }
    return HBP_OK;
}

/* Fills the gaps of group g's packs with samples of shorter groups (Algorithms 5 and 6): each pack in turn
 * takes the first that fits, and the next that fits behind it. What did not fit a pack does not fit it later,
 * so each pack walks the row once. O((fills + packs) log n). */
static hbp_status greedy_fill(paper *p, int64_t g, int64_t first)
{
    for (int64_t k = first; k < p->packs; k++) {
        if (k % 1024 == 0)
            HBP__TRY(hbp__tick(p->context, "fill", k, p->packs));
        int64_t at = p->end[g];
        while (p->load[k] < p->capacity[g] && p->samples[k] < p->max_samples) {
            at = hbp__fit_tree_first(&p->sizes, at, (uint32_t)(p->capacity[g] - p->load[k]));
            if (at < 0)
                break;
            uint32_t item = p->row[at];
            if (p->samples[k] + weight_of(p, item) <= p->max_samples) {
                p->load[k] += p->items.size[item];
                p->samples[k] += weight_of(p, item);
                p->pack_of[item] = (uint32_t)k;
                hbp__fit_tree_set(&p->sizes, at, HBP__ABSENT);
            }
            at++;
        }
    }
    return HBP_OK;
}

static hbp_status fill_groups(paper *p, const hbp_lengths *lengths, hbp_packs **out)
{
    int64_t last = p->groups->count - 1;
    hbp__fill_limits(p->groups, p->options, p->capacity, p->largest);
    HBP__TRY(hbp__items_open(p->context, lengths, p->options->sequence_multiple, p->capacity[last],
                             p->options->seed, p->options->epoch, &p->items));
    HBP__TRY(hbp__items_weights(p->context, &p->items, &p->weight));
    HBP__TRY(hbp__items_check_weights(p->context, &p->items, p->weight, p->max_samples));
    HBP__TRY(line_up(p));
    for (int64_t g = last; g >= 0; g--) {
        int64_t first = p->packs;
        HBP__TRY(pack_own(p, g));
        HBP__TRY(greedy_fill(p, g, first));
    }
    return hbp__item_fill_name(p->context, &p->items, p->pack_of, p->packs, p->group, out);
}

hbp_status hbp__fill_paper(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                           const hbp_fill_options *options, hbp_packs **out)
{
    paper p;
    memset(&p, 0, sizeof p);
    p.context = context;
    p.groups = groups;
    p.options = options;
    p.items.memory = p.sizes.memory = context->memory;
    p.max_samples = options->max_samples ? options->max_samples : INT64_MAX;
    hbp_status status = fill_groups(&p, lengths, out);
    if (status == HBP_OK)
        (*out)->groups = groups->count;
    paper_close(&p);
    return status;
}
