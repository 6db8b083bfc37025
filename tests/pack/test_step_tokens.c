#include "costs.h"
#include "keep.h"
#include "pack/groups/hierarchy.h"

static hbp_groups *plan(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                        const hbp_groups_options *options)
{
    hbp_groups *groups = NULL;
    OK(context, hbp_plan_groups(context, lengths, cost, options, &groups));
    return groups;
}

static hbp_lengths *alike(hbp_context *context, int64_t length, int64_t count)
{
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_histogram(context, &length, &count, 1, &lengths));
    return lengths;
}

/* The least time of a token over all degrees, layers and lengths, on so many tokens a rank. */
static int64_t by_trying(const hbp_cost *cost, int64_t most)
{
    double best_ns = -1;
    int64_t best = 0;
    for (int32_t row = 0; row < cost->terms.degrees; row++)
        for (int64_t length = cost->degree[row]; length <= most * cost->degree[row]; length += 64) {
            int32_t sp = cost->degree[row], c = hbp_cost_predict_recompute(cost, sp, length);
            double ns = c < 0 ? -1 : hbp__cost_ns(cost, row, c, (double)length, 0, 0) * sp / (double)length;
            if (c >= 0 && (best_ns < 0 || ns < best_ns)) {
                best_ns = ns;
                best = length / sp;
            }
        }
    return best;
}

START_TEST_IN_CONTEXT(a_rank_holds_the_tokens_at_which_one_takes_least)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(alike(context, 2000, 5000));
    hbp_groups *groups = keep(plan(context, lengths, cost, NULL));
    int64_t tokens = by_trying(cost, 60000), got = groups->tokens_per_step / 16;
    ck_assert_int_eq(groups->tokens_per_step % 16, 0);
    ck_assert_msg(got >= tokens - 64 && got <= tokens + 64, "%d, not %d", (int)got, (int)tokens);
    ck_assert_int_gt(groups->pack_length[0], 2000);
    /* Limits on packs and ranks are limits here, too. */
    hbp_groups_options options = {.struct_size = sizeof options};
    options.tokens_per_rank = 5000;
    groups = keep(plan(context, lengths, cost, &options));
    ck_assert_int_eq(groups->tokens_per_step, 80000);
    /* Where what a pack pays once is soon a small share, no more tokens are asked for. */
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    OK(context, hbp_cost_get_terms(context, cost, &terms));
    terms.pack_ns = 1e6;
    hbp_cost *cheap = NULL;
    MAKES(context, cheap, hbp_cost_create_terms(context, &terms, &cheap));
    lengths = keep(alike(context, 100, 5000));
    groups = keep(plan(context, lengths, cheap, NULL));
    got = groups->tokens_per_step / 16;
    double share = 1e6 / (1e6 + 25000.0 * (double)got);
    ck_assert_msg(share > .0499 && share < .0501, "%d tokens", (int)got);
}
END_TEST

/* Rank-time of a token, without attention, where each rank has so many, in packs of at most `longest`; -1
 * where none has. */
static double token_ns(const hbp_cost *cost, int64_t longest, int64_t rank_tokens)
{
    double best_ns = -1;
    for (int32_t row = 0; row < cost->terms.degrees; row++) {
        int64_t length = rank_tokens * cost->degree[row];
        int32_t c = hbp_cost_predict_recompute(cost, cost->degree[row], length);
        double ns = c < 0 ? -1 : hbp__cost_ns(cost, row, c, (double)length, 0, 0) / (double)rank_tokens;
        if (length <= longest && c >= 0 && (best_ns < 0 || ns < best_ns))
            best_ns = ns;
    }
    return best_ns;
}

/* Whether a step of so many tokens can be cut into micro-batches in which a token takes at most 1 % longer
 * than in one of `best`. */
static int costs_little(const hbp_cost *cost, int64_t longest, int64_t tokens, int64_t best)
{
    const double least = token_ns(cost, longest, best / 16);
    int is_cheap = 0;
    for (int64_t count = 1; count < 9; count++) {
        double ns = token_ns(cost, longest, hbp__ceil_div(tokens, 16 * count));
        is_cheap |= ns >= 0 && ns <= least * 1.01;
    }
    return is_cheap;
}

/* Samples of the next test. */
enum { SHORT = 2000 };

/* Tokens of a micro-batch of packs of `longest` of their tokens, on the degree with the least time. */
static int64_t tokens_of_longest(const hbp_cost *cost, int64_t longest)
{
    double best_ns = -1;
    int64_t tokens = 0;
    for (int32_t row = 0; row < cost->terms.degrees && cost->degree[row] <= 8; row++) {
        const int32_t sp = cost->degree[row], c = hbp_cost_predict_recompute(cost, sp, longest);
        const double squares = (double)SHORT * (double)longest;
        const double ns = sp * hbp__cost_ns(cost, row, c < 0 ? 0 : c, (double)longest, squares, 0);
        if (c >= 0 && (best_ns < 0 || ns < best_ns)) {
            best_ns = ns;
            tokens = 16 / sp * longest;
        }
    }
    return tokens;
}

