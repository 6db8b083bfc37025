/* An epoch in two parts: steps of the hierarchy for the long samples, with the short ones that fill their
 * packs, and the rest for steps that are planned one by one. */
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "data/lengths/lengths_subset.h"
#include "data/plan/plan.h"
#include "epoch/join.h"
#include "epoch/stratify.h"
#include "schedule/mix.h"

typedef struct parting {
    const hbp__epoch *epoch;
    const hbp_groups *groups;
    hbp_groups wide;  /* the groups, one of them in two at the longest sample of the rest */
    int64_t kept;     /* first group of `wide` whose packs are kept */
    int64_t inserted; /* rows of `wide` past which one more was inserted */
    hbp_packs *packs; /* of all samples in the wide groups */
    uint32_t *sample; /* [samples] those of the packs that are kept, then the rest */
    int64_t longs;
    int64_t long_packs;
} parting;

/* Splits the group that holds samples on both sides of `longest`; 0 when there is no room for one more. */
static int widen_groups(parting *p, int64_t longest)
{
    hbp_groups *wide = &p->wide;
    *wide = *p->groups; /* borrows its table */
    int64_t g = 0;
    while (g < wide->count && wide->threshold[g] < longest)
        g++;
    p->inserted = wide->count;
    p->kept = g + 1;
    if (g == wide->count || wide->threshold[g] == longest)
        return 1;
    if (wide->count == HBP_MAX_GROUPS)
        return 0;
    uint64_t behind = (uint64_t)(wide->count - g);
#define SHIFT(column) memmove(&wide->column[g + 1], &wide->column[g], behind * sizeof *wide->column)
    SHIFT(threshold);
    SHIFT(pack_length);
    SHIFT(sp);
    SHIFT(recompute);
    SHIFT(packs);
    SHIFT(micro_batches);
    SHIFT(token_ns);
    SHIFT(square_ns);
    SHIFT(fixed_ns);
#undef SHIFT
    wide->threshold[g] = longest;
    wide->count++;
    p->inserted = g;
    return 1;
}

/* Lists the samples of the packs that are kept, in their order, and the others. */
static hbp_status list_samples(parting *p)
{
    const hbp_packs *packs = p->packs;
    int64_t at = 0;
    p->sample = hbp__take(p->epoch->context, (uint64_t)packs->samples, sizeof *p->sample);
    HBP__TRY(hbp__scratch_check(p->epoch->context, "the parts of the epoch"));
    for (int kept = 1; kept >= 0; kept--) {
        for (int64_t i = 0; i < packs->count; i++) {
            if ((packs->group[i] >= p->kept) != kept)
                continue;
            p->long_packs += kept;
            for (int64_t j = packs->offsets[i]; j < packs->offsets[i + 1]; j++)
                p->sample[at++] = packs->sample[j];
        }
        if (kept)
            p->longs = at;
    }
    return HBP_OK;
}

/* The packs that are kept, as packs of `lengths`, which holds their samples in the order of the packs. */
static hbp_status keep_packs(const parting *p, const hbp_lengths *lengths, hbp_packs **out)
{
    hbp_packs *kept = hbp__packs_new(p->epoch->context, lengths, p->long_packs);
    if (!kept)
        return hbp__fail_memory(p->epoch->context, "the packs of long samples");
    int64_t at = 0;
    for (int64_t i = 0; i < p->packs->count; i++) {
        int32_t g = p->packs->group[i];
        if (g < p->kept)
            continue;
        kept->group[at] = g > p->inserted ? g - 1 : g;
        kept->max_vision[kept->group[at]] = p->packs->max_vision[g];
        kept->offsets[at + 1] = kept->offsets[at] + p->packs->offsets[i + 1] - p->packs->offsets[i];
        at++;
    }
    for (int64_t i = 0; i < kept->samples; i++)
        kept->sample[i] = (uint32_t)i;
    kept->groups = p->groups->count;
    kept->sequence_multiple = p->packs->sequence_multiple;
    kept->pack_multiple = p->packs->pack_multiple;
    kept->padding = p->packs->padding;
    hbp_status status = hbp__packs_measure(p->epoch->context, kept);
    if (status >= 0)
        *out = kept;
    else
        hbp_packs_free(kept);
    return status;
}

