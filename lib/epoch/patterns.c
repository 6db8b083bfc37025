/* An epoch by patterns. Input: a histogram, a cost, options. Output: groups, patterns of packs, steps by
 * rule. Packs of nearly one time stand side by side, so that a micro-batch waits for next to nothing: cutting
 * packs in order of time makes the sum over micro-batches of their slowest packs least, and a stretch of the
 * order is one part in HBP__PATTERN_TIME_CLASSES wide. O(patterns log patterns) beside the fill, with
 * lockstep sets O(packs log patterns). */
#include "epoch/patterns.h"

#include "base/methods.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "cost/cost.h"
#include "cost/straight.h"
#include "data/lengths/length_deal.h"
#include "epoch/bound.h"
#include "epoch/choose.h"
#include "epoch/thin.h"
#include "epoch/tuning.h"

typedef struct drafting {
    const hbp__epoch *epoch;
    const hbp_groups *groups;
    hbp__padding padding;
    hbp__patterns patterns[HBP_MAX_GROUPS]; /* of bins */
    uint32_t *order[HBP_MAX_GROUPS]; /* [patterns of the group] those that take longest first; scratch */
    int64_t *ns[HBP_MAX_GROUPS];     /* [patterns of the group] of a pack; scratch */
    int64_t stretches;
    hbp_pattern_plan *plan;
} drafting;

static hbp_status check_lengths(const hbp__epoch *epoch)
{
    const hbp_lengths *lengths = epoch->lengths;
    const int64_t longest = lengths->bin_length[lengths->bins - 1], limit = epoch->options.tokens_per_step;
    const char *what = lengths->link ? "links" : lengths->vision ? "a second size" : NULL;
    if (what)
        return hbp__fail(epoch->context, HBP_E_INVALID,
                         "the lengths have %s; a plan by patterns knows a sample by its length alone", what);
    if (limit && longest > limit && lengths->tokens > limit)
        return hbp__fail(epoch->context, HBP_E_INVALID,
                         "the longest sample has %lld tokens; tokens_per_step is %lld", (long long)longest,
                         (long long)limit);
    return HBP_OK;
}

/* Bins of the fewest packs that stand for whole micro-batches: packs of a bin come out alike. Both numbers
 * are mostly powers of two. */
static int64_t bin_packs(int64_t packs, int64_t times)
{
    int64_t divisor = packs;
    for (int64_t rest = times; rest;) {
        const int64_t next = divisor % rest;
        divisor = rest;
        rest = next;
    }
    return packs / divisor;
}

/* Packs of few samples for many, by the fill of epochs. */
static hbp_status fill_packs(drafting *d)
{
    const hbp__epoch *epoch = d->epoch;
    hbp__thin thin;
    hbp_packs *packs = NULL;
    hbp_fill_options fill;
    hbp_groups narrow = *d->groups; /* borrows its table */
    hbp__epoch_fill_options(&epoch->options, &fill);
    hbp_status status = hbp__thin_open(epoch->context, epoch->lengths, HBP__PATTERN_SAMPLES, &thin);
    for (int64_t g = 0; status >= 0 && g < narrow.count; g++)
        narrow.packs[g] = bin_packs(narrow.packs[g], thin.times);
    if (status >= 0)
        status = hbp__epoch_fill(epoch, thin.few, &narrow, &fill, &packs);
    if (status >= 0) {
        d->padding = packs->padding;
        status = hbp__thin_patterns(&thin, packs, d->patterns);
    }
    hbp_packs_free(packs);
    hbp__thin_close(&thin);
    return status;
}

/* The sums of pattern p of group g. */
static hbp__pack_sums sum_pattern(const drafting *d, int64_t g, int64_t p)
{
    const hbp__patterns *patterns = &d->patterns[g];
    const int64_t sp = d->groups->sp[g],
                  multiple = hbp__padding_multiple(d->padding.sequence_multiple,
                                                   d->padding.sequence_multiple_per_sp, sp);
    hbp__pack_sums sums = {0};
    for (int64_t k = patterns->offsets[p]; k < patterns->offsets[p + 1]; k++) {
        const int64_t length = d->epoch->lengths->bin_length[patterns->run[k].class_index],
                      number = patterns->run[k].number;
        sums.tokens += number * length;
        sums.padded += number * hbp__round_up(length, multiple);
        sums.squares += number * length * length;
    }
    sums.padded = hbp__round_up(
        sums.padded, hbp__padding_multiple(d->padding.pack_multiple, d->padding.pack_multiple_per_sp, sp));
    return sums;
}

