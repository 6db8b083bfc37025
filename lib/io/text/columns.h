/* Columns of a table by their names, and their numbers: times may be given in other units than ns, sizes in
 * others than bytes, where the name says so. */
#ifndef HBP_IO_COLUMNS_H
#define HBP_IO_COLUMNS_H

#include <stdint.h>

/* The place in names [count] of the column called `name` [bytes], and what its numbers are multiplied by; of
 * the first `converted` also forms that end in _us, _ms, _s instead of _ns, and in _kib, _mib, _gib instead
 * of _bytes. -1: none. */
int32_t hbp__column_find(const char *const *names, int32_t count, int32_t converted, const char *name,
                         int64_t bytes, double *unit);

/* Whether a name ends in a unit of time or size. */
int hbp__column_has_unit(const char *name, int64_t bytes);

/* A number >= 0 times its unit, rounded. 0 when it is none, -1 when it passes 2^62. */
int hbp__column_number(const char *text, int64_t bytes, double unit, int64_t *out);

/* Takes blanks and tabs off both ends. */
void hbp__column_trim(const char **text, int64_t *bytes);

#endif
