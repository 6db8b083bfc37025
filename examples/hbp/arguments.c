/* Reads the command line by the table of options. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"

enum { MOST_WORDS = 200 };

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
        if (strcmp(names[count], "default") != 0) /* that is to leave the option out */
            snprintf(all + at, sizeof all - at, "%s%s", at ? ", " : "", names[count]);
    }
    return cli_usage("--%s is '%s'; it must be one of %s%s", o->name, text, all,
                     did_you_mean("", cli_nearest(text, names, count), "").s);
}

/* The field that an option sets, whose name says what its numbers count. */
static const char *field_of(const cli_option *o, char name[64])
{
    const char *of[] = {[CLI_TOKENS] = "max_length", [CLI_SIZE] = "limit_bytes", [CLI_RATE] = "bytes_per_s"};
    const char *dot = strchr(o->fields, '.');
    if (o->kind == CLI_TOKENS || o->kind == CLI_SIZE || o->kind == CLI_RATE)
        return of[o->kind];
    snprintf(name, 64, "%.*s", dot ? (int)strcspn(dot + 1, " ") : 0, dot ? dot + 1 : "");
    return name;
}

/* A number with a unit, as the library reads it; `plain` is what one without may be. */
static int take_quantity(const cli_option *o, const char *text, const char *plain, double *value)
{
    char name[64], must[400] = "; out of memory";
    hbp_context *context = NULL;
    hbp_status status = hbp_context_create(NULL, &context);
    if (status >= 0) {
        status = hbp_read_quantity(context, field_of(o, name), text, value);
        const char *say = strstr(hbp_context_message(context), "; it must be "),
                   *rounds = strstr(hbp_context_message(context), ", which rounds to 0");
        if (rounds || say)
            snprintf(must, sizeof must, "%s", rounds ? rounds : say);
    }
    hbp_context_free(context);
    if (status < 0)
        return cli_usage("--%s is '%s'%s%s", o->name, text, must, plain);
    return 0;
}

/* Whether a unit is behind the number, of an option that may have one: 80GiB, 45%, not 80 or 1e5. */
static int has_unit(const cli_option *o, const cli_taken *taken, const char *text)
{
    char name[64];
    const char *field = field_of(o, name);
    size_t length = strlen(text), end = strlen(field);
    int is_count = taken->kind == CLI_LONG || taken->kind == CLI_WHOLE;
    if (is_count && (end < 3 || strcmp(field + end - 3, "_ns") != 0))
        return 0;
    return length && (isalpha((unsigned char)text[length - 1]) || text[length - 1] == '%') &&
           isdigit((unsigned char)text[strspn(text, "+-. ")]);
}

static int take_real(const cli_option *o, const cli_taken *taken, const char *text, double *value)
{
    char *end;
    int is_rate = taken->kind == CLI_RATE;
    *value = strtod(text, &end) * (is_rate ? 1e9 : 1);
    if (has_unit(o, taken, text) || (is_rate && (end == text || *end))) {
        int wrong = take_quantity(o, text, is_rate ? "; a plain number is GB/s" : "", value);
        if (wrong)
            return wrong;
    } else if (end == text || *end) {
        return cli_usage("--%s is '%s'; it must be a number", o->name, text);
    }
    if (!(*value >= taken->least_real && *value <= taken->most_real))
        return cli_usage("--%s is %s; it must be in %g..%g", o->name, text,
                         is_rate ? taken->least_real / 1e9 : taken->least_real,
                         is_rate ? taken->most_real / 1e9 : taken->most_real);
    return 0;
}

/* A whole number that stands with a unit, or among tokens as 0.5M or 1e5. */
static int take_whole_quantity(const cli_option *o, const cli_taken *taken, const char *text, int64_t *value)
{
    double real;
    int wrong = take_quantity(o, text, taken->kind == CLI_SIZE ? "; a plain number is MiB" : "", &real);
    if (wrong)
        return wrong;
    if (real < 0 && taken->most == INT64_MAX)
        return cli_usage("--%s is %s; it must be at least %lld", o->name, text, (long long)taken->least);
    if (!(real >= (double)taken->least && real <= (double)taken->most && real < 0x1p63))
        return cli_usage("--%s is %s; it must be in %lld..%lld", o->name, text, (long long)taken->least,
                         (long long)taken->most);
    *value = (int64_t)real;
    if ((double)*value != real && has_unit(o, taken, text))
        return cli_usage("--%s is %s, which is %.15g; it must be a whole number", o->name, text, real);
    if ((double)*value != real)
        return cli_usage("--%s is %s; it must be a whole number", o->name, text);
    return 0;
}

