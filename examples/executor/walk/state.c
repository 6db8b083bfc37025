#include "walk/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "walk/output.h"

/* Floats copied at once between device and file. */
enum { PIECE = 1 << 18 };

typedef struct header {
    char magic[8];
    uint32_t version;
    uint32_t bytes; /* of this struct */
    ex_shape shape;
    int64_t elements;
    int64_t updates;
    uint64_t seed;
    int32_t normaliser;
    int32_t type;
    uint8_t cursor[HBP_CURSOR_BYTES];
} header;

static const char MAGIC[8] = "HBPSTATE";
enum { VERSION = 1 };

static void fill_header(header *h, const ex_parameters *p, const ex_run_state *run)
{
    memset(h, 0, sizeof *h); /* padding too: it is written */
    memcpy(h->magic, MAGIC, sizeof MAGIC);
    h->version = VERSION;
    h->bytes = sizeof *h;
    h->shape = p->shape;
    h->elements = p->elements;
    h->updates = run->updates;
    h->seed = run->seed;
    h->normaliser = run->normaliser;
    h->type = p->device->type;
}

static int write_floats(FILE *file, ex_device *device, const float *from, int64_t count, float *piece,
                        uLong *crc)
{
    for (int64_t at = 0; at < count; at += PIECE) {
        int64_t now = count - at < PIECE ? count - at : PIECE;
        device->ops->copy_out(device, piece, from + at, now * 4);
        if (device->fault.failed || fwrite(piece, 4, (size_t)now, file) != (size_t)now)
            return -1;
        *crc = crc32(*crc, (const Bytef *)piece, (uInt)(now * 4));
    }
    return 0;
}

static int write_state(FILE *file, const header *h, const ex_parameters *p)
{
    float *piece = malloc(PIECE * sizeof *piece);
    uLong crc = crc32(0, (const Bytef *)h, sizeof *h);
    int failed = !piece || fwrite(h, sizeof *h, 1, file) != 1;
    const float *parts[3] = {p->master, p->mean, p->variance};
    for (int i = 0; i < 3 && !failed; i++)
        failed = write_floats(file, p->device, parts[i], p->elements, piece, &crc) < 0;
    uint32_t check = (uint32_t)crc;
    failed =
        failed || fwrite(&check, sizeof check, 1, file) != 1 || fflush(file) != 0 || fsync(fileno(file)) != 0;
    free(piece);
    return failed ? -1 : 0;
}

int ex_state_save(const char *path, hbp_context *context, const hbp_plan *plan, const ex_run_state *run,
                  const ex_parameters *parameters, ex_fault *fault)
{
    header h;
    fill_header(&h, parameters, run);
    struct stat there;
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) /* a renamed file would take its place */
        return ex_fail(fault, "cannot write %s: %s", path,
                       S_ISDIR(there.st_mode) ? strerror(EISDIR) : "not a regular file");
    if (hbp_plan_save_cursor(context, plan, run->step, h.cursor) < 0)
        return ex_fail(fault, "%s", hbp_context_message(context));
    char temporary[4096];
    int length = snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid());
    if (length < 0 || length >= (int)sizeof temporary)
        return ex_fail(fault, "the path of the state is longer than %d bytes", (int)sizeof temporary - 32);
    FILE *file = fopen(temporary, "wb");
    if (!file)
        return ex_fail(fault, "cannot write %s: %s", temporary, strerror(errno));
    errno = 0;
    int failed = write_state(file, &h, parameters);
    int reason = errno;
    if (fclose(file) != 0 && !failed) {
        failed = -1;
        reason = errno;
    }
    if (!failed && rename(temporary, path) != 0) {
        failed = -1;
        reason = errno;
    }
    if (!failed)
        return 0;
    remove(temporary);
    if (parameters->device->fault.failed)
        return ex_fail(fault, "%s", parameters->device->fault.text);
    return ex_fail(fault, "cannot write %s: %s", path, strerror(reason ? reason : ENOSPC));
}

static int read_floats(FILE *file, ex_device *device, float *to, int64_t count, float *piece, uLong *crc)
{
    for (int64_t at = 0; at < count; at += PIECE) {
        int64_t now = count - at < PIECE ? count - at : PIECE;
        if (fread(piece, 4, (size_t)now, file) != (size_t)now)
            return -1;
        *crc = crc32(*crc, (const Bytef *)piece, (uInt)(now * 4));
        if (to)
            device->ops->copy_in(device, to + at, piece, now * 4);
    }
    return 0;
}

/* Reads the three arrays; `check`: only their CRC, nothing is changed. */
static int read_arrays(FILE *file, const header *h, ex_parameters *p, int check, uint32_t *crc_out)
{
    float *piece = malloc(PIECE * sizeof *piece);
    if (!piece || fseek(file, (long)sizeof *h, SEEK_SET) != 0) {
        free(piece);
        return -1;
    }
    uLong crc = crc32(0, (const Bytef *)h, sizeof *h);
    float *parts[3] = {p->master, p->mean, p->variance};
    int failed = 0;
    for (int i = 0; i < 3 && !failed; i++)
        failed = read_floats(file, p->device, check ? NULL : parts[i], h->elements, piece, &crc);
    uint32_t kept;
    failed = failed || fread(&kept, sizeof kept, 1, file) != 1 || kept != (uint32_t)crc || fgetc(file) != EOF;
    *crc_out = (uint32_t)crc;
    free(piece);
    return failed ? -1 : 0;
}

