/* What the subcommands of hbp share: the options given, the objects made from them, and how to print. */
#ifndef HBP_EXAMPLES_CLI_H
#define HBP_EXAMPLES_CLI_H

#include <hbp/hbp.h>
#include <hbp/io.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

enum { CLI_MOST_OPTIONS = 256 }; /* of the table */

#include "screen.h"

/* One run of the command. Strings point into argv; objects are freed by main, whatever happened. */
typedef struct cli {
    const char *command;
    const char *file; /* the positional argument */
    char *note;       /* the command line, for the plan's header */
    hbp_context *context;
    unsigned char is_given[CLI_MOST_OPTIONS]; /* by the place in the table of options */

    int64_t man;
    int64_t json;
    int64_t wide;
    int64_t all;
    const char *output;

    const char *format;
    const char *column;
    const char *count_column;
    const char *loss_column;
    int64_t shifted_loss;
    const char *link_column;
    const char *vision_file;
    const char *vision_column;
    const char *modality_column;
    int64_t max_length;
    int64_t over_long;

    const char *model_text;
    const char *machine_text;
    const char *cost_file;
    const char *set;
    int64_t nodes;
    int64_t zero;
    int64_t shard_ranks;
    int64_t lockstep_ranks;
    int64_t uneven_micro_batches;
    int64_t fused_cross_entropy;
    int64_t max_sp;
    int64_t reserve_bytes;
    int64_t pack_overhead_ns;
    const char *stack;
    const char *anchor;
    double dp_overlap;
    double sp_overlap;

    int64_t method; /* its place in the list of what is planned; 0: the default */
    int64_t max_groups;
    int64_t tokens_per_step;
    int64_t seed;
    int64_t epoch;
    int64_t curriculum;
    int64_t samples_per_step;
    int64_t window;
    int64_t max_samples;
    int64_t mixture_slack; /* -1: not given */
    int64_t composition;
    const char *batches_file;
    int64_t *given_offsets;
    int64_t *given_samples;
    int64_t threads;
    int64_t max_pack_length;
    int64_t tokens_per_rank;
    int64_t micro_batches_per_step;
    int64_t equal_samples;
    int64_t sequence_multiple_per_sp;
    int64_t pack_multiple_per_sp;
    int64_t micro_batch_multiple;
    int64_t sequence_multiple;
    int64_t pack_multiple;
    int64_t drop_last;
    int64_t effort;

    int64_t skip;
    int64_t exact;
    int64_t any_degree;
    int64_t recompute;
    int64_t time_limit;
    int64_t compare;
    int64_t all_methods;
    const char *micro_batches; /* "A:B" */

    const char *vlm_text;
    const char *layers_file;
    int64_t stages;
    int64_t virtual_stages;
    int64_t step_micro_batches;
    int64_t tensor_parallel;
    int64_t replicas;
    int64_t samples;
    int64_t max_vision;
    int64_t max_tokens;
    int64_t modality_order;
    int64_t data;
    int64_t partition;
    int64_t memory;
    int64_t layers_vision;
    int64_t layers_tokens;
    int64_t memory_bytes;
    double link_bytes_per_s;
    double link_overlap;

    int64_t placement;
    int64_t barriers;
    const char *trace_file;
    const char *graph_out;
    const char *graph_text;
    const char *run_out;
    const char *schedule_file;
    const char *previous_file;

    int64_t step; /* -1: not given */
    const char *steps_text;
    int64_t rank; /* -1: not given */
    const char *lengths_file;
    const char *measured_file;
    const char *compared_file;
    int64_t patterns;

    const char *xml;
    const char *synthetic;
    const char *executor_command;
    const char *nccl_tests;
    const char *nccl_topo;
    int64_t collective;
    int64_t ranks;

    hbp_lengths *lengths;
    hbp_model *model;
    hbp_machine *machine;
    hbp_cost *cost;
    hbp_cost *fitted;
    hbp_groups *groups;
    hbp_plan *plan;
    hbp_plan_file *plan_file;
    hbp_pattern_plan *pattern_plan;
    hbp_length_index *length_index;
    hbp_vlm *vlm;
    hbp_vlm_plan *vlm_plan;
    hbp_layers *layers;
    hbp_layer_partition *partition_found;
    hbp_graph *graph;
    hbp_task_schedule *schedule;
    hbp_task_schedule *previous;
    hbp_task_run *task_run;
    hbp_pipeline_run *pipeline_run;
    hbp_timeline *timeline;
    json_t *result; /* what --json prints */
} cli;

