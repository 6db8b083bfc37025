#include "base/permutation.h"

#include <math.h>

#include "base/checked.h"
#include "base/rng.h"
#include "base/wide.h"

#define ROUNDS 6
/* Elements side by side, at most; their number is rounded up to a multiple. */
#define LANES         256
#define LANE_MULTIPLE 16

/* The least r with r^2 >= count. */
static uint32_t root_of(uint64_t count)
{
    uint64_t root = (uint64_t)sqrt((double)count); /* off by one at most */
    while (root * root < count)
        root++;
    while (root > 1 && (root - 1) * (root - 1) >= count)
        root--;
    return (uint32_t)root;
}

static uint32_t columns_of(uint64_t count, uint32_t rows)
{
    return count <= UINT32_MAX / 2 ? ((uint32_t)count + rows - 1) / rows
                                   : (uint32_t)((count + rows - 1) / rows);
}

uint64_t hbp__permutation_key(uint64_t seed, uint64_t epoch)
{
    uint64_t mix = seed;
    mix = hbp__splitmix64(&mix) ^ epoch;
    return hbp__splitmix64(&mix);
}

hbp__permutation hbp__permutation_make(uint64_t count, uint64_t key, uint64_t stream)
{
    uint64_t mix = key ^ stream;
    hbp__permutation p = {.count = count, .key = hbp__splitmix64(&mix)};
    if (count > HBP__PERMUTATION_FEW) {
        p.rows = root_of(count);
        p.columns = columns_of(count, p.rows);
    }
    return p;
}

hbp__permutation hbp__permutation_of_stream(const hbp__permutation *p, uint64_t key, uint64_t stream)
{
    uint64_t mix = key ^ stream;
    hbp__permutation other = *p;
    other.key = hbp__splitmix64(&mix);
    return other;
}

/* All places of few elements: inside out (Durstenfeld 1964). */
static void shuffle_few(uint64_t key, uint64_t count, uint8_t *table)
{
    uint64_t state = key;
    for (uint8_t i = 0; i < count; i++) {
        const uint8_t k = (uint8_t)((hbp__splitmix64(&state) >> 32) * ((uint64_t)i + 1) >> 32);
        table[i] = table[k];
        table[k] = i;
    }
}

/* A number of 32 bits that depends on the key, the round and the other half. */
static inline uint32_t mix_half(uint32_t key, uint32_t round, uint32_t half)
{
    uint32_t x = half ^ (key + round * UINT32_C(0x9e3779b9));
    x *= UINT32_C(0xcc9e2d51);
    x ^= x >> 15;
    x *= UINT32_C(0x1b873593);
    return x ^ x >> 16;
}

/* A number of 32 bits as one in [0, size): floor(x size / 2^32); size <= 2^31. */
static inline uint32_t scale(uint32_t x, uint32_t size)
{
    return (uint32_t)((uint64_t)x * size >> 32);
}

/* The same of size < 2^16, in 32 bits. */
static inline uint32_t scale_few(uint32_t x, uint32_t size)
{
    return ((x >> 16) * size + ((x & UINT16_MAX) * size >> 16)) >> 16;
}

static inline uint32_t add(uint32_t a, uint32_t b, uint32_t size)
{
    const uint32_t sum = a + b;
    return sum >= size ? sum - size : sum;
}

/* A pass of the network: each half is moved by the other, in turn. */
static uint64_t pass(const hbp__permutation *p, uint64_t at)
{
    const uint32_t low = (uint32_t)p->key, high = (uint32_t)(p->key >> 32);
    uint32_t row = (uint32_t)(at / p->columns), column = (uint32_t)(at % p->columns);
    for (uint32_t i = 0; i < ROUNDS; i += 2) {
        column = add(column, scale(mix_half(low, i, row), p->columns), p->columns);
        row = add(row, scale(mix_half(high, i, column), p->rows), p->rows);
    }
    return (uint64_t)row * p->columns + column;
}

uint64_t hbp__permutation_place(const hbp__permutation *p, uint64_t index)
{
    uint64_t at = index;
    if (!p->rows) {
        uint8_t table[HBP__PERMUTATION_FEW];
        shuffle_few(p->key, p->count, table);
        return table[index];
    }
    do
        at = pass(p, at);
    while (at >= p->count);
    return at;
}

/* Elements under way, column by column: loops that compilers make wide. */
typedef struct lanes {
    uint32_t low[LANES], high[LANES], rows[LANES], columns[LANES]; /* of each one's permutation */
    uint32_t row[LANES], column[LANES], at[LANES];                 /* at = row x columns + column */
} lanes;

/* A lane whose permutation is of few elements, or of very many, runs along and is done by itself; others have
 * less than 2^16 rows and columns. */
static inline int is_plain(uint64_t count)
{
    return count > HBP__PERMUTATION_FEW && count <= UINT32_MAX / 2;
}

static void load(lanes *l, uint64_t key, const uint64_t *count, const uint64_t *stream, int64_t number,
                 const uint64_t *index)
{
    for (int64_t i = 0; i < number; i++) {
        uint64_t mix = key ^ stream[i];
        const uint64_t own = hbp__splitmix64(&mix);
        l->low[i] = (uint32_t)own;
        l->high[i] = (uint32_t)(own >> 32);
    }
    for (int64_t i = 0; i < number; i++)
        l->rows[i] = is_plain(count[i]) ? root_of(count[i]) : 1;
    for (int64_t i = 0; i < number; i++) {
        const int plain = is_plain(count[i]);
        const uint32_t at = plain ? (uint32_t)index[i] : 0;
        l->columns[i] = plain ? columns_of(count[i], l->rows[i]) : 1;
        l->row[i] = at / l->columns[i];
        l->column[i] = at - l->row[i] * l->columns[i];
    }
}

