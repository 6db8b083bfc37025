/* What steps planned one by one would take, from some of them. */
#include "base/checked.h"
#include "data/plan.h"
#include "epoch/batches.h"

/* Rank-time of all samples at degree 1. */
static double work_of_all(const hbp__epoch *epoch)
{
    int64_t multiple = hbp__max_i64(1, epoch->options.sequence_multiple);
    double work = 0;
    for (int64_t b = 0; b < epoch->lengths->bins; b++) {
        double length = (double)epoch->lengths->bin_length[b], count = (double)epoch->lengths->bin_count[b];
        double padded = (double)hbp__round_up(epoch->lengths->bin_length[b], multiple);
        work += hbp__epoch_work(epoch, padded * count, length * length * count);
    }
    return work;
}

hbp_status hbp__batches_estimate(const hbp__epoch *epoch, const hbp__batches *b, int64_t sample, int64_t *ns)
{
    double total = 0, work = 0;
    int64_t count = hbp__min_i64(sample, b->steps);
    hbp_status status = HBP_OK;
    for (int64_t i = 0; i < count && status >= 0; i++) {
        /* The middle of the i-th stretch of the epoch. */
        hbp_plan *plan = NULL;
        status =
            hbp__batches_plan_step(epoch, epoch->context, b, (2 * i + 1) * b->steps / (2 * count), &plan);
        for (int64_t p = 0; status >= 0 && p < plan->packs; p++)
            work +=
                hbp__epoch_work(epoch, (double)plan->pack_padded_tokens[p], (double)plan->pack_squares[p]);
        if (status >= 0)
            total += (double)plan->step_ns[0];
        hbp_plan_free(plan);
    }
    *ns = work > 0 ? hbp__round_i64(total / work * work_of_all(epoch)) : INT64_MAX;
    return status < 0 ? status : HBP_OK;
}
