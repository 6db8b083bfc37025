/* A vision-language run as a whole: its parts agree with what they are made of. */
#include "base/methods.h"
#include "vlm_runs.h"

static hbp_vlm_plan *make(const fixture *f, hbp_vlm_plan_summary *summary)
{
    hbp_vlm_plan *plan = NULL;
    OK(f->context, hbp_plan_vlm(f->context, f->lengths, f->vlm, f->machine, &f->options, &plan));
    summary->struct_size = sizeof *summary;
    OK(f->context, hbp_vlm_plan_get_summary(f->context, plan, summary));
    return plan;
}

/* Total times of layers of a type, forward and backward. */
static double time_of(const hbp_layers *layers, int32_t type)
{
    double sum = 0;
    for (int32_t i = 0; i < layers->count; i++)
        if (layers->type[i] == type)
            sum += (double)(layers->forward_ns[i] + layers->backward_ns[i]);
    return sum;
}

/* Every promise of the parts, and the step times over again through the public simulator. */
static void check(const fixture *f, const hbp_vlm_plan *plan, const hbp_vlm_plan_summary *s)
{
    const hbp_plan *data = hbp_vlm_plan_get_data(plan);
    const hbp_layers *layers = hbp_vlm_plan_get_layers(plan);
    int64_t sum = 0;
    hbp_vlm_plan_view view = vlm_plan_view(plan);
    OK(f->context, hbp_plan_validate(f->context, data, f->lengths, NULL));
    ck_assert_int_eq((view.chunks + 1), s->stages * s->virtual_stages + 1);
    for (int64_t i = 0; i < view.layers; i++)
        ck_assert(view.recompute[i] >= HBP_RECOMPUTE_NONE && view.recompute[i] < HBP_RECOMPUTE_CHOICES);
    ck_assert_int_eq(view.cuts[0], 0);
    ck_assert_int_eq(view.cuts[view.chunks], view.layers);
    for (int64_t k = 0; k < view.chunks; k++)
        ck_assert_int_lt(view.cuts[k], view.cuts[k + 1]);
    ck_assert_int_eq(layers_view(layers).layers, view.layers);
    for (int64_t i = 0; i < view.stages; i++)
        ck_assert_int_le(view.stage_bytes[i], s->limit_bytes);
    ck_assert_int_eq(view.steps, data->steps);
    for (int64_t i = 0; i < view.steps; i++)
        sum += view.step_ns[i];
    ck_assert_int_eq(sum, s->epoch_ns);
    ck_assert_int_ge(s->epoch_ns, s->packs_bound_ns);
    ck_assert_int_ge(s->packs_bound_ns, s->bound_ns);
    ck_assert_int_gt(s->bound_ns, 0);
    ck_assert_int_eq(s->gpus, 32);
    ck_assert_double_eq_tol(s->gpu_days, (double)s->epoch_ns * 32 / 86400e9, 1e-12);
    ck_assert(s->bubble >= 0 && s->bubble < 1);
}

/* Step `step` under other cuts and recomputation through hbp_simulate_pipeline, scales from the plan's packs.
 */
