/* Random plans that keep every promise: made from lengths, with a cost or with drawn times. */
#ifndef HBP_TESTS_PLANS_H
#define HBP_TESTS_PLANS_H

#include "base/checked.h"
#include "base/rng.h"
#include "cost/cost.h"
#include "data/lengths/lengths.h"
#include "data/plan/plan.h"
#include "test.h"

typedef struct plans_shape {
    uint64_t seed;
    int32_t ranks; /* a power of two, as is domain_ranks */
    int32_t domain_ranks;
    int64_t pack_samples; /* most in a pack, not counting those linked to the last */
    int64_t left_over;    /* pieces that no step takes; no links then */
    int64_t sequence_multiple;
    int64_t pack_multiple;
    int64_t micro_batch_multiple;
    int32_t modality_order; /* nonzero, without links: packs of a micro-batch hold the same kinds */
    int32_t pieces;         /* nonzero: of split samples, the pieces left over are told */
    const hbp_cost *cost;   /* NULL: times are drawn, a whole number of ns below 1000 */
    int64_t sequence_multiple_per_sp;
    int64_t pack_multiple_per_sp;
} plans_shape;

/* What a plan of the shape pads a pack of `sp` ranks to a multiple of. */
static inline int64_t plans_multiple(int64_t plain, int64_t per_sp, int64_t sp)
{
    int64_t multiple = plain;
    while (sp > 1 && per_sp && multiple % (per_sp * sp))
        multiple += plain;
    return multiple;
}

/* A walk over the plan to be: counts rows, and writes them when there is a plan. */
typedef struct plans_walk {
    const plans_shape *shape;
    const hbp_lengths *lengths;
    const int64_t *order; /* [lengths->count] pieces in the order of packs */
    hbp__rng rng;
    hbp_plan *plan;
    int64_t steps, micro_batches, packs, samples;
    int64_t paired;     /* pieces at the front of the order that stand in pairs of kinds 0 and 1 */
    int64_t modalities; /* kinds of the micro-batch at hand; 0: of its first pack to come */
} plans_walk;

/* Pieces shuffled; linked ones stand together, where the first of them came. The test frees them. */
static inline int64_t *plans_order(const hbp_lengths *lengths, uint64_t seed)
{
    hbp__rng rng = hbp__rng_make(seed, 1, 0);
    int64_t *order = malloc((size_t)lengths->count * sizeof *order), at = 0;
    uint32_t *draw = malloc((size_t)lengths->count * sizeof *draw);
    char *taken = calloc((size_t)lengths->count, 1);
    ck_assert(order && draw && taken);
    for (uint32_t i = 0; i < lengths->count; i++)
        draw[i] = i;
    hbp__rng_shuffle_u32(&rng, draw, (uint64_t)lengths->count);
    for (int64_t i = 0; i < lengths->count; i++) {
        uint32_t piece = draw[i];
        if (!lengths->link || lengths->link[piece] == HBP__FREE)
            order[at++] = piece;
        for (int64_t j = 0; lengths->link && lengths->link[piece] != HBP__FREE && j < lengths->count; j++)
            if (lengths->link[j] == lengths->link[piece] && !taken[j]) {
                taken[j] = 1;
                order[at++] = j;
            }
    }
    ck_assert_int_eq(at, lengths->count);
    free(taken);
    free(draw);
    return order;
}

/* For an order of modalities: as many pieces of kinds 0 and 1 as pair up, in turn, then kind by kind; returns
 * how many stand in pairs. */
static inline int64_t plans_by_kind(const hbp_lengths *lengths, int64_t *order)
{
    int64_t *sorted = malloc((size_t)lengths->count * sizeof *sorted), number[2] = {0, 0}, at = 0;
    ck_assert(sorted != NULL);
    for (int64_t i = 0; i < lengths->count; i++)
        if (hbp__lengths_modality(lengths, i) < 2)
            number[hbp__lengths_modality(lengths, i)]++;
    int64_t pairs = hbp__min_i64(number[0], number[1]), next[2] = {0, 1};
    at = 2 * pairs;
    for (int32_t kind = 0; kind < HBP_MAX_MODALITIES; kind++)
        for (int64_t i = 0; i < lengths->count; i++) {
            if (hbp__lengths_modality(lengths, order[i]) != kind)
                continue;
            if (kind < 2 && next[kind] < 2 * pairs) {
                sorted[next[kind]] = order[i];
                next[kind] += 2;
            } else {
                sorted[at++] = order[i];
            }
        }
    ck_assert_int_eq(at, lengths->count);
    memcpy(order, sorted, (size_t)at * sizeof *order);
    free(sorted);
    return 2 * pairs;
}

