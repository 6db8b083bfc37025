/* Reads any bytes as a plan file, as they are and with the checksums made right; what comes out must keep a
 * plan's promises, whole and step by step; a cost in the header has terms that a cost may have. */
#include <stdlib.h>

#include "../reseal.h"
#include "fuzz.h"
#include "hbp/io.h"

#include "base/scratch.h"
#include "cost/cost.h"
#include "io/cost/cost_file.h"
#include "io/plan/plan_file.h"

static void check_status(hbp_context *context, hbp_status status, const hbp_plan *plan)
{
    CHECK((status == HBP_OK) == (plan != NULL));
    CHECK(status == HBP_OK || status == HBP_E_FORMAT || status == HBP_E_VERSION || status == HBP_E_NO_MEMORY);
    CHECK(status == HBP_OK || hbp_context_message(context)[0]);
    CHECK(!plan || hbp__plan_check(context, plan) == HBP_OK);
}

static void check_cost(hbp_context *context, const hbp_plan_file *file)
{
    hbp_cost *cost, *again;
    int64_t mark = hbp__scratch_mark(context);
    hbp_status status = hbp__leave(context, mark, hbp__cost_of_plan(context, file, &cost));
    CHECK((status == HBP_OK) == (cost != NULL));
    CHECK(status == HBP_OK || status == HBP_E_FORMAT || status == HBP_E_NO_MEMORY);
    if (!cost)
        return;
    CHECK(hbp_cost_create_terms(context, &cost->terms, &again) == HBP_OK);
    hbp_cost_free(again);
    hbp_cost_free(cost);
}

static void run(hbp_context *context, const uint8_t *data, size_t size)
{
    hbp_plan_file *file = NULL;
    hbp_plan *plan = NULL;
    if (hbp__plan_file_open_memory(context, data, (int64_t)size, &file) < 0) {
        CHECK(!file && hbp_context_message(context)[0]);
        return;
    }
    hbp_status loaded = hbp__plan_file_load(context, file, &plan);
    check_status(context, loaded, plan);
    hbp_plan_free(plan);
    check_cost(context, file);
    for (int64_t step = 0; step < file->summary.steps && step < 8; step++) {
        hbp_status status = hbp_plan_file_read(context, file, step, 1, &plan);
        check_status(context, status, plan);
        CHECK(!plan || plan->steps == 1);
        hbp_plan_free(plan);
    }
    hbp_plan_file_free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hbp_context *context;
    CHECK(hbp_context_create(NULL, &context) == HBP_OK);
    run(context, data, size);
    uint8_t *copy = malloc(size ? size : 1);
    if (copy) {
        if (size)
            memcpy(copy, data, size);
        reseal(copy, size);
        run(context, copy, size);
        free(copy);
    }
    hbp_context_free(context);
    return 0;
}
