#include "data/lengths/length_index.h"

#include "data/lengths/length_deal.h"
#include "data/lengths/lengths_make.h"

struct hbp_length_index_builder {
    hbp__memory memory;
    hbp_length_index *index; /* NULL: moved out */
    hbp__length_deal deal;
    hbp__lengths_digest digest;
    int is_spoilt; /* a piece was refused */
};

void hbp_length_index_free(hbp_length_index *index)
{
    if (!index)
        return;
    hbp__memory memory = index->memory;
    hbp_lengths_free(index->lengths);
    hbp__delete(&memory, index->sample);
    hbp__delete(&memory, index);
}

/* Room for the samples of `lengths`, of which no more than HBP_MAX_SAMPLES can be told apart. */
static hbp_status open_index(hbp_context *context, const hbp_lengths *lengths, hbp_length_index **out)
{
    if (lengths->count > HBP_MAX_SAMPLES)
        return hbp__fail(context, HBP_E_OVERFLOW, "an index of %lld samples; the most are %lld",
                         (long long)lengths->count, (long long)HBP_MAX_SAMPLES);
    hbp_length_index *index = hbp__new_zero(&context->memory, 1, sizeof *index);
    if (!index)
        return hbp__fail_memory(context, "the index of lengths");
    index->memory = context->memory;
    index->histogram_digest = hbp__histogram_digest(lengths);
    index->sample = hbp__new(&index->memory, (uint64_t)lengths->count, sizeof *index->sample);
    index->lengths = hbp__lengths_retain(lengths);
    *out = index;
    return index->sample ? HBP_OK : hbp__fail_memory(context, "the index of lengths");
}

static hbp_status create(hbp_context *context, const hbp_lengths *lengths, hbp_length_index **out)
{
    if (!lengths->length)
        return hbp__fail(
            context, HBP_E_INVALID,
            "an index of a histogram, whose samples are in order of length as they are; it needs "
            "none");
    hbp_length_index *index = NULL;
    hbp_status status = open_index(context, lengths, &index);
    if (status >= 0)
        status = hbp__lengths_deal(context, lengths, index->sample);
    if (status < 0) {
        hbp_length_index_free(index);
        return status;
    }
    index->lengths_digest = lengths->digest;
    *out = index;
    return status;
}

hbp_status hbp_length_index_create(hbp_context *context, const hbp_lengths *lengths, hbp_length_index **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, lengths, "lengths"));
    return create(context, lengths, out);
}

hbp_status hbp_length_index_builder_create(hbp_context *context, const hbp_lengths *histogram,
                                           hbp_length_index_builder **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, histogram, "histogram"));
    hbp_length_index_builder *builder = hbp__new_zero(&context->memory, 1, sizeof *builder);
    if (!builder)
        return hbp__fail_memory(context, "a builder of an index of lengths");
    builder->memory = context->memory;
    hbp_status status = open_index(context, histogram, &builder->index);
    if (status >= 0)
        status = hbp__length_deal_open(context, histogram, &builder->deal);
    if (status < 0) {
        hbp_length_index_builder_free(builder);
        return status;
    }
    builder->index->is_counted = 1;
    builder->digest = hbp__lengths_digest_begin(histogram->count);
    *out = builder;
    return HBP_OK;
}

/* Says which length of a piece has no place. */
static hbp_status refuse_piece(hbp_context *context, const hbp_length_index_builder *b,
                               const uint32_t *lengths, int64_t count)
{
    const hbp_lengths *histogram = b->index->lengths;
    if (count > histogram->count - b->deal.dealt)
        return hbp__fail(context, HBP_E_INVALID, "%lld samples and %lld more; the histogram has %lld",
                         (long long)b->deal.dealt, (long long)count, (long long)histogram->count);
    return hbp__fail(context, HBP_E_INVALID,
                     "samples %lld to %lld, the first of %lld tokens, have a length that the histogram has "
                     "not, or not so often",
                     (long long)b->deal.dealt, (long long)(b->deal.dealt + count - 1), (long long)lengths[0]);
}

hbp_status hbp_length_index_builder_append(hbp_context *context, hbp_length_index_builder *builder,
                                           const uint32_t *lengths, int64_t count)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, builder, "builder"));
    if (count < 0)
        return hbp__fail(context, HBP_E_INVALID, "a piece of %lld samples", (long long)count);
    if (count > 0)
        HBP__TRY(hbp__require(context, lengths, "lengths"));
    if (!builder->index || builder->is_spoilt)
        return hbp__fail(context, HBP_E_INVALID, "the builder %s; make another one",
                         builder->index ? "refused a piece" : "is finished");
    int has_place = 0;
    hbp_status status =
        hbp__length_deal_take(context, &builder->deal, lengths, count, builder->index->sample, &has_place);
    builder->is_spoilt = status < 0 || !has_place;
    if (!builder->is_spoilt)
        hbp__lengths_digest_take(&builder->digest, lengths, count);
    HBP__TRY(status);
    return has_place ? HBP_OK : refuse_piece(context, builder, lengths, count);
}

hbp_status hbp_length_index_builder_finish(hbp_context *context, hbp_length_index_builder *builder,
                                           hbp_length_index **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, builder, "builder"));
    if (!builder->index || builder->is_spoilt)
        return hbp__fail(context, HBP_E_INVALID, "the builder %s; make another one",
                         builder->index ? "refused a piece" : "is finished");
    hbp_length_index *index = builder->index;
    const int64_t missing = hbp__length_deal_missing(&builder->deal);
    builder->index = NULL;
    if (missing >= 0) {
        const int64_t length = index->lengths->bin_length[missing], dealt = builder->deal.dealt;
        hbp_length_index_free(index);
        return hbp__fail(context, HBP_E_INVALID,
                         "of the %lld samples that came, those of %lld tokens are not as many as in the "
                         "histogram",
                         (long long)dealt, (long long)length);
    }
    index->lengths_digest = hbp__lengths_digest_bare(&builder->digest, index->lengths->shifted_loss);
    *out = index;
    return HBP_OK;
}

void hbp_length_index_builder_free(hbp_length_index_builder *builder)
{
    if (!builder)
        return;
    hbp__memory memory = builder->memory;
    hbp__length_deal_close(&builder->deal);
    hbp_length_index_free(builder->index);
    hbp__delete(&memory, builder);
}
