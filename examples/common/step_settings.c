#include "step_settings.h"

#include <string.h>

/* Values tried between a power of two and the next, in all, and how the best ones are refined: so often,
 * around so many of them, with so many values on either side. */
#define PER_OCTAVE 16
#define MOST       512
#define ROUNDS     3
#define BEST       3
#define BETWEEN    3

typedef struct sweep {
    hbp_context *context;
    const hbp_lengths *lengths;
    const hbp_cost *cost;
    int count;
    int64_t value[MOST]; /* [count] ascending */
    int64_t ns[MOST];    /* INT64_MAX: no plan */
    int refined[MOST];
} sweep;

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

/* Plans with a value that was not tried before, and keeps its time. */
static hbp_status try_value(sweep *s, hbp_step_options options, int64_t value)
{
    int at = 0;
    while (at < s->count && s->value[at] < value)
        at++;
    if (s->count == MOST || (at < s->count && s->value[at] == value))
        return HBP_OK;
    hbp_plan *plan = NULL;
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    *swept_of(&options) = value;
    hbp_status status = hbp_plan_step(s->context, s->lengths, s->cost, &options, &plan);
    if (status >= 0)
        status = hbp_plan_get_summary(s->context, plan, &summary);
    hbp_plan_free(plan);
    if (status < 0 && status != HBP_E_INFEASIBLE)
        return status;
    size_t behind = (size_t)(s->count - at);
    memmove(s->value + at + 1, s->value + at, behind * sizeof *s->value);
    memmove(s->ns + at + 1, s->ns + at, behind * sizeof *s->ns);
    memmove(s->refined + at + 1, s->refined + at, behind * sizeof *s->refined);
    s->value[at] = value;
    s->ns[at] = status < 0 ? INT64_MAX : summary.predicted_ns;
    s->refined[at] = 0;
    s->count++;
    return HBP_OK;
}

/* The fastest value, of equals the least; of those not yet refined, if `fresh`. -1: none. */
static int find_best(const sweep *s, int fresh)
{
    int best = -1;
    for (int i = 0; i < s->count; i++)
        if (s->ns[i] < INT64_MAX && !(fresh && s->refined[i]) && (best < 0 || s->ns[i] < s->ns[best]))
            best = i;
    return best;
}

/* Tries values on both sides of the best ones, up to their neighbours. */
static hbp_status refine(sweep *s, const hbp_step_options *options)
{
    for (int round = 0; round < BEST; round++) {
        int i = find_best(s, 1);
        if (i < 0)
            return HBP_OK;
        int64_t middle = s->value[i],
                end[2] = {i ? s->value[i - 1] : middle, i + 1 < s->count ? s->value[i + 1] : middle};
        s->refined[i] = 1;
        for (int side = 0; side < 2; side++)
            for (int k = 1; k <= BETWEEN; k++) {
                hbp_status status = try_value(s, *options, middle + (end[side] - middle) * k / (BETWEEN + 1));
                if (status < 0)
                    return status;
            }
    }
    return HBP_OK;
}

static hbp_status run(sweep *s, const hbp_step_options *options, int64_t least, int64_t most)
{
    s->count = 0;
    hbp_status status = try_value(s, *options, least);
    for (int64_t power = 1; power <= most && status >= 0; power *= 2)
        for (int k = 0; k < PER_OCTAVE && status >= 0; k++) {
            int64_t value = power + power * k / PER_OCTAVE;
            if (value > least && value < most)
                status = try_value(s, *options, value);
        }
    if (status >= 0)
        status = try_value(s, *options, most);
    for (int round = 0; round < ROUNDS && status >= 0; round++)
        status = refine(s, options);
    return status;
}

static int is_used(const hbp_step_options *o, int32_t degree)
{
    int any = o->degrees == HBP_STEP_ANY_DEGREE || !(degree & (degree - 1));
    return any && degree >= o->min_sp && (!o->max_sp || degree <= o->max_sp);
}

/* The range of the tokens of a rank for the degrees from `first` to `last` of the terms; `first` being the
 * least that is used. */
static int find_range(const sweep *s, const hbp_step_options *o, const hbp_cost_terms *t, int32_t first,
                      int32_t last, int64_t longest, int64_t *least, int64_t *most)
{
    int32_t layers = o->recompute == HBP_STEP_RECOMPUTE_NONE ? 0 : t->layers, widest = 0;
    *most = 0;
    for (int32_t i = first; i <= last; i++) {
        int32_t d = t->degree[i];
        if (!is_used(o, d))
            continue;
        int64_t held = hbp_cost_predict_capacity(s->cost, d, layers) / d;
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

hbp_status step_settings_plan(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                              hbp_step_options *options, hbp_plan **out)
{
    sweep s = {.context = context, .lengths = lengths, .cost = cost};
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
        hbp_step_options tried = *options;
        if (!find_range(&s, options, &t, i, one ? i : t.degrees - 1, l.max_length, &least, &most))
            continue;
        if (one)
            tried.min_sp = tried.max_sp = t.degree[i];
        status = run(&s, &tried, least, most);
        int k = find_best(&s, 0);
        if (status >= 0 && k >= 0 && s.ns[k] < best_ns) {
            best_ns = s.ns[k];
            best = tried;
            *swept_of(&best) = s.value[k];
        }
    }
    if (status < 0)
        return status;
    *options = best;
    return hbp_plan_step(context, lengths, cost, options, out);
}
