#include "base/scratch.h"

#include <string.h>

void *hbp__take(hbp_context *context, uint64_t count, uint64_t size)
{
    void *piece = context->is_short ? NULL : hbp__new(&context->memory, count, size);
    if (!piece) {
        context->is_short = 1;
        return NULL;
    }
    hbp__block_set_next(piece, context->taken);
    context->taken = piece;
    context->pieces++;
    return piece;
}

void *hbp__take_zero(hbp_context *context, uint64_t count, uint64_t size)
{
    void *piece = hbp__take(context, count, size);
    if (piece)
        memset(piece, 0, (size_t)(count * size));
    return piece;
}

hbp_status hbp__scratch_check(hbp_context *context, const char *what)
{
    if (!context->is_short)
        return HBP_OK;
    context->is_short = 0;
    return hbp__fail_memory(context, what);
}

int64_t hbp__scratch_mark(const hbp_context *context)
{
    return context->pieces;
}

void hbp__scratch_release(hbp_context *context, int64_t mark)
{
    while (context->pieces > mark) {
        void *piece = context->taken;
        context->taken = hbp__block_next(piece);
        context->pieces--;
        hbp__delete(&context->memory, piece);
    }
}

hbp_status hbp__leave(hbp_context *context, int64_t mark, hbp_status status)
{
    hbp__scratch_release(context, mark);
    context->is_short = 0;
    return status;
}
