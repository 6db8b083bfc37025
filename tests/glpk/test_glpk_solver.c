#include <glpk.h>
#include <math.h>
#include <pthread.h>

#include "base/rng.h"
#include "failing.h"
#include "hbp/glpk.h"
#include "solve/program.h"

static hbp_context *glpk_context(void)
{
    hbp_context *context = test_context();
    OK(context, hbp_context_set_solver(context, hbp_glpk_solver()));
    return context;
}

/* `items` items, `rows` knapsacks, costs and sizes below 20: minimise minus the value. */
typedef struct knapsack {
    int items;
    int rows;
    int most; /* of an item */
    int value[16];
    int size[4][16];
    int room[4];
} knapsack;

static knapsack draw(uint64_t seed)
{
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    knapsack k = {.items = 4 + (int)hbp__rng_below(&rng, 7), .rows = 1 + (int)hbp__rng_below(&rng, 3)};
    k.most = k.items > 7 ? 1 : 1 + (int)hbp__rng_below(&rng, 2);
    for (int i = 0; i < k.items; i++) {
        k.value[i] = 1 + (int)hbp__rng_below(&rng, 19);
        for (int r = 0; r < k.rows; r++)
            k.size[r][i] = 1 + (int)hbp__rng_below(&rng, 19);
    }
    for (int r = 0; r < k.rows; r++)
        k.room[r] = 10 + (int)hbp__rng_below(&rng, (uint64_t)k.items * 8);
    return k;
}

static hbp_status make(hbp_context *context, const knapsack *k, hbp__program *program)
{
    hbp__program_open(context, program);
    for (int i = 0; i < k->items; i++)
        HBP__TRY(
            hbp__program_add_column(program, -k->value[i] / 10.0, 0, k->most, HBP_COLUMN_INTEGER, i % 3));
    for (int r = 0; r < k->rows; r++) {
        HBP__TRY(hbp__program_add_row(program, -INFINITY, k->room[r] / 10.0));
        for (int i = 0; i < k->items; i++)
            HBP__TRY(hbp__program_add_entry(program, i, k->size[r][i] / 10.0));
    }
    return HBP_OK;
}

/* The best value, over every way to fill. */
static int brute(const knapsack *k)
{
    int count[16] = {0}, best = 0;
    for (;;) {
        int value = 0, fits = 1;
        for (int i = 0; i < k->items; i++)
            value += count[i] * k->value[i];
        for (int r = 0; r < k->rows && fits; r++) {
            int size = 0;
            for (int i = 0; i < k->items; i++)
                size += count[i] * k->size[r][i];
            fits = size <= k->room[r];
        }
        if (fits && value > best)
            best = value;
        int i = 0;
        while (i < k->items && count[i] == k->most)
            count[i++] = 0;
        if (i == k->items)
            return best;
        count[i]++;
    }
}

START_TEST(fills_knapsacks_as_brute_force_does)
{
    hbp_context *context = glpk_context();
    for (uint64_t seed = 0; seed < 150; seed++) {
        knapsack k = draw(seed);
        double best = -brute(&k) / 10.0, values[16], start[16] = {0};
        hbp__program program;
        hbp__answer answer;
        OK(context, make(context, &k, &program));
        OK(context, hbp__program_solve(&program, "test", seed % 2 ? start : NULL, NULL, values, &answer));
        ck_assert_int_eq(answer.status, HBP_SOLVER_OPTIMAL);
        ck_assert_msg(fabs(answer.objective - best) < 1e-6, "seed %d: %g instead of %g", (int)seed,
                      answer.objective, best);
        ck_assert(fabs(answer.bound - best) < 1e-5);
        /* Without the integers: at least as good, and nothing below it. */
        for (int i = 0; i < k.items; i++)
            program.kind[i] = HBP_COLUMN_CONTINUOUS;
        OK(context, hbp__program_solve(&program, "test", NULL, NULL, values, &answer));
        ck_assert_int_eq(answer.status, HBP_SOLVER_OPTIMAL);
        ck_assert(answer.objective < best + 1e-6);
        hbp__program_close(&program);
    }
    hbp_context_free(context);
}
END_TEST

