/* Placement as Spindle's released code does it: hill climbing over the order of slices that start together. A
 * round is O(slices^3). */
#include "tasks/place/place_methods.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"

/* 1 in the prices of orders. */
#define ONE (INT64_C(1) << 32)

typedef struct climb {
    hbp__board *board;
    int32_t *meta_op;   /* [gpus] that ran last on each; -1: none */
    int32_t *free;      /* [gpus] */
    int32_t frees;      /* of them */
    const uint32_t *of; /* slices that start together */
    int32_t count;      /* of them; at most gpus */
    int32_t *same;      /* [count x (frees + 1)] free ranks before one that ran the slice's MetaOp last */
    int64_t same_room;
    int32_t *order; /* [gpus] */
    int32_t *trial; /* [gpus] */
    int32_t *ranks; /* [gpus] */
    uint64_t *used; /* [words] */
    int64_t looks;
} climb;

static hbp_status take_climb(hbp__board *board, climb *c)
{
    hbp_context *context = board->context;
    uint64_t gpus = (uint64_t)board->gpus;
    *c = (climb){.board = board};
    c->meta_op = hbp__take(context, gpus, sizeof *c->meta_op);
    c->free = hbp__take(context, gpus, sizeof *c->free);
    c->order = hbp__take(context, gpus, sizeof *c->order);
    c->trial = hbp__take(context, gpus, sizeof *c->trial);
    c->ranks = hbp__take(context, gpus, sizeof *c->ranks);
    c->used = hbp__take(context, (uint64_t)board->words, sizeof *c->used);
    HBP__TRY(hbp__scratch_check(context, "the placement of slices"));
    for (int32_t r = 0; r < board->gpus; r++)
        c->meta_op[r] = -1;
    return HBP_OK;
}

/* Counts, so that a slice is priced anywhere in O(1). */
static hbp_status count_same(climb *c)
{
    hbp__board *board = c->board;
    int64_t row = c->frees + 1, wanted = row * c->count;
    if (wanted > c->same_room) {
        int32_t *same = hbp__renew(&board->context->memory, c->same, (uint64_t)wanted, sizeof *same);
        if (!same)
            return hbp__fail_memory(board->context, "the placement of slices");
        c->same = same;
        c->same_room = wanted;
    }
    for (int32_t i = 0; i < c->count; i++) {
        int32_t *same = c->same + i * row, m = board->slice[c->of[i]].meta_op;
        same[0] = 0;
        for (int32_t j = 0; j < c->frees; j++)
            same[j + 1] = same[j] + (c->meta_op[c->free[j]] == m);
    }
    return HBP_OK;
}

static int64_t price_order(climb *c, const int32_t *order)
{
    int64_t sum = 0;
    int32_t at = 0;
    for (int32_t i = 0; i < c->count; i++) {
        int32_t gpus = c->board->slice[c->of[order[i]]].gpus;
        const int32_t *same = c->same + (int64_t)order[i] * (c->frees + 1);
        int32_t changed = gpus - (same[at + gpus] - same[at]);
        sum += changed ? ONE / gpus * changed : -ONE;
        at += gpus;
    }
    c->looks += c->count;
    return sum;
}

/* Takes the trial when it is cheaper. */
static int settle_order(climb *c, int64_t *best)
{
    int64_t cost = price_order(c, c->trial);
    if (cost >= *best)
        return 0;
    *best = cost;
    memcpy(c->order, c->trial, (size_t)c->count * sizeof *c->order);
    return 1;
}

static int step_order(climb *c, int64_t *best)
{
    size_t bytes = (size_t)c->count * sizeof *c->order;
    for (int32_t i = 0; i < c->count; i++)
        for (int32_t j = i + 1; j < c->count; j++) {
            memcpy(c->trial, c->order, bytes);
            c->trial[i] = c->order[j];
            c->trial[j] = c->order[i];
            if (settle_order(c, best))
                return 1;
        }
    for (int32_t i = 0; i < c->count; i++)
        for (int32_t j = 0; j < c->count; j++) {
            if (j == i || c->looks > HBP__PLACE_PAPER_LOOKS)
                continue;
            memcpy(c->trial, c->order, bytes);
            if (i < j)
                memmove(c->trial + i, c->order + i + 1, (size_t)(j - i) * sizeof *c->order);
            else
                memmove(c->trial + j + 1, c->order + j, (size_t)(i - j) * sizeof *c->order);
            c->trial[j] = c->order[i];
            if (settle_order(c, best))
                return 1;
        }
    return 0;
}

/* Places board->order[begin .. end), which start together. */
static hbp_status place_together(climb *c, int32_t begin, int32_t end)
{
    hbp__board *board = c->board;
    c->of = board->order + begin;
    c->count = end - begin;
    c->frees = 0;
    c->looks = 0;
    hbp__board_used(board, (int32_t)c->of[0], c->used);
    for (int32_t r = 0; r < board->gpus; r++)
        if (!hbp__has_rank(c->used, r))
            c->free[c->frees++] = r;
    HBP__TRY(count_same(c));
    for (int32_t i = 0; i < c->count; i++)
        c->order[i] = i;
    int64_t best = price_order(c, c->order);
    while (c->looks < HBP__PLACE_PAPER_LOOKS && step_order(c, &best))
        ;
    for (int32_t i = 0, at = 0; i < c->count; i++) {
        int32_t s = (int32_t)c->of[c->order[i]];
        memcpy(c->ranks, c->free + at, (size_t)board->slice[s].gpus * sizeof *c->ranks);
        hbp__board_put(board, s, c->ranks);
        for (int32_t j = 0; j < board->slice[s].gpus; j++)
            c->meta_op[c->ranks[j]] = board->slice[s].meta_op;
        at += board->slice[s].gpus;
    }
    return HBP_OK;
}

static hbp_status place_all(climb *c)
{
    hbp__board *board = c->board;
    for (int32_t i = 0, end; i < board->count; i = end) {
        end = i + 1;
        while (end < board->count &&
               board->slice[board->order[end]].start_ns == board->slice[board->order[i]].start_ns)
            end++;
        HBP__TRY(hbp__tick(board->context, "place slices", i, board->count));
        HBP__TRY(place_together(c, i, end));
    }
    return HBP_OK;
}

hbp_status hbp__board_paper(hbp__board *board)
{
    climb c;
    int64_t mark = hbp__scratch_mark(board->context);
    hbp__board_clear(board);
    HBP__TRY(take_climb(board, &c));
    hbp_status status = place_all(&c);
    hbp__delete(&board->context->memory, c.same);
    HBP__TRY(status);
    hbp__board_measure(board);
    hbp__scratch_release(board->context, mark);
    return HBP_OK;
}
