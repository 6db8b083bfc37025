/* Data packed into groups, for the tests of what comes after packing. */
#ifndef HBP_TESTS_PACKED_H
#define HBP_TESTS_PACKED_H

#include "costs.h"
#include "data/packs/packs.h"
#include "keep.h"
#include "schedule/microbatch.h"

typedef struct packed {
    hbp_context *context;
    hbp_cost *cost;
    hbp_lengths *lengths;
    hbp_groups *groups;
    hbp_packs *packs;
} packed;

/* `count` samples in packs of 4096 at SP 1 and 32768 at SP 8, on 16 ranks. */
static inline packed packed_open(hbp_context *context, uint64_t seed, int64_t count)
{
    packed p = {.context = context};
    p.cost = keep(test_cost(context));
    p.lengths = keep(test_long_tail(context, seed, count, 32768));
    MAKES(context, p.groups,
          hbp_groups_create(context, p.cost, 2, (int64_t[]){4096, 32768}, (int32_t[]){1, 8}, NULL, 0,
                            &p.groups));
    hbp_fill_options options = {.struct_size = sizeof options, .seed = seed};
    MAKES(context, p.packs, hbp_greedy_fill(context, p.lengths, p.groups, &options, &p.packs));
    return p;
}

#endif
