/* The files that a command line has written: checked before minutes of planning, and nothing is made. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

/* The folder of a path, and its last part; 0: there is no such folder. */
static int find_folder(const char *path, struct stat *folder, const char **last)
{
    char text[CLI_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    *last = slash ? slash + 1 : path;
    snprintf(text, sizeof text, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    return stat(text, folder) == 0;
}

/* Whether both are one file, or will be once that is made, through whatever links; "-" is standard input. */
static int is_same(const char *a, const char *b)
{
    struct stat one, two;
    char place[2][CLI_PATH_BYTES];
    const char *last[2];
    const int has_one = stat(a, &one) == 0;
    const int has_two = (strcmp(b, "-") == 0 ? fstat(STDIN_FILENO, &two) : stat(b, &two)) == 0;
    if (has_one && has_two)
        return S_ISREG(one.st_mode) && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
    if (has_one || has_two || cli_follow_links(a, place[0]) || cli_follow_links(b, place[1]))
        return 0;
    return find_folder(place[0], &one, &last[0]) && find_folder(place[1], &two, &last[1]) &&
           one.st_dev == two.st_dev && one.st_ino == two.st_ino && strcmp(last[0], last[1]) == 0;
}

int cli_is_open_file(const char *followed)
{
    return strncmp(followed, "/proc/", 6) == 0 || strncmp(followed, "/dev/fd/", 8) == 0;
}

int cli_follow_links(const char *path, char to[CLI_PATH_BYTES])
{
    enum { LINKS = 40 };
    char target[CLI_PATH_BYTES];
    struct stat at;
    if (strlen(path) >= CLI_PATH_BYTES)
        return ENAMETOOLONG;
    snprintf(to, CLI_PATH_BYTES, "%s", path);
    for (int i = 0; !cli_is_open_file(to) && lstat(to, &at) == 0 && S_ISLNK(at.st_mode); i++) {
        const ssize_t length = readlink(to, target, sizeof target);
        const char *slash = strrchr(to, '/');
        const size_t folder = slash && target[0] != '/' ? (size_t)(slash - to) + 1 : 0;
        if (length < 0 || i == LINKS)
            return length < 0 ? errno : ELOOP;
        if (folder + (size_t)length >= CLI_PATH_BYTES)
            return ENAMETOOLONG;
        memcpy(to + folder, target, (size_t)length);
        to[folder + (size_t)length] = '\0';
    }
    return 0;
}

/* A file is written beside its place, behind links if it is a link, and renamed, so that its folder must take
 * another file. */
static int check_place(const char *option, const char *path)
{
    struct stat at;
    char folder[CLI_PATH_BYTES], place[CLI_PATH_BYTES];
    const int is_there = stat(path, &at) == 0;
    if (is_there && S_ISDIR(at.st_mode))
        return cli_error("cannot write %s %s: it is a folder; give the name of a file in it", option, path);
    if (is_there && !S_ISREG(at.st_mode)) /* a pipe, a terminal: written as it is */
        return access(path, W_OK) == 0 ? 0
                                       : cli_error("cannot write %s %s: %s", option, path, strerror(errno));
    const int is_absent = errno == ENOENT || errno == ENOTDIR;
    const int unfollowed = is_there || is_absent ? cli_follow_links(path, place) : errno;
    if (unfollowed)
        return cli_error("cannot write %s %s: %s", option, path, strerror(unfollowed));
    if (cli_is_open_file(place)) /* /dev/stdout, which may be closed */
        return is_there
                   ? 0
                   : cli_error("cannot write %s %s: it is a link to a file that is not there", option, path);
    const char *slash = strrchr(place, '/');
    size_t length = slash ? (size_t)(slash - place) : 0;
    if (!slash)
        snprintf(folder, sizeof folder, ".");
    else if (length == 0)
        snprintf(folder, sizeof folder, "/");
    else
        snprintf(folder, sizeof folder, "%.*s", (int)length, place);
    if (stat(folder, &at) != 0)
        return errno == ENOENT ? cli_error("cannot write %s %s: there is no folder %s; make it first", option,
                                           path, folder)
                               : cli_error("cannot write %s %s: %s", option, path, strerror(errno));
    if (!S_ISDIR(at.st_mode))
        return cli_error("cannot write %s %s: %s is no folder", option, path, folder);
    if (slash && !slash[1])
        return cli_error("cannot write %s %s: it names no file behind the folder", option, path);
    if (access(folder, W_OK | X_OK) != 0)
        return cli_error("cannot write %s %s: folder %s: %s", option, path, folder, strerror(errno));
    return 0;
}

void cli_list_outputs(const cli *c, cli_output *outputs)
{
    outputs[0] = (cli_output){"-o", c->output};
    outputs[1] = (cli_output){"--trace", c->trace_file};
    outputs[2] = (cli_output){"--graph-out", c->graph_out};
    outputs[3] = (cli_output){"--run-out", c->run_out};
}

int cli_check_outputs(const cli *c)
{
    cli_output outputs[CLI_OUTPUTS];
    cli_list_outputs(c, outputs);
    const char *inputs[] = {c->file,          c->vision_file,   c->cost_file,     c->batches_file,
                            c->layers_file,   c->schedule_file, c->previous_file, c->lengths_file,
                            c->measured_file, c->xml,           c->nccl_tests,    c->nccl_topo,
                            c->model_text,    c->machine_text,  c->vlm_text,      c->graph_text,
                            c->compared_file};
    const size_t count = CLI_OUTPUTS;
    for (size_t o = 0; o < count; o++) {
        const char *path = outputs[o].path;
        if (!path)
            continue;
        if (strcmp(path, "-") == 0)
            return cli_usage("%s is '-', which is no file's name; give FILE, or /dev/stdout",
                             outputs[o].option);
        for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
            if (inputs[i] && is_same(path, inputs[i]))
                return cli_usage("%s is read and would be written over by %s; give another file to write",
                                 path, outputs[o].option);
        for (size_t p = 0; p < o; p++)
            if (outputs[p].path && (strcmp(path, outputs[p].path) == 0 || is_same(path, outputs[p].path)))
                return cli_usage("%s is given for two files to write, by %s and by %s; give two names", path,
                                 outputs[p].option, outputs[o].option);
    }
    int status = 0;
    for (size_t o = 0; o < count && !status; o++)
        status = outputs[o].path ? check_place(outputs[o].option, outputs[o].path) : 0;
    return status;
}
