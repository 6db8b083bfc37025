/* A timeline as CSV: comments that name the run, then columns, read in any order. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "hbp/io.h"
#include "hbp/lengths.h"
#include "io/file/atomic_file.h"
#include "io/file/file_error.h"
#include "io/plan/timeline_file.h"
#include "io/text/columns.h"
#include "io/text/csv_table.h"

#define TICK_ROWS  32768
#define TICK_SAVED 4096
#define MOST_EXACT 9007199254740992.0 /* 2^53 */

typedef struct row {
    int64_t line;
    int64_t value[HBP__TIMELINE_FIELDS];
} row;

typedef struct loading {
    hbp_context *context;
    hbp__stream *in;
    const char *names[HBP__TIMELINE_FIELDS];
    int64_t ranks; /* 0: no comment says */
    char device[HBP__TIMELINE_TEXT_BYTES];
    char date[HBP__TIMELINE_TEXT_BYTES];
    int64_t count;
    int64_t room;
    row *rows; /* [room]; rows[count] is at hand */
} loading;

static hbp_status bad_text(const loading *l, int64_t line, const char *name, const char *text, int64_t bytes,
                           const char *limit)
{
    char shown[48];
    hbp__printable_text(shown, sizeof shown, text, bytes);
    return hbp__fail(l->context, HBP_E_FORMAT, "%s, line %lld: %s is '%s'; %s", hbp__stream_name(l->in),
                     (long long)line, name, shown, limit);
}

/* Whether the text is "name: ..."; *text and *bytes become what stands behind. */
static int is_entry(const char *name, const char **text, int64_t *bytes)
{
    int64_t length = (int64_t)strlen(name);
    if (*bytes <= length || memcmp(*text, name, (size_t)length) != 0 || (*text)[length] != ':')
        return 0;
    *text += length + 1;
    *bytes -= length + 1;
    hbp__column_trim(text, bytes);
    return 1;
}

static hbp_status keep_text(const loading *l, int64_t line, const char *name, const char *text, int64_t bytes,
                            char *to)
{
    if (bytes >= HBP__TIMELINE_TEXT_BYTES)
        return bad_text(l, line, name, text, bytes, "it may have 127 bytes");
    for (int64_t i = 0; i < bytes; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 127)
            return bad_text(l, line, name, text, bytes, "control characters are not allowed");
    memcpy(to, text, (size_t)bytes);
    to[bytes] = '\0';
    return HBP_OK;
}

/* Other comments are comments. */
static hbp_status read_comment(void *user, int64_t line, const char *text, int64_t bytes)
{
    loading *l = user;
    if (is_entry("device", &text, &bytes))
        return keep_text(l, line, "device", text, bytes, l->device);
    if (is_entry("date", &text, &bytes))
        return keep_text(l, line, "date", text, bytes, l->date);
    if (is_entry("ranks", &text, &bytes) &&
        (hbp__read_i64(text, bytes, &l->ranks) <= 0 || l->ranks < 1 || l->ranks > INT32_MAX))
        return bad_text(l, line, "ranks", text, bytes, "it is a whole number from 1 to 2147483647");
    return HBP_OK;
}

static hbp_status read_column(void *user, int64_t line, const char *name, int64_t bytes, int32_t *field,
                              double *unit)
{
    loading *l = user;
    (void)line;
    *field = hbp__column_find(l->names, HBP__TIMELINE_FIELDS, HBP__TIMELINE_FIELDS, name, bytes, unit);
    return HBP_OK;
}

static hbp_status more_rows(loading *l)
{
    int64_t room = hbp__max_i64(256, 2 * l->room);
    row *more = hbp__renew(&l->context->memory, l->rows, (uint64_t)room, sizeof *more);
    if (!more)
        return hbp__fail_memory(l->context, "rows of a timeline");
    l->rows = more;
    l->room = room;
    return HBP_OK;
}

/* A whole number; also one that passed through floating point on its way here, 5.0 or 7.645225e+06, as long
 * as that kept it exact. */
static int read_integer(const char *text, int64_t bytes, int64_t *out)
{
    double number;
    if (hbp__read_i64(text, bytes, out) > 0)
        return 1;
    if (!hbp__read_decimal(text, bytes, &number) || !(fabs(number) <= MOST_EXACT) || trunc(number) != number)
        return 0;
    *out = (int64_t)number;
    return 1;
}

static hbp_status read_value(void *user, int64_t line, int32_t field, double unit, const char *text,
                             int64_t bytes)
{
    loading *l = user;
    if (l->count == l->room)
        HBP__TRY(more_rows(l));
    int64_t *value = &l->rows[l->count].value[field];
    const char *name = hbp__timeline_field_name(field);
    if (!hbp__column_has_unit(name, (int64_t)strlen(name))) {
        if (!read_integer(text, bytes, value))
            return bad_text(l, line, name, text, bytes, "it is a whole number");
        return HBP_OK;
    }
    int read = hbp__column_number(text, bytes, unit, value);
    if (!read)
        return bad_text(l, line, name, text, bytes, "it is a number from 0 up");
    if (read < 0)
        return bad_text(l, line, name, text, bytes, "it is at most 2^62 ns or bytes");
    return HBP_OK;
}

