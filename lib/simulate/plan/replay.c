#include "simulate/plan/replay.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "data/packs/padding.h"
#include "solve/imbalance.h"

#define TICK_SAMPLES 32768

/* One pack, measured from its samples. */
typedef struct replay_pack {
    int64_t tokens;
    int64_t padded;
    double squares;
    int64_t vision;
    int64_t ns;
    int64_t bytes;
    double communication_ns; /* of each of its ranks */
} replay_pack;

/* Load over the ranks (or blocks of ranks) of one micro-batch. */
typedef struct replay_load {
    double sum;
    double largest; /* of any rank */
} replay_load;

static void load_add(replay_load *load, double amount, double ranks)
{
    double each = amount / ranks;
    load->sum += amount;
    load->largest = each > load->largest ? each : load->largest;
}

static double load_imbalance(const replay_load *load, double ranks)
{
    return hbp__reported_imbalance(load->largest, load->sum, ranks);
}

static hbp_status too_large(hbp_context *context, const char *what, int64_t pack)
{
    return hbp__fail(context, HBP_E_OVERFLOW, "%s passes 2^63 - 1 at pack %lld", what, (long long)pack);
}

/* Rounds *tokens up to a multiple; 0 when that is too large. */
static int pad_tokens(int64_t *tokens, int64_t multiple)
{
    return hbp__mul_i64(hbp__ceil_div(*tokens, multiple), multiple, tokens);
}

static hbp_status measure_pack(hbp_context *context, const hbp__replay *r, int64_t index, replay_pack *pack)
{
    *pack = (replay_pack){0};
    const hbp_plan *plan = r->plan;
    const hbp_cost *cost = r->cost;
    int32_t recompute = plan->pack_recompute[index];
    int32_t row = hbp__cost_row(cost, plan->pack_sp[index]);
    if (row < 0)
        return hbp__fail(context, HBP_E_INVALID, "pack %lld has SP degree %d, which the cost does not allow",
                         (long long)index, (int)plan->pack_sp[index]);
    if (recompute < 0 || recompute > cost->terms.layers)
        return hbp__fail(context, HBP_E_INVALID, "pack %lld recomputes %d layers; the cost has %d",
                         (long long)index, (int)recompute, (int)cost->terms.layers);
    int64_t squares = 0, multiple = hbp__plan_sequence_multiple(plan, plan->pack_sp[index]);
    for (int64_t i = plan->pack_offsets[index]; i < plan->pack_offsets[index + 1]; i++) {
        int64_t tokens = plan->sample_tokens[i];
        if (tokens < 1)
            return hbp__fail(context, HBP_E_INVALID, "sample row %lld has %lld tokens; it needs at least 1",
                             (long long)i, (long long)tokens);
        pack->tokens += tokens;
        int64_t padded = tokens;
        if (!pad_tokens(&padded, multiple) || !hbp__add_i64(pack->padded, padded, &pack->padded))
            return too_large(context, "the sum of padded tokens", index);
        if (!hbp__add_i64(squares, tokens * tokens, &squares))
            return too_large(context, "the sum of squared lengths", index);
    }
    if (!pad_tokens(&pack->padded, hbp__plan_pack_multiple(plan, plan->pack_sp[index])))
        return too_large(context, "the sum of padded tokens", index);
    pack->squares = (double)squares;
    for (int64_t i = plan->pack_offsets[index]; plan->sample_vision && i < plan->pack_offsets[index + 1]; i++)
        pack->vision += plan->sample_vision[i];
    hbp__load load = {.tokens = pack->padded, .squares = pack->squares, .vision = pack->vision};
    pack->ns = hbp__cost_pack_ns(cost, row, recompute, load);
    pack->bytes = hbp__cost_pack_bytes(cost, row, recompute, load);
    if (pack->tokens)
        pack->communication_ns = hbp__cost_all_to_all_ns(cost, row, recompute, (double)pack->padded);
    return HBP_OK;
}

/* Spreads a pack's squares over the blocks that its ranks lie in. */
static void add_to_blocks(hbp__replay *r, int64_t index, double squares)
{
    int64_t rank = r->plan->pack_ranks[index], end = rank + r->plan->pack_sp[index];
    while (rank < end) {
        int64_t block = rank / r->block_ranks;
        int64_t stop = hbp__min_i64(end, (block + 1) * r->block_ranks);
        r->block[block] += squares * ((double)(stop - rank) / (double)r->plan->pack_sp[index]);
        rank = stop;
    }
}

static void add_vision(hbp__replay *r, int64_t index, int64_t units, replay_load *vision)
{
    int64_t capacity = r->plan->pack_vision_capacity[index];
    load_add(vision, (double)units, 1);
    r->vision += units;
    if (capacity == INT64_MAX)
        return;
    r->vision_capacity += (double)capacity;
    r->vision_held += (double)units;
}

