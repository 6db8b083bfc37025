/* What a call came to. One list makes the codes, their names and their texts. */
#ifndef HBP_STATUS_H
#define HBP_STATUS_H

#include <stdint.h>

#include "hbp/export.h"

/* 0 is success, a positive value a remark on a good result, a negative value a failure. Values never change.
 */
typedef int32_t hbp_status;

#define HBP_STATUS_LIST(X)                                                                                   \
    X(HBP_NOT_PROVEN, 1, "valid result, optimality not proven")                                              \
    X(HBP_OK, 0, "success")                                                                                  \
    X(HBP_E_NO_MEMORY, -1, "out of memory")                                                                  \
    X(HBP_E_INVALID, -2, "invalid argument")                                                                 \
    X(HBP_E_INFEASIBLE, -3, "infeasible")                                                                    \
    X(HBP_E_CANCELLED, -4, "cancelled")                                                                      \
    X(HBP_E_OVERFLOW, -5, "number too large")                                                                \
    X(HBP_E_FORMAT, -6, "bad file")                                                                          \
    X(HBP_E_VERSION, -7, "wrong version")                                                                    \
    X(HBP_E_SOLVER, -8, "solver failed")                                                                     \
    X(HBP_E_SYSTEM, -9, "system call failed")                                                                \
    X(HBP_E_INTERNAL, -10, "internal error")

enum {
#define HBP_STATUS_CODE_(name, value, text) name = value,
    HBP_STATUS_LIST(HBP_STATUS_CODE_)
#undef HBP_STATUS_CODE_
};

HBP_BEGIN_DECLS

/* The constant's name, "HBP_E_INVALID"; "HBP_E_UNKNOWN" for a value not in the list. Static text. Thread:
 * any. */
HBP_API const char *hbp_status_name(hbp_status status);

/* A short English text for the status; the context's message says more. Static text. Thread: any. */
HBP_API const char *hbp_status_text(hbp_status status);

HBP_END_DECLS

#endif
