#include "hbp/io.h"
#include "plan_files.h"

#include <jansson.h>

static json_int_t number(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    ck_assert_msg(json_is_integer(value), "no whole number '%s'", key);
    return json_integer_value(value);
}

/* A list of numbers against rows [first, end) of a column of either type. */
#define EXPECT_COLUMN(object, key, column, first, end)                                                       \
    do {                                                                                                     \
        json_t *list = json_object_get(object, key);                                                         \
        ck_assert_int_eq((column) != NULL, json_is_array(list));                                             \
        ck_assert(!(column) || (int64_t)json_array_size(list) == (end) - (first));                           \
        for (int64_t row = (first); (column) && row < (end); row++)                                          \
            ck_assert_int_eq(json_integer_value(json_array_get(list, (size_t)(row - (first)))),              \
                             (column)[row]);                                                                 \
    } while (0)

/* A list of kinds against a mask. */
static void expect_kinds(json_t *object, int64_t kinds)
{
    json_t *list = json_object_get(object, "modalities");
    ck_assert(json_is_array(list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_int_t kind = json_integer_value(json_array_get(list, i));
        ck_assert(i == 0 || kind > json_integer_value(json_array_get(list, i - 1)));
        ck_assert_int_eq(kinds >> kind & 1, 1);
        kinds &= ~(INT64_C(1) << kind);
    }
    ck_assert_int_eq(kinds, 0);
}

static void check_pack(const hbp_plan *plan, int64_t p, json_t *pack)
{
    ck_assert_int_eq(number(pack, "rank"), plan->pack_ranks[p]);
    ck_assert_int_eq(number(pack, "sp"), plan->pack_sp[p]);
    ck_assert_int_eq(number(pack, "recompute"), plan->pack_recompute[p]);
    ck_assert_int_eq(number(pack, "capacity"), plan->pack_capacity[p]);
    ck_assert_int_eq(number(pack, "tokens"), plan->pack_tokens[p]);
    ck_assert_int_eq(number(pack, "padded_tokens"), plan->pack_padded_tokens[p]);
    ck_assert_int_eq(number(pack, "squares"), plan->pack_squares[p]);
    ck_assert_int_eq(number(pack, "loss_tokens"), plan->pack_loss_tokens[p]);
    ck_assert_int_eq(number(pack, "ns"), plan->pack_ns[p]);
    ck_assert_int_eq(number(pack, "bytes"), plan->pack_bytes[p]);
    int64_t first = plan->pack_offsets[p], end = plan->pack_offsets[p + 1];
    EXPECT_COLUMN(pack, "sample_ids", plan->sample_ids, first, end);
    EXPECT_COLUMN(pack, "sample_tokens", plan->sample_tokens, first, end);
    EXPECT_COLUMN(pack, "sample_first_tokens", plan->sample_first_tokens, first, end);
    EXPECT_COLUMN(pack, "sample_loss_tokens", plan->sample_loss_tokens, first, end);
    EXPECT_COLUMN(pack, "sample_vision", plan->sample_vision, first, end);
    EXPECT_COLUMN(pack, "sample_modalities", plan->sample_modalities, first, end);
    json_t *capacity = json_object_get(pack, "vision_capacity");
    ck_assert_int_eq(plan->pack_vision != NULL, capacity != NULL);
    if (capacity) {
        ck_assert_int_eq(number(pack, "vision"), plan->pack_vision[p]);
        ck_assert_int_eq(json_is_null(capacity), plan->pack_vision_capacity[p] == INT64_MAX);
        ck_assert(json_is_null(capacity) || number(pack, "vision_capacity") == plan->pack_vision_capacity[p]);
    }
}

static void check_step(const hbp_plan *plan, int64_t s, json_t *step)
{
    ck_assert_int_eq(number(step, "step"), plan->first_step + s);
    ck_assert_int_eq(number(step, "ns"), plan->step_ns[s]);
    ck_assert_int_eq(number(step, "samples"), plan->step_samples[s]);
    ck_assert_int_eq(number(step, "tokens"), plan->step_tokens[s]);
    ck_assert_int_eq(number(step, "loss_tokens"), plan->step_loss_tokens[s]);
    json_t *list = json_object_get(step, "micro_batches"), *micro_batch, *pack;
    ck_assert_int_eq((int64_t)json_array_size(list), plan->step_offsets[s + 1] - plan->step_offsets[s]);
    size_t i, j;
    json_array_foreach(list, i, micro_batch)
    {
        int64_t m = plan->step_offsets[s] + (int64_t)i;
        json_t *packs = json_object_get(micro_batch, "packs");
        ck_assert_int_eq(number(micro_batch, "ns"), plan->micro_batch_ns[m]);
        ck_assert_int_eq(plan->micro_batch_modalities != NULL,
                         json_object_get(micro_batch, "modalities") != NULL);
        if (plan->micro_batch_modalities)
            expect_kinds(micro_batch, plan->micro_batch_modalities[m]);
        ck_assert_int_eq((int64_t)json_array_size(packs),
                         plan->micro_batch_offsets[m + 1] - plan->micro_batch_offsets[m]);
        json_array_foreach(packs, j, pack) check_pack(plan, plan->micro_batch_offsets[m] + (int64_t)j, pack);
    }
}

static void check_summary(const hbp_plan *plan, json_t *summary)
{
    hbp_plan_summary s;
    hbp__plan_summarise(plan, &s);
    ck_assert_int_eq(number(summary, "ranks"), s.ranks);
    ck_assert_int_eq(number(summary, "steps"), s.steps);
    ck_assert_int_eq(number(summary, "padding_packs"), s.padding_packs);
    ck_assert_int_eq(number(summary, "padded_tokens"), s.padded_tokens);
    ck_assert_int_eq(number(summary, "predicted_ns"), s.predicted_ns);
    if (s.bound_ns)
        ck_assert_int_eq(number(summary, "bound_ns"), s.bound_ns);
    else
        ck_assert(json_is_null(json_object_get(summary, "bound_ns")));
    ck_assert_int_eq(json_object_get(summary, "vision") != NULL, s.vision >= 0);
    ck_assert(s.vision < 0 || number(summary, "vision") == s.vision);
    ck_assert_int_eq(json_object_get(summary, "modalities") != NULL, s.modalities != 0);
    if (s.modalities)
        expect_kinds(summary, s.modalities);
    if (s.bound_ns)
        ck_assert_double_eq_tol(json_real_value(json_object_get(summary, "gap")), s.gap, 1e-6);
    else
        ck_assert(json_is_null(json_object_get(summary, "gap")));
    ck_assert_int_eq(number(summary, "epoch"), (json_int_t)s.epoch);
    char digest[32];
    snprintf(digest, sizeof digest, "%016llx", (unsigned long long)s.digest);
    ck_assert_str_eq(json_string_value(json_object_get(summary, "digest")), digest);
}

START_TEST(the_whole_plan_is_in_the_json)
{
    hbp_context *context = test_context();
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "plan.json");
    for (uint64_t seed = 0; seed < 40; seed++) {
        hbp_plan *plan = drawn_plan(context, seed, 8 + (int64_t)seed * 3);
        plan->first_step = (int64_t)seed % 3;
        plan->bound_ns = plan->step_ns[0] * (int64_t)(seed % 2);
        OK(context, hbp_plan_write_json(context, plan, path));
        json_error_t error;
        json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error), *row;
        ck_assert_msg(root != NULL, "line %d: %s", error.line, error.text);
        check_summary(plan, json_object_get(root, "summary"));
        json_t *steps = json_object_get(root, "steps"), *dropped = json_object_get(root, "dropped");
        ck_assert_int_eq((int64_t)json_array_size(steps), plan->steps);
        ck_assert_int_eq((int64_t)json_array_size(dropped), plan->dropped);
        size_t i;
        json_array_foreach(steps, i, row) check_step(plan, (int64_t)i, row);
        json_array_foreach(dropped, i, row)
        {
            ck_assert_int_eq(number(row, "id"), plan->dropped_ids[i]);
            static const char *const reasons[] = {"", "over-long", "left over", "over-vision", "lost"};
            ck_assert_str_eq(json_string_value(json_object_get(row, "reason")),
                             reasons[plan->dropped_reasons[i]]);
        }
        json_decref(root);
        hbp_plan_free(plan);
    }
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