/* Bits naming the subcommands that take an option. */
enum {
    CLI_LENGTHS = 1,
    CLI_PROBE = 2,
    CLI_GROUPS = 4,
    CLI_PLAN = 8,
    CLI_SHOW = 16,
    CLI_COMPARE = 32,
    CLI_TRACE = 64,
    CLI_VALIDATE = 128,
    CLI_DUMP = 256,
    CLI_STEP = 512,
    CLI_VLM = 1024,
    CLI_STAGES = 2048,
    CLI_TASKS = 4096,
    CLI_FIT = 8192,
    CLI_METHODS = 16384,
    CLI_COMPLETION = 32768,
    CLI_HELP = 65536,
    CLI_REPORT = 131072,
    CLI_MODEL = 1 << 20,
    CLI_MACHINE = 1 << 21,
    CLI_STACK = 1 << 22,
    CLI_EXPAND = 1 << 23,
    CLI_PLANS = CLI_GROUPS | CLI_PLAN | CLI_COMPARE,
    CLI_COSTS = CLI_PLANS | CLI_VALIDATE | CLI_STEP | CLI_FIT | CLI_TRACE | CLI_REPORT,
    CLI_MAY_COST = CLI_VALIDATE | CLI_TRACE | CLI_REPORT, /* without one, too */
    CLI_READS = CLI_PLANS | CLI_LENGTHS | CLI_VALIDATE | CLI_STEP | CLI_VLM | CLI_EXPAND,
    CLI_JSON = 32767 | CLI_REPORT | CLI_EXPAND | CLI_MODEL | CLI_MACHINE | CLI_STACK
};

/* Groups of commands, in the order of hbp --help. */
enum {
    CLI_TO_LOOK_AT_LENGTHS,
    CLI_TO_PLAN,
    CLI_TO_LOOK_AT_A_PLAN,
    CLI_TO_COST,
    CLI_TO_OTHER,
    CLI_GROUPS_OF_COMMANDS
};

enum { CLI_EXAMPLES = 4 };

typedef struct cli_command {
    const char *name;
    int bit;
    int needs_file;
    const char *argument;
    const char *summary;
    int (*run)(cli *c); /* the exit status */
    int group;
    const char *examples[CLI_EXAMPLES]; /* command lines, NULL behind the last */
} cli_command;

int cli_lengths(cli *c);
int cli_probe(cli *c);
int cli_groups(cli *c);
int cli_plan(cli *c);
int cli_show(cli *c);
int cli_compare(cli *c);
int cli_trace(cli *c);
int cli_report(cli *c);
int cli_validate(cli *c);
int cli_expand(cli *c);
int cli_dump(cli *c);
int cli_step(cli *c);
int cli_vlm(cli *c);
int cli_stages(cli *c);
int cli_tasks(cli *c);
int cli_fit(cli *c);
int cli_methods(cli *c);
int cli_model(cli *c);
int cli_machine(cli *c);
int cli_stack(cli *c);
int cli_completion(cli *c);
int cli_help(cli *c);

/* commands.c: the subcommands, `count` of them, those of a group behind one another; a group's title; a
 * command by its name, or NULL; the name of one that is like `name`, or NULL. */
const cli_command *cli_get_commands(int *count);
const char *cli_command_group(int group);
const cli_command *cli_find_command(const char *name);
const char *cli_nearest_command(const char *name);

/* main.c: whether Ctrl-C was pressed, for work that no call of the library does. */
int cli_is_interrupted(void);
/* arguments.c: reads argv[2..] into `c`; prints one line and returns 2 on wrong usage, else 0. */
int cli_parse(cli *c, const cli_command *command, int argc, char **argv);
/* The option of any command that is like the name, or NULL. */
const char *cli_nearest_option(const char *name);
/* Whether the command line has the option, for the command that runs. */
int cli_is_given(const cli *c, const char *option);
/* rules.c: what the options need and exclude, as far as the command line alone says it, and presets and
 * fields that there are not: prints one line and returns 2, or 1 where a file that it names fails, else 0. */
