/* What tests of comm/mpi turn. */
#ifndef EX_COMM_MPI_PIECE_H
#define EX_COMM_MPI_PIECE_H

#include "comm/comm.h"

/* The most bytes a message of a communicator of ex_mpi_open holds; a longer block is cut. The same on all
 * ranks. At least 4 and rounded down to a multiple of it. 0: the default. */
void ex_mpi_set_piece(ex_comm *comm, int64_t bytes);

#endif
