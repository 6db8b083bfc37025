#include "io/lengths/mds_columns.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "io/file/file_error.h"

#define SHOWN 160

/* The types of arrays; integers are encodings, too. `code` is what an array without a type in its encoding
 * begins with. */
static const struct type {
    const char *name;
    int item;
    int code;
    int kind; /* 'i', 'u', 'f' */
} TYPES[] = {{"uint8", 1, 8, 'u'},    {"int8", 1, 9, 'i'},    {"uint16", 2, 16, 'u'}, {"int16", 2, 17, 'i'},
             {"float16", 2, 18, 'f'}, {"uint32", 4, 32, 'u'}, {"int32", 4, 33, 'i'},  {"float32", 4, 34, 'f'},
             {"uint64", 8, 64, 'u'},  {"int64", 8, 65, 'i'},  {"float64", 8, 66, 'f'}};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

int hbp__mds_item_of_code(int code)
{
    for (size_t i = 0; i < COUNT_OF(TYPES); i++)
        if (TYPES[i].code == code)
            return TYPES[i].item;
    return 0;
}

static const struct type *find_type(const char *name, size_t bytes)
{
    for (size_t i = 0; i < COUNT_OF(TYPES); i++)
        if (strlen(TYPES[i].name) == bytes && memcmp(TYPES[i].name, name, bytes) == 0)
            return &TYPES[i];
    return NULL;
}

static hbp_status bad_column(const hbp__length_rows *rows, const hbp__mds_column *column, hbp_status status,
                             const char *what)
{
    char name[64], encoding[64];
    hbp__printable(name, sizeof name, column->name);
    hbp__printable(encoding, sizeof encoding, column->encoding);
    return hbp__fail(rows->context, status, "%s: the column '%s' (%s) %s", hbp__stream_name(rows->in), name,
                     encoding, what);
}

/* "", "int32" or "int32:4,16", behind "ndarray:". */
static hbp_status parse_array(const hbp__length_rows *rows, hbp__mds_column *column, const char *text)
{
    column->kind = HBP__MDS_ARRAY;
    if (!*text)
        return HBP_OK;
    const char *colon = strchr(text, ':');
    const struct type *type = find_type(text, colon ? (size_t)(colon - text) : strlen(text));
    if (!type)
        return bad_column(rows, column, HBP_E_FORMAT, "has a type that is not known");
    column->item = type->item;
    if (!colon)
        return HBP_OK;
    column->elements = 1;
    for (const char *at = colon + 1;; at++) {
        int64_t dimension;
        size_t digits = strspn(at, "0123456789");
        if (hbp__read_i64(at, (int64_t)digits, &dimension) <= 0 || dimension < 1 ||
            dimension > HBP_MAX_LENGTH / column->elements)
            return bad_column(rows, column, HBP_E_FORMAT, "has a shape that is not understood, or too large");
        column->elements *= dimension;
        at += digits;
        if (!*at)
            return HBP_OK;
        if (*at != ',')
            return bad_column(rows, column, HBP_E_FORMAT, "has a shape that is not understood, or too large");
    }
}

static hbp_status parse_encoding(const hbp__length_rows *rows, hbp__mds_column *column)
{
    const char *text = column->encoding;
    const struct type *type =
        strcmp(text, "int") == 0 ? find_type("int64", 5) : find_type(text, strlen(text));
    column->kind = HBP__MDS_OTHER;
    if (type && type->kind != 'f') {
        column->kind = HBP__MDS_INTEGER;
        column->item = type->item;
        column->is_signed = type->kind == 'i';
    } else if (strcmp(text, "str_int") == 0) {
        column->kind = HBP__MDS_DIGITS;
    } else if (strcmp(text, "bytes") == 0) {
        column->kind = HBP__MDS_BYTES;
    } else if (strncmp(text, "ndarray", 7) == 0 && (!text[7] || text[7] == ':')) {
        return parse_array(rows, column, text + 7 + (text[7] == ':'));
    }
    return HBP_OK;
}

