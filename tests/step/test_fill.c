/* The filling against one that looks at every group. */
#include "boards.h"

#define GROUNDS 330

/* The rules of hbp__step_fill, plainly. */
typedef struct plain {
    const hbp__step *step;
    double makespan;
    hbp__step_style style;
    int32_t level; /* a degree whose groups are opened first and kept alike; HBP__NONE: none */
    int capped;    /* a group was full of samples, or passed over for them */
    int64_t groups;
    hbp__step_group group[64];
    int64_t *home; /* [count]; HBP__NONE: stays in the pool */
} plain;

static void plain_add(plain *p, int64_t k, int64_t g)
{
    const hbp__step *step = p->step;
    hbp__step_group *group = &p->group[g];
    group->load.tokens += step->tokens[k];
    group->load.squares += step->squares[k];
    group->load.samples += hbp__step_samples(step, k);
    group->time = hbp__step_group_time(step, group->degree, group->load);
    p->capped |= group->load.samples == step->most_samples;
    p->home[k] = g;
}

static int plain_join(plain *p, int64_t k, int32_t j)
{
    const hbp__step *step = p->step;
    int64_t found = HBP__NONE;
    for (int64_t g = 0; g < p->groups; g++) {
        const hbp__step_group *group = &p->group[g];
        int64_t tokens = group->load.tokens + step->tokens[k];
        if (group->degree != j || tokens > step->degree[j].capacity ||
            hbp__step_group_time(
                step, j, (hbp__load){.tokens = tokens, .squares = group->load.squares + step->squares[k]}) >
                p->makespan)
            continue;
        if (group->load.samples + hbp__step_samples(step, k) > step->most_samples) {
            p->capped = 1;
            continue;
        }
        if (found == HBP__NONE || p->makespan - group->time > p->makespan - p->group[found].time)
            found = g;
        if (j != p->level)
            break;
    }
    if (found == HBP__NONE)
        return 0;
    plain_add(p, k, found);
    return 1;
}

static int plain_open(plain *p, int64_t k, int32_t j)
{
    int32_t degree[65];
    int64_t ranks = p->step->degree[j].degree;
    for (int64_t g = 0; g < p->groups; g++) {
        degree[g] = p->group[g].degree;
        ranks += p->step->degree[degree[g]].degree;
    }
    degree[p->groups] = j;
    if (ranks > p->step->ranks || !hbp__step_place(p->step, degree, p->groups + 1, NULL))
        return 0;
    p->group[p->groups] = (hbp__step_group){.degree = j};
    plain_add(p, k, p->groups++);
    return 1;
}

/* The least degree of sequence k, whose times alone [degrees] are written. */
static int32_t plain_least(const plain *p, int64_t k, double *alone)
{
    const hbp__step *step = p->step;
    int32_t least = step->degrees;
    for (int32_t j = step->degrees - 1; j >= 0; j--) {
        alone[j] = step->tokens[k] > step->degree[j].capacity
                       ? (double)INFINITY
                       : hbp__step_group_time(
                             step, j, (hbp__load){.tokens = step->tokens[k], .squares = step->squares[k]});
        least = alone[j] <= p->makespan ? j : least;
    }
    if (least == step->degrees)
        return least;
    if (p->style.grain > least && alone[p->style.grain] <= p->makespan)
        least = p->style.grain;
    while (p->style.skip >> least & 1 && least + 1 < step->degrees && alone[least + 1] <= p->makespan)
        least++;
    return least;
}

static void plain_put(plain *p, int64_t k)
{
    const hbp__step *step = p->step;
    double alone[HBP__STEP_DEGREES];
    int32_t least = plain_least(p, k, alone);
    p->home[k] = HBP__NONE;
    if (least == step->degrees)
        return;
    if ((p->style.spread || least == p->level) && plain_open(p, k, least))
        return;
    if (plain_join(p, k, least) || plain_open(p, k, least))
        return;
    for (int32_t j = least + 1; j < step->degrees; j++)
        if (alone[j] <= p->makespan && plain_join(p, k, j))
            return;
}

