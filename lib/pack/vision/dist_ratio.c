/* OmniBal's DistRatio of packs in the order that they stand in. */
#include "pack/vision/dist_ratio.h"

#include "base/checked.h"
#include "solve/imbalance.h"

double hbp__dist_ratio(const int64_t *load, int64_t packs, int64_t ranks)
{
    int64_t micro_batches = packs / ranks;
    double sum = 0;
    for (int64_t k = 0; k < micro_batches; k++) {
        int64_t max = 0;
        double own = 0;
        for (int64_t r = 0; r < ranks; r++) {
            int64_t here = load[r * micro_batches + k];
            max = hbp__max_i64(max, here);
            own += (double)here;
        }
        sum += hbp__imbalance((double)max, own, (double)ranks);
    }
    return micro_batches ? sum / (double)micro_batches : 0;
}
