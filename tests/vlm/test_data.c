/* The data of a run, every way of it, against what each way is from its definition. */
#include "base/methods.h"
#include "vlm_runs.h"

#define SAMPLES 403

static const int32_t ways[] = {HBP__VLM_DATA_PACKED, HBP__VLM_DATA_ISF, HBP__VLM_DATA_RANDOM,
                               HBP__VLM_DATA_GROUPED, HBP__VLM_DATA_SORTED};
#define WAYS (int)(sizeof ways / sizeof *ways)

static int is_padded(int32_t way)
{
    return way >= HBP__VLM_DATA_RANDOM;
}

static hbp__vlm_packs fill(const hbp__vlm_run *run, int32_t samples)
{
    hbp__vlm_packs packs;
    OK(run->context, hbp__vlm_fill(run, samples, &packs));
    return packs;
}

/* Every sample once, in a pack or dropped; sizes and means as the samples make them. */
static void check_packs(const fixture *f, const hbp__vlm_packs *packs, int32_t way, int32_t samples)
{
    const hbp_packs *k = packs->packs;
    char seen[SAMPLES] = {0};
    hbp__vlm_size sum = {0, 0, 0};
    ck_assert_int_eq(k->samples + k->dropped, SAMPLES);
    ck_assert_int_eq(packs->length != NULL, is_padded(way));
    for (int64_t p = 0; p < k->count; p++) {
        int64_t rows = k->offsets[p + 1] - k->offsets[p];
        double vision = 0, tokens = 0, squares = 0, longest = 0;
        for (int64_t i = k->offsets[p]; i < k->offsets[p + 1]; i++) {
            double length = (double)hbp__lengths_get(f->lengths, k->sample[i]);
            ck_assert_int_eq(seen[k->sample[i]]++, 0);
            vision += f->lengths->vision[k->sample[i]];
            tokens += length;
            squares += length * length;
            longest = length > longest ? length : longest;
        }
        if (is_padded(way)) {
            ck_assert_int_eq(rows, p + 1 < k->count ? samples : SAMPLES - p * samples);
            ck_assert_int_eq(packs->length[p], (int64_t)longest * rows);
            tokens = longest * (double)rows;
            squares = longest * longest * (double)rows;
        } else {
            ck_assert_double_le(vision, (double)packs->max_vision);
            ck_assert_double_le(tokens, (double)packs->max_tokens);
        }
        hbp__vlm_size size = hbp__vlm_pack_size(packs, p);
        ck_assert_double_eq(size.vision, vision);
        ck_assert_double_eq(size.tokens, tokens);
        ck_assert_double_eq_tol(size.squares, squares, squares * 1e-12);
        sum.vision += vision;
        sum.tokens += tokens;
        sum.squares += squares;
    }
    for (int64_t i = 0; i < k->dropped; i++)
        ck_assert_int_eq(seen[k->dropped_sample[i]]++, 0);
    hbp__vlm_size mean = hbp__vlm_mean(packs);
    ck_assert_double_eq_tol(mean.vision * (double)k->count, sum.vision, 1e-6);
    ck_assert_double_eq_tol(mean.tokens * (double)k->count, sum.tokens, 1e-3);
    ck_assert_double_eq_tol(mean.squares * (double)k->count, sum.squares, sum.squares * 1e-12);
}

START_TEST_IN_CONTEXT(every_sample_once)
{
    fixture f = setup(context, SAMPLES);
    for (int w = 0; w < WAYS; w++)
        for (int32_t samples = 1; samples <= 8; samples += 3) {
            f.options.data_method = hbp__vlm_data_name(ways[w]);
            f.options.max_vision = 8 * samples;
            f.options.max_tokens = 2000 * samples;
            hbp__vlm_run run = open_run(&f);
            hbp__vlm_packs packs = fill(&run, samples);
            check_packs(&f, &packs, ways[w], samples);
            ck_assert_int_eq(packs.max_vision, is_padded(ways[w]) ? 0 : 8 * samples);
            ck_assert_int_eq(packs.max_tokens, is_padded(ways[w]) ? 0 : 2000 * samples);
            ck_assert_int_eq(packs.packs->dropped, 0);
            hbp__vlm_packs_close(&packs);
        }
}
END_TEST

