#include "data/graph/graph.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/digest.h"
#include "base/options.h"
#include "base/utf8.h"

#define MOST_NS     (INT64_C(1) << 53)
#define MOST_BYTES  (INT64_C(1) << 62)
#define FIRST_SLOTS 64
#define FIRST_ROOM  32
#define NAME_MORE   16 /* "[2147483647]" */
#define TICK        65536

hbp_status hbp__graph_create(hbp_context *context, hbp_graph **out)
{
    hbp_graph *graph = hbp__new_zero(&context->memory, 1, sizeof *graph);
    if (!graph)
        return hbp__fail_memory(context, "a graph");
    graph->memory = context->memory;
    graph->profile_first = hbp__new_zero(&graph->memory, 1, sizeof *graph->profile_first);
    if (!graph->profile_first) {
        hbp_graph_free(graph);
        return hbp__fail_memory(context, "a graph");
    }
    *out = graph;
    return HBP_OK;
}

hbp_status hbp_graph_create(hbp_context *context, hbp_graph **out)
{
    HBP__ENTER_OUT(context, out);
    return hbp__graph_create(context, out);
}

void hbp_graph_free(hbp_graph *graph)
{
    if (!graph)
        return;
    hbp__memory memory = graph->memory;
    hbp__delete(&memory, graph->profile_first);
    hbp__delete(&memory, graph->point_gpus);
    hbp__delete(&memory, graph->point_ns);
    hbp__delete(&memory, graph->operators);
    hbp__delete(&memory, graph->task_of);
    hbp__delete(&memory, graph->parameters_of);
    hbp__delete(&memory, graph->edge_from);
    hbp__delete(&memory, graph->edge_to);
    hbp__delete(&memory, graph->edge_bytes);
    hbp__delete(&memory, graph->edge_slot);
    hbp__names_free(&memory, &graph->types);
    hbp__names_free(&memory, &graph->tasks);
    hbp__names_free(&memory, &graph->parameters);
    hbp__names_free(&memory, &graph->operator_names);
    hbp__delete(&memory, graph);
}

static hbp_status check_points(hbp_context *context, const int32_t *gpus, const int64_t *ns, int64_t points)
{
    if (points < 1)
        return hbp__fail(context, HBP_E_INVALID, "points is %lld; a profile has at least 1",
                         (long long)points);
    HBP__TRY(hbp__require(context, gpus, "gpus"));
    HBP__TRY(hbp__require(context, ns, "ns"));
    for (int64_t i = 0; i < points; i++) {
        if (gpus[i] < 1 || gpus[i] > HBP__PROFILE_GPUS)
            return hbp__fail(context, HBP_E_INVALID, "gpus of point %lld is %d; it must be in 1..%d",
                             (long long)i, (int)gpus[i], (int)HBP__PROFILE_GPUS);
        if (i && gpus[i] <= gpus[i - 1])
            return hbp__fail(context, HBP_E_INVALID,
                             "gpus of point %lld is %d, after %d; points must come with rising gpus",
                             (long long)i, (int)gpus[i], (int)gpus[i - 1]);
        if (ns[i] < 1 || ns[i] > MOST_NS)
            return hbp__fail(context, HBP_E_INVALID, "ns of point %lld is %lld; it must be in 1..2^53",
                             (long long)i, (long long)ns[i]);
    }
    return HBP_OK;
}

/* Room for a profile of so many points. */
static int grow_profiles(hbp_graph *graph, int64_t points)
{
    const hbp__memory *memory = &graph->memory;
    if (graph->profile_count == graph->profile_room) {
        int64_t room = hbp__min_i64(2 * (int64_t)graph->profile_room + FIRST_ROOM, INT32_MAX - 1);
        int64_t *first = hbp__renew(memory, graph->profile_first, (uint64_t)room + 1, sizeof *first);
        if (!first || graph->profile_count == room)
            return 0;
        graph->profile_first = first;
        graph->profile_room = (int32_t)room;
    }
    int64_t least = graph->profile_first[graph->profile_count] + points;
    if (least > graph->point_room) {
        int64_t room = hbp__max_i64(2 * graph->point_room + FIRST_ROOM, least);
        int32_t *gpus = hbp__renew(memory, graph->point_gpus, (uint64_t)room, sizeof *gpus);
        graph->point_gpus = gpus ? gpus : graph->point_gpus;
        int64_t *ns = hbp__renew(memory, graph->point_ns, (uint64_t)room, sizeof *ns);
        graph->point_ns = ns ? ns : graph->point_ns;
        if (!gpus || !ns)
            return 0;
        graph->point_room = room;
    }
    return 1;
}

