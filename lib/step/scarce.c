/* Stricter options for steps whose samples are scarce.
 *
 * The search knows the time of groups, not that micro-batches which only complete a number get samples in the
 * end, nor does it weigh well what a cap of samples leaves: wide groups of one or two. So it searches again
 * with a sample in every micro-batch from the start, with as few samples in a group as there are places, and
 * for some numbers of micro-batches exactly. In: a solution. Out: the shortest of all that leave no more
 * ranks idle. At most seven searches an effort. Oracle: brute force of small steps, and what stricter options
 * give. */
#include "step/scarce.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "step/tuning.h"

typedef struct scarce {
    const hbp__step *step;
    hbp__step *trial;
    hbp__step_solution *best;
    int64_t idle; /* ranks that the solution leaves without samples */
} scarce;

static int64_t idle_ranks(const hbp__step *step, const hbp__step_solution *solution)
{
    return hbp__step_whole(step, solution->micro_batches) * step->ranks -
           hbp__step_solution_ranks(step, solution);
}

static int is_forced(const hbp__step *step)
{
    int64_t asked = hbp__step_whole(step, 1);
    return asked > 1 && step->count <= HBP__SCARCE_FORCED * hbp__mul_saturating(asked, step->ranks);
}

static int is_capped(const hbp__step *step)
{
    return step->options.max_samples > 0 && step->count <= HBP__SCARCE_CAPPED * (int64_t)step->ranks;
}

/* Searches the trial, and keeps what is shorter; *micro_batches gets those of the search, 0 where there is no
 * plan. */
static hbp_status try_trial(scarce *s, int64_t *micro_batches)
{
    hbp__step_solution own = {.ns = 0};
    *micro_batches = 0;
    if (hbp__step_is_late(s->step))
        return HBP_OK;
    hbp_status status = hbp__step_search(s->trial, &own);
    if (status >= 0) {
        *micro_batches = own.micro_batches;
        status = hbp__step_spread(s->trial, &own);
    }
    if (status >= 0)
        status = hbp__step_solution_price(s->step, &own);
    if (status >= 0 && own.ns < s->best->ns && idle_ranks(s->step, &own) <= s->idle) {
        hbp__step_solution longer = *s->best;
        own.bound_ns = longer.bound_ns;
        *s->best = own;
        own = longer;
    }
    hbp__step_solution_close(&own);
    return status == HBP_E_INFEASIBLE ? hbp__forgive(s->step->context) : status;
}

static void reset(scarce *s, int32_t effort)
{
    *s->trial = *s->step;
    s->trial->options.effort = effort;
}

/* A sample in each micro-batch from the start; then in groups of no more than there have to be. */
static hbp_status try_forced(scarce *s, int32_t effort, int64_t micro_batches)
{
    const hbp__step *step = s->step;
    int64_t whole = hbp__step_whole(step, micro_batches), none;
    int64_t most = hbp__ceil_div(step->count, hbp__mul_saturating(whole, step->ranks));
    reset(s, effort);
    s->trial->options.min_micro_batches = (int32_t)whole;
    HBP__TRY(try_trial(s, &none));
    if (most >= step->most_samples || step->items.next) /* linked samples share a group */
        return HBP_OK;
    s->trial->most_samples = most;
    return try_trial(s, &none);
}

/* Numbers of micro-batches exactly: the search does not spend on others then. */
static hbp_status try_numbers(scarce *s, int32_t effort, int64_t micro_batches)
{
    static const int32_t more[] = {0, -1, 1, 2};
    int64_t most = s->step->options.max_micro_batches, none;
    for (int i = 0; i < 4; i++) {
        int64_t number = micro_batches + more[i];
        if (number < 1 || number > s->step->count || hbp__step_whole(s->step, number) != number ||
            (most && number > most))
            continue;
        reset(s, effort);
        s->trial->options.min_micro_batches = s->trial->options.max_micro_batches = (int32_t)number;
        HBP__TRY(try_trial(s, &none));
    }
    return HBP_OK;
}

static hbp_status try_effort(scarce *s, int32_t effort, int64_t micro_batches)
{
    if (!micro_batches) {
        reset(s, effort);
        HBP__TRY(try_trial(s, &micro_batches));
    }
    if (!micro_batches)
        return HBP_OK;
    if (is_forced(s->step))
        HBP__TRY(try_forced(s, effort, micro_batches));
    return is_capped(s->step) ? try_numbers(s, effort, micro_batches) : HBP_OK;
}

hbp_status hbp__step_scarce(const hbp__step *step, int64_t micro_batches, int64_t found_ns,
                            hbp__step_solution *solution)
{
    hbp_context *context = step->context;
    /* What less effort finds may be spread for less. */
    int is_longer = solution->ns > found_ns && step->options.effort > 1;
    double longest_ns;
    if (!is_forced(step) && !is_capped(step) && !is_longer)
        return HBP_OK;
    HBP__TRY(hbp__step_longest_ns(step, &longest_ns));
    if (hbp__step_is_least(step, (double)solution->ns, longest_ns))
        return HBP_OK;
    int64_t mark = hbp__scratch_mark(context);
    scarce s = {step, NULL, solution, idle_ranks(step, solution)};
    s.trial = hbp__take(context, 1, sizeof *s.trial);
    HBP__TRY(hbp__scratch_check(context, "a step"));
    for (int32_t effort = step->options.effort; effort >= 1; effort--) {
        HBP__TRY(try_effort(&s, effort, micro_batches));
        micro_batches = 0; /* of less effort: not known */
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
