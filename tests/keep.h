/* START_TEST_IN_CONTEXT, a test that is handed a context and need not free what it keeps: kept objects are
 * freed when it ends, the last one first, and the context after them. A claim about freeing itself frees by
 * hand, as does a test with an allocator of its own. */
#ifndef HBP_TESTS_KEEP_H
#define HBP_TESTS_KEEP_H

#include "hbp/io.h"
#include "test.h"

typedef struct keep_entry {
    void *object;
    void (*release)(void *object);
} keep_entry;

/* Of the test that runs. */
static struct {
    keep_entry *entry;
    int count;
    int room;
    hbp_context *context;
} keep_all;

static inline void *keep_one(void *object, void (*release)(void *object))
{
    ck_assert_ptr_nonnull(keep_all.context); /* only then is there somebody who frees */
    if (keep_all.count == keep_all.room) {
        keep_all.room = keep_all.room ? 2 * keep_all.room : 16;
        keep_all.entry = realloc(keep_all.entry, (size_t)keep_all.room * sizeof *keep_all.entry);
        ck_assert_ptr_nonnull(keep_all.entry);
    }
    keep_all.entry[keep_all.count++] = (keep_entry){object, release};
    return object;
}

#define KEEP_TYPE(type)                                                                                      \
    static inline void keep_free_##type(void *object)                                                        \
    {                                                                                                        \
        hbp_##type##_free(object);                                                                           \
    }                                                                                                        \
    static inline hbp_##type *keep_##type(hbp_##type *object)                                                \
    {                                                                                                        \
        return keep_one(object, keep_free_##type);                                                           \
    }
KEEP_TYPE(cost)
KEEP_TYPE(graph)
KEEP_TYPE(groups)
KEEP_TYPE(layers)
KEEP_TYPE(length_index)
KEEP_TYPE(length_index_builder)
KEEP_TYPE(lengths)
KEEP_TYPE(lengths_builder)
KEEP_TYPE(machine)
KEEP_TYPE(model)
KEEP_TYPE(packs)
KEEP_TYPE(layer_partition)
KEEP_TYPE(partition)
KEEP_TYPE(pattern_plan)
KEEP_TYPE(pipeline_run)
KEEP_TYPE(plan)
KEEP_TYPE(plan_file)
KEEP_TYPE(stepper)
KEEP_TYPE(task_run)
KEEP_TYPE(task_schedule)
KEEP_TYPE(timeline)
KEEP_TYPE(vlm)
KEEP_TYPE(vlm_plan)
#undef KEEP_TYPE

static inline void *keep_block(void *block)
{
    return keep_one(block, free);
}

/* The object, or what malloc gave, which is freed when the test ends. */
#define keep(object)                                                                                         \
    _Generic((object), hbp_cost *: keep_cost, hbp_graph *: keep_graph, hbp_groups *: keep_groups,            \
             hbp_layers *: keep_layers, hbp_length_index *: keep_length_index, hbp_length_index_builder *: keep_length_index_builder, hbp_pattern_plan *: keep_pattern_plan, hbp_lengths *: keep_lengths,                                         \
             hbp_lengths_builder *: keep_lengths_builder, hbp_machine *: keep_machine,                       \
             hbp_model *: keep_model, hbp_packs *: keep_packs, hbp_layer_partition *: keep_layer_partition, hbp_partition *: keep_partition,             \
             hbp_pipeline_run *: keep_pipeline_run, hbp_plan *: keep_plan, hbp_plan_file *: keep_plan_file,  \
             hbp_stepper *: keep_stepper, hbp_task_run *: keep_task_run,                                     \
             hbp_task_schedule *: keep_task_schedule, hbp_timeline *: keep_timeline, hbp_vlm *: keep_vlm,    \
             hbp_vlm_plan *: keep_vlm_plan, void *: keep_block, char *: keep_block, uint8_t *: keep_block,   \
             int32_t *: keep_block, uint32_t *: keep_block, int64_t *: keep_block, double *: keep_block)(object)

/* For loops over many cases: what is kept from the mark on is freed at the end of a case, as in
 * for (int i = 0, mark = keep_mark(); i < 1000; keep_release(mark), i++) */
static inline int keep_mark(void)
{
    return keep_all.count;
}

static inline void keep_release(int mark)
{
    while (keep_all.count > mark) {
        keep_entry *last = &keep_all.entry[--keep_all.count];
        last->release(last->object);
    }
}

/* Begins a test, with nothing left of one that failed. */
static inline hbp_context *keep_begin(void)
{
    keep_release(0);
    hbp_context_free(keep_all.context);
    return keep_all.context = test_context();
}

static inline void keep_end(void)
{
    keep_release(0);
    free(keep_all.entry);
    hbp_context_free(keep_all.context);
    memset(&keep_all, 0, sizeof keep_all);
}

/* START_TEST of a test that sees its `context`. */
#define START_TEST_IN_CONTEXT(name)                                                                          \
    static void name##_in(hbp_context *context);                                                             \
    START_TEST(name)                                                                                         \
    {                                                                                                        \
        name##_in(keep_begin());                                                                             \
        keep_end();                                                                                          \
    }                                                                                                        \
    END_TEST                                                                                                 \
    static void name##_in(hbp_context *context)

/* OK for a call that makes an object: keeps it. */
#define MAKES(context, object, call)                                                                         \
    do {                                                                                                     \
        OK(context, call);                                                                                   \
        (void)keep(object);                                                                                  \
    } while (0)

#endif
