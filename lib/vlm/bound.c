/* What no plan of these samples, or of these packs, can beat. */
#include "base/checked.h"
#include "vlm/vlm.h"

/* Times are rounded to whole ns once for each chunk, micro-batch and direction, by at most half a ns each; a
 * bound gives that back, and what sums of doubles may have gained. */
static int64_t round_bound(double ns, double roundings)
{
    ns = ns * (1 - 1e-9) - roundings / 2;
    return ns > 0 ? (int64_t)ns : 0;
}

static double roundings_of(const hbp__vlm_run *run)
{
    return 2.0 * run->options.pipeline_stages * run->options.virtual_stages;
}

hbp_status hbp__vlm_bound(const hbp__vlm_run *run, const hbp__vlm_reference *r, const hbp_plan *data,
                          int64_t *bound_ns)
{
    double work = 0;
    for (int64_t p = 0; p < data->packs; p++) {
        HBP__TRY(hbp__tick_row(run->context, "bound", p, data->packs));
        work += r->vision_ns * (double)data->pack_vision[p] + r->token_ns * (double)data->pack_tokens[p] +
                r->square_ns * (double)data->pack_squares[p];
    }
    double stages = (double)run->options.pipeline_stages * run->options.data_parallel;
    *bound_ns = round_bound(work / stages, roundings_of(run) * (double)data->micro_batches);
    return HBP_OK;
}

/* Work of one replica in one step: of vision, language and fixed layers, and the least share of any that a
 * micro-batch has. */
static double step_work(const hbp__vlm_run *run, const hbp__vlm_reference *r, const hbp_plan *data,
                        int64_t step, int32_t replica, double *share)
{
    double sum[3] = {0, 0, 0}, least[3] = {1e300, 1e300, r->fixed_ns};
    for (int64_t m = data->step_offsets[step]; m < data->step_offsets[step + 1]; m++) {
        hbp__vlm_size size = hbp__vlm_row_size(run, data, data->micro_batch_offsets[m] + replica);
        double now[3] = {r->vision_ns * size.vision, r->token_ns * size.tokens + r->square_ns * size.squares,
                         r->fixed_ns};
        for (int k = 0; k < 3; k++) {
            sum[k] += now[k];
            least[k] = now[k] < least[k] ? now[k] : least[k];
        }
    }
    *share = 1;
    for (int k = 0; k < 3; k++)
        if (sum[k] > 0 && least[k] / sum[k] < *share)
            *share = least[k] / sum[k];
    return sum[0] + sum[1] + sum[2];
}

/* With T >= x_s + share * (x_1 + ... + x_{s-1}) for every stage and sum x = X, T is least where all are
 * equal: T = X share / (1 - (1 - share)^S), and X / S for share 0. */
static double step_bound(const hbp__vlm_run *run, double work, double share)
{
    int32_t stages = run->options.pipeline_stages;
    double kept = 1, waits = 0; /* sum over s of (1 - share)^(s - 1) */
    if (run->options.virtual_stages > 1)
        return work / stages;
    for (int32_t s = 0; s < stages; s++) {
        waits += kept;
        kept *= 1 - share;
    }
    return work / waits;
}

hbp_status hbp__vlm_packs_bound(const hbp__vlm_run *run, const hbp__vlm_reference *r, const hbp_plan *data,
                                int64_t *bound_ns)
{
    int64_t sum = 0, least, rows = 0;
    for (int64_t s = 0; s < data->steps; s++) {
        double slowest = 0;
        for (int32_t d = 0; d < run->options.data_parallel; d++) {
            double share, work = step_work(run, r, data, s, d, &share);
            double bound = step_bound(run, work, share);
            slowest = bound > slowest ? bound : slowest;
        }
        double micro_batches = (double)(data->step_offsets[s + 1] - data->step_offsets[s]);
        sum = hbp__add_saturating(sum, round_bound(slowest, roundings_of(run) * (micro_batches + 1)));
        if (data->step_offsets[s + 1] - rows < HBP__TICK_ROWS / 4)
            continue;
        rows = data->step_offsets[s + 1];
        HBP__TRY(hbp__tick(run->context, "bound", s, data->steps));
    }
    HBP__TRY(hbp__vlm_bound(run, r, data, &least));
    *bound_ns = hbp__max_i64(sum, least); /* each gives other roundings back */
    return HBP_OK;
}
