/* Open packs in a treap (Aragon and Seidel 1989), equal ones as one state: O(log packs) for every run of
 * items that is placed. */
#include "solve/packing/packer.h"

#include <string.h>

#include "base/rng.h"

#define NONE (-1)

void hbp__packer_open(hbp_context *context, hbp__pack_rule rule, hbp__room room, hbp__packer *packer)
{
    memset(packer, 0, sizeof *packer);
    packer->context = context;
    packer->rule = rule;
    packer->room = room;
    packer->root = NONE;
}

void hbp__packer_close(hbp__packer *packer)
{
    hbp__delete(&packer->context->memory, packer->state);
    hbp__delete(&packer->context->memory, packer->link);
    packer->state = NULL;
    packer->link = NULL;
}

/* --- the treap -------------------------------------------------------------------------------------------
 */

static void update_most(hbp__pack_state *state, int32_t at)
{
    int64_t most = state[at].room;
    if (state[at].left != NONE && state[state[at].left].most_room > most)
        most = state[state[at].left].most_room;
    if (state[at].right != NONE && state[state[at].right].most_room > most)
        most = state[state[at].right].most_room;
    state[at].most_room = most;
}

/* Splits the subtree at `at` into keys below `key` and the rest. */
static void split_treap(hbp__pack_state *state, int32_t at, uint64_t key, int32_t *below, int32_t *rest)
{
    if (at == NONE) {
        *below = *rest = NONE;
    } else if (state[at].key < key) {
        split_treap(state, state[at].right, key, &state[at].right, rest);
        *below = at;
        update_most(state, at);
    } else {
        split_treap(state, state[at].left, key, below, &state[at].left);
        *rest = at;
        update_most(state, at);
    }
}

static int32_t merge_treaps(hbp__pack_state *state, int32_t a, int32_t b)
{
    if (a == NONE || b == NONE)
        return a == NONE ? b : a;
    if (state[a].priority > state[b].priority) {
        state[a].right = merge_treaps(state, state[a].right, b);
        update_most(state, a);
        return a;
    }
    state[b].left = merge_treaps(state, a, state[b].left);
    update_most(state, b);
    return b;
}

/* Puts a state into the treap, unless no item can ever go there. */
static void insert_state(hbp__packer *packer, int32_t id)
{
    hbp__pack_state *s = &packer->state[id];
    if (!s->room || !s->weight)
        return;
    s->key = packer->rule == HBP__FIRST_FIT ? (uint64_t)s->first : (uint64_t)s->room << 32 | (uint32_t)id;
    s->left = s->right = NONE;
    s->most_room = s->room;
    int32_t below, rest;
    split_treap(packer->state, packer->root, s->key, &below, &rest);
    packer->root = merge_treaps(packer->state, merge_treaps(packer->state, below, id), rest);
}

static void take_state(hbp__packer *packer, int32_t id)
{
    uint64_t key = packer->state[id].key;
    int32_t below, middle, rest;
    split_treap(packer->state, packer->root, key, &below, &rest);
    split_treap(packer->state, rest, key + 1, &middle, &rest);
    packer->root = merge_treaps(packer->state, below, rest);
}

/* The state of the least key >= `key` with room for `size`. */
static int32_t first_from(const hbp__pack_state *state, int32_t at, uint64_t key, int64_t size)
{
    if (at == NONE || state[at].most_room < size)
        return NONE;
    if (state[at].key < key)
        return first_from(state, state[at].right, key, size);
    int32_t found = first_from(state, state[at].left, key, size);
    if (found != NONE)
        return found;
    return state[at].room >= size ? at : first_from(state, state[at].right, key, size);
}

/* The state of the greatest key below `key`. */
static int32_t last_below(const hbp__pack_state *state, int32_t at, uint64_t key)
{
    int32_t found = NONE;
    while (at != NONE) {
        if (state[at].key < key) {
            found = at;
            at = state[at].right;
        } else {
            at = state[at].left;
        }
    }
    return found;
}

/* Where the next item goes; NONE when it fits nowhere. Only items heavier than 1 ever look past the first
 * state. */
