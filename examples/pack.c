/* Plain packing: packs of at most 8,192 tokens for 8 ranks, balanced in attention; neither a model nor a
 * machine is needed. The same of packs made elsewhere. Then how a pack would be run by a model on a machine.
 */
#include <hbp/hbp.h>
#include <stdio.h>

enum { SAMPLES = 14000, RANKS = 8 };

int main(void)
{
    static uint32_t tokens[SAMPLES];
    for (uint32_t i = 0; i < SAMPLES; i++)
        tokens[i] = i % 100 == 0 ? 6000 + i % 2000 : 100 + i * 37 % 1200;
    const int64_t pack_length = 8192;
    const int32_t sp = 1;

    hbp_context *ctx = NULL;
    hbp_lengths *lengths = NULL;
    hbp_cost *plain = NULL, *cost = NULL;
    hbp_groups *groups = NULL;
    hbp_packs *packs = NULL, *own = NULL;
    hbp_plan *plan = NULL, *own_plan = NULL;
    hbp_model *model = NULL;
    hbp_machine *machine = NULL;
    hbp_sp_choice choice = {.struct_size = sizeof choice};

    int failed = hbp_context_create(NULL, &ctx) < 0 ||
                 hbp_lengths_create_u32(ctx, tokens, SAMPLES, NULL, &lengths) < 0 ||
                 hbp_cost_create_plain(ctx, RANKS, &plain) < 0 ||
                 hbp_groups_create(ctx, plain, 1, &pack_length, &sp, NULL, 0, &groups) < 0 ||
                 hbp_greedy_fill(ctx, lengths, groups, NULL, &packs) < 0 ||
                 hbp_balance_attention(ctx, packs, groups, plain, NULL, &plan) < 0;
    if (!failed) {
        hbp_plan_view view = {.struct_size = sizeof view};
        hbp_packs_view filled = {.struct_size = sizeof filled};
        hbp_plan_get_view(plan, &view);
        hbp_packs_get_view(packs, &filled);
        printf("%lld packs, at least %lld; the packs of step 0, by rank:\n", (long long)view.packs,
               (long long)filled.group_bounds[0]);
        for (int64_t p = view.micro_batch_offsets[0]; p < view.micro_batch_offsets[1]; p++)
            printf("  rank %d: %lld samples, %lld tokens, %.1f M squares\n", (int)view.pack_ranks[p],
                   (long long)(view.pack_offsets[p + 1] - view.pack_offsets[p]),
                   (long long)view.pack_tokens[p], (double)view.pack_squares[p] / 1e6);
    }

    /* Packs of one's own packer, next fit here, are balanced just so; method "given" would keep their order.
     */
    static int64_t offsets[SAMPLES + 1], order[SAMPLES];
    int64_t made = 0, held = 0;
    for (int64_t i = 0; i < SAMPLES; i++) {
        order[i] = i;
        if (held + tokens[i] > pack_length) {
            offsets[++made] = i;
            held = 0;
        }
        held += tokens[i];
    }
    offsets[++made] = SAMPLES;
    failed = failed || hbp_packs_create(ctx, lengths, groups, made, offsets, order, NULL, NULL, &own) < 0 ||
             hbp_balance_attention(ctx, own, groups, plain, NULL, &own_plan) < 0;
    if (!failed)
        printf("packed by next fit they are %lld\n", (long long)made);

    /* With a model and a machine: hbp_plan_groups chooses lengths, degrees and recomputation, hbp_choose_sp
     * those of one pack. */
    failed = failed || hbp_model_create_preset(ctx, "llama-3.1-8b", &model) < 0 ||
             hbp_machine_create_preset(ctx, "h100", &machine) < 0 ||
             hbp_cost_create(ctx, model, machine, NULL, &cost) < 0 ||
             hbp_choose_sp(ctx, cost, 131072, NULL, &choice) < 0;
    if (!failed)
        printf("a pack of 131,072 tokens of llama-3.1-8b on 8 H100: SP %d, %d layers recomputed, %.2f s\n",
               (int)choice.sp, (int)choice.recompute, (double)choice.pack_ns / 1e9);
    if (!failed) {
        hbp_groups_free(groups);
        groups = NULL;
        failed = hbp_plan_groups(ctx, lengths, cost, NULL, &groups) < 0;
    }
    if (!failed) {
        hbp_groups_view chosen = {.struct_size = sizeof chosen};
        hbp_groups_get_view(groups, &chosen);
        printf("the groups it would choose for all samples: %s\n", chosen.candidate_texts[0]);
    }
    if (failed)
        fprintf(stderr, "pack: %s\n", ctx ? hbp_context_message(ctx) : "no context");

    hbp_machine_free(machine);
    hbp_model_free(model);
    hbp_plan_free(own_plan);
    hbp_plan_free(plan);
    hbp_packs_free(own);
    hbp_packs_free(packs);
    hbp_groups_free(groups);
    hbp_cost_free(cost);
    hbp_cost_free(plain);
    hbp_lengths_free(lengths);
    hbp_context_free(ctx);
    return failed;
}
