#include "around.h"

int main(void)
{
    begin();
    hbp_epoch_options options = {.struct_size = sizeof options, .samples_per_step = 512};
    need(hbp_plan_epoch(ctx, lengths, cost, &options, &plan) >= 0, "no plan");
    int64_t step = 3;
#include "block.inc"
    need(step == 3, "another step");
    end();
    return 0;
}
