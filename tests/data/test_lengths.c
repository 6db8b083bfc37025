#include "data/lengths/lengths.h"

#include <stddef.h>

#include "base/rng.h"
#include "failing.h"
#include "keep.h"

static const uint32_t SMALL[] = {5, 3, 9, 3, 5, 5, 1};
#define SMALL_COUNT 7

static hbp_lengths_summary summary_of(hbp_context *context, const hbp_lengths *lengths)
{
    hbp_lengths_summary summary = {.struct_size = sizeof summary};
    OK(context, hbp_lengths_get_summary(context, lengths, &summary));
    return summary;
}

START_TEST_IN_CONTEXT(an_array_is_counted_and_summed)
{
    hbp_lengths *lengths;
    OK(context, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, NULL, &lengths));
    hbp_lengths_summary s = summary_of(context, lengths);
    ck_assert_int_eq(s.samples, 7);
    ck_assert_int_eq(s.tokens, 31);
    ck_assert_int_eq(s.loss_tokens, 31);
    ck_assert_int_eq(s.min_length, 1);
    ck_assert_int_eq(s.max_length, 9);
    ck_assert_int_eq(s.distinct_lengths, 4);
    ck_assert_int_eq(s.has_links, 0);
    ck_assert_double_eq(s.sum_squares, 3 * 25 + 2 * 9 + 81 + 1);
    hbp_lengths_view view = {.struct_size = sizeof view};
    OK(context, hbp_lengths_get_view(lengths, &view));
    const int64_t want_length[] = {1, 3, 5, 9}, want_count[] = {1, 2, 3, 1};
    ck_assert_int_eq(view.distinct_lengths, 4);
    ck_assert_mem_eq(view.histogram_lengths, want_length, sizeof want_length);
    ck_assert_mem_eq(view.histogram_counts, want_count, sizeof want_count);
    for (int64_t i = 0; i < SMALL_COUNT; i++)
        ck_assert_int_eq(hbp_lengths_get_length(lengths, i), SMALL[i]);
    ck_assert_int_eq(hbp_lengths_get_length(lengths, -1), -1);
    ck_assert_int_eq(hbp_lengths_get_length(lengths, SMALL_COUNT), -1);
    ck_assert_int_eq(hbp_lengths_get_length(NULL, 0), -1);
    ck_assert_int_eq(hbp_lengths_get_view(NULL, &view), HBP_E_INVALID);
    ck_assert_ptr_null(view.histogram_counts);
    ck_assert_int_eq(view.distinct_lengths, 0);
    ck_assert_int_eq(hbp_lengths_get_view(lengths, NULL), HBP_E_INVALID);
    hbp_lengths_free(lengths);
    hbp_lengths_free(NULL);
}
END_TEST

START_TEST_IN_CONTEXT(the_three_types_agree)
{
    int32_t i32[SMALL_COUNT];
    int64_t i64[SMALL_COUNT];
    for (int i = 0; i < SMALL_COUNT; i++)
        i32[i] = (int32_t)(i64[i] = SMALL[i]);
    hbp_lengths *a, *b, *c;
    MAKES(context, a, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, NULL, &a));
    MAKES(context, b, hbp_lengths_create_i32(context, i32, SMALL_COUNT, NULL, &b));
    MAKES(context, c, hbp_lengths_create_i64(context, i64, SMALL_COUNT, NULL, &c));
    ck_assert_uint_eq(summary_of(context, a).digest, summary_of(context, b).digest);
    ck_assert_uint_eq(summary_of(context, a).digest, summary_of(context, c).digest);
}
END_TEST

START_TEST_IN_CONTEXT(borrowing_copies_nothing)
{
    hbp_lengths_options options = {.struct_size = sizeof options};
    hbp_lengths *copied, *borrowed;
    MAKES(context, copied, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, &options, &copied));
    options.borrow = 1;
    MAKES(context, borrowed, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, &options, &borrowed));
    ck_assert_ptr_ne(copied->length, SMALL);
    ck_assert_ptr_eq(borrowed->length, SMALL);
    ck_assert_uint_eq(copied->digest, borrowed->digest);
}
END_TEST

