/* The names of all presets: models, machines, vision-language models and workloads of many tasks. */
#include <string.h>

#include "data/machine/machine.h"
#include "data/model/model.h"
#include "data/model/vlm.h"
#include "data/model/workload_presets.h"
#include "data/stack/stack.h"

const char *hbp_preset_get_name(const char *family, int64_t index)
{
    static const struct {
        const char *family;
        const char *(*name)(int64_t index);
    } families[] = {
        {"model", hbp__model_preset_name}, {"machine", hbp__machine_preset_name},
        {"vlm", hbp__vlm_preset_name},     {"workload", hbp__workload_name},
        {"stack", hbp__stack_preset_name}, {"attention", hbp__stack_kernel_name},
    };
    for (size_t i = 0; family && i < sizeof families / sizeof *families; i++)
        if (strcmp(families[i].family, family) == 0)
            return families[i].name(index);
    return NULL;
}
