#include "base/methods.h"
#include "schedule/modalities.h"

#include "costs.h"
#include "data/packs/packs.h"
#include "data/plan/plan.h"
#include "failing.h"
#include "keep.h"

/* Samples of `kinds` kinds, some with vision units, in packs of two groups on 16 ranks. */
typedef struct mixed_kinds {
    hbp_context *context;
    hbp_cost *cost;
    hbp_lengths *lengths;
    hbp_groups *groups;
    hbp_packs *packs;
    int64_t count;
    int32_t *kind; /* [count] */
} mixed_kinds;

static mixed_kinds open_kinds(hbp_context *context, uint64_t seed, int64_t count, int32_t kinds)
{
    mixed_kinds m = {.context = context, .count = count};
    hbp__rng rng = hbp__rng_make(seed, 0, 1);
    uint32_t *length = malloc((size_t)count * sizeof *length),
             *vision = malloc((size_t)count * sizeof *vision);
    m.kind = keep(malloc((size_t)count * sizeof *m.kind));
    for (int64_t i = 0; i < count; i++) {
        length[i] = 1 + hbp__rng_below(&rng, hbp__rng_below(&rng, 8) ? 3000 : 20000);
        m.kind[i] = (int32_t)(hbp__rng_below(&rng, (uint64_t)kinds) * 60 / (uint64_t)kinds);
        vision[i] = m.kind[i] ? 1 + hbp__rng_below(&rng, 40) : 0;
    }
    hbp_lengths_options options = {.struct_size = sizeof options, .vision = vision, .modalities = m.kind};
    MAKES(context, m.lengths, hbp_lengths_create_u32(context, length, count, &options, &m.lengths));
    m.cost = keep(test_cost(context));
    MAKES(context, m.groups,
          hbp_groups_create(context, m.cost, 2, (int64_t[]){4096, 32768}, (int32_t[]){1, 4}, NULL,
                            4 * 16 * 4096, &m.groups));
    hbp_fill_options fill = {
        .struct_size = sizeof fill, .method = hbp__fill_name(HBP__FILL_HBP), .seed = seed};
    MAKES(context, m.packs, hbp_greedy_fill(context, m.lengths, m.groups, &fill, &m.packs));
    free(vision);
    free(length);
    return m;
}

START_TEST_IN_CONTEXT(a_pack_has_the_kinds_of_its_samples)
{
    mixed_kinds m = open_kinds(context, 1, 2000, 5);
    uint64_t *kinds = malloc((size_t)m.packs->count * sizeof *kinds);
    OK(m.context, hbp__packs_modalities(m.context, m.packs, kinds));
    for (int64_t p = 0; p < m.packs->count; p++)
        for (int32_t k = 0; k < 62; k++) {
            int has = 0;
            for (int64_t i = m.packs->offsets[p]; i < m.packs->offsets[p + 1]; i++)
                has |= m.kind[m.packs->sample[i]] == k;
            ck_assert_int_eq(has, (int)(kinds[p] >> k & 1));
        }
    free(kinds);
}
END_TEST

/* What one rank runs in a step, as a trainer would: kind after kind of each of its packs, of a dummy all
 * kinds that the micro-batch names. A kind is one call of its encoder, and so of its collectives. */
static int64_t run_rank(const mixed_kinds *m, const hbp_plan *plan, int64_t step, int32_t rank,
                        int32_t *calls)
{
    int64_t made = 0;
    for (int64_t b = plan->step_offsets[step]; b < plan->step_offsets[step + 1]; b++) {
        calls[made++] = -1; /* the micro-batch's own collectives */
        for (int64_t p = plan->micro_batch_offsets[b]; p < plan->micro_batch_offsets[b + 1]; p++) {
            if (rank < plan->pack_ranks[p] || rank >= plan->pack_ranks[p] + plan->pack_sp[p])
                continue;
            int64_t first = plan->pack_offsets[p], end = plan->pack_offsets[p + 1];
            for (int64_t i = first; i < end; i++) {
                int32_t kind = m->kind[plan->sample_ids[i]];
                if (i == first || kind != m->kind[plan->sample_ids[i - 1]])
                    calls[made++] = kind;
            }
            for (int32_t k = 0; first == end && k < HBP_MAX_MODALITIES; k++)
                if (plan->micro_batch_modalities[b] >> k & 1)
                    calls[made++] = k;
        }
    }
    return made;
}

