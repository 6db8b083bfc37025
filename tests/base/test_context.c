#include "base/context.h"
#include "base/scratch.h"

#include "failing.h"
#include "test.h"

START_TEST(a_context_needs_somewhere_to_go_and_complete_hooks)
{
    ck_assert_int_eq(hbp_context_create(NULL, NULL), HBP_E_INVALID);
    hbp_context *context = (hbp_context *)1;
    hbp_allocator hooks = {sizeof hooks, failing_alloc, NULL, NULL, NULL};
    hbp_context_options options = {.struct_size = sizeof options};
    options.allocator = &hooks;
    ck_assert_int_eq(hbp_context_create(&options, &context), HBP_E_INVALID);
    ck_assert_ptr_null(context);
    hooks = (hbp_allocator){sizeof hooks, NULL, NULL, failing_release, NULL};
    ck_assert_int_eq(hbp_context_create(&options, &context), HBP_E_INVALID);
    failing f = {.left = 0};
    hooks = (hbp_allocator){sizeof hooks, failing_alloc, NULL, failing_release, &f};
    ck_assert_int_eq(hbp_context_create(&options, &context), HBP_E_NO_MEMORY);
    ck_assert_ptr_null(context);
    hbp_context_free(NULL);
}
END_TEST

START_TEST(a_message_names_the_failure_until_the_next_call)
{
    hbp_context *context = test_context();
    ck_assert_str_eq(hbp_context_message(context), "");
    ck_assert_int_eq(hbp__fail(context, HBP_E_INVALID, "sample %d has %s", 7, "no tokens"), HBP_E_INVALID);
    ck_assert_str_eq(hbp_context_message(context), "sample 7 has no tokens");
    ck_assert_int_eq(hbp__fail_memory(context, "the packs"), HBP_E_NO_MEMORY);
    ck_assert_str_eq(hbp_context_message(context), "out of memory for the packs");
    ck_assert_int_eq(hbp__require(context, NULL, "cost"), HBP_E_INVALID);
    ck_assert_str_eq(hbp_context_message(context), "cost is NULL");
    ck_assert_int_eq(hbp__enter(context), HBP_OK);
    ck_assert_str_eq(hbp_context_message(context), "");
    hbp__fail(context, HBP_E_INFEASIBLE, "no room");
    ck_assert_int_eq(hbp__forgive(context), HBP_OK);
    ck_assert_str_eq(hbp_context_message(context), "");
    ck_assert_int_eq(hbp__enter(NULL), HBP_E_INVALID);
    ck_assert_str_ne(hbp_context_message(NULL), "");
    hbp_context_free(context);
}
END_TEST

START_TEST(a_long_message_is_cut_not_overrun)
{
    hbp_context *context = test_context();
    char text[3 * HBP__MESSAGE_BYTES];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    hbp__fail(context, HBP_E_INVALID, "%s", text);
    ck_assert_uint_eq(strlen(hbp_context_message(context)), HBP__MESSAGE_BYTES - 1);
    hbp_context_free(context);
}
END_TEST

START_TEST(a_cancel_stops_one_call_and_is_forgotten)
{
    hbp_context *context = test_context();
    ck_assert_int_eq(hbp__tick(context, "fill", 1, 2), HBP_OK);
    hbp_context_cancel(context);
    ck_assert_int_eq(hbp__tick(context, "fill", 1, 2), HBP_E_CANCELLED);
    ck_assert_str_eq(hbp_context_message(context), "cancelled in stage fill");
    ck_assert_int_eq(hbp__tick(context, "fill", 1, 2), HBP_OK);
    hbp_context_cancel(NULL);
    hbp_context_free(context);
}
END_TEST

typedef struct seen {
    int64_t calls;
    int64_t done;
    int64_t total;
    int32_t answer;
    char stage[16];
} seen;

static int32_t look(void *user, const hbp_progress *progress)
{
    seen *s = user;
    s->calls++;
    s->done = progress->done;
    s->total = progress->total;
    ck_assert_uint_eq(progress->struct_size, sizeof *progress);
    snprintf(s->stage, sizeof s->stage, "%s", progress->stage);
    return s->answer;
}

START_TEST(progress_reaches_the_caller_whose_answer_cancels)
{
    seen s = {0};
    hbp_context_options options = {.struct_size = sizeof options, .progress = look, .progress_user = &s};
    hbp_context *context = NULL;
    ck_assert_int_eq(hbp_context_create(&options, &context), HBP_OK);
    ck_assert_int_eq(hbp__tick(context, "balance", 3, 9), HBP_OK);
    ck_assert_int_eq(s.calls, 1);
    ck_assert_str_eq(s.stage, "balance");
    ck_assert_int_eq(s.done, 3);
    ck_assert_int_eq(s.total, 9);
    s.answer = 1;
    ck_assert_int_eq(hbp__tick(context, "balance", 4, 9), HBP_E_CANCELLED);
    hbp_context_free(context);
}
END_TEST

START_TEST(much_is_copied_and_zeroed_with_looks_in_between)
{
    static unsigned char from[3 * HBP__TICK_BYTES + 5], to[sizeof from];
    seen s = {0};
    hbp_context_options options = {.struct_size = sizeof options, .progress = look, .progress_user = &s};
    hbp_context *context = NULL;
    ck_assert_int_eq(hbp_context_create(&options, &context), HBP_OK);
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (unsigned char)(i % 251 + 1);
    ck_assert_int_eq(hbp__copy(context, to, from, HBP__TICK_BYTES), HBP_OK);
    ck_assert_int_eq(s.calls, 0);
    ck_assert_int_eq(hbp__copy(context, to, from, sizeof from), HBP_OK);
    ck_assert_int_eq(s.calls, 3);
    ck_assert_str_eq(s.stage, "copy");
    ck_assert_int_eq(s.total, sizeof from);
    ck_assert_mem_eq(to, from, sizeof from);
    ck_assert_int_eq(hbp__zero(context, to, sizeof to - 1), HBP_OK);
    ck_assert_int_eq(s.calls, 6);
    ck_assert_uint_eq(to[sizeof to - 2], 0);
    ck_assert_uint_eq(to[sizeof to - 1], from[sizeof from - 1]);
    s.answer = 1;
    ck_assert_int_eq(hbp__copy(context, to, from, sizeof from), HBP_E_CANCELLED);
    ck_assert_int_eq(hbp__zero(context, to, sizeof to), HBP_E_CANCELLED);
    /* What a take was cancelled with is remembered as one that failed is. */
    ck_assert_ptr_null(hbp__take_zero(context, sizeof to, 1));
    ck_assert_ptr_null(hbp__take(context, 1, 1));
    ck_assert_int_eq(hbp__scratch_check(context, "much"), HBP_E_CANCELLED);
    ck_assert_str_eq(hbp_context_message(context), "cancelled in stage zero");
    ck_assert_int_eq(hbp__scratch_check(context, "much"), HBP_OK);
    hbp__leave(context, 0, HBP_OK);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("context", a_context_needs_somewhere_to_go_and_complete_hooks,
          a_message_names_the_failure_until_the_next_call, a_long_message_is_cut_not_overrun,
          a_cancel_stops_one_call_and_is_forgotten, progress_reaches_the_caller_whose_answer_cancels,
          much_is_copied_and_zeroed_with_looks_in_between)
