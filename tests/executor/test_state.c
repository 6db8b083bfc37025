/* States: what was saved is loaded bit for bit; another model, another plan and every damaged byte are
 * refused before anything is changed. */
#include "walk/state.h"
#include "walks.h"

#include <unistd.h>

static char path[64];

typedef struct world {
    hbp_context *context;
    hbp_model *model;
    hbp_plan *plan, *other_plan;
    ex_shape shape;
    ex_device *device;
    ex_parameters parameters;
} world;

static world make_world(uint64_t seed)
{
    world w = {.context = test_context()};
    ex_fault fault = {0};
    uint32_t tokens[30];
    w.model = walk_model(w.context);
    ck_assert_int_eq(ex_shape_from_model(w.model, &w.shape, &fault), 0);
    walk_draw(tokens, 30, 100, 1);
    hbp_lengths *lengths = walk_lengths(w.context, tokens, 30);
    hbp_cost *cost = walk_cost(w.context, 2, 2, 80);
    hbp_epoch_options e = {.struct_size = sizeof e};
    e.tokens_per_step = 200;
    OK(w.context, hbp_plan_epoch(w.context, lengths, cost, &e, &w.plan));
    e.seed = 1;
    OK(w.context, hbp_plan_epoch(w.context, lengths, cost, &e, &w.other_plan));
    hbp_cost_free(cost);
    hbp_lengths_free(lengths);
    w.device = ex_cpu_open(EX_F32, 1, &fault);
    ck_assert_int_eq(ex_parameters_create(w.device, &w.shape, seed, &w.parameters), 0);
    for (int64_t i = 0; i < w.parameters.elements; i++) {
        w.parameters.mean[i] = (float)(i % 17) - 3;
        w.parameters.variance[i] = (float)(i % 23);
    }
    return w;
}

static void free_world(world *w)
{
    ex_parameters_free(&w->parameters);
    ex_device_free(w->device);
    hbp_plan_free(w->plan);
    hbp_plan_free(w->other_plan);
    hbp_model_free(w->model);
    hbp_context_free(w->context);
}

static uint64_t seed;
static int32_t normaliser;

static int save(const world *w, const char *to, int64_t step, int64_t updates, ex_fault *fault)
{
    const ex_run_state run = {.step = step, .updates = updates, .seed = 11, .normaliser = 2};
    return ex_state_save(to, w->context, w->plan, &run, &w->parameters, fault);
}

static int load(world *w, const hbp_plan *plan, int64_t *step, int64_t *updates, ex_fault *fault)
{
    ex_run_state run = {.step = *step, .updates = *updates, .seed = seed, .normaliser = normaliser};
    int failed = ex_state_load(path, w->context, plan, &run, &w->parameters, fault);
    *step = run.step;
    *updates = run.updates;
    return failed;
}

static void setup(void)
{
    snprintf(path, sizeof path, "/tmp/hbp-state-%ld", (long)getpid());
    seed = 11;
    normaliser = 2;
}

static void teardown(void)
{
    remove(path);
}

START_TEST(what_was_saved_is_loaded)
{
    world a = make_world(1), b = make_world(2);
    ex_fault fault = {0};
    int64_t step = 0, updates = 0;
    size_t bytes = (size_t)a.parameters.elements * 4;
    ck_assert(memcmp(a.parameters.master, b.parameters.master, bytes) != 0);
    ck_assert_msg(save(&a, path, 2, 5, &fault) == 0, "%s", fault.text);
    memset(b.parameters.mean, 0, bytes);
    ck_assert_msg(load(&b, b.plan, &step, &updates, &fault) == 0, "%s", fault.text);
    ck_assert_int_eq((int)step, 2);
    ck_assert_int_eq((int)updates, 5);
    ck_assert(memcmp(a.parameters.master, b.parameters.master, bytes) == 0);
    ck_assert(memcmp(a.parameters.mean, b.parameters.mean, bytes) == 0);
    ck_assert(memcmp(a.parameters.variance, b.parameters.variance, bytes) == 0);
    ck_assert(memcmp(a.parameters.weights, b.parameters.weights, bytes) == 0);
    free_world(&a);
    free_world(&b);
}
END_TEST

