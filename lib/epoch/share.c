/* Idle ranks of packs whose groups must stay: padding packs get samples of fuller packs.
 *
 * A padding pack stands in a place of some degree, recomputation and capacity, which stay. It gets the
 * shortest sample of a pack, linked ones together, and with an order of modalities one of each kind, so that
 * both packs hold all modalities of their micro-batch. The longest pack of the padding pack's own micro-batch
 * and kind that can gives first, which takes no time; then the pack of the step whose samples take least in
 * the padding pack's place, as a fill puts short samples into longer packs. In: a plan. Out: the same plan
 * with samples moved inside their steps. O(padding packs x samples of their step). */
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "cost/plan_writer.h"
#include "epoch/mend.h"
#include "epoch/tuning.h"

typedef struct sharing {
    const hbp__epoch *epoch;
    hbp_plan *plan;
    uint32_t *piece; /* [samples] of the plan */
    int64_t *offset; /* [packs + 1] the plan's, before samples move */
    int64_t *source; /* [packs] the pack whose rows the samples of this one are among */
    int64_t *home;   /* [samples] the pack of each row */
    int64_t *unit;   /* [samples] scratch: the first row of those linked with it; then rows in a new order */
    int64_t *tokens; /* [samples] scratch: of the rows that `unit` names */
    int64_t *modalities; /* [samples] scratch: mask of the same */
    int64_t *leader;     /* [links] scratch: NO_ROW between packs */
    uint8_t *leaves;     /* [samples] scratch: rows that a pack gives */
    int64_t *column;     /* [samples] scratch: a column in its new order */
    hbp__clock clock;
    int has_moved;
} sharing;

#define NO_ROW INT64_C(-1)

/* Rows that the samples of pack p are among, in ascending order. */
static int64_t first_row(const sharing *s, int64_t p)
{
    return s->offset[s->source[p]];
}

static int64_t end_row(const sharing *s, int64_t p)
{
    return s->offset[s->source[p] + 1];
}

static int64_t kind_of(const sharing *s, int64_t row)
{
    return s->plan->sample_modalities ? INT64_C(1) << s->plan->sample_modalities[row] : 0;
}

static uint32_t link_of(const sharing *s, int64_t row)
{
    const hbp_lengths *lengths = s->epoch->lengths;
    return lengths->link ? lengths->link[s->piece[row]] : HBP__FREE;
}

/* Writes what pack p holds now: sums, time and bytes. O(its rows). */
static void measure_pack(sharing *s, int64_t p)
{
    hbp_plan *plan = s->plan;
    hbp__pack_sums sums = {0};
    int64_t multiple = hbp__plan_sequence_multiple(plan, plan->pack_sp[p]);
    for (int64_t i = first_row(s, p); i < end_row(s, p); i++)
        if (s->home[i] == p)
            hbp__pack_sums_add(&sums, plan, i, multiple);
    sums.padded = hbp__round_up(sums.padded, hbp__plan_pack_multiple(plan, plan->pack_sp[p]));
    hbp__plan_price_pack(plan, s->epoch->cost, p, &sums);
}

/* The units of pack p, linked samples being one: of each the first row, its tokens and modalities. Returns
 * how many units, and their modalities in *modalities. */
static int64_t list_units(sharing *s, int64_t p, int64_t *modalities)
{
    int64_t units = 0;
    *modalities = 0;
    for (int64_t i = first_row(s, p); i < end_row(s, p); i++) {
        if (s->home[i] != p)
            continue;
        uint32_t link = link_of(s, i);
        int64_t lead = link == HBP__FREE || s->leader[link] == NO_ROW ? i : s->leader[link];
        if (link != HBP__FREE)
            s->leader[link] = lead;
        units += lead == i;
        s->unit[i] = lead;
        s->leaves[i] = 0;
        s->tokens[lead] = (lead == i ? 0 : s->tokens[lead]) + s->plan->sample_tokens[i];
        s->modalities[lead] = (lead == i ? 0 : s->modalities[lead]) | kind_of(s, i);
        *modalities |= kind_of(s, i);
    }
    for (int64_t i = first_row(s, p); i < end_row(s, p); i++)
        if (s->home[i] == p && link_of(s, i) != HBP__FREE)
            s->leader[link_of(s, i)] = NO_ROW;
    return units;
}

