#include "data/pattern/pattern_samples.h"

#include "base/parallel.h"
#include "base/scratch.h"
#include "base/search.h"

/* So often, and lengths of fewer samples, between two looks at a request to cancel. */
#define DRAWN_LOOK 64

/* A draw of all samples. */
typedef struct drawing {
    const hbp__pattern_samples *of;
    const uint32_t *sample; /* [samples] of an index; NULL: samples by their place */
    uint64_t key;           /* of the run */
} drawing;

/* Draws the samples of a length into `to` [its samples]; `from` [its samples]: NULL: numbers from `first` on.
 */
static hbp_status draw_row(hbp_context *context, const drawing *d, int64_t row, const uint32_t *from,
                           uint32_t *to)
{
    const hbp_pattern_plan *plan = d->of->plan;
    const int64_t count = plan->length_samples[row], first = d->of->length_first[row];
    const hbp__permutation draw =
        hbp__permutation_make((uint64_t)count, d->key, hbp__pattern_length_stream(plan, row));
    for (int64_t at = 0, number; at < count; at += number) {
        uint32_t place[HBP__DRAWN];
        number = hbp__min_i64(HBP__DRAWN, count - at);
        hbp__permutation_range(&draw, (uint32_t)at, number, place);
        for (int64_t i = 0; i < number; i++)
            to[at + i] = from ? from[place[i]] : (uint32_t)(first + place[i]);
        if (at / HBP__DRAWN % DRAWN_LOOK == 0 && (at || count >= HBP__DRAWN || row % DRAWN_LOOK == 0))
            HBP__TRY(hbp__tick(context, "draw samples", row, plan->lengths));
    }
    return HBP_OK;
}

