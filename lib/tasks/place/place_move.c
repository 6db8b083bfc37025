/* Exchanges of ranks: which slices follow, and whether it pays. */
#include <string.h>

#include "tasks/place/place_board.h"

/* Whether an exchange changes the ranks of slice s: it runs on exactly one rank of a pair. `touched` has all
 * ranks of the exchange. */
static int32_t changes_slice(hbp__board *board, const hbp__exchange *x, const uint64_t *touched, int32_t s)
{
    const uint64_t *set = hbp__board_set(board, s);
    if (x->pairs == 1)
        return hbp__has_rank(set, x->first[0]) != hbp__has_rank(set, x->second[0]);
    uint64_t common = 0;
    for (int64_t w = 0; w < board->words; w++)
        common |= set[w] & touched[w];
    if (!common)
        return 0;
    for (int32_t i = 0; i < x->pairs; i++)
        if (hbp__has_rank(set, x->first[i]) != hbp__has_rank(set, x->second[i]))
            return 1;
    return 0;
}

/* Slices that change, in board->moved; returns how many. A slice that overlaps one of them and changes as
 * well has to follow; one that runs on both or none of each pair is in nobody's way. */
static int32_t collect_moved(hbp__board *board, const hbp__exchange *x, int32_t seed, int32_t reach)
{
    uint64_t *touched = board->mask;
    if (x->pairs > 1) {
        memset(touched, 0, (size_t)board->words * sizeof *touched);
        for (int32_t i = 0; i < x->pairs; i++) {
            hbp__flip_rank(touched, x->first[i]);
            hbp__flip_rank(touched, x->second[i]);
        }
    }
    uint32_t stamp = ++board->stamp;
    int32_t count = 0;
    int32_t begin = reach == HBP__REACH_BEFORE ? 0 : board->at[seed];
    int32_t end = reach == HBP__REACH_AFTER ? board->count : board->at[seed] + 1;
    for (int32_t i = begin; i < end; i++) {
        int32_t s = (int32_t)board->order[i];
        if (changes_slice(board, x, touched, s)) {
            board->seen[s] = stamp;
            board->moved[count++] = s;
        }
    }
    board->work += end - begin;
    for (int32_t i = 0; i < count; i++) {
        const hbp__task_slice *slice = &board->slice[board->moved[i]];
        int32_t low = board->low[board->moved[i]], high = board->high[board->moved[i]];
        board->work += high - low;
        for (int32_t j = low; j < high; j++) {
            int32_t t = (int32_t)board->order[j];
            if (board->seen[t] != stamp && board->slice[t].end_ns > slice->start_ns &&
                changes_slice(board, x, touched, t)) {
                board->seen[t] = stamp;
                board->moved[count++] = t;
            }
        }
    }
    return count;
}

/* Flows and bundles that the moved slices have a part in, each once. */
static void collect_hit(hbp__board *board, int32_t moved, int64_t *flows, int32_t *bundles)
{
    *flows = 0;
    *bundles = 0;
    for (int32_t i = 0; i < moved; i++) {
        int32_t s = board->moved[i];
        for (int64_t j = board->flow_first[s]; j < board->flow_first[s + 1]; j++)
            if (board->flow_seen[board->flow_of[j]] != board->stamp) {
                board->flow_seen[board->flow_of[j]] = board->stamp;
                board->flow_hit[(*flows)++] = board->flow_of[j];
            }
        for (int64_t j = board->share_first[s]; j < board->share_first[s + 1]; j++)
            if (board->bundle_seen[board->share[j].bundle] != board->stamp) {
                board->bundle_seen[board->share[j].bundle] = board->stamp;
                board->bundles_hit[(*bundles)++] = board->share[j].bundle;
            }
    }
}

static void exchange_ranks(hbp__board *board, const hbp__exchange *x, int32_t s)
{
    uint64_t *set = hbp__board_set(board, s);
    int32_t *in_domain = hbp__board_domains(board, s);
    for (int32_t i = 0; i < x->pairs; i++) {
        int32_t a = x->first[i], b = x->second[i], has_a = hbp__has_rank(set, a);
        if (has_a == hbp__has_rank(set, b))
            continue;
        in_domain[board->domain_of[a]] += 1 - 2 * has_a;
        in_domain[board->domain_of[b]] += 2 * has_a - 1;
        hbp__flip_rank(set, a);
        hbp__flip_rank(set, b);
    }
}

/* Adds to rank_bytes, of the exchange's ranks, what the moved slices and the bundles hit take there, or takes
 * it away. */
static void count_bytes(hbp__board *board, const hbp__exchange *x, int32_t moved, int32_t bundles, int sign)
{
    for (int32_t i = 0; i < 2 * x->pairs; i++) {
        int32_t r = i < x->pairs ? x->first[i] : x->second[i - x->pairs];
        int64_t bytes = 0;
        for (int32_t j = 0; j < moved; j++)
            if (hbp__has_rank(hbp__board_set(board, board->moved[j]), r))
                bytes += board->own_bytes[board->moved[j]];
        for (int32_t j = 0; j < bundles; j++)
            bytes += hbp__board_held(board, board->bundles_hit[j], r);
        board->rank_bytes[r] += sign * bytes;
    }
}

