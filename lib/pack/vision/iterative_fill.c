/* hbp_iterative_fill: checks the options and chooses the fill. */
#include "base/methods.h"
#include "hbp/pack.h"

#include "base/checked.h"
#include "base/options.h"
#include "base/scratch.h"
#include "data/packs/packs.h"
#include "pack/fill/fill.h"
#include "pack/vision/iterative_reference.h"
#include "pack/vision/vector_fill.h"

enum { ROUNDS = 50, FULL_SLACK = 128 };

static hbp_status check_budgets(hbp_context *context, const hbp_lengths *lengths,
                                hbp_iterative_fill_options *o)
{
    if (!lengths->vision)
        o->max_vision = HBP_MAX_VISION;
    HBP__TRY(hbp__check_range(context, "max_vision", o->max_vision, 1, HBP_MAX_VISION));
    /* With a budget under the slack every pack is full, as in the authors' program. */
    if (!o->full_tokens)
        o->full_tokens = o->max_tokens - FULL_SLACK;
    if (!o->full_vision)
        o->full_vision = o->max_vision;
    return HBP_OK;
}

static void fill_defaults(hbp_iterative_fill_options *o)
{
    o->sequence_multiple = o->sequence_multiple ? o->sequence_multiple : 1;
    o->pack_multiple = o->pack_multiple ? o->pack_multiple : 1;
    o->rounds = o->rounds ? o->rounds : ROUNDS;
    o->effort = o->effort ? o->effort : 1;
}

/* What the authors' program has no notion of. */
static hbp_status check_reference(hbp_context *context, const hbp_lengths *lengths,
                                  const hbp_iterative_fill_options *o)
{
    if (o->max_samples)
        return hbp__fail(context, HBP_E_INVALID, "max_samples is %d; the published fill caps no samples",
                         (int)o->max_samples);
    if (o->sequence_multiple != 1 || o->pack_multiple != 1)
        return hbp__fail(context, HBP_E_INVALID, "%s_multiple is %lld; the published fill does not pad",
                         o->sequence_multiple != 1 ? "sequence" : "pack",
                         (long long)(o->sequence_multiple != 1 ? o->sequence_multiple : o->pack_multiple));
    return hbp__reference_check(context, lengths, o->rounds, o->seed, "iterative fill");
}

static hbp_status iterative_fill(hbp_context *context, const hbp_lengths *lengths,
                                 const hbp_iterative_fill_options *options, hbp_packs **out)
{
    HBP__TRY(hbp__require_samples(context, lengths, "lengths"));
    HBP__TRY(hbp__require(context, options, "options"));
    hbp_iterative_fill_options all;
    HBP__TRY(hbp__options_read(context, &all, sizeof all, options, "hbp_iterative_fill_options"));
    fill_defaults(&all);
    HBP__TRY(check_budgets(context, lengths, &all));
    if (hbp__iterative_fill_method(all.method) == HBP__ITERATIVE_FILL_VECTOR) {
        if (all.pack_multiple > all.max_tokens)
            return hbp__fail(context, HBP_E_INVALID,
                             "a pack of %lld tokens is shorter than pack_multiple %lld",
                             (long long)all.max_tokens, (long long)all.pack_multiple);
        return hbp__vector_fill(context, lengths, &all, out);
    }
    HBP__TRY(check_reference(context, lengths, &all));
    HBP__TRY(hbp__fill_reference(context, lengths, &all, out));
    if ((*out)->count)
        return HBP_OK;
    hbp_packs_free(*out);
    *out = NULL;
    if (!lengths->vision)
        return hbp__fail(context, HBP_E_INVALID, "none of %lld samples is within %lld tokens",
                         (long long)lengths->count, (long long)all.max_tokens);
    return hbp__fail(context, HBP_E_INVALID,
                     "none of %lld samples is within %lld tokens and %lld vision units",
                     (long long)lengths->count, (long long)all.max_tokens, (long long)all.max_vision);
}

hbp_status hbp__iterative_fill(hbp_context *context, const hbp_lengths *lengths,
                               const hbp_iterative_fill_options *options, hbp_packs **out)
{
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, iterative_fill(context, lengths, options, out));
}

hbp_status hbp_iterative_fill(hbp_context *context, const hbp_lengths *lengths,
                              const hbp_iterative_fill_options *options, hbp_packs **out)
{
    HBP__ENTER_OUT(context, out);
    return hbp__iterative_fill(context, lengths, options, out);
}
