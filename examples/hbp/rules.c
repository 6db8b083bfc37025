/* What the command line alone can say is wrong: options that a command needs, that need or exclude one
 * another, names that there are not. Found before a file of data is read; exit status 2. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "options.h"

enum { NEEDS, EXCLUDES };

/* With `option` ("": always), `commands` need one of the `others`, parted by blanks, or exclude them all. */
static const struct {
    int commands;
    const char *option;
    int rule;
    const char *others;
    const char *why; /* behind "needs --x", or behind "exclude one another" */
} rules[] = {
    {CLI_COSTS & ~CLI_MAY_COST, "", NEEDS, "model cost",
     ", such as --model llama-3.1-8b; hbp model lists the presets"},
    {(CLI_COSTS & ~CLI_MAY_COST) | CLI_VLM | CLI_TASKS, "", NEEDS, "machine cost",
     ", such as --machine h100:4; hbp machine lists the presets"},
    {CLI_VLM, "", NEEDS, "vlm layers", ", such as --vlm internvl-1.5-26b; hbp --help lists the presets"},
    {CLI_STAGES, "", NEEDS, "stages", ", the number of pipeline stages, such as --stages 4"},
    {CLI_TRACE, "", NEEDS, "output", " FILE, where the timeline goes, such as -o trace.json"},
    {CLI_EXPAND, "", NEEDS, "output", " FILE, where the plan goes, such as -o plan.msgpack"},
    {CLI_SHOW | CLI_EXPAND, "max-length", NEEDS, "lengths", ", whose samples it limits"},
    {CLI_SHOW | CLI_EXPAND, "column", NEEDS, "lengths", ", whose column it names"},
    {CLI_SHOW | CLI_EXPAND, "count-column", NEEDS, "lengths", ", whose column it names"},
    {CLI_SHOW | CLI_EXPAND, "loss-column", NEEDS, "lengths", ", whose column it names"},
    {CLI_SHOW | CLI_EXPAND, "shifted-loss", NEEDS, "lengths", ", whose samples it is of"},
    {CLI_SHOW | CLI_EXPAND, "format", NEEDS, "lengths", ", whose format it names"},
    {CLI_MAY_COST, "model", NEEDS, "machine", ": a cost is made of both; they go together"},
    {CLI_TRACE | CLI_REPORT, "machine", NEEDS, "model", ": a cost is made of both; they go together"},
    {CLI_REPORT, "", NEEDS, "output", " FILE, where the page goes, such as -o report.html"},
    {CLI_VALIDATE, "skip", NEEDS, "lengths", ", whose samples it counts"},
    {CLI_VALIDATE, "samples-per-step", NEEDS, "lengths", ", whose samples it counts"},
    {CLI_VALIDATE, "graph", NEEDS, "machine", ": times are a graph's on a machine; they go together"},
    {CLI_PROBE, "nccl-tests", NEEDS, "ranks", ": the text does not name the number of GPUs"},
    {CLI_PROBE, "ranks", NEEDS, "nccl-tests", ", whose GPUs it counts"},
    {CLI_PROBE, "collective", NEEDS, "nccl-tests", ", whose collective it names"},
    {CLI_VLM, "layers", NEEDS, "layers-vision", ", the vision units that they were measured with"},
    {CLI_VLM, "layers", NEEDS, "layers-tokens", ", the tokens that they were measured with"},
    {CLI_VLM, "layers-vision", NEEDS, "layers", ", which were measured with so many"},
    {CLI_VLM, "layers-tokens", NEEDS, "layers", ", which were measured with so many"},

    {CLI_COSTS, "cost", EXCLUDES,
     "model machine nodes set stack zero shard-ranks lockstep-ranks uneven-micro-batches fused-ce max-sp "
     "reserve "
     "pack-overhead dp-overlap sp-overlap",
     "a cost file has all terms already"},
    {CLI_PROBE, "machine", EXCLUDES, "xml synthetic executor", "each describes a machine"},
    {CLI_PROBE, "xml", EXCLUDES, "synthetic executor", "each describes a machine"},
    {CLI_PROBE, "synthetic", EXCLUDES, "executor", "each describes a machine"},
    {CLI_PLAN | CLI_COMPARE, "samples-per-step", EXCLUDES, "tokens-per-step window batches",
     "what a step holds is asked for in one form"},
    {CLI_PLAN | CLI_COMPARE, "batches", EXCLUDES, "tokens-per-step window curriculum drop-last",
     "batches say what each step holds"},
    {CLI_PLAN, "patterns", EXCLUDES, "method", "it is method patterns, whose samples are not listed"},
    {CLI_PLAN, "patterns", EXCLUDES, "mixture-slack", "steps by patterns are stratified"},
    {CLI_PLAN, "patterns", EXCLUDES, "batches samples-per-step", "steps by patterns are made by tokens"},
    {CLI_STEP | CLI_VALIDATE, "samples-per-step", EXCLUDES, "loss-column link-column",
     "samples cut out of a file keep neither loss tokens nor links"},
    {CLI_STEP | CLI_VALIDATE, "skip", EXCLUDES, "loss-column link-column",
     "samples cut out of a file keep neither loss tokens nor links"},
    {CLI_STEP, "compare", EXCLUDES, "method output", "it plans by every method and writes none of the plans"},
    {CLI_VLM, "compare", EXCLUDES, "data-method partition-method recompute-method output",
     "it plans by several methods and writes none of the plans"},
    {CLI_TASKS, "compare", EXCLUDES, "method output run-out trace graph-out schedule",
     "it plans by every method and writes nothing"},
    {CLI_TASKS, "schedule", EXCLUDES, "previous method placement-method effort reserve",
     "a schedule that is given is not planned"},
};