static int64_t rerun_as(const fixture *f, const hbp_vlm_plan *plan, int64_t step, const hbp__vlm_reference *r,
                        const int32_t *cuts, const int32_t *recompute)
{
    const hbp_plan *data = hbp_vlm_plan_get_data(plan);
    int64_t first = data->step_offsets[step], count = data->step_offsets[step + 1] - first, slowest = 0;
    double scale[3][64];
    ck_assert_int_le(count, 64);
    hbp_pipeline_options o = {.struct_size = sizeof o};
    o.stages = f->options.pipeline_stages;
    o.virtual_stages = f->options.virtual_stages;
    o.micro_batches = (int32_t)count;
    o.vision_scale = scale[0];
    o.token_scale = scale[1];
    o.token_time_scale = scale[2];
    o.recompute = recompute;
    /* A replica of 16 GPUs does not fit into one node of 8. */
    int32_t replica = f->options.tensor_parallel * f->options.pipeline_stages;
    o.link_bytes_per_s = (replica <= 8 ? 240e9 : 25e9) * f->options.tensor_parallel;
    hbp_machine_fields fields = {.struct_size = sizeof fields};
    OK(f->context, hbp_machine_get_fields(f->context, f->machine, &fields));
    o.link_latency_ns =
        (int64_t)((replica <= 8 ? fields.nvlink_latency_ns : fields.network_latency_ns) + 0.5);
    for (int32_t d = 0; d < data->ranks; d++) {
        for (int64_t m = 0; m < count; m++) {
            int64_t p = data->micro_batch_offsets[first + m] + d;
            ck_assert_int_eq(data->pack_ranks[p], d);
            double tokens = (double)data->pack_padded_tokens[p], squares = (double)data->pack_squares[p];
            scale[0][m] = (double)data->pack_vision[p] / r->mean.vision;
            scale[1][m] = tokens / r->mean.tokens;
            scale[2][m] = (r->token_ns * tokens + r->square_ns * squares) /
                          (r->token_ns * r->mean.tokens + r->square_ns * r->mean.squares);
        }
        hbp_pipeline_run *run = NULL;
        hbp_pipeline_summary s = {.struct_size = sizeof s};
        OK(f->context,
           hbp_simulate_pipeline(f->context, hbp_vlm_plan_get_layers(plan), cuts, &o, NULL, &run));
        OK(f->context, hbp_pipeline_run_get_summary(f->context, run, &s));
        slowest = s.total_ns > slowest ? s.total_ns : slowest;
        hbp_pipeline_run_free(run);
    }
    return slowest;
}

static int64_t rerun(const fixture *f, const hbp_vlm_plan *plan, int64_t step, const hbp__vlm_reference *r)
{
    return rerun_as(f, plan, step, r, vlm_plan_view(plan).cuts, vlm_plan_view(plan).recompute);
}

START_TEST_IN_CONTEXT(parts_agree)
{
    const int64_t samples = TEST_FEW(600, 240);
    for (int32_t chunks = 1; chunks <= 2; chunks++) {
        fixture f = setup(context, samples);
        f.options.virtual_stages = chunks;
        hbp_vlm_plan_summary s;
        hbp_vlm_plan *plan = make(&f, &s);
        check(&f, plan, &s);
        ck_assert_int_eq(s.samples, samples);
        ck_assert_int_eq(s.dropped, 0);
        ck_assert_int_eq(s.replicas, 2);
        /* The mean pack, over again. */
        const hbp_plan *data = hbp_vlm_plan_get_data(plan);
        hbp__vlm_size mean = {0, 0, 0};
        double packs = 0;
        for (int64_t p = 0; p < data->packs; p++) {
            mean.vision += (double)data->pack_vision[p];
            mean.tokens += (double)data->pack_padded_tokens[p];
            mean.squares += (double)data->pack_squares[p];
            packs += data->pack_offsets[p + 1] > data->pack_offsets[p];
        }
        mean = (hbp__vlm_size){mean.vision / packs, mean.tokens / packs, mean.squares / packs};
        hbp__vlm_run run;
        hbp__vlm_reference reference;
        OK(f.context, hbp__vlm_open(f.context, f.lengths, f.vlm, f.machine, &f.options, &run));
        OK(f.context, hbp__vlm_reference_open(&run, &mean, &reference));
        ck_assert_double_eq_tol(reference.vision_ns * mean.vision,
                                time_of(reference.layers, HBP_LAYER_VISION), 1);
        ck_assert_double_eq_tol(reference.token_ns * mean.tokens + reference.square_ns * mean.squares,
                                time_of(reference.layers, HBP_LAYER_LANGUAGE), 1);
        for (int64_t step = 0; step < s.steps; step++)
            ck_assert_int_eq(rerun(&f, plan, step, &reference), vlm_plan_view(plan).step_ns[step]);
        hbp__vlm_reference_close(&reference);
        hbp_vlm_plan_free(plan);
    }
}
END_TEST

