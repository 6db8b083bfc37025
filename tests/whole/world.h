/* What long calls work on: data sets and steps of any size, and what is planned of them. */
#ifndef HBP_TESTS_WORLD_H
#define HBP_TESTS_WORLD_H

#include <inttypes.h>

#include "base/rng.h"
#include "data/lengths/lengths.h"
#include "data/plan/plan.h"
#include "files.h"
#include "hbp/io.h"
#include "test.h"

typedef struct world {
    hbp_context *context; /* to make them */
    int64_t count;
    uint32_t *length;
    int64_t *wide;
    int64_t *link;
    uint32_t *loss;
    uint32_t *vision;
    uint32_t *pictured; /* lengths of samples with vision units */
    int64_t *batch_offsets;
    int64_t *batch_samples;
    int64_t batches;
    hbp_cost *cost;
    hbp_machine *machine;
    hbp_vlm *vlm;
    hbp_lengths *plain;
    hbp_lengths *linked;
    hbp_lengths *seen; /* with vision units */
    hbp_lengths *step;
    hbp_lengths *step_linked;
    hbp_groups *groups;
    hbp_packs *packs;
    hbp_plan *plan;
    hbp_timeline *timeline;
    char folder[64];
    char path[128];
} world;

/* Long tail, at most 100,000 tokens. */
static inline void draw(world *w)
{
    static const uint32_t eighths[] = {1000, 1091, 1189, 1297, 1414, 1542, 1682, 1834};
    hbp__rng rng = hbp__rng_make(2026, 5, 0);
    for (int64_t i = 0; i < w->count; i++) {
        uint32_t sum = 0;
        for (int k = 0; k < 6; k++)
            sum += (uint32_t)hbp__rng_below(&rng, 23);
        uint32_t x = eighths[sum % 8] << (sum / 8) >> 8;
        w->length[i] = 64 + (x < 100000 ? x : 99936);
        w->wide[i] = w->length[i];
        w->link[i] = hbp__rng_below(&rng, 3) ? (int64_t)hbp__rng_below(&rng, (uint64_t)w->count / 2) : -1;
        w->loss[i] = w->length[i] / 2;
        w->vision[i] = 1 + (uint32_t)hbp__rng_below(&rng, 5);
        w->pictured[i] = 256 * w->vision[i] + 20 + (uint32_t)hbp__rng_below(&rng, 600);
        w->batch_samples[i] = w->count - 1 - i;
    }
    w->batches = (w->count + 999) / 1000;
    for (int64_t b = 0; b <= w->batches; b++)
        w->batch_offsets[b] = b * 1000 < w->count ? b * 1000 : w->count;
}

static inline const char *path_of(world *w, const char *name)
{
    return folder_path(w->path, w->folder, name);
}

static inline void *column(int64_t count, size_t size)
{
    void *values = calloc((size_t)count + 1, size);
    ck_assert_ptr_nonnull(values);
    return values;
}

/* Files of the lengths in every format that is read line by line, and as .npy. */
static inline void write_lengths(world *w)
{
    static const char *const names[] = {"a.txt", "a.csv", "a.jsonl"};
    static const char *const heads[] = {"", "length,loss\n", ""};
    for (int k = 0; k < 3; k++) {
        FILE *file = fopen(path_of(w, names[k]), "wb");
        ck_assert_ptr_nonnull(file);
        fputs(heads[k], file);
        for (int64_t i = 0; i < w->count; i++)
            if (k == 2)
                fprintf(file, "{\"length\": %u, \"x\": \"y\"}\n", w->length[i]);
            else if (k)
                fprintf(file, "%u,%u\n", w->length[i], w->loss[i]);
            else
                fprintf(file, "%u\n", w->length[i]);
        ck_assert_int_eq(fclose(file), 0);
    }
    FILE *file = fopen(path_of(w, "a.npy"), "wb");
    ck_assert_ptr_nonnull(file);
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
    fprintf(file, "%-117s\n", "");
    rewind(file);
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
    fprintf(file, "{'descr': '<u4', 'fortran_order': False, 'shape': (%" PRId64 ",), }", w->count);
    fseek(file, 128, SEEK_SET);
    ck_assert_int_eq(fwrite(w->length, sizeof *w->length, (size_t)w->count, file), w->count);
    ck_assert_int_eq(fclose(file), 0);
}

static inline hbp_lengths *make(world *w, int64_t count, const uint32_t *length,
                                const hbp_lengths_options *options)
{
    hbp_lengths *lengths = NULL;
    OK(w->context, hbp_lengths_create_u32(w->context, length, count, options, &lengths));
    return lengths;
}

