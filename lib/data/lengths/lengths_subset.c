#include "data/lengths/lengths_subset.h"

#include "data/lengths/lengths_make.h"

/* The link of each piece, as hbp__lengths_link takes them. */
static hbp_status copy_links(hbp_context *context, const hbp_lengths *lengths, const uint32_t *index,
                             hbp_lengths *draft)
{
    int64_t *links = hbp__new(&context->memory, (uint64_t)draft->count, sizeof *links);
    if (!links)
        return hbp__fail_memory(context, "the links of a part of the data");
    for (int64_t i = 0; i < draft->count; i++)
        links[i] = lengths->link[index[i]] == HBP__FREE ? -1 : (int64_t)lengths->link[index[i]];
    hbp_status status = hbp__lengths_link(context, draft, links);
    hbp__delete(&context->memory, links);
    return status;
}

static hbp_status fill_subset(hbp_context *context, const hbp_lengths *lengths, const uint32_t *index,
                              hbp_lengths *draft)
{
    const hbp__memory *memory = &draft->memory;
    uint64_t rows = (uint64_t)draft->count;
    draft->owned = hbp__new(memory, rows, sizeof *draft->owned);
    draft->length = draft->owned;
    draft->origin = hbp__new(memory, rows, sizeof *draft->origin);
    if (lengths->loss)
        draft->loss = hbp__new(memory, rows, sizeof *draft->loss);
    if (lengths->first)
        draft->first = hbp__new(memory, rows, sizeof *draft->first);
    if (lengths->vision)
        draft->vision = hbp__new(memory, rows, sizeof *draft->vision);
    if (lengths->modality)
        draft->modality = hbp__new(memory, rows, sizeof *draft->modality);
    if (!draft->owned || !draft->origin || (lengths->loss && !draft->loss) ||
        (lengths->first && !draft->first) || (lengths->vision && !draft->vision) ||
        (lengths->modality && !draft->modality))
        return hbp__fail_memory(context, "a part of the data");
    for (int64_t i = 0; i < draft->count; i++) {
        HBP__TRY(hbp__tick_row(context, "part", i, draft->count));
        uint32_t piece = index[i];
        draft->owned[i] = (uint32_t)hbp__lengths_get(lengths, piece);
        draft->origin[i] = lengths->origin ? lengths->origin[piece] : piece;
        if (draft->loss)
            draft->loss[i] = lengths->loss[piece];
        if (draft->first)
            draft->first[i] = lengths->first[piece];
        if (draft->vision)
            draft->vision[i] = lengths->vision[piece];
        if (draft->modality)
            draft->modality[i] = lengths->modality[piece];
    }
    if (lengths->link)
        HBP__TRY(copy_links(context, lengths, index, draft));
    return hbp__lengths_seal(context, draft, 0);
}

hbp_status hbp__lengths_subset(hbp_context *context, const hbp_lengths *lengths, const uint32_t *index,
                               int64_t count, hbp_lengths **out)
{
    hbp_lengths *draft = hbp__lengths_draft(context, &context->memory);
    if (!draft)
        return HBP_E_NO_MEMORY;
    draft->count = count;
    draft->shifted_loss = lengths->shifted_loss;
    draft->column = lengths->column;
    hbp_status status = fill_subset(context, lengths, index, draft);
    if (status == HBP_OK)
        *out = draft;
    else
        hbp_lengths_free(draft);
    return status;
}
