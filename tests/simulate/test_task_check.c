/* hbp_task_schedule_validate (lib/simulate/tasks/task_check.c, task_check_tables.c, task_check_slices.c,
 * task_check_sums.c). */
#include <math.h>

#include "data/graph/graph_check.h"
#include "failing.h"
#include "simulate/tasks/task_bound.h"
#include "simulate/tasks/task_check.h"
#include "task_schedules.h"

static hbp_status validate(const drawn *d)
{
    return hbp_task_schedule_validate(d->context, d->schedule, d->graph, d->machine);
}

static void add_bounds(drawn *d)
{
    hbp__task_bounds bounds;
    OK(d->context, hbp__task_bound(d->context, &d->meta, &d->scaling, &bounds, NULL));
    d->summary.critical_path_ns = bounds.critical_path_ns;
    d->summary.area_ns = bounds.area_ns;
    d->summary.relaxed_ns = bounds.relaxed_ns;
    d->summary.bound_ns = bounds.bound_ns;
}

static void rebuild(drawn *d)
{
    hbp_task_schedule_free(d->schedule);
    d->schedule = NULL;
    drawn_build(d);
}

START_TEST(sound_schedules_pass)
{
    hbp__rng rng = hbp__rng_make(31, 0, 0);
    for (int i = 0; i < 1000; i++) {
        drawn d;
        drawn_random(&d, &rng);
        OK(d.context, validate(&d));
        add_bounds(&d);
        d.summary.limit_bytes = d.schedule->summary.peak_bytes;
        rebuild(&d);
        OK(d.context, validate(&d));
        drawn_close(&d);
    }
}
END_TEST

/* --- slices against an oracle that looks at every pair -------------------------------------------------- */

static int share_a_rank(const hbp_task_schedule *s, int64_t a, int64_t b)
{
    for (int32_t i = 0; i < s->slice_gpus[a]; i++)
        for (int32_t j = 0; j < s->slice_gpus[b]; j++)
            if (drawn_ranks(s, a)[i] == drawn_ranks(s, b)[j])
                return 1;
    return 0;
}

static int64_t wave_of(const hbp_task_schedule *s, int64_t slice)
{
    int64_t wave = 0;
    while (s->wave_offsets[wave + 1] <= slice)
        wave++;
    return wave;
}

static int needs(const drawn *d, int32_t m, int32_t from)
{
    for (int64_t e = 0; e < d->meta.edge_count; e++)
        if (d->meta.edges[e].from == from && d->meta.edges[e].to == m)
            return 1;
    return 0;
}

/* Slice b behind a, if it must be. */
static int in_order(const hbp_task_schedule *s, int64_t a, int64_t b)
{
    return wave_of(s, a) < wave_of(s, b) && s->slice_ends[a] <= s->slice_starts[b];
}

static int is_sound(const drawn *d)
{
    const hbp_task_schedule *s = d->schedule;
    int32_t done[64] = {0};
    ck_assert_int_le(s->meta_ops, 64);
    for (int64_t w = 0; w < s->waves; w++)
        if (s->wave_offsets[w] == s->wave_offsets[w + 1])
            return 0;
    for (int64_t i = 0; i < s->slices; i++) {
        int32_t m = s->slice_meta_ops[i], n = s->slice_gpus[i];
        const hbp__curve *curve = hbp__meta_curve(&d->scaling, m);
        int64_t least = INT64_MAX;
        for (int32_t k = 0; k < curve->sizes; k++)
            if (curve->size[k] <= n && curve->time_ns[k] < least)
                least = curve->time_ns[k];
        const hbp__operator *o = hbp__meta_operator(d->graph, &d->meta, m);
        const hbp__profile profile = hbp__graph_profile(d->graph, o->profile);
        if (!hbp__operator_suits(o, &profile, n) || s->slice_starts[i] < 0 ||
            s->slice_ends[i] - s->slice_starts[i] != s->slice_operators[i] * least)
            return 0;
        if (s->slice_firsts[i] != done[m])
            return 0;
        done[m] += s->slice_operators[i];
    }
    for (int32_t m = 0; m < s->meta_ops; m++)
        if (done[m] != d->meta.meta_op[m].count)
            return 0;
    for (int64_t a = 0; a < s->slices; a++)
        for (int64_t b = 0; b < s->slices; b++) {
            int32_t ma = s->slice_meta_ops[a], mb = s->slice_meta_ops[b];
            if (a < b && (ma == mb || share_a_rank(s, a, b)) && !in_order(s, a, b))
                return 0;
            if (needs(d, mb, ma) && !in_order(s, a, b))
                return 0;
        }
    return 1;
}