/* The size that the index states is that of the encoding. */
static hbp_status check_size(const hbp__length_rows *rows, hbp__mds_column *column, const hbp__value *size)
{
    int64_t bytes = hbp__value_whole(size), due = 0;
    if (!hbp__value_is(size, HBP__NOTHING) && (!hbp__value_is(size, HBP__WHOLE) || bytes < 0))
        return bad_column(rows, column, HBP_E_FORMAT, "has a size that is not understood");
    column->fixed = bytes;
    if (column->kind == HBP__MDS_OTHER)
        return HBP_OK;
    if (column->kind == HBP__MDS_INTEGER)
        due = column->item;
    else if (column->kind == HBP__MDS_ARRAY)
        due = column->elements * column->item;
    return bytes == due ? HBP_OK
                        : bad_column(rows, column, HBP_E_FORMAT, "has a size that is not its type's");
}

static hbp_status add_column(hbp__length_rows *rows, hbp__mds_columns *columns, const hbp__value *name,
                             const hbp__value *encoding, const hbp__value *size)
{
    if (columns->count == columns->room) {
        int64_t room = columns->room ? 2 * columns->room : 16;
        hbp__mds_column *wider =
            hbp__renew(&rows->context->memory, columns->column, (uint64_t)room, sizeof *wider);
        if (!wider)
            return hbp__fail_memory(rows->context, "columns");
        columns->column = wider;
        columns->room = room;
    }
    hbp__mds_column *column = &columns->column[columns->count++];
    *column = (hbp__mds_column){.name = hbp__value_text(name), .encoding = hbp__value_text(encoding)};
    if (!column->name || !column->encoding)
        return hbp__fail(rows->context, HBP_E_FORMAT, "%s: the names or encodings of columns are no texts",
                         hbp__stream_name(rows->in));
    HBP__TRY(parse_encoding(rows, column));
    return check_size(rows, column, size);
}

/* "id (int), tokens (ndarray:int32)", cut off where it is long. */
static void show_columns(const hbp__mds_columns *columns, char *text, size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (int64_t i = 0; i < columns->count && used < room; i++) {
        char name[64], encoding[64];
        hbp__printable(name, sizeof name, columns->column[i].name);
        hbp__printable(encoding, sizeof encoding, columns->column[i].encoding);
        int more = snprintf(text + used, room - used, "%s%s (%s)", i ? ", " : "", name, encoding);
        used += more > 0 ? (size_t)more : 0;
    }
}

static hbp_status fail_absent(const hbp__length_rows *rows, const hbp__mds_columns *columns, const char *name)
{
    char shown[SHOWN];
    show_columns(columns, shown, sizeof shown);
    if (name)
        return hbp__fail(rows->context, HBP_E_FORMAT, "%s: no column '%.64s'; there are %s",
                         hbp__stream_name(rows->in), name, shown);
    int can = 0;
    for (int64_t i = 0; i < columns->count; i++)
        can |= columns->column[i].kind != HBP__MDS_OTHER;
    if (!can)
        return hbp__fail(rows->context, HBP_E_FORMAT,
                         "%s: no column holds tokens or whole numbers, but %s; text is to be tokenised first",
                         hbp__stream_name(rows->in), shown);
    return hbp__fail(rows->context, HBP_E_FORMAT, "%s: no column has a name that %s go by; name one of %s",
                     hbp__stream_name(rows->in), rows->list ? "vision units" : "lengths", shown);
}

/* The column called `name`, or before its colon what a column of bytes is called; -1: there is none. */
static int64_t find_column(hbp__mds_columns *columns, const char *name)
{
    for (int64_t i = 0; i < columns->count; i++)
        if (strcmp(columns->column[i].name, name) == 0)
            return i;
    const char *colon = strrchr(name, ':');
    const struct type *type = colon ? find_type(colon + 1, strlen(colon + 1)) : NULL;
    for (int64_t i = 0; type && i < columns->count; i++) {
        hbp__mds_column *column = &columns->column[i];
        if (column->kind == HBP__MDS_BYTES && strncmp(column->name, name, (size_t)(colon - name)) == 0 &&
            strlen(column->name) == (size_t)(colon - name)) {
            column->item = type->item;
            return i;
        }
    }
    return -1;
}

