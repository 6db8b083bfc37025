/* The state of lanes: packs, their sequences, and the load of every rank. */
#include "step/lanes.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"

/* Degrees that divide each other, from the largest down. */
static void list_chain(hbp__lanes *l)
{
    const hbp__step *step = l->step;
    int32_t below = step->degrees - 1, picked[HBP__STEP_DEGREES], count = 0;
    for (int32_t j = below; j >= 0; j--)
        if (step->degree[below].degree % step->degree[j].degree == 0) {
            picked[count++] = j;
            below = j;
        }
    for (int32_t i = 0; i < count; i++)
        l->chain[i] = picked[count - 1 - i];
    l->chains = count;
}

/* Whether every sequence in a pack of its own, one after another in the slowest way of any degree, takes less
 * than 2^62 ns (146 years): what a rank's packs take is summed, and one more added, without asking again. */
static hbp_status check_times(const hbp__step *step)
{
    double most = 0, squares = 0, vision = 0, count = (double)step->count;
    for (int64_t k = 0; k < step->count; k++) {
        squares += step->squares[k];
        vision += (double)hbp__step_vision(step, k);
    }
    for (int32_t j = 0; j < step->degrees; j++) {
        const hbp__step_degree *degree = &step->degree[j];
        const hbp__point *way = &degree->way[degree->ways - 1];
        double tokens = (double)hbp__round_up(degree->longest, degree->pack_multiple);
        double each = way->constant + way->linear * tokens;
        most = hbp__max_f64(most, count * each + way->square * squares + way->vision * vision);
    }
    most += count * step->cost->terms.pack_ns;
    if (!(most < 0x1p62))
        return hbp__fail(step->context, HBP_E_OVERFLOW,
                         "the sequences of a step may take %g ns one after another, over half of 2^63", most);
    return HBP_OK;
}

hbp_status hbp__lanes_open(const hbp__step *step, hbp__lanes *l)
{
    hbp_context *context = step->context;
    uint64_t count = (uint64_t)step->count, ranks = (uint64_t)step->ranks;
    memset(l, 0, sizeof *l);
    l->step = step;
    l->pack = hbp__take(context, count, sizeof *l->pack);
    l->pack_of = hbp__take(context, count, sizeof *l->pack_of);
    l->next = hbp__take(context, count, sizeof *l->next);
    l->prev = hbp__take(context, count, sizeof *l->prev);
    l->begins = hbp__take(context, ranks, sizeof *l->begins);
    l->load = hbp__take(context, ranks, sizeof *l->load);
    l->row = hbp__take(context, ranks, sizeof *l->row);
    HBP__TRY(hbp__scratch_check(context, "the lanes of a step"));
    HBP__TRY(check_times(step));
    l->padding_ns = hbp__cost_padding_ns(step->cost);
    list_chain(l);
    hbp__lanes_clear(l);
    return HBP_OK;
}

void hbp__lanes_clear(hbp__lanes *l)
{
    for (int64_t k = 0; k < l->step->count; k++)
        l->pack_of[k] = -1;
    for (int32_t r = 0; r < l->step->ranks; r++) {
        l->begins[r] = -1;
        l->load[r] = l->row[r] = 0;
    }
    l->packs = l->rows = 0;
    l->free = -1;
}

int hbp__lanes_may_hold(const hbp__lanes *l, int32_t j, int64_t k)
{
    return hbp__step_holds_alone(l->step, j, k);
}

/* Beyond a padding pack's time; INT64_MAX where the degree does not hold it. */
static int64_t price(hbp__lanes *l, int32_t j, hbp__load load)
{
    l->work++;
    int64_t ns = hbp__step_group_ns(l->step, j, load);
    return ns < INT64_MAX ? ns - l->padding_ns : ns;
}

int64_t hbp__lanes_price(hbp__lanes *l, int64_t p, int64_t more, int64_t less)
{
    const hbp__step *step = l->step;
    int32_t j = l->pack[p].degree;
    hbp__load load = l->pack[p].load;
    if (less >= 0)
        load = hbp__step_load_without(step, j, load, less);
    if (more >= 0)
        load = hbp__step_load_with(step, j, load, more);
    return load.tokens ? price(l, j, load) : 0;
}

int64_t hbp__lanes_price_alone(hbp__lanes *l, int32_t j, int64_t k)
{
    return price(l, j, hbp__step_load_of(l->step, j, k));
}

/* Gives the pack's ranks its time anew. */
static void reprice(hbp__lanes *l, int64_t p, int64_t ns)
{
    hbp__lanes_pack *pack = &l->pack[p];
    for (int32_t r = pack->rank; r < pack->rank + l->step->degree[pack->degree].degree; r++)
        l->load[r] += ns - pack->ns;
    pack->ns = ns;
}

