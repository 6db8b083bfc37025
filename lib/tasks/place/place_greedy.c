/* Slices placed one after another on the free ranks that suit each best, domain by domain. O(slices x ranks
 * x log domain_gpus), and for bundles as much as for their users, NARROW_USERS at most. */
#include "tasks/place/place_methods.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"

#define TICK_SLICES 16

/* Bundles of more users, of which there are few, have what each rank holds of them written down: no look at
 * their users takes longer than that, and all of it no more memory than the slices' sets. */
#define NARROW_USERS 64

#define SORT_RUN 8

/* What the slices placed so far hold of a bundle of many users. */
typedef struct wide_bundle {
    int64_t *held;   /* [gpus] bytes */
    uint64_t *joint; /* [words] their ranks */
    int32_t ranks;   /* how many these are */
    int32_t raised;  /* ranks whose held bytes have risen since `least` was found */
    int64_t least;   /* no rank holds less */
} wide_bundle;

typedef struct greedy {
    hbp__board *board;
    int32_t how;
    uint32_t *order;  /* [count] */
    int64_t *key;     /* [count] */
    uint8_t *placed;  /* [count] */
    uint64_t *joint;  /* [words] */
    int64_t *busy;    /* [gpus] until when slices placed run there; backward: from when on */
    uint64_t *open;   /* [words] free ranks */
    uint64_t *all;    /* [words] every rank */
    int32_t *wide_of; /* [bundles] in wide; -1: few users */
    wide_bundle *wide;
    int64_t *score;  /* [gpus] */
    int64_t common;  /* a part of the score that all free ranks have, beside it */
    int64_t *claim;  /* [gpus] what slices that start at the same time would like of a rank */
    int64_t *after;  /* [gpus] bytes with the slice */
    int32_t *free;   /* [gpus] free ranks by domain, the best first */
    int32_t *merged; /* [gpus] */
    int32_t *ranks;  /* [gpus] chosen */
    int32_t *begin;  /* [domains + 1] in free */
    int64_t *gain;   /* [domains] */
    int32_t *takes;  /* [domains] ranks that the gain is of; 0: not known */
} greedy;

static hbp_status take_wide(greedy *g)
{
    hbp__board *board = g->board;
    hbp_context *context = board->context;
    uint64_t gpus = (uint64_t)board->gpus, words = (uint64_t)board->words;
    int32_t wide = 0;
    g->wide_of = hbp__take(context, (uint64_t)board->bundles, sizeof *g->wide_of);
    HBP__TRY(hbp__scratch_check(context, "the placement of slices"));
    for (int32_t k = 0; k < board->bundles; k++)
        g->wide_of[k] = board->bundle[k].end - board->bundle[k].first > NARROW_USERS ? wide++ : -1;
    g->wide = hbp__take(context, (uint64_t)wide, sizeof *g->wide);
    HBP__TRY(hbp__scratch_check(context, "the placement of slices"));
    for (int32_t k = 0; k < wide; k++) {
        g->wide[k] = (wide_bundle){0};
        g->wide[k].held = hbp__take_zero(context, gpus, sizeof *g->wide->held);
        g->wide[k].joint = hbp__take_zero(context, words, sizeof *g->wide->joint);
    }
    return hbp__scratch_check(context, "the placement of slices");
}

