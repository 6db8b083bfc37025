/* With floating-point exceptions unmasked: steps with odd numbers divide by none of them. */
#include "traps.h"

/* Steps from outside: what is refused and how, failures on the way, limits, sameness. */
#include <pthread.h>
#include <stddef.h>

#include "base/methods.h"
#include "costs.h"
#include "failing.h"
#include "keep.h"
#include "stepped.h"
#include "views.h"

typedef struct batch {
    hbp_context *context;
    hbp_cost *cost;
    hbp_lengths *lengths;
    hbp_step_options options;
} batch;

static batch open_batch(hbp_context *context, uint64_t seed, int64_t count)
{
    batch b = {.context = context, .options = {.struct_size = sizeof b.options}};
    b.cost = keep(test_cost(context));
    b.lengths = keep(test_long_tail(context, seed, count, 60000));
    return b;
}

static stepped plan_batch(const batch *b)
{
    stepped plan = stepped_plan(b->context, b->lengths, b->cost, &b->options);
    ck_assert_msg(plan.status >= 0, "%s", hbp_context_message(b->context));
    return plan;
}

/* A refusal with `text`; the context plans as before afterwards. */
static void refuse(const batch *b, hbp_status status, const char *text)
{
    hbp_plan *plan = NULL;
    batch good = *b;
    good.options = (hbp_step_options){.struct_size = sizeof good.options};
    uint64_t digest = plan_batch(&good).digest;
    FAILS(b->context, status, text, hbp_plan_step(b->context, b->lengths, b->cost, &b->options, &plan));
    ck_assert_ptr_null(plan);
    ck_assert_uint_eq(plan_batch(&good).digest, digest);
}

static void refuse_lengths(const batch *b, const uint32_t *length, const int64_t *link, int64_t count,
                           const char *text)
{
    hbp_lengths_options links = {.struct_size = sizeof links, .links = link};
    hbp_lengths *lengths = NULL;
    hbp_plan *plan = NULL;
    OK(b->context, hbp_lengths_create_u32(b->context, length, count, &links, &lengths));
    FAILS(b->context, HBP_E_INFEASIBLE, text,
          hbp_plan_step(b->context, lengths, b->cost, &b->options, &plan));
    ck_assert_ptr_null(plan);
    hbp_lengths_free(lengths);
    plan_batch(b);
}

START_TEST_IN_CONTEXT(a_sequence_that_no_group_holds_is_named)
{
    batch b = open_batch(context, 1, 40);
    int64_t holds = hbp_cost_predict_capacity(b.cost, 8, 8);
    char text[128];
    uint32_t length[] = {100, 200, (uint32_t)holds + 1, 300};
    snprintf(text, sizeof text, "sample 2 has %lld tokens with padding; the longest pack holds %lld",
             (long long)holds + 1, (long long)holds);
    refuse_lengths(&b, length, NULL, 4, text);
    /* One that just fits does, and not with padding. */
    length[2]--;
    hbp_lengths *lengths = NULL;
    OK(b.context, hbp_lengths_create_u32(b.context, length, 4, NULL, &lengths));
    ck_assert_int_eq(stepped_plan(b.context, lengths, b.cost, &b.options).status, HBP_OK);
    hbp_lengths_free(lengths);
    b.options.sequence_multiple = holds - 1;
    snprintf(text, sizeof text, "sample 2 has %lld tokens", (long long)(2 * (holds - 1)));
    b.options.max_sp = 0;
    hbp_plan *plan = NULL;
    OK(b.context, hbp_lengths_create_u32(b.context, length, 4, NULL, &lengths));
    FAILS(b.context, HBP_E_INFEASIBLE, text, hbp_plan_step(b.context, lengths, b.cost, &b.options, &plan));
    hbp_lengths_free(lengths);
    /* Together with its linked samples; on smaller groups; with fewer layers recomputed. */
    b.options.sequence_multiple = 0;
    length[2] = (uint32_t)(holds / 2 + 1);
    length[3] = (uint32_t)(holds / 2 + 1);
    refuse_lengths(&b, length, (int64_t[]){-1, -1, 7, 7}, 4, "with its linked samples");
    b.options.max_sp = 4;
    snprintf(text, sizeof text, "the longest pack holds %lld",
             (long long)hbp_cost_predict_capacity(b.cost, 4, 8));
    length[2] = (uint32_t)holds;
    refuse_lengths(&b, length, NULL, 4, text);
    b.options.recompute = HBP_STEP_RECOMPUTE_NONE;
    snprintf(text, sizeof text, "the longest pack holds %lld",
             (long long)hbp_cost_predict_capacity(b.cost, 4, 0));
    lengths = NULL;
    OK(b.context, hbp_lengths_create_u32(b.context, length, 4, NULL, &lengths));
    FAILS(b.context, HBP_E_INFEASIBLE, text, hbp_plan_step(b.context, lengths, b.cost, &b.options, &plan));
    ck_assert_ptr_null(plan);
    hbp_lengths_free(lengths);
}
END_TEST

