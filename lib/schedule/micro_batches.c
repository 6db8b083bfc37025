/* Packs of one group into micro-batches: alike ones together, each class dealt out as the method asks. */
#include "base/checked.h"
#include "base/methods.h"
#include "base/rng.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "schedule/microbatch.h"
#include "schedule/modalities.h"
#include "schedule/tuning.h"
#include "schedule/vision.h"

#include <string.h>

/* Streams of the generator, one a use. */
enum { STREAM_PACKS = 0x7061636b };

/* Packs of one time class, `order` [count] ascending: deals them out as from `streams` stretches of the class
 * side by side, one from each in turn. Neighbours in memory were filled from the same runs of items, so a
 * micro-batch of neighbours is less of a mix than one of packs from all over; and a plan reads each stretch
 * in order. */
static hbp_status interleave(hbp_context *context, uint32_t *order, int64_t count, int64_t streams,
                             uint32_t *scratch)
{
    int64_t rows = hbp__ceil_div(count, streams), at = 0;
    for (int64_t row = 0; row < rows; row++) {
        HBP__TRY(hbp__tick_row(context, "balance", row, rows));
        for (int64_t from = row; from < count; from += rows)
            scratch[at++] = order[from];
    }
    memcpy(order, scratch, (size_t)count * sizeof *order);
    return HBP_OK;
}