static hbp_status take_greedy(hbp__board *board, int32_t how, greedy *g)
{
    hbp_context *context = board->context;
    uint64_t count = (uint64_t)board->count, gpus = (uint64_t)board->gpus, words = (uint64_t)board->words;
    uint64_t domains = (uint64_t)board->domains;
    *g = (greedy){.board = board, .how = how};
    g->order = hbp__take(context, count, sizeof *g->order);
    g->key = hbp__take(context, count, sizeof *g->key);
    g->placed = hbp__take_zero(context, count, sizeof *g->placed);
    g->joint = hbp__take(context, words, sizeof *g->joint);
    g->open = hbp__take(context, words, sizeof *g->open);
    g->all = hbp__take(context, words, sizeof *g->all);
    g->score = hbp__take(context, gpus, sizeof *g->score);
    g->claim = hbp__take_zero(context, gpus, sizeof *g->claim);
    g->after = hbp__take(context, gpus, sizeof *g->after);
    g->free = hbp__take(context, gpus, sizeof *g->free);
    g->merged = hbp__take(context, gpus, sizeof *g->merged);
    g->ranks = hbp__take(context, gpus, sizeof *g->ranks);
    g->begin = hbp__take(context, domains + 1, sizeof *g->begin);
    g->gain = hbp__take(context, domains, sizeof *g->gain);
    g->takes = hbp__take(context, domains, sizeof *g->takes);
    g->busy = hbp__take(context, gpus, sizeof *g->busy);
    HBP__TRY(hbp__scratch_check(context, "the placement of slices"));
    HBP__TRY(take_wide(g));
    memset(g->all, 0xff, (size_t)words * sizeof *g->all);
    for (int32_t r = 0; r < board->gpus; r++)
        g->busy[r] = how == HBP__GREEDY_BACKWARD ? INT64_MAX : INT64_MIN;
    for (int32_t i = 0; i < board->count; i++) {
        g->order[i] = how == HBP__GREEDY_BACKWARD ? (uint32_t)i : board->order[i];
        g->key[i] = -board->slice[i].end_ns;
    }
    if (how == HBP__GREEDY_BACKWARD && !hbp__sort_by_i64(&context->memory, g->key, g->order, board->count))
        return hbp__fail_memory(context, "the placement of slices");
    return HBP_OK;
}

/* Adds `amount` for every rank of a set that is in `mask`. */
static void add_to(const hbp__board *board, const uint64_t *set, const uint64_t *mask, int64_t amount,
                   int64_t *sum)
{
    for (int64_t w = 0; w < board->words; w++)
        for (uint64_t word = set[w] & mask[w]; word; word &= word - 1)
            sum[w * 64 + hbp__lowest_bit(word)] += amount;
}

static int32_t other_end(const hbp__board_flow *flow, int32_t s)
{
    return flow->from == s ? flow->to : flow->from;
}

/* Adds, by rank of `mask`, the bytes that need not move for slice s; `sign` -1 takes them away. Returns bytes
 * of flows from and to slices that have ranks. */
static int64_t add_flows(greedy *g, int32_t s, const uint64_t *mask, int sign, int64_t *sum)
{
    const hbp__board *board = g->board;
    int64_t bytes = 0;
    for (int64_t i = board->flow_first[s]; i < board->flow_first[s + 1]; i++) {
        const hbp__board_flow *flow = &board->flow[board->flow_of[i]];
        int32_t t = other_end(flow, s);
        if (!g->placed[t])
            continue;
        int64_t larger = hbp__max_i64(board->slice[s].gpus, board->slice[t].gpus);
        add_to(board, hbp__board_set(board, t), mask, sign * (flow->bytes / larger), sum);
        bytes += flow->bytes;
    }
    return bytes;
}

static void add_reuses(greedy *g, int64_t begin, int64_t end)
{
    const hbp__board *board = g->board;
    for (int64_t i = begin; i < end; i++)
        add_to(board, board->group_set + board->reuse[i].group * board->words, g->open, board->reuse[i].bytes,
               g->score);
}

/* Ranks of the slices placed that run a bundle. */
static const uint64_t *joint_set(const greedy *g, int32_t k)
{
    const hbp__board *board = g->board;
    const hbp__bundle *bundle = &board->bundle[k];
    if (g->wide_of[k] >= 0)
        return g->wide[g->wide_of[k]].joint;
    memset(g->joint, 0, (size_t)board->words * sizeof *g->joint);
    for (int64_t u = bundle->first; u < bundle->end; u++) {
        const uint64_t *set = hbp__board_set(board, board->user[u].slice);
        for (int64_t w = 0; w < board->words; w++)
            g->joint[w] |= set[w];
    }
    return g->joint;
}

static int is_everywhere(const greedy *g, int32_t k)
{
    return g->wide_of[k] >= 0 && g->wide[g->wide_of[k]].ranks == g->board->gpus;
}

/* Ranks that hold weights of slice s save a gradient's way; what was there before need not be fetched. */
static void add_weights(greedy *g, int32_t s)
{
    const hbp__board *board = g->board;
    if (!board->counts_weights)
        return;
    add_reuses(g, board->reuse_first[s], board->reuse_first[s + 1]);
    for (int64_t i = board->share_first[s]; i < board->share_first[s + 1]; i++) {
        const hbp__bundle *bundle = &board->bundle[board->share[i].bundle];
        if (is_everywhere(g, board->share[i].bundle))
            g->common += bundle->gradient;
        else
            add_to(board, joint_set(g, board->share[i].bundle), g->open, bundle->gradient, g->score);
        add_reuses(g, bundle->reuse_first, bundle->reuse_end);
    }
}

