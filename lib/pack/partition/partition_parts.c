/* Items to parts: how many parts each class gets, and which items share one.
 *
 * Input: items by class. Output: the part of each, the least number of parts and a bound on the heaviest.
 * Classes get parts by weight: one more goes to the class whose mean is heaviest, which is the best allotment
 * of means. A class that is not found to fit is packed (solve/multiway.h), and gets as many parts at least as
 * that took. O(parts log classes) beside the solver's work. Oracle: every partition tried
 * (tests/pack/test_partition.c). */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "pack/partition/partition.h"

/* A class and its parts. */
typedef struct part_class {
    hbp__multiway problem; /* its items, under the capacity of its parts */
    uint32_t *part;        /* [items] from 0 */
    int64_t weight, size, samples, most_weight, least_size;
    int64_t least;    /* no fewer parts hold it */
    int64_t floor;    /* fewer are known not to, or were not found to */
    int64_t parts;    /* it gets */
    int64_t packed;   /* `part` is a packing into so many; 0: it is not */
    int64_t heaviest; /* part, */
    int is_solved;    /* once `part` is the answer */
} part_class;

typedef struct solving {
    hbp__partition_call *call;
    hbp_context *context;
    part_class *class; /* [classes] */
    int64_t classes;
    uint32_t *heap; /* [classes] */
    int32_t effort;
    int is_equal, is_empty_allowed;
} solving;

static int64_t sum_of(const solving *s, int is_floor)
{
    int64_t sum = 0;
    for (int64_t k = 0; k < s->classes; k++)
        sum = hbp__add_saturating(sum, is_floor ? s->class[k].floor : s->class[k].least);
    return sum;
}

static hbp_status open_classes(solving *s)
{
    hbp__partition_call *c = s->call;
    s->classes = c->classes;
    s->class = hbp__take_zero(s->context, (uint64_t)s->classes, sizeof *s->class);
    s->heap = hbp__take(s->context, (uint64_t)s->classes, sizeof *s->heap);
    c->part = hbp__take_zero(s->context, (uint64_t)c->items, sizeof *c->part);
    HBP__TRY(hbp__scratch_check(s->context, "the classes"));
    for (int64_t k = 0; k < s->classes; k++) {
        part_class *class = &s->class[k];
        int64_t first = c->class_first[k];
        class->part = c->part + first;
        class->problem = (hbp__multiway){.items = c->class_first[k + 1] - first,
                                         .weight = c->weight + first,
                                         .size = c->has_sizes ? c->size + first : NULL,
                                         .samples = c->has_links ? c->samples + first : NULL,
                                         .capacity = c->capacity,
                                         .least_samples = s->is_empty_allowed ? 0 : 1,
                                         .most_samples = c->most_samples};
        class->least_size = INT64_MAX;
        for (int64_t i = first; i < c->class_first[k + 1]; i++) {
            class->weight += c->weight[i];
            class->size += c->size[i];
            class->samples += c->samples[i];
            class->most_weight = hbp__max_i64(class->most_weight, c->weight[i]);
            class->least_size = hbp__min_i64(class->least_size, c->size[i]);
        }
        if (class->problem.items == 1) /* it may be alone, over the capacity */
            class->problem.capacity = INT64_MAX;
        class->least = hbp__max_i64(hbp__ceil_div(class->size, class->problem.capacity),
                                    hbp__ceil_div(class->samples, c->most_samples));
        class->floor = class->least;
    }
    return HBP_OK;
}

/* Sizes as bin packing takes them. Without a capacity samples alone count; above HBP_MAX_LENGTH sizes are
 * rounded up to a power of two, of which parts hold a whole number: what fits then fits, but a bound is none.
 */
