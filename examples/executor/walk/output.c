#include "walk/output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file of this process's own, at once removed. */
static int try_file(const char *beside, const char *what, ex_fault *fault)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s.%ld.try", beside, (long)getpid());
    if (length < 0 || length >= (int)sizeof path)
        return ex_fail(fault, "the path %.64s... is longer than %d bytes", what, (int)sizeof path - 32);
    FILE *file = fopen(path, "wb");
    if (!file)
        return ex_fail(fault, "cannot write %s: %s", what, strerror(errno));
    fclose(file);
    remove(path);
    return 0;
}

int ex_output_check_file(const char *path, int replaces, ex_fault *fault)
{
    struct stat there;
    if (!path)
        return 0;
    int exists = stat(path, &there) == 0;
    if (exists && S_ISDIR(there.st_mode))
        return ex_fail(fault, "cannot write %s: %s", path, strerror(EISDIR));
    if (!exists || S_ISREG(there.st_mode))
        return try_file(path, path, fault);
    return replaces ? ex_fail(fault, "cannot write %s: not a regular file", path) : 0;
}

int ex_output_make_folder(const char *path, ex_fault *fault)
{
    char inside[4096];
    if (!path)
        return 0;
    int length = snprintf(inside, sizeof inside, "%s/gradient", path);
    if (length < 0 || length >= (int)sizeof inside)
        return ex_fail(fault, "the path %.64s... is longer than %d bytes", path, (int)sizeof inside - 32);
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return ex_fail(fault, "cannot make %s: %s", path, strerror(errno));
    return try_file(inside, path, fault);
}
