/* The parts of the direct search: a pool of sequences, estimates of what they take, and a board on which
 * groups are built (docs/explanation/step.md). Times are in ns, as doubles: they steer, prices decide. */
#ifndef HBP_STEP_BUILDER_H
#define HBP_STEP_BUILDER_H

#include <stdint.h>

#include "base/rng.h"
#include "step/bound.h"
#include "step/step.h"
#include "step/tuning.h"

/* In no group; no member. */
#define HBP__NONE (-1)

/* Sequences yet to be placed, in descending order of weight, and sums over those before each. */
typedef struct hbp__step_pool {
    int64_t count;
    int64_t *member;        /* [count] */
    double *tokens_before;  /* [count + 1] */
    double *squares_before; /* [count + 1] */
    double *vision_before;  /* [count + 1]; NULL: vision units do not count */
    hbp_status status;      /* HBP_E_CANCELLED once a sum was asked to stop; hbp__step_status knows */
} hbp__step_pool;

/* Sums over `pool->member` [count] into the others. */
void hbp__step_pool_sum(const hbp__step *step, hbp__step_pool *pool);

/* Vision units of rows [first, end). */
static inline double hbp__step_pool_vision(const hbp__step_pool *pool, int64_t first, int64_t end)
{
    return pool->vision_before ? pool->vision_before[end] - pool->vision_before[first] : 0;
}

/* Tokens of rows [first, end), vision units counted by the memory that they take at least on any degree. */
static inline double hbp__step_pool_room(const hbp__step *step, const hbp__step_pool *pool, int64_t first,
                                         int64_t end)
{
    double tokens = pool->tokens_before[end] - pool->tokens_before[first];
    return pool->vision_before ? tokens + step->vision_tokens * hbp__step_pool_vision(pool, first, end)
                               : tokens;
}

/* Tokens of one micro-batch that all ranks hold, on the degree that holds most. O(degrees). */
double hbp__step_memory(const hbp__step *step);

/* About the least makespan of one micro-batch with pool rows [first, end): no less than the longest takes
 * alone, nor than all take at the least degrees that this makespan allows, spread over the ranks. INFINITY
 * when they take more than the share `density` of memory. O(degrees log count). */
double hbp__step_estimate(const hbp__step *step, const hbp__step_pool *pool, int64_t first, int64_t end,
                          double density);

/* The same if it is below `limit`; else it may be minus some time from `limit` up to it, which is sooner
 * known (without a limit minus INFINITY). */
double hbp__step_estimate_below(const hbp__step *step, const hbp__step_pool *pool, int64_t first, int64_t end,
                                double density, double limit);

/* Scratch of cuts. Estimates of the pool last cut, at most so full, are kept. */
typedef struct hbp__step_cuts {
    const hbp__step *step;
    int64_t most; /* places to cut at */
    int64_t count;
    int64_t *member; /* [count] of the pool; as many as the step's sequences have room */
    double density;
    int64_t places;
    int64_t *place; /* [most + 2] rows of the pool */
    double *cost; /* [places x places] estimates of the runs between; below 0: minus what they are at least */
    double *best; /* [(runs + 1) x places] least sums of runs up to a place */
    int64_t *from; /* [(runs + 1) x places] where the last of these begins */
} hbp__step_cuts;

/* For at most so many places and runs. */
hbp_status hbp__step_cuts_open(const hbp__step *step, int64_t places, int64_t runs, hbp__step_cuts *cuts);

/* Cuts the pool into `runs` with the least sum of estimates; end[i] gets the end of run i. Returns the sum,
 * INFINITY when there is no way. O(places^2 runs), and O(degrees log count) for each estimate that is not
 * known yet; those of runs that cannot be the best are left out. */
double hbp__step_cut(hbp__step_cuts *cuts, const hbp__step_pool *pool, int64_t runs, double density,
                     int64_t *end);

typedef struct hbp__step_group {
    int32_t degree; /* index in step->degree */
    hbp__load load;
    double time;
    int64_t head; /* first member */
} hbp__step_group;

/* A group without members. */
static inline hbp__step_group hbp__step_group_empty(int32_t degree, double time)
{
    return (hbp__step_group){degree, {0, 0, 0, 0}, time, HBP__NONE};
}

/* Adds sequence k to the load of a group (sign 1), or takes it out (-1). Its time and members stay as they
 * were. */
static inline void hbp__step_group_add(const hbp__step *step, hbp__step_group *group, int64_t k, int sign)
{
    hbp__step_load_add(step, group->degree, &group->load, k, sign);
}

/* Whether a group has room for sequence k beside its members. Time is another matter. */
static inline int hbp__step_group_takes(const hbp__step *step, const hbp__step_group *group, int64_t k)
{
    return hbp__step_takes(step, group->degree, &group->load, k);
}

