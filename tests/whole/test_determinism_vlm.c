/* Vision-language plans of fixed inputs have fixed digests, as test_determinism.c says of others: data, cuts
 * and recomputation, and the time predicted. */
#include "base/methods.h"
#include "base/rng.h"
#include "hbp/hbp.h"
#include "test.h"

typedef struct golden {
    const char *model;
    int32_t tensor_parallel, stages, virtual_stages;
    int32_t data, partition, memory;
    double hbm_bytes; /* 0: the preset's */
    int64_t count;
    uint64_t digest;
    int64_t epoch_ns;
} golden;

static const golden goldens[] = {
    {"internvl-1.5-26b", 4, 4, 1, HBP__VLM_DATA_PACKED, HBP__LAYER_PARTITION_OPTIMAL, HBP__RECOMPUTE_OPTIMAL,
     0, 20000, UINT64_C(0xf6c7808d5e1faf01), INT64_C(879085860433)},
    {"internvl-1.5-26b", 4, 4, 1, HBP__VLM_DATA_PACKED, HBP__LAYER_PARTITION_OPTIMAL, HBP__RECOMPUTE_OPTIMAL,
     34e9, 3000, UINT64_C(0x3f15aad145c1c9dd), INT64_C(139810730194)},
    {"internvl-1.5-26b", 4, 4, 2, HBP__VLM_DATA_PACKED, HBP__LAYER_PARTITION_OPTIMAL, HBP__RECOMPUTE_OPTIMAL,
     0, 3000, UINT64_C(0x53de9a0a0b8ab4e0), INT64_C(109234223960)},
    {"internvl-1.5-26b", 4, 4, 1, HBP__VLM_DATA_ISF, HBP__LAYER_PARTITION_OMNIBAL, HBP__RECOMPUTE_OMNIBAL, 0,
     3000, UINT64_C(0x6b7f3a1003683fce), INT64_C(137592203674)},
    {"qwen2-vl-7b", 2, 2, 1, HBP__VLM_DATA_RANDOM, HBP__LAYER_PARTITION_PARAMETERS, HBP__RECOMPUTE_ALL, 0,
     3000, UINT64_C(0x1820ac04217a1171), INT64_C(69009353629)},
};

/* Samples of up to 6 units, some without; Qwen2-VL's units are tokens. */
static hbp_lengths *draw(hbp_context *context, int64_t count)
{
    hbp__rng rng = hbp__rng_make(2026, 0, 1);
    uint32_t *tokens = malloc((size_t)count * sizeof *tokens),
             *vision = malloc((size_t)count * sizeof *vision);
    ck_assert(tokens && vision);
    for (int64_t i = 0; i < count; i++) {
        vision[i] = hbp__rng_below(&rng, 7);
        tokens[i] = 256 * vision[i] + 20 + hbp__rng_below(&rng, 900);
    }
    hbp_lengths_options options = {.struct_size = sizeof options};
    options.vision = vision;
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_u32(context, tokens, count, &options, &lengths));
    free(tokens);
    free(vision);
    return lengths;
}

START_TEST(fixed_inputs_give_fixed_runs)
{
    const golden *g = &goldens[_i];
    hbp_context *context = test_context();
    hbp_lengths *lengths = draw(context, g->count);
    hbp_vlm *vlm = NULL;
    hbp_machine *machine = NULL;
    hbp_vlm_plan *plan = NULL;
    OK(context, hbp_vlm_create_preset(context, g->model, &vlm));
    OK(context, hbp_machine_create_preset(context, "a100-80:8", &machine));
    if (g->hbm_bytes > 0)
        OK(context, hbp_machine_set_field(context, machine, "hbm_bytes", g->hbm_bytes, "given"));
    hbp_vlm_options options = {.struct_size = sizeof options};
    options.tensor_parallel = g->tensor_parallel;
    options.pipeline_stages = g->stages;
    options.virtual_stages = g->virtual_stages;
    options.data_method = hbp__vlm_data_name(g->data);
    options.partition_method = hbp__layer_partition_name(g->partition);
    options.recompute_method = hbp__recompute_name(g->memory);
    options.seed = 7;
    OK(context, hbp_plan_vlm(context, lengths, vlm, machine, &options, &plan));
    hbp_vlm_plan_summary s = {.struct_size = sizeof s};
    OK(context, hbp_vlm_plan_get_summary(context, plan, &s));
    ck_assert_msg(s.digest == g->digest && s.epoch_ns == g->epoch_ns,
                  "row %d: digest is 0x%016llx, epoch_ns %lld", _i, (unsigned long long)s.digest,
                  (long long)s.epoch_ns);
    if (g->hbm_bytes > 0)
        ck_assert_int_gt(s.recomputed + s.selective, 0);
    hbp_vlm_plan_free(plan);
    hbp_machine_free(machine);
    hbp_vlm_free(vlm);
    hbp_lengths_free(lengths);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN_LOOPS("determinism_vlm", NULL, NULL,
                {fixed_inputs_give_fixed_runs, 0, (int)(sizeof goldens / sizeof *goldens)})
