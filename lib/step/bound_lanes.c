/* What no step of lockstep sets beats, however small they are (docs/explanation/lockstep.md, "Bound"): the
 * rank-time that the sequences ask for in packs that end in time, and the longest of them counted. */
#include <math.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "step/bound.h"
#include "step/tuning.h"

/* What a sequence asks for on a degree. */
typedef struct lane_ask {
    double alone; /* the least time of a pack that holds it, above B'; INFINITY: does not fit */
    double work;  /* its rank-time */
    double whole; /* the same with its share of B' */
} lane_ask;

typedef struct bounding {
    const hbp__step *step;
    double fixed;  /* B', less what rounding takes off a pack */
    double kept;   /* part of a rank's time that rounding leaves where B' is 0 */
    double rows;   /* least micro-batches of the rank that takes longest */
    lane_ask *ask; /* [count x degrees] */
} bounding;

static hbp_status set_asks(bounding *b, const hbp__ask *asks)
{
    const hbp__step *step = b->step;
    double share = 0, shortest = (double)INFINITY;
    for (int64_t k = 0; k < step->count; k++) {
        double least = (double)INFINITY;
        if ((k + 1) % HBP__BOUND_TICK == 0)
            HBP__TRY(hbp__tick(step->context, "bound", k, step->count));
        for (int32_t j = 0; j < step->degrees; j++) {
            const hbp__ask *from = &asks[k * step->degrees + j];
            lane_ask *a = &b->ask[k * step->degrees + j];
            *a = (lane_ask){from->alone, (double)INFINITY, (double)INFINITY};
            for (int32_t i = 0; i < from->needs; i++) {
                const hbp__need *n = &from->need[i];
                double whole = n->work + b->fixed * n->share;
                a->work = n->work < a->work ? n->work : a->work;
                a->whole = whole < a->whole ? whole : a->whole;
                least = n->share < least ? n->share : least;
            }
            shortest = a->alone < shortest ? a->alone : shortest;
        }
        share += least;
    }
    b->kept = b->fixed > 0 ? 1 : shortest > 0.5 ? 1 - 0.5 / shortest : 0;
    b->rows = 1;
    if (!step->cost->terms.uneven_micro_batches) {
        double rows = ceil(share / step->ranks * (1 - hbp__bound_margin(step->count)));
        rows = hbp__min_f64(rows, (double)step->count);
        b->rows = (double)hbp__step_whole(step, rows > 1 ? (int64_t)rows : 1);
    }
    return HBP_OK;
}

/* Whether the longest sequences leave each other room: of those that take more than 1 / (fit + 1) of the time
 * on a rank, it runs `fit` at most. */
static int allows_counts(const bounding *b, double time, int32_t fit)
{
    const hbp__step *step = b->step;
    double width = 0, most = (double)fit * step->ranks;
    for (int64_t k = 0; k < step->count && width <= most; k++) {
        double least = (double)INFINITY;
        for (int32_t j = 0; j < step->degrees; j++) {
            const lane_ask *a = &b->ask[k * step->degrees + j];
            double ranks = step->degree[j].degree;
            if (a->alone > time)
                continue;
            double here = a->work > ranks * time / (fit + 1) ? ranks : 0;
            least = here < least ? here : least;
        }
        width += least;
    }
    return width <= most;
}

/* Zero when no step finishes within `time` above B'. */
static int allows(const bounding *b, double time)
{
    const hbp__step *step = b->step;
    double work = 0, whole = 0;
    for (int64_t k = 0; k < step->count; k++) {
        double least = (double)INFINITY, all = (double)INFINITY;
        for (int32_t j = 0; j < step->degrees; j++) {
            const lane_ask *a = &b->ask[k * step->degrees + j];
            if (a->alone > time)
                continue;
            least = a->work < least ? a->work : least;
            all = a->whole < all ? a->whole : all;
        }
        work += least;
        whole += all;
    }
    double ranks = step->ranks;
    if (work > ranks * (time - (b->rows - 1) * b->fixed) || whole > ranks * (time + b->fixed))
        return 0;
    int32_t fits = step->count <= HBP__BOUND_LANE_COUNTED ? HBP__BOUND_LANE_FIT : 0, fit = 1;
    while (fit <= fits && allows_counts(b, time, fit))
        fit++;
    return fit > fits;
}

/* The greatest time that is ruled out, between none and `upper`. */
static hbp_status search(const bounding *b, double upper, double *least)
{
    double high = upper;
    *least = 0;
    for (int i = 0; i < 50 && high - *least > 1e-9 * high; i++) {
        double middle = *least + (high - *least) / 2;
        if (allows(b, middle))
            high = middle;
        else
            *least = middle;
        HBP__TRY(hbp__tick(b->step->context, "bound", i, 50));
    }
    return HBP_OK;
}

hbp_status hbp__bound_lanes(const hbp__step *step, int64_t upper_ns, int64_t *bound_ns)
{
    hbp_context *context = step->context;
    int64_t mark = hbp__scratch_mark(context);
    uint64_t rows = (uint64_t)step->count * (uint64_t)step->degrees;
    double pack_ns = step->cost->terms.pack_ns, least = 0;
    bounding b = {.step = step, .fixed = pack_ns >= 0.5 ? pack_ns - 0.5 : 0};
    hbp__ask *asks = hbp__take(context, rows, sizeof *asks);
    b.ask = hbp__take(context, rows, sizeof *b.ask);
    HBP__TRY(hbp__scratch_check(context, "the bound of a step"));
    HBP__TRY(hbp__bound_ask(step, asks));
    HBP__TRY(set_asks(&b, asks));
    HBP__TRY(search(&b, (double)upper_ns, &least));
    double bound = (least + b.fixed) * b.kept * (1 - hbp__bound_margin(step->count)) - 1;
    *bound_ns = !(bound > 0 && least > 0) ? 0 : bound < (double)upper_ns ? (int64_t)bound : upper_ns;
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
