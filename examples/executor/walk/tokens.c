#include "walk/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes before an index's lengths: magic, version, type, two counts. */
enum { HEAD = 34 };

typedef struct mapped {
    const unsigned char *data;
    int64_t bytes;
} mapped;

struct ex_tokens {
    int32_t vocab;
    int32_t end;
    uint64_t seed;
    int is_file;
    mapped index;
    mapped bin;
    int64_t sequences;
    int item; /* bytes of a token */
    char prefix[256];
};

ex_tokens *ex_tokens_draw(uint64_t seed, int32_t vocab, ex_fault *fault)
{
    ex_tokens *tokens = calloc(1, sizeof *tokens);
    if (!tokens) {
        ex_fail(fault, "no memory for tokens");
        return NULL;
    }
    tokens->seed = seed;
    tokens->vocab = vocab;
    return tokens;
}

static uint64_t little(const unsigned char *bytes, int count)
{
    uint64_t value = 0;
    while (count-- > 0)
        value = value << 8 | bytes[count];
    return value;
}

static int map_file(const char *path, mapped *out, ex_fault *fault)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (file < 0 || fstat(file, &about) < 0) {
        int reason = errno;
        if (file >= 0)
            close(file);
        return ex_fail(fault, "cannot open %s: %s", path, strerror(reason));
    }
    out->bytes = (int64_t)about.st_size;
    if (out->bytes > 0) {
        void *data = mmap(NULL, (size_t)out->bytes, PROT_READ, MAP_PRIVATE, file, 0);
        out->data = data == MAP_FAILED ? NULL : data;
    }
    int reason = errno;
    close(file);
    if (out->bytes > 0 && !out->data)
        return ex_fail(fault, "cannot map %s: %s", path, strerror(reason));
    return 0;
}

static const unsigned char *length_at(const ex_tokens *t, int64_t sequence)
{
    return t->index.data + HEAD + 4 * sequence;
}

static const unsigned char *pointer_at(const ex_tokens *t, int64_t sequence)
{
    return t->index.data + HEAD + 4 * t->sequences + 8 * sequence;
}

/* Every sequence lies inside the file of tokens, whose size tells the fork's type codes from Megatron's. */
static int check_index(ex_tokens *t, const char *path, ex_fault *fault)
{
    if (t->index.bytes >= 6 && memcmp(t->index.data, "TNTIDX", 6) == 0)
        return ex_fail(fault, "%s: the legacy TNTIDX index is not read; build the data set as MMIDIDX", path);
    if (t->index.bytes < HEAD || memcmp(t->index.data, "MMIDIDX\0\0", 9) != 0)
        return ex_fail(fault, "%s: not a Megatron index; it does not begin with MMIDIDX", path);
    uint64_t version = little(t->index.data + 9, 8);
    int type = t->index.data[17];
    uint64_t sequences = little(t->index.data + 18, 8);
    if (version != 1)
        return ex_fail(fault, "%s: index version %llu; 1 is known", path, (unsigned long long)version);
    if (sequences > (uint64_t)(t->index.bytes - HEAD) / 12)
        return ex_fail(fault, "%s: %llu sequences do not fit in its %lld bytes", path,
                       (unsigned long long)sequences, (long long)t->index.bytes);
    t->sequences = (int64_t)sequences;
    /* Megatron's integer types; DeepSpeed's differ from 6 on: u16, u32, u64. */
    static const int megatron[9] = {0, 1, 1, 2, 4, 8, 0, 0, 2};
    static const int deepspeed[9] = {0, 1, 1, 2, 4, 8, 2, 4, 8};
    if (type < 1 || type > 8)
        return ex_fail(fault, "%s: type code %d; 1 to 8 are known", path, type);
    const int candidates[2] = {megatron[type], deepspeed[type]};
    for (int c = 0; c < 2 && t->item == 0; c++) {
        if (candidates[c] == 0)
            continue;
        int64_t end = 0;
        if (sequences > 0) {
            int64_t last = t->sequences - 1;
            end = (int64_t)(little(pointer_at(t, last), 8) +
                            little(length_at(t, last), 4) * (uint64_t)candidates[c]);
        }
        if (end == t->bin.bytes)
            t->item = candidates[c];
    }
    if (t->item == 0)
        return ex_fail(fault, "%s: type code %d fits no size of token for %lld bytes of tokens", path, type,
                       (long long)t->bin.bytes);
    for (int64_t i = 0; i < t->sequences; i++) {
        uint64_t length = little(length_at(t, i), 4);
        uint64_t from = little(pointer_at(t, i), 8);
        if (length > INT32_MAX || from > (uint64_t)t->bin.bytes ||
            length * (uint64_t)t->item > (uint64_t)t->bin.bytes - from)
            return ex_fail(fault, "%s: sequence %lld, %llu tokens at byte %llu, passes the end at %lld", path,
                           (long long)i, (unsigned long long)length, (unsigned long long)from,
                           (long long)t->bin.bytes);
    }
    return 0;
}

