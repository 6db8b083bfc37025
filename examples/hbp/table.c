/* Tables of numbers and texts. On a screen too narrow for all of one, what a reader misses least goes first:
 * bars, then headers on one line, then the ends of texts, then whole columns, which a line below names. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { GAP = 2, MOST_COLUMNS = 16, CUT_LEAST = 16, BROKEN_LEAST = 24, FIRST_LEAST = 8 };

/* How a column is printed. */
typedef struct column {
    const char *header;
    int is_early; /* among the first to be left out */
    int is_left;
    int is_broken; /* over several lines */
    int is_bar;
    int word; /* of the header, the longest */
    int body; /* of the cells below */
    int width;
    int is_out;
} column;

static cell *table_next(table *t)
{
    if (t->cells == t->room) {
        int room = t->room ? 2 * t->room : 64;
        cell *more = realloc(t->cell, (size_t)room * sizeof *more);
        if (!more)
            return NULL;
        t->cell = more;
        t->room = room;
    }
    cell *next = &t->cell[t->cells++];
    next->share = 0;
    next->mark = -1;
    return next;
}

void table_add_text(table *t, shown value)
{
    cell *next = table_next(t);
    cli_make_plain(value.s);
    if (next)
        next->text = value;
}

void table_add(table *t, const char *format, ...)
{
    shown value;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value.s, sizeof value.s, format, arguments);
    va_end(arguments);
    table_add_text(t, value);
}

void table_add_bar(table *t, double share, double mark)
{
    table_add(t, "%s", "");
    if (t->cells) {
        t->cell[t->cells - 1].share = share;
        t->cell[t->cells - 1].mark = mark;
    }
}

void table_begin(table *t, int columns, const char *const *headers)
{
    *t = (table){.columns = columns};
    for (int i = 0; i < columns; i++)
        table_add(t, "%s", headers[i]);
}