/* Linear programs of two columns have their optimum in a crossing of two borders. */
START_TEST(solves_linear_programs_as_their_corners_do)
{
    hbp_context *context = glpk_context();
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    int solved = 0;
    for (int round = 0; round < 200; round++) {
        double row[8][3] = {{1, 0, 4}, {0, 1, 4}, {-1, 0, 0}, {0, -1, 0}}, cost[2];
        int rows = 4 + (int)hbp__rng_below(&rng, 5);
        for (int c = 0; c < 2; c++)
            cost[c] = (double)hbp__rng_below(&rng, 21) / 10 - 1;
        for (int r = 4; r < rows; r++)
            for (int c = 0; c < 3; c++)
                row[r][c] = (double)hbp__rng_below(&rng, 21) / 10 - (c < 2 ? 1 : .3);
        double best = INFINITY;
        for (int a = 0; a < rows; a++) {
            for (int b = 0; b < a; b++) {
                double det = row[a][0] * row[b][1] - row[a][1] * row[b][0];
                if (fabs(det) < 1e-9)
                    continue;
                double x = (row[a][2] * row[b][1] - row[a][1] * row[b][2]) / det;
                double y = (row[a][0] * row[b][2] - row[a][2] * row[b][0]) / det;
                int fits = 1;
                for (int r = 0; r < rows; r++)
                    fits = fits && row[r][0] * x + row[r][1] * y <= row[r][2] + 1e-9;
                if (fits)
                    best = fmin(best, cost[0] * x + cost[1] * y);
            }
        }
        hbp__program program;
        hbp__program_open(context, &program);
        for (int c = 0; c < 2; c++)
            OK(context, hbp__program_add_column(&program, cost[c], 0, 4, HBP_COLUMN_CONTINUOUS, 0));
        for (int r = 4; r < rows; r++) {
            OK(context, hbp__program_add_row(&program, -INFINITY, row[r][2]));
            for (int c = 0; c < 2; c++)
                OK(context, hbp__program_add_entry(&program, c, row[r][c]));
        }
        double values[2];
        hbp__answer answer;
        OK(context, hbp__program_solve(&program, "test", NULL, NULL, values, &answer));
        if (isfinite(best)) {
            ck_assert_int_eq(answer.status, HBP_SOLVER_OPTIMAL);
            ck_assert_msg(fabs(answer.objective - best) < 1e-6, "%g instead of %g", answer.objective, best);
            solved++;
        } else {
            ck_assert_int_eq(answer.status, HBP_SOLVER_INFEASIBLE);
        }
        hbp__program_close(&program);
    }
    ck_assert_int_gt(solved, 50);
    ck_assert_int_lt(solved, 200);
    hbp_context_free(context);
}
END_TEST

static int32_t status_of(hbp_context *context, const hbp__program *program)
{
    double values[4];
    hbp__answer answer;
    OK(context, hbp__program_solve(program, "test", NULL, NULL, values, &answer));
    return answer.status;
}

START_TEST(tells_what_has_no_optimum)
{
    hbp_context *context = glpk_context();
    for (int32_t kind = HBP_COLUMN_CONTINUOUS; kind <= HBP_COLUMN_INTEGER; kind++) {
        hbp__program program;
        hbp__program_open(context, &program);
        ck_assert_int_eq(status_of(context, &program), HBP_SOLVER_OPTIMAL); /* nothing to decide */
        OK(context, hbp__program_add_column(&program, 1, 0, INFINITY, kind, 0));
        OK(context, hbp__program_add_column(&program, -1, 0, INFINITY, kind, 0));
        ck_assert_int_eq(status_of(context, &program), HBP_SOLVER_UNBOUNDED);
        OK(context, hbp__program_add_row(&program, -INFINITY, 1.5));
        OK(context, hbp__program_add_entry(&program, 1, 1));
        OK(context, hbp__program_add_entry(&program, 0, -1));
        ck_assert_int_eq(status_of(context, &program), HBP_SOLVER_OPTIMAL);
        OK(context, hbp__program_add_row(&program, 2, INFINITY));
        OK(context, hbp__program_add_entry(&program, 1, 1));
        OK(context, hbp__program_add_entry(&program, 0, -1));
        ck_assert_int_eq(status_of(context, &program), HBP_SOLVER_INFEASIBLE);
        program.upper[0] = 20;      /* else a tree without end */
        program.row_lower[1] = 1.5; /* between whole numbers: only without integers */
        program.row_upper[1] = 1.5;
        ck_assert_int_eq(status_of(context, &program), kind ? HBP_SOLVER_INFEASIBLE : HBP_SOLVER_OPTIMAL);
        program.row_lower[1] = 2;
        program.row_upper[1] = 1;
        ck_assert_int_eq(status_of(context, &program), HBP_SOLVER_INFEASIBLE);
        hbp__program_close(&program);
    }
    hbp_context_free(context);
}
END_TEST

