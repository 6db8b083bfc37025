/* The messages of a stage that lacks memory. */
#include "pipeline/shortage.h"

#include "base/quantity.h"

hbp_status hbp__shortage_fail(hbp_context *context, const hbp__shortage *shortage)
{
    const hbp__said need = hbp__say_bytes(shortage->need_bytes),
                    limit = hbp__say_bytes(shortage->limit_bytes),
                    more = hbp__say_bytes(shortage->need_bytes - shortage->limit_bytes);
    const char *remedy =
        shortage->remedy ? shortage->remedy : "more stages, or a higher limit of memory, may do";
    if (shortage->first_layer < 0)
        return hbp__fail(context, HBP_E_INFEASIBLE, "stage %d needs %s with %s and has %s, %s too few; %s",
                         (int)shortage->stage, need.text, shortage->how, limit.text, more.text, remedy);
    return hbp__fail(
        context, HBP_E_INFEASIBLE, "%s: stage %d with layers %d..%d%s needs %s, %s more than its %s; %s",
        shortage->how, (int)shortage->stage, (int)shortage->first_layer, (int)shortage->last_layer,
        shortage->has_more ? " and further chunks" : "", need.text, more.text, limit.text, remedy);
}
