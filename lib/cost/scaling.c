/* Curves of operators: from profiles, and narrowed to a range of sizes. */
#include "cost/scaling.h"

#include <string.h>

#include "base/checked.h"
#include "base/rng.h"

/* Above this no sum of times or of GPU times could be trusted to fit 63 bits. */
#define MOST_NS (INT64_C(1) << 62)

/* Where a curve's columns lie in the pools, which move while they grow. */
typedef struct layout {
    int64_t gpus; /* in `counts` */
    int64_t size;
    int64_t hull;
    int64_t ns; /* in `times` */
    int64_t time_ns;
    int64_t largest_ns; /* GPU time of an operator on the size that wastes most */
} layout;

typedef struct builder {
    hbp_context *context;
    const hbp_graph *graph;
    const hbp__meta_graph *meta;
    hbp__scaling *scaling;
    layout *layout;    /* [room of curves] */
    int32_t *first_of; /* [room of curves] the first MetaOp that has the curve */
    int32_t *slot;     /* [slots] curve + 1, 0: free; open addressing by key */
    uint64_t slots;    /* a power of two */
    int64_t count_room;
    int64_t count_used;
    int64_t time_room;
    int64_t time_used;
} builder;

/* What tells curves apart. */
static int same_key(const hbp__operator *a, const hbp__operator *b)
{
    return a->profile == b->profile && a->degrees == b->degrees && a->batch == b->batch &&
           a->split == b->split && a->least_gpus == b->least_gpus;
}

static uint64_t hash_key(const hbp__operator *o)
{
    uint64_t mix = (uint64_t)(uint32_t)o->profile << 32 | (uint32_t)o->degrees;
    mix = hbp__splitmix64(&mix) ^ (uint64_t)o->batch;
    mix = hbp__splitmix64(&mix) ^ (uint64_t)o->split;
    mix = hbp__splitmix64(&mix) ^ (uint64_t)o->least_gpus;
    return hbp__splitmix64(&mix);
}

/* Room for `more` numbers in each pool. */
static hbp_status reserve(builder *b, int64_t more)
{
    hbp__scaling *s = b->scaling;
    if (b->count_used + more > b->count_room) {
        int64_t room = 2 * (b->count_used + more);
        int32_t *counts = hbp__renew(&s->memory, s->counts, (uint64_t)room, sizeof *counts);
        if (!counts)
            return hbp__fail_memory(b->context, "curves");
        s->counts = counts;
        b->count_room = room;
    }
    if (b->time_used + more > b->time_room) {
        int64_t room = 2 * (b->time_used + more);
        int64_t *times = hbp__renew(&s->memory, s->times, (uint64_t)room, sizeof *times);
        if (!times)
            return hbp__fail_memory(b->context, "curves");
        s->times = times;
        b->time_room = room;
    }
    return HBP_OK;
}

/* n = p q with p | batch and q | split exists if and only if n divides batch x split: take p = gcd(n, batch);
 * what is left of n divides split. */
static int divides(const hbp__operator *o, int64_t n)
{
    int64_t product;
    if (hbp__mul_i64(o->batch, o->split, &product))
        return product % n == 0;
    return o->batch % n * (o->split % n) % n == 0;
}

/* Time on n GPUs, by a / n + b through the points j < n <= k, in the form T_k + (T_j - T_k) j (k - n) / (n (k
 * - j)), whose products are exact. */
static int64_t time_between(const int32_t *gpus, const int64_t *ns, int64_t k, int64_t n)
{
    if (gpus[k] == n)
        return ns[k];
    int64_t j = gpus[k - 1], above = gpus[k] - n, gap = gpus[k] - j;
    double more = (double)(ns[k - 1] - ns[k]) * ((double)(j * above) / (double)(n * gap));
    return hbp__max_i64(hbp__round_i64((double)ns[k] + more), 1);
}

/* The running minimum of a profile. */
static void copy_points(builder *b, const hbp__profile *profile, hbp__curve *c, layout *at)
{
    at->gpus = b->count_used;
    at->ns = b->time_used;
    int32_t *gpus = b->scaling->counts + at->gpus;
    int64_t *ns = b->scaling->times + at->ns;
    for (int64_t i = 0; i < profile->points; i++) {
        gpus[i] = profile->gpus[i];
        ns[i] = i ? hbp__min_i64(ns[i - 1], profile->ns[i]) : profile->ns[i];
    }
    c->points = (int32_t)profile->points;
    b->count_used += profile->points;
    b->time_used += profile->points;
}

/* Sizes from the least profiled to the largest profiled, within `most`: how an operator does outside was not
 * measured, and no plan rests on a guess. Returns the least size that the rules allow at all, 0 for none.
 * O(points + sizes tried). */
