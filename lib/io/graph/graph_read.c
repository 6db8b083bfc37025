/* A graph's file, JSON or msgpack, read into a tree and from there into a graph. Every failure names its
 * place. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/nearest.h"
#include "data/graph/graph.h"
#include "hbp/io.h"
#include "io/file/file_error.h"
#include "io/file/stream.h"
#include "io/graph/graph_file.h"
#include "io/json/json_tree.h"
#include "io/msgpack/msgpack_tree.h"

#define PLACE_BYTES 128
#define MOST_POINTS (INT64_C(1) << 20)
#define WHOLE       9007199254740992.0 /* 2^53: up to here a double tells whole numbers apart */
#define TICK        4096

/* Operators that one entry made. */
typedef struct chain {
    int32_t first;
    int32_t count;
} chain;

typedef struct reading {
    hbp_context *context;
    const char *name; /* of the file */
    hbp_graph *graph;
    hbp__names profiles; /* numbers are the graph's */
    hbp__names chains;   /* of more than one operator */
    chain *chain;        /* [chains.count] */
    int32_t chain_room;
} reading;

static const char *const file_keys[] = {"format", "version", "profiles", "operators", "edges"};
static const char *const operator_keys[] = {
    "name",  "type",        "task",          "parameters",       "profile",      "shape",
    "count", "batch",       "width",         "sequence",         "degrees",      "least_gpus",
    "split", "state_bytes", "sharded_bytes", "activation_bytes", "output_bytes", "gradient_bytes"};

static const char *file_key(int64_t i)
{
    return file_keys[i];
}

static const char *operator_key(int64_t i)
{
    return operator_keys[i];
}

/* Keys that are for people. */
static int is_comment(const char *key)
{
    return key[0] == '_' || strncmp(key, "comment", 7) == 0;
}

