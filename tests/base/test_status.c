#include "test.h"

START_TEST(every_status_has_a_name_and_a_text)
{
#define CHECK_STATUS(name, value, text)                                                                      \
    ck_assert_int_eq(name, value);                                                                           \
    ck_assert_str_eq(hbp_status_name(value), #name);                                                         \
    ck_assert_str_eq(hbp_status_text(value), text);
    HBP_STATUS_LIST(CHECK_STATUS)
    ck_assert_str_eq(hbp_status_name(-999), "HBP_E_UNKNOWN");
    ck_assert_str_eq(hbp_status_text(77), "unknown status");
}
END_TEST

START_TEST(headers_and_library_agree_on_the_version)
{
    ck_assert_str_eq(hbp_version_string(), HBP_VERSION_STRING);
    ck_assert_uint_eq(hbp_version_abi(), HBP_ABI_VERSION);
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", HBP_VERSION_MAJOR, HBP_VERSION_MINOR, HBP_VERSION_PATCH);
    ck_assert_str_eq(text, HBP_VERSION_STRING);
}
END_TEST

TEST_MAIN("status", every_status_has_a_name_and_a_text, headers_and_library_agree_on_the_version)
