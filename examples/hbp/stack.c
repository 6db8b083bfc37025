/* hbp stack: the presets of software stacks side by side, or what one comes to for a model on a machine. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

/* The least that must be known to choose one: what trains, and where its numbers are from. */
static const struct known {
    const char *name, *trainer, *source;
} known[] = {
    {"fsdp", "PyTorch FSDP, eager, FlashAttention 2", "torchtitan and fms-fsdp, 2024"},
    {"fsdp-compiled", "PyTorch FSDP under torch.compile", "torchtitan and fms-fsdp, 2024"},
    {"fsdp-2023", "PyTorch FSDP, eager, attention in Triton", "llm-foundry, 2023"},
    {"megatron", "Megatron-LM, Transformer Engine", "NeMo 24.09 to 25.04, Llama 3.1 8B; A100: assumed"},
    {"deepspeed", "DeepSpeed-Ulysses", "FlexSP's released constants, A100; H100: as hbp's"},
    {"hbp", "HBP's trainer on DeepSpeed-Ulysses", "HBP, Tables 4, 18 and 19"},
    {"executor", "hbp_executor_cuda", "bytes counted from its kernels; no GPU has run it"},
    {"pytorch", "hbp.torch, eager, nothing prefetched", "fsdp's, traffic not hidden"},
};

static const struct known *find_known(const char *name)
{
    static const struct known none = {"", "", ""};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0)
            return &known[i];
    return &none;
}

static hbp_status read_on(cli *c, const char *text, const char *machine, hbp_stack_fields *fields)
{
    hbp_machine_free(c->machine);
    c->machine = NULL;
    *fields = (hbp_stack_fields){.struct_size = sizeof *fields};
    hbp_status status = hbp_machine_create_text(c->context, machine, &c->machine);
    return status < 0 ? status : hbp_stack_read(c->context, text, c->model, c->machine, fields);
}

static int list(cli *c)
{
    const char *name;
    table t;
    json_t *stacks = json_array();
    if (!c->json)
        table_begin(&t, 6,
                    (const char *[]){"<stack", "<trainer", "products, A100", "H100", "traffic may hide under",
                                     "<from"});
    CLI_TRY(c, hbp_model_create_text(c->context, "llama-3.1-8b", &c->model));
    for (int64_t i = 0; (name = hbp_preset_get_name("stack", i)) != NULL; i++) {
        hbp_stack_fields a100, h100;
        CLI_TRY(c, read_on(c, name, "a100-80", &a100));
        CLI_TRY(c, read_on(c, name, "h100", &h100));
        if (c->json) {
            json_array_append_new(stacks,
                                  json_pack("{s:s,s:s,s:s}", "name", name, "trainer",
                                            find_known(name)->trainer, "source", find_known(name)->source));
            continue;
        }
        table_add(&t, "%s", name);
        table_add(&t, "%s", find_known(name)->trainer);
        table_add(&t, "%.0f %%", 100 * a100.gemm_efficiency);
        table_add(&t, "%.0f %%", 100 * h100.gemm_efficiency);
        table_add(&t, h100.compute_overlap > 0 ? "%.0f %% of compute" : "nothing",
                  100 * h100.compute_overlap);
        table_add(&t, "%s", find_known(name)->source);
    }
    c->result = json_pack("{s:o}", "stacks", stacks);
    if (c->json)
        return cli_print_json(c);
    table_end(&t);
    say("\nproducts: share of a GPU's peak. Choose by what trains; NAME:KERNEL has another attention kernel "
        "(");
    for (int64_t i = 0; (name = hbp_preset_get_name("attention", i)) != NULL; i++)
        say("%s%s", i ? ", " : "", name);
    say("), NAME,elementwise_bytes=200 replaces fields. hbp stack NAME says what one comes to\n");
    return 0;
}

/* Field `index` of a stack's, from 1; 0 past the last. */
static int get_field(const hbp_stack_fields *fields, int64_t index, hbp_field *field, double *value)
{
    int32_t flag;
    *field = (hbp_field){.struct_size = sizeof *field};
    if (hbp_record_get_field("hbp_stack_fields", index, field) < 0)
        return 0;
    if (field->is_flag) {
        memcpy(&flag, (const char *)fields + field->offset, sizeof flag);
        *value = flag;
    } else if (strcmp(field->name, "struct_size") != 0) {
        memcpy(value, (const char *)fields + field->offset, sizeof *value);
    }
    return 1;
}

static int print_one(cli *c, const hbp_stack_fields *fields)
{
    hbp_field field;
    double value = 0;
    table t;
    json_t *object = json_object();
    if (!c->json) {
        say("%s, for %s on %s\n\n", show_name(c->stack).s, show_name(hbp_model_get_name(c->model)).s,
            show_name(hbp_machine_get_name(c->machine)).s);
        table_begin(&t, 3, (const char *[]){"<field", "value", "<"});
    }
    for (int64_t i = 1; get_field(fields, i, &field, &value); i++) {
        if (strcmp(field.name, "struct_size") == 0)
            continue;
        json_object_set_new(object, field.name, json_pack("{s:o}", "value", json_number(value)));
        if (c->json)
            continue;
        table_add(&t, "%s", field.name);
        if (field.is_flag)
            table_add(&t, value > 0 ? "yes" : "no");
        else
            table_add(&t, "%.4g", value);
        const char *text = strncmp(field.text, "nonzero: ", 9) == 0 ? field.text + 9 : field.text;
        table_add(&t, "%.*s", (int)strcspn(text, ";"), text);
    }
    c->result = json_pack("{s:s,s:s,s:s,s:o}", "text", c->stack, "model", hbp_model_get_name(c->model),
                          "machine", hbp_machine_get_name(c->machine), "fields", object);
    if (c->json)
        return cli_print_json(c);
    table_end(&t);
    return 0;
}

int cli_stack(cli *c)
{
    hbp_stack_fields fields;
    if (!c->file && (c->model_text || c->machine_text))
        return cli_usage("--%s is for one stack; name it, as in hbp stack fsdp --model llama-3.1-8b "
                         "--machine h100",
                         c->model_text ? "model" : "machine");
    if (!c->file)
        return list(c);
    c->stack = c->file;
    CLI_TRY(c, cli_as_usage(c, hbp_model_create_text(
                                   c->context, c->model_text ? c->model_text : "llama-3.1-8b", &c->model)));
    CLI_TRY(c, cli_as_usage(c, read_on(c, c->file, c->machine_text ? c->machine_text : "h100", &fields)));
    return print_one(c, &fields);
}
