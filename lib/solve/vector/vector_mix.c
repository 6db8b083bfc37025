/* Exchanges between patterns of few classes until none helps: O(sets^2) for each pair of patterns, 24 passes
 * at most. */
#include "solve/vector/vector_run.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "solve/vector/vector_tuning.h"

/* Packs that hold items[c] of each class. */
typedef struct kind {
    int64_t times;
    int64_t first, second; /* what one of them holds */
    int32_t items[HBP__MIX_CLASSES];
} kind;

/* Items that may change hands: numbers of at most two classes; none of either is a set, too. */
typedef struct set {
    int32_t class_one, class_two;
    int32_t one, two;
    int64_t first, second;
} set;

typedef struct mixing {
    hbp_context *context;
    const hbp__mix_class *classes;
    int64_t count;
    hbp__mix_room room;
    int64_t factor_first, factor_second; /* capacities in one unit */
    int64_t *work;
    kind *kind; /* [HBP__MIX_PATTERNS + 2] */
    int64_t kinds;
    set *give, *take; /* [HBP__MIX_SETS] */
} mixing;

static void add_set(set *sets, int64_t *count, set s)
{
    if (*count < HBP__MIX_SETS)
        sets[(*count)++] = s;
}

static set make_set(const mixing *m, int64_t c, int32_t one, int64_t d, int32_t two)
{
    return (set){(int32_t)c,
                 (int32_t)d,
                 one,
                 two,
                 one * m->classes[c].first + two * m->classes[d].first,
                 one * m->classes[c].second + two * m->classes[d].second};
}

static int64_t list_sets(const mixing *m, const kind *k, set *sets)
{
    int64_t count = 0;
    add_set(sets, &count, (set){0});
    for (int64_t c = 0; c < m->count; c++)
        for (int32_t one = 1; one <= k->items[c]; one++)
            add_set(sets, &count, make_set(m, c, one, c, 0));
    for (int64_t c = 0; c < m->count; c++)
        for (int64_t d = c + 1; d < m->count && k->items[c]; d++)
            for (int32_t one = 1; one <= 2 && one <= k->items[c]; one++)
                for (int32_t two = 1; one + two <= 3 && two <= k->items[d]; two++)
                    add_set(sets, &count, make_set(m, c, one, d, two));
    return count;
}

/* How unlike two packs are whose sizes differ by so much. */
static int64_t imbalance_of(const mixing *m, int64_t first, int64_t second)
{
    int64_t a = first * m->factor_first, b = second * m->factor_second;
    a = hbp__min_i64(a < 0 ? -a : a, INT64_C(1) << 30);
    b = hbp__min_i64(b < 0 ? -b : b, INT64_C(1) << 30);
    return a * a + b * b;
}

/* Adds `times` packs like `k`, to its like where there is one. */
static void add_kind(mixing *m, const kind *k, int64_t times)
{
    if (!times)
        return;
    for (int64_t i = 0; i < m->kinds; i++) {
        if (m->kind[i].first == k->first && m->kind[i].second == k->second &&
            !memcmp(m->kind[i].items, k->items, sizeof k->items)) {
            m->kind[i].times += times;
            return;
        }
    }
    m->kind[m->kinds] = *k;
    m->kind[m->kinds++].times = times;
}

static void change_items(kind *k, const set *out, const set *in)
{
    k->items[out->class_one] -= out->one;
    k->items[out->class_two] -= out->two;
    k->items[in->class_one] += in->one;
    k->items[in->class_two] += in->two;
    k->first += in->first - out->first;
    k->second += in->second - out->second;
}

