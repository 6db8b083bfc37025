#include "failing.h"
#include "keep.h"

#include <math.h>

/* Terms that a test may bend: 8 ranks, domains of 4, degrees 1, 2, 4, 8. */
static const int32_t degrees[] = {1, 2, 4, 8};
static const double latencies[] = {0, 10, 20, 40};
static const double slopes[] = {0, .5, .25, 1};

static hbp_cost_terms some_terms(void)
{
    hbp_cost_terms t = {.struct_size = sizeof t};
    t.ranks = 8;
    t.domain_ranks = 4;
    t.layers = 4;
    t.ns_per_token = 100;
    t.ns_per_token_squared = .5;
    t.recompute_linear = .25;
    t.recompute_attention = .125;
    t.recompute_communication = .5;
    t.pack_ns = 1000;
    t.step_ns = 5000;
    t.static_bytes = 10000;
    t.activation_bytes = 64;
    t.recomputed_bytes = 8;
    t.working_bytes = 48;
    t.logits_bytes = 16;
    t.sp_buffer_bytes = 4;
    t.limit_bytes = 50000;
    t.degrees = 4;
    t.degree = degrees;
    t.sp_latency_ns = latencies;
    t.sp_ns_per_token = slopes;
    t.ns_per_vision = 700;
    t.recompute_vision = .75;
    t.vision_bytes = 96;
    return t;
}

START_TEST(terms_come_back_as_given)
{
    hbp_context *context = test_context();
    hbp_cost_terms given = some_terms();
    hbp_cost *cost = NULL;
    OK(context, hbp_cost_create_terms(context, &given, &cost));
    hbp_context_free(context);
    context = test_context();
    hbp_cost_terms read = {.struct_size = sizeof read};
    OK(context, hbp_cost_get_terms(context, cost, &read));
    ck_assert_mem_eq(read.degree, degrees, sizeof degrees);
    ck_assert_mem_eq(read.sp_latency_ns, latencies, sizeof latencies);
    ck_assert_mem_eq(read.sp_ns_per_token, slopes, sizeof slopes);
    ck_assert_ptr_ne(read.degree, degrees);
    read.degree = given.degree;
    read.sp_latency_ns = given.sp_latency_ns;
    read.sp_ns_per_token = given.sp_ns_per_token;
    ck_assert_mem_eq(&read, &given, sizeof given);
    ck_assert_str_eq(hbp_cost_get_source(cost, "pack_ns"), "given");
    ck_assert_str_eq(hbp_cost_get_source(cost, "sp_ns_per_token"), "given");
    ck_assert_str_eq(hbp_cost_get_source(cost, "degrees"), "given");
    ck_assert_str_eq(hbp_cost_get_source(cost, "ns_per_vision"), "given");
    ck_assert_str_eq(hbp_cost_get_source(cost, "recompute_vision"), "given");
    ck_assert_str_eq(hbp_cost_get_source(cost, "vision_bytes"), "given");
    ck_assert_ptr_null(hbp_cost_get_source(cost, "colour"));
    ck_assert_ptr_null(hbp_cost_get_source(cost, NULL));
    ck_assert_ptr_null(hbp_cost_get_source(NULL, "pack_ns"));
    FAILS(context, HBP_E_INVALID, "cost is NULL", hbp_cost_get_terms(context, NULL, &read));
    hbp_cost_free(cost);
    hbp_cost_free(NULL);
    hbp_context_free(context);
}
END_TEST

START_TEST_IN_CONTEXT(an_older_caller_gets_no_more_than_its_size)
{
    hbp_cost_terms given = some_terms();
    hbp_cost *cost = NULL;
    MAKES(context, cost, hbp_cost_create_terms(context, &given, &cost));
    hbp_cost_terms read;
    memset(&read, 0x5a, sizeof read);
    uint32_t size = offsetof(hbp_cost_terms, step_ns);
    read.struct_size = size;
    OK(context, hbp_cost_get_terms(context, cost, &read));
    ck_assert_uint_eq(read.struct_size, size);
    ck_assert(read.pack_ns == given.pack_ns);
    unsigned char untouched[sizeof read.step_ns];
    memset(untouched, 0x5a, sizeof untouched);
    ck_assert_mem_eq(&read.step_ns, untouched, sizeof untouched);
}
END_TEST

/* Creation fails with `text` after `change`. */
#define REFUSES(text, change)                                                                                \
    do {                                                                                                     \
        hbp_cost_terms t = some_terms();                                                                     \
        change;                                                                                              \
        hbp_cost *refused = (hbp_cost *)&t;                                                                  \
        FAILS(context, HBP_E_INVALID, text, hbp_cost_create_terms(context, &t, &refused));                   \
        ck_assert_ptr_null(refused);                                                                         \
    } while (0)

