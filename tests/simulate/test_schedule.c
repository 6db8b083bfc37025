/* The order of operations against tables written by hand and Megatron-LM's rules taken literally. */
#include "simulate/pipeline/pipeline.h"

#include "failing.h"
#include "keep.h"
#include "simulate/pipelines.h"

/* A stage's operations as text: F or B, chunk, micro-batch. */
static void spell(const hbp__schedule *schedule, int32_t stage, char *text)
{
    int64_t each = 2 * (int64_t)schedule->micro_batches * (schedule->chunks / schedule->stages);
    *text = 0;
    for (int64_t i = 0; i < each; i++) {
        const hbp__operation *o = &schedule->slot[stage * each + i];
        ck_assert_int_eq(o->stage, stage);
        text += sprintf(text, "%s%c%d%d", i ? " " : "", o->direction == HBP_FORWARD ? 'F' : 'B',
                        (int)o->chunk, (int)o->place);
    }
}

static void expect(int32_t stages, int32_t virtual_stages, int32_t micro_batches, const char *const *rows)
{
    hbp_context *context = test_context();
    hbp__schedule schedule;
    OK(context, hbp__schedule_open(context, stages, virtual_stages, micro_batches, &schedule));
    for (int32_t s = 0; s < stages; s++) {
        char text[1024];
        spell(&schedule, s, text);
        ck_assert_str_eq(text, rows[s]);
    }
    hbp__schedule_close(&schedule);
    hbp_context_free(context);
}

START_TEST(plain_orders_by_hand)
{
    expect(1, 1, 3, (const char *[]){"F00 B00 F01 B01 F02 B02"});
    expect(2, 1, 2, (const char *[]){"F00 F01 B00 B01", "F10 B10 F11 B11"});
    expect(3, 0, 4,
           (const char *[]){"F00 F01 F02 B00 F03 B01 B02 B03", "F10 F11 B10 F12 B11 F13 B12 B13",
                            "F20 B20 F21 B21 F22 B22 F23 B23"});
    /* Fewer micro-batches than stages: all forwards first where the warm-up would take more. */
    expect(4, 1, 2,
           (const char *[]){"F00 F01 B00 B01", "F10 F11 B10 B11", "F20 F21 B20 B21", "F30 B30 F31 B31"});
}
END_TEST

START_TEST(interleaved_orders_by_hand)
{
    expect(2, 2, 4,
           (const char *[]){
               "F00 F01 F20 F21 F02 B20 F03 B21 F22 B00 F23 B01 B22 B23 B02 B03",
               "F10 F11 F30 B30 F31 B31 F12 B10 F13 B11 F32 B32 F33 B33 B12 B13",
           });
    /* The warm-up of the first stage is all there is. */
    expect(2, 2, 2, (const char *[]){"F00 F01 F20 F21 B20 B21 B00 B01", "F10 F11 F30 B30 F31 B31 B10 B11"});
    expect(1, 3, 2, (const char *[]){"F00 F10 F20 B20 F01 B10 F11 B00 F21 B21 B11 B01"});
}
END_TEST

/* Warm-up, turns and the rest from lists made the long way round: for each group of S micro-batches, each
 * chunk, each of the group. */
static int64_t literal_order(int32_t stages, int32_t virtual_stages, int32_t micro_batches, int32_t stage,
                             hbp__operation *out)
{
    int64_t all = (int64_t)micro_batches * virtual_stages, n = 0;
    hbp__operation *list[2];
    for (int32_t d = HBP_FORWARD; d <= HBP_BACKWARD; d++) {
        list[d] = malloc((size_t)all * sizeof *list[d]);
        int64_t i = 0;
        int32_t group = virtual_stages > 1 ? stages : 1;
        for (int32_t first = 0; first < micro_batches; first += group)
            for (int32_t v = 0; v < virtual_stages; v++)
                for (int32_t m = first; m < first + group; m++) {
                    int32_t chunk = (d == HBP_FORWARD ? v : virtual_stages - 1 - v) * stages + stage;
                    list[d][i++] = (hbp__operation){stage, chunk, m, d};
                }
        ck_assert_int_eq(i, all);
    }
    int64_t warm_up = stages - stage - 1;
    if (virtual_stages > 1)
        warm_up = (stages - stage - 1) * 2 + (virtual_stages - 1) * stages;
    if (warm_up > all)
        warm_up = all;
    for (int64_t i = 0; i < warm_up; i++)
        out[n++] = list[HBP_FORWARD][i];
    for (int64_t i = 0; i < all - warm_up; i++) {
        out[n++] = list[HBP_FORWARD][warm_up + i];
        out[n++] = list[HBP_BACKWARD][i];
    }
    for (int64_t i = all - warm_up; i < all; i++)
        out[n++] = list[HBP_BACKWARD][i];
    free(list[0]);
    free(list[1]);
    return n;
}

/* Every operation stands once in the line, behind its stage's former one and its input, and in the segment of
 * the last place that any operation up to it needs. */
