#include "solve/multiway_parts.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"

/* So many light parts are looked at for the heaviest one, more where none of them helps, as long as they are
 * lighter than what has been found, and so many exchanges made for each item. All exchanges together look at
 * so many items, and move so many parts in their order. */
enum { PARTNERS = 24, MORE_PARTNERS = 1024, EXCHANGES = 8, WORK = 1 << 22, WORK_PER_ITEM = 2 };

hbp_status hbp__parts_open(hbp_context *context, const hbp__multiway *problem, uint32_t *part,
                           hbp__parts *parts)
{
    uint64_t count = (uint64_t)problem->parts;
    *parts = (hbp__parts){.context = context, .problem = problem, .part = part};
    parts->weight = hbp__take(context, count, sizeof *parts->weight);
    parts->size = hbp__take(context, count, sizeof *parts->size);
    parts->samples = hbp__take(context, count, sizeof *parts->samples);
    parts->order = hbp__take(context, count, sizeof *parts->order);
    parts->rank = hbp__take(context, count, sizeof *parts->rank);
    return hbp__scratch_check(context, "the parts");
}

void hbp__parts_clear(hbp__parts *parts)
{
    const hbp__multiway *p = parts->problem;
    parts->left = 0;
    for (int64_t i = 0; i < p->items; i++)
        parts->left += hbp__multiway_samples(p, (uint32_t)i);
    parts->lack = hbp__mul_saturating(p->least_samples, p->parts);
    parts->open = p->parts;
    for (int64_t k = 0; k < p->parts; k++) {
        parts->weight[k] = parts->size[k] = parts->samples[k] = 0;
        parts->order[k] = parts->rank[k] = (uint32_t)k;
    }
}

static int64_t key_of(const hbp__parts *parts, uint32_t part)
{
    const int64_t *const keys[] = {parts->weight, parts->size, parts->samples};
    return keys[parts->key][part];
}

int hbp__parts_is_before(const hbp__parts *parts, uint32_t a, uint32_t b)
{
    int64_t x = key_of(parts, a), y = key_of(parts, b);
    if (x == y) {
        x = parts->samples[a];
        y = parts->samples[b];
    }
    return x < y || (x == y && a < b);
}

static void place(hbp__parts *parts, uint32_t part, int64_t at)
{
    parts->order[at] = part;
    parts->rank[part] = (uint32_t)at;
}

/* Moves the part at a place of the heap, which may have got heavier, down to its own. */
static void sift_down(hbp__parts *parts, int64_t at)
{
    uint32_t part = parts->order[at];
    for (int64_t child; (child = 2 * at + 1) < parts->open; at = child) {
        if (child + 1 < parts->open &&
            hbp__parts_is_before(parts, parts->order[child + 1], parts->order[child]))
            child++;
        if (hbp__parts_is_before(parts, part, parts->order[child]))
            break;
        place(parts, parts->order[child], at);
    }
    place(parts, part, at);
}

