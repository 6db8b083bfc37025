#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* The library writes files; standard output gets a copy of one. */
static int copy_out(cli *c)
{
    const char *folder = getenv("TMPDIR");
    char path[512];
    int length = snprintf(path, sizeof path, "%s/hbp-XXXXXX", folder && *folder ? folder : "/tmp");
    int descriptor = length < (int)sizeof path ? mkstemp(path) : -1;
    if (descriptor < 0)
        return cli_error("cannot make a temporary file in %s: %s", folder ? folder : "/tmp", strerror(errno));
    close(descriptor);
    int status = hbp_plan_write_json(c->context, c->plan, path) < 0 ? cli_failed(c) : 0;
    FILE *file = status == 0 ? fopen(path, "rb") : NULL;
    if (status == 0 && !file)
        status = cli_error("cannot read %s: %s", path, strerror(errno));
    char buffer[65536];
    for (size_t got; file && (got = fread(buffer, 1, sizeof buffer, file)) > 0;)
        if (fwrite(buffer, 1, got, stdout) < got)
            break;
    if (file)
        fclose(file);
    unlink(path);
    return status;
}

int cli_dump(cli *c)
{
    CLI_TRY(c, cli_load_plan(c));
    if (!c->output)
        return copy_out(c);
    CLI_TRY(c, hbp_plan_write_json(c->context, c->plan, c->output));
    cli_clear_progress();
    if (c->json) {
        c->result = json_pack("{s:s}", "path", c->output);
        return cli_print_json(c);
    }
    printf("wrote %s\n", show_name(c->output).s);
    return 0;
}
