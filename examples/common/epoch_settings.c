#include "epoch_settings.h"

#include <stdlib.h>
#include <string.h>

#include "step_settings.h"
#include "sweep.h"

/* A part that sweeps are made with has so many samples, and so many steps, at least. */
#define PART_SAMPLES 32768
#define PART_STEPS   32

/* Values tried at first: from a power of two to the next; and packs of which a step has so many a group. Then
 * so many are refined. */
#define PER_OCTAVE 16
#define PACKS      12
#define REFINED    9

/* Degrees whose best packs take at most so many times the best of all are swept finely; so many settings of
 * each are planned in full. */
#define NEAR      1.25
#define FINALISTS 4

typedef struct search {
    hbp_context *context;
    const hbp_lengths *lengths; /* all, or the part that is swept */
    int is_part;
    const hbp_cost *cost;
    hbp_cost_terms terms;
    hbp_epoch_options options;
    int64_t tokens_per_step; /* on average, where samples are asked for */
    int64_t longest;         /* sample */
    int has_links;           /* packs of one sample may be longer then */
} search;

/* Its part on one degree, or of tokens a rank with one least degree. */
typedef struct trial {
    search *search;
    int32_t sp; /* 0: of tokens a rank */
    int32_t min_sp;
    sweep sweep;
} trial;

static int is(const hbp_epoch_options *options, const char *method)
{
    return strcmp(options->method, method) == 0;
}

static int has_own_steps(const hbp_epoch_options *options)
{
    return is(options, "hybrid-cp") || is(options, "dynamic-cp");
}

static int is_one_sample(const hbp_epoch_options *options)
{
    return is(options, "no-packing") || is(options, "sorted");
}

