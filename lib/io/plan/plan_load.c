/* Chunks of a plan file into columns: a whole plan, or a few steps of one. */
#include <stdio.h>
#include <string.h>

#include "hbp/io.h"
#include "io/file/zipped.h"
#include "io/msgpack/msgpack_buffer.h"
#include "io/plan/plan_file.h"

/* Objects in a chunk's map and in the map of its columns. */
#define CHUNK_OBJECTS   64
#define COLUMNS_OBJECTS 256

typedef struct loading {
    hbp_context *context;
    const hbp_plan_file *file;
    hbp_plan *plan;
    hbp__plan_rows first; /* rows of the file before the plan's */
    hbp__buffer object;
    hbp__buffer columns;
    hbp__document unpacked;
    hbp__zip zip;
} loading;

static hbp_status fail_chunk(const loading *l, int64_t chunk, const char *what)
{
    return hbp__file_fail(l->context, &l->file->source, l->file->chunk[chunk].offset, what);
}

/* One msgpack object that takes all of `data`, into l->unpacked. */
static hbp_status unpack_chunk(loading *l, int64_t chunk, const uint8_t *data, uint64_t bytes,
                               uint64_t max_objects)
{
    return hbp__file_unpack(l->context, &l->file->source, l->file->chunk[chunk].offset, "the chunk", data,
                            bytes, max_objects, &l->unpacked);
}

