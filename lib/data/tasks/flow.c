#include "data/tasks/flow.h"

#include "base/checked.h"

/* A product past 63 bits is done bit by bit of `bytes`: quotient and remainder of what was read so far,
 * doubled, and one more part. */
int64_t hbp__share_up(int64_t bytes, int64_t part, int64_t whole)
{
    int64_t product, quotient = 0, remainder = 0;
    if (hbp__mul_i64(bytes, part, &product))
        return hbp__ceil_div(product, whole);
    for (int bit = 62; bit >= 0; bit--) {
        quotient *= 2;
        remainder *= 2;
        if (remainder >= whole) {
            remainder -= whole;
            quotient++;
        }
        if (bytes >> bit & 1)
            remainder += part;
        if (remainder >= whole) {
            remainder -= whole;
            quotient++;
        }
    }
    return quotient + (remainder > 0);
}

/* A set of ranks that is read domain by domain. */
typedef struct reader {
    const int32_t *rank;
    int32_t count;
    int32_t at;
} reader;

/* Reads the ranks below `end`; returns how many. */
static int32_t read_below(reader *r, int64_t end)
{
    int32_t before = r->at;
    while (r->at < r->count && r->rank[r->at] < end)
        r->at++;
    return r->at - before;
}

static int32_t count_common(const int32_t *a, int32_t as, const int32_t *b, int32_t bs)
{
    int32_t common = 0;
    for (int32_t i = 0, j = 0; i < as && j < bs;) {
        int32_t x = a[i], y = b[j];
        common += x == y;
        i += x <= y;
        j += y <= x;
    }
    return common;
}

hbp__flow hbp__flow_between(const int32_t *from, int32_t froms, const int32_t *to, int32_t tos,
                            int32_t domain_gpus, int64_t bytes)
{
    hbp__flow flow = {0, 0};
    if (bytes <= 0 || froms < 1 || tos < 1)
        return flow;
    int64_t larger = hbp__max_i64(froms, tos);
    flow.moved = hbp__share_up(bytes, larger - count_common(from, froms, to, tos), larger);
    /* Of each domain the smaller of the two shares stays, in units of 1 / (froms x tos). */
    reader a = {from, froms, 0}, b = {to, tos, 0};
    int64_t whole = (int64_t)froms * tos, stays = 0;
    while (a.at < froms && b.at < tos) {
        int64_t later = hbp__max_i64(a.rank[a.at], b.rank[b.at]), domain = later / domain_gpus * domain_gpus;
        read_below(&a, domain); /* in domains that only one of them has */
        read_below(&b, domain);
        int64_t mine = read_below(&a, domain + domain_gpus), theirs = read_below(&b, domain + domain_gpus);
        stays += hbp__min_i64(mine * tos, theirs * froms);
    }
    flow.crossing = hbp__share_up(bytes, whole - stays, whole);
    return flow;
}

int64_t hbp__operator_activation(const hbp__operator *o, int32_t n)
{
    return hbp__ceil_div(o->activation_bytes, n);
}

int64_t hbp__operator_states(const hbp__operator *o, int32_t n)
{
    return hbp__add_saturating(o->state_bytes, hbp__ceil_div(o->sharded_bytes, n));
}
