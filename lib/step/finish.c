/* From a solution to the columns of a plan. O(samples + ranks x micro-batches). */
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "cost/plan_writer.h"
#include "step/step.h"

#define NOBODY (-1)

typedef struct finish {
    const hbp__step *step;
    const hbp__step_solution *solution;
    int64_t *begin;   /* [groups + 1] into `member` */
    uint32_t *member; /* [count] sequences by group */
    int32_t *rank;    /* [groups] first rank */
    int64_t *owner;   /* [ranks] scratch: the group that begins at a rank, or NOBODY */
    hbp__plan_writer writer;
} finish;

static hbp_status sort_members(finish *f)
{
    const hbp__step_solution *s = f->solution;
    for (int64_t i = 0; i < f->step->count; i++) {
        HBP__TRY(hbp__tick_row(f->step->context, "plan", i, f->step->count));
        f->begin[s->group[i] + 1]++;
    }
    for (int64_t g = 0; g < s->groups; g++)
        f->begin[g + 1] += f->begin[g];
    for (int64_t i = 0; i < f->step->count; i++) {
        HBP__TRY(hbp__tick_row(f->step->context, "plan", i, f->step->count));
        f->member[f->begin[s->group[i]]++] = (uint32_t)i;
    }
    for (int64_t g = s->groups; g > 0; g--)
        f->begin[g] = f->begin[g - 1];
    f->begin[0] = 0;
    return HBP_OK;
}

static int is_empty(const finish *f, int64_t group)
{
    return f->begin[group] == f->begin[group + 1];
}

/* Places the groups of every micro-batch; *packs gets the number of packs, a padding pack for each idle rank.
 */
static hbp_status place_groups(finish *f, int64_t micro_batches, int64_t *packs)
{
    const hbp__step_solution *s = f->solution;
    *packs = micro_batches * f->step->ranks;
    for (int64_t m = 0; m < s->micro_batches; m++) {
        int64_t first = s->first[m];
        if (s->rank)
            memcpy(f->rank + first, s->rank + first, (size_t)(s->first[m + 1] - first) * sizeof *f->rank);
        else if (!hbp__step_place(f->step, s->degree + first, s->first[m + 1] - first, f->rank + first))
            return hbp__fail(f->step->context, HBP_E_INTERNAL, "the groups of micro-batch %lld have no place",
                             (long long)m);
        for (int64_t g = first; g < s->first[m + 1]; g++)
            if (!is_empty(f, g))
                *packs -= f->step->degree[s->degree[g]].degree - 1;
    }
    return HBP_OK;
}

static void write_samples(finish *f, int64_t group)
{
    const hbp__items *items = &f->step->items;
    for (int64_t i = f->begin[group]; i < f->begin[group + 1]; i++) {
        uint32_t sample = items->sample[hbp__step_item(f->step, (int64_t)f->member[i])];
        for (; sample != HBP__NO_SAMPLE; sample = items->next ? items->next[sample] : HBP__NO_SAMPLE)
            hbp__write_samples(&f->writer, &sample, NULL, 1);
    }
}

/* The next row of the packs: `group`, or a padding pack, from `rank` on. Returns its ranks. */
static int32_t write_pack(finish *f, int64_t group, int32_t rank)
{
    const hbp__step *step = f->step;
    hbp__pack_place place = {.rank = rank, .sp = step->cost->degree[0], .vision_capacity = step->most_vision};
    hbp__pack_sums sums = {0};
    if (group != NOBODY) {
        int32_t j = f->solution->degree[group];
        write_samples(f, group);
        place.sp = step->degree[j].degree;
        sums = hbp__written_sums(&f->writer, place.sp);
        hbp__load load = {.tokens = sums.padded, .squares = (double)sums.squares, .vision = sums.vision};
        const hbp__point *point = hbp__step_way_of(step, j, load);
        place.recompute = point->recompute;
        place.capacity = hbp__step_vision_capacity(step, j, point, load.vision);
    }
    hbp__write_pack(&f->writer, &place, &sums);
    return place.sp;
}

