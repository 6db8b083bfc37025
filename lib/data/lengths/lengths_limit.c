/* Samples longer than a limit: refused, dropped, truncated or split; links and histograms follow. */
#include <string.h>

#include "base/checked.h"
#include "base/digest.h"
#include "data/lengths/lengths_make.h"

/* One limit at work: from the old data set to the new draft. */
typedef struct limiting {
    hbp_context *context;
    const hbp_lengths *given;
    const hbp_lengths *from; /* what is cut: `given`, or a histogram spelt out */
    hbp_lengths *to;
    int64_t limit;
    int32_t policy;
    int64_t first_over; /* bins from here on are past the limit */
    int64_t over_samples;
    int64_t *link_tokens;     /* [links]; NULL without links */
    unsigned char *link_over; /* [links] a linked sample is past the limit */
} limiting;

/* What stays of a sample; the first of the pieces when it is split. */
static inline int64_t kept_length(const limiting *l, int64_t length)
{
    return hbp__min_i64(length, l->limit);
}

static inline int64_t pieces_of(const limiting *l, int64_t length)
{
    return l->policy == HBP_OVERLONG_SPLIT ? hbp__ceil_div(length, l->limit) : 1;
}

static inline int is_dropped(const limiting *l, int64_t i)
{
    if (l->policy != HBP_OVERLONG_DROP)
        return 0;
    if (hbp__lengths_get(l->from, i) > l->limit)
        return 1;
    return l->from->link && l->from->link[i] != HBP__FREE && l->link_over[l->from->link[i]];
}

static inline int64_t origin_of(const hbp_lengths *lengths, int64_t i)
{
    return lengths->origin ? lengths->origin[i] : i;
}

static hbp_status refuse_overlong(const limiting *l)
{
    const hbp_lengths *from = l->from;
    int64_t first = from->bin_first[l->first_over];
    for (int64_t i = 0; from->length && i < from->count; i++)
        if (from->length[i] > l->limit) {
            first = i;
            break;
        }
    return hbp__fail(l->context, HBP_E_INVALID,
                     "%lld of %lld samples %s longer than %lld tokens; the first is sample %lld with %lld; "
                     "over_long drop, truncate "
                     "or split would take them",
                     (long long)l->over_samples, (long long)from->count, l->over_samples == 1 ? "is" : "are",
                     (long long)l->limit, (long long)origin_of(from, first),
                     (long long)hbp__lengths_get(from, first));
}

/* Linked samples share a pack, so they must fit together, unless dropping one that is over-long by itself
 * takes the others along. */
static hbp_status check_links(limiting *l)
{
    const hbp_lengths *from = l->from;
    if (!from->link)
        return HBP_OK;
    l->link_tokens = hbp__new_zero(&l->context->memory, (uint64_t)from->links, sizeof *l->link_tokens);
    l->link_over = hbp__new_zero(&l->context->memory, (uint64_t)from->links, sizeof *l->link_over);
    if (!l->link_tokens || !l->link_over)
        return hbp__fail_memory(l->context, "links");
    for (int64_t i = 0; i < from->count; i++) {
        HBP__TRY(hbp__tick_row(l->context, "limit lengths", i, from->count));
        if (from->link[i] == HBP__FREE)
            continue;
        int64_t tokens = hbp__lengths_get(from, i);
        l->link_tokens[from->link[i]] += tokens;
        l->link_over[from->link[i]] |= tokens > l->limit;
    }
    for (int64_t t = 0; t < from->links; t++)
        if (l->link_tokens[t] > l->limit && !(l->policy == HBP_OVERLONG_DROP && l->link_over[t]))
            return hbp__fail(l->context, HBP_E_INVALID,
                             "the samples with link %lld have %lld tokens together; max_length is %lld",
                             (long long)from->link_value[t], (long long)l->link_tokens[t],
                             (long long)l->limit);
    return HBP_OK;
}

static hbp_status check_pieces(const limiting *l, int64_t pieces)
{
    if (pieces > HBP_MAX_SAMPLES)
        return hbp__fail(l->context, HBP_E_OVERFLOW,
                         "a limit of %lld tokens makes %lld pieces; the most allowed is %lld",
                         (long long)l->limit, (long long)pieces, (long long)HBP_MAX_SAMPLES);
    return HBP_OK;
}

