/* Lengths from CSV: columns found by the header's names, or by their place where there is none. */
#include <string.h>

#include "base/number.h"
#include "hbp/io.h"
#include "io/lengths/read_lengths.h"
#include "io/text/fields.h"

#define HEADER_SHOWN 160

/* Which field of a record is what; -1: none is. */
typedef struct columns {
    int64_t fields; /* of every record */
    int64_t length;
    int64_t count;
    int64_t loss;
    int64_t link;
    int64_t vision;
    int64_t modality;
    int length_rank; /* preference of the name found for the length */
    int64_t header_bytes;
    char header[HEADER_SHOWN]; /* the names, for messages; ends in zeros */
} columns;

/* Whether the field, blanks around it aside, is `name`; NULL is no name. */
static int is_called(const hbp__fields *fields, const char *name)
{
    if (!name || fields->too_long)
        return 0;
    const char *text = fields->text;
    int64_t bytes = fields->bytes;
    while (bytes && *text == ' ')
        text++, bytes--;
    while (bytes && text[bytes - 1] == ' ')
        bytes--;
    return strlen(name) == (size_t)bytes && memcmp(text, name, (size_t)bytes) == 0;
}

/* Adds a name to those shown; what does not fit is left out. */
static void show_name(columns *c, const hbp__fields *fields)
{
    const char *comma = fields->index ? ", " : "";
    for (; *comma && c->header_bytes < HEADER_SHOWN - 1; comma++)
        c->header[c->header_bytes++] = *comma;
    for (int64_t i = 0; i < fields->bytes && c->header_bytes < HEADER_SHOWN - 1; i++) {
        char byte = fields->text[i];
        c->header[c->header_bytes++] = (char)(byte >= ' ' && byte <= '~' ? byte : '?');
    }
}

/* Whether any column beside the lengths is asked for. */
static int asks_columns(const hbp_lengths_load_options *options)
{
    return options->loss_column || options->link_column || options->vision_column || options->modality_column;
}

static void match_name(columns *c, const hbp__fields *fields, hbp__length_rows *rows)
{
    const hbp_lengths_load_options *options = rows->options;
    /* "count" is looked for unasked only where a histogram can be meant */
    const char *count_name = options->count_column;
    if (!count_name && !asks_columns(options) && !rows->list && !rows->beside)
        count_name = "count";
    const char *name;
    for (int rank = 0; (name = hbp__length_name(rows, rank)) != NULL && rank < c->length_rank; rank++)
        if (is_called(fields, name)) {
            c->length = fields->index;
            c->length_rank = rank;
            rows->column = name;
        }
    if (c->count < 0 && count_name && *count_name && is_called(fields, count_name))
        c->count = fields->index;
    if (c->loss < 0 && is_called(fields, options->loss_column))
        c->loss = fields->index;
    if (c->link < 0 && is_called(fields, options->link_column))
        c->link = fields->index;
    if (c->vision < 0 && is_called(fields, options->vision_column))
        c->vision = fields->index;
    if (c->modality < 0 && is_called(fields, options->modality_column))
        c->modality = fields->index;
}

static hbp_status no_column(const hbp__length_rows *rows, const hbp__fields *fields, const columns *c,
                            const char *name)
{
    return hbp__fail(rows->context, HBP_E_FORMAT, "%s, line %lld: no column '%s'; the header has %s",
                     hbp__stream_name(rows->in), (long long)fields->line, name, c->header);
}

/* The first record is a header: its first field is no number. */
static hbp_status read_header(hbp__length_rows *rows, hbp__fields *fields, columns *c)
{
    const hbp_lengths_load_options *options = rows->options;
    for (;; c->fields++) {
        show_name(c, fields);
        match_name(c, fields, rows);
        if (fields->last)
            break;
        HBP__TRY(hbp__fields_next(fields));
    }
    c->fields++;
    if (c->length < 0 && !options->column)
        return hbp__fail(
            rows->context, HBP_E_FORMAT,
            "%s, line %lld: no column '%s'; the header has %s; `column` names the one of lengths",
            hbp__stream_name(rows->in), (long long)fields->line, hbp__length_name(rows, 0), c->header);
    if (c->length < 0)
        return no_column(rows, fields, c, hbp__length_name(rows, 0));
    if (c->count < 0 && options->count_column && *options->count_column)
        return no_column(rows, fields, c, options->count_column);
    if (c->loss < 0 && options->loss_column)
        return no_column(rows, fields, c, options->loss_column);
    if (c->link < 0 && options->link_column)
        return no_column(rows, fields, c, options->link_column);
    if (c->vision < 0 && options->vision_column)
        return no_column(rows, fields, c, options->vision_column);
    if (c->modality < 0 && options->modality_column)
        return no_column(rows, fields, c, options->modality_column);
    rows->has_loss = c->loss >= 0;
    rows->has_link = c->link >= 0;
    rows->has_vision = c->vision >= 0;
    rows->has_modality = c->modality >= 0;
    return c->count >= 0 ? hbp__rows_histogram(rows) : HBP_OK;
}

