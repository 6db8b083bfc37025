#include "hbp/step.h"

#include "data/plan/plan.h"
#include "failing.h"
#include "keep.h"
#include "step/batches.h"

START_TEST_IN_CONTEXT(plans_are_those_of_plan_step_in_order)
{
    hbp_cost *cost = keep(test_cost(context));
    for (int32_t depth = 1; depth <= 4; depth += TEST_FEW(1, 3)) {
        hbp_stepper *stepper = batches_stepper(context, cost, depth, 0);
        for (int64_t submitted = 0, taken = 0; taken < STEPS; taken++) {
            for (; submitted < STEPS && submitted - taken < depth; submitted++)
                batches_submit(context, stepper, (uint64_t)submitted);
            hbp_plan *plan = batches_take(context, stepper);
            batch b;
            batches_draw(&b, (uint64_t)taken);
            ck_assert_uint_eq(plan_digest(plan), batches_digest(context, cost, &b));
            hbp_lengths *lengths = batches_lengths(context, &b);
            OK(context, hbp_plan_validate(context, plan, lengths, cost));
            hbp_plan_summary summary = {.struct_size = sizeof summary};
            OK(context, hbp_plan_get_summary(context, plan, &summary));
            ck_assert_int_eq(summary.steps, 1);
            ck_assert_int_eq(summary.first_step, 0);
            ck_assert_int_eq(summary.samples, b.count);
            hbp_lengths_free(lengths);
            hbp_plan_free(plan);
            hbp_stepper_summary all = batches_summary(context, stepper);
            ck_assert_int_eq(all.depth, depth);
            ck_assert_int_eq(all.submitted, submitted);
            ck_assert_int_eq(all.taken, taken + 1);
            ck_assert_int_ge(all.planned, taken + 1);
            ck_assert_int_le(all.planned, submitted);
            ck_assert_int_le(all.waited, taken + 1);
            ck_assert_int_gt(all.kept_bytes, 0);
        }
        hbp_stepper_free(stepper);
    }
}
END_TEST

START_TEST(data_sets_are_shared_and_plans_outlive_the_stepper)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    hbp_cost *cost = test_cost(context);
    hbp_stepper *stepper = batches_stepper(context, cost, 0, 0);
    batch b;
    hbp_lengths *lengths = batches_lengths(context, batches_draw(&b, 3));
    OK(context, hbp_stepper_submit_lengths(context, stepper, lengths));
    hbp_lengths_free(lengths);
    hbp_plan *plan = batches_take(context, stepper);
    hbp_stepper_free(stepper);
    hbp_stepper_free(NULL);
    ck_assert_uint_eq(plan_digest(plan), batches_digest(context, cost, &b));
    lengths = batches_lengths(context, &b);
    OK(context, hbp_plan_validate(context, plan, lengths, cost));
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
    hbp_context_free(context);
    hbp_plan_free(plan);
    ck_assert_int_eq(f.live, 0);
}
END_TEST

START_TEST_IN_CONTEXT(a_step_that_cannot_be_planned_harms_no_other)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_stepper *stepper = keep(batches_stepper(context, cost, 3, 0));
    const int64_t huge[] = {100, 200, INT64_C(2000000000)};
    batches_submit(context, stepper, 0);
    OK(context, hbp_stepper_submit(context, stepper, huge, 3, NULL));
    batches_submit(context, stepper, 2);
    hbp_plan_free(batches_take(context, stepper));
    uint64_t before = batches_summary(context, stepper).digest;
    hbp_plan *plan = (hbp_plan *)1;
    FAILS(context, HBP_E_INFEASIBLE, "step 1: ", hbp_stepper_take(context, stepper, &plan));
    ck_assert_ptr_nonnull(strstr(hbp_context_message(context), "2000000000"));
    ck_assert_ptr_null(plan);
    ck_assert_uint_ne(batches_summary(context, stepper).digest, before);
    plan = batches_take(context, stepper);
    ck_assert_str_eq(hbp_context_message(context), "");
    batch b;
    ck_assert_uint_eq(plan_digest(plan), batches_digest(context, cost, batches_draw(&b, 2)));
    hbp_plan_free(plan);
}
END_TEST

