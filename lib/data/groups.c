#include "data/groups.h"

#include <stdio.h>
#include <string.h>

#include "base/column.h"
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
    groups->candidate = hbp__new_zero(memory, (uint64_t)candidates, sizeof *groups->candidate);
    groups->candidate_ns = hbp__new_zero(memory, (uint64_t)candidates, sizeof *groups->candidate_ns);
    groups->candidate_text = hbp__new_zero(memory, (uint64_t)candidates, sizeof *groups->candidate_text);
    if (!groups->candidate || !groups->candidate_ns || !groups->candidate_text) {
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
    hbp__delete(&memory, groups->candidate);
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

HBP__COLUMN_GETTER(int64_t, hbp_groups_get_thresholds, hbp_groups, threshold, count)
HBP__COLUMN_GETTER(int64_t, hbp_groups_get_pack_lengths, hbp_groups, pack_length, count)
HBP__COLUMN_GETTER(int32_t, hbp_groups_get_sp, hbp_groups, sp, count)
HBP__COLUMN_GETTER(int32_t, hbp_groups_get_recompute, hbp_groups, recompute, count)
HBP__COLUMN_GETTER(int64_t, hbp_groups_get_packs, hbp_groups, packs, count)
HBP__COLUMN_GETTER(int64_t, hbp_groups_get_micro_batches, hbp_groups, micro_batches, count)
HBP__COLUMN_GETTER(int64_t, hbp_groups_get_tokens, hbp_groups, tokens, count)
HBP__COLUMN_GETTER(int64_t, hbp_groups_get_step_ns, hbp_groups, step_ns, count)

int64_t hbp_groups_get_tokens_per_step(const hbp_groups *groups)
{
    return groups ? groups->tokens_per_step : 0;
}

HBP__COLUMN_GETTER(int64_t, hbp_groups_get_candidate_ns, hbp_groups, candidate_ns, candidates)

const char *hbp_groups_get_candidate_text(const hbp_groups *groups, int64_t index)
{
    return groups && index >= 0 && index < groups->candidates ? groups->candidate_text[index] : NULL;
}
