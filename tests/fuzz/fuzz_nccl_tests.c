/* Reads any bytes as nccl-tests' output for each collective; what comes out is a collective that a cost can
 * use. */
#include "data/machine/machine.h"
#include "fuzz.h"
#include "hbp/io.h"
#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hbp_context *context;
    hbp_machine *machine;
    CHECK(hbp_context_create(NULL, &context) == HBP_OK);
    CHECK(hbp_machine_create_preset(context, "h100:2", &machine) == HBP_OK);
    for (int32_t collective = 0; collective < HBP_COLLECTIVE_COUNT; collective += 3) {
        hbp_machine_collective c = {.struct_size = sizeof c};
        hbp_status status = hbp_machine_apply_nccl_tests(context, machine, collective, 16,
                                                         data ? (const char *)data : "", (int64_t)size);
        int found = hbp_machine_get_collective(machine, collective, 16, &c);
        CHECK(found == (status == HBP_OK));
        CHECK(found || (status != HBP_E_INTERNAL && hbp_context_message(context)[0]));
        CHECK(!found ||
              (c.latency_ns >= 0 && isfinite(c.latency_ns) && c.bytes_per_s > 0 && isfinite(c.bytes_per_s)));
    }
    hbp_machine_free(machine);
    hbp_context_free(context);
    return 0;
}
