#include "walk/batch.h"

#include <stdlib.h>

/* Makes *array hold `count` values of `size` bytes. */
static int grow(void **array, int64_t *room, int64_t count, size_t size, ex_fault *fault)
{
    if (count <= *room)
        return 0;
    if ((uint64_t)count > SIZE_MAX / size)
        return ex_fail(fault, "a pack of %lld tokens is more than memory can hold", (long long)count);
    void *grown = realloc(*array, (size_t)count * size);
    if (!grown)
        return ex_fail(fault, "no memory for a pack of %lld tokens", (long long)count);
    *array = grown;
    *room = count;
    return 0;
}

static int make_room(ex_batch *b, int64_t chunk, int64_t borders, ex_fault *fault)
{
    int64_t room[4] = {b->token_room, b->token_room, b->token_room, b->token_room};
    void *arrays[4] = {b->tokens, b->targets, b->positions, b->weights};
    int failed = 0;
    for (int i = 0; i < 4 && !failed; i++)
        failed = grow(&arrays[i], &room[i], chunk, 4, fault);
    b->tokens = arrays[0];
    b->targets = arrays[1];
    b->positions = arrays[2];
    b->weights = arrays[3];
    if (failed)
        return -1;
    b->token_room = room[0];
    void *list = b->borders;
    failed = grow(&list, &b->border_room, borders, sizeof *b->borders, fault);
    b->borders = list;
    return failed;
}

static int64_t round_up(int64_t value, int64_t multiple)
{
    int64_t rest = value % multiple;
    return rest ? value + (multiple - rest) : value;
}

int64_t ex_batch_tokens(const hbp_plan *plan, int64_t pack, int64_t first, int64_t count, int32_t sp)
{
    int64_t tokens = 0;
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(plan, &view);
    if (pack >= 0)
        tokens = view.pack_padded_tokens[pack];
    else
        for (int64_t i = first; i < first + count; i++)
            tokens += view.sample_tokens[i];
    return round_up(tokens > sp ? tokens : sp, sp);
}

/* Writes the borders of the documents as they are run; the last is the pack's end. */
static int find_borders(ex_batch *b, hbp_context *context, const hbp_plan *plan, int64_t pack, int64_t first,
                        int64_t count, int64_t tokens, ex_fault *fault)
{
    int64_t borders = 1;
    b->borders[0] = 0;
    if (pack >= 0 && count > 0) {
        if (hbp_plan_copy_cu_seqlens(context, plan, pack, 1, b->borders, count + 2, &borders) < 0)
            return ex_fail(fault, "%s", hbp_context_message(context));
    } else if (count > 0) {
        hbp_plan_view view = {.struct_size = sizeof view};
        (void)hbp_plan_get_view(plan, &view);
        for (int64_t i = 0; i < count; i++)
            b->borders[i + 1] = b->borders[i] + view.sample_tokens[first + i];
        borders = count + 1;
    }
    if (b->borders[borders - 1] < tokens)
        b->borders[borders++] = (int32_t)tokens;
    b->pack.documents = borders - 1;
    b->pack.borders = b->borders;
    b->sum_squares = 0;
    for (int64_t i = 1; i < borders; i++) {
        int64_t length = b->borders[i] - b->borders[i - 1];
        b->sum_squares += length * length;
    }
    return 0;
}

/* The part of document `i` that lies in the rank's chunk, tokens [from, to) of the pack. */
static int fill_document(ex_batch *b, const hbp_plan *plan, int64_t row, int64_t i, double weight,
                         const ex_tokens *source, int64_t from, int64_t to, ex_fault *fault)
{
    int64_t begin = b->borders[i];
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(plan, &view);
    int64_t length = view.sample_tokens[row];
    int64_t low = from > begin ? from - begin : 0;
    int64_t high = to - begin < length ? to - begin : length;
    if (low >= high)
        return 0;
    int64_t end = length - b->shifted_loss;
    int64_t quiet = end - (view.sample_loss_tokens ? view.sample_loss_tokens[row] : end);
    void *scratch = b->sample;
    int failed = grow(&scratch, &b->sample_room, high - low + 1, sizeof *b->sample, fault);
    b->sample = scratch;
    if (failed || ex_tokens_read(source, view.sample_ids[row],
                                 (view.sample_first_tokens ? view.sample_first_tokens[row] : 0) + low,
                                 high - low, b->sample, fault) < 0)
        return -1;
    for (int64_t t = low; t < high; t++) {
        int64_t at = begin + t - from;
        b->tokens[at] = b->sample[t - low];
        b->targets[at] = b->sample[t - low + 1];
        b->weights[at] = t < quiet || t >= end ? 0 : (float)weight;
    }
    return 0;
}

int ex_batch_fill(ex_batch *b, hbp_context *context, const hbp_plan *plan, int64_t pack, int64_t first,
                  int64_t count, const double *weights, int64_t step_first, const ex_tokens *source,
                  const ex_group *group, int32_t recompute, ex_fault *fault)
{
    int64_t tokens = ex_batch_tokens(plan, pack, first, count, group->size);
    int64_t chunk = tokens / group->size;
    if (tokens > INT32_MAX)
        return ex_fail(fault, "a pack has %lld tokens; borders hold at most %d", (long long)tokens,
                       INT32_MAX);
    if (make_room(b, chunk, count + 3, fault) < 0 ||
        find_borders(b, context, plan, pack, first, count, tokens, fault) < 0)
        return -1;
    int64_t from = chunk * group->rank;
    for (int64_t t = 0; t < chunk; t++) {
        b->tokens[t] = 0;
        b->targets[t] = 0;
        b->weights[t] = 0;
    }
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(plan, &view);
    b->real_tokens = 0;
    int64_t document = 0;
    for (int64_t i = 0; i < count; i++) {
        b->real_tokens += view.sample_tokens[first + i];
        if (fill_document(b, plan, first + i, i, weights[first + i - step_first], source, from, from + chunk,
                          fault) < 0)
            return -1;
    }
    /* Positions begin again at every sample; padding behind the last one goes on counting. */
    for (int64_t t = 0; t < chunk; t++) {
        while (document + 1 < count && from + t >= b->borders[document + 1])
            document++;
        b->positions[t] = (int32_t)(from + t - b->borders[document]);
    }
    b->pack.group = group;
    b->pack.pack_tokens = tokens;
    b->pack.recompute = recompute;
    b->pack.tokens = b->tokens;
    b->pack.targets = b->targets;
    b->pack.positions = b->positions;
    b->pack.weights = b->weights;
    return 0;
}

void ex_batch_free(ex_batch *b)
{
    free(b->tokens);
    free(b->targets);
    free(b->positions);
    free(b->weights);
    free(b->borders);
    free(b->sample);
    *b = (ex_batch){0};
}