static int next_word(const char **list, char *word, size_t bytes)
{
    *list += strspn(*list, " ");
    size_t length = strcspn(*list, " ");
    snprintf(word, bytes, "%.*s", (int)length, *list);
    *list += length;
    return length > 0;
}

static int is_met(const cli *c, const char *others)
{
    char name[48];
    while (next_word(&others, name, sizeof name))
        if (cli_is_given(c, name))
            return 1;
    return 0;
}

/* "-o FILE" is as it is typed most. */
static const char *dashes(const char *name)
{
    return strcmp(name, "output") == 0 ? "-o" : "--";
}

static const char *typed(const char *name)
{
    return strcmp(name, "output") == 0 ? "" : name;
}

/* --patterns --method patterns says one thing twice. */
static int agree(const cli *c, const char *option, const char *other)
{
    return strcmp(option, "patterns") == 0 && strcmp(other, "method") == 0 &&
           strcmp(cli_value_name("HBP_EPOCH_METHODS", c->method), "patterns") == 0;
}

int cli_check_rules(const cli *c, const cli_command *command)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const char *option = rules[i].option, *others = rules[i].others;
        char name[48];
        if (!(rules[i].commands & command->bit) || (option[0] && !cli_is_given(c, option)))
            continue;
        if (rules[i].rule == NEEDS && !is_met(c, others)) {
            (void)next_word(&others, name, sizeof name);
            return option[0] ? cli_usage("--%s needs %s%s%s", option, dashes(name), typed(name), rules[i].why)
                             : cli_usage("hbp %s needs %s%s%s", command->name, dashes(name), typed(name),
                                         rules[i].why);
        }
        while (rules[i].rule == EXCLUDES && next_word(&others, name, sizeof name))
            if (cli_is_given(c, name) && !agree(c, option, name))
                return cli_usage("--%s and %s%s exclude one another: %s; leave one of them out", option,
                                 dashes(name), typed(name), rules[i].why);
    }
    return 0;
}

