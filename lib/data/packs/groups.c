#include "data/packs/groups.h"

#include <stdio.h>
#include <string.h>

#include "base/options.h"

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
    groups->candidate_texts = hbp__new(memory, (uint64_t)candidates, sizeof *groups->candidate_texts);
    if (!groups->candidate || !groups->candidate_ns || !groups->candidate_text || !groups->candidate_texts) {
        hbp_groups_free(groups);
        return NULL;
    }
    for (int64_t i = 0; i < candidates; i++)
        groups->candidate_texts[i] = groups->candidate_text[i];
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
    hbp__delete(&memory, groups->candidate_texts);
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

hbp_status hbp_groups_get_view(const hbp_groups *groups, hbp_groups_view *view)
{
    hbp_groups_view all = {0};
    if (groups)
        all = (hbp_groups_view){.groups = groups->count,
                                .candidates = groups->candidates,
                                .tokens_per_step = groups->tokens_per_step,
                                .thresholds = groups->threshold,
                                .pack_lengths = groups->pack_length,
                                .sp = groups->sp,
                                .recompute = groups->recompute,
                                .packs = groups->packs,
                                .micro_batches = groups->micro_batches,
                                .tokens = groups->tokens,
                                .step_ns = groups->step_ns,
                                .candidate_ns = groups->candidate_ns,
                                .candidate_texts = groups->candidate_texts};
    return hbp__view_write(view, groups, &all, sizeof all);
}
