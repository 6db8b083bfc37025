/* Rounds formed one after the other, groups opened and filled as a rule says: what Megatron's two schedulers
 * have in common. Their work of a sequence is s^2 / degree; a rank holds so many tokens. A round is a
 * micro-batch, or several of the same groups where these have more than one pack. */
#ifndef HBP_STEP_ROUNDS_H
#define HBP_STEP_ROUNDS_H

#include "step/step.h"

#define HBP__STEP_WAITS (-1)

/* The packs of a round's groups that share a number, and scratch for those of one group. */
typedef struct hbp__step_packs {
    int64_t count;    /* of the group that has the most; 0: not cut, one each */
    int64_t *slowest; /* [count] ns */
    hbp__load *load;  /* [count] */
} hbp__step_packs;

/* One round in the making. */
typedef struct hbp__step_round {
    const hbp__step *step;
    int64_t limit[HBP__STEP_DEGREES]; /* tokens of a sequence in a group of each degree; 0: not used */
    const int64_t *left; /* [lefts] sequences not yet planned, longest first but for those removed */
    int64_t lefts;
    int cuts; /* groups run packs one after the other, so that their sum has no bound */
    hbp__step_packs packs;
    int64_t groups;
    int32_t used;     /* ranks */
    int32_t *degree;  /* [ranks] by group: index in step->degree */
    hbp__load *load;  /* [ranks] by group */
    double *work;     /* [ranks] by group: of each of its ranks */
    int64_t *row;     /* [ranks] scratch, by group */
    int64_t *group;   /* [count] by sequence, or HBP__STEP_WAITS */
    int64_t *pack;    /* [count] by sequence: which of its group's */
    int64_t *removed; /* [removals] sequences that wait behind the others */
    int64_t removals;
    int64_t *first;  /* [count + 3] scratch of the listing by packs */
    int64_t *listed; /* [count] */
} hbp__step_round;

/* The index of the least degree whose groups hold the sequence; each has one. */
int32_t hbp__step_round_least(const hbp__step_round *round, int64_t sequence);

/* Whether groups of step->degree[j] hold the sequence; whether a group that is open has room for it. */
int hbp__step_round_holds(const hbp__step_round *round, int64_t sequence, int32_t j);
int hbp__step_round_takes(const hbp__step_round *round, int64_t sequence, int64_t group);

/* Work of a sequence on each rank of a group of step->degree[j]. */
double hbp__step_round_work(const hbp__step_round *round, int64_t sequence, int32_t j);

/* Nonzero when the idle ranks have room for one more group of step->degree[j]. */
int hbp__step_round_has_ranks(hbp__step_round *round, int32_t j);

/* Opens a group, which must have room, and returns it; adds a sequence to a group; takes it out again, to
 * wait behind all others. */
int64_t hbp__step_round_open(hbp__step_round *round, int32_t j);
void hbp__step_round_add(hbp__step_round *round, int64_t sequence, int64_t group);
void hbp__step_round_remove(hbp__step_round *round, int64_t sequence);

/* The end of a round: doubles groups of the least degree, the first that can be, until no rank is idle or
 * none can be. Loads stay as they were. */
void hbp__step_round_widen(hbp__step_round *round);

/* Looks at a request to cancel behind so many sequences of what is left; `i` is the one at hand. */
hbp_status hbp__step_round_listen(const hbp__step_round *round, int64_t i);

/* Cuts each group's sequences, `added` [count] being those of all groups in their order, into packs by first
 * fit: packs as large as memory holds, or as it holds without recomputing more than need be; of both the
 * faster. O(count (groups + packs)). HBP_E_CANCELLED. */
hbp_status hbp__step_round_cut(hbp__step_round *round, const int64_t *added, int64_t count);

/* Forms one round, in which it places at least the first sequence. HBP_E_CANCELLED. */
typedef hbp_status hbp__step_form(hbp__step_round *round, int64_t *scratch);

/* Plans the step by rounds until no sequence is left. `scratch` is [3 count] of its own. O(rounds x form). */
hbp_status hbp__step_rounds(const hbp__step *step, hbp__step_form *form, int cuts,
                            hbp__step_solution *solution);

#endif
