#include "step/exact.h"

#include <math.h>

#include "costs.h"
#include "failing.h"
#include "hbp/glpk.h"
#include "keep.h"
#include "step/buckets.h"

#define MOST 8 /* sequences, for brute force */

/* Sizes of some sequences, and what hbp__step_group_ns says of each set of them. */
typedef struct sets {
    const hbp__step *step;
    int count;
    int64_t idle;
    int64_t ns[1 << MOST][8];
    int64_t one[1 << MOST][17];               /* [set][ranks]: the best micro-batch */
    int64_t batches[1 << MOST][2 * MOST + 1]; /* [set][micro-batches, empty ones too]: the best sum */
} sets;

static int64_t worse(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The best micro-batch of every set on every number of ranks: its first sequence's group, then the rest. */
static void weigh(sets *w, const hbp__step *step, int count, const int64_t *tokens, const double *squares)
{
    w->step = step;
    w->count = count;
    w->idle = hbp__round_i64(step->cost->terms.pack_ns);
    for (int set = 1; set < 1 << count; set++) {
        int64_t sum = 0;
        double square = 0;
        for (int i = 0; i < count; i++) {
            sum += set >> i & 1 ? tokens[i] : 0;
            square += set >> i & 1 ? squares[i] : 0;
        }
        for (int j = 0; j < step->degrees; j++)
            w->ns[set][j] = hbp__step_group_ns(step, j, (hbp__load){.tokens = sum, .squares = square});
    }
    for (int set = 0; set < 1 << count; set++)
        for (int ranks = 0; ranks <= step->ranks; ranks++) {
            int64_t best = set ? INT64_MAX : w->idle;
            for (int part = set; part; part = (part - 1) & set)
                for (int j = 0; j < step->degrees && part & (set & -set); j++) {
                    int degree = step->degree[j].degree;
                    if (degree <= ranks)
                        best = hbp__min_i64(best, worse(w->ns[part][j], w->one[set ^ part][ranks - degree]));
                }
            w->one[set][ranks] = best;
        }
}

/* The best step, over all numbers of micro-batches that the options allow. */
static int64_t brute(sets *w)
{
    const hbp_step_options *o = &w->step->options;
    int all = (1 << w->count) - 1, most = 2 * MOST;
    for (int m = 0; m <= most; m++)
        for (int set = 0; set <= all; set++) {
            int64_t best = m || set ? INT64_MAX : 0;
            for (int part = set; m; part = (part - 1) & set) {
                int64_t rest = w->batches[set ^ part][m - 1], one = w->one[part][w->step->ranks];
                if (rest < INT64_MAX && one < INT64_MAX)
                    best = hbp__min_i64(best, rest + one);
                if (!part)
                    break;
            }
            w->batches[set][m] = best;
        }
    int64_t best = INT64_MAX;
    for (int m = o->min_micro_batches > 1 ? o->min_micro_batches : 1; m <= most; m++) {
        if (o->max_micro_batches && m > o->max_micro_batches)
            break;
        int64_t spare = hbp__round_up(m, o->micro_batch_multiple) - m;
        if (w->batches[all][m] < INT64_MAX)
            best = hbp__min_i64(best, w->batches[all][m] + spare * w->idle);
    }
    return best;
}

/* A machine on which anything may matter: random times, memory that wants recomputation. */
static hbp_cost *random_cost(hbp_context *context, hbp__rng *rng, int32_t ranks)
{
    static const int32_t degree[] = {1, 2, 4, 8};
    double latency[4], per_token[4];
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    terms.ranks = ranks;
    terms.domain_ranks = ranks;
    terms.layers = 1 + (int32_t)hbp__rng_below(rng, 4);
    terms.ns_per_token = 1000 + hbp__rng_below(rng, 30000);
    terms.ns_per_token_squared = hbp__rng_below(rng, 100) / 50.0;
    terms.recompute_linear = hbp__rng_below(rng, 50) / 100.0;
    terms.recompute_attention = hbp__rng_below(rng, 50) / 100.0;
    terms.recompute_communication = .5;
    terms.pack_ns = 1e6 + hbp__rng_below(rng, 60) * 1e6;
    terms.static_bytes = 0;
    terms.activation_bytes = 100000;
    terms.recomputed_bytes = 20000;
    terms.working_bytes = 10000;
    terms.limit_bytes = INT64_C(1000000000) + hbp__rng_below(rng, 3) * INT64_C(1000000000);
    terms.degrees = 0;
    for (int j = 0; j < 4 && degree[j] <= ranks; j++) {
        latency[j] = j * 1e6 * hbp__rng_below(rng, 5);
        per_token[j] = j ? hbp__rng_below(rng, 1500) : 0;
        terms.degrees++;
    }
    terms.degree = degree;
    terms.sp_latency_ns = latency;
    terms.sp_ns_per_token = per_token;
    hbp_cost *cost = NULL;
    OK(context, hbp_cost_create_terms(context, &terms, &cost));
    return cost;
}

static hbp_lengths *random_lengths(hbp_context *context, hbp__rng *rng, int count, int64_t longest)
{
    uint32_t length[MOST];
    for (int i = 0; i < count; i++)
        length[i] = 1 + hbp__rng_below(rng, (uint64_t)(longest >> hbp__rng_below(rng, 4)));
    if (hbp__rng_below(rng, 3) == 0)
        length[0] = length[count - 1]; /* of one kind */
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_u32(context, length, count, NULL, &lengths));
    return lengths;
}

