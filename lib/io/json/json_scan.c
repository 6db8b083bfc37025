#include "io/json/json_scan.h"

#include <string.h>

#define END (-1)

void hbp__json_begin(hbp__json_scan *scan, hbp_context *context, hbp__stream *in)
{
    *scan = (hbp__json_scan){
        .context = context, .name = hbp__stream_name(in), .in = in, .line = 1, .room = HBP__JSON_TEXT};
    scan->text = scan->own;
}

void hbp__json_begin_text(hbp__json_scan *scan, hbp_context *context, const char *name, const char *text,
                          int64_t bytes)
{
    *scan = (hbp__json_scan){.context = context,
                             .name = name,
                             .line = 1,
                             .strict = 1,
                             .room = HBP__JSON_TEXT,
                             .data = (const unsigned char *)text,
                             .shown = bytes};
    scan->text = scan->own;
}

hbp_status hbp__json_fail(const hbp__json_scan *scan, const char *what)
{
    return hbp__fail(scan->context, HBP_E_FORMAT, "%s, line %lld: %s", scan->name, (long long)scan->line,
                     what);
}

static hbp_status refill_block(hbp__json_scan *scan)
{
    hbp__stream_take(scan->in, scan->used);
    scan->used = scan->shown = 0;
    return hbp__stream_peek(scan->in, 1, &scan->data, &scan->shown);
}

/* The next byte or END, without taking it. */
static inline hbp_status look_at_byte(hbp__json_scan *scan, int *byte)
{
    if (scan->used == scan->shown && scan->in)
        HBP__TRY(refill_block(scan));
    *byte = scan->used < scan->shown ? scan->data[scan->used] : END;
    return HBP_OK;
}

void hbp__json_take(hbp__json_scan *scan)
{
    scan->line += scan->data[scan->used++] == '\n';
}

hbp_status hbp__json_next(hbp__json_scan *scan, int *byte)
{
    for (;;) {
        HBP__TRY(look_at_byte(scan, byte));
        if (*byte != ' ' && *byte != '\t' && *byte != '\n' && *byte != '\r')
            return HBP_OK;
        hbp__json_take(scan);
    }
}

static inline void keep_byte(hbp__json_scan *scan, int byte)
{
    if (scan->bytes < scan->room)
        scan->text[scan->bytes] = (char)byte;
    scan->bytes++;
}

static int hex_digit(int byte)
{
    return byte >= '0' && byte <= '9'   ? byte - '0'
           : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
           : byte >= 'A' && byte <= 'F' ? byte - 'A' + 10
                                        : -1;
}

/* The u and what follows it. */
static hbp_status read_unit(hbp__json_scan *scan, unsigned *unit)
{
    *unit = 0;
    for (int i = 0; i < 4; i++) {
        int byte;
        hbp__json_take(scan);
        HBP__TRY(look_at_byte(scan, &byte));
        if (hex_digit(byte) < 0)
            return hbp__json_fail(scan, "\\u without four hexadecimal digits");
        *unit = *unit << 4 | (unsigned)hex_digit(byte);
    }
    hbp__json_take(scan);
    return HBP_OK;
}

/* A code point as UTF-8. */
static void keep_code(hbp__json_scan *scan, unsigned code)
{
    static const unsigned lead[] = {0, 0xc0, 0xe0, 0xf0};
    const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    keep_byte(scan, (int)(lead[more] | code >> 6 * more));
    for (int i = more - 1; i >= 0; i--)
        keep_byte(scan, (int)(0x80 | (code >> 6 * i & 0x3f)));
}

/* Half a surrogate pair is kept as a byte 1, which no field name holds. */
static hbp_status keep_half(hbp__json_scan *scan)
{
    if (scan->strict)
        return hbp__json_fail(scan, "a string holds half a surrogate pair");
    keep_byte(scan, 1);
    return HBP_OK;
}

static hbp_status read_plain_escape(hbp__json_scan *scan, int byte)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *known = byte > 0 ? strchr(from, byte) : NULL;
    if (!known)
        return hbp__json_fail(scan, "a string holds an unknown escape");
    keep_byte(scan, to[known - from]);
    hbp__json_take(scan);
    return HBP_OK;
}

/* What follows a backslash; behind the first half of a surrogate pair, the second one as well. */
static hbp_status read_escape(hbp__json_scan *scan)
{
    unsigned first = 0, unit;
    int byte;
    for (;;) {
        HBP__TRY(look_at_byte(scan, &byte));
        if (first && byte != 'u')
            HBP__TRY(keep_half(scan));
        if (byte != 'u')
            return read_plain_escape(scan, byte);
        HBP__TRY(read_unit(scan, &unit));
        if (first && unit >> 10 == 0xdc00 >> 10) {
            keep_code(scan, 0x10000 + ((first & 0x3ff) << 10 | (unit & 0x3ff)));
            return HBP_OK;
        }
        if (first)
            HBP__TRY(keep_half(scan));
        first = unit >> 10 == 0xd800 >> 10 ? unit : 0;
        if (!first)
            break;
        HBP__TRY(look_at_byte(scan, &byte));
        if (byte != '\\')
            return keep_half(scan);
        hbp__json_take(scan);
    }
    if (unit >> 10 == 0xdc00 >> 10)
        return keep_half(scan);
    if (scan->strict && !unit)
        return hbp__json_fail(scan, "a string holds a zero byte");
    keep_code(scan, unit);
    return HBP_OK;
}

