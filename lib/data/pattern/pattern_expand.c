/* Steps of a plan by patterns as a plan that lists their samples. */
#include "base/parallel.h"
#include "base/scratch.h"
#include "data/lengths/length_deal.h"
#include "data/lengths/length_index.h"
#include "data/pattern/pattern_samples.h"

/* One part of the steps in so many is a large one. */
#define LARGE_PART 4
/* Packs that are looked up at once. */
#define PACKS_AHEAD 32
/* So that threads end together. */
#define JOBS_A_THREAD 16

typedef struct expansion {
    hbp_context *context;
    const hbp_pattern_plan *plan;
    const uint32_t *sample;     /* of an index; NULL: samples by their place in order of length */
    const hbp_lengths *lengths; /* what stands beside lengths and ids; NULL: nothing */
    uint64_t lengths_digest;    /* without them: of the lengths that the ids are of */
    hbp__pattern_deal deal;
    hbp__pattern_blocks blocks; /* without first: few packs are listed */
    int64_t *samples_of;        /* [units, micro_batch_multiple] NULL: few packs are listed, or by one job */
    int64_t *length_first;      /* [lengths] samples that are shorter */
    int64_t all;                /* samples of the plan */
    int is_drawn_whole;         /* samples are drawn all at once, and written pattern by pattern */
    hbp__pattern_samples samples;
    uint64_t key; /* of the run */
    int64_t first_step;
    int64_t steps;
    int32_t threads;
    int64_t jobs;
    hbp__plan_rows *start; /* [jobs + 1] rows before each job's steps */
    hbp__plan_writer writer;
} expansion;

/* A job: steps that one thread lists. */
typedef struct listing {
    const expansion *of;
    int64_t step;        /* at hand, counted over the plan by patterns */
    int64_t since;       /* rows since the last look at a request to cancel */
    int64_t waiting;     /* samples that wait for their place */
    hbp__step_sums sums; /* of the step */
    uint64_t count[HBP__DRAWN], stream[HBP__DRAWN], place[HBP__DRAWN];
    hbp__plan_writer writer;
} listing;

static const hbp__pattern_blocks *blocks_of(const expansion *e)
{
    return e->blocks.first ? &e->blocks : NULL;
}

static int64_t most_jobs(const expansion *e)
{
    return e->threads > 1 ? (int64_t)e->threads * JOBS_A_THREAD : 1;
}

/* The steps of a job, counted over the plan by patterns. */
static int64_t first_of(const expansion *e, int64_t job)
{
    return e->first_step + hbp__part_begin(e->steps, e->jobs, job);
}

/* What all steps hold. */
static hbp__plan_rows whole_rows(const expansion *e)
{
    const hbp_pattern_plan *plan = e->plan;
    hbp__plan_rows rows = {.steps = plan->steps,
                           .micro_batches = hbp__pattern_units(plan) * plan->micro_batch_multiple,
                           .samples = e->all};
    for (int64_t g = 0; g < plan->groups; g++)
        rows.packs +=
            hbp__pattern_group_units(plan, g) * plan->micro_batch_multiple * hbp__pattern_width(plan, g);
    return rows;
}

/* What the steps of a job hold, into e->start[job + 1]. */
static hbp_status count_job(hbp_context *context, void *user, int64_t job)
{
    const expansion *e = user;
    const hbp_pattern_plan *plan = e->plan;
    const int64_t first = first_of(e, job), end = first_of(e, job + 1);
    hbp__plan_rows rows = {.steps = end - first};
    int64_t since = 0;
    for (int64_t step = first; step < end; step++)
        for (int64_t t = 0; t < e->deal.strata; t++) {
            hbp__pattern_unit unit;
            HBP__TRY(hbp__tick_rows(context, "steps", &since, plan->micro_batch_multiple, step - first,
                                    end - first));
            if (!hbp__pattern_unit_at(plan, &e->deal, step, t, &unit))
                continue;
            rows.micro_batches += plan->micro_batch_multiple;
            rows.packs += plan->micro_batch_multiple * hbp__pattern_width(plan, unit.group);
            if (e->samples_of) {
                for (int64_t m = 0; m < plan->micro_batch_multiple; m++)
                    rows.samples += e->samples_of[unit.row * plan->micro_batch_multiple + m];
                continue;
            }
            hbp__pattern_walk walk = hbp__pattern_walk_from(plan, blocks_of(e), unit.group, unit.first);
            for (int64_t k = unit.first; k < unit.end; k++) {
                HBP__TRY(hbp__tick_rows(context, "steps", &since, 1, step - first, end - first));
                rows.samples += plan->pattern_samples[hbp__pattern_walk_next(&walk).pattern];
            }
        }
    e->start[job + 1] = rows;
    return HBP_OK;
}

