/* The file of a cost: JSON, each term with where it came from (docs: cost model, "Cost files"). */
#ifndef HBP_IO_COST_FILE_H
#define HBP_IO_COST_FILE_H

#include <stdint.h>

#include "base/context.h"
#include "hbp/io.h"
#include "io/value/value.h"

/* Reads a cost out of `text` [bytes]; `name` is for messages. HBP_E_FORMAT, HBP_E_VERSION. */
hbp_status hbp__cost_read(hbp_context *context, const char *name, const char *text, int64_t bytes,
                          hbp_cost **out);

/* The same of a map of terms that are their values alone, as plan files hold them; lockstep sets and vision
 * units may be absent. Each term is from `source`. */
hbp_status hbp__cost_read_values(hbp_context *context, const hbp__value *terms, const char *source,
                                 hbp_cost **out);

/* The cost in the header of a plan file; takes scratch. HBP_E_FORMAT where there is none. */
hbp_status hbp__cost_of_plan(hbp_context *context, const hbp_plan_file *file, hbp_cost **out);

#endif
