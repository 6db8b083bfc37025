/* hbp --help, hbp COMMAND --help, hbp help --OPTION, and all of it as a page for man. */
#include <stdio.h>
#include <string.h>

#include "options.h"

/* Where texts stand, and where on a screen that is NARROW. */
enum { TEXT_AT = 31, TEXT_AT_NARROW = 8, NARROW = 72, MOST_WIDTH = 110 };

static const char *const sections[CLI_SECTIONS] = {
    "data", "model and machine", "what a step holds", "packs", "search", "output"};

const char *cli_section_name(int section)
{
    return sections[section];
}

#define START_LENGTHS "hbp lengths build/lengths.npy"
#define START_PLAN    "hbp plan build/lengths.npy --model llama-3.1-8b --machine h100:4 -o build/plan.msgpack"
#define START_SHOW    "hbp show build/plan.msgpack --step 17 --rank 3"

static const char *const start_here[] = {START_LENGTHS, START_PLAN, START_SHOW};

static int help_width(void)
{
    int width = screen_width();
    return width && width < MOST_WIDTH ? width : MOST_WIDTH;
}

/* Words from column `indent` on, on as many lines as they need; the first line is `used` columns long
 * already.
 */
static void print_wrapped(FILE *to, const char *text, int used, int indent)
{
    while (*text) {
        int before = used > indent ? 1 : indent - used;
        int bytes = bytes_of_line(text, help_width() - used - before);
        fprintf(to, "%*s%.*s\n", before, "", bytes, text);
        text += bytes;
        text += strspn(text, " ");
        used = 0;
    }
}

/* Bytes of `text`, a word wider than `most`, up to the last comma that fits; 0: there is none. A shell joins
 * what a backslash alone parts. */
static int bytes_to_comma(const char *text, int most)
{
    int bytes = most - 1 < (int)strcspn(text, " \n'") ? most - 1 : 0;
    while (bytes > 0 && text[bytes - 1] != ',')
        bytes--;
    return bytes;
}

/* A command line; where it is too long for the screen, over several lines as a shell reads them. */
static void print_example(FILE *to, const char *text)
{
    int indent = 2;
    for (const char *end = text + strcspn(text, "\n"); *text; end = text + strcspn(text, "\n")) {
        int most = help_width() - indent, left = (int)(end - text), bytes = left;
        const char *next = " \\";
        int next_indent = 4;
        if (left > most && most > 12) {
            bytes = most - 2;
            while (bytes > 0 && text[bytes] != ' ')
                bytes--;
            if (bytes == 0 && (bytes = bytes_to_comma(text, most)) > 0) {
                next = "\\";
                next_indent = 0;
            }
            bytes = bytes > 0 ? bytes : (int)strcspn(text, " \n");
        }
        fprintf(to, "%*s%.*s%s\n", indent, "", bytes, text, bytes < left ? next : "");
        text += bytes;
        text += strspn(text, " \n");
        indent = next_indent;
    }
}

static void print_described(const cli_option *option)
{
    int text_at = help_width() < NARROW ? TEXT_AT_NARROW : TEXT_AT;
    char text[1024];
    cli_describe(option, text, sizeof text);
    int used = printf("  --%s%s%s", option->name, option->placeholder[0] ? " " : "", option->placeholder);
    if (used >= text_at) {
        putchar('\n');
        used = 0;
    }
    print_wrapped(stdout, text, used, text_at);
}

void cli_print_options(const cli_command *command)
{
    int count;
    const cli_option *options = cli_get_options(&count);
    print_wrapped(stdout, command->summary, 0, 0);
    printf("\nusage: hbp %s%s%s [options]\n\n", command->name, command->argument[0] ? " " : "",
           command->argument);
    print_wrapped(stdout, "examples, from the root of the repository after its quickstart, hbp on the path",
                  0, 0);
    for (int i = 0; i < CLI_EXAMPLES && command->examples[i]; i++)
        print_example(stdout, command->examples[i]);
    for (int section = 0; section < CLI_SECTIONS; section++) {
        int is_begun = 0;
        for (int i = 0; i < count; i++) {
            if (!(options[i].commands & command->bit) || options[i].section != section)
                continue;
            if (!is_begun)
                printf("\n%s\n", sections[section]);
            is_begun = 1;
            print_described(&options[i]);
        }
    }
}

/* The commands of an option's row: "hbp plan, compare". */
static void print_takers(const cli_option *option)
{
    int known;
    const cli_command *commands = cli_get_commands(&known);
    char text[512] = "hbp ";
    for (int k = 0; k < known; k++)
        if (option->commands & commands[k].bit) {
            size_t length = strlen(text);
            snprintf(text + length, sizeof text - length, "%s%s", length > 4 ? ", " : "", commands[k].name);
        }
    print_wrapped(stdout, text, 0, 0);
}

int cli_print_option(const char *name)
{
    int count, found = 0;
    const cli_option *options = cli_get_options(&count);
    for (int i = 0; i < count; i++) {
        if (strcmp(options[i].name, name) != 0)
            continue;
        if (found++)
            printf("\n");
        print_takers(&options[i]);
        print_described(&options[i]);
    }
    return found;
}

static void print_list(FILE *to, const char *title, const char *family)
{
    int at = fprintf(to, "  %s:", title);
    const char *name = hbp_preset_get_name(family, 0), *next;
    for (int64_t i = 1; name; i++, name = next) {
        next = hbp_preset_get_name(family, i);
        if (at + (int)strlen(name) + 2 > help_width())
            at = fprintf(to, "\n   ") - 1;
        at += fprintf(to, next ? " %s," : " %s\n", name);
    }
}

