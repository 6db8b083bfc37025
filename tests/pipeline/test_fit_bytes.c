#include "failing.h"

#include "base/rng.h"
#include "keep.h"

START_TEST_IN_CONTEXT(by_hand)
{
    /* First stage 6 vision layers with 4 in flight, last stage 5 language layers: each tells one. */
    static const int32_t vision[] = {24, 0}, language[] = {0, 5};
    static const int64_t freed[] = {24 * 700, 5 * 900 + 3};
    int64_t x = -1, y = -1;
    OK(context, hbp_fit_layer_bytes(context, vision, language, freed, &x, &y));
    ck_assert_int_eq(x, 700);
    ck_assert_int_eq(y, 900); /* 900.6 */
    /* 3 x + 2 y = 1300, x + 4 y = 1100: x = 300, y = 200. */
    static const int32_t v[] = {3, 1}, l[] = {2, 4}, v_back[] = {1, 3}, l_back[] = {4, 2};
    static const int64_t f[] = {1300, 1100}, f_back[] = {1100, 1300};
    OK(context, hbp_fit_layer_bytes(context, v, l, f, &x, &y));
    ck_assert_int_eq(x, 300);
    ck_assert_int_eq(y, 200);
    OK(context, hbp_fit_layer_bytes(context, v_back, l_back, f_back, &x, &y));
    ck_assert_int_eq(x, 300);
    ck_assert_int_eq(y, 200);
}
END_TEST

/* What is measured of known bytes is found again. */
START_TEST_IN_CONTEXT(finds_what_was_put_in)
{
    hbp__rng rng = hbp__rng_make(61, 0, 0);
    for (int32_t n = 0; n < 10000; n++) {
        int32_t v[2], l[2];
        int64_t x = hbp__rng_below(&rng, 1u << 31), y = hbp__rng_below(&rng, 1u << 31), freed[2], fx, fy;
        for (int32_t i = 0; i < 2; i++) {
            v[i] = (int32_t)hbp__rng_below(&rng, 200);
            l[i] = (int32_t)hbp__rng_below(&rng, 200);
            freed[i] = v[i] * x + l[i] * y;
        }
        if (v[0] * l[1] == v[1] * l[0])
            continue;
        OK(context, hbp_fit_layer_bytes(context, v, l, freed, &fx, &fy));
        ck_assert_int_eq(fx, x);
        ck_assert_int_eq(fy, y);
    }
}
END_TEST

START_TEST_IN_CONTEXT(what_cannot_be_told_is_refused)
{
    static const int32_t v[] = {3, 6}, l[] = {2, 4}, v_vision[] = {1, 2}, l_vision[] = {4, 2};
    static const int32_t negative[] = {1, -2}, many[] = {1, (1 << 18) + 1};
    static const int64_t f[] = {100, 200}, f_vision[] = {1000, 100}, f_language[] = {100, 1000};
    static const int64_t f_negative[] = {-1, 2}, f_large[] = {1, (INT64_C(1) << 44) + 1};
    int64_t x = 11, y = 12;
    FAILS(context, HBP_E_INFEASIBLE,
          "3 vision and 2 language layers, then 6 and 4: these two measurements cannot separate a vision "
          "layer's "
          "bytes from a language layer's",
          hbp_fit_layer_bytes(context, v, l, f, &x, &y));
    /* x + 4 y = 1000, 2 x + 2 y = 100: x = -800 / 3. */
    FAILS(context, HBP_E_INFEASIBLE, "a vision layer comes out at -1600 / 6 bytes, below 0",
          hbp_fit_layer_bytes(context, v_vision, l_vision, f_vision, &x, &y));
    FAILS(context, HBP_E_INFEASIBLE, "a language layer comes out at -800 / 6 bytes, below 0",
          hbp_fit_layer_bytes(context, v_vision, l_vision, f_language, &x, &y));
    FAILS(context, HBP_E_INVALID, "vision_layers of measurement 1 is -2; it must be in 0..262144",
          hbp_fit_layer_bytes(context, negative, l, f, &x, &y));
    FAILS(context, HBP_E_INVALID, "language_layers of measurement 1 is 262145; it must be in 0..262144",
          hbp_fit_layer_bytes(context, v, many, f, &x, &y));
    FAILS(context, HBP_E_INVALID, "freed_bytes of measurement 0 is -1; it must be in 0..17592186044416",
          hbp_fit_layer_bytes(context, v, l, f_negative, &x, &y));
    FAILS(context, HBP_E_INVALID, "freed_bytes of measurement 1 is 17592186044417",
          hbp_fit_layer_bytes(context, v, l, f_large, &x, &y));
    FAILS(context, HBP_E_INVALID, "vision_layers is NULL", hbp_fit_layer_bytes(context, NULL, l, f, &x, &y));
    FAILS(context, HBP_E_INVALID, "language_layers is NULL",
          hbp_fit_layer_bytes(context, v, NULL, f, &x, &y));
    FAILS(context, HBP_E_INVALID, "freed_bytes is NULL", hbp_fit_layer_bytes(context, v, l, NULL, &x, &y));
    FAILS(context, HBP_E_INVALID, "vision_bytes is NULL", hbp_fit_layer_bytes(context, v, l, f, NULL, &y));
    FAILS(context, HBP_E_INVALID, "language_bytes is NULL", hbp_fit_layer_bytes(context, v, l, f, &x, NULL));
    ck_assert_int_eq(x, 11);
    ck_assert_int_eq(y, 12);
}
END_TEST

TEST_MAIN("fit_bytes", by_hand, finds_what_was_put_in, what_cannot_be_told_is_refused)
