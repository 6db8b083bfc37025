/* A plan against what it was made from. The columns by themselves are data/plan/plan_check.c's. */
#include "simulate/plan/validate.h"

#include <stdio.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "cost/cost.h"
#include "data/lengths/lengths.h"
#include "data/lengths/lengths_make.h"
#include "data/plan/lockstep.h"

#define TICK_ROWS 32768

/* Which pieces of the data set have been met; a piece is a sample, or a part of one that was split. */
typedef struct roll {
    hbp_context *context;
    const hbp_plan *plan;
    const hbp_lengths *lengths;
    int has_second;      /* there are vision units or kinds to compare */
    unsigned char *seen; /* a bit for each piece */
    int64_t *link_pack;  /* [links] 1 + the pack of the link's samples, 0 before the first */
    uint32_t *
        left; /* [count] rows of what no pack took, at the piece or the first of a sample; NULL without any */
} roll;

static int is_seen(const roll *r, int64_t piece)
{
    return r->seen[piece / 8] >> piece % 8 & 1;
}

static int64_t id_of(const hbp_lengths *lengths, int64_t piece)
{
    return lengths->origin ? lengths->origin[piece] : piece;
}

/* The piece of sample `id` that begins at token `first`, or -1. Pieces are in order of sample and token.
 * O(log pieces). */
static int64_t find_piece(const hbp_lengths *lengths, int64_t id, int64_t first)
{
    int64_t low = 0, high = lengths->count;
    if (!lengths->origin)
        return id < lengths->count && first == 0 ? id : -1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        int64_t origin = lengths->origin[middle], begin = lengths->first ? lengths->first[middle] : 0;
        if (origin < id || (origin == id && begin < first))
            low = middle + 1;
        else
            high = middle;
    }
    int64_t begin = low < lengths->count && lengths->first ? lengths->first[low] : 0;
    return low < lengths->count && lengths->origin[low] == id && begin == first ? low : -1;
}

static int64_t first_token(const hbp_plan *plan, int64_t row)
{
    return plan->sample_first_tokens ? plan->sample_first_tokens[row] : 0;
}

static hbp_status check_number(const roll *r, int64_t id, const char *what, int64_t value, int64_t right)
{
    if (value == right)
        return HBP_OK;
    return hbp__fail(r->context, HBP_E_INVALID, "sample %lld has %lld %s in the plan and %lld in the lengths",
                     (long long)id, (long long)value, what, (long long)right);
}

/* Vision units and kind of a row. */
static hbp_status check_second_size(const roll *r, int64_t row, int64_t piece)
{
    const hbp_plan *plan = r->plan;
    const hbp_lengths *lengths = r->lengths;
    int64_t id = plan->sample_ids[row];
    HBP__TRY(check_number(r, id, "vision units", plan->sample_vision ? plan->sample_vision[row] : 0,
                          hbp__lengths_vision(lengths, piece)));
    if (plan->sample_modalities && plan->sample_modalities[row] != hbp__lengths_modality(lengths, piece))
        return hbp__fail(r->context, HBP_E_INVALID,
                         "sample %lld is of modality %d in the plan and of modality %d in the lengths",
                         (long long)id, (int)plan->sample_modalities[row],
                         (int)hbp__lengths_modality(lengths, piece));
    return HBP_OK;
}

static hbp_status check_row(roll *r, int64_t pack, int64_t row)
{
    const hbp_plan *plan = r->plan;
    const hbp_lengths *lengths = r->lengths;
    int64_t id = plan->sample_ids[row], first = first_token(plan, row);
    int64_t piece = find_piece(lengths, id, first), tokens = plan->sample_tokens[row];
    if (piece < 0)
        return hbp__fail(r->context, HBP_E_INVALID,
                         "pack %lld holds sample %lld from token %lld; the lengths have no such sample",
                         (long long)pack, (long long)id, (long long)first);
    if (is_seen(r, piece))
        return hbp__fail(r->context, HBP_E_INVALID,
                         "sample %lld from token %lld is in the plan twice, the second time in pack %lld",
                         (long long)id, (long long)first, (long long)pack);
    r->seen[piece / 8] |= (unsigned char)(1 << piece % 8);
    int64_t length = hbp__lengths_get(lengths, piece);
    HBP__TRY(check_number(r, id, "tokens", tokens, length));
    HBP__TRY(check_number(r, id, "loss tokens",
                          plan->sample_loss_tokens ? plan->sample_loss_tokens[row] : tokens,
                          hbp__lengths_loss(lengths, piece, length)));
    if (r->has_second)
        HBP__TRY(check_second_size(r, row, piece));
    if (!lengths->link || lengths->link[piece] == HBP__FREE)
        return HBP_OK;
    int64_t *home = &r->link_pack[lengths->link[piece]];
    if (*home && *home != pack + 1)
        return hbp__fail(r->context, HBP_E_INVALID,
                         "sample %lld is in pack %lld, a sample linked to it (link %lld) in pack %lld",
                         (long long)id, (long long)pack, (long long)lengths->link_value[lengths->link[piece]],
                         (long long)(*home - 1));
    *home = pack + 1;
    return HBP_OK;
}

