#include "io/file/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "io/file/file_error.h"
#include "io/file/zipped.h"
#include "io/file/zstd.h"

#define BLOCK      65536
#define FIRST_ROOM 65536 /* of a file read whole */

/* A wait for bytes, or for someone who writes them, looks up every so many ms. */
#define LOOK_UP_MS 10

struct hbp__stream {
    hbp_context *context;
    hbp__shown_path name;
    const char *path;
    int file;                    /* descriptor; -1: memory */
    int may_wait;                /* it is a pipe or the like */
    const unsigned char *memory; /* what is left of it */
    int64_t memory_bytes;
    int64_t total;  /* bytes of the file as stored; 0: unknown */
    int64_t stored; /* bytes of it read so far */
    int stored_end;
    enum { PLAIN, GZIP, ZSTD } packing;
    int zip_ready; /* z is initialised */
    int in_member; /* a gzip member has begun and not ended */
    z_stream z;
    hbp__zstd zstd;
    unsigned char *raw;    /* [HBP__STREAM_AHEAD + BLOCK] stored bytes before decompressing */
    unsigned char *buffer; /* [HBP__STREAM_AHEAD + BLOCK]; [begin, end) is ahead */
    int64_t begin;
    int64_t end;
    int64_t offset;
};

const char *hbp__stream_name(const hbp__stream *stream)
{
    return stream->name.text;
}

const char *hbp__stream_path(const hbp__stream *stream)
{
    return stream->path;
}

size_t hbp__stem_bytes(const char *name)
{
    static const char *const endings[] = {".gz", ".zst", ".zstd"};
    size_t bytes = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t ending = strlen(endings[i]);
        if (bytes > ending && strcmp(name + bytes - ending, endings[i]) == 0)
            return bytes - ending;
    }
    return bytes;
}

int64_t hbp__stream_offset(const hbp__stream *stream)
{
    return stream->offset;
}

static int64_t total_of(const hbp__stream *stream)
{
    return stream->stored <= stream->total ? stream->total : 0; /* a file may grow */
}

/* Waits until a read does not. A pipe that nobody has opened for writing yet has nothing to say; where the
 * last writer is gone there is its end to read. */
static hbp_status await_bytes(const hbp__stream *stream)
{
    struct pollfd ready = {.fd = stream->file, .events = POLLIN};
    while (stream->may_wait) {
        int found = poll(&ready, 1, LOOK_UP_MS);
        if (found > 0)
            return HBP_OK;
        if (found < 0 && errno != EINTR && errno != EAGAIN)
            return hbp__fail_system(stream->context, "read", stream->name.text, errno);
        HBP__TRY(hbp__tick(stream->context, "read", stream->stored, total_of(stream)));
    }
    return HBP_OK;
}

/* One read of the file, repeated where a signal, or another reader of the same pipe, came between. */
static hbp_status read_file(const hbp__stream *stream, unsigned char *to, int64_t room, int64_t *got)
{
    for (;;) {
        HBP__TRY(await_bytes(stream));
        ssize_t bytes = read(stream->file, to, (size_t)room);
        if (bytes >= 0) {
            *got = bytes;
            return HBP_OK;
        }
        if (errno != EINTR && !(stream->may_wait && errno == EAGAIN))
            return hbp__fail_system(stream->context, "read", stream->name.text, errno);
        HBP__TRY(hbp__tick(stream->context, "read", stream->stored, total_of(stream)));
    }
}

/* Up to `room` stored bytes into `to`; 0 at the end. */
static hbp_status read_stored(hbp__stream *stream, unsigned char *to, int64_t room, int64_t *got)
{
    *got = 0;
    HBP__TRY(hbp__tick(stream->context, "read", stream->stored, total_of(stream)));
    if (stream->stored_end)
        return HBP_OK;
    if (stream->file < 0) {
        *got = hbp__min_i64(room, stream->memory_bytes);
        if (*got)
            memcpy(to, stream->memory, (size_t)*got);
        stream->memory += *got;
        stream->memory_bytes -= *got;
    } else {
        HBP__TRY(read_file(stream, to, room, got));
    }
    stream->stored_end = *got == 0;
    stream->stored += *got;
    return HBP_OK;
}

