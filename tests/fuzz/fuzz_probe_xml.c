/* Reads any bytes as hwloc's XML. */
#include "fuzz.h"
#include "io/machine/probe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hbp_context *context;
    hbp__probe probe = {0};
    CHECK(hbp_context_create(NULL, &context) == HBP_OK);
    hbp_status status = hbp__probe_xml_data(context, (const char *)data, (int64_t)size, &probe);
    if (status < 0)
        CHECK((status == HBP_E_FORMAT || status == HBP_E_OVERFLOW) && hbp_context_message(context)[0]);
    else
        CHECK(probe.units > 0 && probe.memory_bytes >= 0);
    hbp_context_free(context);
    return 0;
}
