/* record SECTION...: prints the record of those sections, or of all. */
#include "record.h"

#include <limits.h>
#include <math.h>
#include <unistd.h>

#include "hbp/io.h"

/* --- one line ----------------------------------------------------------------------------------------------
 */

/* Temporary folders have another name in every run. */
static void print_message(const record *r, const char *message)
{
    const char *at = strstr(message, r->folder);
    if (at)
        printf(": %.*s%s\n", (int)(at - message), message, at + strlen(r->folder));
    else
        printf(": %s\n", message);
}

void record_print(const record *r, const char *asked, hbp_status status, const answer *a)
{
    if (status < 0) {
        printf("%s -> %s", asked, hbp_status_name(status));
        print_message(r, hbp_context_message(r->context));
    } else {
        printf("%s -> %016llx%s%s\n", asked, (unsigned long long)a->digest, status > 0 ? " not proven" : "",
               a->facts);
    }
}

void digest_file(answer *a, const char *path)
{
    char bytes[4096];
    int64_t count = 0;
    size_t got;
    FILE *file = fopen(path, "rb");
    while (file && (got = fread(bytes, 1, sizeof bytes, file)) > 0) {
        digest_bytes(a, bytes, got);
        count += (int64_t)got;
    }
    if (file)
        fclose(file);
    digest_number(a, file ? count : -1);
}

/* --- fields of options -------------------------------------------------------------------------------------
 */

static const int64_t whole_values[] = {-1, 1, 2, 3, 8, 1000, 40000, INT64_MAX};
static const double real_values[] = {-1, 0.25, 1, 3, 1e9, 1e300, NAN, INFINITY};
enum {
    WHOLE_VALUES = sizeof whole_values / sizeof *whole_values,
    REAL_VALUES = sizeof real_values / sizeof *real_values,
    HONEST_WHOLES = 6 /* from the second on, of those */
};

/* Numbers are drawn, but not what says how many elements an array has, nor the one by which a plan that a
 * clock cuts short may differ from run to run. */
static int is_drawn(const question *q, const hbp_field *f)
{
    static const char *const not_drawn[][2] = {
        {"hbp_step_options", "time_limit_ms"}, {"hbp_cost_terms", "degrees"},
        {"hbp_epoch_options", "threads"},      {"hbp_epoch_options", "batches"},
        {"hbp_pipeline_options", "stages"},    {"hbp_pipeline_options", "micro_batches"},
        {"hbp_stepper_options", "depth"},      {"hbp_stepper_options", "wait"},
    };
    for (size_t i = 0; i < sizeof not_drawn / sizeof *not_drawn; i++)
        if (strcmp(not_drawn[i][0], q->options) == 0 && strcmp(not_drawn[i][1], f->name) == 0)
            return 0;
    return f->type != HBP_FIELD_POINTER && (f->type != HBP_FIELD_TEXT || f->choices);
}

static int is_real(const hbp_field *f)
{
    return f->type == HBP_FIELD_DOUBLE;
}

/* The fields of the question's options that are drawn; `fields` has room for RECORD_FIELDS. */
enum { RECORD_FIELDS = 128 };
static int32_t drawn_fields(const question *q, hbp_field *fields)
{
    int32_t count = 0;
    hbp_field f = {.struct_size = sizeof f};
    for (int64_t i = 1; hbp_record_get_field(q->options, i, &f) >= 0; i++)
        if (is_drawn(q, &f) && count < RECORD_FIELDS)
            fields[count++] = f;
    return count;
}

/* Values that are allowed, and take long. */
static int is_slow(const hbp_field *f, int32_t k)
{
    return (strcmp(f->name, "rounds") == 0 && whole_values[k] > 50) ||
           (strcmp(f->name, "effort") == 0 && whole_values[k] > 3 && whole_values[k] < 10) ||
           (strcmp(f->name, "virtual_stages") == 0 && whole_values[k] > 2) ||
           (strcmp(f->name, "micro_batches_per_step") == 0 && whole_values[k] == 40000) ||
           (strcmp(f->name, "micro_batch_multiple") == 0 && whole_values[k] == 40000);
}