/* No rank waits for one that is elsewhere: in every step all ranks make the same calls in the same order, in
 * every mode and with micro-batches of dummies, too; and each sample is still there once. At most one
 * micro-batch of a group and set of kinds has dummies. */
START_TEST_IN_CONTEXT(all_ranks_meet_the_same_kinds)
{
    static int32_t first[1 << 20], other[1 << 20];
    int mark = keep_mark();
    for (uint64_t seed = 0; seed < 6; keep_release(mark), seed++) {
        mixed_kinds m = open_kinds(context, seed, 200 + 300 * (int64_t)seed, 2 + (int32_t)seed % 4);
        for (int32_t mode = HBP__BALANCE_TIME; mode <= HBP__BALANCE_VISION; mode++) {
            hbp_balance_options options = {.struct_size = sizeof options,
                                           .method = hbp__balance_name(mode),
                                           .micro_batch_multiple = 1 + (int32_t)seed % 3,
                                           .curriculum_steps = (int64_t)seed % 2,
                                           .seed = seed,
                                           .modality_order = 1};
            hbp_plan *plan = NULL;
            OK(m.context, hbp_balance_attention(m.context, m.packs, m.groups, m.cost, &options, &plan));
            OK(m.context, hbp_plan_validate(m.context, plan, m.lengths, m.cost));
            ck_assert_int_eq(plan->samples, m.count);
            for (int64_t s = 0; s < plan->steps; s++) {
                int64_t calls = run_rank(&m, plan, s, 0, first);
                for (int32_t rank = 1; rank < 16; rank++) {
                    ck_assert_int_eq(run_rank(&m, plan, s, rank, other), calls);
                    ck_assert_mem_eq(first, other, (size_t)calls * sizeof *first);
                }
            }
            for (int64_t b = 0; b < plan->micro_batches; b++) {
                int64_t dummies = 0, packs = plan->micro_batch_offsets[b + 1] - plan->micro_batch_offsets[b];
                for (int64_t p = plan->micro_batch_offsets[b]; p < plan->micro_batch_offsets[b + 1]; p++)
                    dummies += plan->pack_offsets[p] == plan->pack_offsets[p + 1];
                if (!dummies || dummies == packs)
                    continue;
                for (int64_t c = 0; c < b; c++) {
                    int64_t p = plan->micro_batch_offsets[c], end = plan->micro_batch_offsets[c + 1] - 1;
                    int has_padding = plan->pack_offsets[end] == plan->pack_offsets[end + 1];
                    int has_pack = plan->pack_offsets[p] < plan->pack_offsets[p + 1];
                    ck_assert(plan->micro_batch_modalities[b] != plan->micro_batch_modalities[c] ||
                              !has_padding || !has_pack ||
                              plan->pack_capacity[p] != plan->pack_capacity[plan->micro_batch_offsets[b]]);
                }
            }
            hbp_plan_free(plan);
        }
    }
}
END_TEST

/* The order of modalities is what does it: without it ranks part. */
START_TEST_IN_CONTEXT(without_the_order_ranks_part)
{
    static int32_t first[1 << 16], other[1 << 16];
    mixed_kinds m = open_kinds(context, 3, 2000, 3);
    hbp_plan *plan = NULL;
    OK(m.context, hbp_balance_attention(m.context, m.packs, m.groups, m.cost, NULL, &plan));
    ck_assert_ptr_null(plan->micro_batch_modalities);
    int64_t none[1 << 12] = {0}, parted = 0;
    ck_assert_int_le(plan->micro_batches, 1 << 12);
    plan->micro_batch_modalities = none;
    for (int64_t s = 0; s < plan->steps; s++) {
        int64_t calls = run_rank(&m, plan, s, 0, first), others = run_rank(&m, plan, s, 15, other);
        parted += calls != others || memcmp(first, other, (size_t)calls * sizeof *first) != 0;
    }
    plan->micro_batch_modalities = NULL;
    ck_assert_int_gt(parted, 0);
    hbp_plan_free(plan);
}
END_TEST

