/* Which samples each step holds: the trainer's batch as a contract (docs: contract). */
#ifndef HBP_EPOCH_BATCHES_H
#define HBP_EPOCH_BATCHES_H

#include <stdint.h>

#include "epoch/epoch.h"

/* How steps are planned: searched for, built where that may be, or both, the faster being kept. */
enum { HBP__BATCHES_SEARCHED, HBP__BATCHES_BUILT, HBP__BATCHES_BOTH };

typedef struct hbp__batches {
    hbp__memory memory;
    int32_t how; /* HBP__BATCHES_* */
    int bounds;  /* whether the steps that are searched get their bounds */
    int64_t steps;
    int64_t *first; /* [steps + 1] into sample */
    uint32_t
        *sample; /* [count of the lengths] pieces, step by step; those behind first[steps] are left over */
} hbp__batches;

/* The steps of a shuffled sampler: samples in an order drawn from (seed, epoch), cut at samples_per_step or
 * at tokens_per_step. Linked samples stay together: a step then takes the next of the order that leave it a
 * chance to hold samples_per_step exactly, and never more. The first curriculum_steps steps draw from samples
 * of at most `shortest` tokens, while there are any. With drop_last a last step of fewer samples is left
 * over, or of fewer tokens than step_slack allows. HBP_E_INVALID for linked samples of which there are more
 * than samples_per_step, or that have more tokens than tokens_per_step. O(samples). Close in any case, as
 * after the next four. */
hbp_status hbp__batches_draw(const hbp__epoch *epoch, int64_t shortest, hbp__batches *batches);

/* Steps of at most tokens_per_step whose samples are of like length, in a drawn order, so that few steps wait
 * for long samples: all those with a sample of more than `longer_than` tokens; what such a step has room for
 * beside them is shorter. Other samples are left over. The curriculum's steps come before, and with drop_last
 * that of the shortest samples is left over, as hbp__batches_draw has them. HBP_E_INVALID as there. O(samples
 * log samples). */
hbp_status hbp__batches_sort(const hbp__epoch *epoch, int64_t shortest, int64_t longer_than,
                             hbp__batches *batches);

/* Steps that are each a small copy of the epoch: `steps` of them, or with `steps` 0 of samples_per_step each
 * (linked samples may make it a few more or fewer); what does not fill a last one is drawn at random. The
 * curriculum's come before. O(samples log steps). */
hbp_status hbp__batches_deal(const hbp__epoch *epoch, int64_t steps, int64_t shortest, hbp__batches *batches);

/* The caller's batches. HBP_E_INVALID names an offset that falls, a sample that is none, that is there twice
 * or not at all, an empty batch, and linked samples in two of them. O(samples). */
hbp_status hbp__batches_give(const hbp__epoch *epoch, hbp__batches *batches);

/* Windows of window_samples samples in the order of the input; linked samples share the window of the first
 * of them, so that it may hold a few more. O(samples). */
hbp_status hbp__batches_cut(const hbp__epoch *epoch, hbp__batches *batches);

/* Room for up to `most_steps` steps; none yet. */
hbp_status hbp__batches_open(const hbp__epoch *epoch, int64_t most_steps, hbp__batches *batches);

void hbp__batches_close(hbp__batches *batches);

/* Tokens of a step. */
int64_t hbp__batches_tokens(const hbp__batches *batches, const hbp_lengths *lengths, int64_t step);

/* Most tokens of any step. O(samples). */
hbp_status hbp__batches_most_tokens(hbp_context *context, const hbp__batches *batches,
                                    const hbp_lengths *lengths, int64_t *most);

/* Plans one step with the options of the epoch, by hbp_plan_step or as the batches say; one that is built has
 * no bound. `context` may be another thread's. */
hbp_status hbp__batches_plan_step(const hbp__epoch *epoch, hbp_context *context, const hbp__batches *batches,
                                  int64_t step, hbp_plan **out);

/* Whether a step may be built: by the search's parts, under options that those alone keep to. */
int hbp__batches_may_build(const hbp__epoch *epoch);

/* The same by building alone, where that may be: about a tenth of the time, and seldom more than a part in a
 * thousand longer; without a bound. *out stays NULL where it does not come out, and of steps of very many
 * micro-batches. */
hbp_status hbp__batches_build_step(const hbp__epoch *epoch, hbp_context *context, const hbp__batches *batches,
                                   int64_t step, hbp_plan **out);

/* About how long all steps take when they are planned so, from `sample` of them, chosen by their longest
 * samples: steps differ in work, and wait for long samples. Of few steps that of the longest one counts by
 * itself; `sample` 0 is one step without it. O(samples) beside planning those. */
hbp_status hbp__batches_estimate(const hbp__epoch *epoch, const hbp__batches *batches, int64_t sample,
                                 int64_t *ns);

/* The samples of a batch, as lengths of their own. */
hbp_status hbp__batches_subset(const hbp__epoch *epoch, hbp_context *context, const hbp__batches *batches,
                               int64_t step, hbp_lengths **out);

/* Plans every batch as a step, on as many threads as the options say, and joins the plans. */
hbp_status hbp__batches_plan(const hbp__epoch *epoch, const hbp__batches *batches, hbp_plan **out);

/* The same by the groups of the epoch, a batch being a window of several steps or one step. */
hbp_status hbp__batches_plan_by_groups(const hbp__epoch *epoch, const hbp__batches *batches, int one_step,
                                       hbp_plan **out);

/* Joins the plans of all batches, part [steps + 1], and what drop_last left over, which becomes the last. */
hbp_status hbp__batches_join(const hbp__epoch *epoch, const hbp__batches *batches, hbp_plan **part,
                             hbp_plan **out);

/* The batches that the contract draws, deals or gives, and what steps of them are. Where it says nothing of
 * what a step holds, tokens_per_step is chosen. Close in any case. */
hbp_status hbp__batches_of_contract(hbp__epoch *epoch, int32_t *composition, hbp__batches *batches);

/* Records in a plan of such batches what they are. */
void hbp__batches_record(const hbp__epoch *epoch, int32_t composition, hbp_plan *plan);

/* Plans the batches of the contract one by one. */
hbp_status hbp__epoch_plan_batches(hbp__epoch *epoch, hbp_plan **out);

/* The same with a shuffled sampler's steps of tokens_per_step, which were not asked for. */
hbp_status hbp__epoch_plan_drawn(const hbp__epoch *epoch, int64_t tokens_per_step, hbp_plan **out);

/* A measure of what samples cost: rank-time at degree 1 without what packs pay once, in ns. */
double hbp__epoch_work(const hbp__epoch *epoch, double tokens, double squares, double vision);

#endif