START_TEST_IN_CONTEXT(options_without_sense_are_refused)
{
    static const struct {
        size_t field;
        int64_t value;
        const char *text;
    } row[] = {
        {offsetof(hbp_step_options, effort), 10, "`effort` is 10; it must be in 0..9"},
        {offsetof(hbp_step_options, effort), -1, "`effort` is -1; it must be in 0..9"},
        {offsetof(hbp_step_options, min_sp), -1, "`min_sp` is -1; it must be in 0..2147483647"},
        {offsetof(hbp_step_options, min_sp), 17, "`min_sp` is 17; it must be in 0..16"},
        {offsetof(hbp_step_options, max_sp), -1, "`max_sp` is -1; it must be in 0..2147483647"},
        {offsetof(hbp_step_options, recompute), 3, "`recompute` is 3; it must be in 0..2"},
        {offsetof(hbp_step_options, min_micro_batches), -1,
         "`min_micro_batches` is -1; it must be in 0..65536"},
        {offsetof(hbp_step_options, max_micro_batches), -1,
         "`max_micro_batches` is -1; it must be in 0..65536"},
        {offsetof(hbp_step_options, micro_batch_multiple), -1,
         "`micro_batch_multiple` is -1; it must be in 0..65536"},
        {offsetof(hbp_step_options, buckets), -2, "`buckets` is -2"},
    };
    static const struct {
        size_t field;
        const char *text;
    } wide[] = {{offsetof(hbp_step_options, sequence_multiple), "`sequence_multiple` is -1"},
                {offsetof(hbp_step_options, pack_multiple), "`pack_multiple` is -1"},
                {offsetof(hbp_step_options, longest_tokens), "`longest_tokens` is -1"},
                {offsetof(hbp_step_options, tokens_per_rank), "`tokens_per_rank` is -1"},
                {offsetof(hbp_step_options, time_limit_ms), "`time_limit_ms` is -1"}};
    batch b = open_batch(context, 2, 30);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        int32_t value = (int32_t)row[i].value;
        b.options = (hbp_step_options){.struct_size = sizeof b.options};
        memcpy((char *)&b.options + row[i].field, &value, sizeof value);
        refuse(&b, HBP_E_INVALID, row[i].text);
    }
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        int64_t value = -1;
        b.options = (hbp_step_options){.struct_size = sizeof b.options};
        memcpy((char *)&b.options + wide[i].field, &value, sizeof value);
        refuse(&b, HBP_E_INVALID, wide[i].text);
    }
    b.options =
        (hbp_step_options){.struct_size = sizeof b.options, .min_micro_batches = 5, .max_micro_batches = 4};
    refuse(&b, HBP_E_INVALID, "`min_micro_batches` is 5, above max_micro_batches, which is 4");
    b.options = (hbp_step_options){
        .struct_size = sizeof b.options, .max_micro_batches = 2, .micro_batch_multiple = 3};
    refuse(&b, HBP_E_INVALID, "max_micro_batches");
}
END_TEST

