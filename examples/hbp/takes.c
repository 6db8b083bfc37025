/* What an option takes, by the library's record of its field: type, range, choices, default and text. */
#include <stdio.h>
#include <string.h>

#include "options.h"

/* What a text means for a default may be said in it: own words go first. */
#define SAYS_DEFAULT(text) (strstr(text, "default") != NULL)

/* The record of the field that the first word of `fields` names; 0: there is none. */
static int find_field(const char *fields, hbp_field *field)
{
    char structure[64];
    size_t length = strcspn(fields, ".");
    if (length >= sizeof structure || !fields[length])
        return 0;
    memcpy(structure, fields, length);
    structure[length] = '\0';
    const char *name = fields + length + 1;
    length = strcspn(name, " ");
    for (int64_t i = 1;; i++) {
        *field = (hbp_field){.struct_size = sizeof *field};
        if (hbp_record_get_field(structure, i, field) < 0)
            return 0;
        if (strlen(field->name) == length && memcmp(field->name, name, length) == 0)
            return 1;
    }
}

/* The clause of a text that begins with "0: ", which says what the default is. */
static const char *find_default(const char *text)
{
    for (const char *at = text; at; at = strstr(at, "; ")) {
        at += at == text ? 0 : 2;
        if (strncmp(at, "0: ", 3) == 0)
            return at + 3;
    }
    return NULL;
}

static size_t clause(const char *text)
{
    size_t length = strcspn(text, ";");
    for (const char *stop = text; (stop = strstr(stop, ". ")) != NULL; stop++)
        if ((size_t)(stop - text) < length)
            length = (size_t)(stop - text);
    return length;
}

/* The record's kind of the field. */
static int kind_of(const hbp_field *field)
{
    if (field->is_flag)
        return CLI_FLAG;
    if (field->choices)
        return CLI_CHOICE;
    if (field->type == HBP_FIELD_DOUBLE)
        return CLI_REAL;
    return field->type == HBP_FIELD_INT32 ? CLI_WHOLE : CLI_LONG;
}

/* A number that the library takes for "none" and the like is no number of the command line. */
static void take_range(cli_taken *taken, const hbp_field *field)
{
    taken->is_ranged = 1;
    taken->least = field->least > 0 ? field->least : 0;
    taken->most = field->most;
    taken->least_real = field->least_real;
    taken->most_real = field->most_real;
}

cli_taken cli_option_takes(const cli_option *option)
{
    cli_taken taken = {
        .kind = option->kind, .text = option->help, .most = INT64_MAX >> 20, .most_real = 1e18};
    hbp_field field = {.struct_size = sizeof field};
    int known = option->fields[0] && find_field(option->fields, &field);
    if (option->kind == CLI_RECORD)
        taken.kind = known ? kind_of(&field) : CLI_LONG;
    if (taken.kind == CLI_WHOLE)
        taken.most = INT32_MAX;
    if (taken.kind == CLI_SHARE)
        taken.most_real = 1;
    if (taken.kind == CLI_TOKENS || taken.kind == CLI_SIZE)
        taken.most = INT64_MAX;
    if (known && field.is_ranged)
        take_range(&taken, &field);
    if (strcmp(option->name, "nodes") == 0) /* of a machine's fields, 0 is not known */
        taken.least = 1;
    taken.choices = known && taken.kind == CLI_CHOICE ? field.choices : NULL;
    known = known && taken.kind != CLI_FLAG && taken.kind != CLI_CHOICE && taken.kind != CLI_TEXT &&
            taken.kind != CLI_WORD;
    for (const char *at = option->fields; known; at = strchr(at, ' ')) {
        if (!at || !find_field(at + (*at == ' '), &field))
            break;
        at += *at == ' ';
        const char *preset = find_default(field.text);
        if (preset && !taken.preset[0])
            snprintf(taken.preset, sizeof taken.preset, "%.*s", (int)clause(preset), preset);
        if (!taken.text && field.text[0] && strncmp(field.text, "as in ", 6) != 0)
            taken.text = field.text;
    }
    if (!taken.text)
        taken.text = "";
    if (SAYS_DEFAULT(taken.text))
        taken.preset[0] = '\0';
    return taken;
}

/* Word `index` of "format of the file: npy, text, csv (default: found out)"; NULL past the last. */
static const char *word_of(const char *text, int index)
{
    enum { WORDS = 16, LETTERS = 16 };
    static char words[WORDS][LETTERS];
    const char *at = strstr(text, ": ");
    for (int i = 0; at && i <= index && i < WORDS; i++) {
        at += 2;
        size_t length = strcspn(at, ", (;");
        snprintf(words[i], LETTERS, "%.*s", (int)length, at);
        if (i == index)
            return words[i];
        at = strncmp(at + length, ", ", 2) == 0 ? at + length : NULL;
    }
    return NULL;
}

