/* The ranks of this process: one by itself, one of a launcher's, or several virtual ones, each with its
 * device. */
#ifndef EX_RANKS_H
#define EX_RANKS_H

#include <stdint.h>

#include "comm/comm.h"
#include "device/device.h"
#include "options.h"

/* One rank, ready to compute: `comm` is bound to `device`. */
typedef struct ex_rank {
    ex_comm *comm;
    ex_device *device;
    int32_t sharers; /* ranks that share the device's memory */
    ex_fault fault;
    void *user;
} ex_rank;

/* Opens what the options name and calls `work` on every rank of this process, in threads of their own when
 * they are virtual. `work` returns 0, -1 after a failure in rank->fault that the others do not know of, or -2
 * when they do. Prints the first message of each process on stderr, tells the others, and returns the exit
 * status. */
int ex_ranks_run(const ex_options *options, int (*work)(ex_rank *rank), void *user);

#endif
