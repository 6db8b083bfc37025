#include "data/lengths/lengths_make.h"

#include <string.h>

#include "base/checked.h"
#include "base/digest.h"
#include "base/parallel.h"
#include "base/sort.h"
#include "base/wide.h"

#define TABLE_MAX (INT64_C(4) << 20)
/* Fewer samples are not worth a thread. */
#define SEAL_ALONE (INT64_C(1) << 18)
#define DIGIT_BITS 11
#define DIGITS     (1 << DIGIT_BITS)

int64_t hbp__lengths_table(int64_t count, int64_t max_length)
{
    int64_t most = hbp__min_i64(TABLE_MAX, 4 * hbp__min_i64(count, TABLE_MAX) + 65536);
    return hbp__min_i64(most, max_length);
}

hbp_lengths *hbp__lengths_draft(hbp_context *context, const hbp__memory *memory)
{
    hbp_lengths *draft = hbp__new_zero(memory, 1, sizeof *draft);
    if (!draft) {
        hbp__fail_memory(context, "a data set");
        return NULL;
    }
    draft->memory = *memory;
    atomic_init(&draft->references, 1);
    return draft;
}

hbp_status hbp__lengths_check(hbp_context *context, const char *unit, int64_t index, int64_t length)
{
    if (length <= 0)
        return hbp__fail(context, HBP_E_INVALID, "%s %lld has %lld tokens; the shortest allowed is 1", unit,
                         (long long)index, (long long)length);
    if (length > HBP_MAX_LENGTH)
        return hbp__fail(context, HBP_E_OVERFLOW, "%s %lld has %lld tokens; the longest allowed is %lld",
                         unit, (long long)index, (long long)length, (long long)HBP_MAX_LENGTH);
    return HBP_OK;
}

hbp_status hbp__lengths_check_loss(hbp_context *context, int64_t index, int64_t loss, int64_t length)
{
    if (loss < 0 || loss > length)
        return hbp__fail(context, HBP_E_INVALID, "sample %lld has %lld loss tokens but %lld tokens",
                         (long long)index, (long long)loss, (long long)length);
    return HBP_OK;
}

hbp_status hbp__lengths_check_link(hbp_context *context, int64_t index, int64_t link)
{
    if (link < -1)
        return hbp__fail(context, HBP_E_INVALID, "sample %lld has link %lld; use -1 for free or a value >= 0",
                         (long long)index, (long long)link);
    return HBP_OK;
}

hbp_status hbp__lengths_check_vision(hbp_context *context, int64_t index, int64_t vision)
{
    if (vision < 0)
        return hbp__fail(context, HBP_E_INVALID, "sample %lld has %lld vision units; the fewest allowed is 0",
                         (long long)index, (long long)vision);
    if (vision > HBP_MAX_VISION)
        return hbp__fail(context, HBP_E_OVERFLOW,
                         "sample %lld has %lld vision units; the most allowed is %lld", (long long)index,
                         (long long)vision, (long long)HBP_MAX_VISION);
    return HBP_OK;
}

hbp_status hbp__lengths_check_modality(hbp_context *context, int64_t index, int64_t modality)
{
    if (modality < 0 || modality >= HBP_MAX_MODALITIES)
        return hbp__fail(context, HBP_E_INVALID,
                         "sample %lld is of modality %lld; modalities are numbered 0 to %d", (long long)index,
                         (long long)modality, HBP_MAX_MODALITIES - 1);
    return HBP_OK;
}

hbp_status hbp__lengths_check_count(hbp_context *context, int64_t count)
{
    if (count <= 0)
        return hbp__fail(context, HBP_E_INVALID, "the data set has %lld samples; it needs at least 1",
                         (long long)count);
    if (count > HBP_MAX_SAMPLES)
        return hbp__fail(context, HBP_E_OVERFLOW, "the data set has %lld samples; the most allowed is %lld",
                         (long long)count, (long long)HBP_MAX_SAMPLES);
    return HBP_OK;
}

hbp_status hbp__lengths_changed(hbp_context *context)
{
    return hbp__fail(
        context, HBP_E_INVALID,
        "the array of lengths changed while it was read; a borrowed array stays as it is until the "
        "data set is freed");
}

/* link[row] = first row of its group, or HBP__FREE; *groups gets the number of groups. `rows` [linked] are
 * the linked rows by value, then by row. */
