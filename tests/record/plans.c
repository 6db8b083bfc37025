/* Groups, packs, plans of epochs and of steps. */
#include "record.h"

/* Variants are pairs of lengths and cost. */
static const struct pair {
    int32_t lengths, cost;
} pairs[] = {{0, 0}, {1, 0}, {2, 4}, {3, 1}, {0, 2}, {1, 3}, {4, 0}, {0, 5}};
enum { PAIRS = sizeof pairs / sizeof *pairs };

static const hbp_lengths *lengths_of(const record *r, int32_t variant)
{
    return r->lengths[pairs[variant % PAIRS].lengths];
}

static const hbp_cost *cost_of(const record *r, int32_t variant)
{
    return r->cost[pairs[variant % PAIRS].cost];
}

static void digest_groups(answer *a, const hbp_groups *groups)
{
    hbp_groups_view view = {.struct_size = sizeof view};
    (void)hbp_groups_get_view(groups, &view);
    DIGEST_VIEW(a, view.thresholds, view.groups);
    DIGEST_VIEW(a, view.pack_lengths, view.groups);
    DIGEST_VIEW(a, view.sp, view.groups);
    DIGEST_VIEW(a, view.recompute, view.groups);
    DIGEST_VIEW(a, view.packs, view.groups);
    DIGEST_VIEW(a, view.micro_batches, view.groups);
    DIGEST_VIEW(a, view.tokens, view.groups);
    DIGEST_VIEW(a, view.step_ns, view.groups);
    digest_number(a, view.tokens_per_step);
    DIGEST_VIEW(a, view.candidate_ns, view.candidates);
    for (int64_t i = 0; i < view.candidates; i++)
        digest_text(a, view.candidate_texts[i]);
    const char *chosen = view.candidates ? view.candidate_texts[0] : NULL;
    snprintf(a->facts, sizeof a->facts, " %lld tokens a step, %s", (long long)view.tokens_per_step,
             chosen ? chosen : "given");
}

static void digest_packs(answer *a, const hbp_packs *packs)
{
    hbp_packs_view view = {.struct_size = sizeof view};
    (void)hbp_packs_get_view(packs, &view);
    DIGEST_VIEW(a, view.pack_offsets, view.packs + 1);
    DIGEST_VIEW(a, view.pack_groups, view.packs);
    DIGEST_VIEW(a, view.pack_tokens, view.packs);
    DIGEST_VIEW(a, view.pack_padded_tokens, view.packs);
    DIGEST_VIEW(a, view.pack_squares, view.packs);
    DIGEST_VIEW(a, view.pack_vision, view.packs);
    DIGEST_VIEW(a, view.dropped_indices, view.dropped);
    DIGEST_VIEW(a, view.dropped_reasons, view.dropped);
    DIGEST_VIEW(a, view.sample_indices, view.samples);
    for (int64_t g = 0; g < 16; g++)
        digest_number(a, g < view.groups ? view.group_bounds[g] : -1);
    snprintf(a->facts, sizeof a->facts, " %lld packs, bound %lld, %lld dropped", (long long)view.packs,
             (long long)view.group_bounds[0], (long long)view.dropped);
}

static void digest_plan(const record *r, answer *a, const hbp_plan *plan)
{
    hbp_plan_summary s = {.struct_size = sizeof s};
    if (hbp_plan_get_summary(r->context, plan, &s) < 0)
        return;
    a->digest = s.digest;
    snprintf(
        a->facts, sizeof a->facts,
        " %lld steps %lld packs %lld dummies %lld padded %lld dropped %s, %lld ns, bound %lld, free %lld, "
        "of steps %lld, hierarchy %lld, mixture %lld",
        (long long)s.steps, (long long)s.packs, (long long)s.padding_packs, (long long)s.padded_tokens,
        (long long)s.dropped, hbp_composition_name(s.composition), (long long)s.predicted_ns,
        (long long)s.bound_ns, (long long)s.free_bound_ns, (long long)s.tokens_per_step,
        (long long)s.hierarchy_ns, (long long)s.mixture_ns);
}

