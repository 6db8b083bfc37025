#define plan plan_of_around
#include "around.h"
#undef plan

int main(void)
{
    begin();
    hbp_vlm *vlm = NULL;
    hbp_vlm_plan *plan = NULL;
    hbp_machine_free(machine);
    need(hbp_machine_create_preset(ctx, "a100-80:4", &machine) >= 0, "no machine");
    need(hbp_vlm_create_preset(ctx, "internvl-1.5-26b", &vlm) >= 0, "no model");
#include "block.inc"
    need(data && v.cuts && v.recompute, "no plan");
    hbp_vlm_plan_free(plan);
    hbp_vlm_free(vlm);
    end();
    return 0;
}
