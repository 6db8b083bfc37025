/* Vision units in a step: what groups hold of them beside tokens, and the order of sequences whose lengths
 * alone do not tell how long they take. Memory is asked in the very bytes that plans record. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "step/step.h"

/* Bytes of a load, its tokens with the pack's padding, past what a rank has; none: not positive. */
static int64_t bytes_over(const hbp__step *step, const hbp__point *way, hbp__load load)
{
    return hbp__cost_pack_bytes(step->cost, way->row, way->recompute, load) - step->cost->terms.limit_bytes;
}

static int counts_bytes(const hbp__step *step, hbp__load load)
{
    return load.vision > 0 && step->cost->terms.vision_bytes > 0;
}

static hbp__load pad(const hbp__step *step, int32_t j, hbp__load load)
{
    load.tokens = hbp__round_up(load.tokens, step->degree[j].pack_multiple);
    return load;
}

int hbp__step_holds_vision(const hbp__step *step, int32_t j, hbp__load load)
{
    const hbp__step_degree *degree = &step->degree[j];
    if (load.vision > step->most_vision)
        return 0;
    return !counts_bytes(step, load) ||
           bytes_over(step, &degree->way[degree->ways - 1], pad(step, j, load)) <= 0;
}

int hbp__step_takes_vision(const hbp__step *step, int32_t j, const hbp__load *load, int64_t k)
{
    return hbp__step_holds_vision(step, j, hbp__step_load_with(step, j, *load, k));
}

const hbp__point *hbp__step_find_vision_way(const hbp__step *step, int32_t j, hbp__load load)
{
    const hbp__step_degree *degree = &step->degree[j];
    const hbp__point *way = hbp__step_find_way(degree, load.tokens);
    if (!counts_bytes(step, load) || bytes_over(step, way, load) <= 0)
        return way;
    int32_t exceeds = (int32_t)(way - degree->way), fits = degree->ways - 1;
    while (fits - exceeds > 1) {
        int32_t middle = exceeds + (fits - exceeds) / 2;
        if (bytes_over(step, &degree->way[middle], load) <= 0)
            fits = middle;
        else
            exceeds = middle;
    }
    return &degree->way[fits];
}

double hbp__step_vision_time(const hbp__step *step, int32_t j, hbp__load load)
{
    load = pad(step, j, load);
    const hbp__point *way = hbp__step_find_vision_way(step, j, load);
    return way->constant + way->linear * (double)load.tokens + way->square * load.squares +
           way->vision * (double)load.vision;
}

double hbp__step_vision_time_by(const hbp__step *step, int32_t j, const hbp__load *load, int64_t k,
                                int64_t other, int sign)
{
    hbp__load after = *load;
    hbp__step_load_add(step, j, &after, k, sign);
    if (other >= 0)
        hbp__step_load_add(step, j, &after, other, -sign);
    if (!after.tokens)
        return step->cost->terms.pack_ns;
    return hbp__step_holds(step, j, after) ? hbp__step_vision_time(step, j, after) : (double)INFINITY;
}

int64_t hbp__step_vision_ns(const hbp__step *step, int32_t j, hbp__load load)
{
    load = pad(step, j, load);
    if (!hbp__step_holds(step, j, load))
        return INT64_MAX;
    int32_t recompute = load.tokens ? hbp__step_find_vision_way(step, j, load)->recompute : 0;
    return hbp__cost_pack_ns(step->cost, step->degree[j].row, recompute, load);
}

double hbp__step_vision_excess(const hbp__step *step, int32_t j, hbp__load load)
{
    const hbp__step_degree *degree = &step->degree[j];
    double excess = 0;
    if (load.vision > step->most_vision)
        excess = (double)(load.vision - step->most_vision) / (double)step->most_vision;
    if (counts_bytes(step, load)) {
        const hbp_cost_terms *t = &step->cost->terms;
        int64_t over = bytes_over(step, &degree->way[degree->ways - 1], pad(step, j, load));
        excess += over > 0 ? (double)over / ((double)t->limit_bytes - t->static_bytes) : 0;
    }
    return excess;
}

