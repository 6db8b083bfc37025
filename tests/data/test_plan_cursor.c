#include "keep.h"
#include "plans.h"

typedef struct made {
    hbp_context *context;
    hbp_lengths *lengths;
    hbp_plan *plan;
} made;

static made make(hbp_context *context)
{
    made m = {.context = context};
    m.lengths = keep(plans_lengths(context, 3, 60, 400, 0, 0));
    plans_shape shape = plans_draw(4);
    m.plan = keep(plans_make(&shape, m.lengths));
    return m;
}

START_TEST_IN_CONTEXT(every_step_comes_back)
{
    made m = make(context);
    uint8_t cursor[HBP_CURSOR_BYTES];
    for (int64_t s = 0; s <= m.plan->steps; s++) {
        int64_t step = -1;
        OK(m.context, hbp_plan_save_cursor(m.context, m.plan, s, cursor));
        OK(m.context, hbp_plan_load_cursor(m.context, m.plan, cursor, &step));
        ck_assert_int_eq(step, s);
    }
}
END_TEST

/* The same samples with and without a second size make two plans; a cursor is of one of them. */
START_TEST_IN_CONTEXT(a_second_size_makes_another_plan)
{
    plans_shape shape = plans_draw(4);
    hbp_plan *plan[3];
    uint8_t cursor[3][HBP_CURSOR_BYTES];
    for (int k = 0; k < 3; k++) {
        hbp_lengths *lengths = plans_vision_lengths(context, 3, 60, 400, 0, 0, k ? 1 : 0);
        shape.modality_order = k == 2;
        plan[k] = plans_make(&shape, lengths);
        OK(context, hbp_plan_save_cursor(context, plan[k], 1, cursor[k]));
        hbp_lengths_free(lengths);
    }
    for (int k = 0; k < 3; k++)
        for (int other = 0; other < 3; other++) {
            int64_t step = -1;
            if (k == other)
                OK(context, hbp_plan_load_cursor(context, plan[k], cursor[other], &step));
            else
                FAILS(context, HBP_E_INVALID, "changed",
                      hbp_plan_load_cursor(context, plan[k], cursor[other], &step));
            ck_assert_int_eq(step, k == other ? 1 : -1);
        }
    for (int k = 0; k < 3; k++)
        hbp_plan_free(plan[k]);
}
END_TEST

START_TEST_IN_CONTEXT(arguments_are_checked)
{
    made m = make(context);
    uint8_t cursor[HBP_CURSOR_BYTES];
    int64_t step;
    FAILS(m.context, HBP_E_INVALID, "step -1", hbp_plan_save_cursor(m.context, m.plan, -1, cursor));
    FAILS(m.context, HBP_E_INVALID, "; the plan has",
          hbp_plan_save_cursor(m.context, m.plan, m.plan->steps + 1, cursor));
    FAILS(m.context, HBP_E_INVALID, "plan", hbp_plan_save_cursor(m.context, NULL, 0, cursor));
    FAILS(m.context, HBP_E_INVALID, "cursor", hbp_plan_save_cursor(m.context, m.plan, 0, NULL));
    OK(m.context, hbp_plan_save_cursor(m.context, m.plan, 0, cursor));
    FAILS(m.context, HBP_E_INVALID, "plan", hbp_plan_load_cursor(m.context, NULL, cursor, &step));
    FAILS(m.context, HBP_E_INVALID, "cursor", hbp_plan_load_cursor(m.context, m.plan, NULL, &step));
    FAILS(m.context, HBP_E_INVALID, "step", hbp_plan_load_cursor(m.context, m.plan, cursor, NULL));
}
END_TEST

/* A cursor is text that people copy: no flipped bit goes unseen. */
START_TEST_IN_CONTEXT(every_flipped_bit_is_seen)
{
    made m = make(context);
    uint8_t cursor[HBP_CURSOR_BYTES];
    OK(m.context, hbp_plan_save_cursor(m.context, m.plan, 1, cursor));
    for (int bit = 0; bit < HBP_CURSOR_BYTES * 8; bit++) {
        int64_t step = 77;
        cursor[bit / 8] ^= (uint8_t)(1 << bit % 8);
        FAILS(m.context, HBP_E_FORMAT, "64 bytes are not a cursor, or they are damaged",
              hbp_plan_load_cursor(m.context, m.plan, cursor, &step));
        ck_assert_int_eq(step, 77);
        cursor[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}
END_TEST

START_TEST_IN_CONTEXT(another_plan_is_refused_with_what_changed)
{
    made m = make(context);
    hbp_plan *plan = m.plan;
    uint8_t cursor[HBP_CURSOR_BYTES];
    int64_t step = 77;
    OK(m.context, hbp_plan_save_cursor(m.context, plan, 2, cursor));
    plan->ranks *= 2;
    FAILS(m.context, HBP_E_INVALID, "ranks; this one is for",
          hbp_plan_load_cursor(m.context, plan, cursor, &step));
    plan->ranks /= 2;
    plan->lengths_digest++;
    FAILS(m.context, HBP_E_INVALID, "the lengths changed",
          hbp_plan_load_cursor(m.context, plan, cursor, &step));
    plan->lengths_digest--;
    plan->seed++;
    FAILS(m.context, HBP_E_INVALID, "the cursor is of seed 4, epoch 3; the plan of seed 5, epoch 3",
          hbp_plan_load_cursor(m.context, plan, cursor, &step));
    plan->seed--;
    plan->epoch++;
    FAILS(m.context, HBP_E_INVALID, "the plan of seed 4, epoch 4",
          hbp_plan_load_cursor(m.context, plan, cursor, &step));
    plan->epoch--;
    plan->pack_capacity[0]++;
    hbp__plan_seal(plan);
    FAILS(m.context, HBP_E_INVALID, "the plan changed", hbp_plan_load_cursor(m.context, plan, cursor, &step));
    plan->pack_capacity[0]--;
    hbp__plan_seal(plan);
    ck_assert_int_eq(step, 77);
    OK(m.context, hbp_plan_load_cursor(m.context, plan, cursor, &step));
    ck_assert_int_eq(step, 2);
}
END_TEST

TEST_MAIN("plan_cursor", every_step_comes_back, a_second_size_makes_another_plan, arguments_are_checked,
          every_flipped_bit_is_seen, another_plan_is_refused_with_what_changed)
