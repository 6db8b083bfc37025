#include "keep.h"
#include "test.h"

#include <stdlib.h>

#include "cost/cost.h"
#include "cost/point.h"
#include "cost/shortage.h"

static const char *const models[] = {"llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "deepseek-v3",
                                     "qwen2.5-32b"};
static const char *const machines[] = {"h100", "a100-40", "gb200-nvl72"};

static hbp_machine *machine_of(hbp_context *context, const char *name, int32_t nodes)
{
    char text[64];
    hbp_machine *machine = NULL;
    snprintf(text, sizeof text, "%s:%d", name, (int)nodes);
    OK(context, hbp_machine_create_preset(context, text, &machine));
    return machine;
}

/* What making a cost comes to, which is freed, on so many nodes. */
static hbp_status try_cost(hbp_context *context, const hbp_model *model, const char *name, int32_t nodes,
                           const hbp_cost_options *options)
{
    hbp_machine *machine = machine_of(context, name, nodes);
    hbp_cost *cost = NULL;
    hbp_status status = hbp_cost_create(context, model, machine, options, &cost);
    hbp_cost_free(cost);
    hbp_machine_free(machine);
    return status;
}

static int32_t number_behind(const char *message, const char *words)
{
    const char *at = strstr(message, words);
    return at ? (int32_t)strtol(at + strlen(words), NULL, 10) : 0;
}

/* Every remedy does, as costs made with it show, and one node less than is said does not. */
START_TEST_IN_CONTEXT(remedies_of_states_hold)
{
    int seen[5] = {0, 0, 0, 0, 0};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        for (size_t g = 0; g < sizeof machines / sizeof *machines; g++)
            for (int32_t stage = HBP_ZERO_1; stage <= HBP_ZERO_NONE; stage++)
                for (int32_t nodes = g == 2 ? 18 : 1; nodes <= (g == 2 ? 18 : 8); nodes *= 2)
                    for (int32_t shard = 0; shard <= 8; shard += 4) {
                        hbp_model *model = NULL;
                        OK(context, hbp_model_create_preset(context, models[m], &model));
                        hbp_cost_options o = {.struct_size = sizeof o, .zero_stage = stage};
                        o.shard_ranks = stage == HBP_ZERO_NONE ? 0 : shard;
                        hbp_status status = try_cost(context, model, machines[g], nodes, &o);
                        char said[HBP__MESSAGE_BYTES];
                        snprintf(said, sizeof said, "%s", hbp_context_message(context));
                        hbp_cost_options better = {.struct_size = sizeof better, .zero_stage = stage};
                        int32_t least = number_behind(said, "at least "),
                                wide = number_behind(said, "shard_ranks "),
                                both = wide ? number_behind(strstr(said, "shard_ranks "), " on ") : 0;
                        int is_other = strstr(said, "zero_stage 3") != NULL,
                            is_free = strstr(said, "without shard_ranks") != NULL;
                        ck_assert(status == HBP_OK || status == HBP_E_INFEASIBLE);
                        if (both) { /* neither does alone */
                            better.zero_stage = strstr(said, "zero_stage 3 with ") ? HBP_ZERO_3 : stage;
                            ck_assert_int_eq(o.shard_ranks, shard);
                            ck_assert_int_gt(shard, 0);
                            ck_assert_int_lt(try_cost(context, model, machines[g], both, &o), 0);
                            better.shard_ranks = wide;
                            ck_assert_msg(try_cost(context, model, machines[g], both, &better) == HBP_OK,
                                          "%s", said);
                            better.shard_ranks = 0;
                            ck_assert_int_lt(try_cost(context, model, machines[g], both - 1, &better), 0);
                            seen[4]++;
                        } else if (wide) {
                            better.shard_ranks = wide;
                            ck_assert_int_eq(try_cost(context, model, machines[g], nodes, &better), HBP_OK);
                            better.shard_ranks = 0;
                            seen[0]++;
                        }
                        if (both) {
                            ck_assert(!least);
                        } else if (is_other && !strstr(said, "zero_stage 3 on")) {
                            better.zero_stage = HBP_ZERO_3;
                            better.shard_ranks = is_free ? 0 : o.shard_ranks;
                            ck_assert_int_eq(try_cost(context, model, machines[g], nodes, &better), HBP_OK);
                            seen[1]++;
                        } else if (least) {
                            better.zero_stage = is_other ? HBP_ZERO_3 : stage;
                            ck_assert_msg(try_cost(context, model, machines[g], least, &better) == HBP_OK,
                                          "%s", said);
                            ck_assert_int_gt(least, nodes);
                            ck_assert_int_lt(try_cost(context, model, machines[g], least - 1, &better), 0);
                            seen[2]++;
                        }
                        if (strstr(said, "no number of nodes")) {
                            better.zero_stage = HBP_ZERO_3;
                            ck_assert_int_eq(try_cost(context, model, machines[g], 4096, &better),
                                             HBP_E_INFEASIBLE);
                            seen[3]++;
                        }
                        ck_assert_msg(status == HBP_OK || wide || is_other || least ||
                                          strstr(said, "no number"),
                                      "%s", said);
                        hbp_model_free(model);
                    }
    ck_assert_msg(seen[0] && seen[1] && seen[2] && seen[4], "%d %d %d %d %d", seen[0], seen[1], seen[2],
                  seen[3], seen[4]);
}
END_TEST

