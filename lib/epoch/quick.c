/* hbp_plan_quick: every object on the way to a plan, made and freed inside. */
#include <string.h>

#include "base/context.h"
#include "base/utf8.h"
#include "cost/cost.h"
#include "data/lengths/lengths_make.h"
#include "data/machine/machine.h"
#include "data/model/model.h"
#include "epoch/epoch.h"
#include "hbp/epoch.h"

static hbp_status plan_quick(hbp_context *context, const int64_t *tokens, int64_t count,
                             const char *model_text, const char *machine_text,
                             const hbp_epoch_options *options, hbp_plan **out)
{
    hbp_lengths *lengths = NULL;
    hbp_model *model = NULL;
    hbp_machine *machine = NULL;
    hbp_cost *cost = NULL;
    hbp_status status = hbp__require(context, tokens, "tokens");
    if (status >= 0)
        status = hbp__lengths_create_i64(context, tokens, count, NULL, &lengths);
    if (status >= 0)
        status = hbp__model_create_preset(context, model_text, &model);
    if (status >= 0)
        status = hbp__machine_create_preset(context, machine_text, &machine);
    if (status >= 0)
        status = hbp__cost_create(context, model, machine, NULL, &cost);
    if (status >= 0)
        status = hbp__plan_epoch(context, lengths, cost, options, out);
    hbp_cost_free(cost);
    hbp_machine_free(machine);
    hbp_model_free(model);
    hbp_lengths_free(lengths);
    return status;
}

/* What fits, cut between characters. */
static void copy_message(char *to, int64_t room, const char *text)
{
    int64_t at = 0;
    for (int bytes; text[at] && (bytes = hbp__utf8_bytes(text + at)) && at + bytes < room; at += bytes)
        memcpy(to + at, text + at, (size_t)bytes);
    to[at] = '\0';
}

hbp_status hbp_plan_quick(const int64_t *tokens, int64_t count, const char *model, const char *machine,
                          const hbp_epoch_options *options, hbp_plan **out, char *why, int64_t why_bytes)
{
    if (why && why_bytes > 0)
        *why = 0;
    if (!out)
        return HBP_E_INVALID;
    *out = NULL;
    hbp__memory memory = hbp__memory_default();
    hbp_context *context = hbp__context_new(&memory);
    hbp_status status =
        context ? plan_quick(context, tokens, count, model, machine, options, out) : HBP_E_NO_MEMORY;
    if (status < 0 && why && why_bytes > 0)
        copy_message(why, why_bytes, context ? hbp_context_message(context) : hbp_status_text(status));
    hbp_context_free(context);
    return status;
}
