#include "base/rng.h"
#include "data/lengths/lengths.h"
#include "failing.h"
#include "keep.h"

static const uint32_t SMALL[] = {5, 30, 9, 21, 10, 11, 1};
#define SMALL_COUNT 7

static hbp_lengths *make(hbp_context *context, const uint32_t *loss, const int64_t *links)
{
    hbp_lengths_options options = {.struct_size = sizeof options, .loss_tokens = loss, .links = links};
    hbp_lengths *lengths;
    OK(context, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, &options, &lengths));
    return lengths;
}

static hbp_lengths *limit(hbp_context *context, const hbp_lengths *lengths, int64_t most, int32_t policy)
{
    hbp_lengths *limited;
    OK(context, hbp_lengths_limit(context, lengths, most, policy, &limited));
    return limited;
}

START_TEST_IN_CONTEXT(a_limit_that_cuts_nothing_changes_nothing)
{
    hbp_lengths *lengths = keep(make(context, NULL, NULL));
    for (int32_t policy = HBP_OVERLONG_ERROR; policy <= HBP_OVERLONG_SPLIT; policy++) {
        hbp_lengths *same = limit(context, lengths, 30, policy);
        ck_assert_uint_eq(same->digest, lengths->digest);
        ck_assert_int_eq(same->count, SMALL_COUNT);
        ck_assert_int_eq(same->overlong_samples, 0);
        hbp_lengths_free(same);
    }
}
END_TEST

START_TEST_IN_CONTEXT(error_counts_and_names_the_first)
{
    hbp_lengths *lengths = keep(make(context, NULL, NULL)), *out;
    FAILS(context, HBP_E_INVALID,
          "3 of 7 samples are longer than 10 tokens; the first is sample 1 with 30; over_long drop, truncate "
          "or "
          "split would take them",
          hbp_lengths_limit(context, lengths, 10, HBP_OVERLONG_ERROR, &out));
    ck_assert_ptr_null(out);
    const int64_t length[] = {8, 20, 30}, count[] = {5, 2, 1};
    hbp_lengths *histogram;
    MAKES(context, histogram, hbp_lengths_create_histogram(context, length, count, 3, &histogram));
    FAILS(context, HBP_E_INVALID, "3 of 8 samples are longer than 10 tokens; the first is sample 5 with 20",
          hbp_lengths_limit(context, histogram, 10, HBP_OVERLONG_ERROR, &out));
    FAILS(context, HBP_E_INVALID, "1 of 8 samples is longer than 20 tokens; the first is sample 7 with 30",
          hbp_lengths_limit(context, histogram, 20, HBP_OVERLONG_ERROR, &out));
}
END_TEST

START_TEST_IN_CONTEXT(drop_leaves_out_and_lists)
{
    const uint32_t loss[] = {1, 2, 3, 4, 5, 6, 0};
    hbp_lengths *lengths = keep(make(context, loss, NULL));
    hbp_lengths *limited = keep(limit(context, lengths, 10, HBP_OVERLONG_DROP));
    const uint32_t want[] = {5, 9, 10, 1}, origin[] = {0, 2, 4, 6}, want_loss[] = {1, 3, 5, 0};
    const int64_t dropped[] = {1, 3, 5};
    ck_assert_int_eq(limited->count, 4);
    ck_assert_mem_eq(limited->length, want, sizeof want);
    ck_assert_mem_eq(limited->origin, origin, sizeof origin);
    ck_assert_mem_eq(limited->loss, want_loss, sizeof want_loss);
    ck_assert_ptr_null(limited->first);
    ck_assert_int_eq(limited->dropped, 3);
    ck_assert_mem_eq(limited->dropped_id, dropped, sizeof dropped);
    ck_assert_int_eq(limited->dropped_reason[2], HBP_DROPPED_OVERLONG);
    ck_assert_int_eq(limited->tokens, 25);
    ck_assert_int_eq(limited->loss_tokens, 9);
    ck_assert_int_eq(limited->overlong_samples, 3);
    ck_assert_int_eq(limited->overlong_tokens, 62);
    ck_assert_uint_ne(limited->digest, lengths->digest);
    /* and once more: ids still name the original samples */
    hbp_lengths *again = keep(limit(context, limited, 9, HBP_OVERLONG_DROP));
    const uint32_t again_origin[] = {0, 2, 6};
    const int64_t again_dropped[] = {1, 3, 5, 4};
    ck_assert_mem_eq(again->origin, again_origin, sizeof again_origin);
    ck_assert_mem_eq(again->dropped_id, again_dropped, sizeof again_dropped);
    ck_assert_int_eq(again->overlong_samples, 4);
    ck_assert_int_eq(again->overlong_tokens, 72);
    hbp_lengths *out;
    FAILS(context, HBP_E_INVALID, "first is sample 4 with 10",
          hbp_lengths_limit(context, limited, 9, HBP_OVERLONG_ERROR, &out));
}
END_TEST

