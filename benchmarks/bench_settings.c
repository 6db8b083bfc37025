/* The default planner of epochs beside what a user could have asked for instead, on lengths of all shapes,
 * and as machines grow. All times are predictions of the cost model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

enum { MACHINES = 6, SHAPES = 5, SIZES = 5, MODELS = 4, CHANGES = 6, SETTINGS = 20 };

/* Samples of a file: every n-th, so that planning all takes minutes. */
#define CHANGE_SAMPLES 2000

/* Of larger machines an epoch has more samples, for it to have steps. */
static const struct machine {
    const char *name;
    int32_t nodes;
    int64_t samples;
} machines[MACHINES] = {{"h100", 1, 1500}, {"h100", 4, 2000},    {"h100", 32, 4000},
                        {"h200", 8, 3000}, {"a100-80", 4, 2000}, {"b200", 2, 1500}};

/* Each on a machine that it fits. */
static const struct fitting {
    const char *model;
    struct machine machine;
} fittings[MODELS] = {{"llama-3.1-8b", {"h100", 1, 0}},
                      {"qwen2.5-32b", {"h100", 8, 0}},
                      {"llama-3.1-70b", {"h200", 4, 0}},
                      {"deepseek-v2", {"h100", 32, 0}}};

/* What to run; NULL: all. */
typedef struct chosen {
    int settings, shapes, changes;
    const char *model;
    const char *machine;
    const char *data;
    int64_t samples;
    int is_verbose;
} chosen;

/* One plan. */
typedef struct outcome {
    hbp_status status;
    hbp_plan_summary summary;
    int64_t most_tokens; /* of a step */
    double seconds;
} outcome;

static double planning_seconds;

static outcome plan(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                    const hbp_epoch_options *options)
{
    outcome o = {.summary = {.struct_size = sizeof o.summary}};
    hbp_plan *made = NULL;
    double start = bench_cpu();
    o.status = hbp_plan_epoch(context, lengths, cost, options, &made);
    o.seconds = bench_cpu() - start;
    if (o.status < 0)
        return o;
    bench_need(context, hbp_plan_validate(context, made, lengths, cost), "the plan");
    bench_need(context, hbp_plan_get_summary(context, made, &o.summary), "the summary");
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(made, &view);
    int64_t steps = view.steps;
    for (int64_t s = 0; s < steps; s++)
        o.most_tokens = view.step_tokens[s] > o.most_tokens ? view.step_tokens[s] : o.most_tokens;
    hbp_plan_free(made);
    return o;
}

static hbp_cost *make_cost(hbp_context *context, const char *model_name, const struct machine *at,
                           const char *field, double factor)
{
    hbp_model *model = NULL;
    hbp_machine *machine = bench_nodes(context, at->name, at->nodes);
    hbp_cost *cost = NULL;
    hbp_machine_fields fields = {.struct_size = sizeof fields};
    bench_need(context, hbp_model_create_preset(context, model_name, &model), model_name);
    if (field) {
        bench_need(context, hbp_machine_get_fields(context, machine, &fields), "the fields");
        double value = !strcmp(field, "hbm_bytes")            ? (double)fields.hbm_bytes
                       : !strcmp(field, "nvlink_bytes_per_s") ? fields.nvlink_bytes_per_s
                                                              : fields.network_bytes_per_s;
        bench_need(context, hbp_machine_set_field(context, machine, field, value * factor, "benchmark"),
                   field);
    }
    hbp_status status = hbp_cost_create(context, model, machine, NULL, &cost);
    if (status != HBP_E_INFEASIBLE)
        bench_need(context, status, "the cost");
    hbp_model_free(model);
    hbp_machine_free(machine);
    return cost;
}

/* At most `most` samples of a file, spread over it. */
static hbp_lengths *thin_out(hbp_context *context, const bench_data *data, int64_t most)
{
    int64_t every = data->count > most ? data->count / most : 1, count = 0;
    uint32_t *length = bench_allocate(data->count / every + 1, sizeof *length);
    for (int64_t i = 0; i < data->count && count < most; i += every)
        if (data->length[i] <= BENCH_LONGEST)
            length[count++] = data->length[i];
    hbp_lengths *lengths = NULL;
    bench_need(context, hbp_lengths_create_u32(context, length, count, NULL, &lengths), data->name);
    free(length);
    return lengths;
}

