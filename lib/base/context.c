/* A context from its making to its end, and what its owner asks of it. */
#include "base/context.h"

#include <string.h>

#include "base/options.h"
#include "base/scratch.h"
#include "base/utf8.h"

hbp_context *hbp__context_new(const hbp__memory *memory)
{
    hbp_context *context = hbp__new_zero(memory, 1, sizeof *context);
    if (!context)
        return NULL;
    context->memory = *memory;
    context->threads = 1;
    atomic_init(&context->cancel, 0);
    return context;
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
    hbp_pool pool;
    status = hbp__options_read(NULL, &pool, sizeof pool, all.pool, "hbp_pool");
    if (status < 0)
        return status;
    if (all.pool && !pool.run)
        return HBP_E_INVALID;
    hbp_context *fresh = hbp__context_new(&memory);
    if (!fresh)
        return HBP_E_NO_MEMORY;
    fresh->progress = all.progress;
    fresh->progress_user = all.progress_user;
    fresh->pool = pool;
    fresh->threads = all.threads ? all.threads : 1;
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

hbp_context *hbp__context_alone(char *why, int64_t why_bytes)
{
    hbp__memory memory = hbp__memory_default();
    if (why && why_bytes > 0)
        *why = '\0';
    return hbp__context_new(&memory);
}

hbp_status hbp__context_end(hbp_context *context, hbp_status status, char *why, int64_t why_bytes)
{
    const char *text = context ? context->message : hbp_status_text(status);
    int64_t at = 0;
    if (status < 0 && why && why_bytes > 0) {
        for (int bytes; text[at] && (bytes = hbp__utf8_bytes(text + at)) && at + bytes < why_bytes;
             at += bytes)
            memcpy(why + at, text + at, (size_t)bytes);
        why[at] = '\0';
    }
    hbp_context_free(context);
    return status;
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
