/* Which lengths are in which packs, and what steps are made of. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

enum { BINS = 64, CLASSES = 32, STEP_COLUMNS = 200 };

/* The most tokens of a bin: 1, 2, 3, 4, 6, 8, 12, ... 2K, 3K, 4K, 6K, ... */
static int64_t most_of_bin(int bin)
{
    if (bin == 0)
        return 1;
    return bin % 2 ? INT64_C(2) << bin / 2 : INT64_C(3) << (bin / 2 - 1);
}

static int bin_of(int64_t tokens)
{
    int bin = tokens > 2 ? 2 * ilogb((double)tokens) - 2 : 0;
    while (bin < BINS - 1 && most_of_bin(bin) < tokens)
        bin++;
    return bin;
}

/* The rows of degrees that packs with samples have, in ascending order. */
static void list_degrees(report_plan *p)
{
    const hbp_plan_view *v = &p->view;
    int32_t last = 0;
    for (int64_t q = 0; q < v->packs; q++) {
        if (v->pack_sp[q] == last || v->pack_offsets[q] == v->pack_offsets[q + 1])
            continue;
        last = v->pack_sp[q];
        int i = 0;
        while (i < p->degrees && p->degree[i].sp < last)
            i++;
        if ((i < p->degrees && p->degree[i].sp == last) || p->degrees == REPORT_DEGREES)
            continue;
        memmove(&p->degree[i + 1], &p->degree[i], (size_t)(p->degrees - i) * sizeof *p->degree);
        p->degree[i] = (report_degree){.sp = last, .shortest = INT64_MAX};
        p->degrees++;
    }
}

static int row_of(const report_plan *p, int32_t sp)
{
    int i = 0;
    while (i < p->degrees - 1 && p->degree[i].sp != sp)
        i++;
    return i;
}

static shown show_degree(const report_degree *d)
{
    shown out;
    snprintf(out.s, sizeof out.s, "SP %d, packs of %s%.20s", (int)d->sp,
             d->longest > d->shortest ? "at most " : "", show_length(d->longest).s);
    return out;
}

/* Samples and tokens by degree and bin of length. */
typedef struct lengths_in {
    double samples[REPORT_DEGREES][BINS];
    double tokens[REPORT_DEGREES][BINS];
    int first, last;
} lengths_in;

static void count_lengths(report_plan *p, lengths_in *in)
{
    const hbp_plan_view *v = &p->view;
    in->first = BINS;
    in->last = 0;
    int32_t known = -1;
    int bin = 0;
    for (int64_t q = 0; q < v->packs; q++) {
        if (v->pack_offsets[q] == v->pack_offsets[q + 1])
            continue;
        const int row = row_of(p, v->pack_sp[q]);
        report_degree *d = &p->degree[row];
        d->samples += v->pack_offsets[q + 1] - v->pack_offsets[q];
        d->longest = v->pack_padded_tokens[q] > d->longest ? v->pack_padded_tokens[q] : d->longest;
        d->shortest = v->pack_padded_tokens[q] < d->shortest ? v->pack_padded_tokens[q] : d->shortest;
        for (int64_t i = v->pack_offsets[q]; i < v->pack_offsets[q + 1]; i++) {
            if (v->sample_tokens[i] != known) {
                known = v->sample_tokens[i];
                bin = bin_of(known);
                in->first = bin < in->first ? bin : in->first;
                in->last = bin > in->last ? bin : in->last;
            }
            in->samples[row][bin]++;
            in->tokens[row][bin] += (double)known;
        }
    }
}

/* Longest packs, at their place inside of a bin of `count` from `first` on. */
static void add_borders(const report_plan *p, json_t *picture, int first, int count)
{
    json_t *borders = json_array();
    for (int i = 0; i < p->degrees; i++) {
        const int bin = bin_of(p->degree[i].longest);
        const int64_t least = bin ? most_of_bin(bin - 1) : 0;
        const double at =
            bin - first + (double)(p->degree[i].longest - least) / (double)(most_of_bin(bin) - least);
        json_array_append_new(borders,
                              json_pack("{s:o,s:o}", "at", json_number(fmin(fmax(at, 0), count)), "label",
                                        report_text("pack of %s", show_length(p->degree[i].longest).s)));
    }
    json_object_set_new(picture, "borders", borders);
}

