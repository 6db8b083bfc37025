/* Lengths from JSON objects: fields found by name, arrays counted. */
#include <string.h>

#include "base/checked.h"
#include "hbp/io.h"
#include "io/json/json_scan.h"
#include "io/lengths/read_lengths.h"

/* A field that is looked for. */
typedef struct wanted {
    const char *name;
    int kind; /* HBP__JSON_* of its value in this object; HBP__JSON_END: absent */
    int64_t elements;
    int64_t bytes;
    char text[HBP__JSON_TEXT];
} wanted;

#define MOST_NAMES 4

typedef struct record {
    wanted length[MOST_NAMES];
    int names;
    int chosen; /* which of `length`: the first that the first object has; -1 before it */
    wanted loss;
    wanted link;
    wanted vision;
    wanted modality;
    wanted *other[4]; /* those beside the lengths that are looked for */
    int others;
    int has_vision; /* an object had the field */
} record;

static int is_called(const hbp__json_scan *scan, const wanted *field)
{
    return field->name && scan->bytes <= HBP__JSON_TEXT && strlen(field->name) == (size_t)scan->bytes &&
           memcmp(scan->text, field->name, (size_t)scan->bytes) == 0;
}

static void store_value(const hbp__json_scan *scan, wanted *field)
{
    field->kind = scan->kind;
    field->elements = scan->elements;
    field->bytes = hbp__min_i64(scan->bytes, HBP__JSON_TEXT);
    memcpy(field->text, scan->text, (size_t)field->bytes);
}

/* A key has been read: its value goes to every field of that name; a later one of a name replaces an earlier
 * one. */
static hbp_status read_member(hbp__json_scan *scan, record *r)
{
    unsigned match = 0;
    for (int i = 0; i < r->names; i++)
        match |= is_called(scan, &r->length[i]) ? 1u << i : 0;
    unsigned other = 0;
    for (int i = 0; i < r->others; i++)
        other |= is_called(scan, r->other[i]) ? 1u << i : 0;
    int byte;
    HBP__TRY(hbp__json_next(scan, &byte));
    if (byte != ':')
        return hbp__json_fail(scan, "a colon is missing after a key");
    hbp__json_take(scan);
    HBP__TRY(hbp__json_value(scan));
    for (int i = 0; i < r->names; i++)
        if (match >> i & 1)
            store_value(scan, &r->length[i]);
    for (int i = 0; i < r->others; i++)
        if (other >> i & 1)
            store_value(scan, r->other[i]);
    return HBP_OK;
}

/* The object whose opening brace is next. */
static hbp_status read_object(hbp__json_scan *scan, record *r)
{
    int byte;
    for (int i = 0; i < r->names; i++)
        r->length[i].kind = HBP__JSON_END;
    r->loss.kind = r->link.kind = r->vision.kind = r->modality.kind = HBP__JSON_END;
    hbp__json_take(scan);
    HBP__TRY(hbp__json_next(scan, &byte));
    if (byte == '}') {
        hbp__json_take(scan);
        return HBP_OK;
    }
    for (;;) {
        HBP__TRY(hbp__json_next(scan, &byte));
        if (byte != '"')
            return hbp__json_fail(scan, "a key is missing");
        HBP__TRY(hbp__json_string(scan));
        HBP__TRY(read_member(scan, r));
        HBP__TRY(hbp__json_next(scan, &byte));
        if (byte != ',' && byte != '}')
            return hbp__json_fail(scan, "a comma or } is missing");
        hbp__json_take(scan);
        if (byte == '}')
            return HBP_OK;
    }
}

static hbp_status bad_field(const hbp__length_rows *rows, int64_t line, const wanted *field)
{
    static const char *const kinds[] = {"is missing",  "is not a whole number", "is a string",
                                        "is an array", "is an object",          "is not a number"};
    return hbp__fail(rows->context, HBP_E_FORMAT, "%s, line %lld: the field '%s' %s",
                     hbp__stream_name(rows->in), (long long)line, field->name, kinds[field->kind]);
}

static hbp_status number_of(const hbp__length_rows *rows, int64_t line, const wanted *field, int64_t *out)
{
    if (field->kind != HBP__JSON_NUMBER)
        return bad_field(rows, line, field);
    return hbp__rows_parse(rows, field->name, field->text, field->bytes, line, out);
}