/* Values of a borrowed array that changed stay between 1 and the longest of those that were checked. */
START_TEST_IN_CONTEXT(a_changed_borrowed_array_stays_in_bounds)
{
    uint32_t values[] = {5, 9, 7};
    hbp_lengths_options options = {.struct_size = sizeof options, .borrow = 1};
    hbp_lengths *lengths, *limited = NULL;
    uint32_t *order;
    MAKES(context, lengths, hbp_lengths_create_u32(context, values, 3, &options, &lengths));
    values[0] = 0;
    values[1] = UINT32_MAX;
    ck_assert_int_eq(hbp_lengths_get_length(lengths, 0), 1);
    ck_assert_int_eq(hbp_lengths_get_length(lengths, 1), 9);
    values[0] = values[1] = 7;
    FAILS(context, HBP_E_INVALID, "changed while it was read",
          hbp__lengths_order(context, lengths, 0, 0, &order));
    ck_assert_ptr_null(order);
    values[0] = values[1] = values[2] = 9;
    MAKES(context, limited, hbp_lengths_limit(context, lengths, 4, HBP_OVERLONG_SPLIT, &limited));
    ck_assert_int_eq(limited->count, 9);
}
END_TEST

START_TEST(lengths_outlive_their_context_and_their_first_owner)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    hbp_lengths *lengths;
    OK(context, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, NULL, &lengths));
    hbp_context_free(context);
    hbp_lengths *again = hbp__lengths_retain(lengths);
    hbp_lengths_free(lengths);
    ck_assert_int_eq(hbp_lengths_get_length(again, 2), 9);
    hbp_lengths_free(again);
    ck_assert_int_eq(f.live, 0);
}
END_TEST

/* The histogram of many lengths against a plain count, over the edges of the direct table. */
START_TEST_IN_CONTEXT(histograms_match_a_plain_count)
{
    const uint32_t tops[] = {1, 2, 1000, 65536, 70000, 5000000, INT32_MAX};
    const int64_t counts[] = {1, 2, 100, 40000};
    hbp__rng rng = hbp__rng_make(11, 0, 0);
    for (size_t t = 0; t < sizeof tops / sizeof *tops; t++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            int64_t n = counts[c], tokens = 0;
            uint32_t *values = malloc((size_t)n * sizeof *values);
            for (int64_t i = 0; i < n; i++) {
                int steep = hbp__rng_below(&rng, 2) == 0; /* half of them short, so that bins repeat */
                values[i] = 1 + hbp__rng_below(&rng, steep && tops[t] > 50 ? 50 : tops[t]);
                tokens += values[i];
            }
            hbp_lengths *lengths;
            OK(context, hbp_lengths_create_u32(context, values, n, NULL, &lengths));
            ck_assert_int_eq(lengths->tokens, tokens);
            ck_assert_int_eq(lengths->bin_first[lengths->bins], n);
            for (int64_t bin = 0; bin < lengths->bins; bin++) {
                ck_assert(bin == 0 || lengths->bin_length[bin - 1] < lengths->bin_length[bin]);
                ck_assert_int_eq(lengths->bin_first[bin + 1] - lengths->bin_first[bin],
                                 lengths->bin_count[bin]);
                if (bin % (lengths->bins / 16 + 1))
                    continue;
                int64_t here = 0;
                for (int64_t i = 0; i < n; i++)
                    here += values[i] == lengths->bin_length[bin];
                ck_assert_int_eq(here, lengths->bin_count[bin]);
            }
            hbp_lengths_free(lengths);
            free(values);
        }
}
END_TEST

