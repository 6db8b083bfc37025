#include "data/pattern/pattern_plan.h"

#include "base/digest.h"
#include "base/options.h"
#include "base/scratch.h"
#include "base/search.h"

/* The streams of the draws of strata begin there. */
#define STREAM_STRATUM (UINT64_C(0x73747261) << 32)

#define COLUMN(name, type, count, extra) HBP__MEMBER_COLUMN(hbp_pattern_plan, type, name, count, extra),
#define NUMBER(name, type)               HBP__MEMBER_NUMBER(hbp_pattern_plan, type, name),

static const hbp__member columns[] = {HBP__PATTERN_COLUMNS(COLUMN)};
static const hbp__member numbers[] = {
    HBP__MEMBER_NUMBER(hbp_pattern_plan, int64_t, groups),
    HBP__MEMBER_NUMBER(hbp_pattern_plan, int64_t, stretches),
    HBP__MEMBER_NUMBER(hbp_pattern_plan, int64_t, patterns),
    HBP__MEMBER_NUMBER(hbp_pattern_plan, int64_t, runs),
    HBP__MEMBER_NUMBER(hbp_pattern_plan, int64_t, lengths),
    HBP__PATTERN_NUMBERS(NUMBER) HBP__MEMBER_NUMBER(hbp_pattern_plan, uint64_t, digest),
};

const hbp__table hbp__pattern_table = {
    .what = "the plan by patterns",
    .bytes = sizeof(hbp_pattern_plan),
    .numbers = numbers,
    .columns = columns,
    .number_count = sizeof numbers / sizeof *numbers,
    .column_count = sizeof columns / sizeof *columns,
};

hbp_pattern_plan *hbp__pattern_plan_new(const hbp__memory *memory, int64_t groups, int64_t stretches,
                                        int64_t patterns, int64_t runs, int64_t lengths)
{
    const hbp_pattern_plan shape = {.memory = *memory,
                                    .groups = groups,
                                    .stretches = stretches,
                                    .patterns = patterns,
                                    .runs = runs,
                                    .lengths = lengths};
    return hbp__table_new(memory, &hbp__pattern_table, &shape);
}

void hbp_pattern_plan_free(hbp_pattern_plan *plan)
{
    if (!plan)
        return;
    hbp__memory memory = plan->memory;
    hbp__table_free(&memory, &hbp__pattern_table, plan);
}

hbp_pattern_plan *hbp__pattern_plan_copy(const hbp__memory *memory, const hbp_pattern_plan *plan)
{
    hbp_pattern_plan shape = *plan;
    shape.memory = *memory;
    hbp_pattern_plan *copy = hbp__table_new(memory, &hbp__pattern_table, &shape);
    for (int32_t i = 0; copy && i < hbp__pattern_table.column_count; i++)
        hbp__column_copy(&columns[i], copy, 0, plan, 0, hbp__table_rows(plan, &columns[i]));
    return copy;
}

uint64_t hbp__pattern_plan_digest(const hbp_pattern_plan *plan)
{
    hbp__digest digest = hbp__digest_begin();
#define MIX(name, type) hbp__digest_u64(&digest, (uint64_t)plan->name);
    HBP__PATTERN_NUMBERS(MIX)
#undef MIX
    hbp__table_digest(&hbp__pattern_table, plan, &digest);
    return hbp__digest_end(&digest);
}

/* The most tokens of a pack of packs [first, end); *pattern is one no later than that of the first, then that
 * of the last. */
static int64_t fullest_pack(const hbp_pattern_plan *plan, int64_t first, int64_t end, int64_t *pattern)
{
    int64_t most = 0;
    if (first >= end)
        return 0;
    while (plan->pattern_first_packs[*pattern + 1] <= first)
        ++*pattern;
    for (;; ++*pattern) {
        most = hbp__max_i64(most, plan->pattern_tokens[*pattern]);
        if (plan->pattern_first_packs[*pattern + 1] >= end)
            return most;
    }
}

static int64_t tokens_of_group(const hbp_pattern_plan *plan, int64_t g)
{
    int64_t all = 0;
    for (int64_t p = plan->group_first_patterns[g]; p < plan->group_first_patterns[g + 1]; p++) {
        const int64_t times = plan->pattern_first_packs[p + 1] - plan->pattern_first_packs[p];
        all = hbp__add_saturating(all, hbp__mul_saturating(times, plan->pattern_tokens[p]));
    }
    return all;
}