enum { SHAPE_TEXT = 200 };

static void describe_shape(const ex_shape *s, char *text)
{
    snprintf(text, SHAPE_TEXT,
             "%d layers, hidden %d, ffn %d, %d heads and %d key-value heads of %d, vocabulary %d%s%s",
             (int)s->layers, (int)s->hidden, (int)s->ffn, (int)s->heads, (int)s->kv_heads, (int)s->head_dim,
             (int)s->vocab, s->tied_embeddings ? ", tied embeddings" : "", s->qkv_bias ? ", biases" : "");
}

static int load(FILE *file, const char *path, hbp_context *context, const hbp_plan *plan, ex_run_state *run,
                ex_parameters *p, ex_fault *fault)
{
    header own, h;
    fill_header(&own, p, run);
    if (fread(&h, sizeof h, 1, file) != 1 || memcmp(h.magic, MAGIC, sizeof MAGIC) != 0 || h.bytes != sizeof h)
        return ex_fail(fault, "%s: not a saved state of the executor", path);
    if (h.version != VERSION)
        return ex_fail(fault, "%s: state version %u; %d is known", path, (unsigned)h.version, (int)VERSION);
    if (memcmp(&h.shape, &own.shape, sizeof h.shape) != 0 || h.elements != own.elements) {
        char theirs[SHAPE_TEXT], ours[SHAPE_TEXT];
        describe_shape(&h.shape, theirs);
        describe_shape(&own.shape, ours);
        return ex_fail(fault, "%s is of a model of %s; this one has %s", path, theirs, ours);
    }
    if (h.seed != run->seed)
        return ex_fail(fault, "%s is of a run with --seed %llu; this one has %llu", path,
                       (unsigned long long)h.seed, (unsigned long long)run->seed);
    if (h.normaliser != run->normaliser || h.type != own.type)
        return ex_fail(fault, "%s is of a run with another %s", path,
                       h.type != own.type ? "--type" : "--loss");
    int64_t at;
    if (hbp_plan_load_cursor(context, plan, h.cursor, &at) < 0)
        return ex_fail(fault, "%s: %s", path, hbp_context_message(context));
    if (read_arrays(file, &h, p, 1, &run->crc) < 0)
        return ex_fail(fault, "%s is damaged: its checksum or size is wrong", path);
    if (read_arrays(file, &h, p, 0, &run->crc) < 0)
        return ex_fail(fault, "%s changed while it was read", path);
    p->device->ops->cast(p->device, p->master, p->weights, p->elements);
    if (ex_device_sync(p->device) < 0)
        return ex_fail(fault, "%s", p->device->fault.text);
    run->step = at;
    run->updates = h.updates;
    return 0;
}

int ex_state_load(const char *path, hbp_context *context, const hbp_plan *plan, ex_run_state *run,
                  ex_parameters *parameters, ex_fault *fault)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return ex_fail(fault, "cannot open %s: %s", path, strerror(errno));
    int failed = load(file, path, context, plan, run, parameters, fault);
    fclose(file);
    return failed;
}

static int write_npy(const char *path, const ex_tensor *t, const float *values)
{
    /* Format 1.0: magic, length, a Python dict padded so that the data begin at a multiple of 64. */
    char head[128];
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    int length = snprintf(head + 10, sizeof head - 10,
                          "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld, %lld), }",
                          (long long)t->rows, (long long)t->columns);
    head[10 + length] = ' ';
    head[sizeof head - 1] = '\n';
    FILE *file = fopen(path, "wb");
    if (!file)
        return -1;
    size_t count = (size_t)(t->rows * t->columns);
    int failed = fwrite(head, sizeof head, 1, file) != 1 || fwrite(values, 4, count, file) != count;
    return (fclose(file) != 0) | failed ? -1 : 0;
}

int ex_state_write_gradients(const char *folder, const ex_parameters *p, ex_fault *fault)
{
    if (ex_output_make_folder(folder, fault) < 0)
        return -1;
    float *values = malloc((size_t)p->elements * sizeof *values);
    if (!values)
        return ex_fail(fault, "no memory for %lld gradients", (long long)p->elements);
    p->device->ops->copy_out(p->device, values, p->gradients, p->elements * 4);
    int failed = ex_device_sync(p->device) < 0 ? ex_fail(fault, "%s", p->device->fault.text) : 0;
    for (int64_t i = 0; i < p->count && !failed; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s.npy", folder, p->tensors[i].name);
        if (write_npy(path, &p->tensors[i], values + p->tensors[i].offset) < 0)
            failed = ex_fail(fault, "cannot write %s: %s", path, strerror(errno));
    }
    free(values);
    return failed;
}
