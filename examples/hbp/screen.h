/* How the command prints on a terminal: its width, colours, tables, lines of words, bars, progress.
 *
 * Where standard output is no terminal and COLUMNS is not set, and with --wide, there is no width to keep to:
 * no line is broken and no column left out. */
#ifndef HBP_EXAMPLES_SCREEN_H
#define HBP_EXAMPLES_SCREEN_H

#include <stdio.h>

#include <hbp/hbp.h>

/* A function's text in printf's way and its arguments are held against each other where the compiler can. */
#if defined(__GNUC__) || defined(__clang__)
#define CLI_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define CLI_PRINTF(text, first)
#endif

/* A value as people read it. */
typedef struct shown {
    char s[256];
} shown;

/* screen.c */
void screen_begin(int is_wide); /* --wide is given */
void screen_use_error(void);    /* what is said goes to standard error, before any of it */
FILE *screen_file(void);        /* where it goes */
int screen_width(void);         /* characters in a line; 0: any */
/* Of a chart over time: characters that are left beside so many, and lines on a screen that has a width. */
enum { CHART_MOST = 400, CHART_LINES = 32, CHART_SHARE = 8 /* of a share of the time, behind a line */ };
int chart_width(int beside);
int screen_error_width(void); /* of a line on standard error; some number where none is known */
int screen_is_utf8(void);     /* block characters can be printed */
enum { STYLE_NONE, STYLE_HEADER, STYLE_BAR, STYLE_WAITING, STYLE_FAINT, STYLES };
const char *screen_style(int style); /* begins it, or ends all by STYLE_NONE; "" where there is no colour */
int count_characters(const char *text);
/* Bytes of the first `characters` of a text, of all of it where it has fewer. */
int bytes_of(const char *text, int characters);

/* lines.c: as printf, with each line broken at blanks where it is wider than the screen; what it continues
 * on begins two columns in. A word that is wider stays whole: it may be a path to copy. */
void say(const char *format, ...) CLI_PRINTF(1, 2);
void say_end(void); /* what is left of an unfinished line */
/* Words of `text` that fit in a line of `width` characters, one at least, also a longer one: their bytes. */
int bytes_of_line(const char *text, int width);

/* table.c: a table printed at once, columns as wide as needed or as the screen lets them be. A header may
 * begin with '-' (a narrow screen leaves it out before others), then '<' (flush left; a narrow screen cuts
 * the text), '~' (flush left; a narrow screen breaks the text over several lines) or '#' (bars, which give
 * way before all else). A header "" goes with the one before it. */
typedef struct cell {
    shown text;
    double share; /* of a bar */
    double mark;
} cell;

typedef struct table {
    int columns;
    int cells;
    int room;
    cell *cell;
} table;

void table_begin(table *t, int columns, const char *const *headers);
void table_add(table *t, const char *format, ...) CLI_PRINTF(2, 3);
void table_add_text(table *t, shown value);
/* A bar that fills `share` of its column, with a mark at `mark`; below 0: none. */
void table_add_bar(table *t, double share, double mark);
void table_end(table *t);  /* prints and frees */
void table_free(table *t); /* without printing */

/* bars.c: a bar of a share above 1 ends in '>'. The bar in `width` columns, as UTF-8 where the screen takes
 * it, else in ASCII; `bytes` of `out` are at least 3 x width + 1. */
enum { BAR_WIDTH = 24, BAR_LEAST = 8, BAR_BYTES = 3 * 128 + 1 };
void draw_bar(double share, double mark, int width, char *out);
/* The bar's mark, for legends. */
const char *bar_mark(void);

/* progress.c: one bar on standard error for all that the command does. A command that makes several calls
 * says what they are before the first, then which one begins: parts of a job take their weight's share of the
 * bar. Without a job, the whole is one part. */
typedef struct job_part {
    const char *name; /* "planning"; NULL behind the last */
    double weight;
    const char
        *stages; /* of the library that follow one another in it: "batches 5, steps 95"; NULL: not known */
} job_part;
void progress_begin(const job_part *parts); /* copied, the texts are kept */
void progress_part(int index);              /* this part begins; those before are done */
/* What the library does in a stage of that name, "choosing SP degrees"; NULL: nothing that a person asks for.
 */
const char *progress_words(const char *stage);

/* The context's progress callback; `user` is unused. Draws on stderr. */
int32_t cli_draw_progress(void *user, const hbp_progress *progress);
void cli_finish_progress(void); /* all is done: the bar ends at 100 % and goes */
void cli_clear_progress(void);  /* it goes, wherever it is */

#endif
