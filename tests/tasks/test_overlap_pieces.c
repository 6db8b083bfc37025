#include "tasks/overlap/overlap_pieces.h"

#include "keep.h"
#include "tasks/lists.h"

/* Whether the pieces before i leave `gpus` free all the time from `start` to `end`. */
static int fits(const hbp__piece_list *list, int32_t i, int64_t start, int64_t end, int32_t gpus, int32_t all)
{
    for (int32_t at = -1; at < i; at++) {
        int64_t time = at < 0 ? start : list->piece[at].start_ns;
        int32_t used = gpus;
        if (time < start || time >= end)
            continue;
        for (int32_t k = 0; k < i; k++)
            used += list->piece[k].start_ns <= time && time < list->piece[k].end_ns ? list->piece[k].gpus : 0;
        if (used > all)
            return 0;
    }
    return 1;
}

/* Each piece in turn at the least time, of those when it is ready or some piece ends, that suits. */
static void place_slowly(const hbp__scheduler *scheduler, hbp__piece_list *list, int64_t floor_ns,
                         int32_t keep)
{
    const hbp__meta_graph *meta = scheduler->problem->meta;
    for (int32_t i = keep; i < list->count; i++) {
        hbp__piece *piece = &list->piece[i];
        int64_t ready = floor_ns, ns = piece->count * scheduler->curve[piece->meta_op]->time_ns[piece->size];
        for (int32_t k = 0; k < i; k++) {
            int waits = list->piece[k].meta_op == piece->meta_op;
            for (int64_t e = 0; e < meta->edge_count; e++)
                waits |= meta->edges[e].from == list->piece[k].meta_op && meta->edges[e].to == piece->meta_op;
            ready = waits && list->piece[k].end_ns > ready ? list->piece[k].end_ns : ready;
        }
        int64_t best = INT64_MAX;
        for (int32_t k = -1; k < i; k++) {
            int64_t start = k < 0 ? ready : list->piece[k].end_ns;
            if (start >= ready && start < best &&
                fits(list, i, start, start + ns, piece->gpus, scheduler->problem->gpus))
                best = start;
        }
        piece->start_ns = best;
        piece->end_ns = best + ns;
    }
}

static void check_same_times(const hbp__piece_list *a, const hbp__piece_list *b)
{
    ck_assert_int_eq(a->count, b->count);
    for (int32_t i = 0; i < a->count; i++) {
        ck_assert_int_eq(a->piece[i].meta_op, b->piece[i].meta_op);
        ck_assert_int_eq(a->piece[i].start_ns, b->piece[i].start_ns);
        ck_assert_int_eq(a->piece[i].end_ns, b->piece[i].end_ns);
    }
}

START_TEST(pieces_start_as_early_as_they_can)
{
    hbp__rng rng = hbp__rng_make(51, 0, 0);
    for (int trial = 0; trial < 1000; trial++) {
        bench b;
        bench_open(&b, &rng, NULL);
        random_list(&b.scheduler, &rng, &b.list);
        hbp__pieces_copy(&b.other, &b.list);
        ck_assert(hbp__pieces_schedule(&b.scheduler, &b.list, INT64_MAX));
        check_list(b.context, &b.planned, &b.scheduler, &b.list);
        place_slowly(&b.scheduler, &b.other, 0, 0);
        check_same_times(&b.list, &b.other);
        int64_t makespan = b.list.makespan_ns;
        ck_assert(hbp__pieces_schedule(&b.scheduler, &b.list, makespan));
        ck_assert(!hbp__pieces_schedule(&b.scheduler, &b.list, makespan - 1));
        bench_close(&b);
    }
}
END_TEST

/* Long lists and short ones, without and with what is known of gaps, which makes no difference. */
START_TEST(what_is_known_of_gaps_changes_nothing)
{
    static int64_t no_gap[HBP__GAP_GPUS * HBP__GAP_TIMES];
    const graph_sizes sizes = {.tasks = 30, .chain = 4, .most_gpus = 8, .all_tasks = 1};
    hbp__rng rng = hbp__rng_make(55, 0, 0);
    int learned = 0;
    for (int trial = 0; trial < 330; trial++) {
        bench b;
        bench_open(&b, &rng, trial < 30 ? &sizes : NULL);
        random_list(&b.scheduler, &rng, &b.list);
        hbp__pieces_copy(&b.other, &b.list);
        place_slowly(&b.scheduler, &b.other, 0, 0);
        ck_assert_ptr_null(b.scheduler.no_gap);
        for (int with = 0; with < 2; with++) {
            b.scheduler.no_gap = with ? no_gap : NULL;
            ck_assert(hbp__pieces_schedule(&b.scheduler, &b.list, INT64_MAX));
            check_same_times(&b.list, &b.other);
        }
        for (int i = 0; i < HBP__GAP_GPUS * HBP__GAP_TIMES; i++)
            learned += no_gap[i] > 0;
        hbp__pieces_sort(&b.scheduler, &b.list);
        int64_t floor_ns = b.list.piece[b.list.count / 3].start_ns;
        int32_t keep = 0;
        while (b.list.piece[keep].start_ns < floor_ns)
            keep++;
        hbp__pieces_copy(&b.other, &b.list);
        ck_assert(hbp__pieces_schedule_from(&b.scheduler, &b.list, floor_ns, INT64_MAX));
        place_slowly(&b.scheduler, &b.other, floor_ns, keep);
        check_same_times(&b.list, &b.other);
        bench_close(&b);
    }
    ck_assert_int_gt(learned, 0);
}
END_TEST

