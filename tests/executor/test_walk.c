/* The walk: a plan run on virtual ranks gives the loss and the gradients of its samples run one by one,
 * whatever the degrees, the order and the recomputation; a resumed run is the uninterrupted one; ranks that
 * differ say so. */
#include "walks.h"

#include <unistd.h>

#define TOLERANCE 1e-5

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[4][160];
    static int next;
    char *at = path[next++ % 4];
    snprintf(at, sizeof path[0], "%s/%s", folder, name);
    return at;
}

static void setup(void)
{
    snprintf(folder, sizeof folder, "/tmp/hbp-walk-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void)
{
    char line[128];
    snprintf(line, sizeof line, "rm -rf %s", folder);
    ck_assert_int_eq(system(line), 0);
}

typedef struct world {
    hbp_context *context;
    hbp_model *model;
    ex_shape shape;
    ex_tokens *tokens;
    uint32_t lengths[128];
    hbp_lengths *samples;
} world;

static world make_world(int64_t count, uint32_t longest)
{
    world w = {.context = test_context()};
    ex_fault fault = {0};
    w.model = walk_model(w.context);
    ck_assert_int_eq(ex_shape_from_model(w.model, &w.shape, &fault), 0);
    w.tokens = ex_tokens_draw(3, w.shape.vocab, &fault);
    walk_draw(w.lengths, count, longest, 5);
    w.samples = walk_lengths(w.context, w.lengths, count);
    return w;
}

static void free_world(world *w)
{
    hbp_lengths_free(w->samples);
    ex_tokens_free(w->tokens);
    hbp_model_free(w->model);
    hbp_context_free(w->context);
}

static hbp_plan *plan_step(const world *w, int32_t ranks, int32_t max_sp, int64_t capacity)
{
    hbp_cost *cost = walk_cost(w->context, ranks, max_sp, capacity);
    hbp_plan *plan = NULL;
    OK(w->context, hbp_plan_step(w->context, w->samples, cost, NULL, &plan));
    hbp_cost_free(cost);
    return plan;
}

/* Runs a plan for its gradients, kept in folder `name`. */
static double run(const world *w, const hbp_plan *plan, int32_t ranks, const char *name, int32_t recompute,
                  int unpacked, ex_type type)
{
    ex_walk_options o = walk_options(plan, &w->shape, w->tokens);
    walk_result r;
    o.gradients = name;
    o.recompute = recompute;
    o.unpacked = unpacked;
    o.no_update = 1;
    walk_run(&o, w->model, ranks, -1, type, &r);
    walk_expect(&r, ranks);
    return r.loss;
}

START_TEST(any_way_of_running_the_samples_gives_the_same_gradients)
{
    world w = make_world(40, 400);
    hbp_plan *alone = plan_step(&w, 1, 1, 100000);
    double loss = run(&w, alone, 1, in_folder("unpacked"), 0, 1, EX_F32);
    ck_assert_msg(fabs(loss - log(61)) < .5, "loss %g", loss); /* weights are small: nearly uniform */
    const char *reference = in_folder("unpacked");
    static const struct {
        int32_t ranks, max_sp;
        int64_t capacity;
        int32_t recompute;
    } ways[] = {{1, 1, 100000, 0}, {1, 1, 900, -1}, {2, 2, 250, -1}, {4, 4, 120, -1},  {8, 8, 60, -1},
                {8, 8, 60, 4},     {8, 8, 60, 1},   {8, 8, 400, 2},  {8, 1, 100000, 3}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i += TEST_FEW(1, 2)) {
        hbp_plan *plan = plan_step(&w, ways[i].ranks, ways[i].max_sp, ways[i].capacity);
        double other = run(&w, plan, ways[i].ranks, in_folder("packed"), ways[i].recompute, 0, EX_F32);
        double off = walk_differ(reference, in_folder("packed"));
        ck_assert_msg(fabs(other / loss - 1) < TOLERANCE, "way %d: loss %.9g, not %.9g", (int)i, other, loss);
        ck_assert_msg(off < TOLERANCE, "way %d: gradients differ by %g", (int)i, off);
        hbp_plan_free(plan);
    }
    hbp_plan_free(alone);
    free_world(&w);
}
END_TEST

START_TEST(degrees_differ_inside_a_micro_batch)
{
    world w = make_world(40, 400);
    hbp_plan *plan = plan_step(&w, 8, 8, 60);
    hbp_plan_view view = plan_view(plan);
    int mixed = 0;
    for (int64_t m = 0; m < view.micro_batches; m++)
        for (int64_t p = view.micro_batch_offsets[m] + 1; p < view.micro_batch_offsets[m + 1]; p++)
            mixed |= view.pack_sp[p] != view.pack_sp[p - 1];
    ck_assert_msg(mixed, "the plan that the other tests run mixes no degrees");
    /* The record has a row for every pack, with what was computed. */
    ex_walk_options o = walk_options(plan, &w.shape, w.tokens);
    walk_result r;
    o.record = &r.record;
    o.repeat = 3;
    walk_run(&o, w.model, 8, -1, EX_F32, &r);
    walk_expect(&r, 8);
    ck_assert_int_eq((int)r.record.count, (int)view.packs);
    for (int64_t i = 0; i < view.packs; i++) {
        int64_t p = r.record.pack[i];
        ck_assert_int_eq((int)p, (int)i);
        ck_assert_int_eq(r.record.sp[i], view.pack_sp[p]);
        ck_assert_int_eq(r.record.first_rank[i], view.pack_ranks[p]);
        if (r.record.samples[i] > 0)
            ck_assert_int_ge((int)r.record.sum_squares[i], (int)view.pack_squares[p]);
        ck_assert_int_ge((int)r.record.time_ns[i], 1);
        ck_assert_int_gt((int)r.record.peak_bytes[i], 0);
    }
    ex_record_free(&r.record);
    hbp_plan_free(plan);
    free_world(&w);
}
END_TEST

START_TEST(another_order_of_the_samples_gives_the_same_gradients)
{
    world w = make_world(32, 200);
    hbp_cost *cost = walk_cost(w.context, 4, 4, 150);
    hbp_epoch_options e = {.struct_size = sizeof e};
    e.tokens_per_step = 1 << 20; /* one step */
    e.max_groups = 1;
    double loss[3];
    for (int i = 0; i < 3; i++) {
        hbp_plan *plan = NULL;
        e.seed = (uint64_t)i;
        e.method = i < 2 ? "search" : "sorted";
        OK(w.context, hbp_plan_epoch(w.context, w.samples, cost, &e, &plan));
        hbp_plan_view view = plan_view(plan);
        int64_t steps = view.steps;
        ck_assert_int_eq((int)steps, 1);
        loss[i] = run(&w, plan, 4, in_folder(i == 0 ? "first" : "other"), -1, 0, EX_F32);
        ck_assert(fabs(loss[i] / loss[0] - 1) < TOLERANCE);
        if (i > 0)
            ck_assert(walk_differ(in_folder("first"), in_folder("other")) < TOLERANCE);
        hbp_plan_free(plan);
    }
    hbp_cost_free(cost);
    free_world(&w);
}
END_TEST

static hbp_plan *plan_steps(const world *w, int32_t ranks)
{
    hbp_cost *cost = walk_cost(w->context, ranks, ranks, 150);
    hbp_epoch_options e = {.struct_size = sizeof e};
    e.tokens_per_step = 300;
    hbp_plan *plan = NULL;
    OK(w->context, hbp_plan_epoch(w->context, w->samples, cost, &e, &plan));
    hbp_cost_free(cost);
    return plan;
}

START_TEST(a_resumed_run_is_the_uninterrupted_one)
{
    world w = make_world(48, 200);
    hbp_plan *plan = plan_steps(&w, 2);
    hbp_plan_view view = plan_view(plan);
    int64_t steps = view.steps;
    ck_assert_int_ge((int)steps, 5);
    ex_walk_options o = walk_options(plan, &w.shape, w.tokens);
    walk_result whole, first, rest;
    o.gradients = in_folder("whole");
    o.save = in_folder("whole.state");
    walk_run(&o, w.model, 2, -1, EX_F32, &whole);
    walk_expect(&whole, 2);
    o.gradients = NULL;
    o.steps = 3;
    o.save = in_folder("three.state");
    walk_run(&o, w.model, 2, -1, EX_F32, &first);
    walk_expect(&first, 2);
    o.steps = 0;
    o.resume = in_folder("three.state");
    o.save = in_folder("rest.state");
    o.gradients = in_folder("rest");
    walk_run(&o, w.model, 2, -1, EX_F32, &rest);
    walk_expect(&rest, 2);
    ck_assert_int_eq((int)(first.steps + rest.steps), (int)whole.steps);
    ck_assert(memcmp(&rest.loss, &whole.loss, sizeof rest.loss) == 0);
    ck_assert(walk_differ(in_folder("whole"), in_folder("rest")) == 0);
    char line[256];
    snprintf(line, sizeof line, "cmp %s/whole.state %s/rest.state", folder, folder);
    ck_assert_int_eq(system(line), 0);
    hbp_plan_free(plan);
    free_world(&w);
}
END_TEST

START_TEST(training_learns)
{
    world w = make_world(96, 100);
    hbp_plan *plan = plan_steps(&w, 2);
    ex_walk_options o = walk_options(plan, &w.shape, w.tokens);
    walk_result r;
    walk_run(&o, w.model, 2, -1, EX_F32, &r);
    walk_expect(&r, 2);
    double before = r.losses[0];
    walk_run(&o, w.model, 2, -1, EX_BF16, &r);
    walk_expect(&r, 2);
    ck_assert_msg(fabs(r.losses[0] / before - 1) < .01, "bf16 %g, fp32 %g", r.losses[0], before);
    ck_assert_msg(r.loss < before - .2, "loss %g, then %g", before, r.loss);
    hbp_plan_free(plan);
    free_world(&w);
}
END_TEST

START_TEST(ranks_that_differ_say_so)
{
    world w = make_world(32, 200);
    hbp_plan *plan = plan_steps(&w, 4);
    ex_walk_options o = walk_options(plan, &w.shape, w.tokens);
    walk_result r;
    walk_run(&o, w.model, 4, 2, EX_F32, &r);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(r.status[i], -2);
    ck_assert_msg(strstr(r.message[0], "ranks 0 and 2 differ") != NULL, "%s", r.message[0]);
    ck_assert_str_eq(r.message[1], "");
    o.resume = in_folder("absent.state");
    walk_run(&o, w.model, 4, -1, EX_F32, &r);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(r.status[i], -2);
    ck_assert_msg(strstr(r.message[0], "cannot open") != NULL, "%s", r.message[0]);
    ck_assert_str_eq(r.message[3], "");
    o.resume = NULL;
    o.first_step = 1000;
    walk_run(&o, w.model, 4, -1, EX_F32, &r);
    ck_assert_msg(strstr(r.message[0], "step 1000 is not in the plan") != NULL, "%s", r.message[0]);
    o.first_step = -1;
    o.repeat = 17;
    walk_run(&o, w.model, 4, -1, EX_F32, &r);
    ck_assert_msg(strstr(r.message[0], "17 repeats of a pack; at most 16") != NULL, "%s", r.message[0]);
    o.repeat = 0;
    o.adam.learning_rate = 1e30F;
    o.max_norm = 0;
    walk_run(&o, w.model, 4, -1, EX_F32, &r);
    ck_assert_int_eq(r.status[0], -1);
    for (int i = 0; i < 4; i++) /* its own message, or that of the rank that gave up first */
        ck_assert_msg(strstr(r.message[i], "the gradients' norm is") != NULL, "%s", r.message[i]);
    hbp_plan_free(plan);
    free_world(&w);
}
END_TEST

START_TEST(ranks_without_samples_take_part)
{
    world w = make_world(3, 20);
    hbp_plan *alone = plan_step(&w, 1, 1, 100000);
    hbp_plan *plan = plan_step(&w, 8, 8, 100);
    hbp_plan_summary s;
    s.struct_size = sizeof s;
    OK(w.context, hbp_plan_get_summary(w.context, plan, &s));
    ck_assert_int_gt((int)s.padding_packs, 0);
    double loss = run(&w, alone, 1, in_folder("alone"), -1, 1, EX_F32);
    double other = run(&w, plan, 8, in_folder("dummies"), -1, 0, EX_F32);
    ck_assert(fabs(other / loss - 1) < TOLERANCE);
    ck_assert(walk_differ(in_folder("alone"), in_folder("dummies")) < TOLERANCE);
    hbp_plan_free(alone);
    hbp_plan_free(plan);
    free_world(&w);
}
END_TEST

TEST_MAIN_WITH("walk", setup, teardown, any_way_of_running_the_samples_gives_the_same_gradients,
               degrees_differ_inside_a_micro_batch, another_order_of_the_samples_gives_the_same_gradients,
               a_resumed_run_is_the_uninterrupted_one, training_learns, ranks_that_differ_say_so,
               ranks_without_samples_take_part)
