/* Plans of fixed inputs have fixed digests: every compiler, optimisation level and sanitizer that builds this
 * test checks that it plans the same bytes. A change of these numbers is a change of every user's plans: say
 * so in the changelog. */
#include "base/methods.h"
#include "base/rng.h"
#include "failing.h"
#include "flexsp.h"
#include "hbp/hbp.h"
#include "nodes.h"
#include "test.h"
#include "views.h"

typedef struct golden {
    const char *model;
    const char *machine;
    int32_t nodes;
    int32_t mode;
    int64_t count;
    int64_t sequence_multiple;
    uint64_t digest;
} golden;

static const golden goldens[] = {
    {"llama-3.1-8b", "h100", 4, HBP__EPOCH_SEARCH, 20000, 0, UINT64_C(0x0e1e18bd640bbb47)},
    {"llama-3.1-8b", "h100", 4, HBP__EPOCH_HBP, 20000, 0, UINT64_C(0x1f33d1e949eb4561)},
    {"qwen2.5-32b", "h100", 4, HBP__EPOCH_SEARCH, 5000, 16, UINT64_C(0xf7f7277926772cc1)},
    {"llama-3.1-70b", "h200", 32, HBP__EPOCH_SEARCH, 3000, 0, UINT64_C(0x74bea7b27b9e7f1b)},
    {"gpt-7b", "a100-40", 8, HBP__EPOCH_SEARCH, 2000, 8, UINT64_C(0x0d2ee17bfb246f46)},
    {"llama-3.1-8b", "h100", 4, HBP__EPOCH_SEARCH, 40000, 0, UINT64_C(0x49a4ab93ad548299)},
};

/* Lengths 2^(k/8) scaled, by a table that needs no libm: a long tail up to 100,000. */
static void draw(uint32_t *length, int64_t count)
{
    static const uint32_t eighths[] = {1000, 1091, 1189, 1297, 1414, 1542, 1682, 1834};
    hbp__rng rng = hbp__rng_make(2026, 0, 0);
    for (int64_t i = 0; i < count; i++) {
        uint32_t sum = 0;
        for (int k = 0; k < 6; k++)
            sum += hbp__rng_below(&rng, 23);
        uint32_t x = eighths[sum % 8] << (sum / 8) >> 8;
        length[i] = 1 + (x < 100000 ? x : 99999);
    }
}

static hbp_plan *plan_golden(hbp_context *context, const golden *g)
{
    uint32_t *length = malloc((size_t)g->count * sizeof *length);
    draw(length, g->count);
    hbp_lengths *lengths = NULL;
    hbp_model *model = NULL;
    hbp_machine *machine = NULL;
    hbp_cost *cost = NULL;
    hbp_plan *plan = NULL;
    OK(context, hbp_lengths_create_u32(context, length, g->count, NULL, &lengths));
    OK(context, hbp_model_create_preset(context, g->model, &model));
    OK(context, make_nodes(context, g->machine, g->nodes, &machine));
    OK(context, hbp_cost_create(context, model, machine, NULL, &cost));
    hbp_epoch_options options = {.struct_size = sizeof options,
                                 .method = hbp__epoch_name(g->mode),
                                 .sequence_multiple = g->sequence_multiple,
                                 .seed = 7};
    OK(context, hbp_plan_epoch(context, lengths, cost, &options, &plan));
    hbp_cost_free(cost);
    hbp_machine_free(machine);
    hbp_model_free(model);
    hbp_lengths_free(lengths);
    free(length);
    return plan;
}

START_TEST(fixed_inputs_give_fixed_plans)
{
    hbp_context *context = test_context();
    hbp_plan *plan = plan_golden(context, &goldens[_i]);
    ck_assert_msg(plan_digest(plan) == goldens[_i].digest, "row %d: digest is 0x%016llx", _i,
                  (unsigned long long)plan_digest(plan));
    hbp_plan_free(plan);
    hbp_context_free(context);
}
END_TEST

/* Steps, planned by the search: no MILP solver has a say in these. */
typedef struct golden_step {
    const char *model; /* a preset on h100 nodes of 8; NULL: FlexSP's 7B at 192K on A100-40GB */
    int32_t ranks;
    int64_t count;
    int32_t effort;
    int32_t any_degree;
    int64_t sequence_multiple;
    uint64_t digest;
} golden_step;

static const golden_step golden_steps[] = {
    {NULL, 64, 512, 1, 0, 0, UINT64_C(0xd8ebeef1cced0005)},
    {NULL, 16, 64, 1, 0, 0, UINT64_C(0x8f8edba95fc3ed4f)},
    {NULL, 16, 64, 3, 0, 0, UINT64_C(0xa7588da1746e8e99)},
    {"llama-3.1-8b", 64, 512, 1, 0, 0, UINT64_C(0x920f0e37fead00c4)},
    {"llama-3.1-8b", 16, 64, 1, 0, 16, UINT64_C(0xa7a3dcc79ec462f5)},
    {"qwen2.5-32b", 64, 256, 1, 1, 0, UINT64_C(0x1da0f1877043747d)},
};