/* A preset's domain grows with its nodes: 9 of 4 GPUs are one of 36, and of 18 on they are cut in 72. */
START_TEST_IN_CONTEXT(the_fewest_nodes_of_a_large_domain_are_found)
{
    hbp_model *model = NULL;
    OK(context, hbp_model_create_preset(context, "llama-3.1-405b", &model));
    for (int32_t nodes = 1; nodes <= 9; nodes++) {
        FAILS(context, HBP_E_INFEASIBLE, "what would do: at least 10 nodes of 4 GPUs",
              try_cost(context, model, "gb200-nvl72", nodes, NULL));
    }
    ck_assert_int_eq(try_cost(context, model, "gb200-nvl72", 10, NULL), HBP_OK);
    ck_assert_int_eq(try_cost(context, model, "gb200-nvl72", 20, NULL), HBP_E_INVALID);
    hbp_cost_options o = {.struct_size = sizeof o, .lockstep_ranks = 36};
    FAILS(context, HBP_E_INFEASIBLE, "at least 10 nodes of 4 GPUs without lockstep_ranks",
          try_cost(context, model, "gb200-nvl72", 9, &o));
    hbp_model_free(model);
}
END_TEST

START_TEST_IN_CONTEXT(where_no_number_of_nodes_would_do_that_is_said)
{
    hbp_model *model = NULL;
    hbp_machine *machine = NULL;
    hbp_cost *cost = NULL;
    OK(context, hbp_model_create_preset(context, "llama-3.1-405b", &model));
    OK(context, hbp_machine_create_preset(context, "h100:4,hbm_bytes=10GiB", &machine));
    FAILS(
        context, HBP_E_INFEASIBLE,
        "a GPU has 10.0 GiB, of which reserve_bytes keeps 4.0 GiB: it is 218.5 GiB short; no number of nodes "
        "would do, GPUs with more memory may",
        hbp_cost_create(context, model, machine, NULL, &cost));
    OK(context, hbp_machine_set_fields(context, machine, "nodes=30000"));
    FAILS(context, HBP_E_INFEASIBLE, "no number of nodes would do",
          hbp_cost_create(context, model, machine, NULL, &cost));
    hbp_machine_free(machine);
    hbp_model_free(model);
}
END_TEST

static int holds(hbp_context *context, const hbp_model *model, const char *name, int32_t nodes,
                 const hbp_cost_options *options, int64_t tokens)
{
    hbp_machine *machine = machine_of(context, name, nodes);
    hbp_cost *cost = NULL;
    OK(context, hbp_cost_create(context, model, machine, options, &cost));
    int fits = hbp__cost_least_per_rank(cost, tokens) < INT64_MAX;
    hbp_cost_free(cost);
    hbp_machine_free(machine);
    return fits;
}

/* The same of the longest pack: each remedy alone holds it, one token more than is said is not held. */
START_TEST_IN_CONTEXT(remedies_of_packs_hold)
{
    int seen[4] = {0, 0, 0, 0};
    for (size_t m = 0; m < 2; m++)
        for (int32_t nodes = 3; nodes <= 6; nodes += 3)
            for (int32_t max_sp = 0; max_sp <= 4; max_sp += 2)
                for (int64_t tokens = 40000; tokens < (1 << 25); tokens = tokens * 3 / 2) {
                    hbp_model *model = NULL;
                    hbp_cost *cost = NULL;
                    hbp_machine *machine = machine_of(context, "h100", nodes);
                    hbp_cost_options o = {.struct_size = sizeof o, .max_sp = max_sp};
                    OK(context, hbp_model_create_preset(context, models[m], &model));
                    OK(context, hbp_cost_create(context, model, machine, &o, &cost));
                    if (hbp__cost_least_per_rank(cost, tokens) == INT64_MAX) {
                        FAILS(context, HBP_E_INFEASIBLE, "even with every layer recomputed: SP ",
                              hbp__cost_refuse_pack(context, cost, tokens, "the longest sample"));
                        char said[HBP__MESSAGE_BYTES];
                        snprintf(said, sizeof said, "%s", hbp_context_message(context));
                        int64_t most = number_behind(said, "at most ");
                        ck_assert_msg(holds(context, model, "h100", nodes, &o, most), "%s", said);
                        ck_assert(!holds(context, model, "h100", nodes, &o, most + 1));
                        hbp_cost_options better = o;
                        better.fused_cross_entropy = 1;
                        int fused = holds(context, model, "h100", nodes, &better, tokens);
                        ck_assert_int_eq(strstr(said, "fused_cross_entropy") != NULL, fused);
                        seen[0] += fused;
                        better = o;
                        better.max_sp = number_behind(said, "max_sp ");
                        if (better.max_sp) {
                            ck_assert_msg(holds(context, model, "h100", nodes, &better, tokens), "%s", said);
                            seen[1]++;
                        }
                        int32_t more = strstr(said, " nodes of ")
                                           ? (int32_t)strtol(strstr(said, "would do: ") + 10, NULL, 10)
                                           : 0;
                        if (more) {
                            ck_assert_msg(holds(context, model, "h100", more, &o, tokens), "%s", said);
                            for (int32_t n = nodes; n < more; n++)
                                ck_assert_msg(!holds(context, model, "h100", n, &o, tokens), "%d: %s", n,
                                              said);
                            seen[2]++;
                        }
                        seen[3]++;
                    }
                    hbp_cost_free(cost);
                    hbp_machine_free(machine);
                    hbp_model_free(model);
                }
    ck_assert_msg(seen[0] && seen[1] && seen[2], "%d %d %d %d", seen[0], seen[1], seen[2], seen[3]);
}
END_TEST

TEST_MAIN("shortage", remedies_of_states_hold, the_fewest_nodes_of_a_large_domain_are_found,
          where_no_number_of_nodes_would_do_that_is_said, remedies_of_packs_hold)
