/* Modalities in packs, and packs of the same modalities in whole micro-batches. */
#include "schedule/modalities.h"

#include <string.h>

#include "base/checked.h"
#include "base/rng.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "schedule/tuning.h"

/* Samples between two reports of progress. */
#define SAMPLES_A_TICK 65536

hbp_status hbp__packs_modalities(hbp_context *context, const hbp_packs *packs, uint64_t *modalities)
{
    int64_t ticked = 0;
    for (int64_t p = 0; p < packs->count; p++) {
        modalities[p] = 0;
        for (int64_t i = packs->offsets[p]; i < packs->offsets[p + 1]; i++)
            modalities[p] |= UINT64_C(1) << hbp__lengths_modality(packs->lengths, packs->sample[i]);
        if (packs->offsets[p + 1] - ticked >= SAMPLES_A_TICK) {
            ticked = packs->offsets[p + 1];
            HBP__TRY(hbp__tick(context, "modalities", ticked, packs->samples));
        }
    }
    return HBP_OK;
}

enum { STREAM_KINDS = 0x6b696e64 };

/* An exchange of the samples at two places, of two packs. */
typedef struct swap {
    uint32_t p, q;
    int64_t i, j;
    int64_t change; /* of sizes */
} swap;

/* Packs of one set of modalities in a group. */
typedef struct set {
    uint64_t modalities;
    int64_t first, end; /* of evening.sorted: those that were in it at the beginning */
    int64_t count;      /* now */
    int64_t wanted;     /* a multiple of the packs of a micro-batch */
    int is_stuck;       /* gave less than it should */
} set;

typedef struct evening {
    hbp_context *context;
    hbp_packs *packs;
    uint64_t *modalities; /* [packs] */
    uint32_t *sorted;     /* packs by group and set */
    set *sets;            /* of the group at hand */
    int64_t count;        /* of them */
    int64_t first, end;   /* of the group at hand in sorted */
    int64_t width;
    int64_t capacity;
    hbp__rng rng;
    swap done[2 * HBP__KINDS_EXCHANGES]; /* exchanges that may have to be taken back */
    int64_t steps;
    int64_t probes; /* left in the round */
    int64_t now;    /* of them left to this change */
    int hops;       /* whether a change may be two packs' */
} evening;

static uint64_t kind_bit(const evening *e, int64_t at)
{
    return UINT64_C(1) << hbp__lengths_modality(e->packs->lengths, e->packs->sample[at]);
}

static int64_t padded_of(const hbp_packs *packs, int64_t at)
{
    return hbp__round_up(hbp__packs_length(packs, at), packs->sequence_multiple);
}

static int is_linked(const hbp_packs *packs, int64_t at)
{
    const uint32_t *link = packs->lengths->link;
    return link && link[packs->sample[at]] != HBP__FREE;
}

/* Sets the sums of a pack and its modalities. */
static void measure_pack(evening *e, uint32_t p)
{
    hbp_packs *packs = e->packs;
    int64_t tokens = 0, padded = 0, squares = 0, vision = 0;
    e->modalities[p] = 0;
    for (int64_t i = packs->offsets[p]; i < packs->offsets[p + 1]; i++) {
        int64_t length = hbp__packs_length(packs, i);
        tokens += length;
        padded += hbp__round_up(length, packs->sequence_multiple);
        squares += length * length;
        vision += hbp__lengths_vision(packs->lengths, packs->sample[i]);
        e->modalities[p] |= kind_bit(e, i);
    }
    packs->tokens[p] = tokens;
    packs->padded[p] = hbp__round_up(padded, packs->pack_multiple);
    packs->squares[p] = squares;
    if (packs->vision)
        packs->vision[p] = vision;
}

static void apply(evening *e, const swap *s)
{
    hbp_packs *packs = e->packs;
    uint32_t sample = packs->sample[s->i];
    packs->sample[s->i] = packs->sample[s->j];
    packs->sample[s->j] = sample;
    if (packs->brief) {
        uint16_t brief = packs->brief[s->i];
        packs->brief[s->i] = packs->brief[s->j];
        packs->brief[s->j] = brief;
    }
    measure_pack(e, s->p);
    measure_pack(e, s->q);
}

/* Kinds that a pack has in one sample only, and its padded tokens before its own padding. */
typedef struct profile {
    uint64_t single;
    int64_t padded;
} profile;

