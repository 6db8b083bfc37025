#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"

/* A price of steps is said from so many times the bound with steps left free on. */
#define WORTH_SAYING 1.01

shown show_count(int64_t value)
{
    shown out;
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)value);
    int first = digits[0] == '-';
    char *at = out.s;
    for (int i = 0; i < length; i++) {
        if (i > first && (length - i) % 3 == 0)
            *at++ = ',';
        *at++ = digits[i];
    }
    *at = 0;
    return out;
}

shown show_number(int64_t value, const char *noun)
{
    shown out, count = show_count(value);
    size_t length = strlen(noun);
    const char *ending = value == 1 ? "" : length > 2 && strcmp(noun + length - 2, "ch") == 0 ? "es" : "s";
    snprintf(out.s, sizeof out.s, "%.32s %s%s", count.s, noun, ending);
    return out;
}

shown show_length(int64_t tokens)
{
    shown out;
    if (tokens >= 1 << 20 && tokens % (1 << 20) == 0)
        snprintf(out.s, sizeof out.s, "%lldM", (long long)(tokens >> 20));
    else if (tokens >= 1024 && tokens % 1024 == 0)
        snprintf(out.s, sizeof out.s, "%lldK", (long long)(tokens >> 10));
    else
        out = show_count(tokens);
    return out;
}

shown show_real(const char *format, double value)
{
    shown out;
    if (isfinite(value))
        snprintf(out.s, sizeof out.s, format, value);
    else
        snprintf(out.s, sizeof out.s, "-");
    return out;
}

