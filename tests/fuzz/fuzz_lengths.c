/* Reads any bytes as lengths, in every format, with every column and as their own vision units; what comes
 * out must hold together, also after each kind of limit. */
#include "fuzz.h"
#include "hbp/io.h"
#include "io/lengths/read_lengths.h"

/* The sums of a data set follow from its histogram, and its samples from neither less nor more. */
static void check_whole(const hbp_lengths *lengths)
{
    int64_t count = 0, tokens = 0;
    for (int64_t bin = 0; bin < lengths->bins; bin++) {
        CHECK(lengths->bin_length[bin] > (bin ? lengths->bin_length[bin - 1] : 0));
        CHECK(lengths->bin_count[bin] > 0 && lengths->bin_first[bin] == count);
        count += lengths->bin_count[bin];
        tokens += lengths->bin_count[bin] * lengths->bin_length[bin];
    }
    CHECK(count == lengths->count && tokens == lengths->tokens && count > 0);
    CHECK(lengths->loss_tokens >= 0 && lengths->loss_tokens <= tokens);
    for (int64_t i = 0; lengths->length && i < count; i++) {
        CHECK(lengths->length[i] >= 1 && lengths->length[i] <= HBP_MAX_LENGTH);
        CHECK(!lengths->loss || lengths->loss[i] <= lengths->length[i]);
        CHECK(!lengths->link || lengths->link[i] == HBP__FREE || lengths->link[i] < lengths->links);
    }
}

/* The second size sums up, and every kind that occurs is in the mask. */
static void check_vision(const hbp_lengths *lengths)
{
    int64_t sum = 0, mask = 0;
    if (!lengths->vision && !lengths->modality) {
        CHECK(lengths->vision_sum == 0 && lengths->modalities == 1);
        return;
    }
    for (int64_t i = 0; i < lengths->count; i++) {
        int64_t units = hbp_lengths_get_vision(lengths, i);
        int32_t kind = hbp_lengths_get_modality(lengths, i);
        CHECK(units >= lengths->min_vision && units <= lengths->max_vision && units <= HBP_MAX_VISION);
        CHECK(kind >= 0 && kind < HBP_MAX_MODALITIES);
        sum += units;
        mask |= INT64_C(1) << kind;
    }
    CHECK(sum == lengths->vision_sum && mask == lengths->modalities);
}

/* Only sets that stay small: a histogram of few bytes may stand for billions of samples. */
static void check_limits(hbp_context *context, const hbp_lengths *lengths)
{
    int64_t most = (lengths->bin_length[0] + lengths->bin_length[lengths->bins - 1]) / 2;
    if (lengths->count > 100000 || lengths->tokens / most > 1000000)
        return;
    for (int32_t policy = HBP_OVERLONG_ERROR; policy <= HBP_OVERLONG_SPLIT; policy++) {
        hbp_lengths *limited;
        if (hbp_lengths_limit(context, lengths, most, policy, &limited) < 0) {
            CHECK(hbp_context_message(context)[0]);
            continue;
        }
        check_whole(limited);
        check_vision(limited);
        CHECK(policy == HBP_OVERLONG_DROP || limited->vision_sum == lengths->vision_sum);
        CHECK(policy == HBP_OVERLONG_DROP || limited->modalities == lengths->modalities);
        CHECK(limited->bin_length[limited->bins - 1] <= most);
        CHECK(limited->tokens + limited->overlong_tokens == lengths->tokens);
        CHECK(policy != HBP_OVERLONG_SPLIT || limited->loss_tokens == lengths->loss_tokens);
        hbp_lengths_free(limited);
    }
}

/* Which columns are asked for; TWICE: the bytes are vision units as well. */
enum { NONE, OLD, ALL, TWICE, COLUMNS };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const formats[] = {NULL, "npy", "text", "csv", "jsonl", "idx", "mds"};
    hbp_context *context;
    CHECK(hbp_context_create(NULL, &context) == HBP_OK);
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
        for (int columns = NONE; columns < COLUMNS; columns++) {
            hbp_lengths_load_options options = {.struct_size = sizeof options, .format = formats[f]};
            if (columns == OLD || columns == ALL) {
                options.loss_column = "loss";
                options.link_column = "link";
            }
            if (columns == ALL) {
                options.vision_column = "images";
                options.modality_column = "kind";
            }
            hbp__stream *in, *vision = NULL;
            hbp_lengths *lengths = NULL;
            if (hbp__stream_open_memory(context, "fuzz", data, (int64_t)size, &in) < 0)
                continue;
            if (columns == TWICE) {
                options.vision_column = f == 3 || f == 4 ? "length" : NULL; /* CSV, JSON lines */
                if (hbp__stream_open_memory(context, "fuzz too", data, (int64_t)size, &vision) < 0) {
                    hbp__stream_close(in);
                    continue;
                }
            }
            hbp_status status = hbp__lengths_read_stream(context, in, vision, &options, &lengths);
            hbp__stream_close(vision);
            hbp__stream_close(in);
            CHECK((status >= 0) == (lengths != NULL));
            CHECK(status != HBP_E_INTERNAL && (status >= 0 || hbp_context_message(context)[0]));
            if (!lengths)
                continue;
            check_whole(lengths);
            check_vision(lengths);
            CHECK((columns == ALL || columns == TWICE) == (lengths->vision != NULL));
            check_limits(context, lengths);
            hbp_lengths_free(lengths);
        }
    hbp_context_free(context);
    return 0;
}
