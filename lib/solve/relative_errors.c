/* Errors kept by the bits of their doubles, which sort as integers: O(count) to sort, O(1) a quantile. */
#include "solve/relative_errors.h"

#include <string.h>

#include "base/checked.h"
#include "base/sort.h"

int hbp__relative_errors_begin(const hbp__memory *memory, int64_t room, hbp__relative_errors *errors)
{
    *errors = (hbp__relative_errors){.room = room};
    errors->bits = hbp__new(memory, (uint64_t)room, sizeof *errors->bits);
    errors->order = hbp__new(memory, (uint64_t)room, sizeof *errors->order);
    return errors->bits && errors->order;
}

void hbp__relative_errors_add(hbp__relative_errors *errors, double predicted, double measured)
{
    double error = (predicted - measured) / measured;
    error = error < 0 ? -error : error;
    memcpy(&errors->bits[errors->count], &error, sizeof error);
    errors->order[errors->count] = (uint32_t)errors->count;
    errors->count++;
}

hbp_status hbp__relative_errors_sort(hbp_context *context, hbp__relative_errors *errors, const char *what)
{
    return hbp__order_by_u64(context, errors->bits, errors->order, errors->count, what);
}

double hbp__relative_errors_quantile(const hbp__relative_errors *errors, int64_t percent)
{
    double value = 0;
    if (errors->count) {
        int64_t rank = hbp__ceil_div(errors->count * percent, 100);
        memcpy(&value, &errors->bits[errors->order[rank - 1]], sizeof value);
    }
    return value;
}

void hbp__relative_errors_end(const hbp__memory *memory, hbp__relative_errors *errors)
{
    hbp__delete(memory, errors->bits);
    hbp__delete(memory, errors->order);
}
