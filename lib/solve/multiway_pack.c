/* The least number of parts: items of one size and number of samples are a class of bin packing. */
#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "solve/multiway_parts.h"
#include "solve/packing/tight_pack.h"

/* Items by class, ascending in size and then in samples. */
typedef struct sorted {
    uint32_t *order; /* [items] */
    int64_t *next;   /* [classes] the next item to name, a place in it */
    int64_t *size, *number, *weight;
    hbp__classes classes;
} sorted;

static hbp_status sort_items(hbp_context *context, const hbp__multiway *p, sorted *s)
{
    uint64_t rows = (uint64_t)p->items;
    uint64_t *key = hbp__take(context, rows, sizeof *key);
    s->order = hbp__take(context, rows, sizeof *s->order);
    s->next = hbp__take(context, rows, sizeof *s->next);
    s->size = hbp__take(context, rows, sizeof *s->size);
    s->number = hbp__take(context, rows, sizeof *s->number);
    s->weight = hbp__take(context, rows, sizeof *s->weight);
    HBP__TRY(hbp__scratch_check(context, "the items"));
    for (int64_t i = 0; i < p->items; i++) {
        key[i] = (uint64_t)hbp__multiway_size(p, (uint32_t)i) << 32 |
                 (uint64_t)hbp__multiway_samples(p, (uint32_t)i);
        s->order[i] = (uint32_t)i;
    }
    HBP__TRY(hbp__order_by_u64(context, key, s->order, p->items, "the items"));
    int64_t classes = 0;
    for (int64_t i = 0; i < p->items; i++) {
        uint32_t item = s->order[i];
        if (i == 0 || key[item] != key[s->order[i - 1]]) {
            s->next[classes] = i;
            s->size[classes] = hbp__multiway_size(p, item);
            s->weight[classes] = hbp__multiway_samples(p, item);
            s->number[classes++] = 0;
        }
        s->number[classes - 1]++;
    }
    s->classes = (hbp__classes){classes, s->size, s->number, s->weight};
    return HBP_OK;
}

/* Names the items of every pack. */
static void name_items(sorted *s, const hbp__patterns *patterns, uint32_t *part)
{
    uint32_t pack = 0;
    for (int64_t k = 0; k < patterns->count; k++)
        for (int64_t t = 0; t < patterns->times[k]; t++, pack++)
            for (int64_t r = patterns->offsets[k]; r < patterns->offsets[k + 1]; r++)
                for (int32_t i = 0; i < patterns->run[r].number; i++)
                    part[s->order[s->next[patterns->run[r].class_index]++]] = pack;
}

hbp_status hbp__multiway_pack(hbp_context *context, const hbp__multiway *problem, int32_t effort,
                              uint32_t *part, int64_t *parts, int64_t *bound)
{
    int64_t mark = hbp__scratch_mark(context);
    sorted s;
    hbp__patterns patterns;
    hbp__room room = {problem->capacity, problem->most_samples};
    HBP__TRY(sort_items(context, problem, &s));
    hbp__patterns_open(context, &patterns);
    hbp_status status = hbp__tight_pack(context, &s.classes, room, effort, &patterns, bound);
    if (status >= 0) {
        *parts = patterns.packs;
        name_items(&s, &patterns, part);
    }
    hbp__patterns_close(&patterns);
    if (status >= 0)
        hbp__scratch_release(context, mark);
    return status;
}
