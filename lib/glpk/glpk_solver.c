/* GLPK behind hbp/base.h. GLPK is under the GPL-3.0, so this file alone is libhbp-glpk, which a program
 * links by choice.
 *
 * GLPK ends the process on failure and keeps an environment per thread, which holds all problems of the
 * thread. So each solve has a thread, hence an environment, of its own: its error hook jumps out, the
 * environment is freed with all that is in it, and the caller's own GLPK problems are never seen. The calling
 * thread waits, and asks meanwhile whether to go on. */
#include <float.h>
#include <glpk.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "hbp/glpk.h"

/* How often the caller is asked, and how often a long simplex looks up. */
#define POLL_MS 5
/* Polls from the first that says to stop to when GLPK is left wherever it is, its best point with it. */
#define PATIENCE 4
/* Iterations of the simplex method between two looks at the limits. */
#define BURST        200
#define NS_PER_MS    1000000L
#define NS_PER_S     1000000000L
#define BYTES_PER_MB 1000000

#define TEXT_BYTES 256
/* Columns and rows that GLPK takes. */
#define MOST_COLUMNS 100000000
/* Begins the line that GLPK adds to every failure, about its own sources. */
#define SOURCE_LINE "Error detected in file"

enum { GO_ON = 0, OUT_OF_TIME = 1, UNWANTED = 2 };

typedef struct job {
    hbp_program program;
    hbp_solver_limits limits;
    hbp_solver_answer answer;
    double *values;
    atomic_int stop; /* why, from the caller's thread */

    pthread_mutex_t lock;
    pthread_cond_t ended;
    int has_ended;

    /* Below: the worker's. */
    jmp_buf escape;
    hbp_status status;
    glp_prob *problem;
    double *start; /* [1 + columns], in GLPK's memory */
    int start_given;
    int with_integers;
    int in_tree;
    int tree_stopped;
    double relaxed;        /* objective of the relaxation */
    char text[TEXT_BYTES]; /* the last line that GLPK would have printed */
} job;

/* GLPK's hooks. Both may leave by a jump: glp_free_env releases whatever is left in between. */
static int keep_text(void *user, const char *text)
{
    job *j = user;
    if (atomic_load_explicit(&j->stop, memory_order_relaxed) >= (j->in_tree ? UNWANTED : OUT_OF_TIME))
        longjmp(j->escape, 1);
    if (strspn(text, " \n") < strlen(text) && strncmp(text, SOURCE_LINE, sizeof SOURCE_LINE - 1) != 0)
        snprintf(j->text, sizeof j->text, "%s", text);
    return 1;
}

/* What went wrong, for the caller. */
static void say(job *j, const char *text)
{
    if (j->answer.message && j->answer.message_bytes > 0)
        snprintf(j->answer.message, (size_t)j->answer.message_bytes, "%s", text);
}

static void leave(void *user)
{
    job *j = user;
    j->text[strcspn(j->text, "\n")] = '\0';
    j->status = strstr(j->text, "memory") ? HBP_E_NO_MEMORY : HBP_E_SOLVER;
    say(j, j->text[0] ? j->text : "GLPK gave up");
    longjmp(j->escape, 1);
}

static void fail(job *j, const char *what, int code)
{
    j->status = HBP_E_SOLVER;
    snprintf(j->text, sizeof j->text, "%s ends with code %d", what, code);
    say(j, j->text);
    longjmp(j->escape, 1);
}

/* GLPK's kind of a pair of bounds. */
static int bounds_kind(double low, double high)
{
    int has_low = isfinite(low), has_high = isfinite(high);
    if (has_low && has_high)
        return low < high ? GLP_DB : GLP_FX;
    return has_low ? GLP_LO : has_high ? GLP_UP : GLP_FR;
}

static void build(job *j)
{
    const hbp_program *p = &j->program;
    glp_prob *problem = j->problem = glp_create_prob();
    glp_set_obj_dir(problem, GLP_MIN);
    if (p->columns)
        glp_add_cols(problem, p->columns);
    if (p->rows)
        glp_add_rows(problem, p->rows);
    for (int c = 0; c < p->columns; c++) {
        double low = p->column_lower[c], high = p->column_upper[c];
        if (p->column_type[c] == HBP_COLUMN_INTEGER) {
            glp_set_col_kind(problem, c + 1, GLP_IV);
            j->with_integers = 1;
            low = ceil(low);
            high = floor(high);
        }
        glp_set_col_bnds(problem, c + 1, bounds_kind(low, high), low, high);
        glp_set_obj_coef(problem, c + 1, p->objective[c]);
    }
    int64_t longest = 0;
    for (int r = 0; r < p->rows; r++)
        if (p->row_first[r + 1] - p->row_first[r] > longest)
            longest = p->row_first[r + 1] - p->row_first[r];
    int *at = glp_alloc((int)longest + 1, sizeof *at);
    double *value = glp_alloc((int)longest + 1, sizeof *value);
    for (int r = 0; r < p->rows; r++) {
        int count = 0;
        for (int64_t e = p->row_first[r]; e < p->row_first[r + 1]; e++) {
            at[++count] = p->entry_column[e] + 1;
            value[count] = p->entry_value[e];
        }
        glp_set_row_bnds(problem, r + 1, bounds_kind(p->row_lower[r], p->row_upper[r]), p->row_lower[r],
                         p->row_upper[r]);
        glp_set_mat_row(problem, r + 1, count, at, value);
    }
    if (p->start) {
        j->start = glp_alloc(p->columns + 1, sizeof *j->start);
        for (int c = 0; c < p->columns; c++)
            j->start[c + 1] = p->start[c];
    }
}

