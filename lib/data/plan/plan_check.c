/* The promises of a plan that its columns alone can break. Every check is of values that earlier checks have
 * made safe to use, so that columns from a hostile file do no harm. */
#include "base/checked.h"
#include "base/scratch.h"
#include "data/packs/padding.h"
#include "data/plan/lockstep.h"

/* The most ranks of a plan with lockstep sets: a file of a few bytes cannot ask for much memory. */
#define MOST_RANKS (1 << 22)

static hbp_status fail_row(hbp_context *context, const char *row, int64_t index, const char *what,
                           int64_t value, int64_t limit)
{
    return hbp__fail(context, HBP_E_INVALID, "%s %lld: %s is %lld; it must be %lld", row, (long long)index,
                     what, (long long)value, (long long)limit);
}

/* Offsets [rows + 1] from 0 to `total` that never fall; each step and micro-batch holds at least `least`. */
static hbp_status check_offsets(hbp_context *context, const char *row, const int64_t *offsets, int64_t rows,
                                int64_t total, int64_t least)
{
    if (offsets[0] != 0)
        return fail_row(context, row, 0, "the first offset", offsets[0], 0);
    for (int64_t i = 0; i < rows; i++)
        if (offsets[i + 1] < offsets[i] || offsets[i + 1] > total || offsets[i + 1] - offsets[i] < least)
            return hbp__fail(context, HBP_E_INVALID,
                             "%s %lld: offsets %lld to %lld; the table has %lld rows, and %lld "
                             "is the least number for one",
                             row, (long long)i, (long long)offsets[i], (long long)offsets[i + 1],
                             (long long)total, (long long)least);
    if (offsets[rows] != total)
        return fail_row(context, row, rows, "the last offset", offsets[rows], total);
    return HBP_OK;
}

hbp_status hbp__plan_check_ranks(hbp_context *context, int64_t ranks, int64_t domain_ranks,
                                 int64_t lockstep_ranks)
{
    if (ranks < 1)
        return fail_row(context, "plan", 0, "the number of ranks", ranks, 1);
    if (domain_ranks < 1 || domain_ranks > ranks)
        return fail_row(context, "plan", 0, "the number of ranks of a domain", domain_ranks, ranks);
    if (lockstep_ranks && ranks > MOST_RANKS)
        return fail_row(context, "plan", 0, "the number of ranks in lockstep sets", ranks, MOST_RANKS);
    const int64_t most = ranks > 1 ? ranks - 1 : 1;
    if (lockstep_ranks < 0 || (lockstep_ranks && (lockstep_ranks > most || ranks % lockstep_ranks)))
        return fail_row(context, "plan", 0, "the number of ranks of a lockstep set", lockstep_ranks, ranks);
    return HBP_OK;
}

static hbp_status check_fields(hbp_context *context, const hbp_plan *plan)
{
    HBP__TRY(hbp__plan_check_ranks(context, plan->ranks, plan->domain_ranks, plan->lockstep_ranks));
    const int64_t multiples[] = {plan->sequence_multiple, plan->pack_multiple, plan->micro_batch_multiple};
    for (int i = 0; i < 3; i++)
        if (multiples[i] < 1 || multiples[i] > INT32_MAX)
            return fail_row(context, "plan", i, "a multiple", multiples[i], 1);
    const int64_t per_sp[] = {plan->sequence_multiple_per_sp, plan->pack_multiple_per_sp};
    for (int i = 0; i < 2; i++)
        if (per_sp[i] < 0 || per_sp[i] > INT32_MAX)
            return fail_row(context, "plan", i, "a multiple per rank of a pack", per_sp[i], 0);
    if (plan->composition < HBP_COMPOSITION_AUTO || plan->composition > HBP_COMPOSITION_GIVEN)
        return fail_row(context, "plan", 0, "the composition", plan->composition, HBP_COMPOSITION_GIVEN);
    if (plan->samples_per_step < 0 || plan->tokens_per_step < 0)
        return fail_row(context, "plan", 0, "the size of a step",
                        hbp__min_i64(plan->samples_per_step, plan->tokens_per_step), 0);
    if (plan->steps < 1)
        return fail_row(context, "plan", 0, "the number of steps", plan->steps, 1);
    if (plan->shifted_loss != 0 && plan->shifted_loss != 1)
        return hbp__fail(context, HBP_E_INVALID, "the plan's flag shifted_loss is %d; it must be 0 or 1",
                         (int)plan->shifted_loss);
    if (plan->shifted_loss && !plan->sample_loss_tokens)
        return hbp__fail(context, HBP_E_INVALID, "the plan has shifted_loss but no loss tokens of samples");
    if (plan->first_step < 0)
        return fail_row(context, "plan", 0, "the first step", plan->first_step, 0);
    if (plan->epoch_steps &&
        (plan->epoch_steps <= plan->steps || plan->epoch_steps - plan->steps < plan->first_step))
        return hbp__fail(context, HBP_E_INVALID,
                         "the plan is a part of %lld steps; with %lld from step %lld on it must be of more",
                         (long long)plan->epoch_steps, (long long)plan->steps, (long long)plan->first_step);
    return HBP_OK;
}

