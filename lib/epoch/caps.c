/* Options that nothing keeps to. Caps are held against the longest sample, before any step is planned.
 *
 * Padding to a multiple never makes a longer sample the shorter one, so without links the longest sample
 * tells for all; linked samples, and those with vision units, are held against the caps one after the other.
 * O(samples), with links O(samples log samples). */
#include <stdio.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "data/lengths/lengths_make.h"
#include "data/lengths/lengths_subset.h"
#include "epoch/epoch.h"
#include "step/step.h"

/* The first of the longest samples. */
static hbp_status find_longest(hbp_context *context, const hbp_lengths *lengths, uint32_t *sample)
{
    int64_t i = lengths->length ? 0 : lengths->bin_first[lengths->bins - 1];
    for (; i < lengths->count; i++) {
        *sample = (uint32_t)i;
        if (hbp__lengths_get(lengths, i) >= lengths->bin_length[lengths->bins - 1])
            return HBP_OK;
        HBP__TRY(hbp__tick_row(context, "step", i, lengths->count));
    }
    return hbp__lengths_changed(context);
}

hbp_status hbp__epoch_check_caps(const hbp__epoch *epoch)
{
    hbp_context *context = epoch->context;
    hbp_lengths *longest = NULL;
    int64_t mark = hbp__scratch_mark(context);
    hbp_step_options options;
    hbp__step step;
    hbp__epoch_step_options(&epoch->options, &options);
    if (!epoch->lengths->link && !hbp__epoch_counts_vision(epoch)) {
        uint32_t sample;
        HBP__TRY(find_longest(context, epoch->lengths, &sample));
        HBP__TRY(hbp__lengths_subset(context, epoch->lengths, &sample, 1, &longest));
    }
    hbp_status status =
        hbp__step_open(context, longest ? longest : epoch->lengths, epoch->cost, &options, &step);
    hbp__step_close(&step);
    hbp_lengths_free(longest);
    return hbp__leave(context, mark, status);
}

hbp_status hbp__epoch_refuse_tokens(const hbp__epoch *epoch, int64_t tokens_per_step, int64_t least)
{
    const hbp_epoch_options *o = &epoch->options;
    const char *alone = hbp__epoch_may_plan_steps(epoch) ? ""
                        : o->groups                      ? ", or no groups: steps are planned one by one then"
                        : o->window_samples              ? ", or no window_samples"
                        : o->drop_last ? ", or no drop_last: steps are planned one by one then"
                                       : "";
    char nearest[64] = "";
    if (least < INT64_MAX)
        snprintf(nearest, sizeof nearest, "; one with a step of %lld was", (long long)least);
    return hbp__fail(epoch->context, HBP_E_INFEASIBLE,
                     "no plan of steps of at most %lld tokens was found%s (composition %s, "
                     "micro_batch_multiple %d, drop_last %d); give more tokens_per_step%s",
                     (long long)tokens_per_step, nearest, hbp_composition_name(o->composition),
                     (int)o->micro_batch_multiple, (int)o->drop_last, alone);
}
