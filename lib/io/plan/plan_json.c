/* A plan as JSON: its summary, then a line for each step with all below it, then the dropped samples. */
#include "io/plan/plan_json.h"

#include "hbp/io.h"
#include "io/plan/plan_format.h"

#define TICK_ROWS 32768

/* The kinds of a mask as a list: numbers above 2^53 are not safe in JSON. */
static void write_kinds(hbp__json_out *out, const char *key, int64_t kinds)
{
    const char *before = "[";
    hbp__json_put(out, key);
    for (int32_t k = 0; k < HBP_MAX_MODALITIES; k++)
        if (kinds >> k & 1) {
            hbp__json_member(out, before, k);
            before = ",";
        }
    hbp__json_put(out, kinds ? "]" : "[]");
}

static void write_summary(hbp__json_out *out, const hbp_plan *plan)
{
    hbp_plan_summary s;
    hbp__plan_summarise(plan, &s);
    const struct {
        const char *key;
        int64_t value;
    } members[] = {{"\"ranks\":", s.ranks},
                   {",\"domain_ranks\":", s.domain_ranks},
                   {",\"complete\":", s.complete},
                   {",\"proven\":", s.proven},
                   {",\"first_step\":", s.first_step},
                   {",\"steps\":", s.steps},
                   {",\"micro_batches\":", s.micro_batches},
                   {",\"packs\":", s.packs},
                   {",\"padding_packs\":", s.padding_packs},
                   {",\"samples\":", s.samples},
                   {",\"dropped\":", s.dropped},
                   {",\"tokens\":", s.tokens},
                   {",\"padded_tokens\":", s.padded_tokens},
                   {",\"loss_tokens\":", s.loss_tokens},
                   {",\"sequence_multiple\":", s.sequence_multiple},
                   {",\"pack_multiple\":", s.pack_multiple},
                   {",\"micro_batch_multiple\":", s.micro_batch_multiple},
                   {",\"predicted_ns\":", s.predicted_ns},
                   {",\"overlong_samples\":", s.overlong_samples},
                   {",\"overlong_tokens\":", s.overlong_tokens}};
    hbp__json_put(out, "{\"summary\":{");
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        hbp__json_member(out, members[i].key, members[i].value);
#define KNOWN(name)                                                                                          \
    if (s.name)                                                                                              \
        hbp__json_member(out, ",\"" #name "\":", s.name);
    HBP__PLAN_HEADER_OPTIONAL(KNOWN)
#undef KNOWN
    if (s.vision >= 0)
        hbp__json_member(out, ",\"vision\":", s.vision);
    if (s.modalities)
        write_kinds(out, ",\"modalities\":", s.modalities);
    if (s.bound_ns > 0) {
        hbp__json_member(out, ",\"bound_ns\":", s.bound_ns);
        hbp__json_put(out, ",\"gap\":");
        hbp__json_put_share(out, s.gap);
    } else {
        hbp__json_put(out, ",\"bound_ns\":null,\"gap\":null");
    }
    hbp__json_put(out, ",\"seed\":");
    hbp__json_put_u64(out, s.seed);
    hbp__json_put(out, ",\"epoch\":");
    hbp__json_put_u64(out, s.epoch);
    hbp__json_put(out, ",\"digest\":");
    hbp__json_put_digest(out, s.digest);
    hbp__json_put(out, ",\"lengths_digest\":");
    hbp__json_put_digest(out, s.lengths_digest);
    hbp__json_put(out, "},\n\"steps\":[");
}

#define COLUMN(out, name, column, first, end)                                                                \
    do {                                                                                                     \
        hbp__json_put(out, name);                                                                            \
        for (int64_t row = (first); row < (end); row++)                                                      \
            hbp__json_member(out, row == (first) ? "[" : ",", (column)[row]);                                \
        hbp__json_put(out, (first) == (end) ? "[]" : "]");                                                   \
    } while (0)

static void write_pack(hbp__json_out *out, const hbp_plan *plan, int64_t p)
{
    int64_t first = plan->pack_offsets[p], end = plan->pack_offsets[p + 1];
    hbp__json_member(out, "{\"rank\":", plan->pack_ranks[p]);
    hbp__json_member(out, ",\"sp\":", plan->pack_sp[p]);
    hbp__json_member(out, ",\"recompute\":", plan->pack_recompute[p]);
    hbp__json_member(out, ",\"capacity\":", plan->pack_capacity[p]);
    hbp__json_member(out, ",\"tokens\":", plan->pack_tokens[p]);
    hbp__json_member(out, ",\"padded_tokens\":", plan->pack_padded_tokens[p]);
    hbp__json_member(out, ",\"squares\":", plan->pack_squares[p]);
    hbp__json_member(out, ",\"loss_tokens\":", plan->pack_loss_tokens[p]);
    hbp__json_member(out, ",\"ns\":", plan->pack_ns[p]);
    hbp__json_member(out, ",\"bytes\":", plan->pack_bytes[p]);
    if (plan->pack_vision) {
        int64_t capacity = plan->pack_vision_capacity[p];
        hbp__json_member(out, ",\"vision\":", plan->pack_vision[p]);
        if (capacity < INT64_MAX)
            hbp__json_member(out, ",\"vision_capacity\":", capacity);
        else
            hbp__json_put(out, ",\"vision_capacity\":null");
    }
    COLUMN(out, ",\"sample_ids\":", plan->sample_ids, first, end);
    COLUMN(out, ",\"sample_tokens\":", plan->sample_tokens, first, end);
    if (plan->sample_first_tokens)
        COLUMN(out, ",\"sample_first_tokens\":", plan->sample_first_tokens, first, end);
    if (plan->sample_loss_tokens)
        COLUMN(out, ",\"sample_loss_tokens\":", plan->sample_loss_tokens, first, end);
    if (plan->sample_vision)
        COLUMN(out, ",\"sample_vision\":", plan->sample_vision, first, end);
    if (plan->sample_modalities)
        COLUMN(out, ",\"sample_modalities\":", plan->sample_modalities, first, end);
    hbp__json_put(out, "}");
}

static void write_step(hbp__json_out *out, const hbp_plan *plan, int64_t step)
{
    hbp__json_member(out, step ? ",\n{\"step\":" : "\n{\"step\":", plan->first_step + step);
    hbp__json_member(out, ",\"ns\":", plan->step_ns[step]);
    hbp__json_member(out, ",\"samples\":", plan->step_samples[step]);
    hbp__json_member(out, ",\"tokens\":", plan->step_tokens[step]);
    hbp__json_member(out, ",\"loss_tokens\":", plan->step_loss_tokens[step]);
    hbp__json_put(out, ",\"micro_batches\":[");
    for (int64_t m = plan->step_offsets[step]; m < plan->step_offsets[step + 1]; m++) {
        hbp__json_member(out,
                         m > plan->step_offsets[step] ? ",{\"ns\":" : "{\"ns\":", plan->micro_batch_ns[m]);
        if (plan->micro_batch_modalities)
            write_kinds(out, ",\"modalities\":", plan->micro_batch_modalities[m]);
        hbp__json_put(out, ",\"packs\":[");
        for (int64_t p = plan->micro_batch_offsets[m]; p < plan->micro_batch_offsets[m + 1]; p++) {
            if (p > plan->micro_batch_offsets[m])
                hbp__json_put(out, ",");
            write_pack(out, plan, p);
        }
        hbp__json_put(out, "]}");
    }
    hbp__json_put(out, "]}");
}

static const char *reason_of(int32_t reason)
{
    switch (reason) {
    case HBP_DROPPED_OVERLONG:
        return "over-long";
    case HBP_DROPPED_OVERVISION:
        return "over-vision";
    case HBP_DROPPED_LOST:
        return "lost";
    default:
        return "left over";
    }
}

static hbp_status write_dropped(hbp__json_out *out, const hbp_plan *plan)
{
    hbp__json_put(out, "\n],\n\"dropped\":[");
    for (int64_t i = 0; i < plan->dropped; i++) {
        if (i % TICK_ROWS == 0)
            HBP__TRY(hbp__tick(out->context, "json", plan->steps, plan->steps));
        hbp__json_member(out, i ? ",\n{\"id\":" : "\n{\"id\":", plan->dropped_ids[i]);
        hbp__json_put(out, ",\"reason\":\"");
        hbp__json_put(out, reason_of(plan->dropped_reasons[i]));
        hbp__json_put(out, "\"");
        if (plan->dropped_tokens) {
            hbp__json_member(out, ",\"first_token\":", plan->dropped_first_tokens[i]);
            hbp__json_member(out, ",\"tokens\":", plan->dropped_tokens[i]);
        }
        hbp__json_put(out, "}");
    }
    hbp__json_put(out, "]");
    return out->status;
}

hbp_status hbp__json_put_plan(hbp__json_out *out, const hbp_plan *plan)
{
    write_summary(out, plan);
    for (int64_t step = 0; step < plan->steps && out->status == HBP_OK; step++) {
        HBP__TRY(hbp__tick(out->context, "json", step, plan->steps));
        write_step(out, plan, step);
    }
    return write_dropped(out, plan);
}

static hbp_status write_plan(hbp__json_out *out, const hbp_plan *plan)
{
    HBP__TRY(hbp__json_put_plan(out, plan));
    hbp__json_put(out, "}\n");
    return out->status;
}

hbp_status hbp_plan_write_json(hbp_context *context, const hbp_plan *plan, const char *path)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, plan, "plan"));
    HBP__TRY(hbp__require(context, path, "path"));
    hbp__atomic_file file;
    HBP__TRY(hbp__atomic_open(context, path, &file));
    hbp__json_out out = {.context = context, .file = &file};
    return hbp__atomic_end(context, &file, write_plan(&out, plan));
}
