#include "traps.h"

#include "solve/program.h"

#include <float.h>
#include <math.h>

#include "failing.h"

/* A solver that says what it is told to. */
typedef struct fake {
    hbp_status status;
    int32_t answer;
    double value[2];
    double bound;
    const char *message;
    int polls;
    int calls;
    int64_t nodes;
    int64_t entries; /* that the rows end with */
} fake;

static hbp_status fake_solve(void *user, const hbp_program *program, const hbp_solver_limits *limits,
                             hbp_solver_answer *answer)
{
    fake *f = user;
    f->calls++;
    f->nodes = limits->nodes;
    f->entries = program->row_first[program->rows];
    for (int i = 0; i < f->polls; i++)
        if (limits->poll(limits->poll_user))
            break;
    answer->status = f->answer;
    answer->bound = f->bound;
    for (int32_t c = 0; c < program->columns && c < 2; c++)
        answer->values[c] = f->value[c];
    if (f->message)
        snprintf(answer->message, (size_t)answer->message_bytes, "%s", f->message);
    return f->status;
}

/* Minimise -x - 2 y, x + y <= 3.5, x in 0..2 whole, y in 0..2: the best is (1, 2) or (1.5, 2). */
static hbp_status make(hbp_context *context, hbp__program *program)
{
    hbp__program_open(context, program);
    HBP__TRY(hbp__program_add_column(program, -1, 0, 2, HBP_COLUMN_INTEGER, 1));
    HBP__TRY(hbp__program_add_column(program, -2, 0, 2, HBP_COLUMN_CONTINUOUS, 0));
    HBP__TRY(hbp__program_add_row(program, -INFINITY, 3.5));
    HBP__TRY(hbp__program_add_entry(program, 0, 1));
    HBP__TRY(hbp__program_add_entry(program, 1, 1));
    return HBP_OK;
}

START_TEST(checks_points)
{
    hbp_context *context = test_context();
    hbp__program program;
    OK(context, make(context, &program));
    ck_assert(hbp__program_holds(&program, (double[]){1, 2}));
    ck_assert(hbp__program_holds(&program, (double[]){1 + 1e-7, 2}));
    ck_assert(!hbp__program_holds(&program, (double[]){1.5, 2}));
    ck_assert(!hbp__program_holds(&program, (double[]){2, 2}));
    ck_assert(!hbp__program_holds(&program, (double[]){3, 0}));
    ck_assert(!hbp__program_holds(&program, (double[]){0, -1}));
    ck_assert(!hbp__program_holds(&program, (double[]){0, NAN}));
    ck_assert(!hbp__program_holds(&program, (double[]){INFINITY, 0}));
    program.upper[1] = INFINITY;
    ck_assert(!hbp__program_holds(&program, (double[]){1, DBL_MAX}));
    program.row_upper[0] = program.entry_value[0] = program.entry_value[1] = 1e200;
    ck_assert(!hbp__program_holds(&program, (double[]){0, 1.1e100}));
    ck_assert(hbp__program_holds(&program, (double[]){0, 0.9}));
    ck_assert(!hbp__program_holds(&program, (double[]){0, 1.1}));
    hbp__program_close(&program);
    hbp_context_free(context);
}
END_TEST

START_TEST(believes_what_holds)
{
    hbp_context *context = test_context();
    fake f = {.answer = HBP_SOLVER_OPTIMAL, .value = {1, 2}, .bound = -5 + 1e-9};
    hbp_solver solver = {sizeof solver, fake_solve, &f};
    OK(context, hbp_context_set_solver(context, &solver));
    hbp__program program;
    OK(context, make(context, &program));
    hbp_solver_limits limits = {.struct_size = sizeof limits, .nodes = 7};
    double values[2];
    hbp__answer answer;
    OK(context, hbp__program_solve(&program, "test", (double[]){0, 0}, &limits, values, &answer));
    ck_assert_int_eq(answer.status, HBP_SOLVER_OPTIMAL);
    ck_assert(fabs(answer.objective + 5) < 1e-12 && answer.bound <= answer.objective);
    ck_assert(fabs(values[0] - 1) < 1e-12 && fabs(values[1] - 2) < 1e-12);
    ck_assert_int_eq(f.nodes, 7);
    ck_assert_int_eq(f.entries, 2);
    f.answer = HBP_SOLVER_STOPPED;
    f.bound = -INFINITY;
    OK(context, hbp__program_solve(&program, "test", NULL, NULL, values, &answer));
    ck_assert_int_eq(answer.status, HBP_SOLVER_STOPPED);
    ck_assert_int_eq(f.nodes, 0);
    f.answer = HBP_SOLVER_INFEASIBLE;
    OK(context, hbp__program_solve(&program, "test", NULL, NULL, values, &answer));
    ck_assert_int_eq(answer.status, HBP_SOLVER_INFEASIBLE);
    hbp__program_close(&program);
    hbp_context_free(context);
}
END_TEST

