/* A plan by patterns and the index of its samples: whether they belong together, and where to resume. */
#include "data/lengths/length_index.h"
#include "data/pattern/pattern_plan.h"
#include "data/plan/cursor.h"

/* Ends a message about lengths that the plan was not made of. */
static const char *shift_hint(const hbp_pattern_plan *plan, const hbp_lengths *lengths)
{
    if (lengths->shifted_loss == plan->shifted_loss)
        return "";
    return plan->shifted_loss ? ", which was made with shifted_loss"
                              : ", which was made without shifted_loss";
}

hbp_status hbp__pattern_check_index(hbp_context *context, const hbp_pattern_plan *plan,
                                    const hbp_length_index *index)
{
    if (!index)
        return HBP_OK;
    if (index->histogram_digest != plan->histogram_digest)
        return hbp__fail(context, HBP_E_INVALID,
                         "the index is of other lengths: their histogram has digest %016llx, the plan's "
                         "%016llx%s",
                         (unsigned long long)index->histogram_digest,
                         (unsigned long long)plan->histogram_digest, HBP__PATTERN_LIMIT_HINT(plan));
    const hbp_lengths *lengths = index->lengths;
    const int64_t samples = hbp__pattern_all_samples(plan);
    if (lengths->count != samples) /* where two digests are equal by ill will, places stay in the index */
        return hbp__fail(context, HBP_E_INVALID, "the index is of %lld samples, the plan of %lld%s",
                         (long long)lengths->count, (long long)samples, HBP__PATTERN_LIMIT_HINT(plan));
    if (!plan->is_bare && lengths->digest != plan->lengths_digest)
        return hbp__fail(context, HBP_E_INVALID,
                         "the index is of other lengths: theirs have digest %016llx, the plan's %016llx%s",
                         (unsigned long long)lengths->digest, (unsigned long long)plan->lengths_digest,
                         HBP__PATTERN_LIMIT_HINT(plan));
    /* What stands beside lengths and ids comes from the index's lengths. */
    if (index->is_counted
            ? !plan->is_bare || plan->dropped
            : lengths->dropped != plan->dropped || (plan->is_bare && !hbp__lengths_are_bare(lengths)) ||
                  lengths->shifted_loss != plan->shifted_loss)
        return hbp__fail(context, HBP_E_INVALID,
                         "the index is of samples with other loss tokens, cuts or dropped samples than the "
                         "plan's%s",
                         shift_hint(plan, lengths));
    return HBP_OK;
}

/* Its index holds a plan to the order of its lengths, as a listed plan is. */
static hbp_status open_cursor(hbp_context *context, const hbp_pattern_plan *plan,
                              const hbp_length_index *index, hbp__cursor_of *of)
{
    HBP__TRY(hbp__require(context, plan, "plan"));
    HBP__TRY(hbp__pattern_check_index(context, plan, index));
    *of = (hbp__cursor_of){.steps = plan->steps,
                           .ranks = plan->ranks,
                           .digest = plan->digest,
                           .lengths_digest = plan->is_bare ? plan->histogram_digest : plan->lengths_digest,
                           .seed = plan->seed,
                           .epoch = plan->epoch};
    if (index)
        of->lengths_digest = index->lengths_digest;
    return HBP_OK;
}

hbp_status hbp_pattern_plan_save_cursor(hbp_context *context, const hbp_pattern_plan *plan,
                                        const hbp_length_index *index, int64_t step, uint8_t *cursor)
{
    hbp__cursor_of of;
    HBP__TRY(hbp__enter(context));
    HBP__TRY(open_cursor(context, plan, index, &of));
    return hbp__cursor_save(context, &of, step, cursor);
}

hbp_status hbp_pattern_plan_load_cursor(hbp_context *context, const hbp_pattern_plan *plan,
                                        const hbp_length_index *index, const uint8_t *cursor, int64_t *step)
{
    hbp__cursor_of of;
    HBP__TRY(hbp__enter(context));
    HBP__TRY(open_cursor(context, plan, index, &of));
    return hbp__cursor_load(context, &of, cursor, step);
}
