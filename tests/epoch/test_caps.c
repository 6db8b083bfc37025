/* Caps that the longest sample or linked samples do not fit in. Oracle: every unit alone as a step. */
#include "batched.h"
#include "epoch/epoch.h"
#include "failing.h"
#include "keep.h"
#include "methods.h"

typedef struct caps {
    int64_t per_rank;
    int64_t length;
    int64_t multiple_per_sp;
    int32_t samples;
} caps;

static hbp_status check(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost, caps c)
{
    hbp__epoch epoch = {context,
                        lengths,
                        cost,
                        cost,
                        NULL,
                        {.tokens_per_rank = c.per_rank,
                         .max_pack_length = c.length,
                         .sequence_multiple_per_sp = c.multiple_per_sp,
                         .max_samples = c.samples},
                        HBP__STEP_SEARCH};
    return hbp__epoch_check_caps(&epoch);
}

/* Whether every unit may be a step alone. */
static int units_fit(hbp_context *context, const int64_t *length, const int64_t *link, int64_t count,
                     const hbp_cost *cost, caps c)
{
    int fit = 1;
    for (int64_t i = 0; i < count && fit; i++) {
        int64_t part[64], n = 0;
        int64_t links[64];
        for (int64_t k = i; k < count; k++)
            if (k == i || (link && link[i] >= 0 && link[k] == link[i])) {
                part[n] = length[k];
                links[n++] = 0;
            }
        hbp_lengths_options with = {.struct_size = sizeof with, .links = links};
        hbp_step_options options = {.struct_size = sizeof options,
                                    .any_degree = 1,
                                    .tokens_per_rank = c.per_rank,
                                    .max_pack_length = c.length,
                                    .sequence_multiple_per_sp = c.multiple_per_sp,
                                    .max_samples = c.samples};
        hbp_lengths *unit = NULL;
        hbp_plan *plan = NULL;
        OK(context, hbp_lengths_create_i64(context, part, n, &with, &unit));
        hbp_status status = hbp_plan_step(context, unit, cost, &options, &plan);
        ck_assert(status >= 0 || status == HBP_E_INFEASIBLE);
        fit = status >= 0;
        hbp_plan_free(plan);
        hbp_lengths_free(unit);
    }
    return fit;
}

/* The numbers before " would do" in the last message. */
static caps suggested(hbp_context *context, caps c)
{
    const char *message = hbp_context_message(context), *at;
    long long number;
    if ((at = strstr(message, "tokens_per_rank ")) && sscanf(at, "tokens_per_rank %*d (%lld", &number) == 1)
        c.per_rank = number;
    if ((at = strstr(message, "max_pack_length ")) && sscanf(at, "max_pack_length %*d (%lld", &number) == 1)
        c.length = number;
    if ((at = strstr(message, "max_samples is ")) && sscanf(at, "max_samples is %*d (%lld", &number) == 1)
        c.samples = (int32_t)number;
    return c;
}

START_TEST_IN_CONTEXT(caps_hold_every_unit_or_say_what_would)
{
    hbp_cost *cost = keep(test_cost(context));
    int refused = 0, held = 0, mended = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        int64_t length[40], link[40], count = 1 + (int64_t)(seed % 40);
        hbp__rng rng = hbp__rng_make(seed, 0, 5);
        for (int64_t i = 0; i < count; i++) {
            length[i] = 1 + (int64_t)hbp__rng_below(&rng, 3000);
            link[i] = (int64_t)hbp__rng_below(&rng, 20) - 1;
        }
        caps c = {hbp__rng_below(&rng, 3) ? 1 + (int64_t)hbp__rng_below(&rng, 1500) : 0,
                  hbp__rng_below(&rng, 3) ? 1 + (int64_t)hbp__rng_below(&rng, 6000) : 0,
                  hbp__rng_below(&rng, 2) ? (int64_t)hbp__rng_below(&rng, 90) : 0,
                  hbp__rng_below(&rng, 3) ? 0 : (int32_t)hbp__rng_below(&rng, 4)};
        int linked = seed % 2 == 1;
        hbp_lengths_options with = {.struct_size = sizeof with, .links = linked ? link : NULL};
        hbp_lengths *lengths = NULL;
        OK(context, hbp_lengths_create_i64(context, length, count, &with, &lengths));
        int fit = units_fit(context, length, linked ? link : NULL, count, cost, c);
        hbp_status status = check(context, lengths, cost, c);
        ck_assert_msg(fit == (status >= 0), "seed %d: %s", (int)seed, hbp_context_message(context));
        ck_assert(fit || status == HBP_E_INFEASIBLE);
        held += fit;
        refused += !fit;
        /* One more try is enough where one cap is in the way, and a token less is too few. */
        if (!fit && !c.samples && !c.per_rank != !c.length) {
            caps better = suggested(context, c), worse = better;
            OK(context, check(context, lengths, cost, better));
            worse.per_rank -= worse.per_rank > 0;
            worse.length -= worse.length > 0;
            ck_assert_int_eq(check(context, lengths, cost, worse), HBP_E_INFEASIBLE);
            mended++;
        }
        if (!fit && c.samples && !c.per_rank && !c.length)
            OK(context, check(context, lengths, cost, suggested(context, c)));
        hbp_lengths_free(lengths);
    }
    ck_assert_int_ge(refused, 50);
    ck_assert_int_ge(held, 50);
    ck_assert_int_ge(mended, 20);
}
END_TEST

