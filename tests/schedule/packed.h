/* Data packed into groups, for the tests of what comes after packing. */
#ifndef HBP_TESTS_PACKED_H
#define HBP_TESTS_PACKED_H

#include "costs.h"
#include "data/packs.h"
#include "schedule/microbatch.h"

typedef struct packed {
    hbp_context *context;
    hbp_cost *cost;
    hbp_lengths *lengths;
    hbp_groups *groups;
    hbp_packs *packs;
} packed;

/* `count` samples in packs of 4096 at SP 1 and 32768 at SP 8, on 16 ranks. */
static inline packed packed_open(uint64_t seed, int64_t count)
{
    packed p = {.context = test_context()};
    p.cost = test_cost(p.context);
    p.lengths = test_long_tail(p.context, seed, count, 32768);
    OK(p.context, hbp_groups_create(p.context, p.cost, 2, (int64_t[]){4096, 32768}, (int32_t[]){1, 8}, NULL,
                                    0, &p.groups));
    hbp_fill_options options = {.struct_size = sizeof options, .seed = seed};
    OK(p.context, hbp_greedy_fill(p.context, p.lengths, p.groups, &options, &p.packs));
    return p;
}

static inline void packed_close(packed *p)
{
    hbp_packs_free(p->packs);
    hbp_groups_free(p->groups);
    hbp_lengths_free(p->lengths);
    hbp_cost_free(p->cost);
    hbp_context_free(p->context);
}

#endif
