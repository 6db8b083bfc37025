#include "pipeline/candidates.h"

#include "keep.h"
#include "pipeline/instances.h"

static void lists_open(hbp_context *context, const hbp__stages *s, int32_t room, hbp__cut_list lists[2])
{
    for (int i = 0; i < 2; i++)
        OK(context, hbp__cut_list_open(context, s->chunks, room, &lists[i]));
}

static void lists_close(hbp__cut_list lists[2])
{
    for (int i = 0; i < 2; i++)
        hbp__cut_list_close(&lists[i]);
}

static int64_t bits_of(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

START_TEST_IN_CONTEXT(equals_every_partition_near_tried)
{
    static instance d;
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    int nothing = 0;
    for (int trial = 0; trial < 500; trial++) {
        int32_t stages = (int32_t)instance_draw(&rng, 1, 4), turns = (int32_t)instance_draw(&rng, 1, 2);
        int32_t chunks = stages * turns, count = (int32_t)instance_draw(&rng, chunks, 12);
        int32_t anchor[INSTANCE_LAYERS + 1] = {0}, cuts[INSTANCE_LAYERS + 1];
        int32_t radius = (int32_t)instance_draw(&rng, 1, 3), room = (int32_t)instance_draw(&rng, 1, 6);
        instance_make(context, &rng, count, stages, turns, &d);
        for (int32_t c = 1; c <= chunks; c++)
            anchor[c] =
                c == chunks ? count : (int32_t)instance_draw(&rng, anchor[c - 1] + 1, count - (chunks - c));
        hbp__stages s;
        hbp__cut_list want[2], got[2];
        OK(context, hbp__stages_open(context, d.layers, &d.pipeline, &s));
        lists_open(context, &s, room, want);
        lists_open(context, &s, room, got);
        instance_first(count, chunks, cuts);
        do {
            int is_near = instance_fits(&d, cuts, &s.live);
            for (int32_t c = 1; c < chunks; c++)
                is_near &= abs(cuts[c] - anchor[c]) <= radius;
            int64_t load[INSTANCE_STAGES];
            instance_weigh(&d, cuts, load);
            if (is_near) {
                hbp__cut_list_add(&want[0], cuts, bits_of(hbp__stages_variance(&s, load)));
                hbp__cut_list_add(&want[1], cuts, hbp__stages_cut_bytes(&s, cuts));
            }
        } while (instance_next(count, chunks, cuts));
        OK(context, hbp__rank_near(context, &s, anchor, radius, &got[0], &got[1]));
        for (int i = 0; i < 2; i++) {
            ck_assert_int_eq(got[i].count, want[i].count);
            for (int32_t k = 0; k < want[i].count; k++) {
                ck_assert_int_eq(got[i].value[k], want[i].value[k]);
                for (int32_t c = 0; c <= chunks; c++)
                    ck_assert_int_eq(hbp__cut_list_get(&got[i], k)[c], hbp__cut_list_get(&want[i], k)[c]);
            }
        }
        nothing += !want[0].count;
        lists_close(want);
        lists_close(got);
        hbp__stages_close(&s);
        hbp_layers_free(d.layers);
    }
    ck_assert_int_gt(nothing, 10);
}
END_TEST

/* Too many to try one by one: the least communication is still the least of all, by a recurrence of the
 * test's own; nothing leaves the radius; the variance is no worse than the anchor's. */
START_TEST_IN_CONTEXT(many_are_ranked_by_a_recurrence)
{
    static instance d;
    hbp__rng rng = hbp__rng_make(2, 0, 0);
    for (int trial = 0; trial < 20; trial++) {
        int32_t stages = 8, count = 100, radius = 6, anchor[INSTANCE_LAYERS + 1];
        instance_make(context, &rng, count, stages, 1, &d);
        d.pipeline.limit_bytes = NULL;
        for (int32_t c = 0; c <= stages; c++)
            anchor[c] = c * count / stages;
        hbp__stages s;
        hbp__cut_list got[2];
        OK(context, hbp__stages_open(context, d.layers, &d.pipeline, &s));
        lists_open(context, &s, 5, got);
        OK(context, hbp__rank_near(context, &s, anchor, radius, &got[0], &got[1]));
        int64_t least = 0, load[INSTANCE_STAGES];
        for (int32_t c = 1; c < stages; c++) { /* places within the radius do not overlap: each on its own */
            int64_t cut = INT64_MAX;
            for (int32_t at = anchor[c] - radius; at <= anchor[c] + radius; at++)
                cut = d.cut[at - 1] < cut ? d.cut[at - 1] : cut;
            least += cut;
        }
        ck_assert_int_eq(got[1].count, 5);
        ck_assert_int_eq(got[1].value[0], least);
        hbp__stages_weigh(&s, anchor, load);
        ck_assert_int_le(got[0].value[0], bits_of(hbp__stages_variance(&s, load)));
        for (int i = 0; i < 2; i++)
            for (int32_t k = 0; k < got[i].count; k++)
                for (int32_t c = 1; c < stages; c++)
                    ck_assert_int_le(abs(hbp__cut_list_get(&got[i], k)[c] - anchor[c]), radius);
        lists_close(got);
        hbp__stages_close(&s);
        hbp_layers_free(d.layers);
    }
}
END_TEST

typedef struct task {
    instance *d;
    int32_t radius;
} task;

static hbp_status rank(hbp_context *context, void *user)
{
    const task *t = user;
    int32_t anchor[] = {0, 12, 24, 36, 48, 60, 72, 84, 100};
    hbp__stages s;
    hbp__cut_list a, b;
    HBP__TRY(hbp__stages_open(context, t->d->layers, &t->d->pipeline, &s));
    hbp_status status = hbp__cut_list_open(context, 8, 2, &a);
    if (status >= 0) {
        status = hbp__cut_list_open(context, 8, 2, &b);
        if (status >= 0)
            status = hbp__rank_near(context, &s, anchor, t->radius, &a, &b);
        hbp__cut_list_close(&b);
    }
    hbp__cut_list_close(&a);
    hbp__stages_close(&s);
    return status;
}

START_TEST_IN_CONTEXT(failing_allocations_and_cancelling_leave_nothing)
{
    static instance d;
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    instance_make(context, &rng, 100, 8, 1, &d);
    d.pipeline.limit_bytes = NULL;
    task t = {&d, 1};
    failing_sweep(rank, &t);
    t.radius = 20;
    failing_sweep(rank, &t);
    ck_assert_int_ge(cancel_sweep(rank, &t), 16);
    hbp_layers_free(d.layers);
}
END_TEST

TEST_MAIN("near", equals_every_partition_near_tried, many_are_ranked_by_a_recurrence,
          failing_allocations_and_cancelling_leave_nothing)
