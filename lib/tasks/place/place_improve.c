/* Exchanges of ranks from the neighbourhood that pays most for its work to the one that pays least, then
 * perturbation and descent (iterated local search), both until their counted work is spent. */
#include "tasks/place/place_methods.h"

#include <string.h>

#include "base/rng.h"
#include "base/scratch.h"
#include "base/sort.h"

enum { STREAM_PLACE = 0x706c6163 };

/* Exchanges between two looks at whether to go on. */
#define TICK_TRIES 4096

/* Neighbourhoods, the one that pays most for its work first; each is searched when those before it have
 * nothing left. */
enum {
    LEVEL_SLICES = 0, /* one slice moves, with those in its way */
    LEVEL_REST = 1,   /* and all slices before or after it */
    LEVEL_ALL = 2,    /* other partners for ranks; whole domains */
    LEVELS = 3
};

typedef struct improving {
    hbp__board *board;
    int32_t *first; /* [gpus] the exchange at hand */
    int32_t *second;
    int32_t *some; /* [gpus] ranks of one of two slices only */
    int32_t *others;
    uint8_t *paired; /* [gpus] */
    uint64_t *key;   /* [flows] */
    uint32_t *order; /* [flows] */
    int64_t end;     /* work at which to stop */
    int64_t tries;
    int32_t level;
    int64_t users;
    int64_t *flow_tried;  /* [LEVELS x flows] exchanges kept when nothing was found for it; -1: never */
    int64_t *user_tried;  /* [LEVELS x users] */
    int64_t *slice_tried; /* [LEVELS x count] */
    int64_t *pair_tried;  /* [count] */
} improving;

/* A placement to come back to, with all that is known of it. */
typedef struct memo {
    uint64_t *set;      /* [count x words] */
    int32_t *in_domain; /* [count x domains] */
    int64_t *costs;     /* [flows + bundles + count + gpus] */
    int64_t changes;    /* exchanges kept when it was remembered */
    int64_t cost;
    int64_t over_bytes;
} memo;

static hbp_status take_improving(hbp__board *board, int64_t work, improving *v)
{
    hbp_context *context = board->context;
    uint64_t gpus = (uint64_t)board->gpus, flows = (uint64_t)board->flows;
    *v = (improving){.board = board, .end = board->work + work};
    v->first = hbp__take(context, gpus, sizeof *v->first);
    v->second = hbp__take(context, gpus, sizeof *v->second);
    v->some = hbp__take(context, gpus, sizeof *v->some);
    v->others = hbp__take(context, gpus, sizeof *v->others);
    v->paired = hbp__take(context, gpus, sizeof *v->paired);
    v->key = hbp__take(context, flows, sizeof *v->key);
    v->order = hbp__take(context, flows, sizeof *v->order);
    uint64_t count = (uint64_t)board->count;
    v->users = board->bundles ? board->bundle[board->bundles - 1].end : 0;
    uint64_t users = (uint64_t)v->users;
    v->flow_tried = hbp__take(context, LEVELS * flows, sizeof *v->flow_tried);
    v->user_tried = hbp__take(context, LEVELS * users, sizeof *v->user_tried);
    v->slice_tried = hbp__take(context, LEVELS * count, sizeof *v->slice_tried);
    v->pair_tried = hbp__take(context, count, sizeof *v->pair_tried);
    HBP__TRY(hbp__scratch_check(context, "the placement of slices"));
    memset(v->flow_tried, 0xff, (size_t)(LEVELS * flows) * sizeof *v->flow_tried);
    memset(v->user_tried, 0xff, (size_t)(LEVELS * users) * sizeof *v->user_tried);
    memset(v->slice_tried, 0xff, (size_t)(LEVELS * count) * sizeof *v->slice_tried);
    memset(v->pair_tried, 0xff, (size_t)count * sizeof *v->pair_tried);
    return HBP_OK;
}

/* Whether what was tried for slices s and t is worth another try: one of them has changed. */
static int is_stale(const improving *v, int64_t tried, int32_t s, int32_t t)
{
    return v->board->changed[s] > tried || v->board->changed[t] > tried;
}

/* Or nothing can be better. */
static int is_spent(const improving *v)
{
    const hbp__board *board = v->board;
    return board->work >= v->end || (board->cost <= board->least_cost && !board->over_bytes);
}

