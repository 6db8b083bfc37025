/* hbp_greedy_fill: checks the options, chooses the fill, measures what it made. */
#include "base/methods.h"
#include "hbp/pack.h"

#include "base/checked.h"
#include "base/options.h"
#include "base/scratch.h"
#include "pack/fill/fill.h"
#include "pack/fill/score.h"
#include "pack/tuning.h"

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

/* Most that fewer packs could save, in ns: what is paid for each micro-batch whatever it holds. */
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

/* Narrow data leaves a balanced fill with gaps that a tight one avoids. Where that could save enough, the one
 * with the lower predicted time wins, the balanced one when they are equal. */
static hbp_status balanced_or_tight(hbp_context *context, const hbp_lengths *lengths,
                                    const hbp_groups *groups, const hbp_fill_options *options,
                                    hbp_packs **out)
{
    hbp_packs *balanced = NULL, *tight = NULL;
    hbp_fill_options tight_options = *options;
    tight_options.effort = (int32_t)hbp__max_i64(1, options->effort);
    HBP__TRY(run_fill(context, hbp__fill_balanced, lengths, groups, options, &balanced));
    int64_t balanced_ns = 0, tight_ns = INT64_MAX;
    hbp_status status = hbp__packs_score(context, balanced, groups, NULL, 0, &balanced_ns);
    if (status >= 0 && possible_saving(balanced, groups) > (double)balanced_ns / HBP__FILL_WORTH_TIGHT) {
        status = run_fill(context, hbp__fill_tight, lengths, groups, &tight_options, &tight);
        if (status >= 0)
            status = hbp__packs_score(context, tight, groups, NULL, 0, &tight_ns);
    }
    int keep_tight = status >= 0 && tight_ns < balanced_ns;
    hbp_packs_free(status < 0 || keep_tight ? balanced : tight);
    if (status < 0)
        hbp_packs_free(tight);
    else
        *out = keep_tight ? tight : balanced;
    return status;
}

static hbp_status greedy_fill(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                              const hbp_fill_options *options, hbp_packs **out)
{
    HBP__TRY(hbp__require(context, lengths, "lengths"));
    HBP__TRY(hbp__require(context, groups, "groups"));
    hbp_fill_options all;
    HBP__TRY(hbp__options_read(context, &all, sizeof all, options, "hbp_fill_options"));
    fill_defaults(&all);
    for (int64_t g = 0; g < groups->count; g++)
        if (groups->pack_length[g] < all.pack_multiple)
            return hbp__fail(context, HBP_E_INVALID,
                             "a pack of %lld tokens is shorter than pack_multiple %lld",
                             (long long)groups->pack_length[g], (long long)all.pack_multiple);
    if (hbp__fill_method(all.method) == HBP__FILL_BALANCED)
        return balanced_or_tight(context, lengths, groups, &all, out);
    return run_fill(context,
                    hbp__fill_method(all.method) == HBP__FILL_TIGHT ? hbp__fill_tight : hbp__fill_paper,
                    lengths, groups, &all, out);
}

hbp_status hbp__greedy_fill(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                            const hbp_fill_options *options, hbp_packs **out)
{
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, greedy_fill(context, lengths, groups, options, out));
}

hbp_status hbp_greedy_fill(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                           const hbp_fill_options *options, hbp_packs **out)
{
    HBP__ENTER_OUT(context, out);
    return hbp__greedy_fill(context, lengths, groups, options, out);
}