/* Moves slice s with its ranks to where its new wave is. */
static void change_wave(drawn *d, int64_t s, int32_t wave)
{
    hbp__task_slice slice = d->slices.slice[s];
    int32_t own[64], gpus = slice.gpus;
    int64_t at = 0, all = drawn_rank_count(d), to = 0, before = 0;
    for (int64_t i = 0; i < s; i++)
        at += d->slices.slice[i].gpus;
    memcpy(own, &d->ranks[at], (size_t)gpus * sizeof *own);
    memmove(&d->ranks[at], &d->ranks[at + gpus], (size_t)(all - at - gpus) * sizeof *own);
    memmove(&d->slices.slice[s], &d->slices.slice[s + 1], (size_t)(d->slices.count - s - 1) * sizeof slice);
    slice.wave = wave;
    for (; to < d->slices.count - 1 && d->slices.slice[to].wave <= wave; to++)
        before += d->slices.slice[to].gpus;
    memmove(&d->slices.slice[to + 1], &d->slices.slice[to],
            (size_t)(d->slices.count - 1 - to) * sizeof slice);
    d->slices.slice[to] = slice;
    memmove(&d->ranks[before + gpus], &d->ranks[before], (size_t)(all - before - gpus) * sizeof *own);
    memcpy(&d->ranks[before], own, (size_t)gpus * sizeof *own);
}

/* Puts slice s on consecutive ranks from any. */
static void change_ranks(drawn *d, hbp__rng *rng, int64_t s)
{
    int64_t at = 0;
    int32_t gpus = d->slices.slice[s].gpus;
    int32_t first = (int32_t)hbp__rng_below(rng, (uint64_t)(d->summary.gpus - gpus + 1));
    for (int64_t i = 0; i < s; i++)
        at += d->slices.slice[i].gpus;
    for (int32_t i = 0; i < gpus; i++)
        d->ranks[at + i] = first + i;
}

static void change_slice(drawn *d, hbp__rng *rng)
{
    int64_t s = hbp__rng_below(rng, (uint64_t)d->slices.count);
    hbp__task_slice *slice = &d->slices.slice[s];
    int64_t length = slice->end_ns - slice->start_ns;
    switch (hbp__rng_below(rng, 6)) {
    case 0: /* later or earlier */
        slice->start_ns += random_between(rng, -length, length);
        slice->end_ns = slice->start_ns + length;
        break;
    case 1:
        slice->end_ns += random_between(rng, -1, 1);
        break;
    case 2:
        change_wave(d, s, (int32_t)random_between(rng, 0, d->slices.waves));
        break;
    case 3:
        change_ranks(d, rng, s);
        break;
    case 4: /* everything behind some time, later */
        for (int64_t i = 0, from = slice->start_ns; i < d->slices.count; i++)
            if (d->slices.slice[i].start_ns >= from) {
                d->slices.slice[i].start_ns += length;
                d->slices.slice[i].end_ns += length;
            }
        break;
    default:
        slice->first += (int32_t)random_between(rng, -1, 1);
        slice->count += (int32_t)random_between(rng, -1, 1);
        if (slice->first < 0 || slice->count < 1 ||
            slice->first + slice->count > d->meta.meta_op[slice->meta_op].count) {
            slice->first = 0;
            slice->count = 1;
        }
        break;
    }
}

