/* Files of pipelines' runs (docs: files of one object). */
#ifndef HBP_IO_PIPELINE_FILE_H
#define HBP_IO_PIPELINE_FILE_H

#include "io/table/table_file.h"

/* Of an hbp_pipeline_run. */
extern const hbp__table_format hbp__pipeline_run_format;

#endif
