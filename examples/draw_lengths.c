/* Draws lengths from a file of quantiles (examples/data/) by its inverse distribution function, and writes
 * them as .npy. The same arguments give the same bytes everywhere.
 *
 *   draw_lengths QUANTILES.csv OUT.npy [COUNT [SEED [MAX_LENGTH]]]
 *
 * COUNT is 1,000,000 unless given. Draws past MAX_LENGTH are drawn again. A file of quantiles for each number
 * of vision units (rows vision,share,quantile,length) gives samples of both sizes, and OUT is then CSV with
 * columns length and vision. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_POINTS = 4096, BUFFER = 65536, TRIES = 1000 };

/* The distribution of lengths of samples with `vision` units, rows [first, end) of the points; a plain file
 * has one of them, with vision -1. */
typedef struct part {
    int vision;
    double share;
    int first, end;
} part;

enum { MAX_PARTS = 64 };

static double quantile[MAX_POINTS];
static double length_at[MAX_POINTS];
static part parts[MAX_PARTS];

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Reads a row "quantile,length" or "vision,share,quantile,length" as point `at`, of a part. */
static int read_row(const char *line, int at, int *count)
{
    part *now = &parts[*count ? *count - 1 : 0];
    int vision = -1;
    double share = 1;
    if (sscanf(line, "%d,%lf,%lf,%lf", &vision, &share, &quantile[at], &length_at[at]) != 4) {
        vision = -1;
        share = 1;
        if (sscanf(line, "%lf,%lf", &quantile[at], &length_at[at]) != 2)
            return 0;
    }
    if (!*count || vision != now->vision) {
        if (*count == MAX_PARTS || (*count && (vision < now->vision || quantile[at - 1] < 1)))
            return 0;
        parts[(*count)++] = (part){vision, share, at, at + 1};
        return quantile[at] <= 0 && length_at[at] >= 1;
    }
    now->end = at + 1;
    return quantile[at] > quantile[at - 1] && length_at[at] >= length_at[at - 1];
}

/* Reads rows whose quantiles and lengths ascend from quantile 0 to 1 in every part; the number of parts, or
 * -1. */
static int read_quantiles(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return -1;
    char line[256];
    int points = 0, count = 0, good = 1;
    while (good && fgets(line, sizeof line, file)) {
        if (line[0] == '#' || strncmp(line, "quantile", 8) == 0 || strncmp(line, "vision", 6) == 0)
            continue;
        good = points < MAX_POINTS && read_row(line, points, &count);
        points += good;
    }
    fclose(file);
    return good && points > 1 && quantile[points - 1] >= 1 ? count : -1;
}

static uint32_t draw(uint64_t *state, const part *of)
{
    double u = (double)(next_random(state) >> 11) * 0x1p-53;
    int low = of->first;
    for (int high = of->end - 1; high - low > 1;) {
        int middle = (low + high) / 2;
        if (quantile[middle] <= u)
            low = middle;
        else
            high = middle;
    }
    double share = (u - quantile[low]) / (quantile[low + 1] - quantile[low]);
    return (uint32_t)(length_at[low] + share * (length_at[low + 1] - length_at[low]) + 0.5);
}

/* A part, as likely as its share. */
static const part *draw_part(uint64_t *state, int count)
{
    double u = (double)(next_random(state) >> 11) * 0x1p-53, sum = 0;
    for (int k = 0; k < count - 1; k++)
        if (u < (sum += parts[k].share))
            return &parts[k];
    return &parts[count - 1];
}

/* NumPy's format 1.0: magic, header padded to 64 bytes, little-endian uint32. */
static void write_header(FILE *file, int64_t count)
{
    char header[128];
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
    int length = snprintf(header + 10, sizeof header - 10,
                          "{'descr': '<u4', 'fortran_order': False, 'shape': (%" PRId64 ",), }", count);
    header[10 + length] = ' ';
    header[sizeof header - 1] = '\n';
    fwrite(header, 1, sizeof header, file);
}

/* A draw of at most max_length (0: any); 0 when hardly any is that short. */
static uint32_t draw_below(uint64_t *state, const part *of, int64_t max_length)
{
    for (int tries = 0; tries < TRIES; tries++) {
        uint32_t value = draw(state, of);
        if (max_length <= 0 || value <= max_length)
            return value;
    }
    return 0;
}

static int write_rows(FILE *file, int part_count, int64_t count, uint64_t seed, int64_t max_length)
{
    fprintf(file, "length,vision\n");
    for (int64_t i = 0; i < count; i++) {
        const part *of = draw_part(&seed, part_count);
        uint32_t value = draw_below(&seed, of, max_length);
        if (!value)
            return 1;
        fprintf(file, "%" PRIu32 ",%d\n", value, of->vision);
    }
    return 0;
}

static int write_draws(FILE *file, int64_t count, uint64_t seed, int64_t max_length)
{
    static unsigned char buffer[4 * BUFFER];
    write_header(file, count);
    for (int64_t i = 0; i < count; i++) {
        uint32_t value = draw_below(&seed, parts, max_length);
        if (!value)
            return 1;
        size_t at = (size_t)(i % BUFFER) * 4;
        for (size_t k = 0; k < 4; k++)
            buffer[at + k] = (unsigned char)(value >> (8 * k));
        if (at + 4 == sizeof buffer || i == count - 1)
            fwrite(buffer, 1, at + 4, file);
    }
    return 0;
}

int main(int argc, char **argv)
{
    int64_t count = argc > 3 ? strtoll(argv[3], NULL, 10) : 1000000;
    uint64_t seed = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;
    int64_t max_length = argc > 5 ? strtoll(argv[5], NULL, 10) : 0;
    if (argc < 3 || argc > 6 || count < 1 || max_length < 0) {
        fprintf(stderr, "usage: draw_lengths QUANTILES.csv OUT.npy [COUNT [SEED [MAX_LENGTH]]]\n");
        return 2;
    }
    int part_count = read_quantiles(argv[1]);
    if (part_count < 0) {
        fprintf(stderr,
                "draw_lengths: %s does not hold rows quantile,length or vision,share,quantile,length from "
                "quantile 0 to 1\n",
                argv[1]);
        return 1;
    }
    FILE *file = fopen(argv[2], "wb");
    if (!file) {
        perror(argv[2]);
        return 1;
    }
    int status = parts[0].vision < 0 ? write_draws(file, count, seed, max_length)
                                     : write_rows(file, part_count, count, seed, max_length);
    if (status)
        fprintf(stderr, "draw_lengths: hardly any length is as short as %" PRId64 "\n", max_length);
    if (ferror(file) | fclose(file)) {
        perror(argv[2]);
        status = 1;
    }
    return status;
}
