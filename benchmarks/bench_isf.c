/* Packs under two budgets: the published fill beside the same program written plainly, and the default fill.
 * The data are vlm_tokens and vlm_images, one after another until there are enough. The plain program is what
 * the method's text says, in C: numpy's generator a draw at a time, a shuffled array of indices, a growing
 * array for every pack, and the last round run twice as published. Seconds are of the CPU, one thread, of the
 * fill alone: the data set is there before the clock starts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "hbp/io.h"

enum { PAIRS = 5, SAMPLES = 70706, WORDS = 624, SEED = 1024 };

typedef struct sample {
    int64_t index, vision, tokens;
} sample;

typedef struct pack {
    sample *held;
    int64_t count, room;
} pack;

typedef struct pack_list {
    pack *pack;
    int64_t count, room;
} pack_list;

typedef struct budgets {
    int64_t vision, tokens;
    int32_t rounds;
} budgets;

/* MT19937, one word at a time. */
typedef struct twister {
    uint32_t state[WORDS];
    int next;
} twister;

static void twister_seed(twister *t, uint32_t seed)
{
    t->state[0] = seed;
    for (uint32_t k = 1; k < WORDS; k++)
        t->state[k] = 1812433253U * (t->state[k - 1] ^ t->state[k - 1] >> 30) + k;
    t->next = 0;
}

static uint32_t twister_next(twister *t)
{
    uint32_t *s = t->state;
    int k = t->next, after = k + 1 < WORDS ? k + 1 : 0, far = k + 397 < WORDS ? k + 397 : k + 397 - WORDS;
    uint32_t mixed = (s[k] & 0x80000000U) | (s[after] & 0x7fffffffU), y;
    s[k] = s[far] ^ mixed >> 1 ^ (mixed & 1 ? 0x9908b0dfU : 0);
    t->next = after;
    y = s[k];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680U;
    y ^= y << 15 & 0xefc60000U;
    return y ^ y >> 18;
}

static int64_t *permutation(uint32_t seed, int64_t count)
{
    int64_t *index = bench_allocate(count, sizeof *index);
    twister t;
    twister_seed(&t, seed);
    for (int64_t i = 0; i < count; i++)
        index[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        uint32_t mask = (uint32_t)i, j;
        for (int shift = 1; shift < 32; shift *= 2)
            mask |= mask >> shift;
        do
            j = twister_next(&t) & mask;
        while (j > i);
        int64_t other = index[i];
        index[i] = index[j];
        index[j] = other;
    }
    return index;
}

/* Room for one more element of an array that doubles. */
static void *grow(void *block, int64_t count, int64_t *room, size_t size)
{
    if (count < *room)
        return block;
    *room = *room ? 2 * *room : 4;
    block = realloc(block, (size_t)*room * size);
    if (!block)
        bench_need(NULL, HBP_E_NO_MEMORY, "the plain program");
    return block;
}

static void pack_add(pack *p, sample s)
{
    p->held = grow(p->held, p->count, &p->room, sizeof *p->held);
    p->held[p->count++] = s;
}

static void list_add(pack_list *list, pack p)
{
    list->pack = grow(list->pack, list->count, &list->room, sizeof *list->pack);
    list->pack[list->count++] = p;
}

static void list_free(pack_list *list)
{
    for (int64_t p = 0; p < list->count; p++)
        free(list->pack[p].held);
    free(list->pack);
    *list = (pack_list){NULL, 0, 0};
}

static pack_list plain_next_fit(const pack *from, uint32_t seed, const budgets *b)
{
    int64_t *index = permutation(seed, from->count), vision = 0, tokens = 0;
    pack_list list = {NULL, 0, 0};
    pack open = {NULL, 0, 0};
    for (int64_t i = 0; i < from->count; i++) {
        sample s = from->held[index[i]];
        if (s.vision > b->vision || s.tokens > b->tokens)
            continue;
        vision += s.vision;
        tokens += s.tokens;
        if (vision > b->vision || tokens > b->tokens) {
            list_add(&list, open);
            open = (pack){NULL, 0, 0};
            vision = s.vision;
            tokens = s.tokens;
        }
        pack_add(&open, s);
        if (i == from->count - 1)
            list_add(&list, open);
    }
    free(index);
    return list;
}

/* Keeps the full packs of `list` in `kept` and gathers the samples of the others in `rest`. */
static void plain_filter(pack_list *list, const budgets *b, pack_list *kept, pack *rest)
{
    rest->count = 0;
    for (int64_t p = 0; p < list->count; p++) {
        pack *here = &list->pack[p];
        int64_t vision = 0, tokens = 0;
        for (int64_t i = 0; i < here->count; i++) {
            vision += here->held[i].vision;
            tokens += here->held[i].tokens;
        }
        if (vision == b->vision || tokens >= b->tokens - 128) {
            list_add(kept, *here);
            continue;
        }
        for (int64_t i = 0; i < here->count; i++)
            pack_add(rest, here->held[i]);
        free(here->held);
    }
    free(list->pack);
}