/* A step of long packs stays as it is where its tokens can be cut into micro-batches that lose little, and
 * else is whole micro-batches of the best tokens; of shorter packs it is whole ones, or the best tokens. */
START_TEST_IN_CONTEXT(short_samples_fill_whole_micro_batches)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *shorts = keep(alike(context, SHORT, 5000));
    hbp_groups *groups = plan(context, shorts, cost, NULL);
    int64_t best = groups->tokens_per_step, kept = 0, stretched = 0, whole = 0, filled = 0;
    hbp_groups_free(groups);
    for (int64_t longest = 30000; longest <= 180000; longest += 2500) {
        const int64_t batch = tokens_of_longest(cost, longest);
        hbp_groups_options options = {.struct_size = sizeof options};
        options.max_length = longest;
        groups = plan(context, shorts, cost, &options);
        int64_t tokens = groups->tokens_per_step;
        hbp_groups_free(groups);
        if (batch < best) {
            const int64_t near = (best + batch / 2) / batch * batch;
            ck_assert(costs_little(cost, longest, tokens, best));
            ck_assert(tokens == near || tokens == best);
            ck_assert(tokens == near || !costs_little(cost, longest, near, best));
            whole += tokens == near;
            filled += tokens == best;
            continue;
        }
        if (tokens % longest == 0) {
            kept++;
            continue;
        }
        stretched++;
        ck_assert_int_lt(batch / best * best, batch / 4 * 3 + 4);
        ck_assert_msg(tokens == (batch / best + 1) * best, "longest %d: %d tokens", (int)longest,
                      (int)tokens);
        ck_assert_msg(!costs_little(cost, longest, batch, best), "longest %d", (int)longest);
    }
    ck_assert_int_gt(whole, 2);
    ck_assert_int_gt(filled, 2);
    ck_assert_int_gt(kept, 2);
    ck_assert_int_gt(stretched, 2);
}
END_TEST

START_TEST_IN_CONTEXT(every_group_holds_a_pack_of_the_longest_sample)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(alike(context, 120000, 50));
    hbp_groups *groups = keep(plan(context, lengths, cost, NULL));
    ck_assert_int_ge(groups->tokens_per_step, 2 * 120000);
    /* A given max_length sizes the step for the longest sample that may come. */
    hbp_groups_options options = {.struct_size = sizeof options};
    options.max_length = 131072;
    groups = keep(plan(context, lengths, cost, &options));
    ck_assert_int_ge(groups->tokens_per_step, 2 * 131072);
    /* Unless none that long fits. */
    options.max_length = 1 << 24;
    groups = keep(plan(context, lengths, cost, &options));
    ck_assert_int_ge(groups->tokens_per_step, 2 * 120000);
    ck_assert_int_lt(groups->tokens_per_step, 4 * 120000);
}
END_TEST

/* Degrees of 16 and 32 cross the network; the better it is, the better they look. */
START_TEST_IN_CONTEXT(a_better_network_makes_no_smaller_steps)
{
    hbp_cost *cost = keep(test_cost_ranks(context, 32));
    hbp_lengths *lengths = keep(alike(context, 170000, 50));
    static const int32_t degree[] = {1, 2, 4, 8, 16, 32};
    double latency[] = {0, 2e6, 2e6, 2e6, 4e6, 4e6}, per_token[] = {0, 900, 700, 400, 0, 0};
    int64_t before = 0, wider = 0;
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    OK(context, hbp_cost_get_terms(context, cost, &terms));
    terms.degrees = 6;
    terms.degree = degree;
    terms.sp_latency_ns = latency;
    terms.sp_ns_per_token = per_token;
    for (int share = 1024; share >= 1; share /= 2) {
        per_token[4] = 32.0 * share;
        per_token[5] = 16.0 * share;
        hbp_cost *faster = NULL;
        OK(context, hbp_cost_create_terms(context, &terms, &faster));
        hbp_groups *groups = plan(context, lengths, faster, NULL);
        ck_assert_int_ge(groups->tokens_per_step, before);
        before = groups->tokens_per_step;
        hbp_groups_free(groups);
        int64_t ns[2];
        for (int i = 0; i < 2; i++) {
            int32_t sp = degree[3 + i], c = hbp_cost_predict_recompute(faster, sp, 170000);
            ns[i] = sp * hbp_cost_predict_pack_ns(faster, sp, c, 170000, 170000.0 * 170000, 0);
        }
        wider += ns[1] < ns[0];
        hbp_cost_free(faster);
    }
    ck_assert_int_gt(wider, 0);
}
END_TEST

TEST_MAIN("step_tokens", a_rank_holds_the_tokens_at_which_one_takes_least,
          short_samples_fill_whole_micro_batches, a_better_network_makes_no_smaller_steps,
          every_group_holds_a_pack_of_the_longest_sample)
