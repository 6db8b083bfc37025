/* Plan an epoch and walk through what one rank runs in its first step. */
#include <hbp/hbp.h>
#include <stdio.h>

int main(void)
{
    /* Fourteen thousand samples, most of them short and a few very long. */
    static uint32_t tokens[14000];
    for (uint32_t i = 0; i < 14000; i++)
        tokens[i] = i % 100 == 0 ? 60000 + i : 200 + i * 37 % 3000;

    hbp_context *ctx = NULL;
    hbp_lengths *lengths = NULL;
    hbp_model *model = NULL;
    hbp_machine *machine = NULL;
    hbp_cost *cost = NULL;
    hbp_plan *plan = NULL;
    hbp_epoch_options options = {.struct_size = sizeof options};
    options.max_length = 131072;

    int failed = hbp_context_create(NULL, &ctx) < 0 ||
                 hbp_lengths_create_u32(ctx, tokens, 14000, NULL, &lengths) < 0 ||
                 hbp_model_create_preset(ctx, "llama-3.1-8b", &model) < 0 ||
                 hbp_machine_create_preset(ctx, "h100:4", &machine) < 0 ||
                 hbp_cost_create(ctx, model, machine, NULL, &cost) < 0 ||
                 hbp_plan_epoch(ctx, lengths, cost, &options, &plan) < 0;
    if (failed) {
        fprintf(stderr, "first: %s\n", ctx ? hbp_context_message(ctx) : "no context");
    } else {
        hbp_plan_view view = {.struct_size = sizeof view};
        hbp_plan_get_view(plan, &view);
        printf("%lld steps; step 0 takes %.0f ms; rank 5 runs in it\n", (long long)view.steps,
               (double)view.step_ns[0] / 1e6);
        int64_t pack;
        for (int64_t m = 0; (pack = hbp_plan_get_rank_pack(plan, 0, m, 5)) >= 0; m++) {
            printf("  micro-batch %lld: SP %d, %d layers recomputed, %lld samples of %lld tokens:",
                   (long long)m, (int)view.pack_sp[pack], (int)view.pack_recompute[pack],
                   (long long)(view.pack_offsets[pack + 1] - view.pack_offsets[pack]),
                   (long long)view.pack_tokens[pack]);
            for (int64_t s = view.pack_offsets[pack];
                 s < view.pack_offsets[pack + 1] && s < view.pack_offsets[pack] + 5; s++)
                printf(" %lld", (long long)view.sample_ids[s]);
            printf(" ...\n");
        }
    }
    hbp_plan_free(plan);
    hbp_cost_free(cost);
    hbp_machine_free(machine);
    hbp_model_free(model);
    hbp_lengths_free(lengths);
    hbp_context_free(ctx);
    return failed;
}