static hbp_status take_sizes(solving *s, hbp__multiway *problem, int *is_exact)
{
    int64_t *size = hbp__take(s->context, (uint64_t)problem->items, sizeof *size);
    int is_counted = problem->capacity == INT64_MAX, shift = 0;
    HBP__TRY(hbp__scratch_check(s->context, "the sizes"));
    if (is_counted)
        problem->capacity = problem->most_samples;
    while (problem->capacity >> shift > HBP_MAX_LENGTH)
        shift++;
    for (int64_t i = 0; i < problem->items; i++) {
        int64_t own = !is_counted        ? (problem->size ? problem->size : problem->weight)[i]
                      : problem->samples ? problem->samples[i]
                                         : 1;
        size[i] = hbp__min_i64(hbp__ceil_div(own, INT64_C(1) << shift), problem->capacity >> shift);
    }
    problem->size = size;
    problem->capacity >>= shift;
    *is_exact = shift == 0;
    return HBP_OK;
}

/* Packs a class into as few parts as are found. */
static hbp_status pack_class(solving *s, part_class *class)
{
    hbp__multiway problem = class->problem;
    int64_t bound = 1;
    int is_exact = 1;
    if (class->packed)
        return HBP_OK;
    if (class->size <= problem.capacity && class->samples <= problem.most_samples) {
        for (int64_t i = 0; i < problem.items; i++)
            class->part[i] = 0;
        class->packed = 1;
    } else {
        int64_t mark = hbp__scratch_mark(s->context);
        HBP__TRY(take_sizes(s, &problem, &is_exact));
        HBP__TRY(hbp__multiway_pack(s->context, &problem, s->effort, class->part, &class->packed, &bound));
        hbp__scratch_release(s->context, mark);
    }
    class->is_solved = 0;
    class->least = hbp__max_i64(class->least, is_exact ? bound : 1);
    class->floor = class->packed;
    return HBP_OK;
}

/* ---- Allotment ---- */

/* Whether a part more is for class a rather than b: the heavier mean, the first of equals. */
static int needs_more(const solving *s, uint32_t a, uint32_t b)
{
    const part_class *x = &s->class[a], *y = &s->class[b];
    int64_t left = hbp__ceil_div(x->weight, x->parts), right = hbp__ceil_div(y->weight, y->parts);
    return left != right ? left > right : a < b;
}

static void sift_down(solving *s, int64_t count, int64_t at)
{
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && needs_more(s, s->heap[child + 1], s->heap[child]))
            child++;
        if (!needs_more(s, s->heap[child], s->heap[at]))
            return;
        uint32_t class = s->heap[at];
        s->heap[at] = s->heap[child];
        s->heap[child] = class;
    }
}

/* Every class its floor, and of the rest one by one to the class of the heaviest mean, none more than it has
 * items. */
static hbp_status allot(solving *s, int64_t parts)
{
    int64_t left = parts - sum_of(s, 1), count = 0;
    for (int64_t k = 0; k < s->classes; k++) {
        part_class *class = &s->class[k];
        int64_t given = s->classes == 1 ? hbp__min_i64(parts, class->problem.items) : class->floor;
        class->is_solved &= class->parts == given;
        class->parts = given;
        if (s->classes > 1 && given < class->problem.items)
            s->heap[count++] = (uint32_t)k;
    }
    for (int64_t at = count / 2; at-- > 0;)
        sift_down(s, count, at);
    for (int64_t i = 0; i < left && count; i++) {
        part_class *class = &s->class[s->heap[0]];
        HBP__TRY(hbp__tick_row(s->context, "the classes' parts", i, left));
        class->is_solved = 0;
        if (++class->parts == class->problem.items)
            s->heap[0] = s->heap[--count];
        sift_down(s, count, 0);
    }
    return HBP_OK;
}

/* ---- Solving ---- */

/* Whether sizes alone are asked for: there is nothing to balance. */
static int is_weightless(const part_class *class)
{
    return class->problem.size && !class->weight;
}

/* One more part for each of the heaviest that hold two items, of the largest where nothing weighs, as many as
 * are wanted or there are: every other item of the part goes there. weight, number, from [parts]; order
 * [packed]. */
