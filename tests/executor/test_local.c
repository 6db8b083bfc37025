#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "comm_cases.h"
#include "test.h"

enum { MOST = 8 };

typedef struct virtual_rank virtual_rank;

/* A test: every rank is a thread that runs `body` and frees its communicator, which tells the others that it
 * is gone; `said` of its case keeps the fault. */
typedef struct virtual_run {
    void (*body)(virtual_rank *);
    sem_t moved;       /* what a body makes of it */
    atomic_int copied; /* set by slow_copy at its end */
    ex_device_ops ops; /* of `slow` and `broken` devices */
    virtual_rank *all;
} virtual_run;

struct virtual_rank {
    comm_case c;
    ex_device device;
    pthread_t thread;
    virtual_run *run;
};

static void *run_rank(void *argument)
{
    virtual_rank *r = argument;
    ex_comm_bind(r->c.comm, &r->device);
    r->run->body(r);
    if (!r->c.bad)
        snprintf(r->c.said, sizeof r->c.said, "%s", r->c.comm->fault.text);
    ex_comm_free(r->c.comm);
    return NULL;
}

static void run_ranks(virtual_rank *all, int32_t ranks, double limit_s, int host_memory,
                      void (*body)(virtual_rank *))
{
    ex_comm *comms[MOST];
    ex_fault fault = {0};
    virtual_run run = {.body = body, .all = all, .ops = *plain_device(1).ops};
    ck_assert_int_eq(sem_init(&run.moved, 0, 0), 0);
    ck_assert_msg(!ex_local_open(ranks, limit_s, comms, &fault), "%s", fault.text);
    for (int32_t r = 0; r < ranks; r++) {
        all[r] = (virtual_rank){.device = plain_device(host_memory), .run = &run};
        all[r].c = (comm_case){.comm = comms[r], .device = &all[r].device};
    }
    for (int32_t r = 0; r < ranks; r++)
        ck_assert_int_eq(pthread_create(&all[r].thread, NULL, run_rank, &all[r]), 0);
    for (int32_t r = 0; r < ranks; r++)
        pthread_join(all[r].thread, NULL);
    sem_destroy(&run.moved);
}

static void wait_for(virtual_rank *r, int times)
{
    for (int i = 0; i < times; i++)
        while (sem_wait(&r->run->moved))
            ;
}

static void all_cases(virtual_rank *r)
{
    comm_cases(&r->c, 100000);
}

START_TEST(every_call_on_any_number_of_ranks)
{
    const int32_t counts[] = {1, 2, 3, 4, 6, 8};
    for (int i = 0; i < 12; i++) {
        virtual_rank all[MOST];
        run_ranks(all, counts[i / 2], 100, i % 2, all_cases);
        for (int32_t r = 0; r < counts[i / 2]; r++) {
            ck_assert_msg(!all[r].c.bad, "%s", all[r].c.said);
            ck_assert_int_gt(all[r].c.checks, 50);
        }
    }
}
END_TEST

static void exchange(virtual_rank *r, const ex_group *group)
{
    char send[MOST * 8] = {0}, recv[MOST * 8];
    r->c.comm->ops->all_to_all(r->c.comm, group, send, recv, 8);
}

static void one_never_comes(virtual_rank *r)
{
    ex_comm *comm = r->c.comm;
    ex_group two = {.size = 2};
    comm->ops->make_group(comm, &two);
    snprintf(comm->where, sizeof comm->where, "step 4, micro-batch 1");
    if (comm->rank)
        wait_for(r, 1);
    exchange(r, &two);
    for (int i = 0; comm->rank == 0 && i < 3; i++)
        sem_post(&r->run->moved);
}

/* Who waits says who is missing; the others, and who comes later, are told what it said. */
START_TEST(a_rank_that_hangs_is_named)
{
    virtual_rank all[MOST];
    run_ranks(all, 4, .05, 1, one_never_comes);
    const char *own =
        "rank 0 of 4: all-to-all of ranks 0..1 in step 4, micro-batch 1: no answer for 0.05 s from "
        "rank 1; a rank is gone or hangs";
    ck_assert_str_eq(all[0].c.said, own);
    for (int r = 1; r < 4; r++) {
        char want[600];
        snprintf(want, sizeof want,
                 "rank %d of 4: all-to-all of ranks %s in step 4, micro-batch 1: rank 0 gave up: %s", r,
                 r < 2 ? "0..1" : "2..3", own);
        ck_assert_str_eq(all[r].c.said, want);
    }
}
END_TEST

static void one_gives_up(virtual_rank *r)
{
    ex_comm *comm = r->c.comm;
    ex_group two = {.size = 2}, four = {.size = 4};
    comm->ops->make_group(comm, &two);
    comm->ops->make_group(comm, &four);
    if (comm->rank == 2) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* others wait by now, or find it later */
        comm->ops->abandon(comm, "GPU 2 fell off the bus");
    }
    exchange(r, comm->rank < 4 ? &two : &four);
    exchange(r, &comm->world);
    if (comm->rank == 2)
        wait_for(r, 7); /* not released by its leaving */
    sem_post(&r->run->moved);
}

/* Ranks of other groups too, at the latest where they meet rank 2, and long before the limit. */
START_TEST(a_rank_that_gives_up_releases_all)
{
    virtual_rank all[MOST];
    run_ranks(all, 8, 1e9, 1, one_gives_up);
    ck_assert_str_eq(all[2].c.said, "GPU 2 fell off the bus");
    ck_assert_str_eq(all[3].c.said,
                     "rank 3 of 8: all-to-all of ranks 2..3: rank 2 gave up: GPU 2 fell off the bus");
    for (int r = 0; r < 8; r++)
        if (r != 2)
            ck_assert_ptr_nonnull(strstr(all[r].c.said, "rank 2 gave up: GPU 2 fell off the bus"));
}
END_TEST

