/* Objects described in one line, "NAME[:COUNT][,FIELD=VALUE...]": the reader of names and of fields. */
#ifndef HBP_BASE_FIELDS_H
#define HBP_BASE_FIELDS_H

#include <stdint.h>

#include "base/context.h"

/* A name of more bytes is none that the library has. */
#define HBP__FIELD_NAME_BYTES 65

/* No object described by a text has more fields. */
#define HBP__MOST_FIELDS 32

/* What others call a field: config.json, a driver, people. */
typedef struct hbp__other_word {
    const char *word, *field;
} hbp__other_word;

/* What messages call the object ("machine"), and its fields' names, 0 <= index < count; a value has a unit by
 * its field's name (base/quantity.h). */
typedef struct hbp__field_names {
    const char *what;
    const char *(*get)(int64_t index);
    int32_t count;
    const hbp__other_word *others; /* the last one's word is NULL; NULL: none */
    int32_t is_unsigned;           /* nonzero: no value is below 0 */
} hbp__field_names;

/* Fields as a text gives them; those that it does not name are 0. */
typedef struct hbp__field_values {
    uint32_t given; /* bit i: field i */
    double value[HBP__MOST_FIELDS];
} hbp__field_values;

/* Copies the name at the beginning of `text`, which any character of `ends` ends; what is too long for it is
 * cut. Returns where it ended. */
const char *hbp__take_name(const char *text, const char *ends, char name[HBP__FIELD_NAME_BYTES]);

/* The message of the context with the text that it is about before it; returns `status`. */
hbp_status hbp__fail_in_text(hbp_context *context, hbp_status status, const char *what, const char *text);

/* HBP_E_INVALID: "no machine preset 'h10'; the nearest is 'h100'", with all names where they are few. */
hbp_status hbp__fail_preset(hbp_context *context, const char *what, const char *name,
                            const char *(*get)(int64_t index), int64_t count);

/* HBP_E_INVALID: "`whose` no field 'hidden_size'; ..." with the field that is meant, or all of them. */
hbp_status hbp__fail_field(hbp_context *context, const hbp__field_names *names, const char *whose,
                           const char *name);

/* Reads "FIELD=VALUE,...", at least one, from `at` to the end of `text`, which it lies in. HBP_E_INVALID
 * names the text and the part of it that is wrong: no field of that name (and which is the nearest), a field
 * given twice, no number or a unit that is none of the field's. O(fields x count). */
hbp_status hbp__read_fields(hbp_context *context, const hbp__field_names *names, const char *text,
                            const char *at, hbp__field_values *out);

#endif
