/* A step by first fit: a sequence goes to the first open group that holds it, else the least degree opens
 * one. */
#include <string.h>

#include "base/scratch.h"
#include "step/builder.h"

/* Sequences placed, and groups looked at besides, between two looks at a request to cancel. */
#define TICK_WORK 8192

/* The groups of one degree in the order of opening, under a heap that tells the first with enough room: node
 * i has the most tokens that any below nodes 2 i and 2 i + 1 has left. */
typedef struct shelf {
    int64_t count;
    int64_t leaves; /* a power of two; 0: none yet */
    int64_t *left;  /* [2 leaves]; group i of the degree is node leaves + i */
    int64_t *group; /* [leaves] its number in the step */
} shelf;

typedef struct fitting {
    const hbp__step *step;
    hbp__step_solution *solution;
    shelf shelf[HBP__STEP_DEGREES];
    int64_t *place;  /* [count] by group: where it stands on its shelf */
    hbp__load *load; /* [count] by group */
    int64_t groups;
    int64_t work;
} fitting;

static void set_left(shelf *s, int64_t i, int64_t left)
{
    int64_t node = s->leaves + i;
    s->left[node] = left;
    for (node /= 2; node >= 1; node /= 2) {
        int64_t a = s->left[2 * node], b = s->left[2 * node + 1];
        s->left[node] = a > b ? a : b;
    }
}

/* The first group from `from` on that has so many tokens left; -1: none. O(log groups). */
static int64_t first_with(const shelf *s, int64_t from, int64_t tokens)
{
    int64_t node = s->leaves + from;
    if (from >= s->count)
        return -1;
    /* Up, to the right, until a subtree holds one; then down to its first. */
    while (s->left[node] < tokens) {
        while (node & 1)
            node /= 2;
        if (!node)
            return -1;
        node++;
    }
    while (node < s->leaves)
        node = s->left[2 * node] >= tokens ? 2 * node : 2 * node + 1;
    return node - s->leaves;
}

static hbp_status grow(const fitting *f, shelf *s)
{
    const hbp__memory *memory = &f->step->context->memory;
    int64_t leaves = s->leaves ? 2 * s->leaves : 64;
    int64_t *left = hbp__new_zero(memory, (uint64_t)leaves, 2 * sizeof *left);
    int64_t *group = left ? hbp__renew(memory, s->group, (uint64_t)leaves, sizeof *group) : NULL;
    if (!group) {
        hbp__delete(memory, left);
        return hbp__fail_memory(f->step->context, "the groups of the step");
    }
    s->group = group;
    if (s->leaves)
        memcpy(left + leaves, s->left + s->leaves, (size_t)s->leaves * sizeof *left);
    for (int64_t node = leaves - 1; node >= 1; node--)
        left[node] = left[2 * node] > left[2 * node + 1] ? left[2 * node] : left[2 * node + 1];
    hbp__delete(memory, s->left);
    s->left = left;
    s->leaves = leaves;
    return HBP_OK;
}

/* The first group with room for sequence k; f->groups when there is none. */
static int64_t find_group(fitting *f, int64_t k)
{
    int64_t best = f->groups;
    for (int32_t j = 0; j < f->step->degrees; j++) {
        const shelf *s = &f->shelf[j];
        int64_t tokens = f->step->degree[j].tokens[k], i = first_with(s, 0, tokens);
        /* Only linked samples under a cap, and vision units, find groups that have no room but for tokens. */
        for (; i >= 0 && s->group[i] < best; i = first_with(s, i + 1, tokens), f->work++)
            if (hbp__step_takes(f->step, j, &f->load[s->group[i]], k))
                best = s->group[i];
    }
    return best;
}

/* Opens a group of the least degree that holds sequence k. */
static hbp_status open_group(fitting *f, int64_t k, int32_t *ranks)
{
    const hbp__step *step = f->step;
    hbp__step_solution *solution = f->solution;
    int32_t j = 0;
    while (!hbp__step_holds_alone(step, j, k))
        j++;
    shelf *s = &f->shelf[j];
    if (s->count == s->leaves)
        HBP__TRY(grow(f, s));
    if (!solution->micro_batches || *ranks < step->degree[j].degree) {
        solution->first[solution->micro_batches++] = f->groups;
        *ranks = step->ranks;
    }
    *ranks -= step->degree[j].degree;
    solution->degree[f->groups] = j;
    f->load[f->groups] = (hbp__load){0, 0, 0, 0};
    f->place[f->groups] = s->count;
    s->group[s->count] = f->groups++;
    set_left(s, s->count++, step->degree[j].capacity);
    return HBP_OK;
}

static hbp_status fit(fitting *f)
{
    const hbp__step *step = f->step;
    int32_t ranks = 0;
    for (int64_t k = 0; k < step->count; k++) {
        if (++f->work >= TICK_WORK) {
            HBP__TRY(hbp__tick(step->context, "sequences", k, step->count));
            f->work = 0;
        }
        int64_t g = find_group(f, k);
        if (g == f->groups)
            HBP__TRY(open_group(f, k, &ranks));
        int32_t j = f->solution->degree[g];
        shelf *s = &f->shelf[j];
        f->load[g] = hbp__step_load_with(step, j, f->load[g], k);
        int64_t left = s->left[s->leaves + f->place[g]] - step->degree[j].tokens[k];
        set_left(s, f->place[g], f->load[g].samples < step->most_samples ? left : 0);
        f->solution->group[k] = g;
    }
    f->solution->first[f->solution->micro_batches] = f->groups;
    f->solution->groups = f->groups;
    return HBP_OK;
}

hbp_status hbp__step_first_fit(const hbp__step *step, hbp__step_solution *solution)
{
    hbp_context *context = step->context;
    HBP__TRY(hbp__step_solution_open(step, step->count, step->count, solution));
    fitting f = {.step = step, .solution = solution};
    solution->micro_batches = solution->groups = 0;
    int64_t mark = hbp__scratch_mark(context);
    f.place = hbp__take(context, (uint64_t)step->count, sizeof *f.place);
    f.load = hbp__take(context, (uint64_t)step->count, sizeof *f.load);
    HBP__TRY(hbp__scratch_check(context, "the groups of the step"));
    hbp_status status = fit(&f);
    for (int32_t j = 0; j < step->degrees; j++) { /* what grows is no scratch */
        hbp__delete(&context->memory, f.shelf[j].left);
        hbp__delete(&context->memory, f.shelf[j].group);
    }
    HBP__TRY(status);
    hbp__scratch_release(context, mark);
    return hbp__step_solution_price(step, solution);
}
