#include "harm.h"
#include "hbp/io.h"

#include <locale.h>
#include <math.h>
#include <unistd.h>

#include "cost/cost.h"
#include "costs.h"
#include "io/cost/cost_file.h"
#include "io/file/stream.h"
#include "nodes.h"
#include "views.h"

static char path[64];

static void make_path(void)
{
    strcpy(path, "/tmp/hbp-cost-XXXXXX");
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
}

static hbp_cost *real_cost(hbp_context *context, int32_t zero_stage)
{
    hbp_model *model = NULL;
    hbp_machine *machine = NULL;
    hbp_cost *cost = NULL;
    OK(context, hbp_model_create_preset(context, "qwen2.5-7b", &model));
    OK(context, hbp_machine_create_preset(context, "h100:4", &machine));
    OK(context, set_collective(context, machine, 0, 4, 20500.25, 3.1e11, "measured"));
    hbp_cost_options options = {.struct_size = sizeof options};
    options.zero_stage = zero_stage;
    options.lockstep_ranks = options.uneven_micro_batches = zero_stage == HBP_ZERO_1; /* files of version 2 */
    OK(context, hbp_cost_create(context, model, machine, &options, &cost));
    hbp_model_free(model);
    hbp_machine_free(machine);
    return cost;
}

static int same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static void check_same_terms(const hbp_cost *a, const hbp_cost *b)
{
    const hbp_cost_terms *x = &a->terms, *y = &b->terms;
#define SAME(name) ck_assert_msg(x->name == y->name, #name);
    HBP__COST_WHOLE_NUMBERS(SAME)
    HBP__COST_LOCKSTEP_NUMBERS(SAME)
    SAME(degrees)
#undef SAME
#define SAME(name) ck_assert_msg(same_bits(x->name, y->name), #name);
    HBP__COST_NUMBERS(SAME)
    HBP__COST_VISION_NUMBERS(SAME)
#undef SAME
    for (int32_t i = 0; i < x->degrees; i++) {
        ck_assert_int_eq(x->degree[i], y->degree[i]);
        ck_assert(same_bits(x->sp_latency_ns[i], y->sp_latency_ns[i]));
        ck_assert(same_bits(x->sp_ns_per_token[i], y->sp_ns_per_token[i]));
    }
}

static void check_same(const hbp_cost *a, const hbp_cost *b)
{
    check_same_terms(a, b);
    for (int32_t i = 0; i < HBP__COST_TERM_COUNT; i++)
        ck_assert_str_eq(a->source[i], b->source[i]);
    ck_assert(a->heads == b->heads && a->kv_heads == b->kv_heads && a->zero_stage == b->zero_stage);
}

static hbp_cost *round_trip(hbp_context *context, const hbp_cost *cost, const hbp_cost_file_options *options)
{
    hbp_cost *read = NULL;
    OK(context, hbp_cost_save(context, cost, path, options));
    OK(context, hbp_cost_load(context, path, &read));
    check_same(cost, read);
    return read;
}

static uint64_t digest_of_plan(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost)
{
    hbp_epoch_options options = {.struct_size = sizeof options};
    hbp_plan *plan = NULL;
    OK(context, hbp_plan_epoch(context, lengths, cost, &options, &plan));
    uint64_t digest = plan_digest(plan);
    hbp_plan_free(plan);
    return digest;
}

START_TEST(a_loaded_cost_plans_as_the_saved_one)
{
    hbp_context *context = test_context();
    make_path();
    hbp_lengths *lengths = test_long_tail(context, 5, TEST_FEW(500, 120), 60000);
    for (int32_t stage = HBP_ZERO_2; stage <= HBP_ZERO_3; stage++) {
        hbp_cost *cost = real_cost(context, stage);
        hbp_cost *read = round_trip(context, cost, NULL);
        ck_assert_str_eq(hbp_cost_get_model_name(read), "qwen2.5-7b");
        ck_assert_str_eq(hbp_cost_get_machine_name(read), hbp_cost_get_machine_name(cost));
        ck_assert_ptr_nonnull(strstr(hbp_cost_get_machine_name(read), "h100"));
        ck_assert_int_eq(cost->heads, 28);
        ck_assert_uint_eq(digest_of_plan(context, lengths, cost), digest_of_plan(context, lengths, read));
        hbp_cost_free(read);
        hbp_cost_free(cost);
    }
    hbp_lengths_free(lengths);
    unlink(path);
    hbp_context_free(context);
}
END_TEST

