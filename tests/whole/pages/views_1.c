#include "around.h"

int main(void)
{
    begin();
    need(hbp_plan_epoch(ctx, batch_lengths, cost, NULL, &plan) >= 0, "no plan");
#include "block.inc"
    need(v.packs > 0, "no packs");
    end();
    return 0;
}
