/* A data set that grows piece by piece: columns are checked and copied as they come, moved when it is
 * done. */
#include "base/checked.h"
#include "base/options.h"
#include "data/lengths/lengths_make.h"

struct hbp_lengths_builder {
    hbp__memory memory;
    int64_t count;
    int64_t room; /* samples the columns have room for */
    uint32_t *length;
    uint32_t *loss; /* NULL until the first piece brings it */
    int64_t *link;  /* the caller's values; NULL until the first piece brings them, as the next two */
    uint32_t *vision;
    uint8_t *modality;
    int32_t shifted_loss; /* of the pieces so far */
};

hbp_status hbp__lengths_builder_create(hbp_context *context, hbp_lengths_builder **out)
{
    hbp_lengths_builder *builder = hbp__new_zero(&context->memory, 1, sizeof *builder);
    if (!builder)
        return hbp__fail_memory(context, "a builder of lengths");
    builder->memory = context->memory;
    *out = builder;
    return HBP_OK;
}

hbp_status hbp_lengths_builder_create(hbp_context *context, hbp_lengths_builder **out)
{
    HBP__ENTER_OUT(context, out);
    return hbp__lengths_builder_create(context, out);
}

void hbp_lengths_builder_free(hbp_lengths_builder *builder)
{
    if (!builder)
        return;
    hbp__memory memory = builder->memory;
    hbp__delete(&memory, builder->length);
    hbp__delete(&memory, builder->loss);
    hbp__delete(&memory, builder->link);
    hbp__delete(&memory, builder->vision);
    hbp__delete(&memory, builder->modality);
    hbp__delete(&memory, builder);
}

static hbp_status check_presence(hbp_context *context, const hbp_lengths_builder *builder, const char *name,
                                 const void *given, const void *held)
{
    if (builder->count && (given != NULL) != (held != NULL))
        return hbp__fail(context, HBP_E_INVALID, "%s come with every piece or with none; sample %lld differs",
                         name, (long long)builder->count);
    return HBP_OK;
}

/* Rows [begin, end) of a piece whose first sample is `first`, column by column. */
static hbp_status check_rows(hbp_context *context, int64_t first, const int64_t *lengths,
                             const hbp_lengths_columns *columns, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        if (lengths[i] <= 0 || lengths[i] > HBP_MAX_LENGTH)
            return hbp__lengths_check(context, "sample", first + i, lengths[i]);
    for (int64_t i = begin; columns->loss_tokens && i < end; i++)
        HBP__TRY(hbp__lengths_check_loss(context, first + i, columns->loss_tokens[i], lengths[i]));
    for (int64_t i = begin; columns->links && i < end; i++)
        HBP__TRY(hbp__lengths_check_link(context, first + i, columns->links[i]));
    for (int64_t i = begin; columns->vision && i < end; i++)
        HBP__TRY(hbp__lengths_check_vision(context, first + i, columns->vision[i]));
    for (int64_t i = begin; columns->modalities && i < end; i++)
        HBP__TRY(hbp__lengths_check_modality(context, first + i, columns->modalities[i]));
    return HBP_OK;
}

static hbp_status check_piece(hbp_context *context, const hbp_lengths_builder *builder,
                              const int64_t *lengths, const hbp_lengths_columns *columns, int64_t count)
{
    HBP__TRY(check_presence(context, builder, "loss tokens", columns->loss_tokens, builder->loss));
    HBP__TRY(check_presence(context, builder, "links", columns->links, builder->link));
    HBP__TRY(check_presence(context, builder, "vision units", columns->vision, builder->vision));
    HBP__TRY(check_presence(context, builder, "modalities", columns->modalities, builder->modality));
    if (builder->count && (columns->shifted_loss != 0) != builder->shifted_loss)
        return hbp__fail(context, HBP_E_INVALID,
                         "shifted_loss is %d for sample %lld and %d for those before; it is the same with "
                         "every piece",
                         columns->shifted_loss != 0, (long long)builder->count, (int)builder->shifted_loss);
    int64_t sum;
    HBP__TRY(hbp__lengths_check_count(context, hbp__add_i64(builder->count, count, &sum) ? sum : INT64_MAX));
    for (int64_t begin = 0; begin < count; begin += HBP__LENGTHS_BLOCK) {
        HBP__TRY(hbp__tick(context, "append lengths", begin, count));
        HBP__TRY(check_rows(context, builder->count, lengths, columns, begin,
                            hbp__min_i64(count, begin + HBP__LENGTHS_BLOCK)));
    }
    return HBP_OK;
}

/* Grows a column to `room` rows; on failure it stays as it is. */
static hbp_status grow_column(hbp_context *context, const hbp__memory *memory, void **column, int64_t room,
                              uint64_t size)
{
    void *wider = hbp__renew(memory, *column, (uint64_t)room, size);
    if (!wider)
        return hbp__fail_memory(context, "lengths");
    *column = wider;
    return HBP_OK;
}

/* Room for `count` more, by half as much again, so that n appends cost O(n) copies. A first piece brings the
 * columns of all that follow; one that failed for want of memory may have left a column that the next first
 * piece lacks. */
