/* The published fill written down plainly, and the data that its published figures are of. */
#ifndef HBP_TESTS_ISF_ORACLE_H
#define HBP_TESTS_ISF_ORACLE_H

#include <string.h>

#include "base/mt19937.h"
#include "base/rng.h"
#include "test.h"

/* Packs of sample indices, end to end. */
typedef struct isf_list {
    int64_t packs, samples;
    int64_t *offsets; /* [samples + 1] */
    int64_t *sample;
} isf_list;

typedef struct isf_rules {
    const int64_t *tokens, *vision; /* vision NULL: tokens alone */
    int64_t max_tokens, max_vision, full_tokens, full_vision;
    int32_t rounds;
    uint32_t seed;
} isf_rules;

static inline isf_list isf_list_new(int64_t samples)
{
    isf_list list = {0, 0, calloc((size_t)samples + 1, sizeof *list.offsets),
                     calloc((size_t)samples + 1, sizeof *list.sample)};
    ck_assert(list.offsets && list.sample);
    return list;
}

static inline void isf_list_free(isf_list *list)
{
    free(list->offsets);
    free(list->sample);
}

static inline void isf_list_add(isf_list *list, const int64_t *sample, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        list->sample[list->samples++] = sample[i];
    list->offsets[++list->packs] = list->samples;
}

/* numpy.random.RandomState(seed).shuffle(list(range(count))), draw by draw. */
static inline int64_t *isf_permutation(uint32_t seed, int64_t count)
{
    int64_t *index = malloc(((size_t)count + 1) * sizeof *index);
    hbp__mt19937 mt;
    hbp__mt_seed(&mt, seed);
    for (int64_t i = 0; i < count; i++)
        index[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        uint32_t mask = 0, j;
        while (mask < i)
            mask = mask << 1 | 1;
        do
            j = hbp__mt_next(&mt) & mask;
        while (j > i);
        int64_t other = index[i];
        index[i] = index[j];
        index[j] = other;
    }
    return index;
}

/* One seeded next fit over `from`, into the empty list `to`. */
static inline void isf_next_fit(const isf_rules *rules, const int64_t *from, int64_t count, uint32_t seed,
                                isf_list *to)
{
    int64_t *index = isf_permutation(seed, count), *open = malloc(((size_t)count + 1) * sizeof *open);
    int64_t held = 0, tokens = 0, vision = 0;
    to->packs = to->samples = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t s = from[index[i]], t = rules->tokens[s], v = rules->vision ? rules->vision[s] : 0;
        if (t > rules->max_tokens || v > rules->max_vision)
            continue;
        if (tokens + t > rules->max_tokens || vision + v > rules->max_vision) {
            isf_list_add(to, open, held);
            held = tokens = vision = 0;
        }
        open[held++] = s;
        tokens += t;
        vision += v;
        if (i == count - 1)
            isf_list_add(to, open, held);
    }
    free(open);
    free(index);
}

/* The fill of `count` samples; the caller frees the list. */
static inline isf_list isf_naive(const isf_rules *rules, int64_t count)
{
    isf_list packs = isf_list_new(count), kept = isf_list_new(count);
    int64_t *need = malloc(((size_t)count + 1) * sizeof *need), needed = count;
    for (int64_t i = 0; i < count; i++)
        need[i] = i;
    isf_next_fit(rules, need, count, rules->seed, &packs);
    for (int32_t r = 0; r < rules->rounds - 1; r++) {
        needed = 0;
        for (int64_t p = 0; p < packs.packs; p++) {
            const int64_t *sample = packs.sample + packs.offsets[p];
            int64_t held = packs.offsets[p + 1] - packs.offsets[p], tokens = 0, vision = 0;
            for (int64_t i = 0; i < held; i++) {
                tokens += rules->tokens[sample[i]];
                vision += rules->vision ? rules->vision[sample[i]] : 0;
            }
            if (tokens >= rules->full_tokens || (rules->vision && vision == rules->full_vision)) {
                isf_list_add(&kept, sample, held);
            } else {
                memcpy(need + needed, sample, (size_t)held * sizeof *need);
                needed += held;
            }
        }
        isf_next_fit(rules, need, needed, rules->seed + (uint32_t)r, &packs);
    }
    for (int64_t p = 0; p < packs.packs; p++)
        isf_list_add(&kept, packs.sample + packs.offsets[p], packs.offsets[p + 1] - packs.offsets[p]);
    free(need);
    isf_list_free(&packs);
    return kept;
}

enum { VLM_SAMPLES = 70706 };

/* Reads a .npy file of VLM_SAMPLES uint32; 0, after a message, where it is absent. */
static inline int vlm_read(const char *path, uint32_t *values)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "skipped: no %s\n", path);
        return 0;
    }
    ck_assert_int_eq(fseek(file, -(long)(VLM_SAMPLES * sizeof *values), SEEK_END), 0);
    ck_assert_uint_eq(fread(values, sizeof *values, VLM_SAMPLES, file), VLM_SAMPLES);
    fclose(file);
    return 1;
}

/* vlm_tokens.npy and vlm_images.npy in the order of the authors' list of files: ai2d, docvqa, chartqa,
 * synthdog (the files have chartqa, at 12413, before docvqa, at 30730; synthdog begins at 40941). The
 * published figures are of this order. 0 where the files are absent. */
static inline int vlm_data(uint32_t *tokens, uint32_t *vision)
{
    static const int64_t part[4][2] = {{0, 12413}, {30730, 40941}, {12413, 30730}, {40941, VLM_SAMPLES}};
    static uint32_t t[VLM_SAMPLES], v[VLM_SAMPLES];
    if (!vlm_read(HBP_DATA_DIR "/vlm_tokens.npy", t) || !vlm_read(HBP_DATA_DIR "/vlm_images.npy", v))
        return 0;
    int64_t n = 0;
    for (int p = 0; p < 4; p++)
        for (int64_t i = part[p][0]; i < part[p][1]; i++, n++) {
            tokens[n] = t[i];
            vision[n] = v[i];
        }
    ck_assert_int_eq(n, VLM_SAMPLES);
    return 1;
}

#endif
