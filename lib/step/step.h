/* The problem of one step, a solution of it, and the way from one to a plan.
 *
 * Sequences (samples, or samples linked together) go to SP groups, groups to micro-batches. A group of degree
 * d with S padded tokens, the sum of squares Q and V vision units recomputes the fewest layers that fit. */
#ifndef HBP_STEP_STEP_H
#define HBP_STEP_STEP_H

#include <stdint.h>

#include "base/context.h"
#include "cost/point.h"
#include "data/packs/items.h"
#include "hbp/step.h"
#include "step/tuning.h"

/* More degrees than any cost has: divisors of the ranks that nest with a domain. */
#define HBP__STEP_DEGREES 64

/* 128 bytes: the innermost loops look degrees up. */
typedef struct hbp__step_degree {
    int32_t degree;
    int32_t row; /* in the cost's tables */
    int32_t ways;
    const hbp__point *way; /* [ways] ascending in capacity and in layers; each holds more than the last */
    int64_t most;          /* tokens that the options allow; ways hold no more unless vision units count */
    int64_t capacity;      /* of the last way, or `most` */
    int64_t plain;         /* of the first way, which runs what is up to it; -1: vision units count */
    double constant;       /* of the first way */
    double linear;
    double square;
    double vision_tokens; /* tokens that take the memory of a vision unit, in the last way */
    double slots_per_token;
    uint8_t *first;            /* [HBP__STEP_SLOTS + 1] the first way that may hold tokens of the slot */
    int64_t sequence_multiple; /* what samples are padded to in its groups */
    int64_t pack_multiple;     /* what the sum of a group is padded to; divides every capacity */
    const int64_t *tokens;     /* [count] padded tokens of the sequences in its groups */
    int64_t longest;           /* of `tokens` */
} hbp__step_degree;

typedef struct hbp__step {
    hbp_context *context;
    const hbp_cost *cost;
    const hbp_lengths *lengths;
    hbp_step_options options; /* every default filled in */
    hbp__items items;
    int64_t count;    /* sequences */
    int64_t *tokens;  /* [count] padded tokens, the least of any degree */
    double *squares;  /* [count] sums of squared lengths */
    int64_t *padded;  /* [degrees x count] where padding depends on the degree; NULL: `tokens` for each */
    int32_t *samples; /* [count] samples of each; NULL: one each, or they do not count */
    int64_t *vision;  /* [count] vision units of each; NULL: none, or they do not count */
    uint32_t *order;  /* [count] the item of each; NULL: the last item is the first */
    int64_t *weight;  /* [count] descending: tokens of a sample that takes as long by itself; `tokens` where
                         vision units do not count */
    int64_t most_samples; /* of a group */
    int64_t most_vision;  /* of a group */
    double vision_tokens; /* the least of the degrees' */
    int64_t total_tokens; /* sum of hbp__step_room */
    int32_t ranks;
    int32_t domain;
    int32_t degrees;
    int32_t chain; /* each degree divides the next, so that groups fit exactly when their ranks do */
    hbp__step_degree degree[HBP__STEP_DEGREES]; /* [degrees] ascending; each sequence has one that holds it */
    hbp__point *way;                            /* of all degrees */
    uint8_t *taken;                             /* [ranks] scratch of hbp__step_place; NULL for a chain */
    int64_t parts;    /* > 1: the step is one of so many, and is searched with so small a share of the work */
    int32_t by_value; /* the search goes on for as long as the step's time is worth it */
    int64_t deadline_ns; /* on the monotonic clock; 0: none */
} hbp__step;

/* Reads the options and lays the problem out, without lengths its degrees alone. Its columns are scratch;
 * close releases the items, also after a failed open. */
hbp_status hbp__step_open(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                          const hbp_step_options *options, hbp__step *step);
void hbp__step_close(hbp__step *step);

/* Gives the degrees their columns of tokens: `step->padded`, or `step->tokens` for all. */
void hbp__step_set_columns(hbp__step *step);

