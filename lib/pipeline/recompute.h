/* What recomputes: one stage's layers as those see them who choose, the published rule and the optimum. */
#ifndef HBP_PIPELINE_RECOMPUTE_H
#define HBP_PIPELINE_RECOMPUTE_H

#include <stdint.h>

#include "base/context.h"
#include "data/pipeline/layers.h"
#include "hbp/pipeline.h"
#include "pipeline/shortage.h"
#include "simulate/pipeline/stage_times.h"

/* The layers of a stage by groups: those of one chunk and type, whose bytes are weighed by what that many
 * micro-batches in flight hold. */
typedef struct hbp__recompute_stage {
    const hbp_layers *layers;
    int32_t stage;
    int32_t count;
    int32_t groups;
    int32_t *layer;                    /* [count] by group, ascending within */
    int32_t *group;                    /* [count] */
    double *weight;                    /* [groups] */
    double live[HBP_LAYER_TYPES];      /* weight of a layer's working bytes */
    double time[HBP_LAYER_TYPES];      /* weight of its time: of the mean micro-batch */
    int64_t measured[HBP_LAYER_TYPES]; /* bytes that one recomputed layer frees; 0: by the columns */
    int64_t base;                      /* states, and what measured types keep when all are recomputed */
    int64_t limit;                     /* INT64_MAX: none */
    hbp__shortage *shortage;           /* the caller's, written where nothing fits */
} hbp__recompute_stage;

/* Reads stage `stage`, into scratch, but for its shortage; checks nothing. O(its layers + its chunks). */
hbp_status hbp__recompute_open(hbp_context *context, const hbp_layers *layers, const int32_t *cuts,
                               const hbp_pipeline_options *pipeline, const hbp_recompute_options *options,
                               const hbp__live *live, int32_t stage, hbp__recompute_stage *out);

/* Of the place `i` in the stage's list: bytes before their group's weight; bytes in recomputation; time. */
int64_t hbp__recompute_size(const hbp__recompute_stage *stage, int32_t i, int32_t choice);
int64_t hbp__recompute_working(const hbp__recompute_stage *stage, int32_t i, int32_t choice);
int64_t hbp__recompute_ns(const hbp__recompute_stage *stage, int32_t i, int32_t choice);

/* hbp_choose_recompute within a call; `report` may be NULL. HBP_E_INFEASIBLE without a message: *shortage
 * says what lacks. */
hbp_status hbp__choose_recompute(hbp_context *context, const hbp_layers *layers, const int32_t *cuts,
                                 const hbp_pipeline_options *pipeline, const hbp_recompute_options *options,
                                 int32_t *choices, hbp_recompute_report *report, hbp__shortage *shortage);

/* Peak bytes and added time under `choices` [all layers]; without measured bytes a layer the first is
 * hbp__stage_peak_bytes. O(layers of the stage). */
int64_t hbp__recompute_need(const hbp__recompute_stage *stage, const int32_t *choices);
int64_t hbp__recompute_added_ns(const hbp__recompute_stage *stage, const int32_t *choices);

/* Whether recomputing the whole layer frees anything: otherwise it is never asked to. */
static inline int hbp__recompute_frees(const hbp_layers *layers, int32_t layer)
{
    return layers->activation_bytes[layer] > layers->recomputed_bytes[layer];
}

/* Every layer recomputed, of those that free anything. */
void hbp__recompute_all(const hbp__recompute_stage *stage, int32_t *choices);

/* HBP_E_INFEASIBLE without a message; the stage's shortage says what it needs `how`. */
hbp_status hbp__recompute_short(const hbp__recompute_stage *stage, int64_t need, const char *how);

/* The published rule (OmniBal, section 3.4). */
hbp_status hbp__recompute_paper(const hbp__recompute_stage *stage, int32_t *choices);

/* The least time within the limit; *work as in hbp__multiple_choice_solve. `selective`: HBP_SELECT_*, or-ed.
 */
hbp_status hbp__recompute_optimal(hbp_context *context, const hbp__recompute_stage *stage, int32_t selective,
                                  int64_t *work, int32_t *choices, int *proven);

#endif
