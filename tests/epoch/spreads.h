/* Every way to spread few samples over steps. */
#ifndef HBP_TESTS_SPREADS_H
#define HBP_TESTS_SPREADS_H

#include "keep.h"

enum { SPREAD_MOST = 8 };

typedef struct spread spread;
struct spread {
    hbp_context *context;
    const hbp_cost *cost;
    const int64_t *length;
    int64_t count, tokens_per_step;
    /* What a step of these samples takes. */
    int64_t (*step_ns)(const spread *s, const hbp_lengths *lengths);
    int64_t best; /* of all spreads so far; INT64_MAX to begin with */
    int64_t step_of[SPREAD_MOST];
    int64_t known[1 << SPREAD_MOST]; /* times of steps by the samples in them; 0: not known */
};

static inline hbp_lengths *spread_lengths(hbp_context *context, const int64_t *length, int64_t count)
{
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_i64(context, length, count, NULL, &lengths));
    return lengths;
}

static inline int64_t spread_step(spread *s, int64_t step)
{
    int64_t length[SPREAD_MOST], count = 0, set = 0;
    for (int64_t i = 0; i < s->count; i++)
        if (s->step_of[i] == step) {
            length[count++] = s->length[i];
            set |= INT64_C(1) << i;
        }
    if (!s->known[set]) {
        hbp_lengths *lengths = spread_lengths(s->context, length, count);
        s->known[set] = s->step_ns(s, lengths);
        hbp_lengths_free(lengths);
    }
    return s->known[set];
}

/* All spreads of the samples from `at` on, those before being in `steps` steps. */
static inline void spread_all(spread *s, int64_t at, int64_t steps)
{
    int64_t ns = 0;
    for (int64_t step = 0; at == s->count && step < steps; step++)
        ns += spread_step(s, step);
    if (at == s->count) {
        s->best = ns < s->best ? ns : s->best;
        return;
    }
    for (int64_t step = 0; step <= steps; step++) {
        int64_t tokens = s->length[at];
        for (int64_t i = 0; i < at; i++)
            tokens += s->step_of[i] == step ? s->length[i] : 0;
        if (tokens > s->tokens_per_step)
            continue;
        s->step_of[at] = step;
        spread_all(s, at + 1, step == steps ? steps + 1 : steps);
    }
}

#endif
