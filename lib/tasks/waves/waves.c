/* Waves level by level: the published rule, and where it is far from C* others, of which the shortest stays.
 */
#include "tasks/waves/waves.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "tasks/tuning.h"
#include "tasks/waves/level_waves.h"

/* The rules, two for each number: sizes start from the one below the share, then from the nearest. */
static const double rests[] = {HBP__WAVE_RULE_RESTS};

enum { RULES = 2 * (sizeof rests / sizeof *rests) };

static hbp_status plan_level(hbp_context *context, hbp__level_waves *best, hbp__level_waves *other)
{
    HBP__TRY(hbp__fill_waves(context, best));
    int64_t near = hbp__round_i64(best->optimum_ns * HBP__WAVE_RULE_NEAR);
    int32_t own = best->end - best->base;
    int64_t count = hbp__max_i64(HBP__WAVE_RULE_WORK / own, HBP__WAVE_RULE_LEAST);
    count = own > HBP__WAVE_RULE_MOST_META_OPS ? 0 : hbp__min_i64(count, RULES);
    for (int32_t i = 0; i < count && best->length_ns > near; i++) {
        hbp__wave_rule rule = {.nearest = i % 2, .rest = rests[i / 2]};
        HBP__TRY(hbp__share_waves(context, &rule, other));
        if (other->length_ns < best->length_ns) {
            hbp__level_waves shorter = *other;
            *other = *best;
            *best = shorter;
        }
    }
    return HBP_OK;
}

static hbp_status add_level(hbp_context *context, const hbp__task_problem *problem, int32_t level,
                            hbp__task_slices *slices)
{
    hbp__level_waves best, other;
    int64_t mark = hbp__scratch_mark(context);
    HBP__TRY(hbp__level_waves_open(context, problem, level, &best));
    HBP__TRY(hbp__level_waves_open(context, problem, level, &other));
    hbp_status status = plan_level(context, &best, &other);
    if (status == HBP_OK)
        status = hbp__level_waves_append(context, &best, slices);
    hbp__level_waves_close(&other);
    hbp__level_waves_close(&best);
    return hbp__leave(context, mark, status);
}

static hbp_status add_levels(hbp_context *context, const hbp__task_problem *problem, hbp__task_slices *slices)
{
    for (int32_t level = 0; level < problem->meta->levels; level++)
        HBP__TRY(add_level(context, problem, level, slices));
    return HBP_OK;
}

hbp_status hbp__plan_waves(hbp_context *context, const hbp__task_problem *problem, hbp__task_slices *slices)
{
    hbp__task_slices made = {.memory = context->memory};
    hbp_status status = add_levels(context, problem, &made);
    if (status < 0) {
        hbp__task_slices_close(&made);
        return status;
    }
    *slices = made;
    return HBP_OK;
}