static shown show_bin(int64_t tokens)
{
    if (tokens == 1536 || tokens == 1536 * 1024)
        return show_real(tokens == 1536 ? "%.1fK" : "%.1fM", 1.5);
    return show_length(tokens);
}

static void draw_lengths(report_plan *p, const lengths_in *in)
{
    const report_degree *most = &p->degree[0];
    for (int i = 1; i < p->degrees; i++)
        most = p->degree[i].samples > most->samples ? &p->degree[i] : most;
    json_t *answer = report_text(
        "%s of %s in all; %s of the samples run at %s. Dotted lines are the lengths of the longest packs of "
        "each "
        "SP degree.",
        show_number(p->summary.samples, "sample").s, show_number(p->summary.tokens, "token").s,
        show_share((double)most->samples / (double)(p->summary.samples ? p->summary.samples : 1)).s,
        show_degree(most).s);
    json_t *picture =
        report_picture(p->page, "columns", "lengths", "Which lengths are there, and in which packs?", answer);
    json_t *names = json_array();
    const int count = in->last - in->first + 1;
    for (int b = in->first; b <= in->last; b++)
        json_array_append_new(names, report_text("%s", show_bin(most_of_bin(b)).s));
    json_object_set_new(picture, "names", names);
    json_object_set_new(picture, "first_name", json_integer(in->first % 2 == 0)); /* a power of two */
    json_object_set_new(picture, "axis", json_string("tokens of a sample, up to"));
    json_t *samples = report_panel(picture, "samples", "count");
    json_t *tokens = report_panel(picture, "tokens", "count");
    for (int i = 0; i < p->degrees; i++) {
        const shown colour = report_degree_colour(p->degree[i].sp);
        report_series(samples, show_degree(&p->degree[i]).s, colour.s, &in->samples[i][in->first], count);
        report_series(tokens, show_degree(&p->degree[i]).s, colour.s, &in->tokens[i][in->first], count);
    }
    add_borders(p, picture, in->first, count);
}

/* ---- What steps are made of ---- */

typedef struct composition {
    double tokens[CLASSES][STEP_COLUMNS];
    double ns[STEP_COLUMNS], samples[STEP_COLUMNS];
    int64_t step[STEP_COLUMNS];
} composition;

static int class_of(int64_t tokens)
{
    int k = 0;
    while (k < CLASSES - 1 && (INT64_C(1) << k) < tokens)
        k++;
    return k;
}

/* Tokens of a step by length class, [2^k, 2^(k + 1)), as the library's metrics have them. */
static double add_mixture(const hbp_plan_view *v, int64_t step, double *tokens)
{
    const int64_t first = v->pack_offsets[v->micro_batch_offsets[v->step_offsets[step]]];
    const int64_t end = v->pack_offsets[v->micro_batch_offsets[v->step_offsets[step + 1]]];
    double total = 0;
    for (int64_t i = first; i < end; i++) {
        tokens[v->sample_tokens[i] > 1 ? ilogb((double)v->sample_tokens[i]) : 0] += v->sample_tokens[i];
        total += v->sample_tokens[i];
    }
    return total;
}

/* The mixture distance (docs/explanation/metrics.md). */
static double mixture_distance(const hbp_plan_view *v)
{
    double all[CLASSES] = {0}, total = 0, sum = 0;
    int64_t measured = 0;
    for (int64_t k = 0; k < v->steps; k++)
        total += add_mixture(v, k, all);
    for (int64_t k = 0; k < v->steps; k++) {
        double here[CLASSES] = {0};
        const double own = add_mixture(v, k, here);
        for (int c = 0; c < CLASSES && own > 0; c++)
            sum += fabs(here[c] / own - all[c] / total) / 2;
        measured += own > 0;
    }
    return measured ? sum / (double)measured : 0;
}