/* Work of so many rows, of the step at hand. */
static hbp_status tick(listing *l, int64_t rows)
{
    return hbp__tick_rows(l->writer.context, "steps", &l->since, rows, l->step - l->of->first_step,
                          l->of->steps);
}

/* Draws the places of the samples that wait for one. */
static hbp_status draw_places(listing *l)
{
    const int64_t drawn = l->waiting;
    hbp__permutation_places(l->of->key, l->count, l->stream, l->waiting, l->place);
    int64_t *id = l->writer.plan->sample_ids + l->writer.sample - l->waiting;
    for (int64_t i = 0; i < l->waiting; i++)
        id[i] += (int64_t)l->place[i];
    l->waiting = 0;
    return tick(l, drawn);
}

/* The samples of a run in one of the packs of its pattern, the `turn`-th. */
static hbp_status write_run(listing *l, int64_t run, int64_t turn)
{
    const expansion *e = l->of;
    const hbp_pattern_plan *plan = e->plan;
    const int64_t row = plan->run_lengths[run], number = plan->run_numbers[run],
                  first = plan->run_firsts[run] + turn * number;
    for (int64_t i = 0; i < number; i++) {
        l->count[l->waiting] = (uint64_t)plan->length_samples[row];
        l->stream[l->waiting] = hbp__pattern_length_stream(plan, row);
        l->place[l->waiting++] = (uint64_t)(first + i);
        hbp__write_place(&l->writer, e->length_first[row], (int32_t)plan->length_tokens[row]);
        if (l->waiting == HBP__DRAWN)
            HBP__TRY(draw_places(l));
    }
    return HBP_OK;
}

/* The samples of a pack, or the row where they begin. */
static hbp_status write_pack_samples(listing *l, const hbp__pattern_pack *pack)
{
    const hbp_pattern_plan *plan = l->of->plan;
    const int64_t p = pack->pattern;
    if (l->of->is_drawn_whole) {
        l->of->samples.row[plan->pattern_first_packs[p] + pack->turn] = (uint32_t)l->writer.sample;
        l->writer.sample += plan->pattern_samples[p];
        return HBP_OK;
    }
    for (int64_t run = plan->pattern_offsets[p]; run < plan->pattern_offsets[p + 1]; run++)
        HBP__TRY(write_run(l, run, pack->turn));
    return HBP_OK;
}

/* A pack of group g; NULL: a padding pack. */
static hbp_status write_pack(listing *l, int64_t g, const hbp__pattern_pack *pack, int32_t rank)
{
    const hbp_pattern_plan *plan = l->of->plan;
    hbp_plan *to = l->writer.plan;
    const hbp__pack_place place = {rank, plan->group_sp[g], plan->group_recompute[g],
                                   plan->group_pack_lengths[g], 0};
    const int64_t p = pack ? pack->pattern : 0;
    hbp__pack_sums sums = {0};
    if (pack) {
        HBP__TRY(write_pack_samples(l, pack));
        sums = (hbp__pack_sums){.tokens = plan->pattern_tokens[p],
                                .padded = plan->pattern_padded_tokens[p],
                                .squares = plan->pattern_squares[p],
                                .loss = plan->pattern_tokens[p]};
    }
    const int64_t row = hbp__write_pack_row(&l->writer, &place);
    hbp__plan_set_sums(to, row, &sums);
    to->pack_ns[row] = pack ? plan->pattern_ns[p] : plan->padding_ns;
    to->pack_bytes[row] = pack ? plan->pattern_bytes[p] : plan->group_padding_bytes[g];
    l->sums.tokens += sums.tokens;
    l->sums.loss += sums.loss;
    hbp__clock_run(&l->writer.clock, rank, place.sp, to->pack_ns[row]);
    return tick(l, 1);
}

/* The next `count` packs of a walk, with what is written of them on its way: patterns lie all over. */
static void look_up(const expansion *e, hbp__pattern_walk *walk, hbp__pattern_pack *pack, int64_t count)
{
    const hbp_pattern_plan *plan = e->plan;
    for (int64_t i = 0; i < count; i++) {
        const int64_t p = (pack[i] = hbp__pattern_walk_next(walk)).pattern;
        __builtin_prefetch(&plan->pattern_samples[p]);
        __builtin_prefetch(&plan->pattern_tokens[p]);
        __builtin_prefetch(&plan->pattern_padded_tokens[p]);
        __builtin_prefetch(&plan->pattern_squares[p]);
        __builtin_prefetch(&plan->pattern_ns[p]);
        __builtin_prefetch(&plan->pattern_bytes[p]);
        if (e->is_drawn_whole)
            __builtin_prefetch(&e->samples.row[plan->pattern_first_packs[p] + pack[i].turn], 1);
    }
}

