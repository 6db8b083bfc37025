#include "io/cost/cost_file.h"
#include "hbp/io.h"

#include <string.h>

#include "base/checked.h"
#include "base/options.h"
#include "cost/cost.h"
#include "io/file/file_error.h"
#include "io/file/stream.h"
#include "io/json/json_tree.h"
#include "io/value/value_out.h"

#define FORMAT "hbp cost"
/* 3 with overlap, 2 with lockstep sets; a file has the least version that says all of its cost. */
#define VERSION    3
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

/* What a file is written of. */
typedef struct content {
    const hbp_cost *cost;
    const hbp_cost_file_options *options;
} content;

/* {"value": value, "source": where from} under the term's name; the caller writes the value. */
static void begin_term(hbp__value_out *out, const char *name)
{
    hbp__put_key(out, name);
    hbp__put_map(out, 2);
    hbp__put_key(out, "value");
}

static void end_term(hbp__value_out *out, const char *source)
{
    hbp__put_key(out, "source");
    hbp__put_text(out, source);
}

static void put_table(hbp__value_out *out, const hbp_cost_terms *t, const double *rows)
{
    hbp__put_list(out, t->degrees);
    for (int32_t i = 0; i < t->degrees; i++)
        if (rows)
            hbp__put_real(out, rows[i]);
        else
            hbp__put_i64(out, t->degree[i]);
}

static void put_terms(hbp__value_out *out, const hbp_cost *cost)
{
    const hbp_cost_terms *t = &cost->terms;
    int64_t count = 0;
#define COUNT(name) count++;
    HBP__COST_WHOLE_NUMBERS(COUNT)
    HBP__COST_NUMBERS(COUNT)
    HBP__COST_VISION_NUMBERS(COUNT)
    if (t->lockstep_ranks) {
        HBP__COST_LOCKSTEP_NUMBERS(COUNT)
    }
    if (hbp__cost_bends(t)) {
        HBP__COST_OVERLAP_NUMBERS(COUNT)
    }
    COUNT(degrees)
    COUNT(degree)
    HBP__COST_TABLES(COUNT)
#undef COUNT
    hbp__put_map(out, count);
#define PUT(name, value)                                                                                     \
    begin_term(out, #name);                                                                                  \
    value;                                                                                                   \
    end_term(out, cost->source[HBP__COST_##name]);
#define PUT_WHOLE(name)  PUT(name, hbp__put_i64(out, t->name))
#define PUT_NUMBER(name) PUT(name, hbp__put_real(out, t->name))
#define PUT_TABLE(name)  PUT(name, put_table(out, t, t->name))
    HBP__COST_WHOLE_NUMBERS(PUT_WHOLE)
    HBP__COST_NUMBERS(PUT_NUMBER)
    HBP__COST_VISION_NUMBERS(PUT_NUMBER)
    if (t->lockstep_ranks) {
        HBP__COST_LOCKSTEP_NUMBERS(PUT_WHOLE)
    }
    if (hbp__cost_bends(t)) {
        HBP__COST_OVERLAP_NUMBERS(PUT_NUMBER)
    }
    PUT_WHOLE(degrees)
    PUT(degree, put_table(out, t, NULL))
    HBP__COST_TABLES(PUT_TABLE)
#undef PUT_TABLE
#undef PUT_NUMBER
#undef PUT_WHOLE
#undef PUT
}

static int32_t find_version(const hbp_cost_terms *t)
{
    return hbp__cost_bends(t) ? 3 : t->lockstep_ranks ? 2 : 1;
}

static void put_cost(hbp__value_out *out, const void *object)
{
    const content *c = object;
    const struct {
        const char *key;
        const char *text;
    } texts[] = {{"model", c->options->model},
                 {"machine", c->options->machine},
                 {"note", c->options->note ? c->options->note : ""}};
    hbp__put_map(out, 9);
    hbp__put_key(out, "format");
    hbp__put_text(out, FORMAT);
    hbp__put_key(out, "version");
    hbp__put_i64(out, find_version(&c->cost->terms));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        hbp__put_key(out, texts[i].key);
        hbp__put_text(out, texts[i].text);
    }
    hbp__put_key(out, "heads");
    hbp__put_i64(out, c->cost->heads);
    hbp__put_key(out, "kv_heads");
    hbp__put_i64(out, c->cost->kv_heads);
    hbp__put_key(out, "zero_stage");
    hbp__put_i64(out, c->cost->zero_stage);
    hbp__put_key(out, "terms");
    put_terms(out, c->cost);
}

hbp_status hbp_cost_save(hbp_context *context, const hbp_cost *cost, const char *path,
                         const hbp_cost_file_options *options)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, cost, "cost"));
    HBP__TRY(hbp__require(context, path, "path"));
    hbp_cost_file_options all;
    HBP__TRY(read_options(context, cost, options, &all));
    return hbp__json_save(context, "a cost file", put_cost, &(content){cost, &all}, path);
}

