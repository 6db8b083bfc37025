#include "data/pattern/pattern_samples.h"

#include <string.h>

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
    int64_t samples;
    int64_t jobs;
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

/* The samples of a length in their order. */
static hbp_status draw_length(hbp_context *context, const drawing *d, int64_t row)
{
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

/* The first length that is a job's: lengths belong to the job that their first sample is in. */
static int64_t first_length(const drawing *d, int64_t job)
{
    const int64_t begin = hbp__part_begin(d->samples, d->jobs, job), lengths = d->of->plan->lengths,
                  row = hbp__last_at_most(d->of->length_first, lengths, begin);
    return row + (d->of->length_first[row] < begin);
}

static hbp_status draw_lengths(hbp_context *context, void *user, int64_t job)
{
    const drawing *d = user;
    const int64_t end = first_length(d, job + 1);
    for (int64_t row = first_length(d, job); row < end; row++)
        HBP__TRY(draw_length(context, d, row));
    return HBP_OK;
}

hbp_status hbp__pattern_samples_open(hbp_context *context, const hbp_pattern_plan *plan,
                                     const int64_t *length_first, const uint32_t *sample, uint32_t *order,
                                     int32_t threads, int64_t jobs, hbp__pattern_samples *samples)
{
    const int64_t packs = plan->pattern_first_packs[plan->patterns];
    *samples = (hbp__pattern_samples){.plan = plan, .length_first = length_first, .order = order};
    samples->row = hbp__take(context, (uint64_t)packs, sizeof *samples->row);
    HBP__TRY(hbp__scratch_check(context, "the draw of samples"));
    for (int64_t pack = 0; pack < packs; pack++) {
        HBP__TRY(hbp__tick_row(context, "draw samples", pack, packs));
        samples->row[pack] = HBP__NO_ROW;
    }
    drawing d = {.of = samples,
                 .sample = sample,
                 .key = hbp__permutation_key(plan->seed, plan->epoch),
                 .samples = hbp__pattern_all_samples(plan),
                 .jobs = jobs};
    return hbp__parallel(context, threads, jobs, draw_lengths, &d);
}

/* Ids of a page of 4 KiB, the least there are. */
#define PAGE_IDS 512

/* Samples of a pack that are written at once. */
#define SLOTS 1024

/* Some of the samples that each pack of a pattern holds: where those of a pack stand in the order, how much
 * further on those of the next one do, and their tokens. */
typedef struct slots {
    int64_t count;
    uint32_t at[SLOTS];
    uint32_t step[SLOTS];
    int32_t tokens[SLOTS];
} slots;

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

/* The next samples of a pattern, from sample *sample of run *run on, in its pack `turn`. */
static void next_slots(const hbp__pattern_samples *s, int64_t pattern, int64_t turn, int64_t *run,
                       int64_t *sample, slots *next)
{
    const hbp_pattern_plan *plan = s->plan;
    next->count = 0;
    while (*run < plan->pattern_offsets[pattern + 1] && next->count < SLOTS) {
        const int64_t row = plan->run_lengths[*run], number = plan->run_numbers[*run],
                      first = s->length_first[row] + plan->run_firsts[*run] + turn * number;
        for (; *sample < number && next->count < SLOTS; ++*sample, next->count++) {
            next->at[next->count] = (uint32_t)(first + *sample);
            next->step[next->count] = (uint32_t)number;
            next->tokens[next->count] = (int32_t)plan->length_tokens[row];
        }
        if (*sample < number)
            return;
        *sample = 0;
        ++*run;
    }
}

static void write_ids(int64_t *id, const uint32_t *order, const slots *s, uint32_t turn)
{
    for (int64_t i = 0; i < s->count; i++) {
        const uint32_t *sample = order + (s->at[i] + turn * s->step[i]);
        __builtin_prefetch((const void *)((uintptr_t)sample + SAMPLES_AHEAD * sizeof *sample));
        id[i] = *sample;
    }
}

/* What stands beside the samples of packs [pack, end) of one pattern. */
static hbp_status write_beside(writing *w, hbp_context *context, int64_t pattern, int64_t pack, int64_t end)
{
    const int64_t number = w->of->plan->pattern_samples[pattern];
    for (; pack < end; pack++) {
        const uint32_t row = w->of->row[pack];
        HBP__TRY(hbp__tick_rows(context, "samples", &w->since, number, pattern, w->of->plan->patterns));
        if (row == HBP__NO_ROW)
            continue;
        w->writer.sample = row + number;
        HBP__TRY(hbp__resolve_samples(&w->writer, NULL, row));
    }
    return HBP_OK;
}

/* Packs [pack, end) of one pattern. */
static hbp_status write_pattern(writing *w, hbp_context *context, int64_t pattern, int64_t pack, int64_t end)
{
    const hbp_pattern_plan *plan = w->of->plan;
    hbp_plan *to = w->writer.plan;
    const int64_t turn = pack - plan->pattern_first_packs[pattern];
    int64_t run = plan->pattern_offsets[pattern], sample = 0;
    slots s;
    for (int64_t first = 0; first < plan->pattern_samples[pattern]; first += s.count) {
        next_slots(w->of, pattern, turn, &run, &sample, &s);
        for (int64_t p = pack; p < end; p++) {
            const uint32_t row = w->of->row[p];
            HBP__TRY(hbp__tick_rows(context, "samples", &w->since, s.count, pattern, plan->patterns));
            if (row == HBP__NO_ROW)
                continue;
            if (w->what == IDS)
                write_ids(to->sample_ids + row + first, w->of->order, &s, (uint32_t)(p - pack));
            else
                memcpy(to->sample_tokens + row + first, s.tokens, (size_t)s.count * sizeof *s.tokens);
        }
    }
    return w->what == TOKENS && w->writer.has_beside ? write_beside(w, context, pattern, pack, end) : HBP_OK;
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

/* Ids are written all over their column: its pages are asked for one after the other, so that a request to
 * cancel is heard while the system clears them. */
static hbp_status touch_job(hbp_context *context, void *user, int64_t job)
{
    const writing *w = user;
    hbp_plan *to = w->writer.plan;
    const int64_t end = hbp__part_begin(to->samples, w->jobs, job + 1);
    int64_t since = 0;
    for (int64_t i = hbp__part_begin(to->samples, w->jobs, job); i < end; i += PAGE_IDS) {
        to->sample_ids[i] = 0;
        HBP__TRY(hbp__tick_rows(context, "samples", &since, PAGE_IDS, i, to->samples));
    }
    return HBP_OK;
}

hbp_status hbp__pattern_samples_write(hbp_context *context, const hbp__pattern_samples *samples,
                                      const hbp__plan_writer *writer, int32_t threads, int64_t jobs)
{
    writing w = {.of = samples, .writer = *writer, .jobs = jobs, .what = IDS};
    HBP__TRY(hbp__parallel(context, threads, jobs, touch_job, &w));
    HBP__TRY(hbp__parallel(context, threads, jobs, write_job, &w));
    w.what = TOKENS;
    return hbp__parallel(context, threads, jobs, write_job, &w);
}