/* Between members: steps over zero padding; another member begins with 1f 8b, as after `cat a.gz b.gz`. */
static hbp_status begin_member(hbp__stream *stream)
{
    z_stream *z = &stream->z;
    while (z->avail_in && *z->next_in == 0) {
        z->next_in++;
        z->avail_in--;
    }
    if (!z->avail_in)
        return HBP_OK;
    if (*z->next_in != 0x1f)
        return hbp__fail(stream->context, HBP_E_FORMAT,
                         "%s: bytes after the end of the gzip data, at byte %lld", stream->name.text,
                         (long long)(stream->stored - z->avail_in));
    inflateReset(z);
    stream->in_member = 1;
    return HBP_OK;
}

static hbp_status inflate_block(hbp__stream *stream, unsigned char *to, int64_t room)
{
    z_stream *z = &stream->z;
    z->next_out = to;
    z->avail_out = (uInt)room;
    int code = inflate(z, Z_NO_FLUSH);
    if (code == Z_STREAM_END)
        stream->in_member = 0;
    else if (code == Z_MEM_ERROR)
        return hbp__fail_memory(stream->context, "gzip");
    else if (code != Z_OK && code != Z_BUF_ERROR)
        return hbp__fail(stream->context, HBP_E_FORMAT, "%s: damaged gzip data near byte %lld",
                         stream->name.text, (long long)(stream->stored - z->avail_in));
    return HBP_OK;
}

/* Up to `room` unzipped bytes into `to`; 0 at the end. */
static hbp_status read_unzipped(hbp__stream *stream, unsigned char *to, int64_t room, int64_t *got)
{
    z_stream *z = &stream->z;
    *got = 0;
    while (*got == 0) {
        if (!z->avail_in) {
            int64_t bytes;
            HBP__TRY(read_stored(stream, stream->raw, BLOCK, &bytes));
            if (bytes == 0 && stream->in_member)
                return hbp__fail(stream->context, HBP_E_FORMAT, "%s: the gzip data end early, at byte %lld",
                                 stream->name.text, (long long)stream->stored);
            if (bytes == 0)
                return HBP_OK;
            z->next_in = stream->raw;
            z->avail_in = (uInt)bytes;
        }
        if (!stream->in_member)
            HBP__TRY(begin_member(stream));
        if (stream->in_member) {
            HBP__TRY(inflate_block(stream, to, room));
            *got = room - z->avail_out;
        }
    }
    return HBP_OK;
}

/* The same of zstd. */
static hbp_status read_zstd(hbp__stream *stream, unsigned char *to, int64_t room, int64_t *got)
{
    hbp__zstd *zstd = &stream->zstd;
    *got = 0;
    while (*got == 0) {
        if (!zstd->unused && !zstd->has_more) {
            int64_t bytes;
            HBP__TRY(read_stored(stream, stream->raw, BLOCK, &bytes));
            if (bytes == 0 && zstd->in_frame)
                return hbp__fail(stream->context, HBP_E_FORMAT, "%s: the zstd data end early, at byte %lld",
                                 stream->name.text, (long long)stream->stored);
            if (bytes == 0)
                return HBP_OK;
            zstd->data = stream->raw;
            zstd->unused = bytes;
        }
        HBP__TRY(hbp__zstd_unpack(zstd, to, room, stream->stored, got));
    }
    return HBP_OK;
}

hbp_status hbp__stream_peek(hbp__stream *stream, int64_t want, const unsigned char **data, int64_t *bytes)
{
    if (stream->end - stream->begin < want && stream->begin) {
        memmove(stream->buffer, stream->buffer + stream->begin, (size_t)(stream->end - stream->begin));
        stream->end -= stream->begin;
        stream->begin = 0;
    }
    while (stream->end - stream->begin < want) {
        int64_t got, room = HBP__STREAM_AHEAD + BLOCK - stream->end;
        if (stream->packing == GZIP)
            HBP__TRY(read_unzipped(stream, stream->buffer + stream->end, room, &got));
        else if (stream->packing == ZSTD)
            HBP__TRY(read_zstd(stream, stream->buffer + stream->end, room, &got));
        else
            HBP__TRY(read_stored(stream, stream->buffer + stream->end, room, &got));
        if (got == 0)
            break;
        stream->end += got;
    }
    *data = stream->buffer + stream->begin;
    *bytes = stream->end - stream->begin;
    return HBP_OK;
}

