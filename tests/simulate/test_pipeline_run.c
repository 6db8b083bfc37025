/* Runs against tables written by hand: what each stage does when. */
#include "data/pipeline/pipeline_run.h"
#include "failing.h"
#include "keep.h"
#include "simulate/pipelines.h"

/* Operations of every stage as "F00 0-2": direction, chunk, micro-batch, start and end. */
static void expect_rows(const hbp_pipeline_run *run, const char *const *rows)
{
    hbp_pipeline_run_view view = pipeline_run_view(run);
    const int32_t *stage = view.operation_stages;
    const int32_t *chunk = view.operation_chunks;
    const int32_t *micro_batch = view.operation_micro_batches;
    const int32_t *direction = view.operation_directions;
    const int64_t *start = view.operation_starts;
    const int64_t *end = view.operation_ends;
    for (int64_t s = 0, i = 0; s < view.stages; s++) {
        char text[1024] = "", *to = text;
        for (int64_t first = i; i < view.operations && stage[i] == s; i++)
            to +=
                sprintf(to, "%s%c%d%d %d-%d", i > first ? ", " : "", direction[i] == HBP_FORWARD ? 'F' : 'B',
                        (int)chunk[i], (int)micro_batch[i], (int)start[i], (int)end[i]);
        ck_assert_str_eq(text, rows[s]);
    }
}

static hbp_pipeline_run *run_of(hbp_context *context, const piped *p, const int32_t *order)
{
    hbp_pipeline_run *run = NULL;
    OK(context, hbp_simulate_pipeline(context, p->layers, p->cuts, &p->options, order, &run));
    return run;
}

static hbp_pipeline_summary summary_of(hbp_context *context, const hbp_pipeline_run *run)
{
    hbp_pipeline_summary summary = {.struct_size = sizeof summary};
    OK(context, hbp_pipeline_run_get_summary(context, run, &summary));
    return summary;
}

static void expect(int32_t stages, int32_t virtual_stages, int32_t micro_batches, const int64_t *forward,
                   const int64_t *backward, const double *scale, const int32_t *order,
                   const char *const *rows, int64_t total)
{
    hbp_context *context = test_context();
    piped p;
    piped_plain(context, &p, stages, virtual_stages, micro_batches, forward, backward);
    p.options.token_scale = scale;
    hbp_pipeline_run *run = run_of(context, &p, order);
    expect_rows(run, rows);
    hbp_pipeline_summary summary = summary_of(context, run);
    ck_assert_int_eq(summary.stages, stages);
    ck_assert_int_eq(summary.total_ns, total);
    ck_assert_int_le(summary.bound_ns, total);
    ck_assert_int_eq(summary.operations,
                     2 * (int64_t)micro_batches * stages * (virtual_stages > 1 ? virtual_stages : 1));
    hbp_pipeline_run_free(run);
    piped_free(&p);
    hbp_context_free(context);
}

START_TEST(plain_runs_by_hand)
{
    expect(
        2, 1, 2, (int64_t[]){2, 3}, (int64_t[]){4, 5}, NULL, NULL,
        (const char *[]){"F00 0-2, F01 2-4, B00 10-14, B01 18-22", "F10 2-5, B10 5-10, F11 10-13, B11 13-18"},
        22);
    /* The middle stage is the slow one. */
    expect(3, 1, 4, (int64_t[]){1, 3, 1}, (int64_t[]){2, 6, 2}, NULL, NULL,
           (const char *[]){
               "F00 0-1, F01 1-2, F02 2-3, B00 13-15, F03 15-16, B01 22-24, B02 31-33, B03 37-39",
               "F10 1-4, F11 4-7, B10 7-13, F12 13-16, B11 16-22, F13 22-25, B12 25-31, B13 31-37",
               "F20 4-5, B20 5-7, F21 7-8, B21 8-10, F22 16-17, B22 17-19, F23 25-26, B23 26-28",
           },
           39);
}
END_TEST

START_TEST(the_interleaved_run_by_hand)
{
    int64_t ones[] = {1, 1, 1, 1}, twos[] = {2, 2, 2, 2};
    expect(
        2, 2, 4, ones, twos, NULL, NULL,
        (const char *[]){
            "F00 0-1, F01 1-2, F20 2-3, F21 3-4, F02 4-5, B20 6-8, F03 8-9, B21 9-11, F22 11-12, B00 12-14, "
            "F23 14-15, B01 15-17, B22 18-20, B23 21-23, B02 23-25, B03 25-27",
            "F10 1-2, F11 2-3, F30 3-4, B30 4-6, F31 6-7, B31 7-9, F12 9-10, B10 10-12, F13 12-13, B11 "
            "13-15, F32 15-16, B32 16-18, F33 18-19, B33 19-21, B12 21-23, B13 23-25",
        },
        27);
}
END_TEST