static profile profile_of(const evening *e, uint32_t p)
{
    profile f = {0, 0};
    uint64_t twice = 0;
    for (int64_t i = e->packs->offsets[p]; i < e->packs->offsets[p + 1]; i++) {
        uint64_t bit = kind_bit(e, i);
        twice |= f.single & bit;
        f.single |= bit;
        f.padded += padded_of(e->packs, i);
    }
    f.single &= ~twice;
    return f;
}

/* Kinds in one of two sets only. */
static int64_t apart(uint64_t a, uint64_t b)
{
    int64_t modalities = 0;
    for (uint64_t odd = a ^ b; odd; odd &= odd - 1)
        modalities++;
    return modalities;
}

/* Exchanges that pack `p` is away from the set `wanted`: samples of other modalities, and modalities without
 * a sample.
 */
static int64_t distance(const evening *e, uint32_t p, uint64_t wanted)
{
    int64_t steps = 0;
    for (int64_t i = e->packs->offsets[p]; i < e->packs->offsets[p + 1]; i++)
        steps += !(kind_bit(e, i) & wanted);
    for (uint64_t missing = wanted & ~e->modalities[p]; missing; missing &= missing - 1)
        steps++;
    return steps;
}

/* Whether `out` for `in` brings a pack closer to the set `wanted`. */
static int is_closer(uint64_t modalities, uint64_t single, uint64_t out, uint64_t in, uint64_t wanted)
{
    int steps = out & wanted ? (out & single) != 0 : -1;
    steps += in & wanted ? -!(in & modalities) : 1;
    return out != in && steps < 0;
}

/* The change of both sizes in shares of a pack, 0 none; -1 where a pack would pass its capacity. */
static int64_t change_of(const evening *e, const swap *s, const profile *of_p, const profile *of_q)
{
    const hbp_packs *packs = e->packs;
    int64_t tokens = padded_of(packs, s->j) - padded_of(packs, s->i);
    int64_t vision = hbp__lengths_vision(packs->lengths, packs->sample[s->j]) -
                     hbp__lengths_vision(packs->lengths, packs->sample[s->i]);
    if (hbp__round_up(of_p->padded + tokens, packs->pack_multiple) > e->capacity ||
        hbp__round_up(of_q->padded - tokens, packs->pack_multiple) > e->capacity)
        return -1;
    int64_t max_vision = packs->max_vision[packs->group[s->p]];
    if (packs->vision &&
        (packs->vision[s->p] + vision > max_vision || packs->vision[s->q] - vision > max_vision))
        return -1;
    int64_t most =
        packs->vision ? hbp__max_i64(1, hbp__max_i64(packs->vision[s->p], packs->vision[s->q])) : 1;
    return (tokens < 0 ? -tokens : tokens) * 65536 / e->capacity +
           hbp__min_i64(vision < 0 ? -vision : vision, most) * 65536 / most;
}

/* Looks for exchanges with pack s->q that bring s->p closer to `wanted` and leave the other's modalities as
 * they are; keeps the one that changes sizes least in *best. Returns how many it found. */
static int64_t look(const evening *e, swap s, uint64_t wanted, const profile *of_p, int64_t turn, swap *best)
{
    const hbp_packs *packs = e->packs;
    int64_t first_p = packs->offsets[s.p], count_p = packs->offsets[s.p + 1] - first_p;
    int64_t first_q = packs->offsets[s.q], count_q = packs->offsets[s.q + 1] - first_q, found = 0;
    profile of_q = profile_of(e, s.q);
    for (int64_t i = 0; i < hbp__min_i64(HBP__KINDS_LOOKS, count_p); i++)
        for (int64_t j = 0; j < hbp__min_i64(HBP__KINDS_LOOKS, count_q); j++) {
            s.i = first_p + (i + turn) % count_p;
            s.j = first_q + (j + turn) % count_q;
            uint64_t out = kind_bit(e, s.i), in = kind_bit(e, s.j);
            if (!(out & e->modalities[s.q]) || (in & of_q.single) ||
                !is_closer(e->modalities[s.p], of_p->single, out, in, wanted) || is_linked(packs, s.i) ||
                is_linked(packs, s.j))
                continue;
            s.change = change_of(e, &s, of_p, &of_q);
            if (s.change < 0)
                continue;
            found++;
            if (best->change < 0 || s.change < best->change)
                *best = s;
        }
    return found;
}

/* Takes back all but the first `steps` exchanges. */
static void take_back(evening *e, int64_t steps)
{
    while (e->steps > steps)
        apply(e, &e->done[--e->steps]);
}

