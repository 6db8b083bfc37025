/* Which layers recompute their activations, so that every pipeline stage fits (OmniBal, section 3.4). */
#ifndef HBP_RECOMPUTE_H
#define HBP_RECOMPUTE_H

#include <stdint.h>

#include "hbp/context.h"
#include "hbp/layers.h"
#include "hbp/pipeline.h"

enum {
    HBP_MEMORY_OPTIMAL = 0, /* on each stage the least time that fits */
    HBP_MEMORY_PAPER = 1,   /* the published rule: whole layers, language layers released first, the first
                               layers of a stage stay recomputed */
    HBP_MEMORY_ALL = 2,     /* every layer recomputes that keeps less so */
    HBP_MEMORY_NONE = 3     /* no layer does; HBP_E_INFEASIBLE when that does not fit */
};

/* Which choices mode optimal has besides whole layers. */
enum { HBP_SELECT_ATTENTION = 1, HBP_SELECT_MLP = 2 };

HBP_BEGIN_DECLS

typedef struct hbp_recompute_options {
    uint32_t struct_size;
    int32_t mode;      /* HBP_MEMORY_* */
    int32_t selective; /* HBP_SELECT_*, or-ed; 0: both; -1: whole layers alone */
    int32_t reserved;
    /* [S] free at the peak with every layer recomputed, as measured, after the reserve; takes the place of
     * limit_bytes. NULL: what limit_bytes leaves of the columns' peak. */
    const int64_t *measured_free_bytes;
    /* Freed by recomputing one vision layer, and one language layer, over all micro-batches in flight:
     * hbp_fit_layer_bytes. Columns then say only in what proportion a layer's parts free it. 0: the columns'.
     */
    int64_t measured_vision_bytes;
    int64_t measured_language_bytes;
} hbp_recompute_options;

HBP_API void hbp_recompute_options_init(hbp_recompute_options *options, uint32_t struct_size);

typedef struct hbp_recompute_report {
    uint32_t struct_size;
    int32_t proven;       /* nonzero: on no stage is there a choice of less time that fits */
    int32_t recomputed;   /* layers recomputed in whole */
    int32_t selective;    /* layers recomputed in part */
    int64_t recompute_ns; /* of the mean micro-batch over all stages, each of speed 1 */
    int64_t saved_ns; /* against recomputing every layer; negative where only parts of layers free memory */
    int64_t slack_bytes; /* left on the fullest stage; INT64_MAX where nothing limits */
} hbp_recompute_report;

HBP_API void hbp_recompute_report_init(hbp_recompute_report *report, uint32_t struct_size);

/* Chooses for every layer, stage by stage. `pipeline` gives stages, schedule, micro-batches and limits (its
 * `recompute` is not read): stage s of 1F1B keeps min(M, S - s) micro-batches, and the largest of them are
 * counted. `choices` [layers] gets HBP_RECOMPUTE_*; `report` may be NULL. HBP_E_INFEASIBLE names the stage
 * that does not fit whatever is recomputed, and the bytes it lacks. Mode optimal is exact, as a rule also on
 * stages of a thousand layers that all differ (docs: recompute); HBP_NOT_PROVEN (> 0), with a choice that
 * fits, when its search ended at a limit. Thread: one per context. */
HBP_API hbp_status hbp_choose_recompute(hbp_context *context, const hbp_layers *layers, const int32_t *cuts,
                                        const hbp_pipeline_options *pipeline,
                                        const hbp_recompute_options *options, int32_t *choices,
                                        hbp_recompute_report *report);

/* The bytes that one vision and one language layer free, from two measurements (one of the first, one of the
 * last stage): vision_layers[i] x + language_layers[i] y = freed_bytes[i], i = 0, 1. HBP_E_INFEASIBLE when
 * the two cannot tell x from y, or when one comes out negative (the message says which). *x, *y are rounded
 * down. Thread: one per context. */
HBP_API hbp_status hbp_fit_layer_bytes(hbp_context *context, const int32_t vision_layers[2],
                                       const int32_t language_layers[2], const int64_t freed_bytes[2],
                                       int64_t *vision_bytes, int64_t *language_bytes);

HBP_END_DECLS

#endif
