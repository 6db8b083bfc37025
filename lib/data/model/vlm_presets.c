/* The known vision-language models, one row each (docs: cost model, "Vision layers"). */
#include <string.h>

#include "base/fields.h"
#include "data/model/vlm.h"

/* A unit of the first three is a tile of 448 x 448 pixels: 1024 patches of 14 x 14 and a class token, which a
 * pixel shuffle folds, 2 x 2 into one, to 256. InternVL-Chat-1.2 drops the last 3 of InternViT-6B's 48
 * layers. The EVA-CLIP is EVA02-CLIP-E/14. Qwen2-VL's unit is a merged token, 4 patches of two frames each,
 * whose attention spans an image of 448 x 448 pixels; images of other sizes change attention_tokens. */
static const struct preset {
    const char *name;
    const char *language;
    int32_t layers, hidden, ffn, heads, patch_values;
    int32_t tokens, attention_tokens, projected, projector_input, projector_hidden;
} presets[] = {
    {"internvl-1.5-26b", "internlm2-20b", 45, 3200, 12800, 25, 588, 1025, 1025, 256, 12800, 6144},
    {"internvl-1.2-plus-40b", "yi-34b", 45, 3200, 12800, 25, 588, 1025, 1025, 256, 12800, 7168},
    {"eva-clip-llama-3-8b", "llama-3-8b", 64, 1792, 15360, 16, 588, 1025, 1025, 256, 7168, 4096},
    {"qwen2-vl-7b", "qwen2-7b", 32, 1280, 5120, 16, 1176, 4, 1024, 1, 5120, 5120},
};

static hbp_vlm_fields expand_preset(const struct preset *p)
{
    return (hbp_vlm_fields){
        .struct_size = sizeof(hbp_vlm_fields),
        .vision_mlp = HBP_MLP_PLAIN,
        .vision_layers = p->layers,
        .vision_hidden = p->hidden,
        .vision_ffn = p->ffn,
        .vision_heads = p->heads,
        .patch_values = p->patch_values,
        .tokens_per_unit = p->tokens,
        .attention_tokens = p->attention_tokens,
        .projected_per_unit = p->projected,
        .projector_input = p->projector_input,
        .projector_hidden = p->projector_hidden,
    };
}

#define PRESETS ((int64_t)(sizeof presets / sizeof *presets))

const char *hbp__vlm_preset_name(int64_t index)
{
    return index >= 0 && index < PRESETS ? presets[index].name : NULL;
}

hbp_status hbp_vlm_create_preset(hbp_context *context, const char *name, hbp_vlm **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, name, "name"));
    for (int64_t i = 0; i < PRESETS; i++)
        if (strcmp(presets[i].name, name) == 0) {
            hbp_model *language = NULL;
            HBP__TRY(hbp__model_make_preset(context, presets[i].language, &language));
            hbp_vlm_fields fields = expand_preset(&presets[i]);
            hbp_status status = hbp__vlm_make(context, name, &fields, language, out);
            hbp_model_free(language);
            return status;
        }
    return hbp__fail_preset(context, "vision-language", name, hbp__vlm_preset_name, PRESETS);
}
