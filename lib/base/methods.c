/* The lists of methods as tables. */
#include "base/methods.h"

#include <stdio.h>

#include "base/nearest.h"

#define ROW(id, name, paper, text) {name, paper, text},
#define FAMILY(family, list)                                                                                 \
    static const hbp__method family##_rows[] = {list(ROW)};                                                  \
    static const char *get_##family(int64_t index)                                                           \
    {                                                                                                        \
        return family##_rows[index].name;                                                                    \
    }                                                                                                        \
    const hbp__methods hbp__##family##_methods = {                                                           \
        #list, family##_rows, sizeof family##_rows / sizeof *family##_rows, get_##family};
HBP__METHOD_FAMILIES(FAMILY)
#undef FAMILY

const hbp__methods *hbp__methods_of(const char *list)
{
#define FAMILY(family, name) &hbp__##family##_methods,
    static const hbp__methods *const families[] = {HBP__METHOD_FAMILIES(FAMILY)};
#undef FAMILY
    for (size_t i = 0; list && i < sizeof families / sizeof *families; i++)
        if (strcmp(families[i]->list, list) == 0)
            return families[i];
    return NULL;
}

hbp_status hbp__method_check(hbp_context *context, const hbp__methods *family, const char *name,
                             const char *method)
{
    if (hbp__method_of(family, method) >= 0)
        return HBP_OK;
    char names[HBP__MESSAGE_BYTES] = "";
    size_t at = 0;
    for (int32_t i = 0; i < family->count; i++) {
        int put = snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", family->rows[i].name);
        at += put > 0 && at + (size_t)put < sizeof names ? (size_t)put : 0;
    }
    const char *meant = hbp__resembling(method, family->get_name, family->count);
    if (!meant)
        return hbp__fail(context, HBP_E_INVALID, "`%s` is '%.40s'; it must be one of %s", name, method,
                         names);
    return hbp__fail(context, HBP_E_INVALID, "`%s` is '%.40s'; did you mean '%s'? It must be one of %s", name,
                     method, meant, names);
}
