/* What slices hold: weights that one slice alone runs are its own; those that several run are gathered into
 * bundles, so that layers of one tower that always run together are one thing to look at. */
#include <string.h>

#include "base/checked.h"
#include "tasks/place_board.h"

/* States of a set of weights that a slice runs. */
typedef struct entry {
    int32_t slice;
    int64_t bytes;
} entry;

typedef struct weighing {
    hbp__board *board;
    const hbp_graph *graph;
    int64_t *first; /* [parameters + 1] entries of each set of weights, by slice */
    entry *entry;
    int32_t *next;       /* [bundles] next bundle whose first user is the same slice; -1: none */
    int32_t *latest;     /* [slices] latest such bundle; -1: none */
    int32_t *owner;      /* [parameters] a slice; count + a bundle; -1: nobody runs them */
    int64_t *kept_bytes; /* [parameters] states on a rank */
    int64_t users;
} weighing;

static void close(weighing *w)
{
    const hbp__memory *memory = &w->board->memory;
    hbp__delete(memory, w->first);
    hbp__delete(memory, w->entry);
    hbp__delete(memory, w->next);
    hbp__delete(memory, w->latest);
    hbp__delete(memory, w->owner);
    hbp__delete(memory, w->kept_bytes);
}

static hbp_status short_of_memory(weighing *w)
{
    return hbp__fail_memory(w->board->context, "the weights of slices");
}

static const int32_t *operators_of(const hbp__board *board, int32_t s)
{
    const hbp__meta_graph *meta = board->problem->meta;
    return &meta->operators[meta->meta_op[board->slice[s].meta_op].first + board->slice[s].first];
}

/* Counting sort of the slices of every set of weights; a slice that runs one twice takes the larger states.
 */
static hbp_status gather(weighing *w)
{
    hbp__board *board = w->board;
    const hbp__memory *memory = &board->memory;
    uint64_t parameters = (uint64_t)w->graph->parameters.count, entries = 0, count = (uint64_t)board->count;
    for (int32_t s = 0; s < board->count; s++)
        entries += (uint64_t)board->slice[s].count;
    w->first = hbp__new_zero(memory, parameters + 2, sizeof *w->first);
    w->entry = hbp__new(memory, entries, sizeof *w->entry);
    w->next = hbp__new(memory, parameters, sizeof *w->next);
    w->owner = hbp__new(memory, parameters, sizeof *w->owner);
    w->kept_bytes = hbp__new(memory, parameters, sizeof *w->kept_bytes);
    w->latest = hbp__new(memory, count, sizeof *w->latest);
    board->own_bytes = hbp__new_zero(memory, count, sizeof *board->own_bytes);
    board->own_gradient = hbp__new_zero(memory, count, sizeof *board->own_gradient);
    board->own_span = hbp__new_zero(memory, count, sizeof *board->own_span);
    board->share_first = hbp__new_zero(memory, count + 2, sizeof *board->share_first);
    board->keep_first = hbp__new_zero(memory, count + 1, sizeof *board->keep_first);
    board->bundle = hbp__new(memory, parameters, sizeof *board->bundle);
    board->user = hbp__new(memory, entries, sizeof *board->user);
    board->share = hbp__new(memory, entries, sizeof *board->share);
    if (!w->first || !w->entry || !w->next || !w->owner || !w->kept_bytes || !w->latest ||
        !board->own_bytes || !board->own_gradient || !board->own_span || !board->share_first ||
        !board->keep_first || !board->bundle || !board->user || !board->share)
        return short_of_memory(w);
    for (int32_t s = 0; s < board->count; s++) {
        w->latest[s] = -1;
        for (int32_t i = 0; i < board->slice[s].count; i++)
            w->first[w->graph->operators[operators_of(board, s)[i]].parameters + 2]++;
    }
    for (uint64_t p = 0; p < parameters; p++)
        w->first[p + 2] += w->first[p + 1];
    for (int32_t s = 0; s < board->count; s++)
        for (int32_t i = 0; i < board->slice[s].count; i++) {
            const hbp__operator *o = &w->graph->operators[operators_of(board, s)[i]];
            int64_t bytes = hbp__operator_states(o, board->slice[s].gpus);
            w->entry[w->first[o->parameters + 1]++] = (entry){s, bytes};
            board->own_bytes[s] =
                hbp__add_saturating(board->own_bytes[s], hbp__operator_activation(o, board->slice[s].gpus));
            board->own_span[s] = hbp__max_i64(board->own_span[s], o->output_bytes);
        }
    return HBP_OK;
}

