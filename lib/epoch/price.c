#include "epoch/price.h"
#include "base/checked.h"
#include "epoch/batches.h"
#include "epoch/tuning.h"
#include "step/step.h"
#include "step/tuning.h"

/* The price of searching for `steps` steps of `samples` samples in all. */
static double price_of(double steps, double samples)
{
    double each = samples / steps;
    return steps *
           (HBP__STEPS_PRICE_STEP + HBP__STEPS_PRICE_SAMPLE * each + HBP__STEPS_PRICE_SHARED / (each + 16));
}

int64_t hbp__price_of_search(const hbp__epoch *epoch, int64_t tokens_per_step)
{
    double steps = (double)hbp__ceil_div(epoch->lengths->tokens, tokens_per_step);
    return hbp__round_i64(price_of(steps, (double)epoch->lengths->count));
}

int hbp__price_is_dear(const hbp__epoch *epoch, int64_t tokens_per_step)
{
    return hbp__batches_may_build(epoch) &&
           hbp__price_of_search(epoch, tokens_per_step) > HBP__STEPS_SEARCHED_NS;
}

int64_t hbp__price_of_steps(const hbp__epoch *epoch, int64_t tokens_per_step)
{
    int64_t price = hbp__price_of_search(epoch, tokens_per_step);
    return hbp__price_is_dear(epoch, tokens_per_step) ? price / HBP__STEPS_BUILT : price;
}

/* Work of all rounds of an effort, over that of the first. */
static double rounds_of(int32_t effort)
{
    double rounds = 1, round = 1;
    for (int32_t i = 1; i < effort; i++)
        rounds += round *= HBP__STEP_WORK_FACTOR;
    return rounds;
}

int32_t hbp__price_choose(hbp__epoch *epoch, int64_t steps, int64_t samples, int64_t ns)
{
    const int32_t asked = epoch->options.effort;
    int32_t effort = asked > 1 ? asked : 1;
    if (!hbp__batches_may_build(epoch) || !steps)
        return HBP__BATCHES_SEARCHED;
    /* The most effort, up to the one asked for, at which searching takes no more than that many rounds may.
     */
    double price = price_of((double)steps, (double)samples);
    const double most = (double)HBP__STEPS_SEARCHED_NS * rounds_of(effort);
    if (hbp__step_may_go_on(samples / steps, (double)ns / (double)steps))
        price *= HBP__STEPS_PRICE_GOING_ON;
    while (effort > 0 && price * rounds_of(effort) > most)
        effort--;
    epoch->options.effort = effort > 1 ? effort : 1;
    if (!effort)
        return HBP__BATCHES_BUILT;
    return asked > 1 ? HBP__BATCHES_BOTH : HBP__BATCHES_SEARCHED;
}
