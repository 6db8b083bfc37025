/* docs/explanation/pipeline.md says what the times and bytes mean. */
#include "simulate/pipeline/stage_times.h"

#include <string.h>

#include "base/checked.h"
#include "base/options.h"
#include "base/scratch.h"
#include "base/sort.h"

/* Of forwards on one chunk each, so that every index of an operation fits 31 bits. */
#define MOST_CELLS (INT64_C(1) << 29)

/* Of scales, speeds and links, so that no product or sum of them with times and bytes overflows. */
#define LEAST_RATE 1e-30
#define MOST_RATE  1e30

static hbp_status check_count(hbp_context *context, const char *name, int32_t value, int32_t least)
{
    if (value < least)
        return hbp__fail(context, HBP_E_INVALID, "pipeline.%s is %d; it must be at least %d", name,
                         (int)value, (int)least);
    return HBP_OK;
}

static hbp_status check_counts(hbp_context *context, const hbp_layers *layers,
                               const hbp_pipeline_options *pipeline)
{
    HBP__TRY(check_count(context, "stages", pipeline->stages, 1));
    HBP__TRY(check_count(context, "virtual_stages", pipeline->virtual_stages, 0));
    HBP__TRY(check_count(context, "micro_batches", pipeline->micro_batches, 1));
    int64_t chunks = (int64_t)pipeline->stages * hbp__pipeline_virtual(pipeline);
    if (chunks > layers->count)
        return hbp__fail(context, HBP_E_INVALID,
                         "pipeline.stages x virtual_stages is %lld; there are only %d layers",
                         (long long)chunks, (int)layers->count);
    if (hbp__pipeline_virtual(pipeline) > 1 && pipeline->micro_batches % pipeline->stages)
        return hbp__fail(context, HBP_E_INVALID,
                         "pipeline.micro_batches is %d; with %d virtual stages it must be a multiple of the "
                         "%d stages",
                         (int)pipeline->micro_batches, (int)pipeline->virtual_stages, (int)pipeline->stages);
    if (chunks * pipeline->micro_batches > MOST_CELLS) /* both below 2^31 */
        return hbp__fail(context, HBP_E_OVERFLOW,
                         "pipeline.micro_batches is %d; %lld chunks allow at most %lld",
                         (int)pipeline->micro_batches, (long long)chunks, (long long)(MOST_CELLS / chunks));
    return HBP_OK;
}

static hbp_status check_scales(hbp_context *context, const hbp_pipeline_options *pipeline)
{
    const struct {
        const char *name;
        const double *scale;
    } all[] = {
        {"vision_scale", pipeline->vision_scale},
        {"token_scale", pipeline->token_scale},
        {"token_time_scale", pipeline->token_time_scale},
        {"vision_time_scale", pipeline->vision_time_scale},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int32_t m = 0; all[i].scale && m < pipeline->micro_batches; m++)
            if (!hbp__lies_in(all[i].scale[m], 0, MOST_RATE))
                return hbp__fail(context, HBP_E_INVALID,
                                 "pipeline.%s of micro-batch %d is %g; it must be in 0..%g", all[i].name,
                                 (int)m, all[i].scale[m], MOST_RATE);
    return HBP_OK;
}

static hbp_status check_stages(hbp_context *context, const hbp_pipeline_options *pipeline)
{
    for (int32_t s = 0; s < pipeline->stages; s++) {
        if (pipeline->speed && !hbp__lies_in(pipeline->speed[s], LEAST_RATE, MOST_RATE))
            return hbp__fail(context, HBP_E_INVALID, "pipeline.speed of stage %d is %g; it must be in %g..%g",
                             (int)s, pipeline->speed[s], LEAST_RATE, MOST_RATE);
        if (pipeline->limit_bytes && pipeline->limit_bytes[s] < 0)
            return hbp__fail(context, HBP_E_INVALID,
                             "pipeline.limit_bytes of stage %d is %lld; it must not be negative", (int)s,
                             (long long)pipeline->limit_bytes[s]);
    }
    return HBP_OK;
}

