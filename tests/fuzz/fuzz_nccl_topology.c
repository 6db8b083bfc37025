/* Applies any bytes as NCCL's topology; a machine changes as a whole or not at all, and stays sound. */
#include <string.h>

#include "data/machine/machine.h"
#include "fuzz.h"
#include "hbp/io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hbp_context *context;
    hbp_machine *machine;
    CHECK(hbp_context_create(NULL, &context) == HBP_OK);
    CHECK(hbp_machine_create_preset(context, "h100:2", &machine) == HBP_OK);
    hbp_machine before = *machine;
    hbp_status status = hbp_machine_apply_nccl_topology(context, machine, (const char *)data, (int64_t)size);
    if (status < 0) {
        CHECK(status == HBP_E_FORMAT || status == HBP_E_VERSION);
        CHECK(hbp_context_message(context)[0]);
        CHECK(memcmp(machine, &before, sizeof before) == 0);
    } else {
        const hbp_machine_fields *f = &machine->fields;
        CHECK(f->gpus_per_node >= 1 && f->domain_gpus >= 1);
        CHECK(f->nvlink_bytes_per_s >= 0 && f->network_bytes_per_s > 0);
        CHECK(f->nodes == 2 && f->hbm_bytes == before.fields.hbm_bytes);
    }
    hbp_machine_free(machine);
    hbp_context_free(context);
    return 0;
}