/* Set of kinds of rows [first, first + count), which it sorts by kind when the plan is there. */
static inline int64_t plans_sort_kinds(const plans_walk *w, int64_t first, int64_t count, int64_t *order)
{
    int64_t mask = 0;
    for (int64_t i = 0; i < count; i++) {
        order[i] = w->order[first + i];
        mask |= INT64_C(1) << hbp__lengths_modality(w->lengths, order[i]);
        for (int64_t j = i;
             j > 0 && w->shape->modality_order &&
             hbp__lengths_modality(w->lengths, order[j]) < hbp__lengths_modality(w->lengths, order[j - 1]);
             j--) {
            int64_t swapped = order[j];
            order[j] = order[j - 1];
            order[j - 1] = swapped;
        }
    }
    return mask;
}

/* How many of `count` samples a pack may take so that it holds the micro-batch's kinds. */
static inline int64_t plans_alike(plans_walk *w, int64_t count)
{
    const hbp_lengths *lengths = w->lengths;
    if (!w->shape->modality_order || !count)
        return count;
    if (w->samples < w->paired) {
        count = hbp__min_i64(count + (count & 1), w->paired - w->samples);
        if (w->samples + count > lengths->count - w->shape->left_over)
            count = 1; /* half a pair is left */
    }
    int64_t mask = 0, alike = 0, kind = hbp__lengths_modality(lengths, w->order[w->samples]);
    while (alike < count && (w->samples + alike < w->paired ||
                             hbp__lengths_modality(lengths, w->order[w->samples + alike]) == kind)) {
        mask |= INT64_C(1) << hbp__lengths_modality(lengths, w->order[w->samples + alike]);
        alike++;
    }
    if (w->modalities && w->modalities != mask)
        return 0;
    w->modalities = mask;
    return alike;
}

static inline int plans_linked(const plans_walk *w, int64_t at)
{
    const uint32_t *link = w->lengths->link;
    return link && link[w->order[at]] != HBP__FREE && link[w->order[at]] == link[w->order[at - 1]];
}

static inline void plans_sample(const plans_walk *w, int64_t row, int64_t piece, int64_t *loss)
{
    const hbp_lengths *lengths = w->lengths;
    hbp_plan *plan = w->plan;
    int64_t length = hbp__lengths_get(lengths, piece);
    plan->sample_ids[row] = lengths->origin ? lengths->origin[piece] : piece;
    plan->sample_tokens[row] = (int32_t)length;
    if (plan->sample_first_tokens)
        plan->sample_first_tokens[row] = lengths->first[piece];
    if (plan->sample_loss_tokens)
        plan->sample_loss_tokens[row] = (int32_t)lengths->loss[piece];
    if (plan->sample_vision)
        plan->sample_vision[row] = (int32_t)hbp__lengths_vision(lengths, piece);
    if (plan->sample_modalities)
        plan->sample_modalities[row] = hbp__lengths_modality(lengths, piece);
    *loss += lengths->loss ? lengths->loss[piece] : length;
}

/* The next pack, of `count` samples; returns its time. */
static inline int64_t plans_pack(plans_walk *w, int64_t rank, int64_t sp, int64_t count)
{
    const plans_shape *shape = w->shape;
    hbp_plan *plan = w->plan;
    int64_t p = w->packs++, tokens = 0, padded = 0, squares = 0, loss = 0, vision = 0;
    int64_t drawn = hbp__rng_below(&w->rng, 1000), spare = hbp__rng_below(&w->rng, 100);
    int32_t layers = shape->cost ? shape->cost->terms.layers : 8;
    int32_t recompute = (int32_t)hbp__rng_below(&w->rng, (uint64_t)layers + 1);
    int64_t first = w->samples;
    w->samples += count;
    if (!plan)
        return 0;
    int64_t *piece = malloc((size_t)(count + 1) * sizeof *piece);
    ck_assert(piece != NULL);
    plans_sort_kinds(w, first, count, piece);
    for (int64_t i = first; i < w->samples; i++) {
        plans_sample(w, i, piece[i - first], &loss);
        vision += hbp__lengths_vision(w->lengths, piece[i - first]);
        tokens += plan->sample_tokens[i];
        padded += hbp__round_up(plan->sample_tokens[i], plans_multiple(shape->sequence_multiple,
                                                                       shape->sequence_multiple_per_sp, sp));
        squares += (int64_t)plan->sample_tokens[i] * plan->sample_tokens[i];
    }
    free(piece);
    padded = hbp__round_up(padded, plans_multiple(shape->pack_multiple, shape->pack_multiple_per_sp, sp));
    plan->pack_offsets[p + 1] = w->samples;
    plan->pack_ranks[p] = (int32_t)rank;
    plan->pack_sp[p] = (int32_t)sp;
    plan->pack_recompute[p] = recompute;
    plan->pack_capacity[p] = padded + spare;
    plan->pack_tokens[p] = tokens;
    plan->pack_padded_tokens[p] = padded;
    plan->pack_squares[p] = squares;
    plan->pack_loss_tokens[p] = loss;
    if (plan->pack_vision) {
        plan->pack_vision[p] = vision;
        plan->pack_vision_capacity[p] = spare < 50 ? vision + spare : INT64_MAX;
    }
    plan->pack_ns[p] = drawn;
    plan->pack_bytes[p] = drawn * 1000 + padded;
    if (shape->cost) {
        int32_t row = hbp__cost_row(shape->cost, (int32_t)sp);
        hbp__load load = {.tokens = padded, .squares = (double)squares, .vision = vision};
        plan->pack_ns[p] = hbp__cost_pack_ns(shape->cost, row, recompute, load);
        plan->pack_bytes[p] = hbp__cost_pack_bytes(shape->cost, row, recompute, load);
    }
    return plan->pack_ns[p];
}