const char *record_method(const char *list, int64_t index)
{
    hbp_choice choice = {.struct_size = sizeof choice};
    return hbp_record_get_choice(list, index, &choice) < 0 ? "none-such" : choice.name;
}

/* Writes value `k` of the list into the field and its name into `text`. */
static void set_field(const hbp_field *f, int32_t k, void *options, char *text, size_t room)
{
    char *to = (char *)options + f->offset;
    size_t used = strlen(text);
    if (f->type == HBP_FIELD_TEXT) { /* a method */
        const char *name = record_method(f->choices, k);
        memcpy(to, &name, sizeof name);
        snprintf(text + used, room - used, " %s=%s", f->name, name);
    } else if (is_real(f)) {
        memcpy(to, &real_values[k % REAL_VALUES], sizeof(double));
        snprintf(text + used, room - used, " %s=%g", f->name, real_values[k % REAL_VALUES]);
    } else if (f->bytes == sizeof(int64_t)) {
        memcpy(to, &whole_values[k], sizeof(int64_t));
        snprintf(text + used, room - used, " %s=%lld", f->name, (long long)whole_values[k]);
    } else {
        int32_t value = (int32_t)(whole_values[k] > INT32_MAX ? INT32_MIN : whole_values[k]);
        memcpy(to, &value, sizeof value);
        snprintf(text + used, room - used, " %s=%d", f->name, (int)value);
    }
}

/* --- questions ---------------------------------------------------------------------------------------------
 */

enum { OPTIONS = 4096 };

static void start(const record *r, const question *q, int32_t variant, void *options)
{
    uint32_t size = (uint32_t)q->bytes;
    memset(options, 0, OPTIONS);
    memcpy(options, &size, sizeof size); /* struct_size comes first in every struct */
    if (q->start)
        q->start(r, variant, options);
}

static void ask(const record *r, const question *q, int32_t variant, const void *options, const char *asked)
{
    answer a = {.digest = UINT64_C(0xcbf29ce484222325)};
    hbp_status status = q->ask(r, variant, options, &a);
    record_print(r, asked, status, &a);
}

static void vary(const record *r, const question *q, int32_t variant)
{
    static _Alignas(16) char options[OPTIONS];
    hbp_field fields[RECORD_FIELDS];
    char asked[RECORD_TEXT];
    int32_t count = drawn_fields(q, fields);
    for (int32_t i = 0; i < count; i++)
        for (int32_t k = 0; k < (is_real(&fields[i]) ? REAL_VALUES : WHOLE_VALUES); k++)
            if (!is_slow(&fields[i], k)) {
                start(r, q, variant, options);
                snprintf(asked, sizeof asked, "%s/%d", q->name, (int)variant);
                set_field(&fields[i], k, options, asked, sizeof asked);
                ask(r, q, variant, options, asked);
            }
}

/* Two to four fields at once, mostly of values that are allowed. */
static void draw(const record *r, const question *q, int32_t number)
{
    static _Alignas(16) char options[OPTIONS];
    char asked[RECORD_TEXT];
    hbp_field fields[RECORD_FIELDS];
    int32_t count = drawn_fields(q, fields);
    hbp__rng rng = hbp__rng_make((uint64_t)number, 77, q->bytes);
    int32_t variant = (int32_t)hbp__rng_below(&rng, (uint64_t)q->variants);
    start(r, q, variant, options);
    snprintf(asked, sizeof asked, "%s/%d", q->name, (int)variant);
    for (uint64_t left = 2 + hbp__rng_below(&rng, 3); left > 0 && count; left--) {
        const hbp_field *f = &fields[hbp__rng_below(&rng, (uint64_t)count)];
        int32_t k = (int32_t)hbp__rng_below(&rng, is_real(f) ? 4 : WHOLE_VALUES);
        if (!is_real(f) && hbp__rng_below(&rng, 12)) /* names of methods and the like are small numbers */
            k = 1 + (int32_t)hbp__rng_below(&rng, f->bytes == sizeof(int64_t) ? HONEST_WHOLES : 3);
        if (!is_slow(f, k))
            set_field(f, k, options, asked, sizeof asked);
    }
    ask(r, q, variant, options, asked);
}

