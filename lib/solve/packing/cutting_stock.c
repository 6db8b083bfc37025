/* Column generation for the relaxation of cutting stock (Gilmore and Gomory 1961), prices held back from
 * swinging (Wentges 1997), ended by Farley's bound (1990). O(classes capacity) a round, O(classes^2) a pivot.
 */
#include "solve/packing/tight_parts.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/wide.h"
#include "solve/packing/tight_tuning.h"

/* Reduced costs and pivots below these are taken for zero. */
#define EPSILON 1e-9

/* The master problem. Rows are classes; the basis starts as one pattern a row, full of that class. */
typedef struct master {
    hbp_context *context;
    const hbp__classes *classes;
    int64_t capacity;
    int64_t rows;
    hbp__patterns *patterns;
    double *inverse; /* [rows][rows] of the basis, transposed: inverse[r * rows + i] is row i, column r */
    double *x;       /* [rows] uses of the basic columns */
    double *y;       /* [rows] prices of the master */
    double *price;   /* [rows] prices that patterns are sought at */
    double *d;       /* [rows] the entering column in terms of the basis */
    int64_t *basic;  /* [rows] pattern, or -1 for surplus */
    double *best;    /* [capacity + 1] value of the best pattern of a size */
    double *value;   /* [rows] of the best pattern with an item of the class */
    double packs;
    int64_t *work; /* operations left */
} master;

static hbp_status start_basis(master *m)
{
    for (int64_t r = 0; r < m->rows; r++) {
        int64_t fill = m->capacity / m->classes->size[r];
        hbp__run run = {(int32_t)r, (int32_t)fill};
        HBP__TRY(hbp__patterns_add(m->context, m->patterns, 0, &run, 1));
        m->basic[r] = r;
        m->y[r] = 1.0 / (double)fill;
        m->inverse[r * m->rows + r] = m->y[r];
        m->x[r] = (double)m->classes->number[r] / (double)fill;
        m->packs += m->x[r];
    }
    return HBP_OK;
}

/* Column r of the inverse, and the price of class r, once row `leaving` left it. */
static inline void pivot_inverse_by(const master *m, int64_t leaving, double scale, double reduced)
{
    const int64_t rows = m->rows;
    const double *d = m->d;
    for (int64_t r = 0; r < rows; r++) {
        double *to = m->inverse + r * rows;
        double factor = to[leaving] * scale;
        if (!(factor < 0 || factor > 0))
            continue;
        for (int64_t i = 0; i < rows; i++)
            to[i] -= d[i] * factor;
        to[leaving] = factor;
        m->y[r] += reduced * factor;
    }
}

HBP__WIDE static void pivot_inverse_wide(const master *m, int64_t leaving, double scale, double reduced)
{
    pivot_inverse_by(m, leaving, scale, reduced);
}

static void pivot_inverse(const master *m, int64_t leaving, double scale, double reduced)
{
    if (hbp__has_wide())
        pivot_inverse_wide(m, leaving, scale, reduced);
    else
        pivot_inverse_by(m, leaving, scale, reduced);
}

/* Brings a column of runs [count] and this reduced cost < 0 into the basis. Returns 0 when nothing limits it.
 */
static int pivot_column(master *m, int64_t column, const hbp__run *run, int64_t count, double reduced)
{
    int64_t rows = m->rows, leaving = -1;
    memset(m->d, 0, (size_t)rows * sizeof *m->d);
    for (int64_t k = 0; k < count; k++) {
        const double *from = m->inverse + run[k].class_index * rows;
        double times = (double)run[k].number;
        for (int64_t i = 0; i < rows; i++)
            m->d[i] += times * from[i];
    }
    /* The least ratio leaves; among equals the largest pivot, which keeps the inverse sound. */
    double step = 0;
    for (int64_t i = 0; i < rows; i++) {
        if (m->d[i] <= EPSILON)
            continue;
        double ratio = m->x[i] / m->d[i];
        if (leaving < 0 || ratio < step || (!(ratio > step) && m->d[i] > m->d[leaving])) {
            step = ratio;
            leaving = i;
        }
    }
    if (leaving < 0)
        return 0;
    double scale = 1.0 / m->d[leaving];
    for (int64_t i = 0; i < rows; i++) {
        m->x[i] -= step * m->d[i];
        if (m->x[i] < 0)
            m->x[i] = 0;
    }
    m->x[leaving] = step;
    m->packs += step * reduced;
    m->basic[leaving] = column;
    pivot_inverse(m, leaving, scale, reduced);
    return 1;
}

/* The patterns known, LANES of them side by side, so that their sums do not wait for each other: each sum has
 * its terms in the pattern's order. Patterns of fewer runs than their neighbours end with none of class 0. */
enum { LANES = 4 };
typedef struct known {
    int64_t groups;
    int64_t *first;       /* [groups + 1] rows */
    int32_t *class_index; /* [rows, LANES] */
    double *number;       /* [rows, LANES] */
} known;