/* Where a pack runs: aligned, inside a domain when it fits one. */
static hbp_status check_ranks(hbp_context *context, const hbp_plan *plan, int64_t p)
{
    int64_t sp = plan->pack_sp[p], first = plan->pack_ranks[p];
    if (sp < 1 || sp > plan->ranks)
        return fail_row(context, "pack", p, "the SP degree", sp, 1);
    if (first < 0 || first > plan->ranks - sp || first % sp)
        return hbp__fail(context, HBP_E_INVALID,
                         "pack %lld: ranks %lld to %lld are not an aligned range of %d ranks", (long long)p,
                         (long long)first, (long long)(first + sp - 1), (int)plan->ranks);
    if (sp <= plan->domain_ranks && first / plan->domain_ranks != (first + sp - 1) / plan->domain_ranks)
        return hbp__fail(context, HBP_E_INVALID, "pack %lld: ranks %lld to %lld cross a domain of %d ranks",
                         (long long)p, (long long)first, (long long)(first + sp - 1),
                         (int)plan->domain_ranks);
    if (plan->lockstep_ranks > 1 && plan->lockstep_ranks % sp)
        return hbp__fail(context, HBP_E_INVALID,
                         "pack %lld: an SP group of %lld ranks crosses lockstep sets of %d", (long long)p,
                         (long long)sp, (int)plan->lockstep_ranks);
    if (plan->pack_recompute[p] < 0)
        return fail_row(context, "pack", p, "the number of recomputed layers", plan->pack_recompute[p], 0);
    return HBP_OK;
}

/* Sums over a pack's samples. */
static hbp_status check_samples(hbp_context *context, const hbp_plan *plan, int64_t p)
{
    int64_t tokens = 0, padded = 0, squares = 0, loss = 0;
    int64_t multiple = hbp__plan_sequence_multiple(plan, plan->pack_sp[p]);
    for (int64_t i = plan->pack_offsets[p]; i < plan->pack_offsets[p + 1]; i++) {
        int64_t length = plan->sample_tokens[i], mine = length;
        if (length < 1)
            return fail_row(context, "sample row", i, "the number of tokens", length, 1);
        if (plan->sample_loss_tokens) {
            const int64_t most = length - plan->shifted_loss;
            mine = plan->sample_loss_tokens[i];
            if (mine < 0 || mine > most)
                return fail_row(context, "sample row", i, "the number of loss tokens", mine, most);
        }
        if (plan->sample_first_tokens &&
            (plan->sample_first_tokens[i] < 0 || plan->sample_first_tokens[i] > HBP_MAX_LENGTH))
            return fail_row(context, "sample row", i, "the first token", plan->sample_first_tokens[i], 0);
        if (plan->sample_ids[i] < 0)
            return fail_row(context, "sample row", i, "the id", plan->sample_ids[i], 0);
        loss += mine;
        tokens += length;
        padded += hbp__round_up(length, multiple);
        if (!hbp__add_i64(squares, length * length, &squares) || padded > HBP_MAX_LENGTH)
            return hbp__fail(context, HBP_E_INVALID, "pack %lld holds more than %d tokens", (long long)p,
                             HBP_MAX_LENGTH);
    }
    padded = hbp__round_up(padded, hbp__plan_pack_multiple(plan, plan->pack_sp[p]));
    if (plan->pack_tokens[p] != tokens)
        return fail_row(context, "pack", p, "the number of tokens", plan->pack_tokens[p], tokens);
    if (plan->pack_padded_tokens[p] != padded)
        return fail_row(context, "pack", p, "the number of padded tokens", plan->pack_padded_tokens[p],
                        padded);
    if (plan->pack_squares[p] != squares)
        return fail_row(context, "pack", p, "the sum of squared lengths", plan->pack_squares[p], squares);
    if (plan->pack_loss_tokens[p] != loss)
        return fail_row(context, "pack", p, "the number of loss tokens", plan->pack_loss_tokens[p], loss);
    if (plan->pack_capacity[p] > HBP_MAX_LENGTH || padded > plan->pack_capacity[p])
        return hbp__fail(context, HBP_E_INVALID, "pack %lld: %lld padded tokens; its capacity is %lld",
                         (long long)p, (long long)padded, (long long)plan->pack_capacity[p]);
    if (plan->pack_ns[p] < 0 || plan->pack_bytes[p] < 0)
        return fail_row(context, "pack", p, "a prediction",
                        plan->pack_ns[p] < 0 ? plan->pack_ns[p] : plan->pack_bytes[p], 0);
    return HBP_OK;
}