static hbp_status mark_first_rows(hbp_context *context, uint32_t *link, const int64_t *links,
                                  const uint32_t *rows, int64_t linked, int64_t *groups)
{
    *groups = 0;
    for (int64_t begin = 0, end; begin < linked; begin = end) {
        for (end = begin + 1; end < linked && links[rows[end]] == links[rows[begin]]; end++)
            HBP__TRY(hbp__tick_row(context, "links", end, linked));
        HBP__TRY(hbp__tick_row(context, "links", begin, linked));
        if (end - begin == 1) {
            link[rows[begin]] = HBP__FREE;
            continue;
        }
        for (int64_t i = begin; i < end; i++)
            link[rows[i]] = rows[begin];
        ++*groups;
    }
    return HBP_OK;
}

hbp_status hbp__lengths_link(hbp_context *context, hbp_lengths *draft, const int64_t *links)
{
    const hbp__memory *memory = &draft->memory;
    int64_t linked = 0;
    for (int64_t i = 0; i < draft->count; i++) {
        HBP__TRY(hbp__tick_row(context, "links", i, draft->count));
        linked += links[i] >= 0;
    }
    if (!linked)
        return HBP_OK;
    draft->link = hbp__new(memory, (uint64_t)draft->count, sizeof *draft->link);
    uint32_t *rows = draft->link ? hbp__new(memory, (uint64_t)linked, sizeof *rows) : NULL;
    if (!rows)
        return hbp__fail_memory(context, "links");
    int64_t row = 0, groups = 0;
    hbp_status status = HBP_OK;
    for (int64_t i = 0; i < draft->count && status >= 0; i++) {
        draft->link[i] = HBP__FREE;
        if (links[i] >= 0)
            rows[row++] = (uint32_t)i;
        status = hbp__tick_row(context, "links", i, draft->count);
    }
    if (status >= 0)
        status = hbp__order_by_i64(context, links, rows, linked, "links");
    if (status >= 0)
        status = mark_first_rows(context, draft->link, links, rows, linked, &groups);
    hbp__delete(memory, rows);
    HBP__TRY(status);
    if (!groups) {
        hbp__delete(memory, draft->link);
        draft->link = NULL;
        return HBP_OK;
    }
    draft->link_value = hbp__new(memory, (uint64_t)groups, sizeof *draft->link_value);
    if (!draft->link_value)
        return hbp__fail_memory(context, "links");
    for (int64_t i = 0; i < draft->count; i++) {
        HBP__TRY(hbp__tick_row(context, "links", i, draft->count));
        uint32_t first = draft->link[i];
        if (first == HBP__FREE)
            continue;
        if (first == i) {
            draft->link_value[draft->links] = links[i];
            draft->link[i] = (uint32_t)draft->links++;
        } else
            draft->link[i] = draft->link[first]; /* numbered already: the first row comes first */
    }
    return HBP_OK;
}

/* Lengths too long for the table: sorted on their own. */
typedef struct tall_lengths {
    int64_t count;
    int64_t room;
    uint32_t *value;
} tall_lengths;

/* LSD radix sort of plain values of at most `most`. */
static hbp_status sort_tall(hbp_context *context, const hbp__memory *memory, int64_t most, tall_lengths *tall)
{
    if (tall->count < 2)
        return HBP_OK;
    uint32_t *other = hbp__new(memory, (uint64_t)tall->count, sizeof *other);
    int64_t *starts = other ? hbp__new(memory, DIGITS, sizeof *starts) : NULL;
    hbp_status status = starts ? HBP_OK : hbp__fail_memory(context, "a histogram of lengths");
    for (int shift = 0; most >> shift && status >= 0; shift += DIGIT_BITS) {
        memset(starts, 0, DIGITS * sizeof *starts);
        for (int64_t i = 0; i < tall->count; i++)
            starts[(tall->value[i] >> shift) & (DIGITS - 1)]++;
        int64_t sum = 0;
        for (int d = 0; d < DIGITS; d++) {
            int64_t here = starts[d];
            starts[d] = sum;
            sum += here;
        }
        for (int64_t i = 0; i < tall->count && status >= 0; i++) {
            other[starts[(tall->value[i] >> shift) & (DIGITS - 1)]++] = tall->value[i];
            status = hbp__tick_row(context, "sort", i, tall->count);
        }
        uint32_t *swap = tall->value;
        tall->value = other;
        other = swap;
    }
    hbp__delete(memory, starts);
    hbp__delete(memory, other);
    return status;
}

hbp_status hbp__lengths_new_bins(hbp_context *context, hbp_lengths *draft, int64_t bins)
{
    draft->bins = bins;
    draft->bin_length = hbp__new(&draft->memory, (uint64_t)bins, sizeof *draft->bin_length);
    draft->bin_count = hbp__new_zero(&draft->memory, (uint64_t)bins, sizeof *draft->bin_count);
    if (!draft->bin_length || !draft->bin_count)
        return hbp__fail_memory(context, "a histogram of lengths");
    return HBP_OK;
}

