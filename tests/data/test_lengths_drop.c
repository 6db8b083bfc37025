#include "data/lengths/lengths_subset.h"

#include "base/rng.h"
#include "failing.h"
#include "keep.h"

enum { COUNT = 200 };

typedef struct drawn {
    uint32_t tokens[COUNT], vision[COUNT];
    int64_t links[COUNT];
    int64_t most;
    hbp_lengths *lengths;
} drawn;

static void draw(hbp_context *context, drawn *d, uint64_t seed)
{
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    for (int64_t i = 0; i < COUNT; i++) {
        d->tokens[i] = 1 + hbp__rng_below(&rng, 3000);
        d->vision[i] = hbp__rng_below(&rng, 10);
        d->links[i] = seed % 2 && i % 10 < 3 ? i / 10 : -1;
    }
    d->most = 2 + (int64_t)(seed % 7);
    hbp_lengths_options options = {
        .struct_size = sizeof options, .vision = d->vision, .links = seed % 2 ? d->links : NULL};
    OK(context, hbp_lengths_create_u32(context, d->tokens, COUNT, &options, &d->lengths));
}

/* Whether a sample goes: by comparing it with every other. */
static int is_over(const drawn *d, int64_t i)
{
    int over = d->vision[i] > d->most;
    for (int64_t j = 0; j < COUNT && d->lengths->link; j++)
        over |= d->links[i] >= 0 && d->links[i] == d->links[j] && d->vision[j] > d->most;
    return over;
}

START_TEST_IN_CONTEXT(what_is_over_goes_with_what_is_tied_to_it)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        drawn d;
        hbp_lengths *limited = NULL;
        draw(context, &d, seed);
        OK(context, hbp__lengths_drop_vision(context, d.lengths, d.most, &limited));
        ck_assert_ptr_nonnull(limited);
        int64_t kept = 0, gone = 0;
        for (int64_t i = 0; i < COUNT; i++) {
            if (is_over(&d, i)) {
                ck_assert_int_eq(limited->dropped_id[gone], i);
                ck_assert_int_eq(limited->dropped_reason[gone], HBP_DROPPED_OVERVISION);
                gone++;
                continue;
            }
            ck_assert_int_eq(limited->origin[kept], i);
            ck_assert_int_eq(hbp__lengths_get(limited, kept), d.tokens[i]);
            ck_assert_int_eq(hbp__lengths_vision(limited, kept), d.vision[i]);
            kept++;
        }
        ck_assert_int_eq(limited->count, kept);
        ck_assert_int_eq(limited->dropped, gone);
        ck_assert_uint_eq(limited->digest, d.lengths->digest);
        hbp_lengths_free(limited);
        hbp_lengths_free(d.lengths);
    }
}
END_TEST

START_TEST_IN_CONTEXT(what_was_dropped_before_stays_listed)
{
    hbp_lengths_options options = {.struct_size = sizeof options, .vision = (uint32_t[]){1, 9, 2, 9}};
    hbp_lengths *all = NULL, *limited = NULL, *less = NULL;
    MAKES(context, all, hbp_lengths_create_u32(context, (uint32_t[]){50, 60, 700, 80}, 4, &options, &all));
    MAKES(context, limited, hbp_lengths_limit(context, all, 100, HBP_OVERLONG_DROP, &limited));
    MAKES(context, less, hbp__lengths_drop_vision(context, limited, 8, &less));
    ck_assert_int_eq(less->count, 1);
    ck_assert_int_eq(less->dropped, 3);
    ck_assert_int_eq(less->dropped_id[0], 2);
    ck_assert_int_eq(less->dropped_reason[0], HBP_DROPPED_OVERLONG);
    ck_assert_int_eq(less->dropped_id[2], 3);
    ck_assert_int_eq(less->dropped_reason[2], HBP_DROPPED_OVERVISION);
    ck_assert_int_eq(less->overlong_samples, 1);
    ck_assert_int_eq(less->overlong_tokens, 700);
    ck_assert_uint_eq(less->digest, limited->digest);
}
END_TEST

START_TEST_IN_CONTEXT(what_cannot_be_dropped_is_said)
{
    hbp_lengths_options options = {.struct_size = sizeof options, .vision = (uint32_t[]){10, 11}};
    hbp_lengths *all = NULL, *split = NULL, *out = NULL;
    MAKES(context, all, hbp_lengths_create_u32(context, (uint32_t[]){50, 60}, 2, &options, &all));
    OK(context, hbp__lengths_drop_vision(context, all, 11, &out));
    ck_assert_ptr_null(out);
    FAILS(context, HBP_E_INVALID, "no samples left: all 2 have, or are linked to one that has, more than 9",
          hbp__lengths_drop_vision(context, all, 9, &out));
    ck_assert_ptr_null(out);
    MAKES(context, split, hbp_lengths_limit(context, all, 40, HBP_OVERLONG_SPLIT, &split));
    FAILS(context, HBP_E_INVALID, "the data set is split and has pieces with more than 10 vision units",
          hbp__lengths_drop_vision(context, split, 10, &out));
    ck_assert_ptr_null(out);
}
END_TEST

static hbp_status once(hbp_context *context, void *user)
{
    const drawn *d = user;
    hbp_lengths *out = NULL;
    hbp_status status = hbp__lengths_drop_vision(context, d->lengths, d->most, &out);
    hbp_lengths_free(out);
    return status;
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    drawn d;
    draw(context, &d, 3);
    failing_sweep(once, &d);
    hbp_lengths_free(d.lengths);
}
END_TEST

TEST_MAIN("lengths drop", what_is_over_goes_with_what_is_tied_to_it, what_was_dropped_before_stays_listed,
          what_cannot_be_dropped_is_said, nothing_is_left_behind)
