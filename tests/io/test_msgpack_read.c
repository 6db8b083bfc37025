#include "failing.h"

#include <msgpack.h>

#include "base/rng.h"
#include "io/msgpack/msgpack_read.h"

/* Whether the scanner takes the `bytes` of `data` as one object. */
static int whole(const void *data, uint64_t bytes)
{
    hbp__msgpack_extent extent;
    return hbp__msgpack_scan(data, bytes, 1000, &extent) && extent.bytes == bytes;
}

START_TEST(every_type_is_known_and_every_cut_is_seen)
{
    const struct {
        const char *data;
        uint64_t bytes;
    } objects[] = {
        {"\x00", 1},
        {"\x7f", 1},
        {"\xe0", 1},
        {"\xff", 1},
        {"\xc0", 1},
        {"\xc2", 1},
        {"\xc3", 1},
        {"\xa0", 1},
        {"\xa3"
         "abc",
         4},
        {"\x80", 1},
        {"\x81\x01\x02", 3},
        {"\x90", 1},
        {"\x92\x01\x02", 3},
        {"\xc4\x02xy", 4},
        {"\xc5\0\x02xy", 5},
        {"\xc6\0\0\0\x02xy", 7},
        {"\xc7\x02Txy", 5},
        {"\xc8\0\x02Txy", 6},
        {"\xc9\0\0\0\x02Txy", 8},
        {"\xca"
         "1234",
         5},
        {"\xcb"
         "12345678",
         9},
        {"\xcc"
         "1",
         2},
        {"\xcd"
         "12",
         3},
        {"\xce"
         "1234",
         5},
        {"\xcf"
         "12345678",
         9},
        {"\xd0"
         "1",
         2},
        {"\xd1"
         "12",
         3},
        {"\xd2"
         "1234",
         5},
        {"\xd3"
         "12345678",
         9},
        {"\xd4T1", 3},
        {"\xd5T12", 4},
        {"\xd6T1234", 6},
        {"\xd7T12345678", 10},
        {"\xd8T1234567812345678", 18},
        {"\xd9\x02xy", 4},
        {"\xda\0\x02xy", 5},
        {"\xdb\0\0\0\x02xy", 7},
        {"\xdc\0\x02\x01\x02", 5},
        {"\xdd\0\0\0\x02\x01\x02", 7},
        {"\xde\0\x01\x01\x02", 5},
        {"\xdf\0\0\0\x01\x01\x02", 7},
    };
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        ck_assert_msg(whole(objects[i].data, objects[i].bytes), "object %d", (int)i);
        for (uint64_t cut = 0; cut < objects[i].bytes; cut++) {
            hbp__msgpack_extent extent;
            ck_assert_int_eq(hbp__msgpack_scan((const uint8_t *)objects[i].data, cut, 1000, &extent), 0);
            ck_assert_uint_le(extent.bytes, cut);
        }
    }
    ck_assert(!whole("\xc1", 1));
}
END_TEST

START_TEST(counts_beyond_the_bytes_are_refused)
{
    ck_assert(!whole("\xdd\xff\xff\xff\xff", 5));
    ck_assert(!whole("\xdf\xff\xff\xff\xff\x01\x02", 7));
    ck_assert(!whole("\xc6\xff\xff\xff\xff"
                     "abc",
                     8));
    ck_assert(!whole("\xc9\xff\xff\xff\xff"
                     "abc",
                     8));
    ck_assert(!whole("\xdb\xff\xff\xff\xff"
                     "abc",
                     8));
    uint8_t nils[64];
    memset(nils, 0xc0, sizeof nils);
    nils[0] = 0xdc;
    nils[1] = 0;
    nils[2] = 61;
    hbp__msgpack_extent extent;
    ck_assert_int_eq(hbp__msgpack_scan(nils, sizeof nils, 62, &extent), 1);
    ck_assert_uint_eq(extent.bytes, 64);
    ck_assert_int_eq(hbp__msgpack_scan(nils, sizeof nils, 61, &extent), 0);
    ck_assert_uint_eq(extent.bytes, 0);
    ck_assert_int_eq(hbp__msgpack_scan(nils, sizeof nils - 1, 62, &extent), 0);
}
END_TEST