START_TEST_IN_CONTEXT(a_shift_takes_the_first_token_off)
{
    const uint32_t length[] = {5, 1, 9, 3, 1}, loss[] = {5, 1, 8, 2, 0}, less[] = {4, 0, 7, 0, 0};
    const int64_t each[] = {4, 0, 8, 2, 0}, fewer[] = {4, 0, 7, 0, 0};
    hbp_lengths_options options = {.struct_size = sizeof options, .shifted_loss = 1};
    hbp_lengths *plain, *all, *given, *partial, *other;
    OK(context, hbp_lengths_create_u32(context, length, 5, NULL, &plain));
    OK(context, hbp_lengths_create_u32(context, length, 5, &options, &all));
    options.loss_tokens = loss;
    OK(context, hbp_lengths_create_u32(context, length, 5, &options, &given));
    options.loss_tokens = less;
    OK(context, hbp_lengths_create_u32(context, length, 5, &options, &partial));
    options.loss_tokens = (const uint32_t[]){5, 1, 7, 0, 0};
    OK(context, hbp_lengths_create_u32(context, length, 5, &options, &other));
    hbp_lengths_summary s = {.struct_size = sizeof s};
    OK(context, hbp_lengths_get_summary(context, plain, &s));
    ck_assert_int_eq(s.loss_tokens, 19);
    ck_assert_int_eq(s.shifted_loss, 0);
    OK(context, hbp_lengths_get_summary(context, all, &s));
    ck_assert_int_eq(s.loss_tokens, 14);
    ck_assert_int_eq(s.shifted_loss, 1);
    ck_assert_int_eq(partial->loss_tokens, 11);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(hbp__lengths_loss(all, i, length[i]), each[i]);
        ck_assert_int_eq(hbp__lengths_loss(given, i, length[i]), each[i]);
        ck_assert_int_eq(hbp__lengths_loss(partial, i, length[i]), fewer[i]);
    }
    /* The same data given in two ways is one data set; with another shift or loss it is another. */
    ck_assert_uint_eq(all->digest, given->digest);
    ck_assert_ptr_null(given->loss);
    ck_assert_uint_eq(partial->digest, other->digest);
    ck_assert_uint_ne(all->digest, plain->digest);
    ck_assert_uint_ne(all->digest, partial->digest);
    hbp_lengths *const made[] = {plain, all, given, partial, other};
    for (int i = 0; i < 5; i++)
        hbp_lengths_free(made[i]);
}
END_TEST

START_TEST_IN_CONTEXT(loss_tokens_are_kept_unless_all_carry_loss)
{
    const uint32_t loss[] = {5, 0, 9, 3, 5, 5, 1};
    hbp_lengths_options options = {.struct_size = sizeof options, .loss_tokens = loss};
    hbp_lengths *partial, *full, *none;
    MAKES(context, partial, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, &options, &partial));
    options.loss_tokens = SMALL;
    MAKES(context, full, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, &options, &full));
    MAKES(context, none, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, NULL, &none));
    ck_assert_int_eq(partial->loss_tokens, 28);
    ck_assert_int_eq(partial->tokens, 31);
    ck_assert_mem_eq(partial->loss, loss, sizeof loss);
    ck_assert_ptr_null(full->loss);
    ck_assert_int_eq(full->loss_tokens, 31);
    ck_assert_uint_eq(full->digest, none->digest);
    ck_assert_uint_ne(partial->digest, none->digest);
}
END_TEST

START_TEST_IN_CONTEXT(ties_become_groups_by_first_sample)
{
    const int64_t links[] = {-1, 900, 7, 900, 42, 7, -1}, renamed[] = {-1, 1, 0, 1, -1, 0, -1};
    const uint32_t want[] = {HBP__FREE, 0, 1, 0, HBP__FREE, 1, HBP__FREE};
    const int64_t alone[] = {0, 1, 2, 3, 4, 5, 6};
    hbp_lengths_options options = {.struct_size = sizeof options, .links = links};
    hbp_lengths *linked, *same, *free_ones, *none;
    MAKES(context, linked, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, &options, &linked));
    ck_assert_int_eq(linked->links, 2);
    ck_assert_mem_eq(linked->link, want, sizeof want);
    ck_assert_int_eq(linked->link_value[0], 900);
    ck_assert_int_eq(linked->link_value[1], 7);
    ck_assert_int_eq(summary_of(context, linked).has_links, 1);
    options.links = renamed;
    MAKES(context, same, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, &options, &same));
    ck_assert_uint_eq(same->digest, linked->digest);
    options.links = alone;
    MAKES(context, free_ones, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, &options, &free_ones));
    MAKES(context, none, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, NULL, &none));
    ck_assert_ptr_null(free_ones->link);
    ck_assert_int_eq(free_ones->links, 0);
    ck_assert_uint_eq(free_ones->digest, none->digest);
    ck_assert_uint_ne(linked->digest, none->digest);
}
END_TEST

