#include "sweep.h"

#include <string.h>

/* Values tried on either side of one that is refined. */
#define BETWEEN 3

hbp_status sweep_try(sweep *s, int64_t value)
{
    int at = 0;
    int64_t ns = INT64_MAX;
    while (at < s->count && s->value[at] < value)
        at++;
    if (s->count == SWEEP_MOST || (at < s->count && s->value[at] == value))
        return HBP_OK;
    hbp_status status = s->measure(s->user, value, &ns);
    if (status < 0 && status != HBP_E_INFEASIBLE)
        return status;
    size_t behind = (size_t)(s->count - at);
    memmove(s->value + at + 1, s->value + at, behind * sizeof *s->value);
    memmove(s->ns + at + 1, s->ns + at, behind * sizeof *s->ns);
    memmove(s->refined + at + 1, s->refined + at, behind * sizeof *s->refined);
    s->value[at] = value;
    s->ns[at] = status < 0 ? INT64_MAX : ns;
    s->refined[at] = 0;
    s->count++;
    return HBP_OK;
}

hbp_status sweep_octaves(sweep *s, int64_t least, int64_t most, int per_octave)
{
    hbp_status status = sweep_try(s, least);
    for (int64_t power = 1; power <= most && status >= 0; power *= 2)
        for (int k = 0; k < per_octave && status >= 0; k++) {
            int64_t value = power + power * k / per_octave;
            if (value > least && value < most)
                status = sweep_try(s, value);
        }
    return status < 0 ? status : sweep_try(s, most);
}

/* The fastest value, of equals the least; of those not yet refined, if `fresh`. -1: none. */
static int find_best(const sweep *s, int fresh)
{
    int best = -1;
    for (int i = 0; i < s->count; i++)
        if (s->ns[i] < INT64_MAX && !(fresh && s->refined[i]) && (best < 0 || s->ns[i] < s->ns[best]))
            best = i;
    return best;
}

int sweep_best(const sweep *s)
{
    return find_best(s, 0);
}

/* Refines around the best value that is not refined yet. */
static hbp_status refine_one(sweep *s)
{
    int i = find_best(s, 1);
    if (i < 0)
        return HBP_OK;
    int64_t middle = s->value[i],
            end[2] = {i ? s->value[i - 1] : middle, i + 1 < s->count ? s->value[i + 1] : middle};
    s->refined[i] = 1;
    for (int side = 0; side < 2; side++)
        for (int k = 1; k <= BETWEEN; k++) {
            hbp_status status = sweep_try(s, middle + (end[side] - middle) * k / (BETWEEN + 1));
            if (status < 0)
                return status;
        }
    return HBP_OK;
}

hbp_status sweep_refine(sweep *s, int times)
{
    hbp_status status = HBP_OK;
    for (int i = 0; i < times && status >= 0; i++)
        status = refine_one(s);
    return status;
}