/* What settings are made of. */
typedef struct base {
    int64_t longest;          /* sample */
    int64_t tokens_per_step;  /* that the default chose */
    int64_t samples_per_step; /* that have about as many tokens */
} base;

static const char *const setting_names[SETTINGS] = {"packs as long as the longest sample",
                                                    "packs twice as long",
                                                    "8,192 tokens a rank",
                                                    "random",
                                                    "stratified",
                                                    "hierarchy",
                                                    "1 group",
                                                    "2 groups",
                                                    "3 groups",
                                                    "method hbp",
                                                    "no step slack",
                                                    "no mixture slack",
                                                    "effort 3",
                                                    "half the tokens a step",
                                                    "half the tokens, hierarchy",
                                                    "twice the tokens, hierarchy",
                                                    "twice the tokens, stratified",
                                                    "twice the tokens, packs as the longest sample",
                                                    "samples a step, packs as the longest sample",
                                                    "samples a step, 8,192 tokens a rank"};

static void set(int setting, const base *b, hbp_epoch_options *o)
{
    *o = (hbp_epoch_options){.struct_size = sizeof *o};
    if (setting == 0 || setting == 17 || setting == 18)
        o->max_pack_length = b->longest;
    if (setting == 1)
        o->max_pack_length = 2 * b->longest;
    if (setting == 2 || setting == 19)
        o->tokens_per_rank = 8192;
    if (setting == 3)
        o->composition = HBP_COMPOSITION_RANDOM;
    if (setting == 4 || setting == 16)
        o->composition = HBP_COMPOSITION_STRATIFIED;
    if (setting == 5 || setting == 14 || setting == 15)
        o->composition = HBP_COMPOSITION_HIERARCHY;
    if (setting >= 6 && setting <= 8)
        o->max_groups = setting - 5;
    if (setting == 9)
        o->method = "hbp";
    if (setting == 10)
        o->step_slack = -1;
    if (setting == 11)
        o->mixture_slack = -1;
    if (setting == 12)
        o->effort = 3;
    if (setting == 13 || setting == 14)
        o->tokens_per_step = b->tokens_per_step / 2;
    if (setting >= 15 && setting <= 17)
        o->tokens_per_step = 2 * b->tokens_per_step;
    if (setting >= 18)
        o->samples_per_step = b->samples_per_step;
}

/* Defaults under contracts, one after another. */
typedef struct defaults {
    int64_t count;
    hbp_epoch_options options[SETTINGS + 1];
    outcome plan[SETTINGS + 1];
} defaults;

static const outcome *default_under(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                    int64_t tokens_per_step, int64_t samples_per_step, defaults *d)
{
    for (int64_t i = 0; i < d->count; i++)
        if (d->options[i].tokens_per_step == tokens_per_step &&
            d->options[i].samples_per_step == samples_per_step)
            return &d->plan[i];
    hbp_epoch_options *o = &d->options[d->count];
    *o = (hbp_epoch_options){.struct_size = sizeof *o};
    o->tokens_per_step = tokens_per_step;
    o->samples_per_step = samples_per_step;
    d->plan[d->count] = plan(context, lengths, cost, o);
    planning_seconds += d->plan[d->count].seconds;
    return &d->plan[d->count++];
}

/* How often, and by how much at most, a setting is faster than the default. */
typedef struct tally {
    int64_t compared, slower;
    double most;
    char at[80];
} tally;

static void tally_add(tally *t, double over, double limit, const char *name)
{
    t->compared++;
    t->slower += over > limit;
    if (t->compared == 1 || over > t->most) {
        t->most = over;
        snprintf(t->at, sizeof t->at, "%s", name);
    }
}