static hbp__load load_of(const hbp__pack_sums *sums)
{
    return (hbp__load){.tokens = sums->padded, .squares = (double)sums->squares};
}

/* The packs of a group in the order of its patterns, walked pattern by pattern: where stretches begin. */
typedef struct stretching {
    int64_t width;   /* packs of a micro-batch */
    int64_t longest; /* ns of the group's slowest pack */
    int64_t packs;   /* so far */
    int64_t class;   /* of time, of the pattern before; -1: none */
    int64_t begun;   /* packs before the stretch begun last; -1: none */
} stretching;

/* Whether a stretch begins with a pattern of `times` packs of `ns`, at the micro-batch that its first pack is
 * in: *first packs of the group are before it. */
static int begins_stretch(stretching *s, int64_t ns, int64_t times, int64_t *first)
{
    const int64_t class = (s->longest - ns) / (s->longest / HBP__PATTERN_TIME_CLASSES + 1);
    *first = s->packs - s->packs % s->width;
    const int begins = class != s->class && *first != s->begun;
    s->class = class;
    s->packs += times;
    if (begins)
        s->begun = *first;
    return begins;
}

static stretching stretch_group(const drafting *d, int64_t g)
{
    return (stretching){d->epoch->bending->terms.ranks / d->groups->sp[g],
                        d->patterns[g].count ? d->ns[g][d->order[g][0]] : 0, 0, -1, -1};
}

/* Orders the patterns of group g by what their packs take, and counts its stretches. */
static hbp_status order_group(drafting *d, int64_t g)
{
    hbp_context *context = d->epoch->context;
    const hbp_cost *cost = d->epoch->bending;
    const int64_t count = d->patterns[g].count;
    const int32_t row = hbp__cost_row(cost, d->groups->sp[g]), recompute = d->groups->recompute[g];
    uint32_t *order = d->order[g] = hbp__take(context, (uint64_t)count, sizeof *order);
    int64_t *ns = d->ns[g] = hbp__take(context, (uint64_t)count, sizeof *ns), first;
    HBP__TRY(hbp__scratch_check(context, "the order of patterns"));
    for (int64_t p = 0; p < count; p++) {
        HBP__TRY(hbp__tick_row(context, "patterns", p, count));
        const hbp__pack_sums sums = sum_pattern(d, g, p);
        order[p] = (uint32_t)p;
        ns[p] = -hbp__cost_pack_ns(cost, row, recompute, load_of(&sums));
    }
    HBP__TRY(hbp__order_by_i64(context, ns, order, count, "the order of patterns"));
    for (int64_t p = 0; p < count; p++)
        ns[p] = -ns[p];
    stretching s = stretch_group(d, g);
    for (int64_t i = 0; i < count; i++)
        d->stretches += begins_stretch(&s, ns[order[i]], d->patterns[g].times[order[i]], &first);
    return HBP_OK;
}

/* An empty plan of the patterns that there are. */
static hbp_status open_plan(drafting *d)
{
    int64_t patterns = 0, runs = 0;
    for (int64_t g = 0; g < d->groups->count; g++) {
        patterns += d->patterns[g].count;
        runs += d->patterns[g].count ? d->patterns[g].offsets[d->patterns[g].count] : 0;
    }
    d->plan = hbp__pattern_plan_new(&d->epoch->context->memory, d->groups->count, d->stretches, patterns,
                                    runs, d->epoch->lengths->bins);
    return d->plan ? HBP_OK : hbp__fail_memory(d->epoch->context, "the plan by patterns");
}

