/* Values as the library reads them beside what Jansson makes of the same. */
#ifndef HBP_TESTS_DOCUMENTS_H
#define HBP_TESTS_DOCUMENTS_H

#include <jansson.h>

#include "io/value/value.h"
#include "test.h"

static inline void same_as_jansson(const hbp__value *value, json_t *expected)
{
    const char *key;
    json_t *member;
    switch (json_typeof(expected)) {
    case JSON_OBJECT:
        ck_assert(value->kind == HBP__MAP && value->count == json_object_size(expected));
        json_object_foreach(expected, key, member) same_as_jansson(hbp__value_find(value, key), member);
        break;
    case JSON_ARRAY:
        ck_assert(value->kind == HBP__LIST && value->count == json_array_size(expected));
        for (uint32_t i = 0; i < value->count; i++)
            same_as_jansson(hbp__value_at(value, i), json_array_get(expected, i));
        break;
    case JSON_STRING:
        ck_assert_str_eq(hbp__value_text(value), json_string_value(expected));
        ck_assert_uint_eq(value->count, json_string_length(expected));
        break;
    case JSON_INTEGER:
        ck_assert(value->kind == HBP__WHOLE && value->of.whole == json_integer_value(expected));
        break;
    case JSON_REAL:
        ck_assert(value->kind == HBP__REAL && value->of.real == json_real_value(expected));
        break;
    case JSON_NULL:
        ck_assert_int_eq(value->kind, HBP__NOTHING);
        break;
    default:
        ck_assert(value->kind == HBP__BOOLEAN && hbp__value_is_true(value) == json_is_true(expected));
    }
}

#endif