int64_t hbp__step_vision_capacity(const hbp__step *step, int32_t j, const hbp__point *way, int64_t vision)
{
    const hbp__step_degree *degree = &step->degree[j];
    int64_t capacity = way->capacity;
    if (!step->vision)
        return capacity;
    if (vision > 0)
        capacity = hbp__min_i64(capacity, hbp__cost_capacity(step->cost, way->row, way->recompute, vision));
    capacity -= capacity % degree->pack_multiple;
    return hbp__min_i64(capacity, degree->most);
}

double hbp__step_rank_time(const hbp__step *step, int32_t j, int64_t k)
{
    const hbp__step_degree *degree = &step->degree[j];
    hbp__load load = hbp__step_load_of(step, j, k);
    const hbp__point *way = hbp__step_way_of(step, j, load);
    double tokens = (double)load.tokens, share = tokens / (double)way->capacity;
    double ns = way->linear * tokens;
    if (step->vision) {
        double vision = (double)load.vision;
        share = hbp__min_f64(1, share + vision * degree->vision_tokens / (double)way->capacity);
        share = hbp__max_f64(share, vision / (double)step->most_vision);
        ns += way->vision * vision;
    }
    return (double)degree->degree * (way->constant * share + ns + way->square * load.squares);
}

/* Tokens of a single sample that takes as long as sequence k on the least degree, with nothing recomputed. */
static int64_t weigh(const hbp__step *step, int64_t k)
{
    const hbp__point *way = &step->degree[0].way[0];
    double ns = way->linear * (double)step->tokens[k] + way->square * step->squares[k] +
                way->vision * (double)step->vision[k];
    double root = way->linear + sqrt(way->linear * way->linear + 4 * way->square * ns);
    return root > 0 ? hbp__round_i64(2 * ns / root) : step->tokens[k];
}

/* Puts a column in the order given; `scratch` [count]. */
static void reorder(const uint32_t *order, int64_t count, int64_t *column, int64_t *scratch)
{
    memcpy(scratch, column, (size_t)count * sizeof *column);
    for (int64_t k = 0; k < count; k++)
        column[k] = scratch[order[k]];
}

hbp_status hbp__step_list_vision(hbp__step *step)
{
    hbp_context *context = step->context;
    uint64_t count = (uint64_t)step->count;
    step->vision = hbp__take(context, count, sizeof *step->vision);
    step->weight = hbp__take(context, count, sizeof *step->weight);
    step->order = hbp__take(context, count, sizeof *step->order);
    double *squares = hbp__take(context, count, sizeof *squares);
    int64_t mark = hbp__scratch_mark(context);
    int64_t *scratch = hbp__take(context, count, sizeof *scratch);
    HBP__TRY(hbp__scratch_check(context, "the sequences"));
    const hbp__items *items = &step->items;
    for (int64_t k = 0; k < step->count; k++) {
        HBP__TRY(hbp__tick_row(context, "sequences", k, step->count));
        step->vision[k] = 0;
        for (uint32_t s = items->sample[step->count - 1 - k]; s != HBP__NO_SAMPLE;
             s = items->next ? items->next[s] : HBP__NO_SAMPLE)
            step->vision[k] += hbp__lengths_vision(step->lengths, s);
        step->weight[k] = step->degrees ? -weigh(step, k) : -step->tokens[k];
        step->order[k] = (uint32_t)k;
    }
    if (!hbp__sort_by_i64(&context->memory, step->weight, step->order, step->count))
        return hbp__fail_memory(context, "the sequences");
    reorder(step->order, step->count, step->weight, scratch);
    reorder(step->order, step->count, step->tokens, scratch);
    reorder(step->order, step->count, step->vision, scratch);
    for (int64_t k = 0; k < step->count; k++) {
        squares[k] = step->squares[step->order[k]];
        step->weight[k] = -step->weight[k];
    }
    step->squares = squares;
    step->total_tokens = 0;
    for (int64_t k = 0; k < step->count; k++) {
        step->order[k] = (uint32_t)(step->count - 1 - step->order[k]);
        step->total_tokens += hbp__step_room(step, k);
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