/* Vision units of a pack. */
static hbp_status check_vision(hbp_context *context, const hbp_plan *plan, int64_t p)
{
    int64_t vision = 0;
    for (int64_t i = plan->pack_offsets[p]; i < plan->pack_offsets[p + 1]; i++) {
        if (plan->sample_vision[i] < 0)
            return fail_row(context, "sample row", i, "the number of vision units", plan->sample_vision[i],
                            0);
        vision += plan->sample_vision[i]; /* fewer than 2^32 rows below 2^31 each */
    }
    if (plan->pack_vision[p] != vision)
        return fail_row(context, "pack", p, "the number of vision units", plan->pack_vision[p], vision);
    if (vision > plan->pack_vision_capacity[p])
        return hbp__fail(context, HBP_E_INVALID,
                         "pack %lld: %lld vision units; its capacity for them is %lld", (long long)p,
                         (long long)vision, (long long)plan->pack_vision_capacity[p]);
    return HBP_OK;
}

/* A pack with samples holds the micro-batch's modalities, each of them, in ascending order. */
static hbp_status check_kinds(hbp_context *context, const hbp_plan *plan, int64_t p, int64_t modalities)
{
    int64_t held = 0;
    for (int64_t i = plan->pack_offsets[p]; i < plan->pack_offsets[p + 1]; i++) {
        int32_t kind = plan->sample_modalities[i];
        if (kind < 0 || kind >= HBP_MAX_MODALITIES)
            return hbp__fail(context, HBP_E_INVALID, "sample row %lld: modality %d; it must be in 0..%d",
                             (long long)i, (int)kind, HBP_MAX_MODALITIES - 1);
        if (i > plan->pack_offsets[p] && kind < plan->sample_modalities[i - 1])
            return hbp__fail(context, HBP_E_INVALID,
                             "pack %lld: sample row %lld of modality %d follows one of modality %d",
                             (long long)p, (long long)i, (int)kind, (int)plan->sample_modalities[i - 1]);
        held |= INT64_C(1) << kind;
    }
    if (held != modalities && plan->pack_offsets[p] != plan->pack_offsets[p + 1])
        return hbp__fail(
            context, HBP_E_INVALID,
            "pack %lld holds the modalities %#llx, its micro-batch %#llx: ranks would wait for each "
            "other",
            (long long)p, (unsigned long long)held, (unsigned long long)modalities);
    return HBP_OK;
}

/* The second size and the order of modalities, where the plan has them. */
static hbp_status check_optional(hbp_context *context, const hbp_plan *plan, int64_t m)
{
    int64_t modalities = plan->micro_batch_modalities ? plan->micro_batch_modalities[m] : 1;
    if (modalities < 1 || modalities >> HBP_MAX_MODALITIES)
        return hbp__fail(context, HBP_E_INVALID,
                         "micro-batch %lld: its modalities are %lld; it needs one at least, of %d",
                         (long long)m, (long long)modalities, HBP_MAX_MODALITIES);
    for (int64_t p = plan->micro_batch_offsets[m]; p < plan->micro_batch_offsets[m + 1]; p++) {
        if (plan->pack_vision)
            HBP__TRY(check_vision(context, plan, p));
        if (plan->micro_batch_modalities)
            HBP__TRY(check_kinds(context, plan, p, modalities));
    }
    return HBP_OK;
}

/* Packs in order of rank that cover every rank once; the slowest sets the time. */
static hbp_status check_micro_batch(hbp_context *context, const hbp_plan *plan, int64_t m)
{
    int64_t rank = 0, slowest = 0;
    for (int64_t p = plan->micro_batch_offsets[m]; p < plan->micro_batch_offsets[m + 1]; p++) {
        HBP__TRY(check_ranks(context, plan, p));
        if (plan->pack_ranks[p] != rank)
            return fail_row(context, "pack", p, "the first rank", plan->pack_ranks[p], rank);
        HBP__TRY(check_samples(context, plan, p));
        rank += plan->pack_sp[p];
        slowest = hbp__max_i64(slowest, plan->pack_ns[p]);
    }
    if (rank != plan->ranks)
        return fail_row(context, "micro-batch", m, "the number of ranks covered", rank, plan->ranks);
    if (plan->micro_batch_ns[m] != slowest)
        return fail_row(context, "micro-batch", m, "the predicted time", plan->micro_batch_ns[m], slowest);
    return check_optional(context, plan, m);
}

