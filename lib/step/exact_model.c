#include "step/exact_model.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "step/tuning.h"

/* What is branched on first. */
enum { BY_VALUE = 0, BY_WAY = 1, BY_OPEN = 2, BY_MICRO_BATCH = 3, BY_COUNT = 4 };

hbp_status hbp__step_kinds_open(const hbp__step *step, const int64_t *tokens, const double *squares,
                                int64_t members, hbp__step_kinds *kinds)
{
    hbp_context *context = step->context;
    memset(kinds, 0, sizeof *kinds);
    kinds->tokens = hbp__take(context, (uint64_t)members, sizeof *kinds->tokens);
    kinds->squares = hbp__take(context, (uint64_t)members, sizeof *kinds->squares);
    kinds->number = hbp__take(context, (uint64_t)members, sizeof *kinds->number);
    kinds->of = hbp__take(context, (uint64_t)members, sizeof *kinds->of);
    HBP__TRY(hbp__scratch_check(context, "the classes of sequences"));
    for (int64_t i = 0, first = 0; i < members; i++) {
        if (i && tokens[i] != tokens[i - 1])
            first = kinds->count;
        int64_t k = first;
        while (k < kinds->count && (kinds->squares[k] < squares[i] || kinds->squares[k] > squares[i]))
            k++;
        if (k == kinds->count) {
            kinds->count++;
            kinds->tokens[k] = tokens[i];
            kinds->squares[k] = squares[i];
            kinds->number[k] = 0;
        }
        kinds->number[k]++;
        kinds->of[i] = k;
    }
    return HBP_OK;
}

static double way_ns(const hbp__point *way, double tokens, double squares)
{
    return way->linear * tokens + way->square * squares;
}

static double idle_ns(const hbp__step *step)
{
    return step->cost->terms.pack_ns;
}

double hbp__step_model_least(const hbp__step *step, const hbp__step_kinds *kinds, int64_t micro_batches)
{
    double work = 0;
    for (int64_t k = 0; k < kinds->count; k++) {
        double least = INFINITY;
        for (int32_t j = 0; j < step->degrees; j++) {
            const hbp__step_degree *degree = &step->degree[j];
            if (kinds->tokens[k] > degree->capacity)
                continue;
            const hbp__point *way = hbp__step_find_way(degree, kinds->tokens[k]);
            double ns = way_ns(way, (double)kinds->tokens[k], kinds->squares[k]) * degree->degree;
            least = ns < least ? ns : least;
        }
        work += least * (double)kinds->number[k];
    }
    return (double)micro_batches * idle_ns(step) + work / step->ranks;
}

static int64_t sequences_of(const hbp__step_kinds *kinds)
{
    int64_t sum = 0;
    for (int64_t k = 0; k < kinds->count; k++)
        sum += kinds->number[k];
    return sum;
}

static int64_t slots_of(const hbp__step *step, const hbp__step_kinds *kinds, int32_t j)
{
    return hbp__min_i64(step->ranks / step->degree[j].degree, sequences_of(kinds));
}

int64_t hbp__step_model_columns(const hbp__step *step, const hbp__step_kinds *kinds, int64_t micro_batches)
{
    int64_t slots = 0, ways = 0;
    for (int32_t j = 0; j < step->degrees; j++) {
        int64_t of_degree = slots_of(step, kinds, j);
        slots += of_degree;
        ways += of_degree * 2 * (step->degree[j].ways - 1);
    }
    return hbp__mul_saturating(micro_batches, slots * (kinds->count + 2) + ways + kinds->count + 1);
}

void hbp__step_model_close(hbp__step_model *model)
{
    hbp__program_close(&model->program);
}

/* Where columns are. Those of a micro-batch lie together: its time; for each degree the number of open slots;
 * for each slot whether it is open, then a count for each kind; for each kind the count in the micro-batch;
 * and at the end the ways and the padding, which nobody looks up. */
static int64_t block_of(const hbp__step_model *m)
{
    return 1 + m->step->degrees + m->slots * (m->kinds->count + 1) + m->kinds->count;
}

static int32_t column_time(const hbp__step_model *m, int64_t batch)
{
    return (int32_t)(batch * block_of(m));
}

static int32_t column_open_count(const hbp__step_model *m, int64_t batch, int32_t j)
{
    return column_time(m, batch) + 1 + j;
}

