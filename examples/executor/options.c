#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_FLAG, KIND_TEXT, KIND_COUNT, KIND_NUMBER, KIND_CHOICE };

typedef struct option {
    const char *name;
    int kind;
    size_t offset;
    int commands;
    const char *placeholder;
    const char *help;
    const char *values; /* of a choice: "name=number|name=number" */
} option;

#define AT(field) offsetof(ex_options, field)
#define ALL       (EX_RUN | EX_PROBE | EX_MEASURE)

static const option options[] = {
    {"model", KIND_TEXT, AT(model), EX_RUN | EX_MEASURE, "NAME",
     "the model to train: preset, config.json, fields, or preset,layers=4,... (as hbp takes it)", 0},
    {"device", KIND_CHOICE, AT(device), ALL, "NAME", "cpu or cuda (default: cuda where there is a GPU)",
     "cpu=1|cuda=2"},
    {"type", KIND_CHOICE, AT(type), ALL, "TYPE", "f32 or bf16 (default: f32 on cpu, bf16 on cuda)",
     "f32=1|bf16=2"},
    {"comm", KIND_CHOICE, AT(comm), ALL, "NAME",
     "mpi, nccl or self (default: nccl on cuda and mpi on cpu when started by a launcher, else self)",
     "mpi=1|nccl=2|self=3"},
    {"virtual", KIND_COUNT, AT(virtual_ranks), ALL, "N", "N virtual ranks in this process, on one device", 0},
    {"threads", KIND_COUNT, AT(threads), ALL, "N",
     "threads of a rank's matrix products on the CPU (default 1)", 0},
    {"rendezvous", KIND_TEXT, AT(rendezvous), ALL, "FILE",
     "a file all ranks see, by which NCCL's ranks meet (default: MPI, or MASTER_ADDR as torchrun sets it)",
     0},
    {"timeout", KIND_NUMBER, AT(limit_s), ALL, "SECONDS", "longest wait for another rank (default 60)", 0},
    {"step", KIND_COUNT, AT(step), EX_RUN, "N", "begin at row N of the plan's steps", 0},
    {"steps", KIND_COUNT, AT(steps), EX_RUN, "N", "run N steps (default: all)", 0},
    {"seed", KIND_COUNT, AT(seed), EX_RUN, "N", "seed of weights and drawn tokens", 0},
    {"tokens", KIND_TEXT, AT(tokens), EX_RUN, "PREFIX",
     "PREFIX.idx and PREFIX.bin, as Megatron-LM writes them (default: drawn tokens)", 0},
    {"end-token", KIND_COUNT, AT(end_token), EX_RUN, "N",
     "target of a sample's last token with --tokens (default 0)", 0},
    {"learning-rate", KIND_NUMBER, AT(learning_rate), EX_RUN, "X", "of AdamW (default 0.001)", 0},
    {"weight-decay", KIND_NUMBER, AT(weight_decay), EX_RUN, "X", "of AdamW (default 0)", 0},
    {"clip", KIND_NUMBER, AT(clip), EX_RUN, "X", "largest norm of all gradients (default 1; 0: no clipping)",
     0},
    {"loss", KIND_CHOICE, AT(normaliser), EX_RUN, "MEAN",
     "token: every loss token of the step weighs the same (default); sample; local: mean of packs' means; "
     "sum",
     "token=0|local=1|sample=2|sum=3"},
    {"recompute", KIND_COUNT, AT(recompute), EX_RUN, "N",
     "recompute N layers of every pack, whatever the plan says", 0},
    {"unpacked", KIND_FLAG, AT(unpacked), EX_RUN, "",
     "run every sample alone on one rank: the same loss and gradients", 0},
    {"repeat", KIND_COUNT, AT(repeat), EX_RUN | EX_MEASURE, "N",
     "run every pack N times (1..16) and record its least time (default 1; measure: 3)", 0},
    {"clock", KIND_CHOICE, AT(clock), EX_RUN | EX_MEASURE, "CLOCK",
     "wall (default), or cpu: what a rank's processor spent on a pack, on machines that others use as well",
     "wall=0|cpu=1"},
    {"no-update", KIND_FLAG, AT(no_update), EX_RUN, "", "leave the weights as they are", 0},
    {"communication", KIND_FLAG, AT(communication), EX_RUN, "",
     "measure the time in all-to-alls (waits for the device at each)", 0},
    {"timeline", KIND_TEXT, AT(timeline), EX_RUN, "FILE",
     "write what each pack took, for hbp fit and hbp trace", 0},
    {"gradients", KIND_TEXT, AT(gradients), EX_RUN, "FOLDER", "write the last step's gradients as .npy files",
     0},
    {"save", KIND_TEXT, AT(save), EX_RUN, "FILE", "write weights, optimiser and place in the plan", 0},
    {"save-every", KIND_COUNT, AT(save_every), EX_RUN, "N", "every N steps (default: at the end)", 0},
    {"resume", KIND_TEXT, AT(resume), EX_RUN, "FILE", "go on from a saved state", 0},
    {"profile", KIND_TEXT, AT(profile), EX_RUN, "FILE",
     "the profile the plan was made with: warn if it is of another machine", 0},
    {"cost", KIND_TEXT, AT(cost), EX_RUN, "FILE",
     "the cost the plan was made with (hbp fit): warn of it, too, and compare with it", 0},
    {"output", KIND_TEXT, AT(output), EX_PROBE | EX_MEASURE, "FILE",
     "the profile or the timeline to write; -o for short", 0},
    {"seconds", KIND_NUMBER, AT(seconds), EX_PROBE | EX_MEASURE, "X",
     "about how long to measure (default 20; measure: 60)", 0},
    {"max-tokens", KIND_COUNT, AT(max_tokens), EX_MEASURE, "N",
     "longest pack in tokens of a rank (default 4096, less where memory is short)", 0},
    {"json", KIND_FLAG, AT(json), EX_RUN, "", "a line of JSON for each step and one at the end", 0},
    {"help", KIND_FLAG, AT(help), ALL, "", "this text", 0},
};