START_TEST_IN_CONTEXT(budgets_are_chosen)
{
    fixture f = setup(context, SAMPLES);
    for (int w = 0; w < 2; w++)
        for (int32_t samples = 3; samples <= 5; samples++) {
            f.options.data_method = hbp__vlm_data_name(ways[w]);
            hbp__vlm_run run = open_run(&f);
            hbp__vlm_packs packs = fill(&run, samples);
            check_packs(&f, &packs, ways[w], samples);
            double held = (double)packs.packs->samples / (double)packs.packs->count;
            ck_assert_double_ge(held, samples);
            ck_assert_double_le(held, samples + 1);
            /* More than a sixteenth over is for data that have no such budgets. */
            if (ways[w] == HBP__VLM_DATA_PACKED)
                ck_assert_double_le(held, samples * 1.0625);
            hbp__vlm_packs_close(&packs);
        }
}
END_TEST

/* Longest sample of each pack. */
static int64_t longest(const fixture *f, const hbp_packs *k, int64_t p)
{
    int64_t most = 0;
    for (int64_t i = k->offsets[p]; i < k->offsets[p + 1]; i++) {
        int64_t length = hbp__lengths_get(f->lengths, k->sample[i]);
        most = length > most ? length : most;
    }
    return most;
}

static double padding(const hbp__vlm_packs *packs)
{
    double all = 0, own = 0;
    for (int64_t p = 0; p < packs->packs->count; p++) {
        all += (double)packs->length[p];
        own += (double)packs->packs->tokens[p];
    }
    return 1 - own / all;
}

START_TEST_IN_CONTEXT(padded_ways_differ_in_order)
{
    fixture f = setup(context, SAMPLES);
    hbp__vlm_packs packs[3];
    for (int w = 0; w < 3; w++) {
        f.options.data_method = hbp__vlm_data_name(ways[2 + w]);
        hbp__vlm_run run = open_run(&f);
        packs[w] = fill(&run, 4);
    }
    const hbp_packs *random = packs[0].packs, *grouped = packs[1].packs, *sorted = packs[2].packs;
    int64_t rises = 0, falls = 0;
    for (int64_t p = 0; p + 1 < sorted->count; p++) {
        rises += longest(&f, sorted, p) < longest(&f, sorted, p + 1);
        falls += longest(&f, sorted, p) > longest(&f, sorted, p + 1);
    }
    ck_assert(!rises || !falls);
    ck_assert_int_gt(rises + falls, 0);
    /* Groups are the sorted ones; only steps come in another order. */
    ck_assert_mem_eq(grouped->sample, sorted->sample, SAMPLES * sizeof *sorted->sample);
    ck_assert_mem_ne(random->sample, sorted->sample, SAMPLES * sizeof *sorted->sample);
    ck_assert_double_gt(padding(&packs[0]), .1);
    ck_assert_double_lt(padding(&packs[2]), .02);
    /* Another epoch is another draw, the same one the same. */
    f.options.data_method = hbp__vlm_data_name(HBP__VLM_DATA_RANDOM);
    hbp__vlm_run run = open_run(&f);
    hbp__vlm_packs again = fill(&run, 4);
    ck_assert_mem_eq(random->sample, again.packs->sample, SAMPLES * sizeof *random->sample);
    hbp__vlm_packs_close(&again);
    run.options.epoch = 1;
    again = fill(&run, 4);
    ck_assert_mem_ne(random->sample, again.packs->sample, SAMPLES * sizeof *random->sample);
    hbp__vlm_packs_close(&again);
    for (int w = 0; w < 3; w++)
        hbp__vlm_packs_close(&packs[w]);
}
END_TEST

