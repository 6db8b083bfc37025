/* Packs made to be measured: every degree, length, kind and recomputation is there, and a fit to them can
 * tell the terms apart. */
#include "walk/calibrate.h"
#include "walks.h"

typedef struct world {
    ex_calibrate_options options;
    ex_comm *comms[4];
    ex_record record;
    int status[4];
    char message[4][512];
    int64_t limit; /* of a counting device; 0: the CPU */
} world;

typedef struct job {
    world *w;
    int32_t rank;
} job;

static void *run_rank(void *argument)
{
    job *j = argument;
    world *w = j->w;
    ex_record ignored = {0};
    ex_fault fault = {0};
    ex_device *device =
        w->limit ? ex_counting_open(EX_F32, w->limit, NULL, &fault) : ex_cpu_open(EX_F32, 1, &fault);
    ex_comm_bind(w->comms[j->rank], device);
    w->status[j->rank] =
        ex_calibrate(&w->options, device, w->comms[j->rank], j->rank == 0 ? &w->record : &ignored, &fault);
    snprintf(w->message[j->rank], sizeof w->message[0], "%s", fault.text);
    if (w->status[j->rank] == -1)
        w->comms[j->rank]->ops->abandon(w->comms[j->rank], fault.text);
    ex_record_free(&ignored);
    ex_device_free(device);
    return NULL;
}

static void calibrate(world *w, int32_t ranks)
{
    ex_fault fault = {0};
    pthread_t threads[4];
    job jobs[4];
    ck_assert_int_eq(ex_local_open(ranks, 30, w->comms, &fault), 0);
    for (int32_t r = 0; r < ranks; r++) {
        jobs[r] = (job){w, r};
        ck_assert_int_eq(pthread_create(&threads[r], NULL, run_rank, &jobs[r]), 0);
    }
    for (int32_t r = 0; r < ranks; r++)
        pthread_join(threads[r], NULL);
    for (int32_t r = 0; r < ranks; r++)
        ex_comm_free(w->comms[r]);
}

START_TEST(packs_differ_in_every_term)
{
    hbp_context *context = test_context();
    hbp_model *model = walk_model(context);
    ex_shape shape;
    ex_fault fault = {0};
    ck_assert_int_eq(ex_shape_from_model(model, &shape, &fault), 0);
    world w = {.options = {.model = model,
                           .shape = &shape,
                           .sharers = 4,
                           .max_tokens = 256,
                           .repeat = 2,
                           .clock = EX_CLOCK_PROCESSOR,
                           .seconds = 100}};
    calibrate(&w, 4);
    for (int r = 0; r < 4; r++)
        ck_assert_msg(w.status[r] == 0, "%s", w.message[r]);
    /* Sizes 64, 128, 256 a rank; degrees 1, 2, 4 with 4, 2, 1 groups; one document or many, but for 64
     * tokens; two numbers of recomputed layers. */
    ck_assert_int_eq((int)w.record.count, (4 + 2 * 2 + 2 * 1 + 2 * 2 * (4 + 2 + 1)) * 2);
    for (int64_t i = 0; i < w.record.count; i++) {
        ck_assert_int_eq((int)(w.record.tokens[i] % (64 * w.record.sp[i])), 0);
        ck_assert_int_eq(w.record.first_rank[i] % w.record.sp[i], 0);
        ck_assert(w.record.recompute[i] == 0 || w.record.recompute[i] == 4);
        ck_assert_int_eq((int)w.record.sum_squares[i],
                         (int)(w.record.tokens[i] * w.record.tokens[i] / w.record.samples[i]));
    }
    hbp_timeline *timeline = NULL;
    ck_assert_msg(ex_record_finish(&w.record, context, 4, "cpu", &timeline, &fault) == 0, "%s", fault.text);
    hbp_measurements m = {.struct_size = sizeof m};
    OK(context, hbp_timeline_get_measurements(context, timeline, &m));
    hbp_cost *prior = walk_cost(context, 4, 4, 1000), *fitted = NULL;
    hbp_fit_report report = {.struct_size = sizeof report};
    OK(context, hbp_cost_fit(context, prior, &m, &fitted, &report));
    ck_assert_msg(report.median_time_error < report.prior_median_time_error, "%g, %g",
                  report.median_time_error, report.prior_median_time_error);
    ck_assert_msg(report.median_bytes_error < .02, "bytes are counted, not measured: %g",
                  report.median_bytes_error);
    hbp_cost_free(fitted);
    hbp_cost_free(prior);
    hbp_timeline_free(timeline);
    ex_record_free(&w.record);
    hbp_model_free(model);
    hbp_context_free(context);
}
END_TEST

START_TEST(memory_that_is_short_is_said_at_once)
{
    hbp_context *context = test_context();
    hbp_model *model = walk_model(context);
    ex_shape shape;
    ex_fault fault = {0};
    ck_assert_int_eq(ex_shape_from_model(model, &shape, &fault), 0);
    world w = {.options = {.model = model, .shape = &shape, .sharers = 1, .seconds = 1}, .limit = 1000000};
    calibrate(&w, 2);
    ck_assert_int_eq(w.status[0], -2);
    ck_assert_int_eq(w.status[1], -2);
    ck_assert_msg(strstr(w.message[0], "a pack of 64 tokens need") != NULL, "%s", w.message[0]);
    ck_assert_str_eq(w.message[1], "");
    ex_record_free(&w.record);
    hbp_model_free(model);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("calibrate", packs_differ_in_every_term, memory_that_is_short_is_said_at_once)
