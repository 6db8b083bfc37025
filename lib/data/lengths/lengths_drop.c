/* Samples with more vision units than a pack may hold, left out. */
#include "base/scratch.h"
#include "data/lengths/lengths_subset.h"

/* Marks what goes: samples past max_vision, and those linked to one. Returns how many stay in *kept. */
static hbp_status mark_over(hbp_context *context, const hbp_lengths *lengths, int64_t max_vision,
                            uint8_t *over, int64_t *kept)
{
    uint8_t *link = hbp__take_zero(context, (uint64_t)lengths->links, sizeof *link);
    HBP__TRY(hbp__scratch_check(context, "samples with many vision units"));
    for (int64_t i = 0; i < lengths->count; i++) {
        HBP__TRY(hbp__tick_row(context, "limit vision", i, lengths->count));
        over[i] = hbp__lengths_vision(lengths, i) > max_vision;
        if (over[i] && lengths->link && lengths->link[i] != HBP__FREE)
            link[lengths->link[i]] = 1;
    }
    *kept = 0;
    for (int64_t i = 0; i < lengths->count; i++) {
        HBP__TRY(hbp__tick_row(context, "limit vision", i, lengths->count));
        if (lengths->link && lengths->link[i] != HBP__FREE)
            over[i] |= link[lengths->link[i]];
        *kept += !over[i];
    }
    return HBP_OK;
}

/* Lists what the data had dropped before, and what goes now. */
static hbp_status list_dropped(hbp_context *context, const hbp_lengths *lengths, const uint8_t *over,
                               int64_t count, hbp_lengths *to)
{
    to->dropped_id = hbp__new(&to->memory, (uint64_t)count, sizeof *to->dropped_id);
    to->dropped_reason = hbp__new(&to->memory, (uint64_t)count, sizeof *to->dropped_reason);
    if (!to->dropped_id || !to->dropped_reason)
        return hbp__fail_memory(context, "dropped samples");
    for (int64_t i = 0; i < lengths->dropped; i++) {
        to->dropped_id[i] = lengths->dropped_id[i];
        to->dropped_reason[i] = lengths->dropped_reason[i];
    }
    to->dropped = lengths->dropped;
    for (int64_t i = 0; i < lengths->count; i++) {
        HBP__TRY(hbp__tick_row(context, "limit vision", i, lengths->count));
        if (!over[i])
            continue;
        to->dropped_id[to->dropped] = lengths->origin ? lengths->origin[i] : i;
        to->dropped_reason[to->dropped++] = HBP_DROPPED_OVERVISION;
    }
    return HBP_OK;
}

static hbp_status drop(hbp_context *context, const hbp_lengths *lengths, int64_t max_vision,
                       hbp_lengths **out)
{
    int64_t kept, at = 0;
    uint8_t *over = hbp__take(context, (uint64_t)lengths->count, sizeof *over);
    uint32_t *index = hbp__take(context, (uint64_t)lengths->count, sizeof *index);
    HBP__TRY(hbp__scratch_check(context, "samples with many vision units"));
    HBP__TRY(mark_over(context, lengths, max_vision, over, &kept));
    if (!kept)
        return hbp__fail(
            context, HBP_E_INVALID,
            "no samples left: all %lld have, or are linked to one that has, more than %lld vision units",
            (long long)lengths->count, (long long)max_vision);
    for (int64_t i = 0; i < lengths->count; i++)
        if (!over[i])
            index[at++] = (uint32_t)i;
    HBP__TRY(hbp__lengths_subset(context, lengths, index, kept, out));
    hbp_status status = list_dropped(context, lengths, over, lengths->dropped + lengths->count - kept, *out);
    if (status < 0) {
        hbp_lengths_free(*out);
        *out = NULL;
        return status;
    }
    (*out)->digest = lengths->digest;
    (*out)->overlong_samples = lengths->overlong_samples;
    (*out)->overlong_tokens = lengths->overlong_tokens;
    return HBP_OK;
}

hbp_status hbp__lengths_drop_vision(hbp_context *context, const hbp_lengths *lengths, int64_t max_vision,
                                    hbp_lengths **out)
{
    *out = NULL;
    if (lengths->max_vision <= max_vision)
        return HBP_OK;
    if (lengths->first)
        return hbp__fail(
            context, HBP_E_INVALID,
            "the data set is split and has pieces with more than %lld vision units; over_long drop "
            "takes whole samples",
            (long long)max_vision);
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, drop(context, lengths, max_vision, out));
}