START_TEST_IN_CONTEXT(a_step_comes_nearest_to_its_samples)
{
    fixture f = setup(context, 40);
    hbp__rng rng = hbp__rng_make(2, 0, 0);
    for (int turn = 0; turn < TEST_ROUNDS(500); turn++) {
        hbp_packs k = {.count = 1 + (int64_t)hbp__rng_below(&rng, 200)};
        k.samples = k.count * (1 + (int64_t)hbp__rng_below(&rng, 5)) + (int64_t)hbp__rng_below(&rng, 50);
        hbp__vlm_packs packs = {.packs = &k};
        f.options.virtual_stages = 1 + (int32_t)hbp__rng_below(&rng, 2);
        f.options.batch_samples = 1 + (int32_t)hbp__rng_below(&rng, 300);
        f.options.data_parallel = 1 + (int32_t)hbp__rng_below(&rng, 2);
        f.options.micro_batches = 0;
        hbp__vlm_run run = open_run(&f);
        int32_t got = hbp__vlm_micro_batches(&run, &packs);
        int64_t unit = f.options.virtual_stages > 1 ? 4 : 1, least = INT64_MAX;
        /* |M D samples / packs - batch|, times packs */
        for (int64_t m = unit; m <= 400; m += unit) {
            int64_t off = m * f.options.data_parallel * k.samples - f.options.batch_samples * k.count;
            least = llabs(off) < least ? llabs(off) : least;
        }
        ck_assert_int_eq(got % unit, 0);
        ck_assert_int_ge(got, unit);
        ck_assert_int_eq(
            llabs(got * (int64_t)f.options.data_parallel * k.samples - f.options.batch_samples * k.count),
            least);
        run.options.micro_batches = 12;
        ck_assert_int_eq(hbp__vlm_micro_batches(&run, &packs), 12);
    }
    /* No more than 2^27 - 1. */
    hbp_packs one = {.count = 1, .samples = 1};
    hbp__vlm_packs packs = {.packs = &one};
    f.options.virtual_stages = f.options.data_parallel = 1;
    f.options.batch_samples = 1 << 30;
    hbp__vlm_run run = open_run(&f);
    ck_assert_int_eq(hbp__vlm_micro_batches(&run, &packs), (1 << 27) - 1);
    run.options.batch_samples = (1 << 27) - 1;
    ck_assert_int_eq(hbp__vlm_micro_batches(&run, &packs), (1 << 27) - 1);
    run.options.batch_samples = (1 << 27) - 2;
    ck_assert_int_eq(hbp__vlm_micro_batches(&run, &packs), (1 << 27) - 2);
}
END_TEST

static hbp_plan *deal(const hbp__vlm_run *run, const hbp__vlm_packs *packs, int32_t micro_batches)
{
    hbp__vlm_reference reference;
    hbp__vlm_size mean = hbp__vlm_mean(packs);
    hbp_plan *data = NULL;
    OK(run->context, hbp__vlm_reference_open(run, &mean, &reference));
    OK(run->context, hbp__vlm_deal(run, packs, &reference, micro_batches, &data));
    hbp__vlm_reference_close(&reference);
    return data;
}

/* A valid plan with a pack for each replica and micro-batch, whose rows have the sizes of their packs. */
static void check_data(const fixture *f, const hbp_plan *data, const hbp__vlm_run *run, int32_t micro_batches)
{
    OK(f->context, hbp_plan_validate(f->context, data, f->lengths, NULL));
    ck_assert_int_eq(data->ranks, run->options.data_parallel);
    int64_t unit = run->options.virtual_stages > 1 ? run->options.pipeline_stages : 1;
    for (int64_t s = 0; s < data->steps; s++) {
        int64_t count = data->step_offsets[s + 1] - data->step_offsets[s];
        ck_assert_int_le(count, micro_batches);
        ck_assert_int_eq(count % unit, 0);
    }
    for (int64_t p = 0; p < data->packs; p++) {
        int64_t begin = data->pack_offsets[p], rows = data->pack_offsets[p + 1] - begin, most = 0;
        double squares = 0;
        ck_assert_int_eq(data->pack_ranks[p], p % data->ranks);
        for (int64_t i = begin; i < begin + rows; i++) {
            most = data->sample_tokens[i] > most ? data->sample_tokens[i] : most;
            squares += (double)data->sample_tokens[i] * data->sample_tokens[i];
        }
        hbp__vlm_size size = hbp__vlm_row_size(run, data, p);
        ck_assert_double_eq(size.vision, (double)data->pack_vision[p]);
        if (is_padded(hbp__vlm_data_method(run->options.data_method))) {
            ck_assert_int_eq(data->pack_capacity[p], most * rows);
            ck_assert_double_eq(size.tokens, (double)(most * rows));
            ck_assert_double_eq_tol(size.squares, (double)(most * most * rows), 1e-3);
        } else {
            ck_assert_double_eq(size.tokens, (double)data->pack_tokens[p]);
            ck_assert_double_eq(size.squares, squares);
        }
    }
}

