/* First fit by descending time over packs of all degrees. */
#include "schedule/mix.h"

#include <string.h>

#include "base/checked.h"

/* The cut in progress. Queues of packs, one a group, each from the slowest. */
typedef struct cut {
    const hbp_groups *groups;
    const hbp__micro_batches *pure;
    const int64_t *ns;
    int32_t by_degree[HBP_MAX_GROUPS]; /* groups, the largest degree first */
    int64_t head[HBP_MAX_GROUPS];      /* into pure->place */
    int64_t end[HBP_MAX_GROUPS];
} cut;

/* Groups in descending order of degree, ties by index. */
static void order_by_degree(const hbp_groups *groups, int32_t *order)
{
    for (int32_t g = 0; g < groups->count; g++) {
        int32_t at = g;
        for (; at > 0 && groups->sp[order[at - 1]] < groups->sp[g]; at--)
            order[at] = order[at - 1];
        order[at] = g;
    }
}

int hbp__mix_is_possible(const hbp_groups *groups)
{
    int32_t order[HBP_MAX_GROUPS];
    order_by_degree(groups, order);
    for (int64_t i = 1; i < groups->count; i++)
        if (groups->sp[order[i - 1]] % groups->sp[order[i]])
            return 0;
    return 1;
}

hbp_status hbp__mix_times(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                          const hbp_cost *cost, int64_t *ns)
{
    int32_t row[HBP_MAX_GROUPS];
    for (int64_t g = 0; g < groups->count; g++)
        row[g] = hbp__cost_row(cost, groups->sp[g]);
    for (int64_t p = 0; p < packs->count; p++) {
        HBP__TRY(hbp__tick_row(context, "layout", p, packs->count));
        int32_t g = packs->group[p];
        hbp__load load = {.tokens = packs->padded[p], .squares = (double)packs->squares[p]};
        ns[p] = hbp__cost_pack_ns(cost, row[g], groups->recompute[g], load);
    }
    return HBP_OK;
}

static void cut_begin(const hbp_groups *groups, const int64_t *ns, const hbp__micro_batches *pure, cut *c)
{
    c->groups = groups;
    c->pure = pure;
    c->ns = ns;
    order_by_degree(groups, c->by_degree);
    for (int64_t g = 0; g < groups->count; g++) {
        c->head[g] = pure->first[pure->group_first[g]];
        c->end[g] = pure->first[pure->group_first[g + 1]];
        while (c->end[g] > c->head[g] && pure->place[c->end[g] - 1] == HBP__PADDING_PACK)
            c->end[g]--;
    }
}

/* The group whose next pack is the slowest of those that fit `left` ranks, the largest degree of those alike;
 * -1 when none fits. */
static int32_t slowest_that_fits(const cut *c, int64_t left)
{
    int32_t best = -1;
    int64_t best_ns = 0;
    for (int64_t i = 0; i < c->groups->count; i++) {
        int32_t g = c->by_degree[i];
        if (c->groups->sp[g] > left || c->head[g] == c->end[g])
            continue;
        int64_t ns = c->ns[c->pure->place[c->head[g]]];
        if (best < 0 || ns > best_ns) {
            best = g;
            best_ns = ns;
        }
    }
    return best;
}

/* Takes the packs of the next micro-batch from the queues, writes them to `place` unless it is NULL, with
 * padding packs of the least degree behind them; returns how many places, 0 when no pack is left. */
static int64_t cut_next(cut *c, uint32_t *place)
{
    int64_t left = c->groups->ranks, taken = 0, at = 0;
    int64_t from[HBP_MAX_GROUPS];
    memcpy(from, c->head, sizeof from);
    for (int32_t g; (g = slowest_that_fits(c, left)) >= 0; taken++) {
        left -= c->groups->sp[g];
        c->head[g]++;
    }
    if (!taken)
        return 0;
    int64_t padding_packs = left / c->groups->sp[c->by_degree[c->groups->count - 1]];
    if (!place)
        return taken + padding_packs;
    for (int64_t i = 0; i < c->groups->count; i++) {
        int32_t g = c->by_degree[i];
        for (int64_t j = from[g]; j < c->head[g]; j++)
            place[at++] = c->pure->place[j];
    }
    for (int64_t i = 0; i < padding_packs; i++)
        place[at++] = HBP__PADDING_PACK;
    return at;
}

#define TICK_BATCHES 4096

hbp_status hbp__mix_open(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                         const int64_t *ns, const hbp__micro_batches *pure, hbp__micro_batches *batches)
{
    const hbp__memory *memory = &context->memory;
    memset(batches, 0, sizeof *batches);
    batches->memory = *memory;
    cut c;
    int64_t places = 0, taken;
    for (cut_begin(groups, ns, pure, &c); (taken = cut_next(&c, NULL)) > 0; places += taken) {
        if (batches->count++ % TICK_BATCHES == 0)
            HBP__TRY(hbp__tick(context, "mix", places, packs->count));
    }
    batches->group = hbp__new(memory, (uint64_t)batches->count, sizeof *batches->group);
    batches->first = hbp__new(memory, (uint64_t)batches->count + 1, sizeof *batches->first);
    batches->place = hbp__new(memory, (uint64_t)places, sizeof *batches->place);
    if (!batches->group || !batches->first || !batches->place)
        return hbp__fail_memory(context, "the micro-batches");
    cut_begin(groups, ns, pure, &c);
    batches->first[0] = 0;
    for (int64_t m = 0; m < batches->count; m++) {
        batches->group[m] = c.by_degree[groups->count - 1];
        batches->first[m + 1] = batches->first[m] + cut_next(&c, batches->place + batches->first[m]);
        if (m % TICK_BATCHES == 0)
            HBP__TRY(hbp__tick(context, "mix", m, batches->count));
    }
    return HBP_OK;
}
