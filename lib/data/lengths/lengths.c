#include "data/lengths/lengths.h"

#include "base/checked.h"
#include "base/options.h"
#include "base/search.h"
#include "base/sort.h"
#include "data/lengths/lengths_make.h"

hbp_lengths *hbp__lengths_retain(const hbp_lengths *lengths)
{
    hbp_lengths *shared = (hbp_lengths *)(uintptr_t)lengths; /* only the count of owners changes */
    atomic_fetch_add_explicit(&shared->references, 1, memory_order_relaxed);
    return shared;
}

void hbp_lengths_free(hbp_lengths *lengths)
{
    if (!lengths || atomic_fetch_sub_explicit(&lengths->references, 1, memory_order_acq_rel) > 1)
        return;
    hbp__memory memory = lengths->memory;
    void *blocks[] = {lengths->owned,      lengths->loss,
                      lengths->link,       lengths->link_value,
                      lengths->vision,     lengths->modality,
                      lengths->origin,     lengths->first,
                      lengths->dropped_id, lengths->dropped_reason,
                      lengths->bin_length, lengths->bin_count,
                      lengths->bin_first,  lengths};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hbp__delete(&memory, blocks[i]);
}

/* The caller's array in one of the three types the public functions take. */
typedef struct length_array {
    const uint32_t *u32;
    const int32_t *i32;
    const int64_t *i64;
} length_array;

/* Elements [begin, end) as 32 bits; what does not fit becomes 0, which is no length. */
static void copy_values(const length_array *from, uint32_t *to, int64_t begin, int64_t end)
{
    if (from->u32)
        for (int64_t i = begin; i < end; i++)
            to[i] = from->u32[i];
    else if (from->i32)
        for (int64_t i = begin; i < end; i++)
            to[i] = (uint32_t)from->i32[i];
    else
        for (int64_t i = begin; i < end; i++)
            to[i] = from->i64[i] > 0 && from->i64[i] <= HBP_MAX_LENGTH ? (uint32_t)from->i64[i] : 0;
}

/* Copies [begin, end) and stops at the first length that is not in [1, HBP_MAX_LENGTH]; returns where it
 * stopped. *longest >= 1 is kept up. */
static int64_t copy_block(const length_array *from, uint32_t *to, int64_t begin, int64_t end,
                          uint32_t *longest)
{
    if (to)
        copy_values(from, to, begin, end);
    const uint32_t *value = to ? to : from->u32;
    const uint32_t most = hbp__lengths_longest(value + begin, end - begin, *longest);
    const int has_bad = !most || most > (uint32_t)HBP_MAX_LENGTH;
    for (int64_t i = begin; has_bad && i < end; i++)
        if (value[i] - 1 >= (uint32_t)HBP_MAX_LENGTH) /* 0 wraps to the top */
            return i;
    *longest = has_bad ? (uint32_t)HBP_MAX_LENGTH : most; /* bad when first read, not when read again */
    return end;
}

static hbp_status copy_lengths(hbp_context *context, const length_array *from, uint32_t *to, int64_t count,
                               uint32_t *longest)
{
    *longest = 1;
    for (int64_t begin = 0; begin < count; begin += HBP__LENGTHS_BLOCK) {
        HBP__TRY(hbp__tick(context, "copy lengths", begin, count));
        int64_t end = hbp__min_i64(count, begin + HBP__LENGTHS_BLOCK);
        int64_t i = copy_block(from, to, begin, end, longest);
        if (i < end) {
            HBP__TRY(hbp__lengths_check(context, "sample", i,
                                        from->u32   ? from->u32[i]
                                        : from->i32 ? from->i32[i]
                                                    : from->i64[i]));
            return hbp__lengths_changed(context);
        }
    }
    return HBP_OK;
}

static hbp_status copy_loss(hbp_context *context, hbp_lengths *draft, const uint32_t *loss)
{
    draft->loss = hbp__new(&draft->memory, (uint64_t)draft->count, sizeof *draft->loss);
    if (!draft->loss)
        return hbp__fail_memory(context, "loss tokens");
    for (int64_t i = 0; i < draft->count; i++) {
        if (i % HBP__LENGTHS_BLOCK == 0)
            HBP__TRY(hbp__tick(context, "copy loss tokens", i, draft->count));
        draft->loss[i] = loss[i];
        HBP__TRY(hbp__lengths_check_loss(context, i, draft->loss[i], draft->length[i]));
    }
    return HBP_OK;
}