/* Where a part belongs among order[first..end - 1], which are in order. */
static int64_t find_place(const hbp__parts *parts, uint32_t part, int64_t first, int64_t end)
{
    while (first < end) {
        int64_t middle = first + (end - first) / 2;
        if (hbp__parts_is_before(parts, parts->order[middle], part))
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* The order again, once the last part got lighter and the one at `at` heavier. */
static void settle(hbp__parts *parts, int64_t at)
{
    uint32_t *order = parts->order;
    int64_t last = parts->problem->parts - 1;
    uint32_t lighter = order[last], heavier = order[at];
    int64_t to = find_place(parts, heavier, at + 1, last) - 1;
    memmove(order + at, order + at + 1, (size_t)(to - at) * sizeof *order);
    order[to] = heavier;
    to = find_place(parts, lighter, 0, last);
    memmove(order + to + 1, order + to, (size_t)(last - to) * sizeof *order);
    order[to] = lighter;
}

/* Adds an item to a part's sums, or with sign -1 takes it out. */
static void add(hbp__parts *parts, uint32_t item, uint32_t part, int64_t sign)
{
    const hbp__multiway *p = parts->problem;
    parts->lack -= hbp__parts_lack(parts, part);
    parts->weight[part] += sign * p->weight[item];
    parts->size[part] += sign * hbp__multiway_size(p, item);
    parts->samples[part] += sign * hbp__multiway_samples(p, item);
    parts->lack += hbp__parts_lack(parts, part);
}

void hbp__parts_put(hbp__parts *parts, uint32_t item, uint32_t part)
{
    parts->part[item] = part;
    const hbp__multiway *p = parts->problem;
    int64_t at = parts->rank[part];
    parts->left -= hbp__multiway_samples(p, item);
    add(parts, item, part, 1);
    if (parts->samples[part] >= p->most_samples || parts->size[part] >= p->capacity) {
        uint32_t last = parts->order[--parts->open];
        place(parts, part, parts->open);
        if (last == part)
            return;
        place(parts, last, at);
        for (int64_t up; at > 0 && hbp__parts_is_before(parts, last, parts->order[up = (at - 1) / 2]);
             at = up) {
            place(parts, parts->order[up], at);
            place(parts, last, up);
        }
    }
    sift_down(parts, at);
}

hbp_status hbp__parts_load(hbp__parts *parts)
{
    hbp__parts_clear(parts);
    for (int64_t i = 0; i < parts->problem->items; i++) {
        HBP__TRY(hbp__tick_row(parts->context, "parts", i, parts->problem->items));
        add(parts, (uint32_t)i, parts->part[i], 1);
    }
    parts->left = 0;
    return hbp__parts_order_by_weight(parts);
}

hbp_status hbp__parts_order_by_weight(hbp__parts *parts)
{
    const hbp__multiway *p = parts->problem;
    parts->key = HBP__BY_WEIGHT;
    for (int64_t k = 0; k < p->parts; k++)
        parts->order[k] = (uint32_t)k;
    if (!hbp__sort_by_i64(&parts->context->memory, parts->samples, parts->order, p->parts) ||
        !hbp__sort_by_i64(&parts->context->memory, parts->weight, parts->order, p->parts))
        return hbp__fail_memory(parts->context, "the order of parts");
    return HBP_OK;
}

/* The items of every part, ascending in weight, with room for more that move in. */
typedef struct members {
    uint32_t **item; /* [parts] */
    int64_t *count;  /* [parts] */
    int64_t *room;   /* [parts] */
} members;

/* Where `weight` stands, or would, in a part's list: the first item that weighs as much or more. */
static int64_t find_weight(const hbp__parts *parts, const members *m, uint32_t part, int64_t weight)
{
    int64_t low = 0, high = m->count[part];
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (parts->problem->weight[m->item[part][middle]] < weight)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(const hbp__parts *parts, members *m, uint32_t part, uint32_t item)
{
    int64_t at = find_weight(parts, m, part, parts->problem->weight[item]);
    memmove(m->item[part] + at + 1, m->item[part] + at, (size_t)(m->count[part] - at) * sizeof(uint32_t));
    m->item[part][at] = item;
    m->count[part]++;
}

static void take_out(members *m, uint32_t part, int64_t at)
{
    m->count[part]--;
    memmove(m->item[part] + at, m->item[part] + at + 1, (size_t)(m->count[part] - at) * sizeof(uint32_t));
}

/* An exchange: item `give` of the heaviest part for item `get` of the other, -1 for none. */
typedef struct exchange {
    int64_t with;      /* the other's place in the order */
    int64_t give, get; /* places in the lists */
    int64_t heavier;   /* of the two parts, after it */
} exchange;

/* Whether both parts keep to capacity and samples. */
static int is_allowed(const hbp__parts *parts, uint32_t from, uint32_t to, uint32_t give, int64_t get)
{
    const hbp__multiway *p = parts->problem;
    int64_t size = hbp__multiway_size(p, give), samples = hbp__multiway_samples(p, give);
    if (get >= 0) {
        size -= hbp__multiway_size(p, (uint32_t)get);
        samples -= hbp__multiway_samples(p, (uint32_t)get);
    }
    return parts->size[to] + size <= p->capacity && parts->size[from] - size <= p->capacity &&
           parts->samples[to] + samples <= p->most_samples &&
           parts->samples[to] + samples >= p->least_samples &&
           parts->samples[from] - samples <= p->most_samples &&
           parts->samples[from] - samples >= p->least_samples;
}

/* Takes the exchange if it is allowed and better than the best so far. */
static void consider(const hbp__parts *parts, const members *m, uint32_t from, int64_t with, int64_t give,
                     int64_t get, exchange *best)
{
    uint32_t to = parts->order[with];
    const int64_t *weight = parts->problem->weight;
    uint32_t item = m->item[from][give];
    int64_t other = get < 0 ? -1 : (int64_t)m->item[to][get],
            moved = weight[item] - (other < 0 ? 0 : weight[other]);
    int64_t heavier = hbp__max_i64(parts->weight[from] - moved, parts->weight[to] + moved);
    if (heavier < best->heavier && is_allowed(parts, from, to, item, other))
        *best = (exchange){with, give, get, heavier};
}

/* The best exchange between the heaviest part and another: what is moved should be half of their difference.
 */
static void look_at(const hbp__parts *parts, const members *m, uint32_t from, int64_t with, exchange *best)
{
    uint32_t to = parts->order[with];
    const int64_t *weight = parts->problem->weight;
    int64_t half = (parts->weight[from] - parts->weight[to]) / 2, last = -1;
    for (int64_t i = 0; i < m->count[from]; i++) {
        int64_t own = weight[m->item[from][i]];
        if (own == last && !parts->problem->size && !parts->problem->samples)
            continue;
        last = own;
        consider(parts, m, from, with, i, -1, best);
        int64_t at = find_weight(parts, m, to, own - half);
        for (int64_t k = at - 2; k <= at + 1; k++)
            if (k >= 0 && k < m->count[to])
                consider(parts, m, from, with, i, k, best);
    }
}

static hbp_status make_exchange(hbp__parts *parts, members *m, uint32_t from, const exchange *x)
{
    uint32_t with = parts->order[x->with], give = m->item[from][x->give],
             get = x->get < 0 ? 0 : m->item[with][x->get];
    if (m->count[with] + 1 > m->room[with]) {
        int64_t room = 2 * m->room[with] + 1;
        uint32_t *more = hbp__take(parts->context, (uint64_t)room, sizeof *more);
        HBP__TRY(hbp__scratch_check(parts->context, "the items of a part"));
        memcpy(more, m->item[with], (size_t)m->count[with] * sizeof *more);
        m->item[with] = more;
        m->room[with] = room;
    }
    take_out(m, from, x->give);
    add(parts, give, from, -1);
    if (x->get >= 0) {
        take_out(m, with, x->get);
        add(parts, get, with, -1);
        insert(parts, m, from, get);
        add(parts, get, from, 1);
        parts->part[get] = from;
    }
    insert(parts, m, with, give);
    add(parts, give, with, 1);
    parts->part[give] = with;
    settle(parts, x->with);
    return HBP_OK;
}

static hbp_status list_members(const hbp__parts *parts, members *m)
{
    const hbp__multiway *p = parts->problem;
    hbp_context *context = parts->context;
    uint64_t count = (uint64_t)p->parts;
    m->item = hbp__take(context, count, sizeof *m->item);
    m->count = hbp__take_zero(context, count, sizeof *m->count);
    m->room = hbp__take_zero(context, count, sizeof *m->room);
    uint32_t *order = hbp__take(context, (uint64_t)p->items, sizeof *order);
    HBP__TRY(hbp__scratch_check(context, "the items of parts"));
    for (int64_t i = 0; i < p->items; i++)
        m->room[parts->part[i]]++;
    for (int64_t k = 0; k < p->parts; k++)
        m->item[k] = hbp__take(context, (uint64_t)++m->room[k], sizeof **m->item);
    HBP__TRY(hbp__scratch_check(context, "the items of parts"));
    for (int64_t i = 0; i < p->items; i++)
        order[i] = (uint32_t)i;
    if (!hbp__sort_by_i64(&context->memory, p->weight, order, p->items))
        return hbp__fail_memory(context, "the items of parts");
    for (int64_t i = 0; i < p->items; i++) {
        uint32_t part = parts->part[order[i]];
        m->item[part][m->count[part]++] = order[i];
    }
    return HBP_OK;
}

hbp_status hbp__parts_improve(hbp__parts *parts, int64_t bound)
{
    const hbp__multiway *p = parts->problem;
    int64_t most = hbp__mul_saturating(EXCHANGES, p->items);
    int64_t work = hbp__add_saturating(WORK, hbp__mul_saturating(WORK_PER_ITEM, p->items));
    members m;
    if (p->parts < 2 || parts->weight[parts->order[p->parts - 1]] <= bound)
        return HBP_OK;
    HBP__TRY(list_members(parts, &m));
    for (int64_t i = 0; i < most; i++) {
        uint32_t from = parts->order[p->parts - 1];
        exchange best = {0, 0, 0, parts->weight[from]};
        HBP__TRY(hbp__tick_row(parts->context, "exchanges", i, most));
        if (parts->weight[from] <= bound || work < 0)
            break;
        for (int64_t k = 0; k < p->parts - 1 && k < MORE_PARTNERS; k++) {
            if (parts->weight[parts->order[k]] >= best.heavier || work < 0 ||
                (k >= PARTNERS && best.heavier < parts->weight[from]))
                break;
            work -= m.count[from];
            look_at(parts, &m, from, k, &best);
        }
        work -= p->parts / 16;
        if (best.heavier >= parts->weight[from])
            break;
        HBP__TRY(make_exchange(parts, &m, from, &best));
    }
    return HBP_OK;
}