/* Whether rank a suits better than b. */
static int suits_better(const greedy *g, int32_t a, int32_t b)
{
    int64_t limit = g->board->problem->limit_bytes;
    int fits_a = g->after[a] <= limit, fits_b = g->after[b] <= limit;
    if (fits_a != fits_b)
        return fits_a;
    if (fits_a && g->score[a] != g->score[b])
        return g->score[a] > g->score[b];
    if (g->after[a] != g->after[b])
        return g->after[a] < g->after[b];
    return a < b;
}

/* Sorts free[begin .. end), the best first: short runs by insertion, for little is out of place, then merges.
 */
static void sort_free(greedy *g, int32_t begin, int32_t end)
{
    int32_t count = end - begin, *from = g->free + begin, *to = g->merged;
    for (int32_t i = 1; i < count; i++) {
        int32_t rank = from[i], at = i;
        for (; at % SORT_RUN && suits_better(g, rank, from[at - 1]); at--)
            from[at] = from[at - 1];
        from[at] = rank;
    }
    for (int32_t width = SORT_RUN; width < count; width *= 2) {
        for (int32_t low = 0; low < count; low += 2 * width) {
            int32_t middle = low + width < count ? low + width : count;
            int32_t high = middle + width < count ? middle + width : count;
            for (int32_t i = low, j = middle, k = low; k < high; k++)
                to[k] =
                    j == high || (i < middle && !suits_better(g, from[j], from[i])) ? from[i++] : from[j++];
        }
        memcpy(from, to, (size_t)count * sizeof *from);
    }
}

/* Ranks that no slice placed uses while slice s runs: none placed starts later (backward: ends earlier). */
static void list_free(greedy *g, int32_t s)
{
    const hbp__board *board = g->board;
    const hbp__task_slice *slice = &board->slice[s];
    int backward = g->how == HBP__GREEDY_BACKWARD;
    int32_t count = 0;
    memset(g->open, 0, (size_t)board->words * sizeof *g->open);
    for (int32_t d = 0; d < board->domains; d++) {
        int32_t end = (int32_t)hbp__min_i64((int64_t)(d + 1) * board->domain_gpus, board->gpus);
        g->begin[d] = count;
        for (int32_t r = d * board->domain_gpus; r < end; r++)
            if (backward ? g->busy[r] >= slice->end_ns : g->busy[r] <= slice->start_ns) {
                g->open[r >> 6] |= UINT64_C(1) << (r & 63);
                g->free[count++] = r;
            }
    }
    g->begin[board->domains] = count;
}

/* Whether a slice placed runs bundle k in domain d. */
static int is_in_domain(const greedy *g, int32_t k, int32_t d)
{
    const hbp__board *board = g->board;
    const hbp__bundle *bundle = &board->bundle[k];
    if (g->wide_of[k] >= 0) {
        int32_t begin = d * board->domain_gpus;
        int64_t end = hbp__min_i64((int64_t)begin + board->domain_gpus, board->gpus);
        for (int32_t r = begin; r < end; r++)
            if (hbp__has_rank(g->wide[g->wide_of[k]].joint, r))
                return 1;
        return 0;
    }
    for (int64_t u = bundle->first; u < bundle->end; u++)
        if (hbp__board_domains(board, board->user[u].slice)[d])
            return 1;
    return 0;
}

/* What slice s saves by the best `takes` ranks of domain d: bytes that stay on their ranks, bytes that stay
 * in the domain, and weights that are in it. */
static int64_t gain_of(const greedy *g, int32_t s, int32_t d, int32_t takes)
{
    const hbp__board *board = g->board;
    int64_t gain = takes * g->common, gpus = board->slice[s].gpus;
    for (int32_t i = 0; i < takes; i++)
        gain += g->score[g->free[g->begin[d] + i]];
    for (int64_t i = board->flow_first[s]; i < board->flow_first[s + 1]; i++) {
        const hbp__board_flow *flow = &board->flow[board->flow_of[i]];
        int32_t t = other_end(flow, s);
        int64_t theirs = board->slice[t].gpus, there = hbp__board_domains(board, t)[d];
        int64_t stays = hbp__min_i64(there * gpus, takes * theirs);
        if (stays)
            gain += (HBP__CROSSING - 1) *
                    hbp__min_i64(flow->bytes, flow->bytes / (gpus * theirs) * stays +
                                                  flow->bytes % (gpus * theirs) * stays / (gpus * theirs));
    }
    for (int64_t i = board->share_first[s]; board->counts_weights && i < board->share_first[s + 1]; i++) {
        if (is_in_domain(g, board->share[i].bundle, d))
            gain += (HBP__CROSSING - 1) * board->bundle[board->share[i].bundle].gradient;
    }
    return gain;
}

