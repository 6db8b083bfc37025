/* Machines by what people name: a profile's file or a preset; each with a number of nodes and with fields. */
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "base/options.h"
#include "hbp/io.h"
#include "io/file/file_error.h"
#include "io/file/given_path.h"
#include "io/file/stream.h"
#include "io/json/json_tree.h"
#include "io/machine/machine_profile.h"

static hbp_status load_file(hbp_context *context, const char *path, hbp_machine **out)
{
    char *text;
    int64_t bytes;
    HBP__TRY(hbp__read_file(context, path, HBP__JSON_MOST, &text, &bytes));
    hbp_status status = hbp__machine_read(context, hbp__show_path(path).text, text, bytes, out);
    hbp__delete(&context->memory, text);
    return status;
}

/* ":8": so many nodes of the one that the profile describes. */
static hbp_status set_nodes(hbp_context *context, hbp_machine *machine, const char *count, int64_t bytes)
{
    int64_t nodes, most = INT32_MAX / hbp__max_i64(machine->fields.gpus_per_node, 1);
    if (!hbp__read_whole(count, bytes, &nodes))
        return hbp__fail(context, HBP_E_INVALID, "nodes is '%.*s'; it must be a number in 1..%lld",
                         (int)hbp__min_i64(bytes, 64), count, (long long)most);
    HBP__TRY(hbp__check_range(context, "nodes", nodes, 1, most));
    return hbp__machine_set_field(context, machine, "nodes", (double)nodes, "given");
}

/* What stands behind the file's name, ":8,cores=96". */
static hbp_status set_rest(hbp_context *context, hbp_machine *machine, const char *text, const char *rest)
{
    const int has_count = *rest == ':';
    const size_t count = has_count ? strcspn(rest, ",") : 0;
    hbp__field_values fields = {0};
    hbp_status status = HBP_OK;
    if (rest[count])
        HBP__TRY(hbp__read_fields(context, &hbp__machine_field_names, text, rest + count + 1, &fields));
    if (has_count && fields.given >> HBP__MACHINE_nodes & 1)
        status = hbp__fail(context, HBP_E_INVALID, "nodes is given twice");
    else if (has_count)
        status = set_nodes(context, machine, rest + 1, (int64_t)count - 1);
    if (status >= 0)
        status = hbp__machine_set_values(context, machine, &fields);
    return status < 0 ? hbp__fail_in_text(context, status, "machine", text) : status;
}

static hbp_status load_machine(hbp_context *context, const char *text, hbp_machine **out)
{
    const size_t length = strlen(text), found = hbp__is_there(text) ? length : hbp__json_name(text, ":,"),
                 name = found ? found : length;
    char *path = hbp__new_text(&context->memory, text, name);
    if (!path)
        return hbp__fail_memory(context, "the name of a file");
    hbp_machine *machine = NULL;
    hbp_status status = load_file(context, path, &machine);
    hbp__delete(&context->memory, path);
    if (status >= 0 && text[name])
        status = set_rest(context, machine, text, text + name);
    if (status >= 0)
        *out = machine;
    else
        hbp_machine_free(machine);
    return status;
}

hbp_status hbp_machine_load(hbp_context *context, const char *path, hbp_machine **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, path, "path"));
    return load_machine(context, path, out);
}

hbp_status hbp_machine_create_text(hbp_context *context, const char *text, hbp_machine **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, text, "text"));
    const size_t name = strcspn(text, ":,"); /* behind a preset's may be a slash as well, 400Gb/s */
    const int is_file = strstr(text, ".json") != NULL || memchr(text, '/', name) != NULL;
    return is_file ? load_machine(context, text, out) : hbp__machine_create_preset(context, text, out);
}