START_TEST_IN_CONTEXT(truncate_cuts_lengths_and_loss)
{
    const uint32_t loss[] = {1, 12, 3, 4, 5, 11, 0};
    hbp_lengths *lengths = keep(make(context, loss, NULL));
    hbp_lengths *limited = keep(limit(context, lengths, 10, HBP_OVERLONG_TRUNCATE));
    const uint32_t want[] = {5, 10, 9, 10, 10, 10, 1}, want_loss[] = {1, 10, 3, 4, 5, 10, 0};
    ck_assert_int_eq(limited->count, 7);
    ck_assert_mem_eq(limited->length, want, sizeof want);
    ck_assert_mem_eq(limited->loss, want_loss, sizeof want_loss);
    ck_assert_ptr_null(limited->origin);
    ck_assert_int_eq(limited->dropped, 0);
    ck_assert_int_eq(limited->overlong_samples, 3);
    ck_assert_int_eq(limited->overlong_tokens, 20 + 11 + 1);
}
END_TEST

START_TEST_IN_CONTEXT(split_keeps_every_token_in_order)
{
    const uint32_t loss[] = {1, 12, 3, 21, 5, 0, 0};
    hbp_lengths *lengths = keep(make(context, loss, NULL));
    hbp_lengths *limited = keep(limit(context, lengths, 10, HBP_OVERLONG_SPLIT));
    const uint32_t want[] = {5, 10, 10, 10, 9, 10, 10, 1, 10, 10, 1, 1};
    const uint32_t origin[] = {0, 1, 1, 1, 2, 3, 3, 3, 4, 5, 5, 6};
    const uint32_t first[] = {0, 0, 10, 20, 0, 0, 10, 20, 0, 0, 10, 0};
    const uint32_t want_loss[] = {1, 10, 2, 0, 3, 10, 10, 1, 5, 0, 0, 0};
    ck_assert_int_eq(limited->count, 12);
    ck_assert_mem_eq(limited->length, want, sizeof want);
    ck_assert_mem_eq(limited->origin, origin, sizeof origin);
    ck_assert_mem_eq(limited->first, first, sizeof first);
    ck_assert_mem_eq(limited->loss, want_loss, sizeof want_loss);
    ck_assert_int_eq(limited->tokens, lengths->tokens);
    ck_assert_int_eq(limited->loss_tokens, lengths->loss_tokens);
    ck_assert_int_eq(limited->overlong_samples, 3);
    ck_assert_int_eq(limited->overlong_tokens, 0);
    hbp_lengths *out;
    FAILS(context, HBP_E_INVALID, "split already and has pieces longer than 9",
          hbp_lengths_limit(context, limited, 9, HBP_OVERLONG_DROP, &out));
}
END_TEST

static hbp_lengths *make_vision(hbp_context *context, const uint32_t *vision, const int32_t *modalities,
                                const int64_t *links)
{
    hbp_lengths_options options = {
        .struct_size = sizeof options, .links = links, .vision = vision, .modalities = modalities};
    hbp_lengths *lengths;
    OK(context, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, &options, &lengths));
    return lengths;
}

