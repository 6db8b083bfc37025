/* A fresh folder for a test's files, and files as bytes. */
#ifndef HBP_TESTS_FILES_H
#define HBP_TESTS_FILES_H

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

/* Makes a folder and writes its path into `folder` [64]. */
static inline void folder_make(char *folder)
{
    strcpy(folder, "/tmp/hbp-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static inline int folder_count(const char *folder)
{
    DIR *open = opendir(folder);
    ck_assert_ptr_nonnull(open);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(open));)
        count += entry->d_name[0] != '.';
    closedir(open);
    return count;
}

/* Removes the folder and the files in it. */
static inline void folder_remove(const char *folder)
{
    DIR *open = opendir(folder);
    ck_assert_ptr_nonnull(open);
    for (struct dirent *entry; (entry = readdir(open));) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    closedir(open);
    rmdir(folder);
}

/* "folder/name" in `path` [128]. */
static inline const char *folder_path(char *path, const char *folder, const char *name)
{
    snprintf(path, 128, "%s/%s", folder, name);
    return path;
}

static inline void file_write(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, bytes, file), bytes);
    ck_assert_int_eq(fclose(file), 0);
}

/* The bytes of a file, and a 0 after them; the test frees them. */
static inline char *file_read(const char *path, size_t *bytes)
{
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    char *data = malloc((size_t)info.st_size + 1);
    FILE *file = fopen(path, "rb");
    ck_assert(data && file);
    *bytes = fread(data, 1, (size_t)info.st_size, file);
    ck_assert_uint_eq(*bytes, (size_t)info.st_size);
    fclose(file);
    data[*bytes] = '\0';
    return data;
}

#endif
