#include "tasks/place/place_board.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "data/tasks/task_flows.h"

/* No sum of costs passes this. */
#define MOST_COST (INT64_C(1) << 60)

/* By start; then, for each slice, where those that overlap it can be: before `high` all start before its end,
 * and before `low` all have ended at its start. */
static hbp_status sort_slices(hbp__board *board)
{
    int64_t mark = hbp__scratch_mark(board->context);
    int64_t *start = hbp__take(board->context, (uint64_t)board->count, sizeof *start);
    HBP__TRY(hbp__scratch_check(board->context, "the placement of slices"));
    for (int32_t s = 0; s < board->count; s++) {
        start[s] = board->slice[s].start_ns;
        board->order[s] = (uint32_t)s;
    }
    if (!hbp__sort_by_i64(&board->context->memory, start, board->order, board->count))
        return hbp__fail_memory(board->context, "the placement of slices");
    hbp__scratch_release(board->context, mark);
    int64_t ends = INT64_MIN; /* latest of those before `low` and the one there */
    for (int32_t i = 0, low = 0; i < board->count; i++) {
        const hbp__task_slice *slice = &board->slice[board->order[i]];
        int32_t below = i, above = board->count;
        while (below < above) {
            int32_t middle = below + (above - below) / 2;
            if (board->slice[board->order[middle]].start_ns < slice->end_ns)
                below = middle + 1;
            else
                above = middle;
        }
        for (; low < i; low++) {
            int64_t end = board->slice[board->order[low]].end_ns;
            ends = end > ends ? end : ends;
            if (ends > slice->start_ns)
                break;
        }
        board->at[board->order[i]] = i;
        board->low[board->order[i]] = low;
        board->high[board->order[i]] = below;
    }
    return HBP_OK;
}

/* Any assignment of free ranks can be completed when no moment needs more than all: intervals. */
static hbp_status check_room(const hbp__board *board)
{
    for (int32_t i = 0; i < board->count; i++) {
        int32_t s = (int32_t)board->order[i];
        const hbp__task_slice *slice = &board->slice[s];
        int64_t used = slice->gpus;
        for (int32_t j = board->low[s]; j < i; j++) {
            const hbp__task_slice *other = &board->slice[board->order[j]];
            used += other->end_ns > slice->start_ns ? other->gpus : 0;
        }
        if (slice->gpus < 1 || used > board->gpus)
            return hbp__fail(board->context, HBP_E_INVALID,
                             "slice %d runs on %d GPUs when %lld of %d are taken", (int)s, (int)slice->gpus,
                             (long long)(used - slice->gpus), (int)board->gpus);
    }
    return HBP_OK;
}

static hbp_status open_flows(hbp__board *board, const hbp__task_slices *slices)
{
    hbp__task_flows flows;
    HBP__TRY(
        hbp__task_flows_open(board->context, board->problem->graph, board->problem->meta, slices, &flows));
    board->flow = hbp__take(board->context, (uint64_t)flows.count, sizeof *board->flow);
    board->flow_of = hbp__take(board->context, 2 * (uint64_t)flows.count, sizeof *board->flow_of);
    board->flow_first = hbp__take_zero(board->context, (uint64_t)board->count + 2, sizeof *board->flow_first);
    hbp_status status = hbp__scratch_check(board->context, "the placement of slices");
    if (status < 0) {
        hbp__task_flows_close(&flows);
        return status;
    }
    for (int64_t f = 0; f < flows.count; f++)
        if (flows.flow[f].bytes > 0)
            board->flow[board->flows++] =
                (hbp__board_flow){flows.flow[f].from, flows.flow[f].to, flows.flow[f].bytes, 0};
    hbp__task_flows_close(&flows);
    int64_t *first = board->flow_first;
    for (int64_t f = 0; f < board->flows; f++) {
        first[board->flow[f].from + 2]++;
        first[board->flow[f].to + 2]++;
    }
    for (int32_t s = 0; s < board->count; s++)
        first[s + 2] += first[s + 1];
    for (int64_t f = 0; f < board->flows; f++) {
        board->flow_of[first[board->flow[f].from + 1]++] = f;
        board->flow_of[first[board->flow[f].to + 1]++] = f;
    }
    return HBP_OK;
}

