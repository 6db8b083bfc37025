#include "epoch/choose.h"

#include "cost/cost.h"
#include "epoch/tuning.h"
#include "epoch/vision.h"
#include "failing.h"
#include "keep.h"
#include "pack/fill/score.h"
#include "pack/groups/hierarchy.h"
#include "planned.h"

/* Lengths of which a few fill a pack, and a few long ones. */
static hbp_lengths *narrow_lengths(hbp_context *context, uint64_t seed, int64_t count)
{
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    uint32_t *length = keep(malloc((size_t)count * sizeof *length));
    hbp_lengths *lengths = NULL;
    const uint32_t base = 900 + 150 * hbp__rng_below(&rng, 8);
    for (int64_t i = 0; i < count; i++)
        length[i] = hbp__rng_below(&rng, 97) ? base + hbp__rng_below(&rng, base / 2)
                                             : 6000 + hbp__rng_below(&rng, 9000);
    OK(context, hbp_lengths_create_u32(context, length, count, NULL, &lengths));
    return lengths;
}

/* What an epoch over these groups takes, with all that their fill may search. */
static int64_t searched_ns(const hbp__epoch *epoch, hbp_groups *groups)
{
    hbp_context *context = epoch->context;
    hbp_fill_options fill;
    hbp_packs *packs = NULL;
    double vision_ns[HBP_MAX_GROUPS];
    int64_t ns = 0;
    hbp__epoch_fill_options(&epoch->options, &fill);
    OK(context, hbp__epoch_fill(epoch, epoch->lengths, groups, &fill, &packs));
    hbp__epoch_vision_ns(epoch, groups, vision_ns);
    OK(context, hbp__packs_score(context, packs, groups, vision_ns, epoch->cost->terms.step_ns, &ns, NULL));
    hbp_packs_free(packs);
    return ns;
}

/* Whether a search is still to come once these groups are filled. */
static int64_t has_search(const hbp__epoch *epoch, const hbp_groups *groups)
{
    hbp_fill_options fill;
    hbp__filling filling;
    hbp__epoch_fill_options(&epoch->options, &fill);
    OK(epoch->context, hbp__epoch_fill_begin(epoch, epoch->lengths, groups, &fill, NULL, &filling));
    hbp_packs_free(filling.packs);
    return filling.saving > 0;
}

/* The oracle: every hierarchy filled and searched, one after the other. */
START_TEST_IN_CONTEXT(no_hierarchy_searched_would_take_less)
{
    hbp_cost *cost = keep(test_cost(context));
    int64_t searches = 0, others = 0, equal = 0;
    int mark = keep_mark();
    for (uint64_t round = 0; round < TEST_ROUNDS(16); keep_release(mark), round++) {
        const uint64_t seed = 7 + round; /* the first two hold both kinds */
        hbp_lengths *lengths =
            keep(narrow_lengths(context, seed, TEST_FEW(1500, 500) + 400 * (int64_t)(seed % 4)));
        hbp__epoch_call call;
        OK(context, hbp__epoch_open(context, lengths, cost, cost, NULL, &call));
        const hbp__epoch *epoch = &call.epoch;
        hbp_groups_options options;
        hbp_groups *table = NULL, *groups = NULL;
        hbp__epoch_groups_options(&epoch->options, &options);
        OK(context, hbp__epoch_plan_groups(epoch, &options, &table));
        int64_t least = INT64_MAX, first = 0;
        for (int64_t i = 0; i < table->candidates && i < HBP__TRY_HIERARCHIES; i++) {
            OK(context, hbp__groups_candidate(context, epoch->cost, table, i, &groups));
            searches += has_search(epoch, groups);
            const int64_t ns = searched_ns(epoch, groups);
            first = i ? first : ns;
            least = ns < least ? ns : least;
            hbp_groups_free(groups);
        }
        options.method = "hbp";
        options.tokens_per_step = table->tokens_per_step;
        if (hbp__epoch_plan_groups(epoch, &options, &groups) == HBP_OK) {
            const int64_t ns = searched_ns(epoch, groups);
            least = ns < least ? ns : least;
            hbp_groups_free(groups);
        }
        hbp__trial best = {NULL, NULL, 0};
        OK(context, hbp__epoch_choose(epoch, &best));
        ck_assert_int_le(best.ns, least + least / HBP__TRY_WORTH);
        ck_assert_int_ge(best.ns, searched_ns(epoch, best.groups));
        equal += best.ns == least;
        others += least < first;
        hbp__trial_close(&best);
        hbp_groups_free(table);
        hbp__epoch_close(&call);
    }
    ck_assert_int_gt(searches, 1);
    ck_assert_int_gt(others, 0);
    ck_assert_int_ge(equal, TEST_ROUNDS(16) - TEST_ROUNDS(16) / 4);
}
END_TEST

typedef struct chosen {
    const hbp_lengths *lengths;
    const hbp_cost *cost;
} chosen;

static hbp_status choose_once(hbp_context *context, void *user)
{
    const chosen *c = user;
    hbp__epoch_call call;
    hbp__trial best = {NULL, NULL, 0};
    hbp_status status = hbp__epoch_open(context, c->lengths, c->cost, c->cost, NULL, &call);
    if (status >= 0)
        status = hbp__epoch_choose(&call.epoch, &best);
    ck_assert_int_eq(status == HBP_OK, best.packs != NULL);
    hbp__trial_close(&best);
    hbp__epoch_close(&call);
    return status;
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    chosen c = {keep(narrow_lengths(context, 1, 300)), keep(test_cost(context))};
    failing_sweep(choose_once, &c);
    ck_assert_int_gt(cancel_sweep(choose_once, &c), 0);
}
END_TEST

TEST_MAIN("choose", no_hierarchy_searched_would_take_less, nothing_is_left_behind)
