/* What the codes of hbp_status mean, in words. */
#include "hbp/base.h"

const char *hbp_status_name(hbp_status status)
{
    switch (status) {
#define STATUS_NAME(name, value, text)                                                                       \
    case name:                                                                                               \
        return #name;
        HBP_STATUS_LIST(STATUS_NAME)
#undef STATUS_NAME
    default:
        return "HBP_E_UNKNOWN";
    }
}

const char *hbp_status_text(hbp_status status)
{
    switch (status) {
#define STATUS_TEXT(name, value, text)                                                                       \
    case name:                                                                                               \
        return text;
        HBP_STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
    default:
        return "unknown status";
    }
}

const char *hbp_version_string(void)
{
    return HBP_VERSION_STRING;
}

uint32_t hbp_version_abi(void)
{
    return HBP_ABI_VERSION;
}
