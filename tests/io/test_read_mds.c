#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "hbp/io.h"
#include "io/reading.h"
#include "io/shards.h"

#define OPTIONS(...)                                                                                         \
    (&(hbp_lengths_load_options){.struct_size = sizeof(hbp_lengths_load_options), __VA_ARGS__})

/* What mosaicml-streaming wrote (tests/golden/mds/make.py). */
static const int64_t GOLDEN[] = {3, 1, 2, 300, 5, 255, 256};
#define GOLDEN_COUNT 7
#define GOLDEN_PATH  HBP_TESTS_DIR "/golden/mds/"

static void reads_golden(hbp_context *context, const char *path, const hbp_lengths_load_options *options)
{
    hbp_lengths *got;
    OK(context, hbp_lengths_load(context, path, options, &got));
    check_lengths(got, GOLDEN, GOLDEN_COUNT);
    hbp_lengths_free(got);
}

START_TEST(shards_of_the_writer_are_read)
{
    hbp_context *context = test_context();
    reads_golden(context, GOLDEN_PATH "plain", NULL); /* tokens, an array of uint16 */
    reads_golden(context, GOLDEN_PATH "plain/", NULL);
    reads_golden(context, GOLDEN_PATH "plain/index.json", NULL);
    reads_golden(context, GOLDEN_PATH "plain/index.json", OPTIONS(.format = "mds"));
    reads_golden(context, GOLDEN_PATH "plain", OPTIONS(.column = "id"));
    hbp_lengths *got;
    OK(context,
       hbp_lengths_load(context, GOLDEN_PATH "gz",
                        OPTIONS(.column = "tokens:int64", .loss_column = "loss", .vision_column = "images"),
                        &got));
    check_lengths(got, GOLDEN, GOLDEN_COUNT);
    for (int64_t i = 0; i < GOLDEN_COUNT; i++) {
        ck_assert_int_eq(got->loss[i], GOLDEN[i] / 2);
        ck_assert_int_eq(hbp_lengths_get_vision(got, i), GOLDEN[i] % 3);
    }
    hbp_lengths_free(got);
    OK(context, hbp_lengths_load(context, GOLDEN_PATH "gz",
                                 OPTIONS(.column = "tokens:int64", .vision_path = GOLDEN_PATH "plain",
                                         .vision_column = "tokens"),
                                 &got));
    check_vision(got, GOLDEN, GOLDEN_COUNT);
    hbp_lengths_free(got);
#ifdef HBP_HAS_ZSTD
    reads_golden(context, GOLDEN_PATH "zstd", NULL); /* length, a uint32 */
    reads_golden(context, GOLDEN_PATH "zstd", OPTIONS(.column = "input_ids"));
#else
    FAILS(context, HBP_E_SYSTEM, "shard.00000.mds.zstd is compressed with zstd, and this build has no zstd",
          hbp_lengths_load(context, GOLDEN_PATH "zstd", NULL, &got));
#endif
    FAILS(context, HBP_E_INVALID, "shards hold no histogram",
          hbp_lengths_load(context, GOLDEN_PATH "plain", OPTIONS(.count_column = "id"), &got));
    FAILS(context, HBP_E_INVALID, "the column 'tokens' (ndarray:uint16) holds arrays; one number",
          hbp_lengths_load(context, GOLDEN_PATH "plain", OPTIONS(.link_column = "tokens"), &got));
    hbp_context_free(context);
}
END_TEST

/* ---- Shards of our own ---- */

#define SHARD_BYTES 97
#define INDEX_OF(bytes, raw, zip)                                                                            \
    "{\"version\": 2, \"shards\": [{\"column_encodings\": [\"str\", \"ndarray:int32\", \"uint16\"], "        \
    "\"column_names\": [\"text\", \"tokens\", \"n\"], \"column_sizes\": [null, null, 2], \"format\": "       \
    "\"mds\", "                                                                                              \
    "\"raw_data\": {\"basename\": \"" raw "\", \"bytes\": " bytes "}, \"samples\": 3, \"version\": 2, "      \
    "\"zip_data\": " zip "}]}"

static const char INDEX[] = INDEX_OF("97", "a.mds", "null");

