#include "io/file/system_error.h"

#include <string.h>

hbp_status hbp__fail_system(hbp_context *context, const char *what, const char *path, int error)
{
    char text[96];
    if (strerror_r(error, text, sizeof text) != 0)
        text[0] = '\0';
    return hbp__fail(context, HBP_E_SYSTEM, "cannot %s %s: %s", what, path, text);
}