void record_draw(const record *r, const question *questions)
{
    static _Alignas(16) char options[OPTIONS];
    char asked[RECORD_TEXT];
    for (const question *q = questions; q->name; q++) {
        for (int32_t variant = 0; variant < q->variants; variant++) {
            start(r, q, variant, options);
            snprintf(asked, sizeof asked, "%s/%d", q->name, (int)variant);
            ask(r, q, variant, options, asked);
        }
        for (int32_t variant = 0; variant < q->varied; variant++)
            vary(r, q, variant);
        for (int32_t number = 0; number < q->drawn; number++)
            draw(r, q, number);
    }
}

/* Sets the field `name` of the question's options to what `value` says; 0: there is no such field. */
static int set_named(const question *q, const char *name, const char *value, void *options)
{
    hbp_field f = {.struct_size = sizeof f};
    for (int64_t i = 1; hbp_record_get_field(q->options, i, &f) >= 0; i++) {
        if (strcmp(f.name, name) != 0)
            continue;
        char *to = (char *)options + f.offset;
        double real = strtod(value, NULL);
        int64_t whole = strtoll(value, NULL, 10);
        int32_t small = (int32_t)whole;
        if (f.type == HBP_FIELD_TEXT)
            memcpy(to, &value, sizeof value);
        else if (is_real(&f))
            memcpy(to, &real, sizeof real);
        else if (f.type == HBP_FIELD_POINTER)
            return 0;
        else if (f.bytes == sizeof whole)
            memcpy(to, &whole, sizeof whole);
        else
            memcpy(to, &small, sizeof small);
        return 1;
    }
    return 0;
}

/* "fill/7 max_samples=1000 seed=3": variant 7 of question fill with two fields set. */
static void ask_line(const record *r, const question *questions, char *line)
{
    static _Alignas(16) char options[OPTIONS];
    char asked[RECORD_TEXT];
    snprintf(asked, sizeof asked, "%.*s", RECORD_TEXT - 1, line);
    char *word = strtok(line, " "), *slash = word ? strchr(word, '/') : NULL;
    const question *q = questions;
    if (slash)
        *slash = 0;
    while (slash && q->name && strcmp(q->name, word) != 0)
        q++;
    int32_t variant = slash ? (int32_t)strtol(slash + 1, NULL, 10) : -1;
    if (!slash || !q->name || variant < 0 || variant >= q->variants) {
        fprintf(stderr, "record: there is no question '%s'\n", asked);
        exit(1);
    }
    start(r, q, variant, options);
    while ((word = strtok(NULL, " ")) != NULL) {
        char *equals = strchr(word, '=');
        if (equals)
            *equals = 0;
        if (!equals || !set_named(q, word, equals + 1, options)) {
            fprintf(stderr, "record: '%s' sets no field of %s\n", asked, q->options);
            exit(1);
        }
    }
    ask(r, q, variant, options, asked);
}

void record_ask(const record *r, const question *questions, const char *path)
{
    static char line[16384];
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "record: cannot read %s\n", path);
        exit(1);
    }
    while (fgets(line, sizeof line, file)) {
        char *end = strstr(line, " -> ");
        if (end)
            *end = 0;
        ask_line(r, questions, line);
    }
    fclose(file);
}

/* --- what is asked about -----------------------------------------------------------------------------------
 */

