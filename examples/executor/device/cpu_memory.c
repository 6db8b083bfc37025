/* What Linux says of this machine's memory and processor; elsewhere, less. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "device/cpu.h"

enum { PATH_BYTES = 1024, LINE_BYTES = 1024 };

/* The whole number at the beginning of a file; -1 when there is none ("max", no such file). */
static int64_t read_number(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return -1;
    int64_t number;
    if (fscanf(file, "%" SCNd64, &number) != 1)
        number = -1;
    fclose(file);
    return number;
}

/* The number behind `key` at the beginning of a line; -1 without one. */
static int64_t read_field(const char *path, const char *key)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return -1;
    char line[LINE_BYTES];
    int64_t number = -1;
    size_t length = strlen(key);
    while (number < 0 && fgets(line, sizeof line, file))
        if (!strncmp(line, key, length))
            number = strtoll(line + length, NULL, 10);
    fclose(file);
    return number;
}

static void lower(int64_t *least, int64_t value)
{
    if (value >= 0 && value < *least)
        *least = value;
}

typedef struct cgroup_files {
    const char *mount, *limit, *usage, *cache; /* cache: the line of memory.stat that can be had back */
} cgroup_files;

static const cgroup_files cgroup_v1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                       "memory.usage_in_bytes", "total_inactive_file "};
static const cgroup_files cgroup_v2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "};

/* Takes the limits of the group at `group` and of every one above it: each of them binds. In a container the
 * path may be the host's; what is not there is passed over, up to the mount itself. */
static void lower_to_groups(const char *root, const cgroup_files *files, char *group, int64_t *free_bytes,
                            int64_t *total_bytes)
{
    char path[PATH_BYTES];
    for (;;) {
        size_t length = strlen(group);
        while (length && group[length - 1] == '/')
            group[--length] = 0;
        snprintf(path, sizeof path, "%s%s%s/%s", root, files->mount, group, files->limit);
        int64_t limit = read_number(path);
        snprintf(path, sizeof path, "%s%s%s/%s", root, files->mount, group, files->usage);
        int64_t usage = read_number(path);
        snprintf(path, sizeof path, "%s%s%s/memory.stat", root, files->mount, group);
        int64_t cache = read_field(path, files->cache);
        if (limit >= 0 && usage >= 0) {
            usage -= cache > 0 ? cache : 0;
            usage = usage > 0 ? usage : 0;
            lower(total_bytes, limit);
            lower(free_bytes, limit > usage ? limit - usage : 0);
        }
        if (!length)
            return;
        while (length && group[length - 1] != '/')
            group[--length] = 0;
    }
}

/* One line of /proc/self/cgroup is "4:memory:/path" (v1) or "0::/path" (v2). */
static void lower_to_cgroups(const char *root, int64_t *free_bytes, int64_t *total_bytes)
{
    char path[PATH_BYTES], line[LINE_BYTES];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "r");
    if (!file)
        return;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *controllers++ = 0;
        *group++ = 0;
        if (!strcmp(line, "0") && !*controllers)
            lower_to_groups(root, &cgroup_v2, group, free_bytes, total_bytes);
        else if (strstr(controllers, "memory"))
            lower_to_groups(root, &cgroup_v1, group, free_bytes, total_bytes);
    }
    fclose(file);
}

void ex_cpu_memory(const char *root, int64_t *free_bytes, int64_t *total_bytes)
{
    *free_bytes = *total_bytes = INT64_MAX;
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    int64_t total_kib = read_field(path, "MemTotal:");
    int64_t there_kib = read_field(path, "MemAvailable:");
    if (total_kib >= 0)
        lower(total_bytes, total_kib * 1024);
    if (there_kib >= 0)
        lower(free_bytes, there_kib * 1024);
#ifdef _SC_PHYS_PAGES
    if (total_kib < 0 && sysconf(_SC_PHYS_PAGES) > 0)
        lower(total_bytes, (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
#endif
    lower_to_cgroups(root, free_bytes, total_bytes);
    lower(free_bytes, *total_bytes);
}

void ex_cpu_name(const char *root, char *name, size_t size)
{
    char path[PATH_BYTES], line[LINE_BYTES];
    snprintf(path, sizeof path, "%s/proc/cpuinfo", root);
    FILE *file = fopen(path, "r");
    name[0] = 0;
    while (file && !name[0] && fgets(line, sizeof line, file)) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !value)
            continue;
        value += 1 + strspn(value + 1, " \t");
        line[strcspn(line, "\n")] = 0;
        snprintf(name, size, "%s", value);
    }
    if (file)
        fclose(file);
    struct utsname machine;
    if (!name[0])
        snprintf(name, size, "%s processor", uname(&machine) >= 0 ? machine.machine : "unknown");
}