START_TEST(depth_ends_at_its_limit)
{
    uint8_t nested[32];
    memset(nested, 0x91, sizeof nested);
    nested[HBP__MSGPACK_DEPTH] = 0xc0;
    ck_assert(whole(nested, HBP__MSGPACK_DEPTH + 1));
    nested[HBP__MSGPACK_DEPTH] = 0x91;
    nested[HBP__MSGPACK_DEPTH + 1] = 0xc0;
    ck_assert(!whole(nested, HBP__MSGPACK_DEPTH + 2));
}
END_TEST

/* Whether a 32-bit count could stand here, for which msgpack-c would reserve gigabytes. */
static int reserves_much(const uint8_t *data, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++)
        if (data[i] == 0xdd || data[i] == 0xdf)
            return 1;
    return 0;
}

static void check_text(const hbp__value *value, const char *text, uint32_t bytes)
{
    ck_assert_int_eq(value->kind, HBP__TEXT);
    ck_assert_uint_eq(value->count, bytes);
    ck_assert(!bytes || memcmp(value->of.text, text, bytes) == 0);
    ck_assert_int_eq(value->of.text[bytes], 0);
}

/* The value at *value, which moves behind it, is what msgpack-c makes of it. */
static void check_same(const msgpack_object *object, const hbp__value **value)
{
    const hbp__value *v = (*value)++;
    switch (object->type) {
    case MSGPACK_OBJECT_NIL:
        ck_assert_int_eq(v->kind, HBP__NOTHING);
        break;
    case MSGPACK_OBJECT_BOOLEAN:
        ck_assert(v->kind == HBP__BOOLEAN && v->of.whole == object->via.boolean);
        break;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        ck_assert_int_eq(v->kind, object->via.u64 > INT64_MAX ? HBP__LARGE : HBP__WHOLE);
        ck_assert_uint_eq(v->of.large, object->via.u64);
        break;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        ck_assert(v->kind == HBP__WHOLE && v->of.whole == object->via.i64);
        break;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        ck_assert_int_eq(v->kind, HBP__REAL);
        ck_assert(v->of.real == object->via.f64 || object->via.f64 != object->via.f64);
        break;
    case MSGPACK_OBJECT_STR:
        check_text(v, object->via.str.ptr, object->via.str.size);
        break;
    case MSGPACK_OBJECT_BIN:
        ck_assert(v->kind == HBP__BYTES && v->count == object->via.bin.size);
        ck_assert(!v->count || memcmp(v->of.bytes, object->via.bin.ptr, v->count) == 0);
        break;
    case MSGPACK_OBJECT_ARRAY:
        ck_assert(v->kind == HBP__LIST && v->count == object->via.array.size);
        for (uint32_t i = 0; i < v->count; i++)
            check_same(&object->via.array.ptr[i], value);
        break;
    case MSGPACK_OBJECT_MAP:
        ck_assert(v->kind == HBP__MAP && v->count == object->via.map.size);
        for (uint32_t i = 0; i < v->count; i++) {
            check_same(&object->via.map.ptr[i].key, value);
            check_same(&object->via.map.ptr[i].val, value);
        }
        break;
    default:
        ck_assert_int_eq(v->kind, HBP__EXTENSION);
    }
    ck_assert_ptr_eq(hbp__value_next(v), *value);
    uint32_t walked = 0; /* also past keys that hold others */
    HBP__EACH(v, element)
    {
        walked += element < *value;
    }
    HBP__EACH_KEY(v, key)
    {
        walked += key < *value;
    }
    ck_assert(walked == v->count || (v->kind != HBP__LIST && v->kind != HBP__MAP));
}

/* msgpack-c is the oracle: what the scanner lets through it unpacks, to the same byte; what it cannot read,
 * the scanner refuses. */
