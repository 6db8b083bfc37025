#include <stdio.h>
#include <string.h>

#include "report.h"

/* What a method takes, by the comparison of epochs or of steps; < 0: it has no plan. */
static double time_of(const json_t *method)
{
    const json_t *ns = json_object_get(method, "epoch_ns");
    ns = ns ? ns : json_object_get(method, "predicted_ns");
    return json_is_integer(ns) ? (double)json_integer_value(ns) : -1;
}

/* Whether the first method is this plan: as many steps, and its time but for what threads and rounding make.
 */
static int is_of_plan(const json_t *first, const hbp_plan_summary *own)
{
    const json_t *steps = json_object_get(first, "steps");
    const double ratio = time_of(first) / (double)own->predicted_ns;
    return ratio < 1.01 && ratio > .99 &&
           (!json_is_integer(steps) || json_integer_value(steps) == own->steps);
}

hbp_status report_compared(cli *c, json_t *picture, const hbp_plan_summary *own)
{
    const int64_t own_ns = own->predicted_ns;
    json_error_t error;
    json_t *all = json_load_file(c->compared_file, 0, &error), *method;
    const json_t *methods = json_object_get(all, "methods");
    size_t i;
    hbp_status status = HBP_OK;
    if (!all)
        status = error.line < 0
                     ? cli_own_failure("%s", error.text)
                     : cli_own_failure("%s: line %d: %s; --compared takes what hbp compare --json printed",
                                       c->compared_file, error.line, error.text);
    else if (!json_is_array(methods) || json_array_size(methods) == 0 ||
             time_of(json_array_get(methods, 0)) <= 0)
        status = cli_own_failure(
            "%s has no list of methods; --compared takes what hbp compare --json printed", c->compared_file);
    const double first = status < 0 ? 0 : time_of(json_array_get(methods, 0));
    if (status >= 0 && !is_of_plan(json_array_get(methods, 0), own))
        status =
            cli_own_failure("%s compares with a plan of %s and this one takes %s: it is of other lengths "
                            "or options",
                            c->compared_file, show_time(first).s, show_time((double)own_ns).s);
    json_array_foreach(methods, i, method)
    {
        const char *name = json_string_value(json_object_get(method, "method"));
        const double ns = time_of(method);
        const char *why = json_string_value(json_object_get(method, "failed"));
        if (status < 0 || i == 0 || !name)
            continue;
        if (ns > 0)
            report_bar(picture, name, ns, show_real("x %.2f", ns / (double)own_ns).s, 0);
        else
            report_bar(picture, name, -1, why ? why : "no plan", 0);
    }
    json_decref(all);
    return status;
}
