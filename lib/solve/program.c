/* A program's growing arrays, the call of the context's solver, and the check of its answer. O(entries)
 * beside the solver. */
#include "solve/program.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

/* Of a solver's own message. */
#define MESSAGE_BYTES 256

/* Of a point: no program of ours has one that large, and no sum of a row overflows. */
#define MOST_VALUE 1e100

void hbp__program_open(hbp_context *context, hbp__program *program)
{
    memset(program, 0, sizeof *program);
    program->context = context;
}

void hbp__program_close(hbp__program *program)
{
    const hbp__memory *memory = &program->context->memory;
    hbp__delete(memory, program->objective);
    hbp__delete(memory, program->lower);
    hbp__delete(memory, program->upper);
    hbp__delete(memory, program->kind);
    hbp__delete(memory, program->priority);
    hbp__delete(memory, program->row_lower);
    hbp__delete(memory, program->row_upper);
    hbp__delete(memory, program->row_first);
    hbp__delete(memory, program->entry_column);
    hbp__delete(memory, program->entry_value);
    hbp__program_open(program->context, program);
}

/* One array to `room` elements; the array is left as it is when memory is short. */
#define GROW(array, room)                                                                                    \
    do {                                                                                                     \
        void *grown = hbp__renew(&program->context->memory, (array), (uint64_t)(room), sizeof *(array));     \
        if (!grown)                                                                                          \
            return hbp__fail_memory(program->context, "a linear program");                                   \
        (array) = grown;                                                                                     \
    } while (0)

static hbp_status grow_columns(hbp__program *program)
{
    int64_t room = program->column_room * 2 + 64;
    GROW(program->objective, room);
    GROW(program->lower, room);
    GROW(program->upper, room);
    GROW(program->kind, room);
    GROW(program->priority, room);
    program->column_room = room;
    return HBP_OK;
}

static hbp_status grow_rows(hbp__program *program)
{
    int64_t room = program->row_room * 2 + 64;
    GROW(program->row_lower, room);
    GROW(program->row_upper, room);
    GROW(program->row_first, room + 1);
    program->row_room = room;
    return HBP_OK;
}

static hbp_status grow_entries(hbp__program *program)
{
    int64_t room = program->entry_room * 2 + 256;
    GROW(program->entry_column, room);
    GROW(program->entry_value, room);
    program->entry_room = room;
    return HBP_OK;
}

hbp_status hbp__program_add_column(hbp__program *program, double objective, double lower, double upper,
                                   int32_t kind, int32_t priority)
{
    if (program->columns == INT32_MAX)
        return hbp__fail(program->context, HBP_E_OVERFLOW, "a linear program has %d columns; no more fit",
                         INT32_MAX);
    if (program->columns == program->column_room)
        HBP__TRY(grow_columns(program));
    int32_t at = program->columns++;
    program->objective[at] = objective;
    program->lower[at] = lower;
    program->upper[at] = upper;
    program->kind[at] = kind;
    program->priority[at] = priority;
    return HBP_OK;
}

hbp_status hbp__program_add_row(hbp__program *program, double lower, double upper)
{
    if (program->rows == INT32_MAX)
        return hbp__fail(program->context, HBP_E_OVERFLOW, "a linear program has %d rows; no more fit",
                         INT32_MAX);
    if (program->rows == program->row_room)
        HBP__TRY(grow_rows(program));
    int32_t at = program->rows++;
    program->row_lower[at] = lower;
    program->row_upper[at] = upper;
    program->row_first[at] = program->row_first[at + 1] = program->entries;
    return HBP_OK;
}

hbp_status hbp__program_add_entry(hbp__program *program, int32_t column, double value)
{
    if (value == 0.0) /* NaN is kept, for the check to find */
        return HBP_OK;
    if (program->entries == program->entry_room)
        HBP__TRY(grow_entries(program));
    program->entry_column[program->entries] = column;
    program->entry_value[program->entries] = value;
    program->row_first[program->rows] = ++program->entries;
    return HBP_OK;
}

/* A solver may take a NaN for an optimum: nothing that is not a number reaches one. */
static hbp_status check_numbers(const hbp__program *program)
{
    hbp_context *context = program->context;
    for (int32_t c = 0; c < program->columns; c++) {
        double low = program->lower[c], high = program->upper[c];
        if (!isfinite(program->objective[c]))
            return hbp__fail(context, HBP_E_INVALID, "column %d of a linear program has a cost of %g", (int)c,
                             program->objective[c]);
        if (!isless(low, INFINITY) || !isgreater(high, -INFINITY))
            return hbp__fail(context, HBP_E_INVALID, "column %d of a linear program has the bounds %g..%g",
                             (int)c, low, high);
    }
    for (int32_t r = 0; r < program->rows; r++) {
        double low = program->row_lower[r], high = program->row_upper[r];
        if (!isless(low, INFINITY) || !isgreater(high, -INFINITY))
            return hbp__fail(context, HBP_E_INVALID, "row %d of a linear program has the bounds %g..%g",
                             (int)r, low, high);
    }
    for (int64_t e = 0; e < program->entries; e++) {
        if (!isfinite(program->entry_value[e]))
            return hbp__fail(context, HBP_E_INVALID,
                             "a linear program has the entry %g in column %d: not finite",
                             program->entry_value[e], (int)program->entry_column[e]);
    }
    return HBP_OK;
}

/* low <= value <= high but for the tolerance, in proportion to `size`. */
static int lies_in(double value, double low, double high, double size)
{
    double slack = HBP__PROGRAM_TOLERANCE * (1 + size);
    return value >= low - slack && value <= high + slack;
}

