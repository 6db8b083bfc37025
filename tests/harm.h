/* A file's bytes and the harm that is done to them, whatever object they hold: a reader finds it, takes
 * little memory and leaves nothing behind; no more do reading and writing for which memory is short. Files
 * with checksums are msgpack, those without are text that people write, where a changed digit is another
 * number. */
#ifndef HBP_TESTS_HARM_H
#define HBP_TESTS_HARM_H

#include "failing.h"
#include "files.h"

/* Files of one kind of object; the functions get `user`. */
typedef struct harm_kind {
    /* Reads an object from memory; *out is NULL where it fails. */
    hbp_status (*load)(hbp_context *context, const void *user, const void *data, size_t bytes, void **out);
    void (*release)(hbp_context *context, const void *user, void *object);
    /* Makes the checksums of a changed file right again (reseal.h); NULL: it has none. */
    void (*reseal)(uint8_t *file, uint64_t bytes);
    /* What an object must be that is read despite a change behind right checksums, or without any (NULL:
     * anything). */
    void (*expect)(hbp_context *context, const void *user, void *object);
    /* Saves an object, and reads one, under a path, for harm_survived; NULL: not asked. */
    hbp_status (*save)(hbp_context *context, const void *user, const char *path);
    hbp_status (*open)(hbp_context *context, const void *user, const char *path, void **out);
    const void *user;
} harm_kind;

static const uint8_t harm_masks[] = {0x01, 0x80, 0xff, 0x20};
enum { HARM_MASKS = sizeof harm_masks, HARM_BYTES = 1 << 20 /* memory that a small bad file may take */ };

/* All changes of a byte, with sanitizers half of them: the others of the byte after it. */
#define HARM_APART TEST_FEW(1, 2)

static inline size_t harm_first(size_t at)
{
    return at % HARM_APART;
}

/* Loads an exact copy, so that a sanitizer sees a read past the end; what is left and what was taken. */
static inline hbp_status harm_load(hbp_context *context, failing *f, const harm_kind *kind, const void *data,
                                   size_t bytes, const char *what, size_t at)
{
    void *object;
    uint8_t *copy = malloc(bytes ? bytes : 1);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, data, bytes);
    int64_t live = f->live;
    f->peak_bytes = f->bytes;
    hbp_status status = kind->load(context, kind->user, copy, bytes, &object);
    ck_assert_int_lt(f->peak_bytes - f->bytes, HARM_BYTES);
    if (status == HBP_OK) {
        ck_assert_ptr_nonnull(object);
        if (kind->expect)
            kind->expect(context, kind->user, object);
        kind->release(context, kind->user, object);
    } else {
        ck_assert_msg(status == HBP_E_FORMAT || status == HBP_E_VERSION, "%s at %d: %s", what, (int)at,
                      hbp_status_name(status));
        ck_assert_ptr_null(object);
        ck_assert_str_ne(hbp_context_message(context), "");
    }
    ck_assert_int_eq(f->live, live);
    free(copy);
    return status;
}

/* A load that fails as it should: a status of bad files, a message, nothing left, little memory taken. */
static inline hbp_status harm_refused(hbp_context *context, failing *f, const harm_kind *kind,
                                      const void *data, size_t bytes, const char *what, size_t at)
{
    hbp_status status = harm_load(context, f, kind, data, bytes, what, at);
    ck_assert_msg(status != HBP_OK, "%s at %d is not found", what, (int)at);
    return status;
}

/* Every cut that leaves less than the first `whole` bytes is found; others may hold what the kind expects. */
static inline void harm_cut(const harm_kind *kind, const uint8_t *file, size_t bytes, size_t whole)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    for (size_t cut = 0; cut < bytes; cut++)
        if (cut < whole)
            ck_assert_int_eq(harm_refused(context, &f, kind, file, cut, "cut", cut), HBP_E_FORMAT);
        else
            harm_load(context, &f, kind, file, cut, "cut", cut);
    hbp_context_free(context);
}

/* Every changed byte, every cut and a byte more are found. */
static inline void harm_found(const harm_kind *kind, const uint8_t *file, size_t bytes)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    uint8_t *data = malloc(bytes + 1);
    ck_assert_ptr_nonnull(data);
    memcpy(data, file, bytes);
    data[bytes] = 0;
    for (size_t at = 0; at < bytes; at++)
        for (size_t m = harm_first(at); m < HARM_MASKS; m += HARM_APART) {
            data[at] ^= harm_masks[m];
            harm_refused(context, &f, kind, data, bytes, "changed byte", at);
            data[at] ^= harm_masks[m];
        }
    harm_refused(context, &f, kind, data, bytes + 1, "one byte more", bytes);
    free(data);
    hbp_context_free(context);
    harm_cut(kind, file, bytes, bytes);
}

