/* What the backends' calls share: checks at their beginning, messages, the sum over ranks. */
#ifndef EX_COMM_CALL_H
#define EX_COMM_CALL_H

#include <stdint.h>

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Seconds of a clock that never goes back. */
double ex_call_now(void);

/* 0 when a data call may begin: nothing failed, a device is bound, this rank is in the group, `count` is not
 * negative. */
int ex_call_begin(ex_comm *comm, const ex_group *group, const char *what, int64_t count);

/* Keeps "rank 3 of 8: all-to-all of ranks 0..3 in step 4, micro-batch 1: " and the reason in comm->fault.
 * Returns -1. */
int ex_call_fail(ex_comm *comm, const ex_group *group, const char *what, const char *format, ...);

/* The same for a wait that was too long; `missing` [group->size] is nonzero where a rank has not answered, by
 * place in the group; NULL: not known. */
int ex_call_late(ex_comm *comm, const ex_group *group, const char *what, const unsigned char *missing);

/* This rank's group among the aligned groups of `size` ranks: sets first and rank. Ranks after the last whole
 * group are in none: rank -1. Returns whether it is in one. */
int ex_call_place(const ex_comm *comm, ex_group *group);

/* to [count] = the sum over r of from[r] [count], added in fp64 in the order of r and rounded once, so that
 * every backend that sums by this gives the same bits. `to` may be one of `from`. */
void ex_call_sum(float *to, const float *const *from, int32_t ranks, int64_t count);

#ifdef __cplusplus
}
#endif

#endif