static void compare_settings(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                             const char *name, int is_verbose, tally *of_setting, tally *all)
{
    defaults d = {.count = 0};
    const outcome *plain = default_under(context, lengths, cost, 0, 0, &d);
    bench_need(context, plain->status, name);
    hbp_lengths_summary summary = {.struct_size = sizeof summary};
    bench_need(context, hbp_lengths_get_summary(context, lengths, &summary), name);
    base b = {summary.max_length, plain->summary.tokens_per_step, 0};
    b.samples_per_step = b.tokens_per_step * summary.samples / summary.tokens;
    if (is_verbose)
        printf("%-28s %9.3f s  T %lld  steps %lld  composition %d  gap %.2f %%  planned %.2f s\n", name,
               1e-9 * (double)plain->summary.predicted_ns, (long long)b.tokens_per_step,
               (long long)plain->summary.steps, (int)plain->summary.composition, 100 * plain->summary.gap,
               plain->seconds);
    for (int i = 0; i < SETTINGS; i++) {
        hbp_epoch_options options;
        set(i, &b, &options);
        outcome o = plan(context, lengths, cost, &options);
        if (o.status < 0)
            continue;
        int64_t tokens = options.samples_per_step ? 0 : options.tokens_per_step;
        if (!options.samples_per_step && o.most_tokens > tokens)
            tokens = o.most_tokens;
        if (tokens <= b.tokens_per_step)
            tokens = 0;
        const outcome *other = default_under(context, lengths, cost, tokens, options.samples_per_step, &d);
        double over = (double)other->summary.predicted_ns / (double)o.summary.predicted_ns - 1;
        tally_add(&of_setting[i], over, .01, name);
        tally_add(all, over, .01, name);
        if (is_verbose && over > .005)
            printf("    %-46s %+.2f %%  (%lld x %lld, comp %d, gap %.2f; default gap %.2f, %lld steps, comp "
                   "%d) %.2f s\n",
                   setting_names[i], 100 * over, (long long)o.summary.steps, (long long)o.most_tokens,
                   (int)o.summary.composition, 100 * o.summary.gap, 100 * other->summary.gap,
                   (long long)other->summary.steps, (int)other->summary.composition, o.seconds);
        fflush(stdout);
    }
}

static int is_chosen(const char *text, const char *name)
{
    return !text || !strcmp(text, name);
}

static void machine_name(const struct machine *m, char name[32])
{
    snprintf(name, 32, "%s:%d", m->name, (int)m->nodes);
}

static void run_settings(hbp_context *context, const chosen *c)
{
    static tally of_setting[SETTINGS], all;
    const char *model = c->model ? c->model : "llama-3.1-8b";
    bench_section("The default beside %d settings: %s, %d data sets, %d machines", SETTINGS, model,
                  BENCH_DATA_SETS, MACHINES);
    double start = bench_cpu();
    for (int i = 0; i < BENCH_DATA_SETS; i++) {
        bench_data data;
        if (!bench_data_open(context, i, &data))
            continue;
        for (int m = 0; m < MACHINES && is_chosen(c->data, data.name); m++) {
            char name[32], text[80];
            machine_name(&machines[m], name);
            hbp_cost *cost =
                is_chosen(c->machine, name) ? make_cost(context, model, &machines[m], NULL, 1) : NULL;
            snprintf(text, sizeof text, "%s, %s", data.name, name);
            if (cost) {
                hbp_lengths *lengths =
                    thin_out(context, &data, c->samples ? c->samples : machines[m].samples);
                compare_settings(context, lengths, cost, text, c->is_verbose, of_setting, &all);
                hbp_lengths_free(lengths);
            }
            hbp_cost_free(cost);
        }
        bench_data_close(&data);
    }
    for (int i = 0; i < SETTINGS; i++)
        bench_line(setting_names[i], "%3lld of %3lld over 1 %%, most %+6.2f %%  %s",
                   (long long)of_setting[i].slower, (long long)of_setting[i].compared,
                   100 * of_setting[i].most, of_setting[i].at);
    bench_check(!all.slower, "default slower than a setting by", "<= 1 % in all",
                "%lld of %lld over, most %.2f %%", (long long)all.slower, (long long)all.compared,
                100 * all.most);
    bench_metric("", "default slower than a setting by over 1 %", BENCH_LOWER, (double)all.slower, "cases");
    bench_metric("", "most that a setting is faster", BENCH_LOWER, 100 * all.most, "%");
    bench_metric("", "planning the defaults", BENCH_LOWER, planning_seconds, "s");
    bench_line("planning: defaults, all", "%.1f, %.1f s", planning_seconds, bench_cpu() - start);
}

static const char *const shape_names[SHAPES] = {"narrow", "bimodal", "one giant", "equal", "zipf"};
static const int64_t sizes[SIZES] = {10, 100, 1000, 10000, 100000};