int cli_check_rules(const cli *c, const cli_command *command);
int cli_check_names(cli *c, const cli_command *command);
/* HBP_E_INVALID of a call that was given nothing but what the command line says: wrong usage. */
hbp_status cli_as_usage(const cli *c, hbp_status status);
/* The same of a call that planned `c->lengths`, where `again` is refused in the same words with a data set of
 * one sample: the options are refused, whatever the file holds. */
typedef hbp_status cli_again(cli *c, const hbp_lengths *one, const void *options);
hbp_status cli_as_options(cli *c, hbp_status status, cli_again *again, const void *options);
/* Before minutes of reading: options that are refused for any data set are for one sample, too. */
hbp_status cli_try_options(cli *c, cli_again *again, const void *options);
/* outputs.c: the options that name a file to write, and their paths, NULL for none. */
typedef struct cli_output {
    const char *option;
    const char *path;
} cli_output;
enum { CLI_OUTPUTS = 4 };
void cli_list_outputs(const cli *c, cli_output *outputs);
/* outputs.c: whether the files to write can be written, before anything is planned; 0, or the exit status. */
int cli_check_outputs(const cli *c);
/* outputs.c: what symbolic links at the end of `path` lead to, into `to`, there or not; 0, or an errno. It
 * ends at an open file, of which the system says more than a name: /proc/self/fd/1. */
enum { CLI_PATH_BYTES = 4096 };
int cli_follow_links(const char *path, char to[CLI_PATH_BYTES]);
int cli_is_open_file(const char *followed);
/* standard.c: whether the path is what standard output is. Where an output is, what is said goes to standard
 * error; 0, or the exit status. */
int cli_is_standard_output(const char *path);
int cli_take_standard_output(const cli *c);
/* help.c: of all of hbp, of a subcommand, of an option in all commands that have it, and all of it as a page
 * for man. */
void cli_print_help(FILE *to);
void cli_print_options(const cli_command *command);
int cli_print_option(const char *name); /* 0: there is none of that name */
void cli_print_man(void);
/* words.c: the word of `count` that is like `word`, which is none of them; NULL: none is. */
const char *cli_nearest(const char *word, const char *const *words, int count);
/* The context's message with fields of options by the names that the command line has for them; static. */
const char *cli_message(const cli *c);

/* inputs.c: make c->lengths, c->cost, c->plan, ... from the options; status of the library, or -1 after a
 * message. */
int cli_is_columnar(const char *path); /* Parquet or Arrow: a file, a folder, a pattern */
hbp_status cli_read_columnar(cli *c, const char *path, hbp_lengths **out);
hbp_status cli_read_lengths(cli *c, const char *path); /* under --max-length and --over-long */
/* cut.c: samples [--skip, --skip + --samples-per-step) of `file` in the place of all that were read of it.
 * Both options are refused where the plan at hand is no step that hbp step planned. */
hbp_status cli_cut_lengths(cli *c, const char *file);
hbp_status cli_check_cut(const cli *c, int is_step);
/* lengths.c: the columns that lengths and counts are of, and how they were chosen; nothing where a file has
 * none.
 */
void cli_print_column(const cli *c, const hbp_lengths_summary *summary);
json_t *cli_column_json(const cli *c, const hbp_lengths_summary *summary);
hbp_status cli_make_machine(cli *c);
hbp_status cli_set_machine(cli *c);
int cli_print_machine(cli *c); /* probe.c: its fields and what was measured of it; the exit status */
/* executor.c: c->machine from the profile that --executor's command writes. */
hbp_status cli_run_executor(cli *c);
hbp_status cli_make_cost(cli *c);
/* --batches into the options; what they point to lives as long as `c`. */
hbp_status cli_read_batches(cli *c, hbp_epoch_options *options);

hbp_status cli_make_groups(cli *c, int64_t method);
int64_t cli_tokens_of_groups(const cli *c); /* that a step of them carries */
/* groups.c: every SP degree for packs of `length` tokens, [*count], to be freed; what a degree's reason
 * means. */
hbp_status cli_list_sp_choices(cli *c, int64_t length, int64_t tokens_per_step, hbp_sp_choice **choices,
                               int64_t *count);
const char *cli_sp_reason(int32_t reason);
/* That a plan of steps [first, first + steps) holds the step: the exit status. */
int cli_check_step(const cli *c, int64_t step, int64_t first, int64_t steps);
/* show.c: that a plan has the step and c->rank; c->plan, which is that step alone, as text or JSON. The exit
 * status. */