static hbp_status check_link(hbp_context *context, const hbp_pipeline_options *pipeline)
{
    double link = pipeline->link_bytes_per_s;
    if (!hbp__lies_in(link, 0, MOST_RATE) || (link > 0 && link < LEAST_RATE))
        return hbp__fail(context, HBP_E_INVALID,
                         "pipeline.link_bytes_per_s is %g; it must be in %g..%g, or be 0", link, LEAST_RATE,
                         MOST_RATE);
    if (!hbp__lies_in(pipeline->link_overlap, 0, 1))
        return hbp__fail(context, HBP_E_INVALID, "pipeline.link_overlap is %g; it must be in 0..1",
                         pipeline->link_overlap);
    if (pipeline->link_latency_ns < 0)
        return hbp__fail(context, HBP_E_INVALID, "pipeline.link_latency_ns is %lld; it must not be negative",
                         (long long)pipeline->link_latency_ns);
    return HBP_OK;
}

static hbp_status check_recompute(hbp_context *context, const hbp_layers *layers,
                                  const hbp_pipeline_options *pipeline)
{
    for (int32_t i = 0; pipeline->recompute && i < layers->count; i++) {
        int32_t choice = pipeline->recompute[i];
        if (choice < 0 || choice >= HBP_RECOMPUTE_CHOICES)
            return hbp__fail(context, HBP_E_INVALID,
                             "pipeline.recompute of layer %d is %d; it must be in 0..%d", (int)i, (int)choice,
                             HBP_RECOMPUTE_CHOICES - 1);
        if ((choice == HBP_RECOMPUTE_ATTENTION && !layers->attention_bytes[i]) ||
            (choice == HBP_RECOMPUTE_MLP && !layers->mlp_bytes[i]))
            return hbp__fail(context, HBP_E_INVALID,
                             "pipeline.recompute of layer %d is %d; the layer's %s is 0, so that it cannot "
                             "be chosen",
                             (int)i, (int)choice,
                             choice == HBP_RECOMPUTE_MLP ? "mlp_bytes" : "attention_bytes");
    }
    return HBP_OK;
}

hbp_status hbp__pipeline_check(hbp_context *context, const hbp_layers *layers,
                               const hbp_pipeline_options *pipeline)
{
    HBP__TRY(check_counts(context, layers, pipeline));
    HBP__TRY(check_scales(context, pipeline));
    HBP__TRY(check_stages(context, pipeline));
    HBP__TRY(check_link(context, pipeline));
    return check_recompute(context, layers, pipeline);
}

/* The column of scales for a type; NULL: all 1. */
static const double *time_scales(const hbp_pipeline_options *pipeline, int32_t type)
{
    switch (type) {
    case HBP_LAYER_LANGUAGE:
        return pipeline->token_time_scale ? pipeline->token_time_scale : pipeline->token_scale;
    case HBP_LAYER_VISION:
        return pipeline->vision_time_scale ? pipeline->vision_time_scale : pipeline->vision_scale;
    default:
        return NULL;
    }
}

static const double *byte_scales(const hbp_pipeline_options *pipeline, int32_t type)
{
    switch (type) {
    case HBP_LAYER_LANGUAGE:
        return pipeline->token_scale;
    case HBP_LAYER_VISION:
        return pipeline->vision_scale;
    default:
        return NULL;
    }
}

double hbp__time_scale(const hbp_pipeline_options *pipeline, int32_t type, int32_t m)
{
    const double *scale = time_scales(pipeline, type);
    return scale ? scale[m] : 1;
}

double hbp__byte_scale(const hbp_pipeline_options *pipeline, int32_t type, int32_t m)
{
    const double *scale = byte_scales(pipeline, type);
    return scale ? scale[m] : 1;
}

static double mean(const double *scale, int32_t count)
{
    double sum = 0;
    for (int32_t m = 0; m < count; m++)
        sum += scale[m];
    return sum / count;
}

double hbp__mean_time_scale(const hbp_pipeline_options *pipeline, int32_t type)
{
    const double *scale = time_scales(pipeline, type);
    return scale ? mean(scale, pipeline->micro_batches) : 1;
}

double hbp__mean_byte_scale(const hbp_pipeline_options *pipeline, int32_t type)
{
    const double *scale = byte_scales(pipeline, type);
    return scale ? mean(scale, pipeline->micro_batches) : 1;
}

int64_t hbp__transfer_ns(const hbp_pipeline_options *pipeline, double bytes)
{
    if (!(pipeline->link_bytes_per_s > 0))
        return 0;
    return hbp__add_saturating(pipeline->link_latency_ns,
                               hbp__round_i64(bytes * 1e9 / pipeline->link_bytes_per_s));
}

/* Among a stage's first `count` forwards of interleaved 1F1B those of its v-th chunk: micro-batches go in
 * groups of S, and each group through all chunks before the next. */
