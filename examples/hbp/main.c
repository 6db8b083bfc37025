/* hbp: plan batches of very different lengths from the command line. Uses the public header alone. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "hbp/io.h"

static const cli_command commands[] = {
    {"lengths", CLI_LENGTHS, 1, "FILE",
     "What is in a file of lengths: count, tokens, quantiles, a histogram.", cli_lengths},
    {"probe", CLI_PROBE, 0, "", "This machine, or one described by files; -o saves it as a profile.",
     cli_probe},
    {"groups", CLI_GROUPS, 1, "FILE", "The hierarchy of pack lengths it would choose, and those it rejected.",
     cli_groups},
    {"plan", CLI_PLAN, 1, "FILE", "Plan an epoch and write it to a plan file.", cli_plan},
    {"step", CLI_STEP, 1, "FILE", "Plan one step: micro-batches of SP groups of different degrees.",
     cli_step},
    {"vlm", CLI_VLM, 1, "FILE",
     "Plan a vision-language run: packs under two budgets, pipeline stages, recomputation.", cli_vlm},
    {"stages", CLI_STAGES, 1, "LAYERS", "Cut layers into pipeline stages.", cli_stages},
    {"tasks", CLI_TASKS, 1, "GRAPH",
     "Plan many tasks on one machine: which operators on how many GPUs, on which, when.", cli_tasks},
    {"fit", CLI_FIT, 1, "TIMELINE", "A cost from what a run measured; -o saves it for --cost.", cli_fit},
    {"show", CLI_SHOW, 1, "PLAN", "A plan, one step of it, or what one rank runs in it.", cli_show},
    {"compare", CLI_COMPARE, 1, "FILE", "This plan beside the classic methods of batching, and the bound.",
     cli_compare},
    {"trace", CLI_TRACE, 1, "PLAN", "A timeline of ranks that opens in Perfetto.", cli_trace},
    {"validate", CLI_VALIDATE, 1, "PLAN", "Check every promise of a plan.", cli_validate},
    {"dump", CLI_DUMP, 1, "PLAN", "A plan as JSON.", cli_dump},
    {"methods", CLI_METHODS, 0, "", "Every method that the library has, with its paper.", cli_methods},
    {"completion", CLI_COMPLETION, 1, "SHELL", "What bash, zsh or fish completes of hbp.", cli_completion},
    {"help", CLI_HELP, 0, "COMMAND", "The options of a command; --man: all of hbp as a page for man.",
     cli_help},
};

#define COMMAND_COUNT (sizeof commands / sizeof *commands)

#define INTERRUPTED 130 /* as a shell reports SIGINT */

static hbp_context *volatile interrupted;
static volatile sig_atomic_t was_interrupted;

/* The first Ctrl-C asks the running call to stop; the second one is the system's own. */
static void on_interrupt(int signal_number)
{
    (void)signal_number;
    was_interrupted = 1;
    if (interrupted)
        hbp_context_cancel(interrupted);
}

const cli_command *cli_get_commands(int *count)
{
    *count = (int)COMMAND_COUNT;
    return commands;
}

const cli_command *cli_find_command(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int no_command(const char *name)
{
    const char *names[COMMAND_COUNT];
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i].name;
    const char *nearest = cli_nearest(name, names, (int)COMMAND_COUNT);
    return nearest ? cli_usage("there is no command '%s'; did you mean %s?", name, nearest)
                   : cli_usage("there is no command '%s'; see hbp --help", name);
}

int cli_help(cli *c)
{
    const cli_command *command = c->file ? cli_find_command(c->file) : NULL;
    if (c->file && !command)
        return no_command(c->file);
    if (c->man && command)
        return cli_usage("hbp help --man is the page of all commands; leave %s out", c->file);
    if (c->man)
        cli_print_man();
    else if (command)
        cli_print_options(command);
    else
        cli_print_help();
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

static int is_same(const char *a, const char *b)
{
    struct stat one, two;
    return stat(a, &one) == 0 && stat(b, &two) == 0 && S_ISREG(one.st_mode) && one.st_dev == two.st_dev &&
           one.st_ino == two.st_ino;
}

/* A file that is read is not written over: what it held would be gone without a word. */
static int check_outputs(const cli *c)
{
    const char *outputs[] = {c->output, c->trace_file, c->graph_out, c->run_out};
    const char *inputs[] = {c->file,          c->vision_file,   c->cost_file,     c->batches_file,
                            c->layers_file,   c->schedule_file, c->previous_file, c->lengths_file,
                            c->measured_file, c->xml,           c->nccl_tests,    c->nccl_topo,
                            c->model_text,    c->machine_text,  c->vlm_text,      c->graph_text};
    for (size_t o = 0; o < sizeof outputs / sizeof *outputs; o++) {
        if (outputs[o] && !*outputs[o])
            return cli_usage("a file to write has an empty name");
        for (size_t i = 0; outputs[o] && i < sizeof inputs / sizeof *inputs; i++)
            if (inputs[i] && is_same(outputs[o], inputs[i]))
                return cli_usage("%s is read and would be written over; give another file to write",
                                 outputs[o]);
        for (size_t p = 0; outputs[o] && p < o; p++)
            if (outputs[p] && (strcmp(outputs[o], outputs[p]) == 0 || is_same(outputs[o], outputs[p])))
                return cli_usage("%s is given for two files to write", outputs[o]);
    }
    return 0;
}

static int run(cli *c, const cli_command *command)
{
    hbp_context_options options = {.struct_size = sizeof options};
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
    int exit_status = command->run(c);
    signal(SIGINT, SIG_DFL);
    interrupted = NULL;
    return was_interrupted && exit_status ? INTERRUPTED : exit_status;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    int asked = strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0;
    if (strcmp(name, "--version") == 0) {
        printf("hbp %s\n", hbp_version_string());
        return 0;
    }
    if (asked) {
        cli_print_help();
        return 0;
    }
    const cli_command *command = cli_find_command(name);
    if (!command)
        return argc > 1 ? no_command(name) : cli_usage("no command given; see hbp --help");
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            cli_print_options(command);
            return 0;
        }
    cli c = {.command = command->name, .mixture_slack = -1};
    int status = cli_parse(&c, command, argc, argv);
    if (status == 0)
        status = check_outputs(&c);
    if (status == 0) {
        c.note = join(argc, argv);
        status = c.note ? run(&c, command) : cli_error("out of memory");
    }
    cli_clear_progress();
    free_objects(&c);
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == 0) {
        status = cli_error("cannot write to standard output: %s", strerror(errno));
        if (was_interrupted)
            status = INTERRUPTED;
    }
    return status;
}
