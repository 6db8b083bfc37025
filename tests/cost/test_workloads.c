#include "failing.h"

#include <math.h>

#include "data/graph/graph.h"
#include "data/model/workload_presets.h"
#include "keep.h"
#include "nodes.h"

#define A800(context, nodes, machine) OK(context, make_nodes(context, "a800-80", nodes, &(machine)))

static hbp_graph *workload(hbp_context *context, const char *name, int32_t nodes)
{
    hbp_machine *machine = NULL;
    hbp_graph *graph = NULL;
    A800(context, nodes, machine);
    OK(context, hbp_graph_create_workload(context, name, machine, &graph));
    hbp_machine_free(machine);
    OK(context, hbp_graph_validate(context, graph));
    return graph;
}

static int64_t index_of(hbp_context *context, const hbp_graph *graph, const char *name, hbp_operator *o)
{
    for (int64_t i = 0; i < graph_view(graph).operators; i++) {
        *o = (hbp_operator){.struct_size = sizeof *o};
        OK(context, hbp_graph_get_operator(context, graph, i, o));
        if (strcmp(o->name, name) == 0)
            return i;
    }
    ck_abort_msg("no operator %s", name);
    return -1;
}

/* Profiled time on n GPUs; 0 when there is none. */
static int64_t time_on(hbp_context *context, const hbp_graph *graph, const char *name, int32_t n)
{
    hbp_operator o;
    index_of(context, graph, name, &o);
    hbp_graph_view view = graph_view(graph);
    for (int64_t i = view.profile_offsets[o.profile]; i < view.profile_offsets[o.profile + 1]; i++)
        if (view.point_gpus[i] == n)
            return view.point_ns[i];
    return 0;
}

START_TEST_IN_CONTEXT(graphs_have_all_layers_of_all_tasks)
{
    static const struct {
        const char *name;
        int64_t operators, tasks, parameters;
    } rows[] = {
        /* Towers: vision 32, text 24, audio 12, depth 12, thermal 12, motion 6; a loss each. */
        {"clip-4", 56 + 18 + 38 + 44 + 4, 4, 32 + 24 + 12 + 12 + 6 + 4},
        {"clip-10", 5 * 32 + 5 * 24 + 3 * 12 + 2 * 12 + 2 * 12 + 3 * 6 + 10, 10, 98 + 10},
        {"ofasys-7", 3 * 12 + 12 + 6 + 8 + 4 + 7 * 24, 7, 12 + 12 + 6 + 8 + 4 + 24},
        {"qwen-val-3", 2 * 48 + 2 * 32 + 3 * 32, 3, 48 + 32 + 32},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hbp_graph *graph = workload(context, rows[i].name, 1);
        ck_assert_int_eq(graph_view(graph).operators, rows[i].operators);
        ck_assert_int_eq(graph_view(graph).tasks, rows[i].tasks);
        ck_assert_int_eq(graph_view(graph).parameters, rows[i].parameters);
        hbp_graph_free(graph);
    }
}
END_TEST

/* Layer k of a tower is one set of weights in all tasks, and all sets together are the model. */
START_TEST_IN_CONTEXT(tasks_share_weights)
{
    static const char *const whole[] = {"clip-7", "clip-10", "ofasys-7", "qwen-val-3", "qwen-val-3-30b"};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        hbp_graph *graph = workload(context, whole[i], 2);
        int64_t sets = graph_view(graph).parameters, states = 0, gradients = 0, total = -1;
        const int32_t *set_of = graph_view(graph).operator_parameters;
        int64_t *bytes = calloc((size_t)sets, sizeof *bytes);
        for (int64_t k = 0; k < graph_view(graph).operators; k++) {
            hbp_operator o = {.struct_size = sizeof o};
            OK(context, hbp_graph_get_operator(context, graph, k, &o));
            int large = strncmp(whole[i], "qwen", 4) == 0;
            ck_assert_int_eq(large ? o.state_bytes : o.sharded_bytes, 0);
            int64_t own = o.state_bytes + o.sharded_bytes;
            if (bytes[set_of[k]])
                ck_assert_int_eq(bytes[set_of[k]], own);
            else
                gradients += o.gradient_bytes;
            bytes[set_of[k]] = own;
        }
        for (int64_t k = 0; k < sets; k++)
            states += bytes[k];
        for (int64_t k = 0; hbp_preset_get_name("workload", k); k++)
            if (strcmp(hbp_preset_get_name("workload", k), whole[i]) == 0)
                total = hbp_workload_get_preset_parameters(k);
        ck_assert_int_eq(states, 18 * total);
        ck_assert_int_eq(gradients, 2 * total);
        free(bytes);
        hbp_graph_free(graph);
    }
}
END_TEST

