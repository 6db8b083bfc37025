#include "test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "comm/rendezvous.h"
#include "comm/rendezvous_meet.h"

enum { MOST = 9 };

/* What a rank, a process of its own, has to say. */
typedef struct said {
    int ok;
    int32_t node_rank, node_ranks;
    char text[512];
} said;

static said *all; /* [MOST], shared with the processes */
static pid_t process[MOST];

typedef void (*body)(ex_rendezvous *r, int which);

static void nap(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

static void begin(void)
{
    FILE *file = tmpfile();
    ck_assert(file && !ftruncate(fileno(file), MOST * sizeof *all));
    all = mmap(NULL, MOST * sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    ck_assert(all != MAP_FAILED);
    fclose(file);
}

/* Process `which` comes by `meeting` and goes on with `then`. */
static void start(int which, ex_meeting meeting, body then)
{
    all[which] = (said){0};
    process[which] = fork();
    ck_assert_int_ge(process[which], 0);
    if (process[which])
        return;
    ex_fault fault = {0};
    ex_rendezvous *r = ex_rendezvous_open(&meeting, &fault);
    if (r) {
        all[which].ok = 1;
        all[which].node_rank = r->node_rank;
        all[which].node_ranks = r->node_ranks;
        if (then)
            then(r, which);
        if (r->fault.failed)
            all[which].ok = 0;
        fault = r->fault;
    }
    memcpy(all[which].text, fault.text, sizeof fault.text);
    ex_rendezvous_free(r);
    _exit(0);
}

static void finish(int count)
{
    for (int i = 0; i < count; i++) {
        int status = 0;
        ck_assert_int_eq(waitpid(process[i], &status, 0), process[i]);
    }
}

#define SAYS(which, words)                                                                                   \
    ck_assert_msg(strstr(all[which].text, words) && !all[which].ok, "process %d: '%s' lacks '%s'",           \
                  (int)(which), all[which].text, words)

static void check_all_well(int count)
{
    for (int i = 0; i < count; i++)
        ck_assert_msg(all[i].ok && !all[i].text[0], "process %d: %s", i, all[i].text);
}

/* A socket bound to a port that was free; listening or not. */
static int hold_port(int32_t port, int listening, int32_t *got)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t size = sizeof any;
    int file = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(file, (struct sockaddr *)&any, sizeof any) || (listening && listen(file, 16)) ||
        getsockname(file, (struct sockaddr *)&any, &size)) {
        close(file);
        return -1;
    }
    *got = ntohs(any.sin_port);
    return file;
}

/* So many free ports in a row, none of which the system gives away by itself in the meantime. */
static int32_t free_ports(int count)
{
    for (int32_t first = 20000 + getpid() % 8000;; first += 16) {
        int held[8], i = 0;
        int32_t got;
        while (i < count && (held[i] = hold_port(first + i, 0, &got)) >= 0)
            i++;
        for (int k = 0; k < i; k++)
            close(held[k]);
        if (i == count)
            return first;
    }
}

static ex_meeting by_port(int32_t rank, int32_t ranks, int32_t port, double limit_s)
{
    return (ex_meeting){.rank = rank,
                        .ranks = ranks,
                        .node_rank = -1,
                        .node_ranks = -1,
                        .address = "127.0.0.1",
                        .port = port,
                        .limit_s = limit_s};
}

/* Gathers and broadcasts of many sizes, each against what every rank is known to bring. */
static void talk(ex_rendezvous *r, int which)
{
    static const int64_t sizes[] = {0, 1, 7, 4096, 300001};
    unsigned char *send = malloc(300001), *recv = malloc((size_t)r->ranks * 300001);
    int good = which >= 0;
    for (int turn = 0; turn < 20; turn++) {
        int64_t bytes = sizes[turn % 5];
        for (int64_t i = 0; i < bytes; i++)
            send[i] = (unsigned char)(i * 7 + r->rank * 31 + turn);
        good = good && !ex_rendezvous_gather(r, send, recv, bytes);
        for (int32_t from = 0; good && from < r->ranks; from++)
            for (int64_t i = 0; i < bytes; i++)
                good = good && recv[from * bytes + i] == (unsigned char)(i * 7 + from * 31 + turn);
        good = good && !ex_rendezvous_look(r) && !ex_rendezvous_broadcast(r, send, bytes);
        for (int64_t i = 0; i < bytes; i++)
            good = good && send[i] == (unsigned char)(i * 7 + turn);
    }
    if (!good)
        ex_fail(&r->fault, "what came is not what was sent");
    free(send);
    free(recv);
}

