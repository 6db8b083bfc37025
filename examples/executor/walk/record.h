/* What was measured, pack by pack: every rank's rows of a step are brought together into rows of the
 * timeline. */
#ifndef EX_WALK_RECORD_H
#define EX_WALK_RECORD_H

#include <hbp/hbp.h>
#include <stdint.h>

#include "comm/comm.h"

/* The most times that a pack is run for its time. */
enum { EX_REPEATS = 16 };

/* What one rank measured of one pack, run `repeats` times; times are of its clock, from when the run began.
 */
typedef struct ex_measured {
    int64_t pack; /* row of the plan's packs; -1: of no plan */
    int64_t step; /* of the epoch */
    int64_t start_ns[EX_REPEATS], end_ns[EX_REPEATS];
    int64_t communication_ns[EX_REPEATS];
    int64_t peak_bytes;
    int64_t tokens;
    int64_t sum_squares;
    int64_t samples;
    int32_t sp;
    int32_t micro_batch;
    int32_t recompute;
    int32_t repeats; /* 1 .. EX_REPEATS, the same on all ranks of the pack */
    int32_t clock;   /* EX_CLOCK_* of start and end */
} ex_measured;

/* Rows for hbp_timeline_create, growing columns. */
typedef struct ex_record {
    int64_t count, room;
    int64_t *pack; /* row of the plan */
    int64_t *step;
    int32_t *micro_batch, *first_rank, *sp, *recompute;
    int64_t *samples, *tokens, *sum_squares, *start_ns, *time_ns, *communication_ns, *peak_bytes;
    int32_t clock;    /* EX_CLOCK_* of its times */
    ex_measured *all; /* scratch [ranks x micro-batches] */
    int64_t all_room;
} ex_record;

/* Which time a pack took. */
enum {
    EX_CLOCK_WALL = 0,
    EX_CLOCK_PROCESSOR = 1 /* that the rank's thread spent computing: what is left of a measurement on a
                              machine that others use as well; waiting for other ranks is left out */
};

/* Nanoseconds of a clock that never goes back; of the calling thread's for EX_CLOCK_PROCESSOR. */
int64_t ex_now_ns(void);
int64_t ex_clock_ns(int32_t clock);

/* Brings together `count` measured packs of each rank (the same number on all) and adds a row for each pack,
 * in the order of micro-batches, then ranks: it began when the last of its ranks could, and ended with the
 * last. Collective. */
int ex_record_add(ex_record *record, ex_comm *comm, const ex_measured *own, int64_t count, ex_fault *fault);

/* The rows as a timeline of `ranks` ranks on `device`; *out to be freed. */
int ex_record_finish(const ex_record *record, hbp_context *context, int32_t ranks, const char *device,
                     hbp_timeline **out, ex_fault *fault);

void ex_record_free(ex_record *record);

#endif
