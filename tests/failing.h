/* An allocator that counts live blocks and fails the n-th allocation from now, alone or with all that follow;
 * and progress hooks that cancel, once or from then on. */
#ifndef HBP_TESTS_FAILING_H
#define HBP_TESTS_FAILING_H

#include <stdatomic.h>

#include "base/scratch.h"
#include "test.h"

typedef struct failing {
    atomic_flag busy; /* planners with threads of their own allocate on them */
    int64_t left;     /* allocations that still succeed; negative: all do */
    int32_t once;     /* nonzero: those behind the one that fails succeed again */
    int64_t failed;   /* allocations that did */
    int64_t live;     /* blocks not released */
    int64_t bytes;
    int64_t peak_bytes;
} failing;

/* Zero for an allocation that fails. */
static inline int failing_spend(failing *f)
{
    if (f->left < 0)
        return 1;
    if (f->left > 0) {
        f->left--;
        return 1;
    }
    f->failed++;
    if (f->once)
        f->left = -1;
    return 0;
}

/* Counts a change of `bytes` in `blocks`; zero for an allocation that fails. */
static inline int failing_count(failing *f, int64_t blocks, int64_t bytes)
{
    while (atomic_flag_test_and_set(&f->busy))
        ;
    int spent = blocks < 0 || failing_spend(f);
    if (spent) {
        f->live += blocks;
        f->bytes += bytes;
        f->peak_bytes = f->bytes > f->peak_bytes ? f->bytes : f->peak_bytes;
    }
    atomic_flag_clear(&f->busy);
    return spent;
}

static inline void *failing_alloc(void *user, uint64_t bytes)
{
    return failing_count(user, 1, (int64_t)bytes) ? malloc(bytes) : NULL;
}

static inline void *failing_resize(void *user, void *block, uint64_t old_bytes, uint64_t new_bytes)
{
    return failing_count(user, 0, (int64_t)new_bytes - (int64_t)old_bytes) ? realloc(block, new_bytes) : NULL;
}

static inline void failing_release(void *user, void *block, uint64_t bytes)
{
    (void)failing_count(user, -1, -(int64_t)bytes);
    free(block);
}

static inline hbp_context *failing_context(failing *f, hbp_progress_fn progress, void *progress_user)
{
    *f = (failing){.left = -1};
    hbp_allocator hooks = {sizeof hooks, failing_alloc, failing_resize, failing_release, f};
    hbp_context_options options = {.struct_size = sizeof options,
                                   .allocator = &hooks,
                                   .progress = progress,
                                   .progress_user = progress_user};
    hbp_context *context = NULL;
    ck_assert_int_eq(hbp_context_create(&options, &context), HBP_OK);
    return context;
}

typedef hbp_status failing_call(hbp_context *context, void *user);

/* `call` with allocation n failing, and with `once` none else; whether one did. A call that failed says so,
 * and one that succeeds has not done without, unless it may. */
static inline int failing_try(hbp_context *context, failing *f, failing_call *call, void *user, int64_t n,
                              int once, int may_do_without)
{
    int64_t live = f->live;
    f->left = n;
    f->once = once;
    f->failed = 0;
    hbp_status status = call(context, user);
    f->left = -1;
    hbp__leave(context, 0, status); /* of a call inside the library: its callers would */
    ck_assert_msg(status == HBP_OK || status == HBP_E_NO_MEMORY, "allocation %d: %s", (int)n,
                  hbp_status_name(status));
    if (status != HBP_OK) {
        ck_assert_int_gt(f->failed, 0);
        ck_assert_str_ne(hbp_context_message(context), "");
    } else if (!may_do_without) {
        ck_assert_msg(!f->failed, "allocation %d fails %s, and the call succeeds", (int)n,
                      once ? "alone" : "with all that follow");
    }
    ck_assert_int_eq(f->live, live);
    return f->failed > 0;
}

/* The place after the n-th of a sweep: the next one, and with HBP_ALL_ROUNDS so to the end; else also a
 * sixteenth of n further, and with sanitizers a quarter. The two sweeps of a call go by different places. */
static inline int64_t sweep_next(int64_t n, int once)
{
    int64_t part = TEST_SANITIZED ? 4 : 16;
    if (TEST_LONG)
        part = TEST_SANITIZED ? 16 : INT64_MAX;
    return n + 1 + (n + (once && part < INT64_MAX ? part / 2 : 0)) / part;
}

static inline void failing_sweep_all(failing_call *call, void *user, int may_do_without)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    for (int once = 0; once < 2; once++) {
        int64_t n = 0;
        while (failing_try(context, &f, call, user, n, once, may_do_without)) {
            n = sweep_next(n, once);
            ck_assert_int_lt(n, 10000);
        }
        ck_assert_int_gt(n, 0);
    }
    hbp_context_free(context);
    ck_assert_int_eq(f.live, 0);
    ck_assert_int_eq(f.bytes, 0);
}

/* Runs `call(context, user)` with the 1st, 2nd, ... allocation failing until none does: first with all that
 * follow it, then each alone; accepts only HBP_E_NO_MEMORY with a message on the way, and nothing left
 * behind. The call frees what it makes. */
static inline void failing_sweep(failing_call *call, void *user)
{
    failing_sweep_all(call, user, 0);
}

/* The same for a call that is documented to do without some memory. */
static inline void failing_sweep_lenient(failing_call *call, void *user)
{
    failing_sweep_all(call, user, 1);
}

/* Progress hook: user points to the number of calls to let pass. */
static inline int32_t cancel_after(void *user, const hbp_progress *progress)
{
    ck_assert_ptr_nonnull(progress->stage);
    return (*(int64_t *)user)-- <= 0;
}

/* The same for one call alone. */
static inline int32_t cancel_once(void *user, const hbp_progress *progress)
{
    ck_assert_ptr_nonnull(progress->stage);
    return (*(int64_t *)user)-- == 0;
}

/* Runs `call` cancelled at the 1st, 2nd, ... report until it gets through: first at all that follow as well,
 * then at each alone; none is lost on the way, and nothing is left behind. Returns the reports. */
static inline int64_t cancel_sweep(failing_call *call, void *user)
{
    failing f;
    int64_t reports = 0;
    for (int once = 0; once < 2; once++) {
        int64_t left = 0;
        hbp_context *context = failing_context(&f, once ? cancel_once : cancel_after, &left);
        int64_t live = f.live;
        hbp_status status = HBP_E_CANCELLED;
        for (int64_t n = 0; status != HBP_OK; n = sweep_next(n, once)) {
            left = n;
            status = hbp__leave(context, 0, call(context, user));
            reports = n - left;
            ck_assert_msg(status == (left < 0 ? HBP_E_CANCELLED : HBP_OK), "report %d%s: %s", (int)n,
                          once ? " alone" : "", hbp_status_name(status));
            ck_assert_int_eq(f.live, live);
        }
        hbp_context_free(context);
        ck_assert_int_eq(f.live, 0);
    }
    return reports;
}

#endif
