/* The scalability estimator: how an operator's time falls with GPUs (Spindle, section 3.2). */
#ifndef HBP_COST_SCALING_H
#define HBP_COST_SCALING_H

#include <stdint.h>

#include "data/graph/meta_graph.h"

/* One curve: what a profile and the rules of degrees come to on N GPUs. */
typedef struct hbp__curve {
    const int32_t *gpus; /* [points] profiled, times made non-increasing by a running minimum; ascending */
    const int64_t *ns;   /* [points] */
    int32_t points;
    int32_t sizes;          /* at least 1 */
    const int32_t *size;    /* [sizes] numbers of GPUs it may run on, ascending, <= N; one that is no faster
                               than a smaller one is left out */
    const int64_t *time_ns; /* [sizes] one operator's time there: strictly falling, >= 1 */
    int32_t tight;          /* of those, the ones on the lower convex hull of (time, GPUs x time), from the
                               one of least area to the largest: no mixture of others is as fast on less area */
    const int32_t *hull;    /* [tight] indices into size, ascending */
} hbp__curve;

typedef struct hbp__scaling {
    hbp__memory memory;
    int32_t gpus; /* N */
    int32_t count;
    hbp__curve *curve; /* [count], each distinct one once */
    int32_t *curve_of; /* [MetaOps] */
    int32_t *counts;   /* what the curves' columns lie in */
    int64_t *times;
} hbp__scaling;

/* Curves of every MetaOp on `gpus` GPUs; a size between two profiled ones has the time of the line a / n + b
 * through them, rounded. HBP_E_INVALID names an operator without a profile, or one that may run on none of
 * 1..gpus, with the least number that it needs; HBP_E_OVERFLOW when operators take more than 2^62 ns of GPU
 * time in all, each on its most wasteful size: no sum of times overflows then. O(M + points + sizes tried).
 */
hbp_status hbp__scaling_open(hbp_context *context, const hbp_graph *graph, const hbp__meta_graph *meta,
                             int32_t gpus, hbp__scaling *scaling);
void hbp__scaling_close(hbp__scaling *scaling);

/* Sizes to plan with. */
typedef struct hbp__size_range {
    int32_t least;
    int32_t most;
    int32_t domain_gpus; /* only sizes that divide a domain or are made of whole ones, where there are such:
                            they fill domains without a rest; 0: any */
} hbp__size_range;

/* The same curves with the sizes of a range, the nearest one where a curve has none there: more GPUs share
 * out activations and sharded states, fewer hold fewer copies of the rest. Profiled points stay those of
 * `from`, which must outlive it. */
hbp_status hbp__scaling_narrow(hbp_context *context, const hbp__meta_graph *meta, const hbp__scaling *from,
                               const hbp__size_range *range, hbp__scaling *to);

/* Writes the hull of a curve's sizes to `hull` [sizes]; returns how many they are. Andrew's monotone chain
 * (1979), O(sizes). */
int32_t hbp__curve_hull(const int32_t *size, const int64_t *time_ns, int32_t sizes, int32_t *hull);

static inline const hbp__curve *hbp__meta_curve(const hbp__scaling *scaling, int32_t meta_op)
{
    return &scaling->curve[scaling->curve_of[meta_op]];
}

/* Continuous time of one operator on n > 0 GPUs, ns: a / n + b through the valid sizes on both sides of n (a
 * = (T_i - T_i+1) / (1 / n_i - 1 / n_i+1), b = T_i - a / n_i), which is the line of the profile there unless
 * it has sizes that are not valid; below the smallest valid size the speed-up goes through the origin; above
 * the largest it is constant. Falls strictly up to there. */
double hbp__curve_time(const hbp__curve *curve, double n);

/* The least n with hbp__curve_time <= ns; infinity when there is none. */
double hbp__curve_gpus(const hbp__curve *curve, double ns);

/* Index of size `n`; -1 when the curve may not run on n GPUs, or no faster than on fewer. */
int32_t hbp__curve_find(const hbp__curve *curve, int32_t n);

/* Index of the largest size <= n; -1 for none. */
int32_t hbp__curve_floor(const hbp__curve *curve, int32_t n);

/* The continuous optimum of MetaOps that run side by side (section 3.3, Theorem 1): the least C with the sum
 * of n_m = hbp__curve_gpus(curve m, C / L_m) at most `gpus`, to the last bits of a double; n_m goes to
 * `share` [count], which may be NULL. When all run on their largest size and GPUs are left over, C is the
 * longest of them and the others get what ends with it. */
double hbp__relax(const hbp__curve *const *curves, const int32_t *operators, int32_t count, double gpus,
                  double *share);

/* C alone, at most a relative `tolerance` too large; from a guess in a few steps, 0: none. */
double hbp__relax_near(const hbp__curve *const *curves, const int32_t *operators, int32_t count, double gpus,
                       double guess, double tolerance);

#endif