static int try_exchange(improving *v, int32_t at, int32_t pairs, int32_t s, int32_t reach)
{
    v->tries++;
    hbp__exchange x = {v->first + at, v->second + at, pairs};
    return !is_spent(v) && hbp__board_try(v->board, &x, s, reach);
}

static int try_reaches(improving *v, int32_t at, int32_t pairs, int32_t s)
{
    int32_t begin = v->level == LEVEL_REST ? HBP__REACH_ONE + 1 : HBP__REACH_ONE;
    int32_t end = v->level == LEVEL_SLICES ? HBP__REACH_ONE + 1 : HBP__REACHES;
    for (int32_t reach = begin; reach < end; reach++)
        if (try_exchange(v, at, pairs, s, reach))
            return 1;
    return 0;
}

/* Ranks in a and not in b, ascending. */
static int32_t list_apart(const hbp__board *board, const uint64_t *a, const uint64_t *b, int32_t *ranks)
{
    int32_t count = 0;
    for (int64_t w = 0; w < board->words; w++)
        for (uint64_t word = a[w] & ~b[w]; word; word &= word - 1)
            ranks[count++] = (int32_t)(w * 64 + hbp__lowest_bit(word));
    return count;
}

/* Pairs each rank of `some` with one of `others`, first those of one domain; returns how many of these. */
static int32_t pair_ranks(improving *v, int32_t somes, int32_t others, int32_t *pairs)
{
    int32_t domain_gpus = v->board->domain_gpus, count = 0;
    memset(v->paired, 0, (size_t)v->board->gpus);
    for (int32_t i = 0, j = 0; i < somes && j < others;) {
        int32_t a = v->some[i], b = v->others[j];
        if (a / domain_gpus == b / domain_gpus) {
            v->paired[a] = v->paired[b] = 1;
            v->first[count] = a;
            v->second[count++] = b;
        }
        i += a / domain_gpus <= b / domain_gpus;
        j += b / domain_gpus <= a / domain_gpus;
    }
    int32_t same = count;
    for (int32_t i = 0, j = 0; i < somes && j < others;) {
        if (v->paired[v->some[i]]) {
            i++;
        } else if (v->paired[v->others[j]]) {
            j++;
        } else {
            v->first[count] = v->some[i++];
            v->second[count++] = v->others[j++];
        }
    }
    *pairs = count;
    return same;
}

/* Brings the ranks of slices t and s together, by moving either. */
static int align_slices(improving *v, int32_t s, int32_t t)
{
    hbp__board *board = v->board;
    const uint64_t *mine = hbp__board_set(board, s), *theirs = hbp__board_set(board, t);
    int32_t somes = list_apart(board, mine, theirs, v->some);
    int32_t others = list_apart(board, theirs, mine, v->others), pairs;
    int32_t same = pair_ranks(v, somes, others, &pairs);
    board->work += 2 * board->words + pairs;
    if (!pairs)
        return 0;
    if (v->level < LEVEL_ALL) {
        if (try_reaches(v, 0, pairs, s) || try_reaches(v, 0, pairs, t))
            return 1;
        return same && same < pairs &&
               (try_reaches(v, 0, same, s) || try_reaches(v, 0, same, t) ||
                try_reaches(v, same, pairs - same, s) || try_reaches(v, same, pairs - same, t));
    }
    for (int32_t i = 0; pairs > 1 && i < pairs && i < HBP__PLACE_PAIRS; i++)
        if (try_reaches(v, i, 1, s) || try_reaches(v, i, 1, t))
            return 1;
    /* Other partners: a rank that only one of them has may be dearer to others than the next. */
    for (int32_t i = 0; i < somes && i < HBP__PLACE_PAIRS; i++)
        for (int32_t j = 0; j < others && j < HBP__PLACE_PAIRS; j++) {
            v->first[0] = v->some[i];
            v->second[0] = v->others[j];
            if (try_reaches(v, 0, 1, s) || try_reaches(v, 0, 1, t))
                return 1;
        }
    return 0;
}

