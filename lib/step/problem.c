/* A step as a problem: its options checked, the degrees and sequences that they leave, and the refusal of a
 * sequence that no group holds. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/methods.h"
#include "base/options.h"
#include "base/scratch.h"
#include "data/packs/padding.h"
#include "step/step.h"

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S  INT64_C(1000000000)

static int64_t now_ns(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now))
        return 0;
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

int hbp__step_is_late(const hbp__step *step)
{
    return step->deadline_ns && now_ns() >= step->deadline_ns;
}

/* The program of the exact solver knows one size of a sequence, and no number of samples. */
static hbp_status check_exact(hbp_context *context, const hbp_step_options *o)
{
    if (!o->exact)
        return HBP_OK;
    int32_t method = hbp__step_method(o->method);
    if (method != HBP__STEP_SEARCH && method != HBP__STEP_FLEXSP)
        return hbp__fail(context, HBP_E_INVALID, "`exact` is set; method %s has no use for it", o->method);
    const struct {
        const char *name;
        int64_t value;
    } fields[] = {{"max_samples", o->max_samples},
                  {"sequence_multiple_per_sp", o->sequence_multiple_per_sp},
                  {"pack_multiple_per_sp", o->pack_multiple_per_sp}};
    for (int i = 0; i < 3; i++)
        if (fields[i].value)
            return hbp__fail(context, HBP_E_INVALID, "`exact` is set, which does not plan for %s; it is %lld",
                             fields[i].name, (long long)fields[i].value);
    return HBP_OK;
}

/* Checks every field and fills the defaults in. */
static hbp_status read_options(hbp__step *step, const hbp_step_options *caller)
{
    hbp_context *context = step->context;
    hbp_step_options *o = &step->options;
    HBP__TRY(hbp__options_read(context, o, sizeof *o, caller, "hbp_step_options"));
    HBP__TRY(hbp__check_range(context, "min_sp", o->min_sp, 0, step->ranks));
    if (o->max_micro_batches && o->min_micro_batches > o->max_micro_batches)
        return hbp__fail(context, HBP_E_INVALID,
                         "`min_micro_batches` is %d, above max_micro_batches, which is %d",
                         (int)o->min_micro_batches, (int)o->max_micro_batches);
    HBP__TRY(check_exact(context, o));
    int64_t multiple = o->micro_batch_multiple ? o->micro_batch_multiple : 1;
    if (o->max_micro_batches &&
        hbp__round_up(hbp__max_i64(o->min_micro_batches, 1), multiple) > o->max_micro_batches)
        return hbp__fail(context, HBP_E_INVALID,
                         "`max_micro_batches` is %d; no multiple of micro_batch_multiple, which is %lld, "
                         "lies between min_micro_batches and it",
                         (int)o->max_micro_batches, (long long)multiple);
    if (!o->effort)
        o->effort = 1;
    if (!o->min_sp)
        o->min_sp = 1;
    if (!o->max_sp)
        o->max_sp = INT32_MAX;
    if (!o->micro_batch_multiple)
        o->micro_batch_multiple = 1;
    if (!o->buckets)
        o->buckets = hbp__step_method(o->method) == HBP__STEP_FLEXSP ? 16 : -1;
    if (!o->sequence_multiple)
        o->sequence_multiple = 1;
    if (!o->pack_multiple)
        o->pack_multiple = 1;
    step->most_samples = o->max_samples ? o->max_samples : INT64_MAX;
    step->most_vision = o->max_vision ? o->max_vision : INT64_MAX;
    if (o->time_limit_ms) {
        int64_t now = now_ns();
        step->deadline_ns = hbp__add_saturating(now, o->time_limit_ms * NS_PER_MS);
    }
    return HBP_OK;
}

/* The most tokens that the options allow in a group of `degree` ranks. */
static int64_t most_tokens(const hbp_step_options *o, int32_t degree)
{
    int64_t most = o->max_pack_length ? o->max_pack_length : HBP_MAX_LENGTH;
    return o->tokens_per_rank ? hbp__min_i64(most, o->tokens_per_rank * degree) : most;
}

