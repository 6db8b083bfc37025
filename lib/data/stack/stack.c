/* A stack's text, read for one model on one machine. */
#include "data/stack/stack.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/fields.h"
#include "base/options.h"
#include "base/records.h"

/* Behind the struct's own row and that of struct_size. */
static const hbp__record *record_of_field(int64_t index)
{
    return hbp__record_of("hbp_stack_fields") + 2 + index;
}

static const char *field_name(int64_t index)
{
    return record_of_field(index)->name;
}

static const hbp__other_word other_words[] = {
    {"mfu", "gemm_efficiency"},           {"attention", "attention_efficiency"},
    {"elementwise", "elementwise_bytes"}, {"logits_bytes", "logits_kept_bytes"},
    {"overlap", "compute_overlap"},       {"activation_bytes", "activations"},
    {"fused_ce", "fused_cross_entropy"},  {NULL, NULL},
};

static const hbp__field_names names = {"stack", field_name, HBP__STACK_FIELD_COUNT, other_words, 1};
_Static_assert((int)HBP__STACK_FIELD_COUNT <= HBP__MOST_FIELDS, "a bit for every field");

/* Whether nobody but a preset has said a field of the machine. */
static int is_preset(const hbp_machine *machine, int32_t field)
{
    return !machine->source[field][0] || strncmp(machine->source[field], "preset ", 7) == 0;
}

/* The curve peak x efficiency / (1 + half / size) that has the least sum of squared relative errors over what
 * was measured by size, together with the field where that was measured: 1 / rate is linear in 1 / size.
 * Returns 0 where fewer than two sizes were, they have no such curve, or the field is given. */
static int fit_curve(const hbp_machine *machine, int32_t rate, int32_t field, double *efficiency,
                     double *half)
{
    double weights = 0, x = 0, y = 0, xx = 0, xy = 0;
    int64_t count = 0;
    const int any = is_preset(machine, field);
    if (strcmp(machine->source[field], "given") == 0)
        return 0;
    for (int64_t i = 0; i < machine->rate_count; i++) {
        const hbp__rate *row = &machine->rates[i];
        if (row->rate != rate || (!any && strcmp(row->source, machine->source[field]) != 0))
            continue;
        const double at = 1 / (double)row->size, value = 1 / row->per_s, weight = row->per_s * row->per_s;
        weights += weight;
        x += weight * at;
        y += weight * value;
        xx += weight * at * at;
        xy += weight * at * value;
        count++;
    }
    const double determinant = weights * xx - x * x;
    if (count < 2 || !(determinant > 0))
        return 0;
    const double inverse = (xx * y - x * xy) / determinant, slope = (weights * xy - x * y) / determinant;
    if (!(inverse > 0) || !isfinite(1 / inverse) || !(slope >= 0))
        return 0;
    *efficiency = 1 / inverse / machine->fields.flops_per_s;
    *half = slope / inverse;
    return *efficiency <= 1;
}

/* Products by size are of n x n x n, those of a layer of t tokens with a matrix of K x N. Taken to be as fast
 * as squares of the same flops per byte, that is 3 / n = 1 / t + 1 / K + 1 / N, they take
 *     2 t K N / E (1 + half / 3 (1 / K + 1 / N + 1 / t)),
 * which is linear in t: an efficiency of the model, and tokens beside those that there are. */
static int fit_products(const hbp_model *model, const hbp_machine *machine, hbp_stack_fields *f)
{
    double efficiency;
    double half;
    if (!fit_curve(machine, HBP_RATE_GEMM, HBP__MACHINE_gemm_efficiency, &efficiency, &half))
        return 0;
    const double sides = hbp__model_product_sides(&model->fields);
    const double slower = 1 + half / 3 * sides / (double)model->summary.matmul_parameters;
    f->gemm_efficiency = efficiency / slower;
    f->gemm_tokens = half / 3 / slower;
    return 1;
}

