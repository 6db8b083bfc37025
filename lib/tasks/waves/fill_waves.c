/* Waves of a level as published (Spindle, section 3.4): first fit of the allocated tuples, left-over GPUs to
 * what has most time left, each wave about as long as its shortest item. O(tuples^2) a level. */
#include "tasks/waves/level_waves.h"

#include "base/checked.h"
#include "base/scratch.h"

typedef struct filling {
    hbp_context *context;
    hbp__level_waves *waves;
    hbp__tuple *tuples;   /* [2 MetaOps] */
    hbp__wave_item *pool; /* [left] what is left */
    int32_t left;
    int32_t *chosen; /* [2 MetaOps] of the pool */
    int32_t round;
    int32_t *round_of; /* [MetaOps] the last round that chose the MetaOp */
} filling;

/* Insertion: from wave to wave only what ran changes its place. */
static void sort_pool(filling *f)
{
    for (int32_t i = 1; i < f->left; i++) {
        hbp__wave_item moved = f->pool[i];
        int32_t at = i;
        for (; at > 0 && hbp__wave_item_before(&moved, &f->pool[at - 1]); at--)
            f->pool[at] = f->pool[at - 1];
        f->pool[at] = moved;
    }
}

/* First fit in the pool's order, one tuple of a MetaOp. Returns the devices that are left over. */
static int32_t choose_items(filling *f, hbp__wave_item *wave, int32_t *number)
{
    int32_t free = f->waves->problem->gpus;
    f->round++;
    *number = 0;
    for (int32_t i = 0; i < f->left && free > 0; i++) {
        const hbp__wave_item *t = &f->pool[i];
        int32_t *round = &f->round_of[t->meta_op - f->waves->base];
        if (t->gpus > free || *round == f->round)
            continue;
        *round = f->round;
        free -= t->gpus;
        f->chosen[*number] = i;
        wave[(*number)++] = *t;
    }
    return free;
}

/* Left-over devices to the item with the most remaining time whose next size fits, as long as there is one.
 */
static void extend_items(const filling *f, hbp__wave_item *wave, int32_t number, int32_t free)
{
    const hbp__task_problem *problem = f->waves->problem;
    for (;;) {
        hbp__wave_item *most = NULL;
        for (int32_t i = 0; i < number; i++) {
            const hbp__curve *c = hbp__meta_curve(problem->scaling, wave[i].meta_op);
            if (wave[i].size + 1 < c->sizes && c->size[wave[i].size + 1] - wave[i].gpus <= free &&
                (!most || hbp__wave_item_time(&wave[i]) > hbp__wave_item_time(most)))
                most = &wave[i];
        }
        if (!most)
            return;
        free += most->gpus;
        hbp__wave_item_resize(problem, most, most->size + 1);
        free -= most->gpus;
    }
}

/* How long a wave is: about its shortest item, in whole operators of each; at least one of each. */
static int64_t wave_length(const hbp__wave_item *wave, int32_t number)
{
    int64_t least = INT64_MAX, length = 0;
    for (int32_t i = 0; i < number; i++)
        least = hbp__min_i64(least, hbp__wave_item_time(&wave[i]));
    for (int32_t i = 0; i < number; i++) {
        int64_t each = wave[i].each_ns, times = least / each + (least % each >= each - least % each);
        length = hbp__max_i64(length, hbp__max_i64(times, 1) * each);
    }
    return length;
}

/* What a wave does not run goes back to the pool on the size that it was allocated. */
static hbp_status run_wave(filling *f)
{
    hbp__wave_item *wave;
    int32_t number, kept = 0;
    HBP__TRY(hbp__level_waves_reserve(f->context, f->waves, f->left, &wave));
    sort_pool(f);
    int32_t free = choose_items(f, wave, &number);
    extend_items(f, wave, number, free);
    int64_t length = wave_length(wave, number);
    for (int32_t i = 0; i < number; i++) {
        wave[i].count = (int32_t)hbp__min_i64(wave[i].count, length / wave[i].each_ns);
        f->pool[f->chosen[i]].count -= wave[i].count;
    }
    for (int32_t i = 0; i < f->left; i++)
        if (f->pool[i].count)
            f->pool[kept++] = f->pool[i];
    f->left = kept;
    hbp__level_waves_push(f->waves, number);
    return HBP_OK;
}

/* The shortest item of a wave ends with it, so there are at most as many waves as tuples. */
static hbp_status fill_level(filling *f)
{
    hbp__level_waves *w = f->waves;
    HBP__TRY(
        hbp__allocate_level(f->context, w->problem, w->base, w->end, &w->optimum_ns, f->tuples, &f->left));
    for (int32_t i = 0; i < f->left; i++) {
        const hbp__tuple *t = &f->tuples[i];
        f->pool[i] = (hbp__wave_item){.meta_op = t->meta_op, .count = t->count};
        hbp__wave_item_resize(w->problem, &f->pool[i],
                              hbp__curve_find(hbp__meta_curve(w->problem->scaling, t->meta_op), t->gpus));
    }
    while (f->left) {
        HBP__TRY(hbp__tick(f->context, "waves", w->base, w->problem->meta->count));
        HBP__TRY(run_wave(f));
    }
    return HBP_OK;
}

hbp_status hbp__fill_waves(hbp_context *context, hbp__level_waves *waves)
{
    int64_t mark = hbp__scratch_mark(context);
    uint64_t own = (uint64_t)(waves->end - waves->base);
    filling f = {.context = context, .waves = waves};
    f.tuples = hbp__take(context, 2 * own, sizeof *f.tuples);
    f.pool = hbp__take(context, 2 * own, sizeof *f.pool);
    f.chosen = hbp__take(context, 2 * own, sizeof *f.chosen);
    f.round_of = hbp__take_zero(context, own, sizeof *f.round_of);
    HBP__TRY(hbp__scratch_check(context, "waves"));
    hbp__level_waves_clear(waves);
    HBP__TRY(fill_level(&f));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
