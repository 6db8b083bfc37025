#include "tasks/waves.h"

#include <string.h>

#include "base/checked.h"

/* A tuple with the time of one operator. */
typedef struct item {
    int32_t meta_op;
    int32_t gpus;
    int32_t count;
    int32_t size; /* index of `gpus` in the MetaOp's curve */
    int64_t each_ns;
} item;

/* Waves of one level, one after another. */
typedef struct waves {
    item *item;     /* [2 MetaOps of the level x waves at most]; grows */
    int64_t *first; /* [2 MetaOps + 1] */
    int32_t count;
    int64_t used;
    int64_t room;
    int64_t length_ns;
} waves;

typedef struct level {
    hbp_context *context;
    const hbp__task_problem *problem;
    item *pool; /* [tuples] what is left, in order of (-gpus, -time, MetaOp) */
    int32_t left;
    int32_t *chosen; /* [tuples] of the pool */
    int32_t base;    /* first MetaOp of the level */
    int32_t end;
    int32_t round;
    int32_t *round_of; /* [end - base] the last round that chose the MetaOp */
    int64_t *item_of;  /* [end - base] its last item in the waves; -1: none */
} level;

static int64_t time_of(const item *i)
{
    return i->count * i->each_ns;
}

static int comes_before(const item *a, const item *b)
{
    if (a->gpus != b->gpus)
        return a->gpus > b->gpus;
    if (time_of(a) != time_of(b))
        return time_of(a) > time_of(b);
    return a->meta_op < b->meta_op;
}

/* Insertion: from wave to wave only what ran changes its place. */
static void sort_pool(level *l)
{
    for (int32_t i = 1; i < l->left; i++) {
        item moved = l->pool[i];
        int32_t at = i;
        for (; at > 0 && comes_before(&moved, &l->pool[at - 1]); at--)
            l->pool[at] = l->pool[at - 1];
        l->pool[at] = moved;
    }
}

static void resize(const level *l, item *i, int32_t size)
{
    const hbp__curve *c = hbp__meta_curve(l->problem->scaling, i->meta_op);
    i->size = size;
    i->gpus = c->size[size];
    i->each_ns = c->time_ns[size];
}

static hbp_status reserve(level *l, waves *w, int64_t more)
{
    if (w->used + more <= w->room)
        return HBP_OK;
    int64_t room = 2 * (w->used + more);
    item *grown = hbp__renew(&l->context->memory, w->item, (uint64_t)room, sizeof *grown);
    if (!grown)
        return hbp__fail_memory(l->context, "waves");
    w->item = grown;
    w->room = room;
    return HBP_OK;
}

/* First fit in the pool's order, one tuple of a MetaOp; the wave's items follow those there are. Returns the
 * devices that are left over. */
static int32_t choose(level *l, waves *w, int32_t *number)
{
    int32_t free = l->problem->gpus;
    *number = 0;
    for (int32_t i = 0; i < l->left && free > 0; i++) {
        const item *t = &l->pool[i];
        if (t->gpus > free || l->round_of[t->meta_op - l->base] == l->round)
            continue;
        l->round_of[t->meta_op - l->base] = l->round;
        free -= t->gpus;
        l->chosen[*number] = i;
        w->item[w->used + (*number)++] = *t;
    }
    return free;
}

/* Left-over devices to the item with the most remaining time whose next size fits, as long as there is one.
 */
static void extend(const level *l, item *wave, int32_t number, int32_t free)
{
    for (;;) {
        item *most = NULL;
        for (int32_t i = 0; i < number; i++) {
            const hbp__curve *c = hbp__meta_curve(l->problem->scaling, wave[i].meta_op);
            if (wave[i].size + 1 < c->sizes && c->size[wave[i].size + 1] - wave[i].gpus <= free &&
                (!most || time_of(&wave[i]) > time_of(most)))
                most = &wave[i];
        }
        if (!most)
            return;
        free += most->gpus;
        resize(l, most, most->size + 1);
        free -= most->gpus;
    }
}

/* How long a wave is: about its shortest item, in whole operators of each. */
static int64_t stage_of(const item *wave, int32_t number)
{
    int64_t least = INT64_MAX, stage = 0;
    for (int32_t i = 0; i < number; i++)
        least = hbp__min_i64(least, time_of(&wave[i]));
    for (int32_t i = 0; i < number; i++) {
        int64_t each = wave[i].each_ns, times = least / each + (least % each >= each - least % each);
        stage = hbp__max_i64(stage, hbp__max_i64(times, 1) * each);
    }
    return stage;
}

/* Equal sets of (MetaOp, GPUs): the later wave's operators join the earlier one's. Returns whether they did.
 */
static int join(const level *l, waves *w, int32_t number)
{
    const item *now = w->item + w->used;
    if (!w->count || w->used - w->first[w->count - 1] != number)
        return 0;
    for (int32_t i = 0; i < number; i++) {
        int64_t before = l->item_of[now[i].meta_op - l->base];
        if (before < w->first[w->count - 1] || w->item[before].gpus != now[i].gpus)
            return 0;
    }
    for (int32_t i = 0; i < number; i++)
        w->item[l->item_of[now[i].meta_op - l->base]].count += now[i].count;
    return 1;
}

