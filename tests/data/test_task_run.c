/* What the inside of a run of tasks promises: every breach is named. */
#include "data/tasks/task_run.h"

#include <math.h>

#include "keep.h"
#include "task_schedules.h"

#define EXPECT(change, undo, text)                                                                           \
    do {                                                                                                     \
        change;                                                                                              \
        FAILS(d.context, HBP_E_INVALID, text, hbp_task_run_validate(d.context, r, NULL, NULL, NULL, NULL));  \
        undo;                                                                                                \
        OK(d.context, hbp_task_run_validate(d.context, r, NULL, NULL, NULL, NULL));                          \
    } while (0)

/* A cell or number `what` more. */
#define MORE(field, what, text)                                                                              \
    do {                                                                                                     \
        const int64_t more = (what);                                                                         \
        EXPECT(r->field += more, r->field -= more, text);                                                    \
    } while (0)

START_TEST(every_breach_is_named)
{
    hbp__rng rng = hbp__rng_make(4, 0, 0);
    drawn d;
    drawn_random(&d, &rng);
    hbp_task_run *r = NULL;
    OK(d.context, hbp_simulate_tasks(d.context, d.graph, d.machine, d.schedule, NULL, &r));
    ck_assert_uint_eq(r->summary.schedule_digest, d.schedule->digest);
    int32_t gpus = r->summary.gpus;
    EXPECT(r->summary.gpus = 0, r->summary.gpus = gpus, "gpus is 0; it must be 1 or more");
#define NEGATIVE(name) MORE(summary.name, -1 - r->summary.name, #name " is -1; it must not be negative")
    NEGATIVE(total_ns);
    NEGATIVE(slices_ns);
    NEGATIVE(transfer_ns);
    NEGATIVE(gradient_ns);
    NEGATIVE(flow_bytes);
    NEGATIVE(moved_bytes);
    NEGATIVE(crossing_bytes);
    NEGATIVE(peak_bytes);
    MORE(summary.total_ns, 1, "; the last slice ends at");
    MORE(summary.slices_ns, 1, "; the last slice ends at");
    MORE(summary.gradient_ns, 1, "; the last slice ends at");
    int64_t start = r->slice_starts[0], end = r->slice_ends[0];
    EXPECT(r->slice_starts[0] = -1, r->slice_starts[0] = start, "slice 0 runs from -1 to");
    EXPECT(r->slice_starts[0] = end + 1, r->slice_starts[0] = start, "slice 0 runs from");
    EXPECT(r->summary.idle += 2, r->summary.idle -= 2, "; it is a share of GPU time");
    EXPECT(r->summary.idle -= 2, r->summary.idle += 2, "; it is a share of GPU time");
    double idle = r->summary.idle;
    EXPECT(r->summary.idle = NAN, r->summary.idle = idle, "idle is nan");
    EXPECT(r->summary.schedule_digest++, r->summary.schedule_digest--,
           "the digest is not that of the slices");
    EXPECT(r->summary.digest++, r->summary.digest--, "the digest is not that of the slices");
    MORE(summary.peak_bytes, 1, "the digest is not that of the slices");
    hbp_task_run_free(r);
    drawn_close(&d);
}
END_TEST

TEST_MAIN("task_run", every_breach_is_named)
