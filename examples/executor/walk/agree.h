/* Beginning together: ranks that can go on learn of those that cannot, instead of waiting for them. */
#ifndef EX_WALK_AGREE_H
#define EX_WALK_AGREE_H

#include "base/fault.h"
#include "comm/comm.h"

/* `failed`: this rank cannot go on, and `fault` says why. Returns 0 when all can; -2 when all know that one
 * cannot: the first such rank keeps its message, the others' faults have no text; -1 when the communicator
 * failed. Collective. */
int ex_agree(ex_comm *comm, int failed, ex_fault *fault);

#endif
