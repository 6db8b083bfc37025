#include <hbp/hbp.h>
#ifdef WITH_IO
#include <hbp/io.h>
#endif
#ifdef WITH_GLPK
#include <hbp/glpk.h>
#endif
#include <stdio.h>
#include <string.h>

/* 0 when headers and libraries are of one version and a call works. */
int main(void)
{
    hbp_context *ctx = NULL;
    hbp_model *model = NULL;
    hbp_machine *machine = NULL;
    if (strcmp(hbp_version_string(), HBP_VERSION_STRING) != 0 || hbp_context_create(NULL, &ctx) < 0)
        return 1;
#ifdef WITH_GLPK
    if (hbp_context_set_solver(ctx, hbp_glpk_solver()) < 0)
        return 1;
#endif
    hbp_status status = hbp_model_create_preset(ctx, "llama-3.1-8b", &model);
#ifdef WITH_IO
    if (status >= 0)
        status = hbp_machine_probe(ctx, HBP_PROBE_SYNTHETIC, "pu:2", &machine);
#endif
    printf("hbp %s: %s\n", hbp_version_string(), hbp_status_text(status));
    hbp_machine_free(machine);
    hbp_model_free(model);
    hbp_context_free(ctx);
    return status < 0;
}