static void take_values(job *j, int32_t status, double (*value)(glp_prob *, int))
{
    j->answer.status = status;
    for (int c = 0; c < j->program.columns; c++)
        j->values[c] = value(j->problem, c + 1);
}

/* Nonzero when a limit other than that on nodes is reached. */
static int at_limit(const job *j, int iterations)
{
    return atomic_load_explicit(&j->stop, memory_order_relaxed) != GO_ON ||
           (j->limits.iterations > 0 && iterations >= j->limits.iterations);
}

/* The relaxation, in bursts, since a simplex asks nobody. Returns nonzero when it is solved. */
static int relax(job *j)
{
    glp_smcp parameters;
    glp_init_smcp(&parameters);
    parameters.msg_lev = GLP_MSG_ON; /* the display is where a long simplex can be left */
    parameters.out_frq = POLL_MS;
    parameters.meth = GLP_DUALP;
    for (;;) {
        int64_t left = j->limits.iterations > 0 ? j->limits.iterations - glp_get_it_cnt(j->problem) : BURST;
        parameters.it_lim = left < BURST ? (int)left : BURST;
        int code = glp_simplex(j->problem, &parameters);
        if (code == GLP_EITLIM) {
            if (at_limit(j, glp_get_it_cnt(j->problem))) {
                j->answer.status = HBP_SOLVER_STOPPED;
                return 0;
            }
            continue;
        }
        if (code)
            fail(j, "GLPK's simplex method", code);
        switch (glp_get_status(j->problem)) {
        case GLP_OPT:
            return 1;
        case GLP_NOFEAS:
            j->answer.status = HBP_SOLVER_INFEASIBLE;
            return 0;
        case GLP_UNBND:
            j->answer.status = HBP_SOLVER_UNBOUNDED;
            return 0;
        default: /* the dual method knows only that the dual has no point */
            if (parameters.meth == GLP_PRIMAL)
                fail(j, "GLPK's simplex method", code);
            parameters.meth = GLP_PRIMAL;
        }
    }
}

/* The fractional column of the highest priority, the nearest to a half, the first. 0 when none is told apart
 * from the others. */
static int choose_branch(const job *j, glp_tree *tree, int *way)
{
    const int32_t *priority = j->program.column_priority;
    int best = 0;
    double best_distance = 0;
    for (int c = 1; priority && c <= j->program.columns; c++) {
        if (priority[c - 1] <= 0 || !glp_ios_can_branch(tree, c))
            continue;
        double value = glp_get_col_prim(glp_ios_get_prob(tree), c);
        double part = value - floor(value), distance = fabs(part - .5);
        if (!best || priority[c - 1] > priority[best - 1] ||
            (priority[c - 1] == priority[best - 1] && distance < best_distance)) {
            best = c;
            best_distance = distance;
            *way = part > .5 ? GLP_UP_BRNCH : GLP_DN_BRNCH;
        }
    }
    return best;
}

static void watch_tree(glp_tree *tree, void *user)
{
    job *j = user;
    int reason = glp_ios_reason(tree);
    int best = glp_ios_best_node(tree);
    if (best) {
        double bound = glp_ios_node_bound(tree, best);
        if (bound > j->answer.bound && bound < DBL_MAX)
            j->answer.bound = bound;
    }
    int total = 0;
    glp_ios_tree_size(tree, NULL, NULL, &total);
    if (at_limit(j, glp_get_it_cnt(glp_ios_get_prob(tree))) ||
        (j->limits.nodes > 0 && total > j->limits.nodes)) {
        j->tree_stopped = 1;
        glp_ios_terminate(tree);
        return;
    }
    if (reason == GLP_IHEUR && j->start && !j->start_given) {
        j->start_given = 1;
        glp_ios_heur_sol(tree, j->start);
    }
    if (reason == GLP_IBRANCH) {
        int way = GLP_NO_BRNCH, column = choose_branch(j, tree, &way);
        if (column)
            glp_ios_branch_upon(tree, column, way);
    }
}

