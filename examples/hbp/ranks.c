/* A step as a timeline: a line for ranks that run the same packs, time to the right. When a pack begins is
 * what docs/explanation/lockstep.md says: with the lockstep sets that it meets, once all of them are through
 * with the micro-batch before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "step_clock.h"

/* Characters between two times of the scale. */
enum { TICK_LEAST = 11 };

/* Ranks that run the same packs. */
typedef struct rank_line {
    int32_t first, last;
    int64_t busy_ns;
    int32_t covers; /* the last rank of the lines that it stands for */
} rank_line;

typedef struct chart {
    hbp_plan_view view;
    int64_t micro_batches;
    int64_t *start_ns; /* [packs] */
    int64_t packs_end_ns;
    int64_t step_ns;
    rank_line *line;
    int64_t lines;
    int label, width;
    int has_padding;
    int64_t too_short; /* packs of the lines drawn that are no character wide */
} chart;

/* What a character stands for. */
enum { IS_WAITING, IS_PACK, IS_PACK_END, IS_ONE, IS_PADDING, IS_REST, LOOKS };

static const char *look_of(int what, int is_first)
{
    static const char *const ascii[LOOKS] = {".", "=", "]", "|", "-", "~"};
    static const char *const blocks[LOOKS] = {"\xe2\x96\x91", "\xe2\x96\x88", "\xe2\x96\x8c",
                                              "\xe2\x96\x8c", "\xe2\x96\x92", "\xc2\xb7"};
    if (screen_is_utf8())
        return blocks[what];
    return what == IS_PACK && is_first ? "[" : ascii[what];
}

static int style_of(int what)
{
    return what == IS_WAITING                      ? STYLE_WAITING
           : what == IS_PADDING || what == IS_REST ? STYLE_FAINT
                                                   : STYLE_BAR;
}