static int32_t column_open(const hbp__step_model *m, int64_t batch, int32_t slot)
{
    return column_open_count(m, batch, m->step->degrees) + (int32_t)(slot * (m->kinds->count + 1));
}

static int32_t column_type(const hbp__step_model *m, int64_t batch, int32_t slot, int64_t kind)
{
    return column_open(m, batch, slot) + 1 + (int32_t)kind;
}

static int32_t column_in_batch(const hbp__step_model *m, int64_t batch, int64_t kind)
{
    return column_open(m, batch, m->slots) + (int32_t)kind;
}

/* The step to way w >= 1 of a slot of the micro-batch built last; what it pays is the column after it. */
static int32_t column_step(const hbp__step_model *m, int32_t slot, int32_t w)
{
    return m->slot_ways[slot] + 2 * (w - 1);
}

/* Sequences of this kind or of one before it. */
static int64_t number_up_to(const hbp__step_kinds *kinds, int64_t kind)
{
    int64_t sum = 0;
    for (int64_t k = 0; k <= kind; k++)
        sum += kinds->number[k];
    return sum;
}

/* What a micro-batch may take at most: those before it take as long, those after it as long as idle ones. */
static double limit_of(const hbp__step_model *m, int64_t batch)
{
    double after = (double)(m->micro_batches - 1 - batch) * idle_ns(m->step);
    return (m->cutoff_ns - after) / (double)(batch + 1);
}

/* Nonzero when a sequence of the kind may run on the degree at all. */
static int may_run(const hbp__step_model *m, int64_t batch, int64_t kind, int32_t j)
{
    const hbp__step_degree *degree = &m->step->degree[j];
    int64_t tokens = m->kinds->tokens[kind];
    if (hbp__round_up(tokens, m->step->options.pack_multiple) > degree->capacity)
        return 0;
    const hbp__point *way = hbp__step_find_way(degree, tokens);
    return way->constant + way_ns(way, (double)tokens, m->kinds->squares[kind]) <= limit_of(m, batch);
}

static hbp_status add_columns(hbp__step_model *m)
{
    hbp__program *p = &m->program;
    const hbp__step *step = m->step;
    const hbp__step_kinds *kinds = m->kinds;
    for (int64_t batch = 0; batch < m->micro_batches; batch++) {
        HBP__TRY(hbp__program_add_column(p, 1, idle_ns(step) / m->unit_ns, limit_of(m, batch) / m->unit_ns,
                                         HBP_COLUMN_CONTINUOUS, 0));
        for (int32_t j = 0; j < step->degrees; j++)
            HBP__TRY(hbp__program_add_column(p, 0, 0, (double)slots_of(step, kinds, j), HBP_COLUMN_INTEGER,
                                             BY_COUNT));
        for (int32_t slot = 0; slot < m->slots; slot++) {
            HBP__TRY(hbp__program_add_column(p, 0, 0, 1, HBP_COLUMN_INTEGER, BY_OPEN));
            for (int64_t k = 0; k < kinds->count; k++) {
                /* So many sequences lead the slots before this one. */
                int is_allowed = may_run(m, batch, k, m->slot_degree[slot]) &&
                                 number_up_to(kinds, k) > m->slot_index[slot];
                HBP__TRY(hbp__program_add_column(p, 0, 0, is_allowed ? (double)kinds->number[k] : 0,
                                                 HBP_COLUMN_INTEGER, BY_VALUE));
            }
        }
        for (int64_t k = 0; k < kinds->count; k++)
            HBP__TRY(hbp__program_add_column(p, 0, 0, (double)kinds->number[k], HBP_COLUMN_INTEGER,
                                             m->micro_batches > 1 ? BY_MICRO_BATCH : BY_VALUE));
    }
    return HBP_OK;
}