/* Each step holds its share of every set of kinds, to within two micro-batches, whatever the method. */
START_TEST_IN_CONTEXT(steps_are_alike_in_kinds)
{
    mixed_kinds m = open_kinds(context, 4, 6000, 2);
    hbp_balance_options options = {.struct_size = sizeof options, .modality_order = 1};
    for (int32_t method = HBP__BALANCE_TIME; method <= HBP__BALANCE_VISION; method += 4) {
        options.method = hbp__balance_name(method);
        hbp_plan *plan = NULL;
        OK(m.context, hbp_balance_attention(m.context, m.packs, m.groups, m.cost, &options, &plan));
        for (int64_t capacity = 4096; capacity <= 32768; capacity *= 8)
            for (int64_t kinds = 1; kinds < INT64_C(1) << 60; kinds = kinds * 2) {
                int64_t all = 0, rows = 0;
                for (int64_t b = 0; b < plan->micro_batches; b++)
                    if (plan->pack_capacity[plan->micro_batch_offsets[b]] == capacity) {
                        rows++;
                        all += plan->micro_batch_modalities[b] == kinds;
                    }
                for (int64_t s = 0; s < plan->steps; s++) {
                    int64_t mine = 0, size = plan->step_offsets[s + 1] - plan->step_offsets[s];
                    for (int64_t b = plan->step_offsets[s]; b < plan->step_offsets[s + 1]; b++)
                        mine += plan->micro_batch_modalities[b] == kinds;
                    if (plan->pack_capacity[plan->micro_batch_offsets[plan->step_offsets[s]]] != capacity)
                        continue;
                    ck_assert_int_le(llabs(mine * rows - all * size), 2 * rows);
                }
            }
        hbp_plan_free(plan);
    }
}
END_TEST

static hbp_status balance_once(hbp_context *context, void *user)
{
    mixed_kinds *m = user;
    hbp_balance_options options = {
        .struct_size = sizeof options, .modality_order = 1, .method = hbp__balance_name(HBP__BALANCE_VISION)};
    hbp_plan *plan = NULL;
    hbp_status status = hbp_balance_attention(context, m->packs, m->groups, m->cost, &options, &plan);
    ck_assert_int_eq(status == HBP_OK, plan != NULL);
    hbp_plan_free(plan);
    return status;
}

static hbp_status kinds_once(hbp_context *context, void *user)
{
    mixed_kinds *m = user;
    uint64_t *kinds = malloc((size_t)m->packs->count * sizeof *kinds);
    hbp_status status = hbp__packs_modalities(context, m->packs, kinds);
    free(kinds);
    return status;
}

/* One report each 65536 samples, as soon as a pack ends behind them. */
START_TEST_IN_CONTEXT(samples_between_two_reports)
{
    mixed_kinds m = open_kinds(context, 3, 3 * 65536 + 1000, 2);
    failing f;
    int64_t left = 3;
    hbp_context *listening = failing_context(&f, cancel_after, &left);
    OK(listening, kinds_once(listening, &m));
    ck_assert_int_eq(left, 0);
    hbp_context_free(listening);
}
END_TEST

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    mixed_kinds m = open_kinds(context, 2, 300, 3);
    failing_sweep(balance_once, &m);
    ck_assert_int_gt(cancel_sweep(balance_once, &m), 2);
}
END_TEST

TEST_MAIN("modalities", a_pack_has_the_kinds_of_its_samples, all_ranks_meet_the_same_kinds,
          without_the_order_ranks_part, steps_are_alike_in_kinds, samples_between_two_reports,
          nothing_is_left_behind)
