#include "base/checked.h"
#include "data/lengths_make.h"

struct hbp_lengths_builder {
    hbp__memory memory;
    int64_t count;
    int64_t room; /* samples the columns have room for */
    uint32_t *length;
    uint32_t *loss; /* NULL until the first piece brings it */
    int64_t *tie;   /* the caller's values; NULL until the first piece brings them */
};

hbp_status hbp_lengths_builder_create(hbp_context *context, hbp_lengths_builder **out)
{
    if (out)
        *out = NULL;
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, out, "out"));
    hbp_lengths_builder *builder = hbp__new_zero(&context->memory, 1, sizeof *builder);
    if (!builder)
        return hbp__fail_memory(context, "a builder of lengths");
    builder->memory = context->memory;
    *out = builder;
    return HBP_OK;
}

void hbp_lengths_builder_free(hbp_lengths_builder *builder)
{
    if (!builder)
        return;
    hbp__memory memory = builder->memory;
    hbp__delete(&memory, builder->length);
    hbp__delete(&memory, builder->loss);
    hbp__delete(&memory, builder->tie);
    hbp__delete(&memory, builder);
}

static hbp_status check_piece(hbp_context *context, const hbp_lengths_builder *builder,
                              const int64_t *lengths, const int64_t *loss_tokens, const int64_t *ties,
                              int64_t count)
{
    if (builder->count && (loss_tokens != NULL) != (builder->loss != NULL))
        return hbp__fail(context, HBP_E_INVALID,
                         "loss tokens come with every piece or with none; sample %lld differs",
                         (long long)builder->count);
    if (builder->count && (ties != NULL) != (builder->tie != NULL))
        return hbp__fail(context, HBP_E_INVALID,
                         "ties come with every piece or with none; sample %lld differs",
                         (long long)builder->count);
    int64_t sum;
    HBP__TRY(hbp__lengths_check_count(context, hbp__add_i64(builder->count, count, &sum) ? sum : INT64_MAX));
    for (int64_t i = 0; i < count; i++) {
        if (i % HBP__LENGTHS_BLOCK == 0)
            HBP__TRY(hbp__tick(context, "append lengths", i, count));
        if (lengths[i] <= 0 || lengths[i] > HBP_MAX_LENGTH)
            return hbp__lengths_check(context, "sample", builder->count + i, lengths[i]);
        if (loss_tokens)
            HBP__TRY(hbp__lengths_check_loss(context, builder->count + i, loss_tokens[i], lengths[i]));
        if (ties)
            HBP__TRY(hbp__lengths_check_tie(context, builder->count + i, ties[i]));
    }
    return HBP_OK;
}

/* Grows a column to `room` rows; on failure it stays as it is. */
static hbp_status grow(hbp_context *context, const hbp__memory *memory, void **column, int64_t room,
                       uint64_t size)
{
    void *wider = hbp__renew(memory, *column, (uint64_t)room, size);
    if (!wider)
        return hbp__fail_memory(context, "lengths");
    *column = wider;
    return HBP_OK;
}

/* Room for `count` more, by half as much again, so that n appends cost O(n) copies. */
static hbp_status make_room(hbp_context *context, hbp_lengths_builder *builder, int64_t count, int loss,
                            int tie)
{
    int64_t room = builder->count + count;
    if (room <= builder->room && builder->length && (!loss || builder->loss) && (!tie || builder->tie))
        return HBP_OK;
    room = hbp__max_i64(room, builder->room + builder->room / 2);
    void *columns[] = {builder->length, builder->loss, builder->tie};
    const uint64_t sizes[] = {sizeof *builder->length, sizeof *builder->loss, sizeof *builder->tie};
    const int wanted[] = {1, loss, tie};
    hbp_status status = HBP_OK;
    for (int i = 0; i < 3 && status >= 0; i++)
        if (wanted[i])
            status = grow(context, &builder->memory, &columns[i], room, sizes[i]);
    builder->length = columns[0];
    builder->loss = columns[1];
    builder->tie = columns[2];
    if (status >= 0)
        builder->room = room;
    return status;
}

/* A first piece that failed for want of memory may have left a column that the next first piece lacks. */
static void forget_columns(hbp_lengths_builder *builder, int loss, int tie)
{
    if (!loss) {
        hbp__delete(&builder->memory, builder->loss);
        builder->loss = NULL;
    }
    if (!tie) {
        hbp__delete(&builder->memory, builder->tie);
        builder->tie = NULL;
    }
}

hbp_status hbp_lengths_builder_append(hbp_context *context, hbp_lengths_builder *builder,
                                      const int64_t *lengths, const int64_t *loss_tokens, const int64_t *ties,
                                      int64_t count)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, builder, "builder"));
    if (count < 0)
        return hbp__fail(context, HBP_E_INVALID, "count is %lld", (long long)count);
    if (count == 0)
        return HBP_OK;
    HBP__TRY(hbp__require(context, lengths, "lengths"));
    HBP__TRY(check_piece(context, builder, lengths, loss_tokens, ties, count));
    HBP__TRY(make_room(context, builder, count, loss_tokens != NULL, ties != NULL));
    if (builder->count == 0)
        forget_columns(builder, loss_tokens != NULL, ties != NULL);
    for (int64_t i = 0; i < count; i++) {
        builder->length[builder->count + i] = (uint32_t)lengths[i];
        if (loss_tokens)
            builder->loss[builder->count + i] = (uint32_t)loss_tokens[i];
        if (ties)
            builder->tie[builder->count + i] = ties[i];
    }
    builder->count += count;
    return HBP_OK;
}

/* A column cut to its rows; the wide one when the allocator cannot. */
static uint32_t *trim(const hbp__memory *memory, uint32_t *column, int64_t count)
{
    uint32_t *trimmed = column ? hbp__renew(memory, column, (uint64_t)count, sizeof *column) : NULL;
    return trimmed ? trimmed : column;
}

hbp_status hbp_lengths_builder_finish(hbp_context *context, hbp_lengths_builder *builder, hbp_lengths **out)
{
    if (out)
        *out = NULL;
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, out, "out"));
    HBP__TRY(hbp__require(context, builder, "builder"));
    HBP__TRY(hbp__lengths_check_count(context, builder->count));
    hbp_lengths *draft = hbp__lengths_draft(context, &builder->memory);
    if (!draft)
        return HBP_E_NO_MEMORY;
    draft->count = builder->count;
    draft->length = draft->owned = trim(&builder->memory, builder->length, builder->count);
    draft->loss = trim(&builder->memory, builder->loss, builder->count);
    builder->length = builder->loss = NULL;
    hbp_status status = builder->tie ? hbp__lengths_tie(context, draft, builder->tie) : HBP_OK;
    hbp__delete(&builder->memory, builder->tie);
    builder->tie = NULL;
    builder->count = builder->room = 0;
    if (status >= 0)
        status = hbp__lengths_seal(context, draft);
    if (status < 0)
        hbp_lengths_free(draft);
    else
        *out = draft;
    return status;
}
