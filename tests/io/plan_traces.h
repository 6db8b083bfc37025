/* What a plan's trace must show of its predicted times, by ranks: another way to the clock of the library. */
#ifndef HBP_TESTS_IO_PLAN_TRACES_H
#define HBP_TESTS_IO_PLAN_TRACES_H

#include "traces.h"

#include "data/plan/plan.h"

#define TRACED_RANKS 64

/* The walk along the slices of the ranks and of the steps. */
typedef struct traced {
    const hbp_plan *plan;
    const hbp_cost *cost;             /* NULL: no parts */
    json_t *events[TRACED_RANKS + 1]; /* lists of slices; the last one the steps' */
    size_t at[TRACED_RANKS + 1];      /* the next of each */
    int64_t covered[TRACED_RANKS];    /* ns */
    int64_t part_ns[4];               /* sums over ranks of `part_names` */
    int64_t waiting_ns;
} traced;

static const char *const part_names[4] = {"computation", "vision encoder", "all-to-all", "ZeRO and overhead"};

static inline json_t *traced_next(traced *t, int64_t row, const char *cat)
{
    json_t *event = json_array_get(t->events[row], t->at[row]++);
    ck_assert_ptr_nonnull(event);
    ck_assert_str_eq(text_of(event, "cat"), cat);
    return event;
}

/* The rank waits from where it is covered up to `until`, or there is no such slice. */
static inline void traced_wait(traced *t, int64_t rank, int64_t until, int64_t step, int64_t first,
                               int64_t last)
{
    char whom[64];
    if (t->covered[rank] == until)
        return;
    json_t *event = traced_next(t, rank, "wait");
    ck_assert_str_eq(text_of(event, "name"), "waiting");
    ck_assert_int_eq(ns_of(event, "ts"), t->covered[rank]);
    ck_assert_int_eq(ns_of(event, "dur"), until - t->covered[rank]);
    json_t *args = json_object_get(event, "args");
    snprintf(whom, sizeof whom, "ranks %d-%d", (int)first, (int)last);
    ck_assert_str_eq(text_of(args, "for"), whom);
    ck_assert_int_eq(number(args, "step"), t->plan->first_step + step);
    t->waiting_ns += until - t->covered[rank];
    t->covered[rank] = until;
}

/* "SP 8, 3 samples, 41,203 tokens" */
static inline void traced_name(const hbp_plan *plan, int64_t p, char *name, size_t bytes)
{
    const int64_t samples = plan->pack_offsets[p + 1] - plan->pack_offsets[p], tokens = plan->pack_tokens[p];
    char sp[32] = "", many[32];
    ck_assert(samples < 1000 && tokens < 1000000);
    if (plan->pack_sp[p] > 1)
        snprintf(sp, sizeof sp, "SP %d, ", (int)plan->pack_sp[p]);
    if (tokens < 1000)
        snprintf(many, sizeof many, "%d", (int)tokens);
    else
        snprintf(many, sizeof many, "%d,%03d", (int)(tokens / 1000), (int)(tokens % 1000));
    if (samples)
        snprintf(name, bytes, "%s%d sample%s, %s token%s", sp, (int)samples, samples == 1 ? "" : "s", many,
                 tokens == 1 ? "" : "s");
    else
        snprintf(name, bytes, "padding");
}

