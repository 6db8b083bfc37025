/* hbp_executor: trains a transformer by a plan, measures packs of a model, or the machine. */
#include <stdio.h>

#include "commands.h"
#include "options.h"

int main(int argc, char **argv)
{
    ex_options options;
    int bad = ex_options_read(&options, argc, argv);
    if (bad)
        return bad;
    if (options.help) {
        ex_options_print_help();
        return 0;
    }
    int status = options.command == EX_RUN     ? ex_run_command(&options)
                 : options.command == EX_PROBE ? ex_probe_command(&options)
                                               : ex_measure_command(&options);
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == 0) {
        fputs("hbp_executor: cannot write to standard output\n", stderr);
        status = 1;
    }
    return status;
}