static hbp_status check_packs(roll *r)
{
    const hbp_plan *plan = r->plan;
    int64_t ticked = 0;
    for (int64_t p = 0; p < plan->packs; p++) {
        for (int64_t i = plan->pack_offsets[p]; i < plan->pack_offsets[p + 1]; i++)
            HBP__TRY(check_row(r, p, i));
        if (plan->pack_offsets[p + 1] - ticked >= TICK_ROWS) {
            ticked = plan->pack_offsets[p + 1];
            HBP__TRY(hbp__tick(r->context, "validate", ticked, plan->samples));
        }
    }
    return HBP_OK;
}

/* Least number of vision units that a pack has room for. */
static int64_t least_room(const hbp_plan *plan)
{
    int64_t least = INT64_MAX;
    for (int64_t p = 0; plan->pack_vision_capacity && p < plan->packs; p++)
        least = hbp__min_i64(least, plan->pack_vision_capacity[p]);
    return least;
}

/* A plan that tells pieces: this one was left over once, as long as it is, and is in no pack. */
static hbp_status check_piece(const roll *r, int64_t row, int64_t piece)
{
    const hbp_plan *plan = r->plan;
    int64_t id = plan->dropped_ids[row], first = plan->dropped_first_tokens[row];
    HBP__TRY(check_number(r, id, "tokens dropped", plan->dropped_tokens[row],
                          hbp__lengths_get(r->lengths, piece)));
    if (is_seen(r, piece) || r->left[piece])
        return hbp__fail(
            r->context, HBP_E_INVALID, "sample %lld from token %lld is %s", (long long)id, (long long)first,
            r->left[piece] ? "among the dropped samples twice" : "in a pack and among the dropped samples");
    return HBP_OK;
}

/* Counts, by sample or by piece, a row of what no pack took though the lengths have it: left over, or left
 * out by the fill. */
static hbp_status check_left(roll *r, int64_t row, int64_t room)
{
    const hbp_lengths *lengths = r->lengths;
    int64_t id = r->plan->dropped_ids[row];
    int32_t reason = r->plan->dropped_reasons[row];
    int64_t first = r->plan->dropped_first_tokens ? r->plan->dropped_first_tokens[row] : 0;
    int64_t piece = find_piece(lengths, id, first);
    if (reason == HBP_DROPPED_OVERLONG && (piece < 0 || is_seen(r, piece)))
        return hbp__fail(r->context, HBP_E_INVALID,
                         "sample %lld was dropped as over-long; the lengths do not say so", (long long)id);
    if (piece < 0 && first)
        return hbp__fail(r->context, HBP_E_INVALID,
                         "sample %lld from token %lld was left over; the lengths have no such piece",
                         (long long)id, (long long)first);
    if (piece < 0)
        return hbp__fail(r->context, HBP_E_INVALID,
                         "sample %lld was left over; the lengths have no such sample", (long long)id);
    if (r->plan->dropped_tokens)
        HBP__TRY(check_piece(r, row, piece));
    /* A linked sample may go with another. */
    int is_linked = lengths->link && lengths->link[piece] != HBP__FREE;
    if (reason == HBP_DROPPED_OVERVISION && !is_linked && hbp__lengths_vision(lengths, piece) <= room)
        return hbp__fail(r->context, HBP_E_INVALID,
                         "sample %lld was dropped for its %lld vision units; a pack holds %lld",
                         (long long)id, (long long)hbp__lengths_vision(lengths, piece), (long long)room);
    r->left[piece]++;
    return HBP_OK;
}

/* The rows of the lengths, over-long, are there in their order; the others are what fill and schedule left.
 */
