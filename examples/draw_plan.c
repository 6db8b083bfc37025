/* Draws plans as an SVG: ranks down, predicted time along, a block for each pack on its SP group, one panel a
 * plan under one another on the same axis. The same plans give the same bytes everywhere: no floating point.
 *
 *   draw_plan OUT.svg TITLE PLAN.msgpack NAME [PLAN.msgpack NAME]...
 *
 * A block's colour is the SP degree; where a rank waits or runs a padding pack has the colour of idle, and
 * what a step takes after its packs is left blank. Hovering over a block says what it is. */
#include <hbp/hbp.h>
#include <hbp/io.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* In tenths of a pixel. */
enum { LEFT = 560, WIDTH = 8500, RIGHT = 140, TOP = 800, HEIGHT = 1920, BETWEEN = 460, AXIS = 500 };
enum { MOST_PANELS = 4, MOST_PACKS = 5000, MOST_RANKS = 1024, DEGREES = 6 };

typedef struct panel {
    const char *name;
    hbp_plan *plan;
    hbp_plan_summary about;
    hbp_plan_view view;
    int64_t end_ns; /* of the last step */
    int64_t idle_ns, rank_ns;
    int64_t top;
} panel;

static panel panels[MOST_PANELS];
static int64_t axis_ns; /* what WIDTH shows */
static int64_t degrees; /* bit k: a pack of degree 2^k .. 2^(k+1) - 1 was drawn */

/* When each rank is through with its packs so far. */
static int64_t free_ns[MOST_RANKS];

static int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Microseconds keep the product far below 2^63. */
static int64_t x_of(int64_t ns)
{
    return LEFT + ns / 1000 * WIDTH / max_i64(axis_ns / 1000, 1);
}

static int64_t y_of(const panel *p, int64_t rank)
{
    return p->top + rank * HEIGHT / p->about.ranks;
}

/* Tenths as a decimal, without a zero behind the point. */
static void put_tenths(FILE *file, int64_t tenths)
{
    fprintf(file, tenths % 10 ? "%" PRId64 ".%" PRId64 : "%" PRId64, tenths / 10, tenths % 10);
}

static void put_text(FILE *file, const char *text)
{
    for (; *text; text++) {
        const char *entity = *text == '&' ? "&amp;" : *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : NULL;
        if (entity)
            fputs(entity, file);
        else
            fputc((unsigned char)*text < 32 ? '?' : *text, file);
    }
}

static void put_label(FILE *file, int64_t x, int64_t y, const char *attributes)
{
    fputs("<text x=\"", file);
    put_tenths(file, x);
    fputs("\" y=\"", file);
    put_tenths(file, y);
    fprintf(file, "\"%s>", attributes);
}

/* The outline of ranks [first, end) from `start` to `stop`, as a path. */
static void put_block(FILE *file, const panel *p, int64_t first, int64_t end, int64_t start, int64_t stop)
{
    int64_t x = x_of(start), y = y_of(p, first);
    fputs("M", file);
    put_tenths(file, x);
    fputs(" ", file);
    put_tenths(file, y);
    fputs("h", file);
    put_tenths(file, x_of(stop) - x);
    fputs("v", file);
    put_tenths(file, y_of(p, end) - y);
    fputs("H", file);
    put_tenths(file, x);
    fputs("z", file);
}

static int degree_class(int32_t sp)
{
    int k = 0;
    while (k < DEGREES - 1 && sp >= 2 << k)
        k++;
    return k;
}

static void put_pack(FILE *file, const panel *p, int64_t step, int64_t pack, int64_t start)
{
    const hbp_plan_view *v = &p->view;
    int64_t first = v->pack_ranks[pack], sp = v->pack_sp[pack], ns = v->pack_ns[pack];
    int64_t samples = v->pack_offsets[pack + 1] - v->pack_offsets[pack];
    int k = degree_class(v->pack_sp[pack]);
    if (samples)
        degrees |= INT64_C(1) << k;
    fprintf(file, samples ? "<path class=\"d%d\" d=\"" : "<path class=\"i\" d=\"", k);
    put_block(file, p, first, first + sp, start, start + ns);
    fprintf(file, "\"><title>step %" PRId64 ", rank %" PRId64, step, first);
    if (sp > 1)
        fprintf(file, " to %" PRId64, first + sp - 1);
    if (samples)
        fprintf(file, ": %" PRId64 " samples, %" PRId64 " tokens, %" PRId64 " ms</title></path>\n", samples,
                v->pack_tokens[pack], ns / 1000000);
    else
        fprintf(file, ": a padding pack, %" PRId64 " ms</title></path>\n", ns / 1000000);
}