/* Every stage takes 1 forward and 2 backward. The last one never stops; the others turn to a forward as soon
 * as the backward before it is done. */
START_TEST_IN_CONTEXT(the_textbook_run)
{
    piped p;
    piped_plain(context, &p, 4, 1, 8, (int64_t[]){1, 1, 1, 1}, (int64_t[]){2, 2, 2, 2});
    hbp_pipeline_run *run = keep(run_of(context, &p, NULL));
    hbp_pipeline_run_view view = pipeline_run_view(run);
    const int64_t *start = view.operation_starts;
    const int32_t *micro_batch = view.operation_micro_batches;
    const int32_t *direction = view.operation_directions;
    for (int s = 0; s < 4; s++)
        for (int i = 0; i < 16; i++) {
            int at = 16 * s + i, m = micro_batch[at], turn = m - (4 - s);
            int backward_end = 3 * turn + 12 - 2 * s;
            if (direction[at] == HBP_BACKWARD)
                ck_assert_int_eq(start[at], 3 * m + 10 - 2 * s);
            else
                ck_assert_int_eq(start[at], turn < 0 ? s + m : backward_end);
        }
    hbp_pipeline_summary summary = summary_of(context, run);
    ck_assert_int_eq(summary.total_ns, (8 + 3) * 3);
    ck_assert_int_eq(summary.bound_ns, summary.total_ns);
    ck_assert_double_eq_tol(summary.bubble, 3.0 / 11, 1e-12);
    const int64_t *busy = pipeline_run_view(run).stage_busy_ns;
    ck_assert_int_eq(pipeline_run_view(run).stages, 4);
    for (int s = 0; s < 4; s++)
        ck_assert_int_eq(busy[s], 24);
    piped_free(&p);
}
END_TEST

/* Rows of the options, not places in the order, are told. */
START_TEST(micro_batches_differ_and_come_in_another_order)
{
    double scale[] = {1, 3, 2};
    expect(2, 1, 3, (int64_t[]){2, 1}, (int64_t[]){2, 4}, scale, (int32_t[]){2, 0, 1},
           (const char *[]){"F02 0-4, F00 4-6, B02 14-18, F01 18-24, B00 24-26, B01 39-45",
                            "F12 4-6, B12 6-14, F10 14-15, B10 15-19, F11 24-27, B11 27-39"},
           45);
    /* More stages than micro-batches. */
    expect(4, 1, 2, (int64_t[]){1, 1, 1, 1}, (int64_t[]){1, 1, 2, 1}, NULL, NULL,
           (const char *[]){"F00 0-1, F01 1-2, B00 8-9, B01 10-11", "F10 1-2, F11 2-3, B10 7-8, B11 9-10",
                            "F20 2-3, F21 3-4, B20 5-7, B21 7-9", "F30 3-4, B30 4-5, F31 5-6, B31 6-7"},
           11);
}
END_TEST

/* Two stages, 2 forward, 3 backward, 4 over the link. */
static void expect_link(double overlap, const char *const *rows, int64_t busy_ns, int64_t total_ns)
{
    hbp_context *context = test_context();
    hbp_layer_columns columns = {.struct_size = sizeof columns};
    columns.count = 2;
    columns.forward_ns = (int64_t[]){2, 2};
    columns.backward_ns = (int64_t[]){3, 3};
    columns.cut_bytes = (int64_t[]){2, 1000};
    piped p = {.cuts = {0, 1, 2}};
    OK(context, hbp_layers_create(context, &columns, &p.layers));
    piped_options(&p, 2, 1, 2);
    p.options.link_bytes_per_s = 2e9;
    p.options.link_latency_ns = 3;
    p.options.link_overlap = overlap;
    hbp_pipeline_run *run = run_of(context, &p, NULL);
    expect_rows(run, rows);
    const int64_t *busy = pipeline_run_view(run).stage_busy_ns;
    ck_assert_int_eq(busy[0], busy_ns);
    ck_assert_int_eq(busy[1], busy_ns);
    hbp_pipeline_summary summary = summary_of(context, run);
    ck_assert_int_eq(summary.total_ns, total_ns);
    ck_assert_double_eq_tol(summary.bubble, 1 - (double)busy_ns / (double)total_ns, 1e-12);
    hbp_pipeline_run_free(run);
    piped_free(&p);
    hbp_context_free(context);
}

