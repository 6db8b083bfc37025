/* Bars of characters: eighths of a block where the screen shows UTF-8, else '#'. */
#include <string.h>

#include "screen.h"

const char *bar_mark(void)
{
    return screen_is_utf8() ? "\xe2\x94\x82" : "|"; /* a light vertical line */
}

static char *put(char *out, const char *text)
{
    size_t bytes = strlen(text);
    memcpy(out, text, bytes + 1);
    return out + bytes;
}

/* Eighths of a character that are filled: what is there at all is `step` of them, 8 or 1. */
static int eighths_of(double share, int width, int step)
{
    share = share > 1 ? 1 : share;
    int filled = share > 0 ? (int)(share * (8 / step) * width + 0.5) : 0;
    return step * (share > 0 && filled == 0 ? 1 : filled);
}

void draw_bar(double share, double mark, int width, char *out)
{
    static const char *const blocks[] = {" ",
                                         "\xe2\x96\x8f",
                                         "\xe2\x96\x8e",
                                         "\xe2\x96\x8d",
                                         "\xe2\x96\x8c",
                                         "\xe2\x96\x8b",
                                         "\xe2\x96\x8a",
                                         "\xe2\x96\x89",
                                         "\xe2\x96\x88"};
    int is_utf8 = screen_is_utf8();
    int eighths = eighths_of(share, width, is_utf8 ? 1 : 8);
    int marked = mark < 0 ? -1 : (int)(mark * width);
    marked = marked >= width ? width - 1 : marked;
    for (int i = 0; i < width; i++) {
        int filled = eighths - 8 * i < 0 ? 0 : eighths - 8 * i > 8 ? 8 : eighths - 8 * i;
        if (share > 1 && i == width - 1)
            out = put(out, ">");
        else if (i == marked)
            out = put(out, bar_mark());
        else if (is_utf8)
            out = put(out, blocks[filled]);
        else
            out = put(out, filled ? "#" : " ");
    }
    *out = '\0';
}