/* Ranks [first, end) wait until `until`. Ranks that began to wait together are one block; file NULL: only
 * counted. */
static void put_wait(FILE *file, panel *p, int64_t first, int64_t end, int64_t until)
{
    for (int64_t rank = first, next; rank < end; rank = next) {
        int64_t since = free_ns[rank];
        for (next = rank + 1; next < end && free_ns[next] == since;)
            next++;
        if (since >= until)
            continue;
        p->idle_ns += (until - since) * (next - rank);
        if (file && x_of(until) > x_of(since))
            put_block(file, p, rank, next, since, until);
    }
}

/* Runs a micro-batch on the clock that plans are predicted by (docs/explanation/lockstep.md): ranks of a
 * lockstep set begin together; in sets of one a pack begins when the last of its ranks is free. Draws the
 * packs, or the waiting. */
static void run_micro_batch(FILE *file, panel *p, int64_t step, int64_t m, int waiting)
{
    const hbp_plan_view *v = &p->view;
    int64_t set = p->about.lockstep_ranks ? p->about.lockstep_ranks : p->about.ranks;
    for (int64_t pack = v->micro_batch_offsets[m]; pack < v->micro_batch_offsets[m + 1]; pack++) {
        int64_t first = v->pack_ranks[pack], end = first + v->pack_sp[pack], start = 0;
        for (int64_t rank = first; rank < end; rank++)
            start = max_i64(start, free_ns[rank]);
        if (waiting && set == 1)
            put_wait(file, p, first, end, start);
        if (!waiting)
            put_pack(file, p, step, pack, start);
        for (int64_t rank = first; rank < end; rank++)
            free_ns[rank] = start + v->pack_ns[pack];
    }
    for (int64_t first = 0, end; set > 1 && first < p->about.ranks; first = end) {
        int64_t last = 0;
        end = first + set < p->about.ranks ? first + set : p->about.ranks;
        for (int64_t rank = first; rank < end; rank++)
            last = max_i64(last, free_ns[rank]);
        if (waiting)
            put_wait(file, p, first, end, last);
        for (int64_t rank = first; rank < end; rank++)
            free_ns[rank] = last;
    }
}

/* Runs a panel's steps one after another; draws its packs or its waiting, which is only counted for file
 * NULL. */
static void run_plan(FILE *file, panel *p, int waiting)
{
    p->idle_ns = p->rank_ns = p->end_ns = 0;
    for (int64_t step = 0; step < p->view.steps; step++) {
        int64_t begin = p->end_ns, last = 0;
        for (int64_t rank = 0; rank < p->about.ranks; rank++)
            free_ns[rank] = begin;
        for (int64_t m = p->view.step_offsets[step]; m < p->view.step_offsets[step + 1]; m++)
            run_micro_batch(file, p, step, m, waiting);
        for (int64_t rank = 0; rank < p->about.ranks; rank++)
            last = max_i64(last, free_ns[rank]);
        if (waiting)
            put_wait(file, p, 0, p->about.ranks, last);
        p->rank_ns += (last - begin) * p->about.ranks;
        p->end_ns = begin + p->view.step_ns[step];
    }
}