static int64_t forwards_of(int64_t count, int64_t stages, int64_t virtual_stages, int64_t v)
{
    int64_t round = stages * virtual_stages, rest = count % round - v * stages;
    return count / round * stages + hbp__min_i64(hbp__max_i64(rest, 0), stages);
}

int32_t hbp__pipeline_in_flight(const hbp_pipeline_options *pipeline, int32_t chunk)
{
    int64_t stages = pipeline->stages, virtual_stages = hbp__pipeline_virtual(pipeline);
    int64_t stage = chunk % stages, v = chunk / stages;
    if (virtual_stages == 1)
        return (int32_t)hbp__min_i64(pipeline->micro_batches, stages - stage);
    int64_t all = pipeline->micro_batches * virtual_stages;
    int64_t warm_up = hbp__min_i64((stages - stage - 1) * 2 + (virtual_stages - 1) * stages, all);
    int64_t most = forwards_of(warm_up, stages, virtual_stages, v);
    /* After S V pairs of a forward and a backward all chunks are where they were, S micro-batches on. */
    int64_t pairs = hbp__min_i64(all - warm_up, stages * virtual_stages);
    for (int64_t i = 0; i < pairs; i++)
        most = hbp__max_i64(most, forwards_of(warm_up + i + 1, stages, virtual_stages, v) -
                                      forwards_of(i, stages, virtual_stages, virtual_stages - 1 - v));
    return (int32_t)most;
}