/* The most tokens of a sequence in a group of step->degree[j]: what a pack of it holds, in hybrid CP no more
 * than sequence_tokens_per_rank allows. */
int64_t hbp__step_sequence_most(const hbp__step *step, int32_t j);

/* As hbp_plan_step, with arguments that are not NULL; without `bounds` the bound is left unknown unless
 * `exact` needs it: it takes most of the time of methods other than search. */
hbp_status hbp__step_plan(hbp_context *context, const hbp_lengths *batch_lengths, const hbp_cost *cost,
                          const hbp_step_options *options, int bounds, hbp_plan **out);

/* Whether a search at effort 1 of a step of so many sequences, which takes about step_ns, may go on for a
 * round more than that: it takes several times as long then, and asks for the bound. */
int hbp__step_may_go_on(int64_t count, double step_ns);

/* hbp__step_bound under the one of the linear costs never above `cost` (cost/straight.h) that bounds an epoch
 * of these samples best. */
hbp_status hbp__step_bound_below(hbp_context *context, const hbp_lengths *batch_lengths, const hbp_cost *cost,
                                 const hbp_step_options *options, int64_t upper_ns, int64_t *bound_ns);

/* The first sequence that no group holds; `count` when there is none. O(count degrees). */
int64_t hbp__step_find_unheld(const hbp__step *step);

/* The fewest micro-batches whose groups hold so many samples and vision units. O(count). */
int64_t hbp__step_fewest_for_caps(const hbp__step *step);

/* Whether each sequence alone is held by a group of step->degree[j]. O(count) where vision units count. */
int hbp__step_holds_each(const hbp__step *step, int32_t j);

/* Takes off each capacity what no group of these sequences can use: all hold multiples of the sequences'
 * common divisor. */
void hbp__step_trim(hbp__step *step);

/* Nonzero once the time limit has passed. Never without one. */
int hbp__step_is_late(const hbp__step *step);

/* The most tokens that any group holds. */
static inline int64_t hbp__step_capacity(const hbp__step *step)
{
    int64_t most = 0;
    for (int32_t j = 0; j < step->degrees; j++)
        most = hbp__max_i64(most, step->degree[j].capacity);
    return most;
}

/* The item that sequence k is. */
static inline int64_t hbp__step_item(const hbp__step *step, int64_t k)
{
    return step->order ? (int64_t)step->order[k] : step->count - 1 - k;
}

/* Samples and vision units of sequence k, as far as they count. */
static inline int64_t hbp__step_samples(const hbp__step *step, int64_t k)
{
    return step->samples ? step->samples[k] : 1;
}

static inline int64_t hbp__step_vision(const hbp__step *step, int64_t k)
{
    return step->vision ? step->vision[k] : 0;
}

/* Tokens of sequence k, its vision units counted by those that take as much memory, at least. */
static inline int64_t hbp__step_room(const hbp__step *step, int64_t k)
{
    if (!step->vision)
        return step->tokens[k];
    double tokens = step->vision_tokens * (double)step->vision[k]; /* of more than a pack, a pack's */
    return step->tokens[k] + (int64_t)hbp__min_f64(tokens, (double)HBP_MAX_LENGTH);
}

/* Sequence k alone in a group of step->degree[j]. */
static inline hbp__load hbp__step_load_of(const hbp__step *step, int32_t j, int64_t k)
{
    return (hbp__load){step->degree[j].tokens[k], step->squares[k], hbp__step_vision(step, k),
                       hbp__step_samples(step, k)};
}

/* The same with the tokens of the degree that pads it least. */
static inline hbp__load hbp__step_load_least(const hbp__step *step, int64_t k)
{
    return (hbp__load){step->tokens[k], step->squares[k], hbp__step_vision(step, k),
                       hbp__step_samples(step, k)};
}

