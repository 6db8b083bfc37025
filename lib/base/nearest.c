#include "base/nearest.h"

#include <stddef.h>
#include <string.h>

enum { MOST = 64 };

static int length_of(const char *text)
{
    int n = 0;
    while (n < MOST && text[n])
        n++;
    return n;
}

/* Wagner and Fischer (1974) with Damerau's swap of neighbours, three rows of the table at a time. */
static int edit_distance(const char *a, const char *b)
{
    int row[3][MOST + 1];
    int columns = length_of(b), rows = length_of(a);
    for (int j = 0; j <= columns; j++)
        row[0][j] = j;
    for (int i = 1; i <= rows; i++) {
        int *now = row[i % 3], *last = row[(i - 1) % 3];
        const int *before = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= columns; j++) {
            int best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[rows % 3][columns];
}

/* The nearest, and in *edits how far it is. */
static const char *find_nearest(const char *name, const char *(*get)(int64_t index), int64_t count,
                                int *edits)
{
    const char *nearest = NULL;
    *edits = 0;
    for (int64_t i = 0; i < count; i++) {
        int here = edit_distance(name, get(i));
        if (!nearest || here < *edits) {
            nearest = get(i);
            *edits = here;
        }
    }
    return nearest;
}

/* The first that begins with the name, of three letters and more; NULL: none. */
static const char *find_longer(const char *name, const char *(*get)(int64_t index), int64_t count)
{
    for (int64_t i = 0; i < count && length_of(name) > 2; i++)
        if (strncmp(get(i), name, strlen(name)) == 0)
            return get(i);
    return NULL;
}

const char *hbp__nearest(const char *name, const char *(*get)(int64_t index), int64_t count)
{
    int edits;
    const char *nearest = find_nearest(name, get, count, &edits), *longer = find_longer(name, get, count);
    return longer && edits > 0 ? longer : nearest;
}

const char *hbp__resembling(const char *name, const char *(*get)(int64_t index), int64_t count)
{
    int edits, letters = length_of(name), most = letters / 3;
    const char *nearest = find_nearest(name, get, count, &edits);
    most = most < 1 ? 1 : most > 3 ? 3 : most;
    if (nearest && edits <= most && edits < letters)
        return nearest;
    return find_longer(name, get, count);
}
