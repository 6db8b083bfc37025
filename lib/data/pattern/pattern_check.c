/* Whether a plan by patterns keeps its promises, as far as neither lengths nor cost are needed. */
#include "base/scratch.h"
#include "data/lengths/lengths.h"
#include "data/packs/padding.h"
#include "data/pattern/pattern_plan.h"

static hbp_status fail_column(hbp_context *context, const char *column, int64_t row, int64_t value)
{
    return hbp__fail(context, HBP_E_INVALID, "%s %lld is %lld", column, (long long)row, (long long)value);
}

/* Offsets from 0 to `end`, ascending; strictly where `by` is 1. */
static hbp_status check_offsets(hbp_context *context, const char *column, const int64_t *offsets,
                                int64_t rows, int64_t end, int64_t by)
{
    if (offsets[0] != 0)
        return fail_column(context, column, 0, offsets[0]);
    for (int64_t i = 0; i < rows; i++)
        if (offsets[i + 1] < offsets[i] || offsets[i + 1] - offsets[i] < by)
            return fail_column(context, column, i + 1, offsets[i + 1]);
    return offsets[rows] == end ? HBP_OK : fail_column(context, column, rows, offsets[rows]);
}

static hbp_status check_numbers(hbp_context *context, const hbp_pattern_plan *plan)
{
    const struct {
        const char *name;
        int64_t value, least, most;
    } numbers[] = {
        {"groups", plan->groups, 1, HBP_MAX_GROUPS},
        {"stretches", plan->stretches, 1, INT32_MAX},
        {"patterns", plan->patterns, 1, INT32_MAX},
        {"runs", plan->runs, 1, INT32_MAX},
        {"lengths", plan->lengths, 1, INT32_MAX},
        {"ranks", plan->ranks, 1, HBP_MAX_RANKS},
        {"shifted_loss", plan->shifted_loss, 0, 1},
        {"is_bare", plan->is_bare, 0, 1},
        {"steps", plan->steps, 1, INT64_MAX},
        {"sequence_multiple", plan->sequence_multiple, 1, HBP_MAX_LENGTH},
        {"pack_multiple", plan->pack_multiple, 1, HBP_MAX_LENGTH},
        {"sequence_multiple_per_sp", plan->sequence_multiple_per_sp, 0, HBP_MAX_LENGTH},
        {"pack_multiple_per_sp", plan->pack_multiple_per_sp, 0, HBP_MAX_LENGTH},
        {"micro_batch_multiple", plan->micro_batch_multiple, 1, 65536},
        {"tokens_per_step", plan->tokens_per_step, 1, INT64_MAX},
        {"step_ns", plan->step_ns, 0, INT64_MAX},
        {"padding_ns", plan->padding_ns, 0, INT64_MAX},
        {"loss_tokens", plan->loss_tokens, 0, INT64_MAX},
        {"overlong_samples", plan->overlong_samples, 0, HBP_MAX_HISTOGRAM_SAMPLES},
        {"overlong_tokens", plan->overlong_tokens, 0, INT64_MAX},
        {"dropped", plan->dropped, 0, plan->overlong_samples},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].value < numbers[i].least || numbers[i].value > numbers[i].most)
            return hbp__fail(context, HBP_E_INVALID, "%s is %lld; it lies in %lld to %lld", numbers[i].name,
                             (long long)numbers[i].value, (long long)numbers[i].least,
                             (long long)numbers[i].most);
    return hbp__plan_check_ranks(context, plan->ranks, plan->domain_ranks, plan->lockstep_ranks);
}

static hbp_status check_lengths(hbp_context *context, const hbp_pattern_plan *plan)
{
    int64_t samples = 0, tokens = 0; /* tokens: that may carry loss; fewer than 2^36 x 2^31 */
    for (int64_t i = 0; i < plan->lengths; i++) {
        if (plan->length_tokens[i] < 1 || plan->length_tokens[i] > HBP_MAX_LENGTH ||
            (i && plan->length_tokens[i] <= plan->length_tokens[i - 1]))
            return fail_column(context, "length_tokens", i, plan->length_tokens[i]);
        if (plan->length_samples[i] < 1 || plan->length_samples[i] > HBP_MAX_HISTOGRAM_SAMPLES - samples)
            return fail_column(context, "length_samples", i, plan->length_samples[i]);
        samples += plan->length_samples[i];
        tokens += plan->length_samples[i] * (plan->length_tokens[i] - plan->shifted_loss);
    }
    /* All tokens carry loss, but for what a shift takes, where samples have no more than their length. */
    if (plan->loss_tokens > tokens || (plan->is_bare && plan->loss_tokens != tokens))
        return hbp__fail(context, HBP_E_INVALID, "loss_tokens is %lld; the lengths make it %s%lld",
                         (long long)plan->loss_tokens, plan->is_bare ? "" : "at most ", (long long)tokens);
    const uint64_t digest = hbp__bins_digest(plan->length_tokens, plan->length_samples, plan->lengths);
    if (plan->histogram_digest != digest)
        return hbp__fail(context, HBP_E_INVALID, "histogram_digest is %016llx; the lengths make it %016llx",
                         (unsigned long long)plan->histogram_digest, (unsigned long long)digest);
    return HBP_OK;
}