/* Rank-time of a sequence on its cheapest degree, without what is paid once. */
static double useful_of(const hbp__step *step, int64_t k)
{
    double least = (double)INFINITY;
    for (int32_t j = 0; j < step->degrees; j++)
        if (step->tokens[k] <= step->degree[j].capacity) {
            double work = step->degree[j].degree *
                          (hbp__step_group_time(
                               step, j, (hbp__load){.tokens = step->tokens[k], .squares = step->squares[k]}) -
                           step->cost->terms.pack_ns);
            least = work < least ? work : least;
        }
    return least;
}

/* Puts all of `given` [count]; their useful rank-time as far as they find a place. */
static double plain_put_all(plain *p, const int64_t *given, int64_t count, int32_t level)
{
    double useful = 0;
    p->groups = p->capped = 0;
    p->level = level;
    for (int64_t i = 0; i < count; i++) {
        plain_put(p, given[i]);
        useful += p->home[given[i]] == HBP__NONE ? 0 : useful_of(p->step, given[i]);
    }
    return useful;
}

static int plain_leaves(const plain *p, const int64_t *given, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (p->home[given[i]] == HBP__NONE)
            return 1;
    return 0;
}

/* Once more where samples are what keeps sequences out. Returns whether that is better. */
static int plain_fill(plain *p, const int64_t *given, int64_t count)
{
    double alone[HBP__STEP_DEGREES], useful = plain_put_all(p, given, count, HBP__NONE);
    if (!p->capped || !plain_leaves(p, given, count))
        return 0;
    if (plain_put_all(p, given, count, plain_least(p, given[count - 1], alone)) > useful)
        return 1;
    plain_put_all(p, given, count, HBP__NONE);
    return 0;
}

/* Compares micro-batch 0 of the trial board and the pool with the plain filling of `given` [count]. */
static void compare(const ground *g, const plain *p, const int64_t *given, int64_t count, double useful)
{
    const hbp__step_board *board = &g->builder.trial;
    const hbp__step_pool *pool = &g->builder.pool;
    double sum = 0;
    int64_t left = 0;
    ck_assert_int_eq(board->groups[0], p->groups);
    for (int64_t i = 0; i < p->groups; i++) {
        ck_assert_int_eq(board->group[i].degree, p->group[i].degree);
        ck_assert_double_le(board->group[i].time, p->makespan);
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t k = given[i];
        if (p->home[k] == HBP__NONE) {
            ck_assert_int_lt(left, pool->count);
            ck_assert_int_eq(pool->member[left++], k);
        } else {
            ck_assert_int_eq(board->home[k], p->home[k]);
            sum += useful_of(&g->step, k);
        }
    }
    ck_assert_int_eq(left, pool->count);
    ck_assert_double_eq_tol(useful, sum, 1e-9 * (sum + 1));
}

/* A makespan to fill within: from what hardly anything runs in to what everything does. */
static double draw_makespan(ground *g)
{
    const hbp__step *step = &g->step;
    double alone = ground_alone(step, g->builder.pool.member[0]);
    switch (hbp__rng_below(&g->rng, 4)) {
    case 0:
        return alone; /* nothing beside the longest where it is put first */
    case 1:
        return alone * small_between(&g->rng, .2, 1);
    case 2:
        return alone * small_between(&g->rng, 1, 5);
    default:
        return hbp__step_estimate(step, &g->builder.pool, 0, (g->builder.pool.count + 3) / 4, 99) *
               small_between(&g->rng, .8, 1.2);
    }
}

/* Limits the samples of a group, where some sequences may have more than one. */
static void draw_caps(ground *g, int32_t *samples)
{
    hbp__step *step = &g->step;
    int is_capped = hbp__rng_below(&g->rng, 2), is_linked = hbp__rng_below(&g->rng, 2);
    for (int64_t k = 0; k < step->count; k++)
        samples[k] = 1 + (int32_t)hbp__rng_below(&g->rng, 3);
    step->samples = is_capped && is_linked ? samples : NULL;
    step->most_samples = is_capped ? 3 + (int64_t)hbp__rng_below(&g->rng, 5) : INT64_MAX;
}