/* An event against the pack that it names, but its times. */
static inline void traced_pack(const hbp_plan *plan, json_t *event, int64_t step, int64_t micro_batch,
                               int64_t p)
{
    json_t *args = json_object_get(event, "args"), *ids = json_object_get(args, "sample_ids");
    char name[128];
    const int64_t first = plan->pack_offsets[p], samples = plan->pack_offsets[p + 1] - first;
    traced_name(plan, p, name, sizeof name);
    ck_assert_str_eq(text_of(event, "name"), name);
    ck_assert_str_eq(text_of(event, "cat"), samples ? "pack" : "padding");
    ck_assert_int_eq(number(args, "step"), plan->first_step + step);
    ck_assert_int_eq(number(args, "micro_batch"), micro_batch);
    ck_assert_int_eq(number(args, "pack"), p);
    ck_assert_int_eq(number(args, "samples"), samples);
    ck_assert_int_eq(number(args, "tokens"), plan->pack_tokens[p]);
    ck_assert_int_eq(number(args, "padded_tokens"), plan->pack_padded_tokens[p]);
    ck_assert_int_eq(number(args, "squares"), plan->pack_squares[p]);
    ck_assert_int_eq(number(args, "sp"), plan->pack_sp[p]);
    ck_assert_int_eq(number(args, "recompute"), plan->pack_recompute[p]);
    ck_assert_int_eq(number(args, "predicted_ns"), plan->pack_ns[p]);
    ck_assert_int_eq(json_object_get(args, "vision") != NULL, plan->pack_vision != NULL);
    ck_assert(!plan->pack_vision || number(args, "vision") == plan->pack_vision[p]);
    ck_assert_uint_eq(json_array_size(ids), (size_t)(samples < 8 ? samples : 8));
    for (size_t i = 0; i < json_array_size(ids); i++)
        ck_assert_int_eq(json_integer_value(json_array_get(ids, i)), plan->sample_ids[first + (int64_t)i]);
}

/* The parts below a pack fill it from its begin to its end, each at most once, in one order; without a cost
 * there are none. */
static inline void traced_parts(traced *t, int64_t rank, int64_t begin, int64_t end)
{
    int part = 0;
    while (t->cost && begin < end) {
        json_t *event = traced_next(t, rank, "part");
        while (part < 4 && strcmp(text_of(event, "name"), part_names[part]) != 0)
            part++;
        ck_assert_int_lt(part, 4);
        ck_assert_int_eq(ns_of(event, "ts"), begin);
        ck_assert_int_gt(ns_of(event, "dur"), 0);
        begin += ns_of(event, "dur");
        t->part_ns[part++] += ns_of(event, "dur");
    }
    ck_assert(!t->cost || begin == end);
}

/* When a rank is through with a micro-batch: once all packs are that meet its lockstep set. */
static inline int64_t traced_through(const hbp_plan *plan, int64_t m, const int64_t *pack_end, int64_t rank)
{
    const int64_t set = plan->lockstep_ranks ? plan->lockstep_ranks : plan->ranks, from = rank / set * set;
    int64_t end = 0;
    for (int64_t p = plan->micro_batch_offsets[m]; p < plan->micro_batch_offsets[m + 1]; p++)
        if (plan->pack_ranks[p] < from + set && plan->pack_ranks[p] + plan->pack_sp[p] > from &&
            pack_end[p] > end)
            end = pack_end[p];
    return end;
}