/* Entries of weights p without repetition, in place; returns how many. */
static int64_t distinct(weighing *w, int32_t p)
{
    entry *e = w->entry + w->first[p];
    int64_t count = 0;
    for (int64_t i = 0, all = w->first[p + 1] - w->first[p]; i < all; i++)
        if (count && e[count - 1].slice == e[i].slice)
            e[count - 1].bytes = hbp__max_i64(e[count - 1].bytes, e[i].bytes);
        else
            e[count++] = e[i];
    return count;
}

/* Bytes on a rank add up in a bundle when a slice on fewer GPUs never takes less, whichever of its weights:
 * so it is when each set's operators have the same sizes. */
static int32_t bundle_for(weighing *w, const entry *e, int64_t count, int32_t is_uniform)
{
    hbp__board *board = w->board;
    for (int32_t k = is_uniform ? w->latest[e[0].slice] : -1; k >= 0; k = w->next[k]) {
        const hbp__bundle *bundle = &board->bundle[k];
        const hbp__user *user = &board->user[bundle->first];
        int64_t same = 0;
        if (bundle->is_uniform && bundle->end - bundle->first == count)
            while (same < count && user[same].slice == e[same].slice)
                same++;
        if (same == count)
            return k;
    }
    int32_t k = board->bundles++;
    board->bundle[k] = (hbp__bundle){.first = w->users, .end = w->users + count, .is_uniform = is_uniform};
    for (int64_t i = 0; i < count; i++)
        board->user[w->users++] = (hbp__user){e[i].slice, 0};
    w->next[k] = w->latest[e[0].slice];
    w->latest[e[0].slice] = k;
    return k;
}

typedef struct sizes {
    int64_t state_bytes;
    int64_t sharded_bytes;
    int64_t gradient_bytes;
    int32_t is_uniform;
} sizes;

/* Of each set of weights. */
static hbp_status read_sizes(weighing *w, sizes **out)
{
    sizes *z = hbp__new(&w->board->memory, (uint64_t)w->graph->parameters.count, sizeof *z);
    if (!z)
        return short_of_memory(w);
    for (int32_t p = 0; p < w->graph->parameters.count; p++)
        z[p] = (sizes){-1, -1, 0, 1};
    for (int32_t i = 0; i < w->graph->operator_count; i++) {
        const hbp__operator *o = &w->graph->operators[i];
        sizes *mine = &z[o->parameters];
        if (mine->state_bytes >= 0 &&
            (mine->state_bytes != o->state_bytes || mine->sharded_bytes != o->sharded_bytes))
            mine->is_uniform = 0;
        mine->state_bytes = o->state_bytes;
        mine->sharded_bytes = o->sharded_bytes;
        mine->gradient_bytes = hbp__max_i64(mine->gradient_bytes, o->gradient_bytes);
    }
    *out = z;
    return HBP_OK;
}

static void divide(weighing *w, const sizes *z)
{
    hbp__board *board = w->board;
    for (int32_t p = 0; p < w->graph->parameters.count; p++) {
        int64_t count = distinct(w, p);
        const entry *e = w->entry + w->first[p];
        w->owner[p] = -1;
        w->kept_bytes[p] = 0;
        for (int64_t i = 0; i < count; i++)
            w->kept_bytes[p] = hbp__max_i64(w->kept_bytes[p], e[i].bytes);
        if (count == 1) {
            int32_t s = w->owner[p] = e[0].slice;
            board->own_bytes[s] = hbp__add_saturating(board->own_bytes[s], e[0].bytes);
            board->own_gradient[s] = hbp__add_saturating(board->own_gradient[s], z[p].gradient_bytes);
        } else if (count > 1) {
            int32_t k = bundle_for(w, e, count, z[p].is_uniform);
            hbp__bundle *bundle = &board->bundle[k];
            bundle->gradient = hbp__add_saturating(bundle->gradient, z[p].gradient_bytes);
            for (int64_t i = 0; i < count; i++) {
                int64_t *bytes = &board->user[bundle->first + i].bytes;
                *bytes = hbp__add_saturating(*bytes, e[i].bytes);
            }
            w->owner[p] = board->count + k;
        }
    }
    /* Bundles of each slice. */
    int64_t *first = board->share_first;
    for (int64_t u = 0; u < w->users; u++)
        first[board->user[u].slice + 2]++;
    for (int32_t s = 0; s < board->count; s++)
        first[s + 2] += first[s + 1];
    for (int32_t k = 0; k < board->bundles; k++)
        for (int64_t u = board->bundle[k].first; u < board->bundle[k].end; u++)
            board->share[first[board->user[u].slice + 1]++] = (hbp__share){k, board->user[u].bytes};
}

