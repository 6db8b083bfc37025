/* Placement of slices on ranks (Spindle, section 3.5): which methods are tried in which order, how much work
 * each gets, and what fits in memory. */
#include "tasks/place/place.h"

#include <string.h>

#include "base/checked.h"
#include "base/methods.h"
#include "base/quantity.h"
#include "base/scratch.h"
#include "tasks/place/place_methods.h"

typedef struct placing {
    hbp__board board;
    hbp__misfit *misfit;
    int32_t *best; /* [ranks] the best placement so far */
    int32_t *first_fit;
    int64_t best_over;
    int64_t best_cost;
    int32_t has_best;
    int64_t improve_work;
    int64_t perturb_work;
} placing;

static void load_placement(placing *p, const int32_t *ranks)
{
    for (int32_t s = 0; s < p->board.count; s++) {
        hbp__board_put(&p->board, s, ranks);
        ranks += p->board.slice[s].gpus;
    }
    hbp__board_measure(&p->board);
}

/* Remembers the placement on the board when it is the best. */
static void offer_placement(placing *p)
{
    const hbp__board *board = &p->board;
    if (p->has_best && (board->over_bytes > p->best_over ||
                        (board->over_bytes == p->best_over && board->cost >= p->best_cost)))
        return;
    p->has_best = 1;
    p->best_over = board->over_bytes;
    p->best_cost = board->cost;
    hbp__board_write(board, p->best);
}

static hbp_status improve_greedy(placing *p, int32_t how)
{
    HBP__TRY(hbp__board_greedy(&p->board, how));
    HBP__TRY(hbp__board_reuse(&p->board));
    HBP__TRY(hbp__board_improve(&p->board, p->improve_work));
    offer_placement(p);
    return HBP_OK;
}

hbp_status hbp__misfit_fail(hbp_context *context, const hbp__misfit *misfit)
{
    if (misfit->slice < 0)
        return hbp__fail(context, HBP_E_INFEASIBLE,
                         "no placement found: slices take %s at least on %d GPUs of %s",
                         hbp__say_bytes(misfit->needs_bytes).text, (int)misfit->gpus,
                         hbp__say_bytes(misfit->limit_bytes).text);
    const int64_t lacks = misfit->needs_bytes - misfit->left_bytes;
    return hbp__fail(
        context, HBP_E_INFEASIBLE,
        "slice %d (%d operators from %s) needs %s on each of %d GPUs; of those free at its time %d have "
        "it, and the freest has %s of %s left%s%s%s",
        (int)misfit->slice, (int)misfit->operators, misfit->first_operator,
        hbp__say_bytes(misfit->needs_bytes).text, (int)misfit->gpus, (int)misfit->fitting,
        hbp__say_bytes(misfit->left_bytes).text, hbp__say_bytes(misfit->limit_bytes).text,
        lacks > 0 ? ", " : "", lacks > 0 ? hbp__say_bytes(lacks).text : "", lacks > 0 ? " short" : "");
}

/* HBP_E_INFEASIBLE, and why. */
static hbp_status report_misfit(placing *p, const hbp__tight_slice *tight)
{
    const hbp__board *board = &p->board;
    const hbp__task_problem *problem = board->problem;
    *p->misfit = (hbp__misfit){.slice = tight->slice, .limit_bytes = problem->limit_bytes};
    if (tight->slice < 0) {
        p->misfit->gpus = board->gpus;
        for (int32_t s = 0; s < board->count; s++)
            p->misfit->needs_bytes = hbp__add_saturating(
                p->misfit->needs_bytes, hbp__mul_saturating(board->own_bytes[s], board->slice[s].gpus));
        return HBP_E_INFEASIBLE;
    }
    const hbp__task_slice *slice = &board->slice[tight->slice];
    int64_t o = problem->meta->meta_op[slice->meta_op].first + slice->first;
    p->misfit->operators = slice->count;
    p->misfit->first_operator = problem->graph->operators[problem->meta->operators[o]].name;
    p->misfit->gpus = slice->gpus;
    p->misfit->fitting = tight->fitting;
    p->misfit->needs_bytes = tight->needs_bytes;
    p->misfit->left_bytes = tight->left_bytes;
    return HBP_E_INFEASIBLE;
}

/* A slice that no GPU holds even alone, which no search would find room for. */
static hbp_status check_bytes(placing *p)
{
    const hbp__board *board = &p->board;
    int64_t limit = board->problem->limit_bytes;
    for (int32_t s = 0; s < board->count; s++) {
        int64_t bytes = hbp__board_alone(board, s);
        if (bytes > limit)
            return report_misfit(p, &(hbp__tight_slice){s, 0, bytes, limit});
    }
    return HBP_OK;
}