static void holds(const hbp_lengths *lengths, int64_t count, const int64_t *vision, const int32_t *kinds)
{
    int64_t sum = 0, mask = 0;
    ck_assert_int_eq(lengths->count, count);
    for (int64_t i = 0; i < count; i++) {
        ck_assert_int_eq(hbp_lengths_get_vision(lengths, i), vision[i]);
        ck_assert_int_eq(hbp_lengths_get_modality(lengths, i), kinds[i]);
        sum += vision[i];
        mask |= INT64_C(1) << kinds[i];
    }
    ck_assert_int_eq(lengths->vision_sum, sum);
    ck_assert_int_eq(lengths->modalities, mask);
}

/* Each piece is a document of its own: its first token has no loss, whatever its share is. */
START_TEST_IN_CONTEXT(a_shift_is_each_piece_s)
{
    const uint32_t loss[] = {5, 29, 3, 12, 10, 0, 1};
    hbp_lengths_options options = {.struct_size = sizeof options, .loss_tokens = loss, .shifted_loss = 1};
    hbp_lengths *lengths;
    MAKES(context, lengths, hbp_lengths_create_u32(context, SMALL, SMALL_COUNT, &options, &lengths));
    for (int32_t policy = HBP_OVERLONG_DROP; policy <= HBP_OVERLONG_SPLIT; policy++) {
        hbp_lengths *limited = limit(context, lengths, 10, policy);
        int64_t sum = 0;
        ck_assert_int_eq(limited->shifted_loss, 1);
        for (int64_t i = 0; i < limited->count; i++) {
            int64_t length = hbp__lengths_get(limited, i), id = limited->origin ? limited->origin[i] : i;
            int64_t first = limited->first ? limited->first[i] : 0, all = SMALL[id];
            int64_t share = (loss[id] >= all - 1 ? all : loss[id]) - first; /* all - 1 is all that is left */
            share = share < 0 ? 0 : share < length ? share : length - 1;
            ck_assert_int_eq(hbp__lengths_loss(limited, i, length), share);
            sum += share;
        }
        ck_assert_int_eq(limited->loss_tokens, sum);
        hbp_lengths_free(limited);
    }
}
END_TEST

START_TEST_IN_CONTEXT(the_second_size_stays_with_its_sample)
{
    const uint32_t vision[] = {0, 3, 1, 4, 0, 2, 0};
    const int32_t kinds[] = {5, 6, 0, 7, 0, 0, 1};
    hbp_lengths *plain = keep(make_vision(context, vision, NULL, NULL));
    hbp_lengths *named = keep(make_vision(context, vision, kinds, NULL));
    hbp_lengths *only_kinds = keep(make_vision(context, NULL, kinds, NULL));
    hbp_lengths *limited = keep(limit(context, plain, 10, HBP_OVERLONG_DROP));
    holds(limited, 4, (int64_t[]){0, 1, 0, 0}, (int32_t[]){0, 1, 0, 0});
    ck_assert_ptr_null(limited->modality);
    limited = keep(limit(context, named, 10, HBP_OVERLONG_DROP));
    holds(limited, 4, (int64_t[]){0, 1, 0, 0}, (int32_t[]){5, 0, 0, 1});
    limited = keep(limit(context, named, 10, HBP_OVERLONG_TRUNCATE));
    holds(limited, 7, (int64_t[]){0, 3, 1, 4, 0, 2, 0}, kinds);
    limited = keep(limit(context, plain, 10, HBP_OVERLONG_TRUNCATE));
    holds(limited, 7, (int64_t[]){0, 3, 1, 4, 0, 2, 0}, (int32_t[]){0, 1, 1, 1, 0, 1, 0});
    const int64_t split[] = {0, 3, 0, 0, 1, 4, 0, 0, 0, 2, 0, 0};
    limited = keep(limit(context, plain, 10, HBP_OVERLONG_SPLIT));
    holds(limited, 12, split, (int32_t[]){0, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0});
    limited = keep(limit(context, named, 10, HBP_OVERLONG_SPLIT));
    holds(limited, 12, split, (int32_t[]){5, 6, 6, 6, 0, 7, 7, 7, 0, 0, 0, 1});
    limited = keep(limit(context, only_kinds, 10, HBP_OVERLONG_SPLIT));
    holds(limited, 12, (int64_t[12]){0}, (int32_t[]){5, 6, 6, 6, 0, 7, 7, 7, 0, 0, 0, 1});
    ck_assert_ptr_null(limited->vision);
}
END_TEST

