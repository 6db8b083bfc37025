#include "base/nearest.h"

#include <stddef.h>

enum { MOST = 64 };

static int length_of(const char *text)
{
    int n = 0;
    while (n < MOST && text[n])
        n++;
    return n;
}

/* Wagner and Fischer (1974), one row of the table at a time. */
static int edit_distance(const char *a, const char *b)
{
    int row[MOST + 1];
    int columns = length_of(b), rows = length_of(a);
    for (int j = 0; j <= columns; j++)
        row[j] = j;
    for (int i = 1; i <= rows; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= columns; j++) {
            int best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[columns];
}

const char *hbp__nearest(const char *name, const char *(*get)(int64_t index), int64_t count)
{
    const char *nearest = NULL;
    int least = 0;
    for (int64_t i = 0; i < count; i++) {
        int here = edit_distance(name, get(i));
        if (!nearest || here < least) {
            nearest = get(i);
            least = here;
        }
    }
    return nearest;
}