START_TEST(changed_slices_match_the_oracle)
{
    hbp__rng rng = hbp__rng_make(32, 0, 0);
    int64_t sound = 0, unsound = 0;
    for (int i = 0; i < 3000; i++) {
        drawn d;
        drawn_random(&d, &rng);
        int64_t changes = random_between(&rng, 1, 2);
        while (changes--)
            change_slice(&d, &rng);
        rebuild(&d);
        hbp_status status = validate(&d);
        int right = is_sound(&d);
        ck_assert_msg(status == (right ? HBP_OK : HBP_E_INVALID), "schedule %d: %s, sound: %d: %s", i,
                      hbp_status_name(status), right, hbp_context_message(d.context));
        sound += right;
        unsound += !right;
        drawn_close(&d);
    }
    ck_assert_int_gt(sound, 200);
    ck_assert_int_gt(unsound, 1000);
}
END_TEST

/* --- columns that a file may hold ------------------------------------------------------------------------
 */

static void reseal(hbp_task_schedule *s)
{
    s->digest = hbp__task_schedule_digest(s);
}

/* Any one value of any column that is another than what was built is found. Times of levels are not looked
 * at, and where waves are cut is the oracle's matter: a slice may suit the wave beside its own. */
START_TEST(no_change_goes_unseen)
{
    hbp__rng rng = hbp__rng_make(33, 0, 0);
    for (int i = 0; i < 40; i++) {
        drawn d;
        drawn_random(&d, &rng);
        hbp_task_schedule *s = d.schedule;
#define CHANGE(name, type, table, extra)                                                                     \
    for (int64_t k = 0; k < s->table + (extra); k++) {                                                       \
        if ((void *)s->name == (void *)s->level_ns || (void *)s->name == (void *)s->wave_offsets)            \
            break;                                                                                           \
        type was = s->name[k];                                                                               \
        static const type other[] = {-1, 1, 2, INT32_MAX, INT32_MIN};                                        \
        int64_t pick = random_between(&rng, 0, 4);                                                           \
        s->name[k] = pick > 2 ? other[pick] : was + other[pick];                                             \
        reseal(s);                                                                                           \
        hbp_status status = validate(&d);                                                                    \
        ck_assert_msg(status == HBP_E_INVALID, #name " %d: %d instead of %d: %s", (int)k, (int)s->name[k],   \
                      (int)was, hbp_status_name(status));                                                    \
        s->name[k] = was;                                                                                    \
    }
        HBP__TASK_COLUMNS(CHANGE)
#undef CHANGE
        reseal(s);
        OK(d.context, validate(&d));
        drawn_close(&d);
    }
}
END_TEST

/* Many wrong values at once: refused, and nothing is touched that is not there (sanitizers watch). */
START_TEST(garbage_is_refused)
{
    hbp__rng rng = hbp__rng_make(34, 0, 0);
    int64_t refused = 0;
    for (int i = 0; i < 1500; i++) {
        drawn d;
        drawn_random(&d, &rng);
        hbp_task_schedule *s = d.schedule;
        int64_t rate = random_between(&rng, 1, 30);
#define SPOIL(name, type, table, extra)                                                                      \
    for (int64_t k = 0; k < s->table + (extra); k++)                                                         \
        if (hbp__rng_below(&rng, (uint64_t)rate * 10) == 0)                                                  \
            s->name[k] = random_between(&rng, 0, 1) ? (type)hbp__rng_next(&rng)                              \
                                                    : (type)(s->name[k] + random_between(&rng, -2, 2));
        HBP__TASK_COLUMNS(SPOIL)
#undef SPOIL
        reseal(s);
        hbp_status status = validate(&d);
        ck_assert(status == HBP_E_INVALID || status == HBP_OK);
        ck_assert(status == HBP_E_INVALID || is_sound(&d));
        refused += status != HBP_OK;
        drawn_close(&d);
    }
    ck_assert_int_gt(refused, 1000);
}
END_TEST

/* --- every promise, broken --------------------------------------------------------------------------------
 * Task "one": a (4 operators) and b (2) feed h (1); task "two": c (2), whose weights are those of b. On 8
 * GPUs in domains of 4: 4,000 ns on one GPU, 2,000 on 2, 1,000 on 4.
 *
 *   wave 0: slice 0: a[0..1] on 0-3, 0..2,000; slice 1: b on 4-5, 0..4,000; slice 2: c[0] on 6, 0..4,000
 *   wave 1: slice 3: a[2..3] on 0-1, 2,000..6,000; slice 4: c[1] on 4-7, 4,000..5,000
 *   wave 2: slice 5: h on 0-3, 6,000..7,000 */
