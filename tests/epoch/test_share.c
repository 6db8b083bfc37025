#include "batched.h"
#include "failing.h"
#include "keep.h"
#include "planned.h"
#include "step/lockstep_steps.h"

/* `count` samples of mostly short lengths, of three kinds, every twentieth linked with the next where
 * `links`.
 */
static hbp_lengths *draw_lengths(hbp_context *context, uint64_t seed, int64_t count, uint32_t longest,
                                 int links)
{
    hbp__rng rng = hbp__rng_make(seed, 1, 0);
    uint64_t rows = (uint64_t)count;
    uint32_t *length = malloc(rows * sizeof *length);
    uint32_t *vision = malloc(rows * sizeof *vision);
    int32_t *kind = malloc(rows * sizeof *kind);
    int64_t *link = malloc(rows * sizeof *link);
    for (int64_t i = 0; i < count; i++) {
        kind[i] = (int32_t)hbp__rng_below(&rng, 3);
        vision[i] = kind[i] ? 1 + hbp__rng_below(&rng, 12) : 0;
        length[i] = 1 + hbp__rng_below(&rng, hbp__rng_below(&rng, 10) ? longest / 10 : longest);
        link[i] = i % 20 < 2 ? i / 20 : -1;
    }
    hbp_lengths_options options = {
        .struct_size = sizeof options, .vision = vision, .modalities = kind, .links = links ? link : NULL};
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_u32(context, length, count, &options, &lengths));
    free(link);
    free(kind);
    free(vision);
    free(length);
    return lengths;
}

/* Ranks of a step without samples; those of micro-batches of dummies alone count only if `all`. */
static int64_t count_idle(const hbp_plan *plan, int64_t step, int all)
{
    int64_t idle = 0;
    for (int64_t m = plan->step_offsets[step]; m < plan->step_offsets[step + 1]; m++) {
        int64_t first = plan->micro_batch_offsets[m], end = plan->micro_batch_offsets[m + 1];
        if (!all && plan->pack_offsets[first] == plan->pack_offsets[end])
            continue;
        for (int64_t p = first; p < end; p++)
            idle += plan->pack_offsets[p] == plan->pack_offsets[p + 1] ? plan->pack_sp[p] : 0;
    }
    return idle;
}

/* Samples of rows [first, end), linked ones being one. */
static int64_t count_units(const hbp_plan *plan, const hbp_lengths *lengths, int64_t first, int64_t end)
{
    int64_t units = 0;
    for (int64_t i = first; i < end; i++) {
        uint32_t link = lengths->link ? lengths->link[plan->sample_ids[i]] : HBP__FREE;
        int is_new = 1;
        for (int64_t k = first; k < i && link != HBP__FREE; k++)
            is_new &= lengths->link[plan->sample_ids[k]] != link;
        units += is_new;
    }
    return units;
}

/* Whether pack p keeps all its kinds when it gives a sample of each. */
static int can_give(const hbp_plan *plan, const hbp_lengths *lengths, int64_t p)
{
    int64_t of_kind[HBP_MAX_MODALITIES] = {0}, first = plan->pack_offsets[p], end = plan->pack_offsets[p + 1];
    int gives = count_units(plan, lengths, first, end) > 1;
    for (int64_t i = first; plan->sample_modalities && i < end; i++)
        of_kind[plan->sample_modalities[i]]++;
    for (int k = 0; k < HBP_MAX_MODALITIES; k++)
        gives &= of_kind[k] != 1;
    return gives;
}

/* No dummy stands beside a pack of its own group that could give it samples. */
static void check_neighbours(const hbp_plan *plan, const hbp_lengths *lengths)
{
    for (int64_t m = 0; m < plan->micro_batches; m++)
        for (int64_t d = plan->micro_batch_offsets[m]; d < plan->micro_batch_offsets[m + 1]; d++)
            for (int64_t p = plan->micro_batch_offsets[m]; p < plan->micro_batch_offsets[m + 1]; p++)
                ck_assert(plan->pack_tokens[d] || plan->pack_sp[p] != plan->pack_sp[d] ||
                          plan->pack_recompute[p] != plan->pack_recompute[d] ||
                          plan->pack_capacity[p] != plan->pack_capacity[d] || !can_give(plan, lengths, p));
}

/* One way to ask for an epoch. */
typedef struct way {
    const char *name;
    hbp_epoch_options options;
    int links;
    int groups;
} way;

#define WAY(name, ...)                                                                                       \
    {                                                                                                        \
        name, {.struct_size = sizeof(hbp_epoch_options), __VA_ARGS__}, 0, 0                                  \
    }
#define TIED(name, ...)                                                                                      \
    {                                                                                                        \
        name, {.struct_size = sizeof(hbp_epoch_options), __VA_ARGS__}, 1, 0                                  \
    }