START_TEST_IN_CONTEXT(fields_by_hand)
{
    hbp_graph *graph = keep(workload(context, "clip-10", 4));
    hbp_operator o, first;
    int64_t at = index_of(context, graph, "vision-text/text[1]", &o);
    int64_t of_depth = index_of(context, graph, "depth-text/text[1]", &first);
    const int32_t *sets = graph_view(graph).operator_parameters;
    ck_assert_int_eq(sets[at], sets[of_depth]);
    ck_assert_str_eq(o.parameters, "text[1]");
    ck_assert_str_eq(o.type, "text");
    ck_assert_str_eq(o.task, "vision-text");
    ck_assert_int_eq(o.profile, first.profile);
    ck_assert_int_eq(o.batch, 160);
    ck_assert_int_eq(o.sequence, 77);
    ck_assert_int_eq(o.width, 1024);
    ck_assert_int_eq(o.split, 16);
    ck_assert_int_eq(o.degrees, HBP_DEGREES_DIVISORS);
    ck_assert_int_eq(o.least_gpus, 1);
    ck_assert_int_eq(o.output_bytes, 160 * 77 * 1024 * 2);
    ck_assert_int_eq(o.activation_bytes, 160 * 77 * (32 * 1024 + 4 * 16));
    ck_assert_int_eq(o.state_bytes, 18 * (12 * 1024 * 1024 + 2 * 1024));
    index_of(context, graph, "vision-text/text[0]", &first); /* with 49,408 + 77 embeddings */
    ck_assert_int_eq(first.state_bytes - o.state_bytes, 18 * INT64_C(49485) * 1024);
    index_of(context, graph, "vision-text/text[23]", &first); /* with the projection */
    ck_assert_int_eq(first.state_bytes - o.state_bytes, 18 * 1024 * 1024);
    index_of(context, graph, "vision-text/contrast", &o);
    ck_assert_int_eq(o.state_bytes, 0);

    /* Large: recomputed layers keep their input, and a part of the logits. */
    graph = keep(workload(context, "qwen-val-3", 4));
    index_of(context, graph, "audio-language/language[5]", &o);
    ck_assert_int_eq(o.sharded_bytes, 18 * (4 * INT64_C(4096) * 4096 + 3 * 4096 * 11008 + 2 * 4096));
    ck_assert_int_eq(o.activation_bytes, o.batch * o.sequence * (2 * 4096 + 10 * 32000 / 32));
    ck_assert_int_eq(o.least_gpus, 2); /* 18 bytes of 6.74 billion parameters; .9 of 80 GiB hold half */
}
END_TEST

/* The formula of docs: workloads, written once more for layers whose heads are whole. */
static double expected_ns(double h, double layer_parameters, double batch, double sequence, double p,
                          double q, int large)
{
    double flops = 312e12 * .45 / 1e9, n = p * q, forwards = large ? 2 : 1;
    double tokens = batch * sequence / p, elements = tokens * h / q;
    double products = (2 * forwards + 4) * layer_parameters * batch * sequence / (n * flops);
    double scores = (forwards + 2.5) * 4 * h * sequence * sequence * batch / (n * flops);
    double kernels = 5000 * (30 * forwards + 60);
    double reduces = 2 * (forwards + 1), moved = 2 * (q - 1) / q * 2 * tokens * h;
    double exchange = q > 1 ? reduces * (20000 + moved / 160) : 0;
    return products * (1 + 500000 / elements) + scores + kernels + exchange;
}

