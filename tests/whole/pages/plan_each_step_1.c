#include "around.h"

static int64_t trained;

static void train(const hbp_plan *of_step)
{
    hbp_plan_view view = {.struct_size = sizeof view};
    hbp_plan_get_view(of_step, &view);
    trained += view.samples;
}

int main(void)
{
    begin();
    hbp_stepper *stepper = NULL;
    int64_t count = BATCH, next_count = BATCH, step, steps = 3;
    const int64_t *next_tokens = tokens + BATCH;
#include "block.inc"
    plan = NULL;
    need(trained == steps * BATCH, "not every sample was trained");
    end();
    return 0;
}
