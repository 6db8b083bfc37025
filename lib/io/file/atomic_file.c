#include "io/file/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/rng.h"
#include "io/file/file_error.h"
#include "io/file/given_path.h"
#include "io/file/write_place.h"

#define BUFFER     65536
#define LOOK_UP_MS 20
#define TRIES      1000

/* Room for ".hbp-0123456789abcdef.tmp" behind the folder: short, so that a path may have as long a name as
 * the file system allows. */
#define SUFFIX 32

static void release_file(hbp__atomic_file *file)
{
    hbp__delete(&file->memory, file->path);
    hbp__delete(&file->memory, file->target);
    hbp__delete(&file->memory, file->temporary);
    hbp__delete(&file->memory, file->buffer);
    file->path = NULL;
    file->target = NULL;
    file->temporary = NULL;
    file->buffer = NULL;
    file->file = -1;
}

void hbp__atomic_discard(hbp__atomic_file *file)
{
    if (!file->path)
        return;
    if (file->file >= 0) {
        close(file->file);
        if (file->temporary)
            unlink(file->temporary);
    }
    release_file(file);
}

static int open_again(const char *path, int flags, mode_t mode)
{
    int file;
    do
        file = open(path, flags | O_CLOEXEC, mode);
    while (file < 0 && errno == EINTR);
    return file;
}

/* Copies the folder, "." for none, behind which there is room for SUFFIX. */
static void put_folder(char *to, const char *path)
{
    size_t bytes = hbp__folder_bytes(path);
    memcpy(to, path, bytes);
    memcpy(to + bytes, bytes ? "" : ".", bytes ? 1 : 2);
}

/* Names are drawn: a leftover of a process that was killed, maybe one of the same number or on another
 * machine, is in nobody's way. It changed the folder's time, so that not even the draws come again. */
static hbp__rng draw_names(const hbp__atomic_file *file)
{
    struct stat folder;
    put_folder(file->temporary, file->target);
    uint64_t seed = (uint64_t)getpid(), time = 0;
    if (stat(file->temporary, &folder) == 0)
        time = (uint64_t)folder.st_mtim.tv_sec * 1000000000 + (uint64_t)folder.st_mtim.tv_nsec;
    return hbp__rng_make(seed, time, (uint64_t)(uintptr_t)file);
}

/* A name in the same folder that nobody has: who meets another at O_EXCL draws again. */
static int open_temporary(hbp__atomic_file *file)
{
    size_t bytes = hbp__folder_bytes(file->target);
    hbp__rng rng = draw_names(file);
    memcpy(file->temporary, file->target, bytes);
    for (int i = 0; i < TRIES; i++) {
        snprintf(file->temporary + bytes, SUFFIX, ".hbp-%016llx.tmp",
                 (unsigned long long)hbp__rng_next(&rng));
        int made = open_again(file->temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
        if (made >= 0 || errno != EEXIST)
            return made;
    }
    return -1;
}

/* A descriptor of its own for what is written in place: a device, a pipe, or what standard output is, from
 * where that stands. */
static int open_in_place(const char *path, const hbp__write_place *place)
{
    if (place->descriptor < 0)
        return open_again(path, O_WRONLY | (S_ISREG(place->info.st_mode) ? O_TRUNC : 0), 0);
    const int flags = fcntl(place->descriptor, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) == O_RDONLY) {
        errno = EBADF;
        return -1;
    }
    return flags < 0 ? -1 : fcntl(place->descriptor, F_DUPFD_CLOEXEC, 0);
}

/* A named pipe, once somebody reads it. */
static hbp_status open_pipe(hbp_context *context, const char *path, int *file)
{
    for (;;) {
        *file = open_again(path, O_WRONLY | O_NONBLOCK, 0);
        if (*file >= 0)
            return fcntl(*file, F_SETFL, O_WRONLY) == 0 ? HBP_OK
                                                        : hbp__fail_system(context, "write", path, errno);
        if (errno != ENXIO)
            return hbp__fail_system(context, "write", path, errno);
        HBP__TRY(hbp__tick(context, "save", 0, 0));
        poll(NULL, 0, LOOK_UP_MS);
    }
}

static hbp_status open_place(hbp_context *context, const char *path, const hbp__write_place *place,
                             hbp__atomic_file *file)
{
    const uint64_t bytes = strlen(path) + 1;
    file->path = hbp__new(&file->memory, bytes, 1);
    file->buffer = hbp__new(&file->memory, BUFFER, 1);
    if (file->target)
        file->temporary = hbp__new(&file->memory, strlen(file->target) + 1 + SUFFIX, 1);
    if (!file->path || !file->buffer || (file->target && !file->temporary))
        return hbp__fail_memory(context, "writing a file");
    memcpy(file->path, path, bytes);
    if (!file->target && place->descriptor < 0 && S_ISFIFO(place->info.st_mode))
        return open_pipe(context, path, &file->file);
    file->file = file->target ? open_temporary(file) : open_in_place(path, place);
    if (file->file < 0)
        return hbp__fail_system(context, "write", path, errno);
    if (place->exists && file->target && fchmod(file->file, place->info.st_mode & 0777) != 0)
        return hbp__fail_system(context, "set the permissions of", path, errno);
    return HBP_OK;
}

