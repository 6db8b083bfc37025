#include "step_settings.h"

#include <string.h>

#include <stddef.h>

#include "sweep.h"

/* Values tried from a power of two to the next, and how many are refined; of the published planner, which
 * takes long, few. */
#define PER_OCTAVE       16
#define PER_OCTAVE_PAPER 2
#define REFINED          9
#define REFINED_PAPER    3

/* Buckets of the published planner: its own number, more, none. */
static const int32_t BUCKETS[] = {16, 64, -1};

enum { MOST_VARIANTS = 64 };

typedef struct trial {
    hbp_context *context;
    const hbp_lengths *lengths;
    const hbp_cost *cost;
    hbp_step_options options;
} trial;

static int is(const hbp_step_options *options, const char *method)
{
    return strcmp(options->method, method) == 0;
}

int step_settings_swept(const char *method)
{
    return method && strcmp(method, "search") != 0;
}

/* The option that is swept. */
static int64_t *swept_of(hbp_step_options *options)
{
    return is(options, "hybrid-cp") ? &options->sequence_tokens_per_rank : &options->tokens_per_rank;
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
    int any = o->any_degree || !(degree & (degree - 1));
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

/* Settings beside the tokens of a rank, with the degrees [first, last] that they leave. */
typedef struct variant {
    hbp_step_options options;
    int32_t first, last;
} variant;

/* Static SP has one degree, Megatron's two a least one, the published planner its buckets. Returns how many.
 */
static int list_variants(const hbp_step_options *o, const hbp_cost_terms *t, variant *list)
{
    int count = 0, one = is(o, "static-sp");
    int least = is(o, "hybrid-cp") || is(o, "dynamic-cp");
    int buckets = is(o, "flexsp") && !o->buckets ? (int)(sizeof BUCKETS / sizeof *BUCKETS) : 0;
    for (int32_t i = 0; i < t->degrees && (one || least) && count < MOST_VARIANTS; i++) {
        if (!is_used(o, t->degree[i]))
            continue;
        list[count] = (variant){*o, i, one ? i : t->degrees - 1};
        list[count].options.min_sp = t->degree[i];
        if (one)
            list[count].options.max_sp = t->degree[i];
        count++;
    }
    for (int i = 0; i < buckets; i++) {
        list[count] = (variant){*o, 0, t->degrees - 1};
        list[count++].options.buckets = BUCKETS[i];
    }
    if (!one && !least && !buckets)
        list[count++] = (variant){*o, 0, t->degrees - 1};
    return count;
}

/* Where the tokens of a rank are best for a variant, and what it takes then. */
static hbp_status sweep_variant(trial *tried, const hbp_cost_terms *t, const variant *v, int64_t longest,
                                int64_t *value, int64_t *ns)
{
    sweep s = {.measure = measure, .user = tried};
    int64_t least = 0, most = 0;
    int is_paper = is(&v->options, "flexsp");
    tried->options = v->options;
    *ns = INT64_MAX;
    if (!find_range(tried->cost, &v->options, t, v->first, v->last, longest, &least, &most))
        return HBP_OK;
    hbp_status status = sweep_octaves(&s, least, most, is_paper ? PER_OCTAVE_PAPER : PER_OCTAVE);
    if (status >= 0)
        status = sweep_refine(&s, is_paper ? REFINED_PAPER : REFINED);
    int k = sweep_best(&s);
    if (status >= 0 && k >= 0) {
        *value = s.value[k];
        *ns = s.ns[k];
    }
    return status;
}

/* The variants of the published planner beside each other as they are; the best alone is swept. */
static hbp_status pick_buckets(trial *tried, variant *list, int *count)
{
    int best = -1;
    int64_t best_ns = INT64_MAX;
    for (int i = 0; i < *count; i++) {
        int64_t ns = INT64_MAX;
        tried->options = list[i].options;
        hbp_status status = measure(tried, list[i].options.tokens_per_rank, &ns);
        if (status < 0 && status != HBP_E_INFEASIBLE)
            return status;
        if (status >= 0 && ns < best_ns) {
            best_ns = ns;
            best = i;
        }
    }
    if (best >= 0)
        list[0] = list[best];
    *count = 1;
    return HBP_OK;
}

hbp_status step_settings_plan(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                              hbp_step_options *options, hbp_plan **out)
{
    variant list[MOST_VARIANTS];
    hbp_cost_terms t = {.struct_size = sizeof t};
    hbp_lengths_summary l = {.struct_size = sizeof l};
    hbp_step_options best = *options;
    trial tried = {context, lengths, cost, *options};
    int64_t best_ns = INT64_MAX;
    if (!step_settings_swept(options->method) || (options->exact && is(options, "flexsp")))
        return hbp_plan_step(context, lengths, cost, options, out);
    hbp_status status = hbp_cost_get_terms(context, cost, &t);
    if (status >= 0)
        status = hbp_lengths_get_summary(context, lengths, &l);
    int count = status >= 0 ? list_variants(options, &t, list) : 0;
    if (status >= 0 && is(options, "flexsp"))
        status = pick_buckets(&tried, list, &count);
    for (int i = 0; i < count && status >= 0; i++) {
        int64_t value = 0, ns;
        status = sweep_variant(&tried, &t, &list[i], l.max_length, &value, &ns);
        if (status >= 0 && ns < best_ns) {
            best_ns = ns;
            best = list[i].options;
            *swept_of(&best) = value;
        }
    }
    if (status < 0)
        return status;
    *options = best;
    return hbp_plan_step(context, lengths, cost, options, out);
}
