#include "plain_milp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct program {
    hbp_program p;
    double *objective, *column_lower, *column_upper, *row_lower, *row_upper, *value;
    int32_t *kind, *priority, *column;
    int64_t *first;
    int64_t entries;
} program;

typedef struct slot {
    int32_t degree;
    int32_t index; /* among those of its degree */
} slot;

static void program_open(program *g, int64_t columns, int64_t rows, int64_t entries)
{
    memset(g, 0, sizeof *g);
    g->objective = bench_allocate(columns, sizeof *g->objective);
    g->column_lower = bench_allocate(columns, sizeof *g->column_lower);
    g->column_upper = bench_allocate(columns, sizeof *g->column_upper);
    g->kind = bench_allocate(columns, sizeof *g->kind);
    g->priority = bench_allocate(columns, sizeof *g->priority);
    g->row_lower = bench_allocate(rows, sizeof *g->row_lower);
    g->row_upper = bench_allocate(rows, sizeof *g->row_upper);
    g->first = bench_allocate(rows + 1, sizeof *g->first);
    g->column = bench_allocate(entries, sizeof *g->column);
    g->value = bench_allocate(entries, sizeof *g->value);
    g->first[0] = 0;
}

static void program_close(program *g)
{
    free(g->objective);
    free(g->column_lower);
    free(g->column_upper);
    free(g->kind);
    free(g->priority);
    free(g->row_lower);
    free(g->row_upper);
    free(g->first);
    free(g->column);
    free(g->value);
}

static void add_column(program *g, double objective, double lower, double upper, int32_t kind,
                       int32_t priority)
{
    int32_t c = g->p.columns++;
    g->objective[c] = objective;
    g->column_lower[c] = lower;
    g->column_upper[c] = upper;
    g->kind[c] = kind;
    g->priority[c] = priority;
}

static void add_row(program *g, double lower, double upper)
{
    int32_t r = g->p.rows++;
    g->row_lower[r] = lower;
    g->row_upper[r] = upper;
    g->first[r + 1] = g->entries;
}

static void add_entry(program *g, int64_t column, double value)
{
    g->column[g->entries] = (int32_t)column;
    g->value[g->entries++] = value;
    g->first[g->p.rows] = g->entries;
}

static int64_t padded(const bench_milp *m, int64_t k)
{
    return (m->length[k] + m->multiple - 1) / m->multiple * m->multiple;
}

static double squared(const bench_milp *m, int64_t k)
{
    return (double)m->length[k] * (double)m->length[k];
}

/* What a group takes without sequences, and what sequence k adds to it. ns. */
static double fixed_ns(const bench_milp *m)
{
    return (double)hbp_cost_predict_pack_ns(m->cost, 1, 0, 0, 0, 0);
}

static double added_ns(const bench_milp *m, int32_t degree, int64_t k)
{
    return (double)hbp_cost_predict_pack_ns(m->cost, degree, 0, padded(m, k), squared(m, k), 0) - fixed_ns(m);
}

/* Columns: the time, then for each slot whether it is open and, for each sequence, whether it is there. */
static int64_t column_open(const bench_milp *m, int64_t s)
{
    return 1 + s * (m->count + 1);
}

/* `times` what the sequences of a slot take. */
static void add_load(const bench_milp *m, int32_t degree, int64_t s, double times, program *g)
{
    for (int64_t k = 0; k < m->count; k++)
        add_entry(g, column_open(m, s) + 1 + k, times * added_ns(m, degree, k) / m->unit_ns);
}

