#include "data/plan/timeline.h"

#include <string.h>

#include "base/checked.h"
#include "base/options.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "hbp/lengths.h"

#define TICK_ROWS 32768

/* Copies a text less the blanks around it. A control character would break the line of the file it stands in.
 */
static hbp_status copy_text(hbp_context *context, const char *name, const char *from, char *to)
{
    if (!from)
        return HBP_OK;
    size_t bytes = strlen(from);
    while (bytes && *from == ' ')
        from++, bytes--;
    while (bytes && from[bytes - 1] == ' ')
        bytes--;
    if (bytes >= HBP__TIMELINE_TEXT_BYTES)
        return hbp__fail(context, HBP_E_INVALID, "%s has %llu bytes; it may have %d", name,
                         (unsigned long long)bytes, HBP__TIMELINE_TEXT_BYTES - 1);
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)from[i] < ' ' || from[i] == 127)
            return hbp__fail(context, HBP_E_INVALID,
                             "byte %llu of %s is %d; control characters are not allowed",
                             (unsigned long long)i, name, (int)from[i]);
    memcpy(to, from, bytes);
    to[bytes] = '\0';
    return HBP_OK;
}

static hbp_status copy_column(hbp_context *context, const void *from, int64_t count, uint64_t size,
                              int needed, const char *name, void **out)
{
    *out = NULL;
    if (needed)
        HBP__TRY(hbp__require(context, from, name));
    if (!from)
        return HBP_OK;
    *out = hbp__new(&context->memory, (uint64_t)count, size);
    if (!*out)
        return hbp__fail_memory(context, "a timeline");
    hbp_status status = hbp__copy(context, *out, from, (uint64_t)count * size);
    if (status < 0) {
        hbp__delete(&context->memory, *out);
        *out = NULL;
    }
    return status;
}

const char *hbp__timeline_field_name(int32_t field)
{
    static const char *const names[] = {
#define NAME(name, type, needed) #name,
        HBP__TIMELINE_COLUMNS(NAME)
#undef NAME
    };
    return names[field];
}

#define VALUE(name)        value[HBP__TIMELINE_##name]
#define KNOWN(name)        (known >> HBP__TIMELINE_##name & 1)
#define WITHIN(name, a, b) column_within(value, HBP__TIMELINE_##name, a, b, fault)

static int column_within(const int64_t *value, int32_t field, int64_t least, int64_t most,
                         hbp__timeline_fault *fault)
{
    *fault = (hbp__timeline_fault){field, least, most};
    return value[field] >= least && value[field] <= most;
}

/* Lengths of n documents that sum to at most S, as there may be padding, have squares that sum to between n
 * and S^2. */
int hbp__timeline_check_row(const int64_t *value, uint64_t known, int32_t ranks, hbp__timeline_fault *fault)
{
    if (!WITHIN(step, 0, INT64_MAX) || !WITHIN(micro_batch, 0, INT32_MAX) || !WITHIN(sp, 1, ranks) ||
        !WITHIN(first_rank, 0, ranks - VALUE(sp)) || !WITHIN(recompute, 0, INT32_MAX) ||
        (KNOWN(samples) && !WITHIN(samples, 0, HBP_MAX_LENGTH)))
        return 0;
    int64_t samples = KNOWN(samples) ? VALUE(samples) : VALUE(tokens) != 0, real = samples > 0;
    return WITHIN(tokens, samples, HBP_MAX_LENGTH) &&
           WITHIN(sum_squares, samples, VALUE(tokens) * VALUE(tokens)) && WITHIN(time_ns, real, INT64_MAX) &&
           (!KNOWN(start_ns) || WITHIN(start_ns, 0, INT64_MAX - VALUE(time_ns))) &&
           (!KNOWN(communication_ns) || WITHIN(communication_ns, 0, VALUE(time_ns))) &&
           (!KNOWN(peak_bytes) || WITHIN(peak_bytes, real, INT64_MAX));
}