static inline int plans_may(const plans_walk *w, int64_t rank, int64_t sp)
{
    return sp <= w->shape->ranks && rank % sp == 0 &&
           (!w->shape->cost || hbp__cost_row(w->shape->cost, (int32_t)sp) >= 0);
}

static inline int64_t plans_micro_batch(plans_walk *w)
{
    const plans_shape *shape = w->shape;
    int64_t slowest = 0, end = w->lengths->count - shape->left_over;
    w->modalities = 0;
    for (int64_t rank = 0, sp; rank < shape->ranks; rank += sp) {
        for (sp = 1; plans_may(w, rank, sp * 2) && hbp__rng_below(&w->rng, 2); sp *= 2)
            ;
        int64_t count = hbp__rng_below(&w->rng, (uint64_t)shape->pack_samples + 1);
        count = hbp__min_i64(count, end - w->samples);
        while (count && w->samples + count < end && plans_linked(w, w->samples + count))
            count++;
        count = plans_alike(w, count);
        slowest = hbp__max_i64(slowest, plans_pack(w, rank, sp, count));
    }
    int64_t m = w->micro_batches++;
    if (w->plan) {
        w->plan->micro_batch_ns[m] = slowest;
        if (w->plan->micro_batch_modalities)
            w->plan->micro_batch_modalities[m] = w->modalities ? w->modalities : 1;
        w->plan->micro_batch_offsets[m + 1] = w->packs;
    }
    return slowest;
}

static inline void plans_step(plans_walk *w)
{
    const plans_shape *shape = w->shape;
    int64_t pack = w->packs, sample = w->samples, s = w->steps++;
    int64_t count = shape->micro_batch_multiple * (1 + hbp__rng_below(&w->rng, 3));
    int64_t ns = shape->cost ? hbp__round_i64(shape->cost->terms.step_ns) : hbp__rng_below(&w->rng, 100);
    while (count--)
        ns += plans_micro_batch(w);
    hbp_plan *plan = w->plan;
    if (!plan)
        return;
    plan->step_offsets[s + 1] = w->micro_batches;
    plan->step_ns[s] = ns;
    plan->step_samples[s] = w->samples - sample;
    plan->step_tokens[s] = plan->step_loss_tokens[s] = 0;
    for (; pack < w->packs; pack++) {
        plan->step_tokens[s] += plan->pack_tokens[pack];
        plan->step_loss_tokens[s] += plan->pack_loss_tokens[pack];
    }
}

static inline plans_walk plans_take(const plans_shape *shape, const hbp_lengths *lengths,
                                    const int64_t *order, int64_t paired, hbp_plan *plan)
{
    plans_walk w = {.shape = shape, .lengths = lengths, .order = order, .plan = plan, .paired = paired};
    w.rng = hbp__rng_make(shape->seed, 2, 0);
    while (w.samples < lengths->count - shape->left_over)
        plans_step(&w);
    return w;
}

