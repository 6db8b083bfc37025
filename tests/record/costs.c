/* Costs, models, machines, degrees, lengths under limits: what plans are made from. */
#include "record.h"

static void digest_cost(answer *a, const hbp_cost *cost)
{
    static const int64_t tokens[] = {1, 1000, 40000, 1000000};
    int64_t ns = 0;
    for (int32_t sp = 1; sp <= 16; sp *= 2)
        for (int32_t recompute = 0; recompute <= 32; recompute += 8) {
            for (int32_t k = 0; k < 4; k++) {
                digest_number(
                    a, hbp_cost_predict_pack_ns(cost, sp, recompute, tokens[k], (double)tokens[k] * 700, k));
                digest_number(a, hbp_cost_predict_pack_bytes(cost, sp, recompute, tokens[k], k));
                digest_number(a, hbp_cost_predict_recompute(cost, sp, tokens[k]));
            }
            digest_number(a, hbp_cost_predict_capacity(cost, sp, recompute));
        }
    ns = hbp_cost_predict_pack_ns(cost, 1, 0, 1000, 1e6, 0);
    snprintf(a->facts, sizeof a->facts, " %lld ns and %lld bytes of 1000 tokens, at most %lld", (long long)ns,
             (long long)hbp_cost_predict_pack_bytes(cost, 1, 0, 1000, 0),
             (long long)hbp_cost_predict_capacity(cost, 1, 0));
}

static hbp_status ask_cost(const record *r, int32_t variant, const void *options, answer *a)
{
    hbp_cost *cost = NULL;
    (void)variant;
    RECORD_TRY(hbp_cost_create(r->context, r->model, r->machine, options, &cost));
    digest_cost(a, cost);
    hbp_cost_free(cost);
    return HBP_OK;
}

static void start_terms(const record *r, int32_t variant, void *options)
{
    (void)hbp_cost_get_terms(r->context, r->cost[variant], options);
}

static hbp_status ask_terms(const record *r, int32_t variant, const void *options, answer *a)
{
    hbp_cost *cost = NULL;
    (void)variant;
    RECORD_TRY(hbp_cost_create_terms(r->context, options, &cost));
    digest_cost(a, cost);
    digest_text(a, hbp_cost_get_source(cost, "ns_per_token"));
    hbp_cost_free(cost);
    return HBP_OK;
}

static hbp_status ask_fit(const record *r, int32_t variant, const void *options, answer *a)
{
    hbp_measurements rows = {.struct_size = sizeof rows};
    hbp_fit_report s = {.struct_size = sizeof s};
    hbp_cost *cost = NULL;
    (void)options;
    RECORD_TRY(hbp_timeline_get_measurements(r->context, r->timeline, &rows));
    RECORD_TRY(hbp_cost_fit(r->context, r->cost[variant], &rows, &cost, &s));
    digest_cost(a, cost);
    hbp_cost_free(cost);
    return HBP_OK;
}

static hbp_status ask_compare(const record *r, int32_t variant, const void *options, answer *a)
{
    hbp_timeline_report s = {.struct_size = sizeof s};
    (void)options;
    RECORD_TRY(hbp_timeline_compare(r->context, r->timeline, r->cost[variant], &s));
    snprintf(a->facts, sizeof a->facts,
             " %lld packs, median %.9g, %.9g of steps, %lld measured, %lld predicted", (long long)s.packs,
             s.median_pack_error, s.median_step_error, (long long)s.measured_ns, (long long)s.predicted_ns);
    return HBP_OK;
}

static hbp_status ask_sp(const record *r, int32_t variant, const void *options, answer *a)
{
    static const int64_t lengths[] = {1, 1000, 8192, 65536, 200000, 1000000, 0};
    hbp_sp_choice chosen = {.struct_size = sizeof chosen}, choices[8];
    int64_t length = lengths[variant % 7], count = 0;
    RECORD_TRY(hbp_list_sp_choices(r->context, r->cost[variant / 7], length, options, choices,
                                   sizeof *choices, 8, &count));
    for (int64_t i = 0; i < count && i < 8; i++) {
        digest_number(a, choices[i].sp);
        digest_number(a, choices[i].recompute);
        digest_number(a, choices[i].reason);
        digest_number(a, choices[i].pack_ns);
        digest_number(a, choices[i].step_ns);
        digest_number(a, choices[i].peak_bytes);
    }
    RECORD_TRY(hbp_choose_sp(r->context, r->cost[variant / 7], length, options, &chosen));
    snprintf(a->facts, sizeof a->facts, " SP %d, %d layers recomputed, %lld ns", (int)chosen.sp,
             (int)chosen.recompute, (long long)chosen.step_ns);
    return HBP_OK;
}

