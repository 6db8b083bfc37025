#include "base/scratch.h"
#include "patterned.h"

/* Looks at a request to cancel, of one stage. */
typedef struct stage_looks {
    const char *stage;
    int64_t count;
} stage_looks;

static int32_t count_look(void *user, const hbp_progress *progress)
{
    stage_looks *looks = user;
    looks->count += !strcmp(progress->stage, looks->stage);
    return 0;
}

static hbp_context *counting_context(stage_looks *looks)
{
    const hbp_context_options options = {
        .struct_size = sizeof options, .progress = count_look, .progress_user = looks};
    hbp_context *context;
    ck_assert_int_eq(hbp_context_create(&options, &context), HBP_OK);
    return context;
}

/* The looks of a stage while the first steps of a plan are listed, from the index or in order of length. */
static int64_t looks_of(const char *stage, const hbp_pattern_plan *plan, const hbp_length_index *index,
                        int64_t steps)
{
    stage_looks looks = {stage, 0};
    hbp_context *context = counting_context(&looks);
    hbp_plan *listed;
    OK(context, hbp_pattern_plan_expand(context, plan, index, 0, steps, &listed));
    hbp_plan_free(listed);
    hbp_context_free(context);
    return looks.count;
}

/* Few wide steps, one large one, many padding packs: work is looked up from however it is cut. */
START_TEST_IN_CONTEXT(long_calls_look_up_as_they_work)
{
    enum { SAMPLES = 20 * HBP__TICK_ROWS };
    hbp__rng rng = hbp__rng_make(12, 0, 0);
    hbp_lengths *lengths = draw_lengths(context, &rng, SAMPLES, 9000, 1), *one;
    hbp_cost *cost = keep(test_cost(context)), *wide = keep(test_cost_ranks(context, 64)), *sets;
    hbp_epoch_options o = defaults();
    hbp_pattern_plan *plan;
    hbp_length_index *index;
    o.tokens_per_step = INT64_C(1) << 50;
    OK(context, hbp_length_index_create(context, lengths, &index));
    keep(index);
    OK(context, hbp_plan_patterns(context, lengths, cost, &o, &plan));
    ck_assert_int_eq(keep(plan)->steps, 1);
    ck_assert_int_ge(looks_of("draw samples", plan, index, 1), 19);
    ck_assert_int_ge(looks_of("samples", plan, index, 1), 19);
    o.tokens_per_step = lengths->tokens / 8; /* two looks of samples each */
    OK(context, hbp_plan_patterns(context, lengths, cost, &o, &plan));
    ck_assert_int_gt(keep(plan)->steps, 4);
    ck_assert_int_eq(looks_of("draw samples", plan, index, 1), 0);
    ck_assert_int_ge(looks_of("steps", plan, index, 1), 1);
    ck_assert_int_ge(looks_of("plan", plan, index, 1), 1);
    uint32_t length = 100;
    OK(context, hbp_lengths_create_u32(context, &length, 1, NULL, &one));
    keep(one);
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    o.micro_batch_multiple = 40000;
    OK(context, hbp_plan_patterns(context, one, wide, &o, &plan));
    OK(context, hbp_pattern_plan_get_summary(context, keep(plan), &summary));
    ck_assert_int_gt(summary.packs, 10 * HBP__TICK_ROWS);
    ck_assert_int_ge(looks_of("steps", plan, NULL, plan->steps), summary.packs / HBP__TICK_ROWS);
    /* 2^34 packs, all but one of them padding, in sets of one rank. */
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    hbp_cost *widest = keep(test_cost_ranks(context, HBP_MAX_RANKS));
    OK(context, hbp_cost_get_terms(context, widest, &terms));
    terms.lockstep_ranks = 1;
    OK(context, hbp_cost_create_terms(context, &terms, &sets));
    keep(sets);
    o.micro_batch_multiple = 65536;
    OK(context, hbp_plan_patterns(context, one, sets, &o, &plan));
    OK(context, hbp_pattern_plan_validate(context, keep(plan), one, sets));
    ck_assert_int_eq(plan->predicted_ns, plan->pattern_ns[0] + 65535 * plan->padding_ns + plan->step_ns);
}
END_TEST

/* Packs of thousands of samples: steps listed one by one hold what all of them listed together do, on any
 * number of threads. */