/* The rows of a program without any end where they begin, with no entry. */
START_TEST(needs_no_rows)
{
    hbp_context *context = test_context();
    fake f = {.answer = HBP_SOLVER_OPTIMAL, .value = {2}, .bound = -2, .entries = -1};
    hbp_solver solver = {sizeof solver, fake_solve, &f};
    OK(context, hbp_context_set_solver(context, &solver));
    hbp__program program;
    hbp__program_open(context, &program);
    OK(context, hbp__program_add_column(&program, -1, 0, 2, HBP_COLUMN_CONTINUOUS, 0));
    double value;
    hbp__answer answer;
    OK(context, hbp__program_solve(&program, "test", NULL, NULL, &value, &answer));
    ck_assert_int_eq(f.entries, 0);
    ck_assert(answer.objective == -2 && answer.bound == -2);
    hbp__program_close(&program);
    hbp_context_free(context);
}
END_TEST

START_TEST(refuses_what_does_not)
{
    hbp_context *context = test_context();
    fake f = {.answer = HBP_SOLVER_OPTIMAL, .value = {2, 2}, .bound = -6};
    hbp_solver solver = {sizeof solver, fake_solve, &f};
    hbp__program program;
    OK(context, make(context, &program));
    double values[2], start[2] = {0, 0};
    hbp__answer answer;
    FAILS(context, HBP_E_SOLVER, "no solver; give it one",
          hbp__program_solve(&program, "test", NULL, NULL, values, &answer));
    OK(context, hbp_context_set_solver(context, &solver));
    FAILS(context, HBP_E_SOLVER, "does not keep",
          hbp__program_solve(&program, "test", NULL, NULL, values, &answer));
    f.value[0] = 0;
    f.bound = -3;
    FAILS(context, HBP_E_SOLVER, "above its own point's -4",
          hbp__program_solve(&program, "test", NULL, NULL, values, &answer));
    f.bound = NAN;
    FAILS(context, HBP_E_SOLVER, "bound is",
          hbp__program_solve(&program, "test", NULL, NULL, values, &answer));
    f.answer = 99;
    f.bound = -4;
    FAILS(context, HBP_E_SOLVER, "answers 99",
          hbp__program_solve(&program, "test", NULL, NULL, values, &answer));
    f.answer = HBP_SOLVER_INFEASIBLE;
    FAILS(context, HBP_E_SOLVER, "infeasible that has a solution",
          hbp__program_solve(&program, "test", start, NULL, values, &answer));
    f.status = HBP_E_INTERNAL;
    FAILS(context, HBP_E_SOLVER, "the solver failed: internal error",
          hbp__program_solve(&program, "test", NULL, NULL, values, &answer));
    f.message = "a pivot of 0";
    FAILS(context, HBP_E_SOLVER, "the solver failed: a pivot of 0",
          hbp__program_solve(&program, "test", NULL, NULL, values, &answer));
    f.status = HBP_E_NO_MEMORY;
    FAILS(context, HBP_E_NO_MEMORY, "solver",
          hbp__program_solve(&program, "test", NULL, NULL, values, &answer));
    start[0] = 2;
    start[1] = 2;
    FAILS(context, HBP_E_INTERNAL, "no solution of it",
          hbp__program_solve(&program, "test", start, NULL, values, &answer));
    OK(context, hbp_context_set_solver(context, NULL));
    FAILS(context, HBP_E_SOLVER, "no solver",
          hbp__program_solve(&program, "test", NULL, NULL, values, &answer));
    solver.solve = NULL;
    FAILS(context, HBP_E_INVALID, "hbp_solver.solve", hbp_context_set_solver(context, &solver));
    hbp__program_close(&program);
    hbp_context_free(context);
}
END_TEST

