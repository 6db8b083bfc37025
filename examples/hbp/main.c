/* hbp: plan batches of very different lengths from the command line. Uses the public header alone. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "hbp/io.h"

#define INTERRUPTED 130 /* as a shell reports SIGINT */

static hbp_context *volatile interrupted;
static volatile sig_atomic_t was_interrupted;

int cli_is_interrupted(void)
{
    return was_interrupted;
}

/* The first Ctrl-C asks the running call to stop; the second one is the system's own. */
static void on_interrupt(int signal_number)
{
    (void)signal_number;
    was_interrupted = 1;
    if (interrupted)
        hbp_context_cancel(interrupted);
}

/* A first word that is no command: what was meant, by the words around it. */
static int no_command(int argc, char **argv)
{
    const char *name = argv[1], *nearest = cli_nearest_command(name + strspn(name, "-"));
    const cli_command *next = argc > 2 ? cli_find_command(argv[2]) : NULL;
    if (strcmp(name, "version") == 0)
        return cli_usage("there is no command 'version'; did you mean hbp --version?");
    if (name[0] == '-' && name[1] && !nearest)
        return cli_usage("'%s' stands before the command; options follow it: hbp COMMAND [FILE] [options]; "
                         "see hbp --help",
                         name);
    if (next && (access(name, F_OK) == 0 || !nearest))
        return cli_usage("there is no command '%s'; the command goes first, hbp %s %s", name, next->name,
                         name);
    if (access(name, F_OK) == 0 && !nearest)
        return cli_usage("there is no command '%s'; the command goes before the file, as in hbp lengths %s",
                         name, name);
    return nearest ? cli_usage("there is no command '%s'; did you mean %s?", name, nearest)
                   : cli_usage("there is no command '%s'; see hbp --help", name);
}

/* What hbp help was asked about is neither a command nor an option. */
static int no_topic(const char *name)
{
    const char *command = name[0] == '-' ? NULL : cli_nearest_command(name);
    const char *option = command ? NULL : cli_nearest_option(name + strspn(name, "-"));
    if (command)
        return cli_usage("there is no command '%s'; did you mean hbp help %s?", name, command);
    if (option)
        return cli_usage("there is no option '%s'; did you mean hbp help --%s?", name, option);
    return cli_usage(
        "there is no command or option '%s'; hbp help lists the commands, hbp help COMMAND its options",
        name);
}

int cli_help(cli *c)
{
    const cli_command *command = c->file ? cli_find_command(c->file) : NULL;
    if (c->man && c->file)
        return cli_usage("hbp help --man is the page of all commands; leave %s out", c->file);
    if (c->man)
        cli_print_man();
    else if (command)
        cli_print_options(command);
    else if (!c->file)
        cli_print_help(stdout);
    else if (!cli_print_option(strcmp(c->file, "-o") == 0 ? "output" : c->file + strspn(c->file, "-")))
        return no_topic(c->file);
    return 0;
}

static char *join(int argc, char **argv)
{
    size_t length = 1;
    for (int i = 0; i < argc; i++)
        length += strlen(argv[i]) + 1;
    char *line = malloc(length);
    if (!line)
        return NULL;
    char *at = line;
    for (int i = 0; i < argc; i++)
        at += sprintf(at, "%s%s", i ? " " : "", i ? argv[i] : "hbp");
    return line;
}

static void free_objects(cli *c)
{
    hbp_plan_file_free(c->plan_file);
    hbp_pattern_plan_free(c->pattern_plan);
    hbp_length_index_free(c->length_index);
    hbp_timeline_free(c->timeline);
    hbp_task_run_free(c->task_run);
    hbp_pipeline_run_free(c->pipeline_run);
    hbp_task_schedule_free(c->schedule);
    hbp_task_schedule_free(c->previous);
    hbp_graph_free(c->graph);
    hbp_layer_partition_free(c->partition_found);
    hbp_layers_free(c->layers);
    hbp_vlm_plan_free(c->vlm_plan);
    hbp_vlm_free(c->vlm);
    hbp_plan_free(c->plan);
    free(c->given_offsets);
    free(c->given_samples);
    hbp_groups_free(c->groups);
    hbp_cost_free(c->fitted);
    hbp_cost_free(c->cost);
    hbp_machine_free(c->machine);
    hbp_model_free(c->model);
    hbp_lengths_free(c->lengths);
    hbp_context_free(c->context);
    json_decref(c->result);
    free(c->note);
}

static int run(cli *c, const cli_command *command)
{
    hbp_context_options options = {.struct_size = sizeof options, .threads = (int32_t)c->threads};
    if (isatty(STDERR_FILENO))
        options.progress = cli_draw_progress;
    hbp_status status = hbp_context_create(&options, &c->context);
    if (status < 0)
        return cli_error("%s", hbp_status_text(status));
    struct sigaction action = {0};
    action.sa_handler = on_interrupt;
    action.sa_flags = (int)SA_RESETHAND;
    interrupted = c->context;
    sigaction(SIGINT, &action, NULL);
    int exit_status = cli_check_names(c, command);
    if (!exit_status)
        exit_status = command->run(c);
    signal(SIGINT, SIG_DFL);
    interrupted = NULL;
    return was_interrupted && exit_status ? INTERRUPTED : exit_status;
}

/* hbp plan help, where no file is called help. */
static int is_help_asked(int argc, char **argv, const cli_command *command)
{
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return 1;
    return argc == 3 && strcmp(argv[2], "help") == 0 && command->bit != CLI_HELP && access("help", F_OK) != 0;
}

static int run_line(const cli_command *command, int argc, char **argv)
{
    cli c = {.command = command->name, .mixture_slack = -1};
    int status = cli_parse(&c, command, argc, argv);
    if (status == 0)
        status = cli_check_rules(&c, command);
    if (status == 0)
        status = cli_check_outputs(&c);
    if (status == 0)
        status = cli_take_standard_output(&c);
    if (status == 0) {
        c.note = join(argc, argv);
        screen_begin(c.wide != 0);
        status = c.note ? run(&c, command) : cli_error("out of memory");
    }
    cli_clear_progress();
    free_objects(&c);
    return status;
}

static int start(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (argc < 2) {
        cli_print_help(stderr);
        return 2;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("hbp %s\n", hbp_version_string());
        return 0;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        cli_print_help(stdout);
        return 0;
    }
    const cli_command *command = cli_find_command(name);
    if (!command)
        return no_command(argc, argv);
    if (!is_help_asked(argc, argv, command))
        return run_line(command, argc, argv);
    cli_print_options(command);
    return 0;
}

int main(int argc, char **argv)
{
    int status = start(argc, argv);
    say_end();
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == 0) {
        status = cli_error("cannot write to standard output: %s", strerror(errno));
        if (was_interrupted)
            status = INTERRUPTED;
    }
    return status;
}
