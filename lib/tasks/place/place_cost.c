/* What a placement costs, as data/tasks/flow.h has it for flows, and the bytes that ranks hold under it. A
 * flow's cost is O(words + domains), all of them O((flows + slices + users of bundles) (words + domains)). */
#include <string.h>

#include "base/checked.h"
#include "tasks/place/place_board.h"

/* No sum of costs passes this. */
#define MOST_COST (INT64_C(1) << 60)

/* All costs together, each at its worst, fit when bytes are divided by 2^shift. */
static void scale_costs(hbp__board *board)
{
    int64_t flows = 0, weights = 0, reuses = 0;
    for (int64_t f = 0; f < board->flows; f++)
        flows = hbp__add_saturating(flows, board->flow[f].bytes);
    for (int32_t s = 0; s < board->count; s++) {
        weights = hbp__add_saturating(weights, board->own_gradient[s]);
        weights = hbp__add_saturating(weights, board->own_span[s]);
    }
    for (int32_t k = 0; k < board->bundles; k++)
        weights = hbp__add_saturating(weights, board->bundle[k].gradient);
    for (int64_t i = 0; i < board->reuses; i++)
        reuses = hbp__add_saturating(reuses, board->reuse[i].bytes);
    int64_t worst = hbp__mul_saturating(flows, HBP__CROSSING);
    worst = hbp__add_saturating(worst, hbp__mul_saturating(weights, HBP__CROSSING * (int64_t)board->gpus));
    worst = hbp__add_saturating(worst, hbp__mul_saturating(reuses, board->gpus));
    board->shift = worst == INT64_MAX ? 32 : 0;
    while (worst >> board->shift > MOST_COST)
        board->shift++;
    for (int64_t f = 0; f < board->flows; f++)
        board->flow[f].bytes >>= board->shift;
    int64_t part = board->problem->gradient_part ? board->problem->gradient_part : HBP__GRADIENT_PART;
    for (int32_t s = 0; s < board->count; s++) {
        board->own_gradient[s] = (board->own_gradient[s] >> board->shift) / part;
        board->own_span[s] = (board->own_span[s] >> board->shift) / part;
    }
    for (int32_t k = 0; k < board->bundles; k++)
        board->bundle[k].gradient = (board->bundle[k].gradient >> board->shift) / part;
    for (int64_t i = 0; i < board->reuses; i++)
        board->reuse[i].bytes >>= board->shift;
}

/* What a set of `ranks` ranks pays for the domains that it cannot but span. */
static int64_t least_span(const hbp__board *board, int32_t ranks, int64_t bytes)
{
    int64_t domains = hbp__ceil_div(ranks, board->domain_gpus);
    return domains > 1 ? (HBP__CROSSING - 1) * domains * bytes : 0;
}

static int64_t least_crossing(const hbp__board *board, int32_t ranks, int64_t bytes)
{
    return ranks > board->domain_gpus ? (HBP__CROSSING - 1) * (bytes * (ranks - 1) / board->domain_gpus) : 0;
}

/* Every flow, slice and bundle on the ranks that suit it best, and all that was held before kept. */
static void bound_cost(hbp__board *board)
{
    int64_t least = 0;
    for (int64_t f = 0; f < board->flows; f++) {
        int64_t a = board->slice[board->flow[f].from].gpus, b = board->slice[board->flow[f].to].gpus;
        least += hbp__share_up(board->flow[f].bytes, a > b ? a - b : b - a, a > b ? a : b);
    }
    for (int32_t s = 0; s < board->count; s++)
        least += least_crossing(board, board->slice[s].gpus, board->own_gradient[s]) +
                 least_span(board, board->slice[s].gpus, board->own_span[s]);
    for (int32_t k = 0; k < board->bundles; k++) {
        int32_t ranks = 1;
        for (int64_t u = board->bundle[k].first; u < board->bundle[k].end; u++)
            if (board->slice[board->user[u].slice].gpus > ranks)
                ranks = board->slice[board->user[u].slice].gpus;
        least +=
            least_crossing(board, ranks, board->bundle[k].gradient) + (ranks - 1) * board->bundle[k].gradient;
    }
    for (int64_t i = 0; i < board->reuses; i++)
        least -= board->reuse[i].bytes * board->gpus;
    board->least_cost = least;
}

void hbp__board_scale(hbp__board *board)
{
    scale_costs(board);
    bound_cost(board);
}

