/* A training step of a small model on the CUDA device, one virtual rank a thread: against the oracle and
 * between arrangements, as on the CPU. */
#include "executor/cuda_under_test.h"

#include "transformer_cases.h"

static ex_device *open_cuda(ex_type type, ex_fault *fault)
{
    return ex_cuda_open(type, 0, fault);
}

START_TEST(same_loss_and_gradients)
{
    run_transformer_cases(open_cuda, EX_F32, case_shape(2, 8, 0, 1), FEW_ARRANGEMENTS, 1e-5, 1e-5);
    ck_assert_str_eq(ex_emulator_error(), "");
    ck_assert_int_eq(ex_emulator_allocated(), 0);
}
END_TEST

START_TEST(bf16_is_near)
{
    ex_emulator_set_order(EX_EMULATOR_SHUFFLED, 4);
    run_transformer_cases(open_cuda, EX_BF16, case_shape(4, 8, 1, 0), FEW_ARRANGEMENTS, .05, .05);
    ck_assert_str_eq(ex_emulator_error(), "");
    ck_assert_int_eq(ex_emulator_allocated(), 0);
}
END_TEST

TEST_MAIN("cuda_transformer", same_loss_and_gradients, bf16_is_near)