/* Ranks of slice s in domain x against others' in domain y, as many as can be. */
static int shift_ranks(improving *v, int32_t s, int32_t x, int32_t y)
{
    hbp__board *board = v->board;
    const uint64_t *set = hbp__board_set(board, s);
    int32_t pairs = 0, last_x = (x + 1) * board->domain_gpus, last_y = (y + 1) * board->domain_gpus;
    int32_t r = x * board->domain_gpus, q = y * board->domain_gpus;
    last_x = last_x < board->gpus ? last_x : board->gpus;
    last_y = last_y < board->gpus ? last_y : board->gpus;
    for (;; r++, q++) {
        while (r < last_x && !hbp__has_rank(set, r))
            r++;
        while (q < last_y && hbp__has_rank(set, q))
            q++;
        if (r >= last_x || q >= last_y)
            break;
        v->first[pairs] = r;
        v->second[pairs++] = q;
    }
    if (!pairs)
        return 0;
    board->work += 2 * board->domain_gpus;
    return try_reaches(v, 0, pairs, s) || (pairs > 1 && try_reaches(v, 0, 1, s));
}

/* All ranks of domain x against all of y. */
static int swap_domains(improving *v, int32_t s, int32_t x, int32_t y)
{
    hbp__board *board = v->board;
    int32_t pairs = 0, width = board->domain_gpus;
    for (int32_t i = 0; i < width && x * width + i < board->gpus && y * width + i < board->gpus; i++) {
        v->first[pairs] = x * width + i;
        v->second[pairs++] = y * width + i;
    }
    return try_reaches(v, 0, pairs, s);
}

/* Moves slice s out of each of its domains into those of slice t, which it has a flow with, or shares weights
 * with, or its own. */
static int gather_slice(improving *v, int32_t s, int32_t t)
{
    hbp__board *board = v->board;
    const int32_t *mine = hbp__board_domains(board, s), *theirs = hbp__board_domains(board, t);
    board->work += board->domains;
    for (int32_t x = 0; x < board->domains; x++)
        for (int32_t y = 0; mine[x] && y < board->domains; y++)
            if (y != x && theirs[y])
                if ((v->level < LEVEL_ALL ? shift_ranks(v, s, x, y) : s != t && swap_domains(v, s, x, y)) ||
                    is_spent(v))
                    return 1;
    return 0;
}

static hbp_status tick_tries(improving *v, int64_t *ticked)
{
    if (v->tries - *ticked < TICK_TRIES)
        return HBP_OK;
    *ticked = v->tries;
    return hbp__tick(v->board->context, "exchange ranks", v->tries, 0);
}

/* Flows, the dearest first. */
static hbp_status pass_flows(improving *v, int64_t *ticked, int *better)
{
    hbp__board *board = v->board;
    int64_t *tried = v->flow_tried + v->level * board->flows;
    for (int64_t f = 0; f < board->flows; f++) {
        v->key[f] = ~(uint64_t)board->flow[f].cost;
        v->order[f] = (uint32_t)f;
    }
    if (!hbp__sort_by_u64(&board->context->memory, v->key, v->order, board->flows))
        return hbp__fail_memory(board->context, "the placement of slices");
    for (int64_t i = 0; i < board->flows && !is_spent(v); i++) {
        const hbp__board_flow *flow = &board->flow[v->order[i]];
        if (flow->cost <= 0 || !is_stale(v, tried[v->order[i]], flow->from, flow->to))
            continue;
        HBP__TRY(tick_tries(v, ticked));
        int found = align_slices(v, flow->to, flow->from);
        if (board->domains > 1)
            found |= gather_slice(v, flow->to, flow->from) || gather_slice(v, flow->from, flow->to);
        *better |= found;
        if (!found)
            tried[v->order[i]] = board->changes;
    }
    return HBP_OK;
}

/* Slices that lie in several domains, and those that run the same weights elsewhere. */
static hbp_status pass_weights(improving *v, int64_t *ticked, int *better)
{
    hbp__board *board = v->board;
    int64_t *slice_tried = v->slice_tried + (int64_t)v->level * board->count;
    int64_t *user_tried = v->user_tried + v->level * v->users;
    for (int32_t s = 0; s < board->count && board->domains > 1 && !is_spent(v); s++) {
        if (board->own_cost[s] <= 0 || !is_stale(v, slice_tried[s], s, s))
            continue;
        HBP__TRY(tick_tries(v, ticked));
        if (gather_slice(v, s, s))
            *better = 1;
        else
            slice_tried[s] = board->changes;
    }
    for (int32_t k = 0; k < board->bundles && !is_spent(v); k++)
        for (int64_t u = board->bundle[k].first + 1; u < board->bundle[k].end && !is_spent(v); u++) {
            int32_t s = board->user[u - 1].slice, t = board->user[u].slice;
            if (!board->counts_weights || !is_stale(v, user_tried[u], s, t))
                continue;
            HBP__TRY(tick_tries(v, ticked));
            if (align_slices(v, s, t) ||
                (board->domains > 1 && (gather_slice(v, s, t) || gather_slice(v, t, s))))
                *better = 1;
            else
                user_tried[u] = board->changes;
        }
    return HBP_OK;
}