/* The shortest unit of pack p that brings one of the modalities `missing` and that the others can do without:
 * `staying` units are of each kind. */
static int64_t shortest_unit(const sharing *s, int64_t p, int64_t missing, const int64_t *staying)
{
    int64_t best = NO_ROW;
    for (int64_t i = first_row(s, p); i < end_row(s, p); i++) {
        int fits = s->home[i] == p && s->unit[i] == i && !s->leaves[i] &&
                   (!missing || s->modalities[i] & missing) &&
                   (best == NO_ROW || s->tokens[i] < s->tokens[best]);
        for (int32_t k = 0; fits && k < HBP_MAX_MODALITIES; k++)
            fits = !(s->modalities[i] >> k & 1) || staying[k] > 1;
        best = fits ? i : best;
    }
    return best;
}

/* Marks the rows that pack p would give; 0 where it cannot. */
static int pick_rows(sharing *s, int64_t p)
{
    int64_t modalities, given = 0, left = list_units(s, p, &modalities), staying[HBP_MAX_MODALITIES] = {0};
    for (int64_t i = first_row(s, p); modalities && i < end_row(s, p); i++)
        for (int32_t k = 0; s->home[i] == p && s->unit[i] == i && k < HBP_MAX_MODALITIES; k++)
            staying[k] += s->modalities[i] >> k & 1;
    do {
        int64_t row = left > 1 ? shortest_unit(s, p, modalities & ~given, staying) : NO_ROW;
        if (row == NO_ROW)
            return 0;
        s->leaves[row] = 1;
        given |= s->modalities[row];
        for (int32_t k = 0; k < HBP_MAX_MODALITIES; k++)
            staying[k] -= s->modalities[row] >> k & 1;
        left--;
    } while (given != modalities);
    for (int64_t i = first_row(s, p); i < end_row(s, p); i++)
        if (s->home[i] == p)
            s->leaves[i] = s->leaves[s->unit[i]];
    return 1;
}

/* Gives the marked rows of pack `from` to pack `to`. */
static void move_rows(sharing *s, int64_t from, int64_t to)
{
    s->source[to] = s->source[from];
    for (int64_t i = first_row(s, from); i < end_row(s, from); i++)
        if (s->home[i] == from && s->leaves[i])
            s->home[i] = to;
    measure_pack(s, from);
    measure_pack(s, to);
}

static int64_t micro_batch_ns(const hbp_plan *plan, int64_t m)
{
    int64_t ns = 0;
    for (int64_t p = plan->micro_batch_offsets[m]; p < plan->micro_batch_offsets[m + 1]; p++)
        ns = hbp__max_i64(ns, plan->pack_ns[p]);
    return ns;
}

static int64_t step_ns(sharing *s, int64_t step)
{
    return hbp__add_saturating(hbp__clock_step(&s->clock, s->plan, step),
                               hbp__round_i64(s->epoch->cost->terms.step_ns));
}

/* Whether pack p has the degree, recomputation and capacity of padding pack `to`. */
static int is_alike(const hbp_plan *plan, int64_t p, int64_t to)
{
    return plan->pack_sp[p] == plan->pack_sp[to] && plan->pack_recompute[p] == plan->pack_recompute[to] &&
           plan->pack_capacity[p] == plan->pack_capacity[to];
}

/* Whether what pack p holds keeps to its capacity and to memory. */
static int is_held(const sharing *s, int64_t p)
{
    return s->plan->pack_padded_tokens[p] <= s->plan->pack_capacity[p] &&
           (!s->plan->pack_vision || s->plan->pack_vision[p] <= s->plan->pack_vision_capacity[p]) &&
           s->plan->pack_bytes[p] <= s->epoch->cost->terms.limit_bytes;
}

