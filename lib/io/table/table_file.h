/* Checked files of one object each: a header of its numbers and names, and a body of its columns, deflated
 * (docs: files of one object). */
#ifndef HBP_IO_TABLE_FILE_H
#define HBP_IO_TABLE_FILE_H

#include "base/context.h"
#include "data/table/table.h"
#include "io/file/file_bytes.h"

/* One kind of such a file; its objects begin with their hbp__memory. */
typedef struct hbp__table_format {
    const hbp__table *table;
    const char *name;     /* of the format: "hbp-tasks" */
    const char *what;     /* for messages: "a file of a task schedule" */
    const char *argument; /* what calls name the object: "schedule" */
    int32_t version;      /* the newest */
    int64_t most_names;
    size_t digest_at; /* where the object's uint64_t digest stands; one of its numbers */
    /* Whether columns are safe to walk and agree with the numbers: HBP_E_INVALID names the first breach. */
    hbp_status (*check)(hbp_context *context, const void *object);
    uint64_t (*digest)(const void *object);
} hbp__table_format;

/* Writes the object, whole or not at all, with a level of zlib. */
hbp_status hbp__table_save(hbp_context *context, const hbp__table_format *format, const void *object,
                           const char *path, int level);

/* Reads one; nothing in the file is believed. *out is hbp__table_new's, with the context's memory. */
hbp_status hbp__table_load(hbp_context *context, const hbp__table_format *format, const hbp__file_bytes *file,
                           void **out);
hbp_status hbp__table_load_path(hbp_context *context, const hbp__table_format *format, const char *path,
                                void **out);

/* All of a public call that saves an object, quickly; and of one that loads one into *out, a pointer to it.
 */
hbp_status hbp__table_save_call(hbp_context *context, const hbp__table_format *format, const void *object,
                                const char *path);
#define HBP__TABLE_LOAD_CALL(context, format, path, out)                                                     \
    do {                                                                                                     \
        void *hbp__loaded = NULL;                                                                            \
        HBP__ENTER_OUT(context, out);                                                                        \
        HBP__TRY(hbp__table_load_path(context, format, path, &hbp__loaded));                                 \
        *(out) = hbp__loaded;                                                                                \
        return HBP_OK;                                                                                       \
    } while (0)

#endif