static void search_tree(job *j)
{
    glp_iocp parameters;
    glp_init_iocp(&parameters);
    parameters.msg_lev = GLP_MSG_ON;
    parameters.out_frq = POLL_MS;
    parameters.cb_func = watch_tree;
    parameters.cb_info = j;
    parameters.mip_gap = j->limits.gap > 0 ? j->limits.gap : 0;
    j->in_tree = 1;
    int code = glp_intopt(j->problem, &parameters);
    j->answer.iterations = glp_get_it_cnt(j->problem);
    j->in_tree = 0;
    if (code && code != GLP_ESTOP && code != GLP_EMIPGAP)
        fail(j, "GLPK's branch and bound", code);
    int status = glp_mip_status(j->problem);
    if (status == GLP_OPT || (status == GLP_FEAS && code == 0)) {
        take_values(j, HBP_SOLVER_OPTIMAL, glp_mip_col_val);
        j->answer.objective = j->answer.bound = glp_mip_obj_val(j->problem);
    } else if (status == GLP_FEAS) {
        take_values(j, HBP_SOLVER_FEASIBLE, glp_mip_col_val);
        j->answer.objective = glp_mip_obj_val(j->problem);
    } else {
        j->answer.status =
            status == GLP_NOFEAS && !j->tree_stopped ? HBP_SOLVER_INFEASIBLE : HBP_SOLVER_STOPPED;
    }
}

/* May be left by a jump at any place. */
static void solve_in_environment(job *j)
{
    if (j->limits.memory_bytes > 0) {
        int64_t mb = j->limits.memory_bytes / BYTES_PER_MB;
        glp_mem_limit(mb < 1 ? 1 : mb > INT_MAX ? INT_MAX : (int)mb);
    }
    build(j);
    int is_relaxed = relax(j);
    j->answer.iterations = glp_get_it_cnt(j->problem);
    if (!is_relaxed)
        return;
    j->answer.bound = glp_get_obj_val(j->problem);
    if (j->with_integers) {
        search_tree(j);
        return;
    }
    j->answer.objective = j->answer.bound;
    take_values(j, HBP_SOLVER_OPTIMAL, glp_get_col_prim);
}

static void *work(void *user)
{
    job *j = user;
    if (glp_init_env() > 1) {
        j->status = HBP_E_NO_MEMORY; /* GLPK would end the process over this later on */
    } else {
        if (!setjmp(j->escape)) {
            glp_term_hook(keep_text, j);
            glp_error_hook(leave, j);
            solve_in_environment(j);
        }
        glp_free_env();
    }
    pthread_mutex_lock(&j->lock);
    j->has_ended = 1;
    pthread_cond_signal(&j->ended);
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

static struct timespec after(struct timespec from, int64_t ms)
{
    int64_t ns = from.tv_nsec + ms % 1000 * NS_PER_MS;
    from.tv_sec += (time_t)(ms / 1000 + ns / NS_PER_S);
    from.tv_nsec = (long)(ns % NS_PER_S);
    return from;
}

static int is_before(struct timespec a, struct timespec b)
{
    return a.tv_sec < b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec < b.tv_nsec);
}

/* Waits for the worker's end, and tells it why to stop. */
static void wait_for(job *j)
{
    const hbp_solver_limits *limits = &j->limits;
    struct timespec now, deadline = {0, 0};
    int refused = 0;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (limits->time_ms > 0)
        deadline = after(now, limits->time_ms);
    pthread_mutex_lock(&j->lock);
    while (!j->has_ended) {
        struct timespec until = after(now, POLL_MS);
        if (limits->time_ms > 0 && is_before(now, deadline) && is_before(deadline, until))
            until = deadline;
        pthread_cond_timedwait(&j->ended, &j->lock, &until);
        if (j->has_ended)
            break;
        pthread_mutex_unlock(&j->lock); /* poll runs the caller's own code */
        clock_gettime(CLOCK_MONOTONIC, &now);
        int stop = atomic_load_explicit(&j->stop, memory_order_relaxed);
        if (stop < UNWANTED && limits->poll && limits->poll(limits->poll_user))
            stop = ++refused < PATIENCE ? OUT_OF_TIME : UNWANTED;
        else if (stop == GO_ON && limits->time_ms > 0 && !is_before(now, deadline))
            stop = OUT_OF_TIME;
        atomic_store_explicit(&j->stop, stop, memory_order_relaxed);
        pthread_mutex_lock(&j->lock);
    }
    pthread_mutex_unlock(&j->lock);
}