static hbp_status run_wave(level *l, waves *w)
{
    int32_t number;
    HBP__TRY(reserve(l, w, l->left));
    sort_pool(l);
    l->round++;
    int32_t free = choose(l, w, &number);
    item *wave = w->item + w->used;
    extend(l, wave, number, free);
    int64_t stage = stage_of(wave, number);
    for (int32_t i = 0; i < number; i++) {
        wave[i].count = (int32_t)hbp__min_i64(wave[i].count, stage / wave[i].each_ns);
        l->pool[l->chosen[i]].count -= wave[i].count;
    }
    int32_t kept = 0;
    for (int32_t i = 0; i < l->left; i++)
        if (l->pool[i].count)
            l->pool[kept++] = l->pool[i];
    l->left = kept;
    if (join(l, w, number))
        return HBP_OK;
    w->first[w->count++] = w->used;
    for (int32_t i = 0; i < number; i++)
        l->item_of[wave[i].meta_op - l->base] = w->used++;
    return HBP_OK;
}

static int64_t longest_of(const waves *w, int32_t wave)
{
    int64_t longest = 0;
    for (int64_t i = w->first[wave]; i < w->first[wave + 1]; i++)
        longest = hbp__max_i64(longest, time_of(&w->item[i]));
    return longest;
}

/* The shortest item of a wave ends in it, so there are at most as many waves as tuples. */
static hbp_status fill_waves(level *l, const hbp__tuple *tuples, int32_t count, waves *w)
{
    l->left = count;
    for (int32_t i = 0; i < count; i++) {
        const hbp__curve *c = hbp__meta_curve(l->problem->scaling, tuples[i].meta_op);
        l->pool[i] = (item){.meta_op = tuples[i].meta_op, .count = tuples[i].count};
        resize(l, &l->pool[i], hbp__curve_find(c, tuples[i].gpus));
    }
    l->round = 0;
    for (int32_t m = 0; m < l->end - l->base; m++) {
        l->round_of[m] = 0;
        l->item_of[m] = -1;
    }
    w->count = 0;
    w->used = 0;
    while (l->left) {
        HBP__TRY(hbp__tick(l->context, "waves", l->base, l->problem->meta->count));
        HBP__TRY(run_wave(l, w));
    }
    w->first[w->count] = w->used;
    w->length_ns = 0;
    for (int32_t k = 0; k < w->count; k++)
        w->length_ns += longest_of(w, k);
    return HBP_OK;
}

/* Appends a level's slices from when the one before has ended. */
static hbp_status append(level *l, const waves *w, hbp__task_slices *slices)
{
    int64_t start = slices->makespan_ns, *done = l->item_of; /* operators so far */
    memset(done, 0, (size_t)(l->end - l->base) * sizeof *done);
    for (int32_t k = 0; k < w->count; k++) {
        int32_t wave = slices->waves;
        for (int64_t i = w->first[k]; i < w->first[k + 1]; i++) {
            const item *t = &w->item[i];
            int64_t *first = &done[t->meta_op - l->base];
            hbp__task_slice slice = {t->meta_op, (int32_t)*first, t->count,          t->gpus,
                                     wave,       start,           start + time_of(t)};
            HBP__TRY(hbp__task_slices_add(l->context, slices, &slice));
            *first += t->count;
        }
        start += longest_of(w, k);
    }
    return HBP_OK;
}

static hbp_status plan_level(level *l, hbp__task_slices *slices)
{
    const hbp__memory *memory = &l->context->memory;
    uint64_t own = (uint64_t)(l->end - l->base), most = 2 * own;
    waves w = {.first = hbp__new(memory, most + 1, sizeof *w.first)};
    hbp__tuple *tuples = hbp__new(memory, most, sizeof *tuples);
    l->pool = hbp__new(memory, most, sizeof *l->pool);
    l->chosen = hbp__new(memory, most, sizeof *l->chosen);
    l->round_of = hbp__new(memory, own, sizeof *l->round_of);
    l->item_of = hbp__new(memory, own, sizeof *l->item_of);
    hbp_status status = w.first && tuples && l->pool && l->chosen && l->round_of && l->item_of
                            ? HBP_OK
                            : hbp__fail_memory(l->context, "waves");
    double optimum;
    int32_t count;
    if (status == HBP_OK)
        status = hbp__allocate_level(l->context, l->problem, l->base, l->end, &optimum, tuples, &count);
    if (status == HBP_OK)
        status = fill_waves(l, tuples, count, &w);
    if (status == HBP_OK)
        status = append(l, &w, slices);
    hbp__delete(memory, w.first);
    hbp__delete(memory, w.item);
    hbp__delete(memory, tuples);
    hbp__delete(memory, l->pool);
    hbp__delete(memory, l->chosen);
    hbp__delete(memory, l->round_of);
    hbp__delete(memory, l->item_of);
    return status;
}

hbp_status hbp__plan_waves(hbp_context *context, const hbp__task_problem *problem, hbp__task_slices *slices)
{
    const hbp__meta_graph *meta = problem->meta;
    hbp__task_slices made = {.memory = context->memory};
    hbp_status status = HBP_OK;
    for (int32_t v = 0; status == HBP_OK && v < meta->levels; v++) {
        level l = {.context = context,
                   .problem = problem,
                   .base = meta->level_first[v],
                   .end = meta->level_first[v + 1]};
        status = plan_level(&l, &made);
    }
    if (status < 0) {
        hbp__task_slices_close(&made);
        return status;
    }
    *slices = made;
    return HBP_OK;
}