/* Group of the schedule before that held weights p of this graph; -1 for none. */
static void match(const weighing *w, const hbp_task_schedule *previous, int32_t *group)
{
    for (int32_t p = 0; p < w->graph->parameters.count; p++)
        group[p] = -1;
    for (int64_t q = 0; q < previous->parameters; q++) {
        const char *name = previous->parameters_names[q];
        int32_t p = name ? hbp__names_find(&w->graph->parameters, name) : -1;
        if (p >= 0 && previous->parameter_groups[q] >= 0 && previous->parameter_groups[q] < previous->groups)
            group[p] = previous->parameter_groups[q];
    }
}

static void add_keep(hbp__board *board, int64_t begin, int32_t group, int64_t bytes)
{
    for (int64_t i = begin; i < board->keeps; i++)
        if (board->keep[i].group == group) {
            board->keep[i].bytes = hbp__add_saturating(board->keep[i].bytes, bytes);
            return;
        }
    board->keep[board->keeps++] = (hbp__keep){group, bytes};
}

/* Sorted by owner: slices, then bundles. `first` and `sorted`: counting sort. */
static void list_keeps(weighing *w, const int32_t *group, int64_t *first, int32_t *sorted)
{
    hbp__board *board = w->board;
    int32_t owners = board->count + board->bundles;
    for (int32_t p = 0; p < w->graph->parameters.count; p++)
        if (w->owner[p] >= 0 && group[p] >= 0)
            first[w->owner[p] + 2]++;
    for (int32_t o = 0; o < owners; o++)
        first[o + 2] += first[o + 1];
    for (int32_t p = 0; p < w->graph->parameters.count; p++)
        if (w->owner[p] >= 0 && group[p] >= 0)
            sorted[first[w->owner[p] + 1]++] = p;
    for (int32_t o = 0; o < owners; o++) {
        int64_t begin = board->keeps;
        for (int64_t i = first[o]; i < first[o + 1]; i++)
            add_keep(board, begin, group[sorted[i]], w->kept_bytes[sorted[i]]);
        for (int64_t i = begin; i < board->keeps; i++)
            board->keep[i].bytes /= HBP__KEEP_STEPS;
        if (o < board->count) {
            board->keep_first[o + 1] = board->keeps;
        } else {
            board->bundle[o - board->count].keep_first = begin;
            board->bundle[o - board->count].keep_end = board->keeps;
        }
    }
}

static hbp_status remember(weighing *w, const hbp_task_schedule *previous)
{
    hbp__board *board = w->board;
    const hbp__memory *memory = &board->memory;
    uint64_t parameters = (uint64_t)w->graph->parameters.count;
    uint64_t owners = (uint64_t)board->count + (uint64_t)board->bundles;
    board->keep = hbp__new(memory, parameters, sizeof *board->keep);
    board->group_set =
        hbp__new_zero(memory, (uint64_t)previous->groups, (uint64_t)board->words * sizeof *board->group_set);
    int32_t *group = hbp__new(memory, parameters, sizeof *group);
    int64_t *first = hbp__new_zero(memory, owners + 2, sizeof *first);
    int32_t *sorted = hbp__new(memory, parameters, sizeof *sorted);
    hbp_status status = HBP_OK;
    if (!board->keep || !board->group_set || !group || !first || !sorted) {
        status = short_of_memory(w);
    } else {
        for (int64_t g = 0; g < previous->groups; g++)
            for (int64_t i = previous->group_offsets[g]; i < previous->group_offsets[g + 1]; i++)
                if (previous->group_ranks[i] >= 0 && previous->group_ranks[i] < board->gpus)
                    hbp__flip_rank(board->group_set + g * board->words, previous->group_ranks[i]);
        match(w, previous, group);
        list_keeps(w, group, first, sorted);
    }
    hbp__delete(memory, group);
    hbp__delete(memory, first);
    hbp__delete(memory, sorted);
    return status;
}

hbp_status hbp__board_weigh(hbp__board *board, const hbp_task_schedule *previous)
{
    weighing w = {.board = board, .graph = board->problem->graph};
    sizes *z = NULL;
    hbp_status status = gather(&w);
    if (status >= 0)
        status = read_sizes(&w, &z);
    if (status >= 0) {
        divide(&w, z);
        status = previous ? remember(&w, previous) : HBP_OK;
    }
    hbp__delete(&board->memory, z);
    close(&w);
    return status;
}
