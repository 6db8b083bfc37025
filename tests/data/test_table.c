/* Objects of tables: one block, in the order described; a row behind a column is seen under AddressSanitizer.
 */
#include "data/table/table.h"

#include "failing.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define WATCHED
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define WATCHED
#endif
#ifdef WATCHED
#include <sanitizer/asan_interface.h>
#endif

typedef struct thing {
    int32_t tag;
    int64_t few;
    int64_t many;
    int64_t digest;
    int32_t *small;
    int64_t *wide;
    int64_t *offsets;
    char **names;
} thing;

static const hbp__member members[] = {HBP__MEMBER_COLUMN(thing, int32_t, small, few, 0),
                                      HBP__MEMBER_COLUMN(thing, int64_t, wide, many, 0),
                                      HBP__MEMBER_COLUMN(thing, int64_t, offsets, few, 1)};
static const hbp__member lists[] = {HBP__MEMBER_NAMES(thing, names, few)};
static const hbp__table table = {.what = "a thing",
                                 .bytes = sizeof(thing),
                                 .columns = members,
                                 .names = lists,
                                 .column_count = 3,
                                 .name_count = 1};

static thing *make(const hbp__memory *memory, int64_t few, int64_t many)
{
    return hbp__table_new(memory, &table, &(thing){.tag = 7, .few = few, .many = many});
}

START_TEST(an_object_is_one_block_of_zeroed_columns)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    const hbp__memory *memory = &context->memory;
    for (int64_t few = 0; few < 9; few++)
        for (int64_t many = 0; many < 9; many++) {
            int64_t live = f.live;
            thing *t = make(memory, few, many);
            ck_assert_int_eq(f.live, live + 1);
            ck_assert(t->tag == 7 && t->few == few && t->many == many);
            const char *last = (const char *)(t + 1);
            for (int32_t i = 0; i < 4; i++) {
                const hbp__member *m = i < 3 ? &members[i] : lists;
                const char *cells = hbp__table_cells(t, m);
                int64_t bytes = hbp__table_rows(t, m) * (int64_t)hbp__cell_bytes(m->cell);
                ck_assert((uintptr_t)cells % 16 == 0 && cells >= last);
                for (int64_t k = 0; k < bytes; k++)
                    ck_assert_int_eq(cells[k], 0);
                last = cells + bytes;
            }
            for (int64_t k = 0; k < few; k++)
                t->names[k] = hbp__new_text(memory, "name", 3);
            ck_assert(!few || strcmp(t->names[few - 1], "nam") == 0);
            ck_assert_int_eq(hbp__table_bytes(&table, t), 12 * few + 8 * many + 8);
            hbp__table_free(memory, &table, t);
            ck_assert_int_eq(f.live, live);
        }
    hbp__table_free(memory, &table, NULL);
    hbp_context_free(context);
}
END_TEST

START_TEST(a_row_too_many_is_seen)
{
#ifdef WATCHED
    hbp_context *context = test_context();
    thing *t = make(&context->memory, 3, 4);
    ck_assert(!__asan_address_is_poisoned(&t->small[2]) && __asan_address_is_poisoned(&t->small[3]));
    ck_assert(!__asan_address_is_poisoned(&t->wide[3]) && __asan_address_is_poisoned(&t->wide[4]));
    ck_assert(!__asan_address_is_poisoned(&t->offsets[3]) && __asan_address_is_poisoned(&t->offsets[4]));
    ck_assert(!__asan_address_is_poisoned(&t->names[2]) && __asan_address_is_poisoned(&t->names[3]));
    hbp__table_free(&context->memory, &table, t);
    hbp_context_free(context);
#endif
}
END_TEST

START_TEST(counts_that_no_file_holds_are_known)
{
    thing shape = {.few = -1};
    ck_assert_int_eq(hbp__table_bytes(&table, &shape), -1);
    shape = (thing){.many = (INT64_C(1) << 32) + 1};
    ck_assert_int_eq(hbp__table_bytes(&table, &shape), -1);
    shape.many--;
    ck_assert_int_eq(hbp__table_bytes(&table, &shape), 8 * shape.many + 8);
    hbp_context *context = test_context();
    shape.few = INT64_MAX - 1;
    ck_assert_ptr_null(hbp__table_new(&context->memory, &table, &shape));
    hbp_context_free(context);
}
END_TEST