void hbp__stream_take(hbp__stream *stream, int64_t bytes)
{
    stream->begin += bytes;
    stream->offset += bytes;
}

static hbp_status fail_end(const hbp__stream *stream, const char *what)
{
    return hbp__fail(stream->context, HBP_E_FORMAT, "%s ends at byte %lld, within %s", stream->name.text,
                     (long long)stream->offset, what);
}

hbp_status hbp__stream_read(hbp__stream *stream, void *to, int64_t bytes, const char *what)
{
    unsigned char *next = to;
    while (bytes) {
        const unsigned char *data;
        int64_t here;
        HBP__TRY(hbp__stream_peek(stream, 1, &data, &here));
        if (here == 0)
            return fail_end(stream, what);
        here = hbp__min_i64(here, bytes);
        memcpy(next, data, (size_t)here);
        hbp__stream_take(stream, here);
        next += here;
        bytes -= here;
    }
    return HBP_OK;
}

/* Moves on in a regular file as far as it reaches; the rest is for reading, which finds its end. */
static hbp_status seek(hbp__stream *stream, int64_t bytes)
{
    bytes = hbp__min_i64(bytes, stream->total - stream->stored);
    if (bytes <= 0 || stream->file < 0 || stream->may_wait || stream->packing != PLAIN)
        return HBP_OK;
    if (lseek(stream->file, (off_t)bytes, SEEK_CUR) < 0)
        return hbp__fail_system(stream->context, "read", stream->name.text, errno);
    stream->stored += bytes;
    stream->offset += bytes;
    return HBP_OK;
}

hbp_status hbp__stream_skip(hbp__stream *stream, int64_t bytes, const char *what)
{
    int64_t until = stream->offset + bytes;
    while (stream->offset < until) {
        const unsigned char *data;
        int64_t here = stream->end - stream->begin;
        if (!here)
            HBP__TRY(seek(stream, until - stream->offset));
        if (stream->offset == until)
            break;
        HBP__TRY(hbp__stream_peek(stream, 1, &data, &here));
        if (here == 0)
            return fail_end(stream, what);
        hbp__stream_take(stream, hbp__min_i64(here, until - stream->offset));
    }
    return HBP_OK;
}

static hbp_status begin_gzip(hbp__stream *stream, int64_t bytes)
{
    stream->z = hbp__zlib_stream(&stream->context->memory);
    if (inflateInit2(&stream->z, 15 + 16) != Z_OK)
        return hbp__fail_memory(stream->context, "gzip");
    stream->packing = GZIP;
    stream->zip_ready = stream->in_member = 1;
    stream->z.next_in = stream->raw;
    stream->z.avail_in = (uInt)bytes;
    return HBP_OK;
}

static hbp_status begin_zstd(hbp__stream *stream, int64_t bytes)
{
    stream->zstd = (hbp__zstd){
        .context = stream->context, .name = stream->name.text, .data = stream->raw, .unused = bytes};
    stream->packing = ZSTD;
    return hbp__zstd_open(&stream->zstd);
}

/* Looks for the magic bytes of gzip and zstd among the first stored ones and, when they are there, sets up
 * decompressing. */
static hbp_status begin_unpacking(hbp__stream *stream)
{
    const unsigned char *data;
    int64_t bytes;
    HBP__TRY(hbp__stream_peek(stream, 4, &data, &bytes));
    int is_gzip = bytes >= 2 && data[0] == 0x1f && data[1] == 0x8b;
    if (!is_gzip && !hbp__zstd_begins(data, bytes))
        return HBP_OK;
    stream->raw = hbp__new(&stream->context->memory, HBP__STREAM_AHEAD + BLOCK, 1);
    if (!stream->raw)
        return hbp__fail_memory(stream->context, "a buffer");
    memcpy(stream->raw, data, (size_t)bytes);
    stream->begin = stream->end = 0;
    return is_gzip ? begin_gzip(stream, bytes) : begin_zstd(stream, bytes);
}