START_TEST_IN_CONTEXT(times_by_hand)
{
    hbp_graph *graph = keep(workload(context, "clip-4", 8));
    double vision = 12. * 1280 * 1280 + 2 * 1280;
    for (int32_t n = 1; n <= 32; n *= 2)
        ck_assert_double_eq_tol((double)time_on(context, graph, "vision-text/vision[3]", n),
                                expected_ns(1280, vision, 160, 257, n, 1, 0), 1);
    /* 160 samples on 64 GPUs: 32 groups of 2 that share heads. */
    ck_assert_double_eq_tol((double)time_on(context, graph, "vision-text/vision[3]", 64),
                            expected_ns(1280, vision, 160, 257, 32, 2, 0), 1);
    /* Losses: 20 kernels and next to no work; on more GPUs they would have to gather. */
    int64_t one = time_on(context, graph, "vision-text/contrast", 1);
    ck_assert_int_gt(one, 100000);
    ck_assert_int_lt(one, 120000);
    ck_assert_int_gt(time_on(context, graph, "vision-text/contrast", 2), one + 20000);

    graph = keep(workload(context, "qwen-val-3", 8));
    double encoder = 4. * 1664 * 1664 + 2. * 1664 * 8192 + 2 * 1664;
    ck_assert_double_eq_tol((double)time_on(context, graph, "vision-language/vision[0]", 8),
                            expected_ns(1664, encoder, 32, 1024, 8, 1, 1), 1);
    ck_assert_double_eq_tol((double)time_on(context, graph, "vision-language/vision[0]", 64),
                            expected_ns(1664, encoder, 32, 1024, 32, 2, 1), 1);
    ck_assert_int_eq(time_on(context, graph, "vision-language/language[0]", 1), 0); /* too large for one */
}
END_TEST

/* Sharded weights that take longer to gather than to use: 3 x 2 bytes a parameter over NVLink. */
START_TEST_IN_CONTEXT(gathering_weights_is_hidden_as_far_as_it_goes)
{
    hbp_machine *machine = NULL;
    hbp_graph *graph = NULL;
    A800(context, 8, machine);
    OK(context, hbp_machine_set_field(context, machine, "nvlink_bytes_per_s", 1e9, "test"));
    MAKES(context, graph, hbp_graph_create_workload(context, "qwen-val-3", machine, &graph));
    double bytes = 2 * (4. * 4096 * 4096 + 3. * 4096 * 11008 + 2 * 4096);
    ck_assert_double_eq_tol((double)time_on(context, graph, "audio-language/language[0]", 32),
                            3 * (20000 + bytes * 7 / 8 / 1), 2);
    hbp_machine_free(machine);
}
END_TEST

static void check_curves(hbp_context *context, const char *name, const hbp_machine *machine, int32_t most)
{
    hbp_graph *graph = NULL;
    OK(context, hbp_graph_create_workload(context, name, machine, &graph));
    OK(context, hbp_graph_validate(context, graph));
    hbp_graph_view view = graph_view(graph);
    for (int64_t k = 0; k < view.profiles; k++) {
        int64_t first = view.profile_offsets[k], points = view.profile_offsets[k + 1] - first;
        const int32_t *gpus = view.point_gpus + first;
        const int64_t *ns = view.point_ns + first;
        ck_assert_int_ge(points, 1);
        ck_assert_int_le(gpus[points - 1], most);
        for (int64_t at = 1; at < points; at++)
            ck_assert_int_ge(gpus[at] * ns[at], gpus[at - 1] * ns[at - 1]);
    }
    hbp_graph_free(graph);
}

/* On every machine GPU time rises with GPUs, and all operators can be planned. */
START_TEST_IN_CONTEXT(curves_are_plausible_on_all_machines)
{
    for (int64_t i = 0; hbp_preset_get_name("machine", i); i++)
        for (int32_t nodes = 1; nodes <= 144; nodes = nodes == 128 ? 144 : 2 * nodes) {
            hbp_machine *machine = NULL;
            hbp_machine_fields f = {.struct_size = sizeof f};
            OK(context, make_nodes(context, hbp_preset_get_name("machine", i), nodes, &machine));
            OK(context, hbp_machine_get_fields(context, machine, &f));
            int32_t gpus = nodes * f.gpus_per_node;
            for (int64_t w = 0; gpus % f.domain_gpus == 0 && hbp_preset_get_name("workload", w); w++)
                check_curves(context, hbp_preset_get_name("workload", w), machine, gpus);
            hbp_machine_free(machine);
        }
}
END_TEST

