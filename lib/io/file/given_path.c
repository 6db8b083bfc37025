#include "io/file/given_path.h"

#include <string.h>
#include <sys/stat.h>

#define END ".json"

int hbp__is_folder(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

int hbp__is_there(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0;
}

size_t hbp__folder_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

size_t hbp__json_name(const char *text, const char *ends)
{
    const size_t length = strlen(text), end = sizeof END - 1;
    if (length >= end && strcmp(text + length - end, END) == 0)
        return length;
    for (const char *at = text; (at = strstr(at, END)) != NULL; at++)
        if (at[end] && strchr(ends, at[end]))
            return (size_t)(at - text) + end;
    return 0;
}