/* Ranks that are too full against each other one. */
static hbp_status pass_bytes(improving *v, int64_t *ticked, int *better)
{
    hbp__board *board = v->board;
    int64_t limit = board->problem->limit_bytes;
    for (int32_t r = 0; r < board->gpus && board->over_bytes && !is_spent(v); r++)
        for (int32_t q = 0; q < board->gpus && board->rank_bytes[r] > limit && !is_spent(v); q++)
            for (int32_t s = 0; s < board->count && q != r && board->rank_bytes[q] < limit; s++) {
                HBP__TRY(tick_tries(v, ticked));
                v->first[0] = r;
                v->second[0] = q;
                if (hbp__has_rank(hbp__board_set(board, s), r) && try_reaches(v, 0, 1, s))
                    *better = 1;
            }
    return HBP_OK;
}

/* Every pair of ranks of a slice. */
static hbp_status try_pairs(improving *v, int32_t s, int64_t *ticked, int *better)
{
    hbp__board *board = v->board;
    const uint64_t *set = hbp__board_set(board, s);
    for (int32_t r = 0; r < board->gpus; r++)
        for (int32_t q = 0; q < board->gpus && hbp__has_rank(set, r); q++) {
            if (is_spent(v))
                return HBP_OK;
            if (hbp__has_rank(set, q))
                continue;
            HBP__TRY(tick_tries(v, ticked));
            v->first[0] = r;
            v->second[0] = q;
            *better |= try_reaches(v, 0, 1, s);
        }
    return HBP_OK;
}

static hbp_status pass_pairs(improving *v, int64_t *ticked, int *better)
{
    hbp__board *board = v->board;
    for (int32_t i = 0; i < board->count && !is_spent(v); i++) {
        int32_t s = (int32_t)board->order[i];
        int found = 0;
        if (!is_stale(v, v->pair_tried[s], s, s))
            continue;
        HBP__TRY(try_pairs(v, s, ticked, &found));
        *better |= found;
        if (!found)
            v->pair_tried[s] = board->changes;
    }
    return HBP_OK;
}

static hbp_status improve_levels(improving *v, int32_t levels, int64_t *ticked)
{
    for (v->level = 0; v->level < levels && !is_spent(v);) {
        int better = 0;
        HBP__TRY(pass_bytes(v, ticked, &better));
        HBP__TRY(pass_flows(v, ticked, &better));
        HBP__TRY(pass_weights(v, ticked, &better));
        if (!better && v->level == LEVEL_ALL)
            HBP__TRY(pass_pairs(v, ticked, &better));
        v->level = better ? 0 : v->level + 1;
    }
    return HBP_OK;
}

hbp_status hbp__board_improve(hbp__board *board, int64_t work)
{
    improving v;
    int64_t mark = hbp__scratch_mark(board->context), ticked = 0;
    HBP__TRY(take_improving(board, work, &v));
    HBP__TRY(improve_levels(&v, LEVELS, &ticked));
    hbp__scratch_release(board->context, mark);
    return HBP_OK;
}

static int32_t draw_rank(const hbp__board *board, hbp__rng *rng, const uint64_t *set)
{
    int32_t r = (int32_t)hbp__rng_below(rng, (uint64_t)board->gpus);
    while (!hbp__has_rank(set, r))
        r = (r + 1) % board->gpus;
    return r;
}

/* Exchanges that keep ranks or domains whole, of a slice drawn at random with a flow that costs. */
static void perturb_once(improving *v, hbp__rng *rng)
{
    hbp__board *board = v->board;
    for (int32_t i = 0; i < HBP__PLACE_KICKS; i++) {
        int32_t s = (int32_t)hbp__rng_below(rng, (uint64_t)board->count);
        int32_t r = draw_rank(board, rng, hbp__board_set(board, s));
        int32_t q = (int32_t)hbp__rng_below(rng, (uint64_t)board->gpus);
        int32_t reach = (int32_t)hbp__rng_below(rng, HBP__REACHES);
        v->first[0] = r;
        v->second[0] = q;
        if (q != r)
            hbp__board_force(board, &(hbp__exchange){v->first, v->second, 1}, s, reach);
    }
}

