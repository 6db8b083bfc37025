/* hbp --help, hbp COMMAND --help, and all of it as a page for man. */
#include <stdio.h>
#include <string.h>

#include "options.h"

enum { TEXT_AT = 31, COLUMNS = 110 };

static const char *const sections[CLI_SECTIONS] = {
    "data", "model and machine", "what a step holds", "packs", "search", "output"};

const char *cli_section_name(int section)
{
    return sections[section];
}

/* Words from column TEXT_AT on, on as many lines as they need; the first line is `used` columns long already.
 */
static void print_wrapped(const char *text, int used)
{
    int at = used;
    while (*text) {
        int length = (int)strcspn(text, " ");
        int is_first = at <= TEXT_AT;
        if (at >= TEXT_AT + 1 && at + 1 + length > COLUMNS) {
            putchar('\n');
            at = 0;
            is_first = 1;
        }
        at += printf("%*s%.*s", is_first ? TEXT_AT - at : 1, "", length, text);
        text += length;
        text += strspn(text, " ");
    }
    putchar('\n');
}

void cli_print_options(const cli_command *command)
{
    int count;
    const cli_option *options = cli_get_options(&count);
    printf("usage: hbp %s%s%s [options]\n%s\n", command->name, command->argument[0] ? " " : "",
           command->argument, command->summary);
    for (int section = 0; section < CLI_SECTIONS; section++) {
        int is_begun = 0;
        for (int i = 0; i < count; i++) {
            if (!(options[i].commands & command->bit) || options[i].section != section)
                continue;
            if (!is_begun)
                printf("\n%s\n", sections[section]);
            is_begun = 1;
            char text[1024];
            cli_describe(&options[i], text, sizeof text);
            int used = printf("  --%s %s", options[i].name, options[i].placeholder);
            if (used >= TEXT_AT) {
                putchar('\n');
                used = 0;
            }
            print_wrapped(text, used);
        }
    }
}

static void print_list(const char *title, const char *family)
{
    int at = printf("%s:", title);
    const char *name = hbp_preset_get_name(family, 0), *next;
    for (int64_t i = 1; name; i++, name = next) {
        next = hbp_preset_get_name(family, i);
        if (at + (int)strlen(name) + 2 > COLUMNS)
            at = printf("\n ") - 1;
        at += printf(next ? " %s," : " %s\n", name);
    }
}

void cli_print_help(void)
{
    int count;
    const cli_command *commands = cli_get_commands(&count);
    printf("usage: hbp COMMAND [FILE] [options]\n\n");
    for (int i = 0; i < count; i++)
        printf("  %-11s%-9s %s\n", commands[i].name, commands[i].argument, commands[i].summary);
    printf(
        "\nFILE holds lengths: .npy, text, CSV, JSON lines, Megatron .idx, any of them gzipped, or - for\n"
        "standard input. PLAN is a plan, or the file of a task schedule, of a run of tasks or of a run of a\n"
        "pipeline. `hbp COMMAND --help` lists the options; every command that answers takes --json.\n"
        "Exit status: 0 on success, 1 on failure, 2 on wrong usage, 130 after Ctrl-C.\n\n");
    print_list("models", "model");
    print_list("vision-language models", "vlm");
    print_list("workloads of many tasks", "workload");
    print_list("machines", "machine");
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
    printf(
        ".\\\" Made by hbp help --man; do not edit.\n"
        ".TH HBP 1 \"\" \"hbp %s\" \"User Commands\"\n.SH NAME\n"
        "hbp \\- plan the training of transformers on sequences of very different lengths\n"
        ".SH SYNOPSIS\n.B hbp\n.I COMMAND\n[\\fIFILE\\fR] [\\fIoptions\\fR]\n"
        ".SH DESCRIPTION\n.I FILE\nholds lengths: .npy, text, CSV, JSON lines, Megatron .idx, any of them\n"
        "gzipped, or \\- for standard input.\n.I PLAN\n"
        "is a plan, or the file of a task schedule, of a run of tasks or of a run of a pipeline.\n"
        ".SH COMMANDS\n",
        hbp_version_string());
    for (int i = 0; i < count; i++)
        put_command(&commands[i]);
    printf(".SH PRESETS\n");
    put_names("models", "model");
    put_names("vision\\-language models", "vlm");
    put_names("workloads of many tasks", "workload");
    put_names("machines", "machine");
    printf(".SH \"EXIT STATUS\"\n.TP\n0\nsuccess\n.TP\n1\n"
           "failure: one line on standard error says what, with the value and the limit\n"
           ".TP\n2\nwrong usage: nothing was written\n.TP\n130\nafter Ctrl\\-C\n");
}