static void good(drawn *d)
{
    hbp_context *context = test_context();
    hbp_graph *graph = new_graph(context);
    hbp_operator o = {.struct_size = sizeof o};
    o.profile = add_falling_profile(context, graph, 4000, 0, 4);
    o.degrees = HBP_DEGREES_PROFILED;
    o.state_bytes = 1000;
    o.sharded_bytes = 400;
    o.activation_bytes = 200;
    o.output_bytes = 80;
    int32_t a = add_chain(context, graph, &o, "a", "a", "one", 4);
    o.parameters = "shared";
    int32_t b = add_chain(context, graph, &o, "b", "b", "one", 2);
    o.parameters = NULL;
    int32_t h = add_chain(context, graph, &o, "h", "h", "one", 1);
    o.parameters = "shared";
    add_chain(context, graph, &o, "c", "c", "two", 2);
    OK(context, hbp_graph_add_edge(context, graph, a + 3, h, -1));
    OK(context, hbp_graph_add_edge(context, graph, b + 1, h, -1));
    drawn_open(d, context, graph, 2, 4, 4);
    drawn_add(d, 0, 0, 2, 0, 4, 0, 0);
    drawn_add(d, 1, 0, 2, 4, 2, 0, 0);
    drawn_add(d, 2, 0, 1, 6, 1, 0, 0);
    drawn_add(d, 0, 2, 2, 0, 2, 1, 2000);
    drawn_add(d, 2, 1, 1, 4, 4, 1, 4000);
    drawn_add(d, 3, 0, 1, 0, 4, 2, 6000);
    add_bounds(d);
    d->summary.limit_bytes = 7000;
    drawn_build(d);
    OK(d->context, validate(d));
}

/* Changes columns as `change` does, `s` being the schedule, and expects `text` of the check. */
#define BROKEN(text, change)                                                                                 \
    do {                                                                                                     \
        drawn d;                                                                                             \
        good(&d);                                                                                            \
        hbp_task_schedule *s = d.schedule;                                                                   \
        change;                                                                                              \
        reseal(s);                                                                                           \
        FAILS(d.context, HBP_E_INVALID, text, validate(&d));                                                 \
        drawn_close(&d);                                                                                     \
    } while (0)

/* Changes slices, `slice` being their list, and builds of them. */
#define BUILT(text, change)                                                                                  \
    do {                                                                                                     \
        drawn d;                                                                                             \
        good(&d);                                                                                            \
        hbp__task_slice *slice = d.slices.slice;                                                             \
        change;                                                                                              \
        rebuild(&d);                                                                                         \
        FAILS(d.context, HBP_E_INVALID, text, validate(&d));                                                 \
        drawn_close(&d);                                                                                     \
    } while (0)

START_TEST(origin)
{
    char digest[64];
    drawn d;
    good(&d);
    hbp_graph *other = page_graph(d.context);
    snprintf(digest, sizeof digest, "%016llx; this one has %016llx",
             (unsigned long long)hbp__graph_digest(d.graph), (unsigned long long)hbp__graph_digest(other));
    FAILS(d.context, HBP_E_INVALID, "the schedule was made for a graph with digest ",
          hbp_task_schedule_validate(d.context, d.schedule, other, d.machine));
    ck_assert_ptr_nonnull(strstr(hbp_context_message(d.context), digest));
    hbp_graph_free(other);
    hbp_machine *larger = drawn_machine(d.context, 3, 4, 4), *wider = drawn_machine(d.context, 2, 4, 2);
    FAILS(d.context, HBP_E_INVALID,
          "the schedule is for 8 GPUs in domains of 4, the machine has 12 in domains of 4",
          hbp_task_schedule_validate(d.context, d.schedule, d.graph, larger));
    FAILS(d.context, HBP_E_INVALID,
          "the schedule is for 8 GPUs in domains of 4, the machine has 8 in domains of 2",
          hbp_task_schedule_validate(d.context, d.schedule, d.graph, wider));
    OK(d.context, hbp_machine_set_field(d.context, larger, "nodes", 0, "test"));
    FAILS(d.context, HBP_E_INVALID, "nodes of machine given is 0",
          hbp_task_schedule_validate(d.context, d.schedule, d.graph, larger));
    FAILS(d.context, HBP_E_INVALID, "schedule is NULL",
          hbp_task_schedule_validate(d.context, NULL, d.graph, d.machine));
    FAILS(d.context, HBP_E_INVALID, "graph is NULL",
          hbp_task_schedule_validate(d.context, d.schedule, NULL, d.machine));
    FAILS(d.context, HBP_E_INVALID, "machine is NULL",
          hbp_task_schedule_validate(d.context, d.schedule, d.graph, NULL));
    ck_assert_int_eq(hbp_task_schedule_validate(NULL, d.schedule, d.graph, d.machine), HBP_E_INVALID);
    hbp_machine_free(larger);
    hbp_machine_free(wider);
    drawn_close(&d);
}
END_TEST