static hbp_status count_kept(limiting *l, int64_t *pieces, int64_t *dropped)
{
    const hbp_lengths *from = l->from;
    *pieces = 0;
    *dropped = l->given->dropped;
    for (int64_t i = 0; i < from->count; i++) {
        if (i % HBP__LENGTHS_BLOCK == 0)
            HBP__TRY(hbp__tick(l->context, "limit lengths", i, from->count));
        if (is_dropped(l, i))
            ++*dropped;
        else
            *pieces += pieces_of(l, hbp__lengths_get(from, i));
    }
    if (*pieces == 0)
        return hbp__fail(l->context, HBP_E_INVALID, "no samples left: all %lld are longer than %lld tokens",
                         (long long)from->count, (long long)l->limit);
    return check_pieces(l, *pieces);
}

static hbp_status new_dropped(limiting *l, int64_t dropped)
{
    const hbp_lengths *given = l->given;
    hbp_lengths *to = l->to;
    to->dropped_id = hbp__new(&to->memory, (uint64_t)dropped, sizeof *to->dropped_id);
    to->dropped_reason = hbp__new(&to->memory, (uint64_t)dropped, sizeof *to->dropped_reason);
    if (!to->dropped_id || !to->dropped_reason)
        return hbp__fail_memory(l->context, "dropped samples");
    to->dropped = given->dropped;
    if (to->dropped) {
        memcpy(to->dropped_id, given->dropped_id, (size_t)to->dropped * sizeof *to->dropped_id);
        memcpy(to->dropped_reason, given->dropped_reason, (size_t)to->dropped * sizeof *to->dropped_reason);
    }
    return HBP_OK;
}

static void drop_sample(limiting *l, int64_t id)
{
    l->to->dropped_id[l->to->dropped] = id;
    l->to->dropped_reason[l->to->dropped++] = HBP_DROPPED_OVERLONG;
}

static hbp_status new_columns(limiting *l, int64_t pieces)
{
    const hbp_lengths *from = l->from;
    hbp_lengths *to = l->to;
    int renamed = from->origin || l->policy != HBP_OVERLONG_TRUNCATE;
    struct {
        uint32_t **column;
        int wanted;
    } columns[] = {{&to->owned, 1},
                   {&to->loss, from->loss != NULL},
                   {&to->link, from->link != NULL},
                   {&to->vision, from->vision != NULL},
                   {&to->origin, renamed},
                   {&to->first, l->policy == HBP_OVERLONG_SPLIT}};
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
        if (columns[c].wanted) {
            *columns[c].column = hbp__new(&to->memory, (uint64_t)pieces, sizeof **columns[c].column);
            if (!*columns[c].column)
                return hbp__fail_memory(l->context, "limited lengths");
        }
    /* A later piece has the kind of its sample, but not the vision units that it follows from. */
    if (from->modality || (from->vision && l->policy == HBP_OVERLONG_SPLIT)) {
        to->modality = hbp__new(&to->memory, (uint64_t)pieces, sizeof *to->modality);
        if (!to->modality)
            return hbp__fail_memory(l->context, "limited lengths");
    }
    to->count = pieces;
    to->length = to->owned;
    return HBP_OK;
}

/* Cuts sample i of `tokens` into the pieces from `piece` on; returns the next piece. Truncation makes one
 * piece. The loss tokens go to the pieces front to back, each taking as many as it has tokens; the vision
 * units all go to the first, where the encoder runs, and the kind to every one. */
static int64_t cut_sample(limiting *l, int64_t i, int64_t tokens, int64_t piece)
{
    const hbp_lengths *from = l->from;
    hbp_lengths *to = l->to;
    int64_t left = tokens, loss = from->loss ? from->loss[i] : 0;
    do {
        int64_t length = kept_length(l, left);
        int64_t lossy = hbp__min_i64(loss, length);
        to->owned[piece] = (uint32_t)length;
        if (to->loss)
            to->loss[piece] = (uint32_t)lossy;
        if (to->link)
            to->link[piece] = from->link[i];
        if (to->vision)
            to->vision[piece] = left == tokens ? from->vision[i] : 0;
        if (to->modality)
            to->modality[piece] = (uint8_t)hbp__lengths_modality(from, i);
        if (to->origin)
            to->origin[piece] = (uint32_t)origin_of(from, i);
        if (to->first)
            to->first[piece] = (uint32_t)(tokens - left);
        left -= length;
        loss -= lossy;
        piece++;
    } while (left && l->policy == HBP_OVERLONG_SPLIT);
    return piece;
}

