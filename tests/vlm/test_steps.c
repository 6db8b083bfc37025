/* Steps against the public simulator, and their order against what was drawn. */
#include "base/checked.h"
#include "base/methods.h"
#include "vlm_runs.h"

typedef struct outcome {
    hbp_plan *data; /* ordered */
    hbp_vlm_plan plan;
} outcome;

/* Runs the steps under cuts in the middle; half of the layers recompute. */
static void even_stages(const small *s, hbp__vlm_stages *stages, int32_t *cuts, int32_t *choices)
{
    int32_t chunks = s->run.options.pipeline_stages * s->run.options.virtual_stages;
    for (int32_t k = 0; k <= chunks; k++)
        cuts[k] = s->layers->count * k / chunks;
    for (int32_t i = 0; i < s->layers->count; i++)
        choices[i] = i % 2 ? HBP_RECOMPUTE_LAYER : HBP_RECOMPUTE_NONE;
    *stages =
        (hbp__vlm_stages){.chunks = chunks, .layers = s->layers->count, .cuts = cuts, .choices = choices};
}

static hbp_status run_steps(hbp_context *context, const small *s, int32_t order, outcome *out)
{
    int32_t cuts[MOST_MEASURED + 1], choices[MOST_MEASURED];
    hbp__vlm_stages stages;
    hbp__vlm_run run = s->run;
    run.context = context;
    run.options.keep_order = order;
    even_stages(s, &stages, cuts, choices);
    *out = (outcome){.data = hbp__plan_copy(&context->memory, s->data)};
    if (!out->data)
        return hbp__fail_memory(context, "a copy");
    out->plan.steps = s->data->steps;
    out->plan.step_ns = calloc((size_t)s->data->steps, sizeof *out->plan.step_ns);
    ck_assert_ptr_nonnull(out->plan.step_ns);
    return hbp__vlm_steps(&run, &s->reference, &stages, &out->data, &out->plan);
}

static void outcome_free(outcome *o)
{
    hbp_plan_free(o->data);
    free(o->plan.step_ns);
}

/* Step times and busy time are the simulator's, in the order that the plan has. */
static void check_times(const small *s, const outcome *o)
{
    int32_t cuts[MOST_MEASURED + 1], choices[MOST_MEASURED];
    hbp__vlm_stages stages;
    int64_t busy = 0;
    even_stages(s, &stages, cuts, choices);
    for (int64_t step = 0; step < o->data->steps; step++)
        ck_assert_int_eq(o->plan.step_ns[step],
                         simulate_step(&s->run, &s->reference, o->data, step, cuts, choices, NULL, &busy));
    /* The simulator's stages are busy sending, too. */
    if (s->run.link_bytes_per_s <= 0)
        ck_assert_int_eq(o->plan.busy_ns, busy);
    else
        ck_assert_int_le(o->plan.busy_ns, busy);
}

static int64_t first_sample(const hbp_plan *plan, int64_t p)
{
    return plan->pack_offsets[p + 1] > plan->pack_offsets[p] ? plan->sample_ids[plan->pack_offsets[p]] : -1;
}

static int same_pack(const hbp_plan *a, int64_t p, const hbp_plan *b, int64_t q)
{
    int64_t rows = a->pack_offsets[p + 1] - a->pack_offsets[p];
    if (rows != b->pack_offsets[q + 1] - b->pack_offsets[q])
        return 0;
    return !rows || memcmp(a->sample_ids + a->pack_offsets[p], b->sample_ids + b->pack_offsets[q],
                           (size_t)rows * sizeof *a->sample_ids) == 0;
}

/* Every micro-batch of a step is one of those drawn for it, whole, on all ranks, each once; returns how many
 * stand elsewhere. */
static int64_t check_permuted(const hbp_plan *from, const hbp_plan *to)
{
    int64_t moved = 0, ranks = from->ranks;
    ck_assert_int_eq(from->steps, to->steps);
    for (int64_t s = 0; s < from->steps; s++) {
        int64_t first = from->step_offsets[s], end = from->step_offsets[s + 1];
        char taken[MOST_STEP] = {0};
        ck_assert_int_eq(to->step_offsets[s], first);
        ck_assert_int_eq(to->step_offsets[s + 1], end);
        for (int64_t m = first; m < end; m++) {
            int64_t found = -1;
            for (int64_t k = first; k < end && found < 0; k++) {
                int same = !taken[k - first];
                for (int64_t d = 0; d < ranks && same; d++)
                    same =
                        same_pack(to, to->micro_batch_offsets[m] + d, from, from->micro_batch_offsets[k] + d);
                found = same ? k : -1;
            }
            ck_assert_int_ge(found, 0);
            taken[found - first] = 1;
            moved += found != m;
            if (from->micro_batch_modalities)
                ck_assert_int_eq(to->micro_batch_modalities[m], from->micro_batch_modalities[found]);
            ck_assert_int_eq(to->micro_batch_ns[m], from->micro_batch_ns[found]);
        }
    }
    return moved;
}

