#include "walk/record.h"

#include <stdlib.h>
#include <time.h>

int64_t ex_clock_ns(int32_t clock)
{
    struct timespec now;
    clock_gettime(clock == EX_CLOCK_PROCESSOR ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t ex_now_ns(void)
{
    return ex_clock_ns(EX_CLOCK_WALL);
}

/* The columns by width, for growing and freeing them alike. */
enum { LONG_COLUMNS = 9, INT_COLUMNS = 4 };

static void list_columns(ex_record *r, int64_t ***longs, int32_t ***ints)
{
    int64_t **const long_columns[LONG_COLUMNS] = {
        &r->pack,     &r->step,    &r->samples,          &r->tokens,    &r->sum_squares,
        &r->start_ns, &r->time_ns, &r->communication_ns, &r->peak_bytes};
    int32_t **const int_columns[INT_COLUMNS] = {&r->micro_batch, &r->first_rank, &r->sp, &r->recompute};
    for (int i = 0; i < LONG_COLUMNS; i++)
        longs[i] = long_columns[i];
    for (int i = 0; i < INT_COLUMNS; i++)
        ints[i] = int_columns[i];
}

static int grow(ex_record *r, int64_t count)
{
    if (count <= r->room)
        return 0;
    int64_t room = count + count / 2 + 64;
    int64_t **longs[LONG_COLUMNS];
    int32_t **ints[INT_COLUMNS];
    list_columns(r, longs, ints);
    for (int i = 0; i < LONG_COLUMNS + INT_COLUMNS; i++) {
        int is_long = i < LONG_COLUMNS;
        void *old = is_long ? (void *)*longs[i] : (void *)*ints[i - LONG_COLUMNS];
        void *grown = realloc(old, (size_t)room * (is_long ? 8 : 4));
        if (!grown)
            return -1;
        if (is_long)
            *longs[i] = grown;
        else
            *ints[i - LONG_COLUMNS] = grown;
    }
    r->room = room;
    return 0;
}

/* One row: the pack that ranks [rank, rank + its degree) measured in column `index` of `all` [ranks x count].
 */
static void add_row(ex_record *r, const ex_measured *all, int64_t count, int64_t index, int32_t rank)
{
    const ex_measured *own = &all[rank * count + index];
    int32_t sp = own->sp;
    int64_t start = own->start_ns[0], time = INT64_MAX, communication = 0, peak = 0;
    for (int32_t i = 0; i < own->repeats; i++) {
        int64_t began = own->start_ns[i], ended = own->end_ns[i], least = own->communication_ns[i];
        for (int32_t k = 1; k < sp; k++) {
            const ex_measured *other = &all[(rank + k) * count + index];
            began = other->start_ns[i] > began ? other->start_ns[i] : began;
            ended = other->end_ns[i] > ended ? other->end_ns[i] : ended;
            least = other->communication_ns[i] < least ? other->communication_ns[i] : least;
        }
        if (own->clock == EX_CLOCK_PROCESSOR) { /* clocks of their own: only what each took can be compared */
            began = own->start_ns[i];
            ended = own->end_ns[i];
            for (int32_t k = 1; k < sp; k++) {
                const ex_measured *other = &all[(rank + k) * count + index];
                if (other->end_ns[i] - other->start_ns[i] > ended - began)
                    ended = began + other->end_ns[i] - other->start_ns[i];
            }
        }
        if (ended - began < time) {
            start = began;
            time = ended - began;
            communication = least;
        }
    }
    for (int32_t k = 0; k < sp; k++) {
        int64_t bytes = all[(rank + k) * count + index].peak_bytes;
        peak = bytes > peak ? bytes : peak;
    }
    int64_t row = r->count++;
    r->clock = own->clock;
    r->pack[row] = own->pack;
    r->step[row] = own->step;
    r->micro_batch[row] = own->micro_batch;
    r->first_rank[row] = rank;
    r->sp[row] = sp;
    r->recompute[row] = own->recompute;
    r->samples[row] = own->samples;
    r->tokens[row] = own->tokens;
    r->sum_squares[row] = own->sum_squares;
    r->start_ns[row] = start;
    r->time_ns[row] = time > 0 ? time : 1;
    r->communication_ns[row] = communication;
    r->peak_bytes[row] = peak;
}

int ex_record_add(ex_record *r, ex_comm *comm, const ex_measured *own, int64_t count, ex_fault *fault)
{
    int64_t all_count = count * comm->ranks;
    if (all_count > r->all_room) {
        void *grown = realloc(r->all, (size_t)all_count * sizeof *r->all);
        if (!grown)
            return ex_fail(fault, "no memory for the measurements of %lld packs", (long long)all_count);
        r->all = grown;
        r->all_room = all_count;
    }
    comm->ops->gather_host(comm, own, r->all, count * (int64_t)sizeof *own);
    if (comm->fault.failed)
        return ex_fail(fault, "%s", comm->fault.text);
    if (grow(r, r->count + all_count) < 0)
        return ex_fail(fault, "no memory for a timeline of %lld packs", (long long)(r->count + all_count));
    for (int64_t i = 0; i < count; i++)
        for (int32_t rank = 0; rank < comm->ranks;) {
            add_row(r, r->all, count, i, rank);
            rank += r->all[rank * count + i].sp;
        }
    return 0;
}

int ex_record_finish(const ex_record *r, hbp_context *context, int32_t ranks, const char *device,
                     hbp_timeline **out, ex_fault *fault)
{
    hbp_timeline_columns c = {.struct_size = sizeof c};
    c.ranks = ranks;
    c.count = r->count;
    c.step = r->step;
    c.micro_batch = r->micro_batch;
    c.first_rank = r->first_rank;
    c.sp = r->sp;
    c.recompute = r->recompute;
    c.samples = r->samples;
    c.tokens = r->tokens;
    c.sum_squares = r->sum_squares;
    /* By the processor's clock nothing says what lies between steps: starts are the wall clock's. */
    c.start_ns = r->clock == EX_CLOCK_WALL ? r->start_ns : NULL;
    c.time_ns = r->time_ns;
    c.communication_ns = r->communication_ns;
    c.peak_bytes = r->peak_bytes;
    c.device = device;
    char date[32];
    time_t now = time(NULL);
    struct tm day;
    c.date = gmtime_r(&now, &day) && strftime(date, sizeof date, "%Y-%m-%d", &day) ? date : NULL;
    if (hbp_timeline_create(context, &c, out) < 0)
        return ex_fail(fault, "%s", hbp_context_message(context));
    return 0;
}

void ex_record_free(ex_record *r)
{
    int64_t **longs[LONG_COLUMNS];
    int32_t **ints[INT_COLUMNS];
    list_columns(r, longs, ints);
    for (int i = 0; i < LONG_COLUMNS; i++)
        free(*longs[i]);
    for (int i = 0; i < INT_COLUMNS; i++)
        free(*ints[i]);
    free(r->all);
    *r = (ex_record){0};
}
