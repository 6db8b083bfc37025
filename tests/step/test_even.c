/* Steps of one degree, dealt evenly, against the same ways by plain loops; and the search, which is slower
 * than none of these on lengths that are alike. */
#include "boards.h"
#include "flexsp.h"
#include "keep.h"

enum { COUNT = 512, RANKS = 64, MORE = 3 };

/* A batch and what a group of it takes, for the plain ways. */
typedef struct narrow {
    const hbp_cost *cost;
    uint32_t length[COUNT]; /* descending, none twice */
    int64_t value[COUNT];   /* what is balanced */
    int64_t part[COUNT];
    int64_t parts;
    int32_t sp;
    int64_t best_ns; /* of the ways so far */
} narrow;

/* Lengths of a mean, spread in one of three ways, up to 8,192. */
static void draw(uint64_t seed, narrow *n)
{
    static uint8_t taken[8193];
    hbp__rng rng = hbp__rng_make(seed, 0, 72);
    double mean = 1500 + hbp__rng_below(&rng, 5001);
    memset(taken, 0, sizeof taken);
    for (int64_t i = 0; i < COUNT;) {
        double x = 0;
        for (int r = 0; r < 4; r++)
            x += hbp__rng_below(&rng, 1000001) / 1e6;
        double length = seed % 3 == 0   ? mean + 2600 * (x - 2)
                        : seed % 3 == 1 ? mean * exp(1.2 * (x - 2)) * .95
                                        : mean * 2 * (hbp__rng_below(&rng, 1000001) / 1e6);
        int64_t at = length < 64 ? 64 : length > 8192 ? 8192 : (int64_t)length;
        while (at > 0 && taken[at])
            at--; /* the next that is free: at least so many are */
        if (at > 0)
            taken[at] = 1, i++;
    }
    for (int64_t at = 8192, i = 0; at > 0; at--)
        if (taken[at])
            n->length[i++] = (uint32_t)at;
}

static int descending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* The step of the parts, the slowest together: the best of it and the others. */
static void judge(narrow *n)
{
    static int64_t tokens[COUNT], ns[COUNT];
    static double squares[COUNT];
    int64_t room = hbp_cost_predict_capacity(n->cost, n->sp, 0), sum = 0;
    for (int64_t p = 0; p < n->parts; p++)
        tokens[p] = 0, squares[p] = 0;
    for (int64_t i = 0; i < COUNT; i++) {
        tokens[n->part[i]] += n->length[i];
        squares[n->part[i]] += (double)n->length[i] * n->length[i];
    }
    for (int64_t p = 0; p < n->parts; p++) {
        if (tokens[p] > room)
            return;
        ns[p] = hbp_cost_predict_pack_ns(n->cost, n->sp, 0, tokens[p], squares[p], 0);
    }
    qsort(ns, (size_t)n->parts, sizeof *ns, descending);
    for (int64_t p = 0; p < n->parts; p += RANKS / n->sp)
        sum += ns[p];
    n->best_ns = sum < n->best_ns ? sum : n->best_ns;
}

/* Longest first to the part of the least sum, of those with fewer than `most`. */
static void longest_first(narrow *n, int64_t most)
{
    static int64_t sum[COUNT], dealt[COUNT];
    for (int64_t p = 0; p < n->parts; p++)
        sum[p] = dealt[p] = 0;
    for (int64_t i = 0; i < COUNT; i++) {
        int64_t best = -1;
        for (int64_t p = 0; p < n->parts; p++)
            if (dealt[p] < most && (best < 0 || sum[p] < sum[best]))
                best = p;
        n->part[i] = best;
        sum[best] += n->value[i];
        dealt[best]++;
    }
}

/* One part of a tuple: its sum, and its items as a list. */
typedef struct bin {
    int64_t sum;
    int64_t head;
} bin;

static int descending_bins(const void *a, const void *b)
{
    return descending(&((const bin *)a)->sum, &((const bin *)b)->sum);
}

static int64_t spread(const narrow *n, const bin *tuple)
{
    return tuple[0].sum - tuple[n->parts - 1].sum;
}