/* Brings pack `p` to the set `wanted` by exchanges; as it was, and 0, where that fails. */
static int convert(evening *e, uint32_t p, uint64_t wanted)
{
    int64_t steps = e->steps;
    if (distance(e, p, wanted) > HBP__KINDS_EXCHANGES ||
        e->packs->offsets[p + 1] - e->packs->offsets[p] < apart(wanted, 0))
        return 0;
    while (e->modalities[p] != wanted) {
        profile of_p = profile_of(e, p);
        swap best = {.change = -1};
        int64_t found = 0;
        for (int64_t probe = 0; probe < HBP__KINDS_PROBES && found < HBP__KINDS_CHOICES && e->now > 0;
             probe++) {
            e->now--;
            uint64_t draw = hbp__rng_next(&e->rng);
            int64_t at = e->first + (int64_t)((draw >> 32) % (uint64_t)(e->end - e->first));
            swap s = {.p = p, .q = e->sorted[at]};
            if (s.q != p)
                found += look(e, s, wanted, &of_p, (int64_t)(draw & 0xffff), &best);
        }
        if (best.change < 0) {
            take_back(e, steps);
            return 0;
        }
        apply(e, &best);
        e->done[e->steps++] = best;
    }
    return 1;
}

/* Chooses the sets that take: those that lack least for another whole micro-batch, stuck ones first, as many
 * as are needed; the others give. */
static void choose_wanted(evening *e)
{
    int64_t packs = 0, full = 0;
    for (int64_t i = 0; i < e->count; i++) {
        set *s = &e->sets[i];
        packs += s->count;
        s->wanted = s->count / e->width * e->width;
        full += s->wanted;
    }
    for (int64_t up = hbp__ceil_div(packs, e->width) - full / e->width; up > 0; up--) {
        set *best = NULL;
        for (int64_t i = 0; i < e->count; i++) {
            set *s = &e->sets[i];
            if (s->wanted < s->count &&
                (!best || s->is_stuck > best->is_stuck ||
                 (s->is_stuck == best->is_stuck && s->count - s->wanted > best->count - best->wanted)))
                best = s;
        }
        if (!best)
            break;
        best->wanted += e->width;
    }
}

/* Brings one of the packs that began in the set to another set; 0 when HBP__KINDS_TRIES of them fail. */
static int convert_one(evening *e, const set *from, uint64_t wanted)
{
    int64_t count = from->end - from->first, turn = hbp__rng_below(&e->rng, (uint64_t)count);
    int tries = 0;
    for (int64_t i = 0; i < count && tries < HBP__KINDS_TRIES; i++) {
        uint32_t p = e->sorted[from->first + (i + turn) % count];
        if (e->modalities[p] != from->modalities)
            continue;
        tries++;
        if (convert(e, p, wanted))
            return 1;
    }
    return 0;
}

/* A way for a pack from one set to another: straight, or one pack to the set `by` and another from there. */
typedef struct way {
    int64_t to, by; /* by = to: straight */
} way;

/* The next way in the order of exchanges it needs at least, straight ones first, then of index; 0 when there
 * is none. *key is where the last one was. */
static int next_way(const evening *e, const set *from, int64_t *key, way *out)
{
    int64_t best = INT64_MAX;
    for (int64_t to = 0; to < e->count; to++)
        for (int64_t by = 0; by < e->count && e->sets[to].count < e->sets[to].wanted; by++) {
            uint64_t middle = e->sets[by].modalities;
            if (&e->sets[by] == from || (by != to && !e->hops))
                continue;
            int64_t steps =
                2 * (apart(from->modalities, middle) + apart(middle, e->sets[to].modalities)) + (by != to);
            int64_t here = (steps * e->count + to) * e->count + by;
            if (here <= *key || here >= best)
                continue;
            best = here;
            *out = (way){to, by};
        }
    *key = best;
    return best < INT64_MAX;
}

/* Moves one pack from the set to one that lacks some; 0 when none can be had. */
static int give(evening *e, set *from)
{
    int64_t key = -1;
    for (way w; e->now > 0 && next_way(e, from, &key, &w);) {
        set *to = &e->sets[w.to], *by = &e->sets[w.by];
        e->steps = 0;
        if (by != to && !convert_one(e, by, to->modalities))
            continue;
        if (convert_one(e, from, by->modalities)) {
            from->count--;
            to->count++;
            return 1;
        }
        take_back(e, 0);
    }
    return 0;
}