/* The machine's own efficiencies: given, or measured. */
static void take_machine(const hbp_model *model, const hbp_machine *machine, hbp_stack_fields *f)
{
    if (!fit_products(model, machine, f) &&
        (!(f->gemm_efficiency > 0) || !is_preset(machine, HBP__MACHINE_gemm_efficiency)))
        f->gemm_efficiency = machine->fields.gemm_efficiency;
    double efficiency;
    double tokens;
    if (fit_curve(machine, HBP_RATE_ATTENTION, HBP__MACHINE_attention_efficiency, &efficiency, &tokens)) {
        f->attention_efficiency = efficiency;
        f->attention_tokens = tokens;
    } else if (f->attention_efficiency > 0 && is_preset(machine, HBP__MACHINE_attention_efficiency)) {
        return;
    } else {
        f->attention_efficiency = machine->fields.attention_efficiency;
    }
    f->forward_attention_efficiency = f->attention_efficiency;
    f->forward_attention_tokens = f->attention_tokens;
}

/* The efficiency of the GPU whose peak is nearest by ratio. */
static double find_products(const hbp__stack_preset *preset, double peak)
{
    const hbp__stack_products *best = &preset->products[0];
    for (int32_t i = 1; i < preset->product_rows; i++)
        if (fabs(log(preset->products[i].peak / peak)) < fabs(log(best->peak / peak)))
            best = &preset->products[i];
    return best->efficiency;
}

/* What a preset has for this model and machine, with another kernel where one is named. */
static hbp_status take_preset(hbp_context *context, const char *name, const char *kernel,
                              const hbp_model *model, const hbp_machine *machine, hbp_stack_fields *f)
{
    const hbp__stack_preset *preset = hbp__stack_find(name);
    if (!preset) {
        int64_t count = 0;
        while (hbp__stack_preset_name(count))
            count++;
        return hbp__fail_preset(context, "stack", name, hbp__stack_preset_name, count);
    }
    const double peak = machine->fields.flops_per_s;
    const hbp__stack_attention *row =
        hbp__stack_find_attention(kernel ? kernel : preset->kernel, peak, model->fields.head_dim);
    if (!row) {
        int64_t count = 0;
        while (hbp__stack_kernel_name(count))
            count++;
        return hbp__fail_preset(context, "attention", kernel, hbp__stack_kernel_name, count);
    }
    *f = preset->fields;
    f->gemm_efficiency = find_products(preset, peak);
    f->attention_efficiency = row->efficiency;
    f->attention_tokens = row->tokens;
    f->forward_attention_efficiency = row->forward_efficiency;
    f->forward_attention_tokens = row->forward_tokens;
    return HBP_OK;
}

/* What the text gives, over what is there. Attention that is given for both passes is that of the forward
 * pass, unless that is given too. */
static hbp_status take_values(hbp_context *context, const hbp__field_values *values, hbp_stack_fields *f)
{
    const double fused = values->value[HBP__STACK_fused_cross_entropy];
    if (values->given >> HBP__STACK_fused_cross_entropy & 1 && fused != 0 && fused != 1)
        return hbp__fail(context, HBP_E_INVALID, "fused_cross_entropy is %g; it must be 0 or 1", fused);
    for (int32_t i = 0; i < HBP__STACK_FIELD_COUNT; i++) {
        if (!(values->given >> i & 1))
            continue;
        char *at = (char *)f + record_of_field(i)->offset;
        if (i == HBP__STACK_fused_cross_entropy)
            f->fused_cross_entropy = values->value[i] != 0;
        else
            memcpy(at, &values->value[i], sizeof values->value[i]);
    }
    const uint32_t given = values->given;
    if (given >> HBP__STACK_attention_efficiency & 1 &&
        !(given >> HBP__STACK_forward_attention_efficiency & 1))
        f->forward_attention_efficiency = f->attention_efficiency;
    if (given >> HBP__STACK_attention_tokens & 1 && !(given >> HBP__STACK_forward_attention_tokens & 1))
        f->forward_attention_tokens = f->attention_tokens;
    return HBP_OK;
}

