#include "around.h"

int main(void)
{
    begin();
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    hbp_cost_get_terms(ctx, cost, &terms);
    terms.ns_per_vision = 5e6, terms.vision_bytes = 1e8;
    hbp_cost_free(cost);
    need(hbp_cost_create_terms(ctx, &terms, &cost) >= 0, "no cost");
#include "block.inc"
    need(plan != NULL, "no plan");
    end();
    return 0;
}
