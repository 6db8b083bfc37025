#include "io/machine/nccl_tests.h"
#include "hbp/io.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "data/machine/machine.h"
#include "io/json/json_tree.h"

#define NAME "nccl-tests"

/* Columns of a header; the longest known has 22. */
#define MOST_COLUMNS 64

typedef struct word {
    const char *text;
    int64_t bytes;
} word;

/* Where the header says the columns are; -1: absent. Times and errors stand twice, out of place and in place.
 */
typedef struct columns {
    int32_t count; /* of words in a row; 0: no header yet */
    int32_t size;
    int32_t time[2];
    int32_t wrong[2];
} columns;

static hbp_status add_row(hbp_context *context, hbp__timings *timings, double bytes, double us)
{
    if (!(bytes > 0 && us > 0))
        return HBP_OK;
    if (timings->count == timings->room) {
        int64_t room = hbp__max_i64(64, 2 * timings->room);
        hbp__timing *rows = hbp__renew(&context->memory, timings->rows, (uint64_t)room, sizeof *rows);
        if (!rows)
            return hbp__fail_memory(context, "timings");
        timings->rows = rows;
        timings->room = room;
    }
    timings->rows[timings->count++] = (hbp__timing){bytes, us * 1000};
    return HBP_OK;
}

static int is_word(const word *w, const char *text)
{
    return w->bytes == (int64_t)strlen(text) && memcmp(w->text, text, (size_t)w->bytes) == 0;
}

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Splits a line at blanks; words past `room` are counted only. */
static int32_t split_words(const char *line, int64_t bytes, word *words, int32_t room)
{
    int32_t count = 0;
    for (int64_t at = 0; at < bytes;) {
        int64_t begin = at;
        while (at < bytes && !is_blank(line[at]))
            at++;
        if (at > begin) {
            if (count < room)
                words[count] = (word){line + begin, at - begin};
            count += count < INT32_MAX;
        }
        while (at < bytes && is_blank(line[at]))
            at++;
    }
    return count;
}

/* Takes a header: "# size count type ...". With -C the time is the processor's and called cputime; a
 * timestamp is one name over two words. */
static void read_header(const word *words, int32_t count, columns *found)
{
    columns c = {.size = -1, .time = {-1, -1}, .wrong = {-1, -1}};
    int32_t times = 0, wrongs = 0;
    for (int32_t i = 0; i < count; i++) {
        if (is_word(&words[i], "size"))
            c.size = i;
        else if ((is_word(&words[i], "time") || is_word(&words[i], "cputime")) && times < 2)
            c.time[times++] = i;
        else if (is_word(&words[i], "#wrong") && wrongs < 2)
            c.wrong[wrongs++] = i;
    }
    c.count = count + (count > 0 && is_word(&words[count - 1], "timestamp"));
    if (c.size == 0 && times)
        *found = c;
}

/* "# nccl-tests version 2.19.0 ..." */
static void read_version(const word *words, int32_t count, hbp__timings *timings)
{
    if (count < 3 || !is_word(&words[0], NAME) || !is_word(&words[1], "version"))
        return;
    const word *version = &words[2];
    int64_t bytes = 0;
    for (int dots = 0; bytes < version->bytes && bytes < 16; bytes++) {
        char c = version->text[bytes];
        if ((c < '0' || c > '9') && (c != '.' || ++dots == 2))
            break;
    }
    if (bytes)
        snprintf(timings->source, sizeof timings->source, NAME " %.*s", (int)bytes, version->text);
}

static hbp_status fail_line(hbp_context *context, int64_t line, const char *what)
{
    return hbp__fail(context, HBP_E_FORMAT, NAME ", line %lld: %s", (long long)line, what);
}

static hbp_status read_row(hbp_context *context, int64_t line, const word *words, int32_t count,
                           const columns *c, hbp__timings *timings)
{
    int64_t size;
    double us = 0;
    if (count != c->count)
        return hbp__fail(context, HBP_E_FORMAT, NAME ", line %lld: a row of %d columns under a header of %d",
                         (long long)line, (int)count, (int)c->count);
    if (!hbp__read_whole(words[c->size].text, words[c->size].bytes, &size))
        return fail_line(context, line, "the size is not a whole number of 64 bits");
    for (int place = 0; place < 2; place++) {
        double wrong = 0;
        if (c->wrong[place] >= 0) {
            const word *w = &words[c->wrong[place]];
            if (!is_word(w, "N/A") && !hbp__read_decimal(w->text, w->bytes, &wrong))
                return fail_line(context, line, "the count of wrong values is neither a number nor N/A");
            if (wrong != 0)
                return fail_line(context, line, "the collective gave wrong values; its times mean nothing");
        }
        if (us > 0 || c->time[place] < 0 || is_word(&words[c->time[place]], "N/A"))
            continue;
        if (!hbp__read_decimal(words[c->time[place]].text, words[c->time[place]].bytes, &us) || us < 0)
            return fail_line(context, line, "the time is neither a number nor N/A");
    }
    return add_row(context, timings, (double)size, us);
}

/* Rows begin with a number, what nccl-tests says about itself with '#'; other lines are other programs'. */
static hbp_status read_line(hbp_context *context, int64_t line, const char *text, int64_t bytes, columns *c,
                            hbp__timings *timings)
{
    word words[MOST_COLUMNS];
    int64_t at = 0, size;
    while (at < bytes && is_blank(text[at]))
        at++;
    int comment = at < bytes && text[at] == '#';
    at += comment;
    while (at < bytes && is_blank(text[at]))
        at++;
    int32_t count = split_words(text + at, bytes - at, words, MOST_COLUMNS);
    if (count == 0 || count > MOST_COLUMNS)
        return HBP_OK;
    if (comment) {
        read_version(words, count, timings);
        read_header(words, count, c);
        return HBP_OK;
    }
    if (!hbp__read_whole(words[0].text, words[0].bytes, &size))
        return HBP_OK;
    if (!c->count)
        return fail_line(context, line, "a row before the names of the columns");
    return read_row(context, line, words, count, c, timings);
}

