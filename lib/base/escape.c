#include "base/escape.h"

#include <string.h>

#include "base/utf8.h"

#define GAP " ... "

/* Whether the character of `bytes` bytes at `text` moves a terminal, or turns what follows it around. */
static int is_control(const char *text, int bytes)
{
    const unsigned char *b = (const unsigned char *)text;
    if (bytes == 1)
        return b[0] < 0x20 || b[0] == 0x7f;
    if (bytes == 2)
        return b[0] == 0xc2 && b[1] < 0xa0;
    if (bytes == 3 && b[0] == 0xe2) /* marks, separators, embeddings and isolates */
        return (b[1] == 0x80 && ((b[2] >= 0xa8 && b[2] <= 0xae) || b[2] == 0x8e || b[2] == 0x8f)) ||
               (b[1] == 0x81 && b[2] >= 0xa6 && b[2] <= 0xa9);
    return 0;
}

/* What stands for the character at `text`, up to 4 bytes into `out`; returns their number, and how many bytes
 * of `text` they stand for. */
static int64_t show_character(const char *text, char out[4], int64_t *taken)
{
    static const char digits[] = "0123456789abcdef";
    int bytes = hbp__utf8_bytes(text);
    unsigned char first = (unsigned char)*text;
    *taken = 1;
    if (bytes && !is_control(text, bytes)) {
        memcpy(out, text, (size_t)bytes);
        return *taken = bytes;
    }
    const char *letter = first == '\n' ? "n" : first == '\r' ? "r" : first == '\t' ? "t" : NULL;
    out[0] = '\\';
    out[1] = letter ? *letter : 'x';
    out[2] = digits[first >> 4];
    out[3] = digits[first & 15];
    return letter ? 2 : 4;
}

/* Writes what fits into [to, end); returns where it stopped, and in *rest what of `text` is left. */
static char *put_escaped(char *to, const char *end, const char *text, const char **rest)
{
    char out[4];
    int64_t taken;
    while (*text) {
        int64_t length = show_character(text, out, &taken);
        if (length > end - to)
            break;
        memcpy(to, out, (size_t)length);
        to += length;
        text += taken;
    }
    *rest = text;
    return to;
}

void hbp__escape(char *to, int64_t room, const char *text)
{
    const char *rest;
    char out[4];
    int64_t taken, left = 0, half = (room - 1 - (int64_t)strlen(GAP)) / 2;
    char *end = put_escaped(to, to + room - 1, text, &rest);
    if (*rest) {
        end = put_escaped(to, to + half, text, &rest);
        memcpy(end, GAP, strlen(GAP));
        end += strlen(GAP);
        for (const char *at = rest; *at; at += taken)
            left += show_character(at, out, &taken);
        for (; left > half; rest += taken)
            left -= show_character(rest, out, &taken);
        end = put_escaped(end, to + room - 1, rest, &rest);
    }
    *end = '\0';
}
