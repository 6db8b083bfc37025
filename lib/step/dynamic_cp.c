/* Megatron's dynamic context parallelism: packs, and groups larger than need be where that keeps the busiest
 * rank from becoming busier. */
#include "step/rounds.h"

/* How far the busiest rank may pass the work of a rank full of sequences as long as the longest. */
#define CAP_SLACK .05

typedef struct place {
    int64_t group; /* or the number of groups: a new one */
    int32_t degree;
    double busiest;
} place;

static void consider(place *best, double most, double cap, int64_t group, int32_t j, double load)
{
    double busiest = load > most ? load : most;
    if (busiest <= cap && (best->group < 0 || busiest < best->busiest))
        *best = (place){group, j, busiest};
}

/* Where a sequence leaves the busiest rank with the least work: of equals the smaller degree, the older
 * group, a new group last. */
static place find_place(hbp__step_round *round, int64_t sequence, double most, double cap)
{
    const hbp__step *step = round->step;
    int64_t tokens = step->tokens[sequence];
    place best = {HBP__STEP_WAITS, 0, 0};
    for (int32_t j = hbp__step_round_least(round, tokens); j < step->degrees; j++) {
        double work = hbp__step_round_work(round, sequence, j);
        if (round->limit[j] < tokens)
            continue;
        for (int64_t g = 0; g < round->groups; g++)
            if (round->degree[g] == j && round->tokens[g] + tokens <= round->limit[j])
                consider(&best, most, cap, g, j, round->load[g] + work);
        if (hbp__step_round_has_ranks(round, j))
            consider(&best, most, cap, round->groups, j, work);
    }
    return best;
}

static void form(hbp__step_round *round, int64_t *scratch)
{
    (void)scratch;
    const int64_t *left = round->left;
    int64_t longest = round->step->tokens[left[0]];
    double cap = (double)longest * (double)round->rank_tokens * (1 + CAP_SLACK);
    hbp__step_round_add(round, left[0], hbp__step_round_open(round, hbp__step_round_least(round, longest)));
    double most = round->load[0];
    for (int64_t i = 1; i < round->lefts; i++) {
        place p = find_place(round, left[i], most, cap);
        if (p.group < 0)
            continue;
        if (p.group == round->groups)
            hbp__step_round_open(round, p.degree);
        hbp__step_round_add(round, left[i], p.group);
        most = p.busiest;
    }
    hbp__step_round_widen(round);
}

hbp_status hbp__step_dynamic_cp(const hbp__step *step, hbp__step_solution *solution)
{
    return hbp__step_rounds(step, form, solution);
}
