/* Rows of the timeline from what each rank measured: a group's time, the least of several, two clocks. */
#include "walks.h"

typedef struct world {
    int32_t ranks;
    const ex_measured *measured; /* [ranks][count] */
    int64_t count;
    ex_record record;
    int status;
    ex_comm *comms[8];
} world;

typedef struct job {
    world *w;
    int32_t rank;
} job;

static void *run_rank(void *argument)
{
    job *j = argument;
    world *w = j->w;
    ex_record ignored = {0};
    ex_fault fault = {0};
    int status = ex_record_add(j->rank == 0 ? &w->record : &ignored, w->comms[j->rank],
                               w->measured + j->rank * w->count, w->count, &fault);
    if (j->rank == 0)
        w->status = status;
    ex_record_free(&ignored);
    return NULL;
}

static void gather(world *w)
{
    ex_fault fault = {0};
    pthread_t threads[8];
    job jobs[8];
    ck_assert_int_eq(ex_local_open(w->ranks, 30, w->comms, &fault), 0);
    for (int32_t r = 0; r < w->ranks; r++) {
        jobs[r] = (job){w, r};
        ck_assert_int_eq(pthread_create(&threads[r], NULL, run_rank, &jobs[r]), 0);
    }
    for (int32_t r = 0; r < w->ranks; r++)
        pthread_join(threads[r], NULL);
    for (int32_t r = 0; r < w->ranks; r++)
        ex_comm_free(w->comms[r]);
    ck_assert_int_eq(w->status, 0);
}

/* Ranks 0 and 1 share a pack, 2 and 3 run one each. */
static void fill(ex_measured m[4], int32_t clock)
{
    static const int64_t start[4][2] = {{100, 1000}, {150, 1010}, {90, 900}, {80, 950}};
    static const int64_t end[4][2] = {{300, 1180}, {310, 1200}, {500, 1500}, {400, 1000}};
    static const int64_t communication[4][2] = {{40, 30}, {20, 25}, {0, 0}, {0, 0}};
    memset(m, 0, 4 * sizeof *m);
    for (int r = 0; r < 4; r++) {
        m[r].pack = r < 2 ? 0 : r - 1;
        m[r].step = 7;
        m[r].micro_batch = 2;
        m[r].sp = r < 2 ? 2 : 1;
        m[r].repeats = 2;
        m[r].clock = clock;
        m[r].samples = r == 3 ? 0 : 5;
        m[r].tokens = 64;
        m[r].sum_squares = 1000;
        m[r].recompute = 1;
        m[r].peak_bytes = 1000 + r;
        for (int i = 0; i < 2; i++) {
            m[r].start_ns[i] = start[r][i];
            m[r].end_ns[i] = end[r][i];
            m[r].communication_ns[i] = communication[r][i];
        }
    }
}

/* The rows make a timeline, with or without starts. */
static void check_timeline(const ex_record *r, int has_starts)
{
    hbp_context *context = test_context();
    hbp_timeline *timeline = NULL;
    ex_fault fault = {0};
    ck_assert_msg(ex_record_finish(r, context, 4, "a device", &timeline, &fault) == 0, "%s", fault.text);
    hbp_timeline_columns c = {.struct_size = sizeof c};
    OK(context, hbp_timeline_get_columns(context, timeline, &c));
    ck_assert_int_eq((int)c.count, 3);
    ck_assert_int_eq(c.start_ns != NULL, has_starts);
    ck_assert_str_eq(c.device, "a device");
    ck_assert_int_eq((int)strlen(c.date), 10);
    hbp_timeline_free(timeline);
    hbp_context_free(context);
}

START_TEST(a_group_begins_with_its_last_rank)
{
    ex_measured m[4];
    fill(m, EX_CLOCK_WALL);
    world w = {.ranks = 4, .measured = m, .count = 1};
    gather(&w);
    const ex_record *r = &w.record;
    ck_assert_int_eq((int)r->count, 3);
    /* 150 to 310 the first time, 1010 to 1200 the second: the first was shorter, and waited 20 at least. */
    ck_assert_int_eq((int)r->start_ns[0], 150);
    ck_assert_int_eq((int)r->time_ns[0], 160);
    ck_assert_int_eq((int)r->communication_ns[0], 20);
    ck_assert_int_eq((int)r->peak_bytes[0], 1001);
    ck_assert_int_eq((int)r->time_ns[1], 410);
    ck_assert_int_eq((int)r->start_ns[2], 950);
    ck_assert_int_eq((int)r->time_ns[2], 50);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq((int)r->step[i], 7);
        ck_assert_int_eq(r->micro_batch[i], 2);
        ck_assert_int_eq(r->first_rank[i], i == 0 ? 0 : i + 1);
        ck_assert_int_eq(r->sp[i], i == 0 ? 2 : 1);
        ck_assert_int_eq((int)r->samples[i], i == 2 ? 0 : 5);
    }
    check_timeline(r, 1);
    ex_record_free(&w.record);
}
END_TEST

START_TEST(by_the_processors_clock_the_busiest_rank_counts)
{
    ex_measured m[4];
    fill(m, EX_CLOCK_PROCESSOR);
    world w = {.ranks = 4, .measured = m, .count = 1};
    gather(&w);
    ck_assert_int_eq((int)w.record.time_ns[0], 190); /* 200 and 160, then 180 and 190 */
    ck_assert_int_eq((int)w.record.time_ns[1], 410);
    ck_assert_int_eq((int)w.record.time_ns[2], 50);
    check_timeline(&w.record, 0); /* no time between steps is measured */
    ex_record_free(&w.record);
}
END_TEST

START_TEST(rows_follow_micro_batches_then_ranks)
{
    ex_measured m[2][70];
    memset(m, 0, sizeof m);
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < 70; i++) {
            m[r][i].pack = 2 * i + r;
            m[r][i].sp = 1;
            m[r][i].repeats = 1;
            m[r][i].micro_batch = i;
            m[r][i].end_ns[0] = 1000 * i + r;
        }
    world w = {.ranks = 2, .measured = m[0], .count = 70};
    gather(&w);
    gather(&w); /* another step */
    ck_assert_int_eq((int)w.record.count, 280);
    for (int i = 0; i < 280; i++) {
        ck_assert_int_eq((int)w.record.pack[i], i % 140);
        ck_assert_int_eq(w.record.micro_batch[i], i % 140 / 2);
        ck_assert_int_eq((int)w.record.time_ns[i],
                         i % 140 == 0 ? 1 : 1000 * (i % 140 / 2) + i % 2); /* never 0 */
    }
    ex_record_free(&w.record);
}
END_TEST

TEST_MAIN("record", a_group_begins_with_its_last_rank, by_the_processors_clock_the_busiest_rank_counts,
          rows_follow_micro_batches_then_ranks)