hbp_status hbp__pattern_sizes_open(hbp_context *context, const hbp_pattern_plan *plan,
                                   hbp__pattern_sizes *sizes)
{
    *sizes = (hbp__pattern_sizes){.all = 0};
    sizes->range = hbp__take(context, (uint64_t)plan->stretches, sizeof *sizes->range);
    HBP__TRY(hbp__scratch_check(context, "the stretches"));
    for (int64_t g = 0, pattern = 0; g < plan->groups; g++) {
        const int64_t packs = hbp__pattern_width(plan, g) * plan->micro_batch_multiple,
                      before = hbp__pattern_first_pack(plan, g), all = tokens_of_group(plan, g);
        sizes->all = hbp__add_saturating(sizes->all, all);
        for (int64_t k = plan->group_first_stretches[g]; k < plan->group_first_stretches[g + 1]; k++) {
            const int64_t first = plan->stretch_first_packs[k], end = plan->stretch_first_packs[k + 1],
                          most = fullest_pack(plan, first, end, &pattern);
            HBP__TRY(hbp__tick_row(context, "patterns", k, plan->stretches));
            sizes->range[sizes->ranges++] = (hbp__unit_range){
                plan->group_first_units[g] + (first - before) / packs,
                plan->group_first_units[g] + hbp__ceil_div(end - before, packs),
                hbp__min_i64(all, hbp__mul_saturating(most, packs)),
            };
        }
    }
    return HBP_OK;
}

/* The largest of units [first, end). */
static int64_t largest_unit(const hbp__pattern_sizes *sizes, int64_t first, int64_t end)
{
    int64_t most = 0;
    for (int64_t i = 0; i < sizes->ranges; i++)
        if (hbp__max_i64(first, sizes->range[i].first) < hbp__min_i64(end, sizes->range[i].end))
            most = hbp__max_i64(most, sizes->range[i].tokens);
    return most;
}

/* The largest unit of each stratum of [from, to), summed. */
static int64_t sum_strata(const hbp__pattern_sizes *sizes, int64_t steps, int64_t from, int64_t to)
{
    int64_t sum = 0, stratum = -1, most = 0; /* most: of the stratum at hand, which is in the sum */
    for (int64_t i = 0; i < sizes->ranges; i++) {
        const hbp__unit_range *range = &sizes->range[i];
        const int64_t first = hbp__max_i64(range->first, from * steps),
                      end = hbp__min_i64(range->end, to * steps), unit = range->tokens;
        int64_t begin = first / steps;
        if (first >= end)
            continue;
        if (begin == stratum) {
            sum = hbp__add_saturating(sum, hbp__max_i64(0, unit - most));
            most = hbp__max_i64(most, unit);
            begin++;
        }
        const int64_t whole = (end - 1) / steps - begin + 1;
        if (whole <= 0)
            continue;
        sum = hbp__add_saturating(sum, hbp__mul_saturating(unit, whole));
        stratum = (end - 1) / steps;
        most = unit;
    }
    return sum;
}

int64_t hbp__pattern_step_tokens(const hbp_pattern_plan *plan, const hbp__pattern_sizes *sizes, int64_t steps)
{
    const int64_t units = hbp__pattern_units(plan), strata = hbp__ceil_div(units, steps),
                  lean = strata * steps - units;
    if (strata == 1)
        return hbp__min_i64(sizes->all, largest_unit(sizes, 0, units));
    const int64_t most = hbp__max_i64(largest_unit(sizes, 0, lean),
                                      hbp__add_saturating(largest_unit(sizes, lean, steps),
                                                          largest_unit(sizes, (strata - 1) * steps, units)));
    return hbp__min_i64(sizes->all, hbp__add_saturating(most, sum_strata(sizes, steps, 1, strata - 1)));
}

hbp_status hbp__pattern_blocks_open(hbp_context *context, const hbp_pattern_plan *plan,
                                    hbp__pattern_blocks *blocks)
{
    const int64_t packs = plan->pattern_first_packs[plan->patterns];
    *blocks = (hbp__pattern_blocks){.shift = 0};
    while (packs >> blocks->shift > plan->patterns)
        blocks->shift++;
    const int64_t count = (packs >> blocks->shift) + 1;
    blocks->first = hbp__take(context, (uint64_t)count + 1, sizeof *blocks->first);
    HBP__TRY(hbp__scratch_check(context, "the patterns"));
    for (int64_t b = 0, p = 0; b <= count; b++) {
        HBP__TRY(hbp__tick_row(context, "patterns", b, count));
        while (p + 1 < plan->patterns && plan->pattern_first_packs[p + 1] <= b << blocks->shift)
            p++;
        blocks->first[b] = (int32_t)p;
    }
    return HBP_OK;
}