static hbp_status make_once(hbp_context *context, void *user)
{
    (void)user;
    thing *t = make(&context->memory, 2, 2);
    if (!t)
        return hbp__fail_memory(context, table.what);
    hbp__table_free(&context->memory, &table, t);
    return HBP_OK;
}

START_TEST(memory_may_be_short)
{
    failing_sweep(make_once, NULL);
}
END_TEST

static uint64_t digest_of(const thing *t)
{
    hbp__digest digest = hbp__digest_begin();
    hbp__table_digest(&table, t, &digest);
    return hbp__digest_end(&digest);
}

/* Every cell and every character is in the digest, and where a column ends, too. */
START_TEST(a_digest_is_of_every_cell)
{
    hbp_context *context = test_context();
    const hbp__memory *memory = &context->memory;
    thing *t = make(memory, 2, 2), *u = make(memory, 1, 3);
    t->names[0] = hbp__new_text(memory, "one name", 8);
    t->names[1] = hbp__new_text(memory, "other", 5);
    u->names[0] = hbp__new_text(memory, "one name", 8);
    uint64_t digest = digest_of(t);
    ck_assert_uint_ne(digest, digest_of(u));
    t->tag = 9;
    ck_assert_uint_eq(digest, digest_of(t));
#define CHANGES(cell)                                                                                        \
    cell++;                                                                                                  \
    ck_assert_uint_ne(digest, digest_of(t));                                                                 \
    cell--;                                                                                                  \
    ck_assert_uint_eq(digest, digest_of(t))
    CHANGES(t->small[1]);
    CHANGES(t->wide[0]);
    CHANGES(t->wide[1]);
    CHANGES(t->offsets[2]);
    CHANGES(t->names[0][7]);
    CHANGES(t->names[1][0]);
    hbp__table_free(memory, &table, t);
    hbp__table_free(memory, &table, u);
    hbp_context_free(context);
}
END_TEST

START_TEST(what_differs_is_named)
{
    static const hbp__member numbers[] = {HBP__MEMBER_NUMBER(thing, int32_t, tag),
                                          {"digest", HBP__CELL_U64, 0, offsetof(thing, digest), 0}};
    hbp__table all = table;
    all.numbers = numbers;
    all.number_count = 2;
    hbp_context *context = test_context();
    const hbp__memory *memory = &context->memory;
    thing *a = make(memory, 3, 4), *b = make(memory, 3, 4);
    OK(context, hbp__table_compare(context, &all, a, b, "they make"));
    const struct {
        int32_t *small;
        int64_t *wide;
        const char *text;
    } cases[] = {
        {&a->small[2], NULL, "small 2 is -7; they make it 0"},
        {NULL, &a->wide[3], "wide 3 is -7; they make it 0"},
        {NULL, &a->offsets[3], "offsets 3 is -7; they make it 0"},
        {&a->tag, NULL, "tag is -7; they make it 7"},
        {NULL, &a->digest, "digest is fffffffffffffff9; they make it 0000000000000000"},
    };
    for (size_t i = sizeof cases / sizeof *cases; i-- > 0;) { /* what was found before comes first */
        if (cases[i].small)
            *cases[i].small = -7;
        else
            *cases[i].wide = -7;
        FAILS(context, HBP_E_INVALID, cases[i].text, hbp__table_compare(context, &all, a, b, "they make"));
        if (i >= 3) { /* numbers in their own order */
            a->tag = b->tag;
            a->digest = b->digest;
        }
    }
    hbp__table_free(memory, &table, a);
    hbp__table_free(memory, &table, b);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("table", an_object_is_one_block_of_zeroed_columns, a_row_too_many_is_seen,
          counts_that_no_file_holds_are_known, memory_may_be_short, a_digest_is_of_every_cell,
          what_differs_is_named)