/* One step from `begin` on; returns its end. */
static inline int64_t traced_step(traced *t, int64_t step, int64_t begin)
{
    const hbp_plan *plan = t->plan;
    const int64_t set = plan->lockstep_ranks ? plan->lockstep_ranks : plan->ranks;
    int64_t *pack_end = calloc((size_t)plan->packs, sizeof *pack_end), through[TRACED_RANKS];
    int64_t first = plan->step_offsets[step], last = begin;
    ck_assert_ptr_nonnull(pack_end);
    for (int64_t rank = 0; rank < plan->ranks; rank++)
        through[rank] = begin;
    for (int64_t m = first; m < plan->step_offsets[step + 1]; m++) {
        for (int64_t p = plan->micro_batch_offsets[m]; p < plan->micro_batch_offsets[m + 1]; p++) {
            int64_t rank = plan->pack_ranks[p], end = rank + plan->pack_sp[p], start = begin;
            for (int64_t r = rank; r < end; r++)
                start = through[r] > start ? through[r] : start;
            pack_end[p] = start + plan->pack_ns[p];
            last = pack_end[p] > last ? pack_end[p] : last;
            for (int64_t r = rank; r < end; r++) {
                traced_wait(t, r, start, step, rank / set * set, ((end - 1) / set + 1) * set - 1);
                json_t *event =
                    traced_next(t, r, plan->pack_offsets[p] < plan->pack_offsets[p + 1] ? "pack" : "padding");
                traced_pack(plan, event, step, m - first, p);
                ck_assert_int_eq(ns_of(event, "ts"), start);
                ck_assert_int_eq(ns_of(event, "dur"), plan->pack_ns[p]);
                traced_parts(t, r, start, pack_end[p]);
                t->covered[r] = pack_end[p];
            }
        }
        for (int64_t rank = 0; rank < plan->ranks; rank++)
            through[rank] = traced_through(plan, m, pack_end, rank);
    }
    free(pack_end);
    int64_t end = begin + plan->step_ns[step] > last ? begin + plan->step_ns[step] : last;
    for (int64_t rank = 0; rank < plan->ranks; rank++) {
        traced_wait(t, rank, last, step, 0, plan->ranks - 1);
        if (end > last) {
            json_t *event = traced_next(t, rank, "step end");
            ck_assert_str_eq(text_of(event, "name"), "optimiser step");
            ck_assert_int_eq(ns_of(event, "ts"), last);
            ck_assert_int_eq(ns_of(event, "dur"), end - last);
            t->covered[rank] = end;
        }
    }
    json_t *whole = traced_next(t, TRACED_RANKS, "step");
    char name[32];
    snprintf(name, sizeof name, "step %d", (int)(plan->first_step + step));
    ck_assert_str_eq(text_of(whole, "name"), name);
    ck_assert_int_eq(ns_of(whole, "ts"), begin);
    ck_assert_int_eq(ns_of(whole, "dur"), end - begin);
    ck_assert_int_eq(number(json_object_get(whole, "args"), "tokens"), plan->step_tokens[step]);
    ck_assert_int_eq(number(json_object_get(whole, "args"), "samples"), plan->step_samples[step]);
    return end;
}

/* All that a trace of `kinds` kinds (1 or 2) shows of steps [first, first + count) as predicted, and no slice
 * more. `t` has the plan and the cost, and gets the sums. */
static inline void traced_check(traced *t, int64_t first, int64_t count, int kinds, json_t *root)
{
    const hbp_plan *plan = t->plan;
    json_t *event;
    size_t i;
    int64_t now = 0;
    for (int row = 0; row <= TRACED_RANKS; row++)
        t->events[row] = json_array();
    json_array_foreach(json_object_get(root, "traceEvents"), i, event)
    {
        int64_t tid = number(event, "tid") - 1;
        if (is_kind(event, "X") && tid < plan->ranks)
            json_array_append(t->events[tid], event);
        if (is_kind(event, "X") && tid == (int64_t)kinds * plan->ranks)
            json_array_append(t->events[TRACED_RANKS], event);
        if (tid < plan->ranks)
            ck_assert_int_eq(number(event, "pid"), tid / plan->domain_ranks * plan->domain_ranks + 1);
    }
    for (int64_t step = first; step < first + count; step++)
        now = traced_step(t, step, now);
    for (int row = 0; row <= TRACED_RANKS; row++) {
        ck_assert_uint_eq(t->at[row], json_array_size(t->events[row]));
        json_decref(t->events[row]);
    }
    json_t *said = json_object_get(root, "otherData");
    ck_assert_int_eq(strncmp(text_of(said, "parts"), "none: ", 6) != 0, t->cost != NULL);
    ck_assert_int_eq(number(said, "first_step"), plan->first_step + first);
    ck_assert_int_eq(number(said, "steps"), count);
    ck_assert_int_eq(number(said, "plan_steps"), plan->steps);
}

#endif
