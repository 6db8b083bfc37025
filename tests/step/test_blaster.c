#include "base/methods.h"
#include "step/blaster.h"

#include "base/rng.h"
#include "costs.h"
#include "failing.h"
#include "keep.h"

#define MOST 12

/* The least largest sum of first..count - 1 in `runs` runs, by trying every cut. */
static int64_t every_cut(const int64_t *length, int64_t first, int64_t count, int64_t runs)
{
    int64_t best = INT64_MAX, sum = 0;
    if (runs == 1) {
        for (int64_t i = first; i < count; i++)
            sum += length[i];
        return sum;
    }
    for (int64_t end = first + 1; end <= count - runs + 1; end++) {
        sum += length[end - 1];
        int64_t rest = every_cut(length, end, count, runs - 1);
        int64_t largest = sum > rest ? sum : rest;
        best = largest < best ? largest : best;
    }
    return best;
}

static int64_t largest_run(const int64_t *length, const int64_t *first, int64_t runs, int64_t count)
{
    int64_t largest = 0;
    ck_assert_int_eq(first[0], 0);
    ck_assert_int_eq(first[runs], count);
    for (int64_t r = 0; r < runs; r++) {
        int64_t sum = 0;
        ck_assert_int_lt(first[r], first[r + 1]);
        for (int64_t i = first[r]; i < first[r + 1]; i++)
            sum += length[i];
        largest = sum > largest ? sum : largest;
    }
    return largest;
}

START_TEST_IN_CONTEXT(every_cut_is_no_better)
{
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    int64_t length[MOST], first[MOST + 1];
    for (int round = 0; round < 5000; round++) {
        int64_t count = 1 + hbp__rng_below(&rng, MOST), runs = 1 + hbp__rng_below(&rng, (uint64_t)count);
        uint64_t most = UINT64_C(1) << hbp__rng_below(&rng, 31);
        for (int64_t i = 0; i < count; i++) {
            length[i] = 1 + hbp__rng_below(&rng, most);
            for (int64_t k = i; k > 0 && length[k - 1] < length[k]; k--) {
                int64_t swap = length[k];
                length[k] = length[k - 1];
                length[k - 1] = swap;
            }
        }
        OK(context, hbp__step_blaster_cut(context, length, count, runs, first));
        ck_assert_int_eq(largest_run(length, first, runs, count), every_cut(length, 0, count, runs));
    }
}
END_TEST

/* The largest sum leaves a choice: what is left is shared out evenly. */
START_TEST_IN_CONTEXT(runs_are_near_the_mean)
{
    int64_t length[81] = {100}, first[6];
    for (int i = 1; i < 81; i++)
        length[i] = 1;
    OK(context, hbp__step_blaster_cut(context, length, 81, 5, first));
    for (int r = 0; r < 5; r++)
        ck_assert_int_eq(first[r + 1], 1 + 20 * r);
}
END_TEST

/* What an inner solver was asked, and how it is to answer. */
static struct {
    int64_t calls;
    int64_t infeasible_above; /* tokens */
    hbp_status answer;
    int64_t seen[64]; /* members of each call */
} asked;

/* All members in one group of the largest degree. */
static hbp_status stub(const hbp__step *step, const int64_t *member, int64_t members, const int64_t *tokens,
                       const double *squares, hbp__step_solution *solution)
{
    int64_t sum = 0;
    ck_assert_ptr_null(tokens);
    ck_assert_ptr_null(squares);
    for (int64_t i = 0; i < members; i++)
        sum += step->tokens[member[i]];
    ck_assert_int_lt(asked.calls, 64);
    asked.seen[asked.calls++] = members;
    if (asked.answer < 0)
        return hbp__fail(step->context, asked.answer, "told to");
    if (sum > asked.infeasible_above)
        return asked.answer ? asked.answer : HBP_E_INFEASIBLE; /* stopped with nothing found */
    HBP__TRY(hbp__step_solution_open(step, 1, 2, solution));   /* the first group stays empty */
    solution->degree[0] = 0;
    solution->degree[1] = step->degrees - 1;
    solution->first[1] = 2;
    for (int64_t i = 0; i < members; i++)
        solution->group[i] = 1;
    return asked.answer;
}

typedef struct fixture {
    hbp_context *context;
    hbp_cost *cost;
    hbp_lengths *lengths;
    hbp__step step;
    hbp__step_solution solution;
} fixture;

/* 40 sequences of `length` tokens on one group of 8 ranks, nothing recomputed, which holds a multiple of 10
 * tokens. */
static fixture open_fixture(uint32_t length, int32_t min_micro_batches, int32_t max_micro_batches)
{
    fixture f = {.context = test_context()};
    uint32_t lengths[40];
    for (int i = 0; i < 40; i++)
        lengths[i] = length;
    f.cost = test_cost_ranks(f.context, 8);
    hbp_step_options options = {.struct_size = sizeof options,
                                .method = hbp__step_name(HBP__STEP_FLEXSP),
                                .recompute = HBP_STEP_RECOMPUTE_NONE,
                                .pack_multiple = 10,
                                .min_sp = 8,
                                .min_micro_batches = min_micro_batches,
                                .max_micro_batches = max_micro_batches};
    OK(f.context, hbp_lengths_create_u32(f.context, lengths, 40, NULL, &f.lengths));
    OK(f.context, hbp__step_open(f.context, f.lengths, f.cost, &options, &f.step));
    memset(&asked, 0, sizeof asked);
    asked.infeasible_above = INT64_MAX;
    return f;
}