static hbp_status wrong_fields(const hbp__length_rows *rows, const hbp__fields *fields, const columns *c)
{
    int before = fields->index + 1 < c->fields;
    return hbp__fail(rows->context, HBP_E_FORMAT, "%s, line %lld: %s %lld fields; the first record has %lld",
                     hbp__stream_name(rows->in), (long long)fields->line, before ? "only" : "more than",
                     (long long)(before ? fields->index + 1 : c->fields), (long long)c->fields);
}

static hbp_status parse_field(const hbp__length_rows *rows, const hbp__fields *fields, const char *name,
                              int64_t *out)
{
    return hbp__rows_parse(rows, name, fields->text, fields->bytes, fields->line, out);
}

/* The field at hand, which is the first of its record, and those after it. */
static hbp_status read_record(hbp__length_rows *rows, hbp__fields *fields, const columns *c)
{
    hbp__length_row row = {.link = -1};
    for (;;) {
        if (fields->index == c->length && (fields->bytes || !rows->list)) /* no units are 0 of them */
            HBP__TRY(parse_field(rows, fields, rows->noun, &row.length));
        if (fields->index == c->count)
            HBP__TRY(parse_field(rows, fields, "the count", &row.count));
        if (fields->index == c->loss)
            HBP__TRY(parse_field(rows, fields, "the number of loss tokens", &row.loss));
        if (fields->index == c->link && fields->bytes)
            HBP__TRY(parse_field(rows, fields, "the link", &row.link));
        if (fields->index == c->vision && fields->bytes)
            HBP__TRY(parse_field(rows, fields, "the number of vision units", &row.vision));
        if (fields->index == c->modality)
            HBP__TRY(parse_field(rows, fields, "the modality", &row.modality));
        if (fields->index >= c->fields || (fields->last && fields->index + 1 < c->fields))
            return wrong_fields(rows, fields, c);
        if (fields->last)
            return hbp__rows_add(rows, &row, fields->line);
        HBP__TRY(hbp__fields_next(fields));
    }
}

/* Without a header: lengths, or lengths and counts. The first record tells which, so it is read by hand. */
static hbp_status read_bare_record(hbp__length_rows *rows, hbp__fields *fields, columns *c)
{
    const hbp_lengths_load_options *options = rows->options;
    hbp__length_row row = {.link = -1};
    if (options->column || options->count_column || asks_columns(options))
        return hbp__fail(rows->context, HBP_E_FORMAT,
                         "%s, line %lld: a number where the names of columns should be",
                         hbp__stream_name(rows->in), (long long)fields->line);
    HBP__TRY(parse_field(rows, fields, rows->noun, &row.length));
    c->length = 0;
    c->fields = 1;
    if (!fields->last) {
        HBP__TRY(hbp__fields_next(fields));
        HBP__TRY(parse_field(rows, fields, "the count", &row.count));
        c->count = 1;
        c->fields = 2;
    }
    if (!fields->last)
        return hbp__fail(rows->context, HBP_E_FORMAT,
                         "%s, line %lld: more than 2 fields and no header to say which is the length",
                         hbp__stream_name(rows->in), (long long)fields->line);
    if (c->count >= 0)
        HBP__TRY(hbp__rows_histogram(rows));
    return hbp__rows_add(rows, &row, fields->line);
}

hbp_status hbp__read_csv(hbp__length_rows *rows)
{
    int delimiter;
    HBP__TRY(hbp__fields_delimiter(rows->in, &delimiter));
    hbp__fields fields;
    HBP__TRY(hbp__fields_begin(&fields, rows->context, rows->in, delimiter, 1));
    columns c = {.length = -1,
                 .count = -1,
                 .loss = -1,
                 .link = -1,
                 .vision = -1,
                 .modality = -1,
                 .length_rank = INT32_MAX};
    for (;;) {
        HBP__TRY(hbp__fields_next(&fields));
        if (fields.end)
            return HBP_OK;
        if (hbp__fields_blank(&fields))
            continue;
        int64_t number;
        if (c.fields)
            HBP__TRY(read_record(rows, &fields, &c));
        else if (hbp__read_i64(fields.text, fields.bytes, &number))
            HBP__TRY(read_bare_record(rows, &fields, &c));
        else
            HBP__TRY(read_header(rows, &fields, &c));
    }
}