/* Cornuejols and Dawande's market split: few rows, and trees of millions of nodes. */
static void make_hard(hbp_context *context, hbp__program *program, int rows)
{
    hbp__rng rng = hbp__rng_make(11, 0, 0);
    int columns = 10 * (rows - 1);
    hbp__program_open(context, program);
    for (int c = 0; c < columns; c++)
        OK(context, hbp__program_add_column(program, 0, 0, 1, HBP_COLUMN_INTEGER, 0));
    for (int r = 0; r < rows; r++) {
        double sum = 0;
        for (int side = 0; side < 2; side++)
            OK(context, hbp__program_add_column(program, 1, 0, INFINITY, HBP_COLUMN_CONTINUOUS, 0));
        OK(context, hbp__program_add_row(program, 0, 0));
        for (int c = 0; c < columns; c++) {
            double value = hbp__rng_below(&rng, 100) / 100.0;
            sum += value;
            OK(context, hbp__program_add_entry(program, c, value));
        }
        OK(context, hbp__program_add_entry(program, columns + 2 * r, 1));
        OK(context, hbp__program_add_entry(program, columns + 2 * r + 1, -1));
        program->row_lower[r] = program->row_upper[r] = floor(sum * 50) / 100;
    }
}

START_TEST(stops_at_limits)
{
    hbp_context *context = glpk_context();
    hbp__program program;
    make_hard(context, &program, 4);
    double values[2][64];
    hbp__answer answer[2];
    hbp_solver_limits limits = {.struct_size = sizeof limits, .nodes = 300};
    for (int i = 0; i < 2; i++)
        OK(context, hbp__program_solve(&program, "test", NULL, &limits, values[i], &answer[i]));
    ck_assert(answer[0].status == HBP_SOLVER_FEASIBLE || answer[0].status == HBP_SOLVER_STOPPED);
    ck_assert_int_eq(answer[0].status, answer[1].status);
    ck_assert_mem_eq(&answer[0].bound, &answer[1].bound, sizeof answer[0].bound);
    ck_assert_mem_eq(values[0], values[1], (size_t)program.columns * sizeof values[0][0]);
    ck_assert(answer[0].bound >= -1e-6);

    limits = (hbp_solver_limits){.struct_size = sizeof limits, .iterations = 3};
    OK(context, hbp__program_solve(&program, "test", NULL, &limits, values[0], &answer[0]));
    ck_assert_int_eq(answer[0].status, HBP_SOLVER_STOPPED);
    limits.iterations = 500;
    OK(context, hbp__program_solve(&program, "test", NULL, &limits, values[0], &answer[0]));
    ck_assert_int_ne(answer[0].status, HBP_SOLVER_OPTIMAL);
    ck_assert_int_ge(answer[0].iterations, 500);
    ck_assert_int_lt(answer[0].iterations, 2000);

    limits = (hbp_solver_limits){.struct_size = sizeof limits, .time_ms = 30};
    OK(context, hbp__program_solve(&program, "test", NULL, &limits, values[0], &answer[0]));
    ck_assert_int_ne(answer[0].status, HBP_SOLVER_OPTIMAL);

    /* A start is an answer from the first node on. */
    double start[64] = {0};
    for (int r = 0; r < program.rows; r++)
        start[10 * (program.rows - 1) + 2 * r] = program.row_upper[r];
    limits = (hbp_solver_limits){.struct_size = sizeof limits, .nodes = 2};
    OK(context, hbp__program_solve(&program, "test", start, &limits, values[0], &answer[0]));
    ck_assert_int_eq(answer[0].status, HBP_SOLVER_FEASIBLE);
    limits = (hbp_solver_limits){.struct_size = sizeof limits, .gap = .99};
    for (int c = 0; c < 30; c++)
        program.objective[c] = .25; /* so that no point is free */
    OK(context, hbp__program_solve(&program, "test", start, &limits, values[0], &answer[0]));
    ck_assert_int_eq(answer[0].status, HBP_SOLVER_FEASIBLE);
    ck_assert(answer[0].bound > 0 && answer[0].objective - answer[0].bound <= .99 * answer[0].objective);
    hbp__program_close(&program);
    hbp_context_free(context);
}
END_TEST

