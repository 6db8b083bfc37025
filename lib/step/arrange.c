#include "step/arrange.h"

#include <string.h>

#include "base/checked.h"
#include "base/methods.h"
#include "base/scratch.h"
#include "base/sort.h"

hbp_status hbp__step_arrange_open(const hbp__step *step, hbp__step_solution *solution)
{
    int64_t room = hbp__max_i64(step->count, step->options.min_micro_batches);
    HBP__TRY(hbp__step_solution_open(step, room, step->count, solution));
    solution->micro_batches = solution->groups = 0;
    return HBP_OK;
}

hbp_status hbp__step_arrange_close(const hbp__step *step, hbp__step_solution *solution)
{
    int32_t most = step->options.max_micro_batches;
    int64_t whole = hbp__step_whole(step, solution->micro_batches);
    if (most && whole > most)
        return hbp__fail(step->context, HBP_E_INFEASIBLE,
                         "method %s takes %lld micro-batches for this batch; max_micro_batches is %d",
                         step->options.method, (long long)whole, (int)most);
    solution->groups = solution->first[solution->micro_batches];
    while (solution->micro_batches < step->options.min_micro_batches)
        solution->first[++solution->micro_batches] = solution->groups;
    return hbp__step_solution_price(step, solution);
}

int64_t hbp__step_most_micro_batches(const hbp__step *step)
{
    int32_t most = step->options.max_micro_batches;
    return most ? hbp__min_i64(most, step->count) : step->count;
}

/* An open pack and its room, in ascending order of both. */
typedef struct gap {
    int64_t room; /* 0 when it has as many samples as it may */
    int64_t pack;
    int64_t samples; /* that it may still take */
} gap;

static int is_below(const gap *g, int64_t room, int64_t pack)
{
    return g->room < room || (g->room == room && g->pack < pack);
}

