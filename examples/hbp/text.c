/* Numbers as people read them, and as JSON has them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"

shown show_count(int64_t value)
{
    shown out;
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)value);
    int first = digits[0] == '-';
    char *at = out.s;
    for (int i = 0; i < length; i++) {
        if (i > first && (length - i) % 3 == 0)
            *at++ = ',';
        *at++ = digits[i];
    }
    *at = 0;
    return out;
}

shown show_number(int64_t value, const char *noun)
{
    shown out, count = show_count(value);
    size_t length = strlen(noun);
    const char *ending = value == 1 ? "" : length > 2 && strcmp(noun + length - 2, "ch") == 0 ? "es" : "s";
    snprintf(out.s, sizeof out.s, "%.32s %s%s", count.s, noun, ending);
    return out;
}

shown show_length(int64_t tokens)
{
    shown out;
    if (tokens >= 1 << 20 && tokens % (1 << 20) == 0)
        snprintf(out.s, sizeof out.s, "%lldM", (long long)(tokens >> 20));
    else if (tokens >= 1024 && tokens % 1024 == 0)
        snprintf(out.s, sizeof out.s, "%lldK", (long long)(tokens >> 10));
    else
        out = show_count(tokens);
    return out;
}

shown show_real(const char *format, double value)
{
    shown out;
    if (isfinite(value))
        snprintf(out.s, sizeof out.s, format, value);
    else
        snprintf(out.s, sizeof out.s, "-");
    return out;
}

shown show_time(double ns)
{
    static const struct {
        double ns;
        const char *format;
    } units[] = {{86400e9, "%.3f d"}, {3600e9, "%.3f h"}, {60e9, "%.2f min"},
                 {1e9, "%.2f s"},     {1e6, "%.2f ms"},   {1e3, "%.2f us"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (ns >= units[i].ns)
            return show_real(units[i].format, ns / units[i].ns);
    return show_real("%.0f ns", ns);
}

shown show_compared_time(double ns)
{
    static const struct {
        double ns;
        const char *name;
    } units[] = {{60e9, "min"}, {1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
    shown out;
    for (size_t i = 0; i < sizeof units / sizeof *units && ns < 3600e9; i++) {
        double value = ns / units[i].ns;
        if (value < 1)
            continue;
        snprintf(out.s, sizeof out.s, "%.*f %s", value < 10 ? 3 : 2, value, units[i].name);
        return out;
    }
    return show_time(ns);
}

shown show_bytes(double bytes)
{
    static const char *const formats[] = {"%.0f B", "%.1f KiB", "%.1f MiB", "%.1f GiB", "%.1f TiB"};
    int unit = 0;
    while (bytes >= 1024 && unit < 4) {
        bytes /= 1024;
        unit++;
    }
    return show_real(formats[unit], bytes);
}

shown show_share(double share)
{
    return show_real("%.2f %%", share * 100);
}

shown show_digest(uint64_t digest)
{
    shown out;
    snprintf(out.s, sizeof out.s, "%016llx", (unsigned long long)digest);
    return out;
}

double cli_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Bytes of the character of UTF-8 at `text`; 0: it is none. */
static int bytes_of_character(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    int more = at[0] < 0x80   ? 0
               : at[0] < 0xc2 ? -1
               : at[0] < 0xe0 ? 1
               : at[0] < 0xf0 ? 2
               : at[0] < 0xf5 ? 3
                              : -1;
    for (int i = 1; i <= more; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    int is_wrong = (at[0] == 0xe0 && at[1] < 0xa0) ||
                   (at[0] == 0xed && at[1] > 0x9f) || /* long, a surrogate */
                   (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f);
    return is_wrong ? 0 : more + 1;
}

static void make_utf8(char *text)
{
    while (*text) {
        int bytes = bytes_of_character(text);
        if (!bytes)
            *text = '?';
        text += bytes ? bytes : 1;
    }
}

void cli_make_plain(char *text)
{
    make_utf8(text);
    for (; *text; text++) {
        unsigned char byte = (unsigned char)text[0], next = (unsigned char)text[1];
        if (byte < 0x20 || byte == 0x7f)
            *text = '?';
        else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) /* controls as UTF-8 has them */
            text[0] = text[1] = '?';
    }
}

shown show_name(const char *name)
{
    shown out;
    size_t bytes = strlen(name), most = sizeof out.s - 1;
    if (bytes <= most)
        memcpy(out.s, name, bytes + 1);
    else {
        const char *end = name + bytes - (most - 3);
        while (((unsigned char)*end & 0xc0) == 0x80)
            end++;
        snprintf(out.s, sizeof out.s, "...%s", end);
    }
    cli_make_plain(out.s);
    return out;
}

shown show_input(const char *name)
{
    return show_name(strcmp(name, "-") == 0 ? "standard input" : name);
}

json_t *json_path(const char *path)
{
    if (!path)
        return json_null();
    char *text = strdup(path);
    if (text)
        make_utf8(text);
    json_t *value = text ? json_string(text) : NULL;
    free(text);
    return value;
}

json_t *json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_known(int64_t ns)
{
    return ns > 0 ? json_integer(ns) : json_null();
}

json_t *json_columns_i64(const int64_t *values, int64_t count)
{
    json_t *array = json_array();
    for (int64_t i = 0; array && i < count; i++)
        json_array_append_new(array, json_integer(values[i]));
    return array;
}
