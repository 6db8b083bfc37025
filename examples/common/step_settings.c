#include "step_settings.h"

#include <stddef.h>

#include "sweep.h"

/* Values tried from a power of two to the next. */
#define PER_OCTAVE 16

typedef struct trial {
    hbp_context *context;
    const hbp_lengths *lengths;
    const hbp_cost *cost;
    hbp_step_options options;
} trial;

int step_settings_swept(int32_t mode)
{
    return mode != HBP_STEP_DEFAULT && mode != HBP_STEP_PAPER;
}

/* The option that is swept. */
static int64_t *swept_of(hbp_step_options *options)
{
    return options->mode == HBP_STEP_HYBRID_CP ? &options->sequence_tokens_per_rank
                                               : &options->tokens_per_rank;
}

/* Plans with a value, and tells its time. */
static hbp_status measure(void *user, int64_t value, int64_t *ns)
{
    const trial *t = user;
    hbp_step_options options = t->options;
    hbp_plan *plan = NULL;
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    *swept_of(&options) = value;
    hbp_status status = hbp_plan_step(t->context, t->lengths, t->cost, &options, &plan);
    if (status >= 0)
        status = hbp_plan_get_summary(t->context, plan, &summary);
    hbp_plan_free(plan);
    *ns = summary.predicted_ns;
    return status;
}

static int is_used(const hbp_step_options *o, int32_t degree)
{
    int any = o->degrees == HBP_STEP_ANY_DEGREE || !(degree & (degree - 1));
    return any && degree >= o->min_sp && (!o->max_sp || degree <= o->max_sp);
}

/* The range of the tokens of a rank for the degrees from `first` to `last` of the terms; `first` being the
 * least that is used. */
static int find_range(const hbp_cost *cost, const hbp_step_options *o, const hbp_cost_terms *t, int32_t first,
                      int32_t last, int64_t longest, int64_t *least, int64_t *most)
{
    int32_t layers = o->recompute == HBP_STEP_RECOMPUTE_NONE ? 0 : t->layers, widest = 0;
    *most = 0;
    for (int32_t i = first; i <= last; i++) {
        int32_t d = t->degree[i];
        if (!is_used(o, d))
            continue;
        int64_t held = hbp_cost_predict_capacity(cost, d, layers) / d;
        *most = held > *most ? held : *most;
        widest = d;
    }
    if (o->tokens_per_rank && *most > o->tokens_per_rank)
        *most = o->tokens_per_rank;
    if (o->sequence_tokens_per_rank && *most > o->sequence_tokens_per_rank)
        *most = o->sequence_tokens_per_rank;
    if (!widest)
        return 0;
    *least = (longest + widest - 1) / widest;
    *least = *least < 1 ? 1 : *least;
    return *least <= *most;
}

int step_settings_range(const hbp_cost *cost, const hbp_step_options *options, const hbp_cost_terms *terms,
                        int64_t longest, int64_t *least, int64_t *most)
{
    return find_range(cost, options, terms, 0, terms->degrees - 1, longest, least, most);
}

hbp_status step_settings_plan(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                              hbp_step_options *options, hbp_plan **out)
{
    sweep s = {.measure = measure};
    hbp_cost_terms t = {.struct_size = sizeof t};
    hbp_lengths_summary l = {.struct_size = sizeof l};
    hbp_step_options best = *options;
    int64_t best_ns = INT64_MAX, least = 0, most = 0;
    if (!step_settings_swept(options->mode))
        return hbp_plan_step(context, lengths, cost, options, out);
    hbp_status status = hbp_cost_get_terms(context, cost, &t);
    if (status >= 0)
        status = hbp_lengths_get_summary(context, lengths, &l);
    int one = options->mode == HBP_STEP_STATIC_SP;
    for (int32_t i = 0; i < (one ? t.degrees : 1) && status >= 0; i++) {
        trial tried = {context, lengths, cost, *options};
        if (!find_range(cost, options, &t, i, one ? i : t.degrees - 1, l.max_length, &least, &most))
            continue;
        if (one)
            tried.options.min_sp = tried.options.max_sp = t.degree[i];
        s.user = &tried;
        s.count = 0;
        status = sweep_octaves(&s, least, most, PER_OCTAVE);
        if (status >= 0)
            status = sweep_refine(&s);
        int k = sweep_best(&s);
        if (status >= 0 && k >= 0 && s.ns[k] < best_ns) {
            best_ns = s.ns[k];
            best = tried.options;
            *swept_of(&best) = s.value[k];
        }
    }
    if (status < 0)
        return status;
    *options = best;
    return hbp_plan_step(context, lengths, cost, options, out);
}
