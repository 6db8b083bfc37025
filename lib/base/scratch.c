#include "base/scratch.h"

void *hbp__take(hbp_context *context, uint64_t count, uint64_t size)
{
    void *piece = context->take_status < 0 ? NULL : hbp__new(&context->memory, count, size);
    if (!piece) {
        if (context->take_status >= 0)
            context->take_status = HBP_E_NO_MEMORY;
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
        context->take_status = hbp__zero(context, piece, count * size);
    return context->take_status < 0 ? NULL : piece;
}

hbp_status hbp__scratch_check(hbp_context *context, const char *what)
{
    hbp_status status = context->take_status;
    context->take_status = HBP_OK;
    return status == HBP_E_NO_MEMORY ? hbp__fail_memory(context, what) : status;
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
    context->take_status = HBP_OK;
    return status;
}