START_TEST_IN_CONTEXT(degrees_that_the_cost_lacks_are_refused)
{
    batch b = open_batch(context, 3, 30);
    b.options.min_sp = 4;
    b.options.max_sp = 2;
    refuse(&b, HBP_E_INVALID, "no SP degree in min_sp..max_sp, which is 4..2");
    b.options.min_sp = b.options.max_sp = 3;
    refuse(&b, HBP_E_INVALID, "which is 3..3, and a power of two");
    b.options.any_degree = 1;
    refuse(&b, HBP_E_INVALID, "which is 3..3");
    /* 32 heads cannot be cut in three, nor in 64. */
    hbp_model *model = NULL;
    hbp_machine *machine = NULL;
    MAKES(context, model, hbp_model_create_preset(context, "llama-3.1-8b", &model));
    MAKES(context, machine, hbp_machine_create_preset(context, "h100:8", &machine));
    MAKES(context, b.cost, hbp_cost_create(context, model, machine, NULL, &b.cost));
    b.lengths = keep(test_long_tail(context, 3, 30, 20000));
    b.options = (hbp_step_options){.struct_size = sizeof b.options, .min_sp = 64, .any_degree = 1};
    refuse(&b, HBP_E_INVALID, "no SP degree in min_sp..max_sp, which is 64..");
    b.options =
        (hbp_step_options){.struct_size = sizeof b.options, .min_sp = 3, .max_sp = 3, .any_degree = 1};
    refuse(&b, HBP_E_INVALID, "which is 3..3");
}
END_TEST

START_TEST_IN_CONTEXT(arguments_are_required)
{
    batch b = open_batch(context, 4, 10);
    hbp_plan *plan = NULL;
    ck_assert_int_eq(hbp_plan_step(NULL, b.lengths, b.cost, NULL, &plan), HBP_E_INVALID);
    FAILS(b.context, HBP_E_INVALID, "batch_lengths", hbp_plan_step(b.context, NULL, b.cost, NULL, &plan));
    FAILS(b.context, HBP_E_INVALID, "cost", hbp_plan_step(b.context, b.lengths, NULL, NULL, &plan));
    FAILS(b.context, HBP_E_INVALID, "out", hbp_plan_step(b.context, b.lengths, b.cost, NULL, NULL));
    ck_assert_ptr_null(plan);
    /* A batch of none is none from the start. */
    hbp_lengths *none = NULL;
    FAILS(b.context, HBP_E_INVALID, "0", hbp_lengths_create_u32(b.context, (uint32_t[]){1}, 0, NULL, &none));
    OK(b.context, hbp_plan_step(b.context, b.lengths, b.cost, NULL, &plan));
    hbp_plan_free(plan);
}
END_TEST

/* Vision units that cost nothing come along; those that cost something are charged. */
START_TEST_IN_CONTEXT(vision_units_come_along)
{
    batch b = open_batch(context, 6, 10);
    hbp_lengths *lengths = NULL;
    hbp_plan *plan = NULL;
    hbp_cost *cost = NULL;
    hbp_lengths_options options = {.struct_size = sizeof options, .vision = (uint32_t[]){3, 0, 4}};
    OK(b.context, hbp_lengths_create_u32(b.context, (uint32_t[]){50, 20, 30}, 3, &options, &lengths));
    OK(b.context, hbp_plan_step(b.context, lengths, b.cost, NULL, &plan));
    OK(b.context, hbp_plan_validate(b.context, plan, lengths, b.cost));
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    OK(b.context, hbp_plan_get_summary(b.context, plan, &summary));
    ck_assert_int_eq(summary.vision, 7);
    hbp_plan_free(plan);
    plan = NULL;
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    OK(b.context, hbp_cost_get_terms(b.context, b.cost, &terms));
    terms.vision_bytes = 1;
    OK(b.context, hbp_cost_create_terms(b.context, &terms, &cost));
    OK(b.context, hbp_plan_step(b.context, lengths, cost, NULL, &plan));
    OK(b.context, hbp_plan_validate(b.context, plan, lengths, cost));
    hbp_plan_free(plan);
    plan = NULL;
    OK(b.context, hbp_plan_step(b.context, b.lengths, cost, NULL, &plan));
    hbp_plan_free(plan);
    hbp_cost_free(cost);
    hbp_lengths_free(lengths);
}
END_TEST

