#include "io/machine/machine_profile.h"
#include "hbp/io.h"

#include <string.h>

#include "base/quantity.h"
#include "data/machine/machine.h"
#include "io/file/file_error.h"
#include "io/json/json_tree.h"
#include "io/value/value_out.h"

#define FORMAT  "hbp-machine"
#define VERSION 1

static const char *const collective_names[HBP_COLLECTIVE_COUNT] = {"all_to_all", "all_gather",
                                                                   "reduce_scatter", "all_reduce"};
static const char *const rate_names[HBP_RATE_COUNT] = {"gemm", "attention", "copy"};

static void put_source(hbp__value_out *out, const char *source)
{
    hbp__put_key(out, "source");
    hbp__put_text(out, source);
}

static void put_real(hbp__value_out *out, const char *key, double value)
{
    hbp__put_key(out, key);
    hbp__put_real(out, value);
}

static void put_fields(hbp__value_out *out, const hbp_machine *machine)
{
    int64_t count = 0;
    for (int32_t i = 0; i < HBP__MACHINE_FIELD_COUNT; i++)
        count += machine->source[i][0] != 0;
    hbp__put_key(out, "fields");
    hbp__put_map(out, count);
    for (int32_t i = 0; i < HBP__MACHINE_FIELD_COUNT; i++) {
        if (!machine->source[i][0])
            continue;
        hbp__put_key(out, hbp__machine_field_name(i));
        hbp__put_map(out, 2);
        put_real(out, "value", hbp__machine_field_value(machine, i));
        put_source(out, machine->source[i]);
    }
}

static void put_collectives(hbp__value_out *out, const hbp_machine *machine)
{
    hbp__put_key(out, "collectives");
    hbp__put_list(out, machine->collective_count);
    for (int64_t i = 0; i < machine->collective_count; i++) {
        const hbp__collective *c = &machine->collectives[i];
        hbp__put_map(out, 5 + (c->spread > 0));
        hbp__put_key(out, "collective");
        hbp__put_text(out, collective_names[c->collective]);
        hbp__put_key(out, "ranks");
        hbp__put_i64(out, c->ranks);
        put_real(out, "latency_ns", c->latency_ns);
        put_real(out, "bytes_per_s", c->bytes_per_s);
        if (c->spread > 0)
            put_real(out, "spread", c->spread);
        put_source(out, c->source);
    }
}

static void put_rates(hbp__value_out *out, const hbp_machine *machine)
{
    hbp__put_key(out, "rates");
    hbp__put_list(out, machine->rate_count);
    for (int64_t i = 0; i < machine->rate_count; i++) {
        const hbp__rate *r = &machine->rates[i];
        hbp__put_map(out, 5);
        hbp__put_key(out, "rate");
        hbp__put_text(out, rate_names[r->rate]);
        hbp__put_key(out, "size");
        hbp__put_i64(out, r->size);
        put_real(out, "per_s", r->per_s);
        put_real(out, "spread", r->spread);
        put_source(out, r->source);
    }
}

static void put_profile(hbp__value_out *out, const void *object)
{
    const hbp_machine *machine = object;
    hbp__put_map(out, 5 + (machine->rate_count > 0));
    hbp__put_key(out, "format");
    hbp__put_text(out, FORMAT);
    hbp__put_key(out, "version");
    hbp__put_i64(out, VERSION);
    hbp__put_key(out, "name");
    hbp__put_text(out, machine->name);
    put_fields(out, machine);
    put_collectives(out, machine);
    if (machine->rate_count)
        put_rates(out, machine);
}

hbp_status hbp_machine_save(hbp_context *context, const hbp_machine *machine, const char *path)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, machine, "machine"));
    HBP__TRY(hbp__require(context, path, "path"));
    return hbp__json_save(context, "a machine's profile", put_profile, machine, path);
}

static hbp_status fail_profile(hbp_context *context, const char *what)
{
    return hbp__fail(context, HBP_E_FORMAT, "%s", what);
}

