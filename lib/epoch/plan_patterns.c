/* hbp_plan_patterns: the call around an epoch by patterns. */
#include "base/methods.h"
#include "base/options.h"
#include "base/scratch.h"
#include "cost/straight.h"
#include "epoch/patterns.h"

/* Plans with one of the linear costs tried and keeps what is faster under the cost itself. */
static hbp_status try_straight(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                               const hbp_epoch_options *options, int32_t index, hbp_pattern_plan **best)
{
    hbp_pattern_plan *plan = NULL;
    const hbp_cost tried = hbp__cost_bends(&cost->terms) ? hbp__cost_tried(cost, index) : *cost;
    hbp__epoch_call call;
    hbp_status status = hbp__epoch_open(context, lengths, &tried, cost, options, &call);
    if (status >= 0)
        status = hbp__epoch_plan_patterns(&call.epoch, &plan);
    hbp__epoch_close(&call);
    HBP__TRY(status);
    hbp_pattern_plan *slower = plan;
    if (!*best || plan->predicted_ns < (*best)->predicted_ns) {
        slower = *best;
        *best = plan;
    }
    hbp_pattern_plan_free(slower);
    return HBP_OK;
}

static hbp_status plan_patterns(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                const hbp_epoch_options *options, hbp_pattern_plan **out)
{
    HBP__TRY(hbp__require(context, lengths, "lengths"));
    HBP__TRY(hbp__require(context, cost, "cost"));
    hbp_epoch_options all;
    HBP__TRY(hbp__options_read(context, &all, sizeof all, options, "hbp_epoch_options"));
    const int32_t method = hbp__epoch_method(all.method);
    if (method != HBP__EPOCH_SEARCH && method != HBP__EPOCH_PATTERNS)
        return hbp__fail(context, HBP_E_INVALID,
                         "method %s lists its samples; hbp_plan_patterns has method %s", all.method,
                         hbp__epoch_name(HBP__EPOCH_PATTERNS));
    if (all.mixture_slack)
        return hbp__fail(
            context, HBP_E_INVALID,
            "`mixture_slack` is %d, which is for composition auto; steps by patterns are stratified",
            (int)all.mixture_slack);
    all.method = hbp__epoch_name(HBP__EPOCH_PATTERNS);
    hbp_pattern_plan *best = NULL;
    hbp_status status = HBP_OK;
    for (int32_t i = 0; status >= 0 && i < hbp__cost_tries(cost); i++)
        status = try_straight(context, lengths, cost, &all, i, &best);
    if (status < 0)
        hbp_pattern_plan_free(best);
    else
        *out = best;
    return status;
}

hbp_status hbp_plan_patterns(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                             const hbp_epoch_options *options, hbp_pattern_plan **out)
{
    HBP__ENTER_OUT(context, out);
    const int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, plan_patterns(context, lengths, cost, options, out));
}
