/* The best assignment of some sequences to given groups, by trying all. */
#ifndef HBP_TESTS_STEP_ASSIGNED_H
#define HBP_TESTS_STEP_ASSIGNED_H

#include <math.h>

#include "step/step.h"
#include "test.h"

#define ASSIGNED_GROUPS 16

typedef struct assigned {
    const hbp__step *step;
    const int32_t *degree; /* [groups] indices */
    int64_t groups;
    const int64_t *member; /* [members] */
    int64_t members;
    int64_t tokens[ASSIGNED_GROUPS];
    double squares[ASSIGNED_GROUPS];
    double best;
} assigned;

static inline double assigned_time(const assigned *a, int64_t g)
{
    const hbp__step *step = a->step;
    if (!a->tokens[g])
        return step->cost->terms.pack_ns;
    if (a->tokens[g] > step->degree[a->degree[g]].capacity)
        return (double)INFINITY;
    return hbp__step_group_time(step, a->degree[g],
                                (hbp__load){.tokens = a->tokens[g], .squares = a->squares[g]});
}

static inline void assigned_walk(assigned *a, int64_t i, double slowest)
{
    if (!(slowest < a->best))
        return;
    if (i == a->members) {
        a->best = slowest;
        return;
    }
    int64_t k = a->member[i];
    for (int64_t g = 0; g < a->groups; g++) {
        int same = g && a->degree[g] == a->degree[g - 1] && !a->tokens[g] && !a->tokens[g - 1];
        if (same)
            continue;
        double squares = a->squares[g];
        a->tokens[g] += a->step->tokens[k];
        a->squares[g] += a->step->squares[k];
        double time = assigned_time(a, g);
        assigned_walk(a, i + 1, time > slowest ? time : slowest);
        a->tokens[g] -= a->step->tokens[k];
        a->squares[g] = squares;
    }
}

/* The least makespan; INFINITY when they do not fit. */
static inline double assigned_best(const hbp__step *step, const int32_t *degree, int64_t groups,
                                   const int64_t *member, int64_t members)
{
    assigned a = {.step = step, .degree = degree, .groups = groups, .member = member, .members = members};
    ck_assert_int_le(groups, ASSIGNED_GROUPS);
    a.best = (double)INFINITY;
    assigned_walk(&a, 0, step->cost->terms.pack_ns);
    return a.best;
}

#endif
