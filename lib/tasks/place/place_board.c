/* Makes a board: slices by time, flows, and the sets of ranks that slices get. O(slices log slices + flows +
 * slices x words). */
#include "tasks/place/place_board.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "data/tasks/task_flows.h"

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

static hbp_status take_board(hbp__board *board)
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

static hbp_status fill_board(hbp__board *board, const hbp__task_slices *slices,
                             const hbp_task_schedule *previous)
{
    hbp_context *context = board->context;
    HBP__TRY(take_board(board));
    for (int32_t r = 0; r < board->gpus; r++)
        board->domain_of[r] = r / board->domain_gpus;
    HBP__TRY(sort_slices(board));
    HBP__TRY(check_room(board));
    HBP__TRY(open_flows(board, slices));
    HBP__TRY(hbp__board_weigh(board, previous));
    hbp__board_scale(board);
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
    return fill_board(board, slices, previous);
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