#define GIVEN(name, ...)                                                                                     \
    {                                                                                                        \
        name, {.struct_size = sizeof(hbp_epoch_options), __VA_ARGS__}, 0, 1                                  \
    }

static const way ways[] = {
    WAY("auto", .seed = 1),
    WAY("hierarchy", .composition = HBP_COMPOSITION_HIERARCHY),
    WAY("stratified", .composition = HBP_COMPOSITION_STRATIFIED),
    WAY("random", .composition = HBP_COMPOSITION_RANDOM),
    WAY("samples", .samples_per_step = 40),
    WAY("samples, drop_last", .samples_per_step = 40, .drop_last = 1),
    WAY("tokens", .tokens_per_step = 60000),
    WAY("windows", .window_samples = 70),
    WAY("windows, hierarchy", .window_samples = 70, .composition = HBP_COMPOSITION_HIERARCHY),
    WAY("windows, multiple", .window_samples = 90, .micro_batch_multiple = 2),
    WAY("drop_last", .drop_last = 1),
    WAY("drop_last, hierarchy", .drop_last = 1, .composition = HBP_COMPOSITION_HIERARCHY),
    WAY("drop_last, stratified", .drop_last = 1, .composition = HBP_COMPOSITION_STRATIFIED),
    WAY("split", .max_length = 3000, .over_long = HBP_OVERLONG_SPLIT),
    WAY("split, hierarchy", .max_length = 3000, .over_long = HBP_OVERLONG_SPLIT, .composition = 3),
    WAY("curriculum", .curriculum_steps = 2),
    WAY("curriculum, hierarchy", .curriculum_steps = 2, .composition = HBP_COMPOSITION_HIERARCHY),
    WAY("multiple", .micro_batch_multiple = 3),
    WAY("multiple, hierarchy", .micro_batch_multiple = 3, .composition = HBP_COMPOSITION_HIERARCHY),
    WAY("micro-batches", .micro_batches_per_step = 2),
    WAY("equal", .equal_samples = 1),
    WAY("caps", .max_samples = 6, .max_pack_length = 12000),
    WAY("caps, hierarchy", .max_samples = 6, .max_pack_length = 12000, .composition = 3),
    WAY("cap of a rank", .tokens_per_rank = 8000),
    WAY("kinds", .modality_order = 1),
    WAY("kinds, samples", .modality_order = 1, .samples_per_step = 60),
    WAY("kinds, windows", .modality_order = 1, .window_samples = 90),
    TIED("links", .seed = 1),
    TIED("links, hierarchy", .composition = HBP_COMPOSITION_HIERARCHY),
    TIED("links, windows", .window_samples = 70),
    TIED("links, samples", .samples_per_step = 40),
    GIVEN("groups", .seed = 1),
    GIVEN("groups, hierarchy", .composition = HBP_COMPOSITION_HIERARCHY),
    GIVEN("groups, tokens", .composition = HBP_COMPOSITION_HIERARCHY, .tokens_per_step = 200000),
    GIVEN("groups, windows", .window_samples = 70),
    GIVEN("groups, samples", .samples_per_step = 40),
};

static hbp_groups *two_groups(hbp_context *context, const hbp_cost *cost)
{
    hbp_groups *groups = NULL;
    OK(context,
       hbp_groups_create(context, cost, 2, (int64_t[]){2048, 16384}, (int32_t[]){1, 2}, NULL, 0, &groups));
    return groups;
}

/* Ranks are idle only where a step has fewer samples than ranks, and in micro-batches of dummies that
 * complete a multiple, where samples in them would make the step more than a hundredth longer. With an order
 * of modalities they are where no pack of the micro-batch has its kinds twice, and another micro-batch's
 * samples take so much. */
static void check_step(const way *w, const hbp_plan *plan, const hbp_lengths *lengths, int64_t step)
{
    int64_t first = plan->pack_offsets[plan->micro_batch_offsets[plan->step_offsets[step]]];
    int64_t idle = count_idle(plan, step, w->options.micro_batch_multiple < 2);
    if (!idle || w->options.modality_order)
        return;
    int64_t units = count_units(plan, lengths, first, first + plan->step_samples[step]);
    ck_assert_msg(units < plan->ranks, "%s: step %d of %d has %d idle ranks and %d samples", w->name,
                  (int)step, (int)plan->steps, (int)idle, (int)units);
}

static void check_way(hbp_context *context, const way *w, hbp_cost *cost, uint64_t seed, int meets)
{
    hbp_epoch_options options = w->options;
    hbp_lengths *lengths =
        draw_lengths(context, seed, 40 + 61 * (int64_t)seed, seed % 2 ? 9000 : 4000, w->links);
    hbp_groups *groups = w->groups ? two_groups(context, cost) : NULL;
    hbp_plan *plan = NULL;
    options.groups = groups;
    OK(context, hbp_plan_epoch(context, lengths, cost, &options, &plan));
    OK(context, hbp_plan_validate(context, plan, lengths, cost));
    planned_check(context, plan, lengths);
    for (int64_t s = 0; meets && s < plan->steps; s++)
        check_step(w, plan, lengths, s);
    if (meets && (w->groups || options.modality_order))
        check_neighbours(plan, lengths);
    hbp_plan_free(plan);
    hbp_groups_free(groups);
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
}

