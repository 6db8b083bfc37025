/* The best value of one setting: values are tried, then finer ones around the best. */
#ifndef HBP_EXAMPLES_SWEEP_H
#define HBP_EXAMPLES_SWEEP_H

#include <hbp/hbp.h>

enum { SWEEP_MOST = 512 };

typedef struct sweep {
    /* *ns gets the time with the setting at `value`. HBP_E_INFEASIBLE where there is no plan. */
    hbp_status (*measure)(void *user, int64_t value, int64_t *ns);
    void *user;
    int count;
    int64_t value[SWEEP_MOST]; /* [count] ascending */
    int64_t ns[SWEEP_MOST];    /* INT64_MAX: no plan */
    int refined[SWEEP_MOST];
} sweep;

/* Measures a value that was not tried before. Fails only where that fails other than infeasibly, as the next
 * two do. */
hbp_status sweep_try(sweep *s, int64_t value);

/* Tries `least`, `most` and between them the powers of two, with `per_octave` - 1 values between each two. */
hbp_status sweep_octaves(sweep *s, int64_t least, int64_t most, int per_octave);

/* So many times, tries values on both sides of the best one that was not refined yet, up to its neighbours.
 */
hbp_status sweep_refine(sweep *s, int times);

/* The index of the fastest value, of equals the least; -1: none has a plan. */
int sweep_best(const sweep *s);

#endif