/* Every sequence in a micro-batch, and in one of its slots. */
static hbp_status add_assignment(hbp__step_model *m)
{
    hbp__program *p = &m->program;
    for (int64_t k = 0; k < m->kinds->count; k++) {
        double number = (double)m->kinds->number[k];
        HBP__TRY(hbp__program_add_row(p, number, number));
        for (int64_t batch = 0; batch < m->micro_batches; batch++)
            HBP__TRY(hbp__program_add_entry(p, column_in_batch(m, batch, k), 1));
        for (int64_t batch = 0; batch < m->micro_batches; batch++) {
            HBP__TRY(hbp__program_add_row(p, 0, 0));
            HBP__TRY(hbp__program_add_entry(p, column_in_batch(m, batch, k), -1));
            for (int32_t slot = 0; slot < m->slots; slot++)
                HBP__TRY(hbp__program_add_entry(p, column_type(m, batch, slot, k), 1));
        }
    }
    return HBP_OK;
}

/* Open slots of a degree are counted, come first, and all take at most the ranks there are. */
static hbp_status add_counts(hbp__step_model *m, int64_t batch)
{
    hbp__program *p = &m->program;
    const hbp__step *step = m->step;
    HBP__TRY(hbp__program_add_row(p, -INFINITY, 1));
    for (int32_t j = 0; j < step->degrees; j++)
        HBP__TRY(hbp__program_add_entry(p, column_open_count(m, batch, j),
                                        (double)step->degree[j].degree / step->ranks));
    for (int32_t j = 0; j < step->degrees; j++) {
        HBP__TRY(hbp__program_add_row(p, 0, 0));
        HBP__TRY(hbp__program_add_entry(p, column_open_count(m, batch, j), -1));
        for (int32_t slot = 0; slot < m->slots; slot++)
            if (m->slot_degree[slot] == j)
                HBP__TRY(hbp__program_add_entry(p, column_open(m, batch, slot), 1));
    }
    for (int32_t slot = 0; slot < m->slots; slot++) {
        if (!m->slot_index[slot])
            continue;
        HBP__TRY(hbp__program_add_row(p, 0, INFINITY));
        HBP__TRY(hbp__program_add_entry(p, column_open(m, batch, slot - 1), 1));
        HBP__TRY(hbp__program_add_entry(p, column_open(m, batch, slot), -1));
    }
    return HBP_OK;
}

/* A kind is in a slot only with a sequence of it or of one before it in the slot before. The longest
 * micro-batches come first. */
static hbp_status add_order(hbp__step_model *m, int64_t batch)
{
    hbp__program *p = &m->program;
    const hbp__step_kinds *kinds = m->kinds;
    int64_t columns = m->micro_batches * m->slots * kinds->count;
    for (int32_t slot = 0; slot < m->slots && columns <= HBP__EXACT_ORDERED; slot++) {
        for (int64_t k = 0; k < kinds->count && m->slot_index[slot]; k++) {
            int32_t column = column_type(m, batch, slot, k);
            if (!(p->upper[column] > 0))
                continue;
            HBP__TRY(hbp__program_add_row(p, 0, INFINITY));
            HBP__TRY(hbp__program_add_entry(p, column, -1.0 / (double)kinds->number[k]));
            for (int64_t l = 0; l <= k; l++)
                HBP__TRY(hbp__program_add_entry(p, column_type(m, batch, slot - 1, l), 1));
        }
    }
    if (batch) {
        HBP__TRY(hbp__program_add_row(p, 0, INFINITY));
        HBP__TRY(hbp__program_add_entry(p, column_time(m, batch - 1), 1));
        HBP__TRY(hbp__program_add_entry(p, column_time(m, batch), -1));
    }
    return HBP_OK;
}

/* A slot's entries `of a token` and `of a square` times the sizes of what is in it. */
static hbp_status add_load(hbp__step_model *m, int64_t batch, int32_t slot, double linear, double square)
{
    for (int64_t k = 0; k < m->kinds->count; k++) {
        int32_t column = column_type(m, batch, slot, k);
        if (m->program.upper[column] > 0)
            HBP__TRY(hbp__program_add_entry(
                &m->program, column, linear * (double)m->kinds->tokens[k] + square * m->kinds->squares[k]));
    }
    return HBP_OK;
}

/* Ways of a degree that a solution within the limit can need. */
static int32_t ways_needed(const hbp__step_model *m, int64_t batch, const hbp__step_degree *degree)
{
    int32_t ways = 1;
    while (ways < degree->ways && degree->way[ways - 1].capacity < m->total_tokens) {
        const hbp__point *way = &degree->way[ways];
        if (way->constant + way->linear * (double)degree->way[ways - 1].capacity > limit_of(m, batch))
            break;
        ways++;
    }
    return ways;
}

