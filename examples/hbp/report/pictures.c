#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "report.h"

json_t *report_text(const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    json_t *string = json_string(text);
    return string ? string : json_string("(text that is not UTF-8)");
}

void report_fact(json_t *page, const char *name, shown value)
{
    json_array_append_new(json_object_get(page, "facts"), json_pack("[s,s]", name, value.s));
}

void report_lead(json_t *page, json_t *text)
{
    json_array_append_new(json_object_get(page, "lead"), text);
}

json_t *report_picture(json_t *page, const char *type, const char *id, const char *title, json_t *answer)
{
    json_t *picture =
        json_pack("{s:s,s:s,s:s,s:o}", "type", type, "id", id, "title", title, "answer", answer);
    json_array_append_new(json_object_get(page, "pictures"), picture);
    return picture;
}

/* The list under `key`, made where there is none. */
static json_t *list_of(json_t *object, const char *key)
{
    json_t *list = json_object_get(object, key);
    if (!list) {
        list = json_array();
        json_object_set_new(object, key, list);
    }
    return list;
}

void report_bar(json_t *picture, const char *label, double value, const char *note, int is_marked)
{
    json_array_append_new(list_of(picture, "rows"),
                          json_pack("{s:o,s:o,s:o,s:b}", "label", report_text("%s", label), "value",
                                    value < 0 ? json_null() : json_number(value), "text",
                                    report_text("%s", note), "mark", is_marked));
}

void report_bar_colour(json_t *picture, const char *colour)
{
    json_t *rows = list_of(picture, "rows");
    json_object_set_new(json_array_get(rows, json_array_size(rows) - 1), "colour", json_string(colour));
}

void report_limit(json_t *object, const char *label, double value)
{
    json_object_set_new(object, "limit", json_pack("{s:s,s:o}", "label", label, "value", json_number(value)));
}

json_t *report_panel(json_t *picture, const char *label, const char *unit)
{
    json_t *panel = json_pack("{s:s,s:s,s:[]}", "label", label, "unit", unit, "series");
    json_array_append_new(list_of(picture, "panels"), panel);
    return panel;
}

/* Large numbers to the whole, as most of a page they are; small ones to six digits behind the point. */
static json_t *numbers(const double *values, int64_t count)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++) {
        const double value = fabs(values[i]) < 1000 ? rint(values[i] * 1e6) / 1e6 : rint(values[i]);
        json_array_append_new(list, floor(value) >= value && fabs(value) < 9e15
                                        ? json_integer((json_int_t)value)
                                        : json_number(value));
    }
    return list;
}

void report_series(json_t *panel, const char *label, const char *colour, const double *values, int64_t count)
{
    json_array_append_new(list_of(panel, "series"), json_pack("{s:s,s:s,s:o}", "label", label, "colour",
                                                              colour, "values", numbers(values, count)));
}

shown report_degree_colour(int32_t sp)
{
    return show_real("sp %.0f", (double)sp);
}
