/* What callers name: a file, a folder, or neither. */
#ifndef HBP_IO_GIVEN_PATH_H
#define HBP_IO_GIVEN_PATH_H

#include <stddef.h>

/* Whether a folder of that name is there, and a file or folder. */
int hbp__is_folder(const char *path);
int hbp__is_there(const char *path);

/* The length of the file's name at the beginning of a text: all of it where it ends in .json, for any
 * character may be part of a name; else up to a .json that one of `ends` follows. 0: it begins with no such
 * name. */
size_t hbp__json_name(const char *text, const char *ends);

/* Bytes of the path up to the last part, its slash included. */
size_t hbp__folder_bytes(const char *path);

#endif
