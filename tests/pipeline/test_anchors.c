#include "base/methods.h"
#include "pipeline/candidates.h"

#include "keep.h"
#include "pipeline/instances.h"

static void check_balanced(const int64_t *weight, int32_t count, int32_t parts, const int32_t *want)
{
    int64_t sum[64];
    int32_t cuts[65];
    for (int32_t i = 0; i < count; i++)
        sum[i] = weight[i] + (i ? sum[i - 1] : 0);
    hbp__partition_balanced(sum, count, parts, cuts);
    for (int32_t p = 0; p <= parts; p++)
        ck_assert_int_eq(cuts[p], want[p]);
}

/* As DeepSpeed's function cuts them. */
START_TEST(balanced_is_that_of_deepspeed)
{
    check_balanced((const int64_t[]){1, 2, 3, 4, 5, 6, 7, 8}, 8, 3, (const int32_t[]){0, 4, 6, 8});
    check_balanced((const int64_t[]){5, 1, 1, 1, 5, 1, 1, 1}, 8, 2, (const int32_t[]){0, 4, 8});
    check_balanced((const int64_t[]){3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5}, 11, 4,
                   (const int32_t[]){0, 5, 7, 10, 11});
    check_balanced((const int64_t[]){1, 1, 1}, 3, 3, (const int32_t[]){0, 1, 2, 3});
    check_balanced((const int64_t[]){1, 1, 1, 1}, 4, 1, (const int32_t[]){0, 4});
}
END_TEST

START_TEST(no_part_is_empty)
{
    check_balanced((const int64_t[]){9, 1, 1, 1}, 4, 3, (const int32_t[]){0, 1, 3, 4});
    check_balanced((const int64_t[]){0, 0, 0, 9}, 4, 2, (const int32_t[]){0, 3, 4});
    check_balanced((const int64_t[]){0, 0, 0, 0}, 4, 3, (const int32_t[]){0, 1, 2, 4});
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    for (int trial = 0; trial < 3000; trial++) {
        int64_t sum[60], all = 0, size = instance_draw(&rng, 0, 2) ? 100 : INT64_C(1) << 56;
        int32_t count = (int32_t)instance_draw(&rng, 1, 60), parts = (int32_t)instance_draw(&rng, 1, count);
        int32_t cuts[61];
        for (int32_t i = 0; i < count; i++)
            sum[i] = all += instance_draw(&rng, 0, 3) ? size : 0;
        hbp__partition_balanced(sum, count, parts, cuts);
        ck_assert_int_eq(cuts[0], 0);
        ck_assert_int_eq(cuts[parts], count);
        for (int32_t p = 0; p < parts; p++)
            ck_assert_int_lt(cuts[p], cuts[p + 1]);
    }
}
END_TEST

/* Where nothing comes out empty the largest part is near the least there can be: within the largest weight.
 */
START_TEST(balanced_is_balanced)
{
    hbp__rng rng = hbp__rng_make(2, 0, 0);
    for (int trial = 0; trial < 2000; trial++) {
        int64_t sum[60], all = 0, heaviest = 0, largest = 0;
        int32_t cuts[61], count = (int32_t)instance_draw(&rng, 8, 60);
        int32_t parts = (int32_t)instance_draw(&rng, 1, 8);
        for (int32_t i = 0; i < count; i++) {
            int64_t weight = instance_draw(&rng, 50, 100);
            heaviest = weight > heaviest ? weight : heaviest;
            sum[i] = all += weight;
        }
        hbp__partition_balanced(sum, count, parts, cuts);
        for (int32_t p = 0; p < parts; p++) {
            int64_t part = sum[cuts[p + 1] - 1] - (cuts[p] ? sum[cuts[p] - 1] : 0);
            largest = part > largest ? part : largest;
        }
        ck_assert_int_le(largest, all / parts + 2 * heaviest);
    }
}
END_TEST

START_TEST(uniform_deals_the_rest_out_first)
{
    int32_t cuts[5];
    hbp__partition_uniform(10, 4, cuts);
    ck_assert_mem_eq(cuts, ((int32_t[]){0, 3, 6, 8, 10}), sizeof cuts);
    hbp__partition_uniform(4, 4, cuts);
    ck_assert_mem_eq(cuts, ((int32_t[]){0, 1, 2, 3, 4}), sizeof cuts);
}
END_TEST

START_TEST_IN_CONTEXT(anchors_weigh_what_their_mode_says)
{
    const int64_t forward[8] = {5, 1, 1, 1, 5, 1, 1, 1}, parameters[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    hbp_layer_columns columns = {
        .struct_size = sizeof columns, .count = 8, .forward_ns = forward, .parameters = parameters};
    hbp_layers *layers;
    MAKES(context, layers, hbp_layers_create(context, &columns, &layers));
    hbp_pipeline_options pipeline = {.struct_size = sizeof pipeline, .stages = 2, .micro_batches = 1};
    hbp__stages s;
    int32_t cuts[9];
    OK(context, hbp__stages_open(context, layers, &pipeline, &s));
    OK(context, hbp__anchor(context, &s, HBP__LAYER_PARTITION_BALANCED, cuts));
    ck_assert_int_eq(cuts[1], 4);
    OK(context, hbp__anchor(context, &s, HBP__LAYER_PARTITION_PARAMETERS, cuts));
    ck_assert_int_eq(cuts[1],
                     6); /* 21 and 15: bisection ends above 21, and a part is filled to the last item */
    OK(context, hbp__anchor(context, &s, HBP__LAYER_PARTITION_UNIFORM, cuts));
    ck_assert_int_eq(cuts[1], 4);
    hbp__stages_close(&s);
    pipeline.stages = 4;
    pipeline.virtual_stages = 2;
    pipeline.micro_batches = 4;
    OK(context, hbp__stages_open(context, layers, &pipeline, &s));
    OK(context, hbp__anchor(context, &s, HBP__LAYER_PARTITION_BALANCED, cuts));
    for (int32_t c = 0; c <= 8; c++)
        ck_assert_int_eq(cuts[c], c);
    hbp__stages_close(&s);
}
END_TEST

TEST_MAIN("anchors", balanced_is_that_of_deepspeed, no_part_is_empty, balanced_is_balanced,
          uniform_deals_the_rest_out_first, anchors_weigh_what_their_mode_says)