#define MADE(call)                                                                                           \
    do {                                                                                                     \
        if ((call) < 0) {                                                                                    \
            fprintf(stderr, "record: %s: %s\n", #call, hbp_context_message(c));                              \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

static void make_lengths(record *r)
{
    static uint32_t tokens[RECORD_SAMPLES], vision[RECORD_SAMPLES], loss[RECORD_SAMPLES];
    static int64_t links[RECORD_SAMPLES];
    static int32_t kinds[RECORD_SAMPLES];
    hbp_context *c = r->context;
    hbp__rng rng = hbp__rng_make(31, 0, 0);
    for (int32_t i = 0; i < RECORD_SAMPLES; i++) {
        vision[i] = hbp__rng_below(&rng, 7);
        tokens[i] = 256 * vision[i] + 20 + hbp__rng_below(&rng, i % 40 ? 900 : 30000);
        loss[i] = hbp__rng_below(&rng, tokens[i] + UINT64_C(1));
        kinds[i] = vision[i] ? 1 + vision[i] % 2 : 0;
        links[i] = i % 5 ? -1 : i / 10;
    }
    hbp_lengths_options options = {.struct_size = sizeof options};
    MADE(hbp_lengths_create_u32(c, tokens, RECORD_SAMPLES, &options, &r->lengths[0]));
    options.links = links;
    MADE(hbp_lengths_create_u32(c, tokens, RECORD_SAMPLES, &options, &r->lengths[1]));
    options.links = NULL;
    options.vision = vision;
    options.modalities = kinds;
    MADE(hbp_lengths_create_u32(c, tokens, RECORD_SAMPLES, &options, &r->lengths[2]));
    options.vision = NULL;
    options.modalities = NULL;
    options.loss_tokens = loss;
    MADE(hbp_lengths_create_u32(c, tokens, RECORD_SAMPLES, &options, &r->lengths[3]));
    options.loss_tokens = NULL;
    MADE(hbp_lengths_create_u32(c, tokens, 7, &options, &r->lengths[4]));
}

/* 16 ranks in domains of 8, 8 layers, times and bytes of the size that a real model has. */
static void make_costs(record *r)
{
    static const int32_t degree[] = {1, 2, 4, 8};
    static const double latency[] = {0, 2e6, 2e6, 2e6}, per_token[] = {0, 900, 700, 400};
    hbp_context *c = r->context;
    hbp_cost_terms terms = {.struct_size = sizeof terms,
                            .ranks = 16,
                            .domain_ranks = 8,
                            .layers = 8,
                            .ns_per_token = 25000,
                            .ns_per_token_squared = 0.6,
                            .recompute_linear = 0.31,
                            .recompute_attention = 2.0 / 7,
                            .recompute_communication = 0.5,
                            .pack_ns = 4e7,
                            .step_ns = 1e7,
                            .static_bytes = 5e9,
                            .activation_bytes = 140000,
                            .recomputed_bytes = 8192,
                            .working_bytes = 140000,
                            .logits_bytes = 1280000,
                            .sp_buffer_bytes = 40000,
                            .limit_bytes = INT64_C(40000000000),
                            .degrees = 4,
                            .degree = degree,
                            .sp_latency_ns = latency,
                            .sp_ns_per_token = per_token};
    MADE(hbp_cost_create_terms(c, &terms, &r->cost[0]));
    terms.lockstep_ranks = 4;
    terms.degrees = 3;
    MADE(hbp_cost_create_terms(c, &terms, &r->cost[2]));
    terms.lockstep_ranks = 1;
    terms.degrees = 4;
    terms.uneven_micro_batches = 1;
    MADE(hbp_cost_create_terms(c, &terms, &r->cost[3]));
    terms.lockstep_ranks = terms.uneven_micro_batches = 0;
    terms.ns_per_vision = 9e6;
    terms.recompute_vision = 0.3;
    terms.vision_bytes = 2e8;
    MADE(hbp_cost_create_terms(c, &terms, &r->cost[4]));
    terms.ns_per_vision = terms.recompute_vision = terms.vision_bytes = 0;
    terms.ranks = terms.domain_ranks = terms.degrees = 1;
    MADE(hbp_cost_create_terms(c, &terms, &r->cost[5]));
    MADE(hbp_cost_create(c, r->model, r->machine, NULL, &r->cost[1]));
}

static void make(record *r)
{
    hbp_context *c = NULL;
    snprintf(r->folder, sizeof r->folder, "/tmp/hbp-record-XXXXXX");
    if (!mkdtemp(r->folder) || hbp_context_create(NULL, &r->context) < 0) {
        fprintf(stderr, "record: no folder in /tmp, or no memory\n");
        exit(1);
    }
    c = r->context;
    make_lengths(r);
    MADE(hbp_model_create_preset(c, "llama-3.1-8b", &r->model));
    MADE(hbp_machine_create_preset(c, "h100:2", &r->machine));
    make_costs(r);
    MADE(hbp_graph_create_workload(c, "clip-4", r->machine, &r->graph[0]));
    MADE(hbp_graph_create_workload(c, "ofasys-4", r->machine, &r->graph[1]));
    MADE(hbp_graph_create_workload(c, "qwen-val-3", r->machine, &r->graph[2]));
    MADE(hbp_plan_tasks(c, r->graph[0], r->machine, NULL, &r->schedule));
    MADE(hbp_vlm_create_preset(c, "internvl-1.5-26b", &r->vlm));
    hbp_vlm_layers_options shapes = {
        .struct_size = sizeof shapes, .tensor_parallel = 4, .vision = 9, .tokens = 4096};
    MADE(hbp_vlm_create_layers(c, r->vlm, r->machine, &shapes, &r->layers));
    MADE(hbp_plan_epoch(c, r->lengths[3], r->cost[0], NULL, &r->plan));
    static const int64_t step[] = {0, 0, 1, 1}, tokens[] = {900, 2000, 30, 4000};
    static const int64_t squares[] = {810000, 1000000, 900, 8000000}, ns[] = {500, 900, 30, 7000};
    static const int32_t micro_batch[] = {0, 1, 0, 1}, first[] = {0, 0, 2, 2}, sp[] = {1, 1, 2, 2};
    static const int32_t recompute[] = {0, 1, 0, 8};
    hbp_timeline_columns columns = {.struct_size = sizeof columns,
                                    .ranks = 4,
                                    .count = 4,
                                    .step = step,
                                    .micro_batch = micro_batch,
                                    .first_rank = first,
                                    .sp = sp,
                                    .recompute = recompute,
                                    .tokens = tokens,
                                    .sum_squares = squares,
                                    .time_ns = ns};
    MADE(hbp_timeline_create(c, &columns, &r->timeline));
}

static void drop(record *r)
{
    hbp_timeline_free(r->timeline);
    hbp_plan_free(r->plan);
    hbp_layers_free(r->layers);
    hbp_vlm_free(r->vlm);
    hbp_task_schedule_free(r->schedule);
    for (int32_t i = 0; i < RECORD_GRAPHS; i++)
        hbp_graph_free(r->graph[i]);
    for (int32_t i = 0; i < RECORD_COSTS; i++)
        hbp_cost_free(r->cost[i]);
    hbp_machine_free(r->machine);
    hbp_model_free(r->model);
    for (int32_t i = 0; i < RECORD_LENGTHS; i++)
        hbp_lengths_free(r->lengths[i]);
    hbp_context_free(r->context);
    rmdir(r->folder);
}

/* usage: record SECTION QUESTIONS     asks what the file's lines ask, up to " -> "
 *        record SECTION               draws questions, where there is no file yet */
int main(int argc, char **argv)
{
    static const struct section {
        const char *name;
        const question *questions; /* NULL: of files */
    } sections[] = {{"plans", record_plans},
                    {"vision", record_vision},
                    {"tasks", record_tasks},
                    {"costs", record_costs},
                    {"files", NULL}};
    record r = {0};
    make(&r);
    for (size_t s = 0; s < sizeof sections / sizeof *sections; s++) {
        if (argc < 2 || strcmp(argv[1], sections[s].name) != 0)
            continue;
        if (!sections[s].questions)
            record_files(&r);
        else if (argc > 2)
            record_ask(&r, sections[s].questions, argv[2]);
        else
            record_draw(&r, sections[s].questions);
    }
    drop(&r);
    return 0;
}
