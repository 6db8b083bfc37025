/* Micro-batches that mix SP degrees, and steps that are each a small copy of the epoch. */
#ifndef HBP_SCHEDULE_MIX_H
#define HBP_SCHEDULE_MIX_H

#include "base/rng.h"
#include "schedule/microbatch.h"

/* Whether packs of all the groups can share micro-batches: each degree divides the next larger one, so that
 * larger packs first leave no gap between ranks. */
int hbp__mix_is_possible(const hbp_groups *groups);

/* Predicted time of each pack into ns [packs->count]. O(packs). */
hbp_status hbp__mix_times(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                          const hbp_cost *cost, int64_t *ns);

/* Cuts packs of all groups into micro-batches of alike times, whatever their degrees; `pure` holds each
 * group's packs from the slowest, as hbp__micro_batches_open makes them. The slowest pack left opens a
 * micro-batch, and the slowest that still fit fill it; padding packs of the least degree complete the last
 * ones. First fit by descending time is exact for sizes that divide each other: no other cut of these packs
 * has a smaller sum of slowest packs, up to the time classes of `pure` (docs: mixed). Each micro-batch has
 * its packs in descending degree; `group` is that of its padding packs. O(packs x groups). Close in any case.
 */
hbp_status hbp__mix_open(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                         const int64_t *ns, const hbp__micro_batches *pure, hbp__micro_batches *batches);

/* Steps of micro-batches of any modalities: as few as hold at most `tokens_per_step` tokens each (a single
 * unit of micro_batch_multiple micro-batches may hold more), each dealt its share of every stratum of
 * lengths: as many units as any other but for one, and two steps that fit one are put together. The first
 * `curriculum_steps` hold packs of the shortest group alone, while it lasts; the rest come in an order in
 * which every prefix is a mixture too. `drop_last` drops what would leave steps unequal. O(micro-batches log
 * micro-batches + packs). Close in any case. */
hbp_status hbp__mix_steps_open(hbp_context *context, const hbp_packs *packs,
                               const hbp__micro_batches *batches, int64_t tokens_per_step,
                               const hbp_balance_options *options, int one_step, hbp__steps *steps);

/* A way to run given packs. */
typedef struct hbp__layout {
    hbp__micro_batches batches;
    hbp__steps steps;
    int64_t ns;        /* predicted; saturates */
    int64_t tokens;    /* of the packs that the steps take */
    int64_t before_ns; /* of all micro-batches, those that drop_last drops included */
} hbp__layout;

void hbp__layout_close(hbp__layout *layout);

/* The hierarchy's way: micro-batches and steps of one group each. Close in any case. */
hbp_status hbp__layout_open_pure(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                                 const hbp_cost *cost, const hbp_balance_options *options, int one_step,
                                 hbp__layout *layout);

/* The mixed way: of the mixed cut and the cut into groups the faster, in mixed steps. Close in any case. */
hbp_status hbp__layout_open_mixed(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                                  const hbp_cost *cost, const hbp_balance_options *options, int one_step,
                                  hbp__layout *layout);

/* Whether `a` takes less time than `b`; where drop_last left them different tokens, before that: dropping the
 * slowest is no merit. */
int hbp__layout_is_faster(const hbp__layout *a, const hbp__layout *b);

#endif