START_TEST_IN_CONTEXT(every_way_of_data_model_and_memory)
{
    fixture f = setup(context, 600);
    hbp_vlm_plan_summary s;
    f.options.max_vision = 16;
    f.options.max_tokens = 6144;
    for (int32_t data = HBP__VLM_DATA_PACKED; data <= HBP__VLM_DATA_SORTED; data++)
        for (int32_t model = HBP__LAYER_PARTITION_OPTIMAL; model <= HBP__LAYER_PARTITION_OMNIBAL; model++)
            for (int32_t memory = HBP__RECOMPUTE_OPTIMAL; memory <= HBP__RECOMPUTE_ALL; memory++) {
                f.options.data_method = hbp__vlm_data_name(data);
                f.options.partition_method = hbp__layer_partition_name(model);
                f.options.recompute_method = hbp__recompute_name(memory);
                hbp_vlm_plan *plan = make(&f, &s);
                check(&f, plan, &s);
                if (data != HBP__VLM_DATA_ISF)
                    ck_assert_int_eq(s.samples + s.dropped, 600);
                if (memory == HBP__RECOMPUTE_ALL)
                    ck_assert_int_gt(s.recomputed, 0);
                hbp_vlm_plan_free(plan);
            }
}
END_TEST

START_TEST_IN_CONTEXT(each_part_helps)
{
    fixture f = setup(context, 3000);
    hbp_vlm_plan_summary usual, data, model, memory;
    f.options.data_method = hbp__vlm_data_name(HBP__VLM_DATA_RANDOM);
    f.options.partition_method = hbp__layer_partition_name(HBP__LAYER_PARTITION_PARAMETERS);
    f.options.recompute_method = hbp__recompute_name(HBP__RECOMPUTE_ALL);
    hbp_vlm_plan_free(make(&f, &usual));
    f.options.data_method = hbp__vlm_data_name(HBP__VLM_DATA_PACKED);
    hbp_vlm_plan_free(make(&f, &data));
    f.options.partition_method = hbp__layer_partition_name(HBP__LAYER_PARTITION_OPTIMAL);
    hbp_vlm_plan_free(make(&f, &model));
    f.options.recompute_method = hbp__recompute_name(HBP__RECOMPUTE_OPTIMAL);
    hbp_vlm_plan_free(make(&f, &memory));
    ck_assert_double_lt(data.gpu_days, usual.gpu_days);
    ck_assert_double_lt(model.gpu_days, data.gpu_days);
    ck_assert_double_lt(memory.gpu_days, model.gpu_days);
    ck_assert_double_lt(data.dist_vision, .02);
    ck_assert_double_lt(data.dist_tokens, .02);
    ck_assert_double_gt(usual.dist_vision, .1);
    ck_assert_double_gt(usual.padding, .1);
    ck_assert_double_eq(data.padding, 0);
    /* Nothing recomputes once all is balanced (OmniBal, table 9). */
    ck_assert_int_eq(memory.recomputed + memory.selective, 0);
}
END_TEST

START_TEST_IN_CONTEXT(the_same_again)
{
    fixture f = setup(context, 800);
    hbp_vlm_plan_summary a, b, c;
    hbp_vlm_plan_free(make(&f, &a));
    hbp_vlm_plan_free(make(&f, &b));
    f.options.epoch = 1;
    hbp_vlm_plan_free(make(&f, &c));
    ck_assert_uint_eq(a.digest, b.digest);
    ck_assert_uint_ne(a.digest, c.digest);
}
END_TEST

START_TEST_IN_CONTEXT(measured_layers_take_the_place_of_derived_ones)
{
    fixture f = setup(context, 600);
    const int64_t forward[6] = {4000000, 4000000, 4000000, 3000000, 3000000, 3000000};
    const int32_t type[6] = {HBP_LAYER_VISION,   HBP_LAYER_VISION,   HBP_LAYER_VISION,
                             HBP_LAYER_LANGUAGE, HBP_LAYER_LANGUAGE, HBP_LAYER_LANGUAGE};
    hbp_layer_columns columns = {.struct_size = sizeof columns};
    columns.count = 6;
    columns.forward_ns = forward;
    columns.type = type;
    hbp_layers *layers = NULL;
    OK(f.context, hbp_layers_create(f.context, &columns, &layers));
    f.options.layers = layers;
    f.options.layers_vision = 9;
    f.options.layers_tokens = 4096;
    f.options.pipeline_stages = 2;
    f.options.data_parallel = 4;
    hbp_vlm_plan_summary s;
    hbp_vlm_plan *plan = keep(make(&f, &s));
    check(&f, plan, &s);
    ck_assert_ptr_eq(hbp_vlm_plan_get_layers(plan), layers);
    ck_assert_int_eq(s.recomputed, 0);
    /* No cuts of these packs beat the bound for packs. */
    hbp__vlm_run run;
    hbp__vlm_reference reference;
    const hbp__vlm_size mean = {9, 4096, 0};
    OK(f.context, hbp__vlm_open(f.context, f.lengths, f.vlm, f.machine, &f.options, &run));
    OK(f.context, hbp__vlm_reference_open(&run, &mean, &reference));
    int64_t best = INT64_MAX;
    for (int32_t cut = 1; cut < 6; cut++) {
        const int32_t cuts[3] = {0, cut, 6};
        int64_t sum = 0;
        for (int64_t step = 0; step < s.steps; step++)
            sum += rerun_as(&f, plan, step, &reference, cuts, NULL);
        ck_assert_int_ge(sum, s.packs_bound_ns);
        best = sum < best ? sum : best;
    }
    ck_assert_int_le(s.epoch_ns, best);
    ck_assert_double_lt((double)best / (double)s.packs_bound_ns, 1.5); /* it bounds something */
    hbp__vlm_reference_close(&reference);
    hbp_layers_free(layers); /* the plan keeps its own hold */
    ck_assert_int_eq(layers_view(hbp_vlm_plan_get_layers(plan)).layers, 6);
}
END_TEST

