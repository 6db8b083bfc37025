#include "keep.h"
#include "test.h"

#include <string.h>

#include "base/quantity.h"

static const struct good {
    const char *field, *text;
    double value;
} goods[] = {
    {"hbm_bytes", "85899345920", 85899345920},
    {"hbm_bytes", "80GiB", 85899345920},
    {"hbm_bytes", "80GB", 80e9},
    {"hbm_bytes", "80 GB", 80e9},
    {"hbm_bytes", "512MiB", 536870912},
    {"hbm_bytes", "1.5KiB", 1536},
    {"hbm_bytes", "1kB", 1000},
    {"hbm_bytes", "1KB", 1000},
    {"hbm_bytes", "2TiB", 2199023255552},
    {"hbm_bytes", "1e3B", 1000},
    {"hbm_bytes", "79.6GiB", 85469849190}, /* 85469849190.4 */
    {"hbm_bytes", "0.1GiB", 107374182},
    {"hbm_bytes", "4.1GiB", 4402341478},
    {"hbm_bytes", "0.6B", 1},
    {"hbm_bytes", "0GiB", 0},
    {"hbm_bytes", "0e-400GiB", 0},
    {"hbm_bytes", "1.5", 1.5}, /* whole bytes are asked for where they are set */
    {"max_length", "0.3K", 307.2},
    {"hbm_bytes", "-1GiB", -1073741824},
    {"hbm_bytes_per_s", "3.35TB/s", 3.35e12},
    {"hbm_bytes_per_s", "3350GB/s", 3.35e12},
    {"network_bytes_per_s", "400Gb/s", 50e9},
    {"network_bytes_per_s", "400Gbps", 50e9},
    {"network_bytes_per_s", "400Gbit/s", 50e9},
    {"network_bytes_per_s", "50GB/s", 50e9},
    {"network_bytes_per_s", "1GiB/s", 1073741824},
    {"network_bytes_per_s", "25e9", 25e9},
    {"network_bytes_per_s", "8b/s", 1},
    {"bytes_per_s", "1MB/s", 1e6},
    {"flops_per_s", "989TFLOPS", 989e12},
    {"flops_per_s", "989TFLOP/s", 989e12},
    {"flops_per_s", "2.25PFLOPS", 2.25e15},
    {"flops_per_s", "989e12", 989e12},
    {"nvlink_latency_ns", "20us", 20000},
    {"nvlink_latency_ns", "20\xc2\xb5s", 20000},
    {"nvlink_latency_ns", "20\xce\xbcs", 20000},
    {"nvlink_latency_ns", "2ms", 2e6},
    {"nvlink_latency_ns", "0.5s", 5e8},
    {"nvlink_latency_ns", "7ns", 7},
    {"nvlink_latency_ns", "7", 7},
    {"gemm_efficiency", "45%", 0.45},
    {"gemm_efficiency", "0.45", 0.45},
    {"dp_overlap", "90 %", 0.9},
    {"max_length", "128K", 131072},
    {"max_length", "128k", 131072},
    {"max_length", "0.5M", 524288},
    {"max_length", "1e5", 100000},
    {"tokens_per_step", "4M", 4194304},
    {"max_tokens", "1G", 1073741824},
    {"tokens_per_rank", "8192", 8192},
    {"layers", "32", 32},
};

START_TEST_IN_CONTEXT(units_are_read_by_the_field)
{
    for (size_t i = 0; i < sizeof goods / sizeof *goods; i++) {
        double value = -7;
        OK(context, hbp_read_quantity(context, goods[i].field, goods[i].text, &value));
        ck_assert_msg(value == goods[i].value, "%s=%s is %.17g", goods[i].field, goods[i].text, value);
    }
}
END_TEST

