#include "metrics.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

enum { TEXT = 240 };

typedef struct metric {
    char name[TEXT];
    char unit[24];
    char yardstick[80];
    bench_better better;
    double value;
    double ratio;
} metric;

static metric *metrics;
static int64_t count, capacity;
static char section[TEXT];

/* What stands behind ": " or "; " explains columns. */
void bench_metrics_section(const char *heading)
{
    snprintf(section, sizeof section, "%s", heading);
    char *end = section + strcspn(section, ":;");
    while (*end && end[1] != ' ')
        end += 1 + strcspn(end + 1, ":;");
    *end = '\0';
}

/* "section: row: name"; one that is there already gets a number behind it. */
static void name_metric(metric *m, const char *row, const char *name)
{
    row += strspn(row, " ");
    snprintf(m->name, sizeof m->name, "%.110s%s%.60s%s%.50s", section, section[0] ? ": " : "", row,
             row[0] ? ": " : "", name);
    size_t length = strlen(m->name);
    for (int64_t i = 0, copy = 1; i < count; i++)
        if (strcmp(metrics[i].name, m->name) == 0) {
            snprintf(m->name + length, sizeof m->name - length, " (%lld)", (long long)++copy);
            i = -1;
        }
}

void bench_metric_beside(const char *row, const char *name, bench_better better, double value,
                         const char *unit, const char *yardstick, double ratio)
{
    if (count == capacity) {
        capacity = capacity ? 2 * capacity : 64;
        metrics = realloc(metrics, (size_t)capacity * sizeof *metrics);
        if (!metrics)
            bench_need(NULL, HBP_E_NO_MEMORY, "the benchmark's figures");
    }
    metric *m = &metrics[count];
    *m = (metric){.better = better, .value = value, .ratio = ratio};
    name_metric(m, row, name);
    snprintf(m->unit, sizeof m->unit, "%s", unit);
    snprintf(m->yardstick, sizeof m->yardstick, "%s", yardstick);
    count++;
}

void bench_metric(const char *row, const char *name, bench_better better, double value, const char *unit)
{
    bench_metric_beside(row, name, better, value, unit, "", 0);
}

static void put_string(FILE *file, const char *key, const char *text)
{
    fprintf(file, "\"%s\": \"", key);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', file);
        fputc(iscntrl((unsigned char)*text) ? ' ' : *text, file);
    }
    fputc('"', file);
}

static void put_number(FILE *file, const char *key, double value)
{
    if (isfinite(value))
        fprintf(file, "\"%s\": %.9g", key, value);
    else
        fprintf(file, "\"%s\": null", key);
}

/* The first line of what `path`, or the command, gives that begins with `key`, behind its colon; "unknown".
 */
static void find_line(FILE *file, const char *key, char *text, size_t size)
{
    char line[512];
    snprintf(text, size, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        char *value = *key ? strchr(line, ':') : line;
        if (strncmp(line, key, strlen(key)) != 0 || !value)
            continue;
        value += strspn(value, ": \t");
        value[strcspn(value, "\n")] = 0;
        snprintf(text, size, "%s", value);
        break;
    }
}

static void put_line(FILE *out, const char *key, FILE *in, const char *line_key)
{
    char text[TEXT];
    find_line(in, line_key, text, sizeof text);
    put_string(out, key, text);
    fprintf(out, ", ");
}

/* The program and its options, without paths. */
static void put_program(FILE *out)
{
    char all[1024], text[TEXT] = "";
    FILE *file = fopen("/proc/self/cmdline", "rb");
    size_t length = file ? fread(all, 1, sizeof all - 1, file) : 0, used = 0;
    all[length] = 0;
    for (size_t at = 0; at < length; at += strlen(all + at) + 1) {
        const char *slash = strrchr(all + at, '/'), *word = at ? all + at : slash ? slash + 1 : all;
        if ((!at || !slash) && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", at ? " " : "", word);
    }
    put_string(out, "benchmark", length ? text : "unknown");
    fprintf(out, ", ");
    if (file)
        fclose(file);
}

/* Program, commit, date, machine, compiler. */
static void put_about(FILE *out)
{
    char date[32];
    time_t now = time(NULL);
    put_program(out);
    FILE *git = popen("git -C '" BENCH_SOURCE "' describe --always --dirty 2>/dev/null", "r");
    put_line(out, "commit", git, "");
    if (git)
        pclose(git);
    FILE *cpu = fopen("/proc/cpuinfo", "r");
    put_line(out, "cpu", cpu, "model name");
    if (cpu)
        fclose(cpu);
    strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now));
    put_string(out, "date", date);
#ifdef __clang__
    fprintf(out, ", \"processors\": %ld, \"compiler\": \"%s\"", sysconf(_SC_NPROCESSORS_ONLN), __VERSION__);
#else
    fprintf(out, ", \"processors\": %ld, \"compiler\": \"gcc %s\"", sysconf(_SC_NPROCESSORS_ONLN),
            __VERSION__);
#endif
}

int bench_metrics_write(void)
{
    const char *path = getenv("BENCH_JSON");
    FILE *out = path && *path ? fopen(path, "w") : NULL;
    if (path && *path && !out) {
        perror(path);
        return 1;
    }
    if (!out)
        return 0;
    fprintf(out, "{");
    put_about(out);
    fprintf(out, ", \"metrics\": [");
    for (int64_t i = 0; i < count; i++) {
        const metric *m = &metrics[i];
        fprintf(out, "%s\n  {", i ? "," : "");
        put_string(out, "name", m->name);
        fprintf(out, ", ");
        put_number(out, "value", m->value);
        fprintf(out, ", ");
        put_string(out, "unit", m->unit);
        fprintf(out, ", \"better\": \"%s\"", m->better == BENCH_LOWER ? "lower" : "higher");
        if (m->yardstick[0]) {
            fprintf(out, ", ");
            put_string(out, "yardstick", m->yardstick);
            fprintf(out, ", ");
            put_number(out, "ratio", m->ratio);
        }
        fprintf(out, "}");
    }
    fprintf(out, "\n]}\n");
    int failed = ferror(out) | fclose(out);
    if (failed)
        perror(path);
    return failed != 0;
}