START_TEST(ranks_meet_by_a_port)
{
    begin();
    for (int32_t ranks = 1; ranks <= 8; ranks *= 2) {
        int32_t port = free_ports(1);
        for (int32_t r = ranks - 1; r >= 0; r--)
            start(r, by_port(r, ranks, port, 20), talk);
        finish(ranks);
        check_all_well(ranks);
        for (int32_t r = 0; r < ranks; r++)
            ck_assert(all[r].node_rank == r && all[r].node_ranks == ranks);
    }
}
END_TEST

START_TEST(what_the_launcher_says_of_nodes_counts)
{
    begin();
    int32_t port = free_ports(1);
    for (int32_t r = 0; r < 4; r++) {
        ex_meeting m = by_port(r, 4, port, 20);
        m.node_rank = r % 2;
        m.node_ranks = 2;
        start(r, m, NULL);
    }
    finish(4);
    check_all_well(4);
    for (int32_t r = 0; r < 4; r++)
        ck_assert(all[r].node_rank == r % 2 && all[r].node_ranks == 2);
}
END_TEST

static char path[64];

static ex_meeting by_file(int32_t rank, int32_t ranks, uint64_t run, double limit_s)
{
    return (ex_meeting){.rank = rank,
                        .ranks = ranks,
                        .node_rank = -1,
                        .node_ranks = -1,
                        .run = run,
                        .file = path,
                        .limit_s = limit_s};
}

static void make_path(void)
{
    strcpy(path, "/tmp/hbp-meet-XXXXXX");
    close(mkstemp(path));
}

/* An earlier run left its file: its port is dead, or a stranger's by now. Nobody believes it, and the new one
 * replaces it. */
START_TEST(ranks_meet_by_a_file)
{
    begin();
    make_path(); /* empty: no ticket yet */
    for (int round = 0; round < 4; round++) {
        ex_fault fault = {0};
        int stranger = -1;
        ex_ticket old = {.run = 5, .nonce = 77, .port = free_ports(1), .count = 1, .address = {"127.0.0.1"}};
        if (round == 2)
            stranger = hold_port(0, 1, &old.port);
        if (round == 3)
            old.run = 6;
        if (round)
            ck_assert_msg(!ex_ticket_write(path, &old, &fault), "%s", fault.text);
        for (int32_t r = 3; r > 0; r--)
            start(r, by_file(r, 4, 5, 20), talk);
        nap(30);
        start(0, by_file(0, 4, 5, 20), talk);
        finish(4);
        check_all_well(4);
        ck_assert_int_ne(access(path, F_OK), 0);
        if (stranger >= 0)
            close(stranger);
    }
}
END_TEST

START_TEST(a_file_of_nobody_is_told)
{
    begin();
    make_path();
    ex_fault fault = {0};
    ex_ticket old = {.run = 5, .nonce = 77, .port = free_ports(1), .count = 1, .address = {"127.0.0.1"}};
    start(0, by_file(1, 2, 5, .1), NULL);
    finish(1);
    SAYS(0, "rank 1 of 2: no rank 0 by the file /tmp/hbp-meet-");
    SAYS(0, "within 0.1 s: the file is not there, or not one of a rendezvous");
    ck_assert(!ex_ticket_write(path, &old, &fault));
    start(0, by_file(1, 2, 5, .1), NULL);
    start(1, by_file(1, 2, 4, .1), NULL);
    finish(2);
    SAYS(0, "nobody listens where the file says; it may be left from an earlier run");
    SAYS(1, "the file is of another run");
    unlink(path);
    strcpy(path, "/nowhere/meet");
    start(0, by_file(0, 2, 5, .1), NULL);
    finish(1);
    SAYS(0, "cannot write the rendezvous file /nowhere/meet: No such file or directory");
}
END_TEST

START_TEST(a_rank_that_never_comes_is_named)
{
    begin();
    int32_t port = free_ports(1);
    for (int32_t r = 2; r >= 0; r--)
        start(r, by_port(r, 5, port, r ? 10 : .6), NULL);
    finish(3);
    SAYS(0, "rank 0 of 5, port ");
    SAYS(0, ": ranks 3, 4 did not come within 0.6 s");
    SAYS(1, "rank 1 of 5: rank 0 gave up: rank 0 of 5, port ");
    SAYS(2, ": ranks 3, 4 did not come within 0.6 s");

    port = free_ports(8);
    start(1, by_port(1, 2, port, .2), NULL);
    start(0, by_port(1, 2, port, .2), NULL);
    finish(2);
    SAYS(1, "rank 1 of 2: no rank 0 at 127.0.0.1 port ");
    SAYS(1, " within 0.2 s: Connection refused");
}
END_TEST

/* Rank 2 dies; nobody waits for the limit, wherever it is. */
static void die(ex_rendezvous *r, int which)
{
    char one = 1, recv[8];
    ex_rendezvous_gather(r, &one, recv, 1);
    if (r->rank == 2)
        kill(getpid(), SIGKILL);
    if (which == 3) /* as who waits for a GPU does */
        while (!ex_rendezvous_look(r))
            nap(1);
    else
        ex_rendezvous_gather(r, &one, recv, 1);
}

