/* The greatest value of piecewise linear concave functions, against every corner. */
#include "solve/concave.h"

#include <math.h>

#include "base/rng.h"
#include "test.h"

enum { LINES = 6, SPAN = 100 };

/* The least of some lines. */
typedef struct roof {
    int lines;
    double value[LINES]; /* at 0 */
    double slope[LINES];
    int looks;
} roof;

static hbp__tangent roof_at(void *data, double at)
{
    roof *r = data;
    hbp__tangent least = {at, r->value[0] + r->slope[0] * at, r->slope[0]};
    for (int i = 1; i < r->lines; i++) {
        double value = r->value[i] + r->slope[i] * at;
        if (value < least.value)
            least = (hbp__tangent){at, value, r->slope[i]};
    }
    r->looks++;
    return least;
}

static roof draw(hbp__rng *rng)
{
    roof r = {.lines = 2 + (int)hbp__rng_below(rng, LINES - 1)};
    for (int i = 0; i < r.lines; i++) {
        r.value[i] = (double)hbp__rng_below(rng, 2000) - 1000;
        r.slope[i] = (double)hbp__rng_below(rng, 41) - 20;
    }
    r.slope[0] = 1 + (double)hbp__rng_below(rng, 20);
    r.slope[1] = -1 - (double)hbp__rng_below(rng, 20);
    r.value[1] = r.value[0] + (double)hbp__rng_below(rng, 1000);
    return r;
}

/* The greatest value is at an end or where two lines meet. */
static double greatest_corner(roof *r)
{
    double best = roof_at(r, 0).value, end = roof_at(r, SPAN).value;
    best = end > best ? end : best;
    for (int i = 0; i < r->lines; i++)
        for (int j = 0; j < i; j++) {
            double at = (r->value[j] - r->value[i]) / (r->slope[i] - r->slope[j]);
            if (at > 0 && at < SPAN && roof_at(r, at).value > best)
                best = roof_at(r, at).value;
        }
    return best;
}

START_TEST(finds_the_greatest_corner_in_as_many_looks_as_pieces)
{
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    int inner = 0;
    for (int trial = 0; trial < 20000; trial++) {
        roof r = draw(&rng);
        double corner = greatest_corner(&r);
        hbp__tangent left = roof_at(&r, 0), right = roof_at(&r, SPAN);
        hbp__concave_aim aim = {-(double)INFINITY, (double)INFINITY, 100};
        r.looks = 0;
        hbp__tangent best = hbp__concave_greatest(roof_at, &r, left, right, &aim);
        ck_assert_int_le(r.looks, 2 * r.lines);
        inner += r.looks > 0;
        ck_assert_double_eq(roof_at(&r, best.at).value, best.value);
        ck_assert_msg(best.value <= corner + 1e-9 && best.value >= corner - 1e-5 * fabs(corner) - 1e-9,
                      "trial %d: %.12g found, %.12g is the greatest", trial, best.value, corner);
    }
    ck_assert_int_gt(inner, 5000);
}
END_TEST

START_TEST(stops_at_enough_and_where_nothing_is_to_be_won)
{
    roof r = {.lines = 3, .value = {0, 90, 40}, .slope = {2, -1, .5}};
    hbp__tangent left = roof_at(&r, 0), right = roof_at(&r, SPAN);
    double greatest = greatest_corner(&r);
    r.looks = 0;
    hbp__concave_aim enough = {0, 30, 100};
    ck_assert_double_ge(hbp__concave_greatest(roof_at, &r, left, right, &enough).value, 30);
    ck_assert_int_eq(r.looks, 1);
    r.looks = 0;
    hbp__concave_aim hopeless = {greatest * 2, (double)INFINITY, 100};
    ck_assert_double_eq(hbp__concave_greatest(roof_at, &r, left, right, &hopeless).value, left.value);
    ck_assert_int_eq(r.looks, 0);
    hbp__concave_aim one = {0, (double)INFINITY, 1};
    hbp__concave_greatest(roof_at, &r, left, right, &one);
    ck_assert_int_eq(r.looks, 1);
}
END_TEST

START_TEST(the_better_end_is_the_greatest_of_tangents_that_do_not_enclose_it)
{
    roof r = {.lines = 2, .value = {0, 1000}, .slope = {2, 1}};
    hbp__tangent left = roof_at(&r, 0), right = roof_at(&r, SPAN);
    hbp__concave_aim aim = {0, (double)INFINITY, 100};
    r.looks = 0;
    ck_assert_double_eq(hbp__concave_greatest(roof_at, &r, left, right, &aim).value, right.value);
    ck_assert_int_eq(r.looks, 0);
}
END_TEST

TEST_MAIN("concave", finds_the_greatest_corner_in_as_many_looks_as_pieces,
          stops_at_enough_and_where_nothing_is_to_be_won,
          the_better_end_is_the_greatest_of_tangents_that_do_not_enclose_it)
