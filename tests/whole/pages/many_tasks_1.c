#include "around.h"

int main(void)
{
    begin();
    const int32_t gpus[] = {1, 2, 4, 8};
    const int64_t ns[] = {4000000, 2300000, 1400000, 1100000}, points = 4;
    int32_t encoder, decoder;
    hbp_graph *graph = NULL;
    hbp_task_schedule *schedule = NULL;
#include "block.inc"
    need(v.waves > 0, "no schedule");
    hbp_task_schedule_free(schedule);
    hbp_graph_free(graph);
    end();
    return 0;
}