START_TEST(every_bit_survives)
{
    hbp_context *context = test_context();
    make_path();
    hbp_cost *given = test_cost(context), *cost = NULL;
    hbp_cost_terms terms = given->terms;
    double latency[TEST_DEGREES] = {-0., 0x1p-1074, 1e300 / 3, .1 + .2};
    double slope[TEST_DEGREES] = {0x1.fffffffffffffp1023, 5e-324, 9007199254740993., 1. / 3};
    terms.sp_latency_ns = latency;
    terms.sp_ns_per_token = slope;
    terms.ns_per_token = 1e15 / 7;
    terms.ns_per_token_squared = 0x1.123456789abcdp-30;
    terms.ns_per_vision = 3.5;
    terms.limit_bytes = INT64_MAX;
    OK(context, hbp_cost_create_terms(context, &terms, &cost));
    hbp_cost_free(round_trip(context, cost, NULL));
    setlocale(LC_NUMERIC, "de_DE.UTF-8");
    hbp_cost_free(round_trip(context, cost, NULL));
    setlocale(LC_NUMERIC, "C");
    ck_assert_str_eq(hbp_cost_get_model_name(cost), "");
    hbp_cost_free(cost);
    hbp_cost_free(given);
    unlink(path);
    hbp_context_free(context);
}
END_TEST

START_TEST(names_are_the_costs_own_or_given)
{
    hbp_context *context = test_context();
    make_path();
    hbp_cost *cost = real_cost(context, 0), *given = test_cost(context);
    hbp_cost_file_options options = {.struct_size = sizeof options};
    options.machine = "a \"box\"";
    options.note = "na\xc3\xafve \xff";
    hbp_cost *read = round_trip(context, cost, &options);
    ck_assert_str_eq(hbp_cost_get_model_name(read), "qwen2.5-7b");
    ck_assert_str_eq(hbp_cost_get_machine_name(read), "a \"box\"");
    hbp_cost_free(read);
    read = round_trip(context, given, NULL);
    ck_assert_str_eq(hbp_cost_get_model_name(read), "");
    ck_assert_str_eq(hbp_cost_get_machine_name(read), "");
    ck_assert_str_eq(hbp_cost_get_model_name(NULL), "");
    ck_assert_str_eq(hbp_cost_get_machine_name(NULL), "");
    char *text;
    int64_t bytes;
    OK(context, hbp_cost_save(context, cost, path, &options));
    OK(context, hbp__read_file(context, path, 1 << 20, &text, &bytes));
    text[bytes - 1] = '\0';
    ck_assert_ptr_nonnull(strstr(text, "\"format\": \"hbp cost\""));
    ck_assert_ptr_nonnull(strstr(text, "\"source\": \"analysis\""));
    ck_assert_ptr_nonnull(strstr(text, "\"note\": \"na?"
                                       "?ve ?\""));
    hbp__delete(&context->memory, text);
    char name[HBP__COST_NAME_BYTES + 1];
    memset(name, 'n', HBP__COST_NAME_BYTES);
    name[HBP__COST_NAME_BYTES] = '\0';
    options.model = name;
    FAILS(context, HBP_E_INVALID, "the name of the model has 256 bytes; a cost keeps at most 255",
          hbp_cost_save(context, cost, path, &options));
    options.model = name + 1;
    hbp_cost_free(read);
    read = round_trip(context, cost, &options);
    ck_assert_str_eq(hbp_cost_get_model_name(read), name + 1);
    options.machine = name;
    FAILS(context, HBP_E_INVALID, "the name of the machine has 256 bytes",
          hbp_cost_save(context, cost, path, &options));
    options.machine = NULL;
    char *note = malloc((1 << 20) + 2);
    memset(note, 'n', (1 << 20) + 1);
    note[(1 << 20) + 1] = '\0';
    options.note = note;
    FAILS(context, HBP_E_INVALID, "the note has 1048577 bytes; the file holds at most 1048576",
          hbp_cost_save(context, cost, path, &options));
    free(note);
    hbp_cost_free(read);
    hbp_cost_free(given);
    hbp_cost_free(cost);
    unlink(path);
    hbp_context_free(context);
}
END_TEST