/* A schedule whose tables are of other sizes than the graph's, though they say that it is this one. */
START_TEST(sizes)
{
    drawn d;
    good(&d);
    hbp_context *context = test_context();
    hbp_graph *graph = page_graph(context);
    drawn other;
    drawn_open(&other, context, graph, 2, 4, 4);
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    drawn_fill(&other, &rng);
    drawn_build(&other);
    other.schedule->graph_digest = d.schedule->graph_digest;
    FAILS(d.context, HBP_E_INVALID, "the schedule has 17 operators; the graph has 9",
          hbp_task_schedule_validate(d.context, other.schedule, d.graph, d.machine));
    drawn_close(&other);
    drawn_close(&d);
}
END_TEST

START_TEST(meta_ops)
{
    BROKEN("the summary says 4 waves; the table has 3", s->summary.waves++);
    BROKEN("MetaOp 0: operator 1 of its chain is number 2 of the graph; it must be 1",
           (s->operators[1] = 2, s->operators[2] = 1));
    BROKEN("MetaOp 0: the number of operators is 3; it must be 4",
           (s->meta_op_offsets[1] = 3, s->slice_operators[3] = 1));
    BROKEN("MetaOp 3: the level is 0; it must be 1", s->meta_op_levels[3] = 0);
    BROKEN("MetaOp 2: the task is 0; it must be 1", s->meta_op_tasks[2] = 0);
    BROKEN("level 1 of level_ns: the time is -1", s->level_ns[1] = -1);
    BROKEN("MetaOp 2 is named 'x[0]' in the schedule and 'c[0]' in the graph", s->meta_op_names[2][0] = 'x');
    BROKEN("task 1 is named 'Two' in the schedule and 'two' in the graph", s->task_names[1][0] = 'T');
    BROKEN("set of weights 0 is named 'b[0]' in the schedule and 'a[0]' in the graph",
           s->parameters_names[0][0] = 'b');
    BROKEN("task 0 is named '' in the schedule and 'one' in the graph",
           (hbp__delete(&s->memory, s->task_names[0]), s->task_names[0] = NULL));
}
END_TEST

START_TEST(groups)
{
    BROKEN("the group is 9; it must be in 0..", s->slice_groups[1] = 9);
    BROKEN("group 0: rank 1 comes after rank 2", (s->group_ranks[1] = 2, s->group_ranks[2] = 1));
    /* Groups 0 to 4: 0-3, 4-5, 6, 0-1, 4-7; those of weights are among them, 4-6 and 4-7 too. */
    BROKEN("groups 1 and 3 have the same ranks", (s->group_ranks[7] = 4, s->group_ranks[8] = 5));
    BROKEN("group 2 is used by no slice and no weights", (s->slice_groups[2] = 3, s->slice_gpus[2] = 2));
}
END_TEST