static hbp_status copy_links(hbp_context *context, hbp_lengths *draft, const int64_t *links)
{
    /* Its own copy: the groups are counted, sorted and numbered by what must not change in between. */
    int64_t *own = hbp__new(&context->memory, (uint64_t)draft->count, sizeof *own);
    if (!own)
        return hbp__fail_memory(context, "links");
    hbp_status status = HBP_OK;
    for (int64_t i = 0; i < draft->count && status >= 0; i++) {
        own[i] = links[i];
        status = hbp__lengths_check_link(context, i, own[i]);
        if (status >= 0)
            status = hbp__tick_row(context, "copy links", i, draft->count);
    }
    if (status >= 0)
        status = hbp__lengths_link(context, draft, own);
    hbp__delete(&context->memory, own);
    return status;
}

static hbp_status copy_vision(hbp_context *context, hbp_lengths *draft, const uint32_t *vision)
{
    draft->vision = hbp__new(&draft->memory, (uint64_t)draft->count, sizeof *draft->vision);
    if (!draft->vision)
        return hbp__fail_memory(context, "vision units");
    for (int64_t i = 0; i < draft->count; i++) {
        if (i % HBP__LENGTHS_BLOCK == 0)
            HBP__TRY(hbp__tick(context, "copy vision units", i, draft->count));
        draft->vision[i] = vision[i];
        HBP__TRY(hbp__lengths_check_vision(context, i, draft->vision[i]));
    }
    return HBP_OK;
}

static hbp_status copy_modalities(hbp_context *context, hbp_lengths *draft, const int32_t *modalities)
{
    draft->modality = hbp__new(&draft->memory, (uint64_t)draft->count, sizeof *draft->modality);
    if (!draft->modality)
        return hbp__fail_memory(context, "modalities");
    for (int64_t i = 0; i < draft->count; i++) {
        if (i % HBP__LENGTHS_BLOCK == 0)
            HBP__TRY(hbp__tick(context, "copy modalities", i, draft->count));
        int32_t modality = modalities[i];
        HBP__TRY(hbp__lengths_check_modality(context, i, modality));
        draft->modality[i] = (uint8_t)modality;
    }
    return HBP_OK;
}

static hbp_status fill_lengths(hbp_context *context, hbp_lengths *draft, const length_array *from,
                               const hbp_lengths_options *options)
{
    uint32_t longest;
    if (options->borrow && from->u32)
        draft->length = from->u32;
    else {
        draft->owned = hbp__new(&draft->memory, (uint64_t)draft->count, sizeof *draft->owned);
        if (!draft->owned)
            return hbp__fail_memory(context, "lengths");
        draft->length = draft->owned;
    }
    HBP__TRY(copy_lengths(context, from, draft->owned, draft->count, &longest));
    if (options->loss_tokens)
        HBP__TRY(copy_loss(context, draft, options->loss_tokens));
    if (options->links)
        HBP__TRY(copy_links(context, draft, options->links));
    if (options->vision)
        HBP__TRY(copy_vision(context, draft, options->vision));
    if (options->modalities)
        HBP__TRY(copy_modalities(context, draft, options->modalities));
    return hbp__lengths_seal(context, draft, longest);
}

static hbp_status create_lengths(hbp_context *context, const length_array *from, int64_t count,
                                 const hbp_lengths_options *options, hbp_lengths **out)
{
    hbp_lengths_options all;
    HBP__TRY(hbp__options_read(context, &all, sizeof all, options, "hbp_lengths_options"));
    HBP__TRY(hbp__lengths_check_count(context, count));
    hbp_lengths *draft = hbp__lengths_draft(context, &context->memory);
    if (!draft)
        return HBP_E_NO_MEMORY;
    draft->count = count;
    draft->shifted_loss = all.shifted_loss != 0;
    hbp_status status = fill_lengths(context, draft, from, &all);
    if (status < 0)
        hbp_lengths_free(draft);
    else
        *out = draft;
    return status;
}

/* What the three creators share before they differ. */
static hbp_status begin_create(hbp_context *context, const void *lengths, hbp_lengths **out)
{
    HBP__ENTER_OUT(context, out);
    return hbp__require(context, lengths, "lengths");
}

hbp_status hbp_lengths_create_u32(hbp_context *context, const uint32_t *lengths, int64_t count,
                                  const hbp_lengths_options *options, hbp_lengths **out)
{
    HBP__TRY(begin_create(context, lengths, out));
    return create_lengths(context, &(length_array){.u32 = lengths}, count, options, out);
}

hbp_status hbp_lengths_create_i32(hbp_context *context, const int32_t *lengths, int64_t count,
                                  const hbp_lengths_options *options, hbp_lengths **out)
{
    HBP__TRY(begin_create(context, lengths, out));
    return create_lengths(context, &(length_array){.i32 = lengths}, count, options, out);
}