/* A term's value and source; HBP_E_FORMAT where it is not there, or not a number or table as asked. With
 * `bare` set, terms are their values alone. */
static hbp_status find_term(hbp_context *context, const hbp__value *terms, int bare, const char *name,
                            int table, const hbp__value **value, const char **source)
{
    const hbp__value *term = hbp__value_find(terms, name);
    if (!term)
        return hbp__fail(context, HBP_E_FORMAT, "there is no term '%s'", name);
    *value = bare ? term : hbp__value_find(term, "value");
    const hbp__value *text = bare ? NULL : hbp__value_find(term, "source");
    if (!(table ? hbp__value_is(*value, HBP__LIST) : hbp__value_is_number(*value)))
        return hbp__fail(context, HBP_E_FORMAT, "the 'value' of term '%s' is no %s", name,
                         table ? "list" : "number");
    if (bare)
        return HBP_OK;
    if (!hbp__value_is(text, HBP__TEXT) || strlen(hbp__value_text(text)) >= HBP__COST_SOURCE_BYTES)
        return hbp__fail(context, HBP_E_FORMAT, "the 'source' of term '%s' is no text of at most %d bytes",
                         name, HBP__COST_SOURCE_BYTES - 1);
    *source = hbp__value_text(text);
    return HBP_OK;
}

/* A whole number in [0, most]. */
static hbp_status read_whole(hbp_context *context, const hbp__value *value, const char *name, int64_t most,
                             int64_t *out)
{
    *out = 0;
    if (!hbp__value_is(value, HBP__WHOLE) || hbp__value_whole(value) < 0 || hbp__value_whole(value) > most)
        return hbp__fail(context, HBP_E_FORMAT, "'%s' is no whole number in 0..%lld", name, (long long)most);
    *out = hbp__value_whole(value);
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
    int has_lockstep;
    int has_vision;
    int has_overlap;
    int bare; /* terms are their values alone, without where they came from */
} draft;

/* A whole number into a field of `bytes` bytes, 4 or 8. */
static hbp_status read_field(hbp_context *context, const hbp__value *value, const char *name, void *field,
                             size_t bytes)
{
    int64_t whole;
    HBP__TRY(read_whole(context, value, name, bytes == sizeof whole ? INT64_MAX : INT32_MAX, &whole));
    int32_t narrow = (int32_t)whole;
    memcpy(field, bytes == sizeof whole ? (void *)&whole : (void *)&narrow, bytes);
    return HBP_OK;
}