static int have_same_kinds(const hbp_plan *plan, int64_t m, int64_t other)
{
    return !plan->micro_batch_modalities ||
           plan->micro_batch_modalities[m] == plan->micro_batch_modalities[other];
}

/* The longest pack of micro-batch `m` that is like padding pack `to` and can give it samples. */
static int64_t find_near(sharing *s, int64_t m, int64_t to)
{
    const hbp_plan *plan = s->plan;
    int64_t best = NO_ROW;
    for (int64_t p = plan->micro_batch_offsets[m]; p < plan->micro_batch_offsets[m + 1]; p++)
        if (plan->pack_tokens[p] && is_alike(plan, p, to) &&
            (best == NO_ROW || plan->pack_ns[p] > plan->pack_ns[best]) && pick_rows(s, p))
            best = p;
    return best;
}

/* The pack of the step whose samples take least in the place of padding pack `to`; the first of those. */
static int64_t find_far(sharing *s, int64_t step, int64_t m, int64_t to)
{
    hbp_plan *plan = s->plan;
    int64_t best = NO_ROW, best_ns = INT64_MAX;
    for (int64_t o = plan->step_offsets[step]; o < plan->step_offsets[step + 1]; o++)
        for (int64_t p = plan->micro_batch_offsets[o]; p < plan->micro_batch_offsets[o + 1]; p++) {
            if (!plan->pack_tokens[p] || !have_same_kinds(plan, o, m) || !pick_rows(s, p))
                continue;
            move_rows(s, p, to);
            int64_t ns = is_held(s, to) ? plan->pack_ns[to] : INT64_MAX;
            move_rows(s, to, p); /* still marked */
            if (ns < best_ns) {
                best = p;
                best_ns = ns;
            }
        }
    return best;
}

/* Fills padding pack `to` of micro-batch `m`, unless the step would take more than `most_ns`; returns
 * whether. */
static int fill_padding(sharing *s, int64_t step, int64_t m, int64_t to, int64_t most_ns)
{
    int64_t from = find_near(s, m, to);
    if (from == NO_ROW)
        from = find_far(s, step, m, to);
    if (from == NO_ROW)
        return 0;
    pick_rows(s, from);
    move_rows(s, from, to);
    if (step_ns(s, step) <= most_ns)
        return 1;
    move_rows(s, to, from); /* still marked */
    return 0;
}

/* Puts rows [first, last) of a column into the order of `unit`. */
#define REORDER(name, type)                                                                                  \
    for (int64_t i = first; plan->name && i < last; i++)                                                     \
        s->column[i] = plan->name[s->unit[i]];                                                               \
    for (int64_t i = first; plan->name && i < last; i++)                                                     \
        plan->name[i] = (type)s->column[i];

/* Lays the step's rows out by pack; those of one pack keep their order. */
static void lay_out_step(sharing *s, int64_t step)
{
    hbp_plan *plan = s->plan;
    int64_t pack = plan->micro_batch_offsets[plan->step_offsets[step]];
    int64_t pack_end = plan->micro_batch_offsets[plan->step_offsets[step + 1]];
    int64_t first = s->offset[pack], last = s->offset[pack_end], at = first;
    for (int64_t p = pack; p < pack_end; p++) {
        for (int64_t i = first_row(s, p); i < end_row(s, p); i++)
            if (s->home[i] == p)
                s->unit[at++] = i;
        plan->pack_offsets[p + 1] = at;
    }
    REORDER(sample_ids, int64_t)
    REORDER(sample_tokens, int32_t)
    REORDER(sample_first_tokens, int64_t)
    REORDER(sample_loss_tokens, int32_t)
    REORDER(sample_vision, int32_t)
    REORDER(sample_modalities, int32_t)
    for (int64_t m = plan->step_offsets[step]; m < plan->step_offsets[step + 1]; m++)
        plan->micro_batch_ns[m] = micro_batch_ns(plan, m);
    plan->step_ns[step] = step_ns(s, step);
}
#undef REORDER

