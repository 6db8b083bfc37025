#include "solve/packing/histogram_pack.h"

hbp_status hbp__classes_fit(hbp_context *context, const hbp__classes *classes, hbp__room room)
{
    for (int64_t c = classes->count - 1; c >= 0; c--) {
        if (!classes->number[c])
            continue;
        if (classes->size[c] > room.capacity)
            return hbp__fail(context, HBP_E_INFEASIBLE, "an item of size %lld fits no pack of capacity %lld",
                             (long long)classes->size[c], (long long)room.capacity);
        if (hbp__class_weight(classes, c) > room.max_weight)
            return hbp__fail(context, HBP_E_INFEASIBLE, "an item of weight %lld fits no pack of weight %lld",
                             (long long)hbp__class_weight(classes, c), (long long)room.max_weight);
        if (!classes->weight)
            break;
    }
    return HBP_OK;
}

hbp_status hbp__histogram_pack(hbp_context *context, const hbp__classes *classes, hbp__room room,
                               hbp__pack_rule rule, hbp__patterns *patterns)
{
    HBP__TRY(hbp__classes_fit(context, classes, room));
    hbp__packer packer;
    hbp__packer_open(context, rule, room, &packer);
    hbp_status status = HBP_OK;
    for (int64_t c = classes->count - 1; c >= 0 && status == HBP_OK; c--) {
        if (c % 1024 == 0)
            status = hbp__tick(context, "pack", classes->count - c, classes->count);
        if (status == HBP_OK)
            status = hbp__packer_place(&packer, classes, c, classes->number[c], NULL);
    }
    if (status == HBP_OK)
        status = hbp__packer_write(&packer, patterns);
    hbp__packer_close(&packer);
    return status;
}
