#include "tasks/place/place_methods.h"

#include "failing.h"
#include "keep.h"
#include "place.h"

/* Slices of independent MetaOps "a", "b", ..., one after the other in waves: size and MetaOp of each. */
typedef struct waved {
    int32_t meta_op;
    int32_t gpus;
    int32_t wave;
} waved;

static void open_waves(hbp_context *context, const waved *slices, int32_t count, place_case *c)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    hbp_graph *graph = new_graph(context);
    hbp_operator o = {.struct_size = sizeof o};
    int32_t done[4] = {0};
    o.profile = add_falling_profile(context, graph, 1000, 0, 4);
    o.batch = 4;
    for (int32_t i = 0; i < 4; i++) {
        int32_t operators = 0;
        for (int32_t s = 0; s < count; s++)
            operators += slices[s].meta_op == i;
        add_chain(context, graph, &o, names[i], "lm", names[i], operators ? operators : 1);
    }
    open_case(context, graph, 8, 4, INT64_MAX, c);
    for (int32_t s = 0; s < count; s++) {
        const waved *w = &slices[s];
        hbp__task_slice slice = {w->meta_op,
                                 done[w->meta_op]++,
                                 1,
                                 w->gpus,
                                 w->wave,
                                 1000 * w->wave,
                                 1000 * w->wave + 1000 / w->gpus};
        OK(context, hbp__task_slices_add(context, &c->slices, &slice));
    }
    ready_case(c);
}

static void expect(place_case *c, const int32_t *ranks)
{
    hbp__board board;
    OK(c->context, hbp__board_open(c->context, &c->problem, &c->slices, NULL, &board));
    OK(c->context, hbp__board_paper(&board));
    check_board(c, &board);
    for (int64_t i = 0; i < c->first[c->slices.count]; i++)
        ck_assert_int_eq(c->ranks[i], ranks[i]);
}

/* Counted by hand. */
START_TEST_IN_CONTEXT(orders_follow_meta_ops)
{
    place_case c;
    /* The second wave comes in the other order, and goes back to where each was. */
    const waved swapped[] = {{0, 4, 0}, {1, 2, 0}, {2, 2, 0}, {2, 2, 1}, {1, 2, 1}, {0, 4, 1}};
    open_waves(context, swapped, 6, &c);
    expect(&c, (int32_t[]){0, 1, 2, 3, 4, 5, 6, 7, 6, 7, 4, 5, 0, 1, 2, 3});
    close_case(&c);
    /* b stays whole behind a, which shrinks: d before b costs 1 for d, 0 - 1 for b; a, then d, then b. */
    const waved shrunk[] = {{0, 4, 0}, {1, 4, 0}, {1, 4, 1}, {0, 2, 1}, {3, 2, 1}};
    open_waves(context, shrunk, 5, &c);
    expect(&c, (int32_t[]){0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7, 0, 1, 2, 3});
    close_case(&c);
}
END_TEST

static int64_t price_of(const place_case *c, const int32_t *ran, const int32_t *batch, int32_t count,
                        const int32_t *free_ranks)
{
    int64_t sum = 0;
    for (int32_t i = 0, at = 0; i < count; i++) {
        const hbp__task_slice *slice = &c->slices.slice[batch[i]];
        int32_t changed = 0;
        for (int32_t j = 0; j < slice->gpus; j++)
            changed += ran[free_ranks[at++]] != slice->meta_op;
        sum += changed ? (INT64_C(1) << 32) / slice->gpus * changed : -(INT64_C(1) << 32);
    }
    return sum;
}

/* Slices that start together lie in some order on consecutive free ranks; no swap of two, nor moving one,
 * makes that order cheaper. */
START_TEST_IN_CONTEXT(orders_are_local_optima)
{
    hbp__rng rng = hbp__rng_make(71, 0, 0);
    int32_t batches = 0;
    for (int32_t i = 0; i < 300; i++) {
        place_case c;
        hbp__board board;
        int32_t ran[16];
        open_random_case(context, &rng, NULL, 16, 4, INT64_MAX, &c);
        OK(context, hbp__board_open(context, &c.problem, &c.slices, NULL, &board));
        OK(context, hbp__board_paper(&board));
        check_board(&c, &board);
        memset(ran, 0xff, sizeof ran);
        for (int32_t begin = 0, end; begin < board.count; begin = end) {
            int32_t batch[16], trial[16], free_ranks[16], count = 0, frees = 0,
                                                          first = (int32_t)board.order[begin];
            uint64_t used = 0;
            for (end = begin;
                 end < board.count && board.slice[board.order[end]].start_ns == board.slice[first].start_ns;
                 end++)
                batch[count++] = (int32_t)board.order[end];
            for (int32_t j = 0; j < begin; j++)
                if (board.slice[board.order[j]].end_ns > board.slice[first].start_ns)
                    used |= *hbp__board_set(&board, (int32_t)board.order[j]);
            for (int32_t r = 0; r < 16; r++)
                if (!hbp__has_rank(&used, r))
                    free_ranks[frees++] = r;
            /* In order of their ranks, which are the first free ones. */
            for (int32_t a = 1; a < count; a++)
                for (int32_t b = a; b > 0 && c.ranks[c.first[batch[b]]] < c.ranks[c.first[batch[b - 1]]];
                     b--) {
                    int32_t s = batch[b];
                    batch[b] = batch[b - 1];
                    batch[b - 1] = s;
                }
            for (int32_t a = 0, at = 0; a < count; a++)
                for (int64_t j = c.first[batch[a]]; j < c.first[batch[a] + 1]; j++, at++) {
                    ck_assert_int_eq(c.ranks[j], free_ranks[at]);
                }
            int64_t price = price_of(&c, ran, batch, count, free_ranks);
            for (int32_t a = 0; a < count; a++)
                for (int32_t b = 0; b < count; b++) {
                    memcpy(trial, batch, sizeof trial);
                    trial[a] = batch[b];
                    trial[b] = batch[a];
                    ck_assert_int_ge(price_of(&c, ran, trial, count, free_ranks), price);
                    int32_t rest = 0;
                    for (int32_t j = 0; j < count; j++)
                        if (j != a)
                            trial[rest++] = batch[j];
                    memmove(trial + b + 1, trial + b, (size_t)(count - 1 - b) * sizeof *trial);
                    trial[b] = batch[a];
                    ck_assert_int_ge(price_of(&c, ran, trial, count, free_ranks), price);
                }
            for (int32_t a = 0; a < count; a++)
                for (int64_t j = c.first[batch[a]]; j < c.first[batch[a] + 1]; j++)
                    ran[c.ranks[j]] = c.slices.slice[batch[a]].meta_op;
            batches += count > 1;
        }
        close_case(&c);
    }
    ck_assert_int_gt(batches, 300);
}
END_TEST

TEST_MAIN("place_paper", orders_follow_meta_ops, orders_are_local_optima)
