/* Sums over layers, O(1) a part: what a partition takes, holds and sends on. docs/explanation/pipeline.md
 * defines what is weighed here. */
#include "pipeline/stages.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"

#define MOST_NS (INT64_C(1) << 62)

static int32_t choice_of(const hbp__stages *s, int32_t layer)
{
    return s->pipeline->recompute ? s->pipeline->recompute[layer] : HBP_RECOMPUTE_NONE;
}

static hbp_status take_columns(hbp_context *context, hbp__stages *s)
{
    uint64_t places = (uint64_t)s->layers->count + 1, chunks = (uint64_t)s->chunks;
    uint64_t levels = 1;
    while (INT64_C(1) << levels <= s->layers->count)
        levels++;
    s->ns = hbp__take_zero(context, HBP_LAYER_TYPES * places, sizeof *s->ns);
    s->kept = hbp__take_zero(context, HBP_LAYER_TYPES * places, sizeof *s->kept);
    s->state = hbp__take_zero(context, places, sizeof *s->state);
    s->toll = hbp__take_zero(context, places, sizeof *s->toll);
    s->side = hbp__take_zero(context, places, sizeof *s->side);
    s->factor = hbp__take(context, chunks * HBP_LAYER_TYPES, sizeof *s->factor);
    s->in_flight = hbp__take(context, chunks, sizeof *s->in_flight);
    if (s->pipeline->limit_bytes) {
        s->working = hbp__take(context, levels * places, sizeof *s->working);
        s->reach = hbp__take(context, chunks * places, sizeof *s->reach);
    }
    return hbp__scratch_check(context, "the sums of layers");
}

static void sum_layers(hbp__stages *s)
{
    const hbp_layers *layers = s->layers;
    int64_t places = layers->count + 1;
    for (int32_t i = 0; i < layers->count; i++) {
        int32_t choice = choice_of(s, i);
        int64_t ns = hbp__add_saturating(layers->forward_ns[i], layers->backward_ns[i]);
        ns = hbp__add_saturating(ns, hbp__layer_extra_ns(layers, i, choice));
        for (int32_t k = 0; k < HBP_LAYER_TYPES; k++) {
            int mine = layers->type[i] == k;
            int64_t at = k * places + i;
            s->ns[at + 1] = hbp__add_saturating(s->ns[at], mine ? ns : 0);
            /* Columns sum to 2^62 at most. */
            s->kept[at + 1] = s->kept[at] + (mine ? hbp__layer_kept_bytes(layers, i, choice) : 0);
        }
        s->state[i + 1] = s->state[i] + layers->state_bytes[i];
    }
}

/* Layers that cannot send anything to another stage, those of a single one, have no transfers. */
static void price_cuts(hbp__stages *s)
{
    const hbp_layers *layers = s->layers;
    double mean[HBP_LAYER_TYPES], exposed = 1 - s->pipeline->link_overlap;
    for (int32_t k = 0; k < HBP_LAYER_TYPES; k++)
        mean[k] = hbp__mean_byte_scale(s->pipeline, k);
    for (int32_t c = 1; c < layers->count && s->stages > 1; c++) {
        double bytes = (double)layers->cut_bytes[c - 1] * mean[layers->cut_type[c - 1]];
        int64_t ns = hbp__transfer_ns(s->pipeline, bytes);
        s->toll[c] = hbp__mul_saturating(2, ns);
        s->side[c] = hbp__min_i64(hbp__round_i64(exposed * (double)ns), ns);
    }
}

/* The chain's types are those that any layer with a time is of; one at least. */
static void fill_chain(hbp__stages *s)
{
    int64_t places = s->layers->count + 1;
    int32_t type[HBP_LAYER_TYPES], types = 0;
    for (int32_t k = 0; k < HBP_LAYER_TYPES; k++)
        if (s->ns[k * places + s->layers->count] > 0 || (k == HBP_LAYER_TYPES - 1 && !types)) {
            s->chain.prefix[types] = s->ns + k * places;
            type[types++] = k;
        }
    for (int32_t c = 0; c < s->chunks; c++)
        for (int32_t k = 0; k < types; k++)
            s->factor[c * types + k] = hbp__mean_time_scale(s->pipeline, type[k]) /
                                       (s->pipeline->speed ? s->pipeline->speed[c % s->stages] : 1);
    s->chain.items = s->layers->count;
    s->chain.parts = s->chunks;
    s->chain.kinds = types;
    s->chain.factor = s->factor;
    s->chain.toll = s->toll;
    s->chain.side = s->side;
    s->chain.reach = s->reach;
    s->chain.weight = (int64_t)s->pipeline->micro_batches * (s->chunks / s->stages) - 1;
}