START_TEST_IN_CONTEXT(a_second_size_is_kept_and_summed)
{
    const uint32_t vision[] = {2, 0, 7, 0, 1, 0, 4};
    const int64_t as_i64[] = {5, 3, 9, 3, 5, 5, 1};
    const int32_t as_i32[] = {5, 3, 9, 3, 5, 5, 1};
    hbp_lengths_options options = {.struct_size = sizeof options, .vision = vision};
    hbp_lengths *made[3], *none;
    OK(context, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, &options, &made[0]));
    OK(context, hbp_lengths_create_i32(context, as_i32, SMALL_COUNT, &options, &made[1]));
    OK(context, hbp_lengths_create_i64(context, as_i64, SMALL_COUNT, &options, &made[2]));
    for (int k = 0; k < 3; k++) {
        hbp_lengths_summary s = summary_of(context, made[k]);
        ck_assert_int_eq(s.vision, 14);
        ck_assert_int_eq(s.min_vision, 0);
        ck_assert_int_eq(s.max_vision, 7);
        ck_assert_int_eq(s.modalities, 3);
        ck_assert_uint_eq(s.digest, made[0]->digest);
        for (int64_t i = 0; i < SMALL_COUNT; i++) {
            ck_assert_int_eq(hbp_lengths_get_vision(made[k], i), vision[i]);
            ck_assert_int_eq(hbp_lengths_get_modality(made[k], i), vision[i] > 0);
        }
        ck_assert_int_eq(hbp_lengths_get_vision(made[k], -1), -1);
        ck_assert_int_eq(hbp_lengths_get_modality(made[k], -1), -1);
        ck_assert_int_eq(hbp_lengths_get_vision(made[k], SMALL_COUNT), -1);
        ck_assert_int_eq(hbp_lengths_get_modality(made[k], SMALL_COUNT), -1);
    }
    MAKES(context, none, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, NULL, &none));
    hbp_lengths_summary s = summary_of(context, none);
    ck_assert_int_eq(s.vision, -1);
    ck_assert_int_eq(s.min_vision, 0);
    ck_assert_int_eq(s.max_vision, 0);
    ck_assert_int_eq(s.modalities, 1);
    ck_assert_uint_ne(s.digest, made[0]->digest);
    ck_assert_int_eq(hbp_lengths_get_vision(none, 2), 0);
    ck_assert_int_eq(hbp_lengths_get_modality(none, 2), 0);
    ck_assert_int_eq(hbp_lengths_get_vision(NULL, 0), -1);
    ck_assert_int_eq(hbp_lengths_get_modality(NULL, 0), -1);
    for (int k = 0; k < 3; k++)
        hbp_lengths_free(made[k]);
}
END_TEST

/* A caller that was compiled before there was a second size: what stands behind its struct is not read. */
START_TEST_IN_CONTEXT(an_older_struct_has_no_second_size)
{
    const uint32_t vision[] = {2, 0, 7, 0, 1, 0, 4};
    hbp_lengths_options options = {.struct_size = offsetof(hbp_lengths_options, vision), .vision = vision};
    hbp_lengths *lengths;
    MAKES(context, lengths, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, &options, &lengths));
    ck_assert_ptr_null(lengths->vision);
    hbp_lengths_summary s = {.struct_size = offsetof(hbp_lengths_summary, vision), .vision = 77};
    OK(context, hbp_lengths_get_summary(context, lengths, &s));
    ck_assert_int_eq(s.tokens, 31);
    ck_assert_int_eq(s.vision, 77);
}
END_TEST