/* Domain after domain: the one that saves most for each rank taken, less what it costs to open another one
 * for the rest; of equals the one that is filled up best. */
static void choose_ranks(greedy *g, int32_t s)
{
    const hbp__board *board = g->board;
    int32_t chosen = 0, gpus = board->slice[s].gpus;
    memset(g->takes, 0, (size_t)board->domains * sizeof *g->takes);
    int64_t opening =
        board->counts_weights ? (HBP__CROSSING - 1) * (board->own_gradient[s] + board->own_span[s]) : 0;
    while (chosen < gpus) {
        int32_t rest = gpus - chosen, best = -1;
        int64_t best_gain = 0, best_spare = 0;
        for (int32_t d = 0; d < board->domains; d++) {
            int32_t open = g->begin[d + 1] - g->begin[d];
            int32_t takes = open < rest ? open : rest;
            if (!takes || g->takes[d] < 0)
                continue;
            if (g->takes[d] != takes) {
                g->gain[d] = gain_of(g, s, d, takes);
                g->takes[d] = takes;
            }
            int64_t gain = (g->gain[d] - (takes < rest ? opening : 0)) / takes;
            int64_t spare = open >= rest ? open - rest : (int64_t)board->gpus + rest - open;
            if (best < 0 || gain > best_gain || (gain == best_gain && spare < best_spare)) {
                best = d;
                best_gain = gain;
                best_spare = spare;
            }
        }
        for (int32_t i = 0; i < g->takes[best]; i++)
            g->ranks[chosen++] = g->free[g->begin[best] + i];
        g->takes[best] = -1;
    }
}

/* Whether every rank holds `bytes` of a bundle. The least that one holds is found anew when as many ranks as
 * there are have got more. */
static int all_hold(const greedy *g, wide_bundle *wide, int64_t bytes)
{
    if (bytes <= wide->least)
        return 1;
    if (wide->raised < g->board->gpus)
        return 0;
    wide->raised = 0;
    wide->least = wide->held[0];
    for (int32_t r = 1; r < g->board->gpus; r++)
        wide->least = hbp__min_i64(wide->least, wide->held[r]);
    return bytes <= wide->least;
}

/* Bytes that slice s takes more on each of the `count` free ranks. */
static void add_bytes(greedy *g, int32_t s, int32_t count)
{
    hbp__board *board = g->board;
    for (int32_t i = 0; i < count; i++)
        g->after[g->free[i]] = board->own_bytes[s];
    for (int64_t i = board->share_first[s]; i < board->share_first[s + 1]; i++) {
        const hbp__slice_bundle *share = &board->share[i];
        if (g->wide_of[share->bundle] < 0) {
            hbp__board_add_bundle(board, share, g->free, count, g->after);
            continue;
        }
        wide_bundle *wide = &g->wide[g->wide_of[share->bundle]];
        const int64_t *held = wide->held;
        for (int32_t j = all_hold(g, wide, share->bytes) ? count : 0; j < count; j++) {
            int32_t r = g->free[j];
            g->after[r] += hbp__max_i64(share->bytes - held[r], 0); /* a graph has 2^62 bytes at most */
        }
    }
}

/* The first `gpus` of the ranks chosen hold `bytes` of a bundle. */
static void widen_bundle(const greedy *g, wide_bundle *wide, int64_t bytes, int32_t gpus)
{
    for (int32_t i = 0; i < gpus; i++) {
        int32_t r = g->ranks[i];
        wide->ranks += !hbp__has_rank(wide->joint, r);
        wide->joint[r >> 6] |= UINT64_C(1) << (r & 63);
        if (bytes > wide->held[r]) {
            wide->held[r] = bytes;
            wide->raised++;
        }
    }
}

