/* Packs by the patterns of one size. */
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "solve/packing/tight_pack.h"
#include "solve/vector/vector_run.h"
#include "solve/vector/vector_tuning.h"

/* The classes of one size. */
typedef struct few {
    const uint32_t *own, *other;
    int64_t capacity, other_capacity;
    int64_t count, room;
    int64_t *size, *number; /* [room] */
    int64_t *sum;           /* [room] of the other size */
    int64_t *start;         /* [room + 1] into by_class */
    uint32_t *by_class;     /* [items] */
} few;

static int64_t class_at(const few *f, int64_t size)
{
    int64_t low = 0, high = f->count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (f->size[middle] < size)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Finds the classes of the positive sizes; *found is 0 when there are none or more than f->room. */
static hbp_status find_classes(hbp_context *context, const hbp__vectors *v, few *f, int *found)
{
    f->count = *found = 0;
    for (int64_t i = 0; i < v->count; i++) {
        HBP__TRY(hbp__tick_row(context, "pack", i, v->count));
        if (!f->own[i])
            continue;
        int64_t c = class_at(f, f->own[i]);
        if (c == f->count || f->size[c] != f->own[i]) {
            if (f->count == f->room)
                return HBP_OK;
            for (int64_t k = f->count++; k > c; k--) {
                f->size[k] = f->size[k - 1];
                f->number[k] = f->number[k - 1];
                f->sum[k] = f->sum[k - 1];
            }
            f->size[c] = f->own[i];
            f->number[c] = f->sum[c] = 0;
        }
        f->number[c]++;
        f->sum[c] += f->other[i];
    }
    *found = f->count > 0;
    return HBP_OK;
}

/* Items by class, in the order drawn; r->list gets the items of size 0, *rest of them. */
static hbp_status sort_items(hbp__vector_run *r, few *f, int64_t *rest)
{
    *rest = 0;
    f->start[0] = 0;
    for (int64_t c = 0; c < f->count; c++)
        f->start[c + 1] = f->start[c] + f->number[c];
    for (int64_t k = 0; k < r->vectors->count; k++) {
        HBP__TRY(hbp__tick_row(r->context, "pack", k, r->vectors->count));
        uint32_t i = r->order[k];
        if (f->own[i])
            f->by_class[f->start[class_at(f, f->own[i])]++] = i;
        else
            r->list[(*rest)++] = i;
    }
    for (int64_t c = f->count; c > 0; c--)
        f->start[c] = f->start[c - 1];
    f->start[0] = 0;
    return HBP_OK;
}

/* Gives the patterns' packs items of their classes: they are the first packs of the trial. */
static hbp_status draw_items(hbp__vector_run *r, few *f, const hbp__patterns *patterns)
{
    const hbp__vectors *v = r->vectors;
    int64_t pack = 0;
    HBP__TRY(hbp__vector_run_clear(r, r->trial.packs));
    for (int64_t p = 0; p < patterns->count; p++) {
        for (int64_t k = 0; k < patterns->times[p]; k++, pack++) {
            HBP__TRY(hbp__tick_row(r->context, "pack", pack, patterns->packs));
            for (int64_t at = patterns->offsets[p]; at < patterns->offsets[p + 1]; at++) {
                for (int32_t n = 0; n < patterns->run[at].number; n++) {
                    uint32_t i = f->by_class[f->start[patterns->run[at].class_index]++];
                    r->trial.pack_of[i] = (uint32_t)pack;
                    r->load[pack].a += v->a[i];
                    r->load[pack].b += v->b[i];
                    r->load[pack].weight++;
                }
            }
        }
    }
    return HBP_OK;
}

/* Balances patterns of few classes. */
static hbp_status mix_classes(hbp__vector_run *r, const few *f, hbp__patterns *patterns)
{
    hbp__mix_class classes[HBP__MIX_CLASSES];
    for (int64_t c = 0; c < f->count; c++)
        classes[c] = (hbp__mix_class){f->size[c], f->sum[c] / f->number[c]};
    int64_t work = HBP__VECTOR_MIX_WORK << (r->effort - 1);
    return hbp__mix_balance(r->context, classes, f->count, (hbp__mix_room){f->capacity, f->other_capacity},
                            &work, patterns);
}

static hbp_status use_patterns(hbp__vector_run *r, few *f, hbp__patterns *patterns)
{
    if (f->count <= HBP__MIX_CLASSES)
        HBP__TRY(mix_classes(r, f, patterns));
    r->trial.packs = hbp__max_i64(patterns->packs, r->bound);
    int64_t rest;
    HBP__TRY(sort_items(r, f, &rest));
    HBP__TRY(draw_items(r, f, patterns));
    if (rest) {
        HBP__TRY(hbp__vector_run_sort_down(r, r->list, rest));
        HBP__TRY(hbp__vector_run_spread(r, rest));
    }
    return hbp__vector_run_mend(r);
}

static hbp_status pack_classes(hbp__vector_run *r, few *f)
{
    int found;
    HBP__TRY(find_classes(r->context, r->vectors, f, &found));
    if (!found || f->capacity > (HBP__VECTOR_MOST_CELLS << (r->effort - 1)) / f->count)
        return HBP_OK;
    hbp__classes classes = {f->count, f->size, f->number, NULL};
    hbp__room room = {f->capacity, r->vectors->max_weight};
    int64_t bound;
    int32_t effort = f->count <= HBP__MIX_CLASSES ? r->effort : r->effort - 1;
    hbp__patterns patterns;
    hbp__patterns_open(r->context, &patterns);
    hbp_status status = hbp__tight_pack(r->context, &classes, room, effort, &patterns, &bound);
    if (status == HBP_OK)
        status = use_patterns(r, f, &patterns);
    hbp__patterns_close(&patterns);
    return status;
}

hbp_status hbp__vector_run_patterns(hbp__vector_run *r, int second, int many)
{
    const hbp__vectors *v = r->vectors;
    if (v->weight)
        return HBP_OK;
    int64_t mark = hbp__scratch_mark(r->context);
    few f = {.own = second ? v->b : v->a,
             .other = second ? v->a : v->b,
             .capacity = second ? v->capacity_b : v->capacity_a,
             .other_capacity = second ? v->capacity_a : v->capacity_b,
             .room = many ? HBP__VECTOR_MOST_CLASSES : HBP__MIX_CLASSES};
    f.size = hbp__take(r->context, 4 * (uint64_t)f.room + 1, sizeof *f.size);
    f.by_class = hbp__take(r->context, (uint64_t)v->count, sizeof *f.by_class);
    HBP__TRY(hbp__scratch_check(r->context, "vector packing"));
    f.number = f.size + f.room;
    f.sum = f.number + f.room;
    f.start = f.sum + f.room;
    HBP__TRY(pack_classes(r, &f));
    hbp__scratch_release(r->context, mark);
    return HBP_OK;
}
