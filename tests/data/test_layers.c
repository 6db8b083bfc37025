#include "data/pipeline/layers.h"

#include "failing.h"
#include "keep.h"

/* Columns of 3 layers with every field given. */
typedef struct three {
    int64_t forward_ns[3], backward_ns[3], parameters[3], state_bytes[3], activation_bytes[3];
    int64_t recomputed_bytes[3], working_bytes[3], attention_bytes[3], attention_ns[3], mlp_bytes[3];
    int64_t mlp_ns[3], recompute_ns[3], cut_bytes[3];
    int32_t type[3], cut_type[3];
    const char *names[3];
    hbp_layer_columns columns;
} three;

static void make_three(three *t)
{
    *t = (three){.forward_ns = {5, 6, 7},
                 .backward_ns = {11, 12, 13},
                 .parameters = {100, 200, 300},
                 .state_bytes = {1800, 3600, 5400},
                 .activation_bytes = {40, 50, 0},
                 .recomputed_bytes = {8, 9, 0},
                 .working_bytes = {1, 2, 3},
                 .attention_bytes = {20, 10, 0},
                 .attention_ns = {2, 2, 2},
                 .mlp_bytes = {20, 30, 0},
                 .mlp_ns = {3, 3, 3},
                 .recompute_ns = {4, 4, 4},
                 .cut_bytes = {70, 80, 90},
                 .type = {HBP_LAYER_VISION, HBP_LAYER_FIXED, 0},
                 .cut_type = {0, 1, 2},
                 .names = {"patches", NULL, "head"}};
    t->columns = (hbp_layer_columns){.struct_size = sizeof t->columns};
    t->columns.count = 3;
#define POINT(name) t->columns.name = t->name;
    HBP__LAYER_COLUMNS(POINT)
#undef POINT
    t->columns.type = t->type;
    t->columns.cut_type = t->cut_type;
    t->columns.names = t->names;
}

START_TEST_IN_CONTEXT(columns_are_copied)
{
    three t, again;
    make_three(&t);
    make_three(&again);
    hbp_layers *layers = NULL;
    OK(context, hbp_layers_create(context, &t.columns, &layers));
    memset(&t, 0xff, sizeof t);
    hbp_layers_view v = {.struct_size = sizeof v};
    OK(context, hbp_layers_get_view(layers, &v));
    ck_assert_int_eq(v.layers, 3);
#define COMPARE(column) ck_assert_mem_eq(v.column, again.column, sizeof again.column);
    HBP__LAYER_COLUMNS(COMPARE)
#undef COMPARE
    ck_assert_mem_eq(v.type, again.type, sizeof again.type);
    ck_assert_mem_eq(v.cut_type, again.cut_type, sizeof again.cut_type);
    ck_assert_str_eq(v.names[0], "patches");
    ck_assert_str_eq(v.names[1], "layer 1");
    ck_assert_str_eq(v.names[2], "head");
    ck_assert_int_eq(hbp_layers_get_view(layers, NULL), HBP_E_INVALID);
    ck_assert_int_eq(hbp_layers_get_view(NULL, &v), HBP_E_INVALID);
    ck_assert_int_eq(v.layers, 0);
    ck_assert(!v.forward_ns && !v.type && !v.names);
    hbp_layers_free(layers);
    hbp_layers_free(NULL);
}
END_TEST

START_TEST_IN_CONTEXT(columns_left_out_have_their_defaults)
{
    three t;
    make_three(&t);
    hbp_layer_columns columns = {.struct_size = sizeof columns, .count = 3, .forward_ns = t.forward_ns};
    hbp_layers *layers = NULL;
    OK(context, hbp_layers_create(context, &columns, &layers));
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(layers->backward_ns[i], 2 * t.forward_ns[i]);
        ck_assert_int_eq(layers->recompute_ns[i], t.forward_ns[i]);
        ck_assert_int_eq(layers->type[i], HBP_LAYER_LANGUAGE);
        ck_assert_int_eq(layers->cut_type[i], HBP_LAYER_LANGUAGE);
        const int64_t *zeros[] = {layers->parameters,       layers->state_bytes,   layers->activation_bytes,
                                  layers->recomputed_bytes, layers->working_bytes, layers->attention_bytes,
                                  layers->attention_ns,     layers->mlp_bytes,     layers->mlp_ns,
                                  layers->cut_bytes};
        for (size_t c = 0; c < sizeof zeros / sizeof *zeros; c++)
            ck_assert_int_eq(zeros[c][i], 0);
    }
    hbp_layers_free(layers);
    columns.activation_bytes = t.activation_bytes;
    columns.recomputed_bytes = t.recomputed_bytes;
    columns.type = t.type;
    OK(context, hbp_layers_create(context, &columns, &layers));
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(layers->working_bytes[i], t.activation_bytes[i] - t.recomputed_bytes[i]);
        ck_assert_int_eq(layers->cut_type[i], t.type[i]);
    }
    hbp_layers_free(layers);
}
END_TEST

/* hbp_layers_create of 3 layers with one number changed. */
static void refuse(hbp_context *context, int64_t *place, int64_t value, three *t, hbp_status status,
                   const char *text)
{
    int64_t before = *place;
    hbp_layers *layers = (hbp_layers *)t;
    *place = value;
    FAILS(context, status, text, hbp_layers_create(context, &t->columns, &layers));
    ck_assert_ptr_null(layers);
    *place = before;
}

