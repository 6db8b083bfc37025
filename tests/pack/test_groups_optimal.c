#include "costs.h"
#include "pack/hierarchy.h"

#define MOST 64

/* Every level the search may use: for each degree, lengths of a step cut into m micro-batches, and where
 * fewer recomputed layers allow it the shorter one that costs a token least. Written from the definition. */
static int64_t levels_of(const hbp__estimator *e, int64_t min_length, int64_t max_length, hbp__level *out)
{
    int64_t count = 0;
    for (int32_t row = 0; row < e->cost->terms.degrees; row++) {
        int32_t sp = e->cost->degree[row];
        int64_t packs = e->cost->terms.ranks / sp;
        for (int64_t m = 0; m <= 32; m++) {
            int64_t length = m ? e->tokens_per_step / packs / m : max_length;
            if (length < min_length || length > max_length ||
                !hbp__level_make(e->cost, e->tokens_per_step, sp, length, m, &out[count]))
                continue;
            count++;
            hbp__level best = out[count - 1];
            double best_ns = hbp__cost_ns(e->cost, row, best.recompute, (double)length, 0) / (double)length;
            for (int32_t c = out[count - 1].recompute - 1; m && c >= 0; c--) {
                int64_t shorter = hbp_cost_predict_capacity(e->cost, sp, c);
                double ns = hbp__cost_ns(e->cost, row, c, (double)shorter, 0) / (double)shorter;
                if (shorter >= min_length && shorter >= length - length / 100 * e->step_slack &&
                    shorter < length && ns < best_ns) {
                    best = out[count - 1];
                    best.recompute = c;
                    best.pack_length = shorter;
                    best_ns = ns;
                }
            }
            if (best.pack_length != length)
                out[count++] = best;
            ck_assert_int_lt(count, MOST);
        }
    }
    return count;
}

/* The oracle: all ways to choose `left` more levels with ascending thresholds, by recursion. */
static double best_of(const hbp__estimator *e, const hbp__level *level, int64_t levels, int left, int64_t low,
                      int64_t longest)
{
    if (low == e->lengths->bins)
        return 0;
    if (!left)
        return -1;
    double best = -1;
    for (int64_t i = 0; i < levels; i++)
        for (int64_t j = 0; j < levels; j++) {
            /* Thresholds are pack lengths; the pack may be longer than the threshold. */
            int64_t threshold = hbp__min_i64(level[j].pack_length, longest);
            int64_t high = hbp__estimator_bin(e, threshold);
            if (high <= low || level[i].pack_length < threshold)
                continue;
            double rest = best_of(e, level, levels, left - 1, high, longest);
            double total = hbp__level_ns(e, &level[i], low, high) + rest;
            if (rest >= 0 && (best < 0 || total < best))
                best = total;
        }
    return best;
}

START_TEST(equals_every_choice_of_levels)
{
    hbp_context *context = test_context();
    for (uint64_t seed = 0; seed < 12; seed++) {
        hbp_cost *cost = test_cost_ranks(context, seed % 2 ? 4 : 8);
        hbp_lengths *lengths = test_long_tail(context, seed, 300, 16384);
        hbp__estimator e;
        OK(context, hbp__estimator_open(context, lengths, cost, 65536, &e));
        e.step_slack = seed % 3 ? 25 : 0;
        hbp__level level[MOST];
        int64_t longest = lengths->bin_length[lengths->bins - 1], count = 3;
        int64_t levels = levels_of(&e, 6000, 16384, level);
        hbp__hierarchy found[3];
        OK(context, hbp__groups_optimal(context, &e, 6000, 16384, 3, found, &count));
        double best = -1, expected = 0;
        for (int k = 1; k <= 3; k++)
            expected = best_of(&e, level, levels, k, 0, longest);
        for (int64_t i = 0; i < count; i++)
            if (best < 0 || (double)found[i].epoch_ns < best)
                best = (double)found[i].epoch_ns;
        ck_assert_msg(best >= expected * (1 - 1e-9) && best <= expected * (1 + 1e-9),
                      "seed %d: %.0f, best is %.0f", (int)seed, best, expected);
        hbp__estimator_close(context, &e);
        hbp_lengths_free(lengths);
        hbp_cost_free(cost);
    }
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("groups_optimal", equals_every_choice_of_levels)