/* The same with member `gone` out of it. */
static inline int hbp__step_group_exchanges(const hbp__step *step, const hbp__step_group *group, int64_t k,
                                            int64_t gone)
{
    int32_t j = group->degree;
    hbp__load rest = hbp__step_load_without(step, j, group->load, gone);
    return hbp__step_takes(step, j, &rest, k);
}

/* Micro-batches under construction: group i of micro-batch m is group[m * ranks + i]. */
typedef struct hbp__step_board {
    int64_t ranks;
    int64_t micro_batches;
    hbp__step_group *group;
    int64_t *groups;  /* [micro_batches] */
    double *makespan; /* [micro_batches] of the slowest group, or of a padding pack */
    int64_t *home;    /* [sequences] the group */
    int64_t *next;    /* [sequences] the next member of the same group */
} hbp__step_board;

/* These, and what else is opened below, are scratch (base/scratch.h). */
hbp_status hbp__step_board_open(const hbp__step *step, int64_t micro_batches, hbp__step_board *board);

/* Makes `to`, of at least as many micro-batches' room, equal to `from`. O(sequences + groups). */
void hbp__step_board_copy(const hbp__step *step, const hbp__step_board *from, hbp__step_board *to);

/* Makes the board, of at least as many micro-batches' room, the solution. O(sequences log micro-batches). */
hbp_status hbp__step_board_read(const hbp__step *step, const hbp__step_solution *solution,
                                hbp__step_board *board);

/* The board as a solution, which it opens and prices; close it also after a failure. */
hbp_status hbp__step_board_write(const hbp__step *step, const hbp__step_board *board,
                                 hbp__step_solution *solution);

/* Sum of the makespans. */
double hbp__step_board_time(const hbp__step_board *board);

/* Takes micro-batch m off the board; the last one takes its place. */
void hbp__step_board_drop(hbp__step_board *board, int64_t m);

/* Takes micro-batches without sequences off the board, down to one. */
void hbp__step_board_trim(hbp__step_board *board);

/* The groups of one degree in the micro-batch being filled, found by what they have left: nodes hold the most
 * time left below them, and the most tokens that a sequence can have there. */
typedef struct hbp__step_shelf {
    int64_t leaves; /* a power of two: as many as groups may be opened, at least */
    int64_t used;
    double *time;   /* [2 leaves]; -1 but in leaves used and above them, as are tokens */
    double *tokens; /* [2 leaves] */
    int64_t *group; /* [leaves] */
    double slack;   /* no sequence has more tokens over the root of its squares */
    int32_t usual;  /* index of the way in which the last group would run with all that it has time for */
} hbp__step_shelf;

typedef struct hbp__step_filler {
    const hbp__step *step;
    double *alone;       /* [count x degrees] time of each sequence alone; INFINITY: does not fit */
    double *useful;      /* [count] least rank-time on any degree, without what is paid once */
    double *added;       /* [count x degrees] least that it adds to the time of a group that holds it */
    double *least_added; /* [count] the least of these */
    int64_t *left;       /* [count] what the last filling left */
    hbp_status status;   /* HBP_E_CANCELLED once a filling was asked to stop; hbp__step_status knows */
    int64_t again;       /* sequences placed beyond once a filling, since the builder asked */
    int32_t *open;       /* [ranks] scratch: degrees of the groups opened, where they do not nest */
    double *nodes;
    int64_t *names;
    hbp__step_shelf shelf[HBP__STEP_DEGREES];
} hbp__step_filler;

hbp_status hbp__step_filler_open(const hbp__step *step, hbp__step_filler *filler);

/* How to fill. */
typedef struct hbp__step_style {
    int32_t grain;  /* no group has a lesser degree (an index) where a larger one runs in time */
    int32_t spread; /* nonzero: a new group before room in an old one */
    uint64_t skip;  /* bit j: no group of degree j where a larger one runs in time */
} hbp__step_style;

static const hbp__step_style hbp__step_plain = {0};

/* Fills micro-batch m of the board anew from the pool, longest first, so that no group takes more than
 * `makespan`. A sequence goes to the least degree that runs it in this time, to the first group with room,
 * else to a new group, else to one of a larger degree. What does not fit stays in the pool. Returns the
 * useful rank-time placed. O(pool log ranks), mostly. */
double hbp__step_fill(hbp__step_filler *filler, hbp__step_pool *pool, hbp__step_board *board, int64_t m,
                      double makespan, hbp__step_style style);

/* The same, but the pool stays; returns how many sequences find no place, listed in filler->left, or
 * HBP__NONE where those are more than `most`. O(as much of the pool as shows so, log ranks), mostly. */
