/* Whether a plan by patterns is of these lengths and of this cost. */
#include "base/checked.h"
#include "base/scratch.h"
#include "cost/cost.h"
#include "data/lengths/length_index.h"
#include "data/pattern/pattern_plan.h"

/* What the plan says of its lengths as a whole. */
static hbp_status check_numbers(hbp_context *context, const hbp_pattern_plan *plan,
                                const hbp_lengths *lengths)
{
    const struct {
        const char *name;
        int64_t told;
        int64_t made;
    } numbers[] = {{"loss_tokens", plan->loss_tokens, lengths->loss_tokens},
                   {"shifted_loss", plan->shifted_loss, lengths->shifted_loss},
                   {"is_bare", plan->is_bare, hbp__lengths_are_bare(lengths)},
                   {"overlong_samples", plan->overlong_samples, lengths->overlong_samples},
                   {"overlong_tokens", plan->overlong_tokens, lengths->overlong_tokens},
                   {"dropped", plan->dropped, lengths->dropped}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].told != numbers[i].made)
            return hbp__fail(context, HBP_E_INVALID, "%s is %lld; the lengths make it %lld%s",
                             numbers[i].name, (long long)numbers[i].told, (long long)numbers[i].made,
                             HBP__PATTERN_LIMIT_HINT(plan));
    return HBP_OK;
}

static hbp_status check_lengths(hbp_context *context, const hbp_pattern_plan *plan,
                                const hbp_lengths *lengths)
{
    const int64_t samples = hbp__pattern_all_samples(plan);
    if (samples != lengths->count)
        return hbp__fail(context, HBP_E_INVALID, "the plan is of %lld samples, the lengths are %lld%s",
                         (long long)samples, (long long)lengths->count, HBP__PATTERN_LIMIT_HINT(plan));
    for (int64_t i = 0; i < hbp__min_i64(plan->lengths, lengths->bins); i++)
        if (plan->length_tokens[i] != lengths->bin_length[i] ||
            plan->length_samples[i] != lengths->bin_count[i])
            return hbp__fail(context, HBP_E_INVALID,
                             "the plan has %lld samples of %lld tokens where the lengths have %lld of %lld%s",
                             (long long)plan->length_samples[i], (long long)plan->length_tokens[i],
                             (long long)lengths->bin_count[i], (long long)lengths->bin_length[i],
                             HBP__PATTERN_LIMIT_HINT(plan));
    if (plan->lengths != lengths->bins)
        return hbp__fail(context, HBP_E_INVALID, "the plan has %lld distinct lengths, the lengths %lld%s",
                         (long long)plan->lengths, (long long)lengths->bins, HBP__PATTERN_LIMIT_HINT(plan));
    /* Patterns of lengths alone are of any order of them, a histogram's too. */
    if (!plan->is_bare && plan->lengths_digest != lengths->digest)
        return hbp__fail(context, HBP_E_INVALID,
                         "the plan is of lengths with digest %016llx; these have %016llx%s",
                         (unsigned long long)plan->lengths_digest, (unsigned long long)lengths->digest,
                         HBP__PATTERN_LIMIT_HINT(plan));
    return check_numbers(context, plan, lengths);
}

static hbp_status check_value(hbp_context *context, const char *what, int64_t row, int64_t told, int64_t made)
{
    return told == made ? HBP_OK
                        : hbp__fail(context, HBP_E_INVALID, "%s %lld is %lld; the cost makes it %lld", what,
                                    (long long)row, (long long)told, (long long)made);
}