/* A kind is in a slot only when it is open, and with the steps that one of its sequences needs by itself. */
static hbp_status add_openings(hbp__step_model *m, int64_t batch, int32_t slot)
{
    hbp__program *p = &m->program;
    const hbp__step_degree *degree = &m->step->degree[m->slot_degree[slot]];
    int32_t ways = ways_needed(m, batch, degree);
    for (int64_t k = 0; k < m->kinds->count; k++) {
        int32_t column = column_type(m, batch, slot, k), needed = 0;
        if (!(p->upper[column] > 0))
            continue;
        while (needed < ways - 1 && degree->way[needed].capacity < m->kinds->tokens[k])
            needed++;
        HBP__TRY(hbp__program_add_row(p, 0, INFINITY));
        HBP__TRY(hbp__program_add_entry(
            p, needed ? column_step(m, slot, needed) : column_open(m, batch, slot), 1));
        HBP__TRY(hbp__program_add_entry(p, column, -1.0 / (double)m->kinds->number[k]));
    }
    return HBP_OK;
}

/* Time and memory of a slot. `pad` is its column of padded tokens over the pack multiple, or -1.
 *
 * The first way's time is always paid. A step to the next way is a column that is 1 once the tokens pass what
 * the way before holds, and then pays the difference of the two ways: at most what it is at that border,
 * unless the step is taken, so the difference at the border switches the row off. */
static hbp_status add_slot(hbp__step_model *m, int64_t batch, int32_t slot, int32_t pad)
{
    hbp__program *p = &m->program;
    const hbp__step_degree *degree = &m->step->degree[m->slot_degree[slot]];
    const hbp__point *way = degree->way;
    int32_t ways = ways_needed(m, batch, degree), open = column_open(m, batch, slot);
    double unit = m->unit_ns, multiple = (double)m->step->options.pack_multiple;
    double holds = (double)hbp__min_i64(way[0].capacity, m->total_tokens + m->step->options.pack_multiple);
    double longest_square = 0;
    for (int64_t k = 0; k < m->kinds->count; k++)
        longest_square = fmax(longest_square, m->kinds->squares[k] / (double)m->kinds->tokens[k]);
    m->slot_ways[slot] = p->columns;
    for (int32_t w = 1; w < ways; w++) {
        HBP__TRY(hbp__program_add_column(p, 0, 0, 1, HBP_COLUMN_INTEGER, BY_WAY));
        HBP__TRY(hbp__program_add_column(p, 0, 0, INFINITY, HBP_COLUMN_CONTINUOUS, 0));
    }
    for (int32_t w = 1; w < ways; w++) {
        int32_t step = column_step(m, slot, w), pays = step + 1;
        HBP__TRY(hbp__program_add_row(p, 0, INFINITY)); /* no step before the one before it */
        HBP__TRY(hbp__program_add_entry(p, w > 1 ? step - 2 : open, 1));
        HBP__TRY(hbp__program_add_entry(p, step, -1));
        double border = (double)way[w - 1].capacity;
        double fixed = way[w].constant - way[w - 1].constant, linear = way[w].linear - way[w - 1].linear;
        double square = way[w].square - way[w - 1].square;
        double least = fixed + linear * border, most = least + square * border * longest_square;
        HBP__TRY(hbp__program_add_row(p, 0, INFINITY));
        HBP__TRY(hbp__program_add_entry(p, pays, 1));
        HBP__TRY(hbp__program_add_entry(p, step, -least / unit));
        HBP__TRY(hbp__program_add_row(p, (fixed - most) / unit, INFINITY));
        HBP__TRY(hbp__program_add_entry(p, pays, 1));
        HBP__TRY(hbp__program_add_entry(p, step, -most / unit));
        HBP__TRY(add_load(m, batch, slot, pad < 0 ? -linear / unit : 0, -square / unit));
        if (pad >= 0)
            HBP__TRY(hbp__program_add_entry(p, pad, -linear * multiple / unit));
    }
    /* What it takes is within the micro-batch's time, and within the limit only if it is open. */
    for (int32_t within = 0; within < (isfinite(m->cutoff_ns) ? 2 : 1); within++) {
        HBP__TRY(hbp__program_add_row(p, -INFINITY, 0));
        HBP__TRY(add_load(m, batch, slot, pad < 0 ? way[0].linear / unit : 0, way[0].square / unit));
        if (pad >= 0)
            HBP__TRY(hbp__program_add_entry(p, pad, way[0].linear * multiple / unit));
        for (int32_t w = 1; w < ways; w++)
            HBP__TRY(hbp__program_add_entry(p, column_step(m, slot, w) + 1, 1));
        double fixed = within ? way[0].constant - limit_of(m, batch) : way[0].constant;
        HBP__TRY(hbp__program_add_entry(p, open, fixed / unit));
        if (!within)
            HBP__TRY(hbp__program_add_entry(p, column_time(m, batch), -1));
    }
    HBP__TRY(hbp__program_add_row(p, -INFINITY, 0));
    HBP__TRY(add_load(m, batch, slot, 1 / holds, 0));
    HBP__TRY(hbp__program_add_entry(p, open, -1));
    for (int32_t w = 1; w < ways; w++)
        HBP__TRY(hbp__program_add_entry(p, column_step(m, slot, w),
                                        -(double)(way[w].capacity - way[w - 1].capacity) / holds));
    if (pad >= 0) {
        HBP__TRY(hbp__program_add_row(p, 0, INFINITY));
        HBP__TRY(hbp__program_add_entry(p, pad, 1));
        HBP__TRY(add_load(m, batch, slot, -1 / multiple, 0));
    }
    return HBP_OK;
}

