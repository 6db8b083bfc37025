#include "data/plan/plan.h"

#include "failing.h"
#include "keep.h"
#include "plans.h"
#include "views.h"

/* A plan with every column: split pieces, loss tokens, vision units, kinds, dropped rows. */
static hbp_plan *make(hbp_context *context, uint64_t seed)
{
    hbp_lengths *lengths = plans_vision_lengths(context, seed, 80, 400, 1, 0, 3), *cut = NULL;
    OK(context, hbp_lengths_limit(context, lengths, 300, HBP_OVERLONG_SPLIT, &cut));
    plans_shape shape = plans_draw(seed);
    shape.modality_order = 1;
    shape.left_over = 3;
    shape.pieces = 1;
    hbp_plan *plan = plans_make(&shape, cut);
    hbp_lengths_free(cut);
    hbp_lengths_free(lengths);
    return plan;
}

static hbp_status make_empty(hbp_context *context, void *user)
{
    const int32_t *optional = user;
    hbp_plan *plan = hbp__plan_new(&context->memory, 3, 4, 5, 6, 7, *optional);
    if (!plan)
        return hbp__fail_memory(context, "a plan");
    ck_assert_int_eq(hbp__plan_optional(plan), *optional);
    ck_assert_int_eq(plan->step_offsets[0], 0);
    ck_assert_int_eq(plan->micro_batch_offsets[0], 0);
    ck_assert_int_eq(plan->pack_offsets[0], 0);
    ck_assert_ptr_eq(plan_view(plan).sample_loss_tokens, plan->sample_loss_tokens);
    hbp_plan_free(plan);
    return HBP_OK;
}

START_TEST(a_plan_is_whole_or_not_there)
{
    for (int32_t optional = 0; optional < 2 * HBP__PLAN_PIECES; optional++)
        failing_sweep(make_empty, &optional);
    hbp__memory memory = hbp__memory_default();
    ck_assert_ptr_null(hbp__plan_new(&memory, INT64_MAX / 8, 1, 1, 1, 0, 0));
    hbp_plan_free(NULL);
}
END_TEST