static int64_t list_sizes(builder *b, const hbp__operator *o, int64_t most, hbp__curve *c, layout *at)
{
    const int32_t *gpus = b->scaling->counts + at->gpus;
    const int64_t *ns = b->scaling->times + at->ns;
    at->size = b->count_used;
    at->time_ns = b->time_used;
    int32_t *size = b->scaling->counts + at->size;
    int64_t *time_ns = b->scaling->times + at->time_ns;
    int profiled = o->degrees == HBP_DEGREES_PROFILED;
    int64_t step = profiled ? 1 : o->least_gpus, last = gpus[c->points - 1], k = 0, needed = 0;
    for (int64_t n = hbp__round_up(gpus[0], step); n <= last; n += step) {
        while (gpus[k] < n)
            k++;
        if (profiled)
            n = gpus[k];
        if (profiled ? n % o->least_gpus : !divides(o, n))
            continue;
        needed = needed ? needed : n;
        if (n > most)
            break;
        int64_t time = time_between(gpus, ns, k, n);
        if (c->sizes && time >= time_ns[c->sizes - 1])
            continue;
        size[c->sizes] = (int32_t)n;
        time_ns[c->sizes++] = time;
        at->largest_ns = hbp__max_i64(at->largest_ns, hbp__mul_saturating(n, time));
    }
    b->count_used += c->sizes;
    b->time_used += c->sizes;
    return needed;
}

/* a b < c d, exactly, for numbers of at most 62 bits. */
static int product_less(int64_t a, int64_t b, int64_t c, int64_t d)
{
    uint64_t high[2], low[2];
    const uint64_t left[2] = {(uint64_t)a, (uint64_t)c}, right[2] = {(uint64_t)b, (uint64_t)d};
    for (int i = 0; i < 2; i++) {
        uint64_t l0 = left[i] & UINT32_MAX, l1 = left[i] >> 32, r0 = right[i] & UINT32_MAX,
                 r1 = right[i] >> 32;
        uint64_t middle = l1 * r0 + (l0 * r0 >> 32), cross = l0 * r1 + (middle & UINT32_MAX);
        high[i] = l1 * r1 + (middle >> 32) + (cross >> 32);
        low[i] = left[i] * right[i];
    }
    return high[0] < high[1] || (high[0] == high[1] && low[0] < low[1]);
}

static int64_t area_of(const int32_t *size, const int64_t *time_ns, int32_t i)
{
    return size[i] * time_ns[i];
}

/* The middle one of three lies above the line through the other two. Times fall, areas rise. */
static int above_line(const int32_t *size, const int64_t *time_ns, int32_t i, int32_t j, int32_t k)
{
    return product_less(time_ns[i] - time_ns[j], area_of(size, time_ns, k) - area_of(size, time_ns, i),
                        time_ns[i] - time_ns[k], area_of(size, time_ns, j) - area_of(size, time_ns, i));
}

int32_t hbp__curve_hull(const int32_t *size, const int64_t *time_ns, int32_t sizes, int32_t *hull)
{
    int32_t tight = 0;
    for (int32_t i = 0; i < sizes; i++) {
        while (tight && area_of(size, time_ns, i) <= area_of(size, time_ns, hull[tight - 1]))
            tight--;
        while (tight > 1 && above_line(size, time_ns, hull[tight - 2], hull[tight - 1], i))
            tight--;
        hull[tight++] = i;
    }
    return tight;
}

static void list_hull(builder *b, hbp__curve *c, layout *at)
{
    at->hull = b->count_used;
    c->tight = hbp__curve_hull(b->scaling->counts + at->size, b->scaling->times + at->time_ns, c->sizes,
                               b->scaling->counts + at->hull);
    b->count_used += c->tight;
}

static hbp_status fail_sum(const builder *b, int32_t m)
{
    return hbp__fail(b->context, HBP_E_OVERFLOW, "operators up to '%.80s' take more than 2^62 ns of GPU time",
                     hbp__meta_operator(b->graph, b->meta, m)->name);
}

static hbp_status make_curve(builder *b, int32_t m)
{
    hbp__scaling *s = b->scaling;
    const hbp__operator *o = hbp__meta_operator(b->graph, b->meta, m);
    HBP__TRY(hbp__tick(b->context, "curves", m, b->meta->count));
    if (o->profile < 0)
        return hbp__fail(b->context, HBP_E_INVALID, "operator '%.80s' has no profile", o->name);
    const hbp__profile profile = hbp__graph_profile(b->graph, o->profile);
    int64_t last = profile.gpus[profile.points - 1], most = hbp__min_i64(last, s->gpus);
    int64_t tried = hbp__max_i64(most - profile.gpus[0] + 1, 0);
    HBP__TRY(reserve(b, profile.points + 2 * tried));
    hbp__curve *c = &s->curve[s->count];
    layout *at = &b->layout[s->count];
    *c = (hbp__curve){0};
    *at = (layout){0};
    copy_points(b, &profile, c, at);
    int64_t needed = list_sizes(b, o, most, c, at);
    if (!needed)
        return hbp__fail(b->context, HBP_E_INVALID,
                         "operator '%.80s' may run on no number of GPUs from the least profiled, %d, to the "
                         "largest, %d",
                         o->name, (int)profile.gpus[0], (int)last);
    if (!c->sizes)
        return hbp__fail(b->context, HBP_E_INVALID, "operator '%.80s' needs at least %lld GPUs; there are %d",
                         o->name, (long long)needed, (int)s->gpus);
    if (at->largest_ns > MOST_NS)
        return fail_sum(b, m);
    list_hull(b, c, at);
    b->first_of[s->count++] = m;
    return HBP_OK;
}

