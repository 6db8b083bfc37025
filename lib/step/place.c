/* Which ranks the groups of a micro-batch get. */
#include <string.h>

#include "base/checked.h"
#include "step/step.h"

/* Where the degrees nest, larger groups first leave no gap: each begins where the last one ended. */
static int place_chain(const hbp__step *step, const int32_t *degree, int64_t count, int32_t *first)
{
    int64_t used = 0;
    for (int64_t g = 0; g < count; g++)
        used += step->degree[degree[g]].degree;
    if (used > step->ranks)
        return 0;
    int64_t at = 0;
    for (int32_t j = step->degrees - 1; j >= 0 && first; j--)
        for (int64_t g = 0; g < count; g++)
            if (degree[g] == j) {
                first[g] = (int32_t)at;
                at += step->degree[j].degree;
            }
    return 1;
}

/* The least multiple of `d` from which `d` ranks are free and of one domain where they fit one; -1: none. */
static int32_t find_place(const hbp__step *step, const uint8_t *taken, int32_t d)
{
    for (int32_t at = 0; at + d <= step->ranks; at += d) {
        if (d <= step->domain && at / step->domain != (at + d - 1) / step->domain)
            continue;
        if (!memchr(taken + at, 1, (size_t)d))
            return at;
    }
    return -1;
}

/* Other degrees: larger groups first, each at the first place that is free. */
static int place_greedily(const hbp__step *step, uint8_t *taken, const int32_t *degree, int64_t count,
                          int32_t *first)
{
    for (int32_t j = step->degrees - 1; j >= 0; j--)
        for (int64_t g = 0; g < count; g++) {
            if (degree[g] != j)
                continue;
            int32_t at = find_place(step, taken, step->degree[j].degree);
            if (at < 0)
                return 0;
            memset(taken + at, 1, (size_t)step->degree[j].degree);
            if (first)
                first[g] = at;
        }
    return 1;
}

int hbp__step_place(const hbp__step *step, const int32_t *degree, int64_t count, int32_t *first)
{
    if (step->chain)
        return place_chain(step, degree, count, first);
    memset(step->taken, 0, (size_t)step->ranks);
    return place_greedily(step, step->taken, degree, count, first);
}
