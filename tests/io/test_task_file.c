#include "reseal.h"
#include "task_files.h"

#include "data/task_columns.h"
#include "io/file_head.h"

START_TEST(a_schedule_comes_back_as_it_was)
{
    hbp_context *context = test_context();
    for (uint64_t seed = 0; seed < 200; seed++) {
        hbp_task_schedule *s = task_columns_draw(context, seed), *back;
        size_t bytes;
        uint8_t *data = saved(context, s, (int)(seed % 10), &bytes);
        OK(context, load_memory(context, data, bytes, &back));
        task_columns_same(s, back);
        hbp_task_schedule_free(back);
        hbp_task_schedule_free(s);
        free(data);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(paths_are_read_as_well_as_memory)
{
    hbp_context *context = test_context();
    hbp_task_schedule *s = task_columns_draw(context, 5), *back = NULL;
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "tasks");
    OK(context, hbp_task_schedule_save(context, s, path));
    OK(context, hbp_task_schedule_load(context, path, &back));
    task_columns_same(s, back);
    hbp_task_schedule_free(back);
    hbp_task_schedule_free(s);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

/* The smallest of some drawn schedules, saved. */
static uint8_t *small_file(hbp_context *context, int level, size_t *bytes, hbp_task_schedule **schedule)
{
    hbp_task_schedule *least = NULL;
    for (uint64_t seed = 0; seed < 40; seed++) {
        hbp_task_schedule *s = task_columns_draw(context, seed);
        int wide = s->slices > 2 && s->groups > 1 && s->ranks > 1 && s->meta_ops > 1 && s->parameters > 1;
        if (wide &&
            (!least || hbp__table_bytes(&hbp__task_table, s) < hbp__table_bytes(&hbp__task_table, least))) {
            hbp_task_schedule_free(least);
            least = s;
        } else {
            hbp_task_schedule_free(s);
        }
    }
    ck_assert_ptr_nonnull(least);
    uint8_t *data = saved(context, least, level, bytes);
    if (schedule)
        *schedule = least;
    else
        hbp_task_schedule_free(least);
    return data;
}

/* A load that fails as it should: a status of bad files, a message, nothing left, little memory taken. */
static void expect_bad(hbp_context *context, failing *f, const void *data, size_t bytes, const char *what,
                       size_t at)
{
    hbp_task_schedule *schedule;
    uint8_t *copy = malloc(bytes ? bytes : 1); /* so that a sanitizer sees a read past the end */
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, data, bytes);
    int64_t live = f->live;
    f->peak_bytes = f->bytes;
    hbp_status status = load_memory(context, copy, bytes, &schedule);
    ck_assert_msg(status == HBP_E_FORMAT || status == HBP_E_VERSION, "%s at %d: %s", what, (int)at,
                  hbp_status_name(status));
    ck_assert_ptr_null(schedule);
    ck_assert_str_ne(hbp_context_message(context), "");
    ck_assert_int_eq(f->live, live);
    ck_assert_int_lt(f->peak_bytes - f->bytes, 1 << 20);
    free(copy);
}

static const uint8_t masks[] = {0x01, 0x80, 0xff, 0x20};

START_TEST(every_flipped_byte_and_every_cut_is_found)
{
    for (int level = 0; level < 2; level++) {
        failing f;
        hbp_context *context = failing_context(&f, NULL, NULL);
        size_t bytes;
        uint8_t *data = small_file(context, level, &bytes, NULL);
        hbp_task_schedule *schedule;
        OK(context, load_memory(context, data, bytes, &schedule));
        hbp_task_schedule_free(schedule);
        for (size_t at = 0; at < bytes; at++)
            for (size_t m = 0; m < sizeof masks; m++) {
                data[at] ^= masks[m];
                expect_bad(context, &f, data, bytes, "changed byte", at);
                data[at] ^= masks[m];
            }
        for (size_t cut = 0; cut < bytes; cut++)
            expect_bad(context, &f, data, cut, "cut", cut);
        uint8_t *longer = malloc(bytes + 1);
        ck_assert_ptr_nonnull(longer);
        memcpy(longer, data, bytes);
        longer[bytes] = 0;
        expect_bad(context, &f, longer, bytes + 1, "one byte more", bytes);
        free(longer);
        free(data);
        hbp_context_free(context);
    }
}
END_TEST

/* Behind right checksums: columns, names and counts are under the digest or compared. What may change is what
 * nobody relies on: sums of the summary, and keys that are passed over. What comes out is safe to walk. */
START_TEST(a_changed_byte_behind_right_checksums_does_no_harm)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    size_t bytes, loaded = 0, refused = 0;
    hbp_task_schedule *original, *schedule;
    uint8_t *data = small_file(context, 0, &bytes, &original), *changed = malloc(bytes);
    ck_assert_ptr_nonnull(changed);
    for (size_t at = 0; at < bytes; at++)
        for (size_t m = 0; m < sizeof masks; m++) {
            memcpy(changed, data, bytes);
            changed[at] ^= masks[m];
            reseal_tasks(changed, bytes);
            int64_t live = f.live;
            f.peak_bytes = f.bytes;
            hbp_status status = load_memory(context, changed, bytes, &schedule);
            ck_assert_int_lt(f.peak_bytes - f.bytes, 1 << 20);
            if (status == HBP_OK) {
                OK(context, hbp__task_columns_check(context, schedule));
                schedule->summary = original->summary;
                task_columns_same(schedule, original);
                loaded++;
            } else {
                ck_assert_msg(status == HBP_E_FORMAT || status == HBP_E_VERSION, "byte %d: %s", (int)at,
                              hbp_status_name(status));
                refused++;
            }
            hbp_task_schedule_free(schedule);
            ck_assert_int_eq(f.live, live);
        }
    ck_assert_uint_gt(loaded, 0);
    ck_assert_uint_gt(refused, 5 * loaded);
    hbp_task_schedule_free(original);
    free(changed);
    free(data);
    hbp_context_free(context);
}
END_TEST