static hbp_status parse(hbp_context *context, const char *text, hbp_cost **cost)
{
    return hbp__cost_read(context, "c.json", text, (int64_t)strlen(text), cost);
}

/* The file of a good cost with the first `old` replaced, to be freed. */
static char *changed(const char *good, const char *old, const char *new)
{
    const char *at = strstr(good, old);
    ck_assert_msg(at != NULL, "no %s", old);
    char *text = malloc(strlen(good) + strlen(new) + 1);
    sprintf(text, "%.*s%s%s", (int)(at - good), good, new, at + strlen(old));
    return text;
}

START_TEST(bad_files_are_refused)
{
    hbp_context *context = test_context();
    hbp_cost *cost = NULL;
    make_path();
#define REFUSED(message, json) FAILS(context, HBP_E_FORMAT, message, parse(context, json, &cost))
    REFUSED("c.json, line 1: ", "{");
    REFUSED("c.json is not a JSON object", "[]");
    REFUSED("c.json: 'format' is not \"hbp cost\"", "{}");
    REFUSED("c.json: 'version' is not a whole number", "{\"format\": \"hbp cost\"}");
    FAILS(context, HBP_E_VERSION, "c.json: a cost file of version 4; this library reads 1 to 3",
          parse(context, "{\"format\": \"hbp cost\", \"version\": 4}", &cost));

    hbp_cost *given = test_cost(context);
    OK(context, hbp_cost_save(context, given, path, NULL));
    char *good;
    int64_t bytes;
    OK(context, hbp__read_file(context, path, 1 << 20, &good, &bytes));
    good[bytes - 1] = '\0';
    OK(context, parse(context, good, &cost));
    hbp_cost_free(cost);
#define TURNED(old, new, message)                                                                            \
    do {                                                                                                     \
        char *text_ = changed(good, old, new);                                                               \
        REFUSED(message, text_);                                                                             \
        free(text_);                                                                                         \
    } while (0)
    TURNED("\"model\": \"\"", "\"model\": 3", "c.json: 'model' is no text of at most 255 bytes");
    TURNED("\"heads\": 0", "\"heads\": -1", "c.json: 'heads' is no whole number in 0..1048576");
    TURNED("\"heads\": 0", "\"heads\": 4", "c.json: 'kv_heads' is 0 of 4 heads");
    TURNED("\"kv_heads\": 0", "\"kv_heads\": 1", "c.json: 'kv_heads' is no whole number in 0..0");
    TURNED("\"zero_stage\": 0", "\"zero_stage\": 5", "c.json: 'zero_stage' is no whole number in 0..4");
    TURNED("\"terms\"", "\"term\"", "c.json: 'terms' is no object");
    TURNED("\"pack_ns\"", "\"pack_nt\"", "c.json: there is no term 'pack_ns'");
    TURNED("\"value\": 25000", "\"value\": \"x\"", "c.json: the 'value' of term 'ns_per_token' is no number");
    TURNED("\"value\": 25000", "\"value\": -25000", "c.json: ns_per_token is -25000");
    TURNED("\"value\": 25000", "\"value\": 1e999", "c.json, line ");
    TURNED("\"value\": 16", "\"value\": 2147483648", "c.json: 'ranks' is no whole number in 0..2147483647");
    TURNED("\"value\": 16", "\"value\": 16.5", "c.json: 'ranks' is no whole number in 0..2147483647");
    TURNED("\"value\": 16", "\"value\": 12", "c.json: degree[3] is 8, which does not divide 12 ranks");
    TURNED("\"source\": \"given\"", "\"source\": 1", "c.json: the 'source' of term 'ranks' is no text");
    TURNED("\"value\": 4,", "\"value\": 2147483647,", "c.json: term 'degree' has 4 rows; there are 214748");
    TURNED("900,", "", "c.json: term 'sp_ns_per_token' has 3 rows; there are 4 degrees");
    TURNED("900", "\"900\"", "c.json: row 1 of term 'sp_ns_per_token' is no number");
    TURNED("2000000", "null", "c.json: row 1 of term 'sp_latency_ns' is no number");
    ck_assert_ptr_null(cost);

    FAILS(context, HBP_E_INVALID, "path", hbp_cost_load(context, NULL, &cost));
    FAILS(context, HBP_E_SYSTEM, "/tmp/hbp-none/c.json",
          hbp_cost_load(context, "/tmp/hbp-none/c.json", &cost));
    FAILS(context, HBP_E_SYSTEM, "/tmp/hbp-none/",
          hbp_cost_save(context, given, "/tmp/hbp-none/c.json", NULL));
    FAILS(context, HBP_E_INVALID, "cost", hbp_cost_save(context, NULL, path, NULL));
    FAILS(context, HBP_E_INVALID, "out", hbp_cost_load(context, path, NULL));
    hbp__delete(&context->memory, good);
    hbp_cost_free(given);
    unlink(path);
    hbp_context_free(context);
}
END_TEST

