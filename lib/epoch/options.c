#include "base/options.h"
#include "cost/cost.h"
#include "epoch/epoch.h"

void hbp_epoch_options_init(hbp_epoch_options *options, uint32_t struct_size)
{
    hbp__struct_init(options, struct_size);
}

void hbp__epoch_groups_options(const hbp_epoch_options *options, hbp_groups_options *groups)
{
    hbp_groups_options_init(groups, sizeof *groups);
    groups->mode = options->mode == HBP_EPOCH_PAPER ? HBP_GROUPS_PAPER : HBP_GROUPS_OPTIMAL;
    groups->max_groups = options->max_groups;
    groups->tokens_per_step = options->tokens_per_step;
    groups->max_length = options->max_length;
    groups->pack_multiple = options->pack_multiple;
    groups->sequence_multiple = options->sequence_multiple;
}

void hbp__epoch_fill_options(const hbp_epoch_options *options, hbp_fill_options *fill)
{
    hbp_fill_options_init(fill, sizeof *fill);
    fill->mode = options->mode == HBP_EPOCH_PAPER ? HBP_FILL_PAPER : HBP_FILL_BALANCED;
    fill->effort = options->effort;
    fill->max_samples = options->max_samples;
    fill->sequence_multiple = options->sequence_multiple;
    fill->pack_multiple = options->pack_multiple;
    fill->seed = options->seed;
    fill->epoch = options->epoch;
}

void hbp__epoch_balance_options(const hbp_epoch_options *options, hbp_balance_options *balance)
{
    hbp_balance_options_init(balance, sizeof *balance);
    balance->mode = options->mode == HBP_EPOCH_PAPER ? HBP_BALANCE_SORTED : HBP_BALANCE_TIME;
    balance->micro_batch_multiple = options->micro_batch_multiple;
    balance->drop_last = options->drop_last;
    balance->curriculum_steps = options->curriculum_steps;
    balance->modality_order = options->modality_order;
    balance->seed = options->seed;
    balance->epoch = options->epoch;
}

hbp_status hbp__epoch_check(hbp_context *context, const hbp_epoch_options *options)
{
    if (options->mode < HBP_EPOCH_DEFAULT || options->mode > HBP_EPOCH_MIXED)
        return hbp__fail(context, HBP_E_INVALID, "epoch: mode %d is not one of HBP_EPOCH_*",
                         (int)options->mode);
    if (options->max_length < 0)
        return hbp__fail(context, HBP_E_INVALID, "epoch: max_length is %lld; it must be 0 or more",
                         (long long)options->max_length);
    if (options->mixed_slack < 0 || options->mixed_slack > 1000)
        return hbp__fail(context, HBP_E_INVALID, "epoch: mixed_slack is %d; it must be in 0..1000",
                         (int)options->mixed_slack);
    if (options->max_vision < 0 || options->max_vision > HBP_MAX_VISION)
        return hbp__fail(context, HBP_E_INVALID, "epoch: max_vision is %lld; it must be in 0..%d",
                         (long long)options->max_vision, (int)HBP_MAX_VISION);
    if (options->modality_order && options->mode == HBP_EPOCH_MIXED)
        return hbp__fail(context, HBP_E_INVALID,
                         "epoch: modality_order is for modes default and paper; mode mixed does not keep it");
    if (options->samples_per_step < 0 || options->window_samples < 0)
        return hbp__fail(
            context, HBP_E_INVALID, "epoch: %s is %lld; it must be 0 or more",
            options->samples_per_step < 0 ? "samples_per_step" : "window_samples",
            (long long)(options->samples_per_step < 0 ? options->samples_per_step : options->window_samples));
    if (options->samples_per_step && options->window_samples)
        return hbp__fail(context, HBP_E_INVALID,
                         "epoch: samples_per_step %lld and window_samples %lld exclude each other",
                         (long long)options->samples_per_step, (long long)options->window_samples);
    return HBP_OK;
}

hbp_status hbp__epoch_check_vision(const hbp__epoch *epoch, const char *way)
{
    if (epoch->lengths->vision_sum == 0 || !hbp__cost_charges_vision(epoch->cost))
        return HBP_OK;
    return hbp__fail(epoch->context, HBP_E_INVALID,
                     "%s: the cost charges vision units and the lengths have %lld; set max_vision, the most "
                     "that a pack may hold (hbp_choose_budgets finds one), in hbp_plan_epoch",
                     way, (long long)epoch->lengths->vision_sum);
}

hbp_status hbp__epoch_limit(hbp_context *context, const hbp_lengths *lengths,
                            const hbp_epoch_options *options, hbp_lengths **limited)
{
    *limited = NULL;
    if (!options->max_length || lengths->bin_length[lengths->bins - 1] <= options->max_length)
        return HBP_OK;
    return hbp_lengths_limit(context, lengths, options->max_length, options->over_long, limited);
}