START_TEST(a_rank_that_dies_ends_the_others)
{
    begin();
    int32_t port = free_ports(1);
    for (int32_t r = 0; r < 4; r++)
        start(r, by_port(r, 4, port, 100), die);
    finish(4);
    SAYS(0, "rank 0 of 4: rank 2 is gone: its connection is closed");
    SAYS(1, "rank 1 of 4: rank 0 gave up: rank 0 of 4: rank 2 is gone");
    SAYS(3, "rank 3 of 4: rank 0 gave up: rank 0 of 4: rank 2 is gone");
}
END_TEST

static void die_first(ex_rendezvous *r, int which)
{
    char one = (char)which, recv[8];
    if (r->rank == 0)
        kill(getpid(), SIGKILL);
    ex_rendezvous_gather(r, &one, recv, 1);
}

START_TEST(rank_0_that_dies_ends_the_others)
{
    begin();
    int32_t port = free_ports(1);
    for (int32_t r = 0; r < 3; r++)
        start(r, by_port(r, 3, port, 100), die_first);
    finish(3);
    SAYS(1, "rank 1 of 3: rank 0 is gone: its connection is closed");
    SAYS(2, "rank 2 of 3: rank 0 is gone: its connection is closed");
}
END_TEST

static void hang(ex_rendezvous *r, int which)
{
    char one = (char)which, recv[8];
    r->limit_s = r->rank ? 100 : .5;
    while (r->rank == 2 && !ex_rendezvous_look(r))
        nap(1);
    ex_rendezvous_gather(r, &one, recv, 1);
}

START_TEST(a_rank_that_hangs_is_named)
{
    begin();
    int32_t port = free_ports(1);
    for (int32_t r = 0; r < 4; r++)
        start(r, by_port(r, 4, port, 100), hang);
    finish(4);
    SAYS(0, "rank 0 of 4: no answer for 0.5 s from rank 2; it is gone or hangs");
    for (int r = 1; r < 4; r++)
        SAYS(r, "rank 0 gave up: rank 0 of 4: no answer for 0.5 s from rank 2");
}
END_TEST

static void abandon(ex_rendezvous *r, int which)
{
    char one = 1, recv[8];
    if (which == 1)
        ex_rendezvous_abandon(r, "the GPU\nis on fire");
    else if (which == 2)
        while (!ex_rendezvous_look(r))
            nap(1);
    else
        ex_rendezvous_gather(r, &one, recv, 1);
}

static void abandon_first(ex_rendezvous *r, int which)
{
    abandon(r, r->rank == 0 ? 1 : which + 1);
}

START_TEST(a_rank_that_gives_up_tells_why)
{
    begin();
    int32_t port = free_ports(1);
    for (int32_t r = 0; r < 4; r++)
        start(r, by_port(r, 4, port, 100), abandon);
    finish(4);
    SAYS(0, "rank 0 of 4: rank 1 gave up: the GPU?is on fire");
    SAYS(2, "rank 2 of 4: rank 0 gave up: rank 0 of 4: rank 1 gave up: the GPU?is on fire");
    SAYS(3, "rank 3 of 4: rank 0 gave up: rank 0 of 4: rank 1 gave up: the GPU?is on fire");
    port = free_ports(1);
    for (int32_t r = 0; r < 3; r++)
        start(r, by_port(r, 3, port, 100), abandon_first);
    finish(3);
    SAYS(1, "rank 1 of 3: rank 0 gave up: the GPU?is on fire");
    SAYS(2, "rank 2 of 3: rank 0 gave up: the GPU?is on fire");
}
END_TEST

static void disagree(ex_rendezvous *r, int which)
{
    char some[8] = {0}, recv[64];
    ex_rendezvous_gather(r, some, recv, which == 1 ? 3 : 2);
}

START_TEST(ranks_that_do_not_do_the_same_are_told)
{
    begin();
    int32_t port = free_ports(1);
    for (int32_t r = 0; r < 3; r++)
        start(r, by_port(r, 3, port, 100), disagree);
    finish(3);
    SAYS(0, "rank 1 brought 3 bytes to a gathering of 2: the ranks do not do the same");
    SAYS(2, "rank 0 gave up: rank 0 of 3: rank 1 brought 3 bytes");
    ck_assert(!all[1].ok);
}
END_TEST

