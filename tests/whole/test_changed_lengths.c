/* A borrowed array that its owner writes to while the library reads it: nothing is written out of bounds
 * (which the address sanitizer sees), every call comes back, and what it refuses it says. The writes come
 * from the progress hook, so that a case can be run again. */
#include "every_call.h"
#include "failing.h"

typedef struct writing {
    every *e;
    int64_t left; /* reports until the write */
    int how;
} writing;

static int32_t write_over(void *user, const hbp_progress *progress)
{
    (void)progress;
    writing *w = user;
    static const uint32_t values[] = {0, 1, UINT32_MAX, INT32_MAX, 70000, 5000000};
    if (w->left-- == 0)
        for (int i = 0; i < EVERY_SAMPLES; i++)
            if (w->how % 2 || i % 3 == 0)
                w->e->tokens[i] = w->how < 2 ? (uint32_t)(i * 97 % 900 + 1) : values[(w->how - 2) / 2 % 6];
    return 0;
}

START_TEST(nothing_is_written_out_of_bounds)
{
    const every_call *call = &EVERY_CALL[_i];
    every e = {0};
    writing w = {.e = &e, .left = -1};
    failing f;
    hbp_context *plain = test_context();
    hbp_context *context = failing_context(&f, write_over, &w);
    uint32_t before[EVERY_SAMPLES];
    every_open(plain, &e, 1);
    memcpy(before, e.tokens, sizeof before);
    w.left = INT64_MAX;
    hbp_status whole = call->run(context, &e);
    ck_assert_msg(whole >= 0, "%s: %s", call->name, hbp_context_message(context));
    /* The first reports one by one, where the array is read most, then a few of all the others; in the
     * writes of all calls all ways occur. */
    int64_t reports = INT64_MAX - w.left, live = f.live;
    int turns = TEST_LONG ? 5 : TEST_FEW(1, 2);
    int64_t single = TEST_LONG ? 4 : 2;
    for (int64_t n = 0, k = 0; n < reports;
         n += n < single ? 1 : 1 + (reports - single) / (TEST_SANITIZED || !TEST_LONG ? 3 : 8), k++)
        for (int turn = 0; turn < turns; turn++) {
            memcpy(e.tokens, before, sizeof before);
            w.left = n;
            w.how = (int)((5 * _i + turns * k + turn) % 14);
            hbp_status status = call->run(context, &e);
            ck_assert_msg(status >= 0 || *hbp_context_message(context),
                          "%s: report %lld, write %d: no message", call->name, (long long)n, w.how);
            ck_assert_int_eq(f.live, live);
        }
    hbp_context_free(context);
    memcpy(e.tokens, before, sizeof before);
    every_close(&e);
    hbp_context_free(plain);
}
END_TEST

EVERY_MAIN("changed_lengths", nothing_is_written_out_of_bounds)