/* Each sequence in a micro-batch of its own, on the largest degree: a poor plan to begin with. Where the
 * options want fewer, the first few of the micro-batches hold the rest; zero when those do not fit. */
static int begin_badly(const hbp__step *step, hbp__step_solution *solution)
{
    int64_t batches = step->count;
    if (step->options.max_micro_batches)
        batches = hbp__min_i64(batches, step->options.max_micro_batches);
    int64_t with_empty = hbp__max_i64(batches, step->options.min_micro_batches);
    hbp_status status = hbp__step_solution_open(step, with_empty, batches, solution);
    ck_assert_int_eq(status, HBP_OK);
    for (int64_t i = 0; i < step->count; i++)
        solution->group[i] = i % batches;
    for (int64_t m = 0; m < with_empty; m++)
        solution->first[m + 1] = m < batches ? m + 1 : batches;
    for (int64_t g = 0; g < batches; g++)
        solution->degree[g] = step->degrees - 1;
    if (hbp__step_solution_price(step, solution) == HBP_OK)
        return 1;
    hbp__step_solution_close(solution);
    return 0;
}

/* Draws a step of at most `most` sequences and opens it; zero when its longest sequence fits nowhere. */
static int draw(hbp_context *context, uint64_t seed, int most, hbp_cost **cost, hbp_lengths **lengths,
                hbp__step *step)
{
    hbp__rng rng = hbp__rng_make(seed, 1, 0);
    int32_t ranks = 4 + 4 * (int32_t)hbp__rng_below(&rng, 2);
    int count = 2 + (int)hbp__rng_below(&rng, (uint64_t)most - 1);
    *cost = random_cost(context, &rng, ranks);
    *lengths = random_lengths(context, &rng, count, 30000 << hbp__rng_below(&rng, 3));
    hbp_step_options options = {.struct_size = sizeof options};
    switch (seed % 8) {
    case 1:
        options.micro_batch_multiple = 2;
        break;
    case 2:
        options.pack_multiple = 4096;
        options.sequence_multiple = 64;
        break;
    case 3:
        options.min_micro_batches = 2;
        break;
    case 4:
        options.max_micro_batches = 2;
        break;
    case 5:
        options.recompute = HBP_STEP_RECOMPUTE_ALL;
        options.min_sp = 2;
        break;
    default:
        break;
    }
    return hbp__step_open(context, *lengths, *cost, &options, step) == HBP_OK;
}

static void drop(hbp_cost *cost, hbp_lengths *lengths, hbp__step *step)
{
    hbp__step_close(step);
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
}

