#include "solve/chain/chain.h"

#include "solve/chains.h"

/* Room for the bytes of a worker's parts. */
typedef struct rooms {
    int64_t bytes[CHAIN_ITEMS + 1]; /* sums */
    int64_t room[CHAIN_PARTS];
    int32_t workers;
} rooms;

static int64_t over(const void *user, const int32_t *cuts, int32_t parts, int32_t worker)
{
    const rooms *r = user;
    int64_t bytes = -r->room[worker];
    for (int32_t p = worker; p < parts; p += r->workers)
        bytes += r->bytes[cuts[p + 1]] - r->bytes[cuts[p]];
    return bytes > 0 ? bytes : 0;
}

/* A chain of `parts` parts for `workers` workers, with and without limits. */
static void make(hbp__rng *rng, int32_t items, int32_t parts, int32_t workers, chain_data *d, rooms *r,
                 hbp__rounds *rounds)
{
    chain_make(rng, items, parts, d);
    for (int32_t p = workers; p < parts; p++) /* a worker is as fast in every round */
        for (int32_t k = 0; k < d->chain.kinds; k++)
            d->factor[p * d->chain.kinds + k] = d->factor[p % workers * d->chain.kinds + k];
    *rounds = (hbp__rounds){.chain = &d->chain, .workers = workers};
    d->chain.reach = NULL;
    if (chain_draw(rng, 0, 1))
        return;
    rounds->over = over;
    rounds->user = r;
    r->workers = workers;
    r->bytes[0] = 0;
    for (int32_t i = 0; i < items; i++)
        r->bytes[i + 1] = r->bytes[i] + chain_draw(rng, 0, 9);
    for (int32_t w = 0; w < workers; w++)
        r->room[w] = r->bytes[items] * chain_draw(rng, 9, 20) / 10 / workers;
    d->chain.reach = d->reach;
    for (int32_t p = 0; p < parts; p++)
        for (int32_t a = 0, b = 0; a <= items; a++) {
            b = b < a ? a : b;
            while (b < items && r->bytes[b + 1] - r->bytes[a] <= r->room[p % workers])
                b++;
            d->reach[p * (items + 1) + a] = b;
        }
}

static int64_t value_of(const hbp__rounds *rounds, const int32_t *cuts)
{
    const hbp__chain *chain = rounds->chain;
    int64_t load[CHAIN_PARTS] = {0}, sum = 0, most = 0;
    for (int32_t p = 0; p < chain->parts; p++) {
        double cost = 0;
        for (int32_t k = 0; k < chain->kinds; k++)
            cost += (double)(chain->prefix[k][cuts[p + 1]] - chain->prefix[k][cuts[p]]) *
                    chain->factor[p * chain->kinds + k];
        sum += (int64_t)(cost + 0.5) + (p + 1 < chain->parts ? chain->toll[cuts[p + 1]] : 0);
        load[p % rounds->workers] += (int64_t)(cost + 0.5) + chain->side[cuts[p]] + chain->side[cuts[p + 1]];
    }
    for (int32_t w = 0; w < rounds->workers; w++)
        most = load[w] > most ? load[w] : most;
    return chain->weight * most + sum;
}

static int has_room(const hbp__rounds *rounds, const int32_t *cuts)
{
    for (int32_t w = 0; w < rounds->workers && rounds->over; w++)
        if (rounds->over(rounds->user, cuts, rounds->chain->parts, w) > 0)
            return 0;
    return 1;
}

