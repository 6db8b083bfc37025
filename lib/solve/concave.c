/* The cutting-plane method in one dimension (Kelley 1960): O(tries). */
#include "solve/concave.h"

/* Nothing is won that is a smaller share than this. */
#define PRECISION 1e-6

hbp__tangent hbp__concave_greatest(hbp__tangent_at *f, void *data, hbp__tangent left, hbp__tangent right,
                                   const hbp__concave_aim *aim)
{
    hbp__tangent best = left.value >= right.value ? left : right;
    for (int i = 0; i < aim->tries && left.slope > 0 && right.slope < 0 && best.value < aim->enough; i++) {
        double at_left = left.value - left.slope * left.at, at_right = right.value - right.slope * right.at;
        double at = (at_right - at_left) / (left.slope - right.slope);
        double most = at_left + left.slope * at;
        double found = best.value > aim->least ? best.value : aim->least;
        if (!(at > left.at && at < right.at) || most <= found + PRECISION * (found < 0 ? -found : found))
            break;
        hbp__tangent here = f(data, at);
        best = here.value > best.value ? here : best;
        if (here.slope > 0)
            left = here;
        else
            right = here;
    }
    return best;
}
