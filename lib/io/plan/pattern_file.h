/* Files of plans by patterns (docs: files of one object). */
#ifndef HBP_IO_PATTERN_FILE_H
#define HBP_IO_PATTERN_FILE_H

#include "io/table/table_file.h"

#define HBP__PATTERN_FORMAT "hbp-patterns"

extern const hbp__table_format hbp__pattern_format;

#endif