static hbp_status check_row(hbp_context *context, const hbp_timeline *t, int64_t i)
{
    int64_t value[HBP__TIMELINE_FIELDS];
    uint64_t known = 0;
#define GATHER(name, type, needed)                                                                           \
    VALUE(name) = t->name ? t->name[i] : 0;                                                                  \
    known |= (uint64_t)(t->name != NULL) << HBP__TIMELINE_##name;
    HBP__TIMELINE_COLUMNS(GATHER)
#undef GATHER
    hbp__timeline_fault fault;
    if (hbp__timeline_check_row(value, known, t->ranks, &fault))
        return HBP_OK;
    const char *name = hbp__timeline_field_name(fault.field);
    if (fault.most == INT64_MAX)
        return hbp__fail(context, HBP_E_INVALID, "%s[%lld] is %lld; it must be at least %lld", name,
                         (long long)i, (long long)value[fault.field], (long long)fault.least);
    return hbp__fail(context, HBP_E_INVALID, "%s[%lld] is %lld; it must be in %lld..%lld", name, (long long)i,
                     (long long)value[fault.field], (long long)fault.least, (long long)fault.most);
}

/* The column's rows that are no padding packs. */
static hbp_status keep_real(hbp_context *context, hbp_timeline *t, int64_t count, const void *from,
                            size_t size, int place)
{
    unsigned char *to = t->own[place] = hbp__new(&context->memory, (uint64_t)count, size);
    if (!to)
        return hbp__fail_memory(context, "a timeline");
    for (int64_t i = 0; i < t->count; i++) {
        HBP__TRY(hbp__tick_row(context, "timeline", i, t->count));
        if (!hbp__timeline_is_padding(t, i)) {
            memcpy(to, (const unsigned char *)from + (size_t)i * size, size);
            to += size;
        }
    }
    return HBP_OK;
}

/* A step as far as it was measured. */
typedef struct span {
    int64_t step;
    int64_t start_ns;
    int64_t end_ns;
    int is_whole; /* its micro-batches are 0, 1, ... without a gap; whether more followed is not known */
} span;

/* The step of the rows from order[at] on, which are sorted by step and micro-batch; *next is the first of
 * another.
 */
static span span_of(const hbp_timeline *t, const uint32_t *order, int64_t at, int64_t *next)
{
    span s = {t->step[order[at]], INT64_MAX, 0, t->micro_batch[order[at]] == 0};
    for (*next = at; *next < t->count && t->step[order[*next]] == s.step; ++*next) {
        const uint32_t row = order[*next], before = order[*next > at ? *next - 1 : at];
        s.start_ns = hbp__min_i64(s.start_ns, t->start_ns[row]);
        s.end_ns = hbp__max_i64(s.end_ns, t->start_ns[row] + t->time_ns[row]);
        s.is_whole &= t->micro_batch[row] - t->micro_batch[before] <= 1;
    }
    return s;
}

/* What stands between the last pack of a step and the first of the next, of whole steps whose numbers are
 * neighbours; a clock that began anew says nothing. */
