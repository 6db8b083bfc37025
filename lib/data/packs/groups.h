/* The inside of groups; chosen by pack/groups/groups.c. */
#ifndef HBP_DATA_GROUPS_H
#define HBP_DATA_GROUPS_H

#include <stdint.h>

#include "base/context.h"
#include "hbp/pack.h"

#define HBP__CANDIDATE_TEXT 256

/* A hierarchy that was considered, with all that making it anew takes. */
typedef struct hbp__candidate {
    int64_t epoch_ns; /* estimate */
    int64_t count;
    int64_t threshold[HBP_MAX_GROUPS];
    int64_t pack_length[HBP_MAX_GROUPS];
    int32_t sp[HBP_MAX_GROUPS];
    int32_t recompute[HBP_MAX_GROUPS];
    int64_t micro_batches[HBP_MAX_GROUPS];
    int64_t tokens[HBP_MAX_GROUPS];
} hbp__candidate;

struct hbp_groups {
    hbp__memory memory;
    int64_t count;
    int64_t threshold[HBP_MAX_GROUPS];   /* largest item of the group */
    int64_t pack_length[HBP_MAX_GROUPS]; /* capacity; >= threshold */
    int32_t sp[HBP_MAX_GROUPS];
    int32_t recompute[HBP_MAX_GROUPS];
    int64_t packs[HBP_MAX_GROUPS];         /* in a micro-batch: ranks / sp */
    int64_t micro_batches[HBP_MAX_GROUPS]; /* in a step */
    int64_t tokens[HBP_MAX_GROUPS];
    int64_t step_ns[HBP_MAX_GROUPS];
    /* A pack of S tokens and Q squares takes token_ns S + square_ns Q + fixed_ns: the cost at this degree and
     * depth of recomputation, so that packs can be compared without the cost at hand. */
    double token_ns[HBP_MAX_GROUPS];
    double square_ns[HBP_MAX_GROUPS];
    double fixed_ns[HBP_MAX_GROUPS];
    int64_t tokens_per_step;
    int32_t ranks;
    int64_t candidates;        /* hierarchies considered, the chosen one first */
    hbp__candidate *candidate; /* [candidates] */
    int64_t *candidate_ns;     /* [candidates] */
    char (*candidate_text)[HBP__CANDIDATE_TEXT];
    const char **candidate_texts; /* [candidates] its rows */
};

/* Empty groups with room for `candidates` rows of the table of hierarchies; NULL when memory is short. */
hbp_groups *hbp__groups_new(const hbp__memory *memory, int64_t candidates);

/* Writes "16384 x SP 1, 131072 x SP 8" for these rows; cut off when it does not fit. */
void hbp__groups_describe(const int64_t *pack_length, const int32_t *sp, int64_t count, char *text);

#endif