static uint32_t draw(int shape, int64_t index, uint64_t *state)
{
    uint64_t r = bench_random(state);
    switch (shape) {
    case 0:
        return (uint32_t)(1900 + r % 201);
    case 1:
        return (uint32_t)(r % 10 ? 200 + r / 16 % 101 : 28000 + r / 16 % 4001);
    case 2:
        return index ? (uint32_t)(100 + r % 301) : 131072;
    case 3:
        return 2090;
    default:
        return (uint32_t)(131072 / (1 + r % 4096));
    }
}

static void run_shapes(hbp_context *context, const chosen *c)
{
    bench_section("Lengths of all shapes: over the proven bound");
    int64_t cases = 0, near = 0, far = 0;
    double most = 0, seconds = 0;
    char at[96] = "";
    for (int f = 0; f < MODELS; f++) {
        if (!is_chosen(c->model, fittings[f].model))
            continue;
        char name[32];
        machine_name(&fittings[f].machine, name);
        hbp_cost *cost = make_cost(context, fittings[f].model, &fittings[f].machine, NULL, 1);
        for (int shape = 0; cost && shape < SHAPES; shape++)
            for (int size = 0; size < SIZES; size++) {
                if (!is_chosen(c->data, shape_names[shape]) || (c->samples && c->samples != sizes[size]))
                    continue;
                uint32_t *length = bench_allocate(sizes[size], sizeof *length);
                uint64_t state = (uint64_t)(shape * SIZES + size);
                for (int64_t i = 0; i < sizes[size]; i++)
                    length[i] = draw(shape, i, &state);
                hbp_lengths *lengths = NULL;
                bench_need(context, hbp_lengths_create_u32(context, length, sizes[size], NULL, &lengths),
                           "lengths");
                hbp_epoch_options options = {.struct_size = sizeof options};
                outcome o = plan(context, lengths, cost, &options);
                bench_need(context, o.status, shape_names[shape]);
                seconds += o.seconds;
                cases++;
                near += o.summary.gap <= .015;
                far += o.summary.gap > .05;
                if (c->is_verbose)
                    printf("%-14s %-9s %-9s x %6lld  gap %6.2f %%  %9.3f s  T %lld  steps %lld  M %lld  comp "
                           "%d  planned %.2f s\n",
                           fittings[f].model, name, shape_names[shape], (long long)sizes[size],
                           100 * o.summary.gap, 1e-9 * (double)o.summary.predicted_ns,
                           (long long)o.summary.tokens_per_step, (long long)o.summary.steps,
                           (long long)o.summary.micro_batches, (int)o.summary.composition, o.seconds);
                fflush(stdout);
                if (o.summary.gap > most) {
                    most = o.summary.gap;
                    snprintf(at, sizeof at, "%s x %lld, %s on %s", shape_names[shape], (long long)sizes[size],
                             fittings[f].model, name);
                }
                hbp_lengths_free(lengths);
                free(length);
            }
        hbp_cost_free(cost);
    }
    bench_check(5 * near >= 4 * cases, "over the bound by at most 1.5 %", "in 4 of 5", "%lld of %lld",
                (long long)near, (long long)cases);
    bench_check(!far, "over the bound", "<= 5 % in all", "%lld of %lld over, most %.2f %%", (long long)far,
                (long long)cases, 100 * most);
    bench_line("the most", "%s", at);
    bench_metric("", "within 1.5 % of the bound", BENCH_HIGHER, (double)near, "cases");
    bench_metric("", "over the bound, most", BENCH_LOWER, 100 * most, "%");
    bench_metric("", "planning", BENCH_LOWER, seconds, "s");
    bench_line("planning", "%.1f s", seconds);
}

static const struct change {
    const char *name;
    const char *field;
    double factor;
} changes[CHANGES] = {{"memory + 25 %", "hbm_bytes", 1.25},      {"memory x 2", "hbm_bytes", 2},
                      {"NVLink x 2", "nvlink_bytes_per_s", 2},   {"NVLink x 4", "nvlink_bytes_per_s", 4},
                      {"network x 2", "network_bytes_per_s", 2}, {"network x 4", "network_bytes_per_s", 4}};