static hbp_status find_or_make(builder *b, int32_t m, int32_t *curve)
{
    const hbp__operator *o = hbp__meta_operator(b->graph, b->meta, m);
    uint64_t i = hash_key(o) & (b->slots - 1);
    for (; b->slot[i]; i = (i + 1) & (b->slots - 1)) {
        *curve = b->slot[i] - 1;
        if (same_key(o, hbp__meta_operator(b->graph, b->meta, b->first_of[*curve])))
            return HBP_OK;
    }
    HBP__TRY(make_curve(b, m));
    *curve = b->scaling->count - 1;
    b->slot[i] = b->scaling->count;
    return HBP_OK;
}

/* All operators one after another on their most wasteful sizes: no sum of a planner is longer. */
static hbp_status check_sum(const builder *b)
{
    int64_t sum = 0;
    for (int32_t m = 0; m < b->meta->count; m++) {
        int64_t each = b->layout[b->scaling->curve_of[m]].largest_ns;
        sum = hbp__add_saturating(sum, hbp__mul_saturating(each, b->meta->meta_op[m].count));
        if (sum > MOST_NS)
            return fail_sum(b, m);
    }
    return HBP_OK;
}

static hbp_status build_curves(builder *b)
{
    hbp__scaling *s = b->scaling;
    uint64_t most = (uint64_t)b->meta->count;
    for (b->slots = 1; b->slots < 2 * most; b->slots *= 2)
        ;
    s->curve = hbp__new(&s->memory, most, sizeof *s->curve);
    s->curve_of = hbp__new(&s->memory, most, sizeof *s->curve_of);
    b->layout = hbp__new(&s->memory, most, sizeof *b->layout);
    b->first_of = hbp__new(&s->memory, most, sizeof *b->first_of);
    b->slot = hbp__new_zero(&s->memory, b->slots, sizeof *b->slot);
    if (!s->curve || !s->curve_of || !b->layout || !b->first_of || !b->slot)
        return hbp__fail_memory(b->context, "curves");
    for (int32_t m = 0; m < b->meta->count; m++) {
        HBP__TRY(find_or_make(b, m, &s->curve_of[m]));
    }
    HBP__TRY(check_sum(b));
    for (int32_t i = 0; i < s->count; i++) {
        const layout *at = &b->layout[i];
        s->curve[i].gpus = s->counts + at->gpus;
        s->curve[i].size = s->counts + at->size;
        s->curve[i].hull = s->counts + at->hull;
        s->curve[i].ns = s->times + at->ns;
        s->curve[i].time_ns = s->times + at->time_ns;
    }
    return HBP_OK;
}

hbp_status hbp__scaling_open(hbp_context *context, const hbp_graph *graph, const hbp__meta_graph *meta,
                             int32_t gpus, hbp__scaling *scaling)
{
    *scaling = (hbp__scaling){.memory = context->memory, .gpus = gpus};
    builder b = {.context = context, .graph = graph, .meta = meta, .scaling = scaling};
    hbp_status status = build_curves(&b);
    hbp__delete(&context->memory, b.layout);
    hbp__delete(&context->memory, b.first_of);
    hbp__delete(&context->memory, b.slot);
    if (status < 0)
        hbp__scaling_close(scaling);
    return status;
}

void hbp__scaling_close(hbp__scaling *scaling)
{
    hbp__delete(&scaling->memory, scaling->curve);
    hbp__delete(&scaling->memory, scaling->curve_of);
    hbp__delete(&scaling->memory, scaling->counts);
    hbp__delete(&scaling->memory, scaling->times);
    *scaling = (hbp__scaling){.memory = scaling->memory};
}

int32_t hbp__curve_floor(const hbp__curve *curve, int32_t n)
{
    int32_t low = 0, high = curve->sizes; /* size[low - 1] <= n < size[high] */
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (curve->size[middle] <= n)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

int32_t hbp__curve_find(const hbp__curve *curve, int32_t n)
{
    int32_t i = hbp__curve_floor(curve, n);
    return i >= 0 && curve->size[i] == n ? i : -1;
}

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

static hbp_status narrow_curves(hbp_context *context, const hbp__meta_graph *meta, const hbp__scaling *from,
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
    hbp_status status = narrow_curves(context, meta, from, range, to);
    if (status < 0)
        hbp__scaling_close(to);
    return status;
}