/* A caller compiled against fewer fields gets the defaults of the others; one against more may not set them.
 */
START_TEST_IN_CONTEXT(older_and_newer_callers_are_understood)
{
    batch b = open_batch(context, 5, 60);
    struct {
        hbp_step_options known;
        int64_t unknown;
    } newer = {.known = {.struct_size = sizeof newer}};
    uint64_t digest = plan_batch(&b).digest;
    hbp_plan *plan = NULL;
    b.options.effort = 99;
    b.options.struct_size = offsetof(hbp_step_options, effort);
    OK(b.context, hbp_plan_step(b.context, b.lengths, b.cost, &b.options, &plan));
    ck_assert_uint_eq(plan_digest(plan), digest);
    hbp_plan_free(plan);
    plan = NULL;
    OK(b.context, hbp_plan_step(b.context, b.lengths, b.cost, &newer.known, &plan));
    ck_assert_uint_eq(plan_digest(plan), digest);
    hbp_plan_free(plan);
    plan = NULL;
    newer.unknown = 1;
    FAILS(b.context, HBP_E_VERSION, "hbp_step_options",
          hbp_plan_step(b.context, b.lengths, b.cost, &newer.known, &plan));
    b.options.struct_size = 3;
    FAILS(b.context, HBP_E_INVALID, "struct_size",
          hbp_plan_step(b.context, b.lengths, b.cost, &b.options, &plan));
    ck_assert_ptr_null(plan);
    b.options = (hbp_step_options){.struct_size = sizeof b.options};
    ck_assert_uint_eq(b.options.struct_size, sizeof b.options);
}
END_TEST

START_TEST_IN_CONTEXT(an_unknown_method_is_refused)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 1, 30, 3000));
    hbp_step_options options = {.struct_size = sizeof options, .method = "flexps"};
    hbp_plan *plan = NULL;
    FAILS(context, HBP_E_INVALID,
          "`method` is 'flexps'; did you mean 'flexsp'? It must be one of search, flexsp, static-sp, "
          "homogeneous-sp, hybrid-cp, dynamic-cp",
          hbp_plan_step(context, lengths, cost, &options, &plan));
    ck_assert_ptr_null(plan);
}
END_TEST

/* The exact solver is the context's; there is none here. */
START_TEST_IN_CONTEXT(no_solver_is_said)
{
    batch b = open_batch(context, 6, 20);
    b.options.exact = 1;
    refuse(&b, HBP_E_SOLVER, "solver");
}
END_TEST

START_TEST_IN_CONTEXT(a_time_past_all_numbers_is_an_overflow)
{
    batch b = open_batch(context, 7, 5);
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    hbp_cost *cost = NULL;
    hbp_plan *plan = NULL;
    OK(b.context, hbp_cost_get_terms(b.context, b.cost, &terms));
    terms.ns_per_token_squared = 1e18;
    OK(b.context, hbp_cost_create_terms(b.context, &terms, &cost));
    FAILS(b.context, HBP_E_OVERFLOW, "2^63", hbp_plan_step(b.context, b.lengths, cost, NULL, &plan));
    ck_assert_ptr_null(plan);
    hbp_cost_free(cost);
}
END_TEST

