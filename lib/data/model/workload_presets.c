/* Published models of many tasks, one row a component and one a task (docs: workloads, which says what is
 * known of each number and what is assumed).
 */
#include "data/model/workload_presets.h"

#include <string.h>

#include "base/fields.h"
#include "data/model/model.h"

#define COUNT(rows) ((int32_t)(sizeof(rows) / sizeof *(rows)))

/* Multitask-CLIP: the towers of ImageBind's "huge" model and their tokens at its resolutions. */
enum { VISION, TEXT, AUDIO, DEPTH, THERMAL, MOTION, CONTRAST };

static const hbp__component clip_components[] = {
    [VISION] = {"vision", HBP__COMPONENT_ENCODER, 32, 1280, 5120, 16, 0, 1834240, 1310720},
    [TEXT] = {"text", HBP__COMPONENT_ENCODER, 24, 1024, 4096, 16, 0, 50672640, 1048576},
    [AUDIO] = {"audio", HBP__COMPONENT_ENCODER, 12, 768, 3072, 12, 0, 372480, 786432},
    [DEPTH] = {"depth", HBP__COMPONENT_ENCODER, 12, 384, 1536, 8, 0, 173952, 393216},
    [THERMAL] = {"thermal", HBP__COMPONENT_ENCODER, 12, 768, 3072, 12, 0, 347904, 786432},
    [MOTION] = {"motion", HBP__COMPONENT_ENCODER, 6, 512, 2048, 8, 0, 153088, 524288},
    [CONTRAST] = {"contrast", HBP__COMPONENT_CONTRAST, 1, 1024, 0, 0, 0, 0, 0},
};

#define VISION_TOKENS  257
#define TEXT_TOKENS    77
#define AUDIO_TOKENS   229
#define DEPTH_TOKENS   197
#define THERMAL_TOKENS 197
#define MOTION_TOKENS  251

