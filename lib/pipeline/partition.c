/* hbp_partition_layers: the optimum under the formula or the published partitions, what lies near, and the
 * run that chooses among them. docs/explanation/pipeline.md has the formula, the algorithms and the proofs.
 */
#include "pipeline/partition.h"

#include <string.h>

#include "base/checked.h"
#include "base/methods.h"
#include "base/options.h"
#include "base/scratch.h"
#include "pipeline/candidates.h"
#include "pipeline/order.h"
#include "simulate/pipeline/pipeline.h"
#include "solve/chain/chain.h"

typedef struct planner {
    hbp_context *context;
    hbp__shortage *shortage;
    hbp_pipeline_options pipeline;
    hbp_layer_partition_options options;
    hbp__stages stages;
    hbp__schedule schedule;
    hbp_layer_partition *partition;
    hbp__cut_list best;    /* by predicted time */
    hbp__cut_list even;    /* by variance */
    hbp__cut_list sending; /* by communication */
    int32_t *cuts;         /* [chunks + 1] scratch */
    int32_t *order;        /* [M] scratch */
    int64_t bound;         /* V times predicted time, before rounding up */
    int64_t least;         /* the same of the best that was found; method optimal */
} planner;

static void fill_defaults(planner *p)
{
    if (!p->options.candidates)
        p->options.candidates = HBP__CUT_CANDIDATES;
    if (!p->options.radius)
        p->options.radius = 1;
}

/* The cuts at hand do not fit. */
static hbp_status fall_short(planner *p, const char *how)
{
    *p->shortage = hbp__stages_shortage(&p->stages, p->cuts, how);
    return HBP_E_INFEASIBLE;
}

static int64_t lack_of(const void *user, const int32_t *cuts, int32_t parts, int32_t worker)
{
    const hbp__stages *s = user;
    int64_t peak = hbp__stages_peak(s, cuts, parts, worker), limit = s->pipeline->limit_bytes[worker];
    return peak > limit ? peak - limit : 0;
}

static hbp_status search_rounds(planner *p, int64_t work)
{
    hbp__stages *s = &p->stages;
    const hbp__rounds rounds = {&s->chain, s->stages, s->reach ? lack_of : NULL, s};
    hbp_status status = hbp__cut_rounds(p->context, &rounds, &work, &p->best, p->cuts, &p->bound);
    if (status != HBP_E_INFEASIBLE ||
        hbp__layer_partition_method(p->options.method) != HBP__LAYER_PARTITION_OPTIMAL)
        return status == HBP_E_INFEASIBLE ? HBP_OK : status; /* other methods only want the bound */
    return fall_short(p, "no partition was found that fits; with the cuts that come nearest");
}

/* The optimum first, so that looking for others cannot cost its proof. */
static hbp_status search_chain(planner *p, int32_t more)
{
    hbp__stages *s = &p->stages;
    hbp__cut_list one;
    int64_t work = HBP__CUT_WORK, bound;
    HBP__TRY(hbp__cut_list_open(p->context, s->chunks, 1, &one));
    hbp_status status = hbp__cut_chain(p->context, &s->chain, &work, &one, &p->bound);
    if (status >= 0)
        hbp__cut_list_add(&p->best, one.cuts, one.value[0]);
    hbp__cut_list_close(&one);
    if (status == HBP_E_INFEASIBLE) {
        HBP__TRY(hbp__stages_nearest(p->context, s, p->cuts));
        return fall_short(p, "no partition fits; with the cuts that miss by least");
    }
    if (status < 0 || !more || p->best.room == 1)
        return status;
    work = HBP__CUT_LIST_WORK;
    return hbp__cut_chain(p->context, &s->chain, &work, &p->best, &bound);
}

static void add_list(planner *p, const hbp__cut_list *list, int32_t ranked)
{
    for (int32_t i = 0; i < list->count; i++)
        hbp__partition_add(p->partition, &p->stages, hbp__cut_list_get(list, i), ranked);
}

static hbp_status add_near(planner *p, const int32_t *anchor)
{
    p->even.count = p->sending.count = 0;
    HBP__TRY(hbp__rank_near(p->context, &p->stages, anchor, p->options.radius, &p->even, &p->sending));
    add_list(p, &p->even, HBP_RANKED_VARIANCE);
    add_list(p, &p->sending, HBP_RANKED_COMMUNICATION);
    return HBP_OK;
}

