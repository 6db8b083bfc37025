/* hbp report: one page about a plan, a schedule or a timeline. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

/* Whether the file is a timeline: text, where all others are msgpack. */
static int is_timeline(const char *path)
{
    char head[16] = "";
    FILE *file = fopen(path, "rb");
    const size_t got = file ? fread(head, 1, sizeof head - 1, file) : 0;
    if (file)
        fclose(file);
    for (size_t i = 0; i < got; i++)
        if (((unsigned char)head[i] < ' ' && !strchr("\t\r\n", head[i])) || (unsigned char)head[i] > 126)
            return 0;
    return got > 0;
}

static int fill_page(cli *c, json_t *page, report_columns *columns)
{
    const cli_object *object = cli_find_object(c);
    if (object) {
        int wrong = cli_load_object(c, object);
        return wrong ? wrong : object->report(c, page, columns);
    }
    if (c->schedule_file)
        return cli_usage("--schedule is for runs of tasks; %s is none", c->file);
    if (!is_timeline(c->file))
        return report_of_plan(c, page, columns);
    if (c->measured_file || c->compared_file)
        return cli_usage("--measured and --compared are for plans; %s is a timeline", c->file);
    return report_of_timeline(c, page, columns);
}

/* What of a path is the file's name. */
static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

int cli_report(cli *c)
{
    static const job_part parts[] = {{"reading", 60, "load 100"}, {"drawing", 40, NULL}, {NULL, 0, NULL}};
    report_columns columns = {0};
    progress_begin(parts);
    char *text = NULL;
    json_t *page = json_pack(
        "{s:o,s:[],s:[],s:[],s:o}", "title", report_text("%s", show_name(base_of(c->file)).s), "lead",
        "facts", "pictures", "footer",
        report_text("Drawn by hbp %s; docs/glossary.md of that version has all words. Times are those of "
                    "the cost model unless said to be measured; this page loads nothing.",
                    hbp_version_string()));
    int wrong = fill_page(c, page, &columns);
    if (!wrong)
        report_terms(c, page);
    if (!wrong && cli_is_interrupted())
        wrong = cli_error("cancelled before the page was written");
    if (!wrong && (report_pack_columns(&columns, page, &text) < 0 || report_write(c->output, page, text) < 0))
        wrong = cli_failed(c);
    free(text);
    report_free_columns(&columns);
    json_decref(page);
    if (wrong)
        return wrong;
    cli_finish_progress();
    if (c->json) {
        c->result = json_pack("{s:o}", "path", json_path(c->output));
        return cli_print_json(c);
    }
    say("wrote %s; open it in a browser\n", show_name(c->output).s);
    return 0;
}
