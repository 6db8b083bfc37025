/* Few samples for many: the packs they stand for hold every sample once, and no sample longer than the one
 * that stood for it. */
#include "epoch/thin.h"

#include "base/rng.h"
#include "base/scratch.h"
#include "keep.h"

enum { MOST = 400 };

static int ascending(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Packs of up to 5 of the few samples, in any order, on three groups. */
static hbp_packs *draw_packs(hbp_context *context, hbp__rng *rng, hbp_lengths *few)
{
    hbp_packs *packs = keep(hbp__packs_new(context, few, few->count));
    ck_assert_ptr_nonnull(packs);
    for (int64_t i = 0; i < few->count; i++)
        packs->sample[i] = (uint32_t)i;
    hbp__rng_shuffle_u32(rng, packs->sample, (uint64_t)few->count);
    packs->count = 0;
    packs->offsets[0] = 0;
    for (int64_t at = 0; at < few->count;) {
        const int64_t left = few->count - at, size = 1 + hbp__rng_below(rng, 5);
        at += size < left ? size : left;
        packs->group[packs->count] = (int32_t)hbp__rng_below(rng, 3);
        packs->offsets[++packs->count] = at;
    }
    return packs;
}

/* The patterns beside those packs, one turn after the other, sample by sample. */
static void check_patterns(const hbp__thin *thin, const hbp_packs *packs, const uint32_t *sorted,
                           const hbp__patterns *patterns)
{
    const int64_t count = thin->lengths->count, times = thin->times;
    int64_t at[3] = {0}, used[3] = {0};
    for (int64_t p = 0; p < packs->count; p++)
        for (int64_t turn = 0; turn < times; turn++) {
            uint32_t expected[8];
            int64_t samples = 0;
            for (int64_t i = packs->offsets[p]; i < packs->offsets[p + 1]; i++) {
                /* The runs from the longest sample on. */
                const int64_t run = thin->few->count - 1 - packs->sample[i], place = run * times + turn;
                if (place < count)
                    expected[samples++] = sorted[count - 1 - place];
                ck_assert_int_eq(hbp_lengths_get_length(thin->few, packs->sample[i]),
                                 sorted[count - 1 - run * times]);
            }
            if (!samples)
                continue;
            qsort(expected, (size_t)samples, sizeof *expected, ascending);
            const int64_t g = packs->group[p];
            const hbp__patterns *own = &patterns[g];
            ck_assert_int_lt(at[g], own->count);
            for (int64_t k = own->offsets[at[g]]; k < own->offsets[at[g] + 1]; k++)
                for (int32_t i = 0; i < own->run[k].number; i++)
                    ck_assert_int_eq(thin->lengths->bin_length[own->run[k].class_index], expected[--samples]);
            ck_assert_int_eq(samples, 0);
            if (++used[g] == own->times[at[g]]) {
                at[g]++;
                used[g] = 0;
            }
        }
    for (int g = 0; g < 3; g++)
        ck_assert(at[g] == patterns[g].count && used[g] == 0);
}

START_TEST_IN_CONTEXT(packs_of_few_stand_for_packs_of_all)
{
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    for (int round = 0, mark = keep_mark(); round < TEST_ROUNDS(400); round++, keep_release(mark)) {
        uint32_t values[MOST];
        const int64_t count = 1 + hbp__rng_below(&rng, MOST);
        const uint32_t top = 1 + hbp__rng_below(&rng, round % 2 ? 10 : 1000);
        for (int64_t i = 0; i < count; i++)
            values[i] = 1 + hbp__rng_below(&rng, top);
        hbp_lengths *lengths;
        OK(context, hbp_lengths_create_u32(context, values, count, NULL, &lengths));
        keep(lengths);
        qsort(values, (size_t)count, sizeof *values, ascending);
        hbp__thin thin;
        hbp__patterns patterns[3];
        const int64_t scratch = hbp__scratch_mark(context), most = 1 + hbp__rng_below(&rng, MOST);
        OK(context, hbp__thin_open(context, lengths, most, &thin));
        ck_assert_int_le(thin.few->count, most);
        ck_assert_int_eq(thin.few->count, (count + thin.times - 1) / thin.times);
        hbp_packs *packs = draw_packs(context, &rng, thin.few);
        for (int g = 0; g < 3; g++)
            hbp__patterns_open(context, &patterns[g]);
        OK(context, hbp__thin_patterns(&thin, packs, patterns));
        check_patterns(&thin, packs, values, patterns);
        for (int g = 0; g < 3; g++)
            hbp__patterns_close(&patterns[g]);
        hbp__thin_close(&thin);
        hbp__scratch_release(context, scratch);
    }
}
END_TEST

TEST_MAIN("thin", packs_of_few_stand_for_packs_of_all)