/* The longest sample that there is, in lockstep sets of every size: a time, or the same refusal. */
START_TEST_IN_CONTEXT(lockstep_sets_refuse_times_past_all_numbers_alike)
{
    static const uint32_t length[] = {1000, 2147483647, 3000, 2147483647};
    static const double squares[] = {0.2, 1, 2, 5, 1e18}, pack_ns[] = {0, 9.3e18};
    for (int32_t set = 1; set <= 4; set *= 2)
        for (int i = 0; i < 20; i += TEST_FEW(1, 3)) {
            hbp_cost *plain = test_cost_ranks(context, 4), *cost = NULL;
            hbp_cost_terms terms = {.struct_size = sizeof terms};
            hbp_lengths *lengths = NULL;
            hbp_plan *plan = NULL;
            OK(context, hbp_cost_get_terms(context, plain, &terms));
            terms.static_bytes = terms.activation_bytes = terms.working_bytes = terms.logits_bytes = 0;
            terms.recomputed_bytes = terms.sp_buffer_bytes = 0;
            terms.degrees = 1;
            terms.lockstep_ranks = set;
            terms.ns_per_token_squared = squares[i % 5];
            terms.pack_ns = pack_ns[i / 5 % 2];
            OK(context, hbp_cost_create_terms(context, &terms, &cost));
            OK(context, hbp_lengths_create_u32(context, length, i < 10 ? 4 : 3, NULL, &lengths));
            hbp_status status = hbp_plan_step(context, lengths, cost, NULL, &plan);
            if (status < 0)
                FAILS(context, HBP_E_OVERFLOW, "2^63", hbp_plan_step(context, lengths, cost, NULL, &plan));
            else
                OK(context, hbp_plan_validate(context, plan, lengths, cost));
            hbp_plan_free(plan);
            hbp_lengths_free(lengths);
            hbp_cost_free(cost);
            hbp_cost_free(plain);
        }
}
END_TEST

/* Dropped and split samples keep their names. */
START_TEST_IN_CONTEXT(limited_lengths_are_planned)
{
    batch b = open_batch(context, 8, 80);
    for (int32_t policy = HBP_OVERLONG_DROP; policy <= HBP_OVERLONG_SPLIT; policy++) {
        hbp_lengths *limited = NULL;
        hbp_plan *plan = NULL;
        hbp_plan_summary summary = {.struct_size = sizeof summary};
        OK(b.context, hbp_lengths_limit(b.context, b.lengths, 9000, policy, &limited));
        OK(b.context, hbp_plan_step(b.context, limited, b.cost, NULL, &plan));
        OK(b.context, hbp_plan_validate(b.context, plan, limited, b.cost));
        OK(b.context, hbp_plan_validate(b.context, plan, b.lengths, b.cost));
        OK(b.context, hbp_plan_get_summary(b.context, plan, &summary));
        ck_assert_int_gt(summary.overlong_samples, 0);
        ck_assert_int_eq(summary.dropped, policy == HBP_OVERLONG_DROP ? summary.overlong_samples : 0);
        hbp_plan_free(plan);
        hbp_lengths_free(limited);
    }
}
END_TEST