static hbp_status bins_from(hbp_context *context, hbp_lengths *draft, const uint32_t *table,
                            int64_t table_max, const tall_lengths *tall)
{
    int64_t bins = 0;
    for (int64_t length = 1; length <= table_max; length++)
        bins += table[length] != 0;
    for (int64_t i = 0; i < tall->count; i++)
        bins += i == 0 || tall->value[i] != tall->value[i - 1];
    HBP__TRY(hbp__lengths_new_bins(context, draft, bins));
    int64_t bin = 0;
    for (int64_t length = 1; length <= table_max; length++)
        if (table[length]) {
            draft->bin_length[bin] = length;
            draft->bin_count[bin++] = table[length];
        }
    for (int64_t i = 0; i < tall->count; i++) {
        if (i == 0 || tall->value[i] != tall->value[i - 1])
            draft->bin_length[bin++] = tall->value[i];
        draft->bin_count[bin - 1]++;
    }
    return HBP_OK;
}

/* Counts every length: short ones in `table`, the others into `tall`, which has room for them unless a
 * borrowed array changes. */
static hbp_status count_lengths(hbp_context *context, const hbp_lengths *draft, int64_t max_length,
                                uint32_t *table, int64_t table_max, tall_lengths *tall)
{
    const uint32_t *length = draft->length;
    for (int64_t begin = 0; begin < draft->count; begin += HBP__LENGTHS_BLOCK) {
        int64_t end = hbp__min_i64(draft->count, begin + HBP__LENGTHS_BLOCK);
        HBP__TRY(hbp__tick(context, "count lengths", begin, draft->count));
        for (int64_t i = begin; i < end; i++) {
            uint32_t tokens = length[i];
            if (tokens <= table_max && tokens)
                table[tokens]++;
            else if (tokens && tokens <= max_length && tall->count < tall->room)
                tall->value[tall->count++] = tokens;
            else
                return hbp__lengths_changed(context);
        }
    }
    return HBP_OK;
}

/* Whether so few lengths are sorted in less time than a table of so many is read twice. */
static int sorts_sooner(int64_t count, int64_t table)
{
    return table > 8 * DIGITS && count < table / 16;
}

static hbp_status make_bins(hbp_context *context, hbp_lengths *draft, int64_t max_length)
{
    const hbp__memory *memory = &draft->memory;
    int64_t table_max = hbp__lengths_table(draft->count, max_length);
    if (sorts_sooner(draft->count, table_max))
        table_max = 0;
    tall_lengths tall = {0, 0, NULL};
    if (table_max < max_length) {
        for (int64_t i = 0; i < draft->count; i++)
            tall.room += draft->length[i] > table_max;
        tall.value = hbp__new(memory, (uint64_t)tall.room, sizeof *tall.value);
        if (!tall.value)
            return hbp__fail_memory(context, "a histogram of lengths");
    }
    hbp_status status = HBP_OK;
    uint32_t *table = hbp__new_zero(memory, (uint64_t)table_max + 1, sizeof *table);
    if (table)
        status = count_lengths(context, draft, max_length, table, table_max, &tall);
    else
        status = hbp__fail_memory(context, "a histogram of lengths");
    if (status >= 0)
        status = sort_tall(context, memory, max_length, &tall);
    if (status >= 0)
        status = bins_from(context, draft, table, table_max, &tall);
    hbp__delete(memory, table);
    hbp__delete(memory, tall.value);
    return status;
}

/* Sums and bin_first from the bins. The token sum fits: HBP_MAX_SAMPLES x HBP_MAX_LENGTH < 2^63, and that of
 * a histogram was checked. */
static hbp_status sum_bins(hbp_context *context, hbp_lengths *draft)
{
    draft->bin_first = hbp__new(&draft->memory, (uint64_t)draft->bins + 1, sizeof *draft->bin_first);
    if (!draft->bin_first)
        return hbp__fail_memory(context, "a histogram of lengths");
    int64_t before = 0;
    draft->tokens = 0;
    draft->sum_squares = 0;
    for (int64_t bin = 0; bin < draft->bins; bin++) {
        int64_t tokens = draft->bin_length[bin] * draft->bin_count[bin];
        draft->bin_first[bin] = before;
        before += draft->bin_count[bin];
        draft->tokens += tokens;
        draft->sum_squares += (double)tokens * (double)draft->bin_length[bin];
    }
    draft->bin_first[draft->bins] = before;
    return HBP_OK;
}