/* Micro-batch m of the solution, or one of padding packs past its last. */
static void write_micro_batch(finish *f, int64_t m)
{
    const hbp__step_solution *s = f->solution;
    for (int32_t rank = 0; rank < f->step->ranks; rank++)
        f->owner[rank] = NOBODY;
    for (int64_t g = m < s->micro_batches ? s->first[m] : 0; m < s->micro_batches && g < s->first[m + 1]; g++)
        if (!is_empty(f, g))
            f->owner[f->rank[g]] = g;
    for (int32_t rank = 0; rank < f->step->ranks;)
        rank += write_pack(f, f->owner[rank], rank);
    hbp__write_micro_batch(&f->writer);
}

static void set_fields(finish *f)
{
    const hbp_step_options *o = &f->step->options;
    hbp_plan *plan = f->writer.plan;
    plan->complete = f->solution->complete;
    plan->sequence_multiple = o->sequence_multiple;
    plan->pack_multiple = o->pack_multiple;
    plan->micro_batch_multiple = o->micro_batch_multiple;
    plan->sequence_multiple_per_sp = o->sequence_multiple_per_sp;
    plan->pack_multiple_per_sp = o->pack_multiple_per_sp;
    if (f->solution->bound_ns)
        plan->bound_ns =
            hbp__add_saturating(f->solution->bound_ns, hbp__round_i64(f->step->cost->terms.step_ns));
}

static hbp_status write_step(finish *f)
{
    hbp_context *context = f->step->context;
    hbp__plan_writer *w = &f->writer;
    for (int64_t m = 0, written = 0; m < w->plan->micro_batches; m++) {
        write_micro_batch(f, m);
        if (w->sample + w->pack < written)
            continue;
        HBP__TRY(hbp__tick(context, "plan", w->sample, w->plan->samples));
        written = w->sample + w->pack + HBP__TICK_ROWS;
    }
    if (hbp__write_step(w) == INT64_MAX)
        return hbp__fail(context, HBP_E_OVERFLOW, "the predicted time of the step passes 2^63 ns");
    return hbp__plan_write_dropped(context, w->plan, f->step->lengths);
}

static hbp_status build(finish *f)
{
    const hbp__step *step = f->step;
    const hbp__step_solution *s = f->solution;
    hbp_context *context = step->context;
    const hbp_lengths *lengths = step->lengths;
    hbp__plan_rows rows = {.steps = 1,
                           .micro_batches = hbp__step_whole(step, s->micro_batches),
                           .samples = lengths->count,
                           .dropped = lengths->dropped};
    f->begin = hbp__take_zero(context, (uint64_t)s->groups + 1, sizeof *f->begin);
    f->member = hbp__take(context, (uint64_t)step->count, sizeof *f->member);
    f->rank = hbp__take(context, (uint64_t)s->groups, sizeof *f->rank);
    f->owner = hbp__take(context, (uint64_t)step->ranks, sizeof *f->owner);
    HBP__TRY(hbp__scratch_check(context, "the plan"));
    HBP__TRY(sort_members(f));
    HBP__TRY(place_groups(f, rows.micro_batches, &rows.packs));
    HBP__TRY(hbp__plan_writer_open(context, lengths, step->cost, &rows, 0, &f->writer));
    set_fields(f);
    HBP__TRY(write_step(f));
    return hbp__plan_seal_long(context, f->writer.plan);
}

hbp_status hbp__step_finish(const hbp__step *step, const hbp__step_solution *solution, hbp_plan **out)
{
    int64_t mark = hbp__scratch_mark(step->context);
    finish f = {.step = step, .solution = solution};
    hbp_status status = build(&f);
    if (status >= 0)
        *out = f.writer.plan;
    else
        hbp_plan_free(f.writer.plan);
    return hbp__leave(step->context, mark, status);
}
