/* Packs balanced in both sizes by exchanges between pairs, the fullest with the emptiest: O(rounds packs
 * k^2), k items of a pack looked at, at most 12. */
#include "solve/vector/vectors.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "solve/vector/vector_tuning.h"

#define NONE UINT32_MAX
/* The largest difference, in units of hbp__vector_scale, that squares tell from a larger one. */
#define MOST (INT64_C(1) << 23)
/* What a unit past a capacity costs, in squared units. */
#define OVER_SHIFT   36
#define PACKS_A_TICK 8192
/* Pairs of packs that are fetched at once. */
#define BLOCK 16

/* An item in a pack, or room for one (a move exchanges an item for room). */
typedef struct slot {
    uint32_t a, b, weight, item;
} slot;

/* A pack: what it holds, and its slots. */
typedef struct bin {
    int64_t a, b;
    int64_t first; /* into slot */
    uint32_t slots, weight;
} bin;

typedef struct balancing {
    hbp_context *context;
    const hbp__vectors *vectors;
    hbp__vector_scale scale;
    int64_t packs;
    bin *bin; /* [packs] */
    slot *slot;
    uint32_t *order;        /* [packs] */
    uint16_t *bucket;       /* [packs] */
    int64_t *start;         /* [HBP__BALANCE_BUCKETS + 1] */
    int64_t mean_a, mean_b; /* in units */
    int64_t off_a, off_b;   /* sums of distances from the means, in units */
    int64_t over_a, over_b; /* packs past a capacity */
    int64_t gain, cost;     /* of a round */
} balancing;

/* A difference >= 0 in units. */
static inline int64_t distance_units(int64_t difference, int64_t factor, int32_t shift)
{
    int64_t units = difference * factor >> shift;
    return units < MOST ? units : MOST;
}

/* Two packs that meet. Their sums stay, so that their differences say all. */
typedef struct meeting {
    int64_t a, b;           /* differences of their loads */
    int64_t past_a, past_b; /* differences beyond which the fuller one is past its capacity */
    int64_t both_a, both_b; /* what both are past together at any difference up to that */
    int64_t past;           /* most units that both may be past a capacity */
} meeting;

static meeting meet_packs(const hbp__vectors *v, const bin *p, const bin *q)
{
    int64_t free_a = 2 * v->capacity_a - p->a - q->a, free_b = 2 * v->capacity_b - p->b - q->b;
    return (meeting){p->a - q->a,
                     p->b - q->b,
                     free_a < 0 ? -free_a : free_a,
                     free_b < 0 ? -free_b : free_b,
                     free_a < 0 ? -free_a : 0,
                     free_b < 0 ? -free_b : 0,
                     INT64_MAX};
}

static int64_t past_units(const balancing *e, const meeting *m, int64_t a, int64_t b)
{
    int64_t over_a = m->both_a + hbp__max_i64(a - m->past_a, 0) / 2 + (a > m->past_a);
    int64_t over_b = m->both_b + hbp__max_i64(b - m->past_b, 0) / 2 + (b > m->past_b);
    return distance_units(over_a, e->scale.a, e->scale.shift) + (over_a > 0) +
           distance_units(over_b, e->scale.b, e->scale.shift) + (over_b > 0);
}

/* How unlike two packs are whose loads differ by a and b, both >= 0, and how far past their capacities;
 * INT64_MAX past what they may be; may be too little where it is `most` or more. */
static inline int64_t imbalance_of(const balancing *e, const meeting *m, int64_t a, int64_t b, int64_t most)
{
    int64_t da = distance_units(a, e->scale.a, e->scale.shift);
    int64_t cost = da * da;
    if (cost >= most)
        return cost;
    int64_t db = distance_units(b, e->scale.b, e->scale.shift);
    cost += db * db;
    if (cost < most && (a > m->past_a || b > m->past_b || m->both_a | m->both_b)) {
        const int64_t past = past_units(e, m, a, b);
        cost = past > m->past ? INT64_MAX : cost + (past << OVER_SHIFT);
    }
    return cost;
}

/* What a round looks at of a pack: all slots, or a window that moves on from round to round. */
typedef struct window {
    bin bin;
    int64_t from; /* into slot */
    int64_t count;
    slot slot[HBP__BALANCE_WINDOW];
} window;

