#include "io/vlm/vlm_file.h"

#include <stdio.h>

#include "base/scratch.h"
#include "io/plan/plan_file.h"
#include "io/table/table_pack.h"
#include "vlm/vlm.h"

static hbp_status pack_plan(hbp_context *context, const hbp_vlm_plan *plan, hbp__buffer *map)
{
    hbp__buffer *buffer = map;
    hbp__pack_map(buffer, hbp__count_numbers(&hbp__vlm_table) + (size_t)hbp__vlm_table.column_count +
                              (size_t)hbp__layers_table.name_count + (size_t)hbp__layers_table.column_count);
    hbp__pack_numbers(buffer, &hbp__vlm_table, plan);
    hbp__pack_columns(map, &hbp__vlm_table, plan);
    HBP__TRY(hbp__pack_names(context, buffer, &hbp__layers_table, plan->layers));
    hbp__pack_columns(map, &hbp__layers_table, plan->layers);
    return map->failed ? hbp__fail_memory(context, "a vision-language plan's file") : HBP_OK;
}

hbp_status hbp_vlm_plan_save(hbp_context *context, const hbp_vlm_plan *plan, const char *path,
                             const hbp_plan_save_options *options)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, plan, "plan"));
    HBP__TRY(hbp__require(context, path, "path"));
    hbp__buffer map = {.memory = context->memory};
    hbp_status status = pack_plan(context, plan, &map);
    if (status == HBP_OK)
        status = hbp__plan_save(context, plan->data, path, options,
                                &(hbp__plan_part_of){.key = HBP__PLAN_VLM_KEY, .map = &map});
    hbp__buffer_free(&map);
    return status;
}

/* A breach reported as the file's fault. */
static hbp_status blame_file(const hbp__map_read *from, hbp_status status)
{
    char breach[256];
    if (status != HBP_E_INVALID && status != HBP_E_OVERFLOW)
        return status;
    snprintf(breach, sizeof breach, "%s", hbp_context_message(from->context));
    return hbp__file_fail(from->context, from->file, from->offset, breach);
}

/* Layers of columns that are anyone's. */
static hbp_status make_layers(const hbp__map_read *from, const hbp_layers *read, hbp_layers **out)
{
    hbp_layer_columns columns = {.struct_size = sizeof columns,
                                 .count = (int32_t)read->rows,
                                 .type = read->type,
                                 .cut_type = read->cut_type,
                                 .names = (const char *const *)read->name};
#define GIVE(name) columns.name = read->name;
    HBP__LAYER_COLUMNS(GIVE)
#undef GIVE
    return blame_file(from, hbp__layers_create(from->context, &columns, out));
}

static hbp_status read_layers(const hbp__map_read *from, hbp_layers **out)
{
    const hbp__memory *memory = &from->context->memory;
    hbp_layers shape = {0};
    int64_t bytes;
    HBP__TRY(hbp__unpack_shape(from, &hbp__layers_table, &shape, &bytes));
    if (bytes > from->file->bytes || shape.rows > INT32_MAX)
        return hbp__file_fail(from->context, from->file, from->offset,
                              "the layers are more than the file holds");
    hbp_layers *read = hbp__table_new(memory, &hbp__layers_table, &shape);
    if (!read)
        return hbp__fail_memory(from->context, hbp__layers_table.what);
    hbp_status status = hbp__unpack_names(from, memory, &hbp__layers_table, read);
    if (status == HBP_OK)
        status = hbp__unpack_columns(from, &hbp__layers_table, read);
    if (status == HBP_OK)
        status = make_layers(from, read, out);
    hbp__table_free(memory, &hbp__layers_table, read);
    return status;
}

static hbp_status read_plan(const hbp__map_read *from, const hbp_plan_file *file, hbp_vlm_plan **out)
{
    hbp_context *context = from->context;
    hbp_vlm_plan shape = {.memory = context->memory};
    int64_t bytes;
    HBP__TRY(hbp__unpack_shape(from, &hbp__vlm_table, &shape, &bytes));
    if (bytes > from->file->bytes)
        return hbp__file_fail(context, from->file, from->offset, "its columns are more than the file holds");
    hbp_vlm_plan *plan = *out = hbp__table_new(&context->memory, &hbp__vlm_table, &shape);
    if (!plan)
        return hbp__fail_memory(context, hbp__vlm_table.what);
    HBP__TRY(hbp__unpack_columns(from, &hbp__vlm_table, plan));
    HBP__TRY(read_layers(from, &plan->layers));
    HBP__TRY(hbp__plan_file_load(context, file, &plan->data));
    HBP__TRY(blame_file(from, hbp__vlm_check(context, plan)));
    if (hbp__vlm_digest(plan) != plan->summary.digest)
        return hbp__file_fail(context, from->file, from->offset,
                              "the header's digest is not that of the columns");
    return HBP_OK;
}

static hbp_status load_header(hbp_context *context, const hbp_plan_file *file, hbp_vlm_plan **out)
{
    uint8_t *data = NULL;
    hbp__document header = {.memory = context->memory};
    hbp_status status = hbp__plan_file_header(context, file, &data, &header);
    if (status == HBP_OK) {
        const hbp__map_read from = {context, &file->source, 0, "the header",
                                    hbp__value_find(header.values, HBP__PLAN_VLM_KEY)};
        status = from.map ? read_plan(&from, file, out)
                          : hbp__file_fail(context, &file->source, 0,
                                           "it holds a plan of data, and no vision-language plan");
    }
    hbp__document_free(&header);
    return status;
}

hbp_status hbp__vlm_load(hbp_context *context, const hbp_plan_file *file, hbp_vlm_plan **out)
{
    int64_t mark = hbp__scratch_mark(context);
    hbp_vlm_plan *plan = NULL;
    hbp_status status = load_header(context, file, &plan);
    if (status == HBP_OK)
        *out = plan;
    else
        hbp_vlm_plan_free(plan);
    return hbp__leave(context, mark, status);
}

hbp_status hbp_vlm_plan_load(hbp_context *context, const char *path, hbp_vlm_plan **out)
{
    if (out)
        *out = NULL;
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, path, "path"));
    HBP__TRY(hbp__require(context, out, "out"));
    hbp_plan_file *file;
    HBP__TRY(hbp__plan_file_open(context, path, &file));
    hbp_status status = hbp__vlm_load(context, file, out);
    hbp_plan_file_free(file);
    return status;
}
