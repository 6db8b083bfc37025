#include "objects.h"

#include <hbp/io.h>
#include <string.h>

#define PATH_BYTES 4096

static int ends_in_json(const char *text, size_t length)
{
    return length >= 5 && memcmp(text + length - 5, ".json", 5) == 0;
}

hbp_status objects_make_model(hbp_context *context, const char *text, hbp_model **out)
{
    /* A comma may be part of a file's name: the whole text is one when it ends as one. */
    size_t length = ends_in_json(text, strlen(text)) ? strlen(text) : strcspn(text, ",");
    if (!ends_in_json(text, length))
        return hbp_model_create_preset(context, text, out);
    char path[PATH_BYTES];
    if (!text[length] || length >= sizeof path)
        return hbp_model_load(context, text, out);
    memcpy(path, text, length);
    path[length] = 0;
    hbp_model *base = NULL;
    hbp_status status = hbp_model_load(context, path, &base);
    if (status >= 0)
        status = hbp_model_create_variant(context, base, text + length + 1, out);
    hbp_model_free(base);
    return status;
}

hbp_status objects_make_machine(hbp_context *context, const char *text, hbp_machine **out)
{
    return ends_in_json(text, strlen(text)) ? hbp_machine_load(context, text, out)
                                            : hbp_machine_create_preset(context, text, out);
}
