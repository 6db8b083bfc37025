/* Kinds of model that config.json may describe and hbp_model_fields cannot. */
#ifndef HBP_IO_CONFIG_KINDS_H
#define HBP_IO_CONFIG_KINDS_H

#include "io/value/value.h"

/* HBP_E_FORMAT unless all layers of the model attend to all that came before: encoders, sliding windows,
 * layers without attention and layers that differ are named by the key that tells. `type` is the printable
 * model_type.
 */
hbp_status hbp__config_is_plain(hbp_context *context, const hbp__value *root, const char *type);

#endif
