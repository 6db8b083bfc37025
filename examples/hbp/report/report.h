/* The page that hbp report writes: what of an object goes into it, and how it is written. */
#ifndef HBP_EXAMPLES_REPORT_H
#define HBP_EXAMPLES_REPORT_H

#include "../cli.h"

/* ---- columns.c: numbers of a page, 7 bits a byte, deflated and written as base64 ---- */

typedef struct report_columns {
    unsigned char *bytes;
    size_t used, room;
    json_t *list; /* {name, count} of each column, in their order */
    const char *name;
    int64_t count; /* of the column at hand */
    int failed;    /* no memory: nothing more is added */
} report_columns;

void report_column(report_columns *columns, const char *name); /* the next numbers are its */
void report_put(report_columns *columns, int64_t value);       /* at least 0 */
void report_put_signed(report_columns *columns, int64_t value);
/* What the page holds of them, to be freed, in *text; their list in the object under "columns". */
hbp_status report_pack_columns(report_columns *columns, json_t *page, char **text);
void report_free_columns(report_columns *columns);

/* ---- pictures.c: pictures in JSON, as the page's script draws them (page/charts.js) ---- */

/* Texts in printf's way. */
json_t *report_text(const char *format, ...) CLI_PRINTF(1, 2);
void report_fact(json_t *page, const char *name, shown value);
void report_lead(json_t *page, json_t *text);

/* A picture of `type` at the end of the page, and its object, the page's own. */
json_t *report_picture(json_t *page, const char *type, const char *id, const char *title, json_t *answer);

/* Rows of "bars": `value` < 0 where there is none; `note` stands behind it. */
void report_bar(json_t *picture, const char *label, double value, const char *note, int is_marked);
void report_bar_colour(json_t *picture, const char *colour); /* of the last row */
void report_limit(json_t *object, const char *label, double value);

/* A panel of "columns", and a series of it of `count` numbers. Colours are of what is shown, in every picture
 * (page/base.js, page/page.css): parts of time "compute", "exchange", "once", "step", "wait"; "sp 8" of a
 * degree; "length 0.5" of lengths, 0 of the shortest; "states" and "activations" of memory; "plain" of what
 * stands alone. */
json_t *report_panel(json_t *picture, const char *label, const char *unit);
void report_series(json_t *panel, const char *label, const char *colour, const double *values, int64_t count);
shown report_degree_colour(int32_t sp);

/* ---- What a page is made of ---- */

/* Packs of one SP degree. */
typedef struct report_degree {
    int32_t sp;
    int64_t longest; /* padded tokens of the longest, and of the shortest */
    int64_t shortest;
    int64_t samples;
} report_degree;

/* Degrees past the last share its row; ranks are folded to so many columns. */
enum { REPORT_DEGREES = 24, REPORT_RANKS = 512 };

/* A plan, and what its replay came to. */
typedef struct report_plan {
    cli *c;
    json_t *page;
    report_columns *columns;
    hbp_plan_summary summary;
    hbp_plan_view view;
    hbp_vlm_plan_summary vlm;             /* of c->vlm_plan */
    hbp_cost_terms terms;                 /* where c->cost is given */
    report_degree degree[REPORT_DEGREES]; /* ascending */
    int degrees;
    int64_t *ns;     /* [ranks] of packs */
    int64_t *peak;   /* [ranks] */
    double *apart;   /* [ranks] of them in all-to-alls */
    double *once;    /* [ranks] paid once a micro-batch */
    int64_t work_ns; /* all steps, without what is paid once a step */
    double idle;
    const int64_t *step_ns;     /* [steps] of the view, or in the pipelines of a vision-language plan */
    int64_t slowest, most_idle; /* steps of the file */
    double most_idle_share;
} report_plan;

/* plan.c */
int report_of_plan(cli *c, json_t *page, report_columns *columns);
/* plan_steps.c: totals by rank; the picture of one step, and its columns. */
hbp_status report_measure(report_plan *p);
hbp_status report_steps(report_plan *p, const int64_t *measured_ns);
/* Whether the page holds a step where every `stride`-th is drawn, and those that have a name or were asked
 * for. */
int report_takes(const report_plan *p, int64_t step, int64_t stride);
/* stages.c: what stages run, in columns, and the pictures of stages; of a vision-language plan. */
hbp_status report_operations(report_plan *p, int64_t stride, int64_t tick_ns);
/* plan_lengths.c: which lengths are in which packs; how steps are composed. */
hbp_status report_lengths(report_plan *p);
hbp_status report_composition(const report_plan *p);
/* plan_reasons.c: why these packs; most of it where c->cost is known. */
hbp_status report_reasons(report_plan *p);
/* measured.c: c->timeline beside the plan, or alone. *ns gets [packs] measured times, -1 where there is none,
 * to be freed. */
hbp_status report_match(report_plan *p, int64_t **ns);
void report_points(report_plan *p, const int64_t *measured_ns);
int report_of_timeline(cli *c, json_t *page, report_columns *columns);
/* compared.c: the methods of a file that hbp compare --json printed, into a picture of bars. */
hbp_status report_compared(cli *c, json_t *picture, const hbp_plan_summary *own);
/* schedules.c */
int report_of_schedule(cli *c, json_t *page, report_columns *columns);
int report_of_task_run(cli *c, json_t *page, report_columns *columns);
int report_of_pipeline(cli *c, json_t *page, report_columns *columns);

/* terms.c: the words that the page uses, explained at its end. */
void report_terms(const cli *c, json_t *page);

/* page.c: writes the page, whole or not at all. */
hbp_status report_write(const char *path, json_t *page, const char *columns);

/* Texts of the page, made from page/ when it is built. */
extern const char report_html[], report_style[], report_script[];

#endif