void table_free(table *t)
{
    free(t->cell);
    *t = (table){0};
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static int longest_word(const char *text)
{
    int longest = 0;
    for (int width = count_characters(text), bytes; *text; text += bytes + (int)strspn(text + bytes, " ")) {
        shown word = {""};
        bytes = bytes_of_line(text, 1);
        memcpy(word.s, text, (size_t)bytes);
        longest = larger(longest, count_characters(word.s));
        if (longest >= width)
            break;
    }
    return longest;
}

static column look_at(const table *t, int at)
{
    column c = {.header = t->cell[at].text.s};
    c.is_early = *c.header == '-';
    c.header += c.is_early;
    c.is_broken = *c.header == '~';
    c.is_left = *c.header == '<' || c.is_broken;
    c.is_bar = *c.header == '#';
    c.header += c.is_left || c.is_bar;
    c.word = longest_word(c.header);
    for (int i = at + t->columns; i < t->cells; i += t->columns)
        c.body = larger(c.body, c.is_bar ? BAR_WIDTH : count_characters(t->cell[i].text.s));
    return c;
}

static void make_natural(column *columns, int count)
{
    for (int i = 0; i < count; i++)
        columns[i].width = larger(columns[i].body, count_characters(columns[i].header));
}

static int total_of(const column *columns, int count)
{
    int total = 0;
    for (int i = 0; i < count; i++)
        total += columns[i].is_out ? 0 : GAP + columns[i].width;
    return total;
}

/* What columns give up, in this order. */
enum { GIVE_BARS, GIVE_HEADERS, GIVE_TEXTS, GIVE_NAMES };

static int least_of(const column *c, int index, int give)
{
    int least = c->width;
    if (give == GIVE_BARS && c->is_bar)
        least = larger(BAR_LEAST, count_characters(c->header));
    else if (give == GIVE_HEADERS && !c->is_bar)
        least = larger(c->body, c->word);
    else if (give == GIVE_TEXTS && c->is_left && index > 0)
        least = larger(c->word, c->is_broken ? BROKEN_LEAST : CUT_LEAST);
    else if (give == GIVE_NAMES && index == 0)
        least = FIRST_LEAST;
    return least < c->width ? least : c->width;
}

/* Takes columns from the widest gifts on until all fit; whether they do. */
static int shrink(column *columns, int count, int limit, int give)
{
    for (int over = total_of(columns, count) - limit; over > 0; over--) {
        int best = -1, most = 0;
        for (int i = 0; i < count; i++) {
            int gift = columns[i].is_out ? 0 : columns[i].width - least_of(&columns[i], i, give);
            if (gift > most) {
                most = gift;
                best = i;
            }
        }
        if (best < 0)
            return 0;
        columns[best].width--;
    }
    return 1;
}

static int drop_bars(column *columns, int count)
{
    int dropped = 0;
    for (int i = 0; i < count; i++)
        if (columns[i].is_bar && !columns[i].is_out)
            dropped = columns[i].is_out = 1;
    return dropped;
}

/* Leaves out the first of the columns that go first, else the last of all, with those that go with it; the
 * first column of all stays. */
static int drop_column(column *columns, int count)
{
    int found = 0;
    for (int i = 1; i < count && !columns[found].is_early; i++)
        if (!columns[i].is_out)
            found = i;
    while (found > 1 && !*columns[found].header)
        found--;
    if (!found)
        return 0;
    columns[found].is_out = 1;
    for (int i = found + 1; i < count && !*columns[i].header && !columns[i].is_bar; i++)
        columns[i].is_out = 1;
    return 1;
}

static void fit(column *columns, int count)
{
    int limit = screen_width();
    make_natural(columns, count);
    if (!limit || shrink(columns, count, limit, GIVE_BARS) || shrink(columns, count, limit, GIVE_HEADERS))
        return;
    int is_left = drop_bars(columns, count);
    do {
        make_natural(columns, count);
        for (int give = GIVE_HEADERS; give <= GIVE_TEXTS; give++)
            if (shrink(columns, count, limit, give))
                return;
        is_left = drop_column(columns, count);
    } while (is_left);
    shrink(columns, count, limit, GIVE_NAMES);
}

/* Line `index` of a text that is broken at `width`, and its bytes. */
static const char *piece_of(const char *text, int width, int index, int *bytes)
{
    for (;; index--) {
        *bytes = bytes_of_line(text, width);
        if (index <= 0 || !*bytes)
            return text;
        text += *bytes;
        text += strspn(text, " ");
    }
}

static int lines_of(const char *text, int width)
{
    int lines = 0, bytes;
    do
        piece_of(text, width, lines, &bytes);
    while (bytes && ++lines);
    return lines;
}

/* Prints `bytes` of a text in a column; *blanks are those that stand before it and were not printed yet, for
 * no line ends with any. */
static void put_text(const column *c, const char *text, int bytes, int *blanks)
{
    shown own = {""};
    memcpy(own.s, text, (size_t)(bytes < 255 ? bytes : 255));
    int length = count_characters(own.s), is_cut = length > c->width, after = 0;
    if (is_cut)
        own.s[bytes_of(own.s, c->width - 3)] = '\0';
    else if (c->is_left)
        after = c->width - length;
    else
        *blanks += c->width - length;
    if (*own.s) {
        fprintf(screen_file(), "%*s%s%s", *blanks, "", own.s, is_cut ? "..." : "");
        *blanks = 0;
    }
    *blanks += after;
}

static void put_bar(const column *c, const cell *of, int *blanks)
{
    char bar[BAR_BYTES];
    draw_bar(of->share, of->mark, c->width, bar);
    size_t filled = strlen(bar);
    while (filled > 0 && bar[filled - 1] == ' ')
        filled--;
    bar[filled] = '\0';
    if (filled) {
        fprintf(screen_file(), "%*s%s%s%s", *blanks, "", screen_style(STYLE_BAR), bar,
                screen_style(STYLE_NONE));
        *blanks = 0;
    }
    *blanks += count_characters(bar) < c->width ? c->width - count_characters(bar) : 0;
}

static void put_header(const column *columns, int count)
{
    int lines = 1;
    for (int i = 0; i < count; i++)
        if (!columns[i].is_out)
            lines = larger(lines, lines_of(columns[i].header, columns[i].width));
    for (int k = 0; k < lines; k++) {
        int blanks = 0;
        fputs(screen_style(STYLE_HEADER), screen_file());
        for (int i = 0; i < count; i++) {
            if (columns[i].is_out)
                continue;
            column c = columns[i];
            int own = lines_of(c.header, c.width), bytes = 0, index = k - (lines - own);
            const char *text = index < 0 ? "" : piece_of(c.header, c.width, index, &bytes);
            c.is_left |= c.is_bar;
            blanks += GAP;
            put_text(&c, text, bytes, &blanks);
        }
        fprintf(screen_file(), "%s\n", screen_style(STYLE_NONE));
    }
}

static void put_row(const column *columns, int count, const cell *row)
{
    int lines = 1;
    for (int i = 0; i < count; i++)
        if (columns[i].is_broken && !columns[i].is_out)
            lines = larger(lines, lines_of(row[i].text.s, columns[i].width));
    for (int k = 0; k < lines; k++) {
        int blanks = 0;
        for (int i = 0; i < count; i++) {
            if (columns[i].is_out)
                continue;
            const char *text = row[i].text.s;
            int bytes = k ? 0 : (int)strlen(text);
            if (columns[i].is_broken)
                text = piece_of(text, columns[i].width, k, &bytes);
            blanks += GAP;
            if (columns[i].is_bar && !k)
                put_bar(&columns[i], &row[i], &blanks);
            else
                put_text(&columns[i], text, bytes, &blanks);
        }
        putc('\n', screen_file());
    }
}

static void say_left_out(const column *columns, int count)
{
    int out = 0, named = 0;
    for (int i = 0; i < count; i++)
        out += columns[i].is_out && !columns[i].is_bar;
    if (!out)
        return;
    say("  %s more with --wide:", show_number(out, "column").s);
    for (int i = 0; i < count; i++)
        if (columns[i].is_out && !columns[i].is_bar && *columns[i].header)
            say("%s %s", named++ ? "," : "", columns[i].header);
    say("\n");
}

void table_end(table *t)
{
    column columns[MOST_COLUMNS];
    int count = t->columns < MOST_COLUMNS ? t->columns : MOST_COLUMNS;
    if (t->cells >= t->columns) {
        for (int i = 0; i < count; i++)
            columns[i] = look_at(t, i);
        fit(columns, count);
        put_header(columns, count);
        for (int row = t->columns; row + t->columns <= t->cells; row += t->columns)
            put_row(columns, count, t->cell + row);
        say_left_out(columns, count);
    }
    table_free(t);
}