static int is_null(const wanted *field)
{
    return field->kind == HBP__JSON_WORD && field->bytes == 4 && memcmp(field->text, "null", 4) == 0;
}

/* A number, or an array whose elements are counted. */
static hbp_status size_of(const hbp__length_rows *rows, int64_t line, const wanted *field, int64_t *out)
{
    if (field->kind != HBP__JSON_ARRAY)
        return number_of(rows, line, field, out);
    *out = field->elements;
    return HBP_OK;
}

/* The same of vision units: a sample without the field has none. */
static hbp_status units_of(const hbp__length_rows *rows, int64_t line, const wanted *field, int64_t *out)
{
    *out = 0;
    return field->kind == HBP__JSON_END || is_null(field) ? HBP_OK : size_of(rows, line, field, out);
}

static hbp_status add_record(hbp__length_rows *rows, record *r, int64_t line)
{
    for (int i = 0; i < r->names && r->chosen < 0; i++)
        if (r->length[i].kind != HBP__JSON_END)
            rows->column = r->length[r->chosen = i].name;
    const wanted *length = &r->length[r->chosen < 0 ? 0 : r->chosen];
    hbp__length_row row = {.link = -1};
    HBP__TRY((rows->list ? units_of : size_of)(rows, line, length, &row.length));
    if (rows->has_loss)
        HBP__TRY(number_of(rows, line, &r->loss, &row.loss));
    if (rows->has_link && r->link.kind != HBP__JSON_END && !is_null(&r->link))
        HBP__TRY(number_of(rows, line, &r->link, &row.link));
    if (rows->has_vision)
        HBP__TRY(units_of(rows, line, &r->vision, &row.vision));
    if (rows->has_modality)
        HBP__TRY(number_of(rows, line, &r->modality, &row.modality));
    r->has_vision |= r->vision.kind != HBP__JSON_END;
    return hbp__rows_add(rows, &row, line);
}

/* Vision units that no object has are a name misspelt, not text alone. */
static hbp_status check_vision(const hbp__length_rows *rows, const record *r)
{
    const char *name = rows->list ? r->length[0].name : r->vision.name;
    if (rows->added == 0 || (rows->list ? r->chosen >= 0 : !rows->has_vision || r->has_vision))
        return HBP_OK;
    return hbp__fail(rows->context, HBP_E_FORMAT, "%s: no object has the field '%s'",
                     hbp__stream_name(rows->in), name);
}

hbp_status hbp__read_jsonl(hbp__length_rows *rows)
{
    const hbp_lengths_load_options *options = rows->options;
    record r = {.chosen = -1,
                .loss = {.name = options->loss_column},
                .link = {.name = options->link_column},
                .vision = {.name = options->vision_column},
                .modality = {.name = options->modality_column}};
    wanted *const others[] = {&r.loss, &r.link, &r.vision, &r.modality};
    for (int i = 0; i < 4; i++)
        if (others[i]->name)
            r.other[r.others++] = others[i];
    while (r.names < MOST_NAMES && hbp__length_name(rows, r.names)) {
        r.length[r.names].name = hbp__length_name(rows, r.names);
        r.names++;
    }
    rows->has_loss = options->loss_column != NULL;
    rows->has_link = options->link_column != NULL;
    rows->has_vision = options->vision_column != NULL;
    rows->has_modality = options->modality_column != NULL;
    const unsigned char *data;
    int64_t bytes;
    HBP__TRY(hbp__stream_peek(rows->in, 3, &data, &bytes));
    if (bytes >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0) /* a byte order mark */
        hbp__stream_take(rows->in, 3);
    hbp__json_scan scan;
    hbp__json_begin(&scan, rows->context, rows->in);
    for (;;) {
        int byte;
        HBP__TRY(hbp__json_next(&scan, &byte));
        if (byte < 0)
            return check_vision(rows, &r);
        if (byte != '{')
            return hbp__json_fail(&scan, "not a JSON object; each line holds one");
        int64_t line = scan.line;
        HBP__TRY(read_object(&scan, &r));
        HBP__TRY(add_record(rows, &r, line));
    }
}