int64_t hbp__board_cost_flow(const hbp__board *board, const hbp__board_flow *flow)
{
    int64_t froms = board->slice[flow->from].gpus, tos = board->slice[flow->to].gpus;
    int64_t larger = froms > tos ? froms : tos;
    const uint64_t *from = hbp__board_set(board, flow->from), *to = hbp__board_set(board, flow->to);
    int64_t apart = larger - hbp__count_common(from, to, board->words);
    if (!apart)
        return 0;
    int64_t cost = hbp__share_up(flow->bytes, apart, larger);
    if (board->domains == 1)
        return cost;
    const int32_t *a = hbp__board_domains(board, flow->from), *b = hbp__board_domains(board, flow->to);
    int64_t stays = 0, whole = froms * tos, low = 0, high = board->words - 1;
    while (low < high && !from[low])
        low++;
    while (low < high && !from[high])
        high--;
    int32_t begin = board->domain_of[64 * low];
    int32_t end = 64 * high + 63 < board->gpus ? board->domain_of[64 * high + 63] + 1 : board->domains;
    for (int32_t i = begin; i < end; i++) {
        int64_t mine = a[i] * tos, theirs = b[i] * froms;
        stays += mine < theirs ? mine : theirs;
    }
    return cost + (HBP__CROSSING - 1) * hbp__share_up(flow->bytes, whole - stays, whole);
}

int64_t hbp__board_flow_cost(const hbp__board *board, const int32_t *ranks)
{
    int64_t cost = 0;
    const hbp__board *b = board;
    int64_t *first = b->old_cost; /* as long as there are slices, at least */
    int64_t at = 0;
    for (int32_t s = 0; s < b->count; s++) {
        first[s] = at;
        at += b->slice[s].gpus;
    }
    for (int64_t f = 0; f < b->flows; f++) {
        const hbp__board_flow *flow = &b->flow[f];
        hbp__flow between =
            hbp__flow_between(ranks + first[flow->from], b->slice[flow->from].gpus, ranks + first[flow->to],
                              b->slice[flow->to].gpus, b->domain_gpus, flow->bytes);
        cost = hbp__add_saturating(cost, between.moved);
        cost = hbp__add_saturating(cost, hbp__mul_saturating(between.crossing, HBP__CROSSING - 1));
    }
    return cost;
}

/* Less what the ranks of `set` held before. */
static int64_t reused_bytes(const hbp__board *board, int64_t begin, int64_t end, const uint64_t *set)
{
    int64_t bytes = 0;
    for (int64_t i = begin; i < end; i++) {
        const hbp__reuse *reuse = &board->reuse[i];
        bytes += reuse->bytes *
                 hbp__count_common(set, board->group_set + reuse->group * board->words, board->words);
    }
    return bytes;
}

/* Ranks of a set in [begin, end). */
static int64_t count_between(const uint64_t *set, int64_t begin, int64_t end)
{
    int64_t count = 0;
    for (int64_t w = begin >> 6; w << 6 < end; w++) {
        uint64_t bits = set[w];
        if (w << 6 < begin)
            bits &= ~UINT64_C(0) << (begin & 63);
        if (end - (w << 6) < 64)
            bits &= ~(~UINT64_C(0) << (end & 63));
        count += hbp__count_bits(bits);
    }
    return count;
}

/* What a ring over `ranks` ranks, at least `least` of them in each of its domains, pays for `bytes` where it
 * crosses domains: it does so over as many network cards at once. */
static int64_t crossing_cost(int64_t bytes, int64_t ranks, int64_t least)
{
    return least < ranks ? (HBP__CROSSING - 1) * (bytes * (ranks - 1) / least) : 0;
}

/* Half of what an all-reduce moves, as flows go there and back. */
int64_t hbp__board_cost_own(const hbp__board *board, int32_t s)
{
    if (!board->counts_weights)
        return 0;
    const int32_t *in_domain = hbp__board_domains(board, s);
    int64_t domains = 0, least = board->slice[s].gpus;
    for (int32_t i = 0; i < board->domains; i++)
        if (in_domain[i]) {
            domains++;
            least = in_domain[i] < least ? in_domain[i] : least;
        }
    int64_t cost = crossing_cost(board->own_gradient[s], board->slice[s].gpus, least);
    if (domains > 1)
        cost += (HBP__CROSSING - 1) * domains * board->own_span[s];
    return cost -
           reused_bytes(board, board->reuse_first[s], board->reuse_first[s + 1], hbp__board_set(board, s));
}

int64_t hbp__board_cost_bundle(hbp__board *board, const hbp__bundle *bundle)
{
    if (!board->counts_weights)
        return 0;
    uint64_t *all = board->mask;
    memset(all, 0, (size_t)board->words * sizeof *all);
    for (int64_t u = bundle->first; u < bundle->end; u++) {
        const uint64_t *set = hbp__board_set(board, board->user[u].slice);
        for (int64_t w = 0; w < board->words; w++)
            all[w] |= set[w];
    }
    int64_t ranks = 0, least = INT64_MAX;
    for (int64_t i = 0, begin = 0; i < board->domains; i++, begin += board->domain_gpus) {
        int64_t end = begin + board->domain_gpus;
        int64_t here = count_between(all, begin, end < board->gpus ? end : board->gpus);
        ranks += here;
        least = here && here < least ? here : least;
    }
    int64_t cost =
        ranks > 0 ? bundle->gradient * (ranks - 1) + crossing_cost(bundle->gradient, ranks, least) : 0;
    return cost - reused_bytes(board, bundle->reuse_first, bundle->reuse_end, all);
}

