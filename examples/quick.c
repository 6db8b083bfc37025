/* A plan in one call, and what one rank runs in its first step. */
#include <hbp/hbp.h>
#include <stdio.h>

int main(void)
{
    static int64_t tokens[14000]; /* most of them short and a few very long */
    for (int64_t i = 0; i < 14000; i++)
        tokens[i] = i % 100 == 0 ? 60000 + i : 200 + i * 37 % 3000;

    hbp_plan *plan;
    char why[256];
    if (hbp_plan_quick(tokens, 14000, "llama-3.1-8b", "h100:4", NULL, &plan, why, sizeof why) < 0) {
        fprintf(stderr, "quick: %s\n", why);
        return 1;
    }
    hbp_plan_view view = {.struct_size = sizeof view};
    hbp_plan_get_view(plan, &view);
    printf("%lld steps; in step 0 rank 5 runs\n", (long long)view.steps);
    int64_t pack;
    for (int64_t m = 0; (pack = hbp_plan_get_rank_pack(plan, 0, m, 5)) >= 0; m++)
        printf("  %lld samples of %lld tokens on SP %d\n",
               (long long)(view.pack_offsets[pack + 1] - view.pack_offsets[pack]),
               (long long)view.pack_tokens[pack], (int)view.pack_sp[pack]);
    hbp_plan_free(plan);
    return 0;
}