static hbp_status write_unit(listing *l, const hbp__pattern_unit *unit)
{
    const hbp_pattern_plan *plan = l->of->plan;
    const int32_t sp = plan->group_sp[unit->group];
    hbp__pattern_walk walk = hbp__pattern_walk_from(plan, blocks_of(l->of), unit->group, unit->first);
    hbp__pattern_pack pack[PACKS_AHEAD];
    int64_t left = unit->end - unit->first, ahead = 0, at = 0;
    for (int64_t m = 0; m < plan->micro_batch_multiple; m++) {
        for (int32_t rank = 0; rank < plan->ranks; rank += sp) {
            if (at == ahead) {
                ahead = hbp__min_i64(left, PACKS_AHEAD);
                look_up(l->of, &walk, pack, ahead);
                left -= ahead;
                at = 0;
            }
            HBP__TRY(write_pack(l, unit->group, at < ahead ? &pack[at++] : NULL, rank));
        }
        hbp__write_micro_batch(&l->writer);
        hbp__clock_next(&l->writer.clock);
    }
    return HBP_OK;
}

static hbp_status write_step(listing *l)
{
    const expansion *e = l->of;
    const int64_t sample = l->writer.sample;
    l->sums = (hbp__step_sums){0};
    hbp__clock_start(&l->writer.clock, 0);
    for (int64_t t = 0; t < e->deal.strata; t++) {
        hbp__pattern_unit unit;
        HBP__TRY(tick(l, 1));
        if (hbp__pattern_unit_at(e->plan, &e->deal, l->step, t, &unit))
            HBP__TRY(write_unit(l, &unit));
    }
    if (!e->is_drawn_whole) {
        HBP__TRY(draw_places(l));
        HBP__TRY(hbp__resolve_samples(&l->writer, e->sample, sample));
    }
    l->sums.ns = hbp__clock_end(&l->writer.clock);
    if (hbp__write_step_row(&l->writer, &l->sums) == INT64_MAX)
        return hbp__fail(l->writer.context, HBP_E_OVERFLOW, "the predicted time of step %lld passes 2^63 ns",
                         (long long)l->step);
    return HBP_OK;
}

static hbp_status list_job(hbp_context *context, void *user, int64_t job)
{
    const expansion *e = user;
    const hbp__plan_rows *start = &e->start[job], *end = start + 1;
    listing l = {.of = e, .writer = e->writer};
    l.writer.context = context;
    HBP__TRY(hbp__clock_open(context, e->plan->ranks, e->plan->lockstep_ranks, &l.writer.clock));
    l.writer.step = start->steps;
    l.writer.micro_batch = start->micro_batches;
    l.writer.pack = start->packs;
    l.writer.sample = start->samples;
    l.writer.end_step = end->steps;
    l.writer.end_micro_batch = end->micro_batches;
    l.writer.end_pack = end->packs;
    for (l.step = first_of(e, job); l.step < first_of(e, job + 1); l.step++) {
        HBP__TRY(hbp__tick(context, "steps", l.step - e->first_step, e->steps));
        HBP__TRY(write_step(&l));
    }
    return HBP_OK;
}

/* What the plan of all steps has that a part has not. */
static hbp_status finish_whole(const expansion *e, hbp_plan *to)
{
    to->bound_ns = e->plan->bound_ns;
    to->free_bound_ns = e->plan->free_bound_ns;
    if (e->lengths)
        return hbp__plan_write_dropped(e->context, to, e->lengths);
    for (int64_t i = 0; i < to->dropped; i++) { /* a histogram's are the longest */
        HBP__TRY(hbp__tick_row(e->context, "plan", i, to->dropped));
        to->dropped_ids[i] = e->all + i;
        to->dropped_reasons[i] = HBP_DROPPED_OVERLONG;
    }
    return HBP_OK;
}