static unsigned char *put(unsigned char *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *to++ = (unsigned char)(value >> 8 * i);
    return to;
}

/* Samples at 22, 51 and 72: the sizes of text and tokens, 5 bytes of text, an array of int32, a number. */
static void make_shard(unsigned char *to)
{
    static const int elements[] = {3, 1, 2};
    static const uint32_t offsets[] = {22, 51, 72, SHARD_BYTES};
    unsigned char *at = put(to, 3, 4);
    for (int i = 0; i <= 3; i++)
        at = put(at, offsets[i], 4);
    at = put(at, 0x7d7b, 2); /* {} */
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(at - to, offsets[i]);
        at = put(at, 5, 4);
        at = put(at, 2 + 4 * (uint64_t)elements[i], 4);
        memcpy(at, "words", 5);
        at = put(at + 5, 4, 1); /* one dimension, said in one byte */
        at = put(at, (uint64_t)elements[i], 1);
        for (int j = 0; j < elements[i]; j++)
            at = put(at, 7, 4);
        at = put(at, 100 + (uint64_t)i, 2);
    }
    ck_assert_int_eq(at - to, SHARD_BYTES);
}

static hbp_status read_shard(hbp_context *context, const char *index, const void *data, int64_t bytes,
                             hbp_lengths **out)
{
    const shard_file file = {"a.mds", data, bytes};
    shards s = {{"index.json", index, (int64_t)strlen(index)}, &file, 1, {0}};
    return shards_read(context, &s, out);
}

static hbp_status read_shards_once(hbp_context *context, void *user)
{
    hbp_lengths *out;
    hbp_status status = shards_read(context, user, &out);
    hbp_lengths_free(out);
    return status;
}

START_TEST(a_shard_is_read_as_it_is_laid_out)
{
    hbp_context *context = test_context();
    unsigned char file[SHARD_BYTES];
    hbp_lengths *got;
    make_shard(file);
    OK(context, read_shard(context, INDEX, file, SHARD_BYTES, &got));
    check_lengths(got, (const int64_t[]){3, 1, 2}, 3);
    hbp_lengths_free(got);
    const shard_file files = {"a.mds", file, SHARD_BYTES};
    shards s = {
        {"index.json", INDEX, sizeof INDEX - 1}, &files, 1, {.column = "n", .vision_column = "tokens"}};
    OK(context, shards_read(context, &s, &got));
    check_lengths(got, (const int64_t[]){100, 101, 102}, 3);
    check_vision(got, (const int64_t[]){3, 1, 2}, 3);
    hbp_lengths_free(got);
    failing_sweep(read_shards_once, &s);
    cancel_sweep(read_shards_once, &s);
    hbp_context_free(context);
}
END_TEST

