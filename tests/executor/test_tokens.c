/* Tokens: drawn ones do not depend on where reading begins; files are read as Megatron-LM wrote them, and bad
 * ones are refused. */
#include "test.h"
#include "walk/tokens.h"

#include <unistd.h>

static char folder[64];

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const void *data, size_t bytes)
{
    FILE *file = fopen(path_of(name), "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq((int)fwrite(data, 1, bytes, file), (int)bytes);
    fclose(file);
}

/* The golden index of three sequences, 3, 1 and 2 tokens of 16 bits. */
static const unsigned char golden[] = {
    0x4d, 0x4d, 0x49, 0x44, 0x49, 0x44, 0x58, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 8, 3, 0, 0, 0, 0, 0,
    0,    0,    3,    0,    0,    0,    0,    0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0,
    0,    0,    0,    0,    0,    0,    6,    0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0,    0,    0,    0,    0,    0,    2,    0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0};
static const uint16_t items[] = {11, 12, 13, 21, 31, 32};

static void setup(void)
{
    snprintf(folder, sizeof folder, "/tmp/hbp-tokens-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    write_file("a.idx", golden, sizeof golden);
    write_file("a.bin", items, sizeof items);
}

static void teardown(void)
{
    char line[128];
    snprintf(line, sizeof line, "rm -rf %s", folder);
    ck_assert_int_eq(system(line), 0);
}

START_TEST(drawn_tokens_follow_from_their_place)
{
    ex_fault fault = {0};
    ex_tokens *t = ex_tokens_draw(5, 50, &fault);
    int32_t whole[101], part[31];
    int same = 0;
    ck_assert_int_eq(ex_tokens_read(t, 9, 0, 100, whole, &fault), 0);
    for (int64_t first = 0; first <= 70; first += 7) {
        ck_assert_int_eq(ex_tokens_read(t, 9, first, 30, part, &fault), 0);
        ck_assert(memcmp(part, whole + first, sizeof part) == 0);
    }
    for (int i = 0; i <= 100; i++)
        ck_assert(whole[i] >= 0 && whole[i] < 50);
    ck_assert_int_eq(ex_tokens_read(t, 10, 0, 30, part, &fault), 0);
    for (int i = 0; i <= 30; i++)
        same += part[i] == whole[i];
    ck_assert_msg(same < 20, "samples 9 and 10 have %d of 31 tokens in common", same);
    ex_tokens_free(t);
}
END_TEST

START_TEST(files_are_read)
{
    ex_fault fault = {0};
    ex_tokens *t = ex_tokens_open(path_of("a"), 100, 99, &fault);
    ck_assert_msg(t != NULL, "%s", fault.text);
    int32_t out[4];
    ck_assert_int_eq(ex_tokens_read(t, 0, 0, 3, out, &fault), 0);
    ck_assert(out[0] == 11 && out[1] == 12 && out[2] == 13 && out[3] == 99);
    ck_assert_int_eq(ex_tokens_read(t, 2, 0, 1, out, &fault), 0);
    ck_assert(out[0] == 31 && out[1] == 32);
    ck_assert_int_eq(ex_tokens_read(t, 1, 0, 1, out, &fault), 0);
    ck_assert(out[0] == 21 && out[1] == 99);
    ex_tokens_free(t);
}
END_TEST

static void refuses(const char *prefix, int32_t vocab, int32_t end, const char *text)
{
    ex_fault fault = {0};
    ck_assert_ptr_null(ex_tokens_open(prefix, vocab, end, &fault));
    ck_assert_msg(strstr(fault.text, text) != NULL, "'%s' lacks '%s'", fault.text, text);
}

static void refuses_read(int64_t sample, int64_t first, int64_t count, int32_t vocab, const char *text)
{
    ex_fault fault = {0};
    int32_t out[16];
    ex_tokens *t = ex_tokens_open(path_of("a"), vocab, 0, &fault);
    ck_assert_msg(t != NULL, "%s", fault.text);
    ck_assert_int_eq(ex_tokens_read(t, sample, first, count, out, &fault), -1);
    ck_assert_msg(strstr(fault.text, text) != NULL, "'%s' lacks '%s'", fault.text, text);
    ex_tokens_free(t);
}

START_TEST(what_is_not_there_is_named)
{
    refuses(path_of("b"), 100, 0, "cannot open");
    refuses(path_of("a"), 100, 100, "the end token is 100; it must be in 0..99");
    refuses_read(3, 0, 1, 100, "sample 3 is not in");
    refuses_read(-1, 0, 1, 100, "sample -1 is not in");
    refuses_read(0, 0, 4, 100, "sample 0 has 3 tokens");
    refuses_read(0, -1, 1, 100, "sample 0 has 3 tokens");
    refuses_read(0, 0, 3, 13, "token 2 of sample 0 is 13; the model's vocabulary has 13");
}
END_TEST

START_TEST(damaged_indexes_are_refused)
{
    unsigned char bad[sizeof golden];
    /* Every single byte changed: refused, or every sequence still lies inside the tokens. */
    for (size_t i = 0; i < sizeof golden; i++)
        for (int change = 1; change < 256; change += 51) {
            memcpy(bad, golden, sizeof golden);
            bad[i] = (unsigned char)(bad[i] ^ change);
            write_file("c.idx", bad, sizeof bad);
            write_file("c.bin", items, sizeof items);
            ex_fault fault = {0};
            ex_tokens *t = ex_tokens_open(path_of("c"), INT32_MAX, 0, &fault);
            ck_assert(t || fault.text[0]);
            for (int64_t s = 0; t && s < 3; s++) {
                int32_t out[2];
                ex_fault ignored = {0};
                ex_tokens_read(t, s, 0, 1, out, &ignored);
            }
            ex_tokens_free(t);
        }
    for (size_t bytes = 0; bytes < 70; bytes++) {
        write_file("c.idx", golden, bytes);
        ex_fault fault = {0};
        ck_assert_ptr_null(ex_tokens_open(path_of("c"), 100, 0, &fault));
        ck_assert(fault.text[0]);
    }
    memcpy(bad, golden, sizeof golden);
    memcpy(bad, "TNTIDX", 6);
    write_file("c.idx", bad, sizeof bad);
    refuses(path_of("c"), 100, 0, "legacy TNTIDX");
    memcpy(bad, golden, sizeof golden);
    bad[9] = 2;
    write_file("c.idx", bad, sizeof bad);
    refuses(path_of("c"), 100, 0, "index version 2; 1 is known");
    write_file("c.idx", golden, sizeof golden);
    write_file("c.bin", items, sizeof items - 1);
    refuses(path_of("c"), 100, 0, "fits no size of token for 11 bytes");
}
END_TEST

TEST_MAIN_WITH("tokens", setup, teardown, drawn_tokens_follow_from_their_place, files_are_read,
               what_is_not_there_is_named, damaged_indexes_are_refused)