/* Methods that look at memory alone, until one fits; then as few bytes between ranks as that leaves. */
static hbp_status fit_memory(placing *p)
{
    static const int32_t methods[] = {HBP__GREEDY_SPREAD, HBP__GREEDY_THRIFT};
    for (int32_t i = 0; i < 2 && p->best_over > 0; i++)
        HBP__TRY(improve_greedy(p, methods[i]));
    if (p->best_over == 0)
        return HBP_OK;
    int32_t found;
    hbp__tight_slice tight;
    HBP__TRY(hbp__board_backtrack(&p->board, HBP__PLACE_NODES, &found, &tight));
    if (!found)
        return report_misfit(p, &tight);
    HBP__TRY(hbp__board_improve(&p->board, p->improve_work));
    offer_placement(p);
    return HBP_OK;
}

/* One start, a short search; where that does not fit, the methods that look at memory. */
static hbp_status place_hastily(placing *p)
{
    p->improve_work /= 2;
    HBP__TRY(improve_greedy(p, HBP__GREEDY_FLOWS));
    return p->best_over > 0 ? fit_memory(p) : HBP_OK;
}

/* The best of several starts; where weights have drawn it to more flows than consecutive ranks have, these,
 * with flows alone counted. */
static hbp_status place_by_flows(placing *p)
{
    hbp__board *board = &p->board;
    HBP__TRY(hbp__board_greedy(board, HBP__GREEDY_FIRST));
    hbp__board_write(board, p->first_fit);
    int fits = board->over_bytes == 0;
    HBP__TRY(hbp__board_improve(board, p->improve_work / 2));
    offer_placement(p);
    HBP__TRY(improve_greedy(p, HBP__GREEDY_FLOWS));
    HBP__TRY(improve_greedy(p, HBP__GREEDY_BACKWARD));
    if (p->best_over > 0)
        HBP__TRY(fit_memory(p));
    load_placement(p, p->best);
    HBP__TRY(hbp__board_perturb(board, board->problem->seed, p->perturb_work));
    offer_placement(p);
    if (!fits || board->problem->gradient_part ||
        hbp__board_flow_cost(board, p->best) <= hbp__board_flow_cost(board, p->first_fit))
        return HBP_OK;
    board->counts_weights = 0;
    board->least_cost = 0;
    load_placement(p, p->first_fit);
    HBP__TRY(hbp__board_improve(board, p->improve_work));
    hbp__board_write(board, p->best);
    return HBP_OK;
}

static hbp_status place_all(placing *p, int32_t placement)
{
    hbp__board *board = &p->board;
    HBP__TRY(check_bytes(p));
    if (placement != HBP__PLACEMENT_FLOWS) {
        HBP__TRY(placement == HBP__PLACEMENT_SPINDLE ? hbp__board_paper(board)
                                                     : hbp__board_greedy(board, HBP__GREEDY_FIRST));
        if (board->over_bytes == 0) {
            hbp__board_write(board, p->best);
            return HBP_OK;
        }
    }
    return board->problem->hasty ? place_hastily(p) : place_by_flows(p);
}

/* In full for some pairs of a slice and a GPU; below less in proportion, above more. */
static void set_work(placing *p)
{
    int64_t pairs = HBP__PLACE_PARTS * (int64_t)p->board.count * p->board.gpus;
    int64_t parts = hbp__min_i64(pairs / HBP__PLACE_FULL_PAIRS, HBP__PLACE_PARTS);
    parts = hbp__max_i64(parts, pairs / HBP__PLACE_MANY_PAIRS);
    parts = hbp__max_i64(HBP__PLACE_LEAST_PARTS, hbp__min_i64(parts, HBP__PLACE_MOST_PARTS));
    p->improve_work = parts * (HBP__PLACE_IMPROVE_WORK / HBP__PLACE_PARTS);
    p->perturb_work = parts * (HBP__PLACE_PERTURB_WORK / HBP__PLACE_PARTS);
}

hbp_status hbp__place_slices(hbp_context *context, const hbp__task_problem *problem,
                             const hbp__task_slices *slices, int32_t placement,
                             const hbp_task_schedule *previous, int32_t *ranks, hbp__misfit *misfit)
{
    placing p = {.misfit = misfit};
    int64_t mark = hbp__scratch_mark(context);
    if (placement < HBP__PLACEMENT_FLOWS || placement > HBP__PLACEMENT_SEQUENTIAL)
        return hbp__fail(context, HBP_E_INVALID, "placement %d; it is 0 to %d", (int)placement,
                         HBP__PLACEMENT_SEQUENTIAL);
    HBP__TRY(hbp__board_open(context, problem, slices, previous, &p.board));
    set_work(&p);
    uint64_t total = 0;
    for (int64_t s = 0; s < slices->count; s++)
        total += (uint64_t)slices->slice[s].gpus;
    p.best = hbp__take(context, total, sizeof *p.best);
    p.first_fit = hbp__take(context, total, sizeof *p.first_fit);
    HBP__TRY(hbp__scratch_check(context, "the placement of slices"));
    HBP__TRY(place_all(&p, placement));
    memcpy(ranks, p.best, (size_t)total * sizeof *ranks);
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
