/* What every call shares: status codes, the version, the context, the seam to a solver.
 *
 * Stability: stable. */
#ifndef HBP_BASE_H
#define HBP_BASE_H

#include <stdint.h>

#if defined(HBP_STATIC)
#define HBP_API
#elif defined(_WIN32) && defined(HBP_BUILD)
#define HBP_API __declspec(dllexport)
#elif defined(_WIN32)
#define HBP_API __declspec(dllimport)
#elif defined(__GNUC__)
#define HBP_API __attribute__((visibility("default")))
#else
#define HBP_API
#endif

#ifdef __cplusplus
#define HBP_BEGIN_DECLS extern "C" {
#define HBP_END_DECLS   }
#else
#define HBP_BEGIN_DECLS
#define HBP_END_DECLS
#endif

HBP_BEGIN_DECLS

/* ---- Version ---- */

/* The version of the headers and of the library that was loaded. */

#define HBP_VERSION_MAJOR  0
#define HBP_VERSION_MINOR  1
#define HBP_VERSION_PATCH  0
#define HBP_VERSION_STRING "0.1.0"

/* Raised whenever a caller built against older headers would break; equals the SONAME. 0: nothing is released
 * yet, and headers and library must be of one commit. */
#define HBP_ABI_VERSION 0

/* "major.minor.patch" of the loaded library; static text. Thread: any. */
HBP_API const char *hbp_version_string(void);

/* HBP_ABI_VERSION of the loaded library; a binding compares it at load time. Thread: any. */
HBP_API uint32_t hbp_version_abi(void);

/* ---- Status ---- */

/* What a call came to. One list makes the codes, their names and their texts. */

/* 0 is success, a positive value a remark on a good result, a negative value a failure. Values never change.
 */
typedef int32_t hbp_status;

#define HBP_STATUS_LIST(X)                                                                                   \
    X(HBP_NOT_PROVEN, 1, "valid result, optimality not proven")                                              \
    X(HBP_OK, 0, "success")                                                                                  \
    X(HBP_E_NO_MEMORY, -1, "out of memory")                                                                  \
    X(HBP_E_INVALID, -2, "invalid argument")                                                                 \
    X(HBP_E_INFEASIBLE, -3, "infeasible")                                                                    \
    X(HBP_E_CANCELLED, -4, "cancelled")                                                                      \
    X(HBP_E_OVERFLOW, -5, "number too large")                                                                \
    X(HBP_E_FORMAT, -6, "bad file")                                                                          \
    X(HBP_E_VERSION, -7, "wrong version")                                                                    \
    X(HBP_E_SOLVER, -8, "solver failed")                                                                     \
    X(HBP_E_SYSTEM, -9, "system call failed")                                                                \
    X(HBP_E_INTERNAL, -10, "internal error")

enum {
#define HBP_STATUS_CODE_(name, value, text) name = value,
    HBP_STATUS_LIST(HBP_STATUS_CODE_)
#undef HBP_STATUS_CODE_
};

/* The constant's name, "HBP_E_INVALID"; "HBP_E_UNKNOWN" for a value not in the list. Static text. Thread:
 * any. */
HBP_API const char *hbp_status_name(hbp_status status);

/* A short English text for the status; the context's message says more. Static text. Thread: any. */
HBP_API const char *hbp_status_text(hbp_status status);

/* ---- Structs ----
 *
 * An open struct begins with struct_size, the caller's sizeof: hbp_step_options o = {.struct_size = sizeof
 * o}; (in C++: = {sizeof o}). Zero is the default of every field, nonzero does what the field's name says,
 * and NULL for a struct of options means all defaults. A struct of an older caller is read as far as it goes,
 * and filled no further; one of a newer caller may set no field that the library does not know
 * (HBP_E_VERSION). A size below 4 or past 65,536 is HBP_E_INVALID. */

/* ---- Methods ----
 *
 * An algorithm is chosen by its name, a text: options.method = "flexsp". The lists, HBP_..._METHODS(X), stand
 * beside the options that take them, a line X(id, name, paper, text) each; the first is the default, which
 * NULL means, too. Options are refused with HBP_E_INVALID, which lists the names, for any other. Lists grow
 * at the end: the places of methods in them never change. */

/* ---- Records ----
 *
 * What the headers say of every open struct, for whoever makes a binding, a command or a form of it: its
 * fields in order, with type, place, range, choices and text. Static; nothing here is owned by the caller. */

/* Types of fields. */
enum {
    HBP_FIELD_INT32 = 0,
    HBP_FIELD_UINT32 = 1,
    HBP_FIELD_INT64 = 2,
    HBP_FIELD_UINT64 = 3,
    HBP_FIELD_DOUBLE = 4,
    HBP_FIELD_TEXT = 5,    /* const char * */
    HBP_FIELD_POINTER = 6, /* any other, `declared` says which */
    HBP_FIELD_STRUCT = 7   /* the struct itself */
};

