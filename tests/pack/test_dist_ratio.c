#include "pack/vision/dist_ratio.h"

#include <math.h>

#include "isf_oracle.h"

START_TEST(small_cases_by_hand)
{
    /* Two ranks, two micro-batches: (4, 2) and (3, 3); the last pack belongs to none. */
    static const int64_t load[] = {4, 3, 2, 3, 1000};
    ck_assert_double_eq_tol(hbp__dist_ratio(load, 5, 2), (2.0 / 8 + 0) / 2, 1e-15);
    ck_assert_double_eq(hbp__dist_ratio(load, 5, 1), 0);
    ck_assert_double_eq_tol(hbp__dist_ratio(load, 5, 5), (5000 - 1012) / 5000.0, 1e-15);
    ck_assert_double_eq(hbp__dist_ratio(load, 5, 6), 0);
    static const int64_t none[] = {0, 7, 0, 7};
    ck_assert_double_eq(hbp__dist_ratio(none, 4, 2), 0);
}
END_TEST

/* The definition: what each rank waits, as a share. */
static double plainly(const int64_t *load, int64_t packs, int64_t ranks)
{
    int64_t each = packs / ranks;
    double sum = 0;
    for (int64_t k = 0; k < each; k++) {
        int64_t max = 0;
        for (int64_t r = 0; r < ranks; r++)
            max = load[k + each * r] > max ? load[k + each * r] : max;
        for (int64_t r = 0; r < ranks; r++)
            sum += (double)(max - load[k + each * r]) / (double)max / (double)ranks;
    }
    return sum / (double)each;
}

START_TEST(random_loads_agree_with_the_definition)
{
    hbp__rng rng = hbp__rng_make(51, 0, 0);
    int64_t load[300];
    for (int trial = 0; trial < 500; trial++) {
        int64_t packs = 1 + hbp__rng_below(&rng, 300), ranks = 1 + hbp__rng_below(&rng, 17);
        for (int64_t p = 0; p < packs; p++)
            load[p] = 1 + hbp__rng_below(&rng, 100000);
        if (packs >= ranks)
            ck_assert_double_eq_tol(hbp__dist_ratio(load, packs, ranks), plainly(load, packs, ranks), 1e-12);
    }
}
END_TEST

/* torch.randperm(count) of a generator seeded with 0. */
static int64_t *torch_permutation(int64_t count)
{
    int64_t *index = malloc((size_t)count * sizeof *index);
    hbp__mt19937 mt;
    hbp__mt_seed(&mt, 0);
    for (int64_t i = 0; i < count; i++)
        index[i] = i;
    for (int64_t i = 0; i < count - 1; i++) {
        int64_t j = i + hbp__mt_next(&mt) % (uint32_t)(count - i), other = index[i];
        index[i] = index[j];
        index[j] = other;
    }
    return index;
}

static uint32_t vlm_tokens[VLM_SAMPLES], vlm_vision[VLM_SAMPLES];

/* The published figures of random micro-batches of 4 samples on 8 ranks: each rank draws from its own eighth
 * of the samples, and pads its micro-batch to the longest. */
START_TEST(published_figures_of_random_micro_batches)
{
    enum { RANKS = 8, SAMPLES = 4, EACH = VLM_SAMPLES / (RANKS * SAMPLES) };
    static int64_t padded[RANKS * EACH], vision[RANKS * EACH];
    if (!vlm_data(vlm_tokens, vlm_vision))
        return;
    int64_t *order = torch_permutation(EACH * SAMPLES);
    double padding = 0, all = 0;
    for (int64_t m = 0; m < RANKS * EACH; m++) {
        int64_t first = m / EACH * EACH * SAMPLES, longest = 0, tokens = 0;
        vision[m] = 0;
        for (int64_t i = 0; i < SAMPLES; i++) {
            int64_t s = first + order[m % EACH * SAMPLES + i];
            longest = vlm_tokens[s] > longest ? vlm_tokens[s] : longest;
            tokens += vlm_tokens[s];
            vision[m] += vlm_vision[s];
        }
        padded[m] = longest * SAMPLES;
        padding += (double)(padded[m] - tokens);
        all += (double)padded[m];
    }
    ck_assert_double_eq_tol(padding / all, .1923849164112545, 1e-12);
    ck_assert_double_eq_tol(hbp__dist_ratio(vision, RANKS * EACH, RANKS), .202402646900373, 1e-12);
    ck_assert_double_eq_tol(hbp__dist_ratio(padded, RANKS * EACH, RANKS), .20192513389428599, 1e-12);
    free(order);
}
END_TEST

TEST_MAIN("dist_ratio", small_cases_by_hand, random_loads_agree_with_the_definition,
          published_figures_of_random_micro_batches)
