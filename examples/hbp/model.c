/* hbp model: the presets side by side, or one model: what was read from a text, and what follows from it. */
#include <stdio.h>
#include <string.h>

#include "options.h"

enum { STAGES = 4, COUNTS = 4 };

#define ENOUGH_BYTES 9e15 /* of a GPU, for the states of every model */

static const struct {
    const char *name;
    int32_t stage;
} zero[STAGES] = {{"none", HBP_ZERO_NONE}, {"1", HBP_ZERO_1}, {"2", HBP_ZERO_2}, {"3", HBP_ZERO_3}};

/* Bytes of weights, gradients and optimiser states on each of `ranks` GPUs; -1: no such machine. */
typedef struct states {
    int counts;
    int32_t ranks[COUNTS];
    double bytes[STAGES][COUNTS];
    int64_t hbm_bytes; /* of a GPU of --machine, less the reserve; 0: none was given */
} states;

/* 8.03 B, 560 M. */
static shown show_parameters(int64_t parameters)
{
    return parameters < 1000000000 ? show_real("%.0f M", (double)parameters / 1e6)
                                   : show_real("%.2f B", (double)parameters / 1e9);
}

static hbp_status make(cli *c, const char *text, hbp_model_fields *fields, hbp_model_summary *summary)
{
    hbp_model_free(c->model);
    c->model = NULL;
    *fields = (hbp_model_fields){.struct_size = sizeof *fields};
    *summary = (hbp_model_summary){.struct_size = sizeof *summary};
    hbp_status status = hbp_model_create_text(c->context, text, &c->model);
    if (status >= 0)
        status = hbp_model_get_fields(c->context, c->model, fields);
    return status < 0 ? status : hbp_model_get_summary(c->context, c->model, summary);
}

static json_t *summary_json(const hbp_model_summary *s)
{
    return json_pack("{s:I,s:I,s:i,s:I,s:I,s:I,s:o,s:o}", "parameters", (json_int_t)s->parameters,
                     "active_parameters", (json_int_t)s->active_parameters, "max_sp", (int)s->max_sp,
                     "activation_bytes", (json_int_t)s->activation_bytes, "recomputed_bytes",
                     (json_int_t)s->recomputed_bytes, "logits_bytes", (json_int_t)s->logits_bytes,
                     "forward_flops_per_token", json_number(s->forward_flops_per_token),
                     "forward_flops_per_token_squared", json_number(s->forward_flops_per_token_squared));
}

/* Field `index` of the model's, from 1; 0 past the last. All are whole numbers. */
static int get_field(const hbp_model_fields *fields, int64_t index, hbp_field *field, int64_t *value)
{
    int32_t number;
    *field = (hbp_field){.struct_size = sizeof *field};
    if (hbp_record_get_field("hbp_model_fields", index, field) < 0)
        return 0;
    memcpy(&number, (const char *)fields + field->offset, sizeof number);
    *value = number;
    return 1;
}

static json_t *fields_json(const hbp_model_fields *fields)
{
    json_t *object = json_object();
    hbp_field field;
    int64_t value;
    for (int64_t i = 1; get_field(fields, i, &field, &value); i++)
        if (strcmp(field.name, "struct_size") != 0)
            json_object_set_new(object, field.name,
                                field.choices   ? json_string(cli_value_name(field.choices, value))
                                : field.is_flag ? json_boolean(value)
                                                : json_integer((json_int_t)value));
    return object;
}