static hbp_status halve(solving *s, part_class *class, int64_t *weight, int64_t *number, uint32_t *from,
                        uint32_t *order)
{
    int64_t items = class->problem.items, packed = class->packed, wanted = class->parts - packed, made = 0;
    const int64_t *own = is_weightless(class) ? class->problem.size : class->problem.weight;
    for (int64_t k = 0; k < class->parts; k++) {
        weight[k] = number[k] = 0;
        from[k] = UINT32_MAX;
    }
    for (int64_t i = 0; i < items; i++) {
        weight[class->part[i]] += own[i];
        number[class->part[i]]++;
    }
    for (int64_t k = 0; k < packed; k++)
        order[k] = (uint32_t)k;
    HBP__TRY(hbp__order_by_i64(s->context, weight, order, packed, "the parts"));
    for (int64_t k = packed; k-- > 0 && made < wanted;)
        if (number[order[k]] > 1)
            from[order[k]] = (uint32_t)(packed + made++);
    for (int64_t k = 0; k < packed; k++)
        number[k] = 0;
    for (int64_t i = 0; i < items; i++) {
        uint32_t part = class->part[i];
        HBP__TRY(hbp__tick_row(s->context, "the parts", i, items));
        if (from[part] != UINT32_MAX && ++number[part] % 2 == 0)
            class->part[i] = from[part];
    }
    class->packed += made;
    return HBP_OK;
}

/* From `packed` parts to the class's number, which is at most that of its items. O(log parts) times the
 * items. */
static hbp_status spread(solving *s, part_class *class)
{
    int64_t mark = hbp__scratch_mark(s->context);
    uint64_t parts = (uint64_t) class->parts;
    int64_t *weight = hbp__take(s->context, parts, sizeof *weight);
    int64_t *number = hbp__take(s->context, parts, sizeof *number);
    uint32_t *from = hbp__take(s->context, parts, sizeof *from);
    uint32_t *order = hbp__take(s->context, parts, sizeof *order);
    HBP__TRY(hbp__scratch_check(s->context, "the parts"));
    while (class->packed < class->parts)
        HBP__TRY(halve(s, class, weight, number, from, order));
    hbp__scratch_release(s->context, mark);
    return HBP_OK;
}

/* Whether the class is packed and its parts leave less free than the smallest item in each: the rule of the
 * longest first does not fill them so. */
static int is_tight(const part_class *class)
{
    int64_t most = hbp__mul_saturating(class->parts, class->problem.capacity);
    return class->packed && class->packed <= class->parts &&
           most - class->size < hbp__mul_saturating(class->parts, class->least_size);
}

/* The class's items into its parts by the rule of the longest first; *found is 0 where that finds none, and
 * then a packing is what it was. */
static hbp_status solve_anew(solving *s, part_class *class, int *found)
{
    int64_t mark = hbp__scratch_mark(s->context);
    size_t bytes = (size_t) class->problem.items * sizeof *class->part;
    uint32_t *packing = class->packed ? hbp__take(s->context, bytes, 1) : NULL;
    HBP__TRY(hbp__scratch_check(s->context, "the parts"));
    if (packing)
        memcpy(packing, class->part, bytes);
    int64_t inner = hbp__scratch_mark(s->context);
    hbp_status status = hbp__multiway_solve(s->context, &class->problem, class->part, &class->heaviest);
    *found = status != HBP_E_INFEASIBLE;
    if (!*found) {
        hbp__forgive(s->context);
        hbp__scratch_release(s->context, inner);
        status = HBP_OK;
        if (packing)
            memcpy(class->part, packing, bytes);
    } else if (status >= 0) {
        class->packed = 0; /* a packing is no more */
        class->is_solved = 1;
    }
    if (status >= 0)
        hbp__scratch_release(s->context, mark);
    return status;
}

/* Whether a packing into the class's parts is balanced, near enough: in its own sizes, of which the parts are
 * full. Without a capacity samples were packed, whatever they weigh. */
static int is_balanced(const part_class *class)
{
    return class->packed == class->parts && !class->problem.size && class->problem.capacity < INT64_MAX;
}

