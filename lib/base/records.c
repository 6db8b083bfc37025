/* The records, looked up: ranges are checked by them, and whoever asks is told (hbp/base.h, "Records"). */
#include "base/records.h"

#include <stddef.h>
#include <string.h>

#include "base/checked.h"
#include "base/options.h"
#include "hbp/hbp.h"
#include "hbp/io.h"

#define CHOICE(...)
#define STRUCT(of, text)                                                                                     \
    {#of, NULL, NULL, NULL, NULL, text, HBP_FIELD_STRUCT, HBP__CHECK_NONE, 0, (uint32_t)sizeof(of),          \
     0,   0,    0,    0},
#define FIELD(of, name, type, declared, check, least, most, choices, shape, text)                            \
    {#of,                                                                                                    \
     #name,                                                                                                  \
     declared,                                                                                               \
     choices,                                                                                                \
     shape,                                                                                                  \
     text,                                                                                                   \
     HBP_FIELD_##type,                                                                                       \
     check,                                                                                                  \
     (uint32_t)offsetof(of, name),                                                                           \
     (uint32_t)sizeof(((of *)0)->name),                                                                      \
     (double)(least),                                                                                        \
     (double)(most),                                                                                         \
     (int64_t)(least),                                                                                       \
     (int64_t)(most)},
#define NONE  HBP__CHECK_NONE
#define FLAG  HBP__CHECK_FLAG
#define RANGE HBP__CHECK_RANGE
static const hbp__record records[] = {
#include "base/records.inc"
};
#undef CHOICE
#undef STRUCT
#undef FIELD
enum { RECORDS = sizeof records / sizeof *records };

#define STRUCT(...)
#define FIELD(...)
#define CHOICE(of, constant, name, text) {constant, name, #constant, text, of},
static const struct choice_row {
    int32_t value;
    const char *name, *constant, *text, *of;
} choices[] = {
#include "base/records.inc"
};
enum { CHOICES = sizeof choices / sizeof *choices };

const hbp__record *hbp__record_of(const char *structure)
{
    for (int64_t i = 0; i < RECORDS; i++)
        if (!records[i].name && strcmp(records[i].of, structure) == 0)
            return &records[i];
    return NULL;
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

hbp_status hbp__records_check(hbp_context *context, const char *structure, const void *options)
{
    const hbp__record *of = hbp__record_of(structure);
    for (const hbp__record *f = of ? of + 1 : NULL; f && f < records + RECORDS && f->name; f++)
        if (f->check == HBP__CHECK_RANGE)
            HBP__TRY(check_field(context, f, options));
    return HBP_OK;
}

const char *hbp_record_get_struct_name(int64_t index)
{
    for (int64_t i = 0; i < RECORDS; i++)
        if (!records[i].name && index-- == 0)
            return records[i].of;
    return NULL;
}

hbp_status hbp_record_get_field(const char *structure, int64_t index, hbp_field *field)
{
    const hbp__record *f = structure ? hbp__record_of(structure) : NULL, *end = records + RECORDS;
    if (index < -1)
        f = NULL;
    for (int64_t i = -1; f && i < index; i++)
        f = f + 1 < end && f[1].name ? f + 1 : NULL;
    hbp_field all = {.struct_size = sizeof all};
    if (f)
        all = (hbp_field){.struct_size = sizeof all,
                          .type = f->type,
                          .offset = (int32_t)f->offset,
                          .bytes = (int32_t)f->bytes,
                          .name = f->name ? f->name : f->of,
                          .declared = f->declared,
                          .shape = f->shape,
                          .choices = f->choices,
                          .text = f->text,
                          .is_flag = f->check == HBP__CHECK_FLAG,
                          .is_ranged = f->check == HBP__CHECK_RANGE,
                          .least = f->least_whole,
                          .most = f->most_whole,
                          .least_real = f->least,
                          .most_real = f->most};
    return hbp__view_write(field, f, &all, sizeof all);
}

hbp_status hbp_record_get_choice(const char *of, int64_t index, hbp_choice *choice)
{
    const struct choice_row *found = NULL;
    for (int64_t i = 0; of && index >= 0 && i < CHOICES && !found; i++)
        if (strcmp(choices[i].of, of) == 0 && index-- == 0)
            found = &choices[i];
    hbp_choice all = {.struct_size = sizeof all};
    if (found)
        all = (hbp_choice){.struct_size = sizeof all,
                           .value = found->value,
                           .name = found->name,
                           .constant = found->constant,
                           .text = found->text};
    return hbp__view_write(choice, found, &all, sizeof all);
}
