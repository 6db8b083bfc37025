#include "io/json/trace_out.h"

static void put_place(hbp__trace_out *trace, int64_t rank)
{
    int64_t domain = rank / trace->domain_ranks;
    hbp__json_member(&trace->json, "\"pid\":", trace->kinds ? domain * trace->kinds + trace->kind : domain);
    hbp__json_member(&trace->json, ",\"tid\":", rank);
}

void hbp__trace_record(hbp__trace_out *trace, int64_t rank)
{
    hbp__json_put(&trace->json, ",\n{");
    put_place(trace, rank);
}

/* Names of the processes and threads of one kind. */
static void put_names(hbp__trace_out *trace, int first)
{
    hbp__json_out *json = &trace->json;
    for (int64_t rank = 0; rank < trace->ranks; rank++) {
        if (rank % trace->domain_ranks == 0) {
            hbp__json_put(json, rank || !first ? ",\n{" : "\n{"); /* no comma before the array's first */
            put_place(trace, rank);
            hbp__json_put(json, ",\"ph\":\"M\",\"name\":\"process_name\",\"args\":{\"name\":\"");
            hbp__json_put(json, trace->process ? trace->process : "node");
            hbp__json_member(json, " ", rank / trace->domain_ranks);
            hbp__json_put(json, trace->kinds ? ", " : "");
            hbp__json_put(json, trace->kinds ? trace->names[trace->kind] : "");
            hbp__json_put(json, "\"}}");
        }
        hbp__trace_record(trace, rank);
        hbp__json_put(json, ",\"ph\":\"M\",\"name\":\"thread_name\",\"args\":{\"name\":\"");
        hbp__json_put(json, trace->thread ? trace->thread : "rank");
        hbp__json_member(json, " ", trace->thread ? rank % trace->domain_ranks : rank);
        hbp__json_put(json, "\"}}");
    }
}

void hbp__trace_begin(hbp__trace_out *trace)
{
    hbp__json_put(&trace->json, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    trace->kind = 0;
    put_names(trace, 1);
    for (trace->kind = 1; trace->kind < trace->kinds; trace->kind++)
        put_names(trace, 0);
    trace->kind = 0;
}

void hbp__trace_times(hbp__trace_out *trace, int64_t start_ns, int64_t ns)
{
    hbp__json_put(&trace->json, ",\"ts\":");
    hbp__json_put_us(&trace->json, start_ns);
    hbp__json_put(&trace->json, ",\"dur\":");
    hbp__json_put_us(&trace->json, ns);
}

void hbp__trace_end(hbp__trace_out *trace)
{
    hbp__json_put(&trace->json, "\n]}\n");
}
