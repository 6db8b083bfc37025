/* The file of a cost: JSON, each term with where it came from (docs: cost model, "Cost files"). */
#ifndef HBP_IO_COST_FILE_H
#define HBP_IO_COST_FILE_H

#include <stdint.h>

#include "base/context.h"
#include "hbp/io.h"

/* Reads a cost out of `text` [bytes]; `name` is for messages. HBP_E_FORMAT, HBP_E_VERSION. */
hbp_status hbp__cost_read(hbp_context *context, const char *name, const char *text, int64_t bytes,
                          hbp_cost **out);

#endif