static int list(cli *c)
{
    hbp_model_fields fields;
    hbp_model_summary s;
    const char *name;
    table t;
    static const char *const headers[] = {"<model", "parameters", "a token meets", "layers",
                                          "hidden", "heads / KV", "vocabulary",    "largest SP"};
    json_t *models = json_array();
    if (!c->json)
        table_begin(&t, 8, headers);
    for (int64_t i = 0; (name = hbp_preset_get_name("model", i)) != NULL; i++) {
        CLI_TRY(c, make(c, name, &fields, &s));
        if (c->json) {
            json_t *one = json_pack("{s:s,s:o}", "name", name, "fields", fields_json(&fields));
            json_t *rest = summary_json(&s);
            json_object_update(one, rest);
            json_decref(rest);
            json_array_append_new(models, one);
            continue;
        }
        table_add(&t, "%s", name);
        table_add_text(&t, show_parameters(s.parameters));
        table_add_text(&t, show_parameters(s.active_parameters));
        table_add(&t, "%d", (int)fields.layers);
        table_add_text(&t, show_count(fields.hidden));
        table_add(&t, "%d / %d", (int)fields.heads, (int)fields.kv_heads);
        table_add_text(&t, show_count(fields.vocab));
        table_add(&t, "%d", (int)s.max_sp);
    }
    c->result = json_pack("{s:o}", "models", models);
    if (c->json)
        return cli_print_json(c);
    table_end(&t);
    say("\nhbp model NAME says more of one; NAME,layers=4 replaces fields, config.json is Hugging Face's\n");
    return 0;
}

/* Bytes of the states on each GPU of a machine as `text` describes it, whatever its memory holds. */
static hbp_status find_states(cli *c, hbp_machine *machine, double bytes[STAGES])
{
    hbp_status status = hbp_machine_set_field(c->context, machine, "hbm_bytes", ENOUGH_BYTES, "given");
    for (int i = 0; i < STAGES && status >= 0; i++) {
        const hbp_cost_options options = {.struct_size = sizeof options, .zero_stage = zero[i].stage};
        hbp_cost_terms terms = {.struct_size = sizeof terms};
        hbp_cost *cost = NULL;
        status = hbp_cost_create(c->context, c->model, machine, &options, &cost);
        if (status >= 0)
            status = hbp_cost_get_terms(c->context, cost, &terms);
        bytes[i] = terms.static_bytes;
        hbp_cost_free(cost);
    }
    return status;
}

static hbp_status add_states(cli *c, states *all, const char *text)
{
    hbp_machine_fields fields = {.struct_size = sizeof fields};
    hbp_machine_free(c->machine);
    c->machine = NULL;
    hbp_status status = hbp_machine_create_text(c->context, text, &c->machine);
    if (status >= 0)
        status = hbp_machine_get_fields(c->context, c->machine, &fields);
    if (status < 0)
        return status;
    double bytes[STAGES];
    status = find_states(c, c->machine, bytes);
    for (int i = 0; i < STAGES && status >= 0; i++)
        all->bytes[i][all->counts] = bytes[i];
    all->ranks[all->counts++] = fields.nodes * fields.gpus_per_node;
    all->hbm_bytes = c->machine_text ? fields.hbm_bytes - HBP_RESERVE_BYTES : 0;
    return status;
}

static hbp_status list_states(cli *c, states *all)
{
    static const char *const machines[COUNTS] = {"h100,gpus_per_node=1,domain_gpus=1", "h100", "h100:8",
                                                 "h100:64"};
    hbp_status status = c->machine_text ? add_states(c, all, c->machine_text) : HBP_OK;
    for (int i = 0; i < COUNTS && !c->machine_text && status >= 0; i++)
        status = add_states(c, all, machines[i]);
    return status;
}

static json_t *states_json(const states *all)
{
    json_t *rows = json_array();
    for (int k = 0; k < all->counts; k++)
        for (int i = 0; i < STAGES; i++) {
            json_t *row = json_pack("{s:i,s:s,s:o}", "gpus", (int)all->ranks[k], "zero", zero[i].name,
                                    "bytes_per_gpu", json_number(all->bytes[i][k]));
            if (all->hbm_bytes)
                json_object_set_new(row, "fits", json_boolean(all->bytes[i][k] <= (double)all->hbm_bytes));
            json_array_append_new(rows, row);
        }
    return rows;
}