START_TEST(transfers_delay_the_next_stage_and_hold_up_their_sender)
{
    expect_link(
        1,
        (const char *[]){"F00 0-2, F01 2-4, B00 15-18, B01 20-23", "F10 6-8, B10 8-11, F11 11-13, B11 13-16"},
        10, 23);
    expect_link(
        0,
        (const char *[]){"F00 0-2, F01 6-8, B00 15-18, B01 24-27", "F10 6-8, B10 8-11, F11 15-17, B11 17-20"},
        18, 27);
    expect_link(
        0.5,
        (const char *[]){"F00 0-2, F01 4-6, B00 15-18, B01 22-25", "F10 6-8, B10 8-11, F11 13-15, B11 15-18"},
        14, 25);
}
END_TEST

/* Stage 0 keeps both micro-batches, 10 and 20 bytes, while the first backward works with 7. */
START_TEST_IN_CONTEXT(peaks_by_hand)
{
    hbp_layer_columns columns = {.struct_size = sizeof columns};
    columns.count = 2;
    columns.forward_ns = (int64_t[]){1, 1};
    columns.state_bytes = (int64_t[]){100, 200};
    columns.activation_bytes = (int64_t[]){50, 60};
    columns.recomputed_bytes = (int64_t[]){10, 5};
    columns.working_bytes = (int64_t[]){7, 9};
    piped p = {.cuts = {0, 1, 2}};
    OK(context, hbp_layers_create(context, &columns, &p.layers));
    piped_options(&p, 2, 0, 2);
    p.options.token_scale = (double[]){1, 2};
    p.options.recompute = (int32_t[]){HBP_RECOMPUTE_LAYER, HBP_RECOMPUTE_NONE};
    hbp_pipeline_run *run = keep(run_of(context, &p, NULL));
    const int64_t *peak = pipeline_run_view(run).stage_bytes;
    ck_assert_int_eq(pipeline_run_view(run).stages, 2);
    ck_assert_int_eq(peak[0], 100 + 10 + 20 + 7);
    ck_assert_int_eq(peak[1], 200 + 120);
    ck_assert_int_eq(summary_of(context, run).peak_bytes, 320);
    /* The second one first: then the 14 of its backward come on top of both. */
    hbp_pipeline_run *turned = keep(run_of(context, &p, (int32_t[]){1, 0}));
    ck_assert_int_eq(pipeline_run_view(turned).stage_bytes[0], 100 + 10 + 20 + 14);
    piped_free(&p);
}
END_TEST

START_TEST_IN_CONTEXT(operations_do_not_overlap_and_follow_their_inputs)
{
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    for (int trial = 0, mark = keep_mark(); trial < 300; keep_release(mark), trial++) {
        int32_t stages, virtual_stages, m, order[MOST_M];
        draw_shape(&rng, 6, 3, 3, &stages, &virtual_stages, &m);
        piped p;
        piped_random(context, &rng, &p, stages, virtual_stages, m, PIPED_ALL);
        draw_order(&rng, m, order);
        hbp_pipeline_run *run = keep(run_of(context, &p, order));
        hbp_pipeline_summary summary = summary_of(context, run);
        hbp_pipeline_run_view view = pipeline_run_view(run);
        const int64_t *start = view.operation_starts;
        const int64_t *end = view.operation_ends;
        const int32_t *chunk = view.operation_chunks;
        const int32_t *row = view.operation_micro_batches;
        const int32_t *direction = view.operation_directions;
        int64_t chunks = stages * virtual_stages, last = 0, each = summary.operations / stages;
        int64_t *ends = keep(calloc((size_t)(2 * chunks * m), sizeof *ends));
        for (int64_t i = 0; i < summary.operations; i++) {
            ck_assert(i % each ? start[i] >= end[i - 1] : start[i] >= 0);
            ck_assert_int_ge(end[i], start[i]);
            last = end[i] > last ? end[i] : last;
            ends[2 * (chunk[i] * m + row[i]) + direction[i]] = end[i];
        }
        for (int64_t i = 0; i < summary.operations; i++) {
            int64_t cell = chunk[i] * m + row[i];
            if (direction[i] == HBP_FORWARD && chunk[i])
                ck_assert_int_ge(start[i], ends[2 * (cell - m)]);
            if (direction[i] == HBP_BACKWARD && chunk[i] == chunks - 1)
                ck_assert_int_ge(start[i], ends[2 * cell]);
            if (direction[i] == HBP_BACKWARD && chunk[i] < chunks - 1)
                ck_assert_int_ge(start[i], ends[2 * (cell + m) + 1]);
        }
        ck_assert_int_eq(last, summary.total_ns);
        ck_assert_int_le(summary.bound_ns, summary.total_ns);
        ck_assert(summary.bubble >= 0 && summary.bubble < 1);
        piped_free(&p);
    }
}
END_TEST

