#include "io/machine/machine_profile.h"
#include "hbp/io.h"

#include <string.h>

#include "data/machine/machine.h"
#include "io/file/file_error.h"
#include "io/file/stream.h"
#include "io/json/json_tree.h"

#define FORMAT  "hbp-machine"
#define VERSION 1

static const char *const collective_names[HBP_COLLECTIVE_COUNT] = {"all_to_all", "all_gather",
                                                                   "reduce_scatter", "all_reduce"};
static const char *const rate_names[HBP_RATE_COUNT] = {"gemm", "attention", "copy"};

static int put_fields(const hbp__memory *memory, json_t *fields, const hbp_machine *machine)
{
    for (int32_t i = 0; i < HBP__MACHINE_FIELD_COUNT; i++) {
        if (!machine->source[i][0])
            continue;
        json_t *field = json_object();
        if (!hbp__json_give(fields, hbp__machine_field_name(i), field) ||
            !hbp__json_give(field, "value", hbp__json_double(hbp__machine_field_value(machine, i))) ||
            !hbp__json_give(field, "source", hbp__json_text(memory, machine->source[i])))
            return 0;
    }
    return 1;
}

static int put_collectives(const hbp__memory *memory, json_t *rows, const hbp_machine *machine)
{
    for (int64_t i = 0; i < machine->collective_count; i++) {
        const hbp__collective *c = &machine->collectives[i];
        json_t *row = json_object();
        if (json_array_append_new(rows, row) != 0 ||
            !hbp__json_give(row, "collective", json_string(collective_names[c->collective])) ||
            !hbp__json_give(row, "ranks", json_integer(c->ranks)) ||
            !hbp__json_give(row, "latency_ns", hbp__json_double(c->latency_ns)) ||
            !hbp__json_give(row, "bytes_per_s", hbp__json_double(c->bytes_per_s)) ||
            (c->spread >= 0 && !hbp__json_give(row, "spread", hbp__json_double(c->spread))) ||
            !hbp__json_give(row, "source", hbp__json_text(memory, c->source)))
            return 0;
    }
    return 1;
}

static int put_rates(const hbp__memory *memory, json_t *rows, const hbp_machine *machine)
{
    for (int64_t i = 0; i < machine->rate_count; i++) {
        const hbp__rate *r = &machine->rates[i];
        json_t *row = json_object();
        if (json_array_append_new(rows, row) != 0 ||
            !hbp__json_give(row, "rate", json_string(rate_names[r->rate])) ||
            !hbp__json_give(row, "size", json_integer(r->size)) ||
            !hbp__json_give(row, "per_s", hbp__json_double(r->per_s)) ||
            !hbp__json_give(row, "spread", hbp__json_double(r->spread)) ||
            !hbp__json_give(row, "source", hbp__json_text(memory, r->source)))
            return 0;
    }
    return 1;
}

/* NULL when memory is short. */
static json_t *build_profile(const hbp__memory *memory, const hbp_machine *machine)
{
    json_t *root = json_object();
    json_t *fields = json_object();
    json_t *rows = json_array();
    json_t *rates = json_array();
    int whole = hbp__json_give(root, "format", json_string(FORMAT)) &&
                hbp__json_give(root, "version", json_integer(VERSION)) &&
                hbp__json_give(root, "name", hbp__json_text(memory, machine->name)) &&
                hbp__json_give(root, "fields", json_incref(fields)) &&
                hbp__json_give(root, "collectives", json_incref(rows)) &&
                put_fields(memory, fields, machine) && put_collectives(memory, rows, machine) &&
                put_rates(memory, rates, machine) &&
                (!machine->rate_count || hbp__json_give(root, "rates", json_incref(rates)));
    json_decref(fields);
    json_decref(rows);
    json_decref(rates);
    if (whole)
        return root;
    json_decref(root);
    return NULL;
}

hbp_status hbp_machine_save(hbp_context *context, const hbp_machine *machine, const char *path)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, machine, "machine"));
    HBP__TRY(hbp__require(context, path, "path"));
    json_t *root = build_profile(&context->memory, machine);
    hbp_status status = hbp__json_save(context, root, "a machine's profile", path);
    json_decref(root);
    return status;
}

static hbp_status fail_profile(hbp_context *context, const char *what)
{
    return hbp__fail(context, HBP_E_FORMAT, "%s", what);
}

static hbp_status read_field(hbp_context *context, hbp_machine *machine, const char *name,
                             const json_t *field)
{
    const json_t *value = json_object_get(field, "value");
    const json_t *source = json_object_get(field, "source");
    if (json_is_number(value) && json_is_string(source))
        return hbp__machine_set_field(context, machine, name, json_number_value(value),
                                      json_string_value(source));
    char printable[64];
    hbp__printable(printable, sizeof printable, name);
    return hbp__fail(context, HBP_E_FORMAT, "field '%s' has no number 'value' or no text 'source'",
                     printable);
}

/* Place of a JSON text in `names` [count]; `count` when it is none of them. */
static int32_t find_name(const char *const *names, int32_t count, const json_t *name)
{
    int32_t i = 0;
    while (i < count && !(json_is_string(name) && strcmp(names[i], json_string_value(name)) == 0))
        i++;
    return i;
}

