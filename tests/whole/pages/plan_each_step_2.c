#include "around.h"

int main(void)
{
    enum { capacity = 256 };
    begin();
    need(hbp_plan_step(ctx, batch_lengths, cost, NULL, &plan) >= 0, "no plan");
    hbp_rank_pack packs[capacity];
    int64_t m, count = 0;
    int32_t rank = 5;
#include "block.inc"
    need(count > 0, "no packs");
    end();
    return 0;
}
