/* The project's own file of a machine: JSON, each number with where it came from. */
#ifndef HBP_IO_MACHINE_PROFILE_H
#define HBP_IO_MACHINE_PROFILE_H

#include <stdint.h>

#include "data/machine/machine.h"

/* Reads a profile out of `text` [bytes]; `name` is for messages. HBP_E_FORMAT, HBP_E_VERSION. */
hbp_status hbp__machine_read(hbp_context *context, const char *name, const char *text, int64_t bytes,
                             hbp_machine **out);

#endif
