/* Groups chosen by tokens: checks the options, ranks the published hierarchy, the optimal ones and single
 * levels, and keeps the best with a table of all. hbp_groups_create: groups given by hand. */
#include "base/methods.h"
#include "hbp/pack.h"

#include <string.h>

#include "base/options.h"
#include "base/quantity.h"
#include "base/scratch.h"
#include "cost/shortage.h"
#include "data/lengths/lengths_make.h"
#include "pack/groups/hierarchy.h"
#include "pack/tuning.h"

hbp_status hbp__groups_largest(hbp_context *context, const hbp_lengths *lengths, int64_t multiple,
                               int64_t *tokens, int64_t *vision)
{
    *tokens = hbp__round_up(lengths->bin_length[lengths->bins - 1], multiple);
    *vision = lengths->max_vision;
    if (!lengths->link)
        return HBP_OK;
    int64_t mark = hbp__scratch_mark(context);
    hbp__load *total = hbp__take_zero(context, (uint64_t)lengths->links, sizeof *total);
    HBP__TRY(hbp__scratch_check(context, "the sums of linked samples"));
    for (int64_t i = 0; i < lengths->count; i++) {
        HBP__TRY(hbp__tick_row(context, "groups", i, lengths->count));
        if (lengths->link[i] == HBP__FREE)
            continue;
        hbp__load *sum = &total[lengths->link[i]];
        sum->tokens += hbp__round_up(hbp__lengths_get(lengths, i), multiple);
        sum->vision += hbp__lengths_vision(lengths, i);
        *tokens = hbp__max_i64(*tokens, sum->tokens);
        *vision = hbp__max_i64(*vision, sum->vision);
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

static int64_t power_of_two_from(int64_t length)
{
    int64_t power = 1;
    while (power < length)
        power *= 2;
    return power;
}

/* Refuses samples past a given max_length. */
static hbp_status check_lengths(hbp_context *context, const hbp_lengths *lengths,
                                const hbp_groups_options *options)
{
    int64_t over = 0;
    for (int64_t b = lengths->bins - 1; b >= 0 && lengths->bin_length[b] > options->max_length; b--)
        over += lengths->bin_count[b];
    if (!options->max_length || !over)
        return HBP_OK;
    return hbp__fail(
        context, HBP_E_INVALID,
        "%lld sample%s longer than max_length, %lld tokens; the longest has %lld; limit the lengths "
        "first (over_long drop, truncate or split)",
        (long long)over, over == 1 ? " is" : "s are", (long long)options->max_length,
        (long long)lengths->bin_length[lengths->bins - 1]);
}

/* Refuses packs past HBP_MAX_LENGTH by what asks for them. */
static hbp_status fail_pack(hbp_context *context, const hbp_lengths *lengths, int64_t longest, int64_t pack,
                            const hbp_groups_options *options)
{
    int64_t given = options->max_pack_length ? options->max_pack_length : options->max_length, k = 0;
    if (given)
        return hbp__fail(context, HBP_E_INVALID,
                         "%s is %lld, which takes packs of %lld tokens; they hold at most %d",
                         options->max_pack_length ? "max_pack_length" : "max_length", (long long)given,
                         (long long)pack, HBP_MAX_LENGTH);
    if (lengths->link)
        return hbp__fail(
            context, HBP_E_INVALID,
            "the longest of linked samples together and of single ones have %lld tokens with "
            "padding; packs of a power of two of them take %lld and hold at most %d; give max_length",
            (long long)longest, (long long)pack, HBP_MAX_LENGTH);
    while (k < lengths->count && hbp__lengths_get(lengths, k) < lengths->bin_length[lengths->bins - 1])
        k++;
    if (k == lengths->count)
        return hbp__lengths_changed(context);
    return hbp__fail(context, HBP_E_INVALID,
                     "sample %lld has %lld tokens, which takes packs of a power of two, %lld; they hold at "
                     "most %d; give max_length",
                     (long long)k, (long long)hbp__lengths_get(lengths, k), (long long)pack, HBP_MAX_LENGTH);
}

/* The longest pack of the published rule: as given, or a power of two; HBP_E_INFEASIBLE when max_pack_length,
 * HBP_E_INVALID when max_length is less than the longest item. */
static hbp_status resolve_max_length(hbp_context *context, const hbp_lengths *lengths, int64_t longest,
                                     hbp_groups_options *options)
{
    int64_t pack = options->max_pack_length ? options->max_pack_length : options->max_length;
    if (!pack)
        pack = power_of_two_from(longest);
    if (options->max_pack_length)
        pack = pack / options->pack_multiple * options->pack_multiple;
    else
        pack = hbp__round_up(hbp__round_up(pack, options->sequence_multiple), options->pack_multiple);
    if (pack > HBP_MAX_LENGTH)
        return fail_pack(context, lengths, longest, pack, options);
    options->max_length = pack;
    if (longest <= pack)
        return HBP_OK;
    int is_one = lengths->bin_length[lengths->bins - 1] > pack || !lengths->link;
    if (options->max_pack_length)
        return hbp__fail(
            context, HBP_E_INFEASIBLE, "%s %lld tokens with padding; max_pack_length is %lld (%lld would do)",
            is_one ? "the longest sample has" : "linked samples together have", (long long)longest,
            (long long)options->max_pack_length, (long long)hbp__round_up(longest, options->pack_multiple));
    return hbp__fail(context, HBP_E_INVALID,
                     "linked samples have %lld tokens together; max_length makes packs of %lld",
                     (long long)longest, (long long)pack);
}

hbp_status hbp__groups_lengths(hbp_context *context, const hbp_lengths *lengths, hbp_groups_options *options,
                               int64_t *longest)
{
    if (!options->pack_multiple)
        options->pack_multiple = 1;
    if (!options->sequence_multiple)
        options->sequence_multiple = 1;
    HBP__TRY(check_lengths(context, lengths, options));
    int64_t vision;
    HBP__TRY(hbp__groups_largest(context, lengths, options->sequence_multiple, longest, &vision));
    HBP__TRY(resolve_max_length(context, lengths, *longest, options));
    /* A sample has at most HBP_MAX_LENGTH tokens with padding, so HBP_MAX_SAMPLES of them are no question. */
    int64_t padded;
    if (lengths->count > HBP_MAX_SAMPLES &&
        (!hbp__mul_i64(lengths->count, options->sequence_multiple, &padded) ||
         !hbp__add_i64(padded, lengths->tokens, &padded)))
        return hbp__fail(context, HBP_E_OVERFLOW,
                         "%lld tokens in %lld samples, each padded to a multiple of %lld, may pass 2^63 - 1",
                         (long long)lengths->tokens, (long long)lengths->count,
                         (long long)options->sequence_multiple);
    return HBP_OK;
}

/* Fills in the defaults but for tokens_per_step, and refuses lengths past max_length. `limits` gets what
 * levels may be. */
static hbp_status resolve_options(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                  hbp_groups_options *options, hbp__level_limits *limits, int64_t *longest)
{
    int64_t max_length = options->max_length; /* as given */
    HBP__TRY(hbp__groups_lengths(context, lengths, options, longest));
    int is_paper = hbp__groups_method(options->method) == HBP__GROUPS_HBP;
    int64_t multiple = options->pack_multiple;
    int64_t most = hbp__cost_most_tokens(cost, cost->degree[cost->terms.degrees - 1]);
    most -= most % multiple;
    if (is_paper && !max_length && *longest <= most)
        options->max_length = hbp__min_i64(options->max_length, most);
    if (!options->min_length)
        options->min_length = is_paper ? 8192 : 1024;
    if (!options->max_groups)
        options->max_groups = 6;
    if (!options->step_slack)
        options->step_slack = HBP__GROUPS_SLACK;
    limits->tokens_per_step = options->tokens_per_step;
    limits->pack_multiple = multiple;
    limits->step_slack = hbp__max_i64(0, options->step_slack);
    limits->max_length =
        is_paper || options->max_pack_length ? options->max_length : HBP_MAX_LENGTH / multiple * multiple;
    limits->min_length = hbp__min_i64(options->min_length, limits->max_length);
    limits->tokens_per_rank = options->tokens_per_rank ? options->tokens_per_rank : INT64_MAX;
    /* A step is sized for samples of a given max_length, whichever of them these data have. */
    if (!is_paper && !max_length)
        options->max_length = hbp__round_up(*longest, multiple);
    return HBP_OK;
}

void hbp__groups_price(const hbp_cost *cost, hbp_groups *groups)
{
    for (int64_t g = 0; g < groups->count; g++) {
        hbp__point point = hbp__point_make(cost, hbp__cost_row(cost, groups->sp[g]), groups->recompute[g]);
        groups->token_ns[g] = point.linear;
        groups->square_ns[g] = point.square;
        groups->fixed_ns[g] = point.constant;
    }
}

/* `estimator` tells what the groups hold; NULL for groups made without data. */
static void store_levels(const hbp_cost *cost, int64_t tokens_per_step, const hbp__estimator *estimator,
                         const hbp__hierarchy *hierarchy, hbp_groups *groups)
{
    groups->count = hierarchy->count;
    groups->tokens_per_step = tokens_per_step;
    groups->ranks = cost->terms.ranks;
    int64_t low = 0;
    for (int64_t g = 0; g < hierarchy->count; g++) {
        const hbp__level *level = &hierarchy->level[g];
        int64_t tokens = 0;
        double mean = 0;
        if (estimator) {
            int64_t high = hbp__estimator_bin(estimator, level->threshold);
            tokens = estimator->tokens_before[high] - estimator->tokens_before[low];
            if (tokens)
                mean = (estimator->squares_before[high] - estimator->squares_before[low]) / (double)tokens;
            low = high;
        }
        groups->threshold[g] = level->threshold;
        groups->pack_length[g] = level->pack_length;
        groups->sp[g] = level->sp;
        groups->recompute[g] = level->recompute;
        groups->packs[g] = level->packs;
        groups->micro_batches[g] = level->micro_batches;
        groups->tokens[g] = tokens;
        groups->step_ns[g] =
            hbp__round_i64((double)level->micro_batches * hbp__cost_ns(cost, level->row, level->recompute,
                                                                       (double)level->pack_length,
                                                                       mean * (double)level->pack_length, 0) +
                           cost->terms.step_ns);
    }
    hbp__groups_price(cost, groups);
}

/* What hierarchies are ranked by: the estimate, and a charge for each level. */
static int64_t rank_ns(const hbp__hierarchy *hierarchy, int64_t charge)
{
    return hbp__add_saturating(hierarchy->epoch_ns, hbp__mul_saturating(hierarchy->count, charge));
}

/* Puts a hierarchy into the list, best first, ties in the order they come; one that is there already stays
 * out. */
static void rank_candidate(hbp__hierarchy *list, int64_t *count, const hbp__hierarchy *candidate,
                           int64_t charge)
{
    for (int64_t i = 0; i < *count; i++)
        if (hbp__hierarchy_equals(&list[i], candidate))
            return;
    int64_t at = *count;
    while (at > 0 && rank_ns(&list[at - 1], charge) > rank_ns(candidate, charge))
        at--;
    if (*count == HBP__GROUPS_CANDIDATES)
        --*count;
    if (at >= HBP__GROUPS_CANDIDATES)
        return;
    memmove(list + at + 1, list + at, (size_t)(*count - at) * sizeof *list);
    list[at] = *candidate;
    ++*count;
}

/* The single levels: every sample in packs of the published rule's length, on each degree. What packing
 * without a hierarchy costs. */
static void rank_single_levels(const hbp__estimator *estimator, const hbp__level_limits *limits,
                               int64_t length, hbp__hierarchy *list, int64_t *count, int64_t charge)
{
    for (int32_t row = 0; row < estimator->cost->terms.degrees; row++) {
        hbp__hierarchy single = {1, {{0}}, 0};
        if (!hbp__level_allow(estimator->cost, limits, estimator->cost->degree[row], length, 0,
                              &single.level[0]))
            continue;
        single.level[0].threshold = estimator->size[estimator->bins - 1];
        hbp__hierarchy_estimate(estimator, &single);
        rank_candidate(list, count, &single, charge);
    }
}

/* Why no hierarchy holds the longest item. */
static hbp_status fail_to_hold(hbp_context *context, const hbp__estimator *estimator,
                               const hbp__level_limits *limits)
{
    const hbp_cost *cost = estimator->cost;
    int64_t longest = estimator->size[estimator->bins - 1];
    int64_t length = hbp__round_up(longest, limits->pack_multiple), least = INT64_MAX;
    int64_t per_rank = hbp__cost_least_per_rank(cost, length);
    hbp__level_limits any_step = *limits;
    any_step.tokens_per_step = INT64_MAX;
    for (int32_t row = 0; row < cost->terms.degrees; row++) {
        hbp__level level;
        if (hbp__level_allow(cost, &any_step, cost->degree[row], length, 1, &level))
            least = hbp__min_i64(least, hbp__mul_saturating(level.packs, length));
    }
    if (least < INT64_MAX)
        return hbp__fail(context, HBP_E_INFEASIBLE,
                         "`tokens_per_step` is %lld; with a sample of %lld tokens a step on %d rank%s "
                         "holds at least %lld",
                         (long long)limits->tokens_per_step, (long long)longest, (int)cost->terms.ranks,
                         hbp__ending(cost->terms.ranks), (long long)least);
    if (limits->tokens_per_rank < INT64_MAX && per_rank < INT64_MAX)
        return hbp__fail(
            context, HBP_E_INFEASIBLE,
            "no SP degree holds the longest sample of %lld tokens on %d rank%s with tokens_per_rank %lld "
            "(%lld would do)",
            (long long)longest, (int)cost->terms.ranks, hbp__ending(cost->terms.ranks),
            (long long)limits->tokens_per_rank, (long long)per_rank);
    return hbp__cost_refuse_pack(context, cost, length, "the longest sample");
}

static hbp_status rank_all(hbp_context *context, const hbp__estimator *estimator,
                           const hbp__level_limits *limits, const hbp_groups_options *options,
                           hbp__hierarchy *list, int64_t *count)
{
    hbp__hierarchy paper;
    hbp__level_limits published = *limits;
    published.max_length = options->max_length;
    if (hbp__groups_method(options->method) != HBP__GROUPS_HBP)
        published.min_length = 8192;
    hbp_status paper_status = hbp__groups_paper(context, estimator, &published, &paper);
    if (hbp__groups_method(options->method) == HBP__GROUPS_HBP || paper_status != HBP_E_INFEASIBLE)
        HBP__TRY(paper_status);
    hbp__forgive(context);
    int64_t optima = HBP__GROUPS_OPTIMA;
    hbp__hierarchy *optimal = list + HBP__GROUPS_CANDIDATES + 1;
    HBP__TRY(hbp__groups_optimal(context, estimator, limits, options->max_groups, optimal, &optima));
    HBP__TRY(hbp__tick(context, "groups", 1, 2));
    int64_t charge = optima ? optimal[0].epoch_ns / HBP__GROUPS_LEVEL_SHARE : 0;
    for (int64_t i = 0; i < optima; i++)
        rank_candidate(list, count, &optimal[i], charge);
    if (paper_status == HBP_OK &&
        (hbp__groups_method(options->method) == HBP__GROUPS_HBP || paper.count <= options->max_groups))
        rank_candidate(list, count, &paper, charge);
    rank_single_levels(estimator, limits, options->max_length, list, count, charge);
    if (hbp__groups_method(options->method) == HBP__GROUPS_HBP) {
        /* What was asked for comes first. */
        int64_t at = 0;
        while (at < *count - 1 && !hbp__hierarchy_equals(&list[at], &paper))
            at++;
        memmove(list + 1, list, (size_t)at * sizeof *list);
        list[0] = paper;
    }
    return HBP_OK;
}

/* Row `i` of the table of candidates. */
static void write_candidate(const hbp__estimator *estimator, const hbp__hierarchy *hierarchy, int64_t i,
                            hbp_groups *groups)
{
    hbp__candidate *c = &groups->candidate[i];
    int64_t low = 0;
    c->count = hierarchy->count;
    c->epoch_ns = groups->candidate_ns[i] = hierarchy->epoch_ns;
    for (int64_t g = 0; g < hierarchy->count; g++) {
        const hbp__level *level = &hierarchy->level[g];
        int64_t high = hbp__estimator_bin(estimator, level->threshold);
        c->threshold[g] = level->threshold;
        c->pack_length[g] = level->pack_length;
        c->sp[g] = level->sp;
        c->recompute[g] = level->recompute;
        c->micro_batches[g] = level->micro_batches;
        c->tokens[g] = estimator->tokens_before[high] - estimator->tokens_before[low];
        low = high;
    }
    hbp__groups_describe(c->pack_length, c->sp, c->count, groups->candidate_text[i]);
}

static hbp_status choose_hierarchy(hbp_context *context, const hbp__estimator *estimator,
                                   const hbp__level_limits *limits, const hbp_groups_options *options,
                                   hbp__hierarchy *list, hbp_groups **out)
{
    int64_t count = 0;
    HBP__TRY(rank_all(context, estimator, limits, options, list, &count));
    if (!count)
        return fail_to_hold(context, estimator, limits);
    hbp_groups *groups = hbp__groups_new(&context->memory, count);
    if (!groups)
        return hbp__fail_memory(context, "the groups");
    store_levels(estimator->cost, limits->tokens_per_step, estimator, &list[0], groups);
    /* The others by their times alone: what is charged for levels only decides which is chosen. */
    for (int64_t i = 2; i < count; i++) {
        hbp__hierarchy one = list[i];
        int64_t at = i;
        for (; at > 1 && list[at - 1].epoch_ns > one.epoch_ns; at--)
            list[at] = list[at - 1];
        list[at] = one;
    }
    for (int64_t i = 0; i < count; i++)
        write_candidate(estimator, &list[i], i, groups);
    *out = groups;
    return HBP_OK;
}

static hbp_status choose_groups(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                const hbp_groups_options *options, hbp_groups **out)
{
    hbp_groups_options all;
    HBP__TRY(hbp__options_read(context, &all, sizeof all, options, "hbp_groups_options"));
    int64_t longest;
    const hbp_cost capped = hbp__cost_capped(cost, all.tokens_per_rank);
    hbp__level_limits limits;
    HBP__TRY(resolve_options(context, lengths, &capped, &all, &limits, &longest));
    HBP__TRY(hbp__tick(context, "groups", 0, 2));
    if (!limits.tokens_per_step)
        HBP__TRY(hbp__groups_step_tokens(context, lengths, &capped, &all, &limits, longest,
                                         &limits.tokens_per_step));
    hbp__estimator estimator;
    HBP__TRY(hbp__estimator_open(context, lengths, &capped, all.sequence_multiple, &estimator));
    hbp__hierarchy *list = hbp__take(context, HBP__GROUPS_CANDIDATES + 1 + HBP__GROUPS_OPTIMA, sizeof *list);
    HBP__TRY(hbp__scratch_check(context, "the table of hierarchies"));
    return choose_hierarchy(context, &estimator, &limits, &all, list, out);
}

hbp_status hbp__groups_choose(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                              const hbp_groups_options *options, hbp_groups **out)
{
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, choose_groups(context, lengths, cost, options, out));
}

hbp_status hbp__groups_candidate(hbp_context *context, const hbp_cost *cost, const hbp_groups *groups,
                                 int64_t index, hbp_groups **out)
{
    const hbp__candidate *c = &groups->candidate[index];
    hbp__hierarchy hierarchy = {c->count, {{0}}, c->epoch_ns};
    hbp_groups *made = hbp__groups_new(&context->memory, 1);
    if (!made)
        return hbp__fail_memory(context, "the groups");
    for (int64_t g = 0; g < c->count; g++) {
        hbp__level *level = &hierarchy.level[g];
        *level = (hbp__level){c->threshold[g],    c->pack_length[g],
                              c->sp[g],           hbp__cost_row(cost, c->sp[g]),
                              c->recompute[g],    cost->terms.ranks / c->sp[g],
                              c->micro_batches[g]};
    }
    store_levels(cost, groups->tokens_per_step, NULL, &hierarchy, made);
    memcpy(made->tokens, c->tokens, sizeof c->tokens);
    made->candidate[0] = *c;
    made->candidate_ns[0] = c->epoch_ns;
    memcpy(made->candidate_text[0], groups->candidate_text[index], HBP__CANDIDATE_TEXT);
    *out = made;
    return HBP_OK;
}

/* One row given by hand, as a level; its layers are checked, or chosen when negative. */
static hbp_status given_level(hbp_context *context, const hbp_cost *cost, int64_t tokens_per_step,
                              int64_t row, int64_t pack_length, int32_t sp, int32_t recompute,
                              hbp__level *level)
{
    if (pack_length < 1 || pack_length > HBP_MAX_LENGTH)
        return hbp__fail(context, HBP_E_INVALID, "group %lld: pack length %lld; it must be in 1..%d",
                         (long long)row, (long long)pack_length, HBP_MAX_LENGTH);
    if (hbp__cost_row(cost, sp) < 0)
        return hbp__fail(context, HBP_E_INVALID,
                         "group %lld: SP degree %d is not allowed on this model and machine", (long long)row,
                         (int)sp);
    if (recompute > cost->terms.layers)
        return hbp__fail(context, HBP_E_INVALID, "group %lld: %d layers to recompute of %d", (long long)row,
                         (int)recompute, (int)cost->terms.layers);
    if (pack_length > hbp__cost_most_tokens(cost, sp))
        return hbp__fail(
            context, HBP_E_INFEASIBLE,
            "group %lld: a pack of %lld tokens on %d rank%s passes tokens_per_rank, which is %lld; %lld "
            "would do",
            (long long)row, (long long)pack_length, (int)sp, hbp__ending(sp),
            (long long)cost->tokens_per_rank, (long long)hbp__ceil_div(pack_length, sp));
    if (!hbp__level_make(cost, tokens_per_step, sp, pack_length, 0, level))
        return hbp__fail(context, HBP_E_INFEASIBLE,
                         "group %lld: a pack of %lld tokens does not fit on %d rank%s, even with every layer "
                         "recomputed",
                         (long long)row, (long long)pack_length, (int)sp, hbp__ending(sp));
    if (recompute >= 0) {
        level->recompute = recompute;
        int64_t bytes = hbp__cost_pack_bytes(cost, level->row, recompute, (hbp__load){.tokens = pack_length});
        if (bytes > cost->terms.limit_bytes)
            return hbp__fail(
                context, HBP_E_INFEASIBLE,
                "group %lld: a pack of %lld tokens needs %s a rank with %d layers recomputed; a rank has "
                "%s, %s short",
                (long long)row, (long long)pack_length, hbp__say_bytes(bytes).text, (int)recompute,
                hbp__say_bytes(cost->terms.limit_bytes).text,
                hbp__say_bytes(bytes - cost->terms.limit_bytes).text);
    }
    level->threshold = pack_length;
    return HBP_OK;
}

hbp_status hbp__groups_create(hbp_context *context, const hbp_cost *cost, int64_t count,
                              const int64_t *pack_length, const int32_t *sp, const int32_t *recompute,
                              int64_t tokens_per_step, hbp_groups **out)
{
    HBP__TRY(hbp__require(context, cost, "cost"));
    HBP__TRY(hbp__require(context, pack_length, "pack_length"));
    HBP__TRY(hbp__require(context, sp, "sp"));
    if (count < 1 || count > HBP_MAX_GROUPS)
        return hbp__fail(context, HBP_E_INVALID, "%lld groups; there must be 1..%d", (long long)count,
                         HBP_MAX_GROUPS);
    if (tokens_per_step < 0)
        return hbp__fail(context, HBP_E_INVALID, "`tokens_per_step` is %lld", (long long)tokens_per_step);
    /* Without a number: what the largest micro-batch holds. */
    int64_t step_tokens = tokens_per_step;
    for (int64_t g = 0; g < count && !tokens_per_step; g++)
        if (sp[g] > 0 && pack_length[g] > 0)
            step_tokens =
                hbp__max_i64(step_tokens, hbp__mul_saturating(pack_length[g], cost->terms.ranks / sp[g]));
    hbp__hierarchy hierarchy = {count, {{0}}, 0};
    for (int64_t g = 0; g < count; g++) {
        if (g && pack_length[g] <= pack_length[g - 1])
            return hbp__fail(context, HBP_E_INVALID,
                             "group %lld: pack length %lld is not above the %lld before it", (long long)g,
                             (long long)pack_length[g], (long long)pack_length[g - 1]);
        hbp__level *level = &hierarchy.level[g];
        HBP__TRY(given_level(context, cost, step_tokens, g, pack_length[g], sp[g],
                             recompute ? recompute[g] : -1, level));
        if (level->pack_length > step_tokens / level->packs)
            return hbp__fail(
                context, HBP_E_INVALID,
                "group %lld: %lld packs of %lld tokens in a micro-batch; tokens_per_step is %lld",
                (long long)g, (long long)level->packs, (long long)level->pack_length, (long long)step_tokens);
    }
    hbp_groups *groups = hbp__groups_new(&context->memory, 1);
    if (!groups)
        return hbp__fail_memory(context, "the groups");
    store_levels(cost, step_tokens, NULL, &hierarchy, groups);
    hbp__groups_describe(groups->pack_length, groups->sp, count, groups->candidate_text[0]);
    *out = groups;
    return HBP_OK;
}

hbp_status hbp_groups_create(hbp_context *context, const hbp_cost *cost, int64_t count,
                             const int64_t *pack_length, const int32_t *sp, const int32_t *recompute,
                             int64_t tokens_per_step, hbp_groups **out)
{
    HBP__ENTER_OUT(context, out);
    return hbp__groups_create(context, cost, count, pack_length, sp, recompute, tokens_per_step, out);
}
