#include <stdio.h>
#include <string.h>

#include "cli.h"

static const double shares[] = {0.01, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999};

enum { SHARES = sizeof shares / sizeof *shares, CLASSES = 32, KINDS = HBP_MAX_MODALITIES };

/* Samples and tokens by length class: class k holds lengths in (2^(k-1), 2^k]. */
typedef struct classes {
    int64_t samples[CLASSES];
    int64_t tokens[CLASSES];
} classes;

/* Samples by kind. */
typedef struct kinds {
    int64_t samples[KINDS];
    int64_t tokens[KINDS];
    int64_t vision[KINDS];
} kinds;

/* A single kind has everything, also in a histogram of billions. */
static void count_kinds(const cli *c, const hbp_lengths_summary *s, kinds *all)
{
    int single = (s->modalities & (s->modalities - 1)) == 0;
    for (int k = 0; k < KINDS && single; k++)
        if (s->modalities >> k & 1) {
            all->samples[k] = s->samples;
            all->tokens[k] = s->tokens;
            all->vision[k] = s->vision > 0 ? s->vision : 0;
        }
    for (int64_t i = 0; i < s->samples && !single; i++) {
        int32_t k = hbp_lengths_get_modality(c->lengths, i);
        all->samples[k]++;
        all->tokens[k] += hbp_lengths_get_length(c->lengths, i);
        all->vision[k] += hbp_lengths_get_vision(c->lengths, i);
    }
}

static int length_class(int64_t length)
{
    int k = 0;
    while (k < CLASSES - 1 && (INT64_C(1) << k) < length)
        k++;
    return k;
}

/* The smallest length that at least `share` of the samples do not exceed. */
static int64_t quantile(const int64_t *lengths, const int64_t *counts, int64_t bins, int64_t samples,
                        double share)
{
    double needed = share * (double)samples;
    int64_t below = 0;
    for (int64_t i = 0; i < bins; i++) {
        below += counts[i];
        if ((double)below >= needed)
            return lengths[i];
    }
    return bins ? lengths[bins - 1] : 0;
}

static json_t *vision_json(const hbp_lengths_summary *s)
{
    if (s->vision < 0)
        return json_null();
    return json_pack("{s:I,s:I,s:I,s:f}", "units", (json_int_t)s->vision, "min", (json_int_t)s->min_vision,
                     "max", (json_int_t)s->max_vision, "mean", (double)s->vision / (double)s->samples);
}

static json_t *kinds_json(const kinds *of)
{
    json_t *list = json_array();
    for (int k = 0; k < KINDS; k++)
        if (of->samples[k])
            json_array_append_new(
                list, json_pack("{s:i,s:I,s:I,s:I}", "modality", k, "samples", (json_int_t)of->samples[k],
                                "tokens", (json_int_t)of->tokens[k], "vision", (json_int_t)of->vision[k]));
    return list;
}

static int print_json(cli *c, const hbp_lengths_summary *s, const int64_t *quantiles, const classes *all,
                      const kinds *of)
{
    json_t *quantile_list = json_array();
    for (int i = 0; i < SHARES; i++)
        json_array_append_new(quantile_list,
                              json_pack("{s:f,s:I}", "share", shares[i], "length", (json_int_t)quantiles[i]));
    json_t *histogram = json_array();
    for (int k = 0; k < CLASSES; k++)
        if (all->samples[k])
            json_array_append_new(histogram, json_pack("{s:I,s:I,s:I}", "up_to", (json_int_t)1 << k,
                                                       "samples", (json_int_t)all->samples[k], "tokens",
                                                       (json_int_t)all->tokens[k]));
    c->result = json_pack(
        "{s:I,s:I,s:I,s:b,s:I,s:I,s:f,s:I,s:I,s:I,s:b,s:s,s:o,s:o}", "samples", (json_int_t)s->samples,
        "tokens", (json_int_t)s->tokens, "loss_tokens", (json_int_t)s->loss_tokens, "shifted_loss",
        (int)s->shifted_loss, "min_length", (json_int_t)s->min_length, "max_length",
        (json_int_t)s->max_length, "mean_length", (double)s->tokens / (double)s->samples, "distinct_lengths",
        (json_int_t)s->distinct_lengths, "overlong_samples", (json_int_t)s->overlong_samples,
        "overlong_tokens", (json_int_t)s->overlong_tokens, "has_links", (int)s->has_links, "digest",
        show_digest(s->digest).s, "quantiles", quantile_list, "histogram", histogram);
    json_object_set_new(c->result, "column", cli_column_json(c, s));
    json_object_set_new(c->result, "vision", vision_json(s));
    json_object_set_new(c->result, "modalities", kinds_json(of));
    return cli_print_json(c);
}