/* The first of `count` gaps that is not below {room, pack}. */
static int64_t find_gap(const gap *gaps, int64_t count, int64_t room, int64_t pack)
{
    int64_t low = 0;
    while (low < count) {
        int64_t middle = low + (count - low) / 2;
        if (is_below(&gaps[middle], room, pack))
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

/* The gaps in order, in blocks that are small enough to move: what is put in or taken out moves gaps of its
 * block alone. A block that is full is cut in two, so that there are at most one and one for each BLOCK / 2
 * gaps ever put in. */
#define BLOCK 256

typedef struct gap_list {
    gap *gap;       /* [blocks + 1][BLOCK] */
    int64_t *count; /* [blocks + 1] by block */
    int64_t *order; /* [blocks + 1] blocks in order */
    int64_t blocks; /* in order; at least one, and none is empty but an only one */
    int64_t used;
} gap_list;

static int64_t most_blocks(int64_t count)
{
    return count / (BLOCK / 2) + 2;
}

static void take_gaps(hbp_context *context, int64_t count, gap_list *list)
{
    uint64_t blocks = (uint64_t)most_blocks(count);
    list->gap = hbp__take(context, blocks, BLOCK * sizeof *list->gap);
    list->count = hbp__take_zero(context, blocks, sizeof *list->count);
    list->order = hbp__take_zero(context, blocks, sizeof *list->order);
    list->blocks = list->used = 1;
}

/* A gap's block, by its place in the order, and its place in that. */
typedef struct spot {
    int64_t block;
    int64_t at;
} spot;

static gap *gap_at(const gap_list *list, spot s)
{
    return &list->gap[list->order[s.block] * BLOCK + s.at];
}

static int is_end(const gap_list *list, spot s)
{
    return s.at == list->count[list->order[s.block]];
}

static spot next_spot(const gap_list *list, spot s)
{
    s.at++;
    return is_end(list, s) && s.block + 1 < list->blocks ? (spot){s.block + 1, 0} : s;
}

/* The first gap that is not below {room, pack}, or the end of the last block. */
static spot find_spot(const gap_list *list, int64_t room, int64_t pack)
{
    int64_t low = 0, high = list->blocks - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2, count = list->count[list->order[middle]];
        if (is_below(gap_at(list, (spot){middle, count - 1}), room, pack))
            low = middle + 1;
        else
            high = middle;
    }
    const gap *first = list->gap + list->order[low] * BLOCK;
    return (spot){low, find_gap(first, list->count[list->order[low]], room, pack)};
}

static void take_gap(gap_list *list, spot s)
{
    gap *gone = gap_at(list, s);
    int64_t *count = &list->count[list->order[s.block]];
    memmove(gone, gone + 1, (uint64_t)(--*count - s.at) * sizeof *gone);
    if (*count || list->blocks == 1)
        return;
    list->blocks--;
    memmove(list->order + s.block, list->order + s.block + 1,
            (uint64_t)(list->blocks - s.block) * sizeof *list->order);
}

/* Cuts a full block in two. */
static void cut_block(gap_list *list, int64_t block)
{
    int64_t from = list->order[block], to = list->used++;
    memcpy(list->gap + to * BLOCK, list->gap + from * BLOCK + BLOCK / 2, BLOCK / 2 * sizeof *list->gap);
    list->count[from] = list->count[to] = BLOCK / 2;
    memmove(list->order + block + 2, list->order + block + 1,
            (uint64_t)(list->blocks - block - 1) * sizeof *list->order);
    list->order[block + 1] = to;
    list->blocks++;
}

static void put_gap(gap_list *list, gap put)
{
    spot s = find_spot(list, put.room, put.pack);
    if (list->count[list->order[s.block]] == BLOCK) {
        cut_block(list, s.block);
        s = find_spot(list, put.room, put.pack);
    }
    gap *place = gap_at(list, s);
    memmove(place + 1, place, (uint64_t)(list->count[list->order[s.block]]++ - s.at) * sizeof *place);
    *place = put;
}

/* Sequences placed, and gaps looked at besides, between two looks at a request to cancel. */
#define TICK_WORK 8192

/* Whether the pack of a gap that has room for the tokens of sequence k has it for the rest as well. */
static int gap_takes(const hbp__step *step, int32_t j, const gap *open, const hbp__load *load, int64_t k,
                     int64_t samples)
{
    return open->samples >= samples && (!step->vision || hbp__step_takes(step, j, &load[open->pack], k));
}

/* Each sequence, longest first, into the pack of step->degree[j] that it leaves the least room; *count gets
 * the packs, and `load` [packs] what they hold. */
static hbp_status pack_best_fit(const hbp__step *step, int32_t j, int64_t capacity, gap_list *gaps,
                                hbp__load *load, int64_t *pack_of, int64_t *count)
{
    int64_t packs = 0, work = 0;
    for (int64_t i = 0; i < step->count; i++) {
        if (++work >= TICK_WORK) {
            HBP__TRY(hbp__tick(step->context, "SP degrees", j, step->degrees));
            work = 0;
        }
        int64_t size = step->degree[j].tokens[i], samples = hbp__step_samples(step, i);
        spot from = find_spot(gaps, size, 0);
        for (; !is_end(gaps, from) && !gap_takes(step, j, gap_at(gaps, from), load, i, samples); work++)
            from = next_spot(gaps, from);
        gap open = {capacity, packs, step->most_samples};
        if (is_end(gaps, from)) {
            load[packs++] = (hbp__load){0, 0, 0, 0};
        } else {
            open = *gap_at(gaps, from);
            take_gap(gaps, from);
        }
        open.samples -= samples;
        open.room = open.samples ? open.room - size : 0;
        put_gap(gaps, open);
        pack_of[i] = open.pack;
        load[open.pack] = hbp__step_load_with(step, j, load[open.pack], i);
    }
    *count = packs;
    return HBP_OK;
}

/* Slowest first; `key` is [packs]. */
static int sort_packs(const hbp__step *step, int32_t j, int64_t packs, int64_t *key, const hbp__load *load,
                      uint32_t *order)
{
    for (int64_t p = 0; p < packs; p++) {
        order[p] = (uint32_t)p;
        key[p] = -hbp__step_group_ns(step, j, load[p]);
    }
    return hbp__sort_by_i64(&step->context->memory, key, order, packs);
}

/* Numbers the packs by time, and cuts them into micro-batches. */
static int line_up(const hbp__step *step, int32_t j, int64_t packs, int64_t *key, hbp__load *load,
                   uint32_t *order, hbp__step_solution *solution)
{
    int64_t side_by_side = step->ranks / step->degree[j].degree;
    if (!sort_packs(step, j, packs, key, load, order))
        return 0;
    for (int64_t p = 0; p < packs; p++) {
        key[order[p]] = p;
        solution->degree[p] = j;
        solution->micro_batches = p / side_by_side + 1;
        solution->first[solution->micro_batches] = p + 1;
    }
    for (int64_t i = 0; i < step->count; i++)
        solution->group[i] = key[solution->group[i]];
    return 1;
}

/* Packs of at most `capacity` tokens. */
static hbp_status arrange_packs(const hbp__step *step, int32_t j, int64_t capacity,
                                hbp__step_solution *solution)
{
    hbp_context *context = step->context;
    int64_t mark = hbp__scratch_mark(context), packs = 0;
    uint64_t count = (uint64_t)step->count;
    HBP__TRY(hbp__step_arrange_open(step, solution));
    gap_list gaps;
    take_gaps(context, step->count, &gaps);
    int64_t *key = hbp__take(context, count, sizeof *key);
    hbp__load *load = hbp__take(context, count, sizeof *load);
    uint32_t *order = hbp__take(context, count, sizeof *order);
    HBP__TRY(hbp__scratch_check(context, "the packs of the step"));
    HBP__TRY(pack_best_fit(step, j, capacity, &gaps, load, solution->group, &packs));
    if (!line_up(step, j, packs, key, load, order, solution))
        return hbp__fail_memory(context, "the packs of the step");
    return hbp__leave(context, mark, hbp__step_arrange_close(step, solution));
}

hbp_status hbp__step_arrange_degree(const hbp__step *step, int32_t j, int32_t tenths,
                                    hbp__step_solution *solution)
{
    const hbp__step_degree *degree = &step->degree[j];
    int64_t full =
        hbp__max_i64(degree->capacity / 10 * tenths + degree->capacity % 10 * tenths / 10, degree->longest);
    int64_t plain = hbp__max_i64(degree->way[0].capacity / 10 * tenths, degree->longest);
    HBP__TRY(arrange_packs(step, j, full, solution));
    if (degree->ways == 1 || plain >= full)
        return HBP_OK;
    hbp__step_solution trial = {.ns = 0};
    hbp_status status = arrange_packs(step, j, plain, &trial);
    if (status >= 0)
        hbp__step_keep_faster(solution, &trial);
    hbp__step_solution_close(&trial);
    if (status != HBP_E_INFEASIBLE)
        return status;
    return hbp__forgive(step->context);
}

void hbp__step_keep_faster(hbp__step_solution *best, hbp__step_solution *trial)
{
    if (best->memory.release && best->ns <= trial->ns) {
        hbp__step_solution_close(trial);
        return;
    }
    hbp__step_solution_close(best);
    *best = *trial;
    memset(trial, 0, sizeof *trial);
}
