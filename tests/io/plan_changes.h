/* Files of plans with bytes changed, and files written once that later versions must read and write. */
#ifndef HBP_TESTS_IO_PLAN_CHANGES_H
#define HBP_TESTS_IO_PLAN_CHANGES_H

#include "harm.h"
#include "hbp/io.h"
#include "keep.h"
#include "plan_files.h"
#include "reseal.h"

#include "io/file/file_head.h"

static const hbp_plan_save_options small_options = {
    .struct_size = sizeof small_options, .level = -1, .chunk_steps = 2, .note = "a note"};

static inline hbp_status load_harmed(hbp_context *context, const void *user, const void *data, size_t bytes,
                                     void **out)
{
    (void)user;
    hbp_plan *plan;
    hbp_status status = load_memory(context, data, bytes, &plan);
    *out = plan;
    return status;
}

static inline void release_plan(hbp_context *context, const void *user, void *plan)
{
    (void)context, (void)user;
    hbp_plan_free(plan);
}

static inline void expect_original(hbp_context *context, const void *original, void *plan)
{
    (void)context;
    expect_same(plan, original);
}

/* Files of plans; what decides is under the digest or compared, and only keys and values nobody reads may
 * change, such as the note. */
static inline harm_kind plan_kind(const hbp_plan *original)
{
    return (harm_kind){.load = load_harmed,
                       .release = release_plan,
                       .reseal = reseal,
                       .expect = expect_original,
                       .user = original};
}

/* Every byte changed behind right checksums. */
static inline void expect_no_harm(const uint8_t *data, size_t bytes, const hbp_plan *original)
{
    const harm_kind kind = plan_kind(original);
    size_t refused, loaded = harm_borne(&kind, data, bytes, bytes, &refused);
    ck_assert_uint_gt(refused, 20 * loaded);
}

/* Makes the file call itself one of another version. */
static inline void change_version(uint8_t *data, size_t bytes, int version)
{
    data[hbp__format_version_at(HBP__PLAN_FORMAT)] = (uint8_t)version;
    hbp__put_le(data + bytes - HBP__PLAN_TAIL_BYTES + 6, (uint64_t)version, 4);
    reseal(data, bytes);
}

/* Reads the plan in tests/golden/ and finds that it is written as it was. */
static inline hbp_plan *golden_plan(hbp_context *context, const char *name, uint64_t digest)
{
    size_t golden_bytes, bytes;
    char path[512];
    ck_assert_int_lt(snprintf(path, sizeof path, "%s/golden/%s", HBP_TESTS_DIR, name), sizeof path);
    uint8_t *golden = (uint8_t *)file_read(path, &golden_bytes);
    hbp_plan *plan;
    OK(context, load_memory(context, golden, golden_bytes, &plan));
    ck_assert_uint_eq(plan->digest, digest);
    uint8_t *data = saved(context, plan, &small_options, &bytes);
    ck_assert_uint_eq(bytes, golden_bytes);
    ck_assert_int_eq(memcmp(data, golden, bytes), 0);
    free(data);
    free(golden);
    return plan;
}

#endif
