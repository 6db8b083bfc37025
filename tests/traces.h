/* Options of Chrome traces, and the traces as jansson reads them. */
#ifndef HBP_TESTS_TRACES_H
#define HBP_TESTS_TRACES_H

#include <jansson.h>

#include "hbp/io.h"
#include "test.h"

#define MEASURED(line, first, count)                                                                         \
    (&(hbp_trace_options){.struct_size = sizeof(hbp_trace_options),                                          \
                          .first_step = (first),                                                             \
                          .steps = (count),                                                                  \
                          .timeline = (line)})
#define STEPS(first, count) MEASURED(NULL, first, count)

static inline json_int_t number(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    ck_assert_msg(json_is_integer(value), "no whole number '%s'", key);
    return json_integer_value(value);
}

/* Microseconds with three decimals, as ns. */
static inline int64_t ns_of(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    ck_assert(json_is_real(value));
    return (int64_t)(json_real_value(value) * 1000 + .5);
}

static inline const char *text_of(json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    ck_assert_msg(text != NULL, "no text '%s'", key);
    return text;
}

static inline int is_kind(json_t *event, const char *kind)
{
    return strcmp(text_of(event, "ph"), kind) == 0;
}

/* One thread as a viewer takes it. */
typedef struct trace_thread {
    int64_t pid;     /* 0: it is not named */
    int64_t last;    /* start of the slice before */
    int64_t open[8]; /* ends of the slices that are open, outermost first */
    int depth;
} trace_thread;

#define TRACE_THREADS 2048

/* What holds of every trace: ids from 1 on, threads that have one id each and are named and sorted before
 * anything of them comes, processes with the id of their first thread; where `in_order` is set, slices of a
 * thread in order, each inside the one that is open or behind it. */
static inline void trace_check(json_t *root, int in_order)
{
    static trace_thread threads[TRACE_THREADS];
    static int processes[TRACE_THREADS], sorted[TRACE_THREADS], process_sorted[TRACE_THREADS];
    memset(threads, 0, sizeof threads);
    memset(processes, 0, sizeof processes);
    memset(sorted, 0, sizeof sorted);
    memset(process_sorted, 0, sizeof process_sorted);
    ck_assert_str_eq(text_of(root, "displayTimeUnit"), "ns");
    ck_assert_ptr_nonnull(strstr(text_of(json_object_get(root, "otherData"), "writer"), "libhbp"));
    json_t *event;
    size_t i;
    json_array_foreach(json_object_get(root, "traceEvents"), i, event)
    {
        int64_t pid = number(event, "pid"), tid = number(event, "tid");
        ck_assert(pid >= 1 && pid < TRACE_THREADS && tid >= 1 && tid < TRACE_THREADS);
        trace_thread *t = &threads[tid];
        if (is_kind(event, "M")) {
            const char *name = text_of(event, "name");
            json_t *args = json_object_get(event, "args");
            if (strcmp(name, "process_name") == 0) {
                ck_assert(tid == pid && !processes[pid]);
                ck_assert_str_ne(text_of(args, "name"), "");
                processes[pid] = 1;
            } else if (strcmp(name, "thread_name") == 0) {
                ck_assert(processes[pid] && !t->pid);
                ck_assert_str_ne(text_of(args, "name"), "");
                t->pid = pid;
            } else if (strcmp(name, "process_sort_index") == 0) {
                ck_assert(processes[pid] && number(args, "sort_index") >= 0 && !process_sorted[pid]++);
            } else {
                ck_assert_str_eq(name, "thread_sort_index");
                ck_assert(t->pid == pid && number(args, "sort_index") >= 0 && !sorted[tid]++);
            }
            continue;
        }
        ck_assert_int_eq(t->pid, pid);
        ck_assert(sorted[tid] && process_sorted[pid]);
        int64_t start = ns_of(event, "ts");
        ck_assert(is_kind(event, "X") || is_kind(event, "C"));
        if (is_kind(event, "C") || !in_order)
            continue;
        int64_t end = start + ns_of(event, "dur");
        ck_assert_int_ge(start, t->last);
        while (t->depth && t->open[t->depth - 1] <= start)
            t->depth--;
        ck_assert(!t->depth || end <= t->open[t->depth - 1]);
        ck_assert_int_lt(t->depth, 8);
        t->open[t->depth++] = end;
        t->last = start;
    }
}

/* The trace of a path, as strict JSON; it holds what all do. That of columns that were drawn, and are no
 * schedule, has its slices in no order. */
static inline json_t *trace_read_drawn(const char *path, int in_order)
{
    json_error_t error;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(root != NULL, "line %d: %s", error.line, error.text);
    trace_check(root, in_order);
    return root;
}

static inline json_t *trace_read(const char *path)
{
    return trace_read_drawn(path, 1);
}

#endif
