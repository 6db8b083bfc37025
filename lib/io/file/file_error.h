/* How a failure of a file is told: of the system's calls on it, of what it says. */
#ifndef HBP_IO_FILE_ERROR_H
#define HBP_IO_FILE_ERROR_H

#include <stdint.h>

#include "base/context.h"

/* HBP_E_SYSTEM: "cannot <what> <path>: <the system's reason>"; `error` is an errno. */
hbp_status hbp__fail_system(hbp_context *context, const char *what, const char *path, int error);

/* After a failed check of what a file says: puts "NAME: " before the message and turns HBP_E_INVALID and
 * HBP_E_OVERFLOW into HBP_E_FORMAT. */
hbp_status hbp__blame_file(hbp_context *context, const char *name, hbp_status status);

/* What messages call a file: its path as given; of a longer one the end, behind "...". */
#define HBP__SHOWN_PATH 256
typedef struct hbp__shown_path {
    char text[HBP__SHOWN_PATH];
} hbp__shown_path;
hbp__shown_path hbp__show_path(const char *path);

/* The path's last part. */
const char *hbp__file_name(const char *path);

/* Copies at most room - 1 bytes of foreign text for a message, '?' for what is not printable ASCII. */
void hbp__printable(char *to, int64_t room, const char *text);

/* The same of text that ends after `bytes`, or at a zero before. */
void hbp__printable_text(char *to, int64_t room, const char *text, int64_t bytes);

#endif