static hbp_status end_row(void *user, int64_t line)
{
    loading *l = user;
    if (l->count == l->room) /* a header without a column of ours */
        HBP__TRY(more_rows(l));
    if (l->count == HBP_MAX_SAMPLES)
        return hbp__fail(l->context, HBP_E_OVERFLOW, "%s, line %lld: more than %lld packs",
                         hbp__stream_name(l->in), (long long)line, (long long)HBP_MAX_SAMPLES);
    l->rows[l->count++].line = line;
    return HBP_OK;
}

/* What the header must have. */
static hbp_status check_columns(void *user, uint64_t fields)
{
    const loading *l = user;
    static const int needed[] = {
#define NEEDED(name, type, is_needed) is_needed,
        HBP__TIMELINE_COLUMNS(NEEDED)
#undef NEEDED
    };
    for (int32_t field = 0; field < HBP__TIMELINE_FIELDS; field++)
        if (needed[field] && !(fields >> field & 1))
            return hbp__fail(l->context, HBP_E_FORMAT, "%s has no column %s", hbp__stream_name(l->in),
                             l->names[field]);
    return HBP_OK;
}

/* Without a comment that says, there were as many ranks as the rows name. */
static hbp_status find_ranks(const loading *l, int32_t *out)
{
    int64_t ranks = l->ranks;
    for (int64_t i = 0; !l->ranks && i < l->count; i++) {
        HBP__TRY(hbp__tick_row(l->context, "timeline", i, l->count));
        int64_t first = l->rows[i].value[HBP__TIMELINE_first_rank], sp = l->rows[i].value[HBP__TIMELINE_sp];
        if (first >= 0 && sp >= 1 && first <= INT32_MAX && sp <= INT32_MAX - first)
            ranks = hbp__max_i64(ranks, first + sp);
    }
    *out = (int32_t)hbp__max_i64(ranks, 1);
    return HBP_OK;
}

static hbp_status check_rows(const loading *l, uint64_t fields, int32_t ranks)
{
    for (int64_t i = 0; i < l->count; i++) {
        hbp__timeline_fault fault;
        const row *r = &l->rows[i];
        if (i % TICK_ROWS == 0)
            HBP__TRY(hbp__tick(l->context, "timeline", i, l->count));
        if (hbp__timeline_check_row(r->value, fields, ranks, &fault))
            continue;
        const char *file = hbp__stream_name(l->in), *name = l->names[fault.field];
        if (fault.most == INT64_MAX)
            return hbp__fail(l->context, HBP_E_FORMAT, "%s, line %lld: %s is %lld; it must be at least %lld",
                             file, (long long)r->line, name, (long long)r->value[fault.field],
                             (long long)fault.least);
        return hbp__fail(l->context, HBP_E_FORMAT, "%s, line %lld: %s is %lld; it must be in %lld..%lld",
                         file, (long long)r->line, name, (long long)r->value[fault.field],
                         (long long)fault.least, (long long)fault.most);
    }
    return HBP_OK;
}

