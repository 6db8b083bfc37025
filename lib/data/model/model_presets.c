/* The known transformers, one row each (docs: cost model, "Model presets"). */
#include <string.h>

#include "base/fields.h"
#include "data/model/model.h"

enum { GPT = 1, QKV_BIAS = 2, MLA = 4 };

/* FlexSP's GPTs tie their embeddings; their table of learned positions is as long as the context and is left
 * out, for it depends on the run. MLA is of DeepSeek-V2's shape. */
static const struct preset {
    const char *name;
    int32_t kind;
    int32_t layers, hidden, ffn, heads, kv_heads, head_dim, vocab;
    int32_t dense_layers, experts, experts_active, experts_shared, moe_ffn;
} presets[] = {
    {"llama-3-8b", 0, 32, 4096, 14336, 32, 8, 128, 128256, 0, 0, 0, 0, 0},
    {"llama-3.1-8b", 0, 32, 4096, 14336, 32, 8, 128, 128256, 0, 0, 0, 0, 0},
    {"llama-3.1-70b", 0, 80, 8192, 28672, 64, 8, 128, 128256, 0, 0, 0, 0, 0},
    {"llama-3.1-405b", 0, 126, 16384, 53248, 128, 8, 128, 128256, 0, 0, 0, 0, 0},
    {"internlm2-20b", 0, 48, 6144, 16384, 48, 8, 128, 92544, 0, 0, 0, 0, 0},
    {"yi-34b", 0, 60, 7168, 20480, 56, 8, 128, 64000, 0, 0, 0, 0, 0},
    {"qwen2-7b", QKV_BIAS, 28, 3584, 18944, 28, 4, 128, 152064, 0, 0, 0, 0, 0},
    {"qwen2.5-7b", QKV_BIAS, 28, 3584, 18944, 28, 4, 128, 152064, 0, 0, 0, 0, 0},
    {"qwen2.5-14b", QKV_BIAS, 48, 5120, 13824, 40, 8, 128, 152064, 0, 0, 0, 0, 0},
    {"qwen2.5-32b", QKV_BIAS, 64, 5120, 27648, 40, 8, 128, 152064, 0, 0, 0, 0, 0},
    {"qwen2.5-72b", QKV_BIAS, 80, 8192, 29568, 64, 8, 128, 152064, 0, 0, 0, 0, 0},
    {"qwen3-8b", 0, 36, 4096, 12288, 32, 8, 128, 151936, 0, 0, 0, 0, 0},
    {"qwen3-14b", 0, 40, 5120, 17408, 40, 8, 128, 151936, 0, 0, 0, 0, 0},
    {"qwen3-32b", 0, 64, 5120, 25600, 64, 8, 128, 151936, 0, 0, 0, 0, 0},
    {"qwen3-30b-a3b", 0, 48, 2048, 0, 32, 4, 128, 151936, 0, 128, 8, 0, 768},
    {"qwen3-235b-a22b", 0, 94, 4096, 0, 64, 4, 128, 151936, 0, 128, 8, 0, 1536},
    {"mixtral-8x7b", 0, 32, 4096, 0, 32, 8, 128, 32000, 0, 8, 2, 0, 14336},
    {"mixtral-8x22b", 0, 56, 6144, 0, 48, 8, 128, 32768, 0, 8, 2, 0, 16384},
    {"deepseek-v2", MLA, 60, 5120, 12288, 128, 0, 0, 102400, 1, 160, 6, 2, 1536},
    {"deepseek-v3", MLA, 61, 7168, 18432, 128, 0, 0, 129280, 3, 256, 8, 1, 2048},
    {"gpt-7b", GPT, 32, 4096, 16384, 64, 64, 64, 50257, 0, 0, 0, 0, 0},
    {"gpt-13b", GPT, 40, 5120, 20480, 64, 64, 80, 50257, 0, 0, 0, 0, 0},
    {"gpt-30b", GPT, 60, 6656, 26624, 64, 64, 104, 50257, 0, 0, 0, 0, 0},
};

static hbp_model_fields expand_preset(const struct preset *p)
{
    int latent = p->kind == MLA;
    return (hbp_model_fields){
        .struct_size = sizeof(hbp_model_fields),
        .mlp = p->kind == GPT ? HBP_MLP_PLAIN : HBP_MLP_GATED,
        .tied_embeddings = p->kind == GPT,
        .layers = p->layers,
        .dense_layers = p->dense_layers,
        .hidden = p->hidden,
        .ffn = p->ffn,
        .heads = p->heads,
        .kv_heads = p->kv_heads,
        .head_dim = p->head_dim,
        .vocab = p->vocab,
        .experts = p->experts,
        .experts_active = p->experts_active,
        .experts_shared = p->experts_shared,
        .moe_ffn = p->moe_ffn,
        .mla_q_lora = latent ? 1536 : 0,
        .mla_kv_lora = latent ? 512 : 0,
        .mla_nope_dim = latent ? 128 : 0,
        .mla_rope_dim = latent ? 64 : 0,
        .mla_v_dim = latent ? 128 : 0,
        .qkv_bias = p->kind == QKV_BIAS,
    };
}

#define PRESETS ((int64_t)(sizeof presets / sizeof *presets))

const char *hbp__model_preset_name(int64_t index)
{
    return index >= 0 && index < PRESETS ? presets[index].name : NULL;
}

hbp_status hbp__model_make_preset(hbp_context *context, const char *name, hbp_model **out)
{
    for (int64_t i = 0; i < PRESETS; i++)
        if (strcmp(presets[i].name, name) == 0) {
            hbp_model_fields fields = expand_preset(&presets[i]);
            return hbp__model_make(context, name, &fields, out);
        }
    return hbp__fail_preset(context, "model", name, hbp__model_preset_name, PRESETS);
}
