#include "io/plan/plan_format.h"

int32_t hbp__plan_format_version(const hbp_plan *plan)
{
    if (plan->lockstep_ranks)
        return 4;
    if (plan->sequence_multiple_per_sp || plan->pack_multiple_per_sp ||
        (hbp__plan_optional(plan) & HBP__PLAN_PIECES))
        return 3;
    if (hbp__plan_optional(plan) & (HBP__PLAN_VISION | HBP__PLAN_MODALITIES))
        return 2;
    for (int64_t i = 0; i < plan->dropped; i++)
        if (plan->dropped_reasons[i] > HBP_DROPPED_LEFTOVER)
            return 2;
    return 1;
}

int hbp__plan_chunk_has(const hbp__plan_rows *rows, int table)
{
    return (table == HBP__ON_dropped) == (rows->steps == 0);
}

int64_t hbp__plan_chunk_bytes(const hbp__plan_rows *rows, int32_t optional)
{
    const int64_t most = INT64_C(1) << 48;
#define CHECK(table)                                                                                         \
    if (rows->table < 0 || rows->table > most ||                                                             \
        (rows->table && !hbp__plan_chunk_has(rows, HBP__ON_##table)))                                        \
        return -1;
    HBP__PLAN_TABLES(CHECK)
#undef CHECK
    int64_t bytes = 0;
#define ADD(name, type, table, extra)                                                                        \
    if (hbp__plan_chunk_has(rows, HBP__ON_##table))                                                          \
        bytes += (rows->table + (extra)) * (int64_t)sizeof(type);
    HBP__PLAN_COLUMNS(ADD)
#undef ADD
#define LEAVE_OUT(name, flag, type, table)                                                                   \
    if (!(optional & (flag)))                                                                                \
        bytes -= rows->table * (int64_t)sizeof(type);
    HBP__PLAN_OPTIONAL(LEAVE_OUT)
#undef LEAVE_OUT
    return bytes;
}

int hbp__plan_same_summary(const hbp_plan_summary *a, const hbp_plan_summary *b)
{
    int same = a->bound_ns == b->bound_ns && a->vision == b->vision && a->modalities == b->modalities &&
               a->proven == b->proven && memcmp(&a->gap, &b->gap, sizeof a->gap) == 0;
#define SAME(name) same = same && a->name == b->name;
    HBP__PLAN_HEADER_FIELDS(SAME)
    HBP__PLAN_HEADER_OPTIONAL(SAME)
#undef SAME
    return same;
}
