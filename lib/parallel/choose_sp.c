/* How one pack is run: the SP degree and the recomputed layers (HBP, Algorithms 3 and 4). */
#include "parallel/choose_sp.h"

#include "base/options.h"
#include "base/quantity.h"
#include "cost/point.h"
#include "data/model/model.h"
#include "hbp/lengths.h"
#include "hbp/pack.h"

/* What every candidate is compared on. */
typedef struct contest {
    const hbp_cost *cost;
    hbp__load pack;
    int64_t tokens; /* of a step, as asked for */
    int64_t packs;  /* a step needs */
} contest;

static hbp_status prepare_contest(hbp_context *context, const hbp_cost *cost, int64_t pack_length,
                                  const hbp_sp_options *options, contest *c)
{
    hbp_sp_options o;
    HBP__TRY(hbp__require(context, cost, "cost"));
    HBP__TRY(hbp__options_read(context, &o, sizeof o, options, "hbp_sp_options"));
    HBP__TRY(hbp__check_range(context, "pack_length", pack_length, 1, HBP_MAX_LENGTH));
    if (!hbp__lies_in(o.squares_per_token, 0, (double)pack_length))
        return hbp__fail(context, HBP_E_INVALID,
                         "squares_per_token is %g; it must be in 0..%lld, the pack's length",
                         o.squares_per_token, (long long)pack_length);
    c->cost = cost;
    c->pack = (hbp__load){.tokens = pack_length};
    c->tokens = o.tokens_per_step;
    c->packs = o.tokens_per_step ? hbp__ceil_div(o.tokens_per_step, pack_length) : cost->terms.ranks;
    c->pack.squares =
        (o.squares_per_token > 0 ? o.squares_per_token : (double)pack_length) * (double)pack_length;
    return HBP_OK;
}

/* The most tokens of a step that every degree takes less than 2^63 ns for. */
static int64_t most_tokens(const contest *c)
{
    const hbp_cost *cost = c->cost;
    int64_t room = INT64_MAX - hbp__round_i64(cost->terms.step_ns), most = INT64_MAX;
    for (int32_t row = 0; row < cost->terms.degrees; row++) {
        int32_t recompute = hbp__cost_fewest_layers(cost, row, c->pack.tokens, 0);
        int64_t ns = hbp__cost_pack_ns(cost, row, recompute < 0 ? cost->terms.layers : recompute, c->pack);
        int64_t slots = hbp__mul_saturating(room / hbp__max_i64(1, ns), cost->terms.ranks);
        most = hbp__min_i64(most, hbp__mul_saturating(slots / cost->degree[row], c->pack.tokens));
    }
    return most;
}

/* Not one pack can be timed, which no fewer tokens mend. */
static hbp_status fail_slow(hbp_context *context, const contest *c, int32_t sp)
{
    return hbp__fail(
        context, HBP_E_OVERFLOW,
        "a step of one pack of %lld tokens on SP %d takes past 2^63 - 1 ns, which overflows: a token "
        "takes %.3g ns (ns_per_token), its squares %.3g (ns_per_token_squared); is flops_per_s of the "
        "machine in operations per second, 989e12 or 989TFLOPS?",
        (long long)c->pack.tokens, (int)sp, c->cost->terms.ns_per_token, c->cost->terms.ns_per_token_squared);
}

/* Times the degree in table row `row`. */
static hbp_status judge_row(hbp_context *context, const contest *c, int32_t row, hbp_sp_choice *choice)
{
    const hbp_cost *cost = c->cost;
    int32_t sp = cost->degree[row];
    int32_t recompute = hbp__cost_fewest_layers(cost, row, c->pack.tokens, 0);
    *choice =
        (hbp_sp_choice){.struct_size = sizeof *choice, .sp = sp, .limit_bytes = cost->terms.limit_bytes};
    choice->reason = recompute < 0 ? HBP_SP_OUT_OF_MEMORY : HBP_SP_FEASIBLE;
    choice->recompute = recompute < 0 ? cost->terms.layers : recompute;
    choice->peak_bytes = hbp__cost_pack_bytes(cost, row, choice->recompute, c->pack);
    choice->pack_ns = hbp__cost_pack_ns(cost, row, choice->recompute, c->pack);
    int64_t slots;
    int fits = hbp__mul_i64(c->packs, sp, &slots);
    if (fits)
        choice->micro_batches = hbp__ceil_div(slots, cost->terms.ranks);
    if (!fits || !hbp__mul_i64(choice->micro_batches, choice->pack_ns, &choice->step_ns) ||
        !hbp__add_i64(choice->step_ns, hbp__round_i64(cost->terms.step_ns), &choice->step_ns))
        return most_tokens(c) < c->pack.tokens ? fail_slow(context, c, sp)
                                               : hbp__fail(context, HBP_E_OVERFLOW,
                                                           "tokens_per_step is %lld; in packs of %lld tokens "
                                                           "on SP %d a step of more than %lld takes past "
                                                           "2^63 - 1 ns, which overflows",
                                                           (long long)c->tokens, (long long)c->pack.tokens,
                                                           (int)sp, (long long)most_tokens(c));
    return HBP_OK;
}

/* A degree outside the tables: only why it is out. */
static hbp_sp_choice judge_absent(const hbp_cost *cost, int32_t sp)
{
    hbp_sp_choice choice = {.struct_size = sizeof choice, .sp = sp, .limit_bytes = cost->terms.limit_bytes};
    int legal = !cost->heads || hbp__heads_allow(cost->heads, cost->kv_heads, sp);
    choice.reason = legal ? HBP_SP_TOO_FEW_RANKS : HBP_SP_ILLEGAL_HEADS;
    return choice;
}