/* Rows turned into columns; every value fits its column, as it was checked. */
static hbp_status make_columns(const loading *l, uint64_t fields, hbp_timeline_columns *columns, void **owned)
{
#define TURN(name, type, needed)                                                                             \
    if (fields >> HBP__TIMELINE_##name & 1) {                                                                \
        type *to = owned[HBP__TIMELINE_##name] =                                                             \
            hbp__new(&l->context->memory, (uint64_t)l->count, sizeof *to);                                   \
        if (!to)                                                                                             \
            return hbp__fail_memory(l->context, "the columns of a timeline");                                \
        for (int64_t i = 0; i < l->count; i++) {                                                             \
            to[i] = (type)l->rows[i].value[HBP__TIMELINE_##name];                                            \
            HBP__TRY(hbp__tick_row(l->context, "timeline", i, l->count));                                    \
        }                                                                                                    \
        columns->name = to;                                                                                  \
    }
    HBP__TIMELINE_COLUMNS(TURN)
#undef TURN
    return HBP_OK;
}

static hbp_status make_timeline(loading *l, uint64_t fields, hbp_timeline **out)
{
    void *owned[HBP__TIMELINE_FIELDS] = {0};
    hbp_timeline_columns columns = {
        .struct_size = sizeof columns, .count = l->count, .device = l->device, .date = l->date};
    HBP__TRY(find_ranks(l, &columns.ranks));
    HBP__TRY(check_rows(l, fields, columns.ranks));
    hbp_status status = make_columns(l, fields, &columns, owned);
    hbp__delete(&l->context->memory, l->rows);
    l->rows = NULL;
    if (status >= 0)
        status = hbp__timeline_create(l->context, &columns, out);
    for (int32_t field = 0; field < HBP__TIMELINE_FIELDS; field++)
        hbp__delete(&l->context->memory, owned[field]);
    return status;
}

static hbp_status load_timeline(loading *l, hbp_timeline **out)
{
    uint64_t fields;
    const hbp__csv_table table = {.context = l->context,
                                  .in = l->in,
                                  .user = l,
                                  .comment = read_comment,
                                  .column = read_column,
                                  .field_name = hbp__timeline_field_name,
                                  .header = check_columns,
                                  .value = read_value,
                                  .row = end_row};
    for (int32_t field = 0; field < HBP__TIMELINE_FIELDS; field++)
        l->names[field] = hbp__timeline_field_name(field);
    HBP__TRY(hbp__csv_table_read(&table, &fields));
    HBP__TRY(check_columns(l, fields)); /* none at all in an empty file */
    if (!l->count)
        return hbp__fail(l->context, HBP_E_FORMAT, "%s holds no packs", hbp__stream_name(l->in));
    return make_timeline(l, fields, out);
}

hbp_status hbp__timeline_load_stream(hbp_context *context, hbp__stream *in, hbp_timeline **out)
{
    loading l = {.context = context, .in = in};
    hbp_status status = load_timeline(&l, out);
    hbp__delete(&context->memory, l.rows);
    return status;
}

hbp_status hbp_timeline_load(hbp_context *context, const char *path, hbp_timeline **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, path, "path"));
    hbp__stream *in;
    HBP__TRY(hbp__stream_open(context, path, &in));
    hbp_status status = hbp__timeline_load_stream(context, in, out);
    hbp__stream_close(in);
    return status;
}

/* Room for a row: every field at its longest. */
#define ROW_BYTES (HBP__TIMELINE_FIELDS * 21 + 2)

static hbp_status put_text(hbp_context *context, hbp__atomic_file *file, const char *text)
{
    return hbp__atomic_write(context, file, text, (int64_t)strlen(text));
}

static hbp_status put_comment(hbp_context *context, hbp__atomic_file *file, const char *name,
                              const char *text)
{
    char line[HBP__TIMELINE_TEXT_BYTES + 32];
    if (!text[0])
        return HBP_OK;
    snprintf(line, sizeof line, "# %s: %s\n", name, text);
    return put_text(context, file, line);
}

static hbp_status put_head(hbp_context *context, hbp__atomic_file *file, const hbp_timeline *t)
{
    char line[64];
    const int there[] = {
#define THERE(name, type, needed) t->name != NULL,
        HBP__TIMELINE_COLUMNS(THERE)
#undef THERE
    };
    HBP__TRY(put_comment(context, file, "device", t->device));
    HBP__TRY(put_comment(context, file, "date", t->date));
    snprintf(line, sizeof line, "# ranks: %" PRId32 "\nstep", t->ranks);
    HBP__TRY(put_text(context, file, line));
    for (int32_t field = 1; field < HBP__TIMELINE_FIELDS; field++) {
        if (!there[field])
            continue;
        snprintf(line, sizeof line, ",%s", hbp__timeline_field_name(field));
        HBP__TRY(put_text(context, file, line));
    }
    return put_text(context, file, "\n");
}

static hbp_status put_row(hbp_context *context, hbp__atomic_file *file, const hbp_timeline *t, int64_t i)
{
    char line[ROW_BYTES];
    int at = 0;
#define PUT(name, type, needed)                                                                              \
    if (t->name)                                                                                             \
        at += snprintf(line + at, sizeof line - (size_t)at, ",%" PRId64, (int64_t)t->name[i]);
    HBP__TIMELINE_COLUMNS(PUT)
#undef PUT
    line[at++] = '\n';
    return hbp__atomic_write(context, file, line + 1, at - 1); /* less the first comma */
}

static hbp_status put_all(hbp_context *context, hbp__atomic_file *file, const hbp_timeline *t)
{
    HBP__TRY(put_head(context, file, t));
    for (int64_t i = 0; i < t->count; i++) {
        if (i % TICK_SAVED == 0)
            HBP__TRY(hbp__tick(context, "save", i, t->count));
        HBP__TRY(put_row(context, file, t, i));
    }
    return HBP_OK;
}

hbp_status hbp_timeline_save(hbp_context *context, const hbp_timeline *timeline, const char *path)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, timeline, "timeline"));
    HBP__TRY(hbp__require(context, path, "path"));
    hbp__atomic_file file;
    HBP__TRY(hbp__atomic_open(context, path, &file));
    return hbp__atomic_end(context, &file, put_all(context, &file, timeline));
}
