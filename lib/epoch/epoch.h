/* The pieces of the facade. */
#ifndef HBP_EPOCH_EPOCH_H
#define HBP_EPOCH_EPOCH_H

#include "base/context.h"
#include "data/lengths/lengths.h"
#include "data/packs/groups.h"
#include "data/packs/packs.h"
#include "hbp/epoch.h"
#include "hbp/step.h"

/* A call of hbp_plan_epoch with its options checked, the lengths limited and the groups chosen. */
typedef struct hbp__epoch {
    hbp_context *context;
    const hbp_lengths *lengths;
    const hbp_cost *cost;
    const hbp_groups *groups;
    hbp_epoch_options options;
    int32_t step_mode; /* HBP_STEP_*: how steps are planned one by one; not the default's are not bounded */
} hbp__epoch;

/* A hierarchy, its packs, and what an epoch over them takes. Without groups where they are given. */
typedef struct hbp__trial {
    hbp_groups *groups;
    hbp_packs *packs;
    int64_t ns;
} hbp__trial;

void hbp__trial_close(hbp__trial *trial);

/* The groups with the least time, with their packs; where groups are given their packs alone. Tried are those
 * of the estimate, and for data sets that are soon filled also the published rule's and the best of fewer
 * levels. */
hbp_status hbp__epoch_choose(const hbp__epoch *epoch, hbp__trial *best);

/* Up to so many samples, other hierarchies are filled as well and the best is kept: the choice of groups
 * rests on an estimate, the score on packs. */
#define HBP__TRY_SAMPLES (INT64_C(1) << 17)

/* Percent of tokens_per_step that a step may lack, unless the caller says otherwise. */
#define HBP__STEP_SLACK 25

/* Thousandths by which steps that are no hierarchy may take longer, unless the caller says otherwise. */
#define HBP__MIXTURE_SLACK 10

/* The options of the four moves, and of a step, that follow from the epoch's. */
void hbp__epoch_groups_options(const hbp_epoch_options *options, hbp_groups_options *groups);
void hbp__epoch_fill_options(const hbp_epoch_options *options, hbp_fill_options *fill);
/* hbp_greedy_fill of `lengths` with these options, and the padding of the epoch's, which may depend on the
 * degree of a pack. */
hbp_status hbp__epoch_fill(const hbp__epoch *epoch, const hbp_lengths *lengths, const hbp_groups *groups,
                           const hbp_fill_options *options, hbp_packs **out);
void hbp__epoch_balance_options(const hbp_epoch_options *options, hbp_balance_options *balance);
void hbp__epoch_step_options(const hbp_epoch_options *options, hbp_step_options *step);

/* Checks the options that the moves do not check themselves. */
hbp_status hbp__epoch_check(hbp_context *context, const hbp_epoch_options *options);

/* Refuses caps and memory that the longest sample, or group of linked samples, does not fit in, as the step
 * planner would the step that holds it: one message says what would do for all samples. */
hbp_status hbp__epoch_check_caps(const hbp__epoch *epoch);

/* Whether vision units count: the cost charges them, or max_vision limits them. */
int hbp__epoch_counts_vision(const hbp__epoch *epoch);

/* Refuses vision units that the cost charges, for ways of planning that count none. `way` begins the message.
 */
hbp_status hbp__epoch_check_vision(const hbp__epoch *epoch, const char *way);

/* The lengths under max_length: a limited data set of the caller's, or NULL in *limited when there is nothing
 * to limit. */
hbp_status hbp__epoch_limit(hbp_context *context, const hbp_lengths *lengths,
                            const hbp_epoch_options *options, hbp_lengths **limited);

/* Steps whose samples are drawn, dealt or given before they are planned. */
hbp_status hbp__epoch_plan_batches(hbp__epoch *epoch, hbp_plan **out);

/* Refuses what no way of planning has where vision units count. */
hbp_status hbp__epoch_check_vision_options(const hbp__epoch *epoch);

/* Plans where vision units count and a step holds tokens_per_step tokens, or as many as suit it: the packs
 * and micro-batches of one group (docs: vision), or steps planned one by one, whichever are faster. */
hbp_status hbp__epoch_vision(const hbp__epoch *epoch, hbp_plan **out);

/* Whether steps may hold packs of several groups: not in mode paper, in composition hierarchy or under an
 * order of modalities. */
int hbp__epoch_mixes(const hbp__epoch *epoch);

/* Says that no plan keeps to the tokens of a step; `least` is the largest step of the one that was nearest,
 * INT64_MAX where there was none. */
hbp_status hbp__epoch_refuse_tokens(const hbp__epoch *epoch, int64_t tokens_per_step, int64_t least);

/* Weighs the hierarchy against steps that are small copies of the epoch, and keeps what the composition asks
 * for: groups and packs are chosen here. */
hbp_status hbp__epoch_weigh(const hbp__epoch *epoch, hbp_plan **out);

/* The same for a window of the epoch: `lengths`, given groups, and the packs that the hierarchy would run.
 * `room` is hbp__epoch_mend's. */