static hbp_status list_steps(hbp_context *context, hbp_timeline *t)
{
    if (!t->start_ns)
        return HBP_OK;
    const int64_t mark = hbp__scratch_mark(context);
    uint32_t *order = hbp__take(context, (uint64_t)t->count, sizeof *order);
    int64_t *key = hbp__take(context, (uint64_t)t->count, sizeof *key);
    int64_t *step_ns = t->own[6] = hbp__new(&context->memory, (uint64_t)t->count, sizeof *step_ns);
    if (!order || !key || !step_ns)
        return hbp__fail_memory(context, "a timeline");
    for (int64_t i = 0; i < t->count; i++) {
        order[i] = (uint32_t)i;
        key[i] = t->micro_batch[i];
    }
    HBP__TRY(hbp__order_by_i64(context, key, order, t->count, "a timeline"));
    HBP__TRY(hbp__order_by_i64(context, t->step, order, t->count, "a timeline"));
    int64_t steps = 0;
    span before = {-2, 0, 0, 0};
    for (int64_t at = 0; at < t->count;) {
        const span now = span_of(t, order, at, &at);
        if (now.step == before.step + 1 && before.is_whole && now.is_whole && now.start_ns >= before.start_ns)
            step_ns[steps++] = hbp__max_i64(now.start_ns - before.end_ns, 0);
        before = now;
    }
    t->measured.steps = steps;
    t->measured.step_ns = steps ? step_ns : NULL;
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

static hbp_status view_measurements(hbp_context *context, hbp_timeline *t)
{
    int64_t count = 0;
    for (int64_t i = 0; i < t->count; i++) {
        HBP__TRY(hbp__tick_row(context, "timeline", i, t->count));
        count += !hbp__timeline_is_padding(t, i);
    }
    t->measured = (hbp_measurements){.struct_size = sizeof t->measured,
                                     .count = count,
                                     .sp = t->sp,
                                     .recompute = t->recompute,
                                     .tokens = t->tokens,
                                     .sum_squares = t->sum_squares,
                                     .time_ns = t->time_ns,
                                     .peak_bytes = t->peak_bytes};
    HBP__TRY(list_steps(context, t));
    if (count == t->count)
        return HBP_OK;
    int place = 0;
#define KEEP(column)                                                                                         \
    if (t->column) {                                                                                         \
        HBP__TRY(keep_real(context, t, count, t->column, sizeof *t->column, place));                         \
        t->measured.column = t->own[place++];                                                                \
    }
    KEEP(sp)
    KEEP(recompute)
    KEEP(tokens)
    KEEP(sum_squares)
    KEEP(time_ns)
    KEEP(peak_bytes)
#undef KEEP
    return HBP_OK;
}

static hbp_status fill_timeline(hbp_context *context, const hbp_timeline_columns *given, hbp_timeline *t)
{
    HBP__TRY(copy_text(context, "device", given->device, t->device));
    HBP__TRY(copy_text(context, "date", given->date, t->date));
    void *copied;
#define COPY(name, type, needed)                                                                             \
    HBP__TRY(copy_column(context, given->name, t->count, sizeof(type), needed, #name, &copied));             \
    t->name = copied;
    HBP__TIMELINE_COLUMNS(COPY)
#undef COPY
    for (int64_t i = 0; i < t->count; i++) {
        if (i % TICK_ROWS == 0)
            HBP__TRY(hbp__tick(context, "timeline", i, t->count));
        HBP__TRY(check_row(context, t, i));
    }
    return view_measurements(context, t);
}

hbp_status hbp__timeline_create(hbp_context *context, const hbp_timeline_columns *columns, hbp_timeline **out)
{
    hbp_timeline_columns given;
    HBP__TRY(hbp__options_read(context, &given, sizeof given, columns, "hbp_timeline_columns"));
    if (given.ranks < 1)
        return hbp__fail(context, HBP_E_INVALID, "ranks is %d; there must be at least 1", (int)given.ranks);
    HBP__TRY(hbp__check_range(context, "count", given.count, 1, HBP_MAX_SAMPLES));
    hbp_timeline *timeline = hbp__new_zero(&context->memory, 1, sizeof *timeline);
    if (!timeline)
        return hbp__fail_memory(context, "a timeline");
    timeline->memory = context->memory;
    timeline->ranks = given.ranks;
    timeline->count = given.count;
    hbp_status status = fill_timeline(context, &given, timeline);
    if (status < 0) {
        hbp_timeline_free(timeline);
        return status;
    }
    *out = timeline;
    return HBP_OK;
}

hbp_status hbp_timeline_create(hbp_context *context, const hbp_timeline_columns *columns, hbp_timeline **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, columns, "columns"));
    return hbp__timeline_create(context, columns, out);
}

void hbp_timeline_free(hbp_timeline *timeline)
{
    if (!timeline)
        return;
    hbp__memory memory = timeline->memory;
#define RELEASE(name, type, needed) hbp__delete(&memory, timeline->name);
    HBP__TIMELINE_COLUMNS(RELEASE)
#undef RELEASE
    for (size_t i = 0; i < sizeof timeline->own / sizeof *timeline->own; i++)
        hbp__delete(&memory, timeline->own[i]);
    hbp__delete(&memory, timeline);
}

hbp_status hbp_timeline_get_columns(hbp_context *context, const hbp_timeline *timeline,
                                    hbp_timeline_columns *columns)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, timeline, "timeline"));
    hbp_timeline_columns all = {
        .struct_size = sizeof all, .ranks = timeline->ranks, .count = timeline->count};
#define POINT(name, type, needed) all.name = timeline->name;
    HBP__TIMELINE_COLUMNS(POINT)
#undef POINT
    all.device = timeline->device[0] ? timeline->device : NULL;
    all.date = timeline->date[0] ? timeline->date : NULL;
    return hbp__struct_write(context, columns, &all, sizeof all, "hbp_timeline_columns");
}

hbp_status hbp_timeline_get_measurements(hbp_context *context, const hbp_timeline *timeline,
                                         hbp_measurements *measurements)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, timeline, "timeline"));
    return hbp__struct_write(context, measurements, &timeline->measured, sizeof timeline->measured,
                             "hbp_measurements");
}
