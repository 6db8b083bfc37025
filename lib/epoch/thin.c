#include "epoch/thin.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "data/lengths/lengths_make.h"

/* Run `row` of few holds samples [first_of(row), first_of(row + 1)) in ascending order of length. */
static int64_t first_of(const hbp__thin *thin, int64_t row)
{
    return hbp__max_i64(0, thin->lengths->count - (thin->few->count - row) * thin->times);
}

/* One sample for each run, of its longest. */
static hbp_status count_runs(hbp__thin *thin)
{
    const hbp_lengths *lengths = thin->lengths;
    hbp_context *context = thin->context;
    const uint64_t rows = (uint64_t)lengths->bins;
    const int64_t mark = hbp__scratch_mark(context), rest = lengths->count % thin->times;
    int64_t *length = hbp__take(context, rows, sizeof *length);
    int64_t *count = hbp__take(context, rows, sizeof *count);
    int64_t bins = 0;
    HBP__TRY(hbp__scratch_check(context, "runs of samples"));
    for (int64_t b = 0; b < lengths->bins; b++) {
        HBP__TRY(hbp__tick_row(context, "patterns", b, lengths->bins));
        /* Runs end at samples whose place, from 1 on, is `rest` more than a multiple of `times`. */
        const int64_t shift = rest ? thin->times - rest : 0;
        const int64_t runs =
            (lengths->bin_first[b + 1] + shift) / thin->times - (lengths->bin_first[b] + shift) / thin->times;
        if (runs) {
            length[bins] = lengths->bin_length[b];
            count[bins++] = runs;
        }
    }
    HBP__TRY(hbp__lengths_create_histogram(context, length, count, bins, &thin->few));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

hbp_status hbp__thin_open(hbp_context *context, const hbp_lengths *lengths, int64_t most, hbp__thin *thin)
{
    *thin = (hbp__thin){.context = context, .lengths = lengths, .times = 1};
    while (thin->times < hbp__ceil_div(lengths->count, most))
        thin->times *= 2;
    HBP__TRY(count_runs(thin));
    thin->bin = hbp__take(context, (uint64_t)thin->few->count, sizeof *thin->bin);
    HBP__TRY(hbp__scratch_check(context, "runs of samples"));
    for (int64_t row = 0, b = 0; row < thin->few->count; row++) {
        const int64_t last = first_of(thin, row + 1) - 1;
        while (lengths->bin_first[b + 1] <= last)
            b++;
        thin->bin[row] = (int32_t)b;
    }
    return HBP_OK;
}

void hbp__thin_close(hbp__thin *thin)
{
    hbp_lengths_free(thin->few);
    thin->few = NULL;
}

/* Of a pack's runs, at the turn at hand: which bin its sample is of, and the turn at which that ends. */
typedef struct spot {
    int64_t bin;
    int64_t end;
} spot;

typedef struct spreading {
    const hbp__thin *thin;
    spot *spot;    /* [samples of the fullest pack] */
    hbp__run *run; /* likewise */
    int64_t since; /* samples since the last look at a request to cancel */
} spreading;

/* Where run `row` is from turn 0 on: turn i takes its i-th longest sample. */
static spot begin_spot(const hbp__thin *thin, int64_t row)
{
    const int64_t last = first_of(thin, row + 1) - 1, b = thin->bin[row];
    return (spot){b, last - hbp__max_i64(thin->lengths->bin_first[b], first_of(thin, row)) + 1};
}

/* The same from the end of a bin on; a run that is over has no bin. */
static spot next_spot(const hbp__thin *thin, int64_t row, spot at)
{
    const int64_t first = first_of(thin, row), left = first_of(thin, row + 1) - at.end - first;
    if (left <= 0)
        return (spot){-1, INT64_MAX};
    const int64_t b = at.bin - 1;
    return (spot){b, at.end + hbp__min_i64(left, thin->lengths->bin_count[b])};
}

/* Runs of bins, descending, equal ones as one. Spots of a pack descend in bin as their runs do. */
static int64_t write_runs(const spot *at, int64_t count, hbp__run *run)
{
    int64_t runs = 0;
    for (int64_t i = 0; i < count; i++) {
        if (at[i].bin < 0)
            continue;
        if (runs && run[runs - 1].class_index == at[i].bin)
            run[runs - 1].number++;
        else
            run[runs++] = (hbp__run){(int32_t)at[i].bin, 1};
    }
    return runs;
}

/* The packs that pack p of few stands for. */
static hbp_status spread_pack(spreading *s, const hbp_packs *packs, int64_t p, hbp__patterns *out)
{
    const hbp__thin *thin = s->thin;
    const uint32_t *row = packs->sample + packs->offsets[p];
    const int64_t count = packs->offsets[p + 1] - packs->offsets[p];
    for (int64_t i = 0; i < count; i++)
        s->spot[i] = begin_spot(thin, row[i]);
    for (int64_t turn = 0, end; turn < thin->times; turn = end) {
        end = thin->times;
        HBP__TRY(hbp__tick_rows(thin->context, "patterns", &s->since, 1 + count, p, packs->count));
        for (int64_t i = 0; i < count; i++)
            end = hbp__min_i64(end, s->spot[i].end);
        const int64_t runs = write_runs(s->spot, count, s->run);
        if (runs)
            HBP__TRY(hbp__patterns_add(thin->context, out, end - turn, s->run, runs));
        for (int64_t i = 0; i < count; i++)
            if (s->spot[i].end == end)
                s->spot[i] = next_spot(thin, row[i], s->spot[i]);
    }
    return HBP_OK;
}

/* Puts each pack's samples in descending order of length, which is that of their numbers. */
static void sort_rows(hbp_packs *packs, int64_t p)
{
    uint32_t *row = packs->sample + packs->offsets[p];
    const int64_t count = packs->offsets[p + 1] - packs->offsets[p];
    for (int64_t i = 1; i < count; i++) {
        const uint32_t moving = row[i];
        int64_t at = i;
        for (; at > 0 && row[at - 1] < moving; at--)
            row[at] = row[at - 1];
        row[at] = moving;
    }
}

hbp_status hbp__thin_patterns(const hbp__thin *thin, hbp_packs *packs, hbp__patterns *patterns)
{
    hbp_context *context = thin->context;
    const int64_t mark = hbp__scratch_mark(context);
    int64_t most = 0;
    for (int64_t p = 0; p < packs->count; p++)
        most = hbp__max_i64(most, packs->offsets[p + 1] - packs->offsets[p]);
    spreading s = {thin, hbp__take(context, (uint64_t)most, sizeof *s.spot),
                   hbp__take(context, (uint64_t)most, sizeof *s.run), 0};
    HBP__TRY(hbp__scratch_check(context, "patterns of lengths"));
    for (int64_t p = 0; p < packs->count; p++) {
        sort_rows(packs, p);
        HBP__TRY(spread_pack(&s, packs, p, &patterns[packs->group[p]]));
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
