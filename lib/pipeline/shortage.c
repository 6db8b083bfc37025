/* The messages of a stage that lacks memory. */
#include "pipeline/shortage.h"

hbp_status hbp__shortage_fail(hbp_context *context, const hbp__shortage *shortage)
{
    long long need = shortage->need_bytes, limit = shortage->limit_bytes;
    if (shortage->first_layer < 0)
        return hbp__fail(context, HBP_E_INFEASIBLE,
                         "stage %d needs %lld bytes with %s and has %lld, %lld too few", (int)shortage->stage,
                         need, shortage->how, limit, need - limit);
    return hbp__fail(context, HBP_E_INFEASIBLE,
                     "%s: stage %d with layers %d..%d%s needs %lld bytes, %lld more than its %lld",
                     shortage->how, (int)shortage->stage, (int)shortage->first_layer,
                     (int)shortage->last_layer, shortage->has_more ? " and further chunks" : "", need,
                     need - limit, limit);
}
