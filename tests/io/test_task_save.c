#include "hbp/io.h"
#include "task_files.h"

#include "io/file/zipped.h"
#include "unpacked.h"

static uint64_t unsigned_of(const msgpack_object *map, const char *key)
{
    const msgpack_object *value = unpacked_find(map, key);
    ck_assert_msg(value && value->type == MSGPACK_OBJECT_POSITIVE_INTEGER, "no %s", key);
    return value->via.u64;
}

static int64_t number_of(const msgpack_object *map, const char *key)
{
    return (int64_t)unsigned_of(map, key);
}

static void expect_text(const msgpack_object *value, const char *text)
{
    ck_assert(value && value->type == MSGPACK_OBJECT_STR && value->via.str.size == strlen(text));
    ck_assert_int_eq(memcmp(value->via.str.ptr, text, strlen(text)), 0);
}

static void check_header(const hbp_task_schedule *s, const msgpack_object *map)
{
    expect_text(&map->via.map.ptr[0].key, "format");
    expect_text(&map->via.map.ptr[1].key, "version");
    expect_text(unpacked_find(map, "format"), "hbp-tasks");
    expect_text(unpacked_find(map, "library"), HBP_VERSION_STRING);
    ck_assert_int_eq(number_of(map, "version"), 1);
    ck_assert_int_eq(number_of(map, "slices"), s->slices);
    ck_assert_int_eq(number_of(map, "gpus"), s->ranks);
    ck_assert_int_eq(number_of(map, "makespan_ns"), s->summary.makespan_ns);
    ck_assert_uint_eq(unsigned_of(map, "digest"), s->digest);
    ck_assert_uint_eq(unsigned_of(map, "graph_digest"), s->graph_digest);
    ck_assert(unpacked_find(map, "gap")->via.f64 == s->summary.gap);
    ck_assert(unpacked_find(map, "idle")->via.f64 == s->summary.idle);
    const msgpack_object *names = unpacked_find(map, "task_names");
    ck_assert(names && names->type == MSGPACK_OBJECT_ARRAY && names->via.array.size == s->tasks);
    for (int64_t i = 0; i < s->tasks; i++)
        expect_text(&names->via.array.ptr[i], s->task_names[i]);
}

