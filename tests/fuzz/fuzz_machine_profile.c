/* Reads any bytes as a machine's profile; what comes out has legal fields, and sorted collectives and rates.
 */
#include "fuzz.h"
#include "io/machine/machine_profile.h"
#include <math.h>

static void check_whole(const hbp_machine *machine)
{
    for (int32_t i = 0; i < HBP__MACHINE_FIELD_COUNT; i++) {
        double value = hbp__machine_field_value(machine, i);
        CHECK(value >= 0 && isfinite(value) && (value == 0 || machine->source[i][0]));
    }
    for (int64_t i = 0; i < machine->collective_count; i++) {
        const hbp__collective *c = &machine->collectives[i];
        CHECK(c->ranks >= 2 && c->latency_ns >= 0 && c->bytes_per_s > 0 && c->spread >= -1);
        CHECK(i == 0 || c[-1].collective < c->collective ||
              (c[-1].collective == c->collective && c[-1].ranks < c->ranks));
    }
    for (int64_t i = 0; i < machine->rate_count; i++) {
        const hbp__rate *r = &machine->rates[i];
        CHECK(r->size >= 1 && r->per_s > 0 && isfinite(r->per_s) && r->spread >= 0);
        CHECK(i == 0 || r[-1].rate < r->rate || (r[-1].rate == r->rate && r[-1].size < r->size));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hbp_context *context;
    hbp_machine *machine;
    CHECK(hbp_context_create(NULL, &context) == HBP_OK);
    hbp_status status = hbp__machine_read(context, "fuzz", (const char *)data, (int64_t)size, &machine);
    CHECK((status == HBP_OK) == (machine != NULL));
    CHECK(machine || (status != HBP_E_INTERNAL && hbp_context_message(context)[0]));
    if (machine)
        check_whole(machine);
    hbp_machine_free(machine);
    hbp_context_free(context);
    return 0;
}
