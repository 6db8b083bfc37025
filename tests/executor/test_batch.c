/* Batches: every token of every sample is in the chunk of one rank with its target, position and weight;
 * padding has weight 0 and goes on counting. */
#include "walk/batch.h"
#include "walks.h"

/* All ranks' chunks of pack `pack`, end to end. */
typedef struct whole {
    int64_t tokens;
    int32_t *token, *target, *position, *border;
    float *weight;
    int64_t documents;
} whole;

static whole fill(hbp_context *context, const hbp_plan *plan, int64_t pack, int64_t first, int64_t count,
                  int32_t sp, const double *weights, const ex_tokens *source)
{
    whole w = {.tokens = ex_batch_tokens(plan, pack, first, count, sp)};
    ck_assert_int_eq((int)(w.tokens % sp), 0);
    int64_t chunk = w.tokens / sp;
    w.token = calloc((size_t)w.tokens, 4);
    w.target = calloc((size_t)w.tokens, 4);
    w.position = calloc((size_t)w.tokens, 4);
    w.weight = calloc((size_t)w.tokens, 4);
    hbp_plan_summary s = {.struct_size = sizeof s};
    OK(context, hbp_plan_get_summary(context, plan, &s));
    ex_batch b = {.shifted_loss = s.shifted_loss};
    for (int32_t r = 0; r < sp; r++) {
        ex_group group = {.size = sp, .rank = r};
        ex_fault fault = {0};
        ck_assert_msg(ex_batch_fill(&b, context, plan, pack, first, count, weights, first, source, &group, 1,
                                    &fault) == 0,
                      "%s", fault.text);
        ck_assert_int_eq((int)b.pack.pack_tokens, (int)w.tokens);
        ck_assert_int_eq(b.pack.recompute, 1);
        memcpy(w.token + r * chunk, b.pack.tokens, (size_t)chunk * 4);
        memcpy(w.target + r * chunk, b.pack.targets, (size_t)chunk * 4);
        memcpy(w.position + r * chunk, b.pack.positions, (size_t)chunk * 4);
        memcpy(w.weight + r * chunk, b.pack.weights, (size_t)chunk * 4);
    }
    w.documents = b.pack.documents;
    w.border = calloc((size_t)w.documents + 1, 4);
    memcpy(w.border, b.pack.borders, (size_t)(w.documents + 1) * 4);
    int64_t squares = 0;
    for (int64_t i = 0; i < w.documents; i++)
        squares += (int64_t)(w.border[i + 1] - w.border[i]) * (w.border[i + 1] - w.border[i]);
    ck_assert_int_eq((int)b.sum_squares, (int)squares);
    ex_batch_free(&b);
    return w;
}

static void free_whole(whole *w)
{
    free(w->token);
    free(w->target);
    free(w->position);
    free(w->weight);
    free(w->border);
}

/* Row `i` of `count` samples of the plan from `first` on, at token `begin` of the pack. */
static void check_sample(const whole *w, const hbp_plan *plan, int64_t row, int64_t begin, int32_t shifted,
                         double weight, const ex_tokens *source)
{
    hbp_plan_view view = plan_view(plan);
    int32_t length = view.sample_tokens[row];
    int32_t *expected = calloc((size_t)length + 1, 4);
    ex_fault fault = {0};
    ck_assert_int_eq(ex_tokens_read(source, view.sample_ids[row],
                                    view.sample_first_tokens ? view.sample_first_tokens[row] : 0, length,
                                    expected, &fault),
                     0);
    for (int32_t t = 0; t < length; t++) {
        ck_assert_int_eq(w->token[begin + t], expected[t]);
        ck_assert_int_eq(w->target[begin + t], expected[t + 1]);
        ck_assert_int_eq(w->position[begin + t], t);
        int32_t end = length - shifted, loss = view.sample_loss_tokens ? view.sample_loss_tokens[row] : end;
        ck_assert(w->weight[begin + t] == (float)(t < end && t >= end - loss ? weight : 0));
    }
    free(expected);
}