static void set_numbers(drafting *d)
{
    const hbp_lengths *lengths = d->epoch->lengths;
    const hbp_cost *cost = d->epoch->bending;
    const hbp_epoch_options *o = &d->epoch->options;
    hbp_pattern_plan *plan = d->plan;
    plan->ranks = cost->terms.ranks;
    plan->domain_ranks = cost->terms.domain_ranks;
    plan->lockstep_ranks = cost->terms.lockstep_ranks;
    plan->shifted_loss = lengths->shifted_loss;
    plan->is_bare = hbp__lengths_are_bare(lengths);
    plan->sequence_multiple = d->padding.sequence_multiple;
    plan->pack_multiple = d->padding.pack_multiple;
    plan->sequence_multiple_per_sp = d->padding.sequence_multiple_per_sp;
    plan->pack_multiple_per_sp = d->padding.pack_multiple_per_sp;
    plan->micro_batch_multiple = hbp__max_i64(1, o->micro_batch_multiple);
    plan->step_ns = hbp__round_i64(cost->terms.step_ns);
    plan->padding_ns = hbp__cost_padding_ns(cost);
    plan->loss_tokens = lengths->loss_tokens;
    plan->overlong_samples = lengths->overlong_samples;
    plan->overlong_tokens = lengths->overlong_tokens;
    plan->dropped = lengths->dropped;
    plan->seed = o->seed;
    plan->epoch = o->epoch;
    plan->lengths_digest = lengths->digest;
    plan->histogram_digest = hbp__histogram_digest(lengths);
    for (int64_t i = 0; i < lengths->bins; i++) {
        plan->length_tokens[i] = lengths->bin_length[i];
        plan->length_samples[i] = lengths->bin_count[i];
    }
}

/* Writes pattern p of group g as the plan's next. */
static void write_pattern(const drafting *d, int64_t g, int64_t p, int64_t *pattern, int64_t *run)
{
    const hbp__patterns *patterns = &d->patterns[g];
    const hbp_cost *cost = d->epoch->bending;
    const hbp__pack_sums sums = sum_pattern(d, g, p);
    const int32_t row = hbp__cost_row(cost, d->groups->sp[g]), recompute = d->groups->recompute[g];
    hbp_pattern_plan *plan = d->plan;
    const int64_t to = (*pattern)++;
    plan->pattern_first_packs[to + 1] = plan->pattern_first_packs[to] + patterns->times[p];
    plan->pattern_ns[to] = d->ns[g][p];
    plan->pattern_bytes[to] = hbp__cost_pack_bytes(cost, row, recompute, load_of(&sums));
    plan->pattern_tokens[to] = sums.tokens;
    plan->pattern_padded_tokens[to] = sums.padded;
    plan->pattern_squares[to] = sums.squares;
    for (int64_t k = patterns->offsets[p]; k < patterns->offsets[p + 1]; k++, ++*run) {
        plan->run_lengths[*run] = patterns->run[k].class_index;
        plan->run_numbers[*run] = patterns->run[k].number;
        plan->pattern_samples[to] += patterns->run[k].number;
    }
    plan->pattern_offsets[to + 1] = *run;
}

static hbp_status write_group(const drafting *d, int64_t g, int64_t *pattern, int64_t *run, int64_t *stretch)
{
    hbp_pattern_plan *plan = d->plan;
    const hbp__patterns *patterns = &d->patterns[g];
    const int64_t packs = plan->pattern_first_packs[*pattern];
    stretching s = stretch_group(d, g);
    for (int64_t k = 0; k < patterns->count; k++) {
        const uint32_t p = d->order[g][k];
        int64_t first;
        HBP__TRY(hbp__tick_row(d->epoch->context, "patterns", k, patterns->count));
        if (begins_stretch(&s, d->ns[g][p], patterns->times[p], &first))
            plan->stretch_first_packs[(*stretch)++] = packs + first;
        write_pattern(d, g, p, pattern, run);
    }
    return HBP_OK;
}