START_TEST(the_reader_agrees_with_msgpack_c)
{
    hbp_context *context = test_context();
    hbp__document document = {.memory = context->memory};
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    int taken = 0, refused = 0, rounds = TEST_FEW(200000, 25000);
    for (int round = 0; round < rounds; round++) {
        uint8_t data[24];
        uint64_t bytes = 1 + hbp__rng_below(&rng, sizeof data);
        hbp__msgpack_extent extent;
        for (uint64_t i = 0; i < bytes; i++) {
            data[i] = (uint8_t)hbp__rng_next(&rng);
            if (hbp__rng_below(&rng, 2)) /* small containers and numbers */
                data[i] = (uint8_t)(hbp__rng_below(&rng, 3) ? data[i] & 3 : 0x80 | (data[i] & 0x13));
        }
        int ok = hbp__msgpack_scan(data, bytes, 1000, &extent);
        msgpack_unpacked object;
        msgpack_unpacked_init(&object);
        size_t at = 0;
        if (ok) {
            ck_assert_int_eq(msgpack_unpack_next(&object, (const char *)data, bytes, &at),
                             MSGPACK_UNPACK_SUCCESS);
            ck_assert_uint_eq(at, extent.bytes);
            OK(context, hbp__msgpack_read(context, "it", data, &extent, &document));
            const hbp__value *at_value = document.values;
            check_same(&object.data, &at_value);
            ck_assert_ptr_eq(at_value, document.values + extent.objects);
            taken++;
        } else if (!reserves_much(data, bytes)) {
            ck_assert_int_ne(msgpack_unpack_next(&object, (const char *)data, bytes, &at),
                             MSGPACK_UNPACK_SUCCESS);
            refused++;
        }
        msgpack_unpacked_destroy(&object);
    }
    hbp__document_free(&document);
    hbp_context_free(context);
    ck_assert_int_gt(taken, rounds / 10);
    ck_assert_int_gt(refused, rounds / 10);
}
END_TEST

static hbp_status read_once(hbp_context *context, void *user)
{
    static const uint8_t data[] = "\x82\xa1z\x93\x01\xff\xa3xyz\xa1y\xc0";
    hbp__document document = {.memory = context->memory};
    hbp__msgpack_extent extent;
    (void)user;
    ck_assert(hbp__msgpack_scan(data, sizeof data - 1, 100, &extent));
    ck_assert_uint_eq(extent.texts, 8);
    hbp_status status = hbp__msgpack_read(context, "it", data, &extent, &document);
    if (status == HBP_OK) { /* what was there before goes */
        status = hbp__msgpack_read(context, "it", data, &extent, &document);
        ck_assert(status < 0 || hbp__value_count(hbp__value_find(document.values, "z")) == 3);
    }
    hbp__document_free(&document);
    return status;
}

START_TEST(keys_may_be_anything)
{
    static const uint8_t data[] = "\x83\x92\x01\x02\x90\x81\xa1z\x05\x06\xa1z\x07";
    hbp_context *context = test_context();
    hbp__document document = {.memory = context->memory};
    hbp__msgpack_extent extent;
    ck_assert(hbp__msgpack_scan(data, sizeof data - 1, 100, &extent));
    OK(context, hbp__msgpack_read(context, "it", data, &extent, &document));
    ck_assert_int_eq(hbp__value_whole(hbp__value_find(document.values, "z")), 7);
    ck_assert_ptr_null(hbp__value_find(document.values, "y"));
    hbp__document_free(&document);
    hbp_context_free(context);
}
END_TEST

START_TEST(failing_allocations_leave_nothing)
{
    failing_sweep(read_once, NULL);
}
END_TEST

TEST_MAIN("msgpack_read", every_type_is_known_and_every_cut_is_seen, counts_beyond_the_bytes_are_refused,
          depth_ends_at_its_limit, the_reader_agrees_with_msgpack_c, keys_may_be_anything,
          failing_allocations_leave_nothing)
