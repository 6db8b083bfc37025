/* How much of the tokens that they may hold the steps of a plan hold, and what limits it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Steps that hold so much are full. */
#define FULL .98

/* What the packs of a step could hold. */
typedef struct held {
    int64_t capacity;
    int64_t least; /* of its micro-batches, the one of the smallest capacity */
    int64_t tokens;
    int64_t step;
} held;

static int by_capacity(const void *a, const void *b)
{
    const held *x = a, *y = b;
    if (x->capacity != y->capacity)
        return x->capacity < y->capacity ? -1 : 1;
    return (x->step > y->step) - (x->step < y->step);
}

static held measure_step(const hbp_plan_view *v, int64_t step)
{
    held h = {.least = INT64_MAX, .step = step};
    for (int64_t m = v->step_offsets[step]; m < v->step_offsets[step + 1]; m++) {
        int64_t own = 0;
        for (int64_t q = v->micro_batch_offsets[m]; q < v->micro_batch_offsets[m + 1]; q++) {
            own += v->pack_capacity[q];
            h.tokens += v->pack_tokens[q];
        }
        h.capacity += own;
        h.least = own < h.least ? own : h.least;
    }
    return h;
}

/* Whether all packs of a step are of one length, degree and recomputation; *pack gets the first. */
static int is_uniform(const hbp_plan_view *v, int64_t step, int64_t *pack)
{
    const int64_t first = v->micro_batch_offsets[v->step_offsets[step]];
    *pack = first;
    for (int64_t q = first; q < v->micro_batch_offsets[v->step_offsets[step + 1]]; q++)
        if (v->pack_capacity[q] != v->pack_capacity[first] || v->pack_sp[q] != v->pack_sp[first] ||
            v->pack_recompute[q] != v->pack_recompute[first])
            return 0;
    return 1;
}

/* The cost that `hbp show` has no other use for; NULL: the plan was saved without one. */
static const hbp_cost *cost_of(cli *c)
{
    if (!c->cost && c->file && !c->plan_file && hbp_plan_file_open(c->context, c->file, &c->plan_file) < 0)
        return NULL;
    if (!c->cost && c->plan_file && hbp_plan_file_get_cost(c->context, c->plan_file, &c->cost) < 0)
        return NULL;
    return c->cost;
}

/* "; packs of 16,384 tokens would fill it, but with 10 layers recomputed instead of 0", of a step whose packs
 * are all equal. */
static void add_reason(cli *c, const hbp_plan_summary *s, const hbp_plan_view *v, int64_t step, char *text,
                       size_t bytes)
{
    int64_t pack;
    if (!is_uniform(v, step, &pack) || !cost_of(c))
        return;
    const int64_t micro_batches = v->step_offsets[step + 1] - v->step_offsets[step];
    const int64_t wanted = s->tokens_per_step / (s->ranks * micro_batches) * v->pack_sp[pack];
    const int32_t recompute =
        wanted > v->pack_capacity[pack] ? hbp_cost_predict_recompute(c->cost, v->pack_sp[pack], wanted) : 0;
    if (recompute < 0)
        snprintf(text, bytes, "; packs of %.40s tokens, which would fill it, need more memory than there is",
                 show_count(wanted).s);
    else if (recompute > v->pack_recompute[pack])
        snprintf(text, bytes,
                 "; packs of %.40s tokens would fill it, but with %.40s recomputed instead of %d",
                 show_count(wanted).s, show_number(recompute, "layer").s, (int)v->pack_recompute[pack]);
}

int cli_say_fullness(cli *c, const hbp_plan_summary *s, char *text, size_t bytes)
{
    hbp_plan_view v = {.struct_size = sizeof v};
    double lost_whole = 0, lost_filling = 0;
    int64_t passing = 0;
    *text = '\0';
    if (s->tokens_per_step < 1 || s->steps < 2 || c->vlm_plan || hbp_plan_get_view(c->plan, &v) < 0)
        return 0;
    const int64_t most = s->tokens_per_step;
    const double share = (double)s->tokens / ((double)s->steps * (double)most);
    held *all = malloc((size_t)v.steps * sizeof *all);
    if (!all)
        return 0;
    for (int64_t k = 0; k < v.steps; k++) {
        all[k] = measure_step(&v, k);
        lost_whole += (double)(most > all[k].capacity ? most - all[k].capacity : 0);
        lost_filling += (double)((all[k].capacity < most ? all[k].capacity : most) - all[k].tokens);
        passing += all[k].capacity > most - all[k].least;
    }
    qsort(all, (size_t)v.steps, sizeof *all, by_capacity);
    const held median = all[v.steps / 2];
    free(all);
    const int64_t micro_batches = v.step_offsets[median.step + 1] - v.step_offsets[median.step];
    size_t at = (size_t)snprintf(text, bytes, "steps hold %.20s of the %.40s that they may",
                                 show_share(share).s, show_number(most, "token").s);
    if (share >= FULL)
        return 0;
    /* Why there are so many steps, the samples of the whole plan say. */
    if (!cli_is_part(s) && (double)s->tokens > (double)(s->steps - 1) * (double)most) {
        snprintf(text + at, bytes - at, ": %.40s do not fit into fewer than %.40s",
                 show_number(s->tokens, "token").s, show_number(s->steps, "step").s);
        return 1;
    }
    if (s->composition == HBP_COMPOSITION_RANDOM && !s->samples_per_step) {
        snprintf(text + at, bytes - at,
                 ": samples are drawn in order, and the first that does not fit opens the next step");
        return 1;
    }
    /* Steps differ, and no one reason is that of most. */
    if (lost_whole < lost_filling || (double)median.capacity >= FULL * (double)most ||
        2 * passing <= v.steps) {
        snprintf(text + at, bytes - at, "; the packs of the median step have space for %.40s",
                 show_number(median.capacity, "token").s);
        return 1;
    }
    at +=
        (size_t)snprintf(text + at, bytes - at,
                         ": a step is whole micro-batches; the median step has %.20s, with space for %.40s, "
                         "and one more would not fit%s",
                         show_count(micro_batches).s, show_number(median.capacity, "token").s,
                         passing < v.steps ? " in most" : "");
    add_reason(c, s, &v, median.step, text + at, bytes - at);
    return 1;
}

void cli_print_fullness(cli *c, const hbp_plan_summary *s)
{
    char text[512];
    (void)cli_say_fullness(c, s, text, sizeof text);
    if (*text)
        say("%s\n", text);
}