static int64_t runs_of(const hbp__patterns *patterns, int64_t pattern)
{
    return pattern < patterns->count ? patterns->offsets[pattern + 1] - patterns->offsets[pattern] : 0;
}

static hbp_status list_known(const master *m, known *k)
{
    const hbp__patterns *patterns = m->patterns;
    k->groups = hbp__ceil_div(patterns->count, LANES);
    k->first = hbp__take(m->context, (uint64_t)k->groups + 1, sizeof *k->first);
    HBP__TRY(hbp__scratch_check(m->context, "cutting patterns"));
    k->first[0] = 0;
    for (int64_t g = 0; g < k->groups; g++) {
        int64_t most = 0;
        for (int64_t lane = 0; lane < LANES; lane++)
            most = hbp__max_i64(most, runs_of(patterns, g * LANES + lane));
        k->first[g + 1] = k->first[g] + most;
    }
    const uint64_t cells = (uint64_t)(k->first[k->groups] * LANES);
    k->class_index = hbp__take_zero(m->context, cells, sizeof *k->class_index);
    k->number = hbp__take_zero(m->context, cells, sizeof *k->number);
    HBP__TRY(hbp__scratch_check(m->context, "cutting patterns"));
    for (int64_t p = 0; p < patterns->count; p++) {
        const hbp__run *run = patterns->run + patterns->offsets[p];
        for (int64_t i = 0; i < runs_of(patterns, p); i++) {
            const int64_t cell = (k->first[p / LANES] + i) * LANES + p % LANES;
            k->class_index[cell] = run[i].class_index;
            k->number[cell] = (double)run[i].number;
        }
    }
    return HBP_OK;
}

/* The first of the patterns worth most, or -1 when none is worth more than *best, which gets its worth. */
static int64_t price_known(const known *k, const double *y, double *best)
{
    int64_t top = -1;
    for (int64_t g = 0; g < k->groups; g++) {
        double value[LANES] = {0};
        for (int64_t row = k->first[g]; row < k->first[g + 1]; row++)
            for (int lane = 0; lane < LANES; lane++)
                value[lane] += y[k->class_index[row * LANES + lane]] * k->number[row * LANES + lane];
        for (int lane = 0; lane < LANES; lane++)
            if (value[lane] > *best) {
                *best = value[lane];
                top = g * LANES + lane;
            }
    }
    return top;
}

/* Pivots among the patterns known and the surpluses until none pays. */
static hbp_status pivot_known(master *m, const known *k)
{
    for (int64_t done = 0; *m->work > 0; done++) {
        *m->work -= m->rows * m->rows + 4 * m->patterns->count;
        if (done % 64 == 0)
            HBP__TRY(hbp__tick(m->context, "pack", 0, 0));
        double best = 1.0 + EPSILON, lowest = -EPSILON;
        int64_t surplus = -1;
        const int64_t column = price_known(k, m->y, &best);
        for (int64_t r = 0; r < m->rows; r++) {
            if (m->y[r] < lowest) {
                lowest = m->y[r];
                surplus = r;
            }
        }
        if (surplus >= 0 && -lowest > best - 1.0) {
            hbp__run run = {(int32_t)surplus, -1};
            if (!pivot_column(m, -1, &run, 1, lowest))
                break;
        } else if (column >= 0) {
            int64_t at = m->patterns->offsets[column];
            if (!pivot_column(m, column, m->patterns->run + at, m->patterns->offsets[column + 1] - at,
                              1.0 - best))
                break;
        } else {
            break;
        }
    }
    return HBP_OK;
}

static hbp_status optimise_master(master *m)
{
    const int64_t mark = hbp__scratch_mark(m->context);
    known k;
    HBP__TRY(list_known(m, &k));
    HBP__TRY(pivot_known(m, &k));
    hbp__scratch_release(m->context, mark);
    return HBP_OK;
}

/* best[x]: the value of the best pattern of size at most x at m->price, any number of a class. */
static inline void fill_knapsack_by(const master *m)
{
    double *best = m->best;
    memset(best, 0, (size_t)(m->capacity + 1) * sizeof *best);
    for (int64_t r = 0; r < m->rows; r++) {
        int64_t size = m->classes->size[r];
        double price_of_one = m->price[r];
        if (price_of_one <= EPSILON)
            continue;
        /* In strips of `size`, so that what is read was written a strip ago and a strip runs in vectors. */
        for (int64_t from = size; from <= m->capacity; from += size) {
            int64_t end = from + size <= m->capacity + 1 ? size : m->capacity + 1 - from;
            double *to = best + from;
            const double *one_less = best + from - size;
            for (int64_t k = 0; k < end; k++) {
                double with = one_less[k] + price_of_one;
                to[k] = with > to[k] ? with : to[k];
            }
        }
    }
}

HBP__WIDE static void fill_knapsack_wide(const master *m)
{
    fill_knapsack_by(m);
}

static void fill_knapsack(const master *m)
{
    if (hbp__has_wide())
        fill_knapsack_wide(m);
    else
        fill_knapsack_by(m);
}

