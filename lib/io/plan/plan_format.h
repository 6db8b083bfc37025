/* What writer and reader of plan files share (docs: file format). */
#ifndef HBP_IO_PLAN_FORMAT_H
#define HBP_IO_PLAN_FORMAT_H

#include <stdint.h>
#include <string.h>

#include "data/plan/plan_rows.h"

/* The newest version. Version 2 has columns and reasons for dropping that readers of version 1 do not know,
 * version 3 padding that depends on a pack's degree and the pieces of split samples that were dropped,
 * version 4 lockstep sets; a plan without any of it is written as version 1. */
#define HBP__PLAN_FORMAT         "hbp-plan"
#define HBP__PLAN_FORMAT_VERSION 4
int32_t hbp__plan_format_version(const hbp_plan *plan);

/* Under it stands what a plan is the data of, in the header. */
#define HBP__PLAN_VLM_KEY "vlm"

/* The tail: a msgpack bin of 32 bytes. */
#define HBP__PLAN_TAIL_HEAD                                                                                  \
    "\xc4\x20"                                                                                               \
    "HBPE"
#define HBP__PLAN_TAIL_BYTES 34

/* Columns of a chunk stay below it unless a single step is larger, so that one step is read in a fraction of
 * a ms. */
#define HBP__PLAN_CHUNK_BYTES 65536
#define HBP__PLAN_CHUNK_STEPS 256

/* The key of a field: its name, but for those that had another when files were first written. */
static inline const char *hbp__plan_key(const char *name)
{
    if (!strcmp(name, "complete"))
        return "proven";
    return strcmp(name, "padding_packs") ? name : "dummy_packs";
}

/* The header's numbers, each a field of hbp_plan_summary: X(name). `bound_ns` stands there, too, when it is
 * known: files written before there was one are read, and written again byte for byte. From version 2 on, so
 * do `vision` and `modalities` when the plan has their columns, and from version 3 on `dropped_pieces`. */
#define HBP__PLAN_HEADER_FIELDS(X)                                                                           \
    X(digest)                                                                                                \
    X(lengths_digest)                                                                                        \
    X(seed)                                                                                                  \
    X(epoch)                                                                                                 \
    X(ranks)                                                                                                 \
    X(domain_ranks)                                                                                          \
    X(complete)                                                                                              \
    X(first_step)                                                                                            \
    X(steps)                                                                                                 \
    X(micro_batches)                                                                                         \
    X(packs)                                                                                                 \
    X(padding_packs)                                                                                         \
    X(samples)                                                                                               \
    X(dropped)                                                                                               \
    X(tokens)                                                                                                \
    X(padded_tokens)                                                                                         \
    X(loss_tokens)                                                                                           \
    X(sequence_multiple)                                                                                     \
    X(pack_multiple)                                                                                         \
    X(micro_batch_multiple)                                                                                  \
    X(predicted_ns)                                                                                          \
    X(overlong_samples)                                                                                      \
    X(overlong_tokens)

/* Numbers that stand in the header when they are not 0: X(name). */
#define HBP__PLAN_HEADER_OPTIONAL(X)                                                                         \
    X(composition)                                                                                           \
    X(samples_per_step)                                                                                      \
    X(tokens_per_step)                                                                                       \
    X(sequence_multiple_per_sp)                                                                              \
    X(pack_multiple_per_sp)                                                                                  \
    X(hierarchy_ns)                                                                                          \
    X(mixture_ns)                                                                                            \
    X(lockstep_ranks)                                                                                        \
    X(free_bound_ns)                                                                                         \
    X(shifted_loss)                                                                                          \
    X(epoch_steps)

/* Whether two summaries say the same; a struct's padding may differ. */
int hbp__plan_same_summary(const hbp_plan_summary *a, const hbp_plan_summary *b);

/* Rows of each table, named as HBP__PLAN_COLUMNS names them. */
#define HBP__PLAN_TABLES(X)                                                                                  \
    X(steps)                                                                                                 \
    X(micro_batches)                                                                                         \
    X(packs)                                                                                                 \
    X(samples)                                                                                               \
    X(dropped)

enum { HBP__ON_steps, HBP__ON_micro_batches, HBP__ON_packs, HBP__ON_samples, HBP__ON_dropped };

/* Whether a column of `table` (HBP__ON_*) stands in a chunk: chunks hold steps and all below them, or dropped
 * samples. */
int hbp__plan_chunk_has(const hbp__plan_rows *rows, int table);

/* Bytes of a chunk's columns; -1 when a count is negative, so large that no file holds it, or of a table that
 * does not stand in the chunk. */
int64_t hbp__plan_chunk_bytes(const hbp__plan_rows *rows, int32_t optional);

/* A chunk's row of the index; its columns are named after the fields. */
typedef struct hbp__plan_chunk {
    int64_t offset; /* of its object in the file */
    int64_t bytes;
    hbp__plan_rows rows;
} hbp__plan_chunk;

#endif
