/* Many threads share one data set, cost and plan, each with a context of its own. Meant for the thread
 * sanitizer too. */
#include <pthread.h>

#include "pools.h"
#include "views.h"

enum { THREADS = 4, SAMPLES = 3000 };
#define PLANNED TEST_FEW(SAMPLES, SAMPLES / 4) /* of them, as sanitizers have time for */

typedef struct shared {
    const hbp_lengths *lengths;
    const hbp_model *model;
    const hbp_cost *cost;
    const hbp_plan *plan;
} shared;

typedef struct worker {
    const shared *all;
    int failed; /* the line of the first surprise */
    uint64_t digest;
    int64_t epoch_ns;
} worker;

#define SURE(w, condition)                                                                                   \
    do {                                                                                                     \
        if (!(condition) && !(w)->failed)                                                                    \
            (w)->failed = __LINE__;                                                                          \
    } while (0)

static void read_columns(worker *w, hbp_context *context)
{
    const hbp_plan *plan = w->all->plan;
    hbp_plan_view view = plan_view(plan);
    int32_t borders[SAMPLES + 2];
    double weights[SAMPLES];
    for (int64_t p = 0; p < view.packs; p++) {
        int64_t sum = 0;
        for (int64_t i = view.pack_offsets[p]; i < view.pack_offsets[p + 1]; i++)
            sum += view.sample_tokens[i];
        int64_t count = 0;
        SURE(w, sum == view.pack_tokens[p]);
        SURE(w, hbp_plan_copy_cu_seqlens(context, plan, p, 0, borders, SAMPLES + 2, &count) == HBP_OK);
    }
    int64_t count = 0;
    SURE(w, hbp_plan_copy_loss_weights(context, plan, 0, HBP_LOSS_TOKEN, weights, SAMPLES, &count) == HBP_OK);
    SURE(w, hbp_plan_get_rank_pack(plan, 0, 0, 0) >= 0);
    SURE(w, hbp_plan_validate(context, plan, w->all->lengths, w->all->cost) == HBP_OK);
}

static void *work(void *argument)
{
    worker *w = argument;
    const shared *all = w->all;
    hbp_context *context = NULL;
    hbp_plan *plan = NULL;
    if (hbp_context_create(NULL, &context) != HBP_OK) {
        w->failed = __LINE__;
        return NULL;
    }
    hbp_lengths_summary lengths = {.struct_size = sizeof lengths};
    SURE(w, hbp_lengths_get_summary(context, all->lengths, &lengths) == HBP_OK);
    SURE(w, lengths.samples == PLANNED);
    hbp_model_summary model = {.struct_size = sizeof model};
    SURE(w, hbp_model_get_summary(context, all->model, &model) == HBP_OK);
    SURE(w, hbp_cost_predict_pack_ns(all->cost, 1, 0, 4096, 4096.0 * 4096.0, 0) > 0);
    read_columns(w, context);
    hbp_report report = {.struct_size = sizeof report};
    SURE(w, hbp_simulate(context, all->plan, all->cost, NULL, &report) == HBP_OK);
    w->epoch_ns = report.epoch_ns;
    hbp_epoch_options options = {.struct_size = sizeof options};
    options.max_length = 65536;
    SURE(w, hbp_plan_epoch(context, all->lengths, all->cost, &options, &plan) >= 0);
    w->digest = plan ? plan_digest(plan) : 0;
    hbp_plan_free(plan);
    hbp_context_free(context);
    return NULL;
}

START_TEST(threads_share_what_is_shareable)
{
    hbp_context *context = test_context();
    static uint32_t tokens[SAMPLES];
    for (uint32_t i = 0; i < SAMPLES; i++)
        tokens[i] = i % 200 == 0 ? 30000 + i : 100 + i * 7919 % 4000;
    hbp_lengths *lengths = NULL;
    hbp_model *model = NULL;
    hbp_machine *machine = NULL;
    hbp_cost *cost = NULL;
    hbp_plan *plan = NULL;
    OK(context, hbp_lengths_create_u32(context, tokens, PLANNED, NULL, &lengths));
    OK(context, hbp_model_create_preset(context, "llama-3.1-8b", &model));
    OK(context, hbp_machine_create_preset(context, "h100:2", &machine));
    OK(context, hbp_cost_create(context, model, machine, NULL, &cost));
    hbp_epoch_options options = {.struct_size = sizeof options};
    options.max_length = 65536;
    OK(context, hbp_plan_epoch(context, lengths, cost, &options, &plan));

    shared all = {lengths, model, cost, plan};
    pthread_t threads[THREADS];
    worker workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.all = &all};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_msg(workers[i].failed == 0, "thread %d failed at line %d", i, workers[i].failed);
        ck_assert_uint_eq(workers[i].digest, plan_digest(plan));
        ck_assert_int_eq(workers[i].epoch_ns, workers[0].epoch_ns);
    }
    hbp_plan_free(plan);
    hbp_cost_free(cost);
    hbp_machine_free(machine);
    hbp_model_free(model);
    hbp_lengths_free(lengths);
    hbp_context_free(context);
}
END_TEST