START_TEST_IN_CONTEXT(packs_of_very_many_samples_are_listed_whole)
{
    enum { SAMPLES = 400000, PACK = 5000 };
    hbp__rng rng = hbp__rng_make(13, 0, 0);
    hbp_lengths *lengths = draw_lengths(context, &rng, SAMPLES, 3, 0);
    hbp_epoch_options o = defaults();
    hbp_cost *cost = keep(test_cost(context));
    hbp_pattern_plan *plan;
    hbp_length_index *index;
    hbp_groups *groups;
    OK(context, hbp_groups_create(context, cost, 1, (int64_t[]){8192}, (int32_t[]){4}, NULL, 0, &groups));
    o.groups = keep(groups);
    o.micro_batch_multiple = 3;
    o.tokens_per_step = 100000;
    OK(context, hbp_plan_patterns(context, lengths, cost, &o, &plan));
    OK(context, hbp_length_index_create(context, lengths, &index));
    keep(plan), keep(index);
    ck_assert_int_gt(plan->steps, 4);
    ck_assert_int_gt(plan->pattern_samples[0], PACK);
    for (int32_t threads = 1; threads < 4; threads++) {
        hbp_plan *whole, *step;
        OK(context, hbp__pattern_plan_expand(context, plan, index, 0, plan->steps, threads, &whole));
        OK(context, hbp_plan_validate(context, keep(whole), lengths, NULL));
        for (int64_t s = 0, at = 0; s < plan->steps; s++, at += step->samples) {
            OK(context, hbp_pattern_plan_expand(context, plan, index, s, 1, &step));
            keep(step);
            ck_assert_int_eq(step->samples, whole->step_samples[s]);
            const size_t count = (size_t)step->samples;
            ck_assert_mem_eq(step->sample_ids, whole->sample_ids + at, count * sizeof *step->sample_ids);
            ck_assert_mem_eq(step->sample_tokens, whole->sample_tokens + at,
                             count * sizeof *step->sample_tokens);
        }
    }
}
END_TEST

/* The samples of micro-batch m of a unit, pack by pack. */
static int64_t walk_samples(const hbp_pattern_plan *plan, const hbp__pattern_unit *unit, int64_t m)
{
    const int64_t width = hbp__pattern_width(plan, unit->group), first = unit->first + m * width;
    hbp__pattern_walk walk =
        hbp__pattern_walk_from(plan, NULL, unit->group, hbp__min_i64(first, unit->end - 1));
    int64_t samples = 0;
    for (int64_t pack = first; pack < hbp__min_i64(first + width, unit->end); pack++)
        samples += plan->pattern_samples[hbp__pattern_walk_next(&walk).pattern];
    return samples;
}

/* Stretches of several micro-batches that end in one of fewer packs. */
static int64_t count_rests(const hbp_pattern_plan *plan)
{
    int64_t rests = 0;
    for (int64_t g = 0; g < plan->groups; g++)
        for (int64_t s = plan->group_first_stretches[g]; s < plan->group_first_stretches[g + 1]; s++) {
            const int64_t packs = plan->stretch_first_packs[s + 1] - plan->stretch_first_packs[s],
                          width = hbp__pattern_width(plan, g);
            rests += packs / width > 1 && packs % width;
        }
    return rests;
}

START_TEST_IN_CONTEXT(samples_are_counted_as_they_are_walked)
{
    hbp__rng rng = hbp__rng_make(14, 0, 0);
    hbp_cost *cost;
    hbp_groups *groups;
    int64_t rests = 0;
    OK(context, hbp_cost_create_plain(context, 8, &cost));
    keep(cost);
    OK(context,
       hbp_groups_create(context, cost, 2, (int64_t[]){64, 512}, (int32_t[]){1, 8}, NULL, 0, &groups));
    keep(groups);
    for (int round = 0, mark = keep_mark(); round < TEST_ROUNDS(60); round++, keep_release(mark)) {
        const int64_t count = 1 + hbp__rng_below(&rng, 20000);
        const uint32_t top = 1 + hbp__rng_below(&rng, 200), rare = 2 + hbp__rng_below(&rng, 300);
        uint32_t *values = keep((uint32_t *)malloc((size_t)count * sizeof *values));
        for (int64_t i = 0; i < count; i++)
            values[i] = 1 + hbp__rng_below(&rng, hbp__rng_below(&rng, rare) ? top : 512);
        hbp_epoch_options o = defaults();
        hbp_lengths *lengths;
        hbp_pattern_plan *plan;
        int64_t *counted;
        o.groups = groups;
        o.micro_batch_multiple = (int32_t)hbp__rng_below(&rng, 4);
        o.sequence_multiple = round % 2 ? 64 : 0;
        o.tokens_per_step = 16384;
        OK(context, hbp_lengths_create_u32(context, values, count, NULL, &lengths));
        OK(context, hbp_plan_patterns(context, keep(lengths), cost, &o, &plan));
        keep(plan);
        rests += count_rests(plan);
        const hbp__pattern_deal deal = hbp__pattern_deal_of(plan);
        const int64_t multiple = plan->micro_batch_multiple, scratch = hbp__scratch_mark(context);
        OK(context, hbp__pattern_count_samples(context, plan, &counted));
        for (int64_t step = 0; step < plan->steps; step++)
            for (int64_t t = 0; t < deal.strata; t++) {
                hbp__pattern_unit unit;
                for (int64_t m = 0; hbp__pattern_unit_at(plan, &deal, step, t, &unit) && m < multiple; m++)
                    ck_assert_int_eq(counted[unit.row * multiple + m], walk_samples(plan, &unit, m));
            }
        hbp__scratch_release(context, scratch);
    }
    ck_assert_int_gt(rests, 0);
}
END_TEST

TEST_MAIN("pattern_expand", long_calls_look_up_as_they_work, packs_of_very_many_samples_are_listed_whole,
          samples_are_counted_as_they_are_walked)