/* Sample 3 is longer than the first one that does not fit, which another step holds. */
START_TEST_IN_CONTEXT(every_contract_names_the_longest)
{
    const int64_t length[] = {900, 5000, 40, 7000, 60, 5001}, offsets[] = {0, 2, 4, 6},
                  samples[] = {0, 1, 2, 3, 4, 5};
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths, hbp_lengths_create_i64(context, length, 6, NULL, &lengths));
    const hbp_epoch_options contracts[] = {
        {.samples_per_step = 2},
        {.batches = 3, .batch_offsets = offsets, .batch_samples = samples},
        {.composition = HBP_COMPOSITION_RANDOM},
        {.composition = HBP_COMPOSITION_STRATIFIED, .samples_per_step = 2},
        {.composition = HBP_COMPOSITION_STRATIFIED},
        {.tokens_per_step = 9000},
        {.micro_batches_per_step = 2},
        {.equal_samples = 1, .samples_per_step = 3},
        {.composition = HBP_COMPOSITION_HIERARCHY},
        {.method = hbp__epoch_name(HBP__EPOCH_HBP)},
        {.window_samples = 3},
    };
    for (size_t i = 0; i < sizeof contracts / sizeof *contracts; i++) {
        hbp_epoch_options options = contracts[i];
        hbp_plan *plan = NULL;
        int by_groups = i >= 8;
        options.struct_size = sizeof options;
        options.max_pack_length = 4500;
        FAILS(context, HBP_E_INFEASIBLE,
              by_groups ? "the longest sample has 7000 tokens" : "sample 3 has 7000",
              hbp_plan_epoch(context, lengths, cost, &options, &plan));
        ck_assert_msg(strstr(hbp_context_message(context), "max_pack_length ") &&
                          strstr(hbp_context_message(context), "(7000 would do)"),
                      "%s", hbp_context_message(context));
        ck_assert_ptr_null(plan);
        options.max_pack_length = 0;
        options.tokens_per_rank = 300;
        FAILS(context, HBP_E_INFEASIBLE, "would do", hbp_plan_epoch(context, lengths, cost, &options, &plan));
        ck_assert(strstr(hbp_context_message(context), "tokens_per_rank"));
        ck_assert_ptr_null(plan);
    }
}
END_TEST

/* A histogram names a sample by its place in it. */
START_TEST_IN_CONTEXT(histograms_are_held_against_caps)
{
    hbp_cost *cost = keep(test_cost(context));
    const int64_t length[] = {8, 20, 3000}, count[] = {5, 2, 4};
    hbp_lengths *histogram = NULL;
    MAKES(context, histogram, hbp_lengths_create_histogram(context, length, count, 3, &histogram));
    OK(context, check(context, histogram, cost, (caps){.length = 3000}));
    FAILS(context, HBP_E_INFEASIBLE, "sample 7 has 3000 tokens with padding; the longest pack holds 2999",
          check(context, histogram, cost, (caps){.length = 2999}));
}
END_TEST

typedef struct call {
    hbp_lengths *lengths;
    hbp_cost *cost;
} call;

static hbp_status check_once(hbp_context *context, void *user)
{
    const call *c = user;
    return check(context, c->lengths, c->cost, (caps){.length = 90000, .multiple_per_sp = 3, .samples = 9});
}

