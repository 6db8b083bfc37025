/* Where a run writes to, looked at before it begins: what it came to is not to be lost at its end. */
#ifndef EX_WALK_OUTPUT_H
#define EX_WALK_OUTPUT_H

#include "base/fault.h"

/* Whether a file can be written at `path`, beside which one is made and removed. `replaces`: it will be
 * renamed over what is there, which must not be a device, say. NULL is fine. */
int ex_output_check_file(const char *path, int replaces, ex_fault *fault);

/* Makes the folder where there is none, and sees that files can be made in it. NULL is fine. */
int ex_output_make_folder(const char *path, ex_fault *fault);

#endif
