/* Copies a plan file and states a contract in the copy, whatever the planner recorded: what the command
 * prints of one. usage: state_contract FROM TO */
#include <stdio.h>

#include "data/plan/plan.h"
#include "hbp/io.h"

int main(int argc, char **argv)
{
    hbp_context *context = NULL;
    hbp_plan *plan = NULL;
    hbp_status status = argc == 3 ? hbp_context_create(NULL, &context) : HBP_E_INVALID;
    if (status >= 0)
        status = hbp_plan_load(context, argv[1], &plan);
    if (status >= 0) {
        plan->composition = HBP_COMPOSITION_STRATIFIED;
        plan->samples_per_step = 0;
        plan->tokens_per_step = 524288;
        plan->hierarchy_ns = INT64_C(4140000000000);
        plan->mixture_ns = INT64_C(4248000000000);
        status = hbp_plan_save(context, plan, argv[2], NULL);
    }
    if (status < 0)
        fprintf(stderr, "state_contract: %s\n", hbp_context_message(context));
    hbp_plan_free(plan);
    hbp_context_free(context);
    return status < 0;
}