static void put_style(FILE *file)
{
    static const char *const light[DEGREES] = {"#9ec5f4", "#6da7ec", "#3987e5",
                                               "#256abf", "#184f95", "#0d366b"};
    static const char *const dark[DEGREES] = {"#184f95", "#256abf", "#3987e5",
                                              "#6da7ec", "#9ec5f4", "#cde2fb"};
    fputs(
        "<style>\ntext{font:12px system-ui,sans-serif;fill:#52514e}.t{font-size:15px;font-weight:600;"
        "fill:#0b0b0b}.n{font-size:13px;font-weight:600;fill:#0b0b0b}.e{text-anchor:end}.m{text-anchor:"
        "middle}\n.b{fill:#fff}.g{stroke:#c3c2b7;fill:none}path{stroke:#fff;stroke-width:.6}.i{fill:#eb6834;"
        "stroke:none}",
        file);
    for (int k = 0; k < DEGREES; k++)
        fprintf(file, ".d%d{fill:%s}", k, light[k]);
    fputs("\n@media(prefers-color-scheme:dark){text{fill:#c3c2b7}.t,.n{fill:#fff}.b{fill:#0d1117}.g{stroke:"
          "#52514e}path{stroke:#0d1117}.i{fill:#d95926;stroke:none}",
          file);
    for (int k = 0; k < DEGREES; k++)
        fprintf(file, ".d%d{fill:%s}", k, dark[k]);
    fputs("}\n</style>\n", file);
}

/* "libhbp: 19.60 s, 12.5 % idle". */
static void put_sums(FILE *file, const panel *p)
{
    put_text(file, p->name);
    int64_t idle =
        p->rank_ns ? (p->idle_ns / 1000 * 1000 + p->rank_ns / 2000) / max_i64(p->rank_ns / 1000, 1) : 0;
    int64_t hundredths = (p->end_ns + 5000000) / 10000000;
    fprintf(file, ": %" PRId64 ".%02d s, ", hundredths / 100, (int)(hundredths % 100));
    put_tenths(file, idle);
    fprintf(file, " %% idle");
}

static void put_panel(FILE *file, panel *p)
{
    put_label(file, LEFT, p->top - 80, " class=\"n\"");
    put_sums(file, p);
    fputs("</text>\n", file);
    fputs("<path class=\"i\" d=\"", file);
    run_plan(file, p, 1);
    fputs("\"/>\n", file);
    run_plan(file, p, 0);
    int64_t domain = p->about.domain_ranks;
    for (int64_t rank = 0; domain && rank < p->about.ranks; rank += domain) {
        put_label(file, LEFT - 60, y_of(p, rank) + 100, " class=\"e\"");
        fprintf(file, "%s%" PRId64 "</text>\n", rank ? "" : "rank ", rank);
    }
}

/* The least of 1, 2, 5, 10, ... ms that leaves at most 10 marks. */
static int64_t mark_ns(void)
{
    int64_t mark = 1000000;
    for (int k = 0; axis_ns / mark > 10; k++)
        mark = k % 3 == 1 ? mark / 2 * 5 : mark * 2;
    return mark;
}

static void put_axis(FILE *file, int64_t top)
{
    int64_t mark = mark_ns();
    fputs("<path class=\"g\" d=\"M", file);
    put_tenths(file, LEFT);
    fputs(" ", file);
    put_tenths(file, top);
    fputs("h", file);
    put_tenths(file, WIDTH);
    fputs("\"/>\n", file);
    for (int64_t at = 0; at <= axis_ns; at += mark) {
        put_label(file, x_of(at), top + 160, " class=\"m\"");
        if (mark >= 1000000000)
            fprintf(file, "%" PRId64 " s</text>\n", at / 1000000000);
        else
            fprintf(file, "%" PRId64 " ms</text>\n", at / 1000000);
    }
    put_label(file, LEFT + WIDTH / 2, top + 360, " class=\"m\"");
    fputs("time, predicted</text>\n", file);
}

