/* Lines of words, no wider than the screen. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "screen.h"

enum { CONTINUED = 2 }; /* columns that the rest of a line stands in */

/* The line at hand. */
static char *line;
static size_t line_bytes, line_room;

/* Whether a word is the unit of the number before it, to which it is held: "1.93 s", "5 %,". */
static int is_unit(const char *word, size_t length)
{
    static const char *const units[] = {"%", "ns", "us",  "ms",  "s",   "min", "h",
                                        "d", "B",  "KiB", "MiB", "GiB", "TiB"};
    while (length && strchr(",;:)", word[length - 1]))
        length--;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i]) == length && memcmp(units[i], word, length) == 0)
            return 1;
    return 0;
}

/* Whether the words before the blank at text[end], which begin at `start`, are held to the next one: "1.93
 * s", "12568 x SP 1". */
static int is_held(const char *text, int start, int end)
{
    const char *next = text + end + 1;
    size_t length = strcspn(next, " ");
    int word = end;
    while (word > start && text[word - 1] != ' ')
        word--;
    if (end > start && isdigit((unsigned char)text[end - 1]))
        return is_unit(next, length) || (length == 1 && *next == 'x');
    if (end - word == 1 && text[word] == 'x')
        return word > start; /* behind its number, no "x this" */
    return end - word == 2 && memcmp(text + word, "SP", 2) == 0 && isdigit((unsigned char)*next);
}

int bytes_of_line(const char *text, int width)
{
    int fits = 0;
    for (int at = 0, columns = 0; text[at];) {
        int start = at + (int)strspn(text + at, " "), end = start + (int)strcspn(text + start, " ");
        while (text[end] == ' ' && is_held(text, start, end))
            end += 1 + (int)strcspn(text + end + 1, " ");
        for (int i = at; i < end; i++)
            columns += ((unsigned char)text[i] & 0xc0) != 0x80;
        if (columns > width && fits)
            break;
        at = fits = end;
    }
    return fits;
}

/* Prints `text`, a line without its end. */
static void print_line(const char *text, int width)
{
    int indent = (int)strspn(text, " ");
    if (count_characters(text) <= width || indent > width / 2) {
        fprintf(screen_file(), "%s\n", text);
        return;
    }
    const char *at = text + indent;
    for (int before = indent; *at; before = indent + CONTINUED) {
        int bytes = bytes_of_line(at, width - before);
        fprintf(screen_file(), "%*s%.*s\n", before, "", bytes, at);
        at += bytes;
        at += strspn(at, " ");
    }
}

static int append(const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int bytes = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (bytes < 0)
        return 0;
    if (line_bytes + (size_t)bytes + 1 > line_room) {
        size_t room = 2 * (line_bytes + (size_t)bytes + 1);
        char *more = realloc(line, room);
        if (!more)
            return 0;
        line = more;
        line_room = room;
    }
    line_bytes += (size_t)vsnprintf(line + line_bytes, line_room - line_bytes, format, arguments);
    return 1;
}

void say(const char *format, ...)
{
    int width = screen_width();
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    if (!width || !append(format, arguments)) {
        say_end();
        vfprintf(screen_file(), format, again);
    }
    va_end(again);
    va_end(arguments);
    char *at = line, *end;
    for (; line_bytes && (end = strchr(at, '\n')) != NULL; at = end + 1) {
        *end = '\0';
        print_line(at, width);
    }
    if (at != line) {
        line_bytes = strlen(at);
        memmove(line, at, line_bytes + 1);
    }
}

void say_end(void)
{
    if (line_bytes)
        fputs(line, screen_file());
    free(line);
    line = NULL;
    line_bytes = line_room = 0;
}
