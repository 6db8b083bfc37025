#include "solve/moldable.h"

#include "base/checked.h"
#include "base/rng.h"
#include "failing.h"
#include "keep.h"

enum { JOBS = HBP__MOLDABLE_JOBS, MOST_SIZES = 12 };

typedef struct shop {
    int32_t jobs;
    int32_t processors;
    hbp__moldable_job job[JOBS];
    int32_t size[JOBS][MOST_SIZES];
    int64_t time_ns[JOBS][MOST_SIZES];
} shop;

/* Sizes drawn among 1 .. processors, times that fall by any steps; some jobs like the one before, as a twin
 * or behind it, others that need any before them. */
static void draw_shop(hbp__rng *rng, int32_t jobs, int32_t processors, int32_t sizes, shop *s)
{
    s->jobs = jobs;
    s->processors = processors;
    for (int32_t i = 0; i < jobs; i++) {
        hbp__moldable_job *job = &s->job[i];
        uint64_t like = i ? hbp__rng_below(rng, 4) : 2;
        if (like < 2) {
            *job = s->job[i - 1];
            if (like)
                job->needs = UINT32_C(1) << (i - 1);
            else if (hbp__rng_below(rng, 2))
                job->needs = 0;
            continue;
        }
        *job = (hbp__moldable_job){.size = s->size[i], .time_ns = s->time_ns[i]};
        int64_t area = 1 + (int64_t)hbp__rng_below(rng, 1000), ns = INT64_MAX;
        for (int32_t n = 1; n <= processors && job->sizes < sizes; n++) {
            int32_t left = processors - n + 1;
            if (n < processors && hbp__rng_below(rng, (uint64_t)left) >= (uint64_t)sizes)
                continue;
            int64_t its = area / n + 1 + (int64_t)hbp__rng_below(rng, 60);
            if (its >= ns)
                continue;
            s->size[i][job->sizes] = n;
            s->time_ns[i][job->sizes++] = ns = its;
        }
        if (job->sizes == 0) {
            s->size[i][0] = 1;
            s->time_ns[i][0] = area;
            job->sizes = 1;
        }
        for (int32_t j = 0; j < i; j++)
            if (hbp__rng_below(rng, 5) == 0)
                job->needs |= UINT32_C(1) << j;
    }
}

/* Processors in use at `ns` by the jobs of `done`. */
static int32_t used_at(const shop *s, const hbp__moldable_plan *p, uint32_t done, int64_t ns)
{
    int32_t used = 0;
    for (int32_t i = 0; i < s->jobs; i++)
        if ((done >> i & 1) && p->start_ns[i] <= ns && ns < p->start_ns[i] + s->job[i].time_ns[p->size[i]])
            used += s->job[i].size[p->size[i]];
    return used;
}

static int fits(const shop *s, const hbp__moldable_plan *p, uint32_t done, int32_t i)
{
    int32_t size = s->job[i].size[p->size[i]];
    int64_t start = p->start_ns[i], end = start + s->job[i].time_ns[p->size[i]];
    if (used_at(s, p, done, start) + size > s->processors)
        return 0;
    for (int32_t j = 0; j < s->jobs; j++)
        if ((done >> j & 1) && p->start_ns[j] > start && p->start_ns[j] < end &&
            used_at(s, p, done, p->start_ns[j]) + size > s->processors)
            return 0;
    return 1;
}

/* Every order and every size, each job as early as it goes, gaps included: no bounds, no order of starts. */
static void try_all(const shop *s, hbp__moldable_plan *p, uint32_t done, int64_t end, int64_t *best)
{
    if (done == (UINT32_C(1) << s->jobs) - 1)
        *best = hbp__min_i64(*best, end);
    for (int32_t i = 0; i < s->jobs; i++) {
        if ((done >> i & 1) || (s->job[i].needs & ~done))
            continue;
        int64_t ready = 0;
        for (int32_t j = 0; j < s->jobs; j++)
            if (s->job[i].needs >> j & 1)
                ready = hbp__max_i64(ready, p->start_ns[j] + s->job[j].time_ns[p->size[j]]);
        for (int32_t k = 0; k < s->job[i].sizes; k++) {
            int64_t start = INT64_MAX;
            p->size[i] = k;
            for (int32_t j = -1; j < s->jobs; j++) {
                if (j >= 0 && !(done >> j & 1))
                    continue;
                int64_t at = j < 0 ? ready : p->start_ns[j] + s->job[j].time_ns[p->size[j]];
                p->start_ns[i] = hbp__max_i64(at, ready);
                if (p->start_ns[i] < start && fits(s, p, done, i))
                    start = p->start_ns[i];
            }
            p->start_ns[i] = start;
            int64_t its = hbp__max_i64(end, start + s->job[i].time_ns[k]);
            if (its < *best)
                try_all(s, p, done | UINT32_C(1) << i, its, best);
        }
    }
}

static int64_t optimum_of(const shop *s)
{
    hbp__moldable_plan p;
    int64_t best = INT64_MAX;
    try_all(s, &p, 0, 0, &best);
    return best;
}