static pack_list plain_fill(const pack *all, const budgets *b)
{
    pack_list list = plain_next_fit(all, SEED, b), kept = {NULL, 0, 0};
    pack rest = {NULL, 0, 0};
    for (int32_t r = 0; r < b->rounds - 1; r++) {
        plain_filter(&list, b, &kept, &rest);
        list = plain_next_fit(&rest, SEED + (uint32_t)r, b);
    }
    list_free(&list);
    list = plain_next_fit(&rest, (uint32_t)(SEED + b->rounds - 2), b);
    for (int64_t p = 0; p < list.count; p++)
        list_add(&kept, list.pack[p]);
    free(list.pack);
    free(rest.held);
    return kept;
}

static void need_equal(const pack_list *list, const hbp_packs *packs)
{
    hbp_packs_view view = {.struct_size = sizeof view};
    (void)hbp_packs_get_view(packs, &view);
    int equal = view.packs == list->count;
    for (int64_t p = 0; equal && p < list->count; p++) {
        equal = view.pack_offsets[p + 1] - view.pack_offsets[p] == list->pack[p].count;
        for (int64_t i = 0; equal && i < list->pack[p].count; i++)
            equal = view.sample_indices[view.pack_offsets[p] + i] == list->pack[p].held[i].index;
    }
    if (!equal) {
        fprintf(stderr, "the reference mode and the plain program made different packs\n");
        exit(1);
    }
}

static hbp_packs *fill(hbp_context *context, const hbp_lengths *lengths, const budgets *b, const char *method,
                       double *seconds)
{
    hbp_packs *packs = NULL;
    hbp_iterative_fill_options options = {.struct_size = sizeof options};
    options.method = method;
    options.rounds = b->rounds;
    options.max_tokens = b->tokens;
    options.max_vision = b->vision;
    options.seed = SEED;
    double start = bench_cpu();
    bench_need(context, hbp_iterative_fill(context, lengths, &options, &packs), "fill");
    *seconds = bench_cpu() - start;
    return packs;
}

/* Plain, reference and default in turn. */
static void compare(hbp_context *context, const pack *all, const hbp_lengths *lengths, const budgets *b)
{
    double plain[PAIRS], reference[PAIRS], standard[PAIRS], ratio[PAIRS];
    int64_t reference_packs = 0, standard_packs = 0, bound = 0;
    for (int k = 0; k < PAIRS; k++) {
        double start = bench_cpu();
        pack_list list = plain_fill(all, b);
        plain[k] = bench_cpu() - start;
        hbp_packs *packs = fill(context, lengths, b, "isf", &reference[k]);
        need_equal(&list, packs);
        reference_packs = bench_count_packs(packs);
        hbp_packs_free(packs);
        list_free(&list);
        ratio[k] = plain[k] / reference[k];
        packs = fill(context, lengths, b, "vector", &standard[k]);
        standard_packs = bench_count_packs(packs);
        bound = bench_packs_bound(packs);
        hbp_packs_free(packs);
    }
    bench_section("%lld samples under %lld units and %lld tokens, T = %d, medians of %d rounds",
                  (long long)all->count, (long long)b->vision, (long long)b->tokens, (int)b->rounds,
                  (int)PAIRS);
    bench_line("the plain program", "%.3f s", bench_median(plain, PAIRS));
    double median = bench_median(reference, PAIRS), mid_ratio = bench_median(ratio, PAIRS);
    bench_check(median < .7, "reference mode", "< .7 s", "%.3f s, %lld packs", median,
                (long long)reference_packs);
    bench_line("plain / reference", "%.1f (%.1f to %.1f)", mid_ratio, ratio[0], ratio[PAIRS - 1]);
    bench_line("default mode", "%.3f s, %lld packs; bound %lld", bench_median(standard, PAIRS),
               (long long)standard_packs, (long long)bound);
    bench_metric_beside("", "reference mode", BENCH_LOWER, median, "s", "the plain program", 1 / mid_ratio);
    bench_metric("", "default mode", BENCH_LOWER, bench_median(standard, PAIRS), "s");
    bench_metric_beside("", "default mode, packs", BENCH_LOWER, (double)standard_packs, "packs", "bound",
                        (double)standard_packs / (double)bound);
}