START_TEST(is_cancelled_in_the_middle)
{
    int64_t left = 4;
    failing memory;
    hbp_context *context = failing_context(&memory, cancel_after, &left);
    OK(context, hbp_context_set_solver(context, hbp_glpk_solver()));
    hbp__program program;
    make_hard(context, &program, 5);
    double values[64];
    hbp__answer answer;
    FAILS(context, HBP_E_CANCELLED, "stage exact",
          hbp__program_solve(&program, "exact", NULL, NULL, values, &answer));
    hbp__program_close(&program);

    /* In a long simplex, where nothing branches. */
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    hbp__program_open(context, &program);
    for (int c = 0; c < 1500; c++)
        OK(context, hbp__program_add_column(&program, -1 - hbp__rng_below(&rng, 100) / 100.0, 0, INFINITY,
                                            HBP_COLUMN_CONTINUOUS, 0));
    for (int r = 0; r < 1000; r++) {
        OK(context, hbp__program_add_row(&program, -INFINITY, 1));
        for (int c = 0; c < 1500; c++)
            if (hbp__rng_below(&rng, 3) == 0)
                OK(context, hbp__program_add_entry(&program, c, .1 + hbp__rng_below(&rng, 100) / 100.0));
    }
    double *many = malloc(1500 * sizeof *many);
    left = 10;
    FAILS(context, HBP_E_CANCELLED, "stage exact",
          hbp__program_solve(&program, "exact", NULL, NULL, many, &answer));
    free(many);
    hbp__program_close(&program);

    left = 1000000;
    knapsack k = draw(1);
    OK(context, make(context, &k, &program));
    OK(context, hbp__program_solve(&program, "exact", NULL, NULL, values, &answer));
    ck_assert_int_eq(answer.status, HBP_SOLVER_OPTIMAL);
    hbp__program_close(&program);
    hbp_context_free(context);
    ck_assert_int_eq(memory.live, 0);
}
END_TEST

