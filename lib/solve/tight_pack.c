#include "solve/tight_pack.h"

#include "solve/histogram_pack.h"
#include "solve/pack_bound.h"

hbp_status hbp__tight_pack(hbp_context *context, const hbp__classes *classes, hbp__room room, int32_t effort,
                           hbp__patterns *patterns, int64_t *bound)
{
    (void)effort;
    HBP__TRY(hbp__classes_fit(context, classes, room));
    *bound = hbp__pack_bound(classes, room);
    return hbp__histogram_pack(context, classes, room, HBP__BEST_FIT, patterns);
}