/* Job: the loss tokens of packs and steps, from those of their samples. */
static hbp_status count_loss(hbp_context *context, void *user, int64_t job)
{
    const expansion *e = user;
    hbp_plan *to = e->writer.plan;
    int64_t since = 0;
    for (int64_t step = e->start[job].steps; step < e->start[job + 1].steps; step++) {
        const int64_t first = to->micro_batch_offsets[to->step_offsets[step]],
                      end = to->micro_batch_offsets[to->step_offsets[step + 1]];
        to->step_loss_tokens[step] = 0;
        for (int64_t p = first; p < end; p++) {
            const int64_t samples = to->pack_offsets[p + 1] - to->pack_offsets[p];
            int64_t loss = 0;
            HBP__TRY(hbp__tick_rows(context, "steps", &since, 1 + samples, step, e->steps));
            for (int64_t i = to->pack_offsets[p]; i < to->pack_offsets[p + 1]; i++)
                loss += to->sample_loss_tokens[i];
            to->pack_loss_tokens[p] = loss;
            to->step_loss_tokens[step] += loss;
        }
    }
    return HBP_OK;
}

/* Rows before each job, from what each holds. */
static hbp_status count_rows(expansion *e)
{
    const hbp__plan_rows none = {0};
    if (e->jobs == 1 && e->steps == e->plan->steps)
        e->start[1] = whole_rows(e);
    else
        HBP__TRY(hbp__parallel(e->context, e->threads, e->jobs, count_job, e));
    e->start[0] = none;
    for (int64_t j = 0; j < e->jobs; j++) {
        e->start[j + 1].steps += e->start[j].steps;
        e->start[j + 1].micro_batches += e->start[j].micro_batches;
        e->start[j + 1].packs += e->start[j].packs;
        e->start[j + 1].samples += e->start[j].samples;
    }
    return HBP_OK;
}

static hbp_status open_rows(expansion *e, int is_whole)
{
    const hbp_pattern_plan *plan = e->plan;
    const hbp__plan_frame frame = {plan->ranks, plan->domain_ranks, plan->lockstep_ranks, plan->step_ns};
    HBP__TRY(count_rows(e));
    hbp__plan_rows rows = e->start[e->jobs];
    rows.dropped = is_whole ? plan->dropped : 0;
    if (rows.samples + rows.dropped > HBP_MAX_SAMPLES)
        return hbp__fail(
            e->context, HBP_E_OVERFLOW,
            "steps %lld to %lld have %lld samples and %lld dropped ones; at most %lld can be listed",
            (long long)e->first_step, (long long)(e->first_step + e->steps - 1), (long long)rows.samples,
            (long long)rows.dropped, (long long)HBP_MAX_SAMPLES);
    HBP__TRY(hbp__plan_rows_open(e->context, e->lengths, &frame, &rows,
                                 plan->shifted_loss ? HBP__PLAN_LOSS : 0, &e->writer));
    hbp_plan *to = e->writer.plan;
    to->first_step = e->first_step;
    to->epoch_steps = is_whole ? 0 : plan->steps;
    to->sequence_multiple = plan->sequence_multiple;
    to->pack_multiple = plan->pack_multiple;
    to->sequence_multiple_per_sp = plan->sequence_multiple_per_sp;
    to->pack_multiple_per_sp = plan->pack_multiple_per_sp;
    to->micro_batch_multiple = plan->micro_batch_multiple;
    to->tokens_per_step = plan->tokens_per_step;
    to->composition = HBP_COMPOSITION_STRATIFIED;
    to->seed = plan->seed;
    to->epoch = plan->epoch;
    to->overlong_samples = plan->overlong_samples;
    to->overlong_tokens = plan->overlong_tokens;
    to->shifted_loss = plan->shifted_loss;
    if (!e->lengths)
        to->lengths_digest = e->lengths_digest;
    for (int64_t j = 1; j <= e->jobs; j++) {
        to->step_offsets[e->start[j].steps] = e->start[j].micro_batches;
        to->micro_batch_offsets[e->start[j].micro_batches] = e->start[j].packs;
        to->pack_offsets[e->start[j].packs] = e->start[j].samples;
    }
    return HBP_OK;
}

/* Where a large part of the samples is listed, drawing all of a length at once is quicker. */
static hbp_status draw_whole(expansion *e, int is_whole)
{
    hbp_context *context = e->context;
    const hbp_pattern_plan *plan = e->plan;
    const int is_dealt = e->lengths && !e->sample; /* the samples of an array that no index has in order */
    if (!e->is_drawn_whole)
        return HBP_OK;
    uint32_t *order = is_whole ? (uint32_t *)e->writer.plan->sample_tokens
                               : hbp__take(context, (uint64_t)e->all, sizeof *order);
    HBP__TRY(hbp__scratch_check(context, "the draw of samples"));
    if (is_dealt)
        HBP__TRY(hbp__lengths_deal(context, e->lengths, order));
    return hbp__pattern_samples_open(context, plan, e->length_first, is_dealt ? order : e->sample, order,
                                     e->threads, most_jobs(e), &e->samples);
}

