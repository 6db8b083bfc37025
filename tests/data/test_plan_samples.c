#include "keep.h"
#include "plans.h"

#include <math.h>

typedef struct made {
    hbp_context *context;
    hbp_lengths *lengths;
    hbp_plan *plan;
} made;

static made make(hbp_context *context, uint64_t seed, int loss)
{
    made m = {.context = context};
    m.lengths = keep(plans_lengths(context, seed, 100, 300, loss, 0));
    plans_shape shape = plans_draw(seed);
    m.plan = keep(plans_make(&shape, m.lengths));
    return m;
}

START_TEST_IN_CONTEXT(borders_are_sums_of_lengths)
{
    int mark = keep_mark();
    for (uint64_t seed = 0; seed < 40; keep_release(mark), seed++) {
        made m = make(context, seed, 0);
        hbp_plan *plan = m.plan;
        for (int64_t p = 0; p < plan->packs; p++)
            for (int32_t padded = 0; padded < 2; padded++) {
                int32_t borders[64], end = 0;
                int64_t count = 0, samples = plan->pack_offsets[p + 1] - plan->pack_offsets[p];
                int64_t multiple =
                    plans_multiple(plan->sequence_multiple, plan->sequence_multiple_per_sp, plan->pack_sp[p]);
                OK(m.context, hbp_plan_copy_cu_seqlens(m.context, plan, p, padded, borders, 64, &count));
                ck_assert_int_eq(borders[0], 0);
                for (int64_t i = 0; i < samples; i++) {
                    int32_t length = plan->sample_tokens[plan->pack_offsets[p] + i];
                    while (padded && length % multiple)
                        length++;
                    end += length;
                    ck_assert_int_eq(borders[i + 1], end);
                }
                int more = padded && end < plan->pack_padded_tokens[p];
                ck_assert_int_eq(count, samples + 1 + more);
                ck_assert_int_eq(borders[count - 1],
                                 padded ? plan->pack_padded_tokens[p] : plan->pack_tokens[p]);
            }
    }
}
END_TEST

START_TEST_IN_CONTEXT(borders_need_their_room)
{
    made m = make(context, 1, 0);
    int64_t p = 0, count = 0;
    int32_t borders[8] = {-5, -5};
    while (m.plan->pack_offsets[p] == m.plan->pack_offsets[p + 1])
        p++;
    FAILS(m.context, HBP_E_INVALID, "the buffer holds 1 values",
          hbp_plan_copy_cu_seqlens(m.context, m.plan, p, 0, borders, 1, &count));
    ck_assert_int_eq(borders[0], -5);
    ck_assert_int_eq(count, m.plan->pack_offsets[p + 1] - m.plan->pack_offsets[p] + 1);
    FAILS(m.context, HBP_E_INVALID, "the buffer holds 0 values",
          hbp_plan_copy_cu_seqlens(m.context, m.plan, p, 0, NULL, 100, &count));
    FAILS(m.context, HBP_E_INVALID, "pack -1",
          hbp_plan_copy_cu_seqlens(m.context, m.plan, -1, 0, borders, 8, &count));
    FAILS(m.context, HBP_E_INVALID, "; the plan has",
          hbp_plan_copy_cu_seqlens(m.context, m.plan, m.plan->packs, 0, borders, 8, &count));
    FAILS(m.context, HBP_E_INVALID, "count",
          hbp_plan_copy_cu_seqlens(m.context, m.plan, p, 0, borders, 8, NULL));
    FAILS(m.context, HBP_E_INVALID, "plan",
          hbp_plan_copy_cu_seqlens(m.context, NULL, p, 0, borders, 8, &count));
}
END_TEST

static int near(double a, double b)
{
    return fabs(a - b) <= 1e-12 * (1 + fabs(b));
}

/* Loss tokens of a row, by the data set's own word. */
static double loss_of(const made *m, int64_t row)
{
    int64_t id = m->plan->sample_ids[row];
    return m->lengths->loss ? m->lengths->loss[id] : (double)hbp__lengths_get(m->lengths, id);
}

