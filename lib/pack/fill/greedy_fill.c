/* hbp_greedy_fill: checks the options, chooses the fill, measures what it made. */
#include "base/methods.h"
#include "hbp/pack.h"

#include "base/checked.h"
#include "base/options.h"
#include "base/scratch.h"
#include "pack/fill/fill.h"
#include "pack/fill/score.h"
#include "pack/tuning.h"
#include "solve/packing/tight_pack.h"

static void fill_defaults(hbp_fill_options *options)
{
    if (!options->sequence_multiple)
        options->sequence_multiple = 1;
    if (!options->pack_multiple)
        options->pack_multiple = 1;
}

typedef hbp_status (*fill_function)(hbp_context *, const hbp_lengths *, const hbp_groups *,
                                    const hbp_fill_options *, hbp_packs **);

static hbp_status run_fill(hbp_context *context, fill_function fill, const hbp_lengths *lengths,
                           const hbp_groups *groups, const hbp_fill_options *options, hbp_packs **out)
{
    int64_t mark = hbp__scratch_mark(context);
    HBP__TRY(fill(context, lengths, groups, options, out));
    hbp__scratch_release(context, mark);
    hbp_status status = hbp__packs_finish(context, groups, options, *out);
    if (status < 0) {
        hbp_packs_free(*out);
        *out = NULL;
    }
    return status;
}

/* What fewer packs could save, in ns, but for what their balance does: what is paid for each micro-batch
 * whatever it holds. */
static double possible_saving(const hbp_packs *packs, const hbp_groups *groups)
{
    int64_t count[HBP_MAX_GROUPS] = {0};
    double saving = 0;
    for (int64_t p = 0; p < packs->count; p++)
        count[packs->group[p]]++;
    for (int64_t g = 0; g < groups->count; g++) {
        int64_t fewest = hbp__ceil_div(packs->bound[g], groups->packs[g]);
        saving += (double)(hbp__ceil_div(count[g], groups->packs[g]) - fewest) * groups->fixed_ns[g];
    }
    return saving;
}

/* Keeps the fill with the lower predicted time, the first when they are equal. */
static hbp_status keep_quicker(hbp_context *context, const hbp_groups *groups, hbp_packs *fresh,
                               hbp__filling *best)
{
    int64_t ns = 0;
    const hbp_status status = hbp__packs_score(context, fresh, groups, NULL, 0, &ns, NULL);
    if (status >= 0 && (!best->packs || ns < best->ns)) {
        hbp_packs *slower = best->packs;
        best->packs = fresh;
        best->ns = ns;
        fresh = slower;
    }
    hbp_packs_free(fresh);
    return status;
}

/* Whether what a fill could be quicker by is worth another. */
static int is_worth(const hbp__filling *best)
{
    return best->saving > (double)best->ns / HBP__FILL_WORTH_TIGHT;
}

/* Runs a fill; best->saving becomes that of what it made. */
static hbp_status try_fill(hbp_context *context, fill_function fill, const hbp_lengths *lengths,
                           const hbp_groups *groups, const hbp_fill_options *options, hbp__filling *best)
{
    hbp_packs *fresh = NULL;
    HBP__TRY(run_fill(context, fill, lengths, groups, options, &fresh));
    best->saving = possible_saving(fresh, groups);
    return keep_quicker(context, groups, fresh, best);
}

/* Whether fewer packs seem to take less than a rival does. */
static hbp_status may_win(hbp_context *context, const hbp_groups *groups, const hbp__filling *best,
                          const hbp__rival *rival, int *may)
{
    int64_t ns, least_ns;
    *may = 1;
    if (!rival)
        return HBP_OK;
    HBP__TRY(hbp__packs_score(context, best->packs, groups, NULL, rival->step_ns, &ns, &least_ns));
    *may = least_ns < rival->ns;
    return HBP_OK;
}