static int64_t pack_multiple_of(const hbp_step_options *o, int32_t degree)
{
    return hbp__padding_multiple(o->pack_multiple, o->pack_multiple_per_sp, degree);
}

static int64_t sequence_multiple_of(const hbp_step_options *o, int32_t degree)
{
    return hbp__padding_multiple(o->sequence_multiple, o->sequence_multiple_per_sp, degree);
}

/* Whether vision units count: where they cost something, or their number is limited. */
static int counts_vision(const hbp__step *step)
{
    return step->lengths && step->lengths->vision_sum > 0 &&
           (hbp__cost_charges_vision(step->cost) || step->options.max_vision > 0);
}

static int counts_vision_bytes(const hbp__step *step)
{
    return counts_vision(step) && step->cost->terms.vision_bytes > 0;
}

/* The points of a degree that the options allow. */
static int32_t list_points(const hbp__step *step, int32_t row, hbp__point *points)
{
    const hbp_step_options *o = &step->options;
    int32_t degree = step->cost->degree[row], layers = step->cost->terms.layers;
    hbp__point_range range = {.first = o->recompute == HBP_STEP_RECOMPUTE_ALL ? layers : 0,
                              .last = o->recompute == HBP_STEP_RECOMPUTE_NONE ? 0 : layers,
                              .most = most_tokens(o, degree),
                              .multiple = pack_multiple_of(o, degree)};
    range.stride = (range.last - range.first) / (HBP__STEP_WAYS - 2) + 1;
    if (!counts_vision_bytes(step))
        return hbp__points_list(step->cost, row, &range, points);
    /* Beside vision units memory may ask for more layers than the caps of tokens or the padding of packs
     * do. */
    hbp_cost uncapped = *step->cost;
    uncapped.tokens_per_rank = 0;
    range.most = HBP_MAX_LENGTH;
    range.multiple = 1;
    range.keeps_equal = 1;
    return hbp__points_list(&uncapped, row, &range, points);
}

/* Sets what finds a way by its tokens. */
static void index_ways(const hbp__step *step, hbp__step_degree *degree)
{
    int32_t way = 0;
    degree->capacity = hbp__min_i64(degree->way[degree->ways - 1].capacity, degree->most);
    degree->capacity -= degree->capacity % degree->pack_multiple;
    degree->plain = counts_vision(step) ? -1 : degree->way[0].capacity;
    degree->constant = degree->way[0].constant;
    degree->linear = degree->way[0].linear;
    degree->square = degree->way[0].square;
    /* A degree that holds nothing has one slot, which nothing asks for. */
    degree->slots_per_token = degree->capacity ? (double)HBP__STEP_SLOTS / (double)degree->capacity : 0;
    for (int32_t slot = 0; slot <= HBP__STEP_SLOTS; slot++) {
        /* Less than any tokens that round into the slot. */
        int64_t tokens = degree->capacity ? (int64_t)((double)slot / degree->slots_per_token) - 1 : -1;
        while (way < degree->ways - 1 && degree->way[way].capacity < tokens)
            way++;
        degree->first[slot] = (uint8_t)way;
    }
}

static int is_power_of_two(int32_t x)
{
    return (x & (x - 1)) == 0;
}

static int is_used(const hbp__step *step, int32_t row)
{
    const hbp_step_options *o = &step->options;
    int32_t d = step->cost->degree[row];
    return d >= o->min_sp && d <= o->max_sp && (o->any_degree || is_power_of_two(d));
}

/* Tokens that take the memory of a vision unit. */
static double vision_tokens(const hbp__step *step, const hbp__point *way)
{
    double per_token = hbp__cost_bytes_per_token(step->cost, way->row, way->recompute);
    return counts_vision_bytes(step) && per_token > 0 ? step->cost->terms.vision_bytes / per_token : 0;
}

