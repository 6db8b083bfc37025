#include "hbp/io.h"
#include "plan_changes.h"

#include "unpacked.h"

/* Terms of a cost on four ranks, every one another number. */
static hbp_cost *small_cost(hbp_context *context, double ns_per_vision)
{
    const int32_t degree[] = {1, 2, 4};
    const double latency[] = {0, 1.5, 2.5}, per_token[] = {0, 0.25, 0.125};
    hbp_cost_terms terms = {.struct_size = sizeof terms,
                            .ranks = 4,
                            .domain_ranks = 4,
                            .layers = 6,
                            .ns_per_token = 3.5,
                            .pack_ns = 17,
                            .limit_bytes = 1 << 20,
                            .degrees = 3,
                            .degree = degree,
                            .sp_latency_ns = latency,
                            .sp_ns_per_token = per_token,
                            .ns_per_vision = ns_per_vision};
    hbp_cost *cost = NULL;
    OK(context, hbp_cost_create_terms(context, &terms, &cost));
    return cost;
}

static double number_of(const msgpack_object *map, const char *key)
{
    const msgpack_object *value = unpacked_find(map, key);
    ck_assert_msg(value != NULL, "no %s", key);
    return value->type == MSGPACK_OBJECT_POSITIVE_INTEGER ? (double)value->via.u64 : value->via.f64;
}

static void expect_text(const msgpack_object *map, const char *key, const char *text)
{
    const msgpack_object *value = unpacked_find(map, key);
    ck_assert(value && value->type == MSGPACK_OBJECT_STR && value->via.str.size == strlen(text));
    ck_assert_int_eq(memcmp(value->via.str.ptr, text, strlen(text)), 0);
}

START_TEST(any_msgpack_reader_opens_the_file)
{
    hbp_context *context = test_context();
    hbp_plan *plan = drawn_plan(context, 9, 300);
    hbp_cost *cost = small_cost(context, 0);
    hbp_plan_save_options options = {
        .struct_size = sizeof options, .chunk_steps = 3, .cost = cost, .note = "for the test"};
    size_t bytes, at = 0;
    uint8_t *data = saved(context, plan, &options, &bytes);
    msgpack_unpacked object;
    msgpack_unpacked_init(&object);
    int64_t steps = 0, samples = 0, dropped = 0, objects = 0;
    for (; at < bytes; objects++) {
        ck_assert_int_eq(msgpack_unpack_next(&object, (const char *)data, bytes, &at),
                         MSGPACK_UNPACK_SUCCESS);
        const msgpack_object *map = &object.data;
        if (objects == 0) {
            expect_text(map, "format", "hbp-plan");
            expect_text(map, "library", HBP_VERSION_STRING);
            expect_text(map, "note", "for the test");
            ck_assert(number_of(map, "version") == 1 && number_of(map, "steps") == (double)plan->steps);
            const msgpack_object *terms = unpacked_find(map, "cost");
            ck_assert(number_of(terms, "ns_per_token") == 3.5 && number_of(terms, "pack_ns") == 17);
            ck_assert(number_of(terms, "layers") == 6 && number_of(terms, "limit_bytes") == 1 << 20);
            const msgpack_object *table = unpacked_find(terms, "sp_ns_per_token");
            ck_assert(table && table->type == MSGPACK_OBJECT_ARRAY && table->via.array.size == 3);
            ck_assert(table->via.array.ptr[2].via.f64 == 0.125);
        } else if (unpacked_find(map, "first_step")) {
            ck_assert(number_of(map, "first_step") == (double)steps);
            ck_assert(number_of(map, "steps") <= 3);
            steps += (int64_t)number_of(map, "steps");
            samples += (int64_t)number_of(map, "samples");
            dropped += (int64_t)number_of(map, "dropped");
            ck_assert_int_eq(unpacked_find(map, "data")->type, MSGPACK_OBJECT_BIN);
        } else if (at < bytes) {
            ck_assert(number_of(map, "chunks") == (double)(objects - 1));
        } else {
            ck_assert_int_eq(map->type, MSGPACK_OBJECT_BIN);
            ck_assert_uint_eq(map->via.bin.size, 32);
        }
    }
    ck_assert_int_eq(steps, plan->steps);
    ck_assert_int_eq(samples, plan->samples);
    ck_assert_int_eq(dropped, plan->dropped);
    msgpack_unpacked_destroy(&object);
    free(data);
    hbp_cost_free(cost);
    hbp_plan_free(plan);
    hbp_context_free(context);
}
END_TEST

/* A cost's vision terms stand in the header when it charges vision units: older files stay as they were. */
START_TEST(the_header_tells_a_cost_of_vision_units)
{
    hbp_context *context = test_context();
    hbp_plan *plan = drawn_plan(context, 1, 100);
    for (int charges = 0; charges < 2; charges++) {
        hbp_cost *cost = small_cost(context, charges ? 7.5 : 0);
        hbp_plan_save_options options = {.struct_size = sizeof options, .cost = cost};
        size_t bytes, at = 0;
        uint8_t *data = saved(context, plan, &options, &bytes);
        msgpack_unpacked object;
        msgpack_unpacked_init(&object);
        ck_assert_int_eq(msgpack_unpack_next(&object, (const char *)data, bytes, &at),
                         MSGPACK_UNPACK_SUCCESS);
        const msgpack_object *terms = unpacked_find(&object.data, "cost");
        ck_assert_int_eq(unpacked_find(terms, "recompute_vision") != NULL, charges);
        ck_assert_int_eq(unpacked_find(terms, "vision_bytes") != NULL, charges);
        ck_assert(!charges || number_of(terms, "ns_per_vision") == 7.5);
        ck_assert(number_of(&object.data, "version") == 2 && number_of(&object.data, "vision") > 0);
        ck_assert(number_of(&object.data, "modalities") == 7);
        msgpack_unpacked_destroy(&object);
        free(data);
        hbp_cost_free(cost);
    }
    hbp_plan_free(plan);
    hbp_context_free(context);
}
END_TEST