/* Interleaves each class of the sorted packs. */
static hbp_status mix_classes(hbp_context *context, const int64_t *key, uint32_t *order, int64_t count,
                              int64_t streams)
{
    int64_t mark = hbp__scratch_mark(context);
    uint32_t *scratch = hbp__take(context, (uint64_t)count, sizeof *scratch);
    HBP__TRY(hbp__scratch_check(context, "the order of packs"));
    for (int64_t first = 0, end; first < count; first = end) {
        end = first + 1;
        while (end < count && key[order[end]] == key[order[first]])
            end++;
        HBP__TRY(hbp__tick(context, "balance", first, count));
        HBP__TRY(interleave(context, order + first, end - first, streams, scratch));
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

/* Packs of one group and one set of modalities: they may share micro-batches. */
typedef struct run {
    int32_t group;
    int64_t first, end; /* in sorted */
} run;

/* What micro-batches are made from: packs in the order of their groups and, under an order of modalities, of
 * their sets of modalities. */
typedef struct forming {
    hbp_context *context;
    const hbp_packs *packs;
    const hbp_groups *groups;
    const hbp_cost *cost;
    const hbp_balance_options *options;
    hbp__micro_batches *batches;
    uint32_t *sorted;     /* [packs] */
    uint64_t *modalities; /* [packs] bit k for modality k; NULL without an order of modalities */
    int64_t *key;         /* [packs] */
    run *run;             /* [runs] */
    int64_t runs;
} forming;

static int64_t pack_ns(const forming *f, int32_t g, uint32_t p)
{
    const hbp_packs *packs = f->packs;
    int32_t row = hbp__cost_row(f->cost, f->groups->sp[g]);
    hbp__load load = {.tokens = packs->padded[p],
                      .squares = (double)packs->squares[p],
                      .vision = packs->vision ? packs->vision[p] : 0};
    return hbp__cost_pack_ns(f->cost, row, f->groups->recompute[g], load);
}

static hbp_status order_alike(const forming *f, const run *r, uint32_t *order)
{
    hbp_context *context = f->context;
    const hbp_packs *packs = f->packs;
    int64_t count = r->end - r->first, mark = hbp__scratch_mark(context);
    hbp__sized *sized = hbp__take(context, (uint64_t)count, sizeof *sized);
    HBP__TRY(hbp__scratch_check(context, "the order of packs"));
    for (int64_t i = 0; i < count; i++) {
        HBP__TRY(hbp__tick_row(context, "balance", i, count));
        uint32_t p = order[i];
        int64_t vision = packs->vision ? packs->vision[p] : 0;
        int64_t ns = hbp__min_i64(pack_ns(f, r->group, p), INT64_MAX / (f->groups->packs[r->group] + 1));
        sized[i] = (hbp__sized){{vision, packs->padded[p], ns}, p}; /* sums of a micro-batch stay in range */
    }
    hbp__rng rng = hbp__rng_make(f->options->seed, f->options->epoch, STREAM_PACKS + (uint64_t)r->first);
    HBP__TRY(hbp__vision_order(context, sized, count, f->groups->packs[r->group], &rng));
    for (int64_t i = 0; i < count; i++)
        order[i] = sized[i].pack;
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

static hbp_status order_packs(const forming *f, const run *r, uint32_t *order)
{
    const hbp_packs *packs = f->packs;
    const hbp_groups *groups = f->groups;
    int32_t method = hbp__balance_method(f->options->method);
    int64_t longest = 0, count = r->end - r->first, *key = f->key;
    for (int64_t i = 0; i < count; i++) {
        HBP__TRY(hbp__tick_row(f->context, "balance", i, count));
        uint32_t p = order[i];
        key[p] = method == HBP__BALANCE_SORTED ? packs->squares[p] : pack_ns(f, r->group, p);
        longest = hbp__max_i64(longest, key[p]);
    }
    int64_t class_ns = method == HBP__BALANCE_TIME ? longest / HBP__TIME_CLASSES + 1 : 1;
    for (int64_t i = 0; i < count; i++) {
        HBP__TRY(hbp__tick_row(f->context, "balance", i, count));
        key[order[i]] = (longest - key[order[i]]) / class_ns;
    }
    HBP__TRY(hbp__order_by_i64(f->context, key, order, count, "the order of packs"));
    return method == HBP__BALANCE_TIME ? mix_classes(f->context, key, order, count, groups->packs[r->group])
                                       : HBP_OK;
}

/* Writes the run's packs to `order` as the method asks. */
static hbp_status order_run(const forming *f, const run *r, uint32_t *order)
{
    int64_t count = r->end - r->first;
    memcpy(order, f->sorted + r->first, (size_t)count * sizeof *order);
    if (hbp__balance_method(f->options->method) == HBP__BALANCE_GIVEN)
        return HBP_OK;
    if (hbp__balance_method(f->options->method) == HBP__BALANCE_VISION)
        return order_alike(f, r, order);
    if (hbp__balance_method(f->options->method) != HBP__BALANCE_RANDOM)
        return order_packs(f, r, order);
    hbp__rng rng = hbp__rng_make(f->options->seed, f->options->epoch, STREAM_PACKS + (uint64_t)r->group);
    return hbp__shuffle(f->context, &rng, order, count);
}

/* Groups the packs, in each the order given, and puts those of one set of modalities together. */
static hbp_status sort_packs(forming *f)
{
    const hbp_packs *packs = f->packs;
    int64_t next[HBP_MAX_GROUPS + 1] = {0};
    for (int64_t p = 0; p < packs->count; p++) {
        HBP__TRY(hbp__tick_row(f->context, "balance", p, packs->count));
        next[packs->group[p] + 1]++;
    }
    for (int64_t g = 0; g < f->groups->count; g++)
        next[g + 1] += next[g];
    int64_t first[HBP_MAX_GROUPS + 1];
    memcpy(first, next, sizeof first);
    for (int64_t p = 0; p < packs->count; p++) {
        HBP__TRY(hbp__tick_row(f->context, "balance", p, packs->count));
        f->sorted[next[packs->group[p]]++] = (uint32_t)p;
    }
    for (int64_t g = 0; f->modalities && g < f->groups->count; g++)
        HBP__TRY(hbp__order_by_u64(f->context, f->modalities, f->sorted + first[g], first[g + 1] - first[g],
                                   "the modalities of packs"));
    return HBP_OK;
}

/* Whether another run begins at sorted[at]. */
static int begins(const forming *f, int64_t at)
{
    if (!at)
        return 1;
    uint32_t p = f->sorted[at], before = f->sorted[at - 1];
    return f->packs->group[p] != f->packs->group[before] ||
           (f->modalities && f->modalities[p] != f->modalities[before]);
}

static hbp_status list_runs(forming *f)
{
    int64_t count = f->packs->count, runs = 0;
    for (int64_t i = 0; i < count; i++) {
        HBP__TRY(hbp__tick_row(f->context, "balance", i, count));
        f->runs += begins(f, i);
    }
    f->run = hbp__take(f->context, (uint64_t)f->runs, sizeof *f->run);
    HBP__TRY(hbp__scratch_check(f->context, "the micro-batches"));
    for (int64_t i = 0; i < count; i++) {
        HBP__TRY(hbp__tick_row(f->context, "balance", i, count));
        if (begins(f, i))
            f->run[runs++] = (run){f->packs->group[f->sorted[i]], i, i};
        f->run[runs - 1].end++;
    }
    return HBP_OK;
}

static int reserve(forming *f, int64_t places)
{
    hbp__micro_batches *b = f->batches;
    b->group = hbp__new(&b->memory, (uint64_t)b->count, sizeof *b->group);
    b->first = hbp__new(&b->memory, (uint64_t)b->count + 1, sizeof *b->first);
    b->place = hbp__new(&b->memory, (uint64_t)places, sizeof *b->place);
    return b->group && b->first && b->place;
}

/* Rows of every run's micro-batches, and the last one's padding packs. */
static void lay_out(forming *f)
{
    hbp__micro_batches *b = f->batches;
    int64_t m = 0, place = 0;
    for (int64_t i = 0; i < f->runs; i++) {
        run r = f->run[i];
        int64_t width = f->groups->packs[r.group], end = place + r.end - r.first;
        for (; place < end; place += width, m++) {
            b->group[m] = r.group;
            b->first[m] = place;
        }
        for (; end < place; end++)
            b->place[end] = HBP__PADDING_PACK;
    }
    b->first[m] = place;
}

static hbp_status form(forming *f)
{
    hbp__micro_batches *b = f->batches;
    int64_t places = 0, of_group[HBP_MAX_GROUPS] = {0};
    HBP__TRY(sort_packs(f));
    HBP__TRY(list_runs(f));
    for (int64_t i = 0; i < f->runs; i++) {
        run r = f->run[i];
        int64_t rows = hbp__ceil_div(r.end - r.first, f->groups->packs[r.group]);
        of_group[r.group] += rows;
        places += rows * f->groups->packs[r.group];
    }
    for (int64_t g = 0; g < f->groups->count; g++) {
        b->group_first[g] = b->count;
        b->count += of_group[g];
        b->group_first[g + 1] = b->count;
    }
    if (!reserve(f, places))
        return hbp__fail_memory(f->context, "the micro-batches");
    lay_out(f);
    int64_t place = 0;
    for (int64_t i = 0; i < f->runs; i++) {
        const run *r = &f->run[i];
        HBP__TRY(hbp__tick(f->context, "balance", r->first, f->packs->count));
        HBP__TRY(order_run(f, r, b->place + place));
        place += hbp__round_up(r->end - r->first, f->groups->packs[r->group]);
    }
    return HBP_OK;
}

hbp_status hbp__micro_batches_open(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                                   const hbp_cost *cost, const hbp_balance_options *options,
                                   hbp__micro_batches *batches)
{
    uint64_t rows = (uint64_t)packs->count;
    forming f = {context, packs, groups, cost, options, batches, NULL, NULL, NULL, NULL, 0};
    memset(batches, 0, sizeof *batches);
    batches->memory = context->memory;
    int64_t mark = hbp__scratch_mark(context);
    f.sorted = hbp__take(context, rows, sizeof *f.sorted);
    f.key = hbp__take(context, rows, sizeof *f.key);
    f.modalities = options->modality_order ? hbp__take(context, rows, sizeof *f.modalities) : NULL;
    HBP__TRY(hbp__scratch_check(context, "the micro-batches"));
    if (f.modalities)
        HBP__TRY(hbp__packs_modalities(context, packs, f.modalities));
    HBP__TRY(form(&f));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

void hbp__micro_batches_close(hbp__micro_batches *batches)
{
    hbp__delete(&batches->memory, batches->group);
    hbp__delete(&batches->memory, batches->first);
    hbp__delete(&batches->memory, batches->place);
    memset(batches, 0, sizeof *batches);
}
