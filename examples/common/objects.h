/* Models and machines from the texts that commands take for them: what --model, --machine and --set mean is
 * said once, for every program here. */
#ifndef HBP_EXAMPLES_OBJECTS_H
#define HBP_EXAMPLES_OBJECTS_H

#include <hbp/hbp.h>
#include <stdint.h>

#define OBJECTS_MESSAGE_BYTES 512

/* Each returns HBP_OK, or a status below 0 with one line in `message` [OBJECTS_MESSAGE_BYTES]; nothing is
 * made then. */

/* "llama-3.1-8b", a preset; "config.json", Hugging Face's; either with fields replaced behind it,
 * "llama-3.1-8b,layers=4,vocab=1024"; or fields alone, "layers=4,hidden=512,...". A model with fields
 * replaced is named "custom". A preset's head_dim and kv_heads stay where hidden or heads are replaced. */
hbp_status objects_make_model(hbp_context *context, const char *text, hbp_model **out, char *message);

/* "h100" or "h100:4", so many nodes of a preset; or "profile.json". */
hbp_status objects_make_machine(hbp_context *context, const char *text, hbp_machine **out, char *message);

/* Replaces fields of a machine: `nodes` unless 0, then those of `set`, "FIELD=X,...", unless NULL. */
hbp_status objects_set_machine(hbp_context *context, hbp_machine *machine, int64_t nodes, const char *set,
                               char *message);

#endif