static void check_plan(const shop *s, const hbp__moldable_plan *p)
{
    int64_t end = 0;
    uint32_t all = (UINT32_C(1) << s->jobs) - 1;
    for (int32_t i = 0; i < s->jobs; i++) {
        ck_assert_int_lt(p->size[i], s->job[i].sizes);
        ck_assert_int_ge(p->start_ns[i], 0);
        ck_assert_int_le(used_at(s, p, all, p->start_ns[i]), s->processors);
        for (int32_t j = 0; j < s->jobs; j++)
            if (s->job[i].needs >> j & 1)
                ck_assert_int_ge(p->start_ns[i], p->start_ns[j] + s->job[j].time_ns[p->size[j]]);
        end = hbp__max_i64(end, p->start_ns[i] + s->job[i].time_ns[p->size[i]]);
    }
    ck_assert_int_eq(p->makespan_ns, end);
    ck_assert_int_le(p->bound_ns, end);
}

START_TEST_IN_CONTEXT(finds_the_optimum)
{
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    const int rounds = TEST_ROUNDS(3000);
    static shop s;
    for (int round = 0; round < rounds; round++) {
        int32_t jobs = 1 + round % 5, processors = 1 + (int32_t)hbp__rng_below(&rng, 12);
        draw_shop(&rng, jobs, processors, jobs < 5 ? 6 : 3, &s);
        hbp__moldable_plan plan;
        OK(context, hbp__moldable_solve(context, s.job, jobs, processors, 1, INT64_C(1) << 40, &plan));
        check_plan(&s, &plan);
        int64_t best = optimum_of(&s);
        ck_assert_int_eq(plan.makespan_ns, best);
        ck_assert_int_eq(plan.bound_ns, best);
        /* A bound that is the optimum stops it; a wrong one, too low, changes nothing. */
        OK(context, hbp__moldable_solve(context, s.job, jobs, processors, best, INT64_C(1) << 40, &plan));
        ck_assert_int_eq(plan.makespan_ns, best);
    }
}
END_TEST

/* However little work: a bound and a schedule, and both get better with more. */
START_TEST_IN_CONTEXT(stays_true_when_the_work_ends)
{
    hbp__rng rng = hbp__rng_make(2, 0, 0);
    const int rounds = TEST_ROUNDS(300);
    static shop s;
    int open = 0, closed = 0;
    for (int round = 0; round < rounds; round++) {
        draw_shop(&rng, 7, 16, 5, &s);
        hbp__moldable_plan full, part;
        OK(context, hbp__moldable_solve(context, s.job, 7, 16, 1, INT64_C(1) << 40, &full));
        check_plan(&s, &full);
        ck_assert_int_eq(full.makespan_ns, full.bound_ns);
        for (int64_t limit = 1; limit <= 1000000; limit *= 10) {
            OK(context, hbp__moldable_solve(context, s.job, 7, 16, 1, limit, &part));
            check_plan(&s, &part);
            ck_assert_int_le(part.bound_ns, full.bound_ns);
            ck_assert_int_ge(part.makespan_ns, full.makespan_ns);
            open += part.bound_ns < part.makespan_ns;
            closed += part.bound_ns == part.makespan_ns;
        }
    }
    ck_assert_int_gt(open, 0);
    ck_assert_int_gt(closed, 0);
}
END_TEST

/* Two jobs share four processors, two each; behind them a third takes all. */
START_TEST_IN_CONTEXT(shares_processors)
{
    static const int32_t size[] = {1, 2, 4};
    static const int64_t time_ns[] = {1010, 510, 260};
    hbp__moldable_job job[] = {{3, size, time_ns, 0}, {3, size, time_ns, 0}, {3, size, time_ns, 3}};
    hbp__moldable_plan plan;
    OK(context, hbp__moldable_solve(context, job, 3, 4, 1, 1000, &plan));
    ck_assert_int_eq(plan.makespan_ns, 510 + 260);
    ck_assert_int_eq(plan.bound_ns, 510 + 260);
    ck_assert_int_eq(plan.size[2], 2);
    ck_assert_int_eq(plan.start_ns[2], 510);
}
END_TEST

/* Processor time that adds up to 2^62. */
START_TEST_IN_CONTEXT(stands_long_times)
{
    static const int32_t size[] = {1, 65536};
    static const int64_t time_ns[] = {INT64_C(1) << 44, INT64_C(1) << 43};
    hbp__moldable_job job[8];
    hbp__moldable_plan plan;
    for (int32_t i = 0; i < 8; i++)
        job[i] = (hbp__moldable_job){2, size, time_ns, i ? UINT32_C(1) << (i - 1) : 0};
    OK(context, hbp__moldable_solve(context, job, 8, 65536, 1, 100000, &plan));
    ck_assert_int_eq(plan.makespan_ns, 8 * time_ns[1]);
    ck_assert_int_eq(plan.bound_ns, 8 * time_ns[1]);
}
END_TEST

static hbp_status solve_one(hbp_context *context, void *user)
{
    const shop *s = user;
    hbp__moldable_plan plan;
    return hbp__moldable_solve(context, s->job, s->jobs, s->processors, 1, 300000, &plan);
}

START_TEST(keeps_its_word_when_memory_fails_or_it_is_cancelled)
{
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    static shop s;
    draw_shop(&rng, JOBS, 64, MOST_SIZES, &s);
    failing_sweep(solve_one, &s);
    ck_assert_int_gt(cancel_sweep(solve_one, &s), 0);
}
END_TEST

TEST_MAIN("moldable", finds_the_optimum, stays_true_when_the_work_ends, shares_processors, stands_long_times,
          keeps_its_word_when_memory_fails_or_it_is_cancelled)
