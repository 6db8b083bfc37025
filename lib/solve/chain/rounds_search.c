/* What the searches of hbp__cut_rounds share: what a partition lacks, and where it is kept. */
#include "solve/chain/rounds_search.h"

#include <string.h>

int64_t hbp__rounds_over(const hbp__rounds *rounds, const int32_t *cuts)
{
    int64_t over = 0;
    for (int32_t w = 0; w < rounds->workers && rounds->over; w++)
        over = hbp__add_saturating(over, rounds->over(rounds->user, cuts, rounds->chain->parts, w));
    return over;
}

int64_t hbp__rounds_offer(hbp__rounds_search *s, const int32_t *cuts)
{
    int64_t over = hbp__rounds_over(s->rounds, cuts);
    if (over > 0) {
        if (over < s->nearest_over) {
            s->nearest_over = over;
            memcpy(s->nearest, cuts, ((size_t)s->rounds->chain->parts + 1) * sizeof *cuts);
        }
        return INT64_MAX;
    }
    int64_t value = hbp__rounds_value(s->rounds, cuts, s->load);
    hbp__cut_list_add(s->list, cuts, value);
    return value;
}
