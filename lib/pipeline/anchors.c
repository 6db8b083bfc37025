/* DeepSpeed's partition_balanced and its kin, the anchors of OmniBal's partition (section 3.3). O(parts log
 * layers log(total / 1e-3)). */
#include "base/methods.h"
#include "pipeline/candidates.h"

#include "base/scratch.h"

#define TOLERANCE 1e-3 /* DeepSpeed's */

void hbp__partition_uniform(int32_t count, int32_t parts, int32_t *cuts)
{
    int32_t each = count / parts, more = count % parts;
    for (int32_t p = 0; p <= parts; p++)
        cuts[p] = p * each + (p < more ? p : more);
}

/* The first of items [from, to) whose sum is no less than `target`, else `to`. */
static int32_t first_reaching(const int64_t *sum, int32_t from, int32_t to, double target)
{
    while (from < to) {
        int32_t middle = from + (to - from) / 2;
        if ((double)sum[middle] < target)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Fills parts up to `bottleneck` one after another, in strides of count / parts items and bisection in the
 * last; says whether all items found a part. */
static int probe(const int64_t *sum, int32_t count, int32_t parts, double bottleneck, int32_t *cuts)
{
    int32_t stride = count / parts, at = stride;
    double target = bottleneck, total = (double)sum[count - 1];
    cuts[0] = 0;
    for (int32_t p = 1; p <= parts; p++)
        cuts[p] = count;
    for (int32_t p = 1; p < parts; p++) {
        while (at < count && (double)sum[at] < target)
            at += stride;
        cuts[p] = first_reaching(sum, at - stride, at < count ? at : count, target);
        if (cuts[p] == count)
            return (double)(sum[count - 1] - (cuts[p - 1] ? sum[cuts[p - 1] - 1] : 0)) < bottleneck;
        target = (cuts[p] ? (double)sum[cuts[p] - 1] : 0) + bottleneck;
    }
    return target >= total;
}

/* Every part at least one item: cuts move as little as is needed, first forwards and then back. */
static void fill_empty(int32_t count, int32_t parts, int32_t *cuts)
{
    for (int32_t p = 1; p < parts; p++)
        if (cuts[p] <= cuts[p - 1])
            cuts[p] = cuts[p - 1] + 1;
    for (int32_t p = parts - 1; p > 0; p--)
        if (cuts[p] > count - (parts - p))
            cuts[p] = count - (parts - p);
}

void hbp__partition_balanced(const int64_t *sum, int32_t count, int32_t parts, int32_t *cuts)
{
    double total = (double)sum[count - 1], low = total / parts, high = total;
    if (count <= parts) {
        hbp__partition_uniform(count, parts, cuts);
        return;
    }
    while (high > low + TOLERANCE) {
        double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high)
            break; /* nothing is between them: sums are too large for the tolerance */
        if (probe(sum, count, parts, middle, cuts))
            high = middle;
        else
            low = middle + TOLERANCE;
    }
    probe(sum, count, parts, high, cuts);
    fill_empty(count, parts, cuts);
}

hbp_status hbp__anchor(hbp_context *context, const hbp__stages *stages, int32_t method, int32_t *cuts)
{
    const hbp_layers *layers = stages->layers;
    const hbp_pipeline_options *pipeline = stages->pipeline;
    if (method == HBP__LAYER_PARTITION_UNIFORM) {
        hbp__partition_uniform(layers->count, stages->chunks, cuts);
        return HBP_OK;
    }
    int64_t mark = hbp__scratch_mark(context), all = 0;
    int64_t *sum = hbp__take(context, (uint64_t)layers->count, sizeof *sum);
    HBP__TRY(hbp__scratch_check(context, "the sums of layers"));
    int64_t places = layers->count + 1;
    double scale[HBP_LAYER_TYPES];
    for (int32_t k = 0; k < HBP_LAYER_TYPES; k++)
        scale[k] = hbp__mean_time_scale(pipeline, k);
    for (int32_t i = 0; i < layers->count; i++) {
        const int64_t *ns = stages->ns + layers->type[i] * places + i;
        int64_t weight = method == HBP__LAYER_PARTITION_PARAMETERS
                             ? layers->parameters[i]
                             : hbp__round_i64((double)(ns[1] - ns[0]) * scale[layers->type[i]]);
        sum[i] = all = hbp__add_saturating(all, weight);
    }
    hbp__partition_balanced(sum, layers->count, stages->chunks, cuts);
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
