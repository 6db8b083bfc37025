/* What ranks hold, and would hold. */
#include <string.h>

#include "base/checked.h"
#include "tasks/place/place_board.h"

int64_t hbp__board_held(const hbp__board *board, int32_t k, int32_t r)
{
    int64_t bytes = 0;
    for (int64_t u = board->bundle[k].first; u < board->bundle[k].end; u++)
        if (board->user[u].bytes > bytes && hbp__has_rank(hbp__board_set(board, board->user[u].slice), r))
            bytes = board->user[u].bytes;
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
static void hold(hbp__board *board, const uint64_t *set, int64_t bytes)
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
            hold(board, hbp__board_set(board, board->user[u].slice), board->user[u].bytes);
}

/* Adds what the ranks of a set hold to their bytes, and forgets it. */
static void settle(hbp__board *board, const uint64_t *set)
{
    for (int64_t w = 0; w < board->words; w++)
        for (uint64_t rest = set[w]; rest; rest &= rest - 1) {
            int64_t r = w * 64 + hbp__lowest_bit(rest);
            board->rank_bytes[r] = hbp__add_saturating(board->rank_bytes[r], board->held[r]);
            board->held[r] = 0;
        }
}

void hbp__board_added_all(hbp__board *board, int32_t s, int64_t *added)
{
    for (int32_t r = 0; r < board->gpus; r++)
        added[r] = board->own_bytes[s];
    for (int64_t i = board->share_first[s]; i < board->share_first[s + 1]; i++) {
        const hbp__bundle *bundle = &board->bundle[board->share[i].bundle];
        int64_t bytes = board->share[i].bytes;
        hold_bundle(board, bundle);
        for (int32_t r = 0; r < board->gpus; r++)
            if (bytes > board->held[r])
                added[r] = hbp__add_saturating(added[r], bytes - board->held[r]);
        for (int64_t u = bundle->first; u < bundle->end; u++)
            hold(board, hbp__board_set(board, board->user[u].slice), 0);
    }
}

void hbp__board_measure_bytes(hbp__board *board)
{
    memset(board->rank_bytes, 0, (size_t)board->gpus * sizeof *board->rank_bytes);
    for (int32_t s = 0; s < board->count; s++) {
        if (board->own_bytes[s] > 0)
            hold(board, hbp__board_set(board, s), board->own_bytes[s]);
        settle(board, hbp__board_set(board, s));
    }
    for (int32_t k = 0; k < board->bundles; k++) {
        const hbp__bundle *bundle = &board->bundle[k];
        hold_bundle(board, bundle);
        for (int64_t u = bundle->first; u < bundle->end; u++)
            settle(board, hbp__board_set(board, board->user[u].slice));
    }
    board->over_bytes = 0;
    for (int32_t r = 0; r < board->gpus; r++)
        if (board->rank_bytes[r] > board->problem->limit_bytes)
            board->over_bytes =
                hbp__add_saturating(board->over_bytes, board->rank_bytes[r] - board->problem->limit_bytes);
}
