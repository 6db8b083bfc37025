/* Numbers for ranks such that states stay where the schedule before had them: greedy assignment and exchanges
 * of two, for domains and within them. O(gpus^2 x groups). */
#include "tasks/place/place_methods.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"

typedef struct numbering {
    hbp__board *board;
    int64_t *value;  /* [gpus x gpus] bytes that stay when what rank r runs gets number q */
    int64_t *worth;  /* [domains x domains] the same for whole domains */
    int32_t *number; /* [gpus] for each rank */
    int32_t *domain; /* [domains] for each domain */
    int32_t *trial;  /* [gpus] */
    uint8_t *taken;  /* [gpus] */
    int32_t *ranks;  /* [gpus] */
    int32_t whole;   /* domains of full size */
} numbering;

static hbp_status take_numbering(hbp__board *board, numbering *k)
{
    hbp_context *context = board->context;
    uint64_t gpus = (uint64_t)board->gpus, domains = (uint64_t)board->domains;
    *k = (numbering){.board = board, .whole = board->gpus / board->domain_gpus};
    k->value = hbp__take_zero(context, gpus, gpus * sizeof *k->value);
    k->worth = hbp__take_zero(context, domains, domains * sizeof *k->worth);
    k->number = hbp__take(context, gpus, sizeof *k->number);
    k->domain = hbp__take(context, domains, sizeof *k->domain);
    k->trial = hbp__take(context, gpus, sizeof *k->trial);
    k->taken = hbp__take(context, gpus, sizeof *k->taken);
    k->ranks = hbp__take(context, gpus, sizeof *k->ranks);
    return hbp__scratch_check(context, "the placement of slices");
}

/* Of rank r: states of every group of before are worth the same on each rank of the group. */
static void add_reuses(numbering *k, int32_t r, int64_t begin, int64_t end)
{
    const hbp__board *board = k->board;
    int64_t *value = k->value + (int64_t)r * board->gpus;
    for (int64_t i = begin; i < end; i++) {
        const uint64_t *set = board->group_set + board->reuse[i].group * board->words;
        for (int64_t w = 0; w < board->words; w++)
            for (uint64_t word = set[w]; word; word &= word - 1)
                value[w * 64 + hbp__lowest_bit(word)] += board->reuse[i].bytes;
    }
}

static void fill_values(numbering *k)
{
    const hbp__board *board = k->board;
    for (int32_t r = 0; r < board->gpus; r++) {
        for (int32_t s = 0; s < board->count; s++)
            if (hbp__has_rank(hbp__board_set(board, s), r))
                add_reuses(k, r, board->reuse_first[s], board->reuse_first[s + 1]);
        for (int32_t b = 0; b < board->bundles; b++) {
            const hbp__bundle *bundle = &board->bundle[b];
            int held = 0;
            for (int64_t u = bundle->first; u < bundle->end && !held; u++)
                held = hbp__has_rank(hbp__board_set(board, board->user[u].slice), r);
            if (held)
                add_reuses(k, r, bundle->reuse_first, bundle->reuse_end);
        }
    }
}

static int64_t sum_of(const int64_t *value, int64_t stride, const int32_t *number, int32_t count)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < count; i++)
        sum += value[i * stride + number[i]];
    return sum;
}

/* Numbers 0 .. count - 1 for as many rows of `value`: each row in turn takes the best left, unless rows as
 * they are keep more; then two change numbers for as long as that keeps more. Returns what is kept. */
static int64_t assign_numbers(numbering *k, const int64_t *value, int64_t stride, int32_t count,
                              int32_t *number)
{
    memset(k->taken, 0, (size_t)count);
    for (int32_t i = 0; i < count; i++) {
        int32_t best = -1;
        for (int32_t j = 0; j < count; j++)
            if (!k->taken[j] && (best < 0 || value[i * stride + j] > value[i * stride + best]))
                best = j;
        number[i] = best;
        k->taken[best] = 1;
    }
    int64_t kept = sum_of(value, stride, number, count), same = 0;
    for (int32_t i = 0; i < count; i++)
        same += value[i * stride + i];
    if (same >= kept)
        for (int32_t i = 0; i < count; i++)
            number[i] = i;
    for (int32_t round = 0, better = 1; better && round < HBP__REUSE_ROUNDS; round++) {
        better = 0;
        for (int32_t i = 0; i < count; i++)
            for (int32_t j = i + 1; j < count; j++) {
                const int64_t *a = value + i * stride, *b = value + j * stride;
                if (a[number[j]] + b[number[i]] > a[number[i]] + b[number[j]]) {
                    int32_t n = number[i];
                    number[i] = number[j];
                    number[j] = n;
                    better = 1;
                }
            }
    }
    return sum_of(value, stride, number, count);
}

/* A domain that is not full keeps its number. */
static void number_ranks(numbering *k)
{
    const hbp__board *board = k->board;
    int32_t width = board->domain_gpus, gpus = board->gpus;
    for (int32_t x = 0; x < k->whole; x++)
        for (int32_t y = 0; y < k->whole; y++)
            k->worth[x * k->whole + y] = assign_numbers(
                k, k->value + (int64_t)x * width * gpus + (int64_t)y * width, gpus, width, k->trial);
    assign_numbers(k, k->worth, k->whole, k->whole, k->domain);
    for (int32_t x = 0; x < board->domains; x++) {
        int32_t y = x < k->whole ? k->domain[x] : x, size = x < k->whole ? width : gpus - x * width;
        int32_t *number = k->number + x * width;
        assign_numbers(k, k->value + (int64_t)x * width * gpus + (int64_t)y * width, gpus, size, number);
        for (int32_t i = 0; i < size; i++)
            number[i] += y * width;
    }
}

static void renumber_slices(numbering *k)
{
    hbp__board *board = k->board;
    for (int32_t s = 0; s < board->count; s++) {
        int32_t count = 0;
        for (int32_t r = 0; r < board->gpus; r++)
            if (hbp__has_rank(hbp__board_set(board, s), r))
                k->ranks[count++] = k->number[r];
        hbp__board_put(board, s, k->ranks);
    }
}

hbp_status hbp__board_reuse(hbp__board *board)
{
    if (board->reuses && board->gpus <= HBP__REUSE_MOST_GPUS) {
        numbering k;
        int64_t mark = hbp__scratch_mark(board->context);
        HBP__TRY(take_numbering(board, &k));
        fill_values(&k);
        number_ranks(&k);
        renumber_slices(&k);
        hbp__scratch_release(board->context, mark);
    }
    hbp__board_measure(board);
    return HBP_OK;
}
