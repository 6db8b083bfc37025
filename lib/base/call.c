/* What every call does with its context: it begins, fails with a message, reports progress, is cancelled. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/context.h"
#include "base/escape.h"

hbp_status hbp__enter(hbp_context *context)
{
    return context ? hbp__forgive(context) : HBP_E_INVALID;
}

hbp_status hbp__forgive(hbp_context *context)
{
    context->message[0] = '\0';
    return HBP_OK;
}

hbp_status hbp__fail(hbp_context *context, hbp_status status, const char *format, ...)
{
    if (context) {
        char whole[HBP__MESSAGE_BYTES + 4096]; /* with the longest path that a system opens */
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(whole, sizeof whole, format, arguments);
        va_end(arguments);
        hbp__escape(context->message, sizeof context->message, whole);
    }
    return status;
}

hbp_status hbp__fail_memory(hbp_context *context, const char *what)
{
    return hbp__fail(context, HBP_E_NO_MEMORY, "out of memory for %s", what);
}

hbp_status hbp__tick(hbp_context *context, const char *stage, int64_t done, int64_t total)
{
    int cancelled = atomic_exchange_explicit(&context->cancel, 0, memory_order_relaxed);
    if (context->parent) /* which clears the request itself */
        cancelled |= atomic_load_explicit(&context->parent->cancel, memory_order_relaxed);
    if (!cancelled && context->progress) {
        hbp_progress progress = {sizeof progress, stage, done, total};
        cancelled = context->progress(context->progress_user, &progress) != 0;
    }
    if (cancelled)
        return hbp__fail(context, HBP_E_CANCELLED, "cancelled in stage %s", stage);
    return HBP_OK;
}

hbp_status hbp__copy(hbp_context *context, void *to, const void *from, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += HBP__TICK_BYTES) {
        if (at)
            HBP__TRY(hbp__tick(context, "copy", (int64_t)at, (int64_t)bytes));
        memcpy((char *)to + at, (const char *)from + at,
               (size_t)(bytes - at < HBP__TICK_BYTES ? bytes - at : HBP__TICK_BYTES));
    }
    return HBP_OK;
}

hbp_status hbp__zero(hbp_context *context, void *to, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += HBP__TICK_BYTES) {
        if (at)
            HBP__TRY(hbp__tick(context, "zero", (int64_t)at, (int64_t)bytes));
        memset((char *)to + at, 0, (size_t)(bytes - at < HBP__TICK_BYTES ? bytes - at : HBP__TICK_BYTES));
    }
    return HBP_OK;
}

hbp_status hbp__require(hbp_context *context, const void *pointer, const char *name)
{
    if (!pointer)
        return hbp__fail(context, HBP_E_INVALID, "%s is NULL", name);
    return HBP_OK;
}
