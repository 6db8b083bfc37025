/* The calls of a group of one rank: copies on its device. Other backends use them for such groups. */
#ifndef EX_COMM_SELF_H
#define EX_COMM_SELF_H

#include "comm/comm.h"

extern const ex_comm_ops ex_self_ops;

#endif