/* Adds one load to another. */
static inline hbp__load hbp__step_load_sum(hbp__load a, hbp__load b)
{
    return (hbp__load){a.tokens + b.tokens, a.squares + b.squares, a.vision + b.vision,
                       a.samples + b.samples};
}

/* Adds sequence k to the load of a group of step->degree[j] (sign 1), or takes it off (-1). */
static inline void hbp__step_load_add(const hbp__step *step, int32_t j, hbp__load *load, int64_t k, int sign)
{
    load->tokens += sign * step->degree[j].tokens[k];
    load->squares += sign * step->squares[k];
    load->samples += sign * hbp__step_samples(step, k);
    if (step->vision)
        load->vision += sign * step->vision[k];
}

/* What a group of step->degree[j] with that load has with sequence k as well, or without it. */
static inline hbp__load hbp__step_load_with(const hbp__step *step, int32_t j, hbp__load load, int64_t k)
{
    hbp__step_load_add(step, j, &load, k, 1);
    return load;
}

static inline hbp__load hbp__step_load_without(const hbp__step *step, int32_t j, hbp__load load, int64_t k)
{
    hbp__step_load_add(step, j, &load, k, -1);
    return load;
}

/* Whether a group of step->degree[j] holds a load whose tokens and samples it holds; the same with sequence k
 * as well. Where vision units count; O(1). */
int hbp__step_holds_vision(const hbp__step *step, int32_t j, hbp__load load);
int hbp__step_takes_vision(const hbp__step *step, int32_t j, const hbp__load *load, int64_t k);

/* Whether a group of step->degree[j] holds the load. */
static inline int hbp__step_holds(const hbp__step *step, int32_t j, hbp__load load)
{
    return load.tokens <= step->degree[j].capacity && load.samples <= step->most_samples &&
           (!step->vision || hbp__step_holds_vision(step, j, load));
}

/* The same of a load with sequence k as well. */
static inline int hbp__step_takes(const hbp__step *step, int32_t j, const hbp__load *load, int64_t k)
{
    const hbp__step_degree *degree = &step->degree[j];
    return load->tokens + degree->tokens[k] <= degree->capacity &&
           load->samples + hbp__step_samples(step, k) <= step->most_samples &&
           (!step->vision || hbp__step_takes_vision(step, j, load, k));
}

/* The same of sequence k alone. */
static inline int hbp__step_holds_alone(const hbp__step *step, int32_t j, int64_t k)
{
    return hbp__step_takes(step, j, &(const hbp__load){0, 0, 0, 0}, k);
}

/* The way in which a group of the degree runs `tokens`, which it holds. O(1), mostly. */
static inline const hbp__point *hbp__step_find_way(const hbp__step_degree *degree, int64_t tokens)
{
    if (tokens <= degree->way[0].capacity)
        return &degree->way[0];
    if (tokens > degree->capacity)
        return &degree->way[degree->ways - 1];
    const hbp__point *way = &degree->way[degree->first[(int)((double)tokens * degree->slots_per_token)]];
    while (way->capacity < tokens)
        way++;
    return way;
}

/* The way in which a group of step->degree[j] runs a load, its tokens with the pack's padding: the first that
 * holds it, else the last. O(1), mostly; O(log ways) with vision units. */
const hbp__point *hbp__step_find_vision_way(const hbp__step *step, int32_t j, hbp__load load);

static inline const hbp__point *hbp__step_way_of(const hbp__step *step, int32_t j, hbp__load load)
{
    return step->vision ? hbp__step_find_vision_way(step, j, load)
                        : hbp__step_find_way(&step->degree[j], load.tokens);
}

/* How far a load is past what a group of step->degree[j] holds of vision units, as a share of it: by their
 * number, and by the memory that they leave for tokens. */
double hbp__step_vision_excess(const hbp__step *step, int32_t j, hbp__load load);

/* The most tokens that a way holds beside so many vision units, as the options allow. */
int64_t hbp__step_vision_capacity(const hbp__step *step, int32_t j, const hbp__point *way, int64_t vision);