/* Zeros are a second size too; kinds are kept unless they say what the vision units say. */
START_TEST_IN_CONTEXT(kinds_are_kept_unless_they_follow)
{
    const uint32_t vision[] = {2, 0, 7, 0, 1, 0, 4}, zeros[SMALL_COUNT] = {0};
    const int32_t follows[] = {1, 0, 1, 0, 1, 0, 1}, mixed[] = {1, 0, 1, 0, 61, 0, 1};
    const int32_t text[SMALL_COUNT] = {0}, others[] = {1, 0, 1, 0, 60, 0, 1};
    hbp_lengths_options options = {.struct_size = sizeof options, .vision = vision};
    hbp_lengths *plain, *same, *other, *only_kinds, *other_kinds, *all_text, *empty, *none;
    OK(context, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, &options, &plain));
    options.modalities = follows;
    OK(context, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, &options, &same));
    options.modalities = mixed;
    OK(context, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, &options, &other));
    options.vision = NULL;
    OK(context, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, &options, &only_kinds));
    options.modalities = others;
    OK(context, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, &options, &other_kinds));
    ck_assert_uint_ne(only_kinds->digest, other_kinds->digest);
    options.modalities = text;
    OK(context, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, &options, &all_text));
    options = (hbp_lengths_options){.struct_size = sizeof options, .vision = zeros};
    OK(context, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, &options, &empty));
    OK(context, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, NULL, &none));
    ck_assert_ptr_null(same->modality);
    ck_assert_uint_eq(same->digest, plain->digest);
    ck_assert_uint_ne(other->digest, plain->digest);
    ck_assert_uint_ne(other->digest, only_kinds->digest);
    ck_assert_int_eq(other->modalities, INT64_C(1) << 61 | 3);
    ck_assert_int_eq(summary_of(context, only_kinds).vision, -1);
    ck_assert_int_eq(summary_of(context, only_kinds).modalities, INT64_C(1) << 61 | 3);
    for (int64_t i = 0; i < SMALL_COUNT; i++) {
        ck_assert_int_eq(hbp_lengths_get_modality(other, i), mixed[i]);
        ck_assert_int_eq(hbp_lengths_get_modality(only_kinds, i), mixed[i]);
        ck_assert_int_eq(hbp_lengths_get_vision(only_kinds, i), 0);
    }
    ck_assert_uint_eq(all_text->digest, none->digest);
    ck_assert_int_eq(summary_of(context, empty).vision, 0);
    ck_assert_int_eq(summary_of(context, empty).modalities, 1);
    ck_assert_uint_ne(empty->digest, none->digest);
    hbp_lengths *all[] = {plain, same, other, only_kinds, other_kinds, all_text, empty, none};
    for (int k = 0; k < 8; k++)
        hbp_lengths_free(all[k]);
}
END_TEST

/* As of the version before there was one. */
START_TEST_IN_CONTEXT(digests_without_a_second_size_stay)
{
    const int64_t links[] = {-1, 900, 7, 900, 42, 7, -1};
    const uint32_t loss[] = {5, 0, 9, 3, 5, 5, 1};
    hbp_lengths_options options = {.struct_size = sizeof options, .loss_tokens = loss, .links = links};
    hbp_lengths *lengths;
    MAKES(context, lengths, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, &options, &lengths));
    ck_assert_uint_eq(lengths->digest, UINT64_C(0xe6e33fba7e237a8a));
    MAKES(context, lengths, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, NULL, &lengths));
    ck_assert_uint_eq(lengths->digest, UINT64_C(0x686a49b8dd1abf21));
}
END_TEST

START_TEST_IN_CONTEXT(a_histogram_is_sorted_and_merged)
{
    const int64_t lengths[] = {9, 0, 3, 5, 3, 7}, counts[] = {1, 0, 1, 3, 1, 0};
    hbp_lengths *h;
    MAKES(context, h, hbp_lengths_create_histogram(context, lengths, counts, 6, &h));
    ck_assert_ptr_null(h->length);
    ck_assert_int_eq(h->count, 6);
    ck_assert_int_eq(h->bins, 3);
    const int64_t want[] = {3, 3, 5, 5, 5, 9};
    for (int64_t i = 0; i < 6; i++)
        ck_assert_int_eq(hbp_lengths_get_length(h, i), want[i]);
    ck_assert_int_eq(hbp_lengths_get_length(h, 6), -1);
    ck_assert_int_eq(hbp_lengths_get_vision(h, 5), 0);
    ck_assert_int_eq(hbp_lengths_get_vision(h, 6), -1);
    ck_assert_int_eq(hbp_lengths_get_modality(h, 5), 0);
    ck_assert_int_eq(summary_of(context, h).vision, -1);
    ck_assert_int_eq(summary_of(context, h).modalities, 1);
    ck_assert_int_eq(h->tokens, 30);
    const int64_t big_length[] = {HBP_MAX_LENGTH}, big_count[] = {HBP_MAX_SAMPLES};
    MAKES(context, h, hbp_lengths_create_histogram(context, big_length, big_count, 1, &h));
    ck_assert_int_eq(h->tokens, HBP_MAX_SAMPLES * (int64_t)HBP_MAX_LENGTH);
    ck_assert_int_eq(hbp_lengths_get_length(h, HBP_MAX_SAMPLES - 1), HBP_MAX_LENGTH);
}
END_TEST