static void refuses(world *w, const hbp_plan *plan, const char *text)
{
    ex_fault fault = {0};
    int64_t step = -7, updates = -7;
    size_t bytes = (size_t)w->parameters.elements * 4;
    float *before = malloc(bytes);
    memcpy(before, w->parameters.master, bytes);
    ck_assert_int_eq(load(w, plan, &step, &updates, &fault), -1);
    ck_assert_msg(strstr(fault.text, text) != NULL, "'%s' lacks '%s'", fault.text, text);
    ck_assert(memcmp(before, w->parameters.master, bytes) == 0 && step == -7);
    free(before);
}

START_TEST(damage_is_refused)
{
    world a = make_world(1), b = make_world(2);
    ex_fault fault = {0};
    ck_assert_int_eq(save(&a, path, 1, 1, &fault), 0);
    seed = 12;
    refuses(&b, b.plan, "is of a run with --seed 11; this one has 12");
    seed = 11;
    normaliser = 0;
    refuses(&b, b.plan, "is of a run with another --loss");
    normaliser = 2;
    b.device->type = EX_BF16;
    refuses(&b, b.plan, "is of a run with another --type");
    b.device->type = EX_F32;
    refuses(&b, b.other_plan, path); /* says what the cursor was of */
    b.parameters.shape.kv_heads = 4; /* seen in the message, too */
    refuses(&b, b.plan, "8 heads and 2 key-value heads of 8, vocabulary 61; this one has");
    b.parameters.shape.kv_heads = 2;
    ex_fault special = {0};
    ck_assert_int_eq(save(&a, "/dev/null", 1, 1, &special), -1);
    ck_assert_str_eq(special.text, "cannot write /dev/null: not a regular file");
    FILE *file = fopen(path, "r+b");
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    for (int i = 0; i < 60; i++) { /* header, arrays, checksum */
        long at = i < 30 ? i * 5 : size - 1 - (i - 30) * (size / 31);
        fseek(file, at, SEEK_SET);
        int old = fgetc(file);
        fseek(file, at, SEEK_SET);
        fputc(old ^ 0x10, file);
        fflush(file);
        refuses(&b, b.plan, path);
        fseek(file, at, SEEK_SET);
        fputc(old, file);
        fflush(file);
    }
    fputc(0, file); /* in the middle: the last byte written back was not at the end */
    fclose(file);
    ck_assert_int_eq(truncate(path, size - 100), 0);
    refuses(&b, b.plan, "is damaged");
    ck_assert_int_eq(truncate(path, 40), 0);
    refuses(&b, b.plan, "not a saved state");
    ck_assert_int_eq(remove(path), 0);
    refuses(&b, b.plan, "cannot open");
    snprintf(path, sizeof path, "/nowhere/state");
    ck_assert_int_eq(save(&a, path, 1, 1, &fault), -1);
    ck_assert_msg(strstr(fault.text, "cannot write /nowhere/state") != NULL, "%s", fault.text);
    free_world(&a);
    free_world(&b);
}
END_TEST

START_TEST(a_full_disk_leaves_the_old_state)
{
    world a = make_world(1);
    ex_fault fault = {0};
    if (access("/dev/full", W_OK) == 0) {
        /* The temporary file's name is known, so it can be made to lead to a full device. */
        char temporary[128];
        ck_assert_int_eq(save(&a, path, 1, 1, &fault), 0);
        snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid());
        ck_assert_int_eq(symlink("/dev/full", temporary), 0);
        ck_assert_int_eq(save(&a, path, 2, 2, &fault), -1);
        ck_assert_msg(strstr(fault.text, "No space left") != NULL, "%s", fault.text);
        ck_assert_int_ne(access(temporary, F_OK), 0);
        int64_t step = 0, updates = 0;
        ex_fault none = {0};
        ck_assert_int_eq(load(&a, a.plan, &step, &updates, &none), 0);
        ck_assert_int_eq((int)step, 1);
    }
    free_world(&a);
}
END_TEST

TEST_MAIN_WITH("state", setup, teardown, what_was_saved_is_loaded, damage_is_refused,
               a_full_disk_leaves_the_old_state)
