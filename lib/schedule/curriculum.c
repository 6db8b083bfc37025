/* The order of steps over the epoch: those of the curriculum first, then each group spread evenly. */
#include "schedule/microbatch.h"

/* The group whose count of steps so far lags most behind its share: (done + 1/2) / count least, by
 * cross-multiplication; ties to the lower group. A group's k-th step so falls due at the middle of its k-th
 * share of the epoch. */
static int64_t most_behind(const int64_t *count, const int64_t *done, int64_t groups)
{
    int64_t best = -1;
    for (int64_t g = 0; g < groups; g++) {
        if (done[g] >= count[g])
            continue;
        if (best < 0 || (2 * done[g] + 1) * count[best] < (2 * done[best] + 1) * count[g])
            best = g;
    }
    return best;
}

void hbp__interleave(const int64_t *count, int64_t groups, int64_t curriculum, int32_t *order)
{
    int64_t left[HBP__MAX_GROUPS], done[HBP__MAX_GROUPS] = {0}, total = 0, at = 0;
    for (int64_t g = 0; g < groups; g++)
        total += left[g] = count[g];
    for (; at < curriculum && left[0] > 0; left[0]--)
        order[at++] = 0;
    for (; at < total; at++) {
        int64_t g = most_behind(left, done, groups);
        done[g]++;
        order[at] = (int32_t)g;
    }
}