START_TEST_IN_CONTEXT(bad_arrays_are_refused_by_index)
{
    hbp_lengths *out = (hbp_lengths *)&context;
    const uint32_t zero[] = {4, 0, 2}, wide[] = {4, 2, UINT32_C(0x80000000)}, good[] = {4, 2, 3},
                   loss[] = {4, 3, 0};
    const uint32_t vision[] = {0, INT32_MAX, UINT32_C(0x80000000)};
    const int32_t negative[] = {4, 2, -7}, past[] = {0, 61, 62};
    const int64_t huge[] = {INT64_C(1) << 40}, least[] = {5, INT64_MIN}, links[] = {-1, -1, -2};
    FAILS(context, HBP_E_INVALID, "sample 1 has 0 tokens",
          hbp_lengths_create_u32(context, zero, 3, NULL, &out));
    ck_assert_ptr_null(out);
    FAILS(context, HBP_E_OVERFLOW, "sample 2 has 2147483648 tokens; the longest allowed is 2147483647",
          hbp_lengths_create_u32(context, wide, 3, NULL, &out));
    FAILS(context, HBP_E_INVALID, "sample 2 has -7 tokens",
          hbp_lengths_create_i32(context, negative, 3, NULL, &out));
    FAILS(context, HBP_E_OVERFLOW, "sample 0 has 1099511627776",
          hbp_lengths_create_i64(context, huge, 1, NULL, &out));
    FAILS(context, HBP_E_INVALID, "sample 1 has -9223372036854775808",
          hbp_lengths_create_i64(context, least, 2, NULL, &out));
    FAILS(context, HBP_E_INVALID, "has 0 samples", hbp_lengths_create_u32(context, good, 0, NULL, &out));
    FAILS(context, HBP_E_INVALID, "has -3 samples", hbp_lengths_create_u32(context, good, -3, NULL, &out));
    FAILS(context, HBP_E_OVERFLOW, "the most allowed is 4294967294",
          hbp_lengths_create_u32(context, good, HBP_MAX_SAMPLES + 1, NULL, &out));
    FAILS(context, HBP_E_INVALID, "lengths is NULL", hbp_lengths_create_u32(context, NULL, 3, NULL, &out));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_lengths_create_u32(context, good, 3, NULL, NULL));
    ck_assert_int_eq(hbp_lengths_create_u32(NULL, good, 3, NULL, &out), HBP_E_INVALID);
    hbp_lengths_options options = {.struct_size = sizeof options, .loss_tokens = loss};
    FAILS(context, HBP_E_INVALID, "sample 1 has 3 loss tokens but 2 tokens",
          hbp_lengths_create_u32(context, good, 3, &options, &out));
    options = (hbp_lengths_options){.struct_size = sizeof options, .links = links};
    FAILS(context, HBP_E_INVALID, "sample 2 has link -2",
          hbp_lengths_create_u32(context, good, 3, &options, &out));
    options = (hbp_lengths_options){.struct_size = sizeof options, .vision = vision};
    FAILS(context, HBP_E_OVERFLOW, "sample 2 has 2147483648 vision units; the most allowed is 2147483647",
          hbp_lengths_create_u32(context, good, 3, &options, &out));
    options = (hbp_lengths_options){.struct_size = sizeof options, .modalities = past};
    FAILS(context, HBP_E_INVALID, "sample 2 is of modality 62; modalities are numbered 0 to 61",
          hbp_lengths_create_u32(context, good, 3, &options, &out));
    options.modalities = negative;
    FAILS(context, HBP_E_INVALID, "sample 2 is of modality -7",
          hbp_lengths_create_u32(context, good, 3, &options, &out));
    options.struct_size = 0;
    FAILS(context, HBP_E_INVALID, "struct_size", hbp_lengths_create_u32(context, good, 3, &options, &out));
    hbp_lengths_summary summary = {.struct_size = sizeof summary};
    FAILS(context, HBP_E_INVALID, "lengths is NULL", hbp_lengths_get_summary(context, NULL, &summary));
}
END_TEST

