/* What steps planned one by one would take, from some of them. */
#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "data/lengths/lengths.h"
#include "data/plan/plan.h"
#include "epoch/batches.h"
#include "epoch/bound.h"
#include "epoch/tuning.h"

/* What is known of steps before they are planned, and what those take that were. */
typedef struct survey {
    const hbp__epoch *epoch;
    const hbp__batches *b;
    int64_t *longest; /* [steps] sample of each */
    uint32_t *order;  /* [steps] of them by that */
    double *work;     /* [steps] ns that it takes all ranks at degree 1 */
    double *alone;    /* [steps] ns of a step of the longest sample at least; 0: not looked at */
    double *ns;       /* [steps] planned; 0: it was not */
} survey;

static void survey_step(survey *v, int64_t step)
{
    const hbp__epoch *epoch = v->epoch;
    const hbp_lengths *lengths = epoch->lengths;
    const int64_t multiple = hbp__max_i64(1, epoch->options.sequence_multiple);
    double tokens = 0, squares = 0, vision = 0;
    int64_t longest = 0;
    for (int64_t i = v->b->first[step]; i < v->b->first[step + 1]; i++) {
        const int64_t length = hbp__lengths_get(lengths, v->b->sample[i]);
        longest = hbp__max_i64(longest, length);
        tokens += (double)hbp__round_up(length, multiple);
        squares += (double)length * (double)length;
        vision += (double)hbp__lengths_vision(lengths, v->b->sample[i]);
    }
    v->order[step] = (uint32_t)step;
    v->longest[step] = longest;
    v->work[step] = hbp__epoch_work(epoch, tokens, squares, vision) / epoch->cost->terms.ranks;
    if (v->b->steps <= HBP__GUESS_ALONE_STEPS)
        v->alone[step] =
            epoch->cost->terms.step_ns + (double)hbp__max_i64(0, hbp__epoch_alone_ns(epoch->cost, longest));
}

static hbp_status survey_open(const hbp__epoch *epoch, const hbp__batches *b, survey *v)
{
    hbp_context *context = epoch->context;
    const uint64_t rows = (uint64_t)b->steps;
    int64_t since = 0;
    *v = (survey){.epoch = epoch, .b = b};
    v->longest = hbp__take(context, rows, sizeof *v->longest);
    v->order = hbp__take(context, rows, sizeof *v->order);
    v->work = hbp__take(context, rows, sizeof *v->work);
    v->alone = hbp__take_zero(context, rows, sizeof *v->alone);
    v->ns = hbp__take_zero(context, rows, sizeof *v->ns);
    HBP__TRY(hbp__scratch_check(context, "the estimate"));
    for (int64_t step = 0; step < b->steps; step++) {
        survey_step(v, step);
        HBP__TRY(
            hbp__tick_rows(context, "batches", &since, b->first[step + 1] - b->first[step], step, b->steps));
    }
    return hbp__order_by_i64(context, v->longest, v->order, b->steps, "the estimate");
}

static hbp_status plan_step(survey *v, int64_t step)
{
    hbp_plan *plan = NULL;
    HBP__TRY(hbp__batches_plan_step(v->epoch, v->epoch->context, v->b, step, &plan));
    v->ns[step] = (double)plan->step_ns[0];
    hbp_plan_free(plan);
    return HBP_OK;
}

/* What steps that do not wait for their longest sample take, in times of their work; 1 where there are none.
 */
static double work_factor(const survey *v)
{
    double ns = 0, work = 0;
    for (int64_t step = 0; step < v->b->steps; step++)
        if (v->ns[step] > v->alone[step] * (1 + HBP__GUESS_WAITS)) {
            ns += v->ns[step];
            work += v->work[step];
        }
    return work > 0 ? ns / work : 1;
}

/* What all steps take. One that is not planned likely takes its work so many times, or what its longest
 * sample takes alone. All those are scaled as the planned ones are, but for the one apart, which is like no
 * other. */
static int64_t sum_up(const survey *v, int64_t apart)
{
    const double factor = work_factor(v);
    double total = 0, ns = 0, seen = 0, unseen = 0;
    for (int64_t step = 0; step < v->b->steps; step++) {
        const double likely = hbp__max_f64(factor * v->work[step], v->alone[step]);
        total += v->ns[step];
        if (v->ns[step] > 0 && step != apart) {
            ns += v->ns[step];
            seen += likely;
        } else if (step != apart) {
            unseen += likely;
        }
    }
    return hbp__round_i64(total + (seen > 0 ? unseen * ns / seen : unseen));
}

static hbp_status estimate(const hbp__epoch *epoch, const hbp__batches *b, int64_t sample, int64_t *ns)
{
    int64_t steps = b->steps, apart = -1;
    survey v;
    HBP__TRY(survey_open(epoch, b, &v));
    if (sample && steps <= HBP__GUESS_LONGEST_STEPS) {
        /* It may take far longer than the others. */
        apart = v.order[--steps];
        HBP__TRY(plan_step(&v, apart));
    }
    const int64_t count = hbp__min_i64(hbp__max_i64(1, sample), steps);
    /* The middle of the i-th stretch. */
    for (int64_t i = 0; i < count; i++)
        HBP__TRY(plan_step(&v, v.order[(2 * i + 1) * steps / (2 * count)]));
    *ns = sum_up(&v, apart);
    return HBP_OK;
}

hbp_status hbp__batches_estimate(const hbp__epoch *epoch, const hbp__batches *b, int64_t sample, int64_t *ns)
{
    const int64_t mark = hbp__scratch_mark(epoch->context);
    return hbp__leave(epoch->context, mark, estimate(epoch, b, sample, ns));
}
