/* Structs to hand over, good ones with some fields changed, and a solver that lies. */
#ifndef HBP_FUZZ_CALLS_FILL_H
#define HBP_FUZZ_CALLS_FILL_H

#include "calls_draw.h"
#include "calls_structs.h"

static uint32_t size_of(const play *p, uint64_t what, size_t size)
{
    const uint32_t odd[] = {0, 3, 4, (uint32_t)size / 16 * 8, (uint32_t)size + 8, 65537, UINT32_MAX};
    uint64_t k = draw(p, what, 64);
    return k < sizeof odd / sizeof *odd ? odd[k] : (uint32_t)size;
}

enum { IS_NUMBER, IS_REAL, IS_COUNTED, IS_INTS, IS_WIDES, IS_UINTS, IS_REALS, IS_TEXT, IS_OBJECT };

typedef struct field {
    const char *type;
    size_t offset;
    size_t size;
    int32_t is;
    int32_t kind; /* of an object */
} field;

#define AT(type, name) #type, offsetof(type, name), sizeof(((type *)0)->name)
#define NUMBER(type, name)                                                                                   \
    {AT(type, name), _Generic(((type *)0)->name, double : IS_REAL, default : IS_NUMBER), 0},
#define COUNTED(type, name)    {AT(type, name), IS_COUNTED, 0},
#define INTS(type, name)       {AT(type, name), IS_INTS, 0},
#define WIDES(type, name)      {AT(type, name), IS_WIDES, 0},
#define UINTS(type, name)      {AT(type, name), IS_UINTS, 0},
#define REALS(type, name)      {AT(type, name), IS_REALS, 0},
#define TEXT(type, name)       {AT(type, name), IS_TEXT, 0},
#define OBJECT(type, name, of) {AT(type, name), IS_OBJECT, KIND_##of},
static const field fields[] = {CALLS_FIELDS(NUMBER, COUNTED, INTS, WIDES, UINTS, REALS, TEXT, OBJECT)};
#undef NUMBER
#undef COUNTED
#undef INTS
#undef WIDES
#undef UINTS
#undef REALS
#undef TEXT
#undef OBJECT

/* A small number, as most honest ones are. */
static int64_t honest(const play *p, uint64_t what)
{
    return 1 + (int64_t)draw(p, what + 6000, 6);
}

static void fill_field(const play *p, const field *f, uint64_t what, int is_full, char *to)
{
    int64_t wide_value = is_full ? honest(p, what) : f->is == IS_COUNTED ? counted(p, what) : number(p, what);
    int32_t narrow = (int32_t)wide_value;
    double value = is_full ? (double)wide_value / (draw(p, what, 2) ? 8 : 1) : real(p, what);
    const void *pointer = NULL;
    switch (f->is) {
    case IS_REAL:
        memcpy(to, &value, sizeof value);
        return;
    case IS_NUMBER:
    case IS_COUNTED:
        memcpy(to, f->size == sizeof narrow ? (void *)&narrow : (void *)&wide_value, f->size);
        return;
    case IS_INTS:
        pointer = ints_array(p, what);
        break;
    case IS_WIDES:
        pointer = wide_array(p, what);
        break;
    case IS_UINTS:
        pointer = uints_array(p, what);
        break;
    case IS_REALS:
        pointer = reals_array(p, what);
        break;
    case IS_TEXT:
        pointer = text(p, what);
        break;
    default:
        pointer = object(p, f->kind);
        break;
    }
    memcpy(to, &pointer, sizeof pointer);
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
    start_struct(type, to);
    for (size_t i = 0; i < sizeof fields / sizeof *fields && way; i++)
        if (strcmp(fields[i].type, type) == 0 && !draw(p, what + 10 + i, rare))
            fill_field(p, &fields[i], what + 500 + i, way < 4, (char *)to + fields[i].offset);
    memcpy(to, &told, sizeof told);
}

/* Two calls take a pair of structs, of which this is the second. */
static int32_t is_second(const char *type)
{
    return strcmp(type, "hbp_partition_options") == 0 || strcmp(type, "hbp_recompute_options") == 0 ||
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
