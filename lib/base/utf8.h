/* UTF-8, as RFC 3629 has it. */
#ifndef HBP_BASE_UTF8_H
#define HBP_BASE_UTF8_H

/* Bytes of the character that `text`, which ends with 0, begins with; 0: none, as overlong forms, surrogates
 * and what lies past U+10FFFF are (section 4). */
static inline int hbp__utf8_bytes(const char *text)
{
    const unsigned char *byte = (const unsigned char *)text;
    unsigned char first = byte[0], low = 0x80, high = 0xbf;
    int bytes = first < 0x80   ? 1
                : first < 0xc2 ? 0
                : first < 0xe0 ? 2
                : first < 0xf0 ? 3
                : first < 0xf5 ? 4
                               : 0;
    if (first == 0xe0 || first == 0xf0)
        low = first == 0xe0 ? 0xa0 : 0x90;
    if (first == 0xed || first == 0xf4)
        high = first == 0xed ? 0x9f : 0x8f;
    for (int i = 1; i < bytes; i++, low = 0x80, high = 0xbf)
        if (byte[i] < low || byte[i] > high)
            return 0;
    return bytes;
}

/* Whether all of `text` is. */
static inline int hbp__utf8(const char *text)
{
    for (int bytes; *text; text += bytes)
        if (!(bytes = hbp__utf8_bytes(text)))
            return 0;
    return 1;
}

#endif
