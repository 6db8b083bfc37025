/* Steps that are each a draw from every stratum of lengths, every one planned by itself: what planning step
 * by step can do when it knows the epoch. */
#include "base/checked.h"
#include "base/rng.h"
#include "cost/cost.h"
#include "data/items.h"
#include "data/lengths_subset.h"
#include "data/plan.h"
#include "epoch/epoch.h"
#include "hbp/step.h"
#include "schedule/mix.h"

enum { STREAM_DEAL = 0x73747261, STREAM_ORDER = 0x7374726f };

/* Samples by step. */
typedef struct strata {
    const hbp__epoch *epoch;
    hbp_step_options options;
    hbp__items items;
    int64_t steps;
    int64_t *first;   /* [steps + 1] into sample */
    uint32_t *sample; /* [samples] pieces */
    int64_t most;     /* tokens of the largest step */
    double work_ns;   /* rank-time of all samples at degree 1, without what packs pay once */
    hbp_plan **part;  /* [steps] */
} strata;

static hbp_status no_memory(const strata *s)
{
    return hbp__fail_memory(s->epoch->context, "the strata");
}

static void strata_close(strata *s)
{
    const hbp__memory *memory = &s->epoch->context->memory;
    for (int64_t i = 0; s->part && i < s->steps; i++)
        hbp_plan_free(s->part[i]);
    hbp__delete(memory, s->part);
    hbp__delete(memory, s->sample);
    hbp__delete(memory, s->first);
    if (s->items.memory.release)
        hbp__items_close(&s->items);
}

static double work_of(const strata *s, double tokens, double squares)
{
    const hbp_cost_terms *t = &s->epoch->cost->terms;
    return t->ns_per_token * tokens + t->ns_per_token_squared * squares;
}

/* Deals the items to the steps by the time that they need; bin[i] gets the step of item i. */
static hbp_status deal(strata *s, uint32_t *bin)
{
    const hbp__memory *memory = &s->epoch->context->memory;
    uint64_t rows = (uint64_t)s->items.count;
    int64_t *weight = hbp__new(memory, rows, sizeof *weight),
            *tokens = hbp__new(memory, rows, sizeof *tokens);
    int done = weight && tokens;
    for (int64_t i = 0; i < s->items.count && done; i++) {
        tokens[i] = s->items.size[i];
        double work = work_of(s, (double)tokens[i], (double)hbp__items_squares(&s->items, i));
        s->work_ns += work;
        weight[i] = hbp__round_i64(work);
    }
    hbp__rng rng = hbp__rng_make(s->epoch->options.seed, s->epoch->options.epoch, STREAM_DEAL);
    done = done && hbp__mix_deal(memory, weight, tokens, s->items.count, s->steps, &rng, bin);
    hbp__delete(memory, tokens);
    hbp__delete(memory, weight);
    return done ? HBP_OK : no_memory(s);
}

static hbp_status count_tokens(strata *s, const uint32_t *bin)
{
    const hbp__memory *memory = &s->epoch->context->memory;
    int64_t *tokens = hbp__new_zero(memory, (uint64_t)s->steps, sizeof *tokens);
    if (!tokens)
        return no_memory(s);
    for (int64_t i = 0; i < s->items.count; i++) {
        tokens[bin[i]] += s->items.size[i];
        s->most = hbp__max_i64(s->most, tokens[bin[i]]);
    }
    hbp__delete(memory, tokens);
    return HBP_OK;
}

/* Lists the samples step by step, steps in a drawn order. */
static hbp_status list_samples(strata *s, const uint32_t *bin)
{
    const hbp__memory *memory = &s->epoch->context->memory;
    uint32_t *place = hbp__new(memory, (uint64_t)s->steps, sizeof *place);
    s->first = hbp__new_zero(memory, (uint64_t)s->steps + 2, sizeof *s->first);
    s->sample = hbp__new(memory, (uint64_t)s->epoch->lengths->count, sizeof *s->sample);
    if (!place || !s->first || !s->sample) {
        hbp__delete(memory, place);
        return no_memory(s);
    }
    hbp__rng rng = hbp__rng_make(s->epoch->options.seed, s->epoch->options.epoch, STREAM_ORDER);
    for (int64_t i = 0; i < s->steps; i++)
        place[i] = (uint32_t)i;
    hbp__rng_shuffle_u32(&rng, place, (uint64_t)s->steps);
    int64_t *start = s->first + 1; /* shifted by one, so that filling leaves the starts in place */
    for (int64_t i = 0; i < s->items.count; i++)
        start[place[bin[i]] + 1] += hbp__items_members(&s->items, i);
    for (int64_t i = 1; i <= s->steps; i++)
        start[i] += start[i - 1];
    for (int64_t i = 0; i < s->items.count; i++) {
        int64_t *at = &start[place[bin[i]]];
        *at += hbp__items_write(&s->items, i, s->sample + *at);
    }
    hbp__delete(memory, place);
    return HBP_OK;
}

