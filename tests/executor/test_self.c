#include "comm/self.h"

#include "comm/call.h"
#include "comm_cases.h"
#include "test.h"

START_TEST(every_call_alone)
{
    for (int host_memory = 0; host_memory < 2; host_memory++) {
        ex_fault fault = {0};
        ex_device device = plain_device(host_memory);
        comm_case c = {.comm = ex_self_open(&fault), .device = &device};
        ck_assert_ptr_nonnull(c.comm);
        ck_assert_str_eq(c.comm->name, "self");
        ck_assert_int_eq(c.comm->node_ranks, 1);
        comm_cases(&c, 100000);
        ck_assert_msg(!c.bad, "%s", c.said);
        ck_assert_int_gt(c.checks, 50);
        ex_comm_free(c.comm);
    }
}
END_TEST

START_TEST(the_first_failure_stays)
{
    ex_fault fault = {0};
    ex_device device = plain_device(1);
    ex_comm *comm = ex_self_open(&fault);
    char from[4] = "abc", to[4] = "xyz";
    ex_comm_bind(comm, &device);
    comm->ops->abandon(comm, "sample 7 has no tokens");
    comm->ops->abandon(comm, "and more");
    ck_assert_str_eq(comm->fault.text, "sample 7 has no tokens");
    comm->ops->all_to_all(comm, &comm->world, from, to, 4);
    comm->ops->all_gather(comm, &comm->world, from, to, 4);
    comm->ops->reduce_scatter(comm, &comm->world, (float *)(void *)from, (float *)(void *)to, 1);
    comm->ops->gather_host(comm, from, to, 4);
    ck_assert_str_eq(to, "xyz");
    ck_assert_int_eq(ex_comm_bind(comm, &device), -1);
    ex_comm_free(comm);
    ex_comm_free(NULL);
}
END_TEST

static void fails(ex_comm *comm, const char *text)
{
    ck_assert_int_eq(comm->fault.failed, 1);
    ck_assert_str_eq(comm->fault.text, text);
    comm->fault = (ex_fault){0};
}

START_TEST(wrong_calls_are_named)
{
    ex_fault fault = {0};
    ex_device device = plain_device(1);
    ex_comm *comm = ex_self_open(&fault);
    char data[8];
    comm->ops->all_to_all(comm, &comm->world, data, data, 8);
    fails(comm, "rank 0 of 1: all-to-all of rank 0: no device is bound to the communicator");
    ex_comm_bind(comm, &device);
    strcpy(comm->where, "step 4, micro-batch 1");
    comm->ops->all_gather(comm, &comm->world, data, data, -3);
    fails(comm, "rank 0 of 1: all-gather of rank 0 in step 4, micro-batch 1: a size of -3; at least 0");
    ex_group other = {.first = 4, .size = 4, .rank = 0};
    comm->ops->all_reduce(comm, &other, NULL, 1);
    fails(comm,
          "rank 0 of 1: all-reduce of ranks 4..7 in step 4, micro-batch 1: this rank is not in the group");
    ex_group two = {.size = 2};
    comm->ops->make_group(comm, &two);
    ck_assert_int_eq(two.rank, -1);
    comm->ops->all_to_all(comm, &two, data, data, 4);
    fails(comm,
          "rank 0 of 1: all-to-all of ranks 0..1 in step 4, micro-batch 1: this rank is not in the group");
    ex_group none = {.size = 0};
    comm->ops->make_group(comm, &none);
    fails(comm, "a group of 0 ranks; at least 1");
    ex_comm_free(comm);
}
END_TEST

/* The messages of waits that were too long, which the other backends share. */
START_TEST(who_did_not_answer)
{
    ex_comm comm = {.rank = 3, .ranks = 32, .limit_s = 60, .where = "step 4, micro-batch 1"};
    ex_group group = {.first = 0, .size = 32, .rank = 3};
    unsigned char missing[32] = {0};
    ex_call_late(&comm, &group, "all-to-all", NULL);
    fails(&comm,
          "rank 3 of 32: all-to-all of ranks 0..31 in step 4, micro-batch 1: no answer for 60 s; a rank "
          "is gone or hangs");
    comm.where[0] = 0;
    comm.limit_s = .25;
    missing[2] = 1;
    ex_call_late(&comm, &group, "all-to-all", missing);
    fails(&comm,
          "rank 3 of 32: all-to-all of ranks 0..31: no answer for 0.25 s from rank 2; a rank is gone or "
          "hangs");
    missing[31] = 1;
    ex_call_late(&comm, &group, "all-gather", missing);
    fails(&comm, "rank 3 of 32: all-gather of ranks 0..31: no answer for 0.25 s from ranks 2, 31; a rank is "
                 "gone or hangs");
    memset(missing + 10, 1, 10);
    ex_call_late(&comm, &group, "all-gather", missing);
    fails(&comm,
          "rank 3 of 32: all-gather of ranks 0..31: no answer for 0.25 s from ranks 2, 10, 11, 12, 13, "
          "14, 15, 16 and 4 more; a rank is gone or hangs");
}
END_TEST

/* In fp32 alone 2^24 swallows the ones; and the place of the sum may be that of a summand. */
START_TEST(sums_are_rounded_once)
{
    enum { RANKS = 5, COUNT = 1031 };
    static float data[RANKS][COUNT];
    const float *from[RANKS];
    for (int r = 0; r < RANKS; r++) {
        for (int i = 0; i < COUNT; i++)
            data[r][i] = r == 0 ? 16777216.f + (float)(2 * i) : 1.f;
        from[r] = data[r];
    }
    ex_call_sum(data[3], from, RANKS, COUNT);
    for (int i = 0; i < COUNT; i++)
        ck_assert(data[3][i] == 16777216.f + (float)(2 * i) + 4.f);
    ex_call_sum(data[3], from, RANKS, 0);
}
END_TEST

TEST_MAIN("self", every_call_alone, the_first_failure_stays, wrong_calls_are_named, who_did_not_answer,
          sums_are_rounded_once)
