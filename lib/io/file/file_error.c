#include "io/file/file_error.h"

#include <stdio.h>
#include <string.h>

hbp_status hbp__fail_system(hbp_context *context, const char *what, const char *path, int error)
{
    char text[96];
    if (strerror_r(error, text, sizeof text) != 0)
        text[0] = '\0';
    return hbp__fail(context, HBP_E_SYSTEM, "cannot %s %s: %s", what, path, text);
}

void hbp__printable_text(char *to, int64_t room, const char *text, int64_t bytes)
{
    int64_t i = 0;
    for (; i < room - 1 && i < bytes && text[i]; i++)
        to[i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
    to[i] = '\0';
}

void hbp__printable(char *to, int64_t room, const char *text)
{
    hbp__printable_text(to, room, text, INT64_MAX);
}

hbp__shown_path hbp__show_path(const char *path)
{
    hbp__shown_path shown;
    const size_t bytes = strlen(path), most = sizeof shown.text - sizeof "...";
    if (bytes < sizeof shown.text) {
        memcpy(shown.text, path, bytes + 1);
        return shown;
    }
    path += bytes - most;
    while (((unsigned char)*path & 0xc0) == 0x80) /* within a character */
        path++;
    snprintf(shown.text, sizeof shown.text, "...%s", path);
    return shown;
}

const char *hbp__file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

hbp_status hbp__blame_file(hbp_context *context, const char *name, hbp_status status)
{
    if (status != HBP_E_INVALID && status != HBP_E_OVERFLOW && status != HBP_E_FORMAT)
        return status;
    char message[HBP__MESSAGE_BYTES];
    snprintf(message, sizeof message, "%s", context->message);
    return hbp__fail(context, HBP_E_FORMAT, "%s: %s", name, message);
}