/* Unasked: a name that lengths go by, the name of tokens, or the only array. */
static int64_t guess_column(hbp__length_rows *rows, hbp__mds_columns *columns)
{
    const char *name;
    for (int i = 0; (name = hbp__length_name(rows, i)) != NULL; i++) {
        int64_t found = find_column(columns, name);
        if (found >= 0) {
            rows->column = rows->list ? rows->column : name;
            return found;
        }
    }
    int64_t found = rows->list ? -1 : find_column(columns, "input_ids"), arrays = 0;
    if (found >= 0)
        rows->column = "input_ids";
    for (int64_t i = 0; found < 0 && !rows->list && i < columns->count; i++)
        arrays += columns->column[i].kind == HBP__MDS_ARRAY;
    for (int64_t i = 0; found < 0 && arrays == 1 && i < columns->count; i++)
        if (columns->column[i].kind == HBP__MDS_ARRAY)
            return i;
    return found;
}

/* Whether what is asked for can be had of the column. */
static hbp_status check_role(const hbp__length_rows *rows, const hbp__mds_column *column, int role)
{
    if (column->kind == HBP__MDS_INTEGER || column->kind == HBP__MDS_DIGITS)
        return HBP_OK;
    if (strcmp(column->encoding, "str") == 0)
        return bad_column(rows, column, HBP_E_INVALID,
                          "holds text, whose tokens nobody has counted: tokenise it first");
    if (column->kind == HBP__MDS_OTHER)
        return bad_column(rows, column, HBP_E_INVALID, "holds neither tokens nor whole numbers");
    if (role != HBP__MDS_LENGTH && role != HBP__MDS_VISION)
        return bad_column(rows, column, HBP_E_INVALID, "holds arrays; one number a sample is wanted");
    if (column->kind == HBP__MDS_BYTES && !column->item) {
        char what[256], name[64];
        hbp__printable(name, sizeof name, column->name);
        snprintf(what, sizeof what,
                 "holds bytes; name it with the type of its tokens, as '%s:int64' or '%s:uint16'", name,
                 name);
        return bad_column(rows, column, HBP_E_INVALID, what);
    }
    if (strchr(column->encoding, ','))
        return bad_column(rows, column, HBP_E_INVALID, "holds arrays of several dimensions; one is read");
    return HBP_OK;
}

static hbp_status find_roles(hbp__length_rows *rows, hbp__mds_columns *columns)
{
    const hbp_lengths_load_options *options = rows->options;
    const char *const names[HBP__MDS_ROLES] = {options->column, options->loss_column, options->link_column,
                                               options->vision_column, options->modality_column};
    for (int role = 0; role < HBP__MDS_ROLES; role++) {
        columns->of[role] = names[role] ? find_column(columns, names[role]) : -1;
        if (role == HBP__MDS_LENGTH && !names[role])
            columns->of[role] = guess_column(rows, columns);
        if (columns->of[role] < 0 && (names[role] || role == HBP__MDS_LENGTH))
            return fail_absent(rows, columns, names[role]);
        if (columns->of[role] >= 0)
            HBP__TRY(check_role(rows, &columns->column[columns->of[role]], role));
    }
    return HBP_OK;
}

hbp_status hbp__mds_columns_read(hbp__length_rows *rows, const hbp__value *shard, hbp__mds_columns *columns)
{
    const hbp__value *names = hbp__value_find(shard, "column_names");
    const hbp__value *encoding = hbp__value_find(shard, "column_encodings");
    const hbp__value *size = hbp__value_find(shard, "column_sizes");
    columns->count = 0;
    uint32_t count = hbp__value_count(names);
    if (!count || hbp__value_count(encoding) != count || hbp__value_count(size) != count)
        return hbp__fail(rows->context, HBP_E_FORMAT,
                         "%s: a shard has no columns, or not as many names as encodings and sizes",
                         hbp__stream_name(rows->in));
    encoding++, size++;
    HBP__EACH(names, name)
    {
        HBP__TRY(add_column(rows, columns, name, encoding, size));
        encoding = hbp__value_next(encoding);
        size = hbp__value_next(size);
    }
    return find_roles(rows, columns);
}
