/* hbp_executor: trains a transformer by a plan, measures packs of a model, or the machine. */
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
    switch (options.command) {
    case EX_RUN:
        return ex_run_command(&options);
    case EX_PROBE:
        return ex_probe_command(&options);
    default:
        return ex_measure_command(&options);
    }
}