static int take_whole(const cli_option *o, const cli_taken *taken, const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    int is_wide = errno == ERANGE, shift = taken->kind == CLI_SIZE ? 20 : 0, is_whole = end > text && !*end;
    int is_size_of_none = taken->kind == CLI_SIZE && end > text && !has_unit(o, taken, text);
    if (!is_whole && is_size_of_none)
        return cli_usage("--%s is '%s'; it must be a whole number of MiB, or have a unit, such as 4GiB",
                         o->name, text);
    if (!is_whole && (has_unit(o, taken, text) || taken->kind == CLI_TOKENS || taken->kind == CLI_SIZE))
        return take_whole_quantity(o, taken, text, value);
    if (!is_whole)
        return cli_usage("--%s is '%s'; it must be a whole number", o->name, text);
    int is_out = is_wide || *value < taken->least >> shift || *value > taken->most >> shift;
    if (is_out && taken->most > INT32_MAX && text[0] == '-')
        return cli_usage("--%s is %s; it must be at least %lld", o->name, text,
                         (long long)(taken->least >> shift));
    if (is_out)
        return cli_usage("--%s is %s; it must be in %lld..%lld%s", o->name, text,
                         (long long)(taken->least >> shift), (long long)(taken->most >> shift),
                         shift ? ", in MiB, or have a unit" : "");
    *value = (int64_t)((uint64_t)*value << shift);
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
    case CLI_RATE:
    case CLI_SHARE:
        return take_real(o, taken, text, field);
    case CLI_WORD: {
        int64_t place;
        int wrong = take_choice(o, taken, text, &place);
        if (!wrong)
            *(const char **)field = text;
        return wrong;
    }
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

int cli_is_given(const cli *c, const char *option)
{
    int count;
    const cli_option *options = cli_get_options(&count);
    const cli_command *command = cli_find_command(c->command);
    const cli_option *o = find(option, strlen(option), command->bit);
    return o && c->is_given[o - options];
}

/* Names of the options that the commands of `bits` take. */
static int list_names(int bits, const char *names[MOST_WORDS])
{
    int count, known = 0;
    const cli_option *options = cli_get_options(&count);
    for (int i = 0; i < count && known < MOST_WORDS; i++)
        if (options[i].commands & bits)
            names[known++] = options[i].name;
    return known;
}

const char *cli_nearest_option(const char *name)
{
    const char *names[MOST_WORDS];
    return cli_nearest(name, names, list_names(~0, names));
}

/* "hbp plan, compare": the commands that take the option. */
static shown show_takers(const char *name)
{
    shown text = {"hbp"};
    int known;
    size_t at = 3;
    const cli_command *commands = cli_get_commands(&known);
    for (int k = 0; k < known && at < sizeof text.s - 32; k++)
        if (find(name, strlen(name), commands[k].bit))
            at += (size_t)snprintf(text.s + at, sizeof text.s - at, "%s%s", at > 3 ? ", " : " ",
                                   commands[k].name);
    return text;
}

static int unknown_option(const cli_command *command, const char *argument)
{
    const char *names[MOST_WORDS];
    char name[64], see[80];
    const char *word = argument + strspn(argument, "-");
    size_t length = strcspn(word, "=");
    snprintf(name, sizeof name, "%.*s", (int)length, word);
    snprintf(see, sizeof see, "; see hbp %s --help", command->name);
    if (argument[1] != '-' && length == 1)
        return cli_usage("unknown option '%s'; options of one letter are -o FILE and -h, see hbp %s --help",
                         argument, command->name);
    if (find(name, strlen(name), command->bit))
        return cli_usage("unknown option '%s'; did you mean --%s?", argument, name);
    const char *nearest = cli_nearest(name, names, list_names(command->bit, names));
    if (find(name, strlen(name), ~0))
        return cli_usage("--%s is no option of hbp %s, but of %s%s", name, command->name, show_takers(name).s,
                         nearest ? did_you_mean("--", nearest, see).s : see);
    if (!nearest && argument[1] == 'o' && find("output", 6, command->bit))
        return cli_usage("unknown option '%s'; did you mean -o %s?", argument, argument + 2);
    const char *elsewhere = nearest ? NULL : cli_nearest_option(name);
    if (elsewhere)
        return cli_usage("unknown option '%s'; the nearest, --%s, is one of %s%s", argument, elsewhere,
                         show_takers(elsewhere).s, see);
    return cli_usage("unknown option '%s'%s", argument, did_you_mean("--", nearest, see).s);
}

/* The value of an option that takes one: behind =, or the next argument. */
static int take_value(const cli_option *o, int argc, char **argv, int *i, const char **value)
{
    if (*value)
        return 0;
    const char *next = *i + 1 < argc ? argv[*i + 1] : NULL;
    if (next && strncmp(next, "--", 2) == 0 && next[2] && find(next + 2, strcspn(next + 2, "="), ~0))
        return cli_usage("--%s needs a value, %s, and %s is an option (--%s=%s is that value)", o->name,
                         o->placeholder, next, o->name, next);
    if (!next)
        return cli_usage("--%s needs a value, %s", o->name, o->placeholder);
    *value = next;
    (*i)++;
    return 0;
}

/* One more argument, which is no option. */
static int take_argument(cli *c, const cli_command *command, const char *argument)
{
    if (!c->file && command->argument[0] && !*argument)
        return cli_usage("%s of hbp %s is empty; see hbp %s --help", command->argument, command->name,
                         command->name);
    if (c->file && cli_find_command(c->file) && access(c->file, F_OK) != 0)
        return cli_usage("'%s' is one command too many; did you mean hbp %s %s?", c->file, command->name,
                         argument);
    if (c->file || !command->argument[0])
        return cli_usage("'%s' is one argument too many; hbp %s takes %s%s, see hbp %s --help", argument,
                         command->name, command->argument[0] ? "one " : "options alone", command->argument,
                         command->name);
    c->file = argument;
    return 0;
}

static int take_option(cli *c, const cli_command *command, int argc, char **argv, int *i)
{
    const char *argument = argv[*i];
    int count, is_short = strcmp(argument, "-o") == 0;
    const cli_option *options = cli_get_options(&count);
    const char *name = is_short ? "output" : argument + 2;
    const char *value = is_short ? NULL : strchr(name, '=');
    const cli_option *o = NULL;
    if (is_short || argument[1] == '-')
        o = find(name, value ? (size_t)(value - name) : strlen(name), command->bit);
    if (!o && is_short)
        return cli_usage("hbp %s writes no file, so it has no -o; see hbp %s --help", command->name,
                         command->name);
    if (!o)
        return unknown_option(command, argument);
    value = value ? value + 1 : NULL;
    cli_taken taken = cli_option_takes(o);
    if (taken.kind == CLI_FLAG && value)
        return cli_usage("--%s takes no value, and '%s' is one; leave it out", o->name, value);
    int wrong = taken.kind == CLI_FLAG ? 0 : take_value(o, argc, argv, i, &value);
    if (!wrong && taken.kind == CLI_TEXT && !*value && strcmp(o->name, "count-column") != 0)
        wrong = cli_usage("--%s needs a value, %s, and '' is empty", o->name, o->placeholder);
    if (!wrong)
        wrong = store(c, o, &taken, value);
    if (!wrong && o - options < CLI_MOST_OPTIONS)
        c->is_given[o - options] = 1;
    return wrong;
}

/* hbp help --max-length, -o. */
static int is_asked_about(const cli *c, const char *argument)
{
    const char *name = argument + strspn(argument, "-");
    return argument[0] == '-' && *name && !c->file && !find(name, strlen(name), CLI_HELP);
}

int cli_parse(cli *c, const cli_command *command, int argc, char **argv)
{
    int is_over = 0; /* behind "--" there are no options */
    c->step = c->rank = -1;
    for (int i = 2; i < argc; i++) {
        const char *argument = argv[i];
        int wrong = 0;
        if (!is_over && strcmp(argument, "--") == 0)
            is_over = 1;
        else if (!is_over && command->bit == CLI_HELP && is_asked_about(c, argument))
            c->file = argument;
        else if (!is_over && argument[0] == '-' && argument[1])
            wrong = take_option(c, command, argc, argv, &i);
        else
            wrong = take_argument(c, command, argument);
        if (wrong)
            return wrong;
    }
    if (command->bit == CLI_FIT && !c->file && !c->anchor)
        return cli_usage("hbp fit needs TIMELINE or --anchor; hbp fit --help has examples");
    if (command->needs_file && !c->file)
        return cli_usage("hbp %s needs %s; hbp %s --help has examples", command->name, command->argument,
                         command->name);
    return 0;
}
