/* Structs to hand over, good ones with some fields changed, and a solver that lies. */
#ifndef HBP_FUZZ_CALLS_FILL_H
#define HBP_FUZZ_CALLS_FILL_H

#include "calls_draw.h"

static uint32_t size_of(const play *p, uint64_t what, size_t size)
{
    const uint32_t odd[] = {0, 3, 4, (uint32_t)size / 16 * 8, (uint32_t)size + 8, 65537, UINT32_MAX};
    uint64_t k = draw(p, what, 64);
    return k < sizeof odd / sizeof *odd ? odd[k] : (uint32_t)size;
}

/* Fields that say how many elements an array has, or how many threads and steps there are: not drawn past
 * what the arrays have. */
static int is_count(const char *type, const char *name)
{
    static const char *const counts[][2] = {
        {"hbp_cost_terms", "degrees"},     {"hbp_measurements", "count"},
        {"hbp_epoch_options", "threads"},  {"hbp_epoch_options", "batches"},
        {"hbp_layer_columns", "count"},    {"hbp_pipeline_options", "stages"},
        {"hbp_stepper_options", "depth"},  {"hbp_pipeline_options", "micro_batches"},
        {"hbp_timeline_columns", "count"},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (strcmp(counts[i][0], type) == 0 && strcmp(counts[i][1], name) == 0)
            return 1;
    return 0;
}

/* Not drawn: an array that is borrowed must not change, and a take that waits for a step waits for ever. */
static int is_left_zero(const char *type, const char *name)
{
    return (strcmp(type, "hbp_lengths_options") == 0 && strcmp(name, "borrow") == 0) ||
           (strcmp(type, "hbp_stepper_options") == 0 && strcmp(name, "wait") == 0);
}

/* An array or an object as the record declares it; NULL: no such thing is drawn. */
static const void *pointer_to(const play *p, const char *declared, uint64_t what)
{
#define OF_KIND(kind, type, release) {"const " #type " *", KIND_##kind},
    static const struct {
        const char *declared;
        int32_t kind;
    } objects[] = {KINDS(OF_KIND)};
#undef OF_KIND
    if (strcmp(declared, "const int32_t *") == 0)
        return ints_array(p, what);
    if (strcmp(declared, "const int64_t *") == 0)
        return wide_array(p, what);
    if (strcmp(declared, "const uint32_t *") == 0)
        return uints_array(p, what);
    if (strcmp(declared, "const double *") == 0)
        return reals_array(p, what);
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
        if (strcmp(declared, objects[i].declared) == 0)
            return object(p, objects[i].kind);
    return NULL;
}

/* A small number, as most honest ones are. */
static int64_t honest(const play *p, uint64_t what)
{
    return 1 + (int64_t)draw(p, what + 6000, 6);
}

static void fill_field(const play *p, const char *type, const hbp_field *f, uint64_t what, int is_full,
                       char *to)
{
    int64_t wide_value = is_full                   ? honest(p, what)
                         : is_count(type, f->name) ? counted(p, what)
                                                   : number(p, what);
    int32_t narrow = (int32_t)wide_value;
    double value = is_full ? (double)wide_value / (draw(p, what, 2) ? 8 : 1) : real(p, what);
    const void *pointer = NULL;
    if (f->type == HBP_FIELD_DOUBLE) {
        memcpy(to, &value, sizeof value);
    } else if (f->type == HBP_FIELD_TEXT || f->type == HBP_FIELD_POINTER) {
        pointer = f->type == HBP_FIELD_TEXT ? text(p, what) : pointer_to(p, f->declared, what);
        hbp_choice choice = {.struct_size = sizeof choice};
        if (f->choices && draw(p, what + 7000, 8) &&
            hbp_record_get_choice(f->choices, (int64_t)draw(p, what + 7001, 16), &choice) >= 0)
            pointer = choice.name;
        memcpy(to, &pointer, sizeof pointer);
    } else {
        memcpy(to, f->bytes == sizeof narrow ? (void *)&narrow : (void *)&wide_value, (size_t)f->bytes);
    }
}

/* Good structs, where zeros are none. */
static struct {
    hbp_cost_terms terms;
    hbp_machine_fields machine;
    hbp_model_fields model;
    hbp_vlm_fields vlm;
    hbp_vlm_layers_options shapes;
    hbp_vlm_options vlm_plan;
    hbp_layer_columns layers;
    hbp_pipeline_options pipeline;
    hbp_timeline_columns timeline;
    hbp_measurements measured;
    hbp_iterative_fill_options fill;
    hbp_partition_options partition;
    hbp_machine_rate rate;
    hbp_machine_collective collective;
} base;

static void start_struct(const char *type, void *to)
{
    const struct {
        const char *type;
        const void *from;
        size_t size;
    } all[] = {
        {"hbp_cost_terms", &base.terms, sizeof base.terms},
        {"hbp_machine_fields", &base.machine, sizeof base.machine},
        {"hbp_model_fields", &base.model, sizeof base.model},
        {"hbp_vlm_fields", &base.vlm, sizeof base.vlm},
        {"hbp_vlm_layers_options", &base.shapes, sizeof base.shapes},
        {"hbp_vlm_options", &base.vlm_plan, sizeof base.vlm_plan},
        {"hbp_layer_columns", &base.layers, sizeof base.layers},
        {"hbp_pipeline_options", &base.pipeline, sizeof base.pipeline},
        {"hbp_timeline_columns", &base.timeline, sizeof base.timeline},
        {"hbp_measurements", &base.measured, sizeof base.measured},
        {"hbp_iterative_fill_options", &base.fill, sizeof base.fill},
        {"hbp_partition_options", &base.partition, sizeof base.partition},
        {"hbp_machine_rate", &base.rate, sizeof base.rate},
        {"hbp_machine_collective", &base.collective, sizeof base.collective},
    };
    memset(to, 0, STRUCT);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].type, type) == 0)
            memcpy(to, all[i].from, all[i].size);
}