static void look_at_pack(const bin *pack, int64_t round, window *w)
{
    w->bin = *pack;
    w->from = pack->first;
    w->count = pack->slots;
    if (pack->slots > HBP__BALANCE_WINDOW) {
        w->from += round * (HBP__BALANCE_WINDOW - 1) % (pack->slots - HBP__BALANCE_WINDOW + 1);
        w->count = HBP__BALANCE_WINDOW;
    }
}

static inline int64_t magnitude(int64_t x)
{
    return x < 0 ? -x : x;
}

/* Makes the best exchange between packs p and q, if any is worth it. */
static void exchange_items(balancing *e, uint32_t p, uint32_t q, const window *w, const window *u)
{
    meeting m = meet_packs(e->vectors, &w->bin, &u->bin);
    int64_t before = imbalance_of(e, &m, magnitude(m.a), magnitude(m.b), INT64_MAX), best = before;
    e->cost = hbp__add_saturating(e->cost, before >> 10);
    if (before < HBP__BALANCE_ENOUGH)
        return;
    m.past = past_units(e, &m, magnitude(m.a), magnitude(m.b)); /* whatever is won by more */
    int64_t give = -1, take = -1;
    int64_t most_out = e->vectors->max_weight - u->bin.weight;
    int64_t most_in = e->vectors->max_weight - w->bin.weight;
    for (int64_t i = 0; i < w->count; i++) {
        int64_t a = m.a - 2 * (int64_t)w->slot[i].a, b = m.b - 2 * (int64_t)w->slot[i].b;
        for (int64_t j = 0; j < u->count; j++) {
            int64_t cost = imbalance_of(e, &m, magnitude(a + 2 * (int64_t)u->slot[j].a),
                                        magnitude(b + 2 * (int64_t)u->slot[j].b), best);
            int64_t out = (int64_t)w->slot[i].weight - u->slot[j].weight;
            if (cost >= best || out > most_out || -out > most_in)
                continue;
            best = cost;
            give = i;
            take = j;
        }
    }
    if (give < 0)
        return;
    e->gain = hbp__add_saturating(e->gain, (before - best) >> 10);
    const slot *out = &w->slot[give], *in = &u->slot[take];
    bin *one = &e->bin[p], *two = &e->bin[q];
    one->a += (int64_t)in->a - out->a;
    two->a += (int64_t)out->a - in->a;
    one->b += (int64_t)in->b - out->b;
    two->b += (int64_t)out->b - in->b;
    one->weight += in->weight - out->weight;
    two->weight += out->weight - in->weight;
    e->slot[w->from + give] = *in;
    e->slot[u->from + take] = *out;
}

/* Pairs up the packs order[n - 1 - i] and order[i + turn] for i in [begin, end). They lie anywhere in memory,
 * so first all are copied: the copies wait for memory at the same time. */
static void exchange_block(balancing *e, int64_t round, int64_t turn, int64_t begin, int64_t end)
{
    int64_t half = e->packs / 2;
    uint32_t pack[2 * BLOCK];
    window seen[2 * BLOCK];
    for (int64_t i = begin, k = 0; i < end; i++, k += 2) {
        pack[k] = e->order[e->packs - 1 - i];
        pack[k + 1] = e->order[i + turn < half ? i + turn : i + turn - half];
    }
    for (int64_t k = 0; k < 2 * (end - begin); k++)
        look_at_pack(&e->bin[pack[k]], round, &seen[k]);
    for (int64_t k = 0; k < 2 * (end - begin); k++) { /* fixed sizes are faster; there are slots to spare */
        const slot *from = e->slot + seen[k].from;
        if (seen[k].count <= HBP__BALANCE_WINDOW / 2)
            memcpy(seen[k].slot, from, HBP__BALANCE_WINDOW / 2 * sizeof *from);
        else
            memcpy(seen[k].slot, from, HBP__BALANCE_WINDOW * sizeof *from);
    }
    for (int64_t k = 0; k < 2 * (end - begin); k += 2)
        exchange_items(e, pack[k], pack[k + 1], &seen[k], &seen[k + 1]);
}

static hbp_status measure_packs(balancing *e)
{
    e->off_a = e->off_b = e->over_a = e->over_b = 0;
    for (int64_t p = 0; p < e->packs; p++) {
        HBP__TRY(hbp__tick_row(e->context, "even packs", p, e->packs));
        int64_t a = distance_units(e->bin[p].a, e->scale.a, e->scale.shift);
        int64_t b = distance_units(e->bin[p].b, e->scale.b, e->scale.shift);
        e->off_a += a > e->mean_a ? a - e->mean_a : e->mean_a - a;
        e->off_b += b > e->mean_b ? b - e->mean_b : e->mean_b - b;
        e->over_a += e->bin[p].a > e->vectors->capacity_a;
        e->over_b += e->bin[p].b > e->vectors->capacity_b;
    }
    return HBP_OK;
}