START_TEST_IN_CONTEXT(what_cannot_be_submitted_or_taken_is_refused)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_stepper *stepper = keep(batches_stepper(context, cost, 0, 0));
    hbp_plan *plan = NULL;
    FAILS(context, HBP_E_INVALID, "step 0 is not submitted", hbp_stepper_take(context, stepper, &plan));
    int64_t lengths[] = {5, 0, 7};
    uint32_t loss[] = {5, 3, 8};
    int64_t links[] = {-1, -2, 0};
    hbp_lengths_options options = {.struct_size = sizeof options};
    FAILS(context, HBP_E_INVALID, "sample 1 has 0 tokens",
          hbp_stepper_submit(context, stepper, lengths, 3, NULL));
    lengths[1] = INT64_C(1) << 40;
    FAILS(context, HBP_E_OVERFLOW, "sample 1 has", hbp_stepper_submit(context, stepper, lengths, 3, NULL));
    lengths[1] = 3;
    options.loss_tokens = loss;
    FAILS(context, HBP_E_INVALID, "sample 2 has 8 loss tokens",
          hbp_stepper_submit(context, stepper, lengths, 3, &options));
    options.loss_tokens = NULL;
    options.links = links;
    FAILS(context, HBP_E_INVALID, "sample 1 has link -2",
          hbp_stepper_submit(context, stepper, lengths, 3, &options));
    options.links = NULL;
    options.vision = (const uint32_t[]){0, 1, UINT32_C(1) << 31};
    FAILS(context, HBP_E_OVERFLOW, "sample 2 has 2147483648 vision units",
          hbp_stepper_submit(context, stepper, lengths, 3, &options));
    options.vision = NULL;
    options.modalities = (const int32_t[]){0, 62, 1};
    FAILS(context, HBP_E_INVALID, "sample 1 is of modality 62",
          hbp_stepper_submit(context, stepper, lengths, 3, &options));
    FAILS(context, HBP_E_INVALID, "0 samples", hbp_stepper_submit(context, stepper, lengths, 0, NULL));
    FAILS(context, HBP_E_INVALID, "lengths is NULL", hbp_stepper_submit(context, stepper, NULL, 3, NULL));
    FAILS(context, HBP_E_INVALID, "stepper is NULL", hbp_stepper_submit(context, NULL, lengths, 3, NULL));
    FAILS(context, HBP_E_INVALID, "batch_lengths is NULL",
          hbp_stepper_submit_lengths(context, stepper, NULL));
    options.struct_size = 1;
    FAILS(context, HBP_E_INVALID, "struct_size", hbp_stepper_submit(context, stepper, lengths, 3, &options));
    ck_assert_int_eq(batches_summary(context, stepper).submitted, 0);
    batches_submit(context, stepper, 0);
    batches_submit(context, stepper, 1);
    FAILS(context, HBP_E_INVALID, "step 2: 2 steps are submitted and not taken",
          hbp_stepper_submit(context, stepper, lengths, 3, NULL));
    ck_assert_int_eq(batches_summary(context, stepper).submitted, 2);
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_stepper_take(context, stepper, NULL));
    FAILS(context, HBP_E_INVALID, "stepper is NULL", hbp_stepper_take(context, NULL, &plan));
    FAILS(context, HBP_E_INVALID, "hbp_stepper_summary is NULL",
          hbp_stepper_get_summary(context, stepper, NULL));
    ck_assert_int_eq(hbp_stepper_take(NULL, stepper, &plan), HBP_E_INVALID);
    ck_assert_int_eq(hbp_stepper_submit(NULL, stepper, lengths, 3, NULL), HBP_E_INVALID);
    hbp_plan_free(batches_take(context, stepper));
    OK(context, hbp_stepper_submit(context, stepper, lengths, 3, NULL));
}
END_TEST

START_TEST_IN_CONTEXT(a_stepper_without_sense_is_refused)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_stepper_options options = {.struct_size = sizeof options};
    hbp_step_options step = {.struct_size = sizeof step};
    hbp_stepper *stepper = (hbp_stepper *)1;
    FAILS(context, HBP_E_INVALID, "cost is NULL", hbp_stepper_create(context, NULL, NULL, NULL, &stepper));
    ck_assert_ptr_null(stepper);
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_stepper_create(context, cost, NULL, NULL, NULL));
    options.depth = 1025;
    FAILS(context, HBP_E_INVALID, "`depth` is 1025",
          hbp_stepper_create(context, cost, NULL, &options, &stepper));
    options.depth = -1;
    FAILS(context, HBP_E_INVALID, "`depth` is -1",
          hbp_stepper_create(context, cost, NULL, &options, &stepper));
    step.effort = 77;
    FAILS(context, HBP_E_INVALID, "`effort` is 77", hbp_stepper_create(context, cost, &step, NULL, &stepper));
    ck_assert_int_eq(hbp_stepper_create(NULL, cost, NULL, NULL, &stepper), HBP_E_INVALID);
    ck_assert_ptr_null(stepper);
}
END_TEST

