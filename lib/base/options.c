#include "base/options.h"

#include <string.h>

#include "base/checked.h"
#include "base/methods.h"
#include "base/records.h"

void hbp__struct_init(void *structure, uint32_t struct_size)
{
    if (!structure || struct_size < sizeof struct_size || struct_size > HBP__MOST_STRUCT)
        return;
    memset(structure, 0, struct_size);
    memcpy(structure, &struct_size, sizeof struct_size);
}

static hbp_status read_size(hbp_context *context, const void *caller, const char *name, uint32_t *size)
{
    memcpy(size, caller, sizeof *size);
    if (*size < sizeof *size)
        return hbp__fail(context, HBP_E_INVALID, "%s.struct_size is %u; set it to sizeof", name,
                         (unsigned)*size);
    if (*size > HBP__MOST_STRUCT)
        return hbp__fail(context, HBP_E_INVALID, "%s.struct_size is %u; it is at most %d: set it to sizeof",
                         name, (unsigned)*size, HBP__MOST_STRUCT);
    return HBP_OK;
}

static hbp_status check_field(hbp_context *context, const hbp__record *field, const void *options)
{
    const char *at = (const char *)options + field->offset;
    int32_t small;
    int64_t whole;
    double real;
    if (field->type == HBP_FIELD_DOUBLE) {
        memcpy(&real, at, sizeof real);
        if (hbp__lies_in(real, field->least, field->most))
            return HBP_OK;
        return hbp__fail(context, HBP_E_INVALID, "`%s` is %g; it must be in %g..%g", field->name, real,
                         field->least, field->most);
    }
    if (field->type == HBP_FIELD_INT32) {
        memcpy(&small, at, sizeof small);
        whole = small;
    } else {
        memcpy(&whole, at, sizeof whole);
    }
    return hbp__check_range(context, field->name, whole, field->least_whole, field->most_whole);
}

static hbp_status check_method(hbp_context *context, const hbp__record *field, const void *options)
{
    const char *name;
    memcpy(&name, (const char *)options + field->offset, sizeof name);
    return hbp__method_check(context, hbp__methods_of(field->choices), field->name, name);
}

static hbp_status check_fields(hbp_context *context, const hbp__record *of, const void *options)
{
    for (const hbp__record *f = of ? of + 1 : NULL; f && f->name; f++)
        if (f->check == HBP__CHECK_RANGE)
            HBP__TRY(check_field(context, f, options));
        else if (f->check == HBP__CHECK_METHOD)
            HBP__TRY(check_method(context, f, options));
    return HBP_OK;
}

hbp_status hbp__options_check(hbp_context *context, const char *structure, const void *options)
{
    return check_fields(context, hbp__record_of(structure), options);
}

/* Names of methods become the registry's own texts, the default's where there is none. */
static void settle_methods(const hbp__record *of, void *options)
{
    for (const hbp__record *f = of ? of + 1 : NULL; f && f->name; f++) {
        if (f->check != HBP__CHECK_METHOD)
            continue;
        const hbp__methods *family = hbp__methods_of(f->choices);
        const char *name;
        memcpy(&name, (char *)options + f->offset, sizeof name);
        name = family->rows[hbp__method_of(family, name)].name;
        memcpy((char *)options + f->offset, &name, sizeof name);
    }
}

/* A field in whose middle the caller's struct ends is not given: half a pointer is none. */
static void drop_cut_field(const hbp__record *of, uint32_t size, void *options)
{
    for (const hbp__record *f = of ? of + 1 : NULL; f && f->name; f++)
        if (f->offset < size && f->offset + f->bytes > size)
            memset((char *)options + f->offset, 0, f->bytes);
}

hbp_status hbp__options_read(hbp_context *context, void *all, uint32_t known_size, const void *caller,
                             const char *name)
{
    memset(all, 0, known_size);
    uint32_t size = known_size;
    if (caller) {
        HBP__TRY(read_size(context, caller, name, &size));
        memcpy(all, caller, size < known_size ? size : known_size);
        for (uint32_t i = known_size; i < size; i++)
            if (((const unsigned char *)caller)[i])
                return hbp__fail(context, HBP_E_VERSION,
                                 "%s has %u bytes and sets a field past the %u this library knows", name,
                                 (unsigned)size, (unsigned)known_size);
    }
    memcpy(all, &known_size, sizeof known_size);
    const hbp__record *of = hbp__record_of(name);
    drop_cut_field(of, size, all);
    HBP__TRY(check_fields(context, of, all));
    settle_methods(of, all);
    return HBP_OK;
}

/* What fits of `result`; a caller that knows more fields finds zeros there. */
static void write_struct(void *caller, uint32_t size, const void *result, uint32_t known_size)
{
    hbp__struct_init(caller, size);
    memcpy(caller, result, size < known_size ? size : known_size);
    memcpy(caller, &size, sizeof size);
}

hbp_status hbp__struct_write(hbp_context *context, void *caller, const void *result, uint32_t known_size,
                             const char *name)
{
    HBP__TRY(hbp__require(context, caller, name));
    uint32_t size;
    HBP__TRY(read_size(context, caller, name, &size));
    write_struct(caller, size, result, known_size);
    return HBP_OK;
}

hbp_status hbp__view_write(void *caller, const void *object, const void *view, uint32_t known_size)
{
    uint32_t size;
    if (!caller)
        return HBP_E_INVALID;
    HBP__TRY(read_size(NULL, caller, "", &size));
    write_struct(caller, size, view, object ? known_size : 0);
    return object ? HBP_OK : HBP_E_INVALID;
}

hbp_status hbp__check_range(hbp_context *context, const char *name, int64_t value, int64_t least,
                            int64_t most)
{
    if (value >= least && value <= most)
        return HBP_OK;
    return hbp__fail(context, HBP_E_INVALID, "`%s` is %lld; it must be in %lld..%lld", name, (long long)value,
                     (long long)least, (long long)most);
}

hbp_status hbp__check_ranges(hbp_context *context, const hbp__range *fields, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        HBP__TRY(hbp__check_range(context, fields[i].name, fields[i].value, fields[i].least, fields[i].most));
    return HBP_OK;
}
