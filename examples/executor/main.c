/* hbp_executor: trains a small transformer by a plan and measures it, or measures the machine. */
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
    return options.command == EX_RUN ? ex_run_command(&options) : ex_probe_command(&options);
}
