/* Reads any bytes as a sequence of calls, six bytes each: which function of calls_table.h, and what its
 * arguments are drawn from. They are honest, NULL, hostile, or objects that earlier calls of either of two
 * contexts made; solvers lie, allocations fail and progress cancels. Whatever is called, it returns; a status
 * below 0 has a message and made nothing, one of 0 or more has made what it says; nothing leaks. */
#include "calls_good.h"
#include "hbp/io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- the calls ---------------------------------------------------------------------------------------------
 */

static hbp_context *context(play *p)
{
    uint64_t k = draw(p, FOR_CONTEXT, 32);
    p->with = k ? p->context[k % CONTEXTS] : NULL;
    return p->with;
}

static void before(play *p)
{
    int has_steppers = 0;
    p->cancelled = p->makes = 0;
    p->with = NULL;
    p->looks = draw(p, FOR_CANCEL, 6) ? LOOKS : (int64_t)draw(p, FOR_CANCEL + 5000, 8);
    for (int32_t s = 0; s < SLOTS; s++)
        has_steppers |= p->object[KIND_stepper][s] != NULL;
    if (!has_steppers) /* whose threads may have been short of memory before */
        p->memory.failed = 0;
    p->memory.left = draw(p, FOR_MEMORY, 5) ? -1 : (int64_t)draw(p, FOR_MEMORY + 5000, 40);
}

static void after(play *p, hbp_status status)
{
    p->memory.left = -1;
    CHECK(strcmp(hbp_status_name(status), hbp_status_name((hbp_status)-12345)) != 0);
    CHECK(status != HBP_E_INTERNAL);
    CHECK(status != HBP_E_CANCELLED || p->cancelled || p->asked[p->with == p->context[1]]);
    CHECK(status != HBP_E_NO_MEMORY || p->memory.failed);
    if (status == HBP_E_CANCELLED)
        p->asked[p->with == p->context[1]] = 0;
    if (p->with)
        CHECK((status < 0) == (hbp_context_message(p->with)[0] != '\0'));
    else
        CHECK(status == HBP_E_INVALID);
    if (p->makes)
        CHECK((status < 0) == !p->made);
}

/* Puts what the call made in the place of an older one. */
static void keep(play *p, int32_t kind)
{
    int32_t slot = (int32_t)draw(p, FOR_SLOT, SLOTS);
    if (!p->makes || !p->made)
        return;
    free_object(p, kind, slot);
    p->object[kind][slot] = p->made;
}

#define CONTEXT       context(p)
#define OBJECT(of)    object(p, KIND_##of)
#define OWN(of)       own(p, KIND_##of)
#define OUT(of)       (made_kind = KIND_##of, out(p))
#define GIVEN(type)   given(p, #type, sizeof(type), is_second(#type))
#define RESULT(type)  result(p, sizeof(type))
#define ROOM(type)    room(p, 0)
#define OPERATORS     operators(p)
#define FEW           ((int64_t)draw(p, FOR_FEW, 6) - 1)
#define SIZE          ((uint32_t)draw(p, FOR_SIZE, 220))
#define INT(n)        ((int32_t)number(p, FOR_NUMBER + (n)))
#define LONG(n)       number(p, FOR_NUMBER + 20 + (n))
#define COUNT(n)      counted(p, FOR_NUMBER + 40)
#define REAL(n)       real(p, FOR_NUMBER + 60 + (n))
#define TEXT(n)       text(p, FOR_TEXT + (n))
#define DATA          text(p, FOR_TEXT + 1), bytes_of(p)
#define PATH          path(p)
#define SOLVER        solver(p)
#define WIDES(n)      wide_array(p, FOR_ARRAY + (n))
#define INTS(n)       ints_array(p, FOR_ARRAY + 20 + (n))
#define UINTS(n)      uints_array(p, FOR_ARRAY + 40 + (n))
#define REALS(n)      reals_array(p, FOR_ARRAY + 60 + (n))
#define TO_WIDE(n)    room(p, (n))
#define TO_INT(n)     room(p, 2 + (n))
#define TO_REAL(n)    room(p, 4 + (n))
#define TO_POINTER(n) room(p, 5 + (n))
#define TO_BYTES      room(p, 7)
#define BYTES         room(p, 7)

#define STATUS(function, ...)                                                                                \
    static void call_##function(play *p)                                                                     \
    {                                                                                                        \
        int32_t made_kind = 0;                                                                               \
        before(p);                                                                                           \
        after(p, function(__VA_ARGS__));                                                                     \
        keep(p, made_kind);                                                                                  \
    }
