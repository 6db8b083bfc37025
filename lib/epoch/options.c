/* Options of an epoch: checked together, and handed on to the pieces that each governs. */
#include <string.h>

#include "base/checked.h"
#include "base/methods.h"
#include "base/options.h"
#include "base/quantity.h"
#include "cost/cost.h"
#include "data/lengths/lengths_make.h"
#include "data/lengths/lengths_subset.h"
#include "data/packs/padding.h"
#include "epoch/epoch.h"

static int is_published(const hbp_epoch_options *options)
{
    return hbp__epoch_method(options->method) == HBP__EPOCH_HBP;
}

void hbp__epoch_groups_options(const hbp_epoch_options *options, hbp_groups_options *groups)
{
    *groups = (hbp_groups_options){.struct_size = sizeof *groups};
    groups->method = hbp__groups_name(is_published(options) ? HBP__GROUPS_HBP : HBP__GROUPS_OPTIMAL);
    groups->max_groups = options->max_groups;
    groups->tokens_per_step = options->tokens_per_step;
    groups->max_length = options->max_length;
    groups->pack_multiple =
        hbp__max_i64(1, options->pack_multiple) * hbp__max_i64(1, options->pack_multiple_per_sp);
    groups->sequence_multiple =
        hbp__max_i64(1, options->sequence_multiple) * hbp__max_i64(1, options->sequence_multiple_per_sp);
    groups->step_slack = options->step_slack;
    groups->max_pack_length = options->max_pack_length;
    groups->tokens_per_rank = options->tokens_per_rank;
}

void hbp__epoch_widest_options(const hbp__epoch *epoch, hbp_groups_options *groups)
{
    const hbp_epoch_options *o = &epoch->options;
    int32_t widest = epoch->cost->degree[epoch->cost->terms.degrees - 1];
    hbp__epoch_groups_options(o, groups);
    groups->sequence_multiple =
        hbp__padding_multiple(hbp__max_i64(1, o->sequence_multiple), o->sequence_multiple_per_sp, widest);
    groups->pack_multiple =
        hbp__padding_multiple(hbp__max_i64(1, o->pack_multiple), o->pack_multiple_per_sp, widest);
}

void hbp__epoch_fill_options(const hbp_epoch_options *options, hbp_fill_options *fill)
{
    *fill = (hbp_fill_options){.struct_size = sizeof *fill};
    fill->method = hbp__fill_name(is_published(options) ? HBP__FILL_HBP : HBP__FILL_BALANCED);
    fill->effort = options->effort;
    fill->max_samples = options->max_samples;
    fill->sequence_multiple = options->sequence_multiple;
    fill->pack_multiple = options->pack_multiple;
    fill->seed = options->seed;
    fill->epoch = options->epoch;
}

void hbp__epoch_balance_options(const hbp__epoch *epoch, hbp_balance_options *balance)
{
    const hbp_epoch_options *options = &epoch->options;
    *balance = (hbp_balance_options){.struct_size = sizeof *balance};
    balance->method = hbp__balance_name(is_published(options) ? HBP__BALANCE_SORTED
                                        : options->max_vision ? HBP__BALANCE_VISION
                                                              : HBP__BALANCE_TIME);
    balance->micro_batch_multiple = options->micro_batch_multiple;
    balance->drop_last = options->drop_last;
    balance->curriculum_steps = options->curriculum_steps;
    balance->tokens_per_step = is_published(options) ? 0 : options->tokens_per_step;
    balance->modality_order = options->modality_order;
    balance->seed = options->seed;
    balance->epoch = options->epoch;
}

void hbp__epoch_step_options(const hbp_epoch_options *options, hbp_step_options *step)
{
    *step = (hbp_step_options){.struct_size = sizeof *step};
    step->any_degree = 1;
    step->effort = options->effort;
    step->micro_batch_multiple = options->micro_batch_multiple;
    step->min_micro_batches = step->max_micro_batches = options->micro_batches_per_step;
    step->sequence_multiple = options->sequence_multiple;
    step->pack_multiple = options->pack_multiple;
    step->sequence_multiple_per_sp = options->sequence_multiple_per_sp;
    step->pack_multiple_per_sp = options->pack_multiple_per_sp;
    step->max_pack_length = options->max_pack_length;
    step->tokens_per_rank = options->tokens_per_rank;
    step->max_samples = options->max_samples;
    step->equal_samples = options->equal_samples;
    step->sequence_tokens_per_rank = options->sequence_tokens_per_rank;
    step->max_vision = options->max_vision;
}