/* What a context on several threads, its own or a pool's, makes of lengths: digests, the first of `seen` on
 * one thread. */
static void make_all(hbp_context *context, const uint32_t *tokens, int64_t count, const hbp_cost *cost,
                     uint64_t *seen)
{
    static const char *const fills[] = {"balanced", "tight", "hbp"};
    enum { FILLS = sizeof fills / sizeof *fills };
    hbp_lengths *lengths = NULL;
    hbp_groups *groups = NULL;
    hbp_lengths_summary l = {.struct_size = sizeof l};
    OK(context, hbp_lengths_create_u32(context, tokens, count, NULL, &lengths));
    OK(context, hbp_lengths_get_summary(context, lengths, &l));
    *seen++ = l.digest;
    OK(context, hbp_plan_groups(context, lengths, cost, NULL, &groups));
    for (int i = 0; i < FILLS; i++) {
        hbp_packs *packs = NULL;
        hbp_fill_options options = {.struct_size = sizeof options, .method = fills[i], .seed = 5};
        OK(context, hbp_greedy_fill(context, lengths, groups, &options, &packs));
        hbp_packs_view view = {.struct_size = sizeof view};
        OK(context, hbp_packs_get_view(packs, &view));
        uint64_t digest = (uint64_t)view.packs;
        for (int64_t k = 0; k < count; k++)
            digest = digest * UINT64_C(0x9e3779b97f4a7c15) + view.sample_indices[k];
        *seen++ = digest;
        hbp_packs_free(packs);
    }
    for (int i = 0; i < 2; i++) {
        hbp_plan *plan = NULL;
        hbp_epoch_options options = {.struct_size = sizeof options, .method = i ? "patterns" : NULL};
        OK(context, hbp_plan_epoch(context, lengths, cost, &options, &plan));
        *seen++ = plan_digest(plan);
        hbp_plan_free(plan);
    }
    hbp_groups_free(groups);
    hbp_lengths_free(lengths);
}

START_TEST(any_number_of_threads_gives_the_same)
{
    enum { COUNT = 300000, SEEN = 6 };
    static const int32_t threads[] = {1, 2, 4, 5, 3, 8};
    uint32_t *tokens = malloc(COUNT * sizeof *tokens);
    uint64_t seen[2][SEEN] = {{0}};
    ck_assert_ptr_nonnull(tokens);
    for (uint32_t i = 0; i < COUNT; i++)
        tokens[i] = i % 200 == 0 ? 20000 + i % 9973 : 100 + i * 7919 % 400;
    for (int i = 0; i < 6; i++) {
        hbp_context *context = pool_context(threads[i], i % POOLS);
        hbp_cost *cost = NULL;
        hbp_model *model = NULL;
        hbp_machine *machine = NULL;
        OK(context, hbp_model_create_preset(context, "llama-3.1-8b", &model));
        OK(context, hbp_machine_create_preset(context, "h100:2", &machine));
        OK(context, hbp_cost_create(context, model, machine, NULL, &cost));
        make_all(context, tokens, COUNT, cost, seen[i > 0]);
        for (int k = 0; k < SEEN; k++)
            ck_assert_uint_eq(seen[i > 0][k], seen[0][k]);
        hbp_cost_free(cost);
        hbp_machine_free(machine);
        hbp_model_free(model);
        hbp_context_free(context);
    }
    free(tokens);
}
END_TEST

/* A cancelling thread may race with the call it cancels, and with nothing else. */
static void *cancel_often(void *argument)
{
    for (int i = 0; i < 1000; i++)
        hbp_context_cancel(argument);
    return NULL;
}

START_TEST(cancel_may_come_from_another_thread)
{
    hbp_context *context = test_context();
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel_often, context), 0);
    for (int i = 0; i < 200; i++) {
        hbp_lengths *lengths = NULL;
        uint32_t tokens[] = {1, 2, 3};
        hbp_status status = hbp_lengths_create_u32(context, tokens, 3, NULL, &lengths);
        ck_assert(status == HBP_OK || status == HBP_E_CANCELLED);
        ck_assert((lengths != NULL) == (status == HBP_OK));
        hbp_lengths_free(lengths);
    }
    pthread_join(thread, NULL);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("threads", any_number_of_threads_gives_the_same, threads_share_what_is_shareable,
          cancel_may_come_from_another_thread)