START_TEST_IN_CONTEXT(deals_every_way)
{
    for (int32_t chunks = 1; chunks <= 2; chunks++)
        for (int w = 0; w < WAYS; w++) {
            fixture f = setup(context, SAMPLES);
            f.options.data_method = hbp__vlm_data_name(ways[w]);
            f.options.virtual_stages = chunks;
            f.options.max_vision = 18;
            f.options.max_tokens = 6016;
            hbp__vlm_run run = open_run(&f);
            hbp__vlm_packs packs = fill(&run, 4);
            hbp_plan *data = deal(&run, &packs, 8);
            check_data(&f, data, &run, 8);
            ck_assert_int_eq(data->samples, SAMPLES);
            ck_assert_int_eq(data->step_offsets[1], 8);
            hbp_plan_free(data);
            hbp__vlm_packs_close(&packs);
        }
}
END_TEST

START_TEST_IN_CONTEXT(too_large_samples_are_refused_or_dropped)
{
    fixture f = setup(context, SAMPLES);
    hbp__vlm_packs packs;
    for (int w = 0; w < 2; w++) {
        int64_t over = 0;
        f.options.data_method = hbp__vlm_data_name(ways[w]);
        f.options.over_long = HBP_OVERLONG_ERROR;
        f.options.max_vision = 4;
        f.options.max_tokens = 1600;
        for (int64_t i = 0; i < SAMPLES; i++)
            over += f.lengths->vision[i] > 4 || hbp__lengths_get(f.lengths, i) > 1600;
        ck_assert_int_gt(over, 10);
        hbp__vlm_run run = open_run(&f);
        /* The published way drops them whatever is asked. */
        if (ways[w] == HBP__VLM_DATA_PACKED)
            FAILS(f.context, HBP_E_INVALID, "sample", hbp__vlm_fill(&run, 4, &packs));
        run.options.over_long = ways[w] == HBP__VLM_DATA_PACKED ? HBP_OVERLONG_DROP : HBP_OVERLONG_ERROR;
        packs = fill(&run, 4);
        check_packs(&f, &packs, ways[w], 4);
        hbp_plan *data = deal(&run, &packs, 4);
        check_data(&f, data, &run, 4);
        ck_assert_int_eq(data->samples + data->dropped, SAMPLES);
        ck_assert_int_ge(data->dropped, over);
        int64_t large = 0;
        for (int64_t i = 0; i < data->dropped; i++) {
            int64_t id = data->dropped_ids[i];
            int is_over = f.lengths->vision[id] > 4 || hbp__lengths_get(f.lengths, id) > 1600;
            ck_assert(is_over || data->dropped_reasons[i] == HBP_DROPPED_LOST);
            large += is_over;
        }
        ck_assert_int_eq(large, over);
        if (ways[w] == HBP__VLM_DATA_PACKED)
            ck_assert_int_eq(data->dropped, over);
        hbp_plan_free(data);
        hbp__vlm_packs_close(&packs);
        run.options.max_tokens = 8;
        FAILS(f.context, HBP_E_INVALID, "none of 403 samples is within 8 tokens and 4 vision units",
              hbp__vlm_fill(&run, 4, &packs));
    }
    /* Padded data have no budgets that a sample could pass. */
    f.options.data_method = hbp__vlm_data_name(HBP__VLM_DATA_SORTED);
    f.options.over_long = HBP_OVERLONG_ERROR;
    hbp__vlm_run run = open_run(&f);
    packs = fill(&run, 4);
    ck_assert_int_eq(packs.packs->dropped, 0);
    hbp__vlm_packs_close(&packs);
}
END_TEST