START_TEST(equals_every_partition_tried)
{
    static chain_data d;
    static rooms r;
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(8, 0, 0);
    int infeasible = 0;
    for (int trial = 0; trial < 1500; trial++) {
        int32_t workers = (int32_t)chain_draw(&rng, 1, 3), times = (int32_t)chain_draw(&rng, 1, 3);
        int32_t parts = workers * times, nearest[CHAIN_PARTS + 1], cuts[CHAIN_PARTS + 1];
        hbp__rounds rounds;
        make(&rng, (int32_t)chain_draw(&rng, parts, 12), parts, workers, &d, &r, &rounds);
        hbp__cut_list want, got;
        OK(context, hbp__cut_list_open(context, parts, 1, &want));
        OK(context, hbp__cut_list_open(context, parts, 4, &got));
        chain_first(&d.chain, cuts);
        int64_t lack = INT64_MAX;
        do {
            int64_t lacks = 0;
            for (int32_t w = 0; w < workers && rounds.over; w++)
                lacks += over(&r, cuts, parts, w);
            lack = lacks < lack ? lacks : lack;
            if (has_room(&rounds, cuts))
                hbp__cut_list_add(&want, cuts, value_of(&rounds, cuts));
        } while (chain_next(&d.chain, cuts));
        int64_t work = INT64_C(1) << 24, bound = -1;
        hbp_status status = hbp__cut_rounds(context, &rounds, &work, &got, nearest, &bound);
        ck_assert_int_eq(status, want.count ? HBP_OK : HBP_E_INFEASIBLE);
        infeasible += !want.count;
        if (want.count) {
            ck_assert_int_eq(bound, want.value[0]);
            ck_assert_int_eq(got.value[0], want.value[0]);
            for (int32_t p = 0; p <= parts; p++)
                ck_assert_int_eq(got.cuts[p], want.cuts[p]);
            for (int32_t i = 0; i < got.count; i++) {
                ck_assert_int_eq(value_of(&rounds, hbp__cut_list_get(&got, i)), got.value[i]);
                ck_assert(has_room(&rounds, hbp__cut_list_get(&got, i)));
            }
        } else {
            ck_assert_int_eq(nearest[0], 0);
            ck_assert_int_eq(nearest[parts], d.chain.items);
            ck_assert(!has_room(&rounds, nearest));
            ck_assert_int_gt(lack, 0);
        }
        hbp__cut_list_close(&want);
        hbp__cut_list_close(&got);
    }
    ck_assert_int_gt(infeasible, 50);
    hbp_context_free(context);
}
END_TEST

/* Larger ones, of costs that are not a handful of small numbers: what is listed is as it says, never below
 * the bound, and nearer to it than even cuts. */
START_TEST(large_ones_come_near_the_bound)
{
    static chain_data d;
    static rooms r;
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(9, 0, 0);
    for (int trial = 0; trial < 12; trial++) {
        int32_t workers = 4, parts = 4 * (2 + trial % 3), nearest[CHAIN_PARTS + 1];
        hbp__rounds rounds;
        do
            make(&rng, 100, parts, workers, &d, &r, &rounds);
        while (d.chain.weight < 4 || rounds.over || d.prefix[0][100] < 100000);
        hbp__cut_list list;
        OK(context, hbp__cut_list_open(context, parts, 8, &list));
        int64_t work = 20000000, bound;
        OK(context, hbp__cut_rounds(context, &rounds, &work, &list, nearest, &bound));
        ck_assert_int_eq(list.count, 8);
        for (int32_t i = 0; i < list.count; i++) {
            ck_assert_int_ge(list.value[i], bound);
            ck_assert_int_eq(value_of(&rounds, hbp__cut_list_get(&list, i)), list.value[i]);
        }
        int32_t even[CHAIN_PARTS + 1];
        for (int32_t p = 0; p <= parts; p++)
            even[p] = p * 100 / parts;
        ck_assert_int_le(list.value[0], value_of(&rounds, even));
        ck_assert_msg((double)list.value[0] < 1.08 * (double)bound, "trial %d: %lld, bound %lld", trial,
                      (long long)list.value[0], (long long)bound);
        hbp__cut_list_close(&list);
    }
    hbp_context_free(context);
}
END_TEST

static hbp_status cut(hbp_context *context, void *user)
{
    const hbp__rounds *rounds = user;
    hbp__cut_list list;
    int32_t nearest[CHAIN_PARTS + 1];
    int64_t work = 300000, bound;
    HBP__TRY(hbp__cut_list_open(context, rounds->chain->parts, 3, &list));
    hbp_status status = hbp__cut_rounds(context, rounds, &work, &list, nearest, &bound);
    hbp__cut_list_close(&list);
    return status;
}

START_TEST(failing_allocations_and_cancelling_leave_nothing)
{
    static chain_data d;
    static rooms r;
    hbp__rounds rounds;
    hbp__rng rng = hbp__rng_make(7, 0, 0);
    do
        make(&rng, 20, 6, 3, &d, &r, &rounds);
    while (rounds.over);
    failing_sweep(cut, &rounds);
    ck_assert_int_gt(cancel_sweep(cut, &rounds), 5);
}
END_TEST

TEST_MAIN("chain_rounds", equals_every_partition_tried, large_ones_come_near_the_bound,
          failing_allocations_and_cancelling_leave_nothing)