#ifdef HBP_TESTS_GLPK
START_TEST(finds_the_optimum_and_proves_it)
{
    hbp_context *context = test_context();
    OK(context, hbp_context_set_solver(context, hbp_glpk_solver()));
    sets *w = malloc(sizeof *w);
    int done = 0, improved = 0, recomputed = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        hbp_cost *cost;
        hbp_lengths *lengths;
        hbp__step step;
        hbp__step_solution solution;
        if (draw(context, seed, seed < 94 ? 5 : 7, &cost, &lengths, &step) && begin_badly(&step, &solution)) {
            weigh(w, &step, (int)step.count, step.tokens, step.squares);
            int64_t best = brute(w), before = solution.ns;
            hbp_status status = hbp__step_exact(&step, &solution);
            ck_assert_msg(status >= 0, "seed %d: %s", (int)seed, hbp_context_message(context));
            ck_assert_msg(solution.ns >= best && solution.bound_ns <= best, "seed %d: %lld, %lld, best %lld",
                          (int)seed, (long long)solution.bound_ns, (long long)solution.ns, (long long)best);
            if (status == HBP_OK) {
                ck_assert_msg((double)solution.ns <= (double)best * (1 + 2e-6) + 10, "seed %d: %lld not %lld",
                              (int)seed, (long long)solution.ns, (long long)best);
                ck_assert((double)solution.bound_ns >= (double)best * (1 - 1e-5) - 50);
                done++;
            }
            int64_t ns = solution.ns;
            OK(context, hbp__step_solution_price(&step, &solution));
            ck_assert_int_eq(solution.ns, ns);
            ck_assert_int_ge(solution.micro_batches, step.options.min_micro_batches);
            improved += solution.ns < before;
            int64_t first = 0;
            for (int64_t i = 0; i < step.count; i++)
                first += solution.group[i] == 0 ? step.tokens[i] : 0;
            recomputed += step.degree[solution.degree[0]].way[0].capacity < first;
            hbp__step_solution_close(&solution);
        }
        drop(cost, lengths, &step);
    }
    free(w);
    hbp_context_free(context);
    ck_assert_int_gt(done, 70);
    ck_assert_int_gt(improved, 50);
    ck_assert_int_gt(recomputed, 5);
}
END_TEST

START_TEST(solves_one_micro_batch)
{
    hbp_context *context = test_context();
    OK(context, hbp_context_set_solver(context, hbp_glpk_solver()));
    sets *w = malloc(sizeof *w);
    int fit = 0, none = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        hbp_cost *cost;
        hbp_lengths *lengths;
        hbp__step step;
        if (draw(context, 8 * seed, 7, &cost, &lengths, &step)) {
            /* Every other sequence, and half of the time larger than it is. */
            int64_t member[MOST], tokens[MOST];
            double squares[MOST];
            int members = 0;
            for (int64_t i = 0; i < step.count; i += 1 + (int64_t)(seed % 2)) {
                member[members] = i;
                tokens[members] = step.tokens[i] + (seed % 4 < 2 ? 0 : 100);
                squares[members] = (double)tokens[members] * (double)tokens[members];
                members++;
            }
            int given = seed % 4 >= 2;
            weigh(w, &step, members, tokens, squares);
            int64_t best = w->one[(1 << members) - 1][step.ranks];
            hbp__step_solution solution;
            hbp_status status = hbp__step_exact_micro_batch(&step, member, members, given ? tokens : NULL,
                                                            given ? squares : NULL, &solution);
            if (best == INT64_MAX) {
                ck_assert_int_eq(status, HBP_E_INFEASIBLE);
                none++;
            } else {
                ck_assert_int_eq(status, HBP_OK);
                ck_assert_int_eq(solution.micro_batches, 1);
                ck_assert_msg(solution.ns >= best && (double)solution.ns <= (double)best * (1 + 2e-6) + 10,
                              "seed %d: %lld instead of %lld", (int)seed, (long long)solution.ns,
                              (long long)best);
                ck_assert(solution.bound_ns <= best && solution.bound_ns > best - best / 1000);
                fit++;
            }
            hbp__step_solution_close(&solution);
        }
        drop(cost, lengths, &step);
    }
    free(w);
    hbp_context_free(context);
    ck_assert_int_gt(fit, 20);
    ck_assert_int_gt(none, 3);
}
END_TEST

START_TEST(rounds_lengths_up_to_buckets)
{
    hbp_context *context = test_context();
    OK(context, hbp_context_set_solver(context, hbp_glpk_solver()));
    sets *w = malloc(sizeof *w);
    int done = 0;
    for (uint64_t seed = 0; seed < 30; seed++) {
        hbp_cost *cost;
        hbp_lengths *lengths;
        hbp__step step;
        hbp__step_solution solution;
        if (draw(context, 8 * seed, 5, &cost, &lengths, &step) && begin_badly(&step, &solution)) {
            step.options.buckets = 3;
            int64_t tokens[MOST];
            double squares[MOST];
            OK(context, hbp__step_bucket(context, step.tokens, step.count, 3, tokens));
            for (int64_t i = 0; i < step.count; i++)
                squares[i] = (double)tokens[i] * (double)tokens[i];
            weigh(w, &step, (int)step.count, tokens, squares);
            int64_t rounded = brute(w);
            weigh(w, &step, (int)step.count, step.tokens, step.squares);
            int64_t best = brute(w);
            hbp_status status = hbp__step_exact(&step, &solution);
            ck_assert_int_ge(status, HBP_OK);
            ck_assert_int_ge(solution.ns, best);
            ck_assert_int_le(solution.bound_ns, best);
            if (status == HBP_OK && rounded < INT64_MAX) {
                ck_assert_msg((double)solution.ns <= (double)rounded * (1 + 2e-6) + 10,
                              "seed %d: %lld, rounded %lld", (int)seed, (long long)solution.ns,
                              (long long)rounded);
                done++;
            }
            hbp__step_solution_close(&solution);
        }
        drop(cost, lengths, &step);
    }
    free(w);
    hbp_context_free(context);
    ck_assert_int_gt(done, 12);
}
END_TEST