START_TEST_IN_CONTEXT(no_rank_is_idle_without_need)
{
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (uint64_t seed = 0; seed < TEST_ROUNDS(12); seed++)
            check_way(context, &ways[w], test_cost_ranks(context, seed % 3 ? 8 : 4), seed, 1);
}
END_TEST

/* Where not all ranks meet in every micro-batch, every way still tells the times of its steps. */
START_TEST_IN_CONTEXT(times_are_those_of_the_sets)
{
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (uint64_t seed = 0; seed < TEST_ROUNDS(ways[w].groups ? 60u : 6u); seed++)
            check_way(context, &ways[w],
                      lockstep_cost(context, seed % 2 ? 16 : 8, seed % 2 ? 8 : 1, seed % 3 == 0, 4e7, 0),
                      seed, 0);
}
END_TEST

/* Steps of given groups keep their samples and places, and are at most a hundredth longer than they were. */
static void check_places(int32_t set, int64_t tokens)
{
    hbp_context *context = test_context();
    int64_t fewer = 0;
    for (uint64_t seed = 0; seed < 24; seed++) {
        hbp_cost *cost = lockstep_cost(context, 8, set, 0, 4e7, 0);
        hbp_lengths *lengths = draw_lengths(context, seed, 30 + 20 * (int64_t)seed, 9000, seed % 2);
        hbp_groups *groups = two_groups(context, cost);
        hbp_packs *packs = NULL;
        hbp_plan *raw = NULL, *plan = NULL;
        OK(context, hbp_greedy_fill(context, lengths, groups, NULL, &packs));
        hbp_balance_options balance = {.struct_size = sizeof balance, .tokens_per_step = tokens};
        OK(context, hbp_balance_attention(context, packs, groups, cost, &balance, &raw));
        hbp_epoch_options options = {.struct_size = sizeof options,
                                     .composition = HBP_COMPOSITION_HIERARCHY,
                                     .groups = groups,
                                     .tokens_per_step = tokens};
        OK(context, hbp_plan_epoch(context, lengths, cost, &options, &plan));
        ck_assert_int_eq(plan->steps, raw->steps);
        ck_assert_int_eq(plan->packs, raw->packs);
        ck_assert_mem_eq(plan->step_offsets, raw->step_offsets, (size_t)raw->steps * sizeof(int64_t));
        ck_assert_mem_eq(plan->step_samples, raw->step_samples, (size_t)raw->steps * sizeof(int64_t));
        ck_assert_mem_eq(plan->step_tokens, raw->step_tokens, (size_t)raw->steps * sizeof(int64_t));
        ck_assert_mem_eq(plan->pack_sp, raw->pack_sp, (size_t)raw->packs * sizeof(int32_t));
        ck_assert_mem_eq(plan->pack_recompute, raw->pack_recompute, (size_t)raw->packs * sizeof(int32_t));
        ck_assert_mem_eq(plan->pack_capacity, raw->pack_capacity, (size_t)raw->packs * sizeof(int64_t));
        for (int64_t s = 0; s < raw->steps; s++) {
            ck_assert_int_le(plan->step_ns[s], raw->step_ns[s] + raw->step_ns[s] / 100);
            ck_assert_int_le(count_idle(plan, s, 1), count_idle(raw, s, 1));
            fewer += count_idle(plan, s, 1) < count_idle(raw, s, 1);
        }
        hbp_plan_free(plan);
        hbp_plan_free(raw);
        hbp_packs_free(packs);
        hbp_groups_free(groups);
        hbp_lengths_free(lengths);
        hbp_cost_free(cost);
    }
    ck_assert_int_gt(fewer, 0);
    hbp_context_free(context);
}

START_TEST(places_stay)
{
    check_places(0, 0);
    check_places(0, 200000);
    check_places(1, 200000);
}
END_TEST

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    hbp_cost *cost = keep(test_cost_ranks(context, 8));
    hbp_groups *groups = keep(two_groups(context, cost));
    for (int i = 0; i < 2; i++) {
        planned_inputs in = {draw_lengths(context, 1, 12, 3000, 1),
                             cost,
                             {.struct_size = sizeof in.options,
                              .composition = HBP_COMPOSITION_HIERARCHY,
                              .groups = i ? NULL : groups,
                              .modality_order = i}};
        failing_sweep(planned_once, &in);
        hbp_lengths_free(in.lengths);
    }
}
END_TEST

TEST_MAIN("share", no_rank_is_idle_without_need, times_are_those_of_the_sets, places_stay,
          nothing_is_left_behind)