static hbp_status read_text(hbp_context *context, const char *data, int64_t bytes, hbp__timings *timings)
{
    columns c = {0};
    int64_t line = 1;
    for (int64_t begin = 0; begin < bytes; line++) {
        const char *end = memchr(data + begin, '\n', (size_t)(bytes - begin));
        int64_t length = end ? end - (data + begin) : bytes - begin;
        HBP__TRY(read_line(context, line, data + begin, length, &c, timings));
        begin += length + 1;
        if (line % 4096 == 0)
            HBP__TRY(hbp__tick(context, "read", begin < bytes ? begin : bytes, bytes));
    }
    if (!c.count)
        return hbp__fail(context, HBP_E_FORMAT,
                         NAME ": no line with the names of the columns, '# size ... time'");
    return HBP_OK;
}

/* The time of one place, 0 where it was not run: null, or "nan". */
static hbp_status read_place(hbp_context *context, const hbp__value *place, size_t index, double *us)
{
    if (!place || hbp__value_is(place, HBP__NOTHING))
        return HBP_OK;
    const hbp__value *time = hbp__value_find(place, "time");
    const hbp__value *wrong = hbp__value_find(place, "nwrong");
    if (!time)
        time = hbp__value_find(place, "cpu_time");
    if (hbp__value_is_number(wrong) && hbp__value_real(wrong) != 0)
        return hbp__fail(context, HBP_E_FORMAT,
                         NAME ", result %lld: the collective gave wrong values; its times mean nothing",
                         (long long)index);
    if (hbp__value_is_number(time))
        *us = hbp__value_real(time);
    else if (!hbp__value_is(time, HBP__TEXT) && !hbp__value_is(time, HBP__NOTHING))
        return hbp__fail(context, HBP_E_FORMAT, NAME ", result %lld: 'time' is not a number",
                         (long long)index);
    return HBP_OK;
}

static hbp_status read_results(hbp_context *context, const hbp__value *root, hbp__timings *timings)
{
    const hbp__value *version = hbp__value_find(root, "version");
    const hbp__value *results = hbp__value_find(root, "results");
    if (hbp__value_is(version, HBP__WHOLE) && hbp__value_whole(version) > 0 &&
        hbp__value_whole(version) < 1000)
        snprintf(timings->source, sizeof timings->source, NAME " JSON v%d", (int)hbp__value_whole(version));
    if (!hbp__value_is(results, HBP__LIST))
        return hbp__fail(context, HBP_E_FORMAT, NAME ": 'results' is missing or no array");
    size_t index = 0;
    HBP__EACH(results, result)
    {
        const hbp__value *size = hbp__value_find(result, "size");
        if (!hbp__value_is(size, HBP__WHOLE) || hbp__value_whole(size) < 0)
            return hbp__fail(context, HBP_E_FORMAT, NAME ", result %lld: 'size' is not a whole number",
                             (long long)index);
        double outside = 0, inside = 0;
        HBP__TRY(read_place(context, hbp__value_find(result, "out_of_place"), index, &outside));
        HBP__TRY(read_place(context, hbp__value_find(result, "in_place"), index, &inside));
        HBP__TRY(add_row(context, timings, (double)hbp__value_whole(size), outside > 0 ? outside : inside));
        index++;
    }
    return HBP_OK;
}

static hbp_status read_json(hbp_context *context, const char *data, int64_t bytes, hbp__timings *timings)
{
    hbp__document document;
    HBP__TRY(hbp__json_tree(context, NAME, data, bytes, &document));
    hbp_status status = read_results(context, document.values, timings);
    hbp__document_free(&document);
    return status;
}

hbp_status hbp__nccl_read(hbp_context *context, const char *data, int64_t bytes, hbp__timings *timings)
{
    *timings = (hbp__timings){.source = NAME};
    if (bytes < 0)
        return hbp__fail(context, HBP_E_INVALID, "bytes is %lld; it must be at least 0", (long long)bytes);
    int64_t at = 0;
    while (at < bytes && (is_blank(data[at]) || data[at] == '\n'))
        at++;
    if (at < bytes && data[at] == '{')
        return read_json(context, data, bytes, timings);
    return read_text(context, data, bytes, timings);
}

hbp_status hbp_machine_apply_nccl_tests(hbp_context *context, hbp_machine *machine, int32_t collective,
                                        int32_t ranks, const char *data, int64_t bytes)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, machine, "machine"));
    HBP__TRY(hbp__require(context, data, "data"));
    if (collective < 0 || collective >= HBP_COLLECTIVE_COUNT)
        return hbp__fail(context, HBP_E_INVALID, "collective is %d; it must be a HBP_COLLECTIVE_* value",
                         (int)collective);
    if (ranks < 2)
        return hbp__fail(context, HBP_E_INVALID, "ranks is %d; a collective has at least 2", (int)ranks);
    hbp__timings timings;
    double latency = 0, bandwidth = 0;
    hbp_status status = hbp__nccl_read(context, data, bytes, &timings);
    if (status == HBP_OK)
        status = hbp__fit_timings(context, timings.rows, timings.count, hbp__bus_factor(collective, ranks),
                                  &latency, &bandwidth);
    if (status == HBP_OK)
        status = hbp__machine_set_collective(context, machine, collective, ranks, latency, bandwidth, 0,
                                             timings.source);
    hbp__delete(&context->memory, timings.rows);
    return status;
}
