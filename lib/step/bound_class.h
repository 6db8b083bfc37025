/* The bound on the sum of the makespans of a step's micro-batches, by classes of the longest of them
 * (docs/explanation/step-bound.md, "Classes of the longest micro-batch"). */
#ifndef HBP_STEP_BOUND_CLASS_H
#define HBP_STEP_BOUND_CLASS_H

#include "solve/concave.h"
#include "step/bound.h"
#include "step/tuning.h"

/* What a sequence takes on the degrees that finish within a makespan: the lower left hull of its needs, by
 * rising work. */
typedef struct hbp__bound_row {
    double from; /* the row holds for makespans from here on */
    double until;
    int64_t options;
} hbp__bound_row;

typedef struct hbp__bound_class {
    const hbp__step *step;
    const hbp__ask *ask;  /* [count x degrees] */
    double ranks;         /* N */
    double micro_batches; /* M', at least so many, or the very number */
    int prices;
    double price[HBP__BOUND_PRICES]; /* thetas to try */
    int favourite;                   /* the one that served the last class best */
    hbp__bound_row *row;             /* [count] */
    hbp__need *option;               /* [count x 3 degrees] */
    /* of the class at hand */
    double low;
    double theta;      /* ns that the memory of a micro-batch costs by itself */
    double tau;        /* share of the top micro-batch's time that work pays */
    double plain;      /* the bound without a top micro-batch, once a value was looked at */
    hbp_status status; /* once cancelled its bounds mean nothing */
} hbp__bound_class;

/* `ask` must live as long. HBP_E_NO_MEMORY. Close it whatever happens. */
hbp_status hbp__bound_class_open(const hbp__step *step, const hbp__ask *ask, hbp__bound_class *class);

/* For `micro_batches` or more of them: the prices of memory to try, at most HBP__BOUND_PRICES. */
void hbp__bound_class_set_prices(hbp__bound_class *class, double micro_batches, const double *price,
                                 int prices);

/* For just `micro_batches`, none with a makespan above `most`: the price at which the bound without a top
 * micro-batch is greatest. Returns that bound; nothing once class->status says that it is cancelled. */
double hbp__bound_class_set_best_price(hbp__bound_class *class, double micro_batches, double most);

/* The least over the classes of the longest micro-batch, whose makespan is above `longest` and at most
 * `most`: sums of all makespans, each less B'. At most `most`. HBP_E_CANCELLED. O(classes x sequences x
 * degrees), most of them settled together. */
hbp_status hbp__bound_class_least(hbp__bound_class *class, double longest, double most, double *least);

/* Zero when the work of all sequences alone rules out one micro-batch of makespan `time`; class->status as
 * above. */
int hbp__bound_class_allows(hbp__bound_class *class, double time);

#endif
