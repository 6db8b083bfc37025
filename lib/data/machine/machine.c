/* Fields with their sources. */
#include "data/machine/machine.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "base/quantity.h"

/* 2^53: up to here a double counts bytes one by one, so that profiles and setters lose none. */
#define MOST_BYTES 9007199254740992.0

enum { INT32_FIELD, INT64_FIELD, DOUBLE_FIELD };

#define FIELD_KIND(type)                                                                                     \
    _Generic((type)0, int32_t : INT32_FIELD, int64_t : INT64_FIELD, double : DOUBLE_FIELD)

static const struct field {
    const char *name;
    size_t offset;
    int kind;
} fields_of_machine[HBP__MACHINE_FIELD_COUNT] = {
#define ROW(name, type) {#name, offsetof(hbp_machine_fields, name), FIELD_KIND(type)},
    HBP__MACHINE_FIELDS(ROW)
#undef ROW
};

const char *hbp__machine_field_name(int32_t index)
{
    return fields_of_machine[index].name;
}

static const char *field_name(int64_t index)
{
    return fields_of_machine[index].name;
}

static const hbp__other_word other_words[] = {
    {"memory", "hbm_bytes"},
    {"memory_bytes", "hbm_bytes"},
    {"gpu_memory", "hbm_bytes"},
    {"gpu_memory_bytes", "hbm_bytes"},
    {"hbm", "hbm_bytes"},
    {"memory_bandwidth", "hbm_bytes_per_s"},
    {"memory_bytes_per_s", "hbm_bytes_per_s"},
    {"hbm_bandwidth", "hbm_bytes_per_s"},
    {"bandwidth", "network_bytes_per_s"},
    {"network_bandwidth", "network_bytes_per_s"},
    {"nvlink_bandwidth", "nvlink_bytes_per_s"},
    {"gpus", "gpus_per_node"},
    {"mfu", "gemm_efficiency"},
    {NULL, NULL},
};

const hbp__field_names hbp__machine_field_names = {"machine", field_name, HBP__MACHINE_FIELD_COUNT,
                                                   other_words, 1};
_Static_assert((int)HBP__MACHINE_FIELD_COUNT <= HBP__MOST_FIELDS, "a bit for every field");

static int32_t field_index(const char *name)
{
    for (int32_t i = 0; i < HBP__MACHINE_FIELD_COUNT; i++)
        if (strcmp(fields_of_machine[i].name, name) == 0)
            return i;
    return -1;
}

static double read_field(const hbp_machine_fields *fields, int32_t index)
{
    const char *at = (const char *)fields + fields_of_machine[index].offset;
    int32_t i32;
    int64_t i64;
    double real;
    switch (fields_of_machine[index].kind) {
    case INT32_FIELD:
        memcpy(&i32, at, sizeof i32);
        return i32;
    case INT64_FIELD:
        memcpy(&i64, at, sizeof i64);
        return (double)i64;
    default:
        memcpy(&real, at, sizeof real);
        return real;
    }
}

/* `value` has passed check_value. */
static void write_field(hbp_machine_fields *fields, int32_t index, double value)
{
    char *at = (char *)fields + fields_of_machine[index].offset;
    int32_t i32 = 0;
    int64_t i64 = 0;
    switch (fields_of_machine[index].kind) {
    case INT32_FIELD:
        i32 = (int32_t)value;
        memcpy(at, &i32, sizeof i32);
        break;
    case INT64_FIELD:
        i64 = (int64_t)value;
        memcpy(at, &i64, sizeof i64);
        break;
    default:
        memcpy(at, &value, sizeof value);
        break;
    }
}

double hbp__machine_field_value(const hbp_machine *machine, int32_t index)
{
    return read_field(&machine->fields, index);
}