static hbp_status list_degrees(hbp__step *step)
{
    const hbp_cost *cost = step->cost;
    const hbp_step_options *o = &step->options;
    int32_t rows[HBP__STEP_DEGREES], count = 0;
    for (int32_t row = 0; row < cost->terms.degrees; row++) {
        if (!is_used(step, row))
            continue;
        if (count == HBP__STEP_DEGREES)
            return hbp__fail(step->context, HBP_E_INVALID, "the cost has more than %d degrees to choose from",
                             HBP__STEP_DEGREES);
        rows[count++] = row;
    }
    if (!count)
        return hbp__fail(step->context, HBP_E_INVALID,
                         "the cost has no SP degree in min_sp..max_sp, which is %d..%d%s", (int)o->min_sp,
                         (int)o->max_sp, o->any_degree ? "" : ", and a power of two");
    step->way = hbp__take(step->context, (uint64_t)count * HBP__STEP_WAYS, sizeof *step->way);
    uint8_t *first = hbp__take(step->context, (uint64_t)count * (HBP__STEP_SLOTS + 1), sizeof *first);
    HBP__TRY(hbp__scratch_check(step->context, "the SP degrees"));
    step->chain = 1;
    hbp__point *next = step->way;
    for (int32_t i = 0; i < count; i++) {
        hbp__step_degree *degree = &step->degree[step->degrees];
        int32_t ways = list_points(step, rows[i], next);
        if (!ways)
            continue;
        int32_t d = cost->degree[rows[i]];
        *degree = (hbp__step_degree){.degree = d,
                                     .row = rows[i],
                                     .ways = ways,
                                     .way = next,
                                     .first = first + i * (HBP__STEP_SLOTS + 1),
                                     .sequence_multiple = sequence_multiple_of(o, d),
                                     .pack_multiple = pack_multiple_of(o, d)};
        degree->most = hbp__min_i64(most_tokens(o, d), hbp__cost_most_tokens(cost, d));
        degree->most -= degree->most % degree->pack_multiple;
        if (!degree->most)
            continue;
        degree->vision_tokens = vision_tokens(step, &next[ways - 1]);
        step->vision_tokens =
            step->degrees ? hbp__min_f64(step->vision_tokens, degree->vision_tokens) : degree->vision_tokens;
        index_ways(step, degree);
        if (step->degrees && degree->degree % degree[-1].degree)
            step->chain = 0;
        step->degrees++;
        next += ways;
    }
    step->taken = step->chain ? NULL : hbp__take(step->context, (uint64_t)step->ranks, 1);
    return hbp__scratch_check(step->context, "the ranks");
}

/* Tokens of sequence k, each sample padded to a multiple of `multiple`. */
static int64_t padded_tokens(const hbp__step *step, int64_t k, int64_t multiple)
{
    const hbp__items *items = &step->items;
    int64_t tokens = 0;
    for (uint32_t s = items->sample[hbp__step_item(step, k)]; s != HBP__NO_SAMPLE;
         s = items->next ? items->next[s] : HBP__NO_SAMPLE)
        tokens += hbp__round_up(hbp__lengths_get(step->lengths, s), multiple);
    return tokens;
}

void hbp__step_set_columns(hbp__step *step)
{
    for (int32_t j = 0; j < step->degrees; j++) {
        hbp__step_degree *degree = &step->degree[j];
        degree->tokens = step->padded ? step->padded + j * step->count : step->tokens;
        degree->longest = step->count ? degree->tokens[0] : 0;
        for (int64_t k = 1; (step->padded || step->vision) && k < step->count; k++)
            degree->longest = hbp__max_i64(degree->longest, degree->tokens[k]);
    }
}