/* Every changed byte of the first `range`, behind right checksums if there are any: refused, or the object is
 * what the kind expects. Returns how many were loaded; *refused: the others. */
static inline size_t harm_borne(const harm_kind *kind, const uint8_t *file, size_t bytes, size_t range,
                                size_t *refused)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    uint8_t *changed = malloc(bytes);
    size_t loaded = 0;
    ck_assert_ptr_nonnull(changed);
    *refused = 0;
    for (size_t at = 0; at < range; at++)
        for (size_t m = harm_first(at); m < HARM_MASKS; m += HARM_APART) {
            memcpy(changed, file, bytes);
            changed[at] ^= harm_masks[m];
            if (kind->reseal)
                kind->reseal(changed, bytes);
            if (harm_load(context, &f, kind, changed, bytes, "byte", at) == HBP_OK)
                loaded++;
            else
                ++*refused;
        }
    free(changed);
    hbp_context_free(context);
    return loaded;
}

/* A file without checksums: every changed byte, every cut, and every byte left out. */
static inline void harm_done(const harm_kind *kind, const uint8_t *file, size_t bytes, size_t whole)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    uint8_t *less = malloc(bytes);
    size_t refused, loaded = harm_borne(kind, file, bytes, bytes, &refused);
    ck_assert_uint_gt(loaded, 0);
    ck_assert_uint_gt(refused, loaded);
    harm_cut(kind, file, bytes, whole);
    ck_assert_ptr_nonnull(less);
    for (size_t at = 0; at < bytes; at++) {
        memcpy(less, file, at);
        memcpy(less + at, file + at + 1, bytes - at - 1);
        harm_load(context, &f, kind, less, bytes - 1, "byte left out", at);
    }
    free(less);
    hbp_context_free(context);
}

typedef struct harm_calls {
    const harm_kind *kind;
    const void *data;
    size_t bytes;
    char folder[64];
    char path[128];
} harm_calls;

static inline hbp_status harm_release(hbp_context *context, const harm_kind *kind, hbp_status status,
                                      void *object)
{
    ck_assert_int_eq(status == HBP_OK, object != NULL);
    if (object)
        kind->release(context, kind->user, object);
    return status;
}

static inline hbp_status harm_load_once(hbp_context *context, void *user)
{
    const harm_calls *c = user;
    void *object = NULL;
    hbp_status status = c->kind->load(context, c->kind->user, c->data, c->bytes, &object);
    return harm_release(context, c->kind, status, object);
}

static inline hbp_status harm_open_once(hbp_context *context, void *user)
{
    const harm_calls *c = user;
    void *object = NULL;
    hbp_status status = c->kind->open(context, c->kind->user, c->path, &object);
    return harm_release(context, c->kind, status, object);
}

/* A save that fails leaves what was there, and nothing beside it. */
static inline hbp_status harm_save_once(hbp_context *context, void *user)
{
    static const char before[] = "what was there";
    const harm_calls *c = user;
    size_t bytes;
    file_write(c->path, before, sizeof before);
    hbp_status status = c->kind->save(context, c->kind->user, c->path);
    char *data = file_read(c->path, &bytes);
    int same = bytes == sizeof before && memcmp(data, before, bytes) == 0;
    ck_assert_int_eq(status == HBP_OK, !same);
    ck_assert_int_eq(folder_count(c->folder), 1);
    free(data);
    return status;
}

/* Looks at a request to cancel. */
typedef struct harm_looks {
    int64_t load, save, open;
} harm_looks;

/* Every allocation that fails and every request to cancel: in reading `data` (NULL: nothing), in saving, and
 * in reading what was saved. */
static inline harm_looks harm_survived(const harm_kind *kind, const void *data, size_t bytes)
{
    harm_calls c = {kind, data, bytes, "", ""};
    harm_looks looks = {0};
    folder_make(c.folder);
    folder_path(c.path, c.folder, "file");
    if (data) {
        failing_sweep(harm_load_once, &c);
        looks.load = cancel_sweep(harm_load_once, &c);
    }
    if (kind->save) {
        failing_sweep(harm_save_once, &c);
        looks.save = cancel_sweep(harm_save_once, &c);
    }
    if (kind->open) {
        failing_sweep(harm_open_once, &c);
        looks.open = cancel_sweep(harm_open_once, &c);
    }
    folder_remove(c.folder);
    return looks;
}

#endif
