#include "batched.h"
#include "failing.h"
#include "planned.h"

/* `count` samples of mostly short lengths, of three kinds, every twentieth linked with the next where `ties`.
 */
static hbp_lengths *draw_lengths(hbp_context *context, uint64_t seed, int64_t count, uint32_t longest,
                                 int ties)
{
    hbp__rng rng = hbp__rng_make(seed, 1, 0);
    uint64_t rows = (uint64_t)count;
    uint32_t *length = malloc(rows * sizeof *length);
    int32_t *kind = malloc(rows * sizeof *kind);
    int64_t *tie = malloc(rows * sizeof *tie);
    for (int64_t i = 0; i < count; i++) {
        kind[i] = (int32_t)hbp__rng_below(&rng, 3);
        length[i] = 1 + hbp__rng_below(&rng, hbp__rng_below(&rng, 10) ? longest / 10 : longest);
        tie[i] = i % 20 < 2 ? i / 20 : -1;
    }
    hbp_lengths_options options = {
        .struct_size = sizeof options, .modalities = kind, .ties = ties ? tie : NULL};
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_u32(context, length, count, &options, &lengths));
    free(tie);
    free(kind);
    free(length);
    return lengths;
}

/* Ranks of a step without samples, and the step's samples, linked ones counting as one. */
typedef struct idle_ranks {
    int64_t ranks;
    int64_t units;
} idle_ranks;

static idle_ranks count_idle(const hbp_plan *plan, int64_t step)
{
    idle_ranks idle = {0, plan->step_samples[step]};
    int64_t first = plan->micro_batch_offsets[plan->step_offsets[step]];
    for (int64_t p = first; p < plan->micro_batch_offsets[plan->step_offsets[step + 1]]; p++)
        idle.ranks += plan->pack_offsets[p] == plan->pack_offsets[p + 1] ? plan->pack_sp[p] : 0;
    return idle;
}

/* One way to ask for an epoch. */
typedef struct way {
    const char *name;
    hbp_epoch_options options;
    int ties;
    int groups;
} way;

#define WAY(name, ...) {name, {.struct_size = sizeof(hbp_epoch_options), __VA_ARGS__}, 0, 0}
#define TIED(name, ...) {name, {.struct_size = sizeof(hbp_epoch_options), __VA_ARGS__}, 1, 0}
#define GIVEN(name, ...) {name, {.struct_size = sizeof(hbp_epoch_options), __VA_ARGS__}, 0, 1}

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
    WAY("vision", .max_vision = 1000),
    TIED("ties", .seed = 1),
    TIED("ties, hierarchy", .composition = HBP_COMPOSITION_HIERARCHY),
    TIED("ties, windows", .window_samples = 70),
    TIED("ties, samples", .samples_per_step = 40),
    GIVEN("groups", .seed = 1),
    GIVEN("groups, hierarchy", .composition = HBP_COMPOSITION_HIERARCHY),
    GIVEN("groups, windows", .window_samples = 70),
    GIVEN("groups, samples", .samples_per_step = 40),
};

START_TEST(no_rank_is_idle_without_need)
{
    hbp_context *context = test_context();
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        int64_t idle = 0, steps = 0, needed = 0;
        for (uint64_t seed = 0; seed < TEST_ROUNDS(12); seed++) {
            hbp_epoch_options options = ways[w].options;
            hbp_cost *cost = test_cost_ranks(context, seed % 3 ? 8 : 4);
            hbp_lengths *lengths =
                draw_lengths(context, seed, 30 + 61 * (int64_t)seed, seed % 2 ? 9000 : 4000, ways[w].ties);
            hbp_groups *groups = NULL;
            hbp_plan *plan = NULL;
            if (ways[w].groups)
                OK(context, hbp_groups_create(context, cost, 2, (int64_t[]){2048, 16384}, (int32_t[]){1, 2},
                                              NULL, 0, &groups));
            options.groups = groups;
            hbp_status st = hbp_plan_epoch(context, lengths, cost, &options, &plan);
            if (st < 0) {
                printf("%s seed %d: %s\n", ways[w].name, (int)seed, hbp_context_message(context));
                continue;
            }
            OK(context, hbp_plan_validate(context, plan, lengths, cost));
            planned_check(context, plan, lengths);
            for (int64_t s = 0; s < plan->steps; s++) {
                idle_ranks i = count_idle(plan, s);
                steps++;
                if (!i.ranks)
                    continue;
                if (i.units < plan->ranks)
                    needed++;
                else {
                    idle++;
                    if (idle < 4)
                        printf("  %s seed %d step %d of %d: %d idle, %d units, %d mb, ns %lld\n", ways[w].name,
                               (int)seed, (int)s, (int)plan->steps, (int)i.ranks, (int)i.units,
                               (int)(plan->step_offsets[s + 1] - plan->step_offsets[s]),
                               (long long)plan->step_ns[s]);
                }
            }
            hbp_plan_free(plan);
            hbp_groups_free(groups);
            hbp_lengths_free(lengths);
            hbp_cost_free(cost);
        }
        printf("%-24s steps %d needed %d idle %d\n", ways[w].name, (int)steps, (int)needed, (int)idle);
    }
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("share", no_rank_is_idle_without_need)