/* Fails unless the digest tells this value of `place` from any other. */
#define DECIDES(place)                                                                                       \
    do {                                                                                                     \
        uint64_t before = plan->digest;                                                                      \
        (place) ^= 1;                                                                                        \
        hbp__plan_seal(plan);                                                                                \
        ck_assert_msg(plan->digest != before, "the digest overlooks " #place);                               \
        (place) ^= 1;                                                                                        \
        hbp__plan_seal(plan);                                                                                \
        ck_assert_uint_eq(plan->digest, before);                                                             \
    } while (0)

START_TEST_IN_CONTEXT(the_digest_overlooks_nothing)
{
    hbp_plan *plan = keep(make(context, 1));
    ck_assert_uint_eq(plan_digest(plan), plan->digest);
    DECIDES(plan->ranks);
    DECIDES(plan->domain_ranks);
    DECIDES(plan->complete);
    DECIDES(plan->sequence_multiple);
    DECIDES(plan->pack_multiple);
    DECIDES(plan->micro_batch_multiple);
    DECIDES(plan->first_step);
    DECIDES(plan->overlong_samples);
    DECIDES(plan->overlong_tokens);
    DECIDES(plan->seed);
    DECIDES(plan->epoch);
    DECIDES(plan->lengths_digest);
#define DECIDES_COLUMN(name, type, table, extra)                                                             \
    DECIDES(plan->name[0]);                                                                                  \
    DECIDES(plan->name[plan->table + (extra)-1]);
    HBP__PLAN_COLUMNS(DECIDES_COLUMN)
#undef DECIDES_COLUMN
    hbp_plan *other = keep(make(context, 1));
    ck_assert_uint_eq(other->digest, plan->digest);
}
END_TEST

START_TEST_IN_CONTEXT(a_view_gives_columns_and_counts)
{
    hbp_plan *plan = make(context, 2);
    hbp_plan_view view = plan_view(plan), none = {.struct_size = sizeof none, .packs = 7};
    ck_assert_int_eq(hbp_plan_get_view(NULL, &none), HBP_E_INVALID);
#define GET(name, type, table, extra)                                                                        \
    ck_assert_ptr_eq(view.name, plan->name);                                                                 \
    ck_assert_int_eq(view.table, plan->table);                                                               \
    ck_assert_ptr_null(none.name);                                                                           \
    ck_assert_int_eq(none.table, 0);
    HBP__PLAN_COLUMNS(GET)
#undef GET
    hbp_plan_free(plan);

    hbp_lengths *lengths = keep(plans_lengths(context, 2, 20, 100, 0, 0));
    plans_shape shape = plans_draw(2);
    plan = plans_make(&shape, lengths);
    view = plan_view(plan);
    ck_assert_ptr_null(view.sample_first_tokens);
    ck_assert_ptr_null(view.sample_loss_tokens);
    ck_assert_ptr_null(view.dropped_tokens);
    hbp_plan_free(plan);
}
END_TEST

START_TEST_IN_CONTEXT(the_summary_sums)
{
    hbp_plan *plan = keep(make(context, 5));
    ck_assert_int_gt(plan->steps, 1);
    hbp_plan_summary s = {.struct_size = sizeof s};
    OK(context, hbp_plan_get_summary(context, plan, &s));
    int64_t tokens = 0, loss = 0, padded = 0, ns = 0, dummies = 0;
    for (int64_t i = 0; i < plan->samples; i++) {
        tokens += plan->sample_tokens[i];
        loss += plan->sample_loss_tokens[i];
    }
    for (int64_t p = 0; p < plan->packs; p++) {
        padded += plan->pack_padded_tokens[p];
        dummies += plan->pack_tokens[p] == 0;
    }
    for (int64_t i = 0; i < plan->steps; i++)
        ns += plan->step_ns[i];
    ck_assert_int_eq(s.tokens, tokens);
    ck_assert_int_eq(s.loss_tokens, loss);
    ck_assert_int_eq(s.padded_tokens, padded);
    ck_assert_int_eq(s.predicted_ns, ns);
    ck_assert_int_eq(s.padding_packs, dummies);
    ck_assert_int_eq(s.steps, plan->steps);
    ck_assert_int_eq(s.micro_batches, plan->micro_batches);
    ck_assert_int_eq(s.packs, plan->packs);
    ck_assert_int_eq(s.samples, plan->samples);
    ck_assert_int_eq(s.dropped, 3);
    ck_assert_int_eq(s.ranks, plan->ranks);
    ck_assert_int_eq(s.overlong_samples, plan->overlong_samples);
    ck_assert_uint_eq(s.digest, plan->digest);
    ck_assert_uint_eq(s.lengths_digest, plan->lengths_digest);
    ck_assert_uint_eq(s.seed, 5);
    ck_assert_int_eq(s.complete, 1);
    ck_assert_int_eq(s.bound_ns, 0);
    ck_assert_double_nan(s.gap);
    ck_assert_int_eq(s.proven, 0);
    plan->bound_ns = ns / 2;
    OK(context, hbp_plan_get_summary(context, plan, &s));
    ck_assert_int_eq(s.bound_ns, ns / 2);
    ck_assert_double_eq(s.gap, (double)ns / (double)(ns / 2) - 1);
    ck_assert_int_eq(s.proven, 0);
    plan->bound_ns = ns;
    OK(context, hbp_plan_get_summary(context, plan, &s));
    ck_assert_double_eq(s.gap, 0);
    ck_assert_int_eq(s.proven, 1);

    plan->step_ns[0] = plan->step_ns[1] = INT64_MAX;
    OK(context, hbp_plan_get_summary(context, plan, &s));
    ck_assert_int_eq(s.predicted_ns, INT64_MAX);
    FAILS(context, HBP_E_INVALID, "plan", hbp_plan_get_summary(context, NULL, &s));
    FAILS(context, HBP_E_INVALID, "hbp_plan_summary", hbp_plan_get_summary(context, plan, NULL));
    ck_assert_int_eq(hbp_plan_get_summary(NULL, plan, &s), HBP_E_INVALID);
}
END_TEST

START_TEST(compositions_have_names)
{
    static const char *const name[] = {"auto", "random", "stratified", "hierarchy", "given"};
    for (int32_t i = HBP_COMPOSITION_AUTO; i <= HBP_COMPOSITION_GIVEN; i++)
        ck_assert_str_eq(hbp_composition_name(i), name[i]);
    ck_assert_ptr_null(hbp_composition_name(-1));
    ck_assert_ptr_null(hbp_composition_name(HBP_COMPOSITION_GIVEN + 1));
}
END_TEST

START_TEST_IN_CONTEXT(every_rank_finds_its_pack)
{
    for (uint64_t seed = 0; seed < 30; seed++) {
        hbp_plan *plan = make(context, seed);
        for (int64_t s = 0; s < plan->steps; s++) {
            int64_t first = plan->step_offsets[s], count = plan->step_offsets[s + 1] - first;
            for (int64_t m = 0; m < count; m++) {
                for (int64_t p = plan->micro_batch_offsets[first + m];
                     p < plan->micro_batch_offsets[first + m + 1]; p++)
                    for (int32_t r = 0; r < plan->pack_sp[p]; r++)
                        ck_assert_int_eq(hbp_plan_get_rank_pack(plan, s, m, plan->pack_ranks[p] + r), p);
                ck_assert_int_eq(hbp_plan_get_rank_pack(plan, s, m, plan->ranks), -1);
                ck_assert_int_eq(hbp_plan_get_rank_pack(plan, s, m, -1), -1);
            }
            ck_assert_int_eq(hbp_plan_get_rank_pack(plan, s, count, 0), -1);
            ck_assert_int_eq(hbp_plan_get_rank_pack(plan, s, -1, 0), -1);
        }
        ck_assert_int_eq(hbp_plan_get_rank_pack(plan, plan->steps, 0, 0), -1);
        ck_assert_int_eq(hbp_plan_get_rank_pack(plan, -1, 0, 0), -1);
        hbp_plan_free(plan);
    }
    ck_assert_int_eq(hbp_plan_get_rank_pack(NULL, 0, 0, 0), -1);
}
END_TEST

/* Values of a column from `first` on against a part's own, offsets less what they begin at. */
#define SAME(name, type, table, extra)                                                                       \
    for (int64_t i = 0; i < part->table + (extra); i++)                                                      \
        ck_assert_int_eq(part->name[i],                                                                      \
                         plan->name[first.table + i] - ((extra) ? plan->name[first.table] : 0));

START_TEST_IN_CONTEXT(a_slice_is_the_steps_it_names)
{
    hbp_plan *plan = keep(make(context, 5));
    plan->first_step = 10;
    plan->bound_ns = 1;
    ck_assert_int_gt(plan->steps, 2);
    for (int64_t s = 0; s < plan->steps; s++)
        for (int64_t count = 1; s + count <= plan->steps; count++) {
            hbp_plan *part;
            OK(context, hbp__plan_slice(context, plan, s, count, &part));
            struct {
                int64_t steps, micro_batches, packs, samples, dropped;
            } first = {.steps = s};
            first.micro_batches = plan->step_offsets[s];
            first.packs = plan->micro_batch_offsets[first.micro_batches];
            first.samples = plan->pack_offsets[first.packs];
            OK(context, hbp__plan_check(context, part));
            ck_assert_int_eq(part->steps, count);
            ck_assert_int_eq(part->first_step, 10 + s);
            ck_assert_int_eq(part->epoch_steps, count < plan->steps ? 10 + plan->steps : 0);
            ck_assert_int_eq(part->dropped, 0);
            ck_assert_int_eq(part->bound_ns, 0);
            ck_assert_uint_eq(part->lengths_digest, plan->lengths_digest);
            HBP__PLAN_COLUMNS(SAME)
            hbp_plan_free(part);
        }
}
END_TEST

static hbp_status slice(hbp_context *context, void *user)
{
    hbp_plan *part = NULL;
    hbp_status status = hbp__plan_slice(context, user, 1, 2, &part);
    hbp_plan_free(part);
    return status;
}

START_TEST_IN_CONTEXT(a_slice_may_find_no_memory)
{
    hbp_plan *plan = keep(make(context, 6));
    failing_sweep(slice, plan);
}
END_TEST

TEST_MAIN("plan", a_plan_is_whole_or_not_there, the_digest_overlooks_nothing, a_view_gives_columns_and_counts,
          the_summary_sums, compositions_have_names, every_rank_finds_its_pack, a_slice_is_the_steps_it_names,
          a_slice_may_find_no_memory)