/* A plan that was made is also held against its promises, by those that do not plan. */
static hbp_status judge(const record *r, const hbp_plan *plan, const hbp_lengths *lengths,
                        const hbp_cost *cost, answer *a)
{
    hbp_report report = {.struct_size = sizeof report};
    RECORD_TRY(hbp_plan_validate(r->context, plan, lengths, cost));
    RECORD_TRY(hbp_simulate(r->context, plan, cost, NULL, &report));
    digest_plan(r, a, plan);
    digest_number(a, report.bound_ns);
    digest_number(a, report.peak_bytes);
    const double shares[] = {
        report.idle,       report.dbr,        report.padding,     report.abr,
        report.cr,         report.abr_paper,  report.gap,         report.communication,
        report.ave_tokens, report.samples_cv, report.dist_vision, report.mixture_distance};
    for (uint64_t i = 0; i < sizeof shares / sizeof *shares; i++)
        digest_real(a, shares[i]);
    return HBP_OK;
}

static hbp_status ask_groups(const record *r, int32_t variant, const void *options, answer *a)
{
    hbp_groups *groups = NULL;
    RECORD_TRY(hbp_plan_groups(r->context, lengths_of(r, variant), cost_of(r, variant), options, &groups));
    digest_groups(a, groups);
    hbp_groups_free(groups);
    return HBP_OK;
}

static hbp_status fill(const record *r, int32_t variant, const hbp_fill_options *options, hbp_groups **groups,
                       hbp_packs **packs)
{
    hbp_groups_options ask = {.struct_size = sizeof ask,
                              .method = record_method("HBP_GROUPS_METHODS", variant % 2)};
    if (options)
        ask.pack_multiple = options->pack_multiple, ask.sequence_multiple = options->sequence_multiple;
    hbp_status status =
        hbp_plan_groups(r->context, lengths_of(r, variant), cost_of(r, variant), &ask, groups);
    if (status >= 0)
        status = hbp_greedy_fill(r->context, lengths_of(r, variant), *groups, options, packs);
    return status;
}

static hbp_status ask_fill(const record *r, int32_t variant, const void *options, answer *a)
{
    hbp_groups *groups = NULL;
    hbp_packs *packs = NULL;
    hbp_status status = fill(r, variant, options, &groups, &packs);
    if (status >= 0)
        digest_packs(a, packs);
    hbp_packs_free(packs);
    hbp_groups_free(groups);
    return status;
}

static hbp_status ask_balance(const record *r, int32_t variant, const void *options, answer *a)
{
    hbp_groups *groups = NULL;
    hbp_packs *packs = NULL;
    hbp_plan *plan = NULL;
    hbp_status status = fill(r, variant, NULL, &groups, &packs);
    if (status >= 0)
        status = hbp_balance_attention(r->context, packs, groups, cost_of(r, variant), options, &plan);
    if (status >= 0)
        status = judge(r, plan, lengths_of(r, variant), cost_of(r, variant), a);
    hbp_plan_free(plan);
    hbp_packs_free(packs);
    hbp_groups_free(groups);
    return status;
}

/* Contracts by which steps are asked for, one for each turn through the pairs. */
static void start_epoch(const record *r, int32_t variant, void *options)
{
    static int64_t offsets[] = {0, 60, 100, RECORD_SAMPLES}, samples[RECORD_SAMPLES];
    hbp_epoch_options *o = options;
    (void)r;
    o->max_vision = pairs[variant % PAIRS].lengths == 2 ? 40 : 0;
    switch (variant / PAIRS) {
    case 1:
        o->samples_per_step = 24;
        break;
    case 2:
        o->composition = HBP_COMPOSITION_HIERARCHY;
        break;
    case 3:
        o->method = "hbp";
        break;
    case 4:
        o->window_samples = 50;
        break;
    case 5:
        o->max_length = 4000;
        o->over_long = HBP_OVERLONG_SPLIT;
        break;
    case 6:
        for (int64_t i = 0; i < RECORD_SAMPLES; i++)
            samples[i] = RECORD_SAMPLES - 1 - i;
        o->batches = 3;
        o->batch_offsets = offsets;
        o->batch_samples = samples;
        break;
    case 7:
        o->modality_order = 1;
        o->tokens_per_step = 60000;
        break;
    default:
        break;
    }
}

/* Of split lengths, ids alone do not tell pieces apart: the plan is validated without the lengths. */
static hbp_status ask_epoch(const record *r, int32_t variant, const void *options, answer *a)
{
    const hbp_epoch_options *o = options;
    hbp_plan *plan = NULL;
    RECORD_TRY(hbp_plan_epoch(r->context, lengths_of(r, variant), cost_of(r, variant), options, &plan));
    hbp_status status = judge(r, plan, o->max_length ? NULL : lengths_of(r, variant), cost_of(r, variant), a);
    hbp_plan_free(plan);
    return status;
}

