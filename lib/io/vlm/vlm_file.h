/* A vision-language plan in the file of its data (docs: file format). */
#ifndef HBP_IO_VLM_FILE_H
#define HBP_IO_VLM_FILE_H

#include "base/context.h"
#include "hbp/io.h"

/* hbp_vlm_plan_load of an open file. */
hbp_status hbp__vlm_load(hbp_context *context, const hbp_plan_file *file, hbp_vlm_plan **out);

#endif