/* Fills the padding packs of a step. Returns whether samples moved. */
static int share_step(sharing *s, int64_t step)
{
    hbp_plan *plan = s->plan;
    int64_t before = plan->step_ns[step], most = hbp__add_saturating(before, before / HBP__MEND_PART);
    int moved = 0;
    for (int64_t m = plan->step_offsets[step]; m < plan->step_offsets[step + 1]; m++)
        for (int64_t p = plan->micro_batch_offsets[m]; p < plan->micro_batch_offsets[m + 1]; p++)
            if (s->offset[p] == s->offset[p + 1])
                moved |= fill_padding(s, step, m, p, most);
    if (moved)
        lay_out_step(s, step);
    return moved;
}

static int has_padding(const hbp_plan *plan, int64_t step)
{
    int64_t p = plan->micro_batch_offsets[plan->step_offsets[step]];
    int64_t end = plan->micro_batch_offsets[plan->step_offsets[step + 1]];
    while (p < end && plan->pack_offsets[p] < plan->pack_offsets[p + 1])
        p++;
    return p < end;
}

static hbp_status open_sharing(sharing *s)
{
    hbp_context *context = s->epoch->context;
    uint64_t rows = (uint64_t)s->plan->samples, links = (uint64_t)s->epoch->lengths->links;
    HBP__TRY(hbp__clock_open(context, s->plan->ranks, s->plan->lockstep_ranks, &s->clock));
    HBP__TRY(hbp__epoch_pieces(s->epoch, s->plan, &s->piece));
    s->offset = hbp__take(context, (uint64_t)s->plan->packs + 1, sizeof *s->offset);
    s->source = hbp__take(context, (uint64_t)s->plan->packs, sizeof *s->source);
    s->home = hbp__take(context, rows, sizeof *s->home);
    s->unit = hbp__take(context, rows, sizeof *s->unit);
    s->tokens = hbp__take(context, rows, sizeof *s->tokens);
    s->modalities = hbp__take(context, rows, sizeof *s->modalities);
    s->leader = hbp__take(context, links, sizeof *s->leader);
    s->leaves = hbp__take_zero(context, rows, sizeof *s->leaves);
    s->column = hbp__take(context, rows, sizeof *s->column);
    HBP__TRY(hbp__scratch_check(context, "the idle ranks of the plan"));
    for (uint64_t i = 0; i < links; i++)
        s->leader[i] = NO_ROW;
    memcpy(s->offset, s->plan->pack_offsets, ((size_t)s->plan->packs + 1) * sizeof *s->offset);
    for (int64_t p = 0; p < s->plan->packs; p++) {
        s->source[p] = p;
        for (int64_t i = s->plan->pack_offsets[p]; i < s->plan->pack_offsets[p + 1]; i++)
            s->home[i] = p;
    }
    return HBP_OK;
}

hbp_status hbp__epoch_share(const hbp__epoch *epoch, hbp_plan *plan)
{
    int64_t mark = hbp__scratch_mark(epoch->context);
    sharing s = {.epoch = epoch, .plan = plan};
    int64_t idle = 0;
    while (idle < plan->steps && !has_padding(plan, idle))
        idle++;
    if (idle == plan->steps)
        return HBP_OK;
    hbp_status status = open_sharing(&s);
    for (int64_t step = idle; status >= 0 && step < plan->steps; step++) {
        if (has_padding(plan, step))
            s.has_moved |= share_step(&s, step);
        status = hbp__tick(epoch->context, "steps", step, plan->steps);
    }
    if (status >= 0 && s.has_moved)
        hbp__plan_seal(plan);
    return hbp__leave(epoch->context, mark, status);
}
