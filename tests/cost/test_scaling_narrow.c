/* Curves with fewer sizes against a plain filter of the full ones. */
#include "failing.h"
#include "graphs.h"

#include "cost/scaling.h"
#include "keep.h"

typedef struct fixture {
    hbp_graph *graph;
    hbp__meta_graph meta;
    hbp__scaling full;
} fixture;

static void open_fixture(hbp_context *context, hbp__rng *rng, fixture *f)
{
    graph_sizes sizes = {.most_gpus = 32};
    f->graph = random_graph(context, rng, &sizes);
    OK(context, hbp__meta_graph_open(context, f->graph, &f->meta));
    OK(context, hbp__scaling_open(context, f->graph, &f->meta, 32, &f->full));
}

static void close_fixture(fixture *f)
{
    hbp__scaling_close(&f->full);
    hbp__meta_graph_close(&f->meta);
    hbp_graph_free(f->graph);
}

static int tiles(int32_t n, int32_t domain)
{
    return domain == 0 || domain % n == 0 || n % domain == 0;
}

/* What is left of a curve, found one by one. */
static void check_curve(const hbp__curve *full, const hbp__curve *few, const hbp__size_range *range)
{
    int32_t inside = 0, tiling = 0, below = -1, at = 0;
    for (int32_t i = 0; i < full->sizes; i++) {
        int32_t n = full->size[i], in = n >= range->least && n <= range->most;
        inside += in;
        tiling += in && tiles(n, range->domain_gpus);
        below = n < range->least ? i : below;
    }
    /* Where none is inside: the largest of those below, else the smallest of all. */
    int32_t nearest = below < 0 ? 0 : below;
    for (int32_t i = 0; i < full->sizes; i++) {
        int32_t n = full->size[i], in = n >= range->least && n <= range->most;
        if (inside ? !in || (tiling && !tiles(n, range->domain_gpus)) : i != nearest)
            continue;
        ck_assert_int_lt(at, few->sizes);
        ck_assert_int_eq(few->size[at], n);
        ck_assert_int_eq(few->time_ns[at++], full->time_ns[i]);
    }
    ck_assert_int_eq(at, few->sizes);
    int32_t hull[64];
    ck_assert_int_eq(hbp__curve_hull(few->size, few->time_ns, few->sizes, hull), few->tight);
    for (int32_t i = 0; i < few->tight; i++)
        ck_assert_int_eq(few->hull[i], hull[i]);
    ck_assert_ptr_eq(few->ns, full->ns);
}

START_TEST_IN_CONTEXT(sizes_are_those_that_tile_and_suffice)
{
    hbp__rng rng = hbp__rng_make(6, 1, 0);
    static const int32_t domains[] = {0, 1, 4, 6, 8, 16};
    for (int i = 0; i < 300; i++) {
        fixture f;
        open_fixture(context, &rng, &f);
        hbp__size_range range = {.least = 1 << hbp__rng_below(&rng, 6)};
        range.most = hbp__rng_below(&rng, 2) ? INT32_MAX : range.least << hbp__rng_below(&rng, 3);
        range.domain_gpus = domains[hbp__rng_below(&rng, 6)];
        hbp__scaling few;
        OK(context, hbp__scaling_narrow(context, &f.meta, &f.full, &range, &few));
        ck_assert_int_eq(few.gpus, 32);
        ck_assert_int_eq(few.count, f.full.count);
        for (int32_t m = 0; m < f.meta.count; m++)
            check_curve(hbp__meta_curve(&f.full, m), hbp__meta_curve(&few, m), &range);
        hbp__scaling_close(&few);
        close_fixture(&f);
    }
}
END_TEST

static hbp_status narrow_once(hbp_context *context, void *user)
{
    fixture *f = user;
    hbp__scaling few;
    hbp_status status = hbp__scaling_narrow(context, &f->meta, &f->full, &(hbp__size_range){2, 16, 8}, &few);
    if (status >= 0)
        hbp__scaling_close(&few);
    return status;
}

START_TEST_IN_CONTEXT(allocations_may_fail)
{
    hbp__rng rng = hbp__rng_make(6, 2, 0);
    fixture f;
    open_fixture(context, &rng, &f);
    failing_sweep(narrow_once, &f);
    close_fixture(&f);
}
END_TEST

TEST_MAIN("scaling_narrow", sizes_are_those_that_tile_and_suffice, allocations_may_fail)