#define VALUE(function, ...)                                                                                 \
    static void call_##function(play *p)                                                                     \
    {                                                                                                        \
        before(p);                                                                                           \
        (void)function(__VA_ARGS__);                                                                         \
    }
#define WORDS(function, ...)                                                                                 \
    static void call_##function(play *p)                                                                     \
    {                                                                                                        \
        before(p);                                                                                           \
        const char *words = function(__VA_ARGS__);                                                           \
        CHECK(!words || strlen(words) < STRUCT);                                                             \
    }
#define FREE(function, of)                                                                                   \
    static void call_##function(play *p)                                                                     \
    {                                                                                                        \
        function(NULL);                                                                                      \
        free_object(p, KIND_##of, (int32_t)draw(p, FOR_SLOT, SLOTS));                                        \
    }
#define SPECIAL(function)

static void call_hbp_context_create(play *p)
{
    hbp_context *made = NULL;
    hbp_allocator allocator = {sizeof allocator, take, draw(p, 10, 4) ? resize : NULL, release, &p->memory};
    if (draw(p, 11, 4) == 0)
        allocator.alloc = NULL;
    hbp_context_options *options = (hbp_context_options *)p->given[0]; /* as long as it may say */
    memset(options, 0, STRUCT);
    options->struct_size = size_of(p, FOR_SIZE, sizeof *options);
    options->allocator = draw(p, 12, 2) ? &allocator : NULL;
    before(p);
    hbp_status status = hbp_context_create(draw(p, 13, 8) ? options : NULL, draw(p, 14, 8) ? &made : NULL);
    p->memory.left = -1;
    CHECK(status == HBP_OK || !made);
    hbp_context_free(made);
}

/* Its arrays are as long as the lengths say; what is in them is drawn. */
static void call_hbp_packs_create(play *p)
{
    enum { MOST_GIVEN = 4096 };
    static int64_t offsets[MOST_GIVEN + 1], samples[MOST_GIVEN];
    static int32_t groups[MOST_GIVEN];
    before(p);
    const hbp_lengths *lengths = OBJECT(lengths);
    hbp_lengths_summary s = {.struct_size = sizeof s};
    if (lengths && (hbp_lengths_get_summary(p->context[0], lengths, &s) < 0 || s.samples > MOST_GIVEN))
        return;
    int64_t packs = 1 + (int64_t)draw(p, FOR_FEW, 9);
    for (int64_t i = 0; i < s.samples; i++) {
        samples[i] = draw(p, FOR_ARRAY + (uint64_t)i, 40) ? i : LONG(1);
        groups[i] = INT(1) % 3;
    }
    for (int64_t i = 0; i <= packs; i++)
        offsets[i] = draw(p, FOR_ARRAY + 5000 + (uint64_t)i, 40) ? s.samples * i / packs : LONG(2);
    after(p, hbp_packs_create(CONTEXT, lengths, OBJECT(groups), packs, draw(p, 20, 8) ? offsets : NULL,
                              draw(p, 21, 8) ? samples : NULL, draw(p, 22, 2) ? groups : NULL,
                              GIVEN(hbp_fill_options), out(p)));
    keep(p, KIND_packs);
}

static void call_hbp_plan_quick(play *p)
{
    char why[64] = "";
    hbp_plan *made = NULL;
    int64_t few = (int64_t)draw(p, FOR_FEW, 8) - 1;
    before(p);
    hbp_status status = hbp_plan_quick(WIDES(1), few, draw(p, 20, 3) ? "gpt2" : TEXT(1),
                                       draw(p, 21, 3) ? "h100" : TEXT(2), GIVEN(hbp_epoch_options),
                                       draw(p, 22, 9) ? &made : NULL, why, (int64_t)draw(p, 23, 65));
    CHECK(status >= 0 || !made);
    CHECK(strlen(why) < sizeof why);
    hbp_plan_free(made);
}

/* Few samples of few tokens most of the time, so that some are taken. */
static void call_hbp_partition_samples(play *p)
{
    char why[64] = "";
    int64_t few = draw(p, 20, 8) ? (int64_t)draw(p, FOR_FEW, 24) : LONG(1);
    before(p);
    hbp_partition **to = (hbp_partition **)out(p);
    hbp_status status = hbp_partition_samples(draw(p, 21, 8) ? wide[draw(p, 22, 4) ? LENGTHS : ONES] : NULL,
                                              few > ELEMENTS ? ELEMENTS : few, GIVEN(hbp_partition_options),
                                              to, why, (int64_t)draw(p, 23, 65));
    p->memory.left = -1;
    CHECK(strlen(why) < sizeof why);
    if (p->makes)
        CHECK((status < 0) == !p->made);
    keep(p, KIND_partition);
}

static void call_hbp_context_free(play *p)
{
    (void)p;
    hbp_context_free(NULL);
}

static void call_hbp_context_message(play *p)
{
    CHECK(hbp_context_message(context(p)));
}

static void call_hbp_context_cancel(play *p)
{
    hbp_context_cancel(context(p));
    if (p->with)
        p->asked[p->with == p->context[1]] = 1;
}

#include "calls_table.h"
#undef STATUS
#undef VALUE
#undef WORDS
#undef FREE
#undef SPECIAL

#define ROW(function, ...) {#function, call_##function},
#define STATUS             ROW
#define VALUE              ROW
#define WORDS              ROW
#define FREE               ROW
#define SPECIAL(function)  ROW(function, )
static const struct row {
    const char *name;
    void (*call)(play *p);
} rows[] = {
#include "calls_table.h"
};

enum { ROWS = sizeof rows / sizeof *rows };

/* --- the whole ---------------------------------------------------------------------------------------------
 */

static void open_play(play *p)
{
    memset(p, 0, sizeof *p);
    p->memory.left = -1;
    snprintf(p->folder, sizeof p->folder, "/tmp/hbp-calls-XXXXXX");
    CHECK(mkdtemp(p->folder));
    for (int32_t k = 0; k < 4; k++)
        snprintf(p->path[k], sizeof p->path[k], "%s/%d", p->folder, (int)k);
    hbp_allocator allocator = {sizeof allocator, take, resize, release, &p->memory};
    hbp_context_options options = {
        .struct_size = sizeof options, .allocator = &allocator, .progress = on_progress, .progress_user = p};
    for (int32_t k = 0; k < CONTEXTS; k++)
        CHECK(hbp_context_create(&options, &p->context[k]) == HBP_OK);
    p->looks = LOOKS;
    CHECK(hbp_lengths_builder_create(p->context[0], (void *)&p->object[KIND_builder][0]) == HBP_OK);
    CHECK(hbp_graph_create(p->context[1], (void *)&p->object[KIND_graph][0]) == HBP_OK);
    CHECK(hbp_machine_create_preset(p->context[0], "h100:2", (void *)&p->object[KIND_machine][0]) == HBP_OK);
    CHECK(hbp_stepper_create(p->context[1], good[KIND_cost], NULL, NULL,
                             (void *)&p->object[KIND_stepper][0]) == HBP_OK);
    CHECK(hbp_plan_file_open(p->context[0], good_path[0], (void *)&p->object[KIND_plan_file][0]) == HBP_OK);
}

static void close_play(play *p, int contexts_first)
{
    now_called = "the end";
    p->memory.left = -1;
    for (int32_t k = 0; k < CONTEXTS && contexts_first; k++)
        hbp_context_free(p->context[k]);
    for (int32_t kind = 0; kind < KIND_COUNT; kind++) /* steppers are the first */
        for (int32_t slot = 0; slot < SLOTS; slot++)
            free_object(p, kind, slot);
    for (int32_t k = 0; k < CONTEXTS && !contexts_first; k++)
        hbp_context_free(p->context[k]);
    CHECK(p->memory.live == 0 && p->memory.bytes == 0);
    for (int32_t k = 0; k < 4; k++)
        unlink(p->path[k]);
    CHECK(rmdir(p->folder) == 0); /* nothing else is left in it */
}

static void run_call(play *p, const uint8_t *at)
{
    const struct row *row = &rows[(at[0] | (unsigned)at[1] << 8) % ROWS];
    p->seed = at[2] | (uint64_t)at[3] << 8 | (uint64_t)at[4] << 16 | (uint64_t)at[5] << 24;
    now_called = row->name;
    row->call(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static play p;
    size_t calls = size / CALL;
    if (!good[KIND_lengths])
        open_good();
    for (size_t first = 0; first < calls; first += CALLS) {
        open_play(&p);
        for (size_t i = first; i < calls && i < first + CALLS; i++)
            run_call(&p, data + i * CALL);
        close_play(&p, data[first * CALL] % 2);
    }
    return 0;
}
