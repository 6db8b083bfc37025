/* No call is deaf: each that may take long looks up so often that it hears a request to cancel within 50 ms
 * of processor time. What counts is the time from one look to the next, from the last one to the return, and
 * from the look that cancels to the return, but for what moving and releasing large blocks takes,
 * which nobody can interrupt.
 *
 * With HBP_CANCEL="SAMPLES STEP_SAMPLES [NAME]" in the environment it prints them for every call, or those
 * with NAME in theirs, on data sets and steps of so many samples. */
#include <stdatomic.h>
#include <time.h>

#include "long_calls.h"

/* Processor time a call may spend deaf, in ns; without all rounds half of it on data half as large.
 * Sanitizers take several times as long for less. */
#define PARTS        (TEST_LONG ? 1 : 2)
#define MOST_NS      (TEST_SANITIZED ? INT64_C(400000000) : INT64_C(50000000) / PARTS)
#define SAMPLES      (TEST_SANITIZED ? 100000 : 1000000 / PARTS)
#define STEP_SAMPLES (TEST_SANITIZED ? 5000 : 100000 / PARTS)

/* Looks, spread over a call, each of which cancels it once. */
#define CANCELS (TEST_LONG ? 3 : 1)

/* Times a call may be measured: whatever else the machine does may make it look deaf, not every time. */
#define MEASURED 3

/* Bytes of a block from which on releasing it may take longer than looking at the clock. */
#define LARGE 4096

#define TEXT 200

/* Processor time of this process, its helpers' included. */
static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Processor time that moving and releasing large blocks took. */
static atomic_llong allocator_ns;

static void *take_block(void *user, uint64_t bytes)
{
    (void)user;
    return malloc(bytes);
}

static void *resize_block(void *user, void *block, uint64_t old_bytes, uint64_t new_bytes)
{
    (void)user;
    (void)old_bytes;
    int64_t begin = now_ns();
    void *moved = realloc(block, new_bytes);
    atomic_fetch_add(&allocator_ns, now_ns() - begin);
    return moved;
}

static void release_block(void *user, void *block, uint64_t bytes)
{
    (void)user;
    if (bytes < LARGE) {
        free(block);
        return;
    }
    int64_t begin = now_ns();
    free(block);
    atomic_fetch_add(&allocator_ns, now_ns() - begin);
}

/* Processor time of all but that. */
static int64_t work_ns(void)
{
    return now_ns() - atomic_load(&allocator_ns);
}

/* What one call did between its looks. */
typedef struct looks {
    int64_t last_ns;
    int64_t longest_ns;
    int64_t count;
    int64_t cancel_at; /* the look that cancels; -1: none */
    char from[32];     /* stages of the two looks farthest apart */
    char to[32];
    char stage[32];
} looks;

static void look(looks *l, const char *stage)
{
    int64_t now = work_ns();
    if (now - l->last_ns > l->longest_ns) {
        l->longest_ns = now - l->last_ns;
        snprintf(l->from, sizeof l->from, "%s", l->stage);
        snprintf(l->to, sizeof l->to, "%s", stage);
    }
    snprintf(l->stage, sizeof l->stage, "%s", stage);
    l->last_ns = work_ns();
}

static int32_t on_progress(void *user, const hbp_progress *progress)
{
    looks *l = user;
    look(l, progress->stage);
    return l->count++ == l->cancel_at;
}

/* One run of a call, cancelled at look `cancel_at`. */
static hbp_status run(world *w, const long_call *c, int64_t cancel_at, looks *l, char *message)
{
    *l = (looks){.cancel_at = cancel_at, .stage = "call"};
    hbp_allocator allocator = {sizeof allocator, take_block, resize_block, release_block, NULL};
    hbp_context_options options = {
        .struct_size = sizeof options, .allocator = &allocator, .progress = on_progress, .progress_user = l};
    hbp_context *context = NULL;
    ck_assert_int_eq(hbp_context_create(&options, &context), HBP_OK);
    (void)remove(path_of(w, "b.trace")); /* replacing a large file takes the system long */
    l->last_ns = work_ns();
    hbp_status status = c->call(context, w, c->kind);
    look(l, "return");
    snprintf(message, TEXT, "%s", hbp_context_message(context));
    hbp_context_free(context);
    return status;
}

static world shared;

/* Runs the call whole and cancelled; returns the longest it was deaf. */
static int64_t try_call(world *w, const long_call *c, looks *whole)
{
    char message[TEXT];
    hbp_status status = run(w, c, -1, whole, message);
    ck_assert_msg(status >= 0, "%s: %s: %s", c->name, hbp_status_name(status), message);
    int64_t longest = whole->longest_ns;
    for (int64_t k = 0; k < CANCELS && whole->count; k++) {
        looks l;
        status = run(w, c, whole->count * (2 * k + 1) / (2 * CANCELS), &l, message);
        ck_assert_msg(status == HBP_E_CANCELLED, "%s: %s: %s", c->name, hbp_status_name(status), message);
        longest = l.longest_ns > longest ? l.longest_ns : longest;
    }
    return longest;
}

START_TEST(a_call_hears_a_cancel)
{
    const long_call *c = &calls[_i];
    looks whole;
    if (c->slow)
        return;
    int64_t longest = INT64_MAX;
    for (int i = 0; i < MEASURED && longest > MOST_NS; i++)
        longest = try_call(&shared, c, &whole);
    ck_assert_msg(longest <= MOST_NS, "%s: deaf for %d ms of processor time (%s to %s when not cancelled)",
                  c->name, (int)(longest / 1000000), whole.from, whole.to);
}
END_TEST

static int64_t samples, step_samples;
static char name[TEXT];

START_TEST(print_every_call)
{
    for (size_t i = 0; i < CALLS; i++) {
        looks whole;
        if (!strstr(calls[i].name, name))
            continue;
        int64_t begin = now_ns(), longest = try_call(&shared, &calls[i], &whole);
        printf("%-32s %8.2f s %8" PRId64 " looks, longest %7.1f ms (%s to %s), cancelled as well %7.1f ms\n",
               calls[i].name, (double)(now_ns() - begin) / 1e9, whole.count, (double)whole.longest_ns / 1e6,
               whole.from, whole.to, (double)longest / 1e6);
        fflush(stdout);
    }
}
END_TEST

static void open_shared(void)
{
    world_open(&shared, samples, step_samples);
}

static void close_shared(void)
{
    world_close(&shared);
}

TEST_SUITE_FUNCTION
{
    Suite *suite = suite_create("cancel");
    TCase *cases = tcase_create("cancel");
    const char *asked = getenv("HBP_CANCEL");
    samples = SAMPLES;
    step_samples = STEP_SAMPLES;
    int print =
        asked && sscanf(asked, "%" SCNd64 " %" SCNd64 " %199[^\n]", &samples, &step_samples, name) >= 2;
    if (print) {
        tcase_add_test(cases, print_every_call);
    } else {
        tcase_add_loop_test(cases, a_call_hears_a_cancel, 0, CALLS);
    }
    tcase_set_timeout(cases, print ? 0 : 240);
    /* What a child inherits and does not free looks lost to a sanitizer. */
    if (TEST_SANITIZED)
        tcase_add_checked_fixture(cases, open_shared, close_shared);
    else
        tcase_add_unchecked_fixture(cases, open_shared, close_shared);
    suite_add_tcase(suite, cases);
    return suite;
}