/* The number behind `key` in [data, data + bytes) as any other, in as many bytes as it takes. */
static uint8_t *with_number(const uint8_t *data, size_t bytes, const char *key, uint64_t value, size_t *grown)
{
    size_t length = strlen(key), at = 1;
    while (memcmp(data + at, key, length) != 0 || data[at - 1] != (0xa0 | length))
        at++;
    at += length;
    size_t old = data[at] < 0x80 ? 1 : data[at] == 0xcc ? 2 : data[at] == 0xcd ? 3 : data[at] == 0xce ? 5 : 9;
    uint8_t *changed = malloc(bytes + 9);
    ck_assert_ptr_nonnull(changed);
    memcpy(changed, data, at);
    changed[at] = 0xcf;
    for (size_t i = 0; i < 8; i++)
        changed[at + 1 + i] = (uint8_t)(value >> (56 - 8 * i));
    memcpy(changed + at + 9, data + at + old, bytes - at - old);
    *grown = bytes + 9 - old;
    return changed;
}

/* The header's length has changed, too: the body must tell it. */
static uint8_t *rehead(uint8_t *data, size_t *bytes)
{
    uint64_t header;
    ck_assert(hbp__msgpack_scan(data, *bytes, 4096, &header));
    uint8_t *changed = with_number(data, *bytes, "header_bytes", header, bytes);
    free(data);
    reseal_tasks(changed, *bytes);
    return changed;
}

START_TEST(a_tiny_file_takes_no_more_memory_than_it_could_fill)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    size_t bytes, grown;
    uint8_t *data = small_file(context, 1, &bytes, NULL);
    const char *const keys[] = {"operators", "meta_ops",   "levels", "waves",       "slices",
                                "groups",    "parameters", "gpus",   "group_ranks", "tasks"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        for (int power = 8; power < 64; power++) {
            uint8_t *changed = with_number(data, bytes, keys[k], UINT64_C(1) << power, &grown);
            changed = rehead(changed, &grown);
            expect_bad(context, &f, changed, grown, keys[k], (size_t)power);
            free(changed);
        }
    for (int power = 0; power < 64; power++) {
        uint8_t *changed = with_number(data, bytes, "bytes", UINT64_C(1) << power, &grown);
        changed = rehead(changed, &grown);
        expect_bad(context, &f, changed, grown, "bytes", (size_t)power);
        free(changed);
    }
    free(data);
    hbp_context_free(context);
}
END_TEST