/* Narrow data leaves a balanced fill with gaps that a tight one avoids. Where that could save enough, the one
 * with the lower predicted time wins, the balanced one when they are equal; where it could still, and no
 * effort was asked for, a brief search for fewer packs is to come. */
static hbp_status balanced_or_tight(hbp_context *context, const hbp_lengths *lengths,
                                    const hbp_groups *groups, const hbp_fill_options *options,
                                    const hbp__rival *rival, hbp__filling *best)
{
    int may = 0;
    HBP__TRY(try_fill(context, hbp__fill_balanced, lengths, groups, options, best));
    if (is_worth(best))
        HBP__TRY(may_win(context, groups, best, rival, &may));
    if (may)
        HBP__TRY(try_fill(context, hbp__fill_tight, lengths, groups, options, best));
    if (!may || options->effort || !is_worth(best))
        best->saving = 0;
    return HBP_OK;
}

static hbp_status begin(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                        const hbp_fill_options *options, const hbp__rival *rival, hbp__filling *filling)
{
    hbp_fill_options *all = &filling->options;
    HBP__TRY(hbp__require_samples(context, lengths, "lengths"));
    HBP__TRY(hbp__require(context, groups, "groups"));
    HBP__TRY(hbp__options_read(context, all, sizeof *all, options, "hbp_fill_options"));
    fill_defaults(all);
    for (int64_t g = 0; g < groups->count; g++)
        if (groups->pack_length[g] < all->pack_multiple)
            return hbp__fail(context, HBP_E_INVALID,
                             "a pack of %lld tokens is shorter than pack_multiple %lld",
                             (long long)groups->pack_length[g], (long long)all->pack_multiple);
    if (hbp__fill_method(all->method) == HBP__FILL_BALANCED)
        return balanced_or_tight(context, lengths, groups, all, rival, filling);
    return run_fill(context,
                    hbp__fill_method(all->method) == HBP__FILL_TIGHT ? hbp__fill_tight : hbp__fill_paper,
                    lengths, groups, all, &filling->packs);
}

hbp_status hbp__fill_begin(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                           const hbp_fill_options *options, const hbp__rival *rival, hbp__filling *filling)
{
    *filling = (hbp__filling){.packs = NULL};
    const int64_t mark = hbp__scratch_mark(context);
    const hbp_status status =
        hbp__leave(context, mark, begin(context, lengths, groups, options, rival, filling));
    if (status < 0) {
        hbp_packs_free(filling->packs);
        filling->packs = NULL;
    }
    return status;
}

hbp_status hbp__fill_search(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                            hbp__filling *filling)
{
    if (filling->saving <= 0)
        return HBP_OK;
    const int64_t mark = hbp__scratch_mark(context);
    const hbp__padding padding = filling->packs->padding;
    hbp_fill_options brief = filling->options;
    brief.effort = HBP__BRIEF_EFFORT;
    const hbp_status status = try_fill(context, hbp__fill_tight, lengths, groups, &brief, filling);
    filling->packs->padding = padding;
    filling->saving = 0;
    return hbp__leave(context, mark, status);
}

hbp_status hbp__fill_finish(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                            hbp__filling *filling, hbp_packs **out)
{
    const hbp_status status = hbp__fill_search(context, lengths, groups, filling);
    if (status < 0)
        hbp_packs_free(filling->packs);
    else
        *out = filling->packs;
    return status;
}

hbp_status hbp__greedy_fill(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                            const hbp_fill_options *options, hbp_packs **out)
{
    hbp__filling filling;
    HBP__TRY(hbp__fill_begin(context, lengths, groups, options, NULL, &filling));
    return hbp__fill_finish(context, lengths, groups, &filling, out);
}

hbp_status hbp_greedy_fill(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                           const hbp_fill_options *options, hbp_packs **out)
{
    HBP__ENTER_OUT(context, out);
    return hbp__greedy_fill(context, lengths, groups, options, out);
}
