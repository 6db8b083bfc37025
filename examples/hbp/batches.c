/* The trainer's own batches from a text file: a line a step. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Numbers read so far. */
typedef struct list {
    int64_t *number;
    int64_t count;
    int64_t room;
} list;

static int push(list *l, int64_t number)
{
    if (l->count == l->room) {
        int64_t room = l->room ? 2 * l->room : 1024;
        int64_t *more = realloc(l->number, (size_t)room * sizeof *more);
        if (!more)
            return 0;
        l->number = more;
        l->room = room;
    }
    l->number[l->count++] = number;
    return 1;
}

/* The numbers of one line; zero and a message when it holds anything else. */
static hbp_status read_line(const cli *c, const char *line, long long row, list *samples)
{
    const char *at = line;
    for (;;) {
        at += strspn(at, " ,\t\r\n");
        if (!*at)
            return HBP_OK;
        char *end;
        errno = 0;
        long long number = strtoll(at, &end, 10);
        const size_t word = strcspn(at, " ,\t\r\n");
        if (end == at || errno || (*end && !strchr(" ,\t\r\n", *end)))
            return cli_own_failure("%s: line %lld has '%.*s', which is no sample's number", c->batches_file,
                                   row, (int)(word < 20 ? word : 20), at);
        if (!push(samples, number))
            return cli_own_failure("%s: no memory for its batches", c->batches_file);
        at = end;
    }
}

static hbp_status read_file(const cli *c, FILE *file, list *offsets, list *samples)
{
    char *line = NULL;
    size_t bytes = 0;
    long long blank = 0; /* the first of the blank lines read last */
    hbp_status status = push(offsets, 0) ? HBP_OK : cli_own_failure("no memory for batches");
    for (long long row = 1; status >= 0 && getline(&line, &bytes, file) >= 0; row++) {
        int64_t before = samples->count;
        status = read_line(c, line, row, samples);
        if (status < 0)
            break;
        if (samples->count == before) {
            blank = blank ? blank : row;
            continue;
        }
        if (blank)
            status =
                cli_own_failure("%s: line %lld is blank; every step holds a sample", c->batches_file, blank);
        else if (!push(offsets, samples->count))
            status = cli_own_failure("%s: no memory for its batches", c->batches_file);
    }
    if (status >= 0 && ferror(file))
        status = cli_own_failure("cannot read %s: %s", c->batches_file, strerror(errno));
    free(line);
    return status;
}

hbp_status cli_read_batches(cli *c, hbp_epoch_options *options)
{
    if (!c->batches_file)
        return HBP_OK;
    list offsets = {NULL, 0, 0}, samples = {NULL, 0, 0};
    FILE *file = fopen(c->batches_file, "r");
    if (!file)
        return cli_own_failure("cannot open %s: %s", c->batches_file, strerror(errno));
    hbp_status status = read_file(c, file, &offsets, &samples);
    fclose(file);
    c->given_offsets = offsets.number;
    c->given_samples = samples.number;
    if (status >= 0 && offsets.count < 2)
        status = cli_own_failure("%s holds no batch", c->batches_file);
    options->batches = offsets.count - 1;
    options->batch_offsets = offsets.number;
    options->batch_samples = samples.number;
    return status;
}