/* Adds an anchor that fits, and if it is balanced what lies near it, fit or not. */
static hbp_status add_anchor(planner *p, int32_t method)
{
    HBP__TRY(hbp__anchor(p->context, &p->stages, method, p->cuts));
    if (hbp__stages_fit(&p->stages, p->cuts))
        hbp__partition_add(p->partition, &p->stages, p->cuts, 0);
    return method == HBP__LAYER_PARTITION_BALANCED ? add_near(p, p->cuts) : HBP_OK;
}

/* Where the run decides and not the formula: more to choose from, so that no other method is faster; for V >
 * 1 also partitions whose chunks are alike, as interleaved stages wait for each other in every round. */
static hbp_status add_others(planner *p)
{
    hbp__stages *s = &p->stages;
    if (s->chunks > s->stages) {
        int64_t work = HBP__CUT_LIST_WORK, bound;
        p->best.count = 0;
        hbp_status status = hbp__cut_chain(p->context, &s->chain, &work, &p->best, &bound);
        if (status < 0 && status != HBP_E_INFEASIBLE)
            return status;
        for (int32_t i = 0; i < p->best.count; i++)
            if (hbp__stages_fit(s, hbp__cut_list_get(&p->best, i)))
                hbp__partition_add(p->partition, s, hbp__cut_list_get(&p->best, i), HBP_RANKED_TIME);
    }
    HBP__TRY(add_anchor(p, HBP__LAYER_PARTITION_PARAMETERS));
    HBP__TRY(add_anchor(p, HBP__LAYER_PARTITION_UNIFORM));
    return add_anchor(p, HBP__LAYER_PARTITION_BALANCED);
}

/* Whether candidates are chosen by the run. */
static int run_decides(const planner *p)
{
    return p->options.run || hbp__layer_partition_method(p->options.method) != HBP__LAYER_PARTITION_OPTIMAL ||
           p->stages.uneven || p->stages.chunks > p->stages.stages;
}

static hbp_status find_optimal(planner *p)
{
    add_list(p, &p->best, HBP_RANKED_TIME);
    p->least = p->best.value[0];
    HBP__TRY(add_near(p, p->best.cuts));
    return run_decides(p) ? add_others(p) : HBP_OK;
}

static hbp_status find_candidates(planner *p)
{
    hbp__stages *s = &p->stages;
    int optimal = hbp__layer_partition_method(p->options.method) == HBP__LAYER_PARTITION_OPTIMAL;
    if (s->chunks > s->stages)
        HBP__TRY(search_rounds(p, optimal ? HBP__CUT_WORK / HBP__CUT_ROUNDS_SHARE : HBP__CUT_LIST_WORK));
    else
        HBP__TRY(search_chain(p, optimal));
    if (optimal)
        return find_optimal(p);
    int paper = hbp__layer_partition_method(p->options.method) == HBP__LAYER_PARTITION_OMNIBAL;
    HBP__TRY(hbp__anchor(
        p->context, s, paper ? HBP__LAYER_PARTITION_BALANCED : hbp__layer_partition_method(p->options.method),
        p->cuts));
    if (paper)
        HBP__TRY(add_near(p, p->cuts));
    else if (hbp__stages_fit(s, p->cuts))
        hbp__partition_add(p->partition, s, p->cuts, 0);
    if (!p->partition->candidates)
        return fall_short(p, paper ? "nothing near the balanced partition fits, which is the anchor"
                                   : "the partition of this method does not fit");
    return HBP_OK;
}

/* Runs the step; with `order` the micro-batches are put into order first, with `work` operations, else they
 * go as p->order says. */
static hbp_status simulate_cuts(planner *p, const int32_t *cuts, int64_t work, int64_t *ns)
{
    hbp__stage_times times;
    HBP__TRY(hbp__stage_times_open(p->context, p->stages.layers, cuts, &p->pipeline, &times));
    hbp_status status = HBP_OK;
    if (work > 0)
        status = hbp__order_micro_batches(p->context, &p->schedule, &times, p->pipeline.limit_bytes, work,
                                          p->order, NULL, NULL);
    if (status >= 0)
        *ns = hbp__pipeline_time(&p->schedule, &times, p->order, p->partition->stage_busy_ns,
                                 p->partition->stage_bytes);
    hbp__stage_times_close(&times);
    return status;
}

static void reset_order(planner *p)
{
    for (int32_t m = 0; m < p->pipeline.micro_batches; m++)
        p->order[m] = m;
}

static int orders_steps(const planner *p)
{
    return p->options.order && p->stages.uneven;
}

/* Runs every candidate; the order of the fastest goes into the partition. Equal micro-batches have no better
 * order than any. */
