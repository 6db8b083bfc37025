#include "io/lengths/read_lengths.h"
#include "hbp/io.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "io/file/file_error.h"

#define PATH_BYTES 4096
#define BY_PYARROW "which the hbp command and hbp.Lengths.read read by its name, through Python's pyarrow"

typedef hbp_status (*reader)(hbp__length_rows *rows);

static const struct {
    const char *name;
    reader read;
} FORMATS[] = {{"npy", hbp__read_npy},     {"text", hbp__read_text}, {"csv", hbp__read_csv},
               {"jsonl", hbp__read_jsonl}, {"idx", hbp__read_idx},   {"mds", hbp__read_mds}};

/* Name endings that settle what the content leaves open. */
static const struct {
    const char *ending;
    reader read;
} ENDINGS[] = {{".npy", hbp__read_npy},    {".idx", hbp__read_idx},     {".txt", hbp__read_text},
               {".csv", hbp__read_csv},    {".tsv", hbp__read_csv},     {".jsonl", hbp__read_jsonl},
               {".json", hbp__read_jsonl}, {".ndjson", hbp__read_jsonl}};

/* First bytes that settle the format, and those of files often met with that are not read. */
static const struct {
    const char *bytes;
    int count;
    reader read;
    const char *name;
} MAGICS[] = {
    {"\x93NUMPY", 6, hbp__read_npy, NULL},
    {"MMIDIDX", 7, hbp__read_idx, NULL},
    {"TNTIDX", 6, hbp__read_idx, NULL}, /* refuses it with advice */
    {"PK\x03\x04", 4, NULL, "a zip archive, as .npz and .pt are"},
    {"\x80\x02", 2, NULL, "a Python pickle"},
    {"\x80\x03", 2, NULL, "a Python pickle"},
    {"\x80\x04", 2, NULL, "a Python pickle"},
    {"\x80\x05", 2, NULL, "a Python pickle"},
    {"PAR1", 4, NULL, "a Parquet file, " BY_PYARROW},
    {"ARROW1", 6, NULL, "an Arrow file, " BY_PYARROW},
    {"\xff\xff\xff\xff", 4, NULL, "an Arrow stream, " BY_PYARROW},
    {"\x89HDF", 4, NULL, "an HDF5 file"},
    {"\xfd\x37zXZ", 5, NULL, "compressed with xz"},
    {"BZh", 3, NULL, "compressed with bzip2"},
};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static reader by_name(const hbp__stream *in)
{
    const char *name = hbp__file_name(hbp__stream_name(in));
    size_t bytes = hbp__stem_bytes(name);
    for (size_t i = 0; i < COUNT_OF(ENDINGS); i++) {
        size_t ending = strlen(ENDINGS[i].ending);
        if (bytes > ending && memcmp(name + bytes - ending, ENDINGS[i].ending, ending) == 0)
            return ENDINGS[i].read;
    }
    return NULL;
}

/* An index.json that speaks of shards; a file of that name may be anybody's. */
static int is_mds(const hbp__stream *in, const unsigned char *data, int64_t bytes)
{
    static const char key[] = "\"shards\"";
    const char *name = hbp__file_name(hbp__stream_name(in));
    if (hbp__stem_bytes(name) != 10 || strncmp(name, "index.json", 10) != 0)
        return 0;
    for (int64_t i = 0; i + (int64_t)sizeof key - 1 <= bytes; i++)
        if (memcmp(data + i, key, sizeof key - 1) == 0)
            return 1;
    return 0;
}