START_TEST_IN_CONTEXT(micro_batches_shrink_until_they_fit)
{
    fixture f = setup(context, 400);
    OK(f.context, hbp_machine_set_field(f.context, f.machine, "hbm_bytes", 28e9, "given"));
    f.options.samples = 16;
    hbp_vlm_plan_summary s;
    hbp_vlm_plan *plan = keep(make(&f, &s));
    check(&f, plan, &s);
    ck_assert_int_lt(s.max_vision, 16 * 5);
    ck_assert_int_lt(s.pack_samples, 16);
    ck_assert_int_gt(s.pack_samples, 0);
    /* With budgets of the caller's, that is for the caller to do. */
    f.options.max_vision = 400;
    f.options.max_tokens = 120000;
    hbp_vlm_plan *none = NULL;
    FAILS(f.context, HBP_E_INFEASIBLE, "stage",
          hbp_plan_vlm(f.context, f.lengths, f.vlm, f.machine, &f.options, &none));
    ck_assert_ptr_null(none);
}
END_TEST

static void refuse(fixture *f, hbp_status status, const char *text)
{
    hbp_vlm_plan *plan = NULL;
    FAILS(f->context, status, text,
          hbp_plan_vlm(f->context, f->lengths, f->vlm, f->machine, &f->options, &plan));
    ck_assert_ptr_null(plan);
}

#define REFUSE(field, value, text)                                                                           \
    do {                                                                                                     \
        hbp_vlm_options kept = f.options;                                                                    \
        f.options.field = value;                                                                             \
        refuse(&f, HBP_E_INVALID, text);                                                                     \
        f.options = kept;                                                                                    \
    } while (0)