hbp_status cli_as_usage(const cli *c, hbp_status status)
{
    const int is_wrong = status == HBP_E_INVALID || status == HBP_E_OVERFLOW;
    return is_wrong ? cli_own_usage("%s", cli_message(c)) : status;
}

/* What the text of a model is made of is in a file or folder, not on the command line. */
static int is_model_file(const char *text)
{
    char name[1024];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, ","), text);
    return strchr(name, '/') || strstr(name, ".json") || access(name, F_OK) == 0;
}

/* The same of a machine, which no folder holds: a name without a slash or .json is a preset's. */
static int is_machine_file(const char *text)
{
    return strstr(text, ".json") != NULL || memchr(text, '/', strcspn(text, ":,")) != NULL;
}

/* The name of a file that is there, with more behind it, one of `ends`: what is wrong may be either. */
static int cut_rest(const char *text, const char *ends, char *name, size_t bytes)
{
    for (size_t at = strcspn(text, ends); text[at]; at += 1 + strcspn(text + at + 1, ends)) {
        snprintf(name, bytes, "%.*s", (int)at, text);
        if (access(name, F_OK) == 0)
            return 1;
    }
    return 0;
}

/* A preset's name without fields behind it; a text of nothing but fields, or a file's, whole. */
static void cut_fields(const char *text, char *name, size_t bytes)
{
    const size_t first = strcspn(text, ",=");
    const int is_preset = text[first] == ',' && access(text, F_OK) != 0;
    snprintf(name, bytes, "%.*s", (int)(is_preset ? first : strlen(text)), text);
}

/* A pipe is read once. */
static int is_pipe(const char *text)
{
    struct stat at;
    return text && stat(text, &at) == 0 && !S_ISREG(at.st_mode) && !S_ISDIR(at.st_mode);
}

static hbp_status check_model(cli *c)
{
    hbp_status status = hbp_model_create_text(c->context, c->model_text, &c->model);
    char name[1024];
    if (status >= 0 || !is_model_file(c->model_text))
        return cli_as_usage(c, status);
    if (!cut_rest(c->model_text, ",", name, sizeof name))
        return status;
    char said[512];
    snprintf(said, sizeof said, "%s", cli_message(c));
    hbp_model *bare = NULL;
    const int is_rest = hbp_model_create_text(c->context, name, &bare) >= 0;
    hbp_model_free(bare);
    return is_rest ? cli_own_usage("%s", said) : cli_own_failure("%s", said);
}

static hbp_status check_machine(cli *c)
{
    hbp_status status = hbp_machine_create_text(c->context, c->machine_text, &c->machine);
    char name[1024];
    if (status >= 0)
        return cli_as_usage(c, cli_set_machine(c));
    if (!is_machine_file(c->machine_text))
        return cli_as_usage(c, status);
    if (!cut_rest(c->machine_text, ":,", name, sizeof name))
        return status;
    char said[512];
    snprintf(said, sizeof said, "%s", cli_message(c));
    hbp_machine *bare = NULL;
    const int is_rest = hbp_machine_create_text(c->context, name, &bare) >= 0;
    hbp_machine_free(bare);
    return is_rest ? cli_own_usage("%s", said) : cli_own_failure("%s", said);
}

static void free_checked(cli *c)
{
    hbp_cost_free(c->cost);
    hbp_machine_free(c->machine);
    hbp_model_free(c->model);
    c->cost = NULL;
    c->machine = NULL;
    c->model = NULL;
}

/* The cost, and whether its times are numbers: a pack of 128K tokens, which models are trained on. */
static hbp_status try_cost(cli *c)
{
    enum { PACK_TOKENS = 131072 };
    const hbp_sp_options one = {.struct_size = sizeof one, .tokens_per_step = PACK_TOKENS};
    hbp_sp_choice choice = {.struct_size = sizeof choice};
    free_checked(c);
    hbp_status status = cli_make_cost(c);
    if (status >= 0) {
        const hbp_status timed = hbp_choose_sp(c->context, c->cost, PACK_TOKENS, &one, &choice);
        status = timed == HBP_E_OVERFLOW ? timed : HBP_OK; /* what does not fit may be shorter */
    }
    return status;
}

