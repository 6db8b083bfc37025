/* What fuzz_calls.c draws the arguments of a call from: memory that runs out, numbers, arrays, texts, files
 * and objects. */
#ifndef HBP_FUZZ_CALLS_DRAW_H
#define HBP_FUZZ_CALLS_DRAW_H

#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "hbp/hbp.h"
#include "hbp/io.h"

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s: %s does not hold\n", now_called, #condition);                               \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

/* Bytes of a call, calls of a sequence, elements of an array, bytes of a struct and of room to write into,
 * looks before a call is cancelled, bytes that all objects together may take. */
enum { CALL = 6, CALLS = 64, ELEMENTS = 1024, STRUCT = 512, ROOM = 1 << 16, LOOKS = 300, MOST = 1 << 28 };

#define KINDS(KIND)                                                                                          \
    KIND(stepper, hbp_stepper, hbp_stepper_free)                                                             \
    KIND(lengths, hbp_lengths, hbp_lengths_free)                                                             \
    KIND(builder, hbp_lengths_builder, hbp_lengths_builder_free)                                             \
    KIND(index, hbp_length_index, hbp_length_index_free)                                                     \
    KIND(index_builder, hbp_length_index_builder, hbp_length_index_builder_free)                             \
    KIND(pattern_plan, hbp_pattern_plan, hbp_pattern_plan_free)                                              \
    KIND(model, hbp_model, hbp_model_free)                                                                   \
    KIND(machine, hbp_machine, hbp_machine_free)                                                             \
    KIND(cost, hbp_cost, hbp_cost_free)                                                                      \
    KIND(groups, hbp_groups, hbp_groups_free)                                                                \
    KIND(packs, hbp_packs, hbp_packs_free)                                                                   \
    KIND(plan, hbp_plan, hbp_plan_free)                                                                      \
    KIND(plan_file, hbp_plan_file, hbp_plan_file_free)                                                       \
    KIND(layers, hbp_layers, hbp_layers_free)                                                                \
    KIND(layer_partition, hbp_layer_partition, hbp_layer_partition_free)                                     \
    KIND(partition, hbp_partition, hbp_partition_free)                                                       \
    KIND(pipeline_run, hbp_pipeline_run, hbp_pipeline_run_free)                                              \
    KIND(graph, hbp_graph, hbp_graph_free)                                                                   \
    KIND(schedule, hbp_task_schedule, hbp_task_schedule_free)                                                \
    KIND(task_run, hbp_task_run, hbp_task_run_free)                                                          \
    KIND(timeline, hbp_timeline, hbp_timeline_free)                                                          \
    KIND(vlm, hbp_vlm, hbp_vlm_free)                                                                         \
    KIND(vlm_plan, hbp_vlm_plan, hbp_vlm_plan_free)

#define NUMBER_OF(kind, type, release) KIND_##kind,
enum { KINDS(NUMBER_OF) KIND_COUNT };
#undef NUMBER_OF

enum { SLOTS = 3, CONTEXTS = 2 };

/* What a draw is for, so that none depends on the order in which arguments are evaluated. */
enum {
    FOR_CONTEXT = 1,
    FOR_OUT,
    FOR_PATH,
    FOR_SOLVER,
    FOR_SIZE,
    FOR_DATA,
    FOR_FEW,
    FOR_CANCEL,
    FOR_MEMORY,
    FOR_SLOT,
    FOR_OBJECT = 100,
    FOR_NUMBER = 200,
    FOR_ARRAY = 300,
    FOR_TEXT = 400,
    FOR_POINTER = 500,
    FOR_STRUCT = 1000
};

typedef struct memory {
    atomic_flag busy; /* steppers allocate on their own threads */
    int64_t left;     /* allocations that succeed before one fails; below 0: none fails */
    int64_t failed;
    int64_t live;
    int64_t bytes;
} memory;

typedef struct play {
    uint64_t seed; /* of the call */
    memory memory;
    hbp_context *context[CONTEXTS];
    hbp_context *with;       /* the call's; NULL: none */
    int32_t asked[CONTEXTS]; /* hbp_context_cancel was called */
    int32_t cancelled;       /* progress has cancelled the call */
    int64_t looks;           /* before it does */
    void *object[KIND_COUNT][SLOTS];
    void *made; /* by the call */
    int32_t makes;
    uint64_t given[4][STRUCT / sizeof(uint64_t)]; /* structs of the call */
    uint64_t operators[4 * sizeof(hbp_operator) / sizeof(uint64_t)];
    uint64_t room[8][ROOM / sizeof(uint64_t)];
    char folder[64];
    char path[4][96];
} play;

static const char *now_called = "nothing";

/* Good objects, one of a kind, for all sequences; they are only read. */
static void *good[KIND_COUNT];