/* 24 GPUs are no power of two: the last point is all of them, where batch and heads allow. */
START_TEST_IN_CONTEXT(all_gpus_have_a_point)
{
    hbp_graph *graph = keep(workload(context, "ofasys-4", 3));
    ck_assert_int_gt(time_on(context, graph, "captioning/image[0]", 16), 0);
    ck_assert_int_gt(time_on(context, graph, "captioning/image[0]", 24), 0);
    ck_assert_int_eq(time_on(context, graph, "captioning/image[0]", 32), 0);
    graph = keep(workload(context, "clip-4", 3));
    ck_assert_int_eq(time_on(context, graph, "vision-text/vision[0]", 24), 0); /* 3 divides nothing there */
    ck_assert_int_gt(time_on(context, graph, "vision-text/vision[0]", 16), 0);
}
END_TEST

START_TEST_IN_CONTEXT(the_same_machine_gives_the_same_graph)
{
    for (int64_t w = 0; hbp_preset_get_name("workload", w); w++) {
        hbp_graph *a = workload(context, hbp_preset_get_name("workload", w), 8);
        hbp_graph *b = workload(context, hbp_preset_get_name("workload", w), 8);
        ck_assert_uint_eq(hbp__graph_digest(a), hbp__graph_digest(b));
        hbp_graph_free(a);
        hbp_graph_free(b);
    }
    /* Whatever compiled it. */
    hbp_graph *graph = keep(workload(context, "clip-10", 8));
    ck_assert_int_eq(time_on(context, graph, "vision-text/vision[0]", 1), 36680811);
    ck_assert_int_eq(time_on(context, graph, "vision-text/vision[0]", 64), 1501465);
    ck_assert_int_eq(time_on(context, graph, "vision-text/text[0]", 8), 1552956);
}
END_TEST

START_TEST_IN_CONTEXT(wrong_arguments_are_named)
{
    hbp_machine *machine = NULL;
    A800(context, 1, machine);
    hbp_graph *graph = (hbp_graph *)context;
    FAILS(context, HBP_E_INVALID, "no workload preset 'clip-5'; the nearest is 'clip-4'",
          hbp_graph_create_workload(context, "clip-5", machine, &graph));
    ck_assert_ptr_null(graph);
    FAILS(context, HBP_E_INVALID, "name is NULL", hbp_graph_create_workload(context, NULL, machine, &graph));
    FAILS(context, HBP_E_INVALID, "machine is NULL",
          hbp_graph_create_workload(context, "clip-4", NULL, &graph));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_graph_create_workload(context, "clip-4", machine, NULL));
    ck_assert_int_eq(hbp_graph_create_workload(NULL, "clip-4", machine, &graph), HBP_E_INVALID);
    OK(context, hbp_machine_set_field(context, machine, "nvlink_bytes_per_s", 0, NULL));
    FAILS(context, HBP_E_INVALID, "nvlink_bytes_per_s of machine a800-80 is 0 or unknown; set it",
          hbp_graph_create_workload(context, "clip-4", machine, &graph));
    ck_assert_ptr_null(graph);
    hbp_machine_free(machine);
}
END_TEST

static hbp_status create_once(hbp_context *context, void *user)
{
    hbp_graph *graph = NULL;
    hbp_status status = hbp_graph_create_workload(context, "ofasys-4", user, &graph);
    ck_assert_int_eq(status == HBP_OK, graph != NULL);
    hbp_graph_free(graph);
    return status;
}

START_TEST_IN_CONTEXT(failed_allocations_leave_nothing)
{
    hbp_machine *machine = NULL;
    A800(context, 1, machine);
    failing_sweep(create_once, machine);
    hbp_machine_free(machine);
}
END_TEST

TEST_MAIN("workloads", graphs_have_all_layers_of_all_tasks, tasks_share_weights, fields_by_hand,
          times_by_hand, gathering_weights_is_hidden_as_far_as_it_goes, curves_are_plausible_on_all_machines,
          all_gpus_have_a_point, the_same_machine_gives_the_same_graph, wrong_arguments_are_named,
          failed_allocations_leave_nothing)
