/* Steps planned one by one, and joined. */
#include "base/checked.h"
#include "base/methods.h"
#include "base/parallel.h"
#include "base/scratch.h"
#include "cost/plan_writer.h"
#include "epoch/batches.h"
#include "epoch/bound.h"
#include "epoch/choose.h"
#include "epoch/join.h"
#include "step/step.h"

typedef struct planning {
    const hbp__epoch *epoch;
    const hbp__batches *batches;
    hbp_plan **part; /* [batches->steps], and the left-overs */
} planning;

/* The bound of a step that was planned with a linear cost, under the cost itself. */
static hbp_status bound_part(const hbp__epoch *epoch, hbp_context *context, const hbp_lengths *subset,
                             const hbp_step_options *options, hbp_plan *plan)
{
    const int64_t step_ns = hbp__round_i64(epoch->bending->terms.step_ns);
    int64_t bound_ns;
    HBP__TRY(hbp__step_bound_below(context, subset, epoch->bending, options, plan->step_ns[0] - step_ns,
                                   &bound_ns));
    plan->bound_ns = bound_ns ? hbp__add_saturating(bound_ns, step_ns) : 0;
    return HBP_OK;
}

static hbp_status search_step(const hbp__epoch *epoch, hbp_context *context, const hbp__batches *b,
                              int64_t step, hbp_plan **out)
{
    hbp_lengths *subset = NULL;
    hbp_step_options options;
    hbp__epoch_step_options(&epoch->options, &options);
    options.method = hbp__step_name(epoch->step_method);
    if (epoch->step_method == HBP__STEP_HYBRID_CP || epoch->step_method == HBP__STEP_DYNAMIC_CP)
        options.min_sp = epoch->options.min_sp;
    HBP__TRY(hbp__tick(context, "steps", step, b->steps));
    hbp_status status = hbp__batches_subset(epoch, context, b, step, &subset);
    if (status >= 0)
        status = hbp__step_plan(context, subset, epoch->cost, &options,
                                b->bounds && epoch->step_method == HBP__STEP_SEARCH, out);
    if (status >= 0 && hbp__cost_bends(&epoch->bending->terms) && (*out)->bound_ns)
        status = bound_part(epoch, context, subset, &options, *out);
    hbp_lengths_free(subset);
    return status;
}

hbp_status hbp__batches_plan_step(const hbp__epoch *epoch, hbp_context *context, const hbp__batches *b,
                                  int64_t step, hbp_plan **out)
{
    hbp_plan *built = NULL;
    *out = NULL;
    if (b->how != HBP__BATCHES_SEARCHED && hbp__batches_may_build(epoch))
        HBP__TRY(hbp__batches_build_step(epoch, context, b, step, &built));
    hbp_status status =
        built && b->how == HBP__BATCHES_BUILT ? HBP_OK : search_step(epoch, context, b, step, out);
    if (status < 0 || !built) {
        hbp_plan_free(built);
        return status;
    }
    hbp_plan *slower = built;
    if (!*out || built->step_ns[0] < (*out)->step_ns[0]) {
        built->bound_ns = *out ? (*out)->bound_ns : 0;
        slower = *out;
        *out = built;
    }
    hbp_plan_free(slower);
    return HBP_OK;
}

static hbp_status plan_part(hbp_context *context, void *user, int64_t step)
{
    const planning *p = user;
    return hbp__batches_plan_step(p->epoch, context, p->batches, step, &p->part[step]);
}

/* The sum of the steps' bounds: no way to run these very steps is faster. 0 when one is not known. */
static int64_t sum_of_bounds(const planning *p)
{
    int64_t sum = 0;
    for (int64_t s = 0; s < p->batches->steps; s++) {
        if (!p->part[s]->bound_ns)
            return 0;
        sum = hbp__add_saturating(sum, p->part[s]->bound_ns);
    }
    return sum;
}

/* What drop_last left over, as a plan of no steps that lists it; NULL in *out: nothing. */
static hbp_status list_left_over(const hbp__epoch *epoch, const hbp__batches *b, hbp_plan **out)
{
    const hbp_lengths *lengths = epoch->lengths;
    int64_t first = b->first[b->steps], left = lengths->count - first;
    if (!left)
        return HBP_OK;
    hbp_plan *rest =
        hbp__plan_new(&epoch->context->memory, 0, 0, 0, 0, left, lengths->first ? HBP__PLAN_PIECES : 0);
    if (!rest)
        return hbp__fail_memory(epoch->context, "the samples left over");
    for (int64_t i = 0; i < left; i++)
        hbp__plan_write_drop(rest, i, lengths, b->sample[first + i], HBP_DROPPED_LEFTOVER);
    *out = rest;
    return HBP_OK;
}

