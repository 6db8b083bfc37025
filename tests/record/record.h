/* The record: what the library answers to some thousand questions, a line each, so that a change inside it
 * that shall change no answer can be held against the answers before, byte for byte (tests/record/README.md).
 *
 * Questions are asked through the public face alone. */
#ifndef HBP_TESTS_RECORD_H
#define HBP_TESTS_RECORD_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "hbp/hbp.h"

/* What a question is asked about, made once. */
enum { RECORD_SAMPLES = 160, RECORD_LENGTHS = 5, RECORD_COSTS = 6, RECORD_GRAPHS = 3, RECORD_TEXT = 256 };

typedef struct record {
    hbp_context *context;
    char folder[64];                      /* of files to write */
    hbp_lengths *lengths[RECORD_LENGTHS]; /* plain, linked, with vision units, with loss tokens, few */
    hbp_cost *cost[RECORD_COSTS];         /* derived, lockstep sets of 4 and of 1, vision units, one GPU */
    hbp_model *model;
    hbp_machine *machine;
    hbp_graph *graph[RECORD_GRAPHS];
    hbp_task_schedule *schedule;
    hbp_vlm *vlm;
    hbp_layers *layers;
    hbp_plan *plan;
    hbp_timeline *timeline;
} record;

/* What came of one question: a digest of all that was answered, and a few facts to read. */
typedef struct answer {
    uint64_t digest;
    char facts[RECORD_TEXT];
} answer;

/* One kind of question: `ask` asks it of variant `variant` with the options, of which `start` sets what must
 * be set. The options' fields are then varied one by one, and drawn. */
typedef struct question {
    const char *name;
    const char *options; /* the struct's name in the library's records */
    uint64_t bytes;      /* of it */
    int32_t variants;
    int32_t varied; /* the first so many variants have their fields varied one by one */
    int32_t drawn;  /* settings of several fields at once, over all variants */
    void (*start)(const record *r, int32_t variant, void *options);
    hbp_status (*ask)(const record *r, int32_t variant, const void *options, answer *a);
} question;

extern const question record_plans[], record_vision[], record_tasks[], record_costs[]; /* ended by no name */

/* Asks what each line of the file at `path` asks, and prints it with the answer. */
void record_ask(const record *r, const question *questions, const char *path);

/* Asks each question of the list in every way: what a record of new questions begins with. */
void record_draw(const record *r, const question *questions);

/* Saves every kind of object, and reads the files whole, cut, with bytes flipped. */
void record_files(const record *r);

/* The name of method `index` of a list, "HBP_STEP_METHODS"; "none-such" past the end. */
const char *record_method(const char *list, int64_t index);

/* One line: what was asked, then digest and facts, or status and message. */
void record_print(const record *r, const char *asked, hbp_status status, const answer *a);

/* The digest of a plan. */
static inline uint64_t plan_digest(const record *r, const hbp_plan *plan)
{
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    (void)hbp_plan_get_summary(r->context, plan, &summary);
    return summary.digest;
}

/* --- digests: FNV-1a, 64 bits ------------------------------------------------------------------------------
 */

static inline void digest_bytes(answer *a, const void *bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        a->digest = (a->digest ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
}

static inline void digest_number(answer *a, int64_t number)
{
    for (int32_t i = 0; i < 8; i++) {
        unsigned char byte = (unsigned char)((uint64_t)number >> (8 * i));
        digest_bytes(a, &byte, 1);
    }
}

/* By its text, of as many digits as tell doubles apart. */
static inline void digest_real(answer *a, double number)
{
    char text[40];
    digest_bytes(a, text, (uint64_t)snprintf(text, sizeof text, "%.17g", number));
}

static inline void digest_text(answer *a, const char *text)
{
    digest_bytes(a, text ? text : "(none)", strlen(text ? text : "(none)"));
}

static inline void digest_wide(answer *a, const int64_t *values, int64_t count)
{
    digest_number(a, count);
    for (int64_t i = 0; values && i < count; i++)
        digest_number(a, values[i]);
}

static inline void digest_ints(answer *a, const int32_t *values, int64_t count)
{
    digest_number(a, count);
    for (int64_t i = 0; values && i < count; i++)
        digest_number(a, values[i]);
}

static inline void digest_uints(answer *a, const uint32_t *values, int64_t count)
{
    digest_number(a, count);
    for (int64_t i = 0; values && i < count; i++)
        digest_number(a, values[i]);
}

/* A column of a view; one that is absent has no rows. */
#define DIGEST_VIEW(a, column, rows)                                                                         \
    _Generic((column),                                                                                       \
        const int64_t *: digest_wide,                                                                        \
        const int32_t *: digest_ints,                                                                        \
        const uint32_t *: digest_uints)(a, column, (column) ? (rows) : 0)

/* The bytes of a file, and their number. */
void digest_file(answer *a, const char *path);

#define RECORD_TRY(call)                                                                                     \
    do {                                                                                                     \
        hbp_status record_status = (call);                                                                   \
        if (record_status < 0)                                                                               \
            return record_status;                                                                            \
    } while (0)

#endif
