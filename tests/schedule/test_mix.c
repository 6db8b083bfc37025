#include "schedule/mix.h"

#include "base/checked.h"
#include "packed.h"

enum { MOST = 9, GROUPS = 3, RANKS = 8 };

/* A few packs of random degrees and times, with each group's queue from the slowest. */
typedef struct tiny {
    hbp_packs packs;
    hbp_groups groups;
    hbp__micro_batches pure;
    int64_t ns[MOST];
    int32_t group[MOST];
    int64_t first[GROUPS * MOST + 1];
    uint32_t place[GROUPS * (MOST + RANKS)];
} tiny;

static void fill_queue(tiny *t, int32_t g, int64_t *batches, int64_t *places)
{
    int64_t begin = *places;
    for (uint32_t p = 0; p < t->packs.count; p++) {
        if (t->group[p] != g)
            continue;
        int64_t at = (*places)++;
        for (; at > begin && t->ns[t->place[at - 1]] < t->ns[p]; at--)
            t->place[at] = t->place[at - 1];
        t->place[at] = p;
    }
    t->pure.group_first[g] = *batches;
    for (int64_t at = begin; at < *places; at += t->groups.packs[g]) {
        t->first[(*batches)++] = at;
        while (*places < at + t->groups.packs[g])
            t->place[(*places)++] = HBP__PADDING_PACK;
    }
    t->pure.group_first[g + 1] = *batches;
}

static void tiny_open(uint64_t seed, tiny *t)
{
    static const int32_t ladders[4][GROUPS] = {{1, 2, 4}, {4, 1, 8}, {2, 8, 4}, {1, 1, 2}};
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    memset(t, 0, sizeof *t);
    t->packs.count = 1 + hbp__rng_below(&rng, MOST);
    t->packs.group = t->group;
    t->groups.count = GROUPS;
    t->groups.ranks = RANKS;
    const int32_t *ladder = ladders[hbp__rng_below(&rng, 4)];
    for (int g = 0; g < GROUPS; g++) {
        t->groups.sp[g] = ladder[g];
        t->groups.packs[g] = RANKS / ladder[g];
    }
    for (int64_t p = 0; p < t->packs.count; p++) {
        t->group[p] = (int32_t)hbp__rng_below(&rng, GROUPS);
        t->ns[p] = 1 + hbp__rng_below(&rng, 12);
    }
    int64_t batches = 0, places = 0;
    t->pure.first = t->first;
    t->pure.place = t->place;
    for (int32_t g = 0; g < GROUPS; g++)
        fill_queue(t, g, &batches, &places);
    t->first[batches] = places;
    t->pure.count = batches;
}

/* The least sum of slowest packs over all ways to cut the packs of `mask`: by dynamic programming over sets.
 */
static int64_t best_cut(const tiny *t)
{
    int64_t best[1 << MOST] = {0};
    for (int mask = 1; mask < 1 << t->packs.count; mask++) {
        best[mask] = INT64_MAX;
        for (int part = mask; part; part = (part - 1) & mask) {
            int64_t slowest = 0, ranks = 0;
            for (int p = 0; p < t->packs.count; p++)
                if (part >> p & 1) {
                    slowest = hbp__max_i64(slowest, t->ns[p]);
                    ranks += t->groups.sp[t->group[p]];
                }
            if (ranks <= RANKS)
                best[mask] = hbp__min_i64(best[mask], slowest + best[mask ^ part]);
        }
    }
    return best[(1 << t->packs.count) - 1];
}

START_TEST_IN_CONTEXT(no_cut_is_shorter)
{
    for (uint64_t seed = 0; seed < 400; seed++) {
        tiny t;
        tiny_open(seed, &t);
        hbp__micro_batches batches;
        OK(context, hbp__mix_open(context, &t.packs, &t.groups, t.ns, &t.pure, &batches));
        int64_t sum = 0;
        for (int64_t m = 0; m < batches.count; m++) {
            int64_t slowest = 0;
            for (int64_t i = batches.first[m]; i < batches.first[m + 1]; i++)
                if (batches.place[i] != HBP__PADDING_PACK)
                    slowest = hbp__max_i64(slowest, t.ns[batches.place[i]]);
            sum += slowest;
        }
        ck_assert_msg(sum == best_cut(&t), "seed %d: %lld against %lld", (int)seed, (long long)sum,
                      (long long)best_cut(&t));
        hbp__micro_batches_close(&batches);
    }
}
END_TEST

/* Every pack once; places cover the ranks, the largest degree first, dummies last. */
START_TEST_IN_CONTEXT(places_cover_the_ranks)
{
    int mark = keep_mark();
    for (uint64_t seed = 0; seed < 6; keep_release(mark), seed++) {
        packed p = packed_open(context, seed, 400 + 900 * (int64_t)seed);
        hbp_balance_options options = {.struct_size = sizeof options, .seed = seed};
        int64_t *ns = calloc((size_t)p.packs->count, sizeof *ns), placed = 0, mixed = 0;
        char *seen = calloc((size_t)p.packs->count, 1);
        hbp__micro_batches pure, batches;
        OK(p.context, hbp__micro_batches_open(p.context, p.packs, p.groups, p.cost, &options, &pure));
        OK(p.context, hbp__mix_times(p.context, p.packs, p.groups, p.cost, ns));
        for (int64_t i = 0; i < p.packs->count; i++) {
            int32_t g = p.packs->group[i];
            ck_assert_int_eq(ns[i],
                             hbp_cost_predict_pack_ns(p.cost, p.groups->sp[g], p.groups->recompute[g],
                                                      p.packs->padded[i], (double)p.packs->squares[i], 0));
            ns[i] = seed % 2 ? 1 + i % 7 : ns[i]; /* else hardly any of them mix */
        }
        OK(p.context, hbp__mix_open(p.context, p.packs, p.groups, ns, &pure, &batches));
        for (int64_t m = 0; m < batches.count; m++) {
            int32_t ranks = 0, last = INT32_MAX, dummies = 0, kinds = 0;
            for (int64_t i = batches.first[m]; i < batches.first[m + 1]; i++) {
                uint32_t pack = batches.place[i];
                int32_t g = pack == HBP__PADDING_PACK ? batches.group[m] : p.packs->group[pack];
                dummies += pack == HBP__PADDING_PACK;
                ck_assert(pack == HBP__PADDING_PACK || !dummies);
                ck_assert_int_le(p.groups->sp[g], last);
                kinds += p.groups->sp[g] != last;
                last = p.groups->sp[g];
                ranks += last;
                if (pack == HBP__PADDING_PACK)
                    continue;
                ck_assert_int_eq(seen[pack]++, 0);
                placed++;
            }
            mixed += kinds > 1;
            ck_assert_int_eq(ranks, 16);
        }
        ck_assert_int_eq(placed, p.packs->count);
        ck_assert(seed % 2 == 0 || mixed > 0);
        hbp__micro_batches_close(&batches);
        hbp__micro_batches_close(&pure);
        free(seen);
        free(ns);
    }
}
END_TEST

START_TEST(degrees_that_do_not_nest_do_not_mix)
{
    hbp_groups groups = {.count = 3, .sp = {2, 1, 8}};
    ck_assert(hbp__mix_is_possible(&groups));
    groups.sp[1] = 3;
    ck_assert(!hbp__mix_is_possible(&groups));
    groups.sp[0] = 6;
    groups.sp[2] = 12;
    ck_assert(hbp__mix_is_possible(&groups));
}
END_TEST

TEST_MAIN("mix", no_cut_is_shorter, places_cover_the_ranks, degrees_that_do_not_nest_do_not_mix)