hbp_status hbp__batches_join(const hbp__epoch *epoch, const hbp__batches *b, hbp_plan **part, hbp_plan **out)
{
    HBP__TRY(list_left_over(epoch, b, &part[b->steps]));
    return hbp__plan_join(epoch->context, part, b->steps + (part[b->steps] != NULL), epoch->lengths, out);
}

static hbp_status plan_parts(planning *p, hbp_plan **out)
{
    const hbp__epoch *epoch = p->epoch;
    HBP__TRY(hbp__parallel(epoch->context, epoch->options.threads, p->batches->steps, plan_part, p));
    HBP__TRY(hbp__batches_join(epoch, p->batches, p->part, out));
    (*out)->bound_ns = sum_of_bounds(p);
    return hbp__epoch_seal(epoch, out);
}

hbp_status hbp__batches_plan(const hbp__epoch *epoch, const hbp__batches *b, hbp_plan **out)
{
    hbp_context *context = epoch->context;
    int64_t mark = hbp__scratch_mark(context);
    planning p = {epoch, b, NULL};
    p.part = hbp__take_zero(context, (uint64_t)b->steps + 1, sizeof *p.part);
    HBP__TRY(hbp__scratch_check(context, "the steps"));
    hbp_status status = plan_parts(&p, out);
    for (int64_t i = 0; i <= b->steps; i++)
        hbp_plan_free(p.part[i]);
    return hbp__leave(context, mark, status);
}

hbp_status hbp__batches_of_contract(hbp__epoch *epoch, int32_t *composition, hbp__batches *batches)
{
    hbp_epoch_options *o = &epoch->options;
    int64_t shortest = INT64_MAX;
    *batches = (hbp__batches){.steps = 0};
    *composition = o->batches                                     ? HBP_COMPOSITION_GIVEN
                   : o->composition == HBP_COMPOSITION_STRATIFIED ? HBP_COMPOSITION_STRATIFIED
                                                                  : HBP_COMPOSITION_RANDOM;
    if (o->batches)
        return hbp__batches_give(epoch, batches);
    if (!o->samples_per_step && !o->tokens_per_step)
        HBP__TRY(hbp__epoch_choose_tokens(epoch, &o->tokens_per_step));
    if (o->curriculum_steps)
        HBP__TRY(hbp__epoch_shortest(epoch, &shortest));
    return *composition == HBP_COMPOSITION_RANDOM ? hbp__batches_draw(epoch, shortest, batches)
                                                  : hbp__batches_deal(epoch, 0, shortest, batches);
}

void hbp__batches_record(const hbp__epoch *epoch, int32_t composition, hbp_plan *plan)
{
    const hbp_epoch_options *o = &epoch->options;
    plan->composition = composition;
    plan->samples_per_step = o->samples_per_step;
    plan->tokens_per_step = o->samples_per_step || o->batches ? 0 : o->tokens_per_step;
}

static hbp_status plan_contract(hbp__epoch *epoch, int bounds, hbp_plan **out)
{
    int32_t composition;
    hbp__batches batches;
    HBP__TRY(hbp__epoch_check_caps(epoch));
    hbp_status status = hbp__batches_of_contract(epoch, &composition, &batches);
    batches.bounds = bounds;
    if (status >= 0)
        status = hbp__batches_plan(epoch, &batches, out);
    if (status >= 0)
        hbp__batches_record(epoch, composition, *out);
    if (status >= 0 && bounds && epoch->step_method == HBP__STEP_SEARCH)
        status = hbp__epoch_raise_bound_of_steps(epoch, (*out)->tokens_per_step, *out);
    hbp__batches_close(&batches);
    return status;
}

hbp_status hbp__epoch_plan_batches(hbp__epoch *epoch, hbp_plan **out)
{
    return plan_contract(epoch, 1, out);
}

hbp_status hbp__epoch_plan_drawn(const hbp__epoch *epoch, int64_t tokens_per_step, hbp_plan **out)
{
    hbp__epoch own = *epoch;
    own.options.composition = HBP_COMPOSITION_RANDOM;
    own.options.tokens_per_step = tokens_per_step;
    return plan_contract(&own, 0, out); /* nobody asked for these very steps */
}