START_TEST_IN_CONTEXT(senseless_terms_are_named)
{
    REFUSES("ns_per_token is -1; it must be finite and at least 0", t.ns_per_token = -1);
    REFUSES("ns_per_token_squared is ", t.ns_per_token_squared = NAN);
    REFUSES("pack_ns is inf", t.pack_ns = INFINITY);
    REFUSES("sp_buffer_bytes is -0.5", t.sp_buffer_bytes = -.5);
    REFUSES("ns_per_vision is -2; it must be finite and at least 0", t.ns_per_vision = -2);
    REFUSES("recompute_vision is inf", t.recompute_vision = INFINITY);
    REFUSES("vision_bytes is ", t.vision_bytes = NAN);
    REFUSES("`ranks` is 0; it must be in 1..262144", t.ranks = 0);
    REFUSES("`ranks` is 262145; it must be in 1..262144", t.ranks = 262145);
    REFUSES("`layers` is 0; it must be in 1..65536", t.layers = 0);
    REFUSES("`layers` is 2147483647; it must be in 1..65536", t.layers = INT32_MAX);
    REFUSES("whose groups would cross a domain of 3 ranks", t.domain_ranks = 3);
    REFUSES("domain_ranks is -2", t.domain_ranks = -2);
    REFUSES("`limit_bytes` is -1; it must be in 0..9223372036854775807", t.limit_bytes = -1);
    REFUSES("degrees is 0", t.degrees = 0);
    REFUSES("degree is NULL", t.degree = NULL);
    REFUSES("sp_latency_ns is NULL", t.sp_latency_ns = NULL);
    REFUSES("sp_ns_per_token is NULL", t.sp_ns_per_token = NULL);
    static const int32_t late[] = {2, 4};
    REFUSES("degree[0] is 2; degrees begin at 1", (t.degree = late, t.degrees = 2));
    static const int32_t twice[] = {1, 2, 2, 4};
    REFUSES("degree[2] is 2; degrees begin at 1 and ascend", t.degree = twice);
    static const int32_t three[] = {1, 3};
    REFUSES("degree[1] is 3, which does not divide 8 ranks", (t.degree = three, t.degrees = 2));
    static const double bad[] = {0, 0, -3, 0};
    REFUSES("sp_latency_ns[2] is -3", t.sp_latency_ns = bad);
    REFUSES("sp_ns_per_token[2] is -3", t.sp_ns_per_token = bad);
    REFUSES("hbp_cost_terms.struct_size is 0", t.struct_size = 0);
    hbp_cost *cost = NULL;
    FAILS(context, HBP_E_INVALID, "terms is NULL", hbp_cost_create_terms(context, NULL, &cost));
    hbp_cost_terms t = some_terms();
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_cost_create_terms(context, &t, NULL));
    ck_assert_int_eq(hbp_cost_create_terms(NULL, &t, &cost), HBP_E_INVALID);
}
END_TEST

/* A struct that ends where it ended before there were vision units charges none. */
START_TEST_IN_CONTEXT(older_terms_charge_no_vision_units)
{
    hbp_cost_terms t = some_terms(), read;
    t.struct_size = offsetof(hbp_cost_terms, ns_per_vision);
    hbp_cost *cost = NULL;
    MAKES(context, cost, hbp_cost_create_terms(context, &t, &cost));
    read = (hbp_cost_terms){.struct_size = sizeof read};
    OK(context, hbp_cost_get_terms(context, cost, &read));
    ck_assert(read.ns_per_vision == 0 && read.recompute_vision == 0 && read.vision_bytes == 0);
    ck_assert_int_eq(hbp_cost_predict_pack_ns(cost, 2, 1, 50, 900, 8),
                     hbp_cost_predict_pack_ns(cost, 2, 1, 50, 900, 0));
}
END_TEST

START_TEST_IN_CONTEXT(no_domain_means_all_ranks)
{
    hbp_cost_terms t = some_terms();
    t.domain_ranks = 0;
    hbp_cost *cost = NULL;
    MAKES(context, cost, hbp_cost_create_terms(context, &t, &cost));
    OK(context, hbp_cost_get_terms(context, cost, &t));
    ck_assert_int_eq(t.domain_ranks, 8);
}
END_TEST

static hbp_status create_and_free(hbp_context *context, void *user)
{
    hbp_cost *cost = NULL;
    hbp_status status = hbp_cost_create_terms(context, user, &cost);
    ck_assert((status == HBP_OK) == (cost != NULL));
    hbp_cost_free(cost);
    return status;
}

START_TEST(every_allocation_may_fail)
{
    hbp_cost_terms t = some_terms();
    failing_sweep(create_and_free, &t);
}
END_TEST

TEST_MAIN("cost", terms_come_back_as_given, an_older_caller_gets_no_more_than_its_size,
          senseless_terms_are_named, older_terms_charge_no_vision_units, no_domain_means_all_ranks,
          every_allocation_may_fail)
