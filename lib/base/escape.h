/* Foreign text in one line of a message: names come from files and callers, messages go to terminals and
 * logs.
 */
#ifndef HBP_BASE_ESCAPE_H
#define HBP_BASE_ESCAPE_H

#include <stdint.h>

/* Copies `text` into `to` [room >= 32] as one line of UTF-8: control characters, of C1 and of writing
 * direction as well, become \n, \r, \t or \xNN byte by byte, as does what is not UTF-8. What does not fit
 * loses its middle, " ... " in its place: the end of a message says why. Backslashes stay, so that an escaped
 * text is left as it is. */
void hbp__escape(char *to, int64_t room, const char *text);

#endif
