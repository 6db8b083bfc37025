#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Failures of the command's own get status -100, so that CLI_TRY prints the message kept here, not the
 * context's. */
enum { OWN_FAILURE = -100 };

static char own_message[512];

hbp_status cli_own_failure(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(own_message, sizeof own_message, format, arguments);
    va_end(arguments);
    return OWN_FAILURE;
}

static int print_error(const char *format, va_list arguments)
{
    cli_clear_progress();
    fflush(stdout);
    fputs("hbp: ", stderr);
    vfprintf(stderr, format, arguments);
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
    return cli_error("%s", own_message[0] ? own_message : hbp_context_message(c->context));
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

hbp_status cli_read_lengths(cli *c, const char *path)
{
    hbp_lengths_read_options options;
    hbp_lengths_read_options_init(&options, sizeof options);
    options.format = c->format;
    options.column = c->column;
    options.count_column = c->count_column;
    options.loss_column = c->loss_column;
    options.tie_column = c->tie_column;
    options.vision_path = c->vision_file;
    options.vision_column = c->vision_column;
    options.modality_column = c->modality_column;
    hbp_lengths *all = NULL;
    hbp_status status = hbp_lengths_read(c->context, path, &options, &all);
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

static int ends_in(const char *text, const char *tail)
{
    size_t length = strlen(text);
    return length >= strlen(tail) && strcmp(text + length - strlen(tail), tail) == 0;
}

/* Calls `set` for each "name=number" of a list separated by commas. */
static hbp_status each_field(cli *c, const char *list,
                             hbp_status (*set)(cli *c, void *user, const char *name, double value),
                             void *user)
{
    for (const char *at = list; *at;) {
        size_t length = strcspn(at, ",");
        char name[64];
        const char *equals = memchr(at, '=', length);
        char *end = NULL;
        double value = equals ? strtod(equals + 1, &end) : 0;
        if (!equals || (size_t)(equals - at) >= sizeof name || end == equals + 1 || end != at + length)
            return cli_own_failure("'%.*s' is not FIELD=NUMBER", (int)length, at);
        memcpy(name, at, (size_t)(equals - at));
        name[equals - at] = 0;
        hbp_status status = set(c, user, name, value);
        if (status < 0)
            return status;
        at += length;
        at += *at == ',';
    }
    return HBP_OK;
}

static hbp_status set_model_field(cli *c, void *user, const char *name, double value)
{
#define FIELD(field)                                                                                         \
    {                                                                                                        \
#field, offsetof(hbp_model_fields, field)                                                            \
    }
    static const struct {
        const char *name;
        size_t offset;
    } fields[] = {FIELD(mlp),
                  FIELD(tied_embeddings),
                  FIELD(learned_positions),
                  FIELD(layers),
                  FIELD(dense_layers),
                  FIELD(hidden),
                  FIELD(ffn),
                  FIELD(heads),
                  FIELD(kv_heads),
                  FIELD(head_dim),
                  FIELD(vocab),
                  FIELD(experts),
                  FIELD(experts_active),
                  FIELD(experts_shared),
                  FIELD(moe_ffn),
                  FIELD(mla_q_lora),
                  FIELD(mla_kv_lora),
                  FIELD(mla_nope_dim),
                  FIELD(mla_rope_dim),
                  FIELD(mla_v_dim),
                  FIELD(qkv_bias)};
#undef FIELD
    (void)c;
    if (!(value >= 0 && value <= INT32_MAX) || value != (double)(int32_t)value)
        return cli_own_failure("--model: %s is %g; it takes a whole number", name, value);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(fields[i].name, name) == 0) {
            int32_t integer = (int32_t)value;
            memcpy((char *)user + fields[i].offset, &integer, sizeof integer);
            return HBP_OK;
        }
    return cli_own_failure("--model: there is no field '%s'", name);
}

static hbp_status make_model(cli *c)
{
    if (!c->model_text)
        return cli_own_failure("hbp %s needs --model, such as --model llama-3.1-8b", c->command);
    if (ends_in(c->model_text, ".json"))
        return hbp_model_load_config(c->context, c->model_text, &c->model);
    if (!strchr(c->model_text, '='))
        return hbp_model_create_preset(c->context, c->model_text, &c->model);
    hbp_model_fields fields;
    hbp_model_fields_init(&fields, sizeof fields);
    hbp_status status = each_field(c, c->model_text, set_model_field, &fields);
    return status < 0 ? status : hbp_model_create(c->context, &fields, &c->model);
}

static hbp_status set_machine_field(cli *c, void *user, const char *name, double value)
{
    (void)user;
    return hbp_machine_set_field(c->context, c->machine, name, value, "given");
}

/* "h100:4" is four nodes of preset h100. */
static hbp_status make_preset(cli *c)
{
    char name[64];
    size_t length = strcspn(c->machine_text, ":");
    int64_t nodes = 1;
    if (length >= sizeof name)
        return cli_own_failure("--machine is '%s'; it takes a preset such as h100:4 or a profile.json",
                               c->machine_text);
    memcpy(name, c->machine_text, length);
    name[length] = 0;
    if (c->machine_text[length] == ':') {
        char *end;
        const char *number = c->machine_text + length + 1;
        errno = 0;
        nodes = strtoll(number, &end, 10);
        if (end == number || *end || errno || nodes < 1 || nodes > INT32_MAX)
            return cli_own_failure("--machine is '%s'; ':%s' is not a number of nodes", c->machine_text,
                                   number);
    }
    return hbp_machine_create_preset(c->context, name, (int32_t)nodes, &c->machine);
}

/* --nodes and --set replace fields of whatever machine there is. */
hbp_status cli_set_machine(cli *c)
{
    hbp_status status = HBP_OK;
    if (c->nodes > 0)
        status = hbp_machine_set_field(c->context, c->machine, "nodes", (double)c->nodes, "given");
    if (status >= 0 && c->set)
        status = each_field(c, c->set, set_machine_field, NULL);
    return status;
}

hbp_status cli_make_machine(cli *c)
{
    if (!c->machine_text)
        return cli_own_failure("hbp %s needs --machine, such as --machine h100:4", c->command);
    hbp_status status = ends_in(c->machine_text, ".json")
                            ? hbp_machine_load(c->context, c->machine_text, &c->machine)
                            : make_preset(c);
    return status < 0 ? status : cli_set_machine(c);
}

hbp_status cli_make_cost(cli *c)
{
    hbp_status status = make_model(c);
    if (status >= 0)
        status = cli_make_machine(c);
    if (status < 0)
        return status;
    hbp_cost_options options;
    hbp_cost_options_init(&options, sizeof options);
    options.zero_stage = (int32_t)c->zero;
    options.fused_cross_entropy = (int32_t)c->fused_cross_entropy;
    options.max_sp = (int32_t)c->max_sp;
    options.reserve_bytes = c->reserve_mib << 20;
    options.pack_overhead_ns = c->pack_overhead_ns;
    options.dp_overlap = c->dp_overlap;
    options.sp_overlap = c->sp_overlap;
    return hbp_cost_create(c->context, c->model, c->machine, &options, &c->cost);
}

hbp_status cli_make_groups(cli *c, int32_t mode)
{
    hbp_groups_options options;
    hbp_groups_options_init(&options, sizeof options);
    options.mode = mode;
    options.max_groups = (int32_t)c->max_groups;
    options.tokens_per_step = c->tokens_per_step;
    options.max_length = c->max_length;
    options.pack_multiple = c->pack_multiple;
    options.sequence_multiple = c->sequence_multiple;
    return hbp_plan_groups(c->context, c->lengths, c->cost, &options, &c->groups);
}

hbp_status cli_load_plan(cli *c)
{
    return hbp_plan_load(c->context, c->file, &c->plan);
}

void cli_epoch_options(const cli *c, hbp_epoch_options *options)
{
    hbp_epoch_options_init(options, sizeof *options);
    options->mode = (int32_t)c->mode;
    options->over_long = (int32_t)c->over_long;
    options->max_groups = (int32_t)c->max_groups;
    options->micro_batch_multiple = (int32_t)c->micro_batch_multiple;
    options->drop_last = (int32_t)c->drop_last;
    options->max_samples = (int32_t)c->max_samples;
    options->effort = (int32_t)c->effort;
    options->mixed_slack = (int32_t)c->mixed_slack;
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
}

hbp_status cli_find_bound(cli *c, int64_t *bound_ns)
{
    hbp_lengths_summary s;
    s.struct_size = sizeof s;
    hbp_status status = hbp_lengths_get_summary(c->context, c->lengths, &s);
    if (status < 0)
        return status;
    int64_t tokens_per_step = hbp_groups_get_tokens_per_step(c->groups);
    int64_t steps = (s.tokens - 1) / tokens_per_step + 1;
    return hbp_bound_epoch(c->context, c->lengths, c->cost, steps, bound_ns);
}