START_TEST(what_is_wrong_is_named)
{
    hbp_context *context = test_context();
    size_t bytes, grown;
    hbp_task_schedule *original, *back;
    uint8_t *data = small_file(context, 0, &bytes, &original);
    const struct {
        const char *key;
        uint64_t value;
        const char *text;
    } cases[] = {
        {"mode", 9, "the mode is 9; it must be in 0..5"},
        {"placement", 3, "the placement is 3"},
        {"domain_gpus", 0, "the number of GPUs of a domain is 0"},
        {"mode", UINT64_C(1) << 31, "byte 0: the header lacks the number 'mode'"},
        {"makespan_ns", UINT64_MAX, "byte 0: the header lacks the number 'makespan_ns'"},
        {"makespan_ns", 0, "slice_starts: the start is"},
        {"makespan_ns", INT64_MAX, "byte 0: the header's digest is not that of the columns"},
        {"graph_digest", 1, "byte 0: the header's digest is not that of the columns"},
        {"digest", 1, "byte 0: the header's digest is not that of the columns"},
        {"tasks", 1000, "byte 0: the header's 'task_names' are not as many as its 'tasks'"},
        {"slices", 1 << 30, "byte 0: the header's tables are too large"},
        {"slices", 100000, "the body's bytes are not those of its rows"},
        {"slices", (uint64_t)original->slices - 1, "the body lacks the column 'slice_meta_ops'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t *changed = with_number(data, bytes, cases[i].key, cases[i].value, &grown);
        changed = rehead(changed, &grown);
        FAILS(context, HBP_E_FORMAT, cases[i].text, load_memory(context, changed, grown, &back));
        ck_assert_int_eq(strncmp(hbp_context_message(context), "memory: byte ", 13), 0);
        free(changed);
    }
    hbp_task_schedule many = *original;
    many.slices = 1000000;
    uint8_t *claimed = with_number(data, bytes, "slices", (uint64_t)many.slices, &grown), *changed;
    changed =
        with_number(claimed, grown, "bytes", (uint64_t)hbp__table_bytes(&hbp__task_table, &many), &grown);
    changed = rehead(changed, &grown);
    FAILS(context, HBP_E_FORMAT, "the body is smaller than its rows",
          load_memory(context, changed, grown, &back));
    free(changed);
    free(claimed);
    changed = with_number(data, bytes, "header_bytes", 1, &grown);
    FAILS(context, HBP_E_FORMAT, "'header_bytes' is not", load_memory(context, changed, grown, &back));
    free(changed);
    changed = with_number(data, bytes, "header_crc32", 1, &grown);
    FAILS(context, HBP_E_FORMAT, "byte 0: the CRC-32 of the header",
          load_memory(context, changed, grown, &back));
    free(changed);
    changed = with_number(data, bytes, "crc32", 1, &grown);
    FAILS(context, HBP_E_FORMAT, "the body's CRC-32 differs", load_memory(context, changed, grown, &back));
    free(changed);
    hbp_task_schedule_free(original);
    free(data);
    hbp_context_free(context);
}
END_TEST

START_TEST(columns_that_lead_astray_are_refused)
{
    hbp_context *context = test_context();
    for (int way = 0; way < 4; way++) {
        hbp_task_schedule *s = task_columns_draw(context, 12), *back;
        const char *text = "the MetaOp is";
        if (way == 0)
            s->slice_meta_ops[0] = (int32_t)s->meta_ops;
        else if (way == 1)
            s->wave_offsets[0] = -1, text = "wave offsets run from -1";
        else if (way == 2)
            s->group_ranks[0] = -1, text = "a rank is -1";
        else
            s->parameters_names[0][0] = '\0', text = "";
        s->digest = hbp__task_schedule_digest(s);
        size_t bytes;
        uint8_t *data = saved(context, s, 1, &bytes);
        if (way < 3)
            FAILS(context, HBP_E_FORMAT, text, load_memory(context, data, bytes, &back));
        else
            OK(context, load_memory(context, data, bytes, &back)); /* an empty name is a name */
        hbp_task_schedule_free(back);
        hbp_task_schedule_free(s);
        free(data);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(a_name_ends_where_it_says)
{
    hbp_context *context = test_context();
    size_t bytes;
    hbp_task_schedule *back;
    uint8_t *data = small_file(context, 0, &bytes, NULL);
    for (int way = 0; way < 2; way++) {
        uint8_t *changed = malloc(bytes);
        ck_assert_ptr_nonnull(changed);
        memcpy(changed, data, bytes);
        size_t at = 0;
        while (memcmp(changed + at, "task 0", 6) != 0)
            at++;
        if (way)
            changed[at - 1] = 0xc4, changed[at] = 5; /* a bin of as many bytes */
        else
            changed[at + 4] = 0;
        reseal_tasks(changed, bytes);
        FAILS(context, HBP_E_FORMAT, "byte 0: number 0 of 'task_names' is not a name",
              load_memory(context, changed, bytes, &back));
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
    hbp_task_schedule *s = (hbp_task_schedule *)(uintptr_t)1;
    FAILS(context, HBP_E_SYSTEM, "No such file", hbp_task_schedule_load(context, path, &s));
    ck_assert_ptr_null(s);
    FAILS(context, HBP_E_SYSTEM, "irectory", hbp_task_schedule_load(context, folder, &s));
    FAILS(context, HBP_E_SYSTEM, "not a file that can be read at any place",
          hbp_task_schedule_load(context, "/dev/null", &s));
    FAILS(context, HBP_E_INVALID, "path is NULL", hbp_task_schedule_load(context, NULL, &s));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_task_schedule_load(context, path, NULL));
    file_write(path, "", 0);
    FAILS(context, HBP_E_FORMAT, "other: byte 0: its 0 bytes are not a file of a task schedule",
          hbp_task_schedule_load(context, path, &s));
    file_write(path, "abc", 3);
    FAILS(context, HBP_E_FORMAT, "its 3 bytes are not", hbp_task_schedule_load(context, path, &s));
    FAILS(context, HBP_E_FORMAT, "are not a file of a task schedule",
          hbp_task_schedule_load(context, HBP_TESTS_DIR "/golden/plan.msgpack", &s));
    hbp_plan *plan;
    FAILS(context, HBP_E_FORMAT, "are not a plan file",
          hbp_plan_load(context, HBP_TESTS_DIR "/golden/tasks.msgpack", &plan));
    size_t bytes;
    uint8_t *data = small_file(context, 1, &bytes, NULL);
    file_write(path, data, bytes / 8);
    FAILS(context, HBP_E_FORMAT, "the file is cut off or damaged in its header",
          hbp_task_schedule_load(context, path, &s));
    file_write(path, data, bytes - 1);
    FAILS(context, HBP_E_FORMAT, "the body is not one msgpack object",
          hbp_task_schedule_load(context, path, &s));
    file_write(path, data, bytes);
    ck_assert_int_eq(truncate(path, INT64_C(5) << 30), 0); /* nothing but a hole */
    FAILS(context, HBP_E_FORMAT, "byte 0: the file is too large", hbp_task_schedule_load(context, path, &s));
    uint8_t *version = &data[hbp__format_version_at(HBP__TASK_FORMAT)];
    ck_assert_int_eq(*version, 1);
    for (uint8_t wrong = 0; wrong < 3; wrong += 2) {
        *version = wrong;
        file_write(path, data, bytes);
        FAILS(context, HBP_E_VERSION, wrong ? "format version 2; this library" : "format version 0",
              hbp_task_schedule_load(context, path, &s));
    }
    free(data);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

typedef struct stored {
    uint8_t *data;
    size_t bytes;
} stored;

static hbp_status load_stored(hbp_context *context, void *user)
{
    stored *s = user;
    hbp_task_schedule *schedule;
    hbp_status status = load_memory(context, s->data, s->bytes, &schedule);
    hbp_task_schedule_free(schedule);
    return status;
}

START_TEST(short_memory_and_cancelling_leave_nothing)
{
    hbp_context *context = test_context();
    stored s;
    s.data = small_file(context, 1, &s.bytes, NULL);
    failing_sweep(load_stored, &s);
    ck_assert_int_ge(cancel_sweep(load_stored, &s), 2);
    free(s.data);
    hbp_context_free(context);
}
END_TEST

/* Written once by version 0.1.0: later versions read it, and write the same bytes for the same schedule. */
START_TEST(the_golden_file_is_read_and_written_as_ever)
{
    hbp_context *context = test_context();
    size_t golden_bytes, bytes;
    uint8_t *golden = (uint8_t *)file_read(HBP_TESTS_DIR "/golden/tasks.msgpack", &golden_bytes);
    hbp_task_schedule *s, *drawn = task_columns_draw(context, 5);
    OK(context, load_memory(context, golden, golden_bytes, &s));
    task_columns_same(s, drawn);
    ck_assert_uint_eq(s->digest, UINT64_C(0x5b2b0d3c7a2f21b5));
    uint8_t *data = saved(context, s, 0, &bytes);
    ck_assert_uint_eq(bytes, golden_bytes);
    ck_assert_int_eq(memcmp(data, golden, bytes), 0);
    hbp_task_schedule_free(s);
    hbp_task_schedule_free(drawn);
    free(data);
    free(golden);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("task_file", a_schedule_comes_back_as_it_was, paths_are_read_as_well_as_memory,
          every_flipped_byte_and_every_cut_is_found, a_changed_byte_behind_right_checksums_does_no_harm,
          a_tiny_file_takes_no_more_memory_than_it_could_fill, what_is_wrong_is_named,
          columns_that_lead_astray_are_refused, a_name_ends_where_it_says,
          other_files_are_refused_by_what_they_are, short_memory_and_cancelling_leave_nothing,
          the_golden_file_is_read_and_written_as_ever)
