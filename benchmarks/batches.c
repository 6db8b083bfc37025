#include "batches.h"

#include <stddef.h>

enum { MOST_DRAWS = 100 };

/* In the order of bench_data_open. */
static const int set_index[BENCH_BATCH_SETS] = {1, 5, 2};

void bench_batches_open(hbp_context *context, bench_data data[BENCH_BATCH_SETS])
{
    for (int i = 0; i < BENCH_BATCH_SETS; i++)
        if (!bench_data_open(context, set_index[i], &data[i]))
            bench_need(NULL, HBP_E_SYSTEM, "the data");
}

void bench_batches_close(bench_data data[BENCH_BATCH_SETS])
{
    for (int i = 0; i < BENCH_BATCH_SETS; i++)
        bench_data_close(&data[i]);
}

int bench_batches_padded_to_all;

int64_t bench_batches_multiple(int32_t ranks)
{
    return 2 * (int64_t)(ranks > 64 && !bench_batches_padded_to_all ? 64 : ranks);
}

static int64_t padded(int64_t length, int64_t multiple)
{
    return (length + multiple - 1) / multiple * multiple;
}

int64_t bench_batches_longest(const bench_batches *batches, const hbp_cost *cost)
{
    int64_t room = hbp_cost_predict_capacity(cost, batches->ranks, 0);
    int64_t limit = batches->limit_k * 1000 - bench_batches_multiple(batches->ranks);
    return room < limit ? room : limit;
}

int bench_batches_draw(const bench_batches *batches, const hbp_cost *cost, int64_t index, uint32_t *length)
{
    const bench_data *data = batches->data;
    int64_t multiple = bench_batches_multiple(batches->ranks), longest = bench_batches_longest(batches, cost);
    int64_t samples = batches->samples;
    double room = .95 * (double)hbp_cost_predict_capacity(cost, batches->ranks, 0);
    uint64_t state = batches->seed << 32 ^ (uint64_t)index << 16 ^ (uint64_t)samples;
    for (int draws = 0; draws < MOST_DRAWS; draws++) {
        int64_t tokens = 0, k = 0;
        for (int64_t tries = 0; k < samples && tries < 100 * samples; tries++) {
            uint32_t drawn = data->length[bench_random(&state) % (uint64_t)data->count];
            if (padded(drawn, multiple) > longest)
                continue;
            length[k++] = drawn;
            tokens += padded(drawn, multiple);
        }
        if (k < samples)
            return 0;
        if (!batches->is_single || (double)tokens <= room)
            return 1;
    }
    return 0;
}