/* A sealed plan of the lengths. */
static inline hbp_plan *plans_make(const plans_shape *shape, const hbp_lengths *lengths)
{
    hbp__memory memory = hbp__memory_default();
    int64_t *order = plans_order(lengths, shape->seed);
    int64_t paired = shape->modality_order ? plans_by_kind(lengths, order) : 0;
    plans_walk w = plans_take(shape, lengths, order, paired, NULL);
    int32_t optional = (lengths->first ? HBP__PLAN_SPLIT : 0) | (lengths->loss ? HBP__PLAN_LOSS : 0) |
                       (lengths->vision ? HBP__PLAN_VISION : 0) |
                       (shape->modality_order ? HBP__PLAN_MODALITIES : 0) |
                       (shape->pieces ? HBP__PLAN_PIECES : 0);
    hbp_plan *plan = hbp__plan_new(&memory, w.steps, w.micro_batches, w.packs, w.samples,
                                   lengths->dropped + shape->left_over, optional);
    ck_assert_ptr_nonnull(plan);
    plan->ranks = shape->ranks;
    plan->domain_ranks = shape->domain_ranks;
    plan->sequence_multiple = shape->sequence_multiple;
    plan->pack_multiple = shape->pack_multiple;
    plan->micro_batch_multiple = shape->micro_batch_multiple;
    plan->sequence_multiple_per_sp = shape->sequence_multiple_per_sp;
    plan->pack_multiple_per_sp = shape->pack_multiple_per_sp;
    plan->overlong_samples = lengths->overlong_samples;
    plan->overlong_tokens = lengths->overlong_tokens;
    plan->seed = shape->seed;
    plan->epoch = 3;
    plan->lengths_digest = lengths->digest;
    plans_take(shape, lengths, order, paired, plan);
    for (int64_t i = 0; i < plan->dropped; i++) {
        int64_t piece = i < lengths->dropped ? 0 : order[lengths->count - 1 - (i - lengths->dropped)];
        plan->dropped_ids[i] = i < lengths->dropped ? lengths->dropped_id[i]
                               : lengths->origin    ? lengths->origin[piece]
                                                    : piece;
        plan->dropped_reasons[i] = i < lengths->dropped ? HBP_DROPPED_OVERLONG : HBP_DROPPED_LEFTOVER;
        if (plan->dropped_tokens) {
            int is_piece = i >= lengths->dropped;
            plan->dropped_first_tokens[i] = is_piece ? lengths->first[piece] : 0;
            plan->dropped_tokens[i] = is_piece ? (int32_t)hbp__lengths_get(lengths, piece) : 0;
        }
    }
    free(order);
    hbp__plan_seal(plan);
    return plan;
}

/* A shape whose every field is drawn but the cost. */
static inline plans_shape plans_draw(uint64_t seed)
{
    hbp__rng rng = hbp__rng_make(seed, 3, 0);
    plans_shape shape = {.seed = seed};
    shape.ranks = 1 << hbp__rng_below(&rng, 5);
    shape.domain_ranks = 1 << hbp__rng_below(&rng, 5);
    if (shape.domain_ranks > shape.ranks)
        shape.domain_ranks = shape.ranks;
    shape.pack_samples = 1 + hbp__rng_below(&rng, 6);
    shape.sequence_multiple = 1 + hbp__rng_below(&rng, 2) * 7;
    shape.pack_multiple = 1 + hbp__rng_below(&rng, 2) * 63;
    shape.micro_batch_multiple = 1 + hbp__rng_below(&rng, 2);
    if (seed % 4 == 3) {
        shape.sequence_multiple_per_sp = hbp__rng_below(&rng, 7);
        shape.pack_multiple_per_sp = hbp__rng_below(&rng, 20);
    }
    return shape;
}

/* `count` lengths of up to `longest` tokens; with loss tokens, or links of pairs, when `loss` or `links`;
 * with `kinds` > 0 also up to 9 vision units and so many kinds. */
static inline hbp_lengths *plans_vision_lengths(hbp_context *context, uint64_t seed, int64_t count,
                                                uint32_t longest, int loss, int links, int32_t kinds)
{
    hbp__rng rng = hbp__rng_make(seed, 4, 0), vision_rng = hbp__rng_make(seed, 5, 0);
    uint32_t *vision = malloc((size_t)count * sizeof *vision);
    int32_t *kind = malloc((size_t)count * sizeof *kind);
    ck_assert(vision && kind);
    uint32_t *length = malloc((size_t)count * sizeof *length), *lossy = malloc((size_t)count * sizeof *lossy);
    int64_t *link = malloc((size_t)count * sizeof *link);
    ck_assert(length && lossy && link);
    for (int64_t i = 0; i < count; i++) {
        length[i] = 1 + hbp__rng_below(&rng, longest);
        lossy[i] = hbp__rng_below(&rng, (uint64_t)length[i] + 1);
        link[i] = i % 5 < 2 ? 100 + i / 5 : -1;
        vision[i] = hbp__rng_below(&vision_rng, 10);
        kind[i] = kinds ? (int32_t)hbp__rng_below(&vision_rng, (uint64_t)kinds) : 0;
    }
    hbp_lengths_options options = {.struct_size = sizeof options,
                                   .loss_tokens = loss ? lossy : NULL,
                                   .links = links ? link : NULL,
                                   .vision = kinds ? vision : NULL,
                                   .modalities = kinds ? kind : NULL};
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_u32(context, length, count, &options, &lengths));
    free(link);
    free(lossy);
    free(length);
    free(kind);
    free(vision);
    return lengths;
}

static inline hbp_lengths *plans_lengths(hbp_context *context, uint64_t seed, int64_t count, uint32_t longest,
                                         int loss, int links)
{
    return plans_vision_lengths(context, seed, count, longest, loss, links, 0);
}

#endif