START_TEST(what_a_shard_says_is_held_against_the_rest)
{
    hbp_context *context = test_context();
    unsigned char good[SHARD_BYTES], file[SHARD_BYTES + 1];
    hbp_lengths *got;
    make_shard(good);
    static const struct {
        int at, value;
        const char *message;
    } cases[] = {
        {0, 2, "index.json: the shard a.mds holds another number of samples than the index says"},
        {3, 1, "holds another number of samples"},
        {4, 19, "has offsets that do not ascend within its bytes"},
        {8, 21, "has offsets that do not ascend within its bytes"},
        {11, 255, "has offsets that do not ascend within its bytes"},
        {16, 96, "does not end where the index says"},
        {4, 23, "a.mds, sample 0: its columns are not as many bytes as its offsets say, 28"},
        {8, 50, "a.mds, sample 0: its columns are not as many bytes as its offsets say, 28"},
        {22, 6, "sample 0: its columns are not as many bytes"},
        {25, 255, "sample 0: its columns are not as many bytes"},
        {26, 13, "sample 0: its columns are not as many bytes"},
        {35, 8, "a.mds, sample 0: the column 'tokens' is an array of more or less than one dimension"},
        {35, 0, "is an array of more or less than one dimension"},
        {35, 5, "is not as many bytes as the elements that it says"},
        {35, 7, "is not as many bytes as the elements that it says"},
        {36, 4, "a.mds, sample 0: the column 'tokens' is not as many bytes as the elements that it says"},
        {36, 0, "is not as many bytes as the elements that it says"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(file, good, SHARD_BYTES);
        file[cases[i].at] = (unsigned char)cases[i].value;
        FAILS(context, HBP_E_FORMAT, cases[i].message, read_shard(context, INDEX, file, SHARD_BYTES, &got));
    }
    memcpy(file, good, SHARD_BYTES);
    FAILS(context, HBP_E_FORMAT, "a.mds goes on behind its last sample",
          read_shard(context, INDEX, file, SHARD_BYTES + 1, &got));
    /* a size that is text's, and so nobody's: the array is one byte longer and too short for its header */
    memcpy(file, good, SHARD_BYTES);
    file[22] = 18, file[26] = 1, file[48] = 4;
    FAILS(context, HBP_E_FORMAT, "is too short for an array",
          read_shard(context, INDEX, file, SHARD_BYTES, &got));
    file[22] = 19, file[26] = 0;
    FAILS(context, HBP_E_FORMAT, "is too short for an array",
          read_shard(context, INDEX, file, SHARD_BYTES, &got));
    hbp_context_free(context);
}
END_TEST

START_TEST(what_an_index_says_is_held_against_the_rest)
{
    hbp_context *context = test_context();
    unsigned char file[SHARD_BYTES];
    hbp_lengths *got;
    make_shard(file);
    static const struct {
        hbp_status status;
        const char *index, *message;
    } cases[] = {
        {HBP_E_FORMAT, "{}", "index.json: no index of a StreamingDataset; it lists no shards"},
        {HBP_E_FORMAT, "[]", "is not a JSON object"},
        {HBP_E_VERSION, "{\"shards\": [], \"version\": 3}", "an index of version 3; 2 is known"},
        {HBP_E_VERSION, "{\"shards\": []}", "an index of version 0; 2 is known"},
        {HBP_E_INVALID, "{\"shards\": [], \"version\": 2}", "index.json holds no lengths"},
        {HBP_E_FORMAT, "{\"shards\": [7], \"version\": 2}", "a shard is of another format than mds"},
        {HBP_E_FORMAT, "{\"shards\": [{\"format\": \"csv\"}], \"version\": 2}", "CSV are read as such"},
        {HBP_E_VERSION, "{\"shards\": [{\"format\": \"mds\", \"version\": 1}], \"version\": 2}",
         "a shard is of version 1; 2 is known"},
        {HBP_E_FORMAT, INDEX_OF("98", "a.mds", "null"), "does not end where the index says"},
        {HBP_E_FORMAT, INDEX_OF("96", "a.mds", "null"), "has offsets that do not ascend within its bytes"},
        {HBP_E_FORMAT, INDEX_OF("-97", "a.mds", "null"), "has no number of samples or of bytes"},
        {HBP_E_FORMAT, INDEX_OF("1e99", "a.mds", "null"), "has no number of samples or of bytes"},
        {HBP_E_FORMAT, INDEX_OF("97", "b.mds", "null"),
         "index.json: the shard b.mds is not beside the index: fetch the shards first"},
        {HBP_E_FORMAT, INDEX_OF("97", "b.mds", "{\"basename\": \"b.mds.gz\"}"),
         "the shard b.mds is not beside the index, nor is b.mds.gz: fetch the shards first"},
        {HBP_E_FORMAT, INDEX_OF("97", "b.mds", "{\"basename\": \"b.mds.br\"}"),
         "the shard b.mds is compressed as b.mds.br, which is not read; zstd and gz are"},
        {HBP_E_FORMAT, INDEX_OF("97", "b.mds", "{\"basename\": \"../b.mds.gz\"}"),
         "has a compressed file outside the folder of the index"},
        {HBP_E_FORMAT, INDEX_OF("97", "", "null"), "has no name, or one outside the folder"},
        {HBP_E_FORMAT, INDEX_OF("97", "/etc/passwd", "null"), "has no name, or one outside the folder"},
        {HBP_E_FORMAT, INDEX_OF("97", "..", "null"), "has no name, or one outside the folder"},
        {HBP_E_FORMAT, INDEX_OF("97", "a/../../b", "null"), "has no name, or one outside the folder"},
        {HBP_E_FORMAT, INDEX_OF("97", "..b/a", "null"), "the shard ..b/a is not beside the index"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        FAILS(context, cases[i].status, cases[i].message,
              read_shard(context, cases[i].index, file, SHARD_BYTES, &got));
    OK(context, read_shard(context, INDEX_OF("97", "a.mds", "{\"basename\": \"../b.mds.gz\"}"), file,
                           SHARD_BYTES, &got)); /* what is there already is not looked for */
    hbp_lengths_free(got);
    hbp_context_free(context);
}
END_TEST

/* An index that promises many samples, and a shard that does, take no room for them. */
START_TEST(promises_take_no_room)
{
    unsigned char file[SHARD_BYTES];
    make_shard(file);
    put(file, 1000000000, 4);
    static const char index[] =
        "{\"version\": 2, \"shards\": [{\"column_encodings\": [\"ndarray\"], \"column_names\": [\"tokens\"], "
        "\"column_sizes\": [null], \"format\": \"mds\", \"raw_data\": {\"basename\": \"a.mds\", \"bytes\": "
        "4294967295}, \"samples\": 1000000000, \"version\": 2}]}";
    failing counted;
    hbp_context *context = failing_context(&counted, NULL, NULL);
    hbp_lengths *got;
    FAILS(context, HBP_E_FORMAT, "a.mds ends at byte 97, within the offsets of the samples",
          read_shard(context, index, file, SHARD_BYTES, &got));
    ck_assert_int_lt(counted.peak_bytes, 1000000);
    hbp_context_free(context);
}
END_TEST

/* Every cut and every change of a byte is told, or leaves lengths that hold together. */
START_TEST(harm_is_told_or_harmless)
{
    static const unsigned char masks[] = {0x01, 0x80, 0xff, 0x20, 0x04};
    failing counted;
    hbp_context *context = failing_context(&counted, NULL, NULL);
    unsigned char good[SHARD_BYTES];
    make_shard(good);
    hbp_lengths *got;
    for (int64_t cut = 0; cut < SHARD_BYTES; cut++) {
        unsigned char *file =
            malloc((size_t)cut + 1); /* exact, so that a sanitizer sees a read past the end */
        memcpy(file, good, (size_t)cut);
        file = realloc(file, cut ? (size_t)cut : 1);
        FAILS(context, HBP_E_FORMAT, "a.mds ends at byte", read_shard(context, INDEX, file, cut, &got));
        free(file);
    }
    for (int64_t at = 0; at < SHARD_BYTES; at++)
        for (size_t m = 0; m < sizeof masks; m++) {
            unsigned char file[SHARD_BYTES];
            memcpy(file, good, SHARD_BYTES);
            file[at] ^= masks[m];
            hbp_status status = read_shard(context, INDEX, file, SHARD_BYTES, &got);
            ck_assert(status == HBP_E_FORMAT || status == HBP_OK);
            if (got) /* what no length depends on */
                check_lengths(got, (const int64_t[]){3, 1, 2}, 3);
            hbp_lengths_free(got);
        }
    for (size_t at = 0; at < sizeof INDEX - 1; at++)
        for (size_t m = 0; m < sizeof masks; m++) {
            char index[sizeof INDEX];
            memcpy(index, INDEX, sizeof INDEX);
            index[at] = (char)(index[at] ^ masks[m]);
            hbp_status status = read_shard(context, index, good, SHARD_BYTES, &got);
            ck_assert(status == HBP_E_FORMAT || status == HBP_E_VERSION || status == HBP_E_INVALID ||
                      status == HBP_E_OVERFLOW || status == HBP_OK);
            hbp_lengths_free(got);
        }
    ck_assert_int_lt(counted.peak_bytes, 1000000);
    hbp_context_free(context);
    ck_assert_int_eq(counted.live, 0);
}
END_TEST

/* Long samples are stepped over where the file allows it, and read through where it is compressed. */
START_TEST(long_samples_are_stepped_over)
{
    enum { SAMPLES = 5, ELEMENTS = 100000, SAMPLE = 4 + 5 + 4 * ELEMENTS, BEGIN = 8 + 4 * SAMPLES };
    static const char index[] =
        "{\"version\": 2, \"shards\": [{\"column_encodings\": [\"ndarray:int32\"], \"column_names\": "
        "[\"x\"], "
        "\"column_sizes\": [null], \"format\": \"mds\", \"raw_data\": {\"basename\": \"sub/a.mds\", "
        "\"bytes\": "
        "2000073}, \"samples\": 5, \"version\": 2, \"zip_data\": {\"basename\": \"sub/a.mds.gz\"}}]}";
    hbp_context *context = test_context();
    int64_t bytes = BEGIN + (int64_t)SAMPLES * SAMPLE, zipped, want[SAMPLES];
    ck_assert_int_eq(bytes, 2000073);
    unsigned char *file = calloc(1, (size_t)bytes), *at = put(file, SAMPLES, 4);
    for (int i = 0; i <= SAMPLES; i++)
        at = put(at, BEGIN + (uint64_t)i * SAMPLE, 4);
    for (int i = 0; i < SAMPLES; i++, at += 4 * ELEMENTS) {
        at = put(at, SAMPLE - 4, 4);
        at = put(at, 1 << 2 | 2, 1);
        at = put(at, ELEMENTS, 4);
        want[i] = ELEMENTS;
    }
    char folder[64], sub[128], path[128], zip_path[140];
    folder_make(folder);
    file_write(folder_path(path, folder, "index.json"), index, sizeof index - 1);
    ck_assert_int_eq(mkdir(folder_path(sub, folder, "sub"), 0700), 0);
    unsigned char *zip = gzipped(file, bytes, &zipped);
    snprintf(zip_path, sizeof zip_path, "%.100s/sub/a.mds.gz", folder);
    file_write(zip_path, zip, (size_t)zipped);
    hbp_lengths *got;
    OK(context, hbp_lengths_load(context, folder, NULL, &got));
    check_lengths(got, want, SAMPLES);
    hbp_lengths_free(got);
    snprintf(path, sizeof path, "%.100s/sub/a.mds", folder);
    file_write(path, file, (size_t)bytes);
    file_write(zip_path, "", 0); /* the one that is not compressed is read where it is there */
    OK(context, hbp_lengths_load(context, folder, NULL, &got));
    check_lengths(got, want, SAMPLES);
    hbp_lengths_free(got);
    file_write(path, file, (size_t)bytes - 1);
    FAILS(context, HBP_E_FORMAT, "/sub/a.mds ends at byte 2000072, within a sample",
          hbp_lengths_load(context, folder, NULL, &got));
    file_write(path, file, BEGIN + 2 * SAMPLE + 500);
    FAILS(context, HBP_E_FORMAT, "a.mds ends at byte 800546, within a sample",
          hbp_lengths_load(context, folder, NULL, &got));
    unlink(path);
    unlink(zip_path);
    FAILS(context, HBP_E_FORMAT, "the shard sub/a.mds is not beside the index, nor is sub/a.mds.gz",
          hbp_lengths_load(context, folder, NULL, &got));
    FAILS(context, HBP_E_SYSTEM, "it is a directory, and has no index.json of a StreamingDataset",
          hbp_lengths_load(context, sub, NULL, &got));
    rmdir(sub);
    folder_remove(folder);
    free(zip);
    free(file);
    hbp_context_free(context);
}
END_TEST

/* An index.json is one of shards where it says so. */
START_TEST(other_files_of_that_name_are_none)
{
    hbp_context *context = test_context();
    READS(context, "index.json", "{\"length\": 4}\n{\"length\": 2}\n", NULL, 4, 2);
    REFUSES(context, HBP_E_FORMAT, "the shard a.mds is not beside the index", "index.json", INDEX, NULL);
    REFUSES(context, HBP_E_FORMAT, "my-index.json, line 1: the field 'length' is missing", "my-index.json",
            INDEX, NULL);
    REFUSES(context, HBP_E_FORMAT, "the shard a.mds is not beside", "my-index.json", INDEX,
            OPTIONS(.format = "mds"));
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("read_mds", shards_of_the_writer_are_read, a_shard_is_read_as_it_is_laid_out,
          what_a_shard_says_is_held_against_the_rest, what_an_index_says_is_held_against_the_rest,
          promises_take_no_room, harm_is_told_or_harmless, long_samples_are_stepped_over,
          other_files_of_that_name_are_none)
