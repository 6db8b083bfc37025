/* hbp probe --executor: has the executor measure, and takes the profile that it wrote. */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "hbp/io.h"

extern char **environ;

/* What the command prints goes to stderr: stdout is for the result. */
static int run_shell(const char *command, int *status)
{
    posix_spawn_file_actions_t actions;
    pid_t child = -1;
    char text[] = "-c", shell[] = "sh";
    char *arguments[] = {shell, text, (char *)(uintptr_t)command, NULL};
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return error;
    error = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    if (!error)
        error = posix_spawn(&child, "/bin/sh", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    while (!error && waitpid(child, status, 0) < 0)
        error = errno == EINTR ? 0 : errno;
    return error;
}

static hbp_status take_profile(cli *c, const char *path, const char *command)
{
    int status = 0;
    int error = run_shell(command, &status);
    if (error)
        return cli_own_failure("cannot run /bin/sh: %s", strerror(error));
    if (WIFSIGNALED(status))
        return cli_own_failure("signal %d ended '%s'", WTERMSIG(status), c->executor_command);
    if (WEXITSTATUS(status) == 127)
        return cli_own_failure("the shell cannot find what '%s' runs", c->executor_command);
    if (status)
        return cli_own_failure("'%s' failed with exit status %d", c->executor_command, WEXITSTATUS(status));
    struct stat file;
    if (stat(path, &file) || file.st_size == 0)
        return cli_own_failure("'%s' succeeded and wrote no profile to %s", c->executor_command, path);
    return hbp_machine_load(c->context, path, &c->machine);
}

static const char *temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

hbp_status cli_run_executor(cli *c)
{
    /* Beside the output, which is where rank 0 can write when it runs on another node. */
    const char *stem = c->output ? c->output : temporary_folder();
    static const char word[] = " probe -o '";
    size_t room = strlen(stem) + sizeof "/hbp-probe-XXXXXX";
    char *path = malloc(room), *command = malloc(strlen(c->executor_command) + sizeof word + room + 1);
    hbp_status status = HBP_E_NO_MEMORY;
    if (!path || !command) {
        cli_own_failure("no memory for a command");
    } else if (strchr(stem, '\'')) {
        status = cli_own_usage("the path %s has a ' in it, which the shell would take for an end", stem);
    } else {
        sprintf(path, "%s%s", stem, c->output ? ".probe-XXXXXX" : "/hbp-probe-XXXXXX");
        int file = mkstemp(path);
        if (file < 0) {
            status = cli_own_failure("cannot write beside %s: %s", path, strerror(errno));
        } else {
            close(file);
            sprintf(command, "%s%s%s'", c->executor_command, word, path);
            status = take_profile(c, path, command);
            unlink(path);
        }
    }
    free(command);
    free(path);
    return status;
}