/* The sets of the group's packs. */
static hbp_status list_sets(evening *e)
{
    int64_t count = 0;
    for (int64_t i = e->first; i < e->end; i++)
        count += i == e->first || e->modalities[e->sorted[i]] != e->modalities[e->sorted[i - 1]];
    e->count = 0;
    e->sets = hbp__take(e->context, (uint64_t)count, sizeof *e->sets);
    HBP__TRY(hbp__scratch_check(e->context, "the modalities of packs"));
    for (int64_t i = e->first; i < e->end; i++) {
        uint64_t modalities = e->modalities[e->sorted[i]];
        if (i == e->first || modalities != e->sets[e->count - 1].modalities)
            e->sets[e->count++] = (set){modalities, i, i, 0, 0, 0};
        e->sets[e->count - 1].end = i + 1;
        e->sets[e->count - 1].count++;
    }
    for (int64_t i = 0; i < e->count; i++)
        hbp__rng_shuffle_u32(&e->rng, e->sorted + e->sets[i].first,
                             (uint64_t)(e->sets[i].end - e->sets[i].first));
    return HBP_OK;
}

/* Padding packs of the group as its sets are. */
static int64_t padding_packs_of(const evening *e)
{
    int64_t padding = 0;
    for (int64_t i = 0; i < e->count; i++)
        padding += hbp__round_up(e->sets[i].count, e->width) - e->sets[i].count;
    return padding;
}

static hbp_status even_group(evening *e)
{
    int64_t packs = e->end - e->first, least = hbp__round_up(packs, e->width) - packs;
    HBP__TRY(list_sets(e));
    for (int round = 0; round < HBP__KINDS_ROUNDS && padding_packs_of(e) > least; round++) {
        choose_wanted(e);
        e->probes = HBP__KINDS_LOOKS_A_ROUND + HBP__KINDS_LOOKS_A_PACK * packs;
        e->hops = round > 0;
        for (int64_t i = 0; i < e->count; i++) {
            set *s = &e->sets[i];
            HBP__TRY(hbp__tick(e->context, "modalities", i, e->count));
            for (int gave = 1; gave && s->count > s->wanted;) {
                int64_t most = hbp__min_i64(e->probes, HBP__KINDS_LOOKS_A_CHANGE);
                e->now = most;
                gave = give(e, s);
                e->probes -= most - e->now;
            }
            s->is_stuck |= e->hops && s->count > s->wanted;
        }
    }
    return HBP_OK;
}

/* Packs in the order of groups, and of sets in each. */
static hbp_status sort_packs(hbp_context *context, const hbp_packs *packs, const uint64_t *modalities,
                             uint32_t *sorted)
{
    int64_t mark = hbp__scratch_mark(context);
    uint64_t *group = hbp__take(context, (uint64_t)packs->count, sizeof *group);
    HBP__TRY(hbp__scratch_check(context, "the modalities of packs"));
    for (int64_t p = 0; p < packs->count; p++) {
        sorted[p] = (uint32_t)p;
        group[p] = (uint64_t)packs->group[p];
    }
    if (!hbp__sort_by_u64(&context->memory, modalities, sorted, packs->count) ||
        !hbp__sort_by_u64(&context->memory, group, sorted, packs->count))
        return hbp__fail_memory(context, "the modalities of packs");
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

hbp_status hbp__packs_even_modalities(hbp_context *context, const hbp_groups *groups, uint64_t seed,
                                      uint64_t epoch, hbp_packs *packs)
{
    evening e = {.context = context, .packs = packs};
    int64_t mark = hbp__scratch_mark(context);
    e.modalities = hbp__take(context, (uint64_t)packs->count, sizeof *e.modalities);
    e.sorted = hbp__take(context, (uint64_t)packs->count, sizeof *e.sorted);
    HBP__TRY(hbp__scratch_check(context, "the modalities of packs"));
    HBP__TRY(hbp__packs_modalities(context, packs, e.modalities));
    HBP__TRY(sort_packs(context, packs, e.modalities, e.sorted));
    for (e.first = 0; e.first < packs->count; e.first = e.end) {
        int32_t g = packs->group[e.sorted[e.first]];
        int64_t mark_of_group = hbp__scratch_mark(context);
        for (e.end = e.first + 1; e.end < packs->count && packs->group[e.sorted[e.end]] == g;)
            e.end++;
        e.rng = hbp__rng_make(seed, epoch, STREAM_KINDS + (uint64_t)g);
        e.width = groups->packs[g];
        e.capacity = groups->pack_length[g] / packs->pack_multiple * packs->pack_multiple;
        HBP__TRY(even_group(&e));
        hbp__scratch_release(context, mark_of_group);
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