/* Job `row`: the samples of a length in their order. */
static hbp_status draw_length(hbp_context *context, void *user, int64_t row)
{
    const drawing *d = user;
    const int64_t count = d->of->plan->length_samples[row], first = d->of->length_first[row];
    const uint32_t *from = d->sample ? d->sample + first : NULL;
    uint32_t *to = d->of->order + first, few[HBP__DRAWN], *drawn = few;
    if (from != to)
        return draw_row(context, d, row, from, to);
    const int64_t mark = hbp__scratch_mark(context);
    if (count > HBP__DRAWN) {
        drawn = hbp__take(context, (uint64_t)count, sizeof *drawn);
        HBP__TRY(hbp__scratch_check(context, "the draw of samples"));
    }
    HBP__TRY(draw_row(context, d, row, from, drawn));
    HBP__TRY(hbp__copy(context, to, drawn, (uint64_t)count * sizeof *drawn));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

hbp_status hbp__pattern_samples_open(hbp_context *context, const hbp_pattern_plan *plan,
                                     const int64_t *length_first, const uint32_t *sample, uint32_t *order,
                                     int32_t threads, hbp__pattern_samples *samples)
{
    const int64_t packs = plan->pattern_first_packs[plan->patterns];
    *samples = (hbp__pattern_samples){.plan = plan, .length_first = length_first, .order = order};
    samples->row = hbp__take(context, (uint64_t)packs, sizeof *samples->row);
    HBP__TRY(hbp__scratch_check(context, "the draw of samples"));
    for (int64_t pack = 0; pack < packs; pack++) {
        HBP__TRY(hbp__tick_row(context, "draw samples", pack, packs));
        samples->row[pack] = HBP__NO_ROW;
    }
    drawing d = {samples, sample, hbp__permutation_key(plan->seed, plan->epoch)};
    return hbp__parallel(context, threads, plan->lengths, draw_length, &d);
}

/* A run of the pattern at hand: its samples in the next pack. */
typedef struct cut {
    const uint32_t *sample;
    int32_t number;
    int32_t tokens;
} cut;

/* What is written of all packs before anything else is. */
enum { IDS, TOKENS };

/* A pattern reads from as many places as it has runs, more than processors follow by themselves: each is
 * asked for so many samples ahead. */
#define SAMPLES_AHEAD 32

/* A job: packs that one thread writes. */
typedef struct writing {
    const hbp__pattern_samples *of;
    hbp__plan_writer writer;
    int64_t jobs;
    int what;
    int64_t since; /* rows since the last look at a request to cancel */
} writing;

static hbp_status open_cuts(writing *w, hbp_context *context, int64_t pattern, int64_t turn, cut **out)
{
    const hbp__pattern_samples *s = w->of;
    const hbp_pattern_plan *plan = s->plan;
    const int64_t first = plan->pattern_offsets[pattern], runs = plan->pattern_offsets[pattern + 1] - first;
    cut *cuts = *out = hbp__take(context, (uint64_t)runs, sizeof *cuts);
    HBP__TRY(hbp__scratch_check(context, "the samples of packs"));
    for (int64_t i = 0; i < runs; i++) {
        const int64_t row = plan->run_lengths[first + i], number = plan->run_numbers[first + i];
        cuts[i] = (cut){s->order + s->length_first[row] + plan->run_firsts[first + i] + turn * number,
                        (int32_t)number, (int32_t)plan->length_tokens[row]};
        HBP__TRY(hbp__tick_rows(context, "samples", &w->since, 1, pattern, plan->patterns));
    }
    return HBP_OK;
}

static void write_ids(int64_t *id, cut *cuts, int64_t runs)
{
    for (int64_t k = 0; k < runs; k++) {
        const int32_t number = cuts[k].number;
        const uint32_t *sample = cuts[k].sample;
        cuts[k].sample += number;
        __builtin_prefetch((const void *)((uintptr_t)sample + SAMPLES_AHEAD * sizeof *sample));
        for (int32_t i = 0; i < number; i++)
            *id++ = sample[i];
    }
}

static void write_tokens(int32_t *tokens, const cut *cuts, int64_t runs)
{
    for (int64_t k = 0; k < runs; k++)
        for (int32_t i = 0; i < cuts[k].number; i++)
            *tokens++ = cuts[k].tokens;
}

/* Packs [pack, end) of one pattern. */
static hbp_status write_pattern(writing *w, hbp_context *context, int64_t pattern, int64_t pack, int64_t end)
{
    const hbp_pattern_plan *plan = w->of->plan;
    const int64_t runs = plan->pattern_offsets[pattern + 1] - plan->pattern_offsets[pattern],
                  number = plan->pattern_samples[pattern], mark = hbp__scratch_mark(context);
    cut *cuts = NULL;
    HBP__TRY(open_cuts(w, context, pattern, pack - plan->pattern_first_packs[pattern], &cuts));
    for (; pack < end; pack++) {
        const uint32_t row = w->of->row[pack];
        HBP__TRY(hbp__tick_rows(context, "samples", &w->since, number, pattern, plan->patterns));
        if (row == HBP__NO_ROW) {
            for (int64_t k = 0; w->what == IDS && k < runs; k++)
                cuts[k].sample += cuts[k].number;
            continue;
        }
        if (w->what == IDS) {
            write_ids(w->writer.plan->sample_ids + row, cuts, runs);
            continue;
        }
        write_tokens(w->writer.plan->sample_tokens + row, cuts, runs);
        w->writer.sample = row + number;
        HBP__TRY(hbp__resolve_samples(&w->writer, NULL, row));
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

static hbp_status write_job(hbp_context *context, void *user, int64_t job)
{
    writing w = *(const writing *)user;
    const hbp_pattern_plan *plan = w.of->plan;
    const int64_t packs = plan->pattern_first_packs[plan->patterns],
                  end = hbp__part_begin(packs, w.jobs, job + 1);
    int64_t pack = hbp__part_begin(packs, w.jobs, job);
    w.writer.context = context;
    for (int64_t pattern = hbp__last_at_most(plan->pattern_first_packs, plan->patterns, pack), stop;
         pack < end; pack = stop, pattern++) {
        stop = hbp__min_i64(end, plan->pattern_first_packs[pattern + 1]);
        HBP__TRY(write_pattern(&w, context, pattern, pack, stop));
    }
    return HBP_OK;
}

hbp_status hbp__pattern_samples_write(hbp_context *context, const hbp__pattern_samples *samples,
                                      const hbp__plan_writer *writer, int32_t threads, int64_t jobs)
{
    writing w = {.of = samples, .writer = *writer, .jobs = jobs, .what = IDS};
    HBP__TRY(hbp__parallel(context, threads, jobs, write_job, &w));
    w.what = TOKENS;
    return hbp__parallel(context, threads, jobs, write_job, &w);
}