static hbp_status load_bytes(hbp_context *context, const void *user, const void *data, size_t bytes,
                             void **out)
{
    hbp_cost *cost = NULL;
    (void)user;
    hbp_status status = hbp__cost_read(context, "c.json", data, (int64_t)bytes, &cost);
    *out = cost;
    return status;
}

static hbp_status open_cost(hbp_context *context, const void *user, const char *from, void **out)
{
    hbp_cost *cost = NULL;
    (void)user;
    hbp_status status = hbp_cost_load(context, from, &cost);
    *out = cost;
    return status;
}

static hbp_status save_cost(hbp_context *context, const void *user, const char *to)
{
    hbp_cost_file_options options = {.struct_size = sizeof options};
    options.note = "\xff";
    return hbp_cost_save(context, user, to, &options);
}

static void free_cost(hbp_context *context, const void *user, void *cost)
{
    (void)context, (void)user;
    hbp_cost_free(cost);
}

/* One that could have been given by its terms. */
static void expect_given(hbp_context *context, const void *user, void *object)
{
    const hbp_cost *cost = object;
    hbp_cost *again = NULL;
    (void)user;
    OK(context, hbp_cost_create_terms(context, &cost->terms, &again));
    check_same_terms(cost, again);
    hbp_cost_free(again);
    for (int32_t i = 0; i < HBP__COST_TERM_COUNT; i++)
        ck_assert_uint_lt(strlen(cost->source[i]), sizeof cost->source[i]);
    ck_assert(cost->heads >= 0 && cost->kv_heads >= 0 && cost->kv_heads <= cost->heads);
}

START_TEST(harm_is_found_or_makes_another_cost)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
    const harm_kind kind = {.load = load_bytes,
                            .release = free_cost,
                            .expect = expect_given,
                            .save = save_cost,
                            .open = open_cost,
                            .user = cost};
    size_t bytes;
    make_path();
    OK(context, save_cost(context, cost, path));
    uint8_t *data = (uint8_t *)file_read(path, &bytes);
    harm_done(&kind, data, bytes, bytes - 1); /* the file ends with a line end */
    harm_survived(&kind, data, bytes);
    free(data);
    unlink(path);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("cost_file", a_loaded_cost_plans_as_the_saved_one, every_bit_survives,
          names_are_the_costs_own_or_given, bad_files_are_refused, harm_is_found_or_makes_another_cost)
