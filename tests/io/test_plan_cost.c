/* The cost and the note in a plan file's header. */
#include "costs.h"
#include "plan_files.h"
#include "reseal.h"

/* Every term of one is that of the other. */
static void expect_same_cost(hbp_context *context, const hbp_cost *a, const hbp_cost *b)
{
    hbp_cost_terms x = {.struct_size = sizeof x}, y = {.struct_size = sizeof y};
    OK(context, hbp_cost_get_terms(context, a, &x));
    OK(context, hbp_cost_get_terms(context, b, &y));
#define SAME(name) ck_assert(!(x.name < y.name) && !(x.name > y.name));
    HBP__COST_WHOLE_NUMBERS(SAME)
    HBP__COST_NUMBERS(SAME)
    HBP__COST_VISION_NUMBERS(SAME)
    HBP__COST_LOCKSTEP_NUMBERS(SAME)
#undef SAME
    ck_assert_int_eq(x.degrees, y.degrees);
    for (int32_t i = 0; i < x.degrees; i++) {
        ck_assert_int_eq(x.degree[i], y.degree[i]);
        ck_assert(memcmp(&x.sp_latency_ns[i], &y.sp_latency_ns[i], sizeof(double)) == 0);
        ck_assert(memcmp(&x.sp_ns_per_token[i], &y.sp_ns_per_token[i], sizeof(double)) == 0);
    }
    for (int32_t sp = 1; sp <= 8; sp *= 2)
        ck_assert_int_eq(hbp_cost_predict_pack_ns(a, sp, 3, 5000, 7e6, 2),
                         hbp_cost_predict_pack_ns(b, sp, 3, 5000, 7e6, 2));
}

static hbp_cost *cost_of(hbp_context *context, int shape)
{
    if (shape == 0)
        return test_cost(context);
    if (shape == 1)
        return test_cost_vision(context, 16, 1500, 2e5);
    hbp_cost *plain = test_cost(context), *cost = NULL;
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    OK(context, hbp_cost_get_terms(context, plain, &terms));
    terms.lockstep_ranks = 8;
    terms.uneven_micro_batches = 1;
    OK(context, hbp_cost_create_terms(context, &terms, &cost));
    hbp_cost_free(plain);
    return cost;
}

START_TEST(cost_and_note_come_back_as_they_were_saved)
{
    hbp_context *context = test_context();
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "plan.msgpack");
    hbp_plan *plan = drawn_plan(context, 3, 60);
    for (int shape = -1; shape < 3; shape++) {
        hbp_cost *cost = shape < 0 ? NULL : cost_of(context, shape), *back;
        hbp_plan_save_options options = {.struct_size = sizeof options, .cost = cost};
        options.note = shape % 2 ? NULL : "hbp plan lengths.npy";
        OK(context, hbp_plan_save(context, plan, path, &options));
        hbp_plan_file *file;
        OK(context, hbp_plan_file_open(context, path, &file));
        ck_assert_str_eq(hbp_plan_file_get_note(file), options.note ? options.note : "");
        if (!cost) {
            FAILS(context, HBP_E_INVALID, "plan.msgpack: the plan was saved without its cost",
                  hbp_plan_file_get_cost(context, file, &back));
        } else {
            OK(context, hbp_plan_file_get_cost(context, file, &back));
            expect_same_cost(context, cost, back);
            ck_assert_str_eq(hbp_cost_get_source(back, "pack_ns"), "plan file");
        }
        hbp_cost_free(cost);
        hbp_cost_free(back);
        hbp_plan_file_free(file);
    }
    ck_assert_str_eq(hbp_plan_file_get_note(NULL), "");
    hbp_plan_free(plan);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

/* Bytes of the header's cost changed behind right checksums: an answer, or a refusal that says where. */
START_TEST(no_changed_cost_does_harm)
{
    hbp_context *context = test_context();
    hbp_plan *plan = drawn_plan(context, 3, 30);
    hbp_cost *cost = cost_of(context, 2);
    hbp_plan_save_options options = {.struct_size = sizeof options, .cost = cost, .level = 1};
    size_t bytes;
    uint8_t *data = saved(context, plan, &options, &bytes);
    size_t key = 0;
    while (key < bytes - 5 && memcmp(data + key,
                                     "\xa4"
                                     "cost",
                                     5) != 0)
        key++;
    ck_assert_uint_lt(key, bytes - 5);
    int refused = 0, taken = 0;
    for (size_t at = key + 5; at < key + 900 && at < bytes - 34; at++)
        for (int flip = 1; flip < 256; flip *= 8) {
            hbp_plan_file *file = NULL;
            hbp_cost *back = NULL;
            data[at] ^= (uint8_t)flip;
            reseal(data, bytes);
            if (hbp__plan_file_open_memory(context, data, (int64_t)bytes, &file) == HBP_OK) {
                hbp_status status = hbp_plan_file_get_cost(context, file, &back);
                ck_assert(status == HBP_OK || status == HBP_E_FORMAT);
                refused += status != HBP_OK;
                taken += back != NULL;
                hbp_cost_free(back);
                hbp_plan_file_free(file);
            }
            data[at] ^= (uint8_t)flip;
        }
    ck_assert_int_gt(refused, 20);
    ck_assert_int_gt(taken, 20);
    free(data);
    hbp_cost_free(cost);
    hbp_plan_free(plan);
    hbp_context_free(context);
}
END_TEST

typedef struct bytes_of {
    const uint8_t *data;
    size_t bytes;
} bytes_of;

static hbp_status read_cost(hbp_context *context, void *user)
{
    const bytes_of *file_of = user;
    hbp_plan_file *file = NULL;
    hbp_cost *back = NULL;
    hbp_status status = hbp__plan_file_open_memory(context, file_of->data, (int64_t)file_of->bytes, &file);
    if (status == HBP_OK)
        status = hbp_plan_file_get_cost(context, file, &back);
    ck_assert((status == HBP_OK) == (back != NULL));
    hbp_cost_free(back);
    hbp_plan_file_free(file);
    return status;
}

START_TEST(short_memory_leaves_nothing)
{
    hbp_context *context = test_context();
    hbp_plan *plan = drawn_plan(context, 5, 40);
    hbp_cost *cost = cost_of(context, 2);
    hbp_plan_save_options options = {.struct_size = sizeof options, .cost = cost, .note = "a note"};
    size_t bytes;
    uint8_t *data = saved(context, plan, &options, &bytes);
    failing_sweep(read_cost, &(bytes_of){data, bytes});
    free(data);
    hbp_cost_free(cost);
    hbp_plan_free(plan);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("plan_cost", cost_and_note_come_back_as_they_were_saved, no_changed_cost_does_harm,
          short_memory_leaves_nothing)