static hbp_status sum_largest(hbp_context *context, const double *scale, int32_t count, double *sum)
{
    int64_t mark = hbp__scratch_mark(context);
    uint64_t *key = hbp__take(context, (uint64_t)count, sizeof *key);
    uint32_t *row = hbp__take(context, (uint64_t)count, sizeof *row);
    HBP__TRY(hbp__scratch_check(context, "the scales of micro-batches"));
    for (int32_t m = 0; m < count; m++) {
        double value = scale[m] + 0.0;        /* no -0, whose bits are the largest */
        memcpy(&key[m], &value, sizeof *key); /* bits of doubles from 0 up ascend with them */
        row[m] = (uint32_t)m;
    }
    if (!hbp__sort_by_u64(&context->memory, key, row, count))
        return hbp__fail_memory(context, "the scales of micro-batches");
    sum[0] = 0;
    for (int32_t n = 0; n < count; n++)
        sum[n + 1] = sum[n] + scale[row[count - 1 - n]];
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

hbp_status hbp__live_open(hbp_context *context, const hbp_pipeline_options *pipeline, hbp__live *live)
{
    int32_t count = pipeline->micro_batches;
    *live = (hbp__live){.memory = context->memory};
    hbp_status status = HBP_OK;
    for (int32_t type = 0; type < HBP_LAYER_TYPES && status >= 0; type++) {
        const double *scale = byte_scales(pipeline, type);
        live->sum[type] = hbp__new(&live->memory, (uint64_t)count + 1, sizeof *live->sum[type]);
        if (!live->sum[type])
            status = hbp__fail_memory(context, "the scales of micro-batches");
        else if (scale)
            status = sum_largest(context, scale, count, live->sum[type]);
        else
            for (int32_t n = 0; n <= count; n++)
                live->sum[type][n] = n;
    }
    if (status < 0)
        hbp__live_close(live);
    return status;
}

void hbp__live_close(hbp__live *live)
{
    for (int32_t type = 0; type < HBP_LAYER_TYPES; type++) {
        hbp__delete(&live->memory, live->sum[type]);
        live->sum[type] = NULL;
    }
}

static int32_t choice_of(const int32_t *recompute, int32_t layer)
{
    return recompute ? recompute[layer] : HBP_RECOMPUTE_NONE;
}

int64_t hbp__stage_peak_bytes(const hbp_layers *layers, const int32_t *cuts,
                              const hbp_pipeline_options *pipeline, const hbp__live *live,
                              const int32_t *recompute, int32_t stage)
{
    int32_t chunks = pipeline->stages * hbp__pipeline_virtual(pipeline);
    int64_t bytes = 0, working = 0;
    for (int32_t chunk = stage; chunk < chunks; chunk += pipeline->stages) {
        int32_t in_flight = hbp__pipeline_in_flight(pipeline, chunk);
        int64_t kept[HBP_LAYER_TYPES] = {0};
        for (int32_t i = cuts[chunk]; i < cuts[chunk + 1]; i++) {
            int32_t type = layers->type[i], choice = choice_of(recompute, i);
            double needs = (double)hbp__layer_working_bytes(layers, i, choice);
            bytes = hbp__add_saturating(bytes, layers->state_bytes[i]);
            kept[type] += hbp__layer_kept_bytes(layers, i, choice); /* columns sum to 2^62 at most */
            working = hbp__max_i64(working, hbp__round_i64(needs * live->sum[type][1]));
        }
        for (int32_t type = 0; type < HBP_LAYER_TYPES; type++)
            bytes =
                hbp__add_saturating(bytes, hbp__round_i64((double)kept[type] * live->sum[type][in_flight]));
    }
    return hbp__add_saturating(bytes, working);
}

static hbp_status check_cuts(hbp_context *context, const hbp_layers *layers, const int32_t *cuts,
                             int32_t chunks)
{
    HBP__TRY(hbp__require(context, cuts, "cuts"));
    if (cuts[0] != 0 || cuts[chunks] != layers->count)
        return hbp__fail(context, HBP_E_INVALID,
                         "cuts go from %d to %d; they must go from 0 to the %d layers", (int)cuts[0],
                         (int)cuts[chunks], (int)layers->count);
    for (int32_t k = 0; k < chunks; k++)
        if (cuts[k] >= cuts[k + 1])
            return hbp__fail(context, HBP_E_INVALID,
                             "cut %d is %d and cut %d is %d; every chunk must have a layer", (int)k,
                             (int)cuts[k], (int)k + 1, (int)cuts[k + 1]);
    return HBP_OK;
}

/* The sums of layers [begin, end), which stage `stage` runs. */
static void sum_chunk(const hbp_layers *layers, const hbp_pipeline_options *pipeline, int32_t begin,
                      int32_t end, int32_t stage, hbp__chunk_sums *sums, int64_t *state)
{
    int64_t forward[HBP_LAYER_TYPES] = {0}, backward[HBP_LAYER_TYPES] = {0}, kept[HBP_LAYER_TYPES] = {0};
    int64_t working[HBP_LAYER_TYPES] = {0};
    *state = 0;
    for (int32_t i = begin; i < end; i++) {
        int32_t type = layers->type[i], choice = choice_of(pipeline->recompute, i);
        int64_t again = hbp__layer_extra_ns(layers, i, choice);
        /* Each column sums to 2^62 at most. */
        forward[type] += layers->forward_ns[i];
        backward[type] =
            hbp__add_saturating(backward[type], hbp__add_saturating(layers->backward_ns[i], again));
        kept[type] += hbp__layer_kept_bytes(layers, i, choice);
        working[type] = hbp__max_i64(working[type], hbp__layer_working_bytes(layers, i, choice));
        *state += layers->state_bytes[i];
    }
    for (int32_t type = 0; type < HBP_LAYER_TYPES; type++) {
        sums->forward[type] = (double)forward[type];
        sums->backward[type] = (double)backward[type];
        sums->kept[type] = (double)kept[type];
        sums->working[type] = (double)working[type];
    }
    int last = end == layers->count;
    sums->speed = pipeline->speed ? pipeline->speed[stage] : 1;
    sums->cut_bytes = last ? 0 : (double)layers->cut_bytes[end - 1];
    sums->cut_type = last ? HBP_LAYER_FIXED : layers->cut_type[end - 1];
}

static void fill_ns(hbp__stage_times *times, const hbp_pipeline_options *pipeline)
{
    int32_t count = times->micro_batches;
    const double *tokens = time_scales(pipeline, HBP_LAYER_LANGUAGE);
    const double *vision = time_scales(pipeline, HBP_LAYER_VISION);
    for (int32_t k = 0; k < times->chunks; k++) {
        const hbp__chunk_sums *sums = &times->sums[k];
        const double *f = sums->forward, *b = sums->backward;
        int64_t *forward = times->forward + (int64_t)k * count,
                *backward = times->backward + (int64_t)k * count;
        for (int32_t m = 0; m < count; m++) {
            double t = tokens ? tokens[m] : 1, v = vision ? vision[m] : 1;
            double there = f[HBP_LAYER_LANGUAGE] * t + f[HBP_LAYER_VISION] * v + f[HBP_LAYER_FIXED];
            double back = b[HBP_LAYER_LANGUAGE] * t + b[HBP_LAYER_VISION] * v + b[HBP_LAYER_FIXED];
            forward[m] = hbp__round_i64(there / sums->speed);
            backward[m] = hbp__round_i64(back / sums->speed);
        }
        if (k == times->chunks - 1)
            break;
        const double *cut = byte_scales(pipeline, sums->cut_type);
        int64_t *transfer = times->transfer + (int64_t)k * count,
                *sending = times->sending + (int64_t)k * count;
        for (int32_t m = 0; m < count; m++) {
            double bytes = cut ? sums->cut_bytes * cut[m] : sums->cut_bytes;
            transfer[m] = times->stages > 1 ? hbp__transfer_ns(pipeline, bytes) : 0;
            /* A share of a saturated time may round past it. */
            sending[m] = hbp__min_i64(hbp__round_i64(times->exposed * (double)transfer[m]), transfer[m]);
        }
    }
}

static void fill_bytes(hbp__stage_times *times, const hbp_pipeline_options *pipeline)
{
    int32_t count = times->micro_batches;
    for (int32_t k = 0; k < times->chunks; k++) {
        const hbp__chunk_sums *sums = &times->sums[k];
        int64_t *kept = times->kept + (int64_t)k * count, *working = times->working + (int64_t)k * count;
        for (int32_t m = 0; m < count; m++)
            kept[m] = working[m] = 0;
        for (int32_t type = 0; type < HBP_LAYER_TYPES; type++) {
            const double *scale = byte_scales(pipeline, type);
            if (!(sums->kept[type] > 0) && !(sums->working[type] > 0))
                continue;
            for (int32_t m = 0; m < count; m++) {
                double by = scale ? scale[m] : 1, bytes = sums->kept[type] * by;
                int64_t whole = bytes < 9223372036854774784.0 ? (int64_t)bytes : INT64_MAX;
                kept[m] = hbp__add_saturating(kept[m], whole);
                working[m] = hbp__max_i64(working[m], hbp__round_i64(sums->working[type] * by));
            }
        }
    }
}

void hbp__stage_times_fill(hbp__stage_times *times, const hbp_pipeline_options *pipeline, int bytes)
{
    times->micro_batches = pipeline->micro_batches;
    fill_ns(times, pipeline);
    if (bytes)
        fill_bytes(times, pipeline);
}

hbp_status hbp__stage_times_open(hbp_context *context, const hbp_layers *layers, const int32_t *cuts,
                                 const hbp_pipeline_options *pipeline, hbp__stage_times *times)
{
    HBP__TRY(hbp__pipeline_check(context, layers, pipeline));
    int32_t chunks = pipeline->stages * hbp__pipeline_virtual(pipeline);
    HBP__TRY(check_cuts(context, layers, cuts, chunks));
    *times = (hbp__stage_times){
        .memory = context->memory,
        .stages = pipeline->stages,
        .chunks = chunks,
        .room = pipeline->micro_batches,
        .exposed = 1 - pipeline->link_overlap,
    };
    const hbp__memory *memory = &times->memory;
    uint64_t cells = (uint64_t)chunks * (uint64_t)pipeline->micro_batches;
    int64_t **columns[] = {&times->forward, &times->backward, &times->kept,
                           &times->working, &times->transfer, &times->sending};
    int have = 1;
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        have &= (*columns[i] = hbp__new(memory, cells, sizeof **columns[i])) != NULL;
    times->state = hbp__new(memory, (uint64_t)chunks, sizeof *times->state);
    times->sums = hbp__new(memory, (uint64_t)chunks, sizeof *times->sums);
    if (!have || !times->state || !times->sums) {
        hbp__stage_times_close(times);
        return hbp__fail_memory(context, "the times of stages");
    }
    for (int32_t k = 0; k < chunks; k++)
        sum_chunk(layers, pipeline, cuts[k], cuts[k + 1], k % pipeline->stages, &times->sums[k],
                  &times->state[k]);
    hbp__stage_times_fill(times, pipeline, 1);
    return HBP_OK;
}

void hbp__stage_times_close(hbp__stage_times *times)
{
    const hbp__memory memory = times->memory;
    hbp__delete(&memory, times->sums);
    hbp__delete(&memory, times->state);
    hbp__delete(&memory, times->sending);
    hbp__delete(&memory, times->transfer);
    hbp__delete(&memory, times->working);
    hbp__delete(&memory, times->kept);
    hbp__delete(&memory, times->backward);
    hbp__delete(&memory, times->forward);
    *times = (hbp__stage_times){.memory = memory};
}
