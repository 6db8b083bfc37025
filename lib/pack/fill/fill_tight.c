/* The greedy fill on the histogram: each group's own samples packed tightly, its gaps filled best fit. */
#include "pack/fill/class_fill.h"
#include "pack/fill/fill.h"
#include "solve/packing/packer.h"
#include "solve/packing/tight_pack.h"

/* Fills the gaps of a group's packs with samples of shorter groups, longest first, best fit. */
static hbp_status fill_gaps(hbp__class_fill *fill, int64_t g)
{
    hbp__patterns *patterns = &fill->patterns[g];
    hbp__packer packer;
    hbp__packer_open(fill->context, HBP__BEST_FIT, hbp__class_fill_room(fill, g), &packer);
    hbp_status status = HBP_OK;
    for (int64_t p = 0; p < patterns->count && status == HBP_OK; p++)
        status = hbp__packer_take(&packer, &fill->classes, patterns->times[p],
                                  patterns->run + patterns->offsets[p],
                                  patterns->offsets[p + 1] - patterns->offsets[p]);
    for (int64_t c = fill->from[g] - 1; c >= 0 && status == HBP_OK; c--) {
        if (c % 1024 == 0)
            status = hbp__tick(fill->context, "fill", fill->from[g] - c, fill->from[g]);
        if (status == HBP_OK)
            status = hbp__packer_place(&packer, &fill->classes, c, fill->number[c], &fill->number[c]);
    }
    if (status == HBP_OK) {
        hbp__patterns_clear(patterns);
        status = hbp__packer_write(&packer, patterns);
    }
    hbp__packer_close(&packer);
    return status;
}

static hbp_status fill_group(hbp__class_fill *fill, int32_t effort, int64_t g)
{
    hbp__classes own = hbp__class_fill_own(fill, g);
    hbp__patterns *patterns = &fill->patterns[g];
    HBP__TRY(hbp__tight_pack(fill->context, &own, hbp__class_fill_room(fill, g), effort, patterns,
                             &fill->bound[g]));
    hbp__class_fill_shift(fill, g);
    return g && patterns->count ? fill_gaps(fill, g) : HBP_OK;
}

hbp_status hbp__fill_tight(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                           const hbp_fill_options *options, hbp_packs **out)
{
    hbp__class_fill fill;
    hbp_status status = hbp__class_fill_open(context, lengths, groups, options, &fill);
    for (int64_t g = groups->count - 1; g >= 0 && status == HBP_OK; g--)
        status = fill_group(&fill, options->effort, g);
    if (status == HBP_OK)
        status = hbp__class_fill_name(&fill, out);
    hbp__class_fill_close(&fill);
    return status;
}
