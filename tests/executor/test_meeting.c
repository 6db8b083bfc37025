/* What leads to a rendezvous: the environment, the file, a communicator that is there already. */
#include "test.h"

#include <unistd.h>

#include "comm/rendezvous.h"
#include "comm/rendezvous_meet.h"

START_TEST(a_ticket_is_read_whole_or_not)
{
    char path[] = "/tmp/hbp-ticket-XXXXXX";
    close(mkstemp(path));
    ex_fault fault = {0};
    ex_ticket ticket = {.run = 5, .nonce = UINT64_MAX, .port = 65535}, got;
    ex_ticket_addresses(&ticket);
    ck_assert_int_ge(ticket.count, 1);
    ck_assert(!ex_ticket_write(path, &ticket, &fault) && !ex_ticket_read(path, &got));
    ck_assert(got.run == 5 && got.nonce == UINT64_MAX && got.port == 65535 && got.count == ticket.count);
    for (int32_t i = 0; i < got.count; i++)
        ck_assert_str_eq(got.address[i], ticket.address[i]);
    static const char *const bad[] = {"",
                                      "hbp-rendezvous 1 5 6 80\n",
                                      "hbp-rendezvous 1 5 6 80\nend\n",
                                      "hbp-rendezvous 1 5 6 80\n::1\n",
                                      "hbp-rendezvous 1 5 6 0\n::1\nend\n",
                                      "hbp-rendezvous 1 5 6 65536\n::1\nend\n",
                                      "hbp-rendezvous 2 5 6 80\n::1\nend\n",
                                      "hbp-rendezvous 1 5\n::1\nend\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        FILE *file = fopen(path, "w");
        fputs(bad[i], file);
        fclose(file);
        ck_assert_msg(ex_ticket_read(path, &got) == 1, "taken: %s", bad[i]);
    }
    unlink(path);
    ck_assert_int_eq(ex_ticket_read(path, &got), 1);
}
END_TEST

static void clear(void)
{
    static const char *const names[] = {"RANK",         "WORLD_SIZE",           "LOCAL_RANK",
                                        "SLURM_PROCID", "LOCAL_WORLD_SIZE",     "MASTER_ADDR",
                                        "MASTER_PORT",  "TORCHELASTIC_RUN_ID",  "SLURM_JOB_ID",
                                        "SLURM_NTASKS", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                        "SLURM_LOCALID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

static void set_all(const char *rank, const char *ranks, const char *port)
{
    setenv("RANK", rank, 1);
    setenv("WORLD_SIZE", ranks, 1);
    setenv("MASTER_PORT", port, 1);
}

START_TEST(the_environment_is_read)
{
    ex_meeting m;
    ex_fault fault;
    clear();
#define MISREAD(words, file)                                                                                 \
    fault = (ex_fault){0};                                                                                   \
    ck_assert_int_eq(ex_meeting_from_environment(file, 5, &m, &fault), -1);                                  \
    ck_assert_msg(strstr(fault.text, words) != NULL, "'%s' lacks '%s'", fault.text, words)
    MISREAD("RANK and WORLD_SIZE are not set; start the executor by torchrun", NULL);
    setenv("RANK", "1", 1);
    MISREAD("RANK is set and WORLD_SIZE is not", NULL);
    set_all("1", "2", "29500");
    MISREAD("MASTER_ADDR is not set", NULL);
    setenv("MASTER_ADDR", "node7", 1);
    unsetenv("MASTER_PORT");
    MISREAD("MASTER_PORT is not set", NULL);
    set_all("1", "2", "65536");
    MISREAD("MASTER_PORT is '65536'; it must be a whole number in 1..65535", NULL);
    set_all("2", "2", "29500");
    MISREAD("RANK is 2; WORLD_SIZE is 2, so ranks are 0..1", NULL);
    set_all("-1", "2", "29500");
    MISREAD("RANK is '-1'", NULL);
    set_all("1x", "2", "29500");
    MISREAD("RANK is '1x'; it must be a whole number", NULL);
    set_all("0", "0", "29500");
    MISREAD("WORLD_SIZE is '0'", NULL);
    set_all("1", "2", "29500");
    fault = (ex_fault){0};
    ck_assert_msg(!ex_meeting_from_environment(NULL, 5, &m, &fault), "%s", fault.text);
    ck_assert(m.rank == 1 && m.ranks == 2 && m.node_rank == -1 && m.node_ranks == -1 && m.run == 0);
    ck_assert(m.port == 29500 && m.limit_s == 5 && !m.file);
    ck_assert_str_eq(m.address, "node7");
    setenv("LOCAL_RANK", "3", 1);
    setenv("LOCAL_WORLD_SIZE", "4", 1);
    setenv("TORCHELASTIC_RUN_ID", "a", 1);
    ck_assert(!ex_meeting_from_environment(NULL, 5, &m, &fault) && m.node_rank == 3 && m.node_ranks == 4);
    uint64_t run = m.run;
    setenv("TORCHELASTIC_RUN_ID", "b", 1);
    ck_assert(!ex_meeting_from_environment(NULL, 5, &m, &fault) && m.run != run && m.run && run);
    clear();
    setenv("SLURM_PROCID", "5", 1);
    setenv("SLURM_NTASKS", "8", 1);
    setenv("SLURM_LOCALID", "1", 1);
    ck_assert_msg(!ex_meeting_from_environment("/shared/meet", 5, &m, &fault), "%s", fault.text);
    ck_assert(m.rank == 5 && m.ranks == 8 && m.node_rank == 1 && m.node_ranks == -1);
    ck_assert_str_eq(m.file, "/shared/meet");
    clear();
}
END_TEST

START_TEST(a_communicator_can_carry_it)
{
    ex_fault fault = {0};
    ex_comm *comm = ex_self_open(&fault);
    ex_rendezvous *r = ex_rendezvous_over(comm, &fault);
    ck_assert(r && r->ranks == 1 && r->node_ranks == 1);
    char in = 5, out = 0;
    ck_assert(!ex_rendezvous_gather(r, &in, &out, 1) && out == 5);
    ck_assert(!ex_rendezvous_broadcast(r, &in, 1) && in == 5 && !ex_rendezvous_look(r));
    ck_assert_int_eq(ex_rendezvous_gather(r, &in, &out, -1), -1);
    ck_assert_str_eq(r->fault.text, "a gathering of -1 bytes a rank; at most 268435456");
    ck_assert_int_eq(ex_rendezvous_gather(r, &in, &out, 1), -1);
    ex_rendezvous_free(r);
    r = ex_rendezvous_over(comm, &fault);
    ex_rendezvous_abandon(r, "enough");
    ck_assert_str_eq(comm->fault.text, "enough");
    ck_assert_int_eq(ex_rendezvous_look(r), -1);
    ex_rendezvous_free(r);
    ex_rendezvous_free(NULL);
    ex_comm_free(comm);
}
END_TEST

TEST_MAIN("meeting", a_ticket_is_read_whole_or_not, the_environment_is_read, a_communicator_can_carry_it)