static void print_states(const states *all)
{
    table t;
    const char *headers[COUNTS + 1] = {"<ZeRO stage"};
    shown columns[COUNTS];
    for (int k = 0; k < all->counts; k++) {
        columns[k] = show_number(all->ranks[k], "GPU");
        headers[k + 1] = columns[k].s;
    }
    say("\nweights, gradients and optimiser states on each GPU%s\n\n",
        all->hbm_bytes ? ", and whether its memory less 4 GiB holds them" : "");
    table_begin(&t, all->counts + 1, headers);
    for (int i = 0; i < STAGES; i++) {
        table_add(&t, "%s", zero[i].name);
        for (int k = 0; k < all->counts; k++)
            table_add(&t, "%s%s", show_bytes(all->bytes[i][k]).s,
                      !all->hbm_bytes                              ? ""
                      : all->bytes[i][k] <= (double)all->hbm_bytes ? ", fits"
                                                                   : ", too much");
    }
    table_end(&t);
}

static void print_fields(const hbp_model_fields *fields)
{
    hbp_field field;
    int64_t value;
    table t;
    table_begin(&t, 3, (const char *[]){"<field", "value", "<"});
    for (int64_t i = 1; get_field(fields, i, &field, &value); i++) {
        if (strcmp(field.name, "struct_size") == 0 || (!value && !field.choices))
            continue; /* 0: the model has none */
        table_add(&t, "%s", field.name);
        if (field.choices)
            table_add(&t, "%s", cli_value_name(field.choices, value));
        else if (field.is_flag)
            table_add(&t, "yes");
        else
            table_add_text(&t, show_count(value));
        const char *text =
            strncmp(field.text, "0: ", 3) == 0 || strncmp(field.text, "nonzero: ", 9) == 0 ? "" : field.text;
        table_add(&t, "%.*s", (int)strcspn(text, ";"), text);
    }
    table_end(&t);
}

static void print_text(const cli *c, const hbp_model_fields *fields, const hbp_model_summary *s,
                       const states *all)
{
    const char *name = hbp_model_get_name(c->model);
    say("%s: ", show_name(c->file).s);
    if (strcmp(name, c->file) != 0)
        say("%s, ", show_name(name).s);
    say("%s parameters", show_count(s->parameters).s);
    if (s->active_parameters != s->parameters)
        say(", of which a token meets %s", show_count(s->active_parameters).s);
    say("\n\n");
    print_fields(fields);
    say("\nlargest SP degree (Ulysses) %d\n", (int)s->max_sp);
    say("activations of a token: %s a layer, %s where the layer is recomputed; logits %s\n",
        show_bytes((double)s->activation_bytes).s, show_bytes((double)s->recomputed_bytes).s,
        show_bytes((double)s->logits_bytes).s);
    say("forward: %s a token, and %s a squared token of each sample\n",
        show_real("%.4g FLOP", s->forward_flops_per_token).s,
        show_real("%.4g FLOP", s->forward_flops_per_token_squared).s);
    print_states(all);
}

int cli_model(cli *c)
{
    hbp_model_fields fields;
    hbp_model_summary summary;
    states all = {0};
    if (!c->file && c->machine_text)
        return cli_usage("--machine is for one model; name it, as in hbp model llama-3.1-8b --machine %s",
                         c->machine_text);
    if (!c->file)
        return list(c);
    CLI_TRY(c, make(c, c->file, &fields, &summary));
    CLI_TRY(c, list_states(c, &all));
    cli_finish_progress();
    if (c->json) {
        c->result = summary_json(&summary);
        json_object_set_new(c->result, "name", json_string(hbp_model_get_name(c->model)));
        json_object_set_new(c->result, "text", json_string(c->file));
        json_object_set_new(c->result, "fields", fields_json(&fields));
        json_object_set_new(c->result, "states", states_json(&all));
        return cli_print_json(c);
    }
    print_text(c, &fields, &summary, &all);
    return 0;
}
