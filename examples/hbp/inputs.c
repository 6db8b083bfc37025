#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "hbp/io.h"
#include "options.h"

/* Failures of the command's own get status -100, so that CLI_TRY prints the message kept here, not the
 * context's. */
enum { OWN_FAILURE = -100 };

static char own_message[512];
static int is_usage;

hbp_status cli_own_failure(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(own_message, sizeof own_message, format, arguments);
    va_end(arguments);
    return OWN_FAILURE;
}

hbp_status cli_own_usage(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(own_message, sizeof own_message, format, arguments);
    va_end(arguments);
    is_usage = 1;
    return OWN_FAILURE;
}

static int print_error(const char *format, va_list arguments)
{
    cli_clear_progress();
    fflush(stdout);
    fputs("hbp: ", stderr);
    char text[8192];
    vsnprintf(text, sizeof text, format, arguments);
    cli_make_plain(text);
    fputs(text, stderr);
    fputc('\n', stderr);
    return 1;
}

int cli_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_error(format, arguments);
    va_end(arguments);
    return 1;
}

int cli_usage(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_error(format, arguments);
    va_end(arguments);
    return 2;
}

int cli_failed(cli *c)
{
    return cli_error("%s", own_message[0] ? own_message : cli_message(c)) + is_usage;
}

int cli_print_json(cli *c)
{
    char *line = c->result ? json_dumps(c->result, JSON_INDENT(2)) : NULL;
    if (!line)
        return cli_error("out of memory");
    puts(line);
    free(line);
    return 0;
}

char *cli_read_file(const char *path, int64_t *bytes)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!file)
        return NULL;
    char *data = NULL;
    size_t size = 0;
    size_t room = 0;
    for (;;) {
        if (size + 1 >= room) {
            room = room ? 2 * room : 65536;
            char *grown = realloc(data, room);
            if (!grown)
                break;
            data = grown;
        }
        size_t got = fread(data + size, 1, room - size - 1, file);
        size += got;
        if (got == 0)
            break;
    }
    int failed = ferror(file) || size + 1 >= room;
    if (file != stdin)
        fclose(file);
    if (failed) {
        free(data);
        return NULL;
    }
    data[size] = 0;
    *bytes = (int64_t)size;
    return data;
}

/* The library's formats, and those that the command reads besides. */
static hbp_status name_formats(const cli *c, hbp_status status)
{
    static const char end[] = " or MDS";
    const char *message = cli_message(c);
    const size_t length = strlen(message), tail = sizeof end - 1;
    if (length < tail || strcmp(message + length - tail, end) != 0)
        return status;
    return cli_own_failure("%.*s, MDS, Parquet or Arrow", (int)(length - tail), message);
}

hbp_status cli_read_lengths(cli *c, const char *path)
{
    hbp_lengths_load_options options;
    options = (hbp_lengths_load_options){.struct_size = sizeof options};
    options.format = c->format;
    options.column = c->column;
    options.count_column = c->count_column;
    options.loss_column = c->loss_column;
    options.shifted_loss = (int32_t)c->shifted_loss;
    options.link_column = c->link_column;
    options.vision_path = c->vision_file;
    options.vision_column = c->vision_column;
    options.modality_column = c->modality_column;
    hbp_lengths *all = NULL;
    hbp_status status = !c->format && cli_is_columnar(path)
                            ? cli_read_columnar(c, path, &all)
                            : hbp_lengths_load(c->context, path, &options, &all);
    if (status == HBP_E_FORMAT)
        return name_formats(c, status);
    if (status < 0)
        return status;
    if (c->max_length == 0) {
        c->lengths = all;
        return HBP_OK;
    }
    status = hbp_lengths_limit(c->context, all, c->max_length, (int32_t)c->over_long, &c->lengths);
    hbp_lengths_free(all);
    return status;
}

static hbp_status make_model(cli *c)
{
    if (!c->model_text)
        return cli_own_usage("hbp %s needs --model, such as --model llama-3.1-8b", c->command);
    return hbp_model_create_text(c->context, c->model_text, &c->model);
}

/* --nodes and --set replace fields of whatever machine there is. */
hbp_status cli_set_machine(cli *c)
{
    hbp_status status = HBP_OK;
    if (c->nodes > 0)
        status = hbp_machine_set_field(c->context, c->machine, "nodes", (double)c->nodes, "given");
    return status < 0 || !c->set ? status : hbp_machine_set_fields(c->context, c->machine, c->set);
}

hbp_status cli_make_machine(cli *c)
{
    if (!c->machine_text)
        return cli_own_usage("hbp %s needs --machine, such as --machine h100:4", c->command);
    hbp_status status = hbp_machine_create_text(c->context, c->machine_text, &c->machine);
    return status < 0 ? status : cli_set_machine(c);
}

/* A cost file has its terms: what would change them has no place beside it. */
static hbp_status load_cost(cli *c)
{
    const struct {
        const char *option;
        int given;
    } others[] = {{"--model", c->model_text != NULL},
                  {"--machine", c->machine_text != NULL},
                  {"--nodes", c->nodes != 0},
                  {"--set", c->set != NULL},
                  {"--stack", c->stack != NULL},
                  {"--zero", c->zero != 0},
                  {"--shard-ranks", c->shard_ranks != 0},
                  {"--lockstep-ranks", c->lockstep_ranks != 0},
                  {"--uneven-micro-batches", c->uneven_micro_batches != 0},
                  {"--fused-ce", c->fused_cross_entropy != 0},
                  {"--max-sp", c->max_sp != 0},
                  {"--reserve", c->reserve_bytes != 0},
                  {"--pack-overhead", c->pack_overhead_ns != 0},
                  {"--dp-overlap", c->dp_overlap > 0},
                  {"--sp-overlap", c->sp_overlap > 0}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].given)
            return cli_own_usage("--cost %s has all terms already; %s cannot change them", c->cost_file,
                                 others[i].option);
    return hbp_cost_load(c->context, c->cost_file, &c->cost);
}