static void close_fixture(fixture *f)
{
    hbp__step_solution_close(&f->solution);
    hbp__step_close(&f->step);
    hbp_lengths_free(f->lengths);
    hbp_cost_free(f->cost);
    hbp_context_free(f->context);
}

/* Forty sequences of a tenth of what the cluster holds: exactly four clusters full, so five micro-batches,
 * since each must hold strictly less; and 6, 7, 8, 9 are tried. */
START_TEST(the_least_number_and_four_more_are_tried)
{
    fixture probe = open_fixture(1, 0, 0);
    int64_t capacity = probe.step.degree[0].capacity;
    close_fixture(&probe);
    fixture f = open_fixture((uint32_t)(capacity / 10), 0, 0);
    OK(f.context, hbp__step_blast(&f.step, stub, &f.solution));
    ck_assert_int_eq(asked.calls, 5 + 6 + 7 + 8 + 9);
    ck_assert_int_eq(asked.seen[0], 8);
    /* The fewest are the fastest here, and the empty group is gone. */
    ck_assert_int_eq(f.solution.micro_batches, 5);
    ck_assert_int_eq(f.solution.groups, 5);
    close_fixture(&f);
}
END_TEST

START_TEST(infeasible_numbers_do_not_count)
{
    fixture f = open_fixture(1000, 0, 0);
    asked.infeasible_above = 7999; /* so 6 micro-batches, of 7 sequences at most */
    OK(f.context, hbp__step_blast(&f.step, stub, &f.solution));
    ck_assert_int_eq(f.solution.micro_batches, 6);
    ck_assert_int_eq(asked.calls, 5 + 6 + 7 + 8 + 9 + 10);
    for (int i = 0; i < 5; i++)
        ck_assert_int_ge(asked.seen[i], 8); /* the first micro-batch of 1, 2, 3, 4, 5 */
    ck_assert_str_eq(hbp_context_message(f.context), "");
    close_fixture(&f);
}
END_TEST

START_TEST(options_bound_the_number)
{
    fixture f = open_fixture(1000, 3, 4);
    OK(f.context, hbp__step_blast(&f.step, stub, &f.solution));
    ck_assert_int_eq(asked.calls, 3 + 4);
    ck_assert_int_eq(f.solution.micro_batches, 3);
    close_fixture(&f);
    f = open_fixture(1000, 50, 0);
    OK(f.context, hbp__step_blast(&f.step, stub, &f.solution));
    ck_assert_int_eq(asked.calls, 40);
    ck_assert_int_eq(f.solution.micro_batches, 50);
    close_fixture(&f);
    f = open_fixture(1000, 0, 5);
    asked.infeasible_above = 7999;
    FAILS(f.context, HBP_E_INFEASIBLE, "at most 5 micro-batches",
          hbp__step_blast(&f.step, stub, &f.solution));
    close_fixture(&f);
}
END_TEST

START_TEST(what_the_solver_says_is_passed_on)
{
    fixture f = open_fixture(1000, 0, 0);
    asked.answer = HBP_NOT_PROVEN;
    ck_assert_int_eq(hbp__step_blast(&f.step, stub, &f.solution), HBP_NOT_PROVEN);
    ck_assert_int_eq(f.solution.micro_batches, 1);
    close_fixture(&f);
    f = open_fixture(1000, 0, 0);
    asked.answer = HBP_NOT_PROVEN;
    asked.infeasible_above = 7999;
    ck_assert_int_eq(hbp__step_blast(&f.step, stub, &f.solution), HBP_NOT_PROVEN);
    ck_assert_int_eq(f.solution.micro_batches, 6);
    close_fixture(&f);
    f = open_fixture(1000, 0, 0);
    asked.answer = HBP_E_SOLVER;
    FAILS(f.context, HBP_E_SOLVER, "told to", hbp__step_blast(&f.step, stub, &f.solution));
    ck_assert_int_eq(asked.calls, 1);
    close_fixture(&f);
}
END_TEST

static hbp_status blast(hbp_context *context, void *user)
{
    fixture *f = user;
    hbp__step step;
    hbp__step_solution solution = {.ns = 0};
    hbp_step_options options = {.struct_size = sizeof options, .min_micro_batches = 3};
    memset(&asked, 0, sizeof asked);
    asked.infeasible_above = INT64_MAX;
    hbp_status status = hbp__step_open(context, f->lengths, f->cost, &options, &step);
    if (status == HBP_OK)
        status = hbp__step_blast(&step, stub, &solution);
    hbp__step_solution_close(&solution);
    hbp__step_close(&step);
    return status;
}

START_TEST(failures_leave_nothing)
{
    fixture f = open_fixture(1000, 0, 0);
    failing_sweep(blast, &f);
    ck_assert_int_ge(cancel_sweep(blast, &f), 3 + 4 + 5 + 6 + 7);
    close_fixture(&f);
}
END_TEST

TEST_MAIN("blaster", every_cut_is_no_better, runs_are_near_the_mean, the_least_number_and_four_more_are_tried,
          infeasible_numbers_do_not_count, options_bound_the_number, what_the_solver_says_is_passed_on,
          failures_leave_nothing)
