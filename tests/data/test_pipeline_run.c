/* What the inside of a pipeline's run promises: every breach is named, and what was not broken passes. */
#include "data/pipeline/pipeline_run.h"

#include <math.h>

#include "keep.h"
#include "simulate/pipelines.h"

/* A run of two stages of two chunks and four micro-batches, a forward 2 and a backward 3. */
static hbp_pipeline_run *run_of(hbp_context *context)
{
    piped p;
    hbp_pipeline_run *run = NULL;
    piped_plain(context, &p, 2, 2, 4, (int64_t[]){2, 2, 2, 2}, (int64_t[]){3, 3, 3, 3});
    MAKES(context, run, hbp_simulate_pipeline(context, p.layers, p.cuts, &p.options, NULL, &run));
    piped_free(&p);
    return run;
}

#define EXPECT(change, undo, text)                                                                           \
    do {                                                                                                     \
        change;                                                                                              \
        FAILS(context, HBP_E_INVALID, text, hbp_pipeline_run_validate(context, r, NULL, NULL, NULL));        \
        undo;                                                                                                \
        OK(context, hbp_pipeline_run_validate(context, r, NULL, NULL, NULL));                                \
    } while (0)

/* A cell or number `what` more. */
#define MORE(field, what, text)                                                                              \
    do {                                                                                                     \
        const int32_t more = (int32_t)(what);                                                                \
        EXPECT(r->field += more, r->field -= more, text);                                                    \
    } while (0)

START_TEST_IN_CONTEXT(every_breach_is_named)
{
    hbp_pipeline_run *r = run_of(context);
    const int64_t last = r->operations / 2 - 1;
    ck_assert_int_eq(r->operations, 32);
    ck_assert_int_eq(r->operation_directions[last], HBP_BACKWARD);
    MORE(summary.stages, -2, "`stages` is 0; it must be in 1..2147483647");
    MORE(summary.virtual_stages, -2, "`virtual_stages` is 0; it must be in 1..2147483647");
    MORE(summary.micro_batches, -4, "`micro_batches` is 0; it must be in 1..2147483647");
    MORE(summary.micro_batches, 1, "operations is 32; each of 4 chunks has 2 for each of 5 micro-batches");
    MORE(summary.stages, INT32_MAX - 2, "operations is 32; each of 4294967294 chunks");
    MORE(summary.operations, 1, "operations is 33; each of 4 chunks has 2 for each of 4");
    MORE(operation_stages[3], 1, "operation_stages of operation 3 is 1; it must be in 0..0");
    MORE(operation_chunks[0], 4, "operation_chunks of operation 0 is 4; it must be in 0..3");
    MORE(operation_chunks[0], -1, "operation_chunks of operation 0 is -1; it must be in 0..3");
    MORE(operation_chunks[0], 1, "operation_chunks of operation 0 is 1, a chunk of stage 1 and not 0");
    MORE(operation_micro_batches[0], 4, "operation_micro_batches of operation 0 is 4; it must be in 0..3");
    MORE(operation_micro_batches[0], -1, "operation_micro_batches of operation 0 is -1;");
    MORE(operation_directions[0], 2, "operation_directions of operation 0 is 2; it must be in 0..1");
    MORE(operation_directions[last], -2, "operation_directions of operation 15 is -1;");
    MORE(operation_micro_batches[1], -1, "operation 1 is operation 0 once more");
    MORE(operation_starts[0], -1, "operation_starts of operation 0 is -1; it must be in 0..");
    MORE(operation_starts[1], -1, "operation_starts of operation 1 is 1; it must be in 2..");
    MORE(operation_ends[last], -4, "operation_ends of operation 15 is");
    MORE(operation_starts[16], -1, "operation 16 starts at 1; operation 0, which it needs, ends at 2");
    MORE(summary.total_ns, 1, "total_ns is");
    MORE(stage_busy_ns[1], -1, "stage_busy_ns of stage 1 is 39; it must be in 40..");
    MORE(stage_busy_ns[0], r->summary.total_ns, "stage_busy_ns of stage 0 is");
    MORE(stage_bytes[1], -1, "stage_bytes of stage 1 is -1");
    MORE(summary.bound_ns, -r->summary.bound_ns - 1, "bound_ns is -1; it must be in 0..");
    MORE(summary.bound_ns, r->summary.total_ns, "bound_ns is");
    MORE(summary.peak_bytes, 1, "peak_bytes is 1; the fullest stage takes 0");
    EXPECT(r->summary.bubble += .25, r->summary.bubble -= .25, "bubble is");
    double bubble = r->summary.bubble;
    EXPECT(r->summary.bubble = NAN, r->summary.bubble = bubble, "bubble is nan; the stages make it");
    EXPECT(r->summary.digest++, r->summary.digest--, "the digest is not that of the operations");
    MORE(operation_starts[last], 1, "the digest is not"); /* a shorter last operation could be */
}
END_TEST

/* Its inputs: a forward needs the chunk before, a backward the one behind, the last one its own forward. */
START_TEST_IN_CONTEXT(inputs_come_first)
{
    hbp_pipeline_run *r = run_of(context);
    int found[3] = {0};
    for (int64_t i = 0; i < r->operations; i++) {
        const int64_t start = r->operation_starts[i], end = r->operation_ends[i];
        const int64_t free_at = i % 16 ? r->operation_ends[i - 1] : 0;
        const int kind = r->operation_directions[i] == HBP_FORWARD ? 0 : r->operation_chunks[i] == 3 ? 1 : 2;
        if (start == free_at || (kind == 0 && r->operation_chunks[i] == 0))
            continue;
        EXPECT((r->operation_starts[i] = free_at, r->operation_ends[i] = free_at + end - start),
               (r->operation_starts[i] = start, r->operation_ends[i] = end), "which it needs, ends at");
        found[kind]++;
    }
    ck_assert(found[0] > 0 && found[2] > 0);
}
END_TEST

START_TEST_IN_CONTEXT(what_was_made_passes)
{
    hbp__rng rng = hbp__rng_make(11, 0, 0);
    for (int trial = 0, mark = keep_mark(); trial < 200; keep_release(mark), trial++) {
        int32_t stages, virtual_stages, m;
        draw_shape(&rng, 6, 3, 3, &stages, &virtual_stages, &m);
        piped p;
        hbp_pipeline_run *run, *again;
        piped_random(context, &rng, &p, stages, virtual_stages, m, PIPED_ALL);
        MAKES(context, run, hbp_simulate_pipeline(context, p.layers, p.cuts, &p.options, NULL, &run));
        MAKES(context, again, hbp_simulate_pipeline(context, p.layers, p.cuts, &p.options, NULL, &again));
        OK(context, hbp_pipeline_run_validate(context, run, NULL, NULL, NULL));
        ck_assert_uint_eq(run->summary.digest, again->summary.digest);
        ck_assert_int_eq(run->summary.virtual_stages, virtual_stages);
        ck_assert_int_eq(run->summary.micro_batches, m);
        piped_free(&p);
    }
}
END_TEST

TEST_MAIN("pipeline_run_inside", every_breach_is_named, inputs_come_first, what_was_made_passes)