static hbp_status plan_longs(const parting *p, const hbp_balance_options *balance, hbp_plan **out)
{
    hbp_context *context = p->epoch->context;
    hbp_lengths *lengths = NULL;
    hbp_packs *packs = NULL;
    hbp__layout layout = {.ns = 0};
    hbp_status status = hbp__lengths_subset(context, p->epoch->lengths, p->sample, p->longs, &lengths);
    if (status >= 0)
        status = keep_packs(p, lengths, &packs);
    if (status >= 0)
        status = hbp__layout_open_mixed(context, packs, p->groups, p->epoch->cost, balance, 0, &layout);
    if (status >= 0)
        status = hbp__assemble(context, packs, p->groups, p->epoch->cost, balance, &layout.batches,
                               &layout.steps, out);
    hbp__layout_close(&layout);
    hbp_packs_free(packs);
    hbp_lengths_free(lengths);
    return status;
}

void hbp__parted_close(hbp__parted *parted)
{
    hbp_plan_free(parted->longs);
    hbp_lengths_free(parted->rest);
    *parted = (hbp__parted){NULL, NULL};
}

hbp_status hbp__parted_open(const hbp__epoch *epoch, const hbp_groups *groups, const hbp_fill_options *fill,
                            const hbp_balance_options *balance, int64_t longest, hbp__parted *parted)
{
    parting p = {.epoch = epoch, .groups = groups};
    int64_t mark = hbp__scratch_mark(epoch->context);
    *parted = (hbp__parted){NULL, NULL};
    if (!widen_groups(&p, longest))
        return HBP_OK;
    hbp_status status = hbp__epoch_fill(epoch, epoch->lengths, &p.wide, fill, &p.packs);
    if (status >= 0)
        status = list_samples(&p);
    int64_t rest = status < 0 || !p.longs ? 0 : epoch->lengths->count - p.longs;
    if (rest)
        status = plan_longs(&p, balance, &parted->longs);
    if (status >= 0 && rest)
        status = hbp__lengths_subset(epoch->context, epoch->lengths, p.sample + p.longs, rest, &parted->rest);
    hbp_packs_free(p.packs);
    if (status < 0)
        hbp__parted_close(parted);
    return hbp__leave(epoch->context, mark, status < 0 ? status : HBP_OK);
}

/* One step after the other, those of long samples spread evenly. */
static hbp_status slice_parts(hbp_context *context, const hbp_plan *longs, const hbp_plan *rest,
                              hbp_plan **part)
{
    int64_t steps = longs->steps + rest->steps;
    for (int64_t s = 0; s < steps; s++) {
        int64_t before = s * longs->steps / steps, is_long = (s + 1) * longs->steps / steps > before;
        HBP__TRY(
            hbp__plan_slice(context, is_long ? longs : rest, is_long ? before : s - before, 1, &part[s]));
    }
    return HBP_OK;
}

hbp_status hbp__parted_join(const hbp__epoch *epoch, const hbp__parted *parted, const hbp_plan *rest,
                            hbp_plan **out)
{
    hbp_context *context = epoch->context;
    int64_t steps = parted->longs->steps + rest->steps;
    int64_t mark = hbp__scratch_mark(context);
    hbp_plan **part = hbp__take_zero(context, (uint64_t)steps, sizeof *part), *plan = NULL;
    HBP__TRY(hbp__scratch_check(context, "the parts"));
    hbp_status status = slice_parts(context, parted->longs, rest, part);
    if (status >= 0)
        status = hbp__plan_join(context, part, steps, epoch->lengths, &plan);
    for (int64_t s = 0; s < steps; s++)
        hbp_plan_free(part[s]);
    if (status >= 0)
        status = hbp__epoch_seal(epoch, &plan);
    if (status >= 0)
        *out = plan;
    return hbp__leave(context, mark, status);
}