static void check_columns(const hbp_task_schedule *s, const msgpack_object *map, int64_t header_bytes)
{
    ck_assert_int_eq(number_of(map, "header_bytes"), header_bytes);
    const msgpack_object *data = unpacked_find(map, "data");
    int64_t bytes = number_of(map, "bytes");
    uint8_t *columns = malloc((size_t)bytes);
    uLongf room = (uLongf)bytes;
    ck_assert_int_eq(uncompress(columns, &room, (const Bytef *)data->via.bin.ptr, data->via.bin.size), Z_OK);
    ck_assert_int_eq(room, bytes);
    msgpack_unpacked object;
    msgpack_unpacked_init(&object);
    size_t at = 0;
    ck_assert_int_eq(msgpack_unpack_next(&object, (const char *)columns, (size_t)bytes, &at),
                     MSGPACK_UNPACK_SUCCESS);
    const size_t narrow = (size_t)s->slices * sizeof(int32_t), wide = (size_t)s->slices * sizeof(int64_t);
    const void *gpus = unpacked_column(&object.data, "slice_gpus", narrow);
    const void *ends = unpacked_column(&object.data, "slice_ends", wide);
    ck_assert(gpus && ends);
    ck_assert_int_eq(memcmp(gpus, s->slice_gpus, narrow), 0);
    ck_assert_int_eq(memcmp(ends, s->slice_ends, wide), 0);
    uint32_t count = 0;
#define COUNT(name, type, table, extra)                                                                      \
    count++;                                                                                                 \
    ck_assert_ptr_nonnull(unpacked_column(&object.data, #name, (size_t)(s->table + (extra)) * sizeof(type)));
    HBP__TASK_COLUMNS(COUNT)
#undef COUNT
    ck_assert_uint_eq(object.data.via.map.size, count);
    msgpack_unpacked_destroy(&object);
    free(columns);
}

START_TEST(any_msgpack_reader_opens_the_file)
{
    hbp_context *context = test_context();
    for (uint64_t seed = 0; seed < 20; seed++) {
        hbp_task_schedule *s = task_columns_draw(context, seed);
        size_t bytes, at = 0;
        uint8_t *data = saved(context, s, (int)(seed % 10), &bytes);
        msgpack_unpacked object;
        msgpack_unpacked_init(&object);
        ck_assert_int_eq(msgpack_unpack_next(&object, (const char *)data, bytes, &at),
                         MSGPACK_UNPACK_SUCCESS);
        int64_t header_bytes = (int64_t)at;
        check_header(s, &object.data);
        ck_assert_int_eq(msgpack_unpack_next(&object, (const char *)data, bytes, &at),
                         MSGPACK_UNPACK_SUCCESS);
        ck_assert_uint_eq(at, bytes);
        check_columns(s, &object.data, header_bytes);
        msgpack_unpacked_destroy(&object);
        free(data);
        hbp_task_schedule_free(s);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(bad_arguments_and_full_disks_leave_nothing)
{
    hbp_context *context = test_context();
    hbp_task_schedule *s = task_columns_draw(context, 4);
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "tasks");
    FAILS(context, HBP_E_INVALID, "schedule is NULL", hbp_task_schedule_save(context, NULL, path));
    FAILS(context, HBP_E_INVALID, "path is NULL", hbp_task_schedule_save(context, s, NULL));
    FAILS(context, HBP_E_SYSTEM, "none/tasks",
          hbp_task_schedule_save(context, s, folder_path(path, folder, "none/tasks")));
    if (access("/dev/full", W_OK) == 0)
        FAILS(context, HBP_E_SYSTEM, "No space left", hbp_task_schedule_save(context, s, "/dev/full"));
    folder_path(path, folder, "tasks");
    int64_t kept = s->parameters;
    s->parameters = hbp__task_format.most_names;
    FAILS(context, HBP_E_OVERFLOW, "names; a file holds at most 4194304",
          hbp_task_schedule_save(context, s, path));
    s->parameters = kept;
    kept = s->slices;
    s->slices = HBP__ZIPPED_MAX_BYTES;
    FAILS(context, HBP_E_OVERFLOW, "bytes of columns; a file holds at most 1073741824",
          hbp_task_schedule_save(context, s, path));
    s->slices = kept;
    ck_assert_int_eq(folder_count(folder), 0);
    folder_remove(folder);
    hbp_task_schedule_free(s);
    hbp_context_free(context);
}
END_TEST

typedef struct saving_case {
    hbp_task_schedule *schedule;
    char folder[64];
    char path[128];
} saving_case;

/* A save that fails leaves what was there. */
static hbp_status save_once(hbp_context *context, void *user)
{
    saving_case *c = user;
    file_write(c->path, "before", 6);
    hbp_status status = hbp_task_schedule_save(context, c->schedule, c->path);
    size_t bytes;
    char *data = file_read(c->path, &bytes);
    ck_assert_int_eq(status == HBP_OK, strcmp(data, "before") != 0);
    ck_assert_int_eq(folder_count(c->folder), 1);
    free(data);
    return status;
}

START_TEST(short_memory_and_cancelling_leave_what_was_there)
{
    hbp_context *context = test_context();
    saving_case c = {.schedule = task_columns_draw(context, 9)};
    folder_make(c.folder);
    folder_path(c.path, c.folder, "tasks");
    failing_sweep(save_once, &c);
    ck_assert_int_gt(cancel_sweep(save_once, &c), 2);
    folder_remove(c.folder);
    hbp_task_schedule_free(c.schedule);
    hbp_context_free(context);
}
END_TEST

START_TEST(bytes_of_columns_are_their_rows)
{
    hbp_context *context = test_context();
    hbp_task_schedule *s = task_columns_draw(context, 3);
    int64_t bytes =
        8 * (3 + s->meta_ops + s->levels + s->waves + 2 * s->slices + s->groups + 2 * s->ranks) +
        4 * (s->operators_total + 2 * s->meta_ops + 5 * s->slices + s->group_ranks_total + s->parameters);
    ck_assert_int_eq(hbp__table_bytes(&hbp__task_table, s), bytes);
    hbp_task_schedule shape = *s;
    shape.slices = -1;
    ck_assert_int_eq(hbp__table_bytes(&hbp__task_table, &shape), -1);
    shape = *s;
    shape.group_ranks_total = INT64_C(1) << 33;
    ck_assert_int_eq(hbp__table_bytes(&hbp__task_table, &shape), -1);
    hbp_task_schedule_free(s);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("task_save", any_msgpack_reader_opens_the_file, bad_arguments_and_full_disks_leave_nothing,
          short_memory_and_cancelling_leave_what_was_there, bytes_of_columns_are_their_rows)