START_TEST(an_order_against_precedence_is_refused)
{
    hbp__rng rng = hbp__rng_make(52, 0, 0);
    int32_t refused = 0;
    for (int trial = 0; trial < 200; trial++) {
        bench b;
        bench_open(&b, &rng, NULL);
        random_list(&b.scheduler, &rng, &b.list);
        int32_t i = (int32_t)hbp__rng_below(&rng, (uint64_t)b.list.count), wrong = 0;
        hbp__piece last = b.list.piece[i];
        memmove(&b.list.piece[1], b.list.piece, (size_t)i * sizeof last);
        b.list.piece[0] = last;
        const hbp__meta_graph *meta = &b.planned.meta;
        wrong = meta->in_first[last.meta_op] < meta->in_first[last.meta_op + 1];
        ck_assert_int_eq(hbp__pieces_schedule(&b.scheduler, &b.list, INT64_MAX), !wrong);
        refused += wrong;
        bench_close(&b);
    }
    ck_assert_int_gt(refused, 20);
}
END_TEST

START_TEST(again_in_order_of_starts_nothing_is_later)
{
    hbp__rng rng = hbp__rng_make(53, 0, 0);
    int32_t shorter = 0;
    for (int trial = 0; trial < 1000; trial++) {
        bench b;
        bench_open(&b, &rng, NULL);
        random_list(&b.scheduler, &rng, &b.list);
        ck_assert(hbp__pieces_schedule(&b.scheduler, &b.list, INT64_MAX));
        int64_t first = b.list.makespan_ns, area = b.list.area_ns;
        hbp__pieces_sort(&b.scheduler, &b.list);
        hbp__pieces_copy(&b.other, &b.list);
        for (int32_t i = 1; i < b.list.count; i++)
            ck_assert_int_le(b.list.piece[i - 1].start_ns, b.list.piece[i].start_ns);
        ck_assert(hbp__pieces_schedule(&b.scheduler, &b.list, first));
        for (int32_t i = 0; i < b.list.count; i++)
            ck_assert_int_le(b.list.piece[i].start_ns, b.other.piece[i].start_ns);
        hbp__pieces_justify(&b.scheduler, &b.list, 4);
        check_list(b.context, &b.planned, &b.scheduler, &b.list);
        ck_assert_int_le(b.list.makespan_ns, first);
        ck_assert_int_eq(b.list.area_ns, area);
        shorter += b.list.makespan_ns < first;
        bench_close(&b);
    }
    ck_assert_int_gt(shorter, 300);
}
END_TEST

START_TEST(what_comes_before_a_change_stays)
{
    hbp__rng rng = hbp__rng_make(54, 0, 0);
    for (int trial = 0; trial < 1000; trial++) {
        bench b;
        bench_open(&b, &rng, NULL);
        random_list(&b.scheduler, &rng, &b.list);
        ck_assert(hbp__pieces_schedule(&b.scheduler, &b.list, INT64_MAX));
        hbp__pieces_sort(&b.scheduler, &b.list);
        int32_t i = (int32_t)hbp__rng_below(&rng, (uint64_t)b.list.count), keep = 0;
        int64_t floor_ns = b.list.piece[i].start_ns;
        while (b.list.piece[keep].start_ns < floor_ns)
            keep++;
        hbp__piece *piece = &b.list.piece[i];
        const hbp__curve *c = b.scheduler.curve[piece->meta_op];
        piece->size = (int32_t)hbp__rng_below(&rng, (uint64_t)c->sizes);
        piece->gpus = c->size[piece->size];
        hbp__pieces_copy(&b.other, &b.list);
        ck_assert(hbp__pieces_schedule_from(&b.scheduler, &b.list, floor_ns, INT64_MAX));
        check_list(b.context, &b.planned, &b.scheduler, &b.list);
        place_slowly(&b.scheduler, &b.other, floor_ns, keep);
        check_same_times(&b.list, &b.other);
        ck_assert(!hbp__pieces_schedule_from(&b.scheduler, &b.list, 0, b.list.piece[0].start_ns));
        bench_close(&b);
    }
}
END_TEST

START_TEST(shorter_comes_first_then_less_then_earlier)
{
    hbp__piece_list a = {.makespan_ns = 5, .area_ns = 7, .ends_ns = 9}, b = a;
    ck_assert_int_eq(hbp__pieces_compare(&a, &b), 0);
    b.ends_ns = 8;
    ck_assert_int_gt(hbp__pieces_compare(&a, &b), 0);
    a.area_ns = 6;
    ck_assert_int_lt(hbp__pieces_compare(&a, &b), 0);
    b.makespan_ns = 4;
    ck_assert_int_gt(hbp__pieces_compare(&a, &b), 0);
    ck_assert_int_lt(hbp__pieces_compare(&b, &a), 0);
}
END_TEST

static hbp_status open_both(hbp_context *context, void *user)
{
    const planned *p = user;
    hbp__scheduler scheduler;
    hbp__piece_list list;
    HBP__TRY(hbp__scheduler_open(context, &p->problem, 20, &scheduler));
    return hbp__pieces_open(context, &scheduler, &list);
}

START_TEST_IN_CONTEXT(memory_may_run_out)
{
    hbp_graph *graph = keep(page_graph(context));
    planned p;
    open_planned(context, graph, 8, &p);
    failing_sweep(open_both, &p);
    close_planned(&p);
}
END_TEST

TEST_MAIN("overlap_pieces", pieces_start_as_early_as_they_can, what_is_known_of_gaps_changes_nothing,
          an_order_against_precedence_is_refused, again_in_order_of_starts_nothing_is_later,
          what_comes_before_a_change_stays, shorter_comes_first_then_less_then_earlier, memory_may_run_out)
