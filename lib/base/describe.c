/* The records, told to whoever asks (hbp/base.h, "Records"). */
#include <string.h>

#include "base/methods.h"
#include "base/options.h"
#include "base/records.h"

const char *hbp_record_get_struct_name(int64_t index)
{
    for (int64_t i = 0; hbp__record_at(i); i++)
        if (hbp__record_at(i)->of && !hbp__record_at(i)->name && index-- == 0)
            return hbp__record_at(i)->of;
    return NULL;
}

hbp_status hbp_record_get_field(const char *structure, int64_t index, hbp_field *field)
{
    const hbp__record *f = structure && index >= -1 ? hbp__record_of(structure) : NULL;
    for (int64_t i = -1; f && i < index; i++)
        f = f[1].name ? f + 1 : NULL;
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

/* Method `index` of a family as a choice. */
static hbp_status write_method(const hbp__methods *family, int64_t index, hbp_choice *choice)
{
    hbp_choice all = {.struct_size = sizeof all};
    int found = index >= 0 && index < family->count;
    if (found) {
        const hbp__method *row = &family->rows[index];
        all.value = (int32_t)index;
        all.name = row->name;
        all.paper = row->paper;
        all.text = row->text;
    }
    return hbp__view_write(choice, found ? family : NULL, &all, sizeof all);
}

hbp_status hbp_record_get_choice(const char *of, int64_t index, hbp_choice *choice)
{
    const hbp__choice *found = NULL, *row;
    const hbp__methods *family = hbp__methods_of(of);
    if (family)
        return write_method(family, index, choice);
    for (int64_t i = 0; of && index >= 0 && !found && (row = hbp__choice_at(i)) != NULL; i++)
        if (strcmp(row->of, of) == 0 && index-- == 0)
            found = row;
    hbp_choice all = {.struct_size = sizeof all};
    if (found)
        all = (hbp_choice){.struct_size = sizeof all,
                           .value = found->value,
                           .name = found->name,
                           .constant = found->constant,
                           .text = found->text};
    return hbp__view_write(choice, found, &all, sizeof all);
}
