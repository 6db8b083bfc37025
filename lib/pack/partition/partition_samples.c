/* The plain call: its options, and the parts as columns. */
#include <string.h>

#include "base/checked.h"
#include "base/options.h"
#include "base/scratch.h"
#include "data/lengths/lengths_make.h"
#include "pack/partition/partition.h"

static hbp_status check_options(const hbp__partition_call *c)
{
    const hbp_partition_options *o = c->options;
    hbp_context *context = c->context;
    if (o->weights && (o->linear || o->square))
        return hbp__fail(context, HBP_E_INVALID, "`weights` excludes `linear` and `square`");
    if (o->weights && o->over_long == HBP_OVERLONG_SPLIT)
        return hbp__fail(
            context, HBP_E_INVALID,
            "`weights` says nothing of pieces; with `over_long` split give `linear` and `square`");
    if (o->parts && (o->min_parts || o->multiple_of))
        return hbp__fail(
            context, HBP_E_INVALID,
            "`parts` is %lld; `min_parts` and `multiple_of` are for a number of parts that is not "
            "given",
            (long long)o->parts);
    if (o->parts)
        return HBP_OK;
    if (!o->capacity && !o->max_samples)
        return hbp__fail(context, HBP_E_INVALID,
                         "one of `parts`, `capacity` and `max_samples` must be given");
    if (!o->capacity && o->max_samples > INT32_MAX)
        return hbp__fail(context, HBP_E_INVALID,
                         "`max_samples` is %lld; without `parts` and `capacity` it is at most %lld",
                         (long long)o->max_samples, (long long)INT32_MAX);
    if (o->capacity > HBP_MAX_LENGTH)
        return hbp__fail(context, HBP_E_INVALID, "`capacity` is %lld; without `parts` it is at most %lld",
                         (long long)o->capacity, (long long)HBP_MAX_LENGTH);
    return HBP_OK;
}

/* Numbers the parts by their first sample: place [parts], -1 for those without one. */
static void number_parts(const hbp__partition_call *c, int64_t *place)
{
    int64_t next = 0;
    for (int64_t k = 0; k < c->parts; k++)
        place[k] = -1;
    for (int64_t e = 0; e < c->entries; e++) {
        uint32_t part = c->part[c->item[e]];
        if (place[part] < 0)
            place[part] = next++;
    }
}

static hbp_partition *new_partition(hbp_context *context, const hbp__partition_call *c)
{
    const hbp__memory *memory = &context->memory;
    uint64_t parts = (uint64_t)c->parts, samples = (uint64_t)c->entries, dropped = (uint64_t)c->dropped;
    hbp_partition *made = hbp__new_zero(memory, 1, sizeof *made);
    if (!made)
        return NULL;
    made->memory = *memory;
    made->parts = c->parts;
    made->samples = c->entries;
    made->dropped = c->dropped;
    made->least_parts = c->least_parts;
    made->bound = c->bound;
    made->offsets = hbp__new_zero(memory, parts + 1, sizeof *made->offsets);
    made->part_tokens = hbp__new_zero(memory, parts, sizeof *made->part_tokens);
    made->part_weights = hbp__new_zero(memory, parts, sizeof *made->part_weights);
    made->id = hbp__new(memory, samples, sizeof *made->id);
    made->first_tokens = hbp__new(memory, samples, sizeof *made->first_tokens);
    made->sample_tokens = hbp__new(memory, samples, sizeof *made->sample_tokens);
    made->dropped_id = hbp__new(memory, dropped ? dropped : 1, sizeof *made->dropped_id);
    if (made->offsets && made->part_tokens && made->part_weights && made->id && made->first_tokens &&
        made->sample_tokens && made->dropped_id)
        return made;
    hbp_partition_free(made);
    return NULL;
}

