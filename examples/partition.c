/* Samples into packs of at most 8,192 tokens, as many on each of 4 ranks, by their lengths alone. */
#include <hbp/hbp.h>
#include <stdio.h>

int main(void)
{
    static int64_t lengths[1000]; /* most of them short and a few long */
    for (int64_t i = 0; i < 1000; i++)
        lengths[i] = i % 50 == 0 ? 4000 + 4 * i : 100 + i * 37 % 1500;

    hbp_partition_options options = {.struct_size = sizeof options, .capacity = 8192, .multiple_of = 4};
    hbp_partition *packs;
    char why[256];
    if (hbp_partition_samples(lengths, 1000, &options, &packs, why, sizeof why) < 0) {
        fprintf(stderr, "partition: %s\n", why);
        return 1;
    }
    hbp_partition_view view = {.struct_size = sizeof view};
    hbp_partition_get_view(packs, &view);
    printf("%lld packs (no fewer than %lld would do), the longest of %lld tokens (at least %lld); pack 0 "
           "holds\n",
           (long long)view.parts, (long long)view.least_parts, (long long)view.heaviest,
           (long long)view.bound);
    for (int64_t i = view.part_offsets[0]; i < view.part_offsets[1]; i++)
        printf("  sample %lld, %lld tokens\n", (long long)view.sample_ids[i],
               (long long)view.sample_tokens[i]);
    hbp_partition_free(packs);
    return 0;
}