/* One contract: what a step holds is asked for in one form. */
static hbp_status check_contract(hbp_context *context, const hbp_epoch_options *o)
{
    const struct {
        const char *name;
        int64_t value;
    } contracts[] = {{"samples_per_step", o->samples_per_step},
                     {"batches", o->batches},
                     {"tokens_per_step", o->tokens_per_step},
                     {"window_samples", o->window_samples}};
    const int count = sizeof contracts / sizeof *contracts;
    for (int i = 0; i < 2; i++)
        for (int k = i + 1; k < count; k++)
            if (contracts[i].value && contracts[k].value)
                return hbp__fail(
                    context, HBP_E_INVALID,
                    "%s and %s are both given; what a step holds is asked for in one form, so leave "
                    "one of them out",
                    contracts[i].name, contracts[k].name);
    const char *given = o->batches ? "batches" : o->samples_per_step ? "samples_per_step" : "window_samples";
    if (o->composition == HBP_COMPOSITION_HIERARCHY && (o->batches || o->samples_per_step))
        return hbp__fail(context, HBP_E_INVALID,
                         "composition hierarchy and %s exclude each other: a group says what its steps "
                         "hold; give tokens_per_step",
                         given);
    if (o->composition != HBP_COMPOSITION_AUTO && o->batches)
        return hbp__fail(context, HBP_E_INVALID,
                         "composition %s and batches exclude each other: batches say what each step holds",
                         hbp_composition_name(o->composition));
    if (o->composition == HBP_COMPOSITION_RANDOM && o->window_samples)
        return hbp__fail(context, HBP_E_INVALID,
                         "composition random and window_samples %lld exclude each other",
                         (long long)o->window_samples);
    if (o->batches && (o->curriculum_steps || o->drop_last))
        return hbp__fail(context, HBP_E_INVALID, "%s has no meaning where batches are given",
                         o->curriculum_steps ? "curriculum_steps" : "drop_last");
    return HBP_OK;
}

/* What the methods plan by: the search, the published groups, packs of one group, patterns, or each step for
 * itself, by one of Megatron's two or its hybrid one. */
enum { SEARCH = 1, PUBLISHED = 2, ONE_GROUP = 4, STEPS = 8, MEGATRON = 16, HYBRID = 32, PATTERNS = 64 };

static int32_t kind_of(int32_t method)
{
    switch (method) {
    case HBP__EPOCH_SEARCH:
        return SEARCH;
    case HBP__EPOCH_HBP:
        return PUBLISHED;
    case HBP__EPOCH_FLEXSP:
        return STEPS;
    case HBP__EPOCH_DYNAMIC_CP:
        return STEPS | MEGATRON;
    case HBP__EPOCH_PATTERNS:
        return PATTERNS;
    case HBP__EPOCH_HYBRID_CP:
        return STEPS | MEGATRON | HYBRID;
    default:
        return ONE_GROUP;
    }
}

/* Refuses an option that says what a plan holds to a method that does not keep it. */
static hbp_status check_method(hbp_context *context, const hbp_epoch_options *o)
{
    static const char by_step[] = "search, hbp, flexsp, hybrid-cp and dynamic-cp",
                      by_group[] = "search, hbp, patterns and those whose packs are of one length",
                      stratified[] = "search, hbp, flexsp, hybrid-cp, dynamic-cp and patterns",
                      by_list[] = "all but patterns";
    const struct {
        const char *asked;
        int is_asked;
        int32_t kept_by;
        const char *keepers;
    } options[] = {
        {"`batches` is", o->batches > 0, SEARCH | PUBLISHED | STEPS, by_step},
        {"`curriculum_steps` is", o->curriculum_steps > 0, SEARCH | PUBLISHED | STEPS, by_step},
        {"composition random is", o->composition == HBP_COMPOSITION_RANDOM, SEARCH | PUBLISHED | STEPS,
         by_step},
        {"composition stratified is", o->composition == HBP_COMPOSITION_STRATIFIED,
         SEARCH | PUBLISHED | STEPS | PATTERNS, stratified},
        {"composition hierarchy is", o->composition == HBP_COMPOSITION_HIERARCHY, SEARCH | PUBLISHED,
         "search and hbp"},
        {"`window_samples` is", o->window_samples > 0, SEARCH | PUBLISHED, "search and hbp"},
        {"`groups` is", o->groups != NULL, SEARCH | PUBLISHED | ONE_GROUP | PATTERNS, by_group},
        {"`modality_order` is", o->modality_order != 0, SEARCH | PUBLISHED | ONE_GROUP,
         "search, hbp and those whose packs are of one length"},
        {"`samples_per_step` is", o->samples_per_step > 0, ~PATTERNS, by_list},
        {"`drop_last` is", o->drop_last != 0, ~PATTERNS, by_list},
        {"`max_vision` is", o->max_vision > 0, SEARCH, "search"},
        {"`micro_batches_per_step` is", o->micro_batches_per_step > 0, SEARCH | STEPS,
         "search, flexsp, hybrid-cp and dynamic-cp"},
        {"`equal_samples` is", o->equal_samples != 0, SEARCH, "search"},
        {"`min_sp` is", o->min_sp > 0, MEGATRON, "hybrid-cp and dynamic-cp"},
        {"`sequence_tokens_per_rank` is", o->sequence_tokens_per_rank > 0, HYBRID, "hybrid-cp"},
    };
    int32_t kind = kind_of(hbp__epoch_method(o->method));
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].is_asked && !(options[i].kept_by & kind))
            return hbp__fail(context, HBP_E_INVALID, "%s for %s %s; %s does not keep it", options[i].asked,
                             strchr(options[i].keepers, ' ') ? "methods" : "method", options[i].keepers,
                             o->method);
    if (kind != SEARCH && kind != PATTERNS && o->composition == HBP_COMPOSITION_STRATIFIED &&
        !o->samples_per_step)
        return hbp__fail(context, HBP_E_INVALID,
                         "composition stratified with method %s needs samples_per_step; with method "
                         "search it needs none",
                         o->method);
    return HBP_OK;
}

