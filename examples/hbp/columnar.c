/* Lengths in Parquet and Arrow files. Python's pyarrow reads them, in a process of its own, which runs the
 * package's _columnar.py and writes numbers into a pipe: an int64 of rows and then the columns, again and
 * again; -1 ends them; -2 is a failure, with the bytes of its message and the message behind it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"

extern const char columnar_script[]; /* bindings/python/src/hbp/_columnar.py */
extern char **environ;

enum { END = -1, FAILED = -2, COLUMNS = 5, ROWS = 65536 };

/* The pipe ends, or makes no sense; why shows when the process has been waited for. */
enum { ENDED_EARLY = -101 };

static int ends_in(const char *name, const char *ending)
{
    size_t bytes = strlen(name), last = strlen(ending);
    return bytes > last && strcmp(name + bytes - last, ending) == 0;
}

static int is_named_so(const char *name)
{
    return ends_in(name, ".parquet") || ends_in(name, ".arrow") || ends_in(name, ".feather");
}

/* A folder of such files, or one that Hugging Face's datasets saved, but none of MDS shards. */
static int is_folder_of_columns(const char *path)
{
    DIR *folder = opendir(path);
    int found = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        if (strcmp(entry->d_name, "index.json") == 0) {
            found = 0;
            break;
        }
        found |= is_named_so(entry->d_name) || strcmp(entry->d_name, "dataset_dict.json") == 0 ||
                 strcmp(entry->d_name, "state.json") == 0;
    }
    if (folder)
        closedir(folder);
    return found;
}

int cli_is_columnar(const char *path)
{
    struct stat about;
    if (stat(path, &about) != 0) /* a pattern */
        return strchr(path, '*') && is_named_so(path);
    if (S_ISDIR(about.st_mode))
        return is_folder_of_columns(path);
    unsigned char head[6] = {0};
    FILE *file = S_ISREG(about.st_mode) ? fopen(path, "rb") : NULL;
    size_t bytes = file ? fread(head, 1, sizeof head, file) : 0;
    if (file)
        fclose(file);
    return (bytes >= 4 && memcmp(head, "PAR1", 4) == 0) || (bytes == 6 && memcmp(head, "ARROW1", 6) == 0) ||
           (bytes >= 4 && memcmp(head, "\xff\xff\xff\xff", 4) == 0);
}

typedef struct batch {
    int64_t column[COLUMNS][ROWS];
    int32_t modality[ROWS];
} batch;

typedef struct reader {
    cli *c;
    const char *path;
    FILE *from;
    pid_t process;
    int columns;
    batch *rows;
} reader;

