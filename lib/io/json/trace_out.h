/* What Chrome traces of any kind share: the file, a process for each node, a thread for each rank, and before
 * them, where it is asked for, a process whose threads show the steps. A trace may have several kinds of
 * event, such as predicted and measured ones: then a process for each node and kind.
 *
 * No id is 0, which to Perfetto is the idle process. All threads have ids of their own, and a process has
 * that of its first thread, as under Linux: readers that look a thread up by its id alone find the right one.
 */
#ifndef HBP_IO_TRACE_OUT_H
#define HBP_IO_TRACE_OUT_H

#include <stdint.h>

#include "io/json/json_out.h"

/* The row of steps, where a rank is asked for. */
#define HBP__TRACE_STEPS INT64_C(-1)

typedef struct hbp__trace_out {
    hbp__json_out json;
    hbp__atomic_file file;
    hbp__gzip_out gzip;
    int32_t ranks;
    int32_t domain_ranks;
    int32_t kinds;            /* 0: events are of one kind, which needs no name */
    const char *const *names; /* [kinds] */
    int32_t kind;             /* of the records to come */
    int shows_steps;          /* there is a process of steps */
    int has_records;          /* the next one stands after a comma */
    const char *process;      /* what a domain is called: NULL: "node" */
    const char *thread;       /* what its rows are, counted in each domain; NULL: "rank", counted in all */
} hbp__trace_out;

/* Opens the file, gzipped where `path` ends in ".gz", and begins its metadata, "otherData": the caller writes
 * members, each after a comma. The trace stays where it is until hbp__trace_close. */
hbp_status hbp__trace_open(hbp_context *context, const char *path, hbp__trace_out *trace);

/* A member of the metadata: which object the trace is of. */
void hbp__trace_tell_digest(hbp__trace_out *trace, const char *key, uint64_t digest);

/* Ends the metadata; the names of processes and threads. */
void hbp__trace_begin(hbp__trace_out *trace);

/* Opens a record in the row of `rank`, or of the steps; the caller writes its members, each after a comma,
 * and
 * "}". */
void hbp__trace_record(hbp__trace_out *trace, int64_t rank);

/* Members "ts" and "dur" from times >= 0 in ns. */
void hbp__trace_times(hbp__trace_out *trace, int64_t start_ns, int64_t ns);

/* A whole record in the row of `rank`, without arguments: a part of the event that was written before it. */
void hbp__trace_part(hbp__trace_out *trace, int64_t rank, const char *name, int64_t start_ns, int64_t ns);

/* Ends the trace. */
void hbp__trace_end(hbp__trace_out *trace);

/* What ends every writer: the file is there, whole, where `status` and all that was written are well, else it
 * is not, and the first failure is returned. */
hbp_status hbp__trace_close(hbp_context *context, hbp__trace_out *trace, hbp_status status);

#endif
