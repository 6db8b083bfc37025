#include "solve/vector_even.h"

#include <string.h>

#include "base/checked.h"

#define NONE UINT32_MAX
/* Items of a pack that one round looks at. */
#define WINDOW 12
/* Packs are sorted into so many buckets. */
#define BUCKETS 4096
/* Rounds that bring less than a share of 1/WORTH each end the search. */
#define WORTH    32
#define PATIENCE 4
/* The largest difference, in units of hbp__vector_scale, that squares tell from a larger one. */
#define MOST (INT64_C(1) << 23)
/* Packs less unlike than that, a two-thousandth of the capacities, are left as they are. */
#define ALIKE (INT64_C(1) << 18)
/* What a unit past a capacity costs, in squared units. */
#define OVER_SHIFT   36
#define PACKS_A_TICK 8192

/* An item in a pack, or room for one (a move exchanges an item for room). */
typedef struct slot {
    uint32_t a, b, weight, item;
} slot;

typedef struct evening {
    hbp_context *context;
    const hbp__vectors *vectors;
    hbp__vector_scale scale;
    int64_t packs;
    int64_t *first; /* [packs + 1] into slot */
    slot *slot;
    hbp__vector_load *load; /* [packs] */
    uint32_t *order;        /* [packs] */
    uint16_t *bucket;       /* [packs] */
    int64_t mean_a, mean_b; /* in units */
    int64_t off_a, off_b;   /* sums of distances from the means, in units */
    int64_t over_a, over_b; /* packs past a capacity */
    int64_t gain, cost;     /* of a round */
} evening;

static inline int64_t distance(int64_t difference, int64_t factor, int32_t shift)
{
    int64_t units = (difference < 0 ? -difference : difference) * factor >> shift;
    return units < MOST ? units : MOST;
}

/* Two packs that meet. Their sums stay, so that their differences say all. */
typedef struct meeting {
    int64_t a, b;           /* differences of their loads */
    int64_t past_a, past_b; /* differences beyond which the fuller one is past its capacity */
    int64_t both_a, both_b; /* what both are past together at any difference up to that */
} meeting;

static meeting meet(const hbp__vectors *v, const hbp__vector_load *p, const hbp__vector_load *q)
{
    int64_t free_a = 2 * v->capacity_a - p->a - q->a, free_b = 2 * v->capacity_b - p->b - q->b;
    return (meeting){p->a - q->a,
                     p->b - q->b,
                     free_a < 0 ? -free_a : free_a,
                     free_b < 0 ? -free_b : free_b,
                     free_a < 0 ? -free_a : 0,
                     free_b < 0 ? -free_b : 0};
}

static int64_t past_units(const evening *e, const meeting *m, int64_t a, int64_t b)
{
    int64_t over_a = m->both_a + hbp__max_i64(a - m->past_a, 0) / 2 + (a > m->past_a);
    int64_t over_b = m->both_b + hbp__max_i64(b - m->past_b, 0) / 2 + (b > m->past_b);
    return distance(over_a, e->scale.a, e->scale.shift) + (over_a > 0) +
           distance(over_b, e->scale.b, e->scale.shift) + (over_b > 0);
}

/* How unlike two packs are whose loads differ by a and b, both >= 0, and how far past their capacities. */
static inline int64_t unlike(const evening *e, const meeting *m, int64_t a, int64_t b)
{
    int64_t da = distance(a, e->scale.a, e->scale.shift), db = distance(b, e->scale.b, e->scale.shift);
    int64_t cost = da * da + db * db;
    if (a > m->past_a || b > m->past_b || m->both_a | m->both_b)
        cost += past_units(e, m, a, b) << OVER_SHIFT;
    return cost;
}

/* The slots of a pack that this round looks at: all, or a window that moves on from round to round. */
static inline int64_t window(const evening *e, uint32_t pack, int64_t round, int64_t *from)
{
    int64_t first = e->first[pack], count = e->first[pack + 1] - first;
    if (count <= WINDOW) {
        *from = first;
        return count;
    }
    int64_t windows = count / WINDOW;
    *from = first + round % windows * WINDOW;
    return round % windows == windows - 1
               ? first + count - *from < 2 * WINDOW ? first + count - *from : WINDOW
               : WINDOW;
}

static inline int64_t magnitude(int64_t x)
{
    return x < 0 ? -x : x;
}

