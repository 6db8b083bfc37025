#include "io/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"

#define BUFFER_BYTES 65536
#define SUFFIX_BYTES 64
#define ATTEMPTS     1000

struct hbp__atomic_file {
    hbp_context *context;
    char *path;
    char *temporary; /* NULL: written directly */
    int descriptor;
    uint64_t offset;
    uint64_t pending; /* bytes of the buffer */
    unsigned char buffer[BUFFER_BYTES];
};

static hbp_status fail_system(hbp_context *context, const char *what, const char *path)
{
    char text[96];
    if (strerror_r(errno, text, sizeof text) != 0)
        text[0] = '\0';
    return hbp__fail(context, HBP_E_SYSTEM, "cannot %s %s: %s", what, path, text);
}

static void release(hbp__atomic_file *file)
{
    const hbp__memory *memory = &file->context->memory;
    if (file->descriptor >= 0)
        close(file->descriptor);
    hbp__delete(memory, file->path);
    hbp__delete(memory, file->temporary);
    hbp__delete(memory, file);
}

/* The first free name beside the path; O_EXCL keeps other threads and processes off it. The mode follows the
 * umask. */
static hbp_status open_temporary(hbp__atomic_file *file)
{
    size_t room = strlen(file->path) + SUFFIX_BYTES;
    file->temporary = hbp__new(&file->context->memory, room, 1);
    if (!file->temporary)
        return hbp__fail_memory(file->context, "a file name");
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        snprintf(file->temporary, room, "%s.%ld-%d.tmp", file->path, (long)getpid(), attempt);
        file->descriptor = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->descriptor >= 0)
            return HBP_OK;
        if (errno != EEXIST)
            break;
    }
    hbp_status status = fail_system(file->context, "create", file->temporary);
    hbp__delete(&file->context->memory, file->temporary);
    file->temporary = NULL; /* it is not ours to remove */
    return status;
}

static hbp_status open_place(hbp__atomic_file *file)
{
    struct stat place;
    if (stat(file->path, &place) != 0 || S_ISREG(place.st_mode))
        return open_temporary(file);
    file->descriptor = open(file->path, O_WRONLY | O_CLOEXEC); /* a directory fails here */
    return file->descriptor < 0 ? fail_system(file->context, "write", file->path) : HBP_OK;
}

hbp_status hbp__atomic_open(hbp_context *context, const char *path, hbp__atomic_file **out)
{
    *out = NULL;
    hbp__atomic_file *file = hbp__new(&context->memory, 1, sizeof *file);
    if (!file)
        return hbp__fail_memory(context, "a file buffer");
    file->context = context;
    file->temporary = NULL;
    file->descriptor = -1;
    file->offset = file->pending = 0;
    size_t bytes = strlen(path) + 1;
    file->path = hbp__new(&context->memory, bytes, 1);
    hbp_status status = HBP_OK;
    if (file->path)
        memcpy(file->path, path, bytes);
    else
        status = hbp__fail_memory(context, "a file name");
    if (status == HBP_OK)
        status = open_place(file);
    if (status < 0)
        release(file);
    else
        *out = file;
    return status;
}

static hbp_status write_out(hbp__atomic_file *file, const unsigned char *data, uint64_t bytes)
{
    while (bytes) {
        ssize_t written = write(file->descriptor, data, (size_t)(bytes < 1 << 30 ? bytes : 1 << 30));
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return fail_system(file->context, "write", file->path);
        data += written;
        bytes -= (uint64_t)written;
    }
    return HBP_OK;
}

static hbp_status flush(hbp__atomic_file *file)
{
    uint64_t pending = file->pending;
    file->pending = 0;
    return write_out(file, file->buffer, pending);
}

hbp_status hbp__atomic_write(hbp__atomic_file *file, const void *data, uint64_t bytes)
{
    file->offset += bytes;
    if (bytes > BUFFER_BYTES - file->pending)
        HBP__TRY(flush(file));
    if (bytes > BUFFER_BYTES)
        return write_out(file, data, bytes);
    if (bytes)
        memcpy(file->buffer + file->pending, data, (size_t)bytes);
    file->pending += bytes;
    return HBP_OK;
}

uint64_t hbp__atomic_offset(const hbp__atomic_file *file)
{
    return file->offset;
}

/* The rename itself is durable once the folder is synced; a file system that cannot sync folders is let be.
 */
static void sync_folder(const hbp__atomic_file *file)
{
    const char *slash = strrchr(file->path, '/');
    size_t bytes = slash ? (size_t)(slash - file->path) : 0;
    if (slash)
        file->temporary[bytes ? bytes : 1] = '\0'; /* the temporary name begins with the same folder */
    int folder = open(slash ? file->temporary : ".", O_RDONLY | O_CLOEXEC);
    if (folder < 0)
        return;
    fsync(folder);
    close(folder);
}

static hbp_status finish(hbp__atomic_file *file)
{
    HBP__TRY(flush(file));
    if (file->temporary && fsync(file->descriptor) != 0)
        return fail_system(file->context, "sync", file->path);
    int closed = close(file->descriptor);
    file->descriptor = -1;
    if (closed != 0)
        return fail_system(file->context, "write", file->path);
    if (file->temporary && rename(file->temporary, file->path) != 0)
        return fail_system(file->context, "replace", file->path);
    return HBP_OK;
}

hbp_status hbp__atomic_commit(hbp__atomic_file *file)
{
    hbp_status status = finish(file);
    if (status < 0) {
        hbp__atomic_discard(file);
        return status;
    }
    if (file->temporary)
        sync_folder(file);
    release(file);
    return HBP_OK;
}

void hbp__atomic_discard(hbp__atomic_file *file)
{
    if (!file)
        return;
    if (file->temporary)
        unlink(file->temporary);
    release(file);
}