static hbp_status solve_one(hbp_context *context, void *user)
{
    const hbp_solver *solver = user;
    HBP__TRY(hbp_context_set_solver(context, solver));
    static const uint32_t length[] = {30000, 20000, 9000, 8000};
    hbp_lengths *lengths = NULL;
    HBP__TRY(hbp_lengths_create_u32(context, length, 4, NULL, &lengths));
    hbp_cost *cost = NULL;
    hbp_context *other = test_context();
    cost = test_cost_ranks(other, 4);
    hbp_context_free(other);
    hbp__step step;
    hbp__step_solution solution = {.ns = 0};
    hbp_step_options options = {.struct_size = sizeof options};
    hbp_status status = hbp__step_open(context, lengths, cost, &options, &step);
    if (status >= 0)
        status = hbp__step_solution_open(&step, 4, 4, &solution);
    for (int64_t i = 0; i < 4 && status >= 0; i++) {
        solution.first[i + 1] = i + 1;
        solution.degree[i] = step.degrees - 1;
        solution.group[i] = i;
    }
    if (status >= 0)
        status = hbp__step_solution_price(&step, &solution);
    if (status >= 0)
        status = hbp__step_exact(&step, &solution);
    hbp__step_solution_close(&solution);
    hbp__step_close(&step);
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
    return status;
}

START_TEST(survives_failing_allocations)
{
    union {
        const hbp_solver *from;
        void *to;
    } solver = {hbp_glpk_solver()};
    failing_sweep(solve_one, solver.to);
}
END_TEST

START_TEST_IN_CONTEXT(finds_the_same_twice)
{
    OK(context, hbp_context_set_solver(context, hbp_glpk_solver()));
    hbp_cost *cost = test_cost_ranks(context, 8);
    hbp_lengths *lengths = test_long_tail(context, 16, 8, 120000);
    hbp__step_solution solution[2];
    hbp__step step;
    hbp_step_options options = {.struct_size = sizeof options};
    OK(context, hbp__step_open(context, lengths, cost, &options, &step));
    for (int i = 0; i < 2; i++) {
        ck_assert(begin_badly(&step, &solution[i]));
        OK(context, hbp__step_exact(&step, &solution[i]));
    }
    ck_assert_int_eq(solution[0].ns, solution[1].ns);
    ck_assert_int_eq(solution[0].bound_ns, solution[1].bound_ns);
    ck_assert_int_eq(solution[0].groups, solution[1].groups);
    ck_assert_mem_eq(solution[0].group, solution[1].group, (size_t)step.count * sizeof(int64_t));
    for (int i = 0; i < 2; i++)
        hbp__step_solution_close(&solution[i]);
    drop(cost, lengths, &step);
}
END_TEST
#endif

enum { FAILS_IT = 0, LIES = 1, STOPS = 2, DENIES = 3, POLLS = 4, BOASTS = 5 };

/* A solver without a solver in it. */
static hbp_status fake_solve(void *user, const hbp_program *program, const hbp_solver_limits *limits,
                             hbp_solver_answer *answer)
{
    switch (*(int *)user) {
    case FAILS_IT:
        snprintf(answer->message, (size_t)answer->message_bytes, "no pivot");
        return HBP_E_INTERNAL;
    case LIES:
        answer->status = HBP_SOLVER_OPTIMAL;
        answer->bound = 0;
        for (int32_t c = 0; c < program->columns; c++)
            answer->values[c] = program->column_lower[c];
        return HBP_OK;
    case STOPS:
        answer->status = HBP_SOLVER_STOPPED;
        return HBP_OK;
    case DENIES:
        answer->status = HBP_SOLVER_UNBOUNDED;
        return HBP_OK;
    case BOASTS:
        answer->status = HBP_SOLVER_STOPPED;
        answer->bound = INFINITY;
        return HBP_OK;
    default:
        while (!limits->poll(limits->poll_user))
            ;
        return HBP_OK;
    }
}