/* What else the options ask to know of each sequence. */
static hbp_status list_columns(hbp__step *step)
{
    hbp_context *context = step->context;
    uint64_t count = (uint64_t)step->count;
    if (step->options.sequence_multiple_per_sp) {
        step->padded = hbp__take(context, count * (uint64_t)step->degrees, sizeof *step->padded);
        HBP__TRY(hbp__scratch_check(context, "the sequences"));
        for (int32_t j = 0; j < step->degrees; j++)
            for (int64_t k = 0; k < step->count; k++) {
                HBP__TRY(hbp__tick_row(context, "sequences", k, step->count));
                step->padded[j * step->count + k] = padded_tokens(step, k, step->degree[j].sequence_multiple);
            }
    }
    if ((step->options.max_samples || step->options.equal_samples) && step->items.next) {
        step->samples = hbp__take(context, count, sizeof *step->samples);
        HBP__TRY(hbp__scratch_check(context, "the sequences"));
        for (int64_t k = 0; k < step->count; k++) {
            HBP__TRY(hbp__tick_row(context, "sequences", k, step->count));
            step->samples[k] = (int32_t)hbp__items_members(&step->items, hbp__step_item(step, k));
        }
    }
    hbp__step_set_columns(step);
    return HBP_OK;
}

/* The option that chooses degrees, where there are such. */
static int64_t sequence_per_rank(const hbp_step_options *o)
{
    return hbp__step_method(o->method) == HBP__STEP_HYBRID_CP ? o->sequence_tokens_per_rank : 0;
}

int64_t hbp__step_sequence_most(const hbp__step *step, int32_t j)
{
    const hbp__step_degree *degree = &step->degree[j];
    int64_t most = sequence_per_rank(&step->options) * degree->degree;
    if (!most)
        return degree->capacity;
    return hbp__min_i64(most - most % degree->pack_multiple, degree->capacity);
}

int64_t hbp__step_find_unheld(const hbp__step *step)
{
    for (int64_t k = 0; k < step->count; k++) {
        int32_t j = 0;
        while (j < step->degrees && (step->degree[j].tokens[k] > hbp__step_sequence_most(step, j) ||
                                     !hbp__step_holds_alone(step, j, k)))
            j++;
        if (j == step->degrees)
            return k;
        if (!step->padded && !step->samples && !step->vision)
            break; /* the longest */
    }
    return step->count;
}

int64_t hbp__step_fewest_for_caps(const hbp__step *step)
{
    int64_t samples = 0, vision = 0, groups = step->ranks / step->degree[0].degree;
    if (step->most_samples == INT64_MAX && step->most_vision == INT64_MAX)
        return 1;
    for (int64_t k = 0; k < step->count; k++) {
        samples += hbp__step_samples(step, k);
        vision += hbp__step_vision(step, k);
    }
    samples = hbp__ceil_div(samples, hbp__mul_saturating(groups, step->most_samples));
    return hbp__max_i64(samples, hbp__ceil_div(vision, hbp__mul_saturating(groups, step->most_vision)));
}

int hbp__step_holds_each(const hbp__step *step, int32_t j)
{
    int64_t k = step->vision ? 0 : step->count;
    while (k < step->count && hbp__step_holds_alone(step, j, k))
        k++;
    return k == step->count && step->degree[j].capacity >= step->degree[j].longest;
}

/* The least tokens of a rank and of a pack with which memory has a group for every sequence, each
 * for itself, so that one more try is enough; the first sequence that memory has none for, `count` when there
 * is none. */
static int64_t find_caps(const hbp__step *step, int64_t *per_rank, int64_t *length)
{
    hbp_cost cost = *step->cost; /* an epoch's has the cap already */
    const hbp_step_options *o = &step->options;
    int32_t layers = o->recompute == HBP_STEP_RECOMPUTE_NONE ? 0 : cost.terms.layers, rows = 0;
    int32_t degree[HBP__STEP_DEGREES];
    int64_t capacity[HBP__STEP_DEGREES];
    cost.tokens_per_rank = *per_rank = *length = 0;
    for (int32_t row = 0; row < cost.terms.degrees; row++)
        if (is_used(step, row)) {
            degree[rows] = cost.degree[row];
            capacity[rows++] = hbp__cost_capacity(&cost, row, layers, 0);
        }
    for (int64_t k = 0; k < step->count; k++) {
        int64_t least_rank = INT64_MAX, least = INT64_MAX;
        for (int32_t i = 0; i < rows; i++) {
            int64_t tokens = hbp__round_up(padded_tokens(step, k, sequence_multiple_of(o, degree[i])),
                                           pack_multiple_of(o, degree[i]));
            if (tokens > capacity[i])
                continue;
            least_rank = hbp__min_i64(least_rank, hbp__ceil_div(tokens, degree[i]));
            least = hbp__min_i64(least, tokens);
        }
        if (least == INT64_MAX)
            return k;
        *per_rank = hbp__max_i64(*per_rank, least_rank);
        *length = hbp__max_i64(*length, least);
    }
    return step->count;
}