static hbp_status run_candidates(planner *p)
{
    hbp_layer_partition *made = p->partition;
    int64_t work = orders_steps(p) ? HBP__ORDER_WORK / made->candidates + 1 : 0;
    int64_t fastest = INT64_MAX;
    for (int32_t i = 0; i < made->candidates; i++) {
        HBP__TRY(hbp__tick(p->context, "candidates", i, made->candidates));
        reset_order(p);
        HBP__TRY(simulate_cuts(p, hbp__partition_cuts(made, i), work, &made->simulated_ns[i]));
        if (made->simulated_ns[i] < fastest) {
            fastest = made->simulated_ns[i];
            memcpy(made->order, p->order, (size_t)p->pipeline.micro_batches * sizeof *p->order);
        }
    }
    return HBP_OK;
}

/* Shifts cuts first .. last by `by` and keeps that if the run gets shorter than *least. */
static hbp_status try_shift(planner *p, int32_t first, int32_t last, int32_t by, int64_t *least,
                            int64_t *work, int *moved)
{
    int32_t *cuts = p->cuts;
    int64_t ns = INT64_MAX;
    if (cuts[first] + by <= cuts[first - 1] || cuts[last] + by >= cuts[last + 1])
        return HBP_OK;
    for (int32_t c = first; c <= last; c++)
        cuts[c] += by;
    if (hbp__stages_fit(&p->stages, cuts)) {
        HBP__TRY(simulate_cuts(p, cuts, 0, &ns));
        *work -= 2 * (int64_t)p->stages.chunks * p->pipeline.micro_batches + p->stages.layers->count;
    }
    if (ns < *least) {
        *least = ns;
        *moved = 1;
        return HBP_OK;
    }
    for (int32_t c = first; c <= last; c++)
        cuts[c] -= by;
    return HBP_OK;
}

/* Moves single cuts of the fastest, and neighbouring ones together, while the run gets shorter; adds what
 * comes of it. */
static hbp_status improve_cuts(planner *p)
{
    hbp_layer_partition *made = p->partition;
    int32_t chunks = made->chunks, fastest = 0;
    for (int32_t i = 1; i < made->candidates; i++)
        if (made->simulated_ns[i] < made->simulated_ns[fastest])
            fastest = i;
    int64_t least = made->simulated_ns[fastest], work = HBP__CUT_IMPROVE_WORK;
    memcpy(p->cuts, hbp__partition_cuts(made, fastest), ((size_t)chunks + 1) * sizeof *p->cuts);
    memcpy(p->order, made->order, (size_t)p->pipeline.micro_batches * sizeof *p->order);
    for (int moved = 1; moved && work > 0;) {
        moved = 0;
        for (int32_t wide = 0; wide < 2 * made->stages; wide++)
            for (int32_t c = 1; c + wide < chunks && work > 0; c++) {
                if (c % 8 == 1)
                    HBP__TRY(hbp__tick(p->context, "candidates", HBP__CUT_IMPROVE_WORK - work,
                                       HBP__CUT_IMPROVE_WORK));
                HBP__TRY(try_shift(p, c, c + wide, -1, &least, &work, &moved));
                HBP__TRY(try_shift(p, c, c + wide, 1, &least, &work, &moved));
            }
    }
    if (least == made->simulated_ns[fastest])
        return HBP_OK;
    int32_t before = made->candidates;
    hbp__partition_add(made, &p->stages, p->cuts, HBP_RANKED_TIME);
    if (made->candidates > before)
        made->simulated_ns[before] = least;
    return HBP_OK;
}

static hbp_status finish_partition(planner *p)
{
    hbp_layer_partition *made = p->partition;
    hbp_layer_partition_summary *summary = &made->summary;
    int64_t busy = 0, ns;
    memcpy(p->order, made->order, (size_t)p->pipeline.micro_batches * sizeof *p->order);
    HBP__TRY(simulate_cuts(p, made->cuts, orders_steps(p) ? HBP__ORDER_WORK : 0, &ns));
    memcpy(made->order, p->order, (size_t)p->pipeline.micro_batches * sizeof *p->order);
    made->simulated_ns[0] = ns;
    hbp__stages_weigh(&p->stages, made->cuts, made->stage_ns);
    *summary = (hbp_layer_partition_summary){.struct_size = sizeof *summary, .simulated_ns = ns};
    for (int32_t s = 0; s < made->stages; s++) {
        if (made->stage_ns[s] > made->stage_ns[summary->bottleneck])
            summary->bottleneck = s;
        summary->peak_bytes = hbp__max_i64(summary->peak_bytes, made->stage_bytes[s]);
        busy += made->stage_busy_ns[s];
    }
    summary->micro_batches = made->micro_batches;
    summary->predicted_ns = made->predicted_ns[0];
    summary->bound_ns = hbp__min_i64(hbp__stages_predict(&p->stages, p->bound), made->predicted_ns[0]);
    summary->proven = summary->bound_ns == summary->predicted_ns;
    summary->bottleneck_ns = made->stage_ns[summary->bottleneck];
    summary->cut_bytes = made->cut_bytes[0];
    summary->stage_variance = made->variance[0];
    double all = (double)ns * made->stages;
    summary->bubble = all > 0 ? 1 - (double)busy / all : 0;
    return HBP_OK;
}

