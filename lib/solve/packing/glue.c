/* Light items glued to others, lightest first, so that no cap on weight binds: O(64 classes), and O(runs^1.5)
 * to take packs of composites apart. */
#include "solve/packing/tight_parts.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "solve/packing/tight_tuning.h"

typedef struct gluing {
    hbp_context *context;
    const hbp__classes *classes;
    hbp__room room;
    int64_t *left;  /* [classes] items not glued */
    int64_t *loose; /* [classes] of those, how many stay loose */
    int64_t next;   /* the first light class that may have items to glue */
    int64_t light;  /* light classes are among the first so many */
    hbp__patterns *parts;
} gluing;

/* The size that an item lacks not to be light, in units of 1 / max_weight; negative: has to spare. */
static int64_t lack_of(const gluing *g, int64_t c)
{
    return hbp__class_weight(g->classes, c) * g->room.capacity - g->classes->size[c] * g->room.max_weight;
}

static int64_t to_glue(const gluing *g, int64_t c)
{
    return lack_of(g, c) > 0 ? g->left[c] - g->loose[c] : 0;
}

/* Glues light items, lightest first, to the items of class `partner`, until either run out or none suits. */
static hbp_status glue_class(gluing *g, int64_t partner)
{
    hbp__run run[HBP__GLUE_REACH + 1];
    while (g->left[partner]) {
        int64_t spare = -lack_of(g, partner), room = g->room.capacity - g->classes->size[partner];
        int64_t runs = 0, times = g->left[partner];
        while (g->next < g->light && !to_glue(g, g->next))
            g->next++;
        for (int64_t c = g->next; c < hbp__min_i64(g->next + HBP__GLUE_REACH, g->light) && spare > 0; c++) {
            int64_t has = to_glue(g, c);
            if (!has)
                continue;
            int64_t each = hbp__min_i64(hbp__min_i64(spare / lack_of(g, c), room / g->classes->size[c]), has);
            if (!each)
                continue;
            spare -= each * lack_of(g, c);
            room -= each * g->classes->size[c];
            times = hbp__min_i64(times, has / each);
            run[runs++] = (hbp__run){(int32_t)c, (int32_t)each};
        }
        if (!runs)
            return HBP_OK;
        run[runs] = (hbp__run){(int32_t)partner, 1};
        for (int64_t i = 0, j = runs; i < j; i++, j--) {
            hbp__run swap = run[i];
            run[i] = run[j];
            run[j] = swap;
        }
        for (int64_t k = 0; k <= runs; k++)
            g->left[run[k].class_index] -= times * run[k].number;
        HBP__TRY(hbp__patterns_add(g->context, g->parts, times, run, runs + 1));
    }
    return HBP_OK;
}

/* Partners in the order of their use: from HBP__GLUE_SMALL down, then up. What is not glued is a part by
 * itself. */
static hbp_status glue_all(gluing *g)
{
    int64_t small = hbp__classes_from(g->classes, g->room.capacity / HBP__GLUE_SMALL + 1);
    for (int64_t c = small - 1; c >= 0; c--)
        if (lack_of(g, c) < 0)
            HBP__TRY(glue_class(g, c));
    for (int64_t c = small; c < g->classes->count; c++)
        if (lack_of(g, c) < 0)
            HBP__TRY(glue_class(g, c));
    for (int64_t c = 0; c < g->classes->count; c++) {
        hbp__run one = {(int32_t)c, 1};
        if (g->left[c])
            HBP__TRY(hbp__patterns_add(g->context, g->parts, g->left[c], &one, 1));
    }
    return HBP_OK;
}

/* The composites and singles, sorted, as classes. */
static hbp_status sort_parts(const hbp__classes *classes, hbp__glued *glued)
{
    hbp_context *context = glued->context;
    const hbp__patterns *parts = &glued->parts;
    uint64_t rows = (uint64_t)parts->count;
    glued->size = hbp__take(context, rows, sizeof *glued->size);
    glued->number = hbp__take(context, rows, sizeof *glued->number);
    glued->weight = hbp__take_zero(context, rows, sizeof *glued->weight);
    glued->part = hbp__take(context, rows, sizeof *glued->part);
    int64_t mark = hbp__scratch_mark(context);
    uint64_t *keys = hbp__take_zero(context, rows, sizeof *keys);
    HBP__TRY(hbp__scratch_check(context, "items glued together"));
    for (int64_t p = 0; p < parts->count; p++) {
        glued->part[p] = (uint32_t)p;
        for (int64_t k = parts->offsets[p]; k < parts->offsets[p + 1]; k++)
            keys[p] += (uint64_t)(parts->run[k].number * classes->size[parts->run[k].class_index]);
    }
    if (!hbp__sort_by_u64(&context->memory, keys, glued->part, parts->count))
        return hbp__fail_memory(context, "items glued together");
    for (int64_t c = 0; c < parts->count; c++) {
        int64_t p = glued->part[c];
        glued->size[c] = (int64_t)keys[p];
        glued->number[c] = parts->times[p];
        for (int64_t k = parts->offsets[p]; k < parts->offsets[p + 1]; k++)
            glued->weight[c] += parts->run[k].number * hbp__class_weight(classes, parts->run[k].class_index);
    }
    hbp__scratch_release(context, mark);
    glued->classes = (hbp__classes){parts->count, glued->size, glued->number, glued->weight};
    return HBP_OK;
}

