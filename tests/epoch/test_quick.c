/* One call makes the plan of the long way, byte for byte; its failures are those of the long way, in words.
 */
#include "keep.h"
#include "test.h"
#include "views.h"

enum { SAMPLES = 500 };

static int64_t tokens[SAMPLES];

static void draw_tokens(void)
{
    for (int64_t i = 0; i < SAMPLES; i++)
        tokens[i] = 30 + i * 7919 % 5000 + (i % 50 ? 0 : 40000);
}

START_TEST_IN_CONTEXT(it_is_the_long_way)
{
    draw_tokens();
    hbp_epoch_options options = {.struct_size = sizeof options, .tokens_per_step = 600000, .seed = 3};
    hbp_lengths *lengths = NULL;
    hbp_model *model = NULL;
    hbp_machine *machine = NULL;
    hbp_cost *cost = NULL;
    hbp_plan *quick = NULL, *plan = NULL;
    OK(context, hbp_lengths_create_i64(context, tokens, SAMPLES, NULL, &lengths));
    OK(context, hbp_model_create_preset(context, "llama-3.1-8b,layers=16", &model));
    OK(context, hbp_machine_create_preset(context, "h100:2", &machine));
    OK(context, hbp_cost_create(context, model, machine, NULL, &cost));
    char why[8] = "before";
    for (int given = 0; given < 2; given++) {
        const hbp_epoch_options *o = given ? &options : NULL;
        OK(context, hbp_plan_epoch(context, lengths, cost, o, &plan));
        ck_assert_int_ge(hbp_plan_quick(tokens, SAMPLES, "llama-3.1-8b,layers=16", "h100:2", o, &quick,
                                        given ? why : NULL, given ? sizeof why : 0),
                         0);
        ck_assert_uint_eq(plan_digest(quick), plan_digest(plan));
        hbp_plan_free(quick);
        hbp_plan_free(plan);
    }
    ck_assert_str_eq(why, "");
    hbp_cost_free(cost);
    hbp_machine_free(machine);
    hbp_model_free(model);
    hbp_lengths_free(lengths);
}
END_TEST

static void refused(hbp_status expected, const char *text, hbp_status status, const hbp_plan *plan,
                    const char *why)
{
    ck_assert_int_eq(status, expected);
    ck_assert_ptr_null(plan);
    ck_assert_msg(strstr(why, text), "'%s' lacks '%s'", why, text);
}

#define REFUSED(status, text, tokens, count, model, machine, options)                                        \
    do {                                                                                                     \
        hbp_plan *plan = (hbp_plan *)(uintptr_t)8;                                                           \
        char why[256] = "before";                                                                            \
        hbp_status got = hbp_plan_quick(tokens, count, model, machine, options, &plan, why, sizeof why);     \
        refused(status, text, got, plan, why);                                                               \
    } while (0)

START_TEST(failures_say_why)
{
    draw_tokens();
    hbp_epoch_options wrong = {.struct_size = sizeof wrong, .effort = 12};
    REFUSED(HBP_E_INVALID, "tokens is NULL", NULL, 4, "llama-3.1-8b", "h100", NULL);
    REFUSED(HBP_E_INVALID, "the data set has 0 samples", tokens, 0, "llama-3.1-8b", "h100", NULL);
    REFUSED(HBP_E_INVALID, "llama-3.1-8b", tokens, SAMPLES, "llama-3.1-8c", "h100", NULL);
    REFUSED(HBP_E_INVALID, "NULL", tokens, SAMPLES, NULL, "h100", NULL);
    REFUSED(HBP_E_INVALID, "h100", tokens, SAMPLES, "llama-3.1-8b", "h101", NULL);
    REFUSED(HBP_E_INVALID, "NULL", tokens, SAMPLES, "llama-3.1-8b", NULL, NULL);
    REFUSED(HBP_E_INVALID, "`effort` is 12; it must be in 0..9", tokens, SAMPLES, "llama-3.1-8b", "h100",
            &wrong);
    REFUSED(HBP_E_INFEASIBLE, "GiB on each of 8 GPUs for weights", tokens, SAMPLES, "llama-3.1-70b", "h100",
            NULL);
    char why[9] = "";
    hbp_plan *plan = NULL;
    ck_assert_int_eq(hbp_plan_quick(NULL, 4, "llama-3.1-8b", "h100", NULL, &plan, why, sizeof why),
                     HBP_E_INVALID);
    ck_assert_str_eq(why, "tokens i");
    ck_assert_int_eq(hbp_plan_quick(NULL, 4, "llama-3.1-8b", "h100", NULL, &plan, why, 1), HBP_E_INVALID);
    ck_assert_str_eq(why, "");
    memcpy(why, "kept", 5);
    ck_assert_int_eq(hbp_plan_quick(NULL, 4, "llama-3.1-8b", "h100", NULL, &plan, why, 0), HBP_E_INVALID);
    ck_assert_int_eq(hbp_plan_quick(NULL, 4, "llama-3.1-8b", "h100", NULL, &plan, why, -5), HBP_E_INVALID);
    ck_assert_str_eq(why, "kept");
    ck_assert_int_eq(hbp_plan_quick(tokens, 4, "llama-3.1-8b", "h100", NULL, NULL, NULL, 0), HBP_E_INVALID);
}
END_TEST

TEST_MAIN("quick", it_is_the_long_way, failures_say_why)
