#include "schedule/kinds.h"

/* Samples between two reports of progress. */
#define SAMPLES_A_TICK 65536

hbp_status hbp__packs_kinds(hbp_context *context, const hbp_packs *packs, uint64_t *kinds)
{
    int64_t ticked = 0;
    for (int64_t p = 0; p < packs->count; p++) {
        kinds[p] = 0;
        for (int64_t i = packs->offsets[p]; i < packs->offsets[p + 1]; i++)
            kinds[p] |= UINT64_C(1) << hbp__lengths_modality(packs->lengths, packs->sample[i]);
        if (packs->offsets[p + 1] - ticked >= SAMPLES_A_TICK) {
            ticked = packs->offsets[p + 1];
            HBP__TRY(hbp__tick(context, "kinds", ticked, packs->samples));
        }
    }
    return HBP_OK;
}
