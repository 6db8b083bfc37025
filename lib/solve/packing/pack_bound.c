/* Lower bounds on packs: L2 (Martello and Toth 1990), dual feasible functions (Fekete and Schepers 2001;
 * Carlier, Clautiaux and Moukrim 2007), and the cap on weight. O(classes), for at most 64 parameters each. */
#include "solve/packing/tight_pack.h"

#include "base/checked.h"

#define PARAMETERS 64

/* sum += number * value; 0 on overflow. */
static int add_product(int64_t *sum, int64_t number, int64_t value)
{
    int64_t product;
    return hbp__mul_i64(number, value, &product) && hbp__add_i64(*sum, product, sum);
}

/* Total size and weight over a pack's. */
static int64_t continuous_bound(const hbp__classes *classes, hbp__room room)
{
    int64_t size = 0, weight = 0, bound = 0;
    for (int64_t c = 0; c < classes->count; c++) {
        if (!add_product(&size, classes->number[c], classes->size[c]) ||
            !add_product(&weight, classes->number[c], hbp__class_weight(classes, c)))
            return 0;
    }
    bound = hbp__ceil_div(size, room.capacity);
    return hbp__max_i64(bound, hbp__ceil_div(weight, room.max_weight));
}

/* L2 for every threshold K at once: items above capacity - K stand alone (J1), other items above half stand
 * in different packs (J2), and items of at least K, at most half (J3) need what room J2 leaves, or packs of
 * their own. K rises through the sizes up to half; J1 grows as J2 shrinks. Sums were checked by `continuous`.
 */
static int64_t martello_toth_bound(const hbp__classes *classes, int64_t capacity)
{
    int64_t half = hbp__classes_from(classes, capacity / 2 + 1);
    int64_t above = classes->count; /* first class of J1 */
    int64_t alone = 0, pairs = 0, pair_size = 0, small_size = 0;
    for (int64_t c = half; c < classes->count; c++) {
        pairs += classes->number[c];
        pair_size += classes->number[c] * classes->size[c];
    }
    int64_t bound = pairs;
    for (int64_t c = 0; c < half; c++)
        small_size += classes->number[c] * classes->size[c];
    for (int64_t c = 0; c < half; c++) {
        while (above > half && classes->size[above - 1] > capacity - classes->size[c]) {
            above--;
            alone += classes->number[above];
            pairs -= classes->number[above];
            pair_size -= classes->number[above] * classes->size[above];
        }
        int64_t over = small_size - (pairs * capacity - pair_size);
        int64_t here = alone + pairs + (over > 0 ? hbp__ceil_div(over, capacity) : 0);
        bound = hbp__max_i64(bound, here);
        small_size -= classes->number[c] * classes->size[c];
    }
    return bound;
}

/* u^(k): x stays when (k + 1) x / capacity is whole, else becomes floor((k + 1) x / capacity) / k. In units
 * of 1 / (capacity k). */
static int64_t fekete_schepers_bound(const hbp__classes *classes, int64_t capacity, int64_t k)
{
    int64_t sum = 0, whole = 0; /* the largest multiple of the capacity up to (k + 1) x, which rises */
    for (int64_t c = 0; c < classes->count; c++) {
        int64_t x = classes->size[c], times = (k + 1) * x;
        if (times - whole >= capacity)
            whole = times / capacity * capacity;
        if (!add_product(&sum, classes->number[c], times == whole ? x * k : whole))
            return 0;
    }
    return hbp__ceil_div(sum, capacity * k);
}

/* f_CCM for lambda in [1, capacity / 2]; a full pack is worth 2 floor(capacity / lambda). */
static int64_t carlier_bound(const hbp__classes *classes, int64_t capacity, int64_t lambda)
{
    int64_t sum = 0, full = capacity / lambda;
    int64_t of_small = 0, of_rest = full; /* floor(x / lambda), which rises; floor((capacity - x) / lambda) */
    for (int64_t c = 0; c < classes->count; c++) {
        int64_t x = classes->size[c], rest = capacity - x, value;
        if (2 * x > capacity) {
            if (rest < of_rest * lambda)
                of_rest = rest / lambda;
            value = 2 * (full - of_rest);
        } else if (2 * x == capacity) {
            value = full;
        } else {
            if (x - of_small * lambda >= lambda)
                of_small = x / lambda;
            value = 2 * of_small;
        }
        if (!add_product(&sum, classes->number[c], value))
            return 0;
    }
    return hbp__ceil_div(sum, 2 * full);
}

/* Items of at least `least` by weight: one above half a pack stands in a pack of its own, whose room takes
 * (capacity - x) / least others at most; what those packs cannot hold needs packs that hold max_weight, or
 * capacity / least items, at most. Sums were checked by `continuous`. */
static int64_t crowded_bound(const hbp__classes *classes, hbp__room room, int64_t heaviest, int64_t least)
{
    int64_t beside = 0, weight = 0, packs = 0;
    for (int64_t c = hbp__classes_from(classes, least); c < classes->count; c++) {
        int64_t x = classes->size[c], w = hbp__class_weight(classes, c), number = classes->number[c];
        weight += number * w;
        if (2 * x <= room.capacity)
            continue;
        packs += number;
        beside += number * hbp__min_i64(room.max_weight, w + (room.capacity - x) / least * heaviest);
    }
    int64_t most = hbp__min_i64(room.max_weight, room.capacity / least * heaviest);
    return packs + (weight > beside ? hbp__ceil_div(weight - beside, most) : 0);
}

int64_t hbp__pack_bound(const hbp__classes *classes, hbp__room room)
{
    if (!classes->count)
        return 0;
    int64_t bound = continuous_bound(classes, room);
    if (!bound)
        return 0;
    if (bound < INT64_MAX / 4 / room.capacity) /* its sums stay below twice the total size */
        bound = hbp__max_i64(bound, martello_toth_bound(classes, room.capacity));
    int64_t heaviest = 1, items = 0, sum;
    for (int64_t c = 0; c < classes->count; c++) {
        heaviest = hbp__max_i64(heaviest, hbp__class_weight(classes, c));
        items += classes->number[c];
    }
    int capped = room.max_weight < INT32_MAX && hbp__mul_i64(items, room.max_weight, &sum);
    for (int64_t k = 1; k <= PARAMETERS; k++)
        bound = hbp__max_i64(bound, fekete_schepers_bound(classes, room.capacity, k));
    /* Lambda only matters where it divides a size or what a large item leaves: try sizes spread over the
     * classes. */
    for (int64_t i = 0; i < PARAMETERS; i++) {
        int64_t c = i * classes->count / PARAMETERS;
        if (classes->count < PARAMETERS)
            c = i;
        if (c >= classes->count)
            break;
        int64_t x = classes->size[c];
        if (capped)
            bound = hbp__max_i64(bound, crowded_bound(classes, room, heaviest, x));
        int64_t lambda = 2 * x > room.capacity ? room.capacity - x + 1 : x;
        if (lambda >= 1 && 2 * lambda <= room.capacity)
            bound = hbp__max_i64(bound, carlier_bound(classes, room.capacity, lambda));
    }
    return bound;
}
