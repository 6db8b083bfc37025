/* The clock of lockstep sets, against ranks that are moved one at a time until nobody waits in vain. */
#include "data/plan/lockstep.h"
#include "keep.h"
#include "plans.h"

/* When each rank of a step ends, by relaxing what packs wait for until nothing changes: start[p] of a pack is
 * no earlier than the end of the pack before it on each rank of its set. */
static void relax(const hbp_plan *plan, int64_t step, int32_t set, int64_t *start, int64_t *end)
{
    int64_t first = plan->step_offsets[step], last = plan->step_offsets[step + 1];
    int64_t base = plan->micro_batch_offsets[first], packs = plan->micro_batch_offsets[last] - base;
    memset(start, 0, (size_t)packs * sizeof *start);
    for (int changed = 1; changed;) {
        changed = 0;
        for (int64_t m = first; m < last; m++)
            for (int64_t p = plan->micro_batch_offsets[m]; p < plan->micro_batch_offsets[m + 1]; p++) {
                int64_t low = plan->pack_ranks[p], high = low + plan->pack_sp[p];
                if (set > 1) {
                    low = low / set * set;
                    high = low + set;
                }
                for (int64_t n = m - 1; n >= first && n >= m - 1; n--)
                    for (int64_t q = plan->micro_batch_offsets[n]; q < plan->micro_batch_offsets[n + 1];
                         q++) {
                        int64_t after = start[q - base] + plan->pack_ns[q];
                        int meets =
                            plan->pack_ranks[q] < high && low < plan->pack_ranks[q] + plan->pack_sp[q];
                        if (meets && after > start[p - base]) {
                            start[p - base] = after;
                            changed = 1;
                        }
                    }
            }
    }
    *end = 0;
    for (int64_t p = 0; p < packs; p++)
        *end = hbp__max_i64(*end, start[p] + plan->pack_ns[base + p]);
}

START_TEST_IN_CONTEXT(clocks_agree_with_relaxation)
{
    int64_t waits = 0;
    for (uint64_t seed = 0; seed < 150; seed++) {
        plans_shape shape = plans_draw(seed);
        shape.ranks = 8;
        shape.domain_ranks = 8;
        hbp_lengths *lengths = plans_lengths(context, seed, 60, 3000, 0, 0);
        hbp_plan *plan = plans_make(&shape, lengths);
        int32_t widest = 1;
        for (int64_t p = 0; p < plan->packs; p++)
            widest = plan->pack_sp[p] > widest ? plan->pack_sp[p] : widest;
        for (int32_t set = 1; set <= 8; set *= 2) {
            if (set > 1 && set < widest)
                continue;
            plan->lockstep_ranks = set == 8 ? 0 : set;
            hbp__clock clock;
            OK(context, hbp__clock_open(context, 8, plan->lockstep_ranks, &clock));
            for (int64_t s = 0; s < plan->steps; s++) {
                int64_t start[4096], end, sum = 0;
                int64_t first = plan->step_offsets[s], base = plan->micro_batch_offsets[first];
                ck_assert_int_le(plan->micro_batch_offsets[plan->step_offsets[s + 1]] - base, 4096);
                relax(plan, s, set, start, &end);
                ck_assert_int_eq(hbp__clock_step(&clock, plan, s), end);
                hbp__clock_start(&clock, 7);
                for (int64_t m = first; m < plan->step_offsets[s + 1]; m++) {
                    for (int64_t p = plan->micro_batch_offsets[m]; p < plan->micro_batch_offsets[m + 1]; p++)
                        ck_assert_int_eq(
                            hbp__clock_run(&clock, plan->pack_ranks[p], plan->pack_sp[p], plan->pack_ns[p]),
                            7 + start[p - base]);
                    hbp__clock_next(&clock);
                    sum += plan->micro_batch_ns[m];
                }
                ck_assert_int_eq(hbp__clock_end(&clock), 7 + end);
                ck_assert_int_le(end, sum);
                waits += end < sum;
            }
        }
        hbp_plan_free(plan);
        hbp_lengths_free(lengths);
    }
    ck_assert_int_gt(waits, 100);
}
END_TEST

START_TEST_IN_CONTEXT(plans_say_who_waits_for_whom)
{
    plans_shape shape = plans_draw(3);
    shape.ranks = 8;
    shape.domain_ranks = 8;
    hbp_lengths *lengths = keep(plans_lengths(context, 3, 60, 3000, 0, 0));
    hbp_plan *plan = keep(plans_make(&shape, lengths));
    uint64_t digest = plan->digest;
    plan->lockstep_ranks = 1; /* steps may take longer than their packs */
    OK(context, hbp__plan_check(context, plan));
    hbp__plan_seal(plan);
    ck_assert_uint_ne(plan->digest, digest);
    static const int32_t wrong[] = {-1, 3, 8, 16};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        plan->lockstep_ranks = wrong[i];
        FAILS(context, HBP_E_INVALID, "the number of ranks of a lockstep set is",
              hbp__plan_check(context, plan));
    }
    int64_t p = 0;
    while (p < plan->packs && plan->pack_sp[p] < 4)
        p++;
    ck_assert_int_lt(p, plan->packs);
    plan->lockstep_ranks = 2;
    FAILS(context, HBP_E_INVALID, "crosses lockstep sets of 2", hbp__plan_check(context, plan));
    plan->lockstep_ranks = 1;
    plan->step_ns[0] = 0;
    FAILS(context, HBP_E_INVALID, "step 0: the predicted time is 0", hbp__plan_check(context, plan));
}
END_TEST

TEST_MAIN("lockstep", clocks_agree_with_relaxation, plans_say_who_waits_for_whom)
