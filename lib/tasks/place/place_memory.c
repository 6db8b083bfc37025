/* Depth-first search for a placement within the limit of memory: candidates by fewest bytes, ranks that hold
 * the same once. Exponential, and cut off after a number of slices placed. */
#include "tasks/place/place_methods.h"

#include <string.h>

#include "base/checked.h"
#include "base/rng.h"
#include "base/scratch.h"

/* Nodes between two looks at whether to go on. */
#define TICK_NODES 256

typedef struct tracking {
    hbp__board *board;
    int64_t *begin;    /* [count + 1] where the candidates of order[i] lie */
    int32_t *rank;     /* candidates of the slices placed, by preference */
    int32_t *count;    /* [count] how many */
    int32_t *pick;     /* [sum of gpus] chosen: indices of candidates, rising */
    int64_t *pick_at;  /* [count] where those of order[i] lie */
    uint64_t *history; /* [gpus] of the slices placed on a rank: equal where they are the same */
    int64_t *added;    /* [gpus] */
    int32_t *chosen;   /* [gpus] */
    uint64_t *used;    /* [words] */
    int64_t rest;      /* bytes that slices not placed yet take at least */
    int64_t *least;    /* [count] bytes that slice takes, whichever ranks it gets */
    int64_t room;      /* of rank */
    int64_t nodes;
    hbp__tight_slice tight;
    int32_t deepest;
} tracking;

static hbp_status take_tracking(hbp__board *board, int64_t nodes, tracking *t)
{
    hbp_context *context = board->context;
    uint64_t count = (uint64_t)board->count, gpus = (uint64_t)board->gpus, picks = 0;
    for (int32_t s = 0; s < board->count; s++)
        picks += (uint64_t)board->slice[s].gpus;
    *t = (tracking){.board = board, .nodes = nodes, .tight = {.slice = -1}, .deepest = -1};
    t->begin = hbp__take_zero(context, count + 1, sizeof *t->begin);
    t->count = hbp__take(context, count, sizeof *t->count);
    t->pick = hbp__take(context, picks, sizeof *t->pick);
    t->pick_at = hbp__take(context, count, sizeof *t->pick_at);
    t->history = hbp__take_zero(context, gpus, sizeof *t->history);
    t->added = hbp__take(context, gpus, sizeof *t->added);
    t->chosen = hbp__take(context, gpus, sizeof *t->chosen);
    t->used = hbp__take(context, (uint64_t)board->words, sizeof *t->used);
    t->least = hbp__take(context, count, sizeof *t->least);
    HBP__TRY(hbp__scratch_check(context, "the placement of slices"));
    int64_t at = 0;
    for (int32_t i = 0; i < board->count; i++) {
        int32_t s = (int32_t)board->order[i];
        t->pick_at[i] = at;
        at += board->slice[s].gpus;
        t->least[s] = hbp__mul_saturating(board->own_bytes[s], board->slice[s].gpus);
        t->rest = hbp__add_saturating(t->rest, t->least[s]);
    }
    return HBP_OK;
}

static int is_before(const tracking *t, int32_t a, int32_t b)
{
    if (t->added[a] != t->added[b])
        return t->added[a] < t->added[b];
    if (t->board->rank_bytes[a] != t->board->rank_bytes[b])
        return t->board->rank_bytes[a] < t->board->rank_bytes[b];
    if (t->history[a] != t->history[b])
        return t->history[a] < t->history[b];
    return a < b;
}

static void sift_candidates(const tracking *t, int32_t *rank, int32_t root, int32_t count)
{
    for (int32_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
        child += child + 1 < count && is_before(t, rank[child], rank[child + 1]);
        if (!is_before(t, rank[root], rank[child]))
            return;
        int32_t top = rank[root];
        rank[root] = rank[child];
        rank[child] = top;
        root = child;
    }
}

/* Heap sort: any order of compares gives the same, for no two ranks are equal. */
static void sort_candidates(const tracking *t, int32_t *rank, int32_t count)
{
    for (int32_t i = count / 2; i-- > 0;)
        sift_candidates(t, rank, i, count);
    for (int32_t end = count; end-- > 1;) {
        int32_t top = rank[0];
        rank[0] = rank[end];
        rank[end] = top;
        sift_candidates(t, rank, 0, end);
    }
}

