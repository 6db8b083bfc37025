/* A cost read out of the plan file that it was saved with. */
#include "costs.h"
#include "io/cost/cost_file.h"
#include "plan_changes.h"

/* The costs that a header writes in different ways: plain, with vision units, with lockstep sets, with both.
 */
static hbp_cost *drawn_cost(hbp_context *context, int kind)
{
    hbp_cost *cost = kind & 1 ? test_cost_vision(context, 16, 1. / 3, .1) : test_cost(context), *other;
    if (!(kind & 2))
        return cost;
    hbp_cost_terms terms = cost->terms;
    terms.lockstep_ranks = 1;
    terms.uneven_micro_batches = 1;
    OK(context, hbp_cost_create_terms(context, &terms, &other));
    hbp_cost_free(cost);
    return other;
}

static void check_same(hbp_context *context, const hbp_cost *a, const hbp_cost *b)
{
    (void)context;
#define SAME(name) ck_assert_mem_eq(&a->terms.name, &b->terms.name, sizeof a->terms.name);
    HBP__COST_WHOLE_NUMBERS(SAME)
    HBP__COST_NUMBERS(SAME)
    HBP__COST_VISION_NUMBERS(SAME)
    HBP__COST_LOCKSTEP_NUMBERS(SAME)
    SAME(degrees)
#undef SAME
    const size_t rows = (size_t)a->terms.degrees;
    ck_assert_mem_eq(a->degree, b->degree, rows * sizeof *a->degree);
    ck_assert_mem_eq(a->sp_latency_ns, b->sp_latency_ns, rows * sizeof *a->sp_latency_ns);
    ck_assert_mem_eq(a->sp_ns_per_token, b->sp_ns_per_token, rows * sizeof *a->sp_ns_per_token);
}

START_TEST_IN_CONTEXT(a_plan_files_cost_is_the_one_it_was_saved_with)
{
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "plan.msgpack");
    hbp_plan *plan = keep(drawn_plan(context, 9, 60));
    for (int kind = 0; kind < 4; kind++) {
        hbp_cost *cost = drawn_cost(context, kind), *read;
        const hbp_plan_save_options options = {.struct_size = sizeof options, .cost = cost};
        OK(context, hbp_plan_save(context, plan, path, &options));
        OK(context, hbp_cost_load(context, path, &read));
        check_same(context, cost, read);
        for (int32_t i = 0; i < HBP__COST_TERM_COUNT; i++)
            ck_assert_str_eq(read->source[i], "plan file");
        ck_assert_str_eq(hbp_cost_get_model_name(read), "");
        hbp_cost_free(read);
        hbp_cost_free(cost);
    }
    hbp_cost *none;
    OK(context, hbp_plan_save(context, plan, path, NULL));
    FAILS(context, HBP_E_FORMAT, "plan.msgpack: the plan was saved without its cost",
          hbp_cost_load(context, path, &none));
    ck_assert_ptr_null(none);
    file_write(path,
               "\xde\x00\x02\xa6"
               "format\xa8"
               "hbp-plan\xa7version\x01",
               28);
    FAILS(context, HBP_E_FORMAT, "plan.msgpack: byte 28: the file is cut off: it has no tail",
          hbp_cost_load(context, path, &none));
    file_write(path,
               "\xde\x00\x02\xa6"
               "format\xa8"
               "hbp-none\xa7version\x01",
               28);
    FAILS(context, HBP_E_FORMAT, "plan.msgpack, line 1", hbp_cost_load(context, path, &none));
    folder_remove(folder);
}
END_TEST

static hbp_status load_bytes(hbp_context *context, const void *user, const void *data, size_t bytes,
                             void **out)
{
    hbp_plan_file *file = NULL;
    hbp_cost *cost = NULL;
    (void)user;
    *out = NULL;
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__plan_file_open_memory(context, data, (int64_t)bytes, &file));
    int64_t mark = hbp__scratch_mark(context);
    hbp_status status = hbp__leave(context, mark, hbp__cost_of_plan(context, file, &cost));
    hbp_plan_file_free(file);
    *out = cost;
    return status;
}

static hbp_status open_cost(hbp_context *context, const void *user, const char *path, void **out)
{
    hbp_cost *cost = NULL;
    (void)user;
    hbp_status status = hbp_cost_load(context, path, &cost);
    *out = cost;
    return status;
}

static void free_cost(hbp_context *context, const void *user, void *cost)
{
    (void)context, (void)user;
    hbp_cost_free(cost);
}

/* One that could have been given by its terms. */
static void expect_given(hbp_context *context, const void *user, void *object)
{
    const hbp_cost *cost = object;
    hbp_cost *again = NULL;
    (void)user;
    OK(context, hbp_cost_create_terms(context, &cost->terms, &again));
    check_same(context, cost, again);
    hbp_cost_free(again);
}

typedef struct kept {
    const hbp_plan *plan;
    hbp_plan_save_options options;
} kept;

static hbp_status save_plan(hbp_context *context, const void *user, const char *path)
{
    const kept *k = user;
    return hbp_plan_save(context, k->plan, path, &k->options);
}

START_TEST_IN_CONTEXT(harm_is_found_or_makes_another_cost)
{
    char folder[64], path[128];
    size_t bytes, refused;
    folder_make(folder);
    folder_path(path, folder, "plan.msgpack");
    hbp_plan *plan = keep(drawn_plan(context, 3, 5));
    hbp_cost *cost = keep(drawn_cost(context, 3));
    const kept k = {plan, {.struct_size = sizeof k.options, .level = -1, .cost = cost}};
    OK(context, save_plan(context, &k, path));
    uint8_t *data = (uint8_t *)file_read(path, &bytes);
    const harm_kind kind = {.load = load_bytes,
                            .release = free_cost,
                            .reseal = reseal,
                            .expect = expect_given,
                            .save = save_plan,
                            .open = open_cost,
                            .user = &k};
    ck_assert_uint_gt(harm_borne(&kind, data, bytes, bytes, &refused), 0);
    ck_assert_uint_gt(refused, 0);
    harm_survived(&kind, data, bytes);
    free(data);
    folder_remove(folder);
}
END_TEST

TEST_MAIN("cost_load", a_plan_files_cost_is_the_one_it_was_saved_with, harm_is_found_or_makes_another_cost)