static void check_plan(hbp_context *context, const hbp_plan *plan, int32_t shifted)
{
    ex_fault fault = {0};
    ex_tokens *source = ex_tokens_draw(1, 1000, &fault);
    hbp_plan_view view = plan_view(plan);
    double weights[512];
    for (int i = 0; i < 512; i++)
        weights[i] = .5 + i;
    for (int64_t p = 0; p < view.packs; p++) {
        int64_t first = view.pack_offsets[p], count = view.pack_offsets[p + 1] - first;
        whole w = fill(context, plan, p, first, count, view.pack_sp[p], weights, source);
        double sum = 0, expected = 0;
        ck_assert_int_eq(w.border[0], 0);
        ck_assert_int_eq(w.border[w.documents], (int)w.tokens);
        for (int64_t i = 0; i < count; i++) {
            check_sample(&w, plan, first + i, w.border[i], shifted, weights[i], source);
            expected += weights[i] * (view.sample_loss_tokens ? view.sample_loss_tokens[first + i]
                                                              : view.sample_tokens[first + i]);
        }
        for (int64_t t = 0; t < w.tokens; t++)
            sum += w.weight[t];
        /* Nothing but samples carries loss; and padding behind the last is no new beginning. */
        ck_assert(fabs(sum - expected) < 1e-3 * (1 + expected));
        for (int64_t t = count ? w.border[count] : w.tokens; t < w.tokens; t++)
            ck_assert_int_ne(w.position[t], 0);
        free_whole(&w);
        /* The same samples one by one. */
        for (int64_t i = 0; i < count; i++) {
            whole one = fill(context, plan, -1, first + i, 1, 1, weights, source);
            ck_assert_int_eq((int)one.tokens, view.sample_tokens[first + i]);
            check_sample(&one, plan, first + i, 0, shifted, weights[0], source);
            free_whole(&one);
        }
    }
    ex_tokens_free(source);
}

START_TEST(every_token_is_there_once)
{
    hbp_context *context = test_context();
    uint32_t tokens[40];
    for (uint32_t seed = 0; seed < 4; seed++) {
        walk_draw(tokens, 40, 300, seed);
        hbp_lengths_options of = {.struct_size = sizeof of, .shifted_loss = seed == 3};
        hbp_lengths *lengths = NULL;
        OK(context, hbp_lengths_create_u32(context, tokens, 40, &of, &lengths));
        hbp_cost *cost = walk_cost(context, 8, 8, 80);
        hbp_plan *plan = NULL;
        hbp_step_options o = {.struct_size = sizeof o};
        o.sequence_multiple = seed == 1 ? 8 : 1;
        o.pack_multiple = seed == 2 ? 16 : 1;
        OK(context, hbp_plan_step(context, lengths, cost, &o, &plan));
        check_plan(context, plan, seed == 3);
        hbp_plan_free(plan);
        hbp_cost_free(cost);
        hbp_lengths_free(lengths);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(pieces_of_split_samples_are_documents)
{
    hbp_context *context = test_context();
    uint32_t tokens[20];
    walk_draw(tokens, 20, 300, 3);
    hbp_lengths *lengths = walk_lengths(context, tokens, 20);
    hbp_cost *cost = walk_cost(context, 2, 2, 80);
    hbp_epoch_options e = {.struct_size = sizeof e};
    e.max_length = 100;
    e.over_long = HBP_OVERLONG_SPLIT;
    hbp_plan *plan = NULL;
    OK(context, hbp_plan_epoch(context, lengths, cost, &e, &plan));
    ck_assert_ptr_nonnull(plan_view(plan).sample_first_tokens);
    check_plan(context, plan, 0);
    hbp_plan_free(plan);
    hbp_cost_free(cost);
    hbp_lengths_free(lengths);
    hbp_context_free(context);
}
END_TEST

START_TEST(prompts_carry_no_loss)
{
    hbp_context *context = test_context();
    uint32_t tokens[20], loss[20];
    walk_draw(tokens, 20, 100, 4);
    for (int i = 0; i < 20; i++)
        loss[i] = (tokens[i] + 1) / 2;
    hbp_lengths_options l = {.struct_size = sizeof l};
    l.loss_tokens = loss;
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_u32(context, tokens, 20, &l, &lengths));
    hbp_cost *cost = walk_cost(context, 2, 2, 80);
    hbp_plan *plan = NULL;
    OK(context, hbp_plan_step(context, lengths, cost, NULL, &plan));
    ck_assert_ptr_nonnull(plan_view(plan).sample_loss_tokens);
    check_plan(context, plan, 0);
    hbp_plan_free(plan);
    hbp_cost_free(cost);
    hbp_lengths_free(lengths);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("batch", every_token_is_there_once, pieces_of_split_samples_are_documents, prompts_carry_no_loss)
