/* The data of a run: budgets and packs, or the padded micro-batches that they replace; then replicas and
 * steps. */
#include "base/checked.h"
#include "base/methods.h"
#include "base/rng.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "pack/groups/hierarchy.h"
#include "pack/vision/budgets.h"
#include "pack/vision/vector_fill.h"
#include "schedule/balance.h"
#include "vlm/tuning.h"
#include "vlm/vlm.h"

void hbp__vlm_packs_close(hbp__vlm_packs *packs)
{
    hbp_packs_free(packs->packs);
    *packs = (hbp__vlm_packs){.packs = NULL};
}

static int is_isf(const hbp_vlm_options *options)
{
    return hbp__vlm_data_method(options->data_method) == HBP__VLM_DATA_ISF;
}

/* Larger packs make steps of fewer micro-batches, whose pipelines stand idle longer, so packs shall hold
 * little more than was asked for. Where no budgets do that, up to one sample more, then up to twice as many;
 * where the largest samples ask for more room, just that. */
static hbp_status choose_budgets(const hbp__vlm_run *run, int32_t samples, hbp__vlm_packs *out)
{
    const hbp_vlm_options *o = &run->options;
    hbp_budgets_options options = {.struct_size = sizeof options};
    hbp_budgets budgets = {.struct_size = sizeof budgets};
    options.method = hbp__budgets_name(is_isf(o) ? HBP__BUDGETS_LINE : HBP__BUDGETS_PLANE);
    options.samples = samples;
    options.ranks = o->data_parallel;
    options.effort = o->effort;
    options.seed = o->seed;
    const double most[] = {samples * (1 + HBP__VLM_SAMPLES_OVER), samples + 1.0, 2.0 * samples};
    hbp_status status = HBP_E_INFEASIBLE;
    for (int i = 0; i < 3 && status == HBP_E_INFEASIBLE; i++) {
        options.most_samples = most[i];
        status = hbp__choose_budgets(run->context, run->lengths, &options, &budgets);
    }
    if (status == HBP_E_INFEASIBLE) {
        /* The largest samples ask for budgets that hold more of the others: then the least that hold them. */
        budgets.max_vision = run->lengths->max_vision;
        budgets.max_tokens =
            hbp__round_up(run->lengths->bin_length[run->lengths->bins - 1], HBP__VLM_TOKEN_MULTIPLE);
        status = HBP_OK;
    }
    HBP__TRY(status);
    out->max_vision = budgets.max_vision;
    out->max_tokens = budgets.max_tokens;
    return HBP_OK;
}

static hbp_status fill_packs(const hbp__vlm_run *run, int32_t samples, hbp__vlm_packs *out)
{
    const hbp_vlm_options *o = &run->options;
    out->max_vision = o->max_vision;
    out->max_tokens = o->max_tokens;
    if (!out->max_tokens)
        HBP__TRY(choose_budgets(run, samples, out));
    hbp_iterative_fill_options options = {.struct_size = sizeof options};
    options.method =
        hbp__iterative_fill_name(is_isf(o) ? HBP__ITERATIVE_FILL_ISF : HBP__ITERATIVE_FILL_VECTOR);
    options.effort = o->effort;
    options.over_long = o->over_long;
    options.max_tokens = out->max_tokens;
    options.max_vision = out->max_vision;
    options.seed = o->seed;
    options.epoch = o->epoch;
    return hbp__iterative_fill(run->context, run->lengths, &options, &out->packs);
}