START_TEST_IN_CONTEXT(bad_input_has_its_message)
{
    piped p;
    piped_plain(context, &p, 2, 1, 3, (int64_t[]){1, 1}, NULL);
    hbp_pipeline_run *run = NULL;
    hbp_pipeline_options *o = &p.options;
    FAILS(context, HBP_E_INVALID, "out is NULL",
          hbp_simulate_pipeline(context, p.layers, p.cuts, o, NULL, NULL));
    FAILS(context, HBP_E_INVALID, "layers is NULL",
          hbp_simulate_pipeline(context, NULL, p.cuts, o, NULL, &run));
    FAILS(context, HBP_E_INVALID, "cuts is NULL",
          hbp_simulate_pipeline(context, p.layers, NULL, o, NULL, &run));
    FAILS(context, HBP_E_INVALID, "pipeline.stages is 0; it must be at least 1",
          hbp_simulate_pipeline(context, p.layers, p.cuts, NULL, NULL, &run));
    FAILS(context, HBP_E_INVALID, "order of place 1 is 3; there are 3 micro-batches",
          hbp_simulate_pipeline(context, p.layers, p.cuts, o, (int32_t[]){0, 3, 1}, &run));
    FAILS(context, HBP_E_INVALID, "order of place 0 is -1",
          hbp_simulate_pipeline(context, p.layers, p.cuts, o, (int32_t[]){-1, 2, 1}, &run));
    FAILS(context, HBP_E_INVALID, "order of place 2 is 0; that came before",
          hbp_simulate_pipeline(context, p.layers, p.cuts, o, (int32_t[]){0, 1, 0}, &run));
    ck_assert_ptr_null(run);
    hbp_pipeline_summary summary = {.struct_size = sizeof summary};
    FAILS(context, HBP_E_INVALID, "run is NULL", hbp_pipeline_run_get_summary(context, NULL, &summary));
    OK(context, hbp_simulate_pipeline(context, p.layers, p.cuts, o, NULL, &run));
    FAILS(context, HBP_E_INVALID, "summary is NULL", hbp_pipeline_run_get_summary(context, run, NULL));
    hbp_pipeline_run_view none = {.struct_size = sizeof none};
    ck_assert_int_eq(hbp_pipeline_run_get_view(NULL, &none), HBP_E_INVALID);
    ck_assert_ptr_null(none.operation_starts);
    ck_assert_int_eq(none.operations, 0);
    /* A caller that knows only the first fields. */
    hbp_pipeline_summary older;
    memset(&older, 0x5a, sizeof older);
    older.struct_size = 16;
    OK(context, hbp_pipeline_run_get_summary(context, run, &older));
    ck_assert_int_eq(older.total_ns, 4 * 3);
    ck_assert_int_eq(older.bound_ns, 0x5a5a5a5a5a5a5a5a);
    hbp_pipeline_run_free(run);
    hbp_pipeline_run_free(NULL);
    piped_free(&p);
}
END_TEST

/* A cell of a column or a number that is not what it was, its sums made right again. */
static void change_cell(hbp__rng *rng, hbp_pipeline_run *run)
{
    const int32_t at = (int32_t)hbp__rng_below(rng, (uint64_t)hbp__pipeline_run_table.column_count + 1);
    if (at == hbp__pipeline_run_table.column_count) {
        run->summary.bound_ns -= 1;
    } else {
        const hbp__member *column = &hbp__pipeline_run_table.columns[at];
        const int64_t row = hbp__rng_below(rng, (uint64_t)hbp__table_rows(run, column));
        if (column->cell == HBP__CELL_I32)
            ((int32_t *)hbp__table_cells(run, column))[row] ^= 1;
        else
            ((int64_t *)hbp__table_cells(run, column))[row] += 1;
    }
    hbp__pipeline_run_seal(run);
}

