/* FlexSP as published (arXiv 2412.01523): the blaster cuts the batch, each micro-batch's lengths
 * are rounded up to buckets, and groups are chosen and filled for the rounded lengths. */
#include "base/checked.h"
#include "base/scratch.h"
#include "step/blaster.h"
#include "step/buckets.h"
#include "step/exact.h"

static hbp__step_inner *choose_inner(const hbp__step *step)
{
    return step->options.exact ? hbp__step_exact_micro_batch : hbp__step_solve_micro_batch;
}

/* One micro-batch in buckets. What a sequence grows by is laid at its end: where nothing is linked, its
 * square is that of the bucket. */
static hbp_status solve_buckets(const hbp__step *step, const int64_t *member, int64_t members,
                                const int64_t *tokens, const double *squares, hbp__step_solution *solution)
{
    hbp_context *context = step->context;
    int64_t mark = hbp__scratch_mark(context);
    (void)tokens, (void)squares; /* the sequences' own */
    int64_t *length = hbp__take(context, (uint64_t)members, sizeof *length);
    int64_t *rounded = hbp__take(context, (uint64_t)members, sizeof *rounded);
    double *square = hbp__take(context, (uint64_t)members, sizeof *square);
    HBP__TRY(hbp__scratch_check(context, "the buckets of lengths"));
    for (int64_t i = 0; i < members; i++)
        length[i] = step->tokens[member[i]];
    HBP__TRY(hbp__step_bucket(context, length, members, step->options.buckets, rounded));
    for (int64_t i = 0; i < members; i++)
        square[i] =
            step->squares[member[i]] + (double)(rounded[i] - length[i]) * (double)(rounded[i] + length[i]);
    hbp_status status = choose_inner(step)(step, member, members, rounded, square, solution);
    return hbp__leave(context, mark, status);
}

hbp_status hbp__step_paper(const hbp__step *step, hbp__step_solution *solution)
{
    return hbp__step_blast(step, step->options.buckets > 0 ? solve_buckets : choose_inner(step), solution);
}
