/* Steps that are each a draw from every stratum of lengths. */
#include "base/checked.h"
#include "base/rng.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "cost/cost.h"
#include "epoch/batches.h"
#include "epoch/units.h"
#include "schedule/deal.h"
#include "schedule/mix.h"

enum { STREAM_DEAL = 0x73747261, STREAM_ORDER = 0x7374726f };

/* Units to be dealt, and what they weigh. */
typedef struct dealing {
    hbp__units units;
    int64_t count;
    uint32_t *unit;  /* [count] items */
    int64_t *weight; /* [count] rank-time at degree 1, without what packs pay once */
    int64_t *tokens; /* [count] */
    uint32_t *bin;   /* [count] */
} dealing;

double hbp__epoch_work(const hbp__epoch *epoch, double tokens, double squares, double vision)
{
    const hbp_cost_terms *t = &epoch->cost->terms;
    double ns = t->ns_per_token * tokens + t->ns_per_token_squared * squares;
    return vision > 0 ? ns + t->ns_per_vision * vision : ns;
}

static double vision_of(const hbp__items *items, int64_t item)
{
    int64_t vision = 0;
    for (uint32_t s = items->sample[item]; items->lengths->vision && s != HBP__NO_SAMPLE;
         s = items->next ? items->next[s] : HBP__NO_SAMPLE)
        vision += items->lengths->vision[s];
    return (double)vision;
}

/* Lists what the curriculum left, in the order drawn but for the last `rest` single samples of it. */
static hbp_status list_units(const hbp__epoch *epoch, int64_t rest, dealing *d)
{
    const hbp__units *u = &d->units;
    uint64_t rows = (uint64_t)u->count;
    d->unit = hbp__take(epoch->context, rows, sizeof *d->unit);
    d->weight = hbp__take(epoch->context, rows, sizeof *d->weight);
    d->tokens = hbp__take(epoch->context, rows, sizeof *d->tokens);
    d->bin = hbp__take(epoch->context, rows, sizeof *d->bin);
    HBP__TRY(hbp__scratch_check(epoch->context, "the strata"));
    int64_t most = u->count - u->drawn - rest, multiple = hbp__max_i64(1, epoch->options.sequence_multiple);
    for (int64_t i = 0; i < u->count && d->count < most; i++) {
        HBP__TRY(hbp__tick_row(epoch->context, "batches", i, u->count));
        uint32_t item = u->order[i];
        if (u->is_taken[item])
            continue;
        int64_t tokens = u->items.size[item];
        d->unit[d->count] = item;
        d->tokens[d->count] = tokens;
        d->weight[d->count++] = hbp__round_i64(
            hbp__epoch_work(epoch, (double)hbp__round_up(tokens, multiple),
                            (double)hbp__items_exact_squares(&u->items, item), vision_of(&u->items, item)));
    }
    return HBP_OK;
}

/* Appends `steps` steps in a drawn order. */
static hbp_status append_dealt_steps(const hbp__epoch *epoch, dealing *d, int64_t steps, hbp__batches *b)
{
    hbp_context *context = epoch->context;
    const hbp_epoch_options *o = &epoch->options;
    int64_t mark = hbp__scratch_mark(context), base = b->first[b->steps];
    uint32_t *place = hbp__take(context, (uint64_t)steps, sizeof *place);
    int64_t *start = hbp__take_zero(context, (uint64_t)steps + 1, sizeof *start);
    HBP__TRY(hbp__scratch_check(context, "the strata"));
    hbp__rng rng = hbp__rng_make(o->seed, o->epoch, STREAM_ORDER);
    for (int64_t i = 0; i < steps; i++)
        place[i] = (uint32_t)i;
    HBP__TRY(hbp__shuffle(context, &rng, place, steps));
    for (int64_t i = 0; i < d->count; i++) {
        start[place[d->bin[i]] + 1] += hbp__items_members(&d->units.items, d->unit[i]);
        HBP__TRY(hbp__tick_row(context, "batches", i, d->count));
    }
    for (int64_t s = 1; s <= steps; s++) {
        start[s] += start[s - 1];
        b->first[b->steps + s] = base + start[s];
    }
    for (int64_t i = 0; i < d->count; i++) {
        HBP__TRY(hbp__tick_row(context, "batches", i, d->count));
        int64_t *at = &start[place[d->bin[i]]];
        *at += hbp__items_write(&d->units.items, d->unit[i], b->sample + base + *at);
        d->units.is_taken[d->unit[i]] = 1;
    }
    b->steps += steps;
    d->units.drawn += d->count;
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

/* How many steps the units that are left make: `steps`, or as many as samples_per_step asks for, and how many
 * single samples those leave over. */
static int64_t count_steps(const hbp__epoch *epoch, const hbp__units *u, int64_t done, int64_t steps,
                           int64_t *rest)
{
    int64_t samples = epoch->lengths->count - done, size = epoch->options.samples_per_step;
    *rest = 0;
    if (steps)
        return hbp__min_i64(hbp__max_i64(1, steps), u->count - u->drawn);
    if (samples < size)
        return hbp__min_i64(1, samples);
    *rest = u->items.next ? 0 : samples % size;
    return u->items.next ? hbp__min_i64(hbp__ceil_div(samples, size), u->count - u->drawn) : samples / size;
}

static hbp_status deal_units(const hbp__epoch *epoch, int64_t steps, dealing *d, hbp__batches *b)
{
    const hbp_epoch_options *o = &epoch->options;
    int64_t rest, early = b->steps;
    steps = count_steps(epoch, &d->units, b->first[b->steps], steps > early ? steps - early : steps, &rest);
    if (!steps)
        return HBP_OK;
    int64_t samples = epoch->lengths->count - b->first[b->steps];
    int is_left_over = o->drop_last && samples < o->samples_per_step;
    if (is_left_over && !early)
        return hbp__fail(epoch->context, HBP_E_INFEASIBLE,
                         "drop_last leaves no step: there are %lld samples, and samples_per_step is %lld",
                         (long long)samples, (long long)o->samples_per_step);
    HBP__TRY(list_units(epoch, rest, d));
    hbp__rng rng = hbp__rng_make(o->seed, o->epoch, STREAM_DEAL);
    HBP__TRY(hbp__deal_strata(epoch->context, d->weight, d->tokens, d->count, steps, &rng, d->bin));
    HBP__TRY(append_dealt_steps(epoch, d, steps, b));
    if (rest)
        HBP__TRY(hbp__units_draw(&d->units, 0, 1, b));
    if ((rest && o->drop_last) || is_left_over)
        b->steps--;
    return HBP_OK;
}

hbp_status hbp__batches_deal(const hbp__epoch *epoch, int64_t steps, int64_t shortest, hbp__batches *b)
{
    dealing d = {.count = 0};
    int64_t mark = hbp__scratch_mark(epoch->context);
    *b = (hbp__batches){.steps = 0};
    hbp_status status = hbp__units_open(epoch, shortest, &d.units);
    if (status >= 0)
        status = hbp__batches_open(epoch, d.units.count, b);
    if (status >= 0 && epoch->options.curriculum_steps)
        status = hbp__units_draw(&d.units, epoch->options.curriculum_steps, 0, b);
    if (status >= 0)
        status = deal_units(epoch, steps, &d, b);
    hbp__units_close(&d.units);
    return hbp__leave(epoch->context, mark, status);
}
