/* No group that is done in time loads more than its ranks, whatever a square costs. */
#include "step/bound_region.h"

#include "boards.h"

#define STEPS 3000

/* A sequence's load on a side, in ranks. */
static double load(const hbp__step *step, const hbp__bound_side *s, int64_t k)
{
    return s->token_price * (double)step->degree[s->degree].tokens[k] + s->square_price * step->squares[k];
}

static int is_own(const hbp__bound_region *r, int64_t k)
{
    int own = r->level > 0;
    for (int32_t j = 0; j < r->level; j++)
        own = own && r->ask[k * r->step->degrees + j].alone > r->time;
    return own;
}

static const hbp__bound_side *side_of(const hbp__bound_region *r, int32_t j, int with_own)
{
    for (int32_t i = with_own ? r->step->degrees : 0; i < r->sides; i++)
        if (r->side[i].degree == j)
            return &r->side[i];
    return NULL;
}

/* Fills a group of degree j in random order while it is done in time. Returns its sequences. */
static int64_t fill(const hbp__bound_region *r, hbp__rng *rng, int32_t j, int64_t *group)
{
    const hbp__step *step = r->step;
    const hbp__step_degree *d = &step->degree[j];
    int64_t tokens = 0, members = 0;
    double squares = 0;
    for (int64_t k = 0; k < step->count; k++) {
        int64_t all = hbp__round_up(tokens + d->tokens[k], d->pack_multiple);
        if (!hbp__rng_below(rng, 3) || all > d->capacity)
            continue;
        hbp__point scratch;
        const hbp__point *way = hbp__bound_least_way(step, j, all, &scratch);
        double ns = way->constant - step->cost->terms.pack_ns + way->linear * (double)all +
                    way->square * (squares + step->squares[k]);
        if (ns > r->time)
            continue;
        tokens += d->tokens[k];
        squares += step->squares[k];
        group[members++] = k;
    }
    return members;
}

static int check_group(const hbp__bound_region *r, hbp__rng *rng, int32_t j, uint64_t seed, double *full)
{
    int64_t group[EXACT_SEQUENCES], members = fill(r, rng, j, group);
    int with_own = 0;
    double sum = 0, degree = r->step->degree[j].degree;
    for (int64_t i = 0; i < members; i++)
        with_own = with_own || is_own(r, group[i]);
    if (!members)
        return 0;
    const hbp__bound_side *s = side_of(r, j, with_own);
    ck_assert_msg(s != NULL, "step %d, degree %d: no side for a group that is done in time", (int)seed,
                  (int)degree);
    for (int64_t i = 0; i < members; i++) {
        ck_assert_int_le(r->step->degree[j].tokens[group[i]], s->capacity);
        sum += load(r->step, s, group[i]);
    }
    ck_assert_msg(sum <= degree * (1 + 1e-12),
                  "step %d: a group of %g ranks loads %.17g, level %d, slope %g units", (int)seed, degree,
                  sum, r->level, s->unit > 0 ? s->slope / s->unit : 0);
    *full = sum / degree > *full ? sum / degree : *full;
    return with_own;
}

START_TEST(no_group_in_time_loads_more_than_its_ranks)
{
    int64_t with_own = 0, nearly_full = 0;
    for (uint64_t i = 0; i < STEPS; i++) {
        small_step s = small_open(7000 + i, (int)(i % SMALL_KINDS), 16, 12, 1e300);
        hbp__rng rng = hbp__rng_make(i, 3, 0);
        small_limit(&s, i / SMALL_KINDS % 32);
        hbp__step step;
        if (hbp__step_open(s.context, s.lengths, s.cost, &s.options, &step) >= 0) {
            hbp__ask *ask = malloc((size_t)(step.count * step.degrees) * sizeof *ask);
            hbp__bound_region r;
            double longest = 0, full = 0;
            hbp__bound_ask(&step, ask);
            for (int64_t k = 0; k < step.count; k++)
                for (int32_t j = 0; j < step.degrees; j++)
                    longest = ask[k * step.degrees + j].needs ? fmax(longest, ask[k * step.degrees + j].alone)
                                                              : longest;
            OK(s.context, hbp__bound_region_open(&step, ask, &r));
            for (int look = 0; look < 12; look++) {
                hbp__bound_region_set(&r, longest * small_between(&rng, .05, 2),
                                      (int32_t)hbp__rng_below(&rng, (uint64_t)step.degrees));
                for (int32_t n = 0; n < r.sides; n++)
                    hbp__bound_side_set_slope(&r, &r.side[n],
                                              look % 4 ? r.side[n].unit * small_between(&rng, 0, 3) : 0);
                for (int32_t j = 0; j < step.degrees; j++)
                    with_own += check_group(&r, &rng, j, i, &full);
            }
            nearly_full += full > .98;
            free(ask);
        }
        hbp__step_close(&step);
        small_close(&s);
    }
    ck_assert_int_gt(with_own, 3 * STEPS);
    ck_assert_int_gt(nearly_full, STEPS / 5);
}
END_TEST

TEST_MAIN("bound_region", no_group_in_time_loads_more_than_its_ranks)