/* All slots together, for the relaxation, which opens a little of each: ranks times time is at least what is
 * worked on them. And a sequence alone takes as long as it takes. */
static hbp_status add_bounds(hbp__step_model *m, int64_t batch)
{
    hbp__program *p = &m->program;
    const hbp__step *step = m->step;
    double unit = m->unit_ns, idle = idle_ns(step);
    HBP__TRY(hbp__program_add_row(p, -INFINITY, -idle / unit));
    HBP__TRY(hbp__program_add_entry(p, column_time(m, batch), -1));
    for (int32_t slot = 0; slot < m->slots; slot++) {
        const hbp__step_degree *degree = &step->degree[m->slot_degree[slot]];
        double share = (double)degree->degree / step->ranks / unit;
        HBP__TRY(add_load(m, batch, slot, share * degree->way[0].linear, share * degree->way[0].square));
        HBP__TRY(
            hbp__program_add_entry(p, column_open(m, batch, slot), share * (degree->way[0].constant - idle)));
    }
    for (int64_t k = 0; k < m->kinds->count; k++) {
        if (m->kinds->number[k] > 1)
            continue;
        HBP__TRY(hbp__program_add_row(p, -INFINITY, -idle / unit));
        HBP__TRY(hbp__program_add_entry(p, column_time(m, batch), -1));
        for (int32_t slot = 0; slot < m->slots; slot++) {
            int32_t column = column_type(m, batch, slot, k);
            if (!(p->upper[column] > 0))
                continue;
            const hbp__point *way =
                hbp__step_find_way(&step->degree[m->slot_degree[slot]], m->kinds->tokens[k]);
            double ns = way->constant + way_ns(way, (double)m->kinds->tokens[k], m->kinds->squares[k]);
            HBP__TRY(hbp__program_add_entry(p, column, (ns - idle) / unit));
        }
    }
    return HBP_OK;
}

static hbp_status list_slots(hbp__step_model *m)
{
    const hbp__step *step = m->step;
    int64_t slots = 0;
    for (int32_t j = 0; j < step->degrees; j++)
        slots += slots_of(step, m->kinds, j);
    m->slot_degree = hbp__take(step->context, (uint64_t)slots, sizeof *m->slot_degree);
    m->slot_index = hbp__take(step->context, (uint64_t)slots, sizeof *m->slot_index);
    m->slot_ways = hbp__take(step->context, (uint64_t)slots, sizeof *m->slot_ways);
    HBP__TRY(hbp__scratch_check(step->context, "the groups of the step"));
    for (int32_t j = 0; j < step->degrees; j++)
        for (int64_t i = 0; i < slots_of(step, m->kinds, j); i++) {
            m->slot_degree[m->slots] = j;
            m->slot_index[m->slots++] = (int32_t)i;
        }
    return HBP_OK;
}