static void one_leaves(virtual_rank *r)
{
    if (r->c.comm->rank)
        exchange(r, &r->c.comm->world);
}

START_TEST(a_rank_that_left_is_not_waited_for)
{
    virtual_rank all[MOST];
    run_ranks(all, 2, 1e9, 1, one_leaves);
    ck_assert_str_eq(all[0].c.said, "");
    ck_assert_str_eq(all[1].c.said, "rank 1 of 2: all-to-all of ranks 0..1: rank 0 has left");
}
END_TEST

static void broken_sync(ex_device *device)
{
    ex_fail(&device->fault, "GPU 1: an illegal address");
}

static void one_device_fails(virtual_rank *r)
{
    if (r->c.comm->rank == 1) {
        r->run->ops.sync = broken_sync;
        r->device.ops = &r->run->ops;
    }
    exchange(r, &r->c.comm->world);
}

START_TEST(a_device_that_fails_is_told_to_all)
{
    virtual_rank all[MOST];
    run_ranks(all, 2, 1e9, 1, one_device_fails);
    ck_assert_str_eq(all[1].c.said, "rank 1 of 2: all-to-all of ranks 0..1: GPU 1: an illegal address");
    ck_assert_str_eq(all[0].c.said, "rank 0 of 2: all-to-all of ranks 0..1: rank 1 gave up: rank 1 of 2: "
                                    "all-to-all of ranks 0..1: GPU 1: an illegal address");
}
END_TEST

static void calls_differ(virtual_rank *r)
{
    ex_comm *comm = r->c.comm;
    float data[4] = {0};
    if (comm->rank == 1)
        comm->ops->all_reduce(comm, &comm->world, data, 3);
    else
        exchange(r, &comm->world);
}

START_TEST(calls_that_differ_are_named)
{
    virtual_rank all[MOST];
    run_ranks(all, 2, 1e9, 1, calls_differ);
    const char *text = "this rank brings 8 bytes; rank 1 calls all-reduce with 12";
    ck_assert_msg(strstr(all[0].c.said, text) || strstr(all[0].c.said, "rank 1 gave up"), "%s",
                  all[0].c.said);
    text = "this rank brings 12 bytes; rank 0 calls all-to-all with 8";
    ck_assert_msg(strstr(all[1].c.said, text) || strstr(all[1].c.said, "rank 0 gave up"), "%s",
                  all[1].c.said);
}
END_TEST

static void no_such_group(virtual_rank *r)
{
    ex_comm *comm = r->c.comm;
    ex_group group = {.size = 2, .first = 0, .rank = 0};
    if (comm->rank == 0)
        exchange(r, &group);
    else
        exchange(r, &comm->world);
}

START_TEST(groups_must_be_made)
{
    virtual_rank all[MOST];
    run_ranks(all, 2, 1e9, 1, no_such_group);
    ck_assert_str_eq(all[0].c.said, "rank 0 of 2: all-to-all of ranks 0..1: the group was not made");
    ck_assert_ptr_nonnull(strstr(all[1].c.said, "rank 0 gave up"));
}
END_TEST

/* Rank 0 copies out of rank 1's memory while rank 2 gives up: rank 1 may not return, and then free its
 * memory, before the copy has ended. */
static void slow_copy(ex_device *device, void *to, const void *from, int64_t bytes)
{
    virtual_rank *r = (virtual_rank *)((char *)device - offsetof(virtual_rank, device));
    sem_post(&r->run->moved);
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    memcpy(to, from, (size_t)bytes);
    atomic_store(&r->run->copied, 1);
}

static void one_copies(virtual_rank *r)
{
    ex_comm *comm = r->c.comm;
    ex_group two = {.size = 2};
    comm->ops->make_group(comm, &two);
    if (comm->rank == 0) {
        r->run->ops.copy = slow_copy;
        r->device.ops = &r->run->ops;
    }
    if (comm->rank == 2) {
        wait_for(r, 1);
        comm->ops->abandon(comm, "no more");
    } else if (comm->rank < 2) {
        exchange(r, &two);
        case_expect(&r->c, comm->fault.failed, "no fault");
        case_expect(&r->c, atomic_load(&r->run->copied), "returned under a copy");
    }
}

START_TEST(memory_is_not_given_up_under_a_copy)
{
    virtual_rank all[MOST];
    run_ranks(all, 3, 1e9, 1, one_copies);
    for (int r = 0; r < 2; r++) {
        ck_assert_msg(!all[r].c.bad, "%s", all[r].c.said);
        ck_assert_ptr_nonnull(strstr(all[r].c.said, "rank 2 gave up: no more"));
    }
}
END_TEST

START_TEST(at_least_one_rank)
{
    ex_comm *comms[1];
    ex_fault fault = {0};
    ck_assert_int_eq(ex_local_open(0, 1, comms, &fault), -1);
    ck_assert_str_eq(fault.text, "0 virtual ranks; at least 1");
}
END_TEST

TEST_MAIN("local", every_call_on_any_number_of_ranks, a_rank_that_hangs_is_named,
          a_rank_that_gives_up_releases_all, a_rank_that_left_is_not_waited_for,
          a_device_that_fails_is_told_to_all, calls_that_differ_are_named, groups_must_be_made,
          memory_is_not_given_up_under_a_copy, at_least_one_rank)
