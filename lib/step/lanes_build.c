/* Lanes filled: by a goal, or from a solution; and lanes as a solution. */
#include "base/checked.h"
#include "base/scratch.h"
#include "step/lanes.h"
#include "step/tuning.h"

/* The degree on which sequence k asks for the least rank-time in packs no longer than `goal`; where all are
 * longer, the one on which it is the shortest. */
static int32_t choose_degree(hbp__lanes *l, int64_t k, int64_t goal)
{
    const hbp__step *step = l->step;
    int32_t chosen = -1, shortest = -1;
    double least = 0;
    int64_t soonest = INT64_MAX;
    for (int32_t i = 0; i < l->chains; i++) {
        int32_t j = l->chain[i];
        if (!hbp__lanes_may_hold(l, j, k))
            continue;
        int64_t ns = hbp__lanes_price_alone(l, j, k);
        double ranks = hbp__step_rank_time(step, j, k);
        if (ns < soonest) {
            soonest = ns;
            shortest = j;
        }
        if (ns <= goal && (chosen < 0 || ranks < least)) {
            chosen = j;
            least = ranks;
        }
    }
    return chosen >= 0 ? chosen : shortest;
}

/* The block of degree index j that is free the soonest. */
static int32_t soonest_block(const hbp__lanes *l, int32_t j)
{
    int32_t ranks = l->step->degree[j].degree, best = 0;
    int64_t least = INT64_MAX;
    for (int32_t r = 0; r < l->step->ranks; r += ranks) {
        int64_t load = hbp__lanes_load(l, r, ranks);
        if (load < least) {
            least = load;
            best = r;
        }
    }
    return best;
}

/* Into the pack of the block that it lengthens the least, or a new one. */
static void put(hbp__lanes *l, int32_t j, int32_t rank, int64_t k)
{
    int64_t best = -1, least = hbp__add_saturating(hbp__lanes_price_alone(l, j, k), l->padding_ns);
    int64_t seen = 0;
    for (int64_t p = l->begins[rank]; p >= 0 && seen < HBP__LANES_NEWEST; p = l->pack[p].next) {
        if (l->pack[p].degree != j)
            continue;
        seen++;
        int64_t ns = hbp__lanes_price(l, p, k, -1);
        if (ns < INT64_MAX && ns - l->pack[p].ns <= least) {
            least = ns - l->pack[p].ns;
            best = p;
        }
    }
    if (best >= 0)
        hbp__lanes_add(l, best, k);
    else
        hbp__lanes_add_pack(l, j, rank, k);
}

void hbp__lanes_build(hbp__lanes *l, int64_t goal)
{
    const hbp__step *step = l->step;
    hbp__lanes_clear(l);
    /* The degree of a sequence stands in `next` until it is put into a pack. */
    for (int64_t k = 0; k < step->count; k++)
        l->next[k] = choose_degree(l, k, goal);
    for (int32_t i = l->chains - 1; i >= 0; i--)
        for (int64_t k = 0; k < step->count; k++)
            if (l->pack_of[k] < 0 && l->next[k] == l->chain[i])
                put(l, l->chain[i], soonest_block(l, l->chain[i]), k);
}

/* Whether the groups of a solution are of the chain and have a place, which `rank` [groups] gets. */
static int are_read(const hbp__lanes *l, const hbp__step_solution *s, int32_t *rank)
{
    for (int64_t m = 0; m < s->micro_batches; m++)
        if (!hbp__step_place(l->step, s->degree + s->first[m], s->first[m + 1] - s->first[m],
                             rank + s->first[m]))
            return 0;
    for (int64_t g = 0; g < s->groups; g++) {
        int32_t i = 0;
        while (i < l->chains && l->chain[i] != s->degree[g])
            i++;
        if (i == l->chains)
            return 0;
    }
    return 1;
}