static hbp_status read_collective(hbp_context *context, hbp_machine *machine, size_t index, const json_t *row)
{
    const json_t *name = json_object_get(row, "collective");
    const json_t *ranks = json_object_get(row, "ranks");
    const json_t *latency = json_object_get(row, "latency_ns");
    const json_t *bandwidth = json_object_get(row, "bytes_per_s");
    const json_t *source = json_object_get(row, "source");
    const json_t *spread = json_object_get(row, "spread");
    int32_t collective = find_name(collective_names, HBP_COLLECTIVE_COUNT, name);
    if (collective == HBP_COLLECTIVE_COUNT || !json_is_integer(ranks) ||
        json_integer_value(ranks) > INT32_MAX || json_integer_value(ranks) < 0 || !json_is_number(latency) ||
        !json_is_number(bandwidth) || !json_is_string(source) || (spread && !json_is_number(spread)))
        return hbp__fail(
            context, HBP_E_FORMAT,
            "collective %lld lacks one of collective, ranks, latency_ns, bytes_per_s and source, or it "
            "is of the wrong kind",
            (long long)index);
    int32_t group = (int32_t)json_integer_value(ranks);
    HBP__TRY(hbp__machine_set_collective(context, machine, collective, group, json_number_value(latency),
                                         json_number_value(bandwidth), json_string_value(source)));
    if (!spread)
        return HBP_OK;
    return hbp__machine_set_collective_spread(context, machine, collective, group, json_number_value(spread));
}

static hbp_status read_rate(hbp_context *context, hbp_machine *machine, size_t index, const json_t *row)
{
    const json_t *size = json_object_get(row, "size");
    const json_t *per_s = json_object_get(row, "per_s");
    const json_t *spread = json_object_get(row, "spread");
    const json_t *source = json_object_get(row, "source");
    int32_t rate = find_name(rate_names, HBP_RATE_COUNT, json_object_get(row, "rate"));
    if (rate == HBP_RATE_COUNT || !json_is_integer(size) || !json_is_number(per_s) ||
        !json_is_number(spread) || !json_is_string(source))
        return hbp__fail(
            context, HBP_E_FORMAT,
            "rate %lld lacks one of rate, size, per_s, spread and source, or it is of the wrong kind",
            (long long)index);
    return hbp__machine_set_rate(context, machine, rate, json_integer_value(size), json_number_value(per_s),
                                 json_number_value(spread), json_string_value(source));
}

/* `machine` is the caller's also on failure. */
static hbp_status read_profile(hbp_context *context, const json_t *root, hbp_machine *machine)
{
    json_t *fields = json_object_get(root, "fields");
    const json_t *rows = json_object_get(root, "collectives");
    const json_t *rates = json_object_get(root, "rates");
    const char *key;
    json_t *field;
    size_t index;
    json_t *row;
    if (!json_is_object(fields) || (rows && !json_is_array(rows)))
        return fail_profile(context, "'fields' is no object or 'collectives' no array");
    if (rates && !json_is_array(rates))
        return fail_profile(context, "'rates' is no array");
    json_object_foreach(fields, key, field) HBP__TRY(read_field(context, machine, key, field));
    json_array_foreach(rows, index, row) HBP__TRY(read_collective(context, machine, index, row));
    json_array_foreach(rates, index, row) HBP__TRY(read_rate(context, machine, index, row));
    return HBP_OK;
}

static hbp_status check_header(hbp_context *context, const char *file, const json_t *root)
{
    const json_t *format = json_object_get(root, "format");
    const json_t *version = json_object_get(root, "version");
    const json_t *name = json_object_get(root, "name");
    if (!json_is_string(format) || strcmp(json_string_value(format), FORMAT) != 0)
        return fail_profile(context, "'format' is not \"" FORMAT "\"");
    if (!json_is_integer(version))
        return fail_profile(context, "'version' is not a whole number");
    if (json_integer_value(version) != VERSION)
        return hbp__fail(context, HBP_E_VERSION,
                         "%.100s: a machine's profile of version %lld; this library reads %d", file,
                         (long long)json_integer_value(version), VERSION);
    if (!json_is_string(name) || strlen(json_string_value(name)) >= HBP__SOURCE_BYTES)
        return hbp__fail(context, HBP_E_FORMAT, "'name' is no text of at most %d bytes",
                         HBP__SOURCE_BYTES - 1);
    return HBP_OK;
}

hbp_status hbp__machine_read(hbp_context *context, const char *name, const char *text, int64_t bytes,
                             hbp_machine **out)
{
    *out = NULL;
    json_t *root;
    HBP__TRY(hbp__json_tree(context, name, text, bytes, &root));
    hbp_machine *machine = NULL;
    hbp_status status = check_header(context, name, root);
    if (status == HBP_OK) {
        machine = hbp__machine_new(context, json_string_value(json_object_get(root, "name")));
        status = machine ? read_profile(context, root, machine) : hbp__fail_memory(context, "a machine");
    }
    json_decref(root);
    if (status < 0) {
        hbp_machine_free(machine);
        return hbp__blame_file(context, name, status);
    }
    *out = machine;
    return HBP_OK;
}

hbp_status hbp_machine_load(hbp_context *context, const char *path, hbp_machine **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, path, "path"));
    char *text;
    int64_t bytes;
    HBP__TRY(hbp__read_file(context, path, HBP__JSON_MOST, &text, &bytes));
    hbp_status status = hbp__machine_read(context, hbp__file_name(path), text, bytes, out);
    hbp__delete(&context->memory, text);
    return status;
}