int cli_check_place(const cli *c, const hbp_plan_summary *summary, int64_t step);
int cli_print_step(cli *c, const hbp_plan_summary *summary, int64_t step);
/* trace.c: what --step and --steps alone can have wrong; rows [*first, *end) of the `all` steps from
 * first_step on that --steps, whose numbers are the whole plan's, asks for. The exit status. */
int cli_check_steps(const cli *c);
int cli_find_steps(const cli *c, int64_t first_step, int64_t all, int64_t *first, int64_t *end);
/* c->plan from c->file, and c->vlm_plan where it is the data of one. */
hbp_status cli_load_plan(cli *c);
/* A kind of object that has files, other than plans. */
struct report_columns;
typedef struct cli_object {
    const char *format;
    const char *what;           /* "a task schedule" */
    int takes;                  /* CLI_TAKES_* */
    hbp_status (*load)(cli *c); /* c->file */
    int (*show)(cli *c);        /* what the commands do with it once it is loaded: the exit status */
    int (*validate)(cli *c);
    int (*trace)(cli *c);
    int (*report)(cli *c, json_t *page, struct report_columns *columns);
    hbp_status (*dump)(const cli *c, const char *path);
} cli_object;
enum {
    CLI_TAKES_GRAPH = 1, /* --graph, --machine, --schedule */
    CLI_TAKES_PLACE = 2, /* --step, --rank, --lengths, --model, --machine, --cost */
};

/* objects.c: the kind of c->file; NULL for plans and what is none of these. */
const cli_object *cli_find_object(const cli *c);
int cli_is_plan(const char *path); /* begins as a plan file does */
/* Loads it; options that it has no use for are wrong usage. The exit status. */
int cli_load_object(cli *c, const cli_object *object);
/* Ends of commands: what a validator came to, `what` of a valid file; that c->output is a trace. */
int cli_print_validity(cli *c, hbp_status status, uint64_t digest, const char *what);
int cli_print_written(cli *c);

/* patterns.c */
extern const cli_object cli_pattern_object;
/* The plan of `options` without its samples, planned, written and printed: the exit status. */
int cli_plan_patterns(cli *c, const hbp_epoch_options *options);

/* schedules.c */
extern const cli_object cli_schedule_object;
extern const cli_object cli_task_run_object;
/* c->schedule from --schedule, which must be the one that c->task_run is of. The exit status. */
int cli_load_schedule_of_run(cli *c);
/* c->graph from a file, or a workload of that name, and c->machine. */
hbp_status cli_read_graph(cli *c, const char *text);
/* c->schedule, whose last line is left open, and a run of it; `r` NULL: without. */
void cli_print_schedule(const cli *c, const hbp_task_summary *s, const hbp_task_run_summary *r);
json_t *cli_schedule_json(const hbp_task_summary *s, const hbp_task_run_summary *r);
json_t *cli_slices_json(const hbp_task_schedule *schedule);

/* Stages of c->vlm_plan, and what the run comes to. */
void cli_print_vlm(const cli *c);
json_t *cli_vlm_json(const cli *c);
/* plan.c: c->plan by these options; wrong usage where they are refused, whatever the lengths are. */
hbp_status cli_plan_epoch(cli *c, const hbp_epoch_options *options);
/* plan.c: options of an epoch that are wrong for any lengths, before those are read; makes the cost. */
hbp_status cli_try_epoch(cli *c);
/* Options of an epoch, and the bound for epochs whose steps carry what those of the hierarchy do, but of no
 * more steps than `most_steps`. */
void cli_epoch_options(const cli *c, hbp_epoch_options *options);
hbp_status cli_find_bound(cli *c, int64_t tokens_per_step, int64_t most_steps, int64_t *bound_ns);
/* The whole file as a string with a final 0 of *bytes bytes, to be freed; NULL after setting `errno`. */
char *cli_read_file(const char *path, int64_t *bytes);

/* Keep a message for CLI_TRY to print, and return a status below 0: a failure, wrong usage. */
hbp_status cli_own_failure(const char *format, ...) CLI_PRINTF(1, 2);
hbp_status cli_own_usage(const char *format, ...) CLI_PRINTF(1, 2);
/* Prints "hbp: <message>" on stderr and returns exit status 1, or 2 of wrong usage; `usage` returns 2. */
int cli_failed(cli *c);
int cli_error(const char *format, ...) CLI_PRINTF(1, 2);
int cli_usage(const char *format, ...) CLI_PRINTF(1, 2);
/* Prints c->result and returns 0, or 1 when there is no memory for it. */
int cli_print_json(cli *c);

