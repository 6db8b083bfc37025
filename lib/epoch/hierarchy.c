#include "epoch/hierarchy.h"

#include "base/checked.h"
#include "base/methods.h"
#include "data/plan/plan.h"
#include "epoch/choose.h"
#include "schedule/balance.h"
#include "schedule/modalities.h"

hbp_status hbp__epoch_record_tokens(const hbp__epoch *epoch, const hbp_groups *groups, hbp_plan *plan)
{
    int is_promise = hbp__epoch_method(epoch->options.method) == HBP__EPOCH_SEARCH || epoch->options.groups;
    int64_t asked = is_promise ? epoch->options.tokens_per_step : 0, most = 0;
    for (int64_t i = 0; i < plan->steps; i++)
        most = hbp__max_i64(most, plan->step_tokens[i]);
    plan->tokens_per_step = asked ? asked : hbp__max_i64(groups->tokens_per_step, most);
    return asked && most > asked ? hbp__epoch_refuse_tokens(epoch, asked, most) : HBP_OK;
}

hbp_status hbp__epoch_plan_hierarchy(const hbp__epoch *epoch, hbp_plan **out)
{
    hbp__trial best = {NULL, NULL, 0};
    hbp_status status = hbp__epoch_choose(epoch, &best);
    hbp_balance_options balance;
    hbp__epoch_balance_options(epoch, &balance);
    const hbp_groups *groups = epoch->groups ? epoch->groups : best.groups;
    if (status >= 0 && balance.modality_order)
        status = hbp__packs_even_modalities(epoch->context, groups, balance.seed, balance.epoch, best.packs);
    if (status >= 0)
        status = hbp__balance(epoch->context, best.packs, groups, epoch->cost, &balance, 0, out);
    if (status >= 0) {
        (*out)->composition = HBP_COMPOSITION_HIERARCHY;
        status = hbp__epoch_record_tokens(epoch, groups, *out);
    }
    hbp__trial_close(&best);
    return status;
}
