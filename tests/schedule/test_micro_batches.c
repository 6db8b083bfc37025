#include "base/methods.h"
#include "packed.h"

#include "base/checked.h"
#include "pack/fill/score.h"

static int64_t pack_ns(const packed *p, uint32_t pack)
{
    int32_t g = p->packs->group[pack];
    return hbp_cost_predict_pack_ns(p->cost, p->groups->sp[g], p->groups->recompute[g],
                                    p->packs->padded[pack], (double)p->packs->squares[pack], 0);
}

/* In every mode: each pack once, whole micro-batches of one group, dummies only at a group's end. */
START_TEST_IN_CONTEXT(each_pack_has_one_place)
{
    int mark = keep_mark();
    for (uint64_t seed = 0; seed < 6; keep_release(mark), seed++) {
        packed p = packed_open(context, seed, 400 + 900 * (int64_t)seed);
        for (int32_t mode = HBP__BALANCE_TIME; mode <= HBP__BALANCE_RANDOM; mode++) {
            hbp_balance_options options = {
                .struct_size = sizeof options, .method = hbp__balance_name(mode), .seed = seed};
            hbp__micro_batches batches;
            OK(p.context, hbp__micro_batches_open(p.context, p.packs, p.groups, p.cost, &options, &batches));
            char *seen = calloc((size_t)p.packs->count, 1);
            int64_t placed = 0;
            for (int64_t m = 0; m < batches.count; m++) {
                int32_t g = batches.group[m];
                ck_assert(m >= batches.group_first[g] && m < batches.group_first[g + 1]);
                ck_assert_int_eq(batches.first[m + 1] - batches.first[m], p.groups->packs[g]);
                for (int64_t i = batches.first[m]; i < batches.first[m + 1]; i++) {
                    uint32_t pack = batches.place[i];
                    if (pack == HBP__PADDING_PACK) {
                        ck_assert_int_eq(m, batches.group_first[g + 1] - 1);
                        continue;
                    }
                    ck_assert_int_eq(p.packs->group[pack], g);
                    ck_assert_int_eq(seen[pack]++, 0);
                    placed++;
                }
            }
            ck_assert_int_eq(placed, p.packs->count);
            free(seen);
            hbp__micro_batches_close(&batches);
        }
    }
}
END_TEST

/* The balanced cut is the best one (see test_score.c) up to the width of a class. */
START_TEST_IN_CONTEXT(time_balance_is_as_good_as_sorting)
{
    int mark = keep_mark();
    for (uint64_t seed = 0; seed < 6; keep_release(mark), seed++) {
        packed p = packed_open(context, seed, 5000);
        hbp_balance_options options = {.struct_size = sizeof options, .seed = seed};
        hbp__micro_batches batches;
        OK(p.context, hbp__micro_batches_open(p.context, p.packs, p.groups, p.cost, &options, &batches));
        int64_t total = 0, best = 0;
        for (int64_t m = 0; m < batches.count; m++) {
            int64_t slowest = 0;
            for (int64_t i = batches.first[m]; i < batches.first[m + 1]; i++)
                if (batches.place[i] != HBP__PADDING_PACK)
                    slowest = hbp__max_i64(slowest, pack_ns(&p, batches.place[i]));
            total += slowest;
        }
        OK(p.context, hbp__packs_score(p.context, p.packs, p.groups, NULL, 0, &best, NULL));
        ck_assert_int_ge(total, best - batches.count);
        ck_assert_int_le(total, best + best / 512);
        hbp__micro_batches_close(&batches);
    }
}
END_TEST

START_TEST_IN_CONTEXT(sorted_means_by_squares_and_given_means_as_given)
{
    packed p = packed_open(context, 3, 3000);
    hbp_balance_options options = {.struct_size = sizeof options,
                                   .method = hbp__balance_name(HBP__BALANCE_SORTED)};
    hbp__micro_batches batches;
    OK(p.context, hbp__micro_batches_open(p.context, p.packs, p.groups, p.cost, &options, &batches));
    for (int64_t i = 1; i < batches.first[batches.group_first[1]]; i++)
        if (batches.place[i] != HBP__PADDING_PACK)
            ck_assert_int_ge(p.packs->squares[batches.place[i - 1]], p.packs->squares[batches.place[i]]);
    hbp__micro_batches_close(&batches);
    options.method = hbp__balance_name(HBP__BALANCE_GIVEN);
    OK(p.context, hbp__micro_batches_open(p.context, p.packs, p.groups, p.cost, &options, &batches));
    for (int64_t i = 1; i < batches.first[batches.group_first[1]]; i++)
        if (batches.place[i] != HBP__PADDING_PACK)
            ck_assert_uint_gt(batches.place[i], batches.place[i - 1]);
    hbp__micro_batches_close(&batches);
}
END_TEST

TEST_MAIN("micro_batches", each_pack_has_one_place, time_balance_is_as_good_as_sorting,
          sorted_means_by_squares_and_given_means_as_given)