static int32_t find_state(const hbp__packer *packer, int64_t size, int64_t weight)
{
    const hbp__pack_state *state = packer->state;
    int32_t id;
    if (packer->rule == HBP__WORST_FIT) {
        for (id = last_below(state, packer->root, UINT64_MAX); id != NONE && state[id].room >= size;
             id = last_below(state, packer->root, state[id].key))
            if (state[id].weight >= weight)
                return id;
        return NONE;
    }
    uint64_t from = packer->rule == HBP__BEST_FIT ? (uint64_t)size << 32 : 0;
    for (id = first_from(state, packer->root, from, size); id != NONE && state[id].weight < weight;
         id = first_from(state, packer->root, state[id].key + 1, size))
        ;
    return id;
}

/* --- packs -----------------------------------------------------------------------------------------------
 */

static int32_t add_state(hbp__packer *packer)
{
    if (packer->states == packer->state_room) {
        uint64_t room = (uint64_t)packer->state_room * 2 + 256;
        hbp__pack_state *state = room > INT32_MAX ? NULL
                                                  : hbp__renew(&packer->context->memory, packer->state, room,
                                                               sizeof *packer->state);
        if (!state)
            return NONE;
        packer->state = state;
        packer->state_room = (int64_t)room;
    }
    uint64_t seed = (uint64_t)packer->states;
    packer->state[packer->states].priority = hbp__splitmix64(&seed);
    return (int32_t)packer->states++;
}

static int32_t add_link(hbp__packer *packer, int32_t before, hbp__run run)
{
    if (packer->links == packer->link_room) {
        uint64_t room = (uint64_t)packer->link_room * 2 + 1024;
        hbp__pack_link *link =
            room > INT32_MAX ? NULL
                             : hbp__renew(&packer->context->memory, packer->link, room, sizeof *packer->link);
        if (!link)
            return NONE;
        packer->link = link;
        packer->link_room = (int64_t)room;
    }
    packer->link[packer->links] = (hbp__pack_link){before, run};
    return (int32_t)packer->links++;
}

/* Gives the first `times` packs of state `id`, which is out of the treap, `each` items of the class and puts
 * them into the treap. The other packs, if any, become state *rest, which is left out of it. */
static int give_items(hbp__packer *packer, int32_t id, int64_t times, int64_t each,
                      const hbp__classes *classes, int64_t class_index, int32_t *rest)
{
    *rest = NONE;
    if (times < packer->state[id].times) {
        int32_t other = add_state(packer);
        if (other == NONE)
            return 0;
        uint64_t priority = packer->state[other].priority;
        packer->state[other] = packer->state[id];
        packer->state[other].priority = priority;
        packer->state[other].first += times;
        packer->state[other].times -= times;
        packer->state[id].times = times;
        *rest = other;
    }
    hbp__pack_state *s = &packer->state[id];
    hbp__run run = {(int32_t)class_index, (int32_t)each};
    int32_t held = add_link(packer, s->held, run);
    if (held == NONE)
        return 0;
    s->held = held;
    s->room -= each * classes->size[class_index];
    s->weight -= each * hbp__class_weight(classes, class_index);
    insert_state(packer, id);
    return 1;
}

/* The most items of the class that one pack of state `id` takes. */
static int64_t count_fitting(const hbp__packer *packer, int32_t id, int64_t size, int64_t weight)
{
    int64_t by_size = packer->state[id].room / size, by_weight = packer->state[id].weight / weight;
    return by_size < by_weight ? by_size : by_weight;
}

/* Packs `number` items into the packs of state `id`, equal and first in line, and returns how many went
 * there; 0 when memory is short. Under best and first fit a pack stays first in line until it takes no more,
 * under worst fit the packs take turns. */
static int64_t place_run(hbp__packer *packer, int32_t id, const hbp__classes *classes, int64_t class_index,
                         int64_t number)
{
    int64_t size = classes->size[class_index], weight = hbp__class_weight(classes, class_index);
    int64_t each = packer->rule == HBP__WORST_FIT ? 1 : count_fitting(packer, id, size, weight);
    int64_t times = packer->state[id].times;
    int64_t full = number / each < times ? number / each : times;
    int64_t odd = full < times ? number % each : 0;
    int32_t rest = id;
    take_state(packer, id);
    if (full && !give_items(packer, id, full, each, classes, class_index, &rest))
        return 0;
    if (odd) {
        int32_t part = rest;
        if (!give_items(packer, part, 1, odd, classes, class_index, &rest))
            return 0;
    }
    if (rest != NONE)
        insert_state(packer, rest);
    return full * each + odd;
}