/* So that no sum of times need be looked after further on. */
static hbp_status check_times(hbp_context *context, const hbp__stages *s)
{
    int64_t slowest = 0, transfers = 0;
    int32_t stage = 0;
    for (int32_t c = 0; c < s->stages; c++) {
        int64_t cost = hbp__chain_cost(&s->chain, c, 0, s->layers->count);
        if (cost > slowest) {
            slowest = cost;
            stage = c;
        }
    }
    for (int32_t c = 0; c <= s->layers->count; c++)
        transfers = hbp__add_saturating(transfers, s->toll[c]);
    int64_t times = s->chain.weight + s->chunks + 1;
    int64_t most = hbp__mul_saturating(times, hbp__add_saturating(slowest, transfers));
    for (int32_t k = 0; k < HBP_LAYER_TYPES; k++)
        if (s->ns[(k + 1) * (int64_t)(s->layers->count + 1) - 1] > MOST_NS)
            most = INT64_MAX;
    if (most <= MOST_NS)
        return HBP_OK;
    return hbp__fail(context, HBP_E_OVERFLOW,
                     "the layers take %lld ns on stage %d and the cuts %lld ns in all; %lld times that may "
                     "not pass 2^62",
                     (long long)slowest, (int)stage, (long long)transfers, (long long)times);
}

static int are_alike(const double *scale, int32_t count)
{
    for (int32_t m = 1; scale && m < count; m++)
        if (scale[m] < scale[0] || scale[m] > scale[0])
            return 0;
    return 1;
}

static void fill_working(hbp__stages *s)
{
    int32_t count = s->layers->count;
    for (int32_t i = 0; i < count; i++) {
        double bytes = (double)hbp__layer_working_bytes(s->layers, i, choice_of(s, i));
        s->working[i] = hbp__round_i64(bytes * s->live.sum[s->layers->type[i]][1]);
    }
    for (int64_t level = 1, width = 2; width <= count; level++, width *= 2) {
        const int64_t *half = s->working + (level - 1) * count;
        for (int64_t i = 0; i + width <= count; i++)
            s->working[level * count + i] = hbp__max_i64(half[i], half[i + width / 2]);
    }
}

/* The most working bytes of layers [begin, end), by two overlapping powers of two. */
static int64_t most_working(const hbp__stages *s, int32_t begin, int32_t end)
{
    int64_t level = 0;
    while (INT64_C(2) << level <= end - begin)
        level++;
    const int64_t *row = s->working + level * s->layers->count;
    return hbp__max_i64(row[begin], row[end - (INT64_C(1) << level)]);
}

static int64_t held_bytes(const hbp__stages *s, int32_t chunk, int32_t begin, int32_t end)
{
    int64_t places = s->layers->count + 1, bytes = s->state[end] - s->state[begin];
    for (int32_t k = 0; k < HBP_LAYER_TYPES; k++) {
        const int64_t *kept = s->kept + k * places;
        double held = (double)(kept[end] - kept[begin]) * s->live.sum[k][s->in_flight[chunk]];
        bytes = hbp__add_saturating(bytes, hbp__round_i64(held));
    }
    return bytes;
}

/* How far each chunk gets that is alone on its stage, with `more` bytes than the limit: both its ends go
 * forwards only. */
static void fill_reach(hbp__stages *s, int64_t more)
{
    int32_t count = s->layers->count;
    for (int32_t c = 0; c < s->chunks; c++) {
        int64_t limit = hbp__add_saturating(s->pipeline->limit_bytes[c % s->stages], more);
        int32_t *reach = s->reach + c * (int64_t)(count + 1), end = 0;
        for (int32_t begin = 0; begin <= count; begin++) {
            end = end > begin ? end : begin;
            while (end < count && hbp__add_saturating(held_bytes(s, c, begin, end + 1),
                                                      most_working(s, begin, end + 1)) <= limit)
                end++;
            reach[begin] = end;
        }
    }
}

