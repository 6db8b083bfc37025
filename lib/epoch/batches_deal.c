/* Steps that are each a draw from every stratum of lengths. */
#include "base/checked.h"
#include "base/rng.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "cost/cost.h"
#include "epoch/deal.h"
#include "schedule/deal.h"
#include "schedule/mix.h"

enum { STREAM_DEAL = 0x73747261, STREAM_ORDER = 0x7374726f };

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
static hbp_status list_units(hbp__deal *d)
{
    const hbp__units *u = &d->units;
    const hbp__epoch *epoch = u->epoch;
    uint64_t rows = (uint64_t)u->count;
    d->unit = hbp__take(epoch->context, rows, sizeof *d->unit);
    d->weight = hbp__take(epoch->context, rows, sizeof *d->weight);
    d->tokens = hbp__take(epoch->context, rows, sizeof *d->tokens);
    d->order = hbp__take(epoch->context, rows, sizeof *d->order);
    d->bin = hbp__take(epoch->context, rows, sizeof *d->bin);
    HBP__TRY(hbp__scratch_check(epoch->context, "the strata"));
    int64_t most = u->count - u->drawn - d->rest,
            multiple = hbp__max_i64(1, epoch->options.sequence_multiple);
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
static hbp_status append_dealt_steps(hbp__deal *d, int64_t steps, hbp__batches *b)
{
    hbp_context *context = d->units.epoch->context;
    const hbp_epoch_options *o = &d->units.epoch->options;
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
    }
    b->steps += steps;
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

/* Samples behind the curriculum's. */
static int64_t samples_left(const hbp__deal *d)
{
    return d->units.epoch->lengths->count - d->early.first[d->early.steps];
}

/* How many steps the units that are left make: `steps` with the curriculum's, or 0: as many as
 * samples_per_step asks for. */
static int64_t count_steps(const hbp__deal *d, int64_t steps)
{
    const hbp__units *u = &d->units;
    const int64_t samples = samples_left(d), size = u->epoch->options.samples_per_step;
    if (steps)
        return hbp__min_i64(hbp__max_i64(1, steps > d->early.steps ? steps - d->early.steps : steps),
                            u->count - u->drawn);
    if (samples < size)
        return hbp__min_i64(1, samples);
    return u->items.next ? hbp__min_i64(hbp__ceil_div(samples, size), u->count - u->drawn) : samples / size;
}

hbp_status hbp__deal_open(const hbp__epoch *epoch, int64_t shortest, int is_counted, hbp__deal *d)
{
    const hbp_epoch_options *o = &epoch->options;
    *d = (hbp__deal){.count = 0};
    HBP__TRY(hbp__units_open(epoch, shortest, &d->units));
    HBP__TRY(hbp__batches_open(epoch, d->units.count, &d->early));
    if (o->curriculum_steps)
        HBP__TRY(hbp__units_draw(&d->units, o->curriculum_steps, 0, &d->early));
    if (is_counted && !d->units.items.next && samples_left(d) >= o->samples_per_step)
        d->rest = samples_left(d) % o->samples_per_step;
    HBP__TRY(list_units(d));
    hbp__rng rng = hbp__rng_make(o->seed, o->epoch, STREAM_DEAL);
    return hbp__deal_order(epoch->context, d->weight, d->count, &rng, d->order);
}

void hbp__deal_close(hbp__deal *d)
{
    hbp__units_close(&d->units);
    hbp__batches_close(&d->early);
}

/* Makes `b` begin with the curriculum's steps. */
static hbp_status begin_batches(const hbp__deal *d, hbp__batches *b)
{
    const hbp__batches *early = &d->early;
    HBP__TRY(hbp__batches_open(d->units.epoch, d->units.count, b));
    b->steps = early->steps;
    for (int64_t s = 0; s <= early->steps; s++)
        b->first[s] = early->first[s];
    for (int64_t i = 0; i < early->first[early->steps]; i++)
        b->sample[i] = early->sample[i];
    return HBP_OK;
}

/* Draws what samples_per_step leaves into a last step; the units are used up then. */
static hbp_status draw_rest(hbp__deal *d, hbp__batches *b)
{
    for (int64_t i = 0; i < d->count; i++)
        d->units.is_taken[d->unit[i]] = 1;
    d->units.drawn += d->count;
    return hbp__units_draw(&d->units, 0, 1, b);
}

hbp_status hbp__deal_cut(hbp__deal *d, int64_t steps, hbp__batches *b)
{
    const hbp__epoch *epoch = d->units.epoch;
    const hbp_epoch_options *o = &epoch->options;
    *b = (hbp__batches){.steps = 0};
    HBP__TRY(begin_batches(d, b));
    const int64_t more = count_steps(d, steps);
    if (!more)
        return HBP_OK;
    int is_left_over = o->drop_last && samples_left(d) < o->samples_per_step;
    if (is_left_over && !d->early.steps)
        return hbp__fail(epoch->context, HBP_E_INFEASIBLE,
                         "drop_last leaves no step: there are %lld samples, and samples_per_step is %lld",
                         (long long)samples_left(d), (long long)o->samples_per_step);
    HBP__TRY(hbp__deal_rows(epoch->context, d->weight, d->tokens, d->order, d->count, more, d->bin));
    HBP__TRY(append_dealt_steps(d, more, b));
    if (d->rest)
        HBP__TRY(draw_rest(d, b));
    if ((d->rest && o->drop_last) || is_left_over)
        b->steps--;
    return HBP_OK;
}

hbp_status hbp__batches_deal(const hbp__epoch *epoch, int64_t steps, int64_t shortest, hbp__batches *b)
{
    hbp__deal deal;
    int64_t mark = hbp__scratch_mark(epoch->context);
    *b = (hbp__batches){.steps = 0};
    hbp_status status = hbp__deal_open(epoch, shortest, !steps, &deal);
    if (status >= 0)
        status = hbp__deal_cut(&deal, steps, b);
    hbp__deal_close(&deal);
    return hbp__leave(epoch->context, mark, status);
}