/* The same filling where more may be left than are, as many, or fewer: the pool, given [kept], stays. */
static void fill_within_most(ground *g, const plain *p, const int64_t *given, int64_t kept)
{
    hbp__step_builder *b = &g->builder;
    const int64_t left = b->pool.count;
    int64_t *rest = malloc((size_t)kept * sizeof *rest);
    double makespan = b->trial.makespan[0];
    memcpy(rest, b->pool.member, (size_t)left * sizeof *rest);
    memcpy(b->pool.member, given, (size_t)kept * sizeof *given);
    b->pool.count = kept;
    hbp__step_pool_sum(&g->step, &b->pool);
    for (int64_t most = left - 1; most <= left + 1; most++) {
        const int64_t got =
            hbp__step_fill_most(&b->filler, &b->pool, &b->trial, 1, p->makespan, p->style, most);
        ck_assert_int_eq(got, most < left ? HBP__NONE : left);
        ck_assert_int_eq(b->pool.count, kept);
        ck_assert_mem_eq(b->pool.member, given, (size_t)kept * sizeof *given);
        if (got < 0)
            continue;
        ck_assert_mem_eq(b->filler.left, rest, (size_t)left * sizeof *rest);
        ck_assert_double_eq(b->trial.makespan[1], makespan);
    }
    free(rest);
}

/* Returns whether groups that are alike were better. */
static int fill_once(ground *g, plain *p)
{
    const hbp__step *step = &g->step;
    hbp__step_builder *b = &g->builder;
    int64_t *given = malloc((size_t)step->count * sizeof *given);
    ground_pool_all(g);
    int64_t kept = 0, every = 1 + hbp__rng_below(&g->rng, 3);
    for (int64_t i = 0; i < step->count; i++) /* some of the sequences */
        if (i % 3 < every)
            b->pool.member[kept++] = i;
    b->pool.count = kept;
    hbp__step_pool_sum(step, &b->pool);
    memcpy(given, b->pool.member, (size_t)kept * sizeof *given);
    p->makespan = draw_makespan(g);
    p->style = ground_style(g);
    int level = plain_fill(p, given, kept);
    double useful = hbp__step_fill(&b->filler, &b->pool, &b->trial, 0, p->makespan, p->style);
    b->trial.micro_batches = 1;
    int64_t *times = calloc((size_t)step->count, sizeof *times);
    board_check_one(step, &b->trial, 0, times);
    for (int64_t i = 0; i < b->pool.count; i++)
        ck_assert_int_eq(times[b->pool.member[i]]++, 0);
    for (int64_t i = 0; i < kept; i++)
        ck_assert_int_eq(times[given[i]], 1);
    double tokens = 0;
    for (int64_t i = 0; i < b->pool.count; i++)
        tokens += (double)step->tokens[b->pool.member[i]];
    ck_assert_double_eq(b->pool.tokens_before[b->pool.count], tokens);
    compare(g, p, given, kept, useful);
    fill_within_most(g, p, given, kept);
    free(times);
    free(given);
    return level;
}

START_TEST(each_sequence_goes_where_it_should)
{
    int64_t level = 0;
    for (uint64_t i = 0; i < GROUNDS; i++) {
        ground g;
        ground_open(&g, i, (int)(i % GROUND_KINDS), 24);
        plain p = {.step = &g.step, .home = malloc((size_t)g.step.count * sizeof(int64_t))};
        int32_t *samples = malloc((size_t)g.step.count * sizeof *samples);
        for (int draw = 0; draw < 12; draw++) {
            draw_caps(&g, samples);
            level += fill_once(&g, &p);
        }
        g.step.samples = NULL;
        free(samples);
        free(p.home);
        ground_close(&g);
    }
    ck_assert_int_gt(level, GROUNDS / 15);
}
END_TEST

static hbp_status open_once(hbp_context *context, void *user)
{
    hbp__step step = *(const hbp__step *)user;
    hbp__step_filler filler;
    step.context = context;
    hbp_status status = hbp__step_filler_open(&step, &filler);
    return status;
}

START_TEST(nothing_is_left_behind)
{
    ground g;
    ground_open(&g, 3, GROUND_UNEVEN, 24);
    failing_sweep(open_once, &g.step);
    ground_close(&g);
}
END_TEST

TEST_MAIN("fill", each_sequence_goes_where_it_should, nothing_is_left_behind)