START_TEST(ranks_that_contradict_are_refused)
{
    begin();
    int32_t port = free_ports(1);
    start(0, by_port(0, 4, port, 10), NULL);
    start(1, by_port(1, 3, port, 10), NULL);
    finish(2);
    SAYS(0, "rank 1 counts 3 ranks and rank 0 counts 4: WORLD_SIZE differs");
    SAYS(1, "rank 1 of 3: rank 0 gave up: rank 1 counts 3 ranks and rank 0 counts 4");
    port = free_ports(1);
    start(0, by_port(0, 3, port, 10), NULL);
    start(1, by_port(1, 3, port, 10), NULL);
    start(2, by_port(1, 3, port, 10), NULL);
    finish(3);
    for (int i = 0; i < 3; i++)
        SAYS(i, "two processes came as rank 1");
    port = free_ports(1);
    start(0, by_port(0, 3, port, 10), NULL);
    start(1, by_port(7, 3, port, 10), NULL);
    finish(2);
    SAYS(0, "a rank came as rank 7; there are 1..2 to come");
}
END_TEST

static int connect_to(int32_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    for (int i = 0; i < 500; i++) {
        int file = socket(AF_INET, SOCK_STREAM, 0);
        if (!connect(file, (struct sockaddr *)&to, sizeof to))
            return file;
        close(file);
        nap(10);
    }
    return -1;
}

/* While rank 0 waits: connections that say nothing, too little, nonsense, a word with a wrong number, or go.
 */
START_TEST(strangers_are_sent_away)
{
    begin();
    int32_t port = free_ports(1);
    unsigned char word[EX_TICKET_ADDRESS] = "hbpmeet1";
    start(0, by_port(0, 3, port, 30), talk);
    start(1, by_port(1, 3, port, 30), talk);
    int files[300], count = 0;
    for (int i = 0; i < 20; i++) {
        ck_assert_int_ge(files[count] = connect_to(port), 0);
        ck_assert_int_eq(
            send(files[count], "GET / HTTP/1.1\r\nHost: somewhere far away\r\n\r\n", 44, MSG_NOSIGNAL), 44);
        ck_assert_int_ge(files[++count] = connect_to(port), 0);
        ck_assert_int_eq(send(files[count], word, 32, MSG_NOSIGNAL), 32);
        ck_assert_int_ge(files[++count] = connect_to(port), 0);
        ck_assert_int_eq(send(files[count], word, 9, MSG_NOSIGNAL), 9);
        ck_assert_int_ge(files[++count] = connect_to(port), 0);
        count++; /* nothing */
        close(connect_to(port));
    }
    /* More than are listened to at once. */
    while (count < 290)
        ck_assert_int_ge(files[count++] = connect_to(port), 0);
    start(2, by_port(2, 3, port, 30), talk);
    finish(3);
    check_all_well(3);
    while (count)
        close(files[--count]);
}
END_TEST

/* Another program listens on the port: it says nothing, or something else. The next one is taken. */
START_TEST(ports_that_others_have_are_passed_over)
{
    begin();
    int32_t first = free_ports(8), got;
    int held = hold_port(first, 1, &got);
    ck_assert_int_ge(held, 0);
    for (int32_t r = 0; r < 3; r++)
        start(r, by_port(r, 3, first, 30), talk);
    finish(3);
    check_all_well(3);
    int more[EX_MEETING_PORTS];
    for (int i = 1; i < EX_MEETING_PORTS; i++)
        ck_assert_int_ge(more[i] = hold_port(first + i, 1, &got), 0);
    start(0, by_port(0, 2, first, 5), NULL);
    finish(1);
    SAYS(0, "rank 0 cannot listen on any of the ports ");
    SAYS(0, "Address already in use");
    close(held);
    for (int i = 1; i < EX_MEETING_PORTS; i++)
        close(more[i]);
}
END_TEST

/* Two runs on one port: the second finds the next. */
START_TEST(runs_are_told_apart)
{
    begin();
    int32_t port = free_ports(2);
    for (int i = 0; i < 6; i++) {
        ex_meeting m = by_port(i / 2, 3, port, 30);
        m.run = i % 2 ? 11 : 22;
        start(i, m, talk);
    }
    finish(6);
    check_all_well(6);
    port = free_ports(8);
    ex_meeting m = by_port(0, 2, port, 1);
    m.run = 1;
    start(0, m, NULL);
    m = by_port(1, 2, port, .3);
    m.run = 2;
    start(1, m, NULL);
    finish(2);
    SAYS(1, "within 0.3 s: rank 0 belongs to another run");
    SAYS(0, "rank 1 did not come within 1 s");
}
END_TEST

TEST_MAIN("rendezvous", ranks_meet_by_a_port, what_the_launcher_says_of_nodes_counts, ranks_meet_by_a_file,
          a_file_of_nobody_is_told, a_rank_that_never_comes_is_named, a_rank_that_dies_ends_the_others,
          rank_0_that_dies_ends_the_others, a_rank_that_hangs_is_named, a_rank_that_gives_up_tells_why,
          ranks_that_do_not_do_the_same_are_told, ranks_that_contradict_are_refused, strangers_are_sent_away,
          ports_that_others_have_are_passed_over, runs_are_told_apart)