START_TEST(reports_a_failure_of_glpk)
{
    hbp_context *context = glpk_context();
    knapsack k = draw(2);
    hbp__program program;
    double values[16];
    hbp__answer answer;
    for (int round = 0; round < 3; round++) {
        OK(context, make(context, &k, &program));
        OK(context, hbp__program_add_entry(&program, 0, 1)); /* a column twice in a row */
        FAILS(context, HBP_E_SOLVER, "the solver failed: glp_set_mat_row",
              hbp__program_solve(&program, "test", NULL, NULL, values, &answer));
        hbp__program_close(&program);
        OK(context, make(context, &k, &program));
        OK(context, hbp__program_solve(&program, "test", NULL, NULL, values, &answer));
        ck_assert_int_eq(answer.status, HBP_SOLVER_OPTIMAL);
        hbp__program_close(&program);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(reports_that_memory_is_out)
{
    hbp_context *context = glpk_context();
    hbp__program program;
    hbp__program_open(context, &program);
    for (int c = 0; c < 20000; c++)
        OK(context, hbp__program_add_column(&program, 1, 0, 1, HBP_COLUMN_INTEGER, 0));
    double *values = malloc(20000 * sizeof *values);
    hbp__answer answer;
    hbp_solver_limits limits = {.struct_size = sizeof limits, .memory_bytes = 1000000};
    FAILS(context, HBP_E_NO_MEMORY, "solver",
          hbp__program_solve(&program, "test", NULL, &limits, values, &answer));
    limits.memory_bytes = INT64_MAX;
    OK(context, hbp__program_solve(&program, "test", NULL, &limits, values, &answer));
    ck_assert_int_eq(answer.status, HBP_SOLVER_OPTIMAL);
    free(values);
    hbp__program_close(&program);
    hbp_context_free(context);
}
END_TEST

START_TEST(refuses_numbers_that_are_none)
{
    double cost = 1, low = 0, high = 1, row_low = 0, row_high = 1, value = 1, point = 0;
    int32_t kind = HBP_COLUMN_CONTINUOUS, column = 0;
    int64_t first[2] = {0, 1};
    hbp_program program = {sizeof program, 1,        1,         &cost, &low,    &high,  &kind,
                           NULL,           &row_low, &row_high, first, &column, &value, NULL};
    char message[100];
    hbp_solver_answer answer = {sizeof answer, 0, 0, 0, &point, message, sizeof message, 0};
    const hbp_solver *solver = hbp_glpk_solver();
    ck_assert_int_eq(solver->solve(solver->user, &program, NULL, &answer), HBP_OK);
    ck_assert_int_eq(answer.status, HBP_SOLVER_OPTIMAL);
    double *places[] = {&cost, &low, &high, &row_low, &row_high, &value};
    for (int i = 0; i < 6; i++) {
        double sound = *places[i];
        *places[i] = NAN;
        ck_assert_int_eq(solver->solve(solver->user, &program, NULL, &answer), HBP_E_INVALID);
        ck_assert(strstr(message, "not finite") || strstr(message, "not a number"));
        *places[i] = sound;
    }
    column = 1;
    ck_assert_int_eq(solver->solve(solver->user, &program, NULL, &answer), HBP_E_INVALID);
    column = 0;
    answer.struct_size = 2;
    ck_assert_int_eq(solver->solve(solver->user, &program, NULL, &answer), HBP_E_INVALID);
}
END_TEST

static int host_lines;

static int host_hook(void *user, const char *text)
{
    (void)user, (void)text;
    host_lines++;
    return 1;
}

START_TEST(leaves_the_hosts_own_problems_alone)
{
    glp_term_hook(host_hook, NULL);
    glp_prob *host = glp_create_prob();
    glp_add_cols(host, 2);
    glp_add_rows(host, 1);
    glp_set_obj_dir(host, GLP_MAX);
    for (int c = 1; c <= 2; c++) {
        glp_set_col_bnds(host, c, GLP_DB, 0, 2);
        glp_set_obj_coef(host, c, c);
    }
    glp_set_row_bnds(host, 1, GLP_UP, 0, 3);
    glp_set_mat_row(host, 1, 2, (int[]){0, 1, 2}, (double[]){0, 1, 1});
    int lines = host_lines;

    hbp_context *context = glpk_context();
    knapsack k = draw(3);
    hbp__program program;
    double values[16];
    hbp__answer answer;
    for (int fault = 0; fault < 2; fault++) {
        OK(context, make(context, &k, &program));
        if (fault)
            OK(context, hbp__program_add_entry(&program, 0, 1));
        hbp_status status = hbp__program_solve(&program, "test", NULL, NULL, values, &answer);
        ck_assert_int_eq(status, fault ? HBP_E_SOLVER : HBP_OK);
        hbp__program_close(&program);
    }
    hbp_context_free(context);

    ck_assert_int_eq(host_lines, lines); /* not a word through the host's terminal */
    ck_assert_int_eq(glp_simplex(host, NULL), 0);
    ck_assert_int_gt(host_lines, lines); /* and its hook still there */
    ck_assert(fabs(glp_get_obj_val(host) - 5) < 1e-9);
    glp_delete_prob(host);
    glp_free_env();
}
END_TEST

typedef struct worker {
    uint64_t seed;
    int wrong;
} worker;

static void *work(void *user)
{
    worker *w = user;
    hbp_context *context = NULL;
    w->wrong = hbp_context_create(NULL, &context) != HBP_OK ||
               hbp_context_set_solver(context, hbp_glpk_solver()) != HBP_OK;
    for (uint64_t i = 0; i < 20 && !w->wrong; i++) {
        knapsack k = draw(w->seed * 100 + i);
        hbp__program program;
        double values[16];
        hbp__answer answer;
        w->wrong = make(context, &k, &program) != HBP_OK ||
                   hbp__program_solve(&program, "test", NULL, NULL, values, &answer) != HBP_OK ||
                   answer.status != HBP_SOLVER_OPTIMAL || fabs(answer.objective + brute(&k) / 10.0) > 1e-6;
        hbp__program_close(&program);
    }
    hbp_context_free(context);
    return NULL;
}

START_TEST(solves_on_many_threads)
{
    worker workers[4];
    pthread_t thread[4];
    for (int t = 0; t < 4; t++) {
        workers[t] = (worker){(uint64_t)t, 0};
        ck_assert_int_eq(pthread_create(&thread[t], NULL, work, &workers[t]), 0);
    }
    for (int t = 0; t < 4; t++) {
        ck_assert_int_eq(pthread_join(thread[t], NULL), 0);
        ck_assert_int_eq(workers[t].wrong, 0);
    }
}
END_TEST

static hbp_status solve_one(hbp_context *context, void *user)
{
    (void)user;
    HBP__TRY(hbp_context_set_solver(context, hbp_glpk_solver()));
    knapsack k = draw(4);
    hbp__program program;
    double values[16];
    hbp__answer answer;
    hbp_status status = make(context, &k, &program);
    if (status >= 0)
        status = hbp__program_solve(&program, "test", NULL, NULL, values, &answer);
    hbp__program_close(&program);
    return status;
}

START_TEST(survives_failing_allocations)
{
    failing_sweep(solve_one, NULL);
}
END_TEST

TEST_MAIN("glpk_solver", fills_knapsacks_as_brute_force_does, solves_linear_programs_as_their_corners_do,
          tells_what_has_no_optimum, stops_at_limits, is_cancelled_in_the_middle, reports_a_failure_of_glpk,
          reports_that_memory_is_out, refuses_numbers_that_are_none, leaves_the_hosts_own_problems_alone,
          solves_on_many_threads, survives_failing_allocations)
