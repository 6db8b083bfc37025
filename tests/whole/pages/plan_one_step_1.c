#include "around.h"

int main(void)
{
    begin();
#include "block.inc"
    need(summary.predicted_ns > 0 && summary.bound_ns > 0, "no plan");
    end();
    return 0;
}