static hbp_status check_dropped(roll *r)
{
    const hbp_plan *plan = r->plan;
    const hbp_lengths *lengths = r->lengths;
    int64_t overlong = 0, room = plan->dropped ? least_room(plan) : 0;
    for (int64_t i = 0; i < plan->dropped; i++) {
        int64_t id = plan->dropped_ids[i];
        if (plan->dropped_reasons[i] == HBP_DROPPED_OVERLONG && overlong < lengths->dropped &&
            lengths->dropped_id[overlong] == id)
            overlong++;
        else
            HBP__TRY(check_left(r, i, room));
    }
    if (overlong < lengths->dropped)
        return hbp__fail(r->context, HBP_E_INVALID,
                         "sample %lld, dropped from the lengths, is not among the plan's dropped samples",
                         (long long)lengths->dropped_id[overlong]);
    return HBP_OK;
}

/* Every piece is in a pack or was left out, and not both. */
static hbp_status check_complete(const roll *r)
{
    const hbp_lengths *lengths = r->lengths;
    for (int64_t i = 0, end; i < lengths->count; i = end) {
        int64_t id = id_of(lengths, i), missing = 0, left = 0, lost = i;
        for (end = i; end < lengths->count && id_of(lengths, end) == id; end++) {
            int64_t here = r->left ? r->left[end] : 0;
            left += here;
            if (is_seen(r, end))
                continue;
            missing++;
            if (!here || !r->plan->dropped_tokens)
                lost = end;
        }
        if (missing > left)
            return hbp__fail(r->context, HBP_E_INVALID,
                             "sample %lld from token %lld is in no pack and was not dropped", (long long)id,
                             (long long)(lengths->first ? lengths->first[lost] : 0));
        if (missing < left)
            return hbp__fail(r->context, HBP_E_INVALID,
                             "sample %lld is in a pack and among the dropped samples", (long long)id);
    }
    return HBP_OK;
}

/* The plan's samples against lengths that it was made for. O(samples), for lengths with dropped or split
 * samples times log samples; a bit a sample, and 4 bytes where some were left over. */
