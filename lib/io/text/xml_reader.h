/* XML from outside, read by expat within bounds: a document declares no entities, nests no deeper than 64 and
 * has at most 16 MiB and a million elements. */
#ifndef HBP_IO_XML_READER_H
#define HBP_IO_XML_READER_H

#include <stdint.h>

#include "base/context.h"

#define HBP__XML_BYTES (INT64_C(16) << 20)

typedef struct hbp__xml hbp__xml;

struct hbp__xml {
    hbp_context *context;
    const char *what; /* for messages: "NCCL topology" */
    const char *root; /* the name that the outermost element must have */

    /* Called at the begin and the end of an element (close may be NULL); a failure ends the reading.
     * `attributes` alternates names and values up to a NULL. `depth` is 1 for the root. */
    hbp_status (*open)(hbp__xml *xml, const char *name, const char **attributes);
    hbp_status (*close)(hbp__xml *xml, const char *name);
    void *user;

    int64_t depth;
    int64_t elements;
    hbp_status status;
    void *parser;
};

/* Reads data [bytes] by the handlers. HBP_E_FORMAT with the line for what is not well-formed or out of
 * bounds. */
hbp_status hbp__xml_read(hbp__xml *xml, const char *data, int64_t bytes);

/* The value of an attribute; NULL when the element has none such. */
const char *hbp__xml_get(const char **attributes, const char *name);

/* Fails with "what, line N: " in front; for handlers. */
hbp_status hbp__xml_fail(const hbp__xml *xml, hbp_status status, const char *format, ...) HBP__PRINTF(3, 4);

#endif
