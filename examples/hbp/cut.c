/* Some samples of a file in the place of all. */
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"

/* The samples from rows of `count`: lengths, vision units, kinds. */
static hbp_status keep_rows(cli *c, int64_t *length, uint32_t *vision, int32_t *modality, int64_t count,
                            int has_vision)
{
    if (!length || !vision || !modality)
        return cli_own_failure("out of memory");
    for (int64_t i = 0; i < count; i++) {
        length[i] = hbp_lengths_get_length(c->lengths, c->skip + i);
        vision[i] = (uint32_t)hbp_lengths_get_vision(c->lengths, c->skip + i);
        modality[i] = hbp_lengths_get_modality(c->lengths, c->skip + i);
    }
    hbp_lengths_free(c->lengths);
    c->lengths = NULL;
    hbp_lengths_options options = {.struct_size = sizeof options};
    options.vision = has_vision ? vision : NULL;
    options.modalities = modality;
    options.shifted_loss = (int32_t)c->shifted_loss;
    return hbp_lengths_create_i64(c->context, length, count, &options, &c->lengths);
}

hbp_status cli_cut_lengths(cli *c, const char *file)
{
    if (!c->samples_per_step && !c->skip)
        return HBP_OK;
    hbp_lengths_summary s = {.struct_size = sizeof s};
    hbp_status status = hbp_lengths_get_summary(c->context, c->lengths, &s);
    if (status < 0)
        return status;
    char skip[48] = "", samples[48] = "";
    if (c->skip)
        snprintf(skip, sizeof skip, " --skip %lld", (long long)c->skip);
    if (c->samples_per_step)
        snprintf(samples, sizeof samples, " --samples-per-step %lld", (long long)c->samples_per_step);
    if (c->skip >= s.samples || c->samples_per_step > s.samples - c->skip)
        return cli_own_failure("%s has %lld samples, too few for%s%s", show_input(file).s,
                               (long long)s.samples, skip, samples);
    int64_t count = c->samples_per_step ? c->samples_per_step : s.samples - c->skip;
    int64_t *length = malloc((size_t)count * sizeof *length);
    uint32_t *vision = malloc((size_t)count * sizeof *vision);
    int32_t *modality = malloc((size_t)count * sizeof *modality);
    status = keep_rows(c, length, vision, modality, count, s.vision >= 0);
    free(length);
    free(vision);
    free(modality);
    return status;
}

hbp_status cli_check_cut(const cli *c, int is_step)
{
    if (is_step || (!c->skip && !c->samples_per_step))
        return HBP_OK;
    return cli_own_usage(
        "--skip and --samples-per-step say which samples hbp step planned; %s is no such plan",
        show_name(c->file).s);
}
