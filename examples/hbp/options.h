/* The options of hbp's subcommands, in one table: what the command line, --help, the page for man and
 * completion are made from. An option that is a field of a struct of the library takes type, range, choices,
 * default and, where it has none of its own, its text from the library's record of that field. */
#ifndef HBP_EXAMPLES_OPTIONS_H
#define HBP_EXAMPLES_OPTIONS_H

#include "cli.h"

/* CLI_WHOLE goes into an int32 of the library, CLI_LONG into an int64; CLI_RECORD: as the field has it. */
enum {
    CLI_RECORD,
    CLI_FLAG,
    CLI_TEXT,
    CLI_WHOLE,
    CLI_LONG,
    CLI_TOKENS,
    CLI_SIZE, /* bytes, of which a plain number is MiB */
    CLI_REAL,
    CLI_RATE, /* bytes a second, of which a plain number is GB/s */
    CLI_SHARE,
    CLI_CHOICE,
    CLI_WORD /* one of the words behind the first ": " of the option's own text */
};

/* Sections of --help. */
enum {
    CLI_FOR_DATA,
    CLI_FOR_MACHINE,
    CLI_FOR_STEP,
    CLI_FOR_PACKS,
    CLI_FOR_SEARCH,
    CLI_FOR_OUTPUT,
    CLI_SECTIONS
};

typedef struct cli_option {
    const char *name;
    int section;
    int kind;      /* CLI_RECORD, or what the command makes of it: other units */
    size_t offset; /* in cli: int64_t, const char * or double */
    int commands;
    const char *fields; /* "hbp_step_options.effort"; more behind blanks are fields that it sets as well */
    const char *placeholder;
    const char *help; /* NULL: the text of the first field that has one */
} cli_option;

/* What an option takes. */
typedef struct cli_taken {
    int kind;
    int is_ranged; /* by the record, not by its type alone */
    int64_t least, most;
    double least_real, most_real;
    const char *choices; /* of the record */
    const char *text;
    char preset[80]; /* what it is when not given, by the record; "": not said */
} cli_taken;

/* The options in the order of --help, `count` of them. */
const cli_option *cli_get_options(int *count);
const char *cli_section_name(int section);
cli_taken cli_option_takes(const cli_option *option);
/* Choice `index` of what an option takes, with its value; NULL past the end. */
const char *cli_choice_name(const cli_taken *taken, int index, int64_t *value);
/* The option's text with range or choices and default, as --help has it. */
void cli_describe(const cli_option *option, char *text, size_t bytes);

/* The name of a value among the choices of a record: ("HBP_TASKS_METHODS", 1) is "spindle". */
const char *cli_value_name(const char *choices, int64_t value);

#endif
