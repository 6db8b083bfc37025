/* The library's own schedules: several, of which the one that runs fastest is kept. */
#include "base/methods.h"
#include "tasks/overlap/overlap.h"
#include "tasks/planning.h"
#include "tasks/tuning.h"

/* Published methods, from which the search starts. */
enum { METHODS = HBP__TASKS_DISTMM - HBP__TASKS_SPINDLE + 1 };

/* Schedules to choose from: the search's; the published waves; then both with the sizes that tile domains
 * alone, or, short of memory, the other published methods. */
enum { WAVES = 1, CANDIDATES = 1 + METHODS };

typedef struct candidate {
    const hbp__task_problem *problem;
    hbp__task_slices slices;
    int32_t in_waves;
} candidate;

/* A candidate placed with one weight of gradients. */
typedef struct choice {
    candidate *of; /* NULL: none */
    int32_t gradient_part;
} choice;

typedef struct choosing {
    hbp__planning *planning;
    candidate candidate[CANDIDATES];
    int32_t count;
    hbp_task_schedule **best;
    int64_t *best_ns;
    choice chosen;
} choosing;

/* Places slices and keeps the schedule when it is faster, and then the choice. Slices that do not fit in
 * memory are passed over. */
static hbp_status consider_choice(choosing *c, const choice *one, int32_t hasty)
{
    hbp_task_schedule *schedule = NULL;
    int64_t before = *c->best ? *c->best_ns : INT64_MAX;
    hbp__task_problem problem = *one->of->problem;
    problem.gradient_part = one->gradient_part;
    problem.hasty = hasty;
    hbp_status status =
        hbp__planning_place(c->planning, &problem, &one->of->slices, one->of->in_waves, &schedule);
    if (status == HBP_E_INFEASIBLE)
        return HBP_OK;
    HBP__TRY(status);
    HBP__TRY(hbp__planning_keep(c->planning, schedule, 0, c->best, c->best_ns));
    if (*c->best && *c->best_ns < before)
        c->chosen = *one;
    return HBP_OK;
}

/* The published waves, as method spindle would have them. */
static hbp_status consider_published(choosing *c, int32_t *fits)
{
    candidate *waves = &c->candidate[WAVES];
    hbp_task_schedule *schedule = NULL;
    hbp_status status =
        hbp__planning_place(c->planning, waves->problem, &waves->slices, waves->in_waves, &schedule);
    *fits = status >= 0;
    if (status == HBP_E_INFEASIBLE)
        return HBP_OK;
    HBP__TRY(status);
    return hbp__planning_keep(c->planning, schedule, 1, c->best, c->best_ns);
}

/* Weights of gradients that placements are made with: one domain has no rings that cross. */
static int32_t count_parts(const hbp__planning *p, const candidate *of)
{
    if (of->slices.count > HBP__PLACE_ONCE_PAIRS / p->gpus)
        return 1;
    return hbp__placement_method(p->options.placement_method) == HBP__PLACEMENT_FLOWS &&
                   p->gpus > p->domain_gpus
               ? 2
               : 1;
}

/* All candidates of at most `most` ns (or, `longer`, of more), hastily. */
static hbp_status consider_all(choosing *c, int64_t most, int longer)
{
    static const int32_t parts[] = {0, HBP__GRADIENT_HEAVY};
    for (int32_t i = 0; i < c->count; i++) {
        if ((c->candidate[i].slices.makespan_ns > most) != longer)
            continue;
        for (int32_t k = 0; k < count_parts(c->planning, &c->candidate[i]); k++)
            HBP__TRY(consider_choice(c, &(choice){&c->candidate[i], parts[k]}, 1));
    }
    return HBP_OK;
}

/* Of the candidates that take no longer than the published waves, the one that runs fastest, for some move
 * more bytes than others; where none of them fits in memory, of the others. All are placed hastily, the one
 * chosen then with care; the published waves as well, as method spindle would. */
static hbp_status choose_fastest(choosing *c, int32_t short_of_memory, int32_t *published)
{
    int64_t most = c->candidate[WAVES].slices.makespan_ns;
    HBP__TRY(consider_all(c, most, 0));
    if (!*c->best || short_of_memory)
        HBP__TRY(consider_all(c, most, 1));
    choice with_care = c->chosen;
    int is_published = with_care.of == &c->candidate[WAVES] && with_care.gradient_part == 0;
    if (with_care.of && !is_published)
        HBP__TRY(consider_choice(c, &with_care, 0));
    return consider_published(c, published);
}

