/* Methods by name: the lists of the public headers (HBP_STEP_METHODS and its like) as tables and as
 * constants.
 *
 * Each family has a table hbp__step_methods, constants HBP__STEP_SEARCH, HBP__STEP_FLEXSP, ... in the order
 * of its list, hbp__step_method, which gives the constant of a name, and hbp__step_name, its inverse. Options
 * that were read (base/options.h) hold the table's own text, which is found at once. Files and digests hold
 * the constants. */
#ifndef HBP_BASE_METHODS_H
#define HBP_BASE_METHODS_H

#include <stdint.h>
#include <string.h>

#include "base/context.h"
#include "hbp/epoch.h"
#include "hbp/step.h"
#include "hbp/tasks.h"
#include "hbp/vlm.h"

typedef struct hbp__method {
    const char *name, *paper, *text;
} hbp__method;

typedef struct hbp__methods {
    const char *list; /* "HBP_STEP_METHODS" */
    const hbp__method *rows;
    int32_t count;
    const char *(*get_name)(int64_t index);
} hbp__methods;

/* The family of a list; NULL for no such list. */
const hbp__methods *hbp__methods_of(const char *list);

/* The place of the method; 0, the default, for NULL; -1 for no such method. O(1) where `name` is the table's
 * own text, else O(methods). */
static inline int32_t hbp__method_of(const hbp__methods *family, const char *name)
{
    if (!name)
        return 0;
    for (int32_t i = 0; i < family->count; i++)
        if (family->rows[i].name == name)
            return i;
    for (int32_t i = 0; i < family->count; i++)
        if (strcmp(family->rows[i].name, name) == 0)
            return i;
    return -1;
}

/* HBP_E_INVALID where the text of the field `name` is no method of the family: it names the nearest and lists
 * all. NULL is one. */
hbp_status hbp__method_check(hbp_context *context, const hbp__methods *family, const char *name,
                             const char *method);

/* Every family: its name here, its list. */
#define HBP__METHOD_FAMILIES(X)                                                                              \
    X(epoch, HBP_EPOCH_METHODS)                                                                              \
    X(step, HBP_STEP_METHODS)                                                                                \
    X(groups, HBP_GROUPS_METHODS)                                                                            \
    X(fill, HBP_FILL_METHODS)                                                                                \
    X(balance, HBP_BALANCE_METHODS)                                                                          \
    X(iterative_fill, HBP_ITERATIVE_FILL_METHODS)                                                            \
    X(budgets, HBP_BUDGETS_METHODS)                                                                          \
    X(layer_partition, HBP_LAYER_PARTITION_METHODS)                                                          \
    X(recompute, HBP_RECOMPUTE_METHODS)                                                                      \
    X(vlm_data, HBP_VLM_DATA_METHODS)                                                                        \
    X(tasks, HBP_TASKS_METHODS)                                                                              \
    X(placement, HBP_PLACEMENT_METHODS)

#define HBP__FAMILY(family, list)                                                                            \
    extern const hbp__methods hbp__##family##_methods;                                                       \
    static inline int32_t hbp__##family##_method(const char *name)                                           \
    {                                                                                                        \
        return hbp__method_of(&hbp__##family##_methods, name);                                               \
    }                                                                                                        \
    static inline const char *hbp__##family##_name(int32_t method)                                           \
    {                                                                                                        \
        return hbp__##family##_methods.rows[method].name;                                                    \
    }
HBP__METHOD_FAMILIES(HBP__FAMILY)
#undef HBP__FAMILY

#define HBP__EPOCH_ID(id, name, paper, text)           HBP__EPOCH_##id,
#define HBP__STEP_ID(id, name, paper, text)            HBP__STEP_##id,
#define HBP__GROUPS_ID(id, name, paper, text)          HBP__GROUPS_##id,
#define HBP__FILL_ID(id, name, paper, text)            HBP__FILL_##id,
#define HBP__BALANCE_ID(id, name, paper, text)         HBP__BALANCE_##id,
#define HBP__ITERATIVE_FILL_ID(id, name, paper, text)  HBP__ITERATIVE_FILL_##id,
#define HBP__BUDGETS_ID(id, name, paper, text)         HBP__BUDGETS_##id,
#define HBP__LAYER_PARTITION_ID(id, name, paper, text) HBP__LAYER_PARTITION_##id,
#define HBP__RECOMPUTE_ID(id, name, paper, text)       HBP__RECOMPUTE_##id,
#define HBP__VLM_DATA_ID(id, name, paper, text)        HBP__VLM_DATA_##id,
#define HBP__TASKS_ID(id, name, paper, text)           HBP__TASKS_##id,
#define HBP__PLACEMENT_ID(id, name, paper, text)       HBP__PLACEMENT_##id,
enum { HBP_EPOCH_METHODS(HBP__EPOCH_ID) HBP__EPOCH_METHOD_COUNT };
enum { HBP_STEP_METHODS(HBP__STEP_ID) HBP__STEP_METHOD_COUNT };
enum { HBP_GROUPS_METHODS(HBP__GROUPS_ID) HBP__GROUPS_METHOD_COUNT };
enum { HBP_FILL_METHODS(HBP__FILL_ID) HBP__FILL_METHOD_COUNT };
enum { HBP_BALANCE_METHODS(HBP__BALANCE_ID) HBP__BALANCE_METHOD_COUNT };
enum { HBP_ITERATIVE_FILL_METHODS(HBP__ITERATIVE_FILL_ID) HBP__ITERATIVE_FILL_METHOD_COUNT };
enum { HBP_BUDGETS_METHODS(HBP__BUDGETS_ID) HBP__BUDGETS_METHOD_COUNT };
enum { HBP_LAYER_PARTITION_METHODS(HBP__LAYER_PARTITION_ID) HBP__LAYER_PARTITION_METHOD_COUNT };
enum { HBP_RECOMPUTE_METHODS(HBP__RECOMPUTE_ID) HBP__RECOMPUTE_METHOD_COUNT };
enum { HBP_VLM_DATA_METHODS(HBP__VLM_DATA_ID) HBP__VLM_DATA_METHOD_COUNT };
enum { HBP_TASKS_METHODS(HBP__TASKS_ID) HBP__TASKS_METHOD_COUNT };
enum { HBP_PLACEMENT_METHODS(HBP__PLACEMENT_ID) HBP__PLACEMENT_METHOD_COUNT };

#endif