/* Groups from the longest on, then what their packs hold and which samples of a length that is. */
static hbp_status write_patterns(const drafting *d)
{
    hbp_context *context = d->epoch->context;
    hbp_pattern_plan *plan = d->plan;
    const hbp_cost *cost = d->epoch->bending;
    int64_t pattern = 0, run = 0, stretch = 0;
    for (int64_t i = 0, g = d->groups->count - 1; g >= 0; i++, g--) {
        plan->group_pack_lengths[i] = d->groups->pack_length[g];
        plan->group_sp[i] = d->groups->sp[g];
        plan->group_recompute[i] = d->groups->recompute[g];
        plan->group_padding_bytes[i] = hbp__cost_pack_bytes(cost, hbp__cost_row(cost, d->groups->sp[g]),
                                                            d->groups->recompute[g], (hbp__load){0});
        HBP__TRY(write_group(d, g, &pattern, &run, &stretch));
        plan->group_first_patterns[i + 1] = pattern;
        plan->group_first_stretches[i + 1] = stretch;
        plan->group_first_units[i + 1] = plan->group_first_units[i] + hbp__pattern_group_units(plan, i);
    }
    plan->stretch_first_packs[stretch] = plan->pattern_first_packs[pattern];
    const int64_t mark = hbp__scratch_mark(context);
    int64_t *used = hbp__take_zero(context, (uint64_t)plan->lengths, sizeof *used);
    HBP__TRY(hbp__scratch_check(context, "the plan by patterns"));
    for (int64_t p = 0; p < plan->patterns; p++)
        for (int64_t r = plan->pattern_offsets[p]; r < plan->pattern_offsets[p + 1]; r++) {
            const int64_t times = plan->pattern_first_packs[p + 1] - plan->pattern_first_packs[p];
            plan->run_firsts[r] = used[plan->run_lengths[r]];
            used[plan->run_lengths[r]] += times * plan->run_numbers[r];
        }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

/* A number of steps that keeps to the tokens of one, where one fewer does not: units are taken for the
 * largest of their stretch. More steps have smaller strata, but for what two groups share of one. */
static hbp_status choose_steps(const drafting *d)
{
    hbp_pattern_plan *plan = d->plan;
    const int64_t units = hbp__pattern_units(plan), limit = plan->tokens_per_step;
    hbp__pattern_sizes sizes;
    HBP__TRY(hbp__pattern_sizes_open(d->epoch->context, plan, &sizes));
    if (hbp__pattern_step_tokens(plan, &sizes, units) > limit)
        return hbp__fail(d->epoch->context, HBP_E_INFEASIBLE,
                         "%lld micro-batch%s of a group hold%s up to %lld tokens; tokens_per_step is %lld",
                         (long long)plan->micro_batch_multiple, plan->micro_batch_multiple == 1 ? "" : "es",
                         plan->micro_batch_multiple == 1 ? "s" : "",
                         (long long)hbp__pattern_step_tokens(plan, &sizes, units), (long long)limit);
    int64_t low = 0, high = units; /* high keeps to them */
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (hbp__pattern_step_tokens(plan, &sizes, middle) <= limit)
            high = middle;
        else
            low = middle;
    }
    plan->steps = sizes.all <= limit ? 1 : high;
    return HBP_OK;
}

static hbp_status set_bounds(const drafting *d)
{
    hbp_pattern_plan *plan = d->plan;
    HBP__TRY(hbp__epoch_bound(d->epoch, plan->tokens_per_step, 1, &plan->bound_ns));
    HBP__TRY(hbp__epoch_bound(d->epoch, 0, 1, &plan->free_bound_ns));
    plan->bound_ns = hbp__max_i64(plan->bound_ns, plan->free_bound_ns);
    return HBP_OK;
}

static hbp_status draft(drafting *d)
{
    hbp_pattern_plan *plan;
    HBP__TRY(fill_packs(d));
    for (int64_t g = 0; g < d->groups->count; g++)
        HBP__TRY(order_group(d, g));
    HBP__TRY(open_plan(d));
    plan = d->plan;
    set_numbers(d);
    HBP__TRY(write_patterns(d));
    HBP__TRY(hbp__epoch_choose_tokens(d->epoch, &plan->tokens_per_step));
    HBP__TRY(choose_steps(d));
    HBP__TRY(set_bounds(d));
    HBP__TRY(hbp__pattern_plan_predict(d->epoch->context, plan, &plan->predicted_ns));
    if (hbp__pattern_plan_waiting_ns(plan) == INT64_MAX)
        return hbp__fail(d->epoch->context, HBP_E_OVERFLOW, "the predicted time passes 2^63 ns");
    plan->digest = hbp__pattern_plan_digest(plan);
    return HBP_OK;
}

/* Groups for steps of so many tokens (0: any), that hold the padding of the widest degree where those chosen
 * do not. */
static hbp_status choose_groups(const hbp__epoch *epoch, int is_widest, int64_t tokens_per_step,
                                hbp_groups **out)
{
    hbp_groups_options options;
    if (is_widest)
        hbp__epoch_widest_options(epoch, &options);
    else
        hbp__epoch_groups_options(&epoch->options, &options);
    options.tokens_per_step = tokens_per_step;
    return hbp__epoch_plan_groups(epoch, &options, out);
}

