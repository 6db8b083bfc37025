/* The inside of a model. */
#ifndef HBP_DATA_MODEL_H
#define HBP_DATA_MODEL_H

#include "base/context.h"
#include "hbp/model.h"

#define HBP__NAME_BYTES 64

struct hbp_model {
    hbp__memory memory;
    char name[HBP__NAME_BYTES];
    hbp_model_fields fields; /* defaults filled in */
    hbp_model_summary summary;
};

/* Makes a model named `name` from fields, checked and completed. */
hbp_status hbp__model_make(hbp_context *context, const char *name, const hbp_model_fields *fields,
                           hbp_model **out);

#endif
