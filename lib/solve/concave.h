/* The greatest value of a concave function of one number, from tangents. */
#ifndef HBP_SOLVE_CONCAVE_H
#define HBP_SOLVE_CONCAVE_H

/* A line that touches a concave function at `at`, or lies above it: f(y) <= value + slope (y - at). */
typedef struct hbp__tangent {
    double at;
    double value;
    double slope;
} hbp__tangent;

typedef hbp__tangent hbp__tangent_at(void *data, double at);

/* What is worth looking for. */
typedef struct hbp__concave_aim {
    double least;  /* a greatest value of at most this is as good as none */
    double enough; /* any value from here on will do */
    int tries;     /* values looked at, at most */
} hbp__concave_aim;

/* The tangent of the greatest value found from `left`, which rises, to `right`, which falls; both are of f,
 * or above it where that does not matter. The next place is where the two meet, which is as high as f can be:
 * a function made of few straight pieces is done in about as many tries. Source: Kelley, The cutting-plane
 * method for solving convex programs (1960). */
hbp__tangent hbp__concave_greatest(hbp__tangent_at *f, void *data, hbp__tangent left, hbp__tangent right,
                                   const hbp__concave_aim *aim);

#endif