static hbp_status read_numbers(hbp_context *context, const hbp__value *terms, draft *d)
{
    const hbp__value *value;
#define READ(name)                                                                                           \
    HBP__TRY(find_term(context, terms, d->bare, #name, 0, &value, &d->source[HBP__COST_##name]));            \
    HBP__TRY(read_field(context, value, #name, &d->terms.name, sizeof d->terms.name));
    HBP__COST_WHOLE_NUMBERS(READ)
    if (!d->bare) {
        READ(degrees)
    }
    if (d->has_lockstep) {
        HBP__COST_LOCKSTEP_NUMBERS(READ)
    }
#undef READ
#define READ(name)                                                                                           \
    HBP__TRY(find_term(context, terms, d->bare, #name, 0, &value, &d->source[HBP__COST_##name]));            \
    d->terms.name = hbp__value_real(value);
    HBP__COST_NUMBERS(READ)
    if (d->has_vision) {
        HBP__COST_VISION_NUMBERS(READ)
    }
    if (d->has_overlap) {
        HBP__COST_OVERLAP_NUMBERS(READ)
    }
#undef READ
    return HBP_OK;
}

/* The list of a table, of as many rows as there are degrees. */
static hbp_status find_table(hbp_context *context, const hbp__value *terms, draft *d, const char *name,
                             int32_t index, const hbp__value **list)
{
    HBP__TRY(find_term(context, terms, d->bare, name, 1, list, &d->source[index]));
    if (hbp__value_count(*list) == (uint32_t)d->terms.degrees)
        return HBP_OK;
    return hbp__fail(context, HBP_E_FORMAT, "term '%s' has %llu rows; there are %d degrees", name,
                     (unsigned long long)hbp__value_count(*list), (int)d->terms.degrees);
}

static hbp_status read_tables(hbp_context *context, const hbp__value *terms, draft *d)
{
    const hbp__value *list;
    const uint64_t rows = (uint64_t)d->terms.degrees;
    /* The lists bound what is allocated: a hostile number of degrees does not. */
    HBP__TRY(find_table(context, terms, d, "degree", HBP__COST_degree, &list));
    d->degree = hbp__new(&context->memory, rows, sizeof *d->degree);
    d->tables[0] = hbp__new(&context->memory, rows, sizeof *d->tables[0]);
    d->tables[1] = hbp__new(&context->memory, rows, sizeof *d->tables[1]);
    if (!d->degree || !d->tables[0] || !d->tables[1])
        return hbp__fail_memory(context, "a cost");
    uint64_t i = 0;
    HBP__EACH(list, degree)
    {
        HBP__TRY(read_field(context, degree, "degree", &d->degree[i++], sizeof *d->degree));
    }
    double **table = d->tables;
#define READ(name)                                                                                           \
    HBP__TRY(find_table(context, terms, d, #name, HBP__COST_##name, &list));                                 \
    i = 0;                                                                                                   \
    HBP__EACH(list, row)                                                                                     \
    {                                                                                                        \
        if (!hbp__value_is_number(row))                                                                      \
            return hbp__fail(context, HBP_E_FORMAT, "row %llu of term '%s' is no number",                    \
                             (unsigned long long)i, #name);                                                  \
        (*table)[i++] = hbp__value_real(row);                                                                \
    }                                                                                                        \
    d->terms.name = *table++;
    HBP__COST_TABLES(READ)
#undef READ
    d->terms.degree = d->degree;
    return HBP_OK;
}

/* Heads: both 0, then every listed degree is legal, or neither. */
static hbp_status read_shape(hbp_context *context, const hbp__value *root, draft *d)
{
    HBP__TRY(read_whole(context, hbp__value_find(root, "heads"), "heads", MOST_HEADS, &d->heads));
    HBP__TRY(read_whole(context, hbp__value_find(root, "kv_heads"), "kv_heads", d->heads, &d->kv_heads));
    if (d->heads && !d->kv_heads)
        return hbp__fail(context, HBP_E_FORMAT, "'kv_heads' is 0 of %lld heads", (long long)d->heads);
    return read_whole(context, hbp__value_find(root, "zero_stage"), "zero_stage", HBP_ZERO_NONE,
                      &d->zero_stage);
}

static hbp_status find_name(hbp_context *context, const hbp__value *root, const char *key, const char **name)
{
    const hbp__value *value = hbp__value_find(root, key);
    *name = value ? hbp__value_text(value) : "";
    if (!*name || strlen(*name) >= HBP__COST_NAME_BYTES)
        return hbp__fail(context, HBP_E_FORMAT, "'%s' is no text of at most %d bytes", key,
                         HBP__COST_NAME_BYTES - 1);
    return HBP_OK;
}

static hbp_status read_cost(hbp_context *context, const hbp__value *root, draft *d, hbp_cost **out)
{
    const hbp__value *terms = hbp__value_find(root, "terms");
    const char *model;
    const char *machine;
    HBP__TRY(find_name(context, root, "model", &model));
    HBP__TRY(find_name(context, root, "machine", &machine));
    HBP__TRY(read_shape(context, root, d));
    if (!hbp__value_is(terms, HBP__MAP))
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

static hbp_status check_header(hbp_context *context, const char *file, const hbp__value *root,
                               int64_t *number)
{
    const hbp__value *format = hbp__value_find(root, "format");
    const hbp__value *version = hbp__value_find(root, "version");
    if (!hbp__value_is(format, HBP__TEXT) || strcmp(hbp__value_text(format), FORMAT) != 0)
        return hbp__fail(context, HBP_E_FORMAT, "'format' is not \"" FORMAT "\"");
    if (!hbp__value_is(version, HBP__WHOLE))
        return hbp__fail(context, HBP_E_FORMAT, "'version' is not a whole number");
    *number = hbp__value_whole(version);
    if (*number < 1 || *number > VERSION)
        return hbp__fail(context, HBP_E_VERSION,
                         "%s: a cost file of version %lld; this library reads 1 to %d", file,
                         (long long)*number, VERSION);
    return HBP_OK;
}

static void free_draft(hbp_context *context, draft *d)
{
    hbp__delete(&context->memory, d->degree);
    hbp__delete(&context->memory, d->tables[0]);
    hbp__delete(&context->memory, d->tables[1]);
}

hbp_status hbp__cost_read(hbp_context *context, const char *name, const char *text, int64_t bytes,
                          hbp_cost **out)
{
    *out = NULL;
    hbp__document document;
    HBP__TRY(hbp__json_tree(context, name, text, bytes, &document));
    const hbp__value *root = document.values;
    draft d = {.terms.struct_size = sizeof d.terms, .has_vision = 1};
    int64_t version = 0;
    hbp_status status = check_header(context, name, root, &version);
    const hbp__value *terms = hbp__value_find(root, "terms");
    d.has_lockstep = version == 2 || hbp__value_find(terms, "lockstep_ranks") != NULL;
    d.has_overlap = version > 2;
    if (status == HBP_OK)
        status = read_cost(context, root, &d, out);
    free_draft(context, &d);
    hbp__document_free(&document);
    return status < 0 ? hbp__blame_file(context, name, status) : HBP_OK;
}

hbp_status hbp__cost_read_values(hbp_context *context, const hbp__value *terms, const char *source,
                                 hbp_cost **out)
{
    draft d = {.terms.struct_size = sizeof d.terms,
               .has_lockstep = hbp__value_find(terms, "lockstep_ranks") != NULL,
               .has_vision = hbp__value_find(terms, "ns_per_vision") != NULL,
               .has_overlap = hbp__value_find(terms, "traffic_ns") != NULL,
               .bare = 1};
    const uint32_t rows = hbp__value_count(hbp__value_find(terms, "degree"));
    d.terms.degrees = (int32_t)hbp__min_i64(rows, INT32_MAX);
    hbp_status status = read_numbers(context, terms, &d);
    if (status == HBP_OK)
        status = read_tables(context, terms, &d);
    if (status == HBP_OK)
        status = hbp__cost_make(context, &d.terms, source, out);
    free_draft(context, &d);
    return status;
}
