/* hbp_plan_quick: every object on the way to a plan, made and freed inside. */
#include "base/context.h"
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

hbp_status hbp_plan_quick(const int64_t *tokens, int64_t count, const char *model, const char *machine,
                          const hbp_epoch_options *options, hbp_plan **out, char *why, int64_t why_bytes)
{
    hbp_context *context = hbp__context_alone(why, why_bytes);
    if (out)
        *out = NULL;
    hbp_status status = context ? hbp__require(context, out, "out") : HBP_E_NO_MEMORY;
    if (status >= 0)
        status = plan_quick(context, tokens, count, model, machine, options, out);
    return hbp__context_end(context, status, why, why_bytes);
}