static hbp_cost *cost_of_golden_step(hbp_context *context, const golden_step *g)
{
    if (!g->model)
        return flexsp_cost(context, "7B", 192, 0, g->ranks);
    hbp_model *model = NULL;
    hbp_machine *machine = NULL;
    hbp_cost *cost = NULL;
    OK(context, hbp_model_create_preset(context, g->model, &model));
    OK(context, make_nodes(context, "h100", g->ranks / 8, &machine));
    OK(context, hbp_cost_create(context, model, machine, NULL, &cost));
    hbp_machine_free(machine);
    hbp_model_free(model);
    return cost;
}

START_TEST(fixed_batches_give_fixed_steps)
{
    const golden_step *g = &golden_steps[_i];
    hbp_context *context = test_context();
    hbp_cost *cost = cost_of_golden_step(context, g);
    uint32_t length[512];
    hbp_lengths *lengths = NULL;
    hbp_plan *plan = NULL;
    ck_assert_ptr_nonnull(cost);
    draw(length, g->count);
    OK(context, hbp_lengths_create_u32(context, length, g->count, NULL, &lengths));
    hbp_step_options options = {.struct_size = sizeof options,
                                .effort = g->effort,
                                .any_degree = g->any_degree,
                                .sequence_multiple = g->sequence_multiple};
    OK(context, hbp_plan_step(context, lengths, cost, &options, &plan));
    OK(context, hbp_plan_validate(context, plan, lengths, cost));
    ck_assert_msg(plan_digest(plan) == g->digest, "step %d: digest is 0x%016llx", _i,
                  (unsigned long long)plan_digest(plan));
    hbp_plan_free(plan);
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

/* A shuffled input that is put back in order is the same input; another order is another plan of the same
 * lengths. */
START_TEST(the_order_of_samples_only_names_them)
{
    hbp_context *context = test_context();
    uint32_t length[5000], order[5000], back[5000];
    draw(length, 5000);
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    for (uint32_t i = 0; i < 5000; i++)
        order[i] = i;
    hbp__rng_shuffle_u32(&rng, order, 5000);
    for (uint32_t i = 0; i < 5000; i++)
        back[order[i]] = length[order[i]];
    ck_assert_mem_eq(back, length, sizeof length);
    hbp_lengths *a = NULL, *b = NULL;
    OK(context, hbp_lengths_create_u32(context, length, 5000, NULL, &a));
    OK(context, hbp_lengths_create_u32(context, back, 5000, NULL, &b));
    hbp_lengths_summary sa = {.struct_size = sizeof sa}, sb = sa;
    OK(context, hbp_lengths_get_summary(context, a, &sa));
    OK(context, hbp_lengths_get_summary(context, b, &sb));
    ck_assert_uint_eq(sa.digest, sb.digest);
    hbp_lengths_free(a);
    hbp_lengths_free(b);
    hbp_context_free(context);
}
END_TEST

/* What planning holds at its peak, the caller's borrowed lengths not counted: of a hierarchy 20 bytes a
 * sample and 140 a pack, so 24 a sample once packs hold 35 of them; where it is weighed against other steps,
 * whose samples are drawn or dealt, 125 a sample and 140 a pack. */
START_TEST(memory_is_bounded_by_samples_and_packs)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    int64_t count = 1000000;
    uint32_t *length = malloc((size_t)count * sizeof *length);
    draw(length, count);
    hbp_lengths *lengths = NULL;
    hbp_model *model = NULL;
    hbp_machine *machine = NULL;
    hbp_cost *cost = NULL;
    hbp_plan *plan = NULL;
    hbp_lengths_options borrow = {.struct_size = sizeof borrow, .borrow = 1};
    OK(context, hbp_lengths_create_u32(context, length, count, &borrow, &lengths));
    OK(context, hbp_model_create_preset(context, "llama-3.1-8b", &model));
    OK(context, hbp_machine_create_preset(context, "h100:4", &machine));
    OK(context, hbp_cost_create(context, model, machine, NULL, &cost));
    for (int weighed = 0; weighed < 2; weighed++) {
        hbp_epoch_options options = {.struct_size = sizeof options,
                                     .composition =
                                         weighed ? HBP_COMPOSITION_AUTO : HBP_COMPOSITION_HIERARCHY};
        f.peak_bytes = f.bytes;
        OK(context, hbp_plan_epoch(context, lengths, cost, &options, &plan));
        hbp_plan_view view = plan_view(plan);
        int64_t packs = view.packs;
        ck_assert_msg(f.peak_bytes <= (weighed ? 125 : 20) * count + 140 * packs + 1000000,
                      "%lld bytes for %lld samples in %lld packs", (long long)f.peak_bytes, (long long)count,
                      (long long)packs);
        hbp_plan_free(plan);
        plan = NULL;
    }
    hbp_cost_free(cost);
    hbp_machine_free(machine);
    hbp_model_free(model);
    hbp_lengths_free(lengths);
    hbp_context_free(context);
    ck_assert_int_eq(f.live, 0);
    free(length);
}
END_TEST

TEST_MAIN_LOOPS("determinism", NULL, NULL,
                {fixed_inputs_give_fixed_plans, 0, (int)(sizeof goldens / sizeof *goldens)},
                {fixed_batches_give_fixed_steps, 0, (int)(sizeof golden_steps / sizeof *golden_steps)},
                {the_order_of_samples_only_names_them, 0, 1}, {memory_is_bounded_by_samples_and_packs, 0, 1})