hbp_status hbp__lengths_create_i64(hbp_context *context, const int64_t *lengths, int64_t count,
                                   const hbp_lengths_options *options, hbp_lengths **out)
{
    return create_lengths(context, &(length_array){.i64 = lengths}, count, options, out);
}

hbp_status hbp_lengths_create_i64(hbp_context *context, const int64_t *lengths, int64_t count,
                                  const hbp_lengths_options *options, hbp_lengths **out)
{
    HBP__TRY(begin_create(context, lengths, out));
    return hbp__lengths_create_i64(context, lengths, count, options, out);
}

hbp_status hbp__require_samples(hbp_context *context, const hbp_lengths *lengths, const char *name)
{
    HBP__TRY(hbp__require(context, lengths, name));
    if (lengths->count <= HBP_MAX_SAMPLES)
        return HBP_OK;
    return hbp__fail(context, HBP_E_OVERFLOW,
                     "`%s` has %lld samples; at most %lld can be listed, hbp_plan_patterns lists none", name,
                     (long long)lengths->count, (long long)HBP_MAX_SAMPLES);
}

static hbp_status check_bins(hbp_context *context, const int64_t *lengths, const int64_t *counts,
                             int64_t bins)
{
    int64_t samples = 0, tokens = 0;
    for (int64_t bin = 0; bin < bins; bin++) {
        HBP__TRY(hbp__tick_row(context, "count lengths", bin, bins));
        if (counts[bin] < 0)
            return hbp__fail(context, HBP_E_INVALID, "bin %lld has count %lld; a count is at least 0",
                             (long long)bin, (long long)counts[bin]);
        if (counts[bin] == 0)
            continue;
        HBP__TRY(hbp__lengths_check(context, "bin", bin, lengths[bin]));
        if (!hbp__add_i64(samples, counts[bin], &samples))
            samples = INT64_MAX;
        tokens = hbp__add_saturating(tokens, hbp__mul_saturating(counts[bin], lengths[bin]));
    }
    if (samples <= 0 || samples > HBP_MAX_HISTOGRAM_SAMPLES)
        return hbp__fail(context, samples <= 0 ? HBP_E_INVALID : HBP_E_OVERFLOW,
                         "the histogram has %lld samples; it needs 1 to %lld", (long long)samples,
                         (long long)HBP_MAX_HISTOGRAM_SAMPLES);
    if (tokens == INT64_MAX)
        return hbp__fail(context, HBP_E_OVERFLOW, "the tokens of the histogram pass 2^63 - 1");
    return HBP_OK;
}

/* The bins by length, equal lengths merged, empty bins left out. */
static hbp_status merge_bins(hbp_context *context, hbp_lengths *draft, const int64_t *lengths,
                             const int64_t *counts, const uint32_t *order, int64_t bins)
{
    int64_t distinct = 0, before = 0;
    for (int64_t i = 0; i < bins; i++) {
        HBP__TRY(hbp__tick_row(context, "count lengths", i, bins));
        distinct += counts[order[i]] && lengths[order[i]] != before;
        before = counts[order[i]] ? lengths[order[i]] : before;
    }
    HBP__TRY(hbp__lengths_new_bins(context, draft, distinct));
    distinct = 0;
    for (int64_t i = 0; i < bins; i++) {
        HBP__TRY(hbp__tick_row(context, "count lengths", i, bins));
        int64_t length = lengths[order[i]], count = counts[order[i]];
        if (count == 0)
            continue;
        if (distinct == 0 || draft->bin_length[distinct - 1] != length)
            draft->bin_length[distinct++] = length;
        draft->bin_count[distinct - 1] += count;
    }
    draft->bins = distinct;
    return hbp__lengths_seal_histogram(context, draft);
}

/* From the library's own copy of the bins: what is checked is then what is summed. */
static hbp_status create_histogram(hbp_context *context, const int64_t *lengths, const int64_t *counts,
                                   int64_t bins, hbp_lengths **out)
{
    HBP__TRY(check_bins(context, lengths, counts, bins));
    hbp_lengths *draft = hbp__lengths_draft(context, &context->memory);
    if (!draft)
        return HBP_E_NO_MEMORY;
    hbp_status status = HBP_OK;
    uint32_t *order = hbp__new(&context->memory, (uint64_t)bins, sizeof *order);
    for (int64_t i = 0; order && i < bins; i++)
        order[i] = (uint32_t)i;
    if (order)
        status = hbp__order_by_i64(context, lengths, order, bins, "a histogram of lengths");
    else
        status = hbp__fail_memory(context, "a histogram of lengths");
    if (status >= 0)
        status = merge_bins(context, draft, lengths, counts, order, bins);
    hbp__delete(&context->memory, order);
    if (status < 0)
        hbp_lengths_free(draft);
    else
        *out = draft;
    return status;
}

