/* What standard output can show: how wide, which characters, whether in colour. */
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "screen.h"

/* A width below LEAST, for the bar of progress below LEAST_OF_BAR, is taken for that; a terminal that does
 * not know its own is taken for USUAL. */
enum { LEAST_WIDTH = 40, LEAST_OF_BAR = 20, USUAL_WIDTH = 80, MOST_WIDTH = 1000 };

static struct {
    int is_known;
    int is_wide;
    int width;
    int is_utf8;
    int has_colour;
    FILE *file;
} screen;

static int find_width(int descriptor, int is_terminal, int least)
{
    const char *columns = getenv("COLUMNS");
    char *end = NULL;
    long given = columns ? strtol(columns, &end, 10) : 0;
    if (given <= 0 || *end) {
        if (!is_terminal)
            return 0;
        struct winsize size = {0};
        given = ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : USUAL_WIDTH;
    }
    return given < least ? least : given > MOST_WIDTH ? MOST_WIDTH : (int)given;
}

static void look(void)
{
    if (screen.is_known)
        return;
    screen.is_known = 1;
    const char *terminal = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    const int descriptor = fileno(screen_file()), is_terminal = isatty(descriptor);
    screen.width = find_width(descriptor, is_terminal, LEAST_WIDTH);
    screen.has_colour = is_terminal && terminal && *terminal && strcmp(terminal, "dumb") != 0 &&
                        !(no_colour && *no_colour); /* no-color.org */
    screen.is_utf8 = setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

void screen_begin(int is_wide)
{
    screen.is_wide = is_wide;
}

void screen_use_error(void)
{
    screen.file = stderr;
}

FILE *screen_file(void)
{
    return screen.file ? screen.file : stdout;
}

int chart_width(int beside)
{
    enum { USUAL = 80, LEAST = 10 };
    const int width = screen_width() ? screen_width() - beside : USUAL;
    return width < LEAST ? LEAST : width > CHART_MOST ? CHART_MOST : width;
}

int screen_width(void)
{
    look();
    return screen.is_wide ? 0 : screen.width;
}

int screen_error_width(void)
{
    return find_width(STDERR_FILENO, 1, LEAST_OF_BAR);
}

int screen_is_utf8(void)
{
    look();
    return screen.is_utf8;
}

const char *screen_style(int style)
{
    static const char *const begins[STYLES] = {"\033[0m", "\033[1m", "\033[36m", "\033[33m", "\033[2m"};
    look();
    return screen.has_colour ? begins[style] : "";
}

/* A byte that continues a character of UTF-8. */
static int continues(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

int count_characters(const char *text)
{
    int count = 0;
    for (; *text; text++)
        count += !continues(*text);
    return count;
}

int bytes_of(const char *text, int characters)
{
    int bytes = 0;
    while (text[bytes] && (characters > 0 || continues(text[bytes])))
        characters -= !continues(text[bytes++]);
    return bytes;
}
