#include "io/lengths/length_rows.h"
#include "hbp/io.h"

#include <stdio.h>

#include "base/checked.h"
#include "base/number.h"
#include "data/lengths/lengths_make.h"

hbp_status hbp__rows_begin(hbp__length_rows *rows, hbp_context *context, hbp__stream *in,
                           const hbp_lengths_load_options *options)
{
    *rows = (hbp__length_rows){
        .context = context, .in = in, .options = options, .unit = "line", .noun = "the length"};
    rows->length = hbp__new(&context->memory, HBP__ROWS_BATCH, sizeof *rows->length);
    rows->loss = hbp__new(&context->memory, HBP__ROWS_BATCH, sizeof *rows->loss);
    rows->link = hbp__new(&context->memory, HBP__ROWS_BATCH, sizeof *rows->link);
    rows->vision = hbp__new(&context->memory, HBP__ROWS_BATCH, sizeof *rows->vision);
    rows->modality = hbp__new(&context->memory, HBP__ROWS_BATCH, sizeof *rows->modality);
    if (!rows->length || !rows->loss || !rows->link || !rows->vision || !rows->modality)
        return hbp__fail_memory(context, "rows");
    return hbp__lengths_builder_create(context, &rows->builder);
}

void hbp__rows_end(hbp__length_rows *rows)
{
    const hbp__memory *memory = &rows->context->memory;
    hbp_lengths_builder_free(rows->builder);
    hbp__delete(memory, rows->length);
    hbp__delete(memory, rows->loss);
    hbp__delete(memory, rows->link);
    hbp__delete(memory, rows->vision);
    hbp__delete(memory, rows->modality);
    hbp__delete(memory, rows->bin_length);
    hbp__delete(memory, rows->bin_count);
}

hbp_status hbp__rows_histogram(hbp__length_rows *rows)
{
    if (rows->list)
        return hbp__fail(rows->context, HBP_E_INVALID,
                         "%s is a histogram; vision units are read one number a sample",
                         hbp__stream_name(rows->in));
    if (rows->has_loss || rows->has_link || rows->has_vision || rows->has_modality || rows->beside ||
        rows->options->shifted_loss)
        return hbp__fail(rows->context, HBP_E_INVALID,
                         "%s: a histogram has neither loss tokens nor links, vision units or modalities, nor "
                         "`shifted_loss`",
                         hbp__stream_name(rows->in));
    rows->histogram = 1;
    return HBP_OK;
}

static hbp_status fail_row(const hbp__length_rows *rows, hbp_status status, int64_t number, const char *what,
                           int64_t value, const char *limit)
{
    return hbp__fail(rows->context, status, "%s, %s %lld: %s is %lld; %s", hbp__stream_name(rows->in),
                     rows->unit, (long long)number, what, (long long)value, limit);
}

static hbp_status fail_most(const hbp__length_rows *rows, int64_t number, const char *what, int64_t value,
                            int64_t most, const char *unit)
{
    char limit[64];
    snprintf(limit, sizeof limit, "it is at most %lld%s", (long long)most, unit);
    return fail_row(rows, HBP_E_OVERFLOW, number, what, value, limit);
}

static hbp_status check_vision(const hbp__length_rows *rows, int64_t vision, int64_t number)
{
    if (vision < 0)
        return fail_row(rows, HBP_E_INVALID, number, "the number of vision units", vision,
                        "it is at least 0");
    if (vision > HBP_MAX_VISION)
        return fail_most(rows, number, "the number of vision units", vision, HBP_MAX_VISION, "");
    return HBP_OK;
}

static hbp_status check_row(const hbp__length_rows *rows, const hbp__length_row *row, int64_t number)
{
    if (rows->list)
        return check_vision(rows, row->length, number);
    if (rows->histogram && row->count == 0)
        return HBP_OK;
    if (rows->histogram && row->count < 0)
        return fail_row(rows, HBP_E_INVALID, number, "the count", row->count, "it is at least 0");
    if (row->length <= 0)
        return fail_row(rows, HBP_E_INVALID, number, "the length", row->length, "it is at least 1 token");
    if (row->length > HBP_MAX_LENGTH)
        return fail_most(rows, number, "the length", row->length, HBP_MAX_LENGTH, " tokens");
    if (rows->has_loss && row->loss < 0)
        return fail_row(rows, HBP_E_INVALID, number, "the number of loss tokens", row->loss,
                        "it is at least 0");
    if (rows->has_loss && row->loss > row->length)
        return fail_row(rows, HBP_E_INVALID, number, "the number of loss tokens", row->loss,
                        "it is at most the length");
    if (rows->has_link && row->link < -1)
        return fail_row(rows, HBP_E_INVALID, number, "the link", row->link,
                        "it is -1 for free or at least 0");
    if (rows->has_vision)
        HBP__TRY(check_vision(rows, row->vision, number));
    if (rows->has_modality && (row->modality < 0 || row->modality >= HBP_MAX_MODALITIES)) {
        char limit[64];
        snprintf(limit, sizeof limit, "modalities are numbered 0 to %d", HBP_MAX_MODALITIES - 1);
        return fail_row(rows, HBP_E_INVALID, number, "the modality", row->modality, limit);
    }
    return HBP_OK;
}