void hbp__board_measure(hbp__board *board)
{
    board->cost = 0;
    for (int64_t f = 0; f < board->flows; f++) {
        hbp__board_flow *flow = &board->flow[f];
        flow->cost = hbp__board_cost_flow(board, flow);
        board->cost += flow->cost;
    }
    for (int32_t k = 0; k < board->bundles; k++) {
        board->bundle[k].cost = hbp__board_cost_bundle(board, &board->bundle[k]);
        board->cost += board->bundle[k].cost;
    }
    for (int32_t s = 0; s < board->count; s++) {
        board->own_cost[s] = hbp__board_cost_own(board, s);
        board->cost += board->own_cost[s];
    }
    hbp__board_measure_bytes(board);
}

int64_t hbp__board_held(const hbp__board *board, int32_t k, int32_t r)
{
    int64_t bytes = 0;
    for (int64_t u = board->bundle[k].first; u < board->bundle[k].end; u++)
        if (board->user[u].bytes > bytes && hbp__has_rank(hbp__board_set(board, board->user[u].slice), r))
            bytes = board->user[u].bytes;
    return bytes;
}

int64_t hbp__board_alone(const hbp__board *board, int32_t s)
{
    int64_t bytes = board->own_bytes[s];
    for (int64_t i = board->share_first[s]; i < board->share_first[s + 1]; i++)
        bytes = hbp__add_saturating(bytes, board->share[i].bytes);
    return bytes;
}

int64_t hbp__board_added(const hbp__board *board, int32_t s, int32_t r)
{
    int64_t bytes = board->own_bytes[s];
    for (int64_t i = board->share_first[s]; i < board->share_first[s + 1]; i++) {
        int64_t held = hbp__board_held(board, board->share[i].bundle, r);
        if (board->share[i].bytes > held)
            bytes = hbp__add_saturating(bytes, board->share[i].bytes - held);
    }
    return bytes;
}

/* Makes held[r] the most of it and `bytes` for the ranks of a set; bytes 0: zero. */
static void hold_on(hbp__board *board, const uint64_t *set, int64_t bytes)
{
    for (int64_t w = 0; w < board->words; w++)
        for (uint64_t rest = set[w]; rest; rest &= rest - 1) {
            int64_t *held = &board->held[w * 64 + hbp__lowest_bit(rest)];
            *held = bytes == 0 || bytes > *held ? bytes : *held;
        }
}

/* What each rank holds of a bundle, in held. */
static void hold_bundle(hbp__board *board, const hbp__bundle *bundle)
{
    for (int64_t u = bundle->first; u < bundle->end; u++)
        if (board->user[u].bytes > 0)
            hold_on(board, hbp__board_set(board, board->user[u].slice), board->user[u].bytes);
}

/* Adds what the ranks of a set hold to their bytes, and forgets it. */
static void settle_bytes(hbp__board *board, const uint64_t *set)
{
    for (int64_t w = 0; w < board->words; w++)
        for (uint64_t rest = set[w]; rest; rest &= rest - 1) {
            int64_t r = w * 64 + hbp__lowest_bit(rest);
            board->rank_bytes[r] = hbp__add_saturating(board->rank_bytes[r], board->held[r]);
            board->held[r] = 0;
        }
}

void hbp__board_add_bundle(hbp__board *board, const hbp__slice_bundle *share, const int32_t *ranks,
                           int32_t count, int64_t *added)
{
    const hbp__bundle *bundle = &board->bundle[share->bundle];
    hold_bundle(board, bundle);
    for (int32_t i = 0; i < count; i++) {
        int32_t r = ranks[i];
        if (share->bytes > board->held[r])
            added[r] = hbp__add_saturating(added[r], share->bytes - board->held[r]);
    }
    for (int64_t u = bundle->first; u < bundle->end; u++)
        hold_on(board, hbp__board_set(board, board->user[u].slice), 0);
}

void hbp__board_measure_bytes(hbp__board *board)
{
    memset(board->rank_bytes, 0, (size_t)board->gpus * sizeof *board->rank_bytes);
    for (int32_t s = 0; s < board->count; s++) {
        if (board->own_bytes[s] > 0)
            hold_on(board, hbp__board_set(board, s), board->own_bytes[s]);
        settle_bytes(board, hbp__board_set(board, s));
    }
    for (int32_t k = 0; k < board->bundles; k++) {
        const hbp__bundle *bundle = &board->bundle[k];
        hold_bundle(board, bundle);
        for (int64_t u = bundle->first; u < bundle->end; u++)
            settle_bytes(board, hbp__board_set(board, board->user[u].slice));
    }
    board->over_bytes = 0;
    for (int32_t r = 0; r < board->gpus; r++)
        if (board->rank_bytes[r] > board->problem->limit_bytes)
            board->over_bytes =
                hbp__add_saturating(board->over_bytes, board->rank_bytes[r] - board->problem->limit_bytes);
}