hbp_status hbp__epoch_mix(const hbp__epoch *epoch, const hbp_lengths *lengths, const hbp_groups *groups,
                          const hbp_packs *packs, const hbp_fill_options *fill,
                          const hbp_balance_options *balance, int64_t *room, hbp_plan **out);

/* The pieces of the lengths that the rows of the plan's samples are, in *piece [plan->samples], in scratch:
 * pieces have other numbers than samples where a limit drops or splits some. O(samples log pieces).
 */
hbp_status hbp__epoch_pieces(const hbp__epoch *epoch, const hbp_plan *plan, uint32_t **piece);

/* So many samples of an epoch may be planned anew for the sake of idle ranks: larger plans have few such
 * steps for their size. */
#define HBP__MEND_SAMPLES (INT64_C(1) << 18)

/* Plans the steps of *plan in which a rank is idle anew, each with its own samples, where that leaves fewer
 * idle and takes at most a hundredth longer; *plan becomes another one then. Steps that hold more samples
 * than are left of *room stay, which the others are taken from. Given groups and an order of modalities have
 * hbp__epoch_share instead. */
hbp_status hbp__epoch_mend(const hbp__epoch *epoch, int64_t *room, hbp_plan **plan);

/* Gives dummies samples of fuller packs of their step, where that takes at most a hundredth longer: the
 * places with their degrees, recomputation and capacities stay, and the kinds of samples in a micro-batch.
 * O(samples of the plan), and dummies times samples of their steps. */
hbp_status hbp__epoch_share(const hbp__epoch *epoch, hbp_plan *plan);

/* The bound for a plan of every sample in steps of at most `tokens_per_step` tokens (0: any), `steps` of them
 * at least; 0 where there is none. */
hbp_status hbp__epoch_bound(const hbp__epoch *epoch, int64_t tokens_per_step, int64_t steps,
                            int64_t *bound_ns);

/* Raises that bound where steps of at most `tokens_per_step` tokens wait for the longest samples. */
hbp_status hbp__epoch_bound_long(const hbp__epoch *epoch, int64_t tokens_per_step, int64_t *bound_ns);

/* Gives `plan` that bound, or a sharper one of few samples, where it holds all samples in steps that keep to
 * the tokens. */
hbp_status hbp__epoch_set_bound(const hbp__epoch *epoch, int64_t tokens_per_step, int64_t bound_ns,
                                hbp_plan *plan);

/* Where `plan` holds all samples, gives it the bound for as many steps as it has; that for whatever steps. */
hbp_status hbp__epoch_set_bound_of_steps(const hbp__epoch *epoch, hbp_plan *plan);
hbp_status hbp__epoch_set_free_bound(const hbp__epoch *epoch, hbp_plan *plan);

/* Whether steps may be planned one by one: the step planner knows no groups, windows, left-overs or order of
 * modalities. */
int hbp__epoch_may_plan_steps(const hbp__epoch *epoch);

/* Planning that takes less is not held against what it saves: estimating that costs as much. */
#define HBP__FREE_NS INT64_C(1000000000)

/* About what planning all samples step by step takes, in ns; the same on every machine. */
int64_t hbp__epoch_planning_ns(const hbp__epoch *epoch, int64_t tokens_per_step);

/* The most tokens of a step: as asked for or, where nothing is, as the groups would have them, so many for
 * each of micro_batches_per_step, or so often that every group has micro_batch_multiple. */
hbp_status hbp__epoch_choose_tokens(const hbp__epoch *epoch, int64_t *tokens);

/* The longest sample of a curriculum: the threshold of the first group. */
hbp_status hbp__epoch_shortest(const hbp__epoch *epoch, int64_t *tokens);

/* A measure of what samples cost: rank-time at degree 1 without what packs pay once, in ns. */
double hbp__epoch_work(const hbp__epoch *epoch, double tokens, double squares, double vision);

/* Joins plans of parts of `lengths` end to end: steps keep their order, dropped samples add up, fields that
 * all parts share are the first one's. Not sealed yet. O(samples). */
hbp_status hbp__plan_join(hbp_context *context, hbp_plan *const *parts, int64_t count,
                          const hbp_lengths *lengths, hbp_plan **out);

/* Sets what the parts of a joined plan do not know, made as they were for parts of the data, and seals it. */
hbp_status hbp__epoch_seal(const hbp__epoch *epoch, hbp_plan **plan);

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

/* What steps planned one by one may replace. */
typedef struct hbp__stratify {
    const hbp__epoch *epoch;
    const hbp_groups *groups; /* of the best plan so far; NULL: there is none */
    const hbp_fill_options *fill;
    const hbp_balance_options *balance; /* checked */
    int64_t tokens_per_step;
    int64_t micro_batches; /* of the best plan so far; 0: none */
    int64_t most_ns;       /* the most that the plan may take */
    int64_t saves_from_ns; /* a plan must save more of this than planning it takes; 0: it need not */
    int64_t *guess_ns; /* gets the least that a way of planning all samples is estimated to take; NULL: not
                          asked for */
} hbp__stratify;

/* A plan whose steps are planned one by one, all of them or, where mixture_slack is given, all but those of
 * the longest samples; NULL where none takes at most most_ns. */
hbp_status hbp__epoch_stratify(const hbp__stratify *s, hbp_plan **plan);

#endif
