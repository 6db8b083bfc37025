#include "io/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "io/system_error.h"

#define BUFFER 65536
#define TRIES  1000

/* Room after the path for ".<process>-<try>.tmp". */
#define SUFFIX 40

static void release(hbp__atomic_file *file)
{
    hbp__delete(&file->memory, file->path);
    hbp__delete(&file->memory, file->temporary);
    hbp__delete(&file->memory, file->buffer);
    file->path = NULL;
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
    release(file);
}

static int open_again(const char *path, int flags, mode_t mode)
{
    int file;
    do
        file = open(path, flags | O_CLOEXEC, mode);
    while (file < 0 && errno == EINTR);
    return file;
}

/* A name beside the path that nobody has: two threads or a leftover meet at O_EXCL and take the next number.
 */
static int open_temporary(hbp__atomic_file *file, uint64_t room)
{
    for (int i = 0; i < TRIES; i++) {
        snprintf(file->temporary, (size_t)room, "%s.%lld-%d.tmp", file->path, (long long)getpid(), i);
        int made = open_again(file->temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
        if (made >= 0 || errno != EEXIST)
            return made;
    }
    return -1;
}

hbp_status hbp__atomic_open(hbp_context *context, const char *path, hbp__atomic_file *file)
{
    *file = (hbp__atomic_file){.memory = context->memory, .file = -1};
    struct stat there;
    int exists = stat(path, &there) == 0;
    if (exists && S_ISDIR(there.st_mode))
        return hbp__fail_system(context, "write", path, EISDIR);
    uint64_t bytes = strlen(path) + 1;
    file->path = hbp__new(&file->memory, bytes, 1);
    file->buffer = hbp__new(&file->memory, BUFFER, 1);
    if (!exists || S_ISREG(there.st_mode))
        file->temporary = hbp__new(&file->memory, bytes + SUFFIX, 1);
    if (!file->path || !file->buffer || (!file->temporary && (!exists || S_ISREG(there.st_mode)))) {
        release(file);
        return hbp__fail_memory(context, "writing a file");
    }
    memcpy(file->path, path, bytes);
    file->file = file->temporary ? open_temporary(file, bytes + SUFFIX) : open_again(path, O_WRONLY, 0);
    if (file->file < 0) {
        hbp_status status = hbp__fail_system(context, "write", path, errno);
        release(file);
        return status;
    }
    if (exists && file->temporary && fchmod(file->file, there.st_mode & 0777) != 0) {
        hbp_status status = hbp__fail_system(context, "set the permissions of", file->temporary, errno);
        hbp__atomic_discard(file);
        return status;
    }
    return HBP_OK;
}

static hbp_status write_out(hbp_context *context, hbp__atomic_file *file)
{
    const unsigned char *next = file->buffer;
    while (file->held) {
        ssize_t wrote = write(file->file, next, (size_t)file->held);
        if (wrote < 0 && errno == EINTR)
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

static hbp_status finish(hbp_context *context, hbp__atomic_file *file)
{
    HBP__TRY(write_out(context, file));
    if (!file->temporary)
        return HBP_OK;
    if (fsync(file->file) != 0)
        return hbp__fail_system(context, "write", file->path, errno);
    if (rename(file->temporary, file->path) != 0)
        return hbp__fail_system(context, "write", file->path, errno);
    return HBP_OK;
}

hbp_status hbp__atomic_commit(hbp_context *context, hbp__atomic_file *file)
{
    hbp_status status = finish(context, file);
    if (status < 0) {
        hbp__atomic_discard(file);
        return status;
    }
    /* All is on the disk: what close reports now changes nothing. */
    close(file->file);
    release(file);
    return HBP_OK;
}
