/* The context: where memory comes from, where messages go, who may interrupt.
 *
 * A context serves one thread at a time; use one per thread. Objects made through it (lengths, plans, ...)
 * keep no pointer to it and may outlive it. */
#ifndef HBP_CONTEXT_H
#define HBP_CONTEXT_H

#include <stdint.h>

#include "hbp/export.h"
#include "hbp/status.h"

HBP_BEGIN_DECLS

typedef struct hbp_context hbp_context;

/* Every byte the library itself needs comes from here. `resize` gets the old size; it may be NULL, then it is
 * emulated by alloc, copy and release. The three functions must be callable from any thread that frees an
 * object, and by several threads at once where a stepper plans (hbp/stepper.h) or `threads` is more than 1
 * (hbp/epoch.h). Memory taken inside hwloc, msgpack-c, Jansson, expat and zlib comes from malloc or, where
 * they allow it, from here. hwloc alone may crash where malloc fails, and keep a little (hbp_machine_probe).
 */
typedef struct hbp_allocator {
    uint32_t struct_size;
    void *(*alloc)(void *user, uint64_t bytes);
    void *(*resize)(void *user, void *block, uint64_t old_bytes, uint64_t new_bytes);
    void (*release)(void *user, void *block, uint64_t bytes);
    void *user;
} hbp_allocator;

/* How far an operation has come. `stage` is static text ("fill", "balance", ...); done <= total, both in the
 * stage's own unit (samples, bytes, steps); total is 0 while it is unknown. */
typedef struct hbp_progress {
    uint32_t struct_size;
    const char *stage;
    int64_t done;
    int64_t total;
} hbp_progress;

/* Called on the thread that made the call, at most every few milliseconds; a nonzero answer cancels. */
typedef int32_t (*hbp_progress_fn)(void *user, const hbp_progress *progress);

typedef struct hbp_context_options {
    uint32_t struct_size;
    const hbp_allocator *allocator; /* copied; NULL: malloc, realloc, free */
    hbp_progress_fn progress;       /* NULL: none */
    void *progress_user;
} hbp_context_options;

/* Fills `options` with defaults; `struct_size` is the caller's sizeof, here and in every
 * other struct; one past 65,536 is none, and is refused. Thread: any. */
HBP_API void hbp_context_options_init(hbp_context_options *options, uint32_t struct_size);

/* Makes a context; NULL options mean defaults. *context is set only on success; free it with
 * hbp_context_free. Returns HBP_E_INVALID for an allocator without alloc or release, HBP_E_NO_MEMORY. Thread:
 * any. */
HBP_API hbp_status hbp_context_create(const hbp_context_options *options, hbp_context **context);

/* Frees the context; NULL is allowed. Objects made through it stay valid. Thread: one per context. */
HBP_API void hbp_context_free(hbp_context *context);

/* One line about the last failure on this context, naming the thing, the value and the limit; "" when the
 * last call succeeded. Owned by the context, valid until its next call. Thread: one per context. */
HBP_API const char *hbp_context_message(const hbp_context *context);

/* Asks the running call, or else the next one, to stop with HBP_E_CANCELLED within 50 ms of CPU, for 10
 * million samples, a million of them in a step, too; giving memory back to the system and a finished file's
 * last bytes to the disk comes on top. That call clears the request. The only function that may run beside
 * another one on the same context, on any thread or in a signal handler. */
HBP_API void hbp_context_cancel(hbp_context *context);

HBP_END_DECLS

#endif
