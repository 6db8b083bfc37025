#include "transformer_cases.h"

static ex_device *open_cpu(ex_type type, ex_fault *fault)
{
    return ex_cpu_open(type, 1, fault);
}

enum { ALL = sizeof arrangements / sizeof *arrangements };

/* The oracle's gradients are its loss's slopes: central differences along random directions, tensor by
 * tensor. */
START_TEST(oracle_differentiates)
{
    bench *b = bench_open(open_cpu, EX_F32, case_shape(2, 4, _i, _i));
    int64_t elements = b->parameters.elements;
    double *w = oracle_zeros(elements);
    double *g = oracle_zeros(elements);
    double *along = oracle_zeros(elements);
    for (int64_t i = 0; i < elements; i++)
        w[i] = b->master[i];
    oracle with = {&b->parameters, w, g};
    oracle without = {&b->parameters, w, NULL};
    oracle_sample(&with, 12, b->tokens[1], b->targets[1], b->weights[1]);
    uint32_t state = 3;
    for (int64_t t = 0; t < b->parameters.count; t++) {
        const ex_tensor *tensor = &b->parameters.tensors[t];
        int64_t end = tensor->offset + tensor->rows * tensor->columns;
        const double h = 1e-5;
        double slope = 0, size = 0, loss[2];
        for (int64_t i = tensor->offset; i < end; i++) {
            along[i] = (double)(case_random(&state) % 2001) / 1000 - 1;
            slope += g[i] * along[i];
            size += fabs(g[i] * along[i]);
        }
        for (int side = 0; side < 2; side++) {
            for (int64_t i = tensor->offset; i < end; i++)
                w[i] = b->master[i] + (side ? h : -h) * along[i];
            loss[side] = oracle_sample(&without, 12, b->tokens[1], b->targets[1], b->weights[1]);
        }
        for (int64_t i = tensor->offset; i < end; i++)
            w[i] = b->master[i];
        ck_assert_msg(size > 0 && fabs((loss[1] - loss[0]) / (2 * h) - slope) <= 1e-6 * size,
                      "%s: %.12g instead of %.12g", tensor->name, (loss[1] - loss[0]) / (2 * h), slope);
    }
    free(w);
    free(g);
    free(along);
    bench_close(b);
}
END_TEST

START_TEST(same_loss_and_gradients)
{
    ex_shape shapes[] = {case_shape(2, 8, 0, 0), case_shape(4, 8, 1, 0), case_shape(8, 4, 0, 1),
                         case_shape(2, 2, 0, 1)};
    shapes[3].hidden = 96; /* attention is narrow beside it */
    double worst = run_transformer_cases(open_cpu, EX_F32, shapes[_i], ALL, 1e-5, 1e-5);
    ck_assert_msg(worst > 0, "runs of other shapes cannot agree to the last bit");
}
END_TEST

START_TEST(bf16_is_near)
{
    run_transformer_cases(open_cpu, EX_BF16, case_shape(2, 8, 0, 1), ALL, .05, .05);
}
END_TEST

TEST_MAIN_LOOPS("transformer", NULL, NULL, {oracle_differentiates, 0, 2}, {same_loss_and_gradients, 0, 4},
                {bf16_is_near, 0, 1})