START_TEST_IN_CONTEXT(bad_columns_are_refused)
{
    three t;
    make_three(&t);
    hbp_layers *layers = NULL;
    FAILS(context, HBP_E_INVALID, "out", hbp_layers_create(context, &t.columns, NULL));
    FAILS(context, HBP_E_INVALID, "columns", hbp_layers_create(context, NULL, &layers));
    ck_assert_int_eq(hbp_layers_create(NULL, &t.columns, &layers), HBP_E_INVALID);
#define NEGATIVE(column)                                                                                     \
    refuse(context, &t.column[1], -5, &t, HBP_E_INVALID,                                                     \
           #column " of layer 1 is -5; it must not be negative");
    HBP__LAYER_COLUMNS(NEGATIVE)
#undef NEGATIVE
    refuse(context, &t.forward_ns[2], INT64_C(1) << 62, &t, HBP_E_OVERFLOW,
           "forward_ns of layers 0..2 sum to more than 2^62");
    refuse(context, &t.cut_bytes[0], INT64_MAX, &t, HBP_E_OVERFLOW,
           "cut_bytes of layers 0..0 sum to more than 2^62");
    refuse(context, &t.recomputed_bytes[1], 51, &t, HBP_E_INVALID,
           "recomputed_bytes of layer 1 is 51; activation_bytes is 50");
    refuse(context, &t.attention_bytes[0], 21, &t, HBP_E_INVALID,
           "attention_bytes of layer 0 is 21 and mlp_bytes 20, more in all than activation_bytes, 40");
    refuse(context, &t.mlp_bytes[2], 1, &t, HBP_E_INVALID,
           "attention_bytes of layer 2 is 0 and mlp_bytes 1, more in all than activation_bytes, 0");
    t.type[2] = 3;
    FAILS(context, HBP_E_INVALID, "type of layer 2 is 3; it must be in 0..2",
          hbp_layers_create(context, &t.columns, &layers));
    t.type[2] = 0;
    t.cut_type[0] = -1;
    FAILS(context, HBP_E_INVALID, "cut_type of layer 0 is -1; it must be in 0..2",
          hbp_layers_create(context, &t.columns, &layers));
    t.cut_type[0] = 0;
    t.columns.count = 0;
    FAILS(context, HBP_E_INVALID, "count is 0; there must be at least 1 layer",
          hbp_layers_create(context, &t.columns, &layers));
    t.columns.count = 3;
    t.columns.forward_ns = NULL;
    FAILS(context, HBP_E_INVALID, "forward_ns", hbp_layers_create(context, &t.columns, &layers));
    int64_t half[3] = {INT64_C(1) << 61, 1, 0};
    t.columns.forward_ns = half;
    t.columns.backward_ns = NULL;
    FAILS(context, HBP_E_OVERFLOW, "backward_ns of layers 0..1 sum to more than 2^62",
          hbp_layers_create(context, &t.columns, &layers));
    t.columns.struct_size = 3;
    FAILS(context, HBP_E_INVALID, "hbp_layer_columns.struct_size is 3",
          hbp_layers_create(context, &t.columns, &layers));
    ck_assert_ptr_null(layers);
}
END_TEST

START_TEST_IN_CONTEXT(an_older_caller_has_fewer_columns)
{
    three t;
    make_three(&t);
    t.columns.struct_size = offsetof(hbp_layer_columns, type);
    hbp_layers *layers = NULL;
    OK(context, hbp_layers_create(context, &t.columns, &layers));
    ck_assert_int_eq(layers->backward_ns[2], 13);
    ck_assert_int_eq(layers->type[0], HBP_LAYER_LANGUAGE);
    ck_assert_int_eq(layers->cut_bytes[0], 0);
    hbp_layers_free(layers);
    ck_assert_uint_eq(sizeof(hbp_layer_columns), 8 + 16 * sizeof(void *));
}
END_TEST

START_TEST_IN_CONTEXT(choices_say_what_they_keep_add_and_need)
{
    three t;
    make_three(&t);
    hbp_layers *layers = NULL;
    OK(context, hbp_layers_create(context, &t.columns, &layers));
    static const int64_t kept[] = {50, 40, 20, 9}, extra[] = {0, 2, 3, 4}, working[] = {0, 10, 30, 2};
    for (int32_t choice = 0; choice < HBP_RECOMPUTE_CHOICES; choice++) {
        ck_assert_int_eq(hbp__layer_kept_bytes(layers, 1, choice), kept[choice]);
        ck_assert_int_eq(hbp__layer_extra_ns(layers, 1, choice), extra[choice]);
        ck_assert_int_eq(hbp__layer_working_bytes(layers, 1, choice), working[choice]);
    }
    hbp_layers *other = keep(hbp__layers_retain(layers));
    hbp_layers_free(layers);
    ck_assert_int_eq(layers_view(other).layers, 3);
}
END_TEST

static hbp_status create_and_free(hbp_context *context, void *user)
{
    hbp_layers *layers = NULL;
    hbp_status status = hbp_layers_create(context, user, &layers);
    hbp_layers_free(layers);
    return status;
}

START_TEST(failing_allocations_leave_nothing)
{
    three t;
    make_three(&t);
    failing_sweep(create_and_free, &t.columns);
}
END_TEST

TEST_MAIN("layers", columns_are_copied, columns_left_out_have_their_defaults, bad_columns_are_refused,
          an_older_caller_has_fewer_columns, choices_say_what_they_keep_add_and_need,
          failing_allocations_leave_nothing)
