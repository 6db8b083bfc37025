/* Hugging Face's config.json as a model. */
#ifndef HBP_IO_MODEL_CONFIG_H
#define HBP_IO_MODEL_CONFIG_H

#include <stdint.h>

#include "data/model/model.h"

/* The name of the file in a checkout, which messages begin with. */
#define HBP__CONFIG_NAME "config.json"

/* hbp_model_create_config within a call. *out is set on success alone. */
hbp_status hbp__config_read(hbp_context *context, const char *json, int64_t bytes, hbp_model **out);

#endif