static hbp_status check_value(hbp_context *context, int32_t index, double value)
{
    const struct field *field = &fields_of_machine[index];
    if (!(isfinite(value) && value >= 0))
        return hbp__fail(context, HBP_E_INVALID, "%s is %g; it must be finite and at least 0", field->name,
                         value);
    if (hbp__quantity_of(field->name) == HBP__OF_SHARE && value > 1)
        return hbp__fail(context, HBP_E_INVALID, "%s is %g; it is a share, at most 1, such as 0.45 or 45%%",
                         field->name, value);
    if (field->kind == DOUBLE_FIELD)
        return HBP_OK;
    double most = field->kind == INT32_FIELD ? (double)INT32_MAX : MOST_BYTES;
    if (value > most)
        return hbp__fail(context, HBP_E_OVERFLOW, "%s is %.*g; it must be at most %.0f", field->name,
                         value < 1e20 ? 17 : 15, value, most);
    if (value != floor(value))
        return hbp__fail(context, HBP_E_INVALID, "%s is %.15g; it must be a whole number", field->name,
                         value);
    return HBP_OK;
}

hbp_status hbp__machine_check_text(hbp_context *context, const char *what, const char *text)
{
    size_t bytes = strlen(text);
    if (!bytes || bytes >= HBP__SOURCE_BYTES)
        return hbp__fail(context, HBP_E_INVALID, "the %s has %lld characters; it must have 1..%d", what,
                         (long long)bytes, HBP__SOURCE_BYTES - 1);
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return hbp__fail(context, HBP_E_INVALID, "byte %lld of the %s is a control character",
                             (long long)i, what);
    return HBP_OK;
}

hbp_machine *hbp__machine_new(hbp_context *context, const char *name)
{
    hbp_machine *machine = hbp__new_zero(&context->memory, 1, sizeof *machine);
    if (!machine)
        return NULL;
    machine->memory = context->memory;
    machine->fields.struct_size = sizeof machine->fields;
    snprintf(machine->name, sizeof machine->name, "%s", name);
    return machine;
}

hbp_status hbp_machine_create(hbp_context *context, const hbp_machine_fields *fields, hbp_machine **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, fields, "fields"));
    hbp_machine_fields all;
    HBP__TRY(hbp__options_read(context, &all, sizeof all, fields, "hbp_machine_fields"));
    for (int32_t i = 0; i < HBP__MACHINE_FIELD_COUNT; i++)
        HBP__TRY(check_value(context, i, read_field(&all, i)));
    hbp_machine *machine = hbp__machine_new(context, "given");
    if (!machine)
        return hbp__fail_memory(context, "a machine");
    machine->fields = all;
    for (int32_t i = 0; i < HBP__MACHINE_FIELD_COUNT; i++)
        if (read_field(&all, i) > 0)
            snprintf(machine->source[i], sizeof machine->source[i], "given");
    *out = machine;
    return HBP_OK;
}

hbp_status hbp__machine_fail_missing(hbp_context *context, const hbp_machine *machine, uint32_t fields)
{
    /* An H100's, for fields that a cost or a run of tasks may lack. */
    static const char *const examples[HBP__MACHINE_FIELD_COUNT] = {
        [HBP__MACHINE_nodes] = "4",
        [HBP__MACHINE_gpus_per_node] = "8",
        [HBP__MACHINE_domain_gpus] = "8",
        [HBP__MACHINE_hbm_bytes] = "80GiB",
        [HBP__MACHINE_hbm_bytes_per_s] = "3.35TB/s",
        [HBP__MACHINE_flops_per_s] = "989TFLOPS",
        [HBP__MACHINE_gemm_efficiency] = "0.45",
        [HBP__MACHINE_attention_efficiency] = "0.45",
        [HBP__MACHINE_nvlink_bytes_per_s] = "371GB/s",
        [HBP__MACHINE_network_bytes_per_s] = "400Gb/s",
    };
    char text[360];
    size_t at = 0;
    int count = 0;
    text[0] = '\0';
    for (int32_t i = 0; i < HBP__MACHINE_FIELD_COUNT && at < sizeof text; i++)
        if (fields >> i & 1)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%s=%s", count++ ? "," : "",
                                   fields_of_machine[i].name, examples[i] ? examples[i] : "1");
    if (count == 1)
        return hbp__fail(context, HBP_E_INVALID, "%.*s of machine %s is 0 or unknown; set it, for example %s",
                         (int)strcspn(text, "="), text, machine->name, text);
    return hbp__fail(context, HBP_E_INVALID,
                     "%d fields of machine %s are 0 or unknown; set them, for example %s", count,
                     machine->name, text);
}

