#include "failing.h"
#include "keep.h"
#include "plans.h"

enum { MOST = 64 };

static void check_rank(hbp_context *context, const hbp_plan *plan, int64_t step, int32_t rank)
{
    hbp_rank_pack packs[MOST];
    int64_t count = 0, micro_batches = plan->step_offsets[step + 1] - plan->step_offsets[step];
    OK(context, hbp_plan_copy_rank_packs(context, plan, step, rank, packs, sizeof *packs, MOST, &count));
    ck_assert_int_eq(count, micro_batches);
    for (int64_t m = 0; m < count; m++) {
        const hbp_rank_pack *p = &packs[m];
        ck_assert_int_eq(p->pack, hbp_plan_get_rank_pack(plan, step, m, rank));
        ck_assert_int_eq(p->struct_size, sizeof *p);
        ck_assert_int_eq(p->sp, plan->pack_sp[p->pack]);
        ck_assert_int_eq(p->first_rank + p->sp_rank, rank);
        ck_assert_int_eq(p->first_rank, plan->pack_ranks[p->pack]);
        ck_assert(p->sp_rank >= 0 && p->sp_rank < p->sp);
        ck_assert_int_eq(p->recompute, plan->pack_recompute[p->pack]);
        ck_assert_int_eq(p->is_padding, p->samples == 0);
        ck_assert_int_eq(p->first_sample, plan->pack_offsets[p->pack]);
        ck_assert_int_eq(p->first_sample + p->samples, plan->pack_offsets[p->pack + 1]);
        ck_assert_int_eq(p->tokens, plan->pack_tokens[p->pack]);
        ck_assert_int_eq(p->padded_tokens, plan->pack_padded_tokens[p->pack]);
        ck_assert_int_eq(p->loss_tokens, plan->pack_loss_tokens[p->pack]);
        ck_assert_int_eq(p->vision, plan->pack_vision ? plan->pack_vision[p->pack] : 0);
        int64_t row = plan->step_offsets[step] + m;
        ck_assert_int_eq(p->modalities, plan->micro_batch_modalities ? plan->micro_batch_modalities[row] : 0);
    }
}

START_TEST_IN_CONTEXT(a_rank_gets_its_pack_of_every_micro_batch)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        plans_shape shape = plans_draw(seed);
        int32_t kinds = (int32_t)(seed % 3);
        hbp_lengths *lengths = plans_vision_lengths(context, seed, 60, 500, seed % 2 == 0, 0, kinds);
        shape.modality_order = kinds == 2;
        hbp_plan *plan = plans_make(&shape, lengths);
        for (int64_t s = 0; s < plan->steps; s++)
            for (int32_t r = 0; r < plan->ranks; r++)
                check_rank(context, plan, s, r);
        hbp_plan_free(plan);
        hbp_lengths_free(lengths);
    }
}
END_TEST

/* A caller of another version has shorter or longer structs. */
START_TEST_IN_CONTEXT(packs_may_be_of_another_size)
{
    plans_shape shape = plans_draw(3);
    hbp_lengths *lengths = keep(plans_lengths(context, 3, 60, 500, 0, 0));
    hbp_plan *plan = keep(plans_make(&shape, lengths));
    const uint32_t sizes[] = {12, sizeof(hbp_rank_pack), sizeof(hbp_rank_pack) + 24};
    for (int i = 0; i < 3; i++) {
        unsigned char room[MOST * (sizeof(hbp_rank_pack) + 24) + 1];
        memset(room, 0xa5, sizeof room);
        int64_t count = 0;
        OK(context,
           hbp_plan_copy_rank_packs(context, plan, 0, 0, (hbp_rank_pack *)room, sizes[i], MOST, &count));
        for (int64_t m = 0; m < count; m++) {
            int32_t fields[3]; /* struct_size, sp, first_rank */
            memcpy(fields, room + (uint64_t)m * sizes[i], sizeof fields);
            int64_t pack = hbp_plan_get_rank_pack(plan, 0, m, 0);
            ck_assert_int_eq(fields[0], sizes[i]);
            ck_assert_int_eq(fields[1], plan->pack_sp[pack]);
            ck_assert_int_eq(fields[2], plan->pack_ranks[pack]);
        }
        ck_assert_uint_eq(room[(uint64_t)count * sizes[i]], 0xa5);
    }
}
END_TEST

START_TEST_IN_CONTEXT(bad_arguments_are_named)
{
    plans_shape shape = {.ranks = 4, .domain_ranks = 4, .pack_samples = 3, .micro_batch_multiple = 2};
    shape.sequence_multiple = shape.pack_multiple = 1;
    hbp_lengths *lengths = keep(plans_lengths(context, 3, 40, 500, 0, 0));
    hbp_plan *plan = keep(plans_make(&shape, lengths));
    hbp_rank_pack packs[MOST];
    int64_t count = -1;
    const uint32_t size = sizeof *packs;
    FAILS(context, HBP_E_INVALID, "plan is NULL",
          hbp_plan_copy_rank_packs(context, NULL, 0, 0, packs, size, MOST, &count));
    FAILS(context, HBP_E_INVALID, "count is NULL",
          hbp_plan_copy_rank_packs(context, plan, 0, 0, packs, size, MOST, NULL));
    FAILS(context, HBP_E_INVALID, "step -1",
          hbp_plan_copy_rank_packs(context, plan, -1, 0, packs, size, MOST, &count));
    FAILS(context, HBP_E_INVALID, "the plan has",
          hbp_plan_copy_rank_packs(context, plan, plan->steps, 0, packs, size, MOST, &count));
    FAILS(context, HBP_E_INVALID, "rank 4; the plan is for 4 ranks",
          hbp_plan_copy_rank_packs(context, plan, 0, 4, packs, size, MOST, &count));
    FAILS(context, HBP_E_INVALID, "rank -1",
          hbp_plan_copy_rank_packs(context, plan, 0, -1, packs, size, MOST, &count));
    ck_assert_int_eq(count, -1);
    FAILS(context, HBP_E_INVALID, "the buffer holds 1; ",
          hbp_plan_copy_rank_packs(context, plan, 0, 0, packs, size, 1, &count));
    ck_assert_int_ge(count, 2);
    FAILS(context, HBP_E_INVALID, "the buffer holds 0; ",
          hbp_plan_copy_rank_packs(context, plan, 0, 0, NULL, size, MOST, &count));
    FAILS(context, HBP_E_INVALID, "pack_size is 3",
          hbp_plan_copy_rank_packs(context, plan, 0, 0, packs, 3, MOST, &count));
    ck_assert_int_eq(hbp_plan_copy_rank_packs(NULL, plan, 0, 0, packs, size, MOST, &count), HBP_E_INVALID);
    OK(context, hbp_plan_copy_rank_packs(context, plan, 0, 0, packs, size, count, &count));
}
END_TEST

TEST_MAIN("plan_rank", a_rank_gets_its_pack_of_every_micro_batch, packs_may_be_of_another_size,
          bad_arguments_are_named)