static hbp_status open_file(hbp__stream *stream, const char *path)
{
    int standard = strcmp(path, "-") == 0;
    stream->name = hbp__show_path(standard ? "standard input" : path);
    stream->path = path;
    /* A pipe must not block where it is opened. */
    stream->file = standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (stream->file < 0)
        return hbp__fail_system(stream->context, "open", standard ? stream->name.text : path, errno);
    struct stat about;
    if (fstat(stream->file, &about) != 0)
        return hbp__fail_system(stream->context, "read", path, errno);
    if (S_ISDIR(about.st_mode))
        return hbp__fail(stream->context, HBP_E_SYSTEM, "cannot read %s: it is a directory", path);
    stream->may_wait = !S_ISREG(about.st_mode);
    if (S_ISREG(about.st_mode))
        stream->total = about.st_size;
    return HBP_OK;
}

static hbp__stream *new_stream(hbp_context *context)
{
    hbp__stream *stream = hbp__new_zero(&context->memory, 1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->context = context;
    stream->file = -1;
    stream->path = "";
    stream->buffer = hbp__new(&context->memory, HBP__STREAM_AHEAD + BLOCK, 1);
    if (!stream->buffer) {
        hbp__delete(&context->memory, stream);
        return NULL;
    }
    return stream;
}

/* Ends an opening: the stream goes to the caller or, after a failure, is closed. */
static hbp_status end_open(hbp__stream *stream, hbp_status status, hbp__stream **out)
{
    if (status >= 0)
        status = begin_unpacking(stream);
    if (status < 0)
        hbp__stream_close(stream);
    else
        *out = stream;
    return status;
}

hbp_status hbp__stream_open(hbp_context *context, const char *path, hbp__stream **out)
{
    *out = NULL;
    hbp__stream *stream = new_stream(context);
    if (!stream)
        return hbp__fail_memory(context, "a buffer");
    return end_open(stream, open_file(stream, path), out);
}

hbp_status hbp__stream_open_memory(hbp_context *context, const char *name, const void *data, int64_t bytes,
                                   hbp__stream **out)
{
    *out = NULL;
    hbp__stream *stream = new_stream(context);
    if (!stream)
        return hbp__fail_memory(context, "a buffer");
    stream->name = hbp__show_path(name);
    stream->memory = data;
    stream->memory_bytes = stream->total = bytes;
    return end_open(stream, HBP_OK, out);
}

void hbp__stream_close(hbp__stream *stream)
{
    if (!stream)
        return;
    const hbp__memory memory = stream->context->memory;
    if (stream->zip_ready)
        inflateEnd(&stream->z);
    if (stream->packing == ZSTD)
        hbp__zstd_close(&stream->zstd);
    if (stream->file >= 0)
        close(stream->file);
    hbp__delete(&memory, stream->raw);
    hbp__delete(&memory, stream->buffer);
    hbp__delete(&memory, stream);
}

hbp_status hbp__stream_read_all(hbp__stream *in, int64_t most, char **data, int64_t *bytes)
{
    hbp_context *context = in->context;
    int64_t room = 0;
    *data = NULL;
    *bytes = 0;
    for (;;) {
        const unsigned char *shown;
        int64_t count;
        HBP__TRY(hbp__stream_peek(in, 1, &shown, &count));
        if (!count)
            return HBP_OK;
        if (count > most - *bytes)
            return hbp__fail(context, HBP_E_FORMAT, "%s has more than %lld bytes", hbp__stream_name(in),
                             (long long)most);
        if (count > room - *bytes) {
            room = hbp__max_i64(*bytes + count, hbp__max_i64(2 * room, FIRST_ROOM));
            char *larger = hbp__renew(&context->memory, *data, (uint64_t)room, 1);
            if (!larger)
                return hbp__fail_memory(context, "a file");
            *data = larger;
        }
        memcpy(*data + *bytes, shown, (size_t)count);
        *bytes += count;
        hbp__stream_take(in, count);
    }
}

hbp_status hbp__read_file(hbp_context *context, const char *path, int64_t most, char **data, int64_t *bytes)
{
    *data = NULL;
    *bytes = 0;
    hbp__stream *in = NULL;
    HBP__TRY(hbp__stream_open(context, path, &in));
    hbp_status status = hbp__stream_read_all(in, most, data, bytes);
    hbp__stream_close(in);
    if (status >= 0 && !*data) { /* an empty file */
        *data = hbp__new(&context->memory, 1, 1);
        if (!*data)
            status = hbp__fail_memory(context, "a file");
    }
    if (status < 0) {
        hbp__delete(&context->memory, *data);
        *data = NULL;
        *bytes = 0;
    }
    return status;
}