static hbp_lengths *read(hbp_context *context, const char *name)
{
    const char *folder = getenv("HBP_DATA");
    char path[512];
    hbp_lengths *lengths = NULL;
    snprintf(path, sizeof path, "%s/%s.npy", folder ? folder : BENCH_DATA, name);
    FILE *file = fopen(path, "rb");
    if (!file) {
        printf("\n== Packs under two budgets: skipped, there is no %s\n", path);
        return NULL;
    }
    fclose(file);
    bench_need(context, hbp_lengths_load(context, path, NULL, &lengths), path);
    return lengths;
}

/* The k-th sample in the order of the authors' list of files: ai2d, docvqa, chartqa, synthdog; the .npy files
 * have chartqa before docvqa. */
static int64_t published_order(int64_t k)
{
    if (k >= 12413 && k < 22624)
        return k - 12413 + 30730;
    return k >= 22624 && k < 40941 ? k - 22624 + 12413 : k;
}

static void run(hbp_context *context, const hbp_lengths *tokens, const hbp_lengths *images, int64_t count)
{
    static const budgets tried[] = {{18, 6016, 50}, {9, 4096, 50}, {9, 4096, 10}};
    pack all = {bench_allocate(count, sizeof(sample)), count, count};
    uint32_t *t = bench_allocate(count, sizeof *t), *v = bench_allocate(count, sizeof *v);
    for (int64_t i = 0; i < count; i++) {
        int64_t from = published_order(i % SAMPLES);
        t[i] = (uint32_t)hbp_lengths_get_length(tokens, from);
        v[i] = (uint32_t)hbp_lengths_get_length(images, from);
        all.held[i] = (sample){i, v[i], t[i]};
    }
    hbp_lengths *lengths = NULL;
    hbp_lengths_options options = {.struct_size = sizeof options};
    options.vision = v;
    bench_need(context, hbp_lengths_create_u32(context, t, count, &options, &lengths), "lengths");
    for (size_t b = 0; b < sizeof tried / sizeof *tried; b++)
        compare(context, &all, lengths, &tried[b]);
    hbp_lengths_free(lengths);
    free(v);
    free(t);
    free(all.held);
}

/* Both searches for budgets on the data as they are. */
static void search(hbp_context *context, const hbp_lengths *tokens, const hbp_lengths *images)
{
    static const char *const methods[] = {"plane", "line"};
    static const char *const names[] = {"over the plane", "along the published line"};
    uint32_t t[SAMPLES], v[SAMPLES];
    for (int64_t i = 0; i < SAMPLES; i++) {
        t[i] = (uint32_t)hbp_lengths_get_length(tokens, published_order(i));
        v[i] = (uint32_t)hbp_lengths_get_length(images, published_order(i));
    }
    hbp_lengths *lengths = NULL;
    hbp_lengths_options create = {.struct_size = sizeof create};
    create.vision = v;
    bench_need(context, hbp_lengths_create_u32(context, t, SAMPLES, &create, &lengths), "lengths");
    bench_section("Budgets for %d samples, 4 a pack, 8 ranks", (int)SAMPLES);
    for (int way = 0; way < 2; way++) {
        hbp_budgets found = {.struct_size = sizeof found};
        hbp_budgets_options options = {.struct_size = sizeof options};
        options.method = methods[way];
        options.seed = SEED;
        double start = bench_cpu();
        bench_need(context, hbp_choose_budgets(context, lengths, &options, &found), "budgets");
        double seconds = bench_cpu() - start;
        bench_line(
            names[way],
            "%.3f s, %d pairs: %lld units, %lld tokens, %lld packs; dist %.5f / %.5f, unused %.4f / %.4f",
            seconds, (int)found.considered, (long long)found.max_vision, (long long)found.max_tokens,
            (long long)found.packs, found.dist_vision, found.dist_tokens, found.unused_vision,
            found.unused_tokens);
        bench_metric(names[way], "choosing budgets", BENCH_LOWER, seconds, "s");
        bench_metric(names[way], "packs", BENCH_LOWER, (double)found.packs, "packs");
    }
    hbp_lengths_free(lengths);
}

int main(int argc, char **argv)
{
    if (argc > 2) {
        fprintf(stderr, "usage: bench_isf [COUNT]\n");
        return 2;
    }
    hbp_context *context = bench_context(NULL);
    hbp_lengths *tokens = read(context, "vlm_tokens"), *images = tokens ? read(context, "vlm_images") : NULL;
    if (images) {
        search(context, tokens, images);
        run(context, tokens, images, argc > 1 ? strtoll(argv[1], NULL, 10) : 1000000);
        if (argc == 1)
            run(context, tokens, images, 1200000);
    }
    hbp_lengths_free(images);
    hbp_lengths_free(tokens);
    hbp_context_free(context);
    return bench_end();
}