static hbp_status sum_loss(hbp_context *context, hbp_lengths *draft)
{
    const int64_t most = draft->shifted_loss ? draft->tokens - draft->count : draft->tokens;
    draft->loss_tokens = most;
    if (!draft->loss)
        return HBP_OK;
    draft->loss_tokens = 0;
    for (int64_t i = 0; i < draft->count; i++) {
        if (i % HBP__LENGTHS_BLOCK == 0)
            HBP__TRY(hbp__tick(context, "sum loss tokens", i, draft->count));
        if (draft->shifted_loss && draft->loss[i] + 1 == draft->length[i])
            draft->loss[i] = draft->length[i]; /* the same in two ways would make two digests */
        draft->loss_tokens += hbp__lengths_loss(draft, i, draft->length[i]);
    }
    if (draft->loss_tokens == most) {
        hbp__delete(&draft->memory, draft->loss);
        draft->loss = NULL;
    }
    return HBP_OK;
}

/* The second size and the kinds. The sum fits, as that of the tokens does. */
static hbp_status sum_vision(hbp_context *context, hbp_lengths *draft)
{
    draft->modalities = 1;
    if (!draft->vision && !draft->modality)
        return HBP_OK;
    int64_t sum = 0, least = INT64_MAX, most = 0;
    uint64_t kinds = 0;
    int follow = 1;
    for (int64_t i = 0; i < draft->count; i++) {
        if (i % HBP__LENGTHS_BLOCK == 0)
            HBP__TRY(hbp__tick(context, "sum vision units", i, draft->count));
        int64_t vision = hbp__lengths_vision(draft, i);
        int32_t kind = hbp__lengths_modality(draft, i);
        sum += vision;
        least = hbp__min_i64(least, vision);
        most = hbp__max_i64(most, vision);
        kinds |= UINT64_C(1) << kind;
        follow &= kind == (vision > 0);
    }
    draft->vision_sum = sum;
    draft->min_vision = least;
    draft->max_vision = most;
    draft->modalities = (int64_t)kinds;
    if (follow) {
        hbp__delete(&draft->memory, draft->modality);
        draft->modality = NULL;
    }
    return HBP_OK;
}

static inline uint32_t most_of(const uint32_t *length, int64_t count, uint32_t most)
{
    for (int64_t i = 0; i < count; i++)
        most = length[i] - 1 > most ? length[i] - 1 : most; /* 0 wraps to the top */
    return most;
}

HBP__WIDE static uint32_t most_of_wide(const uint32_t *length, int64_t count, uint32_t most)
{
    return most_of(length, count, most);
}

uint32_t hbp__lengths_longest(const uint32_t *length, int64_t count, uint32_t longest)
{
    const uint32_t most = longest - 1;
    return (hbp__has_wide() ? most_of_wide(length, count, most) : most_of(length, count, most)) + 1;
}

static hbp_status find_longest(hbp_context *context, const hbp_lengths *draft, uint32_t *longest)
{
    *longest = 1;
    for (int64_t begin = 0; *longest && begin < draft->count; begin += HBP__LENGTHS_BLOCK) {
        int64_t end = hbp__min_i64(draft->count, begin + HBP__LENGTHS_BLOCK);
        HBP__TRY(hbp__tick(context, "find the longest", begin, draft->count));
        *longest = hbp__lengths_longest(draft->length + begin, end - begin, *longest);
    }
    return HBP_OK;
}

hbp__lengths_digest hbp__lengths_digest_begin(int64_t count)
{
    hbp__lengths_digest d = {hbp__digest_begin(), count, 0};
    hbp__digest_u64(&d.digest, 1); /* there is such a column */
    return d;
}

void hbp__lengths_digest_take(hbp__lengths_digest *d, const uint32_t *length, int64_t count)
{
    for (int64_t taken = 0, part; taken < count; taken += part, d->done += part) {
        const int64_t at = d->done % HBP__LENGTHS_BLOCK,
                      block = hbp__min_i64(HBP__LENGTHS_BLOCK, d->count - (d->done - at));
        part = hbp__min_i64(count - taken, block - at);
        if (!at)
            hbp__digest_u64(&d->digest, (uint64_t)block);
        hbp__digest_values_u32(&d->digest, length + taken, part);
    }
}

uint64_t hbp__lengths_digest_bare(const hbp__lengths_digest *d, int32_t shifted_loss)
{
    hbp__digest digest = d->digest;
    hbp__digest_u64(&digest, 0); /* no column of loss tokens */
    hbp__digest_u64(&digest, 0); /* no links */
    if (shifted_loss)
        hbp__digest_u64(&digest, (uint64_t)shifted_loss);
    return hbp__digest_end(&digest);
}