hbp_status hbp__json_string(hbp__json_scan *scan)
{
    int byte;
    scan->kind = HBP__JSON_STRING;
    scan->bytes = 0;
    hbp__json_take(scan);
    for (;;) {
        HBP__TRY(look_at_byte(scan, &byte));
        if (byte == END || byte < ' ')
            return hbp__json_fail(scan, "a string does not end on its line");
        hbp__json_take(scan);
        if (byte == '"')
            return HBP_OK;
        if (byte == '\\')
            HBP__TRY(read_escape(scan));
        else
            keep_byte(scan, byte);
    }
}

static int is_word_byte(int byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           byte == '-' || byte == '+' || byte == '.';
}

static int is_word(const hbp__json_scan *scan)
{
    static const char *const words[] = {"true", "false", "null", "NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < (scan->strict ? 3 : sizeof words / sizeof *words); i++)
        if ((size_t)scan->bytes == strlen(words[i]) && memcmp(scan->text, words[i], (size_t)scan->bytes) == 0)
            return 1;
    return 0;
}

/* RFC 8259, section 6. */
static int is_number(const char *text, int64_t bytes)
{
    int64_t i = bytes && text[0] == '-', begin = i;
    while (i < bytes && text[i] >= '0' && text[i] <= '9')
        i++;
    if (i == begin || (text[begin] == '0' && i > begin + 1))
        return 0;
    if (i < bytes && text[i] == '.') {
        for (begin = ++i; i < bytes && text[i] >= '0' && text[i] <= '9';)
            i++;
        if (i == begin)
            return 0;
    }
    if (i < bytes && (text[i] == 'e' || text[i] == 'E')) {
        i++;
        i += i < bytes && (text[i] == '+' || text[i] == '-');
        for (begin = i; i < bytes && text[i] >= '0' && text[i] <= '9';)
            i++;
        if (i == begin)
            return 0;
    }
    return i == bytes;
}

hbp_status hbp__json_scalar(hbp__json_scan *scan)
{
    int byte;
    HBP__TRY(look_at_byte(scan, &byte));
    if (byte == '"')
        return hbp__json_string(scan);
    scan->bytes = 0;
    while (is_word_byte(byte)) {
        keep_byte(scan, byte);
        hbp__json_take(scan);
        HBP__TRY(look_at_byte(scan, &byte));
    }
    if (!scan->bytes)
        return hbp__json_fail(scan, byte == END ? "the file ends within a value" : "a value is missing");
    if (is_word(scan)) {
        scan->kind = HBP__JSON_WORD;
        return HBP_OK;
    }
    int first = scan->text[0], second = scan->bytes > 1 ? scan->text[1] : 0;
    if (first == '-')
        first = second;
    scan->kind = HBP__JSON_NUMBER;
    const int sound = scan->strict ? is_number(scan->text, scan->bytes) : first >= '0' && first <= '9';
    return sound ? HBP_OK : hbp__json_fail(scan, "a value is no JSON");
}

hbp_status hbp__json_key(hbp__json_scan *scan)
{
    int byte;
    HBP__TRY(hbp__json_next(scan, &byte));
    if (byte != '"')
        return hbp__json_fail(scan, "a key is missing");
    HBP__TRY(hbp__json_string(scan));
    HBP__TRY(hbp__json_next(scan, &byte));
    if (byte != ':')
        return hbp__json_fail(scan, "a colon is missing after a key");
    hbp__json_take(scan);
    return HBP_OK;
}

/* Behind a value: closes what ends here. *more says that another value follows within the container at hand.
 */
static hbp_status close_containers(hbp__json_scan *scan, const unsigned char *open, int *depth, int *more)
{
    int byte;
    *more = 0;
    while (*depth && !*more) {
        int is_object = open[*depth - 1] == '{';
        HBP__TRY(hbp__json_next(scan, &byte));
        if (byte == ',') {
            hbp__json_take(scan);
            if (is_object)
                HBP__TRY(hbp__json_key(scan));
            *more = 1;
        } else if (byte == (is_object ? '}' : ']')) {
            hbp__json_take(scan);
            --*depth;
        } else
            return hbp__json_fail(scan, is_object ? "a comma or } is missing" : "a comma or ] is missing");
    }
    return HBP_OK;
}

/* An array or object without recursion: `open` holds the brackets that are open. */
static hbp_status step_over_container(hbp__json_scan *scan, int opening)
{
    unsigned char open[HBP__JSON_DEPTH];
    int depth = 0, byte, more;
    int64_t elements = 0;
    do {
        HBP__TRY(hbp__json_next(scan, &byte));
        elements += depth == 1;
        if (byte != '{' && byte != '[')
            HBP__TRY(hbp__json_scalar(scan));
        else {
            if (depth == HBP__JSON_DEPTH)
                return hbp__json_fail(scan, "values nest deeper than 512");
            hbp__json_take(scan);
            open[depth++] = (unsigned char)byte;
            int close = byte == '{' ? '}' : ']';
            HBP__TRY(hbp__json_next(scan, &byte));
            if (byte != close) {
                if (close == '}')
                    HBP__TRY(hbp__json_key(scan));
                more = 1;
                continue;
            }
        }
        HBP__TRY(close_containers(scan, open, &depth, &more));
    } while (more);
    scan->kind = opening == '{' ? HBP__JSON_OBJECT : HBP__JSON_ARRAY;
    scan->elements = elements;
    return HBP_OK;
}

hbp_status hbp__json_value(hbp__json_scan *scan)
{
    int byte;
    HBP__TRY(hbp__json_next(scan, &byte));
    return byte == '{' || byte == '[' ? step_over_container(scan, byte) : hbp__json_scalar(scan);
}
