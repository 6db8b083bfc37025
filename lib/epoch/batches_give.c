/* The caller's own batches. */
#include "base/checked.h"
#include "base/scratch.h"
#include "epoch/batches.h"

/* Pieces of each original sample: row i of `first` begins those of sample i in `piece`. */
typedef struct pieces {
    int64_t samples; /* original ones */
    int64_t *first;  /* [samples + 1] */
    uint32_t *piece;
} pieces;

/* A limit may have dropped samples or cut them into pieces. */
static hbp_status take_pieces(const hbp__epoch *epoch, pieces *p)
{
    const hbp_lengths *lengths = epoch->lengths;
    hbp_context *context = epoch->context;
    *p = (pieces){.samples = lengths->origin ? 0 : lengths->count};
    for (int64_t i = 0; lengths->origin && i < lengths->count; i++)
        p->samples = hbp__max_i64(p->samples, (int64_t)lengths->origin[i] + 1);
    for (int64_t i = 0; i < lengths->dropped; i++)
        p->samples = hbp__max_i64(p->samples, lengths->dropped_id[i] + 1);
    p->first = hbp__take_zero(context, (uint64_t)p->samples + 2, sizeof *p->first);
    p->piece = hbp__take(context, (uint64_t)lengths->count, sizeof *p->piece);
    HBP__TRY(hbp__scratch_check(context, "the given batches"));
    int64_t *start = p->first + 1; /* shifted by one, so that filling leaves the starts in place */
    for (int64_t i = 0; i < lengths->count; i++) {
        HBP__TRY(hbp__tick_row(context, "batches", i, lengths->count));
        start[(lengths->origin ? lengths->origin[i] : i) + 1]++;
    }
    for (int64_t i = 1; i <= p->samples; i++) {
        HBP__TRY(hbp__tick_row(context, "batches", i, p->samples));
        start[i] += start[i - 1];
    }
    for (int64_t i = 0; i < lengths->count; i++) {
        HBP__TRY(hbp__tick_row(context, "batches", i, lengths->count));
        p->piece[start[lengths->origin ? lengths->origin[i] : i]++] = (uint32_t)i;
    }
    return HBP_OK;
}

static hbp_status check_offsets(const hbp__epoch *epoch)
{
    const hbp_epoch_options *o = &epoch->options;
    hbp_context *context = epoch->context;
    HBP__TRY(hbp__require(context, o->batch_offsets, "batch_offsets"));
    HBP__TRY(hbp__require(context, o->batch_samples, "batch_samples"));
    if (o->batch_offsets[0] != 0)
        return hbp__fail(context, HBP_E_INVALID, "`batch_offsets[0]` is %lld; it must be 0",
                         (long long)o->batch_offsets[0]);
    for (int64_t b = 0; b < o->batches; b++) {
        HBP__TRY(hbp__tick_row(context, "batches", b, o->batches));
        if (o->batch_offsets[b + 1] <= o->batch_offsets[b])
            return hbp__fail(context, HBP_E_INVALID,
                             "batch %lld has no samples: batch_offsets[%lld] is %lld after %lld",
                             (long long)b, (long long)b + 1, (long long)o->batch_offsets[b + 1],
                             (long long)o->batch_offsets[b]);
    }
    return HBP_OK;
}

/* Fills the batches; seen[i] gets 1 + the batch of sample i. */
static hbp_status fill_batches(const hbp__epoch *epoch, const pieces *p, int64_t *seen, hbp__batches *b)
{
    const hbp_epoch_options *o = &epoch->options;
    hbp_context *context = epoch->context;
    int64_t at = 0;
    for (int64_t step = 0; step < o->batches; step++) {
        for (int64_t i = o->batch_offsets[step]; i < o->batch_offsets[step + 1]; i++) {
            HBP__TRY(hbp__tick_row(context, "batches", i, o->batch_offsets[o->batches]));
            int64_t id = o->batch_samples[i];
            if (id < 0 || id >= p->samples)
                return hbp__fail(context, HBP_E_INVALID, "batch %lld names sample %lld; samples are 0..%lld",
                                 (long long)step, (long long)id, (long long)p->samples - 1);
            if (seen[id])
                return hbp__fail(context, HBP_E_INVALID,
                                 "batch %lld names sample %lld, which is in batch %lld already",
                                 (long long)step, (long long)id, (long long)seen[id] - 1);
            seen[id] = step + 1;
            for (int64_t k = p->first[id]; k < p->first[id + 1]; k++)
                b->sample[at++] = p->piece[k];
        }
        /* Every sample of a batch may have been dropped as over-long. */
        if (at > b->first[b->steps])
            b->first[++b->steps] = at;
    }
    return HBP_OK;
}

/* Every sample is in a batch, and linked samples are in the same one. */
static hbp_status check_samples_named(const hbp__epoch *epoch, const int64_t *seen, int64_t *home)
{
    const hbp_lengths *lengths = epoch->lengths;
    hbp_context *context = epoch->context;
    int64_t missing = 0, first = -1;
    for (int64_t i = 0; i < lengths->count; i++) {
        HBP__TRY(hbp__tick_row(context, "batches", i, lengths->count));
        int64_t id = lengths->origin ? lengths->origin[i] : i;
        if (!seen[id]) {
            first = missing++ ? first : id;
            continue;
        }
        uint32_t link = lengths->link ? lengths->link[i] : HBP__FREE;
        if (link == HBP__FREE)
            continue;
        if (home[link] && home[link] != seen[id])
            return hbp__fail(context, HBP_E_INVALID,
                             "sample %lld is in batch %lld, and one linked to it in batch %lld",
                             (long long)id, (long long)seen[id] - 1, (long long)home[link] - 1);
        home[link] = seen[id];
    }
    if (missing)
        return hbp__fail(context, HBP_E_INVALID,
                         "the batches do not name %lld of %lld samples, the first is sample %lld",
                         (long long)missing, (long long)lengths->count, (long long)first);
    return HBP_OK;
}

hbp_status hbp__batches_give(const hbp__epoch *epoch, hbp__batches *b)
{
    hbp_context *context = epoch->context;
    int64_t mark = hbp__scratch_mark(context);
    pieces p;
    *b = (hbp__batches){.steps = 0};
    HBP__TRY(check_offsets(epoch));
    HBP__TRY(take_pieces(epoch, &p));
    int64_t *seen = hbp__take_zero(context, (uint64_t)p.samples, sizeof *seen);
    int64_t *home = hbp__take_zero(context, (uint64_t)epoch->lengths->links + 1, sizeof *home);
    HBP__TRY(hbp__scratch_check(context, "the given batches"));
    HBP__TRY(hbp__batches_open(epoch, epoch->options.batches, b));
    HBP__TRY(fill_batches(epoch, &p, seen, b));
    HBP__TRY(check_samples_named(epoch, seen, home));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