/* Says that sequence k has more samples than a pack may hold. */
static hbp_status refuse_members(const hbp__step *step, int64_t k)
{
    int64_t item = hbp__step_item(step, k), sample = step->items.sample[item], most = 0;
    for (int64_t i = 0; i < step->count; i++)
        most = hbp__max_i64(most, hbp__items_members(&step->items, i));
    return hbp__fail(step->context, HBP_E_INFEASIBLE,
                     "sample %lld with its linked samples makes %lld; max_samples is %lld (%lld would do)",
                     (long long)(step->lengths->origin ? step->lengths->origin[sample] : sample),
                     (long long)hbp__items_members(&step->items, item), (long long)step->most_samples,
                     (long long)most);
}

/* Whether some group would hold sequence k without its vision units. */
static int holds_tokens(const hbp__step *step, int64_t k)
{
    int32_t j = 0;
    while (j < step->degrees && step->degree[j].tokens[k] > hbp__step_sequence_most(step, j))
        j++;
    return j < step->degrees;
}

/* Says that it is the vision units of sequence k for which no group has room. */
static hbp_status refuse_vision(const hbp__step *step, int64_t k)
{
    int64_t item = hbp__step_item(step, k), sample = step->items.sample[item], most = 0;
    const char *linked = hbp__items_members(&step->items, item) > 1 ? " with its linked samples" : "";
    sample = step->lengths->origin ? step->lengths->origin[sample] : sample;
    for (int64_t i = 0; i < step->count; i++)
        most = hbp__max_i64(most, step->vision[i]);
    if (step->vision[k] > step->most_vision)
        return hbp__fail(step->context, HBP_E_INFEASIBLE,
                         "sample %lld%s has %lld vision units; max_vision is %lld (%lld would do)",
                         (long long)sample, linked, (long long)step->vision[k], (long long)step->most_vision,
                         (long long)most);
    return hbp__fail(
        step->context, HBP_E_INFEASIBLE,
        "sample %lld%s has %lld tokens with padding and %lld vision units; no SP group has memory "
        "for both",
        (long long)sample, linked, (long long)step->degree[step->degrees - 1].tokens[k],
        (long long)step->vision[k]);
}

/* Says that no group holds sequence k, or one that memory has no group for, and which option it is that keeps
 * it out, with what would do for every sequence. */
