/* Bytes of a layer from two measurements (OmniBal, section 3.4): a 2 x 2 system by Cramer's rule, in
 * integers. */
#include "base/context.h"
#include "hbp/pipeline.h"

/* Counts below 2^31 and bytes up to this keep every product and difference within 64 bits. */
#define MOST_BYTES  (INT64_C(1) << 44)
#define MOST_LAYERS (1 << 18)

static hbp_status check_measurements(hbp_context *context, const int32_t vision[2], const int32_t language[2],
                                     const int64_t freed[2])
{
    for (int32_t i = 0; i < 2; i++) {
        const struct {
            const char *name;
            int64_t value;
            int64_t most;
        } all[] = {{"vision_layers", vision[i], MOST_LAYERS},
                   {"language_layers", language[i], MOST_LAYERS},
                   {"freed_bytes", freed[i], MOST_BYTES}};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            if (all[k].value < 0 || all[k].value > all[k].most)
                return hbp__fail(context, HBP_E_INVALID,
                                 "%s of measurement %d is %lld; it must be in 0..%lld", all[k].name, (int)i,
                                 (long long)all[k].value, (long long)all[k].most);
    }
    return HBP_OK;
}

hbp_status hbp_fit_layer_bytes(hbp_context *context, const int32_t vision_layers[2],
                               const int32_t language_layers[2], const int64_t freed_bytes[2],
                               int64_t *vision_bytes, int64_t *language_bytes)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, vision_layers, "vision_layers"));
    HBP__TRY(hbp__require(context, language_layers, "language_layers"));
    HBP__TRY(hbp__require(context, freed_bytes, "freed_bytes"));
    HBP__TRY(hbp__require(context, vision_bytes, "vision_bytes"));
    HBP__TRY(hbp__require(context, language_bytes, "language_bytes"));
    HBP__TRY(check_measurements(context, vision_layers, language_layers, freed_bytes));
    int64_t a = vision_layers[0], b = language_layers[0], c = vision_layers[1], d = language_layers[1];
    int64_t e = freed_bytes[0], f = freed_bytes[1];
    int64_t determinant = a * d - b * c;
    if (!determinant)
        return hbp__fail(context, HBP_E_INFEASIBLE,
                         "%lld vision and %lld language layers, then %lld and %lld: these two measurements "
                         "cannot separate a vision layer's bytes from a language layer's",
                         (long long)a, (long long)b, (long long)c, (long long)d);
    int64_t x = e * d - b * f, y = a * f - e * c;
    if (determinant < 0) {
        determinant = -determinant;
        x = -x;
        y = -y;
    }
    if (x < 0 || y < 0)
        return hbp__fail(
            context, HBP_E_INFEASIBLE,
            "a %s layer comes out at %lld / %lld bytes, below 0; measure again, or leave it to the "
            "columns",
            x < 0 ? "vision" : "language", (long long)(x < 0 ? x : y), (long long)determinant);
    *vision_bytes = x / determinant;
    *language_bytes = y / determinant;
    return HBP_OK;
}
