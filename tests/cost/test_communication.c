#include "cost/communication.h"

#include "keep.h"
#include "nodes.h"

/* 16 GPUs in domains of 4; one byte a nanosecond inside, a quarter outside; latencies 10 and 100 ns. */
static hbp_machine *some_machine(hbp_context *context, int32_t domain)
{
    hbp_machine_fields f = {.struct_size = sizeof f};
    f.nodes = 4;
    f.gpus_per_node = 4;
    f.domain_gpus = domain;
    f.nvlink_bytes_per_s = 1e9;
    f.network_bytes_per_s = .25e9;
    f.nvlink_latency_ns = 10;
    f.network_latency_ns = 100;
    hbp_machine *machine = NULL;
    OK(context, hbp_machine_create(context, &f, &machine));
    return machine;
}

/* 3 layers, 8 heads and 2 kv heads of 4: (8 + 2) x (4 + 4) elements a token. */
static const hbp_model_fields model = {
    .struct_size = sizeof model, .layers = 3, .hidden = 32, .heads = 8, .kv_heads = 2, .head_dim = 4};

START_TEST(elements_repeat_kv_heads)
{
    ck_assert(hbp__cost_sp_elements(&model, 1) == 80);
    ck_assert(hbp__cost_sp_elements(&model, 2) == 80);
    ck_assert(hbp__cost_sp_elements(&model, 4) == 96);
    ck_assert(hbp__cost_sp_elements(&model, 8) == 128);
    /* Latent attention: 8 heads of k as wide as nope + rope, of v as wide as v. */
    hbp_model_fields latent = model;
    latent.mla_kv_lora = 16;
    latent.mla_nope_dim = 5;
    latent.mla_rope_dim = 2;
    latent.mla_v_dim = 3;
    ck_assert(hbp__cost_sp_elements(&latent, 8) == 2 * 8 * 10);
}
END_TEST

static void check_all_to_all(const hbp__fabric *fabric, int32_t sp, double latency_ns, double ns_per_token,
                             const char *source)
{
    double latency;
    double slope;
    const char *said;
    hbp__cost_all_to_all(fabric, &model, sp, &latency, &slope, &said);
    ck_assert_double_eq_tol(latency, latency_ns, 1e-9);
    ck_assert_double_eq_tol(slope, ns_per_token, 1e-9);
    if (source)
        ck_assert_str_eq(said, source);
    else
        ck_assert_ptr_null(said);
}

START_TEST_IN_CONTEXT(all_to_all_by_hand)
{
    hbp_machine *machine = keep(some_machine(context, 4));
    hbp__fabric fabric = {machine, 16, 4};
    check_all_to_all(&fabric, 1, 0, 0, NULL);
    /* 6 passes; SP 2 holds 80 bytes a token and sends half of them, 4 x 6 latencies. */
    check_all_to_all(&fabric, 2, 240, 6 * 40, NULL);
    check_all_to_all(&fabric, 4, 240, 6 * 36, NULL);
    /* SP 8 holds 32 bytes, sends 3/8 near and 4/8 far. */
    check_all_to_all(&fabric, 8, 2400, 6 * (12 + 16 * 4), NULL);
    OK(context, set_collective(context, machine, HBP_COLLECTIVE_ALL_TO_ALL, 8, 7, 2e9, "probe"));
    check_all_to_all(&fabric, 8, 24 * 7, 6 * 14, "probe");
    check_all_to_all(&fabric, 4, 240, 6 * 36, NULL);
    /* No fast links at all. */
    fabric.domain = 1;
    check_all_to_all(&fabric, 2, 2400, 6 * 40 * 4, NULL);
}
END_TEST

static double ring(const hbp__fabric *fabric, int32_t collective, const char *source)
{
    const char *said;
    double ns = hbp__cost_ring_ns(fabric, collective, 3, 160, &said);
    if (source)
        ck_assert_str_eq(said, source);
    else
        ck_assert_ptr_null(said);
    return ns;
}

START_TEST_IN_CONTEXT(rings_by_hand)
{
    hbp_machine *machine = keep(some_machine(context, 4));
    int32_t gather = HBP_COLLECTIVE_ALL_GATHER;
    /* 15/16 of 160 bytes; four network cards are as fast as NVLink, two are half as fast, one a quarter. */
    ck_assert_double_eq_tol(ring(&(hbp__fabric){machine, 16, 4}, gather, NULL), 150 + 300, 1e-9);
    ck_assert_double_eq_tol(ring(&(hbp__fabric){machine, 16, 8}, gather, NULL), 150 + 300, 1e-9);
    ck_assert_double_eq_tol(ring(&(hbp__fabric){machine, 16, 16}, gather, NULL), 150 + 30, 1e-9);
    ck_assert_double_eq_tol(ring(&(hbp__fabric){machine, 16, 2}, gather, NULL), 300 + 300, 1e-9);
    ck_assert_double_eq_tol(ring(&(hbp__fabric){machine, 16, 1}, gather, NULL), 600 + 300, 1e-9);
    ck_assert(ring(&(hbp__fabric){machine, 1, 1}, gather, NULL) == 0);
    ck_assert_double_eq_tol(ring(&(hbp__fabric){machine, 16, 4}, HBP_COLLECTIVE_ALL_REDUCE, NULL), 300 + 300,
                            1e-9);
    OK(context, set_collective(context, machine, gather, 16, 5, .5e9, "nccl-tests 2.19"));
    ck_assert_double_eq_tol(ring(&(hbp__fabric){machine, 16, 4}, gather, "nccl-tests 2.19"), 300 + 15, 1e-9);
    ck_assert_double_eq_tol(ring(&(hbp__fabric){machine, 8, 4}, gather, NULL), 140 + 300, 1e-9);
}
END_TEST

TEST_MAIN("communication", elements_repeat_kv_heads, all_to_all_by_hand, rings_by_hand)