static const char *const baselines[] = {"no-packing",
                                        "sorted",
                                        "next-fit",
                                        "first-fit-decreasing",
                                        "best-fit-decreasing",
                                        "isf",
                                        "spfhp",
                                        "homogeneous-sp",
                                        "hbp",
                                        "random",
                                        "first-fit-shuffled",
                                        "flexsp",
                                        "hybrid-cp",
                                        "dynamic-cp"};
enum { BASELINES = sizeof baselines / sizeof *baselines };

static void start_baseline(const record *r, int32_t variant, void *options)
{
    (void)r;
    hbp_epoch_options *o = options;
    o->method = baselines[variant % BASELINES];
    if (variant % BASELINES < 2) /* a sample a pack */
        o->samples_per_step = 32;
}

static hbp_status ask_baseline(const record *r, int32_t variant, const void *options, answer *a)
{
    int32_t pair = variant / BASELINES * 3; /* plain; with loss tokens */
    const hbp_epoch_options *o = options;
    hbp_plan *plan = NULL;
    RECORD_TRY(hbp_plan_epoch(r->context, lengths_of(r, pair), cost_of(r, pair), options, &plan));
    hbp_status status = judge(r, plan, o->max_length ? NULL : lengths_of(r, pair), cost_of(r, pair), a);
    hbp_plan_free(plan);
    return status;
}

static void start_step(const record *r, int32_t variant, void *options)
{
    (void)r;
    ((hbp_step_options *)options)->method = record_method("HBP_STEP_METHODS", variant / PAIRS);
}

/* Steps are not planned where vision units cost. */
static const hbp_cost *step_cost(const record *r, int32_t variant)
{
    return r->cost[variant >= PAIRS && pairs[variant % PAIRS].cost == 4 ? 0 : pairs[variant % PAIRS].cost];
}

static hbp_status ask_step(const record *r, int32_t variant, const void *options, answer *a)
{
    hbp_plan *plan = NULL;
    hbp_status not_proven =
        hbp_plan_step(r->context, lengths_of(r, variant), step_cost(r, variant), options, &plan);
    RECORD_TRY(not_proven);
    hbp_status status = judge(r, plan, lengths_of(r, variant), step_cost(r, variant), a);
    hbp_plan_free(plan);
    return status < 0 ? status : not_proven;
}

static hbp_status ask_stepper(const record *r, int32_t variant, const void *options, answer *a)
{
    hbp_stepper *stepper = NULL;
    hbp_stepper_summary summary = {.struct_size = sizeof summary};
    RECORD_TRY(hbp_stepper_create(r->context, cost_of(r, variant), NULL, options, &stepper));
    hbp_status status = HBP_OK;
    for (int32_t step = 0; step < 3 && status >= 0; step++) {
        hbp_plan *plan = NULL;
        status = hbp_stepper_submit_lengths(r->context, stepper, lengths_of(r, (variant + step) % 2));
        if (status >= 0)
            status = hbp_stepper_take(r->context, stepper, &plan);
        if (status >= 0)
            digest_number(a, (int64_t)plan_digest(r, plan));
        hbp_plan_free(plan);
    }
    if (status >= 0)
        status = hbp_stepper_get_summary(r->context, stepper, &summary);
    digest_number(a, (int64_t)summary.digest);
    hbp_stepper_free(stepper);
    return status;
}

static hbp_status ask_report(const record *r, int32_t variant, const void *options, answer *a)
{
    hbp_report s = {.struct_size = sizeof s};
    RECORD_TRY(hbp_simulate(r->context, r->plan, r->cost[variant], options, &s));
    snprintf(
        a->facts, sizeof a->facts,
        " %lld ns, bound %lld, peak %lld, gap %.6f, idle %.6f, dbr %.6f, abr %.6f, cr %.6f, padding %.6f",
        (long long)s.epoch_ns, (long long)s.bound_ns, (long long)s.peak_bytes, s.gap, s.idle, s.dbr, s.abr,
        s.cr, s.padding);
    return HBP_OK;
}

