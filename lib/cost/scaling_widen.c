#include <string.h>

#include "cost/scaling.h"

/* The index of the first size of at least `least`; of the largest when all are below. */
static int32_t first_of(const hbp__curve *curve, int32_t least)
{
    int32_t i = hbp__curve_floor(curve, least - 1) + 1;
    return i < curve->sizes ? i : curve->sizes - 1;
}

static hbp_status widen(hbp_context *context, const hbp__meta_graph *meta, const hbp__scaling *from,
                        int32_t least, hbp__scaling *to)
{
    int64_t sizes = 0;
    for (int32_t i = 0; i < from->count; i++)
        sizes += from->curve[i].sizes;
    to->curve = hbp__new(&to->memory, (uint64_t)from->count, sizeof *to->curve);
    to->curve_of = hbp__new(&to->memory, (uint64_t)meta->count, sizeof *to->curve_of);
    to->counts = hbp__new(&to->memory, (uint64_t)sizes, sizeof *to->counts);
    if (!to->curve || !to->curve_of || !to->counts)
        return hbp__fail_memory(context, "curves");
    memcpy(to->curve_of, from->curve_of, (size_t)meta->count * sizeof *to->curve_of);
    int32_t *hull = to->counts;
    for (to->count = 0; to->count < from->count; to->count++) {
        hbp__curve *c = &to->curve[to->count];
        *c = from->curve[to->count];
        int32_t first = first_of(c, least);
        c->size += first;
        c->time_ns += first;
        c->sizes -= first;
        c->tight = hbp__curve_hull(c->size, c->time_ns, c->sizes, hull);
        c->hull = hull;
        hull += c->tight;
    }
    return HBP_OK;
}

hbp_status hbp__scaling_widen(hbp_context *context, const hbp__meta_graph *meta, const hbp__scaling *from,
                              int32_t least, hbp__scaling *to)
{
    *to = (hbp__scaling){.memory = context->memory, .gpus = from->gpus};
    hbp_status status = widen(context, meta, from, least, to);
    if (status < 0)
        hbp__scaling_close(to);
    return status;
}
