/* Standard output as the file to write, -o /dev/stdout: it gets that file and nothing else. What the command
 * says goes to standard error. */
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

int cli_is_standard_output(const char *path)
{
    struct stat one, two;
    if (stat(path, &one) != 0 || fstat(STDOUT_FILENO, &two) != 0)
        return 0;
    if (S_ISCHR(one.st_mode) && !isatty(STDOUT_FILENO)) /* /dev/null */
        return 0;
    return one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

int cli_take_standard_output(const cli *c)
{
    cli_output outputs[CLI_OUTPUTS];
    const size_t count = CLI_OUTPUTS;
    cli_list_outputs(c, outputs);
    for (size_t o = 0; o < count; o++) {
        if (!outputs[o].path || !cli_is_standard_output(outputs[o].path))
            continue;
        if (c->json)
            return cli_usage(
                "%s %s and --json both write to standard output; give %s a file, or leave --json out",
                outputs[o].option, outputs[o].path, outputs[o].option);
        screen_use_error();
        return 0;
    }
    return 0;
}