hbp_status hbp__graph_add_profile(hbp_context *context, hbp_graph *graph, const int32_t *gpus,
                                  const int64_t *ns, int64_t points, int32_t *profile)
{
    HBP__TRY(check_points(context, gpus, ns, points));
    if (!grow_profiles(graph, points))
        return hbp__fail_memory(context, "a profile");
    int64_t first = graph->profile_first[graph->profile_count];
    memcpy(graph->point_gpus + first, gpus, (size_t)points * sizeof *gpus);
    memcpy(graph->point_ns + first, ns, (size_t)points * sizeof *ns);
    if (profile)
        *profile = graph->profile_count;
    graph->profile_first[++graph->profile_count] = first + points;
    return HBP_OK;
}

hbp_status hbp_graph_add_profile(hbp_context *context, hbp_graph *graph, const int32_t *gpus,
                                 const int64_t *ns, int64_t points, int32_t *profile)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, graph, "graph"));
    return hbp__graph_add_profile(context, graph, gpus, ns, points, profile);
}

static int64_t hash_edge(int32_t from, int32_t to)
{
    uint64_t h = ((uint64_t)(uint32_t)from << 32 | (uint32_t)to) * UINT64_C(0x9fb21c651e98df25);
    h = (h ^ (h >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return (int64_t)((h ^ (h >> 32)) >> 1);
}

/* Where the edge is, or the free slot where it would go. */
static int64_t find_slot(const hbp_graph *graph, int32_t from, int32_t to)
{
    int64_t at = hash_edge(from, to) & (graph->edge_slots - 1);
    for (int64_t e; (e = graph->edge_slot[at]) > 0; at = (at + 1) & (graph->edge_slots - 1))
        if (graph->edge_from[e - 1] == from && graph->edge_to[e - 1] == to)
            break;
    return at;
}

static int grow_slots(hbp_graph *graph)
{
    if (graph->edge_slots && 2 * (graph->edge_count + 1) <= graph->edge_slots)
        return 1;
    int64_t slots = graph->edge_slots ? 2 * graph->edge_slots : FIRST_SLOTS;
    int64_t *slot = hbp__new_zero(&graph->memory, (uint64_t)slots, sizeof *slot);
    if (!slot)
        return 0;
    hbp__delete(&graph->memory, graph->edge_slot);
    graph->edge_slot = slot;
    graph->edge_slots = slots;
    for (int64_t e = 0; e < graph->edge_count; e++)
        slot[find_slot(graph, graph->edge_from[e], graph->edge_to[e])] = e + 1;
    return 1;
}

static int grow_edges(hbp_graph *graph)
{
    if (graph->edge_count < graph->edge_room)
        return 1;
    int64_t room = 2 * graph->edge_room + FIRST_ROOM;
    int32_t *from = hbp__renew(&graph->memory, graph->edge_from, (uint64_t)room, sizeof *from);
    graph->edge_from = from ? from : graph->edge_from;
    int32_t *to = hbp__renew(&graph->memory, graph->edge_to, (uint64_t)room, sizeof *to);
    graph->edge_to = to ? to : graph->edge_to;
    int64_t *bytes = hbp__renew(&graph->memory, graph->edge_bytes, (uint64_t)room, sizeof *bytes);
    graph->edge_bytes = bytes ? bytes : graph->edge_bytes;
    if (!from || !to || !bytes)
        return 0;
    graph->edge_room = room;
    return 1;
}

static hbp_status put_edge(hbp_context *context, hbp_graph *graph, int32_t from, int32_t to, int64_t bytes)
{
    if (!grow_slots(graph) || !grow_edges(graph))
        return hbp__fail_memory(context, "an edge");
    int64_t at = find_slot(graph, from, to);
    if (graph->edge_slot[at])
        return hbp__fail(context, HBP_E_INVALID, "the edge from operator '%.80s' to '%.80s' is there already",
                         graph->operators[from].name, graph->operators[to].name);
    graph->edge_from[graph->edge_count] = from;
    graph->edge_to[graph->edge_count] = to;
    graph->edge_bytes[graph->edge_count] = bytes;
    graph->edge_slot[at] = ++graph->edge_count;
    return HBP_OK;
}

hbp_status hbp__graph_add_edge(hbp_context *context, hbp_graph *graph, int32_t from, int32_t to,
                               int64_t bytes)
{
    if (from < 0 || from >= graph->operator_count || to < 0 || to >= graph->operator_count)
        return hbp__fail(context, HBP_E_INVALID,
                         "an edge goes from operator %d to %d; there are %d operators", (int)from, (int)to,
                         (int)graph->operator_count);
    const char *name = graph->operators[from].name;
    if (from == to)
        return hbp__fail(context, HBP_E_INVALID, "an edge goes from operator '%.80s' to itself", name);
    if (bytes < -1)
        return hbp__fail(context, HBP_E_INVALID,
                         "bytes of the edge from operator '%.80s' to '%.80s' is %lld; it must be at least -1",
                         name, graph->operators[to].name, (long long)bytes);
    if (bytes < 0)
        bytes = graph->operators[from].output_bytes;
    int64_t all = hbp__add_saturating(graph->bytes, bytes);
    if (all > MOST_BYTES)
        return hbp__fail(
            context, HBP_E_OVERFLOW,
            "with the edge from operator '%.80s' to '%.80s' all sizes sum to more than 2^62 bytes", name,
            graph->operators[to].name);
    HBP__TRY(put_edge(context, graph, from, to, bytes));
    graph->bytes = all;
    return HBP_OK;
}

hbp_status hbp_graph_add_edge(hbp_context *context, hbp_graph *graph, int32_t from, int32_t to, int64_t bytes)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, graph, "graph"));
    return hbp__graph_add_edge(context, graph, from, to, bytes);
}

