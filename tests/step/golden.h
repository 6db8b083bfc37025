/* What the original of a mode makes of batches, in tests/golden. */
#ifndef HBP_TESTS_GOLDEN_H
#define HBP_TESTS_GOLDEN_H

#include "base/methods.h"
#include "modes.h"

enum { GOLDEN_MOST = 64 };

/* What the original makes of a length. */
typedef struct golden_place {
    int round;
    int degree;
    int group;
} golden_place;

/* Each pack is a group of the original, and each of its micro-batches a round. */
static inline void golden_check_plan(const hbp_plan *plan, const golden_place *expected, int count)
{
    int group_of_pack[GOLDEN_MOST], pack_of_group[GOLDEN_MOST], seen = 0;
    memset(group_of_pack, -1, sizeof group_of_pack);
    memset(pack_of_group, -1, sizeof pack_of_group);
    for (int64_t m = 0; m < plan->micro_batches; m++)
        for (int64_t p = plan->micro_batch_offsets[m]; p < plan->micro_batch_offsets[m + 1]; p++)
            for (int64_t i = plan->pack_offsets[p]; i < plan->pack_offsets[p + 1]; i++) {
                const golden_place *e = &expected[plan->sample_ids[i]];
                ck_assert_int_lt(p, GOLDEN_MOST);
                ck_assert_int_eq(e->round, m);
                ck_assert_int_eq(e->degree, plan->pack_sp[p]);
                ck_assert(group_of_pack[p] < 0 || group_of_pack[p] == e->group);
                ck_assert(pack_of_group[e->group] < 0 || pack_of_group[e->group] == (int)p);
                group_of_pack[p] = e->group;
                pack_of_group[e->group] = (int)p;
                seen++;
            }
    ck_assert_int_eq(seen, count);
}

/* The mode forms the groups of the file, in `count` batches where memory never binds. */
static inline void golden_check(const char *name, int32_t mode, int count)
{
    char path[512], line[256];
    int cases = 0, rounds = 0;
    snprintf(path, sizeof path, "%s/golden/%s", HBP_TESTS_DIR, name);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file)) {
        int ranks, per_rank, samples;
        if (line[0] == '#')
            continue;
        ck_assert_int_eq(sscanf(line, "%d %d %d", &ranks, &per_rank, &samples), 3);
        ck_assert_int_le(samples, GOLDEN_MOST);
        uint32_t length[GOLDEN_MOST];
        golden_place expected[GOLDEN_MOST];
        for (int i = 0; i < samples; i++) {
            golden_place *e = &expected[i];
            ck_assert_ptr_nonnull(fgets(line, sizeof line, file));
            ck_assert_int_eq(sscanf(line, "%u %d %d %d", &length[i], &e->round, &e->degree, &e->group), 4);
            ck_assert_int_lt(e->group, GOLDEN_MOST);
            rounds += e->round > 0;
        }
        hbp_context *context = test_context();
        hbp_cost *cost = mode_square_cost(context, ranks);
        hbp_lengths *lengths = NULL;
        hbp_plan *plan = NULL;
        hbp_step_options o = {.struct_size = sizeof o, .method = hbp__step_name(mode)};
        *(mode == HBP__STEP_HYBRID_CP ? &o.sequence_tokens_per_rank : &o.tokens_per_rank) = per_rank;
        OK(context, hbp_lengths_create_u32(context, length, samples, NULL, &lengths));
        OK(context, hbp_plan_step(context, lengths, cost, &o, &plan));
        golden_check_plan(plan, expected, samples);
        hbp_plan_free(plan);
        hbp_lengths_free(lengths);
        hbp_cost_free(cost);
        hbp_context_free(context);
        cases++;
    }
    fclose(file);
    ck_assert_int_eq(cases, count);
    ck_assert_int_gt(rounds, 0);
}

#endif