static hbp_status replay_micro_batch(hbp_context *context, hbp__replay *r, int64_t index)
{
    const hbp_plan *plan = r->plan;
    replay_load tokens = {0, 0}, squares = {0, 0}, blocks = {0, 0}, padded = {0, 0}, vision = {0, 0};
    double packs = (double)(plan->micro_batch_offsets[index + 1] - plan->micro_batch_offsets[index]);
    for (int64_t b = 0; b < r->blocks; b++)
        r->block[b] = 0;
    for (int64_t p = plan->micro_batch_offsets[index]; p < plan->micro_batch_offsets[index + 1]; p++) {
        replay_pack pack;
        HBP__TRY(measure_pack(context, r, p, &pack));
        double ranks = plan->pack_sp[p];
        load_add(&tokens, (double)pack.tokens, ranks);
        load_add(&squares, pack.squares, ranks);
        load_add(&padded, (double)pack.padded, 1);
        if (plan->sample_vision)
            add_vision(r, p, pack.vision, &vision);
        add_to_blocks(r, p, pack.squares);
        if (!hbp__add_i64(r->tokens, pack.tokens, &r->tokens))
            return too_large(context, "the number of tokens", p);
        if (plan->pack_sp[p] > 1)
            r->sp_tokens += pack.tokens;
        r->padded += (double)pack.padded;
        r->busy_ns += ranks * (double)pack.ns;
        r->communication_ns += ranks * pack.communication_ns;
        r->peak_bytes = hbp__max_i64(r->peak_bytes, pack.bytes);
        hbp__clock_run(&r->clock, plan->pack_ranks[p], plan->pack_sp[p], pack.ns);
        r->sampled += 1 + plan->pack_offsets[p + 1] - plan->pack_offsets[p];
        if (r->sampled >= TICK_SAMPLES) {
            r->sampled = 0;
            HBP__TRY(hbp__tick(context, "simulate", p, plan->packs));
        }
    }
    for (int64_t b = 0; b < r->blocks; b++)
        load_add(&blocks, r->block[b], 1);
    r->dist_vision += load_imbalance(&vision, packs);
    r->dist_tokens += load_imbalance(&padded, packs);
    r->dbr += load_imbalance(&tokens, plan->ranks);
    r->abr += load_imbalance(&squares, plan->ranks);
    r->abr_paper += load_imbalance(&blocks, (double)r->blocks);
    hbp__clock_next(&r->clock);
    return HBP_OK;
}

hbp_status hbp__replay_open(hbp_context *context, const hbp_cost *cost, int64_t largest_sp, hbp__replay *r)
{
    *r = (hbp__replay){.cost = cost, .block_ranks = largest_sp};
    r->blocks = hbp__ceil_div(cost->terms.ranks, largest_sp);
    r->block = hbp__take(context, (uint64_t)r->blocks, sizeof *r->block);
    HBP__TRY(hbp__scratch_check(context, "the simulation"));
    return hbp__clock_open(context, cost->terms.ranks, cost->terms.lockstep_ranks, &r->clock);
}

hbp_status hbp__replay_add(hbp_context *context, hbp__replay *r, const hbp_plan *part)
{
    r->plan = part;
    r->has_vision |= part->pack_vision != NULL;
    r->steps += part->steps;
    r->micro_batches += part->micro_batches;
    for (int64_t s = 0; s < part->steps; s++) {
        hbp__clock_start(&r->clock, 0);
        for (int64_t m = part->step_offsets[s]; m < part->step_offsets[s + 1]; m++)
            HBP__TRY(replay_micro_batch(context, r, m));
        int64_t span = hbp__clock_end(&r->clock);
        r->step_ranks_ns += (double)part->ranks * (double)span;
        if (!hbp__add_i64(r->epoch_ns, span, &r->epoch_ns) || r->epoch_ns == INT64_MAX)
            return too_large(context, "the time of the epoch",
                             part->micro_batch_offsets[part->step_offsets[s]]);
    }
    return HBP_OK;
}

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

hbp_status hbp__replay_report(hbp_context *context, hbp__replay *r, hbp_report *report)
{
    const int64_t step_ns = hbp__round_i64(r->cost->terms.step_ns);
    int64_t steps_ns;
    if (!hbp__mul_i64(r->steps, step_ns, &steps_ns) || !hbp__add_i64(r->epoch_ns, steps_ns, &r->epoch_ns))
        return hbp__fail(context, HBP_E_OVERFLOW, "%lld steps of %lld ns each pass 2^63 - 1 ns",
                         (long long)r->steps, (long long)step_ns);
    const int32_t ranks = r->cost->terms.ranks;
    double micro_batches = (double)r->micro_batches, tokens = (double)r->tokens;
    double rank_ns = (double)ranks * (double)r->epoch_ns;
    double waiting_ns = r->step_ranks_ns - r->busy_ns;
    report->ranks = ranks;
    report->steps = r->steps;
    report->epoch_ns = r->epoch_ns;
    report->tokens = r->tokens;
    report->peak_bytes = r->peak_bytes;
    report->idle = ratio(waiting_ns > 0 ? waiting_ns : 0, r->step_ranks_ns);
    report->dbr = ratio(r->dbr, micro_batches);
    report->padding = ratio(r->padded - tokens, r->padded);
    report->abr = ratio(r->abr, micro_batches);
    report->abr_paper = ratio(r->abr_paper, micro_batches);
    report->cr = ratio((double)r->sp_tokens, tokens);
    report->ave_tokens = ratio(tokens, (double)ranks * (double)r->steps);
    report->tokens_per_s_per_gpu = ratio(tokens * 1e9, rank_ns);
    report->communication = ratio(r->communication_ns, rank_ns);
    report->vision = r->has_vision ? r->vision : -1;
    report->dist_vision = ratio(r->dist_vision, micro_batches);
    report->dist_tokens = ratio(r->dist_tokens, micro_batches);
    report->vision_padding = ratio(r->vision_capacity - r->vision_held, r->vision_capacity);
    return HBP_OK;
}