/* Sets the stretch that the next place is in. */
static void enter_stretch(hbp__pattern_walk *walk, int64_t stretch)
{
    const int64_t *first = walk->plan->stretch_first_packs + stretch;
    const int64_t at = walk->place - first[0];
    walk->stretch = stretch;
    walk->whole = (first[1] - first[0]) / walk->width;
    walk->micro_batch = at / walk->width;
    walk->rank = at % walk->width;
}

hbp__pattern_walk hbp__pattern_walk_from(const hbp_pattern_plan *plan, const hbp__pattern_blocks *blocks,
                                         int64_t g, int64_t place)
{
    hbp__pattern_walk walk = {
        .plan = plan, .blocks = blocks, .width = hbp__pattern_width(plan, g), .place = place};
    enter_stretch(&walk, hbp__last_at_most(plan->stretch_first_packs, plan->stretches, place));
    return walk;
}

hbp__pattern_pack hbp__pattern_walk_next(hbp__pattern_walk *walk)
{
    const hbp_pattern_plan *plan = walk->plan;
    if (walk->place == plan->stretch_first_packs[walk->stretch + 1])
        enter_stretch(walk, walk->stretch + 1);
    const int64_t pack = walk->micro_batch < walk->whole ? plan->stretch_first_packs[walk->stretch] +
                                                               walk->micro_batch + walk->rank * walk->whole
                                                         : walk->place;
    walk->place++;
    if (++walk->rank == walk->width) {
        walk->rank = 0;
        walk->micro_batch++;
    }
    int64_t first_pattern = 0, patterns = plan->patterns;
    if (walk->blocks) {
        const int32_t *among = &walk->blocks->first[pack >> walk->blocks->shift];
        first_pattern = among[0];
        patterns = among[1] - among[0] + 1;
    }
    const int64_t pattern =
        first_pattern + hbp__last_at_most(plan->pattern_first_packs + first_pattern, patterns, pack);
    return (hbp__pattern_pack){pattern, pack - plan->pattern_first_packs[pattern]};
}

/* Units of a stratum. */
static int64_t units_of(const hbp_pattern_plan *plan, int64_t stratum)
{
    return hbp__min_i64(plan->steps, hbp__pattern_units(plan) - stratum * plan->steps);
}

/* floor(step x units / steps) for numbers of at most 2^37: no more units than samples and groups. */
static int64_t units_before(int64_t step, int64_t units, int64_t steps)
{
    enum { HALF = 19 };
    const int64_t high = (step >> HALF) * units, low = (step & ((INT64_C(1) << HALF) - 1)) * units;
    return ((high / steps) << HALF) + (((high % steps) << HALF) + low) / steps;
}

hbp__pattern_deal hbp__pattern_deal_of(const hbp_pattern_plan *plan)
{
    const uint64_t key = hbp__permutation_key(plan->seed, plan->epoch);
    const int64_t strata = hbp__pattern_strata(plan), last = units_of(plan, strata - 1);
    return (hbp__pattern_deal){key, strata, hbp__permutation_make((uint64_t)units_of(plan, 0), key, 0),
                               hbp__permutation_make((uint64_t)last, key, 0),
                               hbp__permutation_make((uint64_t)(plan->steps - last), key, 0)};
}

/* Which unit of the stratum a step has; -1: none. */
static int64_t place_in_stratum(const hbp_pattern_plan *plan, const hbp__pattern_deal *deal, int64_t step,
                                int64_t stratum)
{
    const int64_t full = (int64_t)deal->last.count, lean = plan->steps - full;
    const hbp__permutation *of = &deal->whole;
    int64_t turn = step, first = 0;
    uint64_t stream = STREAM_STRATUM + (uint64_t)stratum;
    if (lean && (!stratum || stratum == deal->strata - 1)) {
        turn = units_before(step, full, plan->steps);
        if (units_before(step + 1, full, plan->steps) > turn) {
            of = &deal->last;
            first = stratum ? 0 : lean;
        } else if (!stratum) {
            turn = step - turn;
            of = &deal->lean;
            stream = STREAM_STRATUM + (uint64_t)deal->strata;
        } else {
            return -1;
        }
    }
    const hbp__permutation own = hbp__permutation_of_stream(of, deal->key, stream);
    return first + (int64_t)hbp__permutation_place(&own, (uint64_t)turn);
}