/* What slice s has taken: its ranks' time, and its bundles. */
static void write_down(greedy *g, int32_t s)
{
    const hbp__board *board = g->board;
    const hbp__task_slice *slice = &board->slice[s];
    for (int32_t i = 0; i < slice->gpus; i++)
        g->busy[g->ranks[i]] = g->how == HBP__GREEDY_BACKWARD ? slice->start_ns : slice->end_ns;
    for (int64_t k = board->share_first[s]; k < board->share_first[s + 1]; k++) {
        if (g->wide_of[board->share[k].bundle] >= 0)
            widen_bundle(g, &g->wide[g->wide_of[board->share[k].bundle]], board->share[k].bytes, slice->gpus);
    }
}

static void place_slice(greedy *g, int32_t s)
{
    hbp__board *board = g->board;
    int32_t gpus = board->slice[s].gpus;
    list_free(g, s);
    int32_t count = g->begin[board->domains];
    int weighs = g->how != HBP__GREEDY_FIRST;
    if (weighs)
        add_bytes(g, s, count);
    for (int32_t i = 0; i < count; i++) {
        int32_t r = g->free[i];
        g->score[r] = 0;
        g->after[r] = weighs ? board->rank_bytes[r] + g->after[r] : 0;
        if (g->how == HBP__GREEDY_THRIFT)
            g->score[r] = board->rank_bytes[r] - g->after[r];
    }
    if (g->how == HBP__GREEDY_FLOWS || g->how == HBP__GREEDY_BACKWARD) {
        g->common = 0;
        for (int32_t i = 0; i < count; i++)
            g->score[g->free[i]] = -(g->claim[g->free[i]] / HBP__PLACE_CLAIM);
        add_flows(g, s, g->open, 1, g->score);
        add_weights(g, s);
        for (int32_t d = 0; d < board->domains; d++)
            sort_free(g, g->begin[d], g->begin[d + 1]);
        choose_ranks(g, s);
    } else {
        if (weighs)
            sort_free(g, 0, count);
        memcpy(g->ranks, g->free, (size_t)gpus * sizeof *g->ranks);
    }
    if (weighs)
        for (int32_t i = 0; i < gpus; i++)
            board->rank_bytes[g->ranks[i]] = g->after[g->ranks[i]];
    hbp__board_put(board, s, g->ranks);
    g->placed[s] = 1;
    write_down(g, s);
}

static int64_t moment_of(const greedy *g, int32_t i)
{
    const hbp__task_slice *slice = &g->board->slice[g->order[i]];
    return g->how == HBP__GREEDY_BACKWARD ? slice->end_ns : slice->start_ns;
}

/* Of order[begin .. end), which start together: the one with most bytes to it first, then the largest; what
 * they would like is counted so that they leave it to one another. */
static void arrange_together(greedy *g, int32_t begin, int32_t end)
{
    for (int32_t i = begin; i < end; i++)
        g->key[g->order[i]] = add_flows(g, (int32_t)g->order[i], g->all, 1, g->claim);
    for (int32_t i = begin + 1; i < end; i++) {
        uint32_t s = g->order[i];
        int32_t j = i;
        for (; j > begin; j--) {
            uint32_t t = g->order[j - 1];
            if (g->key[t] > g->key[s] ||
                (g->key[t] == g->key[s] && g->board->slice[t].gpus >= g->board->slice[s].gpus))
                break;
            g->order[j] = t;
        }
        g->order[j] = s;
    }
}

static hbp_status run_greedy(greedy *g)
{
    hbp__board *board = g->board;
    int flows = g->how == HBP__GREEDY_FLOWS || g->how == HBP__GREEDY_BACKWARD;
    hbp__board_clear(board);
    for (int32_t i = 0, end = 0; i < board->count; i++) {
        if (i % TICK_SLICES == 0)
            HBP__TRY(hbp__tick(board->context, "place slices", i, board->count));
        if (flows && i == end) {
            while (end < board->count && moment_of(g, end) == moment_of(g, i))
                end++;
            arrange_together(g, i, end);
        }
        int32_t s = (int32_t)g->order[i];
        if (flows)
            add_flows(g, s, g->all, -1,
                      g->claim); /* slices placed since end when this one starts: none flows to it */
        place_slice(g, s);
    }
    hbp__board_measure(board);
    return HBP_OK;
}

hbp_status hbp__board_greedy(hbp__board *board, int32_t how)
{
    greedy g;
    int64_t mark = hbp__scratch_mark(board->context);
    HBP__TRY(take_greedy(board, how, &g));
    HBP__TRY(run_greedy(&g));
    hbp__scratch_release(board->context, mark);
    return HBP_OK;
}
