/* Files of plans with bytes changed, and files written once that later versions must read and write. */
#ifndef HBP_TESTS_IO_PLAN_CHANGES_H
#define HBP_TESTS_IO_PLAN_CHANGES_H

#include "plan_files.h"
#include "reseal.h"

#include "io/file/file_head.h"

static const hbp_plan_save_options small_options = {
    .struct_size = sizeof small_options, .level = -1, .chunk_steps = 2, .note = "a note"};

static const uint8_t change_masks[] = {0x01, 0x80, 0xff, 0x20};

/* A load that fails as it should: a status of bad files, a message, nothing left, little memory taken. */
static inline void expect_bad(hbp_context *context, failing *f, const void *data, size_t bytes,
                              const char *what, size_t at)
{
    hbp_plan *plan;
    uint8_t *copy = malloc(bytes ? bytes : 1); /* so that a sanitizer sees a read past the end */
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, data, bytes);
    int64_t live = f->live;
    f->peak_bytes = f->bytes;
    hbp_status status = load_memory(context, copy, bytes, &plan);
    ck_assert_msg(status == HBP_E_FORMAT || status == HBP_E_VERSION, "%s at %d: %s", what, (int)at,
                  hbp_status_name(status));
    ck_assert_ptr_null(plan);
    ck_assert_str_ne(hbp_context_message(context), "");
    ck_assert_int_eq(f->live, live);
    ck_assert_int_lt(f->peak_bytes - f->bytes, 1 << 20);
    free(copy);
}

/* Every byte changed, every cut and a byte too many are found. */
static inline void expect_changes_found(hbp_context *context, failing *f, uint8_t *data, size_t bytes)
{
    for (size_t at = 0; at < bytes; at++)
        for (size_t m = 0; m < sizeof change_masks; m++) {
            data[at] ^= change_masks[m];
            expect_bad(context, f, data, bytes, "changed byte", at);
            data[at] ^= change_masks[m];
        }
    for (size_t cut = 0; cut < bytes; cut++)
        expect_bad(context, f, data, cut, "cut", cut);
    uint8_t *longer = malloc(bytes + 1);
    ck_assert_ptr_nonnull(longer);
    memcpy(longer, data, bytes);
    longer[bytes] = 0;
    expect_bad(context, f, longer, bytes + 1, "one byte more", bytes);
    free(longer);
}

/* Every byte changed behind right checksums: what decides is under the digest or compared; only keys and
 * values nobody reads may change, such as the note. */
static inline void expect_no_harm(hbp_context *context, failing *f, const uint8_t *data, size_t bytes,
                                  const hbp_plan *original)
{
    size_t loaded = 0, refused = 0;
    uint8_t *changed = malloc(bytes);
    ck_assert_ptr_nonnull(changed);
    for (size_t at = 0; at < bytes; at++)
        for (size_t m = 0; m < sizeof change_masks; m++) {
            hbp_plan *plan;
            memcpy(changed, data, bytes);
            changed[at] ^= change_masks[m];
            reseal(changed, bytes);
            int64_t live = f->live;
            f->peak_bytes = f->bytes;
            hbp_status status = load_memory(context, changed, bytes, &plan);
            ck_assert_int_lt(f->peak_bytes - f->bytes, 1 << 20);
            if (status == HBP_OK) {
                expect_same(plan, original);
                loaded++;
            } else {
                ck_assert_msg(status == HBP_E_FORMAT || status == HBP_E_VERSION, "byte %d: %s", (int)at,
                              hbp_status_name(status));
                refused++;
            }
            hbp_plan_free(plan);
            ck_assert_int_eq(f->live, live);
        }
    ck_assert_uint_gt(refused, 20 * loaded);
    free(changed);
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