const char *cli_choice_name(const cli_taken *taken, int index, int64_t *value)
{
    if (taken->kind == CLI_WORD) {
        *value = index;
        return word_of(taken->text, index);
    }
    if (taken->kind != CLI_CHOICE)
        return NULL;
    int left = index;
    for (int64_t i = 0;; i++) {
        hbp_choice choice = {.struct_size = sizeof choice};
        if (hbp_record_get_choice(taken->choices, i, &choice) < 0)
            return NULL;
        *value = choice.value;
        if (choice.value >= taken->least && choice.value <= taken->most && left-- == 0)
            return choice.name;
    }
}

const char *cli_value_name(const char *choices, int64_t value)
{
    hbp_choice choice = {.struct_size = sizeof choice};
    for (int64_t i = 0; hbp_record_get_choice(choices, i, &choice) >= 0; i++)
        if (choice.value == value)
            return choice.name;
    return "unknown";
}

/* A record's text without what it says to a caller in C: "0: 6", "-1: none", "nonzero: ". */
static size_t put_text(const char *from, char *text, size_t bytes)
{
    size_t at = 0;
    text[0] = '\0';
    for (const char *next; *from; from = next) {
        size_t length = strcspn(from, ";");
        next = from + length + (from[length] == ';') + (from[length] == ';' && from[length + 1] == ' ');
        static const char *const before[] = {"nonzero: ", "> 0: "};
        for (size_t i = 0; i < sizeof before / sizeof *before; i++)
            if (strncmp(from, before[i], strlen(before[i])) == 0) {
                from += strlen(before[i]);
                length -= strlen(before[i]);
            }
        if (strncmp(from, "0: ", 3) == 0 || strncmp(from, "-1: ", 4) == 0)
            continue;
        int put = snprintf(text + at, bytes - at, "%s%.*s", at ? "; " : "", (int)length, from);
        at += put > 0 ? (size_t)put : 0;
        if (at >= bytes)
            return bytes - 1;
    }
    return at;
}

/* A bound as people read it: 2^50, 1048576. */
static shown show_limit(int64_t value)
{
    shown out;
    int power = 0;
    while (power < 62 && (INT64_C(1) << power) < value)
        power++;
    if (power > 20 && (INT64_C(1) << power) == value)
        snprintf(out.s, sizeof out.s, "2^%d", power);
    else
        snprintf(out.s, sizeof out.s, "%lld", (long long)value);
    return out;
}

/* Cuts "(default: X)" off the end of the command's own words. */
static void cut_default(char *text, char *preset, size_t bytes)
{
    char *at = strstr(text, " (default");
    size_t length = strlen(text);
    if (!at || text[length - 1] != ')')
        return;
    text[length - 1] = '\0';
    const char *value = at + strlen(" (default");
    snprintf(preset, bytes, "%s", value + strspn(value, ": "));
    *at = '\0';
}

/* Choices behind one another; the default's name, where nothing else says what it is. */
static size_t put_choices(cli_taken *taken, char *text, size_t bytes)
{
    size_t at = 0;
    int64_t value;
    const char *name;
    int is_own = taken->preset[0] != '\0';
    for (int i = 0; (name = cli_choice_name(taken, i, &value)) != NULL && at < bytes; i++) {
        if (value == 0 && is_own && strcmp(name, "default") == 0)
            continue;
        at += (size_t)snprintf(text + at, bytes - at, "%s%s", at ? ", " : "", name);
        if (value == 0 && !is_own && strcmp(name, "default") != 0)
            snprintf(taken->preset, sizeof taken->preset, "%s", name);
    }
    return at;
}

void cli_describe(const cli_option *option, char *text, size_t bytes)
{
    cli_taken taken = cli_option_takes(option);
    if (option->help)
        snprintf(text, bytes, "%s", option->help);
    else
        put_text(taken.text, text, bytes);
    cut_default(text, taken.preset, sizeof taken.preset);
    size_t at = strlen(text);
    int is_open = taken.most == INT64_MAX || taken.most == INT32_MAX || taken.most == INT64_MAX >> 20;
    char range[512] = "";
    if (taken.kind == CLI_CHOICE)
        put_choices(&taken, range, sizeof range);
    else if (taken.kind == CLI_SHARE || (taken.kind == CLI_REAL && taken.is_ranged))
        snprintf(range, sizeof range, "%g..%g", taken.least_real, taken.most_real);
    else if (taken.is_ranged && taken.kind != CLI_FLAG && taken.kind != CLI_TEXT && taken.kind != CLI_WORD &&
             taken.kind != CLI_RATE && !is_open)
        snprintf(range, sizeof range, "%lld..%.40s", (long long)taken.least, show_limit(taken.most).s);
    if ((range[0] || taken.preset[0]) && at < bytes)
        snprintf(text + at, bytes - at, " [%s%s%s%s]", range, range[0] && taken.preset[0] ? "; " : "",
                 taken.preset[0] ? "default: " : "", taken.preset);
}