static void check_line(const hbp__schedule *schedule)
{
    int64_t each = 2 * (int64_t)schedule->micro_batches * (schedule->chunks / schedule->stages);
    int64_t count = each * schedule->stages, last = schedule->chunks - 1;
    int64_t *done = calloc((size_t)schedule->stages, sizeof *done);
    char *made = calloc((size_t)(2 * count), 1);
    ck_assert_int_eq(schedule->segment[0], 0);
    ck_assert_int_eq(schedule->segment[schedule->micro_batches], count);
    int32_t p = 0;
    for (int64_t i = 0; i < count; i++) {
        const hbp__operation *o = &schedule->line[i];
        while (i == schedule->segment[p + 1]) {
            /* Nothing else could have run in the segment that ends. */
            for (int32_t s = 0; s < schedule->stages; s++) {
                if (done[s] == each)
                    continue;
                const hbp__operation *next = &schedule->slot[s * each + done[s]];
                int64_t cell = (int64_t)next->chunk * schedule->micro_batches + next->place;
                int has = next->direction == HBP_FORWARD
                              ? !next->chunk || made[2 * (cell - schedule->micro_batches)]
                              : next->chunk == last || made[2 * (cell + schedule->micro_batches) + 1];
                ck_assert(next->place > p || !has);
            }
            p++;
        }
        ck_assert_int_le(o->place, p);
        const hbp__operation *slot = &schedule->slot[o->stage * each + done[o->stage]++];
        ck_assert_mem_eq(slot, o, sizeof *o);
        int64_t cell = (int64_t)o->chunk * schedule->micro_batches + o->place;
        if (o->direction == HBP_FORWARD)
            ck_assert(!o->chunk || made[2 * (cell - schedule->micro_batches)]);
        else
            ck_assert(o->chunk == last ? made[2 * cell] : made[2 * (cell + schedule->micro_batches) + 1]);
        made[2 * cell + o->direction] = 1;
    }
    for (int32_t s = 0; s < schedule->stages; s++)
        ck_assert_int_eq(done[s], each);
    free(made);
    free(done);
}

START_TEST_IN_CONTEXT(every_shape_follows_the_rules_and_never_waits_for_itself)
{
    for (int32_t stages = 1; stages <= 8; stages++)
        for (int32_t virtual_stages = 1; virtual_stages <= 5; virtual_stages++)
            for (int32_t m = 1; m <= 5 * stages; m++) {
                if (virtual_stages > 1 && m % stages)
                    continue;
                hbp__schedule schedule;
                OK(context, hbp__schedule_open(context, stages, virtual_stages, m, &schedule));
                int64_t each = 2 * (int64_t)m * virtual_stages;
                hbp__operation *literal = malloc((size_t)each * sizeof *literal);
                for (int32_t s = 0; s < stages; s++) {
                    ck_assert_int_eq(literal_order(stages, virtual_stages, m, s, literal), each);
                    ck_assert_mem_eq(literal, schedule.slot + s * each, (size_t)each * sizeof *literal);
                }
                free(literal);
                check_line(&schedule);
                hbp__schedule_close(&schedule);
            }
}
END_TEST

START_TEST_IN_CONTEXT(in_flight_is_what_walking_the_order_finds)
{
    for (int32_t stages = 1; stages <= 6; stages++)
        for (int32_t virtual_stages = 1; virtual_stages <= 4; virtual_stages++)
            for (int32_t m = 1; m <= 6 * stages; m++) {
                if (virtual_stages > 1 && m % stages)
                    continue;
                hbp__schedule schedule;
                OK(context, hbp__schedule_open(context, stages, virtual_stages, m, &schedule));
                hbp_pipeline_options options = {.struct_size = sizeof options};
                options.stages = stages;
                options.virtual_stages = virtual_stages;
                options.micro_batches = m;
                int64_t each = 2 * (int64_t)m * virtual_stages;
                for (int32_t chunk = 0; chunk < stages * virtual_stages; chunk++) {
                    int32_t held = 0, most = 0;
                    for (int64_t i = 0; i < each; i++) {
                        const hbp__operation *o = &schedule.slot[chunk % stages * each + i];
                        if (o->chunk == chunk)
                            held += o->direction == HBP_FORWARD ? 1 : -1;
                        most = held > most ? held : most;
                    }
                    ck_assert_int_eq(held, 0);
                    ck_assert_int_eq(hbp__pipeline_in_flight(&options, chunk), most);
                }
                hbp__schedule_close(&schedule);
            }
}
END_TEST

static hbp_status open_one(hbp_context *context, void *user)
{
    hbp__schedule *schedule = user;
    hbp_status status = hbp__schedule_open(context, 3, 2, 6, schedule);
    if (status >= 0)
        hbp__schedule_close(schedule);
    ck_assert_ptr_null(schedule->line);
    return status;
}

START_TEST(nothing_leaks_when_memory_is_short)
{
    hbp__schedule schedule;
    failing_sweep(open_one, &schedule);
}
END_TEST

TEST_MAIN("schedule", plain_orders_by_hand, interleaved_orders_by_hand,
          every_shape_follows_the_rules_and_never_waits_for_itself, in_flight_is_what_walking_the_order_finds,
          nothing_leaks_when_memory_is_short)