static hbp_status open_planner(planner *p, const hbp_layers *layers)
{
    HBP__TRY(hbp__stages_open(p->context, layers, &p->pipeline, &p->stages));
    int32_t chunks = p->stages.chunks, most = p->options.candidates;
    HBP__TRY(hbp__cut_list_open(p->context, chunks, most, &p->best));
    HBP__TRY(hbp__cut_list_open(p->context, chunks, most, &p->even));
    HBP__TRY(hbp__cut_list_open(p->context, chunks, most, &p->sending));
    HBP__TRY(hbp__schedule_open(p->context, p->stages.stages, hbp__pipeline_virtual(&p->pipeline),
                                p->pipeline.micro_batches, &p->schedule));
    HBP__TRY(hbp__partition_new(p->context, &p->stages, 6 * most + 4, &p->partition));
    p->cuts = hbp__take(p->context, (uint64_t)chunks + 1, sizeof *p->cuts);
    p->order = hbp__take(p->context, (uint64_t)p->pipeline.micro_batches, sizeof *p->order);
    return hbp__scratch_check(p->context, "a partition");
}

static void close_planner(planner *p)
{
    hbp_layer_partition_free(p->partition);
    hbp__schedule_close(&p->schedule);
    hbp__cut_list_close(&p->sending);
    hbp__cut_list_close(&p->even);
    hbp__cut_list_close(&p->best);
    hbp__stages_close(&p->stages);
}

static hbp_status plan_partition(planner *p, const hbp_layers *layers)
{
    HBP__TRY(open_planner(p, layers));
    HBP__TRY(find_candidates(p));
    HBP__TRY(run_candidates(p));
    int optimal = hbp__layer_partition_method(p->options.method) == HBP__LAYER_PARTITION_OPTIMAL;
    if (optimal && run_decides(p))
        HBP__TRY(improve_cuts(p));
    hbp__partition_sort(p->partition, !run_decides(p)); /* else the optimum, added first, stays so */
    HBP__TRY(finish_partition(p));
    int proven = hbp__stages_predict(&p->stages, p->least) <= hbp__stages_predict(&p->stages, p->bound);
    return optimal && !proven ? HBP_NOT_PROVEN : HBP_OK;
}

static hbp_status partition_layers(planner *p, const hbp_layers *layers, hbp_layer_partition **out)
{
    hbp_status status = plan_partition(p, layers);
    if (status >= 0) {
        *out = p->partition;
        p->partition = NULL;
    }
    close_planner(p);
    return status;
}

static hbp_status read_and_partition(hbp_context *context, const hbp_layers *layers,
                                     const hbp_pipeline_options *pipeline,
                                     const hbp_layer_partition_options *options, hbp_layer_partition **out,
                                     hbp__shortage *shortage)
{
    planner p = {.context = context, .shortage = shortage};
    HBP__TRY(hbp__options_read(context, &p.pipeline, sizeof p.pipeline, pipeline, "hbp_pipeline_options"));
    HBP__TRY(
        hbp__options_read(context, &p.options, sizeof p.options, options, "hbp_layer_partition_options"));
    HBP__TRY(hbp__pipeline_check(context, layers, &p.pipeline));
    fill_defaults(&p);
    return partition_layers(&p, layers, out);
}

hbp_status hbp__partition_layers(hbp_context *context, const hbp_layers *layers,
                                 const hbp_pipeline_options *pipeline,
                                 const hbp_layer_partition_options *options, hbp_layer_partition **out,
                                 hbp__shortage *shortage)
{
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, read_and_partition(context, layers, pipeline, options, out, shortage));
}

hbp_status hbp_partition_layers(hbp_context *context, const hbp_layers *layers,
                                const hbp_pipeline_options *pipeline,
                                const hbp_layer_partition_options *options, hbp_layer_partition **out)
{
    hbp__shortage shortage;
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, layers, "layers"));
    HBP__TRY(hbp__require(context, pipeline, "pipeline"));
    hbp_status status = hbp__partition_layers(context, layers, pipeline, options, out, &shortage);
    return status == HBP_E_INFEASIBLE ? hbp__shortage_fail(context, &shortage) : status;
}