hbp_status hbp__stages_open(hbp_context *context, const hbp_layers *layers,
                            const hbp_pipeline_options *pipeline, hbp__stages *s)
{
    *s = (hbp__stages){.layers = layers, .pipeline = pipeline};
    s->stages = pipeline->stages;
    s->chunks = pipeline->stages * hbp__pipeline_virtual(pipeline);
    const double *scales[] = {pipeline->vision_scale, pipeline->vision_time_scale, pipeline->token_scale,
                              pipeline->token_time_scale};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        s->uneven |= !are_alike(scales[i], pipeline->micro_batches);
    HBP__TRY(take_columns(context, s));
    HBP__TRY(hbp__live_open(context, pipeline, &s->live));
    sum_layers(s);
    price_cuts(s);
    fill_chain(s);
    for (int32_t c = 0; c < s->chunks; c++)
        s->in_flight[c] = hbp__pipeline_in_flight(pipeline, c);
    if (s->reach) {
        fill_working(s);
        fill_reach(s, 0);
    }
    hbp_status status = check_times(context, s);
    if (status < 0)
        hbp__stages_close(s);
    return status;
}

void hbp__stages_close(hbp__stages *s)
{
    if (s->live.sum[0])
        hbp__live_close(&s->live);
    *s = (hbp__stages){.layers = NULL};
}

int64_t hbp__stages_peak(const hbp__stages *s, const int32_t *cuts, int32_t chunks, int32_t stage)
{
    int64_t bytes = 0, working = 0;
    for (int32_t c = stage; c < chunks; c += s->stages) {
        bytes = hbp__add_saturating(bytes, held_bytes(s, c, cuts[c], cuts[c + 1]));
        working = hbp__max_i64(working, most_working(s, cuts[c], cuts[c + 1]));
    }
    return hbp__add_saturating(bytes, working);
}

int hbp__stages_fit(const hbp__stages *s, const int32_t *cuts)
{
    for (int32_t stage = 0; s->reach && stage < s->stages; stage++)
        if (hbp__stages_peak(s, cuts, s->chunks, stage) > s->pipeline->limit_bytes[stage])
            return 0;
    return 1;
}

int64_t hbp__stages_weigh(const hbp__stages *s, const int32_t *cuts, int64_t *load)
{
    return hbp__rounds_value(&(hbp__rounds){.chain = &s->chain, .workers = s->stages}, cuts, load);
}

int64_t hbp__stages_cut_bytes(const hbp__stages *s, const int32_t *cuts)
{
    int64_t bytes = 0;
    for (int32_t c = 1; c < s->chunks; c++)
        bytes += s->layers->cut_bytes[cuts[c] - 1];
    return bytes;
}

double hbp__stages_variance(const hbp__stages *s, const int64_t *load)
{
    double mean = 0, squares = 0;
    for (int32_t stage = 0; stage < s->stages; stage++)
        mean += (double)load[stage];
    mean /= s->stages;
    for (int32_t stage = 0; stage < s->stages; stage++)
        squares += ((double)load[stage] - mean) * ((double)load[stage] - mean);
    return squares / s->stages;
}

hbp__shortage hbp__stages_shortage(const hbp__stages *s, const int32_t *cuts, const char *how)
{
    hbp__shortage worst = {.how = how, .has_more = s->chunks > s->stages};
    int64_t most = 0;
    int32_t stage_of_most = 0;
    for (int32_t stage = 0; stage < s->stages; stage++) {
        int64_t peak = hbp__stages_peak(s, cuts, s->chunks, stage),
                lacks = peak - s->pipeline->limit_bytes[stage];
        if (lacks > most) {
            most = lacks;
            worst.need_bytes = peak;
            stage_of_most = stage;
        }
    }
    worst.stage = stage_of_most;
    worst.first_layer = cuts[stage_of_most];
    worst.last_layer = cuts[stage_of_most + 1] - 1;
    worst.limit_bytes = s->pipeline->limit_bytes[stage_of_most];
    return worst;
}

hbp_status hbp__stages_nearest(hbp_context *context, hbp__stages *s, int32_t *cuts)
{
    int64_t low = 0, high = INT64_MAX;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        fill_reach(s, middle);
        int32_t fits = hbp__chain_first(context, &s->chain, cuts);
        HBP__TRY(fits);
        if (fits > 0)
            high = middle;
        else
            low = middle + 1;
    }
    fill_reach(s, low);
    HBP__TRY(hbp__chain_first(context, &s->chain, cuts));
    fill_reach(s, 0);
    return HBP_OK;
}