/* Starts the worker with every signal blocked: handlers belong to the program's own threads. */
static int start_worker(job *j, pthread_t *thread)
{
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before))
        return 0;
    int started = !pthread_create(thread, NULL, work, j);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static int make_waiting(job *j)
{
    pthread_condattr_t clock;
    if (pthread_mutex_init(&j->lock, NULL))
        return 0;
    if (pthread_condattr_init(&clock)) {
        pthread_mutex_destroy(&j->lock);
        return 0;
    }
    int made = !pthread_condattr_setclock(&clock, CLOCK_MONOTONIC) && !pthread_cond_init(&j->ended, &clock);
    pthread_condattr_destroy(&clock);
    if (!made)
        pthread_mutex_destroy(&j->lock);
    return made;
}

/* Copies the caller's open struct, zeros where it is shorter. Its first field is its size. */
static int read_struct(void *to, uint32_t known, const void *from)
{
    uint32_t size = 0;
    memset(to, 0, known);
    if (from)
        memcpy(&size, from, sizeof size);
    if (size < sizeof size)
        return 0;
    memcpy(to, from, size < known ? size : known);
    return 1;
}

static const char *find_fault(const hbp_program *p)
{
    if (p->columns < 0 || p->rows < 0 || p->columns > MOST_COLUMNS || p->rows > MOST_COLUMNS)
        return "the program has more rows or columns than GLPK takes";
    for (int c = 0; c < p->columns; c++)
        if (!isfinite(p->objective[c]) || isnan(p->column_lower[c]) || isnan(p->column_upper[c]))
            return "a column has a number that is not finite";
    for (int r = 0; r < p->rows; r++)
        if (isnan(p->row_lower[r]) || isnan(p->row_upper[r]))
            return "a row has a bound that is not a number";
    for (int r = 0; r < p->rows; r++)
        if (p->row_first[r + 1] < p->row_first[r] || p->row_first[r + 1] - p->row_first[r] > MOST_COLUMNS)
            return "a row has more entries than there are columns";
    for (int64_t e = 0; p->rows && e < p->row_first[p->rows]; e++)
        if (!isfinite(p->entry_value[e]) || p->entry_column[e] < 0 || p->entry_column[e] >= p->columns)
            return "a row has an entry that is not finite or in no column";
    return NULL;
}

/* A program whose bounds cross has no point, and GLPK does not take it. */
static int has_crossed_bounds(const hbp_program *p)
{
    for (int c = 0; c < p->columns; c++) {
        double low = p->column_lower[c], high = p->column_upper[c];
        int is_integer = p->column_type[c] == HBP_COLUMN_INTEGER;
        if (is_integer ? ceil(low) > floor(high) : low > high)
            return 1;
        if (low >= HUGE_VAL || high <= -HUGE_VAL)
            return 1;
    }
    for (int r = 0; r < p->rows; r++)
        if (p->row_lower[r] > p->row_upper[r] || p->row_lower[r] >= HUGE_VAL || p->row_upper[r] <= -HUGE_VAL)
            return 1;
    return 0;
}

static hbp_status solve(void *user, const hbp_program *program, const hbp_solver_limits *limits,
                        hbp_solver_answer *answer)
{
    (void)user;
    job j;
    memset(&j, 0, sizeof j);
    if (!read_struct(&j.answer, sizeof j.answer, answer) ||
        !read_struct(&j.program, sizeof j.program, program) ||
        (limits && !read_struct(&j.limits, sizeof j.limits, limits)))
        return HBP_E_INVALID;
    j.values = answer->values;
    j.answer.status = HBP_SOLVER_STOPPED;
    j.answer.bound = -HUGE_VAL;
    j.answer.iterations = 0;
    say(&j, "");
    const char *fault = find_fault(&j.program);
    if (fault) {
        j.status = HBP_E_INVALID;
        say(&j, fault);
    } else if (has_crossed_bounds(&j.program)) {
        j.answer.status = HBP_SOLVER_INFEASIBLE;
    } else {
        pthread_t thread;
        atomic_init(&j.stop, GO_ON);
        if (!make_waiting(&j)) {
            j.status = HBP_E_SYSTEM;
        } else {
            if (start_worker(&j, &thread)) {
                wait_for(&j);
                pthread_join(thread, NULL);
            } else {
                j.status = HBP_E_SYSTEM;
            }
            pthread_cond_destroy(&j.ended);
            pthread_mutex_destroy(&j.lock);
        }
        if (j.status == HBP_E_SYSTEM)
            say(&j, "no thread for GLPK");
    }
    j.answer.struct_size = answer->struct_size;
    memcpy(answer, &j.answer, answer->struct_size < sizeof j.answer ? answer->struct_size : sizeof j.answer);
    return j.status;
}

const hbp_solver *hbp_glpk_solver(void)
{
    static const hbp_solver solver = {sizeof solver, solve, NULL};
    return &solver;
}