/* What round `round` sorts by: 0 the first size, 1 the second, 2 their sum, 3 their difference. A size in
 * which packs are balanced already is not worth sorting by, unless it is past its capacity somewhere. */
static int32_t key_of(const balancing *e, int64_t round)
{
    if (e->over_a && !e->over_b && round % 2)
        return 0;
    if (e->over_b && !e->over_a && round % 2)
        return 1;
    if (e->off_a < e->off_b / 16)
        return 1;
    if (e->off_b < e->off_a / 16)
        return 0;
    return (int32_t)(round % 4);
}

/* Sorts e->order by the key, stable; *differ is 0 when all have one. */
static hbp_status sort_packs(balancing *e, int32_t key, uint32_t *scratch, int *differ)
{
    int64_t low = INT64_MAX, high = INT64_MIN;
    int64_t factor_a = key == 1 ? 0 : e->scale.a;
    int64_t factor_b = key == 0 ? 0 : key == 3 ? -e->scale.b : e->scale.b;
    for (int64_t p = 0; p < e->packs; p++) {
        HBP__TRY(hbp__tick_row(e->context, "even packs", p, e->packs));
        int64_t x = e->bin[p].a * factor_a + e->bin[p].b * factor_b;
        low = hbp__min_i64(low, x);
        high = hbp__max_i64(high, x);
    }
    *differ = low < high;
    if (!*differ)
        return HBP_OK;
    int32_t shift = 0;
    int64_t buckets = hbp__min_i64(e->packs, HBP__BALANCE_BUCKETS), *start = e->start;
    while ((high - low) >> shift >= buckets)
        shift++;
    memset(start, 0, (size_t)(buckets + 1) * sizeof *start);
    for (int64_t p = 0; p < e->packs; p++) {
        HBP__TRY(hbp__tick_row(e->context, "even packs", p, e->packs));
        int64_t x = e->bin[p].a * factor_a + e->bin[p].b * factor_b;
        e->bucket[p] = (uint16_t)((x - low) >> shift);
        start[e->bucket[p] + 1]++;
    }
    for (int64_t b = 0; b < buckets; b++)
        start[b + 1] += start[b];
    for (int64_t i = 0; i < e->packs; i++) {
        HBP__TRY(hbp__tick_row(e->context, "even packs", i, e->packs));
        scratch[start[e->bucket[e->order[i]]]++] = e->order[i];
    }
    memcpy(e->order, scratch, (size_t)e->packs * sizeof *scratch);
    return HBP_OK;
}

/* By how many places the partners of a round are turned: the most and the least full meet at first, and then
 * others, or the same packs would find the same exchanges missing again and again. */
static int64_t turn_of(int64_t round, int64_t half)
{
    static const int64_t share[] = {0, 0, 8, 3, 16, 5, 32, 2};
    int64_t s = share[round % 8];
    return s ? (half / s + round) % half : 0;
}

static hbp_status run_round(balancing *e, int64_t round, uint32_t *scratch)
{
    e->gain = e->cost = 0;
    int differ;
    HBP__TRY(sort_packs(e, key_of(e, round), scratch, &differ));
    if (!differ)
        return HBP_OK;
    int64_t half = e->packs / 2, turn = turn_of(round, half);
    for (int64_t i = 0; i < half; i += BLOCK) {
        if (i % PACKS_A_TICK == 0)
            HBP__TRY(hbp__tick(e->context, "even packs", round, 0));
        exchange_block(e, round, turn, i, hbp__min_i64(i + BLOCK, half));
    }
    return measure_packs(e);
}

static hbp_status open_balancing(balancing *e, const hbp__vector_packing *packing)
{
    uint64_t packs = (uint64_t)packing->packs;
    e->packs = packing->packs;
    e->scale = hbp__vector_scale_of(e->vectors);
    e->slot =
        hbp__take(e->context, (uint64_t)e->vectors->count + HBP__BALANCE_SPARE * packs + HBP__BALANCE_WINDOW,
                  sizeof *e->slot);
    e->bin = hbp__take_zero(e->context, packs, sizeof *e->bin);
    e->order = hbp__take(e->context, packs, 2 * sizeof *e->order);
    e->bucket = hbp__take(e->context, packs, sizeof *e->bucket);
    e->start = hbp__take(e->context, HBP__BALANCE_BUCKETS + 1, sizeof *e->start);
    return hbp__scratch_check(e->context, "packs to even");
}