/* Opens `times` empty packs outside the treap. */
static int32_t open_packs(hbp__packer *packer, int64_t times)
{
    int32_t id = add_state(packer);
    if (id == NONE)
        return NONE;
    hbp__pack_state *s = &packer->state[id];
    s->room = packer->room.capacity;
    s->weight = packer->room.max_weight;
    s->times = times;
    s->first = packer->opened;
    s->held = NONE;
    packer->opened += times;
    return id;
}

hbp_status hbp__packer_place(hbp__packer *packer, const hbp__classes *classes, int64_t class_index,
                             int64_t number, int64_t *left)
{
    int64_t size = classes->size[class_index], weight = hbp__class_weight(classes, class_index);
    while (number > 0) {
        int32_t id = find_state(packer, size, weight);
        if (id == NONE)
            break;
        int64_t placed = place_run(packer, id, classes, class_index, number);
        if (!placed)
            return hbp__fail_memory(packer->context, "open packs");
        number -= placed;
    }
    if (left) {
        *left = number;
        return HBP_OK;
    }
    /* Nothing open takes another one, so each new pack is the only place for the next item until it is full.
     */
    while (number > 0) {
        int32_t rest, id = open_packs(packer, 1);
        if (id == NONE)
            return hbp__fail_memory(packer->context, "open packs");
        int64_t each = count_fitting(packer, id, size, weight);
        int64_t times = number >= each ? number / each : 1;
        each = number < each ? number : each;
        packer->opened += times - 1;
        packer->state[id].times = times;
        if (!give_items(packer, id, times, each, classes, class_index, &rest))
            return hbp__fail_memory(packer->context, "open packs");
        number -= times * each;
    }
    return HBP_OK;
}

hbp_status hbp__packer_take(hbp__packer *packer, const hbp__classes *classes, int64_t times,
                            const hbp__run *run, int64_t runs)
{
    int32_t id = open_packs(packer, times);
    if (id == NONE)
        return hbp__fail_memory(packer->context, "open packs");
    for (int64_t k = 0; k < runs; k++) {
        int32_t held = add_link(packer, packer->state[id].held, run[k]);
        if (held == NONE)
            return hbp__fail_memory(packer->context, "open packs");
        hbp__pack_state *s = &packer->state[id];
        s->held = held;
        s->room -= run[k].number * classes->size[run[k].class_index];
        s->weight -= run[k].number * hbp__class_weight(classes, run[k].class_index);
    }
    insert_state(packer, id);
    return HBP_OK;
}

hbp_status hbp__packer_take_all(hbp__packer *packer, const hbp__classes *classes,
                                const hbp__patterns *patterns)
{
    for (int64_t p = 0; p < patterns->count; p++)
        HBP__TRY(hbp__packer_take(packer, classes, patterns->times[p], patterns->run + patterns->offsets[p],
                                  patterns->offsets[p + 1] - patterns->offsets[p]));
    return HBP_OK;
}

hbp_status hbp__packer_write(hbp__packer *packer, hbp__patterns *patterns)
{
    hbp__run *run = NULL;
    int64_t room = 0;
    hbp_status status = HBP_OK;
    for (int64_t s = 0; s < packer->states && status == HBP_OK; s++) {
        int64_t runs = 0;
        for (int32_t at = packer->state[s].held; at != NONE; at = packer->link[at].before)
            runs++;
        if (runs > room) {
            hbp__run *more = hbp__renew(&packer->context->memory, run, (uint64_t)runs * 2, sizeof *run);
            if (!more) {
                status = hbp__fail_memory(packer->context, "packing patterns");
                break;
            }
            run = more;
            room = runs * 2;
        }
        int64_t k = runs;
        for (int32_t at = packer->state[s].held; at != NONE; at = packer->link[at].before)
            run[--k] = packer->link[at].run;
        if (runs)
            status = hbp__patterns_add(packer->context, patterns, packer->state[s].times, run, runs);
    }
    hbp__delete(&packer->context->memory, run);
    return status;
}
