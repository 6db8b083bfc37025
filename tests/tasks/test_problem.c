#include "tasks/problem.h"

#include "failing.h"
#include "task_schedules.h"

static hbp__task_problem problem_of(const drawn *d)
{
    return (hbp__task_problem){.graph = d->graph,
                               .meta = &d->meta,
                               .scaling = &d->scaling,
                               .gpus = d->summary.gpus,
                               .domain_gpus = d->summary.domain_gpus,
                               .limit_bytes = INT64_MAX};
}

static int32_t *copy_ranks(const drawn *d)
{
    size_t bytes = (size_t)drawn_rank_count(d) * sizeof(int32_t);
    int32_t *ranks = malloc(bytes);
    memcpy(ranks, d->ranks, bytes);
    return ranks;
}

/* Exchanges slices a and b, and their ranks; waves are forgotten. */
static void shuffle(drawn *d, hbp__rng *rng)
{
    int64_t count = d->slices.count, to = 0;
    uint32_t *order = malloc((size_t)count * sizeof *order);
    hbp__task_slice *slice = malloc((size_t)count * sizeof *slice);
    int64_t *first = malloc((size_t)(count + 1) * sizeof *first);
    int32_t *ranks = copy_ranks(d);
    first[0] = 0;
    for (int64_t s = 0; s < count; s++) {
        order[s] = (uint32_t)s;
        slice[s] = d->slices.slice[s];
        first[s + 1] = first[s] + slice[s].gpus;
    }
    hbp__rng_shuffle_u32(rng, order, (uint64_t)count);
    for (int64_t s = 0; s < count; s++) {
        d->slices.slice[s] = slice[order[s]];
        d->slices.slice[s].wave = 77;
        for (int64_t r = first[order[s]]; r < first[order[s] + 1]; r++)
            d->ranks[to++] = ranks[r];
    }
    free(ranks);
    free(first);
    free(slice);
    free(order);
}

/* Whether slice b waits for slice a, from the definition. */
static int waits(const drawn *d, const hbp__task_slice *a, const int32_t *a_ranks, const hbp__task_slice *b,
                 const int32_t *b_ranks)
{
    if (a->start_ns >= b->start_ns)
        return 0;
    if (a->meta_op == b->meta_op)
        return 1;
    for (int64_t e = 0; b->first == 0 && e < d->meta.edge_count; e++)
        if (d->meta.edges[e].from == a->meta_op && d->meta.edges[e].to == b->meta_op)
            return 1;
    for (int32_t i = 0; a_ranks && i < a->gpus; i++)
        for (int32_t j = 0; j < b->gpus; j++)
            if (a_ranks[i] == b_ranks[j])
                return 1;
    return 0;
}

/* Each wave is one more than the latest of those waited for; slices are in order. */
static void check_waves(const drawn *d, const hbp__task_slices *slices, const int32_t *ranks)
{
    int64_t at = 0, last = 0;
    int32_t waves = 0;
    for (int64_t s = 0; s < slices->count; at += slices->slice[s++].gpus) {
        const hbp__task_slice *slice = &slices->slice[s];
        int64_t from = 0;
        int32_t wave = 0;
        for (int64_t t = 0; t < slices->count; from += slices->slice[t++].gpus)
            if (waits(d, &slices->slice[t], ranks ? ranks + from : NULL, slice, ranks ? ranks + at : NULL))
                wave = slices->slice[t].wave >= wave ? slices->slice[t].wave + 1 : wave;
        ck_assert_int_eq(slice->wave, wave);
        waves = wave >= waves ? wave + 1 : waves;
        last = slice->end_ns > last ? slice->end_ns : last;
        if (s == 0)
            continue;
        const hbp__task_slice *before = slice - 1;
        ck_assert_int_le(before->wave, slice->wave);
        if (before->wave < slice->wave)
            continue;
        ck_assert_int_le(before->start_ns, slice->start_ns);
        if (before->start_ns == slice->start_ns)
            ck_assert_int_lt(before->meta_op, slice->meta_op);
    }
    ck_assert_int_eq(slices->waves, waves);
    ck_assert_int_eq(slices->makespan_ns, last);
}

/* Every slice has the ranks that it had. */
static void check_ranks(const drawn *d, const int32_t *ranks, const hbp__task_slices *old,
                        const int32_t *old_ranks)
{
    int64_t at = 0;
    for (int64_t s = 0; s < d->slices.count; at += d->slices.slice[s++].gpus) {
        int64_t from = 0, found = 0;
        for (int64_t t = 0; t < old->count; from += old->slice[t++].gpus)
            if (old->slice[t].meta_op == d->slices.slice[s].meta_op &&
                old->slice[t].first == d->slices.slice[s].first) {
                ck_assert_int_eq(old->slice[t].gpus, d->slices.slice[s].gpus);
                ck_assert_mem_eq(ranks + at, old_ranks + from, (size_t)old->slice[t].gpus * sizeof *ranks);
                found++;
            }
        ck_assert_int_eq(found, 1);
    }
}

