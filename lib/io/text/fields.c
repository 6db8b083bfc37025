#include "io/text/fields.h"

#include <string.h>

#define END (-1)

/* Makes sure that the next byte is at data[used], or that shown == used: the end. */
static hbp_status refill_block(hbp__fields *fields)
{
    if (fields->used < fields->shown)
        return HBP_OK;
    hbp__stream_take(fields->in, fields->used);
    fields->used = fields->shown = 0;
    return hbp__stream_peek(fields->in, 1, &fields->data, &fields->shown);
}

/* The next byte or END, without taking it. */
static hbp_status look_at_byte(hbp__fields *fields, int *byte)
{
    HBP__TRY(refill_block(fields));
    *byte = fields->used < fields->shown ? fields->data[fields->used] : END;
    return HBP_OK;
}

static inline void take_byte(hbp__fields *fields)
{
    fields->next_line += fields->data[fields->used++] == '\n';
}

static inline void keep_byte(hbp__fields *fields, int byte)
{
    if (fields->bytes < HBP__FIELD_BYTES)
        fields->text[fields->bytes++] = (char)byte;
    else
        fields->too_long = 1;
}

hbp_status hbp__fields_delimiter(hbp__stream *in, int *delimiter)
{
    const unsigned char *data;
    int64_t bytes;
    *delimiter = ',';
    HBP__TRY(hbp__stream_peek(in, HBP__STREAM_AHEAD, &data, &bytes));
    for (int64_t i = 0; i < bytes && data[i] != '\n'; i++)
        if (data[i] == ',' || data[i] == '\t' || data[i] == ';') {
            *delimiter = data[i];
            break;
        }
    return HBP_OK;
}

hbp_status hbp__fields_begin(hbp__fields *fields, hbp_context *context, hbp__stream *in, int delimiter,
                             int quotes)
{
    *fields = (hbp__fields){.context = context, .in = in, .delimiter = delimiter, .quotes = quotes};
    fields->next_line = 1;
    fields->last = 1;
    const unsigned char *data;
    int64_t bytes;
    HBP__TRY(hbp__stream_peek(in, 3, &data, &bytes));
    if (bytes >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0)
        hbp__stream_take(in, 3);
    return HBP_OK;
}

hbp_status hbp__fields_find_delimiter(hbp__fields *fields)
{
    hbp__stream_take(fields->in, fields->used);
    fields->used = fields->shown = 0;
    return hbp__fields_delimiter(fields->in, &fields->delimiter);
}

hbp_status hbp__fields_peek(hbp__fields *fields, int *byte)
{
    return look_at_byte(fields, byte);
}

/* From behind an opening quote to behind the closing one. */
static hbp_status quoted_part(hbp__fields *fields)
{
    int64_t opened = fields->next_line;
    for (int byte;;) {
        HBP__TRY(look_at_byte(fields, &byte));
        if (byte == END)
            return hbp__fail(fields->context, HBP_E_FORMAT, "%s, line %lld: a quote opens and does not close",
                             hbp__stream_name(fields->in), (long long)opened);
        take_byte(fields);
        if (byte == '"') {
            HBP__TRY(look_at_byte(fields, &byte));
            if (byte != '"')
                return HBP_OK;
            take_byte(fields);
        }
        keep_byte(fields, byte);
    }
}

static hbp_status plain_part(hbp__fields *fields)
{
    for (;;) {
        HBP__TRY(refill_block(fields));
        if (fields->used == fields->shown)
            return HBP_OK;
        int byte = fields->data[fields->used];
        if (byte == fields->delimiter || byte == '\n')
            return HBP_OK;
        take_byte(fields);
        keep_byte(fields, byte);
    }
}

hbp_status hbp__fields_next(hbp__fields *fields)
{
    int byte;
    fields->index = fields->last ? 0 : fields->index + 1;
    fields->line = fields->last ? fields->next_line : fields->line;
    fields->bytes = 0;
    fields->too_long = fields->was_quoted = 0;
    HBP__TRY(look_at_byte(fields, &byte));
    fields->end = fields->last && byte == END;
    if (fields->end)
        return HBP_OK;
    if (fields->quotes && byte == '"') {
        take_byte(fields);
        fields->was_quoted = 1;
        HBP__TRY(quoted_part(fields));
        HBP__TRY(look_at_byte(fields, &byte));
        if (byte == '\r')
            take_byte(fields);
        HBP__TRY(look_at_byte(fields, &byte));
        if (byte != fields->delimiter && byte != '\n' && byte != END)
            return hbp__fail(fields->context, HBP_E_FORMAT, "%s, line %lld: text after a closing quote",
                             hbp__stream_name(fields->in), (long long)fields->next_line);
    } else
        HBP__TRY(plain_part(fields));
    HBP__TRY(look_at_byte(fields, &byte));
    fields->last = byte == END || byte == '\n';
    if (byte != END)
        take_byte(fields);
    if (fields->last && !fields->was_quoted && fields->bytes && fields->text[fields->bytes - 1] == '\r')
        fields->bytes--;
    return HBP_OK;
}

int hbp__fields_blank(const hbp__fields *fields)
{
    if (fields->index || !fields->last || fields->was_quoted || fields->too_long)
        return 0;
    for (int64_t i = 0; i < fields->bytes; i++)
        if (fields->text[i] != ' ' && fields->text[i] != '\t')
            return 0;
    return 1;
}