/* The schedule that came with the bound, where the graph is small enough for one. */
static hbp_status copy_found(const hbp__planning *p, hbp__task_slices *slices)
{
    const hbp__moldable_plan *found = &p->bounds.best;
    for (int32_t m = 0; m < p->meta.count; m++) {
        const hbp__meta_op *op = &p->meta.meta_op[m];
        const hbp__curve *c = hbp__meta_curve(p->scaling, m);
        for (int32_t k = 0; k < op->count; k++) {
            int64_t start = found->start_ns[op->first + k];
            int32_t size = found->size[op->first + k];
            hbp__task_slice slice = {m, k, 1, c->size[size], 0, start, start + c->time_ns[size]};
            HBP__TRY(hbp__task_slices_add(p->context, slices, &slice));
        }
    }
    return HBP_OK;
}

/* Slices to start the search from: those of the published methods, then what came with the bound. */
typedef struct starts {
    hbp__task_slices made[METHODS + 1];
    const hbp__task_slices *given[METHODS + 1];
    int32_t count;
} starts;

static hbp_status make_starts(hbp__planning *p, const hbp__task_problem *problem, int32_t methods,
                              int32_t found, starts *s)
{
    s->count = methods + found;
    for (int32_t i = 0; i < s->count; i++) {
        s->made[i] = (hbp__task_slices){.memory = p->context->memory};
        s->given[i] = &s->made[i];
    }
    for (int32_t i = 0; i < methods; i++)
        HBP__TRY(hbp__planning_slices(p, HBP__TASKS_SPINDLE + i, problem, &s->made[i]));
    return found ? copy_found(p, &s->made[methods]) : HBP_OK;
}

/* The search's slices and the published waves of one problem. The search starts from all published methods,
 * of which the others are kept where there is room for `others` of them; or from the waves alone; and from
 * what was `found` with the bound. */
static hbp_status make_slices(choosing *c, const hbp__task_problem *problem, int32_t effort, int32_t methods,
                              int32_t others, int32_t found)
{
    hbp__planning *p = c->planning;
    starts s;
    hbp__task_slices own = {.memory = p->context->memory};
    hbp_status status = make_starts(p, problem, methods, found, &s);
    if (status >= 0)
        status = hbp__plan_overlap(p->context, problem, s.given, s.count, p->bounds.bound_ns, effort, &own);
    c->candidate[c->count++] = (candidate){problem, own, 0};
    for (int32_t i = 0; i < s.count; i++)
        if (i < methods && i <= others)
            c->candidate[c->count++] = (candidate){problem, s.made[i], i == 0};
        else
            hbp__task_slices_close(&s.made[i]);
    return status;
}

/* Whether every size tiles domains, so that those that do are all. */
static int same_sizes(const hbp__scaling *a, const hbp__scaling *b)
{
    for (int32_t i = 0; i < a->count; i++)
        if (a->curve[i].sizes != b->curve[i].sizes)
            return 0;
    return 1;
}

/* Both with sizes that tile domains: fewer, so they need less of a search, a quarter of it. */
static hbp_status make_tiled(choosing *c, const hbp__task_problem *tiled)
{
    int32_t effort = c->planning->options.effort;
    return make_slices(c, tiled, effort > HBP__TASKS_TILED_EFFORT ? effort - HBP__TASKS_TILED_EFFORT : effort,
                       1, 0, 0);
}

static hbp_status make_and_choose(choosing *c, const hbp__task_problem *problem, int32_t short_of_memory,
                                  int32_t *published)
{
    hbp__planning *p = c->planning;
    if (short_of_memory) {
        HBP__TRY(make_slices(c, problem, 1, METHODS, METHODS, 0));
        return choose_fastest(c, 1, published);
    }
    HBP__TRY(make_slices(c, problem, p->options.effort, METHODS, 0, p->bounds.few));
    const hbp__size_range range = {1, INT32_MAX, p->domain_gpus};
    hbp__scaling tiling;
    HBP__TRY(hbp__scaling_narrow(p->context, &p->meta, problem->scaling, &range, &tiling));
    hbp__task_problem tiled = *problem;
    tiled.scaling = &tiling;
    hbp_status status = same_sizes(problem->scaling, &tiling) ? HBP_OK : make_tiled(c, &tiled);
    if (status >= 0)
        status = choose_fastest(c, 0, published);
    hbp__scaling_close(&tiling);
    return status;
}

hbp_status hbp__planning_own(hbp__planning *planning, const hbp__task_problem *problem,
                             int32_t short_of_memory, hbp_task_schedule **best, int64_t *best_ns,
                             int32_t *published)
{
    choosing c = {.planning = planning, .best = best, .best_ns = best_ns};
    hbp_status status = make_and_choose(&c, problem, short_of_memory, published);
    for (int32_t i = 0; i < c.count; i++)
        hbp__task_slices_close(&c.candidate[i].slices);
    return status;
}