/* All costs together, each at its worst, fit when bytes are divided by 2^shift. */
static void scale(hbp__board *board)
{
    int64_t flows = 0, weights = 0, keeps = 0;
    for (int64_t f = 0; f < board->flows; f++)
        flows = hbp__add_saturating(flows, board->flow[f].bytes);
    for (int32_t s = 0; s < board->count; s++) {
        weights = hbp__add_saturating(weights, board->own_gradient[s]);
        weights = hbp__add_saturating(weights, board->own_span[s]);
    }
    for (int32_t k = 0; k < board->bundles; k++)
        weights = hbp__add_saturating(weights, board->bundle[k].gradient);
    for (int64_t i = 0; i < board->keeps; i++)
        keeps = hbp__add_saturating(keeps, board->keep[i].bytes);
    int64_t worst = hbp__mul_saturating(flows, HBP__CROSSING);
    worst = hbp__add_saturating(worst, hbp__mul_saturating(weights, HBP__CROSSING * (int64_t)board->gpus));
    worst = hbp__add_saturating(worst, hbp__mul_saturating(keeps, board->gpus));
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
    for (int64_t i = 0; i < board->keeps; i++)
        board->keep[i].bytes >>= board->shift;
}

/* bytes x part / whole rounded up, for 0 <= part <= whole, as data/tasks/flow.h has it. */
static int64_t share_up(int64_t bytes, int64_t part, int64_t whole)
{
    int64_t product;
    if (hbp__mul_i64(bytes, part, &product))
        return hbp__ceil_div(product, whole);
    int64_t rest = bytes % whole;
    return bytes / whole * part + hbp__ceil_div(hbp__mul_saturating(rest, part), whole);
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
static void bound(hbp__board *board)
{
    int64_t least = 0;
    for (int64_t f = 0; f < board->flows; f++) {
        int64_t a = board->slice[board->flow[f].from].gpus, b = board->slice[board->flow[f].to].gpus;
        least += share_up(board->flow[f].bytes, a > b ? a - b : b - a, a > b ? a : b);
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
    for (int64_t i = 0; i < board->keeps; i++)
        least -= board->keep[i].bytes * board->gpus;
    board->least_cost = least;
}

static hbp_status allocate(hbp__board *board)
{
    hbp_context *context = board->context;
    uint64_t count = (uint64_t)board->count, words = (uint64_t)board->words;
    uint64_t domains = (uint64_t)board->domains, gpus = (uint64_t)board->gpus;
    board->order = hbp__take(context, count, sizeof *board->order);
    board->at = hbp__take(context, count, sizeof *board->at);
    board->low = hbp__take(context, count, sizeof *board->low);
    board->high = hbp__take(context, count, sizeof *board->high);
    board->set = hbp__take_zero(context, count, words * sizeof *board->set);
    board->in_domain = hbp__take_zero(context, count, domains * sizeof *board->in_domain);
    board->rank_bytes = hbp__take_zero(context, gpus, sizeof *board->rank_bytes);
    board->own_cost = hbp__take_zero(context, count, sizeof *board->own_cost);
    board->moved = hbp__take(context, count, sizeof *board->moved);
    board->seen = hbp__take_zero(context, count, sizeof *board->seen);
    board->old_bytes = hbp__take(context, gpus, sizeof *board->old_bytes);
    board->mask = hbp__take(context, words, sizeof *board->mask);
    board->held = hbp__take_zero(context, gpus, sizeof *board->held);
    board->changed = hbp__take_zero(context, count, sizeof *board->changed);
    board->domain_of = hbp__take(context, gpus, sizeof *board->domain_of);
    return hbp__scratch_check(context, "the placement of slices");
}

static hbp_status fill(hbp__board *board, const hbp__task_slices *slices, const hbp_task_schedule *previous)
{
    hbp_context *context = board->context;
    HBP__TRY(allocate(board));
    for (int32_t r = 0; r < board->gpus; r++)
        board->domain_of[r] = r / board->domain_gpus;
    HBP__TRY(sort_slices(board));
    HBP__TRY(check_room(board));
    HBP__TRY(open_flows(board, slices));
    HBP__TRY(hbp__board_weigh(board, previous));
    scale(board);
    bound(board);
    uint64_t flows = (uint64_t)board->flows, bundles = (uint64_t)board->bundles;
    board->flow_seen = hbp__take_zero(context, flows, sizeof *board->flow_seen);
    board->flow_hit = hbp__take(context, flows, sizeof *board->flow_hit);
    board->bundle_seen = hbp__take_zero(context, bundles, sizeof *board->bundle_seen);
    board->bundles_hit = hbp__take(context, bundles, sizeof *board->bundles_hit);
    board->old_cost = hbp__take(context, flows + bundles + (uint64_t)board->count, sizeof *board->old_cost);
    return hbp__scratch_check(context, "the placement of slices");
}

hbp_status hbp__board_open(hbp_context *context, const hbp__task_problem *problem,
                           const hbp__task_slices *slices, const hbp_task_schedule *previous,
                           hbp__board *board)
{
    *board = (hbp__board){.context = context,
                          .problem = problem,
                          .slice = slices->slice,
                          .gpus = problem->gpus,
                          .domain_gpus = problem->domain_gpus < 1               ? 1
                                         : problem->domain_gpus > problem->gpus ? problem->gpus
                                                                                : problem->domain_gpus,
                          .counts_weights = 1};
    if (slices->count > INT32_MAX / 2)
        return hbp__fail(context, HBP_E_OVERFLOW, "%lld slices; at most %d can be placed",
                         (long long)slices->count, INT32_MAX / 2);
    board->count = (int32_t)slices->count;
    board->domains = (int32_t)hbp__ceil_div(board->gpus, board->domain_gpus);
    board->words = (board->gpus + 63) / 64;
    return fill(board, slices, previous);
}

void hbp__board_put(hbp__board *board, int32_t s, const int32_t *ranks)
{
    uint64_t *set = hbp__board_set(board, s);
    int32_t *in_domain = hbp__board_domains(board, s);
    memset(set, 0, (size_t)board->words * sizeof *set);
    memset(in_domain, 0, (size_t)board->domains * sizeof *in_domain);
    for (int32_t i = 0; i < board->slice[s].gpus; i++) {
        hbp__flip_rank(set, ranks[i]);
        in_domain[board->domain_of[ranks[i]]]++;
    }
}

void hbp__board_clear(hbp__board *board)
{
    memset(board->set, 0, (size_t)board->count * (size_t)board->words * sizeof *board->set);
    memset(board->in_domain, 0, (size_t)board->count * (size_t)board->domains * sizeof *board->in_domain);
    memset(board->rank_bytes, 0, (size_t)board->gpus * sizeof *board->rank_bytes);
}

void hbp__board_used(const hbp__board *board, int32_t s, uint64_t *used)
{
    const hbp__task_slice *slice = &board->slice[s];
    memset(used, 0, (size_t)board->words * sizeof *used);
    for (int32_t i = board->low[s]; i < board->high[s]; i++) {
        int32_t t = (int32_t)board->order[i];
        if (t == s || board->slice[t].end_ns <= slice->start_ns)
            continue;
        const uint64_t *set = hbp__board_set(board, t);
        for (int64_t w = 0; w < board->words; w++)
            used[w] |= set[w];
    }
}

void hbp__board_write(const hbp__board *board, int32_t *ranks)
{
    for (int32_t s = 0; s < board->count; s++) {
        const uint64_t *set = hbp__board_set(board, s);
        for (int32_t r = 0; r < board->gpus; r++)
            if (hbp__has_rank(set, r))
                *ranks++ = r;
    }
}

int64_t hbp__board_cost_flow(const hbp__board *board, const hbp__board_flow *flow)
{
    int64_t froms = board->slice[flow->from].gpus, tos = board->slice[flow->to].gpus;
    int64_t larger = froms > tos ? froms : tos;
    const uint64_t *from = hbp__board_set(board, flow->from), *to = hbp__board_set(board, flow->to);
    int64_t apart = larger - hbp__count_common(from, to, board->words);
    if (!apart)
        return 0;
    int64_t cost = share_up(flow->bytes, apart, larger);
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
    return cost + (HBP__CROSSING - 1) * share_up(flow->bytes, whole - stays, whole);
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
static int64_t kept(const hbp__board *board, int64_t begin, int64_t end, const uint64_t *set)
{
    int64_t bytes = 0;
    for (int64_t i = begin; i < end; i++) {
        const hbp__keep *keep = &board->keep[i];
        bytes +=
            keep->bytes * hbp__count_common(set, board->group_set + keep->group * board->words, board->words);
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
    return cost - kept(board, board->keep_first[s], board->keep_first[s + 1], hbp__board_set(board, s));
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
    return cost - kept(board, bundle->keep_first, bundle->keep_end, all);
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