/* A misspelt key would go unnoticed and leave a default. */
static hbp_status check_keys(hbp_context *context, const char *place, const hbp__value *map,
                             const char *(*get)(int64_t i), int64_t count)
{
    HBP__EACH_KEY(map, at)
    {
        const char *key = at->of.text;
        int64_t i = 0;
        while (i < count && strcmp(key, get(i)) != 0)
            i++;
        if (i < count || is_comment(key))
            continue;
        char printable[64];
        hbp__printable(printable, sizeof printable, key);
        const char *meant = hbp__resembling(key, get, count);
        return hbp__fail(context, HBP_E_FORMAT, "%s has an unknown key '%s'%s%s%s", place, printable,
                         meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
    }
    return HBP_OK;
}

/* What a value is, for messages. */
static const char *describe_value(const hbp__value *value)
{
    switch (value ? (int)value->kind : -1) {
    case HBP__MAP:
        return "a map";
    case HBP__LIST:
        return "a list";
    case HBP__TEXT:
        return "text";
    case HBP__WHOLE:
    case HBP__REAL:
        return "a number";
    case -1:
        return "missing";
    default:
        return "no value";
    }
}

static hbp_status read_whole(hbp_context *context, const char *place, const char *key,
                             const hbp__value *value, int64_t least, int64_t most, int64_t *out)
{
    double real = hbp__value_real(value);
    int whole = hbp__value_is(value, HBP__WHOLE) || (hbp__value_is(value, HBP__REAL) && real >= -WHOLE &&
                                                     real <= WHOLE && real == (double)(int64_t)real);
    if (hbp__value_is(value, HBP__REAL) && !whole)
        return hbp__fail(context, HBP_E_FORMAT, "%s: '%s' is %.17g; it must be a whole number", place, key,
                         real);
    if (!whole)
        return hbp__fail(context, HBP_E_FORMAT, "%s: '%s' is %s; it must be a whole number", place, key,
                         describe_value(value));
    int64_t number = hbp__value_is(value, HBP__WHOLE) ? hbp__value_whole(value) : (int64_t)real;
    if (number < least || number > most)
        return hbp__fail(context, HBP_E_FORMAT, "%s: '%s' is %lld; it must be in %lld..%lld", place, key,
                         (long long)number, (long long)least, (long long)most);
    *out = number;
    return HBP_OK;
}

/* Text, or NULL where the key is not there. */
static hbp_status read_text(hbp_context *context, const char *place, const char *key, const hbp__value *value,
                            const char **out)
{
    *out = hbp__value_text(value);
    if (value && !*out)
        return hbp__fail(context, HBP_E_FORMAT, "%s: '%s' is %s; it must be text", place, key,
                         describe_value(value));
    return HBP_OK;
}

static hbp_status read_point(hbp_context *context, const char *place, const hbp__value *point, int64_t scale,
                             int32_t *gpus, int64_t *ns)
{
    if (!hbp__value_is(point, HBP__LIST) || hbp__value_count(point) != 2)
        return hbp__fail(context, HBP_E_FORMAT, "%s is not a list of two, GPUs and time", place);
    int64_t number;
    HBP__TRY(read_whole(context, place, "GPUs", hbp__value_at(point, 0), 1, HBP__PROFILE_GPUS, &number));
    *gpus = (int32_t)number;
    const hbp__value *time = hbp__value_at(point, 1);
    if (!hbp__value_is_number(time))
        return hbp__fail(context, HBP_E_FORMAT, "%s: the time is %s; it must be a number", place,
                         describe_value(time));
    if (hbp__value_real(time) < 0)
        return hbp__fail(context, HBP_E_FORMAT, "%s: the time is %.17g; it must not be negative", place,
                         hbp__value_real(time));
    if (scale == 1 && hbp__value_real(time) < 1e15 &&
        hbp__value_real(time) > (double)(int64_t)hbp__value_real(time))
        return hbp__fail(
            context, HBP_E_FORMAT,
            "%s: the time is %.6g ns, a fraction; name its unit, as in {\"ms\": [[1, 9.5], ...]}", place,
            hbp__value_real(time));
    *ns = hbp__value_is(time, HBP__WHOLE) ? hbp__mul_saturating(hbp__value_whole(time), scale)
                                          : hbp__round_i64(hbp__value_real(time) * (double)scale);
    return HBP_OK;
}

/* The list of points of a profile, and ns of its unit. */
static hbp_status find_points(hbp_context *context, const char *place, const hbp__value *value,
                              const hbp__value **points, int64_t *scale)
{
    static const struct {
        const char *unit;
        int64_t scale;
    } units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
    *points = hbp__value_is(value, HBP__LIST) ? value : NULL;
    *scale = 1;
    HBP__EACH_KEY(value, at)
    {
        const char *key = at->of.text;
        const hbp__value *member = at + 1;
        size_t u = 0;
        while (u < sizeof units / sizeof *units && strcmp(key, units[u].unit) != 0)
            u++;
        if (u < sizeof units / sizeof *units && !*points && hbp__value_is(member, HBP__LIST)) {
            *points = member;
            *scale = units[u].scale;
        } else if (!is_comment(key)) {
            *points = NULL;
            break;
        }
    }
    if (!*points)
        return hbp__fail(context, HBP_E_FORMAT,
                         "%s is neither a list of points nor a map with one such list under 'ns', 'us', 'ms' "
                         "or 's'",
                         place);
    if ((int64_t)hbp__value_count(*points) > MOST_POINTS)
        return hbp__fail(context, HBP_E_FORMAT, "%s has %lld points; at most %lld", place,
                         (long long)hbp__value_count(*points), (long long)MOST_POINTS);
    return HBP_OK;
}

static hbp_status fill_points(hbp_context *context, const char *place, const hbp__value *points,
                              int64_t scale, int32_t *gpus, int64_t *ns)
{
    int64_t i = 0;
    HBP__EACH(points, point)
    {
        char at[PLACE_BYTES + 32];
        snprintf(at, sizeof at, "%s, point %lld", place, (long long)i);
        HBP__TRY(read_point(context, at, point, scale, &gpus[i], &ns[i]));
        i++;
    }
    return HBP_OK;
}

static hbp_status add_profile(reading *r, const char *place, const hbp__value *value, int32_t *profile)
{
    hbp_context *context = r->context;
    const hbp__value *points;
    int64_t scale;
    HBP__TRY(find_points(context, place, value, &points, &scale));
    uint64_t count = hbp__value_count(points);
    int32_t *gpus = hbp__new(&context->memory, count, sizeof *gpus);
    int64_t *ns = hbp__new(&context->memory, count, sizeof *ns);
    hbp_status status = HBP_OK;
    if (!gpus || !ns)
        status = hbp__fail_memory(context, "a profile");
    if (status == HBP_OK)
        status = fill_points(context, place, points, scale, gpus, ns);
    if (status == HBP_OK)
        status = hbp__blame_file(
            context, place, hbp__graph_add_profile(context, r->graph, gpus, ns, (int64_t)count, profile));
    hbp__delete(&context->memory, gpus);
    hbp__delete(&context->memory, ns);
    return status;
}

static hbp_status read_profiles(reading *r, const hbp__value *profiles)
{
    if (profiles && !hbp__value_is(profiles, HBP__MAP))
        return hbp__fail(r->context, HBP_E_FORMAT, "'profiles' is %s; it must be a map of profiles by name",
                         describe_value(profiles));
    HBP__EACH_KEY(profiles, at)
    {
        const char *name = at->of.text;
        if (is_comment(name))
            continue;
        char place[PLACE_BYTES], printable[64];
        hbp__printable(printable, sizeof printable, name);
        snprintf(place, sizeof place, "profile '%s'", printable);
        HBP__TRY(add_profile(r, place, at + 1, NULL));
        if (!hbp__names_add(&r->context->memory, &r->profiles, name))
            return hbp__fail_memory(r->context, "the names of profiles");
    }
    return HBP_OK;
}

/* By name, or the points themselves; none where the key is not there. */
static hbp_status read_profile(reading *r, const char *place, const hbp__value *value, int32_t *profile)
{
    *profile = -1;
    if (!value)
        return HBP_OK;
    const char *name = hbp__value_text(value);
    if (!name)
        return add_profile(r, place, value, profile);
    *profile = hbp__names_find(&r->profiles, name);
    if (*profile >= 0)
        return HBP_OK;
    char printable[64];
    hbp__printable(printable, sizeof printable, name);
    return hbp__fail(r->context, HBP_E_FORMAT, "%s: there is no profile '%s'", place, printable);
}

/* [batch, sequence, width], later ones left out where they are 1; or each under its own key. */
static hbp_status read_shape(hbp_context *context, const char *place, const hbp__value *entry,
                             hbp_operator *o)
{
    static const char *const names[] = {"batch", "sequence", "width"};
    int64_t *const sizes[] = {&o->batch, &o->sequence, &o->width};
    const hbp__value *shape = hbp__value_find(entry, "shape");
    if (!shape)
        return HBP_OK;
    if (!hbp__value_is(shape, HBP__LIST) || hbp__value_count(shape) < 1 || hbp__value_count(shape) > 3)
        return hbp__fail(context, HBP_E_FORMAT,
                         "%s: 'shape' must be a list of one to three numbers: batch, sequence, width", place);
    for (size_t i = 0; i < 3; i++) {
        if (hbp__value_find(entry, names[i]))
            return hbp__fail(context, HBP_E_FORMAT, "%s has both 'shape' and '%s'", place, names[i]);
        if (i < hbp__value_count(shape))
            HBP__TRY(read_whole(context, place, names[i], hbp__value_at(shape, (uint32_t)i), 1, INT64_MAX,
                                sizes[i]));
    }
    return HBP_OK;
}

/* "divisors", "profiled", or HBP_DEGREES_*. */
static hbp_status read_degrees(hbp_context *context, const char *place, const hbp__value *value,
                               int32_t *degrees)
{
    static const char *const names[] = {"divisors", "profiled"};
    int64_t number = 0;
    if (hbp__value_is(value, HBP__TEXT)) {
        while (number < 2 && strcmp(names[number], hbp__value_text(value)) != 0)
            number++;
        if (number == 2) {
            char printable[64];
            hbp__printable(printable, sizeof printable, hbp__value_text(value));
            return hbp__fail(context, HBP_E_FORMAT,
                             "%s: 'degrees' is '%s'; it must be 'divisors' or 'profiled'", place, printable);
        }
    } else if (value) {
        HBP__TRY(read_whole(context, place, "degrees", value, 0, 1, &number));
    }
    *degrees = (int32_t)number;
    return HBP_OK;
}

static hbp_status read_numbers(hbp_context *context, const char *place, const hbp__value *entry,
                               hbp_operator *o)
{
#define READ(field, type)                                                                                    \
    if (strcmp(#field, "profile") != 0 && strcmp(#field, "degrees") != 0) {                                  \
        const hbp__value *value = hbp__value_find(entry, #field);                                            \
        int64_t number = 0, most = sizeof(o->field) == 4 ? INT32_MAX : INT64_MAX;                            \
        if (value)                                                                                           \
            HBP__TRY(read_whole(context, place, #field, value, 0, most, &number));                           \
        o->field = (type)number;                                                                             \
    }
    HBP__OPERATOR_NUMBERS(READ)
#undef READ
    return HBP_OK;
}

static hbp_status read_fields(reading *r, const char *place, const hbp__value *entry, hbp_operator *o)
{
    HBP__TRY(check_keys(r->context, place, entry, operator_key,
                        (int64_t)(sizeof operator_keys / sizeof *operator_keys)));
    HBP__TRY(read_text(r->context, place, "type", hbp__value_find(entry, "type"), &o->type));
    HBP__TRY(read_text(r->context, place, "task", hbp__value_find(entry, "task"), &o->task));
    HBP__TRY(
        read_text(r->context, place, "parameters", hbp__value_find(entry, "parameters"), &o->parameters));
    HBP__TRY(read_degrees(r->context, place, hbp__value_find(entry, "degrees"), &o->degrees));
    HBP__TRY(read_numbers(r->context, place, entry, o));
    HBP__TRY(read_shape(r->context, place, entry, o));
    return read_profile(r, place, hbp__value_find(entry, "profile"), &o->profile);
}

/* Remembers a chain's name, for edges. An operator of the same name would leave it open which is meant. */
static hbp_status add_chain(reading *r, const char *name, chain added)
{
    const hbp__memory *memory = &r->context->memory;
    if (r->chains.count == r->chain_room) {
        int64_t room = 2 * (int64_t)r->chain_room + 16;
        chain *larger = hbp__renew(memory, r->chain, (uint64_t)room, sizeof *larger);
        if (!larger)
            return hbp__fail_memory(r->context, "chains");
        r->chain = larger;
        r->chain_room = (int32_t)room;
    }
    if (!hbp__names_add(memory, &r->chains, name))
        return hbp__fail_memory(r->context, "chains");
    r->chain[r->chains.count - 1] = added;
    return HBP_OK;
}

static hbp_status read_operator(reading *r, int64_t index, const hbp__value *entry)
{
    char place[PLACE_BYTES], printable[64];
    hbp_operator o = {.struct_size = sizeof o};
    int64_t count = 1;
    int32_t first;
    snprintf(place, sizeof place, "operators[%lld]", (long long)index);
    if (!hbp__value_is(entry, HBP__MAP))
        return hbp__fail(r->context, HBP_E_FORMAT, "%s is %s; it must be a map", place,
                         describe_value(entry));
    HBP__TRY(read_text(r->context, place, "name", hbp__value_find(entry, "name"), &o.name));
    if (o.name) {
        hbp__printable(printable, sizeof printable, o.name);
        snprintf(place, sizeof place, "operators[%lld] '%s'", (long long)index, printable);
    }
    HBP__TRY(read_fields(r, place, entry, &o));
    const hbp__value *given = hbp__value_find(entry, "count");
    if (given)
        HBP__TRY(read_whole(r->context, place, "count", given, 1, HBP__GRAPH_OPERATORS, &count));
    if (count > HBP__GRAPH_OPERATORS - r->graph->operator_count)
        return hbp__fail(r->context, HBP_E_FORMAT, "%s: there are more than %lld operators", place,
                         (long long)HBP__GRAPH_OPERATORS);
    const hbp__names *others = count > 1 ? &r->graph->operator_names : &r->chains;
    if (o.name && (hbp__names_find(others, o.name) >= 0 || hbp__names_find(&r->chains, o.name) >= 0))
        return hbp__fail(r->context, HBP_E_FORMAT, "%s: the name is taken by an operator or a chain before",
                         place);
    HBP__TRY(hbp__blame_file(r->context, place,
                             hbp__graph_add_operators(r->context, r->graph, &o, count, &first)));
    if (o.name && count > 1)
        return add_chain(r, o.name, (chain){first, (int32_t)count});
    return HBP_OK;
}

/* The operator that one end of an edge names: itself, or a chain's last (`from`) or first. */
static hbp_status find_operator(reading *r, const char *place, const hbp__value *value, int from,
                                int32_t *out)
{
    const char *name = hbp__value_text(value);
    if (!name)
        return hbp__fail(r->context, HBP_E_FORMAT, "%s: '%s' is %s; it must be an operator's name", place,
                         from ? "from" : "to", describe_value(value));
    *out = hbp__names_find(&r->graph->operator_names, name);
    int32_t c = *out < 0 ? hbp__names_find(&r->chains, name) : -1;
    if (c >= 0)
        *out = r->chain[c].first + (from ? r->chain[c].count - 1 : 0);
    if (*out >= 0)
        return HBP_OK;
    char printable[64];
    hbp__printable(printable, sizeof printable, name);
    return hbp__fail(r->context, HBP_E_FORMAT, "%s: there is no operator '%s'", place, printable);
}

static hbp_status read_edge(reading *r, int64_t index, const hbp__value *entry)
{
    char place[PLACE_BYTES];
    int32_t from, to;
    int64_t bytes = -1;
    snprintf(place, sizeof place, "edges[%lld]", (long long)index);
    size_t parts = hbp__value_count(entry);
    if (parts < 2 || parts > 3)
        return hbp__fail(r->context, HBP_E_FORMAT, "%s is not a list of two names, and bytes at will", place);
    HBP__TRY(find_operator(r, place, hbp__value_at(entry, 0), 1, &from));
    HBP__TRY(find_operator(r, place, hbp__value_at(entry, 1), 0, &to));
    if (parts == 3)
        HBP__TRY(read_whole(r->context, place, "bytes", hbp__value_at(entry, 2), 0, INT64_MAX, &bytes));
    return hbp__blame_file(r->context, place, hbp__graph_add_edge(r->context, r->graph, from, to, bytes));
}

static hbp_status read_list(reading *r, const char *key, const hbp__value *list, int needed,
                            hbp_status (*read)(reading *r, int64_t index, const hbp__value *entry))
{
    if (!hbp__value_is(list, HBP__LIST) && (list || needed))
        return hbp__fail(r->context, HBP_E_FORMAT, "'%s' is %s; it must be a list", key,
                         describe_value(list));
    const int64_t count = hbp__value_count(list);
    int64_t i = 0;
    HBP__EACH(list, entry)
    {
        if (i % TICK == TICK - 1)
            HBP__TRY(hbp__tick(r->context, key, i, count));
        HBP__TRY(read(r, i++, entry));
    }
    return HBP_OK;
}

static hbp_status check_header(const reading *r, const hbp__value *root)
{
    hbp_context *context = r->context;
    const char *format = hbp__value_text(hbp__value_find(root, "format"));
    if (!format || strcmp(format, HBP__GRAPH_FORMAT) != 0)
        return hbp__fail(context, HBP_E_FORMAT, "'format' is not \"" HBP__GRAPH_FORMAT "\"");
    int64_t version;
    HBP__TRY(
        read_whole(context, "the file", "version", hbp__value_find(root, "version"), 1, INT64_MAX, &version));
    if (version > HBP__GRAPH_VERSION)
        return hbp__fail(context, HBP_E_VERSION, "%s: version is %lld; this library reads up to %d", r->name,
                         (long long)version, HBP__GRAPH_VERSION);
    return check_keys(context, "the file", root, file_key, (int64_t)(sizeof file_keys / sizeof *file_keys));
}

static hbp_status read_graph(reading *r, const hbp__value *root)
{
    HBP__TRY(check_header(r, root));
    HBP__TRY(read_profiles(r, hbp__value_find(root, "profiles")));
    HBP__TRY(read_list(r, "operators", hbp__value_find(root, "operators"), 1, read_operator));
    return read_list(r, "edges", hbp__value_find(root, "edges"), 0, read_edge);
}

hbp_status hbp__graph_read(hbp_context *context, const char *name, const char *data, int64_t bytes,
                           hbp_graph **out)
{
    hbp__document document;
    reading r = {.context = context, .name = name};
    *out = NULL;
    if (hbp__msgpack_map(data, bytes))
        HBP__TRY(hbp__msgpack_tree(context, name, data, bytes, &document));
    else
        HBP__TRY(hbp__json_tree_of(context, name, data, bytes, HBP__GRAPH_MOST, &document));
    hbp_status status = hbp__graph_create(context, &r.graph);
    if (status == HBP_OK)
        status = hbp__blame_file(context, name, read_graph(&r, document.values));
    hbp__document_free(&document);
    hbp__names_free(&context->memory, &r.profiles);
    hbp__names_free(&context->memory, &r.chains);
    hbp__delete(&context->memory, r.chain);
    if (status < 0) {
        hbp_graph_free(r.graph);
        return status;
    }
    *out = r.graph;
    return HBP_OK;
}

hbp_status hbp_graph_load(hbp_context *context, const char *path, hbp_graph **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, path, "path"));
    char *data;
    int64_t bytes;
    HBP__TRY(hbp__read_file(context, path, HBP__GRAPH_MOST, &data, &bytes));
    hbp_status status = hbp__graph_read(context, hbp__show_path(path).text, data, bytes, out);
    hbp__delete(&context->memory, data);
    return status;
}
