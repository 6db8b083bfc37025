/* Megatron's hybrid context parallelism (BalancedCPScheduler): each sequence on the least power of two of
 * ranks that holds it, longest first to the least loaded group of that size, until the ranks' work differs by
 * no more than 5 %. A group runs its sequences one after the other, so that their sum has no bound: what one
 * pack does not hold takes further micro-batches of the same groups. */
#include <math.h>

#include "base/checked.h"
#include "step/rounds.h"

/* The slack in work among ranks that ends a micro-batch, and how far a bucket may pass its share. */
#define SLACK  .05
#define EXCESS 1.1

typedef struct range {
    double most;
    double least;
} range;

/* The work of the busiest and of the idlest rank, `group` having `less`. */
static range work_range(const hbp__step_round *round, int64_t group, double less)
{
    range r = {0, round->used < round->step->ranks ? 0 : (double)INFINITY};
    for (int64_t g = 0; g < round->groups; g++) {
        double load = round->work[g] - (g == group ? less : 0);
        r.most = load > r.most ? load : r.most;
        r.least = load < r.least ? load : r.least;
    }
    return r;
}

static int is_balanced(range r)
{
    return r.most - r.least <= SLACK * r.most;
}

/* Cuts what is left into buckets of about equal work, about one a degree; next[b] is where bucket b begins.
 * *buckets gets how many. While the first of a bucket finds no place, the next bucket has its turn. The
 * sequences saved for later buckets are as many as in the original, which counts each closed bucket twice. */
static hbp_status make_buckets(const hbp__step_round *round, int64_t *next, int64_t *buckets)
{
    uint8_t seen[HBP__STEP_DEGREES] = {0};
    int64_t degrees = 0;
    double total = 0, sum = 0;
    for (int64_t i = 0; i < round->lefts; i++) {
        HBP__TRY(hbp__step_round_listen(round, i));
        int32_t j = hbp__step_round_least(round, round->left[i]);
        total += hbp__step_round_work(round, round->left[i], j);
        degrees += !seen[j];
        seen[j] = 1;
    }
    next[0] = 0;
    *buckets = 1;
    for (int64_t i = 0; i < round->lefts; i++) {
        HBP__TRY(hbp__step_round_listen(round, i));
        int32_t j = hbp__step_round_least(round, round->left[i]);
        double work = hbp__step_round_work(round, round->left[i], j);
        if (i > next[*buckets - 1] && (sum + work > total / (double)degrees * EXCESS ||
                                       round->lefts - i <= degrees - 2 * (*buckets - 1))) {
            next[(*buckets)++] = i;
            sum = 0;
        }
        sum += work;
    }
    return HBP_OK;
}

/* The least loaded group of the least degree for a sequence, or HBP__STEP_WAITS; a new one while there are
 * ranks for it. */
static int64_t find_group(hbp__step_round *round, int64_t sequence)
{
    int64_t best = HBP__STEP_WAITS;
    int32_t j = hbp__step_round_least(round, sequence);
    if (hbp__step_round_has_ranks(round, j))
        return hbp__step_round_open(round, j);
    for (int64_t g = 0; g < round->groups; g++)
        if (round->degree[g] == j && (best < 0 || round->work[g] < round->work[best]))
            best = g;
    return best;
}

/* Takes what the busiest group got last out while that brings the ranks closer; it waits behind all others.
 * `added` lists the sequences in the order in which they were. */
static hbp_status trim(hbp__step_round *round, const int64_t *added, int64_t count)
{
    for (;;) {
        range now = work_range(round, HBP__STEP_WAITS, 0);
        int64_t busiest = 0, members = 0, last = HBP__STEP_WAITS;
        if (is_balanced(now) || now.least <= 0)
            return HBP_OK;
        while (round->work[busiest] < now.most)
            busiest++;
        for (int64_t i = 0; i < count; i++) {
            HBP__TRY(hbp__step_round_listen(round, i));
            if (round->group[added[i]] == busiest) {
                last = added[i];
                members++;
            }
        }
        if (members < 2)
            return HBP_OK;
        range then = work_range(round, busiest, hbp__step_round_work(round, last, round->degree[busiest]));
        if (then.most - then.least >= now.most - now.least)
            return HBP_OK;
        hbp__step_round_remove(round, last);
    }
}

static hbp_status form(hbp__step_round *round, int64_t *next)
{
    int64_t *end = next + round->step->count, *added = end + round->step->count, placed = 0;
    int64_t buckets;
    HBP__TRY(make_buckets(round, next, &buckets));
    int32_t first = -1;
    int check = 0;
    for (int64_t b = 0; b < buckets; b++)
        end[b] = b + 1 < buckets ? next[b + 1] : round->lefts;
    for (;;) {
        int64_t group = HBP__STEP_WAITS, b = 0;
        while (b < buckets && (next[b] == end[b] || (group = find_group(round, round->left[next[b]])) < 0))
            b++;
        if (b == buckets)
            break;
        added[placed] = round->left[next[b]++];
        hbp__step_round_add(round, added[placed], group);
        HBP__TRY(hbp__step_round_listen(round, placed));
        placed++;
        first = first < 0 ? round->degree[group] : first;
        check |= round->degree[group] < first;
        if (check && placed < round->lefts && is_balanced(work_range(round, HBP__STEP_WAITS, 0)))
            break;
    }
    HBP__TRY(trim(round, added, placed));
    hbp__step_round_widen(round);
    return hbp__step_round_cut(round, added, placed);
}

hbp_status hbp__step_hybrid_cp(const hbp__step *step, hbp__step_solution *solution)
{
    return hbp__step_rounds(step, form, 1, solution);
}
