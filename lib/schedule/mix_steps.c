/* Micro-batches dealt to steps that are each a small copy of the epoch. */
#include <string.h>

#include "base/checked.h"
#include "base/rng.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "schedule/deal.h"
#include "schedule/mix.h"

/* Streams of the generator, one a use. */
enum {
    STREAM_EARLY = 0x6d697865,
    STREAM_UNITS = 0x6d697875,
    STREAM_MIX = 0x6d697873,
    STREAM_PLACE = 0x6d697870
};

/* What is dealt: micro-batches, and units of micro_batch_multiple of them. */
typedef struct load {
    int64_t count;
    int64_t *weight; /* [count] sum of squared lengths: what tells long samples from short ones */
    int64_t *tokens; /* [count] */
} load;

typedef struct mixer {
    hbp_context *context;
    const hbp_packs *packs;
    const hbp__micro_batches *batches;
    const hbp_balance_options *options;
    int64_t tokens_per_step;
    int64_t early;      /* steps of the curriculum */
    int64_t early_size; /* micro-batches of each */
    uint32_t *batch;    /* [batches->count] those of the curriculum, then those to deal */
    load one;           /* the ones to deal */
    load unit;
    uint32_t *unit_of; /* [one.count] */
    uint32_t *step_of; /* [unit.count] */
    int64_t steps;     /* that units are dealt to */
} mixer;

static hbp_status no_memory(const mixer *x)
{
    return hbp__fail_memory(x->context, "the mixed steps");
}

static void load_take(hbp_context *context, int64_t count, load *l)
{
    l->count = count;
    l->weight = hbp__take_zero(context, (uint64_t)count, sizeof *l->weight);
    l->tokens = hbp__take_zero(context, (uint64_t)count, sizeof *l->tokens);
}

static void load_add(load *l, int64_t i, int64_t weight, int64_t tokens)
{
    l->weight[i] = hbp__add_saturating(l->weight[i], weight);
    l->tokens[i] = hbp__add_saturating(l->tokens[i], tokens);
}

/* Micro-batch m into row i; whether it holds packs of the shortest group alone. */
static int weigh_batch(const mixer *x, int64_t m, load *l, int64_t i)
{
    const hbp__micro_batches *b = x->batches;
    int is_short = 1;
    for (int64_t j = b->first[m]; j < b->first[m + 1]; j++) {
        uint32_t p = b->place[j];
        if (p == HBP__PADDING_PACK)
            continue;
        load_add(l, i, x->packs->squares[p], x->packs->tokens[p]);
        is_short = is_short && x->packs->group[p] == 0;
    }
    return is_short;
}

/* Draws the curriculum's micro-batches among the `count` first of x->batch, the short ones, the longest of
 * `longest` tokens. Those drawn come first. */
static void draw_curriculum(mixer *x, int64_t count, int64_t longest)
{
    int64_t multiple = x->options->micro_batch_multiple;
    x->early_size = longest ? x->tokens_per_step / longest : count;
    x->early_size = hbp__max_i64(multiple, x->early_size - x->early_size % multiple);
    x->early = hbp__min_i64(x->options->curriculum_steps, count / x->early_size);
    if (!x->early)
        return;
    hbp__rng rng = hbp__rng_make(x->options->seed, x->options->epoch, STREAM_EARLY);
    hbp__rng_shuffle_u32(&rng, x->batch, (uint64_t)count);
}

/* Puts the micro-batches to deal in descending order of tokens, so that the last ones can be left over. */
static hbp_status sort_by_tokens(const mixer *x, const load *all)
{
    int64_t early = x->early * x->early_size;
    int64_t *key = hbp__take(x->context, (uint64_t)all->count, sizeof *key);
    HBP__TRY(hbp__scratch_check(x->context, "the steps"));
    for (int64_t m = 0; m < all->count; m++)
        key[m] = -all->tokens[m];
    return hbp__sort_by_i64(&x->context->memory, key, x->batch + early, all->count - early) ? HBP_OK
                                                                                            : no_memory(x);
}

