/* An allocator that counts live blocks and fails the n-th allocation from now; and a progress hook that
 * cancels. */
#ifndef HBP_TESTS_FAILING_H
#define HBP_TESTS_FAILING_H

#include "test.h"

typedef struct failing {
    int64_t left; /* allocations that still succeed; negative: all do */
    int64_t live; /* blocks not released */
    int64_t bytes;
    int64_t peak_bytes;
} failing;

static inline int failing_spend(failing *f)
{
    return f->left < 0 || f->left-- > 0;
}

static inline void failing_take(failing *f, int64_t bytes)
{
    f->bytes += bytes;
    f->peak_bytes = f->bytes > f->peak_bytes ? f->bytes : f->peak_bytes;
}

static inline void *failing_alloc(void *user, uint64_t bytes)
{
    failing *f = user;
    if (!failing_spend(f)) {
        f->left = 0;
        return NULL;
    }
    f->live++;
    failing_take(f, (int64_t)bytes);
    return malloc(bytes);
}

static inline void *failing_resize(void *user, void *block, uint64_t old_bytes, uint64_t new_bytes)
{
    failing *f = user;
    if (!failing_spend(f)) {
        f->left = 0;
        return NULL;
    }
    failing_take(f, (int64_t)new_bytes - (int64_t)old_bytes);
    return realloc(block, new_bytes);
}

static inline void failing_release(void *user, void *block, uint64_t bytes)
{
    failing *f = user;
    f->live--;
    f->bytes -= (int64_t)bytes;
    free(block);
}

static inline hbp_context *failing_context(failing *f, hbp_progress_fn progress, void *progress_user)
{
    *f = (failing){.left = -1};
    hbp_allocator hooks = {sizeof hooks, failing_alloc, failing_resize, failing_release, f};
    hbp_context_options options = {sizeof options, &hooks, progress, progress_user};
    hbp_context *context = NULL;
    ck_assert_int_eq(hbp_context_create(&options, &context), HBP_OK);
    return context;
}

/* Runs `call(context, user)` with the 1st, 2nd, ... allocation failing until it succeeds; accepts only
 * HBP_E_NO_MEMORY with a message on the way, and nothing left behind. The call frees what it makes. */
static inline void failing_sweep(hbp_status (*call)(hbp_context *context, void *user), void *user)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    int64_t live = f.live;
    int64_t n = 0;
    for (hbp_status status = HBP_E_NO_MEMORY; status != HBP_OK; n += TEST_SANITIZED ? 1 + n / 64 : 1) {
        ck_assert_int_lt(n, 10000);
        f.left = n;
        status = call(context, user);
        int ran_out = f.left == 0;
        f.left = -1;
        ck_assert_msg(status == HBP_OK || status == HBP_E_NO_MEMORY, "allocation %d: %s", (int)n,
                      hbp_status_name(status));
        if (status != HBP_OK) {
            ck_assert(ran_out);
            ck_assert_str_ne(hbp_context_message(context), "");
        }
        ck_assert_int_eq(f.live, live);
    }
    ck_assert_int_gt(n, 1);
    hbp_context_free(context);
    ck_assert_int_eq(f.live, 0);
    ck_assert_int_eq(f.bytes, 0);
}

/* Progress hook: user points to the number of calls to let pass. */
static inline int32_t cancel_after(void *user, const hbp_progress *progress)
{
    ck_assert_ptr_nonnull(progress->stage);
    return (*(int64_t *)user)-- <= 0;
}

/* Runs `call` cancelled at the 1st, 2nd, ... report until it gets through; nothing is left behind. Returns
 * the reports. */
static inline int64_t cancel_sweep(hbp_status (*call)(hbp_context *context, void *user), void *user)
{
    failing f;
    int64_t left = 0;
    hbp_context *context = failing_context(&f, cancel_after, &left);
    int64_t live = f.live, n = 0;
    for (hbp_status status = HBP_E_CANCELLED; status != HBP_OK; n++) {
        left = n;
        status = call(context, user);
        ck_assert_msg(status == HBP_OK || status == HBP_E_CANCELLED, "report %d: %s", (int)n,
                      hbp_status_name(status));
        ck_assert_int_eq(f.live, live);
    }
    hbp_context_free(context);
    ck_assert_int_eq(f.live, 0);
    return n - 1;
}

#endif
