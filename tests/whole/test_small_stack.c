/* Every call on a thread with a stack of 128 KiB, as musl gives them; and files that nest deeper than any
 * reader may recurse. */
#include <pthread.h>

#include "every_call.h"
#include "hbp/io.h"

/* Sanitizers widen every frame. */
#define STACK_BYTES (TEST_SANITIZED ? 2048 * 1024 : 128 * 1024)

typedef struct job {
    const every_call *call;
    const every *e;
    hbp_status status;
    char message[512];
} job;

static void *work(void *argument)
{
    job *j = argument;
    hbp_context *context = NULL;
    j->status = hbp_context_create(NULL, &context);
    if (j->status >= 0)
        j->status = j->call->run(context, j->e);
    snprintf(j->message, sizeof j->message, "%s", hbp_context_message(context));
    hbp_context_free(context);
    return NULL;
}

static void run_small(job *j)
{
    pthread_attr_t attributes;
    pthread_t thread;
    ck_assert_int_eq(pthread_attr_init(&attributes), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
    ck_assert_int_eq(pthread_create(&thread, &attributes, work, j), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
}

START_TEST(every_call_fits)
{
    every e = {0};
    hbp_context *context = test_context();
    every_open(context, &e, 0);
    job j = {.call = &EVERY_CALL[_i], .e = &e};
    run_small(&j);
    ck_assert_msg(j.status >= 0, "%s: %s", j.call->name, j.message);
    every_close(&e);
    hbp_context_free(context);
}
END_TEST

/* Each reader of the file at `e->folder`/file; what one says of it is not looked at. */
static hbp_status read_all(hbp_context *context, const every *e)
{
    char path[96];
    every_path(e, path);
    hbp_model *model = NULL;
    hbp_machine *machine = NULL;
    hbp_cost *cost = NULL;
    hbp_graph *graph = NULL;
    hbp_lengths *lengths = NULL;
    hbp_layers *layers = NULL;
    hbp_plan *plan = NULL;
    hbp_task_schedule *schedule = NULL;
    hbp_timeline *timeline = NULL;
    hbp_status status[] = {
        hbp_model_load(context, path, &model),
        hbp_machine_load(context, path, &machine),
        hbp_cost_load(context, path, &cost),
        hbp_graph_load(context, path, &graph),
        hbp_lengths_load(context, path, NULL, &lengths),
        hbp_layers_load(context, path, &layers),
        hbp_plan_load(context, path, &plan),
        hbp_task_schedule_load(context, path, &schedule),
        hbp_timeline_load(context, path, &timeline),
    };
    hbp_timeline_free(timeline);
    hbp_task_schedule_free(schedule);
    hbp_plan_free(plan);
    hbp_layers_free(layers);
    hbp_lengths_free(lengths);
    hbp_graph_free(graph);
    hbp_cost_free(cost);
    hbp_machine_free(machine);
    hbp_model_free(model);
    for (size_t i = 0; i < sizeof status / sizeof *status; i++)
        if (status[i] >= 0)
            return HBP_E_INTERNAL; /* none of these files says anything */
    return HBP_OK;
}

/* 2,000 and 8,000 levels of arrays, of objects, and of msgpack. */
START_TEST(no_reader_recurses_far)
{
    static const every_call call = {"readers", read_all};
    static const struct {
        const char *front, *level;
    } nest[] = {{"{\"a\": ", "["},
                {"", "{\"a\":"},
                {"{\"layers\": ", "[[{\"a\":"},
                {"\x81\xa1z", "\x91"},
                {"", "\x81\xa1z"}};
    every e = {0};
    char path[96];
    hbp_context *context = test_context();
    every_open(context, &e, 0);
    every_path(&e, path);
    for (size_t i = 0; i < sizeof nest / sizeof *nest; i++)
        for (int levels = 2000; levels <= 8000; levels *= 4) {
            FILE *file = fopen(path, "wb");
            ck_assert_ptr_nonnull(file);
            fputs(nest[i].front, file);
            for (int k = 0; k < levels; k++)
                fputs(nest[i].level, file);
            ck_assert_int_eq(fclose(file), 0);
            job j = {.call = &call, .e = &e};
            run_small(&j);
            ck_assert_msg(j.status >= 0, "file %d of %d levels: %s", (int)i, levels, j.message);
        }
    unlink(path);
    every_close(&e);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN_LOOPS("small_stack", NULL, NULL, {every_call_fits, 0, EVERY_CALLS}, {no_reader_recurses_far, 0, 1})