/* Names go into messages and files. `label` is how messages call the operator. */
static hbp_status check_text(hbp_context *context, const char *field, const char *label, const char *text,
                             int needed)
{
    if (!text && !needed)
        return HBP_OK;
    if (!text || !*text)
        return hbp__fail(context, HBP_E_INVALID, "%s of operator %s is %s", field, label,
                         text ? "empty" : "missing");
    int plain = hbp__utf8(text);
    for (const char *at = text; *at && plain; at++)
        plain = (unsigned char)*at >= ' ' && *at != 0x7f;
    if (!plain)
        return hbp__fail(context, HBP_E_INVALID, "%s of operator %s must be UTF-8 without control characters",
                         field, label);
    return HBP_OK;
}

static hbp_status check_texts(hbp_context *context, const hbp_graph *graph, const hbp_operator *given)
{
    char label[96];
    snprintf(label, sizeof label, "%d", (int)graph->operator_count);
    HBP__TRY(check_text(context, "name", label, given->name, 0));
    if (given->name)
        snprintf(label, sizeof label, "'%.80s'", given->name);
    HBP__TRY(check_text(context, "type", label, given->type, 1));
    HBP__TRY(check_text(context, "task", label, given->task, 1));
    return check_text(context, "parameters", label, given->parameters, 0);
}

static hbp_status check_sizes(hbp_context *context, const hbp_graph *graph, const char *name,
                              const hbp_operator *given)
{
    if (given->profile < -1 || given->profile >= graph->profile_count)
        return hbp__fail(context, HBP_E_INVALID,
                         "profile of operator '%.80s' is %d; there are %d profiles, from 0; -1: none", name,
                         (int)given->profile, (int)graph->profile_count);
    if (given->degrees != HBP_DEGREES_DIVISORS && given->degrees != HBP_DEGREES_PROFILED)
        return hbp__fail(context, HBP_E_INVALID, "degrees of operator '%.80s' is %d; it must be in 0..1",
                         name, (int)given->degrees);
    hbp_operator sizes = *given;
    sizes.profile = 0;
#define CHECK(field, type)                                                                                   \
    if (sizes.field < 0)                                                                                     \
        return hbp__fail(context, HBP_E_INVALID,                                                             \
                         #field " of operator '%.80s' is %lld; it must not be negative", name,               \
                         (long long)sizes.field);
    HBP__OPERATOR_NUMBERS(CHECK)
#undef CHECK
    return HBP_OK;
}