/* A number, or a text with a unit: "80GiB". */
static int is_quantity(const hbp__value *value)
{
    return hbp__value_is_number(value) || hbp__value_is(value, HBP__TEXT);
}

static hbp_status read_quantity(hbp_context *context, const char *field, const hbp__value *value, double *out)
{
    if (hbp__value_is_number(value)) {
        *out = hbp__value_real(value);
        return HBP_OK;
    }
    const char *text = hbp__value_text(value);
    return hbp__read_quantity_of(context, field, text, (int64_t)strlen(text), out);
}

/* {"value": 85899345920, "source": "measured"}; a value alone is one that somebody wrote there. */
static hbp_status read_field(hbp_context *context, hbp_machine *machine, const char *name,
                             const hbp__value *field)
{
    const int is_alone = is_quantity(field);
    const hbp__value *value = is_alone ? field : hbp__value_find(field, "value");
    const hbp__value *source = is_alone ? NULL : hbp__value_find(field, "source");
    double number;
    if (is_quantity(value) && (is_alone || hbp__value_is(source, HBP__TEXT))) {
        HBP__TRY(read_quantity(context, name, value, &number));
        return hbp__machine_set_field(context, machine, name, number,
                                      source ? hbp__value_text(source) : "given");
    }
    char printable[64];
    hbp__printable(printable, sizeof printable, name);
    return hbp__fail(
        context, HBP_E_FORMAT,
        "field '%s' has no 'value' that is a number or a text such as \"80GiB\", or no text 'source'",
        printable);
}

/* Place of a JSON text in `names` [count]; `count` when it is none of them. */
static int32_t find_name(const char *const *names, int32_t count, const hbp__value *name)
{
    int32_t i = 0;
    while (i < count && !(hbp__value_is(name, HBP__TEXT) && strcmp(names[i], hbp__value_text(name)) == 0))
        i++;
    return i;
}

static hbp_status read_collective(hbp_context *context, hbp_machine *machine, size_t index,
                                  const hbp__value *row)
{
    const hbp__value *name = hbp__value_find(row, "collective");
    const hbp__value *ranks = hbp__value_find(row, "ranks");
    const hbp__value *latency = hbp__value_find(row, "latency_ns");
    const hbp__value *bandwidth = hbp__value_find(row, "bytes_per_s");
    const hbp__value *source = hbp__value_find(row, "source");
    const hbp__value *spread = hbp__value_find(row, "spread");
    int32_t collective = find_name(collective_names, HBP_COLLECTIVE_COUNT, name);
    if (collective == HBP_COLLECTIVE_COUNT || !hbp__value_is(ranks, HBP__WHOLE) ||
        hbp__value_whole(ranks) > INT32_MAX || hbp__value_whole(ranks) < 0 || !is_quantity(latency) ||
        !is_quantity(bandwidth) || !hbp__value_is(source, HBP__TEXT) ||
        (spread && !hbp__value_is_number(spread)))
        return hbp__fail(
            context, HBP_E_FORMAT,
            "collective %lld lacks one of collective, ranks, latency_ns, bytes_per_s and source, or it "
            "is of the wrong type",
            (long long)index);
    int32_t group = (int32_t)hbp__value_whole(ranks);
    double latency_ns, bytes_per_s;
    HBP__TRY(read_quantity(context, "latency_ns", latency, &latency_ns));
    HBP__TRY(read_quantity(context, "bytes_per_s", bandwidth, &bytes_per_s));
    return hbp__machine_set_collective(context, machine, collective, group, latency_ns, bytes_per_s,
                                       spread ? hbp__value_real(spread) : 0, hbp__value_text(source));
}

