/* The executor's commands: each returns the exit status. */
#ifndef EX_COMMANDS_H
#define EX_COMMANDS_H

#include "options.h"

int ex_run_command(const ex_options *options);
int ex_probe_command(const ex_options *options);
int ex_measure_command(const ex_options *options);

#endif