/* Against the definition, piece by piece: units stand at the first token of their sample, kinds everywhere.
 */
START_TEST_IN_CONTEXT(pieces_of_random_samples_keep_units_and_kinds)
{
    hbp__rng rng = hbp__rng_make(22, 0, 0);
    for (int round = 0; round < 300; round++) {
        uint32_t length[40], vision[40];
        int32_t kinds[40];
        int64_t n = 1 + hbp__rng_below(&rng, 40), most = 1 + hbp__rng_below(&rng, 30);
        for (int64_t i = 0; i < n; i++) {
            length[i] = 1 + hbp__rng_below(&rng, 60);
            vision[i] = hbp__rng_below(&rng, 3) * hbp__rng_below(&rng, 1000);
            kinds[i] = (int32_t)hbp__rng_below(&rng, HBP_MAX_MODALITIES);
        }
        length[0] = 1; /* something is left */
        int with_vision = hbp__rng_below(&rng, 4) > 0, with_kinds = hbp__rng_below(&rng, 2) > 0;
        hbp_lengths_options options = {.struct_size = sizeof options,
                                       .vision = with_vision ? vision : NULL,
                                       .modalities = with_kinds ? kinds : NULL};
        hbp_lengths *lengths;
        OK(context, hbp_lengths_create_u32(context, length, n, &options, &lengths));
        for (int32_t policy = HBP_OVERLONG_DROP; policy <= HBP_OVERLONG_SPLIT; policy++) {
            hbp_lengths *limited = limit(context, lengths, most, policy);
            int64_t sum = 0, mask = 0;
            for (int64_t p = 0; p < limited->count; p++) {
                int64_t i = limited->origin ? limited->origin[p] : p;
                int first = !limited->first || limited->first[p] == 0;
                int64_t units = with_vision ? vision[i] : 0;
                int32_t kind = with_kinds ? kinds[i] : units > 0;
                ck_assert_int_eq(hbp_lengths_get_vision(limited, p), first ? units : 0);
                ck_assert_int_eq(hbp_lengths_get_modality(limited, p), kind);
                sum += first ? units : 0;
                mask |= INT64_C(1) << kind;
            }
            ck_assert_int_eq(limited->vision_sum, sum);
            ck_assert_int_eq(limited->modalities, mask);
            ck_assert_int_eq(limited->vision != NULL, with_vision);
            hbp_lengths_free(limited);
        }
        hbp_lengths_free(lengths);
    }
}
END_TEST

START_TEST_IN_CONTEXT(tied_samples_fit_together_or_are_refused)
{
    const int64_t links[] = {70, -1, 70, -1, 80, -1, 80};
    hbp_lengths *lengths = make(context, NULL, links), *out;
    for (int32_t policy = HBP_OVERLONG_DROP; policy <= HBP_OVERLONG_SPLIT; policy++) {
        FAILS(context, HBP_E_INVALID, "the samples with link 70 have 14 tokens together; max_length is 12",
              hbp_lengths_limit(context, lengths, 12, policy, &out));
        hbp_lengths *limited = limit(context, lengths, 14, policy);
        ck_assert_int_eq(limited->links, 2);
        ck_assert_int_eq(limited->link_value[0], 70);
        hbp_lengths_free(limited);
    }
    hbp_lengths_free(lengths);
    const int64_t long_links[] = {70, 70, 80, -1, 80, 70, -1};
    lengths = make(context, NULL, long_links);
    FAILS(context, HBP_E_INVALID, "link 70 have 46 tokens",
          hbp_lengths_limit(context, lengths, 25, HBP_OVERLONG_SPLIT, &out));
    FAILS(context, HBP_E_INVALID, "link 70 have 46 tokens",
          hbp_lengths_limit(context, lengths, 25, HBP_OVERLONG_TRUNCATE, &out));
    FAILS(context, HBP_E_INVALID, "1 of 7 samples",
          hbp_lengths_limit(context, lengths, 25, HBP_OVERLONG_ERROR, &out));
    hbp_lengths *limited = limit(context, lengths, 25, HBP_OVERLONG_DROP);
    const int64_t dropped[] = {0, 1, 5};
    const uint32_t want[] = {9, 21, 10, 1}, link[] = {0, HBP__FREE, 0, HBP__FREE};
    ck_assert_int_eq(limited->dropped, 3);
    ck_assert_mem_eq(limited->dropped_id, dropped, sizeof dropped);
    ck_assert_mem_eq(limited->length, want, sizeof want);
    ck_assert_mem_eq(limited->link, link, sizeof link);
    ck_assert_int_eq(limited->links, 1);
    ck_assert_int_eq(limited->link_value[0], 80);
    ck_assert_int_eq(limited->overlong_samples, 1);
    ck_assert_int_eq(limited->overlong_tokens, 46);
    hbp_lengths_free(limited);
    hbp_lengths_free(lengths);
}
END_TEST