static void build(const bench_milp *m, const slot *slots, int64_t count, program *g)
{
    double fixed = fixed_ns(m) / m->unit_ns;
    double most = (m->cutoff_ns - fixed_ns(m)) / m->unit_ns;
    program_open(g, 1 + count * (m->count + 1), m->count + 2 + 4 * count, 1 + count * (5 * m->count + 8));
    add_column(g, 1, fixed, m->cutoff_ns / m->unit_ns, HBP_COLUMN_CONTINUOUS, 0);
    for (int64_t s = 0; s < count; s++) {
        add_column(g, 0, 0, 1, HBP_COLUMN_INTEGER, 1);
        int64_t room = hbp_cost_predict_capacity(m->cost, slots[s].degree, 0);
        for (int64_t k = 0; k < m->count; k++)
            add_column(g, 0, 0,
                       k >= slots[s].index && padded(m, k) <= room &&
                           added_ns(m, slots[s].degree, k) / m->unit_ns <= most,
                       HBP_COLUMN_INTEGER, 0);
    }
    for (int64_t k = 0; k < m->count; k++) {
        add_row(g, 1, 1);
        for (int64_t s = 0; s < count; s++)
            add_entry(g, column_open(m, s) + 1 + k, 1);
    }
    add_row(g, -INFINITY, m->ranks);
    for (int64_t s = 0; s < count; s++)
        add_entry(g, column_open(m, s), slots[s].degree);
    add_row(g, -INFINITY, 0);
    add_entry(g, 0, -m->ranks);
    for (int64_t s = 0; s < count; s++) {
        add_entry(g, column_open(m, s), slots[s].degree * fixed);
        add_load(m, slots[s].degree, s, slots[s].degree, g);
    }
    for (int64_t s = 0; s < count; s++) {
        double room = (double)hbp_cost_predict_capacity(m->cost, slots[s].degree, 0);
        add_row(g, -INFINITY, 0);
        add_entry(g, 0, -1);
        add_entry(g, column_open(m, s), fixed);
        add_load(m, slots[s].degree, s, 1, g);
        if (isfinite(most)) {
            add_row(g, -INFINITY, 0);
            add_entry(g, column_open(m, s), -most);
            add_load(m, slots[s].degree, s, 1, g);
        }
        add_row(g, -INFINITY, 0);
        add_entry(g, column_open(m, s), -1);
        for (int64_t k = 0; k < m->count; k++)
            add_entry(g, column_open(m, s) + 1 + k, (double)padded(m, k) / room);
        if (!slots[s].index)
            continue;
        add_row(g, 0, INFINITY);
        add_entry(g, column_open(m, s - 1), 1);
        add_entry(g, column_open(m, s), -1);
    }
    g->p.struct_size = sizeof g->p;
    g->p.objective = g->objective;
    g->p.column_lower = g->column_lower;
    g->p.column_upper = g->column_upper;
    g->p.column_type = g->kind;
    g->p.column_priority = g->priority;
    g->p.row_lower = g->row_lower;
    g->p.row_upper = g->row_upper;
    g->p.row_first = g->first;
    g->p.entry_column = g->column;
    g->p.entry_value = g->value;
}

/* The time of a solution in the integers of plans; 0 when it is none. */
static int64_t evaluate(bench_milp *m, const slot *slots, int64_t count, const double *values)
{
    int64_t slowest = 0, held = 0, ranks = 0;
    for (int64_t s = 0; s < count; s++) {
        int64_t tokens = 0;
        double squares = 0;
        for (int64_t k = 0; k < m->count; k++)
            if (values[column_open(m, s) + 1 + k] > .5) {
                tokens += padded(m, k);
                squares += squared(m, k);
                held++;
            }
        if (!tokens)
            continue;
        int64_t ns = hbp_cost_predict_pack_ns(m->cost, slots[s].degree, 0, tokens, squares, 0);
        if (ns < 0 || tokens > hbp_cost_predict_capacity(m->cost, slots[s].degree, 0))
            return 0;
        slowest = ns > slowest ? ns : slowest;
        ranks += slots[s].degree;
        for (int j = 0; j < 16; j++)
            m->groups[j] += slots[s].degree == 1 << j;
    }
    return held == m->count && ranks <= m->ranks ? slowest : 0;
}

hbp_status bench_milp_solve(const hbp_solver *solver, bench_milp *m)
{
    slot *slots = bench_allocate(2 * (int64_t)m->ranks, sizeof *slots);
    int64_t count = 0;
    for (int32_t d = 1; d <= m->ranks; d *= 2)
        for (int32_t i = 0; i < m->ranks / d && i < m->count; i++)
            slots[count++] = (slot){d, i};
    program g;
    build(m, slots, count, &g);
    char message[256] = "";
    hbp_solver_answer answer = {.struct_size = sizeof answer, .bound = -INFINITY};
    answer.values = bench_allocate(g.p.columns, sizeof *answer.values);
    answer.message = message;
    answer.message_bytes = sizeof message;
    hbp_status status = solver->solve(solver->user, &g.p, &m->limits, &answer);
    m->ns = 0;
    m->status = answer.status;
    memset(m->groups, 0, sizeof m->groups);
    m->bound_ns = answer.bound > 0 ? answer.bound * m->unit_ns : 0;
    if (answer.status == HBP_SOLVER_INFEASIBLE)
        m->bound_ns = m->cutoff_ns;
    if (status >= 0 && (answer.status == HBP_SOLVER_OPTIMAL || answer.status == HBP_SOLVER_FEASIBLE))
        m->ns = evaluate(m, slots, count, answer.values);
    free(answer.values);
    program_close(&g);
    free(slots);
    return status;
}
