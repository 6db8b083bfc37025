/* A cost scaled to a run whose speed is known. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fields.h"
#include "base/options.h"
#include "base/records.h"
#include "cost/cost.h"
#include "hbp/lengths.h"

/* Behind the struct's own row and that of struct_size. */
static const hbp__record *record_of_field(int64_t index)
{
    return hbp__record_of("hbp_anchor") + 2 + index;
}

static const char *field_name(int64_t index)
{
    return record_of_field(index)->name;
}

static const hbp__other_word other_words[] = {
    {"tokens_per_s", "tokens_per_s_per_gpu"},
    {"sequence_length", "sequence_tokens"},
    {"micro_batch_size", "sequences_per_micro_batch"},
    {"gradient_accumulation_steps", "micro_batches_per_step"},
    {NULL, NULL},
};

enum { FIELDS = 6 };

static const hbp__field_names names = {"anchor", field_name, FIELDS, other_words, 1};

hbp_status hbp_anchor_read(hbp_context *context, const char *text, hbp_anchor *anchor)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, text, "text"));
    hbp__field_values values;
    hbp_anchor a = {.struct_size = sizeof a};
    HBP__TRY(hbp__read_fields(context, &names, text, text, &values));
    for (int32_t i = 0; i < FIELDS; i++) {
        char *at = (char *)&a + record_of_field(i)->offset;
        const double value = values.value[i],
                     most = record_of_field(i)->bytes == 4 ? INT32_MAX : HBP_MAX_LENGTH;
        const int64_t whole = value <= most ? (int64_t)value : -1;
        const int32_t narrow = (int32_t)whole;
        if (i == FIELDS - 1) {
            memcpy(at, &value, sizeof value);
            continue;
        }
        if ((double)whole != value)
            return hbp__fail(context, HBP_E_INVALID,
                             "anchor '%.200s': %s is %.15g; it must be a whole number "
                             "in 0..%.0f",
                             text, field_name(i), value, most);
        memcpy(at, record_of_field(i)->bytes == 4 ? (const void *)&narrow : (const void *)&whole,
               record_of_field(i)->bytes);
    }
    return hbp__struct_write(context, anchor, &a, sizeof a, "hbp_anchor");
}

/* The anchor with its defaults filled in. */
static hbp_status read_anchor(hbp_context *context, const hbp_cost *prior, const hbp_anchor *given,
                              hbp_anchor *a)
{
    HBP__TRY(hbp__options_read(context, a, sizeof *a, given, "hbp_anchor"));
    a->sp = a->sp ? a->sp : 1;
    a->sequences_per_micro_batch = a->sequences_per_micro_batch ? a->sequences_per_micro_batch : 1;
    a->micro_batches_per_step = a->micro_batches_per_step ? a->micro_batches_per_step : 1;
    if (hbp__cost_row(prior, a->sp) < 0)
        return hbp__fail(context, HBP_E_INVALID, "sp is %d, which is not a degree of the prior (1 to %d)",
                         (int)a->sp, (int)prior->degree[prior->terms.degrees - 1]);
    HBP__TRY(hbp__check_range(context, "recompute", a->recompute, 0, prior->terms.layers));
    HBP__TRY(hbp__check_range(context, "sequences_per_micro_batch", a->sequences_per_micro_batch, 1,
                              HBP_MAX_LENGTH / a->sequence_tokens));
    if (isfinite(a->tokens_per_s_per_gpu) && a->tokens_per_s_per_gpu > 0)
        return HBP_OK;
    return hbp__fail(context, HBP_E_INVALID, "tokens_per_s_per_gpu is %g; it must be finite and above 0",
                     a->tokens_per_s_per_gpu);
}

/* The time of the anchor's step over the prior's. */
static hbp_status find_ratio(hbp_context *context, const hbp_cost *prior, const hbp_anchor *a, double *ratio)
{
    const double length = (double)a->sequence_tokens, steps = (double)a->micro_batches_per_step;
    const double tokens = length * (double)a->sequences_per_micro_batch;
    const double least = prior->origin.peak_ns_per_token + prior->origin.peak_ns_per_token_squared * length;
    if (least > 0 && a->tokens_per_s_per_gpu * least > 1e9)
        return hbp__fail(context, HBP_E_INVALID,
                         "tokens_per_s_per_gpu is %g; at the peak of the GPU's products it would be %.0f",
                         a->tokens_per_s_per_gpu, 1e9 / least);
    const double predicted =
        hbp__cost_ns(prior, hbp__cost_row(prior, a->sp), a->recompute, tokens, tokens * length, 0) * steps +
        prior->terms.step_ns;
    *ratio = tokens * steps / a->sp / a->tokens_per_s_per_gpu * 1e9 / predicted;
    if (isfinite(*ratio) && *ratio > 0)
        return HBP_OK;
    return hbp__fail(context, HBP_E_INVALID,
                     "tokens_per_s_per_gpu is %g; the prior's step takes %g ns, which nothing scales to that",
                     a->tokens_per_s_per_gpu, predicted);
}

static hbp_status anchor_cost(hbp_context *context, const hbp_cost *prior, const hbp_anchor *given,
                              hbp_cost **out)
{
    hbp_anchor a;
    double ratio = 1;
    HBP__TRY(read_anchor(context, prior, given, &a));
    HBP__TRY(find_ratio(context, prior, &a, &ratio));
    char source[HBP__COST_SOURCE_BYTES];
    snprintf(source, sizeof source, "run of %.6g tokens/s per GPU", a.tokens_per_s_per_gpu);
    HBP__TRY(hbp__cost_copy(context, prior, out));
    hbp__cost_scale_times(prior, ratio, source, *out);
    const hbp_status status = hbp__cost_check_terms(context, &(*out)->terms);
    if (status < 0) {
        hbp_cost_free(*out);
        *out = NULL;
    }
    return status;
}

hbp_status hbp_cost_anchor(hbp_context *context, const hbp_cost *prior, const hbp_anchor *anchor,
                           hbp_cost **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, prior, "prior"));
    HBP__TRY(hbp__require(context, anchor, "anchor"));
    return anchor_cost(context, prior, anchor, out);
}