/* Makes the best exchange between packs p and q, if any is worth it. */
static void exchange(evening *e, uint32_t p, uint32_t q, int64_t round)
{
    hbp__vector_load *lp = &e->load[p], *lq = &e->load[q];
    meeting m = meet(e->vectors, lp, lq);
    int64_t before = unlike(e, &m, magnitude(m.a), magnitude(m.b)), best = before;
    e->cost += before >> 10;
    if (before < ALIKE)
        return;
    slot *give = NULL, *take = NULL;
    int64_t from_p, from_q, count_p = window(e, p, round, &from_p), count_q = window(e, q, round, &from_q);
    int64_t most_out = e->vectors->max_weight - lq->weight, most_in = e->vectors->max_weight - lp->weight;
    for (slot *i = e->slot + from_p; i < e->slot + from_p + count_p; i++) {
        int64_t a = m.a - 2 * (int64_t)i->a, b = m.b - 2 * (int64_t)i->b;
        for (slot *j = e->slot + from_q; j < e->slot + from_q + count_q; j++) {
            int64_t cost = unlike(e, &m, magnitude(a + 2 * (int64_t)j->a), magnitude(b + 2 * (int64_t)j->b));
            int64_t out = (int64_t)i->weight - j->weight;
            if (cost >= best || out > most_out || -out > most_in)
                continue;
            best = cost;
            give = i;
            take = j;
        }
    }
    if (!give)
        return;
    e->gain += (before - best) >> 10;
    int64_t da = (int64_t)give->a - take->a, db = (int64_t)give->b - take->b;
    int64_t dw = (int64_t)give->weight - take->weight;
    lp->a -= da;
    lq->a += da;
    lp->b -= db;
    lq->b += db;
    lp->weight -= dw;
    lq->weight += dw;
    slot t = *give;
    *give = *take;
    *take = t;
}

static void measure(evening *e)
{
    e->off_a = e->off_b = e->over_a = e->over_b = 0;
    for (int64_t p = 0; p < e->packs; p++) {
        int64_t a = distance(e->load[p].a, e->scale.a, e->scale.shift);
        int64_t b = distance(e->load[p].b, e->scale.b, e->scale.shift);
        e->off_a += a > e->mean_a ? a - e->mean_a : e->mean_a - a;
        e->off_b += b > e->mean_b ? b - e->mean_b : e->mean_b - b;
        e->over_a += e->load[p].a > e->vectors->capacity_a;
        e->over_b += e->load[p].b > e->vectors->capacity_b;
    }
}

/* What round `round` sorts by: 0 the first size, 1 the second, 2 their sum, 3 their difference. A size in
 * which packs are alike already is not worth sorting by, unless it is past its capacity somewhere. */
static int32_t key_of(const evening *e, int64_t round)
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

/* Sorts e->order by the key, stable. */
static int sort_packs(evening *e, int32_t key, uint32_t *scratch)
{
    int64_t low = INT64_MAX, high = INT64_MIN;
    int64_t factor_a = key == 1 ? 0 : e->scale.a;
    int64_t factor_b = key == 0 ? 0 : key == 3 ? -e->scale.b : e->scale.b;
    for (int64_t p = 0; p < e->packs; p++) {
        int64_t x = e->load[p].a * factor_a + e->load[p].b * factor_b;
        low = hbp__min_i64(low, x);
        high = hbp__max_i64(high, x);
    }
    if (low == high)
        return 0;
    int32_t shift = 0;
    while ((high - low) >> shift >= BUCKETS)
        shift++;
    int64_t start[BUCKETS + 1] = {0};
    for (int64_t p = 0; p < e->packs; p++) {
        int64_t x = e->load[p].a * factor_a + e->load[p].b * factor_b;
        e->bucket[p] = (uint16_t)((x - low) >> shift);
        start[e->bucket[p] + 1]++;
    }
    for (int64_t b = 0; b < BUCKETS; b++)
        start[b + 1] += start[b];
    for (int64_t i = 0; i < e->packs; i++)
        scratch[start[e->bucket[e->order[i]]]++] = e->order[i];
    memcpy(e->order, scratch, (size_t)e->packs * sizeof *scratch);
    return 1;
}

/* By how many places the partners of a round are turned: the most and the least full meet at first, and then
 * others, or the same packs would find the same exchanges missing again and again. */
static int64_t turn_of(int64_t round, int64_t half)
{
    static const int64_t share[] = {0, 0, 8, 3, 16, 5, 32, 2};
    int64_t s = share[round % 8];
    return s ? (half / s + round) % half : 0;
}

