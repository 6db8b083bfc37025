/* Slices placed one after another on the free ranks that suit each best, domain by domain. O(slices x (ranks
 * x log domain_gpus + overlapping slices x words)). */
#include "tasks/place/place_methods.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"

#define TICK_SLICES 16

typedef struct greedy {
    hbp__board *board;
    int32_t how;
    uint32_t *order; /* [count] */
    int64_t *key;    /* [count] */
    uint8_t *placed; /* [count] */
    uint64_t *used;  /* [words] */
    uint64_t *joint; /* [words] */
    int64_t *score;  /* [gpus] */
    int64_t *claim;  /* [gpus] what slices that start at the same time would like of a rank */
    int64_t *after;  /* [gpus] bytes with the slice */
    int32_t *free;   /* [gpus] free ranks by domain, the best first */
    int32_t *merged; /* [gpus] */
    int32_t *ranks;  /* [gpus] chosen */
    int32_t *begin;  /* [domains + 1] in free */
    int64_t *gain;   /* [domains] */
    int32_t *takes;  /* [domains] ranks that the gain is of; 0: not known */
} greedy;

static hbp_status take_greedy(hbp__board *board, int32_t how, greedy *g)
{
    hbp_context *context = board->context;
    uint64_t count = (uint64_t)board->count, gpus = (uint64_t)board->gpus, words = (uint64_t)board->words;
    uint64_t domains = (uint64_t)board->domains;
    *g = (greedy){.board = board, .how = how};
    g->order = hbp__take(context, count, sizeof *g->order);
    g->key = hbp__take(context, count, sizeof *g->key);
    g->placed = hbp__take_zero(context, count, sizeof *g->placed);
    g->used = hbp__take(context, words, sizeof *g->used);
    g->joint = hbp__take(context, words, sizeof *g->joint);
    g->score = hbp__take(context, gpus, sizeof *g->score);
    g->claim = hbp__take_zero(context, gpus, sizeof *g->claim);
    g->after = hbp__take(context, gpus, sizeof *g->after);
    g->free = hbp__take(context, gpus, sizeof *g->free);
    g->merged = hbp__take(context, gpus, sizeof *g->merged);
    g->ranks = hbp__take(context, gpus, sizeof *g->ranks);
    g->begin = hbp__take(context, domains + 1, sizeof *g->begin);
    g->gain = hbp__take(context, domains, sizeof *g->gain);
    g->takes = hbp__take(context, domains, sizeof *g->takes);
    HBP__TRY(hbp__scratch_check(context, "the placement of slices"));
    for (int32_t i = 0; i < board->count; i++) {
        g->order[i] = how == HBP__GREEDY_BACKWARD ? (uint32_t)i : board->order[i];
        g->key[i] = -board->slice[i].end_ns;
    }
    if (how == HBP__GREEDY_BACKWARD && !hbp__sort_by_i64(&context->memory, g->key, g->order, board->count))
        return hbp__fail_memory(context, "the placement of slices");
    return HBP_OK;
}

/* Adds `amount` for every rank of a set. */
static void add_to(const hbp__board *board, const uint64_t *set, int64_t amount, int64_t *sum)
{
    for (int64_t w = 0; w < board->words; w++)
        for (uint64_t word = set[w]; word; word &= word - 1)
            sum[w * 64 + hbp__lowest_bit(word)] += amount;
}

static int32_t other_end(const hbp__board_flow *flow, int32_t s)
{
    return flow->from == s ? flow->to : flow->from;
}

/* Adds, by rank, the bytes that need not move for slice s; `sign` -1 takes them away. Returns bytes of flows
 * from and to slices that have ranks. */
static int64_t add_flows(greedy *g, int32_t s, int sign, int64_t *sum)
{
    const hbp__board *board = g->board;
    int64_t bytes = 0;
    for (int64_t i = board->flow_first[s]; i < board->flow_first[s + 1]; i++) {
        const hbp__board_flow *flow = &board->flow[board->flow_of[i]];
        int32_t t = other_end(flow, s);
        if (!g->placed[t])
            continue;
        int64_t larger = hbp__max_i64(board->slice[s].gpus, board->slice[t].gpus);
        add_to(board, hbp__board_set(board, t), sign * (flow->bytes / larger), sum);
        bytes += flow->bytes;
    }
    return bytes;
}

static void add_reuses(greedy *g, int64_t begin, int64_t end)
{
    const hbp__board *board = g->board;
    for (int64_t i = begin; i < end; i++)
        add_to(board, board->group_set + board->reuse[i].group * board->words, board->reuse[i].bytes,
               g->score);
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
        memset(g->joint, 0, (size_t)board->words * sizeof *g->joint);
        for (int64_t u = bundle->first; u < bundle->end; u++) {
            const uint64_t *set = hbp__board_set(board, board->user[u].slice);
            for (int64_t w = 0; w < board->words; w++)
                g->joint[w] |= set[w];
        }
        add_to(board, g->joint, bundle->gradient, g->score);
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

/* Merge sort of free[begin .. end), the best first. */
static void sort_free(greedy *g, int32_t begin, int32_t end)
{
    int32_t count = end - begin, *from = g->free + begin, *to = g->merged;
    for (int32_t width = 1; width < count; width *= 2) {
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

static void list_free(greedy *g)
{
    const hbp__board *board = g->board;
    int32_t count = 0;
    for (int32_t d = 0; d < board->domains; d++) {
        int32_t end = (int32_t)hbp__min_i64((int64_t)(d + 1) * board->domain_gpus, board->gpus);
        g->begin[d] = count;
        for (int32_t r = d * board->domain_gpus; r < end; r++)
            if (!hbp__has_rank(g->used, r))
                g->free[count++] = r;
    }
    g->begin[board->domains] = count;
}

/* What slice s saves by the best `takes` ranks of domain d: bytes that stay on their ranks, bytes that stay
 * in the domain, and weights that are in it. */
static int64_t gain_of(const greedy *g, int32_t s, int32_t d, int32_t takes)
{
    const hbp__board *board = g->board;
    int64_t gain = 0, gpus = board->slice[s].gpus;
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
        const hbp__bundle *bundle = &board->bundle[board->share[i].bundle];
        for (int64_t u = bundle->first; u < bundle->end; u++)
            if (hbp__board_domains(board, board->user[u].slice)[d]) {
                gain += (HBP__CROSSING - 1) * bundle->gradient;
                break;
            }
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

static void place_slice(greedy *g, int32_t s)
{
    hbp__board *board = g->board;
    int32_t gpus = board->slice[s].gpus;
    hbp__board_used(board, s, g->used);
    list_free(g);
    int32_t count = g->begin[board->domains];
    int weighs = g->how != HBP__GREEDY_FIRST;
    if (weighs)
        hbp__board_added_all(board, s, g->after);
    for (int32_t i = 0; i < count; i++) {
        int32_t r = g->free[i];
        g->score[r] = 0;
        g->after[r] = weighs ? board->rank_bytes[r] + g->after[r] : 0;
        if (g->how == HBP__GREEDY_THRIFT)
            g->score[r] = board->rank_bytes[r] - g->after[r];
    }
    if (g->how == HBP__GREEDY_FLOWS || g->how == HBP__GREEDY_BACKWARD) {
        for (int32_t r = 0; r < board->gpus; r++)
            g->score[r] = -(g->claim[r] / HBP__PLACE_CLAIM);
        add_flows(g, s, 1, g->score);
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
        g->key[g->order[i]] = add_flows(g, (int32_t)g->order[i], 1, g->claim);
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
            add_flows(g, s, -1,
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
