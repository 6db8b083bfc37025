#include <jansson.h>

#include "failing.h"
#include "files.h"
#include "plans.h"

static hbp_plan *make(hbp_context *context, uint64_t seed)
{
    hbp_lengths *lengths = plans_lengths(context, seed, 60, 400, seed % 2, 0), *cut = NULL;
    OK(context, hbp_lengths_limit(context, lengths, 300, HBP_OVERLONG_DROP + (int32_t)(seed % 3), &cut));
    plans_shape shape = plans_draw(seed);
    shape.left_over = 2;
    hbp_plan *plan = plans_make(&shape, cut);
    hbp_lengths_free(cut);
    hbp_lengths_free(lengths);
    return plan;
}

static json_int_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    ck_assert_msg(json_is_integer(value), "%s is no whole number", key);
    return json_integer_value(value);
}

static const json_t *list(const json_t *object, const char *key, int64_t count)
{
    const json_t *value = json_object_get(object, key);
    ck_assert_msg(json_is_array(value), "%s is no array", key);
    ck_assert_int_eq((int64_t)json_array_size(value), count);
    return value;
}

#define CHECK_SAMPLES(name)                                                                                  \
    if (plan->name) {                                                                                        \
        const json_t *values = list(pack, #name, end - first);                                               \
        for (int64_t i = first; i < end; i++)                                                                \
            ck_assert_int_eq(json_integer_value(json_array_get(values, (size_t)(i - first))),                \
                             plan->name[i]);                                                                 \
    } else {                                                                                                 \
        ck_assert_ptr_null(json_object_get(pack, #name));                                                    \
    }

static void check_pack(const hbp_plan *plan, const json_t *pack, int64_t p)
{
    int64_t first = plan->pack_offsets[p], end = plan->pack_offsets[p + 1];
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
    CHECK_SAMPLES(sample_ids)
    CHECK_SAMPLES(sample_tokens)
    CHECK_SAMPLES(sample_first_tokens)
    CHECK_SAMPLES(sample_loss_tokens)
}

static void check_step(const hbp_plan *plan, const json_t *step, int64_t s)
{
    int64_t first = plan->step_offsets[s], end = plan->step_offsets[s + 1];
    ck_assert_int_eq(number(step, "step"), plan->first_step + s);
    ck_assert_int_eq(number(step, "ns"), plan->step_ns[s]);
    ck_assert_int_eq(number(step, "samples"), plan->step_samples[s]);
    ck_assert_int_eq(number(step, "tokens"), plan->step_tokens[s]);
    ck_assert_int_eq(number(step, "loss_tokens"), plan->step_loss_tokens[s]);
    const json_t *micro_batches = list(step, "micro_batches", end - first);
    for (int64_t m = first; m < end; m++) {
        const json_t *micro_batch = json_array_get(micro_batches, (size_t)(m - first));
        int64_t pack = plan->micro_batch_offsets[m], end_pack = plan->micro_batch_offsets[m + 1];
        ck_assert_int_eq(number(micro_batch, "ns"), plan->micro_batch_ns[m]);
        const json_t *packs = list(micro_batch, "packs", end_pack - pack);
        for (int64_t p = pack; p < end_pack; p++)
            check_pack(plan, json_array_get(packs, (size_t)(p - pack)), p);
    }
}

static void check_summary(const hbp_plan *plan, const json_t *json)
{
    hbp_plan_summary s;
    char digest[32];
    hbp__plan_summarise(plan, &s);
#define NUMBER(field) ck_assert_int_eq(number(json, #field), (int64_t)s.field);
    NUMBER(ranks)
    NUMBER(domain_ranks)
    NUMBER(proven)
    NUMBER(first_step)
    NUMBER(steps)
    NUMBER(micro_batches)
    NUMBER(packs)
    NUMBER(dummy_packs)
    NUMBER(samples)
    NUMBER(dropped)
    NUMBER(tokens)
    NUMBER(padded_tokens)
    NUMBER(loss_tokens)
    NUMBER(sequence_multiple)
    NUMBER(pack_multiple)
    NUMBER(micro_batch_multiple)
    NUMBER(predicted_ns)
    NUMBER(overlong_samples)
    NUMBER(overlong_tokens)
    NUMBER(seed)
    NUMBER(epoch)
#undef NUMBER
    snprintf(digest, sizeof digest, "%llu", (unsigned long long)s.digest);
    ck_assert_str_eq(json_string_value(json_object_get(json, "digest")), digest);
    snprintf(digest, sizeof digest, "%llu", (unsigned long long)s.lengths_digest);
    ck_assert_str_eq(json_string_value(json_object_get(json, "lengths_digest")), digest);
}

START_TEST(json_holds_the_whole_plan)
{
    hbp_context *context = test_context();
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "plan.json");
    for (uint64_t seed = 0; seed < 30; seed++) {
        hbp_plan *plan = make(context, seed);
        plan->first_step = (int64_t)seed;
        OK(context, hbp_plan_write_json(context, plan, path));
        json_error_t error;
        json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
        ck_assert_msg(json != NULL, "line %d: %s", error.line, error.text);
        check_summary(plan, json_object_get(json, "summary"));
        const json_t *steps = list(json, "steps", plan->steps);
        for (int64_t s = 0; s < plan->steps; s++)
            check_step(plan, json_array_get(steps, (size_t)s), s);
        const json_t *dropped = list(json, "dropped", plan->dropped);
        for (int64_t i = 0; i < plan->dropped; i++) {
            const json_t *row = json_array_get(dropped, (size_t)i);
            ck_assert_int_eq(number(row, "id"), plan->dropped_ids[i]);
            ck_assert_str_eq(json_string_value(json_object_get(row, "reason")),
                             plan->dropped_reasons[i] == HBP_DROPPED_OVERLONG ? "over-long" : "left over");
        }
        json_decref(json);
        hbp_plan_free(plan);
    }
    ck_assert_int_eq(folder_count(folder), 1);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

typedef struct written {
    const hbp_plan *plan;
    char folder[64];
} written;

static hbp_status write_once(hbp_context *context, void *user)
{
    written *w = user;
    char path[128];
    folder_path(path, w->folder, "plan.json");
    hbp_status status = hbp_plan_write_json(context, w->plan, path);
    ck_assert_int_eq(folder_count(w->folder), status == HBP_OK);
    unlink(path);
    return status;
}

START_TEST(nothing_is_half_written)
{
    hbp_context *context = test_context();
    hbp_plan *plan = make(context, 4);
    written w = {.plan = plan};
    folder_make(w.folder);
    failing_sweep(write_once, &w);
    ck_assert_int_ge(cancel_sweep(write_once, &w), plan->steps);
    folder_remove(w.folder);
    FAILS(context, HBP_E_INVALID, "plan", hbp_plan_write_json(context, NULL, "x"));
    FAILS(context, HBP_E_INVALID, "path", hbp_plan_write_json(context, plan, NULL));
    FAILS(context, HBP_E_SYSTEM, "No such file or directory",
          hbp_plan_write_json(context, plan, "/nowhere/at/all.json"));
    hbp_plan_free(plan);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("plan_json", json_holds_the_whole_plan, nothing_is_half_written)