/* Every token's loss is 1, or its sample's number: the weighted sum is what each definition says. */
START_TEST_IN_CONTEXT(weights_are_those_of_each_definition)
{
    int mark = keep_mark();
    for (uint64_t seed = 0; seed < 40; keep_release(mark), seed++) {
        made m = make(context, seed, seed % 2);
        hbp_plan *plan = m.plan;
        for (int64_t s = 0; s < plan->steps; s++) {
            double tokens = 0, token_sum = 0, packs = 0, pack_means = 0, samples = 0, sample_means = 0;
            int64_t first = plan->micro_batch_offsets[plan->step_offsets[s]];
            int64_t end = plan->micro_batch_offsets[plan->step_offsets[s + 1]];
            for (int64_t p = first; p < end; p++) {
                double mine = 0, sum = 0;
                for (int64_t i = plan->pack_offsets[p]; i < plan->pack_offsets[p + 1]; i++) {
                    double each = (double)(plan->sample_ids[i] + 1);
                    mine += loss_of(&m, i);
                    sum += loss_of(&m, i) * each;
                    samples += loss_of(&m, i) > 0;
                    sample_means += loss_of(&m, i) > 0 ? each : 0;
                }
                tokens += mine;
                token_sum += sum;
                packs += mine > 0;
                pack_means += mine > 0 ? sum / mine : 0;
            }
            const double want[] = {tokens > 0 ? token_sum / tokens : 0, packs > 0 ? pack_means / packs : 0,
                                   samples > 0 ? sample_means / samples : 0, token_sum};
            for (int32_t how = HBP_LOSS_TOKEN; how <= HBP_LOSS_SUM; how++) {
                double weights[128], got = 0, total = 0;
                int64_t count = 0, row = plan->pack_offsets[first];
                OK(m.context, hbp_plan_copy_loss_weights(m.context, plan, s, how, weights, 128, &count));
                ck_assert_int_eq(count, plan->step_samples[s]);
                for (int64_t i = 0; i < count; i++) {
                    got += weights[i] * loss_of(&m, row + i) * (double)(plan->sample_ids[row + i] + 1);
                    total += weights[i] * loss_of(&m, row + i);
                }
                ck_assert_msg(near(got, want[how]), "way %d: %.17g instead of %.17g", how, got, want[how]);
                ck_assert(how == HBP_LOSS_SUM || tokens == 0 || near(total, 1));
            }
        }
    }
}
END_TEST

/* A sample without loss tokens weighs nothing, and divides nothing by 0. */
START_TEST_IN_CONTEXT(no_loss_no_weight)
{
    const uint32_t length[] = {5, 6, 7}, loss[] = {0, 0, 0};
    hbp_lengths_options options = {.struct_size = sizeof options, .loss_tokens = loss};
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths, hbp_lengths_create_u32(context, length, 3, &options, &lengths));
    plans_shape shape = plans_draw(0);
    hbp_plan *plan = keep(plans_make(&shape, lengths));
    for (int32_t how = HBP_LOSS_TOKEN; how <= HBP_LOSS_SUM; how++)
        for (int64_t s = 0; s < plan->steps; s++) {
            double weights[4];
            int64_t count;
            OK(context, hbp_plan_copy_loss_weights(context, plan, s, how, weights, 4, &count));
            for (int64_t i = 0; i < count; i++)
                ck_assert(weights[i] == (how == HBP_LOSS_SUM));
        }
}
END_TEST

START_TEST_IN_CONTEXT(weights_need_their_arguments)
{
    made m = make(context, 2, 0);
    double weights[128] = {-5};
    int64_t count = 0;
    ck_assert_int_gt(m.plan->step_samples[0], 0);
    FAILS(m.context, HBP_E_INVALID, "normaliser 4",
          hbp_plan_copy_loss_weights(m.context, m.plan, 0, 4, weights, 128, &count));
    FAILS(m.context, HBP_E_INVALID, "normaliser -1",
          hbp_plan_copy_loss_weights(m.context, m.plan, 0, -1, weights, 128, &count));
    FAILS(m.context, HBP_E_INVALID, "step -1",
          hbp_plan_copy_loss_weights(m.context, m.plan, -1, 0, weights, 128, &count));
    FAILS(m.context, HBP_E_INVALID, "loss weights: the buffer holds 0 values",
          hbp_plan_copy_loss_weights(m.context, m.plan, 0, 0, weights, 0, &count));
    ck_assert_int_eq(count, m.plan->step_samples[0]);
    ck_assert(weights[0] == -5);
    FAILS(m.context, HBP_E_INVALID, "loss weights: the buffer holds 0 values",
          hbp_plan_copy_loss_weights(m.context, m.plan, 0, 0, NULL, 128, &count));
    FAILS(m.context, HBP_E_INVALID, "count",
          hbp_plan_copy_loss_weights(m.context, m.plan, 0, 0, weights, 128, NULL));
    FAILS(m.context, HBP_E_INVALID, "plan",
          hbp_plan_copy_loss_weights(m.context, NULL, 0, 0, weights, 128, &count));
}
END_TEST

TEST_MAIN("plan_samples", borders_are_sums_of_lengths, borders_need_their_room,
          weights_are_those_of_each_definition, no_loss_no_weight, weights_need_their_arguments)
