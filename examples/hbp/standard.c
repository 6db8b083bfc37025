/* Standard output as the file to write, -o /dev/stdout: it gets that file and nothing else. What the command
 * says goes to standard error, and the library, which renames what it has written into place, writes a
 * temporary file, of which standard output gets a copy. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

static struct {
    const char *given;
    char folder[512];
    char path[1024];
    int output; /* standard output, while its number is that of standard error */
} standard;

const char *cli_temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

static int is_standard_output(const char *path)
{
    struct stat one, two;
    if (stat(path, &one) != 0 || fstat(STDOUT_FILENO, &two) != 0)
        return 0;
    if (S_ISCHR(one.st_mode) && !isatty(STDOUT_FILENO)) /* /dev/null */
        return 0;
    return one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

static int open_folder(const char *path)
{
    const char *parent = cli_temporary_folder(), *name = strrchr(path, '/');
    name = name ? name + 1 : path; /* its ending says what to write */
    int bytes = snprintf(standard.folder, sizeof standard.folder, "%s/hbp-XXXXXX", parent);
    int fits =
        bytes < (int)sizeof standard.folder && bytes + 1 + (int)strlen(name) < (int)sizeof standard.path;
    if (!fits || !mkdtemp(standard.folder)) {
        int why = fits ? errno : ENAMETOOLONG;
        standard.folder[0] = '\0';
        return cli_error("cannot make a temporary folder in %s: %s", parent, strerror(why));
    }
    snprintf(standard.path, sizeof standard.path, "%s/%s", standard.folder, name);
    return 0;
}

int cli_take_standard_output(cli *c)
{
    cli_output outputs[CLI_OUTPUTS];
    const size_t count = CLI_OUTPUTS;
    cli_list_outputs(c, outputs);
    size_t at = 0;
    while (at < count && !(*outputs[at].path && is_standard_output(*outputs[at].path)))
        at++;
    if (at == count)
        return 0;
    if (c->json)
        return cli_usage(
            "%s %s and --json both write to standard output; give %s a file, or leave --json out",
            outputs[at].option, *outputs[at].path, outputs[at].option);
    int wrong = open_folder(*outputs[at].path);
    if (wrong)
        return wrong;
    standard.given = *outputs[at].path;
    standard.output = dup(STDOUT_FILENO);
    if (standard.output < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return cli_error("cannot write to standard output: %s", strerror(errno));
    *outputs[at].path = standard.path;
    return 0;
}

int cli_copy_to_output(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return cli_error("cannot read %s: %s", path, strerror(errno));
    char buffer[65536];
    int status = 0;
    for (size_t got; !status && (got = fread(buffer, 1, sizeof buffer, file)) > 0;)
        if (fwrite(buffer, 1, got, stdout) < got)
            status = cli_error("cannot write to standard output: %s", strerror(errno));
    if (!status && ferror(file))
        status = cli_error("cannot read %s: %s", path, strerror(errno));
    fclose(file);
    return status;
}

int cli_give_standard_output(int status)
{
    if (standard.given) {
        say_end();
        fflush(stdout);
        if (dup2(standard.output, STDOUT_FILENO) < 0)
            status = cli_error("cannot write to standard output: %s", strerror(errno));
        close(standard.output);
        if (!status)
            status = cli_copy_to_output(standard.path);
        unlink(standard.path);
    }
    if (standard.folder[0])
        rmdir(standard.folder);
    return status;
}

const char *cli_given_name(const char *path)
{
    return standard.given && strcmp(path, standard.path) == 0 ? standard.given : path;
}