static hbp_status check_fields(hbp_context *context, const hbp_stack_fields *f)
{
    const struct {
        const char *name;
        double value, least, most;
    } limits[] = {
        {"gemm_efficiency", f->gemm_efficiency, 0x1p-20, 1},
        {"gemm_tokens", f->gemm_tokens, 0, 1e6},
        {"attention_efficiency", f->attention_efficiency, 0x1p-20, 1},
        {"forward_attention_efficiency", f->forward_attention_efficiency, 0x1p-20, 1},
        {"attention_tokens", f->attention_tokens, 0, 1e6},
        {"forward_attention_tokens", f->forward_attention_tokens, 0, 1e6},
        {"elementwise_bytes", f->elementwise_bytes, 0, 1e6},
        {"logits_traffic_bytes", f->logits_traffic_bytes, 0, 1e6},
        {"exchange_passes", f->exchange_passes, 0, 1000},
        {"recompute_products", f->recompute_products, 0, 1},
        {"recompute_attention", f->recompute_attention, 0, 1},
        {"activations", f->activations, 0x1p-20, 100},
        {"logits_kept_bytes", f->logits_kept_bytes, 0, 1000},
        {"dp_overlap", f->dp_overlap, 0, 1},
        {"sp_overlap", f->sp_overlap, 0, 1},
        {"compute_overlap", f->compute_overlap, 0, 1},
        {"layer_ns", f->layer_ns, 0, 1e12},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (!(limits[i].value >= limits[i].least && limits[i].value <= limits[i].most))
            return hbp__fail(context, HBP_E_INVALID, "%s is %g; it must be at least %g and at most %g",
                             limits[i].name, limits[i].value, limits[i].least, limits[i].most);
    return HBP_OK;
}

static hbp_status read_text(hbp_context *context, const char *text, const hbp_model *model,
                            const hbp_machine *machine, hbp_stack_fields *f)
{
    const char *at = text;
    int is_whole = 0; /* a preset and nothing behind it */
    if (text[strcspn(text, "=,")] != '=') {
        char name[HBP__FIELD_NAME_BYTES];
        char kernel[HBP__FIELD_NAME_BYTES];
        at = hbp__take_name(text, ":,", name);
        const int has_kernel = *at == ':';
        if (has_kernel)
            at = hbp__take_name(at + 1, ",", kernel);
        HBP__TRY(take_preset(context, name, has_kernel ? kernel : NULL, model, machine, f));
        is_whole = !*at;
        at += !is_whole;
    }
    hbp__field_values values = {.given = 0};
    if (!is_whole)
        HBP__TRY(hbp__read_fields(context, &names, text, at, &values));
    take_machine(model, machine, f);
    hbp_status status = take_values(context, &values, f);
    if (status >= 0)
        status = check_fields(context, f);
    return status < 0 ? hbp__fail_in_text(context, status, "stack", text) : HBP_OK;
}

hbp_status hbp__stack_read(hbp_context *context, const char *text, const hbp_model *model,
                           const hbp_machine *machine, hbp_stack_fields *out)
{
    hbp_stack_fields f = {.struct_size = sizeof f,
                          .recompute_products = 1,
                          .recompute_attention = 1,
                          .activations = 1,
                          .logits_kept_bytes = HBP__LOGITS_BYTES};
    if (text)
        HBP__TRY(read_text(context, text, model, machine, &f));
    else
        take_machine(model, machine, &f);
    *out = f;
    return HBP_OK;
}

hbp_status hbp_stack_read(hbp_context *context, const char *text, const hbp_model *model,
                          const hbp_machine *machine, hbp_stack_fields *fields)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, model, "model"));
    HBP__TRY(hbp__require(context, machine, "machine"));
    if (!(machine->fields.flops_per_s > 0))
        return hbp__machine_fail_missing(context, machine, UINT32_C(1) << HBP__MACHINE_flops_per_s);
    hbp_stack_fields found;
    HBP__TRY(hbp__stack_read(context, text, model, machine, &found));
    return hbp__struct_write(context, fields, &found, sizeof found, "hbp_stack_fields");
}
