/* What was chosen in the planners of steps, without a benchmark unless one is named (benchmarks/README.md).
 * Whoever changes a figure runs bench_quality before and after, for modalities and vision bench_alike. */
#ifndef HBP_SCHEDULE_TUNING_H
#define HBP_SCHEDULE_TUNING_H

/* Packs whose predicted times differ by less than this share of the group's longest count as alike. */
#define HBP__TIME_CLASSES 1024

/* Packs of the same modalities in whole micro-batches. */
enum {
    HBP__KINDS_PROBES = 256, /* other packs, drawn at random, that one looks at to exchange a sample, or until
                                it has so many */
    HBP__KINDS_CHOICES = 24, /* to choose from, */
    HBP__KINDS_LOOKS = 32,   /* and samples in each of them */
    HBP__KINDS_EXCHANGES = 6, /* a pack that needs more for another set of modalities keeps its own */
    HBP__KINDS_TRIES = 32,    /* packs of a set tried for each that should leave it */
    HBP__KINDS_ROUNDS = 4,    /* of choosing which sets give and which take */
    /* Packs looked at in a round over a group, for each of its packs, and for one that should change. */
    HBP__KINDS_LOOKS_A_ROUND = 1 << 18,
    HBP__KINDS_LOOKS_A_PACK = 64,
    HBP__KINDS_LOOKS_A_CHANGE = 1 << 13,
};

/* Packs alike in several sizes. */
enum {
    HBP__VISION_FEW_BATCHES = 4, /* up to so many micro-batches, */
    HBP__VISION_ORDERS = 12,     /* so many random orders are tried as well */
    HBP__VISION_NEIGHBOURS = 8,  /* of a micro-batch in the order of a sum, that it meets */
    /* Meetings in a round and in all of them, times their packs. */
    HBP__VISION_MEETINGS_A_ROUND = 1 << 21,
    HBP__VISION_MEETINGS = 1 << 22,
    HBP__VISION_ROUNDS = 6,     /* over all micro-batches, each in the order of every sum; */
    HBP__VISION_WORTH_IT = 256, /* one that gains less than this share of what is left is the last */
    HBP__VISION_MAX_SWAPS = 8,  /* of one pair of micro-batches */
};

/* Bins up to which dealing sorts by insertion. */
#define HBP__DEAL_FEW_BINS 32

#endif