/* A histogram under every policy holds what the same lengths in ascending order hold. */
START_TEST_IN_CONTEXT(histograms_agree_with_sorted_arrays)
{
    hbp__rng rng = hbp__rng_make(21, 0, 0);
    for (int round = 0, mark = keep_mark(); round < 200; keep_release(mark), round++) {
        int64_t length[8], count[8], n = 0, bins = 1 + hbp__rng_below(&rng, 8);
        uint32_t array[64];
        for (int64_t bin = 0, l = 0; bin < bins; bin++) {
            length[bin] = l += 1 + hbp__rng_below(&rng, 12);
            count[bin] = 1 + hbp__rng_below(&rng, 8);
            for (int64_t i = 0; i < count[bin]; i++)
                array[n++] = (uint32_t)l;
        }
        int64_t most = length[0] + hbp__rng_below(&rng, 40);
        hbp_lengths *histogram, *sorted;
        MAKES(context, histogram, hbp_lengths_create_histogram(context, length, count, bins, &histogram));
        MAKES(context, sorted, hbp_lengths_create_u32(context, array, n, NULL, &sorted));
        for (int32_t policy = HBP_OVERLONG_DROP; policy <= HBP_OVERLONG_SPLIT; policy++) {
            hbp_lengths *h = limit(context, histogram, most, policy),
                        *a = limit(context, sorted, most, policy);
            ck_assert_int_eq(h->count, a->count);
            ck_assert_int_eq(h->bins, a->bins);
            ck_assert_mem_eq(h->bin_length, a->bin_length, (size_t)a->bins * sizeof *a->bin_length);
            ck_assert_mem_eq(h->bin_count, a->bin_count, (size_t)a->bins * sizeof *a->bin_count);
            ck_assert_mem_eq(h->bin_first, a->bin_first, (size_t)(a->bins + 1) * sizeof *a->bin_first);
            ck_assert_int_eq(h->tokens, a->tokens);
            ck_assert_int_eq(h->overlong_samples, a->overlong_samples);
            ck_assert_int_eq(h->overlong_tokens, a->overlong_tokens);
            ck_assert_int_eq(h->dropped, a->dropped);
            for (int64_t i = 0; i < a->dropped; i++)
                ck_assert_int_eq(h->dropped_id[i], a->dropped_id[i]);
            for (int64_t i = 0; i < a->count; i++)
                ck_assert_int_eq(hbp__lengths_get(h, i), hbp__lengths_get(a, i));
            if (a->first) {
                ck_assert_mem_eq(h->origin, a->origin, (size_t)a->count * sizeof *a->origin);
                ck_assert_mem_eq(h->first, a->first, (size_t)a->count * sizeof *a->first);
            }
            if (policy == HBP_OVERLONG_DROP && h->dropped && length[0] < most) {
                /* what was dropped stays dropped when the rest is split */
                hbp_lengths *both = limit(context, h, length[0], HBP_OVERLONG_SPLIT);
                ck_assert_int_eq(both->dropped, a->dropped);
                ck_assert_int_eq(both->tokens, a->tokens);
                hbp_lengths_free(both);
            }
            hbp_lengths_free(h);
            hbp_lengths_free(a);
        }
    }
}
END_TEST