static hbp_status take_memo(const hbp__board *board, memo *m)
{
    hbp_context *context = board->context;
    uint64_t count = (uint64_t)board->count;
    uint64_t costs = (uint64_t)board->flows + (uint64_t)board->bundles + count + (uint64_t)board->gpus;
    *m = (memo){.changes = -1};
    m->set = hbp__take(context, count, (uint64_t)board->words * sizeof *m->set);
    m->in_domain = hbp__take(context, count, (uint64_t)board->domains * sizeof *m->in_domain);
    m->costs = hbp__take(context, costs, sizeof *m->costs);
    return hbp__scratch_check(context, "the placement of slices");
}

/* Copies slices that have changed since the memo was written, or all; from the board to the memo or back. */
static void copy_changed(hbp__board *board, memo *m, int back)
{
    size_t set_bytes = (size_t)board->words * sizeof *m->set;
    size_t domain_bytes = (size_t)board->domains * sizeof *m->in_domain;
    for (int32_t s = 0; s < board->count; s++) {
        if (board->changed[s] <= m->changes)
            continue;
        uint64_t *set = m->set + s * board->words;
        int32_t *in_domain = m->in_domain + (int64_t)s * board->domains;
        if (back) {
            memcpy(hbp__board_set(board, s), set, set_bytes);
            memcpy(hbp__board_domains(board, s), in_domain, domain_bytes);
        } else {
            memcpy(set, hbp__board_set(board, s), set_bytes);
            memcpy(in_domain, hbp__board_domains(board, s), domain_bytes);
        }
    }
    board->work += board->count + board->flows + board->bundles + board->gpus;
}

static void remember_placement(hbp__board *board, memo *m)
{
    int64_t *at = m->costs;
    copy_changed(board, m, 0);
    for (int64_t f = 0; f < board->flows; f++)
        *at++ = board->flow[f].cost;
    for (int32_t k = 0; k < board->bundles; k++)
        *at++ = board->bundle[k].cost;
    memcpy(at, board->own_cost, (size_t)board->count * sizeof *at);
    memcpy(at + board->count, board->rank_bytes, (size_t)board->gpus * sizeof *at);
    m->changes = board->changes;
    m->cost = board->cost;
    m->over_bytes = board->over_bytes;
}

static void restore_placement(hbp__board *board, memo *m)
{
    const int64_t *at = m->costs;
    copy_changed(board, m, 1);
    for (int64_t f = 0; f < board->flows; f++)
        board->flow[f].cost = *at++;
    for (int32_t k = 0; k < board->bundles; k++)
        board->bundle[k].cost = *at++;
    memcpy(board->own_cost, at, (size_t)board->count * sizeof *at);
    memcpy(board->rank_bytes, at + board->count, (size_t)board->gpus * sizeof *at);
    board->cost = m->cost;
    board->over_bytes = m->over_bytes;
    /* What was tried since was tried on other ranks. */
    board->changes++;
    for (int32_t s = 0; s < board->count; s++)
        if (board->changed[s] > m->changes)
            board->changed[s] = board->changes;
    m->changes = board->changes;
}

static int beats_memo(const hbp__board *board, const memo *m)
{
    return board->over_bytes < m->over_bytes || (board->over_bytes == m->over_bytes && board->cost < m->cost);
}

static hbp_status perturb_and_improve(improving *v, uint64_t seed, memo *best)
{
    hbp__board *board = v->board;
    hbp__rng rng = hbp__rng_make(seed, 0, STREAM_PLACE);
    int64_t ticked = 0;
    remember_placement(board, best);
    while (!is_spent(v)) {
        perturb_once(v, &rng);
        HBP__TRY(improve_levels(v, LEVEL_SLICES + 1, &ticked));
        if (beats_memo(board, best))
            remember_placement(board, best);
        else
            restore_placement(board, best);
    }
    return HBP_OK;
}

hbp_status hbp__board_perturb(hbp__board *board, uint64_t seed, int64_t work)
{
    if (board->gpus < 2 || !board->count)
        return HBP_OK;
    improving v;
    memo best;
    int64_t mark = hbp__scratch_mark(board->context);
    HBP__TRY(take_improving(board, work, &v));
    HBP__TRY(take_memo(board, &best));
    HBP__TRY(perturb_and_improve(&v, seed, &best));
    hbp__scratch_release(board->context, mark);
    return HBP_OK;
}