hbp_status hbp__lengths_create_histogram(hbp_context *context, const int64_t *lengths, const int64_t *counts,
                                         int64_t bins, hbp_lengths **out)
{
    if (bins <= 0 || bins > HBP_MAX_SAMPLES)
        return hbp__fail(context, HBP_E_INVALID, "the histogram has %lld bins; it needs 1 to %lld",
                         (long long)bins, (long long)HBP_MAX_SAMPLES);
    int64_t *own = hbp__new(&context->memory, (uint64_t)bins, 2 * sizeof *own);
    if (!own)
        return hbp__fail_memory(context, "a histogram of lengths");
    uint64_t bytes = (uint64_t)bins * sizeof *own;
    hbp_status status = hbp__copy(context, own, lengths, bytes);
    if (status >= 0)
        status = hbp__copy(context, own + bins, counts, bytes);
    if (status >= 0)
        status = create_histogram(context, own, own + bins, bins, out);
    hbp__delete(&context->memory, own);
    return status;
}

hbp_status hbp_lengths_create_histogram(hbp_context *context, const int64_t *lengths, const int64_t *counts,
                                        int64_t bins, hbp_lengths **out)
{
    HBP__TRY(begin_create(context, lengths, out));
    HBP__TRY(hbp__require(context, counts, "counts"));
    return hbp__lengths_create_histogram(context, lengths, counts, bins, out);
}

hbp_status hbp_lengths_get_summary(hbp_context *context, const hbp_lengths *lengths,
                                   hbp_lengths_summary *summary)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, lengths, "lengths"));
    hbp_lengths_summary all = {
        .struct_size = sizeof all,
        .has_links = lengths->link != NULL,
        .samples = lengths->count,
        .tokens = lengths->tokens,
        .loss_tokens = lengths->loss_tokens,
        .min_length = lengths->bin_length[0],
        .max_length = lengths->bin_length[lengths->bins - 1],
        .distinct_lengths = lengths->bins,
        .overlong_samples = lengths->overlong_samples,
        .overlong_tokens = lengths->overlong_tokens,
        .digest = lengths->digest,
        .sum_squares = lengths->sum_squares,
        .vision = lengths->vision ? lengths->vision_sum : -1,
        .min_vision = lengths->min_vision,
        .max_vision = lengths->max_vision,
        .modalities = lengths->modalities,
        .shifted_loss = lengths->shifted_loss,
        .is_histogram = !lengths->length,
        .column = lengths->column,
    };
    return hbp__struct_write(context, summary, &all, sizeof all, "hbp_lengths_summary");
}

hbp_status hbp_lengths_get_view(const hbp_lengths *lengths, hbp_lengths_view *view)
{
    hbp_lengths_view all = {0};
    if (lengths)
        all = (hbp_lengths_view){.distinct_lengths = lengths->bins,
                                 .histogram_lengths = lengths->bin_length,
                                 .histogram_counts = lengths->bin_count};
    return hbp__view_write(view, lengths, &all, sizeof all);
}

int64_t hbp__lengths_get(const hbp_lengths *lengths, int64_t index)
{
    if (lengths->owned)
        return lengths->owned[index];
    if (lengths->length) /* the caller's, which sums and rooms must survive the change of */
        return hbp__max_i64(1, hbp__min_i64(lengths->length[index], lengths->bin_length[lengths->bins - 1]));
    return lengths->bin_length[hbp__last_at_most(lengths->bin_first, lengths->bins, index)];
}

static int has_sample(const hbp_lengths *lengths, int64_t index)
{
    return lengths && index >= 0 && index < lengths->count;
}

int64_t hbp_lengths_get_length(const hbp_lengths *lengths, int64_t index)
{
    return has_sample(lengths, index) ? hbp__lengths_get(lengths, index) : -1;
}

int64_t hbp_lengths_get_vision(const hbp_lengths *lengths, int64_t index)
{
    return has_sample(lengths, index) ? hbp__lengths_vision(lengths, index) : -1;
}

int32_t hbp_lengths_get_modality(const hbp_lengths *lengths, int64_t index)
{
    return has_sample(lengths, index) ? hbp__lengths_modality(lengths, index) : -1;
}