/* Says that no degree runs the pack: for want of memory, or because of the cost's cap. `leanest` takes the
 * least memory. */
static hbp_status refuse_pack(hbp_context *context, const contest *c, const hbp_sp_choice *leanest)
{
    int64_t per_rank = hbp__cost_least_per_rank(c->cost, c->pack.tokens); /* that would do */
    if (per_rank < INT64_MAX)
        return hbp__fail(context, HBP_E_INFEASIBLE,
                         "a pack of %lld tokens passes tokens_per_rank, which is %lld, on every SP degree; "
                         "%lld would do",
                         (long long)c->pack.tokens, (long long)c->cost->tokens_per_rank, (long long)per_rank);
    return hbp__fail(
        context, HBP_E_INFEASIBLE,
        "a pack of %lld tokens needs %s on each of %d ranks with all %d layers recomputed; a rank has %s, %s "
        "short",
        (long long)c->pack.tokens, hbp__say_bytes(leanest->peak_bytes).text, (int)leanest->sp,
        (int)leanest->recompute, hbp__say_bytes(leanest->limit_bytes).text,
        hbp__say_bytes(leanest->peak_bytes - leanest->limit_bytes).text);
}

/* The fastest degree, `reason` set where none runs the pack; *leanest takes the least memory. */
static hbp_status find_best(hbp_context *context, const contest *c, hbp_sp_choice *best,
                            hbp_sp_choice *leanest)
{
    *best = (hbp_sp_choice){.reason = HBP_SP_OUT_OF_MEMORY};
    *leanest = (hbp_sp_choice){.peak_bytes = INT64_MAX};
    for (int32_t row = 0; row < c->cost->terms.degrees; row++) {
        hbp_sp_choice candidate;
        HBP__TRY(judge_row(context, c, row, &candidate));
        if (candidate.reason == HBP_SP_FEASIBLE && (best->reason || candidate.step_ns < best->step_ns))
            *best = candidate;
        if (candidate.peak_bytes < leanest->peak_bytes || !leanest->sp)
            *leanest = candidate;
    }
    return HBP_OK;
}

hbp_status hbp__find_sp(hbp_context *context, const hbp_cost *cost, int64_t pack_length,
                        const hbp_sp_options *options, hbp_sp_choice *choice, int *fits)
{
    contest c;
    hbp_sp_choice leanest;
    HBP__TRY(prepare_contest(context, cost, pack_length, options, &c));
    HBP__TRY(find_best(context, &c, choice, &leanest));
    *fits = choice->reason == HBP_SP_FEASIBLE;
    return HBP_OK;
}

hbp_status hbp__choose_sp(hbp_context *context, const hbp_cost *cost, int64_t pack_length,
                          const hbp_sp_options *options, hbp_sp_choice *choice)
{
    contest c;
    hbp_sp_choice leanest;
    HBP__TRY(prepare_contest(context, cost, pack_length, options, &c));
    HBP__TRY(find_best(context, &c, choice, &leanest));
    return choice->reason ? refuse_pack(context, &c, &leanest) : HBP_OK;
}

hbp_status hbp_choose_sp(hbp_context *context, const hbp_cost *cost, int64_t pack_length,
                         const hbp_sp_options *options, hbp_sp_choice *choice)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, choice, "choice"));
    hbp_sp_choice best;
    HBP__TRY(hbp__choose_sp(context, cost, pack_length, options, &best));
    return hbp__struct_write(context, choice, &best, sizeof best, "hbp_sp_choice");
}

/* Writes entry `index` of the caller's array, whose elements may be of an older or newer library's size. */
static hbp_status write_entry(hbp_context *context, hbp_sp_choice *choices, uint32_t choice_size,
                              int64_t index, const hbp_sp_choice *entry)
{
    unsigned char *place = (unsigned char *)choices + (uint64_t)index * choice_size;
    hbp__struct_init(place, choice_size);
    return hbp__struct_write(context, place, entry, sizeof *entry, "hbp_sp_choice");
}

hbp_status hbp_list_sp_choices(hbp_context *context, const hbp_cost *cost, int64_t pack_length,
                               const hbp_sp_options *options, hbp_sp_choice *choices, uint32_t choice_size,
                               int64_t capacity, int64_t *count)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, count, "count"));
    *count = 0;
    contest c;
    HBP__TRY(prepare_contest(context, cost, pack_length, options, &c));
    if (capacity < 0)
        return hbp__fail(context, HBP_E_INVALID, "capacity is %lld; it must be at least 0",
                         (long long)capacity);
    if (capacity > 0) {
        HBP__TRY(hbp__require(context, choices, "choices"));
        if (choice_size < sizeof choices->struct_size || choice_size > HBP__MOST_STRUCT)
            return hbp__fail(context, HBP_E_INVALID, "choice_size is %u; pass sizeof(hbp_sp_choice)",
                             (unsigned)choice_size);
    }
    /* Merges the powers of two with the table. 64 bits: the power after the last may pass 2^31. */
    int64_t power = 1;
    int64_t listed = 0;
    for (int32_t row = 0; row < cost->terms.degrees || power <= cost->terms.ranks; listed++) {
        hbp_sp_choice entry;
        if (row < cost->terms.degrees && (power > cost->terms.ranks || cost->degree[row] <= power)) {
            HBP__TRY(judge_row(context, &c, row, &entry));
            row++;
        } else {
            entry = judge_absent(cost, (int32_t)power);
        }
        if (entry.sp == power)
            power *= 2;
        if (listed < capacity)
            HBP__TRY(write_entry(context, choices, choice_size, listed, &entry));
    }
    *count = listed;
    return HBP_OK;
}