START_TEST(slices)
{
    BROKEN("slice 5: 4 GPUs; group 3 has 2 ranks", s->slice_groups[5] = 3);
    BROKEN("slice 5: 0 ns to 1 ns", (s->slice_starts[5] = 0, s->slice_ends[5] = 1));
    BUILT("slice 5: MetaOp 3 ('h') may not run on 3 of 8 GPUs", slice[5].gpus = 3);
    BUILT("slice 1: 0 ns to 3999 ns for 2 operators of MetaOp 1; one takes 2000 ns on 2 GPUs",
          slice[1].end_ns--);
    BUILT("is -1; it must be in 0..7000", slice[1].start_ns--);
    BUILT("operator 1 of MetaOp 2 is in no slice",
          (d.slices.count = 5, slice[4] = slice[5], slice[4].wave = 2, slice[4].gpus = 4));
    BUILT("slice 0 starts with operator 1 of MetaOp 2; operator 0 has not run",
          (slice[2].meta_op = 0, slice[2].first = 0, slice[0].meta_op = 2, slice[0].count = 1,
           slice[0].end_ns = 1000, slice[0].first = 1, slice[4].meta_op = 2));
}
END_TEST

START_TEST(waves)
{
    BUILT("slice 3: operator 1 of MetaOp 0 ran before, in slice 0",
          (slice[3].first = 1, slice[3].count = 3, slice[3].end_ns += 2000, slice[5].start_ns += 2000,
           slice[5].end_ns += 2000));
    BUILT("slice 3 starts with operator 3 of MetaOp 0; operator 2 has not run",
          (slice[3].first = 3, slice[3].count = 1, slice[3].end_ns -= 2000));
    BUILT("wave 0 runs MetaOp 0 twice, in slices 0 and 3", slice[3].wave = 0);
    BUILT("wave 1 runs slices 3 and 4 on rank 1", (slice[4].gpus = 4, d.ranks[9] = 1));
    BUILT("slice 5 of MetaOp 3 needs MetaOp 0, which has not run in the waves before wave 1",
          slice[5].wave = 1);
    BROKEN("wave 0: offsets 0 to 0", s->wave_offsets[1] = 0);
}
END_TEST

START_TEST(times)
{
    BUILT("slice 3 of MetaOp 0 starts at 1999 ns; slice 0 before it ends at 2000 ns",
          (slice[3].start_ns--, slice[3].end_ns--));
    BUILT("slice 5 of MetaOp 3 starts at 5999 ns; MetaOp 0, which it needs, ends at 6000 ns",
          (slice[5].start_ns--, slice[5].end_ns--));
    BUILT("slice 4 of MetaOp 2 starts at 3999 ns; slice 2 before it ends at 4000 ns",
          (slice[4].start_ns--, slice[4].end_ns--));
    /* h needs nothing of c, but shares ranks 4-7 with it. */
    BUILT("rank 4: slice 5 starts at 6000 ns; slice 4 of an earlier wave ends at 7000 ns",
          (slice[4].start_ns = 6000, slice[4].end_ns = 7000, d.ranks[13] = 4, d.ranks[14] = 5,
           d.ranks[15] = 6, d.ranks[16] = 7));
    BROKEN("rank 6 is busy for 4999 ns; its slices take 5000 ns", s->rank_busy_ns[6]--);
}
END_TEST