/* Samples in the order in which they make micro-batches: drawn at random, or by length. */
static hbp_status order_samples(const hbp__vlm_run *run, uint32_t **out)
{
    if (hbp__vlm_data_method(run->options.data_method) != HBP__VLM_DATA_RANDOM)
        return hbp__lengths_order(run->context, run->lengths, run->options.seed, run->options.epoch, out);
    uint64_t count = (uint64_t)run->lengths->count;
    uint32_t *order = hbp__new(&run->context->memory, count, sizeof *order);
    if (!order)
        return hbp__fail_memory(run->context, "the order of samples");
    for (uint64_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    hbp__rng rng = hbp__rng_make(run->options.seed, run->options.epoch, 0x766c6d);
    hbp_status status = hbp__shuffle(run->context, &rng, order, (int64_t)count);
    if (status >= 0)
        *out = order;
    else
        hbp__delete(&run->context->memory, order);
    return status;
}

/* `samples` samples each, the last with what is left; each is padded to its longest. */
static hbp_status pad_in_order(const hbp__vlm_run *run, const uint32_t *order, int32_t samples,
                               hbp__vlm_packs *out)
{
    hbp_context *context = run->context;
    const hbp_lengths *lengths = run->lengths;
    int64_t count = hbp__ceil_div(lengths->count, samples);
    out->length = hbp__take(context, (uint64_t)count, sizeof *out->length);
    HBP__TRY(hbp__scratch_check(context, "micro-batches"));
    out->packs = hbp__packs_new(context, lengths, count);
    if (!out->packs)
        return hbp__fail_memory(context, "micro-batches");
    int64_t most = lengths->bin_length[lengths->bins - 1];
    if (most * samples > HBP_MAX_LENGTH)
        return hbp__fail(
            context, HBP_E_OVERFLOW,
            "%d samples padded to the longest, %lld tokens, pass the %lld that a micro-batch may hold",
            (int)samples, (long long)most, (long long)HBP_MAX_LENGTH);
    for (int64_t p = 0; p < count; p++) {
        int64_t first = p * samples, end = hbp__min_i64(first + samples, lengths->count), longest = 0;
        for (int64_t i = first; i < end; i++) {
            out->packs->sample[i] = order[i];
            longest = hbp__max_i64(longest, hbp__lengths_get(lengths, order[i]));
        }
        out->packs->group[p] = 0;
        out->packs->offsets[p + 1] = end;
        out->length[p] = longest * (end - first);
        if (p % 65536 == 0)
            HBP__TRY(hbp__tick(context, "micro-batches", p, count));
    }
    out->packs->offsets[0] = 0;
    out->packs->sequence_multiple = out->packs->pack_multiple = 1;
    out->packs->groups = 1;
    out->packs->bound[0] = count;
    return hbp__packs_measure(context, out->packs);
}

static hbp_status pad_samples(const hbp__vlm_run *run, int32_t samples, hbp__vlm_packs *out)
{
    uint32_t *order = NULL;
    HBP__TRY(order_samples(run, &order));
    hbp_status status = pad_in_order(run, order, samples, out);
    hbp__delete(&run->context->memory, order);
    return status;
}

hbp__vlm_size hbp__vlm_pack_size(const hbp__vlm_packs *packs, int64_t p)
{
    const hbp_packs *k = packs->packs;
    hbp__vlm_size size = {(double)k->vision[p], (double)k->padded[p], (double)k->squares[p]};
    if (packs->length) {
        /* Attention over a padded batch runs over the padding, too. */
        double samples = (double)(k->offsets[p + 1] - k->offsets[p]);
        size.tokens = (double)packs->length[p];
        size.squares = size.tokens * size.tokens / samples;
    }
    return size;
}

hbp__vlm_size hbp__vlm_mean(const hbp__vlm_packs *packs)
{
    hbp__vlm_size sum = {0, 0, 0};
    double count = packs->packs->count ? (double)packs->packs->count : 1;
    for (int64_t p = 0; p < packs->packs->count; p++) {
        hbp__vlm_size one = hbp__vlm_pack_size(packs, p);
        sum.vision += one.vision;
        sum.tokens += one.tokens;
        sum.squares += one.squares;
    }
    return (hbp__vlm_size){sum.vision / count, sum.tokens / count, sum.squares / count};
}

hbp_status hbp__vlm_fill(const hbp__vlm_run *run, int32_t samples, hbp__vlm_packs *out)
{
    *out = (hbp__vlm_packs){.packs = NULL};
    int packed =
        hbp__vlm_data_method(run->options.data_method) == HBP__VLM_DATA_PACKED || is_isf(&run->options);
    hbp_status status = packed ? fill_packs(run, samples, out) : pad_samples(run, samples, out);
    if (status >= 0 && !(hbp__vlm_mean(out).vision > 0))
        status = hbp__fail(run->context, HBP_E_INFEASIBLE,
                           "no sample with vision units is left; %lld of %lld samples were dropped",
                           (long long)out->packs->dropped, (long long)run->lengths->count);
    if (status < 0)
        hbp__vlm_packs_close(out);
    return status;
}

int32_t hbp__vlm_micro_batches(const hbp__vlm_run *run, const hbp__vlm_packs *packs)
{
    const hbp_vlm_options *o = &run->options;
    if (o->micro_batches)
        return o->micro_batches;
    /* round(batch_samples / (replicas * samples a pack)), in whole turns of the stages where they interleave
     */
    int64_t unit = o->virtual_stages > 1 ? o->pipeline_stages : 1;
    int64_t samples = packs->packs->samples * o->data_parallel * unit;
    int64_t wanted = (int64_t)o->batch_samples * packs->packs->count;
    int64_t turns = hbp__max_i64((wanted + samples / 2) / samples, 1);
    return (int32_t)hbp__min_i64(turns, (INT32_MAX >> 4) / unit) * (int32_t)unit;
}

/* The cost that a plan of replicas is dealt by: time as if all stages were even, memory left to the stages.
 */
static hbp_status make_cost(const hbp__vlm_run *run, const hbp__vlm_reference *reference, hbp_cost **out)
{
    static const int32_t degree[1] = {1};
    static const double zero[1] = {0};
    double stages = run->options.pipeline_stages;
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    terms.ranks = terms.domain_ranks = run->options.data_parallel;
    terms.layers = 1;
    terms.ns_per_token = reference->token_ns / stages;
    terms.ns_per_token_squared = reference->square_ns / stages;
    terms.ns_per_vision = reference->vision_ns / stages;
    terms.pack_ns = reference->fixed_ns / stages;
    terms.limit_bytes = run->limit_bytes;
    terms.degrees = 1;
    terms.degree = degree;
    terms.sp_latency_ns = terms.sp_ns_per_token = zero;
    return hbp__cost_make(run->context, &terms, "given", out);
}

static int32_t balance_method(int32_t data)
{
    switch (data) {
    case HBP__VLM_DATA_PACKED:
        return HBP__BALANCE_VISION;
    case HBP__VLM_DATA_GROUPED:
        return HBP__BALANCE_RANDOM;
    default:
        return HBP__BALANCE_GIVEN;
    }
}

/* A row's capacity becomes what its batch is padded to. */
static hbp_status write_lengths(hbp_context *context, hbp_plan *plan)
{
    for (int64_t p = 0; p < plan->packs; p++) {
        HBP__TRY(hbp__tick_row(context, "pad", p, plan->packs));
        int64_t first = plan->pack_offsets[p], longest = 0;
        int64_t samples = plan->pack_offsets[p + 1] - first;
        for (int64_t i = 0; i < samples; i++)
            longest = hbp__max_i64(longest, plan->sample_tokens[first + i]);
        plan->pack_capacity[p] = longest * samples;
    }
    return hbp__plan_seal_long(context, plan);
}

/* Deals packs of at most `length` tokens at this cost. */
static hbp_status deal_packs(const hbp__vlm_run *run, const hbp__vlm_packs *packs, const hbp_cost *cost,
                             int64_t length, int64_t tokens, hbp_plan **out)
{
    const hbp_vlm_options *o = &run->options;
    const int32_t one = 1, none = 0;
    hbp_balance_options options = {.struct_size = sizeof options};
    options.method = hbp__balance_name(balance_method(hbp__vlm_data_method(o->data_method)));
    options.micro_batch_multiple = o->virtual_stages > 1 ? o->pipeline_stages : 1;
    options.modality_order = o->modality_order;
    options.seed = o->seed;
    options.epoch = o->epoch;
    hbp_groups *groups = NULL;
    HBP__TRY(hbp__groups_create(run->context, cost, 1, &length, &one, &none, tokens, &groups));
    hbp_status status = hbp__balance(run->context, packs->packs, groups, cost, &options, 0, out);
    hbp_groups_free(groups);
    HBP__TRY(status);
    return packs->length ? write_lengths(run->context, *out) : HBP_OK;
}

hbp_status hbp__vlm_deal(const hbp__vlm_run *run, const hbp__vlm_packs *packs,
                         const hbp__vlm_reference *reference, int32_t micro_batches, hbp_plan **out)
{
    int64_t length = packs->max_tokens, tokens;
    for (int64_t p = 0; packs->length && p < packs->packs->count; p++)
        length = hbp__max_i64(length, packs->length[p]);
    if (!hbp__mul_i64(length, (int64_t)micro_batches * run->options.data_parallel, &tokens))
        return hbp__fail(run->context, HBP_E_OVERFLOW,
                         "a step of %d micro-batches of %lld tokens passes 2^63", (int)micro_batches,
                         (long long)length);
    hbp_cost *cost = NULL;
    HBP__TRY(make_cost(run, reference, &cost));
    hbp_status status = deal_packs(run, packs, cost, length, tokens, out);
    hbp_cost_free(cost);
    return status;
}

hbp__vlm_size hbp__vlm_row_size(const hbp__vlm_run *run, const hbp_plan *data, int64_t p)
{
    hbp__vlm_size size = {(double)data->pack_vision[p], (double)data->pack_padded_tokens[p],
                          (double)data->pack_squares[p]};
    int64_t samples = data->pack_offsets[p + 1] - data->pack_offsets[p];
    int padded = hbp__vlm_data_method(run->options.data_method) >= HBP__VLM_DATA_RANDOM;
    if (padded && samples) {
        size.tokens = (double)data->pack_capacity[p];
        size.squares = size.tokens * size.tokens / (double)samples;
    }
    return size;
}