/* Gives an opened problem's sequences their vision units, and puts the one that takes longest first.
 * O(count). */
hbp_status hbp__step_list_vision(hbp__step *step);

/* Rank-time of sequence k in a well filled pack of step->degree[j], which holds it. */
double hbp__step_rank_time(const hbp__step *step, int32_t j, int64_t k);

/* hbp__step_group_time where vision units count. */
double hbp__step_vision_time(const hbp__step *step, int32_t j, hbp__load load);

/* The same of a load which sequence k joins (sign 1) or leaves (-1) for sequence `other`, -1: none; what a
 * padding pack takes where nothing is left, INFINITY where the group does not hold it. */
double hbp__step_vision_time_by(const hbp__step *step, int32_t j, const hbp__load *load, int64_t k,
                                int64_t other, int sign);

/* hbp__step_group_ns where vision units count. */
int64_t hbp__step_vision_ns(const hbp__step *step, int32_t j, hbp__load load);

/* hbp__step_group_time of a load without vision units. */
static inline double hbp__step_text_time(const hbp__step_degree *degree, int64_t tokens, double squares)
{
    tokens = hbp__round_up(tokens, degree->pack_multiple);
    const hbp__point *way = hbp__step_find_way(degree, tokens);
    return way->constant + way->linear * (double)tokens + way->square * squares;
}

/* Predicted ns of a group of step->degree[j], unrounded, for search; the load, of > 0 tokens, fits. Padding
 * of the pack is counted. */
static inline double hbp__step_group_time(const hbp__step *step, int32_t j, hbp__load load)
{
    return step->vision ? hbp__step_vision_time(step, j, load)
                        : hbp__step_text_time(&step->degree[j], load.tokens, load.squares);
}

/* The same as plans record it, in integer ns; a group of no tokens takes what a padding pack takes; INT64_MAX
 * when the load does not fit. */
static inline int64_t hbp__step_group_ns(const hbp__step *step, int32_t j, hbp__load load)
{
    const hbp__step_degree *degree = &step->degree[j];
    if (step->vision)
        return hbp__step_vision_ns(step, j, load);
    int64_t tokens = hbp__round_up(load.tokens, degree->pack_multiple);
    if (tokens > degree->capacity || load.samples > step->most_samples)
        return INT64_MAX;
    int32_t recompute = tokens ? hbp__step_find_way(degree, tokens)->recompute : 0;
    return hbp__cost_pack_ns(step->cost, degree->row, recompute,
                             (hbp__load){.tokens = tokens, .squares = load.squares});
}

/* Micro-batches of a plan with so many of a solution: padding packs complete the least number and the
 * multiple. */
static inline int64_t hbp__step_whole(const hbp__step *step, int64_t micro_batches)
{
    int64_t least = hbp__max_i64(micro_batches, step->options.min_micro_batches);
    return hbp__round_up(least, step->options.micro_batch_multiple);
}

/* Which groups there are and who is in them. */
typedef struct hbp__step_solution {
    hbp__memory memory;
    int64_t micro_batches;
    int64_t groups;
    int64_t *first;   /* [micro_batches + 1] into the groups */
    int32_t *degree;  /* [groups] index in step->degree */
    int32_t *rank;    /* [groups] first rank; NULL: where hbp__step_place puts it */
    int64_t *group;   /* [count] the group of each sequence */
    int64_t ns;       /* until the last lockstep set is through its micro-batches, with the padding packs of
                         hbp__step_whole; step_ns not counted */
    int64_t bound_ns; /* no solution has a smaller `ns`; 0: not known */
    int32_t complete; /* zero when a limit cut the search short */
} hbp__step_solution;

/* Room for `micro_batches`, `groups` and the step's sequences; HBP_E_NO_MEMORY. Close releases, also a zeroed
 * solution. */
hbp_status hbp__step_solution_open(const hbp__step *step, int64_t micro_batches, int64_t groups,
                                   hbp__step_solution *solution);