hbp_status hbp__glue_open(hbp_context *context, const hbp__classes *classes, hbp__room room, int64_t loose,
                          hbp__glued *glued)
{
    int64_t mark = hbp__scratch_mark(context);
    memset(glued, 0, sizeof *glued);
    glued->context = context;
    hbp__patterns_open(context, &glued->parts);
    gluing g = {.context = context, .classes = classes, .room = room, .parts = &glued->parts};
    g.left = hbp__take(context, (uint64_t)classes->count, sizeof *g.left);
    g.loose = hbp__take_zero(context, (uint64_t)classes->count, sizeof *g.loose);
    HBP__TRY(hbp__scratch_check(context, "items glued together"));
    for (int64_t c = 0; c < classes->count; c++) {
        g.left[c] = classes->number[c];
        if (lack_of(&g, c) > 0) {
            g.light = c + 1;
            g.loose[c] = loose ? classes->number[c] / loose : 0;
        }
    }
    HBP__TRY(glue_all(&g));
    hbp__scratch_release(context, mark);
    return sort_parts(classes, glued);
}

void hbp__glue_close(hbp__glued *glued)
{
    hbp__patterns_close(&glued->parts);
}

int hbp__glue_is_light(const hbp__glued *glued, hbp__room room, int64_t c)
{
    return glued->size[c] * room.max_weight < glued->weight[c] * room.capacity;
}

static int64_t part_runs(const hbp__glued *glued, int64_t c)
{
    int64_t p = glued->part[c];
    return glued->parts.offsets[p + 1] - glued->parts.offsets[p];
}

/* Adds the runs of glued items to those of a pack. */
static int64_t unpack_class(const hbp__glued *glued, hbp__run whole, hbp__run *run, int64_t runs)
{
    const hbp__patterns *parts = &glued->parts;
    int64_t p = glued->part[whole.class_index];
    for (int64_t k = parts->offsets[p]; k < parts->offsets[p + 1]; k++)
        run[runs++] = (hbp__run){parts->run[k].class_index, parts->run[k].number * whole.number};
    return runs;
}

/* Runs descending by class (Shell 1959), a class once. Returns how many. */
static int64_t tidy_runs(hbp__run *run, int64_t runs)
{
    int64_t kept = 0;
    for (int64_t gap = runs / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11) {
        for (int64_t i = gap; i < runs; i++) {
            hbp__run moved = run[i];
            int64_t j = i;
            for (; j >= gap && run[j - gap].class_index < moved.class_index; j -= gap)
                run[j] = run[j - gap];
            run[j] = moved;
        }
    }
    for (int64_t i = 0; i < runs; i++) {
        if (kept && run[kept - 1].class_index == run[i].class_index)
            run[kept - 1].number += run[i].number;
        else
            run[kept++] = run[i];
    }
    return kept;
}

hbp_status hbp__glue_write(const hbp__glued *glued, const hbp__patterns *packs, hbp__patterns *patterns)
{
    const hbp__memory *memory = &glued->context->memory;
    hbp__run *run = NULL;
    int64_t room = 0;
    hbp_status status = HBP_OK;
    for (int64_t p = 0; p < packs->count && status == HBP_OK; p++) {
        int64_t runs = 0, most = 0;
        for (int64_t k = packs->offsets[p]; k < packs->offsets[p + 1]; k++)
            most += part_runs(glued, packs->run[k].class_index);
        if (most > room) {
            most *= 2;
            hbp__run *wider = hbp__renew(memory, run, (uint64_t)most, sizeof *run);
            if (!wider) {
                status = hbp__fail_memory(glued->context, "packing patterns");
                break;
            }
            run = wider;
            room = most;
        }
        for (int64_t k = packs->offsets[p]; k < packs->offsets[p + 1]; k++)
            runs = unpack_class(glued, packs->run[k], run, runs);
        status = hbp__patterns_add(glued->context, patterns, packs->times[p], run, tidy_runs(run, runs));
    }
    hbp__delete(memory, run);
    return status;
}
