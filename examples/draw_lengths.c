/* Draws lengths from a file of quantiles (examples/data/) by its inverse distribution function, and writes
 * them as .npy. The same arguments give the same bytes everywhere.
 *
 *   draw_lengths QUANTILES.csv OUT.npy [COUNT [SEED [MAX_LENGTH]]]
 *
 * COUNT is 1,000,000 unless given. Draws past MAX_LENGTH are drawn again. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_POINTS = 4096, BUFFER = 65536, TRIES = 1000 };

static double quantile[MAX_POINTS];
static double length_at[MAX_POINTS];

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Reads "quantile,length" rows, both ascending from quantile 0 to 1; the number of rows, or -1. */
static int read_quantiles(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return -1;
    char line[256];
    int count = 0;
    int good = 1;
    while (good && fgets(line, sizeof line, file)) {
        if (line[0] == '#' || strncmp(line, "quantile", 8) == 0)
            continue;
        good = count < MAX_POINTS && sscanf(line, "%lf,%lf", &quantile[count], &length_at[count]) == 2;
        if (good && count > 0)
            good = quantile[count] > quantile[count - 1] && length_at[count] >= length_at[count - 1];
        count += good;
    }
    fclose(file);
    good = good && count > 1 && quantile[0] <= 0 && quantile[count - 1] >= 1 && length_at[0] >= 1;
    return good ? count : -1;
}

static uint32_t draw(uint64_t *state, int points)
{
    double u = (double)(next_random(state) >> 11) * 0x1p-53;
    int low = 0;
    for (int high = points - 1; high - low > 1;) {
        int middle = (low + high) / 2;
        if (quantile[middle] <= u)
            low = middle;
        else
            high = middle;
    }
    double share = (u - quantile[low]) / (quantile[low + 1] - quantile[low]);
    return (uint32_t)(length_at[low] + share * (length_at[low + 1] - length_at[low]) + 0.5);
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

static int write_draws(FILE *file, int points, int64_t count, uint64_t seed, int64_t max_length)
{
    static unsigned char buffer[4 * BUFFER];
    write_header(file, count);
    for (int64_t i = 0; i < count; i++) {
        uint32_t value = draw(&seed, points);
        for (int tries = 0; max_length > 0 && value > max_length; tries++) {
            if (tries == TRIES)
                return 1;
            value = draw(&seed, points);
        }
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
    int points = read_quantiles(argv[1]);
    if (points < 0) {
        fprintf(stderr, "draw_lengths: %s does not hold rows quantile,length from 0 to 1\n", argv[1]);
        return 1;
    }
    FILE *file = fopen(argv[2], "wb");
    if (!file) {
        perror(argv[2]);
        return 1;
    }
    int status = write_draws(file, points, count, seed, max_length);
    if (status)
        fprintf(stderr, "draw_lengths: hardly any length is as short as %" PRId64 "\n", max_length);
    if (ferror(file) | fclose(file)) {
        perror(argv[2]);
        status = 1;
    }
    return status;
}