hbp_status cli_make_cost(cli *c)
{
    if (c->cost_file)
        return load_cost(c);
    hbp_status status = make_model(c);
    if (status >= 0)
        status = cli_make_machine(c);
    if (status < 0)
        return status;
    hbp_cost_options options = {.struct_size = sizeof options};
    options.zero_stage = (int32_t)c->zero;
    options.fused_cross_entropy = (int32_t)c->fused_cross_entropy;
    options.max_sp = (int32_t)c->max_sp;
    options.reserve_bytes = c->reserve_bytes;
    options.pack_overhead_ns = c->pack_overhead_ns;
    options.dp_overlap = c->dp_overlap;
    options.sp_overlap = c->sp_overlap;
    options.shard_ranks = (int32_t)c->shard_ranks;
    options.lockstep_ranks = (int32_t)c->lockstep_ranks;
    options.uneven_micro_batches = (int32_t)c->uneven_micro_batches;
    options.stack = c->stack;
    return hbp_cost_create(c->context, c->model, c->machine, &options, &c->cost);
}

hbp_status cli_make_groups(cli *c, int64_t method)
{
    hbp_groups_options options = {.struct_size = sizeof options};
    options.method = cli_value_name("HBP_GROUPS_METHODS", method);
    options.max_groups = (int32_t)c->max_groups;
    options.tokens_per_step = c->tokens_per_step;
    options.max_length = c->max_length;
    options.pack_multiple = c->pack_multiple;
    options.sequence_multiple = c->sequence_multiple;
    options.max_pack_length = c->max_pack_length;
    options.tokens_per_rank = c->tokens_per_rank;
    return hbp_plan_groups(c->context, c->lengths, c->cost, &options, &c->groups);
}

int64_t cli_tokens_of_groups(const cli *c)
{
    hbp_groups_view view = {.struct_size = sizeof view};
    (void)hbp_groups_get_view(c->groups, &view);
    return view.tokens_per_step;
}

int cli_check_step(const cli *c, int64_t step, int64_t first, int64_t steps)
{
    if (step >= first && step < first + steps)
        return 0;
    return cli_error("there is no step %lld; %s holds steps %lld to %lld", (long long)step, c->file,
                     (long long)first, (long long)(first + steps - 1));
}

hbp_status cli_load_plan(cli *c)
{
    hbp_plan_file *file = NULL;
    hbp_status status = hbp_plan_file_open(c->context, c->file, &file);
    int has_vlm = hbp_plan_file_has_vlm(file);
    hbp_plan_file_free(file);
    if (status >= 0 && has_vlm)
        status = hbp_vlm_plan_load(c->context, c->file, &c->vlm_plan);
    return status < 0 ? status : hbp_plan_load(c->context, c->file, &c->plan);
}

void cli_epoch_options(const cli *c, hbp_epoch_options *options)
{
    *options = (hbp_epoch_options){.struct_size = sizeof *options};
    options->method = c->patterns && !c->method ? "patterns" : cli_value_name("HBP_EPOCH_METHODS", c->method);
    options->over_long = (int32_t)c->over_long;
    options->max_groups = (int32_t)c->max_groups;
    options->micro_batch_multiple = (int32_t)c->micro_batch_multiple;
    options->drop_last = (int32_t)c->drop_last;
    options->max_samples = (int32_t)c->max_samples;
    options->effort = (int32_t)c->effort;
    options->mixture_slack = (int32_t)(c->mixture_slack < 0 ? 0 : c->mixture_slack ? c->mixture_slack : -1);
    options->max_length = c->max_length;
    options->tokens_per_step = c->tokens_per_step;
    options->curriculum_steps = c->curriculum;
    options->sequence_multiple = c->sequence_multiple;
    options->pack_multiple = c->pack_multiple;
    options->samples_per_step = c->samples_per_step;
    options->window_samples = c->window;
    options->seed = (uint64_t)c->seed;
    options->epoch = (uint64_t)c->epoch;
    options->max_vision = c->max_vision;
    options->modality_order = (int32_t)c->modality_order;
    options->composition = (int32_t)c->composition;
    options->threads = (int32_t)c->threads;
    options->max_pack_length = c->max_pack_length;
    options->tokens_per_rank = c->tokens_per_rank;
    options->micro_batches_per_step = (int32_t)c->micro_batches_per_step;
    options->equal_samples = (int32_t)c->equal_samples;
    options->sequence_multiple_per_sp = c->sequence_multiple_per_sp;
    options->pack_multiple_per_sp = c->pack_multiple_per_sp;
}

hbp_status cli_find_bound(cli *c, int64_t tokens_per_step, int64_t most_steps, int64_t *bound_ns)
{
    hbp_lengths_summary s;
    s.struct_size = sizeof s;
    hbp_status status = hbp_lengths_get_summary(c->context, c->lengths, &s);
    if (status < 0)
        return status;
    int64_t steps = tokens_per_step ? (s.tokens - 1) / tokens_per_step + 1 : most_steps;
    /* A step holds a micro-batch at least, which may be more than tokens_per_step. */
    steps = steps > most_steps ? most_steps : steps;
    return hbp_bound_epoch(c->context, c->lengths, c->cost, steps, bound_ns);
}
