/* Curves as continuous functions, and the optimum of Theorem 1. Only operations that IEEE 754 fixes to the
 * last bit. */
#include "cost/scaling.h"

#include <math.h>

#define STEPS 16 /* of false position */

double hbp__curve_time(const hbp__curve *curve, double n)
{
    int32_t last = curve->sizes - 1;
    if (n >= curve->size[last])
        return (double)curve->time_ns[last];
    if (n <= curve->size[0])
        return (double)curve->time_ns[0] * ((double)curve->size[0] / n);
    int32_t i = hbp__curve_floor(curve, (int32_t)n);
    double j = curve->size[i], k = curve->size[i + 1];
    double more = (double)(curve->time_ns[i] - curve->time_ns[i + 1]);
    return (double)curve->time_ns[i + 1] + more * (j * (k - n) / (n * (k - j)));
}

double hbp__curve_gpus(const hbp__curve *curve, double ns)
{
    int32_t low = 0, high = curve->sizes - 1; /* the first size that is fast enough */
    if (!(ns >= (double)curve->time_ns[high]))
        return INFINITY;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if ((double)curve->time_ns[middle] <= ns)
            high = middle;
        else
            low = middle + 1;
    }
    double time = (double)curve->time_ns[high], k = curve->size[high];
    if (high == 0)
        return k * (time / ns);
    double j = curve->size[high - 1];
    double a = (double)(curve->time_ns[high - 1] - curve->time_ns[high]) * (j * k / (k - j));
    double n = a / (ns - time + a / k); /* b = time - a / k */
    return n < j ? j : n > k ? k : n;
}

/* What MetaOp m needs to end by C; finite when C is no less than it takes on its largest size. */
static double share_of(const hbp__curve *curve, int32_t operators, double optimum)
{
    double fastest = (double)curve->time_ns[curve->sizes - 1], each = optimum / operators;
    return hbp__curve_gpus(curve, each < fastest ? fastest : each); /* L T / L may round below T */
}

static double sum_of(const hbp__curve *const *curves, const int32_t *operators, int32_t count, double optimum)
{
    double sum = 0;
    for (int32_t m = 0; m < count; m++)
        sum += share_of(curves[m], operators[m], optimum);
    return sum;
}

/* What every C lies between. With every n_m at most its least size, n_m = n T(n) L_m / C by the line through
 * the origin: so at the upper end the sum is N or less. */
static void enclose(const hbp__curve *const *curves, const int32_t *operators, int32_t count, double gpus,
                    double *low, double *high)
{
    double area = 0;
    *low = *high = 0;
    for (int32_t m = 0; m < count; m++) {
        const hbp__curve *c = curves[m];
        double most = (double)c->time_ns[0] * operators[m];
        double least = (double)c->time_ns[c->sizes - 1] * operators[m];
        area += most * c->size[0];
        *low = least > *low ? least : *low;
        *high = most > *high ? most : *high;
    }
    *high = area / gpus > *high ? area / gpus : *high;
}

/* Sums fall at least as fast as 1 / C where more GPUs waste more, so that from either side x sum / N lies on
 * the other. From then on false position in 1 / C (Illinois: Dowell and Jarratt 1971, halving the value of an
 * end that stays); after some steps, halves. */
double hbp__relax_near(const hbp__curve *const *curves, const int32_t *operators, int32_t count, double gpus,
                       double guess, double tolerance)
{
    double least, high, over = 0, under = 0; /* what the sum has too much at low, too little at high; 0: not
                                                looked at yet */
    enclose(curves, operators, count, gpus, &least, &high);
    double low = least, x = guess > low && guess < high ? guess : low;
    for (int32_t step = 0, side = 0;; step++) {
        double sum = sum_of(curves, operators, count, x);
        if (sum > gpus) {
            low = x;
            over = sum - gpus;
            under = side > 0 ? under / 2 : under;
            side = 1;
            high = x < high ? high : x + x * 0x1p-52; /* by rounding alone */
        } else {
            high = x;
            under = sum - gpus;
            over = side < 0 ? over / 2 : over;
            side = -1;
            if (sum == gpus || x <= least)
                return x;
        }
        if (under < 0 && high - low <= tolerance * high)
            return high;
        if (over > 0 && under < 0) {
            double middle = low + (high - low) / 2;
            x = 1 / (1 / low + (1 / high - 1 / low) * (over / (over - under)));
            x = step < STEPS && x > low && x < high ? x : middle;
            if (!(x > low && x < high))
                return high;
        } else {
            double next = x * (sum / gpus), other = over > 0 ? high : low;
            x = step < STEPS && next > low && next < high ? next : other;
        }
    }
}

double hbp__relax(const hbp__curve *const *curves, const int32_t *operators, int32_t count, double gpus,
                  double *share)
{
    double optimum = hbp__relax_near(curves, operators, count, gpus, 0, 0);
    for (int32_t m = 0; share && m < count; m++)
        share[m] = share_of(curves[m], operators[m], optimum);
    return optimum;
}
