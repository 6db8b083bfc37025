#include "data/packs/items.h"

#include <string.h>

#include "base/checked.h"
#include "base/sort.h"
#include "data/lengths/lengths_make.h"

/* Sizes in the order of `order`, without links: the histogram tells them, no sample need be looked up. */
static hbp_status sizes_from_histogram(hbp_context *context, hbp__items *items)
{
    const hbp_lengths *lengths = items->lengths;
    int64_t at = 0, since = 0;
    for (int64_t b = 0; b < lengths->bins; b++) {
        const uint32_t size = (uint32_t)hbp__round_up(lengths->bin_length[b], items->multiple);
        for (int64_t left = lengths->bin_count[b], part; left; left -= part) {
            part = hbp__min_i64(left, HBP__TICK_ROWS);
            for (int64_t i = at; i < at + part; i++)
                items->size[i] = size;
            at += part;
            HBP__TRY(hbp__tick_rows(context, "order lengths", &since, part, at, lengths->count));
        }
    }
    return HBP_OK;
}

/* Chains linked samples, walking `order` from its end so that each chain begins with its shortest sample;
 * what remains in `items->sample` is one entry an item, and totals[entry] its size. *tokens gets those of
 * all. */
static hbp_status chain_linked(hbp_context *context, hbp__items *items, uint32_t *head, uint64_t *totals,
                               int64_t *tokens)
{
    const hbp_lengths *lengths = items->lengths;
    for (int64_t t = 0; t < lengths->links; t++)
        head[t] = HBP__NO_SAMPLE;
    int64_t count = 0;
    *tokens = 0;
    for (int64_t i = lengths->count - 1; i >= 0; i--) {
        HBP__TRY(hbp__tick_row(context, "links", i, lengths->count));
        uint32_t sample = items->sample[i];
        uint32_t link = lengths->link[sample];
        items->next[sample] = HBP__NO_SAMPLE;
        if (link != HBP__FREE) {
            items->next[sample] = head[link];
            head[link] = sample;
        }
    }
    for (int64_t i = 0; i < lengths->count; i++) {
        HBP__TRY(hbp__tick_row(context, "links", i, lengths->count));
        uint32_t sample = items->sample[i];
        if (lengths->link[sample] != HBP__FREE && head[lengths->link[sample]] != sample)
            continue;
        uint64_t total = 0;
        for (uint32_t s = sample; s != HBP__NO_SAMPLE; s = items->next[s]) {
            int64_t length = hbp__lengths_get(lengths, s);
            total += (uint64_t)hbp__round_up(length, items->multiple);
            *tokens += length;
        }
        totals[count] = total;
        items->sample[count++] = sample;
    }
    items->count = count;
    return HBP_OK;
}

/* Sorts items by their totals, stable. */
static hbp_status sort_chained(hbp_context *context, hbp__items *items, const uint64_t *totals)
{
    uint64_t rows = (uint64_t)items->count;
    uint32_t *order = hbp__new(&context->memory, rows, 2 * sizeof *order);
    if (!order)
        return hbp__fail_memory(context, "the order of linked samples");
    uint32_t *sorted = order + rows;
    for (int64_t i = 0; i < items->count; i++)
        order[i] = (uint32_t)i;
    hbp_status status =
        hbp__order_by_u64(context, totals, order, items->count, "the order of linked samples");
    for (int64_t i = 0; i < items->count && status >= 0; i++) {
        status = hbp__tick_row(context, "links", i, items->count);
        sorted[i] = items->sample[order[i]];
        items->size[i] = totals[order[i]] > UINT32_MAX ? UINT32_MAX : (uint32_t)totals[order[i]];
    }
    if (status >= 0)
        memcpy(items->sample, sorted, rows * sizeof *sorted);
    hbp__delete(&context->memory, order);
    return status;
}

static hbp_status open_linked(hbp_context *context, hbp__items *items)
{
    const hbp_lengths *lengths = items->lengths;
    uint64_t rows = (uint64_t)lengths->count;
    items->next = hbp__new(&context->memory, rows, sizeof *items->next);
    uint32_t *head = hbp__new(&context->memory, (uint64_t)lengths->links, sizeof *head);
    uint64_t *totals = hbp__new(&context->memory, rows, sizeof *totals);
    hbp_status status = HBP_E_NO_MEMORY;
    if (items->next && head && totals) {
        int64_t tokens = 0; /* rooms are counted by the sum of the sizes */
        status = chain_linked(context, items, head, totals, &tokens);
        if (status >= 0 && tokens != lengths->tokens)
            status = hbp__lengths_changed(context);
        if (status >= 0)
            status = sort_chained(context, items, totals);
    } else {
        hbp__fail_memory(context, "linked samples");
    }
    hbp__delete(&context->memory, totals);
    hbp__delete(&context->memory, head);
    return status;
}