void hbp_machine_free(hbp_machine *machine)
{
    if (!machine)
        return;
    hbp__memory memory = machine->memory;
    hbp__delete(&memory, machine->collectives);
    hbp__delete(&memory, machine->rates);
    hbp__delete(&memory, machine);
}

const char *hbp_machine_get_name(const hbp_machine *machine)
{
    return machine ? machine->name : NULL;
}

hbp_status hbp_machine_set_name(hbp_context *context, hbp_machine *machine, const char *name)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, machine, "machine"));
    HBP__TRY(hbp__require(context, name, "name"));
    HBP__TRY(hbp__machine_check_text(context, "name", name));
    snprintf(machine->name, sizeof machine->name, "%s", name);
    return HBP_OK;
}

hbp_status hbp_machine_get_fields(hbp_context *context, const hbp_machine *machine,
                                  hbp_machine_fields *fields)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, machine, "machine"));
    return hbp__struct_write(context, fields, &machine->fields, sizeof machine->fields, "fields");
}

const char *hbp_machine_get_source(const hbp_machine *machine, const char *field)
{
    int32_t index = machine && field ? field_index(field) : -1;
    if (index < 0)
        return NULL;
    return machine->source[index][0] ? machine->source[index] : "unknown";
}

void hbp__machine_set_domain(hbp_machine *machine, int32_t most)
{
    const int64_t gpus = (int64_t)machine->fields.nodes * machine->fields.gpus_per_node;
    machine->preset_domain_gpus = most;
    if (gpus > 0)
        machine->fields.domain_gpus = gpus < most ? (int32_t)gpus : most;
}

hbp_status hbp__machine_set_field(hbp_context *context, hbp_machine *machine, const char *field, double value,
                                  const char *source)
{
    int32_t index = field_index(field);
    if (index < 0)
        return hbp__fail_field(context, &hbp__machine_field_names, "a machine has", field);
    HBP__TRY(check_value(context, index, value));
    HBP__TRY(hbp__machine_check_text(context, "source", source));
    write_field(&machine->fields, index, value);
    if (index == HBP__MACHINE_domain_gpus)
        machine->preset_domain_gpus = 0;
    if (index == HBP__MACHINE_nodes && machine->preset_domain_gpus)
        hbp__machine_set_domain(machine, machine->preset_domain_gpus);
    snprintf(machine->source[index], sizeof machine->source[index], "%s", source);
    return HBP_OK;
}

hbp_status hbp_machine_set_field(hbp_context *context, hbp_machine *machine, const char *field, double value,
                                 const char *source)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, machine, "machine"));
    HBP__TRY(hbp__require(context, field, "field"));
    return hbp__machine_set_field(context, machine, field, value, source ? source : "given");
}

hbp_status hbp__machine_set_values(hbp_context *context, hbp_machine *machine,
                                   const hbp__field_values *values)
{
    for (int32_t i = 0; i < HBP__MACHINE_FIELD_COUNT; i++)
        if (values->given >> i & 1)
            HBP__TRY(hbp__machine_set_field(context, machine, fields_of_machine[i].name, values->value[i],
                                            "given"));
    return HBP_OK;
}

hbp_status hbp_machine_set_fields(hbp_context *context, hbp_machine *machine, const char *text)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, machine, "machine"));
    HBP__TRY(hbp__require(context, text, "text"));
    hbp__field_values values;
    HBP__TRY(hbp__read_fields(context, &hbp__machine_field_names, text, text, &values));
    for (int32_t i = 0; i < HBP__MACHINE_FIELD_COUNT; i++) {
        hbp_status status = values.given >> i & 1 ? check_value(context, i, values.value[i]) : HBP_OK;
        if (status < 0)
            return hbp__fail_in_text(context, status, "machine", text);
    }
    return hbp__machine_set_values(context, machine, &values);
}