hbp_status hbp__lanes_read(hbp__lanes *l, const hbp__step_solution *s, int *is_read)
{
    const hbp__step *step = l->step;
    int64_t mark = hbp__scratch_mark(step->context);
    int64_t *pack = hbp__take(step->context, (uint64_t)s->groups, sizeof *pack);
    int32_t *rank = hbp__take(step->context, (uint64_t)s->groups, sizeof *rank);
    HBP__TRY(hbp__scratch_check(step->context, "the lanes of a step"));
    hbp__lanes_clear(l);
    *is_read = are_read(l, s, rank);
    for (int64_t g = 0; *is_read && g < s->groups; g++)
        pack[g] = -1;
    for (int64_t k = 0; *is_read && k < step->count; k++) {
        int64_t g = s->group[k];
        if (pack[g] < 0)
            pack[g] = hbp__lanes_add_pack(l, s->degree[g], rank[g], k);
        else
            hbp__lanes_add(l, pack[g], k);
    }
    hbp__scratch_release(step->context, mark);
    return HBP_OK;
}

/* Moves every other sequence of pack p, from the first on, into a new pack, where no rank gets a larger load
 * than `most` of it. */
static int split(hbp__lanes *l, int64_t p, int64_t most)
{
    int32_t j = l->pack[p].degree, rank = l->pack[p].rank, ranks = l->step->degree[j].degree;
    int64_t fresh = -1, k = l->pack[p].first;
    for (int64_t i = 0; k >= 0; i++) {
        int64_t next = l->next[k];
        if (i % 2) {
            hbp__lanes_remove(l, k);
            if (fresh < 0)
                fresh = hbp__lanes_add_pack(l, j, rank, k);
            else
                hbp__lanes_add(l, fresh, k);
        }
        k = next;
    }
    if (hbp__lanes_load(l, rank, ranks) <= most)
        return 1;
    while (l->pack[fresh].degree >= 0) {
        k = l->pack[fresh].first;
        hbp__lanes_remove(l, k);
        hbp__lanes_add(l, p, k);
    }
    return 0;
}

/* Cuts packs of ranks with fewer than `rows`, where that makes no load the largest. */
static void split_packs(hbp__lanes *l, int64_t rows)
{
    int64_t most = hbp__lanes_load(l, 0, l->step->ranks);
    for (int32_t i = l->chains - 1; i >= 0; i--) {
        int32_t j = l->chain[i], ranks = l->step->degree[j].degree;
        for (int32_t rank = 0; rank < l->step->ranks; rank += ranks) {
            int helps = 1;
            while (helps && hbp__lanes_row(l, rank, ranks) < rows) {
                int64_t longest = -1;
                for (int64_t p = l->begins[rank]; p >= 0; p = l->pack[p].next)
                    if (l->pack[p].degree == j && l->pack[p].sequences > 1 &&
                        (longest < 0 || l->pack[p].ns > l->pack[longest].ns))
                        longest = p;
                helps = longest >= 0 && split(l, longest, most);
            }
        }
    }
}

/* The shortest sequence that leaves another in its pack and fits degree index j; -1: none. */
static int64_t find_spare(const hbp__lanes *l, int32_t j)
{
    for (int64_t k = l->step->count - 1; k >= 0; k--)
        if (l->pack[l->pack_of[k]].sequences > 1 && hbp__lanes_may_hold(l, j, k))
            return k;
    return -1;
}

/* The shortest sequence that leaves another on its ranks and fits degree index j, the least; -1: none. */
static int64_t find_second(const hbp__lanes *l, int32_t j)
{
    for (int64_t k = l->step->count - 1; k >= 0; k--) {
        const hbp__lanes_pack *pack = &l->pack[l->pack_of[k]];
        if ((pack->sequences > 1 || (pack->degree == j && l->row[pack->rank] > 1)) &&
            hbp__lanes_may_hold(l, j, k))
            return k;
    }
    return -1;
}