START_TEST_IN_CONTEXT(a_micro_batch_is_of_like_modalities)
{
    fixture f = setup(context, SAMPLES);
    f.lengths = keep(draw_samples(context, 5, SAMPLES, 0)); /* some without vision */
    f.options.modality_order = 1;
    f.options.max_vision = 9;
    f.options.max_tokens = 4096;
    hbp__vlm_run run = open_run(&f);
    hbp__vlm_packs packs = fill(&run, 4);
    hbp_plan *data = keep(deal(&run, &packs, 8));
    check_data(&f, data, &run, 8);
    ck_assert_ptr_nonnull(data->micro_batch_modalities);
    int64_t masks = 0;
    for (int64_t s = 0; s < data->steps; s++)
        for (int64_t m = data->step_offsets[s]; m < data->step_offsets[s + 1]; m++) {
            int64_t mask = data->micro_batch_modalities[m];
            masks |= INT64_C(1) << mask;
            if (m > data->step_offsets[s])
                ck_assert_int_ge(mask, data->micro_batch_modalities[m - 1]);
            for (int64_t p = data->micro_batch_offsets[m]; p < data->micro_batch_offsets[m + 1]; p++) {
                int64_t held = 0;
                for (int64_t i = data->pack_offsets[p]; i < data->pack_offsets[p + 1]; i++)
                    held |= INT64_C(1) << data->sample_modalities[i];
                ck_assert(!held || held == mask);
            }
        }
    ck_assert(masks & (masks - 1)); /* more than one type, or nothing was tested */
    hbp__vlm_packs_close(&packs);
}
END_TEST

START_TEST_IN_CONTEXT(a_step_past_64_bits_is_refused)
{
    fixture f = setup(context, 40);
    hbp__vlm_run run = open_run(&f);
    hbp__vlm_packs packs = fill(&run, 4);
    hbp__vlm_reference reference;
    hbp__vlm_size mean = hbp__vlm_mean(&packs);
    hbp_plan *data = NULL;
    OK(f.context, hbp__vlm_reference_open(&run, &mean, &reference));
    packs.max_tokens = INT64_MAX / 8;
    FAILS(f.context, HBP_E_OVERFLOW, "a step of 8 micro-batches of 1152921504606846975 tokens passes 2^63",
          hbp__vlm_deal(&run, &packs, &reference, 8, &data));
    ck_assert_ptr_null(data);
    hbp__vlm_reference_close(&reference);
    hbp__vlm_packs_close(&packs);
}
END_TEST

static hbp_status fill_and_deal(hbp_context *context, void *user)
{
    const fixture *f = user;
    hbp__vlm_run run;
    hbp__vlm_packs packs;
    hbp__vlm_reference reference = {0};
    hbp_plan *data = NULL;
    HBP__TRY(hbp__vlm_open(context, f->lengths, f->vlm, f->machine, &f->options, &run));
    HBP__TRY(hbp__vlm_fill(&run, 4, &packs));
    hbp__vlm_size mean = hbp__vlm_mean(&packs);
    hbp_status status = hbp__vlm_reference_open(&run, &mean, &reference);
    if (status >= 0)
        status = hbp__vlm_deal(&run, &packs, &reference, 2, &data);
    ck_assert_int_eq(data != NULL, status >= 0);
    hbp_plan_free(data);
    hbp__vlm_reference_close(&reference);
    hbp__vlm_packs_close(&packs);
    return status;
}

START_TEST_IN_CONTEXT(failing_allocations_and_cancel)
{
    fixture f = setup(context, 40);
    f.options.max_vision = 18;
    f.options.max_tokens = 6016;
    for (int w = 0; w < WAYS; w++) {
        f.options.data_method = hbp__vlm_data_name(ways[w]);
        failing_sweep(fill_and_deal, &f);
        ck_assert_int_gt(cancel_sweep(fill_and_deal, &f), 0);
    }
    f.options.max_vision = f.options.max_tokens = 0;
    for (int w = 0; w < 2; w++) {
        f.options.data_method = hbp__vlm_data_name(ways[w]);
        cancel_sweep(fill_and_deal, &f);
    }
}
END_TEST

TEST_MAIN("data", every_sample_once, budgets_are_chosen, padded_ways_differ_in_order,
          a_step_comes_nearest_to_its_samples, deals_every_way, too_large_samples_are_refused_or_dropped,
          a_micro_batch_is_of_like_modalities, a_step_past_64_bits_is_refused, failing_allocations_and_cancel)