/* The mean of `packs` loads, in units. */
static int64_t mean_units(int64_t sum, int64_t packs, int64_t factor, int32_t shift)
{
    return (sum / packs * factor + sum % packs * factor / packs) >> shift;
}

/* Items by pack, and room for one more item in each, or for a few more where there are few. */
static hbp_status read_packing(balancing *e, const hbp__vector_packing *packing)
{
    const hbp__vectors *v = e->vectors;
    int64_t at = 0, sum_a = 0, sum_b = 0;
    for (int64_t i = 0; i < v->count; i++) {
        HBP__TRY(hbp__tick_row(e->context, "even packs", i, v->count));
        e->bin[packing->pack_of[i]].slots++;
    }
    int64_t mean = v->count / e->packs;
    for (int64_t p = 0; p < e->packs; p++) {
        HBP__TRY(hbp__tick_row(e->context, "even packs", p, e->packs));
        int64_t items = e->bin[p].slots,
                spare = hbp__min_i64(1 + hbp__max_i64(0, mean - items), HBP__BALANCE_SPARE);
        e->bin[p].first = at;
        e->bin[p].slots = 0;
        e->order[p] = (uint32_t)p;
        for (int64_t k = 0; k < spare; k++)
            e->slot[at + items + k] = (slot){0, 0, 0, NONE};
        at += items + spare;
    }
    for (int64_t i = 0; i < v->count; i++) {
        HBP__TRY(hbp__tick_row(e->context, "even packs", i, v->count));
        bin *pack = &e->bin[packing->pack_of[i]];
        uint32_t weight = (uint32_t)hbp__vector_weight(v, i);
        e->slot[pack->first + pack->slots++] = (slot){v->a[i], v->b[i], weight, (uint32_t)i};
        pack->a += v->a[i];
        pack->b += v->b[i];
        pack->weight += weight;
        sum_a += v->a[i];
        sum_b += v->b[i];
    }
    for (int64_t p = 0; p < e->packs; p++)
        e->bin[p].slots = (uint32_t)((p + 1 < e->packs ? e->bin[p + 1].first : at) - e->bin[p].first);
    memset(e->slot + at, 0, HBP__BALANCE_WINDOW * sizeof *e->slot);
    e->mean_a = mean_units(sum_a, e->packs, e->scale.a, e->scale.shift);
    e->mean_b = mean_units(sum_b, e->packs, e->scale.b, e->scale.shift);
    return HBP_OK;
}

static hbp_status write_packing(const balancing *e, hbp__vector_packing *packing)
{
    for (int64_t p = 0; p < e->packs; p++) {
        HBP__TRY(hbp__tick_row(e->context, "even packs", p, e->packs));
        for (int64_t k = e->bin[p].first; k < e->bin[p].first + e->bin[p].slots; k++)
            if (e->slot[k].item != NONE)
                packing->pack_of[e->slot[k].item] = (uint32_t)p;
    }
    return HBP_OK;
}

hbp_status hbp__vector_balance(hbp_context *context, const hbp__vectors *vectors,
                               hbp__vector_packing *packing, int64_t rounds, int64_t *over)
{
    *over = 0;
    if (!packing->packs)
        return HBP_OK;
    int64_t mark = hbp__scratch_mark(context);
    balancing e = {.context = context, .vectors = vectors};
    HBP__TRY(open_balancing(&e, packing));
    HBP__TRY(hbp__tick(context, "even packs", 0, rounds));
    HBP__TRY(read_packing(&e, packing));
    HBP__TRY(measure_packs(&e));
    int64_t patience = HBP__BALANCE_PATIENCE;
    for (int64_t round = 0; round < rounds && patience > 0; round++) {
        int64_t over_before = e.over_a + e.over_b;
        HBP__TRY(run_round(&e, round, e.order + e.packs));
        int useful = e.gain > e.cost / HBP__BALANCE_WORTH || e.over_a + e.over_b < over_before;
        patience = useful ? HBP__BALANCE_PATIENCE : patience - 1;
    }
    for (int64_t p = 0; p < e.packs; p++)
        *over += e.bin[p].a > vectors->capacity_a || e.bin[p].b > vectors->capacity_b ||
                 e.bin[p].weight > vectors->max_weight;
    HBP__TRY(write_packing(&e, packing));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
