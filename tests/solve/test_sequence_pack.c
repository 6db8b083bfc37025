#include "solve/packing/sequence_pack.h"

#include "pack_oracle.h"

#define ITEMS 600

/* A random sequence: items in a shuffled order. */
typedef struct drawn {
    uint32_t item[ITEMS], size[ITEMS], weight[ITEMS], pack_of[ITEMS];
    hbp__sequence sequence;
    hbp__room room;
} drawn;

static void draw(drawn *d, hbp__rng *rng, int trial)
{
    int64_t count = 1 + hbp__rng_below(rng, ITEMS);
    d->room = (hbp__room){50 + hbp__rng_below(rng, 5000), trial % 2 ? INT64_MAX : 3 + hbp__rng_below(rng, 6)};
    for (int64_t i = 0; i < count; i++) {
        d->item[i] = (uint32_t)i;
        d->size[i] = 1 + hbp__rng_below(rng, (uint64_t)d->room.capacity / (trial % 3 ? 1 : 9));
        d->weight[i] = 1 + hbp__rng_below(rng, 3);
    }
    hbp__rng_shuffle_u32(rng, d->item, (uint64_t)count);
    d->sequence = (hbp__sequence){count, d->item, d->size, trial % 4 ? NULL : d->weight};
}

/* Every item is in a pack of [3, packs), no pack is empty or over-full. */
static void check(const drawn *d, int64_t packs)
{
    static int64_t size[ITEMS + 3], weight[ITEMS + 3];
    memset(size, 0, sizeof size);
    memset(weight, 0, sizeof weight);
    for (int64_t i = 0; i < d->sequence.count; i++) {
        ck_assert_int_ge(d->pack_of[i], 3);
        ck_assert_int_lt(d->pack_of[i], packs);
        size[d->pack_of[i]] += d->size[i];
        weight[d->pack_of[i]] += d->sequence.weight ? d->weight[i] : 1;
    }
    for (int64_t p = 3; p < packs; p++) {
        ck_assert_int_gt(size[p], 0);
        ck_assert_int_le(size[p], d->room.capacity);
        ck_assert_int_le(weight[p], d->room.max_weight);
    }
}

/* Next fit and first fit item by item: the packs that `first` of them would look at. */
static int64_t oracle(drawn *d, int first_fit, uint32_t *pack_of)
{
    static int64_t size[ITEMS + 3], weight[ITEMS + 3];
    int64_t packs = 3;
    for (int64_t i = 0; i < d->sequence.count; i++) {
        uint32_t item = d->item[i];
        int64_t w = d->sequence.weight ? d->weight[item] : 1;
        int64_t p = first_fit || packs == 3 ? 3 : packs - 1;
        while (p < packs &&
               (size[p] + d->size[item] > d->room.capacity || weight[p] + w > d->room.max_weight))
            p++;
        if (p == packs)
            size[packs] = weight[packs] = 0, packs++;
        size[p] += d->size[item];
        weight[p] += w;
        pack_of[item] = (uint32_t)p;
    }
    return packs;
}

START_TEST(next_and_first_fit_equal_their_definitions)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(7, 0, 0);
    static drawn d;
    static uint32_t expected[ITEMS];
    for (int trial = 0; trial < 400; trial++) {
        draw(&d, &rng, trial);
        for (int first = 0; first < 2; first++) {
            int64_t packs = 3;
            OK(context,
               (first ? hbp__first_fit : hbp__next_fit)(context, &d.sequence, d.room, d.pack_of, &packs));
            check(&d, packs);
            ck_assert_int_eq(packs, oracle(&d, first, expected));
            ck_assert_mem_eq(d.pack_of, expected, (size_t)d.sequence.count * sizeof *expected);
        }
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(iterative_fit_loses_nothing)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(8, 0, 0);
    static drawn d;
    int64_t one = 0, fifty = 0;
    for (int trial = 0; trial < 400; trial++) {
        draw(&d, &rng, trial);
        for (int64_t rounds = 1; rounds <= 50; rounds += 49) {
            int64_t packs = 3;
            OK(context, hbp__iterative_fit(context, &d.sequence, d.room, rounds, &rng, d.pack_of, &packs));
            check(&d, packs);
            *(rounds == 1 ? &one : &fifty) += packs;
        }
    }
    ck_assert_int_lt(fifty, one);
    hbp_context_free(context);
}
END_TEST

START_TEST(iterative_fit_packs_real_data)
{
    FILE *file = fopen(HBP_DATA_DIR "/vlm_tokens.npy", "rb");
    if (!file) {
        fprintf(stderr, "skipped: no %s\n", HBP_DATA_DIR "/vlm_tokens.npy");
        return;
    }
    enum { SAMPLES = 70706 };
    uint32_t *size = malloc(SAMPLES * 3 * sizeof *size), *item = size + SAMPLES, *pack_of = item + SAMPLES;
    ck_assert_int_eq(fseek(file, 128, SEEK_SET), 0);
    ck_assert_uint_eq(fread(size, sizeof *size, SAMPLES, file), SAMPLES);
    fclose(file);
    for (uint32_t i = 0; i < SAMPLES; i++)
        item[i] = i;
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(0, 0, 0);
    hbp__sequence sequence = {SAMPLES, item, size, NULL};
    int64_t packs = 0;
    OK(context, hbp__iterative_fit(context, &sequence, (hbp__room){4096, INT64_MAX}, HBP__ISF_ROUNDS, &rng,
                                   pack_of, &packs));
    ck_assert_int_ge(packs, 19601);
    ck_assert_int_lt(packs, 25000);
    free(size);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("sequence_pack", next_and_first_fit_equal_their_definitions, iterative_fit_loses_nothing,
          iterative_fit_packs_real_data)
