#include "hbp/io.h"
#include "plan_changes.h"

START_TEST(a_plan_comes_back_as_it_was)
{
    hbp_context *context = test_context();
    const int64_t chunk_steps[] = {0, 1, 2, 7};
    for (uint64_t seed = 0; seed < 80; seed++) {
        hbp_plan *plan = drawn_plan(context, seed, 1 + (int64_t)seed * 9), *back;
        plan->bound_ns = plan->step_ns[0] * (int64_t)(seed % 2);
        hbp_plan_save_options options = {.struct_size = sizeof options,
                                         .level = (int32_t)(seed % 11) - 1,
                                         .chunk_steps = chunk_steps[seed % 4]};
        size_t bytes;
        uint8_t *data = saved(context, plan, &options, &bytes);
        OK(context, load_memory(context, data, bytes, &back));
        expect_same(plan, back);
        hbp_plan_free(back);
        hbp_plan_free(plan);
        free(data);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(steps_come_back_as_plans_of_their_own)
{
    hbp_context *context = test_context();
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "plan.msgpack");
    for (uint64_t seed = 0; seed < 12; seed++) {
        hbp_plan *plan = drawn_plan(context, seed, 200);
        plan->first_step = (int64_t)seed * 100;
        plan->bound_ns = plan->step_ns[0];
        hbp__plan_seal(plan);
        hbp_plan_save_options options = {.struct_size = sizeof options,
                                         .chunk_steps = 1 + (int64_t)(seed % 4)};
        OK(context, hbp_plan_save(context, plan, path, &options));
        hbp_plan_file *file;
        hbp_plan_summary summary = {.struct_size = sizeof summary}, expected;
        OK(context, hbp_plan_file_open(context, path, &file));
        OK(context, hbp_plan_file_get_summary(context, file, &summary));
        hbp__plan_summarise(plan, &expected);
        ck_assert(hbp__plan_same_summary(&summary, &expected));
        for (int64_t first = 0; first < plan->steps; first++)
            for (int64_t count = 1; count <= plan->steps - first; count += 1 + count / 3) {
                hbp_plan *part, *slice;
                OK(context, hbp__plan_slice(context, plan, first, count, &slice));
                OK(context, hbp_plan_file_read(context, file, first, count, &part));
                ck_assert_int_eq(part->first_step, plan->first_step + first);
                ck_assert_int_eq(part->epoch_steps, slice->epoch_steps);
                ck_assert(part->epoch_steps > 0 || count == plan->steps);
                ck_assert(count == plan->steps || part->digest != plan->digest);
                expect_same(part, slice);
                OK(context, hbp__plan_check(context, part));
                hbp_plan_free(part);
                hbp_plan_free(slice);
            }
        hbp_plan *none = plan;
        FAILS(context, HBP_E_INVALID, "1 steps from step -1",
              hbp_plan_file_read(context, file, -1, 1, &none));
        ck_assert_ptr_null(none);
        FAILS(context, HBP_E_INVALID, "0 steps", hbp_plan_file_read(context, file, 0, 0, &none));
        FAILS(context, HBP_E_INVALID, "the plan has",
              hbp_plan_file_read(context, file, 0, plan->steps + 1, &none));
        FAILS(context, HBP_E_INVALID, "the plan has",
              hbp_plan_file_read(context, file, plan->steps, 1, &none));
        FAILS(context, HBP_E_INVALID, "out is NULL", hbp_plan_file_read(context, file, 0, 1, NULL));
        FAILS(context, HBP_E_INVALID, "file is NULL", hbp_plan_file_read(context, NULL, 0, 1, &none));
        hbp_plan_file_free(file);
        hbp_plan_free(plan);
    }
    hbp_plan_file_free(NULL);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

/* A small file with every kind of column and chunk; those of a second size and an order of modalities, and
 * with them version 2, when `version` is 2; padding by the degree of a pack as well when it is 3. */
static uint8_t *small_file(hbp_context *context, int32_t level, int version, size_t *bytes)
{
    hbp_lengths *all = plans_vision_lengths(context, 3, 12, 30, 1, 0, version > 1 ? 2 : 0), *lengths = NULL;
    OK(context, hbp_lengths_limit(context, all, 20, HBP_OVERLONG_SPLIT, &lengths));
    plans_shape shape = {.seed = version == 3 ? 22 : 21,
                         .ranks = 2,
                         .domain_ranks = 2,
                         .pack_samples = 1,
                         .left_over = 2,
                         .sequence_multiple = 4,
                         .pack_multiple = 16,
                         .micro_batch_multiple = 1,
                         .modality_order = version > 1,
                         .sequence_multiple_per_sp = version == 3 ? 3 : 0,
                         .pack_multiple_per_sp = version == 3 ? 5 : 0};
    hbp_plan *plan = plans_make(&shape, lengths);
    hbp_plan_save_options options = small_options;
    options.level = level;
    uint8_t *data = saved(context, plan, &options, bytes);
    ck_assert(plan->sample_first_tokens && plan->sample_loss_tokens && plan->dropped == 2 && plan->steps > 2);
    ck_assert_int_eq(hbp__plan_format_version(plan), version);
    ck_assert_int_eq(data[hbp__format_version_at(HBP__PLAN_FORMAT)], version);
    hbp_plan_free(plan);
    hbp_lengths_free(all);
    hbp_lengths_free(lengths);
    return data;
}

START_TEST_IN_CONTEXT(every_flipped_byte_and_every_cut_is_found)
{
    for (int way = 0; way < 4; way++) {
        size_t bytes;
        uint8_t *data = keep(small_file(context, way % 2 ? 1 : -1, 1 + way / 2, &bytes));
        hbp_plan *plan;
        MAKES(context, plan, load_memory(context, data, bytes, &plan));
        const harm_kind kind = plan_kind(plan);
        harm_found(&kind, data, bytes);
    }
}
END_TEST

START_TEST_IN_CONTEXT(a_changed_byte_behind_right_checksums_does_no_harm)
{
    for (int version = 1; version <= 3; version++) {
        size_t bytes;
        uint8_t *data = keep(small_file(context, -1, version, &bytes));
        hbp_plan *original;
        MAKES(context, original, load_memory(context, data, bytes, &original));
        expect_no_harm(data, bytes, original);
    }
}
END_TEST

START_TEST(a_tiny_file_takes_no_more_memory_than_it_could_fill)
{
    const harm_kind kind = plan_kind(NULL);
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    size_t bytes;
    uint8_t *data = small_file(context, 1, 1, &bytes);
    uint64_t index = hbp__get_le(data + bytes - HBP__PLAN_TAIL_BYTES + 10, 8);
    const char *const columns[] = {"steps", "micro_batches", "packs", "samples", "dropped"};
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
        for (int power = 8; power < 64; power++) { /* the first chunk claims 2^power rows */
            uint8_t *changed = malloc(bytes);
            ck_assert_ptr_nonnull(changed);
            memcpy(changed, data, bytes);
            size_t length = strlen(columns[c]), at = (size_t)index;
            while (memcmp(changed + at, columns[c], length) != 0 || changed[at - 1] != (0xa0 | length))
                at++;
            while (memcmp(changed + at, "data\xc4", 5) != 0)
                at++;
            hbp__put_le(changed + at + 6, UINT64_C(1) << power, 8);
            reseal(changed, bytes);
            harm_refused(context, &f, &kind, changed, bytes, columns[c], (size_t)power);
            free(changed);
        }
    free(data);
    hbp_context_free(context);
}
END_TEST

START_TEST(other_files_are_refused_by_what_they_are)
{
    hbp_context *context = test_context();
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "other");
    hbp_plan *plan = (hbp_plan *)(uintptr_t)1;
    hbp_plan_file *file = (hbp_plan_file *)(uintptr_t)1;
    FAILS(context, HBP_E_SYSTEM, "No such file", hbp_plan_load(context, path, &plan));
    ck_assert_ptr_null(plan);
    FAILS(context, HBP_E_SYSTEM, "irectory", hbp_plan_file_open(context, folder, &file));
    ck_assert_ptr_null(file);
    FAILS(context, HBP_E_SYSTEM, "not a file that can be read at any place",
          hbp_plan_load(context, "/dev/null", &plan));
    FAILS(context, HBP_E_INVALID, "path is NULL", hbp_plan_load(context, NULL, &plan));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_plan_load(context, path, NULL));
    file_write(path, "", 0);
    FAILS(context, HBP_E_FORMAT, "its 0 bytes are not a plan file", hbp_plan_load(context, path, &plan));
    file_write(path, "abc", 3);
    FAILS(context, HBP_E_FORMAT, "other: byte 0: its 3 bytes are not", hbp_plan_load(context, path, &plan));
    char text[4096];
    memset(text, 'x', sizeof text);
    file_write(path, text, sizeof text);
    FAILS(context, HBP_E_FORMAT, "are not a plan file", hbp_plan_load(context, path, &plan));

    size_t bytes;
    uint8_t *data = small_file(context, 0, 1, &bytes);
    file_write(path, data, bytes / 2);
    FAILS(context, HBP_E_FORMAT, "there is no tail", hbp_plan_load(context, path, &plan));
    uint8_t *version = &data[hbp__format_version_at(HBP__PLAN_FORMAT)];
    ck_assert_int_eq(*version, 1);
    *version = 2;
    file_write(path, data, bytes);
    FAILS(context, HBP_E_FORMAT, "the tail is damaged", hbp_plan_load(context, path, &plan));
    *version = 5;
    file_write(path, data, bytes);
    FAILS(context, HBP_E_VERSION, "format version 5; this library reads versions 1 to 4",
          hbp_plan_load(context, path, &plan));
    *version = 0;
    file_write(path, data, bytes);
    FAILS(context, HBP_E_VERSION, "format version 0", hbp_plan_load(context, path, &plan));
    free(data);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

/* The cells of a chunk's column in a file whose chunks are stored. */
static uint8_t *cells_of(uint8_t *data, size_t bytes, const char *column)
{
    const size_t length = strlen(column);
    size_t at = 1;
    while (at + length < bytes && (memcmp(data + at, column, length) != 0 || data[at - 1] != (0xa0 | length)))
        at++;
    while (at + 8 < bytes && memcmp(data + at,
                                    "\xa4"
                                    "data\xc4",
                                    6) != 0)
        at++;
    ck_assert_uint_lt(at + 8, bytes);
    return data + at + 7;
}

START_TEST(offsets_span_their_chunk)
{
    hbp_context *context = test_context();
    const char *const columns[] = {"step_offsets", "micro_batch_offsets", "pack_offsets"};
    hbp_plan *plan;
    size_t bytes;
    uint8_t *data = small_file(context, -1, 1, &bytes);
    for (size_t i = 0; i < 3; i++)
        for (int last = 0; last < 2; last++) {
            uint8_t *cells = cells_of(data, bytes, columns[i]);
            uint8_t *cell = cells + (last ? cells[-1] - 8 : 0);
            *cell ^= 1;
            reseal(data, bytes);
            FAILS(context, HBP_E_FORMAT, "the chunk's offsets do not span its rows",
                  load_memory(context, data, bytes, &plan));
            *cell ^= 1;
        }
    reseal(data, bytes);
    OK(context, load_memory(context, data, bytes, &plan));
    hbp_plan_free(plan);
    free(data);
    hbp_context_free(context);
}
END_TEST

typedef struct stored {
    uint8_t *data;
    size_t bytes;
} stored;

static hbp_status read_stored(hbp_context *context, void *user)
{
    stored *s = user;
    hbp_plan_file *file = NULL;
    hbp_plan *plan = NULL;
    HBP__TRY(hbp__plan_file_open_memory(context, s->data, (int64_t)s->bytes, &file));
    hbp_status status = hbp_plan_file_read(context, file, 1, 2, &plan);
    ck_assert_int_eq(status == HBP_OK, plan != NULL);
    hbp_plan_free(plan);
    hbp_plan_file_free(file);
    return status;
}

START_TEST(short_memory_and_cancelling_leave_nothing)
{
    hbp_context *context = test_context();
    stored s;
    s.data = small_file(context, 0, 2, &s.bytes);
    const harm_kind kind = plan_kind(NULL);
    ck_assert_int_gt(harm_survived(&kind, s.data, s.bytes).load, 2);
    failing_sweep(read_stored, &s);
    free(s.data);
    hbp_context_free(context);
}
END_TEST

/* Written once by version 0.1.0: later versions read it, and write the same bytes for the same plan. */
START_TEST(the_golden_file_is_read_and_written_as_ever)
{
    hbp_context *context = test_context();
    hbp_plan_free(golden_plan(context, "plan.msgpack", UINT64_C(0x970357019617307c)));
    hbp_context_free(context);
}
END_TEST

/* Format version 1 as well: readers pass over keys that they do not know. */
START_TEST(a_bound_is_one_more_key)
{
    hbp_context *context = test_context();
    hbp_plan *plan = golden_plan(context, "bound.msgpack", UINT64_C(0x970357019617307c));
    hbp_plan *without = golden_plan(context, "plan.msgpack", plan->digest);
    ck_assert_int_eq(plan->bound_ns, 1000);
    ck_assert_int_eq(without->bound_ns, 0);
    without->bound_ns = 1000;
    expect_same(plan, without);
    hbp_plan_free(plan);
    hbp_plan_free(without);
    hbp_context_free(context);
}
END_TEST

/* Written once by version 0.1.0, when plans got a second size. */
START_TEST(the_golden_file_of_version_2_is_read_and_written_as_ever)
{
    hbp_context *context = test_context();
    hbp_plan_summary summary;
    hbp_plan *plan = golden_plan(context, "vision.msgpack", UINT64_C(0x518826d98550ac8b));
    hbp__plan_summarise(plan, &summary);
    ck_assert_int_eq(summary.vision, 59);
    ck_assert_int_eq(summary.modalities, 3);
    hbp_plan_free(plan);
    hbp_context_free(context);
}
END_TEST

/* Written once by version 0.1.0, when padding came to depend on a pack's degree. */
START_TEST(the_golden_file_of_version_3_is_read_and_written_as_ever)
{
    hbp_context *context = test_context();
    hbp_plan *plan = golden_plan(context, "padding.msgpack", UINT64_C(0x0290d1ef0c3f97f9));
    ck_assert_int_eq(plan->sequence_multiple_per_sp, 3);
    ck_assert_int_eq(plan->pack_multiple_per_sp, 5);
    hbp_plan_free(plan);
    hbp_context_free(context);
}
END_TEST

/* Written once by version 0.1.0, when plans got lockstep sets. */
START_TEST(the_golden_file_of_version_4_is_read_and_written_as_ever)
{
    hbp_context *context = test_context();
    hbp_plan *plan = golden_plan(context, "lockstep.msgpack", UINT64_C(0x229a37bd2dcc8193));
    ck_assert_int_eq(plan->lockstep_ranks, 1);
    hbp_plan_free(plan);
    hbp_context_free(context);
}
END_TEST

/* Keys and columns that a plan may lack make the version; so does a reason that older readers do not know. */
START_TEST(the_version_is_the_oldest_that_holds_the_plan)
{
    hbp_context *context = test_context();
    for (uint64_t seed = 0; seed < 40; seed++) {
        hbp_plan *plan = drawn_plan(context, seed, 60), *back;
        int lost = 0;
        for (int64_t i = 0; i < plan->dropped; i++)
            lost |= plan->dropped_reasons[i] == HBP_DROPPED_LOST;
        int by_degree = plan->sequence_multiple_per_sp || plan->pack_multiple_per_sp;
        plan->lockstep_ranks = seed % 5 == 4 && plan->ranks > 1 ? 1 : 0;
        hbp__plan_seal(plan);
        int version = plan->lockstep_ranks                                   ? 4
                      : by_degree                                            ? 3
                      : plan->pack_vision || plan->sample_modalities || lost ? 2
                                                                             : 1;
        size_t bytes;
        uint8_t *data = saved(context, plan, NULL, &bytes);
        ck_assert_int_eq(data[hbp__format_version_at(HBP__PLAN_FORMAT)], version);
        ck_assert_uint_eq(hbp__get_le(data + bytes - HBP__PLAN_TAIL_BYTES + 6, 4), (uint64_t)version);
        /* A file of a second size, or padded by degree, that calls itself version 1 is no file of it. */
        change_version(data, bytes, 1);
        hbp_status status = load_memory(context, data, bytes, &back);
        int is_other = plan->lockstep_ranks || by_degree || plan->pack_vision || plan->sample_modalities;
        ck_assert_int_eq(status, is_other ? HBP_E_FORMAT : HBP_OK);
        hbp_plan_free(back);
        hbp_plan_free(plan);
        free(data);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(a_bound_above_the_time_is_refused)
{
    hbp_context *context = test_context();
    hbp_plan *plan = drawn_plan(context, 4, 40), *back;
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    OK(context, hbp_plan_get_summary(context, plan, &summary));
    for (int64_t over = 0; over < 4; over++) {
        size_t bytes;
        plan->bound_ns = over / 2 ? 0 : summary.predicted_ns + over;
        plan->free_bound_ns = over / 2 ? summary.predicted_ns + over % 2 : 0;
        uint8_t *data = saved(context, plan, NULL, &bytes);
        if (over % 2)
            FAILS(context, HBP_E_FORMAT, "the header's bound is above the predicted time",
                  load_memory(context, data, bytes, &back));
        else
            OK(context, load_memory(context, data, bytes, &back));
        hbp_plan_free(back);
        free(data);
    }
    hbp_plan_free(plan);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("plan_load", offsets_span_their_chunk, a_plan_comes_back_as_it_was,
          steps_come_back_as_plans_of_their_own, every_flipped_byte_and_every_cut_is_found,
          a_changed_byte_behind_right_checksums_does_no_harm,
          a_tiny_file_takes_no_more_memory_than_it_could_fill, other_files_are_refused_by_what_they_are,
          short_memory_and_cancelling_leave_nothing, the_golden_file_is_read_and_written_as_ever,
          the_golden_file_of_version_2_is_read_and_written_as_ever,
          the_golden_file_of_version_3_is_read_and_written_as_ever,
          the_golden_file_of_version_4_is_read_and_written_as_ever,
          the_version_is_the_oldest_that_holds_the_plan, a_bound_is_one_more_key,
          a_bound_above_the_time_is_refused)
