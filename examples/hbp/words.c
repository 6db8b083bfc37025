/* Words of the user's and of the library's: the nearest of those that there are, and fields by the options
 * that set them. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "options.h"

enum { LONGEST_WORD = 48 };

static int is_letter_of(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Letters to insert, delete, replace or swap with the next until `a` is `b`, capitals or not: O(|a| |b|). */
static int distance(const char *a, const char *b)
{
    int row[3][LONGEST_WORD + 1];
    int n = (int)strlen(a), m = (int)strlen(b);
    if (n > LONGEST_WORD || m > LONGEST_WORD)
        return LONGEST_WORD;
    for (int j = 0; j <= m; j++)
        row[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = row[i % 3], *last = row[(i - 1) % 3];
        const int *before = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = last[j - 1] + !is_letter_of(a[i - 1], b[j - 1]);
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && is_letter_of(a[i - 1], b[j - 2]) && is_letter_of(a[i - 2], b[j - 1]) &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[n % 3][m];
}

const char *cli_nearest(const char *word, const char *const *words, int count)
{
    int most = (int)strlen(word) / 3, found = most > 3 ? 3 : most < 1 ? 1 : most;
    const char *nearest = NULL;
    for (int i = 0; i < count && word[0] && word[1]; i++) { /* any letter is near to another */
        int d = distance(word, words[i]);
        if (d < found + !nearest) {
            found = d;
            nearest = words[i];
        }
    }
    for (int i = 0; i < count && !nearest && strlen(word) > 2; i++) /* cut off, --samples-per */
        if (strncmp(words[i], word, strlen(word)) == 0)
            nearest = words[i];
    return nearest;
}

/* The option of the command that sets a field of that name. */
static const cli_option *find_setter(int bit, const char *name, size_t length)
{
    int count;
    const cli_option *options = cli_get_options(&count);
    for (int i = 0; i < count; i++)
        for (const char *at = options[i].commands & bit ? options[i].fields : ""; (at = strchr(at, '.'));
             at++)
            if (strcspn(at + 1, " ") == length && memcmp(at + 1, name, length) == 0)
                return &options[i];
    return NULL;
}

static int is_of_word(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("_.-/", c));
}

/* Whether what stands before the last dot of a word is a struct of options: "hbp_step_options", "pipeline".
 */
static int is_struct(const char *word, size_t length)
{
    char name[LONGEST_WORD];
    hbp_field field = {.struct_size = sizeof field};
    int is_whole = length > 4 && memcmp(word, "hbp_", 4) == 0;
    snprintf(name, sizeof name, is_whole ? "%.*s" : "hbp_%.*s_options", (int)length, word);
    return hbp_record_get_field(name, -1, &field) >= 0;
}

/* The option that a word of a message is the field of: in backticks, behind its struct's name, or a name that
 * no English word is, samples_per_step. */
static const cli_option *find_option(int bit, const char *word, size_t length, int is_quoted)
{
    size_t start = length;
    while (start > 0 && word[start - 1] != '.')
        start--;
    int is_field = is_quoted || memchr(word, '_', length) != NULL;
    if (start > 0) {
        if (!is_struct(word, start - 1))
            return NULL;
        is_field = 1;
    }
    return is_field ? find_setter(bit, word + start, length - start) : NULL;
}

/* What messages of the library advise its callers to do, and what is typed instead. */
static const struct {
    const char *said;
    const char *typed;
} remedies[] = {
    {"; a limit has cut or dropped some of the plan's, so take what hbp_lengths_limit makes of yours",
     "; a limit has cut or dropped some of the plan's, so give its --max-length and --over-long again"},
    {"give the index of their lengths", "give --lengths FILE, the data set"},
    {"the index is of ", "--lengths is of "},
    {"`lengths` has ", "the data set has "},
    {", hbp_plan_patterns lists none", "; hbp plan --patterns lists none"},
};

/* Bytes at `from` that a remedy stands for, which *typed is; 0: none. "; hbp_plan_load (Python: Plan.load;
 * command: hbp show) reads it" keeps its command. */
static size_t find_remedy(const char *from, char typed[160])
{
    char command[24];
    int end = 0;
    for (size_t i = 0; i < sizeof remedies / sizeof *remedies; i++)
        if (strncmp(from, remedies[i].said, strlen(remedies[i].said)) == 0) {
            snprintf(typed, 160, "%s", remedies[i].typed);
            return strlen(remedies[i].said);
        }
    if (sscanf(from, "; hbp_%*[a-z_] (Python: %*[A-Za-z.]; command: hbp %23[a-z]) reads it%n", command,
               &end) < 1 ||
        !end)
        return 0;
    snprintf(typed, 160, "; hbp %s reads it", command);
    return (size_t)end;
}

const char *cli_message(const cli *c)
{
    static char text[4096];
    static const char cancelled[] = "cancelled in stage ";
    const char *given = hbp_context_message(c->context), *stage = strstr(given, cancelled);
    if (stage) { /* "step 3: cancelled while planning steps" */
        const char *doing = progress_words(stage + strlen(cancelled));
        snprintf(text, sizeof text, "%.*scancelled%s%s", (int)(stage - given), given, doing ? " while " : "",
                 doing ? doing : "");
        return text;
    }
    const cli_command *command = cli_find_command(c->command);
    const char *from = hbp_context_message(c->context);
    size_t at = 0;
    while (*from && at + 160 < sizeof text) {
        char typed[160];
        const size_t said = find_remedy(from, typed);
        if (said) {
            at += (size_t)snprintf(text + at, sizeof text - at, "%s", typed);
            from += said;
            continue;
        }
        int is_quoted = *from == '`';
        const char *word = from + is_quoted;
        size_t length = 0;
        while (is_of_word(word[length]))
            length++;
        while (length && strchr(".-", word[length - 1])) /* the end of a sentence, a range 0..9 */
            length--;
        is_quoted = is_quoted && word[length] == '`';
        const cli_option *option = length && *(word + length) != '\'' && *(word + length) != '/'
                                       ? find_option(command->bit, word, length, is_quoted)
                                       : NULL;
        if (option) {
            at += (size_t)snprintf(
                text + at, sizeof text - at, "--%s%s", option->name,
                option->kind == CLI_SIZE && strncmp(word + length + is_quoted, " is ", 4) == 0 ? " in bytes"
                                                                                               : "");
            from = word + length + is_quoted;
        } else {
            length += (size_t)(word - from);
            length = length ? length : 1;
            length = length < 128 ? length : 128;
            memcpy(text + at, from, length);
            at += length;
            from += length;
        }
    }
    text[at] = '\0';
    static const char no_plan[] = "are not a plan file";
    if (at >= sizeof no_plan - 1 && strcmp(text + at - (sizeof no_plan - 1), no_plan) == 0)
        snprintf(text + at, sizeof text - at, "; hbp plan LENGTHS -o FILE makes one");
    return text;
}