/* The least layers to recompute for packs so long; -1: memory holds none. */
static int32_t find_recompute(const search *s, int32_t sp, int64_t pack_length)
{
    int32_t low = 0, high = s->terms.layers;
    if (hbp_cost_predict_capacity(s->cost, sp, high) < pack_length)
        return -1;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (hbp_cost_predict_capacity(s->cost, sp, middle) >= pack_length)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Plans with packs of `value` tokens on the trial's degree, or with `value` tokens a rank. */
static hbp_status plan_with(const trial *t, int64_t value, epoch_setting *setting, hbp_plan **out)
{
    const search *s = t->search;
    int32_t sp = t->sp;
    hbp_epoch_options options = s->options;
    hbp_groups *groups = NULL;
    hbp_status status = HBP_OK;
    *setting = (epoch_setting){.tokens_per_rank = sp ? 0 : value, .min_sp = sp ? 0 : t->min_sp};
    options.min_sp = t->min_sp;
    if (is(&s->options, "hybrid-cp")) {
        options.sequence_tokens_per_rank = value;
    } else if (!sp) {
        options.tokens_per_rank = value;
    } else {
        *setting = (epoch_setting){.pack_length = value, .sp = sp};
        setting->recompute = find_recompute(s, sp, value);
        if (setting->recompute < 0)
            return HBP_E_INFEASIBLE;
        int64_t least = value * (s->terms.ranks / sp); /* of one micro-batch */
        status = hbp_groups_create(s->context, s->cost, 1, &value, &sp, &setting->recompute,
                                   least > s->tokens_per_step ? least : s->tokens_per_step, &groups);
        options.groups = groups;
    }
    if (status >= 0)
        status = hbp_plan_epoch(s->context, s->lengths, s->cost, &options, out);
    hbp_groups_free(groups);
    return status;
}

/* The time of all steps at the rate of all but the one with the fewest tokens: with few steps, how full an
 * incomplete one happens to be would decide. */
static int64_t find_rate(const hbp_plan *plan, int64_t total_ns)
{
    int64_t least = 0;
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(plan, &view);
    const int64_t *tokens = view.step_tokens, *ns = view.step_ns;
    double all = 0;
    for (int64_t s = 0; s < view.steps; s++) {
        all += (double)tokens[s];
        least = tokens[s] < tokens[least] ? s : least;
    }
    if (view.steps < 2)
        return total_ns;
    double rest = all - (double)tokens[least];
    return (int64_t)((double)(total_ns - ns[least]) / rest * all);
}

/* What no plan can be made with is no failure of the sweep. */
static hbp_status measure(void *user, int64_t value, int64_t *ns)
{
    const trial *t = user;
    epoch_setting setting;
    hbp_plan *plan = NULL;
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    hbp_status status = plan_with(t, value, &setting, &plan);
    if (status >= 0)
        status = hbp_plan_get_summary(t->search->context, plan, &summary);
    if (status >= 0)
        *ns = t->search->is_part ? find_rate(plan, summary.predicted_ns) : summary.predicted_ns;
    hbp_plan_free(plan);
    return status == HBP_E_INVALID ? HBP_E_INFEASIBLE : status;
}

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Packs on one degree. */
static hbp_status sweep_packs(trial *t)
{
    const search *s = t->search;
    const hbp_epoch_options *o = &s->options;
    int32_t layers = s->terms.layers, ranks = s->terms.ranks;
    int64_t multiple = (o->pack_multiple > 1 ? o->pack_multiple : 1) *
                       (o->pack_multiple_per_sp > 0 ? o->pack_multiple_per_sp * t->sp : 1);
    int64_t least = (s->longest + multiple - 1) / multiple * multiple;
    int64_t share = (int64_t)((double)s->tokens_per_step * t->sp / ranks);
    int64_t most = least_of(hbp_cost_predict_capacity(s->cost, t->sp, layers), share);
    if (o->max_pack_length)
        most = least_of(most, o->max_pack_length);
    if (o->tokens_per_rank)
        most = least_of(most, o->tokens_per_rank * t->sp);
    most -= most % multiple;
    if (is_one_sample(&s->options) && !s->has_links)
        return sweep_try(&t->sweep, least);
    /* Tokens that samples have on average are no cap: one micro-batch may pass them by a little. */
    if (most < least)
        return !o->tokens_per_step && least <= share + share / 16 ? sweep_try(&t->sweep, least) : HBP_OK;
    hbp_status status = sweep_octaves(&t->sweep, least, most, PER_OCTAVE);
    for (int64_t k = 0; k < PACKS + 5 && status >= 0; k++) {
        int64_t value = k < PACKS
                            ? share / (k + 1)
                            : hbp_cost_predict_capacity(s->cost, t->sp, (int32_t)(layers * (k - PACKS) / 4));
        value -= value % multiple;
        if (value >= least && value <= most)
            status = sweep_try(&t->sweep, value);
    }
    return status;
}

/* The most time that a degree's best packs may take to be near the best of all. */
static int64_t find_near(const trial *trials, int count)
{
    int64_t best = INT64_MAX;
    for (int i = 0; i < count; i++) {
        int k = sweep_best(&trials[i].sweep);
        best = k < 0 ? best : least_of(best, trials[i].sweep.ns[k]);
    }
    return best < INT64_MAX / 2 ? (int64_t)(NEAR * (double)best) : best;
}

static int is_near(const trial *t, int64_t near_ns)
{
    int k = sweep_best(&t->sweep);
    return k >= 0 && t->sweep.ns[k] <= near_ns;
}

/* Sweeps every degree, and those near the best finely. */
static hbp_status sweep_degrees(trial *trials, int count)
{
    hbp_status status = HBP_OK;
    for (int i = 0; i < count && status >= 0; i++)
        status = sweep_packs(&trials[i]);
    int64_t near_ns = find_near(trials, count);
    for (int i = 0; i < count && status >= 0; i++)
        if (is_near(&trials[i], near_ns) && !is_one_sample(&trials->search->options))
            status = sweep_refine(&trials[i].sweep, REFINED);
    return status;
}

static hbp_status sweep_per_rank(trial *t)
{
    const search *s = t->search;
    hbp_step_options o = {.struct_size = sizeof o};
    int64_t least, most;
    o.any_degree = 1;
    o.tokens_per_rank = s->options.tokens_per_rank;
    o.min_sp = t->min_sp;
    if (!step_settings_range(s->cost, &o, &s->terms, s->longest, &least, &most))
        return HBP_OK;
    hbp_status status = sweep_octaves(&t->sweep, least, most, PER_OCTAVE);
    return status < 0 ? status : sweep_refine(&t->sweep, REFINED);
}

/* Plans value k of a trial, and keeps the plan if it is the fastest so far. */
static hbp_status plan_finalist(const trial *t, int k, epoch_setting *best, int64_t *best_ns, hbp_plan **out)
{
    hbp_plan *plan = NULL;
    epoch_setting setting;
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    hbp_status status = plan_with(t, t->sweep.value[k], &setting, &plan);
    if (status >= 0)
        status = hbp_plan_get_summary(t->search->context, plan, &summary);
    if (status >= 0 && summary.predicted_ns < *best_ns) {
        hbp_plan *worse = *out;
        *best_ns = summary.predicted_ns;
        *best = setting;
        *out = plan;
        plan = worse;
    }
    hbp_plan_free(plan);
    return status == HBP_E_INFEASIBLE || status == HBP_E_INVALID ? HBP_OK : status;
}

/* The fastest of the best settings, planned with all lengths. */
static hbp_status plan_best(trial *trials, int count, const hbp_lengths *lengths, epoch_setting *best,
                            hbp_plan **out)
{
    search *s = trials->search;
    int64_t best_ns = INT64_MAX, near_ns = find_near(trials, count);
    hbp_status status = HBP_OK;
    s->lengths = lengths;
    for (int i = 0; i < count && status >= 0; i++)
        for (int f = 0; f < FINALISTS && is_near(&trials[i], near_ns) && status >= 0; f++) {
            int k = sweep_best(&trials[i].sweep);
            status = plan_finalist(&trials[i], k, best, &best_ns, out);
            trials[i].sweep.ns[k] = INT64_MAX;
        }
    if (status >= 0)
        return status;
    hbp_plan_free(*out);
    *out = NULL;
    return status;
}

/* Every so many samples of `lengths` and the longest; NULL in *part where all are to be swept. */
static hbp_status cut_part(const search *s, const hbp_lengths_summary *l, hbp_lengths **part)
{
    double mean = (double)l->tokens / (double)l->samples;
    double wanted = (double)s->tokens_per_step / mean * PART_STEPS;
    int64_t count = wanted > PART_SAMPLES ? (wanted < 1e15 ? (int64_t)wanted : l->samples) : PART_SAMPLES;
    if (count >= l->samples || s->options.batches || l->has_links)
        return HBP_OK;
    int64_t *length = malloc((size_t)count * sizeof *length), longest = 0;
    if (!length)
        return HBP_OK; /* all of them, then */
    for (int64_t i = 0; i < count; i++) {
        length[i] =
            hbp_lengths_get_length(s->lengths, (int64_t)((double)i * ((double)l->samples / (double)count)));
        longest = length[i] > longest ? length[i] : longest;
    }
    if (longest < l->max_length)
        length[0] = l->max_length;
    hbp_status status = hbp_lengths_create_i64(s->context, length, count, NULL, part);
    free(length);
    return status;
}

/* The tokens of a step, on average where they follow from samples. */
static int64_t tokens_of_step(const hbp_epoch_options *o, const hbp_lengths_summary *l)
{
    double mean = (double)l->tokens / (double)l->samples;
    if (o->samples_per_step)
        return (int64_t)(mean * (double)least_of(o->samples_per_step, l->samples) + .5);
    return o->batches ? l->tokens / o->batches : o->tokens_per_step;
}

static hbp_status sweep_all(search *s, const hbp_lengths *lengths, trial *trials, int count,
                            epoch_setting *best, hbp_plan **out)
{
    hbp_status status = HBP_OK;
    for (int i = 0; i < count && has_own_steps(&s->options) && status >= 0; i++)
        status = sweep_per_rank(&trials[i]);
    if (!has_own_steps(&s->options))
        status = sweep_degrees(trials, count);
    return status < 0 ? status : plan_best(trials, count, lengths, best, out);
}

/* The contract as far as the method keeps it; the library refuses the rest. */
static hbp_epoch_options keep_contract(const hbp_epoch_options *options, const hbp_lengths_summary *l)
{
    hbp_epoch_options o = *options;
    o.equal_samples = 0;
    o.max_vision = 0;
    if (is(&o, "hbp")) {
        o.micro_batches_per_step = 0;
        if (o.composition == HBP_COMPOSITION_STRATIFIED && !o.samples_per_step)
            o.composition = HBP_COMPOSITION_AUTO;
        return o;
    }
    o.window_samples = 0;
    if (has_own_steps(&o) || is(&o, "flexsp")) {
        o.modality_order = 0;
        if (o.composition != HBP_COMPOSITION_STRATIFIED || !o.samples_per_step)
            o.composition = HBP_COMPOSITION_AUTO;
        return o;
    }
    o.composition = HBP_COMPOSITION_AUTO;
    o.micro_batches_per_step = 0;
    o.curriculum_steps = 0;
    if (o.batches)
        o.samples_per_step = (l->samples + o.batches / 2) / o.batches;
    o.batches = 0;
    if (is(&o, "patterns")) { /* as many tokens as the samples of a step have on average */
        o.tokens_per_step = tokens_of_step(options, l);
        o.samples_per_step = 0;
        o.drop_last = o.modality_order = 0;
    }
    return o;
}

hbp_status epoch_settings_plan(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                               const hbp_epoch_options *options, epoch_setting *best, hbp_plan **out)
{
    search s = {context, lengths, 0, cost, {.struct_size = sizeof s.terms}, *options, 0, 0, 0};
    hbp_lengths_summary l = {.struct_size = sizeof l};
    hbp_lengths *part = NULL;
    hbp_status status = hbp_cost_get_terms(context, cost, &s.terms);
    if (status >= 0)
        status = hbp_lengths_get_summary(context, lengths, &l);
    *best = (epoch_setting){0};
    *out = NULL;
    if (status < 0)
        return status;
    s.tokens_per_step = tokens_of_step(options, &l);
    s.options = keep_contract(options, &l);
    s.has_links = l.has_links != 0;
    options = &s.options;
    s.longest =
        options->max_length && options->max_length < l.max_length ? options->max_length : l.max_length;
    int own = has_own_steps(options), count = s.terms.degrees;
    int is_swept = own || (!is(options, "hbp") && !is(options, "flexsp") && !is(options, "patterns"));
    trial *trials = is_swept && s.tokens_per_step > 0 ? calloc((size_t)count, sizeof *trials) : NULL;
    if (trials) {
        for (int i = 0; i < count; i++)
            trials[i] = (trial){&s,
                                own ? 0 : s.terms.degree[i],
                                own ? s.terms.degree[i] : 0,
                                {.measure = measure, .user = &trials[i]}};
        status = cut_part(&s, &l, &part);
        s.lengths = part ? part : lengths;
        s.is_part = part != NULL;
        if (status >= 0)
            status = sweep_all(&s, lengths, trials, count, best, out);
    }
    hbp_lengths_free(part);
    free(trials);
    if (status < 0 || *out)
        return status;
    return hbp_plan_epoch(context, lengths, cost, options, out);
}
