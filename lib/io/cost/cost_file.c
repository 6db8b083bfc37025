#include "io/cost/cost_file.h"
#include "hbp/io.h"

#include <string.h>

#include "base/options.h"
#include "cost/cost.h"
#include "io/file/file_error.h"
#include "io/file/stream.h"
#include "io/json/json_tree.h"

#define FORMAT     "hbp cost"
#define VERSION    2 /* with lockstep sets; without, files are of version 1 */
#define NOTE_BYTES (1 << 20)
#define MOST_HEADS (1 << 20)

static hbp_status check_name(hbp_context *context, const char *which, const char *name)
{
    if (strlen(name) < HBP__COST_NAME_BYTES)
        return HBP_OK;
    return hbp__fail(context, HBP_E_INVALID, "the name of the %s has %llu bytes; a cost keeps at most %d",
                     which, (unsigned long long)strlen(name), HBP__COST_NAME_BYTES - 1);
}

/* What is not given is the cost's own. */
static hbp_status read_options(hbp_context *context, const hbp_cost *cost,
                               const hbp_cost_file_options *caller, hbp_cost_file_options *all)
{
    HBP__TRY(hbp__options_read(context, all, sizeof *all, caller, "hbp_cost_file_options"));
    if (!all->model)
        all->model = cost->model_name;
    if (!all->machine)
        all->machine = cost->machine_name;
    HBP__TRY(check_name(context, "model", all->model));
    HBP__TRY(check_name(context, "machine", all->machine));
    if (all->note && strlen(all->note) > NOTE_BYTES)
        return hbp__fail(context, HBP_E_INVALID, "the note has %llu bytes; the file holds at most %d",
                         (unsigned long long)strlen(all->note), NOTE_BYTES);
    return HBP_OK;
}

/* {"value": value, "source": where from} under the term's name; releases `value` also on failure. */
static int put_term(hbp_context *context, json_t *terms, const char *name, const char *source, json_t *value)
{
    json_t *term = json_object();
    if (hbp__json_give(terms, name, term))
        return hbp__json_give(term, "value", value) &&
               hbp__json_give(term, "source", hbp__json_text(&context->memory, source));
    json_decref(value);
    return 0;
}