START_TEST(bad_arguments_are_refused)
{
    hbp_context *context = test_context();
    hbp_plan *plan = drawn_plan(context, 5, 40);
    FAILS(context, HBP_E_INVALID, "plan is NULL", hbp_plan_write_json(context, NULL, "x"));
    FAILS(context, HBP_E_INVALID, "path is NULL", hbp_plan_write_json(context, plan, NULL));
    FAILS(context, HBP_E_SYSTEM, "irectory", hbp_plan_write_json(context, plan, "/tmp"));
    if (access("/dev/full", W_OK) == 0)
        FAILS(context, HBP_E_SYSTEM, "No space left", hbp_plan_write_json(context, plan, "/dev/full"));
    hbp_plan_free(plan);
    hbp_context_free(context);
}
END_TEST

typedef struct json_case {
    hbp_plan *plan;
    char folder[64];
    char path[128];
} json_case;

static hbp_status json_once(hbp_context *context, void *user)
{
    json_case *c = user;
    hbp_status status = hbp_plan_write_json(context, c->plan, c->path);
    ck_assert_int_eq(folder_count(c->folder), status == HBP_OK);
    unlink(c->path);
    return status;
}

START_TEST(short_memory_and_cancelling_leave_nothing)
{
    hbp_context *context = test_context();
    json_case c = {.plan = drawn_plan(context, 9, 60)};
    ck_assert_int_gt(c.plan->dropped, 0);
    folder_make(c.folder);
    folder_path(c.path, c.folder, "json");
    failing_sweep(json_once, &c);
    ck_assert_int_gt(cancel_sweep(json_once, &c), 2);
    folder_remove(c.folder);
    hbp_plan_free(c.plan);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("plan_json", the_whole_plan_is_in_the_json, bad_arguments_are_refused,
          short_memory_and_cancelling_leave_nothing)
