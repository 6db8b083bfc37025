#include "io/task_format.h"

int64_t hbp__task_columns_bytes(const hbp_task_schedule *shape)
{
    const int64_t most = INT64_C(1) << 32; /* the sum over all columns cannot overflow */
    int64_t bytes = 0;
#define ADD(name, type, table, extra)                                                                        \
    if (shape->table < 0 || shape->table > most)                                                             \
        return -1;                                                                                           \
    bytes += (shape->table + (extra)) * (int64_t)sizeof(type);
    HBP__TASK_COLUMNS(ADD)
#undef ADD
    return bytes;
}
