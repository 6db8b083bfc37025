/* How a call of the system's that failed is told. */
#ifndef HBP_IO_SYSTEM_ERROR_H
#define HBP_IO_SYSTEM_ERROR_H

#include "base/context.h"

/* HBP_E_SYSTEM: "cannot <what> <path>: <the system's reason>"; `error` is an errno. */
hbp_status hbp__fail_system(hbp_context *context, const char *what, const char *path, int error);

#endif