/* The class's items into its parts; *found is 0 where it takes more, and then its floor says how many. */
static hbp_status solve_class(solving *s, part_class *class, int *found)
{
    *found = 1;
    if (class->is_solved)
        return HBP_OK;
    class->problem.parts = class->parts;
    if (s->is_equal)
        return solve_anew(s, class, found);
    if (!is_tight(class) && !is_weightless(class) && !is_balanced(class)) {
        HBP__TRY(solve_anew(s, class, found));
        if (*found)
            return HBP_OK;
    }
    HBP__TRY(pack_class(s, class));
    *found = class->packed <= class->parts;
    if (!*found && is_weightless(class)) {
        HBP__TRY(solve_anew(s, class, found));
        if (*found)
            class->floor = class->parts;
    }
    if (!*found || class->is_solved)
        return HBP_OK;
    if (class->packed < class->parts)
        HBP__TRY(spread(s, class));
    HBP__TRY(hbp__multiway_improve(s->context, &class->problem, class->part, &class->heaviest));
    class->packed = 0;
    class->is_solved = 1;
    return HBP_OK;
}

/* What stands against fewer parts, of what was given: "`capacity` 4096, `max_samples` 8, links". */
static const char *list_limits(const solving *s, char *text, size_t bytes)
{
    const hbp_partition_options *o = s->call->options;
    const struct {
        const char *name;
        int64_t value;
    } limits[] = {{"`capacity` ", o->capacity},
                  {"`max_samples` ", o->max_samples},
                  {"links", s->call->has_links ? -1 : 0},
                  {"classes", o->classes && s->classes > 1 ? -1 : 0},
                  {"`over_long` alone", o->over_long == HBP_OVERLONG_ALONE && s->classes > 1 ? -1 : 0}};
    size_t at = 0;
    snprintf(text, bytes, "these numbers of samples");
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (!limits[i].value)
            continue;
        at += (size_t)snprintf(text + at, bytes - at, "%s%s", at ? ", " : "", limits[i].name);
        if (limits[i].value > 0)
            at += (size_t)snprintf(text + at, bytes - at, "%lld", (long long)limits[i].value);
    }
    return text;
}

static hbp_status refuse_parts(solving *s, int64_t parts)
{
    int64_t least = sum_of(s, 0), found = sum_of(s, 1);
    char limits[128];
    list_limits(s, limits, sizeof limits);
    if (least > parts)
        return hbp__fail(s->context, HBP_E_INFEASIBLE,
                         "`parts` is %lld; under %s the samples take at least %lld", (long long)parts, limits,
                         (long long)least);
    return hbp__fail(
        s->context, HBP_E_INFEASIBLE,
        "`parts` is %lld; under %s the samples were found to fit into %lld, and none into fewer than %lld",
        (long long)parts, limits, (long long)found, (long long)least);
}

/* All classes into `parts` parts; *found is 0 where none were found. */
static hbp_status solve_all(solving *s, int64_t parts, int *found)
{
    for (;;) {
        int again = 0;
        *found = sum_of(s, 1) <= parts;
        if (!*found)
            return HBP_OK;
        HBP__TRY(allot(s, parts));
        for (int64_t k = 0; k < s->classes; k++) {
            int fits;
            HBP__TRY(hbp__tick_row(s->context, "classes", k, s->classes));
            HBP__TRY(solve_class(s, &s->class[k], &fits));
            again |= !fits;
        }
        if (!again)
            return HBP_OK;
    }
}

/* ---- Equal counts ---- */

/* Every class its parts of `samples` samples; the class that does not divide, else -1. */
static int64_t allot_equal(solving *s, int64_t samples)
{
    for (int64_t k = 0; k < s->classes; k++) {
        part_class *class = &s->class[k];
        if (class->samples % samples)
            return k;
        class->parts = class->samples / samples;
        class->problem.least_samples = class->problem.most_samples = samples;
        class->is_solved = 0;
    }
    return -1;
}

static hbp_status solve_equal(solving *s, int *found)
{
    *found = 1;
    for (int64_t k = 0; k < s->classes && *found; k++) {
        part_class *class = &s->class[k];
        if (class->parts < class->least || class->problem.least_samples > s->call->most_samples)
            *found = 0;
        else
            HBP__TRY(solve_class(s, class, found));
    }
    return HBP_OK;
}

