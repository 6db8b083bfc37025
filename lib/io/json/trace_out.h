/* What Chrome traces of any kind share: a process for each NVLink domain, a thread for each rank. A trace may
 * have several kinds of event, such as predicted and measured ones: then a process for each domain and kind.
 */
#ifndef HBP_IO_TRACE_OUT_H
#define HBP_IO_TRACE_OUT_H

#include <stdint.h>

#include "io/json/json_out.h"

typedef struct hbp__trace_out {
    hbp__json_out json;
    int32_t ranks;
    int32_t domain_ranks;
    int32_t kinds;            /* 0: events are of one kind, which needs no name */
    const char *const *names; /* [kinds] */
    int32_t kind;             /* of the records to come */
    const char *process;      /* what a domain is called: NULL: "node" */
    const char *thread;       /* what its rows are, counted in each domain; NULL: "rank", counted in all */
} hbp__trace_out;

/* The beginning of the file, and the names of processes and threads. */
void hbp__trace_begin(hbp__trace_out *trace);

/* Opens a record in the row of `rank`; the caller writes its members, each after a comma, and "}". */
void hbp__trace_record(hbp__trace_out *trace, int64_t rank);

/* Members "ts" and "dur" from times >= 0 in ns. */
void hbp__trace_times(hbp__trace_out *trace, int64_t start_ns, int64_t ns);

void hbp__trace_end(hbp__trace_out *trace);

#endif