START_TEST_IN_CONTEXT(step_options_are_kept)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_step_options options = {.struct_size = sizeof options};
    options.min_sp = 4;
    options.sequence_multiple = 128;
    options.micro_batch_multiple = 3;
    hbp_stepper *stepper = NULL;
    MAKES(context, stepper, hbp_stepper_create(context, cost, &options, NULL, &stepper));
    hbp_step_options same = options;
    memset(&options, 0xa5, sizeof options);
    batches_submit(context, stepper, 1);
    hbp_plan *plan = keep(batches_take(context, stepper)), *direct = NULL;
    batch b;
    hbp_lengths *lengths = keep(batches_lengths(context, batches_draw(&b, 1)));
    MAKES(context, direct, hbp_plan_step(context, lengths, cost, &same, &direct));
    ck_assert_uint_eq(plan_digest(plan), plan_digest(direct));
}
END_TEST

static int64_t count_down(const failing *f)
{
    return (INT64_C(1) << 40) - f->left;
}

/* Once the batches have been seen, a step takes what its plan needs and nothing else: the steps of the second
 * round take from the caller's allocator as many blocks as copies of their plans do. */
START_TEST(memory_is_kept_between_steps)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    hbp_cost *cost = test_cost(context);
    hbp_stepper *stepper = batches_stepper(context, cost, 2, 0);
    int64_t first = 0, second = 0, copies = 0, kept = 0;
    f.left = INT64_C(1) << 40; /* counts */
    for (int round = 0; round < 2; round++)
        for (uint64_t step = 0; step < STEPS; step++) {
            int64_t before = count_down(&f);
            batches_submit(context, stepper, step);
            hbp_plan *plan = batches_take(context, stepper);
            *(round ? &second : &first) += count_down(&f) - before;
            before = count_down(&f);
            hbp_plan *copy = hbp__plan_copy(&plan->memory, plan);
            copies += round ? count_down(&f) - before : 0;
            hbp_plan_free(copy);
            hbp_plan_free(plan);
            int64_t now = batches_summary(context, stepper).kept_bytes;
            ck_assert(round == 0 || now == kept);
            kept = now;
        }
    ck_assert_int_gt(first, copies);
    ck_assert_int_eq(second, copies);
    hbp_stepper_free(stepper);
    hbp_cost_free(cost);
    hbp_context_free(context);
    ck_assert_int_eq(f.live, 0);
}
END_TEST

static hbp_status whole_run(hbp_context *context, void *cost)
{
    hbp_stepper *stepper = NULL;
    hbp_status status = hbp_stepper_create(context, cost, NULL, NULL, &stepper);
    for (uint64_t step = 0; step < 3 && status >= 0; step++) {
        batch b;
        batches_draw(&b, step);
        hbp_plan *plan = NULL;
        status = hbp_stepper_submit(context, stepper, b.length, b.count, &b.options);
        if (status >= 0)
            status = hbp_stepper_take(context, stepper, &plan);
        ck_assert((plan != NULL) == (status >= 0));
        hbp_plan_free(plan);
    }
    hbp_stepper_free(stepper);
    return status;
}

START_TEST_IN_CONTEXT(failing_allocations_leave_nothing)
{
    hbp_cost *cost = keep(test_cost(context));
    failing_sweep_lenient(whole_run, cost); /* the pool gives back what it keeps, and asks again */
}
END_TEST

TEST_MAIN("stepper", plans_are_those_of_plan_step_in_order,
          data_sets_are_shared_and_plans_outlive_the_stepper, a_step_that_cannot_be_planned_harms_no_other,
          what_cannot_be_submitted_or_taken_is_refused, a_stepper_without_sense_is_refused,
          step_options_are_kept, memory_is_kept_between_steps, failing_allocations_leave_nothing)