static hbp_status solve_equal_given(solving *s, int64_t parts)
{
    const hbp__partition_call *c = s->call;
    int found;
    if (c->entries % parts)
        return hbp__fail(s->context, HBP_E_INVALID,
                         "`equal_count` asks for %lld samples in %lld parts, which does not divide",
                         (long long)c->entries, (long long)parts);
    int64_t samples = c->entries / parts, odd = allot_equal(s, samples), entry = 0;
    if (odd >= 0) {
        while (c->item[entry] != (uint32_t)c->class_first[odd])
            entry++;
        return hbp__fail(s->context, HBP_E_INVALID,
                         "`equal_count` asks for %lld samples in each of %lld parts; the %lld that may share "
                         "one with sample %lld do not divide",
                         (long long)samples, (long long)parts, (long long)s->class[odd].samples,
                         (long long)c->id[entry]);
    }
    HBP__TRY(solve_equal(s, &found));
    if (found)
        return HBP_OK;
    char limits[128];
    return hbp__fail(s->context, HBP_E_INFEASIBLE,
                     "`parts` is %lld; none of %lld samples each were found under %s", (long long)parts,
                     (long long)samples, list_limits(s, limits, sizeof limits));
}

/* Samples' sizes ascending, and sums of the first of them; NULL where more than that says which samples may
 * share a part. */
static hbp_status sum_smallest(solving *s, int64_t **sums)
{
    const hbp__multiway *p = &s->class[0].problem;
    const int64_t *size = p->size ? p->size : p->weight;
    *sums = NULL;
    if (s->classes > 1 || p->samples || p->capacity == INT64_MAX)
        return HBP_OK;
    uint32_t *order = hbp__take(s->context, (uint64_t)p->items, sizeof *order);
    *sums = hbp__take(s->context, (uint64_t)p->items + 1, sizeof **sums);
    HBP__TRY(hbp__scratch_check(s->context, "the sizes"));
    for (int64_t i = 0; i < p->items; i++)
        order[i] = (uint32_t)i;
    HBP__TRY(hbp__order_by_i64(s->context, size, order, p->items, "the sizes"));
    (*sums)[0] = 0;
    for (int64_t i = 0; i < p->items; i++)
        (*sums)[i + 1] = (*sums)[i] + size[order[i]];
    return HBP_OK;
}

/* Whether the largest sample and as many of the smallest as make `samples` are over the capacity. */
static int is_over(const solving *s, const int64_t *sums, int64_t samples)
{
    const hbp__multiway *p = &s->class[0].problem;
    int64_t largest = sums ? sums[p->items] - sums[p->items - 1] : 0;
    return sums && largest + sums[samples - 1] > p->capacity;
}

/* The least number of parts from `from`, a multiple of `multiple`, that divides. */
static hbp_status solve_equal_least(solving *s, int64_t from, int64_t multiple, int64_t *parts)
{
    const hbp__partition_call *c = s->call;
    int64_t *sums;
    HBP__TRY(sum_smallest(s, &sums));
    for (*parts = from; *parts <= c->entries; *parts += multiple) {
        int found = 0;
        HBP__TRY(hbp__tick_row(s->context, "parts of equal counts", *parts, c->entries));
        if (c->entries % *parts == 0 && !is_over(s, sums, c->entries / *parts) &&
            allot_equal(s, c->entries / *parts) < 0)
            HBP__TRY(solve_equal(s, &found));
        if (found)
            return HBP_OK;
    }
    char limits[128];
    return hbp__fail(
        s->context, HBP_E_INFEASIBLE,
        "no number of parts from %lld, a multiple of %lld, gives each as many of the %lld samples "
        "under %s",
        (long long)from, (long long)multiple, (long long)c->entries, list_limits(s, limits, sizeof limits));
}

/* ---- Bound ---- */

/* Whether `parts` parts hold every class with no mean above `most`. */
static int fits_under(const solving *s, int64_t parts, int64_t most)
{
    int64_t need = 0;
    for (int64_t k = 0; k < s->classes && need <= parts; k++)
        need += hbp__max_i64(s->class[k].least, hbp__ceil_div(s->class[k].weight, most));
    return need <= parts;
}