/* Refuses the last item, which is the largest, where it is larger than the capacity. */
static hbp_status check_largest(hbp_context *context, const hbp__items *items, int64_t size, int64_t capacity)
{
    const hbp_lengths *lengths = items->lengths;
    const int64_t last = items->count - 1;
    if (size <= capacity)
        return HBP_OK;
    const uint32_t sample = items->sample[last];
    return hbp__fail(context, HBP_E_INFEASIBLE,
                     "sample %lld%s has %lld tokens with padding; the longest pack holds %lld",
                     (long long)(lengths->origin ? lengths->origin[sample] : sample),
                     hbp__items_members(items, last) > 1 ? " with its linked samples" : "", (long long)size,
                     (long long)capacity);
}

static hbp_status open_order(hbp_context *context, const hbp_lengths *lengths, int64_t sequence_multiple,
                             uint64_t seed, uint64_t epoch, hbp__items *items)
{
    memset(items, 0, sizeof *items);
    items->memory = context->memory;
    items->lengths = lengths;
    items->multiple = sequence_multiple;
    items->count = lengths->count;
    return hbp__lengths_order(context, lengths, seed, epoch, &items->sample);
}

hbp_status hbp__items_open_order(hbp_context *context, const hbp_lengths *lengths, int64_t sequence_multiple,
                                 int64_t capacity, uint64_t seed, uint64_t epoch, hbp__items *items)
{
    HBP__TRY(open_order(context, lengths, sequence_multiple, seed, epoch, items));
    const int64_t longest = lengths->bin_length[lengths->bins - 1];
    return check_largest(context, items, hbp__round_up(longest, sequence_multiple), capacity);
}

/* Sizes of ordered items, into items->size. */
static hbp_status open_sizes(hbp_context *context, int64_t capacity, hbp__items *items)
{
    if (items->lengths->link)
        HBP__TRY(open_linked(context, items));
    else
        HBP__TRY(sizes_from_histogram(context, items));
    return check_largest(context, items, items->size[items->count - 1], capacity);
}

hbp_status hbp__items_open(hbp_context *context, const hbp_lengths *lengths, int64_t sequence_multiple,
                           int64_t capacity, uint64_t seed, uint64_t epoch, hbp__items *items)
{
    HBP__TRY(open_order(context, lengths, sequence_multiple, seed, epoch, items));
    items->size = hbp__new(&context->memory, (uint64_t)lengths->count, sizeof *items->size);
    return items->size ? open_sizes(context, capacity, items)
                       : hbp__fail_memory(context, "the sizes of samples");
}

hbp_status hbp__items_open_in(hbp_context *context, const hbp_lengths *lengths, int64_t sequence_multiple,
                              int64_t capacity, uint64_t seed, uint64_t epoch, uint32_t *size,
                              hbp__items *items)
{
    HBP__TRY(open_order(context, lengths, sequence_multiple, seed, epoch, items));
    items->size = size;
    items->is_size_borrowed = 1;
    return open_sizes(context, capacity, items);
}

void hbp__items_close(hbp__items *items)
{
    if (!items->is_size_borrowed)
        hbp__delete(&items->memory, items->size);
    hbp__delete(&items->memory, items->sample);
    hbp__delete(&items->memory, items->next);
    items->size = items->sample = items->next = NULL;
}

int64_t hbp__items_members(const hbp__items *items, int64_t i)
{
    if (!items->next)
        return 1;
    int64_t members = 0;
    for (uint32_t s = items->sample[i]; s != HBP__NO_SAMPLE; s = items->next[s])
        members++;
    return members;
}

int64_t hbp__items_up_to(const hbp__items *items, int64_t n, int64_t size)
{
    int64_t low = 0;
    while (low < n) {
        int64_t middle = low + (n - low) / 2;
        if (items->size[middle] <= size)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

int64_t hbp__items_squares(const hbp__items *items, int64_t i)
{
    if (!items->next)
        return (int64_t)items->size[i] * items->size[i];
    int64_t squares = 0;
    for (uint32_t s = items->sample[i]; s != HBP__NO_SAMPLE; s = items->next[s]) {
        int64_t length = hbp__lengths_get(items->lengths, s);
        squares += length * length;
    }
    return squares;
}

int64_t hbp__items_exact_squares(const hbp__items *items, int64_t i)
{
    if (items->next)
        return hbp__items_squares(items, i);
    /* Without padding an item's size is its length, and stands nearer than the sample's. */
    const int64_t length =
        items->multiple == 1 ? items->size[i] : hbp__lengths_get(items->lengths, items->sample[i]);
    return length * length;
}

int64_t hbp__items_write(const hbp__items *items, int64_t i, uint32_t *out)
{
    if (!items->next) {
        *out = items->sample[i];
        return 1;
    }
    int64_t members = 0;
    for (uint32_t s = items->sample[i]; s != HBP__NO_SAMPLE; s = items->next[s])
        out[members++] = s;
    return members;
}