/* What the colours are, on one line under the title. */
static void put_legend(FILE *file)
{
    int64_t x = LEFT;
    for (int k = -1; k < DEGREES; k++) {
        if (k >= 0 && !(degrees >> k & 1))
            continue;
        fprintf(file, k < 0 ? "<path class=\"i\" d=\"M" : "<path class=\"d%d\" d=\"M", k);
        put_tenths(file, x);
        fputs(" 40h12v12h-12z\"/>", file);
        put_label(file, x + 170, 505, "");
        if (k < 0)
            fputs("idle</text>\n", file);
        else
            fprintf(file, "SP %d%s</text>\n", 1 << k, k == DEGREES - 1 ? " and more" : "");
        x += k < 0 ? 600 : 660;
    }
    put_label(file, LEFT + WIDTH, 505, " class=\"e\"");
    fputs("a block is a pack on the ranks of its SP group</text>\n", file);
}

/* What a screen reader says. */
static void put_description(FILE *file, int count)
{
    fputs("</title>\n<desc id=\"desc\">What each rank runs over predicted time.", file);
    for (int i = 0; i < count; i++) {
        fputs(" ", file);
        put_sums(file, &panels[i]);
        fputs(".", file);
    }
    fputs("</desc>\n", file);
}

static int draw(FILE *file, const char *title, int count)
{
    int64_t bottom = TOP;
    for (int i = 0; i < count; i++) {
        run_plan(NULL, &panels[i], 1);
        axis_ns = max_i64(axis_ns, panels[i].end_ns);
        panels[i].top = TOP + BETWEEN / 2 + i * (HEIGHT + BETWEEN);
        bottom = panels[i].top + HEIGHT;
    }
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %" PRId64
            "\" role=\"img\" aria-labelledby=\"title desc\">\n<title id=\"title\">",
            (LEFT + WIDTH + RIGHT) / 10, (bottom + AXIS) / 10);
    put_text(file, title);
    put_description(file, count);
    put_style(file);
    fputs("<rect class=\"b\" width=\"100%\" height=\"100%\"/>\n", file);
    put_label(file, LEFT, 250, " class=\"t\"");
    put_text(file, title);
    fputs("</text>\n", file);
    for (int i = 0; i < count; i++)
        put_panel(file, &panels[i]);
    put_axis(file, bottom + 60);
    put_legend(file);
    fputs("</svg>\n", file);
    return ferror(file);
}

static hbp_status load(hbp_context *context, const char *path, panel *p)
{
    p->about.struct_size = sizeof p->about;
    p->view.struct_size = sizeof p->view;
    hbp_status status = hbp_plan_load(context, path, &p->plan);
    if (status >= 0)
        status = hbp_plan_get_summary(context, p->plan, &p->about);
    if (status >= 0)
        status = hbp_plan_get_view(p->plan, &p->view);
    if (status < 0)
        fprintf(stderr, "draw_plan: %s\n", hbp_context_message(context));
    else if (p->view.packs > MOST_PACKS || p->about.ranks > MOST_RANKS)
        fprintf(stderr, "draw_plan: %s has %" PRId64 " packs on %d ranks; at most %d on %d can be seen\n",
                path, p->view.packs, (int)p->about.ranks, MOST_PACKS, MOST_RANKS);
    else
        return HBP_OK;
    return status < 0 ? status : HBP_E_INVALID;
}

int main(int argc, char **argv)
{
    int count = (argc - 3) / 2, failed = 0;
    if (argc < 5 || argc % 2 == 0 || count > MOST_PANELS) {
        fprintf(stderr, "usage: draw_plan OUT.svg TITLE PLAN.msgpack NAME [PLAN.msgpack NAME]...\n");
        return 2;
    }
    hbp_context *context = NULL;
    if (hbp_context_create(NULL, &context) < 0) {
        fprintf(stderr, "draw_plan: out of memory\n");
        return 1;
    }
    for (int i = 0; i < count && !failed; i++) {
        panels[i].name = argv[4 + 2 * i];
        failed = load(context, argv[3 + 2 * i], &panels[i]) < 0;
    }
    FILE *file = failed ? NULL : fopen(argv[1], "wb");
    if (file)
        failed = draw(file, argv[2], count) | fclose(file);
    if (!file || failed) {
        if (!failed)
            perror(argv[1]);
        failed = 1;
    }
    for (int i = 0; i < count; i++)
        hbp_plan_free(panels[i].plan);
    hbp_context_free(context);
    return failed;
}