hbp_status hbp__atomic_open(hbp_context *context, const char *path, hbp__atomic_file *file)
{
    hbp__write_place place;
    *file = (hbp__atomic_file){.memory = context->memory, .file = -1};
    hbp_status status = hbp__find_write_place(context, path, &place);
    file->target = place.path;
    if (status >= 0)
        status = open_place(context, path, &place, file);
    if (status < 0) {
        hbp__atomic_discard(file);
        release_file(file);
    }
    return status;
}

/* Waits until a write of PIPE_BUF bytes does not: who reads a pipe may be in no hurry. */
static hbp_status await_reader(hbp_context *context, const hbp__atomic_file *file)
{
    struct pollfd ready = {.fd = file->file, .events = POLLOUT};
    for (;;) {
        const int found = poll(&ready, 1, LOOK_UP_MS);
        if (found > 0)
            return HBP_OK;
        if (found < 0 && errno != EINTR && errno != EAGAIN)
            return hbp__fail_system(context, "write", file->path, errno);
        HBP__TRY(hbp__tick(context, "save", 0, 0));
    }
}

static hbp_status write_out(hbp_context *context, hbp__atomic_file *file)
{
    const unsigned char *next = file->buffer;
    while (file->held) {
        if (!file->target)
            HBP__TRY(await_reader(context, file));
        ssize_t wrote =
            write(file->file, next, (size_t)(file->target ? file->held : hbp__min_i64(file->held, PIPE_BUF)));
        if (wrote < 0 && (errno == EINTR || (!file->target && errno == EAGAIN)))
            continue;
        if (wrote < 0)
            return hbp__fail_system(context, "write", file->path, errno);
        next += wrote;
        file->held -= wrote;
    }
    return HBP_OK;
}

hbp_status hbp__atomic_write(hbp_context *context, hbp__atomic_file *file, const void *data, int64_t bytes)
{
    const unsigned char *next = data;
    while (bytes) {
        int64_t part = hbp__min_i64(bytes, BUFFER - file->held);
        memcpy(file->buffer + file->held, next, (size_t)part);
        file->held += part;
        next += part;
        bytes -= part;
        if (file->held == BUFFER)
            HBP__TRY(write_out(context, file));
    }
    return HBP_OK;
}

/* A rename outlives a power cut once its folder is on the disk. Some file systems sync no folders, and some
 * folders may be written but not read: then there is nothing to do. */
static hbp_status sync_folder(hbp_context *context, hbp__atomic_file *file)
{
    put_folder(file->temporary, file->target);
    int folder = open_again(file->temporary, O_RDONLY, 0);
    int failed = folder >= 0 && fsync(folder) != 0 ? errno : 0;
    if (folder >= 0)
        close(folder);
    /* The file itself is renamed: nothing that discarding should look for. */
    hbp__delete(&file->memory, file->temporary);
    file->temporary = NULL;
    if (failed == EIO || failed == ENOSPC)
        return hbp__fail_system(context, "sync the folder of", file->path, failed);
    return HBP_OK;
}

static hbp_status finish_file(hbp_context *context, hbp__atomic_file *file)
{
    HBP__TRY(write_out(context, file));
    if (!file->target)
        return HBP_OK;
    if (fsync(file->file) != 0)
        return hbp__fail_system(context, "write", file->path, errno);
    if (rename(file->temporary, file->target) != 0)
        return hbp__fail_system(context, "write", file->path, errno);
    return sync_folder(context, file);
}

hbp_status hbp__atomic_commit(hbp_context *context, hbp__atomic_file *file)
{
    hbp_status status = finish_file(context, file);
    if (status < 0) {
        hbp__atomic_discard(file);
        return status;
    }
    /* All is on the disk: what close reports now changes nothing. */
    close(file->file);
    release_file(file);
    return HBP_OK;
}

hbp_status hbp__atomic_end(hbp_context *context, hbp__atomic_file *file, hbp_status status)
{
    if (status == HBP_OK)
        return hbp__atomic_commit(context, file);
    hbp__atomic_discard(file);
    return status;
}

hbp_status hbp__atomic_save(hbp_context *context, const char *path, const void *data, int64_t bytes)
{
    hbp__atomic_file file;
    HBP__TRY(hbp__atomic_open(context, path, &file));
    return hbp__atomic_end(context, &file, hbp__atomic_write(context, &file, data, bytes));
}