/* What groups of packs cannot promise. */
static hbp_status check_steps(hbp_context *context, const hbp_epoch_options *o)
{
    const char *option = o->micro_batches_per_step ? "micro_batches_per_step" : "equal_samples";
    const char *groups = o->composition == HBP_COMPOSITION_HIERARCHY ? "composition hierarchy"
                         : o->groups                                 ? "given groups"
                         : o->window_samples                         ? "window_samples"
                         : o->modality_order                         ? "modality_order"
                                                                     : NULL;
    if (groups && (o->micro_batches_per_step || o->equal_samples))
        return hbp__fail(context, HBP_E_INVALID,
                         "%s asks for steps planned one by one; %s has packs of groups", option, groups);
    if (o->micro_batch_multiple > 0 && o->micro_batches_per_step % o->micro_batch_multiple)
        return hbp__fail(context, HBP_E_INVALID,
                         "`micro_batches_per_step` is %d, which micro_batch_multiple, %d, does not divide",
                         (int)o->micro_batches_per_step, (int)o->micro_batch_multiple);
    return HBP_OK;
}

/* Given groups say how long packs are; caps below that are refused. */
static hbp_status check_groups(hbp_context *context, const hbp_epoch_options *o)
{
    for (int64_t g = 0; o->groups && g < o->groups->count; g++) {
        int64_t length = o->groups->pack_length[g], sp = o->groups->sp[g];
        if (o->max_pack_length && length > o->max_pack_length)
            return hbp__fail(context, HBP_E_INVALID,
                             "packs of group %lld have %lld tokens; max_pack_length is %lld", (long long)g,
                             (long long)length, (long long)o->max_pack_length);
        if (o->tokens_per_rank && length > o->tokens_per_rank * sp)
            return hbp__fail(context, HBP_E_INVALID,
                             "packs of group %lld have %lld tokens on %lld rank%s; tokens_per_rank is %lld",
                             (long long)g, (long long)length, (long long)sp, hbp__ending(sp),
                             (long long)o->tokens_per_rank);
    }
    return HBP_OK;
}

hbp_status hbp__epoch_check(hbp_context *context, const hbp_epoch_options *options)
{
    HBP__TRY(check_method(context, options));
    if (options->modality_order && options->composition != HBP_COMPOSITION_AUTO &&
        options->composition != HBP_COMPOSITION_HIERARCHY)
        return hbp__fail(context, HBP_E_INVALID,
                         "`modality_order` is for composition hierarchy; others do not keep it");
    HBP__TRY(check_contract(context, options));
    HBP__TRY(check_groups(context, options));
    return check_steps(context, options);
}

int hbp__epoch_counts_vision(const hbp__epoch *epoch)
{
    return epoch->options.max_vision > 0 ||
           (epoch->lengths->vision_sum > 0 && hbp__cost_charges_vision(epoch->cost));
}

hbp_status hbp__epoch_check_vision(const hbp__epoch *epoch)
{
    if (epoch->lengths->vision_sum == 0 || !hbp__cost_charges_vision(epoch->cost))
        return HBP_OK;
    return hbp__fail(
        epoch->context, HBP_E_INVALID,
        "method %s: the cost charges vision units and the lengths have %lld, which this method does not "
        "count; method search does",
        epoch->options.method, (long long)epoch->lengths->vision_sum);
}

hbp_status hbp__epoch_limit(hbp_context *context, const hbp_lengths *lengths,
                            const hbp_epoch_options *options, hbp_lengths **limited)
{
    hbp_lengths *other;
    *limited = NULL;
    if (options->max_length && lengths->bin_length[lengths->bins - 1] > options->max_length)
        HBP__TRY(hbp__lengths_limit(context, lengths, options->max_length, options->over_long, limited));
    if (!options->max_vision || options->over_long != HBP_OVERLONG_DROP)
        return HBP_OK;
    hbp_status status =
        hbp__lengths_drop_vision(context, *limited ? *limited : lengths, options->max_vision, &other);
    if (status < 0 || other) {
        hbp_lengths_free(*limited);
        *limited = other;
    }
    return status;
}

int hbp__epoch_mixes(const hbp__epoch *epoch)
{
    const hbp_epoch_options *o = &epoch->options;
    return hbp__epoch_method(o->method) == HBP__EPOCH_SEARCH && o->composition != HBP_COMPOSITION_HIERARCHY &&
           !o->modality_order;
}

int hbp__epoch_may_plan_steps(const hbp__epoch *epoch)
{
    const hbp_epoch_options *o = &epoch->options;
    return !o->groups && !o->window_samples && !o->drop_last && !o->modality_order;
}