static hbp_status check_step(hbp_context *context, const hbp_plan *plan, int64_t s, hbp__clock *clock)
{
    int64_t first = plan->step_offsets[s], end = plan->step_offsets[s + 1], ns = 0;
    if ((end - first) % plan->micro_batch_multiple)
        return hbp__fail(context, HBP_E_INVALID,
                         "step %lld has %lld micro-batches; it must be a multiple of %lld", (long long)s,
                         (long long)(end - first), (long long)plan->micro_batch_multiple);
    int64_t pack = plan->micro_batch_offsets[first], end_pack = plan->micro_batch_offsets[end];
    int64_t samples = plan->pack_offsets[end_pack] - plan->pack_offsets[pack], tokens = 0, loss = 0;
    for (int64_t m = first; m < end; m++) {
        HBP__TRY(check_micro_batch(context, plan, m));
        if (!hbp__add_i64(ns, plan->micro_batch_ns[m], &ns))
            return hbp__fail(context, HBP_E_INVALID, "step %lld: the predicted times pass 2^63",
                             (long long)s);
    }
    for (; pack < end_pack; pack++) {
        if (!hbp__add_i64(tokens, plan->pack_tokens[pack], &tokens))
            return hbp__fail(context, HBP_E_INVALID, "step %lld: the tokens pass 2^63", (long long)s);
        loss += plan->pack_loss_tokens[pack];
    }
    if (plan->step_samples[s] != samples)
        return fail_row(context, "step", s, "the number of samples", plan->step_samples[s], samples);
    if (plan->step_tokens[s] != tokens)
        return fail_row(context, "step", s, "the number of tokens", plan->step_tokens[s], tokens);
    if (plan->step_loss_tokens[s] != loss)
        return fail_row(context, "step", s, "the number of loss tokens", plan->step_loss_tokens[s], loss);
    ns = hbp__clock_step(clock, plan, s);
    if (plan->step_ns[s] < ns)
        return fail_row(context, "step", s, "the predicted time", plan->step_ns[s], ns);
    return HBP_OK;
}

static hbp_status check_steps(hbp_context *context, const hbp_plan *plan)
{
    hbp__clock clock;
    int64_t mark = hbp__scratch_mark(context);
    hbp_status status = hbp__clock_open(context, plan->ranks, plan->lockstep_ranks, &clock);
    for (int64_t s = 0; s < plan->steps && status >= 0; s++) {
        status = check_step(context, plan, s, &clock);
        if (s % 256 == 0 && status >= 0)
            status = hbp__tick(context, "check", s, plan->steps);
    }
    return hbp__leave(context, mark, status);
}

hbp_status hbp__plan_check_bounds(hbp_context *context, int64_t bound_ns, int64_t free_bound_ns, int64_t ns)
{
    const int64_t bound[] = {bound_ns, free_bound_ns};
    for (int i = 0; i < 2; i++)
        if (bound[i] < 0 || bound[i] > ns)
            return hbp__fail(
                context, HBP_E_INVALID,
                "the bound on the time%s is %lld ns; it must lie between 0 and the predicted %lld ns",
                i ? " with steps left free" : "", (long long)bound[i], (long long)ns);
    return HBP_OK;
}

hbp_status hbp__plan_check(hbp_context *context, const hbp_plan *plan)
{
    HBP__TRY(check_fields(context, plan));
    HBP__TRY(check_offsets(context, "step", plan->step_offsets, plan->steps, plan->micro_batches, 1));
    HBP__TRY(check_offsets(context, "micro-batch", plan->micro_batch_offsets, plan->micro_batches,
                           plan->packs, 1));
    HBP__TRY(check_offsets(context, "pack", plan->pack_offsets, plan->packs, plan->samples, 0));
    HBP__TRY(check_steps(context, plan));
    HBP__TRY(hbp__plan_check_bounds(context, plan->bound_ns, plan->free_bound_ns, hbp__plan_ns(plan)));
    for (int64_t i = 0; i < plan->dropped; i++) {
        if (plan->dropped_ids[i] < 0)
            return fail_row(context, "dropped row", i, "the id", plan->dropped_ids[i], 0);
        if (plan->dropped_reasons[i] < HBP_DROPPED_OVERLONG || plan->dropped_reasons[i] > HBP_DROPPED_LOST)
            return fail_row(context, "dropped row", i, "the reason", plan->dropped_reasons[i],
                            HBP_DROPPED_OVERLONG);
        if (plan->dropped_first_tokens &&
            (plan->dropped_first_tokens[i] < 0 || plan->dropped_first_tokens[i] > HBP_MAX_LENGTH))
            return fail_row(context, "dropped row", i, "the first token", plan->dropped_first_tokens[i], 0);
        if (plan->dropped_tokens && plan->dropped_tokens[i] < 0)
            return fail_row(context, "dropped row", i, "the tokens", plan->dropped_tokens[i], 0);
    }
    return HBP_OK;
}
