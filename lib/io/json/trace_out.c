#include "io/json/trace_out.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/checked.h"
#include "hbp/base.h"

hbp_status hbp__trace_open(hbp_context *context, const char *path, hbp__trace_out *trace)
{
    HBP__TRY(hbp__atomic_open(context, path, &trace->file));
    trace->json.context = context;
    trace->json.file = &trace->file;
    if (hbp__gzip_wanted(path)) {
        hbp_status status = hbp__gzip_open(context, &trace->file, &trace->gzip);
        if (status < 0)
            return hbp__atomic_end(context, &trace->file, status);
        trace->json.gzip = &trace->gzip;
    }
    hbp__json_put(&trace->json,
                  "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"writer\":\"libhbp " HBP_VERSION_STRING "\"");
    return HBP_OK;
}

void hbp__trace_tell_digest(hbp__trace_out *trace, const char *key, uint64_t digest)
{
    char text[64];
    snprintf(text, sizeof text, ",\"%s\":\"%016" PRIx64 "\"", key, digest);
    hbp__json_put(&trace->json, text);
}

hbp_status hbp__trace_close(hbp_context *context, hbp__trace_out *trace, hbp_status status)
{
    if (status == HBP_OK)
        status = trace->json.status;
    if (status == HBP_OK && trace->json.gzip)
        status = hbp__gzip_end(&trace->gzip);
    hbp__gzip_close(&trace->gzip);
    return hbp__atomic_end(context, &trace->file, status);
}

static void put_place(hbp__trace_out *trace, int64_t rank)
{
    const int64_t kinds = hbp__max_i64(trace->kinds, 1);
    int64_t process, thread;
    if (rank == HBP__TRACE_STEPS) { /* behind all ranks, so that those count from 1 */
        process = kinds * trace->ranks;
        thread = process + trace->kind;
    } else {
        process = (int64_t)trace->kind * trace->ranks + rank / trace->domain_ranks * trace->domain_ranks;
        thread = (int64_t)trace->kind * trace->ranks + rank;
    }
    hbp__json_member(&trace->json, "\"pid\":", process + 1);
    hbp__json_member(&trace->json, ",\"tid\":", thread + 1);
}

void hbp__trace_record(hbp__trace_out *trace, int64_t rank)
{
    hbp__json_put(&trace->json, trace->has_records ? ",\n{" : "\n{");
    trace->has_records = 1;
    put_place(trace, rank);
}

/* Opens a record of metadata; the caller writes its one argument and "}}". */
static void begin_name(hbp__trace_out *trace, int64_t rank, const char *what)
{
    hbp__trace_record(trace, rank);
    hbp__json_put(&trace->json, ",\"ph\":\"M\",\"name\":\"");
    hbp__json_put(&trace->json, what);
    hbp__json_put(&trace->json, "\",\"args\":{");
}

static void put_index(hbp__trace_out *trace, int64_t rank, const char *what, int64_t index)
{
    begin_name(trace, rank, what);
    hbp__json_member(&trace->json, "\"sort_index\":", index);
    hbp__json_put(&trace->json, "}}");
}

/* The steps stand first. */
static void put_step_names(hbp__trace_out *trace)
{
    hbp__json_out *json = &trace->json;
    begin_name(trace, HBP__TRACE_STEPS, "process_name");
    hbp__json_put(json, "\"name\":\"steps\"}}");
    put_index(trace, HBP__TRACE_STEPS, "process_sort_index", 0);
    for (trace->kind = 0; trace->kind < hbp__max_i64(trace->kinds, 1); trace->kind++) {
        begin_name(trace, HBP__TRACE_STEPS, "thread_name");
        hbp__json_put(json, "\"name\":\"steps");
        hbp__json_put(json, trace->kinds ? ", " : "");
        hbp__json_put(json, trace->kinds ? trace->names[trace->kind] : "");
        hbp__json_put(json, "\"}}");
        put_index(trace, HBP__TRACE_STEPS, "thread_sort_index", trace->kind);
    }
    trace->kind = 0;
}

static void put_process_name(hbp__trace_out *trace, int64_t rank)
{
    hbp__json_out *json = &trace->json;
    const int64_t domain = rank / trace->domain_ranks;
    begin_name(trace, rank, "process_name");
    hbp__json_put(json, "\"name\":\"");
    hbp__json_put(json, trace->process ? trace->process : "node");
    hbp__json_member(json, " ", domain);
    hbp__json_put(json, trace->kinds ? ", " : "");
    hbp__json_put(json, trace->kinds ? trace->names[trace->kind] : "");
    hbp__json_put(json, "\"}}");
    put_index(trace, rank, "process_sort_index",
              1 + domain * hbp__max_i64(trace->kinds, 1) + trace->kind); /* kinds of a node side by side */
}

static void put_thread_name(hbp__trace_out *trace, int64_t rank)
{
    hbp__json_out *json = &trace->json;
    begin_name(trace, rank, "thread_name");
    hbp__json_put(json, "\"name\":\"");
    if (trace->thread) {
        hbp__json_put(json, trace->thread);
        hbp__json_member(json, " ", rank % trace->domain_ranks);
    } else {
        hbp__json_member(json, "rank ", rank);
        hbp__json_member(json, ", GPU ", rank % trace->domain_ranks);
        hbp__json_member(json, " of node ", rank / trace->domain_ranks);
    }
    hbp__json_put(json, "\"}}");
    put_index(trace, rank, "thread_sort_index", rank);
}

void hbp__trace_begin(hbp__trace_out *trace)
{
    hbp__json_put(&trace->json, "},\"traceEvents\":[");
    trace->has_records = 0;
    if (trace->shows_steps)
        put_step_names(trace);
    for (trace->kind = 0; trace->kind < hbp__max_i64(trace->kinds, 1); trace->kind++)
        for (int64_t rank = 0; rank < trace->ranks; rank++) {
            if (rank % trace->domain_ranks == 0)
                put_process_name(trace, rank);
            put_thread_name(trace, rank);
        }
    trace->kind = 0;
}

void hbp__trace_times(hbp__trace_out *trace, int64_t start_ns, int64_t ns)
{
    hbp__json_put(&trace->json, ",\"ts\":");
    hbp__json_put_us(&trace->json, start_ns);
    hbp__json_put(&trace->json, ",\"dur\":");
    hbp__json_put_us(&trace->json, ns);
}

void hbp__trace_part(hbp__trace_out *trace, int64_t rank, const char *name, int64_t start_ns, int64_t ns)
{
    hbp__trace_record(trace, rank);
    hbp__json_put(&trace->json, ",\"ph\":\"X\",\"cat\":\"part\",\"name\":\"");
    hbp__json_put(&trace->json, name);
    hbp__json_put(&trace->json, "\"");
    hbp__trace_times(trace, start_ns, ns);
    hbp__json_put(&trace->json, "}");
}

void hbp__trace_end(hbp__trace_out *trace)
{
    hbp__json_put(&trace->json, "\n]}\n");
}
