/* A micro-batch whose groups are given: who goes where. */
#include <math.h>

#include "step/builder.h"

/* Where sequence k goes best in micro-batch 0 of the trial board: within the goal to the least degree and
 * there to the fullest group (`level` zero), or to the group that is done first; else where it costs least
 * over the goal. HBP__NONE: nowhere. `vision`, whether vision units count, is a constant: the loop is made
 * for either. */
static inline int64_t choose_where(const hbp__step_builder *b, int64_t k, double goal, int level, int vision)
{
    const hbp__step *step = b->step;
    int64_t best = HBP__NONE;
    double best_over = (double)INFINITY, best_rank = (double)INFINITY;
    const hbp__load alone = hbp__step_load_least(step, k);
    for (int64_t g = 0; g < b->trial.groups[0]; g++) {
        const hbp__step_group *group = &b->trial.group[g];
        const hbp__step_degree *d = &step->degree[group->degree];
        int64_t tokens = group->load.tokens + d->tokens[k], samples = group->load.samples + alone.samples;
        double squares = group->load.squares + alone.squares, units = 0, past = 0;
        const hbp__point *way = hbp__step_find_way(d, tokens);
        if (vision) {
            hbp__load load = {tokens, squares, group->load.vision + alone.vision, samples};
            way = tokens > d->capacity ? &d->way[d->ways - 1]
                                       : hbp__step_find_vision_way(step, group->degree, load);
            units = (double)load.vision;
            past = hbp__step_vision_excess(step, group->degree, load);
        }
        double time = way->constant + way->linear * (double)tokens + way->square * squares;
        if (vision)
            time += way->vision * units;
        double over = time > goal ? (time - goal) * d->degree : 0;
        if (tokens > d->capacity)
            over += goal * (double)(tokens - d->capacity) / (double)d->capacity * d->degree;
        if (samples > step->most_samples)
            over += goal * (double)(samples - step->most_samples) / (double)step->most_samples * d->degree;
        if (vision)
            over += goal * past * d->degree;
        double rank = level || over > 0 ? time : (double)(group->degree + 1) * goal - time;
        if (over < best_over || (over == best_over && rank < best_rank)) {
            best = g;
            best_over = over;
            best_rank = rank;
        }
    }
    return best;
}

static int64_t choose(const hbp__step_builder *b, int64_t k, double goal, int level)
{
    return b->step->vision ? choose_where(b, k, goal, level, 1) : choose_where(b, k, goal, level, 0);
}

int hbp__step_configure(hbp__step_builder *b, const int32_t *count, double goal, int level, int64_t moves)
{
    const hbp__step *step = b->step;
    hbp__step_board *t = &b->trial;
    t->groups[0] = 0;
    for (int32_t j = step->degrees - 1; j >= 0; j--)
        for (int32_t i = 0; i < count[j]; i++)
            t->group[t->groups[0]++] = hbp__step_group_empty(j, step->cost->terms.pack_ns);
    for (int64_t i = 0; i < b->pool.count; i++) {
        int64_t k = b->pool.member[i], g = choose(b, k, goal, level);
        hbp__step_group *group = &t->group[g];
        hbp__step_group_add(step, group, k, 1);
        t->next[k] = group->head;
        group->head = k;
        t->home[k] = g;
    }
    b->work += b->pool.count * t->groups[0];
    return hbp__step_squeeze(&b->squeezer, t, 0, NULL, 0, goal, moves);
}