START_TEST_IN_CONTEXT(what_leaves_nothing_or_makes_no_sense_is_refused)
{
    hbp_lengths *lengths = keep(make(context, NULL, NULL)), *histogram, *wide, *out;
    const int64_t length[] = {8}, count[] = {5}, long_length[] = {HBP_MAX_LENGTH},
                  long_count[] = {HBP_MAX_SAMPLES};
    MAKES(context, histogram, hbp_lengths_create_histogram(context, length, count, 1, &histogram));
    MAKES(context, wide, hbp_lengths_create_i64(context, long_length, 1, NULL, &wide));
    hbp_lengths *many;
    MAKES(context, many, hbp_lengths_create_histogram(context, long_length, long_count, 1, &many));
    FAILS(context, HBP_E_INVALID, "no samples left",
          hbp_lengths_limit(context, wide, 1000, HBP_OVERLONG_DROP, &out));
    FAILS(context, HBP_E_INVALID, "no samples left: all 5 are longer than 7 tokens",
          hbp_lengths_limit(context, histogram, 7, HBP_OVERLONG_DROP, &out));
    FAILS(context, HBP_E_OVERFLOW, "a limit of 2000000000 tokens makes 8589934588 pieces",
          hbp_lengths_limit(context, many, 2000000000, HBP_OVERLONG_SPLIT, &out));
    FAILS(context, HBP_E_INVALID, "max_length is 0", hbp_lengths_limit(context, lengths, 0, 1, &out));
    FAILS(context, HBP_E_INVALID, "policy 4", hbp_lengths_limit(context, lengths, 10, 4, &out));
    FAILS(context, HBP_E_INVALID, "policy -1", hbp_lengths_limit(context, lengths, 10, -1, &out));
    FAILS(context, HBP_E_INVALID, "lengths is NULL", hbp_lengths_limit(context, NULL, 10, 0, &out));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_lengths_limit(context, lengths, 10, 0, NULL));
}
END_TEST

typedef struct request {
    const hbp_lengths *lengths;
    int64_t most;
    int32_t policy;
} request;

static hbp_status limit_once(hbp_context *context, void *user)
{
    const request *r = user;
    hbp_lengths *out;
    hbp_status status = hbp_lengths_limit(context, r->lengths, r->most, r->policy, &out);
    ck_assert((status == HBP_OK) == (out != NULL));
    hbp_lengths_free(out);
    return status;
}

START_TEST_IN_CONTEXT(failed_allocations_and_cancels_leave_nothing)
{
    const uint32_t loss[] = {1, 12, 3, 4, 5, 11, 0};
    const int64_t links[] = {70, -1, 70, -1, 80, -1, 80}, length[] = {8, 20}, count[] = {5, 2};
    hbp_lengths *lengths = keep(make(context, loss, links)), *histogram;
    MAKES(context, histogram, hbp_lengths_create_histogram(context, length, count, 2, &histogram));
    const uint32_t vision[] = {0, 3, 1, 4, 0, 2, 0};
    const int32_t kinds[] = {5, 6, 0, 7, 0, 0, 1};
    hbp_lengths *pictures = keep(make_vision(context, vision, kinds, links));
    for (int32_t policy = HBP_OVERLONG_DROP; policy <= HBP_OVERLONG_SPLIT; policy++) {
        request of_array = {lengths, 14, policy}, of_histogram = {histogram, 10, policy};
        request of_pictures = {pictures, 14, policy};
        failing_sweep(limit_once, &of_array);
        ck_assert_int_gt(cancel_sweep(limit_once, &of_array), 3);
        failing_sweep(limit_once, &of_pictures);
        cancel_sweep(limit_once, &of_pictures);
        failing_sweep(limit_once, &of_histogram);
        cancel_sweep(limit_once, &of_histogram);
    }
}
END_TEST

TEST_MAIN("lengths_limit", a_limit_that_cuts_nothing_changes_nothing, error_counts_and_names_the_first,
          drop_leaves_out_and_lists, truncate_cuts_lengths_and_loss, split_keeps_every_token_in_order,
          a_shift_is_each_piece_s, the_second_size_stays_with_its_sample,
          pieces_of_random_samples_keep_units_and_kinds, tied_samples_fit_together_or_are_refused,
          histograms_agree_with_sorted_arrays, what_leaves_nothing_or_makes_no_sense_is_refused,
          failed_allocations_and_cancels_leave_nothing)
