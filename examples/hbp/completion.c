/* hbp completion: what a shell completes of the command line, from the table of options. */
#include <stdio.h>
#include <string.h>

#include "options.h"

/* The choices of an option behind one another, 0 where it has none. */
static int put_choices(const cli_option *option, const char *between)
{
    cli_taken taken = cli_option_takes(option);
    const char *name;
    int64_t value;
    int i = 0;
    for (; (name = cli_choice_name(&taken, i, &value)) != NULL; i++)
        printf("%s%s", i ? between : "", name);
    return i;
}

static int is_of(const cli_option *option, const cli_command *command)
{
    return (option->commands & command->bit) != 0;
}

static int has_value(const cli_option *option)
{
    return cli_option_takes(option).kind != CLI_FLAG;
}

static int has_choices(const cli_option *option)
{
    cli_taken taken = cli_option_takes(option);
    int64_t value;
    return cli_choice_name(&taken, 0, &value) != NULL;
}

static int is_preset(const cli_option *option)
{
    return strcmp(option->name, "model") == 0 || strcmp(option->name, "machine") == 0 ||
           strcmp(option->name, "vlm") == 0 || strcmp(option->name, "stack") == 0;
}

static void put_presets(const char *option)
{
    const char *name;
    for (int64_t i = 0; (name = hbp_preset_get_name(option, i)) != NULL; i++)
        printf("%s%s", i ? " " : "", name);
}

static void put_commands(void)
{
    int count;
    const cli_command *commands = cli_get_commands(&count);
    for (int i = 0; i < count; i++)
        printf("%s%s", i ? " " : "", commands[i].name);
}

/* Commands whose argument is one of a list; a model or machine may be a file as well. */
enum { LISTED = CLI_COMPLETION | CLI_HELP | CLI_MODEL | CLI_MACHINE | CLI_STACK };

/* The words that the argument of a command may be; none: a file. */
static void put_argument(const cli_command *command)
{
    if (command->bit == CLI_COMPLETION)
        printf("bash zsh fish");
    else if (command->bit == CLI_HELP)
        put_commands();
    else if (command->bit & (CLI_MODEL | CLI_MACHINE | CLI_STACK))
        put_presets(command->name);
}

static void print_bash(void)
{
    int count, known;
    const cli_command *commands = cli_get_commands(&known);
    const cli_option *options = cli_get_options(&count);
    printf("# bash completion of hbp; made by hbp completion bash.\n"
           "_hbp() {\n"
           "    local now=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words= values=\n"
           "    COMPREPLY=()\n"
           "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
           "        COMPREPLY=($(compgen -W '");
    put_commands();
    printf(" --help --version' -- \"$now\"))\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n");
    for (int k = 0; k < known; k++) {
        printf("    %s)\n        words='", commands[k].name);
        for (int i = 0; i < count; i++)
            if (is_of(&options[i], &commands[k]))
                printf("--%s ", options[i].name);
        printf("--help'\n        case $before in\n");
        for (int i = 0; i < count; i++) {
            if (!is_of(&options[i], &commands[k]) || !has_value(&options[i]))
                continue;
            printf("        --%s) values='", options[i].name);
            if (is_preset(&options[i]))
                put_presets(options[i].name);
            else if (!put_choices(&options[i], " "))
                printf("FILE");
            printf("' ;;\n");
        }
        printf("        *) [ \"${now#-}\" = \"$now\" ] && values='");
        put_argument(&commands[k]);
        printf("' ;;\n        esac ;;\n");
    }
    printf("    esac\n"
           "    case $now in\n"
           "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$now\")) ;;\n"
           "    *)\n"
           "        [ -z \"$values\" ] || [ \"$values\" = FILE ] || COMPREPLY=($(compgen -W \"$values\" -- "
           "\"$now\"))\n"
           "        [ ${#COMPREPLY[@]} != 0 ] || COMPREPLY=($(compgen -f -- \"$now\")) ;;\n"
           "    esac\n"
           "}\n"
           "complete -o filenames -F _hbp hbp\n");
}