static hbp_status flush_batch(hbp__length_rows *rows)
{
    int64_t count = rows->pending;
    rows->pending = 0;
    const hbp_lengths_columns columns = {
        .struct_size = sizeof columns,
        .loss_tokens = rows->has_loss ? rows->loss : NULL,
        .links = rows->has_link ? rows->link : NULL,
        .vision = rows->has_vision || rows->beside ? rows->vision : NULL,
        .modalities = rows->has_modality ? rows->modality : NULL,
        .shifted_loss = rows->options->shifted_loss,
    };
    return hbp__lengths_builder_append(rows->context, rows->builder, rows->length, &columns, count);
}

static hbp_status add_unit(const hbp__length_rows *rows, int64_t units)
{
    hbp__unit_list *list = rows->list;
    if (list->count == list->room) {
        int64_t room = hbp__max_i64(HBP__ROWS_BATCH, list->room + list->room / 2);
        uint32_t *wider = hbp__renew(&rows->context->memory, list->unit, (uint64_t)room, sizeof *wider);
        if (!wider)
            return hbp__fail_memory(rows->context, "vision units");
        list->unit = wider;
        list->room = room;
    }
    list->unit[list->count++] = (uint32_t)units;
    return HBP_OK;
}

static hbp_status grow_bins(hbp__length_rows *rows)
{
    const hbp__memory *memory = &rows->context->memory;
    int64_t room = hbp__max_i64(HBP__ROWS_BATCH, rows->room + rows->room / 2);
    int64_t *length = hbp__renew(memory, rows->bin_length, (uint64_t)room, sizeof *length);
    rows->bin_length = length ? length : rows->bin_length;
    int64_t *count = length ? hbp__renew(memory, rows->bin_count, (uint64_t)room, sizeof *count) : NULL;
    if (!count)
        return hbp__fail_memory(rows->context, "a histogram of lengths");
    rows->bin_count = count;
    rows->room = room;
    return HBP_OK;
}

hbp_status hbp__rows_add(hbp__length_rows *rows, const hbp__length_row *row, int64_t number)
{
    HBP__TRY(check_row(rows, row, number));
    int64_t at = rows->added++;
    if (rows->list)
        return add_unit(rows, row->length);
    if (rows->histogram) {
        if (rows->bins == rows->room)
            HBP__TRY(grow_bins(rows));
        rows->bin_length[rows->bins] = row->length;
        rows->bin_count[rows->bins++] = row->count;
        return HBP_OK;
    }
    rows->length[rows->pending] = row->length;
    rows->loss[rows->pending] = row->loss;
    rows->link[rows->pending] = row->link;
    rows->vision[rows->pending] = row->vision;
    rows->modality[rows->pending] = (int32_t)row->modality;
    if (rows->beside) /* a list that is too short is told of when the rows are counted */
        rows->vision[rows->pending] = at < rows->beside->count ? rows->beside->unit[at] : 0;
    return ++rows->pending == HBP__ROWS_BATCH ? flush_batch(rows) : HBP_OK;
}

hbp_status hbp__rows_finish(hbp__length_rows *rows, hbp_lengths **out)
{
    if (!rows->added)
        return hbp__fail(rows->context, HBP_E_INVALID, "%s holds no %s", hbp__stream_name(rows->in),
                         rows->list ? "vision units" : "lengths");
    if (rows->list)
        return HBP_OK;
    if (rows->beside && rows->added != rows->beside->count)
        return hbp__fail(rows->context, HBP_E_INVALID,
                         "%s holds %lld lengths, but %s %lld numbers of vision units",
                         hbp__stream_name(rows->in), (long long)rows->added, rows->beside->name,
                         (long long)rows->beside->count);
    if (rows->histogram) {
        HBP__TRY(
            hbp__lengths_create_histogram(rows->context, rows->bin_length, rows->bin_count, rows->bins, out));
    } else {
        HBP__TRY(flush_batch(rows));
        HBP__TRY(hbp__lengths_builder_finish(rows->context, rows->builder, out));
    }
    (*out)->column = rows->options->column ? NULL : rows->column;
    return HBP_OK;
}

const char *hbp__length_name(const hbp__length_rows *rows, int i)
{
    static const char *const names[][4] = {{"length", "len", "tokens", "num_tokens"},
                                           {"vision", "images", "num_images", "tiles"}};
    if (rows->options->column)
        return i == 0 ? rows->options->column : NULL;
    return i >= 0 && i < (int)(sizeof names[0] / sizeof *names[0]) ? names[rows->list != NULL][i] : NULL;
}

hbp_status hbp__rows_parse(const hbp__length_rows *rows, const char *name, const char *text, int64_t bytes,
                           int64_t number, int64_t *out)
{
    int parsed = hbp__read_i64(text, bytes, out);
    if (parsed > 0)
        return HBP_OK;
    char shown[41]; /* what is there, fit to print */
    int64_t n = hbp__min_i64(bytes, (int64_t)sizeof shown - 1);
    for (int64_t i = 0; i < n; i++)
        shown[i] = (char)(text[i] >= ' ' && text[i] <= '~' ? text[i] : '?');
    shown[n] = '\0';
    return hbp__fail(rows->context, parsed < 0 ? HBP_E_OVERFLOW : HBP_E_FORMAT, "%s, %s %lld: %s '%s' %s",
                     hbp__stream_name(rows->in), rows->unit, (long long)number, name, shown,
                     parsed < 0 ? "is past 64 bits" : "is not a whole number");
}
