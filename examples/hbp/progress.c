/* One bar for all that the command does.
 *
 * The library reports the stages of one call, each from 0 to its own total, some inside others and some again
 * and again. A job lists the calls that the command makes with the share of the time that each takes, and of
 * a call the stages that follow one another. So the bar never runs backwards: a stage counts as far as it has
 * come at most, and what is before it as done. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

enum { MOST_PARTS = 40, MOST_STAGES = 8, MOST_LINE = 240, MOST_BAR = 24 };

#define DRAW_EVERY  0.1 /* seconds; what takes less needs no bar */
#define LEFT_FROM   1.0 /* seconds until a time left is worth saying */
#define LEFT_SHARE  0.02
#define SMOOTH_OVER 3.0 /* seconds over which the speed is averaged */

/* Stages of a part by the table of stages below: where the one at hand ends is where the next begins. */
typedef struct stage {
    char name[32];
    double weight;
    double passes; /* how often it runs from 0 to its total, about */
} stage;

static job_part parts[MOST_PARTS];
static int part_count, part_at;

static struct {
    stage list[MOST_STAGES];
    int count;
    int at;
    double pass; /* of the stage at hand */
    double last;
} call;

static struct {
    int is_drawn;
    const char *doing;
    double began, drawn, moved;
    double share; /* shown */
    double speed; /* of share, in 1 / s */
} bar;

/* The library's stages in people's words. What is not here, as clearing memory, is inside a stage that is. */
static const char *const words[][2] = {
    {"SP degrees", "choosing SP degrees"},
    {"append lengths", "reading lengths"},
    {"balance", "balancing micro-batches"},
    {"batches", "choosing samples of steps"},
    {"bound", "computing the lower bound"},
    {"budgets", "choosing budgets"},
    {"candidates", "comparing cuts of layers"},
    {"check", "checking the plan"},
    {"choice", "choosing budgets"},
    {"classes", "balancing packs"},
    {"compare", "comparing measured times"},
    {"copy lengths", "reading lengths"},
    {"copy links", "following links"},
    {"copy loss tokens", "reading loss tokens"},
    {"copy modalities", "reading modalities"},
    {"copy vision units", "reading vision units"},
    {"count lengths", "counting lengths"},
    {"curves", "fitting scaling curves"},
    {"digest", "computing the digest"},
    {"digest lengths", "computing the digest"},
    {"even packs", "balancing packs"},
    {"exchange ranks", "exchanging GPUs"},
    {"exchanges", "balancing packs"},
    {"fill", "filling packs"},
    {"find the longest", "counting lengths"},
    {"first schedules", "making schedules"},
    {"fit", "fitting the cost"},
    {"fit slices into memory", "fitting slices into memory"},
    {"gradients", "replaying gradients"},
    {"graph", "writing the graph"},
    {"groups", "choosing pack lengths"},
    {"join", "joining steps"},
    {"json", "writing JSON"},
    {"layout", "laying out packs"},
    {"limit lengths", "limiting lengths"},
    {"limit vision", "limiting vision units"},
    {"links", "following links"},
    {"load", "reading the plan"},
    {"match", "matching measured times"},
    {"measure", "summing up packs"},
    {"memory", "fitting packs into memory"},
    {"micro-batches", "filling micro-batches"},
    {"mix", "choosing packs of steps"},
    {"mix patterns", "choosing mixes of samples"},
    {"mixture", "measuring mixtures"},
    {"modalities", "checking modalities"},
    {"operators", "reading operators"},
    {"order", "ordering micro-batches"},
    {"order lengths", "sorting samples"},
    {"pack", "filling packs"},
    {"pad", "padding packs"},
    {"part", "balancing packs"},
    {"partition", "cutting layers into stages"},
    {"parts", "balancing packs"},
    {"parts of equal counts", "balancing packs"},
    {"pieces", "splitting samples"},
    {"place slices", "placing slices"},
    {"plan", "writing down the plan"},
    {"read", "reading lengths"},
    {"recompute", "choosing recomputation"},
    {"samples", "reading samples"},
    {"save", "writing the plan"},
    {"score", "comparing fills"},
    {"sequences", "joining linked samples"},
    {"shorter schedules", "shortening the schedule"},
    {"shuffle", "shuffling samples"},
    {"shuffle equal lengths", "shuffling samples"},
    {"simulate", "replaying the plan"},
    {"sort", "sorting samples"},
    {"stages", "timing stages"},
    {"step", "planning a step"},
    {"steps", "planning steps"},
    {"submit", "planning steps"},
    {"sum loss tokens", "counting loss tokens"},
    {"sum vision units", "counting vision units"},
    {"take", "waiting for steps"},
    {"the classes' parts", "balancing packs"},
    {"the items", "balancing packs"},
    {"the parts", "balancing packs"},
    {"time and cost", "searching for a better plan"},
    {"timeline", "reading measured times"},
    {"trace", "writing the trace"},
    {"validate", "checking promises"},
    {"wait", "waiting for steps"},
    {"waves", "filling waves"},
    {"windows", "cutting windows"},
};

const char *progress_words(const char *name)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i][0], name) == 0)
            return words[i][1];
    return NULL;
}

/* "batches 55x8, steps 45": names, weights, passes. */
static void read_stages(const char *text)
{
    memset(&call, 0, sizeof call);
    while (text && *text && call.count < MOST_STAGES) {
        stage *s = &call.list[call.count++];
        size_t length = strcspn(text, "0123456789");
        char *end;
        snprintf(s->name, sizeof s->name, "%.*s", (int)(length ? length - 1 : 0), text);
        s->weight = strtod(text + length, &end);
        s->passes = *end == 'x' ? strtod(end + 1, &end) : 1;
        text = end + strspn(end, ", ");
    }
}