static hbp_status check_lengths(hbp_context *context, const hbp_plan *plan, const hbp_lengths *lengths)
{
    int64_t mark = hbp__scratch_mark(context);
    int has_second = plan->sample_vision || lengths->vision || plan->sample_modalities;
    roll r = {context, plan, lengths, has_second, NULL, NULL, NULL};
    uint64_t pieces = (uint64_t)lengths->count;
    r.seen = hbp__take_zero(context, pieces / 8 + 1, 1);
    r.link_pack = hbp__take_zero(context, (uint64_t)lengths->links, sizeof *r.link_pack);
    if (plan->dropped)
        r.left = hbp__take_zero(context, pieces, sizeof *r.left);
    HBP__TRY(hbp__scratch_check(context, "the samples' roll"));
    HBP__TRY(check_packs(&r));
    /* A part of a plan neither holds every sample nor lists what was dropped. */
    if (!hbp__plan_is_part(plan)) {
        HBP__TRY(check_dropped(&r));
        HBP__TRY(check_complete(&r));
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

static hbp_status other_lengths(hbp_context *context, const hbp_plan *plan, const hbp_lengths *lengths)
{
    const char *lacks = "";
    if (plan->shifted_loss != lengths->shifted_loss)
        lacks = plan->shifted_loss ? "; the plan has shifted_loss, which these lengths lack"
                                   : "; these lengths have shifted_loss, which the plan lacks";
    else if (plan->sample_vision && !lengths->vision)
        lacks = "; the plan has vision units, which these lengths lack";
    else if (plan->micro_batch_modalities && !lengths->modality && !lengths->vision)
        lacks = "; the plan has modalities, which these lengths lack";
    if (plan->lengths_digest == lengths->digest)
        return hbp__fail(context, HBP_E_INVALID, "the plan is not of these lengths%s", lacks);
    const int64_t listed = hbp__add_saturating(plan->samples, plan->dropped);
    const int lists_pieces = plan->sample_first_tokens != NULL; /* more than there are samples */
    char counts[96] = "";
    if (!*lacks && !hbp__plan_is_part(plan) &&
        (listed < lengths->count || (listed > lengths->count && !lists_pieces)))
        snprintf(counts, sizeof counts, "; the plan is of %lld samples, these are %lld", (long long)listed,
                 (long long)lengths->count);
    return hbp__fail(
        context, HBP_E_INVALID, "the plan was made for lengths with digest %016llx; these have %016llx%s%s",
        (unsigned long long)plan->lengths_digest, (unsigned long long)lengths->digest, lacks, counts);
}

/* What the limit makes of the lengths, if it is what the plan was made of; *limited NULL: it is not. */
static hbp_status try_limit(hbp_context *context, const hbp_plan *plan, const hbp_lengths *lengths,
                            int64_t limit, int32_t policy, hbp_lengths **limited)
{
    const int keeps = hbp__limit_keeps_histogram(lengths, policy);
    *limited = NULL;
    if (!keeps && hbp__limited_digest(lengths, limit, policy) != plan->lengths_digest)
        return HBP_OK;
    HBP__TRY(hbp__lengths_limit(context, lengths, limit, policy, limited));
    if ((*limited)->digest == plan->lengths_digest)
        return HBP_OK;
    hbp_lengths_free(*limited);
    *limited = NULL;
    return HBP_OK;
}

/* A limit that keeps a histogram one: what it has cut off the samples past it, from `bin` on, says where it
 * lies. */
static hbp_status try_histogram(hbp_context *context, const hbp_plan *plan, const hbp_lengths *lengths,
                                int64_t bin, hbp_lengths **limited)
{
    const int64_t over = lengths->count - lengths->bin_first[bin],
                  least = bin ? lengths->bin_length[bin - 1] : 0;
    int64_t past = 0;
    for (int64_t b = bin; b < lengths->bins; b++)
        past += lengths->bin_length[b] * lengths->bin_count[b];
    if (plan->overlong_tokens < lengths->overlong_tokens ||
        plan->overlong_tokens - lengths->overlong_tokens > past)
        return HBP_OK;
    const int64_t left = past - (plan->overlong_tokens - lengths->overlong_tokens), limit = left / over;
    if (left == 0 && bin)
        return try_limit(context, plan, lengths, least, HBP_OVERLONG_DROP, limited);
    if (left % over || limit < hbp__max_i64(least, 1) || limit >= lengths->bin_length[bin])
        return HBP_OK;
    return try_limit(context, plan, lengths, limit, HBP_OVERLONG_TRUNCATE, limited);
}

/* The limited lengths that the plan was made of. It says how many samples were past the limit, which so lies
 * between two neighbouring lengths of the histogram; the digest tells where and how. */
static hbp_status find_limited(hbp_context *context, const hbp_plan *plan, const hbp_lengths *lengths,
                               hbp_lengths **limited)
{
    int64_t over = plan->overlong_samples - lengths->overlong_samples, bin = lengths->bins;
    while (bin && lengths->count - lengths->bin_first[bin] < over)
        bin--;
    if (over <= 0 || bin == lengths->bins || lengths->count - lengths->bin_first[bin] != over)
        return other_lengths(context, plan, lengths);
    *limited = NULL;
    if (!lengths->length)
        HBP__TRY(try_histogram(context, plan, lengths, bin, limited));
    int64_t least = bin ? lengths->bin_length[bin - 1] : 1;
    for (int64_t limit = least; !*limited && limit < lengths->bin_length[bin]; ++limit) {
        for (int32_t policy = HBP_OVERLONG_DROP; !*limited && policy <= HBP_OVERLONG_SPLIT; ++policy)
            if (!hbp__limit_keeps_histogram(lengths, policy))
                HBP__TRY(try_limit(context, plan, lengths, limit, policy, limited));
        if ((limit - least) % TICK_ROWS == 0)
            HBP__TRY(hbp__tick(context, "validate", 0, 0));
    }
    return *limited ? HBP_OK : other_lengths(context, plan, lengths);
}

static hbp_status validate_lengths(hbp_context *context, const hbp_plan *plan, const hbp_lengths *lengths)
{
    if (lengths->shifted_loss != plan->shifted_loss)
        return other_lengths(context, plan, lengths);
    if (lengths->digest == plan->lengths_digest)
        return check_lengths(context, plan, lengths);
    hbp_lengths *limited = NULL;
    hbp_status status = find_limited(context, plan, lengths, &limited);
    if (status >= 0)
        status = check_lengths(context, plan, limited);
    hbp_lengths_free(limited);
    return status;
}

static hbp_status validate_pack(hbp_context *context, const hbp_plan *plan, const hbp_cost *cost, int64_t p)
{
    int32_t sp = plan->pack_sp[p], recompute = plan->pack_recompute[p], row = hbp__cost_row(cost, sp);
    int64_t padded = plan->pack_padded_tokens[p], vision = plan->pack_vision ? plan->pack_vision[p] : 0;
    if (row < 0)
        return hbp__fail(context, HBP_E_INVALID, "pack %lld has SP degree %d, which the cost does not allow",
                         (long long)p, (int)sp);
    if (recompute > cost->terms.layers)
        return hbp__fail(context, HBP_E_INVALID, "pack %lld recomputes %d layers; the model has %d",
                         (long long)p, (int)recompute, (int)cost->terms.layers);
    hbp__load load = {.tokens = padded, .squares = (double)plan->pack_squares[p], .vision = vision};
    int64_t bytes = hbp__cost_pack_bytes(cost, row, recompute, load);
    int64_t ns = hbp__cost_pack_ns(cost, row, recompute, load);
    if (bytes > cost->terms.limit_bytes)
        return hbp__fail(context, HBP_E_INVALID, "pack %lld needs %lld bytes; a GPU has %lld", (long long)p,
                         (long long)bytes, (long long)cost->terms.limit_bytes);
    if (plan->pack_bytes[p] != bytes)
        return hbp__fail(context, HBP_E_INVALID,
                         "pack %lld: %lld bytes are predicted; the cost gives %lld: the plan was made under "
                         "another cost, or changed",
                         (long long)p, (long long)plan->pack_bytes[p], (long long)bytes);
    if (plan->pack_ns[p] != ns)
        return hbp__fail(context, HBP_E_INVALID,
                         "pack %lld: %lld ns are predicted; the cost gives %lld: the plan was made under "
                         "another cost, or changed",
                         (long long)p, (long long)plan->pack_ns[p], (long long)ns);
    return HBP_OK;
}

/* Steps last as long as their lockstep sets and step_ns. */
static hbp_status validate_steps(hbp_context *context, const hbp_plan *plan, const hbp_cost *cost)
{
    hbp__clock clock;
    HBP__TRY(hbp__clock_open(context, plan->ranks, plan->lockstep_ranks, &clock));
    for (int64_t s = 0; s < plan->steps; s++) {
        int64_t span = hbp__clock_step(&clock, plan, s);
        int64_t ns = hbp__add_saturating(span, hbp__round_i64(cost->terms.step_ns));
        if (plan->step_ns[s] != ns)
            return hbp__fail(context, HBP_E_INVALID,
                             "step %lld: %lld ns are predicted; its micro-batches and the cost give %lld",
                             (long long)s, (long long)plan->step_ns[s], (long long)ns);
        if (s % 256 == 0)
            HBP__TRY(hbp__tick(context, "validate", s, plan->steps));
    }
    return HBP_OK;
}

/* Memory, degrees and times. The columns agree with each other already: a micro-batch takes its slowest
 * pack's time. */
static hbp_status validate_cost(hbp_context *context, const hbp_plan *plan, const hbp_cost *cost)
{
    if (plan->ranks != cost->terms.ranks || plan->domain_ranks != cost->terms.domain_ranks)
        return hbp__fail(context, HBP_E_INVALID,
                         "the plan is for %d ranks in domains of %d, the cost for %d in domains of %d",
                         (int)plan->ranks, (int)plan->domain_ranks, (int)cost->terms.ranks,
                         (int)cost->terms.domain_ranks);
    if (plan->lockstep_ranks != cost->terms.lockstep_ranks)
        return hbp__fail(context, HBP_E_INVALID,
                         "the plan is for lockstep sets of %d ranks, the cost for sets of %d",
                         (int)(plan->lockstep_ranks ? plan->lockstep_ranks : plan->ranks),
                         (int)(cost->terms.lockstep_ranks ? cost->terms.lockstep_ranks : cost->terms.ranks));
    for (int64_t p = 0; p < plan->packs; p++) {
        if (p % TICK_ROWS == 0)
            HBP__TRY(hbp__tick(context, "validate", p, plan->packs));
        HBP__TRY(validate_pack(context, plan, cost, p));
    }
    return validate_steps(context, plan, cost);
}

hbp_status hbp__plan_validate(hbp_context *context, const hbp_plan *plan, const hbp_lengths *lengths,
                              const hbp_cost *cost)
{
    HBP__TRY(hbp__require(context, plan, "plan"));
    HBP__TRY(hbp__plan_check(context, plan));
    if (lengths)
        HBP__TRY(validate_lengths(context, plan, lengths));
    if (cost)
        HBP__TRY(validate_cost(context, plan, cost));
    return HBP_OK;
}

hbp_status hbp_plan_validate(hbp_context *context, const hbp_plan *plan, const hbp_lengths *lengths,
                             const hbp_cost *cost)
{
    HBP__TRY(hbp__enter(context));
    if (lengths)
        HBP__TRY(hbp__require_samples(context, lengths, "lengths"));
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, hbp__plan_validate(context, plan, lengths, cost));
}