static void print_histogram(const hbp_lengths_summary *s, const classes *all)
{
    double most_samples = 1;
    double most_tokens = 1;
    int first = CLASSES;
    int last = 0;
    for (int k = 0; k < CLASSES; k++) {
        if (!all->samples[k])
            continue;
        first = k < first ? k : first;
        last = k;
        most_samples = (double)all->samples[k] > most_samples ? (double)all->samples[k] : most_samples;
        most_tokens = (double)all->tokens[k] > most_tokens ? (double)all->tokens[k] : most_tokens;
    }
    table t;
    table_begin(&t, 5, (const char *[]){"up to", "samples", "#", "tokens", "#"});
    for (int k = first; k <= last; k++) {
        table_add_text(&t, show_length(INT64_C(1) << k));
        table_add_text(&t, show_share((double)all->samples[k] / (double)s->samples));
        table_add_bar(&t, (double)all->samples[k] / most_samples, -1);
        table_add_text(&t, show_share((double)all->tokens[k] / (double)s->tokens));
        table_add_bar(&t, (double)all->tokens[k] / most_tokens, -1);
    }
    table_end(&t);
}

/* The second size and the kinds, where there is more to say than that all is text. */
static void print_vision(const hbp_lengths_summary *s, const kinds *of)
{
    if (s->vision >= 0)
        say("%s: %s to %s a sample, mean %.2f\n", show_number(s->vision, "vision unit").s,
            show_count(s->min_vision).s, show_count(s->max_vision).s, (double)s->vision / (double)s->samples);
    if (s->vision < 0 && s->modalities == 1)
        return;
    say("\n");
    table t;
    table_begin(&t, 4, (const char *[]){"modality", "samples", "tokens", "vision units"});
    for (int k = 0; k < KINDS; k++) {
        if (!of->samples[k])
            continue;
        table_add(&t, "%d", k);
        table_add_text(&t, show_count(of->samples[k]));
        table_add_text(&t, show_count(of->tokens[k]));
        table_add_text(&t, show_count(of->vision[k]));
    }
    table_end(&t);
}

void cli_print_column(const cli *c, const hbp_lengths_summary *s)
{
    if (c->column)
        say("lengths are of column '%s', as --column says\n", show_name(c->column).s);
    else if (s->column)
        say("lengths are of column '%s', %s; --column names another\n", s->column,
            strcmp(s->column, "input_ids") == 0 ? "the tokens by their usual name"
                                                : "the first there of length, len, tokens and num_tokens");
    if (!s->is_histogram)
        return;
    if (c->column || s->column)
        say("counts of samples are of column '%s'%s\n",
            c->count_column ? show_name(c->count_column).s : "count",
            c->count_column ? ", as --count-column says" : "; --count-column names another, \"\" none");
    else
        say("a second column holds how many samples of each length there are; a header names columns\n");
}

json_t *cli_column_json(const cli *c, const hbp_lengths_summary *s)
{
    const char *name = c->column ? c->column : s->column;
    return name ? json_string(name) : json_null();
}

int cli_lengths(cli *c)
{
    static const job_part parts[] = {{"reading", 100, "read 100"}, {NULL, 0, NULL}};
    progress_begin(parts);
    CLI_TRY(c, cli_read_lengths(c, c->file));
    hbp_lengths_summary s;
    s.struct_size = sizeof s;
    CLI_TRY(c, hbp_lengths_get_summary(c->context, c->lengths, &s));
    hbp_lengths_view view = {.struct_size = sizeof view};
    (void)hbp_lengths_get_view(c->lengths, &view);
    const int64_t *lengths = view.histogram_lengths, *counts = view.histogram_counts;
    int64_t bins = view.distinct_lengths;
    int64_t quantiles[SHARES];
    for (int i = 0; i < SHARES; i++)
        quantiles[i] = quantile(lengths, counts, bins, s.samples, shares[i]);
    classes all = {0};
    for (int64_t i = 0; i < bins; i++) {
        int k = length_class(lengths[i]);
        all.samples[k] += counts[i];
        all.tokens[k] += counts[i] * lengths[i];
    }
    kinds of = {0};
    count_kinds(c, &s, &of);
    cli_finish_progress();
    if (c->json)
        return print_json(c, &s, quantiles, &all, &of);
    say("%s: %s, %s, mean %.1f, %s", show_input(c->file).s, show_number(s.samples, "sample").s,
        show_number(s.tokens, "token").s, (double)s.tokens / (double)s.samples,
        show_number(s.distinct_lengths, "distinct length").s);
    if (s.loss_tokens != s.tokens)
        say(", %s%s", show_number(s.loss_tokens, "loss token").s, s.shifted_loss ? " (shifted)" : "");
    say("%s\n", s.has_links ? ", with links" : "");
    cli_print_column(c, &s);
    if (s.overlong_samples)
        say("%s longer than %s, %s left out\n", show_number(s.overlong_samples, "sample").s,
            show_length(c->max_length).s, show_number(s.overlong_tokens, "token").s);
    print_vision(&s, &of);
    say("\n");
    table t;
    table_begin(&t, 2, (const char *[]){"<quantile", "length"});
    table_add(&t, "shortest");
    table_add_text(&t, show_count(s.min_length));
    for (int i = 0; i < SHARES; i++) {
        table_add(&t, "%g %%", shares[i] * 100);
        table_add_text(&t, show_count(quantiles[i]));
    }
    table_add(&t, "longest");
    table_add_text(&t, show_count(s.max_length));
    table_end(&t);
    say("\n");
    print_histogram(&s, &all);
    return 0;
}