static hbp_status make_room(hbp_context *context, hbp_lengths_builder *builder,
                            const hbp_lengths_columns *columns, int64_t count)
{
    int64_t room = builder->count + count;
    if (builder->count && room <= builder->room)
        return HBP_OK;
    room = hbp__max_i64(room, builder->room + builder->room / 2);
    void *held[] = {builder->length, builder->loss, builder->link, builder->vision, builder->modality};
    const uint64_t sizes[] = {sizeof *builder->length, sizeof *builder->loss, sizeof *builder->link,
                              sizeof *builder->vision, sizeof *builder->modality};
    const int wanted[] = {1, columns->loss_tokens != NULL, columns->links != NULL, columns->vision != NULL,
                          columns->modalities != NULL};
    hbp_status status = HBP_OK;
    for (int i = 0; i < 5 && status >= 0; i++)
        if (wanted[i])
            status = grow_column(context, &builder->memory, &held[i], room, sizes[i]);
        else {
            hbp__delete(&builder->memory, held[i]);
            held[i] = NULL;
        }
    builder->length = held[0];
    builder->loss = held[1];
    builder->link = held[2];
    builder->vision = held[3];
    builder->modality = held[4];
    if (status >= 0)
        builder->room = room;
    return status;
}

/* The value as it was checked; one that changed since stays in bounds. */
static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return hbp__max_i64(least, hbp__min_i64(value, most));
}

/* Rows [begin, end) of a piece behind those that are there. */
static void copy_rows(hbp_lengths_builder *builder, const int64_t *lengths,
                      const hbp_lengths_columns *columns, int64_t begin, int64_t end)
{
    int64_t at = builder->count;
    for (int64_t i = begin; i < end; i++)
        builder->length[at + i] = (uint32_t)clamp(lengths[i], 1, HBP_MAX_LENGTH);
    for (int64_t i = begin; columns->loss_tokens && i < end; i++)
        builder->loss[at + i] = (uint32_t)clamp(columns->loss_tokens[i], 0, builder->length[at + i]);
    for (int64_t i = begin; columns->links && i < end; i++)
        builder->link[at + i] = columns->links[i];
    for (int64_t i = begin; columns->vision && i < end; i++)
        builder->vision[at + i] = (uint32_t)clamp(columns->vision[i], 0, HBP_MAX_VISION);
    for (int64_t i = begin; columns->modalities && i < end; i++)
        builder->modality[at + i] = (uint8_t)clamp(columns->modalities[i], 0, HBP_MAX_MODALITIES - 1);
}

static hbp_status append_piece(hbp_context *context, hbp_lengths_builder *builder, const int64_t *lengths,
                               const hbp_lengths_columns *columns, int64_t count)
{
    HBP__TRY(hbp__require(context, builder, "builder"));
    if (count < 0)
        return hbp__fail(context, HBP_E_INVALID, "count is %lld", (long long)count);
    if (count == 0)
        return HBP_OK;
    HBP__TRY(hbp__require(context, lengths, "lengths"));
    HBP__TRY(check_piece(context, builder, lengths, columns, count));
    HBP__TRY(make_room(context, builder, columns, count));
    for (int64_t begin = 0; begin < count; begin += HBP__LENGTHS_BLOCK) {
        HBP__TRY(hbp__tick(context, "append lengths", begin, count));
        copy_rows(builder, lengths, columns, begin, hbp__min_i64(count, begin + HBP__LENGTHS_BLOCK));
    }
    builder->count += count;
    builder->shifted_loss = columns->shifted_loss != 0;
    return HBP_OK;
}

hbp_status hbp__lengths_builder_append(hbp_context *context, hbp_lengths_builder *builder,
                                       const int64_t *lengths, const hbp_lengths_columns *columns,
                                       int64_t count)
{
    hbp_lengths_columns all;
    HBP__TRY(hbp__options_read(context, &all, sizeof all, columns, "hbp_lengths_columns"));
    return append_piece(context, builder, lengths, &all, count);
}

hbp_status hbp_lengths_builder_append(hbp_context *context, hbp_lengths_builder *builder,
                                      const int64_t *lengths, const hbp_lengths_columns *columns,
                                      int64_t count)
{
    HBP__TRY(hbp__enter(context));
    return hbp__lengths_builder_append(context, builder, lengths, columns, count);
}

/* Moves the columns out, cut to their rows; they are moved even when that fails. */
static hbp_status move_out(hbp_context *context, hbp_lengths_builder *builder, hbp_lengths *draft)
{
    void *column[] = {builder->length, builder->loss, builder->vision, builder->modality};
    const uint64_t sizes[] = {sizeof *builder->length, sizeof *builder->loss, sizeof *builder->vision,
                              sizeof *builder->modality};
    hbp_status status = HBP_OK;
    for (int i = 0; i < 4 && status >= 0; i++)
        if (column[i])
            status = grow_column(context, &builder->memory, &column[i], builder->count, sizes[i]);
    draft->count = builder->count;
    draft->shifted_loss = builder->shifted_loss;
    draft->length = draft->owned = column[0];
    draft->loss = column[1];
    draft->vision = column[2];
    draft->modality = column[3];
    builder->length = builder->loss = builder->vision = NULL;
    builder->modality = NULL;
    return status;
}

hbp_status hbp__lengths_builder_finish(hbp_context *context, hbp_lengths_builder *builder, hbp_lengths **out)
{
    HBP__TRY(hbp__lengths_check_count(context, builder->count));
    hbp_lengths *draft = hbp__lengths_draft(context, &builder->memory);
    if (!draft)
        return HBP_E_NO_MEMORY;
    hbp_status status = move_out(context, builder, draft);
    if (status >= 0 && builder->link)
        status = hbp__lengths_link(context, draft, builder->link);
    hbp__delete(&builder->memory, builder->link);
    builder->link = NULL;
    builder->count = builder->room = 0;
    if (status >= 0)
        status = hbp__lengths_seal(context, draft, 0);
    if (status < 0)
        hbp_lengths_free(draft);
    else
        *out = draft;
    return status;
}

hbp_status hbp_lengths_builder_finish(hbp_context *context, hbp_lengths_builder *builder, hbp_lengths **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, builder, "builder"));
    return hbp__lengths_builder_finish(context, builder, out);
}