/* The search for the longest sample, the last of many, asks to be cancelled behind each HBP__TICK_ROWS. */
START_TEST_IN_CONTEXT(many_samples_are_looked_through_with_reports)
{
    call c = {NULL, keep(test_cost(context))};
    const int64_t count = 4 * HBP__TICK_ROWS + 5;
    uint32_t *length = keep(malloc((size_t)count * sizeof *length));
    for (int64_t i = 0; i < count; i++)
        length[i] = 100;
    int64_t reports[2];
    for (int last = 0; last < 2; last++) {
        length[0] = last ? 100 : 200;
        length[count - 1] = last ? 200 : 100;
        OK(context, hbp_lengths_create_u32(context, length, count, NULL, &c.lengths));
        reports[last] = cancel_sweep(check_once, &c);
        hbp_lengths_free(c.lengths);
    }
    ck_assert_int_eq(reports[1] - reports[0], 4);
}
END_TEST

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    call c = {NULL, keep(test_cost(context))};
    for (int linked = 0; linked < 2; linked++) {
        c.lengths = linked ? batched_linked(context, 3, 60, 900, 3) : test_long_tail(context, 3, 60, 900);
        failing_sweep(check_once, &c);
        hbp_lengths_free(c.lengths);
    }
}
END_TEST

/* Groups that are given say how long packs are: caps below that are refused, for plans and baselines. */
START_TEST_IN_CONTEXT(given_groups_are_held_against_caps)
{
    hbp_cost *cost = keep(test_cost_ranks(context, 8));
    hbp_lengths *lengths = keep(test_long_tail(context, 1, 50, 2000));
    hbp_groups *groups = NULL;
    MAKES(context, groups,
          hbp_groups_create(context, cost, 2, (int64_t[]){1024, 4096}, (int32_t[]){1, 4}, NULL, 0, &groups));
    hbp_epoch_options o = {.struct_size = sizeof o, .groups = groups, .tokens_per_rank = 1024};
    hbp_plan *plan = NULL;
    MAKES(context, plan, hbp_plan_epoch(context, lengths, cost, &o, &plan));
    o.tokens_per_rank = 1023;
    FAILS(context, HBP_E_INVALID, "packs of group 0 have 1024 tokens on 1 rank; tokens_per_rank is 1023",
          hbp_plan_epoch(context, lengths, cost, &o, &plan));
    FAILS(context, HBP_E_INVALID, "tokens_per_rank is 1023",
          test_plan_by(context, lengths, cost, HBP__EPOCH_NEXT_FIT, &o, &plan));
    o.tokens_per_rank = 0;
    o.max_pack_length = 4095;
    FAILS(context, HBP_E_INVALID, "packs of group 1 have 4096 tokens; max_pack_length is 4095",
          hbp_plan_epoch(context, lengths, cost, &o, &plan));
}
END_TEST

/* Padding by degree asks for packs that hold it whatever degree the groups turn out to have: a hierarchy is
 * found for a single sample of any length, as steps planned one by one are. */
START_TEST_IN_CONTEXT(a_hierarchy_has_room_for_padding_by_degree)
{
    hbp_cost *cost = keep(test_cost_ranks(context, 16));
    for (uint32_t tokens = 1; tokens < 200; tokens += 7)
        for (int way = 0; way < 4; way++) {
            hbp_epoch_options o = {.struct_size = sizeof o,
                                   .composition = HBP_COMPOSITION_HIERARCHY,
                                   .pack_multiple_per_sp = way % 2 ? 3 : 0,
                                   .sequence_multiple_per_sp = way < 2 ? 0 : 2};
            hbp_lengths *lengths = NULL;
            hbp_plan *plan = NULL;
            OK(context, hbp_lengths_create_u32(context, &tokens, 1, NULL, &lengths));
            OK(context, hbp_plan_epoch(context, lengths, cost, &o, &plan));
            OK(context, hbp_plan_validate(context, plan, lengths, cost));
            hbp_plan_free(plan);
            hbp_lengths_free(lengths);
        }
}
END_TEST

TEST_MAIN("caps", caps_hold_every_unit_or_say_what_would, every_contract_names_the_longest,
          histograms_are_held_against_caps, many_samples_are_looked_through_with_reports,
          given_groups_are_held_against_caps, a_hierarchy_has_room_for_padding_by_degree,
          nothing_is_left_behind)