int64_t hbp__step_fill_most(hbp__step_filler *filler, const hbp__step_pool *pool, hbp__step_board *board,
                            int64_t m, double makespan, hbp__step_style style, int64_t most);

/* A sequence of the micro-batch that is squeezed. */
typedef struct hbp__step_member {
    int64_t k;
    int64_t weight;
    double squares;
    int64_t samples;
    int64_t quiet_until; /* not to be moved before */
    int32_t where;       /* its group, in the micro-batch */
} hbp__step_member;

/* Scratch of a squeeze. */
typedef struct hbp__step_squeezer {
    const hbp__step *step;
    int64_t count;            /* sequences of the micro-batch */
    hbp__step_member *member; /* [count] */
    hbp__step_group *group;   /* [ranks] */
    const hbp__point **way;   /* [ranks] in which they run their tokens, vision units aside */
    int64_t work;             /* done since it was opened */
    int64_t next_look;        /* work at which it looks whether it is to be cancelled */
    int64_t before;           /* work of others, and how much it may be in all, for progress */
    int64_t work_limit;
    int quick;         /* putting in what is left counts as work, and what is far from the goal stays */
    hbp_status status; /* once cancelled it does nothing more */
} hbp__step_squeezer;

hbp_status hbp__step_squeezer_open(const hbp__step *step, hbp__step_squeezer *q);

/* Shortens micro-batch m of the board to `goal`, by moving sequences between its groups and exchanging them:
 * the move that leaves least over the goal, with a short memory of what has moved, at most `moves` of them
 * and a work about linear in the sequences.
 * `extra` [extras] are sequences still to be put in; on failure everything is as before. Returns whether no
 * group takes more than the goal. */
int hbp__step_squeeze(hbp__step_squeezer *q, hbp__step_board *board, int64_t m, const int64_t *extra,
                      int64_t extras, double goal, int64_t moves);

/* What a search builds with. It counts its work, in steps of the innermost loops, so that effort ends by
 * count and not by a clock. */
typedef struct hbp__step_builder {
    const hbp__step *step;
    hbp__step_filler filler;
    hbp__step_squeezer squeezer;
    hbp__step_pool pool;
    hbp__step_board trial; /* of four micro-batches */
    hbp__ask *ask;         /* [count x degrees]; NULL: quick */
    hbp__ask *pool_ask;    /* [count x degrees] of the pool */
    double *scratch;       /* [hbp__bound_one_room] */
    hbp__step_pool saved;  /* the pool as it was */
    int64_t *spare;        /* [count] scratch */
    int64_t *rest;         /* [count] what a tail is built of */
    hbp__step_cuts whole;  /* of all sequences */
    hbp__step_cuts part;   /* of any pool */
    int64_t *end;          /* [HBP__STEP_AHEAD] of the runs cut */
    double room;           /* tokens that all ranks hold */
    double fixed;          /* what a micro-batch takes without any */
    int64_t work;
    int64_t work_limit;
    int64_t next_report; /* work at which to report progress */
    hbp_status status;   /* HBP_E_CANCELLED once so */
    int late;            /* the time limit has passed */
    int quick;           /* opened so */
} hbp__step_builder;

hbp_status hbp__step_builder_open(const hbp__step *step, hbp__step_builder *builder);

/* The same for steps that are to be planned soon rather than to be as short as may be: what estimates leave
 * out is not built, no bounds are asked for, a squeeze puts in no more than its work allows and begins near
 * its goal, and a micro-batch is made shorter until two goals failed. */
hbp_status hbp__step_builder_open_quick(const hbp__step *step, hbp__step_builder *builder);

/* Whether micro-batches without sequences may all be taken off, so that they cost nothing. */
int hbp__step_may_drop(const hbp__step_builder *builder, const hbp__step_board *board);

/* HBP_E_CANCELLED once any part of the search was asked to stop. */
hbp_status hbp__step_status(hbp__step_builder *builder);

/* Whether to go on: not cancelled and not late. Reports progress. */
int hbp__step_listen(hbp__step_builder *builder);

/* The same, and the work is not done. */
int hbp__step_go_on(hbp__step_builder *builder);

/* Every sequence into the pool. */
void hbp__step_pool_all(hbp__step_builder *builder);

/* Sets the pool aside, and brings it back. */
void hbp__step_save(hbp__step_builder *builder);
void hbp__step_restore(hbp__step_builder *builder);

/* The sequences of micro-batches `taken` [count] of the board, each named once, become the pool. */
void hbp__step_pool_take(hbp__step_builder *builder, const hbp__step_board *board, const int64_t *taken,
                         int32_t count);