START_TEST_IN_CONTEXT(bad_options_are_named)
{
    fixture f = setup(context, 40);
    REFUSE(data_method, "iss", "`data_method` is 'iss'; did you mean 'isf'?");
    REFUSE(partition_method, "omni", "`partition_method` is 'omni'; did you mean");
    REFUSE(recompute_method, "al", "`recompute_method` is 'al'; did you mean 'all'?");
    REFUSE(selective, 4, "`selective` is 4; it must be in -1..3");
    REFUSE(tensor_parallel, -1, "`tensor_parallel` is -1; it must be in 0..1024");
    REFUSE(tensor_parallel, 3, "tensor_parallel 3");
    REFUSE(pipeline_stages, 2000, "`pipeline_stages` is 2000; it must be in 0..1024");
    REFUSE(data_parallel, 3, "48 GPUs");
    REFUSE(samples, -4, "`samples` is -4; it must be in 0..65536");
    REFUSE(zero_stage, 9, "`zero_stage` is 9; it must be in 0..4");
    REFUSE(over_long, 2, "`over_long` is 2; it must be in 0..1");
    REFUSE(max_vision, 9, "give both or neither");
    REFUSE(max_tokens, -1, "`max_tokens` is -1; it must be in 0..2147483647");
    REFUSE(reserve_bytes, -2, "`reserve_bytes` is -2; it must be in -1..9223372036854775807");
    f.options.reserve_bytes = INT64_C(90000000000);
    refuse(&f, HBP_E_INFEASIBLE, "reserve_bytes keeps 83.8 GiB free on each GPU, which has 80.0 GiB");
    f.options.reserve_bytes = 0;
    f.options.virtual_stages = 2;
    REFUSE(micro_batches, 6, "multiple of pipeline_stages 4");
    hbp_lengths *text = NULL;
    const uint32_t tokens[2] = {10, 20};
    OK(f.context, hbp_lengths_create_u32(f.context, tokens, 2, NULL, &text));
    hbp_vlm_plan *plan = NULL;
    FAILS(f.context, HBP_E_INVALID, "no vision units",
          hbp_plan_vlm(f.context, text, f.vlm, f.machine, &f.options, &plan));
    FAILS(f.context, HBP_E_INVALID, "vlm", hbp_plan_vlm(f.context, text, NULL, f.machine, NULL, &plan));
    const uint32_t units[2] = {0, 0};
    hbp_lengths_options columns = {.struct_size = sizeof columns};
    columns.vision = units;
    hbp_lengths_free(text);
    OK(f.context, hbp_lengths_create_u32(f.context, tokens, 2, &columns, &text));
    FAILS(f.context, HBP_E_INVALID, "none of 2 samples has vision units",
          hbp_plan_vlm(f.context, text, f.vlm, f.machine, &f.options, &plan));
    hbp_lengths_free(text);
}
END_TEST

static hbp_status plan(hbp_context *context, void *user)
{
    const fixture *f = user;
    hbp_vlm_plan *plan = NULL;
    hbp_status status = hbp_plan_vlm(context, f->lengths, f->vlm, f->machine, &f->options, &plan);
    ck_assert_int_eq(plan != NULL, status >= 0);
    hbp_vlm_plan_free(plan);
    return status;
}

/* A call cancelled once, at any report, ends there. */
static void cancel_each(fixture *f)
{
    int64_t left = -1;
    failing memory;
    hbp_context *context = failing_context(&memory, cancel_once, &left);
    ck_assert_int_eq(plan(context, f), HBP_OK);
    int64_t reports = -1 - left, live = memory.live;
    ck_assert_int_gt(reports, 1);
    for (int64_t n = 0; n < reports; n++) {
        left = n;
        FAILS(context, HBP_E_CANCELLED, "cancelled", plan(context, f));
        ck_assert_int_eq(left, -1);
        ck_assert_int_eq(memory.live, live);
    }
    hbp_context_free(context);
}

/* A small run of measured layers, short of memory for what `samples` asks for, so that rounds follow. */
START_TEST_IN_CONTEXT(failing_allocations_and_cancel)
{
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    fixture f = setup(context, 16);
    hbp_layers *layers = keep(draw_measured(f.context, &rng, 3));
    f.options.layers = layers;
    f.options.layers_vision = 4;
    f.options.layers_tokens = 1024;
    f.options.pipeline_stages = 2;
    f.options.batch_samples = 16;
    f.options.max_vision = 12;
    f.options.max_tokens = 4096;
    failing_sweep(plan, &f);
    cancel_each(&f);
    /* Over the rounds of smaller packs: what ends one call must not start the next round. */
    f.options.max_vision = f.options.max_tokens = 0;
    f.options.data_method = hbp__vlm_data_name(HBP__VLM_DATA_RANDOM);
    hbp_vlm_plan_summary s = {.pack_samples = 4};
    hbp_vlm_plan_free(make(&f, &s));
    ck_assert_int_eq(s.pack_samples, 4);
    int64_t all = s.limit_bytes + HBP_RESERVE_BYTES, limit = s.peak_bytes;
    for (; s.pack_samples == 4; limit -= limit / 16) {
        f.options.reserve_bytes = all - limit;
        hbp_vlm_plan_free(make(&f, &s));
    }
    ck_assert_int_ge(s.pack_samples, 1);
    failing_sweep(plan, &f);
    cancel_each(&f);
}
END_TEST

TEST_MAIN("plan_vlm", parts_agree, every_way_of_data_model_and_memory, each_part_helps, the_same_again,
          measured_layers_take_the_place_of_derived_ones, micro_batches_shrink_until_they_fit,
          bad_options_are_named, failing_allocations_and_cancel)
