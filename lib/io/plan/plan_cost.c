/* The cost in the header of a plan file, and the note beside it. */
#include "io/plan/plan_file.h"

#include "base/scratch.h"
#include "data/cost/cost.h"
#include "io/cost/cost_file.h"
#include "io/file/file_error.h"

static int charges_vision(const hbp_cost_terms *t)
{
    return t->ns_per_vision > 0 || t->recompute_vision > 0 || t->vision_bytes > 0;
}

/* A cost that does not charge vision units is written without theirs, one under which all ranks are one
 * lockstep set without those, one whose times are linear without overlap. */
void hbp__plan_pack_cost(hbp__buffer *buffer, const hbp_cost_terms *t)
{
    const int vision = charges_vision(t), lockstep = t->lockstep_ranks != 0, bends = hbp__cost_bends(t);
    uint32_t count = 3; /* the tables */
#define COUNT(name) count++;
    HBP__COST_NUMBERS(COUNT)
    HBP__COST_WHOLE_NUMBERS(COUNT)
    if (vision) {
        HBP__COST_VISION_NUMBERS(COUNT)
    }
    if (lockstep) {
        HBP__COST_LOCKSTEP_NUMBERS(COUNT)
    }
    if (bends) {
        HBP__COST_OVERLAP_NUMBERS(COUNT)
    }
#undef COUNT
    hbp__pack_map(buffer, count);
#define PACK(name) hbp__pack_named_double(buffer, #name, t->name);
    HBP__COST_NUMBERS(PACK)
    if (vision) {
        HBP__COST_VISION_NUMBERS(PACK)
    }
    if (bends) {
        HBP__COST_OVERLAP_NUMBERS(PACK)
    }
#undef PACK
#define PACK(name) hbp__pack_named_i64(buffer, #name, t->name);
    HBP__COST_WHOLE_NUMBERS(PACK)
    if (lockstep) {
        HBP__COST_LOCKSTEP_NUMBERS(PACK)
    }
#undef PACK
    const char *const tables[] = {"degree", "sp_latency_ns", "sp_ns_per_token"};
    for (int table = 0; table < 3; table++) {
        hbp__pack_text(buffer, tables[table]);
        hbp__pack_list(buffer, (size_t)t->degrees);
        for (int32_t i = 0; i < t->degrees; i++)
            if (table == 0)
                hbp__pack_i64(buffer, t->degree[i]);
            else
                hbp__pack_f64(buffer, table == 1 ? t->sp_latency_ns[i] : t->sp_ns_per_token[i]);
    }
}

hbp_status hbp__plan_file_cost(hbp_context *context, const hbp_plan_file *file, hbp_cost **out)
{
    hbp__document header = {.memory = context->memory};
    uint8_t *data = NULL;
    *out = NULL;
    hbp_status status = hbp__plan_file_header(context, file, &data, &header);
    const hbp__value *terms = status == HBP_OK ? hbp__value_find(header.values, "cost") : NULL;
    if (terms) {
        status = hbp__cost_read_values(context, terms, "plan file", out);
        status = status < 0 ? hbp__blame_file(context, file->source.name.text, status) : HBP_OK;
    }
    hbp__document_free(&header);
    return status;
}

hbp_status hbp_plan_file_get_cost(hbp_context *context, const hbp_plan_file *file, hbp_cost **out)
{
    if (out)
        *out = NULL;
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, file, "file"));
    HBP__TRY(hbp__require(context, out, "out"));
    const int64_t mark = hbp__scratch_mark(context);
    hbp_status status = hbp__plan_file_cost(context, file, out);
    if (status == HBP_OK && !*out)
        status = hbp__fail(context, HBP_E_INVALID, "%s: the plan was saved without its cost",
                           file->source.name.text);
    return hbp__leave(context, mark, status);
}

const char *hbp_plan_file_get_note(const hbp_plan_file *file)
{
    return file && file->note ? file->note : "";
}
