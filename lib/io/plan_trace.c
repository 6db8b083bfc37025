/* A plan as a Chrome trace: a process for each domain, a thread for each rank, an event for each pack on each
 * of its ranks, a counter of each rank's predicted memory. Times are the predicted ones, from 0 at the first
 * step. */
#include "base/checked.h"
#include "data/plan.h"
#include "hbp/plan_file.h"
#include "io/json_out.h"

typedef struct tracing {
    const hbp_plan *plan;
    hbp__json_out out;
    int64_t now;    /* ns */
    int64_t *bytes; /* [ranks] last value of each counter */
} tracing;

static void write_place(tracing *t, int64_t rank)
{
    hbp__json_member(&t->out, "\"pid\":", rank / t->plan->domain_ranks);
    hbp__json_member(&t->out, ",\"tid\":", rank);
}

/* Names of processes and threads; the first line of the array has no comma before it. */
static void write_names(tracing *t)
{
    const hbp_plan *plan = t->plan;
    for (int64_t rank = 0; rank < plan->ranks; rank++) {
        if (rank % plan->domain_ranks == 0) {
            hbp__json_put(&t->out, rank ? ",\n{" : "\n{");
            write_place(t, rank);
            hbp__json_member(&t->out, ",\"ph\":\"M\",\"name\":\"process_name\",\"args\":{\"name\":\"node ",
                             rank / plan->domain_ranks);
            hbp__json_put(&t->out, "\"}}");
        }
        hbp__json_put(&t->out, ",\n{");
        write_place(t, rank);
        hbp__json_member(&t->out, ",\"ph\":\"M\",\"name\":\"thread_name\",\"args\":{\"name\":\"rank ", rank);
        hbp__json_put(&t->out, "\"}}");
    }
}

static void write_memory(tracing *t, int64_t rank, int64_t bytes)
{
    if (t->bytes[rank] == bytes)
        return;
    t->bytes[rank] = bytes;
    hbp__json_put(&t->out, ",\n{");
    write_place(t, rank);
    hbp__json_member(&t->out, ",\"ph\":\"C\",\"name\":\"memory of rank ", rank);
    hbp__json_put(&t->out, "\",\"ts\":");
    hbp__json_put_us(&t->out, t->now);
    hbp__json_member(&t->out, ",\"args\":{\"bytes\":", bytes);
    hbp__json_put(&t->out, "}}");
}

static void write_event(tracing *t, int64_t step, int64_t micro_batch, int64_t pack, int64_t rank)
{
    const hbp_plan *plan = t->plan;
    int64_t samples = plan->pack_offsets[pack + 1] - plan->pack_offsets[pack];
    hbp__json_put(&t->out, ",\n{");
    write_place(t, rank);
    hbp__json_put(&t->out, ",\"ph\":\"X\",\"name\":\"");
    if (samples)
        hbp__json_member(&t->out, "SP ", plan->pack_sp[pack]);
    hbp__json_put(&t->out, samples ? "\",\"cat\":\"pack\",\"ts\":" : "dummy\",\"cat\":\"dummy\",\"ts\":");
    hbp__json_put_us(&t->out, t->now);
    hbp__json_put(&t->out, ",\"dur\":");
    hbp__json_put_us(&t->out, plan->pack_ns[pack]);
    hbp__json_member(&t->out, ",\"args\":{\"step\":", plan->first_step + step);
    hbp__json_member(&t->out, ",\"micro_batch\":", micro_batch);
    hbp__json_member(&t->out, ",\"pack\":", pack);
    hbp__json_member(&t->out, ",\"sp\":", plan->pack_sp[pack]);
    hbp__json_member(&t->out, ",\"recompute\":", plan->pack_recompute[pack]);
    hbp__json_member(&t->out, ",\"tokens\":", plan->pack_tokens[pack]);
    hbp__json_member(&t->out, ",\"padded_tokens\":", plan->pack_padded_tokens[pack]);
    hbp__json_member(&t->out, ",\"squares\":", plan->pack_squares[pack]);
    if (plan->pack_vision)
        hbp__json_member(&t->out, ",\"vision\":", plan->pack_vision[pack]);
    hbp__json_member(&t->out, ",\"samples\":", samples);
    hbp__json_put(&t->out, "}}");
    write_memory(t, rank, plan->pack_bytes[pack]);
}

/* Time later by `ns`; past the end of time, time stands still. */
static int64_t later(int64_t now, int64_t ns)
{
    int64_t sum;
    return hbp__add_i64(now, ns, &sum) ? sum : INT64_MAX;
}

static void write_step(tracing *t, int64_t step)
{
    const hbp_plan *plan = t->plan;
    int64_t begin = t->now, first = plan->step_offsets[step];
    for (int64_t m = first; m < plan->step_offsets[step + 1]; m++) {
        for (int64_t p = plan->micro_batch_offsets[m]; p < plan->micro_batch_offsets[m + 1]; p++)
            for (int32_t i = 0; i < plan->pack_sp[p]; i++)
                write_event(t, step, m - first, p, plan->pack_ranks[p] + i);
        t->now = later(t->now, plan->micro_batch_ns[m]);
    }
    t->now = hbp__max_i64(t->now, later(begin, plan->step_ns[step]));
}

static hbp_status write_trace(hbp_context *context, tracing *t, int64_t first, int64_t end)
{
    t->bytes = hbp__new(&context->memory, (uint64_t)t->plan->ranks, sizeof *t->bytes);
    if (!t->bytes)
        return hbp__fail_memory(context, "the trace");
    for (int32_t rank = 0; rank < t->plan->ranks; rank++)
        t->bytes[rank] = -1;
    hbp__json_put(&t->out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    write_names(t);
    for (int64_t step = first; step < end && t->out.status == HBP_OK; step++) {
        HBP__TRY(hbp__tick(context, "trace", step - first, end - first));
        write_step(t, step);
    }
    hbp__json_put(&t->out, "\n]}\n");
    return t->out.status;
}

hbp_status hbp_plan_write_trace(hbp_context *context, const hbp_plan *plan, int64_t first, int64_t count,
                                const char *path)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, plan, "plan"));
    HBP__TRY(hbp__require(context, path, "path"));
    if (first < 0 || first >= plan->steps || count < 0 || count > plan->steps - first)
        return hbp__fail(context, HBP_E_INVALID, "%lld steps from step %lld; the plan has %lld",
                         (long long)count, (long long)first, (long long)plan->steps);
    hbp__atomic_file file;
    HBP__TRY(hbp__atomic_open(context, path, &file));
    tracing t = {.plan = plan, .out = {context, &file, HBP_OK}};
    hbp_status status = write_trace(context, &t, first, count ? first + count : plan->steps);
    hbp__delete(&context->memory, t.bytes);
    if (status == HBP_OK)
        return hbp__atomic_commit(context, &file);
    hbp__atomic_discard(&file);
    return status;
}