static hbp_status build(hbp__step_model *m)
{
    hbp__program *p = &m->program;
    HBP__TRY(list_slots(m));
    HBP__TRY(add_columns(m));
    HBP__TRY(add_assignment(m));
    for (int64_t batch = 0; batch < m->micro_batches; batch++) {
        HBP__TRY(add_counts(m, batch));
        HBP__TRY(add_order(m, batch));
        for (int32_t slot = 0; slot < m->slots; slot++) {
            int32_t pad = -1;
            if (m->step->options.pack_multiple > 1) {
                pad = p->columns;
                HBP__TRY(hbp__program_add_column(p, 0, 0, INFINITY, HBP_COLUMN_INTEGER, BY_VALUE));
            }
            HBP__TRY(add_slot(m, batch, slot, pad));
            HBP__TRY(add_openings(m, batch, slot));
        }
        HBP__TRY(add_bounds(m, batch));
    }
    if (!isfinite(m->cutoff_ns) || m->micro_batches == 1)
        return HBP_OK;
    HBP__TRY(hbp__program_add_row(p, -INFINITY, m->cutoff_ns / m->unit_ns));
    for (int64_t batch = 0; batch < m->micro_batches; batch++)
        HBP__TRY(hbp__program_add_entry(p, column_time(m, batch), 1));
    return HBP_OK;
}

hbp_status hbp__step_model_open(const hbp__step *step, const hbp__step_kinds *kinds, int64_t micro_batches,
                                double cutoff_ns, hbp__step_model *model)
{
    *model = (hbp__step_model){
        .step = step, .kinds = kinds, .micro_batches = micro_batches, .cutoff_ns = cutoff_ns};
    hbp__program_open(step->context, &model->program);
    model->unit_ns = fmax(1, hbp__step_model_least(step, kinds, micro_batches) / (double)micro_batches);
    for (int64_t k = 0; k < kinds->count; k++)
        model->total_tokens += kinds->number[k] * kinds->tokens[k];
    return build(model);
}

/* The groups that hold something, micro-batch by micro-batch; empty micro-batches only where the options want
 * more than there are. */
static int64_t list_groups(const hbp__step_model *m, const double *values, int64_t *slot_group,
                           hbp__step_solution *solution)
{
    int64_t groups = 0, batches = 0;
    for (int64_t batch = 0; batch < m->micro_batches; batch++) {
        int64_t before = groups;
        for (int32_t slot = 0; slot < m->slots; slot++) {
            int64_t held = 0;
            for (int64_t k = 0; k < m->kinds->count; k++)
                held += (int64_t)rint(values[column_type(m, batch, slot, k)]);
            slot_group[batch * m->slots + slot] = groups;
            if (held > 0)
                solution->degree[groups++] = m->slot_degree[slot];
        }
        if (groups > before)
            solution->first[++batches] = groups;
    }
    while (batches < m->step->options.min_micro_batches && batches < m->micro_batches)
        solution->first[++batches] = groups;
    solution->groups = groups;
    return batches;
}

hbp_status hbp__step_model_read(const hbp__step_model *model, const double *values, int64_t members,
                                hbp__step_solution *solution)
{
    const hbp__step *step = model->step;
    int64_t mark = hbp__scratch_mark(step->context), places = model->micro_batches * model->slots;
    int64_t *slot_group = hbp__take(step->context, (uint64_t)places, sizeof *slot_group);
    HBP__TRY(hbp__scratch_check(step->context, "the groups of the step"));
    HBP__TRY(hbp__step_solution_open(step, model->micro_batches, places, solution));
    solution->micro_batches = list_groups(model, values, slot_group, solution);
    /* Sequences of a kind, in their order, fill the places of the kind in theirs. */
    for (int64_t k = 0; k < model->kinds->count; k++) {
        int64_t i = 0, place = 0, left = 0;
        for (; place <= places; place++) {
            for (; left > 0; left--, i++) {
                while (i < members && model->kinds->of[i] != k)
                    i++;
                if (i == members)
                    break;
                solution->group[i] = slot_group[place - 1];
            }
            if (place < places)
                left = (int64_t)rint(
                    values[column_type(model, place / model->slots, (int32_t)(place % model->slots), k)]);
        }
    }
    hbp__scratch_release(step->context, mark);
    return HBP_OK;
}
