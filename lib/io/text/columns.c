#include "io/text/columns.h"

#include <string.h>

#include "base/checked.h"
#include "base/number.h"

static const struct {
    const char *of;   /* names that end so ... */
    const char *unit; /* may end so instead */
    double factor;
} units[] = {{"_ns", "_us", 1e3},      {"_ns", "_ms", 1e6},         {"_ns", "_s", 1e9},
             {"_bytes", "_kib", 1024}, {"_bytes", "_mib", 1048576}, {"_bytes", "_gib", 1073741824}};

static int is_text(const char *text, int64_t bytes, const char *word)
{
    return strlen(word) == (size_t)bytes && memcmp(text, word, (size_t)bytes) == 0;
}

/* Whether the text is `name` with its ending `of` replaced by `unit`. */
static int is_converted(const char *text, int64_t bytes, const char *name, const char *of, const char *unit)
{
    int64_t stem = (int64_t)strlen(name) - (int64_t)strlen(of);
    return stem > 0 && strcmp(name + stem, of) == 0 && bytes > stem &&
           memcmp(text, name, (size_t)stem) == 0 && is_text(text + stem, bytes - stem, unit);
}

int32_t hbp__column_find(const char *const *names, int32_t count, int32_t converted, const char *name,
                         int64_t bytes, double *unit)
{
    *unit = 1;
    for (int32_t field = 0; field < count; field++)
        if (is_text(name, bytes, names[field]))
            return field;
    for (size_t u = 0; u < sizeof units / sizeof *units; u++)
        for (int32_t field = 0; field < converted; field++)
            if (is_converted(name, bytes, names[field], units[u].of, units[u].unit)) {
                *unit = units[u].factor;
                return field;
            }
    return -1;
}

int hbp__column_has_unit(const char *name, int64_t bytes)
{
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        int64_t of = (int64_t)strlen(units[u].of), unit = (int64_t)strlen(units[u].unit);
        if ((bytes > of && is_text(name + bytes - of, of, units[u].of)) ||
            (bytes > unit && is_text(name + bytes - unit, unit, units[u].unit)))
            return 1;
    }
    return 0;
}

int hbp__column_number(const char *text, int64_t bytes, double unit, int64_t *out)
{
    double number;
    if (hbp__read_whole(text, bytes, out) && !(unit > 1))
        return 1;
    if (!hbp__read_decimal(text, bytes, &number) || number < 0)
        return 0;
    if (number * unit > 4611686018427387904.0)
        return -1;
    *out = hbp__round_i64(number * unit);
    return 1;
}

void hbp__column_trim(const char **text, int64_t *bytes)
{
    while (*bytes && (**text == ' ' || **text == '\t'))
        ++*text, --*bytes;
    while (*bytes && ((*text)[*bytes - 1] == ' ' || (*text)[*bytes - 1] == '\t'))
        --*bytes;
}
