/* Vision-language plans of measured layers, and their files as bytes. */
#ifndef HBP_TESTS_VLM_FILES_H
#define HBP_TESTS_VLM_FILES_H

#include "base/methods.h"
#include "files.h"
#include "hbp/io.h"
#include "io/plan/plan_file.h"
#include "io/vlm/vlm_file.h"
#include "vlm_runs.h"

/* A plan of a small run; way: HBP_VLM_DATA_*. Kept. */
static inline hbp_vlm_plan *draw_plan(hbp_context *context, uint64_t seed, int32_t stages,
                                      int32_t virtual_stages, int32_t way, fixture *f)
{
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    *f = (fixture){.context = context};
    f->lengths = keep(draw_samples(context, seed, 30 + (int64_t)hbp__rng_below(&rng, 40), 0));
    MAKES(context, f->machine, hbp_machine_create_preset(context, "a100-80:4", &f->machine));
    hbp_vlm_options *o = &f->options;
    *o = (hbp_vlm_options){.struct_size = sizeof *o};
    o->data_method = hbp__vlm_data_name(way);
    o->pipeline_stages = stages;
    o->virtual_stages = virtual_stages;
    o->data_parallel = 1 + (int32_t)hbp__rng_below(&rng, 3);
    o->micro_batches = stages * (1 + (int32_t)hbp__rng_below(&rng, 2));
    o->samples = 2;
    o->seed = seed;
    o->layers = keep(draw_measured(context, &rng, 2 * stages * virtual_stages + 1));
    o->layers_vision = 4;
    o->layers_tokens = 1024;
    hbp_vlm_plan *plan = NULL;
    MAKES(context, plan, hbp_plan_vlm(context, f->lengths, NULL, f->machine, o, &plan));
    return plan;
}

/* Saves the plan stored or deflated and returns the file's bytes; the test frees them. */
static inline uint8_t *saved(hbp_context *context, const hbp_vlm_plan *plan, int32_t level, size_t *bytes)
{
    char folder[64], path[128];
    hbp_plan_save_options options = {.struct_size = sizeof options, .level = level, .note = "a note"};
    folder_make(folder);
    folder_path(path, folder, "plan.msgpack");
    OK(context, hbp_vlm_plan_save(context, plan, path, &options));
    ck_assert_int_eq(folder_count(folder), 1);
    uint8_t *data = (uint8_t *)file_read(path, bytes);
    folder_remove(folder);
    return data;
}

/* hbp_vlm_plan_load from memory. */
static inline hbp_status load_memory(hbp_context *context, const void *data, size_t bytes, hbp_vlm_plan **out)
{
    hbp_plan_file *file;
    *out = NULL;
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__plan_file_open_memory(context, data, (int64_t)bytes, &file));
    hbp_status status = hbp__vlm_load(context, file, out);
    hbp_plan_file_free(file);
    return status;
}

#endif
