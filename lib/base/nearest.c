#include "base/nearest.h"

#include <stddef.h>
#include <string.h>

enum { MOST = 64 };

/* Case is no difference: presets are written in small letters, people write H100. */
static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

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
            int best = last[j - 1] + (lower(a[i - 1]) != lower(b[j - 1]));
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]) &&
                before[j - 2] + 1 < best)
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

static int begins(const char *text, const char *with)
{
    while (*with && lower(*text) == lower(*with))
        text++, with++;
    return !*with;
}

/* The first that begins with the name, of three letters and more; NULL: none. */
static const char *find_longer(const char *name, const char *(*get)(int64_t index), int64_t count)
{
    for (int64_t i = 0; i < count && length_of(name) > 2; i++)
        if (begins(get(i), name))
            return get(i);
    return NULL;
}

/* The longest that the name begins with, of three letters and more, h100 of h100-80gb; NULL: none. */
static const char *find_shorter(const char *name, const char *(*get)(int64_t index), int64_t count)
{
    const char *found = NULL;
    for (int64_t i = 0; i < count; i++)
        if (length_of(get(i)) > 2 && begins(name, get(i)) && (!found || length_of(get(i)) > length_of(found)))
            found = get(i);
    return found;
}

const char *hbp__nearest(const char *name, const char *(*get)(int64_t index), int64_t count)
{
    int edits;
    const char *nearest = find_nearest(name, get, count, &edits), *longer = find_longer(name, get, count),
               *shorter = find_shorter(name, get, count);
    if (edits == 0 || (edits == 1 && !longer))
        return nearest;
    return longer ? longer : shorter ? shorter : nearest;
}

const char *hbp__resembling(const char *name, const char *(*get)(int64_t index), int64_t count)
{
    int edits, letters = length_of(name), most = letters / 3;
    const char *nearest = find_nearest(name, get, count, &edits), *longer = find_longer(name, get, count),
               *shorter = find_shorter(name, get, count);
    most = most < 1 ? 1 : most > 3 ? 3 : most;
    if (!nearest || (edits <= 1 && edits < letters))
        return edits && longer ? longer : nearest;
    if (shorter)
        return shorter;
    return edits <= most && edits < letters ? nearest : longer;
}
