/* Runs a fuzz target over a corpus without a fuzzer: every file of the folder given, and of each file of at
 * most SMALL bytes all its truncations and all its single-byte changes by a few masks, with sanitizers by
 * half of them in turn unless HBP_ALL_ROUNDS is set. The same inputs in the same order every time. usage:
 * fuzz_tests TARGET CORPUS-FOLDER */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "targets.h" /* FUZZ_TARGETS(X): X(cost_file) X(graph) ... (tests/CMakeLists.txt) */

#define DECLARE(name) int fuzz_##name(const uint8_t *data, size_t size);
FUZZ_TARGETS(DECLARE)

static const struct {
    const char *name;
    int (*run)(const uint8_t *data, size_t size);
} targets[] = {
#define ENTRY(name) {#name, fuzz_##name},
    FUZZ_TARGETS(ENTRY)};

/* The one that runs. */
static int (*target)(const uint8_t *data, size_t size);

enum { SMALL = 4096, CHANGES = 20000, MAX_FILES = 4096 };

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static const uint8_t masks[] = {0x01, 0x80, 0xff, 0x20};

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A copy of exactly `size` bytes, so that a sanitizer sees the first byte read past the end. */
static void run(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        exit(EXIT_FAILURE);
    if (size)
        memcpy(copy, data, size);
    target(copy, size);
    free(copy);
}

/* Every n-th position, so that a file has at most CHANGES changed inputs of each kind. */
static int64_t run_changed(uint8_t *data, size_t size)
{
    int64_t runs = 0;
    size_t kinds = sizeof masks + 1;
    size_t stride = size * kinds / CHANGES + 1, apart = SANITIZED && !getenv("HBP_ALL_ROUNDS") ? 2 : 1;
    for (size_t at = 0; at < size; at += stride, runs++)
        run(data, at);
    for (size_t at = 0; at < size; at += stride)
        for (size_t k = at / stride % apart; k < sizeof masks; k += apart, runs++) {
            data[at] ^= masks[k];
            run(data, size);
            data[at] ^= masks[k];
        }
    return runs;
}

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    long length = ftell(file);
    rewind(file);
    uint8_t *data = length < 0 ? NULL : malloc((size_t)length + 1);
    if (data)
        *size = fread(data, 1, (size_t)length, file);
    fclose(file);
    return data;
}

static int64_t run_file(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    size_t size = 0;
    uint8_t *data = read_file(path, &size);
    if (!data) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    int64_t runs = 1;
    run(data, size);
    if (size <= SMALL)
        runs += run_changed(data, size);
    free(data);
    return runs;
}

int main(int argc, char **argv)
{
    static char *names[MAX_FILES];
    int count = 0;
    for (size_t i = 0; argc == 3 && i < sizeof targets / sizeof *targets; i++)
        if (!strcmp(argv[1], targets[i].name))
            target = targets[i].run;
    DIR *folder = target ? opendir(argv[2]) : NULL;
    if (!folder) {
        fprintf(stderr, "usage: %s TARGET CORPUS-FOLDER\n", argv[0]);
        return 2;
    }
    for (struct dirent *entry; (entry = readdir(folder)) && count < MAX_FILES;)
        if (entry->d_name[0] != '.' && (names[count] = strdup(entry->d_name)))
            count++;
    closedir(folder);
    qsort(names, (size_t)count, sizeof *names, by_name);
    run(NULL, 0);
    int64_t runs = 1;
    for (int i = 0; i < count; i++) {
        runs += run_file(argv[2], names[i]);
        free(names[i]);
    }
    printf("%d files, %lld inputs\n", count, (long long)runs);
    return count ? EXIT_SUCCESS : EXIT_FAILURE;
}