static hbp_status check_pattern(hbp_context *context, const hbp_pattern_plan *plan, const hbp_cost *cost,
                                int64_t g, int64_t p)
{
    const int32_t row = hbp__cost_row(cost, plan->group_sp[g]), recompute = plan->group_recompute[g];
    const hbp__load load = {.tokens = plan->pattern_padded_tokens[p],
                            .squares = (double)plan->pattern_squares[p]};
    HBP__TRY(check_value(context, "pattern_ns", p, plan->pattern_ns[p],
                         hbp__cost_pack_ns(cost, row, recompute, load)));
    HBP__TRY(check_value(context, "pattern_bytes", p, plan->pattern_bytes[p],
                         hbp__cost_pack_bytes(cost, row, recompute, load)));
    if (plan->pattern_bytes[p] > cost->terms.limit_bytes)
        return hbp__fail(context, HBP_E_INVALID, "packs of pattern %lld need %lld bytes; a GPU has %lld",
                         (long long)p, (long long)plan->pattern_bytes[p], (long long)cost->terms.limit_bytes);
    return HBP_OK;
}

static hbp_status check_cost(hbp_context *context, const hbp_pattern_plan *plan, const hbp_cost *cost)
{
    const hbp_cost_terms *t = &cost->terms;
    if (plan->ranks != t->ranks || plan->domain_ranks != t->domain_ranks ||
        plan->lockstep_ranks != t->lockstep_ranks)
        return hbp__fail(context, HBP_E_INVALID,
                         "the plan is for %d ranks in domains of %d, the cost for %d in domains of %d",
                         (int)plan->ranks, (int)plan->domain_ranks, (int)t->ranks, (int)t->domain_ranks);
    HBP__TRY(check_value(context, "step_ns of", 0, plan->step_ns, hbp__round_i64(t->step_ns)));
    HBP__TRY(check_value(context, "padding_ns of", 0, plan->padding_ns, hbp__cost_padding_ns(cost)));
    for (int64_t g = 0; g < plan->groups; g++) {
        const int32_t row = hbp__cost_row(cost, plan->group_sp[g]);
        if (row < 0 || plan->group_recompute[g] > t->layers)
            return hbp__fail(context, HBP_E_INVALID,
                             "group %lld runs at SP %d with %d layers recomputed, which the cost does not "
                             "allow",
                             (long long)g, (int)plan->group_sp[g], (int)plan->group_recompute[g]);
        HBP__TRY(check_value(context, "group_padding_bytes", g, plan->group_padding_bytes[g],
                             hbp__cost_pack_bytes(cost, row, plan->group_recompute[g], (hbp__load){0})));
        for (int64_t p = plan->group_first_patterns[g]; p < plan->group_first_patterns[g + 1]; p++) {
            HBP__TRY(hbp__tick_row(context, "validate", p, plan->patterns));
            HBP__TRY(check_pattern(context, plan, cost, g, p));
        }
    }
    return HBP_OK;
}

/* What lockstep sets take depends on which packs meet. */
static hbp_status check_predicted(hbp_context *context, const hbp_pattern_plan *plan)
{
    int64_t ns;
    HBP__TRY(hbp__pattern_plan_predict(context, plan, &ns));
    if (ns != plan->predicted_ns)
        return hbp__fail(context, HBP_E_INVALID, "predicted_ns is %lld; the steps make it %lld",
                         (long long)plan->predicted_ns, (long long)ns);
    return HBP_OK;
}

static hbp_status validate(hbp_context *context, const hbp_pattern_plan *plan, const hbp_lengths *lengths,
                           const hbp_cost *cost)
{
    HBP__TRY(hbp__require(context, plan, "plan"));
    HBP__TRY(hbp__pattern_plan_check(context, plan));
    HBP__TRY(check_predicted(context, plan));
    if (hbp__pattern_plan_digest(plan) != plan->digest)
        return hbp__fail(context, HBP_E_INVALID, "the digest is %016llx; the columns make it %016llx",
                         (unsigned long long)plan->digest,
                         (unsigned long long)hbp__pattern_plan_digest(plan));
    if (lengths)
        HBP__TRY(check_lengths(context, plan, lengths));
    return cost ? check_cost(context, plan, cost) : HBP_OK;
}

hbp_status hbp_pattern_plan_validate(hbp_context *context, const hbp_pattern_plan *plan,
                                     const hbp_lengths *lengths, const hbp_cost *cost)
{
    HBP__TRY(hbp__enter(context));
    const int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, validate(context, plan, lengths, cost));
}
