#include "io/file/file_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "io/file/file_error.h"
#include "io/msgpack/msgpack_read.h"

hbp_status hbp__file_open(hbp_context *context, const char *path, hbp__file_bytes *file)
{
    struct stat info;
    *file = (hbp__file_bytes){.name = hbp__show_path(path), .descriptor = -1};
    do
        file->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block here */
    while (file->descriptor < 0 && errno == EINTR);
    if (file->descriptor < 0)
        return hbp__fail_system(context, "open", path, errno);
    if (fstat(file->descriptor, &info) != 0)
        return hbp__fail_system(context, "read", path, errno);
    if (S_ISDIR(info.st_mode))
        return hbp__fail_system(context, "read", path, EISDIR);
    if (!S_ISREG(info.st_mode))
        return hbp__fail(context, HBP_E_SYSTEM,
                         "cannot read %s: it is not a file that can be read at any place", path);
    file->bytes = (int64_t)info.st_size;
    return HBP_OK;
}

void hbp__file_open_memory(const void *data, int64_t bytes, hbp__file_bytes *file)
{
    *file =
        (hbp__file_bytes){.name = hbp__show_path("memory"), .descriptor = -1, .data = data, .bytes = bytes};
}

void hbp__file_close(hbp__file_bytes *file)
{
    if (file->descriptor >= 0)
        close(file->descriptor);
    file->descriptor = -1;
}

hbp_status hbp__file_fail(hbp_context *context, const hbp__file_bytes *file, int64_t offset, const char *what)
{
    return hbp__fail(context, HBP_E_FORMAT, "%s: byte %lld: %s", file->name.text, (long long)offset, what);
}

hbp_status hbp__file_read(hbp_context *context, const hbp__file_bytes *file, int64_t offset, int64_t bytes,
                          uint8_t *to)
{
    if (file->descriptor < 0) {
        if (bytes)
            memcpy(to, file->data + offset, (size_t)bytes);
        return HBP_OK;
    }
    while (bytes) {
        ssize_t got =
            pread(file->descriptor, to, (size_t)hbp__min_i64(bytes, INT64_C(1) << 30), (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return hbp__fail_system(context, "read", file->name.text, errno);
        if (got == 0)
            return hbp__file_fail(context, file, offset, "the file became shorter while it was read");
        to += got;
        offset += got;
        bytes -= got;
    }
    return HBP_OK;
}

hbp_status hbp__file_unpack(hbp_context *context, const hbp__file_bytes *file, int64_t offset,
                            const char *what, const uint8_t *data, uint64_t bytes, uint64_t max_objects,
                            hbp__document *object)
{
    char text[96];
    hbp__msgpack_extent extent;
    if (hbp__msgpack_scan(data, bytes, max_objects, &extent) && extent.bytes == bytes)
        return hbp__msgpack_read(context, what, data, &extent, object);
    snprintf(text, sizeof text, "%s is not one msgpack object", what);
    return hbp__file_fail(context, file, offset, text);
}