START_TEST_IN_CONTEXT(bad_histograms_are_refused_by_bin)
{
    hbp_lengths *out;
    const int64_t lengths[] = {4, 0, 2}, some[] = {1, 1, 1}, none[] = {0, 0, 0}, negative[] = {1, 0, -1};
    const int64_t many[] = {HBP_MAX_HISTOGRAM_SAMPLES, 0, 1}, most[] = {INT64_MAX, 0, INT64_MAX};
    FAILS(context, HBP_E_INVALID, "bin 1 has 0 tokens",
          hbp_lengths_create_histogram(context, lengths, some, 3, &out));
    FAILS(context, HBP_E_INVALID, "has 0 samples",
          hbp_lengths_create_histogram(context, lengths, none, 3, &out));
    FAILS(context, HBP_E_INVALID, "bin 2 has count -1",
          hbp_lengths_create_histogram(context, lengths, negative, 3, &out));
    FAILS(context, HBP_E_INVALID, "has 0 bins",
          hbp_lengths_create_histogram(context, lengths, some, 0, &out));
    FAILS(context, HBP_E_OVERFLOW, "it needs 1 to 68719476736",
          hbp_lengths_create_histogram(context, lengths, many, 3, &out));
    FAILS(context, HBP_E_OVERFLOW, "it needs 1 to 68719476736",
          hbp_lengths_create_histogram(context, lengths, most, 3, &out));
    const int64_t tall[] = {HBP_MAX_LENGTH}, tower[] = {HBP_MAX_HISTOGRAM_SAMPLES};
    FAILS(context, HBP_E_OVERFLOW, "tokens of the histogram pass 2^63 - 1",
          hbp_lengths_create_histogram(context, tall, tower, 1, &out));
    ck_assert_ptr_null(out);
}
END_TEST

/* With every kind of column, and lengths past the direct table. */
static hbp_status create_everything(hbp_context *context, void *user)
{
    (void)user;
    static uint32_t lengths[70000], loss[70000], vision[70000];
    static int64_t links[70000];
    static int32_t modalities[70000];
    for (int i = 0; i < 70000; i++) {
        lengths[i] = i % 10 ? 1 + (uint32_t)i % 77 : UINT32_C(5000000) + (uint32_t)i;
        loss[i] = 1;
        links[i] = i % 3 ? i / 2 : -1;
        vision[i] = (uint32_t)i % 5;
        modalities[i] = i % 3;
    }
    hbp_lengths_options options = {.struct_size = sizeof options,
                                   .loss_tokens = loss,
                                   .links = links,
                                   .vision = vision,
                                   .modalities = modalities};
    hbp_lengths *out;
    hbp_status status = hbp_lengths_create_u32(context, lengths, 70000, &options, &out);
    ck_assert((status == HBP_OK) == (out != NULL));
    hbp_lengths_free(out);
    if (status < 0)
        return status;
    const int64_t length[] = {3, 2}, count[] = {1, 1};
    status = hbp_lengths_create_histogram(context, length, count, 2, &out);
    ck_assert((status == HBP_OK) == (out != NULL));
    hbp_lengths_free(out);
    return status;
}

START_TEST(failed_allocations_and_cancels_leave_nothing)
{
    failing_sweep(create_everything, NULL);
    ck_assert_int_gt(cancel_sweep(create_everything, NULL), 8);
}
END_TEST

TEST_MAIN("lengths", an_array_is_counted_and_summed, the_three_types_agree, borrowing_copies_nothing,
          a_changed_borrowed_array_stays_in_bounds, lengths_outlive_their_context_and_their_first_owner,
          histograms_match_a_plain_count, a_shift_takes_the_first_token_off,
          loss_tokens_are_kept_unless_all_carry_loss, ties_become_groups_by_first_sample,
          a_second_size_is_kept_and_summed, an_older_struct_has_no_second_size,
          kinds_are_kept_unless_they_follow, digests_without_a_second_size_stay,
          a_histogram_is_sorted_and_merged, bad_arrays_are_refused_by_index,
          bad_histograms_are_refused_by_bin, failed_allocations_and_cancels_leave_nothing)