static const struct wrong {
    const char *field, *text, *message;
} wrongs[] = {
    {"hbm_bytes", "80Gb", "hbm_bytes is '80Gb'; it must be a number of bytes or one with a unit"},
    {"hbm_bytes", "80GB/s", "hbm_bytes is '80GB/s'"},
    {"hbm_bytes", "80G", "KiB, MiB, GiB, TiB, powers of 1024"},
    {"hbm_bytes", "80gb", "such as 80GB or 80GiB"},
    {"hbm_bytes", "GiB", "hbm_bytes is 'GiB'"},
    {"hbm_bytes", "", "hbm_bytes is ''"},
    {"hbm_bytes", " ", "hbm_bytes is ' '"},
    {"hbm_bytes", "80 ", "hbm_bytes is '80 '"},
    {"hbm_bytes", " 80", "hbm_bytes is ' 80'"},
    {"hbm_bytes", "80GiBs", "hbm_bytes is '80GiBs'"},
    {"hbm_bytes", "80Gi", "hbm_bytes is '80Gi'"},
    {"hbm_bytes", "8 0GB", "hbm_bytes is '8 0GB'"},
    {"hbm_bytes", "1.2.3GB", "hbm_bytes is '1.2.3GB'"},
    {"hbm_bytes", "0x10", "hbm_bytes is '0x10'"},
    {"hbm_bytes", "1e400", "hbm_bytes is '1e400'"},
    {"hbm_bytes", "1e308TiB", "hbm_bytes is '1e308TiB'"},
    {"hbm_bytes", "1e-400GiB", "hbm_bytes is '1e-400GiB', which rounds to 0; it must be 0 or larger"},
    {"hbm_bytes", "0.4B", "hbm_bytes is '0.4B', which rounds to 0"},
    {"flops_per_s", "1e-400", "flops_per_s is '1e-400', which rounds to 0"},
    {"hbm_bytes", "-1e400", "hbm_bytes is '-1e400'"},
    {"hbm_bytes", "nan", "hbm_bytes is 'nan'"},
    {"network_bytes_per_s", "400Gb", "such as 50GB/s or, in bits, 400Gb/s"},
    {"network_bytes_per_s", "50GB", "network_bytes_per_s is '50GB'"},
    {"flops_per_s", "989T", "such as 989TFLOPS: GFLOPS, TFLOPS, PFLOPS"},
    {"flops_per_s", "989TiFLOP", "flops_per_s is '989TiFLOP'"},
    {"nvlink_latency_ns", "5min", "such as 20us: ns, us, ms, s"},
    {"nvlink_latency_ns", "5kns", "nvlink_latency_ns is '5kns'"},
    {"gemm_efficiency", "45pct", "a share such as 0.45 or 45%"},
    {"max_length", "128KiB", "a number of tokens such as 131072 or 128K"},
    {"max_length", "1,000", "max_length is '1,000'"},
    {"max_length", "1_000", "max_length is '1_000'"},
    {"layers", "4K", "layers is '4K'; it must be a finite decimal number, without a unit"},
};

START_TEST_IN_CONTEXT(other_units_are_refused_with_those_there_are)
{
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        double value;
        FAILS(context, HBP_E_INVALID, wrongs[i].message,
              hbp_read_quantity(context, wrongs[i].field, wrongs[i].text, &value));
    }
    double value;
    FAILS(context, HBP_E_INVALID, "text is NULL", hbp_read_quantity(context, "layers", NULL, &value));
    FAILS(context, HBP_E_INVALID, "field is NULL", hbp_read_quantity(context, NULL, "1", &value));
    FAILS(context, HBP_E_INVALID, "value is NULL", hbp_read_quantity(context, "layers", "1", NULL));
}
END_TEST

/* A unit moves the point, so that the number is rounded once: as one reads the digits with an exponent. */
START_TEST_IN_CONTEXT(decimal_units_round_once)
{
    char text[64], same[64];
    for (int i = 1; i < 2000; i++) {
        double value, plain;
        snprintf(text, sizeof text, "%d.%03dTB/s", i % 7, i);
        snprintf(same, sizeof same, "%d.%03de12", i % 7, i);
        OK(context, hbp_read_quantity(context, "hbm_bytes_per_s", text, &value));
        OK(context, hbp_read_quantity(context, "hbm_bytes_per_s", same, &plain));
        ck_assert_msg(value == plain, "%s", text);
    }
}
END_TEST

START_TEST(bytes_are_said_in_the_largest_unit)
{
    static const struct {
        int64_t bytes;
        const char *text;
    } rows[] = {{0, "0 bytes"},
                {1, "1 byte"},
                {1000, "1000 bytes"},
                {-5, "-5 bytes"},
                {1 << 20, "1.0 MiB"},
                {INT64_C(81604378624), "76.0 GiB"},
                {INT64_C(3) << 40, "3.0 TiB"},
                {INT64_C(3) << 52, "12288.0 TiB"},
                {INT64_MIN, "-8388608.0 TiB"},
                {INT64_MAX, "8388608.0 TiB"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_str_eq(hbp__say_bytes(rows[i].bytes).text, rows[i].text);
}
END_TEST

TEST_MAIN("quantity", units_are_read_by_the_field, other_units_are_refused_with_those_there_are,
          decimal_units_round_once, bytes_are_said_in_the_largest_unit)