static hbp_status strata_open(const hbp__epoch *epoch, int64_t steps, strata *s)
{
    const hbp__memory *memory = &epoch->context->memory;
    *s = (strata){.epoch = epoch, .steps = steps};
    hbp_step_options_init(&s->options, sizeof s->options);
    s->options.micro_batch_multiple = epoch->options.micro_batch_multiple;
    s->options.sequence_multiple = epoch->options.sequence_multiple;
    s->options.pack_multiple = epoch->options.pack_multiple;
    s->options.degrees = HBP_STEP_ANY_DEGREE;
    s->part = hbp__new_zero(memory, (uint64_t)steps, sizeof *s->part);
    if (!s->part)
        return no_memory(s);
    HBP__TRY(hbp__items_open(epoch->context, epoch->lengths, hbp__max_i64(1, s->options.sequence_multiple),
                             INT64_MAX, epoch->options.seed, epoch->options.epoch, &s->items));
    uint32_t *bin = hbp__new(memory, (uint64_t)s->items.count, sizeof *bin);
    hbp_status status = bin ? deal(s, bin) : no_memory(s);
    if (status >= 0)
        status = count_tokens(s, bin);
    if (status >= 0)
        status = list_samples(s, bin);
    hbp__delete(memory, bin);
    return status;
}

static hbp_status plan_part(strata *s, int64_t step, hbp_plan **out)
{
    hbp_lengths *subset = NULL;
    hbp_context *context = s->epoch->context;
    HBP__TRY(hbp__tick(context, "strata", step, s->steps));
    hbp_status status = hbp__lengths_subset(context, s->epoch->lengths, s->sample + s->first[step],
                                            s->first[step + 1] - s->first[step], &subset);
    if (status >= 0)
        status = hbp_plan_step(context, subset, s->epoch->cost, &s->options, out);
    hbp_lengths_free(subset);
    return status;
}

/* The time of all steps from `sample` of them, by the work that those have of all work: steps differ in it,
 * and their times with it. */
static hbp_status estimate(strata *s, int64_t sample, int64_t *ns)
{
    double total = 0, work = 0;
    int64_t count = hbp__min_i64(sample, s->steps);
    hbp_status status = HBP_OK;
    for (int64_t i = 0; i < count && status >= 0; i++) {
        /* The middle of the i-th stretch of the epoch. */
        hbp_plan *plan = NULL;
        status = plan_part(s, (2 * i + 1) * s->steps / (2 * count), &plan);
        for (int64_t p = 0; status >= 0 && p < plan->packs; p++)
            work += work_of(s, (double)plan->pack_padded_tokens[p], (double)plan->pack_squares[p]);
        if (status >= 0)
            total += (double)plan->step_ns[0];
        hbp_plan_free(plan);
    }
    *ns = work > 0 ? hbp__round_i64(total / work * s->work_ns) : INT64_MAX;
    return status;
}

hbp_status hbp__strata_estimate(const hbp__epoch *epoch, int64_t steps, int64_t tokens_per_step,
                                int64_t sample, int64_t *ns)
{
    strata s;
    *ns = INT64_MAX;
    hbp_status status = strata_open(epoch, steps, &s);
    if (status >= 0 && s.most <= tokens_per_step)
        status = estimate(&s, sample, ns);
    strata_close(&s);
    return status < 0 ? status : HBP_OK;
}

hbp_status hbp__strata_plan(const hbp__epoch *epoch, int64_t steps, hbp_plan **out)
{
    strata s;
    hbp_plan *plan = NULL;
    hbp_status status = strata_open(epoch, steps, &s);
    for (int64_t i = 0; i < steps && status >= 0; i++)
        status = plan_part(&s, i, &s.part[i]);
    if (status >= 0)
        status = hbp__plan_join(epoch->context, s.part, steps, epoch->lengths, &plan);
    if (status >= 0) {
        hbp__epoch_seal(epoch, plan);
        *out = plan;
    }
    strata_close(&s);
    return status < 0 ? status : HBP_OK;
}