/* What all sizes come to with `count` such operators; above MOST_BYTES when that is too much. */
static int64_t bytes_with(const hbp_graph *graph, const hbp_operator *given, int64_t count)
{
    int64_t each = hbp__add_saturating(given->state_bytes, given->sharded_bytes);
    each = hbp__add_saturating(each, given->activation_bytes);
    each = hbp__add_saturating(each, given->gradient_bytes);
    each = hbp__mul_saturating(hbp__add_saturating(each, given->output_bytes), count);
    each = hbp__add_saturating(each, hbp__mul_saturating(given->output_bytes, count - 1)); /* edges */
    return hbp__add_saturating(graph->bytes, each);
}

static hbp_status check_operators(hbp_context *context, const hbp_graph *graph, const hbp_operator *given,
                                  const char *name, int64_t count)
{
    HBP__TRY(check_texts(context, graph, given));
    HBP__TRY(check_sizes(context, graph, name, given));
    if (count < 1)
        return hbp__fail(context, HBP_E_INVALID, "count of operator '%.80s' is %lld; it must be at least 1",
                         name, (long long)count);
    if (count > INT32_MAX - graph->operator_count)
        return hbp__fail(context, HBP_E_OVERFLOW,
                         "count of operator '%.80s' is %lld; after %d operators at most %d can follow", name,
                         (long long)count, (int)graph->operator_count,
                         (int)(INT32_MAX - graph->operator_count));
    if (bytes_with(graph, given, count) > MOST_BYTES)
        return hbp__fail(context, HBP_E_OVERFLOW,
                         "with operator '%.80s' all sizes sum to more than 2^62 bytes", name);
    return HBP_OK;
}

static int grow_operators(hbp_graph *graph)
{
    if (graph->operator_count < graph->operator_room)
        return 1;
    uint64_t room = (uint64_t)hbp__min_i64(2 * (int64_t)graph->operator_room + FIRST_ROOM, INT32_MAX);
    hbp__operator *operators = hbp__renew(&graph->memory, graph->operators, room, sizeof *operators);
    graph->operators = operators ? operators : graph->operators;
    int32_t *task_of = hbp__renew(&graph->memory, graph->task_of, room, sizeof *task_of);
    graph->task_of = task_of ? task_of : graph->task_of;
    int32_t *parameters_of = hbp__renew(&graph->memory, graph->parameters_of, room, sizeof *parameters_of);
    graph->parameters_of = parameters_of ? parameters_of : graph->parameters_of;
    if (!operators || !task_of || !parameters_of)
        return 0;
    graph->operator_room = (int32_t)room;
    return 1;
}

/* The number of a name, which is added when it is not there; -1 when memory is short. */
static int32_t number_of(hbp_graph *graph, hbp__names *names, const char *text)
{
    int32_t number = hbp__names_find(names, text);
    if (number < 0 && hbp__names_add(&graph->memory, names, text))
        number = names->count - 1;
    return number;
}

/* Adds one operator under this name. */
static hbp_status put_operator(hbp_context *context, hbp_graph *graph, const hbp_operator *given,
                               const char *name, const char *parameters)
{
    if (hbp__names_find(&graph->operator_names, name) >= 0)
        return hbp__fail(context, HBP_E_INVALID, "name of operator %d is '%.80s'; operator %d has it already",
                         (int)graph->operator_count, name,
                         (int)hbp__names_find(&graph->operator_names, name));
    hbp__operator o = {.type = number_of(graph, &graph->types, given->type),
                       .task = number_of(graph, &graph->tasks, given->task),
                       .parameters = number_of(graph, &graph->parameters, parameters)};
    if (o.type < 0 || o.task < 0 || o.parameters < 0 || !grow_operators(graph) ||
        !hbp__names_add(&graph->memory, &graph->operator_names, name))
        return hbp__fail_memory(context, "an operator");
#define COPY(field, type) o.field = given->field;
    HBP__OPERATOR_NUMBERS(COPY)
#undef COPY
    o.name = graph->operator_names.name[graph->operator_count];
    if (o.batch == 0 && o.split == 0) /* nothing is known of what divides it */
        o.degrees = HBP_DEGREES_PROFILED;
    o.batch += !o.batch;
    o.sequence += !o.sequence;
    o.width += !o.width;
    o.split += !o.split;
    o.least_gpus += !o.least_gpus;
    graph->task_of[graph->operator_count] = o.task;
    graph->parameters_of[graph->operator_count] = o.parameters;
    graph->operators[graph->operator_count++] = o;
    return HBP_OK;
}

