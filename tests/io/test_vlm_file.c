/* Files of vision-language plans: what is written comes back, and nothing in a file is believed. */
#include "base/methods.h"
#include "hbp/io.h"
#include "vlm_files.h"

#include "harm.h"
#include "reseal.h"

static void expect_columns(const hbp__table *table, const void *a, const void *b)
{
    for (int32_t i = 0; i < table->column_count; i++) {
        const hbp__member *column = &table->columns[i];
        int64_t rows = hbp__table_rows(a, column);
        ck_assert_int_eq(hbp__table_rows(b, column), rows);
        ck_assert_msg(memcmp(hbp__table_cells(a, column), hbp__table_cells(b, column),
                             (size_t)rows * hbp__cell_bytes(column->cell)) == 0,
                      "%s", column->name);
    }
}

static void expect_same(const hbp_vlm_plan *a, const hbp_vlm_plan *b)
{
    hbp_vlm_plan_summary summary = b->summary;
    summary.struct_size = a->summary.struct_size;
    ck_assert_int_eq(memcmp(&a->summary, &summary, sizeof summary), 0);
    ck_assert_int_eq(a->data->digest, b->data->digest);
    ck_assert_int_eq(a->busy_ns, b->busy_ns);
    ck_assert_int_eq(a->padded, b->padded);
    ck_assert(a->reference_vision == b->reference_vision && a->reference_tokens == b->reference_tokens &&
              a->reference_squares == b->reference_squares && a->square_ns == b->square_ns);
    ck_assert(a->link_bytes_per_s == b->link_bytes_per_s && a->link_latency_ns == b->link_latency_ns);
    expect_columns(&hbp__vlm_table, a, b);
    expect_columns(&hbp__layers_table, a->layers, b->layers);
    for (int32_t i = 0; i < a->layers->count; i++)
        ck_assert_str_eq(a->layers->name[i], b->layers->name[i]);
}

START_TEST_IN_CONTEXT(a_plan_comes_back_as_it_was)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        int mark = keep_mark();
        fixture f;
        hbp_vlm_plan *plan = draw_plan(context, seed, 1 + (int32_t)(seed % 3), 1 + (int32_t)(seed % 2),
                                       (int32_t)(seed % 5), &f);
        hbp_vlm_plan *back;
        size_t bytes;
        uint8_t *data = keep(saved(context, plan, (int32_t)(seed % 3) - 1, &bytes));
        MAKES(context, back, load_memory(context, data, bytes, &back));
        expect_same(plan, back);
        OK(context, hbp_vlm_plan_validate(context, plan, f.lengths));
        OK(context, hbp_vlm_plan_validate(context, back, f.lengths));
        keep_release(mark);
    }
}
END_TEST

/* A run of derived layers, whose times have a part in squares. */
START_TEST_IN_CONTEXT(a_plan_of_derived_layers_comes_back)
{
    fixture f = setup(context, 300);
    for (int32_t way = HBP__VLM_DATA_PACKED; way <= HBP__VLM_DATA_SORTED; way++) {
        hbp_vlm_plan *plan, *back;
        size_t bytes;
        f.options.data_method = hbp__vlm_data_name(way);
        MAKES(context, plan, hbp_plan_vlm(context, f.lengths, f.vlm, f.machine, &f.options, &plan));
        uint8_t *data = keep(saved(context, plan, 1, &bytes));
        MAKES(context, back, load_memory(context, data, bytes, &back));
        expect_same(plan, back);
        OK(context, hbp_vlm_plan_validate(context, back, f.lengths));
        ck_assert(way != HBP__VLM_DATA_PACKED || back->square_ns > 0);
    }
}
END_TEST

START_TEST_IN_CONTEXT(the_data_are_a_plan_for_every_reader)
{
    fixture f;
    hbp_vlm_plan *plan = draw_plan(context, 3, 2, 1, HBP__VLM_DATA_PACKED, &f), *back;
    char folder[64], path[128];
    folder_make(folder);
    OK(context, hbp_vlm_plan_save(context, plan, folder_path(path, folder, "plan"), NULL));
    hbp_plan *data;
    hbp_plan_file *file;
    MAKES(context, data, hbp_plan_load(context, path, &data));
    ck_assert_int_eq(data->digest, plan->data->digest);
    OK(context, hbp_plan_validate(context, data, f.lengths, NULL));
    MAKES(context, file, hbp_plan_file_open(context, path, &file));
    MAKES(context, back, hbp_vlm_plan_load(context, path, &back));
    expect_same(plan, back);
    OK(context, hbp_plan_save(context, data, path, NULL));
    FAILS(context, HBP_E_FORMAT, "plan: byte 0: it holds a plan of data, and no vision-language plan",
          hbp_vlm_plan_load(context, path, &back));
    ck_assert_ptr_null(back);
    ck_assert_int_eq(hbp_plan_file_has_vlm(file), 1);
    MAKES(context, file, hbp_plan_file_open(context, path, &file));
    ck_assert_int_eq(hbp_plan_file_has_vlm(file), 0);
    ck_assert_int_eq(hbp_plan_file_has_vlm(NULL), 0);
    FAILS(context, HBP_E_INVALID, "path is NULL", hbp_vlm_plan_load(context, NULL, &back));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_vlm_plan_load(context, path, NULL));
    FAILS(context, HBP_E_INVALID, "plan is NULL", hbp_vlm_plan_save(context, NULL, path, NULL));
    FAILS(context, HBP_E_INVALID, "path is NULL", hbp_vlm_plan_save(context, plan, NULL, NULL));
    FAILS(context, HBP_E_SYSTEM, "none/plan",
          hbp_vlm_plan_save(context, plan, folder_path(path, folder, "none/plan"), NULL));
    folder_remove(folder);
}
END_TEST