static hbp_status run_round(evening *e, int64_t round, uint32_t *scratch)
{
    e->gain = e->cost = 0;
    if (!sort_packs(e, key_of(e, round), scratch))
        return HBP_OK;
    int64_t half = e->packs / 2, turn = turn_of(round, half);
    for (int64_t i = 0; i < half; i++) {
        if (i % PACKS_A_TICK == 0)
            HBP__TRY(hbp__tick(e->context, "even packs", round, 0));
        int64_t other = i + turn < half ? i + turn : i + turn - half;
        exchange(e, e->order[e->packs - 1 - i], e->order[other], round);
    }
    measure(e);
    return HBP_OK;
}

static int open_evening(evening *e, const hbp__vector_packing *packing)
{
    const hbp__memory *memory = &e->context->memory;
    uint64_t packs = (uint64_t)packing->packs;
    e->packs = packing->packs;
    e->scale = hbp__vector_scale_of(e->vectors);
    e->first = hbp__new_zero(memory, packs + 1, sizeof *e->first);
    e->slot = hbp__new(memory, (uint64_t)e->vectors->count + packs, sizeof *e->slot);
    e->load = hbp__new_zero(memory, packs, sizeof *e->load);
    e->order = hbp__new(memory, packs, 2 * sizeof *e->order);
    e->bucket = hbp__new(memory, packs, sizeof *e->bucket);
    return e->first && e->slot && e->load && e->order && e->bucket;
}

static void close_evening(evening *e)
{
    const hbp__memory *memory = &e->context->memory;
    hbp__delete(memory, e->first);
    hbp__delete(memory, e->slot);
    hbp__delete(memory, e->load);
    hbp__delete(memory, e->order);
    hbp__delete(memory, e->bucket);
}

/* The mean of `packs` loads, in units. */
static int64_t mean_units(int64_t sum, int64_t packs, int64_t factor, int32_t shift)
{
    return (sum / packs * factor + sum % packs * factor / packs) >> shift;
}

/* Items by pack, and room for one more item in each. */
static void read_packing(evening *e, const hbp__vector_packing *packing)
{
    const hbp__vectors *v = e->vectors;
    int64_t at = 0, sum_a = 0, sum_b = 0;
    for (int64_t i = 0; i < v->count; i++)
        e->first[packing->pack_of[i]]++;
    for (int64_t p = 0; p < e->packs; p++) {
        int64_t items = e->first[p];
        e->first[p] = at;
        at += items + 1;
        e->slot[at - 1] = (slot){0, 0, 0, NONE};
        e->order[p] = (uint32_t)p;
    }
    for (int64_t i = 0; i < v->count; i++) {
        uint32_t p = packing->pack_of[i];
        uint32_t weight = (uint32_t)hbp__vector_weight(v, i);
        e->slot[e->first[p]++] = (slot){v->a[i], v->b[i], weight, (uint32_t)i};
        e->load[p].a += v->a[i];
        e->load[p].b += v->b[i];
        e->load[p].weight += weight;
        sum_a += v->a[i];
        sum_b += v->b[i];
    }
    for (int64_t p = e->packs; p > 0; p--)
        e->first[p] = e->first[p - 1] + 1;
    e->first[0] = 0;
    e->mean_a = mean_units(sum_a, e->packs, e->scale.a, e->scale.shift);
    e->mean_b = mean_units(sum_b, e->packs, e->scale.b, e->scale.shift);
}

static void write_packing(const evening *e, hbp__vector_packing *packing)
{
    for (int64_t p = 0; p < e->packs; p++)
        for (int64_t k = e->first[p]; k < e->first[p + 1]; k++)
            if (e->slot[k].item != NONE)
                packing->pack_of[e->slot[k].item] = (uint32_t)p;
}

hbp_status hbp__vector_even(hbp_context *context, const hbp__vectors *vectors, hbp__vector_packing *packing,
                            int64_t rounds, int64_t *over)
{
    *over = 0;
    if (!packing->packs)
        return HBP_OK;
    evening e = {.context = context, .vectors = vectors};
    hbp_status status = HBP_OK;
    if (open_evening(&e, packing)) {
        read_packing(&e, packing);
        measure(&e);
        int64_t patience = PATIENCE;
        for (int64_t round = 0; round < rounds && patience > 0 && status == HBP_OK; round++) {
            int64_t over_before = e.over_a + e.over_b;
            status = run_round(&e, round, e.order + e.packs);
            int useful = e.gain > e.cost / WORTH || e.over_a + e.over_b < over_before;
            patience = useful ? PATIENCE : patience - 1;
        }
        for (int64_t p = 0; p < e.packs; p++)
            *over += e.load[p].a > vectors->capacity_a || e.load[p].b > vectors->capacity_b;
        write_packing(&e, packing);
    } else
        status = hbp__fail_memory(context, "packs to even");
    close_evening(&e);
    return status;
}
