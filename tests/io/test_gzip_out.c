/* Bytes gzipped into a file and read back, in pieces of every size. */
#include "io/file/gzip_out.h"

#include "base/rng.h"
#include "failing.h"
#include "files.h"
#include "io/file/stream.h"

START_TEST(names_ask_for_it)
{
    static const char *const yes[] = {"a.gz", "x/trace.json.gz", "..gz"};
    static const char *const no[] = {"", "gz", ".gz", "a.gzip", "a.json", "a.gz/b", "agz"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        ck_assert(hbp__gzip_wanted(yes[i]));
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        ck_assert(!hbp__gzip_wanted(no[i]));
}
END_TEST

typedef struct gzipped {
    char folder[64];
    char path[128];
    const char *data;
    int64_t bytes;
    int64_t piece;
} gzipped;

static hbp_status write_once(hbp_context *context, void *user)
{
    const gzipped *g = user;
    hbp__atomic_file file;
    hbp__gzip_out out = {0};
    HBP__TRY(hbp__atomic_open(context, g->path, &file));
    hbp_status status = hbp__gzip_open(context, &file, &out);
    for (int64_t at = 0; at < g->bytes && status == HBP_OK; at += g->piece)
        status = hbp__gzip_write(&out, g->data + at, g->bytes - at < g->piece ? g->bytes - at : g->piece);
    if (status == HBP_OK)
        status = hbp__gzip_end(&out);
    hbp__gzip_close(&out);
    hbp__gzip_close(&out);
    status = hbp__atomic_end(context, &file, status);
    ck_assert_int_eq(folder_count(g->folder), status == HBP_OK);
    return status;
}

static void check_back(hbp_context *context, const gzipped *g)
{
    char *text;
    int64_t bytes;
    OK(context, hbp__read_file(context, g->path, INT64_C(1) << 30, &text, &bytes));
    ck_assert_int_eq(bytes, g->bytes);
    ck_assert_mem_eq(text, g->data, (size_t)bytes);
    hbp__delete(&context->memory, text);
}

static hbp_status write_away(hbp_context *context, void *user)
{
    const gzipped *g = user;
    hbp_status status = write_once(context, user);
    unlink(g->path);
    return status;
}

START_TEST(what_is_written_comes_back)
{
    enum { MOST = 300000 };
    static const int64_t sizes[] = {0, 1, 100, 65535, 65536, 65537, 131072, MOST};
    static const int64_t pieces[] = {1, 7, 65536, 100000, MOST};
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    char *data = malloc(MOST);
    ck_assert_ptr_nonnull(data);
    gzipped g = {.data = data};
    folder_make(g.folder);
    folder_path(g.path, g.folder, "x");
    for (int noise = 0; noise < 2; noise++) { /* what deflates to little, and what does not */
        for (int64_t i = 0; i < MOST; i++)
            data[i] = (char)(noise ? hbp__rng_below(&rng, 256) : i / 1000 % 50);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
                g.bytes = sizes[s];
                g.piece = pieces[p];
                OK(context, write_once(context, &g));
                check_back(context, &g);
                unlink(g.path);
            }
    }
    failing_sweep(write_away, &g);
    folder_remove(g.folder);
    free(data);
    hbp_context_free(context);
}
END_TEST

/* Noise meets a full disk while it is written, little of anything when it ends. */
START_TEST(a_full_disk_is_told)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    static char data[400000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)hbp__rng_below(&rng, 256);
    gzipped g = {.data = data, .piece = 1000};
    folder_make(g.folder);
    strcpy(g.path, "/dev/full");
    for (int large = 0; large < 2 && access("/dev/full", W_OK) == 0; large++) {
        g.bytes = large ? (int64_t)sizeof data : 10;
        FAILS(context, HBP_E_SYSTEM, "No space left", write_once(context, &g));
    }
    folder_remove(g.folder);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("gzip_out", names_ask_for_it, what_is_written_comes_back, a_full_disk_is_told)