/* A good struct with about as many fields changed as its draw says: few to something honest, or to anything.
 */
static void fill_struct(const play *p, const char *type, size_t size, uint64_t what, void *to)
{
    uint64_t way = draw(p, what, 8), rare = way < 4 ? 8 : way < 7 ? 16 : 3;
    uint32_t told = size_of(p, what + 1, size);
    hbp_field f = {.struct_size = sizeof f};
    CHECK(hbp_record_get_field(type, 1, &f) >= 0);
    start_struct(type, to);
    for (int64_t i = 1; way && hbp_record_get_field(type, i, &f) >= 0; i++)
        if (!is_left_zero(type, f.name) && !draw(p, what + 10 + (uint64_t)i, rare))
            fill_field(p, type, &f, what + 500 + (uint64_t)i, way < 4, (char *)to + f.offset);
    memcpy(to, &told, sizeof told);
}

/* Two calls take a pair of structs, of which this is the second. */
static int32_t is_second(const char *type)
{
    return strcmp(type, "hbp_layer_partition_options") == 0 || strcmp(type, "hbp_recompute_options") == 0 ||
           strcmp(type, "hbp_stepper_options") == 0;
}

/* The k-th struct of the call; NULL now and then. */
static void *given(play *p, const char *type, size_t size, int32_t k)
{
    CHECK(size + 8 <= STRUCT);
    uint64_t what = FOR_STRUCT * (uint64_t)(k + 1);
    if (draw(p, what + 2, 6) == 0)
        return NULL;
    fill_struct(p, type, size, what, p->given[k]);
    return p->given[k];
}

/* A struct to write into: nothing but its size. */
static void *result(play *p, size_t size)
{
    if (draw(p, FOR_STRUCT * 9, 32) == 0)
        return NULL;
    uint32_t told = size_of(p, FOR_STRUCT * 9 + 1, size);
    memset(p->given[3], 0, STRUCT);
    memcpy(p->given[3], &told, sizeof told);
    return p->given[3];
}

static const hbp_operator *operators(play *p)
{
    uint64_t one[STRUCT / sizeof(uint64_t)];
    for (int32_t i = 0; i < 4; i++) {
        fill_struct(p, "hbp_operator", sizeof(hbp_operator), FOR_STRUCT * (uint64_t)(20 + i), one);
        hbp_operator *to = (hbp_operator *)p->operators + i;
        memcpy(to, one, sizeof *to);
        to->struct_size = sizeof *to;
    }
    return (const hbp_operator *)p->operators;
}

static void *room(play *p, uint64_t what)
{
    return draw(p, FOR_POINTER + what, 16) ? p->room[what] : NULL;
}

static hbp_status solve_odd(void *user, const hbp_program *program, const hbp_solver_limits *limits,
                            hbp_solver_answer *answer)
{
    static const double odd[] = {0, 1, -1, NAN, INFINITY, 1e300, 0.5};
    uint64_t how = (uint64_t)(uintptr_t)user;
    if (how % 5 == 4)
        return HBP_E_SYSTEM;
    if (how % 3 == 2 && limits->poll)
        (void)limits->poll(limits->poll_user);
    for (int32_t c = 0; c < program->columns; c++)
        answer->values[c] = odd[(how + (uint64_t)c * (how % 4 == 3)) % (sizeof odd / sizeof *odd)];
    if (answer->message && how % 2)
        memset(answer->message, 'm', (size_t)answer->message_bytes);
    answer->status = (int32_t)(how % 7);
    answer->bound = odd[how % (sizeof odd / sizeof *odd)];
    return how % 11 == 10 ? HBP_E_SOLVER : HBP_OK;
}

static const hbp_solver *solver(const play *p)
{
    static hbp_solver all[64];
    uint64_t k = draw(p, FOR_SOLVER, 64);
    all[k] = (hbp_solver){sizeof all[k], k == 63 ? NULL : solve_odd, (void *)(uintptr_t)k};
    return k == 62 ? NULL : &all[k];
}

#endif