void hbp__lanes_fill_idle(hbp__lanes *l)
{
    int32_t j = l->chain[0], ranks = l->step->degree[j].degree;
    int64_t most = hbp__lanes_load(l, 0, l->step->ranks);
    most = hbp__add_saturating(most, most / HBP__LANES_DEAR);
    for (int32_t rank = 0; rank < l->step->ranks; rank += ranks) {
        int64_t k = l->row[rank] ? -1 : find_second(l, j);
        if (k < 0 || hbp__lanes_price_alone(l, j, k) > most)
            continue;
        hbp__lanes_remove(l, k);
        hbp__lanes_add_pack(l, j, rank, k);
    }
}

void hbp__lanes_fill_rows(hbp__lanes *l, int64_t rows)
{
    int32_t j = l->chain[0], ranks = l->step->degree[j].degree;
    int64_t most = hbp__lanes_load(l, 0, l->step->ranks);
    most = hbp__add_saturating(most, most / HBP__LANES_DEAR);
    split_packs(l, rows);
    for (int32_t rank = 0; rank < l->step->ranks; rank += ranks)
        while (hbp__lanes_row(l, rank, ranks) < rows) {
            int64_t k = find_spare(l, j), load = hbp__lanes_load(l, rank, ranks);
            if (k < 0 || hbp__lanes_price_alone(l, j, k) > most - load)
                break;
            hbp__lanes_remove(l, k);
            hbp__lanes_add_pack(l, j, rank, k);
        }
}

/* Row of each pack: as they stand on its ranks, larger degrees first. */
static void list_rows(hbp__lanes *l, int64_t *row_of)
{
    for (int32_t r = 0; r < l->step->ranks; r++)
        l->row[r] = 0;
    for (int32_t i = l->chains - 1; i >= 0; i--) {
        int32_t j = l->chain[i], ranks = l->step->degree[j].degree;
        for (int32_t rank = 0; rank < l->step->ranks; rank += ranks)
            for (int64_t p = l->begins[rank]; p >= 0; p = l->pack[p].next) {
                if (l->pack[p].degree != j)
                    continue;
                int64_t row = hbp__lanes_row(l, rank, ranks);
                row_of[p] = row;
                for (int32_t r = rank; r < rank + ranks; r++)
                    l->row[r] = row + 1;
            }
    }
}

hbp_status hbp__lanes_write(hbp__lanes *l, hbp__step_solution *s)
{
    const hbp__step *step = l->step;
    int64_t mark = hbp__scratch_mark(step->context);
    int64_t *row_of = hbp__take(step->context, (uint64_t)l->packs, sizeof *row_of);
    int64_t *group_of = hbp__take(step->context, (uint64_t)l->packs, sizeof *group_of);
    HBP__TRY(hbp__scratch_check(step->context, "the lanes of a step"));
    list_rows(l, row_of);
    int64_t rows = hbp__lanes_row(l, 0, step->ranks), groups = 0;
    for (int64_t p = 0; p < l->packs; p++)
        groups += l->pack[p].degree >= 0;
    HBP__TRY(hbp__step_solution_open(step, rows, groups, s));
    s->rank = hbp__new(&s->memory, (uint64_t)groups, sizeof *s->rank);
    if (!s->rank)
        return hbp__fail_memory(step->context, "the lanes of a step");
    for (int64_t p = 0; p < l->packs; p++)
        if (l->pack[p].degree >= 0)
            s->first[row_of[p] + 1]++;
    for (int64_t m = 0; m < rows; m++)
        s->first[m + 1] += s->first[m];
    for (int64_t p = 0; p < l->packs; p++)
        if (l->pack[p].degree >= 0) {
            int64_t g = group_of[p] = s->first[row_of[p]]++;
            s->degree[g] = l->pack[p].degree;
            s->rank[g] = l->pack[p].rank;
        }
    for (int64_t m = rows; m > 0; m--)
        s->first[m] = s->first[m - 1];
    s->first[0] = 0;
    for (int64_t k = 0; k < step->count; k++)
        s->group[k] = group_of[l->pack_of[k]];
    HBP__TRY(hbp__step_solution_price(step, s));
    hbp__scratch_release(step->context, mark);
    return HBP_OK;
}