/* Adds the best pattern that holds an item of class `row`, unless its like was added since `since`. */
static hbp_status add_pattern(master *m, int64_t row, int32_t *number, int64_t since)
{
    hbp__run run[64];
    int64_t runs = 0, left = m->capacity - m->classes->size[row];
    memset(number, 0, (size_t)m->rows * sizeof *number);
    number[row]++;
    while (m->best[left] > 0) {
        int64_t r = m->rows - 1;
        for (; r >= 0; r--) {
            int64_t size = m->classes->size[r];
            if (m->price[r] > EPSILON && size <= left && m->best[left - size] + m->price[r] >= m->best[left])
                break;
        }
        if (r < 0)
            break;
        number[r]++;
        left -= m->classes->size[r];
    }
    double value = 0;
    for (int64_t r = m->rows - 1; r >= 0 && runs < 64; r--) {
        if (!number[r])
            continue;
        run[runs++] = (hbp__run){(int32_t)r, number[r]};
        value += m->y[r] * (double)number[r];
    }
    if (value <= 1.0 + EPSILON)
        return HBP_OK;
    for (int64_t p = since; p < m->patterns->count; p++) {
        int64_t at = m->patterns->offsets[p];
        if (m->patterns->offsets[p + 1] - at == runs &&
            !memcmp(m->patterns->run + at, run, (size_t)runs * sizeof *run))
            return HBP_OK;
    }
    return hbp__patterns_add(m->context, m->patterns, 0, run, runs);
}

/* Adds patterns that are good at prices `weight` of the way from the master's to size / capacity, and pay at
 * the master's. Those prices are feasible and, on data without a quirk, optimal: a weight on them keeps the
 * master's from swinging (Wentges 1997). *least gets a lower bound on packs (Farley 1990): no cover has fewer
 * than its items are worth over the worth of the best pattern. */
static hbp_status generate_patterns(master *m, int32_t *number, double weight, double *least)
{
    double worth = 0;
    for (int64_t r = 0; r < m->rows; r++) {
        double fair = (double)m->classes->size[r] / (double)m->capacity;
        m->price[r] = weight * fair + (1.0 - weight) * m->y[r];
        worth += m->price[r] * (double)m->classes->number[r];
    }
    fill_knapsack(m);
    *m->work -= m->rows * m->capacity;
    *least = worth / m->best[m->capacity];
    for (int64_t r = 0; r < m->rows; r++)
        m->value[r] = m->price[r] + m->best[m->capacity - m->classes->size[r]];
    int64_t since = m->patterns->count;
    for (int64_t k = 0; k < HBP__TIGHT_BATCH; k++) {
        int64_t top = -1;
        for (int64_t r = 0; r < m->rows; r++)
            if (m->value[r] > 0 && (top < 0 || m->value[r] > m->value[top]))
                top = r;
        if (top < 0)
            break;
        m->value[top] = 0;
        HBP__TRY(add_pattern(m, top, number, since));
    }
    return HBP_OK;
}

static hbp_status solve_master(master *m, int32_t *number, double gap)
{
    double weight = HBP__TIGHT_FAIR, bound = 0;
    HBP__TRY(start_basis(m));
    while (*m->work > 0) {
        double least;
        int64_t before = m->patterns->count;
        HBP__TRY(generate_patterns(m, number, weight, &least));
        bound = least > bound ? least : bound;
        if (m->packs - bound < gap)
            break;
        if (m->patterns->count > before) {
            HBP__TRY(optimise_master(m));
        } else if (weight > 0) {
            weight = weight < .1 ? 0 : weight / 2;
        } else {
            break;
        }
    }
    return HBP_OK;
}

hbp_status hbp__relaxation_open(hbp_context *context, const hbp__classes *classes, int64_t capacity,
                                double gap, int64_t *work, hbp__relaxation *relaxation)
{
    uint64_t rows = (uint64_t)classes->count;
    memset(relaxation, 0, sizeof *relaxation);
    hbp__patterns_open(context, &relaxation->patterns);
    master m = {.context = context, .classes = classes, .capacity = capacity, .rows = classes->count};
    m.patterns = &relaxation->patterns;
    m.work = work;
    m.x = hbp__take(context, rows, 5 * sizeof *m.x);
    m.basic = hbp__take(context, rows, sizeof *m.basic);
    int64_t mark = hbp__scratch_mark(context);
    m.inverse = hbp__take_zero(context, rows * rows, sizeof *m.inverse);
    m.best = hbp__take(context, (uint64_t)capacity + 1, sizeof *m.best);
    int32_t *number = hbp__take(context, rows, sizeof *number);
    HBP__TRY(hbp__scratch_check(context, "cutting patterns"));
    m.y = m.x + rows;
    m.d = m.y + rows;
    m.value = m.d + rows;
    m.price = m.value + rows;
    HBP__TRY(solve_master(&m, number, gap));
    relaxation->rows = m.rows;
    relaxation->uses = m.x;
    relaxation->column = m.basic;
    relaxation->packs = m.packs;
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

void hbp__relaxation_close(hbp__relaxation *relaxation)
{
    hbp__patterns_close(&relaxation->patterns);
}