static void run_changes(hbp_context *context, const chosen *c)
{
    static tally of_change[CHANGES], all;
    bench_section("More memory, faster links: does the epoch get longer?");
    double seconds = 0;
    for (int i = 0; i < BENCH_DATA_SETS; i++) {
        bench_data data;
        if (!bench_data_open(context, i, &data))
            continue;
        hbp_lengths *lengths = thin_out(context, &data, c->samples ? c->samples : CHANGE_SAMPLES);
        for (int f = 0; f < MODELS && is_chosen(c->data, data.name); f++) {
            if (!is_chosen(c->model, fittings[f].model))
                continue;
            char name[32], text[80];
            machine_name(&fittings[f].machine, name);
            snprintf(text, sizeof text, "%s, %s on %s", data.name, fittings[f].model, name);
            int64_t before = 0;
            for (int k = -1; k < CHANGES; k++) {
                const struct change *change = k < 0 ? NULL : &changes[k];
                if (change && fittings[f].machine.nodes == 1 && !strcmp(change->field, "network_bytes_per_s"))
                    continue;
                hbp_cost *cost = make_cost(context, fittings[f].model, &fittings[f].machine,
                                           change ? change->field : NULL, change ? change->factor : 1);
                hbp_epoch_options options = {.struct_size = sizeof options};
                outcome o = plan(context, lengths, cost, &options);
                bench_need(context, o.status, text);
                seconds += o.seconds;
                if (!change)
                    before = o.summary.predicted_ns;
                double over = (double)o.summary.predicted_ns / (double)before - 1;
                if (change) {
                    tally_add(&of_change[k], over, 0, text);
                    tally_add(&all, over, 0, text);
                }
                if (c->is_verbose && (!change || over > 0))
                    printf("%-52s %-14s %9.3f s  %+.2f %%  T %lld  steps %lld  comp %d  gap %.2f %%\n", text,
                           change ? change->name : "as it is", 1e-9 * (double)o.summary.predicted_ns,
                           100 * over, (long long)o.summary.tokens_per_step, (long long)o.summary.steps,
                           (int)o.summary.composition, 100 * o.summary.gap);
                fflush(stdout);
                hbp_cost_free(cost);
            }
        }
        hbp_lengths_free(lengths);
        bench_data_close(&data);
    }
    for (int k = 0; k < CHANGES; k++)
        bench_line(changes[k].name, "%lld of %lld longer, most %+.3f %%  %s", (long long)of_change[k].slower,
                   (long long)of_change[k].compared, 100 * of_change[k].most, of_change[k].at);
    bench_metric("", "longer on a better machine", BENCH_LOWER, (double)all.slower, "cases");
    bench_check(!all.slower, "longer on a better machine", "none", "%lld of %lld, most %.2f %%",
                (long long)all.slower, (long long)all.compared, 100 * all.most);
    bench_line("planning", "%.1f s", seconds);
}

static int usage(void)
{
    fprintf(
        stderr,
        "usage: bench_settings [--settings] [--shapes] [--machines] [--model NAME] [--machine NAME:NODES]\n"
        "                      [--data NAME] [--samples COUNT] [-v]\n"
        "Without one of the first three all are run; -v prints a line for each case.\n");
    return 2;
}

static int read_option(char **argument, int left, chosen *c)
{
    if (!strcmp(argument[0], "-v"))
        return c->is_verbose = 1;
    if (!strcmp(argument[0], "--settings"))
        return c->settings = 1;
    if (!strcmp(argument[0], "--shapes"))
        return c->shapes = 1;
    if (!strcmp(argument[0], "--machines"))
        return c->changes = 1;
    if (left < 2)
        return 0;
    if (!strcmp(argument[0], "--model"))
        c->model = argument[1];
    else if (!strcmp(argument[0], "--machine"))
        c->machine = argument[1];
    else if (!strcmp(argument[0], "--data"))
        c->data = argument[1];
    else if (!strcmp(argument[0], "--samples"))
        c->samples = strtoll(argument[1], NULL, 10);
    else
        return 0;
    return 2;
}

int main(int argc, char **argv)
{
    chosen c = {.settings = 0};
    for (int i = 1, taken; i < argc; i += taken) {
        taken = read_option(argv + i, argc - i, &c);
        if (!taken)
            return usage();
    }
    int all = !c.settings && !c.shapes && !c.changes;
    hbp_context *context = bench_context(NULL);
    if (all || c.settings)
        run_settings(context, &c);
    if (all || c.shapes)
        run_shapes(context, &c);
    if (all || c.changes)
        run_changes(context, &c);
    hbp_context_free(context);
    return bench_end();
}