/* The name of member i of `count`. */
static void write_name(char *text, uint64_t room, const char *base, int64_t count, int64_t i)
{
    if (count > 1)
        snprintf(text, (size_t)room, "%s[%lld]", base, (long long)i);
    else
        snprintf(text, (size_t)room, "%s", base);
}

/* Adds a chain. `text` [2 x room] has room for the longest names. */
static hbp_status put_chain(hbp_context *context, hbp_graph *graph, const hbp_operator *given,
                            const char *name, int64_t count, char *text, uint64_t room)
{
    for (int64_t i = 0; i < count; i++) {
        if (i % TICK == TICK - 1)
            HBP__TRY(hbp__tick(context, "operators", i, count));
        write_name(text, room, name, count, i);
        write_name(text + room, room, given->parameters ? given->parameters : name, count, i);
        HBP__TRY(put_operator(context, graph, given, text, text + room));
        if (i)
            HBP__TRY(put_edge(context, graph, graph->operator_count - 2, graph->operator_count - 1,
                              given->output_bytes));
    }
    return HBP_OK;
}

/* Takes back what came after `before`, whose counts alone are looked at. Slots are freed as in
 * hbp__names_cut. */
static void cut_back(hbp_graph *graph, const hbp_graph *before)
{
    while (graph->edge_count > before->edge_count) {
        int64_t last = --graph->edge_count;
        graph->edge_slot[find_slot(graph, graph->edge_from[last], graph->edge_to[last])] = 0;
    }
    hbp__names_cut(&graph->memory, &graph->types, before->types.count);
    hbp__names_cut(&graph->memory, &graph->tasks, before->tasks.count);
    hbp__names_cut(&graph->memory, &graph->parameters, before->parameters.count);
    hbp__names_cut(&graph->memory, &graph->operator_names, before->operator_names.count);
    graph->operator_count = before->operator_count;
}

hbp_status hbp__graph_add_operators(hbp_context *context, hbp_graph *graph, const hbp_operator *fields,
                                    int64_t count, int32_t *first)
{
    hbp_operator given;
    HBP__TRY(hbp__options_read(context, &given, sizeof given, fields, "hbp_operator"));
    char number[32];
    snprintf(number, sizeof number, "operator %d", (int)graph->operator_count);
    const char *name = given.name ? given.name : number;
    HBP__TRY(check_operators(context, graph, &given, name, count));
    uint64_t longest = strlen(name), weights = given.parameters ? strlen(given.parameters) : 0;
    uint64_t room = (longest > weights ? longest : weights) + NAME_MORE;
    char *text = hbp__new(&context->memory, 2, room);
    if (!text)
        return hbp__fail_memory(context, "an operator");
    hbp_graph before = *graph;
    hbp_status status = put_chain(context, graph, &given, name, count, text, room);
    hbp__delete(&context->memory, text);
    if (status < 0) {
        cut_back(graph, &before);
        return status;
    }
    graph->bytes = bytes_with(graph, &given, count);
    if (first)
        *first = before.operator_count;
    return HBP_OK;
}

hbp_status hbp_graph_add_operators(hbp_context *context, hbp_graph *graph, const hbp_operator *fields,
                                   int64_t count, int32_t *first)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, graph, "graph"));
    HBP__TRY(hbp__require(context, fields, "fields"));
    return hbp__graph_add_operators(context, graph, fields, count, first);
}

