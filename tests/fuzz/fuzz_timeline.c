/* Reads any bytes as a timeline; what comes out must hold together. */
#include "fuzz.h"
#include "io/plan/timeline_file.h"

static void check_whole(const hbp_timeline *t)
{
    int64_t real = 0;
    CHECK(t->count > 0 && t->ranks > 0);
    for (int64_t i = 0; i < t->count; i++) {
        CHECK(t->step[i] >= 0 && t->micro_batch[i] >= 0 && t->recompute[i] >= 0);
        CHECK(t->sp[i] >= 1 && t->first_rank[i] >= 0 && t->sp[i] <= t->ranks - t->first_rank[i]);
        CHECK(t->tokens[i] >= 0 && t->sum_squares[i] >= 0 && t->time_ns[i] >= 0);
        CHECK(t->sum_squares[i] <= t->tokens[i] * t->tokens[i]);
        CHECK(!t->start_ns || (t->start_ns[i] >= 0 && t->start_ns[i] <= INT64_MAX - t->time_ns[i]));
        CHECK(!t->communication_ns ||
              (t->communication_ns[i] >= 0 && t->communication_ns[i] <= t->time_ns[i]));
        real += !hbp__timeline_is_padding(t, i);
    }
    const hbp_measurements *m = &t->measured;
    CHECK(m->count == real);
    for (int64_t i = 0; i < m->count; i++)
        CHECK(m->tokens[i] >= 1 && m->sum_squares[i] >= 1 && m->time_ns[i] >= 1 &&
              (!m->peak_bytes || m->peak_bytes[i] >= 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hbp_context *context;
    CHECK(hbp_context_create(NULL, &context) == HBP_OK);
    hbp__stream *in;
    hbp_timeline *timeline = NULL;
    if (hbp__stream_open_memory(context, "fuzz", data, (int64_t)size, &in) >= 0) {
        hbp_status status = hbp__timeline_load_stream(context, in, &timeline);
        hbp__stream_close(in);
        CHECK((status >= 0) == (timeline != NULL));
        CHECK(status != HBP_E_INTERNAL && (status >= 0 || hbp_context_message(context)[0]));
        if (timeline)
            check_whole(timeline);
    }
    hbp_timeline_free(timeline);
    hbp_context_free(context);
    return 0;
}