/* Where the packs of a group run: as those of any plan. */
static hbp_status check_degree(hbp_context *context, const hbp_pattern_plan *plan, int64_t g)
{
    const int32_t sp = plan->group_sp[g];
    if (sp < 1 || plan->ranks % sp)
        return hbp__fail(context, HBP_E_INVALID, "group_sp %lld is %d; it must divide the %d ranks",
                         (long long)g, (int)sp, (int)plan->ranks);
    if (plan->domain_ranks < plan->ranks && sp <= plan->domain_ranks && plan->domain_ranks % sp)
        return hbp__fail(context, HBP_E_INVALID, "group_sp %lld is %d, which crosses domains of %d ranks",
                         (long long)g, (int)sp, (int)plan->domain_ranks);
    if (plan->lockstep_ranks > 1 && plan->lockstep_ranks % sp)
        return hbp__fail(context, HBP_E_INVALID,
                         "group_sp %lld is %d, which crosses lockstep sets of %d ranks", (long long)g,
                         (int)sp, (int)plan->lockstep_ranks);
    return HBP_OK;
}

static hbp_status check_groups(hbp_context *context, const hbp_pattern_plan *plan)
{
    HBP__TRY(check_offsets(context, "group_first_patterns", plan->group_first_patterns, plan->groups,
                           plan->patterns, 0));
    for (int64_t g = 0; g < plan->groups; g++) {
        HBP__TRY(check_degree(context, plan, g));
        if (plan->group_padding_bytes[g] < 0)
            return fail_column(context, "group_padding_bytes", g, plan->group_padding_bytes[g]);
        if (plan->group_recompute[g] < 0)
            return fail_column(context, "group_recompute", g, plan->group_recompute[g]);
        if (plan->group_pack_lengths[g] < 1 || plan->group_pack_lengths[g] > HBP_MAX_LENGTH)
            return fail_column(context, "group_pack_lengths", g, plan->group_pack_lengths[g]);
    }
    return HBP_OK;
}

/* What a pattern holds, beside what it says; used [lengths] counts the samples of each. */
static hbp_status check_pattern(hbp_context *context, const hbp_pattern_plan *plan, int64_t g, int64_t p,
                                int64_t *used)
{
    const int64_t times = plan->pattern_first_packs[p + 1] - plan->pattern_first_packs[p],
                  multiple = hbp__padding_multiple(plan->sequence_multiple, plan->sequence_multiple_per_sp,
                                                   plan->group_sp[g]),
                  pack = hbp__padding_multiple(plan->pack_multiple, plan->pack_multiple_per_sp,
                                               plan->group_sp[g]);
    int64_t tokens = 0, padded = 0, squares = 0, samples = 0;
    for (int64_t r = plan->pattern_offsets[p]; r < plan->pattern_offsets[p + 1]; r++) {
        const int64_t row = plan->run_lengths[r], number = plan->run_numbers[r];
        if (row < 0 || row >= plan->lengths)
            return fail_column(context, "run_lengths", r, row);
        const int64_t length = plan->length_tokens[row], left = plan->length_samples[row] - used[row];
        if (number < 1 || number > left / times || number > plan->group_pack_lengths[g])
            return fail_column(context, "run_numbers", r, number);
        if (plan->run_firsts[r] != used[row])
            return fail_column(context, "run_firsts", r, plan->run_firsts[r]);
        used[row] += number * times;
        tokens += number * length;
        padded = hbp__add_saturating(padded, hbp__mul_saturating(number, hbp__round_up(length, multiple)));
        if (tokens > plan->group_pack_lengths[g] || padded > plan->group_pack_lengths[g])
            return hbp__fail(context, HBP_E_INVALID,
                             "pattern %lld has %lld tokens; a pack of group %lld holds "
                             "%lld",
                             (long long)p, (long long)padded, (long long)g,
                             (long long)plan->group_pack_lengths[g]);
        squares += number * length * length;
        samples += number;
    }
    padded = hbp__round_up(padded, pack);
    if (plan->pattern_tokens[p] != tokens)
        return fail_column(context, "pattern_tokens", p, plan->pattern_tokens[p]);
    if (plan->pattern_padded_tokens[p] != padded || padded > plan->group_pack_lengths[g])
        return fail_column(context, "pattern_padded_tokens", p, plan->pattern_padded_tokens[p]);
    if (plan->pattern_squares[p] != squares)
        return fail_column(context, "pattern_squares", p, plan->pattern_squares[p]);
    if (plan->pattern_samples[p] != samples)
        return fail_column(context, "pattern_samples", p, plan->pattern_samples[p]);
    if (plan->pattern_ns[p] < 0)
        return fail_column(context, "pattern_ns", p, plan->pattern_ns[p]);
    if (plan->pattern_bytes[p] < 0)
        return fail_column(context, "pattern_bytes", p, plan->pattern_bytes[p]);
    return HBP_OK;
}