static hbp_status read_rate(hbp_context *context, hbp_machine *machine, size_t index, const hbp__value *row)
{
    const hbp__value *size = hbp__value_find(row, "size");
    const hbp__value *per_s = hbp__value_find(row, "per_s");
    const hbp__value *spread = hbp__value_find(row, "spread");
    const hbp__value *source = hbp__value_find(row, "source");
    int32_t rate = find_name(rate_names, HBP_RATE_COUNT, hbp__value_find(row, "rate"));
    if (rate == HBP_RATE_COUNT || !hbp__value_is(size, HBP__WHOLE) || !hbp__value_is_number(per_s) ||
        !hbp__value_is_number(spread) || !hbp__value_is(source, HBP__TEXT))
        return hbp__fail(
            context, HBP_E_FORMAT,
            "rate %lld lacks one of rate, size, per_s, spread and source, or it is of the wrong type",
            (long long)index);
    return hbp__machine_set_rate(context, machine, rate, hbp__value_whole(size), hbp__value_real(per_s),
                                 hbp__value_real(spread), hbp__value_text(source));
}

/* `machine` is the caller's also on failure. */
static hbp_status read_profile(hbp_context *context, const hbp__value *root, hbp_machine *machine)
{
    const hbp__value *fields = hbp__value_find(root, "fields");
    const hbp__value *rows = hbp__value_find(root, "collectives");
    const hbp__value *rates = hbp__value_find(root, "rates");
    size_t collective = 0, rate = 0;
    if (!hbp__value_is(fields, HBP__MAP) || (rows && !hbp__value_is(rows, HBP__LIST)))
        return fail_profile(context, "'fields' is no object or 'collectives' no array");
    if (rates && !hbp__value_is(rates, HBP__LIST))
        return fail_profile(context, "'rates' is no array");
    HBP__EACH_KEY(fields, key) HBP__TRY(read_field(context, machine, key->of.text, key + 1));
    HBP__EACH(rows, row) HBP__TRY(read_collective(context, machine, collective++, row));
    HBP__EACH(rates, row) HBP__TRY(read_rate(context, machine, rate++, row));
    return HBP_OK;
}

static hbp_status check_header(hbp_context *context, const char *file, const hbp__value *root)
{
    const hbp__value *format = hbp__value_find(root, "format");
    const hbp__value *version = hbp__value_find(root, "version");
    const hbp__value *name = hbp__value_find(root, "name");
    if (hbp__value_find(root, "model_type"))
        return fail_profile(context,
                            "it has a 'model_type': it is a model's config.json, no machine's profile");
    if (!hbp__value_is(format, HBP__TEXT) || strcmp(hbp__value_text(format), FORMAT) != 0)
        return fail_profile(context, "'format' is not \"" FORMAT "\"");
    if (!hbp__value_is(version, HBP__WHOLE))
        return fail_profile(context, "'version' is not a whole number");
    if (hbp__value_whole(version) != VERSION)
        return hbp__fail(context, HBP_E_VERSION,
                         "%s: a machine's profile of version %lld; this library reads %d", file,
                         (long long)hbp__value_whole(version), VERSION);
    if (!hbp__value_is(name, HBP__TEXT) || strlen(hbp__value_text(name)) >= HBP__SOURCE_BYTES)
        return hbp__fail(context, HBP_E_FORMAT, "'name' is no text of at most %d bytes",
                         HBP__SOURCE_BYTES - 1);
    return HBP_OK;
}

hbp_status hbp__machine_read(hbp_context *context, const char *name, const char *text, int64_t bytes,
                             hbp_machine **out)
{
    *out = NULL;
    hbp__document document;
    HBP__TRY(hbp__json_tree(context, name, text, bytes, &document));
    const hbp__value *root = document.values;
    hbp_machine *machine = NULL;
    hbp_status status = check_header(context, name, root);
    if (status == HBP_OK) {
        machine = hbp__machine_new(context, hbp__value_text(hbp__value_find(root, "name")));
        status = machine ? read_profile(context, root, machine) : hbp__fail_memory(context, "a machine");
    }
    hbp__document_free(&document);
    if (status < 0) {
        hbp_machine_free(machine);
        return hbp__blame_file(context, name, status);
    }
    *out = machine;
    return HBP_OK;
}