/* How far the call at hand has come, by its own stages. */
static double share_of_call(const hbp_progress *p)
{
    double all = 0, done = 0, x = p->total > 0 ? (double)p->done / (double)p->total : 0;
    for (int i = call.at; i < call.count; i++)
        if (strcmp(call.list[i].name, p->stage) == 0) {
            if (i > call.at)
                call.pass = call.last = 0;
            call.pass += x < call.last;
            call.last = x;
            call.at = i;
            break;
        }
    for (int i = 0; i < call.count; i++) {
        const stage *s = &call.list[i];
        double come = (call.pass + call.last) / s->passes;
        all += s->weight;
        done += i < call.at ? s->weight : i > call.at ? 0 : s->weight * (come < 1 ? come : 1);
    }
    return all > 0 ? done / all : 0;
}

static double share_of_job(double of_call)
{
    double all = 0, done = 0;
    for (int i = 0; i < part_count; i++) {
        all += parts[i].weight;
        done += i < part_at ? parts[i].weight : i > part_at ? 0 : parts[i].weight * of_call;
    }
    return all > 0 ? done / all : 0;
}

void progress_part(int index)
{
    part_at = index;
    bar.doing = NULL;
    read_stages(index < part_count ? parts[index].stages : NULL);
    double share = share_of_job(0);
    bar.share = share > bar.share ? share : bar.share; /* what a part skips says nothing of its speed */
}

void progress_begin(const job_part *given)
{
    for (part_count = 0; part_count < MOST_PARTS && given[part_count].name; part_count++)
        parts[part_count] = given[part_count];
    progress_part(0);
}

/* Whether the parts from this one on report how far they are. */
static int is_steady(void)
{
    for (int i = part_at; i < part_count; i++)
        if (!parts[i].stages)
            return 0;
    return part_count > 0;
}

/* ", 12 s left", where there is a speed to tell it from. */
static shown show_left(double now)
{
    shown out = {""};
    double left = bar.speed > 0 ? (1 - bar.share) / bar.speed : 0;
    if (!is_steady() || now - bar.began < LEFT_FROM || bar.share < LEFT_SHARE ||
        now - bar.moved > SMOOTH_OVER || left <= 0)
        return out;
    if (left < 60)
        snprintf(out.s, sizeof out.s, ", %.0f s left", left < 1 ? 1 : left);
    else if (left < 3600)
        snprintf(out.s, sizeof out.s, ", %.0f min left", left / 60);
    else if (left < 360000)
        snprintf(out.s, sizeof out.s, ", %.0f h left", left / 3600);
    return out;
}

static void draw(const char *doing, double now)
{
    char line[MOST_LINE], hashes[MOST_BAR + 1], text[96] = "";
    int width = screen_error_width() - 1, tail = (int)sizeof " 100 %, 59 min left";
    width = width < MOST_LINE ? width : MOST_LINE - 1;
    int cells = width >= 75   ? MOST_BAR
                : width >= 55 ? MOST_BAR / 2
                              : MOST_BAR / 4,
        room = width - tail - cells - 3;
    const char *name = part_at < part_count ? parts[part_at].name : "";
    if (part_count > 1 && *name)
        snprintf(text, sizeof text, "%s %d of %d%s", name, part_at + 1, part_count, *doing ? ": " : "");
    else if (*name && !*doing)
        snprintf(text, sizeof text, "%s", name);
    size_t length = strlen(text);
    snprintf(text + length, sizeof text - length, "%s", doing);
    room = room < 1 ? 1 : room < 50 ? room : 50;
    int filled = (int)(bar.share * cells + 0.5);
    memset(hashes, '#', (size_t)filled);
    memset(hashes + filled, ' ', (size_t)(cells - filled));
    hashes[cells] = '\0';
    snprintf(line, sizeof line, "%-*.*s [%s] %3.0f %%%.20s", room, room, text, hashes, bar.share * 100,
             show_left(now).s);
    fprintf(stderr, "\r%-*.*s", width, width, line);
    bar.is_drawn = 1;
}

int32_t cli_draw_progress(void *user, const hbp_progress *progress)
{
    (void)user;
    double now = cli_now(), share = share_of_job(share_of_call(progress));
    if (bar.began == 0)
        bar.began = bar.drawn = bar.moved = now;
    if (now - bar.drawn < DRAW_EVERY)
        return 0;
    /* 100 % is what the end alone says. */
    share = share < bar.share ? bar.share : share > 0.99 ? 0.99 : share;
    double passed = now - bar.drawn, weight = passed / (passed + SMOOTH_OVER);
    double speed = (share - bar.share) / passed;
    bar.speed = bar.speed > 0 ? bar.speed + weight * (speed - bar.speed) : share / (now - bar.began);
    if (share > bar.share)
        bar.moved = now;
    bar.share = share;
    bar.drawn = now;
    const char *doing = progress->stage ? progress_words(progress->stage) : NULL;
    bar.doing = doing ? doing : bar.doing ? bar.doing : "";
    draw(bar.doing, now);
    return 0;
}

void cli_clear_progress(void)
{
    if (bar.is_drawn)
        fprintf(stderr, "\r%*s\r", screen_error_width() - 1, "");
    bar.is_drawn = 0;
}

void cli_finish_progress(void)
{
    if (bar.is_drawn) {
        bar.share = 1;
        part_at = part_count ? part_count - 1 : 0;
        draw("", bar.began); /* no time is left */
    }
    cli_clear_progress();
}