static uint64_t draw(const play *p, uint64_t what, uint64_t below)
{
    hbp__rng rng = hbp__rng_make(p->seed, what, 0);
    return hbp__rng_below(&rng, below);
}

/* --- memory ------------------------------------------------------------------------------------------------
 */

static int spend(memory *m, int64_t blocks, int64_t bytes)
{
    while (atomic_flag_test_and_set(&m->busy))
        ;
    int fails = blocks >= 0 && (m->left == 0 || bytes > MOST - m->bytes);
    if (blocks >= 0 && m->left >= 0)
        m->left--;
    m->failed += fails;
    m->live += fails ? 0 : blocks;
    m->bytes += fails ? 0 : bytes;
    atomic_flag_clear(&m->busy);
    return !fails;
}

static void *take(void *user, uint64_t bytes)
{
    return bytes <= MOST && spend(user, 1, (int64_t)bytes) ? malloc(bytes ? bytes : 1) : NULL;
}

static void *resize(void *user, void *block, uint64_t old_bytes, uint64_t new_bytes)
{
    int fits = new_bytes <= MOST && spend(user, 0, (int64_t)new_bytes - (int64_t)old_bytes);
    return fits ? realloc(block, new_bytes ? new_bytes : 1) : NULL;
}

static void release(void *user, void *block, uint64_t bytes)
{
    if (block)
        (void)spend(user, -1, -(int64_t)bytes);
    free(block);
}

static int32_t on_progress(void *user, const hbp_progress *progress)
{
    play *p = user;
    CHECK(progress->stage && progress->stage[0]);
    p->cancelled |= p->looks-- <= 0;
    return p->cancelled;
}

/* --- numbers and arrays ------------------------------------------------------------------------------------
 */

static int64_t number(const play *p, uint64_t what)
{
    static const int64_t odd[] = {-1,        INT32_MAX, INT32_MIN,        INT64_MAX,
                                  INT64_MIN, 1 << 20,   INT64_C(1) << 31, -(INT64_C(1) << 31),
                                  100,       4096,      INT64_MAX - 1};
    switch (draw(p, what, 16)) {
    case 0:
        return odd[draw(p, what + 5000, sizeof odd / sizeof *odd)];
    case 1:
        return (int64_t)draw(p, what + 5000, 100000);
    case 2:
    case 3:
    case 4:
        return (int64_t)draw(p, what + 5000, 40);
    case 5:
    case 6:
    case 7:
    case 8:
        return (int64_t)draw(p, what + 5000, 4);
    default:
        return 0;
    }
}

static double real(const play *p, uint64_t what)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, -1, 1e-300, 1e300, -0., 1e18, 0.5, 1, 1e9};
    if (draw(p, what, 4))
        return (double)draw(p, what + 5000, 3);
    return odd[draw(p, what + 5000, sizeof odd / sizeof *odd)];
}

static int64_t counted(const play *p, uint64_t what)
{
    uint64_t one = draw(p, what, 16);
    return one ? (int64_t)draw(p, what + 5000, one < 8 ? 6 : 60) : -1;
}

/* Arrays to point to: lengths, ascending from 0, ones, anything. They never change, as they may be borrowed.
 */
enum { LENGTHS, ASCENDING, ONES, CUTS, ANYTHING, ARRAYS };

static int64_t wide[ARRAYS][ELEMENTS];
static int32_t ints[ARRAYS][ELEMENTS];
static uint32_t uints[ARRAYS][ELEMENTS];
static double reals[ARRAYS][ELEMENTS];

static void fill_arrays(void)
{
    play p = {0};
    for (int64_t i = 0; i < ELEMENTS; i++) {
        p.seed = (uint64_t)i;
        wide[LENGTHS][i] = 300 + (i * 7919 + i * i) % 3000;
        wide[ASCENDING][i] = i;
        wide[ONES][i] = 1;
        wide[CUTS][i] = i < 2 ? 4 * i : 8;
        wide[ANYTHING][i] = number(&p, 1);
        for (int32_t k = 0; k < ARRAYS; k++) {
            ints[k][i] = (int32_t)wide[k][i];
            uints[k][i] = (uint32_t)wide[k][i];
            reals[k][i] = k == ANYTHING ? real(&p, 2) : (double)wide[k][i];
        }
    }
}

/* The array to take; ARRAYS: NULL. */
static int32_t array(const play *p, uint64_t what)
{
    static const int32_t often[] = {LENGTHS, LENGTHS, LENGTHS, ASCENDING, ASCENDING,
                                    ONES,    ONES,    CUTS,    ANYTHING,  ARRAYS};
    return often[draw(p, what, sizeof often / sizeof *often)];
}

#define ARRAY(type, of)                                                                                      \
    static const type *of##_array(const play *p, uint64_t what)                                              \
    {                                                                                                        \
        int32_t k = array(p, what);                                                                          \
        return k < ARRAYS ? of[k] : NULL;                                                                    \
    }
