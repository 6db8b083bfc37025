/* Micro-batches under way: a board is opened, copied, read from a solution and written as one. */
#include <string.h>

#include "base/scratch.h"
#include "step/builder.h"

hbp_status hbp__step_board_open(const hbp__step *step, int64_t micro_batches, hbp__step_board *b)
{
    hbp_context *context = step->context;
    uint64_t rows = (uint64_t)micro_batches, count = (uint64_t)step->count;
    memset(b, 0, sizeof *b);
    b->ranks = step->ranks;
    b->group = hbp__take(context, rows * (uint64_t)step->ranks, sizeof *b->group);
    b->groups = hbp__take(context, rows, sizeof *b->groups);
    b->makespan = hbp__take(context, rows, sizeof *b->makespan);
    b->home = hbp__take(context, count, sizeof *b->home);
    b->next = hbp__take(context, count, sizeof *b->next);
    return hbp__scratch_check(context, "the search");
}

void hbp__step_board_copy(const hbp__step *step, const hbp__step_board *from, hbp__step_board *to)
{
    size_t count = (size_t)step->count;
    to->micro_batches = from->micro_batches;
    for (int64_t m = 0; m < from->micro_batches; m++) {
        to->groups[m] = from->groups[m];
        to->makespan[m] = from->makespan[m];
        memcpy(to->group + m * to->ranks, from->group + m * from->ranks,
               (size_t)from->groups[m] * sizeof *to->group);
    }
    memcpy(to->home, from->home, count * sizeof *to->home);
    memcpy(to->next, from->next, count * sizeof *to->next);
}

double hbp__step_board_time(const hbp__step_board *b)
{
    double sum = 0;
    for (int64_t m = 0; m < b->micro_batches; m++)
        sum += b->makespan[m];
    return sum;
}

void hbp__step_board_drop(hbp__step_board *board, int64_t m)
{
    int64_t last = --board->micro_batches;
    if (m == last)
        return;
    board->groups[m] = board->groups[last];
    board->makespan[m] = board->makespan[last];
    for (int64_t i = 0; i < board->groups[m]; i++) {
        hbp__step_group *group = &board->group[m * board->ranks + i];
        *group = board->group[last * board->ranks + i];
        for (int64_t k = group->head; k != HBP__NONE; k = board->next[k])
            board->home[k] = m * board->ranks + i;
    }
}

void hbp__step_board_trim(hbp__step_board *board)
{
    for (int64_t m = board->micro_batches - 1; m >= 0 && board->micro_batches > 1; m--)
        if (!board->groups[m])
            hbp__step_board_drop(board, m);
}

hbp_status hbp__step_board_read(const hbp__step *step, const hbp__step_solution *solution,
                                hbp__step_board *board)
{
    board->micro_batches = solution->micro_batches;
    for (int64_t m = 0; m < solution->micro_batches; m++) {
        board->groups[m] = solution->first[m + 1] - solution->first[m];
        board->makespan[m] = step->cost->terms.pack_ns;
        for (int64_t i = 0; i < board->groups[m]; i++)
            board->group[m * board->ranks + i] =
                hbp__step_group_empty(solution->degree[solution->first[m] + i], 0);
    }
    for (int64_t k = 0; k < step->count; k++) {
        HBP__TRY(hbp__tick_row(step->context, "step", k, step->count));
        int64_t g = solution->group[k], low = 0, high = solution->micro_batches;
        while (high - low > 1) {
            int64_t middle = low + (high - low) / 2;
            if (solution->first[middle] <= g)
                low = middle;
            else
                high = middle;
        }
        int64_t to = low * board->ranks + g - solution->first[low];
        hbp__step_group *group = &board->group[to];
        hbp__step_group_add(step, group, k, 1);
        group->time = hbp__step_group_time(step, group->degree, group->load);
        board->next[k] = group->head;
        group->head = k;
        board->home[k] = to;
        if (group->time > board->makespan[low])
            board->makespan[low] = group->time;
    }
    return HBP_OK;
}

hbp_status hbp__step_board_write(const hbp__step *step, const hbp__step_board *b,
                                 hbp__step_solution *solution)
{
    int64_t groups = 0;
    for (int64_t m = 0; m < b->micro_batches; m++)
        groups += b->groups[m];
    HBP__TRY(hbp__step_solution_open(step, b->micro_batches, groups, solution));
    groups = 0;
    for (int64_t m = 0; m < b->micro_batches; m++) {
        solution->first[m] = groups;
        for (int64_t i = 0; i < b->groups[m]; i++, groups++) {
            const hbp__step_group *group = &b->group[m * b->ranks + i];
            solution->degree[groups] = group->degree;
            for (int64_t k = group->head; k != HBP__NONE; k = b->next[k])
                solution->group[k] = groups;
        }
    }
    solution->first[b->micro_batches] = groups;
    return hbp__step_solution_price(step, solution);
}