/* A pass of the first `number` lanes, a multiple of LANE_MULTIPLE. */
static inline void run_lanes(lanes *l, int number)
{
    for (uint32_t round = 0; round < ROUNDS; round += 2) {
        for (int i = 0; i < number; i++)
            l->column[i] = add(l->column[i], scale_few(mix_half(l->low[i], round, l->row[i]), l->columns[i]),
                               l->columns[i]);
        for (int i = 0; i < number; i++)
            l->row[i] =
                add(l->row[i], scale_few(mix_half(l->high[i], round, l->column[i]), l->rows[i]), l->rows[i]);
    }
    for (int i = 0; i < number; i++)
        l->at[i] = l->row[i] * l->columns[i] + l->column[i];
}

HBP__WIDE static void run_wide(lanes *l, int number)
{
    run_lanes(l, number);
}

static void run(lanes *l, int number)
{
    if (hbp__has_wide())
        run_wide(l, number);
    else
        run_lanes(l, number);
}

static inline int lanes_for(int64_t number)
{
    return (int)((number + LANE_MULTIPLE - 1) / LANE_MULTIPLE * LANE_MULTIPLE);
}

static void place_lanes(lanes *l, uint64_t key, const uint64_t *count, const uint64_t *stream, int64_t number,
                        uint64_t *place)
{
    const int all = lanes_for(number);
    load(l, key, count, stream, number, place);
    for (int64_t i = number; i < all; i++)
        l->low[i] = l->high[i] = l->row[i] = l->column[i] = 0, l->rows[i] = l->columns[i] = 1;
    run(l, all);
    for (int64_t i = 0; i < number; i++) {
        if (is_plain(count[i]) && l->at[i] < count[i]) {
            place[i] = l->at[i];
        } else {
            const hbp__permutation p = hbp__permutation_make(count[i], key, stream[i]);
            place[i] = hbp__permutation_place(&p, place[i]);
        }
    }
}

void hbp__permutation_places(uint64_t key, const uint64_t *count, const uint64_t *stream, int64_t number,
                             uint64_t *place)
{
    lanes l;
    for (int64_t i = 0; i < number; i += LANES)
        place_lanes(&l, key, count + i, stream + i, number - i < LANES ? number - i : LANES, place + i);
}

/* Walks on from the places that lie outside; `lane` [number] says which lanes are there, and is changed. */
static void walk_on(const hbp__permutation *p, lanes *l, uint16_t *lane, int64_t number, uint32_t *place)
{
    while (number) {
        const int all = lanes_for(number);
        int64_t left = 0;
        for (int64_t i = 0; i < all; i++) {
            const uint32_t at = i < number ? place[lane[i]] : 0;
            l->row[i] = at / p->columns;
            l->column[i] = at % p->columns;
        }
        run(l, all);
        for (int64_t i = 0; i < number; i++) {
            place[lane[i]] = l->at[i];
            lane[left] = lane[i];
            left += l->at[i] >= p->count;
        }
        number = left;
    }
}

/* The places of [first, first + number), number <= LANES, of a permutation that is_plain. */
static void place_range(const hbp__permutation *p, lanes *l, uint32_t first, int64_t number, uint32_t *place)
{
    const int all = lanes_for(number);
    uint16_t lane[LANES];
    int64_t left = 0;
    uint32_t row = first / p->columns, column = first % p->columns;
    for (int i = 0; i < all; i++) {
        l->row[i] = row;
        l->column[i] = column++;
        if (column == p->columns) {
            column = 0;
            row = row + 1 < p->rows ? row + 1 : 0; /* past the last element none is looked at */
        }
    }
    run(l, all);
    for (int64_t i = 0; i < number; i++) {
        place[i] = l->at[i];
        lane[left] = (uint16_t)i;
        left += l->at[i] >= p->count;
    }
    walk_on(p, l, lane, left, place);
}

void hbp__permutation_range(const hbp__permutation *p, uint32_t first, int64_t number, uint32_t *place)
{
    if (!p->rows) {
        uint8_t table[HBP__PERMUTATION_FEW];
        shuffle_few(p->key, p->count, table);
        for (int64_t i = 0; i < number; i++)
            place[i] = table[first + i];
    } else if (!is_plain(p->count)) {
        for (int64_t i = 0; i < number; i++)
            place[i] = (uint32_t)hbp__permutation_place(p, first + (uint64_t)i);
    } else {
        lanes l;
        const int all = lanes_for(hbp__min_i64(number, LANES));
        for (int i = 0; i < all; i++) {
            l.low[i] = (uint32_t)p->key;
            l.high[i] = (uint32_t)(p->key >> 32);
            l.rows[i] = p->rows;
            l.columns[i] = p->columns;
        }
        for (int64_t done = 0; done < number; done += LANES)
            place_range(p, &l, first + (uint32_t)done, hbp__min_i64(LANES, number - done), place + done);
    }
}