/* Counts `sign` times sequence k in the sums of pack p, which takes `ns` then. */
static void count(hbp__lanes *l, int64_t p, int64_t k, int sign, int64_t ns)
{
    hbp__lanes_pack *pack = &l->pack[p];
    hbp__step_load_add(l->step, pack->degree, &pack->load, k, sign);
    pack->sequences += sign;
    reprice(l, p, ns);
}

void hbp__lanes_add(hbp__lanes *l, int64_t p, int64_t k)
{
    hbp__lanes_pack *pack = &l->pack[p];
    count(l, p, k, 1, hbp__lanes_price(l, p, k, -1));
    l->pack_of[k] = p;
    l->prev[k] = -1;
    l->next[k] = pack->first;
    if (pack->first >= 0)
        l->prev[pack->first] = k;
    pack->first = k;
}

int64_t hbp__lanes_add_pack(hbp__lanes *l, int32_t j, int32_t rank, int64_t k)
{
    int64_t p = l->free >= 0 ? l->free : l->packs++;
    if (l->free >= 0)
        l->free = l->pack[p].next;
    l->pack[p] = (hbp__lanes_pack){.degree = j, .rank = rank, .first = -1, .next = l->begins[rank]};
    l->begins[rank] = p;
    for (int32_t r = rank; r < rank + l->step->degree[j].degree; r++)
        l->rows = hbp__max_i64(l->rows, ++l->row[r]);
    hbp__lanes_add(l, p, k);
    return p;
}

static void end_pack(hbp__lanes *l, int64_t p)
{
    hbp__lanes_pack *pack = &l->pack[p];
    int64_t *link = &l->begins[pack->rank];
    for (int32_t r = pack->rank; r < pack->rank + l->step->degree[pack->degree].degree; r++)
        l->row[r]--;
    while (*link != p)
        link = &l->pack[*link].next;
    *link = pack->next;
    pack->degree = -1;
    pack->next = l->free;
    l->free = p;
}

void hbp__lanes_remove(hbp__lanes *l, int64_t k)
{
    int64_t p = l->pack_of[k];
    hbp__lanes_pack *pack = &l->pack[p];
    count(l, p, k, -1, hbp__lanes_price(l, p, -1, k));
    if (l->prev[k] >= 0)
        l->next[l->prev[k]] = l->next[k];
    else
        pack->first = l->next[k];
    if (l->next[k] >= 0)
        l->prev[l->next[k]] = l->prev[k];
    l->pack_of[k] = -1;
    if (!pack->sequences)
        end_pack(l, p);
}

/* Tells the neighbours in the list of pack p of sequence k, which knows them. */
static void relink(hbp__lanes *l, int64_t p, int64_t k)
{
    if (l->prev[k] >= 0)
        l->next[l->prev[k]] = k;
    else
        l->pack[p].first = k;
    if (l->next[k] >= 0)
        l->prev[l->next[k]] = k;
    l->pack_of[k] = p;
}

void hbp__lanes_swap(hbp__lanes *l, int64_t k, int64_t other)
{
    int64_t p = l->pack_of[k], q = l->pack_of[other];
    int64_t mine = hbp__lanes_price(l, p, other, k), theirs = hbp__lanes_price(l, q, k, other);
    int64_t next = l->next[k], prev = l->prev[k];
    count(l, p, k, -1, l->pack[p].ns);
    count(l, q, other, -1, l->pack[q].ns);
    count(l, p, other, 1, mine);
    count(l, q, k, 1, theirs);
    l->next[k] = l->next[other];
    l->prev[k] = l->prev[other];
    l->next[other] = next;
    l->prev[other] = prev;
    relink(l, q, k);
    relink(l, p, other);
}

int64_t hbp__lanes_load(const hbp__lanes *l, int32_t rank, int32_t ranks)
{
    int64_t load = 0;
    for (int32_t r = rank; r < rank + ranks; r++)
        load = hbp__max_i64(load, l->load[r]);
    return load;
}

int64_t hbp__lanes_row(const hbp__lanes *l, int32_t rank, int32_t ranks)
{
    int64_t row = 0;
    for (int32_t r = rank; r < rank + ranks; r++)
        row = hbp__max_i64(row, l->row[r]);
    return row;
}

int64_t hbp__lanes_ns(const hbp__lanes *l)
{
    int64_t rows = hbp__lanes_row(l, 0, l->step->ranks);
    return hbp__add_saturating(hbp__lanes_load(l, 0, l->step->ranks),
                               hbp__mul_saturating(hbp__step_whole(l->step, rows), l->padding_ns));
}
