/* Plans of random solutions say what the solutions said. */
#include "costs.h"
#include "data/plan/plan.h"
#include "failing.h"
#include "keep.h"
#include "solved.h"

/* The group of every sample. The test frees it. */
static int64_t *groups_of(const hbp__step *step, const hbp__step_solution *s)
{
    int64_t *group = malloc((size_t)step->lengths->count * sizeof *group);
    uint32_t sample[EXACT_SEQUENCES * 40];
    for (int64_t i = 0; i < step->count; i++) {
        int64_t members = hbp__items_write(&step->items, step->count - 1 - i, sample);
        for (int64_t k = 0; k < members; k++)
            group[sample[k]] = s->group[i];
    }
    return group;
}

/* Micro-batch m of the plan holds the groups of micro-batch m that are not empty, each in one pack of its
 * degree, and a dummy on every other rank. */
static void check_packs(const hbp__step *step, const hbp__step_solution *s, const hbp_plan *plan,
                        const int64_t *group)
{
    int64_t *seen = calloc((size_t)s->groups + 1, sizeof *seen);
    for (int64_t m = 0; m < plan->micro_batches; m++)
        for (int64_t p = plan->micro_batch_offsets[m]; p < plan->micro_batch_offsets[m + 1]; p++) {
            int64_t begin = plan->pack_offsets[p], end = plan->pack_offsets[p + 1];
            if (begin == end) {
                ck_assert_int_eq(plan->pack_sp[p], 1);
                ck_assert_int_eq(plan->pack_padded_tokens[p], 0);
                continue;
            }
            int64_t g = group[plan->sample_ids[begin]];
            ck_assert_int_lt(m, s->micro_batches);
            ck_assert(g >= s->first[m] && g < s->first[m + 1]);
            ck_assert_int_eq(seen[g]++, 0);
            ck_assert_int_eq(plan->pack_sp[p], step->degree[s->degree[g]].degree);
            for (int64_t i = begin; i < end; i++)
                ck_assert_int_eq(group[plan->sample_ids[i]], g);
        }
    free(seen);
}

START_TEST(plans_say_what_solutions_said)
{
    for (uint64_t i = 0; i < 270; i++) {
        small_step small = small_open(i, (int)(i % SMALL_KINDS), i / 9 % 2 ? 16 : 8, EXACT_SEQUENCES, 1e99);
        small.options.micro_batch_multiple = (int32_t)(i / 18 % 4);
        hbp__step step;
        hbp__step_solution solution;
        hbp_plan *plan = NULL;
        hbp_report report = {.struct_size = sizeof report};
        OK(small.context, hbp__step_open(small.context, small.lengths, small.cost, &small.options, &step));
        solved_draw(&step, i, &solution);
        OK(small.context, hbp__step_solution_price(&step, &solution));
        solution.bound_ns = i % 2 ? solution.ns / 2 : 0;
        solution.complete = i % 3 != 0;
        OK(small.context, hbp__step_finish(&step, &solution, &plan));
        OK(small.context, hbp_plan_validate(small.context, plan, small.lengths, small.cost));
        OK(small.context, hbp_simulate(small.context, plan, small.cost, NULL, &report));
        int64_t step_ns = hbp__round_i64(small.cost->terms.step_ns);
        ck_assert_int_eq(report.epoch_ns, solution.ns + step_ns);
        ck_assert_int_eq(plan->step_ns[0], solution.ns + step_ns);
        ck_assert_int_eq(plan->bound_ns, i % 2 ? solution.bound_ns + step_ns : 0);
        ck_assert_int_eq(plan->complete, i % 3 != 0);
        ck_assert_int_eq(plan->micro_batches,
                         hbp__round_up(solution.micro_batches, step.options.micro_batch_multiple));
        ck_assert_int_eq(plan->micro_batch_multiple, step.options.micro_batch_multiple);
        int64_t *group = groups_of(&step, &solution);
        check_packs(&step, &solution, plan, group);
        free(group);
        hbp_plan_free(plan);
        hbp__step_solution_close(&solution);
        hbp__step_close(&step);
        small_close(&small);
    }
}
END_TEST

/* Each sequence in a group of its own, each group in a micro-batch of its own. */
static hbp_status finish_apart(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                               const hbp_step_options *options, hbp_plan **plan)
{
    hbp__step step;
    hbp__step_solution s = {.ns = 0};
    hbp_status status = hbp__step_open(context, lengths, cost, options, &step);
    if (status == HBP_OK)
        status = hbp__step_solution_open(&step, step.count, step.count, &s);
    for (int64_t i = 0; i < step.count && status == HBP_OK; i++) {
        s.first[i + 1] = i + 1;
        s.degree[i] = step.degrees - 1;
        s.group[i] = i;
    }
    if (status == HBP_OK)
        status = hbp__step_solution_price(&step, &s);
    if (status == HBP_OK)
        status = hbp__step_finish(&step, &s, plan);
    hbp__step_solution_close(&s);
    hbp__step_close(&step);
    return status;
}

