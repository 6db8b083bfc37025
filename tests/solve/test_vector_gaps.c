#include "solve/vector/vectors.h"

#include "base/checked.h"
#include "failing.h"
#include "keep.h"

enum { MOST = 60 };

/* Capacities and the cap are kept, what a pack held stays, and few items miss a pack that has room for them.
 */
START_TEST_IN_CONTEXT(items_go_where_there_is_room)
{
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    int64_t placed = 0, missed = 0, none = 0;
    for (int trial = 0; trial < 1000; trial++) {
        uint32_t a[MOST], b[MOST], pack_of[MOST];
        hbp__vector_load load[MOST], before[MOST];
        int64_t packs = trial % 12, count = 1 + hbp__rng_below(&rng, MOST);
        hbp__vectors v = {count, a, b, NULL, 30, 1000, trial % 3 ? INT64_MAX : 4};
        for (int64_t i = 0; i < count; i++) {
            a[i] = hbp__rng_below(&rng, 12);
            b[i] = 1 + hbp__rng_below(&rng, 400);
        }
        for (int64_t p = 0; p < packs; p++)
            before[p] = load[p] = (hbp__vector_load){hbp__rng_below(&rng, 31), hbp__rng_below(&rng, 1001),
                                                     hbp__rng_below(&rng, 5)};
        OK(context, hbp__vector_fill_gaps(context, &v, load, packs, pack_of));
        for (int64_t p = 0; p < packs; p++) {
            ck_assert_int_eq(load[p].a, before[p].a);
            ck_assert_int_eq(load[p].b, before[p].b);
        }
        for (int64_t i = 0; i < count; i++) {
            none += pack_of[i] == HBP__NO_PACK;
            if (pack_of[i] == HBP__NO_PACK)
                continue;
            ck_assert_int_lt(pack_of[i], packs);
            load[pack_of[i]].a += a[i];
            load[pack_of[i]].b += b[i];
            load[pack_of[i]].weight++;
            placed++;
        }
        for (int64_t p = 0; p < packs; p++) {
            ck_assert_int_le(load[p].a, v.capacity_a);
            ck_assert_int_le(load[p].b, v.capacity_b);
            ck_assert_int_le(load[p].weight, v.max_weight);
        }
        for (int64_t i = 0; i < count; i++)
            for (int64_t p = 0; pack_of[i] == HBP__NO_PACK && p < packs; p++)
                if (load[p].a + a[i] <= v.capacity_a && load[p].b + b[i] <= v.capacity_b &&
                    load[p].weight < v.max_weight) {
                    missed++;
                    break;
                }
    }
    ck_assert_int_gt(placed, 5000);
    ck_assert_int_le(missed * 50, none);
}
END_TEST

static hbp_status once(hbp_context *context, void *user)
{
    uint32_t a[] = {1, 2, 0, 3}, b[] = {9, 8, 7, 6}, pack_of[4];
    hbp__vectors v = {4, a, b, NULL, 5, 20, INT64_MAX};
    (void)user;
    return hbp__vector_fill_gaps(context, &v, (hbp__vector_load[]){{0, 0, 0}, {4, 12, 1}}, 2, pack_of);
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    (void)context;
    failing_sweep(once, NULL);
}
END_TEST

TEST_MAIN("vector gaps", items_go_where_there_is_room, nothing_is_left_behind)
