#include "base/quantity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

/* A unit is value x 10^ten x 2^two of what a field has. */
typedef struct unit {
    const char *name;
    int32_t ten, two;
} unit;

/* Of bytes, of rates and of operations, behind a prefix. A bit is an eighth of a byte. */
static const unit of_bytes[] = {{"B", 0, 0}, {NULL, 0, 0}};
static const unit of_rates[] = {{"B/s", 0, 0},  {"Bps", 0, 0},    {"b/s", 0, -3},
                                {"bps", 0, -3}, {"bit/s", 0, -3}, {NULL, 0, 0}};
static const unit of_flops[] = {{"FLOPS", 0, 0},  {"FLOP/s", 0, 0}, {"FLOPs", 0, 0},
                                {"flop/s", 0, 0}, {"flops", 0, 0},  {NULL, 0, 0}};
/* Micro is written with the sign of it, with the Greek letter, or with a u. */
static const unit of_times[] = {{"ns", 0, 0}, {"us", 3, 0}, {"\xc2\xb5s", 3, 0}, {"\xce\xbcs", 3, 0},
                                {"ms", 6, 0}, {"s", 9, 0},  {NULL, 0, 0}};
static const unit of_shares[] = {{"%", -2, 0}, {NULL, 0, 0}};
static const unit of_tokens[] = {{"K", 0, 10}, {"k", 0, 10}, {"M", 0, 20}, {"m", 0, 20},
                                 {"G", 0, 30}, {"g", 0, 30}, {NULL, 0, 0}};

static const struct kind {
    const unit *units; /* NULL: none */
    int has_prefixes;
    const char *says;
} kinds[] = {
    [HBP__OF_ITEMS] = {NULL, 0, "a finite decimal number, without a unit"},
    [HBP__OF_TOKENS] = {of_tokens, 0,
                        "a number of tokens such as 131072 or 128K: K, M and G are powers of 1024"},
    [HBP__OF_BYTES] =
        {of_bytes, 1,
         "a number of bytes or one with a unit, such as 80GB or 80GiB: B; kB, MB, GB, TB, powers of "
         "1000; KiB, MiB, GiB, TiB, powers of 1024"},
    [HBP__OF_BYTES_PER_S] =
        {of_rates, 1,
         "a number of bytes per second or one with a unit, such as 50GB/s or, in bits, 400Gb/s: "
         "kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, TiB/s; Mb/s, Gb/s, Tb/s"},
    [HBP__OF_FLOPS_PER_S] =
        {of_flops, 1,
         "a number of operations per second or one with a unit, such as 989TFLOPS: GFLOPS, "
         "TFLOPS, PFLOPS, or TFLOP/s"},
    [HBP__OF_NS] = {of_times, 0, "a number of nanoseconds or one with a unit, such as 20us: ns, us, ms, s"},
    [HBP__OF_SHARE] = {of_shares, 0, "a share such as 0.45 or 45%"},
};

static int ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

hbp__quantity hbp__quantity_of(const char *field)
{
    static const struct {
        const char *end;
        hbp__quantity quantity;
    } ends[] = {{"flops_per_s", HBP__OF_FLOPS_PER_S},
                {"bytes_per_s", HBP__OF_BYTES_PER_S},
                {"_bytes", HBP__OF_BYTES},
                {"_ns", HBP__OF_NS},
                {"_efficiency", HBP__OF_SHARE},
                {"_overlap", HBP__OF_SHARE},
                {"tokens", HBP__OF_TOKENS},
                {"_length", HBP__OF_TOKENS},
                {"tokens_per_step", HBP__OF_TOKENS},
                {"tokens_per_rank", HBP__OF_TOKENS}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_in(field, ends[i].end))
            return ends[i].quantity;
    return HBP__OF_ITEMS;
}