/* Dropped samples are listed, pieces of a split one know where they begin, loss tokens and vision units come
 * along, all units with the first piece. */
START_TEST_IN_CONTEXT(samples_keep_what_belongs_to_them)
{
    static const uint32_t length[] = {100, 9000, 40, 7000, 3000}, loss[] = {100, 500, 0, 7000, 10},
                          vision[] = {2, 30, 0, 400, 5};
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths_options options = {.struct_size = sizeof options, .loss_tokens = loss, .vision = vision};
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths, hbp_lengths_create_u32(context, length, 5, &options, &lengths));
    for (int32_t policy = HBP_OVERLONG_DROP; policy <= HBP_OVERLONG_SPLIT; policy++) {
        hbp_lengths *limited = NULL;
        hbp_plan *plan = NULL;
        hbp_step_options step = {.struct_size = sizeof step, .sequence_multiple = 16, .pack_multiple = 100};
        OK(context, hbp_lengths_limit(context, lengths, 4000, policy, &limited));
        OK(context, finish_apart(context, limited, cost, &step, &plan));
        OK(context, hbp_plan_validate(context, plan, limited, cost));
        OK(context, hbp_plan_validate(context, plan, lengths, cost));
        ck_assert_int_eq(plan->dropped, policy == HBP_OVERLONG_DROP ? 2 : 0);
        ck_assert_int_eq(plan->samples,
                         policy == HBP_OVERLONG_DROP ? 3 : (policy == HBP_OVERLONG_SPLIT ? 8 : 5));
        ck_assert_int_eq(plan->overlong_samples, 2);
        ck_assert_int_eq(plan->step_loss_tokens[0],
                         policy == HBP_OVERLONG_DROP ? 110 : (policy == HBP_OVERLONG_SPLIT ? 7610 : 4610));
        ck_assert_int_eq(plan->sample_first_tokens != NULL, policy == HBP_OVERLONG_SPLIT);
        int64_t units = 0;
        for (int64_t p = 0; p < plan->packs; p++) {
            units += plan->pack_vision[p];
            ck_assert(plan->pack_vision_capacity[p] == INT64_MAX);
        }
        ck_assert_int_eq(units, policy == HBP_OVERLONG_DROP ? 7 : 437);
        ck_assert_ptr_null(plan->micro_batch_modalities);
        hbp_plan_free(plan);
        hbp_lengths_free(limited);
    }
}
END_TEST

START_TEST(groups_without_a_place_are_a_mistake)
{
    small_step small = small_open(25, SMALL_MEMORY, 16, EXACT_SEQUENCES, 1e99);
    hbp__step step;
    hbp__step_solution s;
    hbp_plan *plan = NULL;
    OK(small.context, hbp__step_open(small.context, small.lengths, small.cost, &small.options, &step));
    OK(small.context, hbp__step_solution_open(&step, 1, 2, &s));
    s.first[1] = 2;
    s.degree[0] = s.degree[1] = step.degrees - 1;
    FAILS(small.context, HBP_E_INTERNAL, "the groups of micro-batch 0 have no place",
          hbp__step_finish(&step, &s, &plan));
    ck_assert_ptr_null(plan);
    hbp__step_solution_close(&s);
    hbp__step_close(&step);
    small_close(&small);
}
END_TEST

/* Beyond 2^63 ns in sum, though no micro-batch is. */
START_TEST_IN_CONTEXT(a_time_past_all_numbers_is_an_overflow)
{
    hbp_cost *small = keep(test_cost(context)), *cost = NULL;
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    hbp_lengths *lengths = NULL;
    hbp_plan *plan = NULL;
    OK(context, hbp_cost_get_terms(context, small, &terms));
    terms.ns_per_token_squared = 4e13;
    terms.step_ns = 0;
    MAKES(context, cost, hbp_cost_create_terms(context, &terms, &cost));
    MAKES(context, lengths,
          hbp_lengths_create_u32(context, (uint32_t[]){1000, 999, 998, 997}, 4, NULL, &lengths));
    hbp_step_options options = {.struct_size = sizeof options};
    FAILS(context, HBP_E_OVERFLOW, "2^63", finish_apart(context, lengths, cost, &options, &plan));
    ck_assert_ptr_null(plan);
}
END_TEST

static hbp_status finish_once(hbp_context *context, void *user)
{
    const small_step *small = user;
    hbp_plan *plan = NULL;
    hbp_status status = finish_apart(context, small->lengths, small->cost, &small->options, &plan);
    ck_assert_int_eq(status == HBP_OK, plan != NULL);
    hbp_plan_free(plan);
    return status;
}

START_TEST(nothing_is_left_behind)
{
    small_step small = small_open(8, SMALL_TIED, 16, EXACT_SEQUENCES, 1e99);
    failing_sweep(finish_once, &small);
    small_close(&small);
}
END_TEST

TEST_MAIN("finish", plans_say_what_solutions_said, samples_keep_what_belongs_to_them,
          groups_without_a_place_are_a_mistake, a_time_past_all_numbers_is_an_overflow,
          nothing_is_left_behind)
