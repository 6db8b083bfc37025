#include "base/context.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "base/options.h"
#include "base/scratch.h"

void hbp_context_options_init(hbp_context_options *options, uint32_t struct_size)
{
    hbp__struct_init(options, struct_size);
}

hbp_status hbp_context_create(const hbp_context_options *options, hbp_context **context)
{
    if (!context)
        return HBP_E_INVALID;
    *context = NULL;
    hbp_context_options all;
    hbp_status status = hbp__options_read(NULL, &all, sizeof all, options, "hbp_context_options");
    if (status < 0)
        return status;
    hbp__memory memory = hbp__memory_default();
    if (all.allocator) {
        hbp_allocator hooks;
        status = hbp__options_read(NULL, &hooks, sizeof hooks, all.allocator, "hbp_allocator");
        if (status < 0)
            return status;
        if (!hooks.alloc || !hooks.release)
            return HBP_E_INVALID;
        memory = (hbp__memory){hooks.alloc, hooks.resize, hooks.release, hooks.user};
    }
    hbp_context *fresh = hbp__new_zero(&memory, 1, sizeof *fresh);
    if (!fresh)
        return HBP_E_NO_MEMORY;
    fresh->memory = memory;
    fresh->progress = all.progress;
    fresh->progress_user = all.progress_user;
    atomic_init(&fresh->cancel, 0);
    *context = fresh;
    return HBP_OK;
}

void hbp_context_free(hbp_context *context)
{
    if (!context)
        return;
    hbp__memory memory = context->memory;
    hbp__scratch_release(context, 0);
    hbp__delete(&memory, context);
}

const char *hbp_context_message(const hbp_context *context)
{
    return context ? context->message : "the context is NULL";
}

void hbp_context_cancel(hbp_context *context)
{
    if (context)
        atomic_store_explicit(&context->cancel, 1, memory_order_relaxed);
}

hbp_status hbp_context_set_solver(hbp_context *context, const hbp_solver *solver)
{
    HBP__TRY(hbp__enter(context));
    hbp_solver known;
    HBP__TRY(hbp__options_read(context, &known, sizeof known, solver, "hbp_solver"));
    if (solver && !known.solve)
        return hbp__fail(context, HBP_E_INVALID, "hbp_solver.solve is NULL");
    context->solver = solver;
    return HBP_OK;
}

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