/* The link groups that are left, numbered again by their first sample. */
static hbp_status keep_links(limiting *l)
{
    const hbp_lengths *from = l->from;
    hbp_lengths *to = l->to;
    if (!to->link)
        return HBP_OK;
    uint32_t *number = hbp__new(&to->memory, (uint64_t)from->links, sizeof *number);
    to->link_value = number ? hbp__new(&to->memory, (uint64_t)from->links, sizeof *to->link_value) : NULL;
    if (!to->link_value) {
        hbp__delete(&to->memory, number);
        return hbp__fail_memory(l->context, "links");
    }
    memset(number, 0xff, (size_t)from->links * sizeof *number);
    for (int64_t i = 0; i < to->count; i++) {
        uint32_t old = to->link[i];
        if (old == HBP__FREE)
            continue;
        if (number[old] == UINT32_MAX) {
            to->link_value[to->links] = from->link_value[old];
            number[old] = (uint32_t)to->links++;
        }
        to->link[i] = number[old];
    }
    hbp__delete(&to->memory, number);
    if (!to->links) {
        hbp__delete(&to->memory, to->link);
        to->link = NULL;
    }
    return HBP_OK;
}

static hbp_status limit_array(limiting *l)
{
    const hbp_lengths *from = l->from;
    int64_t pieces, dropped;
    HBP__TRY(count_kept(l, &pieces, &dropped));
    if (dropped)
        HBP__TRY(new_dropped(l, dropped));
    HBP__TRY(new_columns(l, pieces));
    int64_t piece = 0;
    for (int64_t i = 0; i < from->count; i++) {
        if (i % HBP__LENGTHS_BLOCK == 0)
            HBP__TRY(hbp__tick(l->context, "limit lengths", i, from->count));
        int64_t tokens = hbp__lengths_get(from, i);
        if (is_dropped(l, i) && l->to->dropped < dropped)
            drop_sample(l, origin_of(from, i));
        else if (pieces_of(l, tokens) <= pieces - piece)
            piece = cut_sample(l, i, tokens, piece);
        else
            return hbp__lengths_changed(l->context);
    }
    if (piece < pieces || l->to->dropped < dropped)
        return hbp__lengths_changed(l->context);
    HBP__TRY(keep_links(l));
    return hbp__lengths_seal(l->context, l->to, 0);
}

/* Drop and truncate leave a histogram a histogram: the samples past the limit are its last ordinals. */
static hbp_status limit_histogram(limiting *l)
{
    const hbp_lengths *from = l->from;
    hbp_lengths *to = l->to;
    int64_t bins = l->first_over;
    if (l->policy == HBP_OVERLONG_DROP && bins == 0)
        return hbp__fail(l->context, HBP_E_INVALID, "no samples left: all %lld are longer than %lld tokens",
                         (long long)from->count, (long long)l->limit);
    HBP__TRY(hbp__lengths_new_bins(l->context, to, bins + 1));
    memcpy(to->bin_length, from->bin_length, (size_t)bins * sizeof *to->bin_length);
    memcpy(to->bin_count, from->bin_count, (size_t)bins * sizeof *to->bin_count);
    if (l->policy == HBP_OVERLONG_TRUNCATE) {
        if (bins == 0 || to->bin_length[bins - 1] != l->limit)
            to->bin_length[bins++] = l->limit;
        to->bin_count[bins - 1] += l->over_samples;
    }
    to->bins = bins;
    if (from->dropped || l->policy == HBP_OVERLONG_DROP)
        HBP__TRY(new_dropped(l, from->dropped + (l->policy == HBP_OVERLONG_DROP ? l->over_samples : 0)));
    for (int64_t i = from->count - l->over_samples; l->policy == HBP_OVERLONG_DROP && i < from->count; i++) {
        if (i % HBP__LENGTHS_BLOCK == 0)
            HBP__TRY(hbp__tick(l->context, "limit lengths", i, from->count));
        drop_sample(l, i);
    }
    return hbp__lengths_seal_histogram(l->context, to);
}

/* The histogram sample by sample, so that its pieces can name the samples they come from. */
static hbp_status spell_out(limiting *l, hbp_lengths **spelt)
{
    const hbp_lengths *from = l->from;
    hbp_lengths *draft = hbp__lengths_draft(l->context, &l->context->memory);
    if (!draft)
        return HBP_E_NO_MEMORY;
    *spelt = draft;
    draft->count = from->count;
    draft->length = draft->owned = hbp__new(&draft->memory, (uint64_t)draft->count, sizeof *draft->owned);
    if (!draft->owned)
        return hbp__fail_memory(l->context, "lengths of a histogram");
    for (int64_t bin = 0; bin < from->bins; bin++)
        for (int64_t i = from->bin_first[bin]; i < from->bin_first[bin + 1]; i++) {
            if (i % HBP__LENGTHS_BLOCK == 0)
                HBP__TRY(hbp__tick(l->context, "limit lengths", i, from->count));
            draft->owned[i] = (uint32_t)from->bin_length[bin];
        }
    return HBP_OK;
}