static int is_printable(unsigned char byte)
{
    return byte >= ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

/* Text of no known name: JSON by its brace; CSV by a delimiter or a word in the first line that is no
 * comment. */
static reader by_text(const unsigned char *data, int64_t bytes)
{
    int64_t i = bytes >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    for (int64_t j = i; j < bytes; j++)
        if (!is_printable(data[j]))
            return NULL;
    while (i < bytes && (data[i] <= ' ' || data[i] == '#')) {
        if (data[i] == '#')
            while (i + 1 < bytes && data[i + 1] != '\n')
                i++;
        i++;
    }
    if (i < bytes && (data[i] == '{' || data[i] == '['))
        return hbp__read_jsonl;
    reader read = i < bytes && (data[i] < '0' || data[i] > '9') && data[i] != '-' && data[i] != '+'
                      ? hbp__read_csv
                      : hbp__read_text;
    for (; i < bytes && data[i] != '\n'; i++)
        if (data[i] == ',' || data[i] == '\t' || data[i] == ';')
            read = hbp__read_csv;
    return read;
}

static hbp_status choose_reader(hbp_context *context, hbp__stream *in, reader *read)
{
    const unsigned char *data;
    int64_t bytes;
    HBP__TRY(hbp__stream_peek(in, HBP__STREAM_AHEAD, &data, &bytes));
    for (size_t i = 0; i < COUNT_OF(MAGICS); i++) {
        if (bytes < MAGICS[i].count || memcmp(data, MAGICS[i].bytes, (size_t)MAGICS[i].count) != 0)
            continue;
        *read = MAGICS[i].read;
        if (*read)
            return HBP_OK;
        return hbp__fail(context, HBP_E_FORMAT, "%s is %s; give .npy, text, CSV, JSON lines, .idx or MDS",
                         hbp__stream_name(in), MAGICS[i].name);
    }
    *read = is_mds(in, data, bytes) ? hbp__read_mds : by_name(in);
    if (!*read)
        *read = by_text(data, bytes);
    if (*read)
        return HBP_OK;
    return hbp__fail(context, HBP_E_FORMAT,
                     "%s is no file of lengths; give .npy, text, CSV, JSON lines, .idx or MDS",
                     hbp__stream_name(in));
}

static hbp_status find_reader(hbp_context *context, hbp__stream *in, const char *format, reader *read)
{
    const unsigned char *data;
    int64_t bytes;
    HBP__TRY(hbp__stream_peek(in, 1, &data, &bytes));
    if (bytes == 0)
        return hbp__fail(context, HBP_E_FORMAT, "%s is empty", hbp__stream_name(in));
    if (!format)
        return choose_reader(context, in, read);
    for (size_t i = 0; i < COUNT_OF(FORMATS); i++)
        if (strcmp(format, FORMATS[i].name) == 0) {
            *read = FORMATS[i].read;
            return HBP_OK;
        }
    return hbp__fail(context, HBP_E_INVALID, "format '%s' is not one of npy, text, csv, jsonl, idx, mds",
                     format);
}

/* Only CSV, JSON and MDS have columns; a wish for one elsewhere would be lost without a word. */
static hbp_status check_columns(hbp_context *context, const hbp__stream *in,
                                const hbp_lengths_load_options *options, reader read)
{
    const char *wishes[] = {options->column, options->loss_column, options->link_column,
                            options->vision_column, options->modality_column};
    const char *column = NULL;
    for (size_t i = 0; i < COUNT_OF(wishes) && !column; i++)
        column = wishes[i];
    const char *count = options->count_column && *options->count_column ? options->count_column : NULL;
    if ((read == hbp__read_jsonl || read == hbp__read_mds) && count)
        return hbp__fail(context, HBP_E_INVALID, "%s: %s hold no histogram; column '%s' is for CSV",
                         hbp__stream_name(in), read == hbp__read_mds ? "shards" : "JSON lines", count);
    column = column ? column : count;
    if (column && read != hbp__read_csv && read != hbp__read_jsonl && read != hbp__read_mds)
        return hbp__fail(context, HBP_E_INVALID, "%s: the format has no columns, so none is called '%s'",
                         hbp__stream_name(in), column);
    return HBP_OK;
}

/* A stream of lengths with their vision units `beside` them, or of vision units into a list. */
static hbp_status read_rows(hbp_context *context, hbp__stream *in, const hbp_lengths_load_options *options,
                            hbp__unit_list *list, const hbp__unit_list *beside, hbp_lengths **out)
{
    reader read;
    HBP__TRY(find_reader(context, in, options->format, &read));
    HBP__TRY(check_columns(context, in, options, read));
    hbp__length_rows rows;
    hbp_status status = hbp__rows_begin(&rows, context, in, options);
    rows.list = list;
    rows.beside = beside;
    if (list)
        rows.noun = "the number of vision units";
    if (status >= 0)
        status = read(&rows);
    if (status >= 0)
        status = hbp__rows_finish(&rows, out);
    hbp__rows_end(&rows);
    return status;
}

hbp_status hbp__lengths_read_stream(hbp_context *context, hbp__stream *in, hbp__stream *vision,
                                    const hbp_lengths_load_options *options, hbp_lengths **out)
{
    if (!vision)
        return read_rows(context, in, options, NULL, NULL, out);
    hbp_lengths_load_options of_lengths = *options, of_vision = {.column = options->vision_column};
    of_lengths.vision_column = NULL;
    hbp__unit_list list = {.name = hbp__stream_name(vision)};
    hbp_status status = read_rows(context, vision, &of_vision, &list, NULL, NULL);
    if (status >= 0)
        status = read_rows(context, in, &of_lengths, NULL, &list, out);
    hbp__delete(&context->memory, list.unit);
    return status;
}

/* Opens a file, or for a folder the index of shards that it holds, whose path goes to `index` [PATH_BYTES].
 */
static hbp_status open_lengths(hbp_context *context, const char *path, char *index, hbp__stream **out)
{
    struct stat about;
    const size_t length = strlen(path);
    int bytes =
        snprintf(index, PATH_BYTES, "%s%sindex.json", path, length && path[length - 1] == '/' ? "" : "/");
    if (bytes < 0 || bytes >= PATH_BYTES || stat(path, &about) != 0 || !S_ISDIR(about.st_mode))
        return hbp__stream_open(context, path, out);
    if (access(index, F_OK) != 0)
        return hbp__fail(context, HBP_E_SYSTEM,
                         "cannot read %s: it is a directory, and has no index.json of a StreamingDataset",
                         path);
    return hbp__stream_open(context, index, out);
}

hbp_status hbp_lengths_load(hbp_context *context, const char *path, const hbp_lengths_load_options *options,
                            hbp_lengths **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, path, "path"));
    hbp_lengths_load_options all;
    HBP__TRY(hbp__options_read(context, &all, sizeof all, options, "hbp_lengths_load_options"));
    if (all.vision_path && strcmp(path, "-") == 0 && strcmp(all.vision_path, "-") == 0)
        return hbp__fail(context, HBP_E_INVALID,
                         "lengths and vision units both come from standard input; name a file for one");
    hbp__stream *in, *vision = NULL;
    char index[PATH_BYTES], vision_index[PATH_BYTES];
    HBP__TRY(open_lengths(context, path, index, &in));
    hbp_status status =
        all.vision_path ? open_lengths(context, all.vision_path, vision_index, &vision) : HBP_OK;
    if (status >= 0)
        status = hbp__lengths_read_stream(context, in, vision, &all, out);
    hbp__stream_close(vision);
    hbp__stream_close(in);
    return status;
}