ex_tokens *ex_tokens_open(const char *prefix, int32_t vocab, int32_t end, ex_fault *fault)
{
    if (end < 0 || end >= vocab) {
        ex_fail(fault, "the end token is %d; it must be in 0..%d, the model's vocabulary", (int)end,
                (int)vocab - 1);
        return NULL;
    }
    ex_tokens *tokens = ex_tokens_draw(0, vocab, fault);
    char path[4096];
    if (!tokens)
        return NULL;
    tokens->is_file = 1;
    tokens->end = end;
    snprintf(tokens->prefix, sizeof tokens->prefix, "%s", prefix);
    int room = snprintf(path, sizeof path, "%s.bin", prefix);
    int failed = room < 0 || room >= (int)sizeof path
                     ? ex_fail(fault, "the path of the tokens is longer than %d bytes", (int)sizeof path - 5)
                     : map_file(path, &tokens->bin, fault);
    if (!failed) {
        snprintf(path, sizeof path, "%s.idx", prefix);
        failed = map_file(path, &tokens->index, fault) < 0 || check_index(tokens, path, fault) < 0;
    }
    if (failed) {
        ex_tokens_free(tokens);
        return NULL;
    }
    return tokens;
}

/* A well-mixed 64-bit number for each input (the finaliser of splitmix64). */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
    x = (x ^ x >> 27) * 0x94d049bb133111ebU;
    return x ^ x >> 31;
}

static void draw(const ex_tokens *t, int64_t sample, int64_t first, int64_t count, int32_t *out)
{
    uint64_t vocab = (uint64_t)t->vocab;
    uint64_t own = mix(t->seed ^ mix((uint64_t)sample));
    uint64_t begin = own % vocab;
    uint64_t stride = 1 + (own >> 32) % 3;
    for (int64_t i = 0; i <= count; i++) {
        uint64_t place = (uint64_t)(first + i);
        uint64_t noise = mix(own + place);
        out[i] = (int32_t)(noise % 8 == 0 ? (noise >> 8) % vocab : (begin + stride * place) % vocab);
    }
}

/* Whether tokens first .. first + count of a sequence are in the files. */
static int find_sample(const ex_tokens *t, int64_t sample, int64_t first, int64_t count, ex_fault *fault)
{
    if (sample < 0 || sample >= t->sequences)
        return ex_fail(fault, "sample %lld is not in %s.idx, which has %lld sequences", (long long)sample,
                       t->prefix, (long long)t->sequences);
    int64_t length = (int64_t)little(length_at(t, sample), 4);
    if (first < 0 || count < 0 || first + count > length)
        return ex_fail(fault, "sample %lld has %lld tokens in %s.idx; the plan asks for %lld to %lld",
                       (long long)sample, (long long)length, t->prefix, (long long)first,
                       (long long)(first + count));
    return 0;
}

static int read_file(const ex_tokens *t, int64_t sample, int64_t first, int64_t count, int32_t *out,
                     ex_fault *fault)
{
    if (find_sample(t, sample, first, count, fault) < 0)
        return -1;
    int64_t length = (int64_t)little(length_at(t, sample), 4);
    const unsigned char *at = t->bin.data + little(pointer_at(t, sample), 8) + first * t->item;
    for (int64_t i = 0; i <= count; i++, at += t->item) {
        uint64_t token = first + i < length ? little(at, t->item) : (uint64_t)t->end;
        if (token >= (uint64_t)t->vocab)
            return ex_fail(fault, "token %lld of sample %lld is %llu; the model's vocabulary has %d",
                           (long long)(first + i), (long long)sample, (unsigned long long)token,
                           (int)t->vocab);
        out[i] = (int32_t)token;
    }
    return 0;
}

int ex_tokens_read(const ex_tokens *tokens, int64_t sample, int64_t first, int64_t count, int32_t *out,
                   ex_fault *fault)
{
    if (tokens->is_file)
        return read_file(tokens, sample, first, count, out, fault);
    draw(tokens, sample, first, count, out);
    return 0;
}

uint64_t ex_tokens_digest(const ex_tokens *t)
{
    uint64_t parts[] = {(uint64_t)t->is_file,   t->seed,           (uint64_t)t->sequences,
                        (uint64_t)t->bin.bytes, (uint64_t)t->item, (uint64_t)t->end};
    uint64_t digest = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        digest = mix(digest ^ parts[i]);
    return digest;
}

int ex_tokens_check(const ex_tokens *tokens, const hbp_plan *plan, ex_fault *fault)
{
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(plan, &view);
    int64_t rows = view.samples;
    for (int64_t i = 0; tokens->is_file && i < rows; i++)
        if (find_sample(tokens, view.sample_ids[i],
                        view.sample_first_tokens ? view.sample_first_tokens[i] : 0, view.sample_tokens[i],
                        fault) < 0)
            return -1;
    return 0;
}

void ex_tokens_free(ex_tokens *tokens)
{
    if (!tokens)
        return;
    mapped files[2] = {tokens->index, tokens->bin};
    for (int i = 0; i < 2; i++)
        if (files[i].data)
            munmap((void *)(uintptr_t)files[i].data, (size_t)files[i].bytes);
    free(tokens);
}