START_TEST(waves_follow_what_slices_wait_for)
{
    hbp__rng rng = hbp__rng_make(31, 0, 0);
    for (int trial = 0; trial < 600; trial++) {
        drawn d;
        drawn_random(&d, &rng);
        shuffle(&d, &rng);
        hbp__task_problem problem = problem_of(&d);
        size_t bytes = (size_t)d.slices.count * sizeof *d.slices.slice;
        hbp__task_slices old = {.slice = malloc(bytes), .count = d.slices.count};
        memcpy(old.slice, d.slices.slice, bytes);
        int32_t *ranks = copy_ranks(&d);
        OK(d.context, hbp__task_waves(d.context, &problem, &d.slices, d.ranks));
        check_waves(&d, &d.slices, d.ranks);
        check_ranks(&d, d.ranks, &old, ranks);
        int32_t with_ranks = d.slices.waves;
        memcpy(d.slices.slice, old.slice, bytes);
        OK(d.context, hbp__task_waves(d.context, &problem, &d.slices, NULL));
        check_waves(&d, &d.slices, NULL);
        ck_assert_int_le(d.slices.waves, with_ranks);
        free(ranks);
        free(old.slice);
        drawn_close(&d);
    }
}
END_TEST

START_TEST(waves_of_an_example)
{
    drawn d;
    hbp_context *context = test_context();
    drawn_open(&d, context, figure_graph(context), 1, 4, 4);
    drawn_add(&d, 2, 0, 6, 3, 1, 9, 0);
    drawn_add(&d, 0, 0, 8, 0, 2, 9, 0);
    drawn_add(&d, 1, 9, 3, 2, 1, 9, 700000000);
    drawn_add(&d, 1, 0, 9, 2, 2, 9, 0);
    hbp__task_problem problem = problem_of(&d);
    /* On the ranks of one another they would be wrong; here only MetaOps count. */
    OK(context, hbp__task_waves(context, &problem, &d.slices, NULL));
    static const int32_t order[][3] = {{0, 0, 0}, {1, 0, 0}, {2, 0, 0}, {1, 9, 1}};
    for (int s = 0; s < 4; s++) {
        ck_assert_int_eq(d.slices.slice[s].meta_op, order[s][0]);
        ck_assert_int_eq(d.slices.slice[s].first, order[s][1]);
        ck_assert_int_eq(d.slices.slice[s].wave, order[s][2]);
    }
    ck_assert_int_eq(d.slices.waves, 2);
    ck_assert_int_eq(d.slices.makespan_ns, 1054999999);
    drawn_close(&d);
}
END_TEST

START_TEST(no_slices_have_no_waves)
{
    drawn d;
    hbp_context *context = test_context();
    drawn_open(&d, context, figure_graph(context), 1, 4, 4);
    hbp__task_problem problem = problem_of(&d);
    d.slices.waves = 5;
    OK(context, hbp__task_waves(context, &problem, &d.slices, NULL));
    ck_assert_int_eq(d.slices.waves, 0);
    ck_assert_int_eq(d.slices.makespan_ns, 0);
    drawn_close(&d);
}
END_TEST

static hbp_status number(hbp_context *context, void *user)
{
    drawn *d = user;
    hbp__task_problem problem = problem_of(d);
    return hbp__task_waves(context, &problem, &d->slices, d->ranks);
}

/* Slices with gaps between them start when the last of what they wait for ends, no earlier and no later. */
START_TEST(gaps_are_closed)
{
    hbp__rng rng = hbp__rng_make(33, 0, 0);
    for (int trial = 0; trial < 400; trial++) {
        drawn d;
        drawn_random(&d, &rng);
        int64_t most = (int64_t)hbp__rng_below(&rng, 3) + 1;
        for (int64_t s = 0; s < d.slices.count; s++) {
            hbp__task_slice *slice = &d.slices.slice[s];
            slice->end_ns += (most - 1) * slice->start_ns;
            slice->start_ns *= most;
        }
        hbp__task_problem problem = problem_of(&d);
        size_t bytes = (size_t)d.slices.count * sizeof *d.slices.slice;
        hbp__task_slice *old = malloc(bytes);
        memcpy(old, d.slices.slice, bytes);
        OK(d.context, hbp__task_compact(d.context, &problem, &d.slices, d.ranks));
        int64_t at = 0, last = 0;
        for (int64_t s = 0; s < d.slices.count; at += d.slices.slice[s++].gpus) {
            const hbp__task_slice *slice = &d.slices.slice[s];
            int64_t from = 0, ready = 0;
            for (int64_t t = 0; t < d.slices.count; from += d.slices.slice[t++].gpus)
                if (waits(&d, &old[t], d.ranks + from, &old[s], d.ranks + at))
                    ready = d.slices.slice[t].end_ns > ready ? d.slices.slice[t].end_ns : ready;
            ck_assert_int_eq(slice->start_ns, ready);
            ck_assert_int_le(slice->start_ns, old[s].start_ns);
            ck_assert_int_eq(slice->end_ns - slice->start_ns, old[s].end_ns - old[s].start_ns);
            last = slice->end_ns > last ? slice->end_ns : last;
        }
        ck_assert_int_eq(d.slices.makespan_ns, last);
        free(old);
        drawn_close(&d);
    }
}
END_TEST

static hbp_status close_gaps(hbp_context *context, void *user)
{
    drawn *d = user;
    hbp__task_problem problem = problem_of(d);
    return hbp__task_compact(context, &problem, &d->slices, d->ranks);
}

START_TEST(memory_may_run_out)
{
    hbp__rng rng = hbp__rng_make(32, 0, 0);
    drawn d;
    drawn_random(&d, &rng);
    failing_sweep(close_gaps, &d);
    failing_sweep(number, &d);
    check_waves(&d, &d.slices, d.ranks);
    drawn_close(&d);
}
END_TEST

TEST_MAIN("problem", waves_follow_what_slices_wait_for, waves_of_an_example, no_slices_have_no_waves,
          gaps_are_closed, memory_may_run_out)
