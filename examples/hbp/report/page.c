#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"

/* JSON inside of a page: nothing in it ends the script that holds it. */
static void put_json(FILE *file, const char *text)
{
    for (; *text; text++)
        if (*text == '<')
            fputs("\\u003c", file);
        else
            putc(*text, file);
}

static void put_page(FILE *file, const char *report, const char *columns)
{
    static const struct {
        const char *name;
        const char *text;
    } parts[] = {
        {"@STYLE@", report_style}, {"@REPORT@", NULL}, {"@COLUMNS@", NULL}, {"@SCRIPT@", report_script}};
    const char *from = report_html;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *at = strstr(from, parts[i].name);
        fwrite(from, 1, (size_t)(at - from), file);
        if (parts[i].text)
            fputs(parts[i].text, file);
        else if (i == 1)
            put_json(file, report);
        else
            fputs(columns, file);
        from = at + strlen(parts[i].name);
    }
    fputs(from, file);
}

/* As every file that the library writes: what was there keeps its mode. */
static hbp_status write_whole(FILE *file, const char *temporary, const char *path, const char *report,
                              const char *columns)
{
    struct stat there;
    put_page(file, report, columns);
    if (stat(path, &there) == 0)
        (void)fchmod(fileno(file), there.st_mode & 07777);
    int failed = fflush(file) || ferror(file) || fsync(fileno(file));
    const int error = errno;
    failed |= fclose(file);
    if (failed)
        return cli_own_failure("cannot write %s: %s", path, strerror(error ? error : errno));
    if (rename(temporary, path))
        return cli_own_failure("cannot write %s: %s", path, strerror(errno));
    return HBP_OK;
}

/* A new file beside `path`, whose name is put into *name, to be freed; NULL with `errno`. */
static FILE *open_beside(const char *path, char **name)
{
    enum { TRIES = 100, SUFFIX = 40 };
    const char *slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash - path) + 1 : 0;
    int descriptor = -1;
    *name = malloc((size_t)folder + SUFFIX);
    errno = ENOMEM;
    for (int i = 0; *name && descriptor < 0 && i < TRIES; i++) {
        snprintf(*name + folder, SUFFIX, ".hbp-%08lx%02x.tmp", (unsigned long)getpid() & 0xffffffff,
                 (unsigned)i);
        memcpy(*name, path, (size_t)folder);
        descriptor = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor < 0 && errno != EEXIST)
            break;
    }
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
    if (!file && descriptor >= 0) {
        close(descriptor);
        unlink(*name);
    }
    return file;
}

/* A stream on an open file, from where that stands where it is one of this process: "/proc/self/fd/3". NULL
 * with `errno`. */
static FILE *open_descriptor(const char *place)
{
    struct stat named, held;
    const int number = atoi(strrchr(place, '/') + 1);
    if (stat(place, &named) != 0 || fstat(number, &held) != 0 || named.st_dev != held.st_dev ||
        named.st_ino != held.st_ino)
        return fopen(place, "wb");
    const int flags = fcntl(number, F_GETFL);
    if ((flags & O_ACCMODE) == O_RDONLY) {
        errno = EBADF;
        return NULL;
    }
    const int own = fcntl(number, F_DUPFD_CLOEXEC, 0);
    FILE *file = own < 0 ? NULL : fdopen(own, "wb");
    if (!file && own >= 0)
        close(own);
    return file;
}

/* A pipe, a terminal, an open file: written as it is. */
static hbp_status write_through(const char *path, const char *place, const char *report, const char *columns)
{
    const int is_standard = cli_is_standard_output(path);
    FILE *file = is_standard ? stdout : cli_is_open_file(place) ? open_descriptor(place) : fopen(path, "wb");
    if (!file)
        return cli_own_failure("cannot write %s: %s", path, strerror(errno));
    put_page(file, report, columns);
    int failed = fflush(file) || ferror(file);
    failed |= !is_standard && fclose(file);
    return failed ? cli_own_failure("cannot write %s: %s", path, strerror(errno)) : HBP_OK;
}

hbp_status report_write(const char *path, json_t *page, const char *columns)
{
    struct stat there;
    char place[CLI_PATH_BYTES], *report, *temporary = NULL;
    const int unfollowed = cli_follow_links(path, place);
    if (unfollowed)
        return cli_own_failure("cannot write %s: %s", path, strerror(unfollowed));
    report = json_dumps(page, JSON_COMPACT);
    if (!report)
        return cli_own_failure("out of memory for the page");
    if (cli_is_open_file(place) || (stat(path, &there) == 0 && !S_ISREG(there.st_mode))) {
        hbp_status through = write_through(path, place, report, columns);
        free(report);
        return through;
    }
    FILE *file = open_beside(place, &temporary);
    hbp_status status = file ? write_whole(file, temporary, place, report, columns)
                             : cli_own_failure("cannot write beside %s: %s", path, strerror(errno));
    if (file && status < 0)
        unlink(temporary);
    free(report);
    free(temporary);
    return status;
}