int hbp__pattern_unit_at(const hbp_pattern_plan *plan, const hbp__pattern_deal *deal, int64_t step,
                         int64_t stratum, hbp__pattern_unit *unit)
{
    const int64_t place = place_in_stratum(plan, deal, step, stratum), at = stratum * plan->steps + place;
    int64_t g = 0;
    if (place < 0)
        return 0;
    while (at >= plan->group_first_units[g + 1])
        g++;
    const int64_t first = hbp__pattern_first_pack(plan, g), end = hbp__pattern_first_pack(plan, g + 1),
                  packs = hbp__pattern_width(plan, g) * plan->micro_batch_multiple,
                  begin = first + (at - plan->group_first_units[g]) * packs;
    *unit = (hbp__pattern_unit){g, at, begin, hbp__min_i64(begin + packs, end)};
    return 1;
}

/* Adds the samples of the packs of stretch s of group g to those of its micro-batches [of the group];
 * *pattern is that of its first pack, or one before, and then of its last. */
static hbp_status add_samples(hbp_context *context, const hbp_pattern_plan *plan, int64_t g, int64_t s,
                              int64_t *pattern, int64_t *samples)
{
    const int64_t width = hbp__pattern_width(plan, g), first = plan->stretch_first_packs[s],
                  end = plan->stretch_first_packs[s + 1], whole = (end - first) / width,
                  rest = first + whole * width;
    samples += (first - hbp__pattern_first_pack(plan, g)) / width;
    for (int64_t pack = first, m = 0; pack < end; pack++, m = m + 1 < whole ? m + 1 : 0) {
        HBP__TRY(hbp__tick_row(context, "steps", pack, plan->pattern_first_packs[plan->patterns]));
        while (pack >= plan->pattern_first_packs[*pattern + 1])
            ++*pattern;
        samples[pack < rest ? m : whole] += plan->pattern_samples[*pattern];
    }
    return HBP_OK;
}

hbp_status hbp__pattern_count_samples(hbp_context *context, const hbp_pattern_plan *plan, int64_t **samples)
{
    const int64_t multiple = plan->micro_batch_multiple;
    *samples = hbp__take_zero(context, (uint64_t)(hbp__pattern_units(plan) * multiple), sizeof **samples);
    HBP__TRY(hbp__scratch_check(context, "the steps"));
    for (int64_t g = 0, pattern = 0; g < plan->groups; g++)
        for (int64_t s = plan->group_first_stretches[g]; s < plan->group_first_stretches[g + 1]; s++)
            HBP__TRY(
                add_samples(context, plan, g, s, &pattern, *samples + plan->group_first_units[g] * multiple));
    return HBP_OK;
}

/* What packs [first, end) of the row take, one after the other; *pattern is one no later than that of the
 * first, then that of the last. */
static int64_t sum_ns(const hbp_pattern_plan *plan, int64_t first, int64_t end, int64_t *pattern)
{
    int64_t ns = 0;
    while (first < end) {
        while (first >= plan->pattern_first_packs[*pattern + 1])
            ++*pattern;
        const int64_t stop = hbp__min_i64(end, plan->pattern_first_packs[*pattern + 1]);
        ns = hbp__add_saturating(ns, hbp__mul_saturating(stop - first, plan->pattern_ns[*pattern]));
        first = stop;
    }
    return ns;
}

/* Of all micro-batches of a group: those of a stretch take as long as its first packs, of which each has one,
 * and those of what is left at its end as the first of these. */
static int64_t group_ns(const hbp_pattern_plan *plan, int64_t g)
{
    const int64_t width = hbp__pattern_width(plan, g);
    int64_t ns = 0, pattern = plan->group_first_patterns[g];
    for (int64_t s = plan->group_first_stretches[g]; s < plan->group_first_stretches[g + 1]; s++) {
        const int64_t first = plan->stretch_first_packs[s], packs = plan->stretch_first_packs[s + 1] - first;
        const int64_t whole = packs / width, rest = first + whole * width;
        ns = hbp__add_saturating(ns, sum_ns(plan, first, first + whole, &pattern));
        if (packs % width)
            ns = hbp__add_saturating(ns,
                                     hbp__max_i64(plan->padding_ns, sum_ns(plan, rest, rest + 1, &pattern)));
    }
    const int64_t idle = hbp__pattern_group_units(plan, g) * plan->micro_batch_multiple -
                         hbp__ceil_div(hbp__pattern_packs(plan, g), width);
    return hbp__add_saturating(ns, hbp__mul_saturating(idle, plan->padding_ns));
}