/* The least time that the pool's longest takes alone. */
double hbp__step_longest_alone(const hbp__step_builder *builder);

/* Micro-batch `from` of the trial board takes the place of m of the board. */
void hbp__step_adopt(const hbp__step_builder *builder, int64_t from, hbp__step_board *board, int64_t m);

/* Makespans worth trying for a micro-batch that begins with the pool's longest: multiples of `guess`, and,
 * from `low` to `high` times it, just what the longest takes. None below what it takes at least. Returns how
 * many, at most multiples + degrees. */
int32_t hbp__step_list_goals(const hbp__step_builder *builder, double guess, double low, double high,
                             const double *multiple, int32_t multiples, double *goal);

/* Builds a step of `micro_batches` on the board, each planned to hold at most the share `density` of memory;
 * zero when that does not come out. */
int hbp__step_build(hbp__step_builder *builder, hbp__step_board *board, int64_t micro_batches,
                    double density);

/* The same of what is in the pool, in micro-batches after those on the board; what is built of it when it
 * does not come out stays there. */
int hbp__step_build_rest(hbp__step_builder *builder, hbp__step_board *board, int64_t micro_batches,
                         double density);

/* Whether the pool in so many micro-batches may take less than `time`: not where its work alone, or the
 * estimate of its best cut, is that long. */
int hbp__step_may_be_shorter(hbp__step_builder *builder, int64_t micro_batches, double time);

/* Builds a step of as many micro-batches as it takes, at most `most`, on the board: each has the makespan at
 * which most is done a ns, a token in memory being worth `share` of what a micro-batch takes without any; a
 * makespan found is used again for as long as it does. Zero when that does not come out. O(micro-batches
 * count), mostly. */
int hbp__step_build_levels(hbp__step_builder *builder, hbp__step_board *board, int64_t most, double share,
                           int32_t round);

/* Micro-batches that memory asks for where groups recompute no more layers than they have to. */
int64_t hbp__step_plain_least(const hbp__step *step);

/* Divides the sequences of two micro-batches anew, if that is shorter. Returns whether. `round` varies what
 * is tried. */
int hbp__step_recut(hbp__step_builder *builder, hbp__step_board *board, int64_t a, int64_t b, int32_t round);

/* Takes two or three micro-batches apart and builds them again at random, keeping what takes no more than
 * `slack` longer; there may then be one more, up to `most`, or one less. Or one micro-batch is filled again
 * to take less. Returns whether the board changed. */
int hbp__step_shuffle(hbp__step_builder *builder, hbp__step_board *board, int64_t most, double slack,
                      hbp__rng *rng);

/* Fills micro-batch m with the whole pool, as short as the filling allows, but below `limit`; zero when that
 * cannot be. The pool stays. */
int hbp__step_fill_all(hbp__step_builder *builder, hbp__step_board *board, int64_t m, double limit,
                       hbp__step_style style);

/* Puts the whole pool, which stays, into groups given by their number per degree [degrees], in micro-batch 0
 * of the trial board, none longer than `goal`: each into the fullest group of the least degree, or (`level`
 * nonzero) into the one that is done first, then by at most `moves` moves. Zero when it does not come out. */
int hbp__step_configure(hbp__step_builder *builder, const int32_t *count, double goal, int level,
                        int64_t moves);

/* Shortens micro-batch m of the board, with its own sequences. */
void hbp__step_shorten(hbp__step_builder *builder, hbp__step_board *board, int64_t m, int32_t round);

/* The sequences, longest first, each into the first group that holds it; a group has the least degree that
 * holds its first sequence. Opens and prices *solution; there is one whatever the step. */
hbp_status hbp__step_first_fit(const hbp__step *step, hbp__step_solution *solution);

/* The shortest step of groups of one degree, dealt evenly over all micro-batches, if it takes less than
 * `below_ns` in at most `most` of them: *solution (zeroed) stays closed where none does. HBP_E_CANCELLED. */
hbp_status hbp__step_even(hbp__step_builder *builder, int64_t most, int64_t below_ns,
                          hbp__step_solution *solution);

/* Whether a step is small enough to be solved exactly: up to 9 sequences on not too many ranks, degrees that
 * nest. */
int hbp__step_is_tiny(const hbp__step *step);

/* The shortest solution of a tiny step, its bound the same; it stays closed where max_micro_batches allows
 * none. O(3^count ranks degrees). */
hbp_status hbp__step_solve_tiny(const hbp__step *step, hbp__step_solution *solution);

/* The shortest without idle ranks, with no bound; the solution stays closed where there is none. */
hbp_status hbp__step_solve_tiny_busy(const hbp__step *step, hbp__step_solution *solution);

#endif
