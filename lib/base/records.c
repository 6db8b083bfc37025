/* The records as a table, one row after the other. */
#include "base/records.h"

#include <stddef.h>
#include <string.h>

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
#define NONE   HBP__CHECK_NONE
#define FLAG   HBP__CHECK_FLAG
#define RANGE  HBP__CHECK_RANGE
#define METHOD HBP__CHECK_METHOD
static const hbp__record records[] = {
#include "base/records.inc"
    {NULL, NULL, NULL, NULL, NULL, NULL, HBP_FIELD_STRUCT, HBP__CHECK_NONE, 0, 0, 0, 0, 0, 0}};
#undef CHOICE
#undef STRUCT
#undef FIELD
enum { RECORDS = sizeof records / sizeof *records };

#define STRUCT(...)
#define FIELD(...)
#define CHOICE(of, constant, name, text) {constant, name, #constant, text, of},
static const hbp__choice choices[] = {
#include "base/records.inc"
};
enum { CHOICES = sizeof choices / sizeof *choices };

const hbp__record *hbp__record_of(const char *structure)
{
    for (int64_t i = 0; i < RECORDS; i++)
        if (!records[i].name && records[i].of && strcmp(records[i].of, structure) == 0)
            return &records[i];
    return NULL;
}

const hbp__record *hbp__record_at(int64_t index)
{
    return index >= 0 && index < RECORDS ? &records[index] : NULL;
}

const hbp__choice *hbp__choice_at(int64_t index)
{
    return index >= 0 && index < CHOICES ? &choices[index] : NULL;
}
