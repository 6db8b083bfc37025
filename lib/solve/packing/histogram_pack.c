/* Packers of a histogram: best, first and worst fit decreasing, and a spread over a number of packs set
 * beforehand. */
#include "base/checked.h"
#include "solve/packing/packer.h"

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

/* Places classes from `*c` down until the packs hold `enough`, else all of them; *c gets the next class. */
static hbp_status place_down(hbp__packer *packer, const hbp__classes *classes, int64_t enough, int64_t *c)
{
    int64_t held = 0;
    for (; *c >= 0 && (enough == INT64_MAX || held < enough); --*c) {
        if (*c % 1024 == 0)
            HBP__TRY(hbp__tick(packer->context, "pack", classes->count - *c, classes->count));
        HBP__TRY(hbp__packer_place(packer, classes, *c, classes->number[*c], NULL));
        held = hbp__add_saturating(held, hbp__mul_saturating(classes->number[*c], classes->size[*c]));
    }
    return HBP_OK;
}

static hbp_status place_and_write(hbp__packer *packer, const hbp__classes *classes, int64_t enough,
                                  int64_t *c, hbp__patterns *patterns)
{
    HBP__TRY(place_down(packer, classes, enough, c));
    return hbp__packer_write(packer, patterns);
}

hbp_status hbp__histogram_pack(hbp_context *context, const hbp__classes *classes, hbp__room room,
                               hbp__pack_rule rule, hbp__patterns *patterns)
{
    int64_t c = classes->count - 1;
    HBP__TRY(hbp__classes_fit(context, classes, room));
    hbp__packer packer;
    hbp__packer_open(context, rule, room, &packer);
    hbp_status status = place_and_write(&packer, classes, INT64_MAX, &c, patterns);
    hbp__packer_close(&packer);
    return status;
}

/* Worst fit over `packs` packs until all but a share of the room is taken. */
static hbp_status spread_items(hbp_context *context, const hbp__classes *classes, hbp__room room,
                               int64_t packs, int64_t last, int64_t *c, hbp__patterns *patterns)
{
    hbp__packer packer;
    hbp__packer_open(context, HBP__WORST_FIT, room, &packer);
    int64_t most = last ? room.capacity - hbp__max_i64(1, room.capacity / last) : INT64_MAX;
    hbp_status status = hbp__packer_take(&packer, classes, packs, NULL, 0);
    if (status == HBP_OK)
        status = place_and_write(&packer, classes, hbp__mul_saturating(most, packs), c, patterns);
    hbp__packer_close(&packer);
    return status;
}

/* Best fit of what is left beside what has been spread. */
static hbp_status close_gaps(hbp_context *context, const hbp__classes *classes, hbp__room room, int64_t c,
                             const hbp__patterns *spread, hbp__patterns *patterns)
{
    hbp__packer packer;
    hbp__packer_open(context, HBP__BEST_FIT, room, &packer);
    hbp_status status = hbp__packer_take_all(&packer, classes, spread);
    if (status == HBP_OK)
        status = place_and_write(&packer, classes, INT64_MAX, &c, patterns);
    hbp__packer_close(&packer);
    return status;
}

hbp_status hbp__level_pack(hbp_context *context, const hbp__classes *classes, hbp__room room, int64_t packs,
                           int64_t last, hbp__patterns *patterns)
{
    hbp__patterns half;
    hbp__patterns_open(context, &half);
    int64_t c = classes->count - 1;
    hbp_status status = spread_items(context, classes, room, packs, last, &c, &half);
    if (status == HBP_OK)
        status = close_gaps(context, classes, room, c, &half, patterns);
    hbp__patterns_close(&half);
    return status;
}