/* A field, or a struct. */
typedef struct hbp_field {
    uint32_t struct_size;
    int32_t type;   /* HBP_FIELD_* */
    int32_t offset; /* in the struct, in bytes */
    int32_t bytes;
    const char *name;
    const char *declared; /* its type in C, "const int64_t *"; NULL of a struct */
    const char *shape;    /* of an array, as the header has it: "count"; NULL: none given */
    const char *choices;  /* the constants or methods that it may be, for hbp_record_get_choice; NULL: none */
    const char *text;     /* one paragraph of the header */
    int32_t is_flag;      /* nonzero: 0 or nonzero, nothing else matters */
    int32_t is_ranged;    /* nonzero: what is below least or above most is refused with HBP_E_INVALID */
    int64_t least;
    int64_t most;
    double least_real; /* the same of a double */
    double most_real;
} hbp_field;

/* A constant that a field may be, or a method. */
typedef struct hbp_choice {
    uint32_t struct_size;
    int32_t value;        /* of a method its place in the list, 0 being the default */
    const char *name;     /* "drop", "flexsp" */
    const char *constant; /* "HBP_OVERLONG_DROP"; NULL of a method */
    const char *text;
    const char *paper; /* where a method was published; "": this library's, or common knowledge; NULL of a
                          constant */
} hbp_choice;

/* The structs' names, 0 <= index: "hbp_step_options"; NULL past the end. Thread: any. */
HBP_API const char *hbp_record_get_struct_name(int64_t index);

/* Field `index` of a struct, the first, struct_size, being 0; index -1: the struct itself, with its size and
 * text. HBP_E_INVALID past its end and for an unknown struct, `field` then being zeros. Thread: any. */
HBP_API hbp_status hbp_record_get_field(const char *structure, int64_t index, hbp_field *field);

/* Constant or method `index` of those that `choices` of a field names ("HBP_OVERLONG", "HBP_STEP_METHODS").
 * HBP_E_INVALID past the end. Thread: any. */
HBP_API hbp_status hbp_record_get_choice(const char *choices, int64_t index, hbp_choice *choice);

/* ---- Context ---- */

/* The context: where memory comes from, where messages go, who may interrupt.
 *
 * A context serves one thread at a time; use one per thread. Objects made through it (lengths, plans, ...)
 * keep no pointer to it and may outlive it. */

typedef struct hbp_context hbp_context;

/* Every byte the library itself needs comes from here. `resize` gets the old size; it may be NULL, then it is
 * emulated by alloc, copy and release. The three functions must be callable from any thread that frees an
 * object, and by several threads at once where a stepper plans (hbp/step.h) or `threads` is more than 1
 * (hbp_context_options, hbp/epoch.h). So it is in libhbp-io, but what expat and hwloc take inside comes from
 * malloc. hwloc alone may crash where malloc fails, and keep a little (hbp_machine_probe).
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

/* Called on the thread that made the call, at most every few milliseconds; a nonzero answer cancels. While a
 * hbp_pool runs none of its tasks on that thread it is not called. */
typedef int32_t (*hbp_progress_fn)(void *user, const hbp_progress *progress);

/* The host's threads, for work that the library would start threads of its own for. `run` calls
 * task(argument, i) once for each i in [0, tasks), on any threads, also the one that it is called on, several
 * at once or one after the other, and returns when all have returned. Tasks share the work out among
 * themselves: whichever run do it all, and what none did is done on the calling thread once `run` returns, so
 * one that finds no free thread may call fewer tasks, or none. */
typedef struct hbp_pool {
    uint32_t struct_size;
    void (*run)(void *user, int32_t tasks, void (*task)(void *argument, int32_t index), void *argument);
    void *user;
} hbp_pool;

typedef struct hbp_context_options {
    uint32_t struct_size;
    const hbp_allocator *allocator; /* copied; NULL: malloc, realloc, free */
    hbp_progress_fn progress;       /* NULL: none */
    void *progress_user;
    int32_t threads; /* [0..1024] that a call works on, the caller's among them; 0: 1. The same results for
                        any number. With more than one the allocator is called from all of them */
    const hbp_pool *pool; /* copied; whose threads those are but the caller's; NULL: started by each call */
} hbp_context_options;

/* Makes a context; NULL options mean defaults. *context is set only on success; free it with
 * hbp_context_free. Returns HBP_E_INVALID for an allocator without alloc or release, a pool without run or a
 * number of threads out of range, HBP_E_NO_MEMORY. Thread: any. */
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

