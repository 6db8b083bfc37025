/* Steps planned one by one, in the place of a layout of packs: all of them, or all but those of the longest
 * samples.
 */
#ifndef HBP_EPOCH_STRATIFY_H
#define HBP_EPOCH_STRATIFY_H

#include "epoch/epoch.h"

/* What steps planned one by one may replace. */
typedef struct hbp__stratify {
    const hbp__epoch *epoch;
    const hbp_groups *groups; /* of the best plan so far; NULL: there is none */
    const hbp_fill_options *fill;
    const hbp_balance_options *balance; /* checked */
    int64_t tokens_per_step;
    int64_t micro_batches; /* of the best plan so far; 0: none */
    int64_t bound_ns;      /* no plan takes less; 0: not known */
    int64_t most_ns;       /* the most that the plan may take */
    int64_t saves_from_ns; /* a plan must save more of this than planning it takes; 0: it need not */
    int64_t *guess_ns; /* gets the least that a way of planning all samples is estimated to take; NULL: not
                          asked for */
} hbp__stratify;

/* Whether what takes `ns` is more than so many thousandths over the bound, if that is known. */
static inline int hbp__stratify_is_far_off(const hbp__stratify *s, int64_t ns, int64_t thousandths)
{
    return s->bound_ns && ns - s->bound_ns > s->bound_ns / 1000 * thousandths;
}

/* A plan whose steps are planned one by one, all of them or, where mixture_slack is given, all but those of
 * the longest samples; NULL where none takes at most most_ns. */
hbp_status hbp__epoch_stratify(const hbp__stratify *s, hbp_plan **plan);

/* An epoch in two parts; both NULL when one of them has no sample, or there is no group left to part. */
typedef struct hbp__parted {
    hbp_plan *longs;
    hbp_lengths *rest;
} hbp__parted;

/* Plans the samples longer than `longest`, with shorter ones that fill their packs, as the hierarchy's groups
 * would; the rest is what they leave. Close when done. */
hbp_status hbp__parted_open(const hbp__epoch *epoch, const hbp_groups *groups, const hbp_fill_options *fill,
                            const hbp_balance_options *balance, int64_t longest, hbp__parted *parted);
void hbp__parted_close(hbp__parted *parted);

/* One plan of both parts, `rest` being the second's: the steps of those are spread evenly over the others. */
hbp_status hbp__parted_join(const hbp__epoch *epoch, const hbp__parted *parted, const hbp_plan *rest,
                            hbp_plan **out);

#endif
