/* Curves of an operator's time cut to the numbers of GPUs that a planner may use. */
#include <string.h>

#include "cost/scaling.h"

/* Whether sizes of `n` GPUs tile domains of `domain_gpus` GPUs without a rest; domain 0: any do. */
static int tiles(int32_t n, int32_t domain_gpus)
{
    return domain_gpus == 0 || domain_gpus % n == 0 || n % domain_gpus == 0;
}

/* Writes the sizes that are left of a curve: from `least` to `most`, of these the ones that tile where there
 * are such; the nearest one where none is in the range. Returns how many. */
static int32_t keep_sizes(const hbp__curve *from, const hbp__size_range *range, int32_t *size,
                          int64_t *time_ns)
{
    int32_t first = hbp__curve_floor(from, range->least - 1) + 1, last = hbp__curve_floor(from, range->most);
    last = last < 0 ? 0 : last;
    first = first > last ? last : first;
    int32_t kept = 0;
    for (int pass = 0; pass < 2 && kept == 0; pass++)
        for (int32_t i = first; i <= last; i++)
            if (tiles(from->size[i], pass ? 0 : range->domain_gpus)) {
                size[kept] = from->size[i];
                time_ns[kept++] = from->time_ns[i];
            }
    return kept;
}

static hbp_status narrow(hbp_context *context, const hbp__meta_graph *meta, const hbp__scaling *from,
                         const hbp__size_range *range, hbp__scaling *to)
{
    int64_t sizes = 0;
    for (int32_t i = 0; i < from->count; i++)
        sizes += from->curve[i].sizes;
    to->curve = hbp__new(&to->memory, (uint64_t)from->count, sizeof *to->curve);
    to->curve_of = hbp__new(&to->memory, (uint64_t)meta->count, sizeof *to->curve_of);
    to->counts = hbp__new(&to->memory, 2 * (uint64_t)sizes, sizeof *to->counts);
    to->times = hbp__new(&to->memory, (uint64_t)sizes, sizeof *to->times);
    if (!to->curve || !to->curve_of || !to->counts || !to->times)
        return hbp__fail_memory(context, "curves");
    memcpy(to->curve_of, from->curve_of, (size_t)meta->count * sizeof *to->curve_of);
    int32_t *size = to->counts, *hull = size + sizes;
    int64_t *time_ns = to->times;
    for (to->count = 0; to->count < from->count; to->count++) {
        hbp__curve *c = &to->curve[to->count];
        *c = from->curve[to->count];
        c->sizes = keep_sizes(&from->curve[to->count], range, size, time_ns);
        c->size = size;
        c->time_ns = time_ns;
        c->hull = hull;
        c->tight = hbp__curve_hull(size, time_ns, c->sizes, hull);
        size += c->sizes;
        time_ns += c->sizes;
        hull += c->tight;
    }
    return HBP_OK;
}

hbp_status hbp__scaling_narrow(hbp_context *context, const hbp__meta_graph *meta, const hbp__scaling *from,
                               const hbp__size_range *range, hbp__scaling *to)
{
    *to = (hbp__scaling){.memory = context->memory, .gpus = from->gpus};
    hbp_status status = narrow(context, meta, from, range, to);
    if (status < 0)
        hbp__scaling_close(to);
    return status;
}