int64_t hbp__pattern_plan_waiting_ns(const hbp_pattern_plan *plan)
{
    int64_t ns = hbp__mul_saturating(plan->steps, plan->step_ns);
    for (int64_t g = 0; g < plan->groups; g++)
        ns = hbp__add_saturating(ns, group_ns(plan, g));
    return ns;
}

/* Packs of padding from `rank` on, each of so many micro-batches at once: they keep a set waiting no longer
 * one by one. */
static void run_padding(const hbp_pattern_plan *plan, int64_t g, int32_t rank, int64_t micro_batches,
                        hbp__clock *clock)
{
    const int32_t sp = plan->group_sp[g];
    for (; rank < plan->ranks; rank += sp)
        hbp__clock_run(clock, rank, sp, hbp__mul_saturating(micro_batches, plan->padding_ns));
    hbp__clock_next(clock);
}

/* The micro-batches of a unit by the clock of a step. */
static hbp_status run_unit(hbp_context *context, const hbp_pattern_plan *plan, const hbp__pattern_unit *unit,
                           hbp__clock *clock, int64_t *since, int64_t step)
{
    const int32_t sp = plan->group_sp[unit->group];
    const int64_t width = hbp__pattern_width(plan, unit->group);
    int64_t left = plan->micro_batch_multiple;
    hbp__pattern_walk walk = hbp__pattern_walk_from(plan, NULL, unit->group, unit->first);
    for (int64_t at = unit->first; at < unit->end; left--) {
        const int64_t end = hbp__min_i64(unit->end, at + width);
        int32_t rank = 0;
        HBP__TRY(hbp__tick_rows(context, "predict", since, width + clock->sets, step, plan->steps));
        for (; at < end; at++, rank += sp)
            hbp__clock_run(clock, rank, sp, plan->pattern_ns[hbp__pattern_walk_next(&walk).pattern]);
        run_padding(plan, unit->group, rank, 1, clock);
    }
    if (left)
        run_padding(plan, unit->group, 0, left, clock);
    return hbp__tick_rows(context, "predict", since, width + clock->sets, step, plan->steps);
}