/* What the plan predicts, as if measured. */
static inline void make_timeline(world *w)
{
    hbp_plan_view view = plan_view(w->plan);
    int64_t *step = column(view.packs, sizeof *step), *samples = column(view.packs, sizeof *samples);
    int32_t *micro_batch = column(view.packs, sizeof *micro_batch);
    for (int64_t s = 0; s < view.steps; s++)
        for (int64_t m = view.step_offsets[s]; m < view.step_offsets[s + 1]; m++)
            for (int64_t p = view.micro_batch_offsets[m]; p < view.micro_batch_offsets[m + 1]; p++) {
                step[p] = s;
                micro_batch[p] = (int32_t)(m - view.step_offsets[s]);
                samples[p] = view.pack_offsets[p + 1] - view.pack_offsets[p];
            }
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    OK(w->context, hbp_plan_get_summary(w->context, w->plan, &summary));
    hbp_timeline_columns columns = {.struct_size = sizeof columns,
                                    .ranks = summary.ranks,
                                    .count = view.packs,
                                    .step = step,
                                    .micro_batch = micro_batch,
                                    .first_rank = view.pack_ranks,
                                    .sp = view.pack_sp,
                                    .recompute = view.pack_recompute,
                                    .samples = samples,
                                    .tokens = view.pack_padded_tokens,
                                    .sum_squares = view.pack_squares,
                                    .time_ns = view.pack_ns};
    OK(w->context, hbp_timeline_create(w->context, &columns, &w->timeline));
    free(step);
    free(samples);
    free(micro_batch);
}

static inline void world_open(world *w, int64_t count, int64_t step)
{
    *w = (world){.context = test_context(), .count = count};
    hbp_context *context = w->context;
    w->length = column(count, sizeof *w->length);
    w->wide = column(count, sizeof *w->wide);
    w->link = column(count, sizeof *w->link);
    w->loss = column(count, sizeof *w->loss);
    w->vision = column(count, sizeof *w->vision);
    w->pictured = column(count, sizeof *w->pictured);
    w->batch_samples = column(count, sizeof *w->batch_samples);
    w->batch_offsets = column(count, sizeof *w->batch_offsets);
    draw(w);
    folder_make(w->folder);
    write_lengths(w);
    hbp_model *model = NULL;
    OK(context, hbp_model_create_preset(context, "llama-3.1-8b", &model));
    OK(context, hbp_machine_create_preset(context, "h100:4", &w->machine));
    OK(context, hbp_cost_create(context, model, w->machine, NULL, &w->cost));
    OK(context, hbp_vlm_create_preset(context, "internvl-1.5-26b", &w->vlm));
    hbp_model_free(model);
    hbp_lengths_options with_links = {
        .struct_size = sizeof with_links, .links = w->link, .loss_tokens = w->loss};
    hbp_lengths_options with_vision = {.struct_size = sizeof with_vision, .vision = w->vision};
    w->plain = make(w, count, w->length, NULL);
    w->linked = make(w, count, w->length, &with_links);
    w->seen = make(w, count, w->pictured, &with_vision);
    w->step = make(w, step, w->length, NULL);
    w->step_linked = make(w, step, w->length, &with_links);
    OK(context, hbp_plan_groups(context, w->plain, w->cost, NULL, &w->groups));
    OK(context, hbp_greedy_fill(context, w->plain, w->groups, NULL, &w->packs));
    OK(context, hbp_balance_attention(context, w->packs, w->groups, w->cost, NULL, &w->plan));
    OK(context, hbp_plan_save(context, w->plan, path_of(w, "a.hbp"), NULL));
    make_timeline(w);
    OK(context, hbp_timeline_save(context, w->timeline, path_of(w, "a.timeline")));
}

static inline void world_close(world *w)
{
    folder_remove(w->folder);
    hbp_timeline_free(w->timeline);
    hbp_plan_free(w->plan);
    hbp_packs_free(w->packs);
    hbp_groups_free(w->groups);
    hbp_lengths_free(w->step_linked);
    hbp_lengths_free(w->step);
    hbp_lengths_free(w->seen);
    hbp_lengths_free(w->linked);
    hbp_lengths_free(w->plain);
    hbp_vlm_free(w->vlm);
    hbp_cost_free(w->cost);
    hbp_machine_free(w->machine);
    free(w->batch_offsets);
    free(w->batch_samples);
    free(w->pictured);
    free(w->vision);
    free(w->loss);
    free(w->link);
    free(w->wide);
    free(w->length);
    hbp_context_free(w->context);
}

#endif