/* Entries and items in the order of their parts. place [parts]. */
static hbp_status fill_columns(const hbp__partition_call *c, const int64_t *place, hbp_partition *made)
{
    int64_t *offsets = made->offsets;
    for (int64_t e = 0; e < c->entries; e++)
        offsets[place[c->part[c->item[e]]]]++;
    for (int64_t k = c->parts, after = c->entries; k >= 0; k--) { /* counts to first places */
        after -= offsets[k];
        offsets[k] = after;
    }
    for (int64_t e = 0; e < c->entries; e++) {
        int64_t part = place[c->part[c->item[e]]], at = offsets[part]++;
        HBP__TRY(hbp__tick_row(c->context, "the parts", e, c->entries));
        made->id[at] = c->id[e];
        made->first_tokens[at] = c->first[e];
        made->sample_tokens[at] = c->tokens[e];
        made->part_tokens[part] += c->tokens[e];
    }
    for (int64_t k = c->parts; k > 0; k--)
        offsets[k] = offsets[k - 1];
    offsets[0] = 0;
    for (int64_t i = 0; i < c->items; i++)
        made->part_weights[place[c->part[i]]] += c->weight[i];
    for (int64_t k = 0; k < c->parts; k++)
        made->heaviest = hbp__max_i64(made->heaviest, made->part_weights[k]);
    if (c->dropped)
        memcpy(made->dropped_id, c->dropped_id, (size_t)c->dropped * sizeof *c->dropped_id);
    return HBP_OK;
}

static hbp_status partition_samples(hbp_context *context, const int64_t *lengths, int64_t count,
                                    const hbp_partition_options *given, hbp_partition **out)
{
    hbp_partition_options options;
    HBP__TRY(hbp__options_read(context, &options, sizeof options, given, "hbp_partition_options"));
    HBP__TRY(hbp__require(context, lengths, "lengths"));
    HBP__TRY(hbp__lengths_check_count(context, count));
    hbp__partition_call c = {.context = context,
                             .options = &options,
                             .length = lengths,
                             .count = count,
                             .capacity = options.capacity ? options.capacity : INT64_MAX,
                             .most_samples = options.max_samples ? options.max_samples : INT64_MAX};
    HBP__TRY(check_options(&c));
    HBP__TRY(hbp__partition_items(&c));
    HBP__TRY(hbp__partition_parts(&c));
    int64_t *place = hbp__take(context, (uint64_t)c.parts, sizeof *place);
    HBP__TRY(hbp__scratch_check(context, "the parts"));
    number_parts(&c, place);
    hbp_partition *made = new_partition(context, &c);
    if (!made)
        return hbp__fail_memory(context, "the partition");
    hbp_status status = fill_columns(&c, place, made);
    if (status < 0)
        hbp_partition_free(made);
    else
        *out = made;
    return status;
}

hbp_status hbp__partition_samples(hbp_context *context, const int64_t *lengths, int64_t count,
                                  const hbp_partition_options *options, hbp_partition **out)
{
    int64_t mark = hbp__scratch_mark(context);
    *out = NULL;
    return hbp__leave(context, mark, partition_samples(context, lengths, count, options, out));
}

hbp_status hbp_partition_samples(const int64_t *lengths, int64_t count, const hbp_partition_options *options,
                                 hbp_partition **out, char *why, int64_t why_bytes)
{
    hbp_context *context = hbp__context_alone(why, why_bytes);
    if (out)
        *out = NULL;
    hbp_status status = context ? hbp__require(context, out, "out") : HBP_E_NO_MEMORY;
    if (status >= 0)
        status = hbp__partition_samples(context, lengths, count, options, out);
    return hbp__context_end(context, status, why, why_bytes);
}

void hbp_partition_free(hbp_partition *partition)
{
    if (!partition)
        return;
    hbp__memory memory = partition->memory;
    void *blocks[] = {
        partition->offsets,      partition->part_tokens,   partition->part_weights, partition->id,
        partition->first_tokens, partition->sample_tokens, partition->dropped_id,   partition};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hbp__delete(&memory, blocks[i]);
}

hbp_status hbp_partition_get_view(const hbp_partition *partition, hbp_partition_view *view)
{
    hbp_partition_view all = {0};
    if (partition)
        all = (hbp_partition_view){.parts = partition->parts,
                                   .samples = partition->samples,
                                   .dropped = partition->dropped,
                                   .least_parts = partition->least_parts,
                                   .heaviest = partition->heaviest,
                                   .bound = partition->bound,
                                   .part_offsets = partition->offsets,
                                   .part_tokens = partition->part_tokens,
                                   .part_weights = partition->part_weights,
                                   .sample_ids = partition->id,
                                   .sample_first_tokens = partition->first_tokens,
                                   .sample_tokens = partition->sample_tokens,
                                   .dropped_ids = partition->dropped_id};
    return hbp__view_write(view, partition, &all, sizeof all);
}