START_TEST(sums)
{
    BROKEN("bytes in the schedule; its slices need ", s->rank_bytes[4]++);
    BROKEN("the limit is 100", s->summary.limit_bytes = 100);
    BROKEN("limit_bytes is -1", s->summary.limit_bytes = -1);
    BROKEN("peak_bytes is 1; the fullest rank has ", s->summary.peak_bytes = 1);
    BROKEN("weights 'a[0]': rank 0 runs them, and its group -1 lacks it", s->parameter_groups[0] = -1);
    BROKEN("weights 'a[2]': rank 2 does not run them, and its group 0 has it", s->parameter_groups[2] = 0);
    BROKEN("the summary's flow_bytes is ", s->summary.flow_bytes++);
    BROKEN("the summary's moved_bytes is ", s->summary.moved_bytes--);
    BROKEN("the summary's crossing_bytes is ", s->summary.crossing_bytes--);
    BROKEN("the summary's makespan_ns is 7001; it must be 7000", s->summary.makespan_ns++);
    BROKEN("the summary's critical_path_ns is ", s->summary.critical_path_ns++);
    BROKEN("the summary's area_ns is ", s->summary.area_ns++);
    BROKEN("the summary's relaxed_ns is -1", s->summary.relaxed_ns = -1);
    BROKEN("the summary's bound_ns is 7001; it must lie between ", s->summary.bound_ns = 7001);
    BROKEN("the summary's bound_ns is 10; it must lie between ", s->summary.bound_ns = 10);
    BROKEN("the summary's proven is 1; it must be 0", s->summary.proven = 1);
    BROKEN("the summary's gap is 9", s->summary.gap = 9);
    BROKEN("the summary's idle is -0.5", s->summary.idle = -.5);
    BROKEN("the summary's idle is nan", s->summary.idle = (double)NAN);
    BROKEN("the summary's kept_bytes and fetched_bytes are -1 and 0", s->summary.kept_bytes = -1);
    BROKEN("the summary's kept_bytes and fetched_bytes are 0 and -1", s->summary.fetched_bytes = -1);
    drawn d;
    good(&d);
    d.schedule->digest++;
    FAILS(d.context, HBP_E_INVALID, "its columns give", validate(&d));
    drawn_close(&d);
}
END_TEST

/* A size that is no faster than a smaller one is allowed, and takes that one's time. */
START_TEST(wider_than_useful)
{
    hbp_context *context = test_context();
    hbp_graph *graph = new_graph(context);
    static const int32_t gpus[] = {1, 2, 4};
    static const int64_t ns[] = {1000, 600, 700};
    hbp_operator o = {.struct_size = sizeof o};
    o.degrees = HBP_DEGREES_PROFILED;
    OK(context, hbp_graph_add_profile(context, graph, gpus, ns, 3, &o.profile));
    add_chain(context, graph, &o, "a", "a", "one", 1);
    drawn d;
    drawn_open(&d, context, graph, 1, 4, 4);
    drawn_add(&d, 0, 0, 1, 0, 2, 0, 0);
    d.slices.slice[0].gpus = 4;
    d.ranks = realloc(d.ranks, 4 * sizeof *d.ranks);
    for (int32_t r = 0; r < 4; r++)
        d.ranks[r] = r;
    drawn_build(&d);
    OK(context, validate(&d));
    d.slices.slice[0].end_ns = 700;
    rebuild(&d);
    FAILS(context, HBP_E_INVALID, "one takes 600 ns on 4 GPUs", validate(&d));
    drawn_close(&d);
}
END_TEST

static hbp_status validate_in(hbp_context *context, void *user)
{
    const drawn *d = user;
    return hbp_task_schedule_validate(context, d->schedule, d->graph, d->machine);
}

START_TEST(allocations_fail)
{
    drawn d;
    good(&d);
    failing_sweep(validate_in, &d);
    drawn_close(&d);
}
END_TEST

START_TEST(cancelled)
{
    enum { OPERATORS = 5000, GPUS = 64 };
    hbp_context *context = test_context();
    hbp_graph *graph = new_graph(context);
    static const int32_t gpus[] = {GPUS};
    static const int64_t ns[] = {10};
    hbp_operator o = {.struct_size = sizeof o};
    o.degrees = HBP_DEGREES_PROFILED;
    OK(context, hbp_graph_add_profile(context, graph, gpus, ns, 1, &o.profile));
    add_chain(context, graph, &o, "a", "a", "one", OPERATORS);
    drawn d;
    drawn_open(&d, context, graph, 1, GPUS, GPUS);
    for (int32_t i = 0; i < OPERATORS; i++)
        drawn_add(&d, 0, i, 1, 0, GPUS, i, 10 * i);
    drawn_build(&d);
    ck_assert_int_ge(cancel_sweep(validate_in, &d), 2);
    drawn_close(&d);
}
END_TEST

TEST_MAIN("task_check", sound_schedules_pass, changed_slices_match_the_oracle, no_change_goes_unseen,
          garbage_is_refused, origin, sizes, meta_ops, groups, slices, waves, times, sums, wider_than_useful,
          allocations_fail, cancelled)