/* Lists the candidates of order[i]. Returns whether there are enough. */
static hbp_status list_candidates(tracking *t, int32_t i, int *enough)
{
    hbp__board *board = t->board;
    int32_t s = (int32_t)board->order[i], fitting = 0;
    int64_t limit = board->problem->limit_bytes;
    int64_t needs = INT64_MAX, left = INT64_MIN, room = 0;
    if (t->begin[i] + board->gpus > t->room) {
        int64_t wanted = 2 * t->room + board->gpus;
        int32_t *rank = hbp__renew(&board->context->memory, t->rank, (uint64_t)wanted, sizeof *rank);
        if (!rank)
            return hbp__fail_memory(board->context, "the placement of slices");
        t->rank = rank;
        t->room = wanted;
    }
    hbp__board_used(board, s, t->used);
    for (int32_t r = 0; r < board->gpus; r++) {
        room = hbp__add_saturating(room, hbp__max_i64(limit - board->rank_bytes[r], 0));
        if (hbp__has_rank(t->used, r))
            continue;
        t->added[r] = hbp__board_added(board, s, r);
        needs = hbp__min_i64(needs, t->added[r]);
        left = hbp__max_i64(left, limit - board->rank_bytes[r]);
        if (t->added[r] <= limit - board->rank_bytes[r])
            t->rank[t->begin[i] + fitting++] = r;
    }
    sort_candidates(t, t->rank + t->begin[i], fitting);
    t->count[i] = fitting;
    t->begin[i + 1] = t->begin[i] + fitting;
    if (fitting < board->slice[s].gpus && i > t->deepest) {
        t->deepest = i;
        t->tight = (hbp__tight_slice){s, fitting, needs, left};
    }
    *enough = fitting >= board->slice[s].gpus && t->rest <= room;
    return HBP_OK;
}

/* Word that stands for slice s in a rank's history. */
static uint64_t mark_of(int32_t s)
{
    uint64_t state = (uint64_t)s + 1;
    return hbp__splitmix64(&state);
}

static void put_slice(tracking *t, int32_t i)
{
    hbp__board *board = t->board;
    int32_t s = (int32_t)board->order[i];
    for (int32_t j = 0; j < board->slice[s].gpus; j++)
        t->chosen[j] = t->rank[t->begin[i] + t->pick[t->pick_at[i] + j]];
    for (int32_t j = 0; j < board->slice[s].gpus; j++)
        board->rank_bytes[t->chosen[j]] += hbp__board_added(board, s, t->chosen[j]);
    hbp__board_put(board, s, t->chosen);
    for (int32_t j = 0; j < board->slice[s].gpus; j++)
        t->history[t->chosen[j]] ^= mark_of(s);
    t->rest -= t->least[s];
}

static void take_slice(tracking *t, int32_t i)
{
    hbp__board *board = t->board;
    int32_t s = (int32_t)board->order[i];
    for (int32_t j = 0; j < board->slice[s].gpus; j++) {
        int32_t r = t->rank[t->begin[i] + t->pick[t->pick_at[i] + j]];
        hbp__flip_rank(hbp__board_set(board, s), r);
        hbp__board_domains(board, s)[r / board->domain_gpus]--;
        t->history[r] ^= mark_of(s);
    }
    for (int32_t j = 0; j < board->slice[s].gpus; j++) {
        int32_t r = t->rank[t->begin[i] + t->pick[t->pick_at[i] + j]];
        board->rank_bytes[r] -= hbp__board_added(board, s, r);
    }
    t->rest += t->least[s];
}

/* The next set of candidates of order[i], in lexicographic order of indices, that differs in what its ranks
 * hold: of equal candidates, which lie side by side, the first are taken. Returns 0 after the last. */
static int next_choice(tracking *t, int32_t i)
{
    const hbp__board *board = t->board;
    int32_t gpus = board->slice[board->order[i]].gpus, count = t->count[i];
    const int32_t *rank = t->rank + t->begin[i];
    int32_t *pick = t->pick + t->pick_at[i];
    for (int32_t j = gpus; j-- > 0;) {
        int32_t k = pick[j] + 1;
        while (k < count && t->history[rank[k]] == t->history[rank[k - 1]] &&
               board->rank_bytes[rank[k]] == board->rank_bytes[rank[k - 1]])
            k++;
        if (k + gpus - j > count)
            continue;
        for (; j < gpus; j++)
            pick[j] = k++;
        return 1;
    }
    return 0;
}

static hbp_status search_choices(tracking *t, int32_t *found)
{
    hbp__board *board = t->board;
    int32_t i = 0;
    for (int64_t node = 0; node < t->nodes; node++) {
        if (node % TICK_NODES == 0)
            HBP__TRY(hbp__tick(board->context, "fit slices into memory", node, t->nodes));
        if (i == board->count) {
            *found = 1;
            return HBP_OK;
        }
        int enough = 0;
        HBP__TRY(list_candidates(t, i, &enough));
        if (enough) {
            for (int32_t j = 0; j < board->slice[board->order[i]].gpus; j++)
                t->pick[t->pick_at[i] + j] = j;
            put_slice(t, i++);
            continue;
        }
        int more = 0;
        while (!more && i > 0) {
            take_slice(t, --i);
            more = next_choice(t, i);
        }
        if (!more)
            return HBP_OK;
        put_slice(t, i++);
    }
    return HBP_OK;
}

hbp_status hbp__board_backtrack(hbp__board *board, int64_t nodes, int32_t *found, hbp__tight_slice *tight)
{
    tracking t;
    int64_t mark = hbp__scratch_mark(board->context);
    *found = 0;
    hbp__board_clear(board);
    HBP__TRY(take_tracking(board, nodes, &t));
    hbp_status status = search_choices(&t, found);
    hbp__delete(&board->context->memory, t.rank);
    HBP__TRY(status);
    *tight = t.tight;
    if (!*found)
        hbp__board_clear(board);
    hbp__board_measure(board);
    hbp__scratch_release(board->context, mark);
    return HBP_OK;
}
