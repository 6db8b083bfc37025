/* What steps planned one by one would take, from some of them. */
#include "base/checked.h"
#include "data/plan/plan.h"
#include "epoch/batches.h"
#include "epoch/tuning.h"

/* Rank-time of all samples at degree 1. */
static double work_of_all(const hbp__epoch *epoch)
{
    int64_t multiple = hbp__max_i64(1, epoch->options.sequence_multiple);
    double work = 0;
    for (int64_t b = 0; b < epoch->lengths->bins; b++) {
        double length = (double)epoch->lengths->bin_length[b], count = (double)epoch->lengths->bin_count[b];
        double padded = (double)hbp__round_up(epoch->lengths->bin_length[b], multiple);
        work += hbp__epoch_work(epoch, padded * count, length * length * count, 0);
    }
    return work + hbp__epoch_work(epoch, 0, 0, (double)epoch->lengths->vision_sum);
}

/* The step of the longest sample: it may take far longer than its work says. */
static int64_t longest_step(const hbp__epoch *epoch, const hbp__batches *b)
{
    int64_t best = 0, longest = -1;
    for (int64_t step = 0; step < b->steps; step++)
        for (int64_t i = b->first[step]; i < b->first[step + 1]; i++)
            if (hbp_lengths_get_length(epoch->lengths, b->sample[i]) > longest) {
                longest = hbp_lengths_get_length(epoch->lengths, b->sample[i]);
                best = step;
            }
    return best;
}

/* Adds the time and the work of a step. */
static hbp_status add_step(const hbp__epoch *epoch, const hbp__batches *b, int64_t step, double *total,
                           double *work)
{
    hbp_plan *plan = NULL;
    HBP__TRY(hbp__batches_plan_step(epoch, epoch->context, b, step, &plan));
    for (int64_t p = 0; p < plan->packs; p++)
        *work += hbp__epoch_work(epoch, (double)plan->pack_padded_tokens[p], (double)plan->pack_squares[p],
                                 plan->pack_vision ? (double)plan->pack_vision[p] : 0);
    *total += (double)plan->step_ns[0];
    hbp_plan_free(plan);
    return HBP_OK;
}

hbp_status hbp__batches_estimate(const hbp__epoch *epoch, const hbp__batches *b, int64_t sample, int64_t *ns)
{
    double total = 0, work = 0, apart = 0, apart_work = 0, all = work_of_all(epoch);
    int64_t count = hbp__min_i64(hbp__max_i64(1, sample), b->steps), longest = b->steps;
    if (sample && b->steps <= HBP__GUESS_LONGEST_STEPS) {
        longest = longest_step(epoch, b);
        HBP__TRY(add_step(epoch, b, longest, &apart, &apart_work));
    }
    for (int64_t i = 0; i < count; i++) {
        /* The middle of the i-th stretch of the epoch. */
        int64_t step = (2 * i + 1) * b->steps / (2 * count);
        step = step == longest && count == 1 ? (step + 1) % b->steps : step;
        if (step != longest)
            HBP__TRY(add_step(epoch, b, step, &total, &work));
    }
    double others = all > apart_work ? all - apart_work : 0;
    if (work > 0)
        *ns = hbp__round_i64(apart + total / work * others);
    else
        *ns = apart_work > 0 ? hbp__round_i64(apart / apart_work * all) : INT64_MAX;
    return HBP_OK;
}
