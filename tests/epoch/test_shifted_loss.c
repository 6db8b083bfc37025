/* Plans of lengths with shifted_loss, by every method. */
#include "failing.h"
#include "keep.h"
#include "methods.h"
#include "planned.h"

enum { COUNT = 600 };

/* The samples of long_tail with loss tokens: all, all but one, some or none of a sample's. */
static hbp_lengths *make(hbp_context *context, uint64_t seed, int32_t shifted, uint32_t *loss)
{
    hbp_lengths *drawn = test_long_tail(context, seed, COUNT, 9000), *lengths = NULL;
    int64_t length[COUNT];
    for (int64_t i = 0; i < COUNT; i++) {
        length[i] = hbp__lengths_get(drawn, i);
        const int64_t of[] = {length[i], length[i] - 1, length[i] / 2, 0};
        loss[i] = (uint32_t)of[((uint64_t)i * 7 + seed) % 4];
    }
    hbp_lengths_options options = {
        .struct_size = sizeof options, .loss_tokens = loss, .shifted_loss = shifted};
    OK(context, hbp_lengths_create_i64(context, length, COUNT, &options, &lengths));
    hbp_lengths_free(drawn);
    return lengths;
}

/* A piece of `tokens` from `first` on carries loss on its share, never on its first token. A sample all of
 * which carries loss but the first token is one all of which does. */
static int64_t share_of(int64_t loss, int64_t length, int64_t first, int64_t tokens)
{
    int64_t share = (loss >= length - 1 ? length : loss) - first;
    return share < 0 ? 0 : share < tokens ? share : tokens - 1;
}

START_TEST_IN_CONTEXT(every_method_counts_what_a_shift_leaves)
{
    hbp_cost *cost = keep(test_cost(context));
    for (int32_t method = 0; method < HBP__EPOCH_METHOD_COUNT; method++)
        for (int32_t policy = HBP_OVERLONG_DROP; policy <= HBP_OVERLONG_SPLIT; policy++) {
            uint32_t loss[COUNT];
            hbp_lengths *lengths = make(context, (uint64_t)(method + policy), 1, loss);
            hbp_epoch_options options = {
                .struct_size = sizeof options, .max_length = 5000, .over_long = policy, .seed = 3};
            hbp_plan *plan = NULL;
            OK(context, test_plan_by(context, lengths, cost, method, &options, &plan));
            OK(context, hbp__plan_check(context, plan));
            ck_assert_int_eq(plan->shifted_loss, 1);
            for (int64_t i = 0; i < plan->samples; i++) {
                int64_t id = plan->sample_ids[i], length = hbp__lengths_get(lengths, id);
                int64_t first = plan->sample_first_tokens ? plan->sample_first_tokens[i] : 0;
                ck_assert_int_eq(plan->sample_loss_tokens[i],
                                 share_of(loss[id], length, first, plan->sample_tokens[i]));
            }
            OK(context, hbp_plan_validate(context, plan, lengths, cost));
            hbp_lengths *plain = make(context, (uint64_t)(method + policy), 0, loss);
            FAILS(context, HBP_E_INVALID, "the plan has shifted_loss, which these lengths lack",
                  hbp_plan_validate(context, plan, plain, cost));
            hbp_plan_free(plan);
            OK(context, test_plan_by(context, plain, cost, method, &options, &plan));
            ck_assert_int_eq(plan->shifted_loss, 0);
            FAILS(context, HBP_E_INVALID, "these lengths have shifted_loss, which the plan lacks",
                  hbp_plan_validate(context, plan, lengths, cost));
            hbp_plan_free(plan);
            hbp_lengths_free(plain);
            hbp_lengths_free(lengths);
        }
}
END_TEST

TEST_MAIN("shifted_loss", every_method_counts_what_a_shift_leaves)