void hbp__step_solution_close(hbp__step_solution *solution);

/* The ranks of all groups. O(groups). */
int64_t hbp__step_solution_ranks(const hbp__step *step, const hbp__step_solution *solution);

/* Sets `ns` from the groups, in the very integers that plans record. HBP_E_INTERNAL when a group does not
 * fit or holds too many samples, the groups of a micro-batch do not fit the ranks, or a sequence has no
 * group: a planner's own mistake. O(count + groups). */
hbp_status hbp__step_solution_price(const hbp__step *step, hbp__step_solution *solution);

/* First rank of each of `count` groups (of degrees given as indices), aligned to their degree and inside
 * domains; zero when they cannot be placed. `first` [count] may be NULL when only the answer counts. */
int hbp__step_place(const hbp__step *step, const int32_t *degree, int64_t count, int32_t *first);

/* Gives ranks without a group, and micro-batches that only complete a number, sequences and groups of their
 * own or wider ones (docs/explanation/step.md). Its time does not grow where the step has fewer sequences
 * than ranks, else by as little as is found. O(count degrees + micro-batches ranks^2 degrees). */
hbp_status hbp__step_spread(const hbp__step *step, hbp__step_solution *solution);

/* All packs of one degree, and the same number of samples on the ranks of each (docs/explanation/step.md);
 * opens and prices *solution. HBP_E_INFEASIBLE with a message. */
hbp_status hbp__step_equal(const hbp__step *step, hbp__step_solution *solution);

/* The plan of a priced solution; groups without sequences and ranks without a group become padding packs. */
hbp_status hbp__step_finish(const hbp__step *step, const hbp__step_solution *solution, hbp_plan **out);

/* What no solution of one sequence or more beats in ns: the sequence that takes longest alone, and the
 * shortest in each of the micro-batches that complete a number, while there are any. O(count degrees). */
hbp_status hbp__step_longest_ns(const hbp__step *step, double *ns);

/* Whether a step of so many ns is so near to what none beats that searching on brings next to nothing, or
 * with an effort above 1 nothing. */
int hbp__step_is_least(const hbp__step *step, double ns, double least);

/* The ways to plan a step, each opening and pricing *solution. `bound_ns` stays 0. */
hbp_status hbp__step_search(const hbp__step *step, hbp__step_solution *solution);
hbp_status hbp__step_paper(const hbp__step *step, hbp__step_solution *solution);
hbp_status hbp__step_static_sp(const hbp__step *step, hbp__step_solution *solution);
hbp_status hbp__step_homogeneous_sp(const hbp__step *step, hbp__step_solution *solution);
hbp_status hbp__step_hybrid_cp(const hbp__step *step, hbp__step_solution *solution);
hbp_status hbp__step_dynamic_cp(const hbp__step *step, hbp__step_solution *solution);

/* Improves a priced solution, or proves it best, by the MILP through the context's solver; sets bound_ns to
 * the solver's. HBP_NOT_PROVEN when it stopped early. */
hbp_status hbp__step_exact(const hbp__step *step, hbp__step_solution *solution);

/* A lower bound on `ns` of every solution (docs/explanation/step-bound.md); `upper_ns`, that of some
 * solution, only guides it. */
hbp_status hbp__step_bound(const hbp__step *step, int64_t upper_ns, int64_t *bound_ns);

/* Solves one micro-batch of the sequences listed in `member` [members] (ascending indices into the step's
 * sequences) on all ranks: a solution of one micro-batch for these alone, group[i] being that of member[i].
 * `tokens` and `squares` [members] are taken in the place of the sequences' own (the published planner rounds
 * them up to buckets); NULL: their own. HBP_E_INFEASIBLE, without a message, when they do not fit. */
hbp_status hbp__step_solve_micro_batch(const hbp__step *step, const int64_t *member, int64_t members,
                                       const int64_t *tokens, const double *squares,
                                       hbp__step_solution *solution);

#endif