/* The least heaviest part that any allotment may have. */
static hbp_status find_bound(solving *s, int64_t parts, int64_t *bound)
{
    *bound = 0;
    if (s->classes == 1 || s->is_equal) {
        for (int64_t k = 0; k < s->classes; k++) {
            int64_t own;
            hbp__multiway problem = s->class[k].problem;
            problem.parts = hbp__min_i64(s->classes == 1 ? parts : s->class[k].parts, problem.items);
            HBP__TRY(hbp__multiway_bound(s->context, &problem, s->class[k].heaviest, &own));
            *bound = hbp__max_i64(*bound, own);
        }
        return HBP_OK;
    }
    int64_t low = 0, high = 0;
    for (int64_t k = 0; k < s->classes; k++) {
        low = hbp__max_i64(low, s->class[k].most_weight);
        high = hbp__max_i64(high, s->class[k].weight);
    }
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (fits_under(s, parts, middle))
            high = middle;
        else
            low = middle + 1;
    }
    *bound = low;
    return HBP_OK;
}

/* ---- The number of parts ---- */

static hbp_status check_number(solving *s, int64_t parts)
{
    const hbp__partition_call *c = s->call;
    if (parts > HBP_MAX_PARTS)
        return hbp__fail(s->context, HBP_E_OVERFLOW, "there are %lld parts; %lld are the most",
                         (long long)parts, (long long)HBP_MAX_PARTS);
    if (parts > c->items && !s->is_empty_allowed) {
        const hbp_partition_options *o = c->options;
        char asked[96] = "";
        if (o->min_parts > 1 || o->multiple_of > 1)
            snprintf(asked, sizeof asked, " (`min_parts` %lld, `multiple_of` %lld)",
                     (long long)hbp__max_i64(1, o->min_parts), (long long)hbp__max_i64(1, o->multiple_of));
        return hbp__fail(
            s->context, HBP_E_INVALID,
            "there are %lld parts%s and %lld samples%s; `allow_empty` would leave %lld parts empty",
            (long long)parts, asked, (long long)c->items, c->has_links ? ", those linked counted as one" : "",
            (long long)(parts - c->items));
    }
    return HBP_OK;
}

static hbp_status solve_given(solving *s, int64_t parts)
{
    int found;
    HBP__TRY(solve_all(s, parts, &found));
    return found ? HBP_OK : refuse_parts(s, parts);
}

hbp_status hbp__partition_parts(hbp__partition_call *c)
{
    const hbp_partition_options *o = c->options;
    solving s = {.call = c,
                 .context = c->context,
                 .effort = o->effort,
                 .is_equal = o->equal_count != 0,
                 .is_empty_allowed = o->allow_empty != 0};
    int64_t multiple = hbp__max_i64(1, o->multiple_of);
    HBP__TRY(open_classes(&s));
    c->parts = o->parts;
    if (!o->parts) {
        for (int64_t k = 0; k < s.classes; k++) {
            HBP__TRY(hbp__tick_row(c->context, "classes", k, s.classes));
            HBP__TRY(pack_class(&s, &s.class[k]));
        }
        int64_t fewest = s.is_equal ? sum_of(&s, 0) : sum_of(&s, 1);
        c->parts = hbp__round_up(hbp__max_i64(fewest, o->min_parts), multiple);
    }
    HBP__TRY(check_number(&s, c->parts));
    if (s.is_equal)
        HBP__TRY(o->parts ? solve_equal_given(&s, c->parts)
                          : solve_equal_least(&s, c->parts, multiple, &c->parts));
    else
        HBP__TRY(solve_given(&s, c->parts));
    c->least_parts =
        hbp__round_up(hbp__max_i64(sum_of(&s, 0), o->parts ? 1 : o->min_parts), o->parts ? 1 : multiple);
    for (int64_t k = 0, first = 0; k < s.classes; first += s.class[k++].parts)
        for (int64_t i = 0; i < s.class[k].problem.items; i++)
            s.class[k].part[i] += (uint32_t)first;
    return find_bound(&s, c->parts, &c->bound);
}
