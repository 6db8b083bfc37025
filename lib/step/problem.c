#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/options.h"
#include "step/step.h"

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S  INT64_C(1000000000)

/* A limit that no clock reaches. */
#define MOST_MS (INT64_C(1) << 40)

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

static hbp_status check_range(hbp_context *context, const char *name, int64_t value, int64_t least,
                              int64_t most)
{
    if (value >= least && value <= most)
        return HBP_OK;
    return hbp__fail(context, HBP_E_INVALID, "hbp_step_options.%s is %lld; it must lie in %lld..%lld", name,
                     (long long)value, (long long)least, (long long)most);
}

/* Checks every field and fills the defaults in. */
static hbp_status read_options(hbp__step *step, const hbp_step_options *caller)
{
    hbp_context *context = step->context;
    hbp_step_options *o = &step->options;
    HBP__TRY(hbp__options_read(context, o, sizeof *o, caller, "hbp_step_options"));
    HBP__TRY(check_range(context, "mode", o->mode, 0, HBP_STEP_MODE_COUNT - 1));
    HBP__TRY(check_range(context, "solver", o->solver, HBP_STEP_SEARCH, HBP_STEP_EXACT));
    HBP__TRY(check_range(context, "effort", o->effort, 0, 9));
    HBP__TRY(check_range(context, "degrees", o->degrees, HBP_STEP_POWERS_OF_TWO, HBP_STEP_ANY_DEGREE));
    HBP__TRY(check_range(context, "min_sp", o->min_sp, 0, step->ranks));
    HBP__TRY(check_range(context, "max_sp", o->max_sp, 0, INT32_MAX));
    HBP__TRY(
        check_range(context, "recompute", o->recompute, HBP_STEP_RECOMPUTE_AUTO, HBP_STEP_RECOMPUTE_ALL));
    HBP__TRY(check_range(context, "min_micro_batches", o->min_micro_batches, 0, 65536));
    HBP__TRY(check_range(context, "max_micro_batches", o->max_micro_batches, 0, 65536));
    HBP__TRY(check_range(context, "micro_batch_multiple", o->micro_batch_multiple, 0, 65536));
    HBP__TRY(check_range(context, "buckets", o->buckets, -1, 4096));
    HBP__TRY(check_range(context, "sequence_multiple", o->sequence_multiple, 0, HBP_MAX_LENGTH));
    HBP__TRY(check_range(context, "pack_multiple", o->pack_multiple, 0, HBP_MAX_LENGTH));
    HBP__TRY(check_range(context, "longest_tokens", o->longest_tokens, 0, HBP_MAX_LENGTH));
    HBP__TRY(check_range(context, "tokens_per_rank", o->tokens_per_rank, 0, HBP_MAX_LENGTH));
    HBP__TRY(check_range(context, "time_limit_ms", o->time_limit_ms, 0, MOST_MS));
    if (o->max_micro_batches && o->min_micro_batches > o->max_micro_batches)
        return hbp__fail(context, HBP_E_INVALID,
                         "hbp_step_options.min_micro_batches is %d, above max_micro_batches, which is %d",
                         (int)o->min_micro_batches, (int)o->max_micro_batches);
    if (o->solver == HBP_STEP_EXACT && o->mode != HBP_STEP_DEFAULT && o->mode != HBP_STEP_PAPER)
        return hbp__fail(context, HBP_E_INVALID,
                         "hbp_step_options.solver is exact; mode %s has no use for it",
                         hbp_step_mode_name(o->mode));
    int64_t multiple = o->micro_batch_multiple ? o->micro_batch_multiple : 1;
    if (o->max_micro_batches &&
        hbp__round_up(hbp__max_i64(o->min_micro_batches, 1), multiple) > o->max_micro_batches)
        return hbp__fail(
            context, HBP_E_INVALID,
            "hbp_step_options.max_micro_batches is %d; no multiple of micro_batch_multiple, which is %lld, "
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
        o->buckets = o->mode == HBP_STEP_PAPER ? 16 : -1;
    if (!o->sequence_multiple)
        o->sequence_multiple = 1;
    if (!o->pack_multiple)
        o->pack_multiple = 1;
    if (o->time_limit_ms) {
        int64_t now = now_ns();
        step->deadline_ns = hbp__add_saturating(now, o->time_limit_ms * NS_PER_MS);
    }
    return HBP_OK;
}

static hbp__step_way way_of(const hbp_cost *cost, int32_t row, int32_t recompute)
{
    const hbp_cost_terms *t = &cost->terms;
    double share = (double)recompute / (double)t->layers, degree = cost->degree[row];
    double again = 1 + t->recompute_communication * share;
    hbp__step_way way;
    way.capacity = hbp_cost_predict_capacity(cost, cost->degree[row], recompute);
    way.recompute = recompute;
    way.constant = cost->sp_latency_ns[row] * again + t->pack_ns;
    way.linear =
        t->ns_per_token * (1 + t->recompute_linear * share) / degree + cost->sp_ns_per_token[row] * again;
    way.square = t->ns_per_token_squared * (1 + t->recompute_attention * share) / degree;
    return way;
}

/* The ways of a degree: fewer layers first, each holding more than the one before. */
static int32_t list_ways(const hbp__step *step, int32_t row, hbp__step_way *ways)
{
    int32_t layers = step->cost->terms.layers, first = 0, last = layers, count = 0;
    if (step->options.recompute == HBP_STEP_RECOMPUTE_NONE)
        last = 0;
    if (step->options.recompute == HBP_STEP_RECOMPUTE_ALL)
        first = layers;
    int32_t stride = (last - first) / (HBP__STEP_WAYS - 2) + 1;
    for (int32_t c = first; c <= last; c = c < last && c + stride > last ? last : c + stride) {
        hbp__step_way way = way_of(step->cost, row, c);
        way.capacity -= way.capacity % step->options.pack_multiple;
        if (way.capacity > (count ? ways[count - 1].capacity : 0))
            ways[count++] = way;
    }
    return count;
}

static int is_power_of_two(int32_t x)
{
    return (x & (x - 1)) == 0;
}

static hbp_status list_degrees(hbp__step *step)
{
    const hbp_cost *cost = step->cost;
    const hbp_step_options *o = &step->options;
    int32_t rows[HBP__STEP_DEGREES], count = 0;
    for (int32_t row = 0; row < cost->terms.degrees; row++) {
        int32_t d = cost->degree[row];
        if (d < o->min_sp || d > o->max_sp || (o->degrees == HBP_STEP_POWERS_OF_TWO && !is_power_of_two(d)))
            continue;
        if (count == HBP__STEP_DEGREES)
            return hbp__fail(step->context, HBP_E_INVALID, "the cost has more than %d degrees to choose from",
                             HBP__STEP_DEGREES);
        rows[count++] = row;
    }
    if (!count)
        return hbp__fail(step->context, HBP_E_INVALID,
                         "the cost has no SP degree in min_sp..max_sp, which is %d..%d%s", (int)o->min_sp,
                         (int)o->max_sp, o->degrees == HBP_STEP_POWERS_OF_TWO ? ", and a power of two" : "");
    step->way = hbp__new(&step->context->memory, (uint64_t)count * HBP__STEP_WAYS, sizeof *step->way);
    if (!step->way)
        return hbp__fail_memory(step->context, "the SP degrees");
    step->chain = 1;
    hbp__step_way *next = step->way;
    for (int32_t i = 0; i < count; i++) {
        hbp__step_degree *degree = &step->degree[step->degrees];
        int32_t ways = list_ways(step, rows[i], next);
        if (!ways)
            continue;
        *degree = (hbp__step_degree){cost->degree[rows[i]], rows[i], ways, next, next[ways - 1].capacity};
        if (step->degrees && degree->degree % degree[-1].degree)
            step->chain = 0;
        step->degrees++;
        next += ways;
    }
    step->taken = step->chain ? NULL : hbp__new(&step->context->memory, (uint64_t)step->ranks, 1);
    return step->chain || step->taken ? HBP_OK : hbp__fail_memory(step->context, "the ranks");
}

/* Sequences in descending order of tokens, from the items, which ascend. */
static hbp_status list_sequences(hbp__step *step)
{
    const hbp__memory *memory = &step->context->memory;
    HBP__TRY(hbp__items_open(step->context, step->lengths, step->options.sequence_multiple,
                             hbp__step_capacity(step), 0, 0, &step->items));
    step->count = step->items.count;
    step->tokens = hbp__new(memory, (uint64_t)step->count, sizeof *step->tokens);
    step->squares = hbp__new(memory, (uint64_t)step->count, sizeof *step->squares);
    if (!step->tokens || !step->squares)
        return hbp__fail_memory(step->context, "the sequences");
    for (int64_t i = 0; i < step->count; i++) {
        int64_t item = step->count - 1 - i;
        step->tokens[i] = step->items.size[item];
        step->squares[i] = (double)hbp__items_exact_squares(&step->items, item);
        step->total_tokens += step->tokens[i];
    }
    return HBP_OK;
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
    int64_t unit = step->options.pack_multiple == 1 ? 0 : 1;
    for (int64_t i = 0; i < step->count && unit != 1; i++)
        unit = common_divisor(step->tokens[i], unit);
    hbp__step_way *way = step->way;
    for (int32_t j = 0; j < step->degrees && unit > 1; j++) {
        for (int32_t i = 0; i < step->degree[j].ways; i++, way++)
            way->capacity -= way->capacity % unit;
        step->degree[j].capacity = way[-1].capacity;
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
    const hbp__memory *memory = &step->context->memory;
    if (step->items.memory.release)
        hbp__items_close(&step->items);
    hbp__delete(memory, step->tokens);
    hbp__delete(memory, step->squares);
    hbp__delete(memory, step->way);
    hbp__delete(memory, step->taken);
}
