/* A file's bytes and the harm that is done to them, whatever object they hold: a reader finds it, takes
 * little memory and leaves nothing behind. */
#ifndef HBP_TESTS_HARM_H
#define HBP_TESTS_HARM_H

#include "failing.h"
#include "test.h"

/* Files of one kind of object; the functions get `user`. */
typedef struct harm_kind {
    /* Reads an object from memory; *out is NULL where it fails. */
    hbp_status (*load)(hbp_context *context, const void *user, const void *data, size_t bytes, void **out);
    void (*release)(hbp_context *context, const void *user, void *object);
    /* Makes the checksums of a changed file right again (reseal.h). */
    void (*reseal)(uint8_t *file, uint64_t bytes);
    /* What an object must be that is read despite a change behind right checksums (NULL: anything). */
    void (*expect)(hbp_context *context, const void *user, void *object);
    const void *user;
} harm_kind;

static const uint8_t harm_masks[] = {0x01, 0x80, 0xff, 0x20};
enum { HARM_MASKS = sizeof harm_masks, HARM_BYTES = 1 << 20 /* memory that a small bad file may take */ };

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
        for (size_t m = 0; m < HARM_MASKS; m++) {
            data[at] ^= harm_masks[m];
            harm_refused(context, &f, kind, data, bytes, "changed byte", at);
            data[at] ^= harm_masks[m];
        }
    for (size_t cut = 0; cut < bytes; cut++)
        ck_assert_int_eq(harm_refused(context, &f, kind, data, cut, "cut", cut), HBP_E_FORMAT);
    harm_refused(context, &f, kind, data, bytes + 1, "one byte more", bytes);
    free(data);
    hbp_context_free(context);
}

/* Every changed byte of the first `range` behind right checksums: refused, or the object is what the kind
 * expects. Returns how many were loaded; *refused: the others. */
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
        for (size_t m = 0; m < HARM_MASKS; m++) {
            memcpy(changed, file, bytes);
            changed[at] ^= harm_masks[m];
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

#endif
