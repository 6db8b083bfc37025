/* Differencing against every deal, and against the method as it is published: sorted tuples. */
#include "base/rng.h"
#include "failing.h"
#include "keep.h"
#include "step/differencing.h"

enum { MOST = 40, MOST_PARTS = 12 };

typedef struct numbers {
    int64_t value[MOST];
    int64_t count;
    int64_t parts;
} numbers;

/* Descending. */
static void draw(hbp__rng *rng, int64_t most, int64_t most_parts, uint64_t range, numbers *n)
{
    n->count = 1 + hbp__rng_below(rng, (uint64_t)most);
    n->parts = 1 + hbp__rng_below(rng, (uint64_t)most_parts);
    for (int64_t i = 0; i < n->count; i++) {
        int64_t at = i, value = hbp__rng_below(rng, range);
        for (; at > 0 && n->value[at - 1] < value; at--)
            n->value[at] = n->value[at - 1];
        n->value[at] = value;
    }
}

/* Sums of the parts, descending, into sum [parts]; as many values in each as may be where `rows`. */
static void check_parts(const numbers *n, const int64_t *part, int rows, int64_t *sum)
{
    int64_t dealt[MOST_PARTS] = {0}, of[MOST_PARTS] = {0};
    for (int64_t i = 0; i < n->count; i++) {
        ck_assert(part[i] >= 0 && part[i] < n->parts);
        of[part[i]] += n->value[i];
        dealt[part[i]]++;
    }
    for (int64_t p = 0; p < n->parts; p++) {
        int64_t at = p;
        for (; at > 0 && sum[at - 1] < of[p]; at--)
            sum[at] = sum[at - 1];
        sum[at] = of[p];
        if (rows)
            ck_assert(dealt[p] == n->count / n->parts || dealt[p] == n->count / n->parts + 1);
    }
}

/* The published method: tuples of all parts in descending order, the widest two made one. sum [parts] gets
 * the last one. Ties make another deal, so values are to be unlike. */
static void difference_tuples(const numbers *n, int rows, int64_t *sum)
{
    int64_t tuple[MOST][MOST_PARTS] = {{0}}, tuples = 0, row = rows ? n->parts : 1;
    for (int64_t i = 0; i < n->count; i += row, tuples++)
        for (int64_t p = 0; p < row && i + p < n->count; p++)
            tuple[tuples][p] = n->value[i + p];
    while (tuples > 1) {
        int64_t widest[2] = {-1, -1};
        for (int64_t t = 0; t < tuples; t++) {
            int64_t spread = tuple[t][0] - tuple[t][n->parts - 1];
            for (int w = 0; w < 2; w++) {
                int64_t u = widest[w];
                if (u < 0 || spread > tuple[u][0] - tuple[u][n->parts - 1]) {
                    if (!w)
                        widest[1] = widest[0];
                    widest[w] = t;
                    break;
                }
            }
        }
        int64_t both[MOST_PARTS];
        for (int64_t p = 0; p < n->parts; p++) {
            int64_t at = p, value = tuple[widest[0]][p] + tuple[widest[1]][n->parts - 1 - p];
            for (; at > 0 && both[at - 1] < value; at--)
                both[at] = both[at - 1];
            both[at] = value;
        }
        memcpy(tuple[widest[0]], both, sizeof both);
        memcpy(tuple[widest[1]], tuple[--tuples], sizeof both);
    }
    memcpy(sum, tuple[0], MOST_PARTS * sizeof *sum);
}

START_TEST_IN_CONTEXT(sums_are_the_published_methods)
{
    int64_t lists = 0, heaps = 0;
    for (uint64_t seed = 0; seed < TEST_ROUNDS(4000); seed++) {
        hbp__rng rng = hbp__rng_make(seed, 0, 71);
        numbers n;
        draw(&rng, MOST, MOST_PARTS, UINT64_C(1) << 40, &n);
        for (int rows = 0; rows < 2; rows++) {
            int64_t part[MOST], sum[MOST_PARTS], published[MOST_PARTS];
            OK(context, hbp__step_difference(context, n.value, n.count, n.parts, rows, part));
            check_parts(&n, part, rows, sum);
            difference_tuples(&n, rows, published);
            ck_assert_mem_eq(sum, published, (size_t)n.parts * sizeof *sum);
        }
        lists += n.count <= n.parts;
        heaps += n.count > 3 * n.parts;
    }
    ck_assert_int_gt(lists, 0);
    ck_assert_int_gt(heaps, 0);
}
END_TEST

/* The least largest sum of all deals. */
static int64_t best_most(const numbers *n, int64_t i, int64_t *sum, int64_t best)
{
    int64_t most = 0;
    for (int64_t p = 0; p < n->parts; p++)
        most = sum[p] > most ? sum[p] : most;
    if (most >= best || i == n->count)
        return most < best ? most : best;
    for (int64_t p = 0; p < n->parts; p++) {
        sum[p] += n->value[i];
        best = best_most(n, i + 1, sum, best);
        sum[p] -= n->value[i];
        if (!sum[p])
            break; /* empty parts are alike */
    }
    return best;
}

/* Graham's bound for any method that is no worse: 4/3 - 1 / (3 parts) (Fischetti and Martello 1987 for two
 * parts, Michiels and others 2003 for more). Equal values, as well. */
START_TEST_IN_CONTEXT(the_largest_sum_is_near_the_best)
{
    int64_t met = 0, tried = 0;
    for (uint64_t seed = 0; seed < TEST_ROUNDS(1000); seed++) {
        hbp__rng rng = hbp__rng_make(seed, 1, 71);
        int64_t part[MOST], sum[MOST_PARTS], none[MOST_PARTS] = {0};
        numbers n;
        draw(&rng, 9, 4, seed % 2 ? 30 : 1000000, &n);
        OK(context, hbp__step_difference(context, n.value, n.count, n.parts, 0, part));
        check_parts(&n, part, 0, sum);
        int64_t best = best_most(&n, 0, none, INT64_MAX);
        ck_assert_int_ge(sum[0], best);
        ck_assert_msg(3 * n.parts * sum[0] <= (4 * n.parts - 1) * best, "seed %d: %lld, at best %lld",
                      (int)seed, (long long)sum[0], (long long)best);
        met += sum[0] == best;
        tried++;
    }
    ck_assert_int_gt(met, tried / 2);
}
END_TEST

typedef struct call {
    numbers n;
    int64_t part[MOST];
} call;

static hbp_status difference(hbp_context *context, void *user)
{
    call *c = user;
    int64_t mark = hbp__scratch_mark(context);
    HBP__TRY(hbp__enter(context));
    return hbp__leave(context, mark,
                      hbp__step_difference(context, c->n.value, c->n.count, c->n.parts, 0, c->part));
}

START_TEST(nothing_is_left_behind)
{
    call c;
    hbp__rng rng = hbp__rng_make(3, 2, 71);
    draw(&rng, MOST, 5, 1000, &c.n);
    failing_sweep(difference, &c);
}
END_TEST

TEST_MAIN("differencing", sums_are_the_published_methods, the_largest_sum_is_near_the_best,
          nothing_is_left_behind)