static hbp_status load_harmed(hbp_context *context, const void *user, const void *data, size_t bytes,
                              void **out)
{
    (void)user;
    hbp_vlm_plan *plan;
    hbp_status status = load_memory(context, data, bytes, &plan);
    *out = plan;
    return status;
}

static void release_plan(hbp_context *context, const void *user, void *plan)
{
    (void)context, (void)user;
    hbp_vlm_plan_free(plan);
}

/* Safe to walk and to run again, valid or not. */
static void expect_safe(hbp_context *context, const void *user, void *plan)
{
    size_t *const *valid = user;
    OK(context, hbp__vlm_check(context, plan));
    hbp_status status = hbp_vlm_plan_validate(context, plan, NULL);
    ck_assert(status == HBP_OK || status == HBP_E_INVALID);
    **valid += status == HBP_OK;
}

START_TEST_IN_CONTEXT(every_flipped_byte_and_every_cut_is_found)
{
    fixture fix;
    size_t bytes;
    uint8_t *data = keep(saved(context, draw_plan(context, 1, 1, 1, HBP__VLM_DATA_RANDOM, &fix), 1, &bytes));
    const harm_kind kind = {.load = load_harmed, .release = release_plan, .reseal = reseal};
    harm_found(&kind, data, bytes);
}
END_TEST

START_TEST_IN_CONTEXT(a_changed_byte_behind_right_checksums_does_no_harm)
{
    fixture fix;
    size_t bytes, refused, valid = 0, *count = &valid;
    uint64_t header;
    uint8_t *data = keep(saved(context, draw_plan(context, 2, 2, 1, HBP__VLM_DATA_PACKED, &fix), -1, &bytes));
    const harm_kind kind = {.load = load_harmed,
                            .release = release_plan,
                            .reseal = reseal,
                            .expect = expect_safe,
                            .user = &count};
    ck_assert(reseal_scan(data, bytes, &header));
    size_t loaded = harm_borne(&kind, data, bytes, header, &refused);
    ck_assert_uint_gt(refused, header);
    ck_assert_uint_gt(loaded, valid);
    ck_assert_uint_gt(valid, 0); /* sums that nothing depends on */
}
END_TEST

typedef struct filing {
    hbp_vlm_plan *plan;
    char folder[64];
    char path[128];
} filing;

static hbp_status save_one(hbp_context *context, const void *user, const char *path)
{
    return hbp_vlm_plan_save(context, ((const filing *)user)->plan, path, NULL);
}

static hbp_status validate_once(hbp_context *context, void *user)
{
    filing *c = user;
    return hbp_vlm_plan_validate(context, c->plan, NULL);
}

static hbp_status trace_once(hbp_context *context, void *user)
{
    filing *c = user;
    return hbp_vlm_plan_trace(context, c->plan, c->path, NULL);
}

START_TEST_IN_CONTEXT(short_memory_and_cancelling_leave_nothing)
{
    fixture f;
    filing c = {.plan = draw_plan(context, 5, 2, 2, HBP__VLM_DATA_GROUPED, &f)};
    size_t bytes;
    uint8_t *data = keep(saved(context, c.plan, 1, &bytes));
    const harm_kind kind = {.load = load_harmed, .release = release_plan, .save = save_one, .user = &c};
    harm_looks looks = harm_survived(&kind, data, bytes);
    ck_assert(looks.load > 0 && looks.save > 0);
    folder_make(c.folder);
    folder_path(c.path, c.folder, "plan");
    failing_call *const calls[] = {validate_once, trace_once};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        failing_sweep(calls[i], &c);
        ck_assert_int_gt(cancel_sweep(calls[i], &c), 0);
        ck_assert_int_le(folder_count(c.folder), 1);
    }
    folder_remove(c.folder);
}
END_TEST

TEST_MAIN("vlm_file", a_plan_comes_back_as_it_was, a_plan_of_derived_layers_comes_back,
          the_data_are_a_plan_for_every_reader, every_flipped_byte_and_every_cut_is_found,
          a_changed_byte_behind_right_checksums_does_no_harm, short_memory_and_cancelling_leave_nothing)