static int is_padding(const hbp_plan_view *view, int64_t pack)
{
    return view->pack_offsets[pack + 1] == view->pack_offsets[pack];
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Times of all packs. 0: no memory. */
static int find_starts(chart *t, const hbp_plan_summary *s)
{
    step_clock clock = {0};
    t->start_ns = calloc((size_t)t->view.packs, sizeof *t->start_ns);
    int has_memory = step_clock_open(&clock, s) && t->start_ns;
    if (has_memory)
        t->packs_end_ns = step_clock_run(&clock, &t->view, 0, t->start_ns);
    step_clock_close(&clock);
    return has_memory;
}

/* The lines of ranks [first, end). 0: no memory. */
static int find_lines(chart *t, const hbp_plan *plan, int32_t first, int32_t end)
{
    t->line = calloc((size_t)(end - first), sizeof *t->line);
    for (int32_t rank = first; t->line && rank < end; rank++) {
        rank_line own = {.first = rank, .last = rank, .covers = rank};
        int is_same = t->lines > 0;
        for (int64_t m = 0; m < t->micro_batches; m++) {
            int64_t pack = hbp_plan_get_rank_pack(plan, 0, m, rank);
            is_same = is_same && pack == hbp_plan_get_rank_pack(plan, 0, m, rank - 1);
            own.busy_ns += pack < 0 || is_padding(&t->view, pack) ? 0 : t->view.pack_ns[pack];
        }
        if (is_same)
            t->line[t->lines - 1].last = t->line[t->lines - 1].covers = rank;
        else
            t->line[t->lines++] = own;
    }
    return t->line != NULL;
}

/* Of each so many lines in order the one that waits the least stands for all; returns how many. */
static int64_t fold(chart *t)
{
    int64_t each = (t->lines + CHART_LINES - 1) / CHART_LINES, kept = 0;
    for (int64_t i = 0; i < t->lines; i += each, kept++) {
        int64_t end = i + each < t->lines ? i + each : t->lines, busiest = i;
        for (int64_t k = i; k < end; k++)
            if (t->line[k].busy_ns > t->line[busiest].busy_ns)
                busiest = k;
        rank_line own = t->line[busiest];
        own.first = t->line[i].first;
        own.covers = t->line[end - 1].last;
        own.last = t->line[busiest].first; /* the rank that is drawn */
        t->line[kept] = own;
    }
    t->lines = kept;
    return each;
}

static shown show_line(const rank_line *l)
{
    shown out;
    snprintf(out.s, sizeof out.s, l->covers > l->first ? "%d-%d" : "%d", (int)l->first, (int)l->covers);
    return out;
}

/* The character that a time falls on. */
static int place_of(const chart *t, int64_t ns)
{
    return (int)((double)ns / (double)t->step_ns * t->width + 0.5);
}

/* A scale in steps of 1, 2 or 5 of a unit, no closer than TICK_LEAST characters. */
static void print_scale(const chart *t)
{
    static const struct {
        double ns;
        const char *name;
    } units[] = {{3600e9, "h"}, {60e9, "min"}, {1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
    int unit = 0;
    while (unit < 5 && (double)t->step_ns < units[unit].ns)
        unit++;
    double whole = (double)t->step_ns / units[unit].ns, step = 0.001;
    static const double times[] = {2, 2.5, 2};
    for (int power = 0; step * t->width / whole < TICK_LEAST; power++)
        step *= times[power % 3];
    int at = 0, digits = step >= 1 ? 0 : step >= 0.1 ? 1 : step >= 0.01 ? 2 : 3;
    char marks[CHART_MOST + 1];
    memset(marks, '-', sizeof marks);
    marks[t->width] = '\0';
    printf("  %s%*s", screen_style(STYLE_HEADER), -t->label, "ranks");
    for (int k = 0; k * step <= whole; k++) {
        int place = (int)(k * step / whole * t->width + 0.5);
        char text[40];
        int bytes = snprintf(text, sizeof text, "%.*f %s", k ? digits : 0, k * step, units[unit].name);
        if (place + bytes > t->width)
            break;
        at += printf("%*s%s", place - at + (k ? 0 : 2), "", text) - (k ? 0 : 2);
        marks[place] = '+';
    }
    printf("%*s%s\n", t->width - at + 2 + CHART_SHARE, "waiting", screen_style(STYLE_NONE));
    printf("  %*s  %s\n", t->label, "", marks);
}

/* Writes a pack into the characters [from, to) of a line. */
static void place_pack(chart *t, int64_t pack, int from, int to, unsigned char *what, char *label)
{
    int width = to - from, has_samples = !is_padding(&t->view, pack);
    t->too_short += has_samples && width == 0;
    t->has_padding |= !has_samples && width > 0;
    for (int i = from; i < to; i++)
        what[i] = (unsigned char)(!has_samples  ? IS_PADDING
                                  : width == 1  ? IS_ONE
                                  : i == to - 1 ? IS_PACK_END
                                                : IS_PACK);
    char text[24];
    int bytes = snprintf(text, sizeof text, "SP %d", (int)t->view.pack_sp[pack]);
    const char *fits = bytes + 2 <= width ? text : bytes - 3 + 2 <= width ? text + 3 : "";
    if (has_samples)
        memcpy(label + from + 1, fits, strlen(fits));
}

static void print_characters(const chart *t, const unsigned char *what, const char *label)
{
    int style = -1;
    for (int i = 0; i < t->width; i++) {
        int is_first = i == 0 || what[i - 1] == IS_PACK_END || what[i - 1] != what[i];
        if (style_of(what[i]) != style)
            printf("%s%s", i ? screen_style(STYLE_NONE) : "", screen_style(style = style_of(what[i])));
        if (label[i])
            putchar(label[i]);
        else
            fputs(look_of(what[i], is_first), stdout);
    }
    fputs(screen_style(STYLE_NONE), stdout);
}

static void print_line(chart *t, const hbp_plan *plan, const rank_line *l)
{
    unsigned char what[CHART_MOST + 1];
    char label[CHART_MOST + 1] = "";
    memset(what, IS_WAITING, sizeof what);
    memset(label, 0, sizeof label);
    for (int i = place_of(t, t->packs_end_ns); i < t->width; i++)
        what[i] = IS_REST;
    for (int64_t m = 0; m < t->micro_batches; m++) {
        int64_t pack = hbp_plan_get_rank_pack(plan, 0, m, l->last);
        if (pack >= 0)
            place_pack(t, pack, place_of(t, t->start_ns[pack]),
                       place_of(t, t->start_ns[pack] + t->view.pack_ns[pack]), what, label);
    }
    printf("  %*s  ", -t->label, show_line(l).s);
    print_characters(t, what, label);
    double waiting = (double)(t->packs_end_ns - l->busy_ns) / (double)t->step_ns;
    printf("  %*s\n", CHART_SHARE, show_share(waiting).s);
}

static void print_legend(const chart *t, int64_t folded, int64_t all)
{
    say("  %s%s%s or %s a pack, with its SP degree where that fits; %s waiting for others, at the right its "
        "share "
        "of the step",
        look_of(IS_PACK, 1), look_of(IS_PACK, 0), look_of(IS_PACK_END, 0), look_of(IS_ONE, 0),
        look_of(IS_WAITING, 0));
    if (t->has_padding)
        say("; %s a padding pack, which counts as waiting", look_of(IS_PADDING, 0));
    if (place_of(t, t->packs_end_ns) < t->width)
        say("; %s what a step pays once, gradients and optimiser", look_of(IS_REST, 0));
    say("\n");
    if (t->too_short)
        say("  %s shorter than half a character, not drawn\n", show_number(t->too_short, "pack").s);
    if (folded > 1)
        say("  %s for %s: of each %s the one that waits the least; --wide shows all\n",
            show_number(t->lines, "line").s, show_count(all).s, show_count(folded).s);
}

static void print_chart(chart *t, const hbp_plan *plan)
{
    int64_t all = t->lines, folded = 1;
    if (screen_width() && all > CHART_LINES)
        folded = fold(t);
    t->label = (int)strlen("ranks");
    for (int64_t i = 0; i < t->lines; i++) {
        int length = (int)strlen(show_line(&t->line[i]).s);
        t->label = length > t->label ? length : t->label;
    }
    t->width = chart_width(2 + t->label + 2 + 2 + CHART_SHARE);
    print_scale(t);
    for (int64_t i = 0; i < t->lines; i++)
        print_line(t, plan, &t->line[i]);
    print_legend(t, folded, all);
}

int print_ranks(const hbp_plan *plan, const hbp_plan_summary *s, int64_t rank)
{
    chart t = {.view = {.struct_size = sizeof t.view}};
    (void)hbp_plan_get_view(plan, &t.view);
    t.micro_batches = t.view.step_offsets[1] - t.view.step_offsets[0];
    int32_t first = rank < 0 ? 0 : (int32_t)rank, end = rank < 0 ? s->ranks : first + 1;
    int has_memory = find_starts(&t, s) && find_lines(&t, plan, first, end);
    t.step_ns = later(later(t.view.step_ns[0], t.packs_end_ns), 1);
    if (has_memory)
        print_chart(&t, plan);
    free(t.start_ns);
    free(t.line);
    return has_memory;
}