static hbp_status expand(expansion *e)
{
    hbp_context *context = e->context;
    const hbp_pattern_plan *plan = e->plan;
    const int is_whole = !e->first_step && e->steps == plan->steps,
              is_large = e->steps > plan->steps / LARGE_PART;
    e->deal = hbp__pattern_deal_of(plan);
    e->jobs = hbp__min_i64(e->steps, most_jobs(e));
    e->length_first = hbp__take(context, (uint64_t)plan->lengths, sizeof *e->length_first);
    e->start = hbp__take(context, (uint64_t)e->jobs + 1, sizeof *e->start);
    HBP__TRY(hbp__scratch_check(context, "the steps"));
    for (int64_t i = 0; i < plan->lengths; e->all += plan->length_samples[i++])
        e->length_first[i] = e->all;
    e->is_drawn_whole = is_large && e->all <= HBP_MAX_SAMPLES;
    if (is_large)
        HBP__TRY(hbp__pattern_blocks_open(context, plan, &e->blocks));
    if (e->is_drawn_whole && e->jobs > 1)
        HBP__TRY(hbp__pattern_count_samples(context, plan, &e->samples_of));
    HBP__TRY(open_rows(e, is_whole));
    HBP__TRY(draw_whole(e, is_whole));
    HBP__TRY(hbp__parallel(context, e->threads, e->jobs, list_job, e));
    if (e->is_drawn_whole)
        HBP__TRY(hbp__pattern_samples_write(context, &e->samples, &e->writer, e->threads, e->jobs));
    if (e->writer.plan->sample_loss_tokens)
        HBP__TRY(hbp__parallel(context, e->threads, e->jobs, count_loss, e));
    if (is_whole)
        HBP__TRY(finish_whole(e, e->writer.plan));
    return hbp__plan_seal_long(context, e->writer.plan);
}

static hbp_status expand_steps(expansion *e, hbp_plan **out)
{
    const int64_t mark = hbp__scratch_mark(e->context);
    hbp_status status = expand(e);
    if (status < 0) {
        hbp_plan_free(e->writer.plan);
        return status;
    }
    hbp__scratch_release(e->context, mark);
    *out = e->writer.plan;
    return HBP_OK;
}

hbp_status hbp__pattern_plan_expand(hbp_context *context, const hbp_pattern_plan *plan,
                                    const hbp_length_index *index, int64_t first_step, int64_t steps,
                                    int32_t threads, hbp_plan **out)
{
    expansion e = {.context = context,
                   .plan = plan,
                   .sample = index ? index->sample : NULL,
                   .lengths = index && !index->is_counted ? index->lengths : NULL,
                   .lengths_digest = index ? index->lengths_digest : plan->histogram_digest,
                   .key = hbp__permutation_key(plan->seed, plan->epoch),
                   .first_step = first_step,
                   .steps = steps,
                   .threads = hbp__threads(context, threads)};
    if (first_step < 0 || steps < 1 || first_step > plan->steps || steps > plan->steps - first_step)
        return hbp__fail(
            context, HBP_E_INVALID,
            "%lld steps from step %lld on; the plan has steps 0 to %lld, and at least 1 is listed",
            (long long)steps, (long long)first_step, (long long)plan->steps - 1);
    HBP__TRY(hbp__pattern_check_index(context, plan, index));
    return expand_steps(&e, out);
}

hbp_status hbp__pattern_plan_list(hbp_context *context, const hbp_pattern_plan *plan,
                                  const hbp_lengths *lengths, const uint32_t *order, int32_t threads,
                                  hbp_plan **out)
{
    expansion e = {.context = context,
                   .plan = plan,
                   .sample = order,
                   .lengths = lengths->length ? lengths : NULL,
                   .lengths_digest = lengths->digest,
                   .key = hbp__permutation_key(plan->seed, plan->epoch),
                   .steps = plan->steps,
                   .threads = hbp__threads(context, threads)};
    return expand_steps(&e, out);
}

hbp_status hbp_pattern_plan_expand(hbp_context *context, const hbp_pattern_plan *plan,
                                   const hbp_length_index *index, int64_t first_step, int64_t steps,
                                   hbp_plan **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, plan, "plan"));
    if (!index && !plan->is_bare)
        return hbp__fail(context, HBP_E_INVALID,
                         "the plan is of samples that have more to them than their length; give the index "
                         "of their lengths");
    const int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark,
                      hbp__pattern_plan_expand(context, plan, index, first_step, steps, 0, out));
}
