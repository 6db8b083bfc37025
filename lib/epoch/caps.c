/* Caps against the longest sample, before any step is planned.
 *
 * Padding to a multiple never makes a longer sample the shorter one, so without links the longest sample
 * tells for all; linked samples are held against the caps one group of them after the other. O(samples), with
 * links O(samples log samples). */
#include "data/lengths_subset.h"
#include "epoch/epoch.h"
#include "step/step.h"

/* The first of the longest samples. */
static uint32_t find_longest(const hbp_lengths *lengths)
{
    int64_t i = lengths->length ? 0 : lengths->bin_first[lengths->bins - 1];
    while (hbp__lengths_get(lengths, i) < lengths->bin_length[lengths->bins - 1])
        i++;
    return (uint32_t)i;
}

hbp_status hbp__epoch_check_caps(const hbp__epoch *epoch)
{
    hbp_context *context = epoch->context;
    hbp_lengths *longest = NULL;
    hbp_step_options options;
    hbp__step step;
    hbp__epoch_step_options(&epoch->options, &options);
    if (!epoch->lengths->tie) {
        uint32_t sample = find_longest(epoch->lengths);
        HBP__TRY(hbp__lengths_subset(context, epoch->lengths, &sample, 1, &longest));
    }
    hbp_status status =
        hbp__step_open(context, longest ? longest : epoch->lengths, epoch->cost, &options, &step);
    hbp__step_close(&step);
    hbp_lengths_free(longest);
    return status;
}
