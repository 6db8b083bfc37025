/* Getters of an object's columns. */
#ifndef HBP_BASE_COLUMN_H
#define HBP_BASE_COLUMN_H

#include <stddef.h>
#include <stdint.h>

/* Defines the public getter `function` of column `member`: the values, and their number, `rows` of the
 * object, in *count when it is wanted; NULL and 0 for no object. */
#define HBP__COLUMN_GETTER(type, function, object, member, rows)                                             \
    const type *function(const object *from, int64_t *count)                                                 \
    {                                                                                                        \
        if (count)                                                                                           \
            *count = from ? from->rows : 0;                                                                  \
        return from ? from->member : NULL;                                                                   \
    }

#endif
