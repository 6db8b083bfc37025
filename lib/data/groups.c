#include "data/groups.h"

#include <stdio.h>
#include <string.h>

#include "base/options.h"

void hbp_groups_options_init(hbp_groups_options *options, uint32_t struct_size)
{
    hbp__struct_init(options, struct_size);
}

hbp_groups *hbp__groups_new(const hbp__memory *memory, int64_t candidates)
{
    hbp_groups *groups = hbp__new_zero(memory, 1, sizeof *groups);
    if (!groups)
        return NULL;
    groups->memory = *memory;
    groups->candidates = candidates;
    groups->candidate_ns = hbp__new_zero(memory, (uint64_t)candidates, sizeof *groups->candidate_ns);
    groups->candidate_text = hbp__new_zero(memory, (uint64_t)candidates, sizeof *groups->candidate_text);
    if (!groups->candidate_ns || !groups->candidate_text) {
        hbp_groups_free(groups);
        return NULL;
    }
    return groups;
}

void hbp_groups_free(hbp_groups *groups)
{
    if (!groups)
        return;
    hbp__memory memory = groups->memory;
    hbp__delete(&memory, groups->candidate_ns);
    hbp__delete(&memory, groups->candidate_text);
    hbp__delete(&memory, groups);
}

void hbp__groups_describe(const int64_t *pack_length, const int32_t *sp, int64_t count, char *text)
{
    size_t used = 0;
    text[0] = '\0';
    for (int64_t g = 0; g < count && used < HBP__CANDIDATE_TEXT; g++) {
        int wrote = snprintf(text + used, HBP__CANDIDATE_TEXT - used, "%s%lld x SP %d", g ? ", " : "",
                             (long long)pack_length[g], (int)sp[g]);
        if (wrote < 0)
            return;
        used += (size_t)wrote;
    }
}

/* A column getter: the values, and their number in *count when it is wanted; nothing for NULL groups. */
#define GROUPS_GETTER(type, getter, member)                                                                  \
    const type *hbp_groups_get_##getter(const hbp_groups *groups, int64_t *count)                            \
    {                                                                                                        \
        if (count)                                                                                           \
            *count = groups ? groups->count : 0;                                                             \
        return groups ? groups->member : NULL;                                                               \
    }

GROUPS_GETTER(int64_t, thresholds, threshold)
GROUPS_GETTER(int64_t, pack_lengths, pack_length)
GROUPS_GETTER(int32_t, sp, sp)
GROUPS_GETTER(int32_t, recompute, recompute)
GROUPS_GETTER(int64_t, packs, packs)
GROUPS_GETTER(int64_t, micro_batches, micro_batches)
GROUPS_GETTER(int64_t, tokens, tokens)
GROUPS_GETTER(int64_t, step_ns, step_ns)

int64_t hbp_groups_get_tokens_per_step(const hbp_groups *groups)
{
    return groups ? groups->tokens_per_step : 0;
}

const int64_t *hbp_groups_get_candidate_ns(const hbp_groups *groups, int64_t *count)
{
    if (count)
        *count = groups ? groups->candidates : 0;
    return groups ? groups->candidate_ns : NULL;
}

const char *hbp_groups_get_candidate_text(const hbp_groups *groups, int64_t index)
{
    return groups && index >= 0 && index < groups->candidates ? groups->candidate_text[index] : NULL;
}
