/* The inside of a context: how a call begins, fails, reports progress and is cancelled. */
#ifndef HBP_BASE_CONTEXT_H
#define HBP_BASE_CONTEXT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/memory.h"
#include "hbp/base.h"

#define HBP__MESSAGE_BYTES 512

struct hbp_context {
    hbp__memory memory;
    hbp_progress_fn progress;
    void *progress_user;
    const hbp_solver *solver; /* NULL: none */
    hbp_pool pool;            /* without run: threads of the library's own */
    int32_t threads;          /* that a call works on; at least 1 */
    atomic_int cancel;
    hbp_context *parent;    /* a request to cancel it is one for this one, too; NULL: none */
    void *taken;            /* the piece of scratch taken last; the others follow (base/scratch.h) */
    int64_t pieces;         /* of them */
    hbp_status take_status; /* HBP_OK, or what a take since the last check failed with */
    char message[HBP__MESSAGE_BYTES];
};

#if defined(__GNUC__)
#define HBP__PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define HBP__PRINTF(text, first)
#endif

/* A context of one's own for a thread that works for a call; hbp_context_free ends it. NULL: out of memory.
 */
hbp_context *hbp__context_new(const hbp__memory *memory);

/* A public function that takes no context has one of its own, whose memory comes from malloc (NULL: there is
 * none left), and ends with it: `why` [why_bytes], which may be NULL, gets the message of a failure, cut
 * between characters where it does not fit, and else is empty. Returns `status`. */
hbp_context *hbp__context_alone(char *why, int64_t why_bytes);
hbp_status hbp__context_end(hbp_context *context, hbp_status status, char *why, int64_t why_bytes);

/* First line of every public function that takes a context: clears the message. HBP_E_INVALID for NULL. */
hbp_status hbp__enter(hbp_context *context);

/* A failure that is an answer to the caller, not to the user: clears its message. HBP_OK. */
hbp_status hbp__forgive(hbp_context *context);

/* Writes the message and returns `status`, so that a failure is one line: return hbp__fail(ctx,
 * HBP_E_INVALID, ...). */
hbp_status hbp__fail(hbp_context *context, hbp_status status, const char *format, ...) HBP__PRINTF(3, 4);

/* hbp__fail for a failed allocation of `what`. */
hbp_status hbp__fail_memory(hbp_context *context, const char *what);

/* Reports progress and asks whether to go on; call it every few ten thousand samples. HBP_OK or
 * HBP_E_CANCELLED. */
hbp_status hbp__tick(hbp_context *context, const char *stage, int64_t done, int64_t total);

/* Bytes copied or zeroed between two looks. */
#define HBP__TICK_BYTES (UINT64_C(1) << 22)

/* memcpy, and memset to 0, of so much that they look in between. */
hbp_status hbp__copy(hbp_context *context, void *to, const void *from, uint64_t bytes);
hbp_status hbp__zero(hbp_context *context, void *to, uint64_t bytes);

/* Rows between two looks of a loop that does little for each. */
#define HBP__TICK_ROWS 16384

/* hbp__tick behind every so many rows: for each row of a loop. One over fewer rows asks nothing. */
static inline hbp_status hbp__tick_row(hbp_context *context, const char *stage, int64_t row, int64_t rows)
{
    return (row + 1) % HBP__TICK_ROWS ? HBP_OK : hbp__tick(context, stage, row, rows);
}

/* hbp__tick behind every so many rows where a turn of the loop is of `rows` of them: *since counts those
 * since the last look, 0 before the first. `done` of `total` turns are done. */
static inline hbp_status hbp__tick_rows(hbp_context *context, const char *stage, int64_t *since, int64_t rows,
                                        int64_t done, int64_t total)
{
    *since += rows;
    if (*since < HBP__TICK_ROWS)
        return HBP_OK;
    *since = 0;
    return hbp__tick(context, stage, done, total);
}

/* HBP_E_INVALID with a message when `pointer` is NULL; `name` is the argument's. */
hbp_status hbp__require(hbp_context *context, const void *pointer, const char *name);

/* Returns from the calling function when `call` fails. */
#define HBP__TRY(call)                                                                                       \
    do {                                                                                                     \
        hbp_status hbp__try_status = (call);                                                                 \
        if (hbp__try_status < 0)                                                                             \
            return hbp__try_status;                                                                          \
    } while (0)

/* Begins a call that makes *out, which is NULL from here on, whatever fails. */
#define HBP__ENTER_OUT(context, out)                                                                         \
    do {                                                                                                     \
        if (out)                                                                                             \
            *(out) = NULL;                                                                                   \
        HBP__TRY(hbp__enter(context));                                                                       \
        HBP__TRY(hbp__require(context, out, "out"));                                                         \
    } while (0)

#endif
