/* Reads the command line by the table of options. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

enum { MOST_WORDS = 200 };

int cli_parse_tokens(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (end == text || errno)
        return 1;
    int shift = 0;
    if (*end == 'K' || *end == 'k')
        shift = 10;
    else if (*end == 'M' || *end == 'm')
        shift = 20;
    else if (*end == 'G' || *end == 'g')
        shift = 30;
    end += shift > 0;
    if (*end || number < 0 || number > (INT64_MAX >> shift))
        return 1;
    *value = (int64_t)number << shift;
    return 0;
}

/* "; did you mean X?", or else what `other` says. */
static shown did_you_mean(const char *before, const char *nearest, const char *other)
{
    shown out;
    if (nearest)
        snprintf(out.s, sizeof out.s, "; did you mean %s%s?", before, nearest);
    else
        snprintf(out.s, sizeof out.s, "%s", other);
    return out;
}

static int take_choice(const cli_option *o, const cli_taken *taken, const char *text, int64_t *value)
{
    const char *names[MOST_WORDS];
    char all[512] = "";
    int count = 0;
    for (; count < MOST_WORDS && (names[count] = cli_choice_name(taken, count, value)) != NULL; count++) {
        if (strcmp(names[count], text) == 0)
            return 0;
        size_t at = strlen(all);
        snprintf(all + at, sizeof all - at, "%s%s", count ? ", " : "", names[count]);
    }
    return cli_usage("--%s is '%s'; it must be one of %s%s", o->name, text, all,
                     did_you_mean("", cli_nearest(text, names, count), "").s);
}

static int take_real(const cli_option *o, const cli_taken *taken, const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    if (end == text || *end)
        return cli_usage("--%s is '%s'; it must be a number", o->name, text);
    if (!(*value >= taken->least_real && *value <= taken->most_real))
        return cli_usage("--%s is %s; it must be in %g..%g", o->name, text, taken->least_real,
                         taken->most_real);
    return 0;
}

static int take_whole(const cli_option *o, const cli_taken *taken, const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    int is_wide = errno == ERANGE;
    if (taken->kind == CLI_TOKENS && !is_wide && *value >= 0 && cli_parse_tokens(text, value))
        return cli_usage("--%s is '%s'; it must be a number of tokens such as 131072 or 128K", o->name, text);
    if (end == text || (*end && taken->kind != CLI_TOKENS))
        return cli_usage("--%s is '%s'; it must be a whole number", o->name, text);
    if (is_wide || *value < taken->least || *value > taken->most)
        return cli_usage("--%s is %s; it must be in %lld..%lld", o->name, text, (long long)taken->least,
                         (long long)taken->most);
    return 0;
}

static int store(cli *c, const cli_option *o, const cli_taken *taken, const char *text)
{
    void *field = (char *)c + o->offset;
    switch (taken->kind) {
    case CLI_FLAG:
        *(int64_t *)field = 1;
        return 0;
    case CLI_TEXT:
        *(const char **)field = text;
        return 0;
    case CLI_REAL:
    case CLI_SHARE:
        return take_real(o, taken, text, field);
    case CLI_CHOICE:
        return take_choice(o, taken, text, field);
    default:
        return take_whole(o, taken, text, field);
    }
}

static const cli_option *find(const char *name, size_t length, int bit)
{
    int count;
    const cli_option *options = cli_get_options(&count);
    for (int i = 0; i < count; i++)
        if ((options[i].commands & bit) && strlen(options[i].name) == length &&
            memcmp(options[i].name, name, length) == 0)
            return &options[i];
    return NULL;
}

static int unknown_option(const cli_command *command, const char *argument, size_t length)
{
    const char *names[MOST_WORDS];
    char name[64], see[80];
    int count, known = 0;
    const cli_option *options = cli_get_options(&count);
    for (int i = 0; i < count && known < MOST_WORDS; i++)
        if (options[i].commands & command->bit)
            names[known++] = options[i].name;
    snprintf(name, sizeof name, "%.*s", (int)length, argument + strspn(argument, "-"));
    snprintf(see, sizeof see, "; see hbp %s --help", command->name);
    return cli_usage("unknown option '%s'%s", argument,
                     did_you_mean("--", cli_nearest(name, names, known), see).s);
}

int cli_parse(cli *c, const cli_command *command, int argc, char **argv)
{
    c->step = c->rank = -1;
    for (int i = 2; i < argc; i++) {
        const char *argument = argv[i];
        const char *name = NULL;
        size_t length = 0;
        const char *value = NULL;
        if (strcmp(argument, "-o") == 0) {
            name = "output";
            length = 6;
        } else if (strncmp(argument, "--", 2) == 0) {
            name = argument + 2;
            value = strchr(name, '=');
            length = value ? (size_t)(value - name) : strlen(name);
            value = value ? value + 1 : NULL;
        } else if (argument[0] == '-' && argument[1]) {
            return unknown_option(command, argument, strlen(argument));
        } else if (c->file || !command->argument[0]) {
            return cli_usage("'%s' is one argument too many; see hbp %s --help", argument, command->name);
        } else {
            c->file = argument;
            continue;
        }
        const cli_option *o = find(name, length, command->bit);
        if (!o)
            return unknown_option(command, argument, length);
        cli_taken taken = cli_option_takes(o);
        if (taken.kind == CLI_FLAG && value)
            return cli_usage("--%s takes no value", o->name);
        if (taken.kind != CLI_FLAG && !value) {
            if (i + 1 == argc)
                return cli_usage("--%s needs a value", o->name);
            value = argv[++i];
        }
        int wrong = store(c, o, &taken, value);
        if (wrong)
            return wrong;
    }
    if (command->needs_file && !c->file)
        return cli_usage("hbp %s needs %s; see hbp %s --help", command->name, command->argument,
                         command->name);
    return 0;
}