/* Lists the micro-batches, the curriculum's first, and weighs the others; makes room for their units. */
static hbp_status list_batches(mixer *x)
{
    hbp_context *context = x->context;
    int64_t count = x->batches->count, low = 0, high = count, longest = 0;
    load all = {0};
    x->batch = hbp__take(context, (uint64_t)count, sizeof *x->batch);
    x->unit_of = hbp__take(context, (uint64_t)count, sizeof *x->unit_of);
    x->step_of = hbp__take(context, (uint64_t)count, sizeof *x->step_of);
    load_take(context, count, &x->one);
    load_take(context, count, &x->unit);
    int64_t mark = hbp__scratch_mark(context);
    load_take(context, count, &all);
    HBP__TRY(hbp__scratch_check(context, "the steps"));
    for (int64_t m = 0; m < count; m++) {
        int is_short = weigh_batch(x, m, &all, m);
        x->batch[is_short ? low++ : --high] = (uint32_t)m;
        if (is_short)
            longest = hbp__max_i64(longest, all.tokens[m]);
    }
    if (x->options->curriculum_steps)
        draw_curriculum(x, low, longest);
    if (x->options->drop_last)
        HBP__TRY(sort_by_tokens(x, &all));
    int64_t early = x->early * x->early_size, rest = count - early;
    x->one.count = x->unit.count = rest;
    for (int64_t i = 0; i < rest; i++)
        load_add(&x->one, i, all.weight[x->batch[early + i]], all.tokens[x->batch[early + i]]);
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

/* Puts the micro-batches into units of the caller's factor, some of which may hold fewer. */
static hbp_status make_units(mixer *x)
{
    int64_t count = x->one.count;
    x->unit.count = hbp__ceil_div(count, x->options->micro_batch_multiple);
    hbp__rng rng = hbp__rng_make(x->options->seed, x->options->epoch, STREAM_UNITS);
    for (int64_t i = 0; i < count; i++)
        x->unit_of[i] = (uint32_t)i;
    if (x->unit.count < count)
        HBP__TRY(hbp__deal_strata(x->context, x->one.weight, x->one.tokens, count, x->unit.count, &rng,
                                  x->unit_of));
    for (int64_t u = 0; u < x->unit.count; u++)
        x->unit.weight[u] = x->unit.tokens[u] = 0;
    for (int64_t i = 0; i < count; i++)
        load_add(&x->unit, x->unit_of[i], x->one.weight[i], x->one.tokens[i]);
    return HBP_OK;
}

/* Deals the units to `steps` steps; whether each holds at most the tokens it may. */
static hbp_status try_steps(mixer *x, int64_t steps, int *fits)
{
    const load *l = &x->unit;
    int64_t mark = hbp__scratch_mark(x->context);
    HBP__TRY(hbp__tick(x->context, "steps", 0, l->count));
    hbp__rng rng = hbp__rng_make(x->options->seed, x->options->epoch, STREAM_MIX);
    int64_t *tokens = hbp__take_zero(x->context, (uint64_t)steps, sizeof *tokens);
    HBP__TRY(hbp__scratch_check(x->context, "the steps"));
    HBP__TRY(hbp__deal_strata(x->context, l->weight, l->tokens, l->count, steps, &rng, x->step_of));
    *fits = 1;
    for (int64_t i = 0; i < l->count; i++) {
        int64_t *here = &tokens[x->step_of[i]];
        *here = hbp__add_saturating(*here, l->tokens[i]);
        *fits = *fits && (*here <= x->tokens_per_step || steps == l->count);
    }
    hbp__scratch_release(x->context, mark);
    x->steps = steps;
    return HBP_OK;
}

/* The fewest steps whose deal fits, by galloping and halving; leaves that deal. */
static hbp_status find_steps(mixer *x)
{
    const load *l = &x->unit;
    int64_t total = 0, failed, count, stride = 1;
    int fits = 0;
    for (int64_t i = 0; i < l->count; i++)
        total = hbp__add_saturating(total, l->tokens[i]);
    count = hbp__min_i64(l->count, hbp__max_i64(1, hbp__ceil_div(total, x->tokens_per_step)));
    failed = count - 1;
    HBP__TRY(try_steps(x, count, &fits));
    for (; !fits; stride *= 2) {
        failed = count;
        count = hbp__min_i64(count + stride, l->count);
        HBP__TRY(try_steps(x, count, &fits));
    }
    while (count - failed > 1) {
        int64_t middle = failed + (count - failed) / 2;
        HBP__TRY(try_steps(x, middle, &fits));
        if (fits)
            count = middle;
        else
            failed = middle;
    }
    return try_steps(x, count, &fits);
}

/* Puts steps together whose tokens fit one: the one of fewest with the one of most that leaves it room, and
 * so on. Where a step is a single micro-batch, no deal evens out micro-batches of few tokens. */
static void pair_up(const int64_t *tokens, const uint32_t *order, int64_t steps, int64_t most, uint32_t *into)
{
    int64_t low = 0, high = steps - 1;
    for (int64_t s = 0; s < steps; s++)
        into[s] = (uint32_t)s;
    for (; low < high; high--)
        if (hbp__add_saturating(tokens[order[low]], tokens[order[high]]) <= most)
            into[order[low++]] = order[high];
}

/* Numbers the steps that are left from 0. */
static void renumber(mixer *x, const uint32_t *into, uint32_t *number)
{
    int64_t left = 0;
    for (int64_t s = 0; s < x->steps; s++)
        if (into[s] == s)
            number[s] = (uint32_t)left++;
    for (int64_t u = 0; u < x->unit.count; u++)
        x->step_of[u] = number[into[x->step_of[u]]];
    x->steps = left;
}

static hbp_status merge_steps(mixer *x)
{
    uint64_t rows = (uint64_t)x->steps;
    int64_t mark = hbp__scratch_mark(x->context);
    int64_t *tokens = hbp__take_zero(x->context, rows, sizeof *tokens);
    uint32_t *order = hbp__take(x->context, rows, sizeof *order);
    uint32_t *into = hbp__take(x->context, rows, sizeof *into);
    HBP__TRY(hbp__scratch_check(x->context, "the steps"));
    for (int64_t u = 0; u < x->unit.count; u++)
        tokens[x->step_of[u]] = hbp__add_saturating(tokens[x->step_of[u]], x->unit.tokens[u]);
    for (int64_t s = 0; s < x->steps; s++)
        order[s] = (uint32_t)s;
    if (!hbp__sort_by_i64(&x->context->memory, tokens, order, x->steps))
        return no_memory(x);
    pair_up(tokens, order, x->steps, x->tokens_per_step, into);
    renumber(x, into, order);
    hbp__scratch_release(x->context, mark);
    return HBP_OK;
}

/* drop_last: every step gets as many units as the largest has, or fewer where tokens forbid it; of the
 * micro-batches, which are in descending order of tokens, the last ones are left over. */
static hbp_status drop_left_over(mixer *x)
{
    int64_t units = x->unit.count, size = hbp__ceil_div(units, x->steps);
    int fits = units == size * x->steps;
    for (; !fits; size--) {
        x->one.count = units / size * size * x->options->micro_batch_multiple;
        HBP__TRY(make_units(x));
        HBP__TRY(try_steps(x, units / size, &fits));
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

/* Places the steps in the epoch: in ascending order of weight they go to places a golden share of the epoch
 * apart, from a drawn one on, so that every stretch of the epoch has its share of each kind. */
static hbp_status place_steps(const mixer *x, const int64_t *weight, uint32_t *place)
{
    int64_t mark = hbp__scratch_mark(x->context);
    uint32_t *order = hbp__take(x->context, (uint64_t)x->steps, sizeof *order);
    HBP__TRY(hbp__scratch_check(x->context, "the steps"));
    hbp__rng rng = hbp__rng_make(x->options->seed, x->options->epoch, STREAM_PLACE);
    for (int64_t s = 0; s < x->steps; s++)
        order[s] = (uint32_t)s;
    hbp__rng_shuffle_u32(&rng, order, (uint64_t)x->steps);
    if (!hbp__sort_by_i64(&x->context->memory, weight, order, x->steps))
        return no_memory(x);
    int64_t at = hbp__rng_below(&rng, (uint64_t)x->steps),
            stride = (int64_t)((double)x->steps * 0.6180339887);
    while (common_divisor(x->steps, stride) > 1)
        stride++;
    for (int64_t i = 0; i < x->steps; i++, at = (at + stride) % x->steps)
        place[order[at]] = (uint32_t)i;
    hbp__scratch_release(x->context, mark);
    return HBP_OK;
}

/* Writes the curriculum's steps, then the others at their places, each completed by padding packs. */
static void write_steps(const mixer *x, const uint32_t *place, int64_t *cursor, hbp__steps *steps)
{
    int64_t multiple = x->options->micro_batch_multiple, early = x->early * x->early_size;
    for (int64_t s = 0; s < x->early; s++)
        steps->first[s] = s * x->early_size;
    for (int64_t i = 0; i < early; i++)
        steps->micro_batch[i] = x->batch[i];
    /* cursor[s]: micro-batches of the s-th of the other steps, then where the next one goes. */
    for (int64_t i = 0; i < x->one.count; i++)
        cursor[place[x->step_of[x->unit_of[i]]]]++;
    int64_t at = early;
    for (int64_t s = 0; s < x->steps; s++) {
        int64_t count = cursor[s];
        steps->first[x->early + s] = cursor[s] = at;
        for (int64_t end = at + hbp__round_up(count, multiple); at < end; at++)
            steps->micro_batch[at] = HBP__PADDING_PACK;
    }
    steps->first[steps->count] = at;
    for (int64_t i = 0; i < x->one.count; i++)
        steps->micro_batch[cursor[place[x->step_of[x->unit_of[i]]]]++] = x->batch[early + i];
}

static hbp_status finish_steps(mixer *x, hbp__steps *steps)
{
    hbp_context *context = x->context;
    int64_t room = x->batches->count + x->steps * (x->options->micro_batch_multiple - 1);
    int64_t *weight = hbp__take_zero(context, (uint64_t)x->steps, sizeof *weight);
    int64_t *cursor = hbp__take_zero(context, (uint64_t)x->steps, sizeof *cursor);
    uint32_t *place = hbp__take(context, (uint64_t)x->steps, sizeof *place);
    HBP__TRY(hbp__scratch_check(context, "the steps"));
    steps->count = x->early + x->steps;
    steps->first = hbp__new(&steps->memory, (uint64_t)steps->count + 1, sizeof *steps->first);
    steps->micro_batch = hbp__new(&steps->memory, (uint64_t)room, sizeof *steps->micro_batch);
    if (!steps->first || !steps->micro_batch)
        return no_memory(x);
    for (int64_t u = 0; u < x->unit.count; u++)
        weight[x->step_of[u]] = hbp__add_saturating(weight[x->step_of[u]], x->unit.weight[u]);
    if (x->steps)
        HBP__TRY(place_steps(x, weight, place));
    write_steps(x, place, cursor, steps);
    return HBP_OK;
}

static hbp_status mix_steps(mixer *x, int one_step, hbp__steps *steps)
{
    HBP__TRY(list_batches(x));
    int drops = x->options->drop_last && !one_step;
    if (drops)
        x->one.count -= x->one.count % x->options->micro_batch_multiple;
    if (!x->one.count) {
        x->unit.count = 0; /* less than a unit is left behind the curriculum */
    } else {
        int fits;
        HBP__TRY(make_units(x));
        HBP__TRY(one_step ? try_steps(x, 1, &fits) : find_steps(x));
        if (!one_step)
            HBP__TRY(drops ? drop_left_over(x) : merge_steps(x));
    }
    if (!x->early && !x->steps)
        return hbp__fail(x->context, HBP_E_INFEASIBLE,
                         "drop_last leaves no step: the epoch has %lld micro-batches; a step has at least %d",
                         (long long)x->batches->count, (int)x->options->micro_batch_multiple);
    return finish_steps(x, steps);
}

hbp_status hbp__mix_steps_open(hbp_context *context, const hbp_packs *packs,
                               const hbp__micro_batches *batches, int64_t tokens_per_step,
                               const hbp_balance_options *options, int one_step, hbp__steps *steps)
{
    mixer x = {context, packs, batches, options, tokens_per_step, 0, 0, NULL, {0}, {0}, NULL, NULL, 0};
    memset(steps, 0, sizeof *steps);
    steps->memory = context->memory;
    int64_t mark = hbp__scratch_mark(context);
    HBP__TRY(mix_steps(&x, one_step, steps));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