/* ---- Quantities ----
 *
 * Numbers with units, "192GiB", wherever a text gives a field its value. */

/* Reads what `text` gives a field of that name into *value, in the field's own unit: a decimal number, which
 * may stand before a unit of what the field counts. The end of the name says what that is: bytes ("80GB" is
 * 80 x 10^9, "80GiB" 80 x 2^30), bytes_per_s ("50GB/s", or in bits "400Gb/s"), flops_per_s ("989TFLOPS"), ns
 * ("20us"), an efficiency or overlap ("45%"), tokens or a length ("128K", 128 x 1024); others have no unit.
 * HBP_E_INVALID names the field, the text and the units that it may have. Thread: one per context. */
HBP_API hbp_status hbp_read_quantity(hbp_context *context, const char *field, const char *text,
                                     double *value);

/* ---- Solvers of programs ---- */

/* The seam to a solver of linear and mixed-integer programs. libhbp has none of its own: libhbp-glpk
 * (hbp/glpk.h) is one, and any other is a struct with a function. */

enum { HBP_COLUMN_CONTINUOUS = 0, HBP_COLUMN_INTEGER = 1 };

/* What a solver found out. */
enum {
    HBP_SOLVER_STOPPED = 0, /* by a limit, without a point; `bound` holds */
    HBP_SOLVER_OPTIMAL = 1,
    HBP_SOLVER_FEASIBLE = 2, /* stopped by a limit, with the best point so far */
    HBP_SOLVER_INFEASIBLE = 3,
    HBP_SOLVER_UNBOUNDED = 4 /* or infeasible, where columns are integer */
};

/* Minimise objective . x subject to row_lower <= A x <= row_upper and column_lower <= x <= column_upper. An
 * infinite bound is none. Everything else is finite, and of the order of 1: libhbp scales. Rows are sparse:
 * row r has the entries row_first[r] to row_first[r + 1], no column twice. Read-only, valid during the call.
 */
typedef struct hbp_program {
    uint32_t struct_size;
    int32_t columns;
    int32_t rows;
    const double *objective;        /* [columns] */
    const double *column_lower;     /* [columns] */
    const double *column_upper;     /* [columns] */
    const int32_t *column_type;     /* [columns] HBP_COLUMN_*; integer columns have integer bounds */
    const int32_t *column_priority; /* [columns] >= 0: branch on the highest first; a hint; NULL: none */
    const double *row_lower;        /* [rows] */
    const double *row_upper;        /* [rows] */
    const int64_t *row_first;       /* [rows + 1] */
    const int32_t *entry_column;    /* [row_first[rows]] */
    const double *entry_value;      /* [row_first[rows]] */
    const double *start;            /* [columns] a feasible point to improve on; NULL: none */
} hbp_program;

/* When to stop. Zero is no limit. Nodes and iterations make the answer a function of the program alone. */
typedef struct hbp_solver_limits {
    uint32_t struct_size;
    int32_t (*poll)(void *user); /* nonzero: stop, with what there is. Called every few ms on the thread that
                                    called solve; NULL: never */
    void *poll_user;
    int64_t nodes;      /* of the branch-and-bound tree */
    int64_t iterations; /* of the simplex method */
    int64_t time_ms;
    int64_t memory_bytes;
    double gap; /* (objective - bound) / |objective| that is good enough */
} hbp_solver_limits;

typedef struct hbp_solver_answer {
    uint32_t struct_size;
    int32_t status;   /* HBP_SOLVER_* */
    double objective; /* of values, where there are */
    double bound;     /* no point has a smaller objective, within the solver's tolerances; -infinity: none */
    double *values;   /* [columns] the caller's buffer; filled when optimal or feasible */
    char *message;    /* [message_bytes] the caller's buffer for one line about a failure */
    int64_t message_bytes;
    int64_t iterations; /* of the simplex method that it took; 0: not counted */
} hbp_solver_answer;

/* A solver. `solve` returns HBP_OK with an answer, or a failure with a message in it; it prints nothing, and
 * leaves no thread behind. libhbp checks every point that it hands back. Called on the thread of the call
 * that needs it, several at a time from different contexts. */
typedef struct hbp_solver {
    uint32_t struct_size;
    hbp_status (*solve)(void *user, const hbp_program *program, const hbp_solver_limits *limits,
                        hbp_solver_answer *answer);
    void *user;
} hbp_solver;

/* Gives the context a solver, which must stay valid for as long as the context uses it; NULL takes it away.
 * HBP_E_INVALID for a solver without a function. Thread: one per context. */
HBP_API hbp_status hbp_context_set_solver(hbp_context *context, const hbp_solver *solver);

HBP_END_DECLS

#endif