hbp_status hbp_graph_get_view(const hbp_graph *graph, hbp_graph_view *view)
{
    hbp_graph_view all = {0};
    if (graph)
        all = (hbp_graph_view){.operators = graph->operator_count,
                               .edges = graph->edge_count,
                               .profiles = graph->profile_count,
                               .tasks = graph->tasks.count,
                               .parameters = graph->parameters.count,
                               .operator_tasks = graph->task_of,
                               .operator_parameters = graph->parameters_of,
                               .task_names = (const char *const *)graph->tasks.name,
                               .parameter_names = (const char *const *)graph->parameters.name,
                               .edge_from = graph->edge_from,
                               .edge_to = graph->edge_to,
                               .edge_bytes = graph->edge_bytes,
                               .profile_offsets = graph->profile_first,
                               .point_gpus = graph->point_gpus,
                               .point_ns = graph->point_ns};
    return hbp__view_write(view, graph, &all, sizeof all);
}

hbp_status hbp_graph_get_operator(hbp_context *context, const hbp_graph *graph, int64_t index,
                                  hbp_operator *fields)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, graph, "graph"));
    if (index < 0 || index >= graph->operator_count)
        return hbp__fail(context, HBP_E_INVALID, "there is no operator %lld; there are %d", (long long)index,
                         (int)graph->operator_count);
    const hbp__operator *o = &graph->operators[index];
    hbp_operator all = {.struct_size = sizeof all,
                        .name = o->name,
                        .type = graph->types.name[o->type],
                        .task = graph->tasks.name[o->task],
                        .parameters = graph->parameters.name[o->parameters]};
#define COPY(field, type) all.field = o->field;
    HBP__OPERATOR_NUMBERS(COPY)
#undef COPY
    return hbp__struct_write(context, fields, &all, sizeof all, "hbp_operator");
}

/* Length, then eight bytes a word, the first lowest. */
static void digest_text(hbp__digest *digest, const char *text)
{
    size_t bytes = strlen(text);
    hbp__digest_u64(digest, bytes);
    for (size_t at = 0; at < bytes; at += 8) {
        uint64_t word = 0;
        for (size_t i = 0; i < 8 && at + i < bytes; i++)
            word |= (uint64_t)(unsigned char)text[at + i] << 8 * i;
        hbp__digest_u64(digest, word);
    }
}

static void digest_names(hbp__digest *digest, const hbp__names *names)
{
    hbp__digest_u64(digest, (uint64_t)names->count);
    for (int32_t i = 0; i < names->count; i++)
        digest_text(digest, names->name[i]);
}

uint64_t hbp__graph_digest(const hbp_graph *graph)
{
    hbp__digest digest = hbp__digest_begin();
    hbp__digest_u64(&digest, (uint64_t)graph->profile_count);
    for (int32_t i = 0; i < graph->profile_count; i++) {
        const hbp__profile profile = hbp__graph_profile(graph, i);
        hbp__digest_column_i32(&digest, profile.gpus, profile.points);
        hbp__digest_column_i64(&digest, profile.ns, profile.points);
    }
    digest_names(&digest, &graph->types);
    digest_names(&digest, &graph->tasks);
    digest_names(&digest, &graph->parameters);
    digest_names(&digest, &graph->operator_names);
    for (int32_t i = 0; i < graph->operator_count; i++) {
        const hbp__operator *o = &graph->operators[i];
        hbp__digest_u64(&digest, (uint64_t)o->type);
        hbp__digest_u64(&digest, (uint64_t)o->task);
        hbp__digest_u64(&digest, (uint64_t)o->parameters);
#define ADD(field, type) hbp__digest_u64(&digest, (uint64_t)(int64_t)o->field);
        HBP__OPERATOR_NUMBERS(ADD)
#undef ADD
    }
    hbp__digest_u64(&digest, (uint64_t)graph->edge_count);
    for (int64_t e = 0; e < graph->edge_count; e++) {
        hbp__digest_u64(&digest, (uint64_t)graph->edge_from[e]);
        hbp__digest_u64(&digest, (uint64_t)graph->edge_to[e]);
        hbp__digest_u64(&digest, (uint64_t)graph->edge_bytes[e]);
    }
    return hbp__digest_end(&digest);
}