/* Returns from a subcommand with the context's message unless `call` succeeds. */
#define CLI_TRY(c, call)                                                                                     \
    do {                                                                                                     \
        if ((call) < 0)                                                                                      \
            return cli_failed(c);                                                                            \
    } while (0)

/* text.c: numbers as people read them. */

/* Foreign text without what moves a terminal: '?' for control bytes. Of a long one the end. */
shown show_name(const char *name);
void cli_make_plain(char *text);

/* The same of a file of lengths; - is standard input. */
shown show_input(const char *name);
shown show_count(int64_t value);                    /* 1,234,567 */
shown show_number(int64_t value, const char *noun); /* 1 pack; 1,234 packs */
shown show_length(int64_t tokens);                  /* 128K where that is exact, else 1,234 */
shown show_time(double ns);                         /* 3.21 h */
shown show_compared_time(double ns);                /* beside others of about the same: 1.013 min */
shown show_bytes(double bytes);                     /* 61.3 GiB */
shown show_share(double share);                     /* 1.25 % */
shown show_real(const char *format, double value);
shown show_digest(uint64_t digest); /* 0123456789abcdef */
double cli_now(void);               /* seconds, monotonic */
/* contract.c: what is promised of every step, to stand behind "steps": " of at most 524,288 tokens,
 * stratified"; `how` goes behind the tokens. Empty where the plan does not record it. */
shown show_contract(const hbp_plan_summary *summary, const char *how);
/* "64 GPUs in lockstep sets of 8". */
shown show_gpus(const hbp_plan_summary *summary);
/* What a plan's bound holds for, to stand behind "no": "plan in steps of at most 524,288 tokens". */
shown show_rivals(const hbp_plan_summary *summary);
/* And under what: "on 64 GPUs under this cost and these options". */
shown show_conditions(const hbp_plan_summary *summary);
void print_steps(const hbp_report *report);            /* samples and tokens of a step, and its mixture */
void print_hierarchy(const hbp_plan_summary *summary); /* a line, where both ways were weighed */
/* Whether what steps hold costs more than a little; a line where it does. `bound_ns` is that of the plan. */
int has_price(const hbp_plan_summary *summary, int64_t bound_ns);
void print_price(const hbp_plan_summary *summary, int64_t bound_ns);

/* Whether a plan is some steps of a larger one. */
static inline int cli_is_part(const hbp_plan_summary *s)
{
    return s->epoch_steps > 0 || s->first_step > 0;
}

/* fullness.c: how full the steps of c->plan are and what limits it, "steps hold 80.66 % of the 524,288 tokens
 * that they may: ..."; empty where they have no limit of tokens. Whether they are less than full. */
int cli_say_fullness(cli *c, const hbp_plan_summary *summary, char *text, size_t bytes);
void cli_print_fullness(cli *c, const hbp_plan_summary *summary);

/* ranks.c: the only step of a plan as a timeline of all its ranks, or of `rank` where it is 0 or more; 0:
 * there is no memory for it. */
int print_ranks(const hbp_plan *plan, const hbp_plan_summary *summary, int64_t rank);
/* stage_lines.c: step `row` of c->vlm_plan, which takes `step_ns`, as a timeline of the stages of all
 * replicas or of replica c->rank. */
hbp_status print_stage_lines(const cli *c, int64_t row, int64_t step_ns);

/* measured.c: rates and collectives of a machine. */
shown show_flops(double per_s); /* 137.5 GFLOP/s */
json_t *measured_collectives(const hbp_machine *machine);
json_t *measured_rates(const hbp_machine *machine);
void print_measured(const hbp_machine *machine);

/* JSON: null for NULL; bytes of a path that are not UTF-8 become '?'. A real that is not finite is null. */
json_t *json_path(const char *path);
json_t *json_number(double value);
json_t *json_known(int64_t ns); /* null for 0 */
json_t *json_columns_i64(const int64_t *values, int64_t count);
/* Adds what a plan promises of its steps; what a report says of them. */
void json_add_contract(json_t *object, const hbp_plan_summary *summary);
void json_add_steps(json_t *object, const hbp_report *report);

#endif