static hbp_status check_patterns(hbp_context *context, const hbp_pattern_plan *plan, int64_t *used)
{
    int64_t packs = plan->pattern_first_packs[plan->patterns];
    HBP__TRY(check_offsets(context, "pattern_offsets", plan->pattern_offsets, plan->patterns, plan->runs, 1));
    HBP__TRY(
        check_offsets(context, "pattern_first_packs", plan->pattern_first_packs, plan->patterns, packs, 1));
    for (int64_t g = 0; g < plan->groups; g++)
        for (int64_t p = plan->group_first_patterns[g]; p < plan->group_first_patterns[g + 1]; p++) {
            HBP__TRY(hbp__tick_row(context, "validate", p, plan->patterns));
            HBP__TRY(check_pattern(context, plan, g, p, used));
            if (p > plan->group_first_patterns[g] && plan->pattern_ns[p] > plan->pattern_ns[p - 1])
                return fail_column(context, "pattern_ns", p, plan->pattern_ns[p]);
        }
    for (int64_t i = 0; i < plan->lengths; i++)
        if (used[i] != plan->length_samples[i])
            return hbp__fail(
                context, HBP_E_INVALID, "the patterns hold %lld samples of %lld tokens; there are %lld",
                (long long)used[i], (long long)plan->length_tokens[i], (long long)plan->length_samples[i]);
    return HBP_OK;
}

/* Stretches cover the packs of each group. */
static hbp_status check_stretches(hbp_context *context, const hbp_pattern_plan *plan)
{
    HBP__TRY(check_offsets(context, "group_first_stretches", plan->group_first_stretches, plan->groups,
                           plan->stretches, 0));
    HBP__TRY(check_offsets(context, "stretch_first_packs", plan->stretch_first_packs, plan->stretches,
                           plan->pattern_first_packs[plan->patterns], 1));
    for (int64_t g = 0; g < plan->groups; g++) {
        const int64_t first = plan->group_first_stretches[g];
        if (plan->stretch_first_packs[first] != hbp__pattern_first_pack(plan, g))
            return fail_column(context, "stretch_first_packs", first, plan->stretch_first_packs[first]);
        for (int64_t k = first; k < plan->group_first_stretches[g + 1]; k++)
            if ((plan->stretch_first_packs[k] - plan->stretch_first_packs[first]) %
                hbp__pattern_width(plan, g))
                return fail_column(context, "stretch_first_packs", k, plan->stretch_first_packs[k]);
    }
    return HBP_OK;
}

/* Units follow from the packs, and steps from the units. */
static hbp_status check_units(hbp_context *context, const hbp_pattern_plan *plan)
{
    int64_t units = 0;
    for (int64_t g = 0; g <= plan->groups; g++) {
        if (plan->group_first_units[g] != units)
            return fail_column(context, "group_first_units", g, plan->group_first_units[g]);
        units += g < plan->groups ? hbp__pattern_group_units(plan, g) : 0;
    }
    if (plan->steps > units)
        return hbp__fail(context, HBP_E_INVALID, "%lld steps of %lld micro-batches", (long long)plan->steps,
                         (long long)units);
    const int64_t mark = hbp__scratch_mark(context);
    hbp__pattern_sizes sizes;
    HBP__TRY(hbp__pattern_sizes_open(context, plan, &sizes));
    const int64_t most = hbp__pattern_step_tokens(plan, &sizes, plan->steps);
    hbp__scratch_release(context, mark);
    if (most > plan->tokens_per_step)
        return hbp__fail(context, HBP_E_INVALID, "a step may hold %lld tokens; tokens_per_step is %lld",
                         (long long)most, (long long)plan->tokens_per_step);
    return HBP_OK;
}

/* The predicted time, which in lockstep sets is no more than where all wait, and the bounds below it. */
static hbp_status check_times(hbp_context *context, const hbp_pattern_plan *plan)
{
    const int64_t ns = hbp__pattern_plan_waiting_ns(plan);
    if (ns == INT64_MAX)
        return hbp__fail(context, HBP_E_INVALID, "the times of the micro-batches pass 2^63 ns");
    if (plan->lockstep_ranks ? plan->predicted_ns > ns : plan->predicted_ns != ns)
        return hbp__fail(context, HBP_E_INVALID, "predicted_ns is %lld; the patterns make it %s%lld",
                         (long long)plan->predicted_ns, plan->lockstep_ranks ? "at most " : "",
                         (long long)ns);
    return hbp__plan_check_bounds(context, plan->bound_ns, plan->free_bound_ns, plan->predicted_ns);
}

hbp_status hbp__pattern_plan_check(hbp_context *context, const hbp_pattern_plan *plan)
{
    HBP__TRY(check_numbers(context, plan));
    const int64_t mark = hbp__scratch_mark(context);
    int64_t *used = hbp__take_zero(context, (uint64_t)plan->lengths, sizeof *used);
    HBP__TRY(hbp__scratch_check(context, "the check of a plan"));
    HBP__TRY(check_lengths(context, plan));
    HBP__TRY(check_groups(context, plan));
    HBP__TRY(check_patterns(context, plan, used));
    HBP__TRY(check_stretches(context, plan));
    HBP__TRY(check_units(context, plan));
    HBP__TRY(check_times(context, plan));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