static hbp_status refuse(const hbp__step *step, int64_t k)
{
    const hbp_step_options *o = &step->options;
    int64_t holds = 0, per_rank = 0, length = 0;
    for (int32_t j = 0; j < step->degrees; j++)
        holds = hbp__max_i64(holds, hbp__step_sequence_most(step, j));
    char why[256] = "";
    if (hbp__items_members(&step->items, hbp__step_item(step, k)) > step->most_samples)
        return refuse_members(step, k);
    if (hbp__step_vision(step, k) > 0 && holds_tokens(step, k))
        return refuse_vision(step, k);
    const struct {
        const char *name;
        int64_t value;
        const int64_t *needed;
    } cap[] = {{"tokens_per_rank", o->tokens_per_rank, &per_rank},
               {"sequence_tokens_per_rank", sequence_per_rank(o), &per_rank},
               {"max_pack_length", o->max_pack_length, &length}};
    int64_t lost = cap[0].value || cap[1].value || cap[2].value ? find_caps(step, &per_rank, &length) : k;
    int is_capped = lost == step->count;
    k = is_capped ? k : lost;
    int64_t item = hbp__step_item(step, k), sample = step->items.sample[item];
    int64_t tokens = step->degrees ? step->degree[step->degrees - 1].tokens[k] : step->tokens[k];
    sample = step->lengths->origin ? step->lengths->origin[sample] : sample;
    for (int i = 0; i < 3 && is_capped; i++)
        if (cap[i].value && *cap[i].needed > cap[i].value)
            snprintf(why + strlen(why), sizeof why - strlen(why), "%s with %s %lld (%lld would do)",
                     why[0] ? " and" : "", cap[i].name, (long long)cap[i].value, (long long)*cap[i].needed);
    for (int i = 0, together = !why[0]; i < 3 && is_capped && together; i++) /* each for itself would do */
        if (cap[i].value)
            snprintf(why + strlen(why), sizeof why - strlen(why), " %s %s %lld", why[0] ? "and" : "with both",
                     cap[i].name, (long long)cap[i].value);
    return hbp__fail(step->context, HBP_E_INFEASIBLE,
                     "sample %lld%s has %lld tokens with padding; the longest pack holds %lld%s",
                     (long long)sample,
                     hbp__items_members(&step->items, item) > 1 ? " with its linked samples" : "",
                     (long long)tokens, (long long)holds, why);
}

/* Sequences in descending order of tokens, from the items, which ascend; vision units change the order. */
static hbp_status list_sequences(hbp__step *step)
{
    HBP__TRY(hbp__items_open(step->context, step->lengths, step->options.sequence_multiple, INT64_MAX, 0, 0,
                             &step->items));
    step->count = step->items.count;
    step->tokens = hbp__take(step->context, (uint64_t)step->count, sizeof *step->tokens);
    step->squares = hbp__take(step->context, (uint64_t)step->count, sizeof *step->squares);
    HBP__TRY(hbp__scratch_check(step->context, "the sequences"));
    for (int64_t i = 0; i < step->count; i++) {
        HBP__TRY(hbp__tick_row(step->context, "sequences", i, step->count));
        int64_t item = step->count - 1 - i;
        step->tokens[i] = step->items.size[item];
        step->squares[i] = (double)hbp__items_exact_squares(&step->items, item);
        step->total_tokens += step->tokens[i];
    }
    step->weight = step->tokens;
    if (counts_vision(step))
        HBP__TRY(hbp__step_list_vision(step));
    HBP__TRY(list_columns(step));
    int64_t unheld = hbp__step_find_unheld(step);
    return unheld < step->count ? refuse(step, unheld) : HBP_OK;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void hbp__step_trim(hbp__step *step)
{
    hbp__point *way = step->way;
    for (int32_t j = 0; j < step->degrees; j++) {
        hbp__step_degree *degree = &step->degree[j];
        int64_t unit = degree->pack_multiple == 1 ? 0 : 1;
        for (int64_t i = 0; i < step->count && unit != 1; i++)
            unit = common_divisor(degree->tokens[i], unit);
        for (int32_t i = 0; i < degree->ways; i++, way++)
            way->capacity -= unit ? way->capacity % unit : 0;
        index_ways(step, degree);
    }
}

hbp_status hbp__step_open(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                          const hbp_step_options *options, hbp__step *step)
{
    memset(step, 0, sizeof *step);
    step->context = context;
    step->cost = cost;
    step->lengths = lengths;
    step->ranks = cost->terms.ranks;
    step->domain = cost->terms.domain_ranks;
    HBP__TRY(read_options(step, options));
    HBP__TRY(list_degrees(step));
    return lengths ? list_sequences(step) : HBP_OK;
}

void hbp__step_close(hbp__step *step)
{
    if (step->items.memory.release)
        hbp__items_close(&step->items);
}