static hbp_status split_histogram(limiting *l)
{
    int64_t pieces = 0; /* before any sample is spelt out: a histogram may stand for billions */
    for (int64_t bin = 0; bin < l->from->bins && pieces <= HBP_MAX_SAMPLES; bin++)
        pieces += l->from->bin_count[bin] * hbp__ceil_div(l->from->bin_length[bin], l->limit);
    HBP__TRY(check_pieces(l, pieces));
    hbp_lengths *spelt = NULL;
    hbp_status status = spell_out(l, &spelt);
    if (status >= 0) {
        l->from = spelt;
        status = limit_array(l);
    }
    hbp_lengths_free(spelt);
    return status;
}

int hbp__limit_keeps_histogram(const hbp_lengths *lengths, int32_t policy)
{
    return !lengths->length && policy != HBP_OVERLONG_SPLIT;
}

uint64_t hbp__limited_digest(const hbp_lengths *lengths, int64_t limit, int32_t policy)
{
    hbp__digest digest = hbp__digest_begin();
    hbp__digest_u64(&digest, lengths->digest);
    hbp__digest_u64(&digest, (uint64_t)limit);
    hbp__digest_u64(&digest, (uint64_t)policy);
    return hbp__digest_end(&digest);
}

static hbp_status run_limit(limiting *l)
{
    const hbp_lengths *given = l->given;
    if (given->length)
        HBP__TRY(limit_array(l));
    else if (hbp__limit_keeps_histogram(given, l->policy))
        HBP__TRY(limit_histogram(l));
    else
        HBP__TRY(split_histogram(l));
    l->to->overlong_samples = given->overlong_samples + l->over_samples;
    l->to->overlong_tokens = given->overlong_tokens + (given->tokens - l->to->tokens);
    if (!hbp__limit_keeps_histogram(given, l->policy)) /* which has the digest of its bins */
        l->to->digest = hbp__limited_digest(given, l->limit, l->policy);
    return HBP_OK;
}

static hbp_status limit_overlong(limiting *l, hbp_lengths **out)
{
    if (l->given->first)
        return hbp__fail(
            l->context, HBP_E_INVALID,
            "the data set is split already and has pieces longer than %lld tokens; limit the original",
            (long long)l->limit);
    l->to = hbp__lengths_draft(l->context, &l->context->memory);
    if (!l->to)
        return HBP_E_NO_MEMORY;
    l->to->shifted_loss = l->given->shifted_loss;
    l->to->column = l->given->column;
    hbp_status status = run_limit(l);
    if (status < 0)
        hbp_lengths_free(l->to);
    else
        *out = l->to;
    return status;
}

hbp_status hbp__lengths_limit(hbp_context *context, const hbp_lengths *lengths, int64_t max_length,
                              int32_t policy, hbp_lengths **out)
{
    if (max_length < 1)
        return hbp__fail(context, HBP_E_INVALID, "max_length is %lld; it is at least 1",
                         (long long)max_length);
    if (policy < HBP_OVERLONG_ERROR || policy > HBP_OVERLONG_SPLIT)
        return hbp__fail(context, HBP_E_INVALID, "policy %d is not one of HBP_OVERLONG_*", (int)policy);
    limiting l = {
        .context = context, .given = lengths, .from = lengths, .limit = max_length, .policy = policy};
    for (l.first_over = lengths->bins; l.first_over && lengths->bin_length[l.first_over - 1] > max_length;)
        l.first_over--;
    l.over_samples = lengths->count - lengths->bin_first[l.first_over];
    if (l.over_samples && policy == HBP_OVERLONG_ERROR)
        return refuse_overlong(&l);
    hbp_status status = check_links(&l);
    if (status >= 0) {
        if (l.over_samples)
            status = limit_overlong(&l, out);
        else
            *out = hbp__lengths_retain(lengths); /* the limit changes nothing */
    }
    hbp__delete(&context->memory, l.link_tokens);
    hbp__delete(&context->memory, l.link_over);
    return status;
}

hbp_status hbp_lengths_limit(hbp_context *context, const hbp_lengths *lengths, int64_t max_length,
                             int32_t policy, hbp_lengths **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, lengths, "lengths"));
    return hbp__lengths_limit(context, lengths, max_length, policy, out);
}