/* Karmarkar and Karp's differencing by sorted tuples; in rows with equal numbers of items. */
static void difference(narrow *n, int rows)
{
    static bin tuple[COUNT][COUNT];
    static int64_t next[COUNT];
    int64_t tuples = 0, row = rows ? n->parts : 1;
    for (int64_t i = 0; i < COUNT; i += row, tuples++)
        for (int64_t p = 0; p < n->parts; p++) {
            int is_item = p < row && i + p < COUNT;
            tuple[tuples][p] = (bin){is_item ? n->value[i + p] : 0, is_item ? i + p : -1};
            if (is_item)
                next[i + p] = -1;
        }
    for (; tuples > 1; tuples--) {
        int64_t a = 0, b = -1;
        for (int64_t t = 1; t < tuples; t++)
            if (spread(n, tuple[t]) > spread(n, tuple[a])) {
                b = a;
                a = t;
            } else if (b < 0 || spread(n, tuple[t]) > spread(n, tuple[b])) {
                b = t;
            }
        for (int64_t p = 0; p < n->parts; p++) {
            bin *to = &tuple[a][p];
            const bin *from = &tuple[b][n->parts - 1 - p];
            int64_t tail = from->head;
            to->sum += from->sum;
            while (tail >= 0 && next[tail] >= 0)
                tail = next[tail];
            if (tail >= 0) {
                next[tail] = to->head;
                to->head = from->head;
            }
        }
        qsort(tuple[a], (size_t)n->parts, sizeof *tuple[a], descending_bins);
        memcpy(tuple[b], tuple[tuples - 1], (size_t)n->parts * sizeof *tuple[b]);
        if (a == tuples - 1)
            a = b;
    }
    for (int64_t p = 0; p < n->parts; p++)
        for (int64_t i = tuple[0][p].head; i >= 0; i = next[i])
            n->part[i] = p;
}

/* The longest with the shortest where a group holds both. */
static void pair(narrow *n)
{
    int64_t room = hbp_cost_predict_capacity(n->cost, n->sp, 0);
    n->parts = 0;
    for (int64_t i = 0, last = COUNT - 1; i <= last; i++, n->parts++) {
        n->part[i] = n->parts;
        if (i < last && (int64_t)n->length[i] + n->length[last] <= room)
            n->part[last--] = n->parts;
    }
}

/* All ways at one degree, from the fewest micro-batches on. */
static void try_degree(narrow *n)
{
    int64_t room = hbp_cost_predict_capacity(n->cost, n->sp, 0), tokens = 0, groups = RANKS / n->sp;
    for (int64_t i = 0; i < COUNT; i++)
        tokens += n->length[i];
    int64_t least = (tokens + room * groups - 1) / (room * groups);
    for (int64_t m = least; m < least + MORE && m * groups <= COUNT; m++) {
        n->parts = m * groups;
        for (int by_tokens = 1; by_tokens >= 0; by_tokens--) {
            for (int64_t i = 0; i < COUNT; i++) {
                double s = n->length[i];
                n->value[i] = by_tokens
                                  ? n->length[i]
                                  : hbp_cost_predict_pack_ns(n->cost, n->sp, 0, n->length[i], s * s, 0) -
                                        hbp_cost_predict_pack_ns(n->cost, n->sp, 0, 0, 0, 0);
            }
            longest_first(n, COUNT);
            judge(n);
            longest_first(n, (COUNT + n->parts - 1) / n->parts);
            judge(n);
        }
        difference(n, 0);
        judge(n);
        difference(n, 1);
        judge(n);
    }
    pair(n);
    judge(n);
}

/* The shortest of all ways at any one degree; the time of a plan of no less than one is INT64_MAX. */
static int64_t plain_ns(narrow *n)
{
    n->best_ns = INT64_MAX;
    for (n->sp = 1; n->sp <= RANKS; n->sp *= 2)
        if (n->length[0] <= hbp_cost_predict_capacity(n->cost, n->sp, 0))
            try_degree(n);
    return n->best_ns;
}

/* What hbp__step_even makes of a step. */
static int64_t even_ns(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost)
{
    hbp__step step;
    hbp__step_builder builder;
    hbp__step_solution solution = {.ns = 0};
    int64_t mark = hbp__scratch_mark(context);
    OK(context, hbp__step_open(context, lengths, cost, NULL, &step));
    OK(context, hbp__step_builder_open(&step, &builder));
    OK(context, hbp__step_even(&builder, COUNT, INT64_MAX, &solution));
    ck_assert_ptr_nonnull(solution.first);
    int64_t ns = solution.ns;
    hbp__step_solution_close(&solution);
    hbp__step_close(&step);
    hbp__scratch_release(context, mark);
    return ns;
}

