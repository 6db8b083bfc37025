/* Optimal buckets by dynamic programming with divide and conquer. With lengths descending, a bucket i..k - 1
 * adds
 *
 *   w(i, k) = (k - i) s_i - sum s_i..s_(k-1)
 *
 * and for a <= b <= c <= d: w(a, c) + w(b, d) - w(a, d) - w(b, c) = (d - c)(s_b - s_a) <= 0. That is the
 * quadrangle inequality, so the best start of the last bucket never moves back as k grows (Yao 1980), and the
 * middle of a range tells both halves where to look. */
#include "step/buckets.h"

#include "base/checked.h"
#include "base/scratch.h"

typedef struct buckets {
    const int64_t *length;
    int64_t *prefix; /* [count + 1] sums of lengths */
    int64_t *last;   /* [count + 1] least addition with one bucket less */
    int64_t *now;    /* [count + 1] with this many */
    int32_t *start;  /* [buckets][count + 1] where the last bucket begins */
} buckets;

static int64_t added(const buckets *b, int64_t first, int64_t end)
{
    return (end - first) * b->length[first] - (b->prefix[end] - b->prefix[first]);
}

/* now[low..high], knowing that their last buckets begin within least..most. The depth is log2 count. */
static void fill_buckets(buckets *b, int32_t *start, int64_t low, int64_t high, int64_t least, int64_t most)
{
    while (low <= high) {
        int64_t k = low + (high - low) / 2, best = INT64_MAX, at = least;
        for (int64_t i = least; i <= most && i < k; i++) {
            int64_t sum = b->last[i] + added(b, i, k);
            if (sum < best) {
                best = sum;
                at = i;
            }
        }
        b->now[k] = best;
        start[k] = (int32_t)at;
        fill_buckets(b, start, low, k - 1, least, at);
        low = k + 1;
        least = at;
    }
}

static void solve(buckets *b, int64_t count, int64_t number)
{
    for (int64_t k = 1; k <= count; k++) {
        b->last[k] = added(b, 0, k);
        b->start[k] = 0;
    }
    for (int64_t q = 1; q < number; q++) {
        /* With q + 1 buckets, none empty, the last begins at q or later. */
        fill_buckets(b, b->start + q * (count + 1), q + 1, count, q, count - 1);
        int64_t *swap = b->last;
        b->last = b->now;
        b->now = swap;
    }
}

static void write(const buckets *b, int64_t count, int64_t number, int64_t *rounded)
{
    int64_t end = count;
    for (int64_t q = number - 1; end > 0; q--) {
        int64_t first = q > 0 ? b->start[q * (count + 1) + end] : 0;
        for (int64_t i = first; i < end; i++)
            rounded[i] = b->length[first];
        end = first;
    }
}

hbp_status hbp__step_bucket(hbp_context *context, const int64_t *length, int64_t count, int64_t number,
                            int64_t *rounded)
{
    if (number >= count) {
        for (int64_t i = 0; i < count; i++)
            rounded[i] = length[i];
        return HBP_OK;
    }
    uint64_t rows = (uint64_t)count + 1;
    buckets b = {.length = length};
    int64_t mark = hbp__scratch_mark(context);
    b.prefix = hbp__take_zero(context, rows, sizeof *b.prefix);
    b.last = hbp__take_zero(context, rows, sizeof *b.last);
    b.now = hbp__take_zero(context, rows, sizeof *b.now);
    b.start = hbp__take_zero(context, rows, (uint64_t)number * sizeof *b.start);
    HBP__TRY(hbp__scratch_check(context, "the buckets of lengths"));
    for (int64_t i = 0; i < count; i++)
        b.prefix[i + 1] = b.prefix[i] + length[i];
    solve(&b, count, number);
    write(&b, count, number, rounded);
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