void cli_print_help(FILE *to)
{
    int count;
    const cli_command *commands = cli_get_commands(&count);
    fprintf(to, "usage: hbp COMMAND [FILE] [options]\n\n");
    print_wrapped(to, "start here, from the root of the repository after its quickstart, hbp on the path", 0,
                  0);
    for (size_t i = 0; i < sizeof start_here / sizeof *start_here; i++)
        print_example(to, start_here[i]);
    for (int i = 0; i < count; i++) {
        if (i == 0 || commands[i].group != commands[i - 1].group)
            fprintf(to, "\n%s\n", cli_command_group(commands[i].group));
        print_wrapped(to, commands[i].summary,
                      fprintf(to, "  %-11s%-12s", commands[i].name, commands[i].argument), 25);
    }
    fprintf(to, "\n");
    print_wrapped(
        to,
        "`hbp help COMMAND` lists a command's options with their defaults, and has examples; `hbp help "
        "--OPTION` says what an option does. Every command that answers takes --json, and --wide where a "
        "screen is too narrow. FILE holds lengths: .npy, text, CSV, JSON lines, Megatron .idx or MDS, any of "
        "them compressed with gzip or zstd, Parquet or Arrow; or - for standard input. PLAN is a plan, or "
        "the file of a task schedule, of a run of tasks or of a run of a pipeline; expand takes a plan by "
        "patterns, as show and validate do too.",
        0, 0);
    print_wrapped(to, "Exit status: 0 success, 1 failure, 2 wrong usage, 130 Ctrl-C.", 0, 0);
    fprintf(to, "\npresets\n");
    print_list(to, "models (hbp model)", "model");
    print_list(to, "vision-language models", "vlm");
    print_list(to, "workloads of many tasks", "workload");
    print_list(to, "machines (hbp machine)", "machine");
    print_list(to, "software stacks (hbp stack)", "stack");
    print_list(to, "attention kernels of stacks", "attention");
}

/* Text for troff: hyphens that are minus signs, no backslash of its own, and no request at a line's start. */
static void put_roff(const char *text)
{
    if (*text == '.' || *text == '\'')
        printf("\\&");
    for (; *text; text++)
        if (*text == '\\')
            printf("\\e");
        else if (*text == '-')
            printf("\\-");
        else
            putchar(*text);
}

static void put_command(const cli_command *command)
{
    int count;
    const cli_option *options = cli_get_options(&count);
    printf(".SS \"hbp %s", command->name);
    if (command->argument[0])
        printf(" %s", command->argument);
    printf("\"\n");
    put_roff(command->summary);
    printf("\n");
    printf(".PP\n.nf\n");
    for (int i = 0; i < CLI_EXAMPLES && command->examples[i]; i++) {
        put_roff(command->examples[i]);
        printf("\n");
    }
    printf(".fi\n");
    for (int section = 0; section < CLI_SECTIONS; section++)
        for (int i = 0; i < count; i++) {
            if (!(options[i].commands & command->bit) || options[i].section != section)
                continue;
            char text[1024];
            cli_describe(&options[i], text, sizeof text);
            printf(".TP\n\\fB\\-\\-");
            put_roff(options[i].name);
            printf("\\fR");
            if (options[i].placeholder[0]) {
                printf(" \\fI");
                put_roff(options[i].placeholder);
                printf("\\fR");
            }
            printf("\n");
            put_roff(text);
            printf("\n");
        }
}

static void put_names(const char *title, const char *family)
{
    printf(".TP\n%s\n", title);
    const char *name = hbp_preset_get_name(family, 0), *next;
    for (int64_t i = 1; name; i++, name = next) {
        next = hbp_preset_get_name(family, i);
        put_roff(name);
        printf(next ? ",\n" : "\n");
    }
}

void cli_print_man(void)
{
    int count;
    const cli_command *commands = cli_get_commands(&count);
    printf(".\\\" Made by hbp help --man; do not edit.\n"
           ".TH HBP 1 \"\" \"hbp %s\" \"User Commands\"\n.SH NAME\n"
           "hbp \\- plan the training of transformers on sequences of very different lengths\n"
           ".SH SYNOPSIS\n.B hbp\n.I COMMAND\n[\\fIFILE\\fR] [\\fIoptions\\fR]\n"
           ".SH DESCRIPTION\n.I FILE\nholds lengths: .npy, text, CSV, JSON lines, Megatron .idx or MDS,\n"
           "any of them compressed with gzip or zstd, Parquet or Arrow; or \\- for standard input.\n.I PLAN\n"
           "is a plan, or the file of a task schedule, of a run of tasks or of a run of a pipeline;\n"
           "expand takes a plan by patterns, as show and validate do too.\n"
           ".SH COMMANDS\n",
           hbp_version_string());
    for (int i = 0; i < count; i++)
        put_command(&commands[i]);
    printf(".SH PRESETS\n");
    put_names("models", "model");
    put_names("vision\\-language models", "vlm");
    put_names("workloads of many tasks", "workload");
    put_names("machines", "machine");
    put_names("software stacks", "stack");
    put_names("attention kernels of stacks", "attention");
    printf(".SH \"EXIT STATUS\"\n.TP\n0\nsuccess\n.TP\n1\n"
           "failure: one line on standard error says what, with the value and the limit\n"
           ".TP\n2\nwrong usage: nothing was written\n.TP\n130\nafter Ctrl\\-C\n");
}
