/* What slices hold: weights that one slice alone runs are its own; those that several run are gathered into
 * bundles, so that layers of one tower that always run together are one thing to look at. */
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "tasks/place/place_board.h"

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

static const int32_t *operators_of(const hbp__board *board, int32_t s)
{
    const hbp__meta_graph *meta = board->problem->meta;
    return &meta->operators[meta->meta_op[board->slice[s].meta_op].first + board->slice[s].first];
}

/* What the board keeps. */
static hbp_status take_weights(hbp__board *board, const hbp_task_schedule *previous, uint64_t parameters,
                               uint64_t entries)
{
    hbp_context *context = board->context;
    uint64_t count = (uint64_t)board->count;
    board->own_bytes = hbp__take_zero(context, count, sizeof *board->own_bytes);
    board->own_gradient = hbp__take_zero(context, count, sizeof *board->own_gradient);
    board->own_span = hbp__take_zero(context, count, sizeof *board->own_span);
    board->share_first = hbp__take_zero(context, count + 2, sizeof *board->share_first);
    board->reuse_first = hbp__take_zero(context, count + 1, sizeof *board->reuse_first);
    board->bundle = hbp__take(context, parameters, sizeof *board->bundle);
    board->user = hbp__take(context, entries, sizeof *board->user);
    board->share = hbp__take(context, entries, sizeof *board->share);
    if (previous) {
        uint64_t words = (uint64_t)board->words;
        board->reuse = hbp__take(context, parameters, sizeof *board->reuse);
        board->group_set =
            hbp__take_zero(context, (uint64_t)previous->groups, words * sizeof *board->group_set);
    }
    return hbp__scratch_check(context, "the weights of slices");
}

/* Counting sort of the slices of every set of weights; a slice that runs one twice takes the larger states.
 */
static hbp_status gather_entries(weighing *w, uint64_t parameters, uint64_t entries)
{
    hbp__board *board = w->board;
    hbp_context *context = board->context;
    w->first = hbp__take_zero(context, parameters + 2, sizeof *w->first);
    w->entry = hbp__take(context, entries, sizeof *w->entry);
    w->next = hbp__take(context, parameters, sizeof *w->next);
    w->owner = hbp__take(context, parameters, sizeof *w->owner);
    w->kept_bytes = hbp__take(context, parameters, sizeof *w->kept_bytes);
    w->latest = hbp__take(context, (uint64_t)board->count, sizeof *w->latest);
    HBP__TRY(hbp__scratch_check(context, "the weights of slices"));
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
static int64_t distinct_entries(weighing *w, int32_t p)
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
    hbp_context *context = w->board->context;
    sizes *z = hbp__take(context, (uint64_t)w->graph->parameters.count, sizeof *z);
    HBP__TRY(hbp__scratch_check(context, "the weights of slices"));
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

static void divide_weights(weighing *w, const sizes *z)
{
    hbp__board *board = w->board;
    for (int32_t p = 0; p < w->graph->parameters.count; p++) {
        int64_t count = distinct_entries(w, p);
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
            board->share[first[board->user[u].slice + 1]++] = (hbp__slice_bundle){k, board->user[u].bytes};
}

/* Group of the schedule before that held weights p of this graph; -1 for none. */
static void match_groups(const weighing *w, const hbp_task_schedule *previous, int32_t *group)
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

static void add_reuse(hbp__board *board, int64_t begin, int32_t group, int64_t bytes)
{
    for (int64_t i = begin; i < board->reuses; i++)
        if (board->reuse[i].group == group) {
            board->reuse[i].bytes = hbp__add_saturating(board->reuse[i].bytes, bytes);
            return;
        }
    board->reuse[board->reuses++] = (hbp__reuse){group, bytes};
}

/* Sorted by owner: slices, then bundles. `first` and `sorted`: counting sort. */
static void list_reuses(weighing *w, const int32_t *group, int64_t *first, int32_t *sorted)
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
        int64_t begin = board->reuses;
        for (int64_t i = first[o]; i < first[o + 1]; i++)
            add_reuse(board, begin, group[sorted[i]], w->kept_bytes[sorted[i]]);
        for (int64_t i = begin; i < board->reuses; i++)
            board->reuse[i].bytes /= HBP__REUSE_STEPS;
        if (o < board->count) {
            board->reuse_first[o + 1] = board->reuses;
        } else {
            board->bundle[o - board->count].reuse_first = begin;
            board->bundle[o - board->count].reuse_end = board->reuses;
        }
    }
}

static hbp_status read_previous(weighing *w, const hbp_task_schedule *previous)
{
    hbp__board *board = w->board;
    hbp_context *context = board->context;
    uint64_t parameters = (uint64_t)w->graph->parameters.count;
    uint64_t owners = (uint64_t)board->count + (uint64_t)board->bundles;
    int32_t *group = hbp__take(context, parameters, sizeof *group);
    int64_t *first = hbp__take_zero(context, owners + 2, sizeof *first);
    int32_t *sorted = hbp__take(context, parameters, sizeof *sorted);
    HBP__TRY(hbp__scratch_check(context, "the weights of slices"));
    for (int64_t g = 0; g < previous->groups; g++)
        for (int64_t i = previous->group_offsets[g]; i < previous->group_offsets[g + 1]; i++)
            if (previous->group_ranks[i] >= 0 && previous->group_ranks[i] < board->gpus)
                hbp__flip_rank(board->group_set + g * board->words, previous->group_ranks[i]);
    match_groups(w, previous, group);
    list_reuses(w, group, first, sorted);
    return HBP_OK;
}

hbp_status hbp__board_weigh(hbp__board *board, const hbp_task_schedule *previous)
{
    weighing w = {.board = board, .graph = board->problem->graph};
    uint64_t parameters = (uint64_t)w.graph->parameters.count, entries = 0;
    for (int32_t s = 0; s < board->count; s++)
        entries += (uint64_t)board->slice[s].count;
    HBP__TRY(take_weights(board, previous, parameters, entries));
    int64_t mark = hbp__scratch_mark(board->context);
    sizes *z;
    HBP__TRY(gather_entries(&w, parameters, entries));
    HBP__TRY(read_sizes(&w, &z));
    divide_weights(&w, z);
    if (previous)
        HBP__TRY(read_previous(&w, previous));
    hbp__scratch_release(board->context, mark);
    return HBP_OK;
}
