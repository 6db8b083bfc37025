#include "failing.h"

#include "io/json/json_tree.h"

static void parse(hbp_context *context, const char *text, hbp__document *document)
{
    OK(context, hbp__json_tree(context, "x", text, (int64_t)strlen(text), document));
}

START_TEST(values_are_found_and_walked)
{
    hbp_context *context = test_context();
    hbp__document document;
    parse(context, "{\"a\": [1, [2, 3], {\"b\": 4}, 5.5], \"a b\": true, \"z\": null, \"t\": \"x\"}",
          &document);
    const hbp__value *root = document.values, *list = hbp__value_find(root, "a");
    ck_assert_uint_eq(hbp__value_count(list), 4);
    ck_assert_uint_eq(hbp__value_count(root), 0); /* a map is no list */
    ck_assert_int_eq(hbp__value_whole(hbp__value_at(list, 0)), 1);
    ck_assert_int_eq(hbp__value_whole(hbp__value_at(hbp__value_at(list, 1), 1)), 3);
    ck_assert_int_eq(hbp__value_whole(hbp__value_find(hbp__value_at(list, 2), "b")), 4);
    ck_assert(hbp__value_real(hbp__value_at(list, 3)) == 5.5 && hbp__value_real(hbp__value_at(list, 0)) == 1);
    ck_assert_ptr_null(hbp__value_at(list, 4));
    ck_assert_ptr_null(hbp__value_at(root, 0));
    ck_assert_ptr_null(hbp__value_find(list, "a"));
    ck_assert_ptr_null(hbp__value_find(root, "a "));
    ck_assert_ptr_null(hbp__value_find(NULL, "a"));
    ck_assert(hbp__value_is_true(hbp__value_find(root, "a b")) && !hbp__value_is_true(NULL));
    ck_assert(hbp__value_is(hbp__value_find(root, "z"), HBP__NOTHING));
    ck_assert_str_eq(hbp__value_text(hbp__value_find(root, "t")), "x");
    ck_assert_ptr_null(hbp__value_text(list));
    int elements = 0, keys = 0;
    HBP__EACH(list, element)
    {
        ck_assert_ptr_eq(element, hbp__value_at(list, (uint32_t)elements));
        elements++;
    }
    HBP__EACH_KEY(root, key)
    {
        ck_assert_ptr_eq(key + 1, hbp__value_find(root, key->of.text));
        keys++;
    }
    ck_assert(elements == 4 && keys == 4);
    HBP__EACH(root, none)
    {
        ck_abort_msg("a map has elements: %d", (int)none->kind);
    }
    hbp__document_free(&document);
    ck_assert_ptr_null(document.values);
    hbp_context_free(context);
}
END_TEST

/* Maps of few and of many keys, the same one at any two places. */
START_TEST(a_key_twice_is_found_wherever_it_is)
{
    hbp_context *context = test_context();
    for (uint32_t count = 1; count < 40; count += 3) {
        hbp__value map[81] = {{.kind = HBP__MAP, .count = count, .span = 2 * count + 1}};
        char text[40][8];
        for (uint32_t i = 0; i < count; i++) {
            uint32_t bytes = (uint32_t)snprintf(text[i], sizeof text[i], "k%u", (unsigned)(i * 7 % 40));
            map[2 * i + 1] = (hbp__value){.kind = HBP__TEXT, .count = bytes, .span = 1, .of.text = text[i]};
            map[2 * i + 2] = (hbp__value){.kind = HBP__NOTHING, .span = 1};
        }
        const char *key;
        OK(context, hbp__value_twice(context, map, &key));
        ck_assert_ptr_null(key);
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t k = 0; k < i; k++) {
                hbp__value kept = map[2 * i + 1];
                map[2 * i + 1] = map[2 * k + 1];
                OK(context, hbp__value_twice(context, map, &key));
                ck_assert_str_eq(key, text[k]);
                map[2 * i + 1] = kept;
            }
    }
    hbp_context_free(context);
}
END_TEST

static hbp_status find_twice(hbp_context *context, void *user)
{
    const char *key;
    return hbp__value_twice(context, ((hbp__document *)user)->values, &key);
}

START_TEST(failing_allocations_leave_nothing)
{
    hbp_context *context = test_context();
    hbp__document document;
    char text[400] = "{\"first\": 0";
    for (int i = 0; i < 20; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), ", \"k%d\": 1", i);
    strcat(text, "}");
    parse(context, text, &document);
    failing_sweep(find_twice, &document);
    hbp__document_free(&document);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("value", values_are_found_and_walked, a_key_twice_is_found_wherever_it_is,
          failing_allocations_leave_nothing)
