/* Megatron's dynamic context parallelism: packs, and groups larger than need be where that keeps the busiest
 * rank from becoming busier. Its cap on the work of a rank, 1.05 times the longest length times the tokens of
 * a rank, is left out, for no pack can pass it: sum s^2 / d <= longest sum s / d <= longest times the tokens.
 */
#include "base/checked.h"
#include "step/rounds.h"

typedef struct place {
    int64_t group; /* the number of groups: a new one; HBP__STEP_WAITS: none */
    int32_t degree;
    double busiest; /* the work of the busiest rank then */
} place;

static void consider(place *best, double most, int64_t group, int32_t j, double load)
{
    double busiest = load > most ? load : most;
    if (best->group < 0 || busiest < best->busiest)
        *best = (place){group, j, busiest};
}

/* Where a sequence leaves the busiest rank with the least work, `most` being that of now: of equals the
 * smaller degree, the older group, a new group last. */
static place find_place(hbp__step_round *round, int64_t sequence, double most)
{
    const hbp__step *step = round->step;
    place best = {HBP__STEP_WAITS, 0, 0};
    for (int32_t j = hbp__step_round_least(round, sequence); j < step->degrees; j++) {
        double work = hbp__step_round_work(round, sequence, j);
        if (!hbp__step_round_holds(round, sequence, j))
            continue;
        for (int64_t g = 0; g < round->groups; g++)
            if (round->degree[g] == j && hbp__step_round_takes(round, sequence, g))
                consider(&best, most, g, j, round->work[g] + work);
        if (hbp__step_round_has_ranks(round, j))
            consider(&best, most, round->groups, j, work);
    }
    return best;
}

/* What no sequence is looked for a place with in vain: the most tokens that a group of each degree has left.
 */
static void find_rooms(const hbp__step_round *round, int64_t *room)
{
    for (int32_t j = 0; j < round->step->degrees; j++)
        room[j] = -1;
    for (int64_t g = 0; g < round->groups; g++) {
        int32_t j = round->degree[g];
        room[j] = hbp__max_i64(room[j], round->limit[j] - round->load[g].tokens);
    }
}

/* Zero when neither a group nor idle ranks hold the sequence. */
static int may_have_place(const hbp__step_round *round, int64_t sequence, const int64_t *room)
{
    const hbp__step *step = round->step;
    for (int32_t j = 0; j < step->degrees; j++)
        if (step->degree[j].tokens[sequence] <= room[j] ||
            round->used + step->degree[j].degree <= step->ranks)
            return 1;
    return 0;
}

static hbp_status form(hbp__step_round *round, int64_t *scratch)
{
    int64_t room[HBP__STEP_DEGREES];
    (void)scratch;
    /* The longest has its least degree, whatever that makes of its ranks. */
    int32_t j = hbp__step_round_least(round, round->left[0]);
    hbp__step_round_add(round, round->left[0], hbp__step_round_open(round, j));
    double most = round->work[0];
    find_rooms(round, room);
    for (int64_t i = 1; i < round->lefts; i++) {
        HBP__TRY(hbp__step_round_listen(round, i));
        if (!may_have_place(round, round->left[i], room))
            continue;
        place p = find_place(round, round->left[i], most);
        if (p.group < 0)
            continue;
        if (p.group == round->groups)
            hbp__step_round_open(round, p.degree);
        hbp__step_round_add(round, round->left[i], p.group);
        most = p.busiest;
        find_rooms(round, room);
    }
    hbp__step_round_widen(round);
    return HBP_OK;
}

hbp_status hbp__step_dynamic_cp(const hbp__step *step, hbp__step_solution *solution)
{
    return hbp__step_rounds(step, form, 0, solution);
}
