/* The order of a data set: by length, samples of one length shuffled by the seed. */
#include <string.h>

#include "base/checked.h"
#include "base/parallel.h"
#include "base/prefetch.h"
#include "base/rng.h"
#include "base/scratch.h"
#include "base/search.h"
#include "data/lengths/length_deal.h"
#include "data/lengths/lengths_make.h"

/* The rng's stream of this order; each length has a generator of its own from it. */
#define STREAM UINT64_C(0x6f72646572)
/* Runs of one length up to this many samples are shuffled in place; longer ones are first dealt into piles.
 */
#define SHUFFLE_IN_PLACE 65536
#define PILES            256
/* So that threads end together; fewer samples are not worth a job. */
#define JOBS_A_THREAD 8
#define JOB_SAMPLES   65536

typedef struct ordering {
    const hbp_lengths *lengths;
    uint64_t key; /* of the generators */
    int64_t jobs;
    uint32_t *order; /* [count] */
} ordering;

/* What shuffles the runs of a job, each of one length. */
typedef struct shuffling {
    hbp_context *context;
    uint32_t *piled; /* room for piles; NULL: all are short */
    hbp__rng rng;
} shuffling;

/* Uniform shuffle of a long run without leaving the cache (Rao 1961, Sandelius 1962): each sample goes to a
 * random pile, then each pile is shuffled. The piles are drawn twice from the same state instead of being
 * remembered. */
static hbp_status shuffle_run(shuffling *s, uint32_t *run, int64_t count)
{
    if (count <= SHUFFLE_IN_PLACE) {
        hbp__rng_shuffle_u32(&s->rng, run, (uint64_t)count);
        return HBP_OK;
    }
    int64_t next[PILES + 1] = {0};
    hbp__rng again = s->rng;
    uint64_t digits = 0;
    for (int64_t i = 0; i < count; i++, digits >>= 8) {
        if (i % HBP__LENGTHS_BLOCK == 0)
            HBP__TRY(hbp__tick(s->context, "shuffle equal lengths", i, count));
        if (i % 8 == 0)
            digits = hbp__rng_next(&s->rng);
        next[(digits & (PILES - 1)) + 1]++;
    }
    for (int pile = 0; pile < PILES; pile++)
        next[pile + 1] += next[pile];
    for (int64_t i = 0; i < count; i++, digits >>= 8) {
        if (i % HBP__LENGTHS_BLOCK == 0)
            HBP__TRY(hbp__tick(s->context, "shuffle equal lengths", i, count));
        if (i % 8 == 0)
            digits = hbp__rng_next(&again);
        s->piled[next[digits & (PILES - 1)]++] = run[i];
    }
    memcpy(run, s->piled, (size_t)count * sizeof *run);
    for (int64_t pile = 0, from = 0; pile < PILES; from = next[pile++]) { /* about count / 256 each: 4 deep */
        HBP__TRY(hbp__tick(s->context, "shuffle equal lengths", from, count));
        HBP__TRY(shuffle_run(s, run + from, next[pile] - from));
    }
    return HBP_OK;
}

/* The bins of a job: those that begin in its part of the samples. */
static int64_t first_bin(const ordering *o, int64_t job)
{
    const hbp_lengths *lengths = o->lengths;
    const int64_t from = job * (lengths->count / o->jobs);
    if (!job || job == o->jobs)
        return job ? lengths->bins : 0;
    return hbp__last_at_most(lengths->bin_first, lengths->bins, from - 1) + 1;
}

static hbp_status shuffle_bins(hbp_context *context, void *user, int64_t job)
{
    const ordering *o = user;
    const hbp_lengths *lengths = o->lengths;
    const int64_t first = first_bin(o, job), end = first_bin(o, job + 1);
    shuffling s = {.context = context};
    int64_t most = 0;
    for (int64_t bin = first; bin < end; bin++)
        most = hbp__max_i64(most, lengths->bin_count[bin]);
    if (most > SHUFFLE_IN_PLACE) {
        s.piled = hbp__take(context, (uint64_t)most, sizeof *s.piled);
        HBP__TRY(hbp__scratch_check(context, "the order of lengths"));
    }
    for (int64_t bin = first; bin < end; bin++) {
        if (bin % 1024 == 0)
            HBP__TRY(hbp__tick(context, "shuffle equal lengths", bin - first, end - first));
        s.rng = hbp__rng_make(o->key, (uint64_t)lengths->bin_length[bin], STREAM);
        if (bin + 1 < end && lengths->bin_count[bin + 1] <= SHUFFLE_IN_PLACE)
            hbp__prefetch_u32(o->order + lengths->bin_first[bin + 1], lengths->bin_count[bin + 1]);
        if (lengths->bin_count[bin] > 1)
            HBP__TRY(shuffle_run(&s, o->order + lengths->bin_first[bin], lengths->bin_count[bin]));
    }
    return HBP_OK;
}

static hbp_status order_array(hbp_context *context, const hbp_lengths *lengths, uint64_t seed, uint64_t epoch,
                              uint32_t *order)
{
    hbp__rng rng = hbp__rng_make(seed, epoch, STREAM);
    const int64_t most = (int64_t)hbp__threads(context, 0) * JOBS_A_THREAD;
    ordering o = {lengths, hbp__rng_next(&rng), hbp__min_i64(most, lengths->count / JOB_SAMPLES + 1), order};
    HBP__TRY(hbp__lengths_deal(context, lengths, order));
    return hbp__parallel(context, 0, o.jobs, shuffle_bins, &o);
}

static hbp_status order_histogram(hbp_context *context, const hbp_lengths *lengths, uint32_t *order)
{
    for (int64_t i = 0; i < lengths->count; i++) {
        if (i % HBP__LENGTHS_BLOCK == 0)
            HBP__TRY(hbp__tick(context, "order lengths", i, lengths->count));
        order[i] = (uint32_t)i;
    }
    return HBP_OK;
}

hbp_status hbp__lengths_order(hbp_context *context, const hbp_lengths *lengths, uint64_t seed, uint64_t epoch,
                              uint32_t **order)
{
    *order = NULL;
    uint32_t *fresh = hbp__new(&context->memory, (uint64_t)lengths->count, sizeof *fresh);
    if (!fresh)
        return hbp__fail_memory(context, "the order of lengths");
    hbp_status status = lengths->length ? order_array(context, lengths, seed, epoch, fresh)
                                        : order_histogram(context, lengths, fresh);
    if (status < 0)
        hbp__delete(&context->memory, fresh);
    else
        *order = fresh;
    return status;
}