static hbp_status ask_bound(const record *r, int32_t variant, const void *options, answer *a)
{
    (void)options;
    for (int64_t steps = 0; steps < 200; steps = 2 * steps + 1) {
        int64_t bound_ns = 0;
        hbp_status status =
            hbp_bound_epoch(r->context, lengths_of(r, variant), cost_of(r, variant), steps, &bound_ns);
        digest_number(a, status);
        digest_number(a, bound_ns);
    }
    return HBP_OK;
}

/* Packs, ranks, equal counts, linked samples, classes, weights of their own. */
static void start_partition(const record *r, int32_t variant, void *options)
{
    static int64_t links[RECORD_SAMPLES], classes[RECORD_SAMPLES], weights[RECORD_SAMPLES];
    hbp_partition_options *o = options;
    (void)r;
    for (int64_t i = 0; i < RECORD_SAMPLES; i++) {
        links[i] = i % 5 ? -1 : i / 10;
        classes[i] = i / 10 % 3;
        weights[i] = i * i % 97;
    }
    o->parts = variant % 2 ? 8 : 0;
    o->capacity = variant % 2 ? 0 : 40000;
    o->over_long = HBP_OVERLONG_ALONE;
    o->equal_count = variant == 2 || variant == 3;
    o->links = variant == 4 || variant == 5 ? links : NULL;
    o->classes = variant == 6 || variant == 7 ? classes : NULL;
    o->weights = variant == 8 || variant == 9 ? weights : NULL;
}

static hbp_status ask_partition(const record *r, int32_t variant, const void *options, answer *a)
{
    int64_t lengths[RECORD_SAMPLES];
    hbp_partition *made = NULL;
    char why[RECORD_TEXT];
    (void)variant;
    for (int64_t i = 0; i < RECORD_SAMPLES; i++)
        lengths[i] = hbp_lengths_get_length(r->lengths[0], i);
    hbp_status status = hbp_partition_samples(lengths, RECORD_SAMPLES, options, &made, why, sizeof why);
    if (status < 0) {
        digest_text(a, why); /* the call has no context, where the record looks for a message */
        snprintf(a->facts, sizeof a->facts, " %s: %s", hbp_status_name(status), why);
        return HBP_OK;
    }
    hbp_partition_view view = {.struct_size = sizeof view};
    (void)hbp_partition_get_view(made, &view);
    DIGEST_VIEW(a, view.part_offsets, view.parts + 1);
    DIGEST_VIEW(a, view.sample_ids, view.samples);
    DIGEST_VIEW(a, view.sample_first_tokens, view.samples);
    DIGEST_VIEW(a, view.sample_tokens, view.samples);
    DIGEST_VIEW(a, view.dropped_ids, view.dropped);
    snprintf(a->facts, sizeof a->facts, " %lld parts, at least %lld, heaviest %lld, bound %lld",
             (long long)view.parts, (long long)view.least_parts, (long long)view.heaviest,
             (long long)view.bound);
    hbp_partition_free(made);
    return HBP_OK;
}

const question record_plans[] = {
    {"groups", "hbp_groups_options", sizeof(hbp_groups_options), PAIRS, 1, 150, NULL, ask_groups},
    {"fill", "hbp_fill_options", sizeof(hbp_fill_options), PAIRS, 1, 150, NULL, ask_fill},
    {"balance", "hbp_balance_options", sizeof(hbp_balance_options), PAIRS, 1, 150, NULL, ask_balance},
    {"epoch", "hbp_epoch_options", sizeof(hbp_epoch_options), 8 * PAIRS, 1, 400, start_epoch, ask_epoch},
    {"baseline", "hbp_epoch_options", sizeof(hbp_epoch_options), 2 * BASELINES, 0, 150, start_baseline,
     ask_baseline},
    {"step", "hbp_step_options", sizeof(hbp_step_options), 6 * PAIRS, 1, 400, start_step, ask_step},
    {"stepper", "hbp_stepper_options", sizeof(hbp_stepper_options), PAIRS, 0, 0, NULL, ask_stepper},
    {"partition", "hbp_partition_options", sizeof(hbp_partition_options), 10, 2, 100, start_partition,
     ask_partition},
    {"report", "hbp_simulate_options", sizeof(hbp_simulate_options), RECORD_COSTS, 1, 20, NULL, ask_report},
    {"bound", "", sizeof(uint32_t), PAIRS, 0, 0, NULL, ask_bound},
    {0}};
