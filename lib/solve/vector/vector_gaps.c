/* Items into the room that given packs have left, largest first, each where the room is largest along it. */
#include "base/scratch.h"
#include "solve/vector/vector_run.h"

static hbp_status place(hbp_context *context, const hbp__vectors *vectors, const hbp__vector_load *load,
                        int64_t packs, hbp__vector_grid *grid, uint32_t *order, uint32_t *pack_of)
{
    int64_t left;
    hbp__vector_run run = {.context = context, .vectors = vectors, .scale = hbp__vector_scale_of(vectors)};
    for (int64_t i = 0; i < vectors->count; i++) {
        order[i] = (uint32_t)i;
        pack_of[i] = HBP__NO_PACK;
    }
    HBP__TRY(hbp__vector_run_sort_down(&run, order, vectors->count));
    for (int64_t p = 0; p < packs; p++) {
        HBP__TRY(hbp__tick_row(context, "pack", p, packs));
        HBP__TRY(hbp__vector_grid_add(grid, load[p]));
    }
    return hbp__vector_place(grid, HBP__PLACE_BALANCED, order, vectors->count, pack_of, &left);
}

hbp_status hbp__vector_fill_gaps(hbp_context *context, const hbp__vectors *vectors,
                                 const hbp__vector_load *load, int64_t packs, uint32_t *pack_of)
{
    hbp__vector_grid grid;
    int64_t mark = hbp__scratch_mark(context);
    uint32_t *order = hbp__take(context, (uint64_t)vectors->count, sizeof *order);
    HBP__TRY(hbp__scratch_check(context, "vector packing"));
    HBP__TRY(hbp__vector_grid_open(context, vectors, &grid));
    hbp_status status = place(context, vectors, load, packs, &grid, order, pack_of);
    hbp__vector_grid_close(&grid);
    return hbp__leave(context, mark, status);
}