static json_t *table_of(const hbp_cost_terms *t, const double *rows)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < t->degrees; i++)
        if (json_array_append_new(list, rows ? hbp__json_double(rows[i]) : json_integer(t->degree[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static int put_terms(hbp_context *context, json_t *terms, const hbp_cost *cost)
{
    const hbp_cost_terms *t = &cost->terms;
    int whole = 1;
#define PUT(name, value)                                                                                     \
    whole = whole && put_term(context, terms, #name, cost->source[HBP__COST_##name], value);
#define PUT_WHOLE(name)  PUT(name, json_integer(t->name))
#define PUT_NUMBER(name) PUT(name, hbp__json_double(t->name))
#define PUT_TABLE(name)  PUT(name, table_of(t, t->name))
    HBP__COST_WHOLE_NUMBERS(PUT_WHOLE)
    HBP__COST_NUMBERS(PUT_NUMBER)
    HBP__COST_VISION_NUMBERS(PUT_NUMBER)
    if (cost->terms.lockstep_ranks) {
        HBP__COST_LOCKSTEP_NUMBERS(PUT_WHOLE)
    }
    PUT_WHOLE(degrees)
    PUT(degree, table_of(t, NULL))
    HBP__COST_TABLES(PUT_TABLE)
#undef PUT_TABLE
#undef PUT_NUMBER
#undef PUT_WHOLE
#undef PUT
    return whole;
}

/* NULL when memory is short. */
static json_t *build_document(hbp_context *context, const hbp_cost *cost, const hbp_cost_file_options *o)
{
    const hbp__memory *memory = &context->memory;
    json_t *root = json_object();
    json_t *terms = json_object();
    int whole = hbp__json_give(root, "format", json_string(FORMAT)) &&
                hbp__json_give(root, "version", json_integer(cost->terms.lockstep_ranks ? VERSION : 1)) &&
                hbp__json_give(root, "model", hbp__json_text(memory, o->model)) &&
                hbp__json_give(root, "machine", hbp__json_text(memory, o->machine)) &&
                hbp__json_give(root, "note", hbp__json_text(memory, o->note ? o->note : "")) &&
                hbp__json_give(root, "heads", json_integer(cost->heads)) &&
                hbp__json_give(root, "kv_heads", json_integer(cost->kv_heads)) &&
                hbp__json_give(root, "zero_stage", json_integer(cost->zero_stage)) &&
                hbp__json_give(root, "terms", json_incref(terms)) && put_terms(context, terms, cost);
    json_decref(terms);
    if (whole)
        return root;
    json_decref(root);
    return NULL;
}

hbp_status hbp_cost_save(hbp_context *context, const hbp_cost *cost, const char *path,
                         const hbp_cost_file_options *options)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, cost, "cost"));
    HBP__TRY(hbp__require(context, path, "path"));
    hbp_cost_file_options all;
    HBP__TRY(read_options(context, cost, options, &all));
    json_t *root = build_document(context, cost, &all);
    hbp_status status = hbp__json_save(context, root, "a cost file", path);
    json_decref(root);
    return status;
}

/* A term's value and source; HBP_E_FORMAT where it is not there, or not a number or table as asked. */
static hbp_status find_term(hbp_context *context, const json_t *terms, const char *name, int table,
                            const json_t **value, const char **source)
{
    const json_t *term = json_object_get(terms, name);
    if (!term)
        return hbp__fail(context, HBP_E_FORMAT, "there is no term '%s'", name);
    *value = json_object_get(term, "value");
    const json_t *text = json_object_get(term, "source");
    if (!(table ? json_is_array(*value) : json_is_number(*value)))
        return hbp__fail(context, HBP_E_FORMAT, "the 'value' of term '%s' is no %s", name,
                         table ? "list" : "number");
    if (!json_is_string(text) || strlen(json_string_value(text)) >= HBP__COST_SOURCE_BYTES)
        return hbp__fail(context, HBP_E_FORMAT, "the 'source' of term '%s' is no text of at most %d bytes",
                         name, HBP__COST_SOURCE_BYTES - 1);
    *source = json_string_value(text);
    return HBP_OK;
}

/* A whole number in [0, most]. */
static hbp_status read_whole(hbp_context *context, const json_t *value, const char *name, int64_t most,
                             int64_t *out)
{
    *out = 0;
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > most)
        return hbp__fail(context, HBP_E_FORMAT, "'%s' is no whole number in 0..%lld", name, (long long)most);
    *out = json_integer_value(value);
    return HBP_OK;
}

/* What is read before there is a cost to hold it. */
typedef struct draft {
    hbp_cost_terms terms;
    int32_t *degree;
    double *tables[2];
    const char *source[HBP__COST_TERM_COUNT]; /* texts of the tree */
    int64_t heads;
    int64_t kv_heads;
    int64_t zero_stage;
    int64_t version;
} draft;

/* A whole number into a field of `bytes` bytes, 4 or 8. */
static hbp_status read_field(hbp_context *context, const json_t *value, const char *name, void *field,
                             size_t bytes)
{
    int64_t whole;
    HBP__TRY(read_whole(context, value, name, bytes == sizeof whole ? INT64_MAX : INT32_MAX, &whole));
    int32_t narrow = (int32_t)whole;
    memcpy(field, bytes == sizeof whole ? (void *)&whole : (void *)&narrow, bytes);
    return HBP_OK;
}

static hbp_status read_numbers(hbp_context *context, const json_t *terms, draft *d)
{
    const json_t *value;
#define READ(name)                                                                                           \
    HBP__TRY(find_term(context, terms, #name, 0, &value, &d->source[HBP__COST_##name]));                     \
    HBP__TRY(read_field(context, value, #name, &d->terms.name, sizeof d->terms.name));
    HBP__COST_WHOLE_NUMBERS(READ)
    READ(degrees)
    if (d->version > 1) {
        HBP__COST_LOCKSTEP_NUMBERS(READ)
    }
#undef READ
#define READ(name)                                                                                           \
    HBP__TRY(find_term(context, terms, #name, 0, &value, &d->source[HBP__COST_##name]));                     \
    d->terms.name = json_number_value(value);
    HBP__COST_NUMBERS(READ)
    HBP__COST_VISION_NUMBERS(READ)
#undef READ
    return HBP_OK;
}

/* The list of a table, of as many rows as there are degrees. */
static hbp_status find_table(hbp_context *context, const json_t *terms, draft *d, const char *name,
                             int32_t index, const json_t **list)
{
    HBP__TRY(find_term(context, terms, name, 1, list, &d->source[index]));
    if (json_array_size(*list) == (size_t)d->terms.degrees)
        return HBP_OK;
    return hbp__fail(context, HBP_E_FORMAT, "term '%s' has %llu rows; there are %d degrees", name,
                     (unsigned long long)json_array_size(*list), (int)d->terms.degrees);
}

static hbp_status read_tables(hbp_context *context, const json_t *terms, draft *d)
{
    const json_t *list;
    const uint64_t rows = (uint64_t)d->terms.degrees;
    /* The lists bound what is allocated: a hostile number of degrees does not. */
    HBP__TRY(find_table(context, terms, d, "degree", HBP__COST_degree, &list));
    d->degree = hbp__new(&context->memory, rows, sizeof *d->degree);
    d->tables[0] = hbp__new(&context->memory, rows, sizeof *d->tables[0]);
    d->tables[1] = hbp__new(&context->memory, rows, sizeof *d->tables[1]);
    if (!d->degree || !d->tables[0] || !d->tables[1])
        return hbp__fail_memory(context, "a cost");
    for (uint64_t i = 0; i < rows; i++)
        HBP__TRY(read_field(context, json_array_get(list, i), "degree", &d->degree[i], sizeof *d->degree));
    double **table = d->tables;
#define READ(name)                                                                                           \
    HBP__TRY(find_table(context, terms, d, #name, HBP__COST_##name, &list));                                 \
    for (uint64_t i = 0; i < rows; i++) {                                                                    \
        if (!json_is_number(json_array_get(list, i)))                                                        \
            return hbp__fail(context, HBP_E_FORMAT, "row %llu of term '%s' is no number",                    \
                             (unsigned long long)i, #name);                                                  \
        (*table)[i] = json_number_value(json_array_get(list, i));                                            \
    }                                                                                                        \
    d->terms.name = *table++;
    HBP__COST_TABLES(READ)
#undef READ
    d->terms.degree = d->degree;
    return HBP_OK;
}

/* Heads: both 0, then every listed degree is legal, or neither. */
static hbp_status read_shape(hbp_context *context, const json_t *root, draft *d)
{
    HBP__TRY(read_whole(context, json_object_get(root, "heads"), "heads", MOST_HEADS, &d->heads));
    HBP__TRY(read_whole(context, json_object_get(root, "kv_heads"), "kv_heads", d->heads, &d->kv_heads));
    if (d->heads && !d->kv_heads)
        return hbp__fail(context, HBP_E_FORMAT, "'kv_heads' is 0 of %lld heads", (long long)d->heads);
    return read_whole(context, json_object_get(root, "zero_stage"), "zero_stage", HBP_ZERO_NONE,
                      &d->zero_stage);
}

static hbp_status find_name(hbp_context *context, const json_t *root, const char *key, const char **name)
{
    const json_t *value = json_object_get(root, key);
    *name = value ? json_string_value(value) : "";
    if (!*name || strlen(*name) >= HBP__COST_NAME_BYTES)
        return hbp__fail(context, HBP_E_FORMAT, "'%s' is no text of at most %d bytes", key,
                         HBP__COST_NAME_BYTES - 1);
    return HBP_OK;
}

static hbp_status read_cost(hbp_context *context, const json_t *root, draft *d, hbp_cost **out)
{
    const json_t *terms = json_object_get(root, "terms");
    const char *model;
    const char *machine;
    HBP__TRY(find_name(context, root, "model", &model));
    HBP__TRY(find_name(context, root, "machine", &machine));
    HBP__TRY(read_shape(context, root, d));
    if (!json_is_object(terms))
        return hbp__fail(context, HBP_E_FORMAT, "'terms' is no object");
    HBP__TRY(read_numbers(context, terms, d));
    HBP__TRY(read_tables(context, terms, d));
    hbp_cost *cost;
    HBP__TRY(hbp__cost_make(context, &d->terms, "", &cost));
    for (int32_t i = 0; i < HBP__COST_TERM_COUNT; i++)
        hbp__cost_set_source(cost, i, d->source[i] ? d->source[i] : d->source[HBP__COST_ranks]);
    hbp__cost_set_name(cost->model_name, model);
    hbp__cost_set_name(cost->machine_name, machine);
    cost->heads = (int32_t)d->heads;
    cost->kv_heads = (int32_t)d->kv_heads;
    cost->zero_stage = (int32_t)d->zero_stage;
    *out = cost;
    return HBP_OK;
}

static hbp_status check_header(hbp_context *context, const char *file, const json_t *root, int64_t *number)
{
    const json_t *format = json_object_get(root, "format");
    const json_t *version = json_object_get(root, "version");
    if (!json_is_string(format) || strcmp(json_string_value(format), FORMAT) != 0)
        return hbp__fail(context, HBP_E_FORMAT, "'format' is not \"" FORMAT "\"");
    if (!json_is_integer(version))
        return hbp__fail(context, HBP_E_FORMAT, "'version' is not a whole number");
    *number = json_integer_value(version);
    if (*number < 1 || *number > VERSION)
        return hbp__fail(context, HBP_E_VERSION,
                         "%.100s: a cost file of version %lld; this library reads 1 to %d", file,
                         (long long)*number, VERSION);
    return HBP_OK;
}

hbp_status hbp__cost_read(hbp_context *context, const char *name, const char *text, int64_t bytes,
                          hbp_cost **out)
{
    *out = NULL;
    json_t *root;
    HBP__TRY(hbp__json_tree(context, name, text, bytes, &root));
    draft d = {.terms.struct_size = sizeof d.terms};
    hbp_status status = check_header(context, name, root, &d.version);
    if (status == HBP_OK)
        status = read_cost(context, root, &d, out);
    hbp__delete(&context->memory, d.degree);
    hbp__delete(&context->memory, d.tables[0]);
    hbp__delete(&context->memory, d.tables[1]);
    json_decref(root);
    return status < 0 ? hbp__blame_file(context, name, status) : HBP_OK;
}

hbp_status hbp_cost_load(hbp_context *context, const char *path, hbp_cost **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, path, "path"));
    char *text;
    int64_t bytes;
    HBP__TRY(hbp__read_file(context, path, HBP__JSON_MOST, &text, &bytes));
    hbp_status status = hbp__cost_read(context, hbp__file_name(path), text, bytes, out);
    hbp__delete(&context->memory, text);
    return status;
}
