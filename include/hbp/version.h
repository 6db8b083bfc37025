/* The version of the headers and of the library that was loaded. */
#ifndef HBP_VERSION_H
#define HBP_VERSION_H

#include <stdint.h>

#include "hbp/export.h"

#define HBP_VERSION_MAJOR  0
#define HBP_VERSION_MINOR  1
#define HBP_VERSION_PATCH  0
#define HBP_VERSION_STRING "0.1.0"

/* Raised whenever a caller built against older headers would break; equals the SONAME. */
#define HBP_ABI_VERSION 0

HBP_BEGIN_DECLS

/* "major.minor.patch" of the loaded library; static text. Thread: any. */
HBP_API const char *hbp_version_string(void);

/* HBP_ABI_VERSION of the loaded library; a binding compares it at load time. Thread: any. */
HBP_API uint32_t hbp_version_abi(void);

HBP_END_DECLS

#endif