enum { OPTION_COUNT = sizeof options / sizeof *options };

void ex_options_print_help(void)
{
    puts("usage: hbp_executor run PLAN --model NAME [options]     train a transformer by a plan\n"
         "       hbp_executor probe -o FILE [options]            measure this machine into a profile\n"
         "       hbp_executor measure --model NAME -o FILE       measure packs of many types, for hbp fit\n"
         "\n"
         "Started alone, by mpirun -n RANKS, or by torchrun with --comm nccl. Exit status: 0 on success, 1 "
         "on\n"
         "failure, 2 on wrong usage.\n");
    for (int i = 0; i < OPTION_COUNT; i++) {
        char left[64];
        snprintf(left, sizeof left, "--%s %s", options[i].name, options[i].placeholder);
        printf("  %-24s %s%s\n", left,
               options[i].commands & EX_RUN     ? ""
               : options[i].commands & EX_PROBE ? "(probe, measure) "
                                                : "(measure) ",
               options[i].help);
    }
}

static int refuse(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("hbp_executor: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("; see hbp_executor --help\n", stderr);
    va_end(arguments);
    return 2;
}

/* The number of choice `text`; -1 when there is none such. */
static int64_t find_choice(const char *values, const char *text)
{
    size_t length = strlen(text);
    for (const char *at = values; *at; at += strcspn(at, "|"), at += *at == '|')
        if (strncmp(at, text, length) == 0 && at[length] == '=')
            return strtoll(at + length + 1, NULL, 10);
    return -1;
}

/* Names what there is: "--type takes f32 or bf16, not 'fp16'". */
static int refuse_choice(const option *op, const char *text)
{
    char names[256] = "";
    size_t length = 0;
    for (const char *at = op->values; *at; at += strcspn(at, "|"), at += *at == '|') {
        int is_last = !strchr(at, '|');
        int wrote = snprintf(names + length, sizeof names - length, "%s%.*s",
                             !length   ? ""
                             : is_last ? " or "
                                       : ", ",
                             (int)strcspn(at, "="), at);
        length += wrote > 0 && (size_t)wrote < sizeof names - length ? (size_t)wrote : 0;
    }
    return refuse("--%s takes %s, not '%s'", op->name, names, text);
}

static int set_value(ex_options *o, const option *op, const char *text)
{
    char *at = (char *)o + op->offset;
    char *end;
    int64_t number = 1;
    double real;
    errno = 0;
    switch (op->kind) {
    case KIND_TEXT:
        memcpy(at, &text, sizeof text);
        return 0;
    case KIND_COUNT:
        number = strtoll(text, &end, 10);
        if (end == text || *end || errno || number < 0 || number > INT32_MAX)
            return refuse("--%s takes a whole number in 0..2147483647, not '%s'", op->name, text);
        break;
    case KIND_CHOICE:
        number = find_choice(op->values, text);
        if (number < 0)
            return refuse_choice(op, text);
        break;
    case KIND_NUMBER:
        real = strtod(text, &end);
        if (end == text || *end || !isfinite(real) || real < 0)
            return refuse("--%s takes a number of at least 0, not '%s'", op->name, text);
        memcpy(at, &real, sizeof real);
        return 0;
    default:
        break;
    }
    memcpy(at, &number, sizeof number);
    return 0;
}

static const char *command_name(int command)
{
    return command == EX_RUN ? "run" : command == EX_PROBE ? "probe" : "measure";
}

/* Reads the option argv[*i] and its value; *i becomes the last argument used. */
static int read_option(ex_options *o, int argc, char **argv, int *i)
{
    const char *name = strcmp(argv[*i], "-o") == 0 ? "output" : argv[*i] + 2;
    size_t length = strcspn(name, "=");
    for (int k = 0; k < OPTION_COUNT; k++) {
        const option *op = &options[k];
        if (strlen(op->name) != length || strncmp(op->name, name, length) != 0)
            continue;
        if (!(op->commands & o->command))
            return refuse("--%s is not an option of %s", op->name, command_name(o->command));
        const char *text = name[length] == '=' ? name + length + 1 : NULL;
        if (op->kind == KIND_FLAG)
            return text ? refuse("--%s takes no value, not '%s'", op->name, text) : set_value(o, op, "");
        if (!text && *i + 1 == argc)
            return refuse("--%s needs %s", op->name, op->placeholder);
        return set_value(o, op, text ? text : argv[++*i]);
    }
    return refuse("no option '%s'", argv[*i]);
}

static int check(const ex_options *o)
{
    if (o->command == EX_RUN && !o->plan)
        return refuse("run needs a plan file, as hbp plan -o writes it");
    if (o->command != EX_PROBE && !o->model)
        return refuse("%s needs --model, such as --model llama-3.1-8b,layers=2,hidden=256,ffn=512,head_dim=8",
                      command_name(o->command));
    if (o->command != EX_RUN && !o->output)
        return refuse("%s needs -o FILE", command_name(o->command));
    if (o->repeat > 16)
        return refuse("--repeat takes 1..16, not %lld", (long long)o->repeat);
    if (o->virtual_ranks > 1024)
        return refuse("--virtual takes 1..1024, not %lld", (long long)o->virtual_ranks);
    if (o->unpacked && o->timeline)
        return refuse("--timeline is of the plan's packs, and --unpacked runs none of them");
    if (o->save_every > 0 && !o->save)
        return refuse("--save-every needs --save FILE");
    if (o->virtual_ranks > 0 && o->comm)
        return refuse("--virtual makes ranks of this process, which --comm does not join");
    if (o->end_token > 0 && !o->tokens)
        return refuse("--end-token goes with --tokens PREFIX");
    if (o->command == EX_MEASURE && o->max_tokens > 0 && o->max_tokens < 64)
        return refuse("--max-tokens takes 64 or more, not %lld", (long long)o->max_tokens);
    if (o->limit_s <= 0)
        return refuse("--timeout must be above 0");
    return 0;
}

int ex_options_read(ex_options *o, int argc, char **argv)
{
    *o = (ex_options){.step = -1, .recompute = -1, .limit_s = 60, .learning_rate = 1e-3, .clip = 1};
    if (argc < 2)
        return refuse("there is no command: run, probe or measure");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        o->help = 1;
        return 0;
    }
    for (int command = EX_RUN; command <= EX_MEASURE; command *= 2)
        if (strcmp(argv[1], command_name(command)) == 0)
            o->command = command;
    if (!o->command)
        return refuse("no command '%s'; there are run, probe and measure", argv[1]);
    for (int i = 2; i < argc; i++) {
        int bad = 0;
        if (strncmp(argv[i], "--", 2) == 0 || strcmp(argv[i], "-o") == 0)
            bad = read_option(o, argc, argv, &i);
        else if (o->command != EX_RUN || o->plan)
            bad = refuse("unexpected argument '%s'", argv[i]);
        else
            o->plan = argv[i];
        if (bad)
            return bad;
    }
    return o->help ? 0 : check(o);
}