const char *hbp__quantity_says(hbp__quantity quantity)
{
    return kinds[quantity].says;
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* How much of text [bytes] may be a number; an e is its exponent's where digits follow. */
static int64_t number_length(const char *text, int64_t bytes)
{
    int64_t i = bytes > 0 && (*text == '-' || *text == '+');
    while (i < bytes && (is_digit(text[i]) || text[i] == '.'))
        i++;
    if (i < bytes && (text[i] == 'e' || text[i] == 'E')) {
        int64_t digits = i + 1 + (i + 1 < bytes && (text[i + 1] == '-' || text[i + 1] == '+'));
        if (digits < bytes && is_digit(text[digits]))
            for (i = digits; i < bytes && is_digit(text[i]);)
                i++;
    }
    return i;
}

static int is_unit(const unit *u, const char *text, int64_t bytes)
{
    return (int64_t)strlen(u->name) == bytes && memcmp(u->name, text, (size_t)bytes) == 0;
}

/* "k", "M", "Gi": powers of 1000 and of 1024. Returns its length. */
static int64_t read_prefix(const char *text, int64_t bytes, unit *scale)
{
    static const char prefixes[] = "kMGTP";
    char letter = bytes ? *text : '\0';
    const char *at = letter ? strchr(prefixes, letter == 'K' ? 'k' : letter) : NULL;
    if (!at)
        return 0;
    int32_t power = 1 + (int32_t)(at - prefixes);
    if (bytes > 1 && text[1] == 'i') {
        scale->two += 10 * power;
        return 2;
    }
    scale->ten += 3 * power;
    return 1;
}

/* What one of the unit is; 0: none of that name. */
static int find_unit(hbp__quantity quantity, const char *text, int64_t bytes, unit *scale)
{
    const struct kind *kind = &kinds[quantity];
    int64_t prefix = kind->has_prefixes ? read_prefix(text, bytes, scale) : 0;
    for (const unit *u = kind->units; u && u->name; u++)
        if (is_unit(u, text + prefix, bytes - prefix)) {
            scale->ten += u->ten;
            scale->two += u->two;
            return 1;
        }
    return 0;
}

/* Whether a number has a digit that is not 0, its exponent's left aside. */
static int is_above_zero(const char *text, int64_t digits)
{
    for (int64_t i = 0; i < digits && text[i] != 'e' && text[i] != 'E'; i++)
        if (text[i] >= '1' && text[i] <= '9')
            return 1;
    return 0;
}

int hbp__read_quantity(const char *text, int64_t bytes, hbp__quantity quantity, double *value)
{
    int64_t digits = number_length(text, bytes), at = digits;
    unit scale = {NULL, 0, 0};
    while (at > 0 && at < bytes && text[at] == ' ')
        at++;
    if (at < bytes && !find_unit(quantity, text + at, bytes - at, &scale))
        return 0;
    if (!hbp__read_scaled(text, at == bytes ? bytes : digits, scale.ten, value))
        return 0;
    for (; scale.two < 0; scale.two++)
        *value /= 2;
    for (; scale.two > 0; scale.two--)
        *value *= 2;
    if (quantity == HBP__OF_BYTES && at < bytes) /* 79.6GiB: there is no part of a byte */
        *value = round(*value);
    if (*value == 0 && is_above_zero(text, digits))
        return -1;
    return fabs(*value) <= 1.7976931348623157e308;
}

hbp_status hbp__read_quantity_of(hbp_context *context, const char *field, const char *text, int64_t bytes,
                                 double *value)
{
    hbp__quantity quantity = hbp__quantity_of(field);
    const int read = hbp__read_quantity(text, bytes, quantity, value);
    if (read > 0)
        return HBP_OK;
    if (read < 0)
        return hbp__fail(context, HBP_E_INVALID, "%.64s is '%.*s', which rounds to 0; it must be 0 or larger",
                         field, (int)(bytes < 64 ? bytes : 64), text);
    return hbp__fail(context, HBP_E_INVALID, "%.64s is '%.*s'; it must be %s", field,
                     (int)(bytes < 64 ? bytes : 64), text, hbp__quantity_says(quantity));
}

hbp__said hbp__say_bytes(int64_t bytes)
{
    static const char *const names[] = {"MiB", "GiB", "TiB"};
    hbp__said said;
    int scale = 0;
    double value = (double)bytes / (1 << 20);
    if (bytes > -(1 << 20) && bytes < 1 << 20) {
        snprintf(said.text, sizeof said.text, "%d byte%s", (int)bytes, hbp__ending(bytes));
        return said;
    }
    for (; scale < 2 && (value >= 1024 || value <= -1024); scale++)
        value /= 1024;
    snprintf(said.text, sizeof said.text, "%.1f %s", value, names[scale]);
    return said;
}

hbp_status hbp_read_quantity(hbp_context *context, const char *field, const char *text, double *value)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, field, "field"));
    HBP__TRY(hbp__require(context, text, "text"));
    HBP__TRY(hbp__require(context, value, "value"));
    return hbp__read_quantity_of(context, field, text, (int64_t)strlen(text), value);
}
