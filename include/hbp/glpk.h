/* GLPK as the solver of libhbp: hbp_context_set_solver(context, hbp_glpk_solver()).
 *
 * In a library of its own, libhbp-glpk, because GLPK is under the GPL-3.0: a program that links libhbp-glpk
 * must be distributed under terms that the GPL allows. libhbp never links it, and hbp.h does not include
 * this.
 *
 * Stability: stable. */
#ifndef HBP_GLPK_H
#define HBP_GLPK_H

#include "hbp/base.h"

HBP_BEGIN_DECLS

/* The solver. Static, never freed. Each solve runs on a thread of its own with a GLPK environment of its own,
 * so that the program's own use of GLPK is left alone and a failure of GLPK is a status. Thread: any. */
HBP_API const hbp_solver *hbp_glpk_solver(void);

HBP_END_DECLS

#endif