ARRAY(int64_t, wide)
ARRAY(int32_t, ints)
ARRAY(uint32_t, uints)
ARRAY(double, reals)
#undef ARRAY

#define good_config                                                                                          \
    "{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_hidden_layers\": 2, \"num_attention_heads\": "   \
    "4, "                                                                                                    \
    "\"intermediate_size\": 128, \"vocab_size\": 100}"

static const char *const texts[] = {
    "h100",
    "a100-80",
    "gb200-nvl72:2,nvlink_bytes_per_s=4e11",
    "layers=4,vocab=1024",
    "llama-3.1-8b",
    "internvl-1.5-26b",
    "clip-4",
    "length",
    "forward_ns",
    "nvlink_bytes_per_s",
    "csv",
    "",
    "pack:1 core:2 pu:1",
    good_config,
    "\xff\xfe\n",
    "a\tb\x7f",
    "<system version=\"1\"><cpu/></system>",
    "measured",
};

static const char *text(const play *p, uint64_t what)
{
    static char long_text[3000];
    uint64_t k = draw(p, what, sizeof texts / sizeof *texts + 2);
    if (k < sizeof texts / sizeof *texts)
        return texts[k];
    memset(long_text, 'x', sizeof long_text - 1);
    return k == sizeof texts / sizeof *texts ? long_text : NULL;
}

/* As many bytes of that text as there are, or fewer. */
static int64_t bytes_of(const play *p)
{
    const char *of = text(p, FOR_TEXT + 1);
    int64_t bytes = of ? (int64_t)strlen(of) : 0;
    uint64_t k = draw(p, FOR_DATA, 8);
    return k == 0 ? -1 : k == 1 ? bytes / 2 : bytes;
}

/* Good files of what a call reads; they are only read. */
static const struct good_file {
    const char *reader;
    const char *name;
} good_files[] = {
    {"hbp_plan_load", "plan"},
    {"hbp_plan_file_open", "plan"},
    {"hbp_cost_load", "cost"},
    {"hbp_machine_load", "machine"},
    {"hbp_graph_load", "graph"},
    {"hbp_timeline_load", "timeline"},
    {"hbp_task_schedule_load", "tasks"},
    {"hbp_layers_load", "layers"},
    {"hbp_lengths_load", "lengths"},
    {"hbp_model_load", "config"},
    {"hbp_vlm_plan_load", "vlm"},
    {"hbp_pipeline_run_load", "run"},
    {"hbp_task_run_load", "task-run"},
    {"hbp_model_create_text", "config"},
    {"hbp_machine_create_text", "machine"},
};
enum { GOOD_FILES = sizeof good_files / sizeof *good_files };

static char good_folder[64];
static char good_path[GOOD_FILES][96];

static const char *path(const play *p)
{
    uint64_t k = draw(p, FOR_PATH, 16);
    for (int32_t i = 0; i < GOOD_FILES && k >= 8; i++)
        if (strcmp(good_files[i].reader, now_called) == 0)
            return good_path[i];
    k %= 8;
    return k < 4 ? p->path[k] : k == 4 ? p->folder : k == 5 ? NULL : k == 6 ? "/nonexistent/x" : p->path[0];
}

/* --- objects -----------------------------------------------------------------------------------------------
 */

static void free_object(play *p, int32_t kind, int32_t slot)
{
    void **at = &p->object[kind][slot];
    if (kind == KIND_cost) /* which outlives steppers */
        for (int32_t s = 0; s < SLOTS; s++)
            free_object(p, KIND_stepper, s);
    switch (kind) {
#define FREE_ONE(of, type, release)                                                                          \
    case KIND_##of:                                                                                          \
        release(*at);                                                                                        \
        break;
        KINDS(FREE_ONE)
#undef FREE_ONE
    default:
        break;
    }
    *at = NULL;
}

/* One of the sequence's own, where there is one; NULL now and then. */
static void *own(const play *p, int32_t kind)
{
    uint64_t k = draw(p, FOR_OBJECT + (uint64_t)kind, 16 * SLOTS);
    for (uint64_t i = 0; k >= SLOTS && i < SLOTS; i++)
        if (p->object[kind][(k + i) % SLOTS])
            return p->object[kind][(k + i) % SLOTS];
    return NULL;
}

static const void *object(const play *p, int32_t kind)
{
    uint64_t k = draw(p, FOR_OBJECT + (uint64_t)kind + 5000, 16);
    return k == 0 ? NULL : k < 6 && own(p, kind) ? own(p, kind) : good[kind];
}

static void *out(play *p)
{
    p->makes = draw(p, FOR_OUT, 32) != 0;
    p->made = p; /* no call leaves that */
    return p->makes ? &p->made : NULL;
}

#endif
