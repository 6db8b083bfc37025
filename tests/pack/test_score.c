#include "pack/fill/score.h"

#include "failing.h"
#include "fill_check.h"
#include "keep.h"

/* The oracle: every way to cut the packs of a group into micro-batches of at most `width`, by recursion over
 * the first pack left. */
static int64_t best_cut(const int64_t *time, int count, unsigned left, int width)
{
    if (!left)
        return 0;
    int first = 0;
    while (!(left >> first & 1))
        first++;
    int64_t best = INT64_MAX;
    for (unsigned with = left; with; with = (with - 1) & left) {
        int64_t slowest = 0;
        if (!(with >> first & 1) || __builtin_popcount(with) > width)
            continue;
        for (int i = 0; i < count; i++)
            if (with >> i & 1)
                slowest = time[i] > slowest ? time[i] : slowest;
        int64_t total = slowest + best_cut(time, count, left & ~with, width);
        best = total < best ? total : best;
    }
    return best;
}

START_TEST_IN_CONTEXT(the_score_is_the_best_cut_into_micro_batches)
{
    hbp__rng rng = hbp__rng_make(71, 0, 0);
    for (int trial = 0, mark = keep_mark(); trial < 60; keep_release(mark), trial++) {
        int width = 1 + (int)hbp__rng_below(&rng, 3), count = 1 + (int)hbp__rng_below(&rng, 7);
        hbp_groups *groups = keep(check_groups(context, 1, (int64_t[]){100}));
        groups->packs[0] = width;
        groups->token_ns[0] = 1;
        hbp_lengths *lengths = keep(check_lengths(context, &rng, count, 100, 0));
        hbp_packs *packs = keep(hbp__packs_new(context, lengths, count));
        int64_t time[8], ns;
        for (int i = 0; i < count; i++) {
            packs->sample[i] = (uint32_t)i;
            packs->offsets[i + 1] = i + 1;
            packs->group[i] = 0;
        }
        OK(context, hbp__packs_measure(context, packs));
        for (int i = 0; i < count; i++)
            time[i] = packs->tokens[i];
        OK(context, hbp__packs_score(context, packs, groups, NULL, 0, &ns, NULL));
        /* The fewest micro-batches are taken; more never help, each pays for its slowest pack. */
        ck_assert_int_eq(ns, best_cut(time, count, (1u << count) - 1, width));
        int64_t with_steps;
        groups->micro_batches[0] = 2;
        OK(context, hbp__packs_score(context, packs, groups, NULL, 1000, &with_steps, NULL));
        ck_assert_int_eq(with_steps, ns + 1000 * (((count + width - 1) / width + 1) / 2));
    }
}
END_TEST

/* Nine packs of a sample each. */
static hbp_packs *nine_packs(hbp_context *context, uint64_t seed)
{
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    hbp_lengths *lengths = keep(check_lengths(context, &rng, 9, 100, 0));
    hbp_packs *packs = keep(hbp__packs_new(context, lengths, 9));
    for (int i = 0; i < 9; i++) {
        packs->sample[i] = (uint32_t)i;
        packs->offsets[i + 1] = i + 1;
        packs->group[i] = 0;
    }
    OK(context, hbp__packs_measure(context, packs));
    return packs;
}

/* What a search can reach: nothing at the bound; else what the micro-batches over it are paid for, and one of
 * them. */
START_TEST_IN_CONTEXT(a_search_may_save_micro_batches_over_the_bound)
{
    hbp_groups *groups = keep(check_groups(context, 1, (int64_t[]){100}));
    hbp_packs *packs = nine_packs(context, 73);
    groups->packs[0] = 2; /* 5 micro-batches, 3 steps */
    groups->micro_batches[0] = 2;
    groups->token_ns[0] = 1;
    groups->square_ns[0] = 0;
    groups->fixed_ns[0] = 500;
    int64_t ns, least_ns;
    packs->bound[0] = 9;
    OK(context, hbp__packs_score(context, packs, groups, NULL, 1000, &ns, &least_ns));
    ck_assert_int_eq(least_ns, ns);
    packs->bound[0] = 4; /* 2 and 1 */
    OK(context, hbp__packs_score(context, packs, groups, NULL, 1000, &ns, &least_ns));
    const int64_t slowest = ns - 3 * 1000 - 5 * 500; /* tokens of the slowest pack of each */
    ck_assert_int_le(llabs(ns - least_ns - (3 * 500 + 2 * 1000 + slowest / 5)), 1);
}
END_TEST

typedef struct scored {
    const hbp_packs *packs;
    const hbp_groups *groups;
} scored;

static hbp_status score(hbp_context *context, void *user)
{
    const scored *s = user;
    int64_t ns;
    return hbp__packs_score(context, s->packs, s->groups, NULL, 0, &ns, NULL);
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    hbp_groups *groups = keep(check_groups(context, 1, (int64_t[]){100}));
    hbp_packs *packs = nine_packs(context, 72);
    scored s = {packs, groups};
    failing_sweep(score, &s);
    ck_assert_int_gt(cancel_sweep(score, &s), 0);
}
END_TEST

TEST_MAIN("score", the_score_is_the_best_cut_into_micro_batches,
          a_search_may_save_micro_batches_over_the_bound, nothing_is_left_behind)