START_TEST(chunks_stay_small_unless_a_step_is_large)
{
    hbp_context *context = test_context();
    hbp_lengths *lengths = plans_lengths(context, 1, 60000, 100, 0, 0);
    for (int64_t pack_samples = 100; pack_samples <= 40000; pack_samples *= 20) {
        plans_shape shape = {.seed = 5,
                             .ranks = 4,
                             .domain_ranks = 4,
                             .pack_samples = pack_samples,
                             .sequence_multiple = 1,
                             .pack_multiple = 1,
                             .micro_batch_multiple = 1};
        hbp_plan *plan = plans_make(&shape, lengths), *back;
        size_t bytes;
        uint8_t *data = saved(context, plan, NULL, &bytes);
        hbp_plan_file *file;
        OK(context, hbp__plan_file_open_memory(context, data, (int64_t)bytes, &file));
        for (int64_t i = 0; i < file->chunks; i++)
            ck_assert(file->chunk[i].rows.steps == 1 ||
                      hbp__plan_chunk_bytes(&file->chunk[i].rows, 0) <= HBP__PLAN_CHUNK_BYTES);
        hbp_plan_file_free(file);
        OK(context, load_memory(context, data, bytes, &back));
        expect_same(plan, back);
        hbp_plan_free(back);
        hbp_plan_free(plan);
        free(data);
    }
    hbp_lengths_free(lengths);
    hbp_context_free(context);
}
END_TEST

START_TEST(bad_arguments_and_full_disks_leave_nothing)
{
    hbp_context *context = test_context();
    hbp_plan *plan = drawn_plan(context, 4, 50);
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "plan");
    hbp_plan_save_options options = {.struct_size = sizeof options};
    ck_assert_uint_eq(options.struct_size, sizeof options);
    FAILS(context, HBP_E_INVALID, "plan is NULL", hbp_plan_save(context, NULL, path, NULL));
    FAILS(context, HBP_E_INVALID, "path is NULL", hbp_plan_save(context, plan, NULL, NULL));
    options.level = 10;
    FAILS(context, HBP_E_INVALID, "`level` is 10; it must be in -1..9",
          hbp_plan_save(context, plan, path, &options));
    options.level = -2;
    FAILS(context, HBP_E_INVALID, "`level` is -2; it must be in -1..9",
          hbp_plan_save(context, plan, path, &options));
    options.level = 9;
    options.chunk_steps = -1;
    FAILS(context, HBP_E_INVALID, "`chunk_steps` is -1; it must be in 0..9223372036854775807",
          hbp_plan_save(context, plan, path, &options));
    options.chunk_steps = INT64_MAX;
    char *note = malloc(2000000);
    ck_assert_ptr_nonnull(note);
    memset(note, 'n', 1999999);
    note[1999999] = '\0';
    options.note = note;
    FAILS(context, HBP_E_INVALID, "the note has 1999999 bytes", hbp_plan_save(context, plan, path, &options));
    free(note);
    FAILS(context, HBP_E_SYSTEM, "none/plan",
          hbp_plan_save(context, plan, folder_path(path, folder, "none/plan"), NULL));
    if (access("/dev/full", W_OK) == 0)
        FAILS(context, HBP_E_SYSTEM, "No space left", hbp_plan_save(context, plan, "/dev/full", NULL));
    ck_assert_int_eq(folder_count(folder), 0);
    folder_remove(folder);
    hbp_plan_free(plan);
    hbp_context_free(context);
}
END_TEST

typedef struct saving_case {
    hbp_plan *plan;
    hbp_plan_save_options options;
} saving_case;

static hbp_status save_one(hbp_context *context, const void *user, const char *path)
{
    const saving_case *c = user;
    return hbp_plan_save(context, c->plan, path, &c->options);
}

static hbp_status open_one(hbp_context *context, const void *user, const char *path, void **out)
{
    hbp_plan *plan = NULL;
    (void)user;
    hbp_status status = hbp_plan_load(context, path, &plan);
    *out = plan;
    return status;
}

START_TEST(short_memory_and_cancelling_leave_what_was_there)
{
    hbp_context *context = test_context();
    hbp_cost *cost = small_cost(context, 5);
    saving_case c = {.plan = drawn_plan(context, 9, 100)};
    c.options =
        (hbp_plan_save_options){.struct_size = sizeof c.options, .chunk_steps = 4, .cost = cost, .note = "n"};
    const harm_kind kind = {.release = release_plan, .save = save_one, .open = open_one, .user = &c};
    harm_looks looks = harm_survived(&kind, NULL, 0);
    ck_assert(looks.save > 2 && looks.open > 2);
    hbp_plan_free(c.plan);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("plan_save", any_msgpack_reader_opens_the_file, the_header_tells_a_cost_of_vision_units,
          chunks_stay_small_unless_a_step_is_large, bad_arguments_and_full_disks_leave_nothing,
          short_memory_and_cancelling_leave_what_was_there)