static void start_model(const record *r, int32_t variant, void *options)
{
    hbp_model *model = NULL;
    if (hbp_model_create_preset(r->context, hbp_preset_get_name("model", variant), &model) >= 0)
        (void)hbp_model_get_fields(r->context, model, options);
    hbp_model_free(model);
}

static hbp_status ask_model(const record *r, int32_t variant, const void *options, answer *a)
{
    hbp_model *model = NULL;
    hbp_model_summary s = {.struct_size = sizeof s};
    (void)variant;
    RECORD_TRY(hbp_model_create(r->context, options, &model));
    hbp_status status = hbp_model_get_summary(r->context, model, &s);
    hbp_model_free(model);
    digest_real(a, s.forward_flops_per_token);
    digest_real(a, s.forward_flops_per_token_squared);
    snprintf(a->facts, sizeof a->facts, " %lld parameters, %lld active, %lld + %lld bytes, SP to %d",
             (long long)s.parameters, (long long)s.active_parameters, (long long)s.activation_bytes,
             (long long)s.logits_bytes, (int)s.max_sp);
    return status;
}

static void start_machine(const record *r, int32_t variant, void *options)
{
    hbp_machine *machine = NULL;
    char text[64];
    snprintf(text, sizeof text, "%s:2", hbp_preset_get_name("machine", variant));
    if (hbp_machine_create_preset(r->context, text, &machine) >= 0)
        (void)hbp_machine_get_fields(r->context, machine, options);
    hbp_machine_free(machine);
}

static hbp_status ask_machine(const record *r, int32_t variant, const void *options, answer *a)
{
    hbp_machine *machine = NULL;
    hbp_cost *cost = NULL;
    (void)variant;
    RECORD_TRY(hbp_machine_create(r->context, options, &machine));
    hbp_status status = hbp_cost_create(r->context, r->model, machine, NULL, &cost);
    if (status >= 0)
        digest_cost(a, cost);
    hbp_cost_free(cost);
    hbp_machine_free(machine);
    return status;
}

/* Lengths under a limit, by policy. */
static hbp_status ask_limit(const record *r, int32_t variant, const void *options, answer *a)
{
    hbp_lengths *lengths = NULL;
    hbp_lengths_summary s = {.struct_size = sizeof s};
    (void)options;
    RECORD_TRY(hbp_lengths_limit(r->context, r->lengths[variant / 4], 700, variant % 4, &lengths));
    hbp_status status = hbp_lengths_get_summary(r->context, lengths, &s);
    hbp_lengths_view view = {.struct_size = sizeof view};
    (void)hbp_lengths_get_view(lengths, &view);
    DIGEST_VIEW(a, view.histogram_lengths, view.distinct_lengths);
    DIGEST_VIEW(a, view.histogram_counts, view.distinct_lengths);
    for (int64_t i = 0; i < RECORD_SAMPLES; i++) {
        digest_number(a, hbp_lengths_get_length(lengths, i));
        digest_number(a, hbp_lengths_get_vision(lengths, i));
        digest_number(a, hbp_lengths_get_modality(lengths, i));
    }
    hbp_lengths_free(lengths);
    return status;
}

const question record_costs[] = {
    {"cost", "hbp_cost_options", sizeof(hbp_cost_options), 1, 1, 80, NULL, ask_cost},
    {"terms", "hbp_cost_terms", sizeof(hbp_cost_terms), RECORD_COSTS, 1, 80, start_terms, ask_terms},
    {"fit", "", sizeof(uint32_t), RECORD_COSTS, 0, 0, NULL, ask_fit},
    {"timeline", "", sizeof(uint32_t), RECORD_COSTS, 0, 0, NULL, ask_compare},
    {"sp", "hbp_sp_options", sizeof(hbp_sp_options), 7 * RECORD_COSTS, 0, 40, NULL, ask_sp},
    {"model", "hbp_model_fields", sizeof(hbp_model_fields), 19, 1, 80, start_model, ask_model},
    {"machine", "hbp_machine_fields", sizeof(hbp_machine_fields), 7, 1, 80, start_machine, ask_machine},
    {"limit", "", sizeof(uint32_t), 4 * RECORD_LENGTHS, 0, 0, NULL, ask_limit},
    {0}};
