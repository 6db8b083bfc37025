/* Models and machines from the texts that commands take for them: a file, or what the library reads. */
#ifndef HBP_EXAMPLES_OBJECTS_H
#define HBP_EXAMPLES_OBJECTS_H

#include <hbp/hbp.h>

/* Both leave *out NULL where they fail. */

/* "config.json", Hugging Face's, also with fields replaced behind it, "config.json,layers=4"; else a text of
 * hbp_model_create_preset. */
hbp_status objects_make_model(hbp_context *context, const char *text, hbp_model **out);

/* "profile.json", else a text of hbp_machine_create_preset. */
hbp_status objects_make_machine(hbp_context *context, const char *text, hbp_machine **out);

#endif