int hbp__program_holds(const hbp__program *program, const double *values)
{
    for (int32_t c = 0; c < program->columns; c++) {
        double value = values[c];
        if (!hbp__lies_in(value, -MOST_VALUE, MOST_VALUE) ||
            !lies_in(value, program->lower[c], program->upper[c], fabs(value)))
            return 0;
        if (program->kind[c] == HBP_COLUMN_INTEGER && !(fabs(value - rint(value)) <= HBP__PROGRAM_TOLERANCE))
            return 0;
    }
    for (int32_t r = 0; r < program->rows; r++) {
        double sum = 0, size = 0;
        for (int64_t e = program->row_first[r]; e < program->row_first[r + 1]; e++) {
            double term = program->entry_value[e] * values[program->entry_column[e]];
            sum += term;
            size += fabs(term);
        }
        if (!lies_in(sum, program->row_lower[r], program->row_upper[r], size))
            return 0;
    }
    return 1;
}

typedef struct polling {
    hbp_context *context;
    const char *stage;
    const hbp_solver_limits *limits; /* the caller's; may be NULL */
    int64_t asked;
    hbp_status status;
} polling;

static int32_t poll_context(void *user)
{
    polling *poll = user;
    if (poll->status == HBP_OK)
        poll->status = hbp__tick(poll->context, poll->stage, poll->asked++, 0);
    if (poll->status < 0)
        return 1;
    return poll->limits && poll->limits->poll && poll->limits->poll(poll->limits->poll_user);
}

static hbp_status check_answer(const hbp__program *program, const double *start, const double *values,
                               const hbp_solver_answer *from, hbp__answer *answer)
{
    hbp_context *context = program->context;
    *answer = (hbp__answer){from->status, 0, from->bound, from->iterations};
    if (from->status == HBP_SOLVER_INFEASIBLE && start)
        return hbp__fail(context, HBP_E_SOLVER, "the solver calls a program infeasible that has a solution");
    if (from->status == HBP_SOLVER_INFEASIBLE || from->status == HBP_SOLVER_UNBOUNDED)
        return HBP_OK;
    if (isnan(from->bound))
        return hbp__fail(context, HBP_E_SOLVER, "the solver's bound is %g", from->bound);
    if (from->status == HBP_SOLVER_STOPPED)
        return HBP_OK;
    if (from->status != HBP_SOLVER_OPTIMAL && from->status != HBP_SOLVER_FEASIBLE)
        return hbp__fail(context, HBP_E_SOLVER, "the solver answers %d, which is no answer",
                         (int)from->status);
    if (!hbp__program_holds(program, values))
        return hbp__fail(context, HBP_E_SOLVER, "the solver's point does not keep the program's rows");
    for (int32_t c = 0; c < program->columns; c++)
        answer->objective += program->objective[c] * values[c];
    if (!(from->bound <= answer->objective + HBP__PROGRAM_TOLERANCE * (1 + fabs(answer->objective))))
        return hbp__fail(context, HBP_E_SOLVER, "the solver's bound is %g, above its own point's %g",
                         from->bound, answer->objective);
    if (from->bound > answer->objective)
        answer->bound = answer->objective;
    return HBP_OK;
}

hbp_status hbp__program_solve(const hbp__program *program, const char *stage, const double *start,
                              const hbp_solver_limits *limits, double *values, hbp__answer *answer)
{
    hbp_context *context = program->context;
    const hbp_solver *solver = context->solver;
    if (!solver)
        return hbp__fail(context, HBP_E_SOLVER,
                         "the context has no solver; give it one by hbp_context_set_solver");
    HBP__TRY(check_numbers(program));
    if (start && !hbp__program_holds(program, start))
        return hbp__fail(context, HBP_E_INTERNAL, "the start of a linear program is no solution of it");
    static const int64_t no_rows[1] = {0};
    hbp_program view = {.struct_size = sizeof view,
                        .columns = program->columns,
                        .rows = program->rows,
                        .objective = program->objective,
                        .column_lower = program->lower,
                        .column_upper = program->upper,
                        .column_type = program->kind,
                        .column_priority = program->priority,
                        .row_lower = program->row_lower,
                        .row_upper = program->row_upper,
                        .row_first = program->rows ? program->row_first : no_rows,
                        .entry_column = program->entry_column,
                        .entry_value = program->entry_value,
                        .start = start};
    polling poll = {context, stage, limits, 0, HBP_OK};
    hbp_solver_limits all = {.struct_size = sizeof all};
    if (limits)
        all = *limits;
    all.struct_size = sizeof all;
    all.poll = poll_context;
    all.poll_user = &poll;
    char message[MESSAGE_BYTES] = "";
    hbp_solver_answer from = {.struct_size = sizeof from,
                              .bound = -INFINITY,
                              .values = values,
                              .message = message,
                              .message_bytes = sizeof message};
    memset(values, 0, (size_t)program->columns * sizeof *values);
    hbp_status status = solver->solve(solver->user, &view, &all, &from);
    HBP__TRY(poll.status);
    if (status == HBP_E_NO_MEMORY)
        return hbp__fail_memory(context, "the solver");
    message[sizeof message - 1] = '\0';
    if (status < 0)
        return hbp__fail(context, HBP_E_SOLVER, "the solver failed: %s",
                         message[0] ? message : hbp_status_text(status));
    return check_answer(program, start, values, &from, answer);
}