/* Costs and batches at their ends: every plan is whole, and its bound holds. */
START_TEST_IN_CONTEXT(odd_steps_are_planned)
{
    enum { ONE_RANK, FREE, SQUARES, WAITING, CRUMBS, EQUAL, NO_LAYERS, ODD_STEPS };
    for (int odd = 0, mark = keep_mark(); odd < ODD_STEPS; keep_release(mark), odd++) {
        batch b = open_batch(context, (uint64_t)odd, odd == CRUMBS ? 20 : 40);
        hbp_cost_terms t = {.struct_size = sizeof t};
        uint32_t length[4000];
        for (int64_t i = 0; i < 4000; i++)
            length[i] = odd == CRUMBS ? 1 + (uint32_t)i % 2 : 5000;
        OK(b.context, hbp_cost_get_terms(b.context, b.cost, &t));
        double zero[TEST_DEGREES] = {0}, high[TEST_DEGREES] = {0, 1e14, 1e14, 1e14};
        if (odd == ONE_RANK) {
            t.ranks = t.domain_ranks = t.degrees = 1;
            t.limit_bytes *= 8;
        }
        if (odd == FREE || odd == SQUARES) {
            t.ns_per_token = t.pack_ns = t.step_ns = 0;
            t.ns_per_token_squared = odd == SQUARES ? 1e-3 : 0;
            t.sp_latency_ns = t.sp_ns_per_token = zero;
        }
        if (odd == WAITING) {
            t.pack_ns = 1e15;
            t.sp_latency_ns = high;
        }
        if (odd == NO_LAYERS)
            t.layers = 1;
        MAKES(context, b.cost, hbp_cost_create_terms(context, &t, &b.cost));
        if (odd == CRUMBS || odd == EQUAL)
            MAKES(context, b.lengths,
                  hbp_lengths_create_u32(context, length, odd == CRUMBS ? 4000 : 300, NULL, &b.lengths));
        stepped plan = stepped_plan(b.context, b.lengths, b.cost, &b.options);
        ck_assert_msg(plan.status == HBP_OK, "odd step %d: %s", odd, hbp_context_message(b.context));
        ck_assert_msg(odd != FREE || plan.ns == 0, "a free step takes %lld ns", (long long)plan.ns);
    }
}
END_TEST

static hbp_status plan_once(hbp_context *context, void *user)
{
    batch *b = user;
    hbp_plan *plan = NULL;
    hbp_status status = hbp_plan_step(context, b->lengths, b->cost, &b->options, &plan);
    ck_assert_int_eq(status >= 0, plan != NULL);
    hbp_plan_free(plan);
    return status;
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    batch b = open_batch(context, 9, 40);
    failing_sweep(plan_once, &b);
    b.options.any_degree = 1;
    b.options.recompute = HBP_STEP_RECOMPUTE_ALL;
    b.options.micro_batch_multiple = 3;
    failing_sweep(plan_once, &b);
}
END_TEST

START_TEST_IN_CONTEXT(progress_may_cancel)
{
    batch b = open_batch(context, 10, 600);
    ck_assert_int_gt(cancel_sweep(plan_once, &b), 2);
    /* And so may another: the request waits for the next call, which clears it. */
    hbp_plan *plan = NULL;
    uint64_t digest = plan_batch(&b).digest;
    hbp_context_cancel(b.context);
    FAILS(b.context, HBP_E_CANCELLED, "", hbp_plan_step(b.context, b.lengths, b.cost, NULL, &plan));
    ck_assert_ptr_null(plan);
    ck_assert_uint_eq(plan_batch(&b).digest, digest);
}
END_TEST

/* A limit of 1 ms on thousands of sequences gives a whole plan all the same, and says that it was cut. */
START_TEST_IN_CONTEXT(a_time_limit_gives_a_plan)
{
    batch b = open_batch(context, 11, 3000);
    b.options.effort = 9;
    b.options.time_limit_ms = 1;
    stepped cut = plan_batch(&b);
    ck_assert_int_eq(cut.complete, 0);
    /* One that no plan reaches changes nothing. */
    b.lengths = keep(test_long_tail(context, 11, 50, 60000));
    b.options.effort = 0;
    b.options.time_limit_ms = INT64_C(1) << 40;
    stepped late = plan_batch(&b);
    b.options.time_limit_ms = 0;
    stepped plain = plan_batch(&b);
    ck_assert_int_ne(late.complete, 0);
    ck_assert_uint_eq(late.digest, plain.digest);
}
END_TEST

enum { THREADS = 4 };

typedef struct worker {
    const batch *batch;
    uint64_t digest[3];
} worker;

static void *work(void *argument)
{
    worker *w = argument;
    hbp_context *context = NULL;
    if (hbp_context_create(NULL, &context) != HBP_OK)
        return NULL;
    for (int i = 0; i < 3; i++) {
        hbp_step_options options = w->batch->options;
        options.effort = i;
        hbp_plan *plan = NULL;
        if (hbp_plan_step(context, w->batch->lengths, w->batch->cost, &options, &plan) >= 0)
            w->digest[i] = plan_digest(plan);
        hbp_plan_free(plan);
    }
    hbp_context_free(context);
    return NULL;
}