/* Options of a cost, and fields behind the names of its model and machine, that those refuse. */
static hbp_status check_cost(cli *c)
{
    hbp_status status = try_cost(c);
    if (status != HBP_E_INVALID && status != HBP_E_OVERFLOW)
        return status;
    if (!is_model_file(c->model_text) && !is_machine_file(c->machine_text))
        return cli_as_usage(c, status);
    /* Whether it is the files, without what is given besides. */
    char said[512], model[1024], machine[1024];
    snprintf(said, sizeof said, "%s", cli_message(c));
    if (!cut_rest(c->model_text, ",", model, sizeof model))
        cut_fields(c->model_text, model, sizeof model);
    if (!cut_rest(c->machine_text, ":,", machine, sizeof machine))
        cut_fields(c->machine_text, machine, sizeof machine);
    cli bare = {.command = c->command, .context = c->context, .model_text = model, .machine_text = machine};
    const int is_given = try_cost(&bare) >= 0;
    free_checked(&bare);
    return is_given ? cli_own_usage("%s", said) : cli_own_failure("%s", said);
}

int cli_check_names(cli *c, const cli_command *command)
{
    if (command->bit == CLI_MODEL)
        c->model_text = c->file;
    if (command->bit == CLI_MACHINE)
        c->machine_text = c->file;
    if (is_pipe(c->model_text) || is_pipe(c->machine_text))
        return 0;
    hbp_status status = c->model_text ? check_model(c) : HBP_OK;
    if (status >= 0 && c->machine_text)
        status = check_machine(c);
    if (status >= 0 && c->model_text && c->machine_text && (command->bit & CLI_COSTS))
        status = check_cost(c);
    if (status >= 0 && c->vlm_text) {
        hbp_vlm *vlm = NULL;
        status = cli_as_usage(c, hbp_vlm_create_preset(c->context, c->vlm_text, &vlm));
        hbp_vlm_free(vlm);
    }
    free_checked(c);
    return status < 0 ? cli_failed(c) : 0;
}

/* One sample of one token, or of as many as the vision unit of a vision-language model becomes at most. */
static hbp_status make_one(cli *c, int64_t length, int has_vision, int has_modality, hbp_lengths **one)
{
    const uint32_t vision = 1;
    const int32_t modality = 0;
    const hbp_lengths_options of = {.struct_size = sizeof of,
                                    .vision = has_vision ? &vision : NULL,
                                    .modalities = has_modality ? &modality : NULL};
    return hbp_lengths_create_i64(c->context, &length, 1, &of, one);
}

hbp_status cli_try_options(cli *c, cli_again *again, const void *options)
{
    enum { MOST_OF_UNIT = 65536 };
    const int is_vlm = c->vlm_text || c->layers_file;
    hbp_lengths *one = NULL;
    hbp_status status =
        make_one(c, is_vlm ? MOST_OF_UNIT : 1, is_vlm || c->max_vision, c->modality_order != 0, &one);
    if (status >= 0)
        status = again(c, one, options);
    hbp_lengths_free(one);
    return status == HBP_E_INVALID ? cli_as_usage(c, status) : status == HBP_E_CANCELLED ? status : HBP_OK;
}

hbp_status cli_as_options(cli *c, hbp_status status, cli_again *again, const void *options)
{
    if (status != HBP_E_INVALID)
        return status;
    char said[512];
    snprintf(said, sizeof said, "%s", cli_message(c));
    hbp_lengths *one = NULL;
    int is_same = make_one(c, 1, 1, 1, &one) >= 0 && again(c, one, options) == HBP_E_INVALID &&
                  strcmp(cli_message(c), said) == 0;
    hbp_lengths_free(one);
    return is_same ? cli_own_usage("%s", said) : cli_own_failure("%s", said);
}
