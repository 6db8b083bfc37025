#include "io/file/write_place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/file/file_error.h"
#include "io/file/given_path.h"

#define LINKS      40 /* as many as Linux follows */
#define PATH_BYTES 4096

/* The number of one of this process's own descriptors, /proc/self/fd/1, which /dev/stdout links to; -1: it is
 * none. Such a path is no name of a file, though the system may print one. */
static int own_descriptor(const char *path)
{
    static const char *const folders[] = {"/proc/self/fd", "/dev/fd"};
    const size_t bytes = hbp__folder_bytes(path);
    const char *name = path + bytes;
    char folder[PATH_BYTES];
    struct stat given, own;
    if (!bytes || !*name || strlen(name) > 9 || name[strspn(name, "0123456789")])
        return -1;
    memcpy(folder, path, bytes);
    folder[bytes] = '\0';
    if (stat(folder, &given) != 0)
        return -1;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (stat(folders[i], &own) == 0 && own.st_dev == given.st_dev && own.st_ino == given.st_ino)
            return (int)strtol(name, NULL, 10);
    return -1;
}

/* Puts what a link says, behind the link's folder unless it begins at the root, in place of `path`
 * [PATH_BYTES]; an errno. */
static int follow(char *path)
{
    char target[PATH_BYTES];
    const ssize_t length = readlink(path, target, sizeof target);
    if (length < 0)
        return errno;
    const size_t folder = target[0] == '/' ? 0 : hbp__folder_bytes(path);
    if (folder + (size_t)length >= PATH_BYTES)
        return ENAMETOOLONG;
    memcpy(path + folder, target, (size_t)length);
    path[folder + (size_t)length] = '\0';
    return 0;
}

/* Follows links; path [PATH_BYTES] is then of no link, or names a descriptor. */
static int follow_all(char *path, int *descriptor)
{
    struct stat at;
    for (int i = 0; (*descriptor = own_descriptor(path)) < 0; i++) {
        if (lstat(path, &at) != 0 || !S_ISLNK(at.st_mode))
            return 0;
        const int failed = i < LINKS ? follow(path) : ELOOP;
        if (failed)
            return failed;
    }
    return 0;
}

hbp_status hbp__find_write_place(hbp_context *context, const char *path, hbp__write_place *place)
{
    *place = (hbp__write_place){.descriptor = -1};
    place->exists = stat(path, &place->info) == 0;
    if (!place->exists && errno != ENOENT)
        return hbp__fail_system(context, "write", path, errno);
    if (place->exists && S_ISDIR(place->info.st_mode))
        return hbp__fail_system(context, "write", path, EISDIR);
    if (strlen(path) >= PATH_BYTES)
        return hbp__fail_system(context, "write", path, ENAMETOOLONG);
    place->path = hbp__new(&context->memory, PATH_BYTES, 1);
    if (!place->path)
        return hbp__fail_memory(context, "the path of a file");
    snprintf(place->path, PATH_BYTES, "%s", path);
    const int failed = follow_all(place->path, &place->descriptor);
    if (failed)
        return hbp__fail_system(context, "write", path, failed);
    /* What the system follows otherwise than by the link's text, another process's descriptors, is written as
     * it is, too. */
    struct stat end;
    const int is_named =
        !place->exists || (S_ISREG(place->info.st_mode) && lstat(place->path, &end) == 0 &&
                           end.st_dev == place->info.st_dev && end.st_ino == place->info.st_ino);
    if (place->descriptor >= 0 || !is_named) {
        hbp__delete(&context->memory, place->path);
        place->path = NULL;
    }
    return HBP_OK;
}