/* Two towers side by side, then the loss of their embeddings. */
#define CLIP_BATCH 160
#define PAIR(name, one, other)                                                                               \
    {                                                                                                        \
        name, 3,                                                                                             \
        {                                                                                                    \
            {one, CLIP_BATCH, one##_TOKENS, 0}, {other, CLIP_BATCH, other##_TOKENS, 0},                      \
            {                                                                                                \
                CONTRAST, CLIP_BATCH, 1, 3                                                                   \
            }                                                                                                \
        }                                                                                                    \
    }

static const hbp__task_shape clip_tasks[] = {
    PAIR("vision-text", VISION, TEXT),       PAIR("audio-motion", AUDIO, MOTION),
    PAIR("vision-motion", VISION, MOTION),   PAIR("vision-depth", VISION, DEPTH),
    PAIR("vision-thermal", VISION, THERMAL), PAIR("motion-text", MOTION, TEXT),
    PAIR("vision-audio", VISION, AUDIO),     PAIR("thermal-text", THERMAL, TEXT),
    PAIR("depth-text", DEPTH, TEXT),         PAIR("audio-text", AUDIO, TEXT),
};

/* OFASys: adaptors of modalities before one encoder-decoder, OFA-large's. */
enum { IMAGE, SOUND, VIDEO, POSE, BOX, JOINT, WRITER };

static const hbp__component ofasys_components[] = {
    [IMAGE] = {"image", HBP__COMPONENT_ENCODER, 12, 768, 3072, 12, 0, 741120, 787456},
    [SOUND] = {"sound", HBP__COMPONENT_ENCODER, 12, 768, 3072, 12, 0, 372480, 787456},
    [VIDEO] = {"video", HBP__COMPONENT_ENCODER, 6, 768, 3072, 12, 0, 1195008, 787456},
    [POSE] = {"pose", HBP__COMPONENT_ENCODER, 8, 512, 2048, 8, 0, 153088, 525312},
    [BOX] = {"box", HBP__COMPONENT_ENCODER, 4, 512, 2048, 8, 0, 512000, 525312},
    [JOINT] = {"encoder", HBP__COMPONENT_ENCODER, 12, 1024, 4096, 16, 0, 1048576, 0},
    [WRITER] = {"decoder", HBP__COMPONENT_DECODER, 12, 1024, 4096, 16, 59457, 1048576, 0},
};

/* An adaptor of `tokens`, the encoder over them and the prompt, the decoder over the answer. */
#define ADAPTED(name, adaptor, batch, tokens, prompt, answer)                                                \
    {                                                                                                        \
        name, 3,                                                                                             \
        {                                                                                                    \
            {adaptor, batch, tokens, 0}, {JOINT, batch, (tokens) + (prompt), 1},                             \
            {                                                                                                \
                WRITER, batch, answer, 2                                                                     \
            }                                                                                                \
        }                                                                                                    \
    }

static const hbp__task_shape ofasys_tasks[] = {
    ADAPTED("captioning", IMAGE, 192, 197, 59, 64),
    ADAPTED("recognition", SOUND, 192, 229, 27, 64),
    {"summarising", 2, {{JOINT, 192, 512, 0}, {WRITER, 192, 128, 1}}},
    ADAPTED("grounding", IMAGE, 192, 197, 59, 16),
    ADAPTED("video-answering", VIDEO, 96, 788, 44, 32),
    ADAPTED("pose-captioning", POSE, 192, 251, 5, 64),
    {"box-captioning",
     4,
     {{IMAGE, 192, 197, 0}, {BOX, 192, 64, 0}, {JOINT, 192, 293, 3}, {WRITER, 192, 64, 4}}},
};

/* QWen-VAL: Qwen-VL's and Qwen-Audio's encoders before one language model. */
enum { EYE, EAR, LANGUAGE };

static const hbp__component qwen_components[] = {
    [EYE] = {"vision", HBP__COMPONENT_ENCODER, 48, 1664, 8192, 16, 0, 2682368, 80000000},
    [EAR] = {"audio", HBP__COMPONENT_ENCODER, 32, 1280, 5120, 20, 0, 7142400, 5242880},
    [LANGUAGE] = {"language", HBP__COMPONENT_LANGUAGE, 32, 4096, 11008, 32, 32000, 131072000, 0},
};

static const hbp__component qwen_30b_components[] = {
    [EYE] = {"vision", HBP__COMPONENT_ENCODER, 48, 1664, 8192, 16, 0, 2682368, 80000000},
    [EAR] = {"audio", HBP__COMPONENT_ENCODER, 32, 1280, 5120, 20, 0, 7142400, 7864320},
    [LANGUAGE] = {"language", HBP__COMPONENT_LANGUAGE, 60, 6144, 16384, 48, 32000, 196608000, 0},
};

static const hbp__task_shape qwen_tasks[] = {
    {"vision-language", 2, {{EYE, 32, 1024, 0}, {LANGUAGE, 32, 512, 1}}},
    {"audio-language", 2, {{EAR, 32, 1500, 0}, {LANGUAGE, 32, 512, 1}}},
    {"vision-audio-language", 3, {{EYE, 32, 1024, 0}, {EAR, 32, 1500, 0}, {LANGUAGE, 32, 1024, 3}}},
};

static const hbp__workload workloads[] = {
    {"clip-4", clip_components, COUNT(clip_components), clip_tasks, 4, 0},
    {"clip-7", clip_components, COUNT(clip_components), clip_tasks, 7, 0},
    {"clip-10", clip_components, COUNT(clip_components), clip_tasks, COUNT(clip_tasks), 0},
    {"ofasys-4", ofasys_components, COUNT(ofasys_components), ofasys_tasks, 4, 0},
    {"ofasys-7", ofasys_components, COUNT(ofasys_components), ofasys_tasks, COUNT(ofasys_tasks), 0},
    {"qwen-val-3", qwen_components, COUNT(qwen_components), qwen_tasks, COUNT(qwen_tasks), 1},
    {"qwen-val-3-30b", qwen_30b_components, COUNT(qwen_30b_components), qwen_tasks, COUNT(qwen_tasks), 1},
};

const hbp__workload *hbp__workload_get(int64_t index)
{
    return index >= 0 && index < COUNT(workloads) ? &workloads[index] : NULL;
}

const char *hbp__workload_name(int64_t index)
{
    const hbp__workload *workload = hbp__workload_get(index);
    return workload ? workload->name : NULL;
}

hbp_status hbp__workload_find(hbp_context *context, const char *name, const hbp__workload **found)
{
    for (int64_t i = 0; i < COUNT(workloads); i++)
        if (strcmp(workloads[i].name, name) == 0) {
            *found = &workloads[i];
            return HBP_OK;
        }
    return hbp__fail_preset(context, "workload", name, hbp__workload_name, COUNT(workloads));
}

int64_t hbp_workload_get_preset_parameters(int64_t index)
{
    const hbp__workload *workload = hbp__workload_get(index);
    if (!workload)
        return -1;
    int64_t sum = 0;
    for (int32_t i = 0; i < workload->components; i++)
        sum += hbp__component_parameters(&workload->component[i]);
    return sum;
}

/* The numbers of a layer come from the cost model's formulas; attention across to an encoder's output is a
 * second attention, over as many tokens. */
hbp__component_layer hbp__component_layer_of(const hbp__component *component)
{
    hbp__component_layer layer = {0};
    if (component->kind == HBP__COMPONENT_CONTRAST)
        return layer;
    hbp_model_fields fields = {
        .mlp = component->kind == HBP__COMPONENT_LANGUAGE ? HBP_MLP_GATED : HBP_MLP_PLAIN,
        .layers = component->layers,
        .hidden = component->hidden,
        .ffn = component->ffn,
        .heads = component->heads,
        .kv_heads = component->heads,
        .head_dim = component->hidden / component->heads,
    };
    hbp__layer_shape shape;
    hbp__model_layer(&fields, 0, &shape); /* of a table above: nothing overflows */
    int32_t attentions = component->kind == HBP__COMPONENT_DECODER ? 2 : 1;
    layer.attention_parameters = attentions * shape.attention_parameters;
    layer.parameters = layer.attention_parameters + shape.mlp_parameters;
    layer.activation_bytes = attentions * shape.attention_bytes + shape.mlp_bytes;
    /* Masked scores count 1, unmasked ones 2, a decoder's own and those across 3. */
    layer.attention_flops = shape.attention_flops * (component->kind == HBP__COMPONENT_ENCODER   ? 2
                                                     : component->kind == HBP__COMPONENT_DECODER ? 3
                                                                                                 : 1);
    return layer;
}

int64_t hbp__component_parameters(const hbp__component *component)
{
    return component->layers * hbp__component_layer_of(component).parameters + component->first_parameters +
           component->last_parameters + (int64_t)component->vocab * component->hidden;
}