START_TEST(steps_are_the_simulators)
{
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    int64_t moved = 0, shorter = 0;
    for (int turn = 0; turn < 120; turn++) {
        int32_t stages = 1 + (int32_t)hbp__rng_below(&rng, 3), turns = stages > 1 ? 1 + turn % 2 : 1;
        small s = small_setup(&rng, stages * turns + 3, stages, turns, 1 + (int32_t)hbp__rng_below(&rng, 3),
                              turn % 5);
        if (hbp__rng_below(&rng, 2))
            s.run.link_bytes_per_s = 0;
        outcome drawn, ordered;
        OK(s.f.context, run_steps(s.f.context, &s, 1, &drawn));
        OK(s.f.context, run_steps(s.f.context, &s, 0, &ordered));
        check_times(&s, &drawn);
        check_times(&s, &ordered);
        OK(s.f.context, hbp_plan_validate(s.f.context, ordered.data, s.f.lengths, NULL));
        ck_assert_int_eq(check_permuted(s.data, drawn.data), 0);
        ck_assert_uint_eq(drawn.data->digest, s.data->digest);
        int64_t elsewhere = check_permuted(s.data, ordered.data);
        moved += elsewhere;
        ck_assert_int_eq(ordered.plan.busy_ns, drawn.plan.busy_ns);
        int64_t saved = 0;
        for (int64_t i = 0; i < s.data->steps; i++) {
            ck_assert_int_le(ordered.plan.step_ns[i], drawn.plan.step_ns[i]);
            saved += drawn.plan.step_ns[i] - ordered.plan.step_ns[i];
        }
        /* An order is changed where that helps, and only there. */
        ck_assert_int_eq(elsewhere > 0, saved > 0);
        shorter += saved > 0;
        outcome_free(&drawn);
        outcome_free(&ordered);
        small_teardown(&s);
    }
    ck_assert_int_gt(moved, 100);
    ck_assert_int_gt(shorter, 20);
}
END_TEST

static void exchange(int64_t *pack)
{
    int64_t first = pack[0];
    pack[0] = pack[1];
    pack[1] = first;
}

/* An order is found for the most that a micro-batch takes on any replica, transfers that keep a stage busy
 * included: which of two replicas comes first makes no difference. */
START_TEST(no_replica_comes_first)
{
    hbp__rng rng = hbp__rng_make(4, 0, 0);
    int64_t moved = 0;
    for (int turn = 0; turn < 60; turn++) {
        int32_t stages = 2 + turn % 2;
        small s = small_setup(&rng, stages + 3, stages, 1, 2, HBP__VLM_DATA_PACKED);
        s.run.link_bytes_per_s /= 100;
        outcome drawn, exchanged;
        OK(s.f.context, run_steps(s.f.context, &s, 0, &drawn));
        for (int64_t m = 0; m < s.data->micro_batches; m++) {
            int64_t p = s.data->micro_batch_offsets[m];
            exchange(&s.data->pack_vision[p]);
            exchange(&s.data->pack_padded_tokens[p]);
            exchange(&s.data->pack_squares[p]);
        }
        OK(s.f.context, run_steps(s.f.context, &s, 0, &exchanged));
        moved += check_permuted(s.data, drawn.data);
        for (int64_t i = 0; i < s.data->steps; i++)
            ck_assert_int_eq(drawn.plan.step_ns[i], exchanged.plan.step_ns[i]);
        for (int64_t p = 0; p < s.data->packs; p++)
            ck_assert(same_pack(drawn.data, p, exchanged.data, p));
        outcome_free(&drawn);
        outcome_free(&exchanged);
        small_teardown(&s);
    }
    ck_assert_int_gt(moved, 100);
}
END_TEST

/* With modality_order, micro-batches come with one set of kinds each; an order keeps them whole. */
START_TEST(modalities_move_with_their_micro_batch)
{
    hbp__rng rng = hbp__rng_make(2, 0, 0);
    int64_t moved = 0;
    for (int turn = 0; turn < 20; turn++) {
        small s = small_setup(&rng, 6, 2, 1, 2, HBP__VLM_DATA_PACKED);
        s.run.options.modality_order = 1;
        hbp_plan_free(s.data);
        s.data = NULL;
        OK(s.f.context, hbp__vlm_deal(&s.run, &s.packs, &s.reference, s.run.options.micro_batches, &s.data));
        outcome o;
        OK(s.f.context, run_steps(s.f.context, &s, 0, &o));
        check_times(&s, &o);
        moved += check_permuted(s.data, o.data);
        for (int64_t m = 0; m < o.data->micro_batches; m++)
            for (int64_t p = o.data->micro_batch_offsets[m]; p < o.data->micro_batch_offsets[m + 1]; p++) {
                int64_t held = 0;
                for (int64_t i = o.data->pack_offsets[p]; i < o.data->pack_offsets[p + 1]; i++)
                    held |= INT64_C(1) << o.data->sample_modalities[i];
                ck_assert(first_sample(o.data, p) < 0 || held == o.data->micro_batch_modalities[m]);
            }
        outcome_free(&o);
        small_teardown(&s);
    }
    ck_assert_int_gt(moved, 0);
}
END_TEST

static hbp_status call(hbp_context *context, void *user)
{
    outcome o;
    hbp_status status = run_steps(context, user, 0, &o);
    outcome_free(&o);
    return status;
}

START_TEST(failing_allocations_and_cancel)
{
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    small s = small_setup(&rng, 6, 2, 1, 2, HBP__VLM_DATA_RANDOM);
    failing_sweep(call, &s);
    ck_assert_int_gt(cancel_sweep(call, &s), 0);
    small_teardown(&s);
}
END_TEST

TEST_MAIN("steps", steps_are_the_simulators, no_replica_comes_first, modalities_move_with_their_micro_batch,
          failing_allocations_and_cancel)
