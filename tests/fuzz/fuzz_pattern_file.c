/* Reads any bytes as the file of a plan by patterns, as they are and with the checksums made right; what
 * comes out must hold together, and list as plans that do. */
#include <stdlib.h>

#include "../reseal.h"
#include "fuzz.h"

#include "base/scratch.h"
#include "data/pattern/pattern_plan.h"
#include "io/plan/pattern_file.h"

/* A few bytes may say that there are very many samples, packs or ranks. */
#define MOST_LISTED 20000

/* All steps, and the last of them alone. */
static void list(hbp_context *context, const hbp_pattern_plan *plan)
{
    hbp_plan *all = NULL, *last = NULL;
    CHECK(hbp__pattern_plan_expand(context, plan, NULL, 0, plan->steps, 1, &all) == HBP_OK);
    CHECK(hbp__plan_check(context, all) == HBP_OK);
    CHECK(hbp__plan_ns(all) == plan->predicted_ns);
    for (int64_t s = 0; s < all->steps; s++)
        CHECK(all->step_tokens[s] <= plan->tokens_per_step);
    CHECK(hbp__pattern_plan_expand(context, plan, NULL, plan->steps - 1, 1, 1, &last) == HBP_OK);
    CHECK(hbp__plan_check(context, last) == HBP_OK);
    hbp_plan_free(last);
    hbp_plan_free(all);
}

static void walk(hbp_context *context, const hbp_pattern_plan *plan)
{
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    CHECK(hbp_pattern_plan_get_summary(context, plan, &summary) == HBP_OK);
    CHECK(summary.packs >= summary.padding_packs && summary.samples > 0 && summary.tokens >= 0);
    if (summary.packs > MOST_LISTED || summary.samples > MOST_LISTED || summary.dropped > MOST_LISTED)
        return;
    hbp_status status = hbp_pattern_plan_validate(context, plan, NULL, NULL);
    CHECK(status == HBP_OK || (plan->lockstep_ranks && status == HBP_E_INVALID));
    if (status == HBP_OK)
        list(context, plan);
}

/* Whatever the file says. */
static uint64_t told_digest(const void *plan)
{
    return ((const hbp_pattern_plan *)plan)->digest;
}

static void run(hbp_context *context, const hbp__table_format *format, const uint8_t *data, size_t size)
{
    hbp__file_bytes file;
    void *plan = NULL;
    hbp__file_open_memory(data, (int64_t)size, &file);
    hbp_status status = hbp__table_load(context, format, &file, &plan);
    CHECK((status == HBP_OK) == (plan != NULL));
    CHECK(status == HBP_OK || status == HBP_E_FORMAT || status == HBP_E_VERSION || status == HBP_E_NO_MEMORY);
    CHECK(status == HBP_OK || hbp_context_message(context)[0]);
    if (plan) {
        ((hbp_pattern_plan *)plan)->digest = hbp__pattern_plan_digest(plan);
        walk(context, plan);
    }
    hbp__scratch_release(context, 0);
    hbp_pattern_plan_free(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hbp_context *context;
    CHECK(hbp_context_create(NULL, &context) == HBP_OK);
    run(context, &hbp__pattern_format, data, size);
    uint8_t *copy = malloc(size ? size : 1);
    if (copy) {
        if (size)
            memcpy(copy, data, size);
        reseal_tasks(copy, size);
        hbp__table_format format = hbp__pattern_format;
        format.digest = told_digest;
        run(context, &format, copy, size);
        free(copy);
    }
    hbp_context_free(context);
    return 0;
}