/* Makes the best exchange between packs of kinds p and q in as many packs as both have. 1 if there is one. */
static int mix_pair(mixing *m, int64_t p, int64_t q)
{
    kind one = m->kind[p], two = m->kind[q];
    int64_t first = one.first - two.first, second = one.second - two.second;
    int64_t gives = list_sets(m, &one, m->give), takes = list_sets(m, &two, m->take);
    int64_t best = imbalance_of(m, first, second), give = -1, take = -1;
    *m->work -= gives * takes;
    for (int64_t i = 0; i < gives; i++) {
        for (int64_t j = 0; j < takes; j++) {
            int64_t da = m->give[i].first - m->take[j].first, db = m->give[i].second - m->take[j].second;
            if (one.first - da > m->room.first || two.first + da > m->room.first)
                continue;
            int64_t cost = imbalance_of(m, first - 2 * da, second - 2 * db);
            if (cost < best) {
                best = cost;
                give = i;
                take = j;
            }
        }
    }
    if (give < 0)
        return 0;
    int64_t times = hbp__min_i64(one.times, two.times);
    set out = m->give[give], in = m->take[take];
    m->kind[p].times -= times;
    m->kind[q].times -= times;
    change_items(&one, &out, &in);
    change_items(&two, &in, &out);
    add_kind(m, &one, times);
    add_kind(m, &two, times);
    int64_t kept = 0;
    for (int64_t i = 0; i < m->kinds; i++) {
        if (m->kind[i].times)
            m->kind[kept++] = m->kind[i];
    }
    m->kinds = kept;
    return 1;
}

static hbp_status mix_patterns(mixing *m)
{
    int changed = 1;
    for (int32_t pass = 0; pass < HBP__MIX_PASSES && changed; pass++) {
        changed = 0;
        for (int64_t p = 0; p < m->kinds; p++) {
            HBP__TRY(hbp__tick(m->context, "mix patterns", pass, HBP__MIX_PASSES));
            for (int64_t q = 0; q < p && p < m->kinds; q++) {
                if (*m->work <= 0 || m->kinds > HBP__MIX_PATTERNS - 2)
                    return HBP_OK;
                changed |= mix_pair(m, p, q);
            }
        }
    }
    return HBP_OK;
}

static void read_patterns(mixing *m, const hbp__patterns *patterns)
{
    for (int64_t p = 0; p < patterns->count; p++) {
        kind k;
        memset(&k, 0, sizeof k);
        for (int64_t r = patterns->offsets[p]; r < patterns->offsets[p + 1]; r++) {
            hbp__run run = patterns->run[r];
            k.items[run.class_index] += run.number;
            k.first += run.number * m->classes[run.class_index].first;
            k.second += run.number * m->classes[run.class_index].second;
        }
        add_kind(m, &k, patterns->times[p]);
    }
}

static hbp_status write_patterns(const mixing *m, hbp__patterns *patterns)
{
    hbp__run run[HBP__MIX_CLASSES];
    hbp__patterns_clear(patterns);
    for (int64_t i = 0; i < m->kinds; i++) {
        int64_t runs = 0;
        for (int64_t c = m->count - 1; c >= 0; c--)
            if (m->kind[i].items[c])
                run[runs++] = (hbp__run){(int32_t)c, m->kind[i].items[c]};
        HBP__TRY(hbp__patterns_add(m->context, patterns, m->kind[i].times, run, runs));
    }
    return HBP_OK;
}

hbp_status hbp__mix_balance(hbp_context *context, const hbp__mix_class *classes, int64_t count,
                            hbp__mix_room room, int64_t *work, hbp__patterns *patterns)
{
    if (patterns->count > HBP__MIX_PATTERNS - 2 || patterns->count < 2)
        return HBP_OK;
    int64_t mark = hbp__scratch_mark(context);
    mixing m = {context, classes, count, room, 0, 0, work, NULL, 0, NULL, NULL};
    int64_t most = hbp__max_i64(hbp__max_i64(room.first, room.second), INT64_C(1) << 20);
    m.factor_first = most / room.first;
    m.factor_second = most / room.second;
    m.kind = hbp__take(context, HBP__MIX_PATTERNS, sizeof *m.kind);
    m.give = hbp__take(context, HBP__MIX_SETS, 2 * sizeof *m.give);
    HBP__TRY(hbp__scratch_check(context, "types of packs"));
    m.take = m.give + HBP__MIX_SETS;
    read_patterns(&m, patterns);
    HBP__TRY(mix_patterns(&m));
    HBP__TRY(write_patterns(&m, patterns));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
