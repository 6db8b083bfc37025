/* hbp__rank_states_* (lib/data/tasks/rank_states.c). */
#include "data/tasks/rank_states.h"

#include "data/tasks/flow.h"
#include "failing.h"
#include "task_schedules.h"

static int runs_on(const drawn *d, int64_t slice, int32_t rank)
{
    int64_t at = 0;
    for (int64_t s = 0; s < slice; s++)
        at += d->slices.slice[s].gpus;
    for (int32_t i = 0; i < d->slices.slice[slice].gpus; i++)
        if (d->ranks[at + i] == rank)
            return 1;
    return 0;
}

/* States of weights p on a rank, and the activations of all that it runs, by looking at every operator. */
static int64_t expected_bytes(const drawn *d, int32_t rank, int32_t p, int64_t *activation)
{
    int64_t states = -1;
    *activation = 0;
    for (int64_t s = 0; s < d->slices.count; s++) {
        const hbp__task_slice *slice = &d->slices.slice[s];
        if (!runs_on(d, s, rank))
            continue;
        for (int32_t k = 0; k < slice->count; k++) {
            int64_t place = d->meta.meta_op[slice->meta_op].first + slice->first + k;
            const hbp__operator *o = &d->graph->operators[d->meta.operators[place]];
            int64_t here = hbp__operator_states(o, slice->gpus);
            *activation += hbp__operator_activation(o, slice->gpus);
            if (o->parameters == p && here > states)
                states = here;
        }
    }
    return states;
}

static void check_rank(const drawn *d, const hbp__rank_states *states, int32_t rank)
{
    int32_t held = 0;
    for (int32_t p = 0; p < d->graph->parameters.count; p++) {
        int64_t activation, bytes = expected_bytes(d, rank, p, &activation);
        ck_assert_int_eq(states->bytes[p], bytes);
        ck_assert_int_eq(states->activation_bytes, activation);
        held += bytes >= 0;
    }
    ck_assert_int_eq(states->held_count, held);
    for (int32_t i = 0; i < held; i++)
        ck_assert_int_ge(states->bytes[states->held[i]], 0);
}

START_TEST(ranks_hold_what_they_run)
{
    hbp__rng rng = hbp__rng_make(7, 0, 0);
    for (int i = 0; i < 100; i++) {
        drawn d;
        hbp__rank_states states;
        drawn_random(&d, &rng);
        OK(d.context,
           hbp__rank_states_open(d.context, d.graph, &d.meta, &d.slices, d.ranks, d.summary.gpus, &states));
        for (int32_t r = 0; r < d.summary.gpus; r++) {
            hbp__rank_states_read(&states, r);
            check_rank(&d, &states, r);
        }
        for (int k = 0; k < 10; k++) {
            int32_t r = (int32_t)hbp__rng_below(&rng, (uint64_t)d.summary.gpus);
            hbp__rank_states_read(&states, r);
            check_rank(&d, &states, r);
        }
        hbp__rank_states_close(&states);
        drawn_close(&d);
    }
}
END_TEST

static hbp_status open_states(hbp_context *context, void *user)
{
    const drawn *d = user;
    hbp__rank_states states;
    HBP__TRY(
        hbp__rank_states_open(context, d->graph, &d->meta, &d->slices, d->ranks, d->summary.gpus, &states));
    hbp__rank_states_close(&states);
    return HBP_OK;
}

START_TEST(allocations_fail)
{
    hbp__rng rng = hbp__rng_make(8, 0, 0);
    drawn d;
    drawn_random(&d, &rng);
    failing_sweep(open_states, &d);
    drawn_close(&d);
}
END_TEST

TEST_MAIN("rank_states", ranks_hold_what_they_run, allocations_fail)