/* The same plan every time, on every thread, beside others that plan. */
START_TEST_IN_CONTEXT(every_run_gives_the_same_plan)
{
    batch b = open_batch(context, 12, 200);
    worker workers[THREADS];
    pthread_t threads[THREADS];
    uint64_t digest[3];
    for (int i = 0; i < 3; i++) {
        b.options.effort = i;
        digest[i] = plan_batch(&b).digest;
        ck_assert_uint_eq(plan_batch(&b).digest, digest[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.batch = &b};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        for (int k = 0; k < 3; k++)
            ck_assert_uint_eq(workers[i].digest[k], digest[k]);
    }
}
END_TEST

/* Effort 0 is effort 1, and the lengths' ids are all that the order of a batch changes. */
START_TEST_IN_CONTEXT(defaults_are_what_they_say)
{
    batch b = open_batch(context, 13, 100);
    stepped plain = plan_batch(&b);
    b.options = (hbp_step_options){.struct_size = sizeof b.options,
                                   .effort = 1,
                                   .min_sp = 1,
                                   .max_sp = 8,
                                   .micro_batch_multiple = 1,
                                   .buckets = -1,
                                   .sequence_multiple = 1,
                                   .pack_multiple = 1};
    ck_assert_uint_eq(plan_batch(&b).digest, plain.digest);
    uint32_t length[100];
    for (int64_t i = 0; i < 100; i++)
        length[i] = (uint32_t)hbp_lengths_get_length(b.lengths, 99 - i);
    MAKES(context, b.lengths, hbp_lengths_create_u32(context, length, 100, NULL, &b.lengths));
    stepped turned = plan_batch(&b);
    ck_assert_int_eq(turned.ns, plain.ns);
    ck_assert_int_eq(turned.bound_ns, plain.bound_ns);
}
END_TEST

/* A multiple must not bring a step past the micro-batches that are asked for, in any mode. */
START_TEST_IN_CONTEXT(a_multiple_keeps_to_the_limit)
{
    int64_t refused = 0, planned = 0;
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 1, 300, 30000));
    for (int32_t mode = 0; mode < HBP__STEP_METHOD_COUNT; mode++)
        for (int32_t most = 3; most < 14; most += TEST_FEW(1, 5)) {
            hbp_step_options options = {.struct_size = sizeof options,
                                        .method = hbp__step_name(mode),
                                        .micro_batch_multiple = 3,
                                        .max_micro_batches = most};
            hbp_plan *plan = NULL;
            hbp_status status = hbp_plan_step(context, lengths, cost, &options, &plan);
            if (status >= 0)
                ck_assert_int_le(plan->micro_batches, most);
            else
                ck_assert_int_eq(status, mode == HBP__STEP_FLEXSP ? status : HBP_E_INFEASIBLE);
            planned += status >= 0;
            refused += status < 0;
            hbp_plan_free(plan);
        }
    ck_assert_int_gt(planned, 0);
    ck_assert_int_gt(refused, 0);
}
END_TEST

TEST_MAIN_WITH("plan_step", traps_on, NULL, lockstep_sets_refuse_times_past_all_numbers_alike,
               a_multiple_keeps_to_the_limit, a_sequence_that_no_group_holds_is_named,
               options_without_sense_are_refused, degrees_that_the_cost_lacks_are_refused,
               arguments_are_required, vision_units_come_along, older_and_newer_callers_are_understood,
               an_unknown_method_is_refused, no_solver_is_said, a_time_past_all_numbers_is_an_overflow,
               limited_lengths_are_planned, odd_steps_are_planned, nothing_is_left_behind,
               progress_may_cancel, a_time_limit_gives_a_plan, every_run_gives_the_same_plan,
               defaults_are_what_they_say)
