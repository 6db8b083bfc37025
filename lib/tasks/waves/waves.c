#include "tasks/waves/waves.h"

#include "base/checked.h"
#include "tasks/waves/level_waves.h"

/* Rules tried, times MetaOps: the more of them share waves, the less it matters where each wave ends. */
#define RULE_WORK   260
#define LEAST_RULES 2

#define NEAR 1.005 /* of C*: no other rule is tried */

/* On the workloads of section 5 none of these is best everywhere, and none far from it. */
static const hbp__wave_rule rules[] = {{0, 1.1},  {1, 1.1},  {0, 1.2},  {1, 1.2},  {0, 1.06},
                                       {1, 1.06}, {0, 1.03}, {1, 1.03}, {0, 1.15}, {1, 1.15}};

static hbp_status plan_level(hbp_context *context, hbp__level_waves *best, hbp__level_waves *other)
{
    HBP__TRY(hbp__fill_waves(context, best));
    int64_t near = hbp__round_i64(best->optimum_ns * NEAR);
    int64_t count = hbp__max_i64(RULE_WORK / (best->end - best->base), LEAST_RULES);
    count = hbp__min_i64(count, (int64_t)(sizeof rules / sizeof *rules));
    for (int64_t i = 0; i < count && best->length_ns > near; i++) {
        HBP__TRY(hbp__share_waves(context, &rules[i], other));
        if (other->length_ns < best->length_ns) {
            hbp__level_waves shorter = *other;
            *other = *best;
            *best = shorter;
        }
    }
    return HBP_OK;
}

hbp_status hbp__plan_waves(hbp_context *context, const hbp__task_problem *problem, hbp__task_slices *slices)
{
    hbp__task_slices made = {.memory = context->memory};
    hbp_status status = HBP_OK;
    for (int32_t level = 0; status == HBP_OK && level < problem->meta->levels; level++) {
        hbp__level_waves best = {0}, other = {0};
        status = hbp__level_waves_open(context, problem, level, &best);
        if (status == HBP_OK) {
            status = hbp__level_waves_open(context, problem, level, &other);
            if (status == HBP_OK)
                status = plan_level(context, &best, &other);
            if (status == HBP_OK)
                status = hbp__level_waves_append(context, &best, &made);
            if (other.first)
                hbp__level_waves_close(&other);
            hbp__level_waves_close(&best);
        }
    }
    if (status < 0) {
        hbp__task_slices_close(&made);
        return status;
    }
    *slices = made;
    return HBP_OK;
}