/* The chunk's object: what it says of itself must agree with the index; then its columns, in l->columns. */
static hbp_status read_columns(loading *l, int64_t chunk)
{
    const hbp__plan_chunk *row = &l->file->chunk[chunk];
    int64_t columns = hbp__plan_chunk_bytes(&row->rows, l->file->optional), value;
    if (columns > HBP__ZIPPED_MAX_BYTES || row->bytes > 2 * HBP__ZIPPED_MAX_BYTES)
        return fail_chunk(l, chunk, "the chunk is too large");
    hbp__buffer_clear(&l->object);
    uint8_t *object = hbp__buffer_extend(&l->object, (uint64_t)row->bytes);
    if (!object)
        return hbp__fail_memory(l->context, "a chunk of a plan file");
    HBP__TRY(hbp__file_read(l->context, &l->file->source, row->offset, row->bytes, object));
    HBP__TRY(unpack_chunk(l, chunk, object, (uint64_t)row->bytes, CHUNK_OBJECTS));
    const hbp__value *map = l->unpacked.values;
    if (!hbp__unpack_i64(map, "first_step", &value) || value != l->file->start[chunk].steps)
        return fail_chunk(l, chunk, "chunk and index differ in the first step");
#define SAME(table)                                                                                          \
    if (!hbp__unpack_i64(map, #table, &value) || value != row->rows.table)                                   \
        return fail_chunk(l, chunk, "chunk and index differ in the number of " #table);
    HBP__PLAN_TABLES(SAME)
#undef SAME
    HBP__TRY(
        hbp__unzip_entries(&l->zip, &l->file->source, row->offset, "the chunk", map, columns, &l->columns));
    return unpack_chunk(l, chunk, l->columns.data, l->columns.bytes, COLUMNS_OBJECTS);
}

#define unpack_column_int64_t hbp__unpack_column_i64
#define unpack_column_int32_t hbp__unpack_column_i32

/* A chunk's offsets run from 0 to `total`; the plan's go on from `base`. Wrong ones in between wrap and are
 * found by hbp__plan_check. */
static int rebase_offsets(int64_t *offsets, int64_t rows, int64_t total, int64_t base)
{
    if (offsets[0] != 0 || offsets[rows] != total)
        return 0;
    for (int64_t i = 0; i <= rows; i++)
        offsets[i] = (int64_t)((uint64_t)offsets[i] + (uint64_t)base);
    return 1;
}

static hbp_status load_chunk(loading *l, int64_t chunk)
{
    HBP__TRY(read_columns(l, chunk));
    const hbp__plan_rows *rows = &l->file->chunk[chunk].rows, *start = &l->file->start[chunk];
    const hbp__value *map = l->unpacked.values;
    hbp_plan *plan = l->plan;
#define FILL(name, type, table, extra)                                                                       \
    if (plan->name && hbp__plan_chunk_has(rows, HBP__ON_##table) &&                                          \
        !unpack_column_##type(map, #name, rows->table + (extra),                                             \
                              plan->name + (start->table - l->first.table)))                                 \
        return fail_chunk(l, chunk, "the chunk lacks the column '" #name "'");
    HBP__PLAN_COLUMNS(FILL)
#undef FILL
    if (!rows->steps)
        return HBP_OK;
    int64_t step = start->steps - l->first.steps, micro_batch = start->micro_batches - l->first.micro_batches;
    int64_t pack = start->packs - l->first.packs, sample = start->samples - l->first.samples;
    if (!rebase_offsets(plan->step_offsets + step, rows->steps, rows->micro_batches, micro_batch) ||
        !rebase_offsets(plan->micro_batch_offsets + micro_batch, rows->micro_batches, rows->packs, pack) ||
        !rebase_offsets(plan->pack_offsets + pack, rows->packs, rows->samples, sample))
        return fail_chunk(l, chunk, "the chunk's offsets do not span its rows");
    return HBP_OK;
}

static void set_fields(hbp_plan *plan, const hbp_plan_summary *summary, int64_t first_step)
{
    plan->ranks = summary->ranks;
    plan->domain_ranks = summary->domain_ranks;
    plan->complete = summary->complete;
    plan->sequence_multiple = summary->sequence_multiple;
    plan->pack_multiple = summary->pack_multiple;
    plan->micro_batch_multiple = summary->micro_batch_multiple;
    plan->sequence_multiple_per_sp = summary->sequence_multiple_per_sp;
    plan->pack_multiple_per_sp = summary->pack_multiple_per_sp;
    plan->lockstep_ranks = summary->lockstep_ranks;
    plan->shifted_loss = summary->shifted_loss;
    plan->composition = summary->composition;
    plan->epoch_steps =
        hbp__plan_epoch_steps(summary->epoch_steps, summary->first_step, summary->steps, plan->steps);
    plan->samples_per_step = summary->samples_per_step;
    plan->tokens_per_step = summary->tokens_per_step;
    plan->first_step = (int64_t)((uint64_t)summary->first_step + (uint64_t)first_step);
    plan->overlong_samples = summary->overlong_samples;
    plan->overlong_tokens = summary->overlong_tokens;
    plan->seed = summary->seed;
    plan->epoch = summary->epoch;
    plan->lengths_digest = summary->lengths_digest;
}

/* hbp__plan_check, its breach told as the file's fault. */
static hbp_status check_columns(hbp_context *context, const hbp_plan_file *file, const hbp_plan *plan,
                                int64_t offset)
{
    hbp_status status = hbp__plan_check(context, plan);
    if (status != HBP_E_INVALID)
        return status;
    char breach[256];
    snprintf(breach, sizeof breach, "%s", hbp_context_message(context));
    return hbp__file_fail(context, &file->source, offset, breach);
}

/* Chunks [first, end) as a plan, checked but not sealed. */
static hbp_status load_chunks(hbp_context *context, const hbp_plan_file *file, int64_t first, int64_t end,
                              hbp_plan **out)
{
    const hbp__plan_rows *from = &file->start[first], *to = &file->start[end];
    loading l = {.context = context, .file = file, .first = *from, .zip.context = context};
    l.plan = hbp__plan_new(&context->memory, to->steps - from->steps, to->micro_batches - from->micro_batches,
                           to->packs - from->packs, to->samples - from->samples, to->dropped - from->dropped,
                           file->optional);
    if (!l.plan)
        return hbp__fail_memory(context, "the plan");
    l.object.memory = l.columns.memory = l.unpacked.memory = context->memory;
    set_fields(l.plan, &file->summary, from->steps);
    if (end - first == file->chunks) {
        l.plan->bound_ns = file->summary.bound_ns;
        l.plan->free_bound_ns = file->summary.free_bound_ns;
        l.plan->hierarchy_ns = file->summary.hierarchy_ns;
        l.plan->mixture_ns = file->summary.mixture_ns;
    }
    hbp_status status = HBP_OK;
    for (int64_t chunk = first; chunk < end && status == HBP_OK; chunk++) {
        status = hbp__tick(context, "load", chunk - first, end - first);
        if (status == HBP_OK)
            status = load_chunk(&l, chunk);
    }
    hbp__document_free(&l.unpacked);
    hbp__zip_close(&l.zip);
    hbp__buffer_free(&l.object);
    hbp__buffer_free(&l.columns);
    if (status == HBP_OK)
        status = check_columns(context, file, l.plan, file->chunk[first].offset);
    if (status == HBP_OK)
        *out = l.plan;
    else
        hbp_plan_free(l.plan);
    return status;
}

hbp_status hbp__plan_file_load(hbp_context *context, const hbp_plan_file *file, hbp_plan **out)
{
    hbp_plan *plan = NULL;
    hbp_plan_summary summary;
    if (!file->chunks)
        return hbp__file_fail(context, &file->source, 0, "the plan has no steps");
    HBP__TRY(load_chunks(context, file, 0, file->chunks, &plan));
    hbp_status status = hbp__plan_seal_long(context, plan);
    hbp__plan_summarise(plan, &summary);
    if (status >= 0 && summary.digest != file->summary.digest)
        status = hbp__file_fail(context, &file->source, 0, "the header's digest is not that of the columns");
    else if (status >= 0 && !hbp__plan_same_summary(&summary, &file->summary))
        status = hbp__file_fail(context, &file->source, 0, "the header's sums are not those of the columns");
    if (status == HBP_OK)
        *out = plan;
    else
        hbp_plan_free(plan);
    return status;
}

hbp_status hbp_plan_load(hbp_context *context, const char *path, hbp_plan **out)
{
    if (out)
        *out = NULL;
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, path, "path"));
    HBP__TRY(hbp__require(context, out, "out"));
    hbp_plan_file *file;
    HBP__TRY(hbp__plan_file_open(context, path, &file));
    hbp_status status = hbp__plan_file_load(context, file, out);
    hbp_plan_file_free(file);
    return status;
}

/* The chunk that holds `step`. O(log chunks). */
static int64_t chunk_of(const hbp_plan_file *file, int64_t step)
{
    int64_t low = 0, high = file->chunks;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (file->start[middle].steps <= step)
            low = middle;
        else
            high = middle;
    }
    return low;
}

hbp_status hbp_plan_file_read(hbp_context *context, hbp_plan_file *file, int64_t first, int64_t count,
                              hbp_plan **out)
{
    if (out)
        *out = NULL;
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, file, "file"));
    HBP__TRY(hbp__require(context, out, "out"));
    int64_t steps = file->summary.steps;
    if (first < 0 || count < 1 || first >= steps || count > steps - first)
        return hbp__fail(context, HBP_E_INVALID, "%lld steps from step %lld; the plan has %lld",
                         (long long)count, (long long)first, (long long)steps);
    int64_t chunk = chunk_of(file, first), end = chunk_of(file, first + count - 1) + 1;
    hbp_plan *whole = NULL;
    HBP__TRY(load_chunks(context, file, chunk, end, &whole));
    hbp_status status = hbp__plan_slice(context, whole, first - file->start[chunk].steps, count, out);
    hbp_plan_free(whole);
    return status;
}