static int64_t exchange_over(const hbp__board *board, const hbp__exchange *x)
{
    int64_t over = 0, limit = board->problem->limit_bytes;
    for (int32_t i = 0; i < x->pairs; i++) {
        int64_t a = board->rank_bytes[x->first[i]], b = board->rank_bytes[x->second[i]];
        over += (a > limit ? a - limit : 0) + (b > limit ? b - limit : 0);
    }
    return over;
}

/* Costs of what was hit, anew; returns by how much all costs rise. Old ones go to old_cost. */
static int64_t renew_costs(hbp__board *board, int32_t moved, int64_t flows, int32_t bundles)
{
    int64_t change = 0, *old = board->old_cost;
    for (int64_t i = 0; i < flows; i++) {
        hbp__board_flow *flow = &board->flow[board->flow_hit[i]];
        *old = flow->cost;
        flow->cost = hbp__board_cost_flow(board, flow);
        change += flow->cost - *old++;
    }
    for (int32_t i = 0; i < bundles; i++) {
        hbp__bundle *bundle = &board->bundle[board->bundles_hit[i]];
        *old = bundle->cost;
        bundle->cost = hbp__board_cost_bundle(board, bundle);
        change += bundle->cost - *old++;
        board->work += 4 * (bundle->end - bundle->first) * (board->words + board->domains);
    }
    for (int32_t i = 0; i < moved; i++) {
        int64_t *cost = &board->own_cost[board->moved[i]];
        *old = *cost;
        *cost = hbp__board_cost_own(board, board->moved[i]);
        change += *cost - *old++;
    }
    board->work += (flows + moved) * (16 + board->words + board->domains);
    return change;
}

static void restore_costs(hbp__board *board, int32_t moved, int64_t flows, int32_t bundles)
{
    const int64_t *old = board->old_cost;
    for (int64_t i = 0; i < flows; i++)
        board->flow[board->flow_hit[i]].cost = *old++;
    for (int32_t i = 0; i < bundles; i++)
        board->bundle[board->bundles_hit[i]].cost = *old++;
    for (int32_t i = 0; i < moved; i++)
        board->own_cost[board->moved[i]] = *old++;
}

static void keep_exchange(hbp__board *board, int32_t moved, int64_t change)
{
    board->cost += change;
    board->changes++;
    for (int32_t i = 0; i < moved; i++)
        board->changed[board->moved[i]] = board->changes;
}

/* Bytes are looked at only when the cost does not settle it already. */
static int32_t judge_exchange(hbp__board *board, const hbp__exchange *x, int32_t seed, int32_t reach,
                              int32_t forced)
{
    int32_t moved = collect_moved(board, x, seed, reach), bundles;
    int64_t flows;
    if (!moved)
        return 0;
    collect_hit(board, moved, &flows, &bundles);
    for (int32_t i = 0; i < moved; i++)
        exchange_ranks(board, x, board->moved[i]);
    board->work += (int64_t)moved * x->pairs;
    int64_t change = renew_costs(board, moved, flows, bundles), over = board->over_bytes;
    int32_t taken = 0;
    if (board->problem->limit_bytes == INT64_MAX) {
        if (forced || change < 0) {
            keep_exchange(board, moved, change);
            return 1;
        }
    } else if (forced || change < 0 || over > 0) {
        /* The bytes before are those with the slices put back. */
        for (int32_t i = 0; i < moved; i++)
            exchange_ranks(board, x, board->moved[i]);
        for (int32_t i = 0; i < x->pairs; i++) {
            board->old_bytes[2 * i] = board->rank_bytes[x->first[i]];
            board->old_bytes[2 * i + 1] = board->rank_bytes[x->second[i]];
        }
        over -= exchange_over(board, x);
        count_bytes(board, x, moved, bundles, -1);
        for (int32_t i = 0; i < moved; i++)
            exchange_ranks(board, x, board->moved[i]);
        count_bytes(board, x, moved, bundles, 1);
        over += exchange_over(board, x);
        board->work += (int64_t)4 * x->pairs * (moved + 4 * bundles);
        taken = over < board->over_bytes || (over == board->over_bytes && (forced || change < 0));
        if (taken) {
            board->over_bytes = over;
            keep_exchange(board, moved, change);
            return 1;
        }
        for (int32_t i = 0; i < x->pairs; i++) {
            board->rank_bytes[x->first[i]] = board->old_bytes[2 * i];
            board->rank_bytes[x->second[i]] = board->old_bytes[2 * i + 1];
        }
    }
    for (int32_t i = 0; i < moved; i++)
        exchange_ranks(board, x, board->moved[i]);
    restore_costs(board, moved, flows, bundles);
    return 0;
}

int32_t hbp__board_try(hbp__board *board, const hbp__exchange *exchange, int32_t s, int32_t reach)
{
    return judge_exchange(board, exchange, s, reach, 0);
}

int32_t hbp__board_force(hbp__board *board, const hbp__exchange *exchange, int32_t s, int32_t reach)
{
    return judge_exchange(board, exchange, s, reach, 1);
}
