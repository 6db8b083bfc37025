#include "objects.h"

#include <hbp/io.h>
#include <string.h>

static int ends_in_json(const char *text, size_t length)
{
    return length >= 5 && memcmp(text + length - 5, ".json", 5) == 0;
}

hbp_status objects_make_model(hbp_context *context, const char *text, hbp_model **out)
{
    return ends_in_json(text, strlen(text)) || ends_in_json(text, strcspn(text, ","))
               ? hbp_model_load(context, text, out)
               : hbp_model_create_preset(context, text, out);
}

hbp_status objects_make_machine(hbp_context *context, const char *text, hbp_machine **out)
{
    return ends_in_json(text, strlen(text)) ? hbp_machine_load(context, text, out)
                                            : hbp_machine_create_preset(context, text, out);
}