shown show_time(double ns)
{
    static const struct {
        double ns;
        const char *format;
    } units[] = {{86400e9, "%.3f d"}, {3600e9, "%.3f h"}, {60e9, "%.2f min"},
                 {1e9, "%.2f s"},     {1e6, "%.2f ms"},   {1e3, "%.2f us"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (ns >= units[i].ns)
            return show_real(units[i].format, ns / units[i].ns);
    return show_real("%.0f ns", ns);
}

shown show_bytes(double bytes)
{
    static const char *const formats[] = {"%.0f B", "%.1f KiB", "%.1f MiB", "%.1f GiB", "%.1f TiB"};
    int unit = 0;
    while (bytes >= 1024 && unit < 4) {
        bytes /= 1024;
        unit++;
    }
    return show_real(formats[unit], bytes);
}

shown show_share(double share)
{
    return show_real("%.2f %%", share * 100);
}

shown show_digest(uint64_t digest)
{
    shown out;
    snprintf(out.s, sizeof out.s, "%016llx", (unsigned long long)digest);
    return out;
}

shown show_contract(const hbp_plan_summary *s, const char *how)
{
    shown out = {""};
    size_t length = 0;
    if (s->samples_per_step)
        length =
            (size_t)snprintf(out.s, sizeof out.s, " of %s", show_number(s->samples_per_step, "sample").s);
    if (s->tokens_per_step)
        length += (size_t)snprintf(out.s + length, sizeof out.s - length, "%s at most %s%s",
                                   length ? " and" : " of", show_number(s->tokens_per_step, "token").s, how);
    if (s->composition)
        snprintf(out.s + length, sizeof out.s - length, ", %s", hbp_composition_name(s->composition));
    return out;
}

shown show_gpus(const hbp_plan_summary *s)
{
    shown out = show_number(s->ranks, "GPU");
    size_t length = strlen(out.s);
    if (s->lockstep_ranks)
        snprintf(out.s + length, sizeof out.s - length, " in lockstep sets of %d", (int)s->lockstep_ranks);
    return out;
}

shown show_rivals(const hbp_plan_summary *s)
{
    shown out = {"plan of these samples in so many steps"};
    /* The samples of each step were chosen before the steps were planned. */
    int are_chosen = s->composition == HBP_COMPOSITION_RANDOM && !s->mixture_ns;
    if (!s->bound_ns)
        return out;
    if (are_chosen || s->composition == HBP_COMPOSITION_GIVEN || s->samples_per_step > 0)
        snprintf(out.s, sizeof out.s, "schedule of these very steps");
    else if (s->tokens_per_step)
        snprintf(out.s, sizeof out.s, "plan in steps of at most %.40s",
                 show_number(s->tokens_per_step, "token").s);
    return out;
}

shown show_conditions(const hbp_plan_summary *s)
{
    shown out;
    snprintf(out.s, sizeof out.s, "on %.80s under this cost and these options", show_gpus(s).s);
    return out;
}

void print_steps(const hbp_report *r)
{
    printf(
        "steps: %s .. %s .. %s samples, %s .. %s .. %s tokens (5 %%, median, 95 %%); a step's mixture is %s "
        "from the epoch's\n",
        show_count(r->step_samples_p5).s, show_count(r->step_samples_median).s,
        show_count(r->step_samples_p95).s, show_count(r->step_tokens_p5).s,
        show_count(r->step_tokens_median).s, show_count(r->step_tokens_p95).s,
        show_real("%.3f", r->mixture_distance).s);
}

void print_hierarchy(const hbp_plan_summary *s)
{
    if (s->hierarchy_ns && s->mixture_ns)
        printf("the hierarchy takes %s, steps that are no hierarchy %s%s\n",
               show_time((double)s->hierarchy_ns).s, show_time((double)s->mixture_ns).s,
               s->composition == HBP_COMPOSITION_HIERARCHY && s->mixture_ns < s->hierarchy_ns
                   ? " (estimated from some of them; too little to plan them all for)"
                   : "");
}

void print_price(const hbp_plan_summary *s, int64_t bound_ns)
{
    if (s->free_bound_ns > 0 && (double)bound_ns > WORTH_SAYING * (double)s->free_bound_ns)
        printf("price of these steps: up to %s; with steps left free, no plan takes less than %s under this "
               "cost and these options\n",
               show_share((double)s->predicted_ns / (double)s->free_bound_ns - 1).s,
               show_time((double)s->free_bound_ns).s);
}

double cli_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void cli_make_plain(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

shown show_name(const char *name)
{
    shown out;
    size_t bytes = strlen(name), most = sizeof out.s - 1;
    if (bytes <= most)
        memcpy(out.s, name, bytes + 1);
    else
        snprintf(out.s, sizeof out.s, "...%s", name + bytes - (most - 3));
    cli_make_plain(out.s);
    return out;
}

static shown *table_next(table *t)
{
    if (t->cells == t->room) {
        int room = t->room ? 2 * t->room : 64;
        shown *cell = realloc(t->cell, (size_t)room * sizeof *cell);
        if (!cell)
            return NULL;
        t->cell = cell;
        t->room = room;
    }
    return &t->cell[t->cells++];
}

void table_add_text(table *t, shown value)
{
    shown *cell = table_next(t);
    cli_make_plain(value.s);
    if (cell)
        *cell = value;
}

void table_add(table *t, const char *format, ...)
{
    shown value;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value.s, sizeof value.s, format, arguments);
    va_end(arguments);
    table_add_text(t, value);
}

void table_begin(table *t, int columns, const char *const *headers)
{
    *t = (table){.columns = columns};
    for (int i = 0; i < columns; i++)
        table_add(t, "%s", headers[i]);
}

static int trimmed(const char *value)
{
    int length = (int)strlen(value);
    while (length > 0 && value[length - 1] == ' ')
        length--;
    return length;
}

void table_end(table *t)
{
    for (int row = 0; row < t->cells / t->columns; row++) {
        for (int column = 0; column < t->columns; column++) {
            int left = t->cell[column].s[0] == '<';
            int width = 0;
            for (int i = column; i < t->cells; i += t->columns) {
                int length = (int)strlen(t->cell[i].s) - (i == column && left);
                width = length > width ? length : width;
            }
            const char *value = t->cell[row * t->columns + column].s + (row == 0 && left);
            int last = column == t->columns - 1;
            if (left && last)
                printf("  %.*s", trimmed(value), value);
            else
                printf(left ? "  %-*s" : "  %*s", width, value);
        }
        putchar('\n');
    }
    free(t->cell);
    *t = (table){0};
}

void show_bar(double share, int width, char *out)
{
    int filled = share > 0 ? (int)(share * width + 0.5) : 0;
    filled = filled > width ? width : filled;
    if (share > 0 && filled == 0)
        filled = 1;
    memset(out, '#', (size_t)filled);
    memset(out + filled, ' ', (size_t)(width - filled));
    out[width] = 0;
}

json_t *json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_known(int64_t ns)
{
    return ns > 0 ? json_integer(ns) : json_null();
}

json_t *json_columns_i64(const int64_t *values, int64_t count)
{
    json_t *array = json_array();
    for (int64_t i = 0; array && i < count; i++)
        json_array_append_new(array, json_integer(values[i]));
    return array;
}

void json_add_contract(json_t *object, const hbp_plan_summary *s)
{
    const char *composition = s->composition ? hbp_composition_name(s->composition) : NULL;
    json_t *rest =
        json_pack("{s:s?,s:I,s:I,s:I,s:I,s:I,s:o,s:b}", "composition", composition, "samples_per_step",
                  (json_int_t)s->samples_per_step, "tokens_per_step", (json_int_t)s->tokens_per_step,
                  "hierarchy_ns", (json_int_t)s->hierarchy_ns, "mixture_ns", (json_int_t)s->mixture_ns,
                  "lockstep_ranks", (json_int_t)(s->lockstep_ranks ? s->lockstep_ranks : s->ranks),
                  "free_bound_ns", json_known(s->free_bound_ns), "shifted_loss", (int)s->shifted_loss);
    json_object_update(object, rest);
    json_decref(rest);
}

void json_add_steps(json_t *object, const hbp_report *r)
{
    json_t *rest =
        json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:o}", "step_samples_p5", (json_int_t)r->step_samples_p5,
                  "step_samples_median", (json_int_t)r->step_samples_median, "step_samples_p95",
                  (json_int_t)r->step_samples_p95, "step_tokens_p5", (json_int_t)r->step_tokens_p5,
                  "step_tokens_median", (json_int_t)r->step_tokens_median, "step_tokens_p95",
                  (json_int_t)r->step_tokens_p95, "samples_cv", json_number(r->samples_cv),
                  "mixture_distance", json_number(r->mixture_distance));
    json_object_update(object, rest);
    json_decref(rest);
}

static int drawn;
static double drawn_at;

int32_t cli_draw_progress(void *user, const hbp_progress *progress)
{
    (void)user;
    double now = cli_now();
    if (drawn_at == 0)
        drawn_at = now; /* what takes no time needs no bar */
    if (now - drawn_at < 0.1)
        return 0;
    drawn_at = now;
    char bar[41];
    double share = progress->total > 0 ? (double)progress->done / (double)progress->total : 0;
    show_bar(share, 40, bar);
    fprintf(stderr, "\r%-12s [%s] %3.0f %%", progress->stage ? progress->stage : "", bar, share * 100);
    drawn = 1;
    return 0;
}

void cli_clear_progress(void)
{
    if (drawn)
        fprintf(stderr, "\r%64s\r", "");
    drawn = 0;
}
