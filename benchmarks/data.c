/* The data sets: lengths of public data, and the stand-in for HBP's own. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "hbp/io.h"

enum { MAX_POINTS = 4096 };

/* Samples of the originals, for drawing as many. */
static const struct {
    const char *name;
    int64_t samples;
} sets[BENCH_DATA_SETS] = {{"stand-in", BENCH_STANDIN_SAMPLES},
                           {"wikipedia", 1000000},
                           {"reasoning", 1000000},
                           {"conversation_long", 12031},
                           {"conversation_short", 19366},
                           {"code_files", 39635},
                           {"vlm_tokens", 70706}};

static double uniform(uint64_t *state)
{
    return ((double)(bench_random(state) >> 11) + 0.5) * 0x1p-53;
}

/* Two normal draws (Box and Muller 1958). */
static void normal_pair(uint64_t *state, double pair[2])
{
    double radius = sqrt(-2 * log(uniform(state)));
    double angle = 6.283185307179586 * uniform(state);
    pair[0] = radius * cos(angle);
    pair[1] = radius * sin(angle);
}

uint32_t *bench_draw_standin(int64_t count, uint64_t seed)
{
    const double long_share = 2000.0 / (double)BENCH_STANDIN_SAMPLES;
    uint32_t *length = bench_allocate(count, sizeof *length);
    double pair[2] = {0, 0};
    for (int64_t i = 0; i < count; i++) {
        if (i % 2 == 0)
            normal_pair(&seed, pair);
        int is_long = floor((double)(i + 1) * long_share) > floor((double)i * long_share);
        double drawn = is_long ? exp(log(38000) + 0.75 * pair[i % 2]) : exp(log(350) + pair[i % 2]);
        double most = is_long ? 131072 : 32768;
        length[i] = (uint32_t)(drawn < 1 ? 1 : drawn > most ? most : drawn + 0.5);
    }
    return length;
}

/* Copies lengths out of the library's reader. */
static int read_file(hbp_context *context, const char *path, bench_data *data)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return 0;
    fclose(file);
    hbp_lengths *lengths = NULL;
    bench_need(context, hbp_lengths_load(context, path, NULL, &lengths), path);
    hbp_lengths_summary summary = {.struct_size = sizeof summary};
    bench_need(context, hbp_lengths_get_summary(context, lengths, &summary), path);
    data->count = summary.samples;
    data->length = bench_allocate(data->count, sizeof *data->length);
    for (int64_t i = 0; i < data->count; i++)
        data->length[i] = (uint32_t)hbp_lengths_get_length(lengths, i);
    hbp_lengths_free(lengths);
    return 1;
}

/* Draws by the inverse distribution function, linear between the recorded quantiles. */
static int draw_quantiles(const char *path, int64_t count, bench_data *data)
{
    static double quantile[MAX_POINTS], length_at[MAX_POINTS];
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    char line[256];
    int points = 0;
    while (points < MAX_POINTS && fgets(line, sizeof line, file))
        points += sscanf(line, "%lf,%lf", &quantile[points], &length_at[points]) == 2;
    fclose(file);
    if (points < 2)
        return 0;
    uint64_t state = 0;
    data->count = count;
    data->length = bench_allocate(count, sizeof *data->length);
    for (int64_t i = 0; i < count; i++) {
        double u = uniform(&state);
        int low = 0;
        for (int high = points - 1; high - low > 1;) {
            int middle = (low + high) / 2;
            if (quantile[middle] <= u)
                low = middle;
            else
                high = middle;
        }
        double share = (u - quantile[low]) / (quantile[low + 1] - quantile[low]);
        data->length[i] = (uint32_t)(length_at[low] + share * (length_at[low + 1] - length_at[low]) + 0.5);
    }
    return 1;
}

int bench_data_open(hbp_context *context, int index, bench_data *data)
{
    memset(data, 0, sizeof *data);
    data->name = sets[index].name;
    if (index == 0) {
        data->count = BENCH_STANDIN_SAMPLES;
        data->length = bench_draw_standin(data->count, 0);
        snprintf(data->origin, sizeof data->origin, "drawn from two lognormals");
        return 1;
    }
    const char *folder = getenv("HBP_DATA");
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.npy", folder ? folder : BENCH_DATA, data->name);
    if (read_file(context, path, data)) {
        snprintf(data->origin, sizeof data->origin, "%s.npy", data->name);
        return 1;
    }
    printf("%s.npy is absent; ", data->name);
    snprintf(path, sizeof path, "%s/%s.csv", BENCH_QUANTILES, data->name);
    if (draw_quantiles(path, sets[index].samples, data)) {
        snprintf(data->origin, sizeof data->origin, "drawn from quantiles");
        printf("drawn from its quantiles instead\n");
        return 1;
    }
    printf("its quantiles, too; skipped\n");
    return 0;
}

hbp_lengths *bench_vision_lengths(hbp_context *context, int64_t count)
{
    const char *named = getenv("HBP_DATA"), *folder = named ? named : BENCH_DATA;
    char tokens[4096], vision[4096];
    snprintf(tokens, sizeof tokens, "%s/vlm_tokens.npy", folder);
    snprintf(vision, sizeof vision, "%s/vlm_images.npy", folder);
    hbp_lengths_load_options options;
    options = (hbp_lengths_load_options){.struct_size = sizeof options};
    options.vision_path = vision;
    hbp_lengths *once = NULL, *many = NULL;
    if (hbp_lengths_load(context, tokens, &options, &once) < 0) {
        bench_line("vlm_tokens, vlm_images", "skipped: %s", hbp_context_message(context));
        return NULL;
    }
    uint32_t *length = bench_allocate(count, sizeof *length), *units = bench_allocate(count, sizeof *units);
    for (int64_t i = 0; i < count; i++) {
        length[i] = (uint32_t)hbp_lengths_get_length(once, i % BENCH_VISION_SAMPLES);
        units[i] = (uint32_t)hbp_lengths_get_vision(once, i % BENCH_VISION_SAMPLES);
    }
    hbp_lengths_options columns = {.struct_size = sizeof columns};
    columns.vision = units;
    bench_need(context, hbp_lengths_create_u32(context, length, count, &columns, &many), "lengths");
    hbp_lengths_free(once);
    free(length);
    free(units);
    return many;
}

void bench_data_close(bench_data *data)
{
    free(data->length);
    data->length = NULL;
}

hbp_lengths *bench_lengths(hbp_context *context, const bench_data *data, int64_t longest)
{
    hbp_lengths_options options = {.struct_size = sizeof options};
    options.borrow = 1;
    hbp_lengths *all = NULL, *limited = NULL;
    bench_need(context, hbp_lengths_create_u32(context, data->length, data->count, &options, &all),
               data->name);
    bench_need(context, hbp_lengths_limit(context, all, longest, HBP_OVERLONG_DROP, &limited), data->name);
    hbp_lengths_free(all);
    return limited;
}

hbp_lengths *bench_lengths_of(hbp_context *context, uint32_t *tokens, uint32_t *vision, int32_t *modality,
                              int64_t count)
{
    hbp_lengths_options options = {.struct_size = sizeof options};
    hbp_lengths *lengths = NULL;
    options.vision = vision;
    options.modalities = modality;
    bench_need(context, hbp_lengths_create_u32(context, tokens, count, &options, &lengths), "lengths");
    free(modality);
    free(vision);
    free(tokens);
    return lengths;
}
