/* Packing beside other packers that peers.sh has built as shared objects: the same lengths in the same
 * process, alternating; seconds of the CPU, one thread, memory afresh. The time is from lengths in the form
 * that a packer's users have to packs, without freeing them. */
/* madvise is no part of POSIX. */
#define _DEFAULT_SOURCE

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common.h"

enum { ROUNDS = 5, OWN = 2, MOST_WAYS = 8, MEMORY_A_SAMPLE = 100, PAGE = 4096, LARGE_PAGE = 1 << 21 };

/* The functions of peers/peer.h, and a way of theirs. */
typedef struct peer {
    const char *(*name)(int32_t);
    void *(*open)(const uint32_t *, int64_t);
    void (*close)(void *);
    int64_t (*pack)(void *, int32_t, int64_t, void **);
    void (*free)(int32_t, void *);
    int32_t way;
} peer;

static void *find(void *library, const char *path, const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "bench_peers: %s has no %s\n", path, name);
        exit(2);
    }
    return found;
}

#define FIND(field)                                                                                          \
    do {                                                                                                     \
        void *found = find(library, path, "peer_" #field);                                                   \
        memcpy(&p.field, &found, sizeof found);                                                              \
    } while (0)

/* Appends the ways of a shared object. */
static int add_peers(const char *path, peer *peers, int count)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    peer p = {0};
    if (!library) {
        fprintf(stderr, "bench_peers: %s\n", dlerror());
        exit(2);
    }
    FIND(name);
    FIND(open);
    FIND(close);
    FIND(pack);
    FIND(free);
    for (; count < MOST_WAYS && p.name(p.way); p.way++)
        peers[count++] = p;
    return count;
}

static double time_peer(const peer *p, const uint32_t *length, int64_t count, int64_t capacity,
                        int64_t *packs)
{
    void *made = NULL;
    void *lengths = p->open(length, count);
    const double start = bench_cpu();
    *packs = p->pack(lengths, p->way, capacity, &made);
    const double seconds = bench_cpu() - start;
    if (*packs < 0) {
        fprintf(stderr, "bench_peers: %s failed\n", p->name(p->way));
        exit(1);
    }
    p->free(p->way, made);
    p->close(lengths);
    return seconds;
}

/* Lengths and fill: check, digest, histogram, order, packs with what each holds. */
static double time_own(hbp_context *context, const hbp_cost *cost, const char *method, const uint32_t *length,
                       int64_t count, int64_t capacity, int64_t *packs)
{
    const int32_t sp = 1, recompute = 0;
    const hbp_lengths_options borrow = {.struct_size = sizeof borrow, .borrow = 1};
    const hbp_fill_options options = {.struct_size = sizeof options, .method = method};
    hbp_lengths *lengths = NULL;
    hbp_groups *groups = NULL;
    hbp_packs *made = NULL;
    bench_need(context, hbp_groups_create(context, cost, 1, &capacity, &sp, &recompute, 0, &groups),
               "groups");
    const double start = bench_cpu();
    bench_need(context, hbp_lengths_create_u32(context, length, count, &borrow, &lengths), "lengths");
    bench_need(context, hbp_greedy_fill(context, lengths, groups, &options, &made), "fill");
    const double seconds = bench_cpu() - start;
    *packs = bench_count_packs(made);
    hbp_packs_free(made);
    hbp_groups_free(groups);
    hbp_lengths_free(lengths);
    return seconds;
}

/* What reading the lengths once takes. */
static double time_reading(const uint32_t *length, int64_t count)
{
    const double start = bench_cpu();
    uint64_t sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += length[i];
    volatile uint64_t kept = sum;
    (void)kept;
    return bench_cpu() - start;
}

/* How many times as long `longer` took, in the median of the rounds. */
static double times_as_long(const double *longer, const double *shorter)
{
    double ratio[ROUNDS];
    for (int r = 0; r < ROUNDS; r++)
        ratio[r] = longer[r] / shorter[r];
    return bench_median(ratio, ROUNDS);
}

static double middle(const double *seconds)
{
    double sorted[ROUNDS];
    memcpy(sorted, seconds, sizeof sorted);
    return bench_median(sorted, ROUNDS);
}

/* A virtual machine may have given memory back to its host that a call freed some seconds ago, and whoever
 * asks for it next waits for the host. So that all begin with the same, each comes behind someone who used
 * much, in large pages where there are some. */
static void use_memory(int64_t count)
{
    const size_t bytes = (size_t)count * MEMORY_A_SAMPLE / LARGE_PAGE * LARGE_PAGE;
    unsigned char *block = bytes ? aligned_alloc(LARGE_PAGE, bytes) : NULL;
#ifdef MADV_HUGEPAGE
    if (block)
        (void)madvise(block, bytes, MADV_HUGEPAGE);
#endif
    for (size_t i = 0; block && i < bytes; i += PAGE)
        ((volatile unsigned char *)block)[i] = 1;
    free(block);
}

static void compare(hbp_context *context, const hbp_cost *cost, const peer *peers, int ways,
                    const uint32_t *length, int64_t count, int64_t capacity)
{
    static const char *const methods[OWN] = {"tight", "balanced"};
    double seconds[OWN + MOST_WAYS][ROUNDS], reading[ROUNDS];
    int64_t packs[OWN + MOST_WAYS];
    const int all = OWN + ways;
    bench_section("Packing %lld lengths at %lldK: lengths and fill, medians of %d rounds", (long long)count,
                  (long long)capacity / 1024, (int)ROUNDS);
    for (int r = 0; r < ROUNDS; r++) {
        reading[r] = time_reading(length, count);
        for (int w = 0; w < all; w++) {
            use_memory(count);
            seconds[w][r] = w < OWN ? time_own(context, cost, methods[w], length, count, capacity, &packs[w])
                                    : time_peer(&peers[w - OWN], length, count, capacity, &packs[w]);
        }
    }
    for (int w = 0; w < OWN; w++)
        bench_line(methods[w], "%.3f s, %lld packs; %.0f x one reading of the lengths", middle(seconds[w]),
                   (long long)packs[w], times_as_long(seconds[w], reading));
    for (int w = OWN; w < all; w++)
        bench_line(peers[w - OWN].name(peers[w - OWN].way),
                   "%.3f s, %lld packs; tight %.1f x as fast, balanced %.1f x", middle(seconds[w]),
                   (long long)packs[w], times_as_long(seconds[w], seconds[0]),
                   times_as_long(seconds[w], seconds[1]));
}

int main(int argc, char **argv)
{
    static const int64_t capacities[] = {131072, 8192};
    const int64_t count = argc > 1 ? strtoll(argv[1], NULL, 10) : 0;
    peer peers[MOST_WAYS];
    int ways = 0;
    if (count < 1) {
        fprintf(stderr, "usage: bench_peers SAMPLES [PEER.so ...]     (peers.sh builds them)\n");
        return 2;
    }
    for (int i = 2; i < argc; i++)
        ways = add_peers(argv[i], peers, ways);
    hbp_context *context = bench_context(NULL);
    hbp_cost *cost = NULL;
    bench_need(context, hbp_cost_create_plain(context, 1, &cost), "cost");
    uint32_t *length = bench_draw_standin(count, 0);
    for (int c = 0; c < 2; c++) {
        for (int64_t i = 0; i < count; i++)
            length[i] = length[i] > capacities[c] ? (uint32_t)capacities[c] : length[i];
        compare(context, cost, peers, ways, length, count, capacities[c]);
    }
    free(length);
    hbp_cost_free(cost);
    hbp_context_free(context);
    return bench_end();
}
