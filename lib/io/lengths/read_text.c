/* Lengths from plain text, one a line. */
#include "io/lengths/read_lengths.h"
#include "io/text/fields.h"

hbp_status hbp__read_text(hbp__length_rows *rows)
{
    hbp__fields fields;
    HBP__TRY(hbp__fields_begin(&fields, rows->context, rows->in, -1, 0));
    for (;;) {
        HBP__TRY(hbp__fields_next(&fields));
        if (fields.end)
            return HBP_OK;
        if (hbp__fields_blank(&fields) || (fields.bytes && fields.text[0] == '#'))
            continue;
        hbp__length_row row = {0};
        HBP__TRY(hbp__rows_parse(rows, rows->noun, fields.text, fields.bytes, fields.line, &row.length));
        HBP__TRY(hbp__rows_add(rows, &row, fields.line));
    }
}