static hbp_status plan_with_groups(const hbp__epoch *epoch, const hbp_groups *groups, hbp_pattern_plan **out)
{
    hbp__epoch own = *epoch;
    drafting d = {.epoch = &own, .groups = groups};
    own.groups = groups;
    for (int64_t g = 0; g < groups->count; g++)
        hbp__patterns_open(epoch->context, &d.patterns[g]);
    hbp_status status = draft(&d);
    for (int64_t g = 0; g < groups->count; g++)
        hbp__patterns_close(&d.patterns[g]);
    if (status < 0)
        hbp_pattern_plan_free(d.plan);
    else
        *out = d.plan;
    return status;
}

hbp_status hbp__epoch_plan_patterns(hbp__epoch *epoch, hbp_pattern_plan **out)
{
    const hbp_epoch_options *o = &epoch->options;
    const int64_t limit = o->tokens_per_step, multiple = hbp__max_i64(1, o->micro_batch_multiple);
    HBP__TRY(check_lengths(epoch));
    if (epoch->groups)
        return plan_with_groups(epoch, epoch->groups, out);
    const int depends = o->sequence_multiple_per_sp || o->pack_multiple_per_sp;
    /* A step has room for a multiple of micro-batches, and one for each of it, of full packs; packs that are
     * not full may fit where these do not. */
    const int64_t room[] = {hbp__max_i64(1, limit / multiple), limit, 0};
    const int any = !limit || epoch->lengths->tokens <= limit;
    hbp_status status = HBP_OK;
    for (int i = any ? 2 : multiple == 1; i < 3; i++)
        for (int is_widest = 0; is_widest <= depends; is_widest++) {
            hbp_groups *groups = NULL;
            hbp__forgive(epoch->context);
            status = choose_groups(epoch, is_widest, room[i], &groups);
            if (status >= 0)
                status = plan_with_groups(epoch, groups, out);
            hbp_groups_free(groups);
            if (status != HBP_E_INFEASIBLE)
                return status;
        }
    return status;
}

/* What a listed plan is made from. */
typedef struct source {
    const hbp__epoch *epoch;
    hbp_pattern_plan *patterns;
    uint32_t *order; /* [samples] NULL: yet to be dealt */
} source;

enum { PLAN, DEAL, SOURCES };

static hbp_status make_source(hbp_context *context, void *user, int64_t job)
{
    source *s = user;
    hbp__epoch own = *s->epoch;
    own.context = context;
    return job == PLAN ? hbp__epoch_plan_patterns(&own, &s->patterns)
                       : hbp__lengths_deal(context, own.lengths, s->order);
}

/* Samples are put in order of length while the patterns are planned, where there is a thread for it and the
 * plan is listed in any case. */
static hbp_status make_sources(source *s, int is_listed)
{
    hbp_context *context = s->epoch->context;
    const hbp_lengths *lengths = s->epoch->lengths;
    const int32_t threads = hbp__threads(context, s->epoch->options.threads);
    if (is_listed && threads > 1 && lengths->length && lengths->count > HBP__DEALT_ALONE)
        s->order = hbp__new(&context->memory, (uint64_t)lengths->count, sizeof *s->order);
    return s->order ? hbp__parallel(context, threads, SOURCES, make_source, s)
                    : make_source(context, s, PLAN);
}

hbp_status hbp__epoch_list_patterns(hbp__epoch *epoch, int64_t most_ns, hbp_plan **out)
{
    source s = {.epoch = epoch};
    hbp_status status = make_sources(&s, most_ns == INT64_MAX);
    if (status >= 0 && s.patterns->predicted_ns <= most_ns)
        status = hbp__pattern_plan_list(epoch->context, s.patterns, epoch->lengths, s.order,
                                        epoch->options.threads, out);
    hbp_pattern_plan_free(s.patterns);
    hbp__delete(&epoch->context->memory, s.order);
    return status;
}

int hbp__epoch_suits_patterns(const hbp__epoch *epoch)
{
    const hbp_epoch_options *o = &epoch->options;
    const int is_free = o->composition == HBP_COMPOSITION_AUTO && !o->mixture_slack && !o->samples_per_step &&
                        !o->batches && !o->window_samples && !o->curriculum_steps && !o->max_groups &&
                        !o->step_slack;
    const int is_plain = !o->modality_order && !o->drop_last && !o->max_vision &&
                         !o->micro_batches_per_step && !o->equal_samples && !epoch->lengths->link &&
                         !epoch->lengths->vision;
    return is_free && is_plain && epoch->lengths->count > HBP__SEARCHED_SAMPLES;
}
