#include "base/fault.h"

#include <stdarg.h>
#include <stdio.h>

int ex_fail(ex_fault *fault, const char *format, ...)
{
    if (fault->failed)
        return -1;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault->text, sizeof fault->text, format, arguments);
    va_end(arguments);
    fault->failed = 1;
    return -1;
}