START_TEST(hands_on_no_number_that_is_none)
{
    hbp_context *context = test_context();
    fake f = {.answer = HBP_SOLVER_OPTIMAL};
    hbp_solver solver = {sizeof solver, fake_solve, &f};
    OK(context, hbp_context_set_solver(context, &solver));
    double values[2];
    hbp__answer answer;
    for (int fault = 0; fault < 7; fault++) {
        hbp__program program;
        OK(context, make(context, &program));
        double *places[] = {program.objective, program.lower,       program.upper,    program.row_lower,
                            program.row_upper, program.entry_value, program.objective};
        *places[fault] = fault == 6 ? INFINITY : NAN;
        FAILS(context, HBP_E_INVALID, "a linear program",
              hbp__program_solve(&program, "test", NULL, NULL, values, &answer));
        hbp__program_close(&program);
    }
    ck_assert_int_eq(f.calls, 0);
    hbp_context_free(context);
}
END_TEST

/* Says that it found an optimum, and where it fails fills the room for a message to the last byte. */
static hbp_status silent_solve(void *user, const hbp_program *program, const hbp_solver_limits *limits,
                               hbp_solver_answer *answer)
{
    (void)program, (void)limits;
    const fake *f = user;
    answer->status = HBP_SOLVER_OPTIMAL;
    answer->bound = f->bound;
    memset(answer->message, '#', (size_t)answer->message_bytes);
    return f->status;
}

START_TEST(needs_no_point_and_no_end_of_a_message)
{
    hbp_context *context = test_context();
    fake f = {.bound = 1e-7};
    hbp_solver solver = {sizeof solver, silent_solve, &f};
    OK(context, hbp_context_set_solver(context, &solver));
    hbp__program program;
    OK(context, make(context, &program));
    double values[2] = {2, 2};
    hbp__answer answer;
    OK(context, hbp__program_solve(&program, "test", NULL, NULL, values, &answer));
    ck_assert(values[0] == 0 && values[1] == 0);
    ck_assert(answer.objective == 0 && answer.bound == 0); /* no bound is above the point's own */
    f.status = HBP_E_SYSTEM;
    FAILS(context, HBP_E_SOLVER, "the solver failed: ####",
          hbp__program_solve(&program, "test", NULL, NULL, values, &answer));
    const char *marks = strchr(hbp_context_message(context), '#');
    ck_assert_uint_eq(strspn(marks, "#"), 255);
    ck_assert_uint_eq(strlen(marks), 255);
    hbp__program_close(&program);
    hbp_context_free(context);
}
END_TEST

START_TEST(passes_a_cancel_through)
{
    int64_t left = 3;
    failing memory;
    hbp_context *context = failing_context(&memory, cancel_after, &left);
    fake f = {.answer = HBP_SOLVER_OPTIMAL, .value = {1, 2}, .bound = -5, .polls = 10};
    hbp_solver solver = {sizeof solver, fake_solve, &f};
    OK(context, hbp_context_set_solver(context, &solver));
    hbp__program program;
    OK(context, make(context, &program));
    double values[2];
    hbp__answer answer;
    FAILS(context, HBP_E_CANCELLED, "stage exact",
          hbp__program_solve(&program, "exact", NULL, NULL, values, &answer));
    left = 100;
    OK(context, hbp__program_solve(&program, "exact", NULL, NULL, values, &answer));
    hbp__program_close(&program);
    hbp_context_free(context);
    ck_assert_int_eq(memory.live, 0);
}
END_TEST

static hbp_status grow(hbp_context *context, void *user)
{
    (void)user;
    hbp__program program;
    hbp_status status = make(context, &program);
    for (int c = 0; c < 300 && status >= 0; c++)
        status = hbp__program_add_column(&program, c, 0, c, HBP_COLUMN_CONTINUOUS, 0);
    for (int r = 0; r < 200 && status >= 0; r++) {
        status = hbp__program_add_row(&program, -r, r);
        for (int c = 0; c < 10 && status >= 0; c++)
            status = hbp__program_add_entry(&program, c, c);
    }
    if (status >= 0) {
        ck_assert_int_eq(program.columns, 302);
        ck_assert_int_eq(program.rows, 201);
        ck_assert_int_eq(program.entries, 2 + 200 * 9); /* zeros are left out */
        ck_assert_int_eq(program.row_first[201], program.entries);
        ck_assert_int_eq(program.row_first[200], program.entries - 9);
    }
    hbp__program_close(&program);
    return status;
}

START_TEST(survives_failing_allocations)
{
    failing_sweep(grow, NULL);
}
END_TEST

TEST_MAIN_WITH("program", traps_on, NULL, checks_points, believes_what_holds, needs_no_rows,
               refuses_what_does_not, hands_on_no_number_that_is_none, needs_no_point_and_no_end_of_a_message,
               passes_a_cancel_through, survives_failing_allocations)
