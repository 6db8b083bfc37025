#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "hbp/io.h"

/* Packs of one kind, over the whole plan. */
typedef struct kind {
    int32_t sp;
    int32_t recompute;
    int64_t capacity;
    int64_t packs;
    int64_t padding;
    int64_t samples;
    int64_t tokens;
    int64_t vision;
    double vision_room;    /* of packs that have a limit */
    double gpu_ns;         /* each pack's time on all of its GPUs */
    int64_t micro_batches; /* with such a pack */
    int64_t last_micro_batch;
} kind;

typedef struct kind_list {
    kind *list;
    int64_t count;
    int64_t room;
} kind_list;

enum { SHOWN_KINDS = 20 };

/* By SP degree, then capacity, then recomputed layers. */
static int order_of(const kind *a, const kind *b)
{
    if (a->sp != b->sp)
        return a->sp < b->sp ? -1 : 1;
    if (a->capacity != b->capacity)
        return a->capacity < b->capacity ? -1 : 1;
    return (a->recompute > b->recompute) - (a->recompute < b->recompute);
}

/* The kind like `wanted` in the sorted list, which gets it; NULL: there is no memory. */
static kind *find_kind(kind_list *l, const kind *wanted)
{
    int64_t low = 0, high = l->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (order_of(&l->list[middle], wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < l->count && order_of(&l->list[low], wanted) == 0)
        return &l->list[low];
    if (l->count == l->room) {
        int64_t room = l->room ? 2 * l->room : 64;
        kind *more = realloc(l->list, (size_t)room * sizeof *more);
        if (!more)
            return NULL;
        l->list = more;
        l->room = room;
    }
    memmove(&l->list[low + 1], &l->list[low], (size_t)(l->count - low) * sizeof *l->list);
    l->list[low] = *wanted;
    l->count++;
    return &l->list[low];
}

static void count_pack(const hbp_plan_view *view, int64_t m, int64_t p, kind *k)
{
    k->packs++;
    k->padding += view->pack_offsets[p + 1] == view->pack_offsets[p];
    k->samples += view->pack_offsets[p + 1] - view->pack_offsets[p];
    k->tokens += view->pack_tokens[p];
    k->vision += view->pack_vision ? view->pack_vision[p] : 0;
    k->vision_room += view->pack_vision && view->pack_vision_capacity[p] < INT64_MAX
                          ? (double)view->pack_vision_capacity[p]
                          : 0;
    k->gpu_ns += (double)view->pack_ns[p] * (double)view->pack_sp[p];
    k->micro_batches += k->last_micro_batch != m;
    k->last_micro_batch = m;
}

/* 0: there is no memory. */
static int count_kinds(const hbp_plan *plan, kind_list *kinds)
{
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(plan, &view);
    for (int64_t m = 0; m < view.micro_batches; m++)
        for (int64_t p = view.micro_batch_offsets[m]; p < view.micro_batch_offsets[m + 1]; p++) {
            const kind own = {.sp = view.pack_sp[p],
                              .recompute = view.pack_recompute[p],
                              .capacity = view.pack_capacity[p],
                              .last_micro_batch = -1};
            kind *k = find_kind(kinds, &own);
            if (!k)
                return 0;
            count_pack(&view, m, p, k);
        }
    return 1;
}

/* Vision units, or null for a plan without a second size. */
static json_t *vision_json(const hbp_plan_summary *s, int64_t units)
{
    return s->vision < 0 ? json_null() : json_integer((json_int_t)units);
}

/* The kinds of a mask as a list. */
static json_t *modalities_json(int64_t mask)
{
    json_t *list = json_array();
    for (int k = 0; k < HBP_MAX_MODALITIES; k++)
        if (mask >> k & 1)
            json_array_append_new(list, json_integer(k));
    return list;
}

static shown show_modalities(int64_t mask)
{
    shown text = {""};
    for (int k = 0; k < HBP_MAX_MODALITIES; k++)
        if (mask >> k & 1) {
            size_t length = strlen(text.s);
            snprintf(text.s + length, sizeof text.s - length, length ? ",%d" : "%d", k);
        }
    return text;
}

static int overview_json(cli *c, const hbp_plan_summary *s, const kind *kinds, int64_t count)
{
    json_t *rows = json_array();
    for (int64_t i = 0; i < count; i++)
        json_array_append_new(
            rows,
            json_pack("{s:I,s:i,s:i,s:I,s:I,s:I,s:I,s:I,s:o,s:f}", "capacity", (json_int_t)kinds[i].capacity,
                      "sp", (int)kinds[i].sp, "recompute", (int)kinds[i].recompute, "micro_batches",
                      (json_int_t)kinds[i].micro_batches, "packs", (json_int_t)kinds[i].packs,
                      "padding_packs", (json_int_t)kinds[i].padding, "samples", (json_int_t)kinds[i].samples,
                      "tokens", (json_int_t)kinds[i].tokens, "vision", vision_json(s, kinds[i].vision),
                      "gpu_ns", kinds[i].gpu_ns));
    c->result = json_pack(
        "{s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:o,s:I,s:o,s:o,s:I,s:I,s:o}", "digest",
        show_digest(s->digest).s, "lengths_digest", show_digest(s->lengths_digest).s, "ranks",
        (json_int_t)s->ranks, "steps", (json_int_t)s->steps, "first_step", (json_int_t)s->first_step,
        "micro_batches", (json_int_t)s->micro_batches, "packs", (json_int_t)s->packs, "padding_packs",
        (json_int_t)s->padding_packs, "samples", (json_int_t)s->samples, "dropped", (json_int_t)s->dropped,
        "tokens", (json_int_t)s->tokens, "loss_tokens", (json_int_t)s->loss_tokens, "vision",
        vision_json(s, s->vision), "modalities", modalities_json(s->modalities), "predicted_ns",
        (json_int_t)s->predicted_ns, "bound_ns", json_known(s->bound_ns), "gap", json_number(s->gap), "seed",
        (json_int_t)s->seed, "epoch", (json_int_t)s->epoch, "pack_types", rows);
    json_add_contract(c->result, s);
    if (c->result && c->vlm_plan)
        json_object_set_new(c->result, "vlm", cli_vlm_json(c));
    return cli_print_json(c);
}

static void print_kinds(const cli *c, const hbp_plan_summary *s, const kind *kinds, int64_t count)
{
    int64_t rows = !c->all && count > SHOWN_KINDS ? SHOWN_KINDS : count;
    table t;
    table_begin(&t, s->vision < 0 ? 9 : 11,
                (const char *[]){"pack", "SP", "-recomputed layers", "-micro-batches", "packs", "-padding",
                                 "samples", "filled", c->vlm_plan ? "packs' time" : "GPU time",
                                 "vision units", "of their limit"});
    for (int64_t i = 0; i < rows; i++) {
        const kind *k = &kinds[i];
        table_add_text(&t, show_length(k->capacity));
        table_add(&t, "%d", (int)k->sp);
        table_add(&t, "%d", (int)k->recompute);
        table_add_text(&t, show_count(k->micro_batches));
        table_add_text(&t, show_count(k->packs));
        table_add_text(&t, show_count(k->padding));
        table_add_text(&t, show_count(k->samples));
        table_add_text(&t, show_share((double)k->tokens / ((double)k->packs * (double)k->capacity)));
        table_add_text(&t, show_time(k->gpu_ns));
        if (s->vision < 0)
            continue;
        table_add_text(&t, show_count(k->vision));
        table_add_text(&t, k->vision_room > 0 ? show_share((double)k->vision / k->vision_room)
                                              : show_real("-", 0));
    }
    table_end(&t);
    if (rows < count)
        say("  and %s more; --all shows them\n", show_count(count - rows).s);
}

static void print_overview(cli *c, const hbp_plan_summary *s)
{
    hbp_vlm_plan_summary vlm = {.struct_size = sizeof vlm};
    if (c->vlm_plan)
        (void)hbp_vlm_plan_get_summary(c->context, c->vlm_plan, &vlm);
    say("%s: %s on %s, %s, %s, predicted %s", show_name(c->file).s, show_number(s->steps, "step").s,
        c->vlm_plan ? show_number(s->ranks, "replica").s : show_gpus(s).s,
        show_number(s->samples, "sample").s, show_number(s->tokens, "token").s,
        show_time((double)(c->vlm_plan ? vlm.epoch_ns : s->predicted_ns)).s);
    if (c->vlm_plan)
        say(", with even stages, which do not wait, %s", show_time((double)s->predicted_ns).s);
    say("\n");
    if (cli_is_part(s))
        say("a part: steps %lld to %lld%s%s\n", (long long)s->first_step,
            (long long)(s->first_step + s->steps - 1), s->epoch_steps ? " of " : "",
            s->epoch_steps ? show_count(s->epoch_steps).s : "");
    shown contract = show_contract(s, "");
    if (contract.s[0])
        say("steps%s\n", contract.s);
    cli_print_fullness(c, s);
    print_hierarchy(s);
    if (s->bound_ns > 0)
        say("no %s takes less than %s %s: this plan is %s above it\n", show_rivals(s).s,
            show_time((double)s->bound_ns).s, show_conditions(s).s, show_share(s->gap).s);
    print_price(s, s->bound_ns);
    say("seed %llu, epoch %llu, digest %s", (unsigned long long)s->seed, (unsigned long long)s->epoch,
        show_digest(s->digest).s);
    if (s->dropped)
        say(", %s dropped", show_number(s->dropped, "sample").s);
    say("\n");
    if (s->vision >= 0)
        say("%s\n", show_number(s->vision, "vision unit").s);
    if (s->shifted_loss)
        say("shifted loss: the first token of a sample has none\n");
    if (s->modalities)
        say("every micro-batch holds the same modalities on all ranks, of %s\n",
            show_modalities(s->modalities).s);
    say("\n");
}

static int overview(cli *c)
{
    CLI_TRY(c, cli_load_plan(c));
    hbp_plan_summary s;
    s.struct_size = sizeof s;
    CLI_TRY(c, hbp_plan_get_summary(c->context, c->plan, &s));
    kind_list kinds = {NULL, 0, 0};
    int failed = count_kinds(c->plan, &kinds) ? 0 : cli_error("out of memory");
    cli_finish_progress();
    if (!failed && c->json) {
        failed = overview_json(c, &s, kinds.list, kinds.count);
    } else if (!failed) {
        print_overview(c, &s);
        print_kinds(c, &s, kinds.list, kinds.count);
        if (c->vlm_plan) {
            say("\n");
            cli_print_vlm(c);
        }
    }
    free(kinds.list);
    return failed;
}

static json_t *samples_json(const hbp_plan *plan, int64_t pack)
{
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(plan, &view);
    json_t *list = json_array();
    for (int64_t i = view.pack_offsets[pack]; i < view.pack_offsets[pack + 1]; i++) {
        json_t *sample = json_pack("{s:I,s:I,s:i}", "id", (json_int_t)view.sample_ids[i], "first_token",
                                   (json_int_t)(view.sample_first_tokens ? view.sample_first_tokens[i] : 0),
                                   "tokens", (int)view.sample_tokens[i]);
        if (view.sample_vision)
            json_object_set_new(sample, "vision", json_integer(view.sample_vision[i]));
        if (view.sample_modalities)
            json_object_set_new(sample, "modality", json_integer(view.sample_modalities[i]));
        json_array_append_new(list, sample);
    }
    return list;
}

static json_t *pack_json(const hbp_plan *plan, int64_t micro_batch, int64_t p)
{
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(plan, &view);
    json_t *pack =
        json_pack("{s:I,s:i,s:i,s:i,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o}", "micro_batch", (json_int_t)micro_batch,
                  "first_rank", (int)view.pack_ranks[p], "sp", (int)view.pack_sp[p], "recompute",
                  (int)view.pack_recompute[p], "capacity", (json_int_t)view.pack_capacity[p], "tokens",
                  (json_int_t)view.pack_tokens[p], "padded_tokens", (json_int_t)view.pack_padded_tokens[p],
                  "squares", (json_int_t)view.pack_squares[p], "loss_tokens",
                  (json_int_t)view.pack_loss_tokens[p], "predicted_ns", (json_int_t)view.pack_ns[p],
                  "peak_bytes", (json_int_t)view.pack_bytes[p], "samples", samples_json(plan, p));
    if (view.pack_vision) {
        json_object_set_new(pack, "vision", json_integer((json_int_t)view.pack_vision[p]));
        json_object_set_new(pack, "vision_capacity",
                            view.pack_vision_capacity[p] < INT64_MAX
                                ? json_integer((json_int_t)view.pack_vision_capacity[p])
                                : json_null());
    }
    if (view.micro_batch_modalities)
        json_object_set_new(pack, "modalities", modalities_json(view.micro_batch_modalities[micro_batch]));
    return pack;
}

/* Packs of a vision-language plan have none: its stages do. */
static int has_peaks(const hbp_plan_view *view)
{
    return view->pack_offsets[view->packs] > 0 && view->pack_bytes[0] > 0;
}

static void add_pack(table *t, const hbp_plan *plan, int64_t micro_batch, int64_t p)
{
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(plan, &view);
    int first = (int)view.pack_ranks[p];
    int sp = (int)view.pack_sp[p];
    table_add_text(t, show_count(micro_batch));
    table_add(t, sp > 1 ? "%d-%d" : "%d", first, first + sp - 1);
    table_add(t, "%d", sp);
    table_add(t, "%d", (int)view.pack_recompute[p]);
    table_add_text(t, show_count(view.pack_offsets[p + 1] - view.pack_offsets[p]));
    table_add_text(t, show_count(view.pack_tokens[p]));
    table_add_text(t, show_length(view.pack_capacity[p]));
    table_add_text(t, show_real("%.3g", (double)view.pack_squares[p]));
    table_add_text(t, show_time((double)view.pack_ns[p]));
    if (has_peaks(&view))
        table_add_text(t, show_bytes((double)view.pack_bytes[p]));
    if (view.pack_vision)
        table_add_text(t, show_count(view.pack_vision[p]));
    if (view.micro_batch_modalities)
        table_add_text(t, show_modalities(view.micro_batch_modalities[micro_batch]));
}

static void begin_packs(table *t, const hbp_plan *plan)
{
    const char *headers[12] = {"micro-batch", "ranks",    "SP",  "-recomputed layers", "samples", "tokens",
                               "-capacity",   "-squares", "time"};
    int columns = 9;
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(plan, &view);
    if (has_peaks(&view))
        headers[columns++] = "peak";
    if (view.pack_vision)
        headers[columns++] = "vision units";
    if (view.micro_batch_modalities)
        headers[columns++] = "modalities";
    table_begin(t, columns, headers);
}

static void print_samples(const hbp_plan *plan, int64_t micro_batch, int64_t p, int all)
{
    enum { SHOWN = 20 };
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(plan, &view);
    int64_t end = view.pack_offsets[p + 1];
    if (!all && end - view.pack_offsets[p] > SHOWN)
        end = view.pack_offsets[p] + SHOWN;
    say("\nmicro-batch %lld, samples as id:tokens%s\n ", (long long)micro_batch,
        view.sample_vision ? "+vision units" : "");
    for (int64_t i = view.pack_offsets[p]; i < end; i++) {
        say(" %lld:%d", (long long)view.sample_ids[i], (int)view.sample_tokens[i]);
        if (view.sample_vision)
            say("+%d", (int)view.sample_vision[i]);
        if (view.sample_first_tokens && view.sample_first_tokens[i])
            say("@%lld", (long long)view.sample_first_tokens[i]);
    }
    if (end < view.pack_offsets[p + 1])
        say(" and %lld more; --all shows them", (long long)(view.pack_offsets[p + 1] - end));
    say(view.pack_offsets[p + 1] == view.pack_offsets[p] ? " none: a padding pack\n" : "\n");
}

int cli_check_place(const cli *c, const hbp_plan_summary *s, int64_t step)
{
    int wrong = cli_check_step(c, step, s->first_step, s->steps);
    if (!wrong && c->rank >= s->ranks)
        wrong = cli_error("there is no rank %lld; ranks of the plan are 0..%d", (long long)c->rank,
                          (int)s->ranks - 1);
    return wrong;
}

/* One step: all of its packs, or those of one rank with their samples. */
static int one_step(cli *c)
{
    hbp_plan_summary s;
    s.struct_size = sizeof s;
    CLI_TRY(c, hbp_plan_file_open(c->context, c->file, &c->plan_file));
    CLI_TRY(c, hbp_plan_file_get_summary(c->context, c->plan_file, &s));
    const int64_t step = c->step < 0 ? s.first_step : c->step;
    int wrong = cli_check_place(c, &s, step);
    if (wrong)
        return wrong;
    CLI_TRY(c, hbp_plan_file_read(c->context, c->plan_file, step - s.first_step, 1, &c->plan));
    return cli_print_step(c, &s, step);
}

int cli_print_step(cli *c, const hbp_plan_summary *s, int64_t step)
{
    hbp_vlm_plan_view pipelines = {.struct_size = sizeof pipelines};
    if (hbp_plan_file_has_vlm(c->plan_file) && !c->json) {
        CLI_TRY(c, hbp_vlm_plan_load(c->context, c->file, &c->vlm_plan));
        CLI_TRY(c, hbp_vlm_plan_get_view(c->vlm_plan, &pipelines));
    }
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(c->plan, &view);
    json_t *packs = json_array();
    table t;
    begin_packs(&t, c->plan);
    for (int64_t m = 0; m < view.step_offsets[1] - view.step_offsets[0]; m++) {
        int64_t own = c->rank < 0 ? -1 : hbp_plan_get_rank_pack(c->plan, 0, m, (int32_t)c->rank);
        for (int64_t p = view.micro_batch_offsets[m]; p < view.micro_batch_offsets[m + 1]; p++) {
            if (c->rank >= 0 && p != own)
                continue;
            if (c->json)
                json_array_append_new(packs, pack_json(c->plan, m, p));
            else
                add_pack(&t, c->plan, m, p);
        }
    }
    cli_finish_progress();
    c->result = json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:o}", "step", (json_int_t)step, "micro_batches",
                          (json_int_t)(view.step_offsets[1] - view.step_offsets[0]), "samples",
                          (json_int_t)view.step_samples[0], "tokens", (json_int_t)view.step_tokens[0],
                          "loss_tokens", (json_int_t)view.step_loss_tokens[0], "predicted_ns",
                          (json_int_t)view.step_ns[0], "packs", packs);
    if (c->json) {
        table_free(&t);
        return cli_print_json(c);
    }
    if (cli_is_part(s))
        say("step %lld, of steps %lld to %lld: ", (long long)step, (long long)s->first_step,
            (long long)(s->first_step + s->steps - 1));
    else
        say("step %lld of %s: ", (long long)step, show_count(s->steps).s);
    say("%s, %s, %s, predicted ", show_number(view.step_samples[0], "sample").s,
        show_number(view.step_tokens[0], "token").s, show_number(view.step_loss_tokens[0], "loss token").s);
    if (c->vlm_plan)
        say("%s in the pipelines; with even stages, which do not wait: ",
            show_time((double)pipelines.step_ns[step - s->first_step]).s);
    say("%s\n\n", show_time((double)view.step_ns[0]).s);
    if (c->vlm_plan) {
        const int64_t row = step - s->first_step;
        const hbp_status status = print_stage_lines(c, row, pipelines.step_ns[row]);
        if (status < 0) {
            table_free(&t);
            return cli_failed(c);
        }
    } else if (!print_ranks(c->plan, s, c->rank)) {
        table_free(&t);
        return cli_error("out of memory");
    }
    say("\n");
    table_end(&t);
    for (int64_t m = 0; c->rank >= 0 && m < view.step_offsets[1] - view.step_offsets[0]; m++)
        print_samples(c->plan, m, hbp_plan_get_rank_pack(c->plan, 0, m, (int32_t)c->rank), c->all != 0);
    return 0;
}

int cli_show(cli *c)
{
    static const job_part parts[] = {{"reading", 100, "load 100"}, {NULL, 0, NULL}};
    progress_begin(parts);
    const cli_object *object = cli_find_object(c);
    if (object) {
        int wrong = cli_load_object(c, object);
        return wrong ? wrong : object->show(c);
    }
    if (c->lengths_file)
        return cli_usage("--lengths is for plans by patterns; the samples of %s are listed", c->file);
    return c->step >= 0 || c->rank >= 0 ? one_step(c) : overview(c);
}
