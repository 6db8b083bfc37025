/* What cannot be run is said before anything is. */
#include "model/transformer.h"
#include "walk/check.h"
#include "walks.h"

static hbp_plan *plan_for(hbp_context *context, int32_t ranks, int64_t capacity)
{
    uint32_t tokens[30];
    walk_draw(tokens, 30, 400, 1);
    hbp_lengths *lengths = walk_lengths(context, tokens, 30);
    hbp_cost *cost = walk_cost(context, ranks, ranks, capacity);
    hbp_plan *plan = NULL;
    OK(context, hbp_plan_step(context, lengths, cost, NULL, &plan));
    hbp_cost_free(cost);
    hbp_lengths_free(lengths);
    return plan;
}

static ex_check make_check(hbp_model *model, ex_shape *shape, const hbp_plan *plan, int32_t ranks)
{
    ex_fault fault = {0};
    ck_assert_int_eq(ex_shape_from_model(model, shape, &fault), 0);
    return (ex_check){.plan = plan,
                      .model = model,
                      .shape = shape,
                      .ranks = ranks,
                      .sharers = 1,
                      .steps = 1,
                      .recompute = -1};
}

static void refuses(const ex_check *check, const char *text)
{
    ex_fault fault = {0};
    ck_assert_int_eq(ex_check_plan(check, &fault), -1);
    ck_assert_msg(strstr(fault.text, text) != NULL, "'%s' lacks '%s'", fault.text, text);
}

START_TEST(plans_that_do_not_suit_are_refused)
{
    hbp_context *context = test_context();
    hbp_model *model = walk_model(context);
    hbp_plan *plan = plan_for(context, 8, 60);
    ex_shape shape;
    ex_check c = make_check(model, &shape, plan, 8);
    ex_fault fault = {0};
    ck_assert_msg(ex_check_plan(&c, &fault) == 0, "%s", fault.text);
    c.ranks = 4;
    refuses(&c, "the plan is for 8 ranks and there are 4; start 8");
    c.ranks = 8;
    c.recompute = 5;
    refuses(&c, "5 layers to recompute; the model has 4");
    c.recompute = -1;
    c.first_step = 1;
    refuses(&c, "step 1 is not in the plan, which has 1");
    c.first_step = 0;
    c.steps = 2;
    refuses(&c, "steps 0 to 1 are not in the plan, which has 1");
    c.steps = 1;
    c.first_step = 0;
    hbp_model_fields f = {.struct_size = sizeof f};
    OK(context, hbp_model_get_fields(context, model, &f));
    f.heads = 6; /* not by 4 */
    f.kv_heads = 6;
    hbp_model *other = NULL;
    OK(context, hbp_model_create(context, &f, &other));
    c.model = other;
    refuses(&c, "SP degree");
    c.unpacked = 1; /* nothing of the plan's degrees is run */
    ck_assert_int_eq(ex_check_plan(&c, &fault), 0);
    hbp_model_free(other);
    hbp_plan_free(plan);
    hbp_model_free(model);
    hbp_context_free(context);
}
END_TEST