/* So many steps, spread evenly: a mean over some would hide how they differ. */
static void count_steps(const report_plan *p, composition *of, int columns)
{
    const hbp_plan_view *v = &p->view;
    for (int i = 0; i < columns; i++) {
        const int64_t k = i * v->steps / columns;
        of->step[i] = p->summary.first_step + k;
        of->ns[i] = (double)p->step_ns[k];
        of->samples[i] = (double)v->step_samples[k];
        const int64_t first = v->pack_offsets[v->micro_batch_offsets[v->step_offsets[k]]];
        const int64_t end = v->pack_offsets[v->micro_batch_offsets[v->step_offsets[k + 1]]];
        for (int64_t j = first; j < end; j++)
            of->tokens[class_of(v->sample_tokens[j])][i] += v->sample_tokens[j];
    }
}

/* Classes of lengths of one panel: the largest ones by name, at most 8, neighbours joined. */
static void draw_classes(const composition *of, json_t *panel, int columns)
{
    int first = CLASSES, last = 0;
    for (int k = 0; k < CLASSES; k++)
        for (int i = 0; i < columns; i++)
            if (of->tokens[k][i] > 0) {
                first = k < first ? k : first;
                last = k > last ? k : last;
            }
    for (int series = 0; series < 8 && first <= last; series++) {
        double sum[STEP_COLUMNS] = {0};
        const int low = first + series * (last - first + 1) / 8,
                  high = first + (series + 1) * (last - first + 1) / 8;
        char label[300];
        for (int k = low; k < high; k++)
            for (int i = 0; i < columns; i++)
                sum[i] += of->tokens[k][i];
        snprintf(label, sizeof label, "of samples up to %s", show_length(INT64_C(1) << (high - 1)).s);
        if (high > low)
            report_series(panel, label, show_real("length %.3f", series / 7.0).s, sum, columns);
    }
}

hbp_status report_composition(const report_plan *p)
{
    const int columns = p->view.steps < STEP_COLUMNS ? (int)p->view.steps : STEP_COLUMNS;
    composition *of = calloc(1, sizeof *of);
    if (!of)
        return cli_own_failure("out of memory for the page");
    count_steps(p, of, columns);
    json_t *answer = report_text(
        "%s%s%s. A step's share of tokens by length is %s from the epoch's in the mean (mixture "
        "distance: 0 where every step is a small copy of the epoch, near 1 where steps hold samples "
        "of one length each).",
        show_number(p->summary.steps, "step").s, show_contract(&p->summary, "").s,
        columns < p->view.steps ? "; some of them are drawn, spread evenly" : "",
        show_real("%.3f", mixture_distance(&p->view)).s);
    json_t *picture =
        report_picture(p->page, "columns", "composition", "How do steps differ over the epoch?", answer);
    json_t *names = json_array();
    for (int i = 0; i < columns; i++)
        json_array_append_new(names, report_text("%lld", (long long)of->step[i]));
    json_object_set_new(picture, "names", names);
    json_object_set_new(picture, "axis", json_string("step"));
    draw_classes(of, report_panel(picture, "tokens of a step", "count"), columns);
    report_series(report_panel(picture, "time of a step", "ns"), "time of a step", "plain", of->ns, columns);
    report_series(report_panel(picture, "samples of a step", "count"), "samples of a step", "plain",
                  of->samples, columns);
    free(of);
    return HBP_OK;
}

hbp_status report_lengths(report_plan *p)
{
    lengths_in *in = calloc(1, sizeof *in);
    if (!in)
        return cli_own_failure("out of memory for the page");
    list_degrees(p);
    count_lengths(p, in);
    for (int i = 0; i < p->degrees; i++) /* so that every border stands in the picture */
        if (bin_of(p->degree[i].longest) > in->last)
            in->last = bin_of(p->degree[i].longest);
    if (p->degrees)
        draw_lengths(p, in);
    free(in);
    return HBP_OK;
}