START_TEST_IN_CONTEXT(no_even_step_of_one_degree_is_shorter)
{
    static narrow n;
    int64_t shorter = 0;
    hbp_cost *cost = keep(flexsp_cost(context, "7B", 192, 0, RANKS));
    n.cost = cost;
    for (uint64_t seed = 0; seed < TEST_ROUNDS(60); seed++) {
        hbp_lengths *lengths = NULL;
        hbp_plan *plan = NULL;
        draw(seed, &n);
        int64_t plain = plain_ns(&n);
        OK(context, hbp_lengths_create_u32(context, n.length, COUNT, NULL, &lengths));
        int64_t even = even_ns(context, lengths, cost);
        ck_assert_msg(even <= plain, "seed %d: %lld ns, %lld by plain loops", (int)seed, (long long)even,
                      (long long)plain);
        OK(context, hbp_plan_step(context, lengths, cost, NULL, &plan));
        OK(context, hbp_plan_validate(context, plan, lengths, cost));
        hbp_plan_summary summary = {.struct_size = sizeof summary};
        OK(context, hbp_plan_get_summary(context, plan, &summary));
        ck_assert_msg(summary.predicted_ns <= even, "seed %d: %lld ns, evenly %lld", (int)seed,
                      (long long)summary.predicted_ns, (long long)even);
        shorter += summary.predicted_ns < even;
        hbp_plan_free(plan);
        hbp_lengths_free(lengths);
    }
    ck_assert_int_gt(shorter, 0);
}
END_TEST

/* Steps of many kinds: what comes is a step of one degree below what is asked for, and nothing else is. */
START_TEST(steps_are_whole_and_below)
{
    int64_t found = 0, rounds = TEST_ROUNDS(600);
    for (int64_t i = 0; i < rounds; i++) {
        ground g;
        ground_open(&g, (uint64_t)i, (int)(i % GROUND_KINDS), 24);
        hbp__step_solution solution = {.ns = 0}, again = {.ns = 0};
        OK(g.small.context, hbp__step_even(&g.builder, g.step.count, INT64_MAX, &solution));
        if (solution.first) {
            int64_t ns = solution.ns;
            for (int64_t p = 0; p < solution.groups; p++)
                ck_assert_int_eq(solution.degree[p], solution.degree[0]);
            OK(g.small.context, hbp__step_solution_price(&g.step, &solution));
            ck_assert_int_eq(solution.ns, ns);
            OK(g.small.context, hbp__step_even(&g.builder, g.step.count, ns, &again));
            ck_assert_ptr_null(again.first);
            found++;
        }
        hbp__step_solution_close(&solution);
        hbp__step_solution_close(&again);
        ground_close(&g);
    }
    ck_assert_int_gt(found, rounds / 2);
}
END_TEST

/* No more micro-batches than are allowed. */
START_TEST(micro_batches_are_limited)
{
    int64_t fewer = 0;
    for (uint64_t i = 0; i < 100; i++) {
        ground g;
        ground_open(&g, i, GROUND_LONG, 24);
        hbp__step_solution solution = {.ns = 0};
        for (int64_t most = 1; most < 5; most++) {
            OK(g.small.context, hbp__step_even(&g.builder, most, INT64_MAX, &solution));
            if (solution.first)
                ck_assert_int_le(solution.micro_batches, most);
            fewer += solution.first != NULL;
            hbp__step_solution_close(&solution);
        }
        ground_close(&g);
    }
    ck_assert_int_gt(fewer, 0);
}
END_TEST

static hbp_status deal_once(hbp_context *context, void *user)
{
    hbp_lengths *const *lengths = user;
    hbp__step step;
    hbp__step_builder builder;
    hbp__step_solution solution = {.ns = 0};
    hbp_cost *cost = NULL;
    HBP__TRY(hbp__enter(context));
    int64_t mark = hbp__scratch_mark(context);
    cost = flexsp_cost(context, "7B", 192, 0, 8);
    hbp_status status = cost ? hbp__step_open(context, *lengths, cost, NULL, &step) : HBP_E_NO_MEMORY;
    if (status >= 0)
        status = hbp__step_builder_open(&step, &builder);
    if (status >= 0)
        status = hbp__step_even(&builder, 20, INT64_MAX, &solution);
    hbp__step_solution_close(&solution);
    if (cost)
        hbp__step_close(&step);
    hbp_cost_free(cost);
    return hbp__leave(context, mark, status);
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    hbp_lengths *lengths = keep(test_long_tail(context, 1, 30, 5000));
    failing_sweep(deal_once, &lengths);
}
END_TEST

TEST_MAIN("even", no_even_step_of_one_degree_is_shorter, steps_are_whole_and_below, micro_batches_are_limited,
          nothing_is_left_behind)