START_TEST(memory_is_checked_to_the_byte)
{
    hbp_context *context = test_context();
    hbp_model *model = walk_model(context);
    hbp_plan *plan = plan_for(context, 4, 100);
    ex_shape shape;
    ex_check c = make_check(model, &shape, plan, 4);
    ex_fault fault = {0};
    ex_device *large = ex_counting_open(EX_F32, INT64_MAX / 2, NULL, &fault);
    int64_t arena = 0;
    ck_assert_msg(ex_check_memory(&c, large, &arena, &fault) == 0, "%s", fault.text);
    ck_assert_int_gt((int)arena, 0);
    /* The most that any pack needs, one by one. */
    int64_t most = 0;
    hbp_plan_view view = plan_view(plan);
    for (int64_t p = 0; p < view.packs; p++) {
        int64_t tokens =
            (view.pack_padded_tokens[p] + view.pack_sp[p] - 1) / view.pack_sp[p] * view.pack_sp[p];
        int64_t bytes =
            ex_model_measure(large, &shape, view.pack_sp[p], tokens ? tokens : view.pack_sp[p],
                             view.pack_offsets[p + 1] - view.pack_offsets[p] + 2, view.pack_recompute[p]);
        most = bytes > most ? bytes : most;
    }
    ck_assert_int_ge((int)arena, (int)most);
    ck_assert_int_le((int)arena, (int)(most + most / 50 + 4096));
    /* More is enough, less is not; and two ranks that share it need twice as much. */
    int64_t need = arena + ex_shape_parameters(&shape) * 20;
    for (int sharers = 1; sharers <= 2; sharers++)
        for (int short_by = 0; short_by <= 1; short_by++) {
            ex_fault said = {0};
            ex_device *small = ex_counting_open(EX_F32, sharers * need - short_by, NULL, &said);
            c.sharers = sharers;
            ck_assert_msg(ex_check_memory(&c, small, &arena, &said) == -short_by, "%s", said.text);
            ck_assert(!short_by ||
                      (strstr(said.text, "GiB a rank") && strstr(said.text, "layers recomputed")));
            ex_device_free(small);
        }
    ex_device_free(large);
    /* Its weights alone are too large: said at once, whatever its packs and layers. */
    ex_fault said = {0};
    ex_device *tiny = ex_counting_open(EX_F32, ex_shape_parameters(&shape) * 20 - 1, NULL, &said);
    c.sharers = 1;
    shape.layers = 1 << 24;
    ck_assert_int_eq(ex_check_memory(&c, tiny, &arena, &said), -1);
    ck_assert_msg(strstr(said.text, "memory: weights and optimiser need") != NULL, "%s", said.text);
    ex_device_free(tiny);
    hbp_plan_free(plan);
    hbp_model_free(model);
    hbp_context_free(context);
}
END_TEST

START_TEST(documents_of_one_token_fit)
{
    hbp_context *context = test_context();
    hbp_model *model = walk_model(context);
    uint32_t tokens[7] = {1, 1, 1, 1, 1, 1, 1};
    hbp_lengths *lengths = walk_lengths(context, tokens, 7);
    hbp_cost *cost = walk_cost(context, 1, 1, 3);
    hbp_plan *plan = NULL;
    OK(context, hbp_plan_step(context, lengths, cost, NULL, &plan));
    ex_shape shape;
    ex_check c = make_check(model, &shape, plan, 1);
    ex_fault fault = {0};
    ex_device *large = ex_counting_open(EX_F32, INT64_MAX / 2, NULL, &fault);
    int64_t arena = 0;
    ck_assert_msg(ex_check_memory(&c, large, &arena, &fault) == 0, "%s", fault.text);
    ck_assert_int_gt((int)arena, 0);
    ex_device_free(large);
    hbp_plan_free(plan);
    hbp_cost_free(cost);
    hbp_lengths_free(lengths);
    hbp_model_free(model);
    hbp_context_free(context);
}
END_TEST

START_TEST(names_of_devices_are_compared)
{
    static const struct {
        const char *name, *device;
        int same;
    } pairs[] = {{"h100", "NVIDIA H100 80GB HBM3", 1},
                 {"a100-80", "NVIDIA A100-SXM4-80GB", 1},
                 {"NVIDIA H100 80GB HBM3 x 8", "NVIDIA H100 80GB HBM3", 1},
                 {"Intel(R) Xeon(R) Processor x 2", "Intel(R) Xeon(R) Processor", 1},
                 {"h100", "NVIDIA A100-SXM4-80GB", 0},
                 {"NVIDIA H200 x 8", "NVIDIA H100 80GB HBM3", 0},
                 {"h200", "Intel(R) Xeon(R) Processor", 0},
                 {"AMD EPYC 7763 x 2", "Intel(R) Xeon(R) Processor", 0}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        ck_assert_msg(!!ex_check_same_device(pairs[i].name, pairs[i].device) == pairs[i].same, "%s, %s",
                      pairs[i].name, pairs[i].device);
}
END_TEST

TEST_MAIN("check", plans_that_do_not_suit_are_refused, memory_is_checked_to_the_byte,
          documents_of_one_token_fit, names_of_devices_are_compared)
