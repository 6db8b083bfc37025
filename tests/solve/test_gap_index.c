#include "solve/gap_index.h"

#include "base/rng.h"
#include "failing.h"
#include "test.h"

#define THINGS 400

/* Against a scan: the least gap that is large enough, the last added of equals. */
START_TEST(finds_what_a_scan_finds)
{
    hbp__memory memory = hbp__memory_default();
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    /* Both sides of where a word of bits, or of the summary, is full; wide ranges, which are a sorted row. */
    static const int64_t mosts[] = {0,
                                    1,
                                    62,
                                    63,
                                    64,
                                    4030,
                                    4031,
                                    4032,
                                    4094,
                                    4095,
                                    4096,
                                    8127,
                                    8128,
                                    8191,
                                    300000,
                                    4194304,
                                    4194305,
                                    5000000,
                                    INT64_C(1) << 31};
    for (size_t m = 0; m < sizeof mosts / sizeof *mosts; m++) {
        int64_t gap[THINGS], added[THINGS], clock = 0;
        hbp__gap_index index;
        int64_t least = m % 3 ? 0 : INT64_C(1) << 40; /* memory is as wide as the range alone */
        ck_assert(hbp__gap_index_open(&memory, THINGS, least, least + mosts[m], &index));
        for (int i = 0; i < THINGS; i++)
            gap[i] = -1;
        for (int step = 0; step < 10000; step++) {
            uint32_t thing = hbp__rng_below(&rng, THINGS);
            if (gap[thing] < 0) {
                gap[thing] = hbp__rng_below(&rng, 2) ? hbp__rng_below(&rng, (uint64_t)mosts[m] + 1)
                                                     : hbp__rng_below(&rng, 8) * (mosts[m] / 8);
                added[thing] = clock++;
                hbp__gap_index_add(&index, thing, least + gap[thing]);
                continue;
            }
            int64_t size = hbp__rng_below(&rng, (uint64_t)mosts[m] + 3);
            uint32_t expected = HBP__NO_GAP;
            for (uint32_t i = 0; i < THINGS; i++)
                if (gap[i] >= size && (expected == HBP__NO_GAP || gap[i] < gap[expected] ||
                                       (gap[i] == gap[expected] && added[i] > added[expected])))
                    expected = i;
            ck_assert_uint_eq(hbp__gap_index_take(&index, size ? least + size : 0), expected);
            if (expected != HBP__NO_GAP)
                gap[expected] = -1;
        }
        hbp__gap_index_close(&index);
    }
}
END_TEST

START_TEST(without_memory_it_closes_clean)
{
    failing f;
    hbp__memory memory = {failing_alloc, NULL, failing_release, &f};
    for (int64_t n = 0; n < 4; n++) {
        f = (failing){.left = n};
        hbp__gap_index index;
        ck_assert_int_eq(hbp__gap_index_open(&memory, 5, 0, 100, &index), 0);
        hbp__gap_index_close(&index);
        ck_assert_int_eq(f.live, 0);
    }
}
END_TEST

TEST_MAIN("gap_index", finds_what_a_scan_finds, without_memory_it_closes_clean)