START_TEST_IN_CONTEXT(a_run_is_held_to_its_layers)
{
    hbp__rng rng = hbp__rng_make(8, 0, 0);
    int sound = 0;
    for (int trial = 0, mark = keep_mark(); trial < 300; keep_release(mark), trial++) {
        int32_t stages, virtual_stages, m, order[MOST_M];
        draw_shape(&rng, 5, 3, 3, &stages, &virtual_stages, &m);
        piped p;
        piped_random(context, &rng, &p, stages, virtual_stages, m, PIPED_ALL);
        draw_order(&rng, m, order);
        hbp_pipeline_run *run = keep(run_of(context, &p, order));
        OK(context, hbp_pipeline_run_validate(context, run, p.layers, p.cuts, &p.options));
        change_cell(&rng, run);
        sound += hbp_pipeline_run_validate(context, run, NULL, NULL, NULL) == HBP_OK;
        ck_assert_int_eq(hbp_pipeline_run_validate(context, run, p.layers, p.cuts, &p.options),
                         HBP_E_INVALID);
        piped_free(&p);
    }
    ck_assert_int_gt(sound, 20); /* those that only the layers tell */
}
END_TEST

START_TEST_IN_CONTEXT(other_layers_and_options_are_named)
{
    piped p, other;
    piped_plain(context, &p, 2, 1, 4, (int64_t[]){2, 3}, (int64_t[]){4, 5});
    piped_plain(context, &other, 2, 1, 4, (int64_t[]){2, 3}, (int64_t[]){4, 6});
    hbp_pipeline_run *run = keep(run_of(context, &p, NULL));
    hbp_pipeline_options *o = &p.options;
    OK(context, hbp_pipeline_run_validate(context, run, p.layers, p.cuts, o));
    FAILS(context, HBP_E_INVALID, "stage_busy_ns 1 is 32; the layers make it 36",
          hbp_pipeline_run_validate(context, run, other.layers, p.cuts, o));
    o->micro_batches = 3;
    FAILS(context, HBP_E_INVALID, "micro_batches is 3; the run is of 4",
          hbp_pipeline_run_validate(context, run, p.layers, p.cuts, o));
    o->micro_batches = 4;
    o->stages = 1;
    FAILS(context, HBP_E_INVALID, "stages is 1; the run is of 2",
          hbp_pipeline_run_validate(context, run, p.layers, p.cuts, o));
    o->stages = 2;
    o->virtual_stages = 2;
    FAILS(context, HBP_E_INVALID, "virtual_stages is 2; the run is of 1",
          hbp_pipeline_run_validate(context, run, p.layers, p.cuts, o));
    o->virtual_stages = 0;
    FAILS(context, HBP_E_INVALID, "cuts is NULL", hbp_pipeline_run_validate(context, run, p.layers, NULL, o));
    FAILS(context, HBP_E_INVALID, "stages is 0",
          hbp_pipeline_run_validate(context, run, p.layers, p.cuts, NULL));
    FAILS(context, HBP_E_INVALID, "run is NULL",
          hbp_pipeline_run_validate(context, NULL, p.layers, p.cuts, o));
    p.cuts[1] = 9;
    FAILS(context, HBP_E_INVALID, "cut", hbp_pipeline_run_validate(context, run, p.layers, p.cuts, o));
    piped_free(&other);
    piped_free(&p);
}
END_TEST

typedef struct validated {
    piped piped;
    hbp_pipeline_run *run;
} validated;

static hbp_status validate_once(hbp_context *context, void *user)
{
    validated *v = user;
    return hbp_pipeline_run_validate(context, v->run, v->piped.layers, v->piped.cuts, &v->piped.options);
}

static hbp_status simulate_once(hbp_context *context, void *user)
{
    piped *p = user;
    hbp_pipeline_run *run = NULL;
    int32_t order[] = {3, 1, 0, 2};
    hbp_status status = hbp_simulate_pipeline(context, p->layers, p->cuts, &p->options, order, &run);
    ck_assert((status >= 0) == (run != NULL));
    hbp_pipeline_run_free(run);
    return status;
}

START_TEST_IN_CONTEXT(nothing_leaks_when_memory_is_short)
{
    hbp__rng rng = hbp__rng_make(6, 0, 0);
    piped p;
    piped_random(context, &rng, &p, 2, 2, 4, PIPED_ALL);
    failing_sweep(simulate_once, &p);
    validated v = {p, keep(run_of(context, &p, NULL))};
    failing_sweep(validate_once, &v);
    piped_free(&p);
}
END_TEST

TEST_MAIN("pipeline_run", plain_runs_by_hand, the_interleaved_run_by_hand, the_textbook_run,
          micro_batches_differ_and_come_in_another_order,
          transfers_delay_the_next_stage_and_hold_up_their_sender, peaks_by_hand,
          operations_do_not_overlap_and_follow_their_inputs, a_run_is_held_to_its_layers,
          other_layers_and_options_are_named, bad_input_has_its_message, nothing_leaks_when_memory_is_short)