/* Starts Python, its standard output a pipe. */
static hbp_status start(reader *r)
{
    const cli *c = r->c;
    const char *names[COLUMNS] = {c->column, c->loss_column, c->link_column, c->vision_column,
                                  c->modality_column};
    char *arguments[3 + 1 + COLUMNS + 1] = {"python3", "-c", (char *)(uintptr_t)columnar_script,
                                            (char *)(uintptr_t)r->path};
    int ends[2];
    for (int i = 0; i < COLUMNS; i++) {
        arguments[4 + i] = (char *)(uintptr_t)(names[i] ? names[i] : "");
        r->columns += i == 0 || names[i];
    }
    if (pipe(ends) != 0)
        return cli_own_failure("cannot read %s: %s", r->path, strerror(errno));
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (!error) {
        error = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        if (!error)
            error = posix_spawn_file_actions_addclose(&actions, ends[1]);
        if (!error)
            error = posix_spawnp(&r->process, "python3", &actions, NULL, arguments, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    close(ends[1]);
    if (!error)
        r->from = fdopen(ends[0], "rb");
    if (r->from)
        return HBP_OK;
    close(ends[0]);
    return cli_own_failure(
        "%s is read through Python's pyarrow, and python3 cannot be started: %s; make lengths.npy of "
        "it where Python is",
        r->path, strerror(error ? error : errno));
}

static hbp_status read_failure(const reader *r)
{
    char text[400] = {0};
    int64_t bytes = 0;
    if (fread(&bytes, sizeof bytes, 1, r->from) != 1 || bytes < 0)
        return ENDED_EARLY;
    size_t most = bytes < (int64_t)sizeof text - 1 ? (size_t)bytes : sizeof text - 1;
    if (fread(text, 1, most, r->from) != most)
        return ENDED_EARLY;
    return cli_own_failure("%s", text);
}

/* The columns of `rows` rows. */
static hbp_status read_batch(reader *r, hbp_lengths_builder *builder, int64_t rows)
{
    const cli *c = r->c;
    hbp_lengths_columns columns = {.struct_size = sizeof columns, .shifted_loss = (int32_t)c->shifted_loss};
    if (rows < 1 || rows > ROWS)
        return ENDED_EARLY;
    for (int i = 0; i < r->columns; i++)
        if (fread(r->rows->column[i], sizeof(int64_t), (size_t)rows, r->from) != (size_t)rows)
            return ENDED_EARLY;
    int64_t(*at)[ROWS] = r->rows->column;
    const int64_t *lengths = *at++;
    if (c->loss_column)
        columns.loss_tokens = *at++;
    if (c->link_column)
        columns.links = *at++;
    if (c->vision_column)
        columns.vision = *at++;
    for (int64_t i = 0; c->modality_column && i < rows; i++) {
        int64_t modality = (*at)[i];
        r->rows->modality[i] = (int32_t)(modality < INT32_MIN   ? INT32_MIN
                                         : modality > INT32_MAX ? INT32_MAX
                                                                : modality);
        columns.modalities = r->rows->modality;
    }
    hbp_status status = hbp_lengths_builder_append(c->context, builder, lengths, &columns, rows);
    return status < 0 ? cli_own_failure("%s: %s", r->path, cli_message(c)) : status;
}

static hbp_status read_batches(reader *r, hbp_lengths **out)
{
    hbp_lengths_builder *builder;
    hbp_status status = hbp_lengths_builder_create(r->c->context, &builder);
    int64_t rows = 0;
    while (status >= 0 && rows != END) {
        if (fread(&rows, sizeof rows, 1, r->from) != 1)
            status = ENDED_EARLY;
        else if (rows == FAILED)
            status = read_failure(r);
        else if (rows != END)
            status = read_batch(r, builder, rows);
    }
    if (status >= 0) {
        status = hbp_lengths_builder_finish(r->c->context, builder, out);
        if (status < 0)
            status = cli_own_failure("%s: %s", r->path, cli_message(r->c));
    }
    hbp_lengths_builder_free(builder);
    return status;
}

hbp_status cli_read_columnar(cli *c, const char *path, hbp_lengths **out)
{
    reader r = {.c = c, .path = path};
    *out = NULL;
    if (c->vision_file)
        return cli_own_failure(
            "--vision is for other formats: %s has vision units in a column, --vision-column", path);
    if (c->count_column)
        return cli_own_failure("%s holds no histogram; --count-column is for CSV", path);
    r.rows = malloc(sizeof *r.rows);
    if (!r.rows)
        return cli_own_failure("out of memory");
    hbp_status status = start(&r);
    if (status >= 0) {
        int ended = 0;
        status = read_batches(&r, out);
        if (status < 0)
            kill(r.process, SIGTERM);
        fclose(r.from);
        while (waitpid(r.process, &ended, 0) < 0 && errno == EINTR)
            ;
        if (status == ENDED_EARLY && WIFSIGNALED(ended) &&
            WTERMSIG(ended) == SIGINT) /* Ctrl-C reaches both */
            status = cli_own_failure("reading %s was cancelled", path);
        else if (status == ENDED_EARLY)
            status = cli_own_failure("%s: python3 ended before the lengths did", path);
    }
    free(r.rows);
    return status;
}