START_TEST(does_not_believe_a_solver)
{
    int way;
    hbp_solver solver = {sizeof solver, fake_solve, &way};
    int64_t left = 5;
    failing memory;
    hbp_context *context = failing_context(&memory, cancel_after, &left);
    hbp_cost *cost = test_cost_ranks(context, 4);
    hbp_lengths *lengths = test_long_tail(context, 3, 6, 30000);
    hbp__step step;
    hbp_step_options options = {.struct_size = sizeof options};
    left = INT64_MAX;
    OK(context, hbp__step_open(context, lengths, cost, &options, &step));
    hbp__step_solution solution;
    ck_assert(begin_badly(&step, &solution));
    sets *w = malloc(sizeof *w);
    weigh(w, &step, (int)step.count, step.tokens, step.squares);
    int64_t best = brute(w), before = solution.ns, live = memory.live;
    free(w);
    FAILS(context, HBP_E_SOLVER, "no solver", hbp__step_exact(&step, &solution));
    OK(context, hbp_context_set_solver(context, &solver));
    way = FAILS_IT;
    FAILS(context, HBP_E_SOLVER, "no pivot", hbp__step_exact(&step, &solution));
    way = LIES;
    FAILS(context, HBP_E_SOLVER, "does not keep", hbp__step_exact(&step, &solution));
    way = DENIES;
    FAILS(context, HBP_E_SOLVER, "unbounded", hbp__step_exact(&step, &solution));
    way = POLLS;
    left = 20;
    FAILS(context, HBP_E_CANCELLED, "exact", hbp__step_exact(&step, &solution));
    left = INT64_MAX;
    hbp_context_cancel(context);
    FAILS(context, HBP_E_CANCELLED, "exact", hbp__step_exact(&step, &solution));
    ck_assert_int_eq(solution.ns, before);
    /* Stopped before it began: what there is stays, with a bound that holds. */
    way = STOPS;
    ck_assert_int_eq(hbp__step_exact(&step, &solution), HBP_NOT_PROVEN);
    ck_assert_int_eq(solution.ns, before);
    ck_assert_int_eq(solution.complete, 0);
    ck_assert(solution.bound_ns > 0 && solution.bound_ns <= best);
    /* A bound above the cutoff says no more than that nothing lies below it. */
    way = BOASTS;
    ck_assert_int_eq(hbp__step_exact(&step, &solution), HBP_NOT_PROVEN);
    ck_assert_int_le(solution.bound_ns, solution.ns);
    ck_assert_int_eq(memory.live, live);
    hbp__step_solution_close(&solution);
    drop(cost, lengths, &step);
    hbp_context_free(context);
    ck_assert_int_eq(memory.live, 0);
}
END_TEST

START_TEST_IN_CONTEXT(leaves_large_steps_to_the_search)
{
    int way = FAILS_IT;
    hbp_solver solver = {sizeof solver, fake_solve, &way};
    OK(context, hbp_context_set_solver(context, &solver));
    hbp_cost *cost = test_cost(context);
    hbp_lengths *lengths = test_long_tail(context, 3, 4000, 30000);
    hbp__step step;
    hbp_step_options options = {.struct_size = sizeof options};
    OK(context, hbp__step_open(context, lengths, cost, &options, &step));
    hbp__step_solution solution;
    ck_assert(begin_badly(&step, &solution));
    ck_assert_int_eq(hbp__step_exact(&step, &solution), HBP_NOT_PROVEN);
    ck_assert(solution.bound_ns > 0 && solution.bound_ns <= solution.ns);
    hbp__step_solution_close(&solution);
    drop(cost, lengths, &step);
}
END_TEST

#ifdef HBP_TESTS_GLPK
TEST_MAIN("exact", finds_the_optimum_and_proves_it, solves_one_micro_batch, rounds_lengths_up_to_buckets,
          survives_failing_allocations, finds_the_same_twice, does_not_believe_a_solver,
          leaves_large_steps_to_the_search)
#else
TEST_MAIN("exact", does_not_believe_a_solver, leaves_large_steps_to_the_search)
#endif
