#include "data/packs/packs.h"

#include <string.h>

#include "base/checked.h"
#include "base/options.h"

/* Samples between two reports of progress. */
#define SAMPLES_A_TICK 65536

/* Makes the column that the pointer at `column` names `rows` rows long; 0 when memory is short. */
static int reserve_rows(const hbp__memory *memory, void *column, uint64_t rows, uint64_t size)
{
    void *block;
    memcpy(&block, column, sizeof block);
    block = hbp__renew(memory, block, rows, size);
    if (!block)
        return 0;
    memcpy(column, &block, sizeof block);
    return 1;
}

int hbp__packs_reserve(hbp_packs *packs, int64_t count)
{
    const hbp__memory *memory = &packs->memory;
    uint64_t rows = (uint64_t)count;
    return reserve_rows(memory, &packs->offsets, rows + 1, sizeof *packs->offsets) &&
           reserve_rows(memory, &packs->group, rows, sizeof *packs->group) &&
           reserve_rows(memory, &packs->tokens, rows, sizeof *packs->tokens) &&
           reserve_rows(memory, &packs->padded, rows, sizeof *packs->padded) &&
           reserve_rows(memory, &packs->squares, rows, sizeof *packs->squares) &&
           (!packs->lengths->vision || reserve_rows(memory, &packs->vision, rows, sizeof *packs->vision));
}

hbp_packs *hbp__packs_new(hbp_context *context, const hbp_lengths *lengths, int64_t count)
{
    const hbp__memory *memory = &context->memory;
    hbp_packs *packs = hbp__new_zero(memory, 1, sizeof *packs);
    if (!packs)
        return NULL;
    packs->memory = *memory;
    packs->lengths = hbp__lengths_retain(lengths);
    packs->count = count;
    packs->samples = lengths->count;
    packs->sequence_multiple = packs->pack_multiple = 1;
    for (int64_t g = 0; g < HBP_MAX_GROUPS; g++)
        packs->max_vision[g] = INT64_MAX;
    packs->unmeasured = INT64_MAX;
    packs->sample = hbp__new(memory, (uint64_t)packs->samples, sizeof *packs->sample);
    if (!packs->sample || !hbp__packs_reserve(packs, count)) {
        hbp_packs_free(packs);
        return NULL;
    }
    packs->offsets[0] = 0;
    return packs;
}

void hbp_packs_free(hbp_packs *packs)
{
    if (!packs)
        return;
    hbp__memory memory = packs->memory;
    hbp_lengths_free(packs->lengths);
    hbp__delete(&memory, packs->offsets);
    hbp__delete(&memory, packs->group);
    hbp__delete(&memory, packs->tokens);
    hbp__delete(&memory, packs->padded);
    hbp__delete(&memory, packs->squares);
    hbp__delete(&memory, packs->vision);
    hbp__delete(&memory, packs->sample);
    hbp__delete(&memory, packs->brief);
    hbp__delete(&memory, packs->dropped_sample);
    hbp__delete(&memory, packs->dropped_reason);
    hbp__delete(&memory, packs);
}

/* Vision units of pack `p`. */
static int64_t vision_of(const hbp_packs *packs, int64_t p)
{
    const uint32_t *vision = packs->lengths->vision;
    int64_t sum = 0;
    for (int64_t i = packs->offsets[p]; i < packs->offsets[p + 1]; i++)
        sum += vision[packs->sample[i]];
    return sum;
}

/* Tokens and squares, from 0 on, of the samples [first, end), where `brief` has the lengths of all; else
 * returns 0. The first is mostly the longest. */
static inline int sum_brief(const uint16_t *brief, int64_t first, int64_t end, int64_t *tokens,
                            int64_t *squares)
{
    uint32_t absent = 0;
    uint64_t square = 0;
    if (first == end || !brief[first])
        return 0;
    for (int64_t next; first < end; first = next) {
        uint32_t sum = 0; /* of as many as it surely holds */
        next = hbp__min_i64(end, first + UINT16_MAX);
        for (int64_t i = first; i < next; i++) {
            const uint32_t length = brief[i];
            absent |= !length;
            sum += length;
            square += length * length;
        }
        *tokens += sum;
    }
    *squares = (int64_t)square;
    return !absent;
}

void hbp__packs_measure_pack(hbp_packs *packs, int64_t pack)
{
    const int64_t multiple = packs->sequence_multiple, first = packs->offsets[pack],
                  end = packs->offsets[pack + 1];
    int64_t tokens = 0, padded = 0, squares = 0;
    if (packs->brief && multiple == 1 && sum_brief(packs->brief, first, end, &tokens, &squares)) {
        padded = tokens;
    } else {
        tokens = squares = 0;
        for (int64_t i = first; i < end; i++) {
            int64_t length = hbp__packs_length(packs, i);
            tokens += length;
            padded += hbp__round_up(length, multiple);
            squares += length * length;
        }
    }
    packs->tokens[pack] = tokens;
    packs->padded[pack] = hbp__round_up(padded, packs->pack_multiple);
    packs->squares[pack] = squares;
    if (packs->vision)
        packs->vision[pack] = vision_of(packs, pack);
}

hbp_status hbp__packs_measure(hbp_context *context, hbp_packs *packs)
{
    packs->unmeasured = packs->count;
    return hbp__packs_measure_rest(context, packs);
}

hbp_status hbp__packs_measure_rest(hbp_context *context, hbp_packs *packs)
{
    const int64_t end = hbp__min_i64(packs->unmeasured, packs->count);
    int64_t ticked = 0;
    for (int64_t p = 0; p < end; p++) {
        hbp__packs_measure_pack(packs, p);
        if (packs->offsets[p + 1] - ticked >= SAMPLES_A_TICK) {
            ticked = packs->offsets[p + 1];
            HBP__TRY(hbp__tick(context, "measure", ticked, packs->samples));
        }
    }
    packs->unmeasured = 0;
    return HBP_OK;
}

hbp_status hbp_packs_get_view(const hbp_packs *packs, hbp_packs_view *view)
{
    hbp_packs_view all = {0};
    if (packs)
        all = (hbp_packs_view){.packs = packs->count,
                               .samples = packs->samples,
                               .dropped = packs->dropped,
                               .pack_offsets = packs->offsets,
                               .pack_groups = packs->group,
                               .pack_tokens = packs->tokens,
                               .pack_padded_tokens = packs->padded,
                               .pack_squares = packs->squares,
                               .pack_vision = packs->vision,
                               .sample_indices = packs->sample,
                               .dropped_indices = packs->dropped_sample,
                               .dropped_reasons = packs->dropped_reason,
                               .groups = packs->groups,
                               .group_bounds = packs->bound};
    return hbp__view_write(view, packs, &all, sizeof all);
}