static hbp_status digest_lengths(hbp_context *context, hbp__lengths_digest *digest, const hbp_lengths *draft)
{
    for (int64_t begin = 0; begin < draft->count; begin += HBP__LENGTHS_BLOCK) {
        HBP__TRY(hbp__tick(context, "digest lengths", begin, draft->count));
        hbp__lengths_digest_take(digest, draft->length + begin,
                                 hbp__min_i64(HBP__LENGTHS_BLOCK, draft->count - begin));
    }
    return HBP_OK;
}

/* A column in blocks, so that a cancel is heard. */
static hbp_status digest_column(hbp_context *context, hbp__digest *digest, const uint32_t *column,
                                int64_t count)
{
    hbp__digest_u64(digest, column != NULL);
    for (int64_t begin = 0; column && begin < count; begin += HBP__LENGTHS_BLOCK) {
        HBP__TRY(hbp__tick(context, "digest lengths", begin, count));
        hbp__digest_column_u32(digest, column + begin, hbp__min_i64(HBP__LENGTHS_BLOCK, count - begin));
    }
    return HBP_OK;
}

/* The second size, only where there is one: the digests of other data sets came before it. */
static hbp_status digest_vision(hbp_context *context, hbp__digest *digest, const hbp_lengths *draft)
{
    if (!draft->vision && !draft->modality)
        return HBP_OK;
    HBP__TRY(digest_column(context, digest, draft->vision, draft->count));
    hbp__digest_u64(digest, draft->modality != NULL);
    for (int64_t i = 0; draft->modality && i < draft->count; i++) {
        if (i % HBP__LENGTHS_BLOCK == 0)
            HBP__TRY(hbp__tick(context, "digest lengths", i, draft->count));
        hbp__digest_u64(digest, draft->modality[i]);
    }
    return HBP_OK;
}

static hbp_status count_draft(hbp_context *context, hbp_lengths *draft, uint32_t longest)
{
    if (!longest)
        HBP__TRY(find_longest(context, draft, &longest));
    HBP__TRY(make_bins(context, draft, longest));
    return sum_bins(context, draft);
}

/* What the histogram is counted from and what is digested: the lengths. */
typedef struct sealing {
    hbp_lengths *draft;
    uint32_t longest; /* 0: not known */
    hbp__lengths_digest digest;
} sealing;

/* The two that read the lengths and nothing of each other: job 0 counts them, job 1 digests them. */
static hbp_status seal_lengths(hbp_context *context, void *user, int64_t job)
{
    sealing *s = user;
    return job ? digest_lengths(context, &s->digest, s->draft) : count_draft(context, s->draft, s->longest);
}

hbp_status hbp__lengths_seal(hbp_context *context, hbp_lengths *draft, uint32_t longest)
{
    sealing s = {draft, longest, hbp__lengths_digest_begin(draft->count)};
    hbp__digest *digest = &s.digest.digest;
    HBP__TRY(hbp__parallel(context, draft->count < SEAL_ALONE ? 1 : 0, 2, seal_lengths, &s));
    HBP__TRY(sum_loss(context, draft));
    HBP__TRY(sum_vision(context, draft));
    HBP__TRY(digest_column(context, digest, draft->loss, draft->count));
    HBP__TRY(digest_column(context, digest, draft->link, draft->count));
    HBP__TRY(digest_vision(context, digest, draft));
    if (draft->shifted_loss) /* as the second size */
        hbp__digest_u64(digest, (uint64_t)draft->shifted_loss);
    draft->digest = hbp__digest_end(digest);
    return HBP_OK;
}

uint64_t hbp__bins_digest(const int64_t *length, const int64_t *count, int64_t bins)
{
    hbp__digest digest = hbp__digest_begin();
    hbp__digest_column_i64(&digest, length, bins);
    hbp__digest_column_i64(&digest, count, bins);
    return hbp__digest_end(&digest);
}

uint64_t hbp__histogram_digest(const hbp_lengths *lengths)
{
    return hbp__bins_digest(lengths->bin_length, lengths->bin_count, lengths->bins);
}

hbp_status hbp__lengths_seal_histogram(hbp_context *context, hbp_lengths *draft)
{
    HBP__TRY(sum_bins(context, draft));
    draft->count = draft->bin_first[draft->bins];
    draft->loss_tokens = draft->tokens;
    draft->modalities = 1;
    draft->digest = hbp__histogram_digest(draft);
    return HBP_OK;
}