/* Text inside '...' of a shell, without what zsh reads in descriptions. */
static void put_quoted(const char *text, const char *avoid)
{
    for (; *text; text++)
        if (*text == '\'')
            printf("'\\''");
        else if (strchr(avoid, *text))
            printf("\\%c", *text);
        else
            putchar(*text);
}

static void print_zsh(void)
{
    int count, known;
    const cli_command *commands = cli_get_commands(&known);
    const cli_option *options = cli_get_options(&count);
    printf("#compdef hbp\n# Made by hbp completion zsh.\n_hbp() {\n    if (( CURRENT == 2 )); then\n"
           "        local -a commands=(\n");
    for (int k = 0; k < known; k++) {
        printf("            '%s:", commands[k].name);
        put_quoted(commands[k].summary, "");
        printf("'\n");
    }
    printf("        )\n        _describe command commands\n        return\n    fi\n"
           "    local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n    case $command in\n");
    for (int k = 0; k < known; k++) {
        printf("    %s) _arguments", commands[k].name);
        for (int i = 0; i < count; i++) {
            if (!is_of(&options[i], &commands[k]))
                continue;
            char text[1024];
            cli_describe(&options[i], text, sizeof text);
            printf(" \\\n        '--%s[", options[i].name);
            put_quoted(text, "[]:\\");
            printf("]");
            if (has_value(&options[i])) {
                printf(":");
                put_quoted(options[i].placeholder, "[]:\\");
                printf(":");
                if (has_choices(&options[i]) || is_preset(&options[i])) {
                    printf("(");
                    if (is_preset(&options[i]))
                        put_presets(options[i].name);
                    else
                        (void)put_choices(&options[i], " ");
                    printf(")");
                } else {
                    printf("_files");
                }
            }
            printf("'");
        }
        if (commands[k].argument[0]) {
            printf(" \\\n        '1:%s:", commands[k].argument);
            if (commands[k].bit & LISTED) {
                printf("(");
                put_argument(&commands[k]);
                printf(")");
            } else {
                printf("_files");
            }
            printf("'");
        }
        printf(" ;;\n");
    }
    printf("    esac\n}\n_hbp \"$@\"\n");
}

static void print_fish(void)
{
    int count, known;
    const cli_command *commands = cli_get_commands(&known);
    const cli_option *options = cli_get_options(&count);
    printf("# fish completion of hbp; made by hbp completion fish.\n");
    for (int k = 0; k < known; k++) {
        printf("complete -c hbp -f -n __fish_use_subcommand -a %s -d '", commands[k].name);
        put_quoted(commands[k].summary, "");
        printf("'\n");
        if (commands[k].bit & LISTED) {
            printf("complete -c hbp -f -n '__fish_seen_subcommand_from %s' -a '", commands[k].name);
            put_argument(&commands[k]);
            printf("'\n");
        }
        for (int i = 0; i < count; i++) {
            if (!is_of(&options[i], &commands[k]))
                continue;
            char text[1024];
            cli_describe(&options[i], text, sizeof text);
            printf("complete -c hbp -n '__fish_seen_subcommand_from %s' -l %s -d '", commands[k].name,
                   options[i].name);
            put_quoted(text, "\\");
            printf("'");
            if (has_choices(&options[i]) || is_preset(&options[i])) {
                printf(is_preset(&options[i]) ? " -r -a '" : " -x -a '");
                if (is_preset(&options[i]))
                    put_presets(options[i].name);
                else
                    (void)put_choices(&options[i], " ");
                printf("'");
            } else if (has_value(&options[i])) {
                printf(" -r");
            }
            printf("\n");
        }
    }
}

int cli_completion(cli *c)
{
    static const char *const shells[] = {"bash", "zsh", "fish"};
    if (strcmp(c->file, "bash") == 0)
        print_bash();
    else if (strcmp(c->file, "zsh") == 0)
        print_zsh();
    else if (strcmp(c->file, "fish") == 0)
        print_fish();
    else {
        const char *nearest = cli_nearest(c->file, shells, 3);
        return cli_usage("there is no completion for '%s'; the shells are %s, %s and %s%s%s%s", c->file,
                         shells[0], shells[1], shells[2], nearest ? "; did you mean " : "",
                         nearest ? nearest : "", nearest ? "?" : "");
    }
    return 0;
}