/* Sets of ranks that do not wait for each other: step by step. */
static hbp_status predict_steps(hbp_context *context, const hbp_pattern_plan *plan, int64_t *ns)
{
    const int64_t mark = hbp__scratch_mark(context);
    const hbp__pattern_deal deal = hbp__pattern_deal_of(plan);
    int64_t since = 0;
    hbp__clock clock;
    HBP__TRY(hbp__clock_open(context, plan->ranks, plan->lockstep_ranks, &clock));
    for (int64_t step = 0; step < plan->steps; step++) {
        hbp__clock_start(&clock, 0);
        for (int64_t t = 0; t < deal.strata; t++) {
            hbp__pattern_unit unit;
            if (hbp__pattern_unit_at(plan, &deal, step, t, &unit))
                HBP__TRY(run_unit(context, plan, &unit, &clock, &since, step));
        }
        *ns = hbp__add_saturating(*ns, hbp__clock_end(&clock));
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

hbp_status hbp__pattern_plan_predict(hbp_context *context, const hbp_pattern_plan *plan, int64_t *ns)
{
    *ns = 0;
    if (!plan->lockstep_ranks) {
        *ns = hbp__pattern_plan_waiting_ns(plan);
        return HBP_OK;
    }
    HBP__TRY(predict_steps(context, plan, ns));
    *ns = hbp__add_saturating(*ns, hbp__mul_saturating(plan->steps, plan->step_ns));
    return HBP_OK;
}

static void summarise(const hbp_pattern_plan *plan, hbp_plan_summary *summary)
{
    *summary = (hbp_plan_summary){
        .struct_size = sizeof *summary,
        .ranks = plan->ranks,
        .domain_ranks = plan->domain_ranks,
        .complete = 1,
        .steps = plan->steps,
        .dropped = plan->dropped,
        .loss_tokens = plan->loss_tokens,
        .sequence_multiple = plan->sequence_multiple,
        .pack_multiple = plan->pack_multiple,
        .micro_batch_multiple = plan->micro_batch_multiple,
        .predicted_ns = plan->predicted_ns,
        .overlong_samples = plan->overlong_samples,
        .overlong_tokens = plan->overlong_tokens,
        .seed = plan->seed,
        .epoch = plan->epoch,
        .digest = plan->digest,
        .lengths_digest = plan->lengths_digest,
        .bound_ns = plan->bound_ns,
        .gap = hbp__plan_gap(plan->predicted_ns, plan->bound_ns),
        .vision = -1,
        .composition = HBP_COMPOSITION_STRATIFIED,
        .proven = hbp__plan_is_proven(plan->predicted_ns, plan->bound_ns),
        .tokens_per_step = plan->tokens_per_step,
        .sequence_multiple_per_sp = plan->sequence_multiple_per_sp,
        .pack_multiple_per_sp = plan->pack_multiple_per_sp,
        .lockstep_ranks = plan->lockstep_ranks,
        .free_bound_ns = plan->free_bound_ns,
        .shifted_loss = plan->shifted_loss,
    };
    for (int64_t g = 0; g < plan->groups; g++) {
        const int64_t units = hbp__pattern_group_units(plan, g), width = hbp__pattern_width(plan, g);
        summary->micro_batches += units * plan->micro_batch_multiple;
        summary->packs += units * plan->micro_batch_multiple * width;
    }
    summary->padding_packs = summary->packs - plan->pattern_first_packs[plan->patterns];
    for (int64_t p = 0; p < plan->patterns; p++) {
        const int64_t times = plan->pattern_first_packs[p + 1] - plan->pattern_first_packs[p];
        summary->padded_tokens = hbp__add_saturating(
            summary->padded_tokens, hbp__mul_saturating(times, plan->pattern_padded_tokens[p]));
    }
    for (int64_t i = 0; i < plan->lengths; i++) {
        summary->samples += plan->length_samples[i];
        summary->tokens = hbp__add_saturating(
            summary->tokens, hbp__mul_saturating(plan->length_tokens[i], plan->length_samples[i]));
    }
}

hbp_status hbp_pattern_plan_get_summary(hbp_context *context, const hbp_pattern_plan *plan,
                                        hbp_plan_summary *summary)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, plan, "plan"));
    hbp_plan_summary all;
    summarise(plan, &all);
    return hbp__struct_write(context, summary, &all, sizeof all, "hbp_plan_summary");
}

hbp_status hbp_pattern_plan_get_view(const hbp_pattern_plan *plan, hbp_pattern_plan_view *view)
{
    hbp_pattern_plan_view all = {0};
    if (plan) {
        all.groups = plan->groups;
        all.patterns = plan->patterns;
        all.runs = plan->runs;
        all.distinct_lengths = plan->lengths;
        all.group_pack_lengths = plan->group_pack_lengths;
        all.group_sp = plan->group_sp;
        all.group_recompute = plan->group_recompute;
        all.group_first_patterns = plan->group_first_patterns;
        all.pattern_offsets = plan->pattern_offsets;
        all.pattern_first_packs = plan->pattern_first_packs;
        all.pattern_ns = plan->pattern_ns;
        all.pattern_tokens = plan->pattern_tokens;
        all.pattern_padded_tokens = plan->pattern_padded_tokens;
        all.pattern_squares = plan->pattern_squares;
        all.pattern_bytes = plan->pattern_bytes;
        all.run_lengths = plan->run_lengths;
        all.run_numbers = plan->run_numbers;
        all.run_firsts = plan->run_firsts;
        all.length_tokens = plan->length_tokens;
        all.length_samples = plan->length_samples;
    }
    return hbp__view_write(view, plan, &all, sizeof all);
}

hbp_status hbp_pattern_plan_redraw(hbp_context *context, const hbp_pattern_plan *plan, uint64_t seed,
                                   uint64_t epoch, hbp_pattern_plan **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, plan, "plan"));
    hbp_pattern_plan *drawn = hbp__pattern_plan_copy(&context->memory, plan);
    if (!drawn)
        return hbp__fail_memory(context, "the plan by patterns");
    drawn->seed = seed;
    drawn->epoch = epoch;
    /* Which steps meet may change what lockstep sets take. */
    hbp_status status = hbp__pattern_plan_predict(context, drawn, &drawn->predicted_ns);
    drawn->digest = hbp__pattern_plan_digest(drawn);
    if (status < 0)
        hbp_pattern_plan_free(drawn);
    else
        *out = drawn;
    return status;
}
